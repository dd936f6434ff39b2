//! What the reader shows beside their password: an authenticator app, passkeys, recovery codes.

mod app;
mod codes;
mod keys;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;

pub use app::{AppPage, Picture};
pub use codes::CodesPage;

use crate::accounts::RECOVERY_CODES;
use crate::domain::actor::Right;
use crate::store::factors::{self, Held, PasskeyRow};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::page::{Layout, Section, render};
use crate::web::second::{self, SET_UP};
use crate::web::tell::list;
use crate::web::view::{Field, When};

/// `/account/second-factor`
#[derive(Template, Debug)]
#[template(path = "pages/factors.html")]
pub struct FactorsPage {
    /// Around it.
    pub layout: Layout,
    /// The reader's role demands one, and they have none: nothing else is open to them.
    pub demanded: bool,
    /// Since when there is an app.
    pub app: Option<When>,
    /// A secret was shown and waits for its first code.
    pub waiting: bool,
    /// Their passkeys.
    pub passkeys: Vec<PasskeyView>,
    /// Why no passkey can be used here.
    pub no_passkeys: Option<String>,
    /// What a new passkey is called, as typed.
    pub name: Field,
    /// Recovery codes that are left; absent where there is nothing to recover from.
    pub codes: Option<i64>,
    /// Recovery codes that are made at a time.
    pub codes_made: usize,
}

/// One passkey.
#[derive(Clone, Debug)]
pub struct PasskeyView {
    /// What it is called.
    pub name: String,
    /// When it was added.
    pub added: When,
    /// When it was used last.
    pub used: Option<When>,
    /// Where the form goes that removes it.
    pub remove: String,
}

/// What somebody has beside their password, in a sentence.
pub fn sentence(held: Held) -> String {
    let keys = match held.passkeys {
        0 => None,
        1 => Some("a passkey".to_owned()),
        many => Some(format!("{many} passkeys")),
    };
    let app = held.app.then(|| "an authenticator app".to_owned());
    let have: Vec<String> = app.into_iter().chain(keys).collect();
    if have.is_empty() {
        return "You have none: whoever learns your password can sign in as you.".to_owned();
    }
    let codes = match held.codes {
        1 => "1 recovery code is".to_owned(),
        many => format!("{many} recovery codes are"),
    };
    format!("You have {}. {codes} left.", have.join(" and "))
}

/// The routes of the second factor.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/account/second-factor", get(show))
        .merge(app::routes())
        .merge(keys::routes())
        .merge(codes::routes())
}

async fn show(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    Ok(render(&page(&web, &who).await?))
}

async fn layout(web: &Web, who: &Signed, title: &str) -> Result<Layout, Failure> {
    let mut tx = web.engine.db().read().await?;
    Ok(list::rail(&mut tx, who.layout(title, Section::Account).await).await?)
}

async fn page(web: &Web, who: &Signed) -> Result<FactorsPage, Failure> {
    let mut tx = web.engine.db().read().await?;
    let held = factors::held(&mut tx, who.user.id).await?;
    let app = factors::totp(&mut tx, who.user.id).await?;
    let keys = factors::passkeys(&mut tx, who.user.id, false).await?;
    drop(tx);
    let seen = who.seen(web.engine.ambient().now());
    let view = |row: PasskeyRow| PasskeyView {
        remove: format!("{SET_UP}/passkeys/{}/remove", row.id),
        name: row.name,
        added: When::at(row.made_at, seen),
        used: row.used_at.map(|at| When::at(at, seen)),
    };
    Ok(FactorsPage {
        layout: layout(web, who, "Second factor").await?,
        demanded: second::is_missing(web, &who.user, who.entry.by),
        waiting: app::waits(web, who).await?,
        app: app.and_then(|app| app.confirmed_at).map(|at| When::at(at, seen)),
        passkeys: keys.into_iter().map(view).collect(),
        no_passkeys: second::site(web).err().map(|why| why.to_string()),
        name: Field::default(),
        codes: held.any().then_some(held.codes),
        codes_made: RECOVERY_CODES,
    })
}
