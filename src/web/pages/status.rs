//! How things stand around the desk: the program, its database and queues, the processes at work,
//! and who sends webhooks.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;

use crate::accounts::Keys;
use crate::config::{Config, OperationType, Source, StepType, worker_lane};
use crate::domain::actor::Right;
use crate::domain::time::Timestamp;
use crate::domain::webhook::{HookOutcome, Scheme};
use crate::domain::words;
use crate::store::hooks::{self, HookCount};
use crate::store::{self, Db, checks, nodes};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::{chain, list};
use crate::web::view::{Fact, FactValue, Long, Reference, Seen, When, coarse, grouped};

/// What the counts cover, in whole hours.
const RECENT: Duration = Duration::from_hours(24);

/// `/status`
#[derive(Template, Debug)]
#[template(path = "pages/status.html")]
pub struct StatusPage {
    /// Around it.
    pub layout: Layout,
    /// Versions, the database, the start, upkeep.
    pub facts: Vec<Fact>,
    /// How the audit's chain stands.
    pub audit: Vec<Fact>,
    /// Who made attempts lately.
    pub nodes: Vec<NodeRow>,
    /// What waits, by destination and by programs' types.
    pub lanes: Vec<LaneRow>,
    /// By name.
    pub sources: Vec<SourceRow>,
}

/// One process that made attempts lately.
#[derive(Clone, Debug)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// It is the one that answers here.
    pub here: bool,
    /// When it began its last attempt.
    pub last: When,
    /// How many of the latest attempts it made.
    pub attempts: String,
    /// How many of them are under way.
    pub running: String,
}

/// What waits in one queue.
#[derive(Clone, Debug)]
pub struct LaneRow {
    /// What it is for.
    pub place: Reference,
    /// Operations that wait.
    pub waiting: String,
    /// How long the longest is due.
    pub due: Option<String>,
    /// Operations under way, under lease.
    pub leased: String,
    /// When the first of those leases ends.
    pub lease_ends: Option<When>,
}

/// One source of webhooks.
#[derive(Clone, Debug)]
pub struct SourceRow {
    /// Its name.
    pub name: String,
    /// Where it sends to.
    pub address: String,
    /// How its messages are proved.
    pub scheme: Scheme,
    /// When it last sent something new; absent when that was long ago.
    pub last_accepted: Option<When>,
    /// Deliveries in the last 24 hours that became operations.
    pub accepted: String,
    /// Those that repeated one.
    pub duplicates: String,
    /// Those that no mapping is for.
    pub ignored: String,
    /// Those that were refused, by reason.
    pub refused: Vec<RefusedRow>,
}

/// Deliveries that were refused for one reason.
#[derive(Clone, Debug)]
pub struct RefusedRow {
    /// How many.
    pub count: String,
    /// The reason.
    pub why: String,
    /// The last one.
    pub last: When,
    /// From where that one came.
    pub address: String,
}

/// The status page's route.
pub fn routes() -> Router<Web> {
    Router::new().route("/status", get(status))
}

async fn status(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let seen = who.seen(web.engine.ambient().now());
    let config = web.engine.config();
    let mut tx = web.engine.db().read().await?;
    let counts = hooks::since(&mut tx, seen.now.minus(RECENT)).await?;
    let last = hooks::last(&mut tx, HookOutcome::Accepted).await?;
    let size = nodes::size(&mut tx).await?;
    let upkeep = nodes::upkeep_due(&mut tx).await?;
    let made = nodes::latest(&mut tx).await?;
    let mut lanes = Vec::new();
    for (name, place) in queues(config) {
        let lane = nodes::lane(&mut tx, &name, seen.now, list::MOST_COUNTED + 1).await?;
        lanes.push(lane_row(place, &lane, seen));
    }
    let head = store::chain::head(&mut tx).await?;
    let checked = checks::all(&mut tx).await?;
    let keys = match web.engine.db().keyring() {
        Ok(keyring) => Some(Keys::look(&mut tx, keyring).await?),
        Err(_) => None,
    };
    let layout = list::rail(&mut tx, who.layout("Status", Section::Status).await).await?;
    drop(tx);
    let stored = web.engine.db().version().await?;
    let row = |source: &Source| {
        let counts: Vec<&HookCount> = counts.iter().filter(|count| count.source == source.name).collect();
        let last = last.iter().find(|(name, _)| *name == source.name).map(|(_, at)| *at);
        source_row(source, &counts, last, seen)
    };
    let node = |row: &nodes::NodeRow| NodeRow {
        here: row.node == web.engine.gate().node(),
        name: row.node.clone(),
        last: When::at(row.last_at, seen),
        attempts: counted(row.attempts),
        running: counted(row.running),
    };
    let mut facts = vec![
        Fact::text("Program", format!("Dead Letter Office {}", env!("CARGO_PKG_VERSION"))),
        Fact::code("This process", web.engine.gate().node()),
        Fact::time("It answers since", When::at(web.started, seen)),
        Fact::text("Database", format!("{}, {}", web.engine.db().product(), bytes(size))),
        Fact::text("Schema", schema(stored)),
        Fact::text("Requests may go to", reach(config)),
        Fact {
            name: "Tidying up".to_owned(),
            value: if upkeep.as_micros() == 0 {
                FactValue::Text(Long::line("not yet: it begins within minutes of the first start"))
            } else {
                let words = if upkeep > seen.now { "next" } else { "due since" };
                FactValue::TimeWith(When::at(upkeep, seen), words.to_owned())
            },
        },
    ];
    facts.extend(keys.map(|keys| Fact::text("Secret keys", keys.told().join(" "))));
    Ok(render(&StatusPage {
        layout,
        audit: chain::facts(head.as_ref(), &checked, config.audit.verify_every.is_some(), seen),
        facts,
        nodes: made.iter().map(node).collect(),
        lanes,
        sources: config.sources.values().map(row).collect(),
    }))
}

/// Every queue: one a destination, and one a type with steps that programs carry out.
fn queues(config: &Config) -> Vec<(String, Reference)> {
    let destination = |name: &String| {
        let title = words::capitalised(&words::destination_name(name));
        (name.clone(), Reference::here(title, format!("/destinations/{name}")))
    };
    let programs = config.operations.values().filter(|kind| kind.steps.iter().any(StepType::is_pulled));
    let program = |kind: &OperationType| {
        let title = format!("Programs for {}", kind.name);
        (worker_lane(&kind.name), Reference::here(title, format!("/types/{}", kind.name)))
    };
    config.destinations.keys().map(destination).chain(programs.map(program)).collect()
}

fn lane_row(place: Reference, lane: &nodes::LaneRow, seen: Seen) -> LaneRow {
    LaneRow {
        place,
        waiting: list::number(lane.waiting),
        due: lane.due_since.map(|since| coarse(seen.now.since(since))),
        leased: list::number(lane.leased),
        lease_ends: lane.lease_ends.map(|at| When::at(at, seen)),
    }
}

/// The switch for tests, which nobody should forget about.
fn reach(config: &Config) -> &'static str {
    if config.server.allow_private_destinations {
        "any address, private networks included, and over plain http: allow_private_destinations is on"
    } else {
        "public addresses, over https"
    }
}

fn counted(count: i64) -> String {
    grouped(usize::try_from(count).unwrap_or(0))
}

fn schema(stored: i64) -> String {
    match Db::newest_version() {
        ours if ours == stored => format!("version {stored}, this program's own"),
        ours => format!("version {stored}; this program was made for {ours}"),
    }
}

/// "412 kB", "3.2 GB": in thousands, as disks are sold.
fn bytes(count: i64) -> String {
    match count {
        0..1_000_000 => format!("{} kB", count / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{} MB", count / 1_000_000, count % 1_000_000 / 100_000),
        _ => format!("{}.{} GB", count / 1_000_000_000, count % 1_000_000_000 / 100_000_000),
    }
}

fn source_row(source: &Source, counts: &[&HookCount], last: Option<Timestamp>, seen: Seen) -> SourceRow {
    let of = |outcome| counts.iter().filter(move |count| count.outcome == outcome);
    let sum = |outcome| {
        let sum: i64 = of(outcome).map(|count| count.count).sum();
        grouped(usize::try_from(sum).unwrap_or(0))
    };
    let refused = |&outcome: &HookOutcome| {
        let last = of(outcome).max_by_key(|count| count.last_at).filter(|_| outcome.is_refusal())?;
        Some(RefusedRow {
            count: sum(outcome),
            why: words::hook_outcome(outcome).to_owned(),
            last: When::at(last.last_at, seen),
            address: last.last_address.clone(),
        })
    };
    SourceRow {
        name: source.name.clone(),
        address: format!("/hooks/{}", source.name),
        scheme: source.proof.scheme,
        last_accepted: last.map(|at| When::at(at, seen)),
        accepted: sum(HookOutcome::Accepted),
        duplicates: sum(HookOutcome::Duplicate),
        ignored: sum(HookOutcome::Ignored),
        refused: HookOutcome::ALL.iter().filter_map(refused).collect(),
    }
}
