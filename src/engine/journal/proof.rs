//! Checks a file of entries that was exported: that none was taken out or put in, that each is what
//! its link says, and that no number is missing where the file holds all.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::file::described;
use super::{AuditReport, Proof};
use crate::domain::chain::{ChainKey, Seal};
use crate::domain::filter::AuditFilter;
use crate::domain::key::hex;
use crate::domain::keyring::Keyring;
use crate::store::audit::AuditRow;

/// An exported file, as it is read.
#[derive(Deserialize)]
struct Exported {
    of: String,
    entries: Vec<Box<RawValue>>,
    count: usize,
    key_id: String,
    seal: String,
}

/// What became of checking one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What it holds, as it says.
    pub of: String,
    /// How many entries.
    pub entries: usize,
    /// The least and the greatest number, where there are any.
    pub range: Option<(i64, i64)>,
    /// Entries whose words could not be compared: erased, or with private values masked.
    pub unread: usize,
    /// What does not fit, in words.
    pub faults: Vec<String>,
}

/// Checks a file's text; an error says why it is none that can be checked.
pub fn check(text: &str, keyring: &Keyring) -> Result<Checked, String> {
    let file: Exported = serde_json::from_str(text)
        .map_err(|error| format!("it is no export of the audit as JSON with its proof: {error}"))?;
    let unknown =
        |id: &str| format!("the secret key {id} is not here; name its file in old_secret_key_files");
    let key = keyring.named(&file.key_id).map(ChainKey::of).ok_or_else(|| unknown(&file.key_id))?;
    let mut checked = Checked { of: file.of.clone(), entries: file.entries.len(), ..Checked::default() };
    let mut seal = Seal::begin(&key);
    seal.add(file.of.as_bytes());
    for entry in &file.entries {
        seal.add(entry.get().as_bytes());
    }
    if hex(&seal.close()) != file.seal || file.count != file.entries.len() {
        checked.faults.push(
            "The seal does not fit: an entry was altered, taken out, put in or moved since the export."
                .to_owned(),
        );
    }
    let mut numbers = Vec::with_capacity(file.entries.len());
    for (index, entry) in file.entries.iter().enumerate() {
        let report: AuditReport = serde_json::from_str(entry.get())
            .map_err(|error| format!("entry {} of the file cannot be read: {error}", index + 1))?;
        let Some(proof) = report.proof.clone() else {
            checked.faults.push(format!("{} has no proof.", report.id));
            continue;
        };
        numbers.push(proof.seq);
        match keyring.named(&proof.key_id).map(ChainKey::of) {
            None => checked.faults.push(format!("No. {}: {}.", proof.seq, unknown(&proof.key_id))),
            Some(key) => fits(&key, report, &proof, &mut checked),
        }
    }
    numbers.sort_unstable();
    checked.range = numbers.first().copied().zip(numbers.last().copied());
    if file.of == described(&AuditFilter::default()) {
        numbers.insert(0, 0);
        let missing = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1);
        checked.faults.extend(missing.map(|pair| match (pair[0] + 1, pair[1] - 1) {
            (from, to) if from < to => format!("No. {from} to {to} are missing."),
            (one, same) if one == same => format!("No. {one} is missing."),
            _ => format!("No. {} stands there twice.", pair[0]),
        }));
    }
    Ok(checked)
}

/// Whether an entry is what its link says.
fn fits(key: &ChainKey, report: AuditReport, proof: &Proof, checked: &mut Checked) {
    let row = AuditRow::from(report);
    let bytes = |text: &str| from_hex(text).unwrap_or_default();
    let words = bytes(&proof.words);
    let erased = proof.erased.as_deref().map(bytes);
    let facts = row.facts(proof.seq, &words, erased.as_deref());
    let named = format!("No. {} ({} by {}, {})", proof.seq, row.action, row.actor, row.at.rfc3339());
    if hex(&key.link(&bytes(&proof.previous), &facts)) != proof.mac {
        checked.faults.push(format!("{named} is not what its link says."));
        return;
    }
    match &proof.salt {
        None => checked.unread += 1,
        Some(salt) if key.words(&bytes(salt), row.reason.as_deref(), &row.detail) != words => {
            checked.faults.push(format!("{named} has another reason or detail than its link says."));
        }
        Some(_) => {}
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
