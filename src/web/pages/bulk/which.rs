//! Which dead letters are meant, as a list's form or a link says it, and in words.

use uuid::Uuid;

use crate::domain::filter::DeadLetterFilter;
use crate::domain::time::Timestamp;
use crate::engine::bulk::{Members, chosen};
use crate::store::{StoreError, Tx, causes, dead_letters as stored};
use crate::web::failure::Failure;
use crate::web::guard::{Fields, Signed};
use crate::web::pages::dead_letters::{Asked, MOST_CAUSES, link};
use crate::web::view::Seen;

/// What was chosen.
pub(super) enum Which {
    /// All that match, as the list's page reads its address.
    All(DeadLetterFilter),
    /// The rows that were ticked.
    Ticked(Vec<Uuid>),
    /// Neither.
    Nothing,
}

impl Which {
    /// From an address: `all=1` makes the filter count, and ids without it.
    pub(super) fn read(given: &[(String, String)], who: &Signed) -> Result<Self, Failure> {
        let all = given.iter().any(|(name, value)| name == "all" && !value.trim().is_empty());
        if all {
            return Ok(Self::All(Asked::read(given, &who.user.name, who.now)?.filter));
        }
        let ids = given.iter().filter(|(name, _)| name == "id").map(|(_, value)| value.as_str());
        Self::ticked(ids)
    }

    /// From the form that froze it: what was on its page.
    pub(super) fn posted(fields: &Fields, now: Timestamp) -> Result<Self, Failure> {
        match fields.get("filter") {
            "" => Self::ticked(fields.get("ids").split_ascii_whitespace()),
            query => Ok(Self::All(chosen::read(query, now)?)),
        }
    }

    fn ticked<'a>(ids: impl Iterator<Item = &'a str>) -> Result<Self, Failure> {
        let ids: Result<Vec<Uuid>, _> = ids.map(str::parse).collect();
        let mut ids = ids.map_err(|_| Failure::BadAddress("One of the ids is none.".to_owned()))?;
        ids.sort_unstable();
        ids.dedup();
        Ok(if ids.is_empty() { Self::Nothing } else { Self::Ticked(ids) })
    }

    /// As the form repeats it: the filter's query string, and the ids.
    pub(super) fn fields(&self) -> (String, String) {
        match self {
            Self::All(filter) => (chosen::written(filter), String::new()),
            Self::Ticked(ids) => {
                let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
                (String::new(), ids.join(" "))
            }
            Self::Nothing => Default::default(),
        }
    }

    /// The list that shows them.
    pub(super) fn list(&self) -> String {
        match self {
            Self::All(filter) => link(filter),
            Self::Ticked(_) | Self::Nothing => "/dead-letters".to_owned(),
        }
    }

    /// How many are meant at this moment.
    pub(super) async fn count(&self, tx: &mut Tx) -> Result<usize, StoreError> {
        Ok(match self {
            Self::All(filter) => usize::try_from(stored::count(tx, filter, i64::MAX).await?).unwrap_or(0),
            Self::Ticked(ids) => ids.len(),
            Self::Nothing => 0,
        })
    }

    /// Why nothing can be made of it.
    pub(super) fn shut(&self) -> Option<&'static str> {
        match self {
            Self::All(filter) if !chosen::narrows(filter) => Some(
                "Choose a filter first: without one this would be about everything that is open. Filter the list \
                 by cause, destination, type or text, then tick \u{201c}all that match\u{201d}.",
            ),
            Self::All(_) | Self::Ticked(_) => None,
            Self::Nothing => {
                Some("Nothing is chosen: tick some dead letters in the list, or all that match.")
            }
        }
    }

    pub(super) fn members(self) -> Members {
        match self {
            Self::All(filter) => Members::All(filter),
            Self::Ticked(ids) => Members::Chosen(ids),
            Self::Nothing => Members::Chosen(Vec::new()),
        }
    }
}

/// A filter in words: each name and its value.
pub(super) async fn in_words(
    tx: &mut Tx,
    filter: &DeadLetterFilter,
    seen: Seen,
) -> Result<Vec<(String, String)>, StoreError> {
    let causes = causes::waiting(tx, seen.now, MOST_CAUSES).await?;
    Ok(Asked::of(filter.clone()).in_words(&causes, seen))
}
