//! Who calls: the holder of a bearer token.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::header;
use axum::http::request::Parts;

use super::problem::Problem;
use crate::accounts;
use crate::domain::actor::{Actor, Right};
use crate::web::Web;
use crate::web::guard::client;

/// How long a token is believed before it is looked up again, and so the longest that one which
/// was revoked elsewhere still works.
const BELIEVED: Duration = Duration::from_secs(1);
/// Tokens remembered at once; more are looked up each time.
const MOST: usize = 1_024;

/// Tokens that were found to work a moment ago, by the hash of their secret. A busy caller would
/// otherwise cost a read for every submission.
#[derive(Clone, Default)]
pub struct Tokens(Arc<Mutex<Known>>);

/// When each was found to work, and whose it is.
type Known = HashMap<[u8; 32], (Instant, Actor)>;

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    fn recall(&self, hash: &[u8; 32]) -> Option<Actor> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(hash).filter(|(at, _)| at.elapsed() < BELIEVED).map(|(_, actor)| actor.clone())
    }

    /// Forgets all of them: one was revoked here, and must not work on for what is left of its second.
    pub(crate) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn remember(&self, hash: [u8; 32], actor: Actor) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (at, _)| at.elapsed() < BELIEVED);
        }
        if known.len() < MOST {
            known.insert(hash, (Instant::now(), actor));
        }
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
            .map(|(_, secret)| secret.trim().to_owned())
            .ok_or_else(Problem::unauthorized)?;
        let origin = client(parts);
        let hash = accounts::hash_secret(&secret);
        if let Some(actor) = web.tokens.recall(&hash) {
            return Ok(Self { actor, origin });
        }
        let holder = accounts::token_holder(web.engine.db(), web.engine.ambient(), &secret).await?;
        let row = holder.ok_or_else(Problem::unauthorized)?;
        let actor = Actor::Token { name: row.name, scope: row.scope };
        web.tokens.remember(hash, actor.clone());
        Ok(Self { actor, origin })
    }
}
