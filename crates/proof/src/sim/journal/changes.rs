//! What a volume says of its own history while clients work on it, and after every end of theirs.
//!
//! **Oracle.** All that was asked of the volume, in the order of the world. Of a cut that was
//! answered, every change that was asked for later must be reported: where it was acknowledged, and
//! where one of its blocks is read. What had ended before the cut was asked for need not be
//! reported; how often it is, is counted, and after work without faults it must not be.
//!
//! **The exception** is that of the format: what a volume in volatile mode had not flushed when its
//! node died.

use super::{Reported, pause};
use crate::sim::client::within;
use crate::sim::lab::wait;
use crate::sim::pool::{PART_BYTES, Running};
use crate::sim::story::Stage;
use env::sim::Rng;
use env::{Answer, CoreHandle};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockSize, Lba, LbaRange};
use volume::{Cut, Done, Durability, ExtentKind, Io, IoFuture, IoResult, Lane, Op, Origin};
use volume_test::stamp::{Stamp, Value};
use write_back::Mode;

/// Cuts of a life at the most.
const CUTS: u32 = 6;

/// Cuts that are asked about, the newest and the oldest.
const ASKED: usize = 8;

/// Parts of 64 KiB, by number.
pub(super) type Parts = BTreeSet<u64>;

/// What was asked of a volume.
struct Change {
    parts: Range<u64>,
    begun: u64,
    acknowledged: Option<u64>,
    /// What was acknowledged remains so if the node dies.
    stable: bool,
    /// The node died before it was stable, in a mode that promises nothing then.
    excused: bool,
}

/// A cut that was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) cut: Cut,
    asked: u64,
    answered: u64,
}

#[derive(Default)]
struct State {
    clock: u64,
    volatile: bool,
    changes: Vec<Change>,
    /// The change that wrote a value, by writer and sequence.
    by: BTreeMap<(u32, u64), usize>,
    cuts: Vec<Made>,
}

/// All that was asked of one volume.
pub(super) struct Changes {
    block_size: BlockSize,
    state: RefCell<State>,
}

/// An operation that is watched.
enum Watched {
    Change(usize, Durability),
    Flush(u64),
}

impl State {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Changes {
    pub(super) fn new(block_size: BlockSize) -> Rc<Self> {
        let state = RefCell::default();
        Rc::new(Self { block_size, state })
    }

    fn parts_of(&self, range: LbaRange) -> Range<u64> {
        let block = u64::from(self.block_size.bytes());
        range.start().0 * block / PART_BYTES..(range.end().0 * block).div_ceil(PART_BYTES)
    }

    /// The node starts; `volatile`: what was not flushed may be gone when it dies.
    pub(super) fn life_begins(&self, volatile: bool) {
        self.state.borrow_mut().volatile = volatile;
    }

    /// The node died.
    pub(super) fn life_ended(&self) {
        let mut state = self.state.borrow_mut();
        let excuses = std::mem::take(&mut state.volatile);
        for change in state.changes.iter_mut().filter(|it| excuses && !it.stable) {
            change.acknowledged = None;
            change.excused = true;
        }
        // What is stable in another mode is never excused.
        state.changes.iter_mut().for_each(|it| it.stable = true);
    }

    fn begin(&self, op: &Op) -> Option<Watched> {
        let mut state = self.state.borrow_mut();
        let begun = state.tick();
        let (range, durability) = match op {
            Op::Flush => return Some(Watched::Flush(begun)),
            Op::Read { .. } | Op::Extents { .. } => return None,
            Op::Write {
                range, durability, ..
            }
            | Op::WriteZeroes {
                range, durability, ..
            }
            | Op::Discard {
                range, durability, ..
            }
            | Op::CompareAndWrite {
                range, durability, ..
            } => (*range, *durability),
        };
        let number = state.changes.len();
        if let Op::Write { data, .. } = op {
            let values = Value::of_all(data, self.block_size).expect("clients write values");
            if let Some(Value::Stamp(stamp)) = values.first() {
                state.by.insert((stamp.writer, stamp.sequence), number);
            }
        }
        state.changes.push(Change {
            parts: self.parts_of(range),
            begun,
            acknowledged: None,
            stable: false,
            excused: false,
        });
        Some(Watched::Change(number, durability))
    }

    fn end(&self, watched: &Watched, result: &IoResult) {
        let mut state = self.state.borrow_mut();
        let now = state.tick();
        if result.is_err() {
            return;
        }
        match watched {
            Watched::Change(number, durability) => {
                let stable = !state.volatile || *durability == Durability::Stable;
                let change = &mut state.changes[*number];
                change.acknowledged = Some(now);
                change.stable = stable;
            }
            Watched::Flush(begun) => {
                let covered = |it: &&mut Change| it.acknowledged.is_some_and(|at| at < *begun);
                let changes = state.changes.iter_mut().filter(covered);
                changes.for_each(|it| it.stable = true);
            }
        }
    }

    /// Some of the cuts that were answered.
    pub(super) fn cuts(&self) -> Vec<Made> {
        let state = self.state.borrow();
        let newest = state.cuts.len().saturating_sub(ASKED);
        let first = state.cuts.first().filter(|_| newest > 0);
        first
            .into_iter()
            .chain(&state.cuts[newest..])
            .copied()
            .collect()
    }

    /// Judges what is reported of a cut by whoever asked at `asked`; `values`: what was read before
    /// that. Returns what is reported and need not be.
    fn judge(
        &self,
        made: Made,
        (asked, reported): (u64, &Parts),
        values: &BTreeMap<u64, Value>,
    ) -> Result<Parts, String> {
        let state = self.state.borrow();
        let later = state.changes.iter().filter(|it| it.begun > made.answered);
        let acknowledged = later.filter(|it| it.acknowledged.is_some_and(|at| at < asked));
        let missed = acknowledged
            .flat_map(|it| it.parts.clone())
            .find(|it| !reported.contains(it));
        if let Some(part) = missed {
            return Err(format!(
                "{:?}: a change of part {part} was acknowledged, and is not reported",
                made.cut
            ));
        }
        for (lba, value) in values {
            let Value::Stamp(Stamp {
                writer, sequence, ..
            }) = value
            else {
                continue;
            };
            let by = state
                .by
                .get(&(*writer, *sequence))
                .map(|it| &state.changes[*it]);
            let block = LbaRange::between(Lba(*lba), Lba(lba + 1)).expect("in order");
            let part = self.parts_of(block).start;
            if by.is_some_and(|it| it.begun > made.answered && !it.excused)
                && !reported.contains(&part)
            {
                return Err(format!(
                    "{:?}: block {lba} was changed to {value:?}, and is not reported",
                    made.cut
                ));
            }
        }
        let may = |it: &&Change| it.acknowledged.is_none_or(|at| at > made.asked);
        let may: Parts = state
            .changes
            .iter()
            .filter(may)
            .flat_map(|it| it.parts.clone())
            .collect();
        Ok(reported.difference(&may).copied().collect())
    }

    /// Asks for what changed since a cut and judges it. The inner error is that of the volume.
    pub(super) async fn ask(
        &self,
        lane: &Rc<dyn Lane>,
        blocks: u64,
        made: Made,
        values: &BTreeMap<u64, Value>,
    ) -> Result<Result<(Parts, Parts), String>, String> {
        let asked = self.state.borrow_mut().tick();
        match self.changed(lane, blocks, made.cut).await {
            Err(error) => Ok(Err(error)),
            Ok(reported) => {
                let more = self.judge(made, (asked, &reported), values)?;
                Ok(Ok((reported, more)))
            }
        }
    }

    async fn changed(&self, lane: &Rc<dyn Lane>, blocks: u64, since: Cut) -> Result<Parts, String> {
        let (mut at, mut changed) = (Lba(0), Parts::new());
        while at.0 < blocks {
            let op = Op::Extents {
                range: LbaRange::between(at, Lba(blocks)).expect("in order"),
                since: Some(since),
            };
            let before = at;
            match lane.submit(Io::new(op, Origin::default())).await {
                Ok(Done::Extents(extents)) => {
                    let ends = extents.iter().map(|it| it.range.end());
                    let starts = extents.iter().map(|it| it.range.start());
                    if !std::iter::once(at)
                        .chain(ends.clone())
                        .zip(starts)
                        .all(|(end, start)| end == start)
                    {
                        return Err(format!("{extents:?} do not go on from {at:?}"));
                    }
                    at = extents.last().map_or(at, |it| it.range.end());
                    let mapped = extents.iter().filter(|it| it.kind == ExtentKind::Mapped);
                    changed.extend(mapped.flat_map(|it| self.parts_of(it.range)));
                }
                other => return Err(format!("{:?} since {since:?} is {other:?}", before)),
            }
            if at == before {
                return Err(format!("nothing is reported from {at:?} on"));
            }
        }
        Ok(changed)
    }

    /// Makes a cut. `Ok(None)`: the volume does not.
    pub(super) async fn cut(
        &self,
        running: &Running,
        core: &CoreHandle,
        volume: usize,
    ) -> Result<Option<Made>, String> {
        let asked = self.state.borrow_mut().tick();
        let cut = within(core, Duration::from_secs(40), running.cut(core, volume)).await;
        let Some(Ok(cut)) = cut else {
            return Ok(None);
        };
        let mut state = self.state.borrow_mut();
        let answered = state.tick();
        let newest = state.cuts.last().map(|it| it.cut);
        if newest >= Some(cut) {
            return Err(format!("{cut:?} comes after {newest:?}"));
        }
        let made = Made {
            cut,
            asked,
            answered,
        };
        state.cuts.push(made);
        Ok(Some(made))
    }
}

/// A client's lane whose requests are written down.
pub(super) struct Noted {
    pub(super) below: Rc<dyn Lane>,
    pub(super) changes: Rc<Changes>,
}

impl Lane for Noted {
    fn submit(&self, io: Io) -> IoFuture {
        let Some(watched) = self.changes.begin(io.op()) else {
            return self.below.submit(io);
        };
        let (answer, changes) = (self.below.submit(io), Rc::clone(&self.changes));
        Answer::wait(async move {
            let result = answer.await;
            changes.end(&watched, &result);
            result
        })
    }
}

/// Somebody who makes cuts, and asks what changed since, while clients work.
pub(super) struct Cutter {
    pub(super) core: CoreHandle,
    pub(super) running: Rc<Running>,
    pub(super) lane: Rc<dyn Lane>,
    pub(super) volume: usize,
    pub(super) blocks: u64,
    pub(super) changes: Rc<Changes>,
    pub(super) rng: Rng,
    pub(super) stop: Rc<Cell<bool>>,
    pub(super) working: Rc<Cell<u32>>,
    /// Hears what is wrong.
    pub(super) complain: Box<dyn Fn(String)>,
}

impl Cutter {
    pub(super) async fn work(mut self) {
        for _ in 0..CUTS {
            let pause = Duration::from_micros(self.rng.between(100, 8_000));
            self.core.sleep_until(self.core.now().after(pause)).await;
            if self.stop.get() {
                break;
            }
            if let Err(wrong) = self.once().await {
                (self.complain)(format!("volume {}: {wrong}", self.volume));
            }
        }
        self.working.set(self.working.get() - 1);
    }

    async fn once(&mut self) -> Result<(), String> {
        self.changes
            .cut(&self.running, &self.core, self.volume)
            .await?;
        let cuts = self.changes.cuts();
        if cuts.is_empty() || self.rng.below(2) == 0 {
            return Ok(());
        }
        let made = *self.rng.pick(&cuts);
        let nothing = BTreeMap::new();
        let asking = self.changes.ask(&self.lane, self.blocks, made, &nothing);
        match within(&self.core, Duration::from_secs(40), asking).await {
            // Among faults it may have failed.
            None | Some(Ok(_)) => Ok(()),
            Some(Err(wrong)) => Err(wrong),
        }
    }
}

impl Reported {
    /// Asks what changed since a cut, without faults. Returns what is reported and need not be.
    pub(super) fn asks(
        &self,
        stage: &Stage,
        running: &Rc<Running>,
        volume: usize,
        made: Made,
    ) -> Result<Parts, String> {
        let changes = Rc::clone(&self.changes[volume]);
        let (values, through) = (self.believes[volume].clone(), Rc::clone(running));
        let core = self.node.core(0);
        let more = wait(stage, &self.node, "changes", async move {
            let opened = through.lane(core, volume).await?;
            let blocks = opened.shape.block_count.0;
            let (_, more) = changes.ask(&opened.lane, blocks, made, &values).await??;
            Ok(more)
        })?;
        let class = if more.is_empty() { "exact" } else { "wider" };
        stage.marks.borrow_mut().count(class);
        Ok(more)
    }

    /// A cut, work without faults, and exactly its parts are reported: at once, when all is
    /// destaged, and after another start.
    pub(super) fn changes_are_exact(
        &mut self,
        stage: &mut Stage,
        running: &Rc<Running>,
    ) -> Result<(), String> {
        let mut cuts = Vec::new();
        for (volume, changes) in self.changes.iter().enumerate() {
            let (changes, through) = (Rc::clone(changes), Rc::clone(running));
            let core = self.node.core(0);
            let cut = async move { changes.cut(&through, &core, volume).await };
            let made = wait(stage, &self.node, "cut", cut)?.ok_or("no cut without faults")?;
            cuts.push(made);
        }
        if cuts.is_empty() {
            return Ok(());
        }
        let (stop, working) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        for volume in 0..cuts.len() {
            let work = (Rc::clone(&stop), Rc::clone(&working));
            self.client(stage, running, (volume, 0), work)?;
        }
        pause(stage, 4_000);
        stop.set(true);
        stage.quiet(&working)?;
        let exact = |this: &Self, stage: &Stage, running: &Rc<Running>, when: &str| {
            for (volume, made) in cuts.iter().enumerate() {
                let more = this.asks(stage, running, volume, *made)?;
                if !more.is_empty() {
                    return Err(format!(
                        "volume {volume}, {when}: more changed since {made:?} than was asked for: parts {more:?}"
                    ));
                }
            }
            Ok(())
        };
        self.audit(stage, running)?;
        exact(self, stage, running, "at once")?;
        self.is_destaged(stage, running)?;
        exact(self, stage, running, "after destage")?;
        if running.mode == Mode::Volatile {
            return Ok(());
        }
        self.dies(stage);
        let running = self.start(stage)?;
        exact(self, stage, &running, "after a start")?;
        self.is_destaged(stage, &running)
    }

    /// Starts who makes cuts of a volume.
    pub(super) fn cutter(
        &self,
        stage: &mut Stage,
        running: &Rc<Running>,
        volume: usize,
        (stop, working): (Rc<Cell<bool>>, Rc<Cell<u32>>),
    ) -> Result<(), String> {
        let core = self.node.core(u16::try_from(volume % 2).expect("below 2"));
        let (through, here) = (Rc::clone(running), Rc::clone(&core));
        let opened = wait(stage, &self.node, "open", async move {
            through.lane(here, volume).await
        })?;
        working.set(working.get() + 1);
        let complaints = Rc::clone(&stage.complaints);
        let cutter = Cutter {
            core: Rc::clone(&core),
            running: Rc::clone(running),
            lane: opened.lane,
            volume,
            blocks: opened.shape.block_count.0,
            changes: Rc::clone(&self.changes[volume]),
            rng: stage.rng.fork(),
            stop,
            working,
            complain: Box::new(move |wrong| complaints.borrow_mut().push(wrong)),
        };
        core.spawn(Box::pin(cutter.work()));
        Ok(())
    }
}
