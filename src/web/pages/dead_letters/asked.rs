//! The list's filter: from an address, and as the form and the chips show it.

use super::{PATH, Parameters};
use crate::config::Config;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use crate::domain::filter::{Age, Assignee, DeadLetterFilter, FilterError, ME, NOBODY, Relative, Snooze};
use crate::domain::operation::Severity;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::accounts::UserRow;
use crate::store::causes::CauseRow;
use crate::web::labels::Mark;
use crate::web::listing::{Chip, Select};
use crate::web::tell::list;
use crate::web::view::{Seen, When};

/// Instead of a status, or of a word on what was put off: all of them.
const ANY: &str = "any";

/// The filter as it was asked for. Without a status it means what is open, and of that what was not
/// put off.
pub(in crate::web::pages) struct Asked {
    pub(in crate::web::pages) filter: DeadLetterFilter,
    /// The address says `me`, whoever reads it.
    me: bool,
}

impl Asked {
    pub(in crate::web::pages) fn read(
        given: &[(String, String)],
        reader: &str,
        now: Timestamp,
    ) -> Result<Self, FilterError> {
        let is = |name: &str, word: &str| {
            given.iter().find(|(known, _)| known == name).is_some_and(|(_, value)| value.trim() == word)
        };
        let (any, me) = (is("status", ANY), is("assignee", ME));
        let kept: Vec<(String, String)> = given
            .iter()
            .filter(|(name, value)| {
                !(value.trim() == ANY && (name == "status" || name == "snoozed"))
                    && !(me && name == "assignee")
            })
            .cloned()
            .collect();
        let mut filter = Parameters(&kept).dead_letters(now)?;
        if !any {
            filter.status = filter.status.or(Some(DeadLetterStatus::Open));
        }
        if filter.status == Some(DeadLetterStatus::Open) && !is("snoozed", ANY) {
            filter.snoozed = filter.snoozed.or(Some(Relative { word: Snooze::Awake, now }));
        }
        if me {
            filter.assignee = Some(Assignee::Named(reader.to_owned()));
        }
        Ok(Self { filter, me })
    }

    /// A filter that was kept.
    pub(in crate::web::pages) fn of(filter: DeadLetterFilter) -> Self {
        Self { filter, me: false }
    }

    /// Everything that is set, in words: also what is meant when nothing is said.
    pub(in crate::web::pages) fn in_words(&self, causes: &[CauseRow], seen: Seen) -> Vec<(String, String)> {
        let words = |(name, value): (&'static str, String)| {
            let (label, value) = self.chip_words(name, &value, causes, seen);
            (label.to_owned(), value)
        };
        self.filter.pairs().into_iter().map(words).collect()
    }

    /// For addresses: without what is meant when nothing is said.
    pub(super) fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = short(&self.filter);
        if self.me {
            for (name, value) in &mut pairs {
                if *name == "assignee" {
                    ME.clone_into(value);
                }
            }
        }
        pairs
    }

    pub(super) fn is_default(&self) -> bool {
        self.pairs().is_empty()
    }

    pub(super) fn counted(&self, count: i64) -> String {
        let number = list::number(count);
        match (self.is_default(), count) {
            (true, _) => format!("{number} open"),
            (false, 0) => "none matches this filter".to_owned(),
            (false, 1) => "1 matches this filter".to_owned(),
            (false, _) => format!("{number} match this filter"),
        }
    }

    pub(super) fn first(&self) -> Vec<Select> {
        let status = self.filter.status.map(DeadLetterStatus::as_str);
        let age = self.filter.age.map(|at| at.word.as_str());
        let mut statuses = list::select("status", "Status", "", words_of(DeadLetterStatus::ALL), status);
        // An empty value would mean "open", as in an address without a status.
        if let Some(any) = statuses.choices.first_mut() {
            ANY.clone_into(&mut any.value);
            "Any".clone_into(&mut any.words);
        }
        vec![
            statuses,
            list::select(
                "certainty",
                "Certainty",
                "Any",
                words_of(Certainty::ALL),
                self.filter.certainty.map(Certainty::as_str),
            ),
            list::select(
                "next_action",
                "Next action",
                "Any",
                words_of(NextAction::ALL),
                self.filter.next_action.map(NextAction::as_str),
            ),
            list::select("age", "Opened", "Any time", words_of(Age::ALL), age),
        ]
    }

    pub(super) fn rest(&self, config: &Config, causes: &[CauseRow], people: &[UserRow]) -> Vec<Select> {
        let named = |name: &String| (name.clone(), name.clone());
        let destinations = config.destinations.keys().map(|name| (name.clone(), list::place(name)));
        let causes = causes.iter().map(|row| (row.cause.clone(), cause_name(row)));
        let filter = &self.filter;
        let assignee = if self.me { Some(ME) } else { filter.assignee.as_ref().map(Assignee::as_str) };
        let people = people.iter().filter(|user| user.disabled_at.is_none());
        let people = [(ME, "Me"), (NOBODY, "Nobody")]
            .map(|(value, words)| (value.to_owned(), words.to_owned()))
            .into_iter()
            .chain(people.map(|user| named(&user.name)));
        let mut selects = vec![
            list::select("type", "Type", "Any", config.operations.keys().map(named), filter.kind.as_deref()),
            list::select("destination", "Destination", "Any", destinations, filter.destination.as_deref()),
            list::select("cause", "Cause", "Any", causes, filter.cause.as_deref()),
            list::select(
                "severity",
                "Severity",
                "Any",
                words_of(Severity::ALL),
                filter.severity.map(Severity::as_str),
            ),
            list::select("assignee", "Who has it", "Anybody", people, assignee),
            self.snoozed(),
        ];
        // These are set by links only; the form must not drop them.
        for (name, label, value) in [
            ("from", "Opened from", filter.from.map(Timestamp::rfc3339)),
            ("to", "Opened before", filter.to.map(Timestamp::rfc3339)),
        ] {
            if let Some(value) = value {
                selects.push(list::select(name, label, "Any", [], Some(&value)));
            }
        }
        selects
    }

    fn snoozed(&self) -> Select {
        let open = self.filter.status == Some(DeadLetterStatus::Open);
        let asleep = (Snooze::Asleep.to_string(), "Only those".to_owned());
        // What is not only open is shown whole unless said otherwise.
        let (unsaid, other) = if open {
            ("Hidden", (ANY.to_owned(), "Shown too".to_owned()))
        } else {
            ("Shown too", (Snooze::Awake.to_string(), "Hidden".to_owned()))
        };
        let chosen = match self.filter.snoozed.map(|at| at.word) {
            Some(Snooze::Asleep) => Some(Snooze::Asleep.as_str()),
            Some(Snooze::Awake) => (!open).then_some(Snooze::Awake.as_str()),
            None => open.then_some(ANY),
        };
        list::select("snoozed", "Snoozed", unsaid, [asleep, other], chosen)
    }

    pub(super) fn chips(&self, causes: &[CauseRow], seen: Seen) -> Vec<Chip> {
        let pairs = self.pairs();
        let chip = |(name, value): &(&'static str, String)| {
            let (label, value) = self.chip_words(name, value, causes, seen);
            list::chip(PATH, &pairs, name, label, value)
        };
        pairs.iter().map(chip).collect()
    }

    fn chip_words(&self, name: &str, value: &str, causes: &[CauseRow], seen: Seen) -> (&'static str, String) {
        let filter = &self.filter;
        let full = |at: Option<Timestamp>| at.map_or_else(String::new, |at| When::at(at, seen).full);
        let word = |word: Option<String>| word.unwrap_or_else(|| value.to_owned());
        match name {
            "status" => ("Status", word(filter.status.map(Mark::word)).replace(ANY, "any, closed ones too")),
            "certainty" => ("Certainty", word(filter.certainty.map(Mark::word))),
            "type" => ("Type", value.to_owned()),
            "destination" => ("Destination", list::place(value)),
            "cause" => {
                let known = causes.iter().find(|row| row.cause == value).map(cause_name);
                ("Cause", known.unwrap_or_else(|| value.to_owned()))
            }
            "severity" => ("Severity", word(filter.severity.map(Mark::word))),
            "assignee" => ("Who has it", value.to_owned()),
            "next_action" => ("Next action", word(filter.next_action.map(Mark::word))),
            "snoozed" => (
                "Snoozed",
                match filter.snoozed.map(|at| at.word) {
                    Some(Snooze::Asleep) => "only those",
                    Some(Snooze::Awake) => "hidden",
                    None => "shown too",
                }
                .to_owned(),
            ),
            "age" => ("Opened", word(filter.age.map(|at| at.word.word())).to_lowercase()),
            "from" => ("Opened from", full(filter.from)),
            "to" => ("Opened before", full(filter.to)),
            _ => ("Text", value.to_owned()),
        }
    }
}

/// A filter's pairs without what the list's page means when nothing is said.
fn short(filter: &DeadLetterFilter) -> Vec<(&'static str, String)> {
    let mut pairs = filter.pairs();
    let awake = filter.snoozed.is_some_and(|at| at.word == Snooze::Awake);
    match filter.status {
        Some(DeadLetterStatus::Open) => {
            pairs.retain(|(name, _)| *name != "status" && !(awake && *name == "snoozed"));
            if filter.snoozed.is_none() {
                pairs.push(("snoozed", ANY.to_owned()));
            }
        }
        Some(_) => {}
        None => pairs.insert(0, ("status", ANY.to_owned())),
    }
    pairs
}

/// The list's address under a filter.
pub(in crate::web::pages) fn link(filter: &DeadLetterFilter) -> String {
    list::address(PATH, &short(filter))
}

/// The words of an enum as choices.
pub(in crate::web::pages) fn words_of<T>(all: &'static [T]) -> impl Iterator<Item = (String, String)>
where
    T: Mark + std::fmt::Display + Copy,
{
    all.iter().map(|value| (value.to_string(), value.word()))
}

pub(super) fn cause_name(row: &CauseRow) -> String {
    let destination = list::place(&row.destination);
    let title = words::title(row.symptom).to_lowercase();
    format!("{destination}, {}: {title}", words::step_name(&row.step))
}
