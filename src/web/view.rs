//! Small things that many pages show: moments, long texts, references, buttons, fields.

use std::time::Duration;

use time::macros::format_description;

use crate::domain::time::Timestamp;
use crate::domain::words;
pub use crate::domain::words::grouped;
use crate::domain::zone::Zone;

/// From when and where a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The moment.
    pub now: Timestamp,
    /// The reader's zone.
    pub zone: Zone,
}

impl Seen {
    /// By somebody who has not signed in, so that nothing is known of their zone.
    pub fn by_nobody(now: Timestamp) -> Self {
        Self { now, zone: Zone::UTC }
    }
}

/// A moment: how long ago, and exactly when for those who ask.
#[derive(Clone, Debug)]
pub struct When {
    /// For machines.
    pub iso: String,
    /// "29 Nov 2026, 10:05:12 Europe/Berlin".
    pub full: String,
    /// The same, and in UTC beside it where that is another clock.
    pub both: String,
    /// "4 min ago", "in 2 h".
    pub ago: String,
}

impl When {
    /// `moment` as it is seen.
    pub fn at(moment: Timestamp, seen: Seen) -> Self {
        let Seen { now, zone } = seen;
        let utc = moment.utc();
        let iso = utc.format(format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z"));
        let ago = match (now.since(moment), moment.since(now)) {
            (past, ahead) if past.max(ahead) < Duration::from_secs(5) => "just now".to_owned(),
            (Duration::ZERO, ahead) => format!("in {}", coarse(ahead)),
            (past, _) => format!("{} ago", coarse(past)),
        };
        let full = zone.moment(moment);
        let both = match zone {
            Zone::UTC => full.clone(),
            _ => format!("{full}; {}", words::moment(moment)),
        };
        Self { iso: iso.unwrap_or_else(|_| moment.rfc3339()), full, both, ago }
    }
}

/// A span in its largest unit: what a glance needs.
pub fn coarse(span: Duration) -> String {
    match span.as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s / 60),
        s @ 3600..172_800 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}

/// A span for whoever compares it with another: two units, or a decimal below a minute.
pub fn exact(span: Duration) -> String {
    let two = |large: u64, unit: &str, small: u64, part: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {part}"),
    };
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{} ms", span.as_millis()),
        1..60 => {
            let tenths = span.subsec_millis() / 100;
            if tenths == 0 { format!("{seconds} s") } else { format!("{seconds}.{tenths} s") }
        }
        60..3600 => two(seconds / 60, "min", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds % 3600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h"),
    }
}

/// A text of any length. What is too long is cut, with the rest one click away.
#[derive(Clone, Debug)]
pub struct Long {
    /// The beginning, or all of it.
    pub head: String,
    /// All of it, when `head` is not.
    pub all: Option<String>,
    /// How much there is: "5,000 characters".
    pub size: String,
}

impl Long {
    /// Cuts after `most` characters or twelve lines.
    pub fn cut(text: impl Into<String>, most: usize) -> Self {
        let text = text.into();
        let by_length = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
        let by_lines = text.match_indices('\n').nth(11).map_or(text.len(), |(end, _)| end);
        let end = by_length.min(by_lines);
        let size = format!("{} characters", grouped(text.chars().count()));
        if end == text.len() {
            return Self { head: text, all: None, size };
        }
        Self { head: text[..end].to_owned(), all: Some(text), size }
    }

    /// A sentence or a name.
    pub fn line(text: impl Into<String>) -> Self {
        Self::cut(text, 240)
    }

    /// A body.
    pub fn block(text: impl Into<String>) -> Self {
        Self::cut(text, 1200)
    }
}

/// An id in another system, linked where an address is known.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The id, or its beginning.
    pub text: String,
    /// All of it, when `text` is not.
    pub whole: Option<String>,
    /// Where it is shown.
    pub href: Option<String>,
}

impl Reference {
    /// Only web addresses become links: an answer from outside must not choose another scheme.
    pub fn new(text: impl Into<String>, address: Option<&str>) -> Self {
        let href = address.filter(|a| a.starts_with("https://") || a.starts_with("http://"));
        Self::to(text.into(), href.map(str::to_owned))
    }

    /// To a page of the desk itself.
    pub fn here(text: impl Into<String>, path: impl Into<String>) -> Self {
        Self::to(text.into(), Some(path.into()))
    }

    fn to(text: String, href: Option<String>) -> Self {
        let Long { head, all, .. } = Long::cut(text, 80);
        match all {
            None => Self { text: head, whole: None, href },
            Some(all) => Self { text: format!("{head}\u{2026}"), whole: Some(all), href },
        }
    }
}

/// One line of a list of facts.
#[derive(Clone, Debug)]
pub struct Fact {
    /// "Order", "Key window".
    pub name: String,
    /// What it is.
    pub value: FactValue,
}

/// How a fact is shown.
#[derive(Clone, Debug)]
pub enum FactValue {
    /// Words.
    Text(Long),
    /// Something to be copied exactly.
    Code(Long),
    /// An id with a place.
    Link(Reference),
    /// A moment.
    Time(When),
    /// A moment and what it means.
    TimeWith(When, String),
}

impl Fact {
    /// A fact in words.
    pub fn text(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: FactValue::Text(Long::line(value)) }
    }

    /// A fact to be copied.
    pub fn code(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: FactValue::Code(Long::line(value)) }
    }

    /// A fact with a place.
    pub fn link(name: impl Into<String>, value: Reference) -> Self {
        Self { name: name.into(), value: FactValue::Link(value) }
    }

    /// A moment.
    pub fn time(name: impl Into<String>, value: When) -> Self {
        Self { name: name.into(), value: FactValue::Time(value) }
    }
}

/// An action, which most often leads to its own page.
#[derive(Clone, Debug)]
pub struct Button {
    /// What it does, in words.
    pub words: String,
    /// The page of its form, or where it posts to.
    pub href: String,
    /// Why it cannot be pressed; `None` when it can.
    pub needs: Option<String>,
    /// It acts at once, without a page between; what it sends.
    pub sends: Option<Vec<(&'static str, String)>>,
}

impl Button {
    /// One that can be pressed.
    pub fn new(words: impl Into<String>, href: impl Into<String>) -> Self {
        Self { words: words.into(), href: href.into(), needs: None, sends: None }
    }

    /// One that acts at once by posting these fields.
    pub fn act(
        words: impl Into<String>,
        href: impl Into<String>,
        fields: Vec<(&'static str, String)>,
    ) -> Self {
        Self { sends: Some(fields), ..Self::new(words, href) }
    }

    /// One that cannot, and why.
    pub fn locked(words: impl Into<String>, needs: impl Into<String>) -> Self {
        Self { words: words.into(), href: String::new(), needs: Some(needs.into()), sends: None }
    }
}

/// What cannot be pressed, grouped by what it needs: "Resolve, Assign", and why.
pub fn lacking(buttons: &[Button]) -> Vec<(String, &str)> {
    let mut groups: Vec<(String, &str)> = Vec::new();
    for button in buttons {
        let Some(needs) = button.needs.as_deref() else { continue };
        match groups.iter_mut().find(|(_, known)| *known == needs) {
            Some((words, _)) => {
                words.push_str(", ");
                words.push_str(&button.words);
            }
            None => groups.push((button.words.clone(), needs)),
        }
    }
    groups
}

/// A text field with what was typed and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Field {
    /// As typed; never a password.
    pub value: String,
    /// What is wrong with it.
    pub error: Option<String>,
}

impl Field {
    /// Holding `value`.
    pub fn of(value: impl Into<String>) -> Self {
        Self { value: value.into(), error: None }
    }

    /// Holding `value`, which is wrong.
    pub fn wrong(value: impl Into<String>, error: impl Into<String>) -> Self {
        Self { value: value.into(), error: Some(error.into()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_people_say_them() {
        let now = Timestamp::parse("2026-11-29T09:05:12Z").unwrap();
        let ago = |seconds| When::at(now.minus(Duration::from_secs(seconds)), Seen::by_nobody(now)).ago;
        let read: Vec<String> = [0, 42, 240, 7300, 90_000, 200_000].map(ago).into();
        assert_eq!(read, ["just now", "42 s ago", "4 min ago", "2 h ago", "25 h ago", "2 d ago"]);
        let soon = When::at(now.plus(Duration::from_mins(90)), Seen::by_nobody(now));
        assert_eq!((soon.ago.as_str(), soon.both.as_str()), ("in 1 h", "29 Nov 2026, 10:35:12 UTC"));
        let there = Seen { now, zone: Zone::named("America/New_York").unwrap() };
        let told = "29 Nov 2026, 04:05:12 America/New_York";
        assert_eq!(When::at(now, there).full, told);
        assert_eq!(When::at(now, there).both, format!("{told}; 29 Nov 2026, 09:05:12 UTC"));
    }

    #[test]
    fn spans_keep_what_matters() {
        let read = [320, 9_960, 10_000, 96_000, 7_500_000, 273_600_000];
        let read: Vec<String> = read.map(|ms| exact(Duration::from_millis(ms))).into();
        assert_eq!(read, ["320 ms", "9.9 s", "10 s", "1 min 36 s", "2 h 5 min", "3 d 4 h"]);
    }

    #[test]
    fn long_texts_are_cut_between_letters_and_lose_nothing() {
        let long = Long::cut("é".repeat(5000), 10);
        assert_eq!((long.head.chars().count(), long.size.as_str()), (10, "5,000 characters"));
        assert_eq!(long.all.unwrap().chars().count(), 5000);
        assert!(Long::line("short").all.is_none());
        assert_eq!(Long::block("x\n".repeat(40)).head.lines().count(), 12);
    }

    #[test]
    fn what_needs_the_same_right_is_said_in_one_line() {
        let buttons = [
            Button::locked("Replay", "operators"),
            Button::new("Note", "#note"),
            Button::locked("Override", "approvers"),
            Button::locked("Resolve", "operators"),
        ];
        let wanted = [("Replay, Resolve".to_owned(), "operators"), ("Override".to_owned(), "approvers")];
        assert_eq!(lacking(&buttons), wanted);
    }

    #[test]
    fn only_web_addresses_become_links() {
        assert!(Reference::new("x", Some("javascript:alert(1)")).href.is_none());
        assert!(Reference::new("x", Some("https://crm.example/1")).href.is_some());
    }
}
