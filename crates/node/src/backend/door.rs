//! The door: what every kind of backend can do, and what only pools can.

use crate::pool::late;
use ::sidecar::{Sidecar, SidecarKind};
use backends::Progress;
use env::CoreHandle;
use manifest::facts::PoolFacts;
use manifest::objects::Lun;
use manifest::orphan::{LunRecord, Orphan};
use manifest::problem::Problem;
use state::saved::SavedText;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use units::BlockCount;
use volume::{Fences, OpenError, Volume};

/// Work of a backend, on its core; it may borrow from whoever asked for it.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Work that has ended already, with this answer.
pub(crate) fn done<'a, T: 'a>(answer: T) -> Work<'a, T> {
    Box::pin(std::future::ready(answer))
}

/// The blocks of one LUN, open. A method that a kind does not implement reports nothing.
pub(crate) trait Leaf {
    /// The blocks as a volume, which the layers stand on.
    fn volume(&self) -> Arc<dyn Volume>;

    /// Makes room for so many bytes, which read as zeroes behind the first `now`. Hosts see nothing
    /// of it yet.
    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        now: u64,
        bytes: u64,
        progress: &'a Progress,
    ) -> Work<'a, Result<(), Problem>>;

    /// The volume shows so many blocks at least, for which room was made.
    fn extend(&self, _: BlockCount) {}

    /// Gives back what is beyond so many bytes, which nobody uses any more; fine where there is no
    /// such thing. The LUN had `was` bytes before, and may have fewer than it has now.
    fn shrink<'a>(
        &'a self,
        core: &'a CoreHandle,
        was: u64,
        bytes: u64,
    ) -> Work<'a, Result<(), OpenError>>;

    /// Bytes of a file or device that is the LUN's alone, which may be more than the LUN has.
    fn own_bytes(&self) -> Option<u64> {
        None
    }

    /// Bytes that it takes, where it knows without asking a disk.
    fn allocated(&self) -> Option<u64> {
        None
    }

    /// Bytes that the storage below writes as a whole.
    fn sector_bytes(&self) -> Option<u32> {
        None
    }

    /// A sync failed once: nothing is written any more until it is opened anew.
    fn is_broken(&self) -> bool {
        false
    }

    /// Why it cannot be used any more until it is opened anew, which is tried as long as the kind
    /// is not [`Fenced`](volume::OpenErrorKind::Fenced).
    fn lost(&self) -> Option<OpenError> {
        None
    }

    /// Its files and devices, where syncs failed because there was no space in them, and no sync
    /// for another reason.
    fn lacked_space(&self) -> Option<Vec<PathBuf>> {
        None
    }

    /// It is kept while its LUN is not in service: nothing else has the blocks.
    fn outlives_service(&self) -> bool {
        false
    }

    /// Lets go of what it has open: nobody uses it any more.
    fn close<'a>(&'a self, _: &'a CoreHandle) -> Work<'a, ()> {
        done(())
    }
}

/// A kind of backend: makes, opens and destroys what LUNs stand on.
pub(crate) trait Backend {
    /// Makes what a new LUN needs before it can be opened.
    fn create<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        progress: &'a Progress,
    ) -> Work<'a, Result<(), Problem>>;

    /// Opens the blocks of a LUN.
    fn open<'a>(
        &'a self,
        core: &'a CoreHandle,
        lun: &'a Lun,
        fences: Fences,
    ) -> Work<'a, Result<Rc<dyn Leaf>, OpenError>>;

    /// Destroys what a LUN has, where that is the LUN's alone to have.
    fn destroy<'a>(&'a self, core: &'a CoreHandle, lun: &'a Lun) -> Work<'a, Result<(), Problem>>;

    /// The file or device that is opened for a LUN, where there is one.
    fn file(&self, _: &Lun) -> Option<PathBuf> {
        None
    }
}

/// What a pool says of itself to a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PoolIdentity {
    /// Its number, which no other pool has.
    pub(crate) number: [u8; 16],
    /// Writes that were acknowledged may be in one and nowhere else.
    pub(crate) has_journal: bool,
}

/// The record of a LUN as its pool has it: nothing, where there is none.
#[derive(Clone, Default)]
pub(crate) struct Stored {
    /// Its file's text, where it stands in a file.
    pub(crate) text: Option<Vec<u8>>,
    /// What that says.
    pub(crate) record: Option<LunRecord>,
}

/// What the LUNs of a pool were given.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Promised {
    /// Their sizes, bytes.
    pub(crate) provisioned: u64,
    /// What they may still take of it, bytes.
    pub(crate) outstanding: u64,
}

/// A pool: a backend that has a name in node.toml and room that its LUNs share.
pub(crate) trait Pool: Backend {
    /// Why nothing of it can be used, where that is so: its LUNs are offline, nothing is made in it
    /// and nothing of it is purged. It comes back by itself.
    fn missing(&self) -> Option<OpenError>;

    /// A change that makes, opens or destroys something in it may begin.
    fn is_ready(&self) -> Work<'_, Result<(), Problem>> {
        done(Ok(()))
    }

    /// Itself, where it may have a journal; `None`: it makes stable whatever it acknowledges, and
    /// its LUNs have no sidecars.
    fn journals(&self) -> Option<&dyn KeepsJournal> {
        None
    }

    /// As `pool show` shows it, and the file system that it shares with others.
    fn facts(&self, promised: Promised) -> Work<'_, (PoolFacts, Option<u64>)>;

    /// The members on which a part of a LUN lies, by number.
    fn members_of(&self, _: &Lun) -> Vec<u16> {
        Vec::new()
    }

    /// Bytes that LUNs take by NAA identifier, where their leaves do not know.
    fn usage(&self) -> Work<'_, BTreeMap<String, u64>> {
        done(BTreeMap::new())
    }

    /// Probes whether something of it went, came back or fills up, about once a second.
    fn watch(&self) -> Work<'_, ()>;

    /// Writes again what it could not write down of itself.
    fn write_down(&self) -> Work<'_, ()>;

    /// What is stored of a LUN in it; `None`: it does not answer in time, which `soon` asks for.
    fn stored<'a>(&'a self, lun: &'a Lun, soon: bool) -> Work<'a, Option<Stored>>;

    /// Writes down in it what this LUN is, as `text`.
    fn write_record<'a>(
        &'a self,
        record: &'a LunRecord,
        text: Vec<u8>,
    ) -> Work<'a, Result<(), OpenError>>;

    /// The same of many; the NAA identifiers of those that could not be written, with the reason.
    /// A kind that can write them together does so.
    fn write_records<'a>(&'a self, records: &'a [LunRecord]) -> Work<'a, Vec<(String, OpenError)>> {
        Box::pin(async move {
            let mut failed = Vec::new();
            for record in records {
                if let Err(error) = self.write_record(record, record.encode()).await {
                    let why = late::of(format_args!("LUN {}", record.name), error);
                    failed.push((record.lun.naa.clone(), why));
                }
            }
            failed
        })
    }

    /// What nobody had, or no object named, is this LUN from now on, and says so.
    fn adopt<'a>(&'a self, _: &'a CoreHandle, _: &'a Lun) -> Work<'a, Result<(), Problem>> {
        done(Ok(()))
    }

    /// LUNs in it that are none of these, by NAA identifier.
    fn orphans<'a>(&'a self, known: &'a BTreeSet<String>) -> Work<'a, Vec<Orphan>>;

    /// What it says of the newest objects that were stored.
    fn saved(&self) -> Work<'_, Option<Vec<u8>>>;

    /// Writes down what was stored last, unless it says that or something newer.
    fn write_saved(&self, saved: SavedText) -> Work<'_, Result<(), OpenError>>;

    /// Gives back what a crash left a LUN too much, which takes so much space where its pool knows
    /// that; `true`: there was something.
    fn trim<'a>(&'a self, _: &'a Lun, _: Option<u64>) -> Work<'a, Result<bool, OpenError>> {
        done(Ok(false))
    }

    /// Reads what it keeps of itself and reports what is damaged, a sentence each; `None`: it keeps
    /// nothing. No change is under way meanwhile.
    fn damaged(&self) -> Option<Work<'_, Vec<String>>> {
        None
    }
}

/// A pool that may have a journal. It says so of itself, and keeps the sidecars of its LUNs, which
/// are checksums and history.
pub(crate) trait KeepsJournal {
    /// Which pool it is; `None`: nothing says that yet.
    fn identity(&self) -> Work<'_, Result<Option<PoolIdentity>, OpenError>>;

    /// Its number, which is made where there is none.
    fn number(&self) -> Work<'_, Result<[u8; 16], OpenError>>;

    /// Says whether it has a journal, durably.
    fn set_journal(&self, has: bool) -> Work<'_, Result<(), OpenError>>;

    /// The sidecar of a LUN with this ending, where it is a file.
    fn sidecar_file(&self, lun: &Lun, ending: &str) -> PathBuf;

    /// Where a sidecar stands, with room for so many bytes; `is_new`: it is made where it is not
    /// there.
    fn sidecar<'a>(
        &'a self,
        lun: &'a Lun,
        what: SidecarKind,
        bytes: u64,
        is_new: bool,
    ) -> Work<'a, Sidecar>;

    /// A sidecar has room for a LUN that becomes larger.
    fn grow_sidecar<'a>(
        &'a self,
        _: &'a Lun,
        _: SidecarKind,
        _: u64,
    ) -> Work<'a, Result<(), OpenError>> {
        done(Ok(()))
    }

    /// A sidecar is of no use any more, and its room is given back, but for a file's.
    fn give_up_sidecar<'a>(
        &'a self,
        _: &'a Lun,
        _: SidecarKind,
    ) -> Work<'a, Result<(), OpenError>> {
        done(Ok(()))
    }
}
