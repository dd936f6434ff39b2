//! What the rig found, for machines and for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::audit::Counts;
use crate::chaos::Done;
use crate::operators::Acts;

/// One run on all databases.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) size: &'static str,
    pub(crate) seed: u64,
    pub(crate) machine: Machine,
    pub(crate) commit: String,
    pub(crate) date: String,
    pub(crate) databases: Vec<Run>,
}

/// Where it ran.
#[derive(Serialize)]
pub(crate) struct Machine {
    cores: usize,
    memory_mib: u64,
    kernel: String,
}

/// One database's part.
#[derive(Serialize)]
pub(crate) struct Run {
    pub(crate) database: String,
    pub(crate) seconds: f64,
    pub(crate) chaos: Done,
    pub(crate) operators: Acts,
    /// Submissions that were sent again because nothing was answered.
    pub(crate) resubmitted: u64,
    pub(crate) race_rounds: usize,
    /// The earliest that a put-off request came, after the moment that was asked for.
    pub(crate) earliest_after_wait_ms: Option<i64>,
    pub(crate) classes: BTreeMap<String, Counts>,
    pub(crate) checks: Vec<Check>,
    pub(crate) facts: Vec<String>,
}

/// One thing that has to hold.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) name: String,
    pub(crate) holds: bool,
    pub(crate) found: String,
}

impl Machine {
    pub(crate) fn here() -> Self {
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let kib: u64 = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok())
            .unwrap_or(0);
        Self {
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            memory_mib: kib / 1024,
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        }
    }
}

/// The commit that is checked out, and whether there is more than that.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| {
        let out = Command::new("git").args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let hash = git(&["rev-parse", "--short=10", "HEAD"]).filter(|hash| !hash.is_empty());
    let changed = git(&["status", "--porcelain", "--", "src", "tests", "migrations"])
        .is_some_and(|text| !text.is_empty());
    match hash {
        Some(hash) if changed => format!("{hash} and changes"),
        Some(hash) => hash,
        None => "unknown".to_owned(),
    }
}

impl Report {
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(file, serde_json::to_string_pretty(self)? + "\n")?;
        eprintln!("written to {}", file.display());
        Ok(())
    }

    /// Puts the table between its two marks.
    pub(crate) fn write_into(&self, readme: &Path) -> Result<()> {
        const MARKS: (&str, &str) = ("<!-- rig: written by tests/run rig -->\n", "<!-- rig: end -->");
        let text = fs::read_to_string(readme)?;
        let (before, rest) = text.split_once(MARKS.0).context("the README has no place for the table")?;
        let (_, after) = rest.split_once(MARKS.1).context("the README's place for the table has no end")?;
        fs::write(readme, format!("{before}{}{}{}{after}", MARKS.0, self.table(), MARKS.1))?;
        Ok(())
    }

    fn table(&self) -> String {
        let mut text = format!(
            "{}, commit {}, seed {}; {} cores, {} MiB, Linux {}.\n\n",
            self.date,
            self.commit,
            self.seed,
            self.machine.cores,
            self.machine.memory_mib,
            self.machine.kernel
        );
        // Writing to a String cannot fail.
        let _ = text.write_str(
            "| database | class | accepted | completed | recovered | parked | lost | duplicated | unexpected |\n\
             | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for run in &self.databases {
            for (class, counts) in &run.classes {
                let Counts {
                    accepted,
                    completed,
                    recovered,
                    parked,
                    lost,
                    duplicated,
                    unexpected,
                    zombie,
                    ..
                } = counts;
                let duplicated = if class == "L" {
                    format!("{duplicated} (frozen: {zombie})")
                } else {
                    duplicated.to_string()
                };
                let _ = writeln!(
                    text,
                    "| {} | {class} | {accepted} | {completed} | {recovered} | {parked} | {lost} | {duplicated} | {unexpected} |",
                    run.database
                );
            }
        }
        text.push('\n');
        for run in &self.databases {
            let labelled: u64 = run.chaos.labelled.values().sum();
            let early = run.earliest_after_wait_ms.map_or_else(|| "none".to_owned(), |ms| format!("{ms} ms"));
            let _ = writeln!(
                text,
                "* {}: {} kills ({labelled} at {} labelled moments), {} freezes past the lease, {} crashes of the \
                 database, {} pairs of operators' replays; {} races of 16 on one key; the earliest request after a \
                 `Retry-After` came {early} after it was allowed; {:.0} s.",
                run.database,
                run.chaos.kills,
                run.chaos.labelled.len(),
                run.chaos.freezes,
                run.chaos.outages,
                run.operators.pairs,
                run.race_rounds,
                run.seconds
            );
        }
        text
    }
}
