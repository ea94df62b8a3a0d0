//! Pools of members on a disk that is full.

use super::{FULL, MemberPool};
use crate::backend::door::{Pool, Promised};
use crate::data_plane::Node;
use crate::data_plane::test::{apply, begin_with, edit, wait};
use controller::Controller;
use controller::test_support::lab;
use env::sim::{World, WorldConfig};
use env::{Access, Create, FileOp, OpenHow};
use manifest::config::{self, Config, Place};
use manifest::size::Size;
use members::{AREA_BYTES, LunId};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use volume::OpenError;

const LIMIT: Duration = Duration::from_secs(600);
/// Longer than until a pool that is not whole is read again.
const SOON: Duration = Duration::from_secs(25);
const MEMBERS: [&str; 2] = ["/c/m0", "/c/m1"];
const MEMBER_BYTES: u64 = 64 << 20;

pub(crate) fn config() -> Config {
    let text = "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
                listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"default\"\nmembers = [\"m0\", \"m1\"]\n\
                layout = \"span\"\n[api]\nlisten = [\"unix:api.sock\"]\n";
    config::parse(Path::new("/c/node.toml"), text).unwrap()
}

pub(crate) fn make_members(world: &World, node: &env::sim::Node) {
    let core = node.core(0);
    let made = async move {
        core.files().create_dir(Path::new("/c")).await.unwrap();
        let how = OpenHow {
            access: Access::ReadWrite,
            create: Create::New,
            direct: false,
            lock: false,
        };
        for path in MEMBERS {
            let file = core.files().open(Path::new(path), how).await.unwrap();
            let len = MEMBER_BYTES;
            file.submit(FileOp::SetLen { len }).await.unwrap();
            file.submit(FileOp::Sync).await.unwrap();
        }
        core.files().sync_dir(Path::new("/c")).await.unwrap();
    };
    world.block_on(node, LIMIT, made).unwrap();
}

/// A node with one LUN in a pool of members that are copied on write.
struct Bench {
    world: World,
    node: env::sim::Node,
    controller: Rc<Controller>,
    engine: Node,
}

impl Bench {
    fn new() -> Self {
        let world = World::new(31, WorldConfig::default());
        let node = world.node("a");
        make_members(&world, &node);
        let (controller, engine) = begin_with(&world, &node, config);
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(16 << 20).unwrap();
        edit(&world, &node, &controller, apply(set)).unwrap();
        for path in MEMBERS {
            assert!(node.disk().copy_on_write(Path::new(path)));
        }
        Self {
            world,
            node,
            controller,
            engine,
        }
    }

    fn lun(&self) -> (String, String) {
        let asked = Rc::clone(&self.controller);
        let luns = async move { asked.luns(false).await };
        let lun = self.world.block_on(&self.node, LIMIT, luns).unwrap();
        let lun = lun.into_iter().next().expect("the LUN");
        (lun.state, lun.reason.unwrap_or_default())
    }

    fn pool(&self) -> Rc<dyn Pool> {
        Rc::clone(&self.engine.0.pools()["default"])
    }

    fn number(&self) -> Result<[u8; 16], OpenError> {
        let pool = self.pool();
        let number = async move { pool.journals().expect("has some").number().await };
        self.world.block_on(&self.node, LIMIT, number).unwrap()
    }

    /// What keeps the pool from being whole.
    fn problem(&self) -> Option<String> {
        let pool = self.pool();
        let facts = async move { pool.facts(Promised::default()).await.0 };
        self.world
            .block_on(&self.node, LIMIT, facts)
            .unwrap()
            .problem
    }

    /// Has an event written.
    fn event(&self) -> Result<(), String> {
        let pool = self.pool();
        let event = async move {
            let pool = pool.journals().expect("has some");
            let has = pool.identity().await.unwrap().unwrap().has_journal;
            pool.set_journal(has).await
        };
        let done = self.world.block_on(&self.node, LIMIT, event).unwrap();
        done.map_err(|error| error.to_string())
    }

    fn wait(&self) {
        wait(&self.world, &self.node, SOON);
    }

    fn is_whole_again(&self) {
        self.node.disk().set_capacity(1 << 40);
        self.wait();
        assert_eq!(self.problem(), None);
        assert_eq!(self.lun().0, "online");
        assert_eq!(self.event(), Ok(()));
    }
}

#[test]
fn luns_are_served_while_an_event_of_their_pool_finds_no_room() {
    let bench = Bench::new();
    bench.node.disk().set_capacity(0);
    let refused = bench.event().unwrap_err();
    assert!(refused.contains("make room"), "{refused}");
    for _ in 0..3 {
        bench.wait();
        assert_eq!(bench.lun(), ("online".to_owned(), String::new()));
        let problem = bench.problem().unwrap();
        assert!(problem.contains("make room"), "{problem}");
        assert!(bench.event().is_err());
    }
    bench.is_whole_again();
}

/// Without the events that make a copy of it known it is not used again, and the other one is
/// served as far as it goes.
#[test]
fn a_member_that_went_and_came_on_a_full_disk_is_used_when_there_is_room() {
    let bench = Bench::new();
    bench.node.disk().set_capacity(0);
    bench.event().unwrap_err();
    for (from, to) in [(MEMBERS[1], "/c/away"), ("/c/away", MEMBERS[1])] {
        let core = bench.node.core(0);
        let moved = async move { core.files().rename(Path::new(from), Path::new(to)).await };
        let moved = bench.world.block_on(&bench.node, LIMIT, moved).unwrap();
        moved.unwrap();
        bench.wait();
        let problem = bench.problem().unwrap();
        assert!(problem.contains("lacks member 1"), "{problem}");
        assert!(problem.contains("make room"), "{problem}");
        assert!(bench.number().is_ok());
    }
    bench.is_whole_again();
}

#[test]
fn a_pool_of_members_that_starts_without_room_is_there_soon_after_there_is_some() {
    let mut bench = Bench::new();
    bench.node.crash();
    bench.node.restart();
    bench.node.disk().set_capacity(0);
    (bench.controller, bench.engine) = begin_with(&bench.world, &bench.node, config);
    bench.wait();
    let (state, reason) = bench.lun();
    assert_eq!(state, "offline");
    assert!(reason.contains("make room"), "{reason}");
    bench.is_whole_again();
}

/// What is not copied on write has the space of its superblocks, however long they become.
#[test]
fn a_table_that_grows_finds_its_room_on_a_full_disk() {
    let world = World::new(32, WorldConfig::default());
    let node = world.node("a");
    make_members(&world, &node);
    let pool = open(&world, &node);
    node.disk().set_capacity(node.disk().used_bytes());
    let core = node.core(0);
    let grown = async move {
        let lun = LunId([0x60; 16]);
        pool.resize(&core, lun, 1 << 20).await.unwrap();
        for number in 0..200_u8 {
            let mut id = lun;
            id.0[15] = number;
            let done = pool.resize(&core, id, 0).await;
            done.unwrap_or_else(|error| panic!("{number}: {error}"));
        }
        pool.there(|there| there.assembly.table.encode().map(|it| it.len()))
    };
    let length = world.block_on(&node, LIMIT, grown).unwrap().unwrap();
    let length = length.unwrap();
    assert!(length > 4096 && length < AREA_BYTES, "{length}");
}

fn open(world: &World, node: &env::sim::Node) -> Rc<MemberPool> {
    let core = node.core(0);
    let opened = async move {
        let config = config();
        let pool = &config.pools[0];
        let Place::Members { members, layout } = &pool.place else {
            panic!("{FULL}")
        };
        let (members, state): (&[PathBuf], _) = (members, Path::new("/c/state"));
        MemberPool::open(&core, pool, (members, *layout), state, false).await
    };
    world.block_on(node, LIMIT, opened).unwrap()
}
