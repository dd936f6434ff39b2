//! What every page has in common, and how a page becomes an answer.

use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::assets;
use crate::domain::actor::{Right, Standing};
use crate::domain::time::Timestamp;

/// The part of the desk that a page belongs to: what the rail marks as "here".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// `/`
    Triage,
    /// `/dead-letters` and what stands below it.
    DeadLetters,
    /// `/approvals` and what stands below it.
    Approvals,
    /// `/operations` and what stands below it.
    Operations,
    /// `/bulk` and what stands below it.
    Bulk,
    /// `/destinations`
    Destinations,
    /// `/audit`
    Audit,
    /// `/erase`
    Erase,
    /// `/status`
    Status,
    /// `/people` and what stands below it.
    People,
    /// `/tokens`
    Tokens,
    /// `/account`
    Account,
    /// Pages outside the desk: sign-in, setup, errors.
    Outside,
}

/// Who looks at the page.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// Their sign-in name.
    pub name: String,
    /// Their role at this moment.
    pub role: Standing,
}

/// How a flash is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlashKind {
    /// It was done.
    Good,
    /// Worth knowing.
    Info,
    /// It was not done.
    Bad,
}

impl FlashKind {
    /// The class that colours it.
    pub fn tone(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Info => "info",
            Self::Bad => "bad",
        }
    }

    /// Its icon.
    pub fn icon(self) -> &'static str {
        match self {
            Self::Good => "done",
            Self::Info => "note",
            Self::Bad => "warn",
        }
    }
}

/// One message about what the last click did.
#[derive(Clone, Debug)]
pub struct Flash {
    /// How it is meant.
    pub kind: FlashKind,
    /// What it says.
    pub text: String,
}

/// What every page carries around its own content.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The page's name; the product's name is added behind it.
    pub title: String,
    /// What the rail marks.
    pub section: Section,
    /// Absent before sign-in: then there is no rail.
    pub signed_in: Option<SignedIn>,
    /// The session's token, for the form that signs out and for every other form.
    pub csrf: String,
    /// Shown once, above the content.
    pub flash: Option<Flash>,
    /// How many dead letters are open, for the rail; `None` when nobody counted.
    pub open: Option<String>,
    /// How many overrides wait for a second person, for those who may be it; `None` when none does.
    pub approvals: Option<String>,
    /// The zone in which full times are written.
    pub zone: String,
    /// When the page was made.
    pub at: Timestamp,
    /// What the page shows and the script listens for news of: [`LETTERS`], `operation:<id>`, `bulk:<id>`; see
    /// [`super::live::About`] for how more is added.
    pub live: Option<String>,
}

/// What a page listens for that shows which dead letters wait.
pub const LETTERS: &str = "letters";

impl Layout {
    /// A page for nobody in particular.
    pub fn outside(title: impl Into<String>, csrf: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            section: Section::Outside,
            signed_in: None,
            csrf: csrf.into(),
            flash: None,
            open: None,
            approvals: None,
            zone: "UTC".into(),
            at: Timestamp::from_micros(0),
            live: None,
        }
    }

    /// A page of the desk.
    pub fn desk(title: impl Into<String>, section: Section, who: SignedIn, csrf: impl Into<String>) -> Self {
        Self { section, signed_in: Some(who), ..Self::outside(title, csrf) }
    }

    /// Whether the reader may; nobody may anything before sign-in.
    pub fn may(&self, right: Right) -> bool {
        self.signed_in.as_ref().is_some_and(|who| who.role.may(right))
    }

    /// The same page, listening for news of what it shows.
    #[must_use]
    pub fn listening(self, about: impl Into<String>) -> Self {
        Self { live: Some(about.into()), ..self }
    }

    /// When the page was made, in microseconds.
    pub fn since(&self) -> i64 {
        self.at.as_micros()
    }

    /// Address of the style sheet.
    pub fn css(&self) -> &'static str {
        assets::css()
    }

    /// Address of the script.
    pub fn js(&self) -> &'static str {
        assets::js()
    }

    /// Address of the script for passkeys.
    pub fn passkeys_js(&self) -> &'static str {
        assets::passkeys_js()
    }

    /// Address of the icon in the browser's tab.
    pub fn favicon(&self) -> &'static str {
        assets::favicon()
    }

    /// `aria-current` for a rail entry.
    pub fn here(&self, section: Section) -> bool {
        self.section == section
    }
}

/// What pages are.
pub const HTML: &str = "text/html; charset=utf-8";

/// A page as an answer with status 200.
pub fn render(page: &impl Template) -> Response {
    render_as(StatusCode::OK, page)
}

/// A page as an answer with a status of its own: forms with mistakes, refusals, errors.
pub fn render_as(status: StatusCode, page: &impl Template) -> Response {
    match page.render() {
        Ok(html) => (status, [(header::CONTENT_TYPE, HTML)], html).into_response(),
        // Rendering writes to memory and calls nothing that fails, so this is a defect of ours. The
        // error page is a template too, hence plain words.
        Err(error) => {
            tracing::error!(%error, "a page could not be rendered");
            let words = "This page could not be shown. Nothing was changed by looking at it.";
            (StatusCode::INTERNAL_SERVER_ERROR, words).into_response()
        }
    }
}
