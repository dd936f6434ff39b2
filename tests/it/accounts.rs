//! People, one-time links and tokens.

use std::time::Duration;

use dead_letter_office::accounts::{self, AccountError, LinkFor};
use dead_letter_office::domain::actor::{Actor, Right, Role, Scope};
use dead_letter_office::domain::sign_in::SignInBy;
use dead_letter_office::store::sessions::{self, SessionRow};
use dead_letter_office::store::{Commit, accounts as rows};
use uuid::Uuid;

use crate::support::app::{TestApp, by_root};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_sign_in_says_only_yes_or_no,
    a_link_works_once_and_for_half_an_hour,
    the_first_link_is_for_an_empty_database,
    two_uses_of_a_link_at_once_count_once,
    a_change_of_a_person_ends_their_sessions,
    a_token_works_until_it_lapses_or_is_revoked,
    scopes_hold_what_they_say,
    names_cannot_pose_as_others,
    no_secret_is_in_the_database_or_the_audit,
);

const PASSWORD: &str = "correct horse battery";

async fn add(app: &TestApp, name: &str, role: Role) {
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    accounts::add_user(db, ambient, name, role, Some(PASSWORD.into()), &by_root()).await.unwrap();
}

async fn may_enter(app: &TestApp, name: &str, password: &str) -> bool {
    accounts::sign_in(app.engine.db(), name, password.to_owned()).await.unwrap().is_some()
}

async fn a_sign_in_says_only_yes_or_no(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    add(&app, "olga", Role::Operator).await;
    let user = accounts::sign_in(db, "olga", PASSWORD.into()).await.unwrap().unwrap();
    assert_eq!((user.name.as_str(), user.role.as_str()), ("olga", "operator"));
    for (name, password) in [
        ("olga", "correct horse batterY"),
        ("olga", ""),
        ("nobody", PASSWORD),
        ("", PASSWORD),
        ("ol\0ga\0x", PASSWORD),
        ("' OR 1=1 --", PASSWORD),
        ("olga", &"x".repeat(100_000)),
    ] {
        assert!(!may_enter(&app, name, password).await, "{name}");
    }
    accounts::add_user(db, ambient, "vera", Role::Viewer, None, &by_root()).await.unwrap();
    assert!(!may_enter(&app, "vera", "").await, "no password is no password");
    accounts::disable(db, ambient, "olga", &by_root()).await.unwrap();
    assert!(!may_enter(&app, "olga", PASSWORD).await);
    let gone = accounts::disable(db, ambient, "nobody", &by_root()).await;
    assert!(matches!(gone, Err(AccountError::Unknown(_))));
}

async fn a_link_works_once_and_for_half_an_hour(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    add(&app, "olga", Role::Operator).await;
    let link = async || accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap();
    let using = async |secret: &str, password: &str| {
        accounts::use_link(db, ambient, secret, "ignored", password.into(), "::1").await
    };
    let secret = link().await;
    assert_eq!(accounts::link_for(db, ambient, &secret).await.unwrap(), LinkFor::Password("olga".into()));
    assert!(matches!(using(&secret, "short").await, Err(AccountError::Password(_))));
    assert_eq!(using(&secret, "a new password").await.unwrap(), "olga");
    assert!(matches!(using(&secret, "another password").await, Err(AccountError::Link)));
    assert!(may_enter(&app, "olga", "a new password").await);
    assert!(!may_enter(&app, "olga", PASSWORD).await);

    let secret = link().await;
    app.clock.advance(Duration::from_mins(30) - Duration::from_micros(1));
    assert!(accounts::link_for(db, ambient, &secret).await.is_ok());
    app.clock.advance(Duration::from_micros(1));
    assert!(matches!(accounts::link_for(db, ambient, &secret).await, Err(AccountError::Link)));
    assert!(matches!(using(&secret, "another password").await, Err(AccountError::Link)));
    for made_up in ["", "x", "\0", &"x".repeat(10_000)] {
        assert!(matches!(using(made_up, "another password").await, Err(AccountError::Link)));
    }
    let nobody = accounts::make_link(db, ambient, Some("nobody"), &by_root()).await;
    assert!(matches!(nobody, Err(AccountError::Unknown(_))));
}

async fn the_first_link_is_for_an_empty_database(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let first = accounts::first_link(db, ambient, &by_root()).await.unwrap().unwrap();
    let other = accounts::first_link(db, ambient, &by_root()).await.unwrap().unwrap();
    assert_eq!(accounts::link_for(db, ambient, &first).await.unwrap(), LinkFor::FirstAdmin);
    let name = accounts::use_link(db, ambient, &first, " ada ", PASSWORD.into(), "::1").await.unwrap();
    assert_eq!(name, "ada");
    let ada = accounts::sign_in(db, "ada", PASSWORD.into()).await.unwrap().unwrap();
    assert_eq!(ada.role, "admin");
    let late = accounts::use_link(db, ambient, &other, "eve", PASSWORD.into(), "::1").await;
    assert!(matches!(late, Err(AccountError::Link)), "somebody else was first");
    assert!(accounts::first_link(db, ambient, &by_root()).await.unwrap().is_none());
}

async fn two_uses_of_a_link_at_once_count_once(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let secret = accounts::first_link(db, ambient, &by_root()).await.unwrap().unwrap();
    let using =
        async |name: &str| accounts::use_link(db, ambient, &secret, name, PASSWORD.into(), "::1").await;
    let (one, two) = tokio::join!(using("ada"), using("eve"));
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    let mut tx = db.read().await.unwrap();
    assert_eq!(rows::users(&mut tx).await.unwrap().len(), 1);
}

async fn a_change_of_a_person_ends_their_sessions(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    add(&app, "olga", Role::Operator).await;
    let olga = accounts::sign_in(db, "olga", PASSWORD.into()).await.unwrap().unwrap().id;
    let end = app.now().plus(Duration::from_hours(1));
    let hers = SessionRow {
        id: Uuid::from_u128(1),
        user_id: olga,
        began_at: app.now(),
        seen_at: app.now(),
        address: "::1".into(),
        agent: "Firefox".into(),
        signed_in_by: SignInBy::Password,
    };
    for change in 0..4 {
        let mut tx = db.begin().await.unwrap();
        assert!(
            sessions::insert(&mut tx, b"hers", "{}", end, Some(hers.user_id), Some(&hers)).await.unwrap()
        );
        tx.commit(Commit::Session).await.unwrap();
        match change {
            0 => accounts::set_role(db, ambient, "olga", Role::Approver, &by_root()).await.unwrap(),
            1 => {
                let (old, new) = (PASSWORD.to_owned(), "a new password".into());
                accounts::change_password(db, ambient, "olga", old, new, &by_root()).await.unwrap();
            }
            2 => {
                let secret = accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap();
                accounts::use_link(db, ambient, &secret, "", "a third password".into(), "::1").await.unwrap();
            }
            _ => accounts::disable(db, ambient, "olga", &by_root()).await.unwrap(),
        }
        let mut tx = db.read().await.unwrap();
        assert_eq!(sessions::load(&mut tx, b"hers", app.now()).await.unwrap(), None, "change {change}");
        let row = rows::user_by_id(&mut tx, olga).await.unwrap().unwrap();
        assert_eq!(row.role, "approver");
    }
    let (wrong, new) = ("not it at all".to_owned(), "a fourth password".into());
    let refused = accounts::change_password(db, ambient, "olga", wrong, new, &by_root()).await;
    assert!(matches!(refused, Err(AccountError::Present)));
}

async fn a_token_works_until_it_lapses_or_is_revoked(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let create = async |name: &str, lasts| {
        accounts::create_token(db, ambient, name, Scope::Submit, lasts, &by_root()).await
    };
    let holder = async |secret: &str| accounts::token_holder(db, ambient, secret).await.unwrap();
    let hour = create("hour", Some(Duration::from_hours(1))).await.unwrap();
    let endless = create("endless", None).await.unwrap();
    assert!(hour.starts_with("dlo_") && hour != endless);
    assert!(matches!(create("hour", None).await, Err(AccountError::Name(_))));
    let row = holder(&hour).await.unwrap();
    assert_eq!((row.name.as_str(), row.scope), ("hour", Scope::Submit));
    app.clock.advance(Duration::from_secs(30));
    let used = async |name: &str| {
        let mut tx = db.read().await.unwrap();
        rows::tokens(&mut tx).await.unwrap().into_iter().find(|row| row.name == name).unwrap().last_used_at
    };
    let first_use = used("hour").await;
    holder(&hour).await.unwrap();
    assert_eq!(used("hour").await, first_use, "to the minute");
    app.clock.advance(Duration::from_mins(59));
    holder(&hour).await.unwrap();
    assert_eq!(used("hour").await, Some(app.now()));
    app.clock.advance(Duration::from_secs(30));
    assert!(holder(&hour).await.is_none(), "it lapsed");
    assert!(holder(&endless).await.is_some());
    for made_up in ["", "dlo_", "dlo_x", &endless[4..], &format!("{endless}x"), "dlo_\0"] {
        assert!(holder(made_up).await.is_none(), "{made_up}");
    }
    accounts::revoke_token(db, ambient, "endless", &by_root()).await.unwrap();
    assert!(holder(&endless).await.is_none());
    let twice = accounts::revoke_token(db, ambient, "endless", &by_root()).await;
    assert!(matches!(twice, Err(AccountError::Unknown(_))));
}

async fn scopes_hold_what_they_say(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    use Right as R;
    let rights = [
        (Scope::Submit, vec![R::Submit]),
        (Scope::Read, vec![R::View, R::ViewPayload, R::Audit, R::Export]),
        (
            Scope::Operate,
            vec![
                R::View,
                R::ViewPayload,
                R::Replay,
                R::Correct,
                R::Resolve,
                R::Bulk,
                R::Override,
                R::PauseDestination,
                R::Audit,
                R::Export,
            ],
        ),
        (Scope::Work, vec![R::Work]),
    ];
    for (scope, wanted) in rights {
        let secret =
            accounts::create_token(db, ambient, scope.as_str(), scope, None, &by_root()).await.unwrap();
        let row = accounts::token_holder(db, ambient, &secret).await.unwrap().unwrap();
        let actor = Actor::Token { name: row.name, scope: row.scope };
        let held: Vec<Right> = R::ALL.iter().copied().filter(|right| actor.may(*right)).collect();
        assert_eq!(held, wanted, "{scope}");
    }
}

async fn names_cannot_pose_as_others(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    for name in ["", "  ", "token:shop", "cli:root", "a\nb", "\u{0}", &"x".repeat(65)] {
        let added =
            accounts::add_user(db, ambient, name, Role::Viewer, Some(PASSWORD.into()), &by_root()).await;
        assert!(matches!(added, Err(AccountError::Name(_))), "{name:?}");
        let token = accounts::create_token(db, ambient, name, Scope::Read, None, &by_root()).await;
        assert!(matches!(token, Err(AccountError::Name(_))), "{name:?}");
    }
    add(&app, "olga", Role::Viewer).await;
    let again = accounts::add_user(db, ambient, " olga ", Role::Admin, None, &by_root()).await;
    assert!(matches!(again, Err(AccountError::Name(_))), "taken");
    for password in ["short", &"x".repeat(1_025)] {
        let weak =
            accounts::add_user(db, ambient, "otto", Role::Viewer, Some(password.into()), &by_root()).await;
        assert!(matches!(weak, Err(AccountError::Password(_))));
    }
}

async fn no_secret_is_in_the_database_or_the_audit(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    add(&app, "olga", Role::Operator).await;
    let mut secrets = vec![PASSWORD.to_owned(), "a new password".to_owned()];
    secrets.push(accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap());
    let used = accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap();
    accounts::use_link(db, ambient, &used, "", "a new password".into(), "::1").await.unwrap();
    secrets.push(used);
    secrets.push(accounts::create_token(db, ambient, "shop", Scope::Submit, None, &by_root()).await.unwrap());
    accounts::token_holder(db, ambient, secrets.last().unwrap()).await.unwrap();
    let dump = app.raw().await.dump().await;
    assert!(dump.iter().any(|(_, row)| row.contains("$argon2id$")));
    for secret in &secrets {
        let bare = secret.trim_start_matches("dlo_");
        // Bytes are shown in hexadecimal.
        let hexadecimal: String = bare.bytes().map(|byte| format!("{byte:02x}")).collect();
        for (table, row) in &dump {
            let row = row.to_lowercase();
            assert!(!row.contains(&bare.to_lowercase()) && !row.contains(&hexadecimal), "{table}: {row}");
        }
    }
    let audited = dump.iter().filter(|(table, _)| table == "audit").count();
    assert_eq!(audited, 5, "each change is on record");
}
