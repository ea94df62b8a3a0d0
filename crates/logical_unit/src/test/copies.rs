//! What hosts set of a unit on one node is what another one goes on with.

use super::bench::Bench;
use super::groups::{attentions, nexus_at, run};
use crate::{HeldState, NodeNumber, NotKept, StateCopies};
use env::{CoreHandle, LocalFuture};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use volume::Access;

const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const KEY: u64 = 0xa11ce;
const BUSY: u8 = 0x08;
const CONFLICT: u8 = 0x18;

/// The nodes in sync, as far as the unit sees them.
#[derive(Default)]
struct Copies {
    kept: Mutex<Vec<Vec<u8>>>,
    refuses: Mutex<Option<NotKept>>,
}

impl Copies {
    fn last(&self) -> Option<Vec<u8>> {
        self.kept.lock().unwrap().last().cloned()
    }

    fn count(&self) -> usize {
        self.kept.lock().unwrap().len()
    }
}

impl StateCopies for Copies {
    fn keep(&self, _: &CoreHandle, state: Vec<u8>) -> LocalFuture<Result<(), NotKept>> {
        let refuses = *self.refuses.lock().unwrap();
        if refuses.is_none() {
            self.kept.lock().unwrap().push(state);
        }
        Box::pin(std::future::ready(refuses.map_or(Ok(()), Err)))
    }
}

/// A node that has copies, with this number.
fn node(seed: u64, number: u8) -> (Bench, Arc<Copies>) {
    let (bench, copies) = (Bench::new(seed), Arc::new(Copies::default()));
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    unit.set_copies(Arc::clone(&copies) as Arc<dyn StateCopies>);
    bench.run(async move {
        unit.set_node(&core, NodeNumber(number)).await;
        unit.set_access(&core, Access::Elsewhere(None)).await;
    });
    (bench, copies)
}

fn serves(bench: &Bench, state: Option<Vec<u8>>, lived: bool) {
    let (unit, core) = (Arc::clone(&bench.unit), bench.node.core(0));
    let held = HeldState { state, lived };
    let served = bench.run(async move { unit.serve(&core, held).await });
    served.unwrap();
}

fn list(key: u64, service: u64, flags: u8) -> Vec<u8> {
    let mut list = [key.to_be_bytes(), service.to_be_bytes()].concat();
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    list
}

fn out(action: u8, kind: u8) -> [u8; 10] {
    [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0]
}

/// READ KEYS, READ RESERVATION and READ FULL STATUS, with PRGENERATION.
fn reported(bench: &Bench, nexus: &std::rc::Rc<crate::Nexus>) -> Vec<Vec<u8>> {
    let read = |action: u8| {
        let answered = run(bench, nexus, &[0x5e, action, 0, 0, 0, 0, 0, 4, 0, 0], &[]);
        assert_eq!(answered.status, 0, "{answered:?}");
        answered.data
    };
    [0, 1, 3].map(read).into()
}

#[test]
fn who_takes_over_has_all_reservations_and_mode_pages_though_nobody_asked_for_persistence() {
    let (a, at_a) = node(1, 0);
    serves(&a, None, false);
    assert_eq!(at_a.count(), 1, "it counts from now on");
    let (alice, bob) = (nexus_at(&a, 0, "iqn.a", 5), nexus_at(&a, 1, "iqn.b", 5));
    let _first = (attentions(&a, &alice), attentions(&a, &bob));
    for (nexus, key) in [(&alice, KEY), (&bob, KEY + 1)] {
        assert_eq!(run(&a, nexus, &out(0, 0), &list(0, key, 0)).status, 0);
    }
    // Exclusive access, registrants only.
    assert_eq!(run(&a, &alice, &out(1, 6), &list(KEY, 0, 0)).status, 0);
    assert_eq!(at_a.count(), 4, "each change was kept");
    // SWP is one.
    let mut page = run(&a, &alice, &[0x1a, 0x08, 0x0a, 0, 255, 0], &[]).data;
    page[..4].fill(0);
    page[4] &= 0x3f;
    page[8] |= 0x08;
    let select = [0x15, 0x10, 0, 0, u8::try_from(page.len()).unwrap(), 0];
    assert_eq!(run(&a, &alice, &select, &page).status, 0);
    assert_eq!(at_a.count(), 5);
    let before = reported(&a, &alice);
    assert_eq!(at_a.count(), 5, "nothing changed");

    // Hosts have paths to the other node meanwhile.
    let (b, at_b) = node(2, 1);
    let (eve, there) = (nexus_at(&b, 0, "iqn.e", 5), nexus_at(&b, 1, "iqn.a", 5));
    let _first = (attentions(&b, &eve), attentions(&b, &there));
    serves(&b, at_a.last(), true);
    assert_eq!(at_b.count(), 0, "all nodes have it");
    let due = BTreeSet::from([[0x2a, 0x06], [0x29, 0x07]]);
    for nexus in [&eve, &there] {
        let found = attentions(&b, nexus).into_iter().collect::<BTreeSet<_>>();
        assert_eq!(found, due);
    }
    assert_eq!(reported(&b, &eve), before);
    assert_eq!(run(&b, &eve, &READ, &[]).status, CONFLICT);
    // The holder goes on by its key, through another port.
    assert_eq!(run(&b, &there, &READ, &[]).status, CONFLICT);
    assert_eq!(run(&b, &there, &out(0, 0), &list(0, KEY, 0)).status, 0);
    assert_eq!(run(&b, &there, &READ, &[]).status, 0);
    assert_eq!(at_b.count(), 1);
    let generation = |of: &[Vec<u8>]| of[0][..4].to_vec();
    let after = reported(&b, &there);
    let was = u32::from_be_bytes(generation(&before).try_into().unwrap());
    assert_eq!(generation(&after), (was + 1).to_be_bytes());
    let sense = run(&b, &there, &[0x1a, 0x08, 0x0a, 0, 255, 0], &[]).data;
    assert_eq!(sense[8] & 0x08, 0x08, "software write protection");

    // Back, and all lost power: nothing of it was to persist.
    let (c, at_c) = node(3, 0);
    let anyone = nexus_at(&c, 0, "iqn.e", 5);
    let _first = attentions(&c, &anyone);
    serves(&c, at_b.last(), false);
    assert_eq!(at_c.count(), 1);
    let _reported = attentions(&c, &anyone);
    assert_eq!(reported(&c, &anyone)[0], [0; 8]);
    assert_eq!(run(&c, &anyone, &READ, &[]).status, 0);
}

#[test]
fn with_aptpl_a_registration_outlives_the_power_of_all_nodes_and_spc_2_the_owner() {
    let (a, at_a) = node(4, 0);
    serves(&a, None, false);
    let alice = nexus_at(&a, 0, "iqn.a", 5);
    let _first = attentions(&a, &alice);
    assert_eq!(run(&a, &alice, &out(0, 0), &list(0, KEY, 1)).status, 0);
    let (b, _) = node(5, 1);
    serves(&b, at_a.last(), false);
    let bob = nexus_at(&b, 0, "iqn.b", 5);
    let _first = attentions(&b, &bob);
    let keys = reported(&b, &bob).remove(0);
    assert_eq!(keys[4..], [&[0, 0, 0, 8][..], &KEY.to_be_bytes()].concat());
    assert_eq!(keys[..4], [0; 4], "PRGENERATION begins anew");

    let (a, at_a) = node(6, 0);
    serves(&a, None, false);
    let alice = nexus_at(&a, 0, "iqn.a", 5);
    let _first = attentions(&a, &alice);
    assert_eq!(run(&a, &alice, &[0x16, 0, 0, 0, 0, 0], &[]).status, 0);
    let (b, _) = node(7, 1);
    serves(&b, at_a.last(), true);
    let bob = nexus_at(&b, 0, "iqn.b", 5);
    let _first = attentions(&b, &bob);
    assert_eq!(run(&b, &bob, &READ, &[]).status, CONFLICT);
}

#[test]
fn what_is_not_kept_did_not_happen_and_what_is_damaged_is_not_served() {
    let (a, at_a) = node(8, 0);
    serves(&a, None, false);
    let alice = nexus_at(&a, 0, "iqn.a", 5);
    let _first = attentions(&a, &alice);
    let before = reported(&a, &alice);
    *at_a.refuses.lock().unwrap() = Some(NotKept::NotHere);
    let refused = run(&a, &alice, &out(0, 0), &list(0, KEY, 0));
    assert_eq!(refused.status, BUSY);
    assert_eq!(reported(&a, &alice), before);
    let (b, _) = node(9, 1);
    let mut state = at_a.last().unwrap();
    *state.last_mut().unwrap() ^= 1;
    let (unit, core) = (Arc::clone(&b.unit), b.node.core(0));
    let held = HeldState {
        state: Some(state),
        lived: true,
    };
    let served = b.run(async move { unit.serve(&core, held).await });
    assert_eq!(served, Err(crate::StateDamaged));
    let bob = nexus_at(&b, 0, "iqn.b", 5);
    let _first = attentions(&b, &bob);
    assert_eq!(run(&b, &bob, &READ, &[]).sense, Some([2, 0x04, 0x0c]));
}
