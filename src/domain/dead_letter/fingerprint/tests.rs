use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::*;

#[test]
fn what_differs_between_operations_is_dropped() {
    let a = "422 order ORD-10443 of anna@example.com: amount 12.50 at 2026-11-29T09:00:00Z";
    let b = "422 order ORD-9 of bob.b@example.org: amount 1,300 at 2026-11-28 23:59:59.5Z";
    assert_eq!(normalise(a), "422 order <id> of <email>: amount <n> at <time>");
    assert_eq!(normalise(a), normalise(b));
    let fingerprint = |text| CauseFingerprint::of("crm", "create", Outcome::Rejected, text);
    assert_eq!(fingerprint(a), fingerprint(b));
    assert_eq!(fingerprint(a).id.len(), 16);
}

#[test]
fn each_kind_of_difference_has_its_place() {
    for (error, wanted) in [
        ("no route to [2001:db8::8a2e:370:7334]:443.", "no route to <address>."),
        ("refused by ::1: try later", "refused by <address>: try later"),
        ("refused by 10.0.0.7:8080", "refused by <address>"),
        ("std::io failed in core::fmt", "std::io failed in core::fmt"),
        (
            "see https://crm.example.com/api/v2/tickets/TCK-99?x=1.",
            "see https://crm.example.com/api/<version>/tickets/<id>?<query>.",
        ),
        ("expired on Sun, 29 Nov 2026 09:00:00 GMT", "expired on <time>"),
        ("closed until 09:30", "closed until <time>"),
        ("no customer named \"Anna Müller\"", "no customer named <value>"),
        ("no customer named 'Anna', can't go on, won't", "no customer named <value>, can't go on, won't"),
        ("the field \"email\" is required", "the field \"email\" is required"),
        ("token 9f8c7b6a5d4e3f21 of cus4f9a2c", "token <id> of <id>"),
        ("digest 4d967a30111bf29f0eba01c448b375c1629b2fed01cdfcc3aed91f1b57d5dd5e", "digest <id>"),
        ("{\"error\":\"no_such_user\",\"id\":\"U-77\"}", "{\"error\":\"no_such_user\",\"id\":<value>}"),
        ("retry in 30 s", "retry in <n> s"),
    ] {
        assert_eq!(normalise(error), wanted, "{error}");
    }
}

#[test]
fn what_makes_a_cause_is_kept() {
    assert_ne!(normalise("422 no such customer"), normalise("404 no such customer"));
    assert_ne!(normalise("\"email\" is required"), normalise("\"phone\" is required"));
    assert_eq!(normalise("503"), "503");
    assert_eq!(normalise("5031 units"), "<n> units");
    let of = |destination, step, outcome| CauseFingerprint::of(destination, step, outcome, "x").id;
    let one = of("crm", "create", Outcome::Rejected);
    assert_ne!(one, of("pay", "create", Outcome::Rejected));
    assert_ne!(one, of("crm", "update", Outcome::Rejected));
    assert_ne!(one, of("crm", "create", Outcome::Uncertain));
    // A boundary that moves is another cause.
    assert_ne!(of("ab", "c", Outcome::Rejected), of("a", "bc", Outcome::Rejected));
}

#[test]
fn long_and_foreign_text_is_cut_between_letters() {
    assert_eq!(normalise(&"é".repeat(500)).chars().count(), 200);
    assert_eq!(normalise("é"), "é");
}

proptest! {
    #[test]
    fn any_text_is_taken_and_bounded(text in any::<String>()) {
        let told = normalise(&text);
        prop_assert!(told.chars().count() <= LONGEST);
        prop_assert!(!told.contains('\n') && !told.contains("  "));
    }

    #[test]
    fn whatever_differs_the_cause_is_one(
        id in any::<u128>(),
        hex in "[0-9a-f]{16,40}",
        address in any::<u128>(),
        number in any::<u32>(),
        order in "[A-Z]{2,4}-[0-9]{1,9}",
        name in "[A-Z][a-z]{1,9} [A-Z][a-z]{1,9}",
        who in "[a-z]{1,8}(\\.[a-z]{1,8})?@[a-z]{1,8}\\.(com|example)",
        second in 0_u32..60,
    ) {
        let error = format!(
            "409 {} {hex} from {} took {number} ms for {order} of \"{name}\" <{who}> at 2026-11-29T09:00:{second:02}Z",
            uuid::Uuid::from_u128(id),
            Ipv6Addr::from(address),
        );
        let wanted = "409 <id> <id> from <address> took <n> ms for <id> of <value> <<email>> at <time>";
        prop_assert_eq!(normalise(&error), wanted);
    }
}
