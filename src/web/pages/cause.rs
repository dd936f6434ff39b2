//! One cause: what it did, what people say of it, and what can be done with all of it at once.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use super::dead_letters::{DeadLetterRow, present};
use super::triage::{self, CauseRow};
use super::{case, triage::causes as words_of_causes};
use crate::config::Config;
use crate::domain::actor::Right;
use crate::domain::dead_letter::NextAction;
use crate::domain::filter::{DeadLetterFilter, Page};
use crate::engine::actions::{ActionError, Request};
use crate::engine::causes::{self, MAX_NOTE, subject};
use crate::store::audit::{self, AuditRow};
use crate::store::causes::{self as store, STRETCHES};
use crate::store::{accounts, dead_letters};
use crate::web::Web;
use crate::web::chart::Chart;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::labels::{self, Mark as _};
use crate::web::listing::Choice;
use crate::web::page::{LETTERS, Layout, Section, render, render_as};
use crate::web::tell::{act, list};
use crate::web::view::{Button, Field, Long, Seen, When};

/// Members on the page; the list has all.
const MEMBERS: u32 = 20;
/// Entries of the history; the audit has all.
const HISTORY: i64 = 50;

/// One of them, and the forms on it.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/causes/{id}", get(show))
        .route("/causes/{id}/note", post(note))
        .route("/causes/{id}/assign", post(assign))
}

/// `/causes/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/cause.html")]
pub struct CausePage {
    /// Around it.
    pub layout: Layout,
    /// As in the table of causes: words, counts, certainty, times, note, owner.
    pub row: CauseRow,
    /// How many there ever were, in words.
    pub ever: String,
    /// The last seven days, six hours a column.
    pub chart: Chart,
    /// The last seven days, newest first: "in the last 24 hours" and how many.
    pub days: Vec<(String, u32)>,
    /// What can be done with all that wait.
    pub buttons: Vec<Button>,
    /// Whom it can be given to, and who has it.
    pub people: Vec<Choice>,
    /// The note's text in its form.
    pub note: Field,
    /// Why the reader cannot write or assign; absent when they can.
    pub needs: Option<String>,
    /// Newest first.
    pub history: Vec<Deed>,
    /// The newest that wait.
    pub members: Vec<DeadLetterRow>,
    /// Where the forms go.
    pub path: String,
    /// One click is one action: the note's and the assignment's.
    pub action_ids: [String; 2],
}

/// Something that somebody did about the cause.
#[derive(Clone, Debug)]
pub struct Deed {
    /// Who.
    pub by: String,
    /// What, in words.
    pub what: String,
    /// What it says.
    pub text: Option<Long>,
    /// When.
    pub at: When,
}

async fn show(State(web): State<Web>, who: Signed, Path(id): Path<String>) -> Result<Response, Failure> {
    Ok(render(&page(&web, &who, &id, None).await?))
}

/// The page; with a note as it was typed, where it was not taken.
async fn page(web: &Web, who: &Signed, id: &str, typed: Option<Field>) -> Result<CausePage, Failure> {
    who.require(Right::View)?;
    let (config, now, seen) = (web.engine.config(), who.now, who.seen(who.now));
    let mut tx = web.engine.db().read().await?;
    let found = store::by_id(&mut tx, id, now).await?.ok_or(Failure::NotFound)?;
    let words = words_of_causes::sentence(&found, config);
    let layout = who.layout(words, Section::Triage).await.listening(LETTERS);
    let layout = list::rail(&mut tx, layout).await?;
    let trends = store::trends(&mut tx, &[id], now).await?;
    let filter = DeadLetterFilter { cause: Some(id.to_owned()), ..list::waiting(now) };
    let listed = dead_letters::list(&mut tx, &filter, Page { limit: MEMBERS, cursor: None }).await?;
    let members = present(&mut tx, config, &listed.items, seen).await?;
    let history = audit::of_subject(&mut tx, &subject(id), HISTORY).await?;
    let people = accounts::users(&mut tx).await?;
    drop(tx);
    let trend = trends.first().map_or([0; STRETCHES], |(_, trend)| *trend);
    let role = &who.role;
    let note = typed.unwrap_or_else(|| Field::of(found.note.clone().unwrap_or_default()));
    let mut choices =
        vec![Choice { value: String::new(), words: "Nobody".to_owned(), chosen: found.assignee.is_none() }];
    let holds = |name: &String| found.assignee.as_ref() == Some(name);
    // Whoever has it stays in the list, so that the form never takes it away unasked.
    let roles = &web.engine.config().auth.roles;
    let people = people.into_iter().filter(|user| {
        holds(&user.name) || (user.disabled_at.is_none() && roles.of(&user.role).may(Right::Resolve))
    });
    choices.extend(people.map(|user| Choice {
        chosen: holds(&user.name),
        words: user.name.clone(),
        value: user.name,
    }));
    Ok(CausePage {
        layout,
        row: words_of_causes::row(&found, &trends, config, seen),
        ever: match found.ever {
            1 => "One in all, counting closed ones.".to_owned(),
            n => format!("{} in all, counting closed ones.", triage::shown(n)),
        },
        chart: chart(&trend),
        days: days(&trend),
        buttons: buttons(&found, &listed.items, config, who),
        people: choices,
        note,
        needs: (!role.may(Right::Resolve)).then(|| labels::lacks(Right::Resolve, role)),
        history: history.iter().map(|row| deed(row, seen)).collect(),
        members,
        path: format!("/causes/{id}"),
        action_ids: [case::action_id(web, None), case::action_id(web, None)],
    })
}

/// What can be done with all that wait, the most promising first; nothing when none does.
fn buttons(
    found: &store::CauseRow,
    members: &[dead_letters::DeadLetterRow],
    config: &Config,
    who: &Signed,
) -> Vec<Button> {
    if found.total == 0 {
        return Vec::new();
    }
    let role = &who.role;
    let mut filter = list::waiting(who.now);
    filter.cause = Some(found.cause.clone());
    let button = |action: &str, words: &str, canary: bool| {
        if !role.may(Right::Bulk) {
            return Button::locked(words, labels::lacks(Right::Bulk, role));
        }
        let mut pairs = vec![("action", action.to_owned()), ("all", "1".to_owned())];
        pairs.extend(filter.pairs());
        if canary {
            pairs.push(("canary", "1".to_owned()));
        }
        Button::new(words, list::address("/bulk/new", &pairs))
    };
    let asks = config.destinations.get(&found.destination).is_some_and(|known| known.question.is_some());
    let replay = button("replay", "Replay all, one first\u{2026}", true);
    let ask = button("lookup", "Ask for all\u{2026}", false);
    let resolve = button("resolve", "Resolve all\u{2026}", false);
    let assign = button("assign", "Assign all\u{2026}", false);
    // The same data would be refused again: somebody has to correct it, one by one.
    if members.iter().all(|letter| letter.next_action == NextAction::FixData) {
        return vec![assign, resolve, replay];
    }
    let mut buttons = match (asks, found.may_have_completed > 0) {
        // Where it may have happened, finding out comes before sending.
        (true, true) => vec![ask, replay],
        (true, false) => vec![replay, ask],
        (false, _) => vec![replay],
    };
    buttons.extend([resolve, assign]);
    buttons
}

fn chart(trend: &[u32; STRETCHES]) -> Chart {
    let column = |count: &u32| vec![("info", usize::try_from(*count).unwrap_or(usize::MAX))];
    let columns: Vec<_> = trend.iter().map(column).collect();
    Chart::columns(in_words(trend), &columns, vec!["7 days ago".to_owned(), "now".to_owned()])
}

fn in_words(trend: &[u32; STRETCHES]) -> String {
    let most = trend.iter().max().copied().unwrap_or(0);
    match trend.iter().sum::<u32>() {
        0 => "None came in the last 7 days.".to_owned(),
        1 => "One came in the last 7 days.".to_owned(),
        sum => format!("{sum} came in the last 7 days, at most {most} within six hours."),
    }
}

fn days(trend: &[u32; STRETCHES]) -> Vec<(String, u32)> {
    let day = |(ago, day): (usize, &[u32])| {
        let when = match ago {
            0 => "In the last 24 hours".to_owned(),
            n => format!("{} to {} hours ago", n * 24, (n + 1) * 24),
        };
        (when, day.iter().sum())
    };
    trend.rchunks(4).enumerate().map(day).collect()
}

fn deed(row: &AuditRow, seen: Seen) -> Deed {
    let what = match (row.action.as_str(), row.result.as_str()) {
        ("cause_note", "removed") => "took the note away".to_owned(),
        ("cause_note", _) => "wrote".to_owned(),
        ("cause_assign", _) => format!("assigned it {}", row.detail),
        (other, _) => act::what(other),
    };
    let says = row.action != "cause_assign" && !row.detail.is_empty();
    Deed {
        by: row.actor.clone(),
        what,
        text: says.then(|| Long::block(row.detail.clone())),
        at: When::at(row.at, seen),
    }
}

async fn note(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::Resolve)?;
    let (actor, action_id) = (who.actor(), case::action_id(&web, Some(&fields)));
    let asked = Request { actor: &actor, action_id: &action_id, reason: "", origin: &who.origin };
    let text = fields.lines("note");
    match causes::note(web.engine.gate(), &id, &text, &asked).await {
        Ok(()) if text.is_empty() => who.flash(true, "There is no note on this cause any more.").await?,
        Ok(()) => who.flash(true, "The note stands with the cause from now on.").await?,
        Err(ActionError::Invalid(why)) => {
            let page = page(&web, &who, &id, Some(Field::wrong(text, sentence(&why)))).await?;
            return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Redirect::to(&format!("/causes/{id}")).into_response())
}

async fn assign(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::Resolve)?;
    let (actor, action_id) = (who.actor(), case::action_id(&web, Some(&fields)));
    let asked = Request { actor: &actor, action_id: &action_id, reason: "", origin: &who.origin };
    let to = Some(fields.get("to")).filter(|name| !name.is_empty());
    causes::assign(web.engine.gate(), &id, to, &asked).await?;
    let text = match to {
        Some(name) => format!("{name} has this cause now."),
        None => "Nobody has this cause now.".to_owned(),
    };
    who.flash(true, text).await?;
    Ok(Redirect::to(&format!("/causes/{id}")).into_response())
}

impl CausePage {
    /// The most characters of a note.
    pub fn longest(&self) -> usize {
        MAX_NOTE
    }

    /// Those in view are not all that wait.
    pub fn has_more(&self) -> bool {
        self.row.counts[3].shown != self.members.len().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_and_its_table_tell_the_same() {
        let mut trend = [0; STRETCHES];
        (trend[0], trend[26], trend[27]) = (1, 30, 60);
        let heights: Vec<f64> = chart(&trend).blocks.iter().map(|block| block.height).collect();
        assert_eq!(heights[1..], [50.0, 100.0], "the first is a hair, and nothing is drawn for none");
        let days = days(&trend);
        assert_eq!(days.len(), 7);
        assert_eq!((days[0].1, days[6].1), (90, 1));
        assert_eq!(in_words(&trend), "91 came in the last 7 days, at most 60 within six hours.");
    }
}
