//! A host of our own: the `iscsi` crate's initiator over a blocking socket, with CDBs written by
//! hand, so that nothing of the target's own SCSI code judges itself.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other event is a failure of the test"
)]

use iscsi::bhs::Attribute;
use iscsi::initiator_side::{
    Completion, InitiatorCommand, InitiatorConfig, InitiatorConnection, InitiatorEvent,
};
use iscsi::{Isid, Itt, LoginStatus, Lun, Want};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use units::{Buf, BufMut, Now};

/// Name of this host.
pub(crate) const NAME: &str = "iqn.2026-11.test:proof";

/// The command ended well (SAM-5 5.3.1).
pub(crate) const GOOD: u8 = 0x00;
/// Sense data says why the command failed (SAM-5 5.3.1).
pub(crate) const CHECK_CONDITION: u8 = 0x02;

/// A session.
pub(crate) struct Client {
    stream: TcpStream,
    machine: InitiatorConnection,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: Option<LoginStatus>,
    pub(crate) reason: String,
}

/// How to log in as `initiator` to `target`.
pub(crate) fn config(initiator: &str, target: &str) -> InitiatorConfig {
    let isid = Isid([0x80, 0x12, 0x34, 0, 0, 1]);
    let mut config = InitiatorConfig::new(initiator, Some(target), isid);
    // No clock runs here: the socket's own timeout is what ends a silence.
    config.ping_after = None;
    config
}

impl Client {
    /// Logs in.
    pub(crate) fn login(portal: &str, config: &InitiatorConfig) -> Result<Self, Refused> {
        let stream = TcpStream::connect(portal).unwrap();
        stream.set_nodelay(true).unwrap();
        let limit = Some(Duration::from_secs(20));
        stream.set_read_timeout(limit).unwrap();
        let machine = InitiatorConnection::new(Now::ZERO, config);
        let mut client = Self { stream, machine };
        match client.event() {
            InitiatorEvent::LoggedIn { .. } => Ok(client),
            InitiatorEvent::LoginFailed { status, reason, .. } => Err(Refused { status, reason }),
            other => panic!("a login cannot end so: {other:?}"),
        }
    }

    /// Logs in as this host, and takes the unit attention that waits for it at LUN 0.
    pub(crate) fn open(portal: &str, target: &str) -> Self {
        let mut client = Self::login(portal, &config(NAME, target)).unwrap();
        client.settle();
        client
    }

    /// Takes the unit attentions that wait at LUN 0.
    pub(crate) fn settle(&mut self) {
        let ready = (0..8).any(|_| self.command(&[0x00; 6], &[], 0).status == GOOD);
        assert!(ready, "unit attentions end");
    }

    /// Sends what waits, then waits for the next event.
    pub(crate) fn event(&mut self) -> InitiatorEvent {
        loop {
            self.send();
            if let Some(event) = self.machine.poll_event() {
                return event;
            }
            self.receive();
        }
    }

    /// Gives the socket all that waits, and reads nothing.
    pub(crate) fn send(&mut self) {
        let bytes: Vec<u8> = self
            .machine
            .transmit()
            .pieces()
            .flatten()
            .copied()
            .collect();
        self.stream.write_all(&bytes).unwrap();
        self.machine.sent(bytes.len());
    }

    fn receive(&mut self) {
        let mut small = [0; 256];
        match self.machine.want() {
            Want::Header { bytes } => {
                self.stream.read_exact(&mut small[..bytes]).unwrap();
                self.machine
                    .receive_header(Now::ZERO, &small[..bytes])
                    .unwrap();
            }
            Want::Trailer { bytes } => {
                self.stream.read_exact(&mut small[..bytes]).unwrap();
                self.machine
                    .receive_trailer(Now::ZERO, &small[..bytes])
                    .unwrap();
            }
            Want::Data { .. } => {
                let n = self.stream.read(self.machine.data_chunk()).unwrap();
                assert!(n > 0, "the target closed the connection inside a PDU");
                self.machine.data_filled(n);
            }
            Want::Nothing => panic!("the connection is over and nobody was notified"),
        }
    }

    /// Hands a command to the machine without sending it yet.
    pub(crate) fn queue(&mut self, cdb: &[u8], out: &[u8], in_bytes: usize) -> Itt {
        let mut padded = [0; 16];
        padded[..cdb.len()].copy_from_slice(cdb);
        let command = InitiatorCommand {
            lun: Lun::default(),
            cdb: padded,
            attribute: Attribute::Simple,
            immediate: false,
        };
        let place = (in_bytes > 0).then(|| BufMut::zeroed(in_bytes));
        self.machine.submit(command, Buf::copy_of(out), place)
    }

    /// LOGICAL UNIT RESET of LUN 0, queued.
    pub(crate) fn queue_reset(&mut self) -> Itt {
        self.machine.task_management(5, Lun::default(), None)
    }

    /// Runs one command.
    pub(crate) fn command(&mut self, cdb: &[u8], out: &[u8], in_bytes: usize) -> Completion {
        let itt = self.queue(cdb, out, in_bytes);
        match self.event() {
            InitiatorEvent::Response {
                itt: of,
                completion,
            } if of == itt => completion,
            other => panic!("not the answer to {cdb:02x?}: {other:?}"),
        }
    }

    /// Runs one command that must end with GOOD, and gives what it read.
    pub(crate) fn good(&mut self, cdb: &[u8], out: &[u8], in_bytes: usize) -> Vec<u8> {
        let done = self.command(cdb, out, in_bytes);
        assert_eq!(
            done.status,
            GOOD,
            "{cdb:02x?}: sense {:02x?}",
            done.sense.to_vec()
        );
        done.data_in.to_vec()
    }

    /// WRITE (10).
    pub(crate) fn write(&mut self, lba: u32, data: &[u8], block: usize) {
        let blocks = u16::try_from(data.len() / block).unwrap();
        self.good(&ten(0x2a, 0, lba, blocks), data, 0);
    }

    /// READ (10).
    pub(crate) fn read(&mut self, lba: u32, blocks: u16, block: usize) -> Vec<u8> {
        self.good(&ten(0x28, 0, lba, blocks), &[], usize::from(blocks) * block)
    }

    /// READ CAPACITY (10): the number of blocks, and their size in bytes.
    pub(crate) fn capacity(&mut self) -> (u32, usize) {
        let data = self.good(&ten(0x25, 0, 0, 0), &[], 8);
        let field = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
        (field(0) + 1, usize::try_from(field(4)).unwrap())
    }
}

/// A CDB of ten bytes with an LBA and a length.
pub(crate) fn ten(code: u8, flags: u8, lba: u32, length: u16) -> [u8; 10] {
    let (lba, length) = (lba.to_be_bytes(), length.to_be_bytes());
    [
        code, flags, lba[0], lba[1], lba[2], lba[3], 0, length[0], length[1], 0,
    ]
}
