//! One operation as it must be, and what becomes of it.

use super::{ATTEMPTS, End, Kind, LEASE, Permit, Phase, TIMEOUT, Task};

/// A row of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) task: Task,
    /// A send waits behind the question.
    pub(super) resumes: bool,
    pub(super) held: bool,
}

impl Work {
    pub(super) const SEND: Self = Self { task: Task::Send, resumes: false, held: false };
    pub(super) const FIND_OUT: Self = Self { task: Task::FindOut, resumes: false, held: false };
    pub(super) const ASK: Self = Self { task: Task::Ask, resumes: false, held: false };
}

#[derive(Clone, Debug)]
pub(in crate::ledger) struct Operation {
    pub(in crate::ledger) kind: Kind,
    pub(super) phase: Phase,
    pub(super) work: Option<Work>,
    /// Something that was sent may have happened.
    pub(super) doubt: bool,
    /// When the last send began that ended so.
    pub(super) doubt_at: Option<u64>,
    /// When the first began under this key.
    pub(super) first_at: Option<u64>,
    pub(super) attempts: u32,
    pub(super) tries: u32,
    pub(super) doubts: u32,
    pub(super) generation: u32,
    pub(super) waived: bool,
    /// Its live dead letter says that it may have happened.
    pub(super) letter: Option<bool>,
}

impl Operation {
    pub(super) fn new(kind: Kind) -> Self {
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
    pub(in crate::ledger) fn line(&self) -> String {
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
            // A person closed it meanwhile, or before they asked: their word stands.
            if task == Task::Ask && !resumes && self.letter.is_none() {
                self.work = None;
                return;
            }
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

    pub(super) fn ended(&mut self, permit: Permit, end: End) {
        match permit.task {
            Task::Send => self.sent(end, permit.began),
            task => self.told(task, end, permit.began),
        }
    }

    pub(super) fn requeue(&mut self, waived: bool) {
        (self.phase, self.work, self.waived) = (Phase::Going, Some(Work::SEND), waived);
        (self.tries, self.doubts) = (0, 0);
    }
}
