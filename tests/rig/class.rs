//! What a destination promises about repeated requests.

use std::fmt;

/// The four contract classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    /// It honours our key.
    Keyed,
    /// Repeating the request converges.
    Upsert,
    /// It takes no key, and can be asked.
    Lookup,
    /// Neither.
    Neither,
}

impl Class {
    pub(crate) const ALL: [Self; 4] = [Self::Keyed, Self::Upsert, Self::Lookup, Self::Neither];

    /// In paths, names and keys.
    pub(crate) fn letter(self) -> &'static str {
        match self {
            Self::Keyed => "k",
            Self::Upsert => "u",
            Self::Lookup => "l",
            Self::Neither => "n",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.letter().to_ascii_uppercase())
    }
}
