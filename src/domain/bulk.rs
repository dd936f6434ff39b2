//! Acting on many dead letters at once: what is done, where it stands, and what became of each.

use super::actor::Right;
use super::words;

text_enum! {
    /// What is done to each member.
    pub enum BulkAction {
        /// Tried again, through every check.
        Replay = "replay",
        /// Closed.
        Resolve = "resolve",
        /// Handed to somebody.
        Assign = "assign",
        /// Its destination is asked what it knows.
        Lookup = "lookup",
    }
}

impl BulkAction {
    /// The right that it takes besides the one to act on many at once: the same as for one alone.
    pub const fn right(self) -> Right {
        match self {
            Self::Replay | Self::Lookup => Right::Replay,
            Self::Resolve | Self::Assign => Right::Resolve,
        }
    }
}

text_enum! {
    /// Where a bulk action stands. That it is paused is another matter.
    pub enum BulkState {
        /// Its members are frozen, and nothing was done to any.
        Preview = "preview",
        /// The first few are acted on.
        Canary = "canary",
        /// The first few are out: a person looks at what became of them before the others follow.
        Confirm = "confirm",
        /// The others are acted on, or what became of them is not known yet.
        Running = "running",
        /// What became of each is known.
        Ended = "ended",
        /// A person ended it: members that were waiting are left alone.
        Cancelled = "cancelled",
    }
}

impl BulkState {
    /// Members are taken up, unless it is paused.
    pub const fn acts(self) -> bool {
        matches!(self, Self::Canary | Self::Running)
    }

    /// Nothing more will be done to its members.
    pub const fn over(self) -> bool {
        matches!(self, Self::Ended | Self::Cancelled)
    }
}

text_enum! {
    /// A person's word that sets a bulk action going.
    pub enum Step {
        /// The first word.
        Start = "start",
        /// What became of the first few is in order: the others may follow.
        Confirm = "confirm",
        /// It was paused.
        Resume = "resume",
    }
}

text_enum! {
    /// What became of a member.
    pub enum MemberState {
        /// Nothing was done to it.
        Waiting = "waiting",
        /// It is in the queue or under way, and what becomes of it is not known yet.
        Sent = "sent",
        /// The destination confirmed it.
        Confirmed = "confirmed",
        /// It failed again, and is a dead letter as before.
        Failed = "failed",
        /// It was sent; then a person closed it, before anything was confirmed.
        Closed = "closed",
        /// It is closed, or handed over, or the destination answered.
        Done = "done",
        /// There was nothing left to do.
        AlreadyDone = "already_done",
        /// A check or a state stood in the way: nothing was done.
        Refused = "refused",
    }
}

impl MemberState {
    /// Worth acting on again.
    pub const AGAIN: [Self; 2] = [Self::Failed, Self::Refused];
}

/// How many members are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress([usize; MemberState::ALL.len()]);

impl Progress {
    /// Adds members to a state.
    pub fn add(&mut self, state: MemberState, members: usize) {
        self.0[state as usize] += members;
    }

    /// Members in a state.
    pub const fn of(&self, state: MemberState) -> usize {
        self.0[state as usize]
    }

    /// All of them.
    pub fn members(&self) -> usize {
        self.0.iter().sum()
    }

    /// Those of which it is known what became of them.
    pub fn settled(&self) -> usize {
        self.members() - self.of(MemberState::Waiting) - self.of(MemberState::Sent)
    }

    /// Those that are worth acting on again.
    pub fn again(&self) -> usize {
        MemberState::AGAIN.iter().map(|state| self.of(*state)).sum()
    }

    /// "3,120 sent · 3,004 confirmed · 61 already done · 12 refused · 43 waiting".
    pub fn words(&self, action: BulkAction) -> String {
        let parts = self.parts(action).into_iter();
        parts
            .map(|(members, said)| format!("{} {said}", words::grouped(members)))
            .collect::<Vec<_>>()
            .join(" \u{b7} ")
    }

    /// Each number with its words, those of nobody left out; what was sent counts as sent whatever
    /// came of it.
    pub fn parts(&self, action: BulkAction) -> Vec<(usize, &'static str)> {
        use MemberState as S;
        let of = |state| self.of(state);
        let went = of(S::Sent) + of(S::Confirmed) + of(S::Failed) + of(S::Closed);
        let parts = match action {
            BulkAction::Replay => [
                (went, "sent"),
                (of(S::Confirmed), "confirmed"),
                (of(S::Failed), "failed again"),
                (of(S::Closed), "closed by a person meanwhile"),
                (of(S::Sent), "not yet answered"),
            ],
            BulkAction::Lookup => [
                (went + of(S::Done), "asked"),
                (of(S::Done), "answered"),
                (of(S::Failed), "never asked after all"),
                (of(S::Closed), "closed by a person meanwhile"),
                (of(S::Sent), "not yet answered"),
            ],
            BulkAction::Resolve => [(of(S::Done), "closed"), (0, ""), (0, ""), (0, ""), (0, "")],
            BulkAction::Assign => [(of(S::Done), "assigned"), (0, ""), (0, ""), (0, ""), (0, "")],
        };
        let others =
            [(of(S::AlreadyDone), "already done"), (of(S::Refused), "refused"), (of(S::Waiting), "waiting")];
        parts.into_iter().chain(others).filter(|(members, _)| *members > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(action: BulkAction, counts: &[(MemberState, usize)]) -> String {
        let mut progress = Progress::default();
        for (state, members) in counts {
            progress.add(*state, *members);
        }
        progress.words(action)
    }

    #[test]
    fn what_was_sent_stays_sent_whatever_came_of_it() {
        use MemberState as S;
        let counts = [(S::Sent, 4), (S::Confirmed, 90), (S::Failed, 6), (S::AlreadyDone, 2), (S::Refused, 1)];
        let wanted =
            "100 sent · 90 confirmed · 6 failed again · 4 not yet answered · 2 already done · 1 refused";
        assert_eq!(said(BulkAction::Replay, &counts), wanted);
        assert_eq!(said(BulkAction::Resolve, &[(S::Done, 3), (S::Waiting, 2)]), "3 closed · 2 waiting");
        assert_eq!(
            said(BulkAction::Lookup, &[(S::Done, 3), (S::Sent, 2)]),
            "5 asked · 3 answered · 2 not yet answered"
        );
    }

    #[test]
    fn sums_agree() {
        let mut progress = Progress::default();
        for state in MemberState::ALL {
            progress.add(*state, 2);
        }
        assert_eq!((progress.members(), progress.settled(), progress.again()), (16, 12, 4));
    }
}
