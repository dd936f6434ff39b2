//! Addresses that nothing is sent to, and how programs write them.

use std::net::IpAddr;

/// The first, the last and some of each network that nothing is sent to.
const DENIED_V4: [&str; 30] = [
    "0.0.0.0",
    "0.255.255.255",
    "10.0.0.0",
    "10.255.255.255",
    "100.64.0.0",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.0",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.0",
    "192.168.255.255",
    "198.18.0.0",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "254.254.254.254",
    "255.255.255.255",
    "100.100.100.200",
    "192.168.1.1",
    "10.1.2.3",
];

const DENIED_V6: [&str; 22] = [
    "::",
    "::1",
    "::7f00:1",
    "::8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b::8.8.8.8",
    "64:ff9b:1::1",
    "64:ff9b:1:ffff::1",
    "100::1",
    "2001::1",
    "2001:0:53aa:64c::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "ff02::1",
];

/// All of them.
pub(super) fn denied() -> impl Iterator<Item = &'static str> {
    DENIED_V4.into_iter().chain(DENIED_V6)
}

/// One address in the ways in which programs write it.
pub(super) fn spellings(text: &str) -> Vec<String> {
    let IpAddr::V4(v4) = text.parse().unwrap() else {
        return vec![format!("[{text}]"), format!("[{}]", text.to_uppercase())];
    };
    let [a, b, c, d] = v4.octets();
    let whole = u32::from(v4);
    let tail = u32::from_be_bytes([0, b, c, d]);
    let v6 = v4.to_ipv6_mapped();
    vec![
        text.to_owned(),
        format!("{text}."),
        whole.to_string(),
        format!("{whole:#x}"),
        format!("{whole:#o}").replace("0o", "0"),
        format!("{a:#x}.{b:#x}.{c:#X}.{d:#x}").replace("0X", "0x"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{tail}"),
        format!("{a}.{b}.{}", u16::from_be_bytes([c, d])),
        format!("0{a:o}.{b:#x}.{c}.{d}"),
        text.replace('.', "%2e"),
        text.replace('.', "\u{3002}"),
        text.chars()
            .map(|c| char::from_u32(u32::from(c) + if c == '.' { 0 } else { 0xfee0 }).unwrap())
            .collect(),
        format!("[{v6}]"),
        format!("[::ffff:{:x}{b:02x}:{c:02x}{d:02x}]", u16::from(a)),
        format!("[0:0:0:0:0:ffff:{text}]"),
        format!("user@{text}"),
        format!("{text}:8443"),
    ]
}
