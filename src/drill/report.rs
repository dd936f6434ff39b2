//! The report: dated, whole, and for two readers, a program and a person.

use askama::Template;
use serde::Serialize;

use super::evidence::{Case, CaseVerdict};
use super::proofs::Proof;
use super::subject;
use crate::config::promise;
use crate::domain::contract::Class;
use crate::domain::time::Timestamp;
use crate::domain::words;

/// The configuration that was read.
#[derive(Clone, Debug, Serialize)]
pub struct ConfigFile {
    /// As it was named.
    pub file: String,
    /// Of its bytes, in hexadecimal.
    pub sha256: String,
}

/// What was drilled.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
    /// The operation type.
    pub operation_type: String,
    /// The step that was drilled.
    pub step: String,
    /// Further steps of the type, which were not.
    pub steps_left_out: usize,
    /// The destination's name.
    pub destination: String,
    /// It belongs to this program and keeps account of what really happens.
    pub built_in: bool,
    /// Where requests really went; absent for the built-in one.
    pub base_url: Option<String>,
    /// What it promises.
    pub class: Class,
    /// The same in sentences, as `dlo check` prints it.
    pub promise: String,
}

impl Subject {
    pub(super) fn of(subject: &subject::Subject) -> Self {
        let url = subject.destination.base_url.as_ref().filter(|_| !subject.built_in);
        Self {
            operation_type: subject.kind.name.clone(),
            step: subject.step().name.clone(),
            steps_left_out: subject.steps_left_out,
            destination: subject.destination.name.clone(),
            built_in: subject.built_in,
            base_url: url.map(ToString::to_string),
            class: subject.class(),
            promise: promise(&subject.destination, crate::domain::ambient::Ambient::system().now()),
        }
    }
}

/// One proof at every destination that was drilled.
#[derive(Clone, Debug, Serialize)]
pub struct Proved {
    /// Which.
    pub proof: Proof,
    /// What is promised.
    pub statement: &'static str,
    /// The worst of its cases.
    pub verdict: CaseVerdict,
    /// One a destination.
    pub cases: Vec<Case>,
}

/// A whole drill.
#[derive(Clone, Debug, Serialize, Template)]
#[template(path = "reports/drill.html")]
pub struct Report {
    /// The program.
    pub product: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Of this report's shape.
    pub format: u32,
    /// Names this drill in every key that it used.
    pub run: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The machine's name.
    pub host: String,
    /// Keys and waits were drawn from it.
    pub seed: u64,
    /// Absent when none was there.
    pub config: Option<ConfigFile>,
    /// The worst of its proofs.
    pub verdict: CaseVerdict,
    /// What was drilled.
    pub subjects: Vec<Subject>,
    /// In the order in which they were shown.
    pub proofs: Vec<Proved>,
}

impl Report {
    pub(super) fn new(
        run: String,
        started_at: Timestamp,
        ended_at: Timestamp,
        seed: u64,
        config: Option<ConfigFile>,
        subjects: Vec<Subject>,
        cases: &[(Proof, Case)],
    ) -> Self {
        let of = |proof: Proof| {
            let cases: Vec<Case> =
                cases.iter().filter(|(other, _)| *other == proof).map(|(_, case)| case.clone()).collect();
            let verdict = worst(cases.iter().map(|case| case.verdict));
            Proved { proof, statement: proof.statement(), verdict, cases }
        };
        let proofs: Vec<Proved> = Proof::ALL.iter().map(|proof| of(*proof)).collect();
        Self {
            product: "Dead Letter Office",
            version: env!("CARGO_PKG_VERSION"),
            format: 1,
            run,
            started_at,
            ended_at,
            host: whoami::hostname().unwrap_or_else(|_| "unknown".to_owned()),
            seed,
            config,
            verdict: worst(proofs.iter().map(|proved| proved.verdict)),
            subjects,
            proofs,
        }
    }

    /// Whether something was not as promised.
    pub fn failed(&self) -> bool {
        self.verdict == CaseVerdict::Failed
    }

    /// A page for people, whole in one file.
    pub fn page(&self) -> Result<String, askama::Error> {
        self.render()
    }
}

fn worst(verdicts: impl Iterator<Item = CaseVerdict>) -> CaseVerdict {
    // As they are declared: passed, not run, failed.
    verdicts.max().unwrap_or(CaseVerdict::NotRun)
}

impl CaseVerdict {
    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::NotRun => "not run",
            Self::Failed => "failed",
        }
    }
}

impl Case {
    /// The promise's kind in a few words.
    pub fn promise(&self) -> &'static str {
        words::class(self.class).label
    }
}

impl super::proxy::Fault {
    /// What was done, in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::None => "passed on",
            Self::LoseAnswer => "passed on; the answer was lost",
            Self::HoldAnswer => "passed on; the answer was held back",
            Self::Refuse => "refused by the drill, not passed on",
        }
    }
}

/// To the millisecond, for people.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "templates hand over references")]
fn moment(at: &Timestamp) -> String {
    at.rfc3339().chars().take(23).map(|letter| if letter == 'T' { ' ' } else { letter }).collect()
}
