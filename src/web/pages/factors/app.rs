//! Setting up an authenticator app, and turning it off.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use qrcode::{Color, QrCode};

use super::codes::CodesPage;
use super::layout;
use crate::accounts::{self, AppSecret, Confirmed};
use crate::domain::actor::Right;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::pages::confirm::{self, Asks};
use crate::web::second::SET_UP;
use crate::web::view::Field;

const APP: &str = "/account/second-factor/app";

/// `/account/second-factor/app`
#[derive(Template, Debug)]
#[template(path = "pages/factor_app.html")]
pub struct AppPage {
    /// Around it.
    pub layout: Layout,
    /// What is scanned.
    pub picture: Option<Picture>,
    /// What is typed where nothing can be scanned.
    pub secret: String,
    /// The app's first code. Its value is never filled.
    pub code: Field,
}

/// A QR code as a path of dark runs, one unit a square.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Squares on each side, with the light frame that readers need.
    pub size: usize,
    /// The path's commands.
    pub path: String,
}

/// Squares of light around the code.
const FRAME: usize = 4;

impl Picture {
    /// Of a text; absent for one that is too long.
    pub fn of(text: &str) -> Option<Self> {
        use std::fmt::Write as _;
        let code = QrCode::new(text).ok()?;
        let width = code.width();
        let mut path = String::new();
        for (y, row) in code.to_colors().chunks(width).enumerate() {
            let mut x = 0;
            for run in row.chunk_by(|a, b| a == b) {
                if run[0] == Color::Dark {
                    let length = run.len();
                    // Writing to a String cannot fail.
                    let _ = write!(path, "M{} {}h{length}v1h-{length}z", x + FRAME, y + FRAME);
                }
                x += run.len();
            }
        }
        Some(Self { size: width + 2 * FRAME, path })
    }
}

/// The app's routes.
pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/account/second-factor/app", get(show).post(begin))
        .route("/account/second-factor/app/confirm", post(first_code))
        .route("/account/second-factor/app/off", post(turn_off))
}

/// What the app shows beside the name of the person: which desk it is.
fn issuer(web: &Web) -> String {
    let place = web.engine.config().server.public_url.domain().filter(|name| !name.contains(':'));
    place.map_or_else(|| "Dead Letter Office".to_owned(), |place| format!("Dead Letter Office, {place}"))
}

async fn secret(web: &Web, who: &Signed) -> Result<Option<AppSecret>, Failure> {
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    Ok(accounts::waiting_app(db, ambient, &who.user, &issuer(web)).await?)
}

/// Whether a secret waits for its first code.
pub(super) async fn waits(web: &Web, who: &Signed) -> Result<bool, Failure> {
    Ok(secret(web, who).await?.is_some())
}

async fn page(web: &Web, who: &Signed, code: Field) -> Result<Option<AppPage>, Failure> {
    let Some(secret) = secret(web, who).await? else { return Ok(None) };
    Ok(Some(AppPage {
        layout: layout(web, who, "Set up an authenticator app").await?,
        picture: Picture::of(&secret.url),
        secret: secret.text,
        code,
    }))
}

fn back() -> Response {
    Redirect::to(SET_UP).into_response()
}

async fn show(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    // Whoever finds a screen unlocked must not read a secret off it that is about to count.
    if let Some(confirm) = confirm::before(&web, &who, APP) {
        return Ok(Redirect::to(&confirm).into_response());
    }
    Ok(page(&web, &who, Field::default()).await?.map_or_else(back, |page| render(&page)))
}

async fn begin(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    let what = "Then you see the secret that your app needs.";
    let asks = Asks { action: APP, what, back: SET_UP };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    accounts::begin_app(web.engine.db(), web.engine.ambient(), &who.user).await?;
    Ok(Redirect::to(APP).into_response())
}

async fn first_code(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let code = fields.raw("code");
    match accounts::confirm_app(db, ambient, &who.user, code, &who.by(&actor)).await? {
        Confirmed::Done(codes) => {
            who.flash(true, "Your app is set up: from now on a code of it is asked for after your password.")
                .await?;
            CodesPage::or_back(&web, &who, codes).await
        }
        Confirmed::Wrong => {
            let error = "That is not the code that stands now. Check that the phone\u{2019}s clock is right.";
            let page = page(&web, &who, Field::wrong("", error)).await?;
            Ok(page.map_or_else(back, |page| render_as(StatusCode::UNPROCESSABLE_ENTITY, &page)))
        }
        Confirmed::Nothing => {
            who.flash(false, "No app waits for its first code, or it waited too long. Set it up anew.")
                .await?;
            Ok(back())
        }
    }
}

async fn turn_off(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    let what = "Then your authenticator app is turned off.";
    let asks = Asks { action: &format!("{APP}/off"), what, back: SET_UP };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let actor = who.actor();
    accounts::turn_off_app(web.engine.db(), web.engine.ambient(), &who.user, &who.by(&actor)).await?;
    who.flash(true, "Your authenticator app is turned off. Delete it from the app too.").await?;
    Ok(back())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_the_squares_of_the_code() {
        let text = "otpauth://totp/x?secret=ABC";
        let (picture, code) = (Picture::of(text).unwrap(), QrCode::new(text).unwrap());
        assert_eq!(picture.size, code.width() + 8);
        let number = |text: &str| text.parse::<usize>().unwrap();
        let mut drawn = vec![Color::Light; code.width() * code.width()];
        for run in picture.path.split('M').skip(1) {
            let (place, length) = run.split_once('h').unwrap();
            let (x, y) = place.split_once(' ').unwrap();
            let start = (number(y) - FRAME) * code.width() + number(x) - FRAME;
            drawn[start..start + number(length.split('v').next().unwrap())].fill(Color::Dark);
        }
        assert_eq!(drawn, code.to_colors());
        assert!(Picture::of(&"x".repeat(10_000)).is_none());
    }
}
