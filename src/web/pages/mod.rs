//! One file a page: what it shows, already shaped for display.

pub mod access;
pub mod account;
pub mod approval;
pub mod approvals;
mod ask;
pub mod audit;
pub mod bulk;
mod case;
pub mod cause;
pub mod confirm;
pub mod correct;
pub mod dead_letter;
pub mod dead_letters;
pub mod destination;
pub mod destinations;
pub mod erase;
pub mod error;
mod evidence;
pub mod factors;
pub mod handling;
pub mod operation;
pub mod operations;
pub mod override_form;
pub mod passkey;
pub mod people;
pub mod person;
pub mod replay;
pub mod resolve;
pub mod second;
pub mod shown;
mod sso;
pub mod status;
pub mod tokens;
pub mod triage;
pub mod types;
pub mod verdict;

use axum::Router;

use super::Web;

/// The desk's routes. GET changes nothing, except that coming back from an identity provider signs in.
pub fn routes() -> Router<Web> {
    Router::new()
        .merge(triage::routes())
        .merge(cause::routes())
        .merge(dead_letters::routes())
        .merge(dead_letter::routes())
        .merge(handling::routes())
        .merge(operations::routes())
        .merge(operation::routes())
        .merge(evidence::routes())
        .merge(shown::routes())
        .merge(ask::routes())
        .merge(destinations::routes())
        .merge(destination::routes())
        .merge(types::routes())
        .merge(audit::routes())
        .merge(erase::routes())
        .merge(bulk::routes())
        .merge(status::routes())
        .merge(replay::routes())
        .merge(resolve::routes())
        .merge(correct::routes())
        .merge(override_form::routes())
        .merge(approvals::routes())
        .merge(approval::routes())
        .merge(access::routes())
        .merge(second::routes())
        .merge(confirm::routes())
        .merge(sso::routes())
        .merge(account::routes())
        .merge(factors::routes())
        .merge(people::routes())
        .merge(person::routes())
        .merge(tokens::routes())
}
