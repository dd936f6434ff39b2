//! `dlo submit`.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use serde_json::value::RawValue;

use super::context::Context;
use super::text::print_json;
use crate::engine::accept::{Accepted, Submission};
use crate::engine::report::OperationReport;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A configured operation type
    #[arg(value_name = "TYPE")]
    kind: String,
    /// A file that holds the payload as JSON, or - for stdin; without this it is an empty object
    #[arg(long, value_name = "FILE|-")]
    payload: Option<PathBuf>,
    /// The operation key: business facts that name this one action. Needed where the type derives
    /// none from the payload
    #[arg(long)]
    key: Option<String>,
    /// An id of your own, to find it by
    #[arg(long, value_name = "ID")]
    correlation: Option<String>,
}

pub(super) async fn run(context: &Context, args: Args) -> anyhow::Result<()> {
    let submission = Submission {
        kind: args.kind,
        payload: payload(args.payload.as_deref())?,
        key: args.key,
        correlation_id: args.correlation,
        source: Some("cli".to_owned()),
        by: context.actor.to_string(),
    };
    let url = context.public_url();
    let report = match context.engine().intake().submit(submission).await? {
        Accepted::Created(new) => OperationReport::created(&new, url),
        Accepted::Duplicate(id) => {
            let mut tx = context.db.read().await?;
            OperationReport::one(&mut tx, id, url).await?.context("the operation is gone")?.as_duplicate()
        }
    };
    print_json(&report)
}

fn payload(from: Option<&Path>) -> anyhow::Result<Box<RawValue>> {
    let text = match from {
        None => "{}".to_owned(),
        Some(path) if path == Path::new("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("the payload cannot be read from stdin")?;
            text
        }
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("the payload {} cannot be read", path.display()))?,
    };
    RawValue::from_string(text.trim().to_owned()).map_err(|error| anyhow!("the payload is not JSON: {error}"))
}
