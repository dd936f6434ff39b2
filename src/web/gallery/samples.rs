//! Content for the gallery: what a busy morning looks like, and what an attacker would send.

use std::cell::Cell;
use std::time::Duration;

use crate::domain::actor::Role;
use crate::domain::operation::StepState;
use crate::domain::time::Timestamp;
use crate::domain::verdict::CheckName;
use crate::web::known::{CheckRow, Knowledge, Known};
use crate::web::listing::{Chip, Choice, Select};
use crate::web::page::{Layout, Section, SignedIn};
use crate::web::timeline::{Answer, Request, Step};
use crate::web::view::{Button, Fact, Long, Reference, Seen, When};

/// Where texts come from: as written, or from a bag of nasty ones.
pub(super) struct Words {
    hostile: bool,
    next: Cell<usize>,
}

impl Words {
    pub(super) fn real() -> Self {
        Self { hostile: false, next: Cell::new(0) }
    }

    pub(super) fn hostile() -> Self {
        Self { hostile: true, next: Cell::new(0) }
    }

    /// `text`, or something worse.
    pub(super) fn t(&self, text: &str) -> String {
        if !self.hostile {
            return text.to_owned();
        }
        let turn = self.next.get();
        self.next.set(turn + 1);
        match turn % 9 {
            0 => "<script>alert('a')</script>".into(),
            1 => "\"><img src=x onerror=alert(1)><x-hostile>".into(),
            2 => "</textarea></pre></title></details></table><x-hostile style=position:fixed>".into(),
            3 => "\u{202e}gnp.exe مرحبا بالعالم، هذا نص طويل".into(),
            4 => "W".repeat(5000),
            5 => "👩‍👩‍👧‍👦 🏳️‍🌈 Z̸̢̛̲͊a̷̘͋l̵̠̈g̶͇̀ő̵͜ ﷽".into(),
            6 => String::new(),
            7 => "{{ 7 * 7 }} ${7*7} &lt;b&gt; ' onmouseover='alert(1)".into(),
            _ => "line one\nline two\r\n\ttab \u{7} \u{feff}end".into(),
        }
    }

    pub(super) fn long(&self, text: &str) -> Long {
        Long::line(self.t(text))
    }

    #[allow(clippy::unnecessary_wraps, reason = "it fills fields that are optional")]
    pub(super) fn some(&self, text: &str) -> Option<String> {
        Some(self.t(text))
    }

    pub(super) fn fact(&self, name: &str, text: &str) -> Fact {
        Fact::text(name, self.t(text))
    }

    pub(super) fn code(&self, name: &str, text: &str) -> Fact {
        Fact::code(name, self.t(text))
    }

    /// An id over there, whose address may be anything.
    pub(super) fn reference(&self, text: &str) -> Reference {
        let address = if self.hostile { "javascript:alert(1)" } else { "https://crm.example.com/tickets/99" };
        Reference::new(self.t(text), Some(address))
    }
}

pub(super) const ID: &str = "/dead-letters/01987c3e-4b1f-7d02-9c55-1f0a6be2d310";

/// 09:05 on the day everything is looked at.
pub(super) fn now() -> Timestamp {
    Timestamp::parse("2026-11-29T09:05:12Z").unwrap()
}

pub(super) fn ago(seconds: u64) -> When {
    When::at(now().minus(Duration::from_secs(seconds)), Seen::by_nobody(now()))
}

pub(super) fn ahead(seconds: u64) -> When {
    When::at(now().plus(Duration::from_secs(seconds)), Seen::by_nobody(now()))
}

pub(super) fn layout(words: &Words, title: &str, section: Section) -> Layout {
    let who = SignedIn { name: words.t("anna.k"), role: Role::Operator.into() };
    Layout { open: Some("12".into()), ..Layout::desk(words.t(title), section, who, "c5rf") }
}

pub(super) fn back(words: &Words) -> Reference {
    Reference::here(words.t("Order 10443: create ticket"), ID)
}

pub(super) fn select(
    words: &Words,
    name: &'static str,
    label: &'static str,
    values: &[&str],
    chosen: usize,
) -> Select {
    let choice = |(index, value): (usize, &&str)| Choice {
        value: if index == 0 { String::new() } else { words.t(value) },
        words: words.t(value),
        chosen: index == chosen,
    };
    Select { name, label, choices: values.iter().enumerate().map(choice).collect() }
}

pub(super) fn chip(words: &Words, name: &str, value: &str) -> Chip {
    Chip { name: name.into(), value: words.t(value), without: "/dead-letters?status=open".into() }
}

pub(super) fn knowledge(words: &Words, state: Known) -> Knowledge {
    let detail = match state {
        Known::DoneThere => {
            "The CRM found a ticket with our reference when the engine asked it, and its data is the same."
        }
        Known::Recorded => "Anna.k recorded it as done.",
        Known::NotThere => {
            "The CRM was asked for our reference and has no such ticket. Older answers have all arrived by now."
        }
        Known::CannotTell => {
            "The request arrived, or may have, and no answer came back. The CRM has not been asked since."
        }
        Known::NeverReached => "No connection was made, so nothing can have arrived there.",
    };
    Knowledge {
        destination: words.t("the CRM"),
        state,
        detail: words.t(detail),
        reference: (state == Known::DoneThere).then(|| words.reference("TCK-99")),
        learned: matches!(state, Known::DoneThere | Known::NotThere).then(|| ago(40)),
        lag: (state == Known::NotThere).then(|| words.t("by up to 2 min")),
        ask: None,
    }
}

pub(super) fn request(words: &Words) -> Request {
    let body = "{\n  \"subject\": \"Parcel lost: order 10443\",\n  \"external_ref\": \"7b1c3a52-9b0e-4c55-8f53-0f9d7c0b7f11\",\n  \"customer_id\": \"C-77120\",\n  \"email\": \"a•••@•••.com\",\n  \"raised_at\": \"2026-11-29T09:01:03Z\"\n}";
    Request {
        method: "POST".into(),
        url: words.t("https://crm.example.com/api/v2/tickets"),
        headers: vec![
            ("Content-Type".into(), "application/json".into()),
            ("Idempotency-Key".into(), words.t("7b1c3a52-9b0e-4c55-8f53-0f9d7c0b7f11")),
        ],
        body: Some(Long::block(words.t(body))),
        masked: words.some("1 field is masked. Seeing it needs the right “view_payload”."),
    }
}

pub(super) fn answer(words: &Words) -> Answer {
    Answer {
        status: words.some("503 Service Unavailable"),
        headers: vec![("Retry-After".into(), "30".into()), ("Content-Type".into(), words.t("text/html"))],
        body: Long::block(
            words.t("<html><body><h1>503</h1><p>Upstream is being restarted</p></body></html>"),
        ),
        preview: words.some("The first 1,200 of 6,043 characters."),
        cut: true,
        masked: None,
        whole: Some(Button::act(
            "Download the body as it came",
            "/operations/x/attempts/y/answer",
            vec![("csrf", "x".into())],
        )),
    }
}

pub(super) fn checks(words: &Words, failing: Option<CheckName>) -> Vec<CheckRow> {
    let why = |name| match name {
        CheckName::PayloadUnchanged => {
            "The stored payload is what was accepted on 29 Nov 2026, 09:01:03 UTC."
        }
        CheckName::StepNotCompleted => "No attempt and no finding says that it was done.",
        CheckName::NothingInFlight => "No worker holds it.",
        CheckName::DestinationOpen => "The CRM is not paused and its circuit is closed.",
        CheckName::KeyWindowOpen => {
            "It is honoured for 24 h from the first send: until 30 Nov 2026, 09:01:04 UTC."
        }
        CheckName::OutcomeKnown => "Attempt 5 may have arrived, and nobody has asked the CRM since.",
        CheckName::WithinCaps => "They bind the engine's own retries only.",
        CheckName::Allowed => "You hold the right “replay”.",
    };
    let row =
        |&name: &CheckName| CheckRow { name, passed: failing != Some(name), detail: words.t(why(name)) };
    CheckName::ALL.iter().map(row).collect()
}

pub(super) fn steps(words: &Words) -> Vec<Step> {
    let step = |name: &str, destination: &str, state, attempts: &str| Step {
        name: words.t(name),
        destination: words.t(destination),
        state,
        reference: None,
        attempts: attempts.into(),
        here: state == StepState::Uncertain,
    };
    let mut steps = vec![
        step("reserve credit", "billing", StepState::Completed, "1 attempt"),
        step("create ticket", "the CRM", StepState::Uncertain, "5 attempts"),
        step("mail the customer", "mail", StepState::Pending, "not tried yet"),
    ];
    steps[0].reference = Some(words.reference("crd_81AF"));
    steps
}
