//! The proofs themselves: what each states, and how it is shown.

mod scene;

use anyhow::Context as _;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::evidence::Case;
use super::proxy::{Fault, Passage};
use super::stage::{Stage, Working, is_open};
use crate::domain::attempt::Outcome;
use crate::domain::classify::Action;
use crate::domain::contract::Class;
use crate::domain::lookup::Finding;
use crate::domain::verdict::VerdictKind;
use crate::engine::accept::{Accepted, SubmitError};
use crate::engine::send::Sender;
use crate::engine::thread::Thread;
use crate::gate::Admission;
use crate::store::events::EventKind;

/// Senders that hand in the same operation at once.
const SENDERS: usize = 16;
/// Workers that want to send it at once.
const WORKERS: usize = 8;

text_enum! {
    /// What is proved.
    pub enum Proof {
        /// A person has a failed operation tried again.
        Replay = "replay",
        /// Many want the same thing at once.
        Race = "race",
        /// The destination refuses everything.
        Exhaust = "exhaust",
        /// A process is killed in the middle of a send.
        Recover = "recover",
        /// It happens, and the answer is lost.
        LostAnswer = "lost_answer",
        /// The same thing is wanted again, on purpose.
        SecondOperation = "second_operation",
    }
}

impl Proof {
    /// A few words.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Replay => "Replay",
            Self::Race => "Race",
            Self::Exhaust => "Exhaust",
            Self::Recover => "Recover",
            Self::LostAnswer => "Lost answer",
            Self::SecondOperation => "Second operation",
        }
    }

    /// What is promised.
    pub const fn statement(self) -> &'static str {
        match self {
            Self::Replay => {
                "When a person has a failed operation tried again, the very same request goes out under the very \
                 same key, it happens once, and asking for a second replay sends nothing and says that it was \
                 done already."
            }
            Self::Race => {
                "When many senders hand in one operation and many workers want to send it at the same moment, \
                 there is one operation, one send and one effect, and every other try is on record as a \
                 duplicate or as passed over."
            }
            Self::Exhaust => {
                "When the destination refuses every try, the tries are as many as configured and no more; then a \
                 person is told, and nothing is sent any more."
            }
            Self::Recover => {
                "When a process is killed while it is sending, after the destination has carried the request out \
                 and before the answer is saved, nothing is lost and nothing happens twice: the next process \
                 finds the send on record, and does what the destination's promise allows."
            }
            Self::LostAnswer => {
                "When something happens and its answer is lost, it does not happen again. A destination that \
                 recognises repeats is sent the same request under the same key; one that can only be asked is \
                 asked; and for one that can do neither, a person is told that it may have completed."
            }
            Self::SecondOperation => {
                "A second operation that is meant, under a key of its own, is carried out like the first; only \
                 what repeats a known key is not done again, and a known key with other data is refused."
            }
        }
    }

    /// Shows it on a stage.
    pub(super) async fn show(self, stage: &Stage, run: &str) -> Case {
        let subject = &stage.subject;
        let case = Case::new(&subject.kind.name, &subject.destination.name, subject.class());
        let name = format!("drill-{run}-{}-{}", subject.kind.name, self.as_str().replace('_', "-"));
        let from = stage.proxy.count();
        let mut scene = Scene { stage, case, name, from, operations: Vec::new() };
        let done = match self {
            Self::Replay => scene.replay().await,
            Self::Race => scene.race().await,
            Self::Exhaust => scene.exhaust().await,
            Self::Recover => scene.recover().await,
            Self::LostAnswer => scene.lost_answer().await,
            Self::SecondOperation => scene.second_operation().await,
        };
        stage.proxy.always(None);
        scene.close(done).await
    }
}

/// One proof on its stage.
struct Scene<'s> {
    stage: &'s Stage,
    case: Case,
    /// Names its operations, in their keys and payloads.
    name: String,
    /// Requests before this one belong to other proofs.
    from: usize,
    operations: Vec<Uuid>,
}

impl Scene<'_> {
    async fn replay(&mut self) -> anyhow::Result<()> {
        let refusal = self.status_for(Action::DeadLetter)?;
        self.stage.proxy.next(Fault::Refuse, refusal);
        let working = self.stage.work()?;
        let id = self.submit().await?;
        self.case
            .did(format!("Handed in one operation and had its first try refused with status {refusal}."));
        let failed = self.stage.settled(id).await?;
        self.case.expect("The operation, after the refusal", "waits for a person", waits(&failed));
        let first = self.stage.replay(id).await?;
        self.case.did("Had it tried again, as a person does.");
        self.case.expect("The answer to the replay", VerdictKind::Accepted, first.verdict);
        let done =
            self.stage.until(id, "completed", |thread| thread.operation.completed_at.is_some()).await?;
        self.case.expect("The operation, after the replay", "completed", done.operation.state());
        let sends = self.sends();
        self.case.expect("Sends that were refused and that reached the destination", "1 and 1", {
            let reached = sends.iter().filter(|send| send.reached()).count();
            format!("{} and {reached}", sends.len() - reached)
        });
        self.same_request(&sends);
        let second = self.stage.replay(id).await?;
        self.case.did("Asked for a second replay of what is done.");
        self.case.expect("The answer to the second replay", VerdictKind::AlreadyDone, second.verdict);
        self.nothing_more_is_sent().await;
        working.stop().await?;
        self.one_effect();
        Ok(())
    }

    async fn race(&mut self) -> anyhow::Result<()> {
        let other = self.stage.another_node().await?;
        let nodes = [&self.stage.engine, &other];
        let mut submitted = JoinSet::new();
        for sender in 0..SENDERS {
            let (intake, submission) =
                (nodes[sender % 2].intake().clone(), self.stage.submission(&self.name, &self.name)?);
            submitted.spawn(async move { intake.submit(submission).await });
        }
        let mut created = Vec::new();
        let mut duplicates = 0;
        for answer in submitted.join_all().await {
            match answer? {
                Accepted::Created(new) => created.push(new.id),
                Accepted::Duplicate(_) => duplicates += 1,
            }
        }
        self.case.did(format!("{SENDERS} senders handed in one operation at once, over two nodes."));
        self.operations.clone_from(&created);
        self.case.expect("Operations that were made", 1, created.len());
        self.case.expect("Senders that were told of the first one", SENDERS - 1, duplicates);
        let id = *created.first().context("no operation was made")?;

        let mut admitted = JoinSet::new();
        for worker in 0..WORKERS {
            let gate = nodes[worker % 2].gate().clone();
            admitted.spawn(async move { gate.admit(id).await });
        }
        let mut permits = Vec::new();
        let mut refused = 0;
        for admission in admitted.join_all().await {
            match admission? {
                Some(Admission::Send(permit)) => permits.push(permit),
                Some(Admission::Refused(VerdictKind::InFlight, _)) => refused += 1,
                Some(Admission::Refused(..)) | None => {}
            }
        }
        self.case.did(format!("{WORKERS} workers of both nodes asked to send it at once."));
        self.case.expect("Workers that may send", 1, permits.len());
        self.case.expect("Workers that were told it is under way", WORKERS - 1, refused);
        let sender = Sender::new(self.stage.engine.config(), self.stage.engine.ambient().clone())?;
        let mut settlements = Vec::new();
        for permit in permits {
            settlements.push(sender.send(permit).await);
        }
        self.stage.engine.gate().turn(&mut settlements, 0).await?;
        self.case.did("The one that may sent it; then both nodes went on working.");
        let working = self.stage.work()?;
        let also = Working::on(&other)?;
        let thread = self.stage.settled(id).await?;
        self.case.expect("The operation", "completed", thread.operation.state());
        let noted = thread.events.iter().filter(|event| event.kind == EventKind::Duplicate).count();
        self.case.expect("Duplicates on record with the operation", SENDERS - 1, noted);
        let skipped = thread.attempts.iter().filter(|attempt| attempt.outcome == Outcome::Skipped).count();
        self.case.expect("Tries on record as passed over", WORKERS - 1, skipped);
        self.nothing_more_is_sent().await;
        self.case.expect("Requests that reached the destination", 1, self.reached());
        working.stop().await?;
        also.stop().await?;
        other.db().close().await;
        self.one_effect();
        Ok(())
    }

    async fn exhaust(&mut self) -> anyhow::Result<()> {
        let refusal = self.status_for(Action::Retry)?;
        let allowed = usize::try_from(self.stage.subject.kind.retry.attempts)?;
        self.stage.proxy.always(Some((Fault::Refuse, refusal)));
        let working = self.stage.work()?;
        let id = self.submit().await?;
        self.case.did(format!(
            "Handed in one operation and had every try refused with status {refusal}, which says that nothing \
             happened and that trying again can help."
        ));
        let thread = self.stage.settled(id).await?;
        self.case.expect("Tries, of those that are allowed", allowed, self.sends().len());
        self.case.expect("The operation, in the end", "waits for a person", waits(&thread));
        if let Some(letter) = thread.letters.first() {
            self.case.expect(
                "What the dead letter says of the effect",
                "definitely_failed",
                letter.certainty,
            );
            self.case.expect("Why it waits", "attempts_used", letter.why);
        }
        self.nothing_more_is_sent().await;
        working.stop().await?;
        self.effects(0, "Effects at the destination");
        Ok(())
    }

    async fn recover(&mut self) -> anyhow::Result<()> {
        self.stage.proxy.next(Fault::HoldAnswer, 0);
        let id = self.submit().await?;
        let process = self.stage.other_process()?;
        let held = |passages: &[Passage]| passages.iter().any(|passage| passage.status.is_some());
        self.stage.until_passed(self.from, "the request was carried out", held).await?;
        let ended = process.kill()?;
        self.case.did(format!(
            "Handed in one operation, let a process of its own send it, waited until the destination had carried \
             it out, and killed the process before the answer reached it ({ended})."
        ));
        let thread = self.stage.thread(id).await?;
        let first =
            thread.attempts.first().map_or("nothing".to_owned(), |attempt| attempt.outcome.to_string());
        self.case.expect("What the dead process left on record", Outcome::Running, first);
        let working = self.stage.work()?;
        self.case.did("Started another process's worker on the same database.");
        let thread = self.after_doubt(id).await?;
        let noted = thread.events.iter().filter(|event| event.kind == EventKind::LeaseLost).count();
        self.case.expect("The lost worker is on record", 1, noted);
        working.stop().await
    }

    async fn lost_answer(&mut self) -> anyhow::Result<()> {
        self.stage.proxy.next(Fault::LoseAnswer, 0);
        let working = self.stage.work()?;
        let id = self.submit().await?;
        self.case.did(
            "Handed in one operation, let the destination carry it out, and closed the connection before the \
             answer.",
        );
        self.after_doubt(id).await?;
        working.stop().await
    }

    /// What is promised once it is in doubt whether something happened, by what the destination
    /// promises.
    async fn after_doubt(&mut self, id: Uuid) -> anyhow::Result<Thread> {
        let thread = self.stage.settled(id).await?;
        let first =
            thread.attempts.first().map_or("nothing".to_owned(), |attempt| attempt.outcome.to_string());
        self.case.expect("What the first try came to", Outcome::Uncertain, first);
        let class = self.stage.subject.class();
        let asked = self.stage.proxy.since(self.from).iter().any(|passage| passage.asks);
        match class {
            Class::Keyed | Class::Idempotent => {
                self.case.expect("The operation, in the end", "completed", thread.operation.state());
                self.case.expect("Requests that reached the destination", 2, self.reached());
                let sends = self.sends();
                self.same_request(&sends);
            }
            Class::LookupOnly => {
                self.case.expect("The operation, in the end", "completed", thread.operation.state());
                self.case.expect("The destination was asked", true, asked);
                self.case.expect("Requests that reached the destination", 1, self.reached());
            }
            Class::Neither => {
                self.case.expect("The operation, in the end", "waits for a person", waits(&thread));
                if let Some(letter) = thread.letters.first() {
                    let said = letter.certainty;
                    self.case.expect("What the dead letter says of the effect", "may_have_completed", said);
                }
                let replay = self.stage.replay(id).await?;
                self.case.did("Asked for a replay, as a person might.");
                self.case.expect("The answer to the replay", VerdictKind::NeedsOverride, replay.verdict);
                self.nothing_more_is_sent().await;
                self.case.expect("Requests that reached the destination", 1, self.reached());
            }
        }
        self.one_effect();
        if thread.operation.completed_at.is_some() && self.stage.subject.destination.question.is_some() {
            self.ask(id, &thread).await?;
        }
        Ok(thread)
    }

    /// Has the destination's own word on what is completed.
    async fn ask(&mut self, id: Uuid, thread: &Thread) -> anyhow::Result<()> {
        let answer = self.stage.ask(id).await?;
        let said = answer.finding.map_or("no answer", Finding::as_str);
        self.case.did(format!("Asked the destination about it afterwards: {said}."));
        if matches!(answer.finding, Some(Finding::Found | Finding::Absent | Finding::OtherPayload)) {
            self.case.expect("The destination's own word", Finding::Found, said);
        }
        let ours = thread.steps.first().and_then(|step| step.reference.clone());
        if let (Some(ours), Some(theirs)) = (ours, answer.reference) {
            self.case.expect("The id that it gives", ours, theirs);
        }
        Ok(())
    }

    async fn second_operation(&mut self) -> anyhow::Result<()> {
        let working = self.stage.work()?;
        let id = self.submit().await?;
        let again = self.stage.submit(self.stage.submission(&self.name, &self.name)?).await?;
        self.case.did("Handed in one operation, and then the same again.");
        let told = match again {
            Accepted::Duplicate(first) if first == id => "a duplicate of the first",
            Accepted::Duplicate(_) => "a duplicate of another",
            Accepted::Created(_) => "a new operation",
        };
        self.case.expect("What the same again is", "a duplicate of the first", told);
        let other = format!("{}-again", self.name);
        if self.stage.subject.kind.key.is_none() {
            let changed = self.stage.submit(self.stage.submission(&self.name, &other)?).await;
            self.case.did("Handed in the same key with other data.");
            let told = match changed {
                Err(SubmitError::KeyReused { .. }) => "refused".to_owned(),
                Err(error) => error.to_string(),
                Ok(_) => "accepted".to_owned(),
            };
            self.case.expect("What a known key with other data is", "refused", told);
            let second = self.stage.submit(self.stage.submission(&other, &self.name)?).await?;
            self.case.did("Handed in the same data under a key of its own, as somebody who means it.");
            self.second(second);
        } else {
            let second = self.stage.submit(self.stage.submission(&other, &other)?).await?;
            self.case.did("Handed in another operation of the type, whose data make another key.");
            self.second(second);
        }
        for id in self.operations.clone() {
            let thread = self.stage.settled(id).await?;
            self.case.expect("An operation, in the end", "completed", thread.operation.state());
        }
        self.nothing_more_is_sent().await;
        self.case.expect("Requests that reached the destination", 2, self.reached());
        working.stop().await?;
        self.effects(2, "Effects at the destination, of two operations");
        Ok(())
    }

    fn second(&mut self, accepted: Accepted) {
        let told = match accepted {
            Accepted::Created(new) => {
                self.operations.push(new.id);
                "accepted"
            }
            Accepted::Duplicate(_) => "taken for a duplicate",
        };
        self.case.expect("What the second operation is", "accepted", told);
    }
}

fn waits(thread: &Thread) -> String {
    if is_open(thread) { "waits for a person".to_owned() } else { thread.operation.state().to_string() }
}
