//! `dlo audit verify`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::cli::context::Context;
use crate::cli::text::{clean, print};
use crate::domain::key::hex;
use crate::engine::journal::anchor::{Anchored, told};
use crate::engine::journal::proof;
use crate::engine::journal::verify::{Adopted, FaultKind, NEXT, verify};
use crate::store::Commit;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// A head that was written down before, as this command and the log print it
    #[arg(long, value_name = "SEQ:MAC", value_parser = head)]
    head: Option<Anchored>,
    /// Check an exported JSON file instead of the database
    #[arg(long, value_name = "FILE", conflicts_with = "head")]
    export: Option<PathBuf>,
}

fn head(text: &str) -> Result<Anchored, String> {
    let read = || {
        let (seq, mac) = text.split_once(':')?;
        let seq = seq.parse().ok().filter(|seq| *seq > 0)?;
        // A shortened one would look like one that was altered.
        let whole = mac.len() == 64 && mac.bytes().all(|byte| byte.is_ascii_hexdigit());
        whole.then(|| Anchored { at: None, seq, mac: mac.to_ascii_lowercase() })
    };
    read().ok_or_else(|| "write it whole, as it was printed: a number, a colon and 64 digits".to_owned())
}

pub(super) async fn run(context: &Context, args: Args) -> anyhow::Result<()> {
    if let Some(path) = args.export {
        return file(context, &path);
    }
    let mut heads: Vec<Anchored> = args.head.into_iter().collect();
    let mut page = String::new();
    if let Some(path) = &context.config.audit.anchor_file {
        let lines = told(path)?;
        let shown = path.display();
        match &lines {
            Some(lines) => writeln!(page, "Compared with {} from {shown}.", counted(lines.len(), "head")),
            None => writeln!(page, "{shown} is not there: nothing was compared with it."),
        }?;
        heads.extend(lines.unwrap_or_default());
    }
    let outcome = verify(&context.db, heads).await?;
    let mut tx = context.db.begin().await?;
    outcome.note(&mut tx, context.ambient.now()).await?;
    tx.commit(Commit::Tidy).await?;
    if let Some(head) = &outcome.head {
        writeln!(page, "Head: {}:{}", head.seq, hex(&head.mac))?;
    }
    if let Some(Adopted { entries, at, actor }) = &outcome.adopted {
        writeln!(
            page,
            "Of these, {entries} had no chain until {} began it at {}: it vouches for them from then on.",
            clean(actor),
            at.rfc3339()
        )?;
    }
    if outcome.is_whole() {
        let links = usize::try_from(outcome.links)?;
        let erased = match outcome.erased {
            0 => String::new(),
            1 => " The words of 1 were erased, and a later entry says so.".to_owned(),
            many => format!(" The words of {many} were erased, and later entries say so."),
        };
        let entries = if links == 1 { "1 entry".to_owned() } else { format!("{links} entries") };
        return print(&format!("The audit is whole: {entries}, and each fits.{erased}\n{page}"));
    }
    let mut list = String::new();
    for fault in &outcome.faults {
        writeln!(list, "{}", clean(&fault.to_string()))?;
    }
    if outcome.more > 0 {
        writeln!(list, "And {} more.", outcome.more)?;
    }
    print(&format!("{list}{page}"))?;
    if outcome.more == 0 && outcome.faults.iter().all(|fault| fault.kind == FaultKind::UnknownKey) {
        bail!("the audit cannot be verified without the keys named above; what they do not link fits");
    }
    bail!("the audit does not fit its chain in {}: {NEXT}", outcome.places())
}

fn file(context: &Context, path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{shown} cannot be read"))?;
    let keyring = context.db.keyring()?;
    let checked = match proof::check(&text, keyring) {
        Ok(checked) => checked,
        Err(why) => bail!("{shown}: {why}"),
    };
    let range = checked.range.map(|(from, to)| format!(", No. {from} to {to}")).unwrap_or_default();
    let mut page = String::new();
    for fault in &checked.faults {
        writeln!(page, "{}", clean(fault))?;
    }
    let entries =
        if checked.entries == 1 { "1 entry".to_owned() } else { format!("{} entries", checked.entries) };
    writeln!(page, "{shown} holds {entries}{range}: {}.", clean(&checked.of))?;
    if checked.unread > 0 {
        writeln!(
            page,
            "The words of {} were not compared: they are erased, or private values in them are masked.",
            checked.unread
        )?;
    }
    if checked.faults.is_empty() {
        writeln!(page, "Each is as it was written, and none was taken out.")?;
    }
    print(&page)?;
    if checked.faults.is_empty() {
        return Ok(());
    }
    bail!("the file is not what was exported: export it again, and find out who could change it")
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
