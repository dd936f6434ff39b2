//! The configuration that the nodes run with.

use std::fmt::Write as _;
use std::time::Duration;

use crate::class::Class;
use crate::destination::Destination;
use crate::odd::{Odd, REDIRECTS, WAITS};

/// How long a worker may hold an operation: short, so that a crash is noticed soon.
pub(crate) const LEASE: Duration = Duration::from_millis(1_500);

/// Added to every destination: the rig's destinations fail far more often than limits and breakers
/// put up with, and a destination that is left alone proves nothing.
const GENEROUS: &str = "limit = { retries_per_minute = 1000000 }\nbreaker = { failures = 1000000 }";

/// A source of webhooks, for deliveries that are refused and counted.
const SOURCE: &str = "\n[sources.rig]\nscheme = \"bearer\"\nsecrets = [\"0123456789abcdef0123456789abcdef\"]\nid = \"/id\"\n\
    [[sources.rig.events]]\noperation = \"k\"\n";

/// `dlo.toml`.
pub(crate) fn configuration(database: &str, destinations: &[Destination], odd: &Odd) -> String {
    let mut text = format!(
        r#"
[server]
database_url = "{database}"
allow_private_destinations = true
[engine]
concurrency = 32
lease = "{}ms"
[retry]
attempts = 4
max_age = "10m"
first_delay = "60ms"
factor = 1.5
max_delay = "600ms"
"#,
        LEASE.as_millis()
    );
    for destination in destinations {
        let letter = destination.class().letter();
        let promise = match destination.class() {
            Class::Keyed => {
                "key = { header = \"Idempotency-Key\", window = \"24h\" }\n\
                 [[destinations.k.rules]]\nstatus = 409\noutcome = \"in_flight\""
            }
            Class::Upsert => "naturally_idempotent = true",
            Class::Lookup => {
                "lookup = { path = \"/l/effects?ref={{ key }}\", found = \"/items/0\", \
                 reference = \"/items/0/id\", max_lag = \"1s\" }"
            }
            Class::Neither => "",
        };
        let method = if destination.class() == Class::Upsert { "PUT" } else { "POST" };
        type_and_destination(
            &mut text,
            letter,
            &format!("http://{}", destination.address),
            promise,
            method,
            &format!("/{letter}/effects"),
        );
    }
    text.push_str(SOURCE);
    for status in REDIRECTS {
        let (name, path) = (format!("redirect-{status}"), format!("/redirect/{status}"));
        type_and_destination(&mut text, &name, &odd.base_url, "", "POST", &path);
    }
    for how in WAITS {
        let (name, path) = (format!("wait-{how}"), format!("/wait/{how}"));
        type_and_destination(&mut text, &name, &odd.base_url, "naturally_idempotent = true", "POST", &path);
    }
    text
}

/// A destination, and an operation type of the same name with one step there.
fn type_and_destination(
    text: &mut String,
    name: &str,
    base_url: &str,
    promise: &str,
    method: &str,
    path: &str,
) {
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        r#"
[destinations.{name}]
base_url = "{base_url}"
timeout = "300ms"
connect_timeout = "200ms"
{GENEROUS}
{promise}
[operations.{name}]
[[operations.{name}.steps]]
name = "only step"
destination = "{name}"
method = "{method}"
path = "{path}"
body = {{ id = "{{{{ operation.key }}}}", ref = "{{{{ key }}}}", at = "{{{{ received_at }}}}", order = "{{{{ payload.order }}}}" }}
reference = "/id"
effect = "A line in a file"
"#
    );
}
