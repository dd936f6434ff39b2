//! `dlo.toml`: what it may hold, what it means, and everything that is wrong with it.

mod auth;
mod body;
mod check;
mod condition;
mod derive;
mod destination;
mod guarantee;
mod init;
mod key;
mod mistake;
mod oidc;
mod operation;
mod preset;
mod reader;
mod request;
mod rules;
mod scope;
mod secret;
mod server;
mod source;
mod template;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

pub use auth::Auth;
pub use body::BodyTemplate;
pub use condition::Condition;
pub use derive::{KeyFailure, MAX_SEARCH_VALUE};
pub use destination::{Breaker, Destination, Limit, Question};
pub use guarantee::{ALWAYS, Guarantee, guarantees, promise, remarks};
pub use init::{init_text, write_secret_key};
pub use mistake::{ConfigError, Mistake};
pub use oidc::Oidc;
pub use operation::{OperationType, Runner, StepType, WORKER_METHOD, worker_lane};
pub use preset::{Preset, preset_names};
pub use request::{Asking, OperationFacts, RenderContext, RenderError};
pub use server::{Engine, RetryOverride, Server};
pub use source::{EventCondition, EventPlace, Mapping, Source};
pub use template::{Place, Template, TemplateError};
pub use words::{duration_text, parse_duration};

use crate::domain::keyring::Keyring;
use crate::domain::retry::RetryPolicy;
use reader::{Notes, Table};

/// Everything the file and the environment say, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file, as it was named.
    pub path: PathBuf,
    /// `[server]`.
    pub server: Server,
    /// `[auth]`.
    pub auth: Auth,
    /// `[engine]`.
    pub engine: Engine,
    /// `[retry]`: what holds where a destination or a type states nothing.
    pub retry: RetryPolicy,
    /// `[destinations.NAME]` by name.
    pub destinations: BTreeMap<String, Destination>,
    /// `[operations.TYPE]` by name.
    pub operations: BTreeMap<String, OperationType>,
    /// `[sources.NAME]` by name.
    pub sources: BTreeMap<String, Source>,
    /// Absent when neither the environment nor the file names a secret key.
    pub keyring: Option<Keyring>,
}

/// Tables that the public interface names and this version does not read.
const LATER: [&str; 1] = ["alerts"];

impl Config {
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
        Self::document(path, text, env, |notes, root| Self::of(notes, path, root))
    }

    /// Reads a TOML text with a reader that notes its mistakes.
    fn document<T>(
        path: &Path,
        text: &str,
        env: &dyn Fn(&str) -> Option<String>,
        read: impl for<'a> FnOnce(&'a Notes<'a>, &Table<'a>) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let notes = Notes::new(path.display().to_string(), text, env);
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            for error in errors {
                let message = error.message().lines().collect::<Vec<_>>().join(", ");
                notes.mistake_in_text(error.span().map(|span| span.start), message);
            }
            return notes.finish(None);
        }
        let value = read(&notes, &Table::new(&notes, String::new(), document.get_ref()));
        notes.finish(value)
    }

    fn of<'a>(notes: &'a Notes<'a>, path: &Path, root: &Table<'a>) -> Option<Self> {
        for later in LATER {
            if let Some(item) = root.get(later) {
                item.mistake("comes with a later version; remove it for now");
            }
        }
        let server_table = root.table("server");
        let server = server::read_server(notes, server_table.as_ref());
        let directory = path.parent().unwrap_or(Path::new(""));
        let keyring = secret::read(notes, server_table.as_ref(), directory);
        if let Some(table) = &server_table {
            table.finish();
        }
        // What `[server]` says is not known when it holds mistakes: no others are made up from that.
        let allow_private = server.as_ref().is_none_or(|server| server.allow_private_destinations);
        let auth = auth::read(root.table("auth"), allow_private);
        let engine = server::read_engine(root.table("engine"));
        let retry = server::read_retry(root.table("retry")).over(&RetryPolicy::default());
        let around = destination::Surroundings { allow_private, lease: engine.lease };
        let destinations_table = root.table("destinations");
        let names: Vec<String> = destinations_table
            .iter()
            .flat_map(|table| table.entries().into_iter().map(|(name, _)| name))
            .collect();
        let destinations = destination::read_all(destinations_table, around);
        let known = operation::Known { destinations: &destinations, names: &names, retry: &retry };
        let operations = operation::read_all(root.table("operations"), &known);
        let sources = source::read_all(root.table("sources"), &operations);
        root.finish();
        check::windows(notes, &destinations, &operations);
        check::key_retention(notes, engine.key_retention, &destinations, &operations);
        Some(Self {
            path: path.to_owned(),
            server: server?,
            auth,
            engine,
            retry,
            destinations,
            operations,
            sources,
            keyring,
        })
    }
}

#[cfg(test)]
mod tests;
