//! What a file takes from elsewhere, where that may stand, and what is said when it is not there.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use secrecy::{ExposeSecret as _, SecretString};

use super::{none, says};
use crate::config::{Config, ConfigError, Draft, Stored};

const TAKES: &str = r#"
[destinations.crm]
base_url = "https://crm.example.com/${secret:path}/api"
headers = { X-Api-Key = "key ${secret:crm}" }
query = { token = "${secret:crm}" }
[sources.shop]
scheme = "github"
secrets = ["${secret:hook}"]
[[sources.shop.events]]
operation = "ticket"
[operations.ticket]
[[operations.ticket.steps]]
name = "create"
destination = "crm"
method = "POST"
path = "/tickets"
"#;

fn draft() -> Draft {
    Draft::read(Path::new("dlo.toml"), TAKES, &none).unwrap()
}

fn complete(stored: &[(&str, Result<&str, &str>)]) -> Result<Config, ConfigError> {
    let stored: Stored = stored
        .iter()
        .map(|(name, value)| {
            let value: Result<SecretString, String> = match value {
                Ok(text) => Ok((*text).into()),
                Err(why) => Err((*why).to_owned()),
            };
            ((*name).to_owned(), value)
        })
        .collect();
    draft().complete(&none, &stored)
}

#[test]
fn stored_secrets_are_put_in_and_not_shown() {
    let config =
        complete(&[("path", Ok("T0/one")), ("crm", Ok("planted-crm")), ("hook", Ok("planted-hook-secret"))])
            .unwrap();
    let crm = &config.destinations["crm"];
    assert_eq!(crm.base_url.as_ref().unwrap().as_str(), "https://crm.example.com/[redacted]/api");
    let whole = crm.secret_base.as_ref().unwrap().expose_secret();
    assert_eq!(whole, "https://crm.example.com/T0/one/api");
    assert_eq!(crm.headers[0].value.expose_secret(), "key planted-crm");
    assert_eq!((crm.query[0].name.as_str(), crm.query[0].value.expose_secret()), ("token", "planted-crm"));
    assert!(crm.echoes.iter().any(|secret| secret.expose_secret() == "planted-crm"));
    let shown = format!("{config:?}");
    assert!(!shown.contains("planted") && !shown.contains("T0"), "{shown}");
}

#[test]
fn a_draft_names_what_it_takes_and_where() {
    let draft = draft();
    let named: Vec<String> = draft.named().iter().map(|(name, place)| format!("{name} {place}")).collect();
    assert_eq!(
        named,
        [
            "path dlo.toml:3: destinations.crm.base_url: takes the secret path",
            "crm dlo.toml:4: destinations.crm.headers.X-Api-Key: takes the secret crm",
            "crm dlo.toml:5: destinations.crm.query.token: takes the secret crm",
            "hook dlo.toml:8: sources.shop.secrets[0]: takes the secret hook",
        ]
    );
    // What is wrong besides is said at once.
    let text = TAKES.replace("method = \"POST\"", "method = \"SEND\"");
    let wrong = Draft::read(Path::new("dlo.toml"), &text, &none).unwrap_err();
    assert_eq!(wrong.mistakes.len(), 1, "{wrong}");
}

#[test]
fn a_secret_that_is_missing_or_does_not_fit_is_a_mistake_at_its_place() {
    let said = complete(&[("path", Ok("../up?x")), ("crm", Err("it was changed")), ("hook", Ok("planted"))])
        .unwrap_err()
        .to_string();
    for wanted in [
        "dlo.toml:3: destinations.crm.base_url: must end before any \"?\" or \"#\"",
        "dlo.toml:4: destinations.crm.headers.X-Api-Key: the secret crm cannot be read: it was changed",
        "dlo.toml:8: sources.shop.secrets[0]: has fewer than 16 characters; it could be guessed",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("planted") && !said.contains("../up"), "{said}");
    let said = complete(&[]).unwrap_err().to_string();
    assert!(
        said.contains(
            "dlo.toml:8: sources.shop.secrets[0]: no secret hook is stored; `dlo secret set hook` stores it"
        ),
        "{said}"
    );
    assert_eq!(said.lines().count(), 4, "{said}");
}

const WRONG: &str = "what stands here is stored or shown, so that it takes no secret; secrets go into the headers, \
    the query and the base_url of a destination, into the secrets of a source and into client_secret";

#[test]
fn a_secret_stands_only_where_nothing_is_stored_or_shown() {
    says(&[
        (
            "[server]\ndatabase_url = \"postgres://dlo:${secret:db}@db/dlo\"",
            &[&format!("dlo.toml:2: server.database_url: {WRONG}")],
        ),
        ("[server]\nlisten = \"${file:listen}\"", &[&format!("dlo.toml:2: server.listen: {WRONG}")]),
        (
            "[destinations.crm]\nbase_url = \"https://${file:secret}.example.com\"",
            &["dlo.toml:2: destinations.crm.base_url: there is no file secret"],
        ),
        (
            "[destinations.crm]\nbase_url = \"https://crm.example.com\"\nquery = { \"a b\" = \"c\" }",
            &[
                "dlo.toml:3: destinations.crm.query.\"a b\": the name must be that of a parameter, of letters, digits, \
               \"-\", \"_\", \".\" and \"~\"",
            ],
        ),
        (
            "[destinations.crm]\nbase_url = \"https://crm.example.com\"\nquery = { id = \"c\" }\n\
             key = { query = \"id\", window = \"1h\" }",
            &["dlo.toml:3: destinations.crm.query: id takes the key of each step; remove it here"],
        ),
    ]);
    let step = |step: &str| {
        let text = format!(
            "[destinations.crm]\nbase_url = \"https://crm.example.com\"\nquery = {{ api = \"c\" }}\n\
             [operations.ticket]\n[[operations.ticket.steps]]\nname = \"create\"\ndestination = \"crm\"\n\
             method = \"POST\"\n{step}"
        );
        Config::read(Path::new("dlo.toml"), &text, &|name| (name == "KEY").then(|| "planted".to_owned()))
            .unwrap_err()
            .to_string()
    };
    for (given, wanted) in [
        ("path = \"/t?api_key=${KEY}\"", "write credentials under the destination's query"),
        ("path = \"/t?a=1&api=2\"", "the destination sets the parameter api already"),
        (
            "path = \"/t\"\nheaders = { X-Token = \"${KEY}\" }",
            "write credentials under the destination's headers",
        ),
        ("path = \"/t\"\nheaders = { X-Shop = \"${secret:shop}\" }", WRONG),
        ("path = \"/t/${secret:shop}\"", WRONG),
        ("path = \"/t\"\nbody = { a = \"${file:shop}\" }", WRONG),
    ] {
        let said = step(given);
        assert!(said.contains(wanted) && said.lines().count() == 1, "{given}: {said}");
    }
}

#[test]
fn a_secret_may_not_be_the_host() {
    let text = "[destinations.crm]\nbase_url = \"https://${secret:host}/api\"\n";
    let said = Draft::read(Path::new("dlo.toml"), text, &none).unwrap_err();
    assert_eq!(
        said.to_string(),
        "dlo.toml:2: destinations.crm.base_url: a secret may stand in the path only; the host and the port are shown"
    );
}

#[test]
fn a_file_is_found_beside_the_configuration_and_warned_of_when_everybody_may_read_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dlo.toml");
    let text = "[destinations.crm]\nbase_url = \"https://crm.example.com\"\nheaders = { X-A = \"${file:crm.secret}\" }\n";
    std::fs::write(&path, text).unwrap();
    let secret = folder.path().join("crm.secret");
    std::fs::write(&secret, "planted\n").unwrap();
    for (mode, warned) in [(0o600, false), (0o640, false), (0o644, true)] {
        std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode)).unwrap();
        let config = Config::load(&path, &none).unwrap();
        assert_eq!(config.destinations["crm"].headers[0].value.expose_secret(), "planted");
        let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(warnings.len(), usize::from(warned), "{mode:o}: {warnings:?}");
        for warning in warnings {
            assert!(warning.contains("dlo.toml:3: destinations.crm.headers.X-A: everybody"), "{warning}");
        }
    }
}
