//! How sessions end: reinstatement, logout, by an administrator, by silence.

use crate::bench::{ALICE, BOB, Bench, Setup, TARGET, TEST_UNIT_READY, read_10, run, write_10};
use crate::host::{Host, config};
use crate::raw::{Raw, ping};
use iscsi::Isid;
use iscsi_target::Settings;
use std::time::Duration;
use volume::OpKind;

const TWO_SECONDS: Duration = Duration::from_secs(2);

fn world_of(cores: u16, seed: u64) -> Setup {
    let mut setup = Setup {
        seed,
        ..Setup::default()
    };
    setup.world.cores = cores;
    setup
}

/// As many sessions as it takes to have one on each core.
async fn on_every_core(bench: &Bench) -> Vec<Host> {
    let mut hosts = Vec::new();
    for number in 0..4 {
        let name = format!("iqn.2026-11.example:filler{number}");
        hosts.push(bench.login(&name).await);
    }
    let cores: std::collections::BTreeSet<_> = bench
        .sessions()
        .await
        .iter()
        .map(|session| session.core)
        .collect();
    assert_eq!(cores.len(), usize::from(bench.core.core_count()));
    hosts
}

// spec: RFC 7143 6.3.5 "Session Reinstatement, Closure, and Timeout".
#[test]
fn reinstatement_ends_the_old_session_first_on_whatever_core_it_lives() {
    for seed in 0..20 {
        run(world_of(4, seed), |bench| async move {
            let mut keep = Vec::new();
            let mut old = bench.login(ALICE).await;
            old.settle(0).await;
            let mut cores = std::collections::BTreeSet::new();
            for round in 0..6 {
                let sent = old.send(0, &write_10(0, 8), &[round; 8 * 512], 0);
                let new = bench.login(ALICE).await;
                old.closed().await;
                drop(sent);
                let sessions = bench.sessions().await;
                let mine: Vec<_> = sessions
                    .iter()
                    .filter(|session| session.initiator == ALICE)
                    .collect();
                assert_eq!(mine.len(), 1, "one session of one initiator port");
                cores.insert(mine[0].core);
                let first = new.command(0, &TEST_UNIT_READY, &[], 0).await;
                assert_eq!(first.status, 2, "a new nexus has a unit attention");
                new.settle(0).await;
                old = new;
                // Other sessions move the next one to another core.
                let filler = format!("iqn.2026-11.example:filler{round}");
                keep.push(bench.login(&filler).await);
            }
            assert!(cores.len() > 1, "the sessions lived on several cores");
        });
    }
}

#[test]
fn reinstatement_takes_less_than_two_seconds_while_the_backend_of_the_old_session_hangs() {
    for seed in 0..10 {
        run(world_of(3, seed), |bench| async move {
            let _others = on_every_core(&bench).await;
            let old = bench.login(ALICE).await;
            old.settle(0).await;
            old.settle(1).await;
            bench.hang(0, &[OpKind::Write, OpKind::Read]);
            let _write = old.send(0, &write_10(0, 8), &[1; 8 * 512], 0);
            let _read = old.send(0, &read_10(64, 8), &[], 8 * 512);
            bench.sleep(Duration::from_millis(50)).await;
            assert_eq!(bench.faults[0].hanging(), 2);
            let login = bench.login(ALICE);
            let new = bench.within(TWO_SECONDS, "reinstatement", login).await;
            assert!(old.is_closed(), "the old session ended first");
            // The new one works at once, where nothing is in quarantine.
            let work = async {
                new.settle(1).await;
                new.settle(0).await;
                assert_eq!(
                    new.command(1, &write_10(0, 8), &[2; 8 * 512], 0)
                        .await
                        .status,
                    0
                );
            };
            bench.within(TWO_SECONDS, "the new session", work).await;
            // What overlaps waits for the old write, and then wins.
            bench.faults[0].clear();
            let newer = new.send(0, &write_10(0, 8), &[3; 8 * 512], 0);
            bench.sleep(Duration::from_secs(3)).await;
            bench.release(0);
            let newer = newer.end().await.expect("it ends");
            assert_eq!(newer.status, 0);
            let read = new.command(0, &read_10(0, 8), &[], 8 * 512).await;
            assert!(read.data_in.to_vec().iter().all(|byte| *byte == 3));
        });
    }
}

#[test]
fn two_logins_of_one_initiator_port_at_once_leave_one_session() {
    for seed in 0..30 {
        run(world_of(4, seed), |bench| async move {
            let first = bench.login(ALICE).await;
            let mut slots = Vec::new();
            for _ in 0..5 {
                let again = bench.clone();
                slots.push(
                    bench.start(async move { again.try_login(&config(ALICE, Some(TARGET))).await }),
                );
            }
            bench
                .until(TWO_SECONDS, "all logins are answered", || {
                    slots.iter().all(|slot| slot.borrow().is_some())
                })
                .await;
            bench.sleep(TWO_SECONDS).await;
            assert!(first.is_closed());
            let sessions = bench.sessions().await;
            assert_eq!(sessions.len(), 1, "{sessions:?}");
            let alive = slots
                .iter()
                .filter(|slot| {
                    slot.borrow()
                        .as_ref()
                        .is_some_and(|login| login.as_ref().is_ok_and(|host| !host.is_closed()))
                })
                .count();
            assert_eq!(alive, 1, "and one host believes so");
        });
    }
}

// spec: RFC 7143 11.14 "Logout Request", 11.15 "Logout Response".
#[test]
fn a_logout_is_answered_when_the_tasks_have_ended() {
    run(Setup::default(), |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        bench.hang(0, &[OpKind::Write]);
        let write = host.send(0, &write_10(0, 8), &[1; 8 * 512], 0);
        bench.sleep(Duration::from_millis(50)).await;
        assert_eq!(bench.faults[0].hanging(), 1);
        host.logout();
        bench.sleep(Duration::from_millis(300)).await;
        assert_eq!(
            host.logged_out(),
            None,
            "the write is still with the backend"
        );
        bench.release(0);
        bench.within(TWO_SECONDS, "the logout", host.closed()).await;
        assert_eq!(host.logged_out(), Some(0));
        assert!(write.end().await.is_none_or(|end| end.status == 0));
        bench.sleep(Duration::from_millis(50)).await;
        assert!(bench.sessions().await.is_empty());
    });
}

#[test]
fn a_logout_does_not_wait_for_ever_for_a_backend_that_hangs() {
    run(Setup::default(), |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        bench.hang(0, &[OpKind::Write]);
        let _write = host.send(0, &write_10(0, 8), &[1; 8 * 512], 0);
        bench.sleep(Duration::from_millis(50)).await;
        host.logout();
        bench.within(TWO_SECONDS, "the logout", host.closed()).await;
        assert_eq!(host.logged_out(), Some(0));
    });
}

#[test]
fn a_session_that_is_dropped_is_over_when_the_answer_comes_and_may_come_back() {
    run(Setup::default(), |bench| async move {
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        alice.settle(0).await;
        bob.settle(0).await;
        let number = bench
            .sessions()
            .await
            .iter()
            .find(|session| session.initiator == ALICE)
            .map(|session| session.number)
            .unwrap();
        assert!(bench.server.drop_session(&bench.core, number).await);
        assert_eq!(bench.sessions().await.len(), 1);
        alice.closed().await;
        assert!(!bench.server.drop_session(&bench.core, number).await);
        bench.login(ALICE).await.settle(0).await;
        assert_eq!(bob.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
    });
}

// spec: RFC 7143 11.9 "Asynchronous Message".
#[test]
fn a_stop_asks_every_initiator_to_log_out_and_ends_who_stays() {
    run(Setup::default(), |bench| async move {
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        let discovery = bench.try_login(&config(ALICE, None)).await.unwrap();
        alice.settle(0).await;
        let (server, core) = (bench.server.clone(), bench.core.clone());
        let stopped = bench.start(async move {
            server.stop(&core, Duration::from_secs(5)).await;
        });
        for host in [&alice, &bob] {
            let asked = bench
                .within(Duration::from_secs(1), "the request", host.until_async())
                .await;
            assert_eq!(asked, (1, [0, 0, 5]));
        }
        // What a host still has to say is heard.
        assert_eq!(
            alice.command(0, &write_10(0, 1), &[1; 512], 0).await.status,
            0
        );
        alice.logout();
        bench
            .within(Duration::from_secs(1), "the logout", alice.closed())
            .await;
        assert_eq!(alice.logged_out(), Some(0));
        assert!(!bob.is_closed(), "it has time left");
        assert!(stopped.borrow().is_none());
        bench
            .within(Duration::from_secs(6), "the end", bob.closed())
            .await;
        bench
            .until(TWO_SECONDS, "the stop ends", || stopped.borrow().is_some())
            .await;
        assert!(bench.sessions().await.is_empty());
        drop(discovery);
    });
}

// spec: RFC 7143 11.19 "NOP-In".
#[test]
fn an_initiator_that_goes_silent_is_pinged_and_ended_in_time_and_one_that_answers_stays() {
    let settings = Settings {
        ping_after: Duration::from_secs(5),
        ping_timeout: Duration::from_secs(3),
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    run(setup, |bench| async move {
        let (silent, answering) = (bench.login(ALICE).await, bench.login(BOB).await);
        silent.settle(0).await;
        answering.settle(0).await;
        silent.set_deaf(true);
        bench.sleep(Duration::from_millis(7500)).await;
        assert_eq!(bench.sessions().await.len(), 2, "not before its time");
        bench.sleep(Duration::from_secs(2)).await;
        let left = bench.sessions().await;
        assert_eq!(left.len(), 1);
        assert_eq!(left[0].initiator, BOB);
        bench.sleep(Duration::from_secs(40)).await;
        assert!(!answering.is_closed(), "it answers every ping");
        let alive = answering.command(0, &TEST_UNIT_READY, &[], 0).await;
        assert_eq!(alive.status, 0, "and no unit attention says otherwise");
    });
}

#[test]
fn a_half_open_connection_gives_up_its_session_and_its_place() {
    let mut setup = Setup::default();
    setup.settings.sessions_max = 1;
    setup.settings.ping_after = Duration::from_secs(5);
    setup.settings.ping_timeout = Duration::from_secs(5);
    run(setup, |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        let write = host.send(0, &write_10(0, 8), &[1; 8 * 512], 0);
        assert_eq!(write.end().await.unwrap().status, 0);
        bench.world.cut_link(&bench.san, &bench.hosts);
        bench.sleep(Duration::from_secs(11)).await;
        assert!(bench.sessions().await.is_empty());
        bench.world.mend_link(&bench.san, &bench.hosts);
        bench.login(BOB).await.settle(0).await;
    });
}

#[test]
fn a_session_whose_host_hangs_up_with_writes_underway_leaves_nothing_behind() {
    for seed in 0..20 {
        run(world_of(3, seed), move |bench| async move {
            let mut fillers = Vec::new();
            for number in 0..seed % 3 {
                fillers.push(bench.login(&format!("iqn.x:filler{number}")).await);
            }
            let host = bench.login(ALICE).await;
            host.settle(0).await;
            for at in 0..40 {
                drop(host.send(0, &write_10(at * 64, 64), &[1; 64 * 512], 0));
            }
            let pause = Duration::from_micros(50 * seed);
            bench.sleep(pause).await;
            host.hang_up();
            bench.sleep(Duration::from_secs(3)).await;
            assert_eq!(bench.sessions().await.len(), fillers.len());
            for core in bench.san.cores() {
                assert_eq!(core.pool().out_bytes(), 0, "memory comes back");
            }
            // No task is left in the set: an ORDERED command is not held up.
            let next = bench.login(BOB).await;
            next.settle(0).await;
            let ordered = next.send_as(
                crate::host::lun(0),
                &write_10(0, 1),
                &[9; 512],
                0,
                iscsi::bhs::Attribute::Ordered,
                false,
            );
            let ended = bench.within(TWO_SECONDS, "ORDERED", ordered.end()).await;
            assert_eq!(ended.unwrap().status, 0);
        });
    }
}

// spec: RFC 7143 11.12.5 "ISID".
#[test]
fn another_isid_is_another_session_of_the_same_initiator() {
    run(Setup::default(), |bench| async move {
        let first = bench.login(ALICE).await;
        let mut other = config(ALICE, Some(TARGET));
        other.isid = Isid([0x80, 0, 0, 0, 0, 2]);
        let second = bench.try_login(&other).await.unwrap();
        first.settle(0).await;
        second.settle(0).await;
        let sessions = bench.sessions().await;
        assert_eq!(sessions.len(), 2);
        assert_ne!(sessions[0].tsih, sessions[1].tsih);
        assert_ne!(sessions[0].isid, sessions[1].isid);
    });
}

#[test]
fn a_peer_that_breaks_the_protocol_after_login_ends_its_own_session_only() {
    run(Setup::default(), |bench| async move {
        let bob = bench.login(BOB).await;
        bob.settle(0).await;
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, "").await;
        // A data segment far beyond what was declared.
        let mut header = [0; 48];
        header[0] = 0x40;
        header[5..8].fill(0xFF);
        raw.send_bytes(&header).await;
        assert!(raw.is_closed().await);
        bench.sleep(Duration::from_millis(100)).await;
        assert_eq!(bench.sessions().await.len(), 1);
        assert_eq!(bob.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
    });
}

#[test]
fn what_does_not_match_its_digest_is_counted_by_what_was_damaged() {
    run(Setup::default(), |bench| async move {
        let with =
            |keys: &'static str| Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, keys);
        // 24 bytes of data, and four that are not their digest.
        let mut one = with("DataDigest=CRC32C\0").await;
        one.send(ping(), b"causeway, not its digest").await;
        one.send_bytes(&[0; 4]).await;
        let reported = one.receive().await.expect("an answer");
        assert_eq!(reported.opcode(), iscsi::bhs::Opcode::Reject);
        assert_eq!(reported.header[2], 2, "data digest error");
        assert_eq!(bench.server.digest_errors(), (0, 1));

        let mut other = with("HeaderDigest=CRC32C\0").await;
        other.send(ping(), &[]).await;
        other.send_bytes(&[0; 4]).await;
        assert!(other.is_closed().await);
        assert_eq!(bench.server.digest_errors(), (1, 1));
    });
}
