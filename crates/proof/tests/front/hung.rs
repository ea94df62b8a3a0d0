//! A backend that hangs holds up nobody but who touches its blocks, and aborted data never comes
//! back.

use crate::bench::{ALICE, BLOCK, BOB, Bench, Setup, TEST_UNIT_READY, read_10, run, write_10};
use crate::host::{Host, lun};
use std::time::Duration;
use volume::OpKind;

const TWO_SECONDS: Duration = Duration::from_secs(2);
const EVERYTHING: &[OpKind] = &OpKind::ALL;

fn seeded(seed: u64) -> Setup {
    Setup {
        seed,
        ..Setup::default()
    }
}

/// Fills LUN 0 with commands that hang.
fn hang_up(bench: &Bench, host: &Host) {
    bench.hang(0, EVERYTHING);
    for at in 0..8 {
        drop(host.send(0, &write_10(at * 8, 8), &[1; 8 * BLOCK], 0));
        drop(host.send(0, &read_10(1024 + at * 8, 8), &[], 8 * BLOCK));
    }
}

async fn work_next_to_the_hung_unit(host: &Host, round: u8) {
    let write = host.command(1, &write_10(0, 8), &[round; 8 * BLOCK], 0);
    assert_eq!(write.await.status, 0);
    // What needs no medium is answered on the hung unit, too.
    assert_eq!(host.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
    let inquiry = host.command(0, &[0x12, 0, 0, 0, 96, 0], &[], 96).await;
    assert_eq!(inquiry.status, 0);
}

#[test]
fn a_unit_that_hangs_leaves_other_units_sessions_logins_and_questions_alone() {
    for seed in 0..5 {
        run(seeded(seed), |bench| async move {
            let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
            for host in [&alice, &bob] {
                host.settle(0).await;
                host.settle(1).await;
            }
            hang_up(&bench, &alice);
            bench.sleep(Duration::from_millis(100)).await;
            assert_eq!(bench.faults[0].hanging(), 16);
            for round in 0..5_u8 {
                for host in [&alice, &bob] {
                    let work = work_next_to_the_hung_unit(host, round);
                    bench
                        .within(Duration::from_secs(1), "the other unit", work)
                        .await;
                }
                let login = bench.login(&format!("iqn.x:new{round}"));
                let new = bench.within(Duration::from_secs(1), "a login", login).await;
                bench
                    .within(TWO_SECONDS, "its first commands", async {
                        new.settle(0).await;
                        new.settle(1).await;
                    })
                    .await;
                let sessions = bench
                    .within(Duration::from_secs(1), "sessions", bench.sessions())
                    .await;
                assert!(sessions.iter().any(|session| session.in_progress == 16));
            }
        });
    }
}

// spec: RFC 7143 11.6 "Task Management Function Response".
#[test]
fn every_function_is_answered_within_two_seconds_while_the_backend_hangs() {
    // ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET WARM RESET, TARGET COLD RESET.
    for function in [2, 4, 5, 6, 7] {
        for seed in 0..5 {
            run(seeded(seed), move |bench| async move {
                let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
                alice.settle(0).await;
                bob.settle(0).await;
                hang_up(&bench, &alice);
                bench.sleep(Duration::from_millis(100)).await;
                let who = if function == 2 { &alice } else { &bob };
                let answer = who.function(function, lun(0), None);
                let answer = bench.within(TWO_SECONDS, "the function", answer).await;
                assert_eq!(answer, Ok(0), "function {function}");
                assert_eq!(bench.faults[0].hanging(), 16, "the backend has them still");
                // Neither session keeps a place for them.
                let in_progress: u64 = bench
                    .sessions()
                    .await
                    .iter()
                    .map(|session| session.in_progress)
                    .sum();
                assert_eq!(in_progress, 0, "function {function}");
            });
        }
    }
}

#[test]
fn two_functions_at_once_from_two_hosts_are_both_answered() {
    for seed in 0..10 {
        run(seeded(seed), |bench| async move {
            let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
            alice.settle(0).await;
            bob.settle(0).await;
            hang_up(&bench, &alice);
            bench.sleep(Duration::from_millis(100)).await;
            let answers = [
                alice.function(5, lun(0), None),
                bob.function(5, lun(0), None),
                bob.function(4, lun(0), None),
                alice.function(2, lun(0), None),
            ];
            for answer in answers {
                let answer = bench.within(TWO_SECONDS, "a function", answer).await;
                assert_eq!(answer, Ok(0));
            }
        });
    }
}

/// The heart of field lesson 13: however a write is given up, what it carried never appears after a
/// newer write was acknowledged.
#[test]
fn aborted_data_never_appears_after_a_newer_write_of_another_host_on_another_core() {
    let mut overtook = 0;
    for seed in 0..120 {
        let reported = std::rc::Rc::new(std::cell::Cell::new(0));
        let count = std::rc::Rc::clone(&reported);
        run(seeded(seed), move |bench| async move {
            let mut alice = bench.login(ALICE).await;
            let bob = bench.login(BOB).await;
            alice.settle(0).await;
            bob.settle(0).await;
            let cores: Vec<_> = bench.sessions().await.iter().map(|it| it.core).collect();
            assert_ne!(cores[0], cores[1], "two cores");
            bench.hang(0, &[OpKind::Write]);
            let old = alice.send(0, &write_10(0, 8), &[1; 8 * BLOCK], 0);
            // What another host gives up must have come before.
            let least = if matches!(seed % 6, 2 | 3) {
                400_000
            } else {
                0
            };
            bench.sleep(Duration::from_micros(seed * 13 + least)).await;
            match seed % 6 {
                0 => drop(alice.function(1, lun(0), Some(old.itt)).await),
                1 => drop(alice.function(2, lun(0), None).await),
                2 => drop(bob.function(4, lun(0), None).await),
                3 => drop(bob.function(5, lun(0), None).await),
                4 => alice = bench.login(ALICE).await,
                _ => {
                    alice.hang_up();
                    bench.sleep(TWO_SECONDS).await;
                }
            }
            let hanging = bench.faults[0].hanging();
            bench.faults[0].clear();
            bob.settle(0).await;
            // Blocks that are not those of the old write are written at once.
            let elsewhere = bob.command(0, &write_10(64, 8), &[4; 8 * BLOCK], 0);
            let elsewhere = bench.within(TWO_SECONDS, "other blocks", elsewhere).await;
            assert_eq!(elsewhere.status, 0);
            let mut newer = bob.send(0, &write_10(4, 8), &[2; 8 * BLOCK], 0);
            bench.sleep(Duration::from_millis(seed * 10)).await;
            if newer.ended().is_none() {
                assert_eq!(hanging, 1, "only a write that hangs may hold up another");
                count.set(1);
                bench.release(0);
                let end = bench.within(TWO_SECONDS, "the newer write", newer.end());
                if let Some(end) = end.await {
                    assert_eq!(end.status, 0);
                }
            }
            bench.release(0);
            bench.sleep(Duration::from_secs(1)).await;
            let read = bob.command(0, &read_10(4, 8), &[], 8 * BLOCK).await;
            assert_eq!(read.status, 0);
            assert_eq!(read.data_in.to_vec(), [2; 8 * BLOCK], "seed {seed}");
            drop(alice);
        });
        overtook += reported.get();
    }
    assert!(
        overtook > 50,
        "the old write was in quarantine in {overtook} runs"
    );
}

/// A host that fails over does not wait until the session that it left has ended: what it writes by
/// the new path must not be overwritten by what the old path had in flight.
#[test]
fn a_write_that_is_being_aborted_is_out_of_the_way_before_the_abort_is_answered() {
    for seed in 0..20 {
        run(seeded(seed), move |bench| async move {
            let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
            alice.settle(0).await;
            bob.settle(0).await;
            bench.hang(0, &[OpKind::Write]);
            drop(alice.send(0, &write_10(0, 8), &[1; 8 * BLOCK], 0));
            bench.sleep(Duration::from_millis(100)).await;
            assert_eq!(bench.faults[0].hanging(), 1);
            alice.hang_up();
            // The end of the session is known by now, and far from done.
            bench.sleep(Duration::from_millis(100 + seed * 20)).await;
            bench.faults[0].clear();
            let mut newer = bob.send(0, &write_10(4, 8), &[2; 8 * BLOCK], 0);
            bench.sleep(Duration::from_millis(300)).await;
            assert!(newer.ended().is_none(), "it would be overwritten");
            bench.release(0);
            let end = bench.within(TWO_SECONDS, "the newer write", newer.end());
            assert_eq!(end.await.expect("a status").status, 0);
            let read = bob.command(0, &read_10(4, 8), &[], 8 * BLOCK).await;
            assert_eq!(read.data_in.to_vec(), [2; 8 * BLOCK]);
        });
    }
}

#[test]
fn a_write_that_was_aborted_before_the_backend_had_it_never_happens() {
    for seed in 0..60 {
        run(seeded(seed), move |bench| async move {
            let alice = bench.login(ALICE).await;
            alice.settle(0).await;
            // 64 writes of different blocks, then a reset somewhere among them.
            for at in 0..64 {
                drop(alice.send(0, &write_10(at * 8, 8), &[1; 8 * BLOCK], 0));
            }
            bench.sleep(Duration::from_micros(seed * 17)).await;
            let answer = alice.function(5, lun(0), None).await;
            assert_eq!(answer, Ok(0));
            // What is there now is all that ever comes.
            let bob = bench.login(BOB).await;
            bob.settle(0).await;
            let before = bob.command(0, &read_10(0, 512), &[], 512 * BLOCK).await;
            bench.sleep(Duration::from_secs(3)).await;
            let after = bob.command(0, &read_10(0, 512), &[], 512 * BLOCK).await;
            assert!(before.data_in.to_vec() == after.data_in.to_vec());
        });
    }
}
