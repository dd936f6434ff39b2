//! The program as people run it: real processes, their output, their exit codes, their ends.

mod accounts;
mod audit;
mod demo;
mod drill;
mod erasure;
mod killed;
mod operator;
mod serving;
mod setup;
mod worker;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use dead_letter_office::domain::keyring::{Keyring, SecretKey};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take on a machine that does many things at once.
const PATIENCE: Duration = Duration::from_mins(1);

/// Every command has it, as a service would by its environment.
const SECRET_KEY: &str = "only for tests, and long enough for a key";

/// The same for what a test does itself to a database.
fn keyring() -> Option<Keyring> {
    SecretKey::new(SECRET_KEY).map(|key| Keyring::new(key, vec![]))
}

/// A folder in which the program runs.
pub(crate) struct House {
    folder: TempDir,
}

/// What a command answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl House {
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// With a configuration for a destination.
    fn configured(database: &str, destination: &str, more: &str) -> Self {
        let house = Self::empty();
        house.write("dlo.toml", &config(database, destination, more));
        house
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file in the folder");
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dlo"));
        command.args(arguments).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("DLO_") {
                command.env_remove(name);
            }
        }
        // It would stand before one that the file names.
        let file = fs::read_to_string(self.path("dlo.toml")).unwrap_or_default();
        if !file.contains("secret_key_file") {
            command.env("DLO_SECRET_KEY", SECRET_KEY);
        }
        command
    }

    pub(crate) fn dlo(&self, arguments: &[&str]) -> Answer {
        self.dlo_with(arguments, "")
    }

    /// With something on stdin.
    pub(crate) fn dlo_with(&self, arguments: &[&str], stdin: &str) -> Answer {
        answer(self.command(arguments), stdin)
    }

    /// The same, where nothing but success is expected.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let answer = self.dlo(arguments);
        assert_eq!(answer.code, Some(0), "{arguments:?}: {answer:?}");
        answer.out
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let out = self.done(arguments);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {out}"))
    }

    /// A process that runs until it is told to end; returns once it has printed `ready`.
    fn run(&self, arguments: &[&str], ready: &str) -> Process {
        Process::start(self.command(arguments), self.path("stderr"), ready)
    }
}

pub(crate) fn answer(mut command: Command, stdin: &str) -> Answer {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // Dropped at once: the program sees the end of its input. One that does not read it is right too.
    let _ = child.stdin.take().expect("it is piped").write_all(stdin.as_bytes());
    let output = child.wait_with_output().expect("the program ends");
    Answer {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// A running program; killed when dropped.
pub(crate) struct Process {
    child: Child,
    out: Arc<Mutex<String>>,
    stderr: PathBuf,
}

impl Process {
    pub(crate) fn start(mut command: Command, stderr: PathBuf, ready: &str) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).expect("a file for stderr"))
            .spawn()
            .expect("the program starts");
        let out = Arc::new(Mutex::new(String::new()));
        let (lines, written) = (BufReader::new(child.stdout.take().expect("it is piped")), Arc::clone(&out));
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                written.lock().unwrap().push_str(&(line + "\n"));
            }
        });
        let mut process = Self { child, out, stderr };
        wait_until(&format!("{ready:?} is printed"), || {
            if let Some(status) = process.child.try_wait().expect("its status") {
                panic!("it ended with {status}: {}\n{}", process.out(), process.err());
            }
            process.out().contains(ready)
        });
        process
    }

    pub(crate) fn out(&self) -> String {
        self.out.lock().unwrap().clone()
    }

    pub(crate) fn err(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    /// By the shell, since sending signals takes unsafe code here.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{name} {}", self.child.id())]).status();
        assert!(sent.expect("a shell").success(), "it is there to hear {name}");
    }

    /// Its exit code; none when a signal ended it.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end: {}\n{}", self.out(), self.err());
    }

    fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its status").is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn wait_until(what: &str, mut reached: impl FnMut() -> bool) {
    let start = Instant::now();
    while !reached() {
        assert!(start.elapsed() < PATIENCE, "not reached: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Short waits and a short lease: what a crash leaves behind is taken up within seconds.
fn config(database: &str, destination: &str, more: &str) -> String {
    format!(
        r#"
[server]
listen = "127.0.0.1:0"
database_url = "{database}"
allow_private_destinations = true
[engine]
concurrency = 16
lease = "2s"
[retry]
attempts = 10
max_age = "10m"
first_delay = "200ms"
factor = 1.5
max_delay = "1s"
[destinations.payments]
base_url = "{destination}/keyed"
timeout = "500ms"
connect_timeout = "300ms"
key = {{ header = "Idempotency-Key", window = "24h" }}
[destinations.mailer]
base_url = "{destination}/plain"
timeout = "500ms"
connect_timeout = "300ms"
[operations.charge-card]
key = "charge:{{{{ payload.order_id }}}}"
search = {{ order = "/order_id" }}
[[operations.charge-card.steps]]
name = "charge card"
destination = "payments"
method = "POST"
path = "/charges"
reference = "/id"
effect = "Money taken"
[operations.send-receipt]
[[operations.send-receipt.steps]]
name = "send receipt"
destination = "mailer"
method = "POST"
path = "/receipts"
reference = "/id"
effect = "A receipt"
{more}
"#
    )
}

/// A database's file as an address.
fn sqlite(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}
