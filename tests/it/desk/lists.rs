//! Lists: what they count, how they are walked, what they refuse.

use std::collections::BTreeSet;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::engine::actions::{self, Resolve};

use crate::support::app::{person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Person, Reply};

on_both!(
    a_list_and_its_count_agree_under_every_filter,
    paging_loses_and_repeats_nothing_among_equal_moments,
    what_is_open_is_meant_unless_a_status_is_given,
    a_search_that_finds_nothing_says_where_it_looked,
    an_operation_is_found_by_every_id_people_have,
    addresses_that_mean_nothing_are_refused_in_words,
    the_audit_is_filtered_by_operation_person_and_day,
    a_full_page_is_light,
);

const ROWS: &str = "table.list tbody tr td.main a";

/// Dead letters of one moment, in orders `order-0` and up.
async fn refused(desk: &mut Desk, kind: &str, count: usize) {
    desk.app.destination.script(&format!("/{kind}"), vec![Behaviour::status(422); count]);
    for number in 0..count {
        desk.app.submit(kind, &format!("{kind}-{number}")).await;
    }
    desk.app.run_until_idle().await;
}

/// The number that a list's heading begins with.
fn counted(page: &Reply) -> usize {
    let words = page.first("header.head p");
    match words.split(' ').next() {
        Some("none") => 0,
        number => number.and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{words}")),
    }
}

async fn a_list_and_its_count_agree_under_every_filter(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    refused(&mut desk, "keyed", 3).await;
    refused(&mut desk, "lookup", 2).await;
    desk.dead_letter("plain", "in-doubt").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    for (query, wanted) in [
        ("", 6),
        ("?status=", 6),
        ("?status=any", 6),
        ("?status=resolved", 0),
        ("?type=keyed", 3),
        ("?destination=lookup&certainty=definitely_failed", 2),
        ("?certainty=may_have_completed", 1),
        ("?next_action=fix_data", 5),
        ("?severity=critical", 0),
        ("?search=keyed-1", 1),
        ("?search=C-7", 6),
        ("?search=corr-in-doubt", 1),
        ("?search=nothing", 0),
        ("?from=2026-11-30", 0),
        ("?to=2026-11-30", 6),
        ("?assignee=olga", 0),
    ] {
        let page = olga.get(&format!("/dead-letters{query}")).await.expect(200);
        assert_eq!((page.all(ROWS).len(), counted(&page)), (wanted, wanted), "{query}");
        let asked = query
            .trim_start_matches('?')
            .split('&')
            .filter(|pair| !pair.is_empty() && !pair.ends_with('='))
            .count();
        assert_eq!(page.all(".chips li:not(.clear)").len(), asked, "{query}");
    }
    let open = olga.get("/operations").await.expect(200).first("nav .count");
    assert_eq!(open, "6 open");
}

async fn paging_loses_and_repeats_nothing_among_equal_moments(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    refused(&mut desk, "keyed", 7).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    for (path, first) in
        [("/dead-letters", "/dead-letters?type=keyed&limit=3"), ("/operations", "/operations?limit=3")]
    {
        let mut forth = Vec::new();
        let mut at = first.to_owned();
        let mut last = at.clone();
        while !at.is_empty() {
            let page = olga.get(&at).await.expect(200);
            forth.extend(page.all(ROWS).into_iter().map(|(_, href)| href));
            last = at;
            at = turn(&page, "next");
        }
        assert_eq!(forth.len(), 7, "{path}");
        assert_eq!(forth.iter().collect::<BTreeSet<_>>().len(), 7, "{path}");
        let mut back = Vec::new();
        at = last;
        while !at.is_empty() {
            let page = olga.get(&at).await.expect(200);
            back.extend(page.all(ROWS).into_iter().rev().map(|(_, href)| href));
            at = turn(&page, "prev");
        }
        back.reverse();
        assert_eq!(back, forth, "{path}");
    }
}

fn turn(page: &Reply, way: &str) -> String {
    page.all(&format!("nav.pager a[rel={way}]")).into_iter().next().map_or_else(String::new, |(_, href)| href)
}

async fn what_is_open_is_meant_unless_a_status_is_given(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "closed").await;
    let actor = person("olga", Role::Operator);
    let how = Resolve { resolution: Resolution::NotNeeded, reference: None };
    actions::resolve(desk.app.engine.gate(), letter, &how, &request(&actor, "a1")).await.unwrap();
    let mut reader = desk.signed_in(Role::Viewer).await;
    let empty = reader.get("/dead-letters").await.expect(200);
    assert_eq!(empty.first("header.head p"), "0 open");
    assert_eq!(
        empty.first("section.empty p"),
        "Nothing waits for a person. One was closed in the last 24 hours."
    );
    let any = reader.get("/dead-letters?status=any").await.expect(200);
    assert_eq!(any.all(ROWS).len(), 1);
    assert_eq!(any.first("select[name=status] option[selected]"), "Any");
    assert!(any.first("td.main small").starts_with("Resolved"));
    let page = reader.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert!(page.first(".ended").starts_with("Not needed \u{b7} closed by olga"), "{}", page.first(".ended"));
    assert_eq!(page.all(".actions a, .actions form").len(), 0, "nothing is left to do for a viewer");
}

async fn a_search_that_finds_nothing_says_where_it_looked(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    assert!(olga.get("/operations").await.expect(200).words().contains("No operations yet"));
    desk.app.submit("keyed", "order-1").await;
    let page = olga.get("/operations?search=order-2").await.expect(200);
    let words = page.first("section.empty");
    for part in [
        "Nothing found",
        "business ids (customer, order)",
        "since the first one on 29 Nov 2026, 09:00:00 UTC",
    ] {
        assert!(words.contains(part), "{words}");
    }
}

async fn an_operation_is_found_by_every_id_people_have(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let id = desk.app.submit("keyed", "order-1").await;
    desk.app.run_until_idle().await;
    let reference = desk.app.thread(id).await.steps[0].reference.clone().unwrap();
    let mut olga = desk.signed_in(Role::Viewer).await;
    for text in ["order-1", "C-7", "corr-order-1", &reference, &id.to_string(), " order-1 "] {
        let query = url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let page = olga.get(&format!("/operations?search={query}")).await.expect(200);
        assert_eq!(page.all(ROWS).len(), 1, "{text}");
        assert_eq!(page.first("table.list tbody td .mark"), "Completed");
    }
    let page = olga.get(&format!("/operations/{id}")).await.expect(200);
    let answer = page.first("h1");
    let wanted = format!(
        "Yes: \u{201c}create ticket\u{201d} is done at Keyed, as {reference}, on 29 Nov 2026, 09:00:00 UTC."
    );
    assert_eq!(answer, wanted);
}

async fn addresses_that_mean_nothing_are_refused_in_words(db: TestDatabase) {
    let desk = Desk::start(db).await;
    for path in ["/", "/dead-letters?type=a", "/operations", "/audit", "/dead-letters/x", "/operations/x"] {
        let reply = desk.nobody().get(path).await;
        assert!(reply.expect(303).location().starts_with("/login"), "{path}");
    }
    let mut olga = desk.signed_in(Role::Operator).await;
    for (path, status) in [
        ("/dead-letters?status=dead", 400),
        ("/dead-letters?cursor=zzz", 400),
        ("/operations?state=dead", 400),
        ("/operations?limit=0", 400),
        ("/operations?from=yesterday", 400),
        ("/audit?to=2026-13-40", 400),
        ("/dead-letters/1", 404),
        ("/dead-letters/01987c3e-4b1f-7d02-9c55-1f0a6be2d310", 404),
        ("/operations/01987c3e-4b1f-7d02-9c55-1f0a6be2d310", 404),
    ] {
        let page = olga.get(path).await.expect(status);
        assert_eq!(page.all("h1").len(), 1, "{path}");
    }
}

async fn the_audit_is_filtered_by_operation_person_and_day(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    desk.app.replay(operation, "a1").await.unwrap();
    desk.app.run_until_idle().await;
    let mut reader = desk.signed_in(Role::Viewer).await;
    for (query, wanted) in [
        (format!("operation={operation}"), 1),
        (format!("operation={letter}"), 1),
        ("operation=order-1".to_owned(), 1),
        ("operation=order-2".to_owned(), 0),
        ("actor=olga".to_owned(), 1),
        ("action=replay".to_owned(), 1),
        ("action=resolve".to_owned(), 0),
        ("actor=olga&from=2026-11-29&to=2026-11-29".to_owned(), 1),
        ("actor=olga&to=2026-11-28".to_owned(), 0),
        ("actor=olga&from=2026-11-30".to_owned(), 0),
    ] {
        let page = reader.get(&format!("/audit?{query}")).await.expect(200);
        assert_eq!(page.all("table.audit tbody tr").len(), wanted, "{query}");
    }
    let row = reader.get("/audit?actor=olga").await.expect(200).first("table.audit tbody tr");
    for part in
        ["olga", "asked for a replay", "order order-1", "the CRM is back", "Accepted: it will be sent"]
    {
        assert!(row.contains(part), "{row}");
    }
    let thread = reader.get(&format!("/dead-letters/{letter}")).await.expect(200);
    let told: Vec<String> = thread.all("ol.thread > li h3").into_iter().map(|(text, _)| text).collect();
    let wanted = ["Received", "olga asked for a replay: Accepted: it will be sent", "Attempt 1", "Attempt 2"];
    for part in wanted {
        assert!(told.iter().any(|text| text.starts_with(part)), "{told:?}");
    }
}

async fn a_full_page_is_light(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    refused(&mut desk, "keyed", 51).await;
    let mut olga: Person<'_> = desk.signed_in(Role::Operator).await;
    for path in ["/dead-letters", "/operations"] {
        let page = olga.get(path).await.expect(200);
        assert_eq!(page.all(ROWS).len(), 50);
        assert!(page.text.len() <= 60 * 1024, "{path}: {} bytes", page.text.len());
        assert!(!turn(&page, "next").is_empty());
    }
}
