//! Task management and command numbering over the wire, as awkward initiators do it.

use crate::bench::{ALICE, Setup, TARGET, TEST_UNIT_READY, read_10, run, write_10};
use crate::host::lun;
use crate::raw::{Moves, Raw};
use iscsi::bhs::Opcode;
use std::time::Duration;
use volume::OpKind;

const ABORT_TASK: u8 = 1;
const LOGICAL_UNIT_RESET: u8 = 5;
const TARGET_WARM_RESET: u8 = 6;

/// A hand-made session whose unit attention is taken.
async fn raw_session(bench: &crate::bench::Bench) -> Raw {
    let mut raw = Raw::login(
        &bench.host_core,
        bench.portal,
        ALICE,
        TARGET,
        "InitialR2T=Yes\0ImmediateData=Yes\0",
    )
    .await;
    raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
        .await;
    assert_eq!(raw.receive_for(1).await.status(), 2);
    raw
}

#[test]
fn the_tag_of_an_aborted_task_can_be_used_again_at_once() {
    for seed in 0..20 {
        let setup = Setup {
            seed,
            ..Setup::default()
        };
        run(setup, |bench| async move {
            let mut raw = raw_session(&bench).await;
            bench.hang(0, &[OpKind::Read]);
            raw.command(7, 2, false, &read_10(0, 1), Moves::In(512))
                .await;
            bench
                .until(Duration::from_secs(1), "the backend has it", || {
                    bench.faults[0].hanging() == 1
                })
                .await;
            raw.function(8, 3, ABORT_TASK, (7, 2)).await;
            assert_eq!(raw.receive_for(8).await.response(), 0);
            bench.faults[0].clear();
            // The same tag for another command, while the backend still has the old one.
            raw.command(7, 3, false, &write_10(9, 1), Moves::Out(512, &[5; 512]))
                .await;
            let answer = raw.receive_for(7).await;
            assert_eq!(answer.opcode(), Opcode::ScsiResponse);
            assert_eq!(answer.status(), 0);
            bench.release(0);
            bench.sleep(Duration::from_millis(20)).await;
            raw.command(7, 4, false, &read_10(9, 1), Moves::In(512))
                .await;
            let answer = raw.receive_for(7).await;
            assert_eq!(answer.opcode(), Opcode::DataIn);
            assert_eq!(answer.data, [5; 512]);
        });
    }
}

// spec: RFC 7143 11.6.1 "Response".
#[test]
fn task_management_of_a_lun_that_is_not_mapped_says_so() {
    run(Setup::default(), |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        // ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET: "LUN does not exist".
        for function in [2, 4, 5] {
            assert_eq!(host.function(function, lun(9), None).await, Ok(2));
        }
        // CLEAR ACA, TASK REASSIGN and functions of the future: not supported, in their own way.
        assert_eq!(host.function(3, lun(0), None).await, Ok(5));
        assert_eq!(host.function(8, lun(0), None).await, Ok(4));
        assert_eq!(host.function(77, lun(0), None).await, Ok(5));
        // A task that is not there.
        let nobody = iscsi::Itt::from_wire(0x7777);
        assert_eq!(host.function(ABORT_TASK, lun(0), nobody).await, Ok(1));
    });
}

// spec: RFC 7143 4.2.2.1 "Command Numbering and Acknowledging".
#[test]
fn numbers_that_come_out_of_order_are_carried_out_in_order() {
    run(Setup::default(), |bench| async move {
        let mut raw = raw_session(&bench).await;
        for cmd_sn in [8, 4, 6, 3, 7, 5, 2] {
            let read = read_10(3, 1);
            raw.command(cmd_sn + 100, cmd_sn, false, &read, Moves::In(512))
                .await;
            bench.sleep(Duration::from_millis(2)).await;
        }
        let mut order = Vec::new();
        while order.len() < 7 {
            let pdu = raw.receive().await.unwrap();
            assert_eq!((pdu.opcode(), pdu.status()), (Opcode::DataIn, 0));
            order.push(pdu.itt() - 100);
        }
        assert_eq!(order, [2, 3, 4, 5, 6, 7, 8]);
    });
}

// spec: RFC 7143 4.2.2.1 "Command Numbering and Acknowledging".
#[test]
fn a_number_that_comes_twice_is_carried_out_once() {
    run(Setup::default(), |bench| async move {
        let mut raw = raw_session(&bench).await;
        let write = write_10(3, 1);
        raw.command(10, 2, false, &write, Moves::Out(512, &[1; 512]))
            .await;
        raw.command(11, 2, false, &write, Moves::Out(512, &[2; 512]))
            .await;
        raw.command(12, 3, false, &read_10(3, 1), Moves::In(512))
            .await;
        let mut tags = Vec::new();
        loop {
            let pdu = raw.receive().await.unwrap();
            tags.push(pdu.itt());
            if pdu.itt() == 12 {
                assert_eq!(pdu.data, [1; 512]);
                break;
            }
        }
        assert_eq!(tags, [10, 12]);
    });
}

// spec: RFC 7143 4.2.2.1 "Command Numbering and Acknowledging".
#[test]
fn an_immediate_command_is_answered_while_a_gap_holds_up_the_others() {
    run(Setup::default(), |bench| async move {
        let mut raw = raw_session(&bench).await;
        raw.command(20, 5, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        raw.command(21, 2, true, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        let first = raw.receive().await.unwrap();
        assert_eq!((first.itt(), first.status()), (21, 0));
        for cmd_sn in 2..5 {
            raw.command(
                20 + cmd_sn + 10,
                cmd_sn,
                false,
                &TEST_UNIT_READY,
                Moves::Nothing,
            )
            .await;
        }
        assert_eq!(raw.receive_for(20).await.status(), 0);
    });
}

// spec: RFC 7143 11.5.1 "Function", 11.6.1 "Response".
#[test]
fn an_aborted_command_that_never_came_is_counted_as_come() {
    run(Setup::default(), |bench| async move {
        let mut raw = raw_session(&bench).await;
        // Number 2 is lost on its way; 3 waits for it.
        raw.command(31, 3, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        raw.function(32, 4, ABORT_TASK, (30, 2)).await;
        let mut seen = Vec::new();
        while seen.len() < 2 {
            let pdu = raw.receive().await.unwrap();
            if pdu.itt() == 32 {
                assert_eq!(pdu.response(), 0);
            }
            seen.push(pdu.itt());
        }
        seen.sort_unstable();
        assert_eq!(seen, [31, 32]);
        // When it comes after all, it is not carried out.
        raw.command(30, 2, false, &write_10(0, 1), Moves::Out(512, &[9; 512]))
            .await;
        raw.command(33, 4, false, &read_10(0, 1), Moves::In(512))
            .await;
        assert_eq!(raw.receive_for(33).await.data, [0; 512]);
    });
}

#[test]
fn a_write_that_is_aborted_while_its_data_is_awaited_never_happens() {
    run(Setup::default(), |bench| async move {
        let mut raw = raw_session(&bench).await;
        raw.command(40, 2, false, &write_10(5, 4), Moves::Out(2048, &[]))
            .await;
        let r2t = raw.receive_for(40).await;
        assert_eq!(r2t.opcode(), Opcode::ReadyToTransfer);
        raw.function(41, 3, ABORT_TASK, (40, 2)).await;
        assert_eq!(raw.receive_for(41).await.response(), 0);
        // The host was already sending.
        raw.data_out(40, r2t.ttt(), 0, &[6; 2048]).await;
        raw.command(42, 3, false, &read_10(5, 4), Moves::In(2048))
            .await;
        assert_eq!(raw.receive_for(42).await.data, [0; 2048]);
        let memory: usize = bench
            .san
            .cores()
            .iter()
            .map(|core| core.pool().out_bytes())
            .sum();
        assert_eq!(memory, 0);
    });
}

// spec: RFC 7143 11.5 "Task Management Function Request".
#[test]
fn resets_end_every_task_of_the_session_and_no_answer_comes_afterwards() {
    for function in [LOGICAL_UNIT_RESET, TARGET_WARM_RESET] {
        run(Setup::default(), move |bench| async move {
            let mut raw = raw_session(&bench).await;
            bench.hang(0, &[OpKind::Read]);
            for tag in 50..60 {
                raw.command(tag, tag - 48, false, &read_10(tag, 1), Moves::In(512))
                    .await;
            }
            raw.command(60, 12, false, &write_10(0, 4), Moves::Out(2048, &[]))
                .await;
            bench.sleep(Duration::from_millis(50)).await;
            raw.function(61, 13, function, (u32::MAX, 0)).await;
            assert_eq!(raw.receive_for(61).await.response(), 0);
            bench.release(0);
            bench.sleep(Duration::from_secs(1)).await;
            raw.command(62, 13, false, &TEST_UNIT_READY, Moves::Nothing)
                .await;
            let next = raw.receive().await.unwrap();
            assert_eq!(
                (next.itt(), next.status()),
                (62, 2),
                "the reset is reported"
            );
        });
    }
}
