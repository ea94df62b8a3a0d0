//! From the socket into the machine.
//!
//! Small things are received in bulk into one scratch buffer per core and copied from there: for payloads up
//! to 16 KiB a system call costs more than the copy. The rest of a larger payload goes straight into its final
//! buffer. What is left of a header that is not whole yet waits in a few bytes of the connection's own.

use env::CoreHandle;
use iscsi::target::TargetConnection;
use iscsi::{Violation, Want};
use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use units::Now;

/// Size of a core's scratch buffer, in bytes.
const SCRATCH_BYTES: usize = 256 << 10;

/// Payload of which more than this is still to come is received where it belongs.
const DIRECT_BYTES_MIN: usize = 16 << 10;

/// A core's scratch buffer: whoever receives uses it until the bytes are handed on, without a pause.
pub(super) struct Scratch(RefCell<Box<[u8]>>);

impl Scratch {
    pub(super) fn borrow(&self) -> RefMut<'_, Box<[u8]>> {
        self.0.borrow_mut()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self(RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()))
    }
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

    /// The core's scratch buffer.
    pub(super) fn scratch(&self) -> Rc<Scratch> {
        Rc::clone(&self.scratch)
    }

    /// The rest of a payload is large enough to be received where it belongs.
    pub(super) fn is_direct(want: Want) -> bool {
        matches!(want, Want::Data { bytes } if bytes > DIRECT_BYTES_MIN)
    }

    /// Hands in the next thing that the machine wants: a header, a piece of payload, or a trailer. The owner
    /// looks at events after each, so that a command can name its buffer before its data comes.
    pub(super) fn step(
        &mut self,
        machine: &mut TargetConnection,
        now: Now,
        bytes: &mut &[u8],
    ) -> Result<(), Violation> {
        match machine.want() {
            Want::Nothing => {
                *bytes = &[];
                Ok(())
            }
            Want::Data { .. } => {
                let chunk = machine.data_chunk();
                let n = chunk.len().min(bytes.len());
                let (piece, rest) = bytes.split_at(n);
                chunk[..n].copy_from_slice(piece);
                machine.data_filled(n);
                *bytes = rest;
                Ok(())
            }
            Want::Header { bytes: wanted } => {
                self.whole(bytes, wanted, |piece| machine.receive_header(now, piece))
            }
            Want::Trailer { bytes: wanted } => {
                self.whole(bytes, wanted, |piece| machine.receive_trailer(now, piece))
            }
        }
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
