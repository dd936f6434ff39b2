//! Work that passes through several hands: a wrong address, a colleague who knows more, a customer
//! who wants to know.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::operation::OperationState;
use serde_json::{Value, json};

use super::person::Person;
use crate::support::app::submission;
use crate::support::served::Served;

const PARCELS: &str = r#"
[operations.parcel]
search = { customer = "/customer_id", order = "/order_id" }
[[operations.parcel.steps]]
name = "announce parcel"
destination = "keyed"
method = "POST"
path = "/parcels"
body = { to = "{{ payload.address }}" }
"#;

async fn refused_parcel(served: &Served) -> uuid::Uuid {
    let payload =
        json!({ "order_id": "A-1001", "customer_id": "C-20", "address": "Hauptstr. 1, 00000 Nowhere" });
    let refusal = Behaviour::error(422, "no_such_place", "There is no such place");
    served.destination.script("/keyed", [refusal]);
    let operation = served.submit(submission("parcel", "parcel-A-1001", &payload.to_string())).await;
    served.wait_for(operation, |thread| Some(thread.live_letter()?.id)).await;
    operation
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn corrects_a_wrong_address() {
    let served = Served::configured(PARCELS).await;
    served.add("olga", Role::Operator).await;
    let first = refused_parcel(&served).await;
    let olga = Person::sits_down(&served, "olga").await;

    olga.uses("Dead letters").await;
    olga.uses_in("A-1001", "Keyed refused").await;
    olga.sees("There is no such place").await;
    olga.uses("Correct…").await;
    olga.writes("address", "Hauptstr. 1, 20095 Hamburg").await;
    olga.uses("Compare old and new").await;
    olga.sees("Nothing is stored yet").await;
    let page = olga.reads().await;
    assert!(page.contains("00000 Nowhere") && page.contains("20095 Hamburg"), "{page}");
    olga.writes("Reason", "The customer gave the right one on the phone").await;
    olga.uses("Hand in the correction").await;
    olga.reads_until("Completed").await;

    let sent = served.destination.requests();
    let last = String::from_utf8_lossy(&sent.last().expect("a request").body).into_owned();
    assert!(last.contains("20095 Hamburg"), "{last}");
    let old = served.thread(first).await;
    assert!(old.live_letter().is_none(), "what was corrected waits no more");
    assert_ne!(old.operation.state(), OperationState::Completed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hands_one_to_a_colleague_with_a_note() {
    let served = Served::configured(PARCELS).await;
    served.add("olga", Role::Operator).await;
    served.add("ben", Role::Operator).await;
    refused_parcel(&served).await;
    let olga = Person::sits_down(&served, "olga").await;
    olga.uses("Dead letters").await;
    olga.uses_in("A-1001", "Keyed refused").await;
    olga.uses("Note").await;
    olga.writes("Note for whoever reads this later", "Their new office is in Altona").await;
    olga.uses("Add the note").await;
    olga.sees("Their new office is in Altona").await;
    olga.uses("Assign").await;
    olga.chooses("Who has it from now on?", "ben").await;
    olga.uses_in_form("Who has it from now on?", "Assign").await;
    olga.sees("ben has it").await;
    drop(olga);

    let ben = Person::sits_down(&served, "ben").await;
    ben.uses("One dead letter assigned to you").await;
    ben.uses_in("A-1001", "Keyed refused").await;
    ben.sees("Their new office is in Altona").await;
    let page = ben.reads().await;
    assert!(page.contains("ben has it") && page.contains("olga"), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exports_the_evidence_for_a_customer() {
    let served = Served::configured(PARCELS).await;
    served.add("olga", Role::Operator).await;
    let operation = refused_parcel(&served).await;
    let olga = Person::sits_down(&served, "olga").await;
    olga.asks("Customer, order…", "C-20").await;
    olga.uses("order A-1001").await;
    olga.sees("Evidence, in order").await;
    olga.uses("Export as JSON").await;
    let evidence: Value = serde_json::from_str(&olga.fetched().await).expect("JSON");
    let text = evidence.to_string();
    for words in [operation.to_string().as_str(), "parcel-A-1001", "There is no such place"] {
        assert!(text.contains(words), "{words} is not in\n{text}");
    }
}
