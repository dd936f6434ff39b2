//! `dlo user`.

use std::io::{BufRead as _, Read as _};

use anyhow::{Context as _, bail};
use clap::Subcommand;

use super::context::{Context, ORIGIN, setup_link};
use super::text::{clean, print, table};
use crate::accounts::{self, MAX_PASSWORD, NewPassword};
use crate::store::{accounts as stored, identities};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add a person, and print a one-time link with which they set their password
    Add {
        /// What they sign in with
        name: String,
        /// What they may do: viewer, operator, approver, admin (each holds the rights of those
        /// before it), or a role of the configuration's own
        #[arg(long)]
        role: String,
        /// Take the password from the first line of stdin instead of printing a link
        #[arg(long)]
        password_stdin: bool,
    },
    /// List everybody
    List,
    /// Shut a person out, at once
    Disable {
        /// Their name
        name: String,
    },
    /// Change what a person may do; their sessions end
    Role {
        /// Their name
        name: String,
        /// The new role: viewer, operator, approver, admin, or one of the configuration's own
        role: String,
    },
    /// Remove a person's second factor, as when their phone is lost; their sessions end
    ForgetSecondFactor {
        /// Their name
        name: String,
    },
    /// Print a one-time link with which a person sets a new password
    ///
    /// The old password works until the link is used.
    Reset {
        /// Their name
        name: String,
        /// Set it now, from the first line of stdin, instead of printing a link; their sessions end
        #[arg(long)]
        password_stdin: bool,
    },
}

pub(super) async fn run(context: &Context, command: Command) -> anyhow::Result<()> {
    let (db, ambient, by) = (&context.db, &context.ambient, context.by());
    match command {
        Command::Add { name, role, password_stdin } => {
            let password = if password_stdin { Some(read_password(context)?) } else { None };
            let with_link = password.is_none();
            let user = accounts::add_user(db, ambient, &name, &role, password, &by).await?;
            let done = format!("Added {} as {role}.", user.name);
            if with_link { link(context, &user.name, &done).await } else { print(&format!("{done}\n")) }
        }
        Command::List => list(context).await,
        Command::Disable { name } => {
            accounts::disable(db, ambient, &name, &by).await?;
            print(&format!("{} can no longer sign in.\n", clean(&name)))
        }
        Command::Role { name, role } => {
            accounts::set_role(db, ambient, &name, &role, &by).await?;
            print(&format!("{} is now {role}.\n", clean(&name)))
        }
        Command::ForgetSecondFactor { name } => {
            accounts::remove_factors(db, ambient, &name, &by).await?;
            print(&format!("{} has no second factor any more, and has to sign in again.\n", clean(&name)))
        }
        Command::Reset { name, password_stdin: false } => {
            link(context, &name, "The old password works until the new one is set.").await
        }
        Command::Reset { name, password_stdin: true } => {
            let password = read_password(context)?;
            let secret = accounts::make_link(db, ambient, Some(&name), &by).await?;
            accounts::use_link(db, ambient, &secret, &name, password, ORIGIN).await?;
            print(&format!("{} has a new password; their sessions ended.\n", clean(&name)))
        }
    }
}

/// Prints a link that sets a person's password.
async fn link(context: &Context, name: &str, done: &str) -> anyhow::Result<()> {
    let secret = accounts::make_link(&context.db, &context.ambient, Some(name), &context.by()).await?;
    print(&format!(
        "{done}\nHand them this link; it works once, for 30 minutes:\n  {}\n",
        setup_link(&context.config, &secret)
    ))
}

async fn list(context: &Context) -> anyhow::Result<()> {
    let mut tx = context.db.read().await?;
    let people = stored::users(&mut tx).await?;
    let elsewhere = identities::users(&mut tx).await?;
    if people.is_empty() {
        return print("Nobody yet. `dlo user add NAME --role admin` adds the first.\n");
    }
    let rows: Vec<[String; 4]> = people
        .into_iter()
        .map(|user| {
            let state = match (user.disabled_at, &user.password_hash) {
                (Some(at), _) => format!("shut out since {}", day(at)),
                (None, _) if elsewhere.contains(&user.id) => "signs in at the provider".to_owned(),
                (None, None) => "has no password yet".to_owned(),
                (None, Some(_)) => "can sign in".to_owned(),
            };
            [
                clean(&user.name),
                clean(&context.config.auth.roles.of(&user.role).to_string()),
                day(user.created_at),
                state,
            ]
        })
        .collect();
    print(&table(["NAME", "ROLE", "SINCE", "STATE"], &rows))
}

/// A day in UTC.
pub(super) fn day(at: crate::domain::time::Timestamp) -> String {
    at.rfc3339().chars().take(10).collect()
}

/// The first line of stdin, which a prompt or a password store wrote.
fn read_password(context: &Context) -> anyhow::Result<NewPassword> {
    let mut line = String::new();
    let most = u64::try_from(MAX_PASSWORD * 4 + 2).unwrap_or(u64::MAX);
    std::io::stdin().lock().take(most).read_line(&mut line).context("the password cannot be read")?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        bail!("the first line of stdin holds no password");
    }
    let host = context.config.server.public_url.host_str().unwrap_or_default();
    Ok(NewPassword::from(password).at(host))
}
