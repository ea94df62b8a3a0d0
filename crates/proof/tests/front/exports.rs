//! What sessions see of a new export.

use crate::bench::{
    ALICE, BOB, Bench, OTHER, Setup, TARGET, TEST_UNIT_READY, everyone, exported, grant,
    host_object, open_target, read_10, run, sense, write_10,
};
use crate::host::{Host, config};
use iscsi::LoginStatus;
use scsi::SenseKey;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// REPORT LUNS: the numbers.
async fn report_luns(host: &Host) -> Vec<u8> {
    let mut cdb = [0; 12];
    (cdb[0], cdb[8]) = (0xA0, 1);
    let list = host.command(0, &cdb, &[], 256).await.data_in.to_vec();
    list[8..].chunks(8).map(|entry| entry[1]).collect()
}

#[test]
fn a_lun_that_is_added_is_reported_by_reported_luns_data_has_changed_and_works() {
    run(Setup::default(), |bench| async move {
        bench.publish(vec![open_target(1)]).await;
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        bench.publish(vec![open_target(2)]).await;
        let reported = host.command(0, &TEST_UNIT_READY, &[], 0).await;
        assert_eq!(sense(&reported), (SenseKey::UnitAttention, 0x3F, 0x0E));
        assert_eq!(report_luns(&host).await, [0, 1]);
        host.settle(1).await;
        assert_eq!(
            host.command(1, &write_10(0, 1), &[1; 512], 0).await.status,
            0
        );
        // Reported once.
        assert_eq!(host.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
    });
}

#[test]
fn a_session_that_saw_no_unit_before_is_reported_when_it_gets_one() {
    run(Setup::default(), |bench| async move {
        // It has opened nothing yet when the LUN is added.
        bench.publish(vec![open_target(1)]).await;
        let host = bench.login(ALICE).await;
        bench.publish(vec![open_target(2)]).await;
        let mut reported = Vec::new();
        for _ in 0..3 {
            let end = host.command(0, &TEST_UNIT_READY, &[], 0).await;
            if end.status == 2 {
                reported.push(sense(&end).1);
            }
        }
        assert!(
            reported.contains(&0x29) || reported.contains(&0x3F),
            "{reported:?}"
        );
        assert_eq!(report_luns(&host).await, [0, 1]);
    });
}

#[test]
fn a_lun_that_now_is_another_unit_is_not_taken_for_the_old_one() {
    run(Setup::default(), |bench| async move {
        let host_object = everyone();
        bench
            .publish(vec![exported(TARGET, vec![grant(&host_object, 0)])])
            .await;
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        host.command(0, &write_10(0, 1), &[7; 512], 0).await;
        let mut other = grant(&host_object, 0);
        other.unit = logical_unit::UnitId(1);
        bench.publish(vec![exported(TARGET, vec![other])]).await;
        let first = host.command(0, &read_10(0, 1), &[], 512).await;
        assert_eq!(first.status, 2, "not data of a unit that it does not know");
        assert_eq!(sense(&first).0, SenseKey::UnitAttention);
        host.settle(0).await;
        let read = host.command(0, &read_10(0, 1), &[], 512).await;
        assert_eq!(read.data_in.to_vec(), [0; 512]);
    });
}

/// What a host finds at a LUN that it has no more.
async fn finds_nothing(host: &Host) {
    assert_eq!(report_luns(host).await, Vec::<u8>::new());
    let gone = host.command(0, &TEST_UNIT_READY, &[], 0).await;
    assert_eq!(sense(&gone), (SenseKey::IllegalRequest, 0x25, 0));
}

#[test]
fn a_session_whose_target_is_removed_goes_on_without_luns_until_another_one_has_its_name() {
    run(Setup::default(), |bench| async move {
        let host_object = everyone();
        let other = exported(OTHER, vec![grant(&host_object, 0)]);
        let two = || vec![open_target(2), other.clone()];
        bench.publish(two()).await;
        let first = bench.login(ALICE).await;
        let second = bench.try_login(&config(ALICE, Some(OTHER))).await.unwrap();
        first.settle(0).await;
        second.settle(0).await;
        bench.publish(vec![open_target(2)]).await;
        finds_nothing(&second).await;
        assert!(bench.sessions().await[1].luns.is_empty());
        // Nobody comes in any more, and who is in may leave in order.
        let reported = bench.try_login(&config(BOB, Some(OTHER))).await;
        assert_eq!(
            reported.err().unwrap().status,
            Some(LoginStatus::TargetRemoved)
        );
        first.settle(0).await;

        // The same one is back.
        bench.publish(two()).await;
        second.settle(0).await;
        assert_eq!(report_luns(&second).await, [0]);

        // Another one has its name: its port is not the session's.
        bench.publish(vec![open_target(2)]).await;
        let mut made_anew = other.clone();
        made_anew.relative_port = 7;
        bench.publish(vec![open_target(2), made_anew]).await;
        assert_eq!(bench.sessions().await.len(), 1);
        bench
            .within(SECOND, "the end of the session", second.closed())
            .await;
        first.settle(0).await;
    });
}

#[test]
fn a_host_whose_last_grant_is_taken_away_stays_without_luns_and_has_it_back_in_the_same_session() {
    run(Setup::default(), |bench| async move {
        let (alice_object, bob_object) = (
            host_object("alice", ALICE, None),
            host_object("bob", BOB, None),
        );
        let grants = vec![grant(&alice_object, 0), grant(&bob_object, 0)];
        let both = exported(TARGET, grants);
        let bobs = exported(TARGET, vec![grant(&bob_object, 0)]);
        bench.publish(vec![both.clone()]).await;
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        alice.settle(0).await;
        bob.settle(0).await;
        for _ in 0..2 {
            bench.publish(vec![bobs.clone()]).await;
            finds_nothing(&alice).await;
            let again = bench.try_login(&config(ALICE, Some(TARGET))).await;
            let reported = again.err().unwrap().status;
            assert_eq!(reported, Some(LoginStatus::AuthorizationFailure));
            assert_eq!(bob.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
            bench.publish(vec![both.clone()]).await;
            alice.settle(0).await;
            let read = alice.command(0, &read_10(0, 1), &[], 512).await;
            assert_eq!(read.status, 0);
        }
        bench.publish(vec![bobs]).await;
        alice.logout();
        bench.within(SECOND, "the logout", alice.closed()).await;
        assert_eq!(alice.logged_out(), Some(0), "it may leave in order");
    });
}

// spec: RFC 7143 11.9.1 "AsyncEvent".
#[test]
fn a_target_that_goes_into_maintenance_asks_for_logout_and_ends_who_stays() {
    run(Setup::default(), |bench| async move {
        let host_object = everyone();
        let other = exported(OTHER, vec![grant(&host_object, 1)]);
        bench.publish(vec![open_target(2), other.clone()]).await;
        let (stays, leaves) = (bench.login(ALICE).await, bench.login(BOB).await);
        let elsewhere = bench.try_login(&config(BOB, Some(OTHER))).await.unwrap();
        stays.settle(0).await;
        elsewhere.settle(1).await;
        let mut resting = open_target(2);
        resting.maintenance = true;
        bench
            .within(
                SECOND,
                "publish",
                bench.publish(vec![resting.clone(), other.clone()]),
            )
            .await;
        for host in [&stays, &leaves] {
            let (event, parameters) = bench
                .within(SECOND, "the request to log out", host.until_async())
                .await;
            assert_eq!(event, 1);
            assert!(parameters[2] > 0, "with time for it");
        }
        leaves.logout();
        bench.within(SECOND, "the logout", leaves.closed()).await;
        assert_eq!(leaves.logged_out(), Some(0));
        assert_eq!(stays.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
        // Another publish in between does not give it more time.
        bench.sleep(Duration::from_secs(20)).await;
        bench.publish(vec![resting, other.clone()]).await;
        bench
            .within(Duration::from_secs(15), "the end", stays.closed())
            .await;
        assert_eq!(stays.asyncs().len(), 1, "asked once");
        assert!(elsewhere.asyncs().is_empty());
        assert_eq!(
            elsewhere.command(1, &TEST_UNIT_READY, &[], 0).await.status,
            0
        );
        bench.publish(vec![open_target(2), other]).await;
        bench.login(ALICE).await.settle(0).await;
    });
}

#[test]
fn maintenance_that_ends_before_its_grace_leaves_the_sessions_that_stayed() {
    run(Setup::default(), |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        let mut resting = open_target(2);
        resting.maintenance = true;
        bench.publish(vec![resting]).await;
        bench
            .within(SECOND, "the request", host.until_async())
            .await;
        bench.publish(vec![open_target(2)]).await;
        bench.sleep(Duration::from_secs(90)).await;
        assert!(!host.is_closed());
        assert_eq!(host.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
    });
}

async fn write_a_hundred_times(bench: Bench, number: u8) {
    let host = bench.login(&format!("iqn.x:host{number}")).await;
    host.settle(0).await;
    let cdb = write_10(u32::from(number) * 64, 8);
    for round in 0..100 {
        let end = host.command(0, &cdb, &[round; 4096], 0).await;
        let changed = end.status == 2 && sense(&end).0 == SenseKey::UnitAttention;
        assert!(end.status == 0 || changed, "{end:?}");
    }
    assert!(host.asyncs().is_empty());
}

#[test]
fn publishing_every_few_milliseconds_under_load_disturbs_no_session() {
    for seed in 0..5 {
        let setup = Setup {
            seed,
            ..Setup::default()
        };
        run(setup, |bench| async move {
            let mut done = Vec::new();
            for number in 0..6_u8 {
                done.push(bench.start(write_a_hundred_times(bench.clone(), number)));
            }
            let mut units = 1;
            while done.iter().any(|slot| slot.borrow().is_none()) {
                bench
                    .within(SECOND, "publish", bench.publish(vec![open_target(units)]))
                    .await;
                units = 3 - units;
                bench.sleep(Duration::from_millis(3)).await;
            }
        });
    }
}

#[test]
fn an_export_that_is_published_during_a_login_is_the_one_that_counts() {
    for seed in 0..60 {
        let setup = Setup {
            seed,
            ..Setup::default()
        };
        run(setup, move |bench| async move {
            let bob = host_object("bob", BOB, None);
            let again = bench.clone();
            let login =
                bench.start(async move { again.try_login(&config(ALICE, Some(TARGET))).await });
            bench.sleep(Duration::from_micros(seed * 40)).await;
            bench
                .publish(vec![exported(TARGET, vec![grant(&bob, 0)])])
                .await;
            bench.sleep(SECOND).await;
            let sessions = bench.sessions().await;
            let login = login.borrow_mut().take();
            if let Some(Ok(host)) = login {
                finds_nothing(&host).await;
                assert!(sessions[0].luns.is_empty(), "nothing is granted");
            } else {
                assert!(sessions.is_empty(), "nothing is granted");
            }
        });
    }
}
