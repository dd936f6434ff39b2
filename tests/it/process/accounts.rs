//! People and tokens from the command line.

use dead_letter_office::accounts;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::envelope::Envelope;
use dead_letter_office::store::accounts::user_by_name;
use dead_letter_office::store::{Commit, Db, factors};

use super::{House, sqlite};

async fn house() -> (House, Db) {
    let house = House::empty();
    let url = sqlite(&house.path("dlo.db"));
    house.write(
        "dlo.toml",
        &format!("[server]\ndatabase_url = \"{url}\"\npublic_url = \"https://desk.example.com\"\n"),
    );
    house.done(&["migrate"]);
    let db = Db::open(&url).await.unwrap().keyed(super::keyring());
    (house, db)
}

/// The secret of the one link in a text.
fn secret(text: &str) -> &str {
    let link = text.split_whitespace().find_map(|word| word.strip_prefix("https://desk.example.com/setup/"));
    link.unwrap_or_else(|| panic!("no link: {text}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_come_change_and_go() {
    let (house, db) = house().await;
    let ambient = Ambient::system();
    let signs_in =
        async |password: &str| accounts::sign_in(&db, "vera", password.to_owned()).await.unwrap().is_some();

    let out = house.done(&["user", "add", "vera", "--role", "viewer"]);
    assert!(house.done(&["user", "list"]).contains("no password yet"));
    let name = accounts::use_link(&db, &ambient, secret(&out), "", "first password".into(), "test").await;
    assert_eq!(name.unwrap(), "vera");
    assert!(signs_in("first password").await);

    let out = house.done(&["user", "reset", "vera"]);
    assert!(signs_in("first password").await, "until the link is used");
    accounts::use_link(&db, &ambient, secret(&out), "", "second password".into(), "test").await.unwrap();
    assert!(!signs_in("first password").await);
    assert!(signs_in("second password").await);

    let reset = house.dlo_with(&["user", "reset", "vera", "--password-stdin"], "third password\nmore\n");
    assert_eq!(reset.code, Some(0), "{reset:?}");
    assert!(signs_in("third password").await);

    let added =
        house.dlo_with(&["user", "add", "ada", "--role", "approver", "--password-stdin"], "a good one\n");
    assert_eq!(added.code, Some(0), "{added:?}");
    for guessable in ["password123", "desk.example.com", "eve-2026"] {
        let weak = house.dlo_with(
            &["user", "add", "eve", "--role", "viewer", "--password-stdin"],
            &format!("{guessable}\n"),
        );
        assert!(weak.code != Some(0) && !weak.err.contains(guessable), "{weak:?}");
        assert!(weak.err.contains("rare ones are best"), "{weak:?}");
    }
    house.done(&["user", "role", "vera", "operator"]);
    let list = house.done(&["user", "list"]);
    let line = |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("vera").contains("operator") && line("ada").contains("approver"), "{list}");

    house.done(&["user", "disable", "vera"]);
    assert!(!signs_in("third password").await);
    assert!(house.done(&["user", "list"]).contains("shut out"));

    for (refused, why) in [
        (&["user", "add", "ada", "--role", "viewer"][..], "taken"),
        (&["user", "reset", "nobody"], "nobody"),
        (&["user", "add", "token:x", "--role", "viewer"], "colons"),
        (&["user", "add", "bo", "--role", "king"], "there are viewer, operator, approver and admin"),
        (&["user", "role", "vera", "king"], "there is no role \"king\""),
    ] {
        let answer = house.dlo(refused);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.err.contains(why) && answer.err.lines().count() == 1, "{answer:?}");
    }
    let short = house.dlo_with(&["user", "add", "bo", "--role", "viewer", "--password-stdin"], "short\n");
    assert_eq!(short.code, Some(1));
    assert!(short.err.contains("at least 8"), "{short:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mfa_a_lost_second_factor_is_forgotten() {
    let (house, db) = house().await;
    house.done(&["user", "add", "vera", "--role", "admin"]);
    let (mut tx, now) = (db.begin().await.unwrap(), Ambient::system().now());
    let vera = user_by_name(&mut tx, "vera").await.unwrap().expect("she is there").id;
    let app = Envelope { key_id: "a key that is lost too".into(), wrapped: vec![], sealed: vec![] };
    assert!(factors::put_totp(&mut tx, vera, &app, now).await.unwrap());
    assert!(factors::confirm_totp(&mut tx, vera, 1, now).await.unwrap());
    tx.commit(Commit::Account).await.unwrap();
    house.done(&["user", "forget-second-factor", "vera"]);
    let mut tx = db.read().await.unwrap();
    assert!(!factors::held(&mut tx, vera).await.unwrap().any());
    drop(tx);
    assert_eq!(house.dlo(&["user", "forget-second-factor", "vera"]).code, Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_shown_once() {
    let (house, db) = house().await;
    let ambient = Ambient::system();
    let answer = house.dlo(&["token", "create", "shop", "--scope", "submit", "--expires", "90d"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let token = answer.out.trim();
    assert!(token.starts_with("dlo_") && !token.contains(char::is_whitespace), "alone on stdout: {token}");
    let holder = accounts::token_holder(&db, &ambient, token).await.unwrap().expect("it works");
    assert_eq!(holder.name, "shop");
    assert!(holder.expires_at.is_some());

    let list = house.done(&["token", "list"]);
    assert!(list.contains("shop") && list.contains("works until") && !list.contains(token), "{list}");
    house.done(&["token", "revoke", "shop"]);
    assert!(accounts::token_holder(&db, &ambient, token).await.unwrap().is_none());
    assert!(house.done(&["token", "list"]).contains("revoked"));
    assert_eq!(house.dlo(&["token", "revoke", "shop"]).code, Some(1));
    assert_eq!(house.dlo(&["token", "create", "x", "--scope", "submit", "--expires", "soon"]).code, Some(2));
}
