//! Clients that submit, in a process of their own, so that what they cost is not counted.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::server::whole;
use super::{IN_FLIGHT, OPERATIONS};

/// Has a child submit [`OPERATIONS`] operations; how long it took from first to last.
pub(crate) async fn submit(address: &str, token: &str, run: &str, batched: bool) -> Result<Duration> {
    let child = Command::new(std::env::current_exe()?)
        .args(["client", address, token, run, if batched { "batch" } else { "single" }])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.wait_with_output().await?;
    let text = String::from_utf8(output.stdout)?;
    Ok(Duration::from_secs_f64(text.trim().parse().context("the client's time")?))
}

/// The child's side: address, token, a word that makes the keys unique, single or batch.
pub(crate) async fn run(arguments: &[String]) -> Result<()> {
    let [address, token, run, mode] = arguments else { bail!("client ADDRESS TOKEN RUN MODE") };
    let batched = mode == "batch";
    let began = Instant::now();
    let clients = if batched { 4 } else { IN_FLIGHT };
    let tasks: Vec<_> = (0..clients)
        .map(|client| {
            let (address, token, run) = (address.clone(), token.clone(), run.clone());
            tokio::spawn(async move {
                let keys: Vec<String> =
                    (client..OPERATIONS).step_by(clients).map(|n| format!("{run}-{n}")).collect();
                if batched {
                    batches(&address, &token, &keys).await
                } else {
                    singles(&address, &token, &keys).await
                }
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    println!("{}", began.elapsed().as_secs_f64());
    Ok(())
}

async fn singles(address: &str, token: &str, keys: &[String]) -> Result<()> {
    let mut connection = Connection::open(address, token).await?;
    for key in keys {
        connection.post("/api/v1/operations", "application/json", &submission(key)).await?;
    }
    Ok(())
}

async fn batches(address: &str, token: &str, keys: &[String]) -> Result<()> {
    let mut connection = Connection::open(address, token).await?;
    for keys in keys.chunks(250) {
        let lines: String = keys.iter().map(|key| submission(key) + "\n").collect();
        connection.post("/api/v1/operations/batch", "application/x-ndjson", &lines).await?;
    }
    Ok(())
}

/// One KB, as the work is defined.
pub(crate) fn submission(key: &str) -> String {
    format!(r#"{{"type":"bench","key":"{key}","payload":{}}}"#, payload(key))
}

/// One KB of JSON.
pub(crate) fn payload(key: &str) -> String {
    format!(r#"{{"order_id":"{key}","text":"{}"}}"#, "x".repeat(1_000 - key.len()))
}

struct Connection {
    stream: TcpStream,
    head: String,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!("host: {address}\r\nauthorization: Bearer {token}\r\n");
        Ok(Self { stream, head, buffer: Vec::with_capacity(16 * 1024) })
    }

    async fn post(&mut self, path: &str, kind: &str, body: &str) -> Result<()> {
        let request = format!(
            "POST {path} HTTP/1.1\r\n{}content-type: {kind}\r\ncontent-length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await?;
        loop {
            if let Some(length) = whole(&self.buffer) {
                let text = String::from_utf8_lossy(&self.buffer[..length]).into_owned();
                self.buffer.drain(..length);
                if !text.starts_with("HTTP/1.1 20") {
                    bail!("answered {text}");
                }
                return Ok(());
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the server closed the connection");
            }
        }
    }
}
