//! One type of operation: what it brings about and where, what a duplicate would do, and how it is
//! tried again.

mod retry;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;

use crate::config::{Config, OperationType, StepType, promise};
use crate::domain::actor::Right;
use crate::domain::contract::Class;
use crate::domain::filter::DeadLetterFilter;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section, render};
use crate::web::pages::destination::Tally;
use crate::web::tell::list;
use crate::web::view::{Fact, FactValue, Reference};
pub use retry::{Retries, TryRow};

/// `/types/{name}`
#[derive(Template, Debug)]
#[template(path = "pages/type.html")]
pub struct TypePage {
    /// Around it.
    pub layout: Layout,
    /// As the file calls it.
    pub name: String,
    /// Key, severity, owner, runbook, retention, masks.
    pub facts: Vec<Fact>,
    /// What the payload tells, and where.
    pub inputs: Vec<Fact>,
    /// The side-effect map, in order.
    pub steps: Vec<StepCard>,
    /// How it is tried again.
    pub retries: Retries,
    /// Open dead letters by what is known of them.
    pub letters: Vec<Tally>,
    /// Its operations, as a list.
    pub list: String,
}

/// One step of the side-effect map.
#[derive(Clone, Debug)]
pub struct StepCard {
    /// Its name.
    pub name: String,
    /// What it brings about; absent when nobody has said.
    pub effect: Option<String>,
    /// Where it goes.
    pub destination: Reference,
    /// "POST /tickets", or that a program carries it out.
    pub call: String,
    /// How a second effect is kept away, in a few words.
    pub strategy: &'static str,
    /// What holds at that destination.
    pub promise: String,
    /// What a duplicate would do.
    pub duplicate: String,
    /// When it is passed over, and what of its answer is kept.
    pub notes: Vec<String>,
}

/// The page's route.
pub fn routes() -> Router<Web> {
    Router::new().route("/types/{name}", get(show))
}

async fn show(State(web): State<Web>, who: Signed, Path(name): Path<String>) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let (config, now) = (web.engine.config(), web.engine.ambient().now());
    let kind = config.operations.get(&name).ok_or(Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, who.layout(name.clone(), Section::Destinations).await).await?;
    let waiting = DeadLetterFilter { kind: Some(name.clone()), ..list::waiting(now) };
    let letters = Tally::each(&mut tx, &waiting).await?;
    drop(tx);
    Ok(render(&TypePage {
        layout,
        facts: facts(kind),
        inputs: inputs(kind),
        steps: kind.steps.iter().filter_map(|step| card(config, step, now)).collect(),
        retries: Retries::of(kind, config),
        letters,
        list: list::address("/operations", &[("type", name.clone())]),
        name,
    }))
}

fn facts(kind: &OperationType) -> Vec<Fact> {
    let severity = words::severity(kind.severity);
    let mut facts = vec![
        Fact::text("Severity", format!("{}: {}", severity.label, severity.explanation)),
        Fact::text("Owner", kind.owner.clone().unwrap_or_else(|| "nobody is named".to_owned())),
    ];
    if let Some(runbook) = &kind.runbook {
        facts.push(Fact::link("Runbook", Reference::new(runbook.as_str(), Some(runbook.as_str()))));
    }
    facts.push(match &kind.key {
        Some(key) => Fact::code("Key", key.source()),
        None => Fact::text("Key", "whoever hands an operation in sends it"),
    });
    let kept = match kind.retain {
        Some(span) => {
            format!("{}; then payload and answers are erased, and the record stays", words::span(span))
        }
        None => "for ever".to_owned(),
    };
    facts.push(Fact::text("Payloads are kept", kept));
    facts
}

fn inputs(kind: &OperationType) -> Vec<Fact> {
    let search = kind.search.iter().map(|(name, pointer)| {
        Fact::code(
            format!("{} (people search by it)", words::capitalised(&words::step_name(name))),
            pointer.clone(),
        )
    });
    let mask = kind.mask.iter().map(|pointer| Fact::code("Private and hidden", pointer.clone()));
    search.chain(mask).collect()
}

fn card(config: &Config, step: &StepType, now: Timestamp) -> Option<StepCard> {
    let known = config.destinations.get(&step.destination)?;
    let there = words::destination_name(&step.destination);
    let class = known.contract.class_at(None, now);
    let second = match &step.effect {
        Some(effect) => format!("a second one of this: {}", words::quoted(effect)),
        None => format!("what it does at {there}, a second time"),
    };
    let window = known.contract.key.as_ref().map(|key| words::span(key.window)).unwrap_or_default();
    let duplicate = match class {
        Class::Keyed => format!(
            "For {window} from the first send {there} recognises a repeat and does nothing. Later a duplicate would be {second}."
        ),
        Class::Idempotent => format!("Nothing more: repeating it changes nothing at {there}."),
        Class::LookupOnly | Class::Neither => format!("A duplicate would be {second}."),
    };
    let mut notes = Vec::new();
    if step.when.is_some() {
        notes.push("It is passed over when its condition does not hold.".to_owned());
    }
    if step.optional {
        notes.push("It is optional: when it comes to nothing, the operation goes on without it.".to_owned());
    }
    if !step.save.is_empty() {
        let names: Vec<&str> = step.save.iter().map(|(name, _)| name.as_str()).collect();
        notes.push(format!("Kept of its answer: {}.", names.join(", ")));
    }
    Some(StepCard {
        name: words::step_name(&step.name),
        effect: step.effect.clone(),
        destination: Reference::here(
            words::capitalised(&there),
            format!("/destinations/{}", step.destination),
        ),
        call: if step.is_pulled() {
            "A program of yours carries it out and says what became of it.".to_owned()
        } else {
            format!("{} {}", step.method, step.path.source())
        },
        strategy: words::class(class).label,
        promise: promise(known, now),
        duplicate,
        notes,
    })
}
