//! What people hold in their hand: a phone with an authenticator app, and a device with passkeys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dead_letter_office::domain::time::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use scraper::{Html, Selector};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use totp_rs::{Builder, Secret, Totp};

use super::desk::{Person, Reply};

/// An authenticator app that was shown a secret.
pub(crate) struct Phone(Totp);

impl Phone {
    /// Takes the secret off a page as people type it.
    pub(crate) fn shown(page: &Reply) -> Self {
        let secret = page.first(".handout .code").replace(' ', "");
        let secret = Secret::try_from_base32(&secret).unwrap_or_else(|error| panic!("{error}: {secret}"));
        Self(Builder::new().with_secret(secret).build().unwrap())
    }

    pub(crate) fn code(&self, at: Timestamp) -> String {
        self.0.generate(u64::try_from(at.as_micros() / 1_000_000).unwrap()).to_string()
    }
}

/// What a phone's camera reads off a page's picture.
pub(crate) fn scanned(page: &Reply) -> String {
    /// Pixels for a square.
    const SCALE: usize = 4;
    let number = |text: &str| text.parse::<usize>().unwrap_or_else(|error| panic!("{error}: {text}"));
    let parsed = Html::parse_document(&page.text);
    let element = |selector: &str| {
        let selector = Selector::parse(selector).unwrap();
        parsed.select(&selector).next().unwrap_or_else(|| panic!("no picture in\n{}", page.text)).value()
    };
    let place: Vec<usize> = element("svg.qr").attr("viewBox").unwrap().split(' ').map(number).collect();
    let [0, 0, wide, high] = place[..] else { panic!("{place:?}") };
    let (wide, high) = (wide * SCALE, high * SCALE);
    let mut image = vec![u8::MAX; wide * high];
    // Each dark run: "M7 4h3v1h-3z".
    for run in element("svg.qr path").attr("d").unwrap().split('M').skip(1) {
        let (start, rest) = run.split_once('h').unwrap();
        let (x, y) = start.split_once(' ').unwrap();
        let length = rest.split_once('v').unwrap().0;
        assert_eq!(rest, format!("{length}v1h-{length}z"));
        let (x, y, length) = (number(x) * SCALE, number(y) * SCALE, number(length) * SCALE);
        for row in y..y + SCALE {
            image[row * wide + x..][..length].fill(0);
        }
    }
    let mut camera = quircs::Quirc::default();
    let mut found = camera.identify(wide, high, &image);
    let code = found.next().expect("a code").expect("a whole one");
    assert!(found.next().is_none(), "one code");
    String::from_utf8(code.decode().expect("a code that can be read").payload).expect("a text")
}

impl Person<'_> {
    /// Sets an app up; it, and the recovery codes.
    pub(crate) async fn sets_up_app(&mut self) -> (Phone, Vec<String>) {
        let place = "/account/second-factor/app";
        let csrf = self.get("/account/second-factor").await.expect(200).field("csrf");
        self.post_bare(place, &[("csrf", &csrf)]).await.location();
        let phone = Phone::shown(&self.get(place).await.expect(200));
        let code = phone.code(self.desk.app.engine.ambient().now());
        let fields = [("csrf", csrf.as_str()), ("code", code.as_str())];
        let done = self.post_bare(&format!("{place}/confirm"), &fields).await.expect(200);
        (phone, done.all(".codes li").into_iter().map(|(code, _)| code).collect())
    }
}

/// A device that holds a passkey and answers as a browser's script reads it off.
pub(crate) struct Device {
    key: EcdsaKeyPair,
    id: [u8; 16],
    origin: &'static str,
    pub(crate) counter: u32,
}

impl Device {
    /// For pages from this place.
    pub(crate) fn at(origin: &'static str) -> Self {
        let random = SystemRandom::new();
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random).unwrap();
        Self { key, id: rand::random(), origin, counter: 1 }
    }

    /// The options that a page has for the script.
    fn options(page: &Reply) -> Value {
        let parsed = Html::parse_document(&page.text);
        let form = Selector::parse("form[data-passkey]").unwrap();
        let form = parsed.select(&form).next().unwrap_or_else(|| panic!("no passkey in\n{}", page.text));
        serde_json::from_str(form.value().attr("data-options").unwrap()).unwrap()
    }

    fn said(&self, kind: &str, options: &Value) -> Vec<u8> {
        json!({ "type": kind, "challenge": options["challenge"], "origin": self.origin, "crossOrigin": false })
            .to_string()
            .into_bytes()
    }

    /// Whose name, that the owner is there and unlocked it, and how often that was.
    fn data(&self, attested: bool) -> Vec<u8> {
        let name = url::Url::parse(self.origin).unwrap().domain().unwrap().to_owned();
        let flags = if attested { 0x45 } else { 0x05 };
        [Sha256::digest(name).as_slice(), &[flags], &self.counter.to_be_bytes()].concat()
    }

    /// Makes the passkey that a page asks for.
    pub(crate) fn make(&self, page: &Reply) -> String {
        let said = self.said("webauthn.create", &Self::options(page));
        let point = &self.key.public_key().as_ref()[1..];
        // CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        let key = [
            b"\xa5\x01\x02\x03\x26\x20\x01\x21\x58\x20".as_slice(),
            &point[..32],
            b"\x22\x58\x20",
            &point[32..],
        ]
        .concat();
        let data = [self.data(true), vec![0; 16], vec![0, 16], self.id.to_vec(), key].concat();
        let length = u8::try_from(data.len()).unwrap();
        // CBOR: {"fmt": "none", "attStmt": {}, "authData": data}
        let object =
            [b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".as_slice(), &[length], &data].concat();
        let response = json!({
            "clientDataJSON": URL_SAFE_NO_PAD.encode(said),
            "attestationObject": URL_SAFE_NO_PAD.encode(object),
        });
        self.credential(&response)
    }

    /// Shows the passkey to a page that asks for it.
    pub(crate) fn show(&mut self, page: &Reply) -> String {
        self.counter += 1;
        let said = self.said("webauthn.get", &Self::options(page));
        let data = self.data(false);
        let signed = [data.as_slice(), Sha256::digest(&said).as_slice()].concat();
        let signature = self.key.sign(&SystemRandom::new(), &signed).unwrap();
        let response = json!({
            "clientDataJSON": URL_SAFE_NO_PAD.encode(said),
            "authenticatorData": URL_SAFE_NO_PAD.encode(data),
            "signature": URL_SAFE_NO_PAD.encode(signature),
            "userHandle": null,
        });
        self.credential(&response)
    }

    fn credential(&self, response: &Value) -> String {
        let id = URL_SAFE_NO_PAD.encode(self.id);
        json!({ "id": id, "rawId": id, "type": "public-key", "response": response, "clientExtensionResults": {} })
            .to_string()
    }
}
