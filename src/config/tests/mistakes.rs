use std::path::Path;

use super::{BASE, none, read, says};
use crate::config::Config;

/// `line` under the destination `crm`, on line 3.
fn in_destination(cases: &[(&str, &str)]) {
    for (line, wanted) in cases {
        let text = format!("[destinations.crm]\nbase_url = \"https://a.example\"\n{line}\n");
        let said = read(&text).map_or_else(|error| error.to_string(), |_| "no mistake".to_owned());
        assert_eq!(said, format!("dlo.toml:3: destinations.crm.{wanted}"), "{line}");
    }
}

#[test]
fn the_base_holds_none() {
    read(BASE).unwrap();
    read("").unwrap();
}

#[test]
fn a_missing_file_names_the_command_that_writes_one() {
    let error = Config::load(Path::new("/nowhere/dlo.toml"), &none).unwrap_err();
    assert_eq!(error.to_string(), "no configuration at /nowhere/dlo.toml; `dlo init` writes one");
}

#[test]
fn all_mistakes_are_reported_in_the_order_of_lines() {
    says(&[(
        "[server]\nlisten = 8080\n[engin]\n[destinations.crm]\nbase_url = \"crm\"\ntimout = \"1s\"\n",
        &[
            "dlo.toml:2: server.listen: must be a string, not an integer",
            "dlo.toml:3: engin: unknown key; did you mean \"engine\"?",
            "dlo.toml:5: destinations.crm.base_url: must be an address such as \"https://example.com\"",
            "dlo.toml:6: destinations.crm.timout: unknown key; did you mean \"timeout\"?",
        ],
    )]);
}

#[test]
fn what_is_no_toml_is_located() {
    says(&[
        ("[server]\nlisten = \n", &["dlo.toml:2: string values must be quoted, expected literal string"]),
        ("[engine]\nlease = \"1m\"\nlease = \"2m\"\n", &["dlo.toml:3: duplicate key"]),
    ]);
}

#[test]
fn what_nests_too_deep_is_located_too() {
    let error = read(&format!("[server]\n\na{} = 1\n", ".a".repeat(200))).unwrap_err();
    assert_eq!(error.to_string(), "dlo.toml:3: recursion limit");
}

#[test]
fn tables_of_later_versions_and_sign_in() {
    says(&[(
        "[alerts]\n[auth]\nidle = \"2h\"\nlongest = \"1h\"\nsecond_factor = [\"admin\", \"boss\", 7]\n",
        &[
            "dlo.toml:1: alerts: comes with a later version; remove it for now",
            "dlo.toml:4: auth.longest: must not be shorter than idle",
            "dlo.toml:5: auth.second_factor[1]: is no role; known here are viewer, operator, approver, admin",
            "dlo.toml:5: auth.second_factor[2]: must be a string, not an integer",
        ],
    )]);
    says(&[("[auth]\nidle = \"59s\"\n", &["dlo.toml:2: auth.idle: must be at least 1m"])]);
}

#[test]
fn server_engine_and_retry() {
    says(&[
        (
            "[server]\nlisten = \"localhost\"\npublic_url = \"ftp://a\"\ndatabase_url = \"mysql://hush\"\n\
             allow_private_destinations = 1\nsecret_key_file = \"no-such-file\"\n",
            &[
                "dlo.toml:2: server.listen: must be an address and a port such as \"127.0.0.1:8080\"",
                "dlo.toml:3: server.public_url: must be an address such as \"https://example.com\"",
                "dlo.toml:4: server.database_url: must be \"sqlite:FILE\" or \"postgres://USER@HOST/NAME\"",
                "dlo.toml:5: server.allow_private_destinations: must be true or false, not an integer",
                "dlo.toml:6: server.secret_key_file: there is no file no-such-file: put it back, or make a first one with `dlo init`",
            ],
        ),
        (
            "[engine]\nconcurrency = 0\nlease = 60\nanswer_cap = \"1\"\n",
            &[
                "dlo.toml:2: engine.concurrency: must be a whole number of at least 1",
                "dlo.toml:3: engine.lease: must be a duration such as \"30s\", \"5m\", \"24h\" or \"90d\", not an integer",
                "dlo.toml:4: engine.answer_cap: must be a whole number of at least 1",
            ],
        ),
        (
            "[retry]\nattempts = 0\nmax_age = \"soon\"\nfactor = 0.5\nfactr = 1\n",
            &[
                "dlo.toml:2: retry.attempts: must be a whole number of at least 1",
                "dlo.toml:3: retry.max_age: must be a duration such as \"30s\", \"5m\", \"24h\" or \"90d\"",
                "dlo.toml:4: retry.factor: must be a number of at least 1",
                "dlo.toml:5: retry.factr: unknown key; did you mean \"factor\"?",
            ],
        ),
        ("[retry]\nfactor = inf\n", &["dlo.toml:2: retry.factor: must be a number of at least 1"]),
        ("server = 1\n", &["dlo.toml:1: server: must be a table, not an integer"]),
    ]);
}

#[test]
fn variables() {
    let env = |name: &str| match name {
        "DLO_LISTEN" => Some("here".to_owned()),
        "DLO_SECRET_KEY" => Some("short".to_owned()),
        _ => None,
    };
    let text = "[destinations.crm]\nbase_url = \"https://${HOST}\"\nheaders = { A = \"${TOKEN\" }\n";
    let error = Config::read(Path::new("dlo.toml"), text, &env).unwrap_err();
    assert_eq!(
        error.to_string().lines().collect::<Vec<_>>(),
        [
            "DLO_LISTEN: must be an address and a port such as \"127.0.0.1:8080\"",
            "DLO_SECRET_KEY: holds fewer than 32 bytes",
            "dlo.toml:2: destinations.crm.base_url: the environment has no variable HOST",
            "dlo.toml:3: destinations.crm.headers.A: write a variable as \"${NAME}\", a secret as \"${secret:NAME}\" or \"${file:PATH}\", \
             and a plain \"${\" as \"$${\"",
        ]
    );
}

#[test]
fn base_urls() {
    for (url, wanted) in [
        (
            "http://a.example",
            "must be https; plain http needs allow_private_destinations = true under [server]",
        ),
        ("mailto:a@b", "must be an address such as \"https://example.com\""),
        ("https://u:p@a.example", "must hold no user name and no password; credentials belong in headers"),
        ("https://a.example/?q=1", "must end before any \"?\" or \"#\""),
    ] {
        let text = format!("[destinations.crm]\nbase_url = \"{url}\"");
        says(&[(&text, &[&format!("dlo.toml:2: destinations.crm.base_url: {wanted}")])]);
    }
    let asked = "[destinations.crm]\nlookup = { path = \"/{{ key }}\", found = \"\" }";
    says(&[(asked, &["dlo.toml:2: destinations.crm.lookup: needs a base_url to ask at"])]);
    read("[server]\nallow_private_destinations = true\n[destinations.a]\nbase_url = \"http://127.0.0.1:9\"")
        .unwrap();
}

#[test]
fn destinations() {
    in_destination(&[
        (
            "timeout = \"60s\"",
            "timeout: 1m is not less than the lease of 1m; write less, or a longer lease under [engine]",
        ),
        ("timeout = \"0s\"", "timeout: must be longer than 0s"),
        ("connect_timeout = \"10s\"", "connect_timeout: 10s is not less than the timeout of 10s; write less"),
        ("headers = { \"a b\" = \"x\" }", "headers.\"a b\": this is no header's name"),
        (
            "headers = { Host = \"x\" }",
            "headers.Host: this header is written by the client itself; remove it",
        ),
        (
            "headers = { A = \"x\\ny\" }",
            "headers.A: this value cannot be sent in a header: it holds a control character or a letter outside ASCII",
        ),
        (
            "key = { window = \"24h\" }",
            "key.header: is missing; write the name of the header that takes the key, such as \"Idempotency-Key\", \
             or body or query instead",
        ),
        ("key = { header = \":\" }", "key.header: this is no header's name"),
        (
            "key = { header = \"K\", query = \"k\" }",
            "key.query: stands beside header; one place takes the key: write one of the two",
        ),
        ("key = { body = \"key\" }", "key.body: must be a JSON pointer such as \"/order/id\""),
        (
            "key = { body = \"\" }",
            "key.body: is the whole body; write where in it the key goes, such as \"/idempotency_key\"",
        ),
        (
            "key = { query = \"a b\" }",
            "key.query: must be the name of a parameter, of letters, digits, \"-\", \"_\", \".\" and \"~\"",
        ),
        ("key = { query = \"k\", quoted = true }", "key.quoted: is for a header only; remove it"),
        (
            "key = { header = \"K\", max_length = 35 }",
            "key.max_length: a key has 36 characters and would be refused there; remove the whole key",
        ),
        (
            "key = { header = \"K\", window = \"40s\" }",
            "key.window: 40s is not longer than the 40s that are kept back for one exchange and for clocks, so that \
             it would never be used; write what the destination promises, or \"0s\" when that is too short",
        ),
        ("limit = { per_second = 0 }", "limit.per_second: must be a number above 0"),
        ("limit = { in_flight = -1 }", "limit.in_flight: must be a whole number of at least 1"),
        ("retry = { attempts = 1.5 }", "retry.attempts: must be a whole number of at least 1"),
        (
            "lookup = { path = \"/a/{{ key }}\" }",
            "lookup.found: is missing; write a JSON pointer to what was found, such as \"/tickets/0\"",
        ),
        (
            "lookup = { path = \"/a?k={{ key }}\", found = \"a\" }",
            "lookup.found: must be a JSON pointer such as \"/order/id\"",
        ),
        (
            "lookup = { path = \"/a?b={{ steps.x }}\", found = \"\" }",
            "lookup.path: a template here knows no \"steps\"; it may name payload, key, operation and received_at",
        ),
        (
            "colour = 1",
            "colour: unknown key; known here are base_url, breaker, connect_timeout, headers, key, limit, lookup, \
          naturally_idempotent, preset, query, retry, rules, timeout",
        ),
    ]);
    says(&[(
        "[destinations.\"a b\"]\nbase_url = \"https://a.example\"",
        &["dlo.toml:1: destinations.\"a b\": a name has 1 to 64 letters, digits, \"-\" or \"_\""],
    )]);
}

#[test]
fn rules() {
    in_destination(&[
        (
            "rules = [{ status = 600, outcome = \"done\" }]",
            "rules[0].status: must be a number from 100 to 599 or a class such as \"5xx\"",
        ),
        (
            "rules = [{ status = \"6xx\", outcome = \"done\" }]",
            "rules[0].status: must be a number from 100 to 599 or a class such as \"5xx\"",
        ),
        (
            "rules = [{ status = 409 }]",
            "rules[0].outcome: is missing; write one of done, accepted, not_processed, throttled, rejected, \
             uncertain, in_flight, key_conflict",
        ),
        (
            "rules = [{ status = 409, outcome = \"inflight\" }]",
            "rules[0].outcome: unknown word; did you mean \"in_flight\"?",
        ),
        (
            "rules = [{ status = 409, outcome = \"done\", wait = \"1m\" }]",
            "rules[0].wait: belongs to an outcome after which it is sent again; remove it",
        ),
        (
            "rules = [{ outcome = \"done\" }]",
            "rules[0].status: is missing; write a status, a body or both: this rule would cover every answer",
        ),
        (
            "rules = [{ body = { equals = 1 }, outcome = \"done\" }]",
            "rules[0].body.pointer: is missing; write a JSON pointer such as \"/error/code\"",
        ),
        (
            "rules = [{ body = { pointer = \"/a\" }, outcome = \"done\" }]",
            "rules[0].body.equals: is missing; write equals or matches",
        ),
        (
            "rules = [{ body = { pointer = \"/a\", equals = 1, matches = \"b\" }, outcome = \"done\" }]",
            "rules[0].body.matches: stands beside equals; write one of the two",
        ),
        (
            "rules = [{ body = { pointer = \"/a\", matches = \"(\" }, outcome = \"done\" }]",
            "rules[0].body.matches: this is no regular expression: unclosed group",
        ),
    ]);
}

#[test]
fn no_message_shows_what_a_variable_holds() {
    let env = |_: &str| Some("hush\u{7}".to_owned());
    let text = "[server]\nlisten = \"${S}\"\npublic_url = \"${S}\"\ndatabase_url = \"${S}\"\n[destinations.crm]\n\
                base_url = \"${S}\"\npreset = \"${S}\"\ntimeout = \"${S}\"\nheaders = { A = \"${S}\" }\n\
                key = { header = \"${S}\" }\n";
    let error = Config::read(Path::new("dlo.toml"), text, &env).unwrap_err();
    assert!(error.mistakes.len() >= 8, "{error}");
    assert!(!error.to_string().contains("hush"), "{error}");
}
