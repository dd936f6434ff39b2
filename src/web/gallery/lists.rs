//! The pages that are mostly a table.

use super::samples::{ID, Words, ago, chip, layout, select};
use crate::domain::actor::Role;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use crate::domain::operation::{OperationState, Severity};
use crate::web::page::{Flash, FlashKind, Section};
use crate::web::pages::audit::{AuditPage, AuditRow};
use crate::web::pages::dead_letters::{DeadLetterRow, DeadLettersPage};
use crate::web::pages::operations::{OperationRow, OperationsPage};
use crate::web::pages::people::{PeoplePage, PersonRow};
use crate::web::pages::triage::{CauseRow, Count, Figure, Spark, Split, TriagePage, Urgent, UrgentKind};
use crate::web::view::{Field, Pager, Reference};

fn count(number: u32) -> Count {
    Count { shown: number.to_string(), href: (number > 0).then(|| "/dead-letters?cause=9f".into()) }
}

fn cause(w: &Words, cause: &str, place: (&str, &str), counts: [u32; 4], split: [u32; 3]) -> CauseRow {
    let split = Certainty::ALL.iter().zip(split).filter(|(_, n)| *n > 0);
    CauseRow {
        cause: w.t(cause),
        step: w.t(place.0),
        destination: w.t(place.1),
        href: "/dead-letters?cause=9f2c".into(),
        counts: counts.map(count),
        fresh: None,
        split: split.map(|(&certainty, n)| Split { certainty, count: count(n) }).collect(),
        first: ago(3600 * 30),
        last: ago(240),
        owner: None,
        note: None,
    }
}

pub(super) fn triage(w: &Words) -> TriagePage {
    let mut causes = vec![
        cause(
            w,
            "The CRM took longer than 10 s to answer",
            ("create ticket", "the CRM"),
            [3, 3, 5, 5],
            [0, 5, 0],
        ),
        cause(w, "The bank refused: account closed", ("charge card", "payments"), [0, 2, 4, 4], [4, 0, 0]),
        cause(w, "Our credential was not accepted", ("mail the customer", "mail"), [1, 1, 1, 1], [1, 0, 0]),
        cause(
            w,
            "The answer came back cut; the invoice exists",
            ("post invoice", "ledger"),
            [0, 0, 1, 2],
            [0, 1, 1],
        ),
    ];
    causes[0].fresh = Some(count(2));
    causes[0].owner = w.some("anna.k");
    causes[1].note =
        w.some("Bank confirmed on the phone: these stay closed. Ask the customer for another card.");
    causes[1].owner = w.some("payments team");
    let urgent = |kind, text: &str, when| Urgent { kind, text: w.t(text), href: ID.into(), when };
    let spark = |values: &[u32]| Some(Spark::of(values, "Last 24 hours, hour by hour: 0 to 7"));
    TriagePage {
        layout: layout(w, "Triage", Section::Triage),
        figures: vec![
            Figure {
                label: "Open",
                value: "12".into(),
                note: w.some("3 more than yesterday"),
                href: Some("/dead-letters?status=open".into()),
                mark: None,
                spark: spark(&[4, 4, 5, 5, 5, 7, 7, 6, 6, 8, 9, 9, 12]),
            },
            Figure {
                label: "May have completed",
                value: "6".into(),
                note: w.some("someone may already be charged"),
                href: Some("/dead-letters?certainty=may_have_completed".into()),
                mark: Some(Certainty::MayHaveCompleted),
                spark: spark(&[0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 6]),
            },
            Figure {
                label: "Oldest open",
                value: "3 d".into(),
                note: w.some("refund for order 10021"),
                href: Some(ID.into()),
                mark: None,
                spark: None,
            },
            Figure {
                label: "Arrived today",
                value: "4".into(),
                note: w.some("usual by now: 1"),
                href: Some("/dead-letters?from=2026-11-29".into()),
                mark: None,
                spark: spark(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 3]),
            },
        ],
        urgent: vec![
            urgent(
                UrgentKind::KeyWindow,
                "The mail provider forgets our key in 14 min: order 10440 may have been mailed",
                Some(super::samples::ahead(840)),
            ),
            urgent(UrgentKind::Critical, "Payout 5512 to Berger & Söhne was refused", Some(ago(1500))),
            urgent(
                UrgentKind::Paused,
                "“mail” is paused: our credential was not accepted. 31 operations wait",
                Some(ago(2200)),
            ),
            urgent(UrgentKind::Yours, "Order 10443: the ticket may exist. Ask the CRM", Some(ago(240))),
        ],
        causes,
        handled: vec![],
        unused: false,
    }
}

pub(super) fn triage_quiet(w: &Words) -> TriagePage {
    let figure = |label, value: &str| Figure {
        label,
        value: value.into(),
        note: None,
        href: None,
        mark: None,
        spark: None,
    };
    let mut page = triage(w);
    page.layout.open = Some("0".into());
    page.figures = vec![
        figure("Open", "0"),
        figure("May have completed", "0"),
        figure("Oldest open", "none"),
        figure("Arrived today", "0"),
    ];
    page.urgent.clear();
    page.causes.clear();
    page.handled = vec![
        w.t("1,204 operations were completed today."),
        w.t("7 dead letters were closed since yesterday; the last one 2 h ago by anna.k."),
    ];
    page
}

pub(super) fn dead_letters(w: &Words, rows: usize) -> DeadLettersPage {
    use Certainty as C;
    use NextAction as N;
    let kinds = [
        (
            C::MayHaveCompleted,
            "The CRM took longer than 10 s to answer “create ticket”. The ticket may exist.",
            "create-ticket",
            "order 10443 · customer C-77120",
            "the CRM",
            N::CheckDestination,
            Severity::High,
        ),
        (
            C::DefinitelyFailed,
            "Payments refused “charge card”: the account is closed. Nothing was charged.",
            "charge-order",
            "order 10439 · customer C-10208",
            "payments",
            N::FixData,
            Severity::Normal,
        ),
        (
            C::DefinitelyFailed,
            "Mail did not accept our credential for “mail the customer”. Nothing was sent.",
            "ship-notice",
            "order 10431",
            "mail",
            N::FixPermission,
            Severity::Normal,
        ),
        (
            C::CompletedAtDestination,
            "The ledger posted the invoice, and its answer was lost. It was found there as INV-2291.",
            "post-invoice",
            "invoice 2291 · customer C-5",
            "ledger",
            N::Decide,
            Severity::Low,
        ),
        (
            C::DefinitelyFailed,
            "No connection to the warehouse in 5 attempts. Nothing was sent.",
            "reserve-stock",
            "order 10428 · sku 8-112-B",
            "warehouse",
            N::Replay,
            Severity::Critical,
        ),
    ];
    let row = |index: usize| {
        let (certainty, sentence, kind, ids, destination, next, severity) = kinds[index % kinds.len()];
        DeadLetterRow {
            href: ID.into(),
            certainty,
            sentence: w.t(sentence),
            kind: w.t(kind),
            ids: w.t(ids),
            destination: w.t(destination),
            attempts: "5 tries".into(),
            opened: ago(240 * (index as u64 + 1).pow(2)),
            owner: (index % 3 == 0).then(|| w.t("anna.k")),
            next,
            severity,
            status: if index == 6 { DeadLetterStatus::Replaying } else { DeadLetterStatus::Open },
        }
    };
    DeadLettersPage {
        layout: layout(w, "Dead letters", Section::DeadLetters),
        count: w.t(if rows == 0 { "none match" } else { "12 open, 2 of them being replayed" }),
        search: w.t(""),
        first: vec![
            select(w, "status", "Status", &["Any", "Open", "Being replayed", "Resolved"], 1),
            select(
                w,
                "certainty",
                "Certainty",
                &["Any", "Definitely failed", "May have completed", "Completed there"],
                0,
            ),
            select(
                w,
                "next_action",
                "Next action",
                &["Any", "Ask the destination", "Replay", "Fix the data"],
                0,
            ),
        ],
        rest: vec![
            select(w, "type", "Type", &["Any", "create-ticket", "charge-order"], 0),
            select(w, "destination", "Destination", &["Any", "the CRM", "payments"], 0),
            select(w, "cause", "Cause", &["Any", "The CRM took longer than 10 s to answer"], 0),
            select(w, "severity", "Severity", &["Any", "Low", "Normal", "High", "Critical"], 0),
            select(w, "assignee", "Assignee", &["Any", "Nobody", "anna.k"], 0),
        ],
        rest_set: usize::from(rows == 0),
        chips: if rows == 0 {
            vec![chip(w, "Status", "Open"), chip(w, "Destination", "the CRM"), chip(w, "Text", "order 99999")]
        } else {
            vec![chip(w, "Status", "Open")]
        },
        rows: (0..rows).map(row).collect(),
        pager: Pager {
            newer: None,
            older: (rows > 0).then(|| "/dead-letters?cursor=b64".into()),
            shown: if rows > 0 { format!("{rows} shown, newest first") } else { String::new() },
        },
        handled: w.some("7 were closed in the last 7 days."),
    }
}

pub(super) fn operations(w: &Words, found: bool) -> OperationsPage {
    let row =
        |state, kind: &str, ids: &str, key: &str, progress: &str, reference: Option<&str>| OperationRow {
            href: "/operations/01987c3e-4b1f-7d02-9c55-1f0a6be2d310".into(),
            state,
            kind: w.t(kind),
            ids: w.t(ids),
            key: w.t(key),
            progress: progress.into(),
            references: reference.map(|r| w.reference(r)).into_iter().collect(),
            received: ago(600),
        };
    let rows = vec![
        row(
            OperationState::Uncertain,
            "create-ticket",
            "order 10443 · customer C-77120",
            "ticket:10443:v1",
            "1 of 3 steps done",
            Some("crd_81AF"),
        ),
        row(
            OperationState::Completed,
            "charge-order",
            "order 10443 · customer C-77120",
            "charge:10443",
            "1 of 1 step done",
            Some("ch_3PxK2e"),
        ),
        row(
            OperationState::Running,
            "ship-notice",
            "order 10443",
            "notice:10443:2026-11-29",
            "0 of 1 step done",
            None,
        ),
        row(
            OperationState::Pending,
            "post-invoice",
            "invoice 2291",
            "invoice:2291",
            "0 of 2 steps done",
            None,
        ),
        row(
            OperationState::Failed,
            "reserve-stock",
            "order 10443 · sku 8-112-B",
            "stock:10443:8-112-B",
            "0 of 1 step done",
            None,
        ),
    ];
    OperationsPage {
        layout: layout(w, "Operations", Section::Operations),
        search: w.t(if found { "10443" } else { "order 99999" }),
        filters: vec![select(w, "state", "State", &["Any", "Completed", "Failed"], 0), select(w, "type", "Type", &["Any", "create-ticket"], 0)],
        chips: vec![chip(w, "Text", "10443")],
        rows: if found { rows } else { vec![] },
        pager: Pager { shown: if found { "5 shown, newest first".into() } else { String::new() }, ..Pager::default() },
        looked: vec![w.t("Keys, correlation ids, business ids and references of 48,120 operations."), w.t("Back to 1 Aug 2026, when the first one was received. Payloads older than 90 days are erased and were not searched.")],
    }
}

pub(super) fn audit(w: &Words) -> AuditPage {
    let row =
        |seconds, who: &str, what: &str, target: bool, why: Option<&str>, result: &str, refused| AuditRow {
            at: ago(seconds),
            who: w.t(who),
            what: w.t(what),
            target: target.then(|| Reference::here(w.t("Order 10443"), ID)),
            why: why.map(|text| w.long(text)),
            from: w.some("10.4.0.17"),
            result: w.t(result),
            refused,
        };
    let mut page_layout = layout(w, "Audit", Section::Audit);
    page_layout.flash =
        Some(Flash { kind: FlashKind::Info, text: w.t("2 filters were not understood and are left out.") });
    AuditPage {
        layout: page_layout,
        chain: w.some("The chain was verified 4 min ago: 18,204 entries, none altered."),
        actor: Field::of(w.t("")),
        operation: Field::of(w.t("")),
        from: Field::of("2026-11-22"),
        to: Field::wrong(w.t("2026-13-40"), w.t("“2026-13-40” is no day; write it as 2026-11-29.")),
        action: select(w, "action", "Action", &["Any", "Sign-in", "Replay", "Override"], 0),
        chips: vec![],
        rows: vec![
            row(
                60,
                "anna.k",
                "asked for a replay of",
                true,
                Some("Customer called; the CRM has no ticket."),
                "accepted",
                false,
            ),
            row(300, "token:shop", "handed in", true, None, "stored", false),
            row(
                900,
                "ben.o",
                "asked for an override of",
                true,
                Some(
                    "Carrier says that the parcel is back, so a second ticket does no harm. Agreed with Jo, who owns the queue, on the phone at 08:40; she will close whichever of the two is opened later, and has told the night shift so that nobody answers the customer twice about the same parcel.",
                ),
                "refused: needs the right “override”",
                true,
            ),
            row(7200, "cli:root", "made the account of ben.o, an operator", false, None, "done", false),
            row(7300, "anna.k", "signed in", false, None, "done", false),
        ],
        pager: Pager {
            newer: None,
            older: Some("/audit?cursor=x".into()),
            shown: "5 shown, newest first".into(),
        },
    }
}

pub(super) fn people(w: &Words) -> PeoplePage {
    let row = |name: &str, role, active, seen, own| PersonRow {
        name: w.t(name),
        role,
        active,
        created: ago(86_400 * 40),
        seen,
        own,
    };
    let mut page_layout = layout(w, "People", Section::People);
    if let Some(who) = page_layout.signed_in.as_mut() {
        who.role = Role::Admin;
    }
    PeoplePage {
        layout: page_layout,
        rows: vec![
            row("anna.k", Role::Admin, true, Some(ago(30)), true),
            row("ben.o", Role::Operator, true, Some(ago(90_000)), false),
            row("carla", Role::Approver, true, None, false),
            row("old-intern", Role::Viewer, false, Some(ago(86_400 * 33)), false),
        ],
    }
}
