use super::{BASE, read, says};

/// `line` under the type `ticket`, on line 2.
fn in_operation(cases: &[(&str, &str)]) {
    for (line, wanted) in cases {
        let text = BASE.replace("key = \"ticket:{{ payload.order_id }}\"", line);
        let said = read(&text).map_or_else(|error| error.to_string(), |_| "no mistake".to_owned());
        assert_eq!(said, format!("dlo.toml:7: operations.ticket.{wanted}"), "{line}");
    }
}

/// `line` in the type's second step, on line 19.
fn in_step(cases: &[(&str, &str)]) {
    for (line, wanted) in cases {
        let second =
            "[[operations.ticket.steps]]\nname = \"second\"\ndestination = \"crm\"\nmethod = \"POST\"\n";
        let path = if line.starts_with("path") { "" } else { "\npath = \"/second\"" };
        let text = format!("{BASE}save = {{ ticket_id = \"/id\" }}\n{second}{line}{path}\n");
        let said = read(&text).map_or_else(|error| error.to_string(), |_| "no mistake".to_owned());
        assert_eq!(said, format!("dlo.toml:19: operations.ticket.steps[1].{wanted}"), "{line}");
    }
}

#[test]
fn operations() {
    in_operation(&[
        (
            "key = \"{{ payload.a\"",
            "key: this template cannot be read: unexpected end of input, expected end of variable block",
        ),
        ("key = \"{{ payload.a|uper }}\"", "key: this template cannot be read: filter uper is unknown"),
        ("key = \"{{ operation.id }}\"", "key: a template here knows no \"operation\"; it may name payload"),
        (
            "key = \"ticket\"",
            "key: names nothing of the payload, so that every operation would have this one key",
        ),
        ("severity = \"hihg\"", "severity: unknown word; did you mean \"high\"?"),
        (
            "runbook = \"javascript:alert(1)\"",
            "runbook: must be an address such as \"https://wiki.example.com/tickets\"",
        ),
        ("search = { a = \"b\" }", "search.a: must be a JSON pointer such as \"/order/id\""),
        (
            "search = { \"a b\" = \"/b\" }",
            "search.\"a b\": a name has 1 to 64 letters, digits, \"-\" or \"_\"",
        ),
        ("mask = [\"/a\", \"/~2\"]", "mask[1]: must be a JSON pointer such as \"/order/id\""),
        ("mask = \"/a\"", "mask: must be an array, not a string"),
        ("retain = \"0s\"", "retain: must be longer than 0s"),
        ("override_approval = \"yes\"", "override_approval: must be true or false, not a string"),
        (
            "retry = { max_age = \"2d\" }",
            "retry.max_age: 2d is longer than \"crm\" can be trusted to recognise a repeat: its window of 24h less \
             40s for one exchange and for clocks; write at most \"86360s\", or give it a lookup",
        ),
    ]);
    says(&[(
        "[operations.a]",
        &["dlo.toml:1: operations.a.steps: is missing; write at least one [[operations.a.steps]]"],
    )]);
}

#[test]
fn a_longer_age_is_allowed_where_a_repeat_does_no_harm_or_nothing_was_promised() {
    let long = BASE.replace("[operations.ticket]", "[operations.ticket]\nretry = { max_age = \"2d\" }");
    assert!(read(&long).is_err());
    for refinement in [
        "naturally_idempotent = true\nbase_url",
        "lookup = { path = \"/a?k={{ key }}\", found = \"/0\" }\nbase_url",
    ] {
        read(&long.replacen("base_url", refinement, 1)).unwrap();
    }
    read(&long.replace("24h", "0s")).unwrap();
}

#[test]
fn keys_are_kept_as_long_as_they_count() {
    let with = |retention: &str, type_line: &str| {
        format!("[engine]\nkey_retention = \"{retention}\"\n{BASE}")
            .replace("[operations.ticket]", &format!("[operations.ticket]\n{type_line}"))
    };
    let said = |retention: &str, what: &str, span: &str| {
        format!(
            "dlo.toml:2: engine.key_retention: {retention} is shorter than {what}, which is {span}: the key would be \
             forgotten while it still counts; write at least \"{span}\", or leave it out to keep keys for ever"
        )
    };
    for (retention, type_line, what, span) in [
        ("23h", "", "destinations.crm.key.window", "24h"),
        ("2d", "retain = \"90d\"", "operations.ticket.retain", "90d"),
        ("0s", "", "destinations.crm.key.window", "24h"),
    ] {
        let error = read(&with(retention, type_line)).unwrap_err();
        assert_eq!(error.to_string(), said(retention, what, span));
    }
    let idempotent = with("1h", "retry = { max_age = \"2h\" }").replace("24h", "0s");
    let error = read(&idempotent).unwrap_err();
    assert_eq!(error.to_string(), said("1h", "operations.ticket.retry.max_age", "2h"));
    let config = read(&with("90d", "retain = \"90d\"")).unwrap();
    assert_eq!(config.engine.key_retention, Some(std::time::Duration::from_hours(90 * 24)));
}

#[test]
fn steps() {
    in_step(&[
        ("path = \"tickets\"", "path: must begin with \"/\""),
        ("path = \"/a/../b\"", "path: must have no part that is \".\" or \"..\""),
        ("path = \"/a#b\"", "path: must hold no \"\\\", no \"#\" and no control character"),
        (
            "body = { a = \"{{ order.id }}\" }",
            "body.a: a template here knows no \"order\"; it may name payload, key, operation, received_at and steps",
        ),
        (
            "body = \"{{ range(3) }}\"",
            "body: a template here knows no \"range\"; it may name payload, key, operation, received_at and steps",
        ),
        (
            "body = [\"{{ operation.kind }}\"]",
            "body[0]: an operation has no \"kind\"; known here are id, key, type, correlation_id, source",
        ),
        (
            "body = { a = \"{{ steps.creat.ticket_id }}\" }",
            "body.a: no earlier step is called \"creat\"; did you mean \"create\"?",
        ),
        (
            "body = { a = \"{{ steps.second.id }}\" }",
            "body.a: no earlier step is called \"second\"; known here are create",
        ),
        (
            "body = { a = \"no {{ steps['creat'].ticket_id }}\" }",
            "body.a: no earlier step is called \"creat\"; did you mean \"create\"?",
        ),
        (
            "body = { a = \"{{ steps.create.ticket }}\" }",
            "body.a: the step \"create\" saves no \"ticket\"; did you mean \"ticket_id\"?",
        ),
        ("body = { a = nan }", "body.a: JSON has no such number"),
        (
            "headers = { Authorization = \"x\" }",
            "headers.Authorization: a step's headers are stored; write credentials under the destination's headers",
        ),
        (
            "headers = { idempotency-key = \"x\" }",
            "headers.idempotency-key: this header takes the step's key; remove it",
        ),
        ("save = { a = \"id\" }", "save.a: must be a JSON pointer such as \"/order/id\""),
        ("reference = \"id\"", "reference: must be a JSON pointer such as \"/order/id\""),
    ]);
}

#[test]
fn steps_as_a_whole() {
    let cases: [(&str, &str, &[&str]); 4] = [
        (
            "\"crm\"",
            "\"crn\"",
            &[
                "dlo.toml:11: operations.ticket.steps[0].destination: no destination is called \"crn\"; did you mean \"crm\"?",
            ],
        ),
        (
            "\"POST\"",
            "\"FETCH\"",
            &[
                "dlo.toml:12: operations.ticket.steps[0].method: must be one of POST, PUT, PATCH, DELETE, GET, HEAD",
            ],
        ),
        (
            "\"POST\"",
            "\"get\"\nbody = {}",
            &["dlo.toml:13: operations.ticket.steps[0].body: a GET or HEAD has no body; remove it"],
        ),
        (
            "name = \"create\"",
            "",
            &[
                "dlo.toml:9: operations.ticket.steps[0].name: is missing; write what this step does, such as \"create ticket\"",
            ],
        ),
    ];
    for (from, to, wanted) in cases {
        says(&[(&BASE.replace(from, to), wanted)]);
    }
    let twice = format!(
        "{BASE}\n[[operations.ticket.steps]]\nname = \"create\"\ndestination = \"crm\"\nmethod = \"PUT\"\npath = \"/\"\n"
    );
    says(&[(
        &twice,
        &[
            "dlo.toml:16: operations.ticket.steps[1].name: another step of this type is called \"create\" already",
        ],
    )]);
}
