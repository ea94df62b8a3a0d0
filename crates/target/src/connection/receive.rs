//! From the socket into the machine.
//!
//! Small things are received in bulk into one scratch buffer per core: for payloads up to 16 KiB a system call costs
//! more than a copy. The data of a write is lent from there where its volume takes payload at any address, and copied
//! where it does not. The rest of a larger payload goes straight into its final
//! buffer. What is left of a header that is not whole yet waits in a few bytes of the connection's own.

use env::CoreHandle;
use iscsi::target::TargetConnection;
use iscsi::{Violation, Want};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use units::{Buf, Now, Slab};

/// Size of a core's scratch buffer, in bytes.
const SCRATCH_BYTES: usize = 256 << 10;

/// Scratch buffers beyond the one in use that may wait for their readers.
const READ_BY_OTHERS_MAX: usize = 8;

/// Payload of which more than this is still to come is received where it belongs.
const DIRECT_BYTES_MIN: usize = 16 << 10;

/// A core's scratch buffer: whoever receives uses it until the bytes are handed on, without a pause.
///
/// What was received in it may be lent as payload where it lies. It is not received into again before its readers
/// are done; another buffer takes its place, and a volume that keeps many of them is lent no more.
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
    /// What was received and is for the connection's next turn: others have the scratch buffer meanwhile.
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

    /// Receives into the core's scratch buffer. What it held before is handed in.
    pub(super) fn fill<T>(&mut self, receive: impl FnOnce(&mut [u8]) -> T) -> T {
        receive(self.scratch.borrow_mut().bytes_mut())
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

    /// The next bytes where they lie, if they are all there; [`lent`](Self::lent) takes them off.
    pub(super) fn peek(&self, bytes: usize) -> Option<Buf> {
        let range = self.arrived.start..self.arrived.start + bytes;
        let all = range.end <= self.arrived.end;
        all.then(|| self.scratch.borrow_mut().lend(range)).flatten()
    }

    /// The next bytes need not be handed in any more.
    pub(super) fn lent(&mut self, bytes: usize) {
        self.arrived.start += bytes;
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
        self.fill(|scratch| scratch[..packed.len()].copy_from_slice(&packed));
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

    /// Hands in the next thing that the machine wants: a header, a piece of payload, or a trailer. The owner
    /// looks at events after each, so that a command can name its buffer before its data comes.
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
                let chunk = machine.data_chunk();
                let n = chunk.len().min(bytes.len());
                chunk[..n].copy_from_slice(&bytes[..n]);
                machine.data_filled(n);
                self.arrived.start += n;
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
