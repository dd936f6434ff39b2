//! Carries an erasure out. Whatever quotes the subject goes first: what to look for stands in its
//! operations, and these go last.

use uuid::Uuid;

use super::super::actions::ActionError;
use super::gather::{Gathered, STEP};
use super::quoted::Quoted;
use super::standing::{SAYS, Standing};
use super::{Erased, Subject};
use crate::domain::time::Timestamp;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::erasure::{self, Quoting, Row, Written};
use crate::store::events::{self, EventKind, EventRow};
use crate::store::retention::{self, Task};
use crate::store::{Commit, Tx, actions, operations};

/// Rows that are read at a time.
const ROWS: usize = 500;

/// An erasure, with all that it needs to go on by itself.
pub(super) struct Run {
    pub(super) gate: Gate,
    pub(super) subject: Subject,
    pub(super) actor: String,
    pub(super) action_id: String,
    pub(super) origin: String,
    pub(super) about: String,
    pub(super) why: String,
    pub(super) found: Gathered,
    pub(super) quoted: Quoted,
}

/// How far it is, and when it said so last.
struct Progress {
    erased: Erased,
    said: Timestamp,
}

impl Run {
    pub(super) fn entry(&self, action: &str, detail: String, reason: Option<String>) -> AuditRow {
        AuditRow {
            id: self.gate.ambient().id(),
            at: self.gate.ambient().now(),
            actor: self.actor.clone(),
            action: action.to_owned(),
            operation_id: None,
            dead_letter_id: None,
            subject: Some(self.about.clone()),
            reason,
            result: "done".to_owned(),
            detail,
            origin: self.origin.clone(),
        }
    }

    /// Erases everything; what went.
    pub(super) async fn finish(self) -> Result<String, ActionError> {
        let mut progress = Progress { erased: Erased::default(), said: self.gate.ambient().now() };
        let ended = self.carry_out(&mut progress).await;
        if let Err(error) = &ended {
            tracing::error!(error = error as &dyn std::error::Error, "an erasure broke off");
            let stored = Standing::BrokeOff(progress.erased.to_string()).stored();
            // Without it the erasure is taken for broken off once it was silent for a while.
            if let Err(error) = self.says(&stored).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "nor could that be written down");
            }
        }
        ended
    }

    async fn carry_out(&self, progress: &mut Progress) -> Result<String, ActionError> {
        for of in Written::ALL {
            self.texts(of, progress).await?;
        }
        self.words(progress).await?;
        let mut after = Uuid::nil();
        while let Some(last) = self.step(after, progress).await? {
            after = last;
        }
        self.end(&progress.erased).await
    }

    /// Whether a row quotes the subject and belongs to none of its operations.
    fn is_meant(&self, row: &Quoting) -> bool {
        !row.operation.is_some_and(|id| self.found.holds(id))
            && row.texts().any(|text| self.quoted.stands_in(text))
    }

    /// Takes away what people wrote elsewhere and that quotes the subject.
    async fn texts(&self, of: Written, progress: &mut Progress) -> Result<(), ActionError> {
        let mut after: Option<Row> = None;
        loop {
            let mut tx = self.gate.db().read().await?;
            let rows = erasure::texts(&mut tx, of, after.as_ref(), ROWS).await?;
            tx.undo().await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.row.clone());
            let meant: Vec<&Row> =
                rows.iter().filter(|row| self.is_meant(row)).map(|quoting| &quoting.row).collect();
            if meant.is_empty() {
                self.still(progress).await?;
                continue;
            }
            let mut tx = self.gate.db().begin().await?;
            let mut gone = 0;
            for row in meant {
                gone += usize::from(erasure::take_away(&mut tx, of, row).await?);
            }
            self.commit(tx, progress, Erased { texts: gone, ..Erased::default() }).await?;
        }
    }

    /// Erases the words of the audit's entries that quote the subject. Those that are added from now on,
    /// some of them here, are not looked at.
    async fn words(&self, progress: &mut Progress) -> Result<(), ActionError> {
        let mut tx = self.gate.db().read().await?;
        let last = erasure::last_audit_words(&mut tx).await?;
        tx.undo().await?;
        let Some(last) = last else { return Ok(()) };
        let mut after = Uuid::nil();
        loop {
            let mut tx = self.gate.db().read().await?;
            let entries = erasure::audit_words(&mut tx, after, last, ROWS).await?;
            tx.undo().await?;
            let ids = |row: &Quoting| match row.row {
                Row::Id(id) => Some(id),
                Row::Named(..) => None,
            };
            let Some(seen) = entries.last().and_then(ids) else { return Ok(()) };
            after = seen;
            let meant: Vec<Uuid> = entries.iter().filter(|row| self.is_meant(row)).filter_map(ids).collect();
            if meant.is_empty() {
                self.still(progress).await?;
                continue;
            }
            let mut tx = self.gate.db().begin().await?;
            let entry = self.entry("erase_words", "what quoted somebody who is erased".to_owned(), None);
            let gone = audit::erase_words(&mut tx, &meant, &entry).await?;
            self.commit(tx, progress, Erased { entries: gone, ..Erased::default() }).await?;
        }
    }

    /// Erases the next operations; the last one that was looked at.
    async fn step(&self, after: Uuid, progress: &mut Progress) -> Result<Option<Uuid>, ActionError> {
        let mut tx = self.gate.db().begin().await?;
        let subject = (self.subject.name.as_str(), self.subject.value.as_str());
        let found = erasure::of_subject(&mut tx, subject, after, STEP).await?;
        let Some(last) = found.last().copied() else {
            tx.undo().await?;
            return Ok(None);
        };
        // What was settled since has values that nobody looked for yet.
        let settled: Vec<Uuid> = found.iter().copied().filter(|id| self.found.settled.contains(id)).collect();
        let over = retention::over(&mut tx, Task::Forget, &settled).await?;
        let rows = operations::by_ids(&mut tx, &over).await?;
        let keys: Vec<(Uuid, String)> = rows.into_iter().map(|row| (row.id, row.key)).collect();
        let words = audit::worded(&mut tx, &over).await?;
        retention::erase(&mut tx, &over, &[]).await?;
        erasure::erase(&mut tx, &keys).await?;
        events::insert(&mut tx, &self.told(&over)).await?;
        let mut went = Erased { operations: over.len(), left: found.len() - over.len(), ..Erased::default() };
        if !words.is_empty() {
            let detail = format!("what people wrote about {} operations that were erased", over.len());
            went.entries =
                audit::erase_words(&mut tx, &words, &self.entry("erase_words", detail, None)).await?;
        }
        self.commit(tx, progress, went).await?;
        Ok(Some(last))
    }

    /// What each operation's history says of it.
    fn told(&self, operations: &[Uuid]) -> Vec<EventRow> {
        let now = self.gate.ambient().now();
        let told = operations.iter().map(|id| EventRow {
            id: self.gate.ambient().id(),
            operation_id: *id,
            position: None,
            at: now,
            kind: EventKind::Erased,
            actor: self.actor.clone(),
            detail: format!("What it was about was erased by {}: {}", self.actor, self.why),
        });
        told.collect()
    }

    /// Commits what went, and how far it is with that.
    async fn commit(&self, mut tx: Tx, progress: &mut Progress, went: Erased) -> Result<(), ActionError> {
        let erased = progress.erased.with(went);
        let now = self.gate.ambient().now();
        let stored = Standing::GoingOn(erased.to_string()).stored();
        actions::progress(&mut tx, (&self.actor, &self.action_id), &stored, now).await?;
        tx.commit(Commit::Action).await?;
        *progress = Progress { erased, said: now };
        Ok(())
    }

    /// Says that it goes on, when it has not for a while.
    async fn still(&self, progress: &mut Progress) -> Result<(), ActionError> {
        if self.gate.ambient().now().since(progress.said) < SAYS {
            return Ok(());
        }
        let tx = self.gate.db().begin().await?;
        self.commit(tx, progress, Erased::default()).await
    }

    async fn says(&self, stored: &str) -> Result<(), ActionError> {
        let mut tx = self.gate.db().begin().await?;
        let now = self.gate.ambient().now();
        actions::progress(&mut tx, (&self.actor, &self.action_id), stored, now).await?;
        Ok(tx.commit(Commit::Action).await?)
    }

    /// Empties the database's log, and writes down what went.
    async fn end(&self, erased: &Erased) -> Result<String, ActionError> {
        let mut answer = erased.to_string();
        if !self.gate.db().empty_log().await? {
            answer.push_str(
                "; the database's log holds it until those who read now are done, or until the next restart",
            );
        }
        let mut tx = self.gate.db().begin().await?;
        audit::insert(&mut tx, &self.entry("erased", answer.clone(), None)).await?;
        let now = self.gate.ambient().now();
        let stored = Standing::Ended(answer.clone()).stored();
        actions::progress(&mut tx, (&self.actor, &self.action_id), &stored, now).await?;
        tx.commit(Commit::Action).await?;
        Ok(answer)
    }
}
