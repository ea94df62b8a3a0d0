//! Making, opening, growing and closing a volume's map.

use super::map::{Map, place};
use super::map_file::{MapFile, read_at, read_pair};
use super::page::lock;
use super::{Finding, Integrity, Options};
use checksums::{
    Blank, Checksum, Damage, FAN, MapId, PAGE, REGIONS_MAX, SUPERBLOCKS_AT, Superblock, Tree,
    checksums_max,
};
use env::file::is_no_space;
use env::{Access, CoreHandle, Create, File, FileOp, OpenHow};
use futures_util::stream::{self, StreamExt};
use sidecar::Sidecar;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use units::{BlockCount, BlockSize, Buf};
use volume::{IoError, OpenError, OpenErrorKind, Shape, Volume};

/// Pages that are read at once when many are searched.
const PAGES_AT_ONCE: usize = 32;

/// What a map is made for.
#[derive(Clone, Debug)]
pub struct MapSpec {
    /// The file or region that will hold it.
    pub sidecar: Sidecar,
    /// The volume's number.
    pub volume: [u8; 16],
    /// The volume's logical blocks: their size ...
    pub block_size: BlockSize,
    /// ... and how many.
    pub block_count: BlockCount,
    /// Bytes of a physical block, which a checksum covers: 512, or as good as 4096.
    pub physical_block_bytes: u32,
    /// What the volume holds now.
    pub blank: Blank,
}

impl MapSpec {
    /// For a volume as it is.
    #[must_use]
    pub fn of(sidecar: Sidecar, volume: [u8; 16], shape: &Shape, blank: Blank) -> Self {
        Self {
            sidecar,
            volume,
            block_size: shape.block_size,
            physical_block_bytes: shape.block_size.bytes() << shape.physical_block_exponent,
            block_count: shape.block_count,
            blank,
        }
    }

    /// Bytes that the map may come to take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let bytes = self.block_count.0 * u64::from(self.block_size.bytes());
        checksums::map_bytes(bytes.div_ceil(u64::from(self.covers().bytes())))
    }

    fn covers(&self) -> BlockSize {
        match self.physical_block_bytes {
            512 => BlockSize::B512,
            _ => BlockSize::B4096,
        }
    }
}

const fn how(create: Create, direct: bool) -> OpenHow {
    OpenHow {
        access: Access::ReadWrite,
        create,
        direct,
        lock: true,
    }
}

/// A map has an end, and a volume that goes on behind it cannot have one.
fn end_of_map(superblock: &Superblock) -> Result<(), String> {
    let most = checksums_max(superblock.covers);
    if superblock.checksums() <= most {
        return Ok(());
    }
    let tib = (most * u64::from(superblock.covers.bytes())) >> 40;
    Err(format!("checksums reach as far as {tib} TiB"))
}

/// Makes an empty map that survives a power cut. On an error nothing is left.
///
/// # Errors
/// `InvalidInput` for a volume that is too large, `AlreadyExists`, `StorageFull` and whatever else
/// the file system says.
pub async fn create(core: &CoreHandle, spec: &MapSpec) -> io::Result<()> {
    let mut id = [0; 16];
    core.fill_random(&mut id);
    let superblock = Superblock {
        map: MapId(id),
        volume: spec.volume,
        block_size: spec.block_size,
        covers: spec.covers(),
        blocks: spec.block_count.0,
        blank: spec.blank,
        clean: true,
        count: 0,
        regions: Box::new([0; REGIONS_MAX]),
        with_checksum: 0,
    };
    end_of_map(&superblock).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    let file = spec.sidecar.open(core, how(Create::New, false)).await?;
    let filled = async {
        let write = FileOp::Write {
            offset: SUPERBLOCKS_AT[0],
            data: Buf::copy_of(&superblock.write()),
            durable: env::Durable::No,
        };
        file.submit(write).await?;
        // Both have their space from now on: a full disk keeps nobody from opening it.
        let other = FileOp::Write {
            offset: SUPERBLOCKS_AT[1],
            data: Buf::zeroes(PAGE),
            durable: env::Durable::No,
        };
        file.submit(other).await?;
        file.submit(FileOp::Sync).await?;
        match &spec.sidecar {
            Sidecar::File(path) => {
                let directory = path.parent().unwrap_or_else(|| Path::new("."));
                core.files().sync_dir(directory).await
            }
            Sidecar::Part(_) => Ok(()),
        }
    };
    let result = filled.await;
    if let (Err(_), Sidecar::File(path)) = (&result, &spec.sidecar) {
        // The first error is the one to report; what could not be removed is an unused file.
        drop(core.files().remove(path).await);
    }
    result
}

/// The map's file, past the page cache where its alignment allows that.
pub(super) async fn map_file(
    core: &CoreHandle,
    sidecar: &Sidecar,
) -> Result<Rc<dyn File>, OpenError> {
    let fail = |error: io::Error| cannot(sidecar, &error);
    let file = sidecar
        .open(core, how(Create::No, true))
        .await
        .map_err(fail)?;
    if file.facts().alignment as usize <= PAGE {
        return Ok(file);
    }
    drop(file);
    sidecar
        .open(core, how(Create::No, false))
        .await
        .map_err(fail)
}

fn cannot(sidecar: &Sidecar, error: &io::Error) -> OpenError {
    if is_no_space(error) {
        return OpenError {
            kind: OpenErrorKind::NoSpace,
            cause: format!("there is no space for the checksums in {sidecar}: {error}"),
            next_step:
                "make room in the file system where they lie, and the LUN is online soon after"
                    .to_owned(),
        };
    }
    OpenError {
        kind: OpenErrorKind::of_io(error),
        cause: format!("the checksums in {sidecar} cannot be used: {error}"),
        next_step:
            "bring the file back, or give the checksums up: causeway lun set NAME integrity=false"
                .to_owned(),
    }
}

fn refused(sidecar: &Sidecar, why: &dyn std::fmt::Display) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Damaged,
        cause: format!("the checksums in {sidecar} cannot be used: {why}"),
        next_step:
            "restore the file, or give the checksums up: causeway lun set NAME integrity=false"
                .to_owned(),
    }
}

fn refused_version(sidecar: &Sidecar, version: Damage) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Unsupported,
        cause: format!("the checksums in {sidecar} cannot be used: {version}"),
        next_step: "run the version of causeway that wrote them".to_owned(),
    }
}

impl Integrity {
    /// The volume `below` with the map in a file.
    ///
    /// # Errors
    /// What the operator must mend: the map is missing, damaged as a whole, of a later version, or
    /// another volume's.
    pub async fn open(
        core: &CoreHandle,
        below: Arc<dyn Volume>,
        options: Options,
    ) -> Result<Arc<Self>, OpenError> {
        let sidecar = options.sidecar.clone();
        let fail = |error: io::Error| cannot(&sidecar, &error);
        let file = map_file(core, &sidecar).await?;
        // What a killed process left must be stable before it counts.
        file.submit(FileOp::Sync).await.map_err(fail)?;
        let slots = read_at(core, &file, 0, 2 * PAGE).await.map_err(fail)?;
        let superblock = match Superblock::newest([&slots[..PAGE], &slots[PAGE..]]) {
            Ok(superblock) => superblock,
            Err(version @ Damage::Version { .. }) => {
                return Err(refused_version(&sidecar, version));
            }
            Err(damage) => return Err(refused(&sidecar, &damage)),
        };
        let was_unclean = !superblock.clean;
        let newest = slots[superblock.slot() * PAGE..][..PAGE].to_vec();
        let shape = below.shape();
        if superblock.volume != options.volume {
            return Err(refused(&sidecar, &"they are another volume's"));
        }
        if superblock.block_size != shape.block_size {
            return Err(refused(
                &sidecar,
                &"they were made for blocks of another size",
            ));
        }
        let mut tree = Tree::new(&superblock);
        let mut weak = Vec::new();
        for node in tree.nodes() {
            if tree.recorded(node).is_absent() {
                continue;
            }
            let pair = read_pair(core, &file, node).await.map_err(fail)?;
            weak.extend(tree.load(node, [&pair[..PAGE], &pair[PAGE..]]).err());
        }
        if let Some(unfit) = weak
            .iter()
            .find(|unfit| matches!(unfit.why, Damage::Version { .. }))
        {
            return Err(refused_version(&sidecar, unfit.why));
        }
        let map = Map::new(superblock, tree, options);
        for unfit in weak {
            map.report_finding(&Finding::MapWeakened {
                why: unfit.why.to_string(),
            });
        }
        let integrity = Arc::new(Self {
            below,
            map,
            sidecar: sidecar.clone(),
            unfollowed: Mutex::default(),
        });
        let from = MapFile {
            core: Rc::clone(core),
            file,
        };
        integrity.make_sure(&from, &newest).await.map_err(fail)?;
        match integrity.begin(&from).await {
            // After a crash it says already that generations may be older.
            Err(error) if was_unclean && is_no_space(&error) => {
                lock(&integrity.map.superblock).count -= 1;
            }
            begun => begun.map_err(fail)?,
        }
        integrity.reshape_from(&from).await?;
        Ok(integrity)
    }

    /// The newest superblock may not be stable, where a sync of it failed: it is written once more
    /// as it is, so that it stays whatever becomes of the next one.
    async fn make_sure(&self, from: &MapFile, newest: &[u8]) -> io::Result<()> {
        let slot = lock(&self.map.superblock).slot();
        from.write(SUPERBLOCKS_AT[slot], newest).await?;
        from.file.submit(FileOp::Sync).await?;
        Ok(())
    }

    /// From now on, generations in the file may be older than the newest ones.
    async fn begin(&self, from: &MapFile) -> io::Result<()> {
        let (at, bytes) = {
            let mut superblock = lock(&self.map.superblock);
            superblock.count += 1;
            superblock.clean = false;
            (SUPERBLOCKS_AT[superblock.slot()], superblock.write())
        };
        from.write(at, &bytes).await?;
        from.file.submit(FileOp::Sync).await?;
        Ok(())
    }

    /// The volume below has another size now: to be called before anything is written beyond the
    /// old end, and after it was cut off. Where that fails, the map is as before, and this is to be
    /// called again.
    ///
    /// # Errors
    /// What kept the map from following.
    pub async fn reshape(&self, core: &CoreHandle) -> Result<(), OpenError> {
        let file = map_file(core, &self.sidecar).await?;
        let from = MapFile {
            core: Rc::clone(core),
            file,
        };
        self.reshape_from(&from).await
    }

    /// Whether the map goes on as far as a volume of so many logical blocks.
    ///
    /// # Errors
    /// It does not.
    pub fn reaches(&self, blocks: BlockCount) -> Result<(), OpenError> {
        let larger = Superblock {
            blocks: blocks.0,
            ..lock(&self.map.superblock).clone()
        };
        end_of_map(&larger).map_err(|why| OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: why,
            next_step: "stay below that, or give the checksums up: causeway lun set NAME \
                        integrity=false"
                .to_owned(),
        })
    }

    async fn reshape_from(&self, from: &MapFile) -> Result<(), OpenError> {
        let blocks = self.below.shape().block_count;
        let cut = self.note_cut(blocks);
        if let Some(cut) = cut {
            self.reshape_to(from, cut.0).await?;
            *lock(&self.unfollowed) = None;
        }
        self.reshape_to(from, blocks.0).await
    }

    /// The smallest size that the volume was cut to since the map followed last, or is cut to now.
    fn note_cut(&self, blocks: BlockCount) -> Option<BlockCount> {
        let is_cut = blocks.0 < lock(&self.map.superblock).blocks;
        let mut least = lock(&self.unfollowed);
        if is_cut {
            *least = Some(least.map_or(blocks, |before| before.min(blocks)));
        }
        *least
    }

    async fn reshape_to(&self, from: &MapFile, blocks: u64) -> Result<(), OpenError> {
        let (old, new) = {
            let mut superblock = lock(&self.map.superblock);
            let old = superblock.clone();
            let new = Superblock {
                blocks,
                ..old.clone()
            };
            end_of_map(&new).map_err(|why| refused(&self.sidecar, &why))?;
            *superblock = new.clone();
            (old, new)
        };
        if old.blocks == new.blocks {
            return Ok(());
        }
        let followed = self.follow(from, &old, &new).await;
        if followed.is_err() {
            // All of it is done again when this is asked for again.
            lock(&self.map.superblock).blocks = old.blocks;
        }
        followed.map_err(|error| {
            if error == IoError::SpaceExhausted {
                cannot(&self.sidecar, &io::ErrorKind::StorageFull.into())
            } else {
                refused(&self.sidecar, &format!("{error:?}"))
            }
        })
    }

    /// The map becomes that of a volume of another size.
    async fn follow(
        &self,
        from: &MapFile,
        old: &Superblock,
        new: &Superblock,
    ) -> Result<(), IoError> {
        let map = &self.map;
        lock(&map.tree).grow(new.checksums().div_ceil(FAN as u64));
        // A block that is cut, or was, has a checksum over other bytes than before.
        let per_checksum = map.per_checksum;
        let cut = if old.blocks < new.blocks {
            old.blocks
        } else {
            new.blocks
        };
        if !cut.is_multiple_of(per_checksum) {
            self.forget(
                from,
                cut / per_checksum..cut / per_checksum + 1,
                Checksum::OPEN,
            )
            .await?;
        }
        if new.checksums() < old.checksums() {
            self.forget(from, new.checksums()..old.checksums(), Checksum::BLANK)
                .await?;
        }
        map.stable(from).await?;
        self.begin(from).await.map_err(|error| {
            if is_no_space(&error) {
                IoError::SpaceExhausted
            } else {
                IoError::MediumError { lba: units::Lba(0) }
            }
        })
    }

    async fn forget(
        &self,
        from: &MapFile,
        blocks: Range<u64>,
        to: Checksum,
    ) -> Result<(), IoError> {
        for part in super::map::parts(blocks) {
            if lock(&self.map.tree).recorded(place(part.page)).is_absent() {
                continue;
            }
            let page = self
                .map
                .page(&from.core, &from.file, part.page, false)
                .await?;
            let Some(page) = page else { continue };
            let checksums = vec![to; part.entries.len()];
            self.map
                .changed(&page, page.set(part.entries.start, &checksums));
        }
        Ok(())
    }

    /// After a crash: nobody knows whether these blocks, by numbers of blocks of 4096 bytes, are
    /// old or new, and so does not their checksum. Those who read them next adopt their
    /// checksums. To be called before anything is read or written.
    ///
    /// # Errors
    /// What kept the map from being read or written.
    pub async fn mark_unverified(
        &self,
        core: &CoreHandle,
        blocks: impl Iterator<Item = Range<u64>>,
    ) -> Result<(), OpenError> {
        let file = map_file(core, &self.sidecar).await?;
        let from = MapFile {
            core: Rc::clone(core),
            file,
        };
        let per_block = (PAGE / self.map.covered_bytes) as u64;
        let blocks = blocks.map(|it| it.start * per_block..it.end * per_block);
        let opened = match open_up(&self.map, &from, blocks).await {
            // Those who read them adopt their checksums all the same. After another crash the
            // journal names them again: it forgets nothing before a flush, which waits for the map.
            Err(IoError::SpaceExhausted) => Ok(()),
            opened => opened,
        };
        opened.map_err(|error| refused(&self.sidecar, &format!("{error:?}")))
    }

    /// The map is given up: nothing is written any more, to it or through it.
    pub fn give_up(&self) {
        self.map.state.closed.store(true, Ordering::Release);
        self.map.state.broken.store(true, Ordering::Release);
    }

    /// Writes everything, and that it is everything. Nothing can be written through the volume
    /// afterwards, whether this succeeds or not.
    ///
    /// # Errors
    /// What kept it from being written, or that a write is under way: the map is then as after a
    /// crash.
    pub async fn close(&self, core: &CoreHandle) -> Result<(), OpenError> {
        // Who holds blocks from here on finds it closed, and who holds some already is found.
        self.map.state.closed.store(true, Ordering::Release);
        let closed = self.write_all(core).await;
        self.map.state.broken.store(true, Ordering::Release);
        closed
    }

    async fn write_all(&self, core: &CoreHandle) -> Result<(), OpenError> {
        let fail = |why: &dyn std::fmt::Display| refused(&self.sidecar, why);
        let file = map_file(core, &self.sidecar).await?;
        let from = MapFile {
            core: Rc::clone(core),
            file,
        };
        if self.map.cache.is_held() {
            return Err(fail(&"writes are under way"));
        }
        while !(self.map.settle(&from).await).map_err(|error| fail(&format!("{error:?}")))? {}
        let closed = async {
            self.map.write_superblock(&from, true).await?;
            from.file.submit(FileOp::Sync).await?;
            Ok(())
        };
        closed.await.map_err(|error: io::Error| fail(&error))
    }
}

/// Has whoever reads these blocks next adopt their checksums, and makes that stable.
pub(super) async fn open_up(
    map: &Arc<Map>,
    from: &MapFile,
    blocks: impl Iterator<Item = Range<u64>>,
) -> Result<(), IoError> {
    let end = lock(&map.superblock).checksums();
    let parts = blocks.flat_map(|it| super::map::parts(it.start.min(end)..it.end.min(end)));
    // Side by side, because each page is a read of the file.
    let mut opened = stream::iter(parts)
        .map(|part| async move {
            let page = map.page(&from.core, &from.file, part.page, true).await;
            page.map(|page| (page.expect("wanted anyway"), part.entries))
        })
        .buffer_unordered(PAGES_AT_ONCE);
    while let Some(opened) = opened.next().await {
        let (page, entries) = opened?;
        let spared = (map.blank() == Blank::Anything).then_some(Checksum::BLANK);
        map.changed(&page, page.open(entries, spared));
        if map.dirty_pages() >= map.cache.pages_max() && !map.is_full() {
            match map.stable(from).await {
                // All of them are to be opened, whether there is space for that or not.
                Ok(()) | Err(IoError::SpaceExhausted) => {}
                Err(error) => return Err(error),
            }
        }
    }
    map.stable(from).await
}
