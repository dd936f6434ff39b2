//! A file that was read before the secrets that it takes from the database: where that database is,
//! and with which keys they are opened, stands in the same file.
//!
//! With its secrets it is read a second time: each is judged where it stands, as any other value is,
//! and what is wrong besides is said before a database is asked.

use std::fmt;
use std::path::{Path, PathBuf};

use super::mistake::{ConfigError, Mistake};
use super::value::Stored;
use super::{Config, Server};
use crate::domain::keyring::Keyring;

/// A file without mistakes, as far as can be told without its stored secrets.
pub struct Draft {
    path: PathBuf,
    text: String,
    /// Of no use while a stored secret is missing from it.
    config: Config,
    named: Vec<(String, Mistake)>,
}

impl fmt::Debug for Draft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Draft {
    /// Reads a file and the environment; every mistake is reported, not only the first.
    pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let shown = path.display();
            ConfigError::whole(match error.kind() {
                std::io::ErrorKind::NotFound => {
                    format!("no configuration at {shown}; `dlo init` writes one")
                }
                _ => format!("{shown} cannot be read: {error}"),
            })
        })?;
        Self::read(path, &text, env)
    }

    /// The same for a text that stands for the file at `path`.
    pub fn read(path: &Path, text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let (config, named) = Config::document(path, text, env, None, |notes, root| {
            Some((Config::of(notes, path, root)?, notes.heeded().named))
        })?;
        Ok(Self { path: path.to_owned(), text: text.to_owned(), config, named })
    }

    /// `[server]`, which takes no secret.
    pub fn server(&self) -> &Server {
        &self.config.server
    }

    /// The keys of what is stored.
    pub fn keyring(&self) -> Option<&Keyring> {
        self.config.keyring.as_ref()
    }

    /// The stored secrets that the file takes, each with the place where it does.
    pub fn named(&self) -> &[(String, Mistake)] {
        &self.named
    }

    /// The configuration with these secrets; every one that is missing or does not fit is a mistake.
    pub fn complete(
        self,
        env: &dyn Fn(&str) -> Option<String>,
        stored: &Stored,
    ) -> Result<Config, ConfigError> {
        if self.named.is_empty() {
            return Ok(self.config);
        }
        let path = &self.path;
        Config::document(path, &self.text, env, Some(stored), |notes, root| Config::of(notes, path, root))
    }
}
