//! Making an image.

use crate::entry::{Entry, State as BlockState};
use crate::error::Error;
use crate::geometry::{Geometry, MIB};
use crate::guid::{Guid, Guids};
use crate::header::{HEADER_PLACES, Header, identifier};
use crate::locator::Locator;
use crate::metadata::{self, Metadata};
use crate::regions::{self, Area, Region, Regions, TABLE_PLACES};
use crate::step::{Operation, Port};

/// Bytes of the log that we make.
const LOG_BYTES: u64 = MIB;
const LOG_AT: u64 = MIB;
const METADATA_AT: u64 = 2 * MIB;
const BAT_AT: u64 = 3 * MIB;
/// Bytes of one step of reserving space.
const RESERVED_AT_ONCE: u64 = 1 << 30;
/// Bytes of the table that are written at once.
const TABLE_AT_ONCE: u64 = MIB;

/// What kind of image is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Blocks get their space with the first write.
    Dynamic,
    /// All blocks have their space.
    Fixed,
    /// What is not written is the parent's.
    Differencing(Locator),
}

/// What is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct New {
    /// Sizes.
    pub geometry: Geometry,
    /// Bytes of a physical sector: 512 or 4096.
    pub physical_bytes: u32,
    /// Who has what is not written: nobody, or a parent.
    pub kind: Kind,
    /// The disk's own number; a child has its parent's.
    pub disk_id: Option<Guid>,
    /// Who makes it.
    pub creator: String,
}

impl New {
    /// The block size that is used where nobody asks for another one: as Windows has it.
    #[must_use]
    pub const fn block_bytes(is_differencing: bool) -> u64 {
        if is_differencing { 2 * MIB } else { 32 * MIB }
    }

    /// Makes the image in an empty file, which becomes one with the last step alone: whoever is
    /// interrupted begins anew.
    #[must_use]
    pub fn create(self, guids: Guids) -> Operation<'static, ()> {
        Operation::new(async move |port: Port| self.make(&port, guids).await)
    }

    fn tables(&self) -> (Regions, Area) {
        let bat = Area {
            at: BAT_AT,
            bytes: self.geometry.table_bytes(),
        };
        let metadata = Area {
            at: METADATA_AT,
            bytes: MIB,
        };
        let region = |guid, area| Region {
            guid,
            area,
            required: true,
        };
        let regions = vec![
            region(regions::BAT, bat),
            region(regions::METADATA, metadata),
        ];
        (Regions(regions), bat)
    }

    async fn make(self, port: &Port, mut guids: Guids) -> Result<(), Error> {
        if ![512, 4096].contains(&self.physical_bytes) {
            return Err(Error::Refused("physical sectors have 512 or 4096 bytes"));
        }
        if port.length().await? > 0 {
            return Err(Error::Refused("the file is not empty"));
        }
        let (tables, bat) = self.tables();
        let metadata = Metadata {
            geometry: self.geometry,
            physical_bytes: self.physical_bytes,
            is_fixed: self.kind == Kind::Fixed,
            disk_id: self.disk_id.unwrap_or_else(|| guids.give()),
            locator: match &self.kind {
                Kind::Differencing(locator) => Some(locator.clone()),
                Kind::Dynamic | Kind::Fixed => None,
            },
        };
        port.set_length(bat.end()).await?;
        port.write(METADATA_AT, metadata::encode(&metadata)).await?;
        if self.kind == Kind::Fixed {
            self.fill(port, bat).await?;
        }
        let table = tables.encode();
        port.write_all(TABLE_PLACES.map(|at| (at, table.clone())).to_vec())
            .await?;
        let mut header = Header {
            sequence: 1,
            file_write: guids.give(),
            data_write: guids.give(),
            log: Guid::NONE,
            log_bytes: u32::try_from(LOG_BYTES).map_err(|_| Error::Io)?,
            log_place: LOG_AT,
        };
        for at in HEADER_PLACES {
            port.write(at, header.encode()).await?;
            header.sequence += 1;
        }
        port.sync().await?;
        port.write(0, identifier(&self.creator)).await?;
        port.sync().await
    }

    /// Gives each block its space.
    async fn fill(&self, port: &Port, bat: Area) -> Result<(), Error> {
        let geometry = self.geometry;
        let end = bat.end() + geometry.blocks() * geometry.block_bytes;
        let mut at = bat.end();
        while at < end {
            let bytes = RESERVED_AT_ONCE.min(end - at);
            port.set_length(at + bytes).await?;
            port.reserve(at, bytes).await?;
            at += bytes;
        }
        let used = geometry.payload_entry(geometry.blocks() - 1) + 8;
        for from in (0..used).step_by(usize::try_from(TABLE_AT_ONCE).map_err(|_| Error::Io)?) {
            let to = used.min(from + TABLE_AT_ONCE);
            let entries = (from / 8..to / 8).map(|number| match geometry.entry_of(number) {
                crate::EntryOf::Bitmap(_) => 0,
                crate::EntryOf::Block(block) => {
                    let place = bat.end() + block * geometry.block_bytes;
                    Entry::at(BlockState::Present, place).encode()
                }
            });
            let bytes = entries.flat_map(u64::to_le_bytes).collect();
            port.write(bat.at + from, bytes).await?;
        }
        Ok(())
    }
}
