use super::*;
use crate::domain::time::Timestamp;
use Certainty::{DefinitelyFailed as Failed, MayHaveCompleted as Maybe};
use NextAction as N;
use ParkReason as P;
use Symptom as S;

const FACTS: Facts<'static> = Facts {
    destination: "crm",
    step: "create_ticket",
    status: Some(500),
    timeout: Some(Duration::from_secs(10)),
    attempts: 5,
    retry_after: None,
    reference: None,
    error: None,
};

/// Facts that are all there, all missing, and hostile.
fn all_facts() -> [Facts<'static>; 3] {
    [
        Facts {
            retry_after: Some(Duration::from_hours(2)),
            reference: Some("TCK-99"),
            error: Some("422: the e-mail is not valid."),
            ..FACTS
        },
        Facts { destination: "Stripe", step: "refund", status: None, timeout: None, attempts: 0, ..FACTS },
        Facts {
            destination: "mail-gateway_2",
            step: "send_receipt\u{202e}\u{0}\n",
            error: Some("422"),
            attempts: 1,
            ..FACTS
        },
    ]
}

fn assert_readable(text: &str) {
    assert!(text.ends_with('.') && !text.ends_with(".."), "{text}");
    assert!(text.starts_with(|c: char| c.is_uppercase() || c == '\u{201c}'), "{text}");
    assert!(!text.contains(['_', '{', '}', '<', '>', '`', '\u{202e}', '\0', '\n']), "{text}");
    assert!(!text.contains("  ") && !text.contains(" .") && !text.contains("None"), "{text}");
    assert!(!text.contains("Some("), "{text}");
}

#[test]
fn every_dead_letter_has_a_readable_and_truthful_sentence() {
    for facts in all_facts() {
        for &why in ParkReason::ALL {
            for &symptom in Symptom::ALL {
                for &certainty in Certainty::ALL {
                    for &next in NextAction::ALL {
                        let text = dead_letter_sentence(why, symptom, certainty, next, None, &facts);
                        assert_readable(&text);
                        assert!(text.contains("Safest next step: "), "{text}");
                        if certainty == Certainty::MayHaveCompleted {
                            for claim in ["failed", "did not happen", "did not go out", "does not exist"] {
                                assert!(!text.contains(claim), "{text}");
                            }
                            assert!(text.contains(" may "), "{text}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn every_attempt_and_every_wait_has_a_readable_sentence() {
    for facts in all_facts() {
        for &symptom in Symptom::ALL {
            for &outcome in Outcome::ALL {
                let text = attempt_sentence(symptom, outcome, &facts);
                assert_readable(&text);
                if outcome == Outcome::Uncertain {
                    assert!(text.contains("may have happened"), "{text}");
                }
            }
            assert_readable(&next_wait_sentence(symptom, Duration::from_secs(12), &facts));
        }
    }
}

const SAID: Facts<'static> = Facts { error: Some("422 the e-mail is not valid"), ..FACTS };
const TOLD: Facts<'static> = Facts { retry_after: Some(Duration::from_hours(3)), ..FACTS };
const CHARGE: Facts<'static> = Facts { destination: "Stripe", step: "charge card", attempts: 3, ..FACTS };
const RECEIPT: Facts<'static> = Facts { destination: "mailer", step: "send-receipt", ..FACTS };

const COMMON: [(ParkReason, Symptom, Certainty, NextAction, Facts<'static>, &str); 13] = [
    (
        P::NoWayToKnow,
        S::TimedOut,
        Maybe,
        N::CheckDestination,
        FACTS,
        "The CRM took longer than 10 s to answer “create ticket”. The ticket may exist. \
             Safest next step: find out by other means whether it happened.",
    ),
    (
        P::LookupNeeded,
        S::Closed,
        Maybe,
        N::CheckDestination,
        RECEIPT,
        "Mailer closed the connection without an answer to “send receipt”. The receipt may have gone out. \
             Safest next step: ask Mailer.",
    ),
    (
        P::StillUncertain,
        S::ServerError,
        Maybe,
        N::CheckDestination,
        CHARGE,
        "Stripe answered “charge card” with an error of its own. \
             Sending it again under the same key did not clear it up. It may have happened. \
             Safest next step: find out by other means whether it happened.",
    ),
    (
        P::WindowClosed,
        S::Gateway,
        Maybe,
        N::CheckDestination,
        CHARGE,
        "A relay in front of Stripe had no good answer to “charge card”. \
             The time in which Stripe recognises a repeat is over. It may have happened. \
             Safest next step: find out by other means whether it happened.",
    ),
    (
        P::Refused,
        S::Rejected,
        Failed,
        N::FixData,
        SAID,
        "The CRM refused “create ticket” and said “the e-mail is not valid”. \
             The ticket does not exist there. Safest next step: correct the data and send the correction.",
    ),
    (
        P::Refused,
        S::Credential,
        Failed,
        N::FixPermission,
        FACTS,
        "The CRM did not accept our sign-in for “create ticket”. The ticket does not exist there. \
             Safest next step: have our access to the CRM put right, then replay it.",
    ),
    (
        P::Refused,
        S::Rejected,
        Maybe,
        N::CheckDestination,
        FACTS,
        "The CRM refused “create ticket”. An earlier attempt may have got through. The ticket may exist. \
             Safest next step: find out by other means whether it happened.",
    ),
    (
        P::KeyConflict,
        S::KeyConflict,
        Failed,
        N::Decide,
        CHARGE,
        "Stripe already knows the key of “charge card” with other data. It did not happen. \
             Safest next step: compare what was sent with what Stripe has, then decide.",
    ),
    (
        P::AttemptsUsed,
        S::Connect,
        Failed,
        N::Replay,
        CHARGE,
        "Stripe could not be reached for “charge card”. \
             It was tried 3 times, which is all that is allowed without a person. It did not happen. \
             Safest next step: replay it.",
    ),
    (
        P::TooOld,
        S::Dns,
        Failed,
        N::Replay,
        RECEIPT,
        "The network address of Mailer could not be found for “send receipt”. \
             The time for trying without a person is over. The receipt did not go out. \
             Safest next step: replay it.",
    ),
    (
        P::Corrected,
        S::Connect,
        Failed,
        N::Replay,
        CHARGE,
        "Stripe could not be reached for “charge card”. \
             A person corrected it before its next try. It did not happen. \
             Safest next step: replay it.",
    ),
    (
        P::WaitTooLong,
        S::Throttled,
        Failed,
        N::Wait,
        TOLD,
        "The CRM had too much to do for “create ticket” and asked us to come back in 3 h. \
             That is longer than we keep trying without a person. The ticket does not exist there. \
             Safest next step: wait 3 h, then replay it.",
    ),
    (
        P::Refused,
        S::Gone,
        Failed,
        N::Decide,
        FACTS,
        "The CRM no longer offers “create ticket”. The ticket does not exist there. \
             Safest next step: let somebody who knows the case decide.",
    ),
];

#[test]
fn the_twelve_most_common_dead_letters() {
    for (why, symptom, certainty, next, facts, wanted) in COMMON {
        assert_eq!(dead_letter_sentence(why, symptom, certainty, next, None, &facts), wanted);
    }
}

#[test]
fn in_doubt_the_next_step_is_what_the_destination_can_do_for_it() {
    let said = |settles, next| {
        let [_, said] =
            dead_letter_parts(P::StillUncertain, S::TimedOut, Maybe, next, Some(settles), &CHARGE);
        said.trim_start_matches("Safest next step: ").to_owned()
    };
    for (done, class, wanted) in [
        (false, Some(Class::Keyed), "replay it with the same key, which Stripe recognises."),
        (false, Some(Class::Idempotent), "replay it; repeating it is harmless."),
        (false, Some(Class::LookupOnly), "ask Stripe."),
        (false, Some(Class::Neither), "find out by other means whether it happened."),
        (false, None, "find out by other means whether it happened."),
        (true, Some(Class::LookupOnly), "record it as completed."),
    ] {
        assert_eq!(said(Settles::of(done, class), N::CheckDestination), wanted);
    }
    // What is not in doubt is not settled by asking.
    assert_eq!(said(Settles::Ask, N::Replay), "replay it.");
}

#[test]
fn attempts_and_waits_as_people_read_them() {
    let of = |symptom, outcome| attempt_sentence(symptom, outcome, &FACTS);
    assert_eq!(
        of(Symptom::TimedOut, Outcome::Uncertain),
        "The CRM took longer than 10 s to answer “create ticket”; it may have happened."
    );
    assert_eq!(of(Symptom::Done, Outcome::Done), "The CRM confirmed “create ticket”; it is done.");
    let named = Facts { reference: Some("TCK-99"), ..FACTS };
    assert_eq!(
        attempt_sentence(Symptom::Done, Outcome::Done, &named),
        "The CRM confirmed “create ticket”; it is done, as TCK-99."
    );
    assert_eq!(
        of(Symptom::Accepted, Outcome::Done),
        "The CRM took “create ticket” for processing; it counts as done."
    );
    let told = Facts { retry_after: Some(Duration::from_secs(30)), ..FACTS };
    assert_eq!(
        next_wait_sentence(Symptom::Throttled, Duration::from_secs(34), &told),
        "Next try in 34 s: the CRM asked for 30 s, and a little is added so that not everything returns at once."
    );
    assert_eq!(
        next_wait_sentence(Symptom::Connect, Duration::from_mins(4), &FACTS),
        "Next try in 4 min: drawn at random, up to a limit that grows with every attempt, so that the CRM is \
         not overrun."
    );
}

#[test]
fn foreign_text_cannot_break_a_sentence() {
    let long = "x".repeat(100_000);
    let text = dead_letter_sentence(
        ParkReason::Refused,
        Symptom::Rejected,
        Certainty::DefinitelyFailed,
        NextAction::FixData,
        None,
        &Facts { error: Some(&long), ..FACTS },
    );
    assert!(text.chars().count() < 400 && text.contains('\u{2026}'));
    let hostile = Facts { error: Some("a\u{202e}b\u{0}\u{1b}[31m\r\nc"), ..FACTS };
    let text = attempt_sentence(Symptom::Rejected, Outcome::Rejected, &hostile);
    assert!(text.contains("“ab [31m c”"), "{text}");
}

#[test]
fn names_as_people_write_them() {
    for (name, wanted) in [
        ("crm", "the CRM"),
        ("Stripe", "Stripe"),
        ("billing", "Billing"),
        ("mail-gateway_2", "Mail gateway 2"),
    ] {
        assert_eq!(destination_name(name), wanted);
    }
    assert_eq!(step_name("create_ticket"), "create ticket");
}

#[test]
fn labels_are_words_and_differ() {
    fn differ<T: Copy>(all: &[T], word: impl Fn(T) -> &'static str) {
        let words: std::collections::BTreeSet<&str> = all.iter().map(|&value| word(value)).collect();
        assert_eq!(words.len(), all.len(), "{words:?}");
        assert!(words.iter().all(|word| !word.is_empty() && !word.contains(['_', '{'])), "{words:?}");
    }
    differ(Symptom::ALL, title);
    differ(Certainty::ALL, |value| certainty(value).label);
    differ(Certainty::ALL, |value| certainty(value).icon);
    differ(Outcome::ALL, outcome);
    differ(ParkReason::ALL, park_reason);
    differ(NextAction::ALL, |value| next_action(value).label);
    differ(crate::domain::verdict::CheckName::ALL, check);
    differ(crate::domain::verdict::VerdictKind::ALL, verdict);
    differ(crate::domain::dead_letter::Resolution::ALL, |value| resolution(value).label);
    differ(crate::domain::dead_letter::DeadLetterStatus::ALL, dead_letter_status);
    differ(crate::domain::operation::OperationState::ALL, operation_state);
    differ(crate::domain::operation::StepState::ALL, step_state);
    differ(crate::domain::operation::Severity::ALL, |value| severity(value).label);
    differ(crate::domain::attempt::Cause::ALL, cause);
    differ(crate::domain::attempt::Waiver::ALL, |value| waiver(value).label);
    differ(crate::domain::actor::Role::ALL, |value| role(value).label);
    differ(crate::domain::actor::Scope::ALL, |value| scope(value).label);
    differ(crate::domain::actor::Right::ALL, right);
    differ(crate::domain::contract::Class::ALL, |value| class(value).label);
}

#[test]
fn spans_and_relative_times() {
    for (seconds, wanted) in [
        (0, "0 s"),
        (10, "10 s"),
        (60, "1 min"),
        (90, "90 s"),
        (240, "4 min"),
        (3600, "1 h"),
        (5400, "90 min"),
        (7200, "2 h"),
        (86_400, "24 h"),
        (172_800, "2 days"),
        (260_000, "3 days"),
    ] {
        assert_eq!(span(Duration::from_secs(seconds)), wanted);
    }
    assert_eq!(span(Duration::from_millis(250)), "250 ms");
    assert_eq!(span(Duration::from_micros(3)), "1 ms");
    let now = Timestamp::parse("2026-11-30T00:00:00Z").unwrap();
    assert_eq!(relative(now.minus(Duration::from_secs(250)), now), "4 min ago");
    assert_eq!(relative(now.plus(Duration::from_hours(2)), now), "in 2 h");
    assert_eq!(relative(now, now), "just now");
}
