//! Private values are shown to one session, of one operation, for ten minutes, with a reason and on
//! record; nowhere else, and not a moment longer.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person, Reply};
use crate::support::tables::business;

on_both!(
    private_values_are_shown_for_ten_minutes_and_then_hidden_by_themselves,
    they_are_shown_to_one_session_of_one_operation_and_in_no_list,
    they_are_hidden_again_at_a_press_and_at_sign_out,
    nothing_is_shown_without_a_reason,
    files_hold_them_only_while_they_are_shown,
    what_an_answer_says_of_an_erased_payload_leaves_only_while_all_is_shown,
);

const PRIVATE: &str = "anna@example.com";
const WHY: &str = "she called about her address";

/// Who did it, why, and what, of an action.
async fn recorded(desk: &Desk, action: &str) -> Vec<String> {
    let sql = format!(
        "SELECT actor || ': ' || coalesce(reason, 'no reason') || ': ' || detail FROM audit JOIN audit_words ON audit_id = id \
         WHERE action = '{action}' ORDER BY at, id"
    );
    desk.app.raw().await.texts(sql).await
}

async fn show(person: &mut Person<'_>, path: &str) -> Reply {
    person.post(&format!("{path}/unmasked"), &[("reason", WHY)]).await
}

async fn private_values_are_shown_for_ten_minutes_and_then_hidden_by_themselves(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (id, letter) = desk.dead_letter("keyed", "order-1").await;
    let clock = desk.app.clock.clone();
    let mut olga = desk.signed_in(Role::Operator).await;
    let pages = [format!("/operations/{id}"), format!("/dead-letters/{letter}")];
    for page in &pages {
        let hidden = olga.get(page).await.expect(200);
        assert!(!hidden.text.contains(PRIVATE), "{}", hidden.words());
        assert!(hidden.first("section[aria-labelledby=payload] summary").contains("Show all for 10 minutes"));
    }
    let fields = [("reason", WHY), ("letter", &letter.to_string())];
    let sent = olga.post(&format!("{}/unmasked", pages[0]), &fields).await;
    assert_eq!(sent.location(), pages[1], "back to where the button stood");
    clock.advance(Duration::from_secs(9 * 60 + 59));
    let before = business(&desk.app).await;
    for page in &pages {
        let shown = olga.get(page).await.expect(200);
        assert!(shown.first("section[aria-labelledby=payload]").contains(PRIVATE), "{}", shown.words());
        let banner = shown.first(".flash.shown");
        assert!(
            banner.contains("Nothing is hidden on this page.")
                && banner.contains("until 29 Nov 2026, 09:10:00"),
            "{banner}"
        );
        assert!(!shown.first("title").contains(PRIVATE));
    }
    assert_eq!(business(&desk.app).await, before, "looking writes nothing");
    clock.advance(Duration::from_secs(1));
    for page in &pages {
        let hidden = olga.get(page).await.expect(200);
        assert!(!hidden.text.contains(PRIVATE) && hidden.first(".flash.shown").is_empty(), "{page}");
    }
    let wanted =
        format!("operator: {WHY}: everything, on the pages of the operation until 29 Nov 2026, 09:10:00 UTC");
    assert_eq!(recorded(&desk, "view_payload").await, [wanted], "one entry covers the looks");
    assert!(olga.get(&pages[0]).await.first(".thread").contains("looked at private values"));
}

async fn they_are_shown_to_one_session_of_one_operation_and_in_no_list(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (id, letter) = desk.dead_letter("keyed", "order-1").await;
    let (other, _) = desk.dead_letter("keyed", "order-2").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/operations/{id}");
    show(&mut olga, &path).await.expect(303);
    assert!(olga.get(&path).await.text.contains(PRIVATE));
    let elsewhere = [
        format!("/operations/{other}"),
        "/".to_owned(),
        "/operations".to_owned(),
        "/dead-letters".to_owned(),
        format!("/dead-letters/{letter}/replay"),
        "/audit".to_owned(),
    ];
    for page in elsewhere {
        assert!(!olga.get(&page).await.expect(200).text.contains(PRIVATE), "{page}");
    }
    // The same person at another browser.
    let mut again = desk.nobody();
    again.sign_in("operator", PASSWORD).await.location();
    assert!(!again.get(&path).await.expect(200).text.contains(PRIVATE));
    let mut ada = desk.signed_in(Role::Approver).await;
    assert!(!ada.get(&path).await.expect(200).text.contains(PRIVATE));
}

async fn they_are_hidden_again_at_a_press_and_at_sign_out(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (id, _) = desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/operations/{id}");
    let once = [("reason", WHY), ("action_id", "press-1")];
    olga.post(&format!("{path}/unmasked"), &once).await.expect(303);
    assert!(olga.get(&path).await.text.contains(PRIVATE));
    for _ in 0..2 {
        olga.post(&format!("{path}/masked"), &[]).await.expect(303);
        assert!(!olga.get(&path).await.text.contains(PRIVATE));
    }
    assert_eq!(recorded(&desk, "hide_payload").await, ["operator: no reason: before the time was over"]);
    // The form that was sent already opens nothing.
    olga.post(&format!("{path}/unmasked"), &once).await.expect(303);
    assert!(!olga.get(&path).await.text.contains(PRIVATE));

    show(&mut olga, &path).await.expect(303);
    let stolen = olga.cookie.clone();
    olga.post("/logout", &[]).await.expect(303);
    let mut thief = desk.nobody();
    thief.cookie = stolen;
    thief.get(&path).await.expect(303);
    assert_eq!(desk.app.raw().await.number("SELECT count(*) FROM shown").await, 0);
    olga.sign_in("operator", PASSWORD).await.location();
    assert!(!olga.get(&path).await.expect(200).text.contains(PRIVATE), "a new session begins with nothing");
}

async fn nothing_is_shown_without_a_reason(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (id, _) = desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/operations/{id}");
    let long = "x".repeat(1_001);
    for reason in ["", " \n ", &long] {
        let refused = olga.post(&format!("{path}/unmasked"), &[("reason", reason)]).await.expect(409);
        assert!(refused.words().contains("reason"), "{}", refused.words());
        assert!(!olga.get(&path).await.text.contains(PRIVATE));
    }
    assert!(recorded(&desk, "view_payload").await.is_empty());
}

/// An operation whose answer repeats what is private, and the attempt that brought it.
async fn answered(desk: &mut Desk, key: &str) -> (Uuid, Uuid) {
    let said = format!("{PRIVATE} is not known");
    desk.app.destination.script("/keyed", [Behaviour::error(422, "unknown", &said)]);
    let id = desk.app.submit("keyed", key).await;
    desk.app.run_until_idle().await;
    (id, desk.app.thread(id).await.attempts[0].id)
}

async fn files_hold_them_only_while_they_are_shown(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (id, attempt) = answered(&mut desk, "order-1").await;
    let (other, _) = answered(&mut desk, "order-2").await;
    let clock = desk.app.clock.clone();
    let payload = desk.app.thread(id).await.payload.expect("it is kept");
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/operations/{id}");
    let answer = format!("{path}/attempts/{attempt}/answer");
    let files = [format!("{path}/payload"), answer, format!("{path}/evidence.json")];
    let masked = async |olga: &mut Person<'_>| {
        let page = olga.get(&path).await.expect(200);
        let words = page.words();
        assert!(words.contains("Download it, private values hidden"), "{words}");
        assert!(words.contains("Download what attempt 1 of create ticket brought, private values hidden"));
        assert!(words.contains("Private values are hidden in it."), "{words}");
        assert!(page.all("[name=whole]").is_empty(), "nothing offers to take them along");
        for file in &files {
            let got = olga.post(file, &[("whole", "1")]).await.expect(200);
            assert!(!got.text.contains(PRIVATE), "{file}: {}", got.text);
            assert!(got.text.contains("\u{2022}\u{2022}\u{2022}"), "{file}: {}", got.text);
        }
    };
    masked(&mut olga).await;
    let file = olga.post(&files[0], &[]).await.expect(200);
    assert_eq!(
        file.header("content-disposition"),
        format!("attachment; filename=\"payload-{id}-masked.txt\"")
    );

    show(&mut olga, &path).await.expect(303);
    let page = olga.get(&path).await.expect(200);
    assert!(page.words().contains("Download it whole") && page.all("[name=whole]").len() == 1);
    assert_eq!(olga.post(&files[0], &[]).await.expect(200).text, payload);
    for file in &files {
        let got = olga.post(file, &[("whole", "1")]).await.expect(200);
        assert!(got.text.contains(PRIVATE), "{file}: {}", got.text);
    }
    // That one operation is shown says nothing of another, and one session nothing of the next.
    let elsewhere = olga.post(&format!("/operations/{other}/payload"), &[]).await.expect(200);
    assert!(!elsewhere.text.contains(PRIVATE));
    let mut again = desk.nobody();
    again.sign_in("operator", PASSWORD).await.location();
    masked(&mut again).await;

    clock.advance(Duration::from_mins(10));
    masked(&mut olga).await;
    let whole = "operator: no reason: the payload, as a file".to_owned();
    let looks = recorded(&desk, "view_payload").await;
    assert_eq!(looks.iter().filter(|look| **look == whole).count(), 2, "{looks:?}");
    assert_eq!(looks.len(), 4, "the time, two payloads, one answer: {looks:?}");
    let taken = recorded(&desk, "export").await;
    assert!(taken.contains(&"operator: no reason: the payload as a file, private values hidden".to_owned()));
    assert_eq!(taken.len(), 12, "every file that was taken is on record: {taken:?}");
}

async fn what_an_answer_says_of_an_erased_payload_leaves_only_while_all_is_shown(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (id, attempt) = answered(&mut desk, "order-1").await;
    desk.app.raw().await.execute("DELETE FROM payloads").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/operations/{id}");
    let file = format!("{path}/attempts/{attempt}/answer");
    assert!(!olga.get(&path).await.expect(200).text.contains(&file), "nothing offers it");
    let refused = olga.post(&file, &[]).await.expect(409);
    assert!(refused.text.contains("the payload was erased") && !refused.text.contains(PRIVATE));
    assert!(recorded(&desk, "export").await.is_empty());
    show(&mut olga, &path).await.expect(303);
    assert!(olga.get(&path).await.expect(200).text.contains(&file));
    assert!(olga.post(&file, &[]).await.expect(200).text.contains(PRIVATE));
}
