//! Which core serves a connection.

use crate::bench::{ALICE, BOB, Bench, Setup, TARGET, TEST_UNIT_READY, read_10, run};
use crate::host::{Host, config};
use env::sim::{Fault, FaultPlan};
use iscsi::Isid;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use target::{Load, SessionInfo};

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

/// Reads at depth 4 until it is told to stop.
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
        let beside = sessions.iter().filter(|one| one.core == busy_core).count();
        assert!(beside >= 2, "{sessions:?}");
        let stop = Rc::new(Cell::new(false));
        read_on(&bench, &busy, &stop);
        bench.sleep(Duration::from_secs(3)).await;
        let told = session_of(&bench, ALICE).await;
        assert!(told.load > Load(200), "{told:?}");
        assert_eq!(session_of(&bench, BOB).await.load, Load(0));
        let cores = bench.server.cores(&bench.core).await;
        let (of_busy, of_idle) = match busy_core.0 {
            0 => (&cores[0], &cores[1]),
            _ => (&cores[1], &cores[0]),
        };
        assert!(of_busy.load >= told.load && of_busy.busy > of_idle.busy);
        assert!(of_idle.load < Load(50), "{cores:?}");
        assert_eq!(of_busy.connections + of_idle.connections, 5);
        for port in 6..12 {
            idle.push(login(&bench, BOB, port).await);
            bench.sleep(Duration::from_secs(3)).await;
        }
        let after = bench.sessions().await;
        let now_beside = after.iter().filter(|one| one.core == busy_core).count();
        assert_eq!(now_beside, beside, "{after:?}");
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
