use super::{BASE, read};
use crate::config::{ALWAYS, guarantees};
use crate::domain::contract::Class;
use crate::domain::time::Timestamp;

const ONCE: &str =
    "One operation has at most one effect here, through crashes, lost answers, races and replays";
const ASK: &str = "In this version the destination is not asked automatically: what may have happened is put before a person.";
const LOST: &str =
    "Sent once. When the answer is lost we cannot know: a person is told that it may have completed.";

#[test]
fn each_class_has_its_own_promise() {
    let now = Timestamp::parse("2026-11-29T00:00:00Z").unwrap();
    let key = "key = { header = \"Idempotency-Key\", window = \"24h\" }";
    let lookup = "lookup = { path = \"/a?k={{ key }}\", found = \"/0\", max_lag = \"2m\" }";
    let within = format!(
        "{ONCE}, within the key's window of 24h (sent first now: repeated until 2026-11-29T23:59:20.000000Z); \
         outside it we stop and ask."
    );
    for (contract, class, wanted) in [
        (key.to_owned(), Class::Keyed, within.clone()),
        (format!("{key}\n{lookup}"), Class::Keyed, format!("{within} {ASK}")),
        (
            format!("{key}\nnaturally_idempotent = true"),
            Class::Idempotent,
            format!("{ONCE}: repeating the request converges."),
        ),
        (
            lookup.to_owned(),
            Class::LookupOnly,
            format!("{ONCE}, within the lookup's stated lag of 2m; outside it we stop and ask. {ASK}"),
        ),
        (String::new(), Class::Neither, LOST.to_owned()),
        (
            key.replace("24h", "0s"),
            Class::Neither,
            format!(
                "{LOST} The key is sent in Idempotency-Key, and with a window of 0s nothing is promised for it."
            ),
        ),
    ] {
        let config = read(&BASE.replace(key, &contract)).unwrap();
        let all = guarantees(&config, now);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].class, &all[0].text), (class, &wanted), "{contract}");
        assert_eq!(all[0].to_string(), format!("ticket / create -> crm: {wanted}"));
        let said = format!("{} {}", all[0], ALWAYS.join(" ")).to_lowercase();
        assert!(!said.contains("impossible"), "{said}");
    }
}
