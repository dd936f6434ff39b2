//! From nothing to a configuration that runs, and what is said on the way when it is wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use dead_letter_office::config::preset_names;

use super::House;

#[test]
fn a_fresh_folder_becomes_a_product() {
    let house = House::empty();
    let out = house.done(&["init", "shop"]);
    assert!(out.contains("shop/dlo.toml") && out.contains("shop/dlo.key"), "{out}");
    let key = house.path("shop/dlo.key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&key).unwrap().trim().len(), 44, "32 bytes in base64");

    let out = house.done(&["--config", "shop/dlo.toml", "check"]);
    assert!(out.contains("no mistakes"), "{out}");

    // What is documented can be used as it stands.
    let text = fs::read_to_string(house.path("shop/dlo.toml")).unwrap();
    let documented: String = text
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .fold(String::new(), |text, line| text + line + "\n");
    house.write("shop/all.toml", &documented);
    house.write("shop/dlo.key.old", &"o".repeat(64));
    let mut check = house.command(&["--config", "shop/all.toml", "check"]);
    check.env("CRM_TOKEN", "secret").env("BILLING_SECRET", "a secret of the billing");
    check.env("OIDC_SECRET", "another secret");
    let answer = super::answer(check, "");
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for said in [
        "create-ticket",
        "create ticket -> crm",
        "An override waits for a second person's word.",
        "at most one effect",
        "Nothing accepted is lost",
        "/hooks/billing (stripe)",
    ] {
        assert!(answer.out.contains(said), "{said}: {}", answer.out);
    }
    assert!(answer.out.lines().all(|line| line.chars().count() <= 100), "{}", answer.out);

    let first = house.dlo(&["--config", "shop/dlo.toml", "user", "list"]);
    assert_eq!(first.code, Some(1));
    assert!(first.err.contains("dlo migrate"), "{}", first.err);
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let number = |name: String| name.get(..4).and_then(|digits| digits.parse::<u32>().ok());
    let names = fs::read_dir(scripts).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let version = names.filter_map(number).max().expect("a script");
    let migrate = || house.done(&["--config", "shop/dlo.toml", "migrate"]);
    assert_eq!(migrate(), format!("SQLite: from empty to version {version}.\n"));
    assert_eq!(migrate(), format!("SQLite: at version {version} already.\n"));
    house.done(&["--config", "shop/dlo.toml", "user", "list"]);
}

#[test]
fn init_overwrites_nothing() {
    for there in ["dlo.toml", "dlo.key"] {
        let house = House::empty();
        house.write(there, "mine");
        let answer = house.dlo(&["init"]);
        assert_eq!(answer.code, Some(1));
        assert!(answer.err.contains(there) && answer.err.lines().count() == 1, "{}", answer.err);
        assert_eq!(fs::read_to_string(house.path(there)).unwrap(), "mine");
        assert_eq!(fs::read_dir(house.folder.path()).unwrap().count(), 1, "nothing else was written");
    }
}

#[test]
fn check_names_every_mistake_with_its_line() {
    let house = House::empty();
    house.write("dlo.toml", "[server]\nlisten = \"nowhere\"\n[engine]\nlease = \"soon\"\nconcurency = 3\n");
    let answer = house.dlo(&["check"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.out.is_empty());
    for mistake in ["dlo.toml:2: server.listen", "dlo.toml:4: engine.lease", "dlo.toml:5: engine.concurency"]
    {
        assert!(answer.err.contains(mistake), "{mistake}: {}", answer.err);
    }
    assert_eq!(answer.err.lines().count(), 3, "{}", answer.err);
    // The other commands say the same.
    assert_eq!(house.dlo(&["serve"]).err, answer.err);
}

#[test]
fn check_says_what_is_known_of_a_preset() {
    let house = House::empty();
    let destinations: String = preset_names()
        .map(|name| {
            let limit = "limit = { per_second = 2, in_flight = 1 }";
            format!(
                "[destinations.{name}]\nbase_url = \"https://there.example\"\npreset = \"{name}\"\n{limit}\n"
            )
        })
        .collect();
    house.write("dlo.toml", &destinations);
    let said = house.done(&["check"]);
    for name in preset_names() {
        assert!(said.contains(&format!("\nDestination {name}, preset \"{name}\":\n")), "{name}: {said}");
    }
    assert!(said.contains("as documented on 2026-11-29"), "{said}");
    assert!(said.contains("window is not verified: it counts as 0."), "{said}");
    assert!(said.contains("at most 2 requests a second and 1 request at a time"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 100), "{said}");
}

#[test]
fn wrong_usage_is_told_from_failure() {
    let house = House::empty();
    for wrong in [&["frobnicate"][..], &["user", "add", "vera", "--role", "king"], &["show"], &[]] {
        assert_eq!(house.dlo(wrong).code, Some(2), "{wrong:?}");
    }
    let answer = house.dlo(&["check"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("dlo init"), "{}", answer.err);
    let mut loud = house.command(&["check"]);
    loud.env("DLO_LOG_FORMAT", "yaml");
    let answer = super::answer(loud, "");
    assert_eq!(answer.code, Some(2));
    assert!(answer.err.contains("DLO_LOG_FORMAT"), "{}", answer.err);
}

#[test]
fn every_command_has_help() {
    let house = House::empty();
    let help = house.done(&["--help"]);
    for command in [
        "demo",
        "init",
        "check",
        "migrate",
        "serve",
        "user",
        "token",
        "submit",
        "show",
        "dead-letters",
        "replay",
        "resolve",
        "drill",
    ] {
        assert!(help.contains(&format!("\n  {command}")), "{command}: {help}");
        assert!(house.done(&[command, "--help"]).contains("Usage: dlo"));
    }
}
