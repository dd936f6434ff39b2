//! `dlo token`.

use std::time::Duration;

use clap::Subcommand;

use super::args;
use super::context::Context;
use super::people::day;
use super::text::{clean, print, table};
use crate::accounts;
use crate::domain::actor::Scope;
use crate::store::accounts as stored;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a token and print it, this once: only its hash is stored
    Create {
        /// What it is called in lists and in the audit
        name: String,
        /// What it is for
        #[arg(long, value_parser = args::words(Scope::ALL, Scope::as_str))]
        scope: Scope,
        /// How long it works, as in "90d"; without this, until it is revoked
        #[arg(long, value_name = "SPAN", value_parser = args::duration)]
        expires: Option<Duration>,
    },
    /// List all tokens, without their secrets
    List,
    /// End a token, at once
    Revoke {
        /// Its name
        name: String,
    },
}

pub(super) async fn run(context: &Context, command: Command) -> anyhow::Result<()> {
    let (db, ambient, by) = (&context.db, &context.ambient, context.by());
    match command {
        Command::Create { name, scope, expires } => {
            let secret = accounts::create_token(db, ambient, &name, scope, expires, &by).await?;
            eprintln!("This is shown once; send it as \"Authorization: Bearer TOKEN\".");
            // Alone on stdout, for scripts that keep it.
            print(&format!("{secret}\n"))
        }
        Command::List => list(context).await,
        Command::Revoke { name } => {
            accounts::revoke_token(db, ambient, &name, &by).await?;
            print(&format!("The token {} no longer works.\n", clean(&name)))
        }
    }
}

async fn list(context: &Context) -> anyhow::Result<()> {
    let now = context.ambient.now();
    let mut tx = context.db.read().await?;
    let tokens = stored::tokens(&mut tx).await?;
    if tokens.is_empty() {
        return print("No tokens yet. `dlo token create NAME --scope submit` makes one.\n");
    }
    let rows: Vec<[String; 6]> = tokens
        .into_iter()
        .map(|token| {
            let state = match (token.revoked_at, token.expires_at) {
                (Some(at), _) => format!("revoked on {}", day(at)),
                (None, Some(at)) if at <= now => format!("lapsed on {}", day(at)),
                (None, Some(at)) => format!("works until {}", day(at)),
                (None, None) => "works".to_owned(),
            };
            let used = token.last_used_at.map_or_else(|| "never".to_owned(), day);
            [
                clean(&token.name),
                token.scope.to_string(),
                day(token.created_at),
                clean(&token.created_by),
                used,
                state,
            ]
        })
        .collect();
    print(&table(["NAME", "SCOPE", "SINCE", "BY", "LAST USED", "STATE"], &rows))
}
