//! What must be: operations of one step each, without a database, a request or a clock of their own.

mod moves;
mod operation;

pub(super) use moves::Move;
pub(super) use operation::Operation;
use operation::Work;

/// What a destination promises, which is also its name and that of an operation type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Keyed,
    Upsert,
    Lookup,
    Plain,
}

pub(super) const KINDS: [Kind; 4] = [Kind::Keyed, Kind::Upsert, Kind::Lookup, Kind::Plain];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Keyed => "keyed",
            Self::Upsert => "upsert",
            Self::Lookup => "lookup",
            Self::Plain => "plain",
        }
    }
}

/// Attempts of a round.
pub(super) const ATTEMPTS: u32 = 4;

/// In seconds, as everything here.
pub(super) const LEASE: u64 = 60;

pub(super) const TIMEOUT: u64 = 1;

/// How a permitted request ends: as a send, and as a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Done; found.
    Yes,
    /// Refused; absent.
    No,
    /// Never sent; the question failed.
    Unsent,
    /// Put off; the question failed.
    Throttled,
    /// Its answer is lost; the question's is.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Going,
    Parked,
    Completed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Send,
    FindOut,
    Ask,
}

/// The right to send, or to ask, as the model remembers it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permit {
    pub(super) operation: usize,
    pub(super) task: Task,
    began: u64,
    /// Its lease has not run out.
    live: bool,
}

/// What a person's action is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accepted,
    AlreadyDone,
    InFlight,
    Refused,
    LookUpFirst,
    NeedsOverride,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) operations: Vec<Operation>,
    pub(super) permits: Vec<Permit>,
    paused: Vec<Kind>,
    now: u64,
    /// Whether the last settlement, question or word counted, and the last verdict.
    pub(super) counted: bool,
    pub(super) verdict: Option<Verdict>,
}

impl Model {
    /// Whether some lease has not run out.
    pub(super) fn anybody_holds(&self) -> bool {
        self.permits.iter().any(|permit| permit.live)
    }

    /// The operation that an index means.
    pub(super) fn at(&self, index: usize) -> Option<usize> {
        (!self.operations.is_empty()).then(|| index % self.operations.len())
    }

    /// The permit that an index means.
    pub(super) fn permit(&self, index: usize) -> Option<usize> {
        (!self.permits.is_empty()).then(|| index % self.permits.len())
    }

    /// What stands in the way of a send, whoever asks.
    fn obstacle(&self, operation: &Operation) -> Option<Verdict> {
        match operation {
            Operation { phase: Phase::Completed, .. } => Some(Verdict::AlreadyDone),
            Operation { work: Some(_), .. } => Some(Verdict::InFlight),
            Operation { kind, .. } if self.paused.contains(kind) => Some(Verdict::Refused),
            _ => None,
        }
    }

    fn replay(&mut self, at: usize) -> Verdict {
        let operation = &self.operations[at];
        let verdict = self.obstacle(operation).unwrap_or(match (operation.doubt, operation.kind) {
            (false, _) | (true, Kind::Keyed | Kind::Upsert) => Verdict::Accepted,
            (true, Kind::Lookup) => Verdict::LookUpFirst,
            (true, Kind::Plain) => Verdict::NeedsOverride,
        });
        if verdict == Verdict::Accepted {
            self.operations[at].requeue(false);
        }
        verdict
    }

    fn override_checks(&mut self, at: usize, new_effect: bool) -> Verdict {
        let operation = &self.operations[at];
        let stands = operation.doubt && matches!(operation.kind, Kind::Lookup | Kind::Plain);
        let verdict = self.obstacle(operation).unwrap_or(match new_effect || stands {
            true => Verdict::Accepted,
            false => Verdict::Refused,
        });
        if verdict == Verdict::Accepted {
            let operation = &mut self.operations[at];
            operation.requeue(true);
            operation.generation += u32::from(new_effect);
            operation.first_at = operation.first_at.filter(|_| !new_effect);
        }
        verdict
    }

    fn take(&mut self) {
        self.now += 2;
        for (at, operation) in self.operations.iter_mut().enumerate() {
            let Some(work) = operation.work.as_mut().filter(|work| !work.held) else { continue };
            if self.paused.contains(&operation.kind) {
                continue;
            }
            if work.task == Task::Send
                && operation.kind == Kind::Lookup
                && operation.doubt
                && !operation.waived
            {
                work.task = Task::FindOut;
            }
            work.held = true;
            if work.task == Task::Send {
                operation.first_at.get_or_insert(self.now);
            }
            self.permits.push(Permit { operation: at, task: work.task, began: self.now, live: true });
        }
    }

    fn ask(&mut self, at: usize) -> bool {
        let operation = &mut self.operations[at];
        match operation.work.as_mut() {
            None => operation.work = Some(Work::ASK),
            Some(work) if work.held => return false,
            Some(work) if work.task == Task::Send => (work.task, work.resumes) = (Task::Ask, true),
            Some(_) => {}
        }
        true
    }

    fn resolve(&mut self, at: usize, done: bool) -> bool {
        let operation = &mut self.operations[at];
        if operation.phase != Phase::Parked || operation.letter.is_none() {
            return false;
        }
        if done && operation.work.is_some() {
            return false;
        }
        operation.letter = None;
        if done {
            (operation.phase, operation.doubt) = (Phase::Completed, false);
        }
        true
    }
}
