//! The property test of every volume: whatever is asked, the model allows the answer.

use super::contents::{TAG_ZERO, fill};
use super::disk::{Begun, Model, Token};
use crate::draw::Draw;
use env::{Answer, CoreHandle};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use units::{BlockCount, Buf, BufMut, Lba, LbaRange};
use volume::{
    Checked, Done, Durability, ExtentKind, Io, IoError, IoFuture, IoResult, Lane, Op, OpKind,
    Origin, Provision, Shape, Support, Volume, Wrap, Zeroing, assert_shape,
};

/// What to ask of a volume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The seed of all choices.
    pub seed: u64,
    /// How many operations.
    pub steps: u32,
    /// How many of them may be in flight at once.
    pub in_flight: usize,
    /// Operations touch the first blocks only, so many; they then meet often.
    pub blocks: BlockCount,
    /// Errors are fine; otherwise the first one panics.
    pub errors: bool,
    /// What the volume keeps whole, in bytes: its blocks, or less where they lie on smaller
    /// sectors.
    pub whole_bytes: u32,
}

impl Plan {
    /// 400 operations, 8 at once, on 64 blocks.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self {
            seed,
            steps: 400,
            in_flight: 8,
            blocks: BlockCount(64),
            errors: false,
            whole_bytes: 4096,
        }
    }
}

/// How many operations of each kind went well, and how many failed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Operations that ended well, by kind.
    pub done: BTreeMap<OpKind, u32>,
    /// Operations that ended with an error.
    pub failed: u32,
}

impl Tally {
    /// Every kind that the shape allows was done at least once.
    ///
    /// # Panics
    /// If one was not.
    pub fn assert_covers(&self, shape: &Shape) {
        let caps = &shape.caps;
        for kind in OpKind::ALL {
            let wanted = match kind {
                OpKind::Read | OpKind::Flush => true,
                OpKind::Write => caps.writable,
                OpKind::WriteZeroes => caps.write_zeroes != Support::Absent,
                OpKind::Discard => caps.discard != Support::Absent,
                OpKind::Extents => caps.extents != Support::Absent,
                // The logical unit does it; no volume here has it.
                OpKind::CompareAndWrite => false,
            };
            let done = self.done.get(&kind).copied().unwrap_or(0);
            assert!(!wanted || done > 0, "no {kind:?} in {self:?}");
        }
    }
}

struct Pending {
    token: Token,
    begun: Begun,
    kind: OpKind,
    answer: IoFuture,
}

/// A run of the test: `model` knows what the volume was asked before.
struct Run {
    core: CoreHandle,
    lane: Rc<dyn Lane>,
    shape: Shape,
    plan: Plan,
    draw: Draw,
    model: Rc<RefCell<Model>>,
    pending: Vec<Pending>,
    tally: Tally,
}

/// Asks `volume`, which must hold zeroes, as `plan` says and compares with the model; at the end
/// all of it is read. Answers what was asked.
///
/// # Panics
/// If an answer is not allowed, or if the volume cannot be opened.
pub async fn conforms(core: &CoreHandle, volume: Arc<dyn Volume>, plan: Plan) -> Tally {
    let shape = volume.shape();
    let model = Model::new(shape.block_size, shape.block_count.min(plan.blocks))
        .keeping_whole(plan.whole_bytes.min(shape.block_size.bytes()));
    goes_on(core, volume, plan, Rc::new(RefCell::new(model))).await
}

/// The same on a volume that may hold what `model` says. The model is the caller's, who may end
/// this at any moment (by a power cut, say), report it to the model, and go on with what is left.
///
/// # Panics
/// As [`conforms`].
pub async fn goes_on(
    core: &CoreHandle,
    volume: Arc<dyn Volume>,
    plan: Plan,
    model: Rc<RefCell<Model>>,
) -> Tally {
    let shape = volume.shape();
    assert_shape(&shape);
    let lane = volume.open(core).await.expect("a test's volume opens");
    let mut run = Run {
        core: Rc::clone(core),
        lane: Checked.lane(core, lane, shape),
        shape,
        plan,
        draw: Draw::new(plan.seed),
        model,
        pending: Vec::new(),
        tally: Tally::default(),
    };
    for _ in 0..plan.steps {
        run.step().await;
    }
    while !run.pending.is_empty() {
        run.end_one().await;
    }
    verify(&run.lane, &shape, &run.model).await;
    run.tally
}

/// Reads everything that the model knows and compares.
///
/// # Panics
/// If a block holds what it must not, or cannot be read.
pub async fn verify(lane: &Rc<dyn Lane>, shape: &Shape, model: &Rc<RefCell<Model>>) {
    let all = model.borrow().whole();
    let mut at = all.start();
    while at < all.end() {
        let end = Lba(all.end().0.min(at.0 + shape.limits.transfer_blocks_max.0));
        let range = LbaRange::between(at, end).expect("`at` is before the end");
        let token = model.borrow_mut().begin(Begun::Read(range));
        let op = Op::Read { range, into: None };
        match lane.submit(Io::new(op, Origin::default())).await {
            Ok(Done::Data(data)) => {
                let right = model.borrow_mut().end_read(token, &data);
                if let Err(wrong) = right {
                    panic!("{wrong}");
                }
            }
            other => panic!("{range:?} cannot be read: {other:?}"),
        }
        at = end;
    }
}

impl Run {
    async fn step(&mut self) {
        while self.pending.len() >= self.plan.in_flight {
            self.end_one().await;
        }
        let Some((op, begun)) = self.operation() else {
            return;
        };
        let kind = OpKind::of(&op);
        let token = self.model.borrow_mut().begin(begun);
        let answer = self.lane.submit(Io::new(op, Origin::default()));
        self.pending.push(Pending {
            token,
            begun,
            kind,
            answer,
        });
        if self.draw.once_in(3) {
            self.end_one().await;
        }
    }

    /// Waits until any one is answered and compares.
    async fn end_one(&mut self) {
        let pending = &mut self.pending;
        let (place, result) = poll_fn(|cx| {
            for (place, one) in pending.iter_mut().enumerate() {
                if let Poll::Ready(result) = std::pin::Pin::new(&mut one.answer).poll(cx) {
                    return Poll::Ready((place, result));
                }
            }
            Poll::Pending
        })
        .await;
        let mut one = self.pending.swap_remove(place);
        one.answer = Answer::ready(Ok(Done::Nothing));
        self.compare(&one, result);
    }

    fn compare(&mut self, one: &Pending, result: IoResult) {
        let right = match result {
            Ok(Done::Data(data)) => self.model.borrow_mut().end_read(one.token, &data),
            Ok(Done::Extents(extents)) => {
                let empty = extents
                    .iter()
                    .filter(|extent| extent.kind != ExtentKind::Mapped)
                    .map(|extent| extent.range)
                    .filter(|_| self.shape.caps.discard_reads_zero);
                let empty: Vec<LbaRange> = empty.collect();
                self.model.borrow_mut().end_extents(one.token, &empty)
            }
            Ok(Done::Nothing | Done::Logged) => {
                self.model.borrow_mut().end(one.token, Ok(()));
                Ok(())
            }
            Err(error) => {
                self.model.borrow_mut().end(one.token, Err(error));
                return self.fail(one, error);
            }
        };
        if let Err(wrong) = right {
            panic!("{:?}: {wrong} (plan {:?})", one.kind, self.plan);
        }
        *self.tally.done.entry(one.kind).or_default() += 1;
    }

    fn fail(&mut self, one: &Pending, error: IoError) {
        assert!(self.plan.errors, "{:?} failed: {error:?}", one.begun);
        self.tally.failed += 1;
    }

    fn range(&mut self, limit: BlockCount) -> LbaRange {
        let blocks = self.model.borrow().whole().len().0;
        let start = self.draw.below(blocks);
        let longest = (blocks - start).min(limit.0).min(24);
        let len = 1 + self.draw.below(longest);
        LbaRange::new(Lba(start), BlockCount(len)).expect("inside the model")
    }

    fn durability(&mut self) -> Durability {
        if self.shape.caps.stable_write != Support::Absent && self.draw.once_in(2) {
            Durability::Stable
        } else {
            Durability::Cached
        }
    }

    /// What the model expects of it: without a volatile cache, what is acknowledged is stable.
    fn kept(&self, asked: Durability) -> Durability {
        if self.shape.caps.volatile_cache {
            asked
        } else {
            Durability::Stable
        }
    }

    /// A random operation that the shape allows; `None` where the drawn kind is not.
    fn operation(&mut self) -> Option<(Op, Begun)> {
        let (caps, limits) = (self.shape.caps, self.shape.limits);
        match self.draw.below(16) {
            0..5 => {
                let range = self.range(limits.transfer_blocks_max);
                let into = self
                    .draw
                    .once_in(2)
                    .then(|| BufMut::zeroed(self.shape.bytes_in(range)));
                Some((Op::Read { range, into }, Begun::Read(range)))
            }
            5..10 => {
                let range = self.range(limits.transfer_blocks_max);
                let tag = self.model.borrow_mut().fresh_tag();
                let data = self.payload(tag, range);
                let durability = self.durability();
                let op = Op::Write {
                    range,
                    data,
                    durability,
                };
                caps.writable
                    .then_some((op, Begun::Write(range, tag, self.kept(durability))))
            }
            10 | 11 => {
                (caps.write_zeroes != Support::Absent).then_some(())?;
                let range = self.range(limits.write_zeroes_blocks_max);
                let zeroing = if self.draw.once_in(2) {
                    Zeroing::MayUnmap
                } else {
                    Zeroing::KeepAllocated
                };
                let durability = self.durability();
                let op = Op::WriteZeroes {
                    range,
                    zeroing,
                    durability,
                };
                Some((op, Begun::Write(range, TAG_ZERO, self.kept(durability))))
            }
            12 => {
                // What a discard leaves is not the model's business where it is not zeroes.
                (caps.discard != Support::Absent && caps.discard_reads_zero).then_some(())?;
                let range = self.range(limits.discard_blocks_max);
                let durability = self.durability();
                let to = if caps.anchor != Support::Absent && self.draw.once_in(2) {
                    Provision::Anchored
                } else {
                    Provision::Deallocated
                };
                let op = Op::Discard {
                    range,
                    to,
                    durability,
                };
                Some((op, Begun::Discard(range, self.kept(durability))))
            }
            13 | 14 => {
                (caps.extents != Support::Absent).then_some(())?;
                let range = self.range(limits.transfer_blocks_max);
                let op = Op::Extents { range, since: None };
                Some((op, Begun::Read(range)))
            }
            _ => Some((Op::Flush, Begun::Flush)),
        }
    }

    /// The blocks' contents, in memory that is aligned, shifted, cut into pieces, or of the pool.
    fn payload(&mut self, tag: u64, range: LbaRange) -> Buf {
        let size = self.shape.block_size.bytes() as usize;
        let mut bytes = vec![0; self.shape.bytes_in(range)];
        for (place, block) in bytes.chunks_exact_mut(size).enumerate() {
            fill(tag, Lba(range.start().0 + place as u64), block);
        }
        match self.draw.below(4) {
            0 => Buf::copy_of(&bytes),
            1 => {
                let mut shifted = vec![0; 8];
                shifted.extend_from_slice(&bytes);
                Buf::copy_of(&shifted).slice(8..8 + bytes.len())
            }
            2 => {
                let cut = usize::try_from(self.draw.below(bytes.len() as u64)).expect("a length");
                let mut both = Buf::copy_of(&bytes[..cut]);
                both.append(&Buf::copy_of(&bytes[cut..]));
                both
            }
            _ => {
                let mut memory = self
                    .core
                    .pool()
                    .alloc(bytes.len())
                    .unwrap_or_else(|_| BufMut::zeroed(bytes.len()));
                memory.copy_at(0, &bytes);
                memory.freeze()
            }
        }
    }
}
