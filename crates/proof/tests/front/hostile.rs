//! Hosts and strangers that mean harm, or are broken: the places of logins, silence, and data that
//! never comes.

use crate::bench::{ALICE, BLOCK, BOB, Bench, Setup, TARGET, TEST_UNIT_READY, run, write_10};
use crate::raw::{Moves, Raw, ping};
use env::sim::{Fault, FaultPlan};
use iscsi::bhs::{Opcode, ReadyToTransfer};
use iscsi_target::Settings;
use std::time::Duration;
use volume::OpKind;

const SECOND: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;

fn with(settings: Settings) -> Setup {
    Setup {
        settings,
        ..Setup::default()
    }
}

/// One core with little memory, and a network that keeps its time.
fn little_memory(settings: Settings) -> Setup {
    let mut setup = with(settings);
    setup.units = 1;
    setup.world.cores = 1;
    setup.world.pool_bytes = 64 * MIB;
    setup.world.faults = FaultPlan::benign().with(Fault::NetSlow, 0);
    setup
}

fn memory_out(bench: &Bench) -> usize {
    let cores = bench.san.cores();
    cores.iter().map(|core| core.pool().out_bytes()).sum()
}

async fn discover(bench: &Bench) -> Raw {
    let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
    let text = format!("InitiatorName={ALICE}\0SessionType=Discovery\0");
    let (status, _) = raw.login_step(1, Some(3), 1, &text).await;
    assert_eq!(status, (0, 0));
    raw
}

#[test]
fn a_new_login_always_finds_a_place_and_the_oldest_without_progress_goes_for_it() {
    let settings = Settings {
        logins_in_progress_max: 8,
        ..Settings::default()
    };
    run(with(settings), |bench| async move {
        let old = bench.login(ALICE).await;
        old.settle(0).await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(Raw::connect(&bench.host_core, bench.portal).await);
            bench.sleep(Duration::from_millis(300)).await;
        }
        // One that was begun before most of the silent ones, and has come on since.
        let mut slow = Raw::connect(&bench.host_core, bench.portal).await;
        let text = format!("InitiatorName={BOB}\0TargetName={TARGET}\0AuthMethod=None\0");
        let (status, _) = slow.login_step(0, None, 1, &text).await;
        assert_eq!(status, (0, 0));
        for round in 0..20 {
            let new = bench.login(&format!("iqn.x:new{round}"));
            bench.within(SECOND, "a login", new).await.settle(0).await;
        }
        let (status, _) = slow.login_step(0, Some(1), 1, "").await;
        assert_eq!(status, (0, 0), "it was not the oldest");
        let (status, _) = slow.login_step(1, Some(3), 1, "").await;
        assert_eq!(status, (0, 0), "it was not the oldest");
        old.settle(0).await;
        let left = silent.iter().filter(|raw| !raw.is_closed_now()).count();
        assert!(
            left <= 8,
            "{left} are left of one source, which may have four and fresh ones"
        );
        let reported = bench.server.refusals().list();
        let newest = reported.iter().find(|one| one.reason.contains("place"));
        let newest = newest.expect("they are reported");
        assert!(newest.times >= 32, "{}", newest.times);
        assert!(newest.status.starts_with("0302"), "{}", newest.status);
    });
}

#[test]
fn discovery_sessions_take_no_place_from_logins_and_silent_ones_end() {
    let settings = Settings {
        logins_in_progress_max: 8,
        sessions_max: 4,
        ..Settings::default()
    };
    run(with(settings), |bench| async move {
        let mut idle = Vec::new();
        for _ in 0..30 {
            idle.push(discover(&bench).await);
            bench.sleep(Duration::from_millis(300)).await;
        }
        let left = idle.iter().filter(|raw| !raw.is_closed_now()).count();
        assert!(
            (4..=8).contains(&left),
            "a source has half of the places: {left}"
        );
        let host = bench.within(SECOND, "a login", bench.login(BOB)).await;
        host.settle(0).await;
        bench.sleep(26 * SECOND).await;
        for raw in &mut idle {
            // Nobody answers pings.
            bench.within(SECOND, "the end", raw.is_closed()).await;
        }
        assert_eq!(bench.sessions().await.len(), 1);
    });
}

#[test]
fn connections_at_rest_wake_nobody() {
    let settings = Settings {
        login_timeout: Duration::from_secs(300),
        ping_after: Duration::from_secs(300),
        ..Settings::default()
    };
    run(with(settings), |bench| async move {
        let mut silent = Vec::new();
        let mut hosts = Vec::new();
        for number in 0..60 {
            silent.push(Raw::connect(&bench.host_core, bench.portal).await);
            let name = format!("iqn.x:host{number}");
            hosts.push(Raw::login(&bench.host_core, bench.portal, &name, TARGET, "").await);
        }
        bench.sleep(SECOND).await;
        let before = bench.world.steps();
        bench.sleep(20 * SECOND).await;
        // What is left is the measure of the cores' load, four times a second whatever the
        // connections are.
        let steps = bench.world.steps() - before;
        assert!(steps < 3000, "{steps} steps while nothing happens");
    });
}

#[test]
fn commands_that_wait_for_memory_wake_nobody_while_none_comes_back() {
    let settings = Settings {
        ping_after: Duration::from_secs(300),
        data_timeout: Duration::from_secs(300),
        ..Settings::default()
    };
    run(little_memory(settings), |bench| async move {
        let silent = announce(&bench, 24, 64).await;
        bench.sleep(SECOND).await;
        let before = bench.world.steps();
        bench.sleep(20 * SECOND).await;
        let steps = bench.world.steps() - before;
        assert!(steps < 3000, "{steps} steps while nothing happens");
        drop(silent);
    });
}

/// Sessions of one host, each with so many writes of a MiB of which it sends nothing.
async fn announce(bench: &Bench, sessions: u8, writes: u32) -> Vec<Raw> {
    let mut all = Vec::new();
    for number in 0..sessions {
        let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
        raw.isid = iscsi::Isid([0x80, 0, 0, 0, 7, number]);
        let text = format!(
            "InitiatorName=iqn.x:evil\0TargetName={TARGET}\0SessionType=Normal\0InitialR2T=Yes\0ImmediateData=No\0"
        );
        let (status, _) = raw.login_step(1, Some(3), 1, &text).await;
        assert_eq!(status, (0, 0));
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        for tag in 2..2 + writes {
            let write = write_10(0, 2048);
            raw.command(tag, tag, false, &write, Moves::Out(1 << 20, &[]))
                .await;
        }
        all.push(raw);
    }
    all
}

const BURST: usize = 64 << 10;

/// A session that sends so many writes of a burst each to a LUN, with their data, unasked.
async fn send_unasked(bench: &Bench, initiator: &str, session: u8, writes: u32) -> Raw {
    let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
    raw.isid = iscsi::Isid([0x80, 0, 0, 0, 7, session]);
    let text = format!(
        "InitiatorName={initiator}\0TargetName={TARGET}\0SessionType=Normal\0InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength={BURST}\0"
    );
    let (status, _) = raw.login_step(1, Some(3), 1, &text).await;
    assert_eq!(status, (0, 0));
    raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
        .await;
    let data = vec![7; BURST];
    for tag in 2..2 + writes {
        let moves = Moves::Out(65_536, &data);
        raw.command(tag, tag, false, &write_10(0, 128), moves).await;
    }
    raw
}

/// Writes that were refused, and those that are not answered, of all sessions.
async fn refused_and_waiting(all: &mut [Raw], writes: u32) -> (usize, usize) {
    let mut refused = 0;
    for raw in &mut *all {
        // The first answer is that of TEST UNIT READY.
        raw.receive().await.expect("an answer");
        while let Some(answer) = raw.receive_now().await {
            let status = answer.status();
            assert!(
                matches!(status, 0x28 | 0x08),
                "{status:x}: TASK SET FULL or BUSY"
            );
            refused += 1;
        }
    }
    (refused, all.len() * writes as usize - refused)
}

#[test]
fn data_that_comes_unasked_takes_a_part_of_memory_and_leaves_others_room() {
    // 20 sessions of one host, and of 20 hosts.
    for (hosts, most) in [(1, 8 * MIB), (20, 16 * MIB + 20 * BURST)] {
        let settings = Settings {
            ping_after: Duration::from_secs(300),
            ..Settings::default()
        };
        let mut setup = little_memory(settings);
        setup.units = 2;
        run(setup, |bench| async move {
            bench.hang(0, &[OpKind::Write]);
            let mut evil = Vec::new();
            for number in 0..20 {
                let initiator = format!("iqn.x:evil{}", number % hosts);
                evil.push(send_unasked(&bench, &initiator, number, 100).await);
            }
            bench.sleep(SECOND).await;
            let (refused, waiting) = refused_and_waiting(&mut evil, 100).await;
            let parked = (waiting * BURST).saturating_sub(memory_out(&bench));
            assert!(refused > 0 && parked > 0, "{refused} refused");
            // Some are carried out from where they were received, and take nothing.
            let most = most + 8 * BURST;
            assert!(parked <= most, "{parked} bytes are parked");
            // Another host, with its data at once, and asked for.
            let fair = bench.within(SECOND, "a login", bench.login(BOB)).await;
            fair.settle(1).await;
            for blocks in [1, 8, 128, 1024] {
                let data = vec![9; usize::from(blocks) * BLOCK];
                let write = fair.command(1, &write_10(0, blocks), &data, 0);
                let write = bench.within(SECOND, "a write of another unit", write).await;
                assert_eq!(write.status, 0);
            }
            bench.release(0);
            bench.sleep(SECOND * 5).await;
            let mut carried_out = 0;
            for raw in &mut evil {
                while let Some(answer) = raw.receive_now().await {
                    assert_eq!(answer.status(), 0);
                    carried_out += 1;
                }
            }
            assert_eq!(carried_out, waiting);
            assert_eq!(memory_out(&bench), 0);
        });
    }
}

#[test]
fn hosts_that_announce_and_do_not_send_hold_up_nobody_and_are_reported_that_they_were_late() {
    let settings = Settings {
        data_timeout: Duration::from_secs(10),
        ping_after: Duration::from_secs(300),
        ..Settings::default()
    };
    run(little_memory(settings), |bench| async move {
        let mut silent = announce(&bench, 24, 64).await;
        bench.sleep(SECOND).await;
        assert!(memory_out(&bench) <= 4 * MIB, "{}", memory_out(&bench));
        let small = bench.within(SECOND, "a login", bench.login(ALICE)).await;
        small.settle(0).await;
        let fair = bench.within(SECOND, "a login", bench.login(BOB)).await;
        fair.settle(0).await;
        for round in 0..50_u8 {
            let data = vec![round; BLOCK];
            let write = small.command(0, &write_10(4096, 1), &data, 0);
            let write = bench.within(SECOND / 10, "512 bytes", write).await;
            assert_eq!(write.status, 0);
            let large: Vec<_> = (0..16)
                .map(|at| fair.send(0, &write_10(at * 2048, 2048), &vec![round; MIB], 0))
                .collect();
            for one in large {
                let end = bench.within(SECOND, "a large write", one.end()).await;
                assert_eq!(end.expect("it ends").status, 0);
            }
        }
        // Every write that was asked for ends, and so does the next one that gets its share.
        bench.sleep(12 * SECOND).await;
        let mut late = 0;
        for raw in &mut silent {
            let (mut answered, mut asked, before) = (false, 0, late);
            // The first answer is that of TEST UNIT READY.
            while let Some(pdu) = raw.receive_now().await {
                if pdu.opcode() == Opcode::ReadyToTransfer {
                    asked += 1;
                    continue;
                }
                assert_eq!(pdu.opcode(), Opcode::ScsiResponse);
                if std::mem::replace(&mut answered, true) {
                    assert_eq!(pdu.status(), 2, "CHECK CONDITION");
                    let sense = scsi::Sense::parse(&pdu.data[2..]).expect("sense");
                    assert_eq!(sense.key, scsi::SenseKey::AbortedCommand);
                    assert_eq!((sense.code.asc, sense.code.ascq), (0x4B, 6));
                    late += 1;
                }
            }
            assert!(late - before <= asked, "none that was not asked for");
        }
        assert!(late >= 2, "{late}");
        drop(silent);
        bench.sleep(SECOND).await;
        assert_eq!(memory_out(&bench), 0);
    });
}

/// Lists whose length is in the CDB with 32 bits: EXTENDED COPY (LID1), and PERSISTENT RESERVE OUT
/// (REGISTER).
fn with_list_of(bytes: u32) -> [[u8; 16]; 2] {
    let [mut copy, mut reserve] = [[0; 16]; 2];
    copy[0] = 0x83;
    copy[10..14].copy_from_slice(&bytes.to_be_bytes());
    reserve[0] = 0x5F;
    reserve[5..9].copy_from_slice(&bytes.to_be_bytes());
    [copy, reserve]
}

#[test]
fn a_parameter_list_that_nothing_could_follow_is_refused_before_it_takes_memory() {
    run(little_memory(Settings::default()), |bench| async move {
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, "").await;
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        raw.receive_for(1).await;
        let lengths = [(1 << 20) + 1, 1 << 30, u32::MAX];
        let mut all = Vec::new();
        for bytes in lengths {
            all.extend(with_list_of(bytes).map(|cdb| (bytes, cdb)));
        }
        for (number, (bytes, cdb)) in (2..).zip(all) {
            let moves = Moves::Out(bytes, &[]);
            raw.command(number, number, false, &cdb, moves).await;
            let answer = bench.within(SECOND, "an answer", raw.receive()).await;
            let answer = answer.expect("the session lives");
            assert_eq!(
                answer.opcode(),
                Opcode::ScsiResponse,
                "no data is asked for"
            );
            assert_eq!(answer.status(), 2, "CHECK CONDITION");
            let sense = scsi::Sense::parse(&answer.data[2..]).expect("sense");
            assert_eq!((sense.code.asc, sense.code.ascq), (0x1A, 0));
            assert_eq!(memory_out(&bench), 0);
        }
    });
}

#[test]
fn unsolicited_data_and_bursts_that_never_end_are_late_too() {
    let settings = Settings {
        data_timeout: Duration::from_secs(5),
        ping_after: Duration::from_secs(300),
        ..Settings::default()
    };
    run(with(settings), |bench| async move {
        let keys = "InitialR2T=No\0ImmediateData=Yes\0FirstBurstLength=65536\0";
        let mut raw = Raw::login(&bench.host_core, bench.portal, ALICE, TARGET, keys).await;
        raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
            .await;
        raw.receive_for(1).await;
        // Immediate data, with more to come unasked: it never does.
        raw.command_and_more(2, 2, &write_10(0, 128), 65536, &[7; 4096])
            .await;
        // A burst that was asked for, of which some comes, a little each second.
        raw.command(3, 3, false, &write_10(0, 128), Moves::Out(65536, &[]))
            .await;
        let r2t = raw.receive_for(3).await;
        assert_eq!(r2t.opcode(), Opcode::ReadyToTransfer);
        let asked = ReadyToTransfer::parse(&r2t.header).expect("an R2T");
        for sn in 0..4 {
            let offset = asked.buffer_offset + sn * 512;
            raw.data_piece(3, r2t.ttt(), sn, offset, false, &[9; 512])
                .await;
            bench.sleep(SECOND).await;
        }
        for _ in 0..2 {
            let pdu = bench.within(5 * SECOND, "an answer", raw.receive()).await;
            let pdu = pdu.expect("the session stands");
            assert_eq!((pdu.opcode(), pdu.status()), (Opcode::ScsiResponse, 2));
            let sense = scsi::Sense::parse(&pdu.data[2..]).expect("sense");
            assert_eq!((sense.code.asc, sense.code.ascq), (0x4B, 6));
        }
        // What still comes of them is thrown away, and the session goes on.
        raw.data_piece(
            3,
            r2t.ttt(),
            4,
            asked.buffer_offset + 2048,
            false,
            &[9; 512],
        )
        .await;
        raw.command(4, 4, false, &write_10(0, 1), Moves::Out(512, &[5; 512]))
            .await;
        assert_eq!(raw.receive_for(4).await.status(), 0);
        bench.sleep(SECOND).await;
        assert_eq!(memory_out(&bench), 0);
    });
}

#[test]
fn hosts_that_ask_and_do_not_read_hold_up_nobody_and_are_ended_whatever_they_send() {
    run(little_memory(Settings::default()), |bench| async move {
        let mut deaf = Vec::new();
        for number in 0..24_u8 {
            let mut raw = Raw::connect(&bench.host_core, bench.portal).await;
            raw.isid = iscsi::Isid([0x80, 0, 0, 0, 7, number]);
            let text = format!("InitiatorName=iqn.x:deaf\0TargetName={TARGET}\0");
            let (status, _) = raw.login_step(1, Some(3), 1, &text).await;
            assert_eq!(status, (0, 0));
            for tag in 1..65 {
                let read = crate::bench::read_10(0, 2048);
                raw.command(tag, tag, false, &read, Moves::In(1 << 20))
                    .await;
            }
            deaf.push(raw);
        }
        bench.sleep(SECOND).await;
        let small = bench.within(SECOND, "a login", bench.login(ALICE)).await;
        small.settle(0).await;
        for round in 0..24_u8 {
            let data = vec![round; BLOCK];
            let write = small.command(0, &write_10(4096, 1), &data, 0);
            let write = bench.within(SECOND / 10, "512 bytes", write).await;
            assert_eq!(write.status, 0);
            // They are alive, as far as they say.
            for raw in &mut deaf {
                raw.send(ping(), &[]).await;
            }
            bench.sleep(SECOND).await;
        }
        bench.sleep(4 * SECOND).await;
        assert_eq!(bench.sessions().await.len(), 1);
        small.settle(0).await;
        assert_eq!(memory_out(&bench), 0);
    });
}
