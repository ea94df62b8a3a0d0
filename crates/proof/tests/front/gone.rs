//! Units that are taken away from a host, or may only be read any more, while it has commands
//! there.

use crate::bench::{
    ALICE, BLOCK, BOB, Bench, OTHER, Setup, TARGET, TEST_UNIT_READY, everyone, exported, grant,
    host_object, open_target, read_10, run, sense, write_10,
};
use crate::host::{Host, Sent, config, lun};
use crate::raw::{Moves, Raw, copy_list};
use iscsi::bhs::Opcode;
use iscsi_target::ExportedTarget;
use scsi::SenseKey;
use std::time::Duration;
use volume::OpKind;

const SECOND: Duration = Duration::from_secs(1);
const TWO_SECONDS: Duration = Duration::from_secs(2);
const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;
const TASK_ABORTED: u8 = 0x40;
const ABORT_TASK: u8 = 1;
const ABORT_TASK_SET: u8 = 2;

/// LUN 0 of Alice is taken away in one of these ways.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Removal {
    /// Its grant is deleted.
    Grant,
    /// It is found under another number.
    Moved,
    /// Another unit is found under its number.
    Other,
}

impl Removal {
    const ALL: [Self; 3] = [Self::Grant, Self::Moved, Self::Other];

    fn export(self) -> ExportedTarget {
        let host = everyone();
        let mut grants = vec![grant(&host, 1)];
        match self {
            Self::Grant => {}
            Self::Moved => {
                let mut moved = grant(&host, 5);
                moved.unit = logical_unit::UnitId(0);
                grants.push(moved);
            }
            Self::Other => {
                let mut other = grant(&host, 0);
                other.unit = logical_unit::UnitId(1);
                grants = vec![other];
            }
        }
        exported(TARGET, grants)
    }
}

fn setup(seed: u64) -> Setup {
    Setup {
        seed,
        ..Setup::default()
    }
}

/// A write, a read and a write that waits for it are at LUN 0, whose backend hangs.
async fn three(bench: &Bench, host: &Host) -> Vec<Sent> {
    host.settle(0).await;
    host.settle(1).await;
    bench.hang(0, &[OpKind::Write, OpKind::Read]);
    let sent = vec![
        host.send(0, &write_10(0, 8), &[1; 8 * BLOCK], 0),
        host.send(0, &read_10(64, 8), &[], 8 * BLOCK),
        host.send(0, &write_10(128, 8), &[2; 8 * BLOCK], 0),
    ];
    bench
        .until(SECOND, "all hang", || bench.faults[0].hanging() == 3)
        .await;
    sent
}

// spec: SAM-5 5.6 "Aborting commands".
#[test]
fn every_command_of_a_unit_that_is_taken_away_is_answered_while_the_session_lives() {
    for (seed, removal) in (0..6).flat_map(|seed| Removal::ALL.map(|removal| (seed, removal))) {
        run(setup(seed), move |bench| async move {
            let host = bench.login(ALICE).await;
            let sent = three(&bench, &host).await;
            let itt = sent[0].itt;
            // The backend has them for longer than anybody waits, or not.
            let hangs = seed % 2 == 0;
            if !hangs {
                let later = bench.clone();
                bench.spawn(async move {
                    later.sleep(Duration::from_millis(100)).await;
                    later.release(0);
                });
            }
            let publish = bench.publish(vec![removal.export()]);
            bench.within(TWO_SECONDS, "publish", publish).await;
            for one in sent {
                let end = bench.within(Duration::from_millis(100), "an answer", one.end());
                let end = end.await.expect("answered");
                assert_eq!(
                    (end.status, end.sense.len()),
                    (TASK_ABORTED, 0),
                    "{removal:?}"
                );
            }
            // They have ended: there is nothing to abort.
            assert_eq!(host.function(ABORT_TASK, lun(0), Some(itt)).await, Ok(1));
            assert_eq!(bench.sessions().await[0].in_progress, 0);
            if removal == Removal::Other {
                host.settle(0).await;
            } else {
                let gone = host.command(0, &TEST_UNIT_READY, &[], 0).await;
                assert_eq!(sense(&gone), (SenseKey::IllegalRequest, 0x25, 0));
                assert_eq!(host.function(ABORT_TASK_SET, lun(0), None).await, Ok(2));
                host.settle(1).await;
            }
            bench.release(0);
            bench.sleep(TWO_SECONDS).await;
            let number = if removal == Removal::Other { 0 } else { 1 };
            let read = host.command(number, &read_10(0, 1), &[], BLOCK).await;
            assert_eq!(read.status, GOOD, "the session goes on");
        });
    }
}

#[test]
fn an_abort_of_a_task_of_a_unit_that_is_going_away_waits_for_the_backend_like_any_other() {
    run(setup(1), |bench| async move {
        let host = bench.login(ALICE).await;
        let sent = three(&bench, &host).await;
        let itt = sent[0].itt;
        let publish = bench.clone();
        let published = bench.start(async move {
            publish.publish(vec![Removal::Other.export()]).await;
        });
        bench.sleep(Duration::from_millis(200)).await;
        assert!(
            published.borrow().is_none(),
            "nothing of it is under way any more"
        );
        let abort = host.function(ABORT_TASK, lun(0), Some(itt));
        assert_eq!(bench.within(TWO_SECONDS, "ABORT TASK", abort).await, Ok(0));
        for one in sent {
            let end = bench.within(TWO_SECONDS, "an answer", one.end()).await;
            assert_eq!(end.expect("answered").status, TASK_ABORTED);
        }
        bench
            .until(SECOND, "publish", || published.borrow().is_some())
            .await;
    });
}

#[test]
fn other_hosts_of_a_unit_that_is_taken_away_from_one_notice_nothing() {
    run(setup(1), |bench| async move {
        let (alice, bob) = (
            host_object("alice", ALICE, None),
            host_object("bob", BOB, None),
        );
        let both = |luns: &[u16]| {
            let mut grants: Vec<_> = luns.iter().map(|lun| grant(&alice, *lun)).collect();
            grants.extend([grant(&bob, 0), grant(&bob, 1)]);
            vec![exported(TARGET, grants)]
        };
        bench.publish(both(&[0, 1])).await;
        let (of_alice, of_bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        of_bob.settle(0).await;
        let sent = three(&bench, &of_alice).await;
        let mut bobs = of_bob.send(0, &write_10(512, 8), &[3; 8 * BLOCK], 0);
        bench.sleep(Duration::from_millis(50)).await;
        bench
            .within(TWO_SECONDS, "publish", bench.publish(both(&[1])))
            .await;
        for one in sent {
            assert_eq!(one.end().await.expect("answered").status, TASK_ABORTED);
        }
        assert!(bobs.ended().is_none(), "it is still with the backend");
        bench.release(0);
        let end = bench.within(SECOND, "the write", bobs.end()).await;
        assert_eq!(end.expect("answered").status, GOOD);
        assert_eq!(
            of_bob.command(0, &TEST_UNIT_READY, &[], 0).await.status,
            GOOD
        );
        for _ in 0..600 {
            of_alice.settle(1).await;
        }
        let sessions = bench.sessions().await;
        let session = sessions.iter().find(|one| one.initiator == ALICE).unwrap();
        assert_eq!((session.in_progress, &session.luns[..]), (0, &[1][..]));
    });
}

/// A session made by hand, which has written nothing yet of the 4 blocks from 5 on that it was
/// asked for.
async fn asked_for_data(bench: &Bench) -> (Raw, iscsi::Ttt) {
    let keys = "InitialR2T=Yes\0ImmediateData=No\0";
    let mut raw = Raw::login(&bench.host_core, bench.portal, BOB, TARGET, keys).await;
    raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
        .await;
    raw.receive_for(1).await;
    raw.command(40, 2, false, &write_10(5, 4), Moves::Out(2048, &[]))
        .await;
    let r2t = raw.receive_for(40).await;
    assert_eq!(r2t.opcode(), Opcode::ReadyToTransfer);
    (raw, r2t.ttt().expect("a tag"))
}

#[test]
fn a_write_whose_data_is_awaited_is_answered_when_its_unit_is_taken_away() {
    for removal in Removal::ALL {
        run(setup(2), move |bench| async move {
            let (mut raw, ttt) = asked_for_data(&bench).await;
            bench
                .within(SECOND, "publish", bench.publish(vec![removal.export()]))
                .await;
            let answer = raw.receive_for(40).await;
            assert_eq!(
                (answer.opcode(), answer.status()),
                (Opcode::ScsiResponse, TASK_ABORTED)
            );
            // The host was already sending.
            raw.data_out(40, Some(ttt), 0, &[6; 2048]).await;
            bench.sleep(Duration::from_millis(50)).await;
            bench.publish(vec![open_target(2)]).await;
            let host = bench.login(ALICE).await;
            host.settle(0).await;
            let read = host.command(0, &read_10(5, 4), &[], 2048).await;
            assert_eq!(
                read.data_in.to_vec(),
                [0; 2048],
                "nothing of it was written"
            );
            assert_eq!(bench.sessions().await.len(), 2, "the session lives");
        });
    }
}

fn reading_only() -> ExportedTarget {
    let mut target = open_target(2);
    target.grants[0].read_only = true;
    target
}

#[test]
fn a_grant_that_becomes_read_only_refuses_writes_and_what_it_had_not_begun_of_them() {
    run(setup(3), |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        host.command(0, &write_10(0, 1), &[7; BLOCK], 0).await;
        let (mut raw, ttt) = asked_for_data(&bench).await;
        bench
            .within(SECOND, "publish", bench.publish(vec![reading_only()]))
            .await;
        let answer = raw.receive_for(40).await;
        assert_eq!(
            (answer.opcode(), answer.status()),
            (Opcode::ScsiResponse, CHECK_CONDITION)
        );
        // Two bytes of length, then the sense data: DATA PROTECT, WRITE PROTECTED.
        let reported = (
            answer.data[2 + 2] & 0x0f,
            answer.data[2 + 12],
            answer.data[2 + 13],
        );
        assert_eq!(reported, (7, 0x27, 0));
        raw.data_out(40, Some(ttt), 0, &[6; 2048]).await;
        let write = host.command(0, &write_10(0, 1), &[8; BLOCK], 0).await;
        assert_eq!(sense(&write), (SenseKey::DataProtect, 0x27, 0));
        let read = host.command(0, &read_10(0, 1), &[], BLOCK).await;
        assert_eq!(read.data_in.to_vec(), [7; BLOCK]);
        let read = host.command(0, &read_10(5, 4), &[], 2048).await;
        assert_eq!(read.data_in.to_vec(), [0; 2048]);
        bench.publish(vec![open_target(2)]).await;
        let again = host.command(0, &write_10(0, 1), &[8; BLOCK], 0).await;
        assert_eq!(again.status, GOOD);
    });
}

#[test]
fn a_write_that_waits_in_a_layer_when_its_grant_becomes_read_only_is_not_let_through_later() {
    run(setup(4), |bench| async move {
        let host = bench.login(ALICE).await;
        let mut sent = three(&bench, &host).await;
        let publish = bench.clone();
        let published = bench.start(async move { publish.publish(vec![reading_only()]).await });
        bench.sleep(Duration::from_millis(300)).await;
        assert!(published.borrow().is_none(), "a write is on its way");
        // The layer that holds them lets them go on; their right to write is gone.
        bench.release(0);
        let read = sent.remove(1);
        for one in sent {
            let end = bench.within(SECOND, "an answer", one.end()).await;
            let end = end.expect("answered");
            assert_eq!(sense(&end), (SenseKey::DataProtect, 0x27, 0));
        }
        let end = bench.within(SECOND, "the read", read.end()).await;
        assert_eq!(end.expect("answered").status, GOOD);
        bench
            .until(SECOND, "publish", || published.borrow().is_some())
            .await;
        let read = host.command(0, &read_10(128, 1), &[], BLOCK).await;
        assert_eq!(read.data_in.to_vec(), [0; BLOCK]);
    });
}

#[test]
fn a_write_that_a_hung_backend_has_when_its_grant_becomes_read_only_is_reported_aborted() {
    run(setup(5), |bench| async move {
        let host = bench.login(ALICE).await;
        let mut sent = three(&bench, &host).await;
        let publish = bench.publish(vec![reading_only()]);
        bench.within(TWO_SECONDS, "publish", publish).await;
        let mut read = sent.remove(1);
        for one in sent {
            let end = bench.within(Duration::from_millis(100), "an answer", one.end());
            assert_eq!(end.await.expect("answered").status, TASK_ABORTED);
        }
        assert!(read.ended().is_none(), "reading is permitted");
        bench.release(0);
        let end = bench.within(SECOND, "the read", read.end()).await;
        assert_eq!(end.expect("answered").status, GOOD);
    });
}

#[test]
fn a_copy_whose_destination_is_taken_away_or_may_only_be_read_ends_with_copy_aborted() {
    for taken in [true, false] {
        run(setup(6), move |bench| async move {
            let host = bench.login(ALICE).await;
            host.settle(0).await;
            host.settle(1).await;
            bench.hang(1, &[OpKind::Write]);
            let list = copy_list();
            let mut cdb = [0; 16];
            cdb[0] = 0x83;
            cdb[13] = u8::try_from(list.len()).expect("short");
            let copy = host.send(0, &cdb, &list, 0);
            bench
                .until(SECOND, "the copy writes", || bench.faults[1].hanging() == 1)
                .await;
            let mut target = open_target(2);
            if taken {
                target.grants.pop();
            } else {
                target.grants[1].read_only = true;
            }
            bench
                .within(TWO_SECONDS, "publish", bench.publish(vec![target]))
                .await;
            bench.release(1);
            let end = bench.within(SECOND, "the copy", copy.end()).await;
            assert_eq!(sense(&end.expect("answered")).0, SenseKey::CopyAborted);
        });
    }
}

#[test]
fn commands_in_progress_of_a_target_that_goes_are_answered_and_leave_nothing_behind() {
    run(setup(7), |bench| async move {
        let host_object = everyone();
        let other = exported(OTHER, vec![grant(&host_object, 1)]);
        bench.publish(vec![open_target(1), other.clone()]).await;
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        bench.hang(0, &[OpKind::Write]);
        let write = host.send(0, &write_10(0, 8), &[1; 8 * BLOCK], 0);
        bench
            .until(SECOND, "it hangs", || bench.faults[0].hanging() == 1)
            .await;
        bench
            .within(TWO_SECONDS, "publish", bench.publish(vec![other]))
            .await;
        let end = bench.within(SECOND, "an answer", write.end()).await;
        assert_eq!(end.expect("answered").status, TASK_ABORTED);
        let gone = host.command(0, &TEST_UNIT_READY, &[], 0).await;
        assert_eq!(sense(&gone), (SenseKey::IllegalRequest, 0x25, 0));
        let sessions = bench.sessions().await;
        assert_eq!((sessions[0].in_progress, sessions[0].luns.len()), (0, 0));
        let again = bench.try_login(&config(ALICE, Some(OTHER))).await;
        assert!(again.is_ok());
    });
}
