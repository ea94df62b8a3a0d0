//! The history of a volume in one ring, in a sidecar of the volume.
//!
//! The rings share the file. A sync that fails may lose what another ring has written and not
//! synced yet, and says so only to the one who asked for it: so one ring writes and syncs at a time
//! ([`Turns`]).

use env::file::{length, read};
use env::{Access, CoreHandle, Create, Durable, File, FileOp, OpenHow, durable};
use journal::{Change, Epoch, History, HistoryId, HistoryWrite, Kind, SECTOR, Sequence};
use sidecar::Sidecar;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use units::Buf;
use volume::{OpenError, OpenErrorKind};

/// Cuts that a second has, so that a history that is begun anew begins above all that there were.
const CUTS_A_SECOND_BITS: u32 = 10;

/// Whose turn it is to write a volume's history.
pub(crate) type Turns = Arc<tokio::sync::Mutex<()>>;

/// The same, for as long as anybody has it.
pub(crate) type WeakTurns = Weak<tokio::sync::Mutex<()>>;

/// The changes of one volume that one ring keeps, and the file that they go to.
pub(crate) struct HistoryFile {
    file: Rc<dyn File>,
    turns: Turns,
    pub(crate) history: RefCell<History>,
}

/// A change that was found in the log before its volume was opened.
#[derive(Clone)]
pub(crate) struct FoundChange {
    sequence: Sequence,
    kind: Kind,
    sectors: Range<u64>,
}

impl FoundChange {
    /// Of what says something of the history.
    pub(crate) fn of(change: &Change) -> Self {
        Self {
            sequence: change.sequence,
            kind: change.kind,
            sectors: change.sectors(),
        }
    }

    /// Its range begins with the number.
    const fn epoch(&self) -> Epoch {
        Epoch {
            epoch: self.sectors.start,
            first: self.sequence,
        }
    }
}

impl HistoryFile {
    /// Opens it, and makes it where there is none. A cut in one that was made must not be lost with
    /// it, so it is stable at once; where that fails, with the next [`HistoryFile::save`].
    pub(crate) async fn open(
        core: &CoreHandle,
        sidecar: &Sidecar,
        id: HistoryId,
        turns: Turns,
    ) -> Result<Self, OpenError> {
        let first = (core.wall_clock().0 / 1_000_000_000) << CUTS_A_SECOND_BITS;
        let opened = Self::open_from(core, sidecar, id, (turns, first)).await?;
        let _ = opened.save(Sequence(0)).await;
        Ok(opened)
    }

    /// Makes one whose first cut is this one.
    pub(crate) async fn make(
        core: &CoreHandle,
        sidecar: &Sidecar,
        id: HistoryId,
        first: u64,
    ) -> Result<(), OpenError> {
        let made = Self::open_from(core, sidecar, id, (Turns::default(), first)).await?;
        if made.history.borrow().cut() != first {
            return Err(OpenError {
                kind: OpenErrorKind::Unsupported,
                cause: format!("{sidecar} is there already, and has other cuts"),
                next_step: "remove what is left of the volume before it is made anew".to_owned(),
            });
        }
        let saved = made.save(Sequence(0)).await;
        saved.map_err(|error| failed(sidecar, &error))
    }

    async fn open_from(
        core: &CoreHandle,
        sidecar: &Sidecar,
        id: HistoryId,
        (turns, first): (Turns, u64),
    ) -> Result<Self, OpenError> {
        let failed = |error: &io::Error| failed(sidecar, error);
        let how = OpenHow {
            access: Access::ReadWrite,
            create: Create::IfAbsent,
            direct: true,
            lock: false,
        };
        let file = opened(core, sidecar, how).await;
        let file = file.map_err(|error| failed(&error))?;
        let (at, len) = History::header_at(id.ring);
        let header = read(&file, at, len).await;
        let header = header.map_err(|error| failed(&error))?;
        let history = History::open(id, &header, first.max(1)).map_err(|version| OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!("the history {sidecar} cannot be used: {version}"),
            next_step: "run the version of causeway that wrote it".to_owned(),
        })?;
        if let Some(again) = history.again(&header) {
            let op = FileOp::Write {
                offset: again.at,
                data: Buf::from(again.bytes),
                durable: Durable::Yes,
            };
            let _turn = turns.lock().await;
            file.submit(op).await.map_err(|error| failed(&error))?;
        }
        let history = RefCell::new(history);
        Ok(Self {
            file,
            turns,
            history,
        })
    }

    /// What was found in the log when it was opened.
    pub(crate) fn absorb(&self, mut found: Vec<FoundChange>) {
        let mut history = self.history.borrow_mut();
        found.sort_by_key(|it| it.sequence);
        for it in found.iter().filter(|it| it.kind == Kind::Cut) {
            history.begin_cut(it.sectors.start, it.sequence);
        }
        let is_epoch = |it: &&FoundChange| matches!(it.kind, Kind::Epoch | Kind::RelocatedEpoch);
        for it in found.iter().filter(is_epoch) {
            history.begin_epoch(it.epoch());
        }
        let of_blocks = |it: &&FoundChange| it.kind != Kind::Cut && !is_epoch(it);
        for it in found.iter().filter(of_blocks) {
            let cut = history.cut_of(it.sequence);
            history.mark(&bytes_of(&it.sectors), cut);
        }
    }

    /// A change is stable.
    pub(crate) fn record(&self, change: &Change) {
        let mut history = self.history.borrow_mut();
        match change.kind {
            Kind::Cut => history.begin_cut(change.range.start().0, change.sequence),
            Kind::Write
            | Kind::Zeroes
            | Kind::Deallocate
            | Kind::Anchor
            | Kind::WriteAround
            | Kind::Touched => {
                let cut = history.cut();
                history.mark(&bytes_of(&change.sectors()), cut);
            }
            Kind::Epoch => history.begin_epoch(FoundChange::of(change).epoch()),
            Kind::Lost | Kind::Gone | Kind::RelocatedEpoch => {}
        }
    }

    /// These sectors are about to change in a way that may be known before the log knows.
    pub(crate) fn touch(&self, sectors: &Range<u64>) {
        let mut history = self.history.borrow_mut();
        let cut = history.cut();
        history.mark(&bytes_of(sectors), cut);
    }

    pub(super) async fn learn(&self, pages: Vec<usize>) -> io::Result<()> {
        for page in pages {
            let (at, len) = self.history.borrow().page_at(page);
            let bytes = read(&self.file, at, len).await?;
            let filled = self.history.borrow_mut().fill(page, &bytes);
            filled.map_err(|version| io::Error::other(format!("page {page} of it: {version}")))?;
        }
        Ok(())
    }

    /// Reads all of it again: how many of its header and pages are lost.
    pub(crate) async fn verify(&self, core: &CoreHandle) -> io::Result<u64> {
        let len = length(&self.file).await?;
        let (at, bytes) = History::header_at(self.history.borrow().id().ring);
        let mut lost = {
            // Nobody writes it meanwhile.
            let _turn = self.turns.lock().await;
            let header = read(&self.file, at, bytes).await?;
            u64::from(self.history.borrow().has_lost_header(&header))
        };
        for page in 0.. {
            let (at, bytes) = self.history.borrow().page_at(page);
            if at >= len {
                break;
            }
            let begun = core.now();
            {
                let _turn = self.turns.lock().await;
                let both = read(&self.file, at, bytes).await?;
                lost += u64::from(self.history.borrow().has_lost_page(page, &both));
            }
            crate::rest::rest(core, begun).await;
        }
        Ok(lost)
    }

    /// Makes stable what records with numbers below `next` say of it.
    pub(crate) async fn save(&self, next: Sequence) -> io::Result<()> {
        let unknown = self.history.borrow().unknown(None);
        self.learn(unknown).await?;
        let _turn = self.turns.lock().await;
        let writes = self.history.borrow_mut().writes(next);
        let result = match writes.is_empty() {
            true => Ok(()),
            false => self.write(writes).await,
        };
        self.history.borrow_mut().written(result.is_ok());
        result
    }

    /// Writes them, and what they follow where that may not be stable, in any order, and then a
    /// sync.
    async fn write(&self, mut writes: Vec<HistoryWrite>) -> io::Result<()> {
        let unsure = self.history.borrow().unsure();
        for page in unsure {
            let (at, len) = self.history.borrow().page_at(page);
            let bytes = read(&self.file, at, len).await?;
            writes.extend(self.history.borrow().page_again(page, &bytes));
        }
        let mut answers = Vec::new();
        for write in writes {
            let op = FileOp::Write {
                offset: write.at,
                data: Buf::from(write.bytes),
                durable: Durable::No,
            };
            answers.push(self.file.submit(op));
        }
        let mut result = Ok(());
        for answer in answers {
            if let Err(error) = answer.await {
                result = Err(error);
            }
        }
        result?;
        self.file.submit(FileOp::Sync).await.map(|_| ())
    }
}

fn failed(sidecar: &Sidecar, error: &io::Error) -> OpenError {
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause: format!("the history {sidecar} cannot be opened: {error}"),
        next_step: "check the disk, its free space and its permissions".to_owned(),
    }
}

/// The file; a new one is there after a crash, too, so that no number is given twice.
async fn opened(core: &CoreHandle, sidecar: &Sidecar, how: OpenHow) -> io::Result<Rc<dyn File>> {
    let files = core.files();
    let directory = sidecar.directory();
    let file = match (sidecar.open(core, how).await, directory) {
        (Err(error), Some(directory)) if error.kind() == io::ErrorKind::NotFound => {
            durable::make_dir(&*files, directory).await?;
            sidecar.open(core, how).await?
        }
        (opened, _) => opened?,
    };
    let len = length(&file).await?;
    if let Some(directory) = directory.filter(|_| len == 0) {
        files.sync_dir(directory).await?;
    }
    Ok(file)
}

/// Bytes that the history of a volume of so many bytes may come to take, over so many rings.
#[must_use]
pub fn bytes_for(rings: u32, volume_bytes: u64) -> u64 {
    History::bytes_for(rings, volume_bytes)
}

pub(super) fn bytes_of(sectors: &Range<u64>) -> Range<u64> {
    sectors.start * SECTOR..sectors.end * SECTOR
}
