//! Twelve refused for one reason, which is mended now: all are replayed, one first.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;

use super::person::Person;
use crate::support::served::Served;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replays_all_of_a_cause_one_first() {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    for number in 0..4 {
        served.dead_letter("keyed", &format!("A-100{number}"), Behaviour::status(422)).await;
    }
    // What arrives after the look is another matter, and so is another cause.
    served.dead_letter("plain", "A-2000", Behaviour::CloseAfterRead { effect: false }).await;
    let olga = Person::sits_down(&served, "olga").await;
    olga.uses("Keyed refused").await;
    olga.uses("Replay all, one first…").await;
    olga.sees("4 dead letters").await;
    olga.writes("Name", "Keyed is back").await;
    olga.writes("Reason", "They mended their list of customers").await;
    olga.uses("Choose these and look again").await;
    olga.sees("A-1000").await;
    assert_eq!(served.destination.effects().len(), 0, "looking sends nothing");
    olga.uses("Start with the first one").await;
    olga.reads_until("Confirm and go on").await;
    served_effects(&served, &olga, 1).await;
    olga.uses("Confirm and go on with the other 3").await;
    served_effects(&served, &olga, 4).await;
    olga.reads_until("4 confirmed").await;

    olga.uses("Dead letters").await;
    olga.sees("A-2000").await;
    assert!(olga.rows("A-100").await.is_empty(), "only the other cause waits");
}

/// The page is read until so many are done there, and then there are exactly so many.
async fn served_effects(served: &Served, olga: &Person, wanted: usize) {
    olga.reads_until(&format!("{wanted} confirmed")).await;
    assert_eq!(served.destination.effects().len(), wanted);
}
