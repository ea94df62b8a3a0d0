//! Opening an image.

use crate::error::{Error, Part};
use crate::geometry::{MIB, PAGE_BYTES};
use crate::guid::{Guid, Guids};
use crate::header::{HEADER_BYTES, HEADER_PLACES, Headers, SLOT_BYTES, choose, creator};
use crate::log::{self, Overlay, Sequence};
use crate::metadata::{Items, TABLE_BYTES, Table};
use crate::pages::Pages;
use crate::regions::{Area, TABLE_PLACES, Tables};
use crate::session::put_headers;
use crate::space::Space;
use crate::state::{Claim, Image, Need, Shared, State};
use crate::step::{Operation, Port};
use crate::{Locator, regions};

/// What whoever opens an image may do.
#[derive(Clone, Debug)]
pub enum Access {
    /// Read it. Nothing in the file is changed: a log is replayed in memory.
    Read,
    /// Change it. A log is replayed; nothing else is changed before there is something to change.
    Write(Guids),
}

/// The tables as they are with what the log says.
struct View<'a> {
    port: &'a Port,
    overlay: &'a Overlay,
    real_bytes: u64,
}

impl View<'_> {
    /// A part of the file, page by page.
    async fn read(&self, area: Area) -> Result<Vec<u8>, Error> {
        let from = area.at - area.at % PAGE_BYTES;
        let to = area.end().next_multiple_of(PAGE_BYTES);
        let length = usize::try_from(to - from).map_err(|_| Error::Io)?;
        let mut bytes = read_within(self.port, from, length, self.real_bytes).await?;
        for page in (from..to).step_by(HEADER_BYTES) {
            if let Some(logged) = self.overlay.get(page) {
                let at = usize::try_from(page - from).map_err(|_| Error::Io)?;
                bytes[at..at + logged.len()].copy_from_slice(&logged);
            }
        }
        let skip = usize::try_from(area.at - from).map_err(|_| Error::Io)?;
        let wanted = usize::try_from(area.bytes).map_err(|_| Error::Io)?;
        Ok(bytes[skip..skip + wanted].to_vec())
    }
}

/// What is beyond the end of the file are zeroes.
async fn read_within(
    port: &Port,
    at: u64,
    bytes: usize,
    file_bytes: u64,
) -> Result<Vec<u8>, Error> {
    let there = usize::try_from(file_bytes.saturating_sub(at)).unwrap_or(usize::MAX);
    let mut read = match there.min(bytes) {
        0 => Vec::new(),
        some => port.read(at, some).await?,
    };
    read.resize(bytes, 0);
    Ok(read)
}

/// Reads a file's log, and what it says.
async fn logged(
    port: &Port,
    header: &crate::Header,
    file_bytes: u64,
) -> Result<Option<Sequence>, Error> {
    if header.log.is_none() {
        return Ok(None);
    }
    let truncated = Error::Truncated { part: Part::Log };
    let bytes = u64::from(header.log_bytes);
    if header.log_place < MIB || header.log_place.saturating_add(bytes) > file_bytes {
        return Err(truncated);
    }
    let length = usize::try_from(bytes).map_err(|_| Error::Io)?;
    let log = port.read(header.log_place, length).await?;
    let sequence = log::find(log, header)?;
    if sequence.flushed > file_bytes {
        return Err(truncated);
    }
    Ok(Some(sequence))
}

/// Writes what the log says to its places, and empties it.
async fn replay(
    port: &Port,
    sequence: &Sequence,
    file_bytes: u64,
    headers: &mut Headers,
    file_write: Guid,
) -> Result<(), Error> {
    let length = file_bytes.max(sequence.last);
    if length > file_bytes {
        port.set_length(length).await?;
    }
    let zeroes: Vec<(u64, u64)> = sequence.overlay.zeroes().collect();
    for (at, bytes) in zeroes {
        port.zero(at, bytes).await?;
    }
    let mut pages = sequence.overlay.pages().peekable();
    while pages.peek().is_some() {
        port.write_all(pages.by_ref().take(256).collect()).await?;
    }
    port.sync().await?;
    headers.current.file_write = file_write;
    headers.current.log = Guid::NONE;
    put_headers(port, &mut headers.current, &mut headers.place).await?;
    headers.damage = [None, None];
    Ok(())
}

impl Image {
    /// Opens the image in file 0.
    #[must_use]
    pub fn open(access: Access) -> Operation<'static, Self> {
        Self::open_as(0, access)
    }

    /// Opens the image in this file of the operation: a parent in a chain.
    #[must_use]
    pub fn open_as(file: usize, access: Access) -> Operation<'static, Self> {
        Operation::new(async move |port: Port| open(port.of_file(file), file, access).await)
    }

    /// Does `of` with the state, as often as a page is missing, which is read then. It changes
    /// nothing before it has all pages that it needs.
    pub(crate) async fn with<T>(
        &self,
        port: &Port,
        mut of: impl FnMut(&mut State) -> Result<T, Need>,
    ) -> Result<T, Error> {
        loop {
            let done = of(&mut self.state.get());
            match done {
                Ok(value) => return Ok(value),
                Err(Need::Fail(error)) => return Err(error),
                Err(Need::Page(at)) => self.load(port, at).await?,
            }
        }
    }

    /// Reads a page of the file.
    pub(crate) async fn load(&self, port: &Port, at: u64) -> Result<(), Error> {
        let (logged, real, applied) = {
            let state = self.state.get();
            let applied = state.pages.applications();
            (state.overlay.get(at), state.real_bytes, applied)
        };
        let page = match logged {
            Some(page) => page,
            None => read_within(port, at, HEADER_BYTES, real).await?,
        };
        let mut state = self.state.get();
        // Else it may have been read before it was changed: whoever needs it reads it again.
        if state.pages.applications() == applied {
            state.pages.put_new(at, page);
        }
        Ok(())
    }
}

impl Image {
    /// Reads the metadata's table again.
    pub(crate) async fn read_table(&self, port: &Port) -> Result<(), Error> {
        let region = self.state.get().tables.metadata;
        let bytes = port.read(region.at, TABLE_BYTES).await?;
        let table = Table::decode(&bytes, region.bytes)?;
        self.state.get().table = table;
        Ok(())
    }
}

async fn open(port: Port, file: usize, mut access: Access) -> Result<Image, Error> {
    let mut file_bytes = port.length().await?;
    let section = 6 * SLOT_BYTES;
    let first = read_within(&port, 0, section, file_bytes).await?;
    creator(&first)?;
    let slot = |at: u64, bytes: usize| {
        let from = usize::try_from(at).expect("within the section");
        &first[from..from + bytes]
    };
    let mut headers = choose(HEADER_PLACES.map(|at| slot(at, HEADER_BYTES)))?;
    let sequence = logged(&port, &headers.current, file_bytes).await?;
    let mut real_bytes = file_bytes;
    let mut overlay = Overlay::default();
    if let Some(sequence) = sequence {
        file_bytes = file_bytes.max(sequence.last);
        if let Access::Write(guids) = &mut access {
            replay(&port, &sequence, real_bytes, &mut headers, guids.give()).await?;
            real_bytes = file_bytes;
        } else {
            overlay = sequence.overlay;
        }
    }
    let header = headers.current;
    let log_area = Area {
        at: header.log_place,
        bytes: header.log_bytes.into(),
    };
    let view = View {
        port: &port,
        overlay: &overlay,
        real_bytes,
    };
    let tables = read_tables(&view, log_area, file_bytes).await?;
    let (table, metadata) = read_metadata(&view, tables.metadata).await?;
    let entries = metadata.geometry.entries(metadata.locator.is_some());
    if entries * 8 > tables.bat.bytes {
        let what = "it has fewer entries than the disk needs";
        return Err(crate::error::contradiction(Part::Bat, what));
    }
    let guids = match access {
        Access::Read => None,
        Access::Write(guids) => Some(guids),
    };
    let state = State {
        header,
        header_place: headers.place,
        header_damage: headers.damage,
        tables,
        table,
        metadata,
        file_bytes,
        real_bytes,
        pages: Pages::default(),
        overlay,
        guids,
        claim: Claim::None,
        log_sequence: 1,
        log_next: 0,
        space: Space::behind(file_bytes),
        is_broken: false,
    };
    Ok(Image {
        state: Shared::new(state),
        file,
    })
}

async fn read_tables(view: &View<'_>, log: Area, file_bytes: u64) -> Result<Tables, Error> {
    let bytes = u64::try_from(SLOT_BYTES).map_err(|_| Error::Io)?;
    let [first, second] = TABLE_PLACES.map(|at| Area { at, bytes });
    let copies = [view.read(first).await?, view.read(second).await?];
    regions::choose(copies.each_ref().map(Vec::as_slice), log, file_bytes)
}

async fn read_metadata(view: &View<'_>, region: Area) -> Result<(Table, crate::Metadata), Error> {
    let bytes = u64::try_from(TABLE_BYTES).map_err(|_| Error::Io)?;
    let table_area = Area {
        at: region.at,
        bytes,
    };
    let table = Table::decode(&view.read(table_area).await?, region.bytes)?;
    let places = table.places(region)?;
    let items = Items {
        parameters: view.read(places.parameters).await?,
        size: view.read(places.size).await?,
        disk_id: view.read(places.disk_id).await?,
        logical: view.read(places.logical).await?,
        physical: view.read(places.physical).await?,
    };
    let (mut metadata, has_parent) = items.read()?;
    if has_parent {
        let item = view.read(table.locator(region)?).await?;
        metadata.locator = Some(Locator::decode(&item)?);
    }
    Ok((table, metadata))
}
