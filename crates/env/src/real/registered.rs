//! What a ring has registered with the kernel: files, so that cores do not count references on one
//! place in memory for every transfer, and the pools' memory, so that it is not pinned and let go
//! for every transfer.
//!
//! **Contract.** Both are tables of places that are filled when something is first used. What finds
//! no place goes as it does without a table.
//!
//! **Invariants.** I1: memory in the table is pinned ([`Pinned`]): its addresses mean the same
//! pages for the life of the process. I2: the place of a file is given to another one only after
//! the kernel has forgotten the first.

#![expect(
    unsafe_code,
    reason = "the kernel takes raw addresses of memory, which never goes away"
)]

use io_uring::IoUring;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::rc::{Rc, Weak};
use units::Pinned;

/// Places for files. Sixteen bytes of the kernel's memory each, and more than the limit of open
/// files is refused.
const FILES_MAX: u32 = 16_384;

/// Places for memory, of 2 MiB each.
const BLOCKS_MAX: u16 = 1024;

/// What stands for no file.
const NO_FILE: RawFd = -1;

/// The ring that has the tables.
pub(super) trait Owner {
    /// A file gave its place back: the kernel has to forget it.
    fn place_is_free(&self);
}

/// The tables of a ring.
pub(super) struct Registered {
    files: Files,
    blocks: Blocks,
}

#[derive(Default)]
struct Files {
    /// Places that were never given out begin here.
    fresh: u32,
    places: u32,
    free: Vec<u32>,
    gone: Gone,
}

/// Places whose files are not used any more and that the kernel has still to forget.
type Gone = Rc<RefCell<Vec<u32>>>;

/// A file's place in a ring's table.
pub(super) struct FilePlace {
    number: u32,
    gone: Gone,
    owner: Weak<dyn Owner>,
}

#[derive(Default)]
struct Blocks {
    places: u16,
    /// Where a block begins, and its place.
    known: BTreeMap<usize, u16>,
    /// What was found last.
    last: Option<(usize, u16)>,
}

impl FilePlace {
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for FilePlace {
    fn drop(&mut self) {
        self.gone.borrow_mut().push(self.number);
        if let Some(owner) = self.owner.upgrade() {
            owner.place_is_free();
        }
    }
}

impl Registered {
    /// Empty tables, where the kernel has such (Linux 5.19).
    pub(super) fn new(uring: &IoUring) -> Self {
        let open_max = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = open_max.map_or(FILES_MAX, |most| {
            u32::try_from(most).map_or(FILES_MAX, |most| most.min(FILES_MAX))
        });
        let files = uring.submitter().register_files_sparse(most).is_ok();
        let blocks = uring.submitter().register_buffers_sparse(BLOCKS_MAX.into());
        Self {
            files: Files {
                places: if files { most } else { 0 },
                ..Files::default()
            },
            blocks: Blocks {
                places: if blocks.is_ok() { BLOCKS_MAX } else { 0 },
                ..Blocks::default()
            },
        }
    }

    /// How many files, and how many bytes of memory.
    pub(super) fn amount(&self) -> (u32, u64) {
        let free = self.files.free.len() + self.files.gone.borrow().len();
        let files = self.files.fresh - u32::try_from(free).unwrap_or(self.files.fresh);
        let bytes = self.blocks.known.len() as u64 * units::PINNED_BYTES as u64;
        (files, bytes)
    }

    /// A place for a file; `None` where there is none.
    pub(super) fn add_file(
        &mut self,
        uring: &IoUring,
        file: &OwnedFd,
        owner: Weak<dyn Owner>,
    ) -> Option<FilePlace> {
        let files = &mut self.files;
        let number = match files.free.pop() {
            Some(number) => number,
            None if files.fresh < files.places => {
                files.fresh += 1;
                files.fresh - 1
            }
            None => return None,
        };
        let submitter = uring.submitter();
        match submitter.register_files_update(number, &[file.as_raw_fd()]) {
            Ok(1) => Some(FilePlace {
                number,
                gone: Rc::clone(&files.gone),
                owner,
            }),
            Ok(_) | Err(_) => {
                files.free.push(number);
                None
            }
        }
    }

    /// Lets the kernel forget files that nobody uses any more.
    pub(super) fn forget_files(&mut self, uring: &IoUring) {
        if self.files.gone.borrow().is_empty() {
            return;
        }
        for number in self.files.gone.take() {
            // Where it is refused the file stays open, and its place taken: nothing is mixed up.
            if let Ok(1) = uring.submitter().register_files_update(number, &[NO_FILE]) {
                self.files.free.push(number);
            }
        }
    }

    /// The place of the memory at `address`; `pin` makes sure that it stays, and returns where it
    /// begins.
    ///
    /// # Errors
    /// Where the kernel refuses it. It is not asked again.
    pub(super) fn block(
        &mut self,
        uring: &IoUring,
        address: usize,
        pin: impl FnOnce() -> Option<Pinned>,
    ) -> io::Result<Option<u16>> {
        let start = address - address % units::PINNED_BYTES;
        let blocks = &mut self.blocks;
        if let Some((last, place)) = blocks.last
            && last == start
        {
            return Ok(Some(place));
        }
        if let Some(place) = blocks.known.get(&start).copied() {
            blocks.last = Some((start, place));
            return Ok(Some(place));
        }
        let Ok(place) = u16::try_from(blocks.known.len()) else {
            return Ok(None);
        };
        if place >= blocks.places {
            return Ok(None);
        }
        let Some(pinned) = pin() else {
            return Ok(None);
        };
        let memory = libc::iovec {
            iov_base: pinned.start().cast(),
            iov_len: units::PINNED_BYTES,
        };
        // SAFETY: pinned memory is mapped, and keeps its pages, for the life of the process (I1).
        let taken = unsafe {
            let submitter = uring.submitter();
            submitter.register_buffers_update(place.into(), &[memory], None)
        };
        if let Err(error) = taken {
            blocks.places = place;
            return Err(error);
        }
        blocks.known.insert(start, place);
        Ok(Some(place))
    }
}
