//! `dlo drill`: the promises shown at work, at a destination that is built in or at the configured
//! one, with a dated report that a second person can read.
//!
//! Nothing of the product's own database is touched: each type is drilled in a database of its own
//! that is gone afterwards. What is sent to a configured destination is really sent.

mod evidence;
mod proofs;
mod proxy;
mod report;
mod stage;
mod subject;

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use rand::SeedableRng;
use rand::rngs::StdRng;

pub use evidence::{
    AttemptEvidence, Case, CaseVerdict, Checked, Effects, EventEvidence, LetterEvidence, OperationEvidence,
};
pub use proofs::Proof;
pub use proxy::{Fault, Passage};
pub use report::{ConfigFile, Proved, Report, Subject as SubjectReport};
pub use stage::Program;
pub use subject::{MARK, NotDrillable};

use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::domain::time::SystemClock;
use crate::engine::Engine;
use crate::store::Db;
use stage::Stage;
use subject::{Subject, built_in_config};

/// What is to be drilled.
#[derive(Debug)]
pub struct Drill {
    subjects: Vec<Arc<Subject>>,
}

impl Drill {
    /// The built-in destination, with one type for each kind of promise.
    pub fn built_in() -> anyhow::Result<Self> {
        let config = built_in_config()?;
        let kinds: Vec<String> = config.operations.keys().cloned().collect();
        let subject = |kind: String| Ok(Arc::new(Subject::new(config.clone(), &kind, None, true)?));
        Ok(Self { subjects: kinds.into_iter().map(subject).collect::<anyhow::Result<_>>()? })
    }

    /// One configured type at its own destination. `payload` is JSON in which [`MARK`] stands for
    /// what differs; without it one is made from the names that the type's templates read.
    pub fn configured(config: Config, kind: &str, payload: Option<String>) -> Result<Self, NotDrillable> {
        Ok(Self { subjects: vec![Arc::new(Subject::new(config, kind, payload, false)?)] })
    }

    /// The address that is really sent to; absent for the built-in destination.
    pub fn really_sends_to(&self) -> Option<String> {
        let outside = self.subjects.iter().find(|subject| !subject.built_in)?;
        outside.destination.base_url.as_ref().map(ToString::to_string)
    }

    /// Shows every proof at every destination. What goes wrong is a failed proof. `program` starts
    /// the process that is killed, `file` is the configuration's; `seed` decides keys and waits.
    pub async fn run(self, program: &Program, file: Option<ConfigFile>, seed: u64) -> Report {
        let ambient = Ambient::new(Arc::new(SystemClock), StdRng::seed_from_u64(seed));
        let started_at = ambient.now();
        let run = ambient.opaque().simple().to_string()[..8].to_owned();
        let each =
            self.subjects.iter().map(|subject| prove_all(Arc::clone(subject), program, &ambient, &run));
        let cases: Vec<(Proof, Case)> = join_all(each).await.into_iter().flatten().collect();
        let subjects = self.subjects.iter().map(|subject| SubjectReport::of(subject)).collect();
        Report::new(run, started_at, ambient.now(), seed, file, subjects, &cases)
    }
}

async fn prove_all(
    subject: Arc<Subject>,
    program: &Program,
    ambient: &Ambient,
    run: &str,
) -> Vec<(Proof, Case)> {
    let stage = match Stage::open(Arc::clone(&subject), program, ambient).await {
        Ok(stage) => stage,
        Err(error) => {
            let broken = |proof: &Proof| {
                let mut case = Case::new(&subject.kind.name, &subject.destination.name, subject.class());
                case.conclude(Some(format!("{error:#}")));
                (*proof, case)
            };
            return Proof::ALL.iter().map(broken).collect();
        }
    };
    let mut cases = Vec::new();
    for proof in Proof::ALL {
        cases.push((*proof, proof.show(&stage, run).await));
    }
    stage.engine.db().close().await;
    cases
}

/// The engine of the process that is killed: the same type on the same database, through the same
/// proxy. `config` is the file's; absent for the built-in destination.
pub async fn engine(
    config: Option<Config>,
    kind: &str,
    proxy: SocketAddr,
    database_url: &str,
) -> anyhow::Result<Engine> {
    let built_in = config.is_none();
    let config = config.map_or_else(built_in_config, Ok)?;
    let subject = Subject::new(config, kind, Some(MARK.to_owned()), built_in)?;
    let config = Arc::new(subject.staged(proxy, database_url));
    let db = Db::open(database_url).await?;
    Ok(Engine::new(db, config, Ambient::system()))
}
