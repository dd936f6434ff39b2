//! The files that `dlo init` writes.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A commented `dlo.toml` that starts as it is, beside a `dlo.key`. It documents every key.
pub fn init_text() -> &'static str {
    include_str!("init.toml")
}

/// Writes a secret key as text that only its owner may read. Never overwrites one.
pub fn write_secret_key(path: &Path, key: [u8; 32]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{}", STANDARD.encode(key))?;
    file.sync_all()
}
