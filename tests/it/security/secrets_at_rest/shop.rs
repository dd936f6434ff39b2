//! A shop whose every credential comes from elsewhere, and the commands that it is run with.

use std::process::Command;

use super::plants::Plants;
use crate::process::{Answer, House, answer};

/// A shop whose every credential comes from elsewhere.
pub(super) fn shop(database: &str, destination: &str) -> String {
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
pub(super) struct Shop {
    pub(super) house: House,
    pub(super) plants: Plants,
    /// Everything that commands said, and what for.
    pub(super) said: Vec<(String, Answer)>,
}

impl Shop {
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.house.command(arguments);
        command
            .env("DLO_LOG", "trace")
            .env("DLO_SECRET_KEY", self.plants.of("a secret key").repeat(2))
            .env("PLANTED", self.plants.of("a variable"));
        command
    }

    /// What a command answers; it is searched later.
    pub(super) fn dlo(&mut self, arguments: &[&str]) -> Answer {
        let given = answer(self.command(arguments), "");
        let copy = Answer { code: given.code, out: given.out.clone(), err: given.err.clone() };
        self.said.push((arguments.join(" "), given));
        copy
    }

    /// What a command answers that tells a secret this once: only its log is searched.
    pub(super) fn told(&mut self, arguments: &[&str], stdin: &str) -> String {
        let given = answer(self.command(arguments), stdin);
        assert_eq!(given.code, Some(0), "{arguments:?}: {given:?}");
        let out = given.out.clone();
        self.said.push((arguments.join(" "), Answer { out: String::new(), ..given }));
        out
    }

    pub(super) fn search(&self) {
        for (what, answer) in &self.said {
            self.plants.found_in(&format!("what `dlo {what}` printed"), &answer.out);
            self.plants.found_in(&format!("the log of `dlo {what}`"), &answer.err);
        }
    }
}
