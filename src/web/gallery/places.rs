//! Where operations go, and what kinds of them there are.

use super::samples::{Words, ago, layout};
use crate::domain::dead_letter::Certainty;
use crate::web::chart::Chart;
use crate::web::page::Section;
use crate::web::pages::destination::{DestinationPage, Health, HourRow, PauseRow, Tally};
use crate::web::pages::destinations::{DestinationRow, DestinationsPage, Stands};
use crate::web::pages::types::{Retries, StepCard, TryRow, TypePage};
use crate::web::view::{Field, Reference, When};

fn row(w: &Words, name: &str, stands: Stands, why: Option<&str>, when: Option<When>) -> DestinationRow {
    DestinationRow {
        name: name.into(),
        href: format!("/destinations/{name}"),
        title: w.t(name),
        address: Some(w.t("https://crm.example.com/api")),
        stands,
        why: why.map(|why| w.t(why)),
        when,
        waiting: "1,204".into(),
        list: format!("/operations?destination={name}"),
        promise: w.t(
            "One operation has at most one effect here, through crashes, lost answers, races and replays.",
        ),
    }
}

pub(super) fn destinations(w: &Words, some: bool) -> DestinationsPage {
    let paused = "Paused by engine. Our sign-in is not accepted: 401 The access token has expired.";
    let rows = vec![
        row(w, "crm", Stands::Open, None, None),
        row(w, "payments", Stands::Paused, Some(paused), Some(ago(600))),
        row(w, "mailer", Stands::Failing, Some("It failed 12 times in a row."), Some(ago(5))),
        row(w, "stock", Stands::Held, Some("It asked us to stay away until"), Some(ago(5))),
    ];
    DestinationsPage {
        layout: layout(w, "Destinations", Section::Destinations),
        rows: if some { rows } else { Vec::new() },
        types: if some {
            vec![Reference::here(w.t("create-ticket"), "/types/create-ticket")]
        } else {
            vec![]
        },
    }
}

fn tallies() -> Vec<Tally> {
    let tally = |certainty: &Certainty| Tally {
        certainty: *certainty,
        count: "12".into(),
        href: "/dead-letters?certainty=definitely_failed".into(),
    };
    Certainty::ALL.iter().map(tally).collect()
}

pub(super) fn destination(w: &Words, some: bool) -> DestinationPage {
    let columns: Vec<Vec<(&str, usize)>> = (0..48_usize)
        .map(|hour| vec![("good", hour * 7 % 50), ("maybe", hour % 5), ("bad", hour % 3)])
        .collect();
    let axis = ["48 h ago", "24 h ago", "now"].map(str::to_owned).to_vec();
    let hour = |hour: &str| HourRow {
        hour: hour.into(),
        counts: ["1,204", "3", "0", "17"].map(str::to_owned),
        p50: "120 ms".into(),
        p95: "2.1 s".into(),
    };
    DestinationPage {
        layout: layout(w, "The CRM", Section::Destinations),
        it: row(w, "crm", Stands::Open, None, None),
        remarks: vec![
            w.t("IETF draft, as documented on 2026-11-29: draft-ietf-httpapi-idempotency-key-header."),
        ],
        limits: vec![w.fact("Requests a second", "20"), w.fact("Requests at a time", "8")],
        health: Health {
            counted: w.t("1,224 attempts of the last 48 h, by the hour in which they were made."),
            highest: "The highest column is 56 attempts.".into(),
            times: w.some("Half of 1,224 answers took up to 120 ms; 95 of 100 took up to 2.1 s."),
            chart: some.then(|| Chart::columns(w.t("Outcomes by the hour"), &columns, axis)),
            legend: [
                ("Done", "good"),
                ("May have happened", "maybe"),
                ("Refused", "bad"),
                ("Put off or not sent", "mute"),
            ],
            hours: if some { vec![hour("29 Nov, 09:00"), hour("29 Nov, 08:00")] } else { vec![] },
        },
        queue: vec![w.fact("Waiting", "500+"), w.fact("Longest due", "for 4 min")],
        letters: tallies(),
        types: vec![Reference::here(w.t("create-ticket"), "/types/create-ticket")],
        pauses: vec![PauseRow {
            at: ago(7_000),
            who: w.t("anna.k"),
            what: w.t("paused a destination"),
            why: Some(w.long("They move to new machines until ten.")),
        }],
        lacks: (!some).then(|| w.t("Needs the right “pause_destination”, which operators have.")),
        action: "/destinations/crm/pause".into(),
        act: "Pause",
        action_id: "a1".into(),
        reason: Field::wrong(w.t("<b>"), w.t("Say why, for whoever reads it later.")),
    }
}

pub(super) fn operation_type(w: &Words) -> TypePage {
    let card = |name: &str, effect: Option<&str>| StepCard {
        name: w.t(name),
        effect: effect.map(|text| w.t(text)),
        destination: Reference::here(w.t("The CRM"), "/destinations/crm"),
        call: w.t("POST /tickets"),
        strategy: "Recognises repeats",
        promise: w.t("One operation has at most one effect here."),
        duplicate: w.t("For 24 h from the first send the CRM recognises a repeat and does nothing."),
        notes: vec![w.t("Kept of its answer: ticket_id.")],
    };
    let lines: Vec<Vec<(f64, f64, &str)>> = [0.0, 0.1, 0.3, 0.9]
        .iter()
        .map(|end| vec![(0.0, *end, "mute"), (*end / 2.0, *end / 2.0, "info")])
        .collect();
    let tried = |number, latest: &str| TryRow {
        number,
        wait: "up to 10 s".into(),
        usual: "5 s".into(),
        latest: latest.into(),
    };
    TypePage {
        layout: layout(w, "create-ticket", Section::Destinations),
        name: w.t("create-ticket"),
        facts: vec![w.fact("Severity", "High"), w.code("Key", "ticket:{{ payload.order_id }}")],
        inputs: vec![w.code("Order (people search by it)", "/order_id")],
        steps: vec![card("create ticket", Some("A ticket in the CRM")), card("tell the customer", None)],
        retries: Retries {
            sentence: w.t("At most 5 tries in 30 min."),
            chart: Chart::spans(
                w.t("When each of 4 tries comes"),
                &lines,
                vec!["first try".into(), "10 min".into()],
            ),
            rows: vec![tried(1, "0 ms"), tried(2, "10 s")],
            more: None,
        },
        letters: tallies(),
        list: "/operations?type=create-ticket".into(),
    }
}
