mod local;
mod model;
mod real;

use crate::Arbiter;
use env::sim::{World, WorldConfig};
use env::{CoreHandle, LocalFuture};
use std::rc::Rc;
use std::time::Duration;

/// Simulated time that a run takes at most.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs in a world of one node, whose core 1 is another machine as good as any.
fn in_world<T: 'static>(
    seed: u64,
    run: impl FnOnce(CoreHandle, CoreHandle) -> LocalFuture<T>,
) -> T {
    let world = World::new(seed, WorldConfig::default());
    let node = world.node("a");
    let run = run(node.core(0), node.core(1));
    world.block_on(&node, LIMIT, run).unwrap()
}

fn shared(arbiter: impl Arbiter + 'static) -> Rc<dyn Arbiter> {
    Rc::new(arbiter)
}
