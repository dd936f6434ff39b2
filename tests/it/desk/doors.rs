//! The way in. What it keeps out is proved in `security`.

use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(a_sign_in_leads_where_one_was_going_and_nowhere_else);

async fn a_sign_in_leads_where_one_was_going_and_nowhere_else(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let to = desk.nobody().get("/account?x=1&y=%2F").await;
    assert_eq!(to.location(), "/login?next=%2Faccount%3Fx%3D1%26y%3D%252F");
    let form = desk.nobody().get(to.location()).await.expect(200);
    assert_eq!(form.field("next"), "/account?x=1&y=%2F");
    for (next, leads) in [
        ("/account?x=1", "/account?x=1"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ] {
        let fields = [("name", "olga"), ("password", PASSWORD), ("next", next)];
        let reply = desk.nobody().post_bare("/login", &fields).await;
        assert_eq!(reply.location(), leads, "{next}");
    }
    for hostile in ["//evil.example", "/%5Cevil.example", "https:%2F%2Fevil.example"] {
        let form = desk.nobody().get(&format!("/login?next={hostile}")).await.expect(200);
        assert!(!form.text.contains("evil"), "{hostile}");
    }
}
