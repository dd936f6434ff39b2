//! Destinations of every class, which keep their contracts and nothing more, and remember what they
//! really did.

use std::collections::BTreeMap;
use std::time::Duration;

use dead_letter_office::domain::attempt::StoredRequest;
use dead_letter_office::domain::classify::{Answer, Event, Symptom};
use dead_letter_office::domain::time::Timestamp;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Value, json};

/// What becomes of one request on its way there and back.
#[derive(Clone, Copy, Debug)]
pub(super) enum Plan {
    /// It is done, and the answer arrives.
    Ok,
    /// It never leaves.
    Unsent(Symptom),
    /// Its answer is lost; what it asked for may have been done.
    Lost { symptom: Symptom, effect: bool },
    /// It is answered with this.
    Says { status: u16, effect: bool, wait: Option<u64> },
    /// It is done, and the answer's end is lost.
    CutBody,
    /// Its node stands still for a while.
    Freezes(Where),
    /// Its node is killed.
    Crashes(Where),
}

/// Where on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// Before the sender looks whether it may still begin.
    BeforeLooking,
    /// After that look, before the request arrives.
    BeforeArrival,
    /// After it arrived.
    AfterArrival,
}

const LOST: [Symptom; 5] =
    [Symptom::Closed, Symptom::TimedOut, Symptom::StreamReset, Symptom::Unparseable, Symptom::TlsAlert];
const UNSENT: [Symptom; 4] = [Symptom::Dns, Symptom::Connect, Symptom::TlsCut, Symptom::NeverWritten];
/// Errors that say nothing of whether it was done.
const UNCLEAR: [u16; 7] = [408, 409, 500, 502, 503, 504, 522];
/// Refusals, which never follow an effect of the same request.
const REFUSED: [u16; 7] = [401, 404, 410, 421, 422, 423, 307];
const PLACES: [Where; 3] = [Where::BeforeLooking, Where::BeforeArrival, Where::AfterArrival];

impl Plan {
    /// Trouble of some kind.
    pub(super) fn drawn(rng: &mut StdRng, question: bool) -> Self {
        let effect = rng.random_bool(0.5);
        match rng.random_range(0..16) {
            0..4 => Self::Lost { symptom: one_of(rng, &LOST), effect },
            4 => Self::Unsent(one_of(rng, &UNSENT)),
            5..8 => Self::Says {
                status: one_of(rng, &UNCLEAR),
                effect,
                wait: rng.random_bool(0.3).then(|| rng.random_range(1..120)),
            },
            8 => Self::Says { status: 429, effect: false, wait: Some(rng.random_range(1..3_000)) },
            9 => Self::Says { status: one_of(rng, &REFUSED), effect: false, wait: None },
            10 if !question => Self::CutBody,
            11..13 => Self::Freezes(one_of(rng, &PLACES)),
            13..15 => Self::Crashes(one_of(rng, &PLACES)),
            _ => Self::Says { status: 202, effect: true, wait: None },
        }
    }
}

pub(super) fn one_of<T: Copy>(rng: &mut StdRng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

/// Something that really happened.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) destination: String,
    /// The key of the operation that it was asked for.
    pub(super) order: String,
    pub(super) step: String,
    /// It was held up so long on its way that no promise covers it.
    pub(super) late: bool,
    /// What the destination was told to call it.
    reference: String,
    /// From when a question finds it.
    shows_at: Timestamp,
    id: String,
}

/// All destinations of a life.
#[derive(Default)]
pub(super) struct Destinations {
    pub(super) effects: Vec<Effect>,
    /// By destination and key: when it first did what was asked, and the id.
    keys: BTreeMap<(String, String), (Timestamp, String)>,
}

impl Destinations {
    /// Does what a request asks for, where the contract says that it does, and answers.
    pub(super) fn takes(
        &mut self,
        destination: &str,
        request: &StoredRequest,
        now: Timestamp,
        late: bool,
        rng: &mut StdRng,
    ) -> Answer {
        if request.method == "GET" {
            return self.answers(destination, request, now);
        }
        let body: Value = serde_json::from_str(request.body.as_deref().unwrap()).unwrap();
        let text = |name: &str| body[name].as_str().unwrap().to_owned();
        let reference = text("ref");
        let key = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"));
        let seen = key.map(|(_, key)| (destination.to_owned(), key.clone()));
        if let Some(known) = seen.as_ref().and_then(|seen| self.keys.get(seen))
            && now < known.0.plus(window(destination))
        {
            return answer(200, &json!({ "id": known.1 }));
        }
        let id = format!("{destination}-{}", self.effects.len());
        if let Some(seen) = seen {
            self.keys.insert(seen, (now, id.clone()));
        }
        let lag = Duration::from_secs(rng.random_range(0..=120));
        self.effects.push(Effect {
            destination: destination.to_owned(),
            order: text("order"),
            step: text("step"),
            late,
            reference,
            shows_at: now.plus(lag),
            id: id.clone(),
        });
        answer(201, &json!({ "id": id }))
    }

    /// Whether it has anything under the reference that a question names.
    fn answers(&self, destination: &str, question: &StoredRequest, now: Timestamp) -> Answer {
        let things: Vec<Value> = self
            .effects
            .iter()
            .filter(|effect| effect.destination == destination && effect.shows_at <= now)
            .filter(|effect| question.url.ends_with(&format!("ref={}", effect.reference)))
            .map(|effect| json!({ "id": effect.id }))
            .collect();
        answer(200, &json!({ "things": things }))
    }
}

impl Effect {
    /// For the chronicle.
    pub(super) fn line(&self) -> String {
        let late = if self.late { ", late" } else { "" };
        format!(
            "{} for {} {}, shown from {} on under {}{late}",
            self.id, self.order, self.step, self.shows_at, self.reference
        )
    }
}

/// How long a key is remembered: what the configuration says.
fn window(destination: &str) -> Duration {
    match destination {
        "keyed" => Duration::from_hours(2),
        _ => Duration::from_mins(5),
    }
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer { status, headers: Vec::new(), body: body.to_string().into(), complete: true }
}

/// An answer that tells nothing but its status.
pub(super) fn bare(status: u16, wait: Option<u64>) -> Event {
    let headers = wait.map(|seconds| ("retry-after".to_owned(), seconds.to_string())).into_iter().collect();
    Event::Answered(Answer { headers, ..answer(status, &json!({ "message": "no" })) })
}
