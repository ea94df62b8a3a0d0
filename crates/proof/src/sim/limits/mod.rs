//! Every command at every limit that a unit reports, and one block past it, over every composition
//! of layers, through a nexus.
//!
//! The limits are those that a host reads from the pages. The status of a command at a limit must
//! be GOOD, one past it the sense data that the standard names, and the blocks must hold what they
//! must, compared with a disk that is a list of changes. Volumes are larger than the largest limit,
//! and empty for the most part, so that it costs little.
//!
//! Beside that the operations are counted that one command makes of itself, and those that it makes
//! before anybody else on its core has a turn: no command keeps a unit or a core for longer than
//! such a bound.

mod contents;
mod host;

use super::disk;
use super::layers::Composition;
use super::layout::Layout;
use super::scene::Setup;
use super::stack;
use backends::MemoryVolume;
use contents::{Contents, Fill};
use env::CoreHandle;
use env::sim::{World, WorldConfig};
use host::{Host, Reported};
use layers::{Emulate, ReadCache, StableWrite};
use logical_unit::{LBA_STATUS_STEPS_MAX, LogicalUnit, NoStore, UnitConfig, UnitId};
use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf};
use volume::{Checked, Fences, Io, IoFuture, Lane, Shape, Volume, Wrap, over};

/// Operations that a command makes of itself at most: an UNMAP with as many descriptors as there
/// may be, cut by the smallest limit there is.
const OPERATIONS_MAX: u64 = 1024;

/// Operations that a command hands down before others of its core have a turn, at most. The order
/// of tasks is drawn, so that it may be more than one.
const BETWEEN_TURNS_MAX: u64 = 64;

/// Answers of GET LBA STATUS that report all of the disk, at most.
const LBA_STATUS_ANSWERS_MAX: u64 = 32;

/// Where blocks are probed, in bytes from the start of a change: where layers and limits cut.
const CUTS: [u64; 6] = [63 << 20, 64 << 20, 126 << 20, 1 << 30, 2 << 30, 3 << 30];

const UNIT: UnitId = UnitId(1);

/// What a volume stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// A sparse file.
    Thin,
    /// An allocated file.
    Thick,
    /// A block device, which can discard where there is no read cache.
    Device,
    /// Memory; without journal and parts.
    Memory,
}

impl Backing {
    /// Every kind of storage below the unit.
    pub const ALL: [Self; 4] = [Self::Thin, Self::Thick, Self::Device, Self::Memory];
}

/// Counts of the commands of a run, by how they ended.
#[derive(Clone, Copy, Default, Debug)]
pub struct LimitTally {
    /// Commands that ended well.
    pub good: u64,
    /// Commands that were refused, as they must be.
    pub refused: u64,
    /// Blocks that were compared.
    pub compared: u64,
    /// Blocks of UNMAP commands.
    pub unmapped: u64,
    /// Most operations of one command.
    pub operations_most: u64,
    /// Most operations of a command between two turns of others.
    pub between_turns_most: u64,
    /// Most answers of GET LBA STATUS for the whole disk.
    pub lba_status_most: u64,
}

impl std::ops::AddAssign for LimitTally {
    fn add_assign(&mut self, other: Self) {
        self.good += other.good;
        self.refused += other.refused;
        self.compared += other.compared;
        self.unmapped += other.unmapped;
        self.operations_most = self.operations_most.max(other.operations_most);
        self.between_turns_most = self.between_turns_most.max(other.between_turns_most);
        self.lba_status_most = self.lba_status_most.max(other.lba_status_most);
    }
}

/// Counts what a unit hands down.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU64>);

struct CountingLane {
    count: Arc<AtomicU64>,
    below: Rc<dyn Lane>,
}

impl Wrap for Counting {
    fn lane(&self, _: &CoreHandle, below: Rc<dyn Lane>, _: Shape) -> Rc<dyn Lane> {
        let count = Arc::clone(&self.0);
        Rc::new(CountingLane { count, below })
    }
}

impl Lane for CountingLane {
    fn submit(&self, io: Io) -> IoFuture {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.below.submit(io)
    }
}

impl Counting {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The volume's setup: large enough for each limit.
fn setup_of(chosen: Composition, backing: Backing) -> Setup {
    let bits = match backing {
        Backing::Thick => 8,
        Backing::Thin | Backing::Device | Backing::Memory => 0,
    };
    // Every second one has a journal of two rings.
    let bits = bits | chosen.cache_salt() | (u64::from(chosen.is_odd()) * 16);
    let is_device = backing == Backing::Device;
    let of = |number: u64| bits | number << 8;
    let salt = (0..3)
        .map(of)
        .find(|salt| salt.is_multiple_of(3) == is_device);
    let (block_size, _) = chosen.blocks();
    let large = 1 << 15;
    let transfer = (16 << 20) / u64::from(block_size.bytes());
    let blocks = if backing == Backing::Thick {
        large + 4 * transfer + 1000
    } else {
        (1 << 20) + 2 * transfer + 1000
    };
    let setup = Setup {
        block_size,
        blocks,
        salt: salt.expect("one of three in a row"),
        physical_block_exponent: chosen.blocks().1,
        layout: Layout::One,
        strict: false,
    };
    setup.laid(chosen.layout())
}

async fn volume_of(
    core: &CoreHandle,
    node: env::sim::Node,
    (chosen, backing, setup): (Composition, Backing, Setup),
    fences: Fences,
) -> Result<Arc<dyn Volume>, String> {
    if backing == Backing::Memory {
        let count = BlockCount(setup.blocks);
        let exponent = setup.physical_block_exponent;
        let memory = MemoryVolume::new(setup.block_size, count, exponent, fences);
        let leaf = over(StableWrite, over(Emulate, memory));
        let cached = over(
            ReadCache::new((setup.salt & 4) * (16 << 10), setup.block_size),
            leaf,
        );
        return Ok(over(Checked, cached));
    }
    let Some((pool, mode)) = chosen.pool(setup) else {
        disk::add_device(&node, super::layers::UNIT, setup);
        return disk::volume(core, super::layers::UNIT, setup, fences).await;
    };
    let pool = pool.large();
    pool.make(node).await?;
    let running = pool
        .open_for(Rc::clone(core), mode, |_| fences.clone())
        .await?;
    Ok(running.volume(0))
}

/// Whether this backing has this composition.
#[must_use]
pub fn has(chosen: Composition, backing: Backing) -> bool {
    backing != Backing::Memory || chosen.is_plain()
}

/// Tries all limits over one composition on one backing.
///
/// # Errors
/// What was not as it must be.
pub fn run(chosen: Composition, backing: Backing) -> Result<LimitTally, String> {
    let config = WorldConfig {
        pool_bytes: 1 << 30,
        disk_bytes: 1 << 44,
        ..WorldConfig::default()
    };
    let world = World::new(7, config);
    let node = world.node("san");
    let on = node.clone();
    let setup = setup_of(chosen, backing);
    let done = world.block_on(&node, Duration::from_secs(100_000), async move {
        let core = on.core(0);
        let fences = LogicalUnit::fences_for();
        let counting = Counting::default();
        let below = volume_of(&core, on, (chosen, backing, setup), fences.clone()).await?;
        let volume = over(counting.clone(), below);
        let shape = volume.shape();
        let mut identity = stack::identity("limits", setup, &shape);
        identity.thin = backing != Backing::Thick;
        let naa = identity.naa;
        let unit = LogicalUnit::new(UnitConfig {
            id: UNIT,
            home: core.id(),
            identity,
            fences,
            store: Arc::new(NoStore),
            is_new: false,
        });
        let started = unit.start(&core, Ok(volume)).await;
        started.map_err(|error| error.to_string())?;
        let host = Host::new(&core, UNIT).await?;
        let mut trial = Trial::new(&core, host, (setup, naa), counting).await?;
        trial.answers_at_once = backing == Backing::Memory;
        trial.all().await?;
        let report = trial.report;
        trial.host.close();
        Ok::<_, String>(report)
    });
    let done = done.map_err(|error| error.to_string()).and_then(|it| it);
    done.map_err(|why| format!("{chosen:?} on {backing:?}: {why}"))
}

/// What the pages say.
#[derive(Clone, Copy, Debug)]
struct Limits {
    compare: u64,
    transfer: u64,
    unmap: u64,
    unmap_descriptors: usize,
    write_same: u64,
    atomic: u64,
    unmaps: bool,
    reads_zero: bool,
}

struct Trial {
    core: CoreHandle,
    host: Host,
    limits: Limits,
    blocks: u64,
    block_size: BlockSize,
    naa: [u8; 16],
    contents: Contents,
    numbers: u64,
    counting: Counting,
    turns: Turns,
    /// The volume waits for nothing: only what a command does by itself gives others a turn.
    answers_at_once: bool,
    report: LimitTally,
}

const INVALID_FIELD_IN_CDB: (u8, u8, u8) = (5, 0x24, 0);
const INVALID_FIELD_IN_LIST: (u8, u8, u8) = (5, 0x26, 0);
const TOO_MANY_SEGMENTS: (u8, u8, u8) = (5, 0x26, 8);
const INVALID_OPCODE: (u8, u8, u8) = (5, 0x20, 0);
const OUT_OF_RANGE: (u8, u8, u8) = (5, 0x21, 0);
const MISCOMPARE: (u8, u8, u8) = (0xe, 0x1d, 0);

/// What one command hands down between two turns of another task of its core.
#[derive(Clone, Default)]
struct Turns {
    counting: Counting,
    last: Rc<Cell<u64>>,
    most: Rc<Cell<u64>>,
}

impl Turns {
    /// A turn, or a command that begins.
    fn begin(&self) {
        self.last.set(self.counting.now());
    }

    /// A turn, or a command that ends.
    fn end(&self) {
        let handed_down = self.counting.now() - self.last.get();
        self.most.set(self.most.get().max(handed_down));
    }

    /// Takes a turn whenever it can.
    async fn count(self) {
        loop {
            env::yield_now().await;
            self.end();
            self.begin();
        }
    }
}

impl Trial {
    async fn new(
        core: &CoreHandle,
        host: Host,
        (setup, naa): (Setup, [u8; 16]),
        counting: Counting,
    ) -> Result<Self, String> {
        let page = |reported: Reported| {
            reported.map_err(|sense| format!("a page was refused: {sense:x?}"))
        };
        let b0 = page(host.send(&host::page(0xb0), Buf::empty()).await)?;
        let b2 = page(host.send(&host::page(0xb2), Buf::empty()).await)?;
        let be32 =
            |at: usize| u64::from(u32::from_be_bytes(b0[at..at + 4].try_into().expect("four")));
        let limits = Limits {
            compare: b0[5].into(),
            transfer: be32(8),
            unmap: be32(20),
            unmap_descriptors: usize::try_from(be32(24)).expect("small"),
            write_same: be32(36) << 32 | be32(40),
            atomic: be32(44),
            unmaps: b2[5] & 0x80 != 0,
            reads_zero: b2[5] & 0x1c != 0,
        };
        Ok(Self {
            core: Rc::clone(core),
            host,
            limits,
            blocks: setup.blocks,
            block_size: setup.block_size,
            naa,
            contents: Contents::new(setup.block_size),
            numbers: 0,
            turns: Turns {
                counting: counting.clone(),
                ..Turns::default()
            },
            counting,
            answers_at_once: false,
            report: LimitTally::default(),
        })
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    async fn all(&mut self) -> Result<(), String> {
        self.transfers().await?;
        self.comparisons().await?;
        self.write_same().await?;
        self.unmap().await?;
        self.copies().await?;
        self.lba_status().await?;
        self.inspect_everything().await
    }

    async fn good(&mut self, what: &str, cdb: &[u8], data: Buf) -> Result<Vec<u8>, String> {
        let before = self.counting.now();
        self.turns.begin();
        let reported = self.host.send(cdb, data).await;
        self.turns.end();
        let operations = self.counting.now() - before;
        self.report.operations_most = self.report.operations_most.max(operations);
        if operations > OPERATIONS_MAX {
            return Err(format!("{what}: it made {operations} operations of itself"));
        }
        self.report.good += 1;
        reported.map_err(|(key, asc, ascq)| {
            format!("{what}: refused with {key:x}/{asc:02x}/{ascq:02x} ({cdb:02x?})")
        })
    }

    async fn refused(
        &mut self,
        what: &str,
        (cdb, data): (&[u8], Buf),
        sense: (u8, u8, u8),
    ) -> Result<(), String> {
        self.report.refused += 1;
        match self.host.send(cdb, data).await {
            Err(reported) if reported == sense => Ok(()),
            reported => Err(format!(
                "{what}: {reported:x?} instead of {sense:x?} ({cdb:02x?})"
            )),
        }
    }

    /// One past a limit: refused, or past the end of a disk that is as small as that.
    async fn past(&mut self, what: &str, cdb: &[u8], data: usize) -> Result<(), String> {
        self.refused(what, (cdb, Buf::zeroes(data)), INVALID_FIELD_IN_CDB)
            .await
    }

    /// Reads blocks and compares them.
    async fn compare(&mut self, blocks: Range<u64>) -> Result<(), String> {
        let read = host::sixteen(0x88, 0, &blocks);
        let found = self.good("a read", &read, Buf::empty()).await?;
        let block = self.block_size.bytes() as usize;
        let wanted = self.contents.bytes(blocks.clone());
        self.report.compared += blocks.end - blocks.start;
        let pairs = found.chunks(block).zip(wanted.chunks(block));
        let wrong = pairs
            .zip(blocks.clone())
            .find(|((found, wanted), _)| found != wanted);
        match wrong {
            None if found.len() == wanted.len() => Ok(()),
            None => Err(format!("{blocks:?}: {} bytes were read", found.len())),
            Some(((found, wanted), at)) => Err(format!(
                "block {at} is {:02x?}, should be {:02x?}",
                &found[..8],
                &wanted[..8]
            )),
        }
    }

    /// Compares these blocks, and those around the edges of the last change.
    async fn inspect(&mut self, whole: &[Range<u64>]) -> Result<(), String> {
        for blocks in whole {
            self.compare(blocks.clone()).await?;
        }
        let bytes = u64::from(self.block_size.bytes());
        let cuts = CUTS.map(|at| at / bytes);
        for at in self.contents.probes(1, &cuts, self.blocks) {
            self.compare(at..at + 1).await?;
        }
        Ok(())
    }

    /// Compares the blocks around the edges of all that was changed.
    async fn inspect_everything(&mut self) -> Result<(), String> {
        for at in self.contents.probes(usize::MAX, &[], self.blocks) {
            self.compare(at..at + 1).await?;
        }
        Ok(())
    }

    /// Writes with this opcode.
    async fn write(
        &mut self,
        what: &str,
        opcode: u8,
        byte_1: u8,
        blocks: Range<u64>,
    ) -> Result<(), String> {
        let fill = Fill::Each(self.number());
        let data = self.contents.payload(blocks.clone(), fill);
        self.good(what, &host::sixteen(opcode, byte_1, &blocks), data)
            .await?;
        self.contents.change(blocks, fill);
        Ok(())
    }

    /// READ, WRITE, WRITE AND VERIFY, VERIFY, ORWRITE, WRITE ATOMIC.
    async fn transfers(&mut self) -> Result<(), String> {
        let most = self.limits.transfer;
        let bytes = |blocks: u64| {
            usize::try_from(blocks).expect("small") * self.block_size.bytes() as usize
        };
        let past = bytes(most + 1);
        let at = 3..3 + most;
        let over = 3..4 + most;
        self.write("WRITE", 0x8a, 0x08, at.clone()).await?;
        self.past("WRITE", &host::sixteen(0x8a, 0, &over), past)
            .await?;
        self.compare(at.clone()).await?;
        self.past("READ", &host::sixteen(0x88, 0, &over), 0).await?;
        let behind = at.end + 1..at.end + 1 + most;
        self.write("WRITE AND VERIFY", 0x8e, 0x02, behind.clone())
            .await?;
        self.past("WRITE AND VERIFY", &host::sixteen(0x8e, 0x02, &over), past)
            .await?;
        let same = Buf::copy_of(&self.contents.bytes(behind.clone()));
        self.good("VERIFY", &host::sixteen(0x8f, 0x02, &behind), same)
            .await?;
        self.past("VERIFY", &host::sixteen(0x8f, 0x02, &over), past)
            .await?;
        let other = self.contents.payload(behind.clone(), Fill::Each(0));
        let verify = host::sixteen(0x8f, 0x02, &behind);
        self.refused("VERIFY of other data", (&verify, other), MISCOMPARE)
            .await?;
        self.good(
            "VERIFY without data",
            &host::sixteen(0x8f, 0, &(0..2 * most)),
            Buf::empty(),
        )
        .await?;
        let bits = Fill::Or(self.number());
        let shifted = at.start + 1..at.end + 1;
        let data = self.contents.payload(shifted.clone(), bits);
        self.good("ORWRITE", &host::sixteen(0x8b, 0, &shifted), data)
            .await?;
        self.contents.change(shifted, bits);
        self.past("ORWRITE", &host::sixteen(0x8b, 0, &over), past)
            .await?;
        self.atomic().await?;
        self.inspect(&[0..most, most..2 * most]).await
    }

    async fn atomic(&mut self) -> Result<(), String> {
        let most = self.limits.atomic;
        let blocks = 0..most.max(1);
        if most == 0 {
            let data = (&host::write_atomic(&blocks)[..], Buf::empty());
            return self.refused("WRITE ATOMIC", data, INVALID_OPCODE).await;
        }
        let fill = Fill::Each(self.number());
        let data = self.contents.payload(blocks.clone(), fill);
        self.good("WRITE ATOMIC", &host::write_atomic(&blocks), data)
            .await?;
        self.contents.change(blocks, fill);
        self.past("WRITE ATOMIC", &host::write_atomic(&(0..most + 1)), 0)
            .await
    }

    /// COMPARE AND WRITE, and what reads or flushes without a limit.
    async fn comparisons(&mut self) -> Result<(), String> {
        let most = self.limits.compare;
        let at = 7..7 + most;
        let fill = Fill::Each(self.number());
        let mut data = Buf::copy_of(&self.contents.bytes(at.clone()));
        data.append(&self.contents.payload(at.clone(), fill));
        self.good(
            "COMPARE AND WRITE",
            &host::compare_and_write(&at),
            data.clone(),
        )
        .await?;
        self.contents.change(at.clone(), fill);
        let again = host::compare_and_write(&at);
        self.refused("a second COMPARE AND WRITE", (&again, data), MISCOMPARE)
            .await?;
        let over = 7..8 + most;
        let bytes =
            2 * usize::try_from(most + 1).expect("small") * self.block_size.bytes() as usize;
        self.past("COMPARE AND WRITE", &host::compare_and_write(&over), bytes)
            .await?;
        let all = host::sixteen(0x91, 0, &(0..self.blocks));
        self.good("SYNCHRONIZE CACHE", &all, Buf::empty()).await?;
        self.compare(at).await
    }

    /// WRITE SAME, of data and of zeroes, which may and may not unmap.
    async fn write_same(&mut self) -> Result<(), String> {
        let most = self.limits.write_same;
        let block = self.block_size.bytes() as usize;
        let start = self.limits.transfer / 2 + 5;
        let blocks = start..start + most;
        let over = start..start + most + 1;
        let same = Fill::Same(self.number());
        let data = self.contents.payload(0..1, same);
        self.good("WRITE SAME", &host::sixteen(0x93, 0, &blocks), data.clone())
            .await?;
        self.contents.change(blocks.clone(), same);
        self.inspect(&[]).await?;
        self.past("WRITE SAME", &host::sixteen(0x93, 0, &over), block)
            .await?;
        self.past(
            "WRITE SAME to the end",
            &host::sixteen(0x93, 0, &(1..1)),
            block,
        )
        .await?;
        let zeroes = [
            (0x93, 0x00, "of zeroes"),
            (0x93, 0x08, "that unmaps"),
            (0x93, 0x09, "that unmaps, without data"),
        ];
        for (opcode, byte_1, what) in zeroes {
            let what = format!("WRITE SAME {what}");
            let data = if byte_1 & 1 == 0 { block } else { 0 };
            let cdb = host::sixteen(opcode, byte_1, &blocks);
            if byte_1 & 0x08 != 0 && !self.limits.unmaps {
                self.past(&what, &cdb, data).await?;
                continue;
            }
            self.good(&what, &cdb, Buf::zeroes(data)).await?;
            self.contents.change(blocks.clone(), Fill::Zero);
            self.inspect(&[]).await?;
            self.write("a WRITE between", 0x8a, 0, start + 1..start + 9)
                .await?;
            let over = host::sixteen(opcode, byte_1, &over);
            self.past(&what, &over, data).await?;
        }
        let ten = host::ten(0x41, 0, &blocks);
        self.good("WRITE SAME (10)", &ten, data).await?;
        self.contents.change(blocks, same);
        self.inspect(&[]).await
    }

    /// Marks around and inside a range, so that it is known what an UNMAP of it reaches.
    async fn mark(&mut self, blocks: &Range<u64>) -> Result<(), String> {
        let bytes = u64::from(self.block_size.bytes());
        let inside = CUTS.map(|at| blocks.start + at / bytes);
        let inside = inside.into_iter().filter(|it| *it + 9 < blocks.end);
        let edges = [blocks.start.saturating_sub(2), blocks.end - 3];
        for at in inside.chain(edges) {
            let to = (at + 9).min(self.blocks);
            self.write("a mark", 0x8a, 0, at..to).await?;
        }
        Ok(())
    }

    async fn unmap(&mut self) -> Result<(), String> {
        let most = self.limits.unmap;
        let (cdb, list) = host::unmap(std::slice::from_ref(&(0..1)));
        if !self.limits.unmaps {
            return self.refused("UNMAP", (&cdb, list), INVALID_OPCODE).await;
        }
        if !self.limits.reads_zero {
            return Err("unmapped blocks do not read as zeroes".to_owned());
        }
        for start in [0, 1027] {
            let blocks = start..start + most;
            self.mark(&blocks).await?;
            self.unmapped("UNMAP at the limit", std::slice::from_ref(&blocks))
                .await?;
        }
        let (cdb, list) = host::unmap(std::slice::from_ref(&(3..4 + most)));
        self.refused("UNMAP past the limit", (&cdb, list), INVALID_FIELD_IN_LIST)
            .await?;
        let end = self.blocks;
        let (cdb, list) = host::unmap(std::slice::from_ref(&(end - 1..end + 1)));
        self.refused("UNMAP past the end", (&cdb, list), OUT_OF_RANGE)
            .await?;
        self.descriptors().await
    }

    fn all_descriptors(&self) -> Vec<Range<u64>> {
        let (most, count) = (self.limits.unmap, self.limits.unmap_descriptors);
        let each = most / count as u64;
        let range = |number: usize| {
            let start = number as u64 * (each + 1) + 1;
            start..start + each
        };
        (0..count).map(range).collect()
    }

    /// As many descriptors as there may be, which together are as much as may be.
    async fn descriptors(&mut self) -> Result<(), String> {
        let count = self.limits.unmap_descriptors;
        let all = self.all_descriptors();
        for blocks in [&all[0], &all[1], &all[count - 1]] {
            self.mark(blocks).await?;
        }
        self.unmapped("UNMAP of all descriptors", &all).await?;
        let mut over = all.clone();
        over.push(0..1);
        let (cdb, list) = host::unmap(&over);
        self.refused("UNMAP with one more", (&cdb, list), INVALID_FIELD_IN_LIST)
            .await?;
        let mut over = all;
        over[0].start -= 1;
        let (cdb, list) = host::unmap(&over);
        self.refused(
            "UNMAP of one block more",
            (&cdb, list),
            INVALID_FIELD_IN_LIST,
        )
        .await
    }

    async fn unmapped(&mut self, what: &str, ranges: &[Range<u64>]) -> Result<(), String> {
        let (cdb, list) = host::unmap(ranges);
        self.good(what, &cdb, list).await?;
        for blocks in ranges {
            self.report.unmapped += blocks.end - blocks.start;
        }
        // One change for each would be probed for each.
        match ranges {
            [one] => self.contents.change(one.clone(), Fill::Zero),
            many => {
                for blocks in many {
                    self.contents.change(blocks.clone(), Fill::Zero);
                }
                let marks = [&many[0], &many[1], many.last().expect("two at least")];
                for blocks in marks {
                    let edges = [blocks.start - 1, blocks.start, blocks.end - 1, blocks.end];
                    for at in edges {
                        self.compare(at..at + 1).await?;
                    }
                }
                return Ok(());
            }
        }
        self.inspect(&[]).await
    }

    /// EXTENDED COPY with as many segments as there may be, and one more.
    async fn copies(&mut self) -> Result<(), String> {
        let bytes = self.block_size.bytes();
        let from = self.blocks - 4000;
        self.write("a WRITE to copy", 0x8a, 0, from..from + 800)
            .await?;
        let segment = |number: u16| {
            let at = u64::from(number) * 60;
            (from + at, from + 1000 + at, 50)
        };
        let all: Vec<(u64, u64, u16)> = (0..16).map(segment).collect();
        let (cdb, list) = super::copy::command([self.naa; 2], bytes, &all);
        self.good("EXTENDED COPY", &cdb, list).await?;
        for (from, to, count) in all {
            self.contents.copy(from, to..to + u64::from(count));
        }
        let over: Vec<(u64, u64, u16)> = (0..17).map(segment).collect();
        let (cdb, list) = super::copy::command([self.naa; 2], bytes, &over);
        self.refused(
            "EXTENDED COPY of one segment more",
            (&cdb, list),
            TOO_MANY_SEGMENTS,
        )
        .await?;
        self.compare(from..from + 2000).await
    }

    /// GET LBA STATUS from the first block to the last, answer by answer, while others of the core
    /// count their turns.
    async fn lba_status(&mut self) -> Result<(), String> {
        self.turns.most.set(0);
        if self.answers_at_once {
            self.core.spawn(Box::pin(self.turns.clone().count()));
        }
        let (mut at, mut answers) = (0, 0);
        while at < self.blocks {
            let mut cdb = host::sixteen(0x9e, 0x12, &(at..at + (8 + 16 * 1024)));
            cdb[1] = 0x12;
            let before = self.counting.now();
            let data = self.good("GET LBA STATUS", &cdb, Buf::empty()).await?;
            let steps = self.counting.now() - before;
            if steps > LBA_STATUS_STEPS_MAX as u64 {
                return Err(format!("GET LBA STATUS asked the volume {steps} times"));
            }
            answers += 1;
            if answers > LBA_STATUS_ANSWERS_MAX {
                return Err(format!(
                    "{answers} answers of GET LBA STATUS end at block {at}"
                ));
            }
            at = self.described(at, &data)?;
        }
        self.report.lba_status_most = answers;
        // What answers at once takes its turns as well.
        let verified = 0..self
            .blocks
            .min((1 << 30) / u64::from(self.block_size.bytes()));
        if self.limits.unmaps {
            let blocks = 0..self.limits.unmap;
            self.unmapped("UNMAP beside others", std::slice::from_ref(&blocks))
                .await?;
            let all = self.all_descriptors();
            self.unmapped("UNMAP of all descriptors beside others", &all)
                .await?;
        }
        self.good(
            "VERIFY beside others",
            &host::sixteen(0x8f, 0, &verified),
            Buf::empty(),
        )
        .await?;
        let over = verified.start..verified.end + 1;
        if over.end <= self.blocks && verified.end < self.blocks {
            self.past("VERIFY without data", &host::sixteen(0x8f, 0, &over), 0)
                .await?;
        }
        let most = self.turns.most.get();
        self.report.between_turns_most = most;
        if self.answers_at_once && most > BETWEEN_TURNS_MAX {
            return Err(format!("{most} operations between two turns of others"));
        }
        Ok(())
    }

    /// Descriptors follow each other from a block on, and nothing that has data is reported to have
    /// none: the block behind them.
    fn described(&self, from: u64, data: &[u8]) -> Result<u64, String> {
        let mut at = from;
        for descriptor in data[8..].chunks_exact(16) {
            let be64 = u64::from_be_bytes(descriptor[..8].try_into().expect("eight"));
            let count = u32::from_be_bytes(descriptor[8..12].try_into().expect("four"));
            if be64 != at || count == 0 {
                return Err(format!("a descriptor of {count} from {be64}, at {at}"));
            }
            let blocks = at..at + u64::from(count);
            if descriptor[12] & 0xf != 0 {
                let cuts = self.contents.probes(usize::MAX, &[], self.blocks);
                let mut inside = cuts.into_iter().filter(|it| blocks.contains(it));
                if let Some(lost) = inside.find(|it| !self.contents.is_zero(*it)) {
                    return Err(format!("block {lost} has data and is reported as unmapped"));
                }
            }
            at = blocks.end;
        }
        if at == from {
            return Err(format!("no descriptor from {from} on"));
        }
        Ok(at)
    }
}
