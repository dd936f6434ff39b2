//! The pages that ask for something: doors, forms, answers.

use super::samples::{ID, Words, ago, ahead, back, checks, knowledge, layout, request};
use crate::domain::actor::Role;
use crate::domain::attempt::Waiver;
use crate::domain::dead_letter::Resolution;
use crate::domain::verdict::{CheckName, VerdictKind};
use crate::domain::zone::Zone;
use crate::web::known::Known;
use crate::web::page::{Layout, Section};
use crate::web::pages::access::{Elsewhere, LoginPage, SetupPage};
use crate::web::pages::account::{AccountPage, SessionView, rights_of, zones};
use crate::web::pages::error::ErrorPage;
use crate::web::pages::override_form::{self, OverridePage, Stakes, Waived};
use crate::web::pages::replay::{Blocked, ReplayPage};
use crate::web::pages::resolve::{self, ResolvePage};
use crate::web::pages::verdict::{KnownView, RunView, VerdictPage, VerdictView};
use crate::web::view::{Button, Field, Long, Reference};

pub(super) fn login(w: &Words) -> LoginPage {
    LoginPage {
        layout: Layout::outside("Sign in", "c5rf"),
        name: Field::of(w.t("anna.k")),
        problem: w.some("That name and password do not belong together."),
        note: w.some("Your password is changed. Sign in with the new one."),
        next: w.some("/dead-letters"),
        elsewhere: Some(Elsewhere { words: w.t("Sign in with Example"), href: "/login/oidc".into() }),
        local: true,
    }
}

pub(super) fn setup(w: &Words, person: Option<String>) -> SetupPage {
    SetupPage {
        layout: Layout::outside("First account", "c5rf"),
        action: "/setup/5f1c".into(),
        person,
        name: Field::of(w.t("anna.k")),
        password: Field::wrong("", w.t("This password is on a list of leaked ones. Choose another.")),
        shortest: 12,
        expires: ahead(1500),
    }
}

pub(super) const SENTENCE: &str =
    "The CRM took longer than 10 s to answer “create ticket”. The ticket may exist.";

pub(super) fn replay(w: &Words, blocked: bool) -> ReplayPage {
    ReplayPage {
        layout: layout(w, "Replay", Section::DeadLetters),
        back: back(w),
        action: format!("{ID}/replay"),
        action_id: "01987c3e".into(),
        sentence: w.t(SENTENCE),
        request: Ok(request(w)),
        checks: checks(w, blocked.then_some(CheckName::OutcomeKnown)),
        knowledge: knowledge(w, if blocked { Known::CannotTell } else { Known::NotThere }),
        reason: Field::wrong(w.t(""), w.t("Say why: whoever looks at this later has only your words.")),
        recent_reasons: vec![w.t("The CRM was down; it is back."), w.t("Customer is waiting.")],
        words: w.t("Replay: the CRM never saw it"),
        blocked: blocked.then(|| Blocked {
            why: w.t(
                "Attempt 3 may have created the ticket, and the CRM can be asked. It has to be asked first.",
            ),
            instead: vec![
                Button::new("Record as completed", format!("{ID}/resolve")),
                Button::locked(
                    "Override",
                    "Needs the right “override”, which approvers have. You are operator.",
                ),
            ],
        }),
    }
}

pub(super) fn resolve_form(w: &Words) -> ResolvePage {
    ResolvePage {
        layout: layout(w, "Resolve", Section::DeadLetters),
        back: back(w),
        action: format!("{ID}/resolve"),
        action_id: "01987c3e".into(),
        sentence: w.t(SENTENCE),
        knowledge: knowledge(w, Known::DoneThere),
        after: w.t("Nothing is sent and nothing is deleted."),
        record: false,
        typed: resolve::Typed {
            chosen: Some(Resolution::CompletedAtDestination),
            chosen_error: None,
            reference: Field::wrong(w.t(""), w.t("Give the id that it has there, or tick that it has none.")),
            no_reference: false,
            reason: Field::of(w.t("")),
        },
        closed: None,
    }
}

pub(super) fn stakes(w: &Words) -> Stakes {
    Stakes {
        sentence: w.t(SENTENCE),
        waives: vec![Waived {
            waiver: Waiver::UnknownOutcome,
            detail: w.t("No: attempt 3 may have arrived, and the CRM could not say."),
        }],
        duplicate: w.t("A second ticket in the CRM for order 10443. The customer may be answered twice."),
        knowledge: knowledge(w, Known::CannotTell),
        checks: checks(w, Some(CheckName::OutcomeKnown)),
        request: Ok(request(w)),
        anew: false,
        safe: w.t("A replay under the same key passes every check at this moment."),
    }
}

pub(super) fn override_page(w: &Words) -> OverridePage {
    OverridePage {
        layout: layout(w, "Send again anyway", Section::DeadLetters),
        back: back(w),
        action: format!("{ID}/override"),
        action_id: "01987c3e".into(),
        facts: "5f1c-6be2-d310-77aa-0b1c".into(),
        changed: w.some("it was tried again; other checks stand in the way"),
        stakes: stakes(w),
        approval: false,
        has_key: true,
        same_key: w.t("The CRM still recognises our key until tomorrow 09:01 UTC: if the ticket exists, it answers with that one."),
        new_effect: w.t("The CRM takes it for something new. If the first one exists, there will be two."),
        short_id: w.t("6be2d310"),
        typed: override_form::Typed {
            mode: Field::of("same_key"),
            short_id: Field::wrong(w.t("be2d31"), w.t("That is not 6be2d310.")),
            reason: Field::of(w.t("")),
            accept: Field::default(),
        },
        confirm: Some("/confirm?next=%2Fdead-letters%2F01987c3e%2Foverride".into()),
        closed: None,
    }
}

pub(super) fn verdicts(w: &Words) -> Vec<VerdictPage> {
    let page = |kind, reason: &str, failing| VerdictPage {
        layout: layout(w, "The answer", Section::DeadLetters),
        back: back(w),
        verdict: VerdictView {
            kind,
            reason: w.t(reason),
            checks: checks(w, failing),
            run: (kind == VerdictKind::InFlight).then(|| RunView {
                by: w.t("ben.o"),
                since: ago(4),
                href: ID.into(),
            }),
            known: (kind == VerdictKind::AlreadyDone).then(|| KnownView {
                at: ago(400),
                how: w.t("The CRM answered 201 to attempt 2, and we learned it"),
                reference: Some(w.reference("TCK-99")),
                answer: Some(Long::block(w.t("{\"id\":\"TCK-99\",\"status\":\"open\"}"))),
            }),
            helps: if kind == VerdictKind::NeedsOverride {
                vec![Button::locked(
                    "Override",
                    "Needs the right “override”, which approvers have. You are operator.",
                )]
            } else {
                vec![]
            },
        },
    };
    vec![
        page(
            VerdictKind::Accepted,
            "Attempt 4 goes out now, under the same key. What comes back appears in the history.",
            None,
        ),
        page(
            VerdictKind::InFlight,
            "A replay is under way. Nothing more was sent.",
            Some(CheckName::NothingInFlight),
        ),
        page(
            VerdictKind::AlreadyDone,
            "The ticket exists. Nothing was sent.",
            Some(CheckName::StepNotCompleted),
        ),
        page(
            VerdictKind::LookUpFirst,
            "The CRM can be asked, so it has to be asked before anything is sent.",
            Some(CheckName::OutcomeKnown),
        ),
        page(
            VerdictKind::NeedsOverride,
            "The key's window closed on 28 Nov 2026, and the CRM cannot be asked. Only a person with the right can have it sent.",
            Some(CheckName::KeyWindowOpen),
        ),
        page(
            VerdictKind::Refused,
            "The destination is paused since 08:12 UTC: our credential was not accepted. Nothing was sent.",
            Some(CheckName::DestinationOpen),
        ),
    ]
}

pub(super) fn account(w: &Words) -> AccountPage {
    AccountPage {
        layout: layout(w, "Account", Section::Account),
        name: w.t("anna.k"),
        role: Role::Operator.into(),
        rights: rights_of(&Role::Operator.into()),
        signed_in_at: Some(ago(4000)),
        sessions: sessions(w),
        elsewhere: true,
        has_password: true,
        old_password: Field::wrong("", w.t("That is not your present password.")),
        new_password: Field::default(),
        shortest: 12,
        second_factor: w.t("You have an authenticator app. 9 recovery codes are left."),
        has_second_factor: true,
        action_id: "01987c3e".into(),
        zones: zones(Zone::UTC),
        zone_error: w.some("Choose a zone of the list."),
        clock: ago(0),
    }
}

pub(super) fn sessions(w: &Words) -> Vec<SessionView> {
    let row = |end: Option<&str>, agent: &str, address: &str, since, used| SessionView {
        end: end.map(Into::into),
        agent: w.t(agent),
        address: w.t(address),
        by: "with a password",
        since: ago(since),
        used: ago(used),
    };
    vec![
        row(None, "Firefox on Linux", "192.0.2.17", 4000, 20),
        row(
            Some("/account/sessions/1/end"),
            "Chrome on an iPhone",
            "2001:db8:85a3::8a2e:370:7334",
            30_000,
            700,
        ),
    ]
}

pub(super) fn error(w: &Words, inside: bool) -> ErrorPage {
    ErrorPage {
        typed: if inside {
            vec![("Reason".to_owned(), w.t("The CRM team entered them by hand."))]
        } else {
            Vec::new()
        },
        layout: if inside {
            layout(w, "No such dead letter", Section::DeadLetters)
        } else {
            Layout::outside("Something failed here", "c5rf")
        },
        status: if inside { 404 } else { 503 },
        title: w.t(if inside {
            "There is no such dead letter"
        } else {
            "The desk cannot reach its database"
        }),
        happened: w.t(if inside {
            "No dead letter has this address. It may have been typed by hand or cut short."
        } else {
            "Nothing was changed. Operations that were accepted are safe and will go on by themselves."
        }),
        next_step: w.t(if inside {
            "Search for the order, the customer or the key."
        } else {
            "Try again in a minute. If it stays, tell whoever runs this desk."
        }),
        link: inside.then(|| Reference::here("Search all operations", "/operations")),
        request_id: w.some("01987c3e-4b1f-7d02"),
    }
}
