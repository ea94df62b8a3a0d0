//! The sidecars of LUNs on the members of a pool, to be read.

use super::sidecar::Opened;
use env::file::read;
use env::{Answer, CoreHandle, File, FileDone, FileFacts, FileFuture, FileOp, OpenHow};
use members::{Assembly, Extent, Layout, LunId, SidecarKind, State};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

/// The members that are there, by number.
pub(crate) struct OnMembers(BTreeMap<u16, Rc<dyn File>>);

impl OnMembers {
    /// Opens those that are there; `paths`: where each was looked for.
    pub(crate) async fn open(core: &CoreHandle, assembly: &Assembly, paths: &[PathBuf]) -> Self {
        let mut there = BTreeMap::new();
        for (number, state) in (0_u16..).zip(&assembly.states) {
            let State::Present(at) = state else { continue };
            let Some(path) = paths.get(*at) else { continue };
            if let Ok(file) = core.files().open(path, OpenHow::READ).await {
                there.insert(number, file);
            }
        }
        Self(there)
    }

    /// A sidecar of a LUN; `None`: it is not there.
    pub(crate) fn of(&self, assembly: &Assembly, lun: LunId, what: SidecarKind) -> Option<Opened> {
        let table = &assembly.table;
        let extents = table.extents(lun.sidecar(what)?)?;
        let mut members = extents.iter().flat_map(|extent| &extent.members);
        if !members.all(|number| self.0.contains_key(number)) {
            return Some(Err(io::Error::other("it lies on a member that is missing")));
        }
        let unit = match table.layout {
            Layout::Span => table.chunk_bytes,
            Layout::Stripe { unit_bytes } => u64::from(unit_bytes),
        };
        Some(Ok(Rc::new(SidecarFile {
            files: self.0.clone(),
            extents,
            unit,
        })))
    }
}

/// One of these sidecars, as a file over the members that have its parts.
#[derive(Clone)]
struct SidecarFile {
    files: BTreeMap<u16, Rc<dyn File>>,
    extents: Vec<Extent>,
    /// Bytes after which the next member has its turn.
    unit: u64,
}

impl SidecarFile {
    /// The member that holds a byte, where on it, and how many bytes follow there.
    fn at(&self, byte: u64) -> Option<(u16, u64, u64)> {
        let mut begin = 0;
        for extent in &self.extents {
            let columns = extent.members.len() as u64;
            let end = begin + extent.bytes * columns;
            if byte < end {
                let inside = byte - begin;
                let (turn, rest) = (inside / self.unit, inside % self.unit);
                let column = usize::try_from(turn % columns).ok()?;
                let at = extent.offset + turn / columns * self.unit + rest;
                return Some((*extent.members.get(column)?, at, self.unit - rest));
            }
            begin = end;
        }
        None
    }

    fn bytes(&self) -> u64 {
        let extents = self.extents.iter();
        let of = extents.map(|extent| extent.bytes * extent.members.len() as u64);
        of.sum()
    }

    async fn run(&self, op: FileOp) -> io::Result<FileDone> {
        match op {
            FileOp::Len => Ok(FileDone::Len(self.bytes())),
            FileOp::Read { offset, mut into } => {
                let mut done = 0;
                while done < into.len() {
                    let left = into.len() - done;
                    let place = self.at(offset + done as u64);
                    let Some((member, at, follow)) = place else {
                        into.copy_at(done, &vec![0; left]);
                        break;
                    };
                    let bytes = left.min(usize::try_from(follow).unwrap_or(left));
                    let file = self.files.get(&member).ok_or(io::ErrorKind::NotFound)?;
                    into.copy_at(done, &read(file, at, bytes).await?);
                    done += bytes;
                }
                Ok(FileDone::Read(into))
            }
            FileOp::Write { .. }
            | FileOp::Sync
            | FileOp::PunchHole { .. }
            | FileOp::ZeroRange { .. }
            | FileOp::Allocate { .. }
            | FileOp::SetLen { .. }
            | FileOp::Extents { .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl File for SidecarFile {
    fn facts(&self) -> FileFacts {
        let first = self.files.values().next();
        first.expect("it lies on members that are there").facts()
    }

    fn submit(&self, op: FileOp) -> FileFuture {
        let this = self.clone();
        Answer::wait(async move { this.run(op).await })
    }
}
