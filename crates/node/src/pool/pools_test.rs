//! Pools that go and come back, and state directories that are taken from an older copy, in any
//! order, on a simulated machine: the model knows which LUNs there are, which pool has seen what,
//! and what must be reported.

use crate::data_plane::Node;
use controller::{Asked, Controller, How};
use engine::Engine;
use env::durable::{read_file, remove_file, replace_file};
use env::sim::{World, WorldConfig};
use manifest::code::Code;
use manifest::config::{self, Config};
use manifest::objects::{LunSpec, ObjectSet};
use manifest::orphan::AdoptRequest;
use manifest::plan::{Edit, Section, Subject};
use manifest::problem::Problem;
use manifest::size::Size;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(3600);

const FORCED: How = How {
    force: true,
    dry_run: false,
};

/// Longer than a probe, and than until a LUN whose file came after the probe is tried again.
const SETTLES: Duration = Duration::from_secs(15);

const POOLS: [&str; 2] = ["p0", "p1"];

fn config() -> Config {
    let text = "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
                listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"p0\"\npath = \"p0\"\n[[pool]]\nname = \"p1\"\n\
                path = \"p1\"\n[api]\nlisten = [\"unix:api.sock\"]\n";
    config::parse(Path::new("/c/node.toml"), text).unwrap()
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    Make(usize),
    Rename,
    Goes(usize),
    ComesBack(usize),
    Copy,
    Restore,
    Restart,
    Accept,
    Adopt,
}

/// What the objects are, as far as it matters.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct Known {
    generation: u64,
    /// The pool of each LUN, by NAA identifier.
    luns: BTreeMap<String, usize>,
}

struct Bench {
    world: World,
    machine: env::sim::Node,
    controller: Rc<Controller>,
    seed: u64,
    story: Vec<Event>,
    known: Known,
    copied: Option<Known>,
    /// The LUNs whose files each pool holds.
    holds: [BTreeSet<String>; 2],
    /// The generation that each pool has seen last.
    saw: [u64; 2],
    away: [bool; 2],
    /// The pools have seen newer objects, and nobody has accepted these.
    older: Option<u64>,
    made: u32,
}

fn begin(world: &World, machine: &env::sim::Node) -> Rc<Controller> {
    let core = machine.core(0);
    let engine: Rc<dyn Engine> = Rc::new(Node::new(Rc::clone(&core), config(), Box::new(Vec::new)));
    let begun = Controller::start(core, config(), engine);
    world.block_on(machine, LIMIT, begun).unwrap().unwrap()
}

impl Bench {
    fn new(seed: u64) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let machine = world.node("a");
        let controller = begin(&world, &machine);
        let mut this = Self {
            world,
            machine,
            controller,
            seed,
            story: Vec::new(),
            known: Known::default(),
            copied: None,
            holds: Default::default(),
            saw: [0; 2],
            away: [false; 2],
            older: None,
            made: 0,
        };
        for pool in 0..POOLS.len() {
            this.happens(Event::Make(pool));
        }
        this
    }

    fn below(&mut self, limit: u64) -> u64 {
        crate::data_plane::test::below(&mut self.seed, limit)
    }

    fn run<T: 'static>(&self, job: impl Future<Output = T> + 'static) -> T {
        let ended = self.world.block_on(&self.machine, LIMIT, job);
        ended.unwrap_or_else(|error| panic!("{error:?} after {:?}", self.story))
    }

    fn edit(&self, edit: Edit) -> Result<(), Problem> {
        let asked = Rc::clone(&self.controller);
        self.run(async move { asked.edit(&edit, How::default()).await.map(|_| ()) })
    }

    /// Moves all files of a directory, for good.
    fn move_all(&self, from: PathBuf, to: PathBuf) {
        let files = self.machine.core(0).files();
        self.run(async move {
            files.create_dir(&to).await.unwrap();
            let mut entries = files.list(&from).await.unwrap_or_default();
            // A mount shows all at once: nothing by which it is known is there before what it has
            // seen.
            entries.sort_by_key(|entry| entry.name != Path::new("saved.json"));
            for entry in entries {
                let name = &entry.name;
                files
                    .rename(&from.join(name), &to.join(name))
                    .await
                    .unwrap();
            }
            for directory in [Path::new("/c"), &from, &to] {
                files.sync_dir(directory).await.unwrap();
            }
        });
    }

    /// Copies all files of a directory, over what is there.
    fn copy_all(&self, from: &'static str, to: &'static str) {
        let files = self.machine.core(0).files();
        self.run(async move {
            let (from, to) = (Path::new(from), Path::new(to));
            files.create_dir(to).await.unwrap();
            for entry in files.list(to).await.unwrap() {
                if !entry.is_dir {
                    remove_file(&*files, &to.join(&entry.name)).await.unwrap();
                }
            }
            files.sync_dir(Path::new("/c")).await.unwrap();
            for entry in files.list(from).await.unwrap() {
                if !entry.is_dir && entry.name != Path::new("lock") {
                    let bytes = read_file(&*files, &from.join(&entry.name), 1 << 20).await;
                    replace_file(&*files, &to.join(&entry.name), &bytes.unwrap())
                        .await
                        .unwrap();
                }
            }
        });
    }

    fn stops(&self) {
        let asked = Rc::clone(&self.controller);
        self.run(async move { asked.stop().await });
        self.machine.crash();
        self.machine.restart();
    }

    fn starts(&mut self) {
        self.controller = begin(&self.world, &self.machine);
        self.older = None;
        self.compares();
    }

    /// What is held against what the pools have seen.
    fn compares(&mut self) {
        let there = (0..POOLS.len()).filter(|pool| !self.away[*pool]);
        let newest = there.map(|pool| self.saw[pool]).max().unwrap_or(0);
        if newest > self.known.generation {
            self.older = Some(newest.max(self.older.unwrap_or(0)));
        } else if self.older.is_none() {
            self.is_stored();
        }
    }

    /// Pools that are there see these objects, unless they have seen later ones.
    fn is_stored(&mut self) {
        for pool in 0..POOLS.len() {
            if !self.away[pool] {
                self.saw[pool] = self.saw[pool].max(self.known.generation);
            }
        }
    }

    /// Its LUNs are known, and its directory is empty.
    fn is_missing(&self, pool: usize) -> bool {
        self.away[pool] && self.known.luns.values().any(|of| *of == pool)
    }

    /// A change was made, or refused for a reason that the model knows.
    fn changed(&mut self, done: Result<(), Problem>, may: bool) -> bool {
        match done {
            Ok(()) => {
                assert!(may && self.older.is_none(), "{:?}", self.story);
                self.known.generation = self.controller.generation();
                self.is_stored();
                true
            }
            Err(problem) => {
                let wanted = match self.older {
                    Some(_) => Code::StateOlder,
                    None => Code::PoolMissing,
                };
                assert_eq!(problem.code, wanted, "{problem}: {:?}", self.story);
                assert!(self.older.is_some() || !may, "{problem}: {:?}", self.story);
                false
            }
        }
    }

    /// Makes a LUN; whether that was possible.
    fn makes(&mut self, pool: usize) -> bool {
        if self.away[pool] && !self.is_missing(pool) {
            // An empty directory of which nothing is known is a new pool.
            self.story.pop();
            return false;
        }
        self.made += 1;
        let name = format!("l{}", self.made);
        let mut spec = LunSpec::new(&name, Size::from_bytes(1 << 20).unwrap());
        spec.pool = Some(POOLS[pool].to_owned());
        let set = ObjectSet {
            lun: vec![spec],
            ..ObjectSet::default()
        };
        let done = self.edit(Edit::Apply { set, prune: false });
        if self.changed(done, !self.away[pool]) {
            let objects = self.controller.objects();
            let naa = objects.luns[&name].naa.clone();
            self.known.luns.insert(naa.clone(), pool);
            self.holds[pool].insert(naa);
        }
        true
    }

    fn renames(&mut self) {
        self.made += 1;
        let objects = self.controller.objects();
        let subject = Subject {
            section: Section::Lun,
            name: objects.luns.keys().next().unwrap().clone(),
        };
        let to = format!("l{}", self.made);
        let done = self.edit(Edit::Rename { subject, to });
        self.changed(done, true);
    }

    fn adopts(&mut self) {
        let orphans = self.orphans();
        let asked = Rc::clone(&self.controller);
        let all = AdoptRequest {
            all: true,
            ..AdoptRequest::default()
        };
        let done =
            self.run(async move { asked.adopt(&all, How::default(), Asked::by("eve")).await });
        if orphans.is_empty() && self.older.is_none() {
            assert!(!done.unwrap().changed);
        } else if self.changed(done.map(|_| ()), true) {
            self.known.luns.extend(orphans);
        }
    }

    /// Whether the event was possible.
    fn happens(&mut self, event: Event) -> bool {
        self.story.push(event);
        match event {
            Event::Make(pool) => {
                if !self.makes(pool) {
                    return false;
                }
            }
            Event::Rename => self.renames(),
            Event::Goes(pool) if !self.away[pool] && self.is_known(pool) => {
                let path = format!("/c/{}", POOLS[pool]);
                self.move_all(path.clone().into(), format!("{path}.away").into());
                self.away[pool] = true;
            }
            Event::ComesBack(pool) if self.is_missing(pool) => {
                let path = format!("/c/{}", POOLS[pool]);
                self.move_all(format!("{path}.away").into(), path.into());
                self.away[pool] = false;
                self.world.run_for(SETTLES);
                self.compares();
            }
            Event::Copy => {
                self.copy_all("/c/state", "/c/copy");
                self.copied = Some(self.known.clone());
            }
            Event::Restore if self.copied.as_ref().is_some_and(|it| self.names(it)) => {
                self.stops();
                self.copy_all("/c/copy", "/c/state");
                self.known = self.copied.clone().unwrap();
                self.starts();
            }
            Event::Restart => {
                self.stops();
                self.starts();
            }
            Event::Accept => {
                let asked = Rc::clone(&self.controller);
                self.run(async move { asked.accept(FORCED, Asked::by("eve")).await.map(|_| ()) })
                    .unwrap();
                if self.older.take().is_some() {
                    self.known.generation = self.controller.generation();
                    self.is_stored();
                }
            }
            Event::Adopt => self.adopts(),
            Event::Goes(_) | Event::ComesBack(_) | Event::Restore => {
                self.story.pop();
                return false;
            }
        }
        self.world.run_for(SETTLES);
        true
    }

    fn is_known(&self, pool: usize) -> bool {
        self.known.luns.values().any(|of| *of == pool)
    }

    /// Each pool that is away is known by these objects: they would make another one of it.
    fn names(&self, objects: &Known) -> bool {
        let mut away = (0..POOLS.len()).filter(|pool| self.away[*pool]);
        away.all(|pool| objects.luns.values().any(|of| *of == pool))
    }

    /// What pools that are there hold and no object names.
    fn orphans(&self) -> BTreeMap<String, usize> {
        let there = (0..POOLS.len()).filter(|pool| !self.away[*pool]);
        let all = there.flat_map(|pool| self.holds[pool].iter().map(move |it| (it.clone(), pool)));
        all.filter(|(naa, _)| !self.known.luns.contains_key(naa))
            .collect()
    }

    fn judge(&self) {
        let story = &self.story;
        let asked = Rc::clone(&self.controller);
        let (status, luns, orphans) = self.run(async move {
            let (status, luns) = (asked.status().await, asked.luns(false).await);
            (status, luns, asked.orphans().await)
        });
        let reported = status.problems.join("\n");
        let older = self.older.is_some();
        assert_eq!(reported.contains("CWY4012"), older, "{reported}: {story:?}");
        assert_eq!(status.generation, self.known.generation, "{story:?}");
        let orphans: BTreeSet<String> = orphans.into_iter().map(|it| it.naa).collect();
        let wanted: BTreeSet<String> = self.orphans().into_keys().collect();
        assert_eq!(orphans, wanted, "{story:?}");
        assert_eq!(
            reported.contains("no object names"),
            !wanted.is_empty(),
            "{reported}: {story:?}"
        );
        assert_eq!(luns.len(), self.known.luns.len(), "{story:?}");
        for lun in luns {
            let away = self.away[self.known.luns[&lun.naa]];
            assert_eq!(lun.state == "online", !away, "{lun:?}: {story:?}");
            assert_eq!(lun.reason.is_some(), away, "{lun:?}: {story:?}");
        }
        for (pool, name) in POOLS.iter().enumerate() {
            let found = status.pools.iter().find(|it| it.name == *name).unwrap();
            let missing = self.is_missing(pool);
            assert_eq!(found.problem.is_some(), missing, "{found:?}: {story:?}");
        }
    }
}

#[test]
fn pools_that_go_and_state_that_is_older_are_reported_and_nothing_newer_is_ever_written_over() {
    let mut seen: BTreeMap<(Event, bool), u32> = BTreeMap::new();
    for seed in 1..=STORIES {
        let mut bench = Bench::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        bench.judge();
        for _ in 0..16 {
            let pool = usize::try_from(bench.below(2)).unwrap();
            let event = match bench.below(12) {
                0 | 1 => Event::Make(pool),
                2 => Event::Rename,
                3 | 4 => Event::Goes(pool),
                5 | 6 => Event::ComesBack(pool),
                7 => Event::Copy,
                8 | 9 => Event::Restore,
                10 if bench.below(2) == 0 => Event::Accept,
                10 => Event::Adopt,
                _ => Event::Restart,
            };
            if bench.happens(event) {
                bench.judge();
                *seen.entry((event, bench.older.is_some())).or_default() += 1;
            }
        }
    }
    for wanted in [
        (Event::Make(0), true),
        (Event::Make(1), false),
        (Event::Goes(0), false),
        (Event::ComesBack(0), true),
        (Event::ComesBack(1), true),
        (Event::ComesBack(0), false),
        (Event::Restore, true),
        (Event::Restart, true),
        (Event::Accept, false),
        (Event::Adopt, true),
        (Event::Adopt, false),
    ] {
        assert!(
            seen.contains_key(&wanted),
            "{wanted:?} is not among {seen:?}"
        );
    }
}

/// Each takes some milliseconds.
const STORIES: u64 = 120;
