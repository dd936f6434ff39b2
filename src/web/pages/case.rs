//! What the forms on a dead letter have in common: the case as it stands, what was typed, and the
//! answer.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use uuid::Uuid;

use super::verdict::{KnownView, RunView, VerdictPage, VerdictView};
use crate::domain::actor::Right;
use crate::domain::attempt::StoredRequest;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::time::Timestamp;
use crate::domain::verdict::{Check, CheckName, Verdict, VerdictKind};
use crate::domain::words;
use crate::engine::actions::{self, MAX_REASON};
use crate::engine::preview::Preview;
use crate::store::audit::recent_reasons;
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Fields, Signed};
use crate::web::known::CheckRow;
use crate::web::page::{Layout, Section, render_as};
use crate::web::tell::{Tale, card, list, request, sentence};
use crate::web::timeline::Request;
use crate::web::view::{Button, Field, Reference, When};

/// A dead letter, and how an action on it would go at this moment.
pub(super) struct Case {
    /// The episode.
    pub(super) letter: DeadLetterRow,
    /// How an action would go.
    pub(super) preview: Preview,
    now: Timestamp,
}

/// The dead letter that an address names.
pub(super) async fn letter(web: &Web, id: &str) -> Result<DeadLetterRow, Failure> {
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    dead_letters::by_id(&mut tx, id).await?.ok_or(Failure::NotFound)
}

impl Case {
    /// As it is for somebody who wants to do what `right` allows.
    pub(super) async fn load(web: &Web, who: &Signed, id: &str, right: Right) -> Result<Self, Failure> {
        let letter = letter(web, id).await?;
        let preview = Preview::load(web.engine.gate(), letter.operation_id, &who.actor(), right).await?;
        Ok(Self { letter, preview, now: web.engine.ambient().now() })
    }

    /// To be told to somebody.
    pub(super) fn tale<'a>(&'a self, web: &'a Web, who: &'a Signed) -> Tale<'a> {
        Tale::new(web.engine.config(), &self.preview.thread, who.seen(self.now), &who.role)
    }

    /// The page around a form.
    pub(super) async fn layout(&self, web: &Web, who: &Signed, title: &str) -> Result<Layout, Failure> {
        let layout = who.layout(title, Section::DeadLetters).await;
        let mut tx = web.engine.db().read().await?;
        Ok(list::rail(&mut tx, layout).await?)
    }

    /// The dead letter's page.
    pub(super) fn path(&self) -> String {
        path(&self.letter)
    }

    /// The way back to it.
    pub(super) fn back(&self, tale: &Tale<'_>) -> Reference {
        Reference::here(format!("{}: {}", tale.name(), words::step_name(&self.letter.step)), self.path())
    }

    /// What happened, from the catalogue.
    pub(super) fn sentence(&self, tale: &Tale<'_>) -> String {
        sentence::dead_letter_now(tale, &self.letter).join(" ")
    }

    /// Every check and how it goes now.
    pub(super) fn checks(&self, tale: &Tale<'_>) -> Vec<CheckRow> {
        checks(&self.preview.verdict.checks, tale)
    }

    /// What would be sent, as far as it may be shown; or why it cannot be built.
    pub(super) fn request(&self, tale: &Tale<'_>) -> Result<Request, String> {
        shown(tale, &self.preview.request)
    }

    /// Why nothing can be sent from here at all, whatever is waived. The right that is missing
    /// comes first: the rest is not for this reader to settle.
    pub(super) fn shut(&self, tale: &Tale<'_>) -> Option<String> {
        let said = |name: CheckName| {
            let check = self.preview.verdict.checks.iter().find(|check| check.name == name)?;
            Some(tale.mask.text(&check.detail))
        };
        if self.preview.firm.contains(&CheckName::Allowed) {
            return said(CheckName::Allowed);
        }
        if let Some(how) = self.letter.resolution {
            return Some(format!("{}.", actions::closed(how, &self.letter)));
        }
        if let Some(name) = self.preview.firm.first() {
            return said(*name);
        }
        self.request(tale).err()
    }

    /// What helps where a replay does not: its destination's page where that is paused, and everything
    /// but the replay.
    pub(super) fn instead(&self, web: &Web, who: &Signed, tale: &Tale<'_>) -> Vec<Button> {
        let step = tale.step(self.letter.position);
        let fields = vec![("csrf", who.csrf.clone()), ("action_id", action_id(web, None))];
        let mut knowledge = card::knowledge_of(tale, step);
        knowledge.ask = card::question(tale, step, fields, Some(self.letter.id));
        let (bar, more) = card::buttons(tale, &self.letter, &knowledge, false);
        let others = bar.into_iter().chain(more).filter(|button| !button.href.ends_with("/replay"));
        let resume = self.paused(tale).then(|| card::resume(tale, &self.letter.destination));
        resume.into_iter().chain(others).collect()
    }

    /// Nothing is sent before its destination is resumed.
    fn paused(&self, tale: &Tale<'_>) -> bool {
        self.letter.status == DeadLetterStatus::Open
            && self.preview.firm.contains(&CheckName::DestinationOpen)
            && tale.destination(&self.letter.destination).is_some()
    }

    /// The same under a new key.
    pub(super) fn anew(&self, tale: &Tale<'_>) -> Result<Request, String> {
        shown(tale, &self.preview.anew)
    }

    /// The reasons that somebody gave lately for such an action.
    pub(super) async fn recent(web: &Web, who: &Signed, action: &str) -> Result<Vec<String>, Failure> {
        let mut tx = web.engine.db().read().await?;
        Ok(recent_reasons(&mut tx, &who.user.name, action).await?)
    }
}

fn shown(tale: &Tale<'_>, stored: &Result<StoredRequest, String>) -> Result<Request, String> {
    match stored {
        Ok(stored) => Ok(request::to_send(tale, stored)),
        Err(why) => Err(tale.mask.text(why)),
    }
}

fn path(letter: &DeadLetterRow) -> String {
    format!("/dead-letters/{}", letter.id)
}

fn checks(checks: &[Check], tale: &Tale<'_>) -> Vec<CheckRow> {
    let row = |check: &Check| CheckRow {
        name: check.name,
        passed: check.passed,
        detail: tale.mask.text(&check.detail),
    };
    checks.iter().map(row).collect()
}

/// The reason as typed, and what is wrong with it.
pub(super) fn reason(fields: &Fields) -> Field {
    let typed = fields.lines("reason");
    let error = match typed.chars().count() {
        0 => Some("Say why: whoever looks at this later has only your words.".to_owned()),
        1..=MAX_REASON => None,
        length => Some(format!("This has {length} characters; at most {MAX_REASON} are kept.")),
    };
    Field { value: typed, error }
}

/// The form's own id, so that it acts once; a new one for a form that brought none.
pub(super) fn action_id(web: &Web, fields: Option<&Fields>) -> String {
    let sent = fields.map_or("", |fields| fields.get("action_id"));
    let fits = (1..=200).contains(&sent.len()) && sent.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { sent.to_owned() } else { web.engine.ambient().opaque().to_string() }
}

/// The answer to a form: back to the dead letter when it was accepted, or the verdict on a page of
/// its own. What was accepted is in the queue and not sent yet, and is told so.
pub(super) async fn answer(web: &Web, who: &Signed, id: &str, verdict: Verdict) -> Result<Response, Failure> {
    let case = Case::load(web, who, id, Right::Replay).await?;
    if verdict.verdict == VerdictKind::Accepted {
        web.engine.wake();
        let text = format!("{} It goes out in a moment; what comes back appears below.", verdict.reason);
        who.flash(true, text).await?;
        return Ok(Redirect::to(&case.path()).into_response());
    }
    let status = match verdict.verdict {
        VerdictKind::AlreadyDone => StatusCode::OK,
        _ => StatusCode::CONFLICT,
    };
    let layout = case.layout(web, who, "The answer").await?;
    let tale = case.tale(web, who);
    let helps = match verdict.verdict {
        VerdictKind::LookUpFirst | VerdictKind::NeedsOverride | VerdictKind::Refused => {
            case.instead(web, who, &tale)
        }
        _ => Vec::new(),
    };
    let page = VerdictPage { layout, back: case.back(&tale), verdict: view(&verdict, &tale, helps) };
    Ok(render_as(status, &page))
}

fn view(verdict: &Verdict, tale: &Tale<'_>, helps: Vec<Button>) -> VerdictView {
    VerdictView {
        kind: verdict.verdict,
        reason: tale.mask.text(&verdict.reason),
        checks: checks(&verdict.checks, tale),
        run: verdict.run.as_ref().map(|run| RunView {
            by: run.by.clone(),
            since: When::at(run.since, tale.seen()),
            href: run.url.clone(),
        }),
        known: verdict.known_result.as_ref().map(|known| KnownView {
            at: When::at(known.at, tale.seen()),
            how: tale.mask.text(&known.how),
            reference: known.reference.as_deref().map(|text| Reference::new(tale.mask.text(text), None)),
            answer: known.answer.as_deref().map(|text| request::bounded(&tale.mask.body(text))),
        }),
        helps,
    }
}
