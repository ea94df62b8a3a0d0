//! A host at a nexus of a unit, one command at a time.

use env::CoreHandle;
use logical_unit::{
    Arrival, Attribute, InitiatorPort, Nexus, NexusPort, Outcome, Peers, PortFacts, Request,
    UnitId, UnitPorts,
};
use scsi::Status;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::{Rc, Weak};
use units::Buf;

/// GOOD, or the sense key, additional sense code and qualifier.
pub(super) type Reported = Result<Vec<u8>, (u8, u8, u8)>;

/// The units of a session.
#[derive(Default)]
struct Session(RefCell<Vec<Rc<Nexus>>>);

impl Peers for Session {
    fn all(&self) -> Vec<Rc<Nexus>> {
        self.0.borrow().clone()
    }

    fn released(&self) {}
}

pub(super) struct Host {
    core: CoreHandle,
    nexus: Rc<Nexus>,
    session: Rc<Session>,
    tag: Cell<u32>,
}

impl Host {
    /// A new nexus, whose first unit attention was reported, if it has one.
    pub(super) async fn new(core: &CoreHandle, unit: UnitId) -> Result<Self, String> {
        let port = NexusPort {
            initiator: InitiatorPort {
                name: "iqn.2026-11.io.causeway.sim:limits".to_owned(),
                isid: [0; 6],
            },
            target_port: 1,
        };
        let own = PortFacts {
            relative_port: 1,
            target_name: "iqn.2026-11.io.causeway:sim".to_owned(),
            portal_group_tag: 1,
        };
        let ports = UnitPorts {
            all: vec![own.clone()],
            own,
        };
        let session = Rc::new(Session::default());
        let peers: Rc<dyn Peers> = Rc::clone(&session) as Rc<dyn Peers>;
        let peers: Weak<dyn Peers> = Rc::downgrade(&peers);
        let nexus = Nexus::open(core, unit, port, ports, false, peers);
        let nexus = nexus.map_err(|error| format!("{error:?}"))?;
        session.0.borrow_mut().push(Rc::clone(&nexus));
        let host = Self {
            core: Rc::clone(core),
            nexus,
            session,
            tag: Cell::new(0),
        };
        let first = host.send(&[0; 6], Buf::empty()).await;
        match first {
            Ok(_) | Err((0x06, _, _)) => Ok(host),
            other => Err(format!("a new nexus was answered {other:?}")),
        }
    }

    /// Sends a command and waits for its end.
    pub(super) async fn send(&self, cdb: &[u8], data: Buf) -> Reported {
        self.tag.set(self.tag.get() + 1);
        let now = self.core.now();
        let arrival = self.nexus.arrive(Request {
            cdb,
            attribute: Attribute::Simple,
            tag: self.tag.get(),
            data_out: data.len() as u64,
            first_byte: now,
            whole: now,
            stands_for: 0,
        });
        let response = match arrival {
            Arrival::Ended { response, .. } => response,
            Arrival::Task { task, data_out } => {
                assert_eq!(data_out, data.len() as u64, "of {cdb:02x?}");
                let Outcome::Respond(response) = task.run(data).await else {
                    panic!("{cdb:02x?} was not answered");
                };
                response
            }
        };
        if response.status == Status::Good {
            Ok(response.data_in.to_vec())
        } else {
            Err(sense(response.sense.as_ref()))
        }
    }

    pub(super) fn close(self) {
        self.session.0.borrow_mut().clear();
    }
}

/// Sense data of fixed or descriptor format.
fn sense(of: Option<&Buf>) -> (u8, u8, u8) {
    let bytes = of.map(Buf::to_vec).unwrap_or_default();
    let at = |place: usize| bytes.get(place).copied().unwrap_or(0);
    match at(0) & 0x7f {
        0x70 => (at(2) & 0xf, at(12), at(13)),
        0x72 => (at(1) & 0xf, at(2), at(3)),
        _ => (0xff, 0, 0),
    }
}

/// A CDB of 16 bytes.
pub(super) fn sixteen(opcode: u8, byte_1: u8, blocks: &Range<u64>) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (opcode, byte_1);
    cdb[2..10].copy_from_slice(&blocks.start.to_be_bytes());
    let count = u32::try_from(blocks.end - blocks.start).expect("fits into a CDB");
    cdb[10..14].copy_from_slice(&count.to_be_bytes());
    cdb
}

/// A CDB for these blocks, whose data is twice as long (SBC-3 5.2).
pub(super) fn compare_and_write(blocks: &Range<u64>) -> [u8; 16] {
    let mut cdb = sixteen(0x89, 0, blocks);
    cdb[13] = u8::try_from(blocks.end - blocks.start).expect("fits into a CDB");
    cdb[10..13].fill(0);
    cdb
}

/// WRITE ATOMIC (16).
pub(super) fn write_atomic(blocks: &Range<u64>) -> [u8; 16] {
    let mut cdb = sixteen(0x9c, 0, blocks);
    cdb[10..14].fill(0);
    let count = u16::try_from(blocks.end - blocks.start).expect("fits into a CDB");
    cdb[12..14].copy_from_slice(&count.to_be_bytes());
    cdb
}

/// A CDB of 10 bytes.
pub(super) fn ten(opcode: u8, byte_1: u8, blocks: &Range<u64>) -> [u8; 10] {
    let mut cdb = [0; 10];
    (cdb[0], cdb[1]) = (opcode, byte_1);
    let start = u32::try_from(blocks.start).expect("fits into a CDB");
    cdb[2..6].copy_from_slice(&start.to_be_bytes());
    let count = u16::try_from(blocks.end - blocks.start).expect("fits into a CDB");
    cdb[7..9].copy_from_slice(&count.to_be_bytes());
    cdb
}

/// INQUIRY of a vital product data page.
pub(super) fn page(code: u8) -> [u8; 6] {
    [0x12, 1, code, 0, 255, 0]
}

/// UNMAP of these ranges: the CDB and the parameter list.
pub(super) fn unmap(ranges: &[Range<u64>]) -> ([u8; 10], Buf) {
    let bytes = u16::try_from(8 + ranges.len() * 16).expect("fits into a list");
    let mut list = Vec::new();
    list.extend((bytes - 2).to_be_bytes());
    list.extend((bytes - 8).to_be_bytes());
    list.extend([0; 4]);
    for range in ranges {
        list.extend(range.start.to_be_bytes());
        let count = u32::try_from(range.end - range.start).expect("fits into a descriptor");
        list.extend(count.to_be_bytes());
        list.extend([0; 4]);
    }
    let mut cdb = [0; 10];
    cdb[0] = 0x42;
    cdb[7..9].copy_from_slice(&bytes.to_be_bytes());
    (cdb, Buf::copy_of(&list))
}
