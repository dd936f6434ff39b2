//! A throw-away PostgreSQL of the rig's own, since it is to be crashed.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

/// A running cluster; it ends with this value.
pub(crate) struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
}

/// A port that nobody listens on, below the range from which the kernel serves whoever asks for any:
/// a node that is down must find its own free when it comes back.
pub(crate) fn free_port() -> Result<u16> {
    let first = 20_000 + u16::try_from(std::process::id() % 5_000)? * 2;
    (first..32_000).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).context("a free port")
}

impl Postgres {
    pub(crate) fn start() -> Result<Self> {
        // Not in the checkout: the server's account often may not enter it, and a socket's path is limited.
        let folder = tempfile::Builder::new().prefix("dlo-rig-pg-").tempdir_in("/tmp")?;
        let server = Self { folder, programs: programs()?, port: free_port()? };
        if geteuid().is_root() {
            succeed(Command::new("chown").arg("postgres:").arg(server.folder.path()))?;
        }
        succeed(server.program("initdb").arg("-D").arg(server.data()).args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]))?;
        let socket = server.folder.path().display();
        let lines = format!("\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{socket}'\n");
        let file = server.data().join("postgresql.conf");
        let text = fs::read_to_string(&file)? + &lines;
        fs::write(&file, text)?;
        server.up()?;
        Ok(server)
    }

    /// Its database as an address.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts the server and waits until it takes connections.
    pub(crate) fn up(&self) -> Result<()> {
        let log = self.folder.path().join("log");
        let port = format!("-p {}", self.port);
        let mut start = self.program("pg_ctl");
        start.arg("-D").arg(self.data()).arg("-o").arg(port).arg("-l").arg(&log).args(["-w", "start"]);
        // Not `succeed`: the server would inherit the pipe, and its end would be waited for.
        let status = start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if !status.success() {
            bail!("PostgreSQL does not start: {}", fs::read_to_string(log).unwrap_or_default());
        }
        Ok(())
    }

    /// Stops the server without a word to anybody: what a power cut leaves of it.
    pub(crate) fn crash(&self) -> Result<()> {
        succeed(self.program("pg_ctl").arg("-D").arg(self.data()).args(["-m", "immediate", "-w", "stop"]))
    }

    /// Kills one of the server's own processes, upon which it ends every connection and recovers.
    pub(crate) fn kill_a_child(&self, pick: usize) -> Result<()> {
        let pid = fs::read_to_string(self.data().join("postmaster.pid"))?;
        let parent = pid.lines().next().context("the server's number")?.to_owned();
        let children = serving(&parent)?;
        let child = children.get(pick % children.len().max(1)).context("the server serves nobody")?;
        // One that has just ended needs no killing.
        let _ = kill_process(*child, Signal::KILL);
        Ok(())
    }

    /// What the server calls itself, for people.
    pub(crate) fn version(&self) -> Result<String> {
        let out = self.program("postgres").arg("--version").output()?;
        let text = String::from_utf8(out.stdout)?;
        let number = text.split_whitespace().nth(2).unwrap_or_default();
        Ok(format!("PostgreSQL {}", number.split('.').next().unwrap_or_default()))
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// The server refuses to run as root.
    fn program(&self, name: &str) -> Command {
        let path = self.programs.join(name);
        let mut command = if geteuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.current_dir("/");
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // One that is down already is down.
        let _ = self.crash();
    }
}

/// The server's processes that serve a client each.
fn serving(parent: &str) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(number) = entry.file_name().to_string_lossy().parse() else { continue };
        // A process that ends meanwhile has neither file any more.
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let title = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        let its_parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        if its_parent == Some(parent) && title.contains("127.0.0.1") {
            found.extend(Pid::from_raw(number));
        }
    }
    Ok(found)
}

/// Debian keeps the server's programs out of PATH, one folder a version; the newest wins.
fn programs() -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .max_by_key(|bin| version(bin))
        .context("no PostgreSQL server programs under /usr/lib/postgresql; install the package postgresql")
}

fn version(bin: &Path) -> u32 {
    let name = bin.parent().and_then(Path::file_name);
    name.and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0)
}

fn succeed(command: &mut Command) -> Result<()> {
    let out = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    if !out.status.success() {
        bail!(
            "{command:?}: {}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
    }
    Ok(())
}
