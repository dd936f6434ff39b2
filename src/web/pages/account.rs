//! The reader's own account.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use uuid::Uuid;

use super::access::{Checked, check_password, new_password};
use crate::accounts::{self, AccountError, MIN_PASSWORD, Purpose};
use crate::domain::actor::{Right, Standing};
use crate::domain::sign_in::SignInBy;
use crate::domain::time::Timestamp;
use crate::domain::zone::Zone;
use crate::store::factors::held;
use crate::store::sessions::SessionRow;
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::labels;
use crate::web::listing::Choice;
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::list;
use crate::web::view::{Field, Seen, When};

/// `/account`
#[derive(Template, Debug)]
#[template(path = "pages/account.html")]
pub struct AccountPage {
    /// Around it.
    pub layout: Layout,
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: Standing,
    /// All rights, held or not.
    pub rights: Vec<RightRow>,
    /// When they signed in.
    pub signed_in_at: Option<When>,
    /// Where they are signed in, the last used first.
    pub sessions: Vec<SessionView>,
    /// They did so at the identity provider.
    pub elsewhere: bool,
    /// They have a password here that they can change.
    pub has_password: bool,
    /// Its value is never filled.
    pub old_password: Field,
    /// Its value is never filled.
    pub new_password: Field,
    /// The fewest characters of a password.
    pub shortest: usize,
    /// What they show beside their password, in a sentence.
    pub second_factor: String,
    /// They have one.
    pub has_second_factor: bool,
    /// For the password form.
    pub action_id: String,
    /// The zones that there are, with the reader's own.
    pub zones: Vec<Choice>,
    /// What is wrong with the zone that was sent.
    pub zone_error: Option<String>,
    /// This moment as they read it.
    pub clock: When,
}

impl AccountPage {
    /// What a password has to be.
    pub fn hint(&self) -> String {
        super::access::password_hint(self.shortest)
    }

    /// Something has to be put right.
    pub fn wrong(&self) -> bool {
        self.old_password.error.is_some() || self.new_password.error.is_some()
    }
}

/// One place where somebody is signed in.
#[derive(Clone, Debug)]
pub struct SessionView {
    /// Where the form goes that ends it; absent for the one that the page is looked at in.
    pub end: Option<String>,
    /// The browser: "Firefox on Linux".
    pub agent: String,
    /// From where they signed in.
    pub address: String,
    /// With what.
    pub by: &'static str,
    /// When they signed in.
    pub since: When,
    /// Its last use.
    pub used: When,
}

impl SessionView {
    /// As whoever is signed in in `here` sees it; `below` is the path of whose it is.
    pub(super) fn of(row: SessionRow, here: Uuid, below: &str, seen: Seen) -> Self {
        Self {
            end: (row.id != here).then(|| format!("{below}/sessions/{}/end", row.id)),
            by: labels::signed_in_by(row.signed_in_by),
            since: When::at(row.began_at, seen),
            used: When::at(row.seen_at, seen),
            agent: row.agent,
            address: row.address,
        }
    }
}

/// What is said of a session after its end was asked for.
pub(super) fn ended(row: Option<SessionRow>) -> String {
    match row {
        Some(row) => format!("{}, from {}, is signed out.", row.agent, row.address),
        None => "That session had ended already.".to_owned(),
    }
}

/// One right and who has it.
#[derive(Clone, Debug)]
pub struct RightRow {
    /// What it lets one do.
    pub words: String,
    /// Its published name.
    pub right: Right,
    /// The reader has it.
    pub held: bool,
    /// The roles to ask for: the least built in, and those of the configuration.
    pub from: String,
}

/// The table of all rights as `role` has them.
pub fn rights_of(role: &Standing) -> Vec<RightRow> {
    let row = |&right: &Right| {
        let (built_in, own) = role.roles().to_ask_for(right);
        let from = [&[built_in.as_str()], own.as_slice()].concat().join(", ");
        RightRow { words: labels::right(right), right, held: role.may(right), from }
    };
    Right::ALL.iter().map(row).collect()
}

/// The account's routes.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/account", get(account))
        .route("/account/password", post(change_password))
        .route("/account/zone", post(change_zone))
        .route("/account/sessions/{id}/end", post(end_session))
        .route("/account/sign-out", post(sign_out_everywhere))
}

async fn account(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    Ok(render(&page(&web, &who).await?))
}

async fn page(web: &Web, who: &Signed) -> Result<AccountPage, Failure> {
    let mut tx = web.engine.db().read().await?;
    let held = held(&mut tx, who.user.id).await?;
    let layout = list::rail(&mut tx, who.layout("Account", Section::Account).await).await?;
    drop(tx);
    let seen = who.seen(web.engine.ambient().now());
    let sessions = accounts::sessions(web.engine.db(), web.engine.ambient(), who.user.id).await?;
    let session = |row| SessionView::of(row, who.entry.id, "/account", seen);
    Ok(AccountPage {
        layout,
        sessions: sessions.into_iter().map(session).collect(),
        zones: zones(seen.zone),
        zone_error: None,
        clock: When::at(seen.now, seen),
        name: who.user.name.clone(),
        role: who.role.clone(),
        rights: rights_of(&who.role),
        signed_in_at: Some(When::at(who.since.max(Timestamp::from_micros(who.entry.began_at)), seen)),
        elsewhere: who.entry.by == SignInBy::Oidc,
        has_password: who.user.password_hash.is_some(),
        old_password: Field::default(),
        new_password: Field::default(),
        shortest: MIN_PASSWORD,
        second_factor: super::factors::sentence(held),
        has_second_factor: held.any(),
        action_id: web.engine.ambient().opaque().to_string(),
    })
}

/// Places to choose from; one that the list does not name by a place stays chosen.
pub fn zones(chosen: Zone) -> Vec<Choice> {
    let choice = |zone: Zone| Choice {
        value: zone.name().to_owned(),
        words: zone.name().replace('_', " "),
        chosen: zone == chosen,
    };
    let mut zones: Vec<Choice> = Zone::places().map(choice).collect();
    if !zones.iter().any(|zone| zone.chosen) {
        zones.push(choice(chosen));
    }
    zones
}

async fn change_zone(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let Some(zone) = Zone::named(fields.get("zone")) else {
        let mut again = page(&web, &who).await?;
        again.zone_error = Some("Choose a zone of the list.".to_owned());
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &again));
    };
    accounts::set_zone(web.engine.db(), &who.user.name, zone).await?;
    who.flash(true, format!("Full times are written in {zone} from now on.")).await?;
    Ok(Redirect::to("/account").into_response())
}

async fn sign_out_everywhere(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let who = posted.who;
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    accounts::sign_out_everywhere(db, ambient, &who.user.name, &who.by(&actor)).await?;
    who.leave().await?;
    Ok(Redirect::to("/login?left=1").into_response())
}

async fn end_session(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let who = posted.who;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let row = accounts::end_session(db, ambient, &who.user, id, &who.by(&actor)).await?;
    if id == who.entry.id {
        who.leave().await?;
        return Ok(Redirect::to("/login?left=1").into_response());
    }
    who.flash(true, ended(row)).await?;
    Ok(Redirect::to("/account").into_response())
}

async fn change_password(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let (old, new) = (fields.raw("old").to_owned(), new_password(&web, fields.raw("new")));
    let mut again = page(&web, &who).await?;
    if let Err(error) = new.fits() {
        again.new_password.error = Some(sentence(&error.to_string()));
        return Ok(Checked::Wrong.answer(&again));
    }
    let checked = check_password(&web, &who.user.name, old.clone(), Purpose::Confirm, &who.origin).await?;
    if let Some(words) = checked.words("That is not your present password.") {
        again.old_password.error = Some(words);
        return Ok(checked.answer(&again));
    }
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    match accounts::change_password(db, ambient, &who.user.name, old, new, &who.by(&actor)).await {
        Ok(()) => {
            who.leave().await?;
            Ok(Redirect::to("/login?changed").into_response())
        }
        Err(error @ AccountError::Password(_)) => {
            again.new_password.error = Some(sentence(&error.to_string()));
            Ok(Checked::Wrong.answer(&again))
        }
        Err(error) => Err(error.into()),
    }
}
