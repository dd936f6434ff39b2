//! Some are planted wherever a secret can be, and what the program stores, writes and answers is
//! searched for them.

use dead_letter_office::demo::destination::{Behaviour, UnreliableDestination};

use super::asked::{Asked, Tokens};
use super::plants::Plants;
use super::shop::{Shop, shop};
use crate::process::{House, Process};
use crate::support::app::install_crypto;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::ledger::Raw;

on_both!(planted_secrets_are_found_nowhere);

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
    stored(&mut shop);
    let tokens = people_and_programs(&mut shop);
    let sent = said_again(&destination, &shop.plants);

    let mut serving = Process::start(shop.command(&["serve"]), shop.house.path("stderr"), "Engine:");
    let out = serving.out();
    let address = out.split_once("(listening on ").and_then(|(_, rest)| rest.split_once(')'));
    let mut asked = Asked::at(format!("http://{}", address.expect("its address").0), tokens);
    asked.signs_in(&mut shop.plants).await;
    asked.submits(&shop).await;
    let requests = format!("{:?}", destination.requests());
    for (what, secret) in &sent {
        assert!(requests.contains(secret.as_str()), "the destination was sent the {what}: {requests}");
    }
    for key in ["letter:0", "ticket:1"] {
        shop.dlo(&["replay", key, "--reason", "once more"]);
    }
    let letters = dead_letters(&mut shop);
    asked.programs(&letters).await;
    asked.mistaken(&shop.plants).await;
    asked.pages(&letters).await;
    assert!(
        asked.answers.iter().any(|(_, text)| text.contains("[redacted]")),
        "what was said again was taken out"
    );
    // Something breaks under a page.
    let mut raw = Raw::open(&db.url).await.unwrap();
    raw.execute("ALTER TABLE views RENAME TO views_gone").await;
    assert!(asked.page("/dead-letters").await.is_server_error());
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
    for (what, text) in &asked.answers {
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

/// Stores what the file takes from the database.
fn stored(shop: &mut Shop) {
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
}

fn people_and_programs(shop: &mut Shop) -> Tokens {
    let password = shop.plants.of("a password").to_owned();
    shop.told(&["user", "add", "olga", "--role", "admin", "--password-stdin"], &format!("{password}\n"));
    let link = shop.told(&["user", "add", "vera", "--role", "viewer"], "");
    let (_, setup) = link.trim().rsplit_once("/setup/").expect("a link");
    shop.plants.add("a setup link", setup);
    let mut token = |name: &str, scope: &str| {
        shop.told(&["token", "create", name, "--scope", scope], "").trim().to_owned()
    };
    let tokens = Tokens { operates: token("shop", "operate"), submits: token("till", "submit") };
    shop.plants.add("an API token", &tokens.operates);
    shop.plants.add("a token that submits", &tokens.submits);
    tokens
}

/// Everything that the destination is sent, it says again: what that is.
fn said_again(destination: &UnreliableDestination, plants: &Plants) -> Vec<(&'static str, String)> {
    let sent: Vec<(&'static str, String)> = [
        ("header", "a variable"),
        ("file", "a file"),
        ("parameter", "a stored secret in a parameter"),
        ("path", "a stored secret in an address"),
    ]
    .map(|(what, plant)| (what, plants.of(plant).to_owned()))
    .to_vec();
    let echo = |code: u16| {
        let body: String = sent.iter().map(|(what, secret)| format!("{what}={secret}&")).collect();
        let body =
            serde_json::json!({ "id": "T-1", "error": { "message": format!("Bearer you sent {body}") } });
        let headers = sent.iter().map(|(what, secret)| (format!("x-{what}"), secret.clone())).collect();
        Behaviour::Status { code, headers, body: body.to_string() }
    };
    destination.script("/keyed", [echo(201), echo(422), echo(500), echo(401)]);
    destination.script("/plain", [Behaviour::CloseAfterRead { effect: false }, echo(422), echo(409)]);
    sent
}

/// Dead letters with their operations, as the command line lists them.
fn dead_letters(shop: &mut Shop) -> Vec<(String, String)> {
    let listed = shop.dlo(&["dead-letters", "--json"]).out;
    shop.plants.found_in("a list of dead letters", &listed);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("a list");
    let items = listed["items"].as_array().or(listed.as_array()).expect("dead letters");
    let id = |value: &serde_json::Value| value["id"].as_str().expect("an id").to_owned();
    let letters: Vec<(String, String)> =
        items.iter().map(|letter| (id(letter), id(&letter["operation"]))).collect();
    assert!(letters.len() >= 2, "{letters:?}");
    letters
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
