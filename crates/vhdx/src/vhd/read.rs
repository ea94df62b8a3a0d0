//! Where what a VHD's disk holds is.

use super::footer::{FOOTER_BYTES, Footer, VhdKind};
use super::header::{HEADER_BYTES, VhdHeader};
use crate::error::{Error, ParentMismatch, Part, contradiction};
use crate::read::{Piece, Source, push};
use crate::step::{Operation, Port};

const SECTOR: u64 = 512;
/// An entry of the table without a block.
const NOWHERE: u32 = u32::MAX;

/// A dynamic disk's blocks.
struct Blocks {
    header: VhdHeader,
    table: Vec<u32>,
    paths: Vec<String>,
}

/// An open VHD: one file.
pub struct Vhd {
    footer: Footer,
    blocks: Option<Blocks>,
    file: usize,
    file_bytes: u64,
}

/// Where a part of a disk is, as one file says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Here {
    Zero,
    Place(u64),
    Parent,
}

impl Here {
    const fn source(self, file: usize) -> Option<Source> {
        match self {
            Self::Zero => Some(Source::Zero),
            Self::Place(place) => Some(Source::File { file, place }),
            Self::Parent => None,
        }
    }
}

impl Vhd {
    /// Opens the VHD in this file of the operation: 0, or a parent in a chain.
    #[must_use]
    pub fn open_as(file: usize) -> Operation<'static, Self> {
        Operation::new(async move |port: Port| open(&port.of_file(file), file).await)
    }

    /// Whether it has a table, or a parent.
    #[must_use]
    pub const fn kind(&self) -> VhdKind {
        self.footer.kind
    }

    /// As hosts see it, in sectors of 512 bytes.
    #[must_use]
    pub const fn disk_bytes(&self) -> u64 {
        self.footer.disk_bytes
    }

    /// Where the parent may be, in the order in which that is tried: paths, and at last the name.
    #[must_use]
    pub fn parent_paths(&self) -> Vec<&str> {
        let blocks = self.blocks.iter();
        let names = blocks.flat_map(|it| it.paths.iter().chain([&it.header.parent_name]));
        names
            .map(String::as_str)
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// Where a part of the disk that is within one block is: from its beginning, bytes, where.
    async fn part(&self, port: &Port, at: u64, bytes: u64) -> Result<Vec<(u64, u64, Here)>, Error> {
        let Some(blocks) = &self.blocks else {
            return Ok(vec![(0, bytes, Here::Place(at))]);
        };
        let has_parent = self.footer.kind == VhdKind::Differencing;
        let (block, within) = (
            at / blocks.header.block_bytes,
            at % blocks.header.block_bytes,
        );
        let entry = usize::try_from(block)
            .ok()
            .and_then(|block| blocks.table.get(block));
        let entry = entry.copied().filter(|entry| *entry != NOWHERE);
        let Some(entry) = entry else {
            let here = if has_parent { Here::Parent } else { Here::Zero };
            return Ok(vec![(0, bytes, here)]);
        };
        let bitmap = u64::from(entry) * SECTOR;
        let bitmap_bytes = (blocks.header.block_bytes / SECTOR / 8).next_multiple_of(SECTOR);
        let place = bitmap + bitmap_bytes + within;
        if place + bytes > self.file_bytes {
            let why = "it is beyond the end of the file: the file was cut off";
            return Err(Error::BadBlock { block, why });
        }
        if !has_parent {
            return Ok(vec![(0, bytes, Here::Place(place))]);
        }
        let (first, count) = (within / SECTOR, bytes / SECTOR);
        let (from, to) = (first / 8, (first + count).div_ceil(8));
        let length = usize::try_from(to - from).map_err(|_| Error::Io)?;
        let bits = port.read(bitmap + from, length).await?;
        let mut parts: Vec<(u64, u64, bool)> = Vec::new();
        for sector in first..first + count {
            let byte = bits[usize::try_from(sector / 8 - from).map_err(|_| Error::Io)?];
            // The first sector is the highest bit.
            let is_here = byte >> (7 - sector % 8) & 1 == 1;
            match parts.last_mut() {
                Some((_, bytes, was)) if *was == is_here => *bytes += SECTOR,
                Some(_) | None => parts.push(((sector - first) * SECTOR, SECTOR, is_here)),
            }
        }
        let here = |(offset, bytes, is_here)| {
            let here = if is_here {
                Here::Place(place + offset)
            } else {
                Here::Parent
            };
            (offset, bytes, here)
        };
        Ok(parts.into_iter().map(here).collect())
    }
}

/// The footer at the file's end, else the copy at its beginning.
async fn footer(port: &Port, file_bytes: u64) -> Result<Footer, Error> {
    let full = u64::try_from(FOOTER_BYTES).map_err(|_| Error::Io)?;
    if file_bytes < full - 1 {
        return Err(Error::Truncated { part: Part::Footer });
    }
    let short = FOOTER_BYTES - 1;
    let mut last = port.read(file_bytes + 1 - full, short).await?;
    last.push(0);
    if let Ok(footer) = Footer::decode(&last) {
        return Ok(footer);
    }
    if file_bytes < full {
        return Err(Error::Truncated { part: Part::Footer });
    }
    let found = Footer::decode(&port.read(file_bytes - full, FOOTER_BYTES).await?);
    let Err(error) = found else {
        return found;
    };
    let copy = Footer::decode(&port.read(0, FOOTER_BYTES).await?);
    // A fixed disk has none: there its first sector would be.
    copy.ok()
        .filter(|footer| footer.kind != VhdKind::Fixed)
        .ok_or(error)
}

async fn open(port: &Port, file: usize) -> Result<Vhd, Error> {
    let file_bytes = port.length().await?;
    let footer = footer(port, file_bytes).await?;
    let blocks = match footer.kind {
        VhdKind::Fixed => {
            // Behind it is a footer of 511 bytes at least.
            if footer.disk_bytes > file_bytes - 511 {
                return Err(Error::Truncated { part: Part::Footer });
            }
            None
        }
        VhdKind::Dynamic | VhdKind::Differencing => Some(blocks(port, &footer, file_bytes).await?),
    };
    Ok(Vhd {
        footer,
        blocks,
        file,
        file_bytes,
    })
}

async fn blocks(port: &Port, footer: &Footer, file_bytes: u64) -> Result<Blocks, Error> {
    let within = |at: u64, bytes: u64, part| {
        let end = at.checked_add(bytes).filter(|end| *end <= file_bytes);
        end.map(|_| ()).ok_or(Error::Truncated { part })
    };
    within(footer.header_at, 1024, Part::VhdHeader)?;
    let header = VhdHeader::decode(&port.read(footer.header_at, HEADER_BYTES).await?)?;
    let needed = footer.disk_bytes.div_ceil(header.block_bytes);
    if u64::from(header.entries) < needed {
        let what = "it has fewer entries than the disk needs";
        return Err(contradiction(Part::Bat, what));
    }
    // 64 MiB of them: 2 TiB in blocks of 128 KiB.
    if needed > 16 << 20 {
        return Err(contradiction(
            Part::Bat,
            "it has more than 16 million entries",
        ));
    }
    within(header.table_at, needed * 4, Part::Bat)?;
    let length = usize::try_from(needed * 4).map_err(|_| Error::Io)?;
    let table = port.read(header.table_at, length).await?;
    let entries = table
        .chunks_exact(4)
        .map(|entry| std::array::from_fn(|byte| entry[byte]));
    let mut paths = Vec::new();
    for (at, bytes) in &header.paths {
        if within(*at, u64::from(*bytes), Part::Locator).is_err() {
            continue;
        }
        let length = usize::try_from(*bytes).map_err(|_| Error::Io)?;
        let path = port.read(*at, length).await?;
        let units = path
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
        let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
        paths.push(String::from_utf16_lossy(&units));
    }
    Ok(Blocks {
        table: entries.map(u32::from_be_bytes).collect(),
        header,
        paths,
    })
}

/// A VHD with its parents, the image first.
pub struct VhdChain {
    images: Vec<Vhd>,
}

impl VhdChain {
    /// Of images that were opened as files 0, 1 and so on: each the parent of the one before it.
    ///
    /// # Errors
    /// If they do not belong together.
    pub fn new(images: Vec<Vhd>) -> Result<Self, Error> {
        let last = images
            .len()
            .checked_sub(1)
            .ok_or(Error::Parent(ParentMismatch::Count))?;
        for (number, image) in images.iter().enumerate() {
            assert_eq!(
                image.file, number,
                "images are opened as files 0, 1 and so on"
            );
            let is_child = image.footer.kind == VhdKind::Differencing;
            if is_child == (number == last) {
                return Err(Error::Parent(ParentMismatch::Count));
            }
            if let (Some(blocks), Some(parent)) = (&image.blocks, images.get(number + 1)) {
                let mismatch = if blocks.header.parent_id != parent.footer.id {
                    Some(ParentMismatch::Linkage)
                } else if image.footer.disk_bytes != parent.footer.disk_bytes {
                    Some(ParentMismatch::Size)
                } else {
                    None
                };
                mismatch.map_or(Ok(()), |why| Err(Error::Parent(why)))?;
            }
        }
        Ok(Self { images })
    }

    /// The image itself.
    #[must_use]
    pub fn image(&self) -> &Vhd {
        &self.images[0]
    }

    /// As hosts see it, in sectors of 512 bytes.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.images[0].footer.disk_bytes
    }

    /// Where a range of the disk is.
    #[must_use]
    pub fn read(&self, at: u64, bytes: u64) -> Operation<'_, Vec<Piece>> {
        Operation::new(async move |port: Port| {
            let end = at
                .checked_add(bytes)
                .filter(|end| *end <= self.disk_bytes());
            if end.is_none() || !at.is_multiple_of(SECTOR) || !bytes.is_multiple_of(SECTOR) {
                return Err(Error::OutOfRange);
            }
            let (mut pieces, mut todo) = (Vec::new(), vec![(at, bytes)]);
            for image in &self.images {
                todo = image.pieces(&port, &todo, at, &mut pieces).await?;
            }
            pieces.sort_by_key(|piece: &Piece| piece.at);
            let mut all = Vec::new();
            for piece in pieces {
                push(&mut all, piece);
            }
            Ok(all)
        })
    }
}

impl Vhd {
    /// Adds what this file has of these ranges; the rest is the parent's.
    async fn pieces(
        &self,
        port: &Port,
        ranges: &[(u64, u64)],
        base: u64,
        pieces: &mut Vec<Piece>,
    ) -> Result<Vec<(u64, u64)>, Error> {
        let port = port.of_file(self.file);
        let block = self
            .blocks
            .as_ref()
            .map_or(u64::MAX, |it| it.header.block_bytes);
        let mut of_parent = Vec::new();
        for (start, length) in ranges {
            let (mut at, end) = (*start, start + length);
            while at < end {
                let bytes = (end - at).min(block - at % block);
                let parts = self.part(&port, at, bytes).await?;
                let parents = parts.iter().filter(|part| part.2 == Here::Parent);
                of_parent.extend(parents.map(|(offset, bytes, _)| (at + offset, *bytes)));
                pieces.extend(parts.into_iter().filter_map(|(offset, bytes, here)| {
                    let at = at + offset - base;
                    let from = here.source(self.file)?;
                    Some(Piece { at, bytes, from })
                }));
                at += bytes;
            }
        }
        Ok(of_parent)
    }
}
