use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::domain::classify::{Answer, Event, classify};
use crate::domain::contract::{KeyCarrier, KeyPromise, Lookup, Rule, RuleOutcome, StatusMatch};

const HOUR: Duration = Duration::from_hours(1);

fn start() -> Timestamp {
    Timestamp::from_micros(1_796_000_000_000_000)
}

fn contract(class: Class) -> Contract {
    let window = if class == Class::Keyed { HOUR } else { Duration::ZERO };
    Contract {
        key: Some(KeyPromise { carrier: KeyCarrier::header("Idempotency-Key"), window }),
        naturally_idempotent: class == Class::Idempotent,
        lookup: (class == Class::LookupOnly).then(lookup),
        rules: Vec::new(),
        timeout: Duration::from_secs(10),
    }
}

fn lookup() -> Lookup {
    Lookup { path: "/x".into(), found: "/0".into(), reference: None, max_lag: Duration::ZERO }
}

fn status(status: u16) -> Classified {
    told(status, None)
}

fn told(status: u16, wait: Option<u64>) -> Classified {
    let headers = wait.map(|seconds| ("retry-after".to_owned(), seconds.to_string())).into_iter().collect();
    let answer = Answer { status, headers, body: Bytes::new(), complete: true };
    classify(&Contract::default(), &Event::Answered(answer), start())
}

fn lost(symptom: Symptom) -> Classified {
    classify(&Contract::default(), &Event::NoAnswer(symptom, String::new()), start())
}

fn first(doubts: u32) -> Round {
    Round { since: start(), tries: 1, doubts, waits: 0, asks: 0 }
}

/// With the longest wait that may be drawn.
fn after(classified: &Classified, class: Class, doubt: bool, round: Round) -> Next {
    let policy = RetryPolicy::default();
    decide(classified, &contract(class), start(), doubt, round, &policy, start(), |most| most)
}

fn why(next: &Next) -> Option<ParkReason> {
    match next {
        Next::Park(parked) => Some(parked.why),
        _ => None,
    }
}

#[test]
fn an_uncertain_outcome_gets_what_the_class_allows() {
    let timeout = lost(Symptom::TimedOut);
    let again = Next::Retry { at: start().plus(Duration::from_secs(10)) };
    assert_eq!(after(&timeout, Class::Keyed, true, first(1)), again);
    assert_eq!(after(&timeout, Class::Keyed, true, first(3)), again);
    assert_eq!(why(&after(&timeout, Class::Keyed, true, first(4))), Some(ParkReason::StillUncertain));
    assert_eq!(after(&timeout, Class::Idempotent, true, first(4)), again);
    let asked = Next::LookUp { at: start().plus(Duration::from_secs(10)), task: Task::FindOut };
    assert_eq!(after(&timeout, Class::LookupOnly, true, first(1)), asked);
    assert_eq!(
        after(&timeout, Class::Neither, true, first(1)),
        Next::Park(Parked {
            why: ParkReason::NoWayToKnow,
            certainty: Certainty::MayHaveCompleted,
            next_action: NextAction::CheckDestination,
        })
    );
}

#[test]
fn a_keyed_destination_that_stays_uncertain_is_asked_where_it_can_be() {
    let contract = Contract { lookup: Some(lookup()), ..contract(Class::Keyed) };
    let policy = RetryPolicy::default();
    let next = decide(&lost(Symptom::TimedOut), &contract, start(), true, first(4), &policy, start(), |m| m);
    assert_eq!(next, Next::LookUp { at: start().plus(policy.first_delay), task: Task::FindOut });
}

#[test]
fn a_lost_result_is_fetched_and_never_sent_for() {
    let cut = Answer { status: 201, complete: false, ..Answer::default() };
    let classified = classify(&Contract::default(), &Event::Answered(cut), start());
    assert_eq!(after(&classified, Class::Keyed, false, first(0)), Next::Complete);
    let fetched = Next::LookUp { at: start(), task: Task::FetchResult };
    assert_eq!(after(&classified, Class::LookupOnly, false, first(0)), fetched);
}

#[test]
fn what_follows_each_finding() {
    use Finding as F;
    let minutes = |count| start().plus(Duration::from_mins(count));
    let after = |task, finding, resume_at, now: Timestamp, tries| {
        let asked = Asked { task, finding, counts_from: minutes(3), resume_at };
        let classified = Classified { outcome: Outcome::Uncertain, ..lost(Symptom::TimedOut) };
        let round = Round { since: start(), tries, doubts: 1, waits: 0, asks: 1 };
        after_lookup(asked, &classified, round, &RetryPolicy::default(), now, false, |most| most)
    };
    let ask = |at, task| Next::LookUp { at, task };
    for (task, finding, now, wanted) in [
        (Task::FindOut, F::Found, 1, Next::Complete),
        (Task::FindOut, F::Absent, 4, Next::Retry { at: minutes(4) }),
        // Not before an absence counts, and no later than that.
        (Task::FindOut, F::TooEarly, 1, ask(minutes(1).plus(Duration::from_secs(10)), Task::FindOut)),
        (Task::FindOut, F::Failed, 1, ask(minutes(1).plus(Duration::from_secs(10)), Task::FindOut)),
        (Task::FetchResult, F::Found, 1, Next::Complete),
        (Task::FetchResult, F::Absent, 1, ask(minutes(1).plus(Duration::from_secs(10)), Task::FetchResult)),
        (Task::FetchResult, F::Failed, 40, Next::Complete),
        (Task::Ask, F::Found, 1, Next::Complete),
        (Task::Ask, F::Absent, 4, Next::Leave),
        (Task::Ask, F::Failed, 1, Next::Leave),
    ] {
        assert_eq!(after(task, finding, None, minutes(now), 1), wanted, "{task} {finding}");
    }
    assert_eq!(
        why(&after(Task::FindOut, F::OtherPayload, None, minutes(1), 1)),
        Some(ParkReason::KeyConflict)
    );
    assert_eq!(why(&after(Task::FindOut, F::Absent, None, minutes(4), 5)), Some(ParkReason::AttemptsUsed));
    assert_eq!(why(&after(Task::FindOut, F::Absent, None, minutes(31), 1)), Some(ParkReason::TooOld));
    assert_eq!(why(&after(Task::FindOut, F::Failed, None, minutes(31), 1)), Some(ParkReason::LookupNeeded));
    let due = Some(minutes(9));
    assert_eq!(after(Task::Ask, F::Absent, due, minutes(4), 1), Next::Retry { at: minutes(9) });
    let near = minutes(3).minus(Duration::from_secs(1));
    assert_eq!(after(Task::FindOut, F::TooEarly, None, near, 1), ask(minutes(3), Task::FindOut));
}

#[test]
fn an_uncertain_outcome_is_in_doubt_whatever_the_caller_says() {
    let next = after(&lost(Symptom::TimedOut), Class::Neither, false, first(1));
    assert_eq!(why(&next), Some(ParkReason::NoWayToKnow));
}

#[test]
fn doubt_outlives_an_attempt_that_was_not_sent() {
    let next = after(&lost(Symptom::Connect), Class::Neither, true, first(0));
    assert_eq!(why(&next), Some(ParkReason::NoWayToKnow));
    let next = after(&status(422), Class::Keyed, true, first(1));
    let Next::Park(parked) = next else { panic!("{next:?}") };
    assert_eq!((parked.why, parked.certainty), (ParkReason::Refused, Certainty::MayHaveCompleted));
}

#[test]
fn a_window_that_closes_before_the_next_try_is_a_dead_letter() {
    let policy = RetryPolicy { max_age: HOUR * 48, ..RetryPolicy::default() };
    let decide_at = |classified: &Classified, now, doubt| {
        let round = Round { since: now, tries: 1, doubts: 1, waits: 0, asks: 0 };
        why(&decide(classified, &contract(Class::Keyed), start(), doubt, round, &policy, now, |most| most))
    };
    let timeout = lost(Symptom::TimedOut);
    assert_eq!(decide_at(&timeout, start(), true), None);
    // The margin is 40 s. Before it a wait that was drawn too long is cut short.
    let late = |seconds| start().plus(HOUR).minus(Duration::from_secs(seconds));
    assert_eq!(decide_at(&timeout, late(50), true), None);
    assert_eq!(decide_at(&timeout, late(40), true), Some(ParkReason::WindowClosed));
    assert_eq!(decide_at(&timeout, start().plus(HOUR), true), Some(ParkReason::WindowClosed));
    assert_eq!(decide_at(&told(503, Some(3600)), start(), true), Some(ParkReason::WindowClosed));
    // What was certainly not processed may be sent whatever became of the key.
    assert_eq!(decide_at(&status(429), start().plus(HOUR), false), None);
}

#[test]
fn the_last_try_leaves_a_worker_time_to_take_it_up() {
    let before_the_end = |left: u64| {
        let now = start().plus(Duration::from_secs(1800 - left));
        let (policy, contract) = (RetryPolicy::default(), contract(Class::Neither));
        decide(&lost(Symptom::Connect), &contract, start(), false, first(0), &policy, now, |most| most)
    };
    // Drawn for 10 s later; the round ends in 8 s, and the gate refuses what comes after it.
    assert_eq!(before_the_end(8), Next::Retry { at: start().plus(Duration::from_secs(1795)) });
    assert_eq!(before_the_end(3), Next::Retry { at: start().plus(Duration::from_secs(1797)) });
}

#[test]
fn refusals_wait_for_a_person_who_can_mend_them() {
    let first_step = |classified: &Classified| match after(classified, Class::Keyed, false, first(0)) {
        Next::Park(parked) => {
            assert_eq!(parked.why, ParkReason::Refused);
            assert_eq!(parked.certainty, Certainty::DefinitelyFailed);
            parked.next_action
        }
        next => panic!("{next:?}"),
    };
    for (answer, wanted) in [
        (status(401), NextAction::FixPermission),
        (status(403), NextAction::FixPermission),
        (lost(Symptom::AddressRefused), NextAction::FixPermission),
        (lost(Symptom::ProxyCredential), NextAction::FixPermission),
        (lost(Symptom::NotBuilt), NextAction::FixData),
        (status(404), NextAction::FixData),
        (status(422), NextAction::FixData),
        (status(307), NextAction::Decide),
        (status(410), NextAction::Decide),
        (status(501), NextAction::Decide),
    ] {
        assert_eq!(first_step(&answer), wanted, "{answer:?}");
    }
}

#[test]
fn caps_end_a_round_and_a_throttle_uses_up_no_attempt() {
    let used = Round { since: start(), tries: 5, doubts: 0, waits: 0, asks: 0 };
    let next = after(&lost(Symptom::Connect), Class::Neither, false, used);
    assert_eq!(why(&next), Some(ParkReason::AttemptsUsed));
    assert!(!counts(&status(429)));
    assert!(!counts(&lost(Symptom::HeldBack)));
    assert!(counts(&status(503)));
    assert!(counts(&lost(Symptom::Connect)));

    let next = after(&told(429, Some(1801)), Class::Neither, false, first(0));
    let Next::Park(parked) = next else { panic!("{next:?}") };
    assert_eq!((parked.why, parked.next_action), (ParkReason::WaitTooLong, NextAction::Wait));
    let next = after(&told(429, Some(1795)), Class::Neither, false, first(0));
    assert_eq!(next, Next::Retry { at: start().plus(Duration::from_secs(1795)) });
    let older = Round { since: start().minus(Duration::from_secs(10)), ..first(0) };
    let next = after(&told(429, Some(1795)), Class::Neither, false, older);
    assert_eq!(why(&next), Some(ParkReason::TooOld));
    let next = after(&told(429, Some(60)), Class::Neither, false, first(0));
    assert_eq!(next, Next::Retry { at: start().plus(Duration::from_secs(70)) });
}

#[test]
fn a_refused_certificate_is_tried_again_slowly() {
    let next = after(&lost(Symptom::TlsRefused), Class::Neither, false, first(0));
    assert_eq!(next, Next::Retry { at: start().plus(Duration::from_mins(15)) });
}

fn events() -> impl Strategy<Value = Event> {
    let lost = prop::sample::select(Symptom::ALL).prop_map(|s| Event::NoAnswer(s, String::new()));
    let answered = (0_u16..=1099, any::<bool>(), prop::option::of(0_u64..200_000)).prop_map(
        |(status, complete, wait)| {
            let headers =
                wait.map(|seconds| ("retry-after".to_owned(), seconds.to_string())).into_iter().collect();
            Event::Answered(Answer { status, headers, body: Bytes::new(), complete })
        },
    );
    prop_oneof![1 => lost, 2 => answered]
}

fn contracts() -> impl Strategy<Value = Contract> {
    (
        prop::option::of(0_u64..100_000),
        any::<bool>(),
        any::<bool>(),
        prop::option::of(prop::sample::select(RuleOutcome::ALL)),
        1_u64..120,
    )
        .prop_map(|(window, idempotent, asks, rule, timeout)| Contract {
            key: window.map(|seconds| KeyPromise {
                carrier: KeyCarrier::header("Idempotency-Key"),
                window: Duration::from_secs(seconds),
            }),
            naturally_idempotent: idempotent,
            lookup: asks.then(lookup),
            rules: rule
                .map(|outcome| Rule {
                    status: Some(StatusMatch::Hundred(4)),
                    body: None,
                    outcome,
                    reference: None,
                    wait: None,
                })
                .into_iter()
                .collect(),
            timeout: Duration::from_secs(timeout),
        })
}

fn policies() -> impl Strategy<Value = RetryPolicy> {
    (1_u32..8, 0_u64..200_000, 0_u64..600, 1.0_f64..10.0, 0_u64..4_000).prop_map(
        |(attempts, max_age, first_delay, factor, max_delay)| RetryPolicy {
            attempts,
            max_age: Duration::from_secs(max_age),
            first_delay: Duration::from_secs(first_delay),
            factor,
            max_delay: Duration::from_secs(max_delay),
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn nothing_is_sent_again_against_the_contract(
        event in events(),
        contract in contracts(),
        policy in policies(),
        told_doubt: bool,
        tries in 0_u32..8,
        doubts in 0_u32..8,
        age in 0_u64..200_000,
        round_age in 0_u64..200_000,
        drawn in 0.0_f64..=1.0,
    ) {
        let now = start().plus(Duration::from_secs(age));
        let classified = classify(&contract, &event, now);
        let doubt = told_doubt || classified.outcome == Outcome::Uncertain;
        let round = Round { since: now.minus(Duration::from_secs(round_age)), tries, doubts, waits: 0, asks: 0 };
        let next = decide(&classified, &contract, start(), told_doubt, round, &policy, now, |most| {
            most.mul_f64(drawn).min(most)
        });
        let class = contract.class_at(Some(start()), now);
        match next {
            Next::Complete => prop_assert_eq!(classified.outcome, Outcome::Done),
            Next::Retry { at } => {
                prop_assert!(!doubt || matches!(class, Class::Keyed | Class::Idempotent));
                prop_assert!(!matches!(classified.outcome, Outcome::Done | Outcome::KeyConflict));
                prop_assert!(at >= now.plus(classified.wait.unwrap_or_default()));
                prop_assert!(at <= policy.ends(round.since));
                prop_assert!(round.tries < policy.attempts);
                if doubt && class == Class::Keyed {
                    prop_assert!(round.doubts <= RESENDS_IN_DOUBT);
                    prop_assert!(contract.resend_until(start()).is_some_and(|until| at < until));
                }
            }
            Next::LookUp { at, task } => {
                prop_assert!(contract.lookup.is_some() && at >= now);
                prop_assert_eq!(task == Task::FetchResult, classified.outcome == Outcome::Done);
            }
            Next::PassOver(_) | Next::Leave => prop_assert!(false, "neither follows a send"),
            Next::Park(parked) => {
                prop_assert_ne!(classified.outcome, Outcome::Done);
                let wanted = if doubt { Certainty::MayHaveCompleted } else { Certainty::DefinitelyFailed };
                prop_assert_eq!(parked.certainty, wanted);
                // Nobody is told to send what may have happened.
                prop_assert!(!doubt || parked.next_action != NextAction::Replay);
            }
        }
    }
}

fn findings() -> impl Strategy<Value = (Task, Finding)> {
    const TASKS: &[Task] = &[Task::FindOut, Task::Ask, Task::FetchResult];
    (prop::sample::select(TASKS), prop::sample::select(Finding::ALL))
}

/// As the gate describes a finding.
fn meaning(finding: Finding) -> Classified {
    let outcome = match finding {
        Finding::Found => Outcome::Done,
        Finding::OtherPayload => Outcome::KeyConflict,
        Finding::Absent => Outcome::NotSent,
        Finding::TooEarly | Finding::Failed => Outcome::Uncertain,
    };
    Classified { outcome, ..lost(Symptom::TimedOut) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn only_an_absence_that_counts_sends_again_what_was_asked_about(
        (task, finding) in findings(),
        policy in policies(),
        wait in prop::option::of(0_u64..200_000),
        counts_from in 0_u64..200_000,
        resume in prop::option::of(0_u64..200_000),
        age in 0_u64..200_000,
        (tries, asks) in (0_u32..8, 1_u32..30),
        earlier: bool,
        drawn in 0.0_f64..=1.0,
    ) {
        let at = |seconds| start().plus(Duration::from_secs(seconds));
        let now = at(age);
        let asked = Asked { task, finding, counts_from: at(counts_from), resume_at: resume.map(at) };
        let round = Round { since: start(), tries, doubts: 1, waits: 0, asks };
        let classified = Classified { wait: wait.map(Duration::from_secs), ..meaning(finding) };
        let draw = |most: Duration| most.mul_f64(drawn).min(most);
        match after_lookup(asked, &classified, round, &policy, now, earlier, draw) {
            Next::Complete => prop_assert!(finding == Finding::Found || task == Task::FetchResult),
            Next::Retry { at } if task == Task::FindOut => {
                prop_assert_eq!(finding, Finding::Absent);
                prop_assert!(!earlier && at >= now);
                prop_assert!(tries < policy.attempts && now <= policy.ends(round.since));
            }
            // A person's question came before a send that was due anyway.
            Next::Retry { at } => {
                prop_assert_eq!((task, Some(at)), (Task::Ask, asked.resume_at));
                prop_assert_ne!(finding, Finding::Found);
            }
            Next::LookUp { at, task: next } => {
                prop_assert_eq!(next, task);
                prop_assert!(at >= now.plus(classified.wait.unwrap_or_default()));
                prop_assert_ne!(finding, Finding::Found);
            }
            Next::Park(parked) => {
                prop_assert_ne!(finding, Finding::Found);
                prop_assert_ne!(task, Task::FetchResult);
                let proved = finding == Finding::Absent && !earlier;
                let wanted = if proved { Certainty::DefinitelyFailed } else { Certainty::MayHaveCompleted };
                prop_assert_eq!(parked.certainty, wanted);
            }
            Next::Leave => prop_assert_eq!((task, asked.resume_at), (Task::Ask, None)),
            Next::PassOver(_) => prop_assert!(false, "a question passes nothing over"),
        }
    }

    /// Whoever knows less, or has waited longer, is never allowed more.
    #[test]
    fn more_doubt_and_more_tries_never_allow_a_send_that_less_forbade(
        event in events(),
        contract in contracts(),
        policy in policies(),
        (tries, doubts) in (0_u32..8, 0_u32..8),
        (more_tries, more_doubts) in (0_u32..4, 0_u32..4),
        (age, later) in (0_u64..200_000, 0_u64..100_000),
        told_doubt: bool,
    ) {
        let next = |doubt, tries, doubts, age| {
            // The event is read at one moment, so that only the facts differ.
            let classified = classify(&contract, &event, start());
            let now = start().plus(Duration::from_secs(age));
            let round = Round { since: start(), tries, doubts, waits: 0, asks: 0 };
            decide(&classified, &contract, start(), doubt, round, &policy, now, |_| Duration::ZERO)
        };
        let less = next(told_doubt, tries, doubts, age);
        let more = next(true, tries + more_tries, doubts + more_doubts, age + later);
        let sends = |next: &Next| matches!(next, Next::Retry { .. });
        prop_assert!(sends(&less) || !sends(&more), "{less:?} and then {more:?}");
    }
}
