use std::process::ExitCode;

use clap::Parser as _;
use dead_letter_office::cli::Cli;
use dead_letter_office::telemetry;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match telemetry::start(cli.default_filter()) {
        Ok(()) => cli.run(),
        Err(problem) => {
            eprintln!("dlo: {problem}");
            ExitCode::from(2)
        }
    }
}
