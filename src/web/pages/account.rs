//! The reader's own account.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use super::access::{Checked, check_password};
use crate::accounts::{self, AccountError, MIN_PASSWORD};
use crate::domain::actor::{Right, Role};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::labels;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::view::{Field, When};

/// `/account`
#[derive(Template, Debug)]
#[template(path = "pages/account.html")]
pub struct AccountPage {
    /// Around it.
    pub layout: Layout,
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// All rights, held or not.
    pub rights: Vec<RightRow>,
    /// When they signed in.
    pub signed_in_at: Option<When>,
    /// Its value is never filled.
    pub old_password: Field,
    /// Its value is never filled.
    pub new_password: Field,
    /// The fewest characters of a password.
    pub shortest: usize,
    /// For the password form.
    pub action_id: String,
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

/// One right and who has it.
#[derive(Clone, Debug)]
pub struct RightRow {
    /// What it lets one do.
    pub words: String,
    /// Its published name.
    pub right: Right,
    /// The reader has it.
    pub held: bool,
    /// The least role that has it.
    pub from: Role,
}

/// The table of all rights as `role` has them.
pub fn rights_of(role: Role) -> Vec<RightRow> {
    let row = |&right: &Right| RightRow {
        words: labels::right(right),
        right,
        held: role.may(right),
        from: Role::least(right),
    };
    Right::ALL.iter().map(row).collect()
}

/// The account's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/account", get(account)).route("/account/password", post(change_password))
}

async fn account(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    Ok(render(&page(&web, &who).await?))
}

async fn page(web: &Web, who: &Signed) -> Result<AccountPage, Failure> {
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, who.layout("Account", Section::Account).await).await?;
    drop(tx);
    Ok(AccountPage {
        layout,
        name: who.user.name.clone(),
        role: who.user.role,
        rights: rights_of(who.user.role),
        signed_in_at: Some(When::at(who.since, web.engine.ambient().now())),
        old_password: Field::default(),
        new_password: Field::default(),
        shortest: MIN_PASSWORD,
        action_id: web.engine.ambient().opaque().to_string(),
    })
}

async fn change_password(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let (old, new) = (fields.raw("old").to_owned(), fields.raw("new").to_owned());
    let mut again = page(&web, &who).await?;
    if let Err(error) = accounts::password_fits(&new) {
        again.new_password.error = Some(sentence(&error.to_string()));
        return Ok(Checked::Wrong.answer(&again));
    }
    let checked = check_password(&web, &who.user.name, old.clone(), &who.origin).await?;
    if let Some(words) = checked.words("That is not your present password.") {
        again.old_password.error = Some(words);
        return Ok(checked.answer(&again));
    }
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    match accounts::change_password(db, ambient, &who.user.name, old, new, &who.by(&actor)).await {
        Ok(()) => {
            who.sign_out().await?;
            Ok(Redirect::to("/login?changed").into_response())
        }
        // Somebody changed it between the two looks.
        Err(error @ AccountError::Password(_)) => {
            again.old_password.error = Some(sentence(&error.to_string()));
            Ok(Checked::Wrong.answer(&again))
        }
        Err(error) => Err(error.into()),
    }
}
