//! `dlo audit`.

mod verify;

use anyhow::bail;

use super::Usage;
use super::args;
use super::context::{Context, ORIGIN};
use super::text::print;
use crate::domain::filter::{AuditFilter, MAX_LIMIT, Page};
use crate::domain::time::Timestamp;
use crate::engine::evidence::Reader;
use crate::engine::journal::exported;
use crate::engine::journal::file::{File, Format};
use crate::engine::journal::start::adopt;
use crate::store::audit;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print who did what, newest first, as a file to keep
    ///
    /// The export is written down like any other action. In CSV no cell is a formula; JSON comes
    /// with the proof that `dlo audit verify --export` checks.
    Export(ExportArgs),
    /// Check that no entry was altered, dropped, moved, put in or cut off since it was written
    ///
    /// Walks the chain from its beginning with the secret key, compares it with every line of the
    /// configured anchor file, and names each entry that does not fit. Prints the head, which may be
    /// kept elsewhere for `--head`. Exits 1 when something does not fit.
    Verify(verify::Args),
    /// Begin a chain where the audit has entries and none: after an upgrade from before there was one
    ///
    /// Whoever removed the chain would like this done too: if it was there before, compare the entries
    /// with a backup and with the heads in the log first. What is linked now is vouched for from now
    /// on, whoever wrote it; that it was, by whom and why is on record.
    Adopt(AdoptArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct AdoptArgs {
    /// Why, for whoever reads it later
    #[arg(long, value_name = "TEXT")]
    reason: String,
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
    match command {
        Command::Export(args) => export(context, args).await,
        Command::Verify(args) => verify::run(context, args).await,
        Command::Adopt(args) => adopted(context, &args.reason).await,
    }
}

async fn adopted(context: &Context, reason: &str) -> anyhow::Result<()> {
    if reason.trim().is_empty() {
        return Err(Usage("write why, with --reason".to_owned()).into());
    }
    let actor = context.actor.to_string();
    match adopt(&context.db, &context.ambient, &actor, ORIGIN, reason).await? {
        0 => bail!("there is nothing to link: the audit has its chain, or no entry"),
        count => print(&format!(
            "The chain begins with {}, and vouches for them from now on.\n",
            if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
        )),
    }
}

async fn export(context: &Context, args: ExportArgs) -> anyhow::Result<()> {
    let ExportArgs { from, to, format } = args;
    let filter = AuditFilter { from, to, ..AuditFilter::default() };
    let engine = context.engine();
    let reader = Reader { actor: &context.actor, origin: ORIGIN };
    let upto = exported(engine.gate(), &filter, format, reader).await?;
    let mut file = File::of(format, &filter, upto, context.db.keyring()?);
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
