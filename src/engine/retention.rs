//! Erasing what is old, in small steps: each is one short transaction, so that no submission waits
//! for more than one of them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::config::{Config, OperationType};
use crate::domain::ambient::Ambient;
use crate::domain::time::Timestamp;
use crate::store::audit::{self, AuditRow};
use crate::store::retention::{self, Task};
use crate::store::{Commit, Db, StoreError, Tx, hooks, sessions};

/// Operations that one step erases or forgets at most.
pub const OPERATIONS: usize = 100;
/// Rows of other kinds that one step drops at most.
const ROWS: usize = 500;

/// How long an action's id is remembered.
const ACTIONS_KEPT: Duration = Duration::from_hours(30 * 24);
/// How long a one-time link that lapsed stays, so that whoever opens it late is told what it was.
const LINKS_KEPT: Duration = Duration::from_hours(7 * 24);
/// A node that is not heard of for so long has given the duty up.
const HELD: Duration = Duration::from_mins(2);
/// How often there is a round, whichever node makes it.
const EVERY: Duration = Duration::from_mins(5);

/// One part of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Job {
    /// Erases a type's operations whose time has come.
    Erase(String),
    /// Forgets operations whose time has come.
    Forget,
    /// Looks again at those that were left for later, behind an id.
    Later(Task, Uuid),
    Sessions,
    Counts,
    Actions,
    Links,
}

/// What one step did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Operations that were looked at, or rows that were dropped: never more than a step may.
    pub seen: usize,
    /// Operations that were erased.
    pub erased: usize,
    /// Operations that were forgotten.
    pub forgotten: usize,
}

/// One round of tidying up.
#[derive(Debug)]
pub struct Round {
    db: Db,
    config: Arc<Config>,
    ambient: Ambient,
    jobs: VecDeque<Job>,
}

impl Round {
    /// Takes the duty when it is due; absent when another node has it, or when it is too early.
    pub async fn begin(db: &Db, config: &Arc<Config>, ambient: &Ambient) -> Result<Option<Self>, StoreError> {
        let now = ambient.now();
        let mut tx = db.begin().await?;
        let ours = retention::claim(&mut tx, now, now.plus(HELD)).await?;
        tx.commit(Commit::Tidy).await?;
        let retained = config.operations.values().filter(|kind| kind.retain.is_some());
        let mut jobs: VecDeque<Job> = [Job::Sessions, Job::Counts, Job::Actions, Job::Links].into();
        jobs.push_back(Job::Later(Task::Erase, Uuid::nil()));
        jobs.extend(retained.map(|kind| Job::Erase(kind.name.clone())));
        if config.engine.key_retention.is_some() {
            jobs.extend([Job::Later(Task::Forget, Uuid::nil()), Job::Forget]);
        }
        Ok(ours.then(|| Self { db: db.clone(), config: Arc::clone(config), ambient: ambient.clone(), jobs }))
    }

    /// Makes the next step, in a transaction of its own; absent when the round is over.
    pub async fn step(&mut self) -> Result<Option<Step>, StoreError> {
        let now = self.ambient.now();
        let mut tx = self.db.begin().await?;
        let Some(job) = self.jobs.pop_front() else {
            retention::due_again(&mut tx, now.plus(EVERY)).await?;
            tx.commit(Commit::Tidy).await?;
            return Ok(None);
        };
        retention::due_again(&mut tx, now.plus(HELD)).await?;
        let (step, next) = self.work(&mut tx, job, now).await?;
        tx.commit(Commit::Tidy).await?;
        if let Some(job) = next {
            self.jobs.push_front(job);
        }
        Ok(Some(step))
    }

    /// Does a part of a job; what is left of it.
    async fn work(&self, tx: &mut Tx, job: Job, now: Timestamp) -> Result<(Step, Option<Job>), StoreError> {
        let dropped = |rows: u64, most: usize, job: Job| {
            let seen = usize::try_from(rows).unwrap_or(most);
            (Step { seen, ..Step::default() }, (seen >= most).then_some(job))
        };
        Ok(match job {
            Job::Sessions => dropped(sessions::delete_expired(tx, now).await?, ROWS, job),
            Job::Counts => {
                // A row an hour, source and outcome: few enough for one step.
                hooks::delete_before(tx, now.minus(hooks::KEPT)).await?;
                (Step::default(), None)
            }
            Job::Actions => {
                dropped(retention::drop_actions(tx, now.minus(ACTIONS_KEPT), ROWS).await?, ROWS, job)
            }
            Job::Links => dropped(retention::drop_links(tx, now.minus(LINKS_KEPT), ROWS).await?, ROWS, job),
            Job::Later(task, after) => self.catch_up(tx, task, after).await?,
            Job::Forget => {
                let span = self.config.engine.key_retention;
                let step = match span {
                    Some(span) => self.go_on(tx, Task::Forget, None, now.minus(span)).await?,
                    None => Step::default(),
                };
                (step, (step.seen == OPERATIONS).then_some(job))
            }
            Job::Erase(ref name) => {
                let kind = self.config.operations.get(name);
                let step = match kind.and_then(|kind| Some((kind, kind.retain?))) {
                    Some((kind, span)) => self.go_on(tx, Task::Erase, Some(kind), now.minus(span)).await?,
                    None => Step::default(),
                };
                (step, (step.seen == OPERATIONS).then_some(job))
            }
        })
    }

    /// Takes the next operations of a task; those that are not over are left for later.
    async fn go_on(
        &self,
        tx: &mut Tx,
        task: Task,
        kind: Option<&OperationType>,
        before: Timestamp,
    ) -> Result<Step, StoreError> {
        let name = match kind {
            Some(kind) => format!("{task}:{}", kind.name),
            None => task.to_string(),
        };
        let place = retention::place(tx, &name).await?;
        let kind_name = kind.map(|kind| kind.name.as_str());
        let found = retention::next(tx, kind_name, place, before, OPERATIONS).await?;
        let Some(last) = found.last() else { return Ok(Step::default()) };
        let ids: Vec<Uuid> = found.iter().map(|place| place.operation_id).collect();
        let over = retention::over(tx, task, &ids).await?;
        let busy: Vec<Uuid> = ids.into_iter().filter(|id| !over.contains(id)).collect();
        retention::put_off(tx, task, &busy).await?;
        retention::set_place(tx, &name, *last).await?;
        let mut step = Step { seen: found.len(), ..Step::default() };
        self.carry_out(tx, task, kind, &over, &mut step).await?;
        Ok(step)
    }

    /// Looks again at what was left for later.
    async fn catch_up(
        &self,
        tx: &mut Tx,
        task: Task,
        after: Uuid,
    ) -> Result<(Step, Option<Job>), StoreError> {
        let found = retention::later(tx, task, after, OPERATIONS).await?;
        let mut step = Step { seen: found.len(), ..Step::default() };
        let ids: Vec<Uuid> = found.iter().map(|(id, _)| *id).collect();
        let over = retention::over(tx, task, &ids).await?;
        let mut kinds: BTreeMap<&str, Vec<Uuid>> = BTreeMap::new();
        let mut gone = Vec::new();
        for (id, kind) in &found {
            match kind {
                Some(kind) if over.contains(id) => kinds.entry(kind).or_default().push(*id),
                Some(_) => {}
                None => gone.push(*id),
            }
        }
        for (kind, ids) in kinds {
            let kind = self.config.operations.get(kind);
            // Its type does not say any more that it is to be erased.
            if task == Task::Erase && kind.is_none_or(|kind| kind.retain.is_none()) {
                gone.extend(ids);
                continue;
            }
            self.carry_out(tx, task, kind, &ids, &mut step).await?;
        }
        retention::caught_up(tx, task, &gone).await?;
        let more = (found.len() == OPERATIONS).then(|| ids.last().copied()).flatten();
        Ok((step, more.map(|last| Job::Later(task, last))))
    }

    async fn carry_out(
        &self,
        tx: &mut Tx,
        task: Task,
        kind: Option<&OperationType>,
        operations: &[Uuid],
        step: &mut Step,
    ) -> Result<(), StoreError> {
        match task {
            Task::Erase => {
                retention::erase(tx, operations, &kind.map(OperationType::private_ids).unwrap_or_default())
                    .await?;
                step.erased += operations.len();
            }
            Task::Forget => {
                let words = audit::worded(tx, operations).await?;
                if !words.is_empty() {
                    audit::erase_words(tx, &words, &self.forgotten(operations.len())).await?;
                }
                retention::forget(tx, operations).await?;
                step.forgotten += operations.len();
            }
        }
        Ok(())
    }

    /// What the audit says of what people wrote about operations that are forgotten.
    fn forgotten(&self, operations: usize) -> AuditRow {
        let operations =
            if operations == 1 { "1 operation".to_owned() } else { format!("{operations} operations") };
        AuditRow {
            id: self.ambient.id(),
            at: self.ambient.now(),
            actor: "engine".to_owned(),
            action: "erase_words".to_owned(),
            operation_id: None,
            dead_letter_id: None,
            subject: Some("audit".to_owned()),
            reason: None,
            result: "done".to_owned(),
            detail: format!("{operations} were forgotten, and with them what people wrote about them"),
            origin: "engine".to_owned(),
        }
    }
}
