//! `dlo demo`.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::run::Run;
use super::text::print;
use crate::demo::Demo;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where the desk listens; when that is taken, on a free port beside it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where configuration and database are kept; without this, in a fresh temporary folder
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let Demo { engine, listener, page, shop, destination } = Demo::prepare(args.listen, args.data).await?;
    let mut run = Run::new(engine)?;
    run.add_engine()?;
    run.add_web(listener);
    let stop = run.stop();
    run.add("the shop", async move { Ok(shop.open(stop).await?) });
    print(&page)?;
    let ended = run.until_stopped().await;
    drop(destination);
    ended
}
