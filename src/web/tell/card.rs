//! The card "what the destination knows", and the buttons whose words follow it.

use uuid::Uuid;

use super::{Tale, list};
use crate::domain::actor::{Right, Standing};
use crate::domain::contract::{Class, Contract};
use crate::domain::dead_letter::{DeadLetterStatus, NextAction, Resolution};
use crate::domain::operation::StepState;
use crate::domain::verdict::KnownResult;
use crate::domain::words::{self, Settles};
use crate::engine::thread::Knowledge as Learned;
use crate::store::dead_letters::DeadLetterRow;
use crate::store::operations::StepRow;
use crate::web::known::{Knowledge, Known};
use crate::web::labels;
use crate::web::view::{Button, Reference, When, coarse};

/// What the destination knows of the step that is under way or failed.
pub fn knowledge(tale: &Tale<'_>) -> Knowledge {
    knowledge_of(tale, tale.thread.current_step())
}

/// What the destination knows of a step: an earlier episode may be about an earlier one.
pub fn knowledge_of(tale: &Tale<'_>, step: Option<&StepRow>) -> Knowledge {
    let destination =
        step.map_or_else(|| "the destination".to_owned(), |step| words::destination_name(&step.destination));
    let (state, result) = match step.map_or(Learned::NeverReached, |step| tale.thread.knowledge_of(step)) {
        Learned::DoneThere(result) => (Known::DoneThere, Some(result)),
        Learned::Recorded(result) => (Known::Recorded, Some(result)),
        Learned::NotThere(result) => (Known::NotThere, Some(result)),
        Learned::CannotTell(result) => (Known::CannotTell, Some(result)),
        Learned::NeverReached => (Known::NeverReached, None),
    };
    let detail = match (&result, state) {
        (None, _) => match step {
            Some(step) if step.attempts > 0 => {
                format!("No attempt reached {destination}, so nothing can have happened there.")
            }
            _ => format!("Nothing was sent to {destination} so far."),
        },
        (Some(result), Known::CannotTell) => {
            format!("{} {}", tale.mask.text(&result.how), what_helps(tale, step, &destination))
        }
        (Some(result), _) => tale.mask.text(&result.how),
    };
    let reference = result.as_ref().and_then(|result| result.reference.as_deref());
    Knowledge {
        state,
        detail,
        reference: reference.map(|text| Reference::new(tale.mask.text(text), None)),
        learned: result.as_ref().map(|KnownResult { at, .. }| When::at(*at, tale.seen())),
        // How far a look-up may lag matters only while something is still unknown.
        lag: step
            .filter(|_| state == Known::CannotTell)
            .and_then(|step| tale.destination(&step.destination)?.contract.lookup.as_ref())
            .filter(|lookup| !lookup.max_lag.is_zero())
            .map(|lookup| format!("by up to {}", coarse(lookup.max_lag))),
        ask: None,
        destination,
    }
}

/// How doubt is resolved at this destination, now.
fn what_helps(tale: &Tale<'_>, step: Option<&StepRow>, destination: &str) -> String {
    match class(tale, step) {
        Some(Class::Keyed) => {
            format!("{destination} still recognises our key, so that a repeat cannot happen twice.")
        }
        Some(Class::Idempotent) => format!("Repeating it changes nothing at {destination}."),
        Some(Class::LookupOnly) => {
            format!("{destination} can be asked: what it answers is recorded, and decides what may be done.")
        }
        Some(Class::Neither) => format!(
            "{destination} neither recognises a repeat nor can be asked: find out by other means before anything \
             is sent again."
        ),
        None => format!("{destination} is no longer configured."),
    }
}

/// What its destination can do about a doubt of a step, now; absent for a step that is not there.
pub fn settles(tale: &Tale<'_>, step: Option<&StepRow>) -> Option<Settles> {
    let step = step?;
    let contract = tale.destination(&step.destination).map(|known| &known.contract);
    Some(tale.thread.settles(step, contract, tale.now))
}

/// What the destination's promise is worth now for a step.
pub fn class(tale: &Tale<'_>, step: Option<&StepRow>) -> Option<Class> {
    let step = step?;
    let contract: &Contract = &tale.destination(&step.destination)?.contract;
    let first = tale.thread.request(step.position, step.generation).map(|request| request.first_sent_at);
    Some(contract.class_at(first, tale.now))
}

/// The button that has the destination asked; absent where it cannot be. `fields` are what every
/// form of the page sends.
pub fn question(
    tale: &Tale<'_>,
    step: Option<&StepRow>,
    mut fields: Vec<(&'static str, String)>,
    letter: Option<Uuid>,
) -> Option<Button> {
    let step = step.filter(|step| step.attempts > 0)?;
    let destination = tale.destination(&step.destination)?;
    destination.question.as_ref()?;
    let words = format!("Ask {} now", words::destination_name(&step.destination));
    if !tale.role.may(Right::Replay) {
        return Some(Button::locked(words, labels::lacks(Right::Replay, tale.role)));
    }
    fields.extend(letter.map(|letter| ("letter", letter.to_string())));
    Some(Button::act(words, format!("/operations/{}/ask", tale.thread.operation.id), fields))
}

/// The way to send to a paused destination again.
pub fn resume(tale: &Tale<'_>, destination: &str) -> Button {
    let words = format!("Resume {}\u{2026}", words::destination_name(destination));
    if tale.role.may(Right::PauseDestination) {
        return Button::new(words, format!("/destinations/{destination}"));
    }
    Button::locked(words, labels::lacks(Right::PauseDestination, tale.role))
}

/// The bar of actions, the safest first, and those under "More". `paused` says that nothing is sent
/// to its destination before somebody resumes it.
pub fn buttons(
    tale: &Tale<'_>,
    letter: &DeadLetterRow,
    card: &Knowledge,
    paused: bool,
) -> (Vec<Button>, Vec<Button>) {
    if letter.status != DeadLetterStatus::Open {
        return (Vec::new(), Vec::new());
    }
    let step = tale.step(letter.position);
    let doubt = step.is_some_and(|step| step.state == StepState::Uncertain);
    let reference = card.reference.as_ref().map(|reference| reference.text.as_str());
    let choice = Choice {
        state: card.state,
        doubt,
        settles: settles(tale, step).unwrap_or(Settles::OtherMeans),
        data: letter.next_action == NextAction::FixData,
    };
    let place = format!("/dead-letters/{}", letter.id);
    let button = |act: &Act| act.button(&place, &card.destination, reference, tale.role);
    let (acts, more) = choice.acts();
    let mut bar: Vec<Button> = acts.iter().map(button).collect();
    if let Some(ask) = &card.ask {
        // Where nothing may be sent before it is known whether it happened, finding out comes first.
        let first = choice.settles == Settles::Ask && choice.state == Known::CannotTell;
        let record = acts.iter().position(|act| matches!(act, Act::Record { .. })).unwrap_or_default();
        bar.insert(if first { 0 } else { record.max(1) }, ask.clone());
    }
    let sends = |act: &Act| matches!(act, Act::Replay { .. } | Act::Repeat { .. });
    if let Some(at) = acts.iter().position(sends).filter(|_| paused) {
        bar.insert(at, resume(tale, &letter.destination));
    }
    (bar, more.iter().map(button).collect())
}

/// What decides which actions are offered, and in which order.
#[derive(Clone, Copy, Debug)]
struct Choice {
    state: Known,
    /// Something that was sent is unaccounted for.
    doubt: bool,
    settles: Settles,
    /// The data has to change before a send can help.
    data: bool,
}

/// An action on a dead letter, by what its button promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// A replay of what cannot have happened.
    Replay {
        seen: bool,
    },
    /// A replay that the destination recognises as a repeat.
    Repeat {
        recognised: bool,
    },
    /// The page that shows why a replay would be refused.
    See,
    /// The effect is there, or a person found it there.
    Record {
        known: bool,
    },
    /// Other data in its place.
    Correct,
    Resolve,
    Override,
}

impl Choice {
    fn acts(self) -> (Vec<Act>, Vec<Act>) {
        let safe = match self.settles {
            Settles::SameKey => Some(Act::Repeat { recognised: true }),
            Settles::Repeat => Some(Act::Repeat { recognised: false }),
            Settles::Record | Settles::Ask | Settles::OtherMeans => None,
        };
        let found = Act::Record { known: false };
        let replay = match self.state {
            Known::NotThere if !self.doubt => Some(Act::Replay { seen: true }),
            Known::NeverReached if !self.doubt => Some(Act::Replay { seen: false }),
            _ => None,
        };
        match (self.state, replay, safe) {
            (state, ..) if state.is_done() => {
                (vec![Act::Record { known: true }, Act::Resolve], vec![Act::See, Act::Correct, Act::Override])
            }
            // What was refused for its data is refused again: the correction comes first.
            (_, Some(replay), _) if self.data => {
                (vec![Act::Correct, replay, found, Act::Resolve], vec![Act::Override])
            }
            (_, Some(replay), _) => (vec![replay, found, Act::Correct, Act::Resolve], vec![Act::Override]),
            (_, None, Some(repeat)) => (vec![repeat, found, Act::Resolve], vec![Act::Correct, Act::Override]),
            (_, None, None) => (vec![found, Act::Resolve], vec![Act::See, Act::Correct, Act::Override]),
        }
    }
}

impl Act {
    fn right(self) -> Right {
        match self {
            Self::Replay { .. } | Self::Repeat { .. } => Right::Replay,
            // A form that shows the checks and can refuse: whoever looks may look at it.
            Self::See => Right::View,
            Self::Record { .. } | Self::Resolve => Right::Resolve,
            Self::Correct => Right::Correct,
            Self::Override => Right::Override,
        }
    }

    fn words(self, destination: &str, reference: Option<&str>) -> String {
        match (self, reference) {
            (Self::Replay { seen: false }, _) => format!("Replay: {destination} never saw it"),
            (Self::Replay { seen: true }, _) => format!("Replay: {destination} did not do it"),
            (Self::Repeat { recognised: true }, _) => {
                format!("Replay with the same key: {destination} recognises it")
            }
            (Self::Repeat { recognised: false }, _) => "Replay: repeating it is harmless".to_owned(),
            (Self::See, _) => "See what a replay would meet".to_owned(),
            (Self::Record { known: true }, Some(reference)) => format!("Record as completed ({reference})"),
            (Self::Record { known: true }, None) => "Record as completed".to_owned(),
            (Self::Record { known: false }, _) => format!("Found at {destination}: record as completed"),
            (Self::Correct, _) => "Correct\u{2026}".to_owned(),
            (Self::Resolve, _) => "Resolve\u{2026}".to_owned(),
            (Self::Override, _) => "Send again anyway\u{2026}".to_owned(),
        }
    }

    fn button(self, place: &str, destination: &str, reference: Option<&str>, role: &Standing) -> Button {
        let words = self.words(destination, reference);
        if !role.may(self.right()) {
            return Button::locked(words, labels::lacks(self.right(), role));
        }
        let form = match self {
            Self::Replay { .. } | Self::Repeat { .. } | Self::See => "replay".to_owned(),
            Self::Resolve => "resolve".to_owned(),
            Self::Correct => "correct".to_owned(),
            Self::Override => "override".to_owned(),
            Self::Record { .. } => {
                let mut pairs = vec![("resolution", Resolution::CompletedAtDestination.to_string())];
                if let (Self::Record { known: true }, Some(reference)) = (self, reference) {
                    pairs.push(("reference", reference.to_owned()));
                }
                list::address("resolve", &pairs)
            }
        };
        Button::new(words, format!("{place}/{form}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::actor::Role;

    fn acts(state: Known, doubt: bool, class: Class) -> (Vec<Act>, Vec<Act>) {
        Choice { state, doubt, settles: Settles::of(state.is_done(), Some(class)), data: false }.acts()
    }

    fn words(state: Known, doubt: bool, class: Class) -> Vec<String> {
        let (bar, more) = acts(state, doubt, class);
        bar.iter().chain(&more).map(|act| act.words("the CRM", Some("TCK-99"))).collect()
    }

    #[test]
    fn the_first_button_follows_what_is_known() {
        let first = |state, doubt, class| words(state, doubt, class).remove(0);
        for class in Class::ALL.iter().copied() {
            assert_eq!(first(Known::DoneThere, true, class), "Record as completed (TCK-99)");
            assert_eq!(first(Known::NeverReached, false, class), "Replay: the CRM never saw it");
            assert_eq!(first(Known::NotThere, false, class), "Replay: the CRM did not do it");
        }
        let doubtful = |class| first(Known::CannotTell, true, class);
        assert_eq!(doubtful(Class::Keyed), "Replay with the same key: the CRM recognises it");
        assert_eq!(doubtful(Class::Idempotent), "Replay: repeating it is harmless");
        assert_eq!(doubtful(Class::LookupOnly), "Found at the CRM: record as completed");
        assert_eq!(doubtful(Class::Neither), "Found at the CRM: record as completed");
    }

    #[test]
    fn sending_anyway_is_never_the_first_thing() {
        for state in [Known::DoneThere, Known::NotThere, Known::CannotTell, Known::NeverReached] {
            for doubt in [false, true] {
                for class in Class::ALL.iter().copied() {
                    let (bar, more) = acts(state, doubt, class);
                    assert!(!bar.contains(&Act::Override) && more.contains(&Act::Override));
                    let replays = |act: &Act| matches!(act, Act::Replay { .. });
                    assert!(!doubt || !bar.iter().any(replays), "{state:?} {class:?}");
                }
            }
        }
    }

    #[test]
    fn a_button_without_its_right_names_the_right() {
        let locked = Act::Override.button("/dead-letters/x", "the CRM", None, &Role::Viewer.into());
        assert!(locked.href.is_empty());
        assert_eq!(
            locked.needs.unwrap(),
            "Needs the right \u{201c}override\u{201d}, which approvers have. You are viewer."
        );
        let open = Act::Record { known: true }.button(
            "/dead-letters/x",
            "the CRM",
            Some("A&B #1"),
            &Role::Operator.into(),
        );
        assert_eq!(
            open.href,
            "/dead-letters/x/resolve?resolution=completed_at_destination&reference=A%26B+%231"
        );
    }
}
