//! `dlo show`.

use anyhow::Context as _;
use serde::Serialize;

use super::context::Context;
use super::story;
use super::text::{print, print_json};
use crate::engine::report::{AttemptReport, OperationReport};
use crate::engine::thread::Entry;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// An operation's key or id, or a dead letter's id
    #[arg(value_name = "KEY-OR-ID")]
    named: String,
    /// Print {"operation", "attempts", "events"} as JSON, in the API's shapes, with the requests and
    /// the answers in full
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Answer {
    operation: OperationReport,
    attempts: Vec<AttemptReport>,
    events: Vec<Entry>,
}

pub(super) async fn run(context: &Context, args: &Args) -> anyhow::Result<()> {
    let id = context.find(&args.named).await?;
    let thread = context.thread(id).await?;
    if args.json {
        let mut tx = context.db.read().await?;
        let operation = OperationReport::one(&mut tx, id, context.public_url()).await?;
        return print_json(&Answer {
            operation: operation.context("the operation is gone")?,
            attempts: AttemptReport::all(&thread),
            events: thread.entries(),
        });
    }
    print(&story::tell(&thread, &context.config, context.ambient.now()))
}
