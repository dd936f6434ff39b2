//! Who calls: the holder of a bearer token.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

use super::problem::Problem;
use crate::accounts;
use crate::domain::actor::{Actor, Right};
use crate::store::StoreError;
use crate::web::Web;
use crate::web::guard::client;
use crate::web::rates::{self, Who};

/// How long a token is believed before it is looked up again, and so the longest that one which
/// was revoked elsewhere still works.
const BELIEVED: Duration = Duration::from_secs(1);
/// Tokens remembered at once; more are looked up each time.
const MOST: usize = 1_024;

/// Tokens that were found to work a moment ago, by the hash of their secret. A busy caller would
/// otherwise cost a read for every submission.
#[derive(Clone, Default)]
pub struct Tokens(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// When each was found to work, and whose it is.
    holders: HashMap<[u8; 32], (Instant, Actor)>,
    /// All that worked when this was last read, and when that was.
    working: Option<(Instant, HashSet<Vec<u8>>)>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    fn recall(&self, hash: &[u8; 32]) -> Option<Actor> {
        let known = self.lock();
        known.holders.get(hash).filter(|(at, _)| at.elapsed() < BELIEVED).map(|(_, actor)| actor.clone())
    }

    /// Whether it is among those that work. Costs one read a second for all that are asked about,
    /// however many: who guesses from an address costs no more, and keeps nobody there out.
    async fn is_one(&self, hash: &[u8; 32], web: &Web) -> Result<bool, StoreError> {
        if let Some((read_at, working)) = &mut self.lock().working {
            if read_at.elapsed() < BELIEVED {
                return Ok(working.contains(&hash[..]));
            }
            // Whoever asks meanwhile is answered by what is here.
            *read_at = Instant::now();
        }
        let read = accounts::working_tokens(web.engine.db(), web.engine.ambient()).await?;
        let working: HashSet<Vec<u8>> = read.into_iter().collect();
        let found = working.contains(&hash[..]);
        self.lock().working = Some((Instant::now(), working));
        Ok(found)
    }

    /// Forgets all of them: one was revoked here, and must not work on for what is left of its second.
    pub(crate) fn forget(&self) {
        *self.lock() = Known::default();
    }

    fn remember(&self, hash: [u8; 32], actor: Actor) {
        let holders = &mut self.lock().holders;
        if holders.len() >= MOST {
            holders.retain(|_, (at, _)| at.elapsed() < BELIEVED);
        }
        if holders.len() < MOST {
            holders.insert(hash, (Instant::now(), actor));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever calls.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The token's holder.
    pub actor: Actor,
    /// From where.
    pub origin: String,
}

impl Caller {
    /// A refusal unless the token holds a right.
    pub fn require(&self, right: Right) -> Result<(), Problem> {
        if self.actor.may(right) {
            Ok(())
        } else {
            Err(Problem::forbidden(format!("You need {}.", self.actor.needs(right))))
        }
    }
}

impl FromRequestParts<Web> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Problem> {
        let secret = parts
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, secret)| secret.trim().to_owned());
        let stranger = rates::stranger(parts);
        let Some(secret) = secret else {
            if let Some(stranger) = &stranger {
                web.rates.take(stranger).map_err(Problem::too_often)?;
            }
            return Err(Problem::unauthorized());
        };
        let origin = client(parts);
        let hash = accounts::hash_secret(&secret);
        let actor = match web.tokens.recall(&hash) {
            Some(actor) => actor,
            None => look_up(web, &secret, hash, stranger.as_ref()).await?,
        };
        web.rates.take(&Who::Token(hash)).map_err(Problem::too_often)?;
        Ok(Self { actor, origin })
    }
}

/// Who holds a token by the database. A caller that was told too often that nobody does is not looked
/// up, unless the token is one that works.
async fn look_up(web: &Web, secret: &str, hash: [u8; 32], stranger: Option<&Who>) -> Result<Actor, Problem> {
    if let Some(Err(exceeded)) = stranger.map(|who| web.rates.look(who))
        && !web.tokens.is_one(&hash, web).await?
    {
        return Err(Problem::too_often(exceeded));
    }
    let Some(row) = accounts::token_holder(web.engine.db(), web.engine.ambient(), secret).await? else {
        if let Some(stranger) = stranger {
            web.rates.take(stranger).map_err(Problem::too_often)?;
        }
        return Err(Problem::unauthorized());
    };
    let actor = Actor::Token { name: row.name, scope: row.scope };
    web.tokens.remember(hash, actor.clone());
    Ok(actor)
}
