//! Steps that other programs carry out: they take them, say that they are still at it, and say what
//! became of them, through the same checks and the same ledger as the engine's own sends.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::admit::{self, Holder};
use super::permit::{Claim, Held, Permit, Settlement};
use super::{Admission, Gate, GateError, lanes, ledger, settle};
use crate::config::worker_lane;
use crate::domain::attempt::Outcome;
use crate::domain::classify::Event;
use crate::domain::time::Timestamp;
use crate::store::events::{self, EventKind, EventRow};
use crate::store::work::{self, NewWork, Room};
use crate::store::{Commit, attempts, destinations, operations};

/// What became of a program's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It counts.
    Counted,
    /// The same was said before, and counted then.
    Repeated,
    /// The claim was lost before: it is kept as evidence and changes nothing.
    TooLate,
    /// The claim has another fence: whoever says this mixed something up, and the refusal is on
    /// record, and nothing was changed.
    OtherFence,
    /// Nobody of that name holds such a claim.
    Unknown,
}

impl Gate {
    /// Takes up to `most` steps of these types for a program, each for `lease` without a word.
    pub async fn claim(
        &self,
        kinds: &[String],
        most: usize,
        by: &str,
        lease: Duration,
    ) -> Result<Vec<Claim>, GateError> {
        let began = Instant::now();
        let now = self.ambient.now();
        let lane = |kind: &String| Room { lane: worker_lane(kind), most };
        let rooms: Vec<Room> = kinds.iter().map(lane).collect();
        // Most programs ask in vain most of the time, and asking must not keep writers waiting.
        let mut tx = self.db.read().await?;
        let names: Vec<&str> = rooms.iter().map(|room| room.lane.as_str()).collect();
        let due = work::next_due(&mut tx, &names).await?;
        drop(tx);
        if due.iter().all(|(_, at)| *at > now) {
            return Ok(Vec::new());
        }
        let mut tx = self.db.begin().await?;
        // One paused destination does not hold up the other steps of a type.
        let known = destinations::all(&mut tx).await?;
        let paused: Vec<String> =
            known.into_iter().filter(|row| row.paused_at.is_some()).map(|row| row.name).collect();
        let rows = lanes::pick(work::due(&mut tx, now, &rooms, &paused).await?, most);
        let admissions = admit::admit(self, &mut tx, rows, Holder { node: by, lease, began }).await?;
        tx.commit(Commit::Turn).await?;
        Ok(admissions.into_iter().filter_map(Admission::into_permit).map(Permit::hand_out).collect())
    }

    /// Lets a program keep a step for `lease` from now; until when, or nothing when it does not hold
    /// it any more.
    pub async fn extend(
        &self,
        attempt: Uuid,
        fence: i64,
        by: &str,
        lease: Duration,
    ) -> Result<Option<Timestamp>, GateError> {
        let until = self.ambient.now().plus(lease);
        let mut tx = self.db.begin().await?;
        let known = attempts::by_id(&mut tx, attempt).await?;
        let own = known.is_some_and(|row| row.fence == fence && row.node == by);
        if !own || !ledger::extend(&mut tx, attempt, fence, until).await? {
            return Ok(None);
        }
        tx.commit(Commit::Turn).await?;
        Ok(Some(until))
    }

    /// Takes a program's word on a step that it holds.
    pub async fn report(
        &self,
        attempt: Uuid,
        fence: i64,
        by: &str,
        event: Event,
        outcome: Outcome,
    ) -> Result<Heard, GateError> {
        let now = self.ambient.now();
        let mut tx = self.db.begin().await?;
        let Some(row) = attempts::by_id(&mut tx, attempt).await? else { return Ok(Heard::Unknown) };
        // Its row of work is taken first, as a turn does; then the attempt is read as it stands.
        let work = work::one(&mut tx, row.operation_id).await?;
        let Some(row) = attempts::by_id(&mut tx, attempt).await?.filter(|row| row.node == by) else {
            return Ok(Heard::Unknown);
        };
        if row.fence != fence {
            let refused = EventRow {
                id: self.ambient.id(),
                operation_id: row.operation_id,
                position: Some(row.position),
                at: now,
                kind: EventKind::OtherFence,
                actor: by.to_owned(),
                detail: format!("A word on attempt {} under another fence was refused.", row.number),
            };
            events::insert(&mut tx, &[refused]).await?;
            tx.commit(Commit::Turn).await?;
            return Ok(Heard::OtherFence);
        }
        // Its answer was lost, so that it says it again.
        if row.outcome == outcome {
            // The row of work was held to read this: the next step's is the same row.
            tx.undo().await?;
            return Ok(Heard::Repeated);
        }
        let work = match work {
            Some(work) if work.attempt_id == Some(attempt) => work,
            // Its lease ran out, and somebody or nobody has the step now: what it says is evidence.
            _ => {
                let Some(operation) = operations::by_id(&mut tx, row.operation_id).await? else {
                    return Ok(Heard::Unknown);
                };
                let asked = NewWork::evidence(operation.id, now);
                let Some(facts) = work::as_if(&mut tx, &asked).await? else { return Ok(Heard::Unknown) };
                facts
            }
        };
        let held = Held { attempt, fence, ..Held::out_of_hand(work, now) };
        let ended = [Settlement { held: Box::new(held), event, at: now }];
        let (counted, _) = settle::settle(self, &mut tx, &ended).await?;
        work::announce(&mut tx).await?;
        tx.commit(Commit::Turn).await?;
        Ok(if counted == 1 { Heard::Counted } else { Heard::TooLate })
    }
}
