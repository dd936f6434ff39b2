//! What must be: operations of one step each, without a database, a request or a clock of their own.

use proptest::prelude::*;
use proptest::sample::select;
use proptest_state_machine::ReferenceStateMachine;

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

const ENDS: [End; 5] = [End::Yes, End::No, End::Unsent, End::Throttled, End::Lost];

/// Something that is done to the ledger. Indices count from the first, and wrap.
#[derive(Clone, Debug)]
pub(super) enum Move {
    Submit(Kind),
    /// The same submission again.
    Repeat(usize),
    /// Everything due is taken, a first part of it with so few slots.
    Take(usize),
    /// A permit comes back, in time or late.
    Settle(usize, End),
    /// All leases run out and are swept.
    Lapse,
    /// Time passes until an absence counts.
    Wait,
    Replay(usize),
    SameKey(usize),
    NewEffect(usize),
    /// A person closes the dead letter: true says that it was done.
    Resolve(usize, bool),
    Ask(usize),
    Pause(Kind),
    Resume(Kind),
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

/// A row of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    task: Task,
    /// A send waits behind the question.
    resumes: bool,
    held: bool,
}

impl Work {
    const SEND: Self = Self { task: Task::Send, resumes: false, held: false };
    const FIND_OUT: Self = Self { task: Task::FindOut, resumes: false, held: false };
    const ASK: Self = Self { task: Task::Ask, resumes: false, held: false };
}

#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub(super) kind: Kind,
    phase: Phase,
    work: Option<Work>,
    /// Something that was sent may have happened.
    doubt: bool,
    /// When the last send began that ended so.
    doubt_at: Option<u64>,
    /// When the first began under this key.
    first_at: Option<u64>,
    attempts: u32,
    tries: u32,
    doubts: u32,
    generation: u32,
    waived: bool,
    /// Its live dead letter says that it may have happened.
    letter: Option<bool>,
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

impl Operation {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            phase: Phase::Going,
            work: Some(Work::SEND),
            doubt: false,
            doubt_at: None,
            first_at: None,
            attempts: 0,
            tries: 0,
            doubts: 0,
            generation: 1,
            waived: false,
            letter: None,
        }
    }

    /// As the ledger tells it.
    pub(super) fn line(&self) -> String {
        let state = match (self.phase, self.doubt) {
            (Phase::Completed, _) => "completed",
            (_, true) => "uncertain",
            (Phase::Going, false) => "pending",
            (Phase::Parked, false) => "failed",
        };
        let work = self.work.map_or("-".to_owned(), |work| {
            let task = match work.task {
                Task::Send => "send",
                Task::FindOut => "find_out",
                Task::Ask => "ask",
            };
            format!("{task}:{}", if work.held { "held" } else { "free" })
        });
        let letter = self.letter.map_or("-".to_owned(), |doubt| {
            let status = if self.phase == Phase::Parked { "open" } else { "replaying" };
            format!("{status}:{}", if doubt { "may_have_completed" } else { "definitely_failed" })
        });
        format!("{} {state} {} {} {work} {letter}", self.kind.name(), self.attempts, self.generation)
    }

    fn complete(&mut self) {
        (self.phase, self.doubt, self.letter) = (Phase::Completed, false, None);
        self.work = None;
    }

    fn park(&mut self) {
        (self.phase, self.letter, self.work) = (Phase::Parked, Some(self.doubt), None);
        self.waived = false;
    }

    /// A send ended.
    fn sent(&mut self, end: End, began: u64) {
        self.attempts += 1;
        if end == End::Yes {
            return self.complete();
        }
        if end == End::Lost {
            (self.doubt, self.doubt_at) = (true, Some(began));
            self.doubts += 1;
        }
        if !matches!(end, End::Unsent | End::Throttled) {
            self.waived = false;
        }
        self.tries += u32::from(end != End::Throttled);
        let may = match self.kind {
            Kind::Upsert => true,
            Kind::Keyed => self.doubts <= 3,
            Kind::Lookup | Kind::Plain => false,
        };
        if end == End::No {
            self.park();
        } else if self.doubt && self.kind == Kind::Lookup {
            self.work = Some(Work::FIND_OUT);
        } else if self.doubt && !may || self.tries >= ATTEMPTS {
            self.park();
        } else {
            self.work = Some(Work::SEND);
        }
    }

    /// A question ended.
    fn told(&mut self, task: Task, end: End, began: u64) {
        let resumes = self.work.is_some_and(|work| work.resumes);
        if self.phase == Phase::Completed {
            self.work = None;
            return;
        }
        if end == End::Yes {
            return self.complete();
        }
        let counts = self.doubt_at.or(self.first_at).is_none_or(|sent| began >= sent + LEASE + TIMEOUT);
        let absent = end == End::No && counts;
        // What went out under an earlier key is not asked about under this one.
        let proved = absent && self.generation == 1;
        let unproved = absent && self.doubt && !proved;
        if absent && !unproved {
            self.doubt = false;
        }
        match task {
            Task::Ask if resumes => self.work = Some(Work::SEND),
            Task::Ask | Task::Send => {
                self.work = None;
                if absent && !unproved {
                    self.letter = self.letter.map(|_| false);
                }
            }
            Task::FindOut if unproved || absent && self.tries >= ATTEMPTS => self.park(),
            Task::FindOut if absent => self.work = Some(Work::SEND),
            Task::FindOut => self.work = Some(Work::FIND_OUT),
        }
    }

    fn ended(&mut self, permit: Permit, end: End) {
        match permit.task {
            Task::Send => self.sent(end, permit.began),
            task => self.told(task, end, permit.began),
        }
    }

    fn requeue(&mut self, waived: bool) {
        (self.phase, self.work, self.waived) = (Phase::Going, Some(Work::SEND), waived);
        (self.tries, self.doubts) = (0, 0);
    }
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

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Move;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }

    fn transitions(model: &Self) -> BoxedStrategy<Move> {
        // Mostly one of those that it is meant for.
        let which = |meant: fn(&Operation) -> bool| {
            let all = model.operations.iter().enumerate();
            let some: Vec<usize> = all.filter(|(_, operation)| meant(operation)).map(|(at, _)| at).collect();
            if some.is_empty() {
                (0..64_usize).boxed()
            } else {
                prop_oneof![4 => select(some), 1 => 0..64_usize].boxed()
            }
        };
        let parked = |operation: &Operation| operation.phase == Phase::Parked;
        let open = |operation: &Operation| operation.phase == Phase::Parked && operation.letter.is_some();
        let askable = |operation: &Operation| operation.kind == Kind::Lookup;
        // Few operations that much happens to tell more than many that little does.
        let submit = if model.operations.len() < 3 { 6 } else { 1 };
        prop_oneof![
            submit => prop_oneof![1 => select(&KINDS[..]), 1 => Just(Kind::Lookup)].prop_map(Move::Submit),
            1 => which(|_| true).prop_map(Move::Repeat),
            5 => (1..5_usize).prop_map(Move::Take),
            8 => (0..64_usize, select(&ENDS[..])).prop_map(|(which, end)| Move::Settle(which, end)),
            2 => Just(Move::Lapse),
            2 => Just(Move::Wait),
            2 => which(parked).prop_map(Move::Replay),
            2 => which(parked).prop_map(Move::SameKey),
            2 => which(parked).prop_map(Move::NewEffect),
            2 => (which(open), any::<bool>()).prop_map(|(which, done)| Move::Resolve(which, done)),
            3 => which(askable).prop_map(Move::Ask),
            1 => select(&KINDS[..]).prop_map(Move::Pause),
            2 => select(&KINDS[..]).prop_map(Move::Resume),
        ]
        .boxed()
    }

    fn apply(mut model: Self, step: &Move) -> Self {
        (model.counted, model.verdict) = (false, None);
        match *step {
            Move::Submit(kind) => model.operations.push(Operation::new(kind)),
            Move::Repeat(_) => {}
            Move::Take(_) => model.take(),
            Move::Settle(which, end) => {
                let Some(which) = model.permit(which) else { return model };
                let permit = model.permits.remove(which);
                model.counted = permit.live;
                if permit.live {
                    model.operations[permit.operation].ended(permit, end);
                }
            }
            Move::Lapse => {
                model.now += LEASE + 1;
                for permit in model.permits.iter_mut().filter(|permit| permit.live) {
                    permit.live = false;
                    model.operations[permit.operation].ended(*permit, End::Lost);
                }
            }
            // Whoever holds a lease has to let go before it runs out.
            Move::Wait if model.anybody_holds() => {}
            Move::Wait => model.now += LEASE + TIMEOUT,
            Move::Replay(which) => {
                model.verdict = model.at(which).map(|at| model.replay(at));
            }
            Move::SameKey(which) => {
                model.verdict = model.at(which).map(|at| model.override_checks(at, false));
            }
            Move::NewEffect(which) => {
                model.verdict = model.at(which).map(|at| model.override_checks(at, true));
            }
            Move::Resolve(which, done) => {
                model.counted = model.at(which).is_some_and(|at| model.resolve(at, done));
            }
            Move::Ask(which) => {
                let at = model.at(which).filter(|at| model.operations[*at].kind == Kind::Lookup);
                model.counted = at.is_some_and(|at| model.ask(at));
            }
            Move::Pause(kind) if !model.paused.contains(&kind) => model.paused.push(kind),
            Move::Pause(_) => {}
            Move::Resume(kind) => model.paused.retain(|paused| *paused != kind),
        }
        model
    }
}
