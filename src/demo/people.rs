//! Who can sign in to the demo.

use crate::accounts::{self, AccountError, By};
use crate::domain::actor::{Actor, Role, Scope};
use crate::domain::ambient::Ambient;
use crate::store::{Db, accounts as stored};

/// The colleague who was here before you: what was done with dead letters has this name on it.
pub(super) const COLLEAGUE: (&str, Role) = ("nora", Role::Approver);

/// A name for each role, and what it is for.
pub(super) const PEOPLE: [(&str, Role, &str); 5] = [
    ("vera", Role::Viewer, "looks"),
    ("oscar", Role::Operator, "replays and resolves"),
    ("ada", Role::Approver, "also overrides a named check"),
    (COLLEAGUE.0, COLLEAGUE.1, "the same; was here before you and asked for an override"),
    ("admin", Role::Admin, "also manages people and tokens"),
];

/// Letters and digits that nobody takes for another.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";

const ORIGIN: &str = "the demo";

/// Makes the accounts, or lets those that are there in with a new password; the password.
pub(super) async fn let_in(db: &Db, ambient: &Ambient) -> Result<String, AccountError> {
    let password = password(ambient);
    let actor = Actor::Cli { user: "demo".to_owned() };
    let by = By { actor: &actor, origin: ORIGIN };
    let mut tx = db.read().await?;
    let known = stored::users(&mut tx).await?;
    drop(tx);
    for (name, role, _) in PEOPLE {
        match known.iter().find(|user| user.name == name) {
            None => {
                accounts::add_user(db, ambient, name, role, Some(password.as_str().into()), &by).await?;
            }
            Some(user) => {
                if user.role != role.as_str() {
                    accounts::set_role(db, ambient, name, role, &by).await?;
                }
                let secret = accounts::make_link(db, ambient, Some(name), &by).await?;
                accounts::use_link(db, ambient, &secret, name, password.as_str().into(), ORIGIN).await?;
            }
        }
    }
    // What the shop's operations are handed in with. Nobody needs its secret here.
    match accounts::create_token(db, ambient, "shop", Scope::Submit, None, &by).await {
        Ok(_) | Err(AccountError::Name(_)) => Ok(password),
        Err(error) => Err(error),
    }
}

/// Sixty random bits that can be typed.
fn password(ambient: &Ambient) -> String {
    let letters: Vec<char> = ambient.secret()[..12]
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect();
    letters.chunks(4).map(|part| part.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}
