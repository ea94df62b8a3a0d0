//! A LUN's part of a pool of members, as one volume.

use super::{MemberPool, Placed};
use crate::backend::disk::lacked_space;
use crate::backend::door::{Leaf, Work};
use crate::lun::failed::of_pool;
use backends::{DiskVolume, FileSpec, Progress, Provisioning};
use env::{CoreHandle, FileKind};
use layers::Stripe;
use layers::stripe::{Column, Map, Row};
use manifest::problem::Problem;
use members::LunId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::{
    Durability, Fences, Io, IoError, Lane, Op, OpenError, OpenErrorKind, Origin, Shape, Volume,
    Zeroing,
};

/// A LUN over members.
pub(crate) struct MemberLeaf {
    pool: Rc<MemberPool>,
    lun: LunId,
    stripe: Arc<Stripe>,
    /// The parts' places by member, and the parts.
    numbers: BTreeMap<u16, usize>,
    parts: Vec<Arc<DiskVolume>>,
    block_size: BlockSize,
}

/// The rows of a LUN, in blocks of its own.
fn map_of(
    placed: &Placed,
    numbers: &BTreeMap<u16, usize>,
    block_size: BlockSize,
) -> Result<Map, OpenError> {
    let block = u64::from(block_size.bytes());
    let broken = |rule: &str| OpenError {
        kind: OpenErrorKind::Damaged,
        cause: format!("the pool's table cannot be used: {rule}"),
        next_step: "causeway pool check shows what stands on the members".to_owned(),
    };
    let mut rows = Vec::new();
    for extent in &placed.extents {
        let columns = extent.members.iter().map(|member| {
            let part = *numbers.get(member)?;
            let start = Lba(extent.offset / block);
            Some(Column { part, start })
        });
        let columns: Option<Vec<Column>> = columns.collect();
        rows.push(Row {
            columns: columns.ok_or_else(|| broken("a member is missing"))?,
            blocks: extent.bytes / block,
        });
    }
    Map::new(rows, placed.unit_bytes / block).map_err(broken)
}

async fn part(
    core: &CoreHandle,
    (path, kind): &(PathBuf, FileKind),
    (block_size, physical, provisioning): (BlockSize, u32, Provisioning),
    fences: Fences,
) -> Result<Arc<DiskVolume>, OpenError> {
    match kind {
        FileKind::Block => backends::open_block(core, path, block_size, fences).await,
        FileKind::Regular => {
            let ratio = physical.max(block_size.bytes()) / block_size.bytes();
            let spec = FileSpec {
                path: path.clone(),
                block_size,
                physical_block_exponent: u8::try_from(ratio.ilog2()).expect("at most 7"),
                provisioning,
            };
            backends::open_file(core, spec, fences).await
        }
    }
}

impl MemberLeaf {
    /// Opens a LUN.
    ///
    /// # Errors
    /// A member that holds a part of it is missing, or cannot be opened.
    pub(crate) async fn open(
        core: &CoreHandle,
        pool: &Rc<MemberPool>,
        id: LunId,
        (block_size, provisioning): (BlockSize, Provisioning),
        fences: Fences,
    ) -> Result<Rc<Self>, OpenError> {
        let placed = pool.place(id)?;
        let (mut numbers, mut parts) = (BTreeMap::new(), Vec::new());
        let spec = (block_size, placed.physical_block_bytes, provisioning);
        for (number, place) in &placed.parts {
            numbers.insert(*number, parts.len());
            parts.push(part(core, place, spec, fences.clone()).await?);
        }
        let map = map_of(&placed, &numbers, block_size)?;
        let volumes = parts.iter().map(|part| Arc::clone(part) as Arc<dyn Volume>);
        let stripe = Stripe::new(volumes.collect(), map)?;
        Ok(Rc::new(Self {
            pool: Rc::clone(pool),
            lun: id,
            stripe,
            numbers,
            parts,
            block_size,
        }))
    }

    /// Gives it so many bytes, which read as zeroes from the first of `from` on.
    ///
    /// # Errors
    /// There is no room, a member is missing, or they could not be written.
    pub(crate) async fn make_room(
        &self,
        core: &CoreHandle,
        bytes: Range<u64>,
        progress: &Progress,
    ) -> Result<(), OpenError> {
        self.pool.resize(core, self.lun, bytes.end).await?;
        self.adopt_map()?;
        let block = u64::from(self.block_size.bytes());
        let range = bytes.start / block..bytes.end / block;
        let how = (Zeroing::MayUnmap, progress);
        self.make_zeroes(core, range, how).await
    }

    /// It has so many bytes again, after more could not be made. Where that fails, the next start
    /// takes them back.
    async fn give_back(&self, core: &CoreHandle, had: u64) {
        let given = self.pool.resize(core, self.lun, had).await;
        if let Err(error) = given.and_then(|()| self.adopt_map()) {
            tracing::warn!("a LUN keeps what it was to grow by until a restart: {error}");
        }
    }

    /// It as a volume.
    pub(crate) fn whole(&self) -> Arc<dyn Volume> {
        Arc::<Stripe>::clone(&self.stripe)
    }

    /// Makes all of it zeroes, with space of its own.
    ///
    /// # Errors
    /// They could not be written.
    pub(crate) async fn zero(&self, core: &CoreHandle) -> Result<(), OpenError> {
        let range = 0..self.whole().shape().block_count.0;
        let progress = Progress::default();
        let how = (Zeroing::KeepAllocated, &progress);
        self.make_zeroes(core, range, how).await
    }

    fn adopt_map(&self) -> Result<(), OpenError> {
        let placed = self.pool.place(self.lun)?;
        let map = map_of(&placed, &self.numbers, self.block_size)?;
        self.stripe.set_map(map).map_err(|rule| OpenError {
            kind: OpenErrorKind::Damaged,
            cause: format!("the pool's table cannot be used: {rule}"),
            next_step: "restart the daemon".to_owned(),
        })
    }

    /// Makes blocks zeroes, stable: somebody else's data may stand in them.
    async fn make_zeroes(
        &self,
        core: &CoreHandle,
        range: Range<u64>,
        (zeroing, progress): (Zeroing, &Progress),
    ) -> Result<(), OpenError> {
        let Range {
            start: from,
            end: to,
        } = range;
        let failed = |error: IoError| OpenError {
            kind: OpenErrorKind::Other,
            cause: format!("what the LUN gets could not be made zeroes: {error:?}"),
            next_step: "check the pool's devices and the kernel's log".to_owned(),
        };
        let volume = self.whole();
        let shape: Shape = volume.shape();
        let lane: Rc<dyn Lane> = volume.open(core).await?;
        let most = shape.limits.write_zeroes_blocks_max.0.max(1);
        let mut at = from;
        while at < to {
            if progress.is_stopped() {
                return Err(failed(IoError::Aborted));
            }
            let blocks = most.min(to - at);
            let range = LbaRange::new(Lba(at), BlockCount(blocks)).expect("inside the volume");
            let op = Op::WriteZeroes {
                range,
                zeroing,
                durability: Durability::Cached,
            };
            let done = lane.submit(Io::new(op, Origin::default())).await;
            done.map_err(failed)?;
            progress.add(blocks * u64::from(self.block_size.bytes()));
            at += blocks;
        }
        let flushed = lane.submit(Io::new(Op::Flush, Origin::default())).await;
        flushed.map(|_| ()).map_err(failed)
    }
}

impl Leaf for MemberLeaf {
    fn volume(&self) -> Arc<dyn Volume> {
        self.whole()
    }

    fn grow<'a>(
        &'a self,
        core: &'a CoreHandle,
        now: u64,
        bytes: u64,
        progress: &'a Progress,
    ) -> Work<'a, Result<(), Problem>> {
        Box::pin(async move {
            if bytes <= now {
                return Ok(());
            }
            let had = self.pool.bytes_of(self.lun).unwrap_or(now);
            let grown = self.make_room(core, now..bytes, progress).await;
            if grown.is_err() {
                self.give_back(core, had).await;
            }
            grown.map_err(|error| of_pool(&error))
        })
    }

    fn shrink<'a>(
        &'a self,
        core: &'a CoreHandle,
        _: u64,
        bytes: u64,
    ) -> Work<'a, Result<(), OpenError>> {
        Box::pin(async move {
            self.pool.resize(core, self.lun, bytes).await?;
            self.adopt_map()
        })
    }

    fn allocated(&self) -> Option<u64> {
        self.pool.bytes_of(self.lun)
    }

    fn sector_bytes(&self) -> Option<u32> {
        let sectors = self.parts.iter().map(|part| part.sector_bytes());
        Some(sectors.max().unwrap_or(512))
    }

    fn is_broken(&self) -> bool {
        self.parts.iter().any(|part| part.is_broken())
    }

    fn lacked_space(&self) -> Option<Vec<PathBuf>> {
        lacked_space(&self.parts)
    }
}
