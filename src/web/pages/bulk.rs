//! Bulk actions: the list of them. Each has a page of its own, and a form that makes a new one.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;

use crate::domain::actor::Right;
use crate::domain::bulk::{BulkAction, BulkState, MemberState, Progress};
use crate::domain::filter::{Page, Parameters};
use crate::domain::words;
use crate::store::bulk::{self, BulkRow, members};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark;
use crate::web::listing::Pager;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::view::{When, grouped};

mod new;
mod one;
mod which;
mod word;

pub use new::{BulkNewPage, Typed};
pub use one::{BulkOnePage, MemberLine, Said};

const PATH: &str = "/bulk";
/// Bulk actions of one page: each is counted through.
const LIMIT: u32 = 20;

/// The pages' and forms' routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/bulk", get(index)).merge(new::routes()).merge(one::routes()).merge(word::routes())
}

/// `/bulk`
#[derive(Template, Debug)]
#[template(path = "pages/bulk.html")]
pub struct BulkPage {
    /// Around it.
    pub layout: Layout,
    /// Newest first.
    pub rows: Vec<BulkLine>,
    /// The neighbouring pages.
    pub pager: Pager,
}

/// One row.
#[derive(Clone, Debug)]
pub struct BulkLine {
    /// Its page.
    pub href: String,
    /// What people call it.
    pub name: String,
    /// "Replay of 1,234 dead letters".
    pub what: String,
    /// Where it stands.
    pub stands: Standing,
    /// How far it is.
    pub bar: Bar,
    /// Who made it.
    pub by: String,
    /// When.
    pub created: When,
}

/// How far a bulk action is.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Members of which it is known what became of them.
    pub settled: usize,
    /// All of them.
    pub members: usize,
    /// "3,120 sent · 3,004 confirmed · 43 waiting".
    pub words: String,
}

impl Bar {
    pub(super) fn of(action: BulkAction, progress: &Progress) -> Self {
        Self { settled: progress.settled(), members: progress.members(), words: progress.words(action) }
    }
}

/// Where a bulk action stands, as it is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its state.
    pub state: BulkState,
    /// Nothing is done for the time being.
    pub paused: bool,
}

impl Standing {
    pub(super) fn of(row: &BulkRow) -> Self {
        Self { state: row.state, paused: row.paused_at.is_some() }
    }
}

impl Mark for Standing {
    fn word(self) -> String {
        let word = if self.paused { "paused" } else { words::bulk_state(self.state) };
        words::capitalised(word)
    }

    fn icon(self) -> &'static str {
        match self.state {
            _ if self.paused => "pause",
            BulkState::Preview => "open",
            BulkState::Canary | BulkState::Running => "running",
            BulkState::Confirm => "person",
            BulkState::Ended => "done",
            BulkState::Cancelled => "closed",
        }
    }

    fn tone(self) -> &'static str {
        match self.state {
            _ if self.paused => "bad",
            BulkState::Confirm => "maybe",
            BulkState::Preview | BulkState::Canary | BulkState::Running => "info",
            BulkState::Ended => "good",
            BulkState::Cancelled => "mute",
        }
    }
}

/// What became of a member, as it is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Became {
    /// What was done.
    pub action: BulkAction,
    /// What came of it.
    pub state: MemberState,
}

impl Mark for Became {
    fn word(self) -> String {
        words::capitalised(words::bulk_member(self.action, self.state))
    }

    fn icon(self) -> &'static str {
        match self.state {
            MemberState::Waiting => "wait",
            MemberState::Sent => "running",
            MemberState::Confirmed | MemberState::Done => "done",
            MemberState::Failed | MemberState::Refused => "failed",
            MemberState::Closed | MemberState::AlreadyDone => "closed",
        }
    }

    fn tone(self) -> &'static str {
        match self.state {
            MemberState::Sent => "info",
            MemberState::Confirmed | MemberState::Done => "good",
            MemberState::Failed | MemberState::Refused => "bad",
            MemberState::Waiting | MemberState::Closed | MemberState::AlreadyDone => "mute",
        }
    }
}

/// "1 dead letter", "1,234 dead letters".
fn dead_letters(members: usize) -> String {
    match members {
        1 => "1 dead letter".to_owned(),
        n => format!("{} dead letters", grouped(n)),
    }
}

/// A number of members as it is stored.
fn members_of(row: &BulkRow) -> usize {
    usize::try_from(row.members).unwrap_or(0)
}

async fn index(State(web): State<Web>, who: Signed, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let given = list::parameters(query.as_deref());
    let page = Page { limit: LIMIT, ..Parameters(&given).page()? };
    let seen = who.seen(web.engine.ambient().now());
    let layout = who.layout("Bulk actions", Section::Bulk).await;
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, layout).await?;
    let listed = bulk::list(&mut tx, page).await?;
    let ids: Vec<_> = listed.items.iter().map(|row| row.id).collect();
    let progress = members::progress(&mut tx, &ids).await?;
    drop(tx);
    // The pager repeats a limit that is not everybody's; here it is always the same.
    let pager = Pager {
        newer: listed.newer.map(|cursor| list::address(PATH, &[("cursor", cursor.encode())])),
        older: listed.older.map(|cursor| list::address(PATH, &[("cursor", cursor.encode())])),
        shown: match listed.items.len() {
            0 => String::new(),
            n => format!("{n} shown, newest first"),
        },
    };
    let line = |(row, (_, progress)): (BulkRow, &(uuid::Uuid, Progress))| BulkLine {
        href: format!("{PATH}/{}", row.id),
        what: format!("{} of {}", words::bulk_action(row.action).label, dead_letters(members_of(&row))),
        stands: Standing::of(&row),
        bar: Bar::of(row.action, progress),
        created: When::at(row.created_at, seen),
        name: row.name,
        by: row.created_by,
    };
    let rows = listed.items.into_iter().zip(&progress).map(line).collect();
    Ok(render(&BulkPage { layout, rows, pager }))
}
