//! The thread of evidence as far as a page shows it: the beginning and the end of a history that
//! may be thousands of records long, and what tells how the operation stands.

use std::collections::HashSet;

use uuid::Uuid;

use super::thread::Thread;
use crate::store::history::{self, Place, rank};
use crate::store::{StoreError, Tx, operations};

/// A history of so many records is shown whole.
const WHOLE: i64 = 40;
/// Of a longer one, so many from its beginning.
const HEAD: i64 = 3;
/// And so many from its end.
const TAIL: i64 = 20;
/// So many in the middle at a time.
const MIDDLE: i64 = 40;

/// How much of an answer's body is read where few are shown, in characters.
const ROOMY: i64 = 20_000;
/// And where many are.
const NARROW: i64 = 1_200;
/// Up to so many records are few.
const FEW: usize = 8;

/// A stretch of an operation's history, in a thread that holds nothing else of it but what tells
/// how the operation stands.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// What was read.
    pub thread: Thread,
    /// Which of its records the stretch is made of.
    shown: HashSet<(i64, Uuid)>,
    /// The stretch begins with the operation's own beginning.
    pub begins: bool,
    /// Where records are left out, and how many.
    pub gaps: Vec<Gap>,
    /// How much was read of each answer's body, in characters.
    pub most_body: usize,
}

/// Records that are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The record that follows them; absent where they are the last.
    pub before: Option<Place>,
    /// How many.
    pub records: i64,
}

impl Excerpt {
    /// The beginning and the end; or what stands before a place. Absent when there is no such
    /// operation.
    pub async fn load(tx: &mut Tx, id: Uuid, before: Option<Place>) -> Result<Option<Self>, StoreError> {
        let Some(operation) = operations::by_id(tx, id).await? else { return Ok(None) };
        let total = history::count(tx, id).await?;
        let mut gaps = Vec::new();
        let mut gap = |before: Option<&Place>, records: i64| {
            if records > 0 {
                gaps.push(Gap { before: before.copied(), records });
            }
        };
        let (places, begins) = match before {
            None if total <= WHOLE => (history::last(tx, id, None, WHOLE).await?, true),
            None => {
                let mut places = history::first(tx, id, HEAD).await?;
                let tail = history::last(tx, id, None, TAIL).await?;
                gap(tail.first(), total - HEAD - TAIL);
                places.extend(tail);
                (places, true)
            }
            Some(end) => {
                let places = history::last(tx, id, Some(end), MIDDLE).await?;
                let earlier = match places.first() {
                    Some(first) => history::count_before(tx, id, *first).await?,
                    None => 0,
                };
                gap(places.first(), earlier);
                gap(None, total - earlier - i64::try_from(places.len()).unwrap_or(0));
                (places, earlier == 0)
            }
        };
        let tries = places.iter().filter(|place| place.rank == rank::ATTEMPT).count();
        let most_body = if tries <= FEW { ROOMY } else { NARROW };
        let records = history::records(tx, id, &places, most_body).await?;
        let thread = Thread {
            operation,
            steps: operations::steps(tx, &[id]).await?,
            search: operations::search_values(tx, &[id]).await?,
            payload: operations::payload(tx, id).await?,
            requests: operations::requests(tx, id).await?,
            attempts: records.attempts,
            events: records.events,
            audit: records.audit,
            letters: records.letters,
        };
        Ok(Some(Self {
            thread,
            shown: places.iter().map(|place| (place.rank, place.id)).collect(),
            begins,
            gaps,
            most_body: usize::try_from(most_body).unwrap_or(usize::MAX),
        }))
    }

    /// Whether a record belongs to the stretch.
    pub fn shows(&self, rank: i64, id: Uuid) -> bool {
        self.shown.contains(&(rank, id))
    }
}
