//! An override is decided on what was shown, and on nothing else; where two people have to decide,
//! they are two people, who may both do it at that moment.

use axum::http::Method;
use dead_letter_office::accounts;
use dead_letter_office::domain::actor::{Actor, Role, Scope};
use dead_letter_office::domain::attempt::RequestState;
use dead_letter_office::engine::actions::{ActionError, OverrideMode};
use dead_letter_office::engine::approvals::{self, Approved};
use dead_letter_office::store::overrides;
use uuid::Uuid;

use crate::support::app::{by_root, person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Person, Reply};
use crate::support::tables::business;
use crate::support::two_people::GUARDED;

on_both!(
    an_override_of_other_facts_than_were_shown_is_refused_with_what_changed,
    an_override_without_what_was_shown_is_refused,
    each_kind_of_fact_makes_a_page_stale,
    the_same_click_twice_is_one_override_whatever_happened_between,
    a_request_for_a_second_person_is_bound_to_what_was_shown_too,
    a_requester_who_was_shut_out_or_lost_the_right_is_out_of_date,
    an_approver_who_was_shut_out_or_lost_the_right_approves_nothing,
    two_people_are_two_people,
);

/// What somebody who read the form would send.
fn filled(form: &Reply, operation: Uuid) -> Vec<(&'static str, String)> {
    vec![
        ("action_id", form.field("action_id")),
        ("facts", form.field("facts")),
        ("mode", "new_effect".to_owned()),
        ("typed", operation.simple().to_string()[24..].to_owned()),
        ("reason", "the customer waits".to_owned()),
        ("accept_duplicate", "true".to_owned()),
    ]
}

async fn send(person: &mut Person<'_>, path: &str, fields: &[(&'static str, String)]) -> Reply {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    person.post(path, &fields).await
}

async fn an_override_of_other_facts_than_were_shown_is_refused_with_what_changed(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/override");
    {
        let mut anton = desk.signed_in(Role::Approver).await;
        let old = anton.get(&path).await.expect(200);
        let fields = filled(&old, operation);
        // Somebody else had it tried again meanwhile, and it failed again.
        desk.app
            .raw()
            .await
            .execute("UPDATE dead_letters SET attempts = attempts + 1, next_action = 'fix_data'")
            .await;
        let before = business(&desk.app).await;
        let stale = send(&mut anton, &path, &fields).await.expect(409);
        assert_eq!(business(&desk.app).await, before);
        let words = stale.words();
        assert!(
            words.contains(
                "Nothing was sent. This has changed since you opened the page: it was tried again; something else \
                 is to be done first. Look at it again, then decide."
            ),
            "{words}"
        );
        assert!(words.contains("the customer waits"), "what was typed is kept");
        assert!(
            !stale.text.contains("name=\"accept_duplicate\" value=\"true\" checked"),
            "but for the word on it"
        );
        assert_eq!(stale.field("action_id"), old.field("action_id"));
        assert_ne!(stale.field("facts"), old.field("facts"));
        assert_eq!(
            send(&mut anton, &path, &filled(&stale, operation)).await.location(),
            format!("/dead-letters/{letter}")
        );
    }
    desk.app.run_until_idle().await;
    assert_eq!(desk.app.destination.effects().len(), 1);
}

async fn an_override_without_what_was_shown_is_refused(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/override");
    let mut anton = desk.signed_in(Role::Approver).await;
    let form = anton.get(&path).await.expect(200);
    let before = business(&desk.app).await;
    for facts in ["", "x", "----", &form.field("facts")[1..]] {
        let mut fields = filled(&form, operation);
        fields[1].1 = facts.to_owned();
        send(&mut anton, &path, &fields).await.expect(409);
        fields.remove(1);
        send(&mut anton, &path, &fields).await.expect(409);
    }
    assert_eq!(business(&desk.app).await, before);
}

async fn each_kind_of_fact_makes_a_page_stale(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/override");
    let mut anton = desk.signed_in(Role::Approver).await;
    for (change, told) in [
        ("UPDATE dead_letters SET last_failed_at = last_failed_at + 1", "it was tried again"),
        ("UPDATE dead_letters SET certainty = 'definitely_failed'", "something else is known of its effect"),
        ("UPDATE dead_letters SET next_action = 'fix_data'", "something else is to be done first"),
        ("UPDATE requests SET body = '{\"order\":\"another\"}'", "what would be sent is different"),
    ] {
        let fields = filled(&anton.get(&path).await.expect(200), operation);
        desk.app.raw().await.execute(change.to_owned()).await;
        let stale = send(&mut anton, &path, &fields).await;
        assert_eq!(stale.status.as_u16(), 409, "{change}");
        let words = format!("since you opened the page: {told}. Look");
        assert!(stale.words().contains(&words), "{change}: {}", stale.words());
    }
    assert!(desk.app.thread(operation).await.audit.is_empty());
}

async fn the_same_click_twice_is_one_override_whatever_happened_between(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/override");
    let fields = {
        let mut anton = desk.signed_in(Role::Approver).await;
        let fields = filled(&anton.get(&path).await.expect(200), operation);
        assert_eq!(send(&mut anton, &path, &fields).await.location(), format!("/dead-letters/{letter}"));
        fields
    };
    desk.app.run_until_idle().await;
    let mut anton = desk.nobody();
    anton.sign_in("approver", crate::support::desk::PASSWORD).await;
    let again = send(&mut anton, &path, &fields).await;
    assert_eq!(again.location(), format!("/dead-letters/{letter}"), "the first answer");
    assert_eq!(desk.app.destination.effects().len(), 1);
}

/// A dead letter that two people have to override: anton asks, berta and the admin carla may approve.
async fn two(db: TestDatabase) -> (Desk, Uuid, Uuid) {
    let mut desk = Desk::configured(db, GUARDED).await;
    for (name, role) in [("anton", Role::Approver), ("berta", Role::Approver), ("carla", Role::Admin)] {
        desk.add(name, role).await;
    }
    let id = desk.app.guarded_in_doubt("order-1").await;
    let letter = desk.app.letter(id).await.id;
    (desk, id, letter)
}

async fn a_request_for_a_second_person_is_bound_to_what_was_shown_too(db: TestDatabase) {
    let (desk, operation, letter) = two(db).await;
    let path = format!("/dead-letters/{letter}/override");
    let mut anton = desk.nobody();
    anton.sign_in("anton", crate::support::desk::PASSWORD).await;
    let fields = filled(&anton.get(&path).await.expect(200), operation);
    desk.app
        .raw()
        .await
        .execute("UPDATE dead_letters SET last_failed_at = last_failed_at + 1".to_owned())
        .await;
    let stale = send(&mut anton, &path, &fields).await.expect(409);
    assert!(stale.words().contains("it was tried again. Look at it again"), "{}", stale.words());
    let mut tx = desk.app.engine.db().read().await.unwrap();
    assert!(overrides::waiting(&mut tx, None, 10).await.unwrap().is_empty());
    drop(tx);
    let place = send(&mut anton, &path, &filled(&stale, operation)).await.location().to_owned();
    assert!(place.starts_with("/approvals/"));
}

async fn a_requester_who_was_shut_out_or_lost_the_right_is_out_of_date(db: TestDatabase) {
    let (desk, operation, _) = two(db).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let berta = person("berta", Role::Approver);
    for (n, lost) in ["role", "account"].into_iter().enumerate() {
        let id = desk.app.anton_waits(operation, lost).await;
        match lost {
            "role" => accounts::set_role(db, ambient, "anton", Role::Operator, &by_root()).await.unwrap(),
            _ => accounts::disable(db, ambient, "anton", &by_root()).await.unwrap(),
        }
        let answer = desk.app.approve(id, &berta, &format!("b{n}")).await;
        let Ok(Approved::Stale(why)) = &answer else { panic!("{lost}: {answer:?}") };
        assert_eq!(why, "anton may not override any more");
        assert_eq!(desk.app.override_request(id).await.state, RequestState::Stale);
        accounts::set_role(db, ambient, "anton", Role::Approver, &by_root()).await.unwrap();
        accounts::enable(db, ambient, "anton", &by_root()).await.unwrap();
        // What went out of date does not come back with them.
        assert!(matches!(desk.app.approve(id, &berta, &format!("c{n}")).await, Err(ActionError::Settled(_))));
    }
    assert_eq!(desk.app.destination.effects().len(), 1);
}

async fn an_approver_who_was_shut_out_or_lost_the_right_approves_nothing(db: TestDatabase) {
    let (desk, operation, _) = two(db).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let id = desk.app.anton_waits(operation, "a").await;
    // As they were a moment ago, when their page was asked for.
    let berta = person("berta", Role::Approver);
    accounts::disable(db, ambient, "berta", &by_root()).await.unwrap();
    let answer = desk.app.approve(id, &berta, "b").await;
    assert!(matches!(answer, Err(ActionError::Forbidden(_))), "{answer:?}");
    accounts::enable(db, ambient, "berta", &by_root()).await.unwrap();
    accounts::set_role(db, ambient, "berta", Role::Operator, &by_root()).await.unwrap();
    let answer = desk.app.approve(id, &berta, "c").await;
    assert!(matches!(answer, Err(ActionError::Forbidden(_))), "{answer:?}");
    let nobody = desk.app.approve(id, &person("made up", Role::Admin), "d").await;
    assert!(matches!(nobody, Err(ActionError::Forbidden(_))), "{nobody:?}");
    assert_eq!(
        desk.app.override_request(id).await.state,
        RequestState::Waiting,
        "it waits for somebody who may"
    );
    assert!(matches!(
        desk.app.approve(id, &person("carla", Role::Admin), "e").await,
        Ok(Approved::Judged(_))
    ));
}

async fn two_people_are_two_people(db: TestDatabase) {
    let (desk, operation, letter) = two(db).await;
    let id = desk.app.anton_waits(operation, "a").await;
    let own = desk.app.approve(id, &person("anton", Role::Approver), "b").await;
    assert!(matches!(&own, Err(ActionError::Forbidden(why)) if why.contains("yourself")), "{own:?}");
    // Neither a token nor the command line is the second one, whatever they are called.
    let token = |scope| Actor::Token { name: "berta".into(), scope };
    for actor in [token(Scope::Operate), token(Scope::Read), Actor::Cli { user: "berta".into() }] {
        let answer = desk.app.approve(id, &actor, "c").await;
        assert!(matches!(answer, Err(ActionError::Forbidden(_))), "{actor}: {answer:?}");
    }
    assert_eq!(desk.app.override_request(id).await.state, RequestState::Waiting);

    // Nor the first one.
    let row = desk.app.letter(operation).await;
    for actor in [token(Scope::Operate), Actor::Cli { user: "anton".into() }] {
        let asked = request(&actor, "d");
        let answer =
            approvals::ask(desk.app.engine.gate(), &row, OverrideMode::NewEffect, None, &asked).await;
        assert!(matches!(answer, Err(ActionError::Forbidden(_))), "{actor}: {answer:?}");
    }
    // A token that is called as its person is somebody else in the audit, and overrides nothing alone.
    let header = desk.token_named("anton", Scope::Operate).await;
    let body = r#"{"reason":"x","mode":"new_effect","accept_duplicate":true}"#;
    let path = format!("/api/v1/dead-letters/{letter}/override");
    let reply = desk.call(Method::POST, &path, &header, body).await.expect(409);
    assert_eq!(reply.json()["verdict"], "refused");
    let audit = desk.app.thread(operation).await.audit;
    let actors: Vec<&str> = audit.iter().map(|row| row.actor.as_str()).collect();
    assert_eq!(actors, ["anton", "token:anton"]);
    assert_eq!(desk.app.destination.effects().len(), 1);
}
