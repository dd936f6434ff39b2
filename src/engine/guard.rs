//! The one way out: every request that leaves this process, but for the database's, is made by a
//! [`Client`] from here. Names are resolved here, every answer is filtered, and the connection goes
//! to an address that passed, so that a name cannot change its mind in between.
//!
//! The names are looked up by the system: its resolver knows the machine's hosts file, search
//! domains and split DNS, which operators rely on, and what protects is the filter behind it.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

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

/// How long a list of this machine's own addresses holds: they change when a network is plugged in.
const LISTED: Duration = Duration::from_secs(5);

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
    /// Absent where every address passes.
    own: Option<Arc<Own>>,
}

/// A client on these terms.
pub fn client(terms: Terms) -> reqwest::Result<Client> {
    client_asking(SystemNames, terms)
}

/// The same with another source of names than the system's; what it answers is filtered no less.
pub fn client_asking(names: impl Resolve + 'static, terms: Terms) -> reqwest::Result<Client> {
    client_of(names, own(terms.allow_private), terms)
}

fn client_of(names: impl Resolve + 'static, own: Option<Arc<Own>>, terms: Terms) -> reqwest::Result<Client> {
    let Terms { allow_private: _, connect_timeout, timeout, reuse } = terms;
    let mut builder = reqwest::Client::builder()
        // A followed redirect is a second request, and a retried one a second effect.
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        // A proxy would connect for us, to wherever it likes.
        .no_proxy()
        .dns_resolver(Guarded { names, own: own.clone() })
        .connect_timeout(connect_timeout)
        .timeout(timeout)
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .user_agent(concat!("dead-letter-office/", env!("CARGO_PKG_VERSION")));
    if !reuse {
        builder = builder.pool_max_idle_per_host(0);
    }
    Ok(Client { inner: builder.build()?, own })
}

impl Client {
    /// A request that goes to this address, unless its scheme or its host as it is written forbid
    /// it. A host that is a name is judged when it is looked up.
    pub fn request(&self, method: Method, url: Url) -> Result<RequestBuilder, AddressError> {
        if let Some(own) = &self.own {
            if url.scheme() != "https" {
                return Err(AddressError::Plain(url.origin().ascii_serialization()));
            }
            if let Some(address) = literal(&url) {
                check(address, &own.at(Instant::now())?)?;
            }
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

/// Whether requests may go to an address: a public one that is none of this machine's own.
fn check(address: IpAddr, own: &[IpAddr]) -> Result<(), AddressError> {
    if is_public(address) && !own.contains(&canonical(address)) {
        return Ok(());
    }
    Err(AddressError::Private(address))
}

/// A host that is written as an address: no resolver is asked for those. The URL's parser has read
/// every spelling of one, such as `0x7f.1`, and takes no `%zone`.
fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(v4) => Some(v4.into()),
        Host::Ipv6(v6) => Some(v6.into()),
        Host::Domain(_) => None,
    }
}

/// This machine's own addresses, listed when they are asked for and no more often than [`LISTED`].
#[derive(Debug)]
struct Own {
    list: fn() -> io::Result<Vec<IpAddr>>,
    last: Mutex<Option<(Instant, Arc<[IpAddr]>)>>,
}

impl Own {
    fn new(list: fn() -> io::Result<Vec<IpAddr>>) -> Arc<Self> {
        Arc::new(Self { list, last: Mutex::default() })
    }

    fn at(&self, now: Instant) -> Result<Arc<[IpAddr]>, AddressError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, listed)) = last.as_ref().filter(|(at, _)| now.saturating_duration_since(*at) < LISTED)
        {
            return Ok(Arc::clone(listed));
        }
        let listed: Arc<[IpAddr]> =
            (self.list)().map_err(|error| AddressError::Own(error.to_string()))?.into();
        *last = Some((now, Arc::clone(&listed)));
        Ok(listed)
    }
}

/// What addresses are held against; nothing where private ones pass.
fn own(allow_private: bool) -> Option<Arc<Own>> {
    let interfaces = || Ok(if_addrs::get_if_addrs()?.iter().map(if_addrs::Interface::ip).collect());
    (!allow_private).then(|| Own::new(interfaces))
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
    Guarded { names, own: own(allow_private) }
}

/// Names, and the guard behind them.
struct Guarded<N> {
    names: N,
    /// Absent where every address passes.
    own: Option<Arc<Own>>,
}

impl<N: Resolve> Resolve for Guarded<N> {
    fn resolve(&self, name: Name) -> Resolving {
        let (own, asked) = (self.own.clone(), name.as_str().to_owned());
        let found = self.names.resolve(name);
        Box::pin(async move {
            let found = found.await?;
            let Some(own) = own else { return Ok(found) };
            let own = own.at(Instant::now())?;
            let (passed, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| check(address.ip(), &own).is_ok());
            if passed.is_empty() && !refused.is_empty() {
                return Err(AddressError::AllPrivate(asked).into());
            }
            Ok(Box::new(passed.into_iter()) as Addrs)
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
            let address = literal(&text.parse().unwrap()).unwrap();
            assert_eq!(check(address, &[]), Err(AddressError::Private(address)), "{text}");
        }
        assert_eq!(literal(&"https://example.com/".parse().unwrap()), None);
    }

    const V4: &str = "93.184.216.34";
    const V6: &str = "2606:4700::1111";

    /// A machine that has public addresses.
    fn machine() -> Arc<Own> {
        Own::new(|| Ok([V4, V6].map(|text| text.parse().unwrap()).into()))
    }

    struct Fixed(Vec<&'static str>);

    impl Resolve for Fixed {
        fn resolve(&self, _: Name) -> Resolving {
            let found: Vec<_> = self.0.iter().map(|text| SocketAddr::new(text.parse().unwrap(), 0)).collect();
            Box::pin(async move { Ok(Box::new(found.into_iter()) as Addrs) })
        }
    }

    #[tokio::test]
    async fn this_machines_own_addresses_are_refused_though_they_are_public() {
        let mapped = format!("::ffff:{V4}");
        let own = machine().at(Instant::now()).unwrap();
        for text in [V4, V6, &mapped] {
            let address: IpAddr = text.parse().unwrap();
            assert!(is_public(address), "{text}");
            assert_eq!(check(address, &own), Err(AddressError::Private(address)), "{text}");
        }
        for text in ["93.184.216.35", "2606:4700::1112", "::ffff:93.184.216.35"] {
            assert_eq!(check(text.parse().unwrap(), &own), Ok(()), "{text}");
        }

        rustls::crypto::ring::default_provider().install_default().ok();
        let timeout = Duration::from_secs(5);
        let terms = Terms { allow_private: false, connect_timeout: timeout, timeout, reuse: false };
        let client = client_of(SystemNames, Some(machine()), terms).unwrap();
        let ask = |host: &str| client.request(Method::GET, format!("https://{host}/").parse().unwrap());
        for host in [V4, &format!("[{V6}]"), &format!("[{mapped}]")] {
            assert!(matches!(ask(host), Err(AddressError::Private(_))), "{host}");
        }
        assert!(ask("93.184.216.35").is_ok());

        let resolved = async |found: &[&'static str]| {
            let names = Guarded { names: Fixed(found.to_vec()), own: Some(machine()) };
            let found = names.resolve("desk.example".parse().unwrap()).await;
            found.map(|found| found.map(|at| at.ip().to_string()).collect::<Vec<_>>())
        };
        for found in [V4, V6, "::ffff:93.184.216.34"] {
            let refused = resolved(&[found]).await.unwrap_err();
            assert!(matches!(refused.downcast_ref(), Some(AddressError::AllPrivate(_))), "{refused}");
        }
        assert_eq!(resolved(&[V4, "1.1.1.1", V6]).await.unwrap(), ["1.1.1.1"]);
    }

    #[test]
    fn a_list_of_own_addresses_holds_for_a_while_and_none_lets_nothing_through() {
        use std::sync::atomic::{AtomicU8, Ordering};
        static LISTINGS: AtomicU8 = AtomicU8::new(0);
        let own = Own::new(|| match LISTINGS.fetch_add(1, Ordering::Relaxed) {
            2 => Err(io::Error::other("no more handles")),
            n => Ok(vec![IpAddr::from([1, 1, 1, n])]),
        });
        let (start, last) = (Instant::now(), IpAddr::from([1, 1, 1, 1]));
        let first = own.at(start).unwrap();
        assert_eq!(*own.at(start + LISTED / 2).unwrap(), *first);
        assert_eq!(*own.at(start + LISTED).unwrap(), [last], "listed anew");
        let error = own.at(start + LISTED * 2).unwrap_err();
        assert_eq!(error, AddressError::Own("no more handles".to_owned()));
        assert_eq!(*own.at(start + LISTED * 2).unwrap(), [IpAddr::from([1, 1, 1, 3])], "asked at once");
    }
}
