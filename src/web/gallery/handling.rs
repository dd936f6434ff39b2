//! The pages that look after one dead letter: its small forms, corrections, approvals.

use super::acts::{SENTENCE, stakes};
use super::samples::{ID, Words, ago, back, layout};
use crate::domain::attempt::RequestState;
use crate::web::page::Section;
use crate::web::pages::approval::{ApprovalPage, Decide, Offer};
use crate::web::pages::approvals::{ApprovalsPage, Line};
use crate::web::pages::correct::{ComparePage, CorrectPage, Edit, Input, Shut};
use crate::web::tell::change::Row;
use crate::web::tell::fields::Kind;
use crate::web::view::{Button, Field, Long, Reference};

fn page(w: &Words, edit: Result<Edit, Shut>, problems: Vec<(String, String)>) -> CorrectPage {
    CorrectPage {
        typed: Vec::new(),
        layout: layout(w, "Correct", Section::DeadLetters),
        back: back(w),
        action: format!("{ID}/correct"),
        action_id: "01987c3e".into(),
        sentence: w.t(SENTENCE),
        edit,
        key: Field::of(w.t("ticket:10443:v2")),
        problems,
    }
}

pub(super) fn correct(w: &Words) -> CorrectPage {
    let input = |number: usize, label: &str, kind, private, field| Input {
        id: format!("field-{number}"),
        name: format!("f/{number}"),
        label: w.t(label),
        kind,
        private,
        field,
    };
    let inputs = vec![
        input(1, "order_id", Kind::Text, false, Field::of(w.t("10443"))),
        input(2, "amount", Kind::Number, false, Field::wrong(w.t("lots"), w.t("A number is needed."))),
        input(3, "gift", Kind::Bool, false, Field::of("true")),
        input(4, "note", Kind::Null, false, Field::default()),
        input(5, "text", Kind::Lines, false, Field::of(w.t("Parcel lost.\nPlease call."))),
        input(6, "customer.email", Kind::Text, true, Field::default()),
    ];
    let problems = vec![("field-2".to_owned(), w.t("amount: a number is needed."))];
    page(w, Ok(Edit::Fields(inputs, format!("{ID}/correct?as=json"))), problems)
}

pub(super) fn correct_json(w: &Words) -> CorrectPage {
    let field = Field::of(w.t("{\n  \"items\": [1, 2]\n}"));
    page(w, Ok(Edit::Json(field, 2)), Vec::new())
}

pub(super) fn correct_shut(w: &Words) -> CorrectPage {
    let shut = Shut {
        why: w.t("It may have happened, so a corrected operation could be a second effect."),
        instead: vec![
            Button::new("Resolve", format!("{ID}/resolve")),
            Button::locked("Override", "Needs the right \u{201c}override\u{201d}."),
        ],
    };
    page(w, Err(shut), Vec::new())
}

pub(super) fn compare(w: &Words) -> ComparePage {
    let row = |label: &str, old: Option<String>, new: Option<String>| Row {
        changed: old != new,
        label: w.t(label),
        old,
        new,
    };
    ComparePage {
        unlisted: 1_234,
        layout: layout(w, "Compare the correction", Section::DeadLetters),
        back: back(w),
        action: format!("{ID}/correct"),
        action_id: "01987c3e".into(),
        rows: vec![
            row("order_id", w.some("10443"), w.some("10443")),
            row("amount", w.some("1250.00"), w.some("125.00")),
            row("gift", w.some("true"), None),
        ],
        old_key: w.t("ticket:10443:v1"),
        new_key: w.t("ticket:10443:v1:c1"),
        why_key: "The key is taken by the operation as it is.",
        carried: vec![("f/amount".into(), w.t("125.00"))],
        reason: Field::wrong(w.t(""), w.t("Say why: whoever looks at this later has only your words.")),
    }
}

pub(super) fn approvals(w: &Words, some: bool) -> ApprovalsPage {
    let line = |state, decided| Line {
        href: "/approvals/01987c3e".into(),
        what: w.t("order 10443 \u{b7} customer C-77120"),
        kind: w.t("create-ticket"),
        mode: "a new key, for a second effect",
        by: w.t("anna.k"),
        at: ago(400),
        reason: w.long("The CRM lost it, and the customer waits."),
        state,
        decided,
        word: w.some("They have it already.").map(Long::line),
    };
    let decided = |state| line(state, Some((w.t("olga"), ago(90))));
    let states = [RequestState::Approved, RequestState::Refused, RequestState::Stale];
    ApprovalsPage {
        layout: layout(w, "Approvals", Section::Approvals),
        everybody: some,
        waiting: if some { vec![line(RequestState::Waiting, None)] } else { Vec::new() },
        decided: if some { states.map(decided).into() } else { Vec::new() },
    }
}

pub(super) fn approval(w: &Words) -> Vec<ApprovalPage> {
    let decide = |stale| {
        Offer::Decide(Box::new(Decide {
            action_ids: ["01987c3e".into(), "01987c3f".into()],
            word: Field::of(w.t("")),
            confirm: Some("/confirm?next=%2Fapprovals%2F01987c3e".into()),
            reason: Field::wrong(w.t(""), w.t("Say why.")),
            stale,
        }))
    };
    let page = |state, offer| ApprovalPage {
        layout: layout(w, "Approve an override", Section::Approvals),
        letter: Reference::here(w.t("order 10443: create ticket"), ID),
        action: "/approvals/01987c3e".into(),
        state,
        by: w.t("anna.k"),
        at: ago(400),
        reason: w.long("The CRM lost it, and the customer waits."),
        mode: "a new key, for a second effect",
        stakes: stakes(w),
        offer,
    };
    let take_back = Offer::TakeBack { action_id: "01987c3e".into(), stale: None };
    vec![
        page(RequestState::Waiting, decide(None)),
        page(RequestState::Waiting, decide(w.some("The dead letter is resolved meanwhile."))),
        page(RequestState::Waiting, take_back),
        page(RequestState::Waiting, Offer::Nothing(w.t("Needs the right \u{201c}approve\u{201d}."))),
        page(RequestState::Refused, Offer::Decided(w.t("olga"), ago(9), Some(w.long("Call them first.")))),
    ]
}
