//! `[audit]`: where the head of the audit's chain is told, so that a cut end shows, and how often the
//! chain is verified.

use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::reader::Table;
use super::server::web_address;

/// More often would be all the time.
const SHORTEST: Duration = Duration::from_mins(1);

/// Places outside the database, besides the log; and how often it is compared with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// A file that lines are added to.
    pub anchor_file: Option<PathBuf>,
    /// An address that takes them as JSON.
    pub anchor_url: Option<Url>,
    /// How long after a walk of the whole chain the next begins; absent: no node walks it by itself.
    pub verify_every: Option<Duration>,
}

impl Default for Audit {
    fn default() -> Self {
        Self { anchor_file: None, anchor_url: None, verify_every: Some(Duration::from_hours(24)) }
    }
}

/// `[audit]`; a file is meant from the configuration's folder.
pub(super) fn read(table: Option<Table<'_>>, directory: &Path, allow_private: bool) -> Audit {
    let defaults = Audit::default();
    let Some(table) = table else { return defaults };
    let anchor_file = table.text("anchor_file").map(|name| directory.join(name));
    let anchor_url = table.text("anchor_url").and_then(|text| match web_address(&text) {
        Ok(url) if url.scheme() == "https" || allow_private => Some(url),
        Ok(_) => {
            table.mistake("anchor_url", "must begin with https://");
            None
        }
        Err(problem) => {
            table.mistake("anchor_url", problem);
            None
        }
    });
    let verify_every = match table.duration("verify_every") {
        None => defaults.verify_every,
        Some(Duration::ZERO) => None,
        Some(every) => {
            if every < SHORTEST {
                table.mistake("verify_every", "must be at least 1m, or \"0s\" for never");
            }
            Some(every)
        }
    };
    table.finish();
    Audit { anchor_file, anchor_url, verify_every }
}
