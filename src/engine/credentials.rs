//! What says to a destination who we are: put into a request at the moment of sending, and taken out
//! of whatever comes back, so that no part of it is ever stored.

use std::error::Error as StdError;
use std::fmt;

use regex::Regex;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

use crate::config::{Config, Credential, Destination, REDACTED};
use crate::domain::classify::{Answer, Event};
use crate::domain::hide;

/// A shorter secret would be found in harmless words, and is kept when it comes back.
const SHORTEST: usize = 8;

/// One destination's.
pub(super) struct Credentials {
    headers: HeaderMap,
    query: Vec<Credential>,
    base: Option<Base>,
    echoes: Echoes,
}

/// Finds what must not be kept of any destination's credentials, however it is written: one that
/// serves several knows several.
#[derive(Clone)]
pub(super) struct Echoes(Option<Regex>);

impl Echoes {
    pub(super) fn of(config: &Config) -> Self {
        let mut echoes: Vec<String> = config
            .destinations
            .values()
            .flat_map(|destination| &destination.echoes)
            .map(|secret| secret.expose_secret().trim())
            .filter(|secret| secret.len() >= SHORTEST)
            .map(str::to_owned)
            .collect();
        echoes.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        echoes.dedup();
        Self(hide::pattern(&echoes))
    }
}

/// The beginning of a stored address, and of the one that it stands for.
struct Base {
    stored: String,
    whole: SecretString,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("headers", &self.headers).finish_non_exhaustive()
    }
}

impl Credentials {
    pub(super) fn new(
        destination: &Destination,
        echoes: &Echoes,
    ) -> Result<Self, Box<dyn StdError + Send + Sync>> {
        let mut headers = HeaderMap::new();
        for Credential { name, value } in &destination.headers {
            let mut value = HeaderValue::from_str(value.expose_secret())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes())?, value);
        }
        let base = destination.base_url.as_ref().zip(destination.secret_base.as_ref());
        let base = base.map(|(stored, whole)| Base {
            stored: stored.as_str().trim_end_matches('/').to_owned(),
            whole: whole.expose_secret().trim_end_matches('/').into(),
        });
        Ok(Self { headers, query: destination.query.clone(), base, echoes: echoes.clone() })
    }

    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
    }

    /// The address that a stored one stands for. The file may have changed since it was stored: it is
    /// refused where a secret is missing, or where there is another value under a parameter of ours.
    pub(super) fn address(&self, stored: &str) -> Result<Url, String> {
        let whole = self.base.as_ref().and_then(|base| {
            let rest = stored.strip_prefix(&base.stored).filter(|rest| rest.starts_with(['/', '?']))?;
            Some(format!("{}{rest}", base.whole.expose_secret()))
        });
        let text = match &whole {
            Some(whole) => whole,
            None if stored.contains(REDACTED) => {
                return Err(
                    "its address holds a secret of a base_url that the destination no longer has".to_owned()
                );
            }
            None => stored,
        };
        let mut url = Url::parse(text).map_err(|error| format!("the address: {error}"))?;
        for Credential { name, value } in &self.query {
            if url.query_pairs().any(|(known, _)| known == name.as_str()) {
                return Err(format!("its parameter {name} is now set by the destination's configuration"));
            }
            url.query_pairs_mut().append_pair(name, value.expose_secret());
        }
        Ok(url)
    }

    /// Some destinations answer with what they were sent, credentials included, and errors can quote
    /// an address.
    pub(super) fn taken_out(&self, event: Event) -> Event {
        let Some(echoes) = &self.echoes.0 else { return event };
        let safe = |text: &str| echoes.replace_all(text, REDACTED).into_owned();
        match event {
            Event::Answered(answer) => {
                let headers = answer.headers.into_iter().map(|(name, value)| (name, safe(&value))).collect();
                let text = String::from_utf8_lossy(&answer.body);
                let body = if echoes.is_match(&text) { safe(&text).into() } else { answer.body };
                Event::Answered(Answer { headers, body, ..answer })
            }
            Event::NoAnswer(symptom, text) => Event::NoAnswer(symptom, safe(&text)),
            reported @ Event::Reported(_) => reported,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Draft, Stored};
    use crate::domain::classify::Symptom;

    fn config() -> Config {
        let text = r#"
            [destinations.chat]
            base_url = "https://hooks.example.com/services/${secret:path}"
            headers = { Authorization = "Basic ${B64}" }
            query = { api_key = "${secret:key}" }
        "#;
        let env = |name: &str| (name == "B64").then(|| "dXNlcjpwYXNzd29yZC1vbmU=".to_owned());
        let stored = [("path", "T0/B0/path-secret"), ("key", "key&secret=é")];
        let stored: Stored =
            stored.into_iter().map(|(name, value)| (name.to_owned(), Ok(value.into()))).collect();
        Draft::read(Path::new("dlo.toml"), text, &env).unwrap().complete(&env, &stored).unwrap()
    }

    #[test]
    fn a_stored_address_is_completed_when_it_is_sent() {
        let config = config();
        let chat = &config.destinations["chat"];
        assert_eq!(chat.base_url.as_ref().unwrap().as_str(), "https://hooks.example.com/services/[redacted]");
        let credentials = Credentials::new(chat, &Echoes::of(&config)).unwrap();
        let sent = credentials.address("https://hooks.example.com/services/[redacted]/post?a=1").unwrap();
        assert_eq!(
            sent.as_str(),
            "https://hooks.example.com/services/T0/B0/path-secret/post?a=1&api_key=key%26secret%3D%C3%A9"
        );
        for stored in [
            "https://hooks.example.com/other/[redacted]/post",
            "https://hooks.example.com/services/[redacted]more/post",
            "https://hooks.example.com/post?api_key=mine",
        ] {
            assert!(credentials.address(stored).is_err(), "{stored}");
        }
        let earlier = credentials.address("https://earlier.example.com/post").unwrap();
        assert_eq!(earlier.host_str(), Some("earlier.example.com"));
        let shown = format!("{config:?} {credentials:?}");
        assert!(
            !shown.contains("-secret") && !shown.contains("&secret") && !shown.contains("dXNl"),
            "{shown}"
        );
    }

    #[test]
    fn what_comes_back_of_them_is_taken_out_however_it_is_written() {
        let config = config();
        let credentials = Credentials::new(&config.destinations["chat"], &Echoes::of(&config)).unwrap();
        for said in [
            "path: T0/B0/path-secret",
            r#"{"path":"T0\/B0\/path-secret"}"#,
            "/services/T0%2FB0%2Fpath-secret",
            "?api_key=key%26secret%3D%c3%a9",
            r#"{"key":"key&secret=\u00e9"}"#,
            "Basic dXNlcjpwYXNzd29yZC1vbmU=",
            "the password of user is password-one",
        ] {
            let Event::NoAnswer(_, safe) =
                credentials.taken_out(Event::NoAnswer(Symptom::Closed, said.to_owned()))
            else {
                panic!("it is another event")
            };
            assert!(safe.contains(REDACTED), "{said}: {safe}");
            assert!(
                !safe.contains("path-secret") && !safe.contains("-one") && !safe.contains("dXN"),
                "{safe}"
            );
        }
    }
}
