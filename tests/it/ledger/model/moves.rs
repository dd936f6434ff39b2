//! What is done to the ledger, and how it is drawn.

use proptest::prelude::*;
use proptest::sample::select;
use proptest_state_machine::ReferenceStateMachine;

use super::{End, KINDS, Kind, LEASE, Model, Operation, Phase, TIMEOUT};

const ENDS: [End; 5] = [End::Yes, End::No, End::Unsent, End::Throttled, End::Lost];

/// Something that is done to the ledger. Indices count from the first, and wrap.
#[derive(Clone, Debug)]
pub(in crate::ledger) enum Move {
    Submit(Kind),
    /// The same submission again.
    Repeat(usize),
    /// Everything due is taken, a first part of it with so few slots.
    Take(usize),
    /// A permit comes back, in time or late.
    Settle(usize, End),
    /// All leases run out and are swept.
    Lapse,
    /// Time passes until an absence counts.
    Wait,
    Replay(usize),
    SameKey(usize),
    NewEffect(usize),
    /// A person closes the dead letter: true says that it was done.
    Resolve(usize, bool),
    Ask(usize),
    Pause(Kind),
    Resume(Kind),
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Move;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }

    fn transitions(model: &Self) -> BoxedStrategy<Move> {
        // Mostly one of those that it is meant for.
        let which = |meant: fn(&Operation) -> bool| {
            let all = model.operations.iter().enumerate();
            let some: Vec<usize> = all.filter(|(_, operation)| meant(operation)).map(|(at, _)| at).collect();
            if some.is_empty() {
                (0..64_usize).boxed()
            } else {
                prop_oneof![4 => select(some), 1 => 0..64_usize].boxed()
            }
        };
        let parked = |operation: &Operation| operation.phase == Phase::Parked;
        let open = |operation: &Operation| operation.phase == Phase::Parked && operation.letter.is_some();
        let askable = |operation: &Operation| operation.kind == Kind::Lookup;
        // Few operations that much happens to tell more than many that little does.
        let submit = if model.operations.len() < 3 { 6 } else { 1 };
        prop_oneof![
            submit => prop_oneof![1 => select(&KINDS[..]), 1 => Just(Kind::Lookup)].prop_map(Move::Submit),
            1 => which(|_| true).prop_map(Move::Repeat),
            5 => (1..5_usize).prop_map(Move::Take),
            8 => (0..64_usize, select(&ENDS[..])).prop_map(|(which, end)| Move::Settle(which, end)),
            2 => Just(Move::Lapse),
            2 => Just(Move::Wait),
            2 => which(parked).prop_map(Move::Replay),
            2 => which(parked).prop_map(Move::SameKey),
            2 => which(parked).prop_map(Move::NewEffect),
            2 => (which(open), any::<bool>()).prop_map(|(which, done)| Move::Resolve(which, done)),
            3 => which(askable).prop_map(Move::Ask),
            1 => select(&KINDS[..]).prop_map(Move::Pause),
            2 => select(&KINDS[..]).prop_map(Move::Resume),
        ]
        .boxed()
    }

    fn apply(mut model: Self, step: &Move) -> Self {
        (model.counted, model.verdict) = (false, None);
        match *step {
            Move::Submit(kind) => model.operations.push(Operation::new(kind)),
            Move::Repeat(_) => {}
            Move::Take(_) => model.take(),
            Move::Settle(which, end) => {
                let Some(which) = model.permit(which) else { return model };
                let permit = model.permits.remove(which);
                model.counted = permit.live;
                if permit.live {
                    model.operations[permit.operation].ended(permit, end);
                }
            }
            Move::Lapse => {
                model.now += LEASE + 1;
                for permit in model.permits.iter_mut().filter(|permit| permit.live) {
                    permit.live = false;
                    model.operations[permit.operation].ended(*permit, End::Lost);
                }
            }
            // Whoever holds a lease has to let go before it runs out.
            Move::Wait if model.anybody_holds() => {}
            Move::Wait => model.now += LEASE + TIMEOUT,
            Move::Replay(which) => {
                model.verdict = model.at(which).map(|at| model.replay(at));
            }
            Move::SameKey(which) => {
                model.verdict = model.at(which).map(|at| model.override_checks(at, false));
            }
            Move::NewEffect(which) => {
                model.verdict = model.at(which).map(|at| model.override_checks(at, true));
            }
            Move::Resolve(which, done) => {
                model.counted = model.at(which).is_some_and(|at| model.resolve(at, done));
            }
            Move::Ask(which) => {
                let at = model.at(which).filter(|at| model.operations[*at].kind == Kind::Lookup);
                model.counted = at.is_some_and(|at| model.ask(at));
            }
            Move::Pause(kind) if !model.paused.contains(&kind) => model.paused.push(kind),
            Move::Pause(_) => {}
            Move::Resume(kind) => model.paused.retain(|paused| *paused != kind),
        }
        model
    }
}
