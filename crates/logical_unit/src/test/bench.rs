//! A unit in a simulated world, over a volume whose operations can be made to hang.

use crate::store::{NoStore, Store};
use crate::{
    Arrival, Attribute, Identity, InitiatorPort, LogicalUnit, Nexus, NexusPort, Outcome, Peers,
    PortFacts, Request, Response, UnitConfig, UnitId, UnitPorts,
};
use env::sim::{Node, World, WorldConfig};
use env::{Answer, CoreHandle, CoreId, LocalFuture};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, BufMut};
use volume::{
    Done, Fences, Io, IoError, IoFuture, IoResult, Lane, Op, OpenError, OpenErrorKind, Shape,
    Support, Volume, VolumeEvent, VolumeEvents,
};

pub(super) const BLOCKS: u64 = 64;
pub(super) const UNIT: UnitId = UnitId(1);

/// Blocks in memory. Writes of a hanging volume reach the medium only when it is released, as those
/// in a kernel's queue would.
#[derive(Clone)]
pub(super) struct Medium(Arc<Mutex<Inner>>);

struct Inner {
    blocks: BTreeMap<u64, Vec<u8>>,
    hanging: bool,
    waiting: Vec<Waker>,
    fences: Fences,
    block_count: u64,
    volatile: bool,
    takes_zeroes: bool,
    flushes: u64,
    /// Operations that the backend was given.
    given: u64,
}

impl Medium {
    pub(super) fn hang(&self) {
        self.0.lock().unwrap().hanging = true;
    }

    pub(super) fn release(&self) {
        let waiting = {
            let mut inner = self.0.lock().unwrap();
            inner.hanging = false;
            std::mem::take(&mut inner.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(super) fn grow(&self, block_count: u64) {
        self.0.lock().unwrap().block_count = block_count;
    }

    /// Whether it has a volatile cache.
    pub(super) fn set_volatile(&self, volatile: bool) {
        self.0.lock().unwrap().volatile = volatile;
    }

    pub(super) fn flushes(&self) -> u64 {
        self.0.lock().unwrap().flushes
    }

    pub(super) fn given(&self) -> u64 {
        self.0.lock().unwrap().given
    }

    pub(super) fn first_byte(&self, block: u64) -> u8 {
        self.0
            .lock()
            .unwrap()
            .blocks
            .get(&block)
            .map_or(0, |bytes| bytes[0])
    }
}

impl Volume for Medium {
    fn shape(&self) -> Shape {
        let (block_count, volatile, takes_zeroes) = {
            let inner = self.0.lock().unwrap();
            let count = BlockCount(inner.block_count);
            (count, inner.volatile, inner.takes_zeroes)
        };
        let mut shape = Shape::of_memory(BlockSize::B512, block_count);
        shape.caps.volatile_cache = volatile;
        shape.physical_block_exponent = 3;
        shape.limits.transfer_blocks_max = BlockCount(BLOCKS);
        shape.limits.discard_blocks_max = BlockCount(BLOCKS);
        shape.limits.write_zeroes_blocks_max = BlockCount(BLOCKS);
        shape.limits.atomic_blocks_max = BlockCount(1);
        shape.limits.in_flight_max = 1024;
        shape.caps.extents = Support::Absent;
        if !takes_zeroes {
            shape.caps.write_zeroes = Support::Absent;
            shape.limits.write_zeroes_blocks_max = BlockCount(0);
        }
        shape
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let lane: Rc<dyn Lane> = Rc::new(MediumLane {
            medium: Medium::clone(&self),
            core: Rc::clone(core),
        });
        Box::pin(async move { Ok(lane) })
    }

    fn events(self: Arc<Self>, _: &CoreHandle) -> Rc<dyn VolumeEvents> {
        Rc::new(Quiet)
    }
}

struct Quiet;

impl VolumeEvents for Quiet {
    fn next(&self) -> LocalFuture<VolumeEvent> {
        Box::pin(std::future::pending())
    }
}

struct MediumLane {
    medium: Medium,
    core: CoreHandle,
}

impl Lane for MediumLane {
    fn submit(&self, io: Io) -> IoFuture {
        let (medium, core) = (self.medium.clone(), Rc::clone(&self.core));
        {
            let mut inner = medium.0.lock().unwrap();
            inner.given += 1;
            if !inner.fences.is_current(io.origin().fence) {
                return Answer::ready(Err(IoError::Fenced));
            }
        }
        Answer::wait(async move {
            let mut random = [0];
            core.fill_random(&mut random);
            core.sleep_until(
                core.now()
                    .after(Duration::from_micros(u64::from(random[0]))),
            )
            .await;
            poll_fn(|cx| {
                let mut inner = medium.0.lock().unwrap();
                if inner.hanging {
                    inner.waiting.push(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(())
            })
            .await;
            medium.0.lock().unwrap().apply(io.op())
        })
    }
}

impl Inner {
    fn apply(&mut self, op: &Op) -> IoResult {
        let Some(range) = op.range() else {
            self.flushes += 1;
            return Ok(Done::Nothing);
        };
        let blocks = range.start().0..range.end().0;
        match op {
            Op::Read { .. } => {
                let mut all = Vec::new();
                for block in blocks {
                    all.extend(
                        self.blocks
                            .get(&block)
                            .cloned()
                            .unwrap_or_else(|| vec![0; 512]),
                    );
                }
                Ok(Done::Data(all.into()))
            }
            Op::Write { data, .. } => {
                for (at, block) in blocks.enumerate() {
                    self.blocks
                        .insert(block, data.slice(at * 512..(at + 1) * 512).to_vec());
                }
                Ok(Done::Nothing)
            }
            Op::WriteZeroes { .. } | Op::Discard { .. } => {
                assert!(self.takes_zeroes, "{op:?}");
                blocks.for_each(|block| drop(self.blocks.remove(&block)));
                Ok(Done::Nothing)
            }
            Op::CompareAndWrite { .. } | Op::Extents { .. } | Op::Flush => Ok(Done::Nothing),
        }
    }
}

/// A unit that is up on four cores.
pub(super) struct Bench {
    pub(super) world: World,
    pub(super) node: Node,
    pub(super) unit: Arc<LogicalUnit>,
    pub(super) medium: Medium,
}

impl Bench {
    pub(super) fn new(seed: u64) -> Self {
        Self::with_store(seed, Arc::new(NoStore))
    }

    pub(super) fn with_store(seed: u64, store: Store) -> Self {
        Self::over(seed, store, true)
    }

    /// Over a volume that can neither write zeroes nor give blocks up.
    pub(super) fn that_takes_no_zeroes(seed: u64) -> Self {
        Self::over(seed, Arc::new(NoStore), false)
    }

    fn over(seed: u64, store: Store, takes_zeroes: bool) -> Self {
        let world = World::new(
            seed,
            WorldConfig {
                cores: 4,
                ..WorldConfig::default()
            },
        );
        let node = world.node("san-a");
        let fences = LogicalUnit::fences_for();
        let medium = Medium(Arc::new(Mutex::new(Inner {
            blocks: BTreeMap::new(),
            hanging: false,
            waiting: Vec::new(),
            fences: fences.clone(),
            given: 0,
            volatile: true,
            takes_zeroes,
            flushes: 0,
            block_count: BLOCKS,
        })));
        Self::bring_up(world, node, medium, store)
    }

    /// The unit over a medium that is there already, as after a restart.
    pub(super) fn bring_up(world: World, node: Node, medium: Medium, store: Store) -> Self {
        let fences = medium.0.lock().unwrap().fences.clone();
        let volume = Arc::new(medium.clone());
        let (unit, started) = start(&world, &node, Ok(volume), fences, store);
        started.unwrap();
        Self {
            world,
            node,
            unit,
            medium,
        }
    }

    /// The unit starts anew, as after a restart; what that says.
    pub(super) fn starts_again(&mut self, store: Store) -> Result<(), OpenError> {
        let volume: Arc<dyn Volume> = Arc::new(self.medium.clone());
        self.starts_over(Ok(volume), store)
    }

    /// The same without its medium.
    pub(super) fn starts_without(&mut self, store: Store) {
        let away = OpenError {
            kind: OpenErrorKind::Missing,
            cause: "its disk is away".to_owned(),
            next_step: "bring it back".to_owned(),
        };
        let reported = self.starts_over(Err(away.clone()), store);
        assert_eq!(reported, Err(away));
    }

    fn starts_over(
        &mut self,
        volume: Result<Arc<dyn Volume>, OpenError>,
        store: Store,
    ) -> Result<(), OpenError> {
        self.node.crash();
        self.node.restart();
        let fences = self.medium.0.lock().unwrap().fences.clone();
        let (unit, started) = start(&self.world, &self.node, volume, fences, store);
        self.unit = unit;
        started
    }

    /// Runs `future` on core 0 for at most ten virtual seconds.
    pub(super) fn run<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> T {
        self.world
            .block_on(&self.node, Duration::from_secs(10), future)
            .unwrap()
    }

    /// A nexus on `core`, its first unit attention already taken.
    pub(super) fn nexus(&self, core: u16, name: &str) -> Rc<Nexus> {
        let port = NexusPort {
            initiator: InitiatorPort {
                name: name.to_owned(),
                isid: [0; 6],
            },
            target_port: 1,
        };
        let own = PortFacts {
            relative_port: 1,
            target_name: "iqn.2026-11.io.causeway:t".to_owned(),
            portal_group_tag: 1,
        };
        let nexus = Nexus::open(
            &self.node.core(core),
            UNIT,
            port,
            UnitPorts {
                all: vec![own.clone()],
                own,
            },
            false,
            Weak::<Alone>::new(),
        )
        .unwrap();
        let first = begin(&nexus, &[0; 6], Attribute::Simple, 0, &[]);
        self.run(async move { drop(first.await) });
        nexus
    }

    /// Starts a command on its nexus' core; the result appears in the slot.
    pub(super) fn start(
        &self,
        nexus: &Rc<Nexus>,
        cdb: &[u8],
        attribute: Attribute,
        tag: u32,
        data: &[u8],
    ) -> Slot {
        self.start_future(nexus, begin(nexus, cdb, attribute, tag, data))
    }

    /// The same with what runs a command.
    pub(super) fn start_future(&self, nexus: &Rc<Nexus>, running: LocalFuture<Outcome>) -> Slot {
        let slot = Slot::default();
        let answer = slot.clone();
        nexus.unit().core().spawn(Box::pin(async move {
            let outcome = running.await;
            *answer.0.borrow_mut() = Some(outcome);
        }));
        slot
    }

    pub(super) fn settle(&self, span: Duration) {
        self.world.run_for(span);
    }
}

#[derive(Clone, Default)]
pub(super) struct Slot(Rc<RefCell<Option<Outcome>>>);

impl Slot {
    pub(super) fn ended(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub(super) fn is_silent(&self) -> bool {
        matches!(*self.0.borrow(), Some(Outcome::Silent))
    }

    pub(super) fn response(&self) -> Response {
        match self.0.borrow_mut().take() {
            Some(Outcome::Respond(response)) => response,
            other => panic!("no response but {other:?}"),
        }
    }
}

fn start(
    world: &World,
    node: &Node,
    volume: Result<Arc<dyn Volume>, OpenError>,
    fences: Fences,
    store: Store,
) -> (Arc<LogicalUnit>, Result<(), OpenError>) {
    let identity = Identity {
        name: "vm01".to_owned(),
        serial: "0123456789abcdef".to_owned(),
        naa: [0x60; 16],
        store_key: "vm01".to_owned(),
        block_size: BlockSize::B512,
        physical_block_exponent: 3,
        thin: true,
    };
    let unit = LogicalUnit::new(UnitConfig {
        id: UNIT,
        home: CoreId(1),
        identity,
        fences,
        store,
        is_new: false,
    });
    let (starting, core) = (Arc::clone(&unit), node.core(0));
    let started = world.block_on(node, Duration::from_secs(1), async move {
        starting.start(&core, volume).await
    });
    (unit, started.unwrap())
}

/// Takes the command into the task set now, and gives what runs it.
pub(super) fn begin(
    nexus: &Rc<Nexus>,
    cdb: &[u8],
    attribute: Attribute,
    tag: u32,
    data: &[u8],
) -> LocalFuture<Outcome> {
    match nexus.arrive(Request {
        cdb,
        attribute,
        tag,
        data_out: data.len() as u64,
        first_byte: nexus.unit().core().now(),
        whole: nexus.unit().core().now(),
        stands_for: 0,
    }) {
        Arrival::Ended { response, .. } => Box::pin(async move { Outcome::Respond(response) }),
        Arrival::Task { task, data_out } => {
            assert_eq!(data_out, data.len() as u64);
            let data = Buf::copy_of(data);
            Box::pin(async move { task.run(data).await })
        }
    }
}

pub(super) fn write_10(block: u32, blocks: u16) -> [u8; 10] {
    transfer_10(0x2a, block, blocks)
}

pub(super) fn read_10(block: u32, blocks: u16) -> [u8; 10] {
    transfer_10(0x28, block, blocks)
}

fn transfer_10(opcode: u8, block: u32, blocks: u16) -> [u8; 10] {
    let mut cdb = [0; 10];
    cdb[0] = opcode;
    cdb[2..6].copy_from_slice(&block.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

pub(super) fn compare_and_write(block: u64) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = 0x89;
    cdb[2..10].copy_from_slice(&block.to_be_bytes());
    cdb[13] = 1;
    cdb
}

pub(super) fn filled(byte: u8, blocks: usize) -> Vec<u8> {
    let mut memory = BufMut::zeroed(512 * blocks);
    memory.chunk_mut(0).fill(byte);
    memory.freeze().to_vec()
}

/// A session that sees no other unit.
struct Alone;

impl Peers for Alone {
    fn all(&self) -> Vec<Rc<Nexus>> {
        Vec::new()
    }

    fn released(&self) {}
}
