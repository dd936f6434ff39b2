//! `dlo erase`.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};

use anyhow::{Context as _, bail};

use super::Usage;
use super::context::Context;
use super::text::{clean, print};
use crate::engine::erasure::{self, Subject, Survey};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Whose data: a name that operations are searched by, and its value
    #[arg(value_name = "NAME=VALUE")]
    subject: String,
    /// Why, for whoever reads it later; it stays, so name nobody in it
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Do not ask for the value once more
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(context: &Context, args: &Args) -> anyhow::Result<()> {
    let Some((name, value)) = args.subject.split_once('=') else {
        return Err(Usage("write NAME=VALUE, such as customer=4711".to_owned()).into());
    };
    let subject = Subject::new(&context.config, name, value)?;
    let engine = context.engine();
    let survey = erasure::survey(engine.gate(), &subject).await?;
    if survey.is_empty() {
        bail!("no operation is found under this value, so there is nothing to erase");
    }
    print(&told(&survey))?;
    if !args.yes && !confirmed(&subject.value)? {
        bail!("nothing was erased");
    }
    let action = context.ambient.opaque().to_string();
    let answer = erasure::erase(engine.gate(), &subject, &context.request(&action, &args.reason))
        .await
        .context("if it had begun, the same command goes on where it stopped")?;
    print(&format!("{answer}.\n"))
}

fn told(survey: &Survey) -> String {
    let mut text = format!("Operations that can be erased: {}.\n", survey.settled);
    if survey.unsettled > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{} more are still tried or wait for a person. They stay; settle them, then erase again:",
            survey.unsettled
        );
        for id in &survey.named {
            let _ = writeln!(text, "  {id}");
        }
    }
    text.push_str("What became of them stays: attempts, outcomes, references, and who acted.\n");
    text
}

/// Asks for the value once more: what is erased cannot be brought back.
fn confirmed(value: &str) -> anyhow::Result<bool> {
    let mut input = std::io::stdin().lock();
    if !std::io::stdin().is_terminal() {
        return Err(Usage("there is nobody to ask here: say --yes".to_owned()).into());
    }
    eprint!("It cannot be brought back. Type {} to erase it: ", clean(value));
    std::io::stderr().flush().context("the terminal")?;
    let mut typed = String::new();
    input.read_line(&mut typed).context("the terminal")?;
    Ok(typed.trim() == value)
}
