//! Reads the tables of a file, remembers where everything stands, and collects every mistake.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{ConfigError, Mistake};
use super::value::{self, Filled, Origins, Part, REDACTED};
use super::words::{is_name, parse_duration, suggest};

/// What is noted while a file is read.
pub(super) struct Notes<'a> {
    file: String,
    text: &'a str,
    origins: Origins<'a>,
    offsets: RefCell<HashMap<String, usize>>,
    mistakes: RefCell<Vec<Mistake>>,
    heeded: RefCell<Heeded>,
}

/// What is no mistake and yet worth knowing of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Heeded {
    /// The stored secrets that it takes, each with the place where it does.
    pub(super) named: Vec<(String, Mistake)>,
    /// What is unwise.
    pub(super) warnings: Vec<Mistake>,
}

impl<'a> Notes<'a> {
    pub(super) fn new(file: String, text: &'a str, origins: Origins<'a>) -> Self {
        Self {
            file,
            text,
            origins,
            offsets: RefCell::default(),
            mistakes: RefCell::default(),
            heeded: RefCell::default(),
        }
    }

    /// What was worth knowing so far.
    pub(super) fn heeded(&self) -> Heeded {
        self.heeded.borrow().clone()
    }

    /// A variable of the environment.
    pub(super) fn env(&self, name: &str) -> Option<String> {
        (self.origins.env)(name)
    }

    /// A mistake at a dotted key; the line is that of the key or of the nearest table around it.
    pub(super) fn mistake(&self, key: &str, problem: impl Into<String>) {
        self.mistakes.borrow_mut().push(self.said_of(key, problem));
    }

    fn said_of(&self, key: &str, problem: impl Into<String>) -> Mistake {
        let offsets = self.offsets.borrow();
        let mut near = key;
        let offset = loop {
            match (offsets.get(near), near.rfind(['.', '['])) {
                (Some(offset), _) => break Some(*offset),
                (None, Some(end)) => near = &near[..end],
                (None, None) => break None,
            }
        };
        self.placed(Some(self.file.clone()), offset, key, problem.into())
    }

    /// A mistake at an offset that no key stands for.
    pub(super) fn mistake_in_text(&self, offset: usize, problem: impl Into<String>) {
        let mistake = self.placed(Some(self.file.clone()), Some(offset), "", problem.into());
        self.mistakes.borrow_mut().push(mistake);
    }

    /// A mistake in a variable of the environment.
    pub(super) fn mistake_in_env(&self, name: &str, problem: impl Into<String>) {
        self.mistakes.borrow_mut().push(self.placed(None, None, name, problem.into()));
    }

    fn placed(&self, file: Option<String>, offset: Option<usize>, key: &str, problem: String) -> Mistake {
        let line = offset.map(|offset| self.text[..offset].matches('\n').count() + 1);
        Mistake { file, line, key: key.to_owned(), problem }
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

    /// All that it holds, as it is written.
    pub(super) fn keys(&self) -> &'a DeTable<'a> {
        self.keys
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

    /// The text with its variables replaced, for a place that is stored or shown and takes no secret.
    /// No message may show it all the same.
    pub(super) fn text(&self) -> Option<String> {
        Some(self.filled(false)?.text.expose_secret().to_owned())
    }

    /// The text with all its values, for a place that is neither stored nor shown. No message may show
    /// any of them.
    pub(super) fn secret(&self) -> Option<Filled> {
        self.filled(true)
    }

    /// Whether something other than what the file says goes into the text.
    pub(super) fn takes_values(&self) -> bool {
        let parts = self.value.get_ref().as_str().and_then(|raw| value::parts(raw).ok());
        parts.is_some_and(|parts| parts.iter().any(|part| !matches!(part, Part::Plain(_))))
    }

    fn filled(&self, secrets: bool) -> Option<Filled> {
        let Some(raw) = self.value.get_ref().as_str() else {
            self.wrong("a string");
            return None;
        };
        let parts = value::parts(raw).map_err(|problem| self.mistake(problem)).ok()?;
        let wrong_place =
            !secrets && parts.iter().any(|part| matches!(part, Part::File(_) | Part::Stored(_)));
        if wrong_place {
            self.mistake(
                "what stands here is stored or shown, so that it takes no secret; secrets go into the headers, \
                 the query and the base_url of a destination, into the secrets of a source and into client_secret",
            );
            return None;
        }
        // Every one is looked for before any is missed: all that is wrong is said at once.
        let values: Vec<Option<SecretString>> = parts.iter().map(|part| self.value_of(part)).collect();
        let values = values.into_iter().collect::<Option<Vec<_>>>()?;
        let late =
            self.notes.origins.stored.is_none() && parts.iter().any(|part| matches!(part, Part::Stored(_)));
        Some(Filled { late, ..Filled::of(&parts.into_iter().zip(values).collect::<Vec<_>>()) })
    }

    fn value_of(&self, part: &Part<'_>) -> Option<SecretString> {
        let found = match part {
            Part::Plain(text) => Ok((*text).into()),
            Part::Variable(name) => self
                .notes
                .env(name)
                .map(SecretString::from)
                .ok_or_else(|| format!("the environment has no variable {name}")),
            Part::File(path) => {
                value::in_file(&self.notes.origins.directory.join(path)).map(|(text, open)| {
                    if open {
                        self.warn(format!(
                            "everybody on this machine can read {path}; run `chmod 600` on it"
                        ));
                    }
                    text
                })
            }
            Part::Stored(name) => {
                let place = self.notes.said_of(&self.path, format!("takes the secret {name}"));
                self.notes.heeded.borrow_mut().named.push(((*name).to_owned(), place));
                let Some(stored) = self.notes.origins.stored else { return Some(REDACTED.into()) };
                match stored.get(*name) {
                    Some(Ok(secret)) => Ok(secret.clone()),
                    Some(Err(why)) => Err(format!("the secret {name} cannot be read: {why}")),
                    None => Err(format!("no secret {name} is stored; `dlo secret set {name}` stores it")),
                }
            }
        };
        found.map_err(|problem| self.mistake(problem)).ok()
    }

    fn warn(&self, problem: String) {
        let warning = self.notes.said_of(&self.path, problem);
        self.notes.heeded.borrow_mut().warnings.push(warning);
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
