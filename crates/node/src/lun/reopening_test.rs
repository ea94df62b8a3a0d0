//! LUNs of which a sync found no space.

use crate::data_plane::Node;
use crate::data_plane::test::{apply, begin_with, edit, wait};
use crate::pool::members::test as members;
use controller::Controller;
use controller::test_support::{config as plain, lab};
use env::Answer;
use env::sim::{Fault, FaultPlan, World, WorldConfig};
use logical_unit::{
    Arrival, Attribute, InitiatorPort, Nexus, NexusPort, Outcome, Peers, PortFacts, Request,
    Response, UnitPorts,
};
use manifest::config::Config;
use manifest::size::Size;
use scsi::{AdditionalSense, Sense, Status};
use std::path::Path;
use std::rc::{Rc, Weak};
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, IoResult, Lane, Op, Origin};

const LIMIT: Duration = Duration::from_secs(600);
/// Time for a try, and for what it does.
const SOON: Duration = Duration::from_secs(25);

struct Bench {
    world: World,
    node: env::sim::Node,
    controller: Rc<Controller>,
    engine: Node,
}

impl Bench {
    fn new(config: fn() -> Config) -> Self {
        let faults = FaultPlan::none();
        let quiet = WorldConfig {
            faults,
            ..WorldConfig::default()
        };
        let world = World::new(41, quiet);
        let node = world.node("a");
        members::make_members(&world, &node);
        let (controller, engine) = begin_with(&world, &node, config);
        let mut set = lab();
        set.lun[0].size = Size::from_bytes(16 << 20).unwrap();
        edit(&world, &node, &controller, apply(set)).unwrap();
        Self {
            world,
            node,
            controller,
            engine,
        }
    }

    /// A lane as a host has one now.
    fn lane(&self) -> Rc<dyn Lane> {
        let units = self.engine.0.units.borrow();
        let volume = units.values().next().expect("the LUN").volume().unwrap();
        drop(units);
        let core = self.node.core(0);
        let opened = async move { volume.open(&core).await };
        self.world
            .block_on(&self.node, LIMIT, opened)
            .unwrap()
            .unwrap()
    }

    fn ask(&self, lane: &Rc<dyn Lane>, op: Op) -> IoResult {
        let asked = lane.submit(Io::new(op, Origin::default()));
        self.world.block_on(&self.node, LIMIT, asked).unwrap()
    }

    fn lun(&self) -> (String, String) {
        let asked = Rc::clone(&self.controller);
        let luns = async move { asked.luns(false).await };
        let lun = self.world.block_on(&self.node, LIMIT, luns).unwrap();
        let lun = lun.into_iter().next().expect("the LUN");
        (lun.state, lun.reason.unwrap_or_default())
    }

    /// A host's nexus, as it is after its first unit attention.
    fn nexus(&self) -> Rc<Nexus> {
        let id = self
            .engine
            .0
            .units
            .borrow()
            .values()
            .next()
            .expect("the LUN")
            .id;
        let own = PortFacts {
            relative_port: 1,
            target_name: "iqn.2026-11.io.causeway:t".to_owned(),
            portal_group_tag: 1,
        };
        let ports = UnitPorts {
            all: vec![own.clone()],
            own,
        };
        let initiator = InitiatorPort {
            name: "iqn.x:host".to_owned(),
            isid: [0; 6],
        };
        let port = NexusPort {
            initiator,
            target_port: 1,
        };
        let core = self.node.core(0);
        let nexus = Nexus::open(&core, id, port, ports, false, Weak::<Alone>::new()).unwrap();
        // Unit attentions come first.
        while test_unit_ready(&nexus).status != Status::Good {}
        nexus
    }

    fn wait(&self) {
        wait(&self.world, &self.node, SOON);
    }
}

/// A session with one unit.
struct Alone;

impl Peers for Alone {
    fn all(&self) -> Vec<Rc<Nexus>> {
        Vec::new()
    }

    fn released(&self) {}
}

fn test_unit_ready(nexus: &Rc<Nexus>) -> Response {
    let now = nexus.unit().core().now();
    let request = Request {
        cdb: &[0; 6],
        attribute: Attribute::Simple,
        tag: 1,
        data_out: 0,
        first_byte: now,
        whole: now,
        stands_for: 0,
    };
    match nexus.arrive(request) {
        Arrival::Ended { response, .. } => response,
        Arrival::Task { task, .. } => {
            let Answer::Ready(Some(Outcome::Respond(response))) = task.run(Buf::empty()) else {
                panic!("TEST UNIT READY waits")
            };
            response
        }
    }
}

fn write() -> Op {
    Op::Write {
        range: LbaRange::new(Lba(8), BlockCount(8)).unwrap(),
        data: Buf::copy_of(&[3; 4096]),
        durability: Durability::Cached,
    }
}

fn all_faults(fault: Fault) -> FaultPlan {
    FaultPlan::none().with(fault, 1_000_000)
}

#[test]
fn a_lun_of_which_a_sync_found_no_space_is_opened_anew_when_there_is_some() {
    for config in [plain, members::config] {
        let bench = Bench::new(config);
        let lane = bench.lane();
        let nexus = bench.nexus();
        bench.ask(&lane, write()).unwrap();
        bench.world.set_faults(all_faults(Fault::FileSyncNoSpace));
        let lost = IoError::MediumError { lba: Lba(0) };
        let flushed = bench.ask(&lane, Op::Flush).unwrap_err();
        assert_eq!(flushed, lost, "nobody may ask for it again later");
        bench.world.set_faults(FaultPlan::none());
        let capacity = bench.node.disk().capacity();
        bench.node.disk().set_capacity(0);
        for _ in 0..3 {
            bench.wait();
            let (state, reason) = bench.lun();
            assert_eq!(state, "offline");
            assert!(reason.contains("make room"), "{reason}");
            assert_eq!(bench.ask(&lane, Op::Flush).unwrap_err(), lost);
            let refused = bench.ask(&lane, write()).unwrap_err();
            assert_eq!(refused, IoError::SpaceExhausted);
        }
        bench.node.disk().set_capacity(capacity);
        bench.wait();
        assert_eq!(bench.lun(), ("online".to_owned(), String::new()));
        let reported = test_unit_ready(&nexus).sense.expect("a unit attention");
        let reported = Sense::parse(&reported.to_vec()).expect("sense data");
        let power_on = AdditionalSense::POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED;
        assert_eq!(reported.code, power_on);
        assert_eq!(test_unit_ready(&nexus).status, Status::Good);
        // Whoever has the old one never gets the answer that what it wrote is stable.
        assert!(bench.ask(&lane, Op::Flush).is_err());
        let lane = bench.lane();
        assert!(matches!(bench.ask(&lane, write()), Ok(Done::Nothing)));
        assert!(matches!(bench.ask(&lane, Op::Flush), Ok(Done::Nothing)));
        let core = bench.node.core(0);
        for place in ["/c", "/c/pool"] {
            let core = Rc::clone(&core);
            let listed = async move { core.files().list(Path::new(place)).await };
            let listed = bench.world.block_on(&bench.node, LIMIT, listed).unwrap();
            let mut names = listed.unwrap_or_default().into_iter().map(|it| it.name);
            assert!(!names.any(|it| it.extension().is_some_and(|it| it == "room")));
        }
    }
}

#[test]
fn a_lun_of_which_a_sync_failed_otherwise_waits_for_a_person() {
    let bench = Bench::new(plain);
    let lane = bench.lane();
    bench.ask(&lane, write()).unwrap();
    bench.world.set_faults(all_faults(Fault::FileSyncError));
    bench.ask(&lane, Op::Flush).unwrap_err();
    bench.world.set_faults(FaultPlan::none());
    bench.wait();
    let (state, reason) = bench.lun();
    assert_eq!(state, "offline");
    assert!(reason.contains("restart the daemon"), "{reason}");
    assert_eq!(
        bench.ask(&lane, write()).unwrap_err(),
        IoError::WriteProtected
    );
}
