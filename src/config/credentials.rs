//! What says to a destination who we are: headers, parameters, and secrets in the path of an
//! address. They are put in at the moment of sending, are stored nowhere, and what a destination
//! sends back of them is not kept.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use super::destination::{Credential, header_name};
use super::reader::Item;
use super::server::web_address;
use super::value::Filled;
use crate::domain::name::speaks_of_a_secret;

/// What [`is_parameter`] wants, for people.
pub(super) const PARAMETER_RULE: &str =
    "must be the name of a parameter, of letters, digits, \"-\", \"_\", \".\" and \"~\"";

/// Whether a text names a parameter and means the same however it is encoded.
pub(super) fn is_parameter(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

/// Credentials of one kind.
#[derive(Default)]
pub(super) struct Credentials {
    pub(super) sent: Vec<Credential>,
    /// What of them must not be kept when it comes back.
    pub(super) secrets: Vec<SecretString>,
}

/// `headers = { … }` of a destination.
pub(super) fn headers(item: &Item<'_>) -> Credentials {
    read(item, |name, item, filled| {
        header_name(name).map_err(|problem| item.mistake(problem)).ok()?;
        let value = filled.text.expose_secret();
        if HeaderValue::from_str(value).is_err() {
            item.mistake("this value cannot be sent in a header: it holds a control character or a letter outside ASCII");
            return None;
        }
        Some(in_header(name, value))
    })
}

/// `query = { … }` of a destination.
pub(super) fn query(item: &Item<'_>) -> Credentials {
    read(item, |name, item, filled| {
        if !is_parameter(name) {
            item.mistake(
                "the name must be that of a parameter, of letters, digits, \"-\", \"_\", \".\" and \"~\"",
            );
            return None;
        }
        Some(vec![filled.text.clone()])
    })
}

fn read(
    item: &Item<'_>,
    fits: impl Fn(&str, &Item<'_>, &Filled) -> Option<Vec<SecretString>>,
) -> Credentials {
    let mut read = Credentials::default();
    let Some(table) = item.table() else { return read };
    for (name, item) in table.entries() {
        let Some(filled) = item.secret() else { continue };
        let Some(more) = fits(&name, &item, &filled) else { continue };
        read.secrets.extend([filled.secrets, filled.variables, more].concat());
        read.sent.push(Credential { name, value: filled.text });
    }
    read
}

/// The secrets of a header's value by its own form: its last word where the name speaks of one, and
/// the password where it is written as basic authentication has it.
fn in_header(name: &str, value: &str) -> Vec<SecretString> {
    let Some(word) = value.split_ascii_whitespace().last().filter(|_| speaks_of_a_secret(name)) else {
        return Vec::new();
    };
    let basic = value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic "));
    let pair = STANDARD.decode(word).ok().filter(|_| basic).and_then(|pair| String::from_utf8(pair).ok());
    let password = pair.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, password)| password);
    [Some(word), password].into_iter().flatten().map(SecretString::from).collect()
}

/// A `base_url`.
pub(super) struct Base {
    pub(super) shown: Url,
    /// With its secrets, when it has some.
    pub(super) whole: Option<SecretString>,
    pub(super) secrets: Vec<SecretString>,
}

/// Reads a `base_url`, which may hold secrets in its path. For one that is mistaken another stands in,
/// so that nobody is told that there is none.
pub(super) fn base(item: &Item<'_>) -> Option<Base> {
    item.secret().and_then(|filled| checked(item, filled)).or_else(|| {
        let shown = Url::parse("https://mistaken.invalid").ok()?;
        Some(Base { shown, whole: None, secrets: Vec::new() })
    })
}

fn checked(item: &Item<'_>, filled: Filled) -> Option<Base> {
    match (web_address(filled.text.expose_secret()), web_address(&filled.shown)) {
        (Err(problem), _) if !filled.late => item.mistake(problem),
        (Ok(shown), _) if filled.secrets.is_empty() => {
            return Some(Base { shown, whole: None, secrets: Vec::new() });
        }
        (Ok(whole), Ok(shown)) if shown.origin() == whole.origin() => {
            return Some(Base { shown, whole: Some(String::from(whole).into()), secrets: filled.secrets });
        }
        _ => item.mistake("a secret may stand in the path only; the host and the port are shown"),
    }
    None
}

/// Refuses a value from elsewhere in a parameter that speaks of a credential: the address is stored.
pub(super) fn none_in_path(item: &Item<'_>) {
    let raw = item.value.get_ref().as_str().unwrap_or_default();
    let query = raw.split_once('?').map_or("", |(_, query)| query);
    let mut parts = query.split('&').filter_map(|part| part.split_once('='));
    if parts.any(|(name, value)| value.replace("$${", "").contains("${") && speaks_of_a_secret(name)) {
        item.mistake("the address of a request is stored; write credentials under the destination's query");
    }
}

/// Refuses a step that has a parameter of its own where the destination puts one.
pub(super) fn check_step(query: &[Credential], path: &str, item: &Item<'_>) {
    let own = path.split_once('?').map_or("", |(_, query)| query);
    let has = |name: &str| own.split('&').any(|part| part.split('=').next() == Some(name));
    for theirs in query.iter().filter(|theirs| has(&theirs.name)) {
        item.mistake(format!("the destination sets the parameter {} already", theirs.name));
    }
}
