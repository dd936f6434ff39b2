//! What only an admin has: people, tokens, erasing.

use super::acts::sessions;
use super::samples::{Words, ago, ahead, layout};
use crate::domain::actor::{Right, Role, Roles, Scope};
use crate::web::listing::Choice;
use crate::web::page::{Layout, Section};
use crate::web::pages::erase::{ErasePage, Found};
use crate::web::pages::people::{OneTimeLink, PeoplePage, PersonRow, roles};
use crate::web::pages::person::PersonPage;
use crate::web::pages::tokens::{TokenState, TokenView, TokensPage, scopes, spans};
use crate::web::view::{Field, Reference, When};

fn admins(w: &Words, title: &str, section: Section) -> Layout {
    let mut layout = layout(w, title, section);
    if let Some(who) = layout.signed_in.as_mut() {
        who.role = Role::Admin.into();
    }
    layout
}

pub(super) fn people(w: &Words) -> PeoplePage {
    let night = (w.t("night-shift"), [Right::View, Right::Replay].into_iter().collect());
    let known = Roles::with([night]);
    let row = |name: &str, role: &str, active: bool, seen: Option<When>, own| PersonRow {
        path: "/people/01987c3e".into(),
        field: format!("role-{}", name.replace('.', "-")),
        roles: roles(&known, role),
        name: w.t(name),
        role: known.of(role),
        active,
        second: active && seen.is_some(),
        created: ago(86_400 * 40),
        seen,
        own,
    };
    PeoplePage {
        layout: admins(w, "People", Section::People),
        rows: vec![
            row("anna.k", "admin", true, Some(ago(30)), true),
            row("ben.o", "operator", true, Some(ago(90_000)), false),
            row("carla", "night-shift", true, None, false),
            row("old-intern", "gone", false, Some(ago(86_400 * 33)), false),
        ],
        link: Some(OneTimeLink { name: w.t("dora"), url: w.t("https://desk.example.com/setup/q3v0") }),
        problem: w.some("Anna.k is the last who can sign in and manage people."),
        name: Field::wrong(w.t("dora:x"), w.t("A name has no colons.")),
        roles: roles(&known, "operator"),
        elsewhere: true,
        own_roles: vec![(w.t("night-shift"), "view, replay".into())],
        confirm: Some("/confirm?next=%2Fpeople".into()),
    }
}

pub(super) fn person(w: &Words, some: bool) -> PersonPage {
    PersonPage {
        layout: admins(w, "ben.o", Section::People),
        back: Reference::here("People", "/people"),
        path: "/people/01987c3e".into(),
        name: w.t("ben.o"),
        role: w.t("operator"),
        active: some,
        has_password: some,
        created: ago(86_400 * 40),
        seen: some.then(|| ago(90_000)),
        sessions: if some { sessions(w) } else { Vec::new() },
    }
}

pub(super) fn tokens(w: &Words, some: bool) -> TokensPage {
    let row = |name: &str, scope, used, state| TokenView {
        name: w.t(name),
        scope,
        by: w.t("anna.k"),
        since: ago(86_400 * 40),
        used,
        state,
    };
    let works = |until| TokenState::Works { until, revoke: "/tokens/01987c3e/revoke".into() };
    TokensPage {
        layout: admins(w, "Tokens", Section::Tokens),
        rows: if some {
            vec![
                row("shop", Scope::Submit, Some(ago(40)), works(Some(ahead(86_400 * 50)))),
                row("nightly-report", Scope::Read, None, works(None)),
                row("mailroom", Scope::Work, Some(ago(86_400 * 3)), TokenState::Lapsed(ago(86_400))),
                row("old-shop", Scope::Operate, Some(ago(86_400 * 9)), TokenState::Revoked(ago(86_400 * 8))),
            ]
        } else {
            Vec::new()
        },
        made: w.some("shop").map(|name| (name, w.t("dlo_q3v0Zc9m2Kf8T1xY7bLwPjR4sN6hUeAaDgMoViCyXkE"))),
        name: Field::wrong(w.t("shop"), w.t("A token named shop exists already.")),
        scopes: scopes(Scope::Submit),
        spans: spans(90),
        confirm: some.then(|| "/confirm?next=%2Ftokens".into()),
    }
}

/// Before anybody looked, and with what was found: of an installation without any name to search by,
/// and of one that has some.
pub(super) fn erase(w: &Words) -> [ErasePage; 3] {
    let choice = |name: &str| Choice { value: name.into(), words: name.into(), chosen: name == "customer" };
    let page = |names: &[&str], found| ErasePage {
        layout: admins(w, "Erase", Section::Erase),
        names: names.iter().map(|name| choice(name)).collect(),
        value: Field::wrong(w.t("4711"), w.t("There is nothing to look for.")),
        found,
        confirm: Some("/confirm?next=%2Ferase".into()),
    };
    let found = Found {
        name: "customer".into(),
        action_id: "01987c3e".into(),
        settled: 12,
        unsettled: 2,
        named: vec![Reference::here(w.t("01987c3e-4b1f-7d02-9c55-1f0a6be2d310"), "/operations/01987c3e")],
        again: Field::wrong(w.t("4712"), w.t("This is not the value above.")),
        reason: Field::wrong(w.t(""), w.t("Say why, for whoever reads it later.")),
    };
    [page(&[], None), page(&["customer", "order"], None), page(&["customer", "order"], Some(found))]
}
