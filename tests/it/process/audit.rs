//! The record at the command line.

use super::{House, sqlite};

#[test]
fn the_audit_is_exported() {
    let house = House::empty();
    house.write("dlo.toml", &super::config(&sqlite(&house.path("dlo.db")), "http://127.0.0.1:1", ""));
    house.done(&["migrate"]);
    house.done(&["token", "create", "=shop", "--scope", "read"]);
    let csv = house.done(&["audit", "export"]);
    let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(rows[0], "id,at,actor,action,operation,dead_letter,subject,reason,result,detail,origin");
    assert_eq!(rows.len(), 3, "{csv}");
    assert!(rows[1].contains(",export,") && rows[1].contains(",audit,"), "the export itself: {csv}");
    assert!(rows[2].contains(",token_create,") && rows[2].contains("'=shop"), "{csv}");
    let json = house.json(&["audit", "export", "--format", "json"]);
    assert_eq!(json.as_array().map(Vec::len), Some(3));
    assert_eq!(
        house.json(&["audit", "export", "--format", "json", "--to", "2020-01-01"]),
        serde_json::json!([])
    );
    assert_eq!(house.dlo(&["audit", "export", "--from", "noon"]).code, Some(2));
    assert_eq!(house.dlo(&["audit", "export", "--format", "xls"]).code, Some(2));
}
