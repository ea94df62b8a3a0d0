//! A pool with a journal on a simulated machine, as one seed draws it.

use super::disk::{add_device, backings, leaf};
use super::layout::Layout;
use super::scene::{Opened, Setup};
use env::CoreHandle;
use env::sim::{Node, Rng};
use layers::integrity::{self, Blank, Finding, MapSpec, Options};
use layers::{Emulate, Integrity, ReadCache, StableWrite};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use units::{BlockCount, BlockSize};
use volume::{Checked, Cut, Fences, IoError, Volume, over};
use write_back::{Journal, JournalSpec, Mode, SHARD_BYTES, VolumeId, WriteBack, bytes_min};

/// Where the journal is.
pub(in crate::sim) const JOURNAL: &str = "/journals/pool";

const POOL: [u8; 16] = *b"the pool of sims";

/// The volume that fills the log, and its size.
pub(in crate::sim) const FILLER: usize = 2;
pub(in crate::sim) const FILLER_BYTES: u64 = 1 << 20;

/// Bytes of a part of a volume's history.
pub(in crate::sim) const PART_BYTES: u64 = 64 << 10;

/// Bytes from which writes go around the log that none has.
const NEVER: usize = 1 << 30;

/// What a seed has decided about a pool.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Pool {
    pub(in crate::sim) setup: Setup,
    /// How many LUNs of the pool a schedule writes to.
    pub(in crate::sim) volumes: usize,
    /// There is one more, which fills the log.
    pub(in crate::sim) fills: bool,
    /// The volumes have checksums.
    pub(in crate::sim) checksums: bool,
    /// Stable writes do not wait for their checksums, as in the daemon.
    covered: bool,
    /// Bytes of physical blocks, as far as checksums are concerned.
    physical_block_bytes: u32,
    /// The history of what changes is kept.
    pub(in crate::sim) history: bool,
    rings: u32,
    shard_bytes: u64,
    /// Bytes of the journal; as few as there may be, if not said otherwise.
    journal_bytes: Option<u64>,
    past_bytes: usize,
    /// Modes change from life to life.
    switches: bool,
}

impl Pool {
    /// The pool of a seed: the same whenever it is asked for.
    pub(in crate::sim) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x6A6F_7572_6E61_6C73);
        let setup = Setup {
            block_size: *rng.pick(&[BlockSize::B512, BlockSize::B4096]),
            blocks: rng.between(16, 48),
            salt: rng.draw(),
            physical_block_exponent: 0,
            layout: Layout::One,
            strict: false,
        };
        let switches = rng.below(4) == 0;
        let past = switches && rng.below(2) == 0;
        Self {
            setup,
            volumes: 1 + usize::from(rng.below(4) == 0),
            fills: rng.below(8) == 0,
            checksums: rng.below(3) == 0,
            covered: seed & 4 != 0,
            physical_block_bytes: match seed & 8 {
                0 => setup.block_size.bytes(),
                _ => 4096,
            },
            history: false,
            rings: 1 + u32::from(rng.below(2) == 0),
            shard_bytes: *rng.pick(&[4 << 10, 16 << 10, 1 << 30]),
            journal_bytes: None,
            past_bytes: if past { 6 << 10 } else { NEVER },
            switches,
        }
    }

    /// Every fourth keeps the history of its volumes, or has several members, or both.
    pub(in crate::sim) fn with_more(mut self, seed: u64) -> Self {
        if seed % 4 != 1 {
            return self;
        }
        let mut rng = Rng::new(seed ^ 0x6869_7374_6F72_7921);
        self.history = rng.below(4) != 0;
        if self.history {
            let parts = rng.between(2, 5);
            self.setup.blocks = parts * PART_BYTES / u64::from(self.setup.block_size.bytes());
        }
        self.setup = self.setup.laid(*rng.pick(&Layout::ALL));
        self
    }

    /// The same in write-back mode all the time, with nothing that fills the log.
    pub(in crate::sim) fn plain(self) -> Self {
        Self {
            fills: false,
            switches: false,
            past_bytes: NEVER,
            ..self
        }
    }

    /// One volume of this setup, whose mode stays.
    pub(in crate::sim) fn only(setup: Setup, checksums: bool) -> Self {
        Self {
            setup,
            volumes: 1,
            fills: false,
            checksums,
            covered: true,
            physical_block_bytes: setup.block_size.bytes() << setup.physical_block_exponent,
            history: false,
            rings: 1 + u32::from(setup.salt & 16 != 0),
            shard_bytes: if setup.salt & 32 == 0 {
                4 << 10
            } else {
                16 << 10
            },
            journal_bytes: None,
            past_bytes: if setup.salt & 128 == 0 {
                6 << 10
            } else {
                NEVER
            },
            switches: true,
        }
    }

    /// The same as the daemon lays it out, for volumes as large as real ones.
    pub(in crate::sim) fn large(self) -> Self {
        Self {
            journal_bytes: Some(256 << 20),
            shard_bytes: SHARD_BYTES,
            past_bytes: 64 << 10,
            ..self
        }
    }

    /// What the disks keep whole. The log keeps blocks whole over sectors of 512 bytes; what goes
    /// past it is as whole as below.
    pub(in crate::sim) fn sector_bytes(&self) -> u64 {
        if self.switches {
            self.setup.block_size.bytes().into()
        } else {
            512
        }
    }

    /// Long writes are written around the log, whatever the mode.
    pub(in crate::sim) fn writes_around(&self) -> bool {
        self.past_bytes != NEVER
    }

    /// The mode of a life.
    pub(in crate::sim) fn mode(&self, rng: &mut Rng) -> Mode {
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
        let setup = Setup {
            blocks,
            ..self.setup
        };
        setup.laid(setup.layout)
    }

    /// The name of a volume.
    pub(in crate::sim) fn name(volume: usize) -> &'static str {
        ["one", "two", "filler"][volume]
    }

    /// The files or devices of a volume.
    pub(in crate::sim) fn backings(&self, volume: usize) -> Vec<PathBuf> {
        backings(Self::name(volume), self.setup_of(volume))
    }

    /// Makes it on a new node.
    pub(in crate::sim) async fn make(self, node: Node) -> Result<(), String> {
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
            bytes: self.journal_bytes.unwrap_or(bytes_min(self.rings)),
            rings: self.rings,
            pool: POOL,
            shard_bytes: self.shard_bytes,
        };
        let created = Journal::create(&core, &spec).await;
        created.map_err(|error| error.to_string())?;
        if self.checksums {
            self.make_maps(&core).await?;
        }
        Ok(())
    }

    async fn make_maps(self, core: &CoreHandle) -> Result<(), String> {
        for volume in self.all() {
            let setup = self.setup_of(volume);
            let spec = MapSpec {
                sidecar: Self::map(volume).into(),
                volume: [u8::try_from(volume).expect("few"); 16],
                block_size: setup.block_size,
                physical_block_bytes: self.physical_block_bytes,
                block_count: BlockCount(setup.blocks),
                blank: Blank::Zeroes,
            };
            let made = integrity::create(core, &spec).await;
            made.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Its number in the journal.
    pub(super) fn id(volume: usize) -> VolumeId {
        VolumeId(10 + volume as u64)
    }

    /// The map of a volume's checksums.
    pub(in crate::sim) fn map(volume: usize) -> PathBuf {
        PathBuf::from(format!("/journals/{}.checksums", Self::name(volume)))
    }

    /// The history of a volume's changes.
    fn changes(volume: usize) -> PathBuf {
        PathBuf::from(format!("/journals/{}.changes", Self::name(volume)))
    }

    /// The volume with its checksums: what the journal may have left half-way to the backing volume
    /// is taken as it is.
    async fn checked(
        self,
        core: &CoreHandle,
        (number, id): (usize, VolumeId),
        backing: Arc<dyn Volume>,
        (journal, found): (&Journal, &Found),
    ) -> Result<Arc<Integrity>, String> {
        let volume = [u8::try_from(number).expect("few"); 16];
        let mut options = Options::new(Self::map(number).into(), volume);
        let found = found.clone();
        options.report = Arc::new(move |finding| found.report(number, finding));
        options.covered = self.covered;
        let checked = Integrity::open(core, backing, options).await;
        let checked = checked.map_err(|error| error.to_string())?;
        if checked.is_replaying() {
            let unverified = journal.unverified_blocks(id);
            let marked = checked.mark_unverified(core, unverified.ranges()).await;
            marked.map_err(|error| error.to_string())?;
            checked.replayed();
        }
        Ok(checked)
    }

    /// Opens journal and volumes. `Err` is the reason that an administrator reads.
    pub(in crate::sim) async fn open(
        self,
        core: CoreHandle,
        mode: Mode,
    ) -> Result<Running, String> {
        self.open_for(core, mode, |_| Fences::new(1)).await
    }

    /// The same for whoever has rights to its volumes.
    pub(in crate::sim) async fn open_for(
        self,
        core: CoreHandle,
        mode: Mode,
        fences_of: impl Fn(usize) -> Fences,
    ) -> Result<Running, String> {
        let journal = Journal::open(&core, Path::new(JOURNAL), POOL).await;
        let journal = journal.map_err(|error| error.to_string())?;
        let (mut volumes, mut journaled) = (BTreeMap::new(), BTreeMap::new());
        let (mut all_checked, found) = (Vec::new(), Found::default());
        for number in self.all() {
            let (fences, setup) = (fences_of(number), self.setup_of(number));
            let leaf = leaf(&core, Self::name(number), setup, fences.clone()).await?;
            let mut backing = over(StableWrite, over(Emulate, leaf));
            let id = Self::id(number);
            if self.checksums {
                let checked = self
                    .checked(&core, (number, id), backing, (&journal, &found))
                    .await?;
                all_checked.push(Arc::clone(&checked));
                backing = over(Checked, checked);
            }
            let on = Arc::clone(&journal);
            let behind = if self.history {
                WriteBack::with_history(
                    on,
                    id,
                    backing,
                    (fences, mode),
                    Self::changes(number).into(),
                )
            } else {
                WriteBack::new(on, id, backing, fences, mode)
            };
            behind.write_around_from(self.past_bytes);
            journaled.insert(number, Arc::clone(&behind));
            if self.checksums {
                behind.log_first();
            }
            // Every second setup has a cache that holds a part of the blocks.
            let bytes = (self.setup.salt & 4) * (16 << 10);
            let cache = ReadCache::new(bytes, self.setup.block_size);
            behind.offer_to(cache.clone());
            let cached = over(cache, behind);
            volumes.insert(number, over(Checked, cached));
        }
        Ok(Running {
            journal,
            volumes,
            journaled,
            checked: all_checked,
            found,
            mode,
        })
    }
}

/// What checksums took for damage.
#[derive(Clone, Default)]
struct Found(Arc<Mutex<Vec<String>>>);

impl Found {
    fn report(&self, volume: usize, finding: &Finding) {
        let alarm = match finding {
            Finding::Mismatch(_) | Finding::MapDamaged { .. } | Finding::MapWeakened { .. } => true,
            Finding::Repaired(_)
            | Finding::Rewritten(_)
            | Finding::MapFull { .. }
            | Finding::MapHasRoom
            | Finding::MapBroken { .. } => false,
        };
        if alarm {
            let what = format!("volume {volume}: {finding:?}");
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(what);
        }
    }
}

/// A pool that is open.
pub(in crate::sim) struct Running {
    pub(in crate::sim) journal: Arc<Journal>,
    volumes: BTreeMap<usize, Arc<dyn Volume>>,
    journaled: BTreeMap<usize, Arc<WriteBack>>,
    checked: Vec<Arc<Integrity>>,
    found: Found,
    pub(in crate::sim) mode: Mode,
}

impl Running {
    /// Blocks of a volume that the journal says are damaged.
    pub(in crate::sim) fn damaged_blocks(&self, volume: usize) -> Vec<Range<u64>> {
        let id = Pool::id(volume);
        let damaged = self.journal.damaged().iter();
        damaged
            .filter(|it| it.volume == id)
            .map(|it| it.range.start().0..it.range.end().0)
            .collect()
    }

    /// Blocks of 4 KiB of a volume whose checksums are taken from what is there, as it was opened.
    pub(in crate::sim) fn marked(&self, volume: usize) -> Vec<Range<u64>> {
        self.journal
            .unverified_blocks(Pool::id(volume))
            .ranges()
            .collect()
    }

    /// What was taken for damage so far, which nothing was. It is reported once.
    pub(in crate::sim) fn false_alarms(&self) -> Vec<String> {
        let mut found = self.found.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *found)
    }

    /// Makes a cut of a volume.
    pub(in crate::sim) async fn cut(
        &self,
        core: &CoreHandle,
        volume: usize,
    ) -> Result<Cut, IoError> {
        self.journaled[&volume].cut(core).await
    }

    /// A volume with all its layers.
    pub(in crate::sim) fn volume(&self, volume: usize) -> Arc<dyn Volume> {
        Arc::clone(&self.volumes[&volume])
    }

    /// Destages everything and closes it; `true`: nothing is left to do when it is opened
    /// again.
    pub(in crate::sim) async fn close(&self, core: &CoreHandle) -> bool {
        self.journal.drain(core).await;
        let status = self.journal.status(core).await;
        let mut whole = (status.iter())
            .all(|it| it.pages == 0 && it.destage_errors.is_empty() && it.failed.is_none());
        self.journal.close(core).await;
        for checked in &self.checked {
            whole &= checked.close(core).await.is_ok();
        }
        whole
    }

    /// A lane for a client.
    pub(in crate::sim) async fn lane(
        &self,
        core: CoreHandle,
        volume: usize,
    ) -> Result<Opened, String> {
        let opened = Opened::of(Arc::clone(&self.volumes[&volume]), &core).await?;
        Ok(Opened {
            acknowledged_is_stable: !opened.shape.caps.volatile_cache,
            ..opened
        })
    }
}
