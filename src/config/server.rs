//! `[server]`, `[engine]` and the words of a retry policy.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use url::Url;

use super::reader::{Item, Notes, Table};
use crate::domain::retry::RetryPolicy;

/// What the process listens on, is reached at and stores in.
#[derive(Clone)]
pub struct Server {
    /// Address and port.
    pub listen: SocketAddr,
    /// What people and links use; `https` makes cookies secure.
    pub public_url: Url,
    /// `sqlite:FILE` or `postgres://...`; may hold a password.
    pub database_url: String,
    /// Whether requests may go to loopback and private networks, and over plain http.
    pub allow_private_destinations: bool,
    /// Open connections at most; at least 16.
    pub max_connections: usize,
    /// The longest that a client may be silent in the middle of something; above 0.
    pub client_timeout: Duration,
    /// Proxies whose word on where a request comes from is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Where they say so.
    pub proxy_header: ProxyHeader,
    /// Calls of the API a second with one token, on each node; at least 1.
    pub token_rate: u32,
    /// Webhooks a second from one source, on each node; at least 1.
    pub source_rate: u32,
}

text_enum! {
    /// The header in which a proxy says where a request comes from. Only one is looked at: a proxy
    /// passes on the other as its client wrote it.
    pub enum ProxyHeader {
        /// A list of addresses.
        XForwardedFor = "X-Forwarded-For",
        /// RFC 7239.
        Forwarded = "Forwarded",
    }
}

impl ProxyHeader {
    /// As headers are looked up.
    pub fn name(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = self.database_url.split(':').next().unwrap_or_default();
        f.debug_struct("Server")
            .field("listen", &self.listen)
            .field("public_url", &self.public_url.as_str())
            .field("database_url", &format_args!("{scheme}:(redacted)"))
            .field("allow_private_destinations", &self.allow_private_destinations)
            .field("max_connections", &self.max_connections)
            .field("client_timeout", &self.client_timeout)
            .field("trusted_proxies", &self.trusted_proxies)
            .field("proxy_header", &self.proxy_header)
            .field("token_rate", &self.token_rate)
            .field("source_rate", &self.source_rate)
            .finish()
    }
}

/// How attempts are carried out on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// Attempts in flight at once; at least 1.
    pub concurrency: usize,
    /// How long a worker may hold an operation; longer than every destination's timeout.
    pub lease: Duration,
    /// Bytes of an answer that are kept.
    pub answer_cap: usize,
    /// After this a whole operation is forgotten, and its key is free again; absent when operations
    /// are kept for ever.
    pub key_retention: Option<Duration>,
}

impl Default for Engine {
    fn default() -> Self {
        Self { concurrency: 64, lease: Duration::from_mins(1), answer_cap: 64 * 1024, key_retention: None }
    }
}

/// The part of a retry policy that a destination or an operation states for itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryOverride {
    /// Sends in one round; at least 1.
    pub attempts: Option<u32>,
    /// From the beginning of the round.
    pub max_age: Option<Duration>,
    /// The most that the first wait can be.
    pub first_delay: Option<Duration>,
    /// At least 1.
    pub factor: Option<f64>,
    /// No wait is longer.
    pub max_delay: Option<Duration>,
}

impl RetryOverride {
    /// This over a policy: what is not stated stays.
    pub fn over(&self, base: &RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            attempts: self.attempts.unwrap_or(base.attempts),
            max_age: self.max_age.unwrap_or(base.max_age),
            first_delay: self.first_delay.unwrap_or(base.first_delay),
            factor: self.factor.unwrap_or(base.factor),
            max_delay: self.max_delay.unwrap_or(base.max_delay),
        }
    }

    /// What is not stated here is taken from the other.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self {
            attempts: self.attempts.or(other.attempts),
            max_age: self.max_age.or(other.max_age),
            first_delay: self.first_delay.or(other.first_delay),
            factor: self.factor.or(other.factor),
            max_delay: self.max_delay.or(other.max_delay),
        }
    }
}

/// A retry table; nothing is stated when it is absent.
pub(super) fn read_retry(table: Option<Table<'_>>) -> RetryOverride {
    let Some(table) = table else { return RetryOverride::default() };
    let factor = table.number("factor").filter(|factor| {
        let fits = factor.is_finite() && *factor >= 1.0;
        if !fits {
            table.mistake("factor", "must be a number of at least 1");
        }
        fits
    });
    let read = RetryOverride {
        attempts: table.whole("attempts", 1),
        max_age: table.duration("max_age"),
        first_delay: table.duration("first_delay"),
        factor,
        max_delay: table.duration("max_delay"),
    };
    table.finish();
    read
}

/// `[server]` with what the environment overrides.
pub(super) fn read_server(notes: &Notes<'_>, table: Option<&Table<'_>>) -> Option<Server> {
    let listen = setting(notes, table, "listen", "DLO_LISTEN", "127.0.0.1:8080", |text| {
        text.parse::<SocketAddr>()
            .map_err(|_| "must be an address and a port such as \"127.0.0.1:8080\"".to_owned())
    });
    let here = listen.map_or_else(String::new, |listen| format!("http://{listen}"));
    let public_url = setting(notes, table, "public_url", "DLO_PUBLIC_URL", &here, web_address);
    let database_url = setting(notes, table, "database_url", "DLO_DATABASE_URL", "sqlite:dlo.db", |text| {
        let known = ["sqlite:", "postgres://", "postgresql://"];
        if known.iter().any(|scheme| text.starts_with(scheme)) {
            Ok(text.to_owned())
        } else {
            Err("must be \"sqlite:FILE\" or \"postgres://USER@HOST/NAME\"".to_owned())
        }
    });
    let allow_private_destinations =
        table.and_then(|table| table.flag("allow_private_destinations")).unwrap_or(false);
    let max_connections = table.and_then(|table| table.whole("max_connections", 16)).unwrap_or(512);
    let client_timeout =
        table.and_then(|table| table.duration("client_timeout")).unwrap_or(Duration::from_secs(10));
    if let Some(table) = table.filter(|_| client_timeout.is_zero()) {
        table.mistake("client_timeout", "must be longer than 0s");
    }
    let trusted_proxies = table.map(read_proxies).unwrap_or_default();
    let proxy_header = table.and_then(|table| {
        let item = table.get("proxy_header")?;
        let known = ProxyHeader::ALL
            .iter()
            .find(|known| item.text().is_some_and(|text| text.eq_ignore_ascii_case(known.as_str())));
        if known.is_none() {
            item.mistake("must be \"X-Forwarded-For\" or \"Forwarded\"");
        }
        known.copied()
    });
    let rate = |key, usual| table.and_then(|table| table.whole(key, 1)).unwrap_or(usual);
    let (token_rate, source_rate) = (rate("token_rate", 10_000), rate("source_rate", 1_000));
    Some(Server {
        listen: listen?,
        public_url: public_url?,
        database_url: database_url?,
        allow_private_destinations,
        max_connections,
        client_timeout,
        trusted_proxies,
        proxy_header: proxy_header.unwrap_or(ProxyHeader::XForwardedFor),
        token_rate,
        source_rate,
    })
}

/// Networks, and addresses that are networks of one.
fn read_proxies(table: &Table<'_>) -> Vec<IpNet> {
    let read = |item: Item<'_>| {
        let text = item.text()?;
        let one = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let network = text.parse::<IpNet>().ok().or_else(one);
        if network.is_none() {
            item.mistake("must be a network such as \"10.0.0.0/8\", or an address");
        }
        network
    };
    table.list("trusted_proxies").into_iter().filter_map(read).collect()
}

/// A value from the environment, or else the file, or else the default.
fn setting<T>(
    notes: &Notes<'_>,
    table: Option<&Table<'_>>,
    key: &'static str,
    variable: &str,
    default: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<T> {
    // Asked for in any case: the key is known even where the environment wins.
    let item = table.and_then(|table| table.get(key));
    if let Some(text) = notes.env(variable) {
        return parse(&text).map_err(|problem| notes.mistake_in_env(variable, problem)).ok();
    }
    match item {
        Some(item) => parse(&item.text()?).map_err(|problem| item.mistake(problem)).ok(),
        None => parse(default).ok(),
    }
}

/// An http or https address without user info, query or fragment.
pub(super) fn web_address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or("must be an address such as \"https://example.com\"")?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must hold no user name and no password; credentials belong in headers".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must end before any \"?\" or \"#\"".to_owned());
    }
    Ok(url)
}

/// `[engine]`.
pub(super) fn read_engine(table: Option<Table<'_>>) -> Engine {
    let defaults = Engine::default();
    let Some(table) = table else { return defaults };
    let engine = Engine {
        concurrency: table.whole("concurrency", 1).unwrap_or(defaults.concurrency),
        lease: table.duration("lease").unwrap_or(defaults.lease),
        answer_cap: table.whole("answer_cap", 1).unwrap_or(defaults.answer_cap),
        key_retention: table.duration("key_retention"),
    };
    table.finish();
    engine
}
