//! Keeps the parts of a process running until a signal, and ends them in order.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::engine::Engine;
use crate::web;

/// What is left after the longest destination timeout for writing down what came of it.
const TO_SETTLE: Duration = Duration::from_secs(5);

/// How long pages may take to end: a browser that keeps reading must not keep a process.
const TO_ANSWER: Duration = Duration::from_secs(5);

type Ended = Result<(Id, anyhow::Result<()>), JoinError>;

/// The parts of this process.
pub(super) struct Run {
    engine: Engine,
    stop: watch::Sender<bool>,
    parts: JoinSet<anyhow::Result<()>>,
    names: HashMap<Id, &'static str>,
    signals: Signals,
}

impl Run {
    /// Nothing runs yet, but signals are heard.
    pub(super) fn new(engine: Engine) -> anyhow::Result<Self> {
        let (stop, _) = watch::channel(false);
        Ok(Self { engine, stop, parts: JoinSet::new(), names: HashMap::new(), signals: Signals::listen()? })
    }

    pub(super) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Adds a part that ends when it is told to stop, and not before.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        part: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        let id = self.parts.spawn(part).id();
        self.names.insert(id, name);
    }

    /// Carries operations out.
    pub(super) fn add_engine(&mut self) -> anyhow::Result<()> {
        let worker = self.engine.start(&self.stop.subscribe())?;
        self.add("the engine", async move { worker.await.map_err(|error| anyhow!("it broke off: {error}")) });
        Ok(())
    }

    /// Serves the desk and the API.
    pub(super) fn add_web(&mut self, listener: TcpListener) {
        let (engine, stop) = (self.engine.clone(), self.stop.subscribe());
        self.add("the desk", async move {
            let mut stopped = stop.clone();
            let overdue = async move {
                // A stopper that is gone stops as well.
                let _ = stopped.wait_for(|stop| *stop).await;
                sleep(TO_ANSWER).await;
            };
            tokio::select! {
                ended = web::serve(engine, listener, stop) => Ok(ended?),
                () = overdue => {
                    tracing::info!("some pages were still being read; they are cut off");
                    Ok(())
                }
            }
        });
    }

    /// Runs until a signal comes or a part ends by itself; then stops the others, lets attempts
    /// under way end, and closes the database.
    pub(super) async fn until_stopped(mut self) -> anyhow::Result<()> {
        let died = tokio::select! {
            Some(ended) = self.parts.join_next_with_id() => Some(self.obituary(ended)),
            () = self.signals.next() => None,
        };
        match &died {
            None => tracing::info!("stopping: attempts under way may end"),
            Some(why) => tracing::error!("{why:#}; stopping"),
        }
        self.stop.send_replace(true);
        let longest = self.engine.config().destinations.values().map(|known| known.timeout).max();
        let patience = longest.unwrap_or_default() + TO_SETTLE;
        let deadline = Instant::now() + patience;
        let mut failed = died;
        loop {
            tokio::select! {
                ended = self.parts.join_next_with_id() => match ended {
                    None => break,
                    Some(Ok((_, Ok(())))) => {}
                    Some(ended) => {
                        let why = self.obituary(ended);
                        failed.get_or_insert(why);
                    }
                },
                () = sleep_until(deadline) => {
                    failed.get_or_insert(anyhow!(
                        "attempts were still under way after {} s; what they sent counts as uncertain",
                        patience.as_secs()
                    ));
                    break;
                }
                () = self.signals.next() => bail!("ended at once, at a second signal"),
            }
        }
        self.parts.shutdown().await;
        self.engine.db().close().await;
        failed.map_or(Ok(()), Err)
    }

    fn obituary(&self, ended: Ended) -> anyhow::Error {
        let (id, why) = match ended {
            Ok((id, Ok(()))) => (id, anyhow!("it was not told to")),
            Ok((id, Err(error))) => (id, error),
            Err(error) => (error.id(), anyhow!("it broke off: {error}")),
        };
        why.context(format!("{} ended", self.names.get(&id).copied().unwrap_or("a part")))
    }
}

/// The two signals that ask a process to end.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let hear = |kind| signal(kind).context("signals cannot be heard");
        Ok(Self { interrupt: hear(SignalKind::interrupt())?, terminate: hear(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::config::Config;
    use crate::domain::ambient::Ambient;
    use crate::store::Db;

    #[tokio::test]
    async fn a_part_that_dies_ends_the_others_and_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", folder.path().join("dlo.db").display());
        let db = Db::open(&url).await.unwrap();
        db.migrate().await.unwrap();
        let config = Arc::new(Config::read(Path::new("dlo.toml"), "", &|_| None).unwrap());
        let mut run = Run::new(Engine::new(db, config, Ambient::system())).unwrap();
        run.add_engine().unwrap();
        let mut stop = run.stop();
        let (told, heard) = tokio::sync::oneshot::channel();
        run.add("a good part", async move {
            stop.wait_for(|stop| *stop).await?;
            let _ = told.send(());
            Ok(())
        });
        run.add("a bad part", async { panic!("this is the test's own panic") });
        let error = run.until_stopped().await.unwrap_err();
        assert!(error.to_string().starts_with("a bad part ended"), "{error:#}");
        heard.await.expect("the good part was told");
    }
}
