//! `${…}` in a string: a value from the environment, from a file or from the database.
//!
//! What comes from a file or from the database is a secret. It may stand only where it is neither
//! stored nor shown, and nothing here prints it.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret as _, SecretString};

use super::words::{NAME_RULE, is_name};

/// Stored secrets by name; an error says why one that is stored cannot be read. One that is not
/// stored is absent.
pub type Stored = BTreeMap<String, Result<SecretString, String>>;

/// The largest file that holds a secret, in bytes.
const MOST: u64 = 64 * 1024;

/// Stands for a secret wherever a text that holds one is shown.
pub const REDACTED: &str = "[redacted]";

/// Where values come from.
pub(super) struct Origins<'a> {
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
    /// What files are relative to.
    pub(super) directory: PathBuf,
    /// Absent while the database has not been asked.
    pub(super) stored: Option<&'a Stored>,
}

/// A part of a string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Plain(&'t str),
    Variable(&'t str),
    File(&'t str),
    Stored(&'t str),
}

/// The parts of a string, in which `$${` stands for `${`; what is malformed in it.
pub(super) fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            parts.extend([Part::Plain(before), Part::Plain("${")]);
            rest = &from[2..];
            continue;
        }
        parts.push(Part::Plain(before));
        let (name, after) = from[2..].split_once('}').ok_or_else(malformed)?;
        parts.push(reference(name)?);
        rest = after;
    }
    parts.push(Part::Plain(rest));
    parts.retain(|part| *part != Part::Plain(""));
    Ok(parts)
}

fn reference(name: &str) -> Result<Part<'_>, String> {
    if let Some(path) = name.strip_prefix("file:") {
        return if path.is_empty() { Err(malformed()) } else { Ok(Part::File(path)) };
    }
    if let Some(name) = name.strip_prefix("secret:") {
        return if is_name(name) {
            Ok(Part::Stored(name))
        } else {
            Err(format!("in ${{secret:…}}, {NAME_RULE}"))
        };
    }
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts_well || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(malformed());
    }
    Ok(Part::Variable(name))
}

fn malformed() -> String {
    "write a variable as \"${NAME}\", a secret as \"${secret:NAME}\" or \"${file:PATH}\", and a plain \"${\" as \
     \"$${\""
        .to_owned()
}

/// A string with its values in place. Debug shows none of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Filled {
    /// As it is used.
    pub(super) text: SecretString,
    /// With [`REDACTED`] for each secret.
    pub(super) shown: String,
    /// Secrets from files and from the database.
    pub(super) secrets: Vec<SecretString>,
    /// Values from the environment, which are secrets where a credential is wanted.
    pub(super) variables: Vec<SecretString>,
    /// The database was not asked yet: [`REDACTED`] stands for what comes from there.
    pub(super) late: bool,
}

impl Filled {
    /// From each part and its value.
    pub(super) fn of(parts: &[(Part<'_>, SecretString)]) -> Self {
        let mut filled = Self::default();
        let mut text = String::new();
        for (part, value) in parts {
            text.push_str(value.expose_secret());
            match part {
                Part::Plain(plain) => filled.shown.push_str(plain),
                Part::Variable(_) => {
                    filled.shown.push_str(value.expose_secret());
                    filled.variables.push(value.clone());
                }
                Part::File(_) | Part::Stored(_) => {
                    filled.shown.push_str(REDACTED);
                    filled.secrets.push(value.clone());
                }
            }
        }
        Self { text: text.into(), ..filled }
    }
}

/// A secret in a file, without the end of its last line; and whether others than its owner and group
/// can read it.
pub(super) fn in_file(path: &Path) -> Result<(SecretString, bool), String> {
    let shown = path.display();
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file {shown}"),
        _ => format!("{shown} cannot be read: {error}"),
    };
    let about = std::fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() || about.len() > MOST {
        return Err(format!("{shown} is no file of at most {MOST} bytes"));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{shown} is not text in UTF-8"))?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if text.is_empty() {
        return Err(format!("{shown} is empty"));
    }
    Ok((text.into(), about.mode() & 0o004 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_falls_into_its_parts() {
        use Part::{File, Plain, Stored, Variable};
        for (text, wanted) in [
            ("Bearer ${TOKEN}", vec![Plain("Bearer "), Variable("TOKEN")]),
            ("${secret:crm-2}:${file:/run/x y}", vec![Stored("crm-2"), Plain(":"), File("/run/x y")]),
            ("a$${TOKEN}|$5|^a$", vec![Plain("a"), Plain("${"), Plain("TOKEN}|$5|^a$")]),
            ("", vec![]),
        ] {
            assert_eq!(parts(text), Ok(wanted), "{text}");
        }
        for text in ["${TOKEN", "${}", "${1A}", "${file:}", "${secret:}", "${secret:a b}", "${secret:../x}"] {
            assert!(parts(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_are_put_in_once_and_secrets_are_not_shown() {
        let value = |text: &str| SecretString::from(text);
        let filled = Filled::of(&[
            (Part::Plain("k="), value("k=")),
            (Part::Variable("A"), value("${secret:B}")),
            (Part::Stored("B"), value("hush")),
        ]);
        assert_eq!(filled.text.expose_secret(), "k=${secret:B}hush");
        assert_eq!(filled.shown, "k=${secret:B}[redacted]");
        assert_eq!((filled.secrets.len(), filled.variables.len()), (1, 1));
        assert!(!format!("{filled:?}").contains("hush"));
    }

    #[test]
    fn a_file_is_taken_without_its_last_line_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        for (written, wanted) in
            [("hush\n", "hush"), ("hush\r\n", "hush"), ("hush\n\n", "hush\n"), ("hush", "hush")]
        {
            std::fs::write(&path, written).unwrap();
            assert_eq!(in_file(&path).unwrap().0.expose_secret(), wanted);
        }
        for written in [&b""[..], b"\n", b"\xff"] {
            std::fs::write(&path, written).unwrap();
            assert!(in_file(&path).is_err());
        }
        assert!(in_file(&folder.path().join("absent")).unwrap_err().contains("there is no file"));
    }
}
