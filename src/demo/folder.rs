//! The demo's folder: a configuration that people can read, a key, a database.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use crate::config::{Config, write_secret_key};
use crate::domain::ambient::Ambient;

/// The first line of a configuration that is ours to overwrite.
const OURS: &str = "# Written by `dlo demo` at every start: copy it elsewhere before you change it.";

/// What ends or encodes a path within a database's address.
const IN_ADDRESS: &AsciiSet = &CONTROLS.add(b'%').add(b'?').add(b'#').add(b' ').add(b'"').add(b'\\');

pub(super) struct Folder {
    pub(super) path: PathBuf,
}

impl Folder {
    /// The named folder, made when it is not there, or a fresh one.
    pub(super) fn prepare(named: Option<PathBuf>, ambient: &Ambient) -> anyhow::Result<Self> {
        let fresh = || {
            let name = ambient.opaque().simple().to_string();
            std::env::temp_dir().join(format!("dlo-demo-{}", &name[..12]))
        };
        let mut builder = DirBuilder::new();
        // What is in it is invented, but its password and its key do open a desk.
        builder.mode(0o700).recursive(named.is_some());
        let path = named.unwrap_or_else(fresh);
        builder.create(&path).with_context(|| format!("{} cannot be made", path.display()))?;
        let path = fs::canonicalize(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        if path.to_str().is_none() {
            bail!("the folder's name must be UTF-8: {}", path.display());
        }
        let folder = Self { path };
        folder.check_ours()?;
        match write_secret_key(&folder.path.join("dlo.key"), ambient.secret()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(error).context("the demo's key cannot be written")
            }
            _ => Ok(folder),
        }
    }

    fn file(&self) -> PathBuf {
        self.path.join("dlo.toml")
    }

    /// Somebody's own configuration is not overwritten.
    fn check_ours(&self) -> anyhow::Result<()> {
        match fs::read_to_string(self.file()) {
            Ok(text) if !text.starts_with(OURS) => {
                bail!(
                    "{} holds a dlo.toml that the demo did not write; name another folder",
                    self.path.display()
                )
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("{} cannot be read", self.file().display()))
            }
            _ => Ok(()),
        }
    }

    /// The port that an earlier start's destination had; 0 when there was none. Stored requests
    /// name it.
    pub(super) fn destination_port(&self) -> u16 {
        let earlier = Config::load(&self.file(), &|_| None).ok();
        earlier.and_then(|config| config.destinations.get("crm")?.base_url.as_ref()?.port()).unwrap_or(0)
    }

    /// Writes the configuration and reads it back, without the environment: a variable that is set
    /// for the real thing must not lead the demo there.
    pub(super) fn write(&self, listen: SocketAddr, url: &str, destination: &str) -> anyhow::Result<Config> {
        let text = text(&self.path.join("dlo.db"), listen, url, destination);
        fs::write(self.file(), &text)
            .with_context(|| format!("{} cannot be written", self.file().display()))?;
        Ok(Config::read(&self.file(), &text, &|_| None)?)
    }
}

fn text(database: &Path, listen: SocketAddr, url: &str, destination: &str) -> String {
    let database = utf8_percent_encode(database.to_str().unwrap_or_default(), IN_ADDRESS).to_string();
    let values = [
        ("@OURS@", OURS),
        ("@LISTEN@", &listen.to_string()),
        ("@URL@", url),
        ("@DATABASE@", &format!("sqlite://{database}")),
        ("@DESTINATION@", destination),
    ];
    values.iter().fold(include_str!("demo.toml").to_owned(), |text, (name, value)| text.replace(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_right() {
        let text = text(
            Path::new("/tmp/a b%?#\"/dlo.db"),
            ([127, 0, 0, 1], 8080).into(),
            "http://127.0.0.1:8080",
            "http://127.0.0.1:9",
        );
        // Its key's file is beside the real one.
        let text = text.replace("secret_key_file", "# secret_key_file");
        let config =
            Config::read(Path::new("dlo.toml"), &text, &|_| None).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(config.operations.len(), 4);
        assert_eq!(config.server.database_url, "sqlite:///tmp/a%20b%25%3F%23%22/dlo.db");
    }
}
