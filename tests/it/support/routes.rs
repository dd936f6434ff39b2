//! The routes of the product, read from its source: a route that is added is in no list of a test,
//! and so is noticed.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// Method and path of every `.route("path", get(one).post(other))` under `src/web`.
pub(crate) fn routes() -> BTreeSet<(&'static str, String)> {
    let mut found = BTreeSet::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/web"), &mut found).expect("the source");
    assert!(found.len() > 10, "{found:?}");
    found
}

fn read(folder: &Path, found: &mut BTreeSet<(&'static str, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            // What a test routes is no route of the product.
            let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
            for call in text.split(".route(").skip(1) {
                let (path, rest) = match call.trim_start().strip_prefix('"').and_then(|c| c.split_once('"')) {
                    Some((path, rest)) => (path.to_owned(), rest),
                    // A page of a list has its address in a constant, since its links repeat it.
                    None => {
                        let (_, after) = text.split_once("const PATH: &str = \"").expect("an address");
                        (after.split('"').next().unwrap_or_default().to_owned(), call)
                    }
                };
                let mut depth = 1;
                let end = rest.find(|letter| {
                    depth += i32::from(letter == '(') - i32::from(letter == ')');
                    depth == 0
                });
                let handlers = &rest[..end.expect("the call's end")];
                for method in ["get", "post", "put", "patch", "delete", "any"] {
                    if handlers.contains(&format!(" {method}(")) || handlers.contains(&format!(".{method}("))
                    {
                        found.insert((method, path.clone()));
                    }
                }
            }
        }
    }
    Ok(())
}
