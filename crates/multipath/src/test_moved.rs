//! A unit that is served through another port from now on: two nodes of a cluster with a copy each.

use super::test::{simulate, write};
use super::wires::{Target, Wire, multipath, target};
use super::{Config, Multipath};
use env::CoreHandle;
use paths::health::AccessState;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, BlockSize};
use volume::Lane;
use volume_test::plain::Plain;

/// Who serves takes no longer than this to be found, once it does.
const FOUND_WITHIN: Duration = Duration::from_millis(250);

/// The port of this path serves nobody.
fn not_served(target: &Target, path: u32) {
    let mut access = target.access.borrow_mut();
    access.insert(path, AccessState::Unavailable);
}

async fn pass(core: &CoreHandle, milliseconds: u64) {
    let until = core.now().after(Duration::from_millis(milliseconds));
    core.sleep_until(until).await;
}

/// A host writes; two ports, of which the second serves nobody.
async fn two_nodes(core: &CoreHandle) -> (Rc<Target>, Multipath) {
    let below = Plain::make(BlockSize::B512, BlockCount(64));
    let shape = below.shape();
    let lane = below.open(core).await.unwrap();
    let target = target(core, lane, 2, 1, true);
    not_served(&target, 1);
    let layer = multipath(core, shape, Config::default(), &target);
    pass(core, 20).await;
    // By both paths, until it is known which one serves.
    for at in 0..8 {
        layer.submit(write(at, 1)).await.unwrap();
    }
    (target, layer)
}

#[test]
fn a_port_is_asked_often_while_nothing_else_serves_and_seldom_while_something_does() {
    simulate(1, |core| {
        Box::pin(async move {
            let (target, layer) = two_nodes(&core).await;
            target.questions.set(0);
            pass(&core, 10_000).await;
            let seldom = target.questions.get();
            assert!((8..=11).contains(&seldom), "{seldom} in ten seconds");
            // The node that serves dies, and the other one takes over after three seconds.
            target.set(0, Wire::Cut);
            let waits = layer.submit(write(0, 2));
            pass(&core, 3000).await;
            let often = target.questions.get() - seldom;
            assert!((25..=40).contains(&often), "{often} in three seconds");
            target.access.borrow_mut().clear();
            let served = core.now();
            waits.await.unwrap();
            let took = core.now().since(served);
            assert!(took < FOUND_WITHIN, "{took:?}");
        })
    });
}

#[test]
fn what_a_port_said_through_an_earlier_session_is_asked_anew() {
    simulate(1, |core| {
        Box::pin(async move {
            let (target, layer) = two_nodes(&core).await;
            // The node that does not serve begins anew, and serves from then on.
            target.set(1, Wire::Cut);
            pass(&core, 2000).await;
            target.access.borrow_mut().clear();
            target.set(1, Wire::Good);
            pass(&core, 4000).await;
            target.set(0, Wire::Cut);
            let lost = core.now();
            layer.submit(write(0, 2)).await.unwrap();
            let took = core.now().since(lost);
            assert!(took < FOUND_WITHIN, "{took:?}");
        })
    });
}

#[test]
fn two_nodes_that_die_in_turn_are_found_each_time() {
    simulate(1, |core| {
        Box::pin(async move {
            let (target, layer) = two_nodes(&core).await;
            let mut owner = 0;
            for _ in 0..6 {
                let other = 1 - owner;
                target.set(owner, Wire::Cut);
                let waits = layer.submit(write(0, 2));
                pass(&core, 3000).await;
                target.access.borrow_mut().remove(&other);
                let served = core.now();
                waits.await.unwrap();
                let took = core.now().since(served);
                assert!(took < FOUND_WITHIN, "{took:?}");
                // It comes back, and is not trusted yet when the other one dies.
                not_served(&target, owner);
                target.set(owner, Wire::Good);
                pass(&core, 700).await;
                owner = other;
            }
        })
    });
}
