//! The one way out: every request that leaves this process, but for the database's, is made by a
//! [`Client`] from here. Names are resolved here, every answer is filtered, and the connection goes
//! to an address that passed, so that a name cannot change its mind in between.
//!
//! The names are looked up by the system: its resolver knows the machine's hosts file, search
//! domains and split DNS, which operators rely on, and what protects is the filter behind it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Method, RequestBuilder, redirect};
use tokio::sync::Semaphore;
use url::{Host, Url};

/// Networks that are not the public internet, or that lead into private ones by translation. Of v6
/// they stand within [`GLOBAL`], outside of which nothing is public.
static DENIED: LazyLock<Vec<IpNet>> = LazyLock::new(|| {
    [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3ffe::/16",
        "3fff::/20",
    ]
    .iter()
    .filter_map(|net| net.parse().ok())
    .collect()
});

/// The only v6 network that is given out for the public internet. Local, translated (`64:ff9b::`),
/// v4-compatible, segment-routing (`5f00::`) and multicast addresses are all outside of it.
static GLOBAL: LazyLock<Option<IpNet>> = LazyLock::new(|| "2000::/3".parse().ok());

/// Look-ups of names under way at once: each holds a thread for as long as the system's resolver
/// takes, also after its request was given up.
static LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(64)));

/// How long an idle connection is kept for the next request.
const IDLE: Duration = Duration::from_mins(1);

/// Why no connection is made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is on a network that nothing is sent to.
    #[error("the address {0} is on a private or reserved network; set allow_private_destinations to use it")]
    Private(IpAddr),
    /// The name has such addresses only.
    #[error(
        "every address of {0} is on a private or reserved network; set allow_private_destinations to use it"
    )]
    AllPrivate(String),
    /// It would go unencrypted.
    #[error("{0} is plain http; set allow_private_destinations to use it")]
    Plain(String),
    /// This machine's own addresses, which are refused too, could not be listed.
    #[error("this machine's own addresses cannot be listed, so that nothing can be told from them: {0}")]
    Own(String),
}

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Loopback and private networks pass, and so does plain http:
    /// `[server] allow_private_destinations`.
    pub allow_private: bool,
    /// The longest that a connection may take, the look-up of its name included.
    pub connect_timeout: Duration,
    /// The longest that a whole exchange may take.
    pub timeout: Duration,
    /// An idle connection serves the next request. One that the other side closes meanwhile cannot be
    /// told from one that was closed after the request arrived.
    pub reuse: bool,
}

/// Sends to public addresses only, directly, and follows no redirect.
#[derive(Clone, Debug)]
pub struct Client {
    inner: reqwest::Client,
    allow_private: bool,
}

/// A client on these terms.
pub fn client(terms: Terms) -> reqwest::Result<Client> {
    client_asking(SystemNames, terms)
}

/// The same with another source of names than the system's; what it answers is filtered no less.
pub fn client_asking(names: impl Resolve + 'static, terms: Terms) -> reqwest::Result<Client> {
    let Terms { allow_private, connect_timeout, timeout, reuse } = terms;
    let mut builder = reqwest::Client::builder()
        // A followed redirect is a second request, and a retried one a second effect.
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        // A proxy would connect for us, to wherever it likes.
        .no_proxy()
        .dns_resolver(guarded(names, allow_private))
        .connect_timeout(connect_timeout)
        .timeout(timeout)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .user_agent(concat!("dead-letter-office/", env!("CARGO_PKG_VERSION")));
    if !reuse {
        builder = builder.pool_max_idle_per_host(0);
    }
    Ok(Client { inner: builder.build()?, allow_private })
}

impl Client {
    /// A request that goes to this address, unless its scheme or its host as it is written forbid
    /// it. A host that is a name is judged when it is looked up.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, AddressError> {
        if !self.allow_private {
            if url.scheme() != "https" {
                return Err(AddressError::Plain(url.origin().ascii_serialization()));
            }
            check_literal(&url)?;
        }
        Ok(self.inner.request(method, url))
    }
}

/// Whether an address is on the public internet.
pub fn is_public(address: IpAddr) -> bool {
    let address = canonical(address);
    let given_out = address.is_ipv4() || GLOBAL.is_some_and(|net| net.contains(&address));
    given_out && !carries_v4(address) && !DENIED.iter().any(|net| net.contains(&address))
}

/// A v4 address written as v6 is judged as v4.
fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Whether a v6 address names a v4 one in its last half, as ISATAP tunnels do under any prefix.
fn carries_v4(address: IpAddr) -> bool {
    match address {
        IpAddr::V6(v6) => matches!(v6.segments(), [_, _, _, _, 0 | 0x200, 0x5efe, _, _]),
        IpAddr::V4(_) => false,
    }
}

/// Whether requests may go to an address: a public one that is not this machine's own.
fn check(address: IpAddr) -> Result<(), AddressError> {
    if !is_public(address) {
        return Err(AddressError::Private(address));
    }
    let own = if_addrs::get_if_addrs().map_err(|error| AddressError::Own(error.to_string()))?;
    let address = canonical(address);
    if own.iter().any(|interface| interface.ip() == address) {
        return Err(AddressError::Private(address));
    }
    Ok(())
}

/// Checks a host that is written as an address: no resolver is asked for those. The URL's parser
/// has read every spelling of one, such as `0x7f.1`, and takes no `%zone`.
fn check_literal(url: &Url) -> Result<(), AddressError> {
    match url.host() {
        Some(Host::Ipv4(v4)) => check(IpAddr::V4(v4)),
        Some(Host::Ipv6(v6)) => check(IpAddr::V6(v6)),
        Some(Host::Domain(_)) | None => Ok(()),
    }
}

/// The system's resolver.
#[derive(Debug, Clone, Copy)]
struct SystemNames;

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let permit = Arc::clone(&LOOKUPS).acquire_owned().await?;
            let found = tokio::task::spawn_blocking(move || {
                let found = (name.as_str(), 0).to_socket_addrs();
                drop(permit);
                found
            });
            Ok(Box::new(found.await??) as Addrs)
        })
    }
}

/// Names of which only the addresses come through that requests may go to; an error when that leaves
/// none of them.
pub fn guarded(names: impl Resolve, allow_private: bool) -> impl Resolve {
    Guarded { names, allow_private }
}

/// Names, and the guard behind them.
struct Guarded<N> {
    names: N,
    allow_private: bool,
}

impl<N: Resolve> Resolve for Guarded<N> {
    fn resolve(&self, name: Name) -> Resolving {
        let (allow_private, asked) = (self.allow_private, name.as_str().to_owned());
        let found = self.names.resolve(name);
        Box::pin(async move {
            let found = found.await?;
            if allow_private {
                return Ok(found);
            }
            let (mut passed, mut refused) = (Vec::<SocketAddr>::new(), None);
            for address in found {
                match check(address.ip()) {
                    Ok(()) => passed.push(address),
                    Err(AddressError::Private(_)) => refused = Some(AddressError::AllPrivate(asked.clone())),
                    Err(unknown) => return Err(unknown.into()),
                }
            }
            match refused {
                Some(refused) if passed.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(passed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_denied_network_is_understood() {
        assert_eq!(DENIED.len(), 20);
        assert!(GLOBAL.is_some());
    }

    #[test]
    fn private_addresses_are_refused_in_every_form() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "198.18.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "224.0.0.1",
            "192.0.0.8",
            "203.0.113.9",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:0:1::",
            "fd00::1",
            "fe80::1",
            "5f00::1",
            "ff02::1",
            "2001:db8::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "::ffff:0:127.0.0.1",
            "100::1",
            "fec0::1",
            "3fff::1",
            "2620:0:1::5efe:a00:1",
            "2620:0:1:0:200:5efe:a00:1",
            "4000::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_address_in_a_url_is_judged_however_it_is_written() {
        for text in ["https://127.1/", "https://2130706433/", "https://0x7f.1/", "https://[::ffff:7f00:1]/"] {
            assert!(check_literal(&text.parse().unwrap()).is_err(), "{text}");
        }
        assert!(check_literal(&"https://example.com/".parse().unwrap()).is_ok());
    }
}
