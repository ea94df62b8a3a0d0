//! `cluster` over TLS: two nodes with a LUN, what hosts write at its owner, and a connection that
//! is cut.

use crate::bed::{Dir, Here, Site, two};
use arbiter::{Answer, Key, Question, role};
use backends::{FileSpec, Provisioning, create_file, open_file};
use cluster::{
    Channel, Cluster, CopyFile, CopyStore, LunSpec, LunStatus, Served, Settings, Transport,
};
use env::{CoreHandle, in_time};
use membership::Present;
use peer::{
    Connection, ConnectionNumber, Cost, Event, KnownNode, Limits, Link, NodeId, Purpose, Transmit,
    exchange,
};
use replica::{CopyId, Durable, Epoch, NodeSet, NodeSlot, Revision, RoleRecord, Spans, State};
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{Cut, Done, Durability, Fences, Io, Lane, Op, Origin, Volume};
use write_back::{Journal, JournalSpec, Mode, VolumeId, WriteBack};

const RINGS: u8 = 2;
const LUN: VolumeId = VolumeId(100);
const POOL: [u8; 16] = [9; 16];
const BLOCKS: u64 = 64;
const BLOCK: usize = 4096;

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

async fn found(here: &Here) -> Revision {
    let arbiter = here.membership.arbiter().await.unwrap();
    let swap = role::first(key(), &first_record());
    let answer = arbiter.ask(vec![Question::Swap(swap)]).await.pop();
    let Some(Answer::Swapped(revision)) = answer else {
        panic!("{answer:?}");
    };
    revision
}

async fn volume(core: &CoreHandle, dir: &Path) -> Arc<WriteBack> {
    let spec = JournalSpec {
        path: dir.join("journal"),
        bytes: 64 << 20,
        rings: RINGS.into(),
        pool: POOL,
        shard_bytes: 16 << 10,
    };
    Journal::create(core, &spec).await.unwrap();
    let path = dir.join("volume");
    let size = ByteCount(BLOCKS * BLOCK as u64);
    let made = create_file(core, &path, size, Provisioning::Thin);
    made.await.unwrap();
    let journal = Journal::open(core, &spec.path, POOL).await.unwrap();
    let spec = FileSpec {
        path,
        block_size: BlockSize::B4096,
        physical_block_exponent: 0,
        provisioning: Provisioning::Thin,
    };
    let fences = Fences::new(1);
    let backing = open_file(core, spec, fences.clone()).await.unwrap();
    let (with, history) = ((fences, Mode::WriteBack), dir.join("volume.changes").into());
    let volume = WriteBack::with_history(journal, LUN, backing, with, history);
    volume.has_copies();
    volume.begin_history(core, Cut(1000)).await.unwrap();
    volume
}

/// What is open of a node.
struct Side {
    cluster: Rc<Cluster>,
    volume: Arc<WriteBack>,
    served: Arc<Served>,
}

impl Side {
    fn of(here: &Here) -> Rc<Self> {
        let kept = here.kept.borrow().clone();
        kept.unwrap().downcast().ok().unwrap()
    }

    fn status(&self) -> LunStatus {
        self.cluster.status(LUN).expect("nothing stops it here")
    }
}

fn settings(present: &Present) -> Settings {
    let cost = Cost {
        bytes: 2 << 20,
        records: 256,
    };
    Settings {
        own: mirrors::own(present),
        spans: Spans::default(),
        rings: RINGS,
        limits: Limits {
            window: cost,
            held: cost,
        },
    }
}

async fn open(here: Rc<Here>, revision: Revision) {
    let core = &here.core;
    let volume = volume(core, &here.dir).await;
    let present = here.membership.present().unwrap();
    let transport = Rc::clone(&here.transport) as Rc<dyn Transport>;
    let arbiter = here.membership.arbiter().await.unwrap();
    let cluster = Cluster::start(core, settings(&present), transport, arbiter);
    let others: Vec<KnownNode> = present.others.iter().map(mirrors::known).collect();
    cluster.meets(&others);
    let store = CopyFile::new(core, here.dir.join("volume.role"));
    let kept = Durable {
        known: (revision, first_record()),
        promised: Epoch(0),
        is_whole: true,
        base: Vec::new(),
    };
    store.keep(&kept).await.unwrap();
    let served = Served::new(Arc::clone(&volume));
    let spec = LunSpec {
        served: Arc::clone(&served),
        key: key(),
        store: Rc::new(store),
        kept,
    };
    cluster.open(spec).await.unwrap();
    let side = Side {
        cluster,
        volume,
        served,
    };
    *here.kept.borrow_mut() = Some(Rc::new(side));
}

fn block(lba: u64, round: u8) -> Vec<u8> {
    let first = lba * 31 + u64::from(round) * 7 + 1;
    (first..)
        .take(BLOCK)
        .map(|it| it.to_le_bytes()[0])
        .collect()
}

async fn submitted(lane: &dyn Lane, op: Op) -> Done {
    lane.submit(Io::new(op, Origin::default())).await.unwrap()
}

fn at(lba: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(lba), BlockCount(len)).unwrap()
}

/// Hosts write all blocks at the owner.
async fn write(here: Rc<Here>, round: u8) {
    let side = Side::of(&here);
    let served = Arc::clone(&side.served) as Arc<dyn Volume>;
    let lane = served.open(&here.core).await.unwrap();
    for lba in 0..BLOCKS {
        let op = Op::Write {
            range: at(lba, 1),
            data: Buf::copy_of(&block(lba, round)),
            durability: Durability::Stable,
        };
        submitted(&*lane, op).await;
    }
}

/// Waits until this node's copy has what was written, whoever owns the LUN.
async fn has(here: Rc<Here>, round: u8) {
    let side = Side::of(&here);
    let volume = Arc::clone(&side.volume) as Arc<dyn Volume>;
    let lane = volume.open(&here.core).await.unwrap();
    let expected: Vec<u8> = (0..BLOCKS).flat_map(|it| block(it, round)).collect();
    let is_so = async || {
        let range = at(0, BLOCKS);
        let Done::Data(data) = submitted(&*lane, Op::Read { range, into: None }).await else {
            panic!("it was read");
        };
        data.segments().collect::<Vec<_>>().concat() == expected
    };
    here.until(&format!("the copy has round {round}"), is_so)
        .await;
}

/// Waits until the one owns the LUN, and the other one has all of it.
fn whole(a: &Site, b: &Site) {
    for (site, state) in [(a, State::Owner), (b, State::Replica)] {
        site.on(async move |here| {
            let side = Side::of(&here);
            let is_so = async || side.status().state == state;
            here.until(&format!("{state:?}"), is_so).await;
        });
    }
}

#[test]
fn what_is_written_at_the_owner_is_on_the_other_node_also_when_the_connection_was_cut() {
    let dir = Dir::new("pair");
    let (a, b) = two(&dir);
    let revision = a.on(async |here| found(&here).await);
    for site in [&a, &b] {
        site.on(async move |here| open(here, revision).await);
    }
    whole(&a, &b);
    a.on(async |here| write(here, 1).await);
    b.on(async |here| has(here, 1).await);
    let made = a.on(async |here| here.transport.made.get());
    assert!(made > usize::from(RINGS), "control and a line a ring");
    for (round, site) in [(2, &a), (3, &b), (4, &a)] {
        // Cut at one of the two, while hosts write.
        let writing = a.begin(async move |here| write(here, round).await);
        site.on(async |here| {
            here.sleep(Duration::from_millis(10)).await;
            here.transport.cut();
        });
        writing.recv().unwrap();
        whole(&a, &b);
        b.on(async move |here| has(here, round).await);
    }
    let again = a.on(async |here| here.transport.made.get());
    assert!(
        again >= made + 3 * usize::from(RINGS),
        "{again} after {made}"
    );
    // A node that leaves has no connection any more, and gets none.
    let leave = membership::words::Command::Leave {
        node: Some("san-b".to_owned()),
        force: true,
        dry_run: false,
    };
    a.run(leave);
    let made = a.on(async |here| here.transport.made.get());
    a.on(async |here| {
        here.sleep(Duration::from_secs(1)).await;
        assert!(here.membership.dial(1).await.is_err());
    });
    assert_eq!(a.on(async |here| here.transport.made.get()), made);
}

struct Now<'a, 'b>(&'a dyn Channel, &'a mut Context<'b>);

impl Link for Now<'_, '_> {
    fn send(&mut self, waiting: &Transmit) -> Poll<io::Result<usize>> {
        self.0.poll_send(self.1, waiting)
    }

    fn receive(&mut self, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_receive(self.1, into)
    }
}

/// What the other side answers first.
async fn first_of(connection: &mut Connection, channel: &dyn Channel) -> Option<Event> {
    poll_fn(|cx| {
        let moved = exchange(connection, &mut Now(channel, cx), &mut |_| None);
        match (connection.poll_event(), moved) {
            (Some(event), _) => Poll::Ready(Some(event)),
            (None, Err(_)) => Poll::Ready(None),
            (None, Ok(_)) => Poll::Pending,
        }
    })
    .await
}

#[test]
fn a_node_that_says_it_is_another_one_of_the_cluster_is_refused() {
    let dir = Dir::new("another");
    let (a, b) = two(&dir);
    let other = KnownNode {
        slot: NodeSlot(7),
        node: NodeId([7; 16]),
    };
    let of_a = a.on(async move |here| {
        let settings = settings(&here.membership.present().unwrap());
        let of_a = settings.own;
        let transport = Rc::clone(&here.transport) as Rc<dyn Transport>;
        let arbiter = here.membership.arbiter().await.unwrap();
        let cluster = Cluster::start(&here.core, settings, transport, arbiter);
        let present = here.membership.present().unwrap();
        let mut others: Vec<KnownNode> = present.others.iter().map(mirrors::known).collect();
        others.push(other);
        cluster.meets(&others);
        *here.kept.borrow_mut() = Some(cluster);
        KnownNode {
            slot: of_a.slot,
            node: of_a.node,
        }
    });
    b.on(async move |here| {
        let own = mirrors::own(&here.membership.present().unwrap());
        let lies = peer::Own {
            slot: other.slot,
            node: other.node,
            ..own
        };
        for (says, is_believed) in [(lies, false), (own, true)] {
            let dialled = here.dialled(NodeSlot(0)).await;
            let number = ConnectionNumber(1);
            let mut connection = Connection::connects(says, of_a, number, Purpose::Control);
            let said = first_of(&mut connection, &*dialled);
            let said = in_time(&here.core, Duration::from_secs(5), said).await;
            let said = said.expect("it answers");
            assert_eq!(
                matches!(said, Some(Event::Opened(_))),
                is_believed,
                "{said:?}"
            );
        }
    });
}
