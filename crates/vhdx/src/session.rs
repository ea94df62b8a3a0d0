//! Taking an image over, changing its tables through the log, and letting it go.
//!
//! ```text
//!   claim:   an entry of the log, sync, headers with new identifiers and the log's, sync
//!   commit:  sync (payload, what was applied) -> entry -> sync -> apply
//!   close:   sync -> headers without a log, sync
//! ```
//!
//! An entry's tail is itself: the sync before it made everything stable that earlier ones say. At
//! most half of the log is one entry, so the one before is whole until this one is.
//!
//! spec: MS-VHDX 2.2.2.1 "Updating the Headers", 2.3 "Log"

use crate::Guid;
use crate::error::Error;
use crate::geometry::PAGE_BYTES;
use crate::header::{HEADER_BYTES, HEADER_PLACES, Header, choose};
use crate::log::{LogEntry, SECTOR, pages_of_an_entry};
use crate::state::{Claim, Image, State};
use crate::step::{Operation, Port};

/// Changed pages that an image holds before it writes them to the log by itself.
const DIRTY_MAX: usize = 512;

/// Writes a header to both places, the one that does not count first.
pub(crate) async fn put_headers(
    port: &Port,
    header: &mut Header,
    place: &mut usize,
) -> Result<(), Error> {
    for _ in HEADER_PLACES {
        header.sequence = header.sequence.wrapping_add(1);
        *place = 1 - *place;
        port.write(HEADER_PLACES[*place], header.encode()).await?;
        port.sync().await?;
    }
    Ok(())
}

impl State {
    /// The next entry of the log with these pages: what is written where.
    fn entry_of_log(&mut self, log: Guid, pages: &[(u64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
        let log_bytes = u64::from(self.header.log_bytes);
        let place = u32::try_from(self.log_next).expect("a log is below 4 GiB");
        let entry = LogEntry {
            log,
            sequence: self.log_sequence,
            place,
            flushed: self.file_bytes,
            last: self.file_bytes,
            pages,
        };
        let mut first = entry.encode();
        self.log_sequence += 1;
        let length = u64::try_from(first.len()).expect("an entry is a part of a log");
        let room = usize::try_from(log_bytes - self.log_next).expect("a log is small");
        let at = self.header.log_place + self.log_next;
        self.log_next = (self.log_next + length) % log_bytes;
        if first.len() <= room {
            return vec![(at, first)];
        }
        let rest = first.split_off(room);
        vec![(at, first), (self.header.log_place, rest)]
    }
}

impl Image {
    /// What cannot be done while nobody knows what is in the file.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        let state = self.state.get();
        if state.is_broken {
            return Err(Error::Broken);
        }
        let is_writable = state.guids.is_some();
        is_writable.then_some(()).ok_or(Error::ReadOnly)
    }

    /// After an error of a write or a sync, the image is broken.
    pub(crate) async fn guarded<T>(
        &self,
        of: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        self.check_writable()?;
        let done = of.await;
        if matches!(done, Err(Error::Io)) {
            self.state.get().is_broken = true;
        }
        done
    }

    /// Makes the image ours as far as `claim` says, with this identifier of its content.
    pub(crate) async fn claim_with(
        &self,
        port: &Port,
        claim: Claim,
        content: Option<Guid>,
    ) -> Result<(), Error> {
        let before = self.state.get().claim;
        if before >= claim {
            return Ok(());
        }
        if self.state.get().header.log_bytes == 0 {
            return Err(Error::Refused("the image has no log"));
        }
        let next = || {
            let mut state = self.state.get();
            state
                .guids
                .as_mut()
                .map(crate::Guids::give)
                .ok_or(Error::ReadOnly)
        };
        let (mut header, mut place) = {
            let state = self.state.get();
            (state.header, state.header_place)
        };
        if before == Claim::None {
            header.file_write = next()?;
            header.log = next()?;
            let first = self.state.get().tables.bat.at;
            let page = self.with(port, |state| {
                let page = state.pages.get(first).map(<[u8]>::to_vec);
                page.ok_or(crate::state::Need::Page(first))
            });
            let page = (first, page.await?);
            self.keep_last_block(port).await?;
            let writes = self.state.get().entry_of_log(header.log, &[page]);
            port.sync().await?;
            port.write_all(writes).await?;
            port.sync().await?;
        }
        if claim == Claim::Content {
            header.data_write = match content {
                Some(guid) => guid,
                None => next()?,
            };
        }
        put_headers(port, &mut header, &mut place).await?;
        let mut state = self.state.get();
        (state.header, state.header_place, state.claim) = (header, place, claim);
        state.header_damage = [None, None];
        Ok(())
    }

    /// The last block of the disk may be cut off by the file's end; nothing else goes to its rest.
    async fn keep_last_block(&self, port: &Port) -> Result<(), Error> {
        let last = self.geometry().blocks() - 1;
        self.with(port, |state| {
            let entry = state.entry(last)?;
            let end = entry.place + state.geometry().block_bytes;
            if entry.state.has_place() && end > state.space.end() {
                state.space.set_end(end);
            }
            Ok(())
        })
        .await
    }

    pub(crate) async fn claim(&self, port: &Port, claim: Claim) -> Result<(), Error> {
        self.claim_with(port, claim, None).await?;
        if claim > Claim::None {
            self.mend_tables(port).await?;
        }
        Ok(())
    }

    /// Both region tables are good from now on, and the same.
    async fn mend_tables(&self, port: &Port) -> Result<(), Error> {
        let damage = self.state.get().tables.damage;
        if damage == [None, None] {
            return Ok(());
        }
        let table = self.state.get().tables.regions.encode();
        let wrong = damage.iter().zip(crate::regions::TABLE_PLACES);
        let wrong: Vec<u64> = wrong
            .filter(|(damage, _)| damage.is_some())
            .map(|it| it.1)
            .collect();
        for at in wrong {
            self.patch(port, at, &table).await?;
        }
        self.commit_pages(port).await?;
        self.state.get().tables.damage = [None, None];
        Ok(())
    }

    /// Changes bytes of tables or metadata in memory; [`Self::commit_pages`] writes them.
    pub(crate) async fn patch(&self, port: &Port, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let within = at % PAGE_BYTES;
            let room = usize::try_from(PAGE_BYTES - within).map_err(|_| Error::Io)?;
            let (now, later) = rest.split_at(room.min(rest.len()));
            self.with(port, |state| {
                let page = at - within;
                state
                    .pages
                    .get(page)
                    .ok_or(crate::state::Need::Page(page))?;
                state.pages.patch(at, now);
                Ok(())
            })
            .await?;
            at += u64::try_from(now.len()).map_err(|_| Error::Io)?;
            rest = later;
        }
        Ok(())
    }

    /// What was written before is on the disk, and all changes of tables are.
    pub(crate) async fn commit_pages(&self, port: &Port) -> Result<(), Error> {
        let most = pages_of_an_entry(self.state.get().header.log_bytes.into());
        if self.state.get().pages.dirty() == 0 {
            return port.sync().await;
        }
        loop {
            let pages = self.state.get().pages.take_dirty(most);
            if pages.is_empty() {
                break;
            }
            port.sync().await?;
            let writes = {
                let mut state = self.state.get();
                let log = state.header.log;
                state.entry_of_log(log, &pages)
            };
            port.write_all(writes).await?;
            port.sync().await?;
            port.write_all(pages.clone()).await?;
            self.state.get().pages.applied(&pages);
        }
        self.state.get().space.committed();
        Ok(())
    }

    /// Writes changes to the log where there are many.
    pub(crate) async fn relieve(&self, port: &Port) -> Result<(), Error> {
        if self.state.get().pages.dirty() >= DIRTY_MAX {
            self.commit_pages(port).await?;
        }
        Ok(())
    }

    /// Everything that was written is on the disk, and stays found there after a crash.
    #[must_use]
    pub fn flush(&self) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.commit_pages(&port)).await
        })
    }

    /// As [`Self::flush`], and the log is empty: other programs need not replay it.
    #[must_use]
    pub fn close(&self) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.let_go(&port)).await
        })
    }

    pub(crate) async fn let_go(&self, port: &Port) -> Result<(), Error> {
        self.commit_pages(port).await?;
        if self.state.get().claim == Claim::None {
            return Ok(());
        }
        port.sync().await?;
        let (mut header, mut place) = {
            let state = self.state.get();
            (state.header, state.header_place)
        };
        header.log = Guid::NONE;
        put_headers(port, &mut header, &mut place).await?;
        let mut state = self.state.get();
        (state.header, state.header_place, state.claim) = (header, place, Claim::None);
        (state.log_sequence, state.log_next) = (1, 0);
        Ok(())
    }

    /// Nobody else has opened the image for writing since: after an error or a reconnect of what
    /// the file is on, that is asked before anything is written.
    #[must_use]
    pub fn check_owner(&self) -> Operation<'_, ()> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            let first = port.read(HEADER_PLACES[0], HEADER_BYTES).await?;
            let second = port.read(HEADER_PLACES[1], HEADER_BYTES).await?;
            let found = choose([&first, &second])?.current;
            let state = self.state.get();
            let ours = state.header;
            let is_as_known = (found.file_write, found.log) == (ours.file_write, ours.log);
            // A claim that ended half way has written its identifiers all the same.
            let is_half_claimed = || {
                let guids = state.guids.as_ref();
                let has_given = guids.is_some_and(|it| it.has_given(found.file_write));
                state.claim == Claim::None && has_given
            };
            let is_ours = is_as_known || is_half_claimed();
            is_ours.then_some(()).ok_or(Error::ForeignWriter)
        })
    }
}

const _: () = assert!(SECTOR == HEADER_BYTES, "a page is a sector of the log");
