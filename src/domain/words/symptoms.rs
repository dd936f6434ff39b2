//! What was noticed, in words.

use super::names::said;
use super::{Facts, quoted, span};
use crate::domain::classify::Symptom;

/// A symptom as a heading.
pub fn title(symptom: Symptom) -> &'static str {
    use Symptom as S;
    match symptom {
        S::NotBuilt => "The request could not be put together",
        S::AddressRefused => "We do not send to this address",
        S::HeldBack => "Held back by our own limit",
        S::LostBeforeSending => "Interrupted before it was sent",
        S::Dns => "Its name was not found on the network",
        S::Connect => "No connection",
        S::TlsCut => "The secure connection broke off",
        S::TlsRefused => "Its certificate is not trusted",
        S::ProxyRefused => "Our proxy let nothing through",
        S::ProxyCredential => "Our proxy wants us to sign in",
        S::NeverWritten => "Nothing was sent",
        S::StreamRefused => "Turned away unread",
        S::Closed => "The connection ended without an answer",
        S::TimedOut => "No answer in time",
        S::Unparseable => "An answer nobody can read",
        S::StreamReset => "The exchange was broken off",
        S::TlsAlert => "The secure connection was refused after sending",
        S::LostAfterSending => "Interrupted while it was being sent",
        S::AnswerNotSaved => "The answer came and could not be saved",
        S::Done => "Done",
        S::Accepted => "Taken for processing",
        S::ResultLost => "Done, with its details lost",
        S::VerdictLost => "The part of the answer that decides was lost",
        S::Redirect => "It answered from another address",
        S::Rejected => "Refused as it stands",
        S::Credential => "Our sign-in is not accepted",
        S::Business => "Refused for a business reason",
        S::Forbidden => "We are not allowed to do this",
        S::NotFound => "Not found there",
        S::ServerError => "An error at the destination",
        S::InFlight => "Still being worked on there",
        S::KeyConflict => "This key is known there with other data",
        S::Conflict => "It clashes with something that exists there",
        S::Gone => "Closed for good",
        S::TooLarge => "Too large for the destination",
        S::NotProcessed => "Declined before anything was done",
        S::Locked => "Locked there",
        S::Throttled => "Too much at once",
        S::Unsupported => "The destination does not offer this",
        S::Gateway => "A relay on the way had no good answer",
        S::Found => "The destination has it",
        S::FoundOther => "The destination has something else under our reference",
        S::Absent => "The destination does not have it",
        S::TooEarly => "The destination does not show it yet",
        S::LookupFailed => "The destination could not say",
    }
}

/// A clause that tells what happened: no capital, no full stop, no word on the effect.
pub(super) fn happened(symptom: Symptom, facts: &Facts<'_>) -> String {
    use Symptom as S;
    let (d, step) = (facts.destination(), facts.step());
    let reason = said(facts.error).map(|text| format!(" and said {}", quoted(&text))).unwrap_or_default();
    match symptom {
        S::NotBuilt => match said(facts.error) {
            Some(text) => format!("the request for {step} could not be put together: {}", quoted(&text)),
            None => format!("the request for {step} could not be put together from the data"),
        },
        S::AddressRefused => {
            format!("the address of {d} is one that we must not send to, so {step} stayed here")
        }
        S::HeldBack => format!("{step} was held back by our own limit for {d}"),
        S::LostBeforeSending => format!("our side was interrupted before {step} was sent to {d}"),
        S::Dns => format!("the network address of {d} could not be found for {step}"),
        S::Connect => format!("{d} could not be reached for {step}"),
        S::TlsCut => format!("the secure connection to {d} broke off before {step} was sent"),
        S::TlsRefused => format!("the certificate of {d} is not trusted, so {step} was not sent to it"),
        S::ProxyRefused => format!("our own proxy did not let {step} through to {d}"),
        S::ProxyCredential => {
            format!("our own proxy wants us to sign in before it lets {step} through to {d}")
        }
        S::NeverWritten => format!("the connection to {d} was lost before {step} was sent"),
        S::StreamRefused => format!("{d} turned {step} away unread"),
        S::Closed => format!("{d} closed the connection without an answer to {step}"),
        S::TimedOut => match facts.timeout {
            Some(timeout) => format!("{d} took longer than {} to answer {step}", span(timeout)),
            None => format!("{d} took too long to answer {step}"),
        },
        S::Unparseable => format!("{d} answered {step} with something that cannot be read"),
        S::StreamReset => format!("{d} broke off the exchange while {step} was under way"),
        S::TlsAlert => format!("{d} refused the secure connection after {step} was on its way"),
        S::LostAfterSending => format!("our side was interrupted while {step} was being sent to {d}"),
        S::AnswerNotSaved => format!("{d} answered {step}, and the answer could not be saved here"),
        S::Done => format!("{d} confirmed {step}"),
        S::Accepted => format!("{d} took {step} for processing"),
        S::ResultLost => format!("{d} confirmed {step}, and the details of its answer were lost on the way"),
        S::VerdictLost => {
            format!("the part of the answer to {step} that decides was lost on the way from {d}")
        }
        S::Redirect => format!("{d} pointed {step} to another address, which we do not follow"),
        S::Rejected => format!("{d} refused {step}{reason}"),
        S::Credential => format!("{d} did not accept our sign-in for {step}"),
        S::Business => format!("{d} refused {step} for a business reason{reason}"),
        S::Forbidden => format!("{d} does not allow us to do {step}{reason}"),
        S::NotFound => format!("{d} did not find what {step} is about{reason}"),
        S::ServerError => format!("{d} answered {step} with an error of its own"),
        S::InFlight => format!("{d} is still working on an earlier send of {step}"),
        S::KeyConflict => format!("{d} already knows the key of {step} with other data"),
        S::Conflict => format!("{d} says that {step} clashes with something that exists there{reason}"),
        S::Gone => format!("{d} no longer offers {step}"),
        S::TooLarge => format!("{d} finds the data for {step} too large"),
        S::NotProcessed => format!("{d} declined {step} before doing anything"),
        S::Locked => format!("what {step} is about was locked at {d}"),
        S::Throttled => match facts.retry_after {
            Some(wait) if !wait.is_zero() => {
                format!("{d} had too much to do for {step} and asked us to come back in {}", span(wait))
            }
            Some(_) | None => format!("{d} had too much to do for {step} and asked us to come back later"),
        },
        S::Unsupported => format!("{d} does not offer what {step} needs"),
        S::Gateway => format!("a relay in front of {d} had no good answer to {step}"),
        S::Found => format!("{d} was asked about {step} and has it"),
        S::FoundOther => format!("{d} was asked about {step} and has other data under our reference"),
        S::Absent => format!("{d} was asked about {step} and does not have it"),
        S::TooEarly => format!("{d} was asked about {step} and does not show it yet"),
        S::LookupFailed => format!("{d} was asked about {step} and could not say"),
    }
}

/// Whether the attempt itself, and not only an earlier one, may have had an effect.
pub(super) const fn leaves_doubt(symptom: Symptom) -> bool {
    use Symptom as S;
    match symptom {
        S::Closed
        | S::TimedOut
        | S::Unparseable
        | S::StreamReset
        | S::TlsAlert
        | S::LostAfterSending
        | S::AnswerNotSaved
        | S::Done
        | S::Accepted
        | S::ResultLost
        | S::VerdictLost
        | S::ServerError
        | S::InFlight
        | S::Conflict
        | S::Gateway
        | S::Found
        | S::FoundOther
        | S::TooEarly
        | S::LookupFailed => true,
        S::NotBuilt
        | S::AddressRefused
        | S::HeldBack
        | S::LostBeforeSending
        | S::Dns
        | S::Connect
        | S::TlsCut
        | S::TlsRefused
        | S::ProxyRefused
        | S::ProxyCredential
        | S::NeverWritten
        | S::StreamRefused
        | S::Redirect
        | S::Rejected
        | S::Credential
        | S::Business
        | S::Forbidden
        | S::NotFound
        | S::KeyConflict
        | S::Gone
        | S::TooLarge
        | S::NotProcessed
        | S::Locked
        | S::Throttled
        | S::Unsupported
        | S::Absent => false,
    }
}
