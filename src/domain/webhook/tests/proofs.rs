use std::time::Duration;

use proptest::prelude::*;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::domain::time::Timestamp;
use crate::domain::webhook::{Event, EventId, Headers, Proof, Scheme, Secret, Unproven};

/// A message that its source signed at `at`, in seconds.
struct Vector {
    scheme: Scheme,
    secret: &'static str,
    headers: Vec<(&'static str, String)>,
    body: &'static str,
    at: i64,
}

const BODY: &str = r#"{"test": 2432232314}"#;
const MESSAGE: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const SHARED: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const V1: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const PUBLIC: &str = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4=";
const V1A: &str =
    "v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg==";

fn standard(secret: &'static str, signature: &str) -> Vector {
    let headers =
        [("webhook-id", MESSAGE), ("webhook-timestamp", "1614265330"), ("webhook-signature", signature)];
    let headers = headers.map(|(name, value)| (name, value.to_owned())).into();
    Vector { scheme: Scheme::StandardWebhooks, secret, headers, body: BODY, at: 1_614_265_330 }
}

/// The published ones, and for Stripe, which publishes none with its secret, one made by another
/// program from its description.
fn vectors() -> [Vector; 4] {
    [
        standard(SHARED, V1),
        standard(PUBLIC, V1A),
        Vector {
            scheme: Scheme::Stripe,
            secret: "whsec_test_secret_of_the_shop",
            headers: vec![(
                "stripe-signature",
                "t=1492774577,v1=db6112e653bf74db73f70c5a624e228a77d006536cdbf2f44a299267fe1b3748".to_owned(),
            )],
            body: r#"{"id":"evt_1","object":"event"}"#,
            at: 1_492_774_577,
        },
        Vector {
            scheme: Scheme::Github,
            secret: "It's a Secret to Everybody",
            headers: vec![(
                "x-hub-signature-256",
                "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17".to_owned(),
            )],
            body: "Hello, World!",
            at: 1_700_000_000,
        },
    ]
}

fn proof(scheme: Scheme, secrets: &[&str]) -> Proof {
    Proof {
        scheme,
        header: scheme.header().to_owned(),
        secrets: secrets.iter().map(|text| Secret::read(scheme, text).unwrap()).collect(),
        tolerance: Duration::from_mins(5),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

impl Vector {
    fn check(&self, now: i64) -> Result<(), Unproven> {
        self.altered(&self.headers, self.body.as_bytes(), now)
    }

    fn altered(&self, headers: &[(&'static str, String)], body: &[u8], now: i64) -> Result<(), Unproven> {
        let headers = Headers::new(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
        proof(self.scheme, &[self.secret]).check(&headers, body, at(now))
    }
}

#[test]
fn published_messages_are_proven() {
    for vector in vectors() {
        assert_eq!(vector.check(vector.at), Ok(()), "{}", vector.scheme);
    }
}

/// The seed and the signature that the reference library for Go is tested with.
#[test]
fn the_reference_seed_signs_what_is_verified() {
    let seed = b"TESTSIGNINGKEYDONOTUSETHISFORANY";
    let key = Ed25519KeyPair::from_seed_unchecked(seed).unwrap();
    let public = Secret::Public(key.public_key().as_ref().try_into().unwrap());
    let signature =
        "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag==";
    let vector = standard(PUBLIC, signature);
    let headers = Headers::new(vector.headers.iter().map(|(name, value)| (*name, value.as_bytes())));
    let proof = Proof { secrets: vec![public], ..proof(Scheme::StandardWebhooks, &[]) };
    assert_eq!(proof.check(&headers, BODY.as_bytes(), at(vector.at)), Ok(()));
}

#[test]
fn dates_are_bounded_to_both_sides() {
    for vector in vectors().iter().filter(|vector| vector.scheme.is_dated()) {
        for (now, wanted) in [
            (vector.at - 301, Err(Unproven::Stale)),
            (vector.at - 300, Ok(())),
            (vector.at + 300, Ok(())),
            (vector.at + 301, Err(Unproven::Stale)),
        ] {
            assert_eq!(vector.check(now), wanted, "{} at {now}", vector.scheme);
        }
        // One that nobody signed is not called late.
        let late = vector.altered(&vector.headers, b"{}", vector.at + 10_000);
        assert_eq!(late, Err(Unproven::NoMatch));
    }
}

#[test]
fn any_secret_and_any_signature_may_match() {
    let headers = |signature: String| {
        Headers::new([
            ("Webhook-Id", MESSAGE.to_owned()),
            ("Webhook-Timestamp", "1614265330".to_owned()),
            ("Webhook-Signature", signature),
        ])
    };
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let noise = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v2,x garbage";
    let check = |secrets: &[&str], signature: &str| {
        let headers = headers(signature.to_owned());
        proof(Scheme::StandardWebhooks, secrets).check(&headers, BODY.as_bytes(), at(1_614_265_330))
    };
    assert_eq!(check(&[other, SHARED], &format!("{noise} {V1}")), Ok(()));
    assert_eq!(check(&[other, PUBLIC], &format!("{noise} {V1A}")), Ok(()));
    assert_eq!(check(&[SHARED], &format!("{V1A} {V1}")), Ok(()));
    assert_eq!(check(&[other], V1), Err(Unproven::NoMatch));
    // One kind of signature does not pass under the other's name.
    assert_eq!(check(&[SHARED, PUBLIC], &V1.replace("v1,", "v1a,")), Err(Unproven::NoMatch));
    assert_eq!(check(&[SHARED, PUBLIC], &V1A.replace("v1a,", "v1,")), Err(Unproven::NoMatch));
    // Many signatures are not a way to make us work.
    let many = format!("{}{V1}", "v1,x ".repeat(1_000));
    assert_eq!(check(&[SHARED], &many), Err(Unproven::NoMatch));
    let garbage = Unproven::Form { header: "webhook-signature".into(), form: "v1,<base64> or v1a,<base64>" };
    assert_eq!(check(&[SHARED], "garbage"), Err(garbage));
}

#[test]
fn what_is_missing_or_misshapen_is_named() {
    for vector in vectors() {
        for (left_out, _) in &vector.headers {
            let headers: Vec<_> =
                vector.headers.iter().filter(|(name, _)| name != left_out).cloned().collect();
            let said = vector.altered(&headers, vector.body.as_bytes(), vector.at);
            assert_eq!(said, Err(Unproven::Missing((*left_out).to_owned())));
            let twice: Vec<_> = vector.headers.iter().chain(vector.headers.iter()).cloned().collect();
            let said = vector.altered(&twice, vector.body.as_bytes(), vector.at);
            assert!(matches!(said, Err(Unproven::Missing(_))), "{said:?}");
        }
    }
    for header in ["", "t=1492774577", "v1=00", "t=,v1=00", "t=-1,v1=00", "t=1,t=2,v1=00", "t=1e9,v1=00"] {
        let headers = Headers::new([("stripe-signature", header)]);
        let said = proof(Scheme::Stripe, &["0123456789abcdef"]).check(&headers, b"", at(0));
        assert!(matches!(said, Err(Unproven::Form { .. })), "{header}: {said:?}");
    }
    for header in ["sha1=00", "757107", ""] {
        let headers = Headers::new([("x-hub-signature-256", header)]);
        let said = proof(Scheme::Github, &["0123456789abcdef"]).check(&headers, b"", at(0));
        assert!(matches!(said, Err(Unproven::Form { .. })), "{header}: {said:?}");
    }
}

#[test]
fn a_bearer_token_is_compared_whole() {
    let proof = proof(Scheme::Bearer, &["the-old-token-of-the-shop", "the-new-token-of-the-shop"]);
    let check = |value: &str| proof.check(&Headers::new([("authorization", value)]), b"{}", at(0));
    assert_eq!(check("Bearer the-new-token-of-the-shop"), Ok(()));
    assert_eq!(check("bearer the-old-token-of-the-shop"), Ok(()));
    for wrong in
        ["Bearer ", "Bearer the-new-token-of-the-sho", "Bearer the-new-token-of-the-shop2", "Bearer THE"]
    {
        assert_eq!(check(wrong), Err(Unproven::NoMatch), "{wrong}");
    }
    for form in ["the-new-token-of-the-shop", "Basic the-new-token-of-the-shop"] {
        assert!(matches!(check(form), Err(Unproven::Form { .. })), "{form}");
    }
}

#[test]
fn secrets_are_read_or_refused_without_being_shown() {
    use Scheme::{Bearer, Github, StandardWebhooks as Standard, Stripe};
    for (scheme, text) in [
        (Standard, ""),
        (Standard, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        (Standard, "whsec_"),
        (Standard, "whsec_c2hvcnQ="),
        (Standard, "whsec_not base64 at all!"),
        (Standard, "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        (Standard, "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc="),
        (Stripe, ""),
        (Github, "fifteen letters"),
        (Bearer, ""),
    ] {
        let problem = Secret::read(scheme, text).expect_err(text);
        let secret = text.split_once('_').map_or(text, |(_, rest)| rest);
        assert!(secret.is_empty() || !problem.contains(secret), "{problem}");
    }
    let shown = format!("{:?}", proof(Standard, &[SHARED, PUBLIC]).secrets);
    assert_eq!(shown, "[Shared(redacted), Public]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// One bit of the body, of a signature, or of what else is signed.
    #[test]
    fn a_message_that_was_altered_anywhere_is_refused(
        which in 0_usize..4,
        place in any::<prop::sample::Index>(),
        bit in 0_u32..8,
    ) {
        let vector = &vectors()[which];
        let mut headers = vector.headers.clone();
        let mut body = vector.body.as_bytes().to_vec();
        let mut lengths: Vec<usize> = headers.iter().map(|(_, value)| value.len()).collect();
        lengths.push(body.len());
        let mut at = place.index(lengths.iter().sum());
        let part = lengths.iter().position(|length| {
            let here = at < *length;
            if !here {
                at -= length;
            }
            here
        });
        let part = part.unwrap();
        if let Some((_, value)) = headers.get_mut(part) {
            let mut bytes = value.clone().into_bytes();
            bytes[at] ^= 1 << bit;
            // What is no text at all is refused before anything is compared.
            let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
            *value = text;
        } else {
            body[at] ^= 1 << bit;
        }
        prop_assert!(vector.altered(&headers, &body, vector.at).is_err());
    }

    #[test]
    fn nothing_that_is_sent_makes_a_check_panic(
        value in "[ -~]{0,80}",
        stamp in "[0-9.,=tv -]{0,14}",
        body in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        for scheme in Scheme::ALL {
            let secret = if *scheme == Scheme::StandardWebhooks { SHARED } else { "0123456789abcdef" };
            let headers = Headers::new([
                (scheme.header(), value.as_str()),
                ("webhook-id", value.as_str()),
                ("webhook-timestamp", stamp.as_str()),
                ("content-type", "application/cloudevents+json"),
            ]);
            prop_assert!(proof(*scheme, &[secret]).check(&headers, &body, at(0)).is_err());
            let _ = Event::read(*scheme, &EventId::CloudEvent, &headers, &body);
            let _ = Event::read(*scheme, &EventId::Pointer("/id".into()), &headers, &body);
        }
    }
}
