//! What is looked up rather than worked off: operations, audit, status.

use super::samples::{ID, Words, ago, ahead, chip, layout, select};
use crate::domain::operation::OperationState;
use crate::domain::webhook::Scheme;
use crate::web::listing::Pager;
use crate::web::page::{Flash, FlashKind, Section};
use crate::web::pages::audit::{AuditPage, AuditRow};
use crate::web::pages::operations::{OperationRow, OperationsPage};
use crate::web::pages::status::{LaneRow, NodeRow, RefusedRow, SourceRow, StatusPage};
use crate::web::view::{Fact, Field, Reference};

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
            confirmed: (state == OperationState::Completed).then(|| ago(300)),
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
            place: Some("18,204".to_owned()),
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
        lacks: None,
        filter: vec![("actor", w.t("anna.k"))],
        chain: w.some("Verified 4 min ago up to No. 18,204: each entry fits."),
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

/// Around a page that only admins see.
pub(super) fn status(w: &Words, some: bool) -> StatusPage {
    let refused = |count: &str, why: &str, seconds| RefusedRow {
        count: count.into(),
        why: w.t(why),
        last: ago(seconds),
        address: w.t("203.0.113.77"),
    };
    let row = |name: &str, scheme, last_accepted, counts: [&str; 3], refused| SourceRow {
        name: w.t(name),
        address: w.t(&format!("/hooks/{name}")),
        scheme,
        last_accepted,
        accepted: counts[0].into(),
        duplicates: counts[1].into(),
        ignored: counts[2].into(),
        refused,
    };
    let rows = vec![
        row(
            "billing",
            Scheme::StandardWebhooks,
            Some(ago(40)),
            ["1,204", "17", "0"],
            vec![refused("31,877", "no secret matched", 2), refused("2", "signed too long ago", 7_200)],
        ),
        row("shop", Scheme::Stripe, Some(ago(86_000)), ["3", "0", "412"], vec![]),
        row("old-crm", Scheme::Bearer, None, ["0", "0", "0"], vec![]),
    ];
    let lane = |name: &str, waiting: &str, due: Option<&str>, lease| LaneRow {
        place: Reference::here(w.t(name), "/destinations/crm"),
        waiting: waiting.into(),
        due: due.map(str::to_owned),
        leased: "3".into(),
        lease_ends: lease,
    };
    let node = |name: &str, here| NodeRow {
        name: w.t(name),
        here,
        last: ago(2),
        attempts: "412".into(),
        running: "3".into(),
    };
    StatusPage {
        layout: layout(w, "Status", Section::Status),
        facts: vec![
            w.fact("Program", "Dead Letter Office 0.1.0"),
            w.code("This process", "4711-9f1c22d0"),
            Fact::time("It answers since", ago(86_400)),
            w.fact("Database", "PostgreSQL, 3.2 GB"),
        ],
        audit: vec![
            w.fact("Entries in its chain", "18,204"),
            w.code("Head", "18204:9f1c22d09f1c22d09f1c22d09f1c22d09f1c22d09f1c22d09f1c22d09f1c22d0"),
            Fact::time("Verified", ago(240)),
        ],
        lanes: if some {
            vec![lane("The CRM", "500+", Some("4 min"), Some(ahead(40))), lane("Mail", "0", None, None)]
        } else {
            vec![]
        },
        nodes: if some { vec![node("4711-9f1c22d0", true), node("4712-00aa10ff", false)] } else { vec![] },
        sources: if some { rows } else { vec![] },
    }
}
