//! The thread of evidence in plain sentences, for a terminal.

use std::fmt::Write as _;
use std::time::Duration;

use super::text::{clean, cut, wrapped};
use crate::config::Config;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::operation::OperationState;
use crate::domain::time::Timestamp;
use crate::domain::words::{self, Facts};
use crate::engine::thread::{Entry, Knowledge, Thread};
use crate::store::attempts::AttemptRow;
use crate::store::dead_letters::DeadLetterRow;
use crate::store::operations::StepRow;

/// Where the texts of the history begin.
const INDENT: &str = "    ";

/// Everything that is known of one operation.
pub(super) fn tell(thread: &Thread, config: &Config, now: Timestamp) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = head(&mut text, thread, now);
    if let Some(letter) = thread.letters.first() {
        text.push('\n');
        text.push_str(&wrapped(&letter_sentence(thread, letter, config, now), ""));
    }
    text.push('\n');
    text.push_str(&knowledge(thread));
    let _ = steps(&mut text, thread, config);
    text.push_str("\nWhat happened (times in UTC)\n");
    for entry in thread.entries() {
        let _ = writeln!(text, "  {}  {}  by {}", moment(entry.at), title(&entry), clean(&entry.actor));
        text.push_str(&body(thread, &entry, config));
    }
    let _ = advice(&mut text, thread);
    text
}

fn head(text: &mut String, thread: &Thread, now: Timestamp) -> std::fmt::Result {
    let operation = &thread.operation;
    let state = operation.state();
    writeln!(text, "{}  {}", operation.kind, clean(&operation.key))?;
    write!(text, "  state        {}", words::operation_state(state))?;
    match thread.live_letter().map(|letter| letter.status) {
        Some(DeadLetterStatus::Open) => writeln!(text, "; waits for a person")?,
        Some(_) => writeln!(text, "; being tried again at a person's word")?,
        None => match operation.due_at {
            Some(due) if state != OperationState::Running => {
                writeln!(text, "; next attempt {}", words::relative(due, now))?;
            }
            _ => writeln!(text)?,
        },
    }
    writeln!(text, "  id           {}", operation.id)?;
    let ago = words::relative(operation.received_at, now);
    writeln!(
        text,
        "  received     {} UTC ({ago}), by {}",
        moment(operation.received_at),
        clean(&operation.submitted_by)
    )?;
    if let Some(at) = operation.completed_at {
        writeln!(text, "  completed    {} UTC ({})", moment(at), words::relative(at, now))?;
    }
    let known = [("source", &operation.source), ("correlation", &operation.correlation_id)];
    for (name, value) in known {
        if let Some(value) = value {
            writeln!(text, "  {name:<11}  {}", clean(value))?;
        }
    }
    for found in &thread.search {
        writeln!(text, "  {:<11}  {}", clean(&found.name), clean(&found.value))?;
    }
    writeln!(text, "  severity     {}", operation.severity)
}

fn knowledge(thread: &Thread) -> String {
    let Some(step) = thread.current_step() else { return String::new() };
    let destination = words::destination_name(&step.destination);
    let (word, known) = match thread.knowledge() {
        Knowledge::DoneThere(known) => ("done there", known),
        Knowledge::Recorded(known) => ("recorded as done", known),
        Knowledge::NotThere(known) => ("not there", known),
        Knowledge::CannotTell(known) => ("cannot tell", known),
        Knowledge::NeverReached => {
            return format!(
                "What {destination} knows: never reached. Nothing that was sent can have arrived.\n"
            );
        }
    };
    let reference = known.reference.as_ref().map(|id| format!(", as {}", clean(id))).unwrap_or_default();
    let sentence = format!(
        "What {destination} knows: {word}{reference}. {} ({} UTC)",
        clean(&known.how),
        moment(known.at)
    );
    let said = known.answer.map(|answer| format!("  it said: {}\n", cut(&answer, 88)));
    wrapped(&sentence, "") + &said.unwrap_or_default()
}

fn steps(text: &mut String, thread: &Thread, config: &Config) -> std::fmt::Result {
    writeln!(text, "\nSteps")?;
    for step in &thread.steps {
        let tries = match step.attempts {
            0 => "no attempt yet".to_owned(),
            1 => "1 attempt".to_owned(),
            many => format!("{many} attempts"),
        };
        write!(
            text,
            "  {}. {} -> {}: {}, {tries}",
            step.position + 1,
            clean(&step.name),
            step.destination,
            words::step_state(step.state)
        )?;
        if let Some(reference) = &step.reference {
            write!(text, ", reference {}", clean(reference))?;
        }
        writeln!(text)?;
        if let Some(effect) = effect(thread, step, config) {
            writeln!(text, "     brings about: {}", clean(effect))?;
        }
        if let Some(request) = thread.request(step.position, step.generation) {
            writeln!(
                text,
                "     sends: {} {}, key {}",
                clean(&request.method),
                cut(&request.url, 120),
                step.key
            )?;
        }
    }
    Ok(())
}

fn effect<'c>(thread: &Thread, step: &StepRow, config: &'c Config) -> Option<&'c str> {
    let kind = config.operations.get(&thread.operation.kind)?;
    kind.steps.iter().find(|known| known.name == step.name)?.effect.as_deref()
}

fn title(entry: &Entry) -> String {
    match entry.kind.as_str() {
        "dead_letter" => "put before a person".to_owned(),
        other => other.replace('_', " "),
    }
}

fn body(thread: &Thread, entry: &Entry, config: &Config) -> String {
    if let Some(attempt) = thread.attempts.iter().find(|row| Some(row.id) == entry.attempt) {
        return attempt_text(thread, attempt, config);
    }
    let letter =
        thread.letters.iter().find(|letter| entry.kind == "dead_letter" && letter.opened_at == entry.at);
    match letter {
        Some(letter) => {
            // Of a closed one, the certainty is what was learned since.
            let open = letter.closed_at.is_none();
            let certainty = if open { words::certainty(letter.certainty).label } else { "" };
            let stop = if open { ". " } else { "" };
            wrapped(&format!("{certainty}{stop}{}", words::park_reason(letter.why)), INDENT)
        }
        None => wrapped(&clean(&entry.text), INDENT),
    }
}

/// What an attempt came to and what its wait is for.
pub(super) fn attempt_text(thread: &Thread, attempt: &AttemptRow, config: &Config) -> String {
    let facts = attempt_facts(thread, attempt, config);
    let mut text = wrapped(&attempt_sentence(attempt, &facts), INDENT);
    let mut details = vec![match attempt.asked {
        Some(_) => format!("asked by {}", attempt.requested_by),
        None => format!("attempt {} ({})", attempt.number, words::cause(attempt.cause)),
    }];
    if let Some(status) = attempt.status {
        details.push(format!("answered {status}"));
    }
    if let Some(ended) = attempt.ended_at {
        details.push(format!("took {}", words::span(ended.since(attempt.started_at))));
    }
    if attempt.generation > 1 {
        details.push(format!("deliberate effect {}", attempt.generation));
    }
    text.push_str(&wrapped(&details.join(", "), INDENT));
    if let Some(body) = attempt.answer_body.as_deref().filter(|body| !body.is_empty()) {
        let _ = writeln!(text, "{INDENT}it said: {}", cut(body, 86));
    }
    if let (Some(next), Some(ended), Some(symptom)) = (attempt.next_at, attempt.ended_at, attempt.symptom) {
        text.push_str(&wrapped(&words::next_wait_sentence(symptom, next.since(ended), &facts), INDENT));
    }
    text
}

/// One sentence on an attempt.
pub(super) fn attempt_sentence(attempt: &AttemptRow, facts: &Facts<'_>) -> String {
    match attempt.symptom {
        Some(symptom) => words::attempt_sentence(symptom, attempt.outcome, facts),
        None => {
            format!("{}: {}.", words::quoted(&words::step_name(facts.step)), words::outcome(attempt.outcome))
        }
    }
}

pub(super) fn attempt_facts<'a>(thread: &'a Thread, attempt: &'a AttemptRow, config: &Config) -> Facts<'a> {
    let step = thread.steps.iter().find(|step| step.position == attempt.position);
    let destination = step.map_or("", |step| step.destination.as_str());
    Facts {
        destination,
        step: step.map_or("", |step| step.name.as_str()),
        status: attempt.status.and_then(|status| u16::try_from(status).ok()),
        timeout: config.destinations.get(destination).map(|known| known.timeout),
        attempts: attempt.number,
        retry_after: wait_told(attempt),
        reference: attempt.reference.as_deref(),
        error: attempt.error.as_deref(),
    }
}

/// What happened, what is certain and the safest next step, for an episode.
pub(super) fn letter_sentence(
    thread: &Thread,
    letter: &DeadLetterRow,
    config: &Config,
    now: Timestamp,
) -> String {
    if let Some(resolution) = letter.resolution {
        let reason = letter.reason.as_deref().unwrap_or_default();
        return format!(
            "Resolved by {}: {}. {}",
            clean(letter.closed_by.as_deref().unwrap_or("somebody")),
            words::resolution(resolution).label.to_lowercase(),
            clean(reason)
        );
    }
    if letter.closed_at.is_some() {
        return format!(
            "It was a dead letter, and was {} at the word of {}.",
            words::dead_letter_status(letter.status),
            clean(letter.closed_by.as_deref().unwrap_or("somebody"))
        );
    }
    let last = thread.attempts.iter().rev().find(|attempt| attempt.position == letter.position);
    let facts = Facts {
        destination: &letter.destination,
        step: &letter.step,
        status: letter.answer_status.and_then(|status| u16::try_from(status).ok()),
        timeout: config.destinations.get(&letter.destination).map(|known| known.timeout),
        attempts: letter.attempts,
        retry_after: last.and_then(wait_told),
        reference: letter.reference.as_deref(),
        error: Some(letter.error.as_str()).filter(|error| !error.is_empty()),
    };
    let step = thread.steps.iter().find(|step| step.position == letter.position);
    let contract = config.destinations.get(&letter.destination).map(|known| &known.contract);
    let settles = step.map(|step| thread.settles(step, contract, now));
    words::dead_letter_sentence(
        letter.why,
        letter.symptom,
        letter.certainty,
        letter.next_action,
        settles,
        &facts,
    )
}

fn wait_told(attempt: &AttemptRow) -> Option<Duration> {
    attempt.retry_after.and_then(|micros| u64::try_from(micros).ok()).map(Duration::from_micros)
}

fn advice(text: &mut String, thread: &Thread) -> std::fmt::Result {
    let open = |letter: &&DeadLetterRow| letter.status == DeadLetterStatus::Open;
    let Some(letter) = thread.live_letter().filter(open) else { return Ok(()) };
    let id = thread.operation.id;
    let replay = format!("dlo replay {id} --reason TEXT");
    if letter.certainty == Certainty::MayHaveCompleted {
        writeln!(text, "\nWhen it turns out to be there:")?;
        writeln!(text, "  dlo resolve {id} --resolution completed_at_destination \\")?;
        writeln!(text, "    --reference REF --reason TEXT")?;
        return writeln!(text, "To try it again, where the checks allow it:\n  {replay}");
    }
    writeln!(text, "\nTo try it again:\n  {replay}")?;
    writeln!(text, "When nobody needs it any more:\n  dlo resolve {id} --resolution not_needed --reason TEXT")
}

/// To the millisecond, for people.
fn moment(at: Timestamp) -> String {
    at.rfc3339().chars().take(23).map(|letter| if letter == 'T' { ' ' } else { letter }).collect()
}
