//! The initiator's reservation key: on every path before it carries I/O, and never again once
//! another host has taken it away.

use crate::bench::{ALICE, BOB, Bench, Setup, run};
use crate::host::Host;
use crate::ports::{initiator_port, keys, reserve_out};
use crate::unanswered::{all_up, paths, write_of};
use multipath::Multipath;
use paths::health::State;
use std::time::Duration;
use volume::{IoError, Lane};

const KEY: u64 = 0xa11ce;
const OTHERS: u64 = 0xb0b;
const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_MOVE: u8 = 7;
/// A key that one path has alone.
const ALONE: u64 = 0xa10e;
/// Write Exclusive, Registrants Only (SPC-4 6.16.2 "PERSISTENT RESERVE OUT service actions").
const FOR_REGISTRANTS: u8 = 5;

fn setup() -> Setup {
    Setup {
        units: 1,
        ..Setup::default()
    }
}

/// Bob has reserved the unit for those who have registered.
async fn reserved_by_bob(bench: &Bench) -> Host {
    let bob = bench.login(BOB).await;
    bob.settle(0).await;
    assert_eq!(reserve_out(&bob, REGISTER, 0, &keys(0, OTHERS, 0)).await, 0);
    let reserve = keys(OTHERS, 0, 0);
    assert_eq!(
        reserve_out(&bob, RESERVE, FOR_REGISTRANTS, &reserve).await,
        0
    );
    bob
}

async fn registered(bob: &Host) -> usize {
    let cdb = [0x5e, 0, 0, 0, 0, 0, 0, 4, 0, 0];
    let data = bob.command(0, &cdb, &[], 1024).await.data_in.to_vec();
    let all = data[8..].chunks_exact(8);
    all.filter(|it| **it == KEY.to_be_bytes()).count()
}

async fn write(lane: &Multipath, byte: u8) -> Result<(), IoError> {
    lane.submit(write_of(byte)).await.map(|_| ())
}

/// The target ends every session of the initiator under test.
async fn drop_all(bench: &Bench) {
    for session in bench.sessions().await {
        if session.initiator != BOB {
            let dropped = bench.server.drop_session(&bench.core, session.number);
            assert!(dropped.await);
        }
    }
}

#[test]
fn without_a_key_a_reservation_for_registrants_keeps_its_writes_out() {
    run(setup(), |bench| async move {
        let _bob = reserved_by_bob(&bench).await;
        let (lane, _unit) = paths(&bench, &[bench.portal, bench.portal], None).await;
        assert_eq!(write(&lane, 1).await, Err(IoError::WriteProtected));
    });
}

#[test]
fn every_path_that_joins_or_comes_back_has_registered_before_it_carries_a_write() {
    run(setup(), |bench| async move {
        let bob = reserved_by_bob(&bench).await;
        let portals = [bench.portal, bench.portal, bench.portal];
        let (lane, unit) = paths(&bench, &portals, Some(KEY)).await;
        assert_eq!(registered(&bob).await, 3, "one for each path");
        lane.set_policy("round-robin".parse().expect("a policy"));
        for turn in 0..30 {
            write(&lane, turn).await.expect("it is registered");
        }
        drop_all(&bench).await;
        for turn in 0..30 {
            write(&lane, turn).await.expect("it is registered again");
            bench.sleep(Duration::from_millis(50)).await;
        }
        all_up(&bench, &lane).await;
        for turn in 0..30 {
            write(&lane, turn).await.expect("on every path");
        }
        assert_eq!(registered(&bob).await, 3, "names of paths are kept");
        assert!(!unit.is_preempted());
    });
}

/// REGISTER AND MOVE of Bob's reservation to the port of a path, under another key.
fn moving_to_path(bench: &Bench, path: u8) -> Vec<u8> {
    let mut list = [OTHERS.to_be_bytes(), ALONE.to_be_bytes()].concat();
    let relative_port = bench.server.export().targets[0].relative_port;
    list.extend([0, 0]);
    list.extend(relative_port.to_be_bytes());
    let transport = initiator_port(ALICE, &format!("8001020300{path:02x}"));
    list.extend(u32::try_from(transport.len()).expect("short").to_be_bytes());
    list.extend(transport);
    list
}

/// Only one path loses its registration: by way of a reservation that is moved to it and preempted
/// there.
#[test]
fn a_path_that_loses_its_key_alone_registers_again_and_goes_on() {
    run(setup(), |bench| async move {
        let bob = reserved_by_bob(&bench).await;
        let (lane, unit) = paths(&bench, &[bench.portal, bench.portal], Some(KEY)).await;
        write(&lane, 1).await.expect("it is registered");
        let before = bench.sessions().await.len();
        let moving = moving_to_path(&bench, 0);
        assert_eq!(reserve_out(&bob, REGISTER_AND_MOVE, 0, &moving).await, 0);
        assert_eq!(registered(&bob).await, 1, "path 0 has another key now");
        let preempt = keys(OTHERS, ALONE, 0);
        assert_eq!(
            reserve_out(&bob, PREEMPT, FOR_REGISTRANTS, &preempt).await,
            0
        );
        assert_eq!(registered(&bob).await, 1);
        // Path 0 takes everything; it meets the conflict, and the write is not refused.
        for turn in 0..5 {
            write(&lane, turn)
                .await
                .expect("the other path has the key");
        }
        assert_eq!(registered(&bob).await, 2);
        assert!(!unit.is_preempted());
        assert_eq!(bench.sessions().await.len(), before, "no path has failed");
        let first = lane.status()[0];
        assert_eq!((first.state, first.in_flight), (State::Up, 0));
    });
}

#[test]
fn a_host_that_was_preempted_writes_no_more_and_does_not_register_again() {
    for with_sessions in [true, false] {
        run(setup(), move |bench| async move {
            let bob = reserved_by_bob(&bench).await;
            let (lane, unit) = paths(&bench, &[bench.portal, bench.portal], Some(KEY)).await;
            write(&lane, 1).await.expect("it is registered");
            let preempt = keys(OTHERS, KEY, 0);
            let preempted = reserve_out(&bob, PREEMPT_AND_ABORT, FOR_REGISTRANTS, &preempt).await;
            assert_eq!(preempted, 0);
            if with_sessions {
                assert_eq!(write(&lane, 2).await, Err(IoError::WriteProtected));
            }
            drop_all(&bench).await;
            bench.sleep(Duration::from_secs(1)).await;
            all_up(&bench, &lane).await;
            assert!(unit.is_preempted());
            // The reservation is gone: only the host itself keeps its writes back.
            assert_eq!(reserve_out(&bob, REGISTER, 0, &keys(OTHERS, 0, 0)).await, 0);
            assert_eq!(write(&lane, 3).await, Err(IoError::WriteProtected));
            assert_eq!(registered(&bob).await, 0);
        });
    }
}
