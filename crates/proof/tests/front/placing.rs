//! Which core serves a connection, and sessions that go from core to core.

use crate::bench::{ALICE, BOB, Bench, Setup, TARGET, TEST_UNIT_READY, read_10, run, write_10};
use crate::host::{Host, config, lun};
use env::CoreId;
use env::sim::{Fault, FaultPlan};
use iscsi::Isid;
use iscsi_target::{Load, SessionInfo};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Two cores on which a poll counts as much as a few commands of the real thing.
fn two_cores() -> Setup {
    let mut setup = Setup::default();
    setup.world.cores = 2;
    // No packet takes a second: who works, works all the time.
    setup.world.faults = FaultPlan::benign().with(Fault::NetSlow, 0);
    setup.world.work_per_poll = Duration::from_micros(40);
    setup
}

/// A session of an initiator port of its own.
async fn login(bench: &Bench, initiator: &str, port: u8) -> Host {
    let mut config = config(initiator, Some(TARGET));
    config.isid = Isid([0x80, 0, 0, 0, 0, port]);
    let host = bench.try_login(&config).await.expect("the login is taken");
    host.settle(0).await;
    host
}

/// Reads at depth 4 until it is asked to stop.
fn read_on(bench: &Bench, host: &Rc<Host>, stop: &Rc<Cell<bool>>) {
    for place in 0..4 {
        let (host, stop) = (Rc::clone(host), Rc::clone(stop));
        bench.spawn(async move {
            while !stop.get() {
                let done = host.command(0, &read_10(place * 8, 8), &[], 4096).await;
                assert_eq!(done.status, 0);
            }
        });
    }
}

async fn session_of(bench: &Bench, initiator: &str) -> SessionInfo {
    let sessions = bench.sessions().await;
    let mut of_it = sessions
        .into_iter()
        .filter(|one| one.initiator == initiator);
    of_it.next().expect("it has a session")
}

#[test]
fn a_new_connection_goes_to_the_core_that_works_least_not_to_the_one_with_fewest() {
    run(two_cores(), |bench| async move {
        let busy = Rc::new(login(&bench, ALICE, 1).await);
        let busy_core = session_of(&bench, ALICE).await.core;
        let mut idle = Vec::new();
        for port in 2..6 {
            idle.push(login(&bench, BOB, port).await);
            bench.sleep(Duration::from_secs(3)).await;
        }
        // Only those beside the busy one stay where connections would be counted.
        let sessions = bench.sessions().await;
        let near = sessions.iter().filter(|one| one.core == busy_core).count();
        assert!(near >= 2, "{sessions:?}");
        let stop = Rc::new(Cell::new(false));
        read_on(&bench, &busy, &stop);
        bench.sleep(Duration::from_secs(3)).await;
        let reported = session_of(&bench, ALICE).await;
        assert!(reported.load > Load(200), "{reported:?}");
        assert_eq!(session_of(&bench, BOB).await.load, Load(0));
        let cores = bench.server.cores(&bench.core).await;
        let (of_busy, of_idle) = match busy_core.0 {
            0 => (&cores[0], &cores[1]),
            _ => (&cores[1], &cores[0]),
        };
        assert!(of_busy.load >= reported.load && of_busy.busy > of_idle.busy);
        assert!(of_idle.load < Load(50), "{cores:?}");
        assert_eq!(of_busy.connections + of_idle.connections, 5);
        for port in 6..12 {
            idle.push(login(&bench, BOB, port).await);
            bench.sleep(Duration::from_secs(1)).await;
        }
        let after = bench.sessions().await;
        let now_near = after.iter().filter(|one| one.core == busy_core).count();
        assert_eq!(now_near, near, "{after:?}");
        stop.set(true);
        assert_eq!(busy.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
    });
}

#[test]
fn connections_that_come_together_are_spread_before_they_can_be_measured() {
    run(two_cores(), |bench| async move {
        let mut logins = Vec::new();
        for port in 1..=10 {
            let inner = bench.clone();
            logins.push(bench.start(async move { login(&inner, ALICE, port).await }));
        }
        let all = || logins.iter().all(|one| one.borrow().is_some());
        bench
            .until(Duration::from_secs(10), "all log in", all)
            .await;
        let mut on = BTreeMap::new();
        for session in bench.sessions().await {
            *on.entry(session.core).or_insert(0) += 1;
        }
        assert!(on.values().all(|count| (4..=6).contains(count)), "{on:?}");
    });
}

/// PERSISTENT RESERVE OUT with keys.
async fn reserve_out(host: &Host, action: u8, kind: u8, keys: [u64; 2]) -> u8 {
    let mut cdb = [0; 10];
    (cdb[0], cdb[1], cdb[2], cdb[8]) = (0x5F, action, kind, 24);
    let mut data = [0; 24];
    data[..8].copy_from_slice(&keys[0].to_be_bytes());
    data[8..16].copy_from_slice(&keys[1].to_be_bytes());
    host.command(0, &cdb, &data, 0).await.status
}

/// Asks the sessions of an initiator, if it has some, to go from core to core, until it is asked to
/// stop.
fn keep_moving(bench: &Bench, initiator: &'static str, stop: &Rc<Cell<bool>>) {
    let (inner, stop) = (bench.clone(), Rc::clone(stop));
    bench.spawn(async move {
        for turn in 0.. {
            let of_all = inner.sessions().await.into_iter();
            let to = CoreId(turn % inner.core.core_count());
            for session in of_all.filter(|one| one.initiator == initiator) {
                let (server, core) = (&inner.server, &inner.core);
                // It may have ended meanwhile.
                let _asked = server.move_session(core, session.number, to).await;
            }
            if stop.get() {
                return;
            }
            let pause = 300 + 700 * u64::from(turn % 3);
            inner.sleep(Duration::from_micros(pause)).await;
        }
    });
}

/// No slow packets, and as many cores as it takes.
fn cores(count: u16, seed: u64) -> Setup {
    let mut setup = two_cores();
    (setup.world.cores, setup.seed) = (count, seed);
    setup
}

/// Writes with their data in all the ways there are, and reads after them: what is read is what was
/// written last.
async fn write_and_read(host: Rc<Host>, place: u32, rounds: u8) {
    for round in 0..rounds {
        let blocks = [8, 64, 2048, 1][usize::from(round % 4)];
        let data = vec![round ^ place.to_be_bytes()[3]; usize::from(blocks) * 512];
        let first = host.send(0, &write_10(place * 2048, blocks), &data, 0);
        let read = read_10(place * 2048, blocks);
        assert_eq!(first.end().await.expect("it ends").status, 0);
        let read = host.command(0, &read, &[], data.len()).await;
        assert!(
            read.status == 0 && read.data_in.to_vec() == data,
            "round {round}"
        );
    }
}

#[test]
fn a_session_that_moves_loses_no_command_and_mixes_no_data() {
    for seed in 0..3 {
        run(cores(3, seed), |bench| async move {
            let host = Rc::new(login(&bench, ALICE, 1).await);
            let stop = Rc::new(Cell::new(false));
            keep_moving(&bench, ALICE, &stop);
            let works: Vec<_> = (0..8)
                .map(|place| bench.start(write_and_read(Rc::clone(&host), place, 24)))
                .collect();
            let all = || works.iter().all(|one| one.borrow().is_some());
            let limit = Duration::from_secs(60);
            bench.until(limit, "all is written and read", all).await;
            stop.set(true);
            let (moved, _) = bench.server.moves();
            // Between 18 and 31, by the seed.
            assert!(moved >= 12, "{moved} moves");
            let reported = session_of(&bench, ALICE).await;
            // What the settling took, and eight times 24 of each.
            assert!((384..390).contains(&reported.commands), "{reported:?}");
            assert_eq!((reported.in_progress, reported.latency().total()), (0, 384));
            host.logout();
            host.closed().await;
            bench.sleep(Duration::from_millis(50)).await;
            assert!(bench.sessions().await.is_empty());
            let cores = bench.server.cores(&bench.core).await;
            assert_eq!(cores.iter().map(|core| core.connections).sum::<usize>(), 0);
        });
    }
}

#[test]
fn a_session_that_moves_hears_of_each_reset_once_and_keeps_its_reservation() {
    for seed in 0..3 {
        run(cores(3, seed), |bench| async move {
            let alice = Rc::new(login(&bench, ALICE, 1).await);
            let bob = login(&bench, BOB, 2).await;
            // Registers, and reserves for writing alone.
            assert_eq!(reserve_out(&alice, 0, 0, [0, 7]).await, 0);
            assert_eq!(reserve_out(&alice, 1, 1, [7, 0]).await, 0);
            let stop = Rc::new(Cell::new(false));
            keep_moving(&bench, ALICE, &stop);
            for round in 0..40_u8 {
                // A reset aborts what is in progress: nothing is.
                assert_eq!(bob.function(5, lun(0), None).await, Ok(0));
                bob.settle(0).await;
                let mut reported = 0;
                while alice.command(0, &TEST_UNIT_READY, &[], 0).await.status != 0 {
                    reported += 1;
                }
                assert_eq!(reported, 1, "round {round}");
                let data = [round; 512];
                let write = write_10(3, 1);
                assert_eq!(alice.command(0, &write, &data, 0).await.status, 0);
                assert_eq!(bob.command(0, &write, &data, 0).await.status, 0x18);
            }
            stop.set(true);
            let (moved, _) = bench.server.moves();
            // Between 18 and 31, by the seed.
            assert!(moved >= 12, "{moved} moves");
            // Still one registration, of the port that it was: it releases what it reserved.
            assert_eq!(reserve_out(&alice, 2, 1, [7, 0]).await, 0);
            assert_eq!(
                bob.command(0, &write_10(3, 1), &[1; 512], 0).await.status,
                0
            );
        });
    }
}

#[test]
fn a_session_that_cannot_come_to_rest_stays_and_goes_on() {
    run(cores(2, 1), |bench| async move {
        let alice = Rc::new(login(&bench, ALICE, 1).await);
        alice.settle(1).await;
        let before = session_of(&bench, ALICE).await;
        bench.hang(0, &[volume::OpKind::Read]);
        let hanging = alice.send(0, &read_10(0, 8), &[], 4096);
        bench.sleep(Duration::from_millis(10)).await;
        let to = CoreId(1 - before.core.0);
        assert!(
            bench
                .server
                .move_session(&bench.core, before.number, to)
                .await
        );
        // While it tries, it hears nothing; then it goes on, also with more than its window.
        bench.sleep(Duration::from_millis(10)).await;
        let other = alice.command(1, &read_10(0, 8), &[], 4096);
        let other = bench
            .within(Duration::from_millis(60), "another unit", other)
            .await;
        assert_eq!(other.status, 0);
        assert_eq!(bench.server.moves(), (0, 1));
        assert_eq!(session_of(&bench, ALICE).await.core, before.core);
        bench.release(0);
        assert_eq!(hanging.end().await.expect("it ends").status, 0);
        assert!(
            bench
                .server
                .move_session(&bench.core, before.number, to)
                .await
        );
        bench.sleep(Duration::from_millis(10)).await;
        assert_eq!(session_of(&bench, ALICE).await.core, to);
        assert_eq!(bench.server.moves(), (1, 1));
        assert!(
            !bench
                .server
                .move_session(&bench.core, before.number, CoreId(2))
                .await
        );
        assert!(bench.server.drop_session(&bench.core, before.number).await);
        assert!(
            !bench
                .server
                .move_session(&bench.core, before.number, to)
                .await
        );
    });
}

#[test]
fn a_new_login_of_the_same_port_ends_a_session_wherever_it_went() {
    for seed in 0..4 {
        run(cores(3, seed), |bench| async move {
            let mut hosts = vec![login(&bench, ALICE, 1).await];
            let stop = Rc::new(Cell::new(false));
            keep_moving(&bench, ALICE, &stop);
            for _ in 0..20 {
                hosts.push(login(&bench, ALICE, 1).await);
                assert_eq!(bench.sessions().await.len(), 1);
            }
            stop.set(true);
            assert!(bench.server.moves().0 >= 5, "{:?}", bench.server.moves());
        });
    }
}

#[test]
fn sessions_that_share_a_core_while_another_rests_are_parted_and_then_left_alone() {
    run(two_cores(), |bench| async move {
        let alice = Rc::new(login(&bench, ALICE, 1).await);
        let bob = Rc::new(login(&bench, BOB, 2).await);
        let (of_alice, of_bob) = (
            session_of(&bench, ALICE).await,
            session_of(&bench, BOB).await,
        );
        if of_alice.core != of_bob.core {
            let together = bench
                .server
                .move_session(&bench.core, of_bob.number, of_alice.core);
            assert!(together.await);
            bench.sleep(Duration::from_millis(10)).await;
        }
        let begun = bench.server.moves();
        let stop = Rc::new(Cell::new(false));
        read_on(&bench, &alice, &stop);
        read_on(&bench, &bob, &stop);
        bench.sleep(Duration::from_secs(2)).await;
        assert_eq!(
            bench.server.moves(),
            begun,
            "not before it has stayed uneven"
        );
        bench.sleep(Duration::from_secs(5)).await;
        assert_eq!(bench.server.moves().0, begun.0 + 1);
        let now = (
            session_of(&bench, ALICE).await,
            session_of(&bench, BOB).await,
        );
        assert!(now.0.core != now.1.core, "{now:?}");
        bench.sleep(Duration::from_secs(8)).await;
        assert_eq!(bench.server.moves().0, begun.0 + 1);
        stop.set(true);
    });
}

#[test]
fn connections_of_a_pinned_portal_group_stay_on_its_cores() {
    run(cores(3, 1), |bench| async move {
        let mut groups = bench.server.export().portal_groups.clone();
        groups[0].cores = vec![CoreId(2)];
        bench.publish_portals(groups).await;
        let alice = Rc::new(login(&bench, ALICE, 1).await);
        let bob = Rc::new(login(&bench, BOB, 2).await);
        let stop = Rc::new(Cell::new(false));
        read_on(&bench, &alice, &stop);
        read_on(&bench, &bob, &stop);
        // The load is as uneven as it can be, and somebody asks besides.
        let number = session_of(&bench, ALICE).await.number;
        let asked = bench.server.move_session(&bench.core, number, CoreId(0));
        assert!(asked.await);
        bench.sleep(Duration::from_secs(6)).await;
        for session in bench.sessions().await {
            assert!(session.pinned && session.core == CoreId(2), "{session:?}");
            assert!(session.load > Load(100), "{session:?}");
        }
        assert_eq!(bench.server.moves(), (0, 0));
        stop.set(true);
    });
}

#[test]
fn a_deep_session_gets_a_turn_at_a_time_and_loses_nothing_by_it() {
    let mut setup = cores(1, 1);
    // Hundreds of commands come in one packet.
    setup.world.faults = FaultPlan::none();
    setup.world.window_bytes = 1 << 20;
    run(setup, |bench| async move {
        let deep = Rc::new(login(&bench, ALICE, 1).await);
        let before = session_of(&bench, ALICE).await.commands;
        let (inner, stop) = (bench.clone(), Rc::new(Cell::new(false)));
        let (midst, ended) = (Rc::new(Cell::new(0)), Rc::clone(&stop));
        let seen = Rc::clone(&midst);
        // Somebody else on its core reads how far the deep one is, over and over.
        bench.core.spawn(Box::pin(async move {
            while !ended.get() {
                let done = session_of(&inner, ALICE).await.commands - before;
                seen.set(seen.get() + u32::from(!done.is_multiple_of(500)));
            }
        }));
        for round in 0..20_u32 {
            let all: Vec<_> = (0..500)
                .map(|place| deep.send(0, &read_10((round + place) * 8, 8), &[], 4096))
                .collect();
            for one in all {
                assert_eq!(one.end().await.expect("it ends").status, 0);
            }
        }
        stop.set(true);
        assert_eq!(session_of(&bench, ALICE).await.commands, before + 10_000);
        // Without turns it would never be seen in the midst of its commands.
        assert!(midst.get() >= 20, "{} times", midst.get());
    });
}
