//! What stands at a pool's path decides what the pool is.

use crate::data_plane::Node;
use engine::Engine;
use env::durable::{make_dir, replace_file};
use env::sim::{BlockDevice, World, WorldConfig};
use manifest::code::Code;
use manifest::config::{self, Config};
use manifest::facts::PoolFacts;
use manifest::objects::Objects;
use manifest::problem::Problem;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);

const POOL: &str = "/c/p";

fn config() -> Config {
    let text = "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
                listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"p\"\npath = \"p\"\n\
                [api]\nlisten = [\"unix:api.sock\"]\n";
    config::parse(Path::new("/c/node.toml"), text).unwrap()
}

/// The pool of a node that starts with what `make` has put there.
fn started(make: impl FnOnce(&World, &env::sim::Node)) -> Result<PoolFacts, Problem> {
    let world = World::new(1, WorldConfig::default());
    let machine = world.node("a");
    make(&world, &machine);
    let core = machine.core(0);
    let started = async move {
        let node = Node::new(core, config(), Box::new(Vec::new));
        node.start(Rc::new(Objects::default())).await?;
        let pools = node.pools().await;
        Ok(pools.into_iter().next().expect("one pool"))
    };
    world.block_on(&machine, LIMIT, started).unwrap()
}

#[test]
fn a_path_where_nothing_is_becomes_a_directory_and_one_that_is_there_stays_one() {
    let made = started(|_, _| {}).unwrap();
    assert_eq!(made.layout, "directory");
    let there = started(|world, machine| {
        let files = machine.core(0).files();
        let make = async move { make_dir(&*files, Path::new(POOL)).await };
        world.block_on(machine, LIMIT, make).unwrap().unwrap();
    });
    assert_eq!(there.unwrap().layout, "directory");
}

#[test]
fn a_block_device_at_the_path_is_a_pool_of_one_member() {
    let pool = started(|_, machine| {
        let device = BlockDevice {
            bytes: 1 << 30,
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            discard_granularity: 4096,
        };
        machine.disk().add_block_device(Path::new(POOL), device);
    });
    let pool = pool.unwrap();
    assert_eq!((pool.layout.as_str(), pool.path.as_str()), ("span", POOL));
    assert_eq!(pool.problem, None);
}

#[test]
fn a_file_at_the_path_is_refused_with_its_place_in_node_toml() {
    let problem = started(|world, machine| {
        let files = machine.core(0).files();
        let make = async move {
            make_dir(&*files, Path::new("/c")).await.unwrap();
            replace_file(&*files, Path::new(POOL), b"x").await
        };
        world.block_on(machine, LIMIT, make).unwrap().unwrap();
    });
    let problem = problem.unwrap_err();
    assert_eq!(problem.code, Code::ConfigEnvironment);
    let wanted = "/c/node.toml:10: pool[0].path: /c/p is not a directory";
    assert_eq!(problem.detail, wanted);
}
