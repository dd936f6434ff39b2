//! Stored secrets come and go by their names, and go on under a new key.

use std::fs;

use dead_letter_office::accounts::{self, Keys};
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::keyring::{Keyring, SecretKey};
use dead_letter_office::store::{Commit, Db, erasure};

use crate::process::{House, Process};
use crate::support::app::{TestApp, by_root};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::ledger::Raw;

on_both!(stored_secrets_go_on_under_a_new_key, what_was_erased_needs_the_key_of_its_time);
on_both!(empty: a_secret_comes_and_goes_by_its_name);

/// A house with three keys and a configuration that takes two secrets.
fn keys(url: &str, current: &str, older: &[&str]) -> String {
    let older: Vec<String> = older.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "[server]\ndatabase_url = \"{url}\"\nsecret_key_file = \"{current}\"\nold_secret_key_files = [{}]\n\
         [destinations.crm]\nbase_url = \"https://crm.example.com\"\nheaders = {{ X-A = \"${{secret:crm}}\" }}\n",
        older.join(", ")
    )
}

/// What names the key in a file.
fn id_of(house: &House, file: &str) -> String {
    SecretKey::new(fs::read_to_string(house.path(file)).unwrap().trim()).unwrap().id()
}

async fn stored_secrets_go_on_under_a_new_key(db: TestDatabase) {
    let house = House::empty();
    for name in ["one.key", "two.key", "three.key"] {
        let out = house.done(&["key", "new", name]);
        assert!(out.contains("Leave the old file in old_secret_key_files"), "{out}");
        assert!(out.contains("dlo rotate-keys"), "{out}");
    }
    assert_eq!(house.dlo(&["key", "new", "one.key"]).code, Some(1), "nothing is overwritten");
    house.write("dlo.toml", &keys(&db.url, "one.key", &[]));
    house.done(&["migrate"]);
    let mut raw = Raw::open(&db.url).await.unwrap();
    assert_eq!(house.dlo_with(&["secret", "set", "crm"], "value of crm").code, Some(0));
    // More than one batch.
    let key = SecretKey::new(fs::read_to_string(house.path("one.key")).unwrap().trim()).unwrap();
    let store = Db::open(&db.url).await.unwrap().keyed(Some(Keyring::new(key, vec![])));
    for n in 0..120 {
        let secret = format!("value {n}").into();
        accounts::set_secret(&store, &Ambient::system(), &format!("secret-{n}"), &secret, &by_root())
            .await
            .unwrap();
    }

    // Both keys are named: everything opens, and it is said what is left to do.
    house.write("dlo.toml", &keys(&db.url, "two.key", &["one.key"]));
    let check = house.done(&["check"]);
    let one = id_of(&house, "one.key");
    assert!(
        check.contains("0 stored secrets are under the key in use") && !check.contains("Nothing"),
        "{check}"
    );
    let needs = format!("The key {one} has to stay in old_secret_key_files: 121 stored secrets are under it");
    assert!(check.contains(&needs), "{check}");
    // One more is under the new key already.
    house.dlo_with(&["secret", "set", "new"], "value of new");
    let out = house.done(&["rotate-keys"]);
    assert!(
        out.contains("121 stored secrets were put")
            && out.contains("122 stored secrets are under the key in use"),
        "{out}"
    );
    // What cannot be moved needs the old key for good.
    let stays = format!(
        "The key {one} has to stay in old_secret_key_files: No. 1 to 121 of the audit are verified with it."
    );
    assert!(out.contains(&stays) && !out.contains("Nothing"), "{out}");
    let out = house.done(&["rotate-keys"]);
    assert!(out.starts_with("0 stored secrets were put"), "once is enough: {out}");
    let noted = raw.texts("SELECT detail FROM audit JOIN audit_words ON audit_id = id WHERE action = 'key_rotate' ORDER BY at, id").await;
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert!(noted[0].starts_with("100 in secrets to the key ") && noted[1].starts_with("21 in"), "{noted:?}");

    // One that nothing was ever done with may go.
    house.write("dlo.toml", &keys(&db.url, "two.key", &["one.key", "three.key"]));
    let check = house.done(&["check"]);
    let three = id_of(&house, "three.key");
    assert!(
        check.contains(&format!("Nothing needs the key {three} any more")) && check.contains(&stays),
        "{check}"
    );
    // Without the old one nothing breaks at once, and what will is said.
    house.write("dlo.toml", &keys(&db.url, "two.key", &[]));
    let check = house.dlo(&["check"]);
    let gone = format!("The secret key {one} is not here, and it is needed: No. 1 to 121 of the audit");
    assert!(check.code == Some(2) && check.out.contains(&gone), "{check:?}");
    assert_eq!(house.dlo(&["audit", "verify"]).code, Some(1));
    let serve = house.command(&["serve", "--only", "engine"]);
    let mut serving = Process::start(serve, house.path("stderr"), "Engine:");
    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0), "{}", serving.err());
    assert!(serving.err().contains(&gone) && serving.err().contains("ERROR"), "{}", serving.err());
    house.write("dlo.toml", &keys(&db.url, "two.key", &["one.key"]));
    assert_eq!(house.dlo(&["audit", "verify"]).code, Some(0));

    // A key that is gone: nothing is lost, and what to do is said.
    house.write("dlo.toml", &keys(&db.url, "three.key", &[]));
    let broken = house.dlo(&["rotate-keys"]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(
        broken.err.contains("secrets/crm/1") && broken.err.contains("name it in old_secret_key_files"),
        "{broken:?}"
    );
    let check = house.dlo(&["check"]);
    assert_eq!(check.code, Some(2));
    assert!(
        check.err.contains("dlo.toml:7: destinations.crm.headers.X-A: the secret crm cannot be read"),
        "{check:?}"
    );
    house.write("dlo.toml", &keys(&db.url, "three.key", &["two.key", "one.key"]));
    assert!(house.done(&["rotate-keys"]).contains("122 stored secrets were put"));
    assert_eq!(house.dlo(&["check"]).code, Some(0));

    // An envelope in another's place opens nowhere.
    raw.execute(
        "UPDATE secrets SET wrapped = (SELECT wrapped FROM secrets s WHERE s.name = 'new'), \
         sealed = (SELECT sealed FROM secrets s WHERE s.name = 'new') WHERE name = 'crm'",
    )
    .await;
    let moved = house.dlo(&["check"]);
    assert!(moved.code == Some(2) && moved.err.contains("was changed since it was stored"), "{moved:?}");
}

async fn what_was_erased_needs_the_key_of_its_time(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let id = app.submit("keyed", "order-1").await;
    let old = app.engine.db().keyring().unwrap().current().clone();
    let mut tx = app.engine.db().begin().await.unwrap();
    erasure::erase(&mut tx, &[(id, "order-1".to_owned())]).await.unwrap();
    tx.commit(Commit::Tidy).await.unwrap();
    let new = SecretKey::new("a new key for this test, and long enough").unwrap();
    let told = async |older: &[&SecretKey]| {
        let older = older.iter().map(|key| (*key).clone()).collect();
        let db = app.engine.db().clone().keyed(Some(Keyring::new(new.clone(), older)));
        let mut tx = db.read().await.unwrap();
        let known = erasure::named(&mut tx, &["order-1"]).await.unwrap();
        (known.get("order-1").copied(), Keys::look(&mut tx, db.keyring().unwrap()).await.unwrap())
    };
    let (known, keys) = told(&[&old]).await;
    assert_eq!((known, keys.missing()), (Some(id), vec![]));
    let line = format!(
        "The key {} has to stay in old_secret_key_files: 1 erased operation is recognised by it, and else would be \
         done again.",
        old.id()
    );
    assert_eq!(keys.told()[1..], [line]);
    let (known, keys) = told(&[]).await;
    assert_eq!(known, None, "which is why it has to stay");
    assert!(keys.missing()[0].contains(&format!("The secret key {} is not here", old.id())), "{keys:?}");
    // As an older version left it.
    app.raw().await.execute("UPDATE erased_keys SET key_id = NULL").await;
    let (_, keys) = told(&[&old]).await;
    assert!(keys.told()[1].contains("(1): keep every key that was in use by then"), "{keys:?}");
}

async fn a_secret_comes_and_goes_by_its_name(db: TestDatabase) {
    let house = House::empty();
    house.done(&["key", "new", "one.key"]);
    house.write("dlo.toml", &keys(&db.url, "one.key", &[]));
    let early = house.dlo_with(&["secret", "set", "crm"], "too early");
    assert!(early.code == Some(1) && early.err.contains("dlo migrate"), "{early:?}");
    house.done(&["migrate"]);
    for (name, secret) in [("crm", ""), ("crm", "\n"), ("c r m", "value"), ("../crm", "value")] {
        let refused = house.dlo_with(&["secret", "set", name], secret);
        assert_eq!(refused.code, Some(1), "{name}: {refused:?}");
    }
    assert!(house.done(&["secret", "list"]).contains("No secrets yet"));
    let set = house.dlo_with(&["secret", "set", "crm"], "first\n");
    assert!(set.out.contains("is stored") && set.out.contains("starts again"), "{set:?}");
    let set = house.dlo_with(&["secret", "set", "crm"], "second\n");
    assert!(set.out.contains("has a new value"), "{set:?}");
    let set = house.dlo_with(&["secret", "set", "spare"], "third");
    assert!(set.out.contains("${secret:spare}"), "{set:?}");

    let list = house.done(&["secret", "list"]);
    let line = |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("crm").contains("cli:") && line("crm").contains("1 place"), "{list}");
    assert!(line("spare").contains("not taken"), "{list}");

    let kept = house.dlo(&["secret", "remove", "crm"]);
    assert_eq!(kept.code, Some(1));
    assert!(kept.err.contains("dlo.toml:7: destinations.crm.headers.X-A: takes the secret crm"), "{kept:?}");
    house.done(&["secret", "remove", "spare"]);
    assert_eq!(house.dlo(&["secret", "remove", "spare"]).code, Some(1));
    let mut raw = Raw::open(&db.url).await.unwrap();
    assert_eq!(
        raw.texts(
            "SELECT action || ' ' || detail FROM audit JOIN audit_words ON audit_id = id ORDER BY at, id"
        )
        .await,
        ["secret_set crm, new", "secret_set crm, replaced", "secret_set spare, new", "secret_remove spare"]
    );
}
