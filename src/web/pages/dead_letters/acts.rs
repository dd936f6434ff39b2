//! What can be done with the rows that are ticked, or with all that match.

use super::asked::Asked;
use crate::config::Config;
use crate::domain::actor::{Right, Standing};
use crate::domain::dead_letter::DeadLetterStatus;
use crate::store::dead_letters::DeadLetterRow;
use crate::web::labels;
use crate::web::tell::list;

/// The action bar above the rows. It leads to the page of a new bulk action, which shows and freezes
/// what is meant before anything is done.
#[derive(Clone, Debug)]
pub struct Acts {
    /// Those that fit the rows of this filter.
    pub buttons: Vec<Act>,
    /// "All 12 that match"; absent without a filter, since "all" is then no decision.
    pub all: Option<String>,
    /// The filter that "all" means.
    pub pairs: Vec<(&'static str, String)>,
    /// Why the buttons cannot be pressed; absent when they can.
    pub needs: Option<String>,
}

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// What is sent.
    pub value: &'static str,
    /// What it says.
    pub words: &'static str,
}

const REPLAY: Act = Act { value: "replay", words: "Replay\u{2026}" };
const ASK: Act = Act { value: "lookup", words: "Ask the destination\u{2026}" };
const RESOLVE: Act = Act { value: "resolve", words: "Resolve\u{2026}" };
const ASSIGN: Act = Act { value: "assign", words: "Assign\u{2026}" };

/// What can be done with these rows. Nothing can be done with closed ones.
pub(super) fn offered(
    asked: &Asked,
    config: &Config,
    rows: &[DeadLetterRow],
    count: i64,
    role: &Standing,
) -> Option<Acts> {
    let may_be_open = matches!(asked.filter.status, None | Some(DeadLetterStatus::Open));
    if !may_be_open || !rows.iter().any(|row| row.closed_at.is_none()) {
        return None;
    }
    let asks = |name: &str| config.destinations.get(name).is_some_and(|known| known.question.is_some());
    let ask = match &asked.filter.destination {
        Some(name) => asks(name),
        None => config.destinations.keys().any(|name| asks(name)),
    };
    let mut buttons = vec![REPLAY, RESOLVE, ASSIGN];
    if ask {
        buttons.insert(1, ASK);
    }
    let number = list::number(count);
    Some(Acts {
        buttons,
        all: (!asked.is_default()).then(|| match count {
            1 => "The one that matches".to_owned(),
            _ => format!("All {number} that match"),
        }),
        pairs: asked.filter.pairs(),
        needs: (!role.may(Right::Bulk)).then(|| labels::lacks(Right::Bulk, role)),
    })
}
