//! What hosts set of a LUN with copies outlives the node that served them.

use crate::initiator::{Ended, Initiator};
use crate::mirror::Pair;

const KEY: u64 = 0xa11ce;
const READ: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
const BUSY: u8 = 0x08;
const CONFLICT: u8 = 0x18;
const ALICE: &str = "iqn.2026-11.io.example:alice";
const BOB: &str = "iqn.2026-11.io.example:bob";

/// PERSISTENT RESERVE OUT with keys and the byte of SPEC_I_PT, ALL_TG_PT and APTPL.
pub(super) fn reserve_out(
    session: &mut Initiator,
    (action, kind): (u8, u8),
    (key, service, flags): (u64, u64, u8),
) -> Ended {
    let mut list = [key.to_be_bytes(), service.to_be_bytes()].concat();
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0];
    session.settled(&cdb, &list, 0).unwrap().0
}

/// READ KEYS, READ RESERVATION and READ FULL STATUS.
fn reported(session: &mut Initiator) -> Vec<Vec<u8>> {
    let mut read = |action: u8| {
        let cdb = [0x5e, action, 0, 0, 0, 0, 0, 4, 0, 0];
        let (ended, _) = session.settled(&cdb, &[], 1024).unwrap();
        assert_eq!(ended.status, 0, "{ended:?}");
        ended.data
    };
    [0, 1, 3].map(&mut read).into()
}

fn reads(session: &mut Initiator) -> u8 {
    session.settled(&READ, &[], 512).unwrap().0.status
}

#[test]
fn reservations_outlive_the_node_that_served_them_and_go_back_with_the_lun() {
    let Some(mut pair) = Pair::start("reservations") else {
        return;
    };
    pair.with_lun();
    pair.comes_to(1, "replica");
    let mut alice = pair.session(0, ALICE);
    let mut bob = pair.session(0, BOB);
    // Without APTPL; Alice at the ports of both nodes. Then exclusive access for registrants.
    for (session, key, flags) in [(&mut alice, KEY, 0x04), (&mut bob, KEY + 1, 0)] {
        let registered = reserve_out(session, (0, 0), (0, key, flags));
        assert_eq!(registered.status, 0, "{registered:?}");
    }
    assert_eq!(reserve_out(&mut alice, (1, 6), (KEY, 0, 0)).status, 0);
    assert_eq!((reads(&mut alice), reads(&mut bob)), (0, 0));
    let before = reported(&mut alice);
    // Those who came through the other node hear of what they cannot know.
    let mut waits = pair.session(1, BOB);
    assert_eq!(reads(&mut waits), CONFLICT, "he is no registrant there");
    pair.kill(0);
    pair.comes_to(1, "solo");
    let mut due = Vec::new();
    let conflict = loop {
        let (ended, attentions) = waits.settled(&READ, &[], 512).unwrap();
        due.extend(attentions);
        // Until it is served: the node knows that it serves a moment before hosts do.
        if ended.sense != Some([2, 0x04, 0x0c]) && ended.status != BUSY {
            break ended;
        }
    };
    assert!(
        due.contains(&[0x29, 0x07]) && due.contains(&[0x2a, 0x06]),
        "{due:x?}"
    );
    // Bob is registered at the other port alone.
    assert_eq!(conflict.status, CONFLICT);
    let mut alice = pair.session(1, ALICE);
    assert_eq!(reads(&mut alice), 0, "she registered at both nodes");
    assert_eq!(reported(&mut alice), before, "with the same PRGENERATION");
    let changed = reserve_out(&mut waits, (0, 0), (0, KEY + 1, 0));
    assert_eq!(changed.status, 0, "{changed:?}");
    assert_eq!(reads(&mut waits), 0);
    let after = reported(&mut alice);
    // The first node comes back, gets it all, and takes over in its turn.
    pair.begin(0);
    pair.comes_to(0, "replica");
    pair.comes_to(1, "owner");
    pair.kill(1);
    pair.comes_to(0, "solo");
    let mut alice = served(&pair, 0, ALICE);
    assert_eq!(reported(&mut alice), after);
    let mut eve = pair.session(0, "iqn.2026-11.io.example:eve");
    assert_eq!(reads(&mut eve), CONFLICT);
    assert_eq!(reads(&mut alice), 0);
    // All lose power: nobody asked for persistence.
    pair.kill(0);
    pair.begin(0);
    pair.comes_to(0, "solo");
    let mut eve = served(&pair, 0, "iqn.2026-11.io.example:eve");
    assert_eq!(reads(&mut eve), 0);
    assert_eq!(reported(&mut eve)[0], [0; 8]);
}

/// A session at a node that serves, as soon as it does so for hosts.
fn served(pair: &Pair, at: usize, name: &str) -> Initiator {
    loop {
        let mut session = pair.session(at, name);
        let ended = session.settled(&[0; 6], &[], 0).unwrap().0;
        if ended.sense != Some([2, 0x04, 0x0c]) && ended.status != BUSY {
            return session;
        }
    }
}
