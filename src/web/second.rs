//! The second factor at the doors: who is asked for one, sessions that are half signed in until it
//! was shown, and the check itself.

use std::time::Duration;

use axum::response::Redirect;
use tower_sessions::Session;
use uuid::Uuid;
use webauthn_rs::prelude::PasskeyAuthentication;

use super::Web;
use super::failure::Failure;
use super::guard::{self, Came, Fields};
use super::sessions::HALF;
use crate::accounts::passkeys::{self, NoPasskeys, Site};
use crate::accounts::tries::{self, Try, What};
use crate::accounts::{self, AccountError, Code, Purpose};
use crate::domain::sign_in::SignInBy;
use crate::domain::time::Timestamp;
use crate::store::accounts::{UserRow, user_by_id};
use crate::store::factors::{self, Held};

/// Where somebody sets up a second factor: what stands below it is open to those who must.
pub const SET_UP: &str = "/account/second-factor";
/// Where it is asked for after the password.
pub const DOOR: &str = "/login/second";
/// A password that was right waits this long for the second factor.
pub const HALF_LASTS: Duration = Duration::from_mins(5);
/// The field that asks for a passkey, with [`START`] in it.
pub const PASSKEY: &str = "passkey";
/// What the field [`PASSKEY`] holds.
pub const START: &str = "start";
/// The field with a browser's answer to it.
pub const CREDENTIAL: &str = "credential";

const HALF_SINCE: &str = "half_since";
const NEXT: &str = "next";
/// What a browser was asked, until it answers.
const ASKED: &str = "passkey_asked";

/// Whether somebody who has this beside their password is asked for it after they came in `by` this. The
/// one place that decides it.
pub fn is_asked(by: SignInBy, held: Held) -> bool {
    by == SignInBy::Password && held.any()
}

/// Whether somebody's role demands a second factor that they do not have.
pub fn is_missing(web: &Web, user: &UserRow, by: SignInBy) -> bool {
    let demanded = by == SignInBy::Password && web.engine.config().auth.second_factor.contains(&user.role);
    demanded && !user.second_factor
}

/// Whether an address is open to somebody who has to set up a second factor first.
pub fn is_open_without(path: &str) -> bool {
    let below = path.strip_prefix(SET_UP).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    below || matches!(path, "/logout" | "/confirm")
}

/// What somebody has beside their password.
pub async fn held(web: &Web, user: &UserRow) -> Result<Held, Failure> {
    let mut tx = web.engine.db().read().await?;
    Ok(factors::held(&mut tx, user.id).await?)
}

/// The place that passkeys belong to; or why there are none.
pub fn site(web: &Web) -> Result<Site, NoPasskeys> {
    Site::at(&web.engine.config().server.public_url)
}

/// Lets somebody in who gave their password, used a link or was vouched for; where they have a
/// second factor that is asked for, only as far as to the page that asks.
pub async fn come_in(
    web: &Web,
    session: &Session,
    user: &UserRow,
    came: Came<'_>,
    next: &str,
) -> Result<Redirect, Failure> {
    if !is_asked(came.by, held(web, user).await?) {
        guard::sign_in(web, session, user, came).await?;
        return Ok(Redirect::to(next));
    }
    session.clear().await;
    session.cycle_id().await?;
    session.insert(HALF, user.id.to_string()).await?;
    session.insert(HALF_SINCE, web.engine.ambient().now().as_micros()).await?;
    session.insert(NEXT, next).await?;
    Ok(Redirect::to(DOOR))
}

/// Somebody whose password was right, and who has yet to show their second factor. Nothing but the
/// page that asks for it knows such a session.
pub struct Half {
    /// Who they will be.
    pub user: UserRow,
    /// What they have.
    pub held: Held,
    /// Where they were going.
    pub next: String,
}

impl Half {
    /// Whose session this is half, while it lasts.
    pub async fn of(web: &Web, session: &Session) -> Result<Option<Self>, Failure> {
        let (Some(id), Some(since)) = (
            session.get::<Uuid>(HALF).await?,
            session.get::<i64>(HALF_SINCE).await?.map(Timestamp::from_micros),
        ) else {
            return Ok(None);
        };
        if web.engine.ambient().now().since(since) >= HALF_LASTS {
            return Ok(None);
        }
        let next = session.get::<String>(NEXT).await?.unwrap_or_else(|| "/".to_owned());
        let mut tx = web.engine.db().read().await?;
        let user = user_by_id(&mut tx, id).await?.filter(|user| user.disabled_at.is_none());
        let Some(user) = user else { return Ok(None) };
        let held = factors::held(&mut tx, user.id).await?;
        Ok(Some(Self { user, held, next }))
    }
}

/// What came of what somebody showed.
pub enum Shown {
    /// It is theirs; what they should know, where there is something.
    Right(Option<String>),
    /// It is not, in words.
    Wrong(&'static str),
    /// It was not looked at, since too many were tried. How long to wait.
    Later(Duration),
}

/// Checks a code or a passkey: not too often, and on record.
pub async fn check(
    web: &Web,
    session: &Session,
    user: &UserRow,
    fields: &Fields,
    purpose: Purpose,
    origin: &str,
) -> Result<Shown, Failure> {
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    // Counted apart from passwords: whoever knows one must not be able to begin anew by it.
    let attempt = Try { what: What::Code, purpose, name: &user.name, address: origin };
    match tries::begin(db, ambient, &attempt).await {
        Err(AccountError::Later(wait)) => {
            tracing::warn!(origin, "too many second factors were tried");
            return Ok(Shown::Later(wait));
        }
        begun => begun?,
    }
    let answer = fields.raw(CREDENTIAL);
    let shown = if answer.is_empty() {
        match accounts::check_code(db, ambient, user, fields.raw("code"), purpose, origin).await? {
            Code::Right => Shown::Right(None),
            Code::Recovery(left) => Shown::Right(Some(recovery(left))),
            Code::Wrong => Shown::Wrong(
                "That code is not right, or was used before. Wait for your app\u{2019}s next one, and try again.",
            ),
        }
    } else {
        // An answer is good for one question, right or not.
        let state = session.remove::<PasskeyAuthentication>(ASKED).await?;
        let right = match (site(web), state) {
            (Ok(site), Some(state)) => {
                passkeys::check(db, ambient, &site, user, (answer, &state), purpose, origin).await?
            }
            _ => false,
        };
        if right { Shown::Right(None) } else { Shown::Wrong("That passkey was not taken. Try again.") }
    };
    if matches!(shown, Shown::Right(_)) {
        tries::succeeded(db, &attempt).await?;
    }
    Ok(shown)
}

/// What whoever used a recovery code should know.
fn recovery(left: i64) -> String {
    let left = match left {
        0 => "none is left".to_owned(),
        1 => "1 is left".to_owned(),
        many => format!("{many} are left"),
    };
    format!(
        "You used a recovery code; {left}. If it was not you, or your phone is lost, change your second factor."
    )
}

/// Asks for one of somebody's passkeys: the options for their browser; absent where there is none,
/// or no place for it.
pub async fn ask_passkey(web: &Web, session: &Session, user: &UserRow) -> Result<Option<String>, Failure> {
    let Ok(site) = site(web) else { return Ok(None) };
    let Some(asked) = passkeys::ask(web.engine.db(), &site, user).await? else { return Ok(None) };
    session.insert(ASKED, asked.state).await?;
    Ok(Some(asked.options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_leads_to_a_second_factor_is_open_without_one() {
        for path in [SET_UP, "/account/second-factor/app", "/confirm", "/logout"] {
            assert!(is_open_without(path), "{path}");
        }
        for path in ["/", "/account", "/account/second-factors", "/confirm/x", "/live", "/account/password"] {
            assert!(!is_open_without(path), "{path}");
        }
    }

    #[test]
    fn a_provider_asks_for_a_second_factor_itself() {
        let held = Held { app: true, passkeys: 0, codes: 10 };
        assert!(is_asked(SignInBy::Password, held) && !is_asked(SignInBy::Oidc, held));
        assert!(!is_asked(SignInBy::Password, Held { app: false, ..held }), "codes alone are none");
    }
}
