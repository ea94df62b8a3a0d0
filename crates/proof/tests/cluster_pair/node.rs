//! One of two nodes with copies of a LUN: a pool with a journal, the crate `cluster` over simulated
//! TCP, and hosts on the node itself.

use arbiter::model::{Manners, ModelArbiter, ModelStore};
use arbiter::{Answer, Arbiter, Key, Question, role};
use backends::{FileSpec, Provisioning, create_file, open_file};
use cluster::{Cluster, CopyFile, CopyStore, LunSpec, LunStatus, Served, Settings, TcpTransport};
use env::CoreHandle;
use env::sim::Rng;
use peer::{ClusterId, Cost, Incarnation, KnownNode, Limits, NodeId, Own};
use proof::plain_pool::{DIR, JOURNAL, NUMBER};
use replica::model::Rule;
use replica::{CopyId, Durable, Epoch, NodeSet, NodeSlot, Revision, RoleRecord, Spans};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{Cut, Done, Durability, Fences, Io, Lane, Op, Origin, Provision, Volume, Zeroing};
use volume_test::model::{Begun, Model, TAG_ZERO, Tag, fill};
use write_back::{Journal, JournalSpec, Mode, VolumeId, WriteBack};

pub(crate) const RINGS: u8 = 2;
const SHARD_BYTES: u64 = 16 << 10;
pub(crate) const VOLUME_BYTES: u64 = 1 << 20;
pub(crate) const BLOCKS: u64 = 64;
pub(crate) const LUN: VolumeId = VolumeId(100);
const PORT: u16 = 7100;
const HOSTS: u32 = 4;

/// How large all is, and how long it lasts.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) spans: Spans,
    pub(crate) journal_bytes: u64,
    /// One of so many states that hosts set has several parts.
    pub(crate) long_states: u64,
    /// How long hosts work before the end, in milliseconds.
    pub(crate) last_work: u64,
}

impl Scale {
    /// As in the daemon. A quarter of the journal holds what hosts write in some seconds.
    pub(crate) fn usual() -> Self {
        Self {
            spans: Spans::default(),
            journal_bytes: 64 << 20,
            long_states: 20,
            last_work: 2000,
        }
    }
}

pub(crate) fn path() -> PathBuf {
    "/pool/volume".into()
}

fn record_path() -> PathBuf {
    "/pool/volume.role".into()
}

fn key() -> Key {
    role::key("6001405000000064").unwrap()
}

/// The record before anybody owned the LUN: both copies are empty, and so equal.
fn first_record() -> RoleRecord {
    let nodes = [NodeSlot(0), NodeSlot(1)];
    RoleRecord {
        epoch: Epoch(0),
        step: 0,
        owner: NodeSlot(0),
        in_sync: NodeSet::of(nodes),
        copies: nodes.map(|it| (it, CopyId(it.0.into()))).to_vec(),
    }
}

/// The role record is written; answers its version.
pub(crate) async fn found(core: CoreHandle, store: ModelStore) -> Revision {
    let arbiter = ModelArbiter::new(&core, &store, Manners::GOOD);
    let swap = role::first(key(), &first_record());
    let answer = arbiter.ask(vec![Question::Swap(swap)]).await.pop();
    let Some(Answer::Swapped(revision)) = answer else {
        panic!("{answer:?}");
    };
    revision
}

async fn open_volume(core: &CoreHandle) -> (Arc<Journal>, Arc<WriteBack>) {
    let journal = Journal::open(core, Path::new(JOURNAL), NUMBER).await;
    let journal = journal.unwrap();
    assert_eq!(journal.damaged(), []);
    let spec = FileSpec {
        path: path(),
        block_size: BlockSize::B4096,
        physical_block_exponent: 0,
        provisioning: Provisioning::Thin,
    };
    let fences = Fences::new(1);
    let backing = open_file(core, spec, fences.clone()).await;
    let (on, with) = (Arc::clone(&journal), (fences, Mode::WriteBack));
    let history = "/pool/volume.changes".into();
    let volume = WriteBack::with_history(on, LUN, backing.unwrap(), with, history);
    volume.has_copies();
    (journal, volume)
}

async fn make_journal(core: &CoreHandle, bytes: u64) {
    core.files().create_dir(Path::new(DIR)).await.unwrap();
    core.files().sync_dir(Path::new("/")).await.unwrap();
    let spec = JournalSpec {
        path: JOURNAL.into(),
        bytes,
        rings: RINGS.into(),
        pool: NUMBER,
        shard_bytes: SHARD_BYTES,
    };
    Journal::create(core, &spec).await.unwrap();
}

/// A node's disk, before its first start.
pub(crate) async fn make(core: CoreHandle, revision: Revision, journal_bytes: u64) {
    make_journal(&core, journal_bytes).await;
    let (size, path) = (ByteCount(VOLUME_BYTES), path());
    let made = create_file(&core, &path, size, Provisioning::Thin);
    made.await.unwrap();
    let (journal, volume) = open_volume(&core).await;
    volume.begin_history(&core, Cut(1000)).await.unwrap();
    journal.close(&core).await;
    let durable = Durable {
        known: (revision, first_record()),
        promised: Epoch(0),
        is_whole: true,
        base: Vec::new(),
    };
    let store = CopyFile::new(&core, record_path());
    store.keep(&durable).await.unwrap();
}

/// A node forgets what it noted of copies that were removed.
pub(crate) async fn forget_removed(core: CoreHandle) {
    let store = CopyFile::new(&core, record_path());
    store.kept().await.unwrap();
    store.keep_removed(&[]).await.unwrap();
}

/// What is open of a node.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) core: CoreHandle,
    pub(crate) journal: Arc<Journal>,
    pub(crate) volume: Arc<WriteBack>,
    pub(crate) served: Arc<Served>,
    pub(crate) cluster: Rc<Cluster>,
}

impl Side {
    pub(crate) fn status(&self) -> LunStatus {
        let status = self.cluster.status(LUN);
        status.expect("nothing stops it here")
    }
}

fn node(slot: u8) -> KnownNode {
    KnownNode {
        slot: NodeSlot(slot),
        node: NodeId([slot + 1; 16]),
    }
}

fn settings(core: &CoreHandle, me: u8, spans: Spans) -> Settings {
    let mut incarnation = [0; 8];
    core.fill_random(&mut incarnation);
    let KnownNode { slot, node: id } = node(me);
    Settings {
        own: Own {
            cluster: ClusterId([7; 16]),
            slot,
            node: id,
            incarnation: Incarnation(u64::from_le_bytes(incarnation)),
            level: 1,
            level_max: 1,
        },
        spans,
        rings: RINGS,
        limits: Limits {
            window: Cost {
                bytes: 2 << 20,
                records: 256,
            },
            held: Cost {
                bytes: 2 << 20,
                records: 256,
            },
        },
    }
}

pub(crate) async fn open(
    core: CoreHandle,
    me: u8,
    ips: [IpAddr; 2],
    (store, manners, spans): (ModelStore, Manners, Spans),
    broken: Option<Rule>,
) -> Side {
    let (journal, volume) = open_volume(&core).await;
    let nodes = [0, 1].map(|at| {
        let address = SocketAddr::new(ips[usize::from(at)], PORT);
        (NodeSlot(at), address)
    });
    let at = nodes[usize::from(me)].1;
    let transport = TcpTransport::listen(&core, at, BTreeMap::from(nodes)).unwrap();
    let arbiter = Rc::new(ModelArbiter::new(&core, &store, manners));
    let settings = settings(&core, me, spans);
    let cluster = Cluster::start(&core, settings, Rc::new(transport), arbiter);
    cluster.breaks(broken);
    cluster.meets(&[node(1 - me)]);
    let store = CopyFile::new(&core, record_path());
    let kept = store.kept().await.unwrap();
    let served = Served::new(Arc::clone(&volume));
    let spec = LunSpec {
        served: Arc::clone(&served),
        key: key(),
        store: Rc::new(store),
        kept,
    };
    cluster.open(spec).await.unwrap();
    Side {
        core,
        journal,
        volume,
        served,
        cluster,
    }
}

pub(crate) fn payload(tag: Tag, range: LbaRange) -> Buf {
    let (start, len) = (range.start().0, range.len().0);
    let mut bytes = vec![0; usize::try_from(len).unwrap() * 4096];
    for (lba, block) in (start..).zip(bytes.chunks_mut(4096)) {
        fill(tag, Lba(lba), block);
    }
    Buf::copy_of(&bytes)
}

/// What hosts do, on all nodes.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) model: Rc<RefCell<Model>>,
    pub(crate) ends: Rc<Cell<bool>>,
    /// Nobody reads there: the node cannot know that promises are over.
    pub(crate) is_suspended: [Rc<Cell<bool>>; 2],
    /// How many work, on each node.
    pub(crate) busy: [Rc<Cell<u32>>; 2],
    long_states: u64,
    pub(crate) written: [Rc<Cell<u64>>; 2],
    pub(crate) read: Rc<Cell<u64>>,
    pub(crate) failed: Rc<Cell<u64>>,
    /// What came through each node and was done at the other one, and writes of which that was not
    /// known.
    pub(crate) forwarded: [Rc<Cell<u64>>; 2],
    pub(crate) lost: Rc<Cell<u64>>,
    /// What hosts set of the unit: a number that grows. The last one, and the last that was
    /// answered.
    setting: Rc<Cell<u64>>,
    set: Rc<Cell<u64>>,
    /// How often that was answered, and how often a node went on with it.
    pub(crate) sets: Rc<Cell<u64>>,
    pub(crate) taken_over: Rc<Cell<u64>>,
}

impl Work {
    pub(crate) fn new(scale: &Scale) -> Self {
        let model = Model::new(BlockSize::B4096, BlockCount(BLOCKS)).keeping_whole(512);
        Self {
            model: Rc::new(RefCell::new(model)),
            ends: Rc::default(),
            is_suspended: Default::default(),
            long_states: scale.long_states,
            busy: Default::default(),
            written: Default::default(),
            read: Rc::default(),
            failed: Rc::default(),
            forwarded: Default::default(),
            lost: Rc::default(),
            setting: Rc::default(),
            set: Rc::default(),
            sets: Rc::default(),
            taken_over: Rc::default(),
        }
    }

    /// Hosts that ask this node, whatever it answers.
    pub(crate) fn begin(&self, side: &Side, me: usize, rng: &mut Rng) {
        for _ in 0..HOSTS {
            let (work, side, rng) = (self.clone(), side.clone(), rng.fork());
            let core = Rc::clone(&side.core);
            core.spawn(Box::pin(work.host(side, me, rng)));
        }
        let (work, core) = (self.clone(), Rc::clone(&side.core));
        core.spawn(Box::pin(work.sets(side.clone(), rng.fork(), me)));
        self.begin_forwarding(side, me, rng);
    }

    /// A host that sets something of the unit again and again, wherever it is served: who serves it
    /// next goes on with what was answered, or with what was on its way.
    async fn sets(self, side: Side, mut rng: Rng, me: usize) {
        let core = Rc::clone(&side.core);
        loop {
            core.sleep_until(core.now().after(Duration::from_millis(20)))
                .await;
            let Some(held) = side.cluster.held_state(LUN).await else {
                continue;
            };
            let has = held
                .bytes
                .map_or(0, |it| u64::from_le_bytes(it[..8].try_into().unwrap()));
            assert!(
                has >= self.set.get() || self.is_suspended[me].get(),
                "{has} in place of {}",
                self.set.get()
            );
            assert!(has <= self.setting.get());
            self.taken_over.set(self.taken_over.get() + 1);
            loop {
                let number = self.setting.get() + 1;
                self.setting.set(number);
                // Now and then it has several parts.
                let long = rng.below(self.long_states) == 0;
                let mut state = number.to_le_bytes().to_vec();
                state.resize(if long { 150_000 } else { 40 }, 7);
                let at = (core.id(), LUN);
                if cluster::keep_state(&core, at, state).await.is_err() {
                    break;
                }
                self.set.set(self.set.get().max(number));
                self.sets.set(self.sets.get() + 1);
                // Who comes to be in sync meanwhile has it by what it was sent before.
                let most = if rng.below(10) == 0 {
                    20_000_000
                } else {
                    60_000
                };
                let pause = Duration::from_micros(200 + rng.below(most));
                core.sleep_until(core.now().after(pause)).await;
            }
        }
    }

    async fn host(self, side: Side, me: usize, mut rng: Rng) {
        let served = Arc::clone(&side.served) as Arc<dyn Volume>;
        let lane = served.open(&side.core).await.unwrap();
        loop {
            let pause = Duration::from_micros(200 + rng.below(30_000));
            side.core.sleep_until(side.core.now().after(pause)).await;
            if self.ends.get() {
                continue;
            }
            self.busy[me].set(self.busy[me].get() + 1);
            self.once(&*lane, me, &mut rng).await;
            self.busy[me].set(self.busy[me].get() - 1);
        }
    }

    /// Writes the same blocks again and again.
    pub(crate) async fn writes(&self, side: &Side, (start, len): (u64, u64), times: u64) {
        let served = Arc::clone(&side.served) as Arc<dyn Volume>;
        let lane = served.open(&side.core).await.unwrap();
        let range = LbaRange::new(Lba(start), BlockCount(len)).unwrap();
        let durability = Durability::Stable;
        for _ in 0..times {
            let tag = self.model.borrow_mut().fresh_tag();
            let begun = Begun::Write(range, tag, durability);
            let token = self.model.borrow_mut().begin(begun);
            let data = payload(tag, range);
            let op = Op::Write {
                range,
                data,
                durability,
            };
            let done = lane.submit(Io::new(op, Origin::default())).await;
            self.model.borrow_mut().end(token, done.map(|_| ()));
        }
    }

    async fn once(&self, lane: &dyn Lane, me: usize, rng: &mut Rng) {
        let start = rng.below(BLOCKS);
        let len = 1 + rng.below((BLOCKS - start).min(6));
        let range = LbaRange::new(Lba(start), BlockCount(len)).unwrap();
        let durability = Durability::Stable;
        let (op, begun) = match rng.below(10) {
            0..4 if !self.is_suspended[me].get() => {
                (Op::Read { range, into: None }, Begun::Read(range))
            }
            0..8 => {
                let tag = self.model.borrow_mut().fresh_tag();
                let op = Op::Write {
                    range,
                    data: payload(tag, range),
                    durability,
                };
                (op, Begun::Write(range, tag, durability))
            }
            8 => {
                let zeroing = Zeroing::KeepAllocated;
                let op = Op::WriteZeroes {
                    range,
                    zeroing,
                    durability,
                };
                (op, Begun::Write(range, TAG_ZERO, durability))
            }
            _ => {
                let to = Provision::Deallocated;
                let op = Op::Discard {
                    range,
                    to,
                    durability,
                };
                (op, Begun::Discard(range, durability))
            }
        };
        let token = self.model.borrow_mut().begin(begun);
        match lane.submit(Io::new(op, Origin::default())).await {
            Ok(Done::Data(data)) => {
                let right = self.model.borrow_mut().end_read(token, &data);
                right.unwrap_or_else(|wrong| panic!("node {me}: {wrong}"));
                self.read.set(self.read.get() + 1);
            }
            Ok(_) => {
                self.model.borrow_mut().end(token, Ok(()));
                self.written[me].set(self.written[me].get() + 1);
            }
            Err(error) => {
                self.model.borrow_mut().end(token, Err(error));
                self.failed.set(self.failed.get() + 1);
            }
        }
    }
}
