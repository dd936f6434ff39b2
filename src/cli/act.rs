//! `dlo replay` and `dlo resolve`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::time::sleep;
use uuid::Uuid;

use super::args;
use super::context::Context;
use super::story::{attempt_facts, attempt_sentence, letter_sentence};
use super::text::{clean, print, wrapped};
use crate::domain::attempt::Outcome;
use crate::domain::dead_letter::{DeadLetterStatus, Resolution};
use crate::domain::verdict::{Verdict, VerdictKind};
use crate::domain::words;
use crate::engine::actions::{self, Resolve};
use crate::engine::thread::Thread;
use crate::store::attempts::AttemptRow;

/// How often the database is looked at meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(150);

#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// An operation's key or id, or a dead letter's id
    #[arg(value_name = "KEY-OR-ID")]
    named: String,
    /// Why, for whoever reads it later
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// How long to wait for the attempt
    #[arg(long, value_name = "SPAN", default_value = "30s", value_parser = args::duration)]
    wait: Duration,
}

#[derive(Debug, clap::Args)]
pub(super) struct ResolveArgs {
    /// An operation's key or id, or a dead letter's id
    #[arg(value_name = "KEY-OR-ID")]
    named: String,
    /// How it is settled
    #[arg(long, value_name = "R", value_parser = args::words(Resolution::ALL, Resolution::as_str))]
    resolution: Resolution,
    /// Why, for whoever reads it later; for `completed_at_destination` without a reference, why there
    /// is none
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// The id over there, for `completed_at_destination`
    #[arg(long, value_name = "REF")]
    reference: Option<String>,
}

pub(super) async fn replay(context: &Context, args: &ReplayArgs) -> anyhow::Result<()> {
    let operation = context.find(&args.named).await?;
    let before: Vec<Uuid> =
        context.thread(operation).await?.attempts.iter().map(|attempt| attempt.id).collect();
    let action = context.ambient.opaque().to_string();
    let engine = context.engine();
    let request = context.request(&action, &args.reason);
    let verdict = actions::replay(engine.gate(), operation, &request).await?;
    print(&verdict_text(&verdict))?;
    match verdict.verdict {
        VerdictKind::AlreadyDone => Ok(()),
        VerdictKind::Accepted => what_came_of_it(context, operation, &before, args.wait).await,
        other => bail!("not replayed: {}", words::verdict(other)),
    }
}

fn verdict_text(verdict: &Verdict) -> String {
    let mut text = format!("{}.\n", words::verdict(verdict.verdict));
    text.push_str(&wrapped(&clean(&verdict.reason), "  "));
    // What was done already is an answer, not a check that stands in the way.
    let missed = verdict.checks.iter().filter(|check| !check.passed);
    for check in missed.filter(|_| verdict.verdict != VerdictKind::AlreadyDone) {
        let detail = if check.detail == verdict.reason { String::new() } else { clean(&check.detail) };
        text.push_str(&wrapped(&format!("not passed: {} {detail}", words::check(check.name)), "  "));
    }
    let known = verdict.known_result.as_ref().filter(|_| verdict.verdict != VerdictKind::Accepted);
    if let Some(known) = known {
        let reference = known.reference.as_ref().map(|id| format!(" Reference: {}.", clean(id)));
        text.push_str(&wrapped(
            &format!("known of it: {}{}", clean(&known.how), reference.unwrap_or_default()),
            "  ",
        ));
    }
    if let Some(run) = &verdict.run
        && verdict.verdict != VerdictKind::Accepted
    {
        text.push_str(&wrapped(&format!("by {}, since {}", clean(&run.by), run.since), "  "));
    }
    text
}

/// Waits until the serving process has made the attempt, and tells what it came to.
async fn what_came_of_it(
    context: &Context,
    operation: Uuid,
    before: &[Uuid],
    patience: Duration,
) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let thread = context.thread(operation).await?;
        let fresh =
            |attempt: &&AttemptRow| !before.contains(&attempt.id) && attempt.outcome != Outcome::Skipped;
        match thread.attempts.iter().find(fresh) {
            Some(attempt) if attempt.ended_at.is_some() => {
                // Read anew: what follows from the attempt may be younger than the first look.
                let attempt = attempt.clone();
                return settled(context, &context.thread(operation).await?, &attempt);
            }
            // It went back without an attempt: a check said no when its turn came.
            None if thread.operation.due_at.is_none() => {
                let why = thread.events.last().map_or("no check says why", |event| &event.detail);
                bail!("not sent: {why}");
            }
            Some(_) if start.elapsed() > patience => bail!(
                "the attempt is still under way after {}; `dlo show {operation}` tells what comes of it",
                words::span(patience)
            ),
            None if start.elapsed() > patience => bail!(
                "no engine took it up within {}: start `dlo serve` (or `dlo serve --only engine`); the replay \
                 is stored and is sent then",
                words::span(patience)
            ),
            _ => sleep(LOOK_EVERY).await,
        }
    }
}

fn settled(context: &Context, thread: &Thread, attempt: &AttemptRow) -> anyhow::Result<()> {
    let facts = attempt_facts(thread, attempt, &context.config);
    print(&wrapped(&attempt_sentence(attempt, &facts), "  "))?;
    if attempt.outcome == Outcome::Done {
        if let Some(step) = thread.current_step().filter(|_| thread.operation.completed_at.is_none()) {
            print(&wrapped(&format!("It goes on with {}.", words::quoted(&clean(&step.name))), "  "))?;
        }
        return Ok(());
    }
    if let Some(letter) = thread.live_letter().filter(|letter| letter.status == DeadLetterStatus::Open) {
        print(&wrapped(&letter_sentence(thread, letter, &context.config, context.ambient.now()), "  "))?;
        bail!("replayed, and it is a dead letter again");
    }
    match thread.operation.due_at {
        Some(due) => {
            let when = words::relative(due, context.ambient.now());
            bail!("replayed, and not done yet: the next attempt is {when}")
        }
        None => bail!("replayed, and not done: {}", words::outcome(attempt.outcome)),
    }
}

pub(super) async fn resolve(context: &Context, args: ResolveArgs) -> anyhow::Result<()> {
    let operation = context.find(&args.named).await?;
    let thread = context.thread(operation).await?;
    // A dead letter that is named by its id is meant, though it be closed: the refusal says so.
    let named = thread.letters.iter().find(|letter| letter.id.to_string() == args.named);
    let letter = named
        .or(thread.live_letter())
        .or(thread.letters.first())
        .context("this operation never was a dead letter, so there is nothing to resolve")?;
    let how = Resolve { resolution: args.resolution, reference: args.reference };
    let action = context.ambient.opaque().to_string();
    let engine = context.engine();
    let request = context.request(&action, &args.reason);
    actions::resolve(engine.gate(), letter.id, &how, &request).await?;
    let label = words::resolution(args.resolution).label.to_lowercase();
    print(&format!("Resolved as {label}: {}.\n", clean(&thread.operation.key)))
}
