//! A server that exchanges the same bytes as a target and does nothing else: the floor of every
//! figure.
//!
//! One thread, raw epoll, one bulk receive and one vectored send a wake-up, a store as large as the
//! unit. Large writes are received straight into the store, small ones in bulk and copied (the same
//! threshold as the target's). A login is answered by echoing what is offered; commands other than
//! READ and WRITE (10, 16) end with GOOD. It trusts its client: it is a measuring instrument, never
//! a product.

use rustix::event::epoll;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use units::Slab;

/// Bulk receive, in bytes.
const RECEIVE_BYTES: usize = 512 << 10;
/// Payload of which more is to come is received where it belongs.
const DIRECT_BYTES_MIN: usize = 16 << 10;
/// What [`iscsi::Offer`] of target and client lead to.
const SEGMENT_BYTES_MAX: usize = 256 << 10;
/// Commands that a session may have.
const WINDOW: u32 = 512;
/// Pieces of a vectored send (IOV_MAX).
const PIECES_MAX: usize = 1024;
const HEADER: usize = 48;
/// The store is never lent.
const OURS: &str = "nobody reads it";
/// The listener's place among the events.
const LISTENER: u64 = u64::MAX;

/// One PDU on its way out: a header and a part of the store, or of a login's text.
struct Out {
    header: [u8; HEADER],
    from: usize,
    len: usize,
    text: Vec<u8>,
}

/// Payload that is coming in.
#[derive(Clone, Copy)]
struct Payload {
    /// Where in the store.
    at: usize,
    left: usize,
    /// The task that is whole after it.
    answer: Option<u32>,
}

/// A write whose data was asked for.
#[derive(Clone, Copy)]
struct Asked {
    at: usize,
    total: usize,
}

struct Connection {
    socket: TcpStream,
    held: Vec<u8>,
    payload: Option<Payload>,
    asked: BTreeMap<u32, Asked>,
    out: VecDeque<Out>,
    /// Bytes of the first PDU that are gone.
    front_sent: usize,
    stat_sn: u32,
    exp_cmd_sn: u32,
    waits_to_send: bool,
    over: bool,
}

struct Server {
    store: Slab,
    block: usize,
    buffer: Vec<u8>,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn be_24(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2])
}

fn small(value: usize) -> u32 {
    u32::try_from(value).expect("lengths of the wire fit 32 bits")
}

impl Connection {
    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            held: Vec::new(),
            payload: None,
            asked: BTreeMap::new(),
            out: VecDeque::new(),
            front_sent: 0,
            stat_sn: 1,
            exp_cmd_sn: 1,
            waits_to_send: false,
            over: false,
        }
    }

    /// A header with the numbers that every answer has.
    fn header(&mut self, opcode: u8, flags: u8, itt: u32, status: bool) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        (header[0], header[1]) = (opcode, flags);
        header[16..20].copy_from_slice(&itt.to_be_bytes());
        header[20..24].copy_from_slice(&u32::MAX.to_be_bytes());
        header[24..28].copy_from_slice(&self.stat_sn.to_be_bytes());
        header[28..32].copy_from_slice(&self.exp_cmd_sn.to_be_bytes());
        let max = self.exp_cmd_sn.wrapping_add(WINDOW - 1);
        header[32..36].copy_from_slice(&max.to_be_bytes());
        self.stat_sn = self.stat_sn.wrapping_add(u32::from(status));
        header
    }

    fn push(&mut self, mut header: [u8; HEADER], from: usize, len: usize) {
        header[5..8].copy_from_slice(&small(len).to_be_bytes()[1..]);
        self.out.push_back(Out {
            header,
            from,
            len,
            text: Vec::new(),
        });
    }

    fn respond(&mut self, itt: u32) {
        let mut header = self.header(0x21, 0x80, itt, true);
        header[20..24].fill(0);
        self.push(header, 0, 0);
    }

    /// Data-In PDUs, status in the last.
    fn read(&mut self, itt: u32, at: usize, total: usize) {
        let mut done = 0;
        let mut number = 0u32;
        while done < total {
            let len = SEGMENT_BYTES_MAX.min(total - done);
            let last = done + len == total;
            let mut header = self.header(0x25, if last { 0x81 } else { 0 }, itt, last);
            if !last {
                header[24..28].fill(0);
            }
            header[36..40].copy_from_slice(&number.to_be_bytes());
            header[40..44].copy_from_slice(&small(done).to_be_bytes());
            self.push(header, at + done, len);
            done += len;
            number += 1;
        }
    }

    /// A WRITE whose first `immediate` bytes follow its header.
    fn write(&mut self, bhs: &[u8], itt: u32, at: usize, immediate: usize) {
        let total = u32_at(bhs, 20) as usize;
        let whole = immediate == total;
        if immediate > 0 {
            self.payload = Some(Payload {
                at,
                left: immediate,
                answer: whole.then_some(itt),
            });
        } else if whole {
            self.respond(itt);
        }
        if whole {
            return;
        }
        self.asked.insert(itt, Asked { at, total });
        let mut header = self.header(0x31, 0x80, itt, false);
        header[8..16].copy_from_slice(&bhs[8..16]);
        header[20..24].copy_from_slice(&itt.to_be_bytes());
        header[40..44].copy_from_slice(&small(immediate).to_be_bytes());
        header[44..48].copy_from_slice(&small(total - immediate).to_be_bytes());
        self.push(header, 0, 0);
    }

    fn data_out(&mut self, bhs: &[u8], itt: u32, len: usize) {
        let offset = u32_at(bhs, 40) as usize;
        let asked = self.asked.get(&itt).copied();
        let asked = asked.expect("the client sends what was asked for");
        let whole = offset + len == asked.total;
        if whole {
            self.asked.remove(&itt);
        }
        self.payload = Some(Payload {
            at: asked.at + offset,
            left: len,
            answer: whole.then_some(itt),
        });
    }

    fn payload_came(&mut self, n: usize) {
        let payload = self.payload.as_mut().expect("payload is coming in");
        (payload.at, payload.left) = (payload.at + n, payload.left - n);
        if payload.left == 0 {
            let answer = self.payload.take().and_then(|payload| payload.answer);
            if let Some(itt) = answer {
                self.respond(itt);
            }
        }
    }

    /// Answers a login with what was offered.
    fn login(&mut self, bhs: &[u8], text: &[u8]) {
        let mut answer = Vec::new();
        let mut say = |key: &str, value: &str| {
            answer.extend_from_slice(format!("{key}={value}\0").as_bytes());
        };
        let text = String::from_utf8_lossy(text);
        for (key, value) in text.split('\0').filter_map(|pair| pair.split_once('=')) {
            match key {
                "InitiatorName" | "InitiatorAlias" | "SessionType" => {}
                "TargetName" => say("TargetPortalGroupTag", "1"),
                "AuthMethod" | "HeaderDigest" | "DataDigest" => say(key, "None"),
                "MaxRecvDataSegmentLength" => say(key, &SEGMENT_BYTES_MAX.to_string()),
                _ => say(key, value),
            }
        }
        self.exp_cmd_sn = u32_at(bhs, 24);
        let itt = u32_at(bhs, 16);
        let mut header = self.header(0x23, bhs[1], itt, true);
        header[8..14].copy_from_slice(&bhs[8..14]);
        header[15] = 1;
        header[20..24].fill(0);
        header[5..8].copy_from_slice(&small(answer.len()).to_be_bytes()[1..]);
        answer.resize(answer.len().next_multiple_of(4), 0);
        self.out.push_back(Out {
            header,
            from: 0,
            len: 0,
            text: answer,
        });
    }

    /// One vectored send; true where nothing waits any more.
    fn send(&mut self, store: &[u8]) -> io::Result<bool> {
        while !self.out.is_empty() {
            let mut skip = self.front_sent;
            let mut pieces: smallvec::SmallVec<[IoSlice<'_>; 128]> = smallvec::SmallVec::new();
            for out in self.out.iter().take(PIECES_MAX / 2) {
                let payload = &store[out.from..out.from + out.len];
                for piece in [&out.header[..], &out.text, payload] {
                    let cut = skip.min(piece.len());
                    skip -= cut;
                    let rest = Some(&piece[cut..]).filter(|rest| !rest.is_empty());
                    pieces.extend(rest.map(IoSlice::new));
                }
            }
            let sent = match self.socket.write_vectored(&pieces) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            };
            drop(pieces);
            self.front_sent += sent;
            while let Some(front) = self.out.front() {
                let len = HEADER + front.text.len() + front.len;
                if self.front_sent < len {
                    break;
                }
                self.front_sent -= len;
                self.out.pop_front();
            }
        }
        Ok(true)
    }
}

impl Server {
    /// A command; its header is whole.
    fn command(&mut self, connection: &mut Connection, bhs: &[u8]) {
        let (itt, immediate) = (u32_at(bhs, 16), be_24(&bhs[5..8]));
        if bhs[0] & 0x40 == 0 {
            connection.exp_cmd_sn = connection.exp_cmd_sn.wrapping_add(1);
        }
        let cdb = &bhs[32..48];
        let (lba, blocks) = match cdb[0] {
            0x28 | 0x2a => (
                u32_at(cdb, 2) as usize,
                usize::from(cdb[7]) << 8 | usize::from(cdb[8]),
            ),
            0x88 | 0x8a => (u32_at(cdb, 6) as usize, u32_at(cdb, 10) as usize),
            _ => return connection.respond(itt),
        };
        let (at, total) = (lba * self.block, blocks * self.block);
        match cdb[0] {
            0x28 | 0x88 => connection.read(itt, at, total),
            _ => connection.write(bhs, itt, at, immediate),
        }
    }

    /// Takes what it can of `bytes`; answers how many.
    fn take(&mut self, connection: &mut Connection, bytes: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if let Some(payload) = connection.payload {
                let n = payload.left.min(rest.len());
                if n == 0 {
                    return used;
                }
                self.store.bytes_mut().expect(OURS)[payload.at..payload.at + n]
                    .copy_from_slice(&rest[..n]);
                connection.payload_came(n);
                used += n;
                continue;
            }
            if rest.len() < HEADER {
                return used;
            }
            let (bhs, after) = rest.split_at(HEADER);
            let len = be_24(&bhs[5..8]);
            match bhs[0] & 0x3f {
                0x01 => self.command(connection, bhs),
                0x05 => connection.data_out(bhs, u32_at(bhs, 16), len),
                0x00 => {}
                opcode => {
                    let padded = len.next_multiple_of(4);
                    if after.len() < padded {
                        return used;
                    }
                    used += padded;
                    if opcode == 0x03 {
                        connection.login(bhs, &after[..len]);
                    } else {
                        // A logout, and whatever else ends in the same way.
                        let header = connection.header(0x26, 0x80, u32_at(bhs, 16), true);
                        connection.push(header, 0, 0);
                    }
                }
            }
            used += HEADER;
        }
    }

    /// Receives until the socket is empty, then sends once.
    fn serve(&mut self, connection: &mut Connection) -> io::Result<()> {
        loop {
            let wanted = match connection.payload {
                Some(payload) if payload.left > DIRECT_BYTES_MIN => {
                    let place = &mut self.store.bytes_mut().expect(OURS)
                        [payload.at..payload.at + payload.left];
                    let n = connection.socket.read(place);
                    let Some(n) = came(n)? else { break };
                    connection.over |= n == 0;
                    connection.payload_came(n);
                    n == payload.left
                }
                Some(_) | None => self.receive_bulk(connection)?,
            };
            if !wanted || connection.over {
                break;
            }
        }
        connection.waits_to_send = !connection.send(self.store.bytes())?;
        Ok(())
    }

    /// True where there may be more to receive.
    fn receive_bulk(&mut self, connection: &mut Connection) -> io::Result<bool> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let held = connection.held.len();
        buffer[..held].copy_from_slice(&connection.held);
        let came = came(connection.socket.read(&mut buffer[held..]));
        if let Ok(Some(n)) = came {
            connection.over |= n == 0;
            let used = self.take(connection, &buffer[..held + n]);
            connection.held.clear();
            connection.held.extend_from_slice(&buffer[used..held + n]);
        }
        let full = buffer.len() - held;
        self.buffer = buffer;
        let direct = connection.payload;
        let direct = direct.is_some_and(|payload| payload.left > DIRECT_BYTES_MIN);
        Ok(came?.is_some_and(|n| n == full || direct))
    }
}

/// `None`: nothing is there.
fn came(read: io::Result<usize>) -> io::Result<Option<usize>> {
    match read {
        Ok(n) => Ok(Some(n)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Serves a unit of `bytes` bytes in blocks of `block` bytes, until it is killed.
///
/// # Errors
/// Where it cannot listen or wait.
pub fn serve(at: SocketAddr, bytes: usize, block: usize) -> io::Result<()> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let readable = epoll::EventFlags::IN;
    epoll::add(
        &poll,
        &listener,
        epoll::EventData::new_u64(LISTENER),
        readable,
    )?;
    let mut server = Server {
        // Written once: every page, a huge one where there is, is there before the first command.
        store: Slab::zeroed(bytes),
        block,
        buffer: vec![0; RECEIVE_BYTES],
    };
    let mut connections: BTreeMap<u64, Connection> = BTreeMap::new();
    let mut events = Vec::with_capacity(64);
    let mut next = 0;
    loop {
        match epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            let number = event.data.u64();
            if number == LISTENER {
                let (socket, _) = listener.accept()?;
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)?;
                epoll::add(&poll, &socket, epoll::EventData::new_u64(next), readable)?;
                connections.insert(next, Connection::new(socket));
                next += 1;
                continue;
            }
            let Some(connection) = connections.get_mut(&number) else {
                continue;
            };
            let waited = connection.waits_to_send;
            if server.serve(connection).is_err() || connection.over {
                connections.remove(&number);
                continue;
            }
            if connection.waits_to_send != waited {
                let mut interest = readable;
                interest.set(epoll::EventFlags::OUT, connection.waits_to_send);
                let data = epoll::EventData::new_u64(number);
                epoll::modify(&poll, &connection.socket, data, interest)?;
            }
        }
    }
}
