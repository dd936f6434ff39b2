//! Tells the head of the audit's chain to places outside the database: whoever cuts the chain's end
//! off there does not reach them. Nothing waits for it. Before a new head is told, the chain must
//! still hold the last one: otherwise it was cut or written anew, and that is an alarm.

use std::error::Error as StdError;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use tokio::sync::watch;
use url::Url;

use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::domain::key::hex;
use crate::domain::time::Timestamp;
use crate::engine::guard::{self, Terms};
use crate::store::chain::{self, Head};
use crate::store::{Commit, Db, StoreError, checks};

/// How often it is told, where it moved.
const EVERY: Duration = Duration::from_mins(1);
/// How long an address may take, so that a stop is not held up.
const TIMEOUT: Duration = Duration::from_secs(3);

type Failure = Box<dyn StdError + Send + Sync>;

/// A file of heads that cannot be compared with: which, and why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(String);

/// A head that was told at some time, as a line of the file holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anchored {
    /// When; unknown where somebody wrote it down by hand.
    pub at: Option<Timestamp>,
    /// How many entries there were.
    pub seq: i64,
    /// The last one's link, in hexadecimal.
    pub mac: String,
}

impl Anchored {
    fn line(&self) -> String {
        let at = self.at.map(Timestamp::rfc3339).unwrap_or_default();
        format!("{at} {} {}\n", self.seq, self.mac)
    }

    /// In words, where it stands in a sentence about what was told.
    pub(super) fn when(&self) -> String {
        self.at.map_or_else(|| "by --head".to_owned(), |at| format!("at {}", at.rfc3339()))
    }

    /// From a line; absent when it is none.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let at = Some(Timestamp::parse(words.next()?)?);
        let seq = words.next()?.parse().ok().filter(|seq| *seq > 0)?;
        let mac = words.next()?.to_owned();
        words.next().is_none().then_some(Self { at, seq, mac })
    }
}

/// Where heads are told, and what was told there last.
pub struct Anchor {
    db: Db,
    ambient: Ambient,
    /// The last head that was told anywhere, also by an earlier process as far as the file knows it;
    /// once the chain lost it, that one.
    last: Option<Anchored>,
    file: Option<(PathBuf, i64)>,
    address: Option<(Url, i64)>,
    allow_private: bool,
}

impl Anchor {
    /// To the places that the configuration names, and the log.
    pub fn new(db: Db, config: &Config, ambient: Ambient) -> Self {
        Self {
            db,
            ambient,
            last: None,
            file: config.audit.anchor_file.clone().map(|path| (path, 0)),
            address: config.audit.anchor_url.clone().map(|url| (url, 0)),
            allow_private: config.server.allow_private_destinations,
        }
    }

    /// Tells it at once, then whenever it moved, and once more when told to stop.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        if let Err(error) = self.recall().await {
            tracing::warn!(%error, "the file of the audit's heads cannot be read");
        }
        loop {
            self.attempt().await;
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                _ = stop.wait_for(|stop| *stop) => break,
            }
        }
        self.attempt().await;
    }

    async fn attempt(&mut self) {
        if let Err(error) = self.tell().await {
            tracing::warn!(error = &error as &dyn StdError, "the audit's head was not told");
        }
    }

    /// Remembers the head that the file was told last.
    pub async fn recall(&mut self) -> io::Result<()> {
        if let Some((path, _)) = &self.file {
            let path = path.clone();
            let read =
                tokio::task::spawn_blocking(move || last_line(&path)).await.map_err(io::Error::other)?;
            self.last = read?.and_then(|line| Anchored::parse(&line));
        }
        Ok(())
    }

    /// Tells the head wherever it was not told yet. A place that cannot be told is tried again the
    /// next time.
    pub async fn tell(&mut self) -> Result<(), StoreError> {
        let mut tx = self.db.read().await?;
        let lost = match &self.last {
            Some(last)
                if chain::mac_at(&mut tx, last.seq).await?.map(|mac| hex(&mac)).as_ref()
                    != Some(&last.mac) =>
            {
                Some(last.clone())
            }
            _ => None,
        };
        let head = chain::head(&mut tx).await?;
        drop(tx);
        if let Some(lost) = &lost {
            self.alarm(lost).await?;
        }
        let Some(Head { seq, mac, key_id }) = head else { return Ok(()) };
        let head = Anchored { at: Some(self.ambient.now()), seq, mac: hex(&mac) };
        if self.last.as_ref().is_none_or(|last| last.seq != seq) {
            tracing::info!(seq, mac = head.mac, key_id, "head of the audit's chain");
        }
        // The alarm goes on until somebody has looked and started this anew.
        self.last = Some(lost.unwrap_or_else(|| head.clone()));
        if let Some((path, told)) = &mut self.file
            && *told != seq
        {
            let went = append(path.clone(), head.line()).await;
            if went.is_ok() {
                *told = seq;
            }
            self.note(checks::FILE, seq, went).await?;
        }
        if let Some((url, told)) = &mut self.address
            && *told != seq
        {
            let went = post(url, &head, self.allow_private).await;
            if went.is_ok() {
                *told = seq;
            }
            self.note(checks::ADDRESS, seq, went).await?;
        }
        Ok(())
    }

    /// Says that the chain lost a head that was told.
    async fn alarm(&self, lost: &Anchored) -> Result<(), StoreError> {
        let Anchored { seq, mac, .. } = lost;
        let words = format!(
            "No. {seq}: the chain does not hold the head that was told outside the database {}: its end was cut off \
             or written anew",
            lost.when()
        );
        tracing::error!(
            seq,
            mac,
            "{words}; run `dlo audit verify`, and find out who could write to the database"
        );
        let mut tx = self.db.begin().await?;
        checks::failed(&mut tx, checks::VERIFY, self.ambient.now(), &words).await?;
        tx.commit(Commit::Tidy).await
    }

    /// Keeps how it went, for the page that tells how things stand.
    async fn note(&self, name: &str, seq: i64, went: Result<(), Failure>) -> Result<(), StoreError> {
        let now = self.ambient.now();
        let mut tx = self.db.begin().await?;
        match went {
            Ok(()) => checks::passed(&mut tx, name, now, seq).await?,
            Err(error) => {
                tracing::warn!(
                    seq,
                    error = &*error as &dyn StdError,
                    "the audit's head was not told to the {name}"
                );
                checks::failed(&mut tx, name, now, &whole(&*error)).await?;
            }
        }
        tx.commit(Commit::Tidy).await
    }
}

/// The heads that were told to a file, in its order; absent when it is not there.
pub fn told(path: &Path) -> Result<Option<Vec<Anchored>>, Unreadable> {
    let shown = path.display();
    let unread = |error| Unreadable(format!("{shown} cannot be read: {error}"));
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unread(error)),
    };
    let mut read = Vec::new();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(unread)?;
        let number = index + 1;
        let stranger =
            || Unreadable(format!("{shown}, line {number}: no head of the audit; somebody else wrote there"));
        read.push(Anchored::parse(&line).ok_or_else(stranger)?);
    }
    Ok(Some(read))
}

/// What went wrong and why, in one line.
pub(super) fn whole(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// The last line of a file; absent while there is no file.
fn last_line(path: &Path) -> io::Result<Option<String>> {
    match File::open(path) {
        Ok(file) => BufReader::new(file).lines().last().transpose(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// It is on the disk before it counts as told.
async fn append(path: PathBuf, line: String) -> Result<(), Failure> {
    let written = tokio::task::spawn_blocking(move || {
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(line.as_bytes())?;
        file.sync_all()
    });
    Ok(written.await??)
}

async fn post(url: &Url, head: &Anchored, allow_private: bool) -> Result<(), Failure> {
    let terms = Terms { allow_private, connect_timeout: TIMEOUT, timeout: TIMEOUT, reuse: false };
    let call = guard::client(terms)?.request(Method::POST, url.clone())?;
    let body = serde_json::json!({ "at": head.at, "seq": head.seq, "mac": head.mac }).to_string();
    let answer = call.header(CONTENT_TYPE, "application/json").body(body).send().await?;
    let status = answer.status();
    if status.is_success() { Ok(()) } else { Err(format!("it answered with {status}").into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_written() {
        let head =
            Anchored { at: Some(Timestamp::from_micros(1_796_000_000_000_000)), seq: 7, mac: "ab".into() };
        assert_eq!(Anchored::parse(head.line().trim_end()), Some(head));
        for wrong in [
            "",
            "x 1 ab",
            "2026-11-29T09:00:00Z 0 ab",
            "2026-11-29T09:00:00Z 1",
            "2026-11-29T09:00:00Z 1 ab c",
        ] {
            assert_eq!(Anchored::parse(wrong), None, "{wrong}");
        }
    }
}
