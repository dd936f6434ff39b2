//! What the program tells its operator while it runs: lines on stderr, so that stdout belongs to
//! the answers of commands. Payloads, keys and answers of destinations have no place in them.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Which lines are written.
const FILTER: &str = "DLO_LOG";
/// How: `text` or `json`.
const FORMAT: &str = "DLO_LOG_FORMAT";

/// A setting that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// No filter.
    #[error("{FILTER}: {0}; write a level such as \"info\", or \"warn,dead_letter_office=debug\"")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// Neither of the two forms.
    #[error("{FORMAT}: {0:?} is neither \"text\" nor \"json\"")]
    Format(String),
}

/// Begins to write lines, filtered by `DLO_LOG` or else by `default_filter`. Once a process.
pub fn start(default_filter: &str) -> Result<(), TelemetryError> {
    let filter = EnvFilter::try_new(setting(FILTER).as_deref().unwrap_or(default_filter))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match setting(FORMAT).as_deref() {
        None | Some("text") => {
            let colours = std::io::stderr().is_terminal() && setting("NO_COLOR").is_none();
            builder.with_ansi(colours).with_target(false).init();
        }
        Some("json") => builder.json().flatten_event(true).init(),
        Some(other) => return Err(TelemetryError::Format(other.to_owned())),
    }
    Ok(())
}

/// A variable of the environment; an empty one counts as absent.
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
