//! What is simulated: how the nodes are set up, and how a client gets a lane.

use env::CoreHandle;
use env::sim::{Node, Rng, World};
use std::rc::Rc;
use std::sync::Arc;
use units::BlockSize;
use volume::{Lane, Shape, Volume};

use super::layout::Layout;
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

impl Opened {
    /// A lane of a volume that has nothing above it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn of(volume: Arc<dyn Volume>, core: &CoreHandle) -> Result<Self, String> {
        let shape = volume.shape();
        let lane = volume.open(core).await;
        Ok(Self {
            lane: lane.map_err(|error| error.to_string())?,
            shape,
            stable_zeroes: true,
            acknowledged_is_stable: false,
        })
    }
}

/// A system under simulation.
pub trait Scene {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// Block sizes that it can be run with.
    fn block_sizes(&self) -> &'static [BlockSize];

    /// What a seed decides about the volume.
    fn setup(&self, seed: u64, rng: &mut Rng) -> Setup {
        let _ = seed;
        Setup::any(rng, self.block_sizes())
    }

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

    /// Ends what runs on the victim as an administrator would, once its clients are quiet; `None`
    /// where it knows no other end than a kill.
    fn close(&self, victim: &Node) -> Option<LocalFuture<Result<(), String>>> {
        let _ = victim;
        None
    }

    /// What the volume is asked as one it may ask of several: where that fails and it is reported
    /// to nobody, some of it may be done.
    fn asks_in_parts(&self) -> bool {
        false
    }

    /// It syncs its disk when nobody asks for that, and promises nothing of what is not flushed.
    fn syncs_by_itself(&self) -> bool {
        false
    }

    /// Its file system fills up, again and again.
    fn fills_up(&self) -> bool {
        false
    }

    /// What a seed has made of it, where that is worth saying of a failure.
    fn made_of(&self) -> Option<String> {
        None
    }

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
    /// A physical block has two to the power of this many logical ones.
    pub physical_block_exponent: u8,
    /// How its blocks lie on files or devices.
    pub layout: Layout,
    /// Nothing on the network is ever lost for good: answers must come.
    pub strict: bool,
}

impl Setup {
    pub(super) fn any(rng: &mut Rng, sizes: &[BlockSize]) -> Self {
        Self {
            block_size: *rng.pick(sizes),
            blocks: rng.between(16, 96),
            salt: rng.draw(),
            physical_block_exponent: 0,
            layout: Layout::One,
            strict: false,
        }
    }

    /// The same over several files or devices.
    pub(super) fn laid(self, layout: Layout) -> Self {
        let blocks = self.blocks.next_multiple_of(layout.whole_blocks());
        Self {
            blocks,
            layout,
            ..self
        }
    }
}
