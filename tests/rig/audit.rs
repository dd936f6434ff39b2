//! Afterwards: what was accepted, what really happened, and what the ledger says of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::Value;

use crate::api::{Api, Reply};
use crate::class::Class;
use crate::destination::Destination;
use crate::effects::{self, Effect};
use crate::load::Accepted;

/// How long what is waiting may take to come to its end.
const TO_SETTLE: Duration = Duration::from_mins(4);
/// A frozen worker that wakes sends within this, if at all, in ms.
const WAKES_WITHIN: u64 = 2_000;

/// One class on one database.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) accepted: u64,
    pub(crate) completed: u64,
    /// Of the completed: those of which an attempt had been in doubt.
    pub(crate) recovered: u64,
    /// In the dead letters.
    pub(crate) parked: u64,
    /// Accepted, and neither completed nor in the dead letters; or completed without an effect.
    pub(crate) lost: u64,
    /// More than one effect.
    pub(crate) duplicated: u64,
    /// Of class L only: more than one, the last by a worker that was frozen past its lease.
    pub(crate) zombie: u64,
    /// The ledger says something that is not so.
    pub(crate) unexpected: u64,
    /// Requests that the destination read, lookups included in none.
    pub(crate) requests: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) counts: BTreeMap<String, Counts>,
    /// Each violation in a line.
    pub(crate) facts: Vec<String>,
    pub(crate) differed: u64,
}

/// Waits until nothing is waiting or being sent; how many operations did not come to their end.
pub(crate) async fn quiet(api: &Api) -> usize {
    let began = Instant::now();
    loop {
        let mut left = 0;
        for state in ["pending", "running", "uncertain", "failed"] {
            let listed = api.all(&format!("/api/v1/operations?state={state}")).await;
            // A node may be busy still; the next look will tell.
            left += listed.map_or(1, |items| items.iter().filter(|item| is_waiting(item)).count());
        }
        if left == 0 || began.elapsed() > TO_SETTLE {
            return left;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

fn is_waiting(operation: &Value) -> bool {
    !operation["next_attempt_at"].is_null() || operation["state"] == "running"
}

/// Compares all three. `woken` are the moments at which frozen nodes went on, in ms since 1970.
pub(crate) async fn compare(
    api: &Api,
    accepted: &[Accepted],
    destinations: &[Destination],
    woken: &[u64],
) -> Result<Findings> {
    let mut findings = Findings::default();
    let operations = by_id(api.all("/api/v1/operations?").await?, |operation| operation["id"].as_str());
    let letters = by_id(api.all("/api/v1/dead-letters?").await?, |letter| letter["operation"]["id"].as_str());
    for destination in destinations {
        let class = destination.class();
        let mut happened: HashMap<String, Vec<Effect>> = HashMap::new();
        for effect in effects::read(&destination.file)? {
            happened.entry(effect.id.clone()).or_default().push(effect);
        }
        let mut counts = Counts { requests: destination.requests(), ..Counts::default() };
        let mut seen = HashSet::new();
        for one in accepted.iter().filter(|one| one.class == class) {
            counts.accepted += 1;
            seen.insert(one.key.clone());
            let case = Case {
                one,
                operation: operations.get(&one.id).map(Vec::as_slice).and_then(<[Value]>::first),
                letters: letters.get(&one.id).map_or(&[], Vec::as_slice),
                effects: happened.get(&one.key).map_or(&[], Vec::as_slice),
            };
            judge(&case, woken, &mut counts, &mut findings.facts);
            if case.completed() && case.operation.is_some_and(|found| found["attempts"].as_i64() > Some(1)) {
                counts.recovered += u64::from(was_in_doubt(api, &one.id).await?);
            }
        }
        for id in happened.keys().filter(|id| !seen.contains(*id)) {
            counts.unexpected += 1;
            findings.facts.push(format!("{class}: {id} has an effect and was accepted by nobody"));
        }
        for id in destination.differed() {
            findings.differed += 1;
            findings.facts.push(format!("{class}: two requests of {id} differed"));
        }
        findings.counts.insert(class.to_string(), counts);
    }
    Ok(findings)
}

fn by_id(items: Vec<Value>, id: impl Fn(&Value) -> Option<&str>) -> HashMap<String, Vec<Value>> {
    let mut found: HashMap<String, Vec<Value>> = HashMap::new();
    for item in items {
        let Some(id) = id(&item).map(str::to_owned) else { continue };
        found.entry(id).or_default().push(item);
    }
    found
}

/// All that is known of one accepted operation.
struct Case<'a> {
    one: &'a Accepted,
    operation: Option<&'a Value>,
    letters: &'a [Value],
    effects: &'a [Effect],
}

impl Case<'_> {
    fn completed(&self) -> bool {
        self.operation.is_some_and(|operation| operation["state"] == "completed")
    }

    /// Effects that a person over there would count: an upsert that says the same again is none.
    fn distinct(&self) -> usize {
        match self.one.class {
            Class::Upsert => self.effects.iter().map(|effect| &effect.body).collect::<HashSet<_>>().len(),
            _ => self.effects.len(),
        }
    }
}

fn judge(case: &Case<'_>, woken: &[u64], counts: &mut Counts, facts: &mut Vec<String>) {
    let (class, key, id) = (case.one.class, &case.one.key, &case.one.id);
    let mut fact = |text: &str| facts.push(format!("{class}: {key} ({id}) {text}"));
    let Some(operation) = case.operation else {
        counts.lost += 1;
        return fact("was accepted and is not there");
    };
    if case.completed() {
        counts.completed += 1;
        if case.effects.is_empty() {
            counts.lost += 1;
            fact("is completed and has no effect");
        }
    } else if is_waiting(operation) {
        fact("is waiting still");
    } else if case.letters.is_empty() {
        counts.lost += 1;
        fact(&format!("is {} and in no dead letter", operation["state"]));
    } else {
        counts.parked += 1;
        let last = case.letters.iter().max_by_key(|letter| letter["opened_at"].as_str().unwrap_or_default());
        let certainty = last.and_then(|letter| letter["certainty"].as_str()).unwrap_or_default();
        if certainty == "definitely_failed" && !case.effects.is_empty() {
            counts.unexpected += 1;
            fact("is said to have definitely failed and has an effect");
        }
    }
    if operation["key"] != key.as_str() || operation["type"] != class.letter() {
        counts.unexpected += 1;
        fact(&format!("is stored as {} {}", operation["type"], operation["key"]));
    }
    if case.distinct() > 1 {
        let last = case.effects.iter().map(|effect| effect.at_ms).max().unwrap_or(0);
        let by_a_woken = woken.iter().any(|at| (*at..at + WAKES_WITHIN).contains(&last));
        if class == Class::Lookup && by_a_woken {
            counts.zombie += 1;
        } else {
            counts.duplicated += 1;
            let times: Vec<u64> = case.effects.iter().map(|effect| effect.at_ms).collect();
            fact(&format!("has {} effects, at {times:?}", case.distinct()));
        }
    }
}

async fn was_in_doubt(api: &Api, id: &str) -> Result<bool> {
    let Reply::Answered(200, body) = api.get(0, &format!("/api/v1/operations/{id}/attempts")).await else {
        bail!("the attempts of {id} were not answered");
    };
    let attempts = body["items"].as_array().or(body.as_array()).context("attempts")?;
    Ok(attempts.iter().any(|attempt| attempt["outcome"] == "uncertain"))
}
