//! What is simulated: how the nodes are set up, and how a client gets a lane.

use env::CoreHandle;
use env::sim::{Node, Rng, World};
use std::rc::Rc;
use units::BlockSize;
use volume::{Lane, Shape};

use env::LocalFuture;

/// A lane with the facts of the volume behind it.
pub struct Opened {
    /// Where requests go.
    pub lane: Rc<dyn Lane>,
    /// What the volume says of itself.
    pub shape: Shape,
    /// Zeroes and discards can be asked to be stable.
    pub stable_zeroes: bool,
    /// Every change is stable when it is acknowledged, and no flush is needed for it.
    pub acknowledged_is_stable: bool,
}

/// A system under simulation.
pub trait Scene {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Block sizes that it can be run with.
    fn block_sizes(&self) -> &'static [BlockSize];

    /// The node whose power is cut and whose process is killed.
    fn victim(&self, world: &World) -> Node;

    /// The node that the clients run on: the victim, where they live and die with it.
    fn clients(&self, world: &World) -> Node;

    /// Sets up what is there before anything starts.
    fn prepare(&self, world: &World, setup: Setup) {
        let _ = (world, setup);
    }

    /// Starts what runs on the victim, after each start of the node. `Err` where that failed.
    fn start(&self, victim: &Node, setup: Setup) -> LocalFuture<Result<(), String>>;

    /// Opens a client's lane, on a core of the clients' node.
    fn open(
        &self,
        core: &CoreHandle,
        setup: Setup,
        client: u32,
    ) -> LocalFuture<Result<Opened, String>>;

    /// What went wrong in the eyes of the scene itself, since this was asked last.
    fn complaints(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What one seed decided about the volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setup {
    /// Logical block.
    pub block_size: BlockSize,
    /// Blocks of the volume.
    pub blocks: u64,
    /// Whatever else the scene wants to vary.
    pub salt: u64,
    /// Nothing on the network is ever lost for good: answers must come.
    pub strict: bool,
}

impl Setup {
    pub(super) fn any(rng: &mut Rng, sizes: &[BlockSize]) -> Self {
        Self {
            block_size: *rng.pick(sizes),
            blocks: rng.between(16, 96),
            salt: rng.draw(),
            strict: false,
        }
    }
}
