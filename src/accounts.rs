//! People, tokens and secrets: passwords, one-time links, API tokens, of which only hashes are stored
//! and which leave this module once, when they are made; and what the configuration keeps in the
//! database, in envelopes.

mod codes;
mod door;
mod elsewhere;
mod guessable;
mod keys;
mod links;
pub mod passkeys;
mod passwords;
mod people;
mod record;
mod secrets;
mod sessions;
mod tokens;
pub mod tries;

use std::time::Duration;

use sha2::{Digest, Sha256};

pub use codes::{
    AppSecret, Code, Confirmed, Purpose, RECOVERY_CODES, begin_app, check_code, confirm_app, new_codes,
    remove_factors, turn_off_app, waiting_app,
};
pub use door::{came_in_by_link, change_password, sign_in, sign_in_from};
pub use elsewhere::{Entry, refused_elsewhere, sign_in_elsewhere, signed_in_again};
pub use keys::Keys;
pub use links::{LINK_LASTS, LinkFor, first_link, link_details, link_for, make_link, use_link};
pub use passwords::{MAX_PASSWORD, MIN_PASSWORD, NewPassword};
pub use people::{add_user, disable, enable, set_role, set_zone};
pub use secrets::{
    MAX_SECRET, Rotation, SECRETS_SINCE, open_secrets, remove_secret, rotate_keys, set_secret,
};
pub use sessions::{end_session, sessions, sign_out, sign_out_everywhere};
pub use tokens::{create_token, revoke_token, token_holder, working_tokens};

use crate::domain::actor::{Actor, Right, Rights};
use crate::domain::envelope::EnvelopeError;
use crate::domain::filter::RESERVED_NAMES;
use crate::store::accounts::{self, UserRow};
use crate::store::{StoreError, Tx};

/// Why something about an account was refused.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name is taken, or no name.
    #[error("{0}")]
    Name(String),
    /// Whoever asked may not; the text says what they would need.
    #[error("{0}")]
    Forbidden(String),
    /// Too many were tried: how long to wait before the next try.
    #[error("there were too many tries; wait, then try again")]
    Later(Duration),
    /// The password is too short, too long or easy to guess.
    #[error("{0}")]
    Password(String),
    /// The present password, which is needed for a new one, is another.
    #[error("the present password is not right")]
    Present,
    /// No secret can be stored so.
    #[error("{0}")]
    Secret(String),
    /// There is no such person, token or secret.
    #[error("there is no {0}")]
    Unknown(String),
    /// There is no such role.
    #[error("{0}")]
    Role(String),
    /// Nobody could manage people any more.
    #[error("{0} is the last who can sign in and manage people; give somebody else that right first")]
    LastAdmin(String),
    /// A second factor cannot be changed like that as things stand.
    #[error("{0}")]
    Factor(String),
    /// A link would let nobody in.
    #[error("{0} is disabled; let them in again first")]
    ShutOut(String),
    /// The link was used, lapsed or never existed.
    #[error("this link is no longer valid; ask for a new one")]
    Link,
    /// The database said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored secret could not be opened or closed.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A hash could not be made or read.
    #[error("password hashing failed: {0}")]
    Hash(String),
    /// A library refused what it should take.
    #[error("second factor: {0}")]
    Defect(String),
}

/// Who changes an account, and from where, for the audit.
#[derive(Clone, Debug)]
pub struct By<'a> {
    /// Who.
    pub actor: &'a Actor,
    /// An address, or the command line.
    pub origin: &'a str,
}

/// Refuses whoever may not manage people, and whoever would get hold of more than they have: giving
/// a right, or touching the account of somebody with it, takes the right itself.
fn may_manage(by: &By<'_>, rights: Rights) -> Result<(), AccountError> {
    permitted(by, Right::ManagePeople)?;
    no_more_than_theirs(by, rights, "role")
}

/// Refuses to hand on rights that whoever does it lacks.
fn no_more_than_theirs(by: &By<'_>, rights: Rights, of: &str) -> Result<(), AccountError> {
    let Actor::Person { role, .. } = by.actor else { return Ok(()) };
    let beyond = rights.beyond(role.rights());
    if beyond.is_empty() {
        return Ok(());
    }
    Err(AccountError::Forbidden(format!(
        "you lack rights that this {of} has ({beyond}); ask somebody who has them"
    )))
}

/// Refuses whoever lacks a right, whatever page or command they came by.
fn permitted(by: &By<'_>, right: Right) -> Result<(), AccountError> {
    let refused = || AccountError::Forbidden(format!("you need {}", by.actor.needs(right)));
    by.actor.may(right).then_some(()).ok_or_else(refused)
}

async fn known(tx: &mut Tx, name: &str) -> Result<UserRow, AccountError> {
    accounts::user_by_name(tx, name)
        .await?
        .ok_or_else(|| AccountError::Unknown(format!("person named {name:?}")))
}

/// What the audit calls the engine, and somebody who said a name that nobody has.
const THE_DESKS_OWN: [&str; 2] = ["engine", "unknown"];

fn checked_name(name: &str) -> Result<String, AccountError> {
    let name = name.trim();
    let fits = (1..=64).contains(&name.chars().count());
    // A colon would let a name pose as a token's or the command line's.
    if !fits || name.chars().any(|letter| letter.is_control() || letter == ':') {
        return Err(AccountError::Name(
            "a name has 1 to 64 characters, without colons and control characters".to_owned(),
        ));
    }
    if RESERVED_NAMES.iter().chain(&THE_DESKS_OWN).any(|word| word.eq_ignore_ascii_case(name)) {
        return Err(AccountError::Name(format!("nobody is called {name}: the desk uses that word itself")));
    }
    Ok(name.to_owned())
}

/// SHA-256 of a secret that we made: it has 256 random bits, so nothing slower is needed.
pub fn hash_secret(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
