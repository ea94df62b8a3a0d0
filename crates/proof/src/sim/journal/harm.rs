//! What no log can prevent: a disk that says that it has flushed and has not, and bytes that change
//! by themselves.
//!
//! **What is promised of a lying disk**, once its power is cut: whatever is read was written to
//! that very block, whole, at some time; or it is an error, or the pool does not open and says why.
//! That the newest is there cannot be promised, nor always that it is reported: where the end of a
//! log was never written, the log ends earlier.
//!
//! **What is promised of one flipped byte**: with the exception below, nothing is lost without a
//! word. In the log exactly the blocks of the record are errors, or the pool does not open and says
//! why; a superblock or checkpoint costs nothing, as there are two; in the data or the map of a
//! volume with checksums exactly the blocks concerned are errors, or none. What is named can be
//! written again.
//!
//! The same holds of a byte of the log that changes while it serves: whoever reads it from the log,
//! before it is destaged, gets an error for the blocks of that record, and nobody else does.
//!
//! **The exceptions**: blocks that were on their way to the backing volume when the power failed,
//! which nobody can distinguish from what they were; and batches of which nothing in the log says
//! yet that they were stable, when the power failed; there is one at the most on an idle disk, and
//! a pause of the work seals it. Such a batch that is damaged looks like one that was never
//! finished.

use super::{Reported, has_cause, wait};
use crate::sim::pool::{JOURNAL, Pool, Running};
use crate::sim::scene::Opened;
use crate::sim::story::{Stage, Story};
use env::sim::{Fault, FaultPlan};
use journal::{BLOCK, Checkpoint, Header, Kind, Replay, Step, Superblock, VolumeId};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, IoResult, Op, Origin};
use volume_test::stamp::{Stamp, Value};

/// A disk that lies about flushes for a life.
#[derive(Default)]
pub struct Lies;

/// A byte that changes while the machine is off.
#[derive(Default)]
pub struct Rot;

/// Where the byte is.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    /// In a batch; `true` where something says that it was stable.
    Batch(bool),
    /// In a batch, while it served. Of each volume, the blocks that the batch wrote.
    Serving(Vec<(usize, Range<u64>)>),
    Checkpoint,
    Superblock,
    /// In the data of volume 0, in this block of 4 KiB.
    Data(u64),
    Map,
}

impl Place {
    fn class(&self) -> &'static str {
        match self {
            Self::Batch(true) => "in_a_batch",
            Self::Batch(false) => "in_an_unsealed_batch",
            Self::Serving(_) => "while_serving",
            Self::Checkpoint => "in_a_checkpoint",
            Self::Superblock => "in_a_superblock",
            Self::Data(_) => "in_data",
            Self::Map => "in_a_map",
        }
    }
}

/// What a block is read as.
enum Read {
    Value(Value),
    /// Its sectors are of different writes.
    Mixed(String),
    Failed(IoError),
}

/// A batch of the log: its bytes in the file, and whether something says that it was stable.
struct Batch {
    bytes: Range<u64>,
    witnessed: bool,
    /// Which blocks of which volumes it wrote.
    wrote: Vec<(VolumeId, Range<u64>)>,
}

/// The batches of a journal, as its own reader finds them before anything is hurt.
fn batches(image: &[u8]) -> Vec<Batch> {
    let superblock = Superblock::read(&image[..BLOCK], image.len() as u64);
    let superblock = superblock.expect("nobody has hurt it yet");
    let (layout, id) = (superblock.layout, superblock.journal);
    let cut = |at: u64, len: usize| {
        let from = usize::try_from(at).expect("a small file");
        &image[from..from + len]
    };
    let mut all = Vec::new();
    for ring in 0..layout.rings {
        let slots = [0, 1].map(|slot| cut(layout.checkpoint_at(ring, slot), BLOCK));
        let Ok(checkpoint) = Checkpoint::newest(slots, id, ring) else {
            continue;
        };
        let (mut places, at) = (Vec::new(), layout.ring_at(ring));
        let mut replay = Replay::new((id, ring), layout.ring_blocks, checkpoint);
        loop {
            match replay.step() {
                Step::Read { at: from, bytes } => {
                    replay.fill(from, Buf::copy_of(cut(at + from, bytes)));
                }
                Step::Found(found) => places.push(found.place),
                Step::End => break,
            }
        }
        let mut sure = checkpoint.begun.number.saturating_sub(1);
        let headers = places.iter().filter_map(|place| {
            let from = at + place.position % layout.ring_blocks * BLOCK as u64;
            let rest = &image[usize::try_from(from).expect("a small file")..];
            let header = Header::read(rest, id, ring).ok()?;
            sure = sure.max(header.stable);
            let bytes = from..from + u64::from(header.blocks) * BLOCK as u64;
            Some((header, bytes))
        });
        let headers: Vec<(Header, Range<u64>)> = headers.collect();
        all.extend(headers.into_iter().map(|(header, bytes)| Batch {
            bytes,
            witnessed: header.place.number <= sure,
            wrote: wrote(&header),
        }));
    }
    all
}

fn wrote(header: &Header) -> Vec<(VolumeId, Range<u64>)> {
    let writes = header.records.iter().map(|it| it.change);
    let writes = writes.filter(|it| it.kind == Kind::Write);
    writes
        .map(|it| (it.volume, it.range.start().0..it.range.end().0))
        .collect()
}

impl Reported {
    /// Changes a byte of the log while it serves, and nobody works. `None`: all is destaged.
    fn rots_while_serving(&self, stage: &mut Stage) -> Option<Place> {
        let disk = self.node.disk();
        let image = disk.durable(Path::new(JOURNAL));
        let all = batches(&image.expect("it serves"));
        let all: Vec<Batch> = all.into_iter().filter(|it| !it.wrote.is_empty()).collect();
        if all.is_empty() {
            return None;
        }
        let batch = stage.rng.pick(&all);
        let len = batch.bytes.end - batch.bytes.start;
        let at = batch.bytes.start + stage.rng.below(len);
        assert!(disk.rot(Path::new(JOURNAL), at), "the journal is there");
        let volumes = 0..self.pool.volumes;
        let of = |volume: usize| {
            let id = Pool::id(volume);
            let wrote = batch.wrote.iter().filter(move |(of, _)| *of == id);
            wrote.map(move |(_, blocks)| (volume, blocks.clone()))
        };
        let place = Place::Serving(volumes.flat_map(of).collect());
        stage.marks.borrow_mut().count(place.class());
        Some(place)
    }

    /// Changes a byte somewhere.
    fn rots(&self, stage: &mut Stage) -> Place {
        let disk = self.node.disk();
        let image = disk.durable(Path::new(JOURNAL));
        let image = image.expect("the journal survives every cut");
        let mut path = PathBuf::from(JOURNAL);
        let block = BLOCK as u64;
        let kinds = if self.pool.checksums { 8 } else { 6 };
        let (place, at) = match stage.rng.below(kinds) {
            0..4 => {
                let all = batches(&image);
                if all.is_empty() {
                    (Place::Superblock, stage.rng.below(block))
                } else {
                    let batch = stage.rng.pick(&all);
                    let (start, len) = (batch.bytes.start, batch.bytes.end - batch.bytes.start);
                    let at = start + stage.rng.below(len);
                    (Place::Batch(batch.witnessed), at)
                }
            }
            4 => (Place::Checkpoint, 2 * block + stage.rng.below(2 * block)),
            5 => (Place::Superblock, stage.rng.below(2 * block)),
            6 => {
                path = self.pool.backings(0).remove(0);
                let bytes = self.pool.setup.blocks * u64::from(self.pool.setup.block_size.bytes());
                let at = stage.rng.below(bytes);
                (Place::Data(at / block), at)
            }
            _ => {
                path = Pool::map(0);
                let map = disk.durable(&path).expect("the map survives every cut");
                (Place::Map, stage.rng.below(map.len() as u64))
            }
        };
        assert!(disk.rot(&path, at), "{} is there", path.display());
        stage.marks.borrow_mut().count(place.class());
        place
    }

    /// Opens it once more, without faults. `None`: it says why not.
    fn opens(&self, stage: &Stage) -> Result<Option<Rc<Running>>, String> {
        stage.world.set_faults(FaultPlan::none());
        self.node.restart();
        let open = self
            .pool
            .open(self.node.core(0), write_back::Mode::WriteBack);
        let opened = wait(stage, &self.node, "open", async move { Ok(open.await) })?;
        match opened {
            Ok(running) => Ok(Some(Rc::new(running))),
            Err(reason) if !has_cause(&reason) => {
                Err("it does not open and says nothing".to_owned())
            }
            Err(_) => Ok(None),
        }
    }

    fn lane(&self, stage: &Stage, running: &Rc<Running>, volume: usize) -> Result<Opened, String> {
        let (through, core) = (Rc::clone(running), self.node.core(0));
        wait(stage, &self.node, "lane", async move {
            through.lane(core, volume).await
        })
    }

    fn ask(&self, stage: &Stage, lane: &Opened, op: Op) -> Result<IoResult, String> {
        let answer = lane.lane.submit(Io::new(op, Origin::default()));
        wait(stage, &self.node, "answer", async move { Ok(answer.await) })
    }

    /// What a block holds; `Err`: the error that it is read with.
    fn value(
        &self,
        stage: &Stage,
        lane: &Opened,
        lba: u64,
    ) -> Result<Result<Value, IoError>, String> {
        match self.inspect(stage, lane, lba)? {
            Read::Value(value) => Ok(Ok(value)),
            Read::Failed(error) => Ok(Err(error)),
            Read::Mixed(wrong) => Err(wrong),
        }
    }

    fn inspect(&self, stage: &Stage, lane: &Opened, lba: u64) -> Result<Read, String> {
        let range = LbaRange::new(Lba(lba), BlockCount(1)).expect("inside a small disk");
        match self.ask(stage, lane, Op::Read { range, into: None })? {
            Ok(Done::Data(bytes)) => {
                let values = Value::of_all(&bytes, self.pool.setup.block_size);
                let value = match values {
                    Ok(values) => values[0],
                    Err((_, broken)) => {
                        return Ok(Read::Mixed(format!("block {lba}: {broken}")));
                    }
                };
                if let Value::Stamp(stamp) = value
                    && stamp.lba != Lba(lba)
                {
                    return Err(format!("block {lba} holds {value:?}, written elsewhere"));
                }
                Ok(Read::Value(value))
            }
            Ok(other) => Err(format!("block {lba} answered {other:?}")),
            Err(error @ (IoError::Integrity { .. } | IoError::MediumError { .. })) => {
                Ok(Read::Failed(error))
            }
            Err(other) => Err(format!("block {lba} answered {other:?}")),
        }
    }

    /// What is named is an error until it is written again, and then right.
    fn is_mended(&self, stage: &Stage, lane: &Opened, lba: u64) -> Result<(), String> {
        let block_size = self.pool.setup.block_size;
        let unit = BLOCK as u64 / u64::from(block_size.bytes());
        let start = lba / unit * unit;
        let end = (start + unit).min(self.pool.setup.blocks);
        let range = LbaRange::between(Lba(start), Lba(end)).expect("in order");
        let value = |lba| {
            Value::Stamp(Stamp {
                lba: Lba(lba),
                writer: 99,
                sequence: 1,
            })
        };
        let values: Vec<Value> = (start..end).map(value).collect();
        let write = Op::Write {
            range,
            data: Value::payload(&values, block_size),
            durability: Durability::Cached,
        };
        if let Err(error) = self.ask(stage, lane, write)? {
            return Err(format!("block {lba} cannot be written again: {error:?}"));
        }
        match self.value(stage, lane, lba)? {
            Ok(found) if found == value(lba) => Ok(()),
            other => Err(format!("block {lba} was written again and is {other:?}")),
        }
    }

    /// Reads all volumes of a disk that was hurt there.
    fn judge_all(&self, stage: &Stage, running: &Rc<Running>, place: &Place) -> Result<(), String> {
        for volume in 0..self.pool.volumes {
            let judged = self.judge_rot(stage, running, volume, place);
            judged.map_err(|wrong| format!("{place:?}, volume {volume}: {wrong}"))?;
        }
        Ok(())
    }

    /// Reads a volume whose disk was hurt there.
    fn judge_rot(
        &self,
        stage: &Stage,
        running: &Rc<Running>,
        volume: usize,
        place: &Place,
    ) -> Result<(), String> {
        let lane = self.lane(stage, running, volume)?;
        let damaged = running.damaged_blocks(volume);
        let unit = BLOCK as u64 / u64::from(self.pool.setup.block_size.bytes());
        let mut named = Vec::new();
        let marked = running.marked(volume);
        let excused = |lba: u64| {
            let sum = lba / unit;
            let hurt = volume == 0 && *place == Place::Data(sum);
            hurt && marked.iter().any(|it| it.contains(&sum))
        };
        for lba in 0..self.pool.setup.blocks {
            if excused(lba) {
                stage.marks.borrow_mut().count("unverified");
                continue;
            }
            let possible = self.oracles[volume].possible(Lba(lba));
            match self.inspect(stage, &lane, lba)? {
                Read::Value(value) if possible.contains(&value) => {}
                // What was on its way to the backing volume from it when the power failed is there
                // in part, and the log no longer says what it was.
                Read::Value(_) | Read::Mixed(_) if *place == Place::Batch(false) => {
                    stage.marks.borrow_mut().count("unsealed_batch_gone");
                }
                Read::Mixed(wrong) => return Err(wrong),
                Read::Value(value) => {
                    return Err(format!(
                        "block {lba} is {value:?}, and could be {possible:?}"
                    ));
                }
                Read::Failed(error) => {
                    let may = match place {
                        // Its checksum may have been destaged before it.
                        Place::Batch(false) => true,
                        Place::Batch(true) => damaged.iter().any(|it| it.contains(&lba)),
                        Place::Serving(wrote) => {
                            let here = |it: &(usize, Range<u64>)| it.0 == volume;
                            wrote.iter().any(|it| here(it) && it.1.contains(&lba))
                        }
                        Place::Data(sum) => volume == 0 && lba / unit == *sum,
                        Place::Map => volume == 0,
                        Place::Checkpoint | Place::Superblock => false,
                    };
                    if !may {
                        return Err(format!("block {lba} has nothing to do with it: {error:?}"));
                    }
                    if matches!(place, Place::Serving(_)) {
                        stage.marks.borrow_mut().count("named_while_serving");
                    }
                    named.push(lba);
                }
            }
        }
        let marks = &stage.marks;
        for lba in named {
            marks.borrow_mut().count("named");
            self.is_mended(stage, &lane, lba)?;
        }
        Ok(())
    }
}

impl Story for Rot {
    fn name(&self) -> &'static str {
        "journal-rot"
    }

    fn classes(&self) -> &'static [&'static str] {
        &[
            "in_a_batch",
            "while_serving",
            "named_while_serving",
            "in_a_checkpoint",
            "in_a_superblock",
            "in_data",
            "in_a_map",
            "named",
            "named_stop",
        ]
    }

    fn faults(&self) -> Vec<Fault> {
        vec![Fault::NodePowerCut, Fault::NodeKilled]
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let mut reported = Reported::new(stage, Pool::of(stage.seed).plain())?;
        stage.plan = FaultPlan::benign();
        let running = reported.start(stage)?;
        if stage.rng.below(3) == 0 {
            reported.works(stage, &running)?;
            let Some(place) = reported.rots_while_serving(stage) else {
                return Ok(());
            };
            return reported.judge_all(stage, &running, &place);
        }
        reported.life(stage, &running)?;
        reported.dies(stage);
        drop(running);
        let place = reported.rots(stage);
        let Some(running) = reported.opens(stage)? else {
            let may = match place {
                // A checkpoint may have been torn by the cut beside the one that is hurt.
                Place::Batch(_) | Place::Checkpoint | Place::Map => true,
                Place::Superblock | Place::Data(_) | Place::Serving(_) => false,
            };
            stage.marks.borrow_mut().count("named_stop");
            return if may {
                Ok(())
            } else {
                Err(format!("{place:?} must not keep it from opening"))
            };
        };
        reported.judge_all(stage, &running, &place)
    }
}

impl Story for Lies {
    fn name(&self) -> &'static str {
        "journal-lies"
    }

    fn classes(&self) -> &'static [&'static str] {
        &["kept", "older", "named_stop"]
    }

    fn faults(&self) -> Vec<Fault> {
        vec![Fault::FileLyingFlush, Fault::NodePowerCut]
    }

    /// What a disk that lies has in the backing volume may be mixed where its sectors are smaller
    /// than blocks.
    fn sector_bytes(&self, seed: u64) -> u64 {
        Pool::of(seed).setup.block_size.bytes().into()
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let mut reported = Reported::new(stage, Pool::of(stage.seed).plain())?;
        stage.plan = FaultPlan::benign();
        let running = reported.start(stage)?;
        reported.node.disk().lie_about_flush(true);
        reported.life(stage, &running)?;
        reported.dies(stage);
        reported.node.disk().lie_about_flush(false);
        drop(running);
        let Some(running) = reported.opens(stage)? else {
            stage.marks.borrow_mut().count("named_stop");
            return Ok(());
        };
        for volume in 0..reported.pool.volumes {
            let lane = reported.lane(stage, &running, volume)?;
            for lba in 0..reported.pool.setup.blocks {
                let possible = reported.oracles[volume].possible(Lba(lba));
                let class = match reported.value(stage, &lane, lba)? {
                    Ok(value) if possible.contains(&value) => "kept",
                    Ok(_) => "older",
                    Err(_) => "named",
                };
                stage.marks.borrow_mut().count(class);
                if class == "named" {
                    reported.is_mended(stage, &lane, lba)?;
                }
            }
        }
        Ok(())
    }
}
