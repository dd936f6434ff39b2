//! What people and programs did, in words: one place for the audit page and the timeline.

use super::mask::Mask;
use crate::domain::dead_letter::Resolution;
use crate::domain::verdict::VerdictKind;
use crate::domain::words;
use crate::store::audit::{AuditRow, ERASED};

/// The actions that are written down, and what each is called. Others are shown by their own name.
pub const ACTIONS: &[(&str, &str)] = &[
    ("replay", "asked for a replay"),
    ("override", "asked for an override"),
    ("override_ask", "asked for a second person's word on an override"),
    ("override_approve", "approved an override"),
    ("override_refuse", "refused to approve an override"),
    ("override_withdraw", "took back a request for an override"),
    ("bulk", "asked for a bulk replay"),
    ("bulk_create", "chose the members of a bulk action"),
    ("bulk_start", "started a bulk action"),
    ("bulk_confirm", "confirmed a bulk action's first members"),
    ("bulk_pause", "paused a bulk action"),
    ("bulk_resume", "let a bulk action go on"),
    ("bulk_cancel", "cancelled a bulk action"),
    ("bulk_end", "saw a bulk action to its end"),
    ("lookup", "asked the destination"),
    ("pause", "paused a destination"),
    ("resume", "resumed a destination"),
    ("resolve", "closed a dead letter"),
    ("correct", "handed in a correction"),
    ("cause_note", "wrote a note on a cause"),
    ("cause_assign", "assigned a cause"),
    ("view_save", "kept a filter"),
    ("view_delete", "dropped a kept filter"),
    ("assign", "assigned a dead letter"),
    ("snooze", "snoozed a dead letter"),
    ("note", "wrote a note"),
    ("reopen", "opened a dead letter again"),
    ("view_payload", "looked at private values"),
    ("hide_payload", "hid private values again"),
    ("export", "took records away as a file"),
    ("sign_in", "signed in"),
    ("sign_in_failed", "failed to sign in"),
    ("password_right", "gave their password"),
    ("second_factor_failed", "failed to show a second factor"),
    ("confirm", "confirmed that it was they"),
    ("sign_out", "signed out"),
    ("session_end", "ended a session"),
    ("user_add", "added a person"),
    ("user_role", "changed a person's role"),
    ("user_disable", "shut a person out"),
    ("user_enable", "let a person in again"),
    ("link", "made a one-time link"),
    ("password_set", "set a password by a link"),
    ("password_change", "changed a password"),
    ("second_factor_on", "set up a second factor"),
    ("second_factor_off", "turned a second factor off"),
    ("second_factor_remove", "removed a person's second factor"),
    ("recovery_codes", "made recovery codes"),
    ("recovery_code_used", "used up a recovery code"),
    ("token_create", "made an access token"),
    ("secret_set", "stored a secret"),
    ("secret_remove", "removed a secret"),
    ("key_rotate", "put stored secrets under a new key"),
    ("token_revoke", "revoked an access token"),
    ("config_change", "started with other settings"),
    ("key_change", "started with another secret key"),
    ("chain_begin", "began the audit's chain with what stood there"),
    ("erase", "began to erase what is known of somebody"),
    ("erased", "erased what was known of somebody"),
    ("erase_words", "erased the words of entries"),
];

/// What was done.
pub fn what(action: &str) -> String {
    let known = ACTIONS.iter().find(|(name, _)| *name == action);
    known.map_or_else(|| words::step_name(action), |(_, words)| (*words).to_owned())
}

/// With what result, in words, and whether it was refused or failed.
pub fn result(row: &AuditRow) -> (String, bool) {
    // Refused as well, but nothing was to be sent.
    if matches!(row.action.as_str(), "sign_in_failed" | "second_factor_failed") {
        return ("Refused".to_owned(), true);
    }
    if let Ok(verdict) = row.result.parse::<VerdictKind>() {
        let refused =
            matches!(verdict, VerdictKind::LookUpFirst | VerdictKind::NeedsOverride | VerdictKind::Refused);
        return (words::verdict(verdict).to_owned(), refused);
    }
    if let Ok(resolution) = row.result.parse::<Resolution>() {
        return (words::resolution(resolution).label.to_owned(), false);
    }
    let refused = ["refused", "failed", "denied", "forbidden"].iter().any(|bad| row.result.starts_with(bad));
    (words::capitalised(&words::step_name(&row.result)), refused)
}

/// How overrides are named in what they leave behind, and in words.
const MODES: [(&str, &str); 2] =
    [("mode same_key", "under the same key"), ("mode new_effect", "under a new key, for a second effect")];

/// What else the entry tells, where its result does not say it already.
pub fn detail(row: &AuditRow, mask: &Mask) -> Option<String> {
    let accepted = row.result == VerdictKind::Accepted.as_str() && row.action != "override";
    let tells = !accepted || row.detail == ERASED;
    (!row.detail.is_empty() && tells)
        .then(|| MODES.iter().fold(mask.text(&row.detail), |text, (mode, words)| text.replace(mode, words)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;
    use uuid::Uuid;

    fn row(action: &str, result: &str) -> AuditRow {
        AuditRow {
            id: Uuid::nil(),
            at: Timestamp::from_micros(0),
            actor: "anna".into(),
            action: action.into(),
            operation_id: None,
            dead_letter_id: None,
            subject: None,
            reason: None,
            result: result.into(),
            detail: "why".into(),
            origin: "here".into(),
        }
    }

    #[test]
    fn results_are_words_and_refusals_are_marked() {
        for (given, wanted, refused) in [
            ("accepted", "Accepted: it will be sent", false),
            ("needs_override", "Only an override can send this", true),
            ("not_needed", "Not needed", false),
            ("done", "Done", false),
            ("failed: wrong password", "Failed: wrong password", true),
        ] {
            assert_eq!(result(&row("replay", given)), (wanted.to_owned(), refused));
        }
        assert_eq!(result(&row("sign_in_failed", "refused")), ("Refused".to_owned(), true));
        assert_eq!(what("replay"), "asked for a replay");
        assert_eq!(what("something_new"), "something new");
        assert_eq!(detail(&row("replay", "accepted"), &Mask::default()), None);
        assert_eq!(detail(&row("override", "accepted"), &Mask::default()).as_deref(), Some("why"));
    }
}
