//! Tells what was swapped from what was altered: an entry that fits another's place was not changed,
//! only moved.

use std::collections::HashMap;

use super::walk::Suspect;
use crate::domain::chain::ChainKey;

/// Suspects that are looked at: what is tried grows with their number.
pub(super) const MOST: usize = 16;

/// Of those that fit elsewhere, their place among the faults and where they were linked. Whoever
/// swaps moves an entry, or an entry and its link; in each case the link before is one that stands
/// near a suspect.
pub(super) fn places(keys: &HashMap<String, Option<ChainKey>>, suspects: &[Suspect]) -> Vec<(usize, i64)> {
    let befores: Vec<&[u8]> =
        suspects.iter().flat_map(|suspect| [&suspect.previous[..], &suspect.walked.mac[..]]).collect();
    let belongs = |moved: &Suspect| {
        let row = moved.walked.row.as_ref()?;
        let mut others = suspects.iter().filter(|other| other.walked.seq != moved.walked.seq);
        others.find_map(|other| {
            let key = keys.get(&other.walked.key_id)?.as_ref()?;
            let seq = other.walked.seq;
            // Its words' digest moved along with it, or stayed with the link.
            let fits = [moved, other].iter().any(|link| {
                let facts = row.facts(seq, &link.walked.words, link.walked.erased.as_deref());
                befores.iter().any(|before| key.link(before, &facts) == link.walked.mac)
            });
            fits.then_some(seq)
        })
    };
    suspects.iter().filter_map(|suspect| Some((suspect.place, belongs(suspect)?))).collect()
}
