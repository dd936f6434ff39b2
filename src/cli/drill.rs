//! `dlo drill`, and the process that it kills.

use std::fmt::Write as _;
use std::fs;
use std::io::{ErrorKind, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use sha2::{Digest as _, Sha256};

use super::text::{clean, cut, print, table, wrapped};
use super::{Usage, context};
use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::domain::key::hex;
use crate::domain::time::Timestamp;
use crate::drill::{CaseVerdict, ConfigFile, Drill, NotDrillable, Program, Report};

/// Not in the help: it is started by the drill itself.
pub(super) const ENGINE: &str = "drill-engine";

/// The file that need not be there, unless a type of it is to be drilled.
const USUAL_FILE: &str = "dlo.toml";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A configured type, whose destination is really sent to; without this, a built-in destination
    /// of each kind is drilled, and nothing leaves this machine
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Where the report is written; must not be there yet [default: drill-DATE in this folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A file that holds a payload for the type as JSON, with {{ drill }} where operations differ;
    /// without this, one is made up from the names that the type reads
    #[arg(long, value_name = "FILE", requires = "kind")]
    payload: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct EngineArgs {
    #[arg(long = "type")]
    kind: String,
    #[arg(long)]
    proxy: SocketAddr,
    #[arg(long)]
    database: String,
    #[arg(long)]
    built_in: bool,
}

pub(super) async fn run(path: &Path, args: Args) -> anyhow::Result<()> {
    let ambient = Ambient::system();
    let there = args.kind.is_some() || path != Path::new(USUAL_FILE) || path.exists();
    let read = if there { Some(read(path).await?) } else { None };
    let (config, file) = read.unzip();
    let drill = match (args.kind, config) {
        (Some(kind), Some(config)) => {
            let payload = args.payload.as_deref().map(payload).transpose()?;
            Drill::configured(config, &kind, payload).map_err(|why| usage(&why))?
        }
        _ => Drill::built_in()?,
    };
    let folder = args.out.unwrap_or_else(|| PathBuf::from(dated(ambient.now())));
    make(&folder)?;
    if let Some(address) = drill.really_sends_to() {
        eprint!(
            "{}",
            wrapped(
                &format!(
                    "This drill really sends: some ten operations go to {address}, and what they bring about stays \
                     there. Their payloads bear the drill's name."
                ),
                ""
            )
        );
    }
    let program = Program {
        path: std::env::current_exe().context("this program's own file is not known")?,
        arguments: vec!["--config".to_owned(), path.display().to_string(), ENGINE.to_owned()],
    };
    // As large as every reader of JSON can take it.
    let seed = u64::from(rand::random::<u32>());
    let report = drill.run(&program, file, seed).await;
    write(&folder, &report)?;
    print(&summary(&report, &folder))?;
    if report.failed() {
        bail!("the drill failed: {}", failures(&report));
    }
    Ok(())
}

/// Carries the type's operations out until this process is killed, or whoever started it is gone.
pub(super) async fn engine(path: &Path, args: EngineArgs) -> anyhow::Result<()> {
    let config = if args.built_in { None } else { Some(context::config(path).await?) };
    let engine = crate::drill::engine(config, &args.kind, args.proxy, &args.database).await?;
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let worker = engine.start(&stopped)?;
    let orphaned = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        ended = worker => Ok(ended?),
        _ = orphaned => Ok(()),
    }
}

async fn read(path: &Path) -> anyhow::Result<(Config, ConfigFile)> {
    let config = context::config(path).await?;
    let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let file = ConfigFile { file: path.display().to_string(), sha256: hex(&Sha256::digest(&bytes)) };
    Ok((config, file))
}

fn payload(path: &Path) -> anyhow::Result<String> {
    let text =
        fs::read_to_string(path).with_context(|| format!("the payload {} cannot be read", path.display()))?;
    match serde_json::from_str::<serde_json::Value>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Usage(format!("the payload {} is not JSON: {error}", path.display())).into()),
    }
}

fn usage(why: &NotDrillable) -> Usage {
    Usage(why.to_string())
}

/// `drill-2026-11-29T090000Z`.
fn dated(now: Timestamp) -> String {
    let moment: String = now.rfc3339().chars().take(19).filter(|letter| *letter != ':').collect();
    format!("drill-{moment}Z")
}

/// Made before anything is sent: a report that could not be written would be known too late.
fn make(folder: &Path) -> anyhow::Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} is there already and is not overwritten; name another folder", folder.display())
        }
        other => other.with_context(|| format!("{} cannot be made", folder.display())),
    }
}

fn write(folder: &Path, report: &Report) -> anyhow::Result<()> {
    let json = serde_json::to_string_pretty(report)? + "\n";
    for (name, text) in [("report.json", json), ("report.html", report.page()?)] {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    Ok(())
}

fn summary(report: &Report, folder: &Path) -> String {
    let mut rows = Vec::new();
    for proved in &report.proofs {
        for case in &proved.cases {
            rows.push([
                proved.proof.title().to_owned(),
                format!("{} ({})", case.operation_type, case.promise().to_lowercase()),
                case.verdict.label().to_owned(),
                match (&case.why, case.checks.len()) {
                    (Some(why), _) => cut(why, 90),
                    (None, count) => format!("{count} checks, all as promised"),
                },
            ]);
        }
    }
    let mut text = table(["PROOF", "TYPE", "VERDICT", "WHAT WAS FOUND"], &rows);
    let took = report.ended_at.since(report.started_at).as_secs();
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "\nThe drill {} after {took} s. For people: {}; for programs: {}.",
        match report.verdict {
            CaseVerdict::Passed => "passed",
            CaseVerdict::NotRun => "passed as far as it could be run,",
            CaseVerdict::Failed => "failed",
        },
        clean(&folder.join("report.html").display().to_string()),
        clean(&folder.join("report.json").display().to_string()),
    );
    text
}

fn failures(report: &Report) -> String {
    let failed = report.proofs.iter().filter(|proved| proved.verdict == CaseVerdict::Failed);
    failed.map(|proved| proved.proof.title().to_lowercase()).collect::<Vec<_>>().join(", ")
}
