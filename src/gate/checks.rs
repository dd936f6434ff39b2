//! The key checks: one function over facts, used alike by the engine's own retries, buttons, the
//! API, the command line and overrides.

use crate::domain::attempt::Waiver;
use crate::domain::contract::{Class, Contract};
use crate::domain::key::PayloadDigest;
use crate::domain::operation::StepState;
use crate::domain::retry::RetryPolicy;
use crate::domain::time::Timestamp;
use crate::domain::verdict::{Check, CheckName, VerdictKind};
use crate::domain::words;
use crate::store::work::WorkRow;

/// Who asks for a send, as far as the checks care.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The engine asks by itself, so its caps hold.
    pub automatic: bool,
    /// Checks that a person waived.
    pub waived: &'a [Waiver],
    /// Whether the person may; the text says what they would need.
    pub allowed: Result<(), String>,
}

/// What the checks found.
#[derive(Clone, Debug)]
pub struct Examination {
    /// The verdict that they lead to.
    pub verdict: VerdictKind,
    /// In a sentence that names what would help.
    pub reason: String,
    /// The first check that failed and was not waived.
    pub failed: Option<CheckName>,
    /// All of them, in order.
    pub checks: Vec<Check>,
}

impl Examination {
    /// Whether a send may follow.
    pub fn passed(&self) -> bool {
        self.failed.is_none()
    }
}

/// What a failed check leads to.
struct Failure {
    verdict: VerdictKind,
    detail: String,
    waiver: Option<Waiver>,
}

type Finding = Result<String, Failure>;

fn refused(detail: impl Into<String>) -> Finding {
    fails(VerdictKind::Refused, detail, None)
}

fn fails(verdict: VerdictKind, detail: impl Into<String>, waiver: Option<Waiver>) -> Finding {
    Err(Failure { verdict, detail: detail.into(), waiver })
}

#[allow(clippy::unnecessary_wraps, reason = "the other end of `fails`, of the same shape")]
fn passes(detail: impl Into<String>) -> Finding {
    Ok(detail.into())
}

/// Makes every check in order. The first that fails and is not waived decides.
pub fn examine(
    facts: &WorkRow,
    contract: Option<&Contract>,
    policy: &RetryPolicy,
    ask: &Ask<'_>,
    now: Timestamp,
) -> Examination {
    let findings = [
        (CheckName::PayloadUnchanged, payload_unchanged(facts)),
        (CheckName::StepNotCompleted, step_not_completed(facts)),
        (CheckName::NothingInFlight, nothing_in_flight(facts)),
        (CheckName::DestinationOpen, destination_open(facts, contract)),
        (CheckName::KeyWindowOpen, key_window_open(facts, contract, now)),
        (CheckName::OutcomeKnown, outcome_known(facts, contract, now)),
        (CheckName::WithinCaps, within_caps(facts, policy, ask, now)),
        (CheckName::Allowed, allowed(ask)),
    ];
    let mut examination = Examination {
        verdict: VerdictKind::Accepted,
        reason: "All checks passed.".to_owned(),
        failed: None,
        checks: Vec::with_capacity(findings.len()),
    };
    for (name, finding) in findings {
        let check = match finding {
            Ok(detail) => Check { name, passed: true, detail },
            Err(Failure { detail, waiver: Some(waiver), .. }) if ask.waived.contains(&waiver) => {
                Check { name, passed: true, detail: format!("Waived by an override. {detail}") }
            }
            Err(Failure { verdict, detail, .. }) => {
                if examination.failed.is_none() {
                    examination.verdict = verdict;
                    examination.reason.clone_from(&detail);
                    examination.failed = Some(name);
                }
                Check { name, passed: false, detail }
            }
        };
        examination.checks.push(check);
    }
    examination
}

fn payload_unchanged(facts: &WorkRow) -> Finding {
    if let Some(corrected) = facts.corrected_by {
        return refused(format!(
            "It was corrected: operation {corrected} took its place, so nothing is sent for this one."
        ));
    }
    let Some(payload) = &facts.payload else {
        return refused("The payload was erased, so it cannot be sent again.");
    };
    let digest = serde_json::from_str(payload).and_then(PayloadDigest::of);
    match digest {
        Ok(digest) if digest == facts.digest => {
            passes("The payload is the one that was first accepted under this key.")
        }
        _ => refused(
            "The stored payload is not the one that was accepted under this key. Nothing is sent; \
             submit a corrected operation under a new key.",
        ),
    }
}

fn step_not_completed(facts: &WorkRow) -> Finding {
    if facts.step_state == StepState::Completed {
        let reference =
            facts.reference.as_ref().map(|id| format!(" Its reference there is {id}.")).unwrap_or_default();
        return fails(
            VerdictKind::AlreadyDone,
            format!("\u{201c}{}\u{201d} was done already; nothing is sent.{reference}", facts.step),
            None,
        );
    }
    if facts.step_state == StepState::Skipped {
        let detail = format!("\u{201c}{}\u{201d} was passed over, and no step is left.", facts.step);
        return fails(VerdictKind::AlreadyDone, detail, None);
    }
    passes(format!("\u{201c}{}\u{201d} has not been confirmed as done.", facts.step))
}

fn nothing_in_flight(facts: &WorkRow) -> Finding {
    match (facts.live_since, facts.queued_at) {
        (Some(since), _) => {
            let by = facts.live_by.as_deref().unwrap_or("somebody");
            fails(
                VerdictKind::InFlight,
                format!(
                    "It is being sent already, asked for by {by}, since {}. Wait for its outcome.",
                    words::moment(since)
                ),
                None,
            )
        }
        (None, Some(since)) => fails(
            VerdictKind::InFlight,
            format!("It is in the queue already, since {}. Wait for its outcome.", words::moment(since)),
            None,
        ),
        (None, None) => passes("Nobody else is sending it."),
    }
}

fn destination_open(facts: &WorkRow, contract: Option<&Contract>) -> Finding {
    if contract.is_none() {
        return refused(format!(
            "The destination {} is no longer configured. Configure it again, then replay.",
            facts.destination
        ));
    }
    if let (Some(since), Some(by)) = (facts.paused_at, &facts.paused_by) {
        return refused(format!(
            "{} is paused, since {} by {by}: {} Resume it on its page, then replay.",
            there(facts),
            words::moment(since),
            words::full_stop(facts.pause_reason.as_deref().unwrap_or_default()),
        ));
    }
    passes(format!("{} takes requests.", there(facts)))
}

/// The destination at a sentence's beginning.
fn there(facts: &WorkRow) -> String {
    words::capitalised(&words::destination_name(&facts.destination))
}

fn in_doubt(facts: &WorkRow) -> bool {
    facts.step_state == StepState::Uncertain
}

fn key_window_open(facts: &WorkRow, contract: Option<&Contract>, now: Timestamp) -> Finding {
    let Some(contract) = contract else { return passes("The destination is not configured.") };
    if contract.naturally_idempotent {
        return passes("Repeating this request changes nothing there, so no key is needed.");
    }
    let Some(first) = facts.first_sent_at else {
        return passes("Nothing has been sent under this key yet.");
    };
    let Some(until) = contract.resend_until(first) else {
        return passes(format!("{} takes no key, so no window can close.", there(facts)));
    };
    if now < until {
        return passes(format!("{} recognises our key until {}.", there(facts), words::moment(until)));
    }
    if !in_doubt(facts) {
        return passes(format!(
            "The window closed at {}, and nothing that was sent is unaccounted for.",
            words::moment(until)
        ));
    }
    let verdict =
        if contract.lookup.is_some() { VerdictKind::LookUpFirst } else { VerdictKind::NeedsOverride };
    fails(
        verdict,
        format!(
            "{} stopped recognising our key at {}: a resend could happen a second time. Have \
             it asked whether it happened, record what you find out, or have it sent again anyway by somebody who \
             holds the right to override.",
            there(facts),
            words::moment(until)
        ),
        Some(Waiver::KeyWindow),
    )
}

fn outcome_known(facts: &WorkRow, contract: Option<&Contract>, now: Timestamp) -> Finding {
    if !in_doubt(facts) {
        return passes("Nothing that was sent is unaccounted for.");
    }
    let class = contract.map_or(Class::Neither, |contract| contract.class_at(facts.first_sent_at, now));
    match class {
        Class::Keyed => passes(format!(
            "An earlier send may have happened; {} recognises the same key and will not do it twice.",
            words::destination_name(&facts.destination)
        )),
        Class::Idempotent => passes(
            "An earlier send may have happened; repeating this request changes nothing there.".to_owned(),
        ),
        Class::LookupOnly => fails(
            VerdictKind::LookUpFirst,
            format!(
                "An earlier send may have happened, and {} must be asked before anything is sent again. \
                 Have it asked, or sent again anyway by somebody who holds the right to override.",
                words::destination_name(&facts.destination)
            ),
            Some(Waiver::UnknownOutcome),
        ),
        Class::Neither => fails(
            VerdictKind::NeedsOverride,
            format!(
                "An earlier send may have happened, and {} can neither recognise a repeat nor be asked. \
                 Find out by other means and record it as completed, or have it sent again anyway by somebody who \
                 holds the right to override.",
                words::destination_name(&facts.destination)
            ),
            Some(Waiver::UnknownOutcome),
        ),
    }
}

fn within_caps(facts: &WorkRow, policy: &RetryPolicy, ask: &Ask<'_>, now: Timestamp) -> Finding {
    if !ask.automatic {
        return passes(
            "Does not apply: they are for the engine\u{2019}s own tries, and a person asked for this.",
        );
    }
    if facts.tries >= i64::from(policy.attempts) {
        return fails(
            VerdictKind::Refused,
            format!("All {} attempts are used.", policy.attempts),
            Some(Waiver::Caps),
        );
    }
    // The age counts from the first try: work that waited in the queue was not tried too long.
    if facts.begun() && now > policy.ends(facts.since) {
        return fails(VerdictKind::Refused, "The policy's age is reached.", Some(Waiver::Caps));
    }
    passes(format!("{} of {} attempts are used.", facts.tries, policy.attempts))
}

fn allowed(ask: &Ask<'_>) -> Finding {
    match &ask.allowed {
        Ok(()) if ask.automatic => passes("The engine's own schedule."),
        Ok(()) => passes("You hold the right."),
        Err(needs) => refused(format!("You need {needs}.")),
    }
}
