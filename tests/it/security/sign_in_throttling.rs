//! Whoever guesses waits longer and longer, on all nodes together, and learns nothing; nobody is shut
//! out for good, and every try is on record.

use std::time::Duration;

use dead_letter_office::accounts::tries::{self, Try, What};
use dead_letter_office::accounts::{self, AccountError, Purpose};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::retention::Round;

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    the_right_password_opens_and_every_other_answer_is_the_same,
    guesses_have_to_wait_longer_and_longer,
    nobody_keeps_somebody_else_out,
    many_at_once_are_many_and_every_node_counts_them,
    one_address_cannot_try_many_names,
    those_who_know_their_password_never_wait,
    whoever_has_a_session_cannot_guess_the_password_either,
    codes_are_counted_apart_from_passwords,
    what_was_typed_as_a_name_is_not_kept,
    old_tries_are_forgotten,
);

/// Action, actor and detail of every entry of the audit about doors.
async fn door_entries(desk: &Desk) -> Vec<(String, String, String)> {
    let rows = desk.app.on_record().await.into_iter().filter(|row| row.action.starts_with("sign_in"));
    let mut rows: Vec<_> = rows.map(|row| (row.action, row.actor, row.detail)).collect();
    rows.sort();
    rows
}

async fn the_right_password_opens_and_every_other_answer_is_the_same(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    desk.add("dora", Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    accounts::disable(db, ambient, "dora", &by_root()).await.unwrap();
    accounts::add_user(db, ambient, "nina", Role::Viewer, None, &by_root()).await.unwrap();

    let mut answers = Vec::new();
    for (name, password) in
        [("olga", "wrong"), ("nobody", PASSWORD), ("dora", PASSWORD), ("nina", ""), ("", "")]
    {
        let mut person = desk.nobody();
        let reply = person.sign_in(name, password).await.expect(422);
        assert!(reply.words().contains("That name and password do not belong together."));
        assert!(!reply.text.contains(PASSWORD));
        assert!(person.cookie.is_none() && !person.is_in().await, "{name}");
        answers.push(reply.text.replace(&format!("value=\"{name}\""), "value=\"\""));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "nothing tells one failure from another");

    let mut olga = desk.nobody();
    assert_eq!(olga.sign_in(" olga ", PASSWORD).await.location(), "/");
    assert!(olga.is_in().await);
    assert_eq!(olga.get("/login").await.location(), "/", "no second sign-in");

    let entries = door_entries(&desk).await;
    let entries: Vec<(&str, &str, &str)> =
        entries.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    assert_eq!(
        entries,
        [
            ("sign_in", "olga", ""),
            ("sign_in_failed", "dora", "the account is disabled"),
            ("sign_in_failed", "nina", "the password was not right"),
            ("sign_in_failed", "olga", "the password was not right"),
            ("sign_in_failed", "unknown", "nobody has this name"),
            ("sign_in_failed", "unknown", "nobody has this name"),
        ]
    );
}

async fn guesses_have_to_wait_longer_and_longer(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let mut thief = desk.nobody();
    for name in ["olga", "no such name"] {
        for _ in 0..5 {
            thief.sign_in(name, "a guess").await.expect(422);
        }
        let reply = thief.sign_in(name, PASSWORD).await.expect(429);
        assert_eq!(reply.header("retry-after"), "1");
        assert!(reply.words().contains("Wait 1 s"), "{}", reply.words());
    }
    desk.app.clock.advance(Duration::from_secs(1));
    thief.sign_in("olga", "a guess").await.expect(422);
    assert_eq!(thief.sign_in("olga", "a guess").await.header("retry-after"), "2");
    desk.app.clock.advance(Duration::from_secs(2));
    assert_eq!(thief.sign_in("olga", PASSWORD).await.location(), "/", "nobody is shut out for good");
    desk.nobody().sign_in("olga", "a slip").await.expect(422);
}

async fn nobody_keeps_somebody_else_out(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut anton = desk.signed_in(Role::Approver).await;
    // Whoever knows the name guesses on and on.
    for _ in 0..5 {
        tried(&desk, "approver", "192.0.2.66").await.unwrap();
    }
    assert!(tried(&desk, "approver", "192.0.2.66").await.is_err());
    // The one whose name it is comes in from where they are, and shows again who they are.
    desk.nobody().sign_in("approver", PASSWORD).await.location();
    desk.app.clock.advance(Duration::from_mins(6));
    let wrong = [("next", "/people"), ("password", "a slip")];
    anton.post("/confirm", &wrong).await.expect(422);
    let right = [("next", "/people"), ("password", PASSWORD)];
    assert_eq!(anton.post("/confirm", &right).await.location(), "/people");
    // A name that was made up to be counted as another one's is not.
    for _ in 0..5 {
        tried(&desk, "from 192.0.2.9 approver", "192.0.2.67").await.unwrap();
        tried(&desk, "192.0.2.9 approver", "192.0.2.67").await.unwrap();
    }
    tried(&desk, "approver", "192.0.2.9").await.unwrap();
    // Many networks together wait as well, each before it has had its own tries.
    let mut guesses = 0;
    while tried(&desk, "approver", &format!("198.51.100.{guesses}")).await.is_ok() {
        guesses += 1;
        assert!(guesses < 101, "a name has a limit of its own");
    }
    assert!(guesses > 80, "{guesses}");
    assert_eq!(tried(&desk, "another", "198.51.100.1").await, Ok(()));
    desk.app.clock.advance(Duration::from_mins(6));
    tried(&desk, "approver", "203.0.113.1").await.unwrap();
    assert!(tried(&desk, "approver", "203.0.113.2").await.is_err());
    assert_eq!(anton.post("/confirm", &right).await.location(), "/people");
    desk.app.clock.advance(Duration::from_mins(1));
    desk.nobody().sign_in("approver", PASSWORD).await.location();
}

/// A try at the password of this name from this address: how long to wait first.
async fn tried(desk: &Desk, name: &str, address: &str) -> Result<(), Duration> {
    let it = Try { what: What::Password, purpose: Purpose::SignIn, name, address };
    match tries::begin(desk.app.engine.db(), desk.app.engine.ambient(), &it).await {
        Ok(()) => Ok(()),
        Err(AccountError::Later(wait)) => Err(wait),
        Err(error) => panic!("{error}"),
    }
}

async fn many_at_once_are_many_and_every_node_counts_them(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let other = desk.app.another_node(9).await;
    let nodes = [&desk.app.engine, &other];
    let guesses = (0..40).map(|n| {
        let engine = nodes[n % 2];
        accounts::sign_in_from(
            engine.db(),
            engine.ambient(),
            "olga",
            format!("guess {n}"),
            Purpose::SignIn,
            "::1",
        )
    });
    let answers = futures_util::future::join_all(guesses).await;
    let looked_at = answers.iter().filter(|answer| matches!(answer, Ok(None))).count();
    let sent_away = answers.iter().filter(|answer| matches!(answer, Err(AccountError::Later(_)))).count();
    assert_eq!((looked_at, sent_away), (5, 35), "{answers:?}");
    // What was not looked at tells nothing: not even that it would have been right.
    let right =
        accounts::sign_in_from(other.db(), other.ambient(), "olga", PASSWORD.into(), Purpose::SignIn, "::1")
            .await;
    assert!(matches!(right, Err(AccountError::Later(_))), "{right:?}");
    assert_eq!(door_entries(&desk).await.len(), 5);
}

async fn one_address_cannot_try_many_names(db: TestDatabase) {
    let desk = Desk::start(db).await;
    for n in 0..50 {
        tried(&desk, &format!("name {n}"), "2001:db8::1").await.unwrap();
    }
    assert!(tried(&desk, "another", "2001:db8::1").await.is_err());
    assert!(tried(&desk, "another", "2001:db8::2").await.is_err(), "of the same network");
    assert_eq!(tried(&desk, "another", "2001:db8:0:1::1").await, Ok(()));
    desk.app.clock.advance(Duration::from_mins(15));
    assert_eq!(tried(&desk, "another", "2001:db8::1").await, Ok(()), "it is forgotten");
}

async fn those_who_know_their_password_never_wait(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let db = desk.app.engine.db();
    for _ in 0..60 {
        tried(&desk, "olga", "::1").await.unwrap();
        let it = Try { what: What::Password, purpose: Purpose::SignIn, name: "olga", address: "::1" };
        tries::succeeded(db, &it).await.unwrap();
    }
}

async fn whoever_has_a_session_cannot_guess_the_password_either(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let mut anton = desk.signed_in(Role::Approver).await;
    desk.app.clock.advance(Duration::from_mins(6));
    let path = format!("/dead-letters/{letter}/override");
    let form = anton.get(&path).await.expect(200);
    let (facts, short) = (form.field("facts"), operation.simple().to_string()[24..].to_owned());
    let fields = |password: &'static str| {
        [
            ("facts", facts.clone()),
            ("mode", "new_effect".to_owned()),
            ("typed", short.clone()),
            ("reason", "the customer waits".to_owned()),
            ("accept_duplicate", "true".to_owned()),
            ("password", password.to_owned()),
        ]
    };
    for n in 0..5 {
        if n % 2 == 0 {
            let sent = [("old", "a guess"), ("new", "a password of the thief")];
            anton.post("/account/password", &sent).await.expect(422);
        } else {
            let fields = fields("a guess");
            let sent: Vec<(&str, &str)> =
                fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
            anton.post(&path, &sent).await.expect(422);
        }
    }
    let later =
        anton.post("/account/password", &[("old", PASSWORD), ("new", "a password of the thief")]).await;
    assert_eq!(later.expect(429).header("retry-after"), "1");
    let sent = fields(PASSWORD);
    let sent: Vec<(&str, &str)> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let later = anton.post(&path, &sent).await.expect(429);
    assert!(later.words().contains("There were too many tries."), "{}", later.words());
    desk.nobody().sign_in("approver", PASSWORD).await.location();
    assert!(desk.app.thread(operation).await.audit.is_empty());
    desk.app.clock.advance(Duration::from_secs(1));
    assert_eq!(anton.post(&path, &sent).await.location(), format!("/dead-letters/{letter}"));
}

async fn codes_are_counted_apart_from_passwords(db: TestDatabase) {
    let desk = Desk::start(db).await;
    for _ in 0..5 {
        tried(&desk, "olga", "::1").await.unwrap();
    }
    assert!(tried(&desk, "olga", "::1").await.is_err());
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    for purpose in [Purpose::SignIn, Purpose::Confirm] {
        // From wherever they come: there is no code without the password or a session.
        let code = |n| Try {
            what: What::Code,
            purpose,
            name: "olga",
            address: if n % 2 == 0 { "::1" } else { "192.0.2.1" },
        };
        for n in 0..5 {
            tries::begin(db, ambient, &code(n)).await.unwrap();
        }
        let sixth = tries::begin(db, ambient, &code(5)).await;
        assert!(matches!(sixth, Err(AccountError::Later(_))), "{sixth:?}");
    }
}

async fn what_was_typed_as_a_name_is_not_kept(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.nobody().sign_in("planted-in-the-name", "planted-in-the-password").await.expect(422);
    let dump = desk.app.raw().await.dump().await;
    assert_eq!(dump.iter().filter(|(table, _)| table == "tries").count(), 3);
    for planted in ["planted-in-the-name", "planted-in-the-password"] {
        let hexadecimal: String = planted.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (table, row) in &dump {
            assert!(!row.contains(planted) && !row.contains(&hexadecimal), "{table}: {row}");
        }
    }
}

async fn old_tries_are_forgotten(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.nobody().sign_in("olga", "a guess").await.expect(422);
    desk.app.clock.advance(Duration::from_hours(1));
    desk.nobody().sign_in("otto", "a guess").await.expect(422);
    let engine = &desk.app.engine;
    let mut round = Round::begin(engine.db(), engine.config(), engine.ambient()).await.unwrap();
    while round.as_mut().expect("it is due").step().await.unwrap().is_some() {}
    // Those of the second name, here and everywhere, and the address that both share.
    assert_eq!(desk.app.raw().await.number("SELECT count(*) FROM tries").await, 3);
}
