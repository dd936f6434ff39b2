//! Where requests may go, however the address is written and whatever a name says.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, path::Path};

use dead_letter_office::config::Config;
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::classify::Symptom;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::guard::{self, AddressError, Terms};
use dead_letter_office::store::Db;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use reqwest::Method;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpListener;
use url::Url;

use crate::support::app::{TestApp, config, install_crypto};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    no_operation_and_no_question_reaches_a_private_address,
    no_redirect_is_followed_wherever_it_leads,
    no_payload_changes_where_a_request_goes,
);

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

fn terms(allow_private: bool) -> Terms {
    let timeout = Duration::from_secs(5);
    Terms { allow_private, connect_timeout: timeout, timeout, reuse: false }
}

/// One address in the ways in which programs write it.
fn spellings(text: &str) -> Vec<String> {
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

#[tokio::test]
async fn a_denied_address_is_refused_in_every_spelling() {
    install_crypto();
    let client = guard::client(terms(false)).unwrap();
    let mut judged = 0;
    for address in DENIED_V4.iter().chain(&DENIED_V6) {
        for spelling in spellings(address) {
            let text = format!("https://{spelling}/latest/meta-data");
            // What is no address at all goes nowhere either; every one of these is one.
            let url = Url::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let refused = client.request(Method::GET, url).expect_err(&text);
            assert!(matches!(refused, AddressError::Private(_)), "{text}: {refused:?}");
            judged += 1;
        }
    }
    assert!(judged > 500, "{judged}");
    for text in
        ["https://[fe80::1%25eth0]/", "https://[fe80::1%eth0]/", "https://[::1/", "https://127.0.0.256/"]
    {
        assert!(Url::parse(text).is_err(), "{text} is no address that could be sent to");
    }
    for text in ["http://example.com/", "ftp://example.com/", "file:///etc/passwd", "data:,x"] {
        let refused = client.request(Method::GET, text.parse().unwrap()).expect_err(text);
        assert!(matches!(refused, AddressError::Plain(_)), "{text}: {refused:?}");
    }
    for public in ["https://1.1.1.1/", "https://[2606:4700::1111]/", "https://example.com/"] {
        assert!(client.request(Method::GET, public.parse().unwrap()).is_ok(), "{public}");
    }
}

/// Names that answer in turn, and that count how often they are asked.
#[derive(Clone)]
struct Fickle {
    answers: Arc<Mutex<Vec<Vec<&'static str>>>>,
    asked: Arc<AtomicUsize>,
}

impl Fickle {
    fn new(answers: Vec<Vec<&'static str>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers)), asked: Arc::default() }
    }
}

impl Resolve for Fickle {
    fn resolve(&self, _: Name) -> Resolving {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        let socket = |text: &str| SocketAddr::new(text.parse().unwrap(), 0);
        let found: Vec<SocketAddr> = answer.into_iter().map(socket).collect();
        Box::pin(async move { Ok(Box::new(found.into_iter()) as Addrs) })
    }
}

async fn resolved(names: &impl Resolve) -> Result<Vec<String>, String> {
    let found = names.resolve(Name::from_str("crm.example").unwrap()).await;
    found.map(|found| found.map(|at| at.ip().to_string()).collect()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn of_a_names_answers_only_public_ones_are_left() {
    for denied in DENIED_V4.iter().chain(&DENIED_V6) {
        let alone = guard::guarded(Fickle::new(vec![vec![denied]]), false);
        let refused = resolved(&alone).await.expect_err(denied);
        assert!(refused.contains("every address of crm.example"), "{refused}");
        let mixed = guard::guarded(Fickle::new(vec![vec![denied, "1.1.1.1", denied]]), false);
        assert_eq!(resolved(&mixed).await.unwrap(), ["1.1.1.1"], "{denied}");
    }
    let mapped = guard::guarded(Fickle::new(vec![vec!["::ffff:10.0.0.1", "::ffff:1.1.1.1"]]), false);
    assert_eq!(resolved(&mapped).await.unwrap(), ["::ffff:1.1.1.1"]);
    let none = guard::guarded(Fickle::new(vec![vec![]]), false);
    assert_eq!(resolved(&none).await.unwrap(), [""; 0], "nothing to connect to");
}

fn is_refused(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(cause) = next {
        if matches!(cause.downcast_ref(), Some(AddressError::AllPrivate(_))) {
            return true;
        }
        next = cause.source();
    }
    false
}

#[tokio::test]
async fn a_name_that_changes_its_mind_gains_nothing() {
    install_crypto();
    // Asked once for a connection, which then goes to what was answered: this name is in no DNS, so
    // that nothing else could have led here.
    let (address, knocks) = trap().await;
    let names = Fickle::new(vec![vec!["127.0.0.1"]]);
    let client = guard::client_asking(names.clone(), terms(true)).unwrap();
    let url: Url = format!("http://rebinding.invalid:{}/", address.port()).parse().unwrap();
    let _ = client.request(Method::GET, url).unwrap().send().await;
    assert_eq!((knocks.load(Ordering::Relaxed), names.asked.load(Ordering::Relaxed)), (1, 1));

    // Public when it is looked at first, private ever after.
    let names = Fickle::new(vec![vec!["1.1.1.1"], vec!["127.0.0.1"]]);
    assert_eq!(resolved(&guard::guarded(names.clone(), false)).await.unwrap(), ["1.1.1.1"]);
    let client = guard::client_asking(names.clone(), terms(false)).unwrap();
    for _ in 0..3 {
        let url: Url = format!("https://rebinding.invalid:{}/", address.port()).parse().unwrap();
        let failed = client.request(Method::GET, url).unwrap().send().await.unwrap_err();
        assert!(is_refused(&failed), "{failed:?}");
    }
    assert_eq!(names.asked.load(Ordering::Relaxed), 4, "each connection asks");
    assert_eq!(knocks.load(Ordering::Relaxed), 1, "nobody knocked again");
}

#[test]
fn every_request_is_made_by_the_guarded_client() {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let makes = ["Client::builder(", "Client::new(", "ClientBuilder", "TcpStream::connect"];
                let makes =
                    makes.iter().any(|word| text.split("#[cfg(test)]").next().unwrap().contains(word));
                if makes {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    assert_eq!(found, ["guard.rs"]);
    let guard =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/guard.rs")).unwrap();
    for word in [".no_proxy()", ".redirect(redirect::Policy::none())", ".retry(reqwest::retry::never())"] {
        assert_eq!(guard.matches(word).count(), 1, "{word}");
    }
}

/// Something on loopback that counts who knocks.
async fn trap() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let knocks = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&knocks);
    tokio::spawn(async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (address, knocks)
}

/// A node with the guard on, which its database's other nodes have not.
async fn guarded(app: &TestApp, more: &str, adjust: impl FnOnce(&mut Config)) -> Engine {
    let mut config = config(&app.database.url, &app.destination.base_url(), more);
    config.server.allow_private_destinations = false;
    adjust(&mut config);
    let db = Db::open(&app.database.url).await.unwrap();
    let ambient = Ambient::new(Arc::clone(&app.clock) as _, StdRng::seed_from_u64(9));
    Engine::new(db, Arc::new(config), ambient)
}

async fn no_operation_and_no_question_reaches_a_private_address(db: TestDatabase) {
    let (trap, knocks) = trap().await;
    let port = trap.port();
    let bases = [
        format!("https://127.0.0.1:{port}"),
        format!("https://2130706433:{port}/x"),
        format!("https://[::ffff:7f00:1]:{port}"),
        format!("https://localhost:{port}"),
        format!("http://localhost:{port}"),
    ];
    let more: String = bases
        .iter()
        .enumerate()
        .map(|(n, base)| {
            format!(
                "[destinations.inside-{n}]\nbase_url = \"{base}\"\n[operations.inside-{n}]\n\
                 [[operations.inside-{n}.steps]]\nname = \"go\"\ndestination = \"inside-{n}\"\n\
                 method = \"POST\"\npath = \"/x\"\n"
            )
        })
        .collect();
    let mut app = TestApp::configured(db, &more).await;
    let engine = guarded(&app, &more, |_| {}).await;
    let mut operations = Vec::new();
    for n in 0..bases.len() {
        operations.push(app.submit(&format!("inside-{n}"), &format!("order-{n}")).await);
    }
    engine.worker().unwrap().run_until_idle().await.unwrap();
    for (id, base) in operations.iter().zip(&bases) {
        let thread = app.thread(*id).await;
        let last = thread.attempts.last().unwrap_or_else(|| panic!("{base}: no attempt"));
        assert_eq!(last.symptom, Some(Symptom::AddressRefused), "{base}: {last:?}");
    }
    // Sent while it was allowed, and asked about when it is not any more.
    app.destination.script("/lookup", [Behaviour::CloseAfterRead { effect: false }]);
    let id = app.submit("lookup", "asked").await;
    app.run_until_idle().await;
    assert_ne!(app.state(id).await, OperationState::Completed);
    let (before, sends) = (app.destination.requests_count(), app.thread(id).await.attempts.len());
    let engine = guarded(&app, &more, |config| {
        let inside = format!("https://localhost:{port}").parse().unwrap();
        config.destinations.get_mut("lookup").unwrap().base_url = Some(inside);
    })
    .await;
    let mut worker = engine.worker().unwrap();
    for _ in 0..30 {
        app.clock.advance(Duration::from_secs(5));
        worker.run_until_idle().await.unwrap();
    }
    let asked = app.thread(id).await.attempts.split_off(sends);
    assert!(!asked.is_empty(), "it was asked about");
    for attempt in &asked {
        let why = attempt.error.as_deref().unwrap_or_default();
        assert!(why.contains("private or reserved network"), "{attempt:?}");
    }
    assert_eq!(app.destination.requests_count(), before);
    assert_eq!(knocks.load(Ordering::Relaxed), 0);
}

const CODES: [u16; 5] = [301, 302, 303, 307, 308];

async fn no_redirect_is_followed_wherever_it_leads(db: TestDatabase) {
    let (trap, knocks) = trap().await;
    // A redirect pauses its destination, hence one for each.
    let more: String = CODES
        .iter()
        .map(|code| {
            format!(
                "[destinations.to-{code}]\nbase_url = \"{{destination}}/to-{code}\"\n[operations.to-{code}]\n\
                 [[operations.to-{code}.steps]]\nname = \"go\"\ndestination = \"to-{code}\"\n\
                 method = \"POST\"\npath = \"/x\"\n"
            )
        })
        .collect();
    let mut app = TestApp::configured(db, &more).await;
    let away = |code| {
        let headers = vec![("location".to_owned(), format!("http://{trap}/latest/meta-data/iam"))];
        Behaviour::Status { code, headers, body: String::new() }
    };
    let mut operations = Vec::new();
    for code in CODES {
        app.destination.script(&format!("/to-{code}"), [away(code)]);
        operations.push((code, app.submit(&format!("to-{code}"), &format!("order-{code}")).await));
    }
    app.destination.script("/lookup", [Behaviour::CloseAfterRead { effect: false }, away(302)]);
    operations.push((302, app.submit("lookup", "asked").await));
    app.run_for(Duration::from_secs(70)).await;
    for (code, id) in operations {
        let attempts = app.thread(id).await.attempts;
        assert!(attempts.iter().any(|attempt| attempt.status == Some(code.into())), "{code}: {attempts:?}");
    }
    assert_eq!(knocks.load(Ordering::Relaxed), 0, "although it may go to loopback here");
}

/// Steps that put what they are given into every part of a request.
const HOSTILE: &str = r#"
[operations.in-path]
[[operations.in-path.steps]]
name = "go"
destination = "plain"
method = "POST"
path = "/{{ payload.at }}"
[operations.in-query]
[[operations.in-query.steps]]
name = "go"
destination = "plain"
method = "POST"
path = "/tickets?to={{ payload.at }}"
[operations.in-header]
[[operations.in-header.steps]]
name = "go"
destination = "plain"
method = "POST"
path = "/tickets"
headers = { X-Order = "{{ payload.at }}" }
"#;

async fn no_payload_changes_where_a_request_goes(db: TestDatabase) {
    let mut app = TestApp::configured(db, HOSTILE).await;
    let (trap, knocks) = trap().await;
    let wanted = [
        format!("//{trap}/"),
        format!("/{trap}/"),
        format!("@{trap}/"),
        format!("x@{trap}/"),
        format!(":x@{trap}/"),
        format!("\\\\{trap}\\"),
        format!("http://{trap}/"),
        format!("%40{trap}"),
        format!("?@{trap}"),
        format!("#@{trap}/"),
        format!("x HTTP/1.1\r\nHost: {trap}\r\n\r\n"),
        format!("x\r\nHost: {trap}\r\nEvil: 1"),
        format!("x\nEvil: 1\n\nGET http://{trap}/ HTTP/1.1"),
        "x\rEvil: 1".to_owned(),
        "..".to_owned(),
        "../../admin".to_owned(),
        "%2e%2e/%2e%2e/admin".to_owned(),
        "..\\..\\admin".to_owned(),
        "\t//evil.example".to_owned(),
        "\u{2028}Evil: 1".to_owned(),
        "/".to_owned(),
        "ordinary".to_owned(),
    ];
    for kind in ["in-path", "in-query", "in-header"] {
        for (n, at) in wanted.iter().enumerate() {
            let payload = serde_json::json!({ "at": at }).to_string();
            app.try_submit(kind, &format!("{kind}-{n}"), &payload).await.unwrap();
        }
    }
    app.run_for(Duration::from_secs(5)).await;
    let host = app.destination.base_url().replace("http://", "");
    let requests = app.destination.requests();
    assert!(requests.len() > wanted.len(), "most were sent: {}", requests.len());
    for request in &requests {
        assert!(request.path.starts_with("/plain/"), "{request:?}");
        let plain = request.path.to_lowercase();
        let (path, _) = plain.split_once('?').unwrap_or((&plain, ""));
        assert!(!path.split('/').any(|part| matches!(part, "." | ".." | "%2e%2e")), "{request:?}");
        let hosts: Vec<&String> =
            request.headers.iter().filter(|(name, _)| name == "host").map(|(_, value)| value).collect();
        assert_eq!(hosts, [&host], "{request:?}");
        assert!(request.header("evil").is_none(), "{request:?}");
        assert_eq!(request.method, "POST");
    }
    assert_eq!(knocks.load(Ordering::Relaxed), 0);
}
