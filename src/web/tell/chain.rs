//! How the audit's chain stands.

use crate::domain::key::hex;
use crate::domain::time::Timestamp;
use crate::store::chain::Head;
use crate::store::checks::{self, Check};
use crate::web::view::{Fact, FactValue, Seen, When, coarse, grouped};

fn number(seq: i64) -> String {
    grouped(usize::try_from(seq).unwrap_or(0))
}

fn of<'a>(checked: &'a [Check], name: &str) -> Option<&'a Check> {
    checked.iter().find(|check| check.name == name)
}

/// How the last verification went, in a sentence; absent while there was none.
pub fn verified(checked: &[Check], now: Timestamp) -> Option<String> {
    let check = of(checked, checks::VERIFY)?;
    match (check.failed_at, check.at, check.seq) {
        (Some(at), _, _) => Some(format!(
            "A verification {} ago found entries that do not fit. `dlo audit verify` names them.",
            coarse(now.since(at))
        )),
        (None, Some(at), Some(seq)) => Some(format!(
            "Verified {} ago up to No. {}: each entry fits.",
            coarse(now.since(at)),
            number(seq)
        )),
        _ => None,
    }
}

/// The head, the last verification, and the places outside the database that were told.
pub fn facts(head: Option<&Head>, checked: &[Check], seen: Seen) -> Vec<Fact> {
    let mut facts = match head {
        Some(head) => vec![
            Fact::text("Entries in its chain", number(head.seq)),
            Fact::code("Head", format!("{}:{}", head.seq, hex(&head.mac))),
        ],
        None => vec![Fact::text("Entries in its chain", "none yet")],
    };
    let names = [
        (checks::VERIFY, "Verified"),
        (checks::FILE, "Head told to the file"),
        (checks::ADDRESS, "Head told to the address"),
    ];
    for (name, label) in names {
        match of(checked, name) {
            Some(check) => facts.push(Fact { name: label.to_owned(), value: went(check, seen) }),
            None if name == checks::VERIFY => {
                facts.push(Fact::text(label, "not yet: run dlo audit verify now and then"));
            }
            None => {}
        }
    }
    facts
}

fn went(check: &Check, seen: Seen) -> FactValue {
    match (check.failed_at, &check.failure, check.at, check.seq) {
        (Some(at), Some(why), _, _) => {
            FactValue::TimeWith(When::at(at, seen), format!("It failed: {why}. That was"))
        }
        (_, _, Some(at), seq) => {
            FactValue::TimeWith(When::at(at, seen), format!("up to No. {},", number(seq.unwrap_or(0))))
        }
        _ => FactValue::Text(crate::web::view::Long::line("not yet")),
    }
}
