//! Which passwords can be chosen, at every door where one is, and how they are kept.

use std::time::Duration;

use dead_letter_office::accounts::{self, AccountError, NewPassword};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::store::accounts::user_by_name;

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    a_password_has_eight_characters_or_more_and_any_characters,
    what_is_easy_to_guess_is_refused_with_words_that_help,
    the_hash_is_argon2id_with_the_usual_work,
    a_weaker_hash_is_made_anew_at_the_next_sign_in,
    a_changed_password_ends_every_session,
    a_password_lasts_until_somebody_changes_it,
);

async fn set(desk: &Desk, name: &str, password: NewPassword) -> Result<String, AccountError> {
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let secret = accounts::make_link(db, ambient, Some(name), &by_root()).await?;
    accounts::use_link(db, ambient, &secret, "", password, "::1").await
}

async fn stored(desk: &Desk, name: &str) -> String {
    let mut tx = desk.app.engine.db().read().await.unwrap();
    user_by_name(&mut tx, name).await.unwrap().unwrap().password_hash.unwrap()
}

async fn a_password_has_eight_characters_or_more_and_any_characters(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let long = "wet violin gasket ".repeat(56);
    let longest = format!("{}{}", long, "x".repeat(1_024 - long.len()));
    for password in
        ["k7mq-x2p", "n3z 0q?v", "чтo-мaндapин", "犬も歩けば棒に当たる", " 🐢 eats 🌵 slowly\t", &longest]
    {
        set(&desk, "olga", password.into()).await.unwrap();
        assert_eq!(desk.nobody().sign_in("olga", password).await.location(), "/", "{password}");
        // Not even its last character is left out.
        let other: String = password.chars().take(password.chars().count() - 1).collect();
        desk.nobody().sign_in("olga", &other).await.expect(422);
    }
    for (password, why) in [
        ("", "needs at least 8 characters"),
        ("k7mq-x2", "needs at least 8 characters"),
        ("犬も歩けば棒", "needs at least 8 characters"),
        (&format!("{longest}x"), "more than 1024 characters"),
    ] {
        let refused = set(&desk, "olga", password.into()).await.unwrap_err();
        assert!(refused.to_string().contains(why), "{password}: {refused}");
    }
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let secret = accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap();
    let page = desk.nobody().get(&format!("/setup/{secret}")).await.expect(200);
    assert!(page.words().contains("At least 8 characters; 15 or more are better."), "{}", page.words());
    assert!(!page.text.contains("maxlength") && !page.text.contains("onpaste"), "pasting is not hindered");
}

async fn what_is_easy_to_guess_is_refused_with_words_that_help(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let said = |text: &str| {
        let wrong = ["is easy to guess", "tried first", "common password"];
        wrong.iter().any(|part| text.contains(part))
            && text.contains("Add another word or two: rare ones are best.")
    };
    for password in ["12345678", "Password1", "qwertyuiop", "letmein123", "dead letter office"] {
        let added =
            accounts::add_user(db, ambient, "otto", Role::Viewer, Some(password.into()), &by_root()).await;
        let Err(AccountError::Password(why)) = added else { panic!("{password}: {added:?}") };
        assert!(said(&why), "{password}: {why}");
    }
    // Their own name, and the host of the desk.
    for password in ["qwertyuiop", "operator1", "127.0.0.1"] {
        let reply = olga.post("/account/password", &[("old", PASSWORD), ("new", password)]).await.expect(422);
        assert!(said(&reply.words()), "{password}: {}", reply.words());
        let secret = accounts::make_link(db, ambient, Some("operator"), &by_root()).await.unwrap();
        let path = format!("/setup/{secret}");
        let reply = desk.nobody().post_bare(&path, &[("password", password)]).await.expect(422);
        assert!(said(&reply.words()), "{password}: {}", reply.words());
    }
    assert!(olga.is_in().await, "nothing was changed");
}

async fn the_hash_is_argon2id_with_the_usual_work(db: TestDatabase) {
    let desk = Desk::start(db).await;
    for name in ["olga", "otto"] {
        desk.add(name, Role::Operator).await;
        set(&desk, name, PASSWORD.into()).await.unwrap();
    }
    let (olgas, ottos) = (stored(&desk, "olga").await, stored(&desk, "otto").await);
    assert!(olgas.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{olgas}");
    assert_ne!(olgas, ottos, "each has a salt of its own");
    desk.add("vera", Role::Viewer).await;
    let usual = stored(&desk, "vera").await;
    desk.nobody().sign_in("vera", PASSWORD).await.location();
    assert_eq!(stored(&desk, "vera").await, usual, "what other tests begin with is as strong");
}

async fn a_weaker_hash_is_made_anew_at_the_next_sign_in(db: TestDatabase) {
    use argon2::password_hash::PasswordHasher as _;
    use argon2::{Algorithm, Argon2, Params, Version};

    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let weak = |algorithm, version, memory, passes| {
        let params = Params::new(memory, passes, 1, None).unwrap();
        Argon2::new(algorithm, version, params).hash_password(PASSWORD.as_bytes()).unwrap().to_string()
    };
    for hash in [
        weak(Algorithm::Argon2id, Version::V0x13, 64, 1),
        weak(Algorithm::Argon2id, Version::V0x13, 19_456, 1),
        weak(Algorithm::Argon2id, Version::V0x10, 19_456, 2),
        weak(Algorithm::Argon2i, Version::V0x13, 19_456, 2),
    ] {
        let sql = format!("UPDATE users SET password_hash = '{hash}' WHERE name = 'olga'");
        desk.app.raw().await.execute(sql).await;
        desk.nobody().sign_in("olga", "not it").await.expect(422);
        assert_eq!(stored(&desk, "olga").await, hash, "only who knows it can have it hashed");
        assert_eq!(desk.nobody().sign_in("olga", PASSWORD).await.location(), "/");
        let now = stored(&desk, "olga").await;
        assert!(now.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash} became {now}");
        assert_eq!(desk.nobody().sign_in("olga", PASSWORD).await.location(), "/");
        assert_eq!(stored(&desk, "olga").await, now, "and stays");
    }
    let strong = weak(Algorithm::Argon2id, Version::V0x13, 32_768, 3);
    desk.app.raw().await.execute(format!("UPDATE users SET password_hash = '{strong}'")).await;
    assert_eq!(desk.nobody().sign_in("olga", PASSWORD).await.location(), "/");
    assert_eq!(stored(&desk, "olga").await, strong, "more work than usual is left as it is");
}

async fn a_changed_password_ends_every_session(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut here = desk.signed_in(Role::Viewer).await;
    let mut there = desk.nobody();
    there.sign_in("viewer", PASSWORD).await;
    for (old, new, why) in [
        ("wrong", "a new password", "That is not your present password."),
        (PASSWORD, "short", "needs at least 8 characters"),
        (PASSWORD, &"x".repeat(1_025), "more than 1024 characters"),
        (PASSWORD, "viewer 2026", "easy to guess"),
    ] {
        let reply = here.post("/account/password", &[("old", old), ("new", new)]).await.expect(422);
        assert!(reply.words().contains(why), "{}", reply.words());
        assert!(!reply.text.contains(PASSWORD) && !reply.text.contains("a new password"));
    }
    assert!(there.is_in().await);
    // Long enough for the request itself to write down the session's last use.
    desk.app.clock.advance(Duration::from_mins(2));
    let reply = here.post("/account/password", &[("old", PASSWORD), ("new", "a new password")]).await;
    let form = here.get(reply.location()).await.expect(200);
    assert!(form.words().contains("Your password is changed."));
    assert!(!here.is_in().await && !there.is_in().await);
    desk.nobody().sign_in("viewer", PASSWORD).await.expect(422);
    assert_eq!(here.sign_in("viewer", "a new password").await.location(), "/");
}

async fn a_password_lasts_until_somebody_changes_it(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    desk.app.clock.advance(Duration::from_hours(24 * 365 * 3));
    assert_eq!(desk.nobody().sign_in("olga", PASSWORD).await.location(), "/");
}
