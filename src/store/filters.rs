//! Turns the domain's filters into conditions. Every value is bound, never written into the text.

use sqlx::query::{Query, QueryAs};
use sqlx::{Encode, Type};
use uuid::Uuid;

use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use crate::domain::filter::{
    Assignee, AuditFilter, Cursor, DeadLetterFilter, OperationFilter, Page, Relative, Snooze,
};
use crate::domain::operation::Severity;
use crate::domain::time::Timestamp;

/// A value waiting for its placeholder.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    Text(String),
    Number(i64),
    Id(Uuid),
}

/// A WHERE clause in the making.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    text: String,
    values: Vec<Bound>,
}

impl Conditions {
    /// Adds a condition in which each `?` stands for one use of the value.
    fn add(&mut self, condition: &str, value: Bound) {
        let placeholder = self.bind(value);
        self.also(&condition.replace('?', &placeholder));
    }

    /// A value's placeholder.
    fn bind(&mut self, value: Bound) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn also(&mut self, condition: &str) {
        self.text.push_str(if self.text.is_empty() { " WHERE " } else { " AND " });
        self.text.push_str(condition);
    }

    fn text(&mut self, condition: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.add(condition, Bound::Text(value.clone()));
        }
    }

    fn word(&mut self, condition: &str, value: Option<&'static str>) {
        if let Some(value) = value {
            self.add(condition, Bound::Text(value.to_owned()));
        }
    }

    fn number(&mut self, condition: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.add(condition, Bound::Number(value));
        }
    }

    /// The placeholder of an id that the clause does not name.
    pub(super) fn id(&mut self, id: Uuid) -> String {
        self.bind(Bound::Id(id))
    }

    /// The clause alone, for counting.
    pub(super) fn clause(&self) -> &str {
        &self.text
    }

    /// The clause with the page's place, order and limit over the columns of time and id.
    pub(super) fn page(&mut self, at: &str, id: &str, page: Page) -> String {
        let (order, limit) = (page.cursor.is_none_or(|cursor| cursor.older), i64::from(page.limit) + 1);
        if let Some(Cursor { older, at: moment, id: row }) = page.cursor {
            let (a, b) = (self.bind(Bound::Number(moment.as_micros())), self.bind(Bound::Id(row)));
            self.also(&format!("({at}, {id}) {} ({a}, {b})", if older { "<" } else { ">" }));
        }
        let direction = if order { "DESC" } else { "ASC" };
        format!("{} ORDER BY {at} {direction}, {id} {direction} LIMIT {limit}", self.text)
    }

    pub(super) fn values(&self) -> &[Bound] {
        &self.values
    }
}

/// Declares a function that binds the values in order, on either database, to one kind of query.
macro_rules! binds {
    ($name:ident, $query:ident<$($parameter:ident),+>) => {
        /// Binds the values in order, on either database.
        pub(super) fn $name<'q, $($parameter),+>(
            mut query: $query<'q, $($parameter,)+ <DB as sqlx::Database>::Arguments>,
            values: &'q [Bound],
        ) -> $query<'q, $($parameter,)+ <DB as sqlx::Database>::Arguments>
        where
            DB: sqlx::Database,
            &'q str: Encode<'q, DB> + Type<DB>,
            i64: Encode<'q, DB> + Type<DB>,
            Uuid: Encode<'q, DB> + Type<DB>,
        {
            for value in values {
                query = match value {
                    Bound::Text(text) => query.bind(text.as_str()),
                    Bound::Number(number) => query.bind(*number),
                    Bound::Id(id) => query.bind(*id),
                };
            }
            query
        }
    };
}

binds!(bind_all, QueryAs<DB, O>);
binds!(bind_values, Query<DB>);

/// Operations whose id, key, correlation id, reference or business id is the text. Each branch is
/// one index. A text in the form of an id may be one of ours or somebody else's.
fn search(conditions: &mut Conditions, column: &str, text: Option<&String>) {
    let Some(text) = text else { return };
    let as_text = conditions.bind(Bound::Text(text.clone()));
    let mut sources = format!(
        "SELECT id FROM operations WHERE key = {as_text} \
         UNION SELECT id FROM operations WHERE correlation_id = {as_text} \
         UNION SELECT operation_id FROM steps WHERE reference = {as_text} \
         UNION SELECT operation_id FROM search WHERE value = {as_text}"
    );
    if let Ok(id) = text.parse::<Uuid>() {
        let as_id = conditions.bind(Bound::Id(id));
        sources += " UNION SELECT id FROM operations WHERE id = ";
        sources += &as_id;
        sources += " UNION SELECT operation_id FROM dead_letters WHERE id = ";
        sources += &as_id;
    }
    conditions.also(&format!("{column} IN ({sources})"));
}

pub(super) fn dead_letters(filter: &DeadLetterFilter) -> Conditions {
    let mut c = Conditions::default();
    c.word("d.status = ?", filter.status.map(DeadLetterStatus::as_str));
    c.word("d.certainty = ?", filter.certainty.map(Certainty::as_str));
    c.text("d.kind = ?", filter.kind.as_ref());
    c.text("d.destination = ?", filter.destination.as_ref());
    c.text("d.cause = ?", filter.cause.as_ref());
    c.word("d.severity = ?", filter.severity.map(Severity::as_str));
    match &filter.assignee {
        Some(Assignee::Nobody) => c.also("d.assignee IS NULL"),
        Some(Assignee::Named(name)) => c.text("d.assignee = ?", Some(name)),
        None => {}
    }
    c.word("d.next_action = ?", filter.next_action.map(NextAction::as_str));
    if let Some(Relative { word, now }) = filter.snoozed {
        // What is closed waits for nobody, whatever was put off before.
        let condition = match word {
            Snooze::Awake => "(d.snoozed_until IS NULL OR d.snoozed_until <= ? OR d.closed_at IS NOT NULL)",
            Snooze::Asleep => "(d.snoozed_until > ? AND d.closed_at IS NULL)",
        };
        c.number(condition, Some(now.as_micros()));
    }
    if let Some(Relative { word, now }) = filter.age {
        let (span, longer) = word.span();
        let condition = if longer { "d.opened_at < ?" } else { "d.opened_at >= ?" };
        c.number(condition, Some(now.minus(span).as_micros()));
    }
    search(&mut c, "d.operation_id", filter.search.as_ref());
    c.number("d.opened_at >= ?", filter.from.map(Timestamp::as_micros));
    c.number("d.opened_at < ?", filter.to.map(Timestamp::as_micros));
    c
}

pub(super) fn operations(filter: &OperationFilter) -> Conditions {
    use crate::domain::operation::OperationState as S;
    let mut c = Conditions::default();
    c.text("o.key = ?", filter.key.as_ref());
    c.text("o.kind = ?", filter.kind.as_ref());
    match filter.state {
        // Running is the lease's fact, not a stored state.
        Some(S::Running) => c.number("w.leased_until > ?", Some(0)),
        Some(state @ (S::Pending | S::Uncertain)) => {
            c.word("(o.state = ? AND w.leased_until IS NULL)", Some(state.as_str()));
        }
        Some(state) => c.word("o.state = ?", Some(state.as_str())),
        None => {}
    }
    c.text("o.id IN (SELECT operation_id FROM steps WHERE destination = ?)", filter.destination.as_ref());
    search(&mut c, "o.id", filter.search.as_ref());
    c.number("o.received_at >= ?", filter.from.map(Timestamp::as_micros));
    c.number("o.received_at < ?", filter.to.map(Timestamp::as_micros));
    c
}

pub(super) fn audit(filter: &AuditFilter) -> Conditions {
    let mut c = Conditions::default();
    c.text("actor = ?", filter.actor.as_ref());
    c.text("action = ?", filter.action.as_ref());
    if let Some(id) = filter.operation {
        c.add("operation_id = ?", Bound::Id(id));
    }
    c.number("at >= ?", filter.from.map(Timestamp::as_micros));
    c.number("at < ?", filter.to.map(Timestamp::as_micros));
    c
}
