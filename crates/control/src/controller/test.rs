//! The controller over a simulated disk and an engine that only remembers.

use super::*;
use crate::config;
use crate::engine::{
    CoreFacts, DigestFacts, LoginFacts, LunFacts, LunState, MoveFacts, PoolFacts, PortalFacts,
    RefusalFacts, SessionFacts,
};
use crate::journal::{JournalFacts, JournalOutcome, JournalRequest};
use crate::latency::Latency;
use crate::objects::{CacheMode, GrantSpec, HostSpec, LunSpec, TargetSpec};
use crate::plan::LunChanges;
use crate::scrub::{ScrubFacts, ScrubWish};
use crate::size::Size;
use crate::view::Health;
use env::sim::{Node, World, WorldConfig};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;

/// Keeps a change in its `prepare`, from another thread.
#[derive(Default)]
pub(crate) struct Hold {
    /// It is to stay there.
    pub(crate) on: AtomicBool,
    /// It is there.
    pub(crate) holds: AtomicBool,
}

/// An engine that keeps no blocks: it remembers what it was asked for.
#[derive(Default)]
pub(crate) struct FakeEngine {
    pub(crate) open: RefCell<BTreeSet<String>>,
    pub(crate) offline: RefCell<BTreeSet<String>>,
    pub(crate) published: RefCell<Rc<Objects>>,
    pub(crate) sessions: RefCell<Vec<SessionFacts>>,
    pub(crate) refuse_prepare: Cell<bool>,
    pub(crate) hang_adopt: Cell<bool>,
    pub(crate) hold: Arc<Hold>,
    pub(crate) loses_journal: Cell<bool>,
    pub(crate) log: RefCell<Vec<String>>,
}

impl FakeEngine {
    fn note(&self, text: String) {
        self.log.borrow_mut().push(text);
    }
}

fn done<T: 'static>(value: T) -> LocalFuture<T> {
    Box::pin(std::future::ready(value))
}

impl Engine for FakeEngine {
    fn start(&self, objects: Rc<Objects>) -> LocalFuture<Result<(), Problem>> {
        self.note("start".to_owned());
        self.open
            .borrow_mut()
            .extend(objects.luns.values().map(|lun| lun.naa.clone()));
        *self.published.borrow_mut() = objects;
        done(Ok(()))
    }

    fn allows(&self, _: Rc<LunChanges>) -> LocalFuture<Result<(), Problem>> {
        done(Ok(()))
    }

    fn prepare(&self, changes: Rc<LunChanges>) -> LocalFuture<Result<(), Problem>> {
        if self.refuse_prepare.get() {
            return done(Err(Problem::new(Code::BackingFailed, "no")));
        }
        self.note(format!("prepare {}", changes.created.len()));
        let opened = changes.created.iter().chain(&changes.restored);
        self.open
            .borrow_mut()
            .extend(opened.map(|lun| lun.naa.clone()));
        let hold = Arc::clone(&self.hold);
        Box::pin(std::future::poll_fn(move |context| {
            let on = hold.on.load(SeqCst);
            hold.holds.store(on, SeqCst);
            if on {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(Ok(()))
        }))
    }

    fn abandon(&self, changes: Rc<LunChanges>) -> LocalFuture<()> {
        self.note("abandon".to_owned());
        for lun in changes.created.iter().chain(&changes.restored) {
            self.open.borrow_mut().remove(&lun.naa);
        }
        done(())
    }

    fn adopt(
        &self,
        objects: Rc<Objects>,
        changes: Rc<LunChanges>,
    ) -> LocalFuture<Result<(), Problem>> {
        self.note("adopt".to_owned());
        if self.hang_adopt.get() {
            return Box::pin(std::future::pending());
        }
        for lun in &changes.retired {
            self.open.borrow_mut().remove(&lun.naa);
        }
        *self.published.borrow_mut() = objects;
        done(Ok(()))
    }

    fn stop(&self) -> LocalFuture<()> {
        self.note("stop".to_owned());
        done(())
    }

    fn luns(&self) -> LocalFuture<BTreeMap<String, LunFacts>> {
        let facts = |naa: &String| {
            let gone = self.offline.borrow().contains(naa);
            let reason = LunState::Offline("device missing".to_owned());
            let facts = LunFacts {
                state: if gone { reason } else { LunState::Online },
                ops: BTreeMap::new(),
                in_flight: 0,
                bytes_in_flight: 0,
                statuses: BTreeMap::new(),
                allocated: Some(4096),
                limited: None,
                shared: None,
                cached: None,
                checksums: None,
                scrub: None,
            };
            (naa.clone(), facts)
        };
        done(self.open.borrow().iter().map(facts).collect())
    }

    fn scrub(&self, naa: &str, wish: ScrubWish) -> LocalFuture<Result<ScrubFacts, Problem>> {
        self.note(format!("scrub {naa} {wish:?}"));
        done(Err(Problem::new(Code::LunOffline, "no")))
    }

    fn sessions(&self) -> LocalFuture<Vec<SessionFacts>> {
        done(self.sessions.borrow().clone())
    }

    fn drop_session(&self, id: u64) -> LocalFuture<bool> {
        let mut sessions = self.sessions.borrow_mut();
        let before = sessions.len();
        sessions.retain(|session| session.id != id);
        done(sessions.len() < before)
    }

    fn refusals(&self) -> LocalFuture<Vec<RefusalFacts>> {
        done(Vec::new())
    }

    fn portals(&self) -> LocalFuture<Vec<PortalFacts>> {
        done(vec![PortalFacts {
            group: "default".to_owned(),
            tag: 1,
            address: "127.0.0.1:3260".to_owned(),
            interface: None,
            problem: None,
        }])
    }

    fn cores(&self) -> LocalFuture<Vec<CoreFacts>> {
        done(vec![CoreFacts {
            core: 1,
            busy_us: 1_250_000,
            load_permille: 375,
            connections: 2,
            disk_engine: "threads".to_owned(),
            registered_files: 7,
            registered_bytes: 2 << 20,
        }])
    }

    fn digest_errors(&self) -> DigestFacts {
        DigestFacts {
            headers: 1,
            data: 2,
        }
    }

    fn moves(&self) -> MoveFacts {
        MoveFacts {
            moved: 4,
            given_up: 1,
        }
    }

    fn journals(&self) -> LocalFuture<BTreeMap<String, JournalFacts>> {
        let (path, problem) = ("/journal".to_owned(), "it is away".to_owned());
        let facts = JournalFacts::missing(path, problem);
        let pools = [("default".to_owned(), facts)];
        done(
            pools
                .into_iter()
                .filter(|_| self.loses_journal.get())
                .collect(),
        )
    }

    fn journal(
        &self,
        pool: &str,
        request: JournalRequest,
    ) -> LocalFuture<Result<JournalOutcome, Problem>> {
        self.note(format!("journal {pool} {request:?}"));
        done(Err(Problem::new(Code::JournalServes, "no")))
    }

    fn pools(&self) -> LocalFuture<Vec<PoolFacts>> {
        done(vec![PoolFacts {
            name: "default".to_owned(),
            path: "/pool".to_owned(),
            total: 100 << 30,
            available: 50 << 30,
            used: 50 << 30,
            state: crate::engine::PoolState::Ok,
            provisioned_bytes: 0,
            outstanding_bytes: 0,
            shares_with: Vec::new(),
            overcommitted_bytes: 0,
            full_in_seconds: None,
            age_seconds: None,
            problem: None,
            layout: "directory".to_owned(),
            event: None,
            members: Vec::new(),
            notes: Vec::new(),
            journal: None,
        }])
    }

    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    fn lun_notices(&self, _: &str) -> Vec<String> {
        vec!["a notice".to_owned()]
    }

    fn logins(&self) -> Vec<LoginFacts> {
        let told = |result, code, count| LoginFacts {
            result,
            code,
            count,
        };
        vec![
            told("accepted", None, 3),
            told("refused", Some(Code::LoginNotGranted), 1),
        ]
    }
}

pub(crate) fn session(id: u64) -> SessionFacts {
    SessionFacts {
        id,
        host: "h".to_owned(),
        initiator: "iqn.1998-01.com.example:h".to_owned(),
        target: Some("t".to_owned()),
        from: "10.0.0.9:1234".to_owned(),
        portal: "127.0.0.1:3260".to_owned(),
        core: 0,
        load_permille: 125,
        pinned: false,
        since: "2026-01-01T00:00:00.000Z".to_owned(),
        bytes_in: 10,
        bytes_out: 20,
        pdus_received: 12,
        receives: 4,
        receives_waited: 3,
        in_flight: 0,
        bytes_in_flight: 0,
        bytes_in_flight_max: None,
        commands: 0,
        latency: Latency::default(),
        chap_user: None,
        mutual_chap: false,
        luns: Vec::new(),
        keys: BTreeMap::new(),
    }
}

pub(crate) fn config() -> Config {
    let text = "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
                listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\n\
                [api]\nlisten = [\"unix:api.sock\"]\n";
    config::parse(Path::new("/c/node.toml"), text).unwrap()
}

pub(crate) fn lab() -> ObjectSet {
    ObjectSet {
        lun: vec![LunSpec::new("l", Size::from_bytes(1 << 30).unwrap())],
        target: vec![TargetSpec::new("t")],
        host: vec![HostSpec {
            name: "h".to_owned(),
            iqn: vec!["iqn.1998-01.com.example:h".to_owned()],
            chap: None,
            bytes_in_flight_max: None,
        }],
        grant: vec![GrantSpec {
            host: "h".to_owned(),
            lun: "l".to_owned(),
            target: None,
            lun_id: None,
            read_only: false,
        }],
    }
}

struct Bench {
    world: World,
    node: Node,
    engine: Rc<FakeEngine>,
    controller: Rc<Controller>,
}

impl Bench {
    fn new() -> Self {
        let world = World::new(1, WorldConfig::default());
        let node = world.node("a");
        Self::on(world, node)
    }

    fn on(world: World, node: Node) -> Self {
        let engine = Rc::new(FakeEngine::default());
        let start = Controller::start(node.core(0), config(), Rc::<FakeEngine>::clone(&engine));
        let controller = world
            .block_on(&node, Duration::from_secs(60), start)
            .unwrap()
            .unwrap();
        Self {
            world,
            node,
            engine,
            controller,
        }
    }

    fn edit(&self, edit: Edit, how: How) -> Result<Outcome, Problem> {
        let controller = Rc::clone(&self.controller);
        let run = async move { controller.edit(&edit, how).await };
        self.world
            .block_on(&self.node, Duration::from_secs(60), run)
            .unwrap()
    }

    fn apply(&self, set: ObjectSet) -> Result<Outcome, Problem> {
        self.edit(Edit::Apply { set, prune: false }, How::default())
    }

    fn ask<T: 'static>(&self, what: impl Future<Output = T> + 'static) -> T {
        self.world
            .block_on(&self.node, Duration::from_secs(60), what)
            .unwrap()
    }

    fn reboot(self) -> Self {
        let Self {
            world,
            node,
            engine,
            controller,
        } = self;
        drop((engine, controller));
        node.crash();
        node.restart();
        Self::on(world, node)
    }
}

#[test]
fn a_change_is_prepared_stored_and_adopted_and_survives_a_power_cut() {
    let bench = Bench::new();
    let outcome = bench.apply(lab()).unwrap();
    assert!(outcome.changed);
    assert_eq!((outcome.generation, outcome.actions.len()), (2, 4));
    assert_eq!(*bench.engine.log.borrow(), ["start", "prepare 1", "adopt"]);
    assert_eq!(*bench.engine.published.borrow(), bench.controller.objects());
    let again = bench.apply(lab()).unwrap();
    assert_eq!(
        (again.changed, again.generation, again.actions.len()),
        (false, 2, 0)
    );
    let objects = bench.controller.objects();
    let bench = bench.reboot();
    assert_eq!(bench.controller.objects(), objects);
    assert_eq!(*bench.engine.published.borrow(), objects);
}

#[test]
fn a_dry_run_tells_and_does_nothing() {
    let bench = Bench::new();
    let how = How {
        dry_run: true,
        force: false,
    };
    let edit = Edit::Apply {
        set: lab(),
        prune: false,
    };
    let outcome = bench.edit(edit, how).unwrap();
    assert_eq!((outcome.changed, outcome.actions.len()), (false, 4));
    assert_eq!(*bench.engine.log.borrow(), ["start"]);
    assert!(bench.controller.objects().luns.is_empty());
}

#[test]
fn a_failed_preparation_or_save_changes_nothing_at_all() {
    let bench = Bench::new();
    bench.engine.refuse_prepare.set(true);
    assert_eq!(bench.apply(lab()).unwrap_err().code, Code::BackingFailed);
    bench.engine.refuse_prepare.set(false);
    bench.node.disk().set_capacity(1);
    assert_eq!(bench.apply(lab()).unwrap_err().code, Code::StateNotSaved);
    assert_eq!(
        *bench.engine.log.borrow(),
        ["start", "prepare 1", "abandon"]
    );
    assert!(bench.engine.open.borrow().is_empty());
    assert!(bench.controller.objects().luns.is_empty());
    bench.node.disk().set_capacity(1 << 30);
    bench.apply(lab()).unwrap();
}

#[test]
fn what_disturbs_a_session_needs_force() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    bench.engine.sessions.borrow_mut().push(session(4));
    let prune = || Edit::Apply {
        set: ObjectSet::default(),
        prune: true,
    };
    let refused = bench.edit(prune(), How::default()).unwrap_err();
    assert_eq!((refused.code, refused.hits.len()), (Code::InUse, 1));
    let told = bench
        .edit(
            prune(),
            How {
                dry_run: true,
                force: false,
            },
        )
        .unwrap();
    assert!(told.refusal.unwrap().contains("session 4"));
    let forced = bench
        .edit(
            prune(),
            How {
                force: true,
                dry_run: false,
            },
        )
        .unwrap();
    assert!(forced.changed);
    assert_eq!(bench.controller.objects().removed.len(), 1);
}

#[test]
fn a_missing_backing_shows_as_offline_and_keeps_its_place() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    let naa = bench.controller.objects().luns["l"].naa.clone();
    bench.engine.offline.borrow_mut().insert(naa);
    let controller = Rc::clone(&bench.controller);
    let (status, luns) =
        bench.ask(async move { (controller.status().await, controller.luns(false).await) });
    assert_eq!(status.health, Health::Degraded);
    assert_eq!(status.problems, ["LUN l is offline: device missing"]);
    assert_eq!(status.counts.luns_offline, 1);
    assert_eq!(luns[0].state, "offline");
    assert_eq!(luns[0].grants, ["h:t:l"]);
}

#[test]
fn a_volatile_lun_is_told_by_default_or_as_asked_for_and_the_two_are_not_mixed_up() {
    let bench = Bench::new();
    let mut set = lab();
    let mut asked = LunSpec::new("asked", Size::from_bytes(1 << 30).unwrap());
    asked.cache = Some(CacheMode::Volatile);
    let mut through = LunSpec::new("through", Size::from_bytes(1 << 30).unwrap());
    through.cache = Some(CacheMode::WriteThrough);
    set.lun.extend([asked, through]);
    let confirmed = How {
        dry_run: false,
        force: true,
    };
    bench
        .edit(Edit::Apply { set, prune: false }, confirmed)
        .unwrap();
    let controller = Rc::clone(&bench.controller);
    let notes = bench.ask(async move { controller.status().await.notes });
    let begin = |note: &String| note.split(':').next().unwrap_or_default().to_owned();
    let told: Vec<String> = notes.iter().map(begin).collect();
    assert_eq!(
        told,
        [
            "cache = \"volatile\" by default (there was no journal) in LUN l",
            "cache = \"volatile\" as asked for in LUN asked",
        ]
    );
}

#[test]
fn damaged_state_exports_nothing_and_takes_no_change() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    let path = Path::new("/c/state/objects-0000000002.json");
    assert!(bench.node.disk().rot(path, 200));
    let bench = bench.reboot();
    assert!(
        bench.engine.log.borrow().is_empty(),
        "the engine does not start"
    );
    assert_eq!(bench.apply(lab()).unwrap_err().code, Code::StateDamaged);
    assert_eq!(
        bench.controller.export().unwrap_err().code,
        Code::StateDamaged
    );
    let controller = Rc::clone(&bench.controller);
    let status = bench.ask(async move { controller.status().await });
    assert_eq!(status.health, Health::Damaged);
    assert!(status.problems[0].contains("objects-0000000002.json"));
}

#[test]
fn metrics_have_the_promised_names_and_escape_labels() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    bench.engine.sessions.borrow_mut().push(session(4));
    let controller = Rc::clone(&bench.controller);
    let text = bench.ask(async move { controller.metrics().await });
    for line in [
        "causeway_config_generation 2",
        "causeway_lun_online{lun=\"l\"} 1",
        "causeway_lun_inflight{lun=\"l\"} 0",
        "causeway_lun_allocated_bytes{lun=\"l\"} 4096",
        "causeway_login_total{result=\"accepted\",code=\"\"} 3",
        "causeway_session_bytes_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\",direction=\"in\"} 10",
        "causeway_session_pdus_received_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\"} 12",
        "causeway_session_receives_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\",waited=\"no\"} 1",
        "causeway_session_receives_total{target=\"t\",host=\"h\",portal=\"127.0.0.1:3260\",waited=\"yes\"} 3",
        "causeway_host_sessions{host=\"h\"} 1",
        "causeway_login_total{result=\"refused\",code=\"CWY2003\"} 1",
        "causeway_core_busy_seconds_total{core=\"1\"} 1.25",
        "causeway_core_load_ratio{core=\"1\"} 0.375",
        "causeway_core_connections{core=\"1\"} 2",
        "causeway_core_disk_engine{core=\"1\",engine=\"threads\"} 1",
        "causeway_core_registered_files{core=\"1\"} 7",
        "causeway_core_registered_bytes{core=\"1\"} 2097152",
        "causeway_session_moves_total{result=\"moved\"} 4",
        "causeway_session_moves_total{result=\"given_up\"} 1",
        "causeway_digest_errors_total{part=\"header\"} 1",
        "causeway_digest_errors_total{part=\"data\"} 2",
        "causeway_pool_used_bytes{pool=\"default\"} 53687091200",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn a_journal_that_is_missing_is_named_in_status_and_metrics() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    bench.engine.loses_journal.set(true);
    let controller = Rc::clone(&bench.controller);
    let status = bench.ask(async move { controller.status().await });
    assert_eq!(status.health, Health::Degraded);
    let told = "the journal of pool default cannot be used: it is away";
    assert!(
        status.problems.iter().any(|it| it.starts_with(told)),
        "{status:?}"
    );
    let controller = Rc::clone(&bench.controller);
    let text = bench.ask(async move { controller.metrics().await });
    let line = "causeway_journal_state{pool=\"default\",state=\"missing\"} 1";
    assert!(text.contains(line), "{text}");
    assert!(
        !text.contains("causeway_journal_size_bytes{"),
        "nothing is known of it"
    );
}

/// A task that panics is dropped where it stands, as here.
#[test]
fn after_a_change_that_was_cut_off_no_other_is_taken_until_a_restart() {
    let bench = Bench::new();
    bench.apply(lab()).unwrap();
    bench.engine.hang_adopt.set(true);
    let controller = Rc::clone(&bench.controller);
    let resize = |gib: u64| {
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(gib << 30).unwrap();
        Edit::Apply { set, prune: false }
    };
    let wanted = resize(2);
    let core = bench.node.core(0);
    let cut = async move {
        let mut edit = Box::pin(controller.edit(&wanted, How::default()));
        let mut end = core.sleep_until(core.now().after(Duration::from_secs(1)));
        let ended = std::future::poll_fn(|cx| {
            assert!(edit.as_mut().poll(cx).is_pending(), "it hangs");
            end.as_mut().poll(cx)
        });
        ended.await;
    };
    bench.ask(cut);
    bench.engine.hang_adopt.set(false);
    let refused = bench.edit(resize(3), How::default()).unwrap_err();
    assert_eq!(refused.code, Code::Internal);
    assert!(refused.hint.starts_with("restart the daemon"), "{refused}");
    let controller = Rc::clone(&bench.controller);
    let status = bench.ask(async move { controller.status().await });
    assert_eq!(status.health, Health::Degraded);
    assert!(
        status.problems[0].contains("cut off"),
        "{:?}",
        status.problems
    );
    let bench = bench.reboot();
    assert_eq!(
        bench.controller.objects().luns["l"].size.bytes(),
        2 << 30,
        "what was stored"
    );
    bench.edit(resize(3), How::default()).unwrap();
}
