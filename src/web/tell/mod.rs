//! Turns what is stored into what a page says: sentences, the card, the timeline, requests, facts.
//! Everything that a page of evidence shows of foreign text goes through [`mask`].

pub mod act;
pub mod card;
pub mod chain;
pub mod change;
pub mod facts;
pub mod fields;
pub mod list;
pub mod mask;
mod pretty;
pub mod request;
pub mod sentence;
pub mod timeline;

use crate::config::{Config, Destination, OperationType};
use crate::domain::actor::{Right, Standing};
use crate::domain::time::Timestamp;
use crate::domain::zone::Zone;
use crate::engine::thread::Thread;
use crate::store::operations::StepRow;
use crate::web::labels;
use crate::web::view::{Button, Seen};
use mask::Mask;

/// One operation's thread, and what it takes to tell it to somebody at some moment.
pub struct Tale<'a> {
    /// What destinations promise, and what types say.
    pub config: &'a Config,
    /// Everything that is known.
    pub thread: &'a Thread,
    /// The moment at which it is told.
    pub now: Timestamp,
    /// The zone of whoever it is told to.
    pub zone: Zone,
    /// To whom.
    pub role: &'a Standing,
    /// What must not be shown.
    pub mask: Mask,
}

impl<'a> Tale<'a> {
    /// Of a thread.
    pub fn new(config: &'a Config, thread: &'a Thread, seen: Seen, role: &'a Standing) -> Self {
        let Seen { now, zone } = seen;
        let mask = Mask::of(config, &thread.operation.kind, thread.payload.as_deref());
        Self { config, thread, now, zone, role, mask }
    }

    /// The same with nothing hidden: for a reader who may see it and asked for it.
    #[must_use]
    pub fn unmasked(self) -> Self {
        Self { mask: Mask::default(), ..self }
    }

    /// From when and where it is looked at.
    pub fn seen(&self) -> Seen {
        Seen { now: self.now, zone: self.zone }
    }

    /// A form that hands out as a file what may be private, and says how much of it; or the right
    /// that it takes.
    pub fn file(&self, words: &str, href: String, csrf: &str) -> Button {
        if !self.role.may(Right::ViewPayload) {
            return Button::locked(format!("{words} whole"), labels::lacks(Right::ViewPayload, self.role));
        }
        let how = if self.mask.hides_something() { ", private values hidden" } else { " whole" };
        Button::act(format!("{words}{how}"), href, vec![("csrf", csrf.to_owned())])
    }

    /// Its type, while that is still configured.
    pub fn kind(&self) -> Option<&'a OperationType> {
        self.config.operations.get(&self.thread.operation.kind)
    }

    /// A destination, while it is still configured.
    pub fn destination(&self, name: &str) -> Option<&'a Destination> {
        self.config.destinations.get(name)
    }

    /// The step at a place.
    pub fn step(&self, position: i64) -> Option<&'a StepRow> {
        self.thread.steps.iter().find(|step| step.position == position)
    }

    /// "order 10443 · customer C-7".
    pub fn ids(&self) -> String {
        list::ids(&self.thread.search, &self.mask)
    }

    /// What to call it in a heading: its business ids, or its key.
    pub fn name(&self) -> String {
        let ids = self.ids();
        if ids.is_empty() { self.mask.text(&self.thread.operation.key) } else { ids }
    }
}
