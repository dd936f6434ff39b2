//! News for open pages, as server-sent events. One look at the database every few seconds serves
//! every page that listens to this process, and none is taken while nobody listens; since the news
//! come from the database, it does not matter which node did what.
//!
//! Nothing here is needed: a page is complete without it, and the script only announces.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::stream;
use serde::Serialize;
use tokio::sync::{Notify, watch};
use tokio::time::Interval;
use uuid::Uuid;

use super::Web;
use super::failure::Failure;
use super::guard::Watching;
use super::page::LETTERS;
use super::tell::list;
use crate::domain::actor::Right;
use crate::domain::ambient::Ambient;
use crate::domain::time::Timestamp;
use crate::engine::Engine;
use crate::store::{Db, StoreError, live};

/// How often the database is looked at while somebody listens.
const EVERY: Duration = Duration::from_secs(2);
/// How often a silent line shows that it is alive, and every line asks whether its session still is.
const BEAT: Duration = Duration::from_secs(15);
/// Pages that may listen to one process.
const MOST_LISTENERS: usize = 200;
/// Pages of one person that may.
const MOST_OF_ONE: usize = 10;

/// What a page wants to hear of. For more add a variant here, its word to [`About::parse`], and to
/// [`store::live`](crate::store::live) the question when it last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum About {
    /// Which dead letters wait.
    Letters,
    /// One operation, and so its dead letters.
    Operation(Uuid),
    /// One bulk action, and what became of its members.
    Bulk(Uuid),
}

impl About {
    /// From `letters`, `operation:<id>` or `bulk:<id>`.
    pub fn parse(text: &str) -> Option<Self> {
        if text == LETTERS {
            return Some(Self::Letters);
        }
        let (kind, id) = text.split_once(':')?;
        let id = id.parse().ok()?;
        match kind {
            "operation" => Some(Self::Operation(id)),
            "bulk" => Some(Self::Bulk(id)),
            _ => None,
        }
    }
}

/// Open pages that wait for news. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Live(Arc<Hub>);

#[derive(Debug)]
struct Hub {
    db: Db,
    ambient: Ambient,
    room: Mutex<Room>,
    /// Somebody came in: they need not wait for the next look.
    hurry: Notify,
    news: watch::Sender<Arc<News>>,
    closed: watch::Sender<bool>,
}

/// Who listens.
#[derive(Debug, Default)]
struct Room {
    by_person: HashMap<Uuid, usize>,
    shown: HashMap<About, usize>,
    /// A task looks at the database.
    looking: bool,
}

/// What one look saw.
#[derive(Debug, Default)]
struct News {
    /// When those that wait were opened, newest first, as many as are counted.
    newest: Vec<Timestamp>,
    /// When what somebody looks at last changed.
    changed: HashMap<About, Timestamp>,
}

impl Live {
    /// For the pages of one process.
    pub fn new(engine: &Engine) -> Self {
        Self(Arc::new(Hub {
            db: engine.db().clone(),
            ambient: engine.ambient().clone(),
            room: Mutex::default(),
            hurry: Notify::new(),
            news: watch::Sender::new(Arc::default()),
            closed: watch::Sender::new(false),
        }))
    }

    /// Ends every line, and takes no more.
    pub fn close(&self) {
        self.0.closed.send_replace(true);
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.0.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place to listen from; `None` when there is none left.
    fn take_seat(&self, person: Uuid, about: About) -> Option<Seat> {
        let mut room = self.room();
        let mine = room.by_person.get(&person).copied().unwrap_or(0);
        let all: usize = room.by_person.values().sum();
        if mine >= MOST_OF_ONE || all >= MOST_LISTENERS || *self.0.closed.borrow() {
            return None;
        }
        *room.by_person.entry(person).or_default() += 1;
        *room.shown.entry(about).or_default() += 1;
        if !std::mem::replace(&mut room.looking, true) {
            tokio::spawn(self.clone().look_around());
        }
        drop(room);
        // Subscribed before the next look, so that it is not missed.
        let news = self.0.news.subscribe();
        self.0.hurry.notify_one();
        Some(Seat { live: self.clone(), person, about, news })
    }

    /// Looks at the database until nobody listens any more.
    async fn look_around(self) {
        let mut closed = self.0.closed.subscribe();
        loop {
            tokio::select! {
                () = self.0.hurry.notified() => {}
                () = tokio::time::sleep(EVERY) => {}
                () = ends(&mut closed) => return,
            }
            let shown: Vec<About> = {
                let mut room = self.room();
                if room.by_person.is_empty() {
                    room.looking = false;
                    return;
                }
                room.shown.keys().copied().collect()
            };
            match self.look(&shown).await {
                Ok(news) => {
                    self.0.news.send_replace(Arc::new(news));
                }
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "no news for open pages");
                }
            }
        }
    }

    async fn look(&self, shown: &[About]) -> Result<News, StoreError> {
        let of = |kind: fn(Uuid) -> About| -> Vec<Uuid> {
            let id = |about: &About| match *about {
                About::Operation(id) | About::Bulk(id) if *about == kind(id) => Some(id),
                _ => None,
            };
            shown.iter().filter_map(id).collect()
        };
        let mut tx = self.0.db.read().await?;
        let newest = live::newest(&mut tx, self.0.ambient.now(), list::MOST_COUNTED + 1).await?;
        let operations = live::operations(&mut tx, &of(About::Operation)).await?;
        let bulks = live::bulks(&mut tx, &of(About::Bulk)).await?;
        let named = |kind: fn(Uuid) -> About| move |(id, at)| (kind(id), at);
        let changed = operations.into_iter().map(named(About::Operation));
        Ok(News { newest, changed: changed.chain(bulks.into_iter().map(named(About::Bulk))).collect() })
    }
}

/// A listener's place; given back when it is dropped.
struct Seat {
    live: Live,
    person: Uuid,
    about: About,
    news: watch::Receiver<Arc<News>>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut room = self.live.room();
        leave(&mut room.by_person, &self.person);
        leave(&mut room.shown, &self.about);
    }
}

fn leave<T: Eq + std::hash::Hash>(seats: &mut HashMap<T, usize>, whose: &T) {
    if let Some(count) = seats.get_mut(whose) {
        *count -= 1;
        if *count == 0 {
            seats.remove(whose);
        }
    }
}

/// What a page is told. It is told again only when it differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Told {
    /// How many wait: "12", "500+".
    open: String,
    /// Opened since the page was made: "4"; absent when none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<String>,
    /// What the page shows has changed since it was made.
    changed: bool,
}

/// One page's line.
struct Line {
    web: Web,
    who: Watching,
    seat: Seat,
    since: Timestamp,
    /// When it had last changed at the first look: a change that was written down after
    /// the page was made may bear an earlier time.
    first: Option<Timestamp>,
    told: Option<Told>,
    closed: watch::Receiver<bool>,
    /// When to ask whether the session lasts.
    beat: Interval,
    over: bool,
}

async fn ends(closed: &mut watch::Receiver<bool>) {
    // Whoever could close it may be gone; then it is closed.
    let _ = closed.wait_for(|closed| *closed).await;
}

impl Line {
    /// The next thing to say; `None` ends the line.
    async fn next(&mut self) -> Option<Event> {
        if self.over {
            return None;
        }
        loop {
            tokio::select! {
                heard = self.seat.news.changed() => heard.ok()?,
                () = ends(&mut self.closed) => return None,
                _ = self.beat.tick() => {
                    if self.who.lasts(&self.web).await {
                        continue;
                    }
                    return Some(self.end());
                }
            }
            let news = Arc::clone(&self.seat.news.borrow_and_update());
            let told = self.tell(&news);
            if self.told.as_ref() == Some(&told) {
                continue;
            }
            // Whose session has ended since hears nothing more.
            if !self.who.lasts(&self.web).await {
                return Some(self.end());
            }
            let text = serde_json::to_string(&told).ok()?;
            self.told = Some(told);
            return Some(Event::default().event("news").data(text));
        }
    }

    fn end(&mut self) -> Event {
        self.over = true;
        Event::default().event("ended").data("signed out")
    }

    fn tell(&mut self, news: &News) -> Told {
        let number = |count: usize| list::number(i64::try_from(count).unwrap_or(i64::MAX));
        let fresh = news.newest.iter().filter(|opened| **opened > self.since).count();
        let changed = news.changed.get(&self.seat.about).is_some_and(|at| {
            let first = *self.first.get_or_insert(*at);
            *at > self.since || *at != first
        });
        let new = (fresh > 0 && self.seat.about == About::Letters).then(|| number(fresh));
        Told { open: number(news.newest.len()), new, changed }
    }
}

/// Where pages listen.
pub fn routes() -> Router<Web> {
    Router::new().route("/live", get(listen))
}

async fn listen(
    State(web): State<Web>,
    who: Watching,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    who.0.require(Right::View)?;
    let wanted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if !wanted.is_some_and(|wanted| wanted.contains("text/event-stream")) {
        return Err(Failure::BadAddress(
            "Pages of the desk listen here; there is nothing to look at.".into(),
        ));
    }
    let given = list::parameters(query.as_deref());
    let value = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let about = value("about").and_then(About::parse);
    let since = value("since").and_then(|text| text.parse().ok()).map(Timestamp::from_micros);
    let (Some(about), Some(since)) = (about, since) else {
        return Err(Failure::BadAddress("It does not say what to listen for, and since when.".into()));
    };
    let Some(seat) = web.live.take_seat(who.0.user.id, about) else {
        return Err(Failure::Conflict("Too many pages listen already; reload this one to see news.".into()));
    };
    let closed = web.live.0.closed.subscribe();
    let beat = tokio::time::interval(BEAT);
    let line = Line { web, who, seat, since, first: None, told: None, closed, beat, over: false };
    let events = stream::unfold(line, async |mut line| {
        let event = line.next().await?;
        Some((Ok::<_, Infallible>(event), line))
    });
    let mut answer = Sse::new(events).keep_alive(KeepAlive::new().interval(BEAT)).into_response();
    // Proxies that gather an answer before they pass it on would keep the news to themselves.
    let as_it_comes = (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    let never_kept = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer.headers_mut().extend([as_it_comes, never_kept]);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_it_shows() {
        let id = Uuid::from_u128(7);
        assert_eq!(About::parse("letters"), Some(About::Letters));
        assert_eq!(About::parse(&format!("operation:{id}")), Some(About::Operation(id)));
        assert_eq!(About::parse(&format!("bulk:{id}")), Some(About::Bulk(id)));
        for text in ["", "operation:", "operation:7", "letter", "bulk:", "bulk", &format!("cause:{id}")] {
            assert_eq!(About::parse(text), None, "{text}");
        }
    }
}
