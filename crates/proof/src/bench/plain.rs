//! A client that sends as hosts do: each PDU by a call of its own, a command as soon as one has
//! ended, and not in bursts as the `iscsi_initiator` crate does. It stands for other people's
//! initiators; what it costs itself is of no interest.
//!
//! One thread, blocking calls. PDUs are made by hand, so that nothing of ours decides how they are
//! cut.

use super::case::{Case, Manner};
use super::figures::{self, Figures, Unit};
use super::histogram::Histogram;
use super::usage;
use crate::random::Random;
use formats::crc32c_of;
use rustix::net::sockopt;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const HEADER: usize = 48;
/// What is received at once.
const RECEIVE_BYTES: usize = 256 << 10;
/// No command is answered that late.
const PATIENCE: Duration = Duration::from_secs(10);
const RESERVED_TAG: u32 = u32::MAX;

/// What a kind of host negotiates (RFC 7143 13.10 "InitialR2T", 13.11 "ImmediateData"), and how it
/// hands a PDU to TCP.
struct Habits {
    initial_r2t: bool,
    immediate_data: bool,
    /// Header and data segment by calls of their own.
    apart: bool,
    /// All that has come is read first.
    reads_ahead: bool,
}

const fn habits(manner: Manner) -> Habits {
    let (initial_r2t, immediate_data, apart, reads_ahead) = match manner {
        // `Burst` is the other client's; here it would be as Linux is.
        Manner::Burst | Manner::Linux => (false, true, true, true),
        Manner::Libiscsi => (false, true, true, false),
        Manner::Windows => (true, true, false, true),
        Manner::Solicited => (true, false, true, true),
    };
    Habits {
        initial_r2t,
        immediate_data,
        apart,
        reads_ahead,
    }
}

/// A command that was sent.
#[derive(Clone, Copy)]
struct Sent {
    at: Instant,
}

/// The session.
struct Plain {
    socket: TcpStream,
    habits: Habits,
    /// CRC32C behind each header and each data segment (RFC 7143 13.1 "HeaderDigest and
    /// DataDigest").
    digests: bool,
    unit: Unit,
    buffer: Vec<u8>,
    /// What of it was received and not read.
    have: std::ops::Range<usize>,
    payload: Vec<u8>,
    cmd_sn: u32,
    max_cmd_sn: u32,
    exp_stat_sn: u32,
    /// By ITT.
    sent: Vec<Option<Sent>>,
    /// Read, and not acted upon.
    heard: VecDeque<Said>,
}

/// What a PDU of the target says that this client cares for.
#[derive(Clone, Copy)]
enum Said {
    /// A command has ended with this status.
    Ended {
        itt: u32,
        status: u8,
    },
    /// Data is asked for.
    Asked {
        itt: u32,
        tag: u32,
        offset: usize,
        bytes: usize,
    },
    Nothing,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn length(bhs: &[u8]) -> usize {
    usize::from(bhs[5]) << 16 | usize::from(bhs[6]) << 8 | usize::from(bhs[7])
}

fn small(value: usize) -> u32 {
    u32::try_from(value).expect("lengths of the wire fit 32 bits")
}

fn put(header: &mut [u8; HEADER], at: usize, value: u32) {
    header[at..at + 4].copy_from_slice(&value.to_be_bytes());
}

fn text(error: &io::Error) -> String {
    format!("plain client: {error}")
}

impl Plain {
    fn log_in(unit: &Unit, case: &Case) -> Result<Self, String> {
        let socket = TcpStream::connect(unit.portal).map_err(|error| text(&error))?;
        let set = || -> io::Result<()> {
            socket.set_nodelay(true)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            // Acknowledgements travel with the next command, or late, as between machines.
            sockopt::set_tcp_quickack(&socket, false)?;
            Ok(())
        };
        set().map_err(|error| text(&error))?;
        let mut plain = Self {
            socket,
            habits: habits(case.manner),
            digests: false,
            unit: unit.clone(),
            buffer: vec![0; RECEIVE_BYTES],
            have: 0..0,
            payload: vec![0xA5; case.bytes],
            cmd_sn: 1,
            max_cmd_sn: 1,
            exp_stat_sn: 0,
            sent: vec![None; case.depth.max(1)],
            heard: VecDeque::new(),
        };
        plain.negotiate(case.digests)?;
        plain.digests = case.digests;
        plain.until_ready()?;
        Ok(plain)
    }

    /// One Login Request from operational negotiation to full feature phase, and empty ones until
    /// the target agrees.
    fn negotiate(&mut self, digests: bool) -> Result<(), String> {
        let yes = |flag| if flag { "Yes" } else { "No" };
        let digest = if digests { "CRC32C" } else { "None" };
        let keys = format!(
            "InitiatorName=iqn.2026-11.io.causeway:plain-client\0SessionType=Normal\0TargetName={}\0\
             HeaderDigest={digest}\0DataDigest={digest}\0InitialR2T={}\0ImmediateData={}\0MaxConnections=1\0\
             MaxRecvDataSegmentLength=262144\0MaxBurstLength=1048576\0FirstBurstLength=262144\0\
             MaxOutstandingR2T=1\0DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0DefaultTime2Wait=2\0\
             DefaultTime2Retain=0\0ErrorRecoveryLevel=0\0",
            self.unit.target,
            yes(self.habits.initial_r2t),
            yes(self.habits.immediate_data),
        );
        let mut keys = keys.into_bytes();
        for _ in 0..8 {
            let mut header = [0; HEADER];
            // Immediate, Login; T, CSG 1, NSG 3.
            (header[0], header[1]) = (0x43, 0x87);
            // An ISID of the type "random" (RFC 7143 11.12.5 "ISID").
            header[8..14].copy_from_slice(&[0x80, 0, 0x77, 0, 0, 1]);
            put(&mut header, 24, self.cmd_sn);
            put(&mut header, 28, self.exp_stat_sn);
            self.send(header, &keys)?;
            keys.clear();
            let bhs = self.pdu()?;
            if bhs[0] & 0x3f != 0x23 || bhs[36] != 0 {
                return Err(format!("the login was refused: {}/{}", bhs[36], bhs[37]));
            }
            self.note_numbers(&bhs);
            self.exp_stat_sn = u32_at(&bhs, 24).wrapping_add(1);
            if bhs[1] & 0x83 == 0x83 {
                return Ok(());
            }
        }
        Err("the login does not end".to_owned())
    }

    /// TEST UNIT READY until no unit attention is left (SAM-5 5.14).
    fn until_ready(&mut self) -> Result<(), String> {
        for _ in 0..16 {
            self.command(0, [0; 16], 0, false)?;
            loop {
                match self.hear()? {
                    Said::Ended { status: 0, .. } => return Ok(()),
                    Said::Ended { .. } => break,
                    Said::Asked { .. } | Said::Nothing => {}
                }
            }
        }
        Err("the unit does not become ready".to_owned())
    }

    /// Hands a PDU to TCP, in one call or two.
    fn send(&mut self, mut header: [u8; HEADER], data: &[u8]) -> Result<(), String> {
        header[5..8].copy_from_slice(&small(data.len()).to_be_bytes()[1..]);
        let padding = &[0; 3][..data.len().next_multiple_of(4) - data.len()];
        let digest = |wanted: bool, parts: [&[u8]; 2]| {
            let sum = || crc32c_of(parts).to_le_bytes().to_vec();
            if wanted { sum() } else { Vec::new() }
        };
        let head = [&header[..], &digest(self.digests, [&header[..], &[]])].concat();
        let tail = digest(self.digests && !data.is_empty(), [data, padding]);
        let tail = [padding, &tail[..]].concat();
        let mut hand_over = || -> io::Result<()> {
            if data.is_empty() || self.habits.apart {
                self.socket.write_all(&head)?;
                self.socket.write_all(data)?;
                return self.socket.write_all(&tail);
            }
            self.socket.write_all(&[&head[..], data, &tail].concat())
        };
        hand_over().map_err(|error| text(&error))
    }

    fn note_numbers(&mut self, bhs: &[u8]) {
        self.max_cmd_sn = u32_at(bhs, 32);
    }

    /// A SCSI command of so many bytes, with immediate data where that was agreed.
    fn command(
        &mut self,
        itt: u32,
        cdb: [u8; 16],
        bytes: usize,
        write: bool,
    ) -> Result<(), String> {
        let mut header = [0; HEADER];
        let direction = match (bytes, write) {
            (0, _) => 0,
            (_, true) => 0x20,
            (_, false) => 0x40,
        };
        // F (nothing unsolicited follows), R or W, SIMPLE.
        (header[0], header[1]) = (0x01, 0x80 | direction | 1);
        header[9] = self.unit.lun;
        put(&mut header, 16, itt);
        put(&mut header, 20, small(bytes));
        put(&mut header, 24, self.cmd_sn);
        put(&mut header, 28, self.exp_stat_sn);
        header[32..48].copy_from_slice(&cdb);
        self.cmd_sn = self.cmd_sn.wrapping_add(1);
        if !write || !self.habits.immediate_data {
            return self.send(header, &[]);
        }
        let payload = std::mem::take(&mut self.payload);
        let sent = self.send(header, &payload[..bytes]);
        self.payload = payload;
        sent
    }

    fn data_out(&mut self, itt: u32, tag: u32, offset: usize, bytes: usize) -> Result<(), String> {
        let mut header = [0; HEADER];
        (header[0], header[1]) = (0x05, 0x80);
        header[9] = self.unit.lun;
        put(&mut header, 16, itt);
        put(&mut header, 20, tag);
        put(&mut header, 28, self.exp_stat_sn);
        put(&mut header, 40, small(offset));
        let payload = std::mem::take(&mut self.payload);
        let sent = self.send(header, &payload[offset..offset + bytes]);
        self.payload = payload;
        sent
    }

    /// Receives until so many bytes lie together.
    fn need(&mut self, bytes: usize) -> Result<(), String> {
        while self.have.len() < bytes {
            if self.buffer.len() - self.have.start < bytes {
                self.buffer.copy_within(self.have.clone(), 0);
                self.have = 0..self.have.len();
            }
            let came = self.socket.read(&mut self.buffer[self.have.end..]);
            match came.map_err(|error| text(&error))? {
                0 => return Err("the target closed the connection".to_owned()),
                n => self.have.end += n,
            }
        }
        Ok(())
    }

    /// The digest that comes next, if there are any, is that of `of`.
    fn check(&mut self, of: &[u8]) -> Result<(), String> {
        if !self.digests {
            return Ok(());
        }
        self.need(4)?;
        let at = self.have.start;
        let reported = self.buffer[at..at + 4].try_into().expect("four bytes");
        self.have.start += 4;
        let is_right = u32::from_le_bytes(reported) == crc32c_of([of]);
        is_right
            .then_some(())
            .ok_or_else(|| "a digest is wrong".to_owned())
    }

    /// The next PDU's header; its data is received, held against its digest, and dropped.
    fn pdu(&mut self) -> Result<[u8; HEADER], String> {
        if self.have.is_empty() {
            self.have = 0..0;
        }
        self.need(HEADER)?;
        let at = self.have.start;
        let bhs: [u8; HEADER] = self.buffer[at..at + HEADER].try_into().expect("so many");
        self.have.start += HEADER;
        self.check(&bhs)?;
        let mut left = length(&bhs).next_multiple_of(4);
        if self.digests && left > 0 {
            self.need(left)?;
            let data = self.buffer[self.have.start..][..left].to_vec();
            self.have.start += left;
            self.check(&data)?;
            return Ok(bhs);
        }
        while left > 0 {
            if self.have.is_empty() {
                self.have = 0..0;
                self.need(1)?;
            }
            let n = left.min(self.have.len());
            self.have.start += n;
            left -= n;
        }
        Ok(bhs)
    }

    /// The next thing that the target says.
    fn hear(&mut self) -> Result<Said, String> {
        if let Some(said) = self.heard.pop_front() {
            return Ok(said);
        }
        let said = self.inspect()?;
        while self.habits.reads_ahead && self.has_a_pdu() {
            let next = self.inspect()?;
            self.heard.push_back(next);
        }
        Ok(said)
    }

    /// Another PDU is here, whole.
    fn has_a_pdu(&self) -> bool {
        let bytes = &self.buffer[self.have.clone()];
        // With digests as much as there may be of them: what has not come yet is waited for.
        let digests = if self.digests { 8 } else { 0 };
        bytes.len() >= HEADER && bytes.len() >= HEADER + digests + length(bytes).next_multiple_of(4)
    }

    fn inspect(&mut self) -> Result<Said, String> {
        let bhs = self.pdu()?;
        self.note_numbers(&bhs);
        let itt = u32_at(&bhs, 16);
        let data_in_with_status = bhs[0] & 0x3f == 0x25 && bhs[1] & 1 != 0;
        match bhs[0] & 0x3f {
            0x21 => self.exp_stat_sn = u32_at(&bhs, 24).wrapping_add(1),
            0x25 if data_in_with_status => self.exp_stat_sn = u32_at(&bhs, 24).wrapping_add(1),
            0x25 => return Ok(Said::Nothing),
            0x31 => {
                return Ok(Said::Asked {
                    itt,
                    tag: u32_at(&bhs, 20),
                    offset: u32_at(&bhs, 40) as usize,
                    bytes: u32_at(&bhs, 44) as usize,
                });
            }
            // A NOP-In that asks for nothing.
            0x20 if u32_at(&bhs, 20) == RESERVED_TAG => return Ok(Said::Nothing),
            opcode => return Err(format!("a PDU {opcode:#x} that was not expected")),
        }
        Ok(Said::Ended {
            itt,
            status: bhs[3],
        })
    }

    fn has_window(&self) -> bool {
        // Serial number arithmetic (RFC 1982).
        self.max_cmd_sn.wrapping_sub(self.cmd_sn) < 1 << 31
    }
}

/// One run.
struct Run<'a> {
    plain: Plain,
    case: &'a Case,
    random: Random,
    next: u64,
    times: Histogram,
    in_flight: usize,
    /// Tags of commands that have ended while the window was closed.
    held_back: Vec<usize>,
}

impl Run<'_> {
    fn submit(&mut self, itt: usize, now: Instant) -> Result<(), String> {
        let case = self.case;
        let places = self.plain.unit.bytes / case.bytes as u64;
        let place = if case.random {
            self.random.next() % places
        } else {
            self.next = (self.next + 1) % places;
            self.next
        };
        let write = self.random.next() % 100 >= u64::from(case.read_percent);
        let block = self.plain.unit.block;
        let cdb = figures::cdb(
            write,
            case.fua,
            place * case.bytes as u64,
            case.bytes,
            block,
        );
        self.plain.sent[itt] = Some(Sent { at: now });
        self.in_flight += 1;
        self.plain.command(small(itt), cdb, case.bytes, write)
    }

    /// What the target says next is taken, and answered by the data that it asks for.
    fn step(&mut self) -> Result<(), String> {
        match self.plain.hear()? {
            Said::Nothing => Ok(()),
            Said::Asked {
                itt,
                tag,
                offset,
                bytes,
            } => self.plain.data_out(itt, tag, offset, bytes),
            Said::Ended { status, .. } if status != 0 => {
                Err(format!("a command ended with status {status}"))
            }
            Said::Ended { itt, .. } => {
                let now = super::clock();
                let itt = itt as usize;
                let Some(sent) = self.plain.sent.get_mut(itt).and_then(Option::take) else {
                    return Err("an end of what was not sent".to_owned());
                };
                let took = now.duration_since(sent.at).as_nanos();
                self.times.add(u64::try_from(took).unwrap_or(u64::MAX));
                self.in_flight -= 1;
                self.held_back.push(itt);
                Ok(())
            }
        }
    }

    /// The same, and another command for each that has ended, as far as the window is open.
    fn go_on(&mut self) -> Result<(), String> {
        self.step()?;
        while !self.held_back.is_empty() && self.plain.has_window() {
            let now = super::clock();
            let itt = self.held_back.swap_remove(0);
            self.submit(itt, now)?;
        }
        Ok(())
    }

    fn until(&mut self, end: Instant) -> Result<Instant, String> {
        loop {
            // The clock is read for each command anyhow.
            let now = super::clock();
            if now >= end {
                return Ok(now);
            }
            self.go_on()?;
        }
    }
}

/// Runs a case for `time` in the case's manner, after a warm-up.
///
/// # Errors
/// What failed, for people.
pub fn run(unit: &Unit, case: &Case, warm_up: Duration, time: Duration) -> Result<Figures, String> {
    let mut run = Run {
        plain: Plain::log_in(unit, case)?,
        case,
        random: Random::new(11),
        next: 0,
        times: Histogram::default(),
        in_flight: 0,
        held_back: Vec::new(),
    };
    let begin = super::clock();
    for itt in 0..case.depth {
        run.submit(itt, begin)?;
    }
    let begin = run.until(begin + warm_up)?;
    run.times.clear();
    let before = usage::sample(&unit.processes)?;
    let end = run.until(begin + time)?;
    let used = usage::sample(&unit.processes)?.since(&before);
    let seconds = end.duration_since(begin).as_secs_f64();
    let figures = figures::figures(&run.times, seconds, &used);
    while run.in_flight > 0 {
        run.step()?;
    }
    Ok(figures)
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::bench::case::PLAIN_CASES;
    use crate::bench::null_server;
    use std::net::TcpListener;

    #[test]
    fn every_manner_keeps_its_depth_of_reads_and_writes_going_against_a_server_that_answers_all() {
        const BYTES: usize = 8 << 20;
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let portal = free.local_addr().unwrap();
        drop(free);
        // It serves until the process ends.
        let server = std::thread::Builder::new();
        let serve = move || null_server::serve(portal, BYTES, 512);
        drop(server.spawn(serve).unwrap());
        let unit = Unit {
            portal,
            target: "iqn.2026-11.io.causeway:bench".to_owned(),
            lun: 0,
            block: 512,
            bytes: BYTES as u64,
            processes: vec![std::process::id()],
        };
        let begin = super::super::clock();
        while TcpStream::connect(portal).is_err() {
            assert!(
                begin.elapsed() < PATIENCE,
                "the null server does not listen"
            );
            std::thread::yield_now();
        }
        for case in &PLAIN_CASES {
            let time = Duration::from_millis(20);
            let figures = run(&unit, case, time / 2, time).unwrap();
            assert!(figures.commands >= 1.0, "{}: {figures:?}", case.name);
            assert!(figures.p50 <= figures.p99, "{}: {figures:?}", case.name);
        }
    }
}
