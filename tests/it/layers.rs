//! The layers of the house, read off the imports.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms that it may reach.
const ARROWS: [(&str, &[&str]); 10] = [
    ("domain", &[]),
    ("config", &["domain"]),
    ("store", &["domain"]),
    ("gate", &["store", "config", "domain"]),
    ("engine", &["gate", "store", "config", "domain"]),
    ("accounts", &["store", "domain"]),
    ("demo", &["accounts", "engine", "store", "config", "domain"]),
    ("drill", &["demo", "engine", "gate", "store", "config", "domain"]),
    ("web", &["accounts", "engine", "gate", "store", "config", "domain", "telemetry"]),
    (
        "cli",
        &["accounts", "engine", "gate", "store", "config", "domain", "demo", "drill", "web", "telemetry"],
    ),
];

/// What the pages may not touch although it is public: they ask, and never send.
const NOT_FOR_PAGES: [&str; 6] =
    ["gate::Permit", "gate::Settlement", "gate::Admission", "gate::ledger", "engine::send", "engine::worker"];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file below a folder with one of these endings, as its path from there and its text.
fn files(folder: &Path, endings: &[&str]) -> Vec<(String, String)> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let mut found = Vec::new();
    walk(folder, &mut found);
    found.retain(|path| path.extension().is_some_and(|end| endings.iter().any(|wanted| end == *wanted)));
    found.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).unwrap())
    };
    found.into_iter().map(read).collect()
}

/// A file's text without comments, in which examples name other rooms.
fn code(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn room(file: &str) -> &str {
    file.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// The rooms that a text reaches: the first word after each `crate::`, one by one where they stand
/// in braces.
fn reached(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `dollar crate` stands in macros, whose users it binds and not this file.
        let rest = &code[at + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let list = list.split_once(';').map_or(list, |(list, _)| list);
            let mut depth = 0;
            let mut word = String::new();
            for letter in list.chars() {
                match letter {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    ',' if depth == 0 => rooms.extend(first_word(&std::mem::take(&mut word))),
                    _ if depth == 0 => word.push(letter),
                    _ => {}
                }
            }
            rooms.extend(first_word(&word));
        } else {
            rooms.extend(first_word(rest));
        }
    }
    rooms
}

fn first_word(text: &str) -> Option<String> {
    let word: String =
        text.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    (!word.is_empty()).then_some(word)
}

#[test]
fn every_file_reaches_only_what_stands_left_of_it() {
    let rooms: Vec<&str> = ARROWS.iter().map(|(room, _)| *room).collect();
    let mut wrong = Vec::new();
    for (file, text) in files(&source(), &["rs"]) {
        let Some((own, allowed)) = ARROWS.iter().find(|(name, _)| *name == room(&file)) else {
            assert!(["lib", "main", "telemetry"].contains(&room(&file)), "{file} is in no known room");
            continue;
        };
        for other in reached(&code(&text)) {
            if rooms.contains(&other.as_str()) && other != *own && !allowed.contains(&other.as_str()) {
                wrong.push(format!("{file} reaches {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_reader_of_imports_finds_what_it_should() {
    let text = "use crate::store::{Db, Tx};\nuse crate::{gate::{Gate, x}, engine};\nlet a = crate::web::b();";
    let rooms: Vec<String> = reached(text).into_iter().collect();
    assert_eq!(rooms, ["engine", "gate", "store", "web"]);
    assert_eq!(code("//! use crate::web;\nlet a = 1;"), "let a = 1;");
}

#[test]
fn pages_cannot_send() {
    let pages = files(&source(), &["rs"]).into_iter().filter(|(file, _)| room(file) == "web");
    for (file, text) in pages {
        for forbidden in NOT_FOR_PAGES {
            assert!(!text.contains(forbidden), "{file} names {forbidden}");
        }
        for call in [".admit(", ".turn(", ".send(permit"] {
            assert!(!code(&text).contains(call), "{file} calls {call}");
        }
        for word in ["Permit", "Sender"] {
            // The library's channel has an end of that name, through which no operation leaves.
            let code = code(&text).replace("watch::Sender", "");
            let named = code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word);
            assert!(!named, "{file} names {word}");
        }
    }
}

/// Who may open a connection to somewhere else. All others ask the engine, whose sender takes a
/// permit, and whose sign-in and guard ask nobody that they were not told of.
#[test]
fn only_the_engine_reaches_out() {
    let may = |file: &str| {
        let engine = ["engine/send.rs", "engine/guard.rs", "engine/sso/http.rs"].contains(&file);
        engine || ["demo", "drill"].contains(&room(file))
    };
    for (file, text) in files(&source(), &["rs"]) {
        // A file's own tests, which stand at its end, are clients.
        let code = code(text.split("#[cfg(test)]").next().unwrap_or_default());
        // Methods and header names are its words too; and the connections that the desk accepts are of the
        // same type as those that somebody makes.
        let words = code.replace("reqwest::Method", "").replace("reqwest::header", "");
        for way in
            ["reqwest", "TcpStream::connect", "UdpSocket", "lookup_host", "hyper::client", "process::Command"]
        {
            assert!(may(&file) || !words.contains(way), "{file} names {way}");
        }
    }
}

fn is_ledger(file: &str) -> bool {
    file == "gate/ledger.rs" || file.starts_with("gate/ledger/")
}

#[test]
fn only_the_store_and_the_ledger_hold_statements() {
    for (file, text) in files(&source(), &["rs"]) {
        let may = room(&file) == "store" || is_ledger(&file);
        assert!(may || !code(&text).contains("sqlx::query"), "{file} holds a statement");
    }
}

#[test]
fn only_the_ledger_changes_attempts_steps_and_operations_and_retention_erases_them() {
    for (file, text) in files(&source(), &["rs"]) {
        if is_ledger(&file) || ["store/retention.rs", "store/erasure.rs"].contains(&file.as_str()) {
            continue;
        }
        for table in ["attempts", "steps", "operations"] {
            for change in ["UPDATE", "DELETE FROM"] {
                let found = code(&text).contains(&format!("{change} {table}"));
                assert!(!found, "{file} changes {table}");
            }
        }
        assert!(!text.contains("INSERT INTO attempts"), "{file} adds attempts");
    }
}

#[test]
fn no_template_trusts_what_is_stored() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    if !folder.exists() {
        return;
    }
    for (file, text) in files(&folder, &["html", "txt", "xml"]) {
        let squeezed: String = text.split_whitespace().collect();
        assert!(!squeezed.contains("|safe"), "{file} trusts a value");
        assert!(!squeezed.contains("{%autoescape"), "{file} changes the escaping");
    }
}
