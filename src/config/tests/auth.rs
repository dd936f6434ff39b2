use super::{read, says};
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
                 audit, export, manage_people, manage_tokens",
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
