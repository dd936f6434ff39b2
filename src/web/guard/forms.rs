//! Forms that come from our own pages: from anybody at a door, and from somebody who is signed in.

use axum::extract::{FromRequest, FromRequestParts, RawForm, Request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use subtle::ConstantTimeEq as _;
use tower_sessions::Session;

use super::{Signed, client};
use crate::web::failure::Failure;
use crate::web::inbound::slow;
use crate::web::{Web, agent};

/// A form's fields. A name that is there twice counts once, the first time.
#[derive(Clone, Debug, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// A field's value without the space around it; empty when it is not there.
    pub fn get(&self, name: &str) -> &str {
        self.raw(name).trim()
    }

    /// A field's value as it was typed: for passwords.
    pub fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A text of several lines; browsers end them in a way of their own.
    pub fn lines(&self, name: &str) -> String {
        self.get(name).replace("\r\n", "\n")
    }

    /// Everything that was sent but what is called so: for a form that carries it on.
    pub fn without(&self, names: &[&str]) -> Vec<(String, String)> {
        self.0.iter().filter(|(name, _)| !names.contains(&name.as_str())).cloned().collect()
    }

    /// Whether a box was ticked.
    pub fn ticked(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }
}

/// A form posted from a page of ours, by nobody in particular: sign-in and setup.
#[derive(Clone, Debug)]
pub struct OpenForm {
    /// Its fields.
    pub fields: Fields,
    /// From where it came.
    pub origin: String,
    /// From which browser, in words.
    pub agent: String,
    /// The browser's session, which is nobody's yet.
    pub session: Session,
}

impl FromRequest<Web> for OpenForm {
    type Rejection = Failure;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        same_origin(&parts.headers, web)?;
        let (origin, agent) = (client(&parts), agent::of(&parts.headers));
        let session =
            Session::from_request_parts(&mut parts, web).await.map_err(|(_, text)| Failure::defect(text))?;
        let fields = fields(Request::from_parts(parts, body), web).await?;
        Ok(Self { fields, origin, agent, session })
    }
}

/// A form that a signed-in person posted from a page of their session. There is no other way to
/// a person's fields than through the token's check.
#[derive(Clone, Debug)]
pub struct Posted {
    /// Who posted it.
    pub who: Signed,
    /// Its fields.
    pub fields: Fields,
}

impl FromRequest<Web> for Posted {
    type Rejection = Failure;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        same_origin(&parts.headers, web)?;
        let who = <Signed as FromRequestParts<Web>>::from_request_parts(&mut parts, web).await?;
        let fields = fields(Request::from_parts(parts, body), web).await?;
        if !bool::from(fields.raw("csrf").as_bytes().ct_eq(who.csrf.as_bytes())) {
            return Err(Failure::StaleForm);
        }
        Ok(Self { who, fields })
    }
}

async fn fields(request: Request, web: &Web) -> Result<Fields, Failure> {
    if request.method() == Method::GET {
        return Err(Failure::StaleForm);
    }
    let RawForm(bytes) = RawForm::from_request(request, web).await.map_err(|rejection| {
        use axum::response::IntoResponse as _;
        let slow = slow::came_too_slowly(&rejection);
        let status = rejection.into_response().status();
        Failure::BadForm(if slow { StatusCode::REQUEST_TIMEOUT } else { status })
    })?;
    Ok(Fields(url::form_urlencoded::parse(&bytes).into_owned().collect()))
}

/// Refuses what another site's page sends. Browsers of the last years say where a request comes
/// from; older ones name the origin.
fn same_origin(headers: &HeaderMap, web: &Web) -> Result<(), Failure> {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    let ours = match (text("sec-fetch-site"), text(header::ORIGIN.as_str())) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let public = web.engine.config().server.public_url.origin().ascii_serialization();
            let host = text(header::HOST.as_str()).unwrap_or_default();
            origin == public || origin.split_once("://").is_some_and(|(_, rest)| rest == host)
        }
        // Every browser since 2020 posts a form with at least one of them. The doors have no session
        // whose token a form could carry, so that this is all that guards them.
        (None, None) => false,
    };
    if ours { Ok(()) } else { Err(Failure::OtherSite) }
}
