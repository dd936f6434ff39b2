//! `dlo audit`.

use super::args;
use super::context::{Context, ORIGIN};
use super::text::print;
use crate::domain::filter::{AuditFilter, MAX_LIMIT, Page};
use crate::domain::time::Timestamp;
use crate::engine::evidence::Reader;
use crate::engine::journal::exported;
use crate::engine::journal::file::{File, Format};
use crate::store::audit;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print who did what, newest first, as a file to keep
    ///
    /// The export is written down like any other action. In CSV no cell is a formula.
    Export(ExportArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// From this moment on: a date, or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Timestamp>,
    /// Before this moment
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Timestamp>,
    /// How it is written
    #[arg(long, default_value = "csv", value_parser = args::words(Format::ALL, Format::as_str))]
    format: Format,
}

fn moment(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "not a date or an RFC 3339 time".to_owned())
}

pub(super) async fn run(context: &Context, command: Command) -> anyhow::Result<()> {
    let Command::Export(ExportArgs { from, to, format }) = command;
    let filter = AuditFilter { from, to, ..AuditFilter::default() };
    let engine = context.engine();
    let reader = Reader { actor: &context.actor, origin: ORIGIN };
    exported(engine.gate(), &filter, format, reader).await?;
    let mut file = File::of(format, &filter, context.db.keyring()?);
    print(&file.head())?;
    let mut cursor = None;
    loop {
        let mut tx = context.db.read().await?;
        let listed = audit::list(&mut tx, &filter, Page { limit: MAX_LIMIT, cursor }).await?;
        drop(tx);
        print(&file.rows(listed.items))?;
        match listed.older {
            Some(older) => cursor = Some(older),
            None => break,
        }
    }
    print(&file.foot())
}
