//! The pages that are mostly a table.

use super::samples::{ID, Words, ago, chip, layout, select};
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use crate::domain::operation::Severity;
use crate::web::listing::{Choice, Pager};
use crate::web::page::Section;
use crate::web::pages::cause::{Bar, CausePage, Deed};
use crate::web::pages::dead_letters::{Act, Acts, DeadLetterRow, DeadLettersPage, Keep, View};
use crate::web::pages::triage::{
    CauseRow, Count, Figure, MoreCauses, Spark, Split, TriagePage, Urgent, UrgentKind,
};
use crate::web::view::{Button, Field};

fn count(number: u32) -> Count {
    Count { shown: number.to_string(), href: (number > 0).then(|| "/dead-letters?cause=9f".into()) }
}

fn cause(w: &Words, cause: &str, place: (&str, &str), counts: [u32; 4], split: [u32; 3]) -> CauseRow {
    let split = Certainty::ALL.iter().zip(split).filter(|(_, n)| *n > 0);
    CauseRow {
        cause: w.t(cause),
        step: w.t(place.0),
        destination: w.t(place.1),
        href: "/causes/9f2c4e1a0b7d5511".into(),
        trend: Some(Spark::of(
            &[0, 0, 1, 0, 2, 5, 3],
            "11 in the last 7 days, 3 of them in the last 24 hours",
        )),
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
        more_causes: Some(MoreCauses {
            words: w.t("The 50 largest of 81 causes."),
            all: Some("/?causes=all"),
        }),
        snoozed: Some(count(3)),
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
    page.more_causes = None;
    page.handled = vec![
        w.t("1,204 operations were completed today."),
        w.t("7 dead letters were closed since yesterday; the last one 2 h ago by anna.k."),
    ];
    page
}

fn dead_letter(w: &Words, index: usize) -> DeadLetterRow {
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
    let (certainty, sentence, kind, ids, destination, next, severity) = kinds[index % kinds.len()];
    DeadLetterRow {
        id: ID.rsplit('/').next().unwrap_or_default().into(),
        href: ID.into(),
        certainty,
        sentence: w.t(sentence),
        kind: w.t(kind),
        ids: w.t(ids),
        destination: w.t(destination),
        attempts: "5 tries".into(),
        opened: ago(240 * (index as u64 + 1).pow(2)),
        assignee: (index.is_multiple_of(3)).then(|| w.t("anna.k")),
        team: (index % 3 == 1).then(|| w.t("support")),
        snoozed: (index == 4).then(|| super::samples::ahead(7200)),
        next,
        severity,
        status: if index == 6 { DeadLetterStatus::Replaying } else { DeadLetterStatus::Open },
    }
}

fn acts(w: &Words, locked: bool) -> Acts {
    Acts {
        buttons: vec![
            Act { value: "replay", words: "Replay…" },
            Act { value: "lookup", words: "Ask the destination…" },
            Act { value: "resolve", words: "Resolve…" },
            Act { value: "assign", words: "Assign…" },
        ],
        all: w.some("All 14 that match"),
        pairs: vec![("status", "open".into()), ("search", w.t("order 10443"))],
        needs: locked.then(|| w.t("Needs the right “bulk”, which operators have. You are viewer.")),
    }
}

pub(super) fn dead_letters_locked(w: &Words) -> DeadLettersPage {
    DeadLettersPage { acts: Some(acts(w, true)), ..dead_letters(w, 3) }
}

/// Rows as long as the page lets them be.
pub(super) fn dead_letters_long(rows: usize) -> DeadLettersPage {
    let mut page = dead_letters(&Words::real(), rows);
    for row in &mut page.rows {
        row.sentence = "“Reserve” at the warehouse ".repeat(8).chars().take(144).collect();
        row.kind = "reserve-stock-at-warehouse-n".into();
        row.ids =
            "order 1044310443104431044310443 · customer C-7712077120771207712077120 · sku 8-112-B-999".into();
        row.destination = "Warehouse of the north, no 7".into();
        (row.assignee, row.team) = (Some("annabelle.von.hohenstaufen.k".into()), None);
        row.severity = Severity::Critical;
        row.status = DeadLetterStatus::Open;
        row.next = NextAction::CheckDestination;
        row.certainty = Certainty::CompletedAtDestination;
    }
    page
}

pub(super) fn cause_page(w: &Words, waits: bool) -> CausePage {
    let mut row = cause(
        w,
        "The CRM took longer than 10 s to answer “create ticket”",
        ("create ticket", "the CRM"),
        if waits { [3, 12, 20, 31] } else { [0; 4] },
        if waits { [0, 30, 1] } else { [0; 3] },
    );
    row.fresh = Some(count(if waits { 2 } else { 0 }));
    row.note = w.some("The CRM is being moved to new machines until noon. Ask it before you replay.");
    row.owner = w.some("anna.k");
    let bar = |index: usize| Bar { x: index * 10, y: 60 - index as u64 * 2, height: index as u64 * 2 };
    let choice = |name: &str, chosen| Choice { value: w.t(name), words: w.t(name), chosen };
    let deed = |what: &str, text: Option<&str>| Deed {
        by: w.t("anna.k"),
        what: w.t(what),
        text: text.map(|text| w.long(text)),
        at: ago(4000),
    };
    CausePage {
        layout: layout(w, "The CRM took longer than 10 s to answer", Section::Triage),
        row,
        ever: w.t("112 in all, counting closed ones."),
        bars: (0..28).map(bar).collect(),
        trend: w.t("56 came in the last 7 days, at most 9 within six hours."),
        days: vec![("In the last 24 hours".into(), 12), ("24 to 48 hours ago".into(), 8)],
        buttons: if waits {
            vec![
                Button::new("Replay all, one first…", "/bulk/new?action=replay&all=1&canary=1"),
                Button::locked("Resolve all…", w.t("Needs the right “bulk”.")),
            ]
        } else {
            Vec::new()
        },
        people: vec![choice("Nobody", false), choice("anna.k", true)],
        note: if waits { Field::of(w.t("Ask it first.")) } else { Field::wrong(w.t("x"), w.t("Too long.")) },
        needs: None,
        history: if waits {
            vec![deed("wrote", Some("Ask it before you replay.")), deed("gave it to anna.k", None)]
        } else {
            Vec::new()
        },
        members: (0..if waits { 3 } else { 0 }).map(|index| dead_letter(w, index)).collect(),
        path: "/causes/9f2c4e1a0b7d5511".into(),
        action_ids: ["a1".into(), "a2".into()],
    }
}

pub(super) fn dead_letters(w: &Words, rows: usize) -> DeadLettersPage {
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
        keep: Keep {
            views: vec![
                View {
                    name: w.t("Mine, in doubt"),
                    href: "/dead-letters?assignee=me".into(),
                    here: rows == 0,
                    shared: None,
                    drop: Some(("/views/01987c3e-4b1f-7d02-9c55-1f0a6be2d310/delete".into(), "a9".into())),
                },
                View {
                    name: w.t("CRM, older than a day"),
                    href: "/dead-letters?destination=crm&age=over_24h".into(),
                    here: false,
                    shared: w.some("by olga"),
                    drop: None,
                },
            ],
            query: w.t("destination=crm"),
            needs: (rows == 0).then(|| w.t("Needs the right “resolve”, which operators have.")),
            action_id: "a8".into(),
        },
        acts: (rows > 0).then(|| acts(w, false)),
        rows: (0..rows).map(|index| dead_letter(w, index)).collect(),
        pager: Pager {
            newer: None,
            older: (rows > 0).then(|| "/dead-letters?cursor=b64".into()),
            shown: if rows > 0 { format!("{rows} shown, newest first") } else { String::new() },
        },
        handled: w.some("7 were closed in the last 7 days."),
    }
}
