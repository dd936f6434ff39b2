//! The record at the command line.

use std::fs;

use super::{House, sqlite};
use crate::support::ledger::Raw;

const SCRIPT: &str =
    "DROP TRIGGER audit_changed; DROP TRIGGER audit_dropped; DROP TRIGGER audit_chain_dropped;";

fn house(more: &str) -> House {
    let house = House::empty();
    house.write("dlo.toml", &super::config(&sqlite(&house.path("dlo.db")), "http://127.0.0.1:1", more));
    house.done(&["migrate"]);
    house
}

async fn raw(house: &House) -> Raw {
    Raw::open(&sqlite(&house.path("dlo.db"))).await.unwrap()
}

/// The head that a verification prints.
fn head(text: &str) -> String {
    let head = text.lines().find_map(|line| line.strip_prefix("Head: "));
    head.unwrap_or_else(|| panic!("no head: {text}")).to_owned()
}

#[test]
fn the_audit_is_exported() {
    let house = house("");
    house.done(&["token", "create", "=shop", "--scope", "read"]);
    let csv = house.done(&["audit", "export"]);
    let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
    let columns =
        "id,at,actor,action,operation,dead_letter,subject,reason,result,detail,origin,seq,mac,key_id";
    assert_eq!(rows[0], columns);
    assert_eq!(rows.len(), 3, "{csv}");
    assert!(rows[1].contains(",export,") && rows[1].contains(",audit,"), "the export itself: {csv}");
    assert!(rows[2].contains(",token_create,") && rows[2].contains("'=shop"), "{csv}");
    let json = house.json(&["audit", "export", "--format", "json"]);
    assert_eq!(json["entries"].as_array().map(Vec::len), Some(3));
    assert_eq!((&json["from"]["seq"], &json["to"]["seq"]), (&1.into(), &3.into()));
    assert_eq!(json["to"]["mac"], json["entries"][0]["mac"]);
    let none = house.json(&["audit", "export", "--format", "json", "--to", "2020-01-01"]);
    assert_eq!((&none["entries"], &none["count"]), (&serde_json::json!([]), &0.into()));
    assert_eq!(house.dlo(&["audit", "export", "--from", "noon"]).code, Some(2));
    assert_eq!(house.dlo(&["audit", "export", "--format", "xls"]).code, Some(2));
}

#[test]
fn an_exported_file_is_checked() {
    let house = house("");
    for name in ["one", "two", "three"] {
        house.done(&["token", "create", name, "--scope", "read"]);
    }
    let whole = house.done(&["audit", "export", "--format", "json"]);
    let check = |text: &str| {
        house.write("audit.json", text);
        house.dlo(&["audit", "verify", "--export", "audit.json"])
    };
    let fine = check(&whole);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(fine.out.contains("4 entries, No. 1 to 4: all entries."), "{fine:?}");
    assert!(fine.out.contains("none was taken out"), "{fine:?}");

    let lines: Vec<&str> = whole.lines().collect();
    let without: Vec<&str> =
        lines.iter().filter(|line| !line.replace(' ', "").contains("\"seq\":2,")).copied().collect();
    let dropped = check(&without.join("\n"));
    assert_eq!(dropped.code, Some(1), "{dropped:?}");
    assert!(
        dropped.out.contains("The seal does not fit") && dropped.out.contains("No. 2 is missing."),
        "{dropped:?}"
    );
    let altered = check(&whole.replace("token_create", "token_revoke"));
    assert_eq!(altered.code, Some(1), "{altered:?}");
    assert!(
        altered.out.contains("No. 1 (token_revoke by cli:")
            && altered.out.contains("is not what its link says"),
        "{altered:?}"
    );
    let words = check(&whole.replace("two", "six"));
    assert!(words.out.contains("another reason or detail than its link says"), "{words:?}");
    // A part is sealed as well: that one of it is gone shows although its numbers have gaps.
    let part = house.done(&["audit", "export", "--format", "json", "--from", "2020-01-01"]);
    assert_eq!(check(&part).code, Some(0));
    let lines: Vec<&str> = part.lines().filter(|line| !line.contains("\"seq\":3,")).collect();
    assert_eq!(check(&lines.join("\n")).code, Some(1));
    for nothing in ["[]", "{}", "no json"] {
        let answer = check(nothing);
        assert_eq!(answer.code, Some(1));
        assert!(answer.err.contains("no export of the audit"), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_done_to_the_audit_is_named() {
    let house = house("");
    for name in ["one", "two", "three"] {
        house.done(&["token", "create", name, "--scope", "read"]);
    }
    let fine = house.done(&["audit", "verify"]);
    assert!(fine.starts_with("The audit is whole: 3 entries, and each fits."), "{fine}");
    let kept = head(&fine);
    assert!(kept.starts_with("3:"), "{kept}");
    assert!(house.done(&["audit", "verify", "--head", &kept]).contains("whole"));
    assert_eq!(house.dlo(&["audit", "verify", "--head", "three"]).code, Some(2));
    let other = house.dlo(&["audit", "verify", "--head", &format!("3:{}", "0".repeat(64))]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.out.contains("No. 3") && other.out.contains("not the one that was told"), "{other:?}");

    let mut raw = raw(&house).await;
    raw.script(SCRIPT).await;
    raw.execute(
        "UPDATE audit SET actor = 'cli:nobody' WHERE id = (SELECT audit_id FROM audit_chain WHERE seq = 2)",
    )
    .await;
    let altered = house.dlo(&["audit", "verify"]);
    assert_eq!(altered.code, Some(1), "{altered:?}");
    let line = altered.out.lines().next().unwrap_or_default();
    assert!(line.starts_with("No. 2, 20") && line.contains("token_create by cli:nobody"), "{altered:?}");
    assert!(line.contains("it was altered"), "{altered:?}");
    assert!(altered.err.contains("in 1 place: keep this database"), "{altered:?}");
    assert_eq!(altered.err.lines().count(), 1);

    raw.execute("DELETE FROM audit WHERE id IN (SELECT audit_id FROM audit_chain WHERE seq > 1)").await;
    raw.execute("DELETE FROM audit_chain WHERE seq > 1").await;
    assert_eq!(house.dlo(&["audit", "verify"]).code, Some(0), "nothing in the database tells");
    let cut = house.dlo(&["audit", "verify", "--head", &kept]);
    assert_eq!(cut.code, Some(1), "{cut:?}");
    assert!(cut.out.contains("the chain ends at No. 1") && cut.out.contains("up to No. 3"), "{cut:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_chain_begins_anew_only_on_somebodys_word() {
    let house = house("");
    house.done(&["token", "create", "one", "--scope", "read"]);
    let adopt = ["audit", "adopt", "--reason", "restored by hand"];
    let whole = house.dlo(&adopt);
    assert!(whole.code == Some(1) && whole.err.contains("nothing to link"), "{whole:?}");
    let mut raw = raw(&house).await;
    raw.script(SCRIPT).await;
    raw.execute("DELETE FROM audit_chain").await;
    for refused in [&["token", "create", "two", "--scope", "read"][..], &["serve", "--only", "engine"]] {
        let answer = house.dlo(refused);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.err.contains("no chain") && answer.err.contains("`dlo audit adopt`"), "{answer:?}");
    }
    let gone = house.dlo(&["audit", "verify"]);
    assert!(gone.code == Some(1) && gone.out.contains("1 entries and no chain"), "{gone:?}");
    assert_eq!(house.dlo(&["audit", "adopt"]).code, Some(2));
    assert_eq!(house.dlo(&["audit", "adopt", "--reason", " "]).code, Some(2));
    assert!(house.done(&adopt).contains("begins with 1 entry"));
    house.done(&["token", "create", "two", "--scope", "read"]);
    let fine = house.done(&["audit", "verify"]);
    assert!(
        fine.contains("whole: 3 entries") && fine.contains("Of these, 1 had no chain until cli:"),
        "{fine}"
    );
    assert!(house.done(&["audit", "export"]).contains("restored by hand"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_head_is_told_to_a_file_that_a_cut_end_shows_by() {
    let house = house("[audit]\nanchor_file = \"heads\"\n");
    let nothing = house.done(&["audit", "verify"]);
    assert!(nothing.contains("heads is not there"), "{nothing}");
    let mut serving = house.run(&["serve", "--only", "engine"], "Engine:");
    super::wait_until("the start is told", || house.path("heads").exists());
    house.done(&["token", "create", "one", "--scope", "read"]);
    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0), "{}", serving.err());
    assert!(serving.err().contains("head of the audit's chain"), "{}", serving.err());
    let lines = fs::read_to_string(house.path("heads")).unwrap();
    let heads: Vec<&str> = lines.lines().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(heads, ["1", "2"], "at the start and at the stop: {lines}");
    let fine = house.done(&["audit", "verify"]);
    assert!(fine.contains("Compared with 2 heads from heads."), "{fine}");

    let mut raw = raw(&house).await;
    raw.script(SCRIPT).await;
    raw.execute("DELETE FROM audit WHERE id = (SELECT audit_id FROM audit_chain WHERE seq = 2)").await;
    raw.execute("DELETE FROM audit_chain WHERE seq = 2").await;
    let cut = house.dlo(&["audit", "verify"]);
    assert_eq!(cut.code, Some(1), "{cut:?}");
    assert!(
        cut.out.contains("the chain ends at No. 1") && cut.out.contains("its end was cut off"),
        "{cut:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_finds_by_itself_what_was_done_to_the_audit() {
    let house = house("");
    for name in ["one", "two", "three"] {
        house.done(&["token", "create", name, "--scope", "read"]);
    }
    let serve = |until: &str| {
        let mut serving = house.run(&["serve", "--only", "engine"], "Engine:");
        super::wait_until(until, || serving.err().contains(until));
        serving.signal("TERM");
        assert_eq!(serving.ended(), Some(0), "{}", serving.err());
        serving.err()
    };
    let fine = serve("the audit is whole");
    assert!(!fine.contains("ERROR"), "{fine}");
    let mut raw = raw(&house).await;
    raw.script(SCRIPT).await;
    raw.execute(
        "UPDATE audit SET actor = 'cli:nobody' WHERE id = (SELECT audit_id FROM audit_chain WHERE seq = 2)",
    )
    .await;
    let found = serve("the audit does not fit its chain");
    let verified = house.dlo(&["audit", "verify"]);
    let named = verified.out.lines().next().expect("an entry");
    assert!(named.contains("cli:nobody") && found.contains(&format!("ERROR {named}")), "{found}");
    let next = verified.err.split("the audit").nth(1).expect("what to do").trim();
    assert!(found.contains(next), "{next}: {found}");
}

#[test]
fn settings_and_keys_that_changed_are_on_record_by_name() {
    let house = house("");
    let start = |key: Option<&str>| {
        let mut command = house.command(&["serve", "--only", "engine"]);
        if let Some(key) = key {
            command.env("DLO_SECRET_KEY", key);
        }
        let mut serving = super::Process::start(command, house.path("stderr"), "Engine:");
        serving.signal("TERM");
        assert_eq!(serving.ended(), Some(0), "{}", serving.err());
    };
    start(None);
    start(None);
    let text = fs::read_to_string(house.path("dlo.toml")).unwrap();
    house.write("dlo.toml", &text.replace("concurrency = 16", "concurrency = 7"));
    start(None);
    let csv = house.done(&["audit", "export"]);
    assert_eq!(csv.matches(",config_change,").count(), 2, "{csv}");
    assert!(csv.contains(",engine.concurrency changed,"), "by name alone: {csv}");

    // With another key, and the older one named.
    let key = "another key that is only for tests, and long enough";
    house.write("old.key", super::SECRET_KEY);
    let text = fs::read_to_string(house.path("dlo.toml")).unwrap();
    house.write("dlo.toml", &text.replace("[server]\n", "[server]\nold_secret_key_files = [\"old.key\"]\n"));
    start(Some(key));
    let with = |arguments: &[&str]| {
        let mut command = house.command(arguments);
        command.env("DLO_SECRET_KEY", key);
        super::answer(command, "")
    };
    let csv = with(&["audit", "export"]).out;
    assert!(csv.contains(",key_change,"), "{csv}");
    assert!(csv.contains(",server.old_secret_key_files[0] is new,"), "{csv}");
    let fine = with(&["audit", "verify"]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    house.write("dlo.toml", &text);
    let unknown = with(&["audit", "verify"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.out.contains("No. 1") && unknown.out.contains("old_secret_key_files"), "{unknown:?}");
}

#[test]
fn nothing_that_has_to_be_on_record_is_done_without_a_key() {
    let house = house("");
    let commands: [&[&str]; 6] = [
        &["serve"],
        &["user", "list"],
        &["token", "create", "shop", "--scope", "read"],
        &["replay", "order-1", "--reason", "x"],
        &["audit", "export"],
        &["audit", "verify"],
    ];
    for arguments in commands {
        let mut command = house.command(arguments);
        command.env_remove("DLO_SECRET_KEY");
        let answer = super::answer(command, "");
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        assert!(answer.err.contains("secret_key_file") && answer.err.lines().count() == 1, "{answer:?}");
    }
}
