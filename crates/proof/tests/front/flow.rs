//! Flow control: windows, memory, and hosts that do not do their part.

use crate::bench::{
    ALICE, BLOCK, BOB, Bench, Setup, TARGET, TEST_UNIT_READY, read_10, run, write_10,
};
use crate::raw::{Moves, Raw, ping};
use env::sim::{Fault, FaultPlan};
use iscsi::StatSn;
use iscsi::bhs::Opcode;
use iscsi_target::Settings;
use std::time::Duration;
use volume::OpKind;

const SECOND: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;

fn memory_out(bench: &Bench) -> usize {
    let cores = bench.san.cores();
    cores.iter().map(|core| core.pool().out_bytes()).sum()
}

// spec: RFC 7143 4.2.2.2 "Response/Status Numbering and Acknowledging".
#[test]
fn an_initiator_that_never_advances_its_status_number_works_at_depth_512() {
    run(Setup::default(), |bench| async move {
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, "").await;
        raw.exp_stat_sn = StatSn(0);
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        let first = raw.receive_for(1).await;
        assert_eq!(first.max_cmd_sn(), 513, "512 commands may be sent");
        let mut cmd_sn = 2;
        for _ in 0..8 {
            let from = cmd_sn;
            for _ in 0..512 {
                raw.command(cmd_sn, cmd_sn, false, &read_10(7, 1), Moves::In(512))
                    .await;
                cmd_sn += 1;
            }
            let mut seen = std::collections::BTreeSet::new();
            while seen.len() < 512 {
                let pdu = raw.receive().await.expect("the session stands");
                assert_eq!((pdu.opcode(), pdu.status()), (Opcode::DataIn, 0));
                assert!((from..cmd_sn).contains(&pdu.itt()) && seen.insert(pdu.itt()));
            }
        }
    });
}

#[test]
fn the_command_window_closes_with_tasks_in_progress_and_opens_as_they_end() {
    let settings = Settings {
        command_depth: 16,
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    run(setup, |bench| async move {
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, "").await;
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        assert_eq!(raw.receive_for(1).await.max_cmd_sn(), 17);
        bench.hang(0, &[OpKind::Read]);
        // Three more than the window has.
        for cmd_sn in 2..=20 {
            raw.command(cmd_sn, cmd_sn, false, &read_10(0, 1), Moves::In(512))
                .await;
        }
        bench.sleep(Duration::from_millis(50)).await;
        assert_eq!(bench.faults[0].hanging(), 16);
        raw.command(99, 18, true, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        assert_eq!(raw.receive_for(99).await.max_cmd_sn(), 17, "closed");
        bench.release(0);
        let mut last = 0;
        for _ in 0..16 {
            let pdu = raw.receive().await.unwrap();
            assert_eq!(pdu.opcode(), Opcode::DataIn);
            assert!(pdu.max_cmd_sn() >= last, "it never goes back");
            last = pdu.max_cmd_sn();
        }
        assert_eq!(last, 33);
    });
}

#[test]
fn the_command_window_closes_with_bytes_of_writes_in_progress() {
    let settings = Settings {
        write_bytes_max: 1 << 20,
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    run(setup, |bench| async move {
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, "").await;
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        let before = raw.receive_for(1).await.max_cmd_sn();
        for cmd_sn in 2..6 {
            let write = write_10(cmd_sn * 1024, 1024);
            raw.command(cmd_sn, cmd_sn, false, &write, Moves::Out(512 << 10, &[]))
                .await;
        }
        bench.sleep(Duration::from_millis(50)).await;
        raw.command(99, 6, true, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        let after = raw.receive_for(99).await.max_cmd_sn();
        assert_eq!(
            after, before,
            "no new number while two megabytes are awaited"
        );
    });
}

/// A world whose target has little memory.
fn little_memory() -> Setup {
    let mut setup = Setup {
        units: 1,
        ..Setup::default()
    };
    setup.world.cores = 1;
    setup.world.pool_bytes = 16 * MIB;
    setup
}

#[test]
fn a_host_that_never_sends_the_data_of_its_writes_leaves_memory_for_others() {
    for greedy in [1, 3] {
        run(little_memory(), move |bench| async move {
            let bob = bench.login(BOB).await;
            bob.settle(0).await;
            let mut silent = Vec::new();
            for number in 0..greedy {
                let name = format!("iqn.x:greedy{number}");
                let mut raw = Raw::login(&bench.host_core, bench.portal, &name, TARGET, "").await;
                for cmd_sn in 1..=512 {
                    let write = write_10(0, 2048);
                    raw.command(cmd_sn, cmd_sn, false, &write, Moves::Out(1 << 20, &[]))
                        .await;
                }
                silent.push(raw);
            }
            bench.sleep(Duration::from_millis(200)).await;
            for round in 0..20_u8 {
                let data = vec![round; 128 * BLOCK];
                let write = bob.command(0, &write_10(4096, 128), &data, 0);
                let write = bench.within(SECOND, "a write of another host", write).await;
                assert_eq!(write.status, 0);
            }
            // Who gives up gives everything back.
            drop(silent);
            bench.sleep(SECOND).await;
            assert_eq!(memory_out(&bench), 0);
        });
    }
}

#[test]
fn a_host_whose_data_is_slow_gets_all_its_writes_done_though_memory_is_short() {
    run(little_memory(), |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        let sent: Vec<_> = (0..32)
            .map(|_| host.send(0, &write_10(0, 2048), &vec![3; MIB], 0))
            .collect();
        for one in sent {
            let end = one.end().await.expect("it ends");
            assert_eq!(end.status, 0);
        }
        bench.sleep(Duration::from_millis(100)).await;
        assert_eq!(memory_out(&bench), 0);
    });
}

#[test]
fn a_host_that_never_reads_its_replies_is_held_to_a_bounded_amount_of_them() {
    let mut setup = little_memory();
    setup.settings.ping_after = Duration::from_secs(1000);
    run(setup, |bench| async move {
        let bob = bench.login(BOB).await;
        bob.settle(0).await;
        let deaf = bench.login(ALICE).await;
        deaf.settle(0).await;
        deaf.set_deaf(true);
        let served = |sessions: Vec<iscsi_target::SessionInfo>| {
            sessions
                .iter()
                .filter(|session| session.initiator == ALICE)
                .map(|session| session.bytes_read)
                .sum::<u64>()
        };
        let before = served(bench.sessions().await);
        let sent: Vec<_> = (0..48)
            .map(|_| deaf.send(0, &read_10(0, 2048), &[], MIB))
            .collect();
        bench.sleep(SECOND).await;
        // What is prepared for it fits into its share of memory; the rest is not even read.
        let prepared = served(bench.sessions().await) - before;
        assert!(
            prepared <= 16 * MIB as u64,
            "{prepared} bytes wait for a host"
        );
        for round in 0..20_u8 {
            let data = vec![round; 128 * BLOCK];
            let write = bob.command(0, &write_10(4096, 128), &data, 0);
            let write = bench.within(SECOND, "a write of another host", write).await;
            assert_eq!(write.status, 0);
            let read = bob.command(0, &read_10(4096, 128), &[], 128 * BLOCK).await;
            assert_eq!(read.data_in.to_vec(), data);
        }
        // It is not lost: when it reads, everything comes.
        deaf.set_deaf(false);
        for one in sent {
            assert_eq!(one.end().await.expect("it ends").status, 0);
        }
    });
}

#[test]
fn pings_that_nobody_reads_do_not_pile_up() {
    let mut setup = little_memory();
    setup.settings.ping_after = Duration::from_secs(1000);
    run(setup, |bench| async move {
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, "").await;
        let payload = vec![7; 8192];
        let sent = std::rc::Rc::new(std::cell::Cell::new(0_usize));
        let count = std::rc::Rc::clone(&sent);
        bench.spawn(async move {
            loop {
                raw.send(ping(), &payload).await;
                count.set(count.get() + payload.len());
            }
        });
        bench.sleep(30 * SECOND).await;
        let first = sent.get();
        bench.sleep(30 * SECOND).await;
        // The target stops reading: the host's socket fills up, and nothing grows any more.
        assert_eq!(sent.get(), first);
        assert!(first < 20 * MIB, "{first} bytes were taken");
        bench.login(BOB).await.settle(0).await;
    });
}

#[test]
fn a_unit_that_hangs_and_keeps_its_memory_holds_up_no_other_unit_of_the_session() {
    let mut setup = Setup {
        units: 2,
        ..little_memory()
    };
    // The second that a command may take is the target's, not a slow network's.
    setup.world.faults = FaultPlan::benign().with(Fault::NetSlow, 0);
    run(setup, |bench| async move {
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        host.settle(1).await;
        bench.hang(0, &OpKind::ALL);
        // Far more than there is memory for: most of it waits.
        let mut unread: Vec<_> = (0..32)
            .map(|_| host.send(0, &write_10(0, 2048), &vec![3; MIB], 0))
            .collect();
        unread.extend((0..32).map(|_| host.send(0, &read_10(4096, 2048), &[], MIB)));
        bench.sleep(SECOND * 2).await;
        let hanging = bench.faults[0].hanging();
        assert!((1..32).contains(&hanging), "{hanging} with the backend");
        for round in 0..20_u8 {
            let blocks = if round % 2 == 0 { 128 } else { 2048 };
            let data = vec![round; usize::from(blocks) * BLOCK];
            let write = host.command(1, &write_10(0, blocks), &data, 0);
            let write = bench.within(SECOND, "a write of another unit", write).await;
            assert_eq!(write.status, 0);
            let read = host.command(1, &read_10(0, blocks), &[], data.len());
            let read = bench.within(SECOND, "a read of another unit", read).await;
            assert!(read.data_in.to_vec() == data);
        }
        bench.release(0);
        for one in unread {
            assert_eq!(one.end().await.expect("it ends").status, 0);
        }
    });
}

#[test]
fn unsolicited_data_beyond_what_may_wait_is_answered_with_task_set_full() {
    const COMMANDS: u32 = 100;
    const BURST: usize = 256 << 10;
    run(little_memory(), |bench| async move {
        let mut raw = Raw::login(
            &bench.host_core,
            bench.portal,
            ALICE,
            TARGET,
            "InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=262144\0",
        )
        .await;
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        raw.receive_for(1).await;
        bench.hang(0, &[OpKind::Write]);
        let data = vec![7; BURST];
        for tag in 2..2 + COMMANDS {
            let moves = Moves::Out(262_144, &data);
            raw.command(tag, tag, false, &write_10(0, 512), moves).await;
        }
        bench.sleep(SECOND).await;
        bench.release(0);
        let mut taken = 0;
        for _ in 0..COMMANDS {
            let answer = raw.receive().await.expect("an answer");
            assert_eq!(answer.opcode(), Opcode::ScsiResponse);
            match answer.status() {
                0 => taken += 1,
                status => assert_eq!(status, 0x28),
            }
        }
        // Half of the memory, and what may be parked.
        let most = (8 * MIB + 8 * MIB) / BURST;
        assert!(
            (most / 2..=most).contains(&taken),
            "{taken} taken, at most {most}"
        );
        bench.sleep(SECOND).await;
        assert_eq!(memory_out(&bench), 0);
    });
}

/// The R2Ts of a write of 4 KiB in four bursts, all of them before any data.
async fn four_bursts(raw: &mut Raw, tag: u32) -> Vec<(Option<iscsi::Ttt>, u32)> {
    raw.command(tag, tag, false, &write_10(16, 8), Moves::Out(4096, &[]))
        .await;
    let mut bursts = Vec::new();
    while bursts.len() < 4 {
        let r2t = raw.receive_for(tag).await;
        assert_eq!(r2t.opcode(), Opcode::ReadyToTransfer);
        let parsed = iscsi::bhs::ReadyToTransfer::parse(&r2t.header).expect("an R2T");
        assert_eq!(parsed.desired_data_transfer_length, 1024);
        bursts.push((r2t.ttt(), parsed.buffer_offset));
    }
    bursts
}

// spec: RFC 7143 13.18 "DataPDUInOrder".
#[test]
fn data_comes_in_any_order_where_the_initiator_asks_for_that_and_in_order_where_not() {
    for (asked, any_order) in [("No", true), ("Yes", false)] {
        run(Setup::default(), move |bench| async move {
            let keys = format!(
                "InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=1024\0FirstBurstLength=1024\0\
                 MaxOutstandingR2T=4\0DataPDUInOrder={asked}\0DataSequenceInOrder={asked}\0"
            );
            let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, &keys).await;
            let agreed = bench.sessions().await[0].parameters.clone();
            assert_eq!(
                (agreed.data_pdu_in_order, agreed.data_sequence_in_order),
                (!any_order, !any_order)
            );
            raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
                .await;
            raw.receive_for(1).await;
            let data: Vec<u8> = (0..4096_u32).map(|at| (at / 7 % 251) as u8).collect();
            let bursts = four_bursts(&mut raw, 2).await;
            // The last burst first, and of each the second half first.
            for (ttt, offset) in bursts.into_iter().rev() {
                for (data_sn, (half, last)) in (0..).zip([(512, false), (0, true)]) {
                    let at = offset + half;
                    let from = usize::try_from(at).expect("small");
                    raw.data_piece(2, ttt, data_sn, at, last, &data[from..from + 512])
                        .await;
                }
            }
            let end = raw.receive_for(2).await;
            if any_order {
                assert_eq!(end.status(), 0);
                raw.command(3, 3, false, &read_10(16, 8), Moves::In(4096))
                    .await;
                let mut read = Vec::new();
                while read.len() < data.len() {
                    read.extend(raw.receive_for(3).await.data);
                }
                assert!(read == data);
            } else {
                assert_eq!(end.status(), 2, "a breach ends the task");
            }
        });
    }
}

/// The largest burst that RFC 7143 13.13 "MaxBurstLength" knows is no whole number of blocks, nor
/// of four bytes.
// spec: RFC 7143 13.13 "MaxBurstLength".
#[test]
fn a_host_that_asks_for_the_largest_burst_gets_it_in_both_directions() {
    const LARGEST: usize = (1 << 24) - 1;
    const ALL: usize = 32_768 * 512;
    run(Setup::default(), |bench| async move {
        let keys = format!(
            "InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength={LARGEST}\0FirstBurstLength={LARGEST}\0\
             MaxRecvDataSegmentLength={LARGEST}\0MaxOutstandingR2T=1\0"
        );
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, &keys).await;
        let agreed = bench.sessions().await[0].parameters.clone();
        assert_eq!(agreed.max_burst_length as usize, LARGEST);
        let segment = agreed.own_max_recv_data_segment_length as usize;
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        raw.receive_for(1).await;
        let data: Vec<u8> = (0..251_u8)
            .flat_map(|byte| [byte; 3])
            .cycle()
            .take(ALL)
            .collect();
        let all = u32::try_from(ALL).expect("25 bits");
        raw.command(2, 2, false, &write_10(0, 32_768), Moves::Out(all, &[]))
            .await;
        for burst in [0..LARGEST, LARGEST..ALL] {
            let r2t = raw.receive_for(2).await;
            let asked = iscsi::bhs::ReadyToTransfer::parse(&r2t.header).expect("an R2T");
            assert_eq!(asked.buffer_offset as usize, burst.start);
            assert_eq!(asked.desired_data_transfer_length as usize, burst.len());
            for (data_sn, at) in (0..).zip(burst.clone().step_by(segment)) {
                let end = burst.end.min(at + segment);
                let offset = u32::try_from(at).expect("25 bits");
                raw.data_piece(
                    2,
                    r2t.ttt(),
                    data_sn,
                    offset,
                    end == burst.end,
                    &data[at..end],
                )
                .await;
            }
        }
        assert_eq!(raw.receive_for(2).await.status(), 0);
        raw.command(3, 3, false, &read_10(0, 32_768), Moves::In(all))
            .await;
        let mut read = Vec::new();
        while read.len() < ALL {
            let piece = raw.receive_for(3).await;
            assert_eq!(piece.opcode(), Opcode::DataIn);
            read.extend(piece.data);
        }
        assert!(read == data);
    });
}

/// Small payloads are lent to the volume where they were received. Whatever comes while a slow
/// volume still has them must not change them, however many there are.
#[test]
fn data_that_a_slow_volume_still_has_stays_as_it_came() {
    let mut setup = Setup::default();
    setup.world.cores = 1;
    run(setup, |bench| async move {
        let (alice, bob) = (bench.login(ALICE).await, bench.login(BOB).await);
        alice.settle(0).await;
        bob.settle(1).await;
        bench.hang(0, &[OpKind::Write]);
        let pattern = |place: u32| vec![u8::try_from(place + 1).unwrap(); 2 * BLOCK];
        let mut sent = Vec::new();
        for place in 0..40 {
            sent.push(alice.send(0, &write_10(place * 2, 2), &pattern(place), 0));
            // Another session's data goes through the same memory in between.
            let other = bob.command(1, &write_10(0, 16), &[0xee; 16 * BLOCK], 0);
            assert_eq!(other.await.status, 0);
        }
        assert_eq!(bench.faults[0].hanging(), 40);
        bench.faults[0].clear();
        bench.release(0);
        for write in sent {
            assert_eq!(write.end().await.expect("an end").status, 0);
        }
        for place in 0..40 {
            let read = alice.command(0, &read_10(place * 2, 2), &[], 2 * BLOCK);
            assert_eq!(read.await.data_in.to_vec(), pattern(place), "{place}");
        }
    });
}
