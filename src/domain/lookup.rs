//! What a destination's answer to "do you have it?" means, and from when an absence counts.

use std::time::Duration;

use serde_json::Value;

use super::classify::{Answer, Event, text_of};
use super::contract::{Contract, Lookup};
use super::time::Timestamp;

text_enum! {
    /// What the destination knows.
    pub enum Finding {
        /// It has it, with our data or with no way to compare.
        Found = "found",
        /// It has something under our reference, with other data.
        OtherPayload = "other_payload",
        /// It does not have it, and long enough has passed for it to show.
        Absent = "absent",
        /// It does not show it, and it might still appear.
        TooEarly = "too_early",
        /// It could not be asked, or did not say.
        Failed = "failed",
    }
}

text_enum! {
    /// Why a destination is asked.
    pub enum Task {
        /// Nothing is asked: it is to be sent.
        Send = "send",
        /// It may have happened: nothing is sent before this is known.
        FindOut = "find_out",
        /// A person wants to know.
        Ask = "ask",
        /// It was done, and the answer that tells its id was lost.
        FetchResult = "fetch_result",
    }
}

/// A finding with what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// In a word.
    pub finding: Finding,
    /// The id over there.
    pub reference: Option<String>,
    /// The found object.
    pub object: Option<Value>,
    /// Why, for people.
    pub detail: String,
}

impl Found {
    fn nothing(finding: Finding, detail: impl Into<String>) -> Self {
        Self { finding, reference: None, object: None, detail: detail.into() }
    }
}

/// From when an absence proves that a send which began at `sent` came to nothing: a worker may have
/// been frozen until its lease ended and its exchange may have taken all its time, and what it
/// brought about may stay invisible for the destination's lag.
pub fn absence_counts_from(
    contract: &Contract,
    lookup: &Lookup,
    sent: Timestamp,
    lease: Duration,
) -> Timestamp {
    sent.plus(lease).plus(contract.timeout).plus(lookup.max_lag)
}

/// Reads the answer. `expected` are pointers and the texts that should stand there, for telling our
/// data from other data; `counts` says whether an absence proves anything yet.
pub fn read(lookup: &Lookup, expected: &[(String, String)], event: &Event, counts: bool) -> Found {
    let answer = match event {
        Event::NoAnswer(_, text) => return Found::nothing(Finding::Failed, text.clone()),
        Event::Answered(answer) => answer,
        Event::Reported(_) => return Found::nothing(Finding::Failed, "a program answered in its place"),
    };
    let absent = |detail: &str| {
        if counts {
            return Found::nothing(Finding::Absent, detail);
        }
        Found::nothing(Finding::TooEarly, format!("{detail}; it is too early for that to prove anything"))
    };
    // Only where the address names the thing itself does "not found" speak of the thing.
    if answer.status == 404 && lookup.found.is_empty() {
        return absent("it answered 404");
    }
    if !(200..300).contains(&answer.status) {
        return Found::nothing(Finding::Failed, format!("it answered {}", answer.status));
    }
    let Some(body) = answer.json() else {
        return Found::nothing(
            Finding::Failed,
            format!("it answered {} without readable JSON", answer.status),
        );
    };
    match place(&body, &lookup.found) {
        Place::Holds(object) => found(lookup, expected, answer, &body, object),
        Place::Empty => absent("it has nothing under our reference"),
        // An error in a success, or another shape than was configured: no proof of anything.
        Place::Unknown => Found::nothing(
            Finding::Failed,
            format!("its answer has no place {:?}; check the lookup's \"found\"", lookup.found),
        ),
    }
}

fn found(
    lookup: &Lookup,
    expected: &[(String, String)],
    answer: &Answer,
    body: &Value,
    object: &Value,
) -> Found {
    let reference = lookup.reference.as_deref().and_then(|pointer| body.pointer(pointer)).and_then(text_of);
    let differs = expected.iter().find(|(pointer, text)| {
        body.pointer(pointer).is_none_or(|value| text_of(value).unwrap_or_else(|| value.to_string()) != *text)
    });
    let (finding, detail) = match differs {
        Some((pointer, _)) => (Finding::OtherPayload, format!("it has it with other data at {pointer}")),
        None => (Finding::Found, format!("it answered {} and has it", answer.status)),
    };
    Found { finding, reference, object: Some(object.clone()), detail }
}

enum Place<'v> {
    Holds(&'v Value),
    Empty,
    Unknown,
}

/// What stands at a pointer: something, nothing in a place that could hold it, or no such place.
fn place<'v>(body: &'v Value, pointer: &str) -> Place<'v> {
    match body.pointer(pointer) {
        Some(Value::Null) => Place::Empty,
        Some(Value::Array(items)) if items.is_empty() => Place::Empty,
        // A list is no thing that was found, and may hold anything: the pointer should name its item.
        Some(Value::Array(_) | Value::Bool(false)) => Place::Unknown,
        Some(Value::String(text)) if text.is_empty() => Place::Unknown,
        Some(value) => Place::Holds(value),
        None => match pointer.rsplit_once('/').and_then(|(parent, _)| body.pointer(parent)) {
            Some(Value::Array(_)) => Place::Empty,
            _ => Place::Unknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::classify::Symptom;
    use super::*;

    fn lookup(found: &str) -> Lookup {
        Lookup {
            path: "/t".into(),
            found: found.into(),
            reference: Some(format!("{found}/id")),
            max_lag: Duration::from_mins(2),
        }
    }

    fn answered(status: u16, body: &str) -> Event {
        Event::Answered(Answer {
            status,
            body: body.as_bytes().to_vec().into(),
            complete: true,
            ..Answer::default()
        })
    }

    #[test]
    fn what_each_answer_means() {
        use Finding as F;
        let cases = [
            ("/items/0", 200, r#"{"items":[{"id":7,"amount":"5"}]}"#, F::Found),
            ("/items/0", 200, r#"{"items":[]}"#, F::Absent),
            ("/items/0", 200, r#"{"error":"try later"}"#, F::Failed),
            ("/items/0", 200, "<html>", F::Failed),
            ("/items/0", 404, r#"{"items":[]}"#, F::Failed),
            ("/items/0", 500, r#"{"items":[]}"#, F::Failed),
            ("/items/0", 302, "", F::Failed),
            ("/data/item", 200, r#"{"data":{"item":null}}"#, F::Absent),
            ("/data/item", 200, r#"{"data":{}}"#, F::Failed),
            ("/data/item", 200, r#"{"data":null,"errors":[1]}"#, F::Failed),
            ("", 200, r#"{"id":"a"}"#, F::Found),
            ("", 404, r#"{"message":"none"}"#, F::Absent),
            ("", 200, "null", F::Absent),
            ("/items", 200, r#"{"items":[]}"#, F::Absent),
            ("/items", 200, r#"{"items":[{"id":7}]}"#, F::Failed),
            ("/found", 200, r#"{"found":false}"#, F::Failed),
        ];
        for (pointer, status, body, wanted) in cases {
            let found = read(&lookup(pointer), &[], &answered(status, body), true);
            assert_eq!(found.finding, wanted, "{pointer} {status} {body}");
        }
    }

    #[test]
    fn an_absence_proves_nothing_too_early_and_a_finding_always_does() {
        let none = answered(200, r#"{"items":[]}"#);
        assert_eq!(read(&lookup("/items/0"), &[], &none, false).finding, Finding::TooEarly);
        let some = answered(200, r#"{"items":[{"id":7}]}"#);
        let found = read(&lookup("/items/0"), &[], &some, false);
        assert_eq!((found.finding, found.reference.as_deref()), (Finding::Found, Some("7")));
    }

    #[test]
    fn other_data_under_our_reference_is_told_apart() {
        let event = answered(200, r#"{"items":[{"id":7,"amount":5,"to":"a"}]}"#);
        let expects = |text: &str| vec![("/items/0/amount".to_owned(), text.to_owned())];
        assert_eq!(read(&lookup("/items/0"), &expects("5"), &event, true).finding, Finding::Found);
        assert_eq!(read(&lookup("/items/0"), &expects("6"), &event, true).finding, Finding::OtherPayload);
        let missing = vec![("/items/0/sum".to_owned(), "5".to_owned())];
        assert_eq!(read(&lookup("/items/0"), &missing, &event, true).finding, Finding::OtherPayload);
    }

    #[test]
    fn no_answer_is_no_finding() {
        let event = Event::NoAnswer(Symptom::TimedOut, "no answer".into());
        assert_eq!(read(&lookup("/items/0"), &[], &event, true).finding, Finding::Failed);
    }

    #[test]
    fn an_absence_counts_after_lease_timeout_and_lag() {
        let contract = Contract { timeout: Duration::from_secs(10), ..Contract::default() };
        let from =
            absence_counts_from(&contract, &lookup(""), Timestamp::from_micros(0), Duration::from_mins(1));
        assert_eq!(from, Timestamp::from_micros(190_000_000));
    }
}
