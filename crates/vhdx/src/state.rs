//! What is known of an open image.

use crate::entry::Entry;
use crate::error::{Error, Part, contradiction};
use crate::geometry::{BITMAP_BYTES, Geometry, MIB, PAGE_BYTES};
use crate::guid::Guids;
use crate::header::Header;
use crate::log::Overlay;
use crate::metadata::{Metadata, Table};
use crate::pages::Pages;
use crate::regions::{Area, Tables};
use crate::space::Space;
use formats::Damage;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What something cannot go on without.
pub(crate) enum Need {
    /// This page of the file.
    Page(u64),
    /// It cannot.
    Fail(Error),
}

impl From<Error> for Need {
    fn from(error: Error) -> Self {
        Self::Fail(error)
    }
}

/// How far whoever opened the image has taken it over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Claim {
    /// Nothing in the file is changed.
    None,
    /// The file carries our identifier of writers, and a log of ours.
    File,
    /// The content has a new identifier, too.
    Content,
}

pub(crate) struct State {
    pub(crate) header: Header,
    /// At which of its places the current header is.
    pub(crate) header_place: usize,
    /// What is wrong with the copies of the header.
    pub(crate) header_damage: [Option<Damage>; 2],
    pub(crate) tables: Tables,
    pub(crate) table: Table,
    pub(crate) metadata: Metadata,
    /// The file's length, as it will be when the log is replayed.
    pub(crate) file_bytes: u64,
    /// Its length as it is.
    pub(crate) real_bytes: u64,
    pub(crate) pages: Pages,
    /// What the log says, where nobody may write it to its place.
    pub(crate) overlay: Overlay,
    /// Whoever may write has these.
    pub(crate) guids: Option<Guids>,
    pub(crate) claim: Claim,
    /// The number of the next entry of the log, and the byte of the log where it goes.
    pub(crate) log_sequence: u64,
    pub(crate) log_next: u64,
    pub(crate) space: Space,
    pub(crate) is_broken: bool,
}

impl State {
    pub(crate) const fn geometry(&self) -> Geometry {
        self.metadata.geometry
    }

    pub(crate) const fn has_parent(&self) -> bool {
        self.metadata.locator.is_some()
    }

    pub(crate) fn log_area(&self) -> Area {
        Area {
            at: self.header.log_place,
            bytes: self.header.log_bytes.into(),
        }
    }

    /// 8 bytes of the table.
    pub(crate) fn bits(&mut self, at_in_table: u64) -> Result<u64, Need> {
        let at = self.tables.bat.at + at_in_table;
        let page = at - at % PAGE_BYTES;
        let from = usize::try_from(at % PAGE_BYTES).expect("within a page");
        let bytes = self.pages.get(page).ok_or(Need::Page(page))?;
        let bytes: [u8; 8] = std::array::from_fn(|byte| bytes[from + byte]);
        Ok(u64::from_le_bytes(bytes))
    }

    /// The entry of a payload block; where it has a place, that is one where a block may be.
    pub(crate) fn entry(&mut self, block: u64) -> Result<Entry, Need> {
        let entry = Entry::decode(self.bits(self.geometry().payload_entry(block))?);
        let bad = |why| Need::Fail(Error::BadBlock { block, why });
        if entry.state.has_place() {
            // Some writers cut the last block off where the disk ends.
            let bytes = self.geometry().bytes_of(block);
            self.check_place(entry.place, bytes).map_err(bad)?;
        }
        match entry.state {
            crate::State::Bad => Err(bad("its state is 4, which means nothing")),
            crate::State::Partial if !self.has_parent() => {
                Err(bad("it is partially present, and there is no parent"))
            }
            crate::State::Partial
            | crate::State::Present
            | crate::State::NotPresent
            | crate::State::Undefined
            | crate::State::Zero
            | crate::State::Unmapped
            | crate::State::OldUnmapped => Ok(entry),
        }
    }

    /// Where the bitmap of a block's chunk is.
    pub(crate) fn bitmap(&mut self, block: u64) -> Result<Option<u64>, Need> {
        let entry = Entry::decode(self.bits(self.geometry().bitmap_entry(block))?);
        let bad = |why| Need::Fail(Error::BadBlock { block, why });
        match entry.state {
            crate::State::NotPresent => Ok(None),
            crate::State::Present => {
                self.check_place(entry.place, BITMAP_BYTES).map_err(bad)?;
                Ok(Some(entry.place))
            }
            crate::State::Bad
            | crate::State::Partial
            | crate::State::Undefined
            | crate::State::Zero
            | crate::State::Unmapped
            | crate::State::OldUnmapped => {
                let what = "a state that bitmaps do not have";
                Err(Need::Fail(contradiction(Part::Bitmap, what)))
            }
        }
    }

    /// A block may be there.
    pub(crate) fn check_place(&self, place: u64, bytes: u64) -> Result<(), &'static str> {
        let area = Area { at: place, bytes };
        if place < MIB || area.meets(&self.log_area()) {
            return Err("its place is that of headers or of the log");
        }
        if self
            .tables
            .regions
            .0
            .iter()
            .any(|region| region.area.meets(&area))
        {
            return Err("its place is that of a region");
        }
        if area.end() > self.file_bytes {
            return Err("it is beyond the end of the file: the file was cut off");
        }
        Ok(())
    }

    pub(crate) fn set_bits(&mut self, at_in_table: u64, entry: Entry) {
        let at = self.tables.bat.at + at_in_table;
        self.pages.patch(at, &entry.encode().to_le_bytes());
    }
}

/// The state, which nobody holds while he waits for something.
pub(crate) struct Shared(Mutex<State>);

impl Shared {
    pub(crate) const fn new(state: State) -> Self {
        Self(Mutex::new(state))
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Places in a file that are free, and not used again yet.
#[derive(Debug)]
pub struct Resting(Vec<(u64, u64)>);

impl Resting {
    /// There are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// An open image: one file. For the sectors of a differencing image that are not in it, its
/// parents are needed: [`Chain`](crate::Chain).
///
/// Of the operations that change it, one is under way at a time; what changes nothing may go on
/// meanwhile, on any thread.
pub struct Image {
    pub(crate) state: Shared,
    /// Which file of its operations it is.
    pub(crate) file: usize,
}

impl Image {
    /// What kind of disk it has.
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        self.state.get().metadata.clone()
    }

    /// Sizes.
    #[must_use]
    pub fn geometry(&self) -> Geometry {
        self.state.get().geometry()
    }

    /// The header that counts.
    #[must_use]
    pub fn header(&self) -> Header {
        self.state.get().header
    }

    /// The file's length, as far as this image knows.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.state.get().file_bytes
    }

    /// The file carries our identifier of writers.
    #[must_use]
    pub fn is_claimed(&self) -> bool {
        self.state.get().claim != Claim::None
    }

    /// Places that blocks gave back are not used again before [`Self::reuse`], for whoever reads
    /// and
    /// writes at places meanwhile.
    pub fn let_rest(&self) {
        self.state.get().space.let_rest();
    }

    /// The places that rest since the last call and that the log has as free.
    #[must_use]
    pub fn resting(&self) -> Resting {
        Resting(self.state.get().space.take_resting())
    }

    /// Nobody reads or writes there any more who found them before they were given back.
    pub fn reuse(&self, places: Resting) {
        self.state.get().space.reuse(places.0);
    }

    /// The log holds what is not in its place, and nobody may write it there.
    #[must_use]
    pub fn is_replayed_in_memory(&self) -> bool {
        !self.state.get().overlay.is_empty()
    }
}
