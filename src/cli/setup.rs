//! `dlo init`, `dlo check`, `dlo migrate`.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::Usage;
use super::context::{self, config, draft};
use super::secrets::told;
use super::text::{clean, counted, print, wrapped};
use crate::accounts::Keys;
use crate::config::{self, ALWAYS, Config, Source};
use crate::domain::ambient::Ambient;
use crate::domain::webhook::{EventId, Scheme};
use crate::domain::words;
use crate::store::Db;

#[derive(Debug, clap::Args)]
pub(super) struct InitArgs {
    /// Where to write; made when it is not there
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

pub(super) fn init(args: &InitArgs) -> anyhow::Result<()> {
    let (file, key) = (args.folder.join("dlo.toml"), args.folder.join("dlo.key"));
    // Looked at before anything is written, so that a refusal leaves nothing behind.
    for path in [&file, &key] {
        if path.symlink_metadata().is_ok() {
            bail!("{} is there already and is not overwritten", path.display());
        }
    }
    fs::create_dir_all(&args.folder).with_context(|| format!("{} cannot be made", args.folder.display()))?;
    config::write_secret_key(&key, Ambient::system().secret())
        .with_context(|| format!("{} cannot be written", key.display()))?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&file)
        .and_then(|mut out| out.write_all(config::init_text().as_bytes()))
        .with_context(|| format!("{} cannot be written", file.display()))?;
    let (file, key) = (file.display(), key.display());
    print(&format!(
        "Wrote {file} and {key}.\n\
         Next: edit {file}, then `dlo check` says what it promises, and `dlo serve` runs it.\n\
         Keep {key} secret and safe: it is in no backup of the database.\n"
    ))
}

pub(super) async fn check(path: &Path) -> anyhow::Result<()> {
    let takes = draft(path)?.named().len();
    let config = config(path).await?;
    let mut text = String::new();
    let mut last = "";
    let guarantees = config::guarantees(&config, Ambient::system().now());
    for guarantee in &guarantees {
        if guarantee.operation != last {
            last = &guarantee.operation;
            writeln!(text, "{}", guarantee.operation)?;
            if config.operations.get(last).is_some_and(|kind| kind.override_approval) {
                writeln!(text, "  An override waits for a second person's word.")?;
            }
        }
        writeln!(
            text,
            "  {} -> {}: {}",
            clean(&guarantee.step),
            guarantee.destination,
            words::class(guarantee.class).label.to_lowercase()
        )?;
        text.push_str(&wrapped(&guarantee.text, "    "));
    }
    if guarantees.is_empty() {
        writeln!(text, "No operation types yet: nothing can be submitted.")?;
    } else {
        writeln!(text, "\nFor every type:")?;
        for promise in ALWAYS {
            text.push_str(&wrapped(promise, "  "));
        }
    }
    for destination in config.destinations.values() {
        let remarks = config::remarks(destination);
        if !remarks.is_empty() {
            let preset = destination.preset.as_ref();
            let preset = preset.map_or_else(String::new, |preset| format!(", preset \"{}\"", preset.name));
            writeln!(text, "\nDestination {}{preset}:", destination.name)?;
        }
        for remark in remarks {
            text.push_str(&wrapped(&format!("- {remark}"), "  "));
        }
    }
    for source in config.sources.values() {
        writeln!(text, "\n/hooks/{} ({})", source.name, source.proof.scheme)?;
        for mapping in &source.events {
            writeln!(text, "  -> {}", mapping.operation)?;
            text.push_str(&wrapped(key_of(&config, source, &mapping.operation), "    "));
        }
    }
    writeln!(
        text,
        "\n{}: no mistakes; {} and {}.",
        path.display(),
        counted(config.operations.len(), "operation type"),
        counted(config.destinations.len(), "destination")
    )?;
    if config.server.allow_private_destinations {
        writeln!(text, "Requests may go to loopback and private networks, and over plain http.")?;
    }
    if takes > 0 {
        writeln!(text, "\n{} taken from the database.", secrets_are(takes))?;
    }
    let keys = keys(&config).await;
    match &keys {
        Ok(Some(keys)) => write!(text, "\n{}", told(keys))?,
        Ok(None) => {}
        Err(error) => writeln!(text, "\nWhich keys are needed was not looked up: {error:#}.")?,
    }
    for warning in &config.warnings {
        writeln!(text, "\nWarning: {warning}")?;
    }
    print(&text)?;
    match keys.ok().flatten().map_or(0, |keys| keys.missing().len()) {
        0 => Ok(()),
        1 => bail!(Usage("a secret key that is needed is not here; it is named above".to_owned())),
        _ => bail!(Usage("secret keys that are needed are not here; they are named above".to_owned())),
    }
}

fn secrets_are(count: usize) -> String {
    format!("{} {}", counted(count, "secret"), if count == 1 { "is" } else { "are" })
}

/// How the keys stand to what is stored; absent where there is no key, or no database of this version.
async fn keys(config: &Config) -> anyhow::Result<Option<Keys>> {
    let Some(keyring) = config.keyring.as_ref().filter(|_| Db::is_there(&config.server.database_url)) else {
        return Ok(None);
    };
    let db = context::open_database(config).await?;
    let keys = match db.version().await {
        Ok(version) if version == Db::newest_version() => {
            let mut tx = db.read().await?;
            Keys::look(&mut tx, keyring).await.map(Some)
        }
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    };
    db.close().await;
    Ok(keys?)
}

/// What makes two deliveries of a source one operation.
fn key_of(config: &Config, source: &Source, operation: &str) -> &'static str {
    if config.operations.get(operation).is_some_and(|kind| kind.key.is_some()) {
        "One operation for each key that the type makes of its payload."
    } else if source.proof.scheme == Scheme::Github && matches!(source.id, EventId::Header(_)) {
        "One operation for each event id. The id stands in a header that is not signed: whoever once saw a \
         message could send it again under another id. Give the type a key, or the source an id in the body."
    } else {
        "One operation for each event id."
    }
}

pub(super) async fn migrate(path: &Path) -> anyhow::Result<()> {
    let draft = draft(path)?;
    let db = Db::open(&draft.server().database_url).await.context("the database cannot be opened")?;
    let outcome = migrated(&db).await;
    db.close().await;
    print(&outcome?)
}

async fn migrated(db: &Db) -> anyhow::Result<String> {
    let (before, after) = db.migrate().await.context("the database cannot be brought to this version")?;
    Ok(match before {
        0 => format!("{}: from empty to version {after}.\n", db.product()),
        same if same == after => format!("{}: at version {after} already.\n", db.product()),
        older => format!("{}: from version {older} to {after}.\n", db.product()),
    })
}
