//! What may happen to a pool's journal while a node serves, in any order, on a simulated machine:
//! whatever state that leads to either serves or says why not, and what should bring it back does.

use crate::data_plane::Node;
use controller::test_support::lab;
use controller::{Controller, How};
use engine::Engine;
use env::CoreHandle;
use env::sim::{Fault, FaultPlan, World, WorldConfig};
use manifest::config::{self, Config};
use manifest::journal::{JournalOp, JournalRequest, JournalState};
use manifest::plan::Edit;
use manifest::size::Size;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Durability, Io, Op, Origin};

const LIMIT: Duration = Duration::from_secs(3600);

const JOURNAL: &str = "/c/journal";
const ASIDE: &str = "/c/aside";
const COPY: &str = "/c/copy";

/// Longer than a check, a try of what is there already, and the time for destaging together.
const SETTLES: Duration = Duration::from_secs(90);

pub(crate) fn with_journal() -> Config {
    let text = "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
                listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\n\
                journal = \"journal\"\njournal_size = \"16MiB\"\n[api]\nlisten = [\"unix:api.sock\"]\n";
    config::parse(Path::new("/c/node.toml"), text).unwrap()
}

/// What may happen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A host writes.
    Write,
    /// A host writes, and the journal's write fails.
    WriteFails,
    /// A host writes, and there is no space for it in the journal, for a while.
    NoSpace,
    /// The file is moved away.
    Goes,
    /// The file comes back.
    ComesBack,
    /// A copy of it is made.
    IsCopied,
    /// The copy takes its place.
    OlderCopy,
    /// Somebody asks for it to be opened anew.
    Reopen,
    /// Somebody gives it up.
    Discard,
    /// Nothing, for a while.
    Waits,
}

const EVENTS: [Event; 10] = [
    Event::Write,
    Event::WriteFails,
    Event::NoSpace,
    Event::Goes,
    Event::ComesBack,
    Event::IsCopied,
    Event::OlderCopy,
    Event::Reopen,
    Event::Discard,
    Event::Waits,
];

struct Bench {
    world: World,
    machine: env::sim::Node,
    engine: Node,
    controller: Rc<Controller>,
    seed: u64,
    /// Where the newest of the file is: in its place, aside, or overwritten by a copy.
    file: File,
    has_copy: bool,
    story: Vec<Event>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum File {
    InPlace,
    Aside,
    /// What stands in its place is a copy, and may be older than what was acknowledged.
    Older,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let machine = world.node("a");
        let engine = Node::new(machine.core(0), with_journal(), Box::new(Vec::new));
        let shared: Rc<dyn Engine> = Rc::new(engine.clone());
        let begun = Controller::start(machine.core(0), with_journal(), shared);
        let controller = world.block_on(&machine, LIMIT, begun).unwrap().unwrap();
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(1 << 20).unwrap();
        let (asked, edit) = (Rc::clone(&controller), Edit::Apply { set, prune: false });
        let applied = async move { asked.edit(&edit, How::default()).await.map(|_| ()) };
        world.block_on(&machine, LIMIT, applied).unwrap().unwrap();
        Self {
            world,
            machine,
            engine,
            controller,
            seed,
            file: File::InPlace,
            has_copy: false,
            story: Vec::new(),
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        crate::data_plane::test::below(&mut self.seed, limit)
    }

    fn run<T: 'static>(&self, job: impl Future<Output = T> + 'static) -> T {
        let ended = self.world.block_on(&self.machine, LIMIT, job);
        ended.unwrap_or_else(|hung| panic!("{hung:?} after {:?}", self.story))
    }

    fn core(&self) -> CoreHandle {
        self.machine.core(0)
    }

    /// Whether the write was acknowledged.
    fn write(&mut self) -> bool {
        let (core, number) = (self.core(), self.below(200));
        let units = self.engine.0.units.borrow();
        let unit = Rc::clone(units.values().next().expect("the LUN"));
        drop(units);
        self.run(async move {
            let Ok(volume) = unit.volume() else {
                return false;
            };
            let Ok(lane) = volume.open(&core).await else {
                return false;
            };
            let write = Op::Write {
                range: LbaRange::new(Lba(number * 8), BlockCount(8)).expect("inside"),
                data: Buf::copy_of(&[7; 4096]),
                durability: Durability::Stable,
            };
            lane.submit(Io::new(write, Origin::default())).await.is_ok()
        })
    }

    fn asks(&self, operation: JournalOp) -> Result<(), String> {
        let request = JournalRequest {
            operation,
            confirm: Some("default".to_owned()),
            dry_run: false,
        };
        let node = Rc::clone(&self.engine.0);
        let asked = self.run(async move { node.journal("default", &request).await });
        asked.map(|_| ()).map_err(|problem| {
            assert!(!problem.detail.trim().is_empty(), "{:?}", self.story);
            problem.to_string()
        })
    }

    fn rename(&self, from: &'static str, to: &'static str) {
        let files = self.core();
        let moved = async move { files.files().rename(Path::new(from), Path::new(to)).await };
        self.run(moved).expect("nothing fails");
    }

    fn copy(&self, from: &'static str, to: &'static str) {
        let core = self.core();
        self.run(async move {
            let files = core.files();
            let bytes = env::durable::read_file(&*files, Path::new(from), 64 << 20).await;
            let to = Path::new(to);
            env::durable::replace_file(&*files, to, &bytes.expect("it is there")).await
        })
        .expect("nothing fails");
    }

    /// Whether the event was possible.
    fn happens(&mut self, event: Event) -> bool {
        match event {
            Event::Write => {
                self.write();
            }
            Event::WriteFails => {
                let all = FaultPlan::none().with(Fault::FileWriteError, 1_000_000);
                self.world.set_faults(all);
                let written = self.write();
                self.world.set_faults(FaultPlan::none());
                assert!(!written, "{:?}", self.story);
            }
            Event::NoSpace => {
                let before = self.state().0;
                let all = FaultPlan::none().with(Fault::FileNoSpace, 1_000_000);
                self.world.set_faults(all);
                assert!(!self.write(), "{:?}", self.story);
                // It is tried several times, and what it has can be read meanwhile.
                self.world.run_for(SETTLES / 2);
                assert_eq!(
                    self.judge() != JournalState::Missing,
                    before != JournalState::Missing
                );
                self.world.set_faults(FaultPlan::none());
            }
            Event::Goes if self.file == File::InPlace => {
                self.rename(JOURNAL, ASIDE);
                self.file = File::Aside;
            }
            Event::ComesBack if self.file == File::Aside => {
                self.rename(ASIDE, JOURNAL);
                self.file = File::InPlace;
            }
            Event::IsCopied if self.file == File::InPlace => {
                self.copy(JOURNAL, COPY);
                self.has_copy = true;
            }
            Event::OlderCopy if self.file == File::Aside && self.has_copy => {
                self.copy(COPY, JOURNAL);
                self.file = File::Older;
            }
            Event::Reopen => {
                // It may be refused, with a reason.
                let _ = self.asks(JournalOp::Reopen);
            }
            Event::Discard => {
                let served = self.state().0 == JournalState::Open;
                let asked = self.asks(JournalOp::Discard);
                assert!(!served || asked.is_err(), "{:?}", self.story);
                if asked.is_ok() {
                    // Another one was made in the place.
                    (self.file, self.has_copy) = (File::InPlace, false);
                }
            }
            Event::Waits => {}
            Event::Goes | Event::ComesBack | Event::IsCopied | Event::OlderCopy => return false,
        }
        self.world.run_for(SETTLES);
        true
    }

    fn state(&self) -> (JournalState, Option<String>, Option<String>) {
        let node = Rc::clone(&self.engine.0);
        let facts = self.run(async move { crate::journal::journals::journals(&node).await });
        let facts = facts.into_values().next().expect("the pool has a journal");
        let asked = Rc::clone(&self.controller);
        let luns = self.run(async move { asked.luns(false).await });
        let lun = luns.into_iter().next().expect("the LUN");
        let reason = (lun.state != "online").then(|| lun.reason.unwrap_or_default());
        (facts.state, facts.problem, reason)
    }

    /// Each state serves, or says why not.
    fn judge(&mut self) -> JournalState {
        let (state, problem, offline) = self.state();
        let named = |why: &Option<String>| why.as_ref().is_some_and(|why| why.trim().len() > 10);
        let story = &self.story;
        match state {
            JournalState::Open => {
                assert_eq!((&problem, &offline), (&None, &None), "{story:?}");
                assert!(
                    self.write(),
                    "open, and it takes no write: {:?}",
                    self.story
                );
            }
            JournalState::Failed => {
                assert!(named(&problem), "failed, and no reason: {story:?}");
                assert_eq!(offline, None, "reads go on: {story:?}");
                assert!(
                    !self.write(),
                    "failed, and it takes a write: {:?}",
                    self.story
                );
            }
            JournalState::Missing => {
                assert!(named(&problem), "missing, and no reason: {story:?}");
                assert!(named(&offline), "offline, and no reason: {story:?}");
            }
        }
        state
    }

    /// What should bring it back does.
    fn comes_back(&mut self) {
        if self.file == File::Aside {
            self.happens(Event::ComesBack);
        }
        let mut state = self.judge();
        if state == JournalState::Failed {
            self.story.push(Event::Reopen);
            let asked = self.asks(JournalOp::Reopen);
            assert_eq!(asked, Ok(()), "{:?}", self.story);
            state = self.judge();
        }
        if state == JournalState::Missing && self.file == File::Older {
            self.story.push(Event::Discard);
            let asked = self.asks(JournalOp::Discard);
            assert_eq!(asked, Ok(()), "{:?}", self.story);
            state = self.judge();
        }
        assert_eq!(state, JournalState::Open, "{:?}", self.story);
    }
}

#[test]
fn whatever_happens_to_a_journal_leads_to_one_that_serves_or_to_a_reason_and_back() {
    let mut seen: BTreeMap<(&str, Event, &str), u32> = BTreeMap::new();
    for seed in 1..=STORIES {
        let mut bench = Bench::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut before = bench.judge();
        for _ in 0..12 {
            let event = EVENTS[usize::try_from(bench.below(EVENTS.len() as u64)).unwrap()];
            bench.story.push(event);
            if !bench.happens(event) {
                bench.story.pop();
                continue;
            }
            let after = bench.judge();
            *seen
                .entry((before.name(), event, after.name()))
                .or_default() += 1;
            before = after;
        }
        bench.comes_back();
    }
    let all = [
        JournalState::Open,
        JournalState::Failed,
        JournalState::Missing,
    ];
    let [open, failed, missing] = all.map(JournalState::name);
    for wanted in [
        (open, Event::WriteFails, failed),
        (open, Event::NoSpace, open),
        (missing, Event::NoSpace, missing),
        (open, Event::Goes, missing),
        (failed, Event::Reopen, open),
        (failed, Event::Discard, open),
        (failed, Event::Goes, missing),
        (missing, Event::ComesBack, open),
        (missing, Event::Reopen, missing),
        (missing, Event::OlderCopy, missing),
        (missing, Event::Discard, open),
    ] {
        assert!(
            seen.contains_key(&wanted),
            "{wanted:?} is not among {seen:?}"
        );
    }
}

impl Bench {
    /// What the journal has and is not destaged: of the LUN, and of all.
    fn pending(&self) -> [Option<u64>; 2] {
        let asked = Rc::clone(&self.controller);
        let both = async move { (asked.luns(false).await, asked.pools().await) };
        let (luns, pools) = self.run(both);
        let lun = luns[0].journal.as_ref().expect("the pool has a journal");
        let pool = pools[0].journal.as_ref().expect("it has");
        let is_open = pool.state == JournalState::Open;
        [lun.pending_bytes, is_open.then_some(pool.pending_bytes)]
    }
}

#[test]
fn what_is_not_destaged_is_reported_of_the_lun_and_nothing_while_its_journal_is_missing() {
    let mut bench = Bench::new(1);
    assert_eq!(bench.pending(), [Some(0); 2]);
    for _ in 0..40 {
        assert!(bench.write());
    }
    let [of_lun, of_all] = bench.pending();
    assert!(of_lun >= Some(4096), "{of_lun:?}");
    assert_eq!(of_lun, of_all, "the pool has no other LUN");
    bench.world.run_for(SETTLES);
    assert_eq!(bench.pending(), [Some(0); 2], "destaged");
    assert!(bench.happens(Event::Goes));
    bench.world.run_for(SETTLES);
    assert_eq!(bench.pending(), [None; 2]);
    assert!(bench.happens(Event::ComesBack));
    bench.world.run_for(SETTLES);
    assert_eq!(bench.pending(), [Some(0); 2]);
}

/// Each takes some milliseconds.
const STORIES: u64 = 150;

/// How a node's journal is that was started with this much space, how many bytes are used then, and
/// how it is some time after there is more. `None`: the node does not start.
fn first_start(capacity: u64) -> Option<(JournalState, u64, JournalState)> {
    let world = World::new(capacity, WorldConfig::default());
    let machine = world.node("a");
    machine.disk().set_capacity(capacity);
    let engine = Node::new(machine.core(0), with_journal(), Box::new(Vec::new));
    let shared: Rc<dyn Engine> = Rc::new(engine.clone());
    let begun = Controller::start(machine.core(0), with_journal(), shared);
    let controller = world.block_on(&machine, LIMIT, begun).unwrap().ok()?;
    let state = || {
        let node = Rc::clone(&engine.0);
        let facts = async move { crate::journal::journals::journals(&node).await };
        let facts = world.block_on(&machine, LIMIT, facts).unwrap();
        facts
            .into_values()
            .next()
            .expect("the pool has a journal")
            .state
    };
    world.run_for(SETTLES);
    let (before, used) = (state(), machine.disk().used_bytes());
    machine.disk().set_capacity(1 << 30);
    world.run_for(SETTLES);
    let after = state();
    drop(controller);
    Some((before, used, after))
}

#[test]
fn a_journal_that_finds_no_space_at_first_fills_no_disk_and_is_made_when_there_is_some() {
    let mut missing = 0;
    let steps = (0..32)
        .map(|step| step * 4096)
        .chain([1 << 20, 8 << 20, 15 << 20]);
    for capacity in steps {
        let Some((before, used, after)) = first_start(capacity) else {
            continue;
        };
        assert_eq!(before, JournalState::Missing, "{capacity}");
        // The state directory keeps some for changes that make room.
        assert!(used <= 1 << 19, "{used} of {capacity} bytes are used");
        assert_eq!(after, JournalState::Open, "{capacity}");
        missing += 1;
    }
    assert!(missing >= 10, "{missing}");
}
