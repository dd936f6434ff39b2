//! The one filter of list pages, the API and the command line, and the cursor that walks a list.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use super::UnknownWord;
use super::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use super::operation::{OperationState, Severity};
use super::time::Timestamp;

mod words;

pub use words::{Age, Assignee, ME, NOBODY, RESERVED_NAMES, Relative, Snooze};

/// Which dead letters are meant. An absent field does not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Where the episode stands.
    pub status: Option<DeadLetterStatus>,
    /// What is known of the effect.
    pub certainty: Option<Certainty>,
    /// The operation's type.
    pub kind: Option<String>,
    /// The failing step's destination.
    pub destination: Option<String>,
    /// A cause's fingerprint.
    pub cause: Option<String>,
    /// How much it matters.
    pub severity: Option<Severity>,
    /// Who has it.
    pub assignee: Option<Assignee>,
    /// What to do first.
    pub next_action: Option<NextAction>,
    /// Whether somebody put it off.
    pub snoozed: Option<Relative<Snooze>>,
    /// How long ago it was opened.
    pub age: Option<Relative<Age>>,
    /// An id, key, correlation id, reference or business id, whole.
    pub search: Option<String>,
    /// Opened at or after.
    pub from: Option<Timestamp>,
    /// Opened before.
    pub to: Option<Timestamp>,
}

/// Which operations are meant. An absent field does not restrict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// The operation's key.
    pub key: Option<String>,
    /// Its type.
    pub kind: Option<String>,
    /// What is known of it.
    pub state: Option<OperationState>,
    /// A destination of any of its steps.
    pub destination: Option<String>,
    /// An id, key, correlation id, reference or business id, whole.
    pub search: Option<String>,
    /// Received at or after.
    pub from: Option<Timestamp>,
    /// Received before.
    pub to: Option<Timestamp>,
}

/// Which audit entries are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Who acted.
    pub actor: Option<String>,
    /// What they did.
    pub action: Option<String>,
    /// To which operation.
    pub operation: Option<Uuid>,
    /// At or after.
    pub from: Option<Timestamp>,
    /// Before.
    pub to: Option<Timestamp>,
}

/// A query string that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// A value is none of the known words.
    #[error("{name}: {source}")]
    Word {
        /// The parameter.
        name: &'static str,
        /// What was wrong.
        source: UnknownWord,
    },
    /// There is no such parameter.
    #[error("{name}: no such parameter; known are {known}")]
    Unknown {
        /// As it was sent.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A value is no time.
    #[error("{0}: not a date or an RFC 3339 time")]
    Time(&'static str),
    /// A value is no id.
    #[error("{0}: not an id")]
    Id(&'static str),
    /// The limit is no number from 1 to 200.
    #[error("limit: a whole number from 1 to {MAX_LIMIT}")]
    Limit,
    /// The cursor did not come from us.
    #[error("cursor: not one that a list gave out")]
    Cursor,
}

/// The parameters of one request. Empty values, which plain HTML forms send, count as absent.
#[derive(Clone, Copy, Debug)]
pub struct Parameters<'a>(pub &'a [(String, String)]);

impl<'a> Parameters<'a> {
    /// Refuses a parameter that means nothing here: a misspelt filter must not mean "all".
    pub fn only(&self, known: &[&str]) -> Result<(), FilterError> {
        match self.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(FilterError::Unknown { name: name.clone(), known: known.join(", ") }),
            None => Ok(()),
        }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    }

    fn text(&self, name: &str) -> Option<String> {
        // PostgreSQL can neither store nor compare a NUL.
        self.get(name).map(|text| text.replace('\0', "\u{fffd}"))
    }

    fn word<T: std::str::FromStr<Err = UnknownWord>>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, FilterError> {
        self.get(name)
            .map(|text| text.parse().map_err(|source| FilterError::Word { name, source }))
            .transpose()
    }

    fn time(&self, name: &'static str) -> Result<Option<Timestamp>, FilterError> {
        self.get(name).map(|text| Timestamp::parse(text).ok_or(FilterError::Time(name))).transpose()
    }

    fn id(&self, name: &'static str) -> Result<Option<Uuid>, FilterError> {
        self.get(name).map(|text| text.parse().map_err(|_| FilterError::Id(name))).transpose()
    }

    /// The dead letters they mean at this moment.
    pub fn dead_letters(&self, now: Timestamp) -> Result<DeadLetterFilter, FilterError> {
        Ok(DeadLetterFilter {
            status: self.word("status")?,
            certainty: self.word("certainty")?,
            kind: self.text("type"),
            destination: self.text("destination"),
            cause: self.text("cause"),
            severity: self.word("severity")?,
            assignee: self.text("assignee").map(|name| Assignee::from(name.as_str())),
            next_action: self.word("next_action")?,
            snoozed: self.word("snoozed")?.map(|word| Relative { word, now }),
            age: self.word("age")?.map(|word| Relative { word, now }),
            search: self.text("search"),
            from: self.time("from")?,
            to: self.time("to")?,
        })
    }

    /// The operations they mean.
    pub fn operations(&self) -> Result<OperationFilter, FilterError> {
        Ok(OperationFilter {
            key: self.text("key"),
            kind: self.text("type"),
            state: self.word("state")?,
            destination: self.text("destination"),
            search: self.text("search"),
            from: self.time("from")?,
            to: self.time("to")?,
        })
    }

    /// The audit entries they mean.
    pub fn audit(&self) -> Result<AuditFilter, FilterError> {
        Ok(AuditFilter {
            actor: self.text("actor"),
            action: self.text("action"),
            operation: self.id("operation")?,
            from: self.time("from")?,
            to: self.time("to")?,
        })
    }

    /// The page they mean.
    pub fn page(&self) -> Result<Page, FilterError> {
        let limit = match self.get("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => match text.parse() {
                Ok(limit @ 1..=MAX_LIMIT) => limit,
                _ => return Err(FilterError::Limit),
            },
        };
        let cursor = self.get("cursor").map(Cursor::decode).transpose()?;
        Ok(Page { limit, cursor })
    }
}

impl DeadLetterFilter {
    /// As parameters of a query string, in a fixed order.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let word = |text: &str| Some(text.to_owned());
        [
            ("status", self.status.and_then(|w| word(w.as_str()))),
            ("certainty", self.certainty.and_then(|w| word(w.as_str()))),
            ("type", self.kind.clone()),
            ("destination", self.destination.clone()),
            ("cause", self.cause.clone()),
            ("severity", self.severity.and_then(|w| word(w.as_str()))),
            ("assignee", self.assignee.as_ref().and_then(|who| word(who.as_str()))),
            ("next_action", self.next_action.and_then(|w| word(w.as_str()))),
            ("snoozed", self.snoozed.and_then(|at| word(at.word.as_str()))),
            ("age", self.age.and_then(|at| word(at.word.as_str()))),
            ("search", self.search.clone()),
            ("from", self.from.map(Timestamp::rfc3339)),
            ("to", self.to.map(Timestamp::rfc3339)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

impl OperationFilter {
    /// As parameters of a query string, in a fixed order.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        [
            ("key", self.key.clone()),
            ("type", self.kind.clone()),
            ("state", self.state.map(|w| w.as_str().to_owned())),
            ("destination", self.destination.clone()),
            ("search", self.search.clone()),
            ("from", self.from.map(Timestamp::rfc3339)),
            ("to", self.to.map(Timestamp::rfc3339)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

impl AuditFilter {
    /// As parameters of a query string, in a fixed order.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        [
            ("actor", self.actor.clone()),
            ("action", self.action.clone()),
            ("operation", self.operation.map(|id| id.to_string())),
            ("from", self.from.map(Timestamp::rfc3339)),
            ("to", self.to.map(Timestamp::rfc3339)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
    }
}

/// Rows of a page when nobody says.
pub const DEFAULT_LIMIT: u32 = 50;
/// Rows of a page at most.
pub const MAX_LIMIT: u32 = 200;

/// A stretch of a list, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Rows at most.
    pub limit: u32,
    /// Where it begins; absent for the newest.
    pub cursor: Option<Cursor>,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, cursor: None }
    }
}

/// A place in a list, and which way to read from it. Ties in time are broken by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Towards older rows, or newer ones.
    pub older: bool,
    /// The row's time.
    pub at: Timestamp,
    /// The row's id.
    pub id: Uuid,
}

impl Cursor {
    /// As an opaque text.
    pub fn encode(&self) -> String {
        let mut bytes = [0; 25];
        bytes[0] = u8::from(self.older);
        bytes[1..9].copy_from_slice(&self.at.as_micros().to_be_bytes());
        bytes[9..].copy_from_slice(self.id.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// From that text.
    pub fn decode(text: &str) -> Result<Self, FilterError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| FilterError::Cursor)?;
        let bytes: [u8; 25] = bytes.try_into().map_err(|_| FilterError::Cursor)?;
        let (flag, rest) = (bytes[0], &bytes[1..]);
        let at: [u8; 8] = rest[..8].try_into().map_err(|_| FilterError::Cursor)?;
        let id = Uuid::from_slice(&rest[8..]).map_err(|_| FilterError::Cursor)?;
        Ok(Self { older: flag == 1, at: Timestamp::from_micros(i64::from_be_bytes(at)), id })
    }
}

/// Rows of one page and the ways on from it.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// Where older rows begin; absent at the end.
    pub older: Option<Cursor>,
    /// Where newer rows begin; absent at the beginning.
    pub newer: Option<Cursor>,
}

impl<T> Listed<T> {
    /// From `limit + 1` rows at most, read in the page's direction; `place` tells a row's time and
    /// id.
    pub fn new(mut rows: Vec<T>, page: Page, place: impl Fn(&T) -> (Timestamp, Uuid)) -> Self {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        let towards_older = page.cursor.is_none_or(|cursor| cursor.older);
        if !towards_older {
            rows.reverse();
        }
        let at = |row: Option<&T>, older| {
            row.map(|row| {
                let (at, id) = place(row);
                Cursor { older, at, id }
            })
        };
        let (has_older, has_newer) = if towards_older { (more, page.cursor.is_some()) } else { (true, more) };
        Self {
            older: at(rows.last(), true).filter(|_| has_older),
            newer: at(rows.first(), false).filter(|_| has_newer),
            items: rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn a_filter_survives_its_query_string() {
        let given = parameters(&[
            ("status", "open"),
            ("certainty", "may_have_completed"),
            ("type", "create-ticket"),
            ("search", " ORD-1 "),
            ("destination", ""),
            ("from", "2026-11-29"),
            ("assignee", "nobody"),
            ("snoozed", "asleep"),
            ("age", "over_24h"),
        ]);
        let now = Timestamp::from_micros(7);
        let filter = Parameters(&given).dead_letters(now).unwrap();
        assert_eq!(filter.assignee, Some(Assignee::Nobody));
        assert_eq!(filter.age, Some(Relative { word: Age::OverDay, now }));
        assert_eq!(filter.destination, None);
        assert_eq!(filter.search.as_deref(), Some("ORD-1"));
        let pairs = parameters(&filter.pairs().iter().map(|(a, b)| (*a, b.as_str())).collect::<Vec<_>>());
        assert_eq!(Parameters(&pairs).dead_letters(now).unwrap(), filter);
    }

    #[test]
    fn bad_values_name_their_parameter() {
        let text = |pairs: &[(&str, &str)]| {
            let pairs = parameters(pairs);
            let parameters = Parameters(&pairs);
            let now = Timestamp::from_micros(0);
            parameters.dead_letters(now).err().or(parameters.page().err()).map(|error| error.to_string())
        };
        assert!(text(&[("status", "dead")]).unwrap().starts_with("status: \"dead\" is not a"));
        assert_eq!(text(&[("from", "noon")]).unwrap(), "from: not a date or an RFC 3339 time");
        assert_eq!(text(&[("limit", "0")]).unwrap(), "limit: a whole number from 1 to 200");
        assert_eq!(text(&[("cursor", "AAAA")]).unwrap(), "cursor: not one that a list gave out");
    }

    #[test]
    fn a_cursor_survives_its_text() {
        let cursor = Cursor { older: true, at: Timestamp::from_micros(-5), id: Uuid::from_u128(7) };
        assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
    }

    #[test]
    fn a_page_knows_its_neighbours() {
        let row = |n: u32| (Timestamp::from_micros(i64::from(n)), Uuid::from_u128(u128::from(n)));
        let first = Listed::new(vec![row(9), row(8), row(7)], Page { limit: 2, cursor: None }, |r| *r);
        assert_eq!(first.items, [row(9), row(8)]);
        assert_eq!(first.newer, None);
        let older = first.older.unwrap();
        assert_eq!((older.at, older.id), row(8));
        let second = Listed::new(vec![row(7)], Page { limit: 2, cursor: Some(older) }, |r| *r);
        assert_eq!(second.older, None);
        let newer = second.newer.unwrap();
        // Reading upwards the rows arrive oldest first.
        let back = Listed::new(vec![row(8), row(9)], Page { limit: 2, cursor: Some(newer) }, |r| *r);
        assert_eq!(back.items, [row(9), row(8)]);
        assert_eq!(back.newer, None);
    }
}
