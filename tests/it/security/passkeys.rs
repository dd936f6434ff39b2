//! MFA by passkeys, with a device that answers as a browser's script reads it off; the script itself
//! is proved in `browser::passkeys`.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person, Reply};
use crate::support::phone::Device;
use crate::support::tables::business;

on_both!(
    mfa_a_passkey_is_shown_after_the_password,
    mfa_an_answer_to_another_question_opens_nothing,
    mfa_a_copied_passkey_is_noticed,
    mfa_a_passkey_alone_makes_a_sign_in_fresh,
    mfa_where_the_desk_is_reached_by_a_number_no_passkey_is_offered,
);

const ORIGIN: &str = "https://desk.example.com";
const PLACE: &str = "/account/second-factor/passkeys";

impl Person<'_> {
    async fn adds(&mut self, device: &Device, name: &str) -> Reply {
        let asked = self.post(PLACE, &[("name", name)]).await.expect(200);
        self.post(PLACE, &[("name", name), ("made", &device.make(&asked))]).await
    }

    /// Gives the password, and asks for a passkey.
    async fn is_asked(&mut self) -> Reply {
        self.sign_in("operator", PASSWORD).await;
        self.post_bare("/login/second", &[("passkey", "start")]).await.expect(200)
    }

    async fn answers(&mut self, answer: &str) -> Reply {
        self.post_bare("/login/second", &[("credential", answer)]).await
    }
}

async fn mfa_a_passkey_is_shown_after_the_password(db: TestDatabase) {
    let desk = Desk::reached_at(db, ORIGIN).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let mut device = Device::at(ORIGIN);
    let unnamed = olga.post(PLACE, &[("name", " ")]).await.expect(422);
    assert!(unnamed.words().contains("1 to 64 characters"), "{}", unnamed.words());
    let added = olga.adds(&device, "key ring").await.expect(200);
    assert_eq!(added.all(".codes li").len(), 10, "for the day on which it is lost");
    // Browsers refuse by themselves to make a second one on a device; this one does not.
    assert_eq!(olga.adds(&device, "the same").await.location(), "/account/second-factor");
    let page = olga.get("/account/second-factor").await.expect(200);
    assert_eq!(page.all("tbody tr").len(), 1);
    assert!(page.first("tbody tr").starts_with("key ring last used never"), "{}", page.first("tbody tr"));

    let mut there = desk.nobody();
    let asked = there.is_asked().await;
    assert!(!there.is_in().await);
    let answer = device.show(&asked);
    assert_eq!(there.answers(&answer).await.location(), "/");
    assert!(there.is_in().await);
    let page = there.get("/account/second-factor").await.expect(200);
    assert!(page.first("tbody tr").starts_with("key ring last used just now"), "{}", page.first("tbody tr"));
    let audit = there.get("/audit").await.expect(200);
    assert!(audit.words().contains("with the passkey key ring"), "{}", audit.words());

    // An answer is good for one question.
    let mut thief = desk.nobody();
    thief.is_asked().await;
    thief.answers(&answer).await.expect(422);

    let row = page.text.split(PLACE).find_map(|part| part.strip_prefix('/')?.split("/remove").next());
    let remove = format!("{PLACE}/{}/remove", row.expect("a passkey"));
    there.post(&remove, &[]).await.location();
    assert_eq!(desk.nobody().sign_in("operator", PASSWORD).await.location(), "/");
    there.post(&remove, &[]).await.expect(404);
}

async fn mfa_an_answer_to_another_question_opens_nothing(db: TestDatabase) {
    let desk = Desk::reached_at(db, ORIGIN).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let mut device = Device::at(ORIGIN);
    olga.adds(&device, "key ring").await.expect(200);
    let mut otto = desk.signed_in(Role::Approver).await;
    let taken = otto.adds(&device, "not theirs").await.expect(409);
    assert!(taken.words().contains("known already"), "{}", taken.words());
    let mut others = Device::at(ORIGIN);
    otto.adds(&others, "another\u{2019}s").await.expect(200);
    let asked = desk.nobody().is_asked().await;
    let early = device.show(&asked);

    let mut thief = desk.nobody();
    thief.sign_in("operator", PASSWORD).await;
    thief.answers(&early).await.expect(422);
    let page = thief.is_asked().await;
    thief.answers(&others.show(&page)).await.expect(422);
    let page = thief.is_asked().await;
    let mut elsewhere = device.show(&page);
    elsewhere = elsewhere.replace("signature\":\"M", "signature\":\"N");
    thief.answers(&elsewhere).await.expect(422);
    for nonsense in ["{}", "x", "null"] {
        let reply = thief.answers(nonsense).await;
        assert!([422, 429].contains(&reply.status.as_u16()), "{nonsense}: {}", reply.status);
    }
    assert!(!thief.is_in().await);

    // A page elsewhere got the question and the person to answer it: the browser says where it was.
    let before = business(&desk.app).await.into_iter().filter(|(table, _)| table == "passkeys").count();
    let asked = olga.post(PLACE, &[("name", "phished")]).await.expect(200);
    let phished = Device::at("https://desk.example.org").make(&asked);
    let reply = olga.post(PLACE, &[("name", "phished"), ("made", &phished)]).await;
    assert_eq!(reply.location(), "/account/second-factor");
    let page = olga.get("/account/second-factor").await.expect(200);
    assert!(page.words().contains("The passkey was not taken"), "{}", page.words());
    let after = business(&desk.app).await.into_iter().filter(|(table, _)| table == "passkeys").count();
    assert_eq!(before, after);
}

async fn mfa_a_copied_passkey_is_noticed(db: TestDatabase) {
    let desk = Desk::reached_at(db, ORIGIN).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let mut device = Device::at(ORIGIN);
    olga.adds(&device, "key ring").await.expect(200);
    device.counter = 40;
    let mut owner = desk.nobody();
    let asked = owner.is_asked().await;
    assert_eq!(owner.answers(&device.show(&asked)).await.location(), "/");
    // The copy was made before.
    device.counter = 20;
    let mut thief = desk.nobody();
    let asked = thief.is_asked().await;
    thief.answers(&device.show(&asked)).await.expect(422);
    assert!(!thief.is_in().await);
    let audit = owner.get("/audit").await.expect(200);
    assert!(audit.words().contains("there may be a copy of it"), "{}", audit.words());

    // Both were asked before either answered.
    let (mut one, mut other) = (desk.nobody(), desk.nobody());
    let (first, second) = (one.is_asked().await, other.is_asked().await);
    device.counter = 60;
    assert_eq!(one.answers(&device.show(&first)).await.location(), "/");
    device.counter = 50;
    other.answers(&device.show(&second)).await.expect(422);
}

async fn mfa_a_passkey_alone_makes_a_sign_in_fresh(db: TestDatabase) {
    let desk = Desk::reached_at(db, ORIGIN).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let mut device = Device::at(ORIGIN);
    olga.adds(&device, "key ring").await.expect(200);
    desk.app.clock.advance(Duration::from_mins(5));
    let codes = "/account/second-factor/codes";
    olga.post(codes, &[]).await.expect(422);
    let asked = olga.post(codes, &[("passkey", "start"), ("note", "kept")]).await.expect(200);
    assert_eq!(asked.field("note"), "kept");
    let answer = device.show(&asked);
    let done = olga.post(codes, &[("credential", &answer)]).await.expect(200);
    assert_eq!(done.all(".codes li").len(), 10);
    desk.app.clock.advance(Duration::from_mins(5));
    olga.post(codes, &[("credential", &answer)]).await.expect(422);
}

async fn mfa_where_the_desk_is_reached_by_a_number_no_passkey_is_offered(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get("/account/second-factor").await.expect(200);
    assert!(page.words().contains("Passkeys need a name in the desk\u{2019}s address"), "{}", page.words());
    assert_eq!(page.all("[data-passkey-offer]"), []);
    let refused = olga.post(PLACE, &[("name", "key ring")]).await.expect(409);
    assert!(refused.words().contains("it is reached by a number"), "{}", refused.words());
}
