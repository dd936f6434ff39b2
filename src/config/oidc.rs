//! `[auth.oidc]`: sign-in at an identity provider.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::SecretString;
use serde_json::Value;

use super::reader::{Item, Table};
use super::server::web_address;
use super::value::REDACTED;
use super::words::suggest;
use crate::domain::actor::Roles;

/// What the button says when the file does not say.
const BUTTON: &str = "Sign in with single sign-on";
/// What is asked for besides `openid` when the file does not say.
const SCOPES: [&str; 2] = ["profile", "email"];
/// Where the provider says what somebody is, when the file does not say.
const ROLE_CLAIM: &str = "/groups";

/// A provider at which people sign in.
#[derive(Clone)]
pub struct Oidc {
    /// What it calls itself, to the letter: its tokens say the same.
    pub issuer: String,
    /// What it calls us.
    pub client_id: String,
    /// Absent where it knows us by no secret; PKCE then protects the sign-in alone.
    pub client_secret: Option<SecretString>,
    /// What is asked for besides `openid`.
    pub scopes: Vec<String>,
    /// What the button says.
    pub button: String,
    /// A JSON pointer into what it says of somebody: a word or a list of words.
    pub role_claim: String,
    /// The role that each of its words stands for.
    pub roles: BTreeMap<String, String>,
    /// What somebody is for whom no word stands; nobody when absent.
    pub default_role: Option<String>,
}

impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oidc")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret.as_ref().map(|_| REDACTED))
            .field("scopes", &self.scopes)
            .field("button", &self.button)
            .field("role_claim", &self.role_claim)
            .field("roles", &self.roles)
            .field("default_role", &self.default_role)
            .finish()
    }
}

impl Oidc {
    /// The role of somebody of whom the provider says this: of those that its words stand for the
    /// one with the most rights, and of two with as many the first by name.
    pub fn role_of(&self, claims: &Value, known: &Roles) -> Option<&str> {
        let said = claims.pointer(&self.role_claim);
        let words: Vec<&str> = match said {
            Some(Value::String(word)) => vec![word],
            Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let mut roles: Vec<&str> =
            words.iter().filter_map(|word| self.roles.get(*word)).map(String::as_str).collect();
        roles.sort_by_key(|role| (std::cmp::Reverse(known.of(role).rights().count()), *role));
        roles.first().copied().or(self.default_role.as_deref())
    }
}

/// `[auth.oidc]`; `allow_private` says whether plain http will do.
pub(super) fn read(table: &Table<'_>, roles: &Roles, allow_private: bool) -> Option<Oidc> {
    let issuer = table.required("issuer", "the address that the provider calls itself by");
    let issuer = issuer.filter(|text| match web_address(text) {
        Ok(url) if url.scheme() == "http" && !allow_private => {
            table.mistake(
                "issuer",
                "must be https; plain http needs allow_private_destinations = true under [server]",
            );
            false
        }
        Ok(_) => true,
        Err(problem) => {
            table.mistake("issuer", problem);
            false
        }
    });
    let client_id = table.required("client_id", "what the provider calls this desk");
    // One that is still to come from the database is there once the configuration is complete.
    let client_secret = table.get("client_secret").and_then(|item| item.secret());
    let client_secret = client_secret.filter(|filled| !filled.late).map(|filled| filled.text);
    let scopes = if table.has("scopes") {
        table.list("scopes").iter().filter_map(Item::text).collect()
    } else {
        SCOPES.map(str::to_owned).into()
    };
    let button = table.text("button").unwrap_or_else(|| BUTTON.to_owned());
    let role_claim = table.text("role_claim").unwrap_or_else(|| ROLE_CLAIM.to_owned());
    if !role_claim.starts_with('/') {
        table.mistake("role_claim", "must be a JSON pointer such as \"/groups\"");
    }
    let entries = table.table("roles").map(|table| table.entries()).unwrap_or_default();
    let mapped = entries.iter().filter_map(|(word, item)| Some((word.clone(), role(item, roles)?))).collect();
    let default_role = table.get("default_role").and_then(|item| role(&item, roles));
    if entries.is_empty() && !table.has("default_role") {
        table.mistake("roles", "is missing; write \"desk-admins\" = \"admin\" under [auth.oidc.roles], or default_role: nobody could come in");
    }
    table.finish();
    Some(Oidc {
        issuer: issuer?,
        client_id: client_id?,
        client_secret,
        scopes,
        button,
        role_claim,
        roles: mapped,
        default_role,
    })
}

fn role(item: &Item<'_>, known: &Roles) -> Option<String> {
    let name = item.text()?;
    if known.knows(&name) {
        return Some(name);
    }
    let names: Vec<&str> = known.names().collect();
    item.mistake(format!("there is no role {name:?}; {}", suggest(&name, &names)));
    None
}
