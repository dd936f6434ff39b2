//! Nodes: `dlo serve` as processes of their own, which are killed, frozen and started again.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dead_letter_office::store::{Commit, Moment};
use rustix::process::{Pid, Signal, kill_process};

/// How long a node may take to answer after its start.
const TO_START: Duration = Duration::from_mins(1);

/// The program with this folder's configuration and without the caller's.
pub(crate) fn dlo(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dlo"));
    command.current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("DLO_") {
            command.env_remove(name);
        }
    }
    command.env("DLO_SECRET_KEY", "only for the rig, and long enough for a key");
    command
}

/// A commit's moment at which a process is to die, as its environment says it.
pub(crate) fn armed(commit: Commit, moment: Moment, nth: u32) -> String {
    format!("{commit}.{moment}:{nth}")
}

/// Runs a command to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str], kill_point: Option<&str>) -> Result<Output> {
    let mut command = dlo(folder);
    if let Some(point) = kill_point {
        command.env("DLO_KILL_POINT", point);
    }
    Ok(command.args(arguments).output()?)
}

/// One node; it keeps its port over restarts.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Node {
    pub(crate) fn new(name: &'static str, folder: &Path, port: u16) -> Self {
        Self { name, folder: folder.to_owned(), port, child: None }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    /// Starts it, armed or not; it may not answer yet.
    pub(crate) fn start(&mut self, kill_point: Option<&str>) -> Result<()> {
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        let mut command = dlo(&self.folder);
        if let Some(point) = kill_point {
            command.env("DLO_KILL_POINT", point);
        }
        let child = command
            .arg("serve")
            .env("DLO_LISTEN", format!("127.0.0.1:{}", self.port))
            .env("DLO_LOG", "warn")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("the program starts")?;
        self.child = Some(child);
        Ok(())
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait()?),
            None => Ok(None),
        }
    }

    /// Waits until it answers; an error when it ended instead.
    pub(crate) async fn ready(&mut self, http: &reqwest::Client) -> Result<()> {
        let (began, url) = (Instant::now(), format!("{}/healthz", self.base_url()));
        loop {
            if let Some(status) = self.ended()? {
                let log = std::fs::read_to_string(self.log()).unwrap_or_default();
                let from = log.len().saturating_sub(2_000);
                bail!(
                    "{} ended with {status} while it started: {}",
                    self.name,
                    log.get(from..).unwrap_or(&log)
                );
            }
            if http.get(&url).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if began.elapsed() > TO_START {
                bail!("{} does not answer; see {}", self.name, self.log().display());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let child = self.child.as_ref().with_context(|| format!("{} does not run", self.name))?;
        kill_process(Pid::from_child(child), signal).context("the signal is sent")
    }

    /// Kills it; how it had ended before, where it had.
    pub(crate) fn kill(&mut self) -> Result<Option<ExitStatus>> {
        let Some(mut child) = self.child.take() else { return Ok(None) };
        let ended = child.try_wait()?;
        // One that ended a moment ago is as dead.
        let _ = child.kill();
        child.wait()?;
        Ok(ended)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
