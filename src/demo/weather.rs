//! How the demo's destination behaves: a storm at the start, in which every state appears, then
//! weather that leaves a dead letter now and then, and none while many are open.

use std::time::Duration;

use super::destination::{Behaviour, Mix};
use super::goods::Kind;

/// One operation of the storm, and what its requests meet; after that they are carried out.
pub(super) struct Scene {
    pub(super) kind: Kind,
    pub(super) meets: Vec<Behaviour>,
    /// What a colleague does about it.
    pub(super) colleague: Option<Deed>,
}

/// What an invented colleague does with a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Replay,
    /// All of these at once, as a bulk action.
    ReplayMany,
    Resolve,
    /// Hands it to oscar.
    Assign,
    /// Puts it off until tomorrow.
    Snooze,
    Note,
    /// Writes what is known of its cause, and takes the cause.
    Explain,
    /// Wants it sent as a second effect, which somebody else has to approve.
    AskOverride,
    /// Nothing but seeing it, before the destination is held up.
    Look,
}

/// Every state that a person can meet, each certain to appear within seconds.
pub(super) fn storm() -> Vec<Scene> {
    let lost = || Behaviour::CloseAfterRead { effect: true };
    let no_customer = || Behaviour::error(422, "unknown_customer", "There is no such customer");
    let no_template = || Behaviour::error(422, "no_template", "The receipt template is not published");
    let locked = || Behaviour::error(423, "locked", "Somebody is editing this contact");
    let mut cannot_say = vec![Behaviour::Hang { effect: true }];
    cannot_say.extend(vec![Behaviour::error(500, "index_down", "The search index is being rebuilt"); 30]);
    let slow = |seconds| Behaviour::OkAfter(Duration::from_secs(seconds));
    let scene = |kind, meets| Scene { kind, meets, colleague: None };
    let handled = |kind, meets, deed| Scene { kind, meets, colleague: Some(deed) };
    vec![
        // Some that a colleague has settled by the time somebody signs in.
        handled(Kind::Ticket, vec![no_customer(), Behaviour::Ok], Deed::Replay),
        handled(Kind::Receipt, vec![lost()], Deed::Resolve),
        handled(Kind::Receipt, vec![no_template(), Behaviour::Ok], Deed::ReplayMany),
        handled(Kind::Receipt, vec![no_template(), Behaviour::Ok], Deed::ReplayMany),
        handled(Kind::Receipt, vec![no_template(), Behaviour::Ok], Deed::ReplayMany),
        // Under way.
        scene(Kind::Charge, vec![slow(4)]),
        scene(Kind::Charge, vec![slow(4)]),
        // Waits for its next attempt: not processed, and in doubt.
        scene(Kind::Charge, vec![Behaviour::retry_after(503, 45)]),
        scene(Kind::Charge, vec![Behaviour::StatusAfterEffect(500)]),
        // The helpdesk must be asked: in one case the ticket is there, in the other it is not.
        scene(Kind::Ticket, vec![Behaviour::Hang { effect: true }]),
        scene(Kind::Ticket, vec![Behaviour::Hang { effect: false }]),
        // And in a third it cannot say.
        scene(Kind::Ticket, cannot_say),
        // Nobody can know.
        scene(Kind::Receipt, vec![lost()]),
        handled(Kind::Receipt, vec![Behaviour::Garbage { effect: true }], Deed::Note),
        handled(Kind::Receipt, vec![Behaviour::Hang { effect: true }], Deed::Assign),
        // Refused: data, card, credential, right.
        handled(Kind::Ticket, vec![no_customer()], Deed::Explain),
        scene(
            Kind::Receipt,
            vec![Behaviour::error(422, "invalid_address", "The e-mail address is not valid")],
        ),
        handled(
            Kind::Charge,
            vec![Behaviour::error(402, "card_declined", "The card was declined")],
            Deed::Snooze,
        ),
        handled(
            Kind::Contact,
            vec![Behaviour::error(403, "no_permission", "This account may not change contacts")],
            Deed::Look,
        ),
        // Answers that a page could trip over.
        scene(Kind::Ticket, vec![Behaviour::HostileText]),
        scene(Kind::Charge, vec![Behaviour::CutBody { effect: true }]),
        scene(Kind::Contact, vec![Behaviour::SlowBody]),
        // Tried until no attempt is left, and it is proved that nothing happened.
        handled(Kind::Contact, vec![locked(), locked(), locked(), locked()], Deed::Look),
        // Never cleared up, though the destination recognises a repeat.
        handled(Kind::Charge, vec![lost(), lost(), lost(), lost()], Deed::AskOverride),
    ]
}

/// What holds a whole destination up, once the storm has shown what it had to: a word to wait, and a
/// sign-in that is no longer accepted, which pauses the CRM until somebody resumes it.
pub(super) fn aftermath() -> Vec<Scene> {
    let scene = |kind, meets| Scene { kind, meets, colleague: None };
    vec![
        scene(Kind::Charge, vec![Behaviour::retry_after(429, 15)]),
        scene(
            Kind::Contact,
            vec![
                Behaviour::retry_after(421, 2),
                Behaviour::error(401, "token_expired", "The access token has expired"),
            ],
        ),
    ]
}

/// Where the destination takes requests.
const PATHS: [&str; 5] =
    ["/lookup/tickets", "/keyed/charges", "/plain/receipts", "/plain/confirmations", "/keyed/contacts"];

/// The weather after the storm. With `calm`, nothing ends as a dead letter.
pub(super) fn weather(calm: bool) -> [(&'static str, Mix); 5] {
    let dead = u32::from(!calm);
    let slow = |millis| Behaviour::OkAfter(Duration::from_millis(millis));
    let busy = |seconds| Behaviour::retry_after(429, seconds);
    PATHS.map(|path| {
        let mix = match path {
            "/lookup/tickets" => Mix::new([
                (60, Behaviour::Ok),
                (8, slow(1_200)),
                (4, busy(4)),
                (dead, Behaviour::Hang { effect: true }),
                (dead, Behaviour::error(422, "unknown_customer", "There is no such customer")),
            ]),
            "/keyed/charges" => Mix::new([
                (50, Behaviour::Ok),
                (10, slow(2_500)),
                (4, Behaviour::retry_after(503, 8)),
                (3, Behaviour::StatusAfterEffect(500)),
                (3, busy(6)),
                (dead, Behaviour::error(402, "card_declined", "The card was declined")),
            ]),
            "/plain/receipts" => Mix::new([
                (60, Behaviour::Ok),
                (8, slow(900)),
                (4, busy(5)),
                (dead, Behaviour::CloseAfterRead { effect: true }),
                (dead, Behaviour::error(422, "invalid_address", "The e-mail address is not valid")),
            ]),
            "/keyed/contacts" => Mix::new([
                (60, Behaviour::Ok),
                (6, Behaviour::SlowBody),
                (5, busy(3)),
                (dead, Behaviour::error(403, "no_permission", "This account may not change contacts")),
            ]),
            _ => Mix::new([(40, Behaviour::Ok), (4, slow(700)), (1, busy(3))]),
        };
        (path, mix)
    })
}
