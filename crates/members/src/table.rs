//! Which chunks are whose, and where they lie.

use crate::run::Run;
use crate::superblock::{DATA_OFFSET, Layout, LunId, Superblock};

/// A part of a LUN: the same bytes of one member, or of several that take turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The members, by their place, in order of turns.
    pub members: Vec<u16>,
    /// Where it begins on each of them, in bytes from the start.
    pub offset: u64,
    /// Bytes on each of them.
    pub bytes: u64,
}

/// There is not so much room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full {
    /// What could be had at most.
    pub free_bytes: u64,
}

impl Superblock {
    /// Chunks that the pool has.
    #[must_use]
    pub fn chunk_count(&self) -> u64 {
        let chunks = self.members.iter().map(|member| u64::from(member.chunks));
        match self.layout {
            Layout::Span => chunks.sum(),
            Layout::Stripe { .. } => chunks.min().unwrap_or(0),
        }
    }

    /// Bytes that a chunk gives to a LUN.
    #[must_use]
    pub fn bytes_per_chunk(&self) -> u64 {
        match self.layout {
            Layout::Span => self.chunk_bytes,
            Layout::Stripe { .. } => {
                let members = u64::try_from(self.members.len()).unwrap_or(u64::MAX);
                self.chunk_bytes.saturating_mul(members)
            }
        }
    }

    /// Bytes that LUNs may have, and those that none has.
    #[must_use]
    pub fn room(&self) -> (u64, u64) {
        let taken: u64 = self
            .luns
            .values()
            .flatten()
            .map(|run| u64::from(run.count))
            .sum();
        let all = self.chunk_count().min(u64::from(u32::MAX));
        let each = self.bytes_per_chunk();
        (
            all.saturating_mul(each),
            all.saturating_sub(taken).saturating_mul(each),
        )
    }

    /// Runs that nobody has.
    fn gaps(&self) -> Vec<Run> {
        let mut taken: Vec<Run> = self.luns.values().flatten().copied().collect();
        taken.sort();
        let end = u32::try_from(self.chunk_count()).unwrap_or(u32::MAX);
        let mut gaps = Vec::new();
        let mut at = 0;
        for run in taken {
            if run.first > at {
                gaps.push(Run {
                    first: at,
                    count: run.first - at,
                });
            }
            at = run.first + run.count;
        }
        if end > at {
            gaps.push(Run {
                first: at,
                count: end - at,
            });
        }
        gaps
    }

    /// Gives a LUN so many bytes at least: more where it has fewer, and takes back what is too
    /// much.
    ///
    /// # Errors
    /// There is not so much room; nothing has changed.
    pub fn resize(&mut self, lun: LunId, bytes: u64) -> Result<(), Full> {
        let full = Full {
            free_bytes: self.room().1,
        };
        let wanted = u32::try_from(bytes.div_ceil(self.bytes_per_chunk())).map_err(|_| full)?;
        let mut runs = self.luns.get(&lun).cloned().unwrap_or_default();
        let has: u32 = runs.iter().map(|run| run.count).sum();
        if wanted < has {
            shorten(&mut runs, has - wanted);
        } else {
            let gaps = self.gaps();
            let found = take(&gaps, runs.last().copied(), wanted - has).ok_or(full)?;
            append(&mut runs, found);
        }
        self.luns.insert(lun, runs);
        Ok(())
    }

    /// Takes back all that a LUN has.
    pub fn release(&mut self, lun: LunId) {
        self.luns.remove(&lun);
        self.records.remove(&lun);
    }

    /// The chunks that were to join a sidecar have come: they are the end of what is there.
    pub fn join(&mut self, coming: LunId, known_as: LunId) {
        if let Some(more) = self.luns.remove(&coming) {
            append(self.luns.entry(known_as).or_default(), more);
        }
    }

    /// A sidecar that was made elsewhere has come: it takes the place of any that was there before.
    pub fn arrive(&mut self, coming: LunId, known_as: LunId) {
        if let Some(runs) = self.luns.remove(&coming) {
            self.luns.insert(known_as, runs);
        }
    }

    /// Bytes that a LUN's chunks have room for; `None` where it has none here.
    #[must_use]
    pub fn bytes_of(&self, lun: LunId) -> Option<u64> {
        let runs = self.luns.get(&lun)?.iter();
        let chunks: u64 = runs.map(|run| u64::from(run.count)).sum();
        Some(chunks.saturating_mul(self.bytes_per_chunk()))
    }

    /// Where a LUN lies, in order of its addresses; `None` where it has nothing here.
    #[must_use]
    pub fn extents(&self, lun: LunId) -> Option<Vec<Extent>> {
        let runs = self.luns.get(&lun)?;
        Some(runs.iter().flat_map(|run| self.extents_of(*run)).collect())
    }

    fn extents_of(&self, run: Run) -> Vec<Extent> {
        let numbers = 0..u16::try_from(self.members.len()).unwrap_or(u16::MAX);
        match self.layout {
            Layout::Stripe { .. } => vec![Extent {
                members: numbers.collect(),
                offset: DATA_OFFSET + u64::from(run.first) * self.chunk_bytes,
                bytes: u64::from(run.count) * self.chunk_bytes,
            }],
            Layout::Span => {
                let mut out = Vec::new();
                let (mut first, end) = (
                    u64::from(run.first),
                    u64::from(run.first) + u64::from(run.count),
                );
                let mut before = 0_u64;
                for (number, member) in numbers.zip(&self.members) {
                    let until = before + u64::from(member.chunks);
                    if first < until.min(end) {
                        let here = until.min(end) - first;
                        out.push(Extent {
                            members: vec![number],
                            offset: DATA_OFFSET + (first - before) * self.chunk_bytes,
                            bytes: here * self.chunk_bytes,
                        });
                        first += here;
                    }
                    before = until;
                }
                out
            }
        }
    }

    /// Bytes of each member, by its place, that LUNs and their sidecars have.
    #[must_use]
    pub fn taken(&self) -> Vec<u64> {
        let mut all = vec![0_u64; self.members.len()];
        let runs = self.luns.values().flatten();
        for extent in runs.flat_map(|run| self.extents_of(*run)) {
            for member in extent.members {
                if let Some(bytes) = all.get_mut(usize::from(member)) {
                    *bytes = bytes.saturating_add(extent.bytes);
                }
            }
        }
        all
    }

    /// The members that hold a part of a LUN.
    #[must_use]
    pub fn members_of(&self, lun: LunId) -> Vec<u16> {
        let extents = self.extents(lun).unwrap_or_default();
        let mut all: Vec<u16> = extents
            .into_iter()
            .flat_map(|extent| extent.members)
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Takes so many chunks off the end.
/// Adds runs in their order; those that meet are one.
fn append(runs: &mut Vec<Run>, more: Vec<Run>) {
    for run in more {
        match runs.last_mut() {
            Some(last) if last.first + last.count == run.first => last.count += run.count,
            _ => runs.push(run),
        }
    }
}

fn shorten(runs: &mut Vec<Run>, mut by: u32) {
    while by > 0 {
        let Some(last) = runs.last_mut() else { return };
        let here = last.count.min(by);
        last.count -= here;
        by -= here;
        if last.count == 0 {
            runs.pop();
        }
    }
}

/// So many chunks of the gaps: those right behind `after` first, then the smallest gap that holds
/// all of the rest, else the gaps in order.
fn take(gaps: &[Run], after: Option<Run>, count: u32) -> Option<Vec<Run>> {
    let mut gaps = gaps.to_vec();
    let mut out = Vec::new();
    let mut left = count;
    let mut cut = |gap: &mut Run, left: &mut u32| {
        let here = gap.count.min(*left);
        if here > 0 {
            out.push(Run {
                first: gap.first,
                count: here,
            });
            gap.first += here;
            gap.count -= here;
            *left -= here;
        }
    };
    if let Some(after) = after
        && let Some(gap) = gaps
            .iter_mut()
            .find(|gap| gap.first == after.first + after.count)
    {
        cut(gap, &mut left);
    }
    let fitting = gaps.iter_mut().filter(|gap| gap.count >= left);
    if let Some(gap) = fitting.min_by_key(|gap| gap.count) {
        cut(gap, &mut left);
    }
    for gap in &mut gaps {
        cut(gap, &mut left);
    }
    (left == 0).then_some(out)
}
