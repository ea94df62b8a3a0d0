//! Commands that another host's function aborted: each is answered once, by its session or by its
//! own future, whichever comes first.

use super::SOON;
use super::bench::{Bench, Slot, filled, read_10, write_10};
use super::groups::attentions;
use crate::{
    Arrival, Attribute, LogicalUnit, Nexus, Outcome, Request, Task, TaskWatch, UnitAttention,
};
use env::LocalFuture;
use scsi::Status;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::Buf;
use volume::Access;

/// A command that has arrived; its data, if any, is on the way.
fn arrive(nexus: &Rc<Nexus>, cdb: &[u8], data_out: u64) -> Task {
    let now = nexus.unit().core().now();
    let request = Request {
        cdb,
        attribute: Attribute::Simple,
        tag: 1,
        data_out,
        first_byte: now,
        whole: now,
        stands_for: 0,
    };
    match nexus.arrive(request) {
        Arrival::Task { task, .. } => task,
        Arrival::Ended { response, .. } => panic!("ended with {:?}", response.status),
    }
}

/// Runs it, and what is seen of it from outside.
fn run(bench: &Bench, nexus: &Rc<Nexus>, cdb: &[u8], data: &[u8]) -> (Slot, TaskWatch) {
    let task = arrive(nexus, cdb, data.len() as u64);
    let watch = task.watch();
    let data = Buf::copy_of(data);
    let running: LocalFuture<Outcome> = Box::pin(async move { task.run(data).await });
    let slot = bench.start_future(nexus, running);
    bench.settle(SOON);
    (slot, watch)
}

/// LOGICAL UNIT RESET by another host.
fn reset(bench: &Bench, other: &Rc<Nexus>) {
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(3));
    let asks = other.port().clone();
    bench.run(async move {
        LogicalUnit::reset(&unit, &core, &asks, UnitAttention::LogicalUnitReset).await;
    });
}

/// How often the unit says that it ended a command with TASK ABORTED.
fn reported(bench: &Bench) -> u64 {
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    let endings = bench.run(async move { unit.endings(&core).await });
    let aborted = |status: &Status| *status == Status::TaskAborted;
    let counts = endings.iter().filter(|(ending, _)| aborted(&ending.status));
    counts.map(|(_, count)| *count).sum()
}

#[test]
fn one_that_the_backend_ends_before_its_session_polls_answers_for_itself() {
    for (seed, cdb, data) in [
        (1, read_10(0, 1), Vec::new()),
        (2, write_10(0, 1), filled(1, 1)),
    ] {
        let bench = Bench::new(seed);
        let (host, other) = (bench.nexus(0, "a"), bench.nexus(1, "b"));
        bench.medium.hang();
        let (slot, watch) = run(&bench, &host, &cdb, &data);
        reset(&bench, &other);
        assert!(!slot.ended(), "the backend still has it");
        bench.medium.release();
        bench.settle(SOON);
        assert_eq!(slot.response().status, Status::TaskAborted, "{cdb:x?}");
        drop(watch);
        assert_eq!(reported(&bench), 1);
    }
}

#[test]
fn one_that_its_session_has_answered_says_nothing_more() {
    for (seed, cdb, data) in [
        (1, read_10(0, 1), Vec::new()),
        (2, write_10(0, 1), filled(1, 1)),
    ] {
        let bench = Bench::new(seed);
        let (host, other) = (bench.nexus(0, "a"), bench.nexus(1, "b"));
        bench.medium.hang();
        let (slot, watch) = run(&bench, &host, &cdb, &data);
        assert!(watch.take_released().is_none(), "nobody has aborted it");
        reset(&bench, &other);
        let taken = watch.take_released();
        let Some(Outcome::Respond(response)) = taken else {
            panic!("nothing to say: {taken:?}");
        };
        assert_eq!(response.status, Status::TaskAborted);
        assert!(watch.take_released().is_none(), "once");
        bench.medium.release();
        bench.settle(SOON);
        assert!(slot.is_silent(), "{cdb:x?}");
        assert_eq!(reported(&bench), 1);
    }
}

#[test]
fn one_whose_data_comes_after_the_abort_is_answered() {
    let bench = Bench::new(3);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(1, "b"));
    let task = arrive(&host, &write_10(0, 1), 512);
    reset(&bench, &other);
    let data = Buf::copy_of(&filled(1, 1));
    let running: LocalFuture<Outcome> = Box::pin(async move { task.run(data).await });
    let slot = bench.start_future(&host, running);
    bench.settle(SOON);
    assert_eq!(slot.response().status, Status::TaskAborted);
    assert_eq!(bench.medium.first_byte(0), 0, "it wrote nothing");
    assert_eq!(reported(&bench), 1);
}

fn access(bench: &Bench, access: Access) {
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    bench.run(async move { unit.set_access(&core, access).await });
}

#[test]
fn what_waits_where_nobody_knows_who_serves_ends_with_its_connection_and_a_write_keeps_its_blocks()
{
    let bench = Bench::new(4);
    let (host, other) = (bench.nexus(0, "a"), bench.nexus(1, "b"));
    bench.medium.hang();
    let (write, of_write) = run(&bench, &host, &write_10(0, 1), &filled(1, 1));
    let (read, of_read) = run(&bench, &other, &read_10(8, 1), &[]);
    access(&bench, Access::Nowhere);
    for watch in [of_write, of_read] {
        let taken = watch.take_released();
        assert!(matches!(taken, Some(Outcome::Disconnect)), "{taken:?}");
    }
    // It is served here again, and what was given up is still with the backend.
    access(&bench, Access::Served);
    for nexus in [&host, &other] {
        assert_eq!(attentions(&bench, nexus), [[0x2a, 0x06]]);
    }
    let given = bench.medium.given();
    let (later, _watch) = run(&bench, &other, &read_10(0, 1), &[]);
    let (apart, _watch) = run(&bench, &other, &read_10(9, 1), &[]);
    bench.settle(Duration::from_secs(5));
    assert!(!later.ended() && !apart.ended(), "the backend hangs");
    assert_eq!(
        bench.medium.given() - given,
        1,
        "it gets nothing for those blocks"
    );
    bench.medium.release();
    bench.settle(SOON);
    assert!(write.is_silent() && read.is_silent());
    assert_eq!(later.response().data_in.to_vec(), filled(1, 1));
    assert_eq!(apart.response().status, Status::Good);
    // Those that are served elsewhere are answered by what serves them no more.
    bench.medium.hang();
    let (slot, watch) = run(&bench, &host, &read_10(0, 1), &[]);
    access(&bench, Access::Elsewhere(None));
    assert!(watch.take_released().is_none());
    bench.medium.release();
    bench.settle(SOON);
    assert_eq!(slot.response().status, Status::Good);
}
