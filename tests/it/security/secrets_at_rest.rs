//! Secrets are stored in envelopes only, go on under a new key while everything runs, and are shown
//! by nothing: some are planted wherever one can be, and everything that the program stores, writes
//! and answers is searched for them.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use dead_letter_office::accounts::{self, By, Keys};
use dead_letter_office::demo::destination::{Behaviour, UnreliableDestination};
use dead_letter_office::domain::actor::Actor;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::keyring::{Keyring, SecretKey};
use dead_letter_office::store::{Commit, Db, erasure};
use reqwest::redirect::Policy;
use reqwest::{Client, Method};

use crate::process::{Answer, House, Process, answer, wait_until};
use crate::support::app::{TestApp, install_crypto};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::ledger::Raw;

on_both!(
    planted_secrets_are_found_nowhere,
    stored_secrets_go_on_under_a_new_key,
    what_was_erased_needs_the_key_of_its_time,
    a_secret_comes_and_goes_by_its_name,
);

/// What is planted, and where.
struct Plants(Vec<(&'static str, String)>);

impl Plants {
    fn new() -> Self {
        let names = [
            "a variable",
            "a file",
            "a stored secret in a parameter",
            "a stored secret in an address",
            "a webhook secret",
            "a password",
            "a secret key",
            "a database password",
        ];
        let plant = |name| (name, format!("Planted{:016x}", rand::random::<u64>()));
        Self(names.into_iter().map(plant).collect())
    }

    fn of(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| *known == name);
        &found.unwrap_or_else(|| panic!("{name} was planted")).1
    }

    fn add(&mut self, name: &'static str, secret: &str) {
        assert!(secret.len() > 15, "{name}: {secret}");
        self.0.push((name, secret.to_owned()));
    }

    /// Looks for each, as text and in hexadecimal.
    fn found_in(&self, place: &str, text: &str) {
        let lower = text.to_lowercase();
        for (name, secret) in &self.0 {
            let hex = secret.bytes().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            let at = text.find(secret.as_str()).or_else(|| lower.find(&hex));
            if let Some(at) = at {
                let from =
                    (0..=at.saturating_sub(300)).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
                panic!("{name} stands in {place}: {}", text[from..].chars().take(700).collect::<String>());
            }
        }
    }
}

/// A shop whose every credential comes from elsewhere.
fn shop(database: &str, destination: &str) -> String {
    format!(
        r#"
[server]
listen = "127.0.0.1:0"
database_url = "{database}"
allow_private_destinations = true
[engine]
lease = "2s"
[retry]
attempts = 2
max_age = "1m"
first_delay = "100ms"
[destinations.crm]
base_url = "{destination}/keyed/${{secret:path}}"
timeout = "500ms"
connect_timeout = "300ms"
headers = {{ Authorization = "Bearer ${{PLANTED}}", X-Partner = "${{file:partner.secret}}" }}
query = {{ api_key = "${{secret:parameter}}" }}
key = {{ header = "Idempotency-Key", window = "24h" }}
lookup = {{ path = "/tickets?external_ref={{{{ key }}}}", found = "/tickets/0" }}
[destinations.plain]
base_url = "{destination}/plain/${{secret:path}}"
timeout = "500ms"
connect_timeout = "300ms"
headers = {{ Authorization = "Bearer ${{PLANTED}}" }}
[operations.ticket]
key = "ticket:{{{{ payload.order_id }}}}"
[[operations.ticket.steps]]
name = "create"
destination = "crm"
method = "POST"
path = "/tickets"
reference = "/id"
[operations.letter]
key = "letter:{{{{ payload.order_id }}}}"
[[operations.letter.steps]]
name = "post"
destination = "plain"
method = "POST"
path = "/letters"
[sources.shop]
scheme = "github"
secrets = ["${{secret:hook}}"]
[[sources.shop.events]]
operation = "ticket"
"#
    )
}

/// A house, and what its commands and its server are given.
struct Shop {
    house: House,
    plants: Plants,
    /// Everything that commands said, and what for.
    said: Vec<(String, Answer)>,
}

impl Shop {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.house.command(arguments);
        command
            .env("DLO_LOG", "trace")
            .env("DLO_SECRET_KEY", self.plants.of("a secret key").repeat(2))
            .env("PLANTED", self.plants.of("a variable"));
        command
    }

    /// What a command answers; it is searched later.
    fn dlo(&mut self, arguments: &[&str]) -> Answer {
        let given = answer(self.command(arguments), "");
        let copy = Answer { code: given.code, out: given.out.clone(), err: given.err.clone() };
        self.said.push((arguments.join(" "), given));
        copy
    }

    /// What a command answers that tells a secret this once: only its log is searched.
    fn told(&mut self, arguments: &[&str], stdin: &str) -> String {
        let given = answer(self.command(arguments), stdin);
        assert_eq!(given.code, Some(0), "{arguments:?}: {given:?}");
        let out = given.out.clone();
        self.said.push((arguments.join(" "), Answer { out: String::new(), ..given }));
        out
    }

    fn search(&self) {
        for (what, answer) in &self.said {
            self.plants.found_in(&format!("what `dlo {what}` printed"), &answer.out);
            self.plants.found_in(&format!("the log of `dlo {what}`"), &answer.err);
        }
    }
}

/// The address with a password, where the database takes one.
fn with_password(url: &str, password: &str) -> String {
    url.replacen("postgres://postgres@", &format!("postgres://postgres:{password}@"), 1)
}

async fn planted_secrets_are_found_nowhere(db: TestDatabase) {
    install_crypto();
    let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
    let mut shop = Shop { house: House::empty(), plants: Plants::new(), said: Vec::new() };
    let database = with_password(&db.url, shop.plants.of("a database password"));
    shop.house.write("dlo.toml", &self::shop(&database, &destination.base_url()));
    shop.house.write("partner.secret", &format!("{}\n", shop.plants.of("a file")));
    shop.dlo(&["migrate"]);
    for (name, plant) in [
        ("path", "a stored secret in an address"),
        ("parameter", "a stored secret in a parameter"),
        ("hook", "a webhook secret"),
    ] {
        // What is missing so far is said by its name.
        let missing = shop.dlo(&["check"]);
        assert!(
            missing.code == Some(2) && missing.err.contains(&format!("`dlo secret set {name}`")),
            "{missing:?}"
        );
        let secret = shop.plants.of(plant).to_owned();
        shop.told(&["secret", "set", name], &format!("{secret}\n"));
    }
    assert_eq!(shop.dlo(&["check"]).code, Some(0));
    let password = shop.plants.of("a password").to_owned();
    shop.told(&["user", "add", "olga", "--role", "admin", "--password-stdin"], &format!("{password}\n"));
    let link = shop.told(&["user", "add", "vera", "--role", "viewer"], "");
    let (_, setup) = link.trim().rsplit_once("/setup/").expect("a link");
    shop.plants.add("a setup link", setup);
    let token = shop.told(&["token", "create", "shop", "--scope", "operate"], "").trim().to_owned();
    let submits = shop.told(&["token", "create", "till", "--scope", "submit"], "").trim().to_owned();
    shop.plants.add("an API token", &token);
    shop.plants.add("a token that submits", &submits);

    // Everything that the destination is sent, it says again.
    let sent = [
        ("header", shop.plants.of("a variable").to_owned()),
        ("file", shop.plants.of("a file").to_owned()),
        ("parameter", shop.plants.of("a stored secret in a parameter").to_owned()),
        ("path", shop.plants.of("a stored secret in an address").to_owned()),
    ];
    let echo = |code: u16| {
        let body: String = sent.iter().map(|(what, secret)| format!("{what}={secret}&")).collect();
        let body =
            serde_json::json!({ "id": "T-1", "error": { "message": format!("Bearer you sent {body}") } });
        let headers = sent.iter().map(|(what, secret)| (format!("x-{what}"), secret.clone())).collect();
        Behaviour::Status { code, headers, body: body.to_string() }
    };
    destination.script("/keyed", [echo(201), echo(422), echo(500), echo(401)]);
    destination.script("/plain", [Behaviour::CloseAfterRead { effect: false }, echo(422), echo(409)]);

    let mut serving = Process::start(shop.command(&["serve"]), shop.house.path("stderr"), "Engine:");
    let out = serving.out();
    let url =
        out.split_once("(listening on ").and_then(|(_, rest)| rest.split_once(')')).expect("its address").0;
    let url = format!("http://{url}");
    let http = Client::builder().redirect(Policy::none()).build().unwrap();
    let mut answers: Vec<(String, String)> = Vec::new();
    let cookie = sign_in(&http, &url, &password).await;
    shop.plants.add("a session", cookie.split_once('=').expect("a cookie").1);

    for n in 0..3 {
        let kinds = [("ticket", "keyed"), ("letter", "plain")];
        for (kind, _) in kinds {
            let body = format!(r#"{{"type":"{kind}","payload":{{"order_id":"{n}"}}}}"#);
            let call = http.post(format!("{url}/api/v1/operations")).bearer_auth(&submits).body(body);
            let reply = call.send().await.unwrap();
            assert_eq!(reply.status(), 201);
            answers.push(("a submission".to_owned(), reply.text().await.unwrap()));
            let key = format!("{kind}:{n}");
            let state = |shop: &Shop| {
                let shown = answer(shop.command(&["show", &key, "--json"]), "").out;
                shown.contains(r#""state": "completed""#) || shown.contains(r#""dead_letter": ""#)
            };
            wait_until(&format!("{key} comes to an end"), || state(&shop));
        }
    }
    let requests = destination.requests();
    let asked = format!("{requests:?}");
    for (what, secret) in &sent {
        assert!(asked.contains(secret.as_str()), "the destination was sent the {what}: {asked}");
    }
    for (what, arguments) in
        [("letter:0", ["--reason", "once more"]), ("ticket:1", ["--reason", "once more"])]
    {
        shop.dlo(&[&["replay", what][..], &arguments[..]].concat());
    }
    let letters = shop.dlo(&["dead-letters", "--json"]).out;
    let letters: serde_json::Value = serde_json::from_str(&letters).expect("a list");
    let letters = letters["items"].as_array().or(letters.as_array()).cloned().expect("dead letters");
    let ids: Vec<String> =
        letters.iter().filter_map(|letter| Some(letter["id"].as_str()?.to_owned())).collect();
    let operations: Vec<String> =
        letters.iter().filter_map(|letter| Some(letter["operation"]["id"].as_str()?.to_owned())).collect();
    assert!(ids.len() >= 2 && operations.len() == ids.len(), "{letters:?}");
    shop.plants.found_in("a list of dead letters", &format!("{letters:?}"));

    let mut calls: Vec<(Method, String, String)> = vec![
        (
            Method::POST,
            format!("/api/v1/dead-letters/{}/override", ids[0]),
            r#"{"reason":"they agreed","mode":"new_effect","accept_duplicate":true}"#.to_owned(),
        ),
        (Method::POST, format!("/api/v1/operations/{}/lookup", operations[0]), String::new()),
        (Method::POST, "/api/v1/operations".to_owned(), "{".to_owned()),
        (Method::GET, "/api/v1/operations".to_owned(), String::new()),
        (Method::GET, "/api/v1/dead-letters".to_owned(), String::new()),
        (Method::GET, "/api/v1/audit".to_owned(), String::new()),
    ];
    for id in &operations {
        for more in ["", "/attempts", "/events"] {
            calls.push((Method::GET, format!("/api/v1/operations/{id}{more}"), String::new()));
        }
    }
    for (method, path, body) in calls {
        let call = http.request(method, format!("{url}{path}")).bearer_auth(&token).body(body);
        answers.push((path, call.send().await.unwrap().text().await.unwrap()));
    }
    // A delivery that proves nothing; and a password in the field of the name, which the form gives back
    // to whoever typed it.
    let hook = http.post(format!("{url}/hooks/shop")).header("x-hub-signature-256", "sha256=00").body("{}");
    answers.push(("a webhook".to_owned(), hook.send().await.unwrap().text().await.unwrap()));
    let wrong = http
        .post(format!("{url}/login"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .body(format!("name={password}&password={password}x"));
    assert_eq!(wrong.send().await.unwrap().status(), 422);

    let mut pages: Vec<String> = [
        "/",
        "/dead-letters",
        "/operations",
        "/destinations",
        "/destinations/crm",
        "/destinations/plain",
        "/types/ticket",
        "/audit",
        "/status",
        "/people",
        "/account",
        "/bulk",
        "/approvals",
    ]
    .map(str::to_owned)
    .to_vec();
    pages.extend(operations.iter().map(|id| format!("/operations/{id}")));
    for id in &ids {
        pages
            .extend(["", "/replay", "/override", "/resolve"].map(|form| format!("/dead-letters/{id}{form}")));
    }
    for page in &pages {
        let reply = http.get(format!("{url}{page}")).header("cookie", &cookie).send().await.unwrap();
        assert_eq!(reply.status(), 200, "{page}");
        answers.push((page.clone(), reply.text().await.unwrap()));
    }
    assert!(answers.iter().any(|(_, text)| text.contains("[redacted]")), "what was said again was taken out");

    // Something breaks under a page.
    let mut raw = Raw::open(&db.url).await.unwrap();
    raw.execute("ALTER TABLE views RENAME TO views_gone").await;
    let broken = http.get(format!("{url}/dead-letters")).header("cookie", &cookie).send().await.unwrap();
    assert!(broken.status().is_server_error(), "{}", broken.status());
    answers.push(("a broken page".to_owned(), broken.text().await.unwrap()));
    raw.execute("ALTER TABLE views_gone RENAME TO views").await;

    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0), "{}", serving.err());
    for arguments in [
        &["check"][..],
        &["secret", "list"],
        &["user", "list"],
        &["token", "list"],
        &["show", "ticket:0"],
        &["show", "letter:1", "--json"],
        &["audit", "export"],
        &["audit", "export", "--format", "json"],
        &["rotate-keys"],
        &["secret", "remove", "hook"],
    ] {
        shop.dlo(arguments);
    }
    mistakes(&mut shop, &database, &destination.base_url());

    shop.search();
    let (log, printed) = (serving.err(), serving.out());
    assert!(log.contains("TRACE"), "everything was logged");
    shop.plants.found_in("the server's log", &log);
    shop.plants.found_in("what the server printed", &printed);
    for (what, text) in &answers {
        shop.plants.found_in(&format!("the answer to {what}"), text);
    }
    let dump = raw.dump().await;
    assert!(
        dump.iter().any(|(table, row)| table == "requests" && row.contains("[redacted]/tickets")),
        "{dump:?}"
    );
    for (table, row) in dump {
        shop.plants.found_in(&format!("the table {table}"), &row);
    }
}

/// Configurations in which a secret stands where it does not fit.
fn mistakes(shop: &mut Shop, database: &str, destination: &str) {
    let whole = self::shop(database, destination);
    for (n, (right, wrong)) in [
        ("scheme = \"github\"", "scheme = \"standard-webhooks\""),
        ("Bearer ${PLANTED}", "Bearer ${PLANTED}\\u0001"),
        ("X-Partner = \"", "\"X ${PLANTED}\" = \""),
        ("/keyed/${secret:path}", "/keyed/?${secret:path}"),
        ("method = \"POST\"", "method = \"${PLANTED}\""),
        ("reference = \"/id\"", "reference = \"${PLANTED}\""),
        ("lease = \"2s\"", "lease = \"${PLANTED}\""),
        ("[engine]", "${PLANTED} = ["),
    ]
    .into_iter()
    .enumerate()
    {
        let text = whole.replace(right, wrong);
        assert_ne!(text, whole, "{right}");
        let name = format!("wrong-{n}.toml");
        shop.house.write(&name, &text);
        let said = shop.dlo(&["--config", &name, "check"]);
        assert_eq!(said.code, Some(2), "{wrong}: {said:?}");
    }
}

async fn sign_in(http: &Client, url: &str, password: &str) -> String {
    let reply = http
        .post(format!("{url}/login"))
        .header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin")
        .body(format!("name=olga&password={password}"))
        .send()
        .await
        .unwrap();
    assert_eq!(reply.status(), 303);
    let set = reply.headers()["set-cookie"].to_str().unwrap();
    set.split(';').next().unwrap_or_default().to_owned()
}

/// A house with three keys and a configuration that takes two secrets.
fn keys(url: &str, current: &str, older: &[&str]) -> String {
    let older: Vec<String> = older.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "[server]\ndatabase_url = \"{url}\"\nsecret_key_file = \"{current}\"\nold_secret_key_files = [{}]\n\
         [destinations.crm]\nbase_url = \"https://crm.example.com\"\nheaders = {{ X-A = \"${{secret:crm}}\" }}\n",
        older.join(", ")
    )
}

/// What names the key in a file.
fn id_of(house: &House, file: &str) -> String {
    SecretKey::new(fs::read_to_string(house.path(file)).unwrap().trim()).unwrap().id()
}

async fn stored_secrets_go_on_under_a_new_key(db: TestDatabase) {
    let house = House::empty();
    for name in ["one.key", "two.key", "three.key"] {
        let out = house.done(&["key", "new", name]);
        assert!(out.contains("Leave the old file in old_secret_key_files"), "{out}");
        assert!(out.contains("dlo rotate-keys"), "{out}");
    }
    assert_eq!(house.dlo(&["key", "new", "one.key"]).code, Some(1), "nothing is overwritten");
    house.write("dlo.toml", &keys(&db.url, "one.key", &[]));
    house.done(&["migrate"]);
    let mut raw = Raw::open(&db.url).await.unwrap();
    assert_eq!(house.dlo_with(&["secret", "set", "crm"], "value of crm").code, Some(0));
    // More than one batch.
    let key = SecretKey::new(fs::read_to_string(house.path("one.key")).unwrap().trim()).unwrap();
    let store = Db::open(&db.url).await.unwrap().keyed(Some(Keyring::new(key, vec![])));
    let actor = Actor::Cli { user: "root".into() };
    let by = By { actor: &actor, origin: "cli" };
    for n in 0..120 {
        let secret = format!("value {n}").into();
        accounts::set_secret(&store, &Ambient::system(), &format!("secret-{n}"), &secret, &by).await.unwrap();
    }

    // Both keys are named: everything opens, and it is said what is left to do.
    house.write("dlo.toml", &keys(&db.url, "two.key", &["one.key"]));
    let check = house.done(&["check"]);
    let one = id_of(&house, "one.key");
    assert!(
        check.contains("0 stored secrets are under the key in use") && !check.contains("Nothing"),
        "{check}"
    );
    let needs = format!("The key {one} has to stay in old_secret_key_files: 121 stored secrets are under it");
    assert!(check.contains(&needs), "{check}");
    // One more is under the new key already.
    house.dlo_with(&["secret", "set", "new"], "value of new");
    let out = house.done(&["rotate-keys"]);
    assert!(
        out.contains("121 stored secrets were put")
            && out.contains("122 stored secrets are under the key in use"),
        "{out}"
    );
    // What cannot be moved needs the old key for good.
    let stays = format!(
        "The key {one} has to stay in old_secret_key_files: No. 1 to 121 of the audit are verified with it."
    );
    assert!(out.contains(&stays) && !out.contains("Nothing"), "{out}");
    let out = house.done(&["rotate-keys"]);
    assert!(out.starts_with("0 stored secrets were put"), "once is enough: {out}");
    let noted = raw.texts("SELECT detail FROM audit JOIN audit_words ON audit_id = id WHERE action = 'key_rotate' ORDER BY at, id").await;
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert!(noted[0].starts_with("100 in secrets to the key ") && noted[1].starts_with("21 in"), "{noted:?}");

    // One that nothing was ever done with may go.
    house.write("dlo.toml", &keys(&db.url, "two.key", &["one.key", "three.key"]));
    let check = house.done(&["check"]);
    let three = id_of(&house, "three.key");
    assert!(
        check.contains(&format!("Nothing needs the key {three} any more")) && check.contains(&stays),
        "{check}"
    );
    // Without the old one nothing breaks at once, and what will is said.
    house.write("dlo.toml", &keys(&db.url, "two.key", &[]));
    let check = house.dlo(&["check"]);
    let gone = format!("The secret key {one} is not here, and it is needed: No. 1 to 121 of the audit");
    assert!(check.code == Some(2) && check.out.contains(&gone), "{check:?}");
    assert_eq!(house.dlo(&["audit", "verify"]).code, Some(1));
    let serve = house.command(&["serve", "--only", "engine"]);
    let mut serving = Process::start(serve, house.path("stderr"), "Engine:");
    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0), "{}", serving.err());
    assert!(serving.err().contains(&gone) && serving.err().contains("ERROR"), "{}", serving.err());
    house.write("dlo.toml", &keys(&db.url, "two.key", &["one.key"]));
    assert_eq!(house.dlo(&["audit", "verify"]).code, Some(0));

    // A key that is gone: nothing is lost, and what to do is said.
    house.write("dlo.toml", &keys(&db.url, "three.key", &[]));
    let broken = house.dlo(&["rotate-keys"]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    assert!(
        broken.err.contains("secrets/crm/1") && broken.err.contains("name it in old_secret_key_files"),
        "{broken:?}"
    );
    let check = house.dlo(&["check"]);
    assert_eq!(check.code, Some(2));
    assert!(
        check.err.contains("dlo.toml:7: destinations.crm.headers.X-A: the secret crm cannot be read"),
        "{check:?}"
    );
    house.write("dlo.toml", &keys(&db.url, "three.key", &["two.key", "one.key"]));
    assert!(house.done(&["rotate-keys"]).contains("122 stored secrets were put"));
    assert_eq!(house.dlo(&["check"]).code, Some(0));

    // An envelope in another's place opens nowhere.
    raw.execute(
        "UPDATE secrets SET wrapped = (SELECT wrapped FROM secrets s WHERE s.name = 'new'), \
         sealed = (SELECT sealed FROM secrets s WHERE s.name = 'new') WHERE name = 'crm'",
    )
    .await;
    let moved = house.dlo(&["check"]);
    assert!(moved.code == Some(2) && moved.err.contains("was changed since it was stored"), "{moved:?}");
}

async fn what_was_erased_needs_the_key_of_its_time(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let id = app.submit("keyed", "order-1").await;
    let old = app.engine.db().keyring().unwrap().current().clone();
    let mut tx = app.engine.db().begin().await.unwrap();
    erasure::erase(&mut tx, &[(id, "order-1".to_owned())]).await.unwrap();
    tx.commit(Commit::Tidy).await.unwrap();
    let new = SecretKey::new("a new key for this test, and long enough").unwrap();
    let told = async |older: &[&SecretKey]| {
        let older = older.iter().map(|key| (*key).clone()).collect();
        let db = app.engine.db().clone().keyed(Some(Keyring::new(new.clone(), older)));
        let mut tx = db.read().await.unwrap();
        let known = erasure::named(&mut tx, &["order-1"]).await.unwrap();
        (known.get("order-1").copied(), Keys::look(&mut tx, db.keyring().unwrap()).await.unwrap())
    };
    let (known, keys) = told(&[&old]).await;
    assert_eq!((known, keys.missing()), (Some(id), vec![]));
    let line = format!(
        "The key {} has to stay in old_secret_key_files: 1 erased operation is recognised by it, and else would be \
         done again.",
        old.id()
    );
    assert_eq!(keys.told()[1..], [line]);
    let (known, keys) = told(&[]).await;
    assert_eq!(known, None, "which is why it has to stay");
    assert!(keys.missing()[0].contains(&format!("The secret key {} is not here", old.id())), "{keys:?}");
    // As an older version left it.
    app.raw().await.execute("UPDATE erased_keys SET key_id = NULL").await;
    let (_, keys) = told(&[&old]).await;
    assert!(keys.told()[1].contains("(1): keep every key that was in use by then"), "{keys:?}");
}

async fn a_secret_comes_and_goes_by_its_name(db: TestDatabase) {
    let house = House::empty();
    house.done(&["key", "new", "one.key"]);
    house.write("dlo.toml", &keys(&db.url, "one.key", &[]));
    let early = house.dlo_with(&["secret", "set", "crm"], "too early");
    assert!(early.code == Some(1) && early.err.contains("dlo migrate"), "{early:?}");
    house.done(&["migrate"]);
    for (name, secret) in [("crm", ""), ("crm", "\n"), ("c r m", "value"), ("../crm", "value")] {
        let refused = house.dlo_with(&["secret", "set", name], secret);
        assert_eq!(refused.code, Some(1), "{name}: {refused:?}");
    }
    assert!(house.done(&["secret", "list"]).contains("No secrets yet"));
    let set = house.dlo_with(&["secret", "set", "crm"], "first\n");
    assert!(set.out.contains("is stored") && set.out.contains("starts again"), "{set:?}");
    let set = house.dlo_with(&["secret", "set", "crm"], "second\n");
    assert!(set.out.contains("has a new value"), "{set:?}");
    let set = house.dlo_with(&["secret", "set", "spare"], "third");
    assert!(set.out.contains("${secret:spare}"), "{set:?}");

    let list = house.done(&["secret", "list"]);
    let line = |name: &str| list.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("crm").contains("cli:") && line("crm").contains("1 place"), "{list}");
    assert!(line("spare").contains("not taken"), "{list}");

    let kept = house.dlo(&["secret", "remove", "crm"]);
    assert_eq!(kept.code, Some(1));
    assert!(kept.err.contains("dlo.toml:7: destinations.crm.headers.X-A: takes the secret crm"), "{kept:?}");
    house.done(&["secret", "remove", "spare"]);
    assert_eq!(house.dlo(&["secret", "remove", "spare"]).code, Some(1));
    let mut raw = Raw::open(&db.url).await.unwrap();
    assert_eq!(
        raw.texts(
            "SELECT action || ' ' || detail FROM audit JOIN audit_words ON audit_id = id ORDER BY at, id"
        )
        .await,
        ["secret_set crm, new", "secret_set crm, replaced", "secret_set spare, new", "secret_remove spare"]
    );
}
