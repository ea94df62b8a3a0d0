//! Each stage of a command is counted where its time went, and nowhere else.

use crate::bench::{ALICE, BLOCK, BOB, Bench, Setup, TARGET, read_10, run, write_10};
use crate::host::Host;
use crate::raw::{Moves, Raw};
use env::sim::{Fault, FaultPlan};
use logical_unit::{StageTimes, UnitId, figures};
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BlockCount, Histogram, Lba, LbaRange};
use volume::OpKind;
use volume_test::{Action, FaultRule};

/// What is made slow takes at least so long.
const SLOW: Duration = Duration::from_millis(60);
/// What is not is done within this: a few round trips of the simulated network.
const QUICK: Duration = Duration::from_millis(20);

/// The times of LUN 0.
async fn times(bench: &Bench) -> StageTimes {
    let mut all = figures(&bench.core, vec![UnitId(0)]).await;
    all.remove(&UnitId(0)).expect("the unit is up").times
}

/// Network, queue, journal and backend of what a host has read and of what it has written since
/// this was asked last, of all hosts, as samples have it.
async fn sampled(bench: &Bench) -> BTreeMap<String, [[Histogram; 4]; 2]> {
    let mut all: BTreeMap<String, [[Histogram; 4]; 2]> = BTreeMap::new();
    for session in bench.server.session_stages(&bench.core).await {
        assert_eq!(session.target.as_deref(), Some(TARGET));
        assert_eq!(session.host.as_deref(), Some("everyone"));
        let sums = all.entry(session.initiator).or_default();
        for (sums, counts) in sums.iter_mut().zip(session.stages) {
            let stages = sums.iter_mut().zip(counts.iter().flat_map(|it| it.iter()));
            stages.for_each(|(sum, counts)| sum.add_each(counts));
        }
    }
    all
}

fn p50_p99(of: &Histogram) -> [u64; 2] {
    of.quantiles([500, 990]).expect("something was counted")
}

/// Reads of LUN `number` one after the other, at these blocks.
async fn reads(host: &Host, number: u8, blocks: impl IntoIterator<Item = u32>) {
    for block in blocks {
        let read = host.command(number, &read_10(block, 8), &[], 8 * BLOCK);
        assert_eq!(read.await.status, 0);
    }
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

#[test]
fn a_backend_that_is_slow_for_one_host_is_in_the_stages_of_that_host_and_of_no_other() {
    run(Setup::default(), |bench| async move {
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        alice.settle(0).await;
        bob.settle(1).await;
        assert_eq!(sampled(&bench).await, BTreeMap::new(), "nothing was read");
        slow(&bench, None);
        reads(&alice, 0, [0; 5]).await;
        reads(&bob, 1, [0; 50]).await;
        let all = sampled(&bench).await;
        let of = |who: &str| {
            let [reads, writes] = &all[who];
            assert_eq!(writes, &<[Histogram; 4]>::default());
            let [network, queue, journal, backend] = reads;
            assert_eq!((network.total(), journal.total()), (backend.total(), 0));
            let longest = [network, queue, backend].map(|it| Duration::from_micros(p50_p99(it)[1]));
            (backend.total(), longest)
        };
        let (count, [network, queue, backend]) = of(ALICE);
        assert_eq!(count, 5);
        assert!(network < QUICK && queue < QUICK, "{network:?} {queue:?}");
        assert!((SLOW..SLOW * 5 / 4).contains(&backend), "{backend:?}");
        let (count, longest) = of(BOB);
        assert_eq!(count, 50);
        assert!(longest.into_iter().all(|it| it < QUICK), "{longest:?}");
        assert_eq!(
            sampled(&bench).await,
            BTreeMap::new(),
            "it was said already"
        );
    });
}

/// Reads of LUN 0 that touch these blocks, or all, take [`SLOW`] and no longer.
fn slow(bench: &Bench, range: Option<LbaRange>) {
    bench.faults[0].add(FaultRule {
        kinds: vec![OpKind::Read],
        range,
        skip: 0,
        times: u64::MAX,
        action: Action::Delay(SLOW),
    });
}

#[test]
fn of_a_host_of_whose_commands_few_are_slow_the_sample_has_how_many_and_how_slow() {
    let setup = Setup {
        limit: Duration::from_secs(3_600),
        ..Setup::default()
    };
    run(setup, |bench| async move {
        let alice = bench.login(ALICE).await;
        alice.settle(0).await;
        slow(&bench, LbaRange::new(Lba(0), BlockCount(8)));
        // One of 32 is slow: of 2,500, some 600 are in the sample.
        let at = |number: u32| if number % 32 == 5 { 0 } else { 64 };
        let mut in_flight = std::collections::VecDeque::new();
        for number in 0..2_500 {
            in_flight.push_back(alice.send(0, &read_10(at(number), 8), &[], 8 * BLOCK));
            if in_flight.len() == 8
                && let Some(first) = in_flight.pop_front()
            {
                assert_eq!(first.end().await.expect("it ends").status, 0);
            }
        }
        for one in in_flight {
            assert_eq!(one.end().await.expect("it ends").status, 0);
        }
        let all = sampled(&bench).await;
        let [network, queue, _, backend] = &all[ALICE][0];
        // How long these are there is the machine's: only how many it stands for is known.
        for stage in [network, queue, backend] {
            let count = stage.total();
            assert!(count.abs_diff(2_500) < 64, "{count} for 2,500");
        }
        let [p50, p99] = p50_p99(backend).map(Duration::from_micros);
        assert!(p50 < QUICK && p99 >= SLOW, "{p50:?} {p99:?}");
    });
}

#[test]
fn what_a_sample_has_goes_along_with_its_session_and_outlives_it() {
    let mut setup = Setup::default();
    setup.world.cores = 2;
    run(setup, |bench| async move {
        let alice = bench.login(ALICE).await;
        alice.settle(0).await;
        reads(&alice, 0, [0; 30]).await;
        let before = bench.sessions().await;
        let to = env::CoreId(1 - before[0].core.0);
        let (server, number) = (bench.server.clone(), before[0].number);
        assert!(server.move_session(&bench.core, number, to).await);
        bench.sleep(QUICK).await;
        assert_eq!(bench.sessions().await[0].core, to);
        reads(&alice, 0, [0; 20]).await;
        assert!(server.drop_session(&bench.core, number).await);
        assert_eq!(bench.sessions().await.len(), 0);
        let all = sampled(&bench).await;
        assert_eq!(
            all[ALICE][0].each_ref().map(Histogram::total),
            [50, 50, 0, 50]
        );
        assert_eq!(sampled(&bench).await, BTreeMap::new());
    });
}
