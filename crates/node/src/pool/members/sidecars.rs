//! The sidecars of LUNs on the members: maps of checksums and histories, in chunks of
//! their own.
//!
//! ```text
//!   room for it, made zeroes --> (what stood in state_dir, copied, synced)
//!         --> it counts: one event --> used
//! ```
//!
//! **Contract.** What counts is whole: it was zeroes, or a whole copy, before the event that says
//! so. Chunks are given back when nothing is under way in them any more.

use super::{MemberLeaf, MemberPool, lun_id};
use backends::Provisioning;
use env::file::length;
use env::{CoreHandle, OpenHow};
use manifest::objects::Lun;
use members::{LunId, SidecarKind};
use sidecar::{Part, Sidecar};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, Fences, Io, IoError, Lane, Op, OpenError, OpenErrorKind, Origin};

/// The blocks that it is read and written in.
const BLOCK: BlockSize = BlockSize::B4096;

/// Bytes that are copied at once.
const COPIED_BYTES: u64 = 256 << 10;

/// How long what is under way may take to end before chunks are given back.
const END_TIME_MAX: Duration = Duration::from_secs(5);

/// What is open, by what the pool knows it by.
pub(crate) type Parts = BTreeMap<LunId, Arc<Part>>;

/// What stays in files of `state_dir` until the daemon ends, because it is open there.
pub(crate) type InFiles = BTreeSet<LunId>;

/// For people.
const fn words(what: SidecarKind) -> &'static str {
    match what {
        SidecarKind::Checksums => "the checksums",
        SidecarKind::Changes => "the history",
        SidecarKind::Coming => "what is being copied",
    }
}

impl MemberPool {
    /// This stands on the members.
    pub(crate) fn has_sidecar(&self, lun: LunId, what: SidecarKind) -> bool {
        let id = lun.sidecar(what);
        id.is_some_and(|id| self.room_of(id).is_some())
    }

    /// It is used in its file from now on: nothing moves it while this process runs.
    pub(crate) fn stays_in_file(&self, lun: LunId, what: SidecarKind) {
        self.in_files.borrow_mut().extend(lun.sidecar(what));
    }

    /// It is in use in its file.
    pub(crate) fn is_in_file(&self, lun: LunId, what: SidecarKind) -> bool {
        let id = lun.sidecar(what);
        id.is_some_and(|id| self.in_files.borrow().contains(&id))
    }

    fn room_of(&self, id: LunId) -> Option<u64> {
        self.there(|there| there.assembly.table.bytes_of(id))
            .ok()
            .flatten()
    }

    /// All that a LUN has here: itself, and its sidecars.
    pub(crate) fn all_of(&self, lun: LunId) -> Vec<LunId> {
        let sidecars = SidecarKind::ALL
            .into_iter()
            .filter_map(|it| lun.sidecar(it));
        let there = sidecars.filter(|id| self.room_of(*id).is_some());
        std::iter::once(lun).chain(there).collect()
    }

    /// Opens a sidecar on the members, or opens it anew.
    ///
    /// # Errors
    /// It does not stand there, or a member that holds a part of it is missing.
    pub(crate) async fn open_sidecar(
        self: &Rc<Self>,
        core: &CoreHandle,
        lun: &Lun,
        what: SidecarKind,
    ) -> Result<Sidecar, OpenError> {
        let id = self.id_of(lun, what)?;
        let leaf = self.leaf(core, id).await?;
        let known = self.parts.borrow().get(&id).cloned();
        if let Some(part) = known {
            part.replace(leaf.whole());
            return Ok(Sidecar::Part(part));
        }
        let name = format!("{} of LUN {} on the members", words(what), lun.naa);
        let part = Part::new(name, leaf.whole());
        self.parts.borrow_mut().insert(id, Arc::clone(&part));
        Ok(Sidecar::Part(part))
    }

    fn id_of(&self, lun: &Lun, what: SidecarKind) -> Result<LunId, OpenError> {
        lun_id(lun).sidecar(what).ok_or_else(|| OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!(
                "pool {} has no place for a sidecar of a LUN with the identifier {}",
                self.name, lun.naa
            ),
            next_step: "it stands in state_dir".to_owned(),
        })
    }

    async fn leaf(
        self: &Rc<Self>,
        core: &CoreHandle,
        id: LunId,
    ) -> Result<Rc<MemberLeaf>, OpenError> {
        let how = (BLOCK, Provisioning::Thin);
        MemberLeaf::open(core, self, id, how, Fences::new(1)).await
    }

    /// Has room for so many bytes of a sidecar, which read as zeroes where nothing was written.
    /// What stands in the file `moves`, copied from there, is what it holds to begin with.
    ///
    /// # Errors
    /// There is no room, a member is missing, or it could not be written; what there was is as it
    /// was.
    pub(crate) async fn make_room_for_sidecar(
        self: &Rc<Self>,
        core: &CoreHandle,
        (lun, what): (&Lun, SidecarKind),
        bytes: u64,
        moves: Option<&Path>,
    ) -> Result<(), OpenError> {
        let id = self.id_of(lun, what)?;
        let has = self.room_of(id);
        let room = has.unwrap_or(0);
        if has.is_some() && room >= bytes {
            return Ok(());
        }
        let coming = self.id_of(lun, SidecarKind::Coming)?;
        // What a crash left.
        self.give_back(core, &[coming]).await?;
        let come = async {
            self.make_coming(core, coming, bytes - room, moves).await?;
            self.change(core, |table| {
                match has {
                    Some(_) => table.join(coming, id),
                    None => table.arrive(coming, id),
                }
                Ok(())
            })
            .await
        };
        let come = come.await;
        if come.is_err() {
            // The first error is the one to report; what is left is given back the next time.
            drop(self.give_back(core, &[coming]).await);
        }
        come
    }

    /// Chunks that count for nothing yet: zeroes, or a copy of a file and zeroes behind it, stable.
    async fn make_coming(
        self: &Rc<Self>,
        core: &CoreHandle,
        coming: LunId,
        bytes: u64,
        moves: Option<&Path>,
    ) -> Result<(), OpenError> {
        self.resize(core, coming, bytes).await?;
        let leaf = self.leaf(core, coming).await?;
        leaf.zero(core).await?;
        let Some(file) = moves else {
            return Ok(());
        };
        let copied = copy(core, file, &leaf).await;
        copied.map_err(|error| OpenError {
            kind: OpenErrorKind::of_io(&error),
            cause: format!("{} cannot be copied: {error}", file.display()),
            next_step: "check the pool's devices and state_dir".to_owned(),
        })
    }

    /// Gives back the sidecars of a LUN; fine where there is none.
    ///
    /// # Errors
    /// Something is still under way there, a member is missing, or the table could not be written.
    pub(crate) async fn give_back_sidecar(
        &self,
        core: &CoreHandle,
        lun: LunId,
        what: SidecarKind,
    ) -> Result<(), OpenError> {
        match lun.sidecar(what) {
            Some(id) => self.give_back(core, &[id]).await,
            None => Ok(()),
        }
    }

    /// Gives back what these have, in one event.
    pub(crate) async fn give_back(
        &self,
        core: &CoreHandle,
        ids: &[LunId],
    ) -> Result<(), OpenError> {
        let has = self.there(|there| {
            let luns = &there.assembly.table.luns;
            ids.iter().any(|id| luns.contains_key(id))
        })?;
        if !has {
            return Ok(());
        }
        for id in ids {
            let part = self.parts.borrow().get(id).cloned();
            if let Some(part) = part {
                // It stays known until nothing is under way in it: whoever tries again waits for
                // that, too.
                part.close(core, END_TIME_MAX).await?;
                self.parts.borrow_mut().remove(id);
            }
        }
        self.change(core, |table| {
            for id in ids {
                table.release(*id);
            }
            Ok(())
        })
        .await
    }
}

/// Copies a file to a part that is zeroes, and makes it stable.
async fn copy(core: &CoreHandle, file: &Path, leaf: &MemberLeaf) -> io::Result<()> {
    let file = core.files().open(file, OpenHow::READ).await?;
    let lane: Rc<dyn Lane> = leaf
        .whole()
        .open(core)
        .await
        .map_err(|error| io::Error::other(error.to_string()))?;
    let failed = |error: IoError| io::Error::other(format!("{error:?}"));
    let block = u64::from(BLOCK.bytes());
    let end = length(&file).await?.next_multiple_of(block);
    let mut at = 0;
    while at < end {
        let bytes = COPIED_BYTES.min(end - at);
        let piece = usize::try_from(bytes).expect("a small piece");
        let data = env::file::read(&file, at, piece).await?;
        if data.iter().any(|&byte| byte != 0) {
            let range = LbaRange::new(Lba(at / block), BlockCount(bytes / block));
            let op = Op::Write {
                range: range.expect("inside of it"),
                data: Buf::from(data),
                durability: Durability::Cached,
            };
            let done = lane.submit(Io::new(op, Origin::default())).await;
            done.map_err(failed)?;
        }
        at += bytes;
    }
    let flushed = lane.submit(Io::new(Op::Flush, Origin::default())).await;
    flushed.map(|_| ()).map_err(failed)
}
