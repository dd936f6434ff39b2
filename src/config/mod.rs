//! `dlo.toml`: what it may hold, what it means, and everything that is wrong with it.

mod audit;
mod auth;
mod body;
mod check;
mod condition;
mod credentials;
mod derive;
mod destination;
mod draft;
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
mod stated;
mod template;
mod value;
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::DeTable;

pub use audit::Audit;
pub use auth::Auth;
pub use body::BodyTemplate;
pub use condition::Condition;
pub use derive::{KeyFailure, MAX_SEARCH_VALUE};
pub use destination::{Breaker, Credential, Destination, Limit, Question};
pub use draft::Draft;
pub use guarantee::{ALWAYS, Guarantee, guarantees, promise, remarks};
pub use init::{init_text, write_secret_key};
pub use mistake::{ConfigError, Mistake};
pub use oidc::Oidc;
pub use operation::{OperationType, Runner, StepType, WORKER_METHOD, worker_lane};
pub use preset::{Preset, preset_names};
pub use request::{Asking, OperationFacts, RenderContext, RenderError};
pub use server::{Engine, ProxyHeader, RetryOverride, Server};
pub use source::{EventCondition, EventPlace, Mapping, Source};
pub use stated::Stated;
pub use template::{Place, Template, TemplateError};
pub use value::{REDACTED, Stored};
pub use words::{duration_text, parse_duration};

use crate::domain::keyring::Keyring;
use crate::domain::retry::RetryPolicy;
use reader::{Notes, Table};
use value::Origins;

/// Everything the file and the environment say, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file, as it was named.
    pub path: PathBuf,
    /// `[server]`.
    pub server: Server,
    /// `[auth]`.
    pub auth: Auth,
    /// `[audit]`.
    pub audit: Audit,
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
    /// What is unwise and yet no mistake.
    pub warnings: Vec<Mistake>,
    /// All of this as it is written.
    pub stated: Stated,
}

/// Tables that the public interface names and this version does not read.
const LATER: [&str; 1] = ["alerts"];

impl Config {
    /// Reads a file that takes no secret from the database; every mistake is reported, not only the
    /// first. [`Draft`] reads one that does.
    pub fn load(path: &Path, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Draft::load(path, env)?.complete(env, &Stored::new())
    }

    /// The same for a text that stands for the file at `path`.
    pub fn read(path: &Path, text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        Draft::read(path, text, env)?.complete(env, &Stored::new())
    }

    /// Reads a TOML text with a reader that notes its mistakes.
    fn document<T>(
        path: &Path,
        text: &str,
        env: &dyn Fn(&str) -> Option<String>,
        stored: Option<&Stored>,
        read: impl for<'a> FnOnce(&'a Notes<'a>, &Table<'a>) -> Option<T>,
    ) -> Result<T, ConfigError> {
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        let notes = Notes::new(path.display().to_string(), text, Origins { env, directory, stored });
        let (document, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            for error in errors {
                let message = error.message().lines().collect::<Vec<_>>().join(", ");
                let offset = error.span().map_or_else(|| deepest(text), |span| span.start);
                notes.mistake_in_text(offset, message);
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
        let audit = audit::read(root.table("audit"), directory, allow_private);
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
            audit,
            engine,
            retry,
            destinations,
            operations,
            sources,
            keyring,
            warnings: notes.heeded().warnings,
            stated: Stated::read(notes, root),
        })
    }
}

/// Where the line begins that nests the most: what the parser finds too deep, it does not place.
fn deepest(text: &str) -> usize {
    let depth = |line: &str| line.matches(['.', '[', '{']).count();
    let lines = text.split_inclusive('\n').scan(0, |start, line| {
        let at = *start;
        *start += line.len();
        Some((at, depth(line)))
    });
    // The first of several.
    lines.fold((0, 0), |most, line| if line.1 > most.1 { line } else { most }).0
}

#[cfg(test)]
mod tests;
