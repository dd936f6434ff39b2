//! Pages stay small: a full list on a slow line is there at once.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::web::assets;
use serde_json::json;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(a_full_list_stays_small);

/// Of HTML, in bytes, before compression.
const MOST_HTML: usize = 60 * 1024;

/// Of all script together, in bytes, before compression.
const MOST_SCRIPT: usize = 15 * 1024;

async fn a_full_list_stays_small(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let message = "The customer's contract ended on 30 September; no ticket of the category \u{201c}delivery \
        complaint, second delivery attempt\u{201d} can be created for it before the account team has renewed it";
    for number in 0..60 {
        let refused = Behaviour::error(422, "contract_ended", &format!("{message} (case {number})"));
        desk.app.destination.script("/keyed", [refused]);
        let payload = json!({
            "order_id": format!("2026-11-EU-WEST-{number:06}"),
            "customer_id": format!("KD-{number:08}-Hamburg-Altona"),
            "email": "anna.katharina.b\u{f6}ttcher@customers.example.com",
        });
        let key = format!("ticket:2026-11-EU-WEST-{number:06}:delivery-complaint:second-attempt");
        desk.app.try_submit("keyed", &key, &payload.to_string()).await.unwrap();
        desk.app.run_until_idle().await;
    }
    let mut boss = desk.signed_in(Role::Admin).await;
    for list in ["/dead-letters", "/operations", "/audit", "/", "/dead-letters?status=any&search=KD-00000007"]
    {
        let page = boss.get(list).await.expect(200);
        assert!(page.text.len() <= MOST_HTML, "{list} has {} bytes", page.text.len());
        let full = ["/dead-letters", "/operations"].contains(&list);
        assert!(!full || page.all("table.list tbody tr").len() == 50, "{list}");
    }
}

#[test]
fn script_stays_small() {
    let script = assets::all().iter().filter(|asset| asset.content_type.starts_with("text/javascript"));
    let bytes: usize = script.map(|asset| asset.bytes.len()).sum();
    assert!(bytes > 0 && bytes <= MOST_SCRIPT, "{bytes} bytes");
}
