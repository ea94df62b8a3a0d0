//! Which unit attention each nexus finds, and that it finds no other.

use crate::bench::{ALICE, BOB, Bench, Setup, TARGET, TEST_UNIT_READY, open_target, run, sense};
use crate::host::{Host, config, lun};
use iscsi::Isid;
use scsi::SenseKey;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const LOGICAL_UNIT_RESET: u8 = 5;
const TARGET_COLD_RESET: u8 = 7;

const POWER_ON: (u8, u8) = (0x29, 0);
const HARD_RESET: (u8, u8) = (0x29, 2);
const UNIT_RESET: (u8, u8) = (0x29, 3);
const NEXUS_LOSS: (u8, u8) = (0x29, 7);
const LUNS_CHANGED: (u8, u8) = (0x3f, 0x0e);
const REGISTRATIONS_PREEMPTED: (u8, u8) = (0x2a, 5);

/// Units that were made just now.
fn new() -> Setup {
    Setup {
        are_new: true,
        ..Setup::default()
    }
}

/// All unit attentions that wait at a LUN.
async fn finds(host: &Host, number: u8) -> Vec<(u8, u8)> {
    let mut found = Vec::new();
    loop {
        let reported = host.command(number, &TEST_UNIT_READY, &[], 0).await;
        if reported.status == 0 {
            return found;
        }
        let (key, asc, ascq) = sense(&reported);
        assert_eq!(key, SenseKey::UnitAttention);
        found.push((asc, ascq));
    }
}

async fn leaves(bench: &Bench, host: Host) {
    host.logout();
    bench.within(SECOND, "the logout", host.closed()).await;
    bench
        .within(SECOND, "its end", async {
            while !bench.sessions().await.is_empty() {
                bench.sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
}

#[test]
fn a_port_that_was_never_here_is_reported_nothing_by_units_that_were_made_meanwhile() {
    run(new(), |bench| async move {
        let alice = bench.login(ALICE).await;
        for number in [0, 1] {
            assert_eq!(finds(&alice, number).await, []);
        }
        let bob = bench.login(BOB).await;
        assert_eq!(finds(&bob, 0).await, []);
        assert_eq!(finds(&alice, 0).await, []);
    });
}

#[test]
fn after_a_start_of_the_daemon_each_port_is_reported_power_on_once() {
    run(Setup::default(), |bench| async move {
        let alice = bench.login(ALICE).await;
        assert_eq!(finds(&alice, 0).await, [POWER_ON]);
        let bob = bench.login(BOB).await;
        assert_eq!(finds(&bob, 0).await, [POWER_ON]);
        assert_eq!(
            finds(&alice, 0).await,
            [],
            "what is reported to one is not reported to another"
        );
        // Another port of the same initiator.
        let mut other = config(ALICE, Some(TARGET));
        other.isid = Isid([0x80, 0, 0, 0, 0, 2]);
        let other = bench.try_login(&other).await.unwrap();
        assert_eq!(finds(&other, 0).await, [POWER_ON]);
        drop((bob, other));
    });
}

#[test]
fn a_port_that_logs_out_and_in_again_is_reported_nothing() {
    for setup in [new(), Setup::default()] {
        run(setup, |bench| async move {
            let alice = bench.login(ALICE).await;
            finds(&alice, 0).await;
            leaves(&bench, alice).await;
            let alice = bench.login(ALICE).await;
            assert_eq!(finds(&alice, 0).await, []);
        });
    }
}

// spec: RFC 7143 6.3.5 "Session Reinstatement, Closure, and Timeout", SAM-5 6.3.4 "I_T nexus loss".
#[test]
fn a_port_whose_session_was_reinstated_or_lost_is_reported_nexus_loss_where_it_had_a_nexus() {
    run(new(), |bench| async move {
        let alice = bench.login(ALICE).await;
        finds(&alice, 0).await;
        // The first session has not ended.
        let again = bench.login(ALICE).await;
        bench.within(SECOND, "its end", alice.closed()).await;
        assert_eq!(finds(&again, 0).await, [NEXUS_LOSS]);
        assert_eq!(finds(&again, 1).await, [], "it had no nexus there");
        // An administrator ends it.
        let number = bench.sessions().await[0].number;
        assert!(bench.server.drop_session(&bench.core, number).await);
        let again = bench.login(ALICE).await;
        assert_eq!(finds(&again, 0).await, [NEXUS_LOSS]);
        assert_eq!(finds(&again, 1).await, [NEXUS_LOSS]);
        assert_eq!(finds(&again, 0).await, [], "once");
    });
}

// spec: SAM-5 6.3.3 "Logical unit reset".
#[test]
fn resets_are_reported_to_every_port_also_to_those_that_are_away() {
    let resets = [
        (LOGICAL_UNIT_RESET, UNIT_RESET),
        (TARGET_COLD_RESET, HARD_RESET),
    ];
    for (function, reported) in resets {
        run(new(), move |bench| async move {
            let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
            let mut away = config("iqn.2026-11.example:carol", Some(TARGET));
            away.isid = Isid([0x80, 0, 0, 0, 0, 3]);
            let carol = bench.try_login(&away).await.unwrap();
            for host in [&alice, &bob, &carol] {
                assert_eq!(finds(host, 0).await, []);
            }
            carol.logout();
            bench.within(SECOND, "the logout", carol.closed()).await;
            bench.sleep(Duration::from_millis(50)).await;
            assert_eq!(bob.function(function, lun(0), None).await, Ok(0));
            // Who has asked for it gets it as well (SAM-5 6.3.3 "Logical unit reset": every I_T
            // nexus).
            for host in [&alice, &bob] {
                assert_eq!(finds(host, 0).await, [reported]);
            }
            let carol = bench.try_login(&away).await.unwrap();
            assert_eq!(finds(&carol, 0).await, [reported]);
            let stranger = config("iqn.2026-11.example:dave", Some(TARGET));
            let stranger = bench.try_login(&stranger).await.unwrap();
            assert_eq!(
                finds(&stranger, 0).await,
                [],
                "it was not reset for who never was here"
            );
        });
    }
}

#[test]
fn a_registration_that_is_taken_away_while_its_host_is_away_is_reported_when_it_comes_back() {
    run(new(), |bench| async move {
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        let out = |host: &Host, action: u8, key: u8, other: u8| {
            let mut list = [0; 24];
            (list[7], list[15]) = (key, other);
            host.command(0, &[0x5f, action, 1, 0, 0, 0, 0, 0, 24, 0], &list, 0)
        };
        for (host, key) in [(&alice, 1), (&bob, 2)] {
            assert_eq!(out(host, 0, 0, key).await.status, 0);
        }
        assert_eq!(out(&alice, 1, 1, 0).await.status, 0);
        alice.logout();
        bench.within(SECOND, "the logout", alice.closed()).await;
        bench.sleep(Duration::from_millis(50)).await;
        // PREEMPT.
        assert_eq!(out(&bob, 4, 2, 1).await.status, 0);
        let alice = bench.login(ALICE).await;
        assert_eq!(finds(&alice, 0).await, [REGISTRATIONS_PREEMPTED]);
        assert_eq!(finds(&bob, 0).await, []);
    });
}

#[test]
fn a_unit_that_is_taken_away_and_given_back_reports_that_the_nexus_was_lost() {
    run(new(), |bench| async move {
        let alice = bench.login(ALICE).await;
        assert_eq!(finds(&alice, 0).await, []);
        assert_eq!(finds(&alice, 1).await, []);
        bench.publish(vec![open_target(1)]).await;
        assert_eq!(finds(&alice, 0).await, [LUNS_CHANGED]);
        bench.publish(vec![open_target(2)]).await;
        assert_eq!(finds(&alice, 0).await, [LUNS_CHANGED]);
        assert_eq!(finds(&alice, 1).await, [NEXUS_LOSS]);
    });
}
