//! `dlo demo`: a small shop whose automations meet every failure there is, and the destination that
//! fails them, which the drill uses too.

mod colleague;
pub mod destination;
mod folder;
mod goods;
mod people;
mod shop;
mod weather;

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::engine::Engine;
use crate::store::Db;
use destination::UnreliableDestination;
use folder::Folder;
pub use shop::Shop;

/// Everything that is to run, and the page that says what to do with it.
pub struct Demo {
    /// On an embedded database of its own.
    pub engine: Engine,
    /// For the desk.
    pub listener: TcpListener,
    /// For the terminal.
    pub page: String,
    /// Submits operations.
    pub shop: Shop,
    /// Ends when this is dropped: attempts under way still want its answers.
    pub destination: Arc<UnreliableDestination>,
}

impl Demo {
    /// Writes the configuration, opens the database and gives people a password. Only `data` is
    /// touched, or a fresh folder without it.
    pub async fn prepare(listen: SocketAddr, data: Option<PathBuf>) -> anyhow::Result<Self> {
        let ambient = Ambient::system();
        let folder = Folder::prepare(data, &ambient)?;
        let destination = start_destination(folder.destination_port(), &ambient).await?;
        let (listener, elsewhere) = listen_near(listen).await?;
        let address = listener.local_addr()?;
        let config = Arc::new(folder.write(address, &public_url(address), &destination.base_url())?);
        let db =
            Db::open(&config.server.database_url).await.context("the demo's database cannot be opened")?;
        let db = db.keyed(config.keyring.clone()).with_roles(config.auth.roles.clone());
        db.migrate().await.context("the demo's database cannot be brought to this version")?;
        let password = people::let_in(&db, &ambient).await?;
        let page = page(&config, &folder.path, &password, elsewhere.then_some(listen));
        let engine = Engine::new(db, config, ambient);
        let destination = Arc::new(destination);
        let shop = Shop::new(engine.clone(), Arc::clone(&destination));
        Ok(Self { engine, listener, page, shop, destination })
    }
}

/// On the port that stored requests of an earlier start name, where that is still free.
async fn start_destination(port: u16, ambient: &Ambient) -> anyhow::Result<UnreliableDestination> {
    let [a, b, ..] = ambient.secret();
    let seed = u64::from_be_bytes([0, 0, 0, 0, 0, 0, a, b]);
    let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
    match UnreliableDestination::start(at(port), seed).await {
        Err(error) if port != 0 && error.kind() == ErrorKind::AddrInUse => {
            UnreliableDestination::start(at(0), seed).await
        }
        other => other,
    }
    .context("the demo's destination cannot listen on this machine")
}

/// At an address, or on a free port beside it when somebody else is there.
async fn listen_near(address: SocketAddr) -> anyhow::Result<(TcpListener, bool)> {
    match TcpListener::bind(address).await {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let free = TcpListener::bind(SocketAddr::new(address.ip(), 0)).await;
            free.map(|listener| (listener, true))
        }
        other => other.map(|listener| (listener, false)),
    }
    .with_context(|| format!("cannot listen on {address}"))
}

/// What a browser on this machine takes.
fn public_url(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => format!("http://127.0.0.1:{}", address.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => format!("http://[::1]:{}", address.port()),
        _ => format!("http://{address}"),
    }
}

fn page(config: &Config, folder: &Path, password: &str, taken: Option<SocketAddr>) -> String {
    let mut who = String::new();
    for (name, role, may) in people::PEOPLE {
        // Writing to a String cannot fail.
        let _ = writeln!(who, "              {name:<6} {:<9} {may}", role.as_str());
    }
    let moved = taken.map(|address| format!(" ({address} is taken)")).unwrap_or_default();
    let desk = config.server.public_url.as_str().trim_end_matches('/');
    let (folder, file) = (folder.display(), config.path.display());
    format!(
        "\n\
Dead Letter Office: the demo

  Desk        {desk}{moved}
  Sign in as
{who}  Password    {password}   (the same for all, new at every start)
  Data        {folder}

  A small shop hands its operations to a helpdesk, a payment provider, a mailer and a CRM that fail
  on purpose. Within a minute everything is there that support staff meet; then it goes on, slowly.

  Try first
    1. As oscar, open a receipt that may have gone out: it says why nobody sends it twice.
    2. Replay a ticket that was refused: the verdict comes at once, then the attempt appears.
    3. The CRM no longer accepts the shop's sign-in and is paused: resume it under Destinations.
    4. As ada, decide under Approvals whether the charge that nora asks for is sent again.
    5. In another terminal: dlo --config '{file}' dead-letters

  Ctrl-C stops. Everything is in {folder}; delete it when you are done.

"
    )
}
