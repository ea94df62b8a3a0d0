//! From the socket into the machine.
//!
//! Small things are received in bulk into one scratch buffer per core and copied from there: for payloads up
//! to 16 KiB a system call costs more than the copy. The rest of a larger payload goes straight into its final
//! buffer. What is left of a header that is not whole yet waits in a few bytes of the connection's own.

use env::{CoreHandle, Stream};
use iscsi::target::TargetConnection;
use iscsi::{Violation, Want};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use units::Now;

/// Size of a core's scratch buffer, in bytes.
const SCRATCH_BYTES: usize = 256 << 10;

/// Payload of which more than this is still to come is received where it belongs.
const DIRECT_BYTES_MIN: usize = 16 << 10;

/// A core's scratch buffer: whoever receives uses it until the bytes are handed on, without a pause.
pub(super) struct Scratch(RefCell<Box<[u8]>>);

impl Default for Scratch {
    fn default() -> Self {
        Self(RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()))
    }
}

/// What became of a look at the socket.
pub(super) enum Received {
    /// Bytes were handed in; there may be more at once.
    Bytes,
    /// The peer has closed.
    End,
    /// The socket failed.
    Failed(io::Error),
    /// The peer broke the protocol; the machine has said what is to be sent before the end.
    Violation(Violation),
}

/// The receiving half of a connection.
pub(super) struct Receive {
    scratch: Rc<Scratch>,
    /// The beginning of something that the machine wants whole.
    partial: Vec<u8>,
}

impl Receive {
    pub(super) fn new(core: &CoreHandle) -> Self {
        Self {
            scratch: core.locals().get(),
            partial: Vec::new(),
        }
    }

    /// Receives once and hands everything to the machine.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &dyn Stream,
        machine: &mut TargetConnection,
        now: Now,
    ) -> Poll<Received> {
        let received = match machine.want() {
            Want::Nothing => return Poll::Pending,
            Want::Data { bytes } if bytes > DIRECT_BYTES_MIN => {
                let received = stream.poll_recv(cx, machine.data_chunk());
                if let Poll::Ready(Ok(n)) = received
                    && n > 0
                {
                    machine.data_filled(n);
                    return Poll::Ready(Received::Bytes);
                }
                received
            }
            Want::Data { .. } | Want::Header { .. } | Want::Trailer { .. } => {
                let scratch = Rc::clone(&self.scratch);
                let mut scratch = scratch.0.borrow_mut();
                let received = stream.poll_recv(cx, &mut scratch);
                if let Poll::Ready(Ok(n)) = received
                    && n > 0
                {
                    return Poll::Ready(match self.hand_in(machine, now, &scratch[..n]) {
                        Ok(()) => Received::Bytes,
                        Err(violation) => Received::Violation(violation),
                    });
                }
                received
            }
        };
        received.map(|received| match received {
            Ok(_) => Received::End,
            Err(error) => Received::Failed(error),
        })
    }

    fn hand_in(
        &mut self,
        machine: &mut TargetConnection,
        now: Now,
        mut bytes: &[u8],
    ) -> Result<(), Violation> {
        while !bytes.is_empty() {
            match machine.want() {
                Want::Nothing => return Ok(()),
                Want::Data { .. } => {
                    let chunk = machine.data_chunk();
                    let n = chunk.len().min(bytes.len());
                    chunk[..n].copy_from_slice(&bytes[..n]);
                    machine.data_filled(n);
                    bytes = &bytes[n..];
                }
                Want::Header { bytes: wanted } => {
                    self.whole(&mut bytes, wanted, |piece| {
                        machine.receive_header(now, piece)
                    })?;
                }
                Want::Trailer { bytes: wanted } => {
                    self.whole(&mut bytes, wanted, |piece| {
                        machine.receive_trailer(now, piece)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Hands in exactly `wanted` bytes once they are all there.
    fn whole(
        &mut self,
        bytes: &mut &[u8],
        wanted: usize,
        hand_in: impl FnOnce(&[u8]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        if self.partial.is_empty() && bytes.len() >= wanted {
            let (piece, rest) = bytes.split_at(wanted);
            *bytes = rest;
            return hand_in(piece);
        }
        let missing = (wanted - self.partial.len()).min(bytes.len());
        let (piece, rest) = bytes.split_at(missing);
        *bytes = rest;
        self.partial.extend_from_slice(piece);
        if self.partial.len() < wanted {
            return Ok(());
        }
        let result = hand_in(&self.partial);
        self.partial.clear();
        result
    }
}
