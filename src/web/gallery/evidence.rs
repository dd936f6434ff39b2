//! The pages that tell what happened.

use super::samples::{ID, Words, ago, ahead, answer, checks, knowledge, layout, request, steps};
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, Resolution};
use crate::domain::lookup;
use crate::domain::operation::{OperationState, Severity};
use crate::domain::verdict::{CheckName, VerdictKind};
use crate::web::known::Known;
use crate::web::page::{Flash, FlashKind, Section};
use crate::web::pages::dead_letter::{Closed, DeadLetterPage, Payload};
use crate::web::pages::handling::{Assign, Form, Handling, Snooze, Snoozed};
use crate::web::pages::operation::{Episode, Export, OperationPage};
use crate::web::pages::shown::{self, Private};
use crate::web::pages::verdict::VerdictView;
use crate::web::timeline::{Attempt, Entry, Finding, What};
use crate::web::view::{Button, Fact, FactValue, Field, Long, Reference};

fn attempt(w: &Words, number: u32, outcome: Outcome, sentence: &str) -> Attempt {
    Attempt {
        number: number.to_string(),
        step: w.t("create ticket"),
        destination: w.t("the CRM"),
        cause: Cause::Automatic,
        by: w.t("engine"),
        outcome,
        sentence: w.t(sentence),
        took: Some("10 s".into()),
        headline: Some(w.long("no answer within 10 s")),
        reference: None,
        generation: None,
        sent: Some(request(w)),
        came_back: None,
        wait: None,
    }
}

fn timeline(w: &Words) -> Vec<Entry> {
    let mut first = attempt(w, 1, Outcome::NotSent, "No connection could be made, so nothing was sent.");
    first.headline = Some(w.long("connection refused"));
    first.took = Some("12 ms".into());
    first.sent = None;
    first.wait =
        w.some("Waits 7 s: a random part of 10 s, so that many operations do not come back at once.");
    let mut second = attempt(w, 2, Outcome::Throttled, "The CRM was too busy and did not take it.");
    second.headline = Some(w.long("503 Service Unavailable"));
    second.took = Some("340 ms".into());
    second.came_back = Some(answer(w));
    second.wait = w.some("Waits 30 s, as the CRM asked in Retry-After. This uses up no attempt.");
    let third = attempt(
        w,
        3,
        Outcome::Uncertain,
        "The CRM got the request and did not answer in time. The ticket may exist.",
    );
    let mut fourth = attempt(w, 4, Outcome::Running, "Sent, and not yet answered.");
    fourth.cause = Cause::Replay;
    fourth.by = w.t("anna.k");
    fourth.took = None;
    fourth.headline = None;
    fourth.generation = w.some("second key of this step");
    let asked = Finding {
        finding: Some(lookup::Finding::Failed),
        sentence: w.t("It could not say: the lookup itself timed out."),
        reference: None,
        by: w.t("anna.k"),
        sent: Some(request(w)),
        came_back: Some(answer(w)),
    };
    let entry = |n: u32, seconds, what| Entry { anchor: format!("e{n}"), at: ago(seconds), what };
    vec![
        entry(1, 249, What::Received { text: w.t("Handed in by token:shop under the key ticket:10443:v1, after the carrier reported the parcel lost.") }),
        entry(2, 248, What::Attempt(Box::new(first))),
        entry(3, 241, What::Attempt(Box::new(second))),
        entry(4, 210, What::Attempt(Box::new(third))),
        entry(5, 200, What::Event { text: w.t("Put before a person: it may have happened, and the CRM must be asked first.") }),
        entry(6, 120, What::Note { by: w.t("ben.o"), text: w.long("Customer called at 09:03. Told them we are on it.") }),
        entry(7, 90, What::Finding(Box::new(asked))),
        entry(8, 40, What::Action { by: w.t("anna.k"), text: w.t("asked for a replay"), reason: Some(w.long("Nothing in the CRM under this order.")) }),
        entry(9, 38, What::Attempt(Box::new(fourth))),
        entry(10, 37, What::Gap { text: w.t("1,970 records between are not shown."), act: "Show those before here", href: "/operations/x?before=1".into() }),
    ]
}

fn facts(w: &Words) -> Vec<Fact> {
    vec![
        w.fact("Order", "10443"),
        w.fact("Customer", "C-77120"),
        w.fact("Type", "create-ticket"),
        w.code("Key", "ticket:10443:v1"),
        w.code("Correlation id", "req-5e21b9a4"),
        Fact::link("Credit", w.reference("crd_81AF")),
        w.fact("Owner", "support"),
        Fact::link(
            "Runbook",
            Reference::new(w.t("Tickets that may exist"), Some("https://wiki.example.com/tickets")),
        ),
        Fact::time("Received", ago(249)),
    ]
}

pub(super) fn dead_letter(w: &Words) -> DeadLetterPage {
    let needs = "Needs the right “override”, which approvers have. You are operator.";
    DeadLetterPage {
        layout: layout(w, "Order 10443: create ticket", Section::DeadLetters),
        certainty: Certainty::MayHaveCompleted,
        status: DeadLetterStatus::Open,
        severity: Severity::High,
        opened: ago(200),
        sentence: w.long("The CRM took longer than 10 s to answer “create ticket”. The ticket may exist."),
        next_step: w.t("Safest next step: ask the CRM whether it has the ticket."),
        overridden: None,
        verdict: None,
        closed: None,
        knowledge: knowledge(w, Known::CannotTell),
        buttons: vec![
            Button::locked("Ask the CRM first", "Asking at a click is not built in yet; the engine asks by itself in 2 min."),
            Button::new("Record as completed", format!("{ID}/resolve?resolution=completed_at_destination")),
            Button::new("Resolve", format!("{ID}/resolve")),
        ],
        handling: handling(w),
        more: vec![Button::locked("Override", needs), Button::new("See the replay form", format!("{ID}/replay"))],
        steps: steps(w),
        timeline: timeline(w),
        facts: facts(w),
        promise: vec![
            w.fact("It promises", "At most one effect under our key, within the key's window; outside it, it can be asked."),
            Fact { name: "Key window".into(), value: FactValue::TimeWith(ahead(86_000), w.t("Closes")) },
            w.fact("Lookup", "By our reference; answers may lag by up to 2 min"),
            w.code("Key sent there", "7b1c3a52-9b0e-4c55-8f53-0f9d7c0b7f11"),
        ],
        payload: Payload {
            text: Some(Long::block(w.t("{\n  \"order_id\": 10443,\n  \"version\": 1,\n  \"subject\": \"Parcel lost\",\n  \"customer_id\": \"C-77120\",\n  \"email\": \"a•••@•••.com\"\n}"))),
            note: w.some("1 field is masked."),
            whole: Some(Button::locked("Download it whole", needs)),
        },
        private: Private::Hidden(shown("unmasked")),
        related: vec![Reference::here(w.t("charge-order · order 10443 · completed"), "/operations/01987c3e-4b1f-7d02-9c55-1f0a6be2d310"), Reference::here(w.t("An earlier episode, resolved 2 d ago"), ID)],
        operation: Reference::here("The whole operation, to print", "/operations/01987c3e-4b1f-7d02-9c55-1f0a6be2d310"),
    }
}

fn handling(w: &Words) -> Handling {
    let form =
        |path: &str, field| Form { action: format!("{ID}/{path}"), action_id: "01987c3e".into(), field };
    let at_once = |words: &str, path: &str| {
        Button::act(
            words,
            format!("{ID}/{path}"),
            vec![("csrf", "c5rf".into()), ("action_id", "01987c3e".into())],
        )
    };
    Handling {
        live: true,
        assignee: w.some("olga"),
        mine: Some(at_once("Assign to me", "assign")),
        snoozed: Some(Snoozed {
            until: ahead(50_000),
            by: w.some("olga"),
            wake: Some(at_once("Wake up now", "snooze")),
        }),
        assign: Some(Assign {
            form: form("assign", Field::default()),
            people: vec![(w.t("anna.k"), false), (w.t("olga"), true)],
        }),
        snooze: Some(Snooze {
            form: form("snooze", Field::default()),
            offers: vec![
                ("1h".into(), "1 hour".into()),
                ("2026-11-30T09:00".into(), "Tomorrow, 9:00".into()),
            ],
            earliest: "2026-11-29T09:05".into(),
            latest: "2027-02-27T09:05".into(),
            zone: "UTC",
        }),
        note: Some(form("note", Field::wrong(w.t(""), w.t("A note says something.")))),
        reopen: None,
        locked: Vec::new(),
    }
}

/// Right after a replay was asked for and refused.
pub(super) fn dead_letter_asked(w: &Words) -> DeadLetterPage {
    let mut page = dead_letter(w);
    page.layout.flash = Some(Flash { kind: FlashKind::Good, text: w.t("Your note was added.") });
    page.knowledge = knowledge(w, Known::NotThere);
    page.buttons[0] = Button::new("Replay: the CRM never saw it", format!("{ID}/replay"));
    page.verdict = Some(VerdictView {
        kind: VerdictKind::LookUpFirst,
        reason: w.t("Attempt 3 may have created the ticket. The CRM can be asked, so it has to be asked before anything is sent."),
        checks: checks(w, Some(CheckName::OutcomeKnown)),
        run: None,
        known: None,
        helps: vec![Button::new("Back to the card", "#know")],
    });
    page
}

pub(super) fn dead_letter_closed(w: &Words) -> DeadLetterPage {
    let mut page = dead_letter(w);
    page.certainty = Certainty::CompletedAtDestination;
    page.status = DeadLetterStatus::Resolved;
    page.severity = Severity::Normal;
    page.knowledge = knowledge(w, Known::DoneThere);
    page.closed = Some(Closed {
        resolution: Some(Resolution::CompletedAtDestination),
        by: w.t("anna.k"),
        at: ago(30),
        reason: Some(w.long("Found as TCK-99 in the CRM; told the customer.")),
        then: w.some("This step is not sent again. The operation went on with “mail the customer” at Mail."),
        correction: None,
    });
    page.overridden =
        w.some("Sent again by anna.k in spite of a check: the first send may also have happened.");
    page.buttons = vec![];
    page.more = vec![];
    page.handling = Handling {
        note: page.handling.note,
        reopen: Some(Form {
            action: format!("{ID}/reopen"),
            action_id: "01987c3e".into(),
            field: Field::wrong(w.t(""), w.t("Say why: whoever looks at this later has only your words.")),
        }),
        ..Handling::default()
    };
    page.private = Private::None;
    page.payload = Payload {
        text: None,
        note: w.some("The payload was erased on 28 Feb 2027, 90 days after it was received."),
        whole: None,
    };
    page
}

fn shown(act: &str) -> shown::Form {
    shown::Form { href: format!("/operations/x/{act}"), action_id: "01987c3e".into(), letter: None }
}

pub(super) fn operation(w: &Words) -> OperationPage {
    OperationPage {
        layout: layout(w, "Order 10443: create-ticket", Section::Operations),
        private: Private::Shown(shown("masked"), ahead(540)),
        export: Export {
            href: "/operations/x/evidence.json".into(),
            lacks: None,
            private: true,
            hidden: false,
        },
        state: OperationState::Uncertain,
        sentence: w.t("We sent it to the CRM, and cannot tell yet whether the ticket exists."),
        ask: Some(Button::act(w.t("Ask the CRM now"), "/operations/x/ask", vec![("csrf", "x".into())])),
        kind: w.t("create-ticket"),
        key: w.t("ticket:10443:v1"),
        facts: facts(w),
        steps: steps(w),
        timeline: timeline(w),
        payload: Payload {
            text: Some(Long::block(w.t("{\n  \"order_id\": 10443\n}"))),
            note: None,
            whole: None,
        },
        episodes: vec![Episode {
            href: ID.into(),
            status: DeadLetterStatus::Open,
            certainty: Certainty::MayHaveCompleted,
            opened: ago(200),
        }],
        related: vec![Reference::here(
            w.t("charge-order · order 10443 · completed"),
            "/operations/01987c3e-4b1f-7d02-9c55-1f0a6be2d310",
        )],
        printed: w.t("Seen by anna.k on 29 Nov 2026, 09:05:12 UTC."),
    }
}
