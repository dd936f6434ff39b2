//! The strings: a file of kinds, what rules make of each, and what only rules can make.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

/// Every string, each once, in an order of its own for each run of the same program.
pub(super) fn strings() -> Vec<Vec<u8>> {
    let file: Vec<Vec<u8>> = include_str!("strings.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# ") && !line.starts_with("## "))
        .map(bytes)
        .collect();
    let mut all: Vec<Vec<u8>> = file.iter().flat_map(|one| variants(one)).collect();
    all.extend((0..=0x20).chain(0x7f..=0xff).map(|byte| vec![byte]));
    all.extend((0..=0x20).chain([0x7f, 0x85, 0xa0, 0x2028, 0x2029]).filter_map(char::from_u32).map(between));
    all.extend(long());
    let mut seen = BTreeSet::new();
    all.retain(|one| seen.insert(one.clone()));
    all
}

/// `\n`, `\r`, `\t`, `\0` and `\xHH` as the bytes they stand for; a doubled backslash is one.
fn bytes(line: &str) -> Vec<u8> {
    let mut rest = line.as_bytes();
    let mut bytes = Vec::new();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, taken) = match (first, after) {
            (b'\\', [b'n', ..]) => (b'\n', 2),
            (b'\\', [b'r', ..]) => (b'\r', 2),
            (b'\\', [b't', ..]) => (b'\t', 2),
            (b'\\', [b'0', ..]) => (0, 2),
            (b'\\', [b'\\', ..]) => (b'\\', 2),
            (b'\\', [b'x', high, low, ..]) => {
                let digits = String::from_utf8_lossy(&[*high, *low]).into_owned();
                (u8::from_str_radix(&digits, 16).expect("two digits of base 16"), 4)
            }
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[taken..];
    }
    bytes
}

/// The same where somebody looks for it only in its plain form.
fn variants(one: &[u8]) -> Vec<Vec<u8>> {
    let encoded = percent_encode(one, NON_ALPHANUMERIC).to_string();
    vec![
        one.to_vec(),
        [b"\"><x-hostile>", one].concat(),
        [one, b"\0"].concat(),
        encoded.into_bytes(),
        STANDARD.encode(one).into_bytes(),
    ]
}

fn between(letter: char) -> Vec<u8> {
    format!("a{letter}b").into_bytes()
}

/// What is too much of something.
fn long() -> Vec<Vec<u8>> {
    let mut all: Vec<String> = [64, 65, 200, 201, 255, 256, 1_000, 1_001, 4_096, 20_000]
        .into_iter()
        .flat_map(|length| ["A", "é", "👩"].map(|letter| letter.repeat(length)))
        .collect();
    all.extend([64, 65, 200, 5_000].map(|depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth))));
    all.extend([65, 5_000].map(|depth| r#"{"a":"#.repeat(depth)));
    all.push("\u{301}".repeat(2_000));
    all.push("a&".repeat(2_000));
    all.push("a=b;".repeat(500));
    all.push("9".repeat(400));
    all.push("../".repeat(300));
    all.push("(".repeat(3_000));
    all.into_iter().map(String::into_bytes).collect()
}

#[test]
fn there_are_enough_of_them() {
    let all = strings();
    assert!(all.len() >= 1_000, "{}", all.len());
    for wanted in [&b"<x-hostile>"[..], b"x\r\nSet-Cookie: dlo=evil", b"\xff\xfe", b"\\\\evil.example\\x"] {
        assert!(all.iter().any(|one| one == wanted), "{}", String::from_utf8_lossy(wanted));
    }
}
