//! Making a disk larger or smaller.

use crate::error::Error;
use crate::geometry::{Geometry, MIB};
use crate::regions::{self, Area, TABLE_PLACES};
use crate::state::{Claim, Image};
use crate::step::{Operation, Port};
use crate::{Entry, EntryOf, State as BlockState};

/// Bytes of one step of reserving space.
const RESERVED_AT_ONCE: u64 = 1 << 30;

impl Image {
    /// Makes the disk larger or smaller. It becomes smaller where no block beyond its new end has a
    /// place; a fixed image only grows. Hosts may go on meanwhile.
    ///
    /// A differencing image keeps its parent's size.
    #[must_use]
    pub fn resize(&self, disk_bytes: u64) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.resize_to(&port, disk_bytes)).await
        })
    }

    async fn resize_to(&self, port: &Port, disk_bytes: u64) -> Result<(), Error> {
        let old = self.geometry();
        let new = Geometry::new(disk_bytes, old.block_bytes, old.sector_bytes)?;
        if self.state.get().has_parent() {
            return Err(Error::Refused(
                "a differencing image has the size of its parent",
            ));
        }
        if new == old {
            return Ok(());
        }
        if new.disk_bytes < old.disk_bytes {
            self.check_unused(port, &old, &new).await?;
        }
        self.claim(port, Claim::Content).await?;
        self.commit_pages(port).await?;
        if new.disk_bytes > old.disk_bytes {
            self.make_larger(port, &old, &new).await?;
        }
        let at = {
            let state = self.state.get();
            state.table.places(state.tables.metadata)?.size.at
        };
        self.patch(port, at, &disk_bytes.to_le_bytes()).await?;
        self.commit_pages(port).await?;
        self.state.get().metadata.geometry = new;
        Ok(())
    }

    /// No block beyond the new end has a place.
    async fn check_unused(&self, port: &Port, old: &Geometry, new: &Geometry) -> Result<(), Error> {
        let mut from = new.payload_entry(new.blocks());
        from -= from % 4096;
        let (mut number, mut last) = (from / 8, None);
        loop {
            let words = self.table(port, from).await?;
            if words.is_empty() {
                break;
            }
            from += crate::check::TABLE_AT_ONCE;
            for bits in words {
                if let EntryOf::Block(block) = old.entry_of(number)
                    && block >= new.blocks()
                    && Entry::decode(bits).state.has_place()
                {
                    last = Some(block);
                }
                number += 1;
            }
        }
        last.map_or(Ok(()), |block| Err(Error::InUse { block }))
    }

    async fn make_larger(&self, port: &Port, old: &Geometry, new: &Geometry) -> Result<(), Error> {
        self.clear_rest(port, old).await?;
        let bat = self.state.get().tables.bat;
        if new.entries(false) * 8 > bat.bytes {
            self.move_table(port, old, new, bat).await?;
        } else {
            self.clear_entries(port, old, new).await?;
        }
        if self.state.get().metadata.is_fixed {
            self.fill_more(port, old, new).await?;
        }
        Ok(())
    }

    /// What the last block has behind the disk's end is zeroes.
    async fn clear_rest(&self, port: &Port, old: &Geometry) -> Result<(), Error> {
        let last = old.blocks() - 1;
        let entry = self.with(port, |state| state.entry(last)).await?;
        let within = old.bytes_of(last);
        if entry.state.has_place() && within < old.block_bytes {
            self.extend(port, entry.place + old.block_bytes).await?;
            port.zero(entry.place + within, old.block_bytes - within)
                .await?;
        }
        Ok(())
    }

    /// The file is at least so long.
    async fn extend(&self, port: &Port, length: u64) -> Result<(), Error> {
        if self.state.get().file_bytes >= length {
            return Ok(());
        }
        port.set_length(length).await?;
        let mut state = self.state.get();
        (state.file_bytes, state.real_bytes) = (length, length);
        Ok(())
    }

    /// Entries behind the disk's end say nothing, whatever was there.
    async fn clear_entries(
        &self,
        port: &Port,
        old: &Geometry,
        new: &Geometry,
    ) -> Result<(), Error> {
        let (from, to) = (old.entries(false) * 8, new.entries(false) * 8);
        let at = self.state.get().tables.bat.at;
        let mut next = from;
        while next < to {
            let bytes = (MIB - next % MIB).min(to - next);
            let length = usize::try_from(bytes).map_err(|_| Error::Io)?;
            let read = port.read(at + next, length).await?;
            for (word, value) in (next..).step_by(8).zip(read.chunks(8)) {
                if value.iter().any(|byte| *byte != 0) {
                    self.patch(port, at + word, &[0; 8]).await?;
                    self.relieve(port).await?;
                }
            }
            next += bytes;
        }
        self.commit_pages(port).await
    }

    /// A larger table at the file's end: written first, and then named by the region tables in the
    /// entry that makes the disk larger.
    async fn move_table(
        &self,
        port: &Port,
        old: &Geometry,
        new: &Geometry,
        bat: Area,
    ) -> Result<(), Error> {
        let area = {
            let mut state = self.state.get();
            let at = state.space.end();
            let bytes = new.table_bytes();
            state.space.set_end(at + bytes);
            Area { at, bytes }
        };
        self.extend(port, area.end()).await?;
        port.copy(self.file, bat.at, area.at, old.entries(false) * 8)
            .await?;
        port.sync().await?;
        let table = {
            let mut state = self.state.get();
            let regions = &mut state.tables.regions.0;
            for region in regions
                .iter_mut()
                .filter(|region| region.guid == regions::BAT)
            {
                region.area = area;
            }
            let table = state.tables.regions.encode();
            state.tables.bat = area;
            state.pages.forget(bat.at, bat.end());
            state.space.free(bat.at, bat.bytes);
            table
        };
        for at in TABLE_PLACES {
            self.patch(port, at, &table).await?;
        }
        Ok(())
    }

    /// Gives each new block of a fixed image its space.
    async fn fill_more(&self, port: &Port, old: &Geometry, new: &Geometry) -> Result<(), Error> {
        let blocks = new.blocks() - old.blocks();
        let (start, end) = {
            let mut state = self.state.get();
            let start = state.space.end();
            state.space.set_end(start + blocks * new.block_bytes);
            (start, state.space.end())
        };
        let mut at = start;
        while at < end {
            let bytes = RESERVED_AT_ONCE.min(end - at);
            self.extend(port, at + bytes).await?;
            port.reserve(at, bytes).await?;
            at += bytes;
        }
        for number in 0..blocks {
            let entry = Entry::at(BlockState::Present, start + number * new.block_bytes);
            let at = {
                let state = self.state.get();
                state.tables.bat.at + new.payload_entry(old.blocks() + number)
            };
            self.patch(port, at, &entry.encode().to_le_bytes()).await?;
            self.relieve(port).await?;
        }
        // Behind the disk's end they say nothing yet.
        self.commit_pages(port).await
    }
}
