//! What comes behind a task management function of its own nexus, before that is answered.

use super::SOON;
use super::bench::{Bench, Slot, filled, read_10, write_10};
use crate::{Attribute, Nexus, UnitAttention};
use env::LocalFuture;
use scsi::Status;
use std::cell::Cell;
use std::rc::Rc;

/// A function of a nexus, and what it is called.
type Function = (&'static str, fn(&Nexus) -> LocalFuture<()>);

const FUNCTIONS: [Function; 3] = [
    ("ABORT TASK SET", Nexus::abort_task_set),
    ("CLEAR TASK SET", Nexus::clear_task_set),
    ("LOGICAL UNIT RESET", |nexus| {
        nexus.reset_unit(UnitAttention::LogicalUnitReset)
    }),
];

fn start(bench: &Bench, nexus: &Rc<Nexus>, cdb: &[u8], tag: u32, data: &[u8]) -> Slot {
    bench.start(nexus, cdb, Attribute::Simple, tag, data)
}

/// The function reaches all cores while the backend has every command; then that lets go of them.
fn settles(bench: &Bench, nexus: &Nexus, function: LocalFuture<()>) {
    let answered = Rc::new(Cell::new(false));
    let says = Rc::clone(&answered);
    nexus.unit().core().spawn(Box::pin(async move {
        function.await;
        says.set(true);
    }));
    bench.settle(SOON);
    bench.medium.release();
    bench.settle(SOON);
    assert!(answered.get(), "the function is answered");
}

// spec: RFC 7143 4.2.3.3 "Standard Multi-Task Abort Semantics": of the own session, tasks with a
// lower CmdSN than the function are affected.
#[test]
fn it_is_carried_out_and_answered_while_what_came_before_is_aborted() {
    for (seed, (name, function)) in (1..).zip(FUNCTIONS) {
        let bench = Bench::new(seed);
        let nexus = bench.nexus(0, "a");
        bench.medium.hang();
        let before = start(&bench, &nexus, &write_10(0, 1), 1, &filled(1, 1));
        bench.settle(SOON);
        let answered = function(&nexus);
        // In the same turn of the core: nothing of the function has reached another core yet.
        let behind = start(&bench, &nexus, &read_10(8, 1), 2, &[]);
        settles(&bench, &nexus, answered);
        assert!(before.is_silent(), "{name}");
        // A reset is reported to whoever comes behind it and finds it done.
        let status = behind.response().status;
        assert!(
            matches!(status, Status::Good | Status::CheckCondition),
            "{name}: {status:?}"
        );
    }
}

#[test]
fn what_others_have_is_aborted_by_those_functions_that_are_for_all() {
    for (seed, (name, function)) in (1..).zip(FUNCTIONS) {
        let bench = Bench::new(seed);
        let (nexus, other) = (bench.nexus(0, "a"), bench.nexus(1, "b"));
        bench.medium.hang();
        let others = start(&bench, &other, &read_10(0, 1), 1, &[]);
        bench.settle(SOON);
        let answered = function(&nexus);
        settles(&bench, &nexus, answered);
        let expected = match name {
            "ABORT TASK SET" => Status::Good,
            _ => Status::TaskAborted,
        };
        assert_eq!(others.response().status, expected, "{name}");
    }
}
