//! Hosts that have paths to the other node alone reach the LUN: what comes there is done by the
//! owner.

use crate::drain::drain;
use crate::initiator::{Ended, Initiator};
use crate::mirror::{Load, Pair};
use crate::reservations::reserve_out;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ALICE: &str = "iqn.2026-11.io.example:alice";
const BOB: &str = "iqn.2026-11.io.example:bob";
const CAROL: &str = "iqn.2026-11.io.example:carol";
const KEY: u64 = 0xa11ce;
const BLOCK: usize = 512;
const BUSY: u8 = 0x08;
const CONFLICT: u8 = 0x18;

/// A pair whose first node owns the LUN, and takes what comes to the other one.
fn pair(test: &str) -> Option<Pair> {
    let pair = Pair::start(test)?;
    pair.with_lun();
    pair.comes_to(0, "owner");
    pair.comes_to(1, "replica");
    for at in [0, 1] {
        pair.hears(at, ALICE, &[(1, 0, vec![1]), (2, 1, vec![1025])]);
    }
    Some(pair)
}

#[test]
fn a_host_with_paths_to_the_other_node_alone_reads_what_it_and_others_wrote() {
    let Some(mut pair) = pair("forward") else {
        return;
    };
    pair.writes(1, 0x11);
    pair.has(0, 0x11);
    pair.has(1, 0x11);
    pair.writes(0, 0x22);
    pair.has(1, 0x22);
    // Commands of several pieces, in both directions.
    let large = ["write -P 7 1M 5M", "read -P 7 1M 5M", "read -P 0 60M 4M"];
    let said = pair.host(1, &large.map(str::to_owned));
    assert!(!said.contains("failed"), "{said}");
    assert!(said.contains("read 5242880/5242880"), "{said}");
    // The other node takes over, and the first one forwards when it is back.
    pair.kill(0);
    pair.comes_to(1, "solo");
    let said = pair.host(1, &["read -P 7 1M 5M".to_owned()]);
    assert!(!said.contains("failed"), "{said}");
    pair.writes(1, 0x33);
    pair.begin(0);
    pair.comes_to(0, "replica");
    pair.hears(0, ALICE, &[(1, 1, vec![1]), (2, 0, vec![1025])]);
    pair.has(0, 0x33);
    pair.writes(0, 0x44);
    pair.has(1, 0x44);
}

/// One more in the counter of block 0, if it still has what was read of it.
fn adds_one(session: &mut Initiator) -> bool {
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let before = done(session, &read, &[], 512).data;
    let count = u64::from_be_bytes(before[..8].try_into().unwrap());
    let mut after = before.clone();
    after[..8].copy_from_slice(&(count + 1).to_be_bytes());
    let cas = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    let ended = done(session, &cas, &[before, after].concat(), 0);
    match (ended.status, ended.sense) {
        (0, _) => true,
        (2, Some([0xe, 0x1d, 0])) => false,
        _ => panic!("{ended:?}"),
    }
}

/// A command that is answered by something else than BUSY.
fn done(session: &mut Initiator, cdb: &[u8], out: &[u8], room: u32) -> Ended {
    loop {
        let (ended, _) = session.settled(cdb, out, room).unwrap();
        if ended.status != BUSY {
            return ended;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "hosts work at once")]
#[test]
fn compare_and_write_is_atomic_through_both_nodes_at_once() {
    let Some(pair) = pair("forward-cas") else {
        return;
    };
    let worker = |at: usize| {
        let mut session = pair.session(at, [ALICE, BOB][at]);
        std::thread::spawn(move || (0..300).filter(|_| adds_one(&mut session)).count())
    };
    let workers = [worker(0), worker(1)];
    let added = workers.map(|it| it.join().unwrap());
    println!("{added:?} of 300 each");
    assert!(added.iter().all(|it| *it > 0), "{added:?}");
    let mut session = pair.session(1, ALICE);
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let last = done(&mut session, &read, &[], 512).data;
    let count = u64::from_be_bytes(last[..8].try_into().unwrap());
    let total = u64::try_from(added.iter().sum::<usize>()).unwrap();
    assert_eq!(count, total, "{added:?}");
}

#[test]
fn reservations_hold_whatever_node_a_host_comes_through() {
    let Some(pair) = pair("forward-reservations") else {
        return;
    };
    let (mut alice, mut bob) = (pair.session(1, ALICE), pair.session(0, BOB));
    let write = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let data = [5; BLOCK];
    let writes = |session: &mut Initiator| done(session, &write, &data, 0).status;
    assert_eq!((writes(&mut alice), writes(&mut bob)), (0, 0));
    // Alice registers through the other node, and has the unit to herself.
    assert_eq!(reserve_out(&mut alice, (0, 0), (0, KEY, 0)).status, 0);
    assert_eq!(reserve_out(&mut alice, (1, 3), (KEY, 0, 0)).status, 0);
    assert_eq!((writes(&mut alice), writes(&mut bob)), (0, CONFLICT));
    // A session of hers at the owner's port is another nexus.
    let mut other = pair.session(0, ALICE);
    assert_eq!(writes(&mut other), CONFLICT);
    // The port is the one that all nodes call so.
    let full = done(&mut bob, &[0x5e, 3, 0, 0, 0, 0, 0, 4, 0, 0], &[], 1024);
    assert_eq!(full.data[8..16], KEY.to_be_bytes());
    assert_eq!(full.data[8 + 18..8 + 20], 1025_u16.to_be_bytes());
    // Bob takes it away through the owner; Alice hears of it through the other node.
    assert_eq!(reserve_out(&mut bob, (6, 0), (0, KEY + 1, 0)).status, 0);
    assert_eq!(reserve_out(&mut bob, (4, 3), (KEY + 1, KEY, 0)).status, 0);
    let (ended, attentions) = alice.settled(&write, &data, 0).unwrap();
    assert_eq!(ended.status, CONFLICT);
    assert_eq!(attentions, [[0x2a, 0x05]], "registrations preempted");
    assert_eq!(writes(&mut bob), 0);
    // An SPC-2 reservation ends with the session that made it, at whatever node that was.
    assert_eq!(reserve_out(&mut bob, (3, 0), (KEY + 1, 0, 0)).status, 0);
    let reserve = [0x16, 0, 0, 0, 0, 0];
    assert_eq!(done(&mut alice, &reserve, &[], 0).status, 0);
    assert_eq!(writes(&mut bob), CONFLICT);
    drop(alice);
    while writes(&mut bob) == CONFLICT {}
}

#[test]
fn a_host_of_the_other_node_sees_no_error_while_each_is_killed_in_turn() {
    let Some(mut pair) = pair("forward-kills") else {
        return;
    };
    let mut load = Load::at(&pair, &[1, 0], 200);
    for (owner, other) in [(0, 1), (1, 0)] {
        pair.kill(owner);
        pair.comes_to(other, "solo");
        pair.begin(owner);
        pair.comes_to(owner, "replica");
        load.goes_on();
    }
    let result = load.end();
    assert_eq!(result["errors"], 0, "{result}");
    assert_eq!(result["verify"]["bad"], 0, "{result}");
}

#[test]
fn a_host_of_the_other_node_alone_sees_no_error_while_the_owner_is_drained_and_dies() {
    let Some(mut pair) = pair("forward-alone") else {
        return;
    };
    let mut load = Load::at(&pair, &[1], 200);
    for (from, to) in [(0, 1), (1, 0)] {
        drain(&pair, from, 0, "");
        pair.comes_to(to, "owner");
        pair.comes_to(from, "replica");
        load.goes_on();
    }
    pair.kill(0);
    pair.comes_to(1, "solo");
    load.goes_on();
    pair.begin(0);
    pair.comes_to(0, "replica");
    load.goes_on();
    let result = load.end();
    for none in ["errors", "never_returned"] {
        assert_eq!(result[none], 0, "{result}");
    }
    assert_eq!(result["verify"]["bad"], 0, "{result}");
    println!("the longest stall: {} ms", result["stall_ms_max"]);
}

/// What hosts may hear of while the owner changes: BUSY, unit attentions, and that a path is not
/// available now.
fn is_no_error(ended: &Ended) -> bool {
    let is_known = matches!(ended.sense, Some([6, _, _] | [2, 0x04, 0x0c]));
    ended.status == 0 || ended.status == BUSY || (ended.status == 2 && is_known)
}

#[expect(clippy::disallowed_methods, reason = "a host works meanwhile")]
#[test]
fn a_host_of_the_other_node_hears_of_its_new_owner_and_of_no_error() {
    let Some(pair) = pair("forward-moves") else {
        return;
    };
    let done_with = Arc::new(AtomicBool::new(false));
    let hosts = [(0, ALICE), (1, BOB)].map(|(at, name)| {
        let mut session = pair.session(at, name);
        let ends = Arc::clone(&done_with);
        std::thread::spawn(move || {
            let write = [0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0];
            let (mut attentions, mut done) = (BTreeSet::new(), 0_u32);
            while !ends.load(Ordering::Relaxed) {
                let ended = session.run(&write, &[5; BLOCK], 0).unwrap();
                assert!(is_no_error(&ended), "{name}: {ended:?}");
                attentions.extend(ended.sense.filter(|it| it[0] == 6).map(|it| (it[1], it[2])));
                done += u32::from(ended.status == 0);
            }
            (attentions, done)
        })
    });
    for (from, to) in [(0, 1), (1, 0)] {
        drain(&pair, from, 0, "");
        pair.comes_to(to, "owner");
        pair.comes_to(from, "replica");
        let owner = u16::try_from(to).unwrap();
        let states = [0, 1].map(|it| u8::from(it != owner));
        for at in [0, 1] {
            pair.hears(
                at,
                CAROL,
                &[(1, states[0], vec![1]), (2, states[1], vec![1025])],
            );
        }
    }
    done_with.store(true, Ordering::Relaxed);
    for host in hosts {
        let (attentions, done) = host.join().unwrap();
        println!("{done} writes, attentions {attentions:x?}");
        assert!(
            done > 100 && attentions.contains(&(0x2a, 0x06)),
            "{attentions:x?}"
        );
    }
}
