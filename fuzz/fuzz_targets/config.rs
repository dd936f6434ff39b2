//! Any text as `dlo.toml`: it is understood, or each mistake says where it is, and none repeats a
//! secret of the environment.
#![no_main]

use dead_letter_office_fuzz::config::{guarantees, promise, remarks};
use dead_letter_office_fuzz::domain::time::Timestamp;
use dead_letter_office_fuzz::{PLANTED, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    // Names a file to read, which may be any of the machine's; or holds the secret itself.
    if text.contains("secret_key_file") || text.contains(PLANTED) {
        return;
    }
    match read(text) {
        Ok(config) => {
            let now = Timestamp::from_micros(1_796_000_000_000_000);
            for guarantee in guarantees(&config, now) {
                assert!(config.operations.contains_key(&guarantee.operation));
            }
            for destination in config.destinations.values() {
                assert!(!promise(destination, now).is_empty());
                assert!(remarks(destination).iter().all(|remark| !remark.is_empty()));
            }
            // Whoever prints a configuration to see what is wrong with it prints no credential.
            assert!(!format!("{:?}", config.keyring).contains("only for the fuzzer"));
        }
        Err(error) => {
            assert!(!error.mistakes.is_empty());
            let lines = text.lines().count().max(1);
            for mistake in &error.mistakes {
                assert!(!mistake.problem.trim().is_empty(), "{mistake:?}");
                let place = mistake.line.is_some() || !mistake.key.is_empty();
                assert!(place, "nobody can find {mistake:?}");
                // One past the last line is where a text ends that goes on.
                assert!(mistake.line.is_none_or(|line| (1..=lines + 1).contains(&line)), "{mistake:?}");
                let said = mistake.to_string();
                assert!(!said.contains(PLANTED), "{said}");
                assert!(!said.contains('\n'), "two lines of one mistake: {said:?}");
            }
        }
    }
});
