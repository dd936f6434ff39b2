//! One bulk action: what it is about, how far it is, and what became of each member.

use std::collections::HashMap;

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use uuid::Uuid;

use super::which::in_words;
use super::{Bar, Became, PATH, Standing, dead_letters, members_of};
use crate::domain::actor::Right;
use crate::domain::bulk::{BulkAction, BulkState, MemberState, Progress, Step};
use crate::domain::time::Timestamp;
use crate::domain::verdict::VerdictKind;
use crate::domain::words;
use crate::engine::bulk::{self as engine, chosen, subject};
use crate::store::bulk::members::{self, MemberRow, Place};
use crate::store::bulk::{self, BulkRow};
use crate::store::operations::{self, SearchRow};
use crate::store::{Tx, audit};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section, render};
use crate::web::tell::mask::Mask;
use crate::web::tell::{act, list};
use crate::web::view::{Button, Fact, FactValue, Long, Reference, Seen, When, grouped};

/// Members of one page.
const LIMIT: i64 = 50;
/// Entries of its history at most.
const MOST_HISTORY: i64 = 30;

/// `/bulk/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/bulk_one.html")]
pub struct BulkOnePage {
    /// Around it.
    pub layout: Layout,
    /// What people call it.
    pub name: String,
    /// Where it stands.
    pub stands: Standing,
    /// "Replay of".
    pub what: String,
    /// "1,234 dead letters".
    pub count: String,
    /// The filter in words; empty where they were chosen one by one.
    pub filter: Vec<(String, String)>,
    /// Why it is done.
    pub reason: Long,
    /// Why it is paused, and since when.
    pub paused: Option<(String, When)>,
    /// What is to be known before it is started: how the first would go, what arrived since.
    pub before: Vec<String>,
    /// How far it is.
    pub bar: Bar,
    /// Where it says more in a moment; absent where nothing moves.
    pub moving: Option<String>,
    /// What can be done, or why not.
    pub buttons: Vec<Button>,
    /// Who, when, how fast.
    pub facts: Vec<Fact>,
    /// "All", "Refused" and the like: how many, where, and whether it is shown.
    pub views: Vec<(String, String, bool)>,
    /// The members, oldest dead letter first.
    pub rows: Vec<MemberLine>,
    /// The page before.
    pub back: Option<String>,
    /// The page behind.
    pub more: Option<String>,
    /// What was said about it, newest first.
    pub history: Vec<Said>,
}

/// A member.
#[derive(Clone, Debug)]
pub struct MemberLine {
    /// Its dead letter.
    pub href: String,
    /// "#12".
    pub place: String,
    /// Its type and business ids.
    pub ids: String,
    /// What became of it.
    pub became: Became,
    /// What was answered.
    pub answer: Option<Long>,
    /// When it was acted on.
    pub at: Option<When>,
}

/// An entry of its history.
#[derive(Clone, Debug)]
pub struct Said {
    /// Who.
    pub by: String,
    /// What.
    pub what: String,
    /// What else.
    pub more: Option<Long>,
    /// When.
    pub at: When,
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/bulk/{id}", get(show))
}

async fn show(
    State(web): State<Web>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    who: Signed,
) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let given = list::parameters(query.as_deref());
    let seen = who.seen(web.engine.ambient().now());
    let mut tx = web.engine.db().read().await?;
    let row = bulk::by_id(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    let layout = who.layout(row.name.clone(), Section::Bulk).await.listening(subject(row.id));
    let layout = list::rail(&mut tx, layout).await?;
    let progress = members::progress(&mut tx, &[id]).await?;
    let progress = progress.first().map(|(_, progress)| *progress).unwrap_or_default();
    let filter = match &row.filter {
        Some(query) => in_words(&mut tx, &chosen::read(query, seen.now)?, seen).await?,
        None => Vec::new(),
    };
    let before = before(&web, &mut tx, &row, &who, seen.now).await?;
    let (view, from) = (view(&given), from(&given));
    let found = members::list(&mut tx, id, view, from, LIMIT + 1).await?;
    let (back, more, found) = turned(id, view, from, found);
    let rows = lines(&web, &mut tx, row.action, found, seen).await?;
    let history = audit::of_subject(&mut tx, &engine::subject(id), MOST_HISTORY).await?;
    drop(tx);
    let said = |row: audit::AuditRow| Said {
        what: act::what(&row.action),
        more: row.reason.or(Some(row.detail)).filter(|text| !text.is_empty()).map(Long::line),
        at: When::at(row.at, seen),
        by: row.actor,
    };
    Ok(render(&BulkOnePage {
        layout,
        stands: Standing::of(&row),
        what: what(&row),
        count: dead_letters(members_of(&row)),
        filter,
        reason: Long::line(row.reason.clone()),
        paused: paused(&row, seen),
        before,
        bar: Bar::of(row.action, &progress),
        moving: (progress.of(MemberState::Sent) > 0 || (row.state.acts() && row.paused_at.is_none()))
            .then(|| address(id, view, None)),
        buttons: buttons(&web, &who, &row, &progress),
        facts: facts(&row, seen),
        views: views(id, row.action, &progress, view),
        rows,
        back,
        more,
        history: history.into_iter().map(said).collect(),
        name: row.name,
    }))
}

fn what(row: &BulkRow) -> String {
    let label = words::bulk_action(row.action).label;
    match (row.action, row.resolution, &row.assignee) {
        (BulkAction::Resolve, Some(how), _) => {
            format!("{label} as \u{201c}{}\u{201d}:", words::resolution(how).label.to_lowercase())
        }
        (BulkAction::Assign, _, Some(name)) => format!("{label} to {name}:"),
        (BulkAction::Assign, _, None) => format!("{label} to nobody:"),
        _ => format!("{label}:"),
    }
}

fn paused(row: &BulkRow, seen: Seen) -> Option<(String, When)> {
    let (at, by) = row.paused_at.zip(row.paused_by.as_deref())?;
    let who = if by == "engine" { "It paused itself".to_owned() } else { format!("{by} paused it") };
    let why = row.pause_reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    Some((format!("{who}{why}."), When::at(at, seen)))
}

/// What is to be known before it is started.
async fn before(
    web: &Web,
    tx: &mut Tx,
    row: &BulkRow,
    who: &Signed,
    now: Timestamp,
) -> Result<Vec<String>, Failure> {
    if row.state != BulkState::Preview {
        return Ok(Vec::new());
    }
    let mut before = Vec::new();
    if row.action == BulkAction::Replay {
        let verdicts = engine::verdicts(web.engine.gate(), tx, row.id, &who.actor()).await?;
        before.push(would(&verdicts));
    }
    if let Some(query) = &row.filter {
        let arrived = members::arrived(tx, row, &chosen::read(query, now)?, list::MOST_COUNTED + 1).await?;
        before.push(match arrived {
            0 => "Nothing that matches has arrived since they were frozen.".to_owned(),
            1 => "1 arrived since and is left out.".to_owned(),
            n => format!("{} arrived since and are left out.", list::number(n)),
        });
    }
    Ok(before)
}

/// "Of the first 50: 44 would be sent · 4 must be asked about first · 2 already done".
fn would(verdicts: &[(VerdictKind, usize)]) -> String {
    let total: usize = verdicts.iter().map(|(_, count)| count).sum();
    let part = |(verdict, count): &(VerdictKind, usize)| {
        let words = match verdict {
            VerdictKind::Accepted => "would be sent",
            VerdictKind::InFlight => "under way already",
            VerdictKind::AlreadyDone => "already done",
            VerdictKind::LookUpFirst => "must be asked about first",
            VerdictKind::NeedsOverride => "would need an override",
            VerdictKind::Refused => "would be refused",
        };
        format!("{count} {words}")
    };
    let parts: Vec<String> = verdicts.iter().map(part).collect();
    let of = if total == 1 { "As things stand".to_owned() } else { format!("Of the first {total}") };
    format!("{of}: {}.", parts.join(" \u{b7} "))
}

fn buttons(web: &Web, who: &Signed, row: &BulkRow, progress: &Progress) -> Vec<Button> {
    let role = &who.role;
    let missing = [Right::Bulk, row.action.right()].into_iter().find(|right| !role.may(*right));
    let path = format!("{PATH}/{}", row.id);
    let button = |words: String, to: &str, step: Option<Step>| {
        if let Some(right) = missing {
            return Button::locked(words, labels::lacks(right, role));
        }
        let action_id = web.engine.ambient().opaque().to_string();
        let mut fields = vec![("csrf", who.csrf.clone()), ("action_id", action_id)];
        fields.extend(step.map(|step| ("step", step.to_string())));
        Button::act(words, format!("{path}/{to}"), fields)
    };
    let go = |words: String, step: Step| button(words, "start", Some(step));
    let canary = usize::try_from(row.canary).unwrap_or(0);
    let first = match canary {
        1 => "the first one".to_owned(),
        n => format!("the first {}", grouped(n)),
    };
    let mut buttons = Vec::new();
    match row.state {
        _ if row.paused_at.is_some() => buttons.push(go("Go on".to_owned(), Step::Resume)),
        BulkState::Preview if canary > 0 => buttons.push(go(format!("Start with {first}"), Step::Start)),
        BulkState::Preview => buttons.push(go("Start".to_owned(), Step::Start)),
        BulkState::Confirm => {
            let others = grouped(members_of(row).saturating_sub(canary));
            let words = format!("Confirm and go on with the other {others}");
            buttons.push(if progress.of(MemberState::Sent) > 0 && missing.is_none() {
                Button::locked(words, format!("What became of {first} is not known yet."))
            } else {
                go(words, Step::Confirm)
            });
        }
        BulkState::Canary | BulkState::Running => buttons.push(button("Pause".to_owned(), "pause", None)),
        BulkState::Ended | BulkState::Cancelled => {}
    }
    if row.state.over() {
        if progress.again() > 0 {
            let words = format!("Act again on the {}", grouped(progress.again()));
            buttons.push(button(words, "again", None));
        }
    } else {
        buttons.push(button("Cancel".to_owned(), "cancel", None));
    }
    buttons
}

fn facts(row: &BulkRow, seen: Seen) -> Vec<Fact> {
    let mut facts = vec![
        Fact::text("Made by", row.created_by.clone()),
        Fact::time("Members frozen", When::at(row.created_at, seen)),
    ];
    facts.extend(row.started_at.map(|at| Fact::time("Started", When::at(at, seen))));
    facts.extend(row.acts_as.clone().map(|name| Fact::text("Acts in the name of", name)));
    let ended = if row.state == BulkState::Cancelled { "Cancelled" } else { "Ended" };
    facts.extend(row.ended_at.map(|at| Fact::time(ended, When::at(at, seen))));
    facts.push(Fact::text(
        "First ones",
        match row.canary {
            0 => "none: all follow one another".to_owned(),
            1 => "1, then a person confirms".to_owned(),
            n => format!("{n}, then a person confirms"),
        },
    ));
    facts.push(Fact::text(
        "Speed",
        row.per_minute.map_or_else(|| "as fast as it goes".to_owned(), |n| format!("at most {n} a minute")),
    ));
    facts.extend(row.follows.map(|first| {
        Fact::link(
            "Acts again on",
            Reference::here("what was refused or failed again", format!("{PATH}/{first}")),
        )
    }));
    facts
}

/// The state that is shown alone.
fn view(given: &[(String, String)]) -> Option<MemberState> {
    given.iter().find(|(name, _)| name == "show").and_then(|(_, value)| value.parse().ok())
}

/// Where the page begins.
fn from(given: &[(String, String)]) -> Place {
    let place = |wanted: &str| {
        given.iter().find(|(name, _)| name == wanted).and_then(|(_, value)| value.parse().ok())
    };
    place("before").map_or_else(|| Place::After(place("after").unwrap_or(0)), Place::Before)
}

fn views(
    id: Uuid,
    action: BulkAction,
    progress: &Progress,
    chosen: Option<MemberState>,
) -> Vec<(String, String, bool)> {
    let all = (format!("All {}", grouped(progress.members())), address(id, None, None), chosen.is_none());
    let some = MemberState::ALL.iter().filter(|state| progress.of(**state) > 0 || chosen == Some(**state));
    let some = some.map(|state| {
        let became = Became { action, state: *state };
        let words = format!("{} {}", became.word(), grouped(progress.of(*state)));
        (words, address(id, Some(*state), None), chosen == Some(*state))
    });
    std::iter::once(all).chain(some).collect()
}

fn address(id: Uuid, view: Option<MemberState>, place: Option<(&'static str, i64)>) -> String {
    let mut pairs = Vec::new();
    pairs.extend(view.map(|state| ("show", state.to_string())));
    pairs.extend(place.map(|(name, place)| (name, place.to_string())));
    list::address(&format!("{PATH}/{id}"), &pairs)
}

/// One page of the members that were found, and the ways to its neighbours.
fn turned(
    id: Uuid,
    view: Option<MemberState>,
    from: Place,
    mut found: Vec<MemberRow>,
) -> (Option<String>, Option<String>, Vec<MemberRow>) {
    let most = usize::try_from(LIMIT).unwrap_or(usize::MAX);
    let over = found.len() > most;
    let (has_back, has_more) = match from {
        Place::After(place) => (place > 0, over),
        Place::Before(_) => (over, true),
    };
    match from {
        Place::After(_) => found.truncate(most),
        Place::Before(_) if over => drop(found.remove(0)),
        Place::Before(_) => {}
    }
    let to = |name, row: Option<&MemberRow>| row.map(|row| address(id, view, Some((name, row.position))));
    let back = to("before", found.first()).filter(|_| has_back);
    let more = to("after", found.last()).filter(|_| has_more);
    (back, more, found)
}

async fn lines(
    web: &Web,
    tx: &mut Tx,
    action: BulkAction,
    found: Vec<MemberRow>,
    seen: Seen,
) -> Result<Vec<MemberLine>, Failure> {
    let ids: Vec<Uuid> = found.iter().map(|row| row.operation_id).collect();
    let mut values: HashMap<Uuid, Vec<SearchRow>> = HashMap::new();
    for value in operations::search_values(tx, &ids).await? {
        values.entry(value.operation_id).or_default().push(value);
    }
    let kinds: Vec<(Uuid, &str)> =
        found.iter().filter_map(|row| Some((row.operation_id, row.kind.as_deref()?))).collect();
    let masks = Mask::of_list(tx, web.engine.config(), &kinds).await?;
    let none = Mask::default();
    let line = |row: &MemberRow| {
        let mask = masks.get(&row.operation_id).unwrap_or(&none);
        let own = values.get(&row.operation_id).map_or(&[][..], Vec::as_slice);
        let kind = row.kind.clone().unwrap_or_else(|| "an operation that was forgotten".to_owned());
        let ids = list::ids(own, mask);
        // Whose values are not known may be quoted: then the state alone is shown.
        let answer = row.answer.as_deref().filter(|_| !mask.is_blind());
        MemberLine {
            href: format!("/dead-letters/{}", row.dead_letter_id),
            place: format!("#{}", grouped(usize::try_from(row.position).unwrap_or(0))),
            ids: if ids.is_empty() { kind } else { format!("{kind} \u{b7} {ids}") },
            became: Became { action, state: row.state },
            answer: answer.map(|text| Long::line(mask.text(text))),
            at: row.at.map(|at| When::at(at, seen)),
        }
    };
    Ok(found.iter().map(line).collect())
}
