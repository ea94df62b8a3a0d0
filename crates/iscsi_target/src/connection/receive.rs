//! From the socket into the machine.
//!
//! Things are received in bulk into one scratch buffer per core: a system call costs more than the
//! copy of a small payload, and a copy into a buffer that is in the cache, with another one past
//! the cache from there, is not slower than the kernel's into memory that is not. The data of a
//! small write is lent from there where its volume takes payload at any address. Where much of a
//! payload is still to come it goes straight into its final buffer. What is left of a header that
//! is not whole yet waits in a few bytes of the connection's own.

use env::CoreHandle;
use iscsi::target_side::TargetConnection;
use iscsi::{Itt, Violation, Want};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use units::{Buf, Now, Slab};

/// Size of a core's scratch buffer, in bytes.
const SCRATCH_BYTES: usize = 512 << 10;

/// What is received at once where no payload is half in: as many small writes as a turn may begin,
/// so that few have to be put aside.
const COMMANDS_BYTES: usize = 256 << 10;

/// Scratch buffers beyond the one in use that may wait for their readers.
const READ_BY_OTHERS_MAX: usize = 8;

/// Payload of which more than this is still to come is received where it belongs.
const DIRECT_BYTES_MIN: usize = 128 << 10;

/// A core's scratch buffer: whoever receives uses it until the bytes are handed on, without a
/// pause.
///
/// What was received in it may be lent as payload where it lies. It is not received into again
/// before its readers are done; another buffer takes its place, and a volume that keeps many of
/// them is lent no more.
pub(super) struct Scratch {
    current: Slab,
    read_by_others: Vec<Slab>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            current: Slab::zeroed(SCRATCH_BYTES),
            read_by_others: Vec::new(),
        }
    }
}

impl Scratch {
    fn bytes_mut(&mut self) -> &mut [u8] {
        if self.current.bytes_mut().is_none() {
            let mut others = self.read_by_others.iter_mut();
            let next = match others.position(|slab| slab.bytes_mut().is_some()) {
                Some(free) => self.read_by_others.swap_remove(free),
                None => Slab::zeroed(SCRATCH_BYTES),
            };
            let before = std::mem::replace(&mut self.current, next);
            self.read_by_others.push(before);
        }
        self.current.bytes_mut().expect("nobody reads it")
    }

    fn lend(&mut self, range: Range<usize>) -> Option<Buf> {
        if self.read_by_others.len() >= READ_BY_OTHERS_MAX {
            self.read_by_others
                .retain_mut(|slab| slab.bytes_mut().is_none());
        }
        (self.read_by_others.len() < READ_BY_OTHERS_MAX).then(|| self.current.share(range))
    }
}

/// The receiving half of a connection.
pub(super) struct Receive {
    scratch: Rc<RefCell<Scratch>>,
    /// What lies in the scratch buffer and was not handed in yet.
    arrived: Range<usize>,
    /// The beginning of something that the machine wants whole.
    partial: Vec<u8>,
    /// When that began to come.
    since: Now,
    /// What was received and is for the connection's next turn: others have the scratch buffer
    /// meanwhile.
    packed: Vec<u8>,
}

/// What a connection that goes to another core has received and not handed in.
pub(super) struct Rest {
    partial: Vec<u8>,
    since: Now,
    packed: Vec<u8>,
}

impl Receive {
    pub(super) fn new(core: &CoreHandle) -> Self {
        Self {
            scratch: core.locals().get(),
            arrived: 0..0,
            partial: Vec::new(),
            since: Now::ZERO,
            packed: Vec::new(),
        }
    }

    /// Receives into the core's scratch buffer, when `want` comes next. What it held before is
    /// handed in.
    pub(super) fn fill<T>(&mut self, want: Want, receive: impl FnOnce(&mut [u8]) -> T) -> T {
        let room = match want {
            Want::Data { .. } | Want::Trailer { .. } => SCRATCH_BYTES,
            Want::Header { .. } | Want::Nothing => COMMANDS_BYTES,
        };
        receive(&mut self.scratch.borrow_mut().bytes_mut()[..room])
    }

    /// So many bytes were received into the scratch buffer.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.arrived = 0..bytes;
    }

    /// Nothing is left of what was received.
    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// The connection is over: what is left is of no use.
    pub(super) fn forget(&mut self) {
        self.arrived = 0..0;
    }

    /// Lends a command's immediate data where it lies, if all of it is there and `machine` takes it
    /// so.
    pub(super) fn lend_immediate(
        &mut self,
        machine: &mut TargetConnection,
        itt: Itt,
        bytes: u32,
    ) -> Option<Buf> {
        let end = self.arrived.start + bytes as usize;
        if end > self.arrived.end {
            return None;
        }
        let mut scratch = self.scratch.borrow_mut();
        let data = scratch.lend(self.arrived.start..end)?;
        let received = &scratch.current.bytes()[self.arrived.clone()];
        self.arrived.start += machine.take_immediate(itt, bytes, received)?;
        Some(data)
    }

    /// When the first byte was there of what is handed in at `now`.
    pub(super) fn first_byte(&self, now: Now) -> Now {
        if self.partial.is_empty() {
            now
        } else {
            self.since
        }
    }

    /// Puts what is left of what was received aside.
    pub(super) fn pack(&mut self) {
        let scratch = self.scratch.borrow();
        let rest = &scratch.current.bytes()[self.arrived.clone()];
        self.packed.extend_from_slice(rest);
        self.arrived = 0..0;
    }

    /// Brings it back into the scratch buffer; `false` where there is nothing.
    pub(super) fn unpack(&mut self) -> bool {
        let packed = std::mem::take(&mut self.packed);
        if packed.is_empty() {
            return false;
        }
        let mut scratch = self.scratch.borrow_mut();
        scratch.bytes_mut()[..packed.len()].copy_from_slice(&packed);
        drop(scratch);
        self.filled(packed.len());
        true
    }

    /// All that has come and was not handed in, for a connection that goes to another core.
    pub(super) fn take_rest(&mut self) -> Rest {
        Rest {
            partial: std::mem::take(&mut self.partial),
            since: self.since,
            packed: std::mem::take(&mut self.packed),
        }
    }

    /// The same, where it arrives.
    pub(super) fn put_rest(&mut self, rest: Rest) {
        self.partial = rest.partial;
        self.since = rest.since;
        self.packed = rest.packed;
    }

    /// The rest of a payload is large enough to be received where it belongs.
    pub(super) fn is_direct(want: Want) -> bool {
        matches!(want, Want::Data { bytes } if bytes > DIRECT_BYTES_MIN)
    }

    /// Hands in the next thing that the machine wants: a header, a piece of payload, or a trailer.
    /// The owner handles events after each, so that a command can name its buffer before its data
    /// comes.
    pub(super) fn step(
        &mut self,
        machine: &mut TargetConnection,
        now: Now,
    ) -> Result<(), Violation> {
        let scratch = Rc::clone(&self.scratch);
        let scratch = scratch.borrow();
        let bytes = &scratch.current.bytes()[self.arrived.clone()];
        match machine.want() {
            Want::Nothing => {
                self.forget();
                Ok(())
            }
            Want::Data { .. } => {
                self.arrived.start += machine.receive_data(bytes);
                Ok(())
            }
            Want::Header { bytes: wanted } => self.whole(now, bytes, wanted, |piece| {
                machine.receive_header(now, piece)
            }),
            Want::Trailer { bytes: wanted } => self.whole(now, bytes, wanted, |piece| {
                machine.receive_trailer(now, piece)
            }),
        }
    }

    /// Hands in exactly `wanted` bytes once they are all there.
    fn whole(
        &mut self,
        now: Now,
        bytes: &[u8],
        wanted: usize,
        hand_in: impl FnOnce(&[u8]) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        if self.partial.is_empty() && bytes.len() >= wanted {
            self.arrived.start += wanted;
            return hand_in(&bytes[..wanted]);
        }
        self.since = self.first_byte(now);
        let missing = (wanted - self.partial.len()).min(bytes.len());
        self.arrived.start += missing;
        self.partial.extend_from_slice(&bytes[..missing]);
        if self.partial.len() < wanted {
            return Ok(());
        }
        let result = hand_in(&self.partial);
        self.partial.clear();
        result
    }
}
