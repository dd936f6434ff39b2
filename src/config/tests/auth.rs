use std::path::Path;

use serde_json::json;

use super::{read, says};
use crate::config::{Config, Oidc};
use crate::domain::actor::{Right, Role};

#[test]
fn roles_of_the_file_hold_what_they_name() {
    let config = read("[auth.roles.night-shift]\nrights = [\"view\", \"replay\"]\n").unwrap();
    let night = config.auth.roles.of("night-shift");
    assert_eq!(night.rights().to_string(), "view, replay");
    assert!(!night.may(Right::Bulk));
    assert_eq!(config.auth.roles.of("admin").rights(), Role::Admin.rights());
    assert!(!read("").unwrap().auth.roles.knows("night-shift"));
}

#[test]
fn mistakes_in_roles_are_named() {
    says(&[
        (
            "[auth.roles.night]\nrights = [\"view\", \"reply\", \"fly\"]\nlike = \"operator\"\n",
            &[
                "dlo.toml:2: auth.roles.night.rights[1]: there is no right \"reply\"; did you mean \"replay\"?",
                "dlo.toml:2: auth.roles.night.rights[2]: there is no right \"fly\"; known here are view, \
                 view_payload, submit, replay, correct, resolve, bulk, override, approve, pause_destination, work, \
                 audit, export, manage_people, manage_tokens, erase",
                "dlo.toml:3: auth.roles.night.like: unknown key; known here are rights",
            ],
        ),
        (
            "[auth.roles.admin]\nrights = [\"view\"]\n",
            &[
                "dlo.toml:1: auth.roles.admin: this role is built in and cannot be changed; give yours another name",
            ],
        ),
        (
            "[auth.roles.night]\n[auth.roles.\"day shift\"]\nrights = [\"view\"]\n",
            &[
                "dlo.toml:1: auth.roles.night.rights: is missing; write rights = [\"view\", \"replay\"]",
                "dlo.toml:2: auth.roles.\"day shift\": a name has 1 to 64 letters, digits, \"-\" or \"_\"",
            ],
        ),
    ]);
}

const OIDC: &str = "[auth.oidc]\nissuer = \"https://login.example.com\"\nclient_id = \"desk\"\n";

fn oidc(more: &str) -> (Config, Oidc) {
    let config = read(&format!("{OIDC}{more}")).unwrap();
    let oidc = config.auth.oidc.clone().unwrap();
    (config, oidc)
}

#[test]
fn a_provider_takes_three_lines_and_a_role() {
    let (config, read) = oidc("default_role = \"viewer\"\n");
    assert!(config.auth.local);
    assert_eq!((read.issuer.as_str(), read.client_id.as_str()), ("https://login.example.com", "desk"));
    assert!(read.client_secret.is_none());
    assert_eq!(read.role_claim, "/groups");
    assert_eq!(read.scopes, ["profile", "email"]);
    assert!(super::read("").unwrap().auth.oidc.is_none());
}

#[test]
fn its_secret_comes_from_the_environment_and_is_never_shown() {
    let text = format!("{OIDC}client_secret = \"${{SSO}}\"\nscopes = []\ndefault_role = \"viewer\"\n");
    let env = |name: &str| (name == "SSO").then(|| "hush-hush".to_owned());
    let config = Config::read(Path::new("dlo.toml"), &text, &env).unwrap();
    let read = config.auth.oidc.clone().unwrap();
    assert_eq!(read.client_secret.as_ref().map(secrecy::ExposeSecret::expose_secret), Some("hush-hush"));
    assert!(read.scopes.is_empty());
    assert!(!format!("{config:?}").contains("hush"), "{config:?}");
}

#[test]
fn of_several_roles_the_one_with_most_rights_counts() {
    let (config, read) = oidc(
        "role_claim = \"/realm/roles\"\n[auth.oidc.roles]\nadmins = \"admin\"\nlook = \"viewer\"\n\
         a = \"night\"\nb = \"day\"\n[auth.roles.night]\nrights = [\"view\", \"replay\", \"bulk\"]\n\
         [auth.roles.day]\nrights = [\"view\", \"correct\", \"bulk\"]\n",
    );
    let of = |said: serde_json::Value| {
        read.role_of(&json!({"realm": {"roles": said}}), &config.auth.roles).map(str::to_owned)
    };
    assert_eq!(of(json!(["look", "admins", "a"])).as_deref(), Some("admin"));
    assert_eq!(of(json!(["look", "a"])).as_deref(), Some("night"));
    assert_eq!(of(json!(["a", "b"])).as_deref(), Some("day"), "as many: the first by name");
    assert_eq!(of(json!("look")).as_deref(), Some("viewer"));
    for nothing in [
        json!(["Admins", "admin"]),
        json!([]),
        json!(null),
        json!(1),
        json!([["admins"]]),
        json!({"admins": 1}),
    ] {
        assert_eq!(of(nothing.clone()), None, "{nothing}");
    }
    assert_eq!(read.role_of(&json!({"groups": ["admins"]}), &config.auth.roles), None);
}

#[test]
fn mistakes_about_the_provider_are_named() {
    let with = |issuer: &str, more: &str| {
        format!("[auth.oidc]\nissuer = \"{issuer}\"\nclient_id = \"desk\"\n{more}")
    };
    let good = "https://login.example.com";
    let cases: [(String, &str); 8] = [
        (
            "[auth]\nlocal_sign_in = false\n".to_owned(),
            "2: auth.local_sign_in: nobody could sign in: there is no [auth.oidc]",
        ),
        (
            with(good, ""),
            "1: auth.oidc.roles: is missing; write \"desk-admins\" = \"admin\" under [auth.oidc.roles], or default_role: \
             nobody could come in",
        ),
        (
            with("http://login.example.com", "default_role = \"viewer\"\n"),
            "2: auth.oidc.issuer: must be https; plain http needs allow_private_destinations = true under [server]",
        ),
        (
            with("login", "default_role = \"viewer\"\n"),
            "2: auth.oidc.issuer: must be an address such as \"https://example.com\"",
        ),
        (
            with(good, "default_role = \"view\"\n"),
            "4: auth.oidc.default_role: there is no role \"view\"; did you mean \"viewer\"?",
        ),
        (
            with(good, "[auth.oidc.roles]\nx = \"emperor\"\n"),
            "5: auth.oidc.roles.x: there is no role \"emperor\"; known here are viewer, operator, approver, admin",
        ),
        (
            with(good, "default_role = \"viewer\"\nrole_claim = \"groups\"\n"),
            "5: auth.oidc.role_claim: must be a JSON pointer such as \"/groups\"",
        ),
        (
            "[auth.oidc]\nissuer = \"https://login.example.com\"\ndefault_role = \"viewer\"\n".to_owned(),
            "1: auth.oidc.client_id: is missing; write what the provider calls this desk",
        ),
    ];
    for (text, wanted) in cases {
        says(&[(&text, &[&format!("dlo.toml:{wanted}")])]);
    }
}
