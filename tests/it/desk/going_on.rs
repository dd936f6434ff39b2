//! What is recorded as completed lets the steps behind it go on, and every page says so.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::operation::OperationState;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};

on_both!(
    what_is_recorded_as_completed_goes_on_and_says_so,
    what_is_closed_in_another_way_sends_nothing_and_says_so,
    the_page_behind_a_button_is_called_as_the_button,
);

const TWO: &str = r#"
[operations.two]
[[operations.two.steps]]
name = "first"
destination = "keyed"
method = "POST"
path = "/tickets"
body = { order = "{{ payload.order_id }}" }
save = { ticket = "/id" }
reference = "/id"
[[operations.two.steps]]
name = "second"
destination = "plain"
method = "POST"
path = "/receipts"
body = { ticket = "{{ steps.first.ticket }}" }
"#;

const GOES_ON: &str =
    "This step is not sent again. The operation then goes on: \u{201c}second\u{201d} at Plain is sent.";

async fn refused(db: TestDatabase) -> (Desk, uuid::Uuid, String) {
    let mut desk = Desk::configured(db, TWO).await;
    desk.app.destination.script("/keyed", [Behaviour::status(422)]);
    let id = desk.app.submit("two", "order-1").await;
    desk.app.run_until_idle().await;
    let letter = desk.app.letter(id).await.id;
    (desk, id, format!("/dead-letters/{letter}"))
}

fn paths(desk: &Desk) -> Vec<String> {
    desk.app.destination.requests().into_iter().map(|request| request.path).collect()
}

/// The buttons of the form that decides.
fn presses(page: &Reply) -> Vec<String> {
    page.all("form.decide button").into_iter().map(|(words, _)| words).collect()
}

async fn what_is_recorded_as_completed_goes_on_and_says_so(db: TestDatabase) {
    let (mut desk, id, letter) = refused(db).await;
    let resolve = format!("{letter}/resolve");
    let fields = [
        ("resolution", "completed_at_destination"),
        ("reference", "TCK-9"),
        ("reason", "it is there"),
        ("action_id", "a"),
    ];
    {
        let mut olga = desk.signed_in(Role::Operator).await;
        let form = olga.get(&resolve).await.expect(200);
        let wanted = format!(
            "\u{201c}Completed at the destination\u{201d}: {GOES_ON} Closed in any other way, nothing is sent."
        );
        assert!(form.words().contains(&wanted), "{}", form.words());
        assert!(!form.words().contains("Nothing is sent and nothing is deleted"), "{}", form.words());
        olga.post(&resolve, &fields).await.location();
        let page = olga.get(&letter).await.expect(200);
        let words = page.words();
        assert!(words.contains(GOES_ON) && !words.contains("Nothing was sent for it"), "{words}");
        let ended = page.first(".ended");
        assert!(ended.contains("The operation went on with \u{201c}second\u{201d} at Plain."), "{ended}");
        assert_eq!(page.first("section.know h2"), "What is known of it");
        let card = page.first("section.know");
        assert!(
            card.contains("Recorded as done") && card.contains("operator recorded it as done."),
            "{card}"
        );
        let replay = olga.get(&format!("{letter}/replay")).await.expect(200);
        let words = replay.words();
        assert!(words.contains("so this step is not sent again."), "{words}");
        assert!(!words.contains("nothing is sent from here any more"), "{words}");
    }
    desk.app.run_until_idle().await;
    assert_eq!(paths(&desk), ["/keyed/tickets", "/plain/receipts"]);
    assert_eq!(desk.app.state(id).await, OperationState::Completed);
}

async fn what_is_closed_in_another_way_sends_nothing_and_says_so(db: TestDatabase) {
    let (mut desk, _, letter) = refused(db).await;
    {
        let mut olga = desk.signed_in(Role::Operator).await;
        let fields = [("resolution", "not_needed"), ("reason", "cancelled"), ("action_id", "a")];
        olga.post(&format!("{letter}/resolve"), &fields).await.location();
        let page = olga.get(&letter).await.expect(200);
        assert!(page.words().contains("Nothing was sent for it."), "{}", page.words());
        assert!(!page.first(".ended").contains("went on"), "{}", page.first(".ended"));
        let replay = olga.get(&format!("{letter}/replay")).await.expect(200);
        assert!(replay.words().contains("nothing is sent from here any more"), "{}", replay.words());
    }
    desk.app.run_until_idle().await;
    assert_eq!(paths(&desk), ["/keyed/tickets"]);
}

async fn the_page_behind_a_button_is_called_as_the_button(db: TestDatabase) {
    let (desk, _, letter) = refused(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let resolve = format!("{letter}/resolve");
    let form = olga.get(&resolve).await.expect(200);
    assert_eq!((form.first("h1"), presses(&form)), ("Resolve".into(), vec!["Close this dead letter".into()]));

    let buttons = olga.get(&letter).await.expect(200).all(".actions a.button");
    let (_, record) = buttons.iter().find(|(words, _)| words.contains("record as completed")).expect("one");
    let form = olga.get(record).await.expect(200);
    let called = |form: &Reply| {
        assert_eq!(form.first("h1"), "Record as completed");
        assert!(form.first("title").contains("Record as completed"));
        assert_eq!(presses(form), ["Record as completed"]);
        assert!(form.all("[type=radio]").is_empty(), "it offers what the button said");
        assert!(form.words().contains(&format!("{GOES_ON} Nothing is deleted.")), "{}", form.words());
        assert!(
            form.all("form.decide a").iter().any(|(_, href)| *href == resolve),
            "and the way to the others"
        );
    };
    called(&form);
    let sent = [
        ("record", form.field("record")),
        ("resolution", form.field("resolution")),
        ("action_id", form.field("action_id")),
    ];
    let fields: Vec<(&str, &str)> = sent.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let wrong = olga.post(&resolve, &fields).await.expect(422);
    called(&wrong);
    assert!(wrong.words().contains("Give the id that it has there"), "{}", wrong.words());
    let mut fields = fields;
    fields.extend([("reference", "TCK-9"), ("reason", "found it")]);
    assert_eq!(olga.post(&resolve, &fields).await.location(), letter);
}
