//! `dlo secret`, `dlo key` and `dlo rotate-keys`: they work before the configuration is whole, since a
//! secret that is missing from it is what they bring.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use secrecy::SecretString;

use super::context::{self, ORIGIN, open_there, ready};
use super::people::day;
use super::text::{clean, counted, print, table};
use crate::accounts::{self, By, Keys, MAX_SECRET};
use crate::config::{self, Draft};
use crate::domain::ambient::Ambient;
use crate::store::{Db, secrets};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Store a secret that the configuration takes as "${secret:NAME}"; its value is read from stdin
    ///
    /// The end of the last line is left out. Sets it anew when it is there. A running `dlo serve`
    /// takes it when it starts again.
    Set {
        /// As the configuration calls it
        name: String,
    },
    /// List stored secrets: their names, and never their values
    List,
    /// Remove a secret
    ///
    /// One that the configuration takes is not removed.
    Remove {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a new secret key in a file of its own, and say how it takes over
    New {
        /// Where to write it; nothing is overwritten
        file: PathBuf,
    },
}

/// What these commands stand on.
struct Vault {
    draft: Draft,
    db: Db,
    ambient: Ambient,
}

impl Vault {
    async fn open(path: &Path) -> anyhow::Result<Self> {
        let draft = context::draft(path)?;
        let db = open_there(draft.server()).await?.keyed(draft.keyring().cloned());
        ready(&db).await?;
        Ok(Self { draft, db, ambient: Ambient::system() })
    }
}

pub(super) async fn run(path: &Path, command: Command) -> anyhow::Result<()> {
    // Read first: whoever types it is asked at once.
    let secret = match &command {
        Command::Set { .. } => Some(read_secret()?),
        Command::List | Command::Remove { .. } => None,
    };
    let vault = Vault::open(path).await?;
    let outcome = match (command, secret) {
        (Command::Set { name }, Some(secret)) => set(&vault, &name, &secret).await,
        (Command::Remove { name }, _) => remove(&vault, &name).await,
        (Command::Set { .. } | Command::List, _) => list(&vault).await,
    };
    vault.db.close().await;
    outcome
}

async fn set(vault: &Vault, name: &str, secret: &SecretString) -> anyhow::Result<()> {
    let actor = context::actor();
    let by = By { actor: &actor, origin: ORIGIN };
    let replaced = accounts::set_secret(&vault.db, &vault.ambient, name, secret, &by).await?;
    let done = if replaced { "has a new value" } else { "is stored" };
    let takes = vault.draft.named().iter().any(|(named, _)| named == name);
    let next = if takes {
        "A running `dlo serve` takes it when it starts again.".to_owned()
    } else {
        format!("The configuration does not take it yet: write \"${{secret:{name}}}\" where it belongs.")
    };
    print(&format!("The secret {name} {done}. {next}\n"))
}

async fn list(vault: &Vault) -> anyhow::Result<()> {
    let mut tx = vault.db.read().await?;
    let rows = secrets::list(&mut tx).await?;
    drop(tx);
    if rows.is_empty() {
        return print("No secrets yet. `dlo secret set NAME` stores one.\n");
    }
    let rows: Vec<[String; 5]> = rows
        .into_iter()
        .map(|row| {
            let takes = vault.draft.named().iter().filter(|(named, _)| *named == row.name).count();
            let takes = if takes == 0 { "not taken".to_owned() } else { counted(takes, "place") };
            [clean(&row.name), day(row.set_at), clean(&row.set_by), clean(&row.key_id), takes]
        })
        .collect();
    print(&table(["NAME", "SET", "BY", "KEY", "CONFIGURATION"], &rows))
}

async fn remove(vault: &Vault, name: &str) -> anyhow::Result<()> {
    if let Some((_, place)) = vault.draft.named().iter().find(|(named, _)| named == name) {
        bail!("{place}; take it out of the configuration first");
    }
    let actor = context::actor();
    let by = By { actor: &actor, origin: ORIGIN };
    accounts::remove_secret(&vault.db, &vault.ambient, name, &by).await?;
    print(&format!("The secret {} is removed.\n", clean(name)))
}

/// All of stdin without the end of its last line. Never an argument: those are for everybody to see
/// while a program runs, and stay in a shell's history.
fn read_secret() -> anyhow::Result<SecretString> {
    let mut text = String::new();
    let most = u64::try_from(MAX_SECRET + 3).unwrap_or(u64::MAX);
    std::io::stdin()
        .lock()
        .take(most)
        .read_to_string(&mut text)
        .context("the secret cannot be read from stdin")?;
    let secret =
        text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if secret.is_empty() {
        bail!("stdin holds no secret");
    }
    Ok(secret.into())
}

pub(super) fn key(command: &KeyCommand) -> anyhow::Result<()> {
    let KeyCommand::New { file } = command;
    config::write_secret_key(file, Ambient::system().secret())
        .with_context(|| format!("{} cannot be written", file.display()))?;
    let file = file.display();
    print(&format!(
        "Wrote {file}. It takes over in four steps:\n\
         1. Under [server], name {file} as secret_key_file, and the present key's file in old_secret_key_files.\n\
         2. Start every `dlo serve` again: both keys open what is stored, new things hang on the new one.\n\
         3. `dlo rotate-keys` puts what is stored under the new key.\n\
         4. Leave the old file in old_secret_key_files: what the audit said before is verified with it, and operations \
         that were erased before are recognised by it. `dlo check`, `dlo rotate-keys` and the page Status say what each \
         key is needed for, and when nothing needs one any more.\n\
         Keep {file} secret and safe, and the old one too: neither is in a backup of the database.\n"
    ))
}

pub(super) async fn rotate(path: &Path) -> anyhow::Result<()> {
    let vault = Vault::open(path).await?;
    let outcome = rotated(&vault).await;
    vault.db.close().await;
    outcome
}

async fn rotated(vault: &Vault) -> anyhow::Result<()> {
    let actor = context::actor();
    let by = By { actor: &actor, origin: ORIGIN };
    let rotation = accounts::rotate_keys(&vault.db, &vault.ambient, &by).await?;
    let current = vault.db.keyring()?.current().id();
    let mut text = format!("{} to the key in use, {current}.\n", changed(rotation.changed));
    text.push_str(&told(&rotation.keys));
    print(&text)?;
    let Some((row, error)) = rotation.failed.first() else { return Ok(()) };
    let others = match rotation.failed.len() {
        1 => String::new(),
        n => format!(" ({} more like it)", n - 1),
    };
    bail!("{row}: {error}{others}; then run this again")
}

fn changed(count: usize) -> String {
    match count {
        1 => "1 stored secret was put".to_owned(),
        n => format!("{n} stored secrets were put"),
    }
}

/// How the keys stand, a line for each.
pub(super) fn told(keys: &Keys) -> String {
    keys.told().iter().map(|line| clean(line) + "\n").collect()
}
