//! The file that `dlo init` writes.

/// A commented `dlo.toml` that starts as it is, beside a `dlo.key`. It documents every key.
pub fn init_text() -> &'static str {
    include_str!("init.toml")
}
