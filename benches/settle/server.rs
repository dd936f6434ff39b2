//! The destination: a process of its own that answers every request at once.

use std::process::Stdio;

use anyhow::{Context, Result};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// A running destination; ends with this value.
pub(crate) struct Destination {
    pub(crate) url: String,
    _child: Child,
}

impl Destination {
    pub(crate) async fn start() -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("destination")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("the destination's output")?).lines();
        let url = lines.next_line().await?.context("the destination's address")?;
        Ok(Self { url, _child: child })
    }
}

/// The child's side.
pub(crate) async fn run() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            // A client that leaves is no news.
            let _ = answer_all(stream).await;
        });
    }
}

const ANSWER: &[u8] = b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 18\r\n\r\n{\"id\":\"TCK-10442\"}";

/// Reads requests with a Content-Length and answers each.
async fn answer_all(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8 * 1024);
    loop {
        while let Some(length) = whole(&buffer) {
            buffer.drain(..length);
            stream.write_all(ANSWER).await?;
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}

/// The length of the request at the buffer's beginning, once all of it is there.
pub(crate) fn whole(buffer: &[u8]) -> Option<usize> {
    let head = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).ok()?;
    let body = text
        .lines()
        .find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        })
        .unwrap_or(0);
    (buffer.len() >= head + body).then_some(head + body)
}
