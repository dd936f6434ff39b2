//! Every kind of commit by name, and the moments around each at which a debug build can be told to
//! die: a crash is worth testing where it can tear something apart.

text_enum! {
    /// What a commit makes durable. No commit is without a name, so that the crash rig, which walks
    /// them all, misses none.
    pub enum Commit {
        /// Settled attempts and admitted sends, of the engine's and of other programs'.
        Turn = "turn",
        /// Attempts whose lease ran out.
        Sweep = "sweep",
        /// Accepted submissions.
        Submissions = "submissions",
        /// A person's action: a replay, an override, a question, a pause.
        Action = "action",
        /// A closed dead letter.
        Resolve = "resolve",
        /// Webhook deliveries that were counted.
        Hooks = "hooks",
        /// What has lapsed, dropped.
        Tidy = "tidy",
        /// A browser's session.
        Session = "session",
        /// Tries at a password, counted.
        Tries = "tries",
        /// A person's account, or their sign-in on record.
        Account = "account",
        /// A one-time link.
        Link = "link",
        /// A token of the API, or its last use; a stored secret, or its key.
        Token = "token",
    }
}

text_enum! {
    /// A moment of a commit.
    pub enum Moment {
        /// Nothing is durable yet.
        Before = "before",
        /// All of it is, and nobody was told.
        After = "after",
    }
}

impl Commit {
    /// In a debug build with `DLO_KILL_POINT=turn.before:3` the process kills itself at its third
    /// passage of that moment: no unwinding, no flush, no farewell, as by `kill -9`.
    #[cfg(debug_assertions)]
    pub(super) fn passes(self, moment: Moment) {
        use std::sync::LazyLock;
        use std::sync::atomic::{AtomicU32, Ordering};

        use rustix::process::{Signal, getpid, kill_process};

        static ARMED: LazyLock<Option<(Commit, Moment, u32)>> =
            LazyLock::new(|| std::env::var("DLO_KILL_POINT").ok().map(|text| armed(&text)));
        static PASSED: AtomicU32 = AtomicU32::new(0);
        let Some((commit, at, nth)) = *ARMED else { return };
        if (commit, at) == (self, moment) && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == nth {
            // It does not return; and should the signal be refused, a run that goes on says nothing false.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }

    /// A release build has no such moments.
    #[cfg(not(debug_assertions))]
    pub(super) fn passes(self, _moment: Moment) {}
}

/// `turn.before:3`. A word that names no moment stops the process: a test that armed it would wait
/// in vain.
#[cfg(debug_assertions)]
fn armed(text: &str) -> (Commit, Moment, u32) {
    let read = || {
        let (point, nth) = text.split_once(':')?;
        let (commit, moment) = point.split_once('.')?;
        Some((commit.parse().ok()?, moment.parse().ok()?, nth.parse().ok()?))
    };
    read().unwrap_or_else(|| panic!("DLO_KILL_POINT={text:?} is not of the form turn.before:3"))
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_as_it_is_written() {
        for commit in Commit::ALL {
            for moment in Moment::ALL {
                assert_eq!(armed(&format!("{commit}.{moment}:12")), (*commit, *moment, 12));
            }
        }
    }

    #[test]
    #[should_panic(expected = "turn.before:3")]
    fn a_misspelt_moment_is_no_moment() {
        armed("turn.befor:3");
    }
}
