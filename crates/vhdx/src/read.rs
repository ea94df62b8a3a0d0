//! Where what a disk holds is.

use crate::entry::State as BlockState;
use crate::error::{Error, ParentMismatch, Part, contradiction};
use crate::geometry::PAGE_BYTES;
use crate::state::{Image, Need, State};
use crate::step::{Operation, Port};

/// Where a piece of a disk is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// It is zeroes.
    Zero,
    /// In a file: which one, and where.
    File {
        /// 0 is the image itself, 1 its parent, and so on.
        file: usize,
        /// Where in it.
        place: u64,
    },
}

/// A piece of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Bytes from the beginning of the range.
    pub at: u64,
    /// How many.
    pub bytes: u64,
    /// Zeroes, or a place in one of the files.
    pub from: Source,
}

/// Where a piece is, as one image knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Here {
    Zero,
    Place(u64),
    Parent,
}

/// Bits per page of a bitmap.
const PAGE_BITS: u64 = PAGE_BYTES * 8;

impl State {
    /// The runs of sectors of a part of a block, which are in this file or not: how many sectors,
    /// and whether.
    pub(crate) fn runs(
        &mut self,
        block: u64,
        first: u64,
        sectors: u64,
    ) -> Result<Vec<(u64, bool)>, Need> {
        let missing = contradiction(Part::Bitmap, "a partially present block has none");
        let bitmap = self.bitmap(block)?.ok_or(missing)?;
        let from = self.geometry().first_bit(block) + first;
        let (mut runs, mut bit): (Vec<(u64, bool)>, u64) = (Vec::new(), from);
        while bit < from + sectors {
            let at = bitmap + bit / PAGE_BITS * PAGE_BYTES;
            let page = self.pages.get(at).ok_or(Need::Page(at))?;
            let end = (from + sectors).min((bit / PAGE_BITS + 1) * PAGE_BITS);
            while bit < end {
                let within = bit % PAGE_BITS;
                let byte = page[usize::try_from(within / 8).expect("within a page")];
                let (is_here, step) = match byte {
                    0 | 0xff if bit % 8 == 0 && end - bit >= 8 => (byte == 0xff, 8),
                    _ => (byte >> (bit % 8) & 1 == 1, 1),
                };
                match runs.last_mut() {
                    Some((count, was_here)) if *was_here == is_here => *count += step,
                    Some(_) | None => runs.push((step, is_here)),
                }
                bit += step;
            }
        }
        Ok(runs)
    }

    /// Where a part of one block is: bytes from the part's beginning, how many, where.
    pub(crate) fn part(
        &mut self,
        block: u64,
        within: u64,
        bytes: u64,
    ) -> Result<Vec<(u64, u64, Here)>, Need> {
        let entry = self.entry(block)?;
        let whole = |here| Ok(vec![(0, bytes, here)]);
        match entry.state {
            BlockState::NotPresent if self.has_parent() => whole(Here::Parent),
            BlockState::NotPresent
            | BlockState::Undefined
            | BlockState::Zero
            | BlockState::Unmapped
            | BlockState::OldUnmapped
            | BlockState::Bad => whole(Here::Zero),
            BlockState::Present => whole(Here::Place(entry.place + within)),
            BlockState::Partial => {
                let sector = self.geometry().sector_bytes;
                let runs = self.runs(block, within / sector, bytes / sector)?;
                let mut at = 0;
                let parts = runs.into_iter().map(|(sectors, is_here)| {
                    let (start, bytes) = (at, sectors * sector);
                    at += bytes;
                    let here = if is_here {
                        Here::Place(entry.place + within + start)
                    } else {
                        Here::Parent
                    };
                    (start, bytes, here)
                });
                Ok(parts.collect())
            }
        }
    }
}

/// An image with its parents, the image first.
pub struct Chain {
    images: Vec<Image>,
}

impl Chain {
    /// Of images that were opened as files 0, 1 and so on: each the parent of the one before it.
    ///
    /// # Errors
    /// If they do not belong together.
    pub fn new(images: Vec<Image>) -> Result<Self, Error> {
        for (file, image) in images.iter().enumerate() {
            let metadata = image.metadata();
            let why = match (&metadata.locator, images.get(file + 1)) {
                (None, None) => None,
                (None, Some(_)) | (Some(_), None) => Some(ParentMismatch::Count),
                (Some(locator), Some(parent)) => {
                    let (ours, theirs) = (metadata.geometry, parent.geometry());
                    if !locator.fits(parent.header().data_write) {
                        Some(ParentMismatch::Linkage)
                    } else if ours.disk_bytes != theirs.disk_bytes {
                        Some(ParentMismatch::Size)
                    } else if ours.sector_bytes != theirs.sector_bytes {
                        Some(ParentMismatch::Sector)
                    } else {
                        None
                    }
                }
            };
            assert_eq!(
                image.file, file,
                "images are opened as files 0, 1 and so on"
            );
            if let Some(why) = why {
                return Err(Error::Parent(why));
            }
        }
        if images.is_empty() {
            return Err(Error::Parent(ParentMismatch::Count));
        }
        Ok(Self { images })
    }

    /// The image itself, which alone is changed.
    #[must_use]
    pub fn image(&self) -> &Image {
        &self.images[0]
    }

    /// The image first, then its parent, and so on.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        &self.images
    }

    /// Where a range of the disk is, if all that says so is in memory.
    ///
    /// # Errors
    /// If it is no range of the disk, or the tables are damaged there.
    pub fn lookup(&self, at: u64, bytes: u64) -> Result<Option<Vec<Piece>>, Error> {
        self.image().geometry().check(at, bytes)?;
        match self.pieces(at, bytes) {
            Ok(pieces) => Ok(Some(pieces)),
            Err((_, Need::Page(_))) => Ok(None),
            Err((_, Need::Fail(error))) => Err(error),
        }
    }

    /// Where a range of the disk is. Valid until a block of it is given back.
    #[must_use]
    pub fn read(&self, at: u64, bytes: u64) -> Operation<'_, Vec<Piece>> {
        Operation::new(async move |port: Port| {
            self.image().geometry().check(at, bytes)?;
            let mut all = Vec::new();
            for (block, within, length) in self.image().geometry().pieces(at, bytes) {
                let start = block * self.image().geometry().block_bytes + within;
                for mut piece in self.with_pages(&port, start, length).await? {
                    piece.at += start - at;
                    push(&mut all, piece);
                }
            }
            Ok(all)
        })
    }

    pub(crate) async fn with_pages(
        &self,
        port: &Port,
        at: u64,
        bytes: u64,
    ) -> Result<Vec<Piece>, Error> {
        loop {
            match self.pieces(at, bytes) {
                Ok(pieces) => return Ok(pieces),
                Err((_, Need::Fail(error))) => return Err(error),
                Err((file, Need::Page(page))) => {
                    self.images[file].load(&port.of_file(file), page).await?;
                }
            }
        }
    }

    fn pieces(&self, at: u64, bytes: u64) -> Result<Vec<Piece>, (usize, Need)> {
        let mut pieces = Vec::new();
        let mut todo = vec![(at, bytes)];
        for (file, image) in self.images.iter().enumerate() {
            let parts: Result<Vec<_>, Need> = todo
                .iter()
                .map(|(start, length)| image.state.get().parts(*start, *length))
                .collect();
            let parts = parts.map_err(|need| (file, need))?.concat();
            let of_parent = parts.iter().filter(|part| part.2 == Here::Parent);
            todo = of_parent
                .map(|(start, bytes, _)| (*start, *bytes))
                .collect();
            let here = parts.iter().filter_map(|&(start, bytes, here)| {
                let from = match here {
                    Here::Zero => Source::Zero,
                    Here::Place(place) => Source::File { file, place },
                    Here::Parent => return None,
                };
                let at = start - at;
                Some(Piece { at, bytes, from })
            });
            pieces.extend(here);
        }
        pieces.sort_by_key(|piece| piece.at);
        let mut all = Vec::new();
        for piece in pieces {
            push(&mut all, piece);
        }
        Ok(all)
    }
}

impl State {
    /// Where a part of the disk is: where it begins, how many bytes, where.
    fn parts(&mut self, at: u64, bytes: u64) -> Result<Vec<(u64, u64, Here)>, Need> {
        let mut all = Vec::new();
        let geometry = self.geometry();
        for (block, within, length) in geometry.pieces(at, bytes) {
            let base = block * geometry.block_bytes + within;
            for (offset, bytes, here) in self.part(block, within, length)? {
                all.extend(self.cut_off(base + offset, bytes, here));
            }
        }
        Ok(all)
    }

    /// What of a piece is beyond the end that the file has, where the log makes it longer, reads as
    /// zeroes.
    fn cut_off(&self, at: u64, bytes: u64, here: Here) -> impl Iterator<Item = (u64, u64, Here)> {
        let there = match here {
            Here::Place(place) => self.real_bytes.saturating_sub(place).min(bytes),
            Here::Zero | Here::Parent => bytes,
        };
        let parts = [(at, there, here), (at + there, bytes - there, Here::Zero)];
        parts.into_iter().filter(|(_, bytes, _)| *bytes > 0)
    }
}

/// Adds a piece, to the last one where it goes on from that.
pub(crate) fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    if let Some(last) = pieces.last_mut() {
        let goes_on = match (last.from, piece.from) {
            (Source::Zero, Source::Zero) => true,
            (
                Source::File { file, place },
                Source::File {
                    file: other,
                    place: next,
                },
            ) => file == other && place + last.bytes == next,
            (Source::Zero, Source::File { .. }) | (Source::File { .. }, Source::Zero) => false,
        };
        if goes_on && last.at + last.bytes == piece.at {
            last.bytes += piece.bytes;
            return;
        }
    }
    pieces.push(piece);
}
