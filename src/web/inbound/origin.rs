//! Where a request comes from. Behind a proxy the connection's address is the proxy's, and the one
//! that counts stands in a header, which anybody can write: it is believed only from proxies that
//! `[server] trusted_proxies` names, and of it only what those wrote themselves.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;

use crate::config::{ProxyHeader, Server};

/// Which proxies are believed, and what they write.
#[derive(Clone, Debug)]
pub(in crate::web) struct Proxies(Arc<(Vec<IpNet>, ProxyHeader)>);

impl Proxies {
    pub(in crate::web) fn of(server: &Server) -> Self {
        Self(Arc::new((server.trusted_proxies.clone(), server.proxy_header)))
    }

    /// The first address from the right that is none of the proxies'. Each proxy adds the one that
    /// it was asked from at the end, so that what stands before the first stranger is the stranger's
    /// own word.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let (trusted, header) = &*self.0;
        let mut client = peer.to_canonical();
        if !is_in(client, trusted) {
            return client;
        }
        for hop in hops(headers, *header).into_iter().rev() {
            // What cannot be read says nothing about who wrote it either.
            let Some(address) = hop else { break };
            client = address;
            if !is_in(client, trusted) {
                break;
            }
        }
        client
    }
}

/// A request's own address, as found by [`layer`].
#[derive(Clone, Copy, Debug)]
struct Client(IpAddr);

/// Finds out where a request comes from, for whoever asks later.
pub(in crate::web) async fn layer(
    State(proxies): State<Proxies>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() {
        let client = Client(proxies.client(peer.ip(), request.headers()));
        request.extensions_mut().insert(client);
    }
    next.run(request).await
}

/// Where a request comes from; absent when it came over no connection.
pub(in crate::web) fn of(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<Client>().map(|Client(address)| *address)
}

/// Whether an address is in one of these networks.
pub(super) fn is_in(address: IpAddr, networks: &[IpNet]) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// The addresses that proxies wrote, in the order of the way; `None` for one that is none.
fn hops(headers: &HeaderMap, header: ProxyHeader) -> Vec<Option<IpAddr>> {
    let values = headers.get_all(header.name()).iter();
    let elements = values.flat_map(|value| value.to_str().unwrap_or("?").split(',').map(str::trim));
    match header {
        ProxyHeader::XForwardedFor => elements.map(address).collect(),
        ProxyHeader::Forwarded => elements
            .map(|element| {
                let mut pairs = element.split(';').filter_map(|pair| pair.trim().split_once('='));
                let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
                address(node.trim().trim_matches('"'))
            })
            .collect(),
    }
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok().or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn client(header: ProxyHeader, peer: &str, sent: &[(&str, &str)]) -> String {
        let trusted = ["10.0.0.0/8", "2001:db8:1::/48"].map(|net| net.parse().unwrap()).into();
        let proxies = Proxies(Arc::new((trusted, header)));
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_what_a_trusted_proxy_wrote_is_believed() {
        let xff = |peer, value| client(ProxyHeader::XForwardedFor, peer, &[("x-forwarded-for", value)]);
        assert_eq!(xff("198.51.100.7", "203.0.113.1"), "198.51.100.7", "a stranger says so");
        assert_eq!(xff("10.0.0.1", "203.0.113.1"), "203.0.113.1");
        assert_eq!(xff("::ffff:10.0.0.1", "203.0.113.1"), "203.0.113.1");
        assert_eq!(xff("10.0.0.1", "1.1.1.1, 203.0.113.1"), "203.0.113.1", "the first is the client's word");
        assert_eq!(xff("10.0.0.1", "1.1.1.1, 203.0.113.1, 10.2.3.4"), "203.0.113.1", "through two proxies");
        assert_eq!(xff("10.0.0.1", "127.0.0.1, 10.2.3.4"), "127.0.0.1");
        assert_eq!(xff("10.0.0.1", "10.9.9.9, 10.2.3.4"), "10.9.9.9", "all of it inside");
        assert_eq!(xff("10.0.0.1", "203.0.113.1, unknown"), "10.0.0.1", "nothing before what is no address");
        assert_eq!(xff("10.0.0.1", "203.0.113.1,"), "10.0.0.1");
        assert_eq!(xff("10.0.0.1", "203.0.113.1:4711"), "203.0.113.1");
        assert_eq!(xff("2001:db8:1::5", "[2001:db8:2::1]:80"), "2001:db8:2::1");
        assert_eq!(xff("10.0.0.1", "::ffff:203.0.113.1"), "203.0.113.1");
        let twice = [("x-forwarded-for", "1.1.1.1"), ("x-forwarded-for", "203.0.113.1")];
        assert_eq!(client(ProxyHeader::XForwardedFor, "10.0.0.1", &twice), "203.0.113.1");
        assert_eq!(client(ProxyHeader::XForwardedFor, "10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn the_other_header_is_not_looked_at() {
        let both = [("x-forwarded-for", "203.0.113.1"), ("forwarded", "for=203.0.113.2")];
        assert_eq!(client(ProxyHeader::XForwardedFor, "10.0.0.1", &both), "203.0.113.1");
        assert_eq!(client(ProxyHeader::Forwarded, "10.0.0.1", &both), "203.0.113.2");
        let forwarded = |value| client(ProxyHeader::Forwarded, "10.0.0.1", &[("forwarded", value)]);
        assert_eq!(forwarded("for=1.1.1.1;proto=https, For=\"[2001:db8:2::1]:80\";by=x"), "2001:db8:2::1");
        assert_eq!(forwarded("for=203.0.113.1, for=_hidden"), "10.0.0.1");
        assert_eq!(forwarded("proto=https"), "10.0.0.1");
    }
}
