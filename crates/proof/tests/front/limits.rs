//! Bytes in flight are bounded for a session and for a LUN, whatever hosts ask for; others go on.

use crate::bench::{
    ALICE, BLOCK, BOB, Bench, Setup, exported, grant, host_object, read_10, run, write_10,
};
use crate::host::{Host, lun};
use env::sim::{Fault, FaultPlan};
use std::sync::Arc;
use std::time::Duration;
use volume::OpKind;

const SECOND: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;
const MIB_U64: u64 = 1 << 20;

/// Bytes that the commands of LUN `number` hold.
async fn held(bench: &Bench, number: u64) -> u64 {
    let unit = logical_unit::UnitId(number);
    let all = logical_unit::figures(&bench.core, vec![unit]).await;
    all[&unit].bytes_in_flight
}

/// Bytes that the daemon has out in all.
fn memory_out(bench: &Bench) -> u64 {
    let cores = bench.san.cores();
    let out = cores.iter().map(|core| core.pool().out_bytes() as u64);
    out.sum()
}

async fn hosts(bench: &Bench, count: usize) -> Vec<Host> {
    let mut hosts = Vec::new();
    for number in 0..count {
        let host = bench.login(&format!("iqn.x:greedy{number}")).await;
        host.settle(0).await;
        host.settle(1).await;
        hosts.push(host);
    }
    hosts
}

/// Writes of a megabyte, `each` by every host, all over LUN 0.
fn flood(hosts: &[Host], each: u32) -> Vec<crate::host::Sent> {
    let send = |(number, host): (usize, &Host)| -> Vec<crate::host::Sent> {
        let send = |at: u32| {
            let block = (u32::try_from(number).expect("few hosts") * each + at) % 19 * 2048;
            host.send(0, &write_10(block, 2048), &vec![7; MIB], 0)
        };
        (0..each).map(send).collect()
    };
    hosts.iter().enumerate().flat_map(send).collect()
}

#[test]
fn a_lun_s_limit_holds_over_all_cores_and_sessions_while_its_backend_hangs() {
    run(Setup::default(), |bench| async move {
        bench.units[0].set_bytes_in_flight_max(Some(6 * MIB_U64));
        let hosts = hosts(&bench, 6).await;
        bench.hang(0, &[OpKind::Write]);
        let sent = flood(&hosts, 32);
        for _ in 0..20 {
            bench.sleep(SECOND / 20).await;
            assert!(held(&bench, 0).await <= 6 * MIB_U64);
        }
        assert_eq!(held(&bench, 0).await, 6 * MIB_U64, "all of it is used");
        let faults = bench.faults[0].clone();
        let all = move || faults.hanging() == 6;
        bench.until(SECOND * 10, "their data", all).await;
        // The other unit of the same sessions, and a new session, go on.
        for host in &hosts {
            let data = vec![1; 64 * BLOCK];
            let write = host.command(1, &write_10(0, 64), &data, 0);
            let write = bench.within(SECOND, "another LUN", write).await;
            assert_eq!(write.status, 0);
        }
        let bob = bench.login(BOB).await;
        bench.within(SECOND, "a new session", bob.settle(1)).await;
        // Less is allowed now: nothing more begins until less is held.
        bench.units[0].set_bytes_in_flight_max(Some(2 * MIB_U64));
        bench.release(0);
        for one in sent {
            assert_eq!(one.end().await.expect("it ends").status, 0);
        }
        assert_eq!((held(&bench, 0).await, held(&bench, 1).await), (0, 0));
        assert_eq!(memory_out(&bench), 0);
    });
}

#[test]
fn a_session_s_limit_holds_for_all_its_luns_and_other_sessions_do_not_notice() {
    run(Setup::default(), |bench| async move {
        let limit = |most: Option<u64>| {
            let small = iscsi_target::Host {
                bytes_in_flight_max: most,
                ..iscsi_target::Host::clone(&host_object("small", ALICE, None))
            };
            let (small, all) = (Arc::new(small), host_object("all", "*", None));
            let grants = [&small, &all]
                .into_iter()
                .flat_map(|host| (0..2).map(|lun| grant(host, lun)));
            vec![exported(crate::bench::TARGET, grants.collect())]
        };
        bench.publish(limit(Some(4 * MIB_U64))).await;
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        alice.settle(0).await;
        alice.settle(1).await;
        bob.settle(0).await;
        bench.hang(0, &[OpKind::Write]);
        let sent = flood(std::slice::from_ref(&alice), 24);
        bench.sleep(SECOND).await;
        // Half of it, so that the LUN that hangs leaves room for others.
        assert_eq!(held(&bench, 0).await, 2 * MIB_U64);
        let sessions = bench.sessions().await;
        let reported: Vec<_> = sessions
            .iter()
            .map(|it| {
                (
                    it.initiator == ALICE,
                    it.bytes_in_flight_max,
                    it.bytes_in_flight,
                )
            })
            .collect();
        assert!(
            reported.contains(&(true, Some(4 * MIB_U64), 2 * MIB_U64)),
            "{reported:?}"
        );
        assert!(reported.contains(&(false, None, 0)), "{reported:?}");
        let data = vec![1; 512 * BLOCK];
        let write = alice.command(1, &write_10(0, 512), &data, 0);
        let write = bench.within(SECOND * 2, "her other LUN", write).await;
        assert_eq!(write.status, 0);
        let others = flood(std::slice::from_ref(&bob), 8);
        bench.sleep(SECOND / 2).await;
        assert_eq!(held(&bench, 0).await, 10 * MIB_U64, "bob has no limit");
        // Live, and without a new login.
        bench.publish(limit(Some(16 * MIB_U64))).await;
        bench.sleep(SECOND / 2).await;
        assert_eq!(held(&bench, 0).await, 16 * MIB_U64, "eight each");
        bench.release(0);
        for one in sent.into_iter().chain(others) {
            assert_eq!(one.end().await.expect("it ends").status, 0);
        }
        assert_eq!(memory_out(&bench), 0);
    });
}

#[test]
fn what_is_aborted_counts_until_the_backend_has_let_go_of_it() {
    run(Setup::default(), |bench| async move {
        bench.units[0].set_bytes_in_flight_max(Some(4 * MIB_U64));
        let hosts = hosts(&bench, 2).await;
        bench.hang(0, &[OpKind::Write]);
        for _ in 0..4 {
            drop(flood(&hosts, 16));
            bench.sleep(SECOND / 4).await;
            let reset = hosts[0].function(5, lun(0), None).await;
            assert_eq!(reset, Ok(0));
            assert!(memory_out(&bench) <= 4 * MIB_U64, "{}", memory_out(&bench));
        }
        let hanging = bench.faults[0].hanging() as u64;
        assert!((1..=4).contains(&hanging), "{hanging}");
        assert_eq!(held(&bench, 0).await, hanging * MIB_U64);
        bench.release(0);
        bench.sleep(SECOND).await;
        assert_eq!((held(&bench, 0).await, memory_out(&bench)), (0, 0));
    });
}

fn slow_writes(each: Duration) -> volume_test::FaultRule {
    volume_test::FaultRule {
        kinds: vec![OpKind::Write],
        range: None,
        skip: 0,
        times: u64::MAX,
        action: volume_test::Action::Delay(each),
    }
}

#[test]
fn at_a_limited_lun_a_session_at_depth_one_is_not_starved_by_one_at_depth_30() {
    let mut setup = Setup::default();
    // Waiting for the limit is what is judged, not a slow network.
    setup.world.faults = FaultPlan::benign().with(Fault::NetSlow, 0);
    run(setup, |bench| async move {
        bench.units[0].set_bytes_in_flight_max(Some(4 * MIB_U64));
        let (greedy, modest) = (bench.login(ALICE).await, bench.login(BOB).await);
        greedy.settle(0).await;
        modest.settle(0).await;
        bench.faults[0].add(slow_writes(Duration::from_millis(2)));
        let mut ended = std::collections::VecDeque::from(flood(std::slice::from_ref(&greedy), 30));
        let work = async {
            for _ in 0..50 {
                let before = bench.host_core.now();
                let write = modest.command(0, &write_10(0, 256), &vec![9; 256 * BLOCK], 0);
                assert_eq!(write.await.status, 0);
                let took = bench.host_core.now().since(before);
                assert!(took < SECOND / 2, "{took:?}");
                // The other one always has about thirty.
                while ended.len() > 26 {
                    ended.pop_front().expect("there are some").end().await;
                }
                ended.extend(flood(std::slice::from_ref(&greedy), 4));
            }
        };
        bench.within(SECOND * 30, "fifty small writes", work).await;
        for one in ended {
            assert_eq!(one.end().await.expect("it ends").status, 0);
        }
        let read = modest.command(0, &read_10(0, 8), &[], 8 * BLOCK).await;
        assert_eq!(read.status, 0);
    });
}

/// Where nothing but waiting is to be judged: no slow network, no pings.
fn quiet() -> Setup {
    let mut setup = Setup {
        settings: iscsi_target::Settings {
            ping_after: SECOND * 600,
            ..iscsi_target::Settings::default()
        },
        limit: SECOND * 300,
        ..Setup::default()
    };
    setup.world.faults = FaultPlan::benign().with(Fault::NetSlow, 0);
    setup
}

#[test]
fn sessions_that_wait_at_a_limited_lun_cost_nothing_and_begin_in_their_order() {
    run(quiet(), |bench| async move {
        bench.units[0].set_bytes_in_flight_max(Some(128 * BLOCK as u64));
        let hosts = hosts(&bench, 150).await;
        bench.hang(0, &[OpKind::Write]);
        let mut writes = Vec::new();
        for (number, host) in hosts.iter().enumerate() {
            for _ in 0..2 {
                let sent = host.send(0, &write_10(0, 128), &vec![7; 128 * BLOCK], 0);
                writes.push((number, sent));
            }
            bench.sleep(SECOND / 100).await;
        }
        let before = bench.world.steps();
        bench.sleep(SECOND * 20).await;
        let steps = bench.world.steps() - before;
        assert!(steps < 3000, "{steps} steps while nothing happens");
        assert_eq!(held(&bench, 0).await, 128 * BLOCK as u64);
        let ended = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        for (number, sent) in writes {
            let ended = std::rc::Rc::clone(&ended);
            bench.spawn(async move {
                assert_eq!(sent.end().await.expect("it ends").status, 0);
                ended.borrow_mut().push(number);
            });
        }
        let (before, count) = (bench.world.steps(), 2 * hosts.len());
        bench.release(0);
        bench.faults[0].add(slow_writes(SECOND / 100));
        let all = || ended.borrow().len() == count;
        bench.until(SECOND * 60, "all writes", all).await;
        let each = (bench.world.steps() - before) / count as u64;
        // One of each in turn. The first host had one under way when it came to wait, before all
        // others.
        let turns = [0].into_iter().chain(0..hosts.len()).chain(1..hosts.len());
        let order: Vec<usize> = turns.collect();
        assert_eq!(*ended.borrow(), order);
        assert!(each < 200, "{each} steps a write, however many wait");
    });
}
