//! Pools of several members: put together at the start, made where all members are blank, and
//! watched.
//!
//! **Contract.** What the crate `members` says: two events are stable on every member that is there
//! before data is touched, and one before each change of who has which chunk. A LUN is served where
//! all members that hold a part of it are there. New chunks read as zeroes.
//!
//! **Failure.** After an event that could not be written everywhere, nothing is made, grown or
//! given back until the pool was read again: what stands on the members may be that event or the
//! one before. Where there is no room for the events of that reading, what was served goes on: it
//! had its two events. At a start it has none, and waits for room.

mod domains;
mod door;
mod facts;
mod inspect;
mod leaf;
mod make;
mod sidecars;
mod watch;

#[cfg(test)]
pub(crate) mod test;

pub(crate) use door::open;
pub(crate) use facts::{MemberPoolFacts, layout_name};
pub(crate) use leaf::MemberLeaf;

use env::{CoreHandle, FileKind};
use inspect::{Inspected, Print, Unwritten};
use manifest::config::{Layout, Pool};
use manifest::objects::Lun;
use members::{
    Assembly, Extent, LunId, RECORD_BYTES_MAX, Refused, Seen, State, Superblock, assemble,
};
use state::remembered::{self, Remembered};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::Now;
use volume::{OpenError, OpenErrorKind};

/// A pool whose LUNs lie in chunks of several files or devices, with its table in memory.
pub(crate) struct MemberPool {
    name: String,
    paths: Vec<PathBuf>,
    layout: Layout,
    /// Where it is kept what the members were, for when one of them is away.
    memory: PathBuf,
    state: RefCell<Assembled>,
    /// What stood on each path when it was put together last.
    prints: RefCell<Vec<Print>>,
    known: RefCell<Vec<Remembered>>,
    /// Why that could not be written down, until it is.
    unsaved: RefCell<Option<OpenError>>,
    /// What is worth knowing of how it is made.
    notes: RefCell<Vec<String>>,
    /// The sidecars that are open.
    parts: RefCell<sidecars::Parts>,
    /// What of it stays in files.
    in_files: RefCell<sidecars::InFiles>,
    /// When one that cannot be used as it should is read again.
    again: Cell<Option<Now>>,
}

/// How it is.
enum Assembled {
    /// It was put together, whole or not.
    There(There),
    /// It cannot be used.
    Not(OpenError),
}

struct There {
    assembly: Assembly,
    inspected: Rc<Vec<Inspected>>,
    /// Why an event could not be written everywhere, until one is.
    torn: Option<OpenError>,
}

/// Where a LUN lies.
pub(crate) struct Placed {
    /// The members that are there, by number.
    parts: BTreeMap<u16, (PathBuf, FileKind)>,
    /// In order of the LUN's addresses.
    extents: Vec<Extent>,
    /// Bytes of a stripe unit; of a chunk in a span.
    unit_bytes: u64,
    /// Bytes of a physical block.
    physical_block_bytes: u32,
}

/// What a pool knows a LUN by: its NAA identifier.
pub(crate) fn lun_id(lun: &Lun) -> LunId {
    let number = u128::from_str_radix(&lun.naa, 16);
    LunId(number.unwrap_or_default().to_be_bytes())
}

impl MemberPool {
    /// Puts a pool together; `used`: LUNs lie in it, so that it is not made anew.
    pub(crate) async fn open(
        core: &CoreHandle,
        pool: &Pool,
        (paths, layout): (&[PathBuf], Layout),
        state_dir: &Path,
        used: bool,
    ) -> Rc<Self> {
        let this = Rc::new(Self {
            name: pool.name.clone(),
            paths: paths.to_vec(),
            layout,
            memory: remembered::file(state_dir, &pool.name),
            state: RefCell::new(Assembled::Not(OpenError {
                kind: OpenErrorKind::Other,
                cause: "it was not inspected yet".to_owned(),
                next_step: "wait a moment".to_owned(),
            })),
            prints: RefCell::default(),
            known: RefCell::default(),
            unsaved: RefCell::default(),
            notes: RefCell::default(),
            parts: RefCell::default(),
            in_files: RefCell::default(),
            again: Cell::default(),
        });
        this.recall(core).await;
        this.assemble(core, used).await;
        if let Some(error) = this.problem() {
            tracing::error!(pool = pool.name, "the pool is not whole: {error}");
        }
        for note in this.notes.borrow().iter() {
            tracing::warn!(pool = pool.name, "{note}");
        }
        this
    }

    /// What is wrong with the superblocks of members that are there: for scrubs. Nobody writes them
    /// meanwhile.
    pub(crate) async fn damaged(&self) -> Vec<String> {
        let inspected = match &*self.state.borrow() {
            Assembled::There(there) => Rc::clone(&there.inspected),
            Assembled::Not(_) => return Vec::new(),
        };
        let mut found = Vec::new();
        for inspected in inspected.iter() {
            found.extend(inspect::damage(inspected).await);
        }
        found
    }

    /// Inspects all members and opens what fits together.
    pub(crate) async fn assemble(&self, core: &CoreHandle, used: bool) {
        let changed = self.changed(core).await;
        let assembled = match self.try_assemble(core, used, &changed).await {
            Ok(there) => Assembled::There(there),
            Err(error) => Assembled::Not(error),
        };
        *self.state.borrow_mut() = assembled;
        self.remember(core).await;
        self.note_domains(core).await;
        self.take_prints(core).await;
    }

    async fn inspect(&self, core: &CoreHandle) -> Vec<Inspected> {
        let mut inspected = Vec::new();
        for path in &self.paths {
            inspected.push(inspect::inspect(core, path).await);
        }
        inspected
    }

    async fn try_assemble(
        &self,
        core: &CoreHandle,
        used: bool,
        changed: &[PathBuf],
    ) -> Result<There, OpenError> {
        let mut inspected = self.inspect(core).await;
        if inspected.iter().all(|it| it.is_blank) && !used {
            self.make(core, &inspected).await?;
            inspected = self.inspect(core).await;
        }
        let seen: Vec<Seen> = inspected.iter().map(|it| it.seen.clone()).collect();
        let assembly = assemble(&seen);
        let assembly = assembly.map_err(|refused| self.refused(&refused, &inspected))?;
        self.has_this_layout(&assembly)?;
        inspect::reserve_room(&inspected).await;
        let (assembly, torn) = match go_on(&inspected, &seen, assembly.clone()).await {
            Ok(assembly) => (assembly, None),
            Err(unwritten) if unwritten.is_for_space => {
                let served = self.still_there(&assembly, &inspected, changed);
                let served = served.ok_or_else(|| unwritten.why.clone())?;
                (served, Some(unwritten.why))
            }
            Err(unwritten) => return Err(unwritten.why),
        };
        Ok(There {
            assembly,
            inspected: Rc::new(inspected),
            torn,
        })
    }

    /// What was served and is still there as it was, where the events that others need have no
    /// room. What came or was changed by somebody else is not used without them: a copy would be
    /// taken for it later.
    fn still_there(
        &self,
        found: &Assembly,
        inspected: &[Inspected],
        changed: &[PathBuf],
    ) -> Option<Assembly> {
        let mut served = self.there(|there| there.assembly.clone()).ok()?;
        if served.table.pool != found.table.pool {
            return None;
        }
        for (before, now) in served.states.iter_mut().zip(&found.states) {
            *before = match now {
                State::Present(at) => {
                    let path = inspected.get(*at).map(|it| &it.path);
                    let is_changed = path.is_none_or(|path| changed.contains(path));
                    if is_changed || before != now {
                        State::Absent
                    } else {
                        *now
                    }
                }
                State::Absent
                | State::Stale { .. }
                | State::Diverged { .. }
                | State::Twice(..)
                | State::TooSmall(_)
                | State::OtherBlocks(_) => *now,
            };
        }
        Some(served)
    }

    fn has_this_layout(&self, assembly: &Assembly) -> Result<(), OpenError> {
        let has = match assembly.table.layout {
            members::Layout::Span => Layout::Span,
            members::Layout::Stripe { .. } => Layout::Stripe,
        };
        // A single member is the same in both.
        if has == self.layout || assembly.table.members.len() == 1 {
            return Ok(());
        }
        let (has, says) = (facts::layout_name(has), facts::layout_name(self.layout));
        Err(OpenError {
            kind: OpenErrorKind::Refused,
            cause: format!("pool {} is a {has}, and node.toml says {says}", self.name),
            next_step: format!("write layout = \"{has}\" in node.toml"),
        })
    }

    /// Why nothing of it can be used.
    fn refused(&self, refused: &Refused, inspected: &[Inspected]) -> OpenError {
        let path = |at: &usize| inspected.get(*at).map_or("?", |it| it.seen.path.as_str());
        let (kind, cause, next_step) = match refused {
            Refused::NoMember => {
                let all = inspected.iter().map(|it| match &it.seen.found {
                    Ok(_) => it.seen.path.clone(),
                    Err(_) if it.is_blank => format!("{} is blank", it.seen.path),
                    Err(why) => format!("{}: {why}", it.seen.path),
                });
                let all = all.collect::<Vec<String>>().join("; ");
                (
                    OpenErrorKind::Missing,
                    format!("no member of pool {} is there: {all}", self.name),
                    "bring the members back. A new pool is made of members that are all there and blank: files of the \
                     wanted size (truncate -s 100G PATH), or devices whose first 2 MiB and last 1 MiB are zero",
                )
            }
            Refused::SeveralPools(one, other) => (
                OpenErrorKind::Refused,
                format!("{} and {} are of different pools", path(one), path(other)),
                "name the members of one pool in node.toml",
            ),
            Refused::Contradiction(one, other) => (
                OpenErrorKind::Damaged,
                format!(
                    "{} and {} say different things of the same event: one is of a copy that went on by itself",
                    path(one),
                    path(other)
                ),
                "take the copy away; causeway pool check shows what stands on each",
            ),
        };
        OpenError {
            kind,
            cause,
            next_step: next_step.to_owned(),
        }
    }

    /// Inspects the pool as it was put together.
    fn there<T>(&self, inspect: impl FnOnce(&There) -> T) -> Result<T, OpenError> {
        match &*self.state.borrow() {
            Assembled::There(there) => Ok(inspect(there)),
            Assembled::Not(error) => Err(error.clone()),
        }
    }

    /// The pool's number, and whether it has a journal.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn number(&self) -> Result<([u8; 16], bool), OpenError> {
        self.there(|there| {
            let table = &there.assembly.table;
            (table.pool.0, table.has_journal)
        })
    }

    /// Says on the members whether it has a journal.
    ///
    /// # Errors
    /// A member is missing, or it could not be written.
    pub(crate) async fn set_journal(&self, core: &CoreHandle, has: bool) -> Result<(), OpenError> {
        self.change(core, |table| {
            table.has_journal = has;
            Ok(())
        })
        .await
    }

    /// Gives a LUN so many bytes at least. What is new of them has to be made zeroes.
    ///
    /// # Errors
    /// There is no room, a member is missing, or the table could not be written.
    pub(crate) async fn resize(
        &self,
        core: &CoreHandle,
        lun: LunId,
        bytes: u64,
    ) -> Result<(), OpenError> {
        self.change(core, |table| {
            table.resize(lun, bytes).map_err(|full| OpenError {
                kind: OpenErrorKind::NoSpace,
                cause: format!("pool {} has {} bytes free", self.name, full.free_bytes),
                next_step: FULL.to_owned(),
            })
        })
        .await
    }

    /// Takes back what a LUN has beyond so many bytes, where that is anything and the pool is
    /// whole; `true`: it was.
    ///
    /// # Errors
    /// The table could not be written.
    pub(crate) async fn trim(
        &self,
        core: &CoreHandle,
        lun: LunId,
        bytes: u64,
    ) -> Result<bool, OpenError> {
        let has = self.there(|there| {
            let table = &there.assembly.table;
            let chunks = table.luns.get(&lun)?.iter().map(|run| u64::from(run.count));
            Some(chunks.sum::<u64>().saturating_mul(table.bytes_per_chunk()))
        });
        let each = self.there(|there| there.assembly.table.bytes_per_chunk());
        let (Ok(Some(has)), Ok(each)) = (has, each) else {
            return Ok(false);
        };
        if !self.is_whole() || has < bytes.saturating_add(each) {
            return Ok(false);
        }
        self.resize(core, lun, bytes).await?;
        Ok(true)
    }

    /// What stands on the members of a LUN; of the pool itself under [`LunId::POOL`].
    pub(crate) fn record(&self, lun: LunId) -> Option<Vec<u8>> {
        self.there(|there| there.assembly.table.records.get(&lun).cloned())
            .ok()
            .flatten()
    }

    /// Writes on the members what LUNs are, in one event; what is there already costs none.
    ///
    /// # Errors
    /// A member is missing, or the table could not be written.
    pub(crate) async fn keep_records(
        &self,
        core: &CoreHandle,
        mut wanted: BTreeMap<LunId, Vec<u8>>,
    ) -> Result<(), OpenError> {
        let same = self.there(|there| {
            let table = &there.assembly.table;
            wanted.retain(|lun, record| {
                let known = *lun == LunId::POOL || table.luns.contains_key(lun);
                known && record.len() <= RECORD_BYTES_MAX
            });
            // A record of a LUN that nobody names stays.
            wanted
                .iter()
                .all(|(lun, record)| table.records.get(lun) == Some(record))
        })?;
        if same {
            return Ok(());
        }
        self.change(core, |table| {
            table.records.extend(wanted);
            Ok(())
        })
        .await
    }

    /// LUNs that have a part of it.
    pub(crate) fn luns(&self) -> Vec<LunId> {
        self.there(|there| {
            let all = there.assembly.table.luns.keys().copied();
            all.filter(|id| id.as_sidecar().is_none()).collect()
        })
        .unwrap_or_default()
    }

    /// Takes back what a LUN has, and its sidecars.
    ///
    /// # Errors
    /// A member is missing, or the table could not be written.
    pub(crate) async fn release(&self, core: &CoreHandle, lun: LunId) -> Result<(), OpenError> {
        let all = self.all_of(lun);
        self.give_back(core, &all).await
    }

    /// One event: the table is stable on all members before this answers.
    async fn change(
        &self,
        core: &CoreHandle,
        edit: impl FnOnce(&mut Superblock) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let blocks = self.there(|there| {
            if !there.assembly.is_complete() || there.torn.is_some() {
                return Err(OpenError {
                    kind: OpenErrorKind::Refused,
                    cause: format!(
                        "pool {} is not whole, and nothing is made, grown or given back in it",
                        self.name
                    ),
                    next_step: format!("causeway pool show {}", self.name),
                });
            }
            let mut table = there.assembly.table.clone();
            edit(&mut table)?;
            if table.encode().is_none() {
                // They help where a state directory is lost; what is whose is worth more.
                tracing::warn!(
                    pool = self.name,
                    "what its LUNs are has no room on the members any more"
                );
                table.records.clear();
            }
            Ok(there.assembly.next(|next| {
                (next.luns, next.has_journal) = (table.luns, table.has_journal);
                next.records = table.records;
            }))
        })??;
        let inspected = match &mut *self.state.borrow_mut() {
            Assembled::There(there) => {
                there.torn = Some(OpenError {
                    kind: OpenErrorKind::Other,
                    cause: "an event is being written".to_owned(),
                    next_step: "wait a moment".to_owned(),
                });
                Rc::clone(&there.inspected)
            }
            Assembled::Not(error) => return Err(error.clone()),
        };
        let written = inspect::write(&inspected, &blocks).await;
        let written = written.map_err(OpenError::from);
        if let Assembled::There(there) = &mut *self.state.borrow_mut() {
            there.torn = written.as_ref().err().cloned();
            if written.is_ok() {
                there.assembly = there.assembly.clone().after(&blocks);
            }
        }
        self.take_prints(core).await;
        written
    }

    /// Where a LUN lies, whose neighbours are all there, too.
    ///
    /// # Errors
    /// It has nothing here, or a member is missing that holds a part of it or of a sidecar of
    /// it.
    fn place_with_all(&self, lun: LunId) -> Result<Placed, OpenError> {
        for id in self.all_of(lun).iter().skip(1) {
            self.place(*id)?;
        }
        self.place(lun)
    }

    /// Where a LUN lies.
    ///
    /// # Errors
    /// It has nothing here, or a member that holds a part of it is missing.
    pub(crate) fn place(&self, lun: LunId) -> Result<Placed, OpenError> {
        self.there(|there| {
            let Assembly { table, states, .. } = &there.assembly;
            let extents = table.extents(lun).ok_or_else(|| OpenError {
                kind: OpenErrorKind::Missing,
                cause: format!("pool {} has no part for this LUN", self.name),
                next_step: "name the members of the pool that it was made in".to_owned(),
            })?;
            let missing = there.assembly.missing_for(lun);
            if !missing.is_empty() {
                return Err(self.lacks(there, &missing));
            }
            let parts = (0_u16..).zip(states).filter_map(|(number, state)| {
                let State::Present(at) = state else {
                    return None;
                };
                let inspected = there.inspected.get(*at)?;
                Some((number, (inspected.path.clone(), inspected.kind?)))
            });
            Ok(Placed {
                parts: parts.collect(),
                extents,
                unit_bytes: match table.layout {
                    members::Layout::Span => table.chunk_bytes,
                    members::Layout::Stripe { unit_bytes } => u64::from(unit_bytes),
                },
                physical_block_bytes: table.physical_block_bytes,
            })
        })?
    }

    /// A member is missing, or nothing can be used.
    pub(crate) fn is_whole(&self) -> bool {
        let whole = self.there(|there| there.assembly.is_complete() && there.torn.is_none());
        whole.unwrap_or(false)
    }
}

/// Two events before data is touched, three to a member that lagged: an old copy of a member is
/// then too far behind to be taken for it.
async fn go_on(
    inspected: &[Inspected],
    seen: &[Seen],
    mut assembly: Assembly,
) -> Result<Assembly, Unwritten> {
    inspect::write(inspected, &assembly.again(seen)).await?;
    let found = assembly.table.event;
    while !assembly.has_gone_on_since(found) {
        let blocks = assembly.next(|_| {});
        inspect::write(inspected, &blocks).await?;
        assembly = assembly.after(&blocks);
    }
    Ok(assembly)
}

/// What to do where a pool has no room.
pub(crate) const FULL: &str = "purge LUNs that nobody needs, or use another pool";
