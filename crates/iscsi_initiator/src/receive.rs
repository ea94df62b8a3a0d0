//! From the socket into the machine: small things in bulk through one scratch buffer of the core,
//! large payloads straight into the buffer of their command.

use env::CoreHandle;
use iscsi::initiator_side::InitiatorConnection;
use iscsi::{Violation, Want};
use std::cell::RefCell;
use std::rc::Rc;
use units::Now;

/// Size of a core's scratch buffer, in bytes.
const SCRATCH_BYTES: usize = 256 << 10;

/// Payload of which more than this is still to come is received where it belongs: below, a system
/// call costs more than the copy.
const DIRECT_BYTES_MIN: usize = 16 << 10;

/// A core's scratch buffer: whoever receives uses it until the bytes are handed on, without a
/// pause.
pub(crate) struct Scratch(pub(crate) RefCell<Box<[u8]>>);

impl Default for Scratch {
    fn default() -> Self {
        Self(RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()))
    }
}

/// The receiving half of a connection.
pub(crate) struct Receive {
    pub(crate) scratch: Rc<Scratch>,
    /// The beginning of something that the machine wants whole.
    partial: Vec<u8>,
}

impl Receive {
    pub(crate) fn new(core: &CoreHandle) -> Self {
        Self {
            scratch: core.locals().get(),
            partial: Vec::new(),
        }
    }

    /// The rest of a payload is large enough to be received where it belongs.
    pub(crate) fn is_direct(want: Want) -> bool {
        matches!(want, Want::Data { bytes } if bytes > DIRECT_BYTES_MIN)
    }

    /// Hands everything in.
    pub(crate) fn hand_in(
        &mut self,
        machine: &mut InitiatorConnection,
        now: Now,
        mut bytes: &[u8],
    ) -> Result<(), Violation> {
        while !bytes.is_empty() {
            match machine.want() {
                Want::Nothing => return Ok(()),
                Want::Data { .. } => {
                    let chunk = machine.data_chunk();
                    let n = chunk.len().min(bytes.len());
                    let (piece, rest) = bytes.split_at(n);
                    chunk[..n].copy_from_slice(piece);
                    machine.data_filled(n);
                    bytes = rest;
                }
                Want::Header { bytes: wanted } => {
                    bytes =
                        self.whole(bytes, wanted, |piece| machine.receive_header(now, piece))?;
                }
                Want::Trailer { bytes: wanted } => {
                    bytes =
                        self.whole(bytes, wanted, |piece| machine.receive_trailer(now, piece))?;
                }
            }
        }
        Ok(())
    }

    /// Hands in exactly `wanted` bytes once they are all there; answers what is left.
    fn whole<'a>(
        &mut self,
        bytes: &'a [u8],
        wanted: usize,
        hand_in: impl FnOnce(&[u8]) -> Result<(), Violation>,
    ) -> Result<&'a [u8], Violation> {
        if self.partial.is_empty() && bytes.len() >= wanted {
            let (piece, rest) = bytes.split_at(wanted);
            hand_in(piece)?;
            return Ok(rest);
        }
        let missing = (wanted - self.partial.len()).min(bytes.len());
        let (piece, rest) = bytes.split_at(missing);
        self.partial.extend_from_slice(piece);
        if self.partial.len() == wanted {
            let result = hand_in(&self.partial);
            self.partial.clear();
            result?;
        }
        Ok(rest)
    }
}
