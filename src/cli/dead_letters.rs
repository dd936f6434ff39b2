//! `dlo dead-letters`.

use std::fmt::Write as _;

use serde::Serialize;

use super::context::Context;
use super::text::{clean, cut, print, print_json, table};
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::filter::{Cursor, DeadLetterFilter, Listed, MAX_LIMIT, Page};
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::engine::report::DeadLetterReport;
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::store::{Tx, operations};

/// Counting stops here, as on the desk: the list itself goes on.
const MOST_COUNTED: i64 = 10_000;

/// The longest key that is shown whole; a longer one gives way to the dead letter's id.
const KEY_WIDTH: usize = 36;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which: open, replaying, replayed, resolved, corrected, or all
    #[arg(long, default_value = "open", value_parser = status)]
    status: Status,
    /// How many at most, newest first
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LIMIT)))]
    limit: u32,
    /// Go on from the "next" of an earlier answer
    #[arg(long, value_parser = Cursor::decode)]
    cursor: Option<Cursor>,
    /// Print {"items", "next"} as JSON, in the API's shapes
    #[arg(long)]
    json: bool,
}

/// One status, or none in particular.
#[derive(Clone, Copy, Debug)]
struct Status(Option<DeadLetterStatus>);

fn status(word: &str) -> Result<Status, String> {
    match word {
        "all" => Ok(Status(None)),
        word => word.parse().map(|status| Status(Some(status))).map_err(|error| format!("{error}, all")),
    }
}

#[derive(Serialize)]
struct Answer {
    items: Vec<DeadLetterReport>,
    next: Option<String>,
}

pub(super) async fn run(context: &Context, args: Args) -> anyhow::Result<()> {
    let filter = DeadLetterFilter { status: args.status.0, ..DeadLetterFilter::default() };
    let page = Page { limit: args.limit, cursor: args.cursor };
    let mut tx = context.db.read().await?;
    let found = dead_letters::list(&mut tx, &filter, page).await?;
    let next = found.older.as_ref().map(Cursor::encode);
    if args.json {
        let items = DeadLetterReport::load(&mut tx, found.items, context.public_url()).await?;
        return print_json(&Answer { items, next });
    }
    let total = dead_letters::count(&mut tx, &filter, MOST_COUNTED).await?;
    if found.items.is_empty() {
        return print(&match args.status.0 {
            Some(status) => format!("No dead letter is {}.\n", words::dead_letter_status(status)),
            None => "There are no dead letters.\n".to_owned(),
        });
    }
    let shown = found.items.len();
    let mut text = rows(&mut tx, found, context.ambient.now()).await?;
    let more = if total >= MOST_COUNTED { "+" } else { "" };
    write!(text, "\n{shown} of {total}{more}, newest first.")?;
    if let Some(next) = next {
        write!(text, " The next: --cursor {next}")?;
    }
    text.push_str("\nThe whole story of one: dlo show KEY-OR-ID\n");
    print(&text)
}

async fn rows(tx: &mut Tx, found: Listed<DeadLetterRow>, now: Timestamp) -> anyhow::Result<String> {
    let ids: Vec<_> = found.items.iter().map(|row| row.operation_id).collect();
    let known = operations::by_ids(tx, &ids).await?;
    let rows: Vec<[String; 5]> = found
        .items
        .iter()
        .map(|row| {
            let key = known
                .iter()
                .find(|operation| operation.id == row.operation_id)
                .map(|operation| operation.key.as_str())
                // Only a key that can be typed again as it stands.
                .filter(|key| key.chars().count() <= KEY_WIDTH && clean(key) == **key)
                .map_or_else(|| row.id.to_string(), str::to_owned);
            [
                words::span(now.since(row.opened_at)),
                certainty(row.certainty).to_owned(),
                cut(&row.kind, 16),
                key,
                clean(&row.error),
            ]
        })
        .collect();
    Ok(table(["AGE", "CERTAINTY", "TYPE", "KEY OR ID", "CAUSE"], &rows))
}

/// The three words that are the same everywhere.
fn certainty(certainty: Certainty) -> &'static str {
    words::certainty(certainty).label
}
