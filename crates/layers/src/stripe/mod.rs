//! One volume of parts of several: one after the other (a span), or in turns (a stripe).
//!
//! **Contract.** What the [`Map`] says of each block. A request goes to the parts that it touches
//! at once, in one piece for each run of blocks there. The shape is what all parts have in common;
//! a write is whole only within a unit.
//!
//! **Failure model.** A part that fails fails what touches it, with the lowest block that failed as
//! the volume counts; what other parts have done of it is done. Nothing here is redundant.

mod extents;
mod map;
#[cfg(test)]
mod test;

pub use map::{Column, Fragment, Map, Piece, Pieces, Row};

use env::{Answer, CoreHandle, LocalFuture};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{
    Done, Epoch, ExtentList, Io, IoError, IoFuture, IoResult, Lane, Op, OpenError, OpenErrorKind,
    Shape, Support, Volume, VolumeEvent, VolumeEvents,
    pieces::{all, in_order, join},
};

/// A volume over parts.
pub struct Stripe {
    parts: Vec<Arc<dyn Volume>>,
    state: Mutex<State>,
}

struct State {
    map: Arc<Map>,
    epoch: Epoch,
}

impl Stripe {
    /// A volume of these parts. All have blocks of one size, logical and physical.
    ///
    /// # Errors
    /// The rule that they break.
    pub fn new(parts: Vec<Arc<dyn Volume>>, map: Map) -> Result<Arc<Self>, OpenError> {
        let refuse = |cause: &str| OpenError {
            kind: OpenErrorKind::Unsupported,
            cause: format!("the parts make no volume: {cause}"),
            next_step: "use devices of one kind".to_owned(),
        };
        let shapes: Vec<Shape> = parts.iter().map(|part| part.shape()).collect();
        let first = shapes.first().ok_or_else(|| refuse("there is none"))?;
        for shape in &shapes {
            if shape.block_size != first.block_size {
                return Err(refuse("their logical blocks have different sizes"));
            }
            if shape.physical_block_exponent != first.physical_block_exponent {
                return Err(refuse("their physical blocks have different sizes"));
            }
        }
        fits(&map, &shapes).map_err(refuse)?;
        Ok(Arc::new(Self {
            parts,
            state: Mutex::new(State {
                map: Arc::new(map),
                epoch: Epoch(0),
            }),
        }))
    }

    /// Another map, for lanes that are opened from now on.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn set_map(&self, map: Map) -> Result<(), &'static str> {
        let shapes: Vec<Shape> = self.parts.iter().map(|part| part.shape()).collect();
        fits(&map, &shapes)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.map = Arc::new(map);
        state.epoch = Epoch(state.epoch.0 + 1);
        Ok(())
    }

    fn map(&self) -> (Arc<Map>, Epoch) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&state.map), state.epoch)
    }
}

/// Every column lies inside its part.
fn fits(map: &Map, shapes: &[Shape]) -> Result<(), &'static str> {
    for row in map.rows() {
        for column in &row.columns {
            let shape = shapes.get(column.part).ok_or("a part is missing")?;
            let whole = LbaRange::new(column.start, BlockCount(row.blocks));
            if !whole.is_some_and(|whole| shape.whole().contains(whole)) {
                return Err("a part is too small");
            }
        }
    }
    Ok(())
}

/// What all parts have in common.
fn common(shapes: &[Shape], map: &Map, epoch: Epoch) -> Shape {
    let mut all = *shapes.first().expect("there is a part");
    for shape in shapes.iter().skip(1) {
        let (limits, caps) = (&mut all.limits, &mut all.caps);
        let least = |limit: &mut BlockCount, other: BlockCount| *limit = (*limit).min(other);
        least(
            &mut limits.transfer_blocks_max,
            shape.limits.transfer_blocks_max,
        );
        least(
            &mut limits.discard_blocks_max,
            shape.limits.discard_blocks_max,
        );
        least(
            &mut limits.write_zeroes_blocks_max,
            shape.limits.write_zeroes_blocks_max,
        );
        least(
            &mut limits.atomic_blocks_max,
            shape.limits.atomic_blocks_max,
        );
        limits.discard_granularity = limits
            .discard_granularity
            .max(shape.limits.discard_granularity);
        limits.in_flight_max = limits.in_flight_max.min(shape.limits.in_flight_max);
        limits.memory_alignment = limits.memory_alignment.max(shape.limits.memory_alignment);
        caps.writable &= shape.caps.writable;
        caps.volatile_cache |= shape.caps.volatile_cache;
        caps.discard_reads_zero &= shape.caps.discard_reads_zero;
        for (support, other) in [
            (&mut caps.stable_write, shape.caps.stable_write),
            (&mut caps.discard, shape.caps.discard),
            (&mut caps.anchor, shape.caps.anchor),
            (&mut caps.write_zeroes, shape.caps.write_zeroes),
            (&mut caps.extents, shape.caps.extents),
        ] {
            *support = (*support).min(other);
        }
    }
    all.block_count = map.blocks();
    all.epoch = epoch;
    let blocks = all.block_count;
    let limits = &mut all.limits;
    for limit in [
        &mut limits.transfer_blocks_max,
        &mut limits.discard_blocks_max,
        &mut limits.write_zeroes_blocks_max,
    ] {
        *limit = (*limit).min(blocks);
    }
    limits.atomic_blocks_max = limits.atomic_blocks_max.min(BlockCount(map.unit()));
    limits.compare_and_write_blocks_max = BlockCount(0);
    limits.payload_piece_bytes = 0;
    limits.discard_alignment = BlockCount(0);
    all.caps.compare_and_write = Support::Absent;
    all.caps.changed_blocks = Support::Absent;
    if !is_aligned(map, limits.discard_granularity.0) {
        all.caps.discard = Support::Absent;
        limits.discard_blocks_max = BlockCount(0);
    }
    all
}

/// Columns and units begin at multiples of `granularity`.
fn is_aligned(map: &Map, granularity: u64) -> bool {
    let of_row = |row: &Row| {
        let starts = row
            .columns
            .iter()
            .all(|column| column.start.0.is_multiple_of(granularity));
        starts && row.blocks.is_multiple_of(granularity)
    };
    map.unit().is_multiple_of(granularity) && map.rows().iter().all(of_row)
}

impl Volume for Stripe {
    fn shape(&self) -> Shape {
        let shapes: Vec<Shape> = self.parts.iter().map(|part| part.shape()).collect();
        let (map, epoch) = self.map();
        common(&shapes, &map, epoch)
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            let shape = self.shape();
            let (map, _) = self.map();
            let mut parts = Vec::new();
            for part in &self.parts {
                parts.push(Arc::clone(part).open(&core).await?);
            }
            let lane: Rc<dyn Lane> = Rc::new(StripeLane { parts, map, shape });
            Ok(lane)
        })
    }

    fn events(self: Arc<Self>, core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        let parts = self.parts.iter();
        Rc::new(AnyOf(
            parts.map(|part| Arc::clone(part).events(core)).collect(),
        ))
    }
}

/// What happens to any of the parts.
struct AnyOf(Vec<Rc<dyn VolumeEvents>>);

impl VolumeEvents for AnyOf {
    fn next(&self) -> LocalFuture<VolumeEvent> {
        let mut all: Vec<_> = self.0.iter().map(|events| events.next()).collect();
        Box::pin(poll_fn(move |cx| {
            let ready = all
                .iter_mut()
                .find_map(|next| match next.as_mut().poll(cx) {
                    Poll::Ready(event) => Some(event),
                    Poll::Pending => None,
                });
            ready.map_or(Poll::Pending, Poll::Ready)
        }))
    }
}

struct StripeLane {
    parts: Vec<Rc<dyn Lane>>,
    map: Arc<Map>,
    shape: Shape,
}

impl Lane for StripeLane {
    fn submit(&self, mut io: Io) -> IoFuture {
        let Some(range) = io.op().range() else {
            return self.flush(&io);
        };
        if let Op::Extents { .. } = io.op() {
            return self.extents(&io, range);
        }
        let mut pieces = self.map.pieces(range);
        if pieces.len() == 1 {
            let piece = pieces.pop().expect("there is one");
            if let Some(of_io) = io.op_mut().range_mut() {
                *of_io = piece.range;
            }
            let answer = self.part(piece.part).submit(io);
            return then(answer, move |result| {
                result.map_err(|error| here(error, range, &piece))
            });
        }
        self.several(io, range, pieces)
    }
}

impl StripeLane {
    fn part(&self, number: usize) -> &Rc<dyn Lane> {
        self.parts.get(number).expect("the map fits the parts")
    }

    fn flush(&self, io: &Io) -> IoFuture {
        let answers = self.parts.iter().map(|part| part.submit(io.fork()));
        join(answers.collect(), None, in_order)
    }

    /// Allocation of the first row of a range: each part is asked once, for all that it has of it.
    fn extents(&self, io: &Io, range: LbaRange) -> IoFuture {
        let (row, row_start) = self.map.row_of(range.start().0);
        let turns = self.map.turns(row);
        let from = range.start().0 - row_start;
        let to = (range.end().0 - row_start).min(row.len());
        let mut answers = Vec::new();
        let mut starts = Vec::new();
        for (number, column) in row.columns.iter().enumerate() {
            let inside = |block| Lba(column.start.0 + turns.before(number, block));
            let there = LbaRange::between(inside(from), inside(to)).expect("in order");
            starts.push(column.start.0);
            if there.is_empty() {
                answers.push(Answer::ready(Ok(Done::Extents(ExtentList::new()))));
                continue;
            }
            let mut asked = io.fork();
            if let Some(of_io) = asked.op_mut().range_mut() {
                *of_io = there;
            }
            answers.push(self.part(column.part).submit(asked));
        }
        let answers = all(answers);
        Answer::wait(async move {
            let mut columns = Vec::new();
            for (number, (result, start)) in answers.await.into_iter().zip(starts).enumerate() {
                let there = |lba: Lba| {
                    let inside = lba.0.saturating_sub(start);
                    Lba(row_start + turns.row_block(number, inside))
                };
                match result.map_err(|error| error.map_lba(there))? {
                    Done::Extents(list) => columns.push((start, list)),
                    Done::Nothing | Done::Logged | Done::Data(_) => {
                        unreachable!("extents answer extents")
                    }
                }
            }
            let runs = extents::by_turns(turns, (from, to), columns);
            let reported = runs.into_iter().map(|(start, end, kind)| {
                extents::extent(row_start + start, row_start + end, kind)
            });
            Ok(Done::Extents(reported.collect()))
        })
    }

    fn several(&self, io: Io, range: LbaRange, pieces: Pieces) -> IoFuture {
        let origin = io.origin();
        let (mut op, _) = io.into_parts();
        let block = usize::try_from(self.shape.block_size.bytes()).expect("4096 at most");
        let answers = pieces.iter().map(|piece| {
            let part = of_piece(&op, piece, block);
            let answer = self.part(piece.part).submit(Io::new(part, origin));
            let piece = piece.clone();
            then(answer, move |result| {
                result.map_err(|error| here(error, range, &piece))
            })
        });
        let answers = answers.collect();
        let into = op.take_into();
        join(answers, into, move |parts| joined(&parts, &pieces, block))
    }
}

/// What of the operation concerns a piece.
fn of_piece(op: &Op, piece: &Piece, block: usize) -> Op {
    let range = piece.range;
    match op {
        Op::Read { .. } => Op::Read { range, into: None },
        Op::Write {
            data, durability, ..
        } => {
            let mut here = Buf::empty();
            for fragment in &piece.fragments {
                let at = bytes(fragment.at, block);
                here.append_owned(data.slice(at..at + bytes(fragment.len, block)));
            }
            Op::Write {
                range,
                data: here,
                durability: *durability,
            }
        }
        Op::WriteZeroes {
            zeroing,
            durability,
            ..
        } => Op::WriteZeroes {
            range,
            zeroing: *zeroing,
            durability: *durability,
        },
        Op::Discard { to, durability, .. } => Op::Discard {
            range,
            to: *to,
            durability: *durability,
        },
        Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
        Op::Extents { .. } | Op::Flush => unreachable!("handled before"),
    }
}

fn bytes(blocks: u64, block: usize) -> usize {
    usize::try_from(blocks).expect("inside a payload") * block
}

/// The request's bytes, from those of its pieces.
fn joined(parts: &[Buf], pieces: &Pieces, block: usize) -> Buf {
    let mut fragments: Vec<(u64, Buf)> = Vec::new();
    for (piece, data) in pieces.iter().zip(parts) {
        let mut at = 0;
        for fragment in &piece.fragments {
            let len = bytes(fragment.len, block);
            fragments.push((fragment.at, data.slice(at..at + len)));
            at += len;
        }
    }
    fragments.sort_by_key(|(at, _)| *at);
    let mut all = Buf::empty();
    for (_, data) in fragments {
        all.append_owned(data);
    }
    all
}

/// The error as the volume counts blocks.
fn here(error: IoError, range: LbaRange, piece: &Piece) -> IoError {
    error.map_lba(|there| Lba(range.start().0 + piece.request_block(there)))
}

/// `finish` of the answer, at once where that is there.
fn then(answer: IoFuture, finish: impl FnOnce(IoResult) -> IoResult + 'static) -> IoFuture {
    match answer.now() {
        Ok(result) => Answer::ready(finish(result)),
        Err(answer) => Answer::wait(async move { finish(answer.await) }),
    }
}
