//! Which addresses a destination may have. Names are resolved here, every answer is filtered, and
//! the connection goes to an address that passed, so that a name cannot change its mind in between.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::LazyLock;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Networks that are not the public internet, or that lead into private ones by translation.
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
        "::/128",
        "::1/128",
        "64:ff9b::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fc00::/7",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    ]
    .iter()
    .filter_map(|net| net.parse().ok())
    .collect()
});

/// Why an address was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is on a network that destinations may not be on.
    #[error("the address {0} is on a private or reserved network; set allow_private_destinations to use it")]
    Private(IpAddr),
    /// The name has such addresses only.
    #[error(
        "every address of {0} is on a private or reserved network; set allow_private_destinations to use it"
    )]
    AllPrivate(String),
}

/// Whether a destination may be at an address.
pub fn is_public(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(v6) => mapped(v6),
        v4 @ IpAddr::V4(_) => v4,
    };
    !DENIED.iter().any(|net| net.contains(&address))
}

/// A v4 address written as v6 is judged as v4.
fn mapped(v6: Ipv6Addr) -> IpAddr {
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
}

/// Checks a URL whose host is written as an address: no resolver is asked for those.
pub fn check_literal(url: &url::Url) -> Result<(), AddressError> {
    let address = match url.host() {
        Some(url::Host::Ipv4(v4)) => IpAddr::V4(v4),
        Some(url::Host::Ipv6(v6)) => IpAddr::V6(v6),
        Some(url::Host::Domain(_)) | None => return Ok(()),
    };
    if is_public(address) { Ok(()) } else { Err(AddressError::Private(address)) }
}

/// The system's resolver behind the guard.
#[derive(Debug, Clone, Copy)]
pub struct GuardedResolver {
    /// Private and loopback addresses pass too.
    pub allow_private: bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let none = found.is_empty();
            let passed: Vec<SocketAddr> =
                found.into_iter().filter(|address| allow_private || is_public(address.ip())).collect();
            if passed.is_empty() && !none {
                return Err(AddressError::AllPrivate(name.as_str().to_owned()).into());
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
        assert_eq!(DENIED.len(), 29);
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
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["1.1.1.1", "93.184.216.34", "172.32.0.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn an_address_in_a_url_is_judged_however_it_is_written() {
        for text in ["http://127.1/", "http://2130706433/", "http://0x7f.1/", "http://[::ffff:7f00:1]/"] {
            assert!(check_literal(&text.parse().unwrap()).is_err(), "{text}");
        }
        assert!(check_literal(&"https://example.com/".parse().unwrap()).is_ok());
    }
}
