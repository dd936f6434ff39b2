//! Who may ask: the signed-in person behind a page. What they send stands in `forms`.

mod forms;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, OptionalFromRequestParts};
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tower_sessions::Session;
use uuid::Uuid;

use super::Web;
use super::failure::Failure;
use super::inbound::origin;
use super::page::{Flash, FlashKind, Layout, Section, SignedIn};
use super::second;
use super::sessions::{self, ENTRY, Entry, SEEN_AT, Sessions, USER};
use super::view::Seen;
use crate::accounts::{By, sign_out};
use crate::domain::actor::{Actor, Right, Standing};
use crate::domain::sign_in::SignInBy;
use crate::domain::time::Timestamp;
use crate::domain::zone::Zone;
use crate::store::accounts::{self, UserRow};
pub use forms::{Fields, OpenForm, Posted};

/// What needs a fresh sign-in takes one that is no older than this.
pub const FRESH: Duration = Duration::from_mins(5);
/// How often the last use is written down; more often where sessions are short.
const SEEN_EVERY: Duration = Duration::from_mins(1);

const CSRF: &str = "csrf";
const SIGNED_IN_AT: &str = "signed_in_at";
const FLASH: &str = "flash";

/// A signed-in person, as they stand in the database at this moment.
#[derive(Clone, Debug)]
pub struct Signed {
    /// The person.
    pub user: UserRow,
    /// What they may do.
    pub role: Standing,
    /// Their session's form token.
    pub csrf: String,
    /// When they last showed that it is they: when they signed in, or since.
    pub since: Timestamp,
    /// How they came in, and when.
    pub entry: Entry,
    /// From where they ask now.
    pub origin: String,
    /// When they asked.
    pub now: Timestamp,
    pub(super) session: Session,
}

impl Signed {
    /// As an actor.
    pub fn actor(&self) -> Actor {
        Actor::Person { name: self.user.name.clone(), role: self.role.clone() }
    }

    /// The zone in which they read moments; a name that the list no longer has means UTC.
    pub fn zone(&self) -> Zone {
        self.user.zone.as_deref().and_then(Zone::named).unwrap_or(Zone::UTC)
    }

    /// From when and where they look.
    pub fn seen(&self, now: Timestamp) -> Seen {
        Seen { now, zone: self.zone() }
    }

    /// For what accounts are changed by.
    pub fn by<'a>(&'a self, actor: &'a Actor) -> By<'a> {
        By { actor, origin: &self.origin }
    }

    /// A refusal unless they hold a right.
    pub fn require(&self, right: Right) -> Result<(), Failure> {
        let actor = self.actor();
        if actor.may(right) { Ok(()) } else { Err(Failure::forbidden(&actor, right)) }
    }

    /// What a page of theirs has around it; shows and forgets the last click's message.
    pub async fn layout(&self, title: impl Into<String>, section: Section) -> Layout {
        let who = SignedIn { name: self.user.name.clone(), role: self.role.clone() };
        // Only what is there is removed: a page that is looked at writes nothing.
        let flash: Option<(bool, String)> = self.session.get(FLASH).await.ok().flatten();
        if flash.is_some() {
            let _: Option<Option<(bool, String)>> = self.session.remove(FLASH).await.ok();
        }
        Layout {
            flash: flash.map(|(good, text)| Flash {
                kind: if good { FlashKind::Good } else { FlashKind::Bad },
                text,
            }),
            zone: self.zone().name().to_owned(),
            at: self.now,
            ..Layout::desk(title, section, who, self.csrf.clone())
        }
    }

    /// Says something on the next page.
    pub async fn flash(&self, good: bool, text: impl Into<String>) -> Result<(), Failure> {
        say(&self.session, good, text).await
    }

    /// Whether they showed a moment ago that it is they who sit there.
    pub fn fresh(&self, now: Timestamp) -> bool {
        now.since(self.since) < FRESH
    }

    /// They showed again that it is they: the session goes on under a new token.
    pub async fn renew(&mut self, web: &Web) -> Result<(), Failure> {
        let session = self.session.clone();
        (self.csrf, self.since) = enter(web, &session, &self.user, &self.entry, None).await?;
        Ok(())
    }

    /// Their session's token as a hash, under which it is stored.
    pub fn session_hash(&self) -> Option<[u8; 32]> {
        self.session.id().as_ref().map(sessions::hash)
    }

    /// Ends the session, on record.
    pub async fn sign_out(&self, web: &Web) -> Result<(), Failure> {
        let actor = self.actor();
        let (db, ambient) = (web.engine.db(), web.engine.ambient());
        sign_out(db, ambient, &self.user, self.entry.id, &self.by(&actor)).await?;
        self.leave().await
    }

    /// Forgets a session that has ended already.
    pub async fn leave(&self) -> Result<(), Failure> {
        Ok(self.session.flush().await?)
    }
}

/// Says something on a session's next page, behind what is to be said there already.
pub async fn say(session: &Session, good: bool, text: impl Into<String>) -> Result<(), Failure> {
    let (good, text) = match session.get::<(bool, String)>(FLASH).await? {
        Some((before, first)) => (good && before, format!("{first} {}", text.into())),
        None => (good, text.into()),
    };
    Ok(session.insert(FLASH, (good, text)).await?)
}

/// With what and from where somebody comes in.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// With what.
    pub by: SignInBy,
    /// Their address.
    pub from: &'a str,
    /// Their browser, in words.
    pub agent: &'a str,
    /// When they last showed elsewhere that it is they; absent when they did so here and now.
    pub shown: Option<Timestamp>,
}

/// Makes a session a person's, under a new token; its form token, and when.
pub async fn sign_in(
    web: &Web,
    session: &Session,
    user: &UserRow,
    came: Came<'_>,
) -> Result<(String, Timestamp), Failure> {
    let ambient = web.engine.ambient();
    let entry = Entry {
        id: ambient.opaque(),
        began_at: ambient.now().as_micros(),
        address: came.from.to_owned(),
        agent: came.agent.to_owned(),
        by: came.by,
    };
    enter(web, session, user, &entry, came.shown).await
}

async fn enter(
    web: &Web,
    session: &Session,
    user: &UserRow,
    entry: &Entry,
    shown: Option<Timestamp>,
) -> Result<(String, Timestamp), Failure> {
    let now = web.engine.ambient().now();
    // The provider's clock may be ahead of ours.
    let shown = shown.unwrap_or(now).min(now);
    let csrf = URL_SAFE_NO_PAD.encode(web.engine.ambient().secret());
    session.clear().await;
    session.cycle_id().await?;
    session.insert(USER, user.id.to_string()).await?;
    session.insert(ENTRY, entry).await?;
    session.insert(CSRF, &csrf).await?;
    session.insert(SIGNED_IN_AT, shown.as_micros()).await?;
    session.insert(SEEN_AT, now.as_micros()).await?;
    Ok((csrf, shown))
}

impl FromRequestParts<Web> for Signed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        let found = <Self as OptionalFromRequestParts<Web>>::from_request_parts(parts, web).await?;
        found.ok_or_else(|| Failure::sign_in_first(&parts.method, &parts.uri))
    }
}

impl OptionalFromRequestParts<Web> for Signed {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Option<Self>, Failure> {
        let Some(found) = signed(parts, web).await? else { return Ok(None) };
        if found.now.since(found.seen) > SEEN_EVERY.min(web.engine.config().auth.idle / 4) {
            found.who.session.insert(SEEN_AT, found.now.as_micros()).await?;
        }
        Ok(Some(found.who))
    }
}

/// A signed-in person whose page asks by itself: that is no use of the session and makes it last no
/// longer.
#[derive(Clone, Debug)]
pub struct Watching(pub Signed);

impl FromRequestParts<Web> for Watching {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Failure> {
        let found = signed(parts, web).await?;
        found.map(|found| Self(found.who)).ok_or_else(|| Failure::sign_in_first(&parts.method, &parts.uri))
    }
}

impl Watching {
    /// Whether the session is still theirs, by what is stored of it now.
    pub async fn lasts(&self, web: &Web) -> bool {
        let store = Arc::new(Sessions::new(&web.engine));
        let session = Session::new(self.0.session.id(), store, None);
        let found = person(&session, web, web.engine.ambient().now()).await;
        found.is_ok_and(|found| found.is_some_and(|found| found.user.id == self.0.user.id))
    }
}

/// Whose session it is.
struct Person {
    user: UserRow,
    entry: Entry,
    csrf: String,
    since: Timestamp,
    seen: Timestamp,
}

async fn person(session: &Session, web: &Web, now: Timestamp) -> Result<Option<Person>, Failure> {
    let (Some(id), Some(entry), Some(csrf), Some(since), Some(seen)) = (
        session.get::<Uuid>(USER).await?,
        session.get::<Entry>(ENTRY).await?,
        session.get::<String>(CSRF).await?,
        session.get::<i64>(SIGNED_IN_AT).await?.map(Timestamp::from_micros),
        session.get::<i64>(SEEN_AT).await?.map(Timestamp::from_micros),
    ) else {
        return Ok(None);
    };
    let mut tx = web.engine.db().read().await?;
    let user = accounts::user_by_id(&mut tx, id).await?.filter(|user| user.disabled_at.is_none());
    let auth = &web.engine.config().auth;
    let began = Timestamp::from_micros(entry.began_at);
    let user = user.filter(|_| now.since(began) < auth.longest && now.since(seen) < auth.idle);
    Ok(user.map(|user| Person { user, entry, csrf, since, seen }))
}

/// A request's person, and when the session was last used before it.
struct Found {
    who: Signed,
    now: Timestamp,
    seen: Timestamp,
}

/// The signed-in person behind a request; a session that is somebody's no more is ended.
async fn signed(parts: &mut Parts, web: &Web) -> Result<Option<Found>, Failure> {
    let origin = client(parts);
    let session = Session::from_request_parts(parts, web).await.map_err(|(_, text)| Failure::defect(text))?;
    let now = web.engine.ambient().now();
    let Some(Person { user, entry, csrf, since, seen }) = person(&session, web, now).await? else {
        if session.get::<Uuid>(USER).await?.is_some() {
            session.flush().await?;
        }
        return Ok(None);
    };
    if second::is_missing(web, &user, entry.by) && !second::is_open_without(parts.uri.path()) {
        return Err(Failure::SecondFactorFirst);
    }
    let role = web.engine.config().auth.roles.of(&user.role);
    Ok(Some(Found { who: Signed { user, role, csrf, since, entry, origin, now, session }, now, seen }))
}

/// The address that a request came from, behind proxies that are trusted.
pub fn client(parts: &Parts) -> String {
    origin::of(parts).map_or_else(|| "unknown".to_owned(), |address| address.to_string())
}
