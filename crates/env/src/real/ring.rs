//! The disk engine of one core: an io_uring of its own, driven from the core's event loop.
//!
//! ```text
//!   submit --> submission queue --(every few, and at the end of the turn)--> kernel
//!   answer <-- slot <-- completion queue <--(eventfd wakes the loop)-----------'
//! ```
//!
//! **Contract.** What is submitted in one turn of the event loop goes to the kernel a few at a
//! time, the rest with one system call at its end. Answers may come in any order.
//!
//! **Invariants.** I1: a slot owns its transfer (file, memory, pieces) from the moment the kernel
//! may see it until the kernel's last answer for it, whether anybody waits or not; a ring that must
//! go with answers outstanding leaks those slots rather than free their memory. I2: a slot has at
//! most one entry in the kernel.

#![expect(
    unsafe_code,
    reason = "io_uring takes raw addresses of memory that the slots keep alive"
)]

use super::notices::Notices;
use super::readable::readable;
use super::registered::{FilePlace, Owner, Registered};
use super::transfer::{Memory, PIECES_MAX, Step, Transfer};
use crate::file::{Durable, FileDone};
use io_uring::{IoUring, Probe, cqueue, opcode, squeue, types};
use rustix::event::EventfdFlags;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::task::{Context, Poll, Waker};
use tokio::io::unix::AsyncFd;

/// Entries of the submission queue: what one turn can submit with one system call.
const ENTRIES: u32 = 256;

/// Entries that are ready beyond which the kernel gets them at once: the disk works while the turn
/// goes on.
const READY_MAX: usize = 8;

/// Entries of the completion queue: what may be in the kernel at once.
const IN_KERNEL_MAX: usize = 4096;

/// Kernel threads that may hang in buffered I/O and syncs, per core.
const KERNEL_WORKERS_MAX: u32 = 64;

/// Where Linux keeps the flag for a stable write (RWF_DSYNC).
const RWF_DSYNC: i32 = 2;

/// See the module.
pub(super) struct Ring {
    uring: RefCell<IoUring>,
    event: AsyncFd<OwnedFd>,
    slots: RefCell<Slots>,
    registered: RefCell<Registered>,
    driver: RefCell<Option<Waker>>,
    woken: Cell<bool>,
    notices: Arc<Notices>,
}

#[derive(Default)]
struct Slots {
    all: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose next entry is not in the submission queue yet.
    ready: VecDeque<u32>,
    in_kernel: usize,
}

enum Slot {
    Free,
    Busy(Busy),
    /// The kernel is done; whoever waits has not polled yet.
    Done(io::Result<FileDone>),
}

struct Busy {
    transfer: Transfer,
    /// The file's place in the kernel's table; kept until the kernel is done.
    file: Option<Rc<FilePlace>>,
    /// The place of the memory in the kernel's table, where it is one piece.
    block: Option<u16>,
    /// What the kernel reads while it works on a transfer of several pieces.
    pieces: Vec<libc::iovec>,
    waker: Option<Waker>,
    abandoned: bool,
}

impl Ring {
    /// A ring for the calling thread, which must be the one that uses it, inside its event loop.
    ///
    /// # Errors
    /// Where the kernel refuses it, or has one that cannot do what is needed.
    pub(super) fn new(notices: Arc<Notices>) -> io::Result<Self> {
        let mut uring = set_up()?;
        check(&mut uring)?;
        let registered = Registered::new(&uring);
        let event = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        uring.submitter().register_eventfd(event.as_raw_fd())?;
        // Best effort: kernels before 5.15 keep their default number.
        let _refused = uring
            .submitter()
            .register_iowq_max_workers(&mut [KERNEL_WORKERS_MAX, 0]);
        Ok(Self {
            uring: RefCell::new(uring),
            event: readable(event)?,
            slots: RefCell::default(),
            registered: RefCell::new(registered),
            driver: RefCell::new(None),
            woken: Cell::new(false),
            notices,
        })
    }

    /// A place for a file in the kernel's table; `None` where there is none.
    pub(super) fn register(self: &Rc<Self>, file: &OwnedFd) -> Option<Rc<FilePlace>> {
        let uring = self.uring.try_borrow().ok()?;
        let owner: Weak<Self> = Rc::downgrade(self);
        let place = self.registered.borrow_mut().add_file(&uring, file, owner)?;
        Some(Rc::new(place))
    }

    /// Files and bytes of memory in the kernel's tables.
    pub(super) fn registered(&self) -> (u32, u64) {
        self.registered.borrow().amount()
    }

    /// The place of a transfer's memory, where it is one piece of a pool's.
    fn block_of(&self, memory: &mut Memory) -> Option<u16> {
        let (address, memory) = match memory {
            Memory::Read(into) => {
                let mut pieces = into.pieces_mut();
                let (first, None) = (pieces.next()?, pieces.next()) else {
                    return None;
                };
                let address = first.as_ptr().addr();
                drop(pieces);
                (address, Ok(&*into))
            }
            Memory::Write(data, _) => (data.as_contiguous()?.as_ptr().addr(), Err(&*data)),
            Memory::Sync(_) => return None,
        };
        let pin = || memory.map_or_else(|data| data.pin(), |into| into.pin());
        let uring = self.uring.try_borrow().ok()?;
        let place = self.registered.borrow_mut().block(&uring, address, pin);
        place.unwrap_or_else(|error| {
            self.notices.push(format!(
                "io_uring registers no more of the pools' memory ({error}): disks go on, at a little more processor \
                 time for each transfer; raise the limit of locked memory (LimitMEMLOCK in the systemd unit, ulimit \
                 -l) and restart"
            ));
            None
        })
    }

    /// Starts a transfer on a file that may have a place. It runs to its end even if the answer is
    /// dropped.
    pub(super) fn submit(
        self: &Rc<Self>,
        mut transfer: Transfer,
        file: Option<Rc<FilePlace>>,
    ) -> Completion {
        let block = self.block_of(&mut transfer.memory);
        let slot = self.slots.borrow_mut().insert(Busy {
            transfer,
            file,
            block,
            pieces: Vec::new(),
            waker: None,
            abandoned: false,
        });
        self.wake_driver();
        if self.slots.borrow().ready.len() >= READY_MAX
            && let Ok(mut uring) = self.uring.try_borrow_mut()
        {
            // The driver's turn sees to what the kernel refuses now.
            self.submit_ready(&mut uring);
        }
        Completion {
            ring: Rc::clone(self),
            slot: Some(slot),
        }
    }

    /// Transfers that are not done.
    pub(super) fn outstanding(&self) -> usize {
        let slots = self.slots.borrow();
        slots.in_kernel + slots.ready.len()
    }

    fn wake_driver(&self) {
        if !self.woken.replace(true)
            && let Some(driver) = self.driver.borrow().as_ref()
        {
            driver.wake_by_ref();
        }
    }

    /// Drives the ring; the core polls this for ever. It runs when something was submitted in this
    /// turn or the kernel has answered.
    pub(super) fn poll_drive(&self, cx: &mut Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        if !driver.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            *driver = Some(cx.waker().clone());
        }
        drop(driver);
        self.woken.set(false);
        // The counter is never read: epoll is edge triggered, and each answer is a new edge.
        while let Poll::Ready(Ok(mut guard)) = self.event.poll_read_ready(cx) {
            guard.clear_ready();
        }
        self.turn();
    }

    /// Submits what is ready and takes what is answered, until neither is left.
    fn turn(&self) {
        let mut uring = self.uring.borrow_mut();
        uring.completion().disable_eventfd();
        self.registered.borrow_mut().forget_files(&uring);
        loop {
            let refused = self.submit_ready(&mut uring);
            let reaped = self.reap(&mut uring);
            if reaped > 0 {
                continue;
            }
            uring.completion().enable_eventfd();
            // An answer that came while the event was off must be seen now: it will not be reported
            // again.
            fence(Ordering::SeqCst);
            if refused {
                // The kernel is out of memory or places; answers in flight will wake this up, and
                // so does the next turn.
                self.wake_driver();
                return;
            }
            let more = !self.slots.borrow().ready.is_empty()
                && self.slots.borrow().in_kernel < IN_KERNEL_MAX;
            if uring.completion().is_empty() && !more && !self.runs_late_work(&mut uring) {
                return;
            }
            uring.completion().disable_eventfd();
        }
    }

    /// Has the kernel do what it says it has left to do; answers whether that brought anything.
    ///
    /// The kernel raises its flag after it has queued the work, which may be done by then: the flag
    /// then stays up with nothing behind it until the next answer. With the event on, whatever
    /// comes from here on is reported, so that one poll is enough, and a second one could go on for
    /// ever.
    fn runs_late_work(&self, uring: &mut IoUring) -> bool {
        if !uring.submission().taskrun() {
            return false;
        }
        if self.submit_ready(uring) {
            self.wake_driver();
        }
        self.reap(uring) > 0
    }

    /// Answers whether the kernel refused for now.
    fn submit_ready(&self, uring: &mut IoUring) -> bool {
        loop {
            let mut queue = uring.submission();
            let mut slots = self.slots.borrow_mut();
            while !queue.is_full() && slots.in_kernel < IN_KERNEL_MAX {
                let Some(index) = slots.ready.pop_front() else {
                    break;
                };
                let entry = slots.entry(index);
                // SAFETY: the entry points at memory and pieces of slot `index`, and at its file,
                // which stay where they are until the kernel has answered (I1).
                unsafe { queue.push(&entry) }.expect("asked just above whether it is full");
                slots.in_kernel += 1;
            }
            queue.sync();
            let idle = queue.is_empty() && !queue.taskrun() && !queue.cq_overflow();
            drop(queue);
            drop(slots);
            if idle {
                return false;
            }
            match uring.submit() {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return true,
            }
            let slots = self.slots.borrow();
            if slots.ready.is_empty() || slots.in_kernel >= IN_KERNEL_MAX {
                return false;
            }
        }
    }

    fn reap(&self, uring: &mut IoUring) -> usize {
        let mut reaped = 0;
        for answer in uring.completion() {
            reaped += 1;
            self.take(&answer);
        }
        reaped
    }

    fn take(&self, answer: &cqueue::Entry) {
        let index = u32::try_from(answer.user_data()).expect("only slot numbers are submitted");
        let result = match u32::try_from(answer.result()) {
            Ok(bytes) => Ok(bytes as usize),
            Err(_) => Err(rustix::io::Errno::from_raw_os_error(
                answer.result().wrapping_neg(),
            )),
        };
        let mut slots = self.slots.borrow_mut();
        slots.in_kernel -= 1;
        let slot = slots.get(index);
        let Slot::Busy(busy) = slot else {
            unreachable!("I2: the kernel answers a busy slot once")
        };
        let finished = match busy.transfer.advance(result) {
            Step::Again => {
                slots.ready.push_back(index);
                return;
            }
            Step::Finished(finished) => finished,
        };
        let Slot::Busy(busy) = std::mem::replace(slot, Slot::Free) else {
            unreachable!("it was busy above")
        };
        let waker = busy.waker;
        if busy.abandoned {
            slots.free.push(index);
        } else {
            *slot = Slot::Done(finished.map(|()| busy.transfer.into_done()));
        }
        drop(slots);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Owner for Ring {
    fn place_is_free(&self) {
        self.wake_driver();
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.slots.get_mut().in_kernel > 0 {
            std::mem::forget(std::mem::take(self.slots.get_mut()));
        }
    }
}

impl Slots {
    fn insert(&mut self, busy: Busy) -> u32 {
        let busy = Slot::Busy(busy);
        let index = if let Some(index) = self.free.pop() {
            *self.get(index) = busy;
            index
        } else {
            self.all.push(busy);
            u32::try_from(self.all.len() - 1).expect("memory ends before slot numbers do")
        };
        self.ready.push_back(index);
        index
    }

    fn get(&mut self, index: u32) -> &mut Slot {
        &mut self.all[index as usize]
    }

    /// The kernel's form of the rest of a transfer.
    fn entry(&mut self, index: u32) -> squeue::Entry {
        let Slot::Busy(busy) = self.get(index) else {
            unreachable!("only busy slots are ready")
        };
        busy.entry().user_data(u64::from(index))
    }
}

/// The best kind of ring that this kernel has.
fn set_up() -> io::Result<IoUring> {
    let in_kernel = u32::try_from(IN_KERNEL_MAX).expect("a small constant");
    // What has ended is then worked off when this core asks for it, without an interrupt to itself
    // (Linux 6.1).
    let deferred = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_cqsize(in_kernel)
        .build(ENTRIES);
    let unknown = |error: &io::Error| error.kind() == io::ErrorKind::InvalidInput;
    let cooperative = match deferred {
        Err(error) if unknown(&error) => IoUring::builder()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(in_kernel)
            .build(ENTRIES),
        other => return other,
    };
    // Linux 5.19 has the one above.
    match cooperative {
        Err(error) if unknown(&error) => IoUring::builder().setup_cqsize(in_kernel).build(ENTRIES),
        other => other,
    }
}

/// Tries the ring: a filter of system calls may allow to make one and refuse its use, and old
/// kernels lack operations.
fn check(uring: &mut IoUring) -> io::Result<()> {
    let mut probe = Probe::new();
    uring.submitter().register_probe(&mut probe)?;
    let needed = [
        opcode::Read::CODE,
        opcode::Readv::CODE,
        opcode::Write::CODE,
        opcode::Writev::CODE,
        opcode::Fsync::CODE,
    ];
    if !needed.iter().all(|&code| probe.is_supported(code)) {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this kernel's io_uring lacks reads and writes, which Linux 5.6 has",
        ));
    }
    // SAFETY: the entry points at nothing.
    unsafe { uring.submission().push(&opcode::Nop::new().build()) }.expect("the queue is empty");
    uring.submit_and_wait(1)?;
    uring.completion().for_each(drop);
    Ok(())
}

impl Busy {
    fn entry(&mut self) -> squeue::Entry {
        let fd = match (&self.file, &self.transfer.memory) {
            (Some(place), Memory::Read(_) | Memory::Write(..)) => {
                // It is marked as a place below.
                types::Fd(i32::try_from(place.number()).expect("a small table"))
            }
            (_, Memory::Sync(_)) => types::Fd(self.transfer.handle.to_sync().as_raw_fd()),
            (None, _) => types::Fd(self.transfer.handle.fd.as_raw_fd()),
        };
        let is_place = self.file.is_some() && !matches!(self.transfer.memory, Memory::Sync(_));
        let entry = self.entry_on(fd);
        if is_place {
            entry.flags(squeue::Flags::FIXED_FILE)
        } else {
            entry
        }
    }

    fn entry_on(&mut self, fd: types::Fd) -> squeue::Entry {
        let (at, done) = (self.transfer.at(), self.transfer.done());
        self.pieces.clear();
        match &mut self.transfer.memory {
            Memory::Read(into) => {
                let mut skip = done;
                for piece in into.pieces_mut() {
                    let cut = skip.min(piece.len());
                    skip -= cut;
                    push_piece(
                        &mut self.pieces,
                        piece[cut..].as_mut_ptr(),
                        piece.len() - cut,
                    );
                }
                match (self.pieces.as_slice(), self.block) {
                    ([one], Some(block)) => {
                        opcode::ReadFixed::new(fd, one.iov_base.cast(), len_of(one), block)
                            .offset(at)
                            .build()
                    }
                    ([one], None) => opcode::Read::new(fd, one.iov_base.cast(), len_of(one))
                        .offset(at)
                        .build(),
                    (many, _) => opcode::Readv::new(fd, many.as_ptr(), count_of(many))
                        .offset(at)
                        .build(),
                }
            }
            Memory::Write(data, durable) => {
                let flags = match durable {
                    Durable::Yes => RWF_DSYNC,
                    Durable::No => 0,
                };
                let mut skip = done;
                for piece in data.segments() {
                    let cut = skip.min(piece.len());
                    skip -= cut;
                    // The kernel only reads from it.
                    let start = piece[cut..].as_ptr().cast_mut();
                    push_piece(&mut self.pieces, start, piece.len() - cut);
                }
                match (self.pieces.as_slice(), self.block) {
                    ([one], Some(block)) => {
                        opcode::WriteFixed::new(fd, one.iov_base.cast(), len_of(one), block)
                            .offset(at)
                            .rw_flags(flags)
                            .build()
                    }
                    ([one], None) => opcode::Write::new(fd, one.iov_base.cast(), len_of(one))
                        .offset(at)
                        .rw_flags(flags)
                        .build(),
                    (many, _) => opcode::Writev::new(fd, many.as_ptr(), count_of(many))
                        .offset(at)
                        .rw_flags(flags)
                        .build(),
                }
            }
            Memory::Sync(_) => opcode::Fsync::new(fd)
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
        }
    }
}

fn push_piece(pieces: &mut Vec<libc::iovec>, start: *mut u8, len: usize) {
    if len > 0 && pieces.len() < PIECES_MAX {
        pieces.push(libc::iovec {
            iov_base: start.cast(),
            iov_len: len,
        });
    }
}

fn len_of(piece: &libc::iovec) -> u32 {
    // A longer piece is continued after a short answer.
    u32::try_from(piece.iov_len).unwrap_or(1 << 30)
}

fn count_of(pieces: &[libc::iovec]) -> u32 {
    u32::try_from(pieces.len()).expect("at most PIECES_MAX")
}

/// The answer to a transfer.
pub(super) struct Completion {
    ring: Rc<Ring>,
    slot: Option<u32>,
}

impl Future for Completion {
    type Output = io::Result<FileDone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let index = self.slot.expect("not polled after its end");
        let mut slots = self.ring.slots.borrow_mut();
        let slot = slots.get(index);
        match std::mem::replace(slot, Slot::Free) {
            Slot::Busy(mut busy) => {
                busy.waker = Some(cx.waker().clone());
                *slot = Slot::Busy(busy);
                Poll::Pending
            }
            Slot::Done(result) => {
                slots.free.push(index);
                drop(slots);
                self.slot = None;
                Poll::Ready(result)
            }
            Slot::Free => unreachable!("the slot is ours until the answer is taken"),
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        let Some(index) = self.slot else { return };
        let mut slots = self.ring.slots.borrow_mut();
        let slot = slots.get(index);
        if let Slot::Busy(busy) = slot {
            busy.abandoned = true;
            busy.waker = None;
            return;
        }
        // The memory goes back to its pool after the table is free again.
        let done = std::mem::replace(slot, Slot::Free);
        slots.free.push(index);
        drop(slots);
        drop(done);
    }
}
