//! Entries as a file, with what proves them. A file of JSON ends with a seal over all of it: it tells
//! whether one was taken out, which the links of entries that a filter chose cannot.

use super::AuditReport;
use crate::domain::chain::{ChainKey, Seal};
use crate::domain::filter::AuditFilter;
use crate::domain::key::hex;
use crate::domain::keyring::Keyring;
use crate::store::audit::Entry;

text_enum! {
    /// How a file of entries is written.
    pub enum Format {
        /// Comma-separated, for spreadsheets.
        Csv = "csv",
        /// One JSON object, which can be verified.
        Json = "json",
    }
}

impl Format {
    /// Of the file's content.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}

/// A filter in words.
pub(super) fn described(filter: &AuditFilter) -> String {
    let pairs: Vec<String> =
        filter.pairs().into_iter().map(|(name, value)| format!("{name} {value}")).collect();
    if pairs.is_empty() { "all entries".to_owned() } else { pairs.join(", ") }
}

/// The names of the columns, as the API names the members.
const COLUMNS: [&str; 14] = [
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
    "seq",
    "mac",
    "key_id",
];

/// A file that is being written, newest entries first.
#[derive(Debug)]
pub struct File {
    format: Format,
    of: String,
    key_id: String,
    seal: Seal,
    count: usize,
    /// Place and link of the newest and of the oldest entry so far.
    ends: Option<[(i64, String); 2]>,
}

impl File {
    /// A file of those that a filter means.
    pub fn of(format: Format, filter: &AuditFilter, keyring: &Keyring) -> Self {
        let key = ChainKey::of(keyring.current());
        let of = described(filter);
        let mut seal = Seal::begin(&key);
        seal.add(of.as_bytes());
        Self { format, of, key_id: key.id().to_owned(), seal, count: 0, ends: None }
    }

    /// How it begins.
    pub fn head(&self) -> String {
        match self.format {
            Format::Csv => line(&COLUMNS.map(str::to_owned)),
            Format::Json => format!("{{\"of\":{},\n\"entries\":[", serde_json::Value::from(self.of.as_str())),
        }
    }

    /// More entries.
    pub fn rows(&mut self, entries: Vec<Entry>) -> String {
        let mut text = String::new();
        for report in entries.into_iter().map(AuditReport::from) {
            if let Some(proof) = &report.proof {
                let here = || (proof.seq, proof.mac.clone());
                self.ends.get_or_insert_with(|| [here(), here()])[1] = here();
            }
            match self.format {
                Format::Csv => text.push_str(&line(&cells(report))),
                Format::Json => {
                    // A row of texts and ids can always be written.
                    let row = serde_json::to_string(&report).unwrap_or_default();
                    self.seal.add(row.as_bytes());
                    text.push_str(if self.count == 0 { "\n" } else { ",\n" });
                    text.push_str(&row);
                }
            }
            self.count += 1;
        }
        text
    }

    /// How it ends.
    pub fn foot(self) -> String {
        if self.format == Format::Csv {
            return String::new();
        }
        let place = |end: Option<&(i64, String)>| {
            end.map(|(seq, mac)| serde_json::json!({ "seq": seq, "mac": mac })).unwrap_or_default()
        };
        let [newest, oldest] = match &self.ends {
            Some([newest, oldest]) => [Some(newest), Some(oldest)],
            None => [None, None],
        };
        format!(
            "\n],\n\"from\":{},\"to\":{},\"count\":{},\"key_id\":\"{}\",\"seal\":\"{}\"}}\n",
            place(oldest),
            place(newest),
            self.count,
            self.key_id,
            hex(&self.seal.close())
        )
    }
}

fn cells(row: AuditReport) -> [String; 14] {
    let id = |id: Option<uuid::Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
    let (seq, mac, key_id) =
        row.proof.map(|proof| (proof.seq.to_string(), proof.mac, proof.key_id)).unwrap_or_default();
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
        seq,
        mac,
        key_id,
    ]
}

/// A line of RFC 4180 in which no cell is a formula: a spreadsheet takes what begins with one of a
/// few signs for one, and somebody's reason would run on the auditor's machine.
fn line(cells: &[String; 14]) -> String {
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::domain::keyring::{MIN_SECRET_KEY, SecretKey};
    use crate::domain::time::Timestamp;
    use crate::store::audit::AuditRow;

    fn row(reason: &str) -> Entry {
        let row = AuditRow {
            id: Uuid::nil(),
            at: Timestamp::from_micros(0),
            actor: "anna".into(),
            action: "replay".into(),
            operation_id: None,
            dead_letter_id: None,
            subject: None,
            reason: Some(reason.into()),
            result: "done".into(),
            detail: String::new(),
            origin: "here".into(),
        };
        Entry { row, link: None }
    }

    fn file(format: Format) -> File {
        let keyring = Keyring::new(SecretKey::new("k".repeat(MIN_SECRET_KEY)).unwrap(), vec![]);
        File::of(format, &AuditFilter::default(), &keyring)
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
            let written = file(Format::Csv).rows(vec![row(given)]);
            let id = Uuid::nil();
            assert_eq!(
                written,
                format!("{id},1970-01-01T00:00:00.000000Z,anna,replay,,,,{wanted},done,,here,,,\r\n")
            );
        }
    }

    #[test]
    fn json_in_parts_is_one_object() {
        for parts in [vec![], vec![vec![row("a")]], vec![vec![row("a"), row("b")], vec![row("=c")]]] {
            let count: usize = parts.iter().map(Vec::len).sum();
            let mut file = file(Format::Json);
            let mut text = file.head();
            for part in parts {
                text.push_str(&file.rows(part));
            }
            text.push_str(&file.foot());
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(read["entries"].as_array().unwrap().len(), count);
            assert_eq!(read["count"], count);
        }
    }
}
