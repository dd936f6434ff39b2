use super::{BASE, read};
use crate::config::{ALWAYS, guarantees, remarks};
use crate::domain::contract::Class;
use crate::domain::time::Timestamp;

const ONCE: &str =
    "One operation has at most one effect here, through crashes, lost answers, races and replays";
const LOST: &str =
    "Sent once. When the answer is lost we cannot know: a person is told that it may have completed.";

#[test]
fn each_class_has_its_own_promise() {
    let now = Timestamp::parse("2026-11-29T00:00:00Z").unwrap();
    let key = "key = { header = \"Idempotency-Key\", window = \"24h\" }";
    let lookup = "lookup = { path = \"/a?k={{ key }}\", found = \"/0\", max_lag = \"2m\" }";
    let within = format!(
        "{ONCE}, within the key's window of 24h (sent first now: repeated until 29 Nov 2026, 23:59:20 UTC);"
    );
    let lag = "within the lookup's stated lag of 2m; outside";
    let unpromised =
        "The key is sent in the header Idempotency-Key, and with a window of 0s nothing is promised for it.";
    for (contract, class, wanted) in [
        (key.to_owned(), Class::Keyed, format!("{within} outside it we stop and ask.")),
        (
            format!("{key}\n{lookup}"),
            Class::Keyed,
            format!("{within} after it the destination is looked up first, {lag} both we stop and ask."),
        ),
        (
            format!("{key}\nnaturally_idempotent = true"),
            Class::Idempotent,
            format!("{ONCE}: repeating the request converges."),
        ),
        (lookup.to_owned(), Class::LookupOnly, format!("{ONCE}, {lag} it we stop and ask.")),
        (
            format!("{}\n{lookup}", key.replace("24h", "0s")),
            Class::LookupOnly,
            format!("{ONCE}, {lag} it we stop and ask. {unpromised}"),
        ),
        (String::new(), Class::Neither, LOST.to_owned()),
        (key.replace("24h", "0s"), Class::Neither, format!("{LOST} {unpromised}")),
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

#[test]
fn what_a_preset_and_a_limit_mean_is_said() {
    let of = |lines: &str| {
        let text = format!("[destinations.a]\nbase_url = \"https://a.example\"\n{lines}\n");
        remarks(&read(&text).unwrap().destinations["a"])
    };
    assert_eq!(of(""), [""; 0]);
    let limited = |most: &str| {
        format!("It is given at most {most}. What is more waits its turn and uses up no attempt.")
    };
    assert_eq!(of("limit = { per_second = 2.5 }"), [limited("2.5 requests a second")]);
    assert_eq!(
        of("limit = { per_second = 1, in_flight = 8 }"),
        [limited("1 request a second and 8 requests at a time")]
    );

    let said = |lines: &str, part: &str| of(lines).iter().any(|remark| remark.contains(part));
    let unverified = "The key's window is not verified: it counts as 0. An older page";
    assert!(said("preset = \"adyen\"", unverified));
    assert!(said("preset = \"adyen\"", "Adyen, as documented on 2026-11-29: Adyen documentation"));
    assert!(said("preset = \"adyen\"", "not shared between regions"));
    let own = "your file's own word";
    assert!(!said("preset = \"adyen\"", own) && !said("preset = \"stripe\"", own));
    let stated = "preset = \"adyen\"\nkey = { window = \"31d\" }";
    assert!(said(stated, own) && !said(stated, unverified));

    let example = "For example: lookup = { path = \"/ach_transfers?idempotency_key={{ key }}\"";
    assert!(said("preset = \"increase\"", example));
    let described = "preset = \"increase\"\nlookup = { path = \"/a/{{ key }}\", found = \"\" }";
    assert!(!said(described, "For example") && !said(described, "It may be asked"));
}
