//! Bulk actions: the list, the form, one before its start and one that is running.

use super::samples::{Words, ago, layout, select};
use crate::domain::bulk::{BulkAction, BulkState, MemberState, Progress};
use crate::domain::dead_letter::Resolution;
use crate::domain::words;
use crate::web::listing::Pager;
use crate::web::page::Section;
use crate::web::pages::bulk::{
    Bar, Became, BulkLine, BulkNewPage, BulkOnePage, BulkPage, MemberLine, Said, Standing, Typed,
};
use crate::web::view::{Button, Fact, Field};

const PATH: &str = "/bulk/01987c3e-4b1f-7d02-9c55-1f0a6be2d311";

fn bar(action: BulkAction, counts: &[(MemberState, usize)]) -> Bar {
    let mut progress = Progress::default();
    for (state, members) in counts {
        progress.add(*state, *members);
    }
    Bar { settled: progress.settled(), members: progress.members(), words: progress.words(action) }
}

fn half_way() -> Bar {
    use MemberState as S;
    let counts =
        [(S::Confirmed, 3_004), (S::Sent, 116), (S::AlreadyDone, 61), (S::Refused, 12), (S::Waiting, 43)];
    bar(BulkAction::Replay, &counts)
}

pub(super) fn list(w: &Words, rows: usize) -> BulkPage {
    let line = |n: usize| BulkLine {
        href: PATH.into(),
        name: w.t("CRM outage of Monday morning"),
        what: w.t("Replay of 3,236 dead letters"),
        stands: Standing { state: BulkState::ALL[n % BulkState::ALL.len()], paused: n == 3 },
        bar: half_way(),
        by: w.t("anna.k"),
        created: ago(3_600),
    };
    BulkPage {
        layout: layout(w, "Bulk actions", Section::Bulk),
        rows: (0..rows).map(line).collect(),
        pager: Pager {
            older: Some("/bulk?cursor=x".into()),
            shown: "5 shown, newest first".into(),
            ..Pager::default()
        },
    }
}

fn filter(w: &Words) -> Vec<(String, String)> {
    [("Status", "Open"), ("Cause", "The CRM, create ticket: no answer in time"), ("Put off", "hidden")]
        .map(|(name, value)| (w.t(name), w.t(value)))
        .into()
}

pub(super) fn form(w: &Words, shut: Option<String>) -> BulkNewPage {
    BulkNewPage {
        layout: layout(w, "Resolve many", Section::Bulk),
        action: BulkAction::Resolve,
        title: words::bulk_action(BulkAction::Resolve),
        count: "3,236 dead letters".into(),
        filter: filter(w),
        fields: (w.t("status=open&cause=0123456789abcdef"), String::new()),
        back: "/dead-letters?cause=0123456789abcdef".into(),
        action_id: "01987c3e".into(),
        typed: Typed {
            name: Field::wrong(w.t(""), w.t("Give it a name that others will know it by.")),
            reason: Field::of(w.t("The CRM team entered them by hand.")),
            canary: Field::wrong(w.t("some"), w.t("A whole number, or nothing for none.")),
            speed: Field::default(),
            resolution: Some(Resolution::CompletedAtDestination),
            resolution_error: w.some("Many at once have no one reference."),
            no_reference: false,
            assignee: String::new(),
            refused: w.some("Nobody who may sign in is called otto."),
        },
        people: select(w, "assignee", "Who is to have them", &["Nobody", "anna.k", "otto"], 1),
        shut,
    }
}

pub(super) fn preview(w: &Words) -> BulkOnePage {
    BulkOnePage {
        stands: Standing { state: BulkState::Preview, paused: false },
        before: vec![
            w.t("Of the first 50: 44 would be sent · 4 must be asked about first · 2 already done."),
            w.t("14 arrived since and are left out."),
        ],
        bar: bar(BulkAction::Replay, &[(MemberState::Waiting, 3_236)]),
        moving: None,
        paused: None,
        buttons: vec![
            Button::locked("Start with the first one", w.t("Needs the right “bulk”, which operators have.")),
            Button::locked("Cancel", w.t("Needs the right “bulk”, which operators have.")),
        ],
        views: vec![("All 3,236".into(), PATH.into(), true)],
        rows: (1..6).map(|n| member(w, n, MemberState::Waiting)).collect(),
        ..running(w)
    }
}

fn member(w: &Words, place: usize, state: MemberState) -> MemberLine {
    MemberLine {
        href: super::samples::ID.into(),
        place: format!("#{place}"),
        ids: w.t("create-ticket · customer C-7 · order ORD-10443"),
        became: Became { action: BulkAction::Replay, state },
        answer: (state != MemberState::Waiting)
            .then(|| w.long("All checks passed: it will be sent with its own key.")),
        at: (state != MemberState::Waiting).then(|| ago(40)),
    }
}

pub(super) fn running(w: &Words) -> BulkOnePage {
    let act = |words: &str, to: &str| {
        let fields = vec![("csrf", "c5rf".to_owned()), ("action_id", "01987c3e".to_owned())];
        Button::act(words, format!("{PATH}/{to}"), fields)
    };
    BulkOnePage {
        layout: layout(w, "CRM outage", Section::Bulk),
        name: w.t("CRM outage of Monday morning"),
        stands: Standing { state: BulkState::Running, paused: true },
        what: "Replay:".into(),
        count: "3,236 dead letters".into(),
        filter: filter(w),
        reason: w.long("The CRM was down from 8:10 to 8:50; it is back."),
        paused: Some((w.t("olga may not do this any more."), ago(30))),
        before: Vec::new(),
        bar: half_way(),
        moving: Some(PATH.into()),
        buttons: vec![act("Go on", "start"), act("Cancel", "cancel")],
        facts: vec![
            Fact::text("Made by", w.t("anna.k")),
            Fact::time("Members frozen", ago(3_600)),
            Fact::text("Acts in the name of", w.t("anna.k")),
            Fact::text("Speed", "at most 600 a minute"),
        ],
        views: [
            ("All 3,236", true),
            ("Waiting 43", false),
            ("Confirmed 3,004", false),
            ("Refused 12", false),
        ]
        .map(|(words, chosen)| (words.to_owned(), PATH.to_owned(), chosen))
        .into(),
        rows: MemberState::ALL.iter().enumerate().map(|(n, state)| member(w, n + 1, *state)).collect(),
        back: None,
        more: Some(format!("{PATH}?after=50")),
        history: vec![
            Said {
                by: w.t("anna.k"),
                what: "started a bulk action".into(),
                more: Some(w.long("The CRM was down from 8:10 to 8:50; it is back.")),
                at: ago(3_500),
            },
            Said {
                by: w.t("anna.k"),
                what: "chose the members of a bulk action".into(),
                more: None,
                at: ago(3_600),
            },
        ],
    }
}
