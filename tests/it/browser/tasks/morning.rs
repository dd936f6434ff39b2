//! Three orders of one customer have no ticket. What happened, and what is safe to do?

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::operation::OperationState;
use serde_json::json;
use uuid::Uuid;

use super::person::Person;
use crate::support::app::submission;
use crate::support::served::Served;

/// The orders of customer C-20: two whose destination refused them, one in doubt; and another
/// customer's.
struct Morning {
    served: Served,
    refused: [Uuid; 2],
    doubtful: Uuid,
}

impl Morning {
    async fn start() -> Self {
        let served = Served::start().await;
        served.add("olga", Role::Operator).await;
        let refusal = || Behaviour::error(422, "unknown_customer", "There is no such customer");
        let fail = async |kind, order, customer, behaviour| {
            let payload = json!({ "order_id": order, "customer_id": customer }).to_string();
            served.fail(submission(kind, &format!("ticket-{order}"), &payload), behaviour).await.0
        };
        let refused = [
            fail("keyed", "A-1001", "C-20", refusal()).await,
            fail("keyed", "A-1002", "C-20", refusal()).await,
        ];
        let doubtful = fail("plain", "A-1003", "C-20", Behaviour::CloseAfterRead { effect: true }).await;
        fail("lookup", "B-2001", "C-33", refusal()).await;
        Self { served, refused, doubtful }
    }

    async fn confirmed(&self, operation: Uuid) {
        let done = |state| matches!(state, OperationState::Completed).then_some(());
        self.served.wait_for(operation, |thread| done(thread.operation.state())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finds_a_customers_orders_and_which_may_have_completed() {
    let morning = Morning::start().await;
    let olga = Person::sits_down(&morning.served, "olga").await;

    // "Three orders of C-20 have no ticket."
    olga.asks("Customer, order…", "C-20").await;
    olga.sees("3 shown").await;
    let found = olga.rows("customer C-20").await;
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(olga.rows("C-33").await.is_empty());

    // Which of them may have one after all?
    olga.uses("Dead letters").await;
    olga.writes("Customer, order, key or reference", "C-20").await;
    olga.uses("Filter").await;
    olga.sees("3 shown").await;
    let unclear = olga.rows("May have completed").await;
    assert!(unclear.len() == 1 && unclear[0].contains("A-1003"), "{unclear:?}");
    assert_eq!(olga.rows("Definitely failed").await.len(), 2);

    // And why does that one wait?
    olga.uses_in("A-1003", "Plain").await;
    olga.sees("What Plain knows").await;
    let page = olga.reads().await;
    for words in [
        "closed the connection without an answer",
        "May have completed",
        "Cannot tell",
        "What Plain promises",
    ] {
        assert!(page.contains(words), "{words} is not on\n{page}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replays_what_is_safe_and_records_what_was_done() {
    let morning = Morning::start().await;
    let olga = Person::sits_down(&morning.served, "olga").await;

    // The first from the list.
    olga.uses("Dead letters").await;
    olga.sees("A-1001").await;
    let before = olga.clicks();
    olga.uses_in("A-1001", "Keyed refused").await;
    olga.uses("Replay: Keyed did not do it").await;
    olga.writes("Reason", "The customer is there now").await;
    olga.uses("Replay: Keyed did not do it").await;
    assert!(olga.clicks() - before <= 3, "{} clicks from the list", olga.clicks() - before);
    olga.sees("All checks passed").await;
    morning.confirmed(morning.refused[0]).await;

    // The second from the search, by its order.
    olga.uses("Dead letters").await;
    olga.sees("A-1002").await;
    olga.uses_in("A-1002", "Keyed refused").await;
    olga.uses("Replay: Keyed did not do it").await;
    olga.writes("Reason", "The customer is there now").await;
    olga.uses("Replay: Keyed did not do it").await;
    olga.sees("All checks passed").await;
    morning.confirmed(morning.refused[1]).await;
    assert_eq!(morning.served.destination.effects().len(), 3, "one for each order of C-20");

    // The third is there under another name: it is recorded, not sent.
    olga.uses("Dead letters").await;
    olga.sees("A-1003").await;
    olga.uses_in("A-1003", "Plain closed").await;
    olga.uses("record as completed").await;
    olga.sees("The id that it has there").await;
    olga.writes("Reference at the destination", "TCK-99").await;
    olga.writes("Reason", "Anna found it in their list").await;
    olga.uses("Record as completed").await;
    olga.sees("TCK-99").await;
    morning.confirmed(morning.doubtful).await;
    assert_eq!(morning.served.destination.effects().len(), 3, "nothing was sent");

    // Weeks later: who replayed A-1001, and why?
    olga.asks("Customer, order…", "A-1001").await;
    olga.sees("1 shown").await;
    olga.uses("order A-1001").await;
    olga.sees("Evidence, in order").await;
    let page = olga.reads().await;
    for words in ["olga", "replay", "The customer is there now", "Completed"] {
        assert!(page.contains(words), "{words} is not on\n{page}");
    }
}
