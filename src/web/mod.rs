//! The desk and the API, over HTTP. Nothing here can send to a destination: actions write rows of
//! work, and the engine's worker takes those through the gate.
//!
//! The desk's pages are rendered on the server and complete without script. A page is a struct
//! whose fields are shaped for display, beside a template that only places them. Whoever fills a
//! page decides; the template does not compute.

pub mod api;
pub mod assets;
pub mod chart;
pub mod failure;
pub mod guard;
pub mod hooks;
pub mod known;
pub mod labels;
pub mod listing;
pub mod live;
pub mod page;
pub mod pages;
pub mod request_id;
pub mod sessions;
pub mod tell;
pub mod throttle;
pub mod timeline;
pub mod typed;
pub mod view;

#[cfg(test)]
mod gallery;

use std::io;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_sessions::cookie::SameSite;
use tower_sessions::{Expiry, SessionManagerLayer};

use crate::domain::time::Timestamp;
use crate::engine::Engine;
use crate::engine::sso::Sso;
use failure::Failure;
use sessions::Sessions;

/// What every handler can reach.
#[derive(Clone)]
pub struct Web {
    /// The engine's doors: acceptance, actions, reads.
    pub engine: Engine,
    /// Who holds which token, for a second.
    pub(crate) tokens: api::tokens::Tokens,
    /// Who tried how many passwords.
    pub(crate) throttle: throttle::Throttle,
    /// When this process began to answer.
    pub(crate) started: Timestamp,
    /// Where people sign in elsewhere.
    pub(crate) sso: Sso,
    /// Open pages that wait for news.
    pub(crate) live: live::Live,
}

/// Answers requests until told to stop, then lets those under way end.
pub async fn serve(engine: Engine, listener: TcpListener, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    let live = live::Live::new(&engine);
    let service = build(engine, live.clone()).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service)
        .with_graceful_shutdown(async move {
            // Whoever could tell us to stop may be gone; then we stop too.
            let _ = stop.wait_for(|stop| *stop).await;
            // These requests never end by themselves.
            live.close();
        })
        .await
}

/// Every route, and every layer around them.
pub fn router(engine: Engine) -> Router {
    let live = live::Live::new(&engine);
    build(engine, live)
}

fn build(engine: Engine, live: live::Live) -> Router {
    let https = engine.config().server.public_url.scheme() == "https";
    let started = engine.ambient().now();
    let (tokens, throttle) = (api::tokens::Tokens::default(), throttle::Throttle::default());
    let sso = Sso::new(engine.config().clone(), engine.ambient().clone());
    let web = Web { engine, tokens, throttle, started, sso, live };
    let statics = Router::new().route("/static/{name}", get(assets::serve)).layer(CompressionLayer::new());
    let desk = pages::routes()
        .merge(live::routes())
        .layer(axum::middleware::from_fn(typed::stays))
        .layer(DefaultBodyLimit::max(typed::MOST_FORM))
        .layer(session_layer(&web, https))
        .layer(header_layer(header::CACHE_CONTROL, "no-store"));
    let mut router = Router::new()
        .merge(desk)
        .merge(api::routes())
        .merge(hooks::routes())
        .merge(statics)
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_like_that)
        .layer(axum::middleware::from_fn(in_our_words))
        .layer(CatchPanicLayer::custom(broken))
        .layer(axum::middleware::from_fn(request_id::layer))
        .layer(header_layer(header::CONTENT_SECURITY_POLICY, CSP))
        .layer(header_layer(header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        // Not no-referrer: under it browsers hide the origin of our own forms, which is the only word
        // on where they come from that a browser sends over plain http.
        .layer(header_layer(header::REFERRER_POLICY, "same-origin"))
        .layer(header_layer(HeaderName::from_static("cross-origin-opener-policy"), "same-origin"))
        .layer(header_layer(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"))
        .layer(header_layer(header::X_FRAME_OPTIONS, "DENY"));
    if https {
        router = router
            .layer(header_layer(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000; includeSubDomains"));
    }
    router.with_state(web)
}

/// Own files only; nothing inline, nothing framed, forms to ourselves.
const CSP: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'";

fn header_layer(name: HeaderName, value: &'static str) -> SetResponseHeaderLayer<HeaderValue> {
    SetResponseHeaderLayer::if_not_present(name, HeaderValue::from_static(value))
}

fn session_layer(web: &Web, https: bool) -> SessionManagerLayer<Sessions> {
    let store = Sessions::new(web.engine.db().clone(), web.engine.ambient().clone());
    let idle = i64::try_from(guard::IDLE.as_secs()).unwrap_or(900);
    SessionManagerLayer::new(store)
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

#[allow(clippy::needless_pass_by_value, reason = "the shape that the layer takes")]
fn broken(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a handler panicked".to_owned());
    Failure::defect(text).into_response()
}
