//! What the product knows and decides, as values: no IO, no clock and no randomness of its own.
//!
//! Everything here can be tested with a table. Nothing here may import another layer.

/// Declares an enum whose variants have one stored and published word each.
///
/// The word is what the database, the API, the command line and the query strings use, so it is
/// written once, here.
macro_rules! text_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$variant_meta])* $variant),+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stored and published word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::domain::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err($crate::domain::UnknownWord {
                        what: stringify!($name),
                        word: text.to_owned(),
                        known: &[$($text),+],
                    }),
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub mod actor;
pub mod ambient;
pub mod attempt;
pub mod bulk;
pub mod chain;
pub mod classify;
pub mod contract;
pub mod dead_letter;
pub mod decide;
pub mod envelope;
pub mod filter;
pub mod hide;
pub mod identity;
pub mod key;
pub mod keyring;
pub mod lookup;
pub mod name;
pub mod network;
pub mod operation;
pub mod retry;
pub mod sign_in;
pub mod time;
pub mod verdict;
pub mod webhook;
pub mod words;
pub mod zone;

/// A word that is none of an enum's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a {what}; known are {}", known.join(", "))]
pub struct UnknownWord {
    /// The enum's name.
    pub what: &'static str,
    /// What was given.
    pub word: String,
    /// What would have been understood.
    pub known: &'static [&'static str],
}
