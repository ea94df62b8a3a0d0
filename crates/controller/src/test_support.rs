//! An engine that only remembers, for tests of the controller and of those above it.

use engine::{DrainedLun, Engine, MirrorAsked, MirrorView};
use env::LocalFuture;
use manifest::activity::{LunActivity, OpActivity, SessionActivity};
use manifest::code::Code;
use manifest::config::{self, Config};
use manifest::disks::{
    BayState, BayView, DiskFacts, DiskFinding, DiskReport, DiskVerdict, DiskView, SmartState,
};
use manifest::facts::{
    CoreFacts, DigestFacts, LoginFacts, LunCondition, LunFacts, LunState, MoveFacts, NicAddress,
    NodeNic, PoolFacts, PortalFacts, RefusalFacts, SessionFacts, SessionNic,
};
use manifest::journal::{JournalFacts, JournalLoss, JournalOutcome, JournalRequest};
use manifest::latency::Latency;
use manifest::objects::{GrantSpec, HostSpec, LayerFacts, LunSpec, ObjectSet, Objects, TargetSpec};
use manifest::plan::LunChanges;
use manifest::problem::Problem;
use manifest::pulse::{Asked, Ended, LunFigures, LunPulse, OpFigures, Pulse};
use manifest::scrub::{ScrubFacts, ScrubOp, ScrubState};
use manifest::size::Size;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;

/// Keeps a change in its `prepare`, from another thread.
#[derive(Default)]
pub struct Hold {
    /// It is to stay there.
    pub on: AtomicBool,
    /// A change has come as far as that, and waits.
    pub holds: AtomicBool,
    /// It cannot be prepared after all, once it goes on.
    pub fails: AtomicBool,
}

/// An engine that keeps no blocks: it remembers what it was asked for.
#[derive(Default)]
pub struct FakeEngine {
    /// NAA identifiers of the LUNs that are open.
    pub open: RefCell<BTreeSet<String>>,
    /// NAA identifiers of those that are to be offline.
    pub offline: RefCell<BTreeSet<String>>,
    /// The objects that it was given last.
    pub published: RefCell<Rc<Objects>>,
    /// What it answers when it is asked for sessions.
    pub sessions: Rc<RefCell<Vec<SessionFacts>>>,
    /// Changes cannot be prepared.
    pub refuse_prepare: Cell<bool>,
    /// `adopt` never answers.
    pub hang_adopt: Cell<bool>,
    /// Keeps changes in their `prepare`.
    pub hold: Arc<Hold>,
    /// The journal of its pool is missing.
    pub loses_journal: Cell<bool>,
    /// The scrubs of LUNs that had one, by NAA identifier.
    pub scrubs: RefCell<BTreeMap<String, ScrubFacts>>,
    /// What it was asked for.
    pub log: RefCell<Vec<String>>,
}

impl FakeEngine {
    fn note(&self, text: String) {
        self.log.borrow_mut().push(text);
    }
}

fn done<T: 'static>(value: T) -> LocalFuture<T> {
    Box::pin(std::future::ready(value))
}

fn refused() -> Result<(), Problem> {
    Err(Problem::new(Code::BackingFailed, "no"))
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
            return done(refused());
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
            let fails = hold.fails.load(SeqCst);
            Poll::Ready(if fails { refused() } else { Ok(()) })
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

    fn configure(&self, _: Rc<Config>) -> LocalFuture<()> {
        self.note("configure".to_owned());
        done(())
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
                layers: LayerFacts::default(),
                bad: None,
                scrub: self.scrubs.borrow().get(naa).cloned(),
                stalled: None,
            };
            (naa.clone(), facts)
        };
        done(self.open.borrow().iter().map(facts).collect())
    }

    fn luns_of(&self, only: BTreeSet<String>) -> LocalFuture<BTreeMap<String, LunFacts>> {
        let luns = self.luns();
        Box::pin(async move {
            let mut luns = luns.await;
            luns.retain(|naa, _| only.contains(naa));
            luns
        })
    }

    fn conditions(&self) -> BTreeMap<String, LunCondition> {
        let of = |naa: &String| {
            let gone = self.offline.borrow().contains(naa);
            let reason = LunState::Offline("device missing".to_owned());
            let condition = LunCondition {
                state: if gone { reason } else { LunState::Online },
                checksums: None,
                scrub: self.scrubs.borrow().get(naa).cloned(),
                copies: None,
            };
            (naa.clone(), condition)
        };
        self.open.borrow().iter().map(of).collect()
    }

    fn ended(&self, _: u64) -> Ended {
        Ended::default()
    }

    fn pulse(&self, asked: Asked) -> LocalFuture<Pulse> {
        let (objects, luns) = (Rc::clone(&self.published.borrow()), self.luns());
        let sessions = self.sessions.borrow().clone();
        Box::pin(async move {
            let facts = luns.await;
            let known = objects.luns.iter().filter_map(|(name, lun)| {
                let facts = facts.get(&lun.naa)?;
                Some((
                    (name, lun.naa.as_str()),
                    facts,
                    LunActivity::of(name, facts),
                ))
            });
            let mut pulse = Pulse {
                sessions: sessions.into_iter().map(SessionActivity::of).collect(),
                ..Pulse::default()
            };
            for ((name, naa), facts, document) in known {
                if asked.figures {
                    pulse.luns.push(LunPulse {
                        name: Arc::from(name.as_str()),
                        naa: Arc::from(naa),
                        figures: figures(&document),
                        state: facts.state.clone(),
                        scrub: facts.scrub.clone().map(Box::new),
                        cached: facts.layers.cached,
                        stalled: facts.stalled,
                        mirror: facts.layers.mirror.clone().map(Box::new),
                    });
                }
                if asked.documents.has(name) {
                    pulse.documents.push(Arc::new(document));
                }
            }
            pulse
        })
    }

    fn scrub(&self, naa: &str, op: ScrubOp) -> LocalFuture<Result<ScrubFacts, Problem>> {
        self.note(format!("scrub {naa} {op:?}"));
        if self.offline.borrow().contains(naa) {
            return done(Err(Problem::new(Code::LunOffline, "no")));
        }
        let mut scrubs = self.scrubs.borrow_mut();
        let begun = || ScrubFacts::begun("2026-01-01T00:00:00.000Z".to_owned(), 1 << 30);
        let facts = scrubs.entry(naa.to_owned()).or_insert_with(begun);
        facts.state = match op {
            ScrubOp::Start => ScrubState::Running,
            ScrubOp::Stop => ScrubState::Stopped,
        };
        done(Ok(facts.clone()))
    }

    fn scrubs(&self) -> BTreeMap<String, ScrubFacts> {
        self.scrubs.borrow().clone()
    }

    fn sessions(&self) -> LocalFuture<Vec<SessionFacts>> {
        done(self.sessions.borrow().clone())
    }

    fn drop_session(&self, id: u64) -> LocalFuture<bool> {
        let sessions = Rc::clone(&self.sessions);
        Box::pin(async move {
            // As on other cores: who asks meanwhile still sees it.
            env::yield_now().await;
            let mut sessions = sessions.borrow_mut();
            let before = sessions.len();
            sessions.retain(|session| session.id != id);
            sessions.len() < before
        })
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

    fn nics(&self) -> LocalFuture<Vec<NodeNic>> {
        done(vec![NodeNic {
            name: "eth0".to_owned(),
            card: Some("0000:03:00".to_owned()),
            bits_per_second: Some(10_000_000_000),
            links: 1,
            mtu: 9000,
            carrier: true,
            addresses: vec![NicAddress {
                address: "10.1.0.1".to_owned(),
                network: "10.1.0.0/24".to_owned(),
            }],
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
        if !request.dry_run {
            return done(Err(Problem::new(Code::JournalServes, "no")));
        }
        let path = "/journal".to_owned();
        done(Ok(JournalOutcome {
            pool: pool.to_owned(),
            changed: false,
            losses: vec![JournalLoss {
                lun: "l".to_owned(),
                changes: Some(3),
                bytes: Some(4096),
            }],
            unknown: Some("a page of it cannot be read".to_owned()),
            journal: Some(JournalFacts::missing(path, "it is away".to_owned())),
        }))
    }

    /// What the node is called says how it ends.
    fn mirror(&self, asked: MirrorAsked) -> LocalFuture<Result<MirrorView, Problem>> {
        let node = asked.request.node.unwrap_or_default();
        let code = match &*node {
            "meanwhile" => Code::ChangedMeanwhile,
            "last" => Code::MirrorRefused,
            "away" => Code::ClusterArbiter,
            "later" => Code::PartlyDone,
            _ => {
                self.note(format!("mirror {} {node}", asked.name));
                return done(Ok(MirrorView {
                    name: asked.name,
                    naa: asked.lun.naa,
                    changed: true,
                    copies: vec![node],
                    notices: Vec::new(),
                    loses: None,
                }));
            }
        };
        done(Err(Problem::new(code, node)))
    }

    fn drain(&self, dry_run: bool) -> LocalFuture<Vec<DrainedLun>> {
        self.note(format!("drain {dry_run}"));
        let of = |name: &str, to: Option<&str>, stays: Option<&str>| DrainedLun {
            name: name.to_owned(),
            naa: format!("naa.{name}"),
            to: to.map(str::to_owned),
            stays: stays.map(str::to_owned),
        };
        let stays = "no other node has all of it";
        done(vec![
            of("l", Some("san-b"), None),
            of("m", None, Some(stays)),
        ])
    }

    fn pools(&self) -> LocalFuture<Vec<PoolFacts>> {
        done(vec![PoolFacts {
            name: "default".to_owned(),
            path: "/pool".to_owned(),
            total: 100 << 30,
            available: 50 << 30,
            used: 50 << 30,
            state: manifest::facts::PoolState::Ok,
            layout: "directory".to_owned(),
            ..PoolFacts::default()
        }])
    }

    fn notices(&self) -> Vec<String> {
        Vec::new()
    }

    fn lun_notices(&self, _: &str) -> Vec<String> {
        vec!["a notice".to_owned()]
    }

    fn logins(&self) -> Vec<LoginFacts> {
        let reported = |result, code, count| LoginFacts {
            result,
            code,
            count,
        };
        vec![
            reported("accepted", None, 3),
            reported("refused", Some(Code::LoginNotGranted), 1),
        ]
    }
}

/// A session of this number.
#[must_use]
pub fn session(id: u64) -> SessionFacts {
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
        luns: vec![manifest::facts::SessionLun {
            lun_id: 0,
            lun: "l".to_owned(),
            read_only: false,
        }],
        nic: Some(SessionNic {
            name: "eth2".to_owned(),
            card: Some("0000:05:00".to_owned()),
            fabric: Some("left".to_owned()),
            bits_per_second: Some(10_000_000_000),
            links: Some(1),
            mtu: Some(9000),
            planned: true,
        }),
        keys: BTreeMap::new(),
    }
}

/// A disk that is well and reports everything, one that is missing, and the bays of both.
#[must_use]
pub fn disk_report() -> DiskReport {
    let all = Some(1);
    let facts = DiskFacts {
        wear_percent: all,
        spare_percent: all,
        reallocated_sectors: all,
        pending_sectors: all,
        offline_uncorrectable_sectors: all,
        uncorrected_errors: all,
        media_errors: all,
        grown_defects: all,
        crc_errors: all,
        temperature_celsius: Some(31),
        power_on_hours: all,
        ..DiskFacts::default()
    };
    let disk = |id: &str, health: DiskVerdict| DiskView {
        id: id.to_owned(),
        health,
        bay: Some(id.to_owned()),
        used_by: vec!["pool default".to_owned()],
        ..DiskView::default()
    };
    let finding = DiskFinding {
        verdict: DiskVerdict::Failing,
        cause: "it is gone".to_owned(),
        next_step: "push it in again".to_owned(),
    };
    let bay = |slot: &str, state: BayState| BayView {
        name: slot.to_owned(),
        slot: slot.to_owned(),
        enclosure: "5003".to_owned(),
        state,
        ..BayView::default()
    };
    DiskReport {
        at: Some("2026-11-26T00:00:00.000Z".to_owned()),
        disks: vec![
            DiskView {
                names: vec!["sda".to_owned()],
                smart: SmartState::Read,
                facts,
                ..disk("S1", DiskVerdict::Well)
            },
            DiskView {
                smart: SmartState::Missing,
                findings: vec![finding],
                missing_since: Some("2026-11-25T00:00:00.000Z".to_owned()),
                ..disk("S2", DiskVerdict::Failing)
            },
        ],
        bays: vec![bay("S1", BayState::Disk), bay("S2", BayState::Empty)],
        ..DiskReport::default()
    }
}

/// A node with a portal group and a pool.
#[must_use]
pub fn config() -> Config {
    let text = "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
                listen = [ { ip = \"127.0.0.1\" } ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\n\
                [api]\nlisten = [\"unix:api.sock\"]\n";
    config::parse(Path::new("/c/node.toml"), text).expect("a right node.toml")
}

/// One LUN, granted to one host.
#[must_use]
pub fn lab() -> ObjectSet {
    ObjectSet {
        lun: vec![LunSpec::new(
            "l",
            Size::from_bytes(1 << 30).expect("a size"),
        )],
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

/// The figures of a document.
fn figures(document: &LunActivity) -> LunFigures {
    let op = |op: &OpActivity| OpFigures {
        ops: op.ops,
        bytes: op.bytes,
        backend_us: op.latency.backend.us_sum,
        journal_us: op.latency.journal.us_sum,
        commands: op.latency.total.count,
        network_us: op.latency.network.us_sum,
        queue_us: op.latency.queue.us_sum,
        took: None,
    };
    LunFigures {
        in_flight: document.in_flight,
        read: op(&document.read),
        write: op(&document.write),
        other_ops: document.other_ops,
    }
}
