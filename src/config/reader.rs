//! Reads the tables of a file, remembers where everything stands, and collects every mistake.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{ConfigError, Mistake};
use super::words::{ExpandError, expand, is_name, parse_duration, suggest};

/// What is noted while a file is read.
pub(super) struct Notes<'a> {
    file: String,
    text: &'a str,
    env: &'a dyn Fn(&str) -> Option<String>,
    offsets: RefCell<HashMap<String, usize>>,
    mistakes: RefCell<Vec<Mistake>>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(file: String, text: &'a str, env: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { file, text, env, offsets: RefCell::default(), mistakes: RefCell::default() }
    }

    /// A variable of the environment.
    pub(super) fn env(&self, name: &str) -> Option<String> {
        (self.env)(name)
    }

    /// A mistake at a dotted key; the line is that of the key or of the nearest table around it.
    pub(super) fn mistake(&self, key: &str, problem: impl Into<String>) {
        let offsets = self.offsets.borrow();
        let mut near = key;
        let offset = loop {
            match (offsets.get(near), near.rfind(['.', '['])) {
                (Some(offset), _) => break Some(*offset),
                (None, Some(end)) => near = &near[..end],
                (None, None) => break None,
            }
        };
        self.push(Some(self.file.clone()), offset, key, problem.into());
    }

    /// A mistake at an offset that no key stands for.
    pub(super) fn mistake_in_text(&self, offset: usize, problem: impl Into<String>) {
        self.push(Some(self.file.clone()), Some(offset), "", problem.into());
    }

    /// A mistake in a variable of the environment.
    pub(super) fn mistake_in_env(&self, name: &str, problem: impl Into<String>) {
        self.push(None, None, name, problem.into());
    }

    fn push(&self, file: Option<String>, offset: Option<usize>, key: &str, problem: String) {
        let line = offset.map(|offset| self.text[..offset].matches('\n').count() + 1);
        self.mistakes.borrow_mut().push(Mistake { file, line, key: key.to_owned(), problem });
    }

    fn note(&self, path: &str, offset: usize) {
        self.offsets.borrow_mut().insert(path.to_owned(), offset);
    }

    /// All mistakes, or the value that was read without any.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, ConfigError> {
        let mut mistakes = self.mistakes.into_inner();
        match value {
            Some(value) if mistakes.is_empty() => Ok(value),
            _ => {
                mistakes.sort_by_key(|mistake| mistake.line);
                Err(ConfigError { mistakes })
            }
        }
    }
}

/// One table under its dotted path.
pub(super) struct Table<'a> {
    pub(super) notes: &'a Notes<'a>,
    pub(super) path: String,
    keys: &'a DeTable<'a>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(notes: &'a Notes<'a>, path: String, keys: &'a DeTable<'a>) -> Self {
        Self { notes, path, keys, asked: RefCell::default() }
    }

    /// The dotted path of a key in this table.
    pub(super) fn at(&self, key: &str) -> String {
        let key = if is_name(key) { key.to_owned() } else { format!("{key:?}") };
        if self.path.is_empty() { key } else { format!("{}.{key}", self.path) }
    }

    /// A mistake at a key of this table.
    pub(super) fn mistake(&self, key: &str, problem: impl Into<String>) {
        self.notes.mistake(&self.at(key), problem);
    }

    fn item(&self, name: &str) -> Option<Item<'a>> {
        let (key, value) = self.keys.get_key_value(name)?;
        let path = self.at(name);
        self.notes.note(&path, key.span().start);
        Some(Item { notes: self.notes, path, value })
    }

    /// A known key's value, when it is there.
    pub(super) fn get(&self, key: &'static str) -> Option<Item<'a>> {
        self.asked.borrow_mut().insert(key);
        self.item(key)
    }

    /// Whether a known key is there.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.get(key).is_some()
    }

    /// Every key of a table whose keys are the user's own.
    pub(super) fn entries(&self) -> Vec<(String, Item<'a>)> {
        let names = self.keys.keys().map(|key| key.get_ref().to_string());
        names.filter_map(|name| self.item(&name).map(|item| (name, item))).collect()
    }

    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        self.get(key)?.text()
    }

    /// A text that must be there; `what` says what to write.
    pub(super) fn required(&self, key: &'static str, what: &str) -> Option<String> {
        let found = self.get(key);
        if found.is_none() {
            self.mistake(key, format!("is missing; write {what}"));
        }
        found?.text()
    }

    pub(super) fn duration(&self, key: &'static str) -> Option<Duration> {
        self.get(key)?.duration()
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        let item = self.get(key)?;
        let found = item.value.get_ref().as_bool();
        if found.is_none() {
            item.wrong("true or false");
        }
        found
    }

    /// A whole number of at least `least`.
    pub(super) fn whole<N: TryFrom<i64>>(&self, key: &'static str, least: i64) -> Option<N> {
        let item = self.get(key)?;
        let found = item.integer().filter(|number| *number >= least).and_then(|n| N::try_from(n).ok());
        if found.is_none() {
            item.mistake(format!("must be a whole number of at least {least}"));
        }
        found
    }

    /// A number, written with or without a fraction.
    pub(super) fn number(&self, key: &'static str) -> Option<f64> {
        let item = self.get(key)?;
        let found = match item.value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            _ => None,
        };
        if found.is_none() {
            item.wrong("a number");
        }
        found
    }

    pub(super) fn table(&self, key: &'static str) -> Option<Table<'a>> {
        self.get(key)?.table()
    }

    /// The tables of an array; none when the key is absent.
    pub(super) fn tables(&self, key: &'static str) -> Vec<Table<'a>> {
        self.list(key).into_iter().filter_map(|item| item.table()).collect()
    }

    /// The items of an array; none when the key is absent.
    pub(super) fn list(&self, key: &'static str) -> Vec<Item<'a>> {
        self.get(key).map(|item| item.list()).unwrap_or_default()
    }

    /// Reports the keys that nobody asked for.
    pub(super) fn finish(&self) {
        let asked = self.asked.borrow();
        let known: Vec<&str> = asked.iter().copied().collect();
        for (name, item) in self.entries() {
            if !asked.contains(name.as_str()) {
                item.mistake(format!("unknown key; {}", suggest(&name, &known)));
            }
        }
    }
}

/// One value under its dotted path.
pub(super) struct Item<'a> {
    pub(super) notes: &'a Notes<'a>,
    pub(super) path: String,
    pub(super) value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Item<'a> {
    pub(super) fn mistake(&self, problem: impl Into<String>) {
        self.notes.mistake(&self.path, problem);
    }

    /// Says what must stand here instead of what does.
    pub(super) fn wrong(&self, wanted: &str) {
        let found = self.value.get_ref().type_str();
        let article = if found.starts_with(['a', 'i']) { "an" } else { "a" };
        self.mistake(format!("must be {wanted}, not {article} {found}"));
    }

    /// The text with its variables replaced. No message may show it: it can hold a secret.
    pub(super) fn text(&self) -> Option<String> {
        let Some(raw) = self.value.get_ref().as_str() else {
            self.wrong("a string");
            return None;
        };
        match expand(raw, &|name| self.notes.env(name)) {
            Ok(text) => return Some(text),
            Err(ExpandError::Malformed) => {
                self.mistake("write a variable as \"${NAME}\", and a plain \"${\" as \"$${\"");
            }
            Err(ExpandError::Missing(name)) => {
                self.mistake(format!("the environment has no variable {name}"));
            }
        }
        None
    }

    pub(super) fn duration(&self) -> Option<Duration> {
        let wanted = "a duration such as \"30s\", \"5m\", \"24h\" or \"90d\"";
        if !self.value.get_ref().is_str() {
            self.wrong(wanted);
            return None;
        }
        let span = parse_duration(&self.text()?);
        if span.is_none() {
            self.mistake(format!("must be {wanted}"));
        }
        span
    }

    pub(super) fn integer(&self) -> Option<i64> {
        let integer = self.value.get_ref().as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    }

    pub(super) fn table(&self) -> Option<Table<'a>> {
        let found = self.value.get_ref().as_table();
        if found.is_none() {
            self.wrong("a table");
        }
        Some(Table::new(self.notes, self.path.clone(), found?))
    }

    /// The items of an array, each under its number, from 0.
    pub(super) fn list(&self) -> Vec<Item<'a>> {
        let Some(array) = self.value.get_ref().as_array() else {
            self.wrong("an array");
            return Vec::new();
        };
        let item = |(index, value): (usize, &'a Spanned<DeValue<'a>>)| {
            let path = format!("{}[{index}]", self.path);
            self.notes.note(&path, value.span().start);
            Item { notes: self.notes, path, value }
        };
        array.iter().enumerate().map(item).collect()
    }
}
