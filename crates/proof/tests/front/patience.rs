//! Who keeps a place, memory and a session among those that do not take part: whoever comes on,
//! waits or reads.

use crate::bench::{ALICE, BOB, Setup, TARGET, TEST_UNIT_READY, read_10, run, write_10};
use crate::raw::{Moves, Raw, ping};
use env::sim::{Fault, FaultPlan};
use iscsi_target::Settings;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MIB: usize = 1 << 20;

#[test]
fn a_login_that_comes_on_keeps_its_place_before_later_ones_that_do_not() {
    let settings = Settings {
        // Four for one source.
        logins_in_progress_max: 8,
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    run(setup, |bench| async move {
        let mut slow = Raw::connect(&bench.host_core, bench.portal).await;
        bench.sleep(SECOND).await;
        let mut silent = Vec::new();
        for _ in 0..3 {
            silent.push(Raw::connect(&bench.host_core, bench.portal).await);
        }
        bench.sleep(SECOND).await;
        let text = format!("InitiatorName={BOB}\0TargetName={TARGET}\0AuthMethod=None\0");
        let (status, _) = slow.login_step(0, None, 1, &text).await;
        assert_eq!(status, (0, 0));
        // Older than a second, all of them: each that comes takes one place.
        bench.sleep(2 * SECOND).await;
        for _ in 0..3 {
            silent.push(Raw::connect(&bench.host_core, bench.portal).await);
            bench.sleep(SECOND / 10).await;
        }
        let closed = silent.iter().filter(|raw| raw.is_closed_now()).count();
        assert_eq!(closed, 3, "those that never said anything");
        assert!(!slow.is_closed_now());
        let (status, _) = slow.login_step(0, Some(1), 1, "").await;
        assert_eq!(status, (0, 0));
    });
}

/// Hosts that were granted memory for their writes, and send nothing, leave none of it to a
/// newcomer's large write, which is begun as soon as they are gone: nobody else's work wakes it.
#[test]
fn a_write_that_waits_for_memory_that_others_hold_begins_when_they_go() {
    let mut setup = Setup::default();
    setup.settings.ping_after = Duration::from_secs(300);
    setup.settings.data_timeout = Duration::from_secs(300);
    setup.units = 1;
    setup.world.cores = 1;
    setup.world.pool_bytes = 64 * MIB;
    setup.world.faults = FaultPlan::benign().with(Fault::NetSlow, 0);
    run(setup, |bench| async move {
        let keys = "InitialR2T=Yes\0ImmediateData=No\0";
        let mut holding = Vec::new();
        for number in 0..16 {
            let name = format!("iqn.x:silent{number}");
            let mut raw = Raw::login(&bench.host_core, bench.portal, &name, TARGET, keys).await;
            raw.command(1, 1, false, &TEST_UNIT_READY, Moves::Nothing)
                .await;
            raw.command(2, 2, false, &write_10(0, 2048), Moves::Out(1 << 20, &[]))
                .await;
            holding.push(raw);
        }
        let host = bench.login(ALICE).await;
        host.settle(0).await;
        let mut write = host.send(0, &write_10(4096, 2048), &vec![7; MIB], 0);
        bench.sleep(2 * SECOND).await;
        assert!(write.ended().is_none(), "a quarter of all is awaited");
        drop(holding);
        let end = bench.within(SECOND, "the write", write.end()).await;
        assert_eq!(end.expect("answered").status, 0);
    });
}

#[test]
fn a_host_that_reads_nothing_of_little_is_ended_although_it_pings() {
    run(Setup::default(), |bench| async move {
        let mut deaf = Raw::login(&bench.host_core, bench.portal, BOB, TARGET, "").await;
        for tag in 1..5 {
            deaf.command(tag, tag, false, &read_10(0, 2048), Moves::In(1 << 20))
                .await;
        }
        for second in 0..40 {
            if bench.sessions().await.is_empty() {
                assert!(second >= 24, "it had its time: {second} s");
                return;
            }
            deaf.send(ping(), &[]).await;
            bench.sleep(SECOND).await;
        }
        panic!("its session lives");
    });
}

/// A byte now and then is no reading: the replies that wait are memory of all.
#[test]
fn a_host_that_reads_a_byte_now_and_then_is_ended_too() {
    run(Setup::default(), |bench| async move {
        let mut deaf = Raw::login(&bench.host_core, bench.portal, BOB, TARGET, "").await;
        for tag in 1..5 {
            deaf.command(tag, tag, false, &read_10(0, 2048), Moves::In(1 << 20))
                .await;
        }
        let mut taken = 0;
        for second in 0..40 {
            if bench.sessions().await.is_empty() {
                assert!(second >= 24 && taken > 20, "{second} s, {taken} bytes");
                return;
            }
            taken += u32::from(deaf.take_a_byte());
            deaf.send(ping(), &[]).await;
            bench.sleep(SECOND).await;
        }
        panic!("its session lives");
    });
}

/// More pings than replies may wait: no more is worked on until some are read, and then each is
/// answered.
#[test]
fn a_host_that_sends_much_before_it_reads_gets_every_reply() {
    const PINGS: u32 = 3000;
    run(Setup::default(), |bench| async move {
        let mut raw = Raw::login(&bench.host_core, bench.portal, BOB, TARGET, "").await;
        let mut sender = raw.sender();
        let sent = bench.start(async move {
            for _ in 0..PINGS {
                sender.send(ping(), &[7; 8192]).await;
            }
        });
        bench.sleep(5 * SECOND).await;
        assert!(sent.borrow().is_none(), "the target takes no more for now");
        for number in 0..PINGS {
            let pong = raw.receive().await;
            let pong = pong.unwrap_or_else(|| panic!("the connection ended at {number}"));
            assert_eq!(pong.opcode(), iscsi::bhs::Opcode::NopIn);
            assert_eq!(pong.data.len(), 8192);
        }
    });
}
