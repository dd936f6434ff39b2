//! The columns of facts beside a thread.

use uuid::Uuid;

use super::list::ids;
use super::mask::Mask;
use super::{Tale, card, request};
use crate::config::Config;
use crate::domain::operation::OperationState;
use crate::domain::words;
use crate::engine::thread::Thread;
use crate::store::operations::{self, SearchRow, StepRow};
use crate::store::{StoreError, Tx};
use crate::web::labels::Mark as _;
use crate::web::pages::dead_letter::Payload;
use crate::web::view::{Fact, FactValue, Reference, When, coarse};

/// Related operations of each business id at most.
const MOST_RELATED: i64 = 5;

/// Ids, source, times, owner and runbook.
pub fn operation(tale: &Tale<'_>) -> Vec<Fact> {
    let row = &tale.thread.operation;
    let mut facts: Vec<Fact> = tale
        .thread
        .search
        .iter()
        .map(|value| {
            Fact::code(
                words::capitalised(&words::step_name(&value.name)),
                tale.mask.id(&value.name, &value.value),
            )
        })
        .collect();
    facts.push(Fact::link("Type", Reference::here(row.kind.clone(), format!("/types/{}", row.kind))));
    facts.push(Fact::code("Key", tale.mask.text(&row.key)));
    if let Some(text) = &row.correlation_id {
        facts.push(Fact::code("Correlation id", tale.mask.text(text)));
    }
    for step in &tale.thread.steps {
        if let Some(text) = &step.reference {
            let name =
                format!("{} at {}", words::capitalised(&words::step_name(&step.name)), step.destination);
            facts.push(Fact::code(name, tale.mask.text(text)));
        }
    }
    if let Some(owner) = tale.kind().and_then(|kind| kind.owner.as_ref()) {
        facts.push(Fact::text("Owner", owner.clone()));
    }
    if let Some(runbook) = tale.kind().and_then(|kind| kind.runbook.as_ref()) {
        facts.push(Fact::link("Runbook", Reference::new(runbook.as_str(), Some(runbook.as_str()))));
    }
    if let Some(source) = &row.source {
        facts.push(Fact::text("Source", tale.mask.text(source)));
    }
    facts.push(Fact::text("Handed in by", row.submitted_by.clone()));
    facts.push(Fact::time("Received", When::at(row.received_at, tale.seen())));
    if let Some(at) = row.completed_at {
        facts.push(Fact::time("Completed", When::at(at, tale.seen())));
    }
    facts
}

/// For the record: the id, the payload's digest, and each step's key.
pub fn record(tale: &Tale<'_>) -> Vec<Fact> {
    let row = &tale.thread.operation;
    let mut facts = vec![
        Fact::code("Operation id", row.id.to_string()),
        Fact::code("Payload, SHA-256", row.digest.hex()),
    ];
    for step in &tale.thread.steps {
        let name = format!("Key sent for {}", words::quoted(&words::step_name(&step.name)));
        facts.push(Fact::code(name, sent_key(tale.thread, step)));
    }
    facts
}

/// The key that the destination saw, or will see.
fn sent_key(thread: &Thread, step: &StepRow) -> String {
    thread.request(step.position, step.generation).map_or(step.key, |request| request.key).to_string()
}

/// What a step's destination promises, and until when.
pub fn promise(tale: &Tale<'_>, step: Option<&StepRow>) -> Vec<Fact> {
    let Some(step) = step else { return Vec::new() };
    let Some(destination) = tale.destination(&step.destination) else {
        let gone =
            format!("{} is no longer configured, so that nothing can be sent there.", step.destination);
        return vec![Fact::text("It promises", gone)];
    };
    let contract = &destination.contract;
    let place = Reference::here(
        words::capitalised(&words::destination_name(&destination.name)),
        format!("/destinations/{}", destination.name),
    );
    let mut facts = vec![Fact::link("Destination", place)];
    if let Some(class) = card::class(tale, Some(step)) {
        facts.push(Fact::text("It promises now", words::class(class).explanation));
    }
    if let Some(key) = &contract.key {
        let window = if key.window.is_zero() {
            "none is promised".to_owned()
        } else {
            format!("{} from the first send", coarse(key.window))
        };
        facts.push(Fact::text("Key window", window));
        let first = tale.thread.request(step.position, step.generation).map(|request| request.first_sent_at);
        if let Some(until) = first.and_then(|first| contract.resend_until(first))
            && !key.window.is_zero()
        {
            let name = if until > tale.now { "Safe to repeat until" } else { "Key forgotten since" };
            let when = When::at(until, tale.seen());
            let full = format!("{},", when.full);
            facts.push(Fact { name: name.to_owned(), value: FactValue::TimeWith(when, full) });
        }
        facts.push(Fact::text("It takes the key in", key.carrier.to_string()));
    }
    facts.push(match &contract.lookup {
        Some(lookup) if lookup.max_lag.is_zero() => Fact::text("It can be asked", "yes, by our key"),
        Some(lookup) => {
            let lag = coarse(lookup.max_lag);
            Fact::text("It can be asked", format!("yes, by our key; its answers may lag by up to {lag}"))
        }
        None => Fact::text("It can be asked", "no"),
    });
    facts.push(Fact::code("Key sent there", sent_key(tale.thread, step)));
    facts
}

/// The payload, without what is private; and the form that fetches as much of it as a file.
pub fn payload(tale: &Tale<'_>, csrf: &str) -> Payload {
    let Some(text) = &tale.thread.payload else {
        let after = tale.kind().and_then(|kind| kind.retain).map(coarse);
        let note = match after {
            Some(span) => format!("It was erased: this type's payloads are kept for {span}."),
            None => "It was erased.".to_owned(),
        };
        return Payload { text: None, note: Some(note), whole: None };
    };
    let (shown, hidden, is_all) = request::payload(&tale.mask, text);
    let more = if is_all { "" } else { " in what is shown" };
    let note = match hidden {
        0 => None,
        1 => Some(format!("1 field is private and hidden{more}.")),
        n => Some(format!("{n} fields are private and hidden{more}.")),
    };
    let id = tale.thread.operation.id;
    Payload {
        text: Some(shown),
        note,
        whole: Some(tale.file("Download it", format!("/operations/{id}/payload"), csrf)),
    }
}

/// Operations with the same business ids, corrections, and earlier or later episodes than `letter`.
pub async fn related(
    tx: &mut Tx,
    config: &Config,
    thread: &Thread,
    tale: &Tale<'_>,
    letter: Option<Uuid>,
) -> Result<Vec<Reference>, StoreError> {
    let mut wanted: Vec<Uuid> =
        [thread.operation.corrects, thread.operation.corrected_by].into_iter().flatten().collect();
    let corrections = wanted.clone();
    for id in operations::related(tx, &thread.search, MOST_RELATED).await? {
        if !wanted.contains(&id) {
            wanted.push(id);
        }
    }
    let rows = operations::by_ids(tx, &wanted).await?;
    let values = operations::search_values(tx, &wanted).await?;
    let kinds: Vec<(Uuid, &str)> = rows.iter().map(|row| (row.id, row.kind.as_str())).collect();
    let masks = Mask::of_list(tx, config, &kinds).await?;
    let mut places = Vec::new();
    for id in wanted {
        let Some(row) = rows.iter().find(|row| row.id == id) else { continue };
        let own: Vec<SearchRow> = values.iter().filter(|value| value.operation_id == id).cloned().collect();
        let name = ids(&own, masks.get(&id).unwrap_or(&tale.mask));
        let role = match corrections.contains(&id) {
            true if thread.operation.corrects == Some(id) => "what this corrects: ",
            true => "its correction: ",
            false => "",
        };
        let state: OperationState = row.state();
        let text = format!("{role}{} \u{b7} {name} \u{b7} {}", row.kind, state.word().to_lowercase());
        places.push(Reference::here(text, format!("/operations/{id}")));
    }
    for other in thread.letters.iter().filter(|other| letter.is_some_and(|letter| letter != other.id)) {
        let opened = When::at(other.opened_at, tale.seen()).ago;
        let text = format!(
            "another episode of this operation, opened {opened}: {}",
            words::dead_letter_status(other.status)
        );
        places.push(Reference::here(text, format!("/dead-letters/{}", other.id)));
    }
    Ok(places)
}
