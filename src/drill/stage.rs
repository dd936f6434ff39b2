//! Where one subject is drilled: a database of its own, the proxy before the destination, engines
//! in this process, and one in a process that can be killed.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::proxy::{FaultProxy, Passage};
use super::subject::Subject;
use crate::config::Config;
use crate::demo::destination::UnreliableDestination;
use crate::domain::actor::Actor;
use crate::domain::ambient::Ambient;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::verdict::Verdict;
use crate::engine::accept::{Accepted, Submission, SubmitError};
use crate::engine::actions::{self, Request};
use crate::engine::thread::Thread;
use crate::engine::{Engine, ask};
use crate::store::Db;

/// How often the database is looked at while something is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(25);

/// Waits for anything are at most this long, beside what the lease and the lookup's lag take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long nothing must happen before it counts as not happening; longer than any drawn wait.
pub(super) const QUIET: Duration = Duration::from_millis(900);

/// How the process that is killed is started: this program, its arguments before the stage's own.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program's file.
    pub path: PathBuf,
    /// What comes before the stage's own arguments: the configuration's file, the command.
    pub arguments: Vec<String>,
}

/// A folder that is gone with the drill.
struct Scratch(PathBuf);

impl Scratch {
    fn new(ambient: &Ambient) -> anyhow::Result<Self> {
        let name = ambient.opaque().simple().to_string();
        let path = std::env::temp_dir().join(format!("dlo-drill-{}", &name[..16]));
        // Real payloads and answers may be stored in it for a while.
        DirBuilder::new().mode(0o700).create(&path).context("no folder for the drill's database")?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left behind is a closed temporary folder: no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) struct Stage {
    pub(super) subject: Arc<Subject>,
    pub(super) engine: Engine,
    pub(super) proxy: FaultProxy,
    /// Keeps account of what really happened, where it is ours.
    pub(super) destination: Option<UnreliableDestination>,
    config: Arc<Config>,
    ambient: Ambient,
    actor: Actor,
    program: Program,
    _scratch: Scratch,
}

impl Stage {
    pub(super) async fn open(
        subject: Arc<Subject>,
        program: &Program,
        ambient: &Ambient,
    ) -> anyhow::Result<Self> {
        let destination = if subject.built_in {
            Some(UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 0).await?)
        } else {
            None
        };
        let there = destination.as_ref().map(|there| there.base_url().parse()).transpose()?;
        let upstream = subject.upstream(there).context("the destination has no base_url")?;
        let proxy = FaultProxy::start(upstream).await?;
        let scratch = Scratch::new(ambient)?;
        let url = format!("sqlite://{}", scratch.0.join("drill.db").display());
        let config = Arc::new(subject.staged(proxy.address, &url));
        let db = Db::open(&url).await.context("the drill's database cannot be opened")?;
        db.migrate().await.context("the drill's database cannot be made")?;
        let engine = Engine::new(db, Arc::clone(&config), ambient.clone());
        Ok(Self {
            subject,
            engine,
            proxy,
            destination,
            config,
            ambient: ambient.clone(),
            actor: Actor::Cli { user: "drill".to_owned() },
            program: program.clone(),
            _scratch: scratch,
        })
    }

    /// Another node on the same database.
    pub(super) async fn another_node(&self) -> anyhow::Result<Engine> {
        let db = Db::open(&self.config.server.database_url).await?;
        Ok(Engine::new(db, Arc::clone(&self.config), self.ambient.clone()))
    }

    /// Lets this process carry operations out until told otherwise.
    pub(super) fn work(&self) -> anyhow::Result<Working> {
        Working::on(&self.engine)
    }

    /// Starts a process of its own that carries operations out.
    pub(super) fn other_process(&self) -> anyhow::Result<OtherProcess> {
        let mut command = Command::new(&self.program.path);
        command
            .args(&self.program.arguments)
            .args(["--type", &self.subject.kind.name])
            .args(["--proxy", &self.proxy.address.to_string()])
            .args(["--database", &self.config.server.database_url])
            .args(self.subject.built_in.then_some("--built-in"))
            // It ends by itself when this end of its input is closed, however this process ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().context("the process that is to be killed does not start")?;
        Ok(OtherProcess(child))
    }

    pub(super) fn submission(&self, mark: &str, payload_mark: &str) -> Result<Submission, serde_json::Error> {
        Ok(Submission {
            kind: self.subject.kind.name.clone(),
            payload: self.subject.payload(payload_mark)?,
            key: self.subject.kind.key.is_none().then(|| mark.to_owned()),
            correlation_id: None,
            source: Some("drill".to_owned()),
            by: self.actor.to_string(),
        })
    }

    pub(super) async fn submit(&self, submission: Submission) -> Result<Accepted, SubmitError> {
        self.engine.intake().submit(submission).await
    }

    pub(super) async fn replay(&self, operation: Uuid) -> anyhow::Result<Verdict> {
        let action = self.ambient.opaque().to_string();
        let request = self.request(&action, "A drill: what a person would say here.");
        let verdict = actions::replay(self.engine.gate(), operation, &request).await?;
        self.engine.wake();
        Ok(verdict)
    }

    /// Asks the destination, and waits for its answer.
    pub(super) async fn ask(&self, operation: Uuid) -> anyhow::Result<ask::FindingReport> {
        let action = self.ambient.opaque().to_string();
        let gate = self.engine.gate();
        let question = ask::ask(gate, operation, &self.request(&action, "")).await?;
        self.engine.wake();
        Ok(ask::answer_within(gate, &question, ask::patience(gate, &question)).await?)
    }

    fn request<'a>(&'a self, action_id: &'a str, reason: &'a str) -> Request<'a> {
        Request { actor: &self.actor, action_id, reason, origin: "drill" }
    }

    pub(super) async fn thread(&self, operation: Uuid) -> anyhow::Result<Thread> {
        let mut tx = self.engine.db().read().await?;
        Thread::load(&mut tx, operation).await?.context("an operation is gone")
    }

    /// Waits until an operation has got somewhere.
    pub(super) async fn until(
        &self,
        operation: Uuid,
        what: &str,
        reached: impl Fn(&Thread) -> bool,
    ) -> anyhow::Result<Thread> {
        let patience = PATIENCE + self.subject.lease() * 2 + self.subject.lag();
        let until = Instant::now() + patience;
        loop {
            let thread = self.thread(operation).await?;
            if reached(&thread) {
                return Ok(thread);
            }
            if Instant::now() > until {
                let last = thread.attempts.last().and_then(|attempt| attempt.error.clone());
                bail!(
                    "after {} s it was still not {what}, but {}; its last attempt said: {}",
                    patience.as_secs(),
                    thread.operation.state(),
                    last.unwrap_or_else(|| "nothing".to_owned())
                );
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Waits until nothing is left to do without a person.
    pub(super) async fn settled(&self, operation: Uuid) -> anyhow::Result<Thread> {
        self.until(operation, "settled", |thread| {
            thread.operation.due_at.is_none() && (thread.operation.completed_at.is_some() || is_open(thread))
        })
        .await
    }

    /// Waits until a request after the first so many is where it should be.
    pub(super) async fn until_passed(
        &self,
        mark: usize,
        what: &str,
        reached: impl Fn(&[Passage]) -> bool,
    ) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        while !reached(&self.proxy.since(mark)) {
            ensure!(Instant::now() < until, "after {} s it was still not so: {what}", PATIENCE.as_secs());
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// It waits for a person.
pub(super) fn is_open(thread: &Thread) -> bool {
    thread.live_letter().is_some_and(|letter| letter.status == DeadLetterStatus::Open)
}

/// A worker in this process.
pub(super) struct Working {
    stop: watch::Sender<bool>,
    worker: JoinHandle<()>,
}

impl Working {
    /// Lets a node carry operations out.
    pub(super) fn on(engine: &Engine) -> anyhow::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let worker = engine.start(&stopped)?;
        Ok(Self { stop, worker })
    }

    /// Lets what is under way end.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        Ok(self.worker.await?)
    }
}

/// A process that carries operations out until it is killed.
pub(super) struct OtherProcess(Child);

impl OtherProcess {
    /// Kills it as `kill -9` does: it has no moment to write anything down.
    pub(super) fn kill(mut self) -> anyhow::Result<String> {
        ensure!(self.0.try_wait()?.is_none(), "the process that was to be killed had ended by itself");
        self.0.kill()?;
        Ok(self.0.wait()?.to_string())
    }
}

impl Drop for OtherProcess {
    fn drop(&mut self) {
        // It may be dead already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
