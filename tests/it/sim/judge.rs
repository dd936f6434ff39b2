//! What must hold of a life once everything has recovered.

use std::collections::BTreeMap;

use super::life::Life;
use crate::support::ledger::Raw;

/// One step of an order as the ledger has it: all in the ledger's words.
struct Step {
    order: String,
    name: String,
    destination: String,
    state: String,
    operation: String,
}

impl Life {
    pub(super) async fn judge(&self) {
        let mut raw = Raw::open(self.base.url()).await.unwrap();
        let violations = raw.violations().await;
        assert!(violations.is_empty(), "the ledger: {violations:#?}");
        let waiting = raw.texts("SELECT o.key FROM work w JOIN operations o ON o.id = w.operation_id").await;
        assert!(waiting.is_empty(), "still waits, though all is well: {waiting:?}");
        let steps = steps(&mut raw).await;
        for (key, order) in &self.orders {
            let stored = steps.iter().any(|step| step.order == *key);
            assert_eq!(stored, order.id.is_some(), "{key} is lost, or came from nowhere");
        }
        for step in &steps {
            self.effects_are_in_order(step);
        }
        self.nothing_certain_is_wrong(&mut raw, &steps).await;
        self.nothing_blind_is_repeated(&mut raw).await;
    }

    /// How often a step really happened, and how often of that too late for any promise.
    fn happened(&self, order: &str, step: &str) -> (usize, usize) {
        let state = self.world.lock();
        let mine = |late| {
            let effects = state.destinations.effects.iter();
            effects.filter(|made| made.order == order && made.step == step && made.late == late).count()
        };
        (mine(false), mine(true))
    }

    /// None lost, none twice.
    fn effects_are_in_order(&self, step: &Step) {
        let Step { order: key, name, destination, .. } = step;
        // Its key went to a submission with other data, which is nobody's order here.
        let Some(order) = self.orders.get(key) else { return };
        let (promised, late) = self.happened(key, name);
        // Where a repeat converges there may be as many as there were requests.
        if destination != "upsert" {
            let most = 1 + order.words;
            assert!(promised <= most, "{key} {name} happened {promised} times for {} words", order.words);
        }
        if step.state == "completed" && !order.vouched {
            assert!(promised + late > 0, "{key} {name} counts as completed and never happened");
        }
    }

    /// Nothing is said to have failed that happened.
    async fn nothing_certain_is_wrong(&self, raw: &mut Raw, steps: &[Step]) {
        let failed = raw
            .texts(
                "SELECT o.key || ' ' || d.step FROM dead_letters d JOIN operations o ON o.id = d.operation_id \
                 WHERE d.closed_at IS NULL AND d.certainty = 'definitely_failed'",
            )
            .await;
        let by_letter = failed.iter().map(|line| line.split_once(' ').unwrap());
        let by_state = steps
            .iter()
            .filter(|step| step.state == "failed" || step.operation == "failed" && step.state == "pending")
            .map(|step| (step.order.as_str(), step.name.as_str()));
        for (key, step) in by_letter.chain(by_state) {
            let (promised, _) = self.happened(key, step);
            assert_eq!(promised, 0, "{key} {step} is said to have failed, and happened");
        }
    }

    /// What went to a destination that can neither recognise a repeat nor be asked is not sent again
    /// after an uncertain outcome, unless a person has it sent.
    async fn nothing_blind_is_repeated(&self, raw: &mut Raw) {
        let attempts = raw
            .texts(
                "SELECT o.key || ' ' || a.outcome || ' ' || a.cause FROM attempts a \
                 JOIN operations o ON o.id = a.operation_id \
                 JOIN steps s ON s.operation_id = a.operation_id AND s.position = a.position \
                 WHERE s.destination = 'plain' AND a.outcome <> 'skipped' AND a.cause <> 'lookup' ORDER BY o.key, a.number",
            )
            .await;
        let mut in_doubt: BTreeMap<&str, usize> = BTreeMap::new();
        for line in &attempts {
            let [key, outcome, cause] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            if let Some(resends) = in_doubt.get_mut(key) {
                assert_eq!(cause, "override", "{key} was sent again");
                *resends += usize::from(!matches!(outcome, "not_sent" | "throttled"));
                let words = self.orders.get(key).map_or(0, |order| order.words);
                assert!(*resends <= words, "{key} was sent {resends} times for {words} words");
            } else if outcome == "uncertain" {
                in_doubt.insert(key, 0);
            }
        }
    }
}

async fn steps(raw: &mut Raw) -> Vec<Step> {
    let rows = raw
        .texts(
            "SELECT o.key || ' ' || s.name || ' ' || s.destination || ' ' || s.state || ' ' || o.state \
             FROM steps s JOIN operations o ON o.id = s.operation_id ORDER BY o.key, s.position",
        )
        .await;
    let step = |row: &String| {
        let mut words = row.split(' ').map(str::to_owned);
        let mut word = || words.next().unwrap();
        Step { order: word(), name: word(), destination: word(), state: word(), operation: word() }
    };
    rows.iter().map(step).collect()
}
