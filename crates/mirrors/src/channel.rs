//! TLS over one connection, as `cluster` sends and receives over it.
//!
//! ```text
//!   pieces of frames --encrypted into records, 16 KiB each--> one vectored send
//!   one receive of 64 KiB --> records, decrypted in place --> the place where the frame stays
//! ```
//!
//! **Contract.** What was encrypted is acknowledged as sent when all of it has gone to the
//! connection, and not before: until then whoever sends is woken, and nothing is left behind here
//! that nobody would be woken for.
//!
//! **Failure model.** Once anything has failed, everything fails. An end without TLS's own word for
//! it is an end: `peer` says good-bye in frames, and repeats what was not acknowledged.

use cluster::Channel;
use env::Stream;
use membership::NodeStream;
use peer::Transmit;
use replica::NodeSlot;
use std::cell::RefCell;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// What is encrypted for one send, in bytes: four records. They are in the processor's cache when
/// they are sent. With 256 KiB a sender took twice the time: the allocator of glibc gives what is
/// free above 128 KiB at its end back to the system, which clears it for the next send.
const SEND_BYTES: usize = 64 << 10;

/// Pieces of it.
const PIECES_MAX: usize = 64;

/// What is received at once, in bytes.
const RECEIVE_BYTES: usize = 64 << 10;

/// A stream of TLS.
pub(crate) struct TlsChannel {
    slot: NodeSlot,
    wire: Rc<dyn Stream>,
    state: RefCell<State>,
}

struct State {
    stream: NodeStream,
    /// Bytes that are encrypted, and not acknowledged as sent.
    taken: usize,
    /// What was received and is not decrypted.
    received: Vec<u8>,
    /// Where that begins and ends.
    begin: usize,
    end: usize,
}

/// The connection at this moment, for TLS to write to.
struct Now<'a, 'b> {
    wire: &'a dyn Stream,
    cx: &'a mut Context<'b>,
}

impl Write for Now<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        match self.wire.poll_send(self.cx, pieces) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsChannel {
    pub(crate) fn new(mut stream: NodeStream) -> Self {
        stream.tls.set_buffer_limit(Some(SEND_BYTES));
        Self {
            slot: NodeSlot(stream.slot),
            wire: Rc::clone(&stream.wire),
            state: RefCell::new(State {
                stream,
                taken: 0,
                received: Vec::new(),
                begin: 0,
                end: 0,
            }),
        }
    }
}

impl State {
    /// Encrypts the next bytes; answers how many.
    fn encrypt(&mut self, waiting: &Transmit) -> io::Result<usize> {
        let mut bytes = 0;
        let mut pieces = Vec::with_capacity(PIECES_MAX);
        for piece in waiting.pieces().take(PIECES_MAX) {
            pieces.push(IoSlice::new(piece));
            bytes += piece.len();
            if bytes >= SEND_BYTES {
                break;
            }
        }
        self.stream.tls.writer().write_vectored(&pieces)
    }

    /// Sends what is encrypted.
    fn flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let NodeStream { tls, wire, .. } = &mut self.stream;
        while tls.wants_write() {
            let wire = &**wire;
            match tls.write_tls(&mut Now { wire, cx }) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Receives from the connection when all that came before is decrypted; answers how many bytes
    /// there are.
    fn fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.begin == self.end {
            self.received.resize(RECEIVE_BYTES, 0);
            (self.begin, self.end) = (0, 0);
            self.end = ready!(self.stream.wire.poll_recv(cx, &mut self.received))?;
        }
        Poll::Ready(Ok(self.end - self.begin))
    }

    /// Decrypts some of it.
    fn decrypt(&mut self) -> io::Result<()> {
        let mut rest = &self.received[self.begin..self.end];
        let tls = &mut self.stream.tls;
        tls.read_tls(&mut rest)?;
        self.begin = self.end - rest.len();
        let decrypted = tls.process_new_packets();
        decrypted.map(drop).map_err(io::Error::other)
    }
}

impl Channel for TlsChannel {
    fn poll_send(&self, cx: &mut Context<'_>, waiting: &Transmit) -> Poll<io::Result<usize>> {
        let mut state = self.state.borrow_mut();
        if state.taken == 0 {
            state.taken = state.encrypt(waiting)?;
        }
        ready!(state.flush(cx))?;
        Poll::Ready(Ok(std::mem::take(&mut state.taken)))
    }

    fn poll_receive(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.state.borrow_mut();
        loop {
            match state.stream.tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
            if ready!(state.fill(cx))? == 0 {
                return Poll::Ready(Ok(0));
            }
            let decrypted = state.decrypt();
            // New keys are answered with new keys, and what is wrong with a word of why.
            if state.stream.tls.wants_write()
                && let Poll::Ready(Err(error)) = state.flush(cx)
            {
                return Poll::Ready(Err(error));
            }
            decrypted?;
        }
    }

    fn end(&self) {
        self.wire.shutdown();
    }

    fn peer(&self) -> Option<NodeSlot> {
        Some(self.slot)
    }
}
