//! A pool with a journal on a simulated machine, as one seed draws it.

use crate::sim::disk::{add_device, file, leaf};
use crate::sim::scene::{Opened, Setup};
use env::CoreHandle;
use env::sim::{Node, Rng};
use layers::integrity::{self, Blank, MapSpec, Options};
use layers::write_back::{Journal, JournalSpec, Mode, VolumeId, bytes_min};
use layers::{Checked, Emulate, Integrity, ReadCache, StableWrite, WriteBack, over};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{BlockCount, BlockSize};
use volume::{Fences, Volume};

/// Where the journal is.
pub(super) const JOURNAL: &str = "/journals/pool";

const POOL: [u8; 16] = *b"the pool of sims";

/// The volume that fills the log, and its size.
pub(super) const FILLER: usize = 2;
pub(super) const FILLER_BYTES: u64 = 1 << 20;

/// Bytes from which writes go past the log that none has.
const NEVER: usize = 1 << 30;

/// What a seed has decided about a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool {
    pub(super) setup: Setup,
    /// Volumes of it.
    pub(super) volumes: usize,
    /// There is one more, which fills the log.
    pub(super) fills: bool,
    /// The volumes have checksums.
    pub(super) sums: bool,
    rings: u32,
    shard_bytes: u64,
    past_bytes: usize,
    /// Modes change from life to life.
    switches: bool,
}

impl Pool {
    /// The pool of a seed: the same whenever it is asked for.
    pub(super) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x6A6F_7572_6E61_6C73);
        let setup = Setup {
            block_size: *rng.pick(&[BlockSize::B512, BlockSize::B4096]),
            blocks: rng.between(16, 48),
            salt: rng.draw(),
            strict: false,
        };
        let switches = rng.below(4) == 0;
        let past = switches && rng.below(2) == 0;
        Self {
            setup,
            volumes: 1 + usize::from(rng.below(4) == 0),
            fills: rng.below(8) == 0,
            sums: rng.below(3) == 0,
            rings: 1 + u32::from(rng.below(2) == 0),
            shard_bytes: *rng.pick(&[4 << 10, 16 << 10, 1 << 30]),
            past_bytes: if past { 6 << 10 } else { NEVER },
            switches,
        }
    }

    /// The same in write-back mode all the time, with nothing that fills the log.
    pub(super) fn plain(self) -> Self {
        Self {
            fills: false,
            switches: false,
            past_bytes: NEVER,
            ..self
        }
    }

    /// What the disks keep whole. The log keeps blocks whole over sectors of 512 bytes; what goes past it is as whole as below.
    pub(super) fn sector_bytes(&self) -> u64 {
        if self.switches {
            self.setup.block_size.bytes().into()
        } else {
            512
        }
    }

    /// The mode of a life.
    pub(super) fn mode(&self, rng: &mut Rng) -> Mode {
        if self.switches {
            *rng.pick(&[Mode::WriteBack, Mode::WriteThrough, Mode::Volatile])
        } else {
            Mode::WriteBack
        }
    }

    /// The volumes, the one that fills included.
    fn all(self) -> impl Iterator<Item = usize> {
        (0..self.volumes).chain(self.fills.then_some(FILLER))
    }

    fn setup_of(&self, volume: usize) -> Setup {
        let blocks = if volume == FILLER {
            FILLER_BYTES / u64::from(self.setup.block_size.bytes())
        } else {
            self.setup.blocks
        };
        Setup {
            blocks,
            ..self.setup
        }
    }

    /// The name of a volume.
    pub(super) fn name(volume: usize) -> &'static str {
        ["one", "two", "filler"][volume]
    }

    /// The file or device of a volume.
    pub(super) fn home(&self, volume: usize) -> PathBuf {
        let name = Self::name(volume);
        if crate::sim::disk::uses_device(self.setup) {
            crate::sim::disk::device(name)
        } else {
            file(name)
        }
    }

    /// Makes it on a new node.
    pub(super) async fn make(self, node: Node) -> Result<(), String> {
        let core = node.core(0);
        for volume in self.all() {
            add_device(&node, Self::name(volume), self.setup_of(volume));
        }
        let files = core.files();
        let directory = Path::new(JOURNAL).parent().expect("it has one");
        let made = files.create_dir(directory).await;
        made.map_err(|error| error.to_string())?;
        let synced = files.sync_dir(Path::new("/")).await;
        synced.map_err(|error| error.to_string())?;
        let spec = JournalSpec {
            path: JOURNAL.into(),
            bytes: bytes_min(self.rings),
            rings: self.rings,
            pool: POOL,
            shard_bytes: self.shard_bytes,
        };
        let created = Journal::create(&core, &spec).await;
        created.map_err(|error| error.to_string())?;
        if self.sums {
            self.make_maps(&core).await?;
        }
        Ok(())
    }

    async fn make_maps(self, core: &CoreHandle) -> Result<(), String> {
        for volume in self.all() {
            let setup = self.setup_of(volume);
            let spec = MapSpec {
                path: Self::map(volume),
                volume: [u8::try_from(volume).expect("few"); 16],
                block_size: setup.block_size,
                block_count: BlockCount(setup.blocks),
                blank: Blank::Zeroes,
            };
            let made = integrity::create(core, &spec).await;
            made.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Its number in the journal.
    fn id(volume: usize) -> VolumeId {
        VolumeId(10 + volume as u64)
    }

    /// The map of a volume's checksums.
    pub(super) fn map(volume: usize) -> PathBuf {
        PathBuf::from(format!("/journals/{}.sums", Self::name(volume)))
    }

    /// The volume with its checksums, where it has some: what the journal may have left half-way home is taken as it is.
    async fn checked(
        self,
        core: &CoreHandle,
        (number, id): (usize, VolumeId),
        home: Arc<dyn Volume>,
        journal: &Journal,
    ) -> Result<Arc<dyn Volume>, String> {
        if !self.sums {
            return Ok(home);
        }
        let volume = [u8::try_from(number).expect("few"); 16];
        let options = Options::new(Self::map(number), volume);
        let checked = Integrity::open(core, home, options).await;
        let checked = checked.map_err(|error| error.to_string())?;
        if checked.is_replaying() {
            let doubts = journal.doubts(id);
            let doubted = checked.doubt(core, doubts.ranges()).await;
            doubted.map_err(|error| error.to_string())?;
            checked.replayed();
        }
        Ok(over(Checked, checked))
    }

    /// Opens journal and volumes. `Err` is the reason that an administrator is told.
    pub(super) async fn open(self, core: CoreHandle, mode: Mode) -> Result<Running, String> {
        let journal = Journal::open(&core, Path::new(JOURNAL), POOL).await;
        let journal = journal.map_err(|error| error.to_string())?;
        let mut volumes = BTreeMap::new();
        for number in self.all() {
            let (fences, setup) = (Fences::new(1), self.setup_of(number));
            let leaf = leaf(&core, Self::name(number), setup, fences.clone()).await?;
            let home = over(StableWrite, over(Emulate, leaf));
            let id = Self::id(number);
            let home = self.checked(&core, (number, id), home, &journal).await?;
            let behind = WriteBack::new(Arc::clone(&journal), id, home, fences, mode);
            behind.go_past_from(self.past_bytes);
            if self.sums {
                behind.tell_first();
            }
            // Every second setup has a cache that holds a part of the blocks.
            let bytes = (self.setup.salt & 4) * (16 << 10);
            let cached = over(ReadCache::new(bytes, self.setup.block_size), behind);
            volumes.insert(number, over(Checked, cached));
        }
        Ok(Running {
            journal,
            volumes,
            mode,
        })
    }
}

/// A pool that is open.
pub(super) struct Running {
    pub(super) journal: Arc<Journal>,
    volumes: BTreeMap<usize, Arc<dyn Volume>>,
    pub(super) mode: Mode,
}

impl Running {
    /// Blocks of a volume that the journal says are damaged.
    pub(super) fn damaged_blocks(&self, volume: usize) -> Vec<Range<u64>> {
        let id = Pool::id(volume);
        let damaged = self.journal.damaged().iter();
        damaged
            .filter(|it| it.volume == id)
            .map(|it| it.range.start().0..it.range.end().0)
            .collect()
    }

    /// Blocks of 4 KiB of a volume whose checksums are taken from what is there, as it was opened.
    pub(super) fn doubted(&self, volume: usize) -> Vec<Range<u64>> {
        self.journal.doubts(Pool::id(volume)).ranges().collect()
    }

    /// A lane for a client.
    pub(super) async fn lane(&self, core: CoreHandle, volume: usize) -> Result<Opened, String> {
        let volume = Arc::clone(&self.volumes[&volume]);
        let shape = volume.shape();
        let lane = volume.open(&core).await;
        let lane = lane.map_err(|error| error.to_string())?;
        Ok(Opened {
            lane,
            shape,
            stable_zeroes: true,
            acknowledged_is_stable: !shape.caps.volatile_cache,
        })
    }
}
