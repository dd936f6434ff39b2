//! Stands in for the web side until that is here: holds the address and answers nothing.

use std::io;

use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::engine::Engine;

/// Serves until told to stop.
pub async fn serve(engine: Engine, listener: TcpListener, mut stop: watch::Receiver<bool>) -> io::Result<()> {
    // A stopper that is gone has nobody left to serve for.
    let _ = stop.wait_for(|stop| *stop).await;
    drop((engine, listener));
    Ok(())
}
