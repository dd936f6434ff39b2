//! The small forms on a dead letter's own page: who has it, until when it may wait, what is to be
//! known of it, and opening it again. None of them sends anything.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use time::macros::{format_description, time};
use time::{PrimitiveDateTime, Time, Weekday};
use uuid::Uuid;

use super::{case, dead_letter};
use crate::domain::actor::Right;
use crate::domain::time::Timestamp;
use crate::domain::zone::Zone;
use crate::engine::actions::{ActionError, Request};
use crate::engine::handling::{self, MAX_SNOOZE};
use crate::engine::thread::Thread;
use crate::store::dead_letters::DeadLetterRow;
use crate::store::{Tx, accounts};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::labels;
use crate::web::view::{Button, Field, When};

/// What a dead letter's page says and offers of its handling.
#[derive(Clone, Debug, Default)]
pub struct Handling {
    /// It waits for somebody, so that who has it is worth a line.
    pub live: bool,
    /// Who has it.
    pub assignee: Option<String>,
    /// "Assign to me", where it is not mine: acts at once.
    pub mine: Option<Button>,
    /// Out of sight until then; absent when it is awake.
    pub snoozed: Option<Snoozed>,
    /// To whom it can be handed.
    pub assign: Option<Assign>,
    /// How long it can be put off.
    pub snooze: Option<Snooze>,
    /// Something to write down.
    pub note: Option<Form>,
    /// Why it has to be looked at again.
    pub reopen: Option<Form>,
    /// What the reader may not do, or what cannot be done.
    pub locked: Vec<Button>,
}

impl Handling {
    /// There is something to press, or to say why not.
    pub fn any(&self) -> bool {
        self.note.is_some() || !self.locked.is_empty()
    }
}

/// Until when a dead letter is out of sight.
#[derive(Clone, Debug)]
pub struct Snoozed {
    /// It comes back then.
    pub until: When,
    /// Who put it off.
    pub by: Option<String>,
    /// Brings it back at once.
    pub wake: Option<Button>,
}

/// A form with one field.
#[derive(Clone, Debug, Default)]
pub struct Form {
    /// Where it goes.
    pub action: String,
    /// One click is one act.
    pub action_id: String,
    /// What was typed, and what is wrong with it.
    pub field: Field,
}

/// To whom a dead letter can be handed.
#[derive(Clone, Debug)]
pub struct Assign {
    /// The form.
    pub form: Form,
    /// Name, and whether they have it now.
    pub people: Vec<(String, bool)>,
}

/// How long a dead letter can be put off.
#[derive(Clone, Debug)]
pub struct Snooze {
    /// The form with a moment of one's own.
    pub form: Form,
    /// Sent, and in words.
    pub offers: Vec<(String, String)>,
    /// The earliest moment that the field takes, as browsers write it.
    pub earliest: String,
    /// The latest.
    pub latest: String,
    /// In whose clock these are read: "Europe/Berlin".
    pub zone: &'static str,
}

/// Which of the forms was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Assign,
    Snooze,
    Note,
    Reopen,
}

impl Act {
    fn path(self) -> &'static str {
        match self {
            Self::Assign => "assign",
            Self::Snooze => "snooze",
            Self::Note => "note",
            Self::Reopen => "reopen",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Assign => "Assign",
            Self::Snooze => "Snooze",
            Self::Note => "Note",
            Self::Reopen => "Open it again\u{2026}",
        }
    }
}

/// A form that was sent and could not be taken.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    act: Act,
    action_id: String,
    field: Field,
}

/// What is offered to somebody; `sent` is what they just sent in vain.
pub(super) async fn load(
    web: &Web,
    tx: &mut Tx,
    who: &Signed,
    thread: &Thread,
    letter: &DeadLetterRow,
    sent: Option<&Sent>,
) -> Result<Handling, Failure> {
    let now = web.engine.ambient().now();
    let live = letter.closed_at.is_none();
    let path = |act: Act| format!("/dead-letters/{}/{}", letter.id, act.path());
    let form = |act: Act| {
        let sent = sent.filter(|sent| sent.act == act);
        Form {
            action: path(act),
            action_id: sent.map_or_else(|| case::action_id(web, None), |sent| sent.action_id.clone()),
            field: sent.map(|sent| sent.field.clone()).unwrap_or_default(),
        }
    };
    let at_once = |act: Act, words: &str, name: &'static str, value: &str| {
        let fields = vec![
            ("csrf", who.csrf.clone()),
            ("action_id", case::action_id(web, None)),
            (name, value.to_owned()),
        ];
        Button::act(words, path(act), fields)
    };
    let may = who.role.may(Right::Resolve);
    let asleep = letter.snoozed_until.filter(|until| live && *until > now);
    let snoozed = asleep.map(|until| Snoozed {
        until: When::at(until, who.seen(now)),
        by: put_off_by(thread, letter),
        wake: may.then(|| at_once(Act::Snooze, "Wake up now", "until", "now")),
    });
    let handling = Handling { live, assignee: letter.assignee.clone(), snoozed, ..Handling::default() };
    if !may {
        let needs = labels::lacks(Right::Resolve, &who.role);
        let acts = if live { vec![Act::Assign, Act::Snooze, Act::Note] } else { vec![Act::Note] };
        let locked = acts.into_iter().map(|act| Button::locked(act.words(), needs.clone())).collect();
        return Ok(Handling { locked, ..handling });
    }
    let note = Some(form(Act::Note));
    if !live {
        // What a replay confirmed or a correction replaced, nobody closed by hand.
        if letter.resolution.is_none() {
            return Ok(Handling { note, ..handling });
        }
        let why = handling::stays_closed(tx, thread, letter).await?;
        let locked = why.map(|why| Button::locked(Act::Reopen.words(), sentence(&why)));
        let reopen = locked.is_none().then(|| form(Act::Reopen));
        return Ok(Handling { note, reopen, locked: locked.into_iter().collect(), ..handling });
    }
    let holds = |name: &str| letter.assignee.as_deref() == Some(name);
    let roles = &web.engine.config().auth.roles;
    let people = accounts::users(tx).await?.into_iter();
    let people = people.filter(|user| user.disabled_at.is_none() && roles.of(&user.role).may(Right::Resolve));
    Ok(Handling {
        mine: (!holds(&who.user.name)).then(|| at_once(Act::Assign, "Assign to me", "to", &who.user.name)),
        assign: Some(Assign {
            form: form(Act::Assign),
            people: people.map(|user| (user.name.clone(), holds(&user.name))).collect(),
        }),
        snooze: Some(Snooze {
            form: form(Act::Snooze),
            offers: offers(now, who.zone()),
            earliest: local(now, who.zone()),
            latest: local(now.plus(MAX_SNOOZE), who.zone()),
            zone: who.zone().name(),
        }),
        note,
        ..handling
    })
}

/// Who put it off last.
fn put_off_by(thread: &Thread, letter: &DeadLetterRow) -> Option<String> {
    let mut acts = thread.audit.iter().rev();
    let last = acts.find(|row| row.action == "snooze" && row.dead_letter_id == Some(letter.id))?;
    Some(last.actor.clone())
}

/// When it may come back, by the clock in a zone: an hour, this evening, tomorrow, next Monday.
fn offers(now: Timestamp, zone: Zone) -> Vec<(String, String)> {
    let today = zone.clock(now);
    let at = |days: u8, time: Time| {
        written(PrimitiveDateTime::new(today.date() + time::Duration::days(days.into()), time))
    };
    let mut offers = vec![("1h".to_owned(), "1 hour".to_owned())];
    if today.hour() < 17 {
        offers.push((at(0, time!(18:00)), "This evening, 18:00".to_owned()));
    }
    offers.push((at(1, time!(9:00)), "Tomorrow, 9:00".to_owned()));
    let to_monday = 7 - today.weekday().number_days_from_monday();
    if today.weekday() != Weekday::Sunday {
        offers.push((at(to_monday, time!(9:00)), "Next Monday, 9:00".to_owned()));
    }
    offers
}

/// As a browser's field for a day and a time writes them: "2026-11-30T09:00".
fn written(wall: PrimitiveDateTime) -> String {
    wall.format(format_description!("[year]-[month]-[day]T[hour]:[minute]")).unwrap_or_default()
}

fn local(at: Timestamp, zone: Zone) -> String {
    let clock = zone.clock(at);
    written(PrimitiveDateTime::new(clock.date(), clock.time()))
}

/// The moment that such a field means in a zone; with or without seconds, as browsers please.
fn meant(text: &str, zone: Zone) -> Option<Timestamp> {
    let wall = Timestamp::parse(&format!("{text}Z")).or(Timestamp::parse(&format!("{text}:00Z")))?.utc();
    Some(zone.at(PrimitiveDateTime::new(wall.date(), wall.time())))
}

/// The routes of the forms.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/dead-letters/{id}/assign", post(assign))
        .route("/dead-letters/{id}/snooze", post(snooze))
        .route("/dead-letters/{id}/note", post(note))
        .route("/dead-letters/{id}/reopen", post(reopen))
}

async fn assign(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let to = posted.fields.get("to").to_owned();
    let given = posted.fields.ticked("to");
    let form = Taken::new(&web, posted, &id, Act::Assign, Field::of(to.clone()))?;
    if !given {
        return form.refused(&web, "Say who has it from now on.").await;
    }
    let name = (!to.is_empty()).then_some(to.as_str());
    let done = handling::assign(web.engine.gate(), form.letter, name, &form.request()).await;
    let said = match name {
        Some(name) if name == form.who.user.name => "It is yours now.".to_owned(),
        Some(name) => format!("{name} has it now."),
        None => "Nobody has it now.".to_owned(),
    };
    form.answer(&web, done, said).await
}

async fn snooze(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let zone = posted.who.zone();
    let asked = posted.fields.get("until").to_owned();
    let form = Taken::new(&web, posted, &id, Act::Snooze, Field::of(asked.clone()))?;
    let gate = web.engine.gate();
    if asked == "1h" {
        let done = handling::snooze_for(gate, form.letter, Duration::from_hours(1), &form.request()).await;
        return form
            .answer(&web, done, "Snoozed for an hour. Then it comes back by itself.".to_owned())
            .await;
    }
    let until = match asked.as_str() {
        "now" => None,
        text => match meant(text, zone) {
            Some(at) => Some(at),
            None => return form.refused(&web, "Say until when: a day and a time.").await,
        },
    };
    let done = handling::snooze(gate, form.letter, until, &form.request()).await;
    let said = match until {
        Some(at) => format!("Snoozed until {}. Then it comes back by itself.", zone.moment(at)),
        None => "It is awake again.".to_owned(),
    };
    form.answer(&web, done, said).await
}

async fn note(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let text = posted.fields.lines("note");
    let form = Taken::new(&web, posted, &id, Act::Note, Field::of(text.clone()))?;
    let done = handling::note(web.engine.gate(), form.letter, &text, &form.request()).await;
    form.answer(&web, done, "Your note stands in the history below.".to_owned()).await
}

async fn reopen(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let reason = case::reason(&posted.fields);
    let form = Taken::new(&web, posted, &id, Act::Reopen, Field::of(reason.value))?;
    if let Some(error) = reason.error {
        return form.refused(&web, &error).await;
    }
    let request = Request { reason: &form.field.value, ..form.request() };
    match handling::reopen(web.engine.gate(), form.letter, &request).await {
        Ok(new) => {
            form.who.flash(true, "Opened again, as a new dead letter. Nothing was sent.").await?;
            Ok(Redirect::to(&format!("/dead-letters/{new}")).into_response())
        }
        Err(error) => form.answer(&web, Err(error), String::new()).await,
    }
}

/// A form that was sent by somebody who may.
struct Taken {
    who: Signed,
    actor: crate::domain::actor::Actor,
    letter: Uuid,
    act: Act,
    action_id: String,
    field: Field,
}

impl Taken {
    fn new(web: &Web, posted: Posted, id: &str, act: Act, field: Field) -> Result<Self, Failure> {
        let Posted { who, fields } = posted;
        who.require(Right::Resolve)?;
        let letter: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
        let action_id = case::action_id(web, Some(&fields));
        Ok(Self { actor: who.actor(), who, letter, act, action_id, field })
    }

    fn request(&self) -> Request<'_> {
        Request { actor: &self.actor, action_id: &self.action_id, reason: "", origin: &self.who.origin }
    }

    /// Back to the page with what was said, or with what is wrong beside the form.
    async fn answer(
        self,
        web: &Web,
        done: Result<(), ActionError>,
        said: String,
    ) -> Result<Response, Failure> {
        match done {
            Ok(()) => {
                self.who.flash(true, said).await?;
                Ok(Redirect::to(&format!("/dead-letters/{}", self.letter)).into_response())
            }
            Err(ActionError::Invalid(why)) => self.refused(web, &sentence(&why)).await,
            Err(error) => Err(error.into()),
        }
    }

    async fn refused(self, web: &Web, why: &str) -> Result<Response, Failure> {
        let field = Field::wrong(self.field.value, why);
        let sent = Sent { act: self.act, action_id: self.action_id, field };
        dead_letter::page(web, &self.who, self.letter, None, StatusCode::UNPROCESSABLE_ENTITY, Some(&sent))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered_in(zone: &str, now: &str) -> Vec<(String, String)> {
        offers(Timestamp::parse(now).unwrap(), Zone::named(zone).unwrap())
    }

    fn offered(now: &str) -> Vec<(String, String)> {
        offered_in("UTC", now)
    }

    #[test]
    fn what_is_offered_lies_ahead_and_each_moment_once() {
        let pair = |value: &str, words: &str| (value.to_owned(), words.to_owned());
        // A Wednesday.
        let wanted = [
            pair("1h", "1 hour"),
            pair("2026-11-25T18:00", "This evening, 18:00"),
            pair("2026-11-26T09:00", "Tomorrow, 9:00"),
            pair("2026-11-30T09:00", "Next Monday, 9:00"),
        ];
        assert_eq!(offered("2026-11-25T09:05:00Z"), wanted);
        // A Sunday evening: tomorrow is Monday.
        let wanted = [pair("1h", "1 hour"), pair("2026-11-30T09:00", "Tomorrow, 9:00")];
        assert_eq!(offered("2026-11-29T17:00:00Z"), wanted);
        // A Monday: the next one is in a week.
        assert_eq!(offered("2026-11-30T23:59:59Z")[2], pair("2026-12-07T09:00", "Next Monday, 9:00"));
        // The same moment where it is Monday already, and where it is Sunday noon.
        let tomorrow = |zone| offered_in(zone, "2026-11-29T17:00:00Z")[1].clone();
        assert_eq!(tomorrow("Asia/Tokyo"), pair("2026-11-30T18:00", "This evening, 18:00"));
        assert_eq!(tomorrow("America/New_York"), pair("2026-11-29T18:00", "This evening, 18:00"));
    }
}
