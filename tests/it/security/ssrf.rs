//! Where requests may go, however the address is written and whatever a name says.

mod denied;
mod operations;

use std::error::Error;
use std::net::SocketAddr;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, path::Path};

use dead_letter_office::engine::guard::{self, AddressError, Terms};
use denied::{denied, spellings};
use reqwest::Method;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpListener;
use url::Url;

use crate::support::app::install_crypto;

fn terms(allow_private: bool) -> Terms {
    let timeout = Duration::from_secs(5);
    Terms { allow_private, connect_timeout: timeout, timeout, reuse: false }
}

#[tokio::test]
async fn a_denied_address_is_refused_in_every_spelling() {
    install_crypto();
    let client = guard::client(terms(false)).unwrap();
    let mut judged = 0;
    for address in denied() {
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
    for denied in denied() {
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
