//! Each stage of a command is counted where its time went, and nowhere else.

use crate::bench::{ALICE, BLOCK, BOB, Bench, Setup, TARGET, read_10, run, write_10};
use crate::raw::{Moves, Raw};
use env::sim::{Fault, FaultPlan};
use logical_unit::{StageTimes, UnitId, figures};
use std::time::Duration;
use units::Histogram;
use volume::OpKind;
use volume_test::Action;

/// What is made slow takes at least so long.
const SLOW: Duration = Duration::from_millis(60);
/// What is not is done within this: a few round trips of the simulated network.
const QUICK: Duration = Duration::from_millis(20);

/// The times of LUN 0.
async fn times(bench: &Bench) -> StageTimes {
    let mut all = figures(&bench.core, vec![UnitId(0)]).await;
    all.remove(&UnitId(0)).expect("the unit is up").times
}

/// There is one, and it took about so long.
fn one(stage: &Histogram, slow: bool) {
    assert_eq!(stage.total(), 1);
    let took = Duration::from_nanos(stage.sum_nanos());
    let expected = if slow {
        SLOW..SLOW + QUICK
    } else {
        Duration::ZERO..QUICK
    };
    assert!(expected.contains(&took), "{took:?}, expected {expected:?}");
}

#[test]
fn a_slow_backend_is_in_the_total_and_neither_in_queue_nor_network() {
    run(Setup::default(), |bench| async move {
        let alice = bench.login(ALICE).await;
        alice.settle(0).await;
        bench.faults[0].once(OpKind::Read, Action::Delay(SLOW));
        let read = alice.command(0, &read_10(0, 8), &[], 8 * BLOCK).await;
        assert_eq!(read.status, 0);
        let StageTimes { read, write } = times(&bench).await;
        one(&read.total, true);
        one(&read.queue, false);
        one(&read.network, false);
        assert_eq!(write, logical_unit::Times::default());
        let sessions = bench.sessions().await;
        one(&sessions[0].reads, true);
        assert_eq!(sessions[0].writes.total(), 0, "nothing was written");
    });
}

#[test]
fn waiting_for_a_command_that_holds_the_blocks_is_queue() {
    run(Setup::default(), |bench| async move {
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        alice.settle(0).await;
        bob.settle(0).await;
        // It reads first.
        bench.faults[0].once(OpKind::Read, Action::Delay(SLOW + QUICK / 2));
        let mut cdb = [0; 16];
        (cdb[0], cdb[13]) = (0x89, 1);
        let swap = alice.send(0, &cdb, &[0; 2 * BLOCK], 0);
        bench.sleep(QUICK / 4).await;
        let read = bob.command(0, &read_10(0, 8), &[], 8 * BLOCK).await;
        assert_eq!(read.status, 0);
        assert_eq!(swap.end().await.expect("it ends").status, 0);
        let StageTimes { read, .. } = times(&bench).await;
        one(&read.total, true);
        one(&read.queue, true);
        one(&read.network, false);
    });
}

#[test]
fn a_host_that_sends_its_data_late_is_network() {
    run(Setup::default(), |bench| async move {
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, "").await;
        let ready = crate::bench::TEST_UNIT_READY;
        raw.command(1, 1, false, &ready, Moves::Nothing).await;
        raw.receive_for(1).await;
        let write = write_10(0, 8);
        raw.command(2, 2, false, &write, Moves::Out(4096, &[]))
            .await;
        let r2t = raw.receive_for(2).await;
        bench.sleep(SLOW).await;
        raw.data_out(2, r2t.ttt(), 0, &[1; 4096]).await;
        assert_eq!(raw.receive_for(2).await.status(), 0);
        let StageTimes { write, .. } = times(&bench).await;
        one(&write.total, true);
        one(&write.network, true);
        one(&write.queue, false);
    });
}

#[test]
fn waiting_for_memory_is_queue_and_a_host_that_does_not_read_is_network() {
    let mut setup = Setup::default();
    setup.world.cores = 1;
    setup.world.pool_bytes = 8 << 20;
    // What is slow here is the host.
    setup.world.faults = FaultPlan::benign().with(Fault::NetSlow, 0);
    run(setup, |bench| async move {
        let alice = bench.login(ALICE).await;
        alice.settle(0).await;
        // Two of these take all of the session's share: the third one begins when the first has
        // ended.
        bench.hang(0, &[OpKind::Read]);
        let reads: Vec<_> = (0..3)
            .map(|_| alice.send(0, &read_10(0, 8192), &[], 8192 * BLOCK))
            .collect();
        bench.sleep(SLOW).await;
        assert_eq!(bench.faults[0].hanging(), 2);
        bench.release(0);
        for read in reads {
            assert_eq!(read.end().await.expect("it ends").status, 0);
        }
        let StageTimes { read, .. } = times(&bench).await;
        let queue = Duration::from_nanos(read.queue.sum_nanos());
        assert!(queue >= SLOW - QUICK, "one waited: {queue:?}");
        let network = Duration::from_nanos(read.network.sum_nanos());
        alice.set_deaf(true);
        let unread: Vec<_> = (0..8)
            .map(|_| alice.send(0, &read_10(0, 1024), &[], 1024 * BLOCK))
            .collect();
        bench.sleep(SLOW).await;
        alice.set_deaf(false);
        for read in unread {
            assert_eq!(read.end().await.expect("it ends").status, 0);
        }
        let StageTimes { read, .. } = times(&bench).await;
        assert_eq!(read.total.total(), 11);
        let unread = Duration::from_nanos(read.network.sum_nanos()) - network;
        assert!(
            unread >= SLOW,
            "eight answers waited for the host: {unread:?}"
        );
    });
}
