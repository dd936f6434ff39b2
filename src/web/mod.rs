//! The desk and the API, over HTTP. Nothing here can send to a destination: actions write rows of
//! work, and the engine's worker takes those through the gate.
//!
//! The desk's pages are rendered on the server and complete without script. A page is a struct
//! whose fields are shaped for display, beside a template that only places them. Whoever fills a
//! page decides; the template does not compute.

pub mod agent;
pub mod api;
pub mod assets;
pub mod chart;
pub mod failure;
pub mod guard;
pub mod hooks;
mod inbound;
pub mod known;
pub mod labels;
pub mod listing;
pub mod live;
pub mod page;
pub mod pages;
mod rates;
pub mod request_id;
pub mod second;
pub mod sessions;
pub mod tell;
pub mod timeline;
pub mod typed;
pub mod view;

#[cfg(test)]
mod gallery;

use std::io;
use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_http::compression::CompressionLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_sessions::cookie::SameSite;
use tower_sessions::{Expiry, SessionManagerLayer};

use crate::config::Server;
use crate::domain::time::Timestamp;
use crate::engine::Engine;
use crate::engine::sso::Sso;
use failure::Failure;
use inbound::{origin, slow};
use sessions::Sessions;

/// What every handler can reach.
#[derive(Clone)]
pub struct Web {
    /// The engine's doors: acceptance, actions, reads.
    pub engine: Engine,
    /// Who holds which token, for a second.
    pub(crate) tokens: api::tokens::Tokens,
    /// When this process began to answer.
    pub(crate) started: Timestamp,
    /// Who called how often.
    rates: rates::Rates,
    /// Where people sign in elsewhere.
    pub(crate) sso: Sso,
    /// Open pages that wait for news.
    pub(crate) live: live::Live,
}

/// Answers requests until told to stop, then lets those under way end.
pub async fn serve(engine: Engine, listener: TcpListener, stop: watch::Receiver<bool>) -> io::Result<()> {
    let live = live::Live::new(&engine);
    let router = build(engine.clone(), live.clone());
    inbound::serve(router, listener, &engine.config().server, stop, || live.close()).await
}

/// Every route, and every layer around them.
pub fn router(engine: Engine) -> Router {
    let live = live::Live::new(&engine);
    build(engine, live)
}

fn build(engine: Engine, live: live::Live) -> Router {
    let server = &engine.config().server;
    let (rates, around) = (rates::Rates::of(server), Surroundings::of(server));
    let started = engine.ambient().now();
    let sso = Sso::new(engine.config().clone(), engine.ambient().clone());
    let web = Web { engine, tokens: api::tokens::Tokens::default(), started, rates, sso, live };
    let statics = Router::new().route("/static/{name}", get(assets::serve)).layer(CompressionLayer::new());
    let desk = pages::routes()
        .merge(live::routes())
        .layer(from_fn(typed::stays))
        .layer(DefaultBodyLimit::max(typed::MOST_FORM))
        .layer(session_layer(&web, around.https));
    let all = Router::new().merge(desk).merge(api::routes()).merge(hooks::routes()).merge(statics);
    surrounded(all.fallback(nothing_here).method_not_allowed_fallback(not_like_that), around).with_state(web)
}

/// What the layers around every handler need to know.
struct Surroundings {
    https: bool,
    patience: slow::Patience,
    proxies: origin::Proxies,
}

impl Surroundings {
    fn of(server: &Server) -> Self {
        let https = server.public_url.scheme() == "https";
        Self { https, patience: slow::Patience::of(server), proxies: origin::Proxies::of(server) }
    }
}

/// What stands around every handler.
fn surrounded<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    Surroundings { https, patience, proxies }: Surroundings,
) -> Router<S> {
    let router = router
        .layer(from_fn(in_our_words))
        .layer(from_fn_with_state(patience, slow::layer))
        .layer(from_fn(last_resort))
        .layer(from_fn(request_id::layer))
        .layer(from_fn_with_state(proxies, origin::layer));
    protection(https).fold(router, |router, (name, value)| router.layer(header_layer(name, value)))
}

/// Own files only; nothing inline, nothing framed, forms to ourselves.
const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'";

/// What every answer carries, whatever it answers, and where it does not say otherwise.
fn protection(https: bool) -> impl Iterator<Item = (HeaderName, &'static str)> {
    let always = [
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not no-referrer: under it browsers hide the origin of our own forms, which is the only word
        // on where they come from that a browser sends over plain http.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Files of ours, which hold nothing of anybody, say otherwise.
        (header::CACHE_CONTROL, "no-store"),
    ];
    let over_https = (header::STRICT_TRANSPORT_SECURITY, "max-age=31536000; includeSubDomains");
    always.into_iter().chain(https.then_some(over_https))
}

fn header_layer(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}

fn session_layer(web: &Web, https: bool) -> SessionManagerLayer<Sessions> {
    let idle = i64::try_from(web.engine.config().auth.idle.as_secs()).unwrap_or(i64::MAX);
    SessionManagerLayer::new(Sessions::new(&web.engine))
        // The prefix makes browsers insist on Secure and on this very host.
        .with_name(if https { "__Host-dlo" } else { "dlo" })
        .with_secure(https)
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_path("/")
        .with_expiry(Expiry::OnInactivity(time::Duration::seconds(idle)))
}

/// Whether answers below an address are read by programs.
fn is_for_programs(path: &str) -> bool {
    path.starts_with("/api/") || path.starts_with("/hooks/")
}

async fn nothing_here(uri: axum::http::Uri) -> Response {
    if is_for_programs(uri.path()) {
        api::problem::Problem::not_found("There is no such call.").into_response()
    } else {
        Failure::NotFound.into_response()
    }
}

/// What the framework refuses by itself, such as an address that is no UTF-8, comes as a bare line
/// of text; the reader gets it as everything else here.
async fn in_our_words(uri: axum::http::Uri, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !response.status().is_client_error() || !kind.is_some_and(|kind| kind.starts_with("text/plain")) {
        return response;
    }
    if is_for_programs(uri.path()) {
        return api::problem::Problem::malformed("The address or the query cannot be read.").into_response();
    }
    Failure::BadAddress("Part of it cannot be read.".to_owned()).into_response()
}

async fn not_like_that(uri: axum::http::Uri) -> Response {
    if is_for_programs(uri.path()) {
        api::problem::Problem::wrong_method().into_response()
    } else {
        Failure::WrongMethod.into_response()
    }
}

/// A handler that panics answers all the same, and says nothing of why.
async fn last_resort(uri: axum::http::Uri, request: Request, next: Next) -> Response {
    let panic = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(answer) => return answer,
        Err(panic) => panic,
    };
    let text = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a handler panicked");
    if is_for_programs(uri.path()) {
        tracing::error!(error = text, "a call failed");
        api::problem::Problem::defect().into_response()
    } else {
        Failure::defect(text).into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::StatusCode;
    use tower::ServiceExt as _;

    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn a_panic_is_answered_and_shows_nothing_of_itself() {
        let text = "[server]\npublic_url = \"https://desk.example.com\"";
        let config = Config::read(std::path::Path::new("dlo.toml"), text, &|_| None).unwrap();
        let panics = || async {
            let secret = std::hint::black_box("postgres://user:hunter2@db");
            assert!(secret.is_empty(), "cannot reach {secret}");
        };
        let routes = Router::new().route("/page", get(panics)).route("/api/v1/call", get(panics));
        let desk = surrounded(routes, Surroundings::of(&config.server));
        for (path, status, kind) in [
            ("/page", StatusCode::SERVICE_UNAVAILABLE, "text/html; charset=utf-8"),
            ("/api/v1/call", StatusCode::INTERNAL_SERVER_ERROR, "application/problem+json"),
        ] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let answer = desk.clone().oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status, "{path}");
            let headers = answer.headers().clone();
            assert_eq!(headers[header::CONTENT_TYPE], kind, "{path}");
            for (name, value) in protection(true) {
                assert_eq!(headers[&name], value, "{path}");
            }
            let text = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(text.contains(headers["x-request-id"].to_str().unwrap()), "{path}: {text}");
            for internal in ["hunter2", "postgres", "cannot reach", "panic", ".rs"] {
                assert!(!text.contains(internal), "{path}: {text}");
            }
        }
    }
}
