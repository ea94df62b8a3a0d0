//! Every composition of layers that a LUN may stand on, through a unit or by itself, with clients
//! among faults.
//!
//! A seed modulo the number of compositions says which one it is: journal and mode or none,
//! checksums, read cache, one member or a span or a stripe of several, blocks of 512 bytes, of 512
//! in physical blocks of 4096, and of 4096. What happens to it is that of all scenes; besides, what
//! came to rest is destaged and closed as an administrator would, before its power is cut.

use super::disk::{add_device, volume};
use super::initiator::Complaints;
use super::layout::Layout;
use super::pool::{self, Pool};
use super::scene::{Opened, Scene, Setup};
use super::stack::{self, Made, PORT};
use env::sim::{Node, Rng, World};
use env::{CoreHandle, LocalFuture};
use std::cell::{Cell, RefCell};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use units::BlockSize;
use volume::{Fences, Volume};
use write_back::Mode;

/// The name of the volume.
pub(super) const UNIT: &str = "sim";

/// The place of the only volume in its pool.
const ONLY: usize = 0;

/// What a volume stands on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Composition {
    block_size: BlockSize,
    physical_block_exponent: u8,
    layout: Layout,
    cache: bool,
    /// Behind a journal in this mode, and whether with checksums: these need a journal.
    journal: Option<(Mode, bool)>,
    /// Hosts reach it through sessions and a logical unit, which compares and writes.
    unit: bool,
}

impl fmt::Debug for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.block_size.bytes();
        write!(f, "{bytes}")?;
        if self.physical_block_exponent > 0 {
            write!(f, " in {}", bytes << self.physical_block_exponent)?;
        }
        write!(f, ", {:?}", self.layout)?;
        match self.journal {
            None => f.write_str(", no journal")?,
            Some((mode, checksums)) => {
                let with = if checksums { " with checksums" } else { "" };
                write!(f, ", {mode:?}{with}")?;
            }
        }
        f.write_str(if self.cache { ", read cache" } else { "" })?;
        f.write_str(if self.unit { ", unit" } else { "" })
    }
}

impl Composition {
    /// Every stack of layers that a LUN may have.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let modes = [Mode::WriteThrough, Mode::WriteBack, Mode::Volatile];
        let journals = modes
            .into_iter()
            .flat_map(|mode| [(mode, false), (mode, true)].map(Some));
        let journals: Vec<_> = [None].into_iter().chain(journals).collect();
        let sizes = [
            (BlockSize::B512, 0),
            (BlockSize::B512, 3),
            (BlockSize::B4096, 0),
        ];
        let mut bare = Vec::new();
        for (block_size, physical_block_exponent) in sizes {
            for layout in Layout::ALL {
                bare.extend(journals.iter().map(|journal| Self {
                    block_size,
                    physical_block_exponent,
                    layout,
                    cache: false,
                    journal: *journal,
                    unit: false,
                }));
            }
        }
        let above = [(false, false), (true, false), (false, true), (true, true)];
        let with = |it: Self| above.map(|(cache, unit)| Self { cache, unit, ..it });
        bare.into_iter().flat_map(with).collect()
    }

    /// The composition of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let all = Self::all();
        all[usize::try_from(seed % all.len() as u64).expect("below a length")]
    }

    /// Blocks of it: their size, and how many make a physical one, as a power of two.
    pub(super) fn blocks(self) -> (BlockSize, u8) {
        (self.block_size, self.physical_block_exponent)
    }

    pub(super) fn layout(self) -> Layout {
        self.layout
    }

    /// What a salt has for its read cache.
    pub(super) fn cache_salt(self) -> u64 {
        if self.cache { 4 } else { 0 }
    }

    /// It stands on one volume, without a journal.
    pub(super) fn is_plain(self) -> bool {
        self.journal.is_none() && self.layout == Layout::One
    }

    /// Every second of all is.
    pub(super) fn is_odd(self) -> bool {
        let place = Self::all().iter().position(|it| *it == self);
        place.is_some_and(|place| place / 4 % 2 == 1)
    }

    /// All that a unit stands on.
    #[must_use]
    pub fn of_units() -> Vec<Self> {
        let mut all = Self::all();
        all.retain(|it| it.unit);
        all
    }

    pub(super) fn pool(self, setup: Setup) -> Option<(Pool, Mode)> {
        self.journal
            .map(|(mode, checksums)| (Pool::only(setup, checksums), mode))
    }
}

/// What is open on the node.
#[derive(Default)]
struct Open {
    volume: Option<Arc<dyn Volume>>,
    pool: Option<Rc<pool::Running>>,
    front: Option<stack::Running>,
    made: bool,
}

/// The scene.
#[derive(Default)]
pub struct Layers {
    chosen: Cell<Option<Composition>>,
    open: Rc<RefCell<Open>>,
    portal: Cell<Option<SocketAddr>>,
    complaints: Complaints,
    /// Lives that were closed with nothing left to do.
    closed: Rc<Cell<u64>>,
    /// Its file system fills up.
    fills_up: bool,
}

impl Layers {
    /// The same on a file system that fills up and gets room again, while it is open and while it
    /// is not.
    #[must_use]
    pub fn on_full_disks() -> Self {
        Self {
            fills_up: true,
            ..Self::default()
        }
    }

    /// Lives that were closed with nothing left to do, in all runs.
    #[must_use]
    pub fn closed(&self) -> u64 {
        self.closed.get()
    }

    fn chosen(&self) -> Composition {
        self.chosen.get().expect("a setup comes first")
    }

    /// What was taken for damage in this life.
    fn take_alarms(&self) {
        let open = self.open.borrow();
        let alarms = open.pool.iter().flat_map(|pool| pool.false_alarms());
        self.complaints.borrow_mut().extend(alarms);
    }
}

/// Makes and opens the volume.
async fn open_volume(
    core: CoreHandle,
    node: Node,
    (chosen, setup): (Composition, Setup),
    fences: Fences,
    open: Rc<RefCell<Open>>,
) -> Result<Arc<dyn Volume>, String> {
    let Some((pool, mode)) = chosen.pool(setup) else {
        return volume(&core, UNIT, setup, fences).await;
    };
    if !open.borrow().made {
        pool.make(node).await?;
        open.borrow_mut().made = true;
    }
    let running = pool.open_for(core, mode, |_| fences.clone()).await?;
    let volume = running.volume(ONLY);
    open.borrow_mut().pool = Some(Rc::new(running));
    Ok(volume)
}

impl Scene for Layers {
    fn name(&self) -> &'static str {
        if self.fills_up { "full" } else { "layers" }
    }

    fn block_sizes(&self) -> &'static [BlockSize] {
        &[BlockSize::B512, BlockSize::B4096]
    }

    fn setup(&self, seed: u64, rng: &mut Rng) -> Setup {
        let chosen = Composition::of(seed);
        self.chosen.set(Some(chosen));
        *self.open.borrow_mut() = Open::default();
        let any = Setup::any(rng, self.block_sizes());
        let cache = if chosen.cache { 4 } else { 0 };
        let setup = Setup {
            block_size: chosen.block_size,
            physical_block_exponent: chosen.physical_block_exponent,
            salt: any.salt & !4 | cache,
            ..any
        };
        setup.laid(chosen.layout)
    }

    fn victim(&self, world: &World) -> Node {
        world.node("san")
    }

    fn clients(&self, world: &World) -> Node {
        world.node(if self.chosen().unit { "hosts" } else { "san" })
    }

    fn prepare(&self, world: &World, setup: Setup) {
        let victim = self.victim(world);
        if self.chosen().journal.is_none() {
            add_device(&victim, UNIT, setup);
        }
        self.portal.set(Some(SocketAddr::new(victim.ip(), PORT)));
        self.complaints.borrow_mut().clear();
    }

    fn start(&self, victim: &Node, setup: Setup) -> LocalFuture<Result<(), String>> {
        let (core, node, chosen) = (victim.core(0), victim.clone(), self.chosen());
        let (open, listen) = (Rc::clone(&self.open), SocketAddr::new(victim.ip(), PORT));
        self.take_alarms();
        {
            let mut open = open.borrow_mut();
            (open.volume, open.pool, open.front) = (None, None, None);
        }
        Box::pin(async move {
            let through = Rc::clone(&open);
            let make = move |core, _name, setup, fences| -> Made<'static> {
                let (node, open) = (node.clone(), Rc::clone(&through));
                Box::pin(open_volume(core, node, (chosen, setup), fences, open))
            };
            if chosen.unit {
                let front = stack::start_over(&core, &[(UNIT, setup)], listen, make).await?;
                open.borrow_mut().front = Some(front);
            } else {
                let volume = make(core, UNIT, setup, Fences::new(1)).await?;
                open.borrow_mut().volume = Some(volume);
            }
            Ok(())
        })
    }

    fn open(
        &self,
        core: &CoreHandle,
        setup: Setup,
        client: u32,
    ) -> LocalFuture<Result<Opened, String>> {
        let (core, portal) = (Rc::clone(core), self.portal.get());
        let complaints = Rc::clone(&self.complaints);
        let open = self.open.borrow();
        let volume = open.volume.clone();
        let shape = open.front.as_ref().map(|front| front.units[0].shape);
        let journaled = open.pool.is_some();
        Box::pin(async move {
            let mut opened = if let Some(volume) = volume {
                Opened::of(volume, &core).await?
            } else {
                let shape = shape.ok_or("it does not run")?;
                let portal = portal.ok_or("the scene is not prepared")?;
                stack::lane(core, (portal, setup, client), shape, complaints).await
            };
            opened.acknowledged_is_stable = journaled && !opened.shape.caps.volatile_cache;
            Ok(opened)
        })
    }

    fn close(&self, victim: &Node) -> Option<LocalFuture<Result<(), String>>> {
        let pool = self.open.borrow().pool.clone()?;
        let (core, count) = (victim.core(0), Rc::clone(&self.closed));
        Some(Box::pin(async move {
            let closed = pool.close(&core).await;
            count.set(count.get() + u64::from(closed));
            Ok(())
        }))
    }

    fn complaints(&self) -> Vec<String> {
        self.take_alarms();
        std::mem::take(&mut *self.complaints.borrow_mut())
    }

    fn asks_in_parts(&self) -> bool {
        let chosen = self.chosen();
        chosen.journal.is_some() || chosen.layout != Layout::One
    }

    fn syncs_by_itself(&self) -> bool {
        matches!(self.chosen().journal, Some((Mode::Volatile, _)))
    }

    fn fills_up(&self) -> bool {
        self.fills_up
    }

    fn made_of(&self) -> Option<String> {
        Some(format!("it is made of {:?}", self.chosen()))
    }
}
