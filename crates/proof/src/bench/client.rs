//! A client with one session that keeps a number of commands in flight, on a blocking socket.

use super::clock;
use crate::bench::compare::Case;
use crate::random::Random;
use iscsi::bhs::Attribute;
use iscsi::initiator::{Command, Event, InitiatorConfig, InitiatorConnection};
use iscsi::{DigestChoice, Isid, Itt, Lun, Offer, Want};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use units::{Buf, BufMut, Now};

/// What a run gave.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Commands.
    pub commands: u64,
    /// Seconds that they took together.
    pub seconds: f64,
    /// Half of the commands took no longer, in microseconds.
    pub p50_micros: f64,
    /// Of a hundred commands one took longer, in microseconds.
    pub p99_micros: f64,
}

struct Client {
    stream: TcpStream,
    connection: InitiatorConnection,
    input: Vec<u8>,
    /// Bytes of `input` that were used.
    used: usize,
}

fn broken(what: impl std::fmt::Debug) -> io::Error {
    io::Error::other(format!("{what:?}"))
}

impl Client {
    fn log_in(address: &str, target: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        // tgt takes an ISID of zeroes for a missing one; 80h is the type "random" (RFC 7143 11.12.5 "ISID").
        let isid = Isid([0x80, 0, 0, 1, 0, 0]);
        let name = "iqn.2026-11.io.causeway:bench";
        let mut config = InitiatorConfig::new(name, Some(target), isid);
        config.offer = Offer {
            header_digest: DigestChoice::Never,
            data_digest: DigestChoice::Never,
            ..Offer::default()
        };
        config.ping_after = None;
        let mut client = Self {
            stream,
            connection: InitiatorConnection::new(Now::ZERO, &config),
            input: Vec::new(),
            used: 0,
        };
        match client.next_event()? {
            Event::LoggedIn { .. } => Ok(client),
            event @ (Event::LoginFailed { .. }
            | Event::Response { .. }
            | Event::TaskManagement { .. }
            | Event::Text { .. }
            | Event::LoggedOut { .. }
            | Event::Rejected { .. }
            | Event::Async { .. }
            | Event::Closed(_)) => Err(broken(event)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.connection.transmit().is_empty() {
            let pieces = self.connection.transmit().pieces();
            let pieces: Vec<io::IoSlice<'_>> = pieces.take(256).map(io::IoSlice::new).collect();
            let sent = self.stream.write_vectored(&pieces)?;
            self.connection.sent(sent);
        }
        Ok(())
    }

    /// Takes what is at hand, and reads when that is not enough for an event.
    fn next_event(&mut self) -> io::Result<Event> {
        loop {
            if let Some(event) = self.connection.poll_event() {
                return Ok(event);
            }
            if self.take()? {
                continue;
            }
            self.flush()?;
            self.input.drain(..self.used);
            self.used = 0;
            let held = self.input.len();
            self.input.resize(held + (256 << 10), 0);
            let read = self.stream.read(&mut self.input[held..])?;
            self.input.truncate(held + read);
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Hands the next piece to the machine; false where too little is at hand.
    fn take(&mut self) -> io::Result<bool> {
        let input = &self.input[self.used..];
        let taken = match self.connection.want() {
            Want::Header { bytes } if bytes <= input.len() => {
                let header = self.connection.receive_header(Now::ZERO, &input[..bytes]);
                header.map_err(broken)?;
                bytes
            }
            Want::Trailer { bytes } if bytes <= input.len() => {
                let trailer = self.connection.receive_trailer(Now::ZERO, &input[..bytes]);
                trailer.map_err(broken)?;
                bytes
            }
            Want::Data { .. } if !input.is_empty() => {
                let chunk = self.connection.data_chunk();
                let bytes = chunk.len().min(input.len());
                chunk[..bytes].copy_from_slice(&input[..bytes]);
                self.connection.data_filled(bytes);
                bytes
            }
            Want::Header { .. } | Want::Trailer { .. } | Want::Data { .. } => return Ok(false),
            Want::Nothing => return Err(broken("the connection is closing")),
        };
        self.used += taken;
        Ok(true)
    }

    /// Waits for the answer to a command.
    fn response(&mut self) -> io::Result<(Itt, u8)> {
        loop {
            match self.next_event()? {
                Event::Response { itt, completion } => return Ok((itt, completion.status)),
                event @ (Event::Closed(_) | Event::Rejected { .. } | Event::LoginFailed { .. }) => {
                    return Err(broken(event));
                }
                Event::LoggedIn { .. }
                | Event::TaskManagement { .. }
                | Event::Text { .. }
                | Event::LoggedOut { .. }
                | Event::Async { .. } => {}
            }
        }
    }

    fn submit(&mut self, lun: u8, cdb: [u8; 16], out: &Buf, into: usize) -> Itt {
        let command = Command {
            lun: Lun([0, lun, 0, 0, 0, 0, 0, 0]),
            cdb,
            attribute: Attribute::Simple,
            immediate: false,
        };
        let into = (into > 0).then(|| BufMut::zeroed(into));
        self.connection.submit(command, out.clone(), into)
    }
}

/// READ (10) or WRITE (10) at a place that is a multiple of the length.
fn cdb(case: &Case, random: &mut Random) -> [u8; 16] {
    let blocks = u32::try_from(case.bytes / 512).expect("a small length");
    let places = u32::try_from(case.lun_bytes / 512).expect("a small unit") / blocks;
    let place = u32::try_from(random.next() % u64::from(places)).expect("less than 32 bits");
    let mut cdb = [0; 16];
    cdb[0] = if case.write { 0x2a } else { 0x28 };
    cdb[2..6].copy_from_slice(&(place * blocks).to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes()[2..]);
    cdb
}

/// Runs a case for `time` against a unit with blocks of 512 bytes.
///
/// # Errors
/// A broken connection, or a command that failed.
pub fn run(
    address: &str,
    target: &str,
    lun: u8,
    case: &Case,
    time: Duration,
) -> io::Result<Figures> {
    let mut client = Client::log_in(address, target)?;
    // The first command of a session is told of the power on.
    client.submit(lun, [0; 16], &Buf::empty(), 0);
    client.response()?;
    let payload = if case.write {
        Buf::copy_of(&vec![0xA5; case.bytes])
    } else {
        Buf::empty()
    };
    let into = if case.write { 0 } else { case.bytes };
    let mut random = Random::new(7);
    let mut flying: BTreeMap<Itt, Instant> = BTreeMap::new();
    let mut took: Vec<Duration> = Vec::new();
    let start = clock();
    loop {
        let now = clock();
        let over = now - start >= time;
        while !over && flying.len() < case.depth {
            let itt = client.submit(lun, cdb(case, &mut random), &payload, into);
            flying.insert(itt, now);
        }
        if flying.is_empty() {
            break;
        }
        client.flush()?;
        let (itt, status) = client.response()?;
        if status != 0 {
            return Err(broken(format!("a command ended with status {status}")));
        }
        took.extend(flying.remove(&itt).map(|begun| begun.elapsed()));
    }
    let seconds = start.elapsed().as_secs_f64();
    took.sort_unstable();
    let part = |hundredths: usize| took[(took.len() - 1) * hundredths / 100].as_secs_f64() * 1e6;
    Ok(Figures {
        commands: u64::try_from(took.len()).expect("a length fits 64 bits"),
        seconds,
        p50_micros: part(50),
        p99_micros: part(99),
    })
}

/// Writes the whole of a unit once, so that reads find blocks.
///
/// # Errors
/// As [`run`].
pub fn fill(address: &str, target: &str, lun: u8, lun_bytes: u64) -> io::Result<()> {
    const BYTES: u32 = 64 << 10;
    let mut client = Client::log_in(address, target)?;
    client.submit(lun, [0; 16], &Buf::empty(), 0);
    client.response()?;
    let payload = Buf::copy_of(&vec![0x5A; BYTES as usize]);
    let count = u32::try_from(lun_bytes / u64::from(BYTES)).expect("a small unit");
    for place in 0..count {
        let mut cdb = [0; 16];
        cdb[0] = 0x2a;
        cdb[2..6].copy_from_slice(&(place * (BYTES / 512)).to_be_bytes());
        cdb[8] = 128;
        client.submit(lun, cdb, &payload, 0);
        match client.response()? {
            (_, 0) => {}
            (_, status) => return Err(broken(format!("a write ended with status {status}"))),
        }
    }
    Ok(())
}
