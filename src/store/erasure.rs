//! What is known of one person, or of any other subject that operations are searched by: where it
//! stands, and how it goes. With the requests of [`super::retention`] this is all that is erased.

mod written;

use std::collections::HashMap;

use ring::hmac;
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{MAX_ROWS, StoreError, Tx, placeholders};
use crate::domain::keyring::SecretKey;

pub use written::{Quoting, Row, Written, audit_words, last_audit_words, take_away, texts};

/// The operations whose business id of a name has a value, behind an id.
pub async fn of_subject(
    tx: &mut Tx,
    (name, value): (&str, &str),
    after: Uuid,
    most: usize,
) -> Result<Vec<Uuid>, StoreError> {
    let sql = format!(
        "SELECT operation_id FROM search WHERE name = $1 AND value = $2 AND operation_id > $3 \
         ORDER BY operation_id LIMIT {most}"
    );
    Ok(on!(tx, c => {
        sqlx::query_scalar(AssertSqlSafe(sql)).bind(name).bind(value).bind(after).fetch_all(c).await?
    }))
}

/// What goes of an operation besides what its retention takes: everything by which people find it,
/// and everything that they wrote about it.
const MORE: [&str; 5] = [
    "DELETE FROM search WHERE operation_id IN {}",
    "UPDATE events SET detail = 'Erased.' WHERE kind NOT IN ('erased', 'duplicate', 'lease_lost') AND operation_id IN {}",
    "UPDATE dead_letters SET reason = NULL WHERE operation_id IN {}",
    "UPDATE override_requests SET reason = 'Erased.', word = NULL, facts = '' WHERE operation_id IN {}",
    "DELETE FROM actions WHERE operation_id IN {}",
];

/// Erases the rest of some operations. Their keys stay known by a keyed digest, so that a submission
/// which comes again is still the same one and has no second effect.
pub async fn erase(tx: &mut Tx, operations: &[(Uuid, String)]) -> Result<(), StoreError> {
    const RENAME: &str = "UPDATE operations SET correlation_id = NULL, key = $2 WHERE id = $1";
    for some in operations.chunks(MAX_ROWS) {
        let sql = format!(
            "INSERT INTO erased_keys (digest, operation_id, key_id) VALUES {} ON CONFLICT (digest) DO NOTHING",
            placeholders(some.len(), 3)
        );
        let secret = tx.keyring()?.current().clone();
        let key_id = secret.id();
        on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for (id, key) in some {
                query = query.bind(digest(&secret, key)).bind(*id).bind(&key_id);
            }
            query.execute(c).await?;
        });
        for (id, _) in some {
            // Drawn, so that no key that a caller chose can be in its way.
            let key = format!("erased:{}", tx.ambient.opaque());
            on!(&mut *tx, c => sqlx::query(RENAME).bind(*id).bind(key).execute(c).await?.rows_affected());
        }
        for statement in MORE {
            let sql = statement.replace("{}", &placeholders(1, some.len()));
            on!(&mut *tx, c => {
                let mut query = sqlx::query(AssertSqlSafe(sql));
                for (id, _) in some {
                    query = query.bind(*id);
                }
                query.execute(c).await?;
            });
        }
    }
    Ok(())
}

/// The operations that these keys named before they were erased, by key.
pub async fn named(tx: &mut Tx, keys: &[&str]) -> Result<HashMap<String, Uuid>, StoreError> {
    const ANY: &str = "SELECT CAST(count(*) AS BIGINT) FROM (SELECT 1 FROM erased_keys LIMIT 1) erased";
    // Nearly always there are none, and then nobody has to hash anything.
    let any: i64 = on!(&mut *tx, c => sqlx::query_scalar(ANY).fetch_one(c).await)?;
    let mut found = HashMap::new();
    if any == 0 {
        return Ok(found);
    }
    // An erased key was hashed with the secret key of its time.
    let secrets: Vec<SecretKey> = tx.keyring()?.all().cloned().collect();
    let by_digest: HashMap<Vec<u8>, &str> =
        secrets.iter().flat_map(|secret| keys.iter().map(move |key| (digest(secret, key), *key))).collect();
    let digests: Vec<&Vec<u8>> = by_digest.keys().collect();
    for some in digests.chunks(MAX_ROWS) {
        let sql = format!(
            "SELECT digest, operation_id FROM erased_keys WHERE digest IN {}",
            placeholders(1, some.len())
        );
        let rows: Vec<(Vec<u8>, Uuid)> = on!(&mut *tx, c => {
            let mut query = sqlx::query_as(AssertSqlSafe(sql));
            for digest in some {
                query = query.bind((*digest).clone());
            }
            query.fetch_all(c).await?
        });
        found.extend(
            rows.into_iter().filter_map(|(digest, id)| Some(((*by_digest.get(&digest)?).to_owned(), id))),
        );
    }
    Ok(found)
}

/// How many erased keys are recognised by which secret key, by its id; that is absent where it is not
/// known.
pub async fn keys(tx: &mut Tx) -> Result<Vec<(Option<String>, i64)>, StoreError> {
    const SQL: &str = "SELECT key_id, CAST(count(*) AS BIGINT) FROM erased_keys GROUP BY key_id";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?)
}

fn digest(secret: &SecretKey, key: &str) -> Vec<u8> {
    let key_of_keys = hmac::Key::new(hmac::HMAC_SHA256, &secret.derive("erased keys"));
    hmac::sign(&key_of_keys, key.as_bytes()).as_ref().to_vec()
}
