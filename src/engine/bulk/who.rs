//! In whose name a bulk action acts: what they may do is read anew each time.

use crate::domain::actor::{Actor, Right};
use crate::gate::Gate;
use crate::store::bulk::BulkRow;
use crate::store::{StoreError, accounts};

/// Whoever set it going, as they stand now; or why they may not act any more.
pub(super) async fn acting(gate: &Gate, row: &BulkRow) -> Result<Result<Actor, String>, StoreError> {
    let name = row.acts_as.clone().unwrap_or_else(|| row.created_by.clone());
    let actor = match name.split_once(':') {
        // A person's name has no colon.
        None => person(gate, &name).await?,
        Some(("token", token)) => holder(gate, token).await?,
        Some((_, user)) => Ok(Actor::Cli { user: user.to_owned() }),
    };
    Ok(actor.and_then(|actor| {
        let missing = [Right::Bulk, row.action.right()].into_iter().find(|right| !actor.may(*right));
        match missing {
            None => Ok(actor),
            Some(right) => Err(format!("{name} may not do this any more: it takes {}", actor.needs(right))),
        }
    }))
}

async fn person(gate: &Gate, name: &str) -> Result<Result<Actor, String>, StoreError> {
    let mut tx = gate.db().read().await?;
    Ok(match accounts::user_by_name(&mut tx, name).await? {
        Some(user) if user.disabled_at.is_none() => {
            let role = gate.config().auth.roles.of(&user.role);
            Ok(Actor::Person { name: user.name, role })
        }
        Some(_) => Err(format!("{name} was shut out since, so nothing is done in their name")),
        None => Err(format!("there is nobody named {name} any more")),
    })
}

async fn holder(gate: &Gate, name: &str) -> Result<Result<Actor, String>, StoreError> {
    let now = gate.ambient().now();
    let mut tx = gate.db().read().await?;
    let token = accounts::token_by_name(&mut tx, name).await?;
    let works = |token: &accounts::TokenRow| {
        token.revoked_at.is_none() && token.expires_at.is_none_or(|expires| expires > now)
    };
    Ok(match token.filter(works) {
        Some(token) => Ok(Actor::Token { name: token.name, scope: token.scope }),
        None => Err(format!("the token {name} does not work any more, so nothing is done in its name")),
    })
}
