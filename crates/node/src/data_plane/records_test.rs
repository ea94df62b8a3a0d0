//! Records of the state directory that another version wrote, or that are damaged, and what a node
//! makes of them, on a simulated machine.

use super::test::{apply, begin_with, edit};
use crate::data_plane::Node;
use crate::journal::journals::journals;
use crate::journal::monitor_test::with_journal;
use controller::Controller;
use controller::test_support::{config, lab};
use engine::Engine;
use env::durable::{read_file, replace_file};
use env::sim::{Fault, FaultPlan, World, WorldConfig};
use manifest::code::Code;
use manifest::config::Config;
use manifest::document;
use manifest::journal::{JournalOp, JournalRequest, JournalState};
use manifest::objects::LunSpec;
use manifest::plan::{Edit, Section, Subject};
use manifest::size::Size;
use state::record::{self, Matters};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use volume::OpenErrorKind;

const LIMIT: Duration = Duration::from_secs(3600);

const JOURNAL_RECORD: &str = "/c/state/journals/default.json";
const INTENT_LOG: &str = "/c/state/intent_log.json";

struct Bench {
    world: World,
    machine: env::sim::Node,
    config: fn() -> Config,
    served: Option<(Rc<Controller>, Node)>,
}

impl Bench {
    fn new(config: fn() -> Config) -> Self {
        let world = World::new(31, WorldConfig::default());
        let machine = world.node("a");
        let served = Some(begin_with(&world, &machine, config));
        let this = Self {
            world,
            machine,
            config,
            served,
        };
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(1 << 20).unwrap();
        this.edit(apply(set)).unwrap();
        this
    }

    fn run<T: 'static>(&self, job: impl Future<Output = T> + 'static) -> T {
        self.world.block_on(&self.machine, LIMIT, job).unwrap()
    }

    fn served(&self) -> &(Rc<Controller>, Node) {
        self.served.as_ref().expect("it serves")
    }

    fn edit(&self, what: Edit) -> Result<(), Code> {
        let done = edit(&self.world, &self.machine, &self.served().0, what);
        done.map_err(|problem| problem.code)
    }

    fn creates(&self, name: &str) -> Result<(), Code> {
        let mut set = lab();
        set.lun = vec![LunSpec::new(name, Size::from_bytes(1 << 20).unwrap())];
        (set.target, set.host, set.grant) = Default::default();
        self.edit(apply(set))
    }

    fn on(&self, section: Section, name: &str) -> Subject {
        let name = name.to_owned();
        Subject { section, name }
    }

    /// A crash; then this stands in a file, and it starts again.
    fn starts_with(&mut self, file: &'static str, text: Vec<u8>) {
        self.served = None;
        self.machine.crash();
        self.machine.restart();
        let core = self.machine.core(0);
        self.run(async move { replace_file(&*core.files(), Path::new(file), &text).await })
            .unwrap();
        self.served = Some(begin_with(&self.world, &self.machine, self.config));
        self.world.run_for(Duration::from_secs(90));
    }

    fn file(&self, path: &'static str) -> Option<Vec<u8>> {
        let core = self.machine.core(0);
        let read = async move { read_file(&*core.files(), Path::new(path), 1 << 20).await };
        self.run(read).ok()
    }

    fn journal(&self) -> (JournalState, String) {
        let node = Rc::clone(&self.served().1.0);
        let facts = self.run(async move { journals(&node).await });
        let facts = facts.into_values().next().expect("the pool has one");
        (facts.state, facts.problem.unwrap_or_default())
    }

    fn lun_state(&self) -> String {
        let asked = Rc::clone(&self.served().0);
        let luns = self.run(async move { asked.luns(false).await });
        luns[0].state.clone()
    }
}

fn of_newer_version(kind: &str) -> Vec<u8> {
    let text = String::from_utf8(document::write(kind, b"{}")).unwrap();
    text.replace(&format!("{kind} 1"), &format!("{kind} 2"))
        .into_bytes()
}

#[test]
fn a_journal_whose_record_another_version_wrote_is_not_opened_and_the_record_stays() {
    for text in [
        of_newer_version("journal"),
        document::write("journal", b"{\"all\":1}"),
    ] {
        let mut bench = Bench::new(with_journal);
        bench.starts_with(JOURNAL_RECORD, text.clone());
        let (state, problem) = bench.journal();
        assert_eq!(state, JournalState::Missing, "{problem}");
        assert!(problem.contains(JOURNAL_RECORD), "{problem}");
        assert_eq!(bench.lun_state(), "offline");
        assert_eq!(
            bench.file(JOURNAL_RECORD),
            Some(text),
            "it was written over"
        );
        // Whoever wants to do without what it says can.
        let node = Rc::clone(&bench.served().1.0);
        let discard = JournalRequest {
            operation: JournalOp::Discard,
            confirm: Some("default".to_owned()),
            dry_run: false,
        };
        let given_up = bench.run(async move { node.journal("default", &discard).await });
        given_up.unwrap();
        assert_eq!(bench.journal().0, JournalState::Open);
        assert_eq!(bench.lun_state(), "online");
    }
}

#[test]
fn a_damaged_record_of_a_journal_is_kept_aside_and_the_journal_is_opened() {
    let mut bench = Bench::new(with_journal);
    let mut text = bench.file(JOURNAL_RECORD).unwrap();
    *text.last_mut().unwrap() ^= 1;
    bench.starts_with(JOURNAL_RECORD, text.clone());
    assert_eq!(bench.journal().0, JournalState::Open);
    assert_eq!(bench.lun_state(), "online");
    let aside = bench.file("/c/state/journals/default.json.aside");
    assert_eq!(aside, Some(text));
    assert!(bench.file(JOURNAL_RECORD).is_some());
}

#[test]
fn no_lun_is_made_or_purged_while_another_versions_intent_log_stands_there() {
    let old = br#"{"schema":2,"luns":[]}"#;
    for text in [
        of_newer_version("intent_log"),
        document::write("intent_log", old),
    ] {
        let mut bench = Bench::new(config);
        let removed = Edit::Remove(bench.on(Section::Lun, "l"));
        bench.edit(removed).unwrap();
        bench.starts_with(INTENT_LOG, text.clone());
        let notices = bench.served().1.notices().join("\n");
        assert!(notices.contains(INTENT_LOG), "{notices}");
        assert_eq!(bench.creates("new"), Err(Code::StateNotSaved));
        let purge = Edit::Purge("l".to_owned());
        assert_eq!(bench.edit(purge.clone()), Err(Code::StateNotSaved));
        // One that there is goes on.
        assert_eq!(bench.edit(Edit::Restore("l".to_owned())), Ok(()));
        assert_eq!(bench.lun_state(), "online");
        assert_eq!(bench.file(INTENT_LOG), Some(text), "it was written over");
        bench.starts_with(
            INTENT_LOG,
            document::write("intent_log", br#"{"schema":1,"luns":[]}"#),
        );
        assert_eq!(bench.creates("new"), Ok(()));
        assert_eq!(bench.served().1.notices(), [""; 0]);
    }
}

#[test]
fn a_damaged_intent_log_is_kept_aside_and_changes_go_on() {
    let mut bench = Bench::new(config);
    bench.starts_with(INTENT_LOG, b"{\"schema\":1,\"lu".to_vec());
    assert_eq!(bench.creates("new"), Ok(()));
    let aside = bench.file("/c/state/intent_log.json.aside");
    assert_eq!(aside, Some(b"{\"schema\":1,\"lu".to_vec()));
}

#[test]
fn a_record_that_the_disk_does_not_give_is_not_done_without() {
    let bench = Bench::new(config);
    let core = bench.machine.core(0);
    bench
        .world
        .set_faults(FaultPlan::none().with(Fault::FileReadError, 1_000_000));
    let read = bench.run(async move {
        let (file, files) = (Path::new("/c/pool/saved.json"), core.files());
        let matters = Matters {
            lost: "it is lost",
            give_up: "give it up",
        };
        let parse = |text: &[u8]| document::parse::<serde_json::Value>("saved", text);
        record::read(&*files, (file, 1 << 20), parse, matters).await
    });
    let why = read.unwrap_err();
    assert_eq!(why.kind, OpenErrorKind::Other);
    assert!(why.next_step.ends_with("; or give it up"), "{why}");
    bench.world.set_faults(FaultPlan::none());
    assert!(bench.file("/c/pool/saved.json").is_some());
}
