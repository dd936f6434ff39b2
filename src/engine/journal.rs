//! The audit as it is handed out: by the API, as files, on the command line.

use serde::Serialize;
use uuid::Uuid;

use super::actions::{ActionError, permitted};
use super::evidence::Reader;
use crate::domain::actor::Right;
use crate::domain::filter::AuditFilter;
use crate::domain::time::Timestamp;
use crate::gate::Gate;
use crate::store::Commit;
use crate::store::audit::{self, AuditRow};

text_enum! {
    /// How a file of entries is written.
    pub enum Format {
        /// Comma-separated, for spreadsheets.
        Csv = "csv",
        /// One JSON array.
        Json = "json",
    }
}

/// An entry, in its published shape.
#[derive(Clone, Debug, Serialize)]
pub struct AuditReport {
    id: Uuid,
    at: Timestamp,
    actor: String,
    action: String,
    operation: Option<Uuid>,
    dead_letter: Option<Uuid>,
    subject: Option<String>,
    reason: Option<String>,
    result: String,
    detail: String,
    origin: String,
}

impl From<AuditRow> for AuditReport {
    fn from(row: AuditRow) -> Self {
        Self {
            id: row.id,
            at: row.at,
            actor: row.actor,
            action: row.action,
            operation: row.operation_id,
            dead_letter: row.dead_letter_id,
            subject: row.subject,
            reason: row.reason,
            result: row.result,
            detail: row.detail,
            origin: row.origin,
        }
    }
}

/// The names of the columns, as the API names the members.
const COLUMNS: [&str; 11] = [
    "id",
    "at",
    "actor",
    "action",
    "operation",
    "dead_letter",
    "subject",
    "reason",
    "result",
    "detail",
    "origin",
];

impl Format {
    /// Of the file's content.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }

    /// How the file begins.
    pub fn head(self) -> String {
        match self {
            Self::Csv => line(&COLUMNS.map(str::to_owned)),
            Self::Json => "[".to_owned(),
        }
    }

    /// Entries; `first` when none stands before them.
    pub fn rows(self, rows: Vec<AuditReport>, first: bool) -> String {
        let mut text = String::new();
        for (index, row) in rows.into_iter().enumerate() {
            match self {
                Self::Csv => text.push_str(&line(&cells(row))),
                Self::Json => {
                    text.push_str(if first && index == 0 { "\n" } else { ",\n" });
                    // A row of texts and ids can always be written.
                    text.push_str(&serde_json::to_string(&row).unwrap_or_default());
                }
            }
        }
        text
    }

    /// How the file ends.
    pub fn foot(self) -> &'static str {
        match self {
            Self::Csv => "",
            Self::Json => "\n]\n",
        }
    }
}

fn cells(row: AuditReport) -> [String; 11] {
    let id = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
    [
        row.id.to_string(),
        row.at.rfc3339(),
        row.actor,
        row.action,
        id(row.operation),
        id(row.dead_letter),
        row.subject.unwrap_or_default(),
        row.reason.unwrap_or_default(),
        row.result,
        row.detail,
        row.origin,
    ]
}

/// A line of RFC 4180 in which no cell is a formula: a spreadsheet takes what begins with one of a
/// few signs for one, and somebody's reason would run on the auditor's machine.
fn line(cells: &[String; 11]) -> String {
    let cell = |text: &String| {
        let runs = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let text = text.replace(|letter: char| letter.is_control() && !"\t\r\n".contains(letter), "\u{fffd}");
        let text = if runs { format!("'{text}") } else { text };
        if text.contains([',', '"', '\n', '\r']) || runs {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    format!("{}\r\n", cells.iter().map(cell).collect::<Vec<_>>().join(","))
}

/// Writes down that somebody takes entries away as a file. It stands before what is read, so that
/// the file holds it.
pub async fn exported(
    gate: &Gate,
    filter: &AuditFilter,
    format: Format,
    reader: Reader<'_>,
) -> Result<(), ActionError> {
    permitted(reader.actor, Right::Audit)?;
    permitted(reader.actor, Right::Export)?;
    let meant: Vec<String> =
        filter.pairs().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    let meant = if meant.is_empty() { "all entries".to_owned() } else { meant.join(", ") };
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: gate.ambient().now(),
        actor: reader.actor.to_string(),
        action: "export".to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some("audit".to_owned()),
        reason: None,
        result: "done".to_owned(),
        detail: format!("the audit as {format}: {meant}"),
        origin: reader.origin.to_owned(),
    };
    let mut tx = gate.db().begin().await?;
    audit::insert(&mut tx, &entry).await?;
    Ok(tx.commit(Commit::Action).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(reason: &str) -> AuditReport {
        AuditReport {
            id: Uuid::nil(),
            at: Timestamp::from_micros(0),
            actor: "anna".into(),
            action: "replay".into(),
            operation: None,
            dead_letter: None,
            subject: None,
            reason: Some(reason.into()),
            result: "done".into(),
            detail: String::new(),
            origin: "here".into(),
        }
    }

    #[test]
    fn no_cell_is_a_formula() {
        for (given, wanted) in [
            ("=1+1", "\"'=1+1\""),
            ("+49 30", "\"'+49 30\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\tx", "\"'\tx\""),
            ("\rx", "\"'\rx\""),
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("a, b", "\"a, b\""),
            ("a\nb", "\"a\nb\""),
            ("said \"no\"", "\"said \"\"no\"\"\""),
            ("plain", "plain"),
            ("\u{1b}[2Jx", "\u{fffd}[2Jx"),
        ] {
            let written = Format::Csv.rows(vec![row(given)], true);
            let id = Uuid::nil();
            assert_eq!(
                written,
                format!("{id},1970-01-01T00:00:00.000000Z,anna,replay,,,,{wanted},done,,here\r\n")
            );
        }
    }

    #[test]
    fn json_in_parts_is_one_array() {
        for parts in [vec![], vec![vec![row("a")]], vec![vec![row("a"), row("b")], vec![row("=c")]]] {
            let count: usize = parts.iter().map(Vec::len).sum();
            let mut text = Format::Json.head();
            let mut first = true;
            for part in parts {
                text.push_str(&Format::Json.rows(part, first));
                first = false;
            }
            text.push_str(Format::Json.foot());
            let read: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
            assert_eq!(read.len(), count);
        }
    }
}
