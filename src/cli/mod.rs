//! The command line: what it takes, what it answers and its exit codes. Nothing imports it.
//!
//! 0: done. 1: what was asked for failed or was refused, with one line why on stderr. 2: wrong
//! usage or wrong configuration.

mod act;
mod args;
mod audit;
mod context;
mod dead_letters;
mod demo;
mod drill;
mod erase;
mod people;
mod run;
mod secrets;
mod serve;
mod setup;
mod show;
mod story;
mod submit;
mod text;
mod tokens;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::ConfigError;
use context::Context;

/// Carries out operations on other people's systems under idempotency keys, and gives support
/// staff a desk for what failed.
///
/// Begin with `dlo demo`, which shows the whole product and touches nothing else. For your own:
/// `dlo init`, edit dlo.toml, `dlo check`, `dlo serve`.
///
/// Exit codes: 0 done; 1 it failed or was refused, with one line why on stderr; 2 wrong usage or
/// wrong configuration.
#[derive(Debug, Parser)]
#[command(name = "dlo", version, arg_required_else_help = true, after_help = AFTER)]
pub struct Cli {
    /// The configuration file
    #[arg(long, global = true, env = "DLO_CONFIG", value_name = "FILE", default_value = "dlo.toml")]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

const AFTER: &str = "\
Environment: DLO_CONFIG, DLO_DATABASE_URL, DLO_LISTEN, DLO_PUBLIC_URL, DLO_SECRET_KEY or
DLO_SECRET_KEY_FILE override the file. DLO_LOG filters what is logged (default: info),
DLO_LOG_FORMAT=json writes it as JSON.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the whole product at work: desk, engine and a destination that fails on purpose
    ///
    /// Runs on an embedded database in a folder of its own and touches nothing else: neither
    /// --config nor the environment is read. Prints where the desk is and who to sign in as.
    Demo(demo::Args),
    /// Write a commented dlo.toml that starts as it is, and a secret key
    ///
    /// Refuses to overwrite either file.
    Init(setup::InitArgs),
    /// Check the configuration and print what each step of each type really promises
    ///
    /// Names file, line and key of every mistake, and exits 2 when there is one. Needs no database,
    /// unless the configuration takes secrets from there; where there is one, also says which secret
    /// keys it needs, and exits 2 when one is not here.
    Check,
    /// Bring the database to this version's schema
    Migrate,
    /// Run the desk and the engine until SIGINT or SIGTERM
    ///
    /// Brings the database to this version first. While nobody can sign in, prints a link that
    /// makes the first account; it works once, for 30 minutes. A signal lets the attempts under way
    /// end; a second one ends at once.
    Serve(serve::Args),
    /// Add people and change what they may do
    #[command(subcommand)]
    User(people::Command),
    /// Make and revoke tokens for the API
    #[command(subcommand)]
    Token(tokens::Command),
    /// Store secrets that the configuration takes from the database
    ///
    /// They are encrypted under the secret key, and nothing shows one again.
    #[command(subcommand)]
    Secret(secrets::Command),
    /// Make a secret key
    #[command(subcommand)]
    Key(secrets::KeyCommand),
    /// Put everything that is stored in envelopes under the secret key in use
    ///
    /// While it runs, and when it is broken off, both keys open what is stored. Says what each older key
    /// is needed for afterwards. Exits 1 when a key that is needed is not there, and says which.
    RotateKeys,
    /// Submit one operation and print it as JSON
    ///
    /// Returns when it is stored durably; a running `dlo serve` carries it out. The same key with
    /// the same payload again gives the stored operation with "duplicate": true.
    Submit(submit::Args),
    /// Tell everything that is known of one operation
    Show(show::Args),
    /// List dead letters: operations that wait for a person
    DeadLetters(dead_letters::Args),
    /// Try an operation again with its own key, through the key checks that every retry passes
    ///
    /// Prints the verdict, waits up to 30 seconds for the attempt, and says what came of it. Exits 0
    /// when it is done or was done already, else 1.
    Replay(act::ReplayArgs),
    /// Close a dead letter with a reason
    Resolve(act::ResolveArgs),
    /// Erase what is known of somebody: of all operations with one business id
    ///
    /// Payloads, requests, answers, business ids, keys, notes and reasons go; what became of each
    /// operation stays. What is still tried or waits for a person is named and not touched.
    Erase(erase::Args),
    /// Take the record of who did what out of the database, and verify it
    #[command(subcommand)]
    Audit(audit::Command),
    /// Show the promises at work, and write a dated report with the evidence of each
    ///
    /// Proves replay, race, exhaust, recover, lost answer and second operation, in a database of its
    /// own; the configured one is not touched. With --type, operations are really sent to that type's
    /// destination. Exits 1 when a proof fails.
    Drill(drill::Args),
    #[command(hide = true, name = drill::ENGINE)]
    DrillEngine(drill::EngineArgs),
}

/// Wrong usage that only became clear after the arguments were read: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Usage(String);

impl Cli {
    /// What is logged unless the environment says otherwise: the demo's own page must stay readable,
    /// and what goes wrong in a drill is in its report.
    pub fn default_filter(&self) -> &'static str {
        match self.command {
            Command::Demo(_) | Command::Drill(_) | Command::DrillEngine(_) => "error",
            _ => "info",
        }
    }

    /// Does what was asked for; the exit code.
    pub fn run(self) -> ExitCode {
        // Only a second installation fails, and the first does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = match tokio::runtime::Runtime::new() {
            Ok(runtime) => runtime,
            Err(error) => return complain(&error.into()),
        };
        let outcome = runtime.block_on(self.carry_out());
        // Whoever was told to end at once does not wait for a password's hash.
        runtime.shutdown_background();
        match outcome {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&error),
        }
    }

    async fn carry_out(self) -> anyhow::Result<()> {
        let config = self.config;
        match self.command {
            Command::Demo(args) => demo::run(args).await,
            Command::Init(args) => setup::init(&args),
            Command::Check => setup::check(&config).await,
            Command::Migrate => setup::migrate(&config).await,
            Command::Serve(args) => serve::run(&config, &args).await,
            Command::Secret(command) => secrets::run(&config, command).await,
            Command::Key(command) => secrets::key(&command),
            Command::RotateKeys => secrets::rotate(&config).await,
            Command::Drill(args) => drill::run(&config, args).await,
            Command::DrillEngine(args) => drill::engine(&config, args).await,
            other => {
                let context = Context::open(&config, other.is_on_record()).await?;
                let outcome = other.on(&context).await;
                context.close().await;
                outcome
            }
        }
    }
}

impl Command {
    /// Whether it can leave an entry in the audit, or reads that.
    fn is_on_record(&self) -> bool {
        matches!(
            self,
            Self::User(_)
                | Self::Token(_)
                | Self::Replay(_)
                | Self::Resolve(_)
                | Self::Audit(_)
                | Self::Serve(_)
        )
    }

    /// The commands that do one thing on a database that is there.
    async fn on(self, context: &Context) -> anyhow::Result<()> {
        match self {
            Self::User(command) => people::run(context, command).await,
            Self::Token(command) => tokens::run(context, command).await,
            Self::Submit(args) => submit::run(context, args).await,
            Self::Show(args) => show::run(context, &args).await,
            Self::DeadLetters(args) => dead_letters::run(context, args).await,
            Self::Replay(args) => act::replay(context, &args).await,
            Self::Resolve(args) => act::resolve(context, args).await,
            Self::Erase(args) => erase::run(context, &args).await,
            Self::Audit(command) => audit::run(context, command).await,
            Self::Demo(_)
            | Self::Init(_)
            | Self::Check
            | Self::Migrate
            | Self::Serve(_)
            | Self::Secret(_)
            | Self::Key(_)
            | Self::RotateKeys
            | Self::Drill(_)
            | Self::DrillEngine(_) => Ok(()),
        }
    }
}

/// Says why on stderr, and picks the exit code.
fn complain(error: &anyhow::Error) -> ExitCode {
    if let Some(mistakes) = error.downcast_ref::<ConfigError>() {
        eprintln!("{mistakes}");
        return ExitCode::from(2);
    }
    eprintln!("dlo: {}", text::clean(&format!("{error:#}")));
    ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn every_argument_is_well_defined() {
        super::Cli::command().debug_assert();
    }
}
