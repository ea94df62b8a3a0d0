//! Commands that another host takes away: they keep no place in their session, and their own host
//! is informed as TAS says.

use crate::bench::{
    ALICE, BLOCK, BOB, Bench, Setup, TEST_UNIT_READY, read_10, run, sense, write_10,
};
use crate::host::{Host, Sent, lun};
use crate::raw::copy_list;
use iscsi_target::Settings;
use scsi::SenseKey;
use std::time::Duration;
use volume::OpKind;

const TWO_SECONDS: Duration = Duration::from_secs(2);
const DEPTH: u32 = 8;
const ABORT_TASK: u8 = 1;
const CLEAR_TASK_SET: u8 = 4;
const LOGICAL_UNIT_RESET: u8 = 5;
const TARGET_WARM_RESET: u8 = 6;
const TASK_ABORTED: u8 = 0x40;

const ALICE_KEY: u64 = 0xa;
const BOB_KEY: u64 = 0xb;

fn shallow() -> Setup {
    Setup {
        settings: Settings {
            command_depth: DEPTH,
            ..Settings::default()
        },
        ..Setup::default()
    }
}

async fn two_hosts(bench: &Bench) -> (Host, Host) {
    let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
    for host in [&alice, &bob] {
        host.settle(0).await;
        host.settle(1).await;
    }
    (alice, bob)
}

/// As many commands as the window has places, half of them writes, hang in LUN 0.
async fn fill_the_window(bench: &Bench, host: &Host) -> Vec<Sent> {
    bench.hang(0, &OpKind::ALL);
    let mut sent = Vec::new();
    for at in 0..DEPTH / 2 {
        sent.push(host.send(0, &write_10(at * 8, 8), &[1; 8 * BLOCK], 0));
        sent.push(host.send(0, &read_10(1024 + at * 8, 8), &[], 8 * BLOCK));
    }
    let wanted = usize::try_from(DEPTH).expect("small");
    bench
        .until(Duration::from_secs(1), "all hang", || {
            bench.faults[0].hanging() == wanted
        })
        .await;
    sent
}

/// Takes TAS away for every nexus, through MODE SELECT (6), and takes the unit attention that
/// `other` gets of it.
async fn clear_tas(host: &Host, other: &Host) {
    let sensed = host.command(0, &[0x1a, 8, 0x0a, 0, 64, 0], &[], 64).await;
    let mut list = sensed.data_in.to_vec();
    list[0] = 0;
    list[2] = 0;
    list[4] &= 0x3f;
    assert_eq!(list[4 + 5] & 0x40, 0x40, "as it is by default");
    list[4 + 5] &= !0x40;
    let length = u8::try_from(list.len()).expect("short");
    let selected = host.command(0, &[0x15, 0x10, 0, 0, length, 0], &list, 0);
    assert_eq!(selected.await.status, 0);
    let reported = other.command(0, &TEST_UNIT_READY, &[], 0).await;
    assert_eq!(sense(&reported), (SenseKey::UnitAttention, 0x2a, 0x01));
}

async fn reserve_out(host: &Host, action: u8, kind: u8, key: u64, other: u64) {
    let mut list = [0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&other.to_be_bytes());
    let done = host.command(0, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], &list, 0);
    assert_eq!(done.await.status, 0, "action {action}");
}

/// Lets `bob` take Alice's commands away.
async fn take_away(bench: &Bench, bob: &Host, how: u8) {
    let work = async {
        if how == 0 {
            reserve_out(bob, 5, 1, BOB_KEY, ALICE_KEY).await;
        } else {
            assert_eq!(bob.function(how, lun(0), None).await, Ok(0));
        }
    };
    // PREEMPT AND ABORT is a command: it waits for what is in flight first, and then for what it
    // aborts.
    let limit = if how == 0 {
        TWO_SECONDS * 2
    } else {
        TWO_SECONDS
    };
    bench.within(limit, "to take commands away", work).await;
}

/// Every way, and the unit attentions that Alice finds when TAS is zero, and when it is one.
type Attentions = &'static [(u8, u8)];
const CASES: [(u8, Attentions, Attentions); 4] = [
    (CLEAR_TASK_SET, &[(0x2f, 0)], &[]),
    (LOGICAL_UNIT_RESET, &[(0x29, 3)], &[(0x29, 3)]),
    (TARGET_WARM_RESET, &[(0x29, 2)], &[(0x29, 2)]),
    (0, &[(0x2f, 0), (0x2a, 5)], &[(0x2a, 5)]),
];

async fn finds(host: &Host, attentions: Attentions) {
    for expected in attentions {
        let reported = host.command(0, &TEST_UNIT_READY, &[], 0).await;
        let (key, asc, ascq) = sense(&reported);
        assert_eq!(
            (key, asc, ascq),
            (SenseKey::UnitAttention, expected.0, expected.1)
        );
    }
    assert_eq!(host.command(0, &TEST_UNIT_READY, &[], 0).await.status, 0);
}

async fn begin(bench: &Bench, how: u8, tas: bool) -> (Host, Host) {
    let (alice, bob) = two_hosts(bench).await;
    if !tas {
        clear_tas(&bob, &alice).await;
    }
    if how == 0 {
        reserve_out(&alice, 0, 0, 0, ALICE_KEY).await;
        reserve_out(&bob, 0, 0, 0, BOB_KEY).await;
        reserve_out(&alice, 1, 1, ALICE_KEY, 0).await;
    }
    (alice, bob)
}

#[test]
fn commands_taken_away_by_another_host_leave_the_window_though_the_backend_keeps_them() {
    for (how, attentions, _) in CASES {
        run(shallow(), move |bench| async move {
            let (alice, bob) = begin(&bench, how, false).await;
            let mut sent = fill_the_window(&bench, &alice).await;
            let waiting = alice.send(1, &TEST_UNIT_READY, &[], 0);
            bench.sleep(Duration::from_millis(50)).await;
            take_away(&bench, &bob, how).await;
            // The window was closed and nothing is answered: the host is informed all the same.
            let end = bench.within(Duration::from_millis(100), "another unit", waiting.end());
            // The reset of the target is reported there, too.
            let status = if how == TARGET_WARM_RESET { 2 } else { 0 };
            assert_eq!(end.await.expect("answered").status, status, "case {how}");
            let hanging = bench.faults[0].hanging();
            assert!(
                hanging >= sent.len(),
                "the backend has them still: {hanging}"
            );
            let depth = usize::try_from(DEPTH).expect("small");
            assert!(
                sent.iter_mut().all(|one| one.ended().is_none()),
                "{depth} without an answer"
            );
            bench
                .within(TWO_SECONDS, "unit attentions", finds(&alice, attentions))
                .await;
            // When the host gives one up after its own time, that is done already.
            let itt = sent[0].itt;
            assert_eq!(alice.function(ABORT_TASK, lun(0), Some(itt)).await, Ok(0));
            assert_eq!(alice.function(ABORT_TASK, lun(0), Some(itt)).await, Ok(1));
            bench.release(0);
            bench.sleep(TWO_SECONDS).await;
            assert!(
                sent.iter_mut().all(|one| one.ended().is_none()),
                "no late answer"
            );
        });
    }
}

// spec: SAM-5 5.6 "Aborting commands", SPC-4 7.5.8 "Control mode page".
#[test]
fn with_tas_as_it_is_by_default_a_host_is_reported_that_another_one_aborted_its_commands() {
    for (how, _, attentions) in CASES {
        run(shallow(), move |bench| async move {
            let (alice, bob) = begin(&bench, how, true).await;
            let sent = fill_the_window(&bench, &alice).await;
            let mut own = bob.send(0, &read_10(4000, 8), &[], 8 * BLOCK);
            bench.sleep(Duration::from_millis(50)).await;
            take_away(&bench, &bob, how).await;
            for one in sent {
                let end = bench.within(Duration::from_millis(100), "its status", one.end());
                let end = end.await.expect("answered");
                assert_eq!(
                    (end.status, end.sense.len()),
                    (TASK_ABORTED, 0),
                    "case {how}"
                );
            }
            assert!(own.ended().is_none(), "who asked is not notified");
            bench
                .within(TWO_SECONDS, "unit attentions", finds(&alice, attentions))
                .await;
            bench.release(0);
            bench.sleep(TWO_SECONDS).await;
            alice.settle(1).await;
            let read = alice.command(1, &read_10(0, 8), &[], 8 * BLOCK).await;
            assert_eq!(read.status, 0);
            // A reset takes the saved values back: it is as it was.
            let sensed = alice.command(0, &[0x1a, 8, 0x0a, 0, 64, 0], &[], 64).await;
            assert_eq!(sensed.data_in.to_vec()[4 + 5] & 0x40, 0x40);
        });
    }
}

/// PREEMPT AND ABORT of the own key: no status is sent to who asks (SAM-5 5.6), whose commands
/// leave the window all the same.
// spec: SAM-5 5.6 "Aborting commands".
#[test]
fn commands_that_their_own_host_preempts_leave_the_window_and_are_found_ended() {
    run(shallow(), |bench| async move {
        let (alice, _bob) = two_hosts(&bench).await;
        reserve_out(&alice, 0, 0, 0, ALICE_KEY).await;
        bench.hang(0, &[OpKind::Read]);
        let most = DEPTH - 1;
        let read = |at: u32| alice.send(0, &read_10(at * 8, 8), &[], 8 * BLOCK);
        let mut sent: Vec<Sent> = (0..most).map(read).collect();
        let preempt = reserve_out(&alice, 5, 1, ALICE_KEY, ALICE_KEY);
        bench.within(2 * TWO_SECONDS, "to preempt", preempt).await;
        bench.sleep(Duration::from_millis(50)).await;
        let in_progress: u64 = bench.sessions().await.iter().map(|it| it.in_progress).sum();
        assert_eq!(in_progress, 0);
        let itt = sent[0].itt;
        assert_eq!(alice.function(ABORT_TASK, lun(0), Some(itt)).await, Ok(0));
        bench.release(0);
        bench.sleep(TWO_SECONDS).await;
        assert!(sent.iter_mut().all(|one| one.ended().is_none()));
    });
}

/// A function of its own host that ends while commands of it are being taken away by another one:
/// each of those is answered.
#[test]
fn a_function_of_the_own_host_does_not_swallow_what_another_one_has_aborted() {
    run(shallow(), |bench| async move {
        let (alice, bob) = two_hosts(&bench).await;
        let sent = fill_the_window(&bench, &alice).await;
        let reset = bench.start(bob.function(LOGICAL_UNIT_RESET, lun(0), None));
        // The backend keeps its commands for more than a second.
        bench.sleep(Duration::from_millis(200)).await;
        assert!(reset.borrow().is_none(), "the reset waits for the backend");
        // ABORT TASK SET of another unit, and ABORT TASK of one of them.
        assert_eq!(alice.function(2, lun(1), None).await, Ok(0));
        let one = alice.function(ABORT_TASK, lun(0), Some(sent[0].itt));
        assert_eq!(bench.within(TWO_SECONDS, "ABORT TASK", one).await, Ok(0));
        for one in sent {
            let end = bench.within(TWO_SECONDS, "its status", one.end()).await;
            assert_eq!(end.expect("answered").status, TASK_ABORTED);
        }
    });
}

#[test]
fn a_write_taken_away_while_its_data_is_awaited_leaves_the_window() {
    run(shallow(), |bench| async move {
        let (alice, bob) = two_hosts(&bench).await;
        clear_tas(&bob, &alice).await;
        let mut raw = crate::raw::Raw::login(
            &bench.host_core,
            bench.portal,
            "iqn.x:carol",
            crate::bench::TARGET,
            "InitialR2T=Yes\0ImmediateData=No\0",
        )
        .await;
        let moves = crate::raw::Moves::Nothing;
        raw.command(1, 1, false, &TEST_UNIT_READY, moves).await;
        assert_eq!(raw.receive_for(1).await.status(), 2);
        for tag in 2..2 + DEPTH {
            let moves = crate::raw::Moves::Out(2048, &[]);
            raw.command(tag, tag, false, &write_10(tag * 8, 4), moves)
                .await;
            raw.receive_for(tag).await;
        }
        take_away(&bench, &bob, CLEAR_TASK_SET).await;
        let reported = raw.receive().await.expect("the window is announced");
        assert_eq!(reported.opcode(), iscsi::bhs::Opcode::NopIn);
        assert!(reported.max_cmd_sn() >= 2 + DEPTH);
        let in_progress: u64 = bench.sessions().await.iter().map(|it| it.in_progress).sum();
        assert_eq!(in_progress, 0);
    });
}

#[test]
fn a_copy_of_which_another_host_resets_the_destination_ends_with_copy_aborted() {
    run(shallow(), |bench| async move {
        let (alice, bob) = two_hosts(&bench).await;
        bench.hang(1, &[OpKind::Write]);
        let list = copy_list();
        let mut cdb = [0; 16];
        cdb[0] = 0x83;
        cdb[13] = u8::try_from(list.len()).expect("short");
        let copy = alice.send(0, &cdb, &list, 0);
        bench
            .until(Duration::from_secs(1), "the copy writes", || {
                bench.faults[1].hanging() == 1
            })
            .await;
        let reset = bob.function(LOGICAL_UNIT_RESET, lun(1), None);
        assert_eq!(bench.within(TWO_SECONDS, "the reset", reset).await, Ok(0));
        bench.release(1);
        let end = bench.within(TWO_SECONDS, "the copy", copy.end()).await;
        let end = end.expect("answered");
        assert_eq!(sense(&end).0, SenseKey::CopyAborted);
    });
}
