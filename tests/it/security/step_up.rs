//! Step-up: what is grave asks again who sits there, and then goes on with what was typed.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::store::accounts::user_by_name;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::tables::business;

on_both!(what_is_grave_needs_a_fresh_sign_in);

const FRESH: Duration = Duration::from_mins(5);

/// Where a form goes, what is typed into it, and what it comes to once they showed who they are.
type Grave<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);

async fn what_is_grave_needs_a_fresh_sign_in(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let short = operation.simple().to_string()[24..].to_owned();
    desk.signed_in(Role::Operator).await.sets_up_app().await;
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let olga = user_by_name(&mut tx, "operator").await.unwrap().expect("somebody").id;
    drop(tx);
    let person = |act: &str| format!("/people/{olga}/{act}");
    let below = |path: &str| format!("/account/second-factor/{path}");
    let remove = below(&format!("passkeys/{letter}/remove"));
    let over = format!("/dead-letters/{letter}/override");
    let grave: [Grave<'_>; 14] = [
        (&below("app"), &[], 303),
        (&below("app/off"), &[], 303),
        (&below("codes"), &[], 409),
        (&below("passkeys"), &[("name", "key ring")], 409),
        (&remove, &[], 404),
        ("/people", &[("name", "dora"), ("role", "viewer")], 200),
        (&person("role"), &[("role", "approver")], 303),
        (&person("link"), &[], 200),
        (&person("second-factor"), &[], 303),
        (&person("disable"), &[], 303),
        (&person("enable"), &[], 303),
        ("/tokens", &[("name", "shop"), ("scope", "read"), ("days", "30")], 200),
        (
            "/erase",
            &[
                ("step", "erase"),
                ("name", "customer"),
                ("value", "C-9"),
                ("again", "C-9"),
                ("reason", "by letter"),
                ("action_id", "e1"),
            ],
            // Nobody is found under it.
            422,
        ),
        (
            &over,
            &[
                ("mode", "new_effect"),
                ("typed", short.as_str()),
                ("reason", "the customer waits"),
                ("accept_duplicate", "true"),
                ("action_id", "o1"),
            ],
            409,
        ),
    ];
    let mut boss = desk.signed_in(Role::Admin).await;
    let mut came_to = Vec::new();
    for (path, typed, _) in grave {
        desk.app.clock.advance(FRESH);
        let csrf = boss.csrf().await;
        let before = business(&desk.app).await;
        let mut sent = vec![("csrf", csrf.as_str())];
        sent.extend(typed);
        let asked = boss.post_bare(path, &sent).await.expect(422);
        assert!(asked.words().contains("Confirm that it is you"), "{path}: {}", asked.words());
        assert_eq!(business(&desk.app).await, before, "{path}: nothing is done before");
        let wrong = boss.post_bare(path, &[&sent[..], &[("password", "not it")]].concat()).await.expect(422);
        assert!(wrong.words().contains("That is not your password."), "{path}: {}", wrong.words());
        for page in [asked, wrong] {
            let forms = page.all(&format!("form[action=\"{path}\"]")).len();
            assert_eq!(forms, 1, "{path}: it goes on to where it was going");
            for (name, value) in typed {
                assert_eq!(page.field(name), *value, "{path}: and nothing that was typed is lost");
            }
        }
        let cookie = boss.cookie.clone();
        let done = boss.post_bare(path, &[&sent[..], &[("password", PASSWORD)]].concat()).await;
        came_to.push((path, typed, done.status.as_u16()));
        assert_ne!(boss.cookie, cookie, "{path}: a session under a new id");
        // And for a while nobody asks again.
        let again = boss.post(path, typed).await;
        assert!(!again.text.contains("Confirm that it is you"), "{path}");
    }
    assert_eq!(came_to, grave, "each goes on to what it is for");
    desk.app.clock.advance(FRESH - Duration::from_secs(1));
    boss.post(&below("codes"), &[]).await.expect(409);
    desk.app.clock.advance(Duration::from_secs(1));
    boss.post(&below("codes"), &[]).await.expect(422);
}
