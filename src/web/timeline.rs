//! The thread of evidence: everything that happened to one operation, oldest first.

use super::view::{Button, Long, Reference, When};
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::lookup::Finding as Known;
use crate::domain::operation::StepState;

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Unique on the page: an address inside it.
    pub anchor: String,
    /// When it happened.
    pub at: When,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum What {
    /// The operation was accepted.
    Received {
        /// "Handed in by token:shop" and the like.
        text: String,
    },
    /// A request went out, or was about to.
    Attempt(Box<Attempt>),
    /// The destination was asked.
    Finding(Box<Finding>),
    /// A person did something.
    Action {
        /// Who.
        by: String,
        /// "asked for a replay".
        text: String,
        /// In their words.
        reason: Option<Long>,
    },
    /// A person wrote something down.
    Note {
        /// Who.
        by: String,
        /// In their words.
        text: Long,
    },
    /// Records that this page leaves out.
    Gap {
        /// "1,970 earlier records are not shown."
        text: String,
        /// "Show them".
        act: &'static str,
        /// Where they are.
        href: String,
    },
    /// Everything else: parked, closed, lease lost, late answer.
    Event {
        /// In a sentence.
        text: String,
    },
}

/// One try.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// "2".
    pub number: String,
    /// The step's name.
    pub step: String,
    /// Where it went.
    pub destination: String,
    /// Why it was made.
    pub cause: Cause,
    /// Who asked for it.
    pub by: String,
    /// What is known after it.
    pub outcome: Outcome,
    /// The outcome in a sentence.
    pub sentence: String,
    /// How long the exchange took: "10 s".
    pub took: Option<String>,
    /// "503 Service Unavailable", or the error when no answer came.
    pub headline: Option<Long>,
    /// The id over there.
    pub reference: Option<Reference>,
    /// "Second key of this step" when it was not the first.
    pub generation: Option<String>,
    /// What was sent; absent when nothing was, or when it has been erased.
    pub sent: Option<Request>,
    /// What came back.
    pub came_back: Option<Answer>,
    /// How long the wait that follows is, and why it is as long as it is.
    pub wait: Option<String>,
}

impl Attempt {
    /// Whoever asked for it, when it was not the engine's own schedule.
    pub fn asked_by(&self) -> Option<&str> {
        (self.cause != Cause::Automatic).then_some(self.by.as_str())
    }
}

/// One answer to our question what the destination knows.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Its word; absent while it has not answered.
    pub finding: Option<Known>,
    /// What it answered and what that settles, in a sentence.
    pub sentence: String,
    /// The id that was found.
    pub reference: Option<Reference>,
    /// Whoever asked.
    pub by: String,
    /// What we asked.
    pub sent: Option<Request>,
    /// What came back.
    pub came_back: Option<Answer>,
}

/// What was sent, or will be.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST`
    pub method: String,
    /// Absolute.
    pub url: String,
    /// Without credentials.
    pub headers: Vec<(String, String)>,
    /// Masked where the type says so.
    pub body: Option<Long>,
    /// Why some of it is hidden, and what would show it.
    pub masked: Option<String>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// "503 Service Unavailable".
    pub status: Option<String>,
    /// Without credentials.
    pub headers: Vec<(String, String)>,
    /// As far as it is kept, or shown.
    pub body: Long,
    /// How much of it is shown, where that is not all that is kept.
    pub preview: Option<String>,
    /// It went on past what is kept, or its end never arrived.
    pub cut: bool,
    /// Why some of it is hidden, and what would show it.
    pub masked: Option<String>,
    /// Fetches the body as it came; absent where there is none.
    pub whole: Option<Button>,
}

/// One box in the row of steps.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Where it goes.
    pub destination: String,
    /// What is known of it.
    pub state: StepState,
    /// The id over there.
    pub reference: Option<Reference>,
    /// "3 attempts".
    pub attempts: String,
    /// The one that this dead letter is about.
    pub here: bool,
}
