//! Any answer of a destination under every contract: nothing that may have happened is ever sent
//! again where a repeat could be a second effect. The input is an HTTP message whose first line
//! holds the status, and `cut` where its end never came.
#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use dead_letter_office_fuzz::config::preset_names;
use dead_letter_office_fuzz::domain::attempt::Outcome;
use dead_letter_office_fuzz::domain::classify::{Action, Answer, Classified, Event, Symptom, classify};
use dead_letter_office_fuzz::domain::contract::{Class, Contract, KeyCarrier, KeyPromise, Lookup};
use dead_letter_office_fuzz::domain::dead_letter::{CauseFingerprint, Certainty};
use dead_letter_office_fuzz::domain::decide::{Next, Round, decide};
use dead_letter_office_fuzz::domain::retry::RetryPolicy;
use dead_letter_office_fuzz::domain::time::Timestamp;
use dead_letter_office_fuzz::{Message, read};
use libfuzzer_sys::fuzz_target;

const NOW: Timestamp = Timestamp::from_micros(1_796_000_000_000_000);

/// Every built-in contract, and the four classes without a rule of their own.
static CONTRACTS: LazyLock<Vec<(String, Contract)>> = LazyLock::new(|| {
    let tables: String = preset_names()
        .map(|name| {
            format!("[destinations.{name}]\nbase_url = \"https://{name}.example\"\npreset = \"{name}\"\n")
        })
        .collect();
    let config = read(&tables).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let presets = config.destinations.into_iter().map(|(name, place)| (name, place.contract));
    let timeout = Duration::from_secs(10);
    let plain = Contract { timeout, ..Contract::default() };
    let lookup = Lookup { path: "/t".into(), found: "/0".into(), reference: None, max_lag: Duration::ZERO };
    let key = |window| Some(KeyPromise { carrier: KeyCarrier::header("Idempotency-Key"), window });
    let day = Duration::from_secs(86_400);
    let plains = [
        ("neither", plain.clone()),
        ("closed", Contract { key: key(Duration::from_secs(60)), ..plain.clone() }),
        ("lookup_only", Contract { lookup: Some(lookup.clone()), ..plain.clone() }),
        ("keyed", Contract { key: key(day), ..plain.clone() }),
        ("keyed and lookup", Contract { key: key(day), lookup: Some(lookup), ..plain.clone() }),
        ("idempotent", Contract { naturally_idempotent: true, ..plain }),
    ];
    presets.chain(plains.map(|(name, contract)| (name.to_owned(), contract))).collect()
});

/// What holds of every meaning.
fn sound(name: &str, meaning: &Classified) {
    use Action as A;
    use Outcome as O;
    let fits = match meaning.outcome {
        O::Done => meaning.action == A::Complete,
        O::Uncertain => matches!(meaning.action, A::FindOut | A::Wait),
        O::KeyConflict => meaning.action == A::DeadLetter,
        O::Rejected | O::NotSent => {
            matches!(meaning.action, A::DeadLetter | A::Retry | A::RetrySlow | A::Wait)
        }
        O::Throttled => meaning.action == A::Wait,
        O::Running | O::Skipped => false,
    };
    assert!(fits, "{name}: {meaning:?}");
    assert!(meaning.reference.as_ref().is_none_or(|reference| !reference.is_empty()), "{name}: {meaning:?}");
}

/// What the general table says of a status, whatever else the answer holds.
fn by_the_table(answer: &Answer, meaning: &Classified) {
    match answer.status {
        200..=299 => assert_eq!(meaning.outcome, Outcome::Done),
        300..=399 => assert!(meaning.action == Action::DeadLetter && meaning.pause),
        501 | 505 | 511 => assert_eq!(meaning.outcome, Outcome::Rejected),
        408 | 409 | 424 | 500..=599 => assert_eq!(meaning.outcome, Outcome::Uncertain),
        0..=199 | 600.. => assert_eq!(meaning.outcome, Outcome::Uncertain),
        _ => {}
    }
}

/// Nothing that may have happened is sent again, unless the destination recognises a repeat.
fn no_second_effect(name: &str, contract: &Contract, meaning: &Classified, earlier: bool, first: Timestamp) {
    let policy = RetryPolicy::default();
    for (tries, doubts) in [(1, 1), (2, 3), (3, 4), (9, 9)] {
        let round = Round { since: first, tries, doubts, waits: 0, asks: 0 };
        for draw in [Duration::ZERO, Duration::from_secs(900)] {
            let next = decide(meaning, contract, first, earlier, round, &policy, NOW, |most| most.min(draw));
            let doubt = earlier || meaning.outcome == Outcome::Uncertain;
            let class = contract.class_at(Some(first), NOW);
            match next {
                Next::Retry { at } => {
                    if doubt {
                        assert!(
                            matches!(class, Class::Keyed | Class::Idempotent),
                            "{name}: {class}: {meaning:?}"
                        );
                    }
                    if doubt && class == Class::Keyed {
                        let until = contract.resend_until(first).expect("a window");
                        assert!(at < until, "{name}: {at} is after {until}: {meaning:?}");
                    }
                    assert!(
                        at >= NOW.plus(meaning.wait.unwrap_or_default()),
                        "{name}: too early: {meaning:?}"
                    );
                    assert!(tries < policy.attempts, "{name}: {meaning:?}");
                }
                Next::Park(parked) => {
                    assert_eq!(parked.certainty == Certainty::MayHaveCompleted, doubt, "{name}: {meaning:?}");
                }
                Next::LookUp { .. } => assert!(contract.lookup.is_some(), "{name}: {meaning:?}"),
                Next::Complete => assert_eq!(meaning.outcome, Outcome::Done, "{name}"),
                Next::PassOver(_) | Next::Leave => panic!("{name}: {next:?}"),
            }
        }
    }
}

fuzz_target!(|text: &str| {
    let message = Message::of(text);
    let mut words = message.first.split(' ');
    let answer = Answer {
        status: words.next().and_then(|word| word.parse().ok()).unwrap_or(200),
        headers: message
            .headers
            .iter()
            .map(|(name, value)| (name.to_lowercase(), (*value).to_owned()))
            .collect(),
        body: message.body.as_bytes().to_vec().into(),
        complete: words.next() != Some("cut"),
    };
    let event = Event::Answered(answer.clone());
    for (name, contract) in CONTRACTS.iter() {
        let meaning = classify(contract, &event, NOW);
        assert_eq!(classify(contract, &event, NOW), meaning);
        sound(name, &meaning);
        if contract.rules.is_empty() {
            by_the_table(&answer, &meaning);
        }
        for hours in [0, 1, 30] {
            let first = NOW.minus(Duration::from_secs(hours * 3600));
            no_second_effect(name, contract, &meaning, false, first);
            no_second_effect(name, contract, &meaning, true, first);
        }
    }
    let lost = Event::NoAnswer(Symptom::TimedOut, message.body.to_owned());
    for (name, contract) in CONTRACTS.iter() {
        let meaning = classify(contract, &lost, NOW);
        assert_eq!(meaning.outcome, Outcome::Uncertain, "{name}");
    }

    let cause = CauseFingerprint::of("crm", "create", Outcome::Rejected, message.body);
    assert_eq!(cause, CauseFingerprint::of("crm", "create", Outcome::Rejected, message.body));
    assert!(cause.id.len() == 16 && cause.text.chars().count() <= 200, "{cause:?}");
});
