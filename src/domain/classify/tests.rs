use serde_json::json;

use super::*;
use crate::domain::contract::{BodyMatch, BodyTest, Rule, StatusMatch};

/// One way in which an event comes about.
enum When {
    /// No status line.
    Lost(&'static [Symptom]),
    /// Each of these statuses, whole, no headers, no body.
    Says(&'static [u16]),
    /// A status with one header.
    Head(u16, &'static str, &'static str),
    /// The head arrived, the body's end did not.
    Cut(u16),
    /// A rule on the body's `/code` applies.
    Ruled(u16, RuleOutcome),
    /// A rule on the body's `/code` exists, and the body was lost.
    RuledCut(u16, RuleOutcome),
}

use Action as A;
use Outcome as O;
use RuleOutcome as R;
use Symptom as S;
use When::{Cut, Head, Lost, Ruled, RuledCut, Says};

type Row = (u8, When, Outcome, Symptom, Action, bool);

const PAUSE: bool = true;
const GO_ON: bool = false;

/// These keep the symptom they were given.
const UNANSWERED: &[(u8, When, Outcome, Action, bool)] = &[
    (1, Lost(&[S::NotBuilt]), O::NotSent, A::DeadLetter, GO_ON),
    (2, Lost(&[S::AddressRefused]), O::NotSent, A::DeadLetter, PAUSE),
    (3, Lost(&[S::HeldBack]), O::NotSent, A::Wait, GO_ON),
    (4, Lost(&[S::LostBeforeSending]), O::NotSent, A::Retry, GO_ON),
    (5, Lost(&[S::Dns]), O::NotSent, A::Retry, GO_ON),
    (6, Lost(&[S::Connect]), O::NotSent, A::Retry, GO_ON),
    (7, Lost(&[S::TlsCut]), O::NotSent, A::Retry, GO_ON),
    (8, Lost(&[S::TlsRefused]), O::NotSent, A::RetrySlow, PAUSE),
    (9, Lost(&[S::ProxyRefused]), O::NotSent, A::Retry, GO_ON),
    (9, Lost(&[S::ProxyCredential]), O::NotSent, A::DeadLetter, PAUSE),
    (10, Lost(&[S::NeverWritten]), O::NotSent, A::Retry, GO_ON),
    (11, Lost(&[S::StreamRefused]), O::NotSent, A::Retry, GO_ON),
    (12, Lost(&[S::Closed]), O::Uncertain, A::FindOut, GO_ON),
    (13, Lost(&[S::TimedOut]), O::Uncertain, A::FindOut, GO_ON),
    (14, Lost(&[S::Unparseable]), O::Uncertain, A::FindOut, GO_ON),
    (15, Lost(&[S::StreamReset]), O::Uncertain, A::FindOut, GO_ON),
    (16, Lost(&[S::TlsAlert]), O::Uncertain, A::FindOut, PAUSE),
    (17, Lost(&[S::LostAfterSending]), O::Uncertain, A::FindOut, GO_ON),
    (18, Lost(&[S::AnswerNotSaved]), O::Uncertain, A::FindOut, GO_ON),
];

const ANSWERED: &[Row] = &[
    (19, Cut(200), O::Done, S::ResultLost, A::Complete, GO_ON),
    (19, Cut(201), O::Done, S::ResultLost, A::Complete, GO_ON),
    (19, Cut(202), O::Done, S::ResultLost, A::Complete, GO_ON),
    // A rule that could only have said the same leaves nothing open.
    (19, RuledCut(201, R::Done), O::Done, S::ResultLost, A::Complete, GO_ON),
    (19, RuledCut(202, R::Accepted), O::Done, S::ResultLost, A::Complete, GO_ON),
    (20, RuledCut(409, R::Done), O::Uncertain, S::VerdictLost, A::FindOut, GO_ON),
    (20, RuledCut(422, R::KeyConflict), O::Uncertain, S::VerdictLost, A::FindOut, GO_ON),
    (20, RuledCut(500, R::NotProcessed), O::Uncertain, S::VerdictLost, A::FindOut, GO_ON),
    (20, RuledCut(200, R::Rejected), O::Uncertain, S::VerdictLost, A::FindOut, GO_ON),
    (20, RuledCut(422, R::Rejected), O::Rejected, S::Rejected, A::DeadLetter, GO_ON),
    (21, Says(&[200, 201, 203, 204, 205, 206, 226, 299]), O::Done, S::Done, A::Complete, GO_ON),
    (22, Says(&[202]), O::Done, S::Accepted, A::Complete, GO_ON),
    (23, Ruled(200, R::Rejected), O::Rejected, S::Rejected, A::DeadLetter, GO_ON),
    (23, Ruled(200, R::Throttled), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (23, Ruled(200, R::Uncertain), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (24, Says(&[300, 301, 302, 303, 304, 307, 308, 399]), O::Rejected, S::Redirect, A::DeadLetter, PAUSE),
    (
        25,
        Says(&[400, 405, 406, 411, 412, 414, 415, 417, 426, 428, 431, 451]),
        O::Rejected,
        S::Rejected,
        A::DeadLetter,
        GO_ON,
    ),
    (25, Ruled(400, R::NotProcessed), O::NotSent, S::NotProcessed, A::Retry, GO_ON),
    (26, Says(&[401]), O::Rejected, S::Credential, A::DeadLetter, PAUSE),
    (27, Says(&[402]), O::Rejected, S::Business, A::DeadLetter, GO_ON),
    (28, Says(&[403]), O::Rejected, S::Forbidden, A::DeadLetter, GO_ON),
    (28, Head(403, "retry-after", "5"), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (28, Head(403, "x-ratelimit-remaining", "0"), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (28, Head(403, "ratelimit-remaining", " 0 "), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (28, Head(403, "ratelimit", "\"day\";r=0;t=60"), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (28, Head(403, "ratelimit", "\"a\";r=0, \"b\";r=9"), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (28, Head(403, "x-ratelimit-remaining", "10"), O::Rejected, S::Forbidden, A::DeadLetter, GO_ON),
    (28, Head(403, "ratelimit", "\"day\";r=10"), O::Rejected, S::Forbidden, A::DeadLetter, GO_ON),
    (29, Says(&[404]), O::Rejected, S::NotFound, A::DeadLetter, GO_ON),
    (29, Ruled(404, R::NotProcessed), O::NotSent, S::NotProcessed, A::Retry, GO_ON),
    (30, Says(&[408]), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (31, Ruled(409, R::InFlight), O::Uncertain, S::InFlight, A::Wait, GO_ON),
    (32, Ruled(409, R::Done), O::Done, S::Done, A::Complete, GO_ON),
    (33, Ruled(409, R::KeyConflict), O::KeyConflict, S::KeyConflict, A::DeadLetter, GO_ON),
    (33, Ruled(422, R::KeyConflict), O::KeyConflict, S::KeyConflict, A::DeadLetter, GO_ON),
    (33, Ruled(400, R::KeyConflict), O::KeyConflict, S::KeyConflict, A::DeadLetter, GO_ON),
    (34, Says(&[409]), O::Uncertain, S::Conflict, A::FindOut, GO_ON),
    (34, Ruled(422, R::Uncertain), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (35, Says(&[410]), O::Rejected, S::Gone, A::DeadLetter, PAUSE),
    (36, Says(&[413]), O::Rejected, S::TooLarge, A::DeadLetter, GO_ON),
    (36, Head(413, "ratelimit-remaining", "0"), O::Rejected, S::TooLarge, A::DeadLetter, GO_ON),
    (36, Head(413, "retry-after", "5"), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (37, Says(&[421]), O::NotSent, S::NotProcessed, A::Retry, GO_ON),
    (38, Says(&[422]), O::Rejected, S::Rejected, A::DeadLetter, GO_ON),
    (39, Says(&[423]), O::Rejected, S::Locked, A::Retry, GO_ON),
    (40, Says(&[424]), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (41, Says(&[425]), O::NotSent, S::NotProcessed, A::Retry, GO_ON),
    (42, Says(&[429]), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (42, Ruled(200, R::Throttled), O::Throttled, S::Throttled, A::Wait, GO_ON),
    (43, Says(&[500]), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (44, Says(&[501, 505, 511]), O::Rejected, S::Unsupported, A::DeadLetter, PAUSE),
    (45, Says(&[502]), O::Uncertain, S::Gateway, A::FindOut, GO_ON),
    (46, Says(&[503]), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (46, Ruled(503, R::NotProcessed), O::NotSent, S::NotProcessed, A::Retry, GO_ON),
    (47, Says(&[504]), O::Uncertain, S::Gateway, A::FindOut, GO_ON),
    (48, Says(&[521, 522, 523, 525, 526]), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (48, Ruled(522, R::NotProcessed), O::NotSent, S::NotProcessed, A::Retry, GO_ON),
    (49, Says(&[250]), O::Done, S::Done, A::Complete, GO_ON),
    (49, Says(&[418, 430, 450, 499]), O::Rejected, S::Rejected, A::DeadLetter, GO_ON),
    (49, Says(&[506, 520, 530, 599]), O::Uncertain, S::ServerError, A::FindOut, GO_ON),
    (49, Says(&[0, 100, 101, 199, 600, 999]), O::Uncertain, S::Unparseable, A::FindOut, GO_ON),
];

fn now() -> Timestamp {
    Timestamp::parse("2015-10-21T07:27:00Z").unwrap()
}

fn answer(status: u16) -> Answer {
    Answer { status, headers: Vec::new(), body: Bytes::new(), complete: true }
}

fn with(status: u16, headers: &[(&str, &str)]) -> Answer {
    let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Answer { headers, ..answer(status) }
}

fn saying(status: u16, body: &Value) -> Answer {
    Answer { body: body.to_string().into(), ..answer(status) }
}

fn rule(status: u16, outcome: RuleOutcome) -> Rule {
    Rule { status: Some(StatusMatch::Code(status)), body: None, outcome, reference: None, wait: None }
}

fn on_code(rule: Rule) -> Rule {
    let test = BodyTest::Equals(json!("x"));
    Rule { body: Some(BodyMatch { pointer: "/code".into(), test }), ..rule }
}

fn ruled(rules: Vec<Rule>) -> Contract {
    Contract { rules, timeout: Duration::from_secs(10), ..Contract::default() }
}

/// Every contract and event that a row's case stands for.
fn cases(when: &When) -> Vec<(Contract, Event)> {
    let plain = |event| (Contract::default(), event);
    match *when {
        Lost(symptoms) => symptoms.iter().map(|&s| plain(Event::NoAnswer(s, String::new()))).collect(),
        Says(statuses) => statuses.iter().map(|&status| plain(Event::Answered(answer(status)))).collect(),
        Head(status, name, value) => vec![plain(Event::Answered(with(status, &[(name, value)])))],
        Cut(status) => vec![plain(Event::Answered(Answer { complete: false, ..answer(status) }))],
        Ruled(status, outcome) => vec![(
            ruled(vec![on_code(rule(status, outcome))]),
            Event::Answered(saying(status, &json!({"code": "x"}))),
        )],
        RuledCut(status, outcome) => vec![(
            ruled(vec![on_code(rule(status, outcome))]),
            Event::Answered(Answer { complete: false, ..saying(status, &json!({"code": "x"})) }),
        )],
    }
}

fn of(answer: Answer) -> Classified {
    classify(&Contract::default(), &Event::Answered(answer), now())
}

#[test]
fn every_row_of_the_table() {
    let mut seen = std::collections::BTreeSet::new();
    for (row, when, outcome, action, pause) in UNANSWERED {
        seen.insert(*row);
        for (contract, event) in cases(when) {
            let Event::NoAnswer(symptom, _) = event else { panic!("row {row} is without an answer") };
            let found = classify(&contract, &event, now());
            let wanted = Classified { pause: *pause, ..Classified::new(*outcome, symptom, *action) };
            assert_eq!(found, wanted, "row {row}");
        }
    }
    for (row, when, outcome, symptom, action, pause) in ANSWERED {
        seen.insert(*row);
        for (contract, event) in cases(when) {
            let found = classify(&contract, &event, now());
            assert_eq!(
                (found.outcome, found.symptom, found.action, found.pause),
                (*outcome, *symptom, *action, *pause),
                "row {row}: {event:?}"
            );
        }
    }
    assert!(seen.into_iter().eq(1..=49), "a row is missing");
}

#[test]
fn rules_come_before_the_table_and_the_first_match_wins() {
    let contract = ruled(vec![
        on_code(rule(409, R::Done)),
        rule(409, R::InFlight),
        rule(409, R::Rejected),
        Rule { status: Some(StatusMatch::Hundred(5)), ..rule(0, R::NotProcessed) },
    ]);
    let outcome = |answer| classify(&contract, &Event::Answered(answer), now()).symptom;
    assert_eq!(outcome(saying(409, &json!({"code": "x"}))), S::Done);
    assert_eq!(outcome(saying(409, &json!({"code": "y"}))), S::InFlight);
    assert_eq!(outcome(saying(409, &json!("text"))), S::InFlight);
    assert_eq!(outcome(answer(409)), S::InFlight);
    assert_eq!(outcome(answer(502)), S::NotProcessed);
    assert_eq!(outcome(answer(422)), S::Rejected);
    let any = ruled(vec![Rule { status: None, ..rule(0, R::Uncertain) }]);
    assert_eq!(classify(&any, &Event::Answered(answer(201)), now()).outcome, O::Uncertain);
}

#[test]
fn a_body_rule_reads_whole_json_only() {
    let contract = ruled(vec![on_code(rule(200, R::Rejected))]);
    let outcome = |answer| classify(&contract, &Event::Answered(answer), now()).outcome;
    assert_eq!(outcome(saying(200, &json!({"code": "x"}))), O::Rejected);
    assert_eq!(outcome(saying(200, &json!({"code": "y"}))), O::Done);
    assert_eq!(outcome(Answer { body: "<html>".into(), ..answer(200) }), O::Done);
    assert_eq!(outcome(Answer { complete: false, ..saying(200, &json!({"code": "y"})) }), O::Uncertain);
    // Of a status that no rule names, the loss changes nothing.
    assert_eq!(outcome(Answer { complete: false, ..answer(422) }), O::Rejected);
}

#[test]
fn a_pattern_is_found_in_texts_and_in_other_values() {
    let test = BodyTest::Matches(regex::Regex::new("^(2|DUPLICATE)").unwrap());
    let body = Some(BodyMatch { pointer: "/code".into(), test });
    let contract = ruled(vec![Rule { body, ..rule(400, R::Uncertain) }]);
    let outcome = |body| classify(&contract, &Event::Answered(saying(400, &body)), now()).outcome;
    assert_eq!(outcome(json!({"code": "DUPLICATE_INVOICE_ID"})), O::Uncertain);
    assert_eq!(outcome(json!({"code": 20429})), O::Uncertain);
    assert_eq!(outcome(json!({"code": 10})), O::Rejected);
    assert_eq!(outcome(json!({})), O::Rejected);
}

#[test]
fn a_star_stands_for_every_item_or_member() {
    let test = BodyTest::Equals(json!("x"));
    let at = |pointer: &str, body: Value| {
        let condition = BodyMatch { pointer: pointer.into(), test: test.clone() };
        let id = Some("/errors/*/links/id".into());
        let contract = ruled(vec![Rule { body: Some(condition), reference: id, ..rule(409, R::Done) }]);
        let found = classify(&contract, &Event::Answered(saying(409, &body)), now());
        (found.outcome == O::Done).then_some(found.reference)
    };
    let errors = json!({"errors": [{"code": "y"}, {"code": "x", "links": {"id": "PM1"}}]});
    assert_eq!(at("/errors/*/code", errors.clone()), Some(Some("PM1".to_owned())));
    assert_eq!(at("/*/*/code", errors.clone()), Some(Some("PM1".to_owned())));
    assert_eq!(at("/errors/*", json!({"errors": {"a": "x"}})), Some(None));
    for (pointer, body) in [
        ("/errors/*/code", json!({"errors": []})),
        ("/errors/*/code", json!({"errors": "x"})),
        ("/errors/*", errors),
        // Part of a longer name it is a letter like any other.
        ("/*code", json!({"code": "x"})),
    ] {
        assert_eq!(at(pointer, body), None, "{pointer}");
    }
}

#[test]
fn a_rule_s_wait_counts_where_the_answer_says_none() {
    let rule = Rule { wait: Some(Duration::from_mins(1)), ..rule(403, R::Throttled) };
    let wait = |answer| classify(&ruled(vec![rule.clone()]), &Event::Answered(answer), now()).wait;
    assert_eq!(wait(answer(403)), Some(Duration::from_mins(1)));
    assert_eq!(wait(with(403, &[("retry-after", "5")])), Some(Duration::from_secs(5)));
}

#[test]
fn a_rule_takes_the_reference_from_where_it_says() {
    let id = Rule { reference: Some("/links/id".into()), ..rule(409, R::Done) };
    let contract = ruled(vec![id]);
    let of = |body| classify(&contract, &Event::Answered(saying(409, &body)), now()).reference;
    assert_eq!(of(json!({"links": {"id": "PM123"}})).as_deref(), Some("PM123"));
    assert_eq!(of(json!({"links": {"id": 42}})).as_deref(), Some("42"));
    assert_eq!(of(json!({"links": {"id": ""}})), None);
    assert_eq!(of(json!({"links": {"id": {}}})), None);
    assert_eq!(of(json!({})), None);
}

#[test]
fn retry_after_is_obeyed_in_both_forms() {
    for (value, seconds) in [("120", 120), ("Wed, 21 Oct 2015 07:28:00 GMT", 60)] {
        for status in [403, 413, 429, 503, 408, 409, 421, 423, 425, 500, 502, 504] {
            let found = of(with(status, &[("retry-after", value)]));
            assert_eq!(found.wait, Some(Duration::from_secs(seconds)), "{status} {value}");
        }
    }
    assert_eq!(of(with(429, &[("retry-after", "soon")])).wait, None);
    assert_eq!(of(with(201, &[("retry-after", "5")])).wait, None);
}

#[test]
fn a_throttling_destination_s_own_words_are_obeyed_too() {
    let wait = |status, headers: &[(&str, &str)]| of(with(status, headers)).wait.map(|wait| wait.as_secs());
    let epoch = (now().as_micros() / 1_000_000 + 90).to_string();
    let github = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", epoch.as_str())];
    assert_eq!(wait(403, &github), Some(90));
    assert_eq!(wait(429, &github), Some(90));
    assert_eq!(wait(429, &[("ratelimit-remaining", "0"), ("ratelimit-reset", "30")]), Some(30));
    assert_eq!(wait(429, &[("ratelimit", "\"a\";r=0;t=5, \"b\";r=0;t=50, \"c\";r=1;t=500")]), Some(50));
    // The longer of two words, so that neither is broken.
    let both = [("retry-after", "5"), ("ratelimit-remaining", "0"), ("ratelimit-reset", "30")];
    assert_eq!(wait(429, &both), Some(30));
    // While something is left, the reset is no wait.
    assert_eq!(wait(429, &[("ratelimit-remaining", "3"), ("ratelimit-reset", "30")]), None);
}

#[test]
fn everything_has_a_meaning_and_the_meanings_agree() {
    let every_rule = RuleOutcome::ALL
        .iter()
        .map(|&outcome| ruled(vec![on_code(Rule { status: None, ..rule(0, outcome) })]));
    let contracts: Vec<Contract> = std::iter::once(Contract::default()).chain(every_rule).collect();
    for contract in &contracts {
        for status in 0..=1099 {
            for complete in [true, false] {
                let event = Event::Answered(Answer { complete, ..saying(status, &json!({"code": "x"})) });
                agrees(&classify(contract, &event, now()));
            }
        }
        for symptom in Symptom::ALL {
            agrees(&classify(contract, &Event::NoAnswer(*symptom, String::new()), now()));
        }
    }
}

/// What must hold of every meaning.
fn agrees(found: &Classified) {
    assert_eq!(found.action == A::Complete, found.outcome == O::Done, "{found:?}");
    assert!(!matches!(found.outcome, O::Running | O::Skipped), "{found:?}");
    if found.outcome == O::Uncertain {
        let in_flight = (found.symptom, found.action) == (S::InFlight, A::Wait);
        assert!(in_flight || found.action == A::FindOut, "{found:?}");
    }
    if found.outcome == O::KeyConflict {
        assert_eq!(found.action, A::DeadLetter, "{found:?}");
    }
}

#[test]
fn only_symptoms_from_before_the_first_byte_prove_that_nothing_was_sent() {
    let proved: Vec<Symptom> = Symptom::ALL
        .iter()
        .copied()
        .filter(|&symptom| {
            let event = Event::NoAnswer(symptom, String::new());
            classify(&Contract::default(), &event, now()).outcome == O::NotSent
        })
        .collect();
    let early = Symptom::ALL.iter().position(|&symptom| symptom == S::Closed).unwrap();
    assert_eq!(proved, Symptom::ALL[..early]);
}

mod any_event {
    use proptest::prelude::*;

    use super::*;

    const NAMES: &[&str] =
        &["retry-after", "ratelimit-remaining", "ratelimit-reset", "ratelimit", "x-ratelimit-reset"];

    fn answers() -> impl Strategy<Value = Answer> {
        let headers = prop::collection::vec((prop::sample::select(NAMES), "[0-9]{1,20}|\\PC{0,12}"), 0..4);
        let body = prop_oneof![
            Just(Bytes::new()),
            "\\PC{0,40}".prop_map(Bytes::from),
            Just(Bytes::from_static(br#"{"code":"x"}"#)),
            prop::collection::vec(any::<u8>(), 0..20).prop_map(Bytes::from),
        ];
        (0_u16..1_100, headers, body, any::<bool>()).prop_map(|(status, headers, body, complete)| Answer {
            status,
            headers: headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            body,
            complete,
        })
    }

    fn rules() -> impl Strategy<Value = Vec<Rule>> {
        let one = (prop::option::of(0_u16..1_100), any::<bool>(), prop::sample::select(R::ALL)).prop_map(
            |(status, on_body, outcome)| {
                let rule = Rule { status: status.map(StatusMatch::Code), ..rule(0, outcome) };
                if on_body { on_code(rule) } else { rule }
            },
        );
        prop::collection::vec(one, 0..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn whatever_arrives_has_a_meaning_that_agrees_with_itself(answer in answers(), rules in rules()) {
            let contract = ruled(rules);
            let found = classify(&contract, &Event::Answered(answer.clone()), now());
            agrees(&found);
            // A whole answer that no rule is about means what the general table says.
            if contract.rules.iter().all(|rule| !covers(rule, answer.status)) {
                prop_assert_eq!(found, of(answer));
            }
        }

        #[test]
        fn a_rule_for_this_very_answer_decides_it(answer in answers(), outcome in prop::sample::select(R::ALL)) {
            let contract = ruled(vec![rule(answer.status, outcome)]);
            let found = classify(&contract, &Event::Answered(answer), now());
            prop_assert_eq!(found.outcome == O::Done, matches!(outcome, R::Done | R::Accepted));
            prop_assert_eq!(found.outcome == O::Uncertain, matches!(outcome, R::Uncertain | R::InFlight));
        }
    }
}
