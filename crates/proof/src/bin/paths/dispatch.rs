//! A READ and a WRITE of 4 KiB at a logical unit in memory, from the CDB to the status.

use env::sim::{World, WorldConfig};
use env::{Answer, CoreHandle, CoreId};
use logical_unit::{
    Arrival, Attribute, Identity, LogicalUnit, Nexus, NexusPort, NoStore, Outcome, Peers,
    PortFacts, Request, Response, Tally, UnitConfig, UnitId, UnitPorts,
};
use scsi::reservation::InitiatorPort;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf};
use volume::Volume;

const UNIT: UnitId = UnitId(1);
const BLOCKS: u64 = 8192;

/// Nobody copies here.
struct Alone;

impl Peers for Alone {
    fn all(&self) -> Vec<Rc<Nexus>> {
        Vec::new()
    }

    fn released(&self) {}
}

async fn unit(core: &CoreHandle) -> (Arc<LogicalUnit>, Rc<Nexus>) {
    let fences = LogicalUnit::fences_for();
    let blocks = BlockCount(BLOCKS);
    let memory: Arc<dyn Volume> =
        backends::MemoryVolume::new(BlockSize::B512, blocks, 3, fences.clone());
    let unit = LogicalUnit::new(UnitConfig {
        id: UNIT,
        home: CoreId(0),
        identity: Identity {
            name: "u".to_owned(),
            serial: "1".to_owned(),
            naa: [0x60; 16],
            store_key: "u".to_owned(),
            block_size: BlockSize::B512,
            physical_block_exponent: 3,
            thin: true,
        },
        fences,
        store: Arc::new(NoStore),
        is_new: false,
    });
    unit.start(core, Ok(memory)).await.expect("memory comes up");
    let port = NexusPort {
        initiator: InitiatorPort {
            name: "iqn.2026-11.example:i".to_owned(),
            isid: [0; 6],
        },
        target_port: 1,
    };
    let own = PortFacts {
        relative_port: 1,
        target_name: "iqn.2026-11.example:t".to_owned(),
        portal_group_tag: 1,
    };
    let ports = UnitPorts {
        all: vec![own.clone()],
        own,
    };
    let nexus = Nexus::open(core, UNIT, port, ports, false, Weak::<Alone>::new());
    (unit, nexus.expect("the unit is there"))
}

/// Answers that leave together where one connection works alone on its core.
const TOGETHER: u64 = 16;

/// Of many commands of a session, one of so many is in its sample.
const SAMPLE: u32 = 64;

/// What counts the time of each stage, so that its cost is in here, too.
struct Sends {
    tally: Tally,
    answers: u64,
    /// Those of its session's sample.
    sampled: u64,
}

impl Sends {
    fn new() -> Self {
        Self {
            tally: Tally::new(units::Now::ZERO),
            answers: 0,
            sampled: 0,
        }
    }

    /// The socket takes it with the next ones.
    fn sent(&mut self, response: Response) -> u8 {
        if let Some(trace) = response.latency_trace {
            let sampled = trace.sampled(units::Now::ZERO);
            self.sampled += sampled.map_or(0, |it| u64::from(it.stands_for));
            let counted = self.tally.sent(trace);
            assert_eq!(counted, None, "they take the same time");
        }
        self.answers += 1;
        if self.answers.is_multiple_of(TOGETHER) {
            let tally = std::mem::replace(&mut self.tally, Tally::new(units::Now::ZERO));
            assert!(tally.end().is_some());
        }
        response.status.code()
    }
}

/// Arrival, and what runs at once.
fn one(nexus: &Rc<Nexus>, sends: &mut Sends, cdb: &[u8], tag: u32, data: &Buf) -> Option<u8> {
    // Its session chooses it at random, which costs a little more.
    let stands_for = if tag.is_multiple_of(8 * SAMPLE) {
        64
    } else {
        0
    };
    let arrival = nexus.arrive(Request {
        cdb,
        attribute: Attribute::Simple,
        tag,
        data_out: data.len() as u64,
        first_byte: units::Now::ZERO,
        whole: units::Now::ZERO,
        stands_for,
    });
    match arrival {
        Arrival::Ended { response, .. } => Some(sends.sent(response)),
        Arrival::Task { task, .. } => match task.run(data.clone()) {
            Answer::Ready(Some(Outcome::Respond(response))) => Some(sends.sent(response)),
            Answer::Ready(Some(Outcome::Silent | Outcome::Disconnect) | None)
            | Answer::Waiting(_) => None,
        },
    }
}

fn many(nexus: &Rc<Nexus>, opcode: u8, data: &Buf, count: u64) {
    let mut sends = Sends::new();
    let mut cdb = [0; 16];
    (cdb[0], cdb[8]) = (opcode, 8);
    for number in 0..count {
        let at = u32::try_from(number * 8 % BLOCKS).expect("a small address");
        cdb[2..6].copy_from_slice(&at.to_be_bytes());
        let status = one(nexus, &mut sends, &cdb, at, data);
        assert_eq!(status, Some(0), "every command is good, and at once");
    }
    let commands = count.next_multiple_of(u64::from(SAMPLE));
    assert_eq!(sends.sampled, commands, "the sample stands for all");
}

fn commands(opcode: u8, data: Buf, count: u64) {
    let world = World::new(1, WorldConfig::default());
    let node = world.node("node");
    let core = node.core(0);
    let done = world.block_on(&node, Duration::from_secs(1), async move {
        let (unit, nexus) = unit(&core).await;
        // The first command hears of the power on.
        one(&nexus, &mut Sends::new(), &[0; 6], 0, &Buf::empty());
        // Reads find what was written, whatever the number of commands.
        many(&nexus, 0x2a, &Buf::copy_of(&[0x5A; 4096]), BLOCKS / 8);
        many(&nexus, opcode, &data, count);
        drop((unit, nexus));
    });
    done.expect("it ends");
}

pub(super) fn read(count: u64) {
    commands(0x28, Buf::empty(), count);
}

pub(super) fn write(count: u64) {
    commands(0x2a, Buf::copy_of(&[0xA5; 4096]), count);
}
