use std::time::Duration;

use super::{read, says};

#[test]
fn the_chain_is_verified_each_day_unless_the_file_says_otherwise() {
    let every = |text: &str| read(text).unwrap().audit.verify_every;
    let day = Some(Duration::from_hours(24));
    assert_eq!((every(""), every("[audit]\n")), (day, day));
    assert_eq!(every("[audit]\nverify_every = \"7d\"\n"), Some(Duration::from_hours(7 * 24)));
    assert_eq!(every("[audit]\nverify_every = \"0s\"\n"), None);
    let cases: [(&str, &[&str]); 2] = [
        (
            "[audit]\nverify_every = \"59s\"\n",
            &["dlo.toml:2: audit.verify_every: must be at least 1m, or \"0s\" for never"],
        ),
        (
            "[audit]\nverify_every = \"never\"\n",
            &[
                "dlo.toml:2: audit.verify_every: must be a duration such as \"30s\", \"5m\", \"24h\" or \"90d\"",
            ],
        ),
    ];
    says(&cases);
}
