//! Everything that one run on one database stands on, set up and at rest.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use tempfile::TempDir;

use crate::api::{self, Api, PASSWORD, PERSON, Tokens};
use crate::class::Class;
use crate::destination::Destination;
use crate::load::Book;
use crate::node::{self, Node};
use crate::odd::Odd;
use crate::postgres::{Postgres, free_port};
use crate::settings;

/// The parts; they end with this value.
pub(crate) struct Stage {
    pub(crate) api: Arc<Api>,
    pub(crate) book: Arc<Book>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) destinations: Arc<Vec<Destination>>,
    pub(crate) odd: Odd,
    pub(crate) postgres: Option<Postgres>,
    /// The database's name, for people.
    pub(crate) product: String,
    /// Configuration, logs, effects, and the SQLite file.
    pub(crate) folder: PathBuf,
    _temporary: TempDir,
}

impl Stage {
    /// On `sqlite` or `postgres`; both nodes answer.
    pub(crate) async fn set(name: &str, seed: u64) -> Result<Self> {
        let temporary = tempfile::tempdir()?;
        let folder = match std::env::var_os("DLO_RIG_KEEP") {
            Some(keep) => PathBuf::from(keep).join(name),
            None => temporary.path().to_owned(),
        };
        std::fs::create_dir_all(&folder)?;
        let postgres = if name == "postgres" { Some(Postgres::start()?) } else { None };
        let (database, product) = match &postgres {
            Some(server) => (server.url(), server.version()?),
            None => (format!("sqlite://{}/dlo.db", folder.display()), "SQLite".to_owned()),
        };
        let mut destinations = Vec::new();
        for (number, class) in (1..).zip(Class::ALL) {
            destinations.push(Destination::start(class, &folder, seed ^ (number << 32)).await?);
        }
        let odd = Odd::start().await?;
        std::fs::write(folder.join("dlo.toml"), settings::configuration(&database, &destinations, &odd))?;
        command(&folder, &["migrate"])?;
        person(&folder)?;
        let tokens = Tokens {
            submit: token(&folder, "submitter", "submit")?,
            operators: [token(&folder, "first", "operate")?, token(&folder, "second", "operate")?],
        };
        let mut nodes = Vec::new();
        for name in ["node-a", "node-b"] {
            let mut node = Node::new(name, &folder, free_port()?);
            node.start(None)?;
            node.ready(&api::client()?).await?;
            nodes.push(node);
        }
        let api = Arc::new(Api::new(nodes.iter().map(Node::base_url).collect(), tokens)?);
        if !api.sign_in(0).await {
            bail!("{PERSON} cannot sign in");
        }
        Ok(Self {
            api,
            book: Arc::default(),
            nodes,
            destinations: Arc::new(destinations),
            odd,
            postgres,
            product,
            folder,
            _temporary: temporary,
        })
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Result<String> {
    let out = node::run(folder, arguments, None)?;
    if !out.status.success() {
        bail!("dlo {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8(out.stdout)?)
}

/// Somebody who can sign in at the desk.
fn person(folder: &Path) -> Result<()> {
    let file = folder.join("password");
    std::fs::write(&file, PASSWORD)?;
    let mut add = node::dlo(folder);
    add.args(["user", "add", PERSON, "--role", "viewer", "--password-stdin"]);
    let out = add.stdin(std::fs::File::open(file)?).output()?;
    if !out.status.success() {
        bail!("dlo user add: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(())
}

fn token(folder: &Path, name: &str, scope: &str) -> Result<String> {
    Ok(command(folder, &["token", "create", name, "--scope", scope])?.trim().to_owned())
}
