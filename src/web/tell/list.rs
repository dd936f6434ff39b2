//! What lists have in common: business ids, counts, pagers, chips, selects.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::domain::actor::Right;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::filter::{DeadLetterFilter, Listed, Relative, Snooze};
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::operations::SearchRow;
use crate::store::{StoreError, Tx, dead_letters, overrides};
use crate::web::listing::{Chip, Choice, Pager, Select};
use crate::web::page::Layout;
use crate::web::tell::mask::Mask;
use crate::web::view::grouped;

/// What is counted one by one; beyond it a number would make its page wait.
pub const MOST_COUNTED: i64 = 500;

/// "order 10443 · customer C-7".
pub fn ids(values: &[SearchRow], mask: &Mask) -> String {
    let id = |row: &SearchRow| format!("{} {}", words::step_name(&row.name), mask.id(&row.name, &row.value));
    values.iter().map(id).collect::<Vec<_>>().join(" \u{b7} ")
}

/// A destination where its name stands alone, in a cell or a filter: "The CRM".
pub fn place(name: &str) -> String {
    words::capitalised(&words::destination_name(name))
}

/// "12", or "500+" when there are more.
pub fn number(count: i64) -> String {
    if count > MOST_COUNTED {
        return format!("{MOST_COUNTED}+");
    }
    grouped(usize::try_from(count).unwrap_or(0))
}

/// A count up to where it says "500+".
pub async fn count(tx: &mut Tx, filter: &DeadLetterFilter) -> Result<i64, StoreError> {
    dead_letters::count(tx, filter, MOST_COUNTED + 1).await
}

/// What waits for a person at a moment: open, and not put off.
pub fn waiting(now: Timestamp) -> DeadLetterFilter {
    DeadLetterFilter {
        status: Some(DeadLetterStatus::Open),
        snoozed: Some(Relative { word: Snooze::Awake, now }),
        ..DeadLetterFilter::default()
    }
}

/// Writes how many are open, and how many overrides wait, beside the rail's entries.
pub async fn rail(tx: &mut Tx, layout: Layout) -> Result<Layout, StoreError> {
    if !layout.may(Right::View) {
        return Ok(layout);
    }
    let open = number(count(tx, &waiting(layout.at)).await?);
    let approvals = if layout.may(Right::Approve) { overrides::count(tx).await? } else { 0 };
    Ok(Layout { open: Some(open), approvals: (approvals > 0).then(|| number(approvals)), ..layout })
}

/// The parameters of a query string. Nothing here can be malformed: what cannot be decoded is text.
pub fn parameters(query: Option<&str>) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}

/// An address with a query string; the bare path when nothing is set.
pub fn address(path: &str, pairs: &[(&'static str, String)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    let mut query = url::form_urlencoded::Serializer::for_suffix(format!("{path}?"), path.len() + 1);
    query.extend_pairs(pairs);
    query.finish()
}

/// The address of one thing of a section, whatever its name holds.
pub fn below(section: &str, name: &str) -> String {
    format!("{section}/{}", utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// The ways to the neighbouring pages, under the same filter.
pub fn pager<T>(path: &str, pairs: &[(&'static str, String)], limit: u32, listed: &Listed<T>) -> Pager {
    let page = |cursor: Option<crate::domain::filter::Cursor>| {
        let mut pairs = pairs.to_vec();
        if limit != crate::domain::filter::DEFAULT_LIMIT {
            pairs.push(("limit", limit.to_string()));
        }
        pairs.push(("cursor", cursor?.encode()));
        Some(address(path, &pairs))
    };
    Pager {
        newer: page(listed.newer),
        older: page(listed.older),
        shown: match listed.items.len() {
            0 => String::new(),
            n => format!("{n} shown, newest first"),
        },
    }
}

/// A filter that is set, with the address of the list without it.
pub fn chip(path: &str, pairs: &[(&'static str, String)], name: &str, label: &str, value: String) -> Chip {
    let rest: Vec<(&'static str, String)> =
        pairs.iter().filter(|(known, _)| *known != name).cloned().collect();
    Chip { name: label.to_owned(), value, without: address(path, &rest) }
}

/// A filter with fixed values. One that is set and is none of them is added, so that the form sends
/// it again.
pub fn select(
    name: &'static str,
    label: &'static str,
    any: &str,
    values: impl IntoIterator<Item = (String, String)>,
    chosen: Option<&str>,
) -> Select {
    let choice = |value: String, words: String, chosen| Choice { value, words, chosen };
    let mut choices = vec![choice(String::new(), any.to_owned(), chosen.is_none())];
    choices.extend(values.into_iter().map(|(value, words)| {
        let is = chosen == Some(value.as_str());
        choice(value, words, is)
    }));
    if let Some(value) = chosen
        && !choices.iter().any(|choice| choice.chosen)
    {
        choices.push(choice(value.to_owned(), value.to_owned(), true));
    }
    Select { name, label, choices }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stop_where_counting_stops() {
        assert_eq!([0, 12, 500, 501].map(number), ["0", "12", "500", "500+"]);
    }

    #[test]
    fn a_chip_drops_its_own_filter_only() {
        let pairs = [("type", "a b".to_owned()), ("search", "x&y".to_owned())];
        assert_eq!(chip("/l", &pairs, "search", "Text", "x&y".into()).without, "/l?type=a+b");
        assert_eq!(chip("/l", &pairs[..1], "type", "Type", "a b".into()).without, "/l");
    }

    #[test]
    fn a_value_that_no_choice_has_is_kept() {
        let filter = select("type", "Type", "Any", [("a".into(), "A".into())], Some("gone"));
        assert_eq!(filter.choices.iter().find(|choice| choice.chosen).unwrap().value, "gone");
    }
}
