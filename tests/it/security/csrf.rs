//! Forms that did not come from a page of the person's own session.

use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::routes::routes;
use crate::support::tables::business;

on_both!(no_post_is_taken_from_elsewhere, a_post_is_taken_from_our_own_pages);

/// Every field that any form has, filled in as its form would like it.
fn filled(csrf: &str) -> Vec<(&'static str, String)> {
    let mut fields: Vec<(&str, String)> = [
        ("name", "somebody new"),
        ("password", PASSWORD),
        ("old", PASSWORD),
        ("new", "a new password"),
        ("role", "admin"),
        ("reason", "the CRM is back"),
        ("resolution", "not_needed"),
        ("mode", "new_effect"),
        ("accept_duplicate", "true"),
        ("action_id", "an id"),
    ]
    .map(|(name, value)| (name, value.to_owned()))
    .into();
    fields.push(("csrf", csrf.to_owned()));
    fields
}

async fn no_post_is_taken_from_elsewhere(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let csrf = boss.csrf().await;
    let mut other = desk.nobody();
    other.sign_in("admin", PASSWORD).await;
    let others = other.csrf().await;
    let before = business(&desk.app).await;

    let evil = [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")];
    let silent = [("sec-fetch-site", "")];
    let ways: [(&str, &str, &[(&str, &str)]); 11] = [
        ("no token", "", &[]),
        ("another session's token", &others, &[]),
        ("half a token", &csrf[..20], &[]),
        ("the right token from another site", &csrf, &evil),
        ("another site without an origin", &csrf, &[("sec-fetch-site", "cross-site")]),
        ("no word on where it is from", &csrf, &silent),
        ("a sibling's page", &csrf, &[("sec-fetch-site", "same-site")]),
        ("another origin", &csrf, &[("origin", "https://evil.example")]),
        ("another port", &csrf, &[("origin", "http://desk.example:81"), ("host", "desk.example")]),
        ("a hidden origin", &csrf, &[("origin", "null")]),
        (
            "our origin, but another site",
            &csrf,
            &[("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:8080")],
        ),
    ];
    let for_programs = |path: &str| path.starts_with("/api/") || path.starts_with("/hooks/");
    let posts = routes().into_iter().filter(|(method, path)| *method == "post" && !for_programs(path));
    let mut count = 0;
    for (_, path) in posts {
        let path = path.replace("{id}", &letter.to_string()).replace("{token}", "made-up");
        for (way, token, headers) in &ways {
            // The doors belong to nobody's session, so that only the sender's origin is looked at.
            if headers.is_empty() && (path.starts_with("/login") || path.starts_with("/setup")) {
                continue;
            }
            let mut fields = filled(token);
            fields.push(("typed", operation.to_string()[28..].to_owned()));
            let fields: Vec<(&str, &str)> =
                fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let reply = boss.post_with(&path, &fields, headers).await;
            assert_eq!(reply.status.as_u16(), 403, "{path}, {way}: {}", reply.text);
            assert!(reply.words().contains("Nothing was changed"), "{path}, {way}");
            count += 1;
        }
        // Nobody signed in: the same, whatever is sent.
        for headers in [&evil[..], &silent] {
            let mut nobody = desk.nobody();
            let reply = nobody.post_with(&path, &[("csrf", "")], headers).await;
            assert_eq!(reply.status.as_u16(), 403, "{path}");
        }
    }
    assert!(count > 50, "{count}");
    assert_eq!(business(&desk.app).await, before);
    assert!(boss.is_in().await, "not even signed out");
}

async fn a_post_is_taken_from_our_own_pages(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let fields = [("name", "olga"), ("password", PASSWORD)];
    let ours: [&[(&str, &str)]; 4] = [
        &[("sec-fetch-site", "same-origin"), ("origin", "http://127.0.0.1:8080")],
        &[("sec-fetch-site", "none")],
        // Over plain http browsers send no more than this.
        &[("origin", "http://127.0.0.1:8080")],
        &[("origin", "http://desk.example:81"), ("host", "desk.example:81")],
    ];
    for headers in ours {
        let reply = desk.nobody().post_with("/login", &fields, headers).await;
        assert_eq!(reply.location(), "/", "{headers:?}");
    }
}
