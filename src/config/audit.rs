//! `[audit]`: where the head of the audit's chain is told, so that a cut end shows.

use std::path::{Path, PathBuf};

use url::Url;

use super::reader::Table;
use super::server::web_address;

/// Places outside the database, besides the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// A file that lines are added to.
    pub anchor_file: Option<PathBuf>,
    /// An address that takes them as JSON.
    pub anchor_url: Option<Url>,
}

/// `[audit]`; a file is meant from the configuration's folder.
pub(super) fn read(table: Option<Table<'_>>, directory: &Path, allow_private: bool) -> Audit {
    let Some(table) = table else { return Audit::default() };
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
    table.finish();
    Audit { anchor_file, anchor_url }
}
