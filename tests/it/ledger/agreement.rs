//! The ledger and its model make the same moves, and agree after each.

use proptest::test_runner::Config as Cases;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tokio::runtime::Runtime;

use super::model::{End, Kind, Model, Move};
use super::system::System;
use crate::support::databases::TestDatabase;
use crate::support::lives;

/// On which database it is kept.
trait Kept: 'static {
    fn database(runtime: &Runtime) -> TestDatabase;
}

struct OnSqlite;
struct OnPostgres;

impl Kept for OnSqlite {
    fn database(_: &Runtime) -> TestDatabase {
        TestDatabase::sqlite()
    }
}

impl Kept for OnPostgres {
    fn database(runtime: &Runtime) -> TestDatabase {
        runtime.block_on(TestDatabase::postgres())
    }
}

struct Ledger<K>(std::marker::PhantomData<K>);

impl<K: Kept> StateMachineTest for Ledger<K> {
    type SystemUnderTest = System;
    type Reference = Model;

    fn init_test(_: &Model) -> System {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let database = K::database(&runtime);
        System::new(runtime, database)
    }

    fn apply(mut system: System, model: &Model, step: Move) -> System {
        system.moves(model, &step);
        system.agrees(model)
    }
}

/// Makes these moves in both.
fn agree(moves: &[Move]) {
    let mut model = Model::default();
    let mut system = Ledger::<OnSqlite>::init_test(&model);
    for step in moves {
        model = <Model as ReferenceStateMachine>::apply(model, step);
        system = Ledger::<OnSqlite>::apply(system, &model, step.clone());
    }
}

#[test]
fn an_absence_under_a_new_key_leaves_the_doubt_about_the_earlier_one() {
    let refused = [Move::Submit(Kind::Lookup), Move::Take(1), Move::Settle(0, End::No), Move::NewEffect(0)];
    let lost = [Move::Take(1), Move::Settle(0, End::Lost), Move::Wait];
    let absent = [Move::Take(1), Move::Settle(0, End::No)];
    agree(&[&refused[..], &lost, &absent].concat());
    let asked_by_a_person = [Move::Ask(0), Move::Take(1), Move::Settle(0, End::No)];
    agree(&[&refused[..], &lost, &absent, &asked_by_a_person].concat());
}

#[test]
fn a_question_that_is_out_is_answered_before_a_person_vouches() {
    let refused = [Move::Submit(Kind::Lookup), Move::Take(1), Move::Settle(0, End::No)];
    for end in [End::Yes, End::No, End::Lost] {
        let asked = [Move::Ask(0), Move::Take(1), Move::Resolve(0, true), Move::Settle(0, end)];
        agree(&[&refused[..], &asked, &[Move::Resolve(0, true)]].concat());
    }
}

#[test]
fn what_is_found_after_a_person_closed_it_changes_nothing() {
    let refused =
        [Move::Submit(Kind::Lookup), Move::Take(1), Move::Settle(0, End::No), Move::Resolve(0, false)];
    agree(&[&refused[..], &[Move::Ask(0), Move::Take(1), Move::Settle(0, End::Yes)]].concat());
}

fn cases(whole: u32) -> Cases {
    Cases { cases: lives(whole), failure_persistence: None, max_shrink_iters: 400, ..Cases::default() }
}

prop_state_machine! {
    #![proptest_config(cases(40))]
    #[test]
    fn the_ledger_agrees_with_the_model_on_sqlite(sequential 1..50 => Ledger<OnSqlite>);
}

prop_state_machine! {
    #![proptest_config(cases(8))]
    #[test]
    fn the_ledger_agrees_with_the_model_on_postgres(sequential 1..40 => Ledger<OnPostgres>);
}
