//! What a page answers when it cannot do what was asked: what happened, and what to do.

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use super::page::{Layout, render_as};
use super::pages::error::ErrorPage;
use super::second;
use super::view::Reference;
use crate::accounts::AccountError;
use crate::domain::actor::{Actor, Right};
use crate::domain::errors::with_causes;
use crate::domain::filter::FilterError;
use crate::engine::actions::ActionError;
use crate::gate::GateError;
use crate::store::StoreError;

/// Why a page cannot be shown or a form cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// They have to sign in; the address is where they were going.
    #[error("not signed in")]
    SignInFirst(String),
    /// Their role demands a second factor, and they have none.
    #[error("no second factor")]
    SecondFactorFirst,
    /// There is no such page or thing.
    #[error("not found")]
    NotFound,
    /// They lack a right; the text says which and who has it.
    #[error("{0}")]
    Forbidden(String),
    /// The form is from an earlier session, or from no page of ours.
    #[error("stale form")]
    StaleForm,
    /// The form comes from another site.
    #[error("another site's form")]
    OtherSite,
    /// The form is no form, or too large.
    #[error("not a form ({0})")]
    BadForm(StatusCode),
    /// It was not done in time.
    #[error("took too long")]
    TooLong,
    /// A one-time link was used, lapsed or never existed.
    #[error("no such link")]
    Link,
    /// The address is not asked in this way.
    #[error("wrong method")]
    WrongMethod,
    /// The address has a parameter that cannot be understood.
    #[error("{0}")]
    BadAddress(String),
    /// Something was asked that cannot be done as things stand.
    #[error("{0}")]
    Conflict(String),
    /// The database, or a defect of ours. The text is for the log.
    #[error("{0}")]
    Broken(String),
}

impl Failure {
    /// They have to sign in first.
    pub fn sign_in_first(method: &Method, uri: &Uri) -> Self {
        let to =
            if method == Method::GET { uri.path_and_query().map_or("/", |path| path.as_str()) } else { "/" };
        Self::SignInFirst(to.to_owned())
    }

    /// They lack a right.
    pub fn forbidden(actor: &Actor, right: Right) -> Self {
        Self::Forbidden(format!("You need {}.", actor.needs(right)))
    }

    /// A defect of ours.
    pub fn defect(text: impl Into<String>) -> Self {
        Self::Broken(text.into())
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::SignInFirst(_) | Self::SecondFactorFirst => StatusCode::SEE_OTHER,
            Self::NotFound | Self::Link => StatusCode::NOT_FOUND,
            Self::WrongMethod => StatusCode::METHOD_NOT_ALLOWED,
            Self::Forbidden(_) | Self::StaleForm | Self::OtherSite => StatusCode::FORBIDDEN,
            Self::BadForm(status) => *status,
            Self::BadAddress(_) => StatusCode::BAD_REQUEST,
            Self::Conflict(_) => StatusCode::CONFLICT,
            Self::TooLong | Self::Broken(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Title, what happened, what to do.
    fn words(&self) -> (&'static str, String, &'static str) {
        match self {
            Self::SignInFirst(_) => (
                "Sign in first",
                "You are not signed in, or not any more.".into(),
                "Nothing was changed. Sign in and try again.",
            ),
            Self::SecondFactorFirst => (
                "Set up a second factor first",
                "Your role needs one beside the password.".into(),
                "Nothing was changed. Set one up and try again.",
            ),
            Self::NotFound => (
                "There is nothing here",
                "No page, operation or dead letter has this address.".into(),
                "Check the address, or search for the order, the customer or the key.",
            ),
            Self::Forbidden(needs) => (
                "You may not do this",
                needs.clone(),
                "Nothing was changed. Ask somebody who has the right, or an admin to give it to you.",
            ),
            Self::StaleForm => (
                "This form is out of date",
                "It belongs to an earlier sign-in, or its page was open for too long.".into(),
                "Nothing was changed. Go back, reload the page and send the form again.",
            ),
            Self::OtherSite => (
                "This form came from another site",
                "Your browser says that another site sent it.".into(),
                "Nothing was changed. Open the desk by its own address and act from there.",
            ),
            Self::BadForm(StatusCode::REQUEST_TIMEOUT) => (
                "This form came too slowly",
                "It did not arrive in time.".into(),
                "Nothing was changed. Check the connection, then go back and send the form again.",
            ),
            Self::TooLong => (
                "This took too long",
                "The desk gave up waiting for its database.".into(),
                "Look whether it was done before you try again; tell an admin the request's number if it stays.",
            ),
            Self::BadForm(_) => (
                "This form cannot be read",
                "It is too large, or not what a page of the desk sends.".into(),
                "Nothing was changed. Go back and shorten what you typed.",
            ),
            Self::Link => (
                "This link does not work",
                "It was used already, it has lapsed, or part of it is missing.".into(),
                "Nothing was changed. Ask an administrator for a new one: it works once, for half an hour.",
            ),
            Self::WrongMethod => (
                "This address cannot be asked like that",
                "It takes another kind of request.".into(),
                "Nothing was changed. Open the desk by its own address and act from there.",
            ),
            Self::BadAddress(what) => (
                "This address cannot be understood",
                what.clone(),
                "Remove or correct that part of the address, or clear the filter.",
            ),
            Self::Conflict(what) => (
                "This cannot be done now",
                what.clone(),
                "Nothing was changed. Reload the page to see how things stand.",
            ),
            Self::Broken(_) => (
                "The desk could not do this",
                "The database did not answer as it should, or the desk has a defect.".into(),
                "Nothing was changed by this click. Try again in a minute; tell an admin the request's number if it stays.",
            ),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match &self {
            Self::Broken(text) => tracing::error!(error = text, "a page failed"),
            Self::TooLong => tracing::error!("a page took too long"),
            _ => {}
        }
        let (title, happened, to_do) = self.words();
        // A form that came without a session has its words handed back on a page.
        let status = match self.status() {
            StatusCode::SEE_OTHER => StatusCode::FORBIDDEN,
            status => status,
        };
        let page = ErrorPage {
            layout: Layout::outside(title, ""),
            status: status.as_u16(),
            title: title.to_owned(),
            happened,
            next_step: to_do.to_owned(),
            link: match self {
                Self::SignInFirst(_) => Some(Reference::here("Sign in", "/login")),
                Self::SecondFactorFirst => Some(Reference::here("Set it up", second::SET_UP)),
                _ => None,
            },
            typed: Vec::new(),
            request_id: super::request_id::current(),
        };
        let mut answer = match &self {
            Self::SignInFirst(to) => {
                let query: String = url::form_urlencoded::byte_serialize(to.as_bytes()).collect();
                let address = if to == "/" { "/login".to_owned() } else { format!("/login?next={query}") };
                (StatusCode::SEE_OTHER, [(header::LOCATION, address)]).into_response()
            }
            Self::SecondFactorFirst => {
                (StatusCode::SEE_OTHER, [(header::LOCATION, second::SET_UP)]).into_response()
            }
            _ => render_as(status, &page),
        };
        // What another site put into a form is not said in our name.
        if !matches!(self, Self::OtherSite) {
            answer.extensions_mut().insert(page);
        }
        answer
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Broken(with_causes(&error))
    }
}

impl From<GateError> for Failure {
    fn from(error: GateError) -> Self {
        Self::Broken(with_causes(&error))
    }
}

impl From<tower_sessions::session::Error> for Failure {
    fn from(error: tower_sessions::session::Error) -> Self {
        Self::Broken(with_causes(&error))
    }
}

impl From<FilterError> for Failure {
    fn from(error: FilterError) -> Self {
        Self::BadAddress(error.to_string())
    }
}

impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Forbidden(needs) => Self::Forbidden(format!("You need {needs}.")),
            ActionError::NotFound => Self::NotFound,
            ActionError::Invalid(_)
            | ActionError::Busy(_)
            | ActionError::IdReused
            | ActionError::NotOpen(_)
            | ActionError::Settled(_)
            | ActionError::Changed(_) => Self::Conflict(sentence(&error.to_string())),
            ActionError::Gate(_) | ActionError::Answer(_) => Self::Broken(with_causes(&error)),
        }
    }
}

impl From<AccountError> for Failure {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Store(_)
            | AccountError::Hash(_)
            | AccountError::Envelope(_)
            | AccountError::Secret(_)
            | AccountError::Defect(_) => Self::Broken(with_causes(&error)),
            AccountError::Forbidden(_) => Self::Forbidden(sentence(&error.to_string())),
            AccountError::Unknown(_) => Self::NotFound,
            AccountError::Link => Self::Link,
            AccountError::Name(_)
            | AccountError::Password(_)
            | AccountError::Present
            | AccountError::Role(_)
            | AccountError::Factor(_)
            | AccountError::LastAdmin(_)
            | AccountError::ShutOut(_)
            | AccountError::Later(_) => Self::Conflict(sentence(&error.to_string())),
        }
    }
}

/// An error's words as a sentence.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
    let end = if text.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}
