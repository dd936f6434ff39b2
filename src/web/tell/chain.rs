//! How the audit's chain stands.

use crate::domain::key::hex;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::engine::journal::verify::NEXT;
use crate::store::chain::Head;
use crate::store::checks::{self, Check};
use crate::web::view::{Fact, FactValue, Seen, When, coarse, grouped};

fn number(seq: i64) -> String {
    grouped(usize::try_from(seq).unwrap_or(0))
}

fn of<'a>(checked: &'a [Check], name: &str) -> Option<&'a Check> {
    checked.iter().find(|check| check.name == name)
}

/// How the last verification went: in a sentence where each entry fits, as a warning where one does not;
/// neither while there was none.
pub fn verified(checked: &[Check], now: Timestamp) -> (Option<String>, Option<String>) {
    let Some(check) = of(checked, checks::VERIFY) else { return (None, None) };
    match (check.failed_at, check.at, check.seq) {
        (Some(at), _, _) => {
            let why = check.failure.as_deref().unwrap_or("entries do not fit");
            let ago = coarse(now.since(at));
            (
                None,
                Some(format!("This record was tampered with, or a key is missing. Found {ago} ago: {why}.")),
            )
        }
        (None, Some(at), Some(seq)) => {
            let ago = coarse(now.since(at));
            (Some(format!("Verified {ago} ago up to No. {}: each entry fits.", number(seq))), None)
        }
        _ => (None, None),
    }
}

/// The head, the last verification, and the places outside the database that were told. `by_itself`
/// says whether nodes verify it without being asked.
pub fn facts(head: Option<&Head>, checked: &[Check], by_itself: bool, seen: Seen) -> Vec<Fact> {
    let mut facts = match head {
        Some(head) => vec![
            Fact::text("Entries in its chain", number(head.seq)),
            Fact::code("Head", format!("{}:{}", head.seq, hex(&head.mac))),
        ],
        None => vec![Fact::text("Entries in its chain", "none yet")],
    };
    match of(checked, checks::VERIFY) {
        Some(check) => {
            facts.push(Fact { name: "Chain verified".to_owned(), value: went(check, seen) });
            if check.failed_at.is_some() {
                let next = format!(
                    "Run dlo audit verify, which names all that does not fit. {}.",
                    words::capitalised(NEXT)
                );
                facts.push(Fact::text("What to do next", next));
            }
        }
        None if by_itself => {
            facts.push(Fact::text("Chain verified", "not yet: it begins within minutes of the first start"));
        }
        None => {}
    }
    if !by_itself {
        let words = "no: verify_every is \"0s\". Run dlo audit verify now and then";
        facts.push(Fact::text("Verified by itself", words));
    }
    for (name, label) in
        [(checks::FILE, "Head told to the file"), (checks::ADDRESS, "Head told to the address")]
    {
        if let Some(check) = of(checked, name) {
            facts.push(Fact { name: label.to_owned(), value: went(check, seen) });
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
            FactValue::TimeWith(When::at(at, seen), format!("up to entry No. {},", number(seq.unwrap_or(0))))
        }
        _ => FactValue::Text(crate::web::view::Long::line("not yet")),
    }
}
