//! What one core does for one ring: its log, its index, the volumes whose addresses belong to it.

use crate::age::Ages;
use crate::carry::Held;
use crate::failure::Failure;
use crate::grace::Grace;
use crate::history::{Early, Kept};
use crate::journal_file::JournalKey;
use crate::mode::Modes;
use crate::parts::{chunks, sectors};
use crate::permits::{Permit, Permits};
use crate::status::Counts;
use env::{Answer, CoreHandle, File};
use journal::{Change, DATA_BYTES_MAX, Index, Kind, Log, Sequence, Slot, Token, VolumeId, Wanted};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::{Notify, oneshot};
use units::{BlockSize, Buf, Lba, LbaRange, Now};
use volume::{
    Done, Durability, Fence, Fences, Io, IoError, IoFuture, IoResult, Lane, Op, Origin, Provision,
    Shape, Volume,
};

/// Blocks of zeroes in one record: looking them up in the index takes well under a millisecond.
const ZEROES_BYTES_MAX: u64 = 64 << 20;

/// The volumes that a core has shards of, by journal and ring.
#[derive(Default)]
pub(crate) struct OnCore(pub(crate) RefCell<BTreeMap<(JournalKey, u32), Rc<Shard>>>);

/// A volume that a ring has changes of.
pub(crate) struct Home {
    pub(crate) id: VolumeId,
    /// `None` until somebody has opened it.
    pub(crate) open: Option<OpenHome>,
    /// Why something could not be destaged.
    pub(crate) stuck: Option<Stuck>,
    /// The log that was found is all that knows which of its blocks may be half-way home, and
    /// nobody has opened it since.
    pub(crate) in_doubt: bool,
    /// What is known of its changes for good, where that is kept.
    pub(crate) kept: Option<Rc<Kept>>,
    /// Who reads from home now.
    pub(crate) reads: Rc<Grace>,
    /// What the log that was found says of them, until then.
    early: Vec<Early>,
    /// Somebody makes a cut: changes wait.
    pub(crate) held: bool,
    /// What it is to be instead, while another volume takes its place and everything waits.
    pub(crate) next: Option<OpenHome>,
}

impl Home {
    /// A request waits; `changes`: one that changes blocks.
    pub(crate) const fn makes_wait(&self, changes: bool) -> bool {
        self.next.is_some() || (changes && self.held)
    }
}

/// Why something cannot be destaged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stuck {
    pub(crate) error: IoError,
    pub(crate) why: String,
    /// When to try again.
    pub(crate) again: Now,
    /// It is at home, and only its history cannot be saved.
    pub(crate) of_history: bool,
}

impl Stuck {
    pub(crate) fn new(error: IoError, why: &str, again: Now) -> Self {
        let why = why.to_owned();
        Self {
            error,
            why,
            again,
            of_history: false,
        }
    }
}

/// A volume that is open.
#[derive(Clone)]
pub(crate) struct OpenHome {
    pub(crate) lane: Rc<dyn Lane>,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) shape: Shape,
    pub(crate) fences: Fences,
    pub(crate) modes: Arc<Modes>,
}

/// Who waits for a change to be stable.
struct Waiter {
    slot: Slot,
    sectors: Range<u64>,
    fence: Fence,
    answer: oneshot::Sender<Result<(), IoError>>,
    /// Given back when the change is told.
    permit: Permit,
}

/// A write that goes home past the log.
struct Direct {
    id: u64,
    slot: Slot,
    sectors: Range<u64>,
    /// It is answered when it is at home, whether the log was told or not.
    pass: bool,
}

pub(crate) struct State {
    pub(crate) log: Log,
    pub(crate) index: Index,
    pub(crate) slots: BTreeMap<VolumeId, Slot>,
    pub(crate) homes: Vec<Home>,
    /// By token, from `first_token` on; `None` once told.
    waiters: VecDeque<Option<Waiter>>,
    first_token: u64,
    directs: Vec<Direct>,
    next_direct: u64,
    /// Those who wait until all changes before this token are told.
    fences: VecDeque<(u64, oneshot::Sender<()>)>,
    /// When the last change came.
    pub(crate) changed_at: Now,
    /// Changes wait for room.
    pub(crate) full: bool,
    /// The newest batch that has more than what went past the log: until the log has given it up, a
    /// replay may bring back what it holds.
    pub(crate) newest_data: u64,
    /// Batches of what moved on, and their blocks.
    pub(crate) moved: VecDeque<(u64, u64)>,
}

/// One ring on its core.
pub(crate) struct Shard {
    pub(crate) core: CoreHandle,
    pub(crate) file: Rc<dyn File>,
    /// The first byte of the ring's log on the device.
    pub(crate) log_at: u64,
    /// The first bytes of both checkpoints.
    pub(crate) checkpoints_at: [u64; 2],
    pub(crate) state: RefCell<State>,
    pub(crate) grace: Rc<Grace>,
    /// What changes take that wait for the log.
    pub(crate) permits: Rc<Permits>,
    /// Something is to be written to the log.
    pub(crate) pump: Notify,
    /// Something may be destaged.
    pub(crate) carry: Notify,
    /// A direct write has ended, a round is over, or the log has failed.
    pub(crate) moved: Notify,
    pub(crate) closing: Cell<bool>,
    /// Whoever destages waits for the first thing to carry.
    pub(crate) carrier_rests: Cell<bool>,
    /// Those who wait until all is at home.
    pub(crate) hurry: Cell<u32>,
    /// While there are some, nothing is destaged: other volumes are about to take the place of
    /// theirs.
    pub(crate) pauses: RefCell<BTreeSet<Slot>>,
    /// Something is being destaged.
    pub(crate) in_round: Cell<bool>,
    /// Why the last round left the oldest part of the log where it is.
    pub(crate) held: Cell<Option<Held>>,
    /// Somebody waits for a batch of what moves on.
    pub(crate) moving: Cell<bool>,
    /// Rounds that have ended, well or not.
    pub(crate) rounds: Cell<u64>,
    pub(crate) counts: RefCell<Counts>,
    pub(crate) ages: RefCell<Ages>,
    /// Why the log has failed, where it has.
    pub(crate) failure: RefCell<Option<Failure>>,
}

impl State {
    pub(crate) fn new(log: Log, index: Index, slots: BTreeMap<VolumeId, Slot>, now: Now) -> Self {
        let mut homes: Vec<(Slot, VolumeId)> =
            slots.iter().map(|(id, slot)| (*slot, *id)).collect();
        homes.sort_unstable();
        let log_end = log.ring().stable();
        let homes = homes.into_iter().map(|(_, id)| Home {
            id,
            open: None,
            stuck: None,
            in_doubt: false,
            kept: None,
            reads: Rc::default(),
            early: Vec::new(),
            held: false,
            next: None,
        });
        Self {
            log,
            index,
            slots,
            homes: homes.collect(),
            waiters: VecDeque::new(),
            first_token: 0,
            directs: Vec::new(),
            next_direct: 0,
            fences: VecDeque::new(),
            changed_at: now,
            full: false,
            newest_data: log_end,
            moved: VecDeque::new(),
        }
    }

    /// What the log that was found says of the history of volumes.
    pub(crate) fn remember(&mut self, early: BTreeMap<VolumeId, Vec<Early>>) {
        for (volume, early) in early {
            if let Some(slot) = self.slots.get(&volume).copied() {
                self.home_mut(slot).early = early;
            }
        }
    }

    /// Volumes of which the log has told that blocks may be half-way home.
    pub(crate) fn are_in_doubt<'a>(&mut self, volumes: impl Iterator<Item = &'a VolumeId>) {
        for volume in volumes {
            if let Some(slot) = self.slots.get(volume).copied() {
                self.home_mut(slot).in_doubt = true;
            }
        }
    }

    pub(crate) fn home(&self, slot: Slot) -> &Home {
        &self.homes[usize::from(slot.0)]
    }

    pub(crate) fn home_mut(&mut self, slot: Slot) -> &mut Home {
        &mut self.homes[usize::from(slot.0)]
    }

    /// The volume's slot; its first number is 0 where the log knows nothing of it.
    fn slot_of(&mut self, id: VolumeId) -> Result<Slot, TooManyVolumes> {
        if let Some(slot) = self.slots.get(&id) {
            return Ok(*slot);
        }
        let slot = Slot(u16::try_from(self.homes.len()).map_err(|_| TooManyVolumes)?);
        self.slots.insert(id, slot);
        self.homes.push(Home {
            id,
            open: None,
            stuck: None,
            in_doubt: false,
            kept: None,
            reads: Rc::default(),
            early: Vec::new(),
            held: false,
            next: None,
        });
        self.log.serve(id, Sequence(0));
        Ok(slot)
    }

    /// The volume's history is kept from now on, unless it is already.
    fn keep(&mut self, slot: Slot, kept: Option<Kept>) {
        let home = self.home_mut(slot);
        let early = std::mem::take(&mut home.early);
        let Some(kept) = kept.filter(|_| home.kept.is_none()) else {
            return;
        };
        kept.absorb(early);
        let next = kept.history.borrow().next();
        let id = home.id;
        home.kept = Some(Rc::new(kept));
        if self.log.next_sequence(id).is_none_or(|it| it < next) {
            self.log.serve(id, next);
        }
    }

    fn take_waiter(&mut self, token: Token) -> Option<Waiter> {
        let place = usize::try_from(token.0.checked_sub(self.first_token)?).ok()?;
        let waiter = self.waiters.get_mut(place)?.take();
        while matches!(self.waiters.front(), Some(None)) {
            self.waiters.pop_front();
            self.first_token += 1;
        }
        while self
            .fences
            .front()
            .is_some_and(|it| it.0 <= self.first_token)
        {
            if let Some((_, told)) = self.fences.pop_front() {
                let _ = told.send(());
            }
        }
        waiter
    }

    /// Ends when all changes that were submitted before are told.
    fn all_told(&mut self) -> Option<oneshot::Receiver<()>> {
        if self.waiters.is_empty() {
            return None;
        }
        let end = self.first_token + self.waiters.len() as u64;
        let (tell, told) = oneshot::channel();
        self.fences.push_back((end, tell));
        Some(told)
    }

    /// A change waits to be written that touches these sectors.
    fn is_pending(&self, slot: Slot, sectors: &Range<u64>) -> bool {
        let mut waiters = self.waiters.iter().flatten();
        waiters.any(|it| it.slot == slot && overlap(&it.sectors, sectors))
    }

    fn is_direct(&self, slot: Slot, sectors: &Range<u64>) -> bool {
        let mut directs = self.directs.iter();
        directs.any(|it| it.slot == slot && overlap(&it.sectors, sectors))
    }

    /// Changes that wait for a batch whose writer has lost its right: they get into none.
    pub(crate) fn withdraw_fenced(&mut self) {
        let fenced = |it: &Waiter, home: &Home| {
            let open = home.open.as_ref();
            // What has no blocks is asked for by no host.
            !it.sectors.is_empty() && open.is_none_or(|home| !home.fences.holds(it.fence))
        };
        for waiter in self.withdraw(fenced) {
            // Who asked may have gone.
            let _ = waiter.answer.send(Err(IoError::Fenced));
        }
    }

    /// Writes that wait for a batch, and are refused by now, are answered so: they keep nobody
    /// behind them waiting. `true`: there were some.
    pub(crate) fn withdraw_refused(&mut self) -> bool {
        if !self.refuses_some() {
            return false;
        }
        let withdrawn = self.withdraw(|it, home| it.permit.bytes() > 0 && home.stuck.is_some());
        let are_some = !withdrawn.is_empty();
        for waiter in withdrawn {
            let stuck = self.home(waiter.slot).stuck.as_ref();
            let error = stuck.expect("those were asked for").error;
            let lba = self.first_block(&waiter);
            // Who asked may have gone.
            let _ = waiter.answer.send(Err(error.map_lba(|_| lba)));
        }
        are_some
    }

    /// Takes those who wait for a batch out of the log's queue that are `gone`, by themselves or by
    /// their volume.
    fn withdraw(&mut self, gone: impl Fn(&Waiter, &Home) -> bool) -> Vec<Waiter> {
        let (waiters, first, homes) = (&self.waiters, self.first_token, &self.homes);
        let withdrawn = self.log.withdraw(|token: Token| {
            let place = usize::try_from(token.0 - first).unwrap_or(usize::MAX);
            let waiter = waiters.get(place).and_then(Option::as_ref);
            waiter.is_some_and(|it| gone(it, &homes[usize::from(it.slot.0)]))
        });
        let taken = withdrawn.into_iter();
        taken.filter_map(|token| self.take_waiter(token)).collect()
    }

    /// A change is stable: from now on it is what is read.
    pub(crate) fn adopt(&mut self, token: Token, change: &Change, data_at: u64) {
        let Some(waiter) = self.take_waiter(token) else {
            return;
        };
        match change.kind {
            Kind::Write => {
                let at =
                    u32::try_from(data_at / journal::SECTOR).expect("a ring has 2 TiB at most");
                self.index.put(waiter.slot, waiter.sectors, at);
            }
            Kind::Zeroes | Kind::Deallocate | Kind::Anchor => {
                self.index
                    .zero(waiter.slot, waiter.sectors, change.sequence, change.kind);
            }
            // Only where the log had nothing of it; what came after it stays.
            Kind::WriteAround => {}
            Kind::Gone => self.forget_all(waiter.slot),
            Kind::Cut => {}
            Kind::Lost | Kind::Touched => unreachable!("nobody asks for it"),
        }
        if let Some(kept) = &self.home(waiter.slot).kept {
            kept.take(change);
        }
        let _ = waiter.answer.send(Ok(()));
    }

    fn forget_all(&mut self, slot: Slot) {
        self.index.forget(slot);
        let home = self.home_mut(slot);
        (home.in_doubt, home.kept, home.stuck) = (false, None, None);
        home.early = Vec::new();
    }

    /// The log has failed: whoever waits is told that nobody knows. Of what was on its way the next
    /// replay may find the new or the old data: until then it cannot be read, so that nobody sees
    /// the old and then the new.
    pub(crate) fn give_up(&mut self, why: impl Fn(Lba) -> IoError) {
        for (token, change) in self.log.given_up() {
            if let Some(waiter) = self.take_waiter(token) {
                if let Some(change) = change.filter(|it| it.kind != Kind::WriteAround) {
                    let sectors = waiter.sectors.clone();
                    self.index.lose(waiter.slot, sectors, change.sequence);
                }
                let lba = self.first_block(&waiter);
                let _ = waiter.answer.send(Err(why(lba)));
            }
        }
    }

    fn first_block(&self, waiter: &Waiter) -> Lba {
        let home = self.home(waiter.slot).open.as_ref();
        let block = home.map_or(BlockSize::B512, |it| it.shape.block_size);
        let by = u64::from(block.bytes()) / journal::SECTOR;
        Lba(waiter.sectors.start / by)
    }

    /// Something of the volume is on its way home past the log.
    pub(crate) fn has_direct_of(&self, slot: Slot) -> bool {
        self.directs.iter().any(|it| it.slot == slot)
    }

    /// The newest direct write that has begun.
    pub(crate) fn newest_direct(&self) -> Option<u64> {
        self.directs.iter().map(|it| it.id).max()
    }

    /// A direct write up to this one has not ended.
    pub(crate) fn has_direct_until(&self, newest: u64) -> bool {
        self.directs.iter().any(|it| it.id <= newest)
    }
}

/// A ring serves no more than 65,535 volumes.
#[derive(Debug)]
pub(crate) struct TooManyVolumes;

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Shard {
    /// Takes a volume in, or in again with another lane.
    pub(crate) fn serve(
        &self,
        id: VolumeId,
        open: OpenHome,
        kept: Option<Kept>,
    ) -> Result<Slot, TooManyVolumes> {
        let mut state = self.state.borrow_mut();
        let slot = state.slot_of(id)?;
        state.keep(slot, kept);
        let home = state.home_mut(slot);
        home.open = Some(open);
        (home.stuck, home.in_doubt) = (None, false);
        drop(state);
        self.carry.notify_one();
        Ok(slot)
    }

    /// The volume's history is kept here already.
    pub(crate) fn keeps_history(&self, id: VolumeId) -> bool {
        let state = self.state.borrow();
        let slot = state.slots.get(&id);
        slot.is_some_and(|slot| state.home(*slot).kept.is_some())
    }

    /// Nobody uses the volume any more.
    pub(crate) fn leave(&self, id: VolumeId) {
        let mut state = self.state.borrow_mut();
        if let Some(slot) = state.slots.get(&id).copied() {
            let home = state.home_mut(slot);
            (home.open, home.stuck) = (None, None);
        }
    }

    /// Says in the log that the volume is no more.
    pub(crate) fn forget(&self, id: VolumeId) -> IoFuture {
        let Some(slot) = self.slot(id) else {
            return Answer::ready(Ok(Done::Nothing));
        };
        let nothing = LbaRange::between(Lba(0), Lba(0)).expect("in order");
        self.change(slot, nothing, Kind::Gone, Buf::empty(), Origin::default())
    }

    /// The volume's place here, once it was taken in.
    pub(crate) fn slot(&self, id: VolumeId) -> Option<Slot> {
        self.state.borrow().slots.get(&id).copied()
    }

    /// What a request for blocks of this ring does, once there is room for what it changes.
    pub(crate) fn submit(self: &Rc<Self>, slot: Slot, op: Op, origin: Origin) -> IoFuture {
        if !op.mutates() || self.is_refused(slot) {
            return self.begin(slot, op, origin);
        }
        if !self.has_share(slot) {
            let shard = Rc::clone(self);
            return env::detach(&self.core, async move {
                shard.share_comes(slot).await;
                shard.submit(slot, op, origin).await
            });
        }
        if self.permits.are_free() {
            return self.begin(slot, op, origin);
        }
        let bytes = if let Op::Write { data, .. } = &op {
            data.len()
        } else {
            0
        };
        let turn = self.permits.wait(bytes);
        let shard = Rc::clone(self);
        // A task of its own: whoever is slow to look for the answer keeps nobody from his turn.
        env::detach(&self.core, async move {
            let Ok(permit) = turn.await else {
                // The shard is gone with its core: nobody is told anything any more.
                return std::future::pending().await;
            };
            if !shard.has_share(slot) {
                drop(permit);
                return shard.submit(slot, op, origin).await;
            }
            let answer = shard.begin(slot, op, origin);
            // Its changes have taken what they need.
            drop(permit);
            answer.await
        })
    }

    fn begin(self: &Rc<Self>, slot: Slot, op: Op, origin: Origin) -> IoFuture {
        if self.state.borrow().home(slot).open.is_none() {
            // It has left, and somebody still has a lane.
            return Answer::ready(Err(IoError::Unavailable));
        }
        if self.state.borrow().home(slot).makes_wait(op.mutates()) {
            let shard = Rc::clone(self);
            return Answer::wait(async move {
                shard.let_in(slot, op.mutates()).await;
                shard.submit(slot, op, origin).await
            });
        }
        match op {
            Op::Read { range, into } => self.read(slot, range, into, origin),
            Op::Write {
                range,
                ref data,
                durability,
            } => {
                if durability == Durability::Cached && self.is_volatile(slot, range) {
                    return self.pass(slot, range, op, origin);
                }
                self.write(slot, range, data.clone(), origin)
            }
            Op::WriteZeroes {
                range, durability, ..
            }
            | Op::Discard {
                range, durability, ..
            } if durability == Durability::Cached && self.is_volatile(slot, range) => {
                self.pass(slot, range, op, origin)
            }
            Op::WriteZeroes { range, zeroing, .. } => {
                let kind = match zeroing {
                    volume::Zeroing::MayUnmap => Kind::Deallocate,
                    volume::Zeroing::KeepAllocated => Kind::Zeroes,
                };
                self.zero(slot, range, kind, origin)
            }
            Op::Discard { range, to, .. } => {
                let kind = match to {
                    Provision::Deallocated => Kind::Deallocate,
                    Provision::Anchored => Kind::Anchor,
                };
                self.zero(slot, range, kind, origin)
            }
            Op::Extents {
                range,
                since: Some(cut),
            } => self.changed(slot, range, cut),
            Op::Extents { range, since: None } => self.extents(slot, range, origin),
            Op::CompareAndWrite { .. } => unreachable!("announced as absent"),
            Op::Flush => self.flush(slot, origin),
        }
    }

    /// Nothing that was acknowledged is in a volatile cache, but for what went home in volatile
    /// mode.
    fn flush(self: &Rc<Self>, slot: Slot, origin: Origin) -> IoFuture {
        if self.state.borrow().log.ring().has_failed() {
            return Answer::ready(Err(self.lost_write(Lba(0))));
        }
        let home = self.home_of(slot);
        let told = {
            let mut state = self.state.borrow_mut();
            let passes = state.directs.iter().any(|it| it.slot == slot && it.pass);
            if passes { state.all_told() } else { None }
        };
        let volatile = home.modes.to_flush();
        if told.is_none() && volatile.is_none() {
            return Answer::ready(Ok(Done::Nothing));
        }
        let flushed = volatile.map(|volatile| {
            let op = Io::new(Op::Flush, origin);
            (volatile, home.lane.submit(op))
        });
        let shard = Rc::clone(self);
        env::detach(&self.core, async move {
            if let Some((volatile, flushed)) = flushed {
                flushed.await?;
                home.modes.flushed(volatile);
            }
            if let Some(told) = told {
                // Gone with its core, nobody is told anything any more.
                let _ = told.await;
            }
            if shard.state.borrow().log.ring().has_failed() {
                return Err(shard.lost_write(Lba(0)));
            }
            Ok(Done::Nothing)
        })
    }

    /// The volume is in volatile mode, and nothing keeps a change of these blocks from going
    /// straight home.
    fn is_volatile(&self, slot: Slot, range: LbaRange) -> bool {
        let home = self.home_of(slot);
        !self.state.borrow().log.ring().has_failed()
            && home.modes.passes()
            && self.may_go_past(slot, &sectors(range, home.shape.block_size))
    }

    /// Goes straight home, and is not stable there. The log is told meanwhile, so that it does not
    /// bring back after a crash what it had of the blocks before; a flush waits for both. Where the
    /// log has anything that it could bring back, so does the answer.
    fn pass(self: &Rc<Self>, slot: Slot, range: LbaRange, op: Op, origin: Origin) -> IoFuture {
        let home = self.home_of(slot);
        let sectors = sectors(range, home.shape.block_size);
        if let Some(kept) = &self.state.borrow().home(slot).kept {
            kept.touch(&sectors);
        }
        let id = self.begin_direct(slot, sectors, true);
        let answer = home.lane.submit(Io::new(op, origin));
        let told = self.change(slot, range, Kind::WriteAround, Buf::empty(), origin);
        let brings_back = {
            let state = self.state.borrow();
            state.newest_data >= state.log.ring().tail().number
        };
        let shard = Rc::clone(self);
        env::detach(&self.core, async move {
            let result = answer.await;
            // Now, and not before: a flush that is under way does not cover it.
            home.modes.leave_volatile();
            if brings_back {
                let told = told.await;
                shard.end_direct(id);
                return result.and_then(|done| told.map(|_| done));
            }
            let after = Rc::clone(&shard);
            let core = Rc::clone(&shard.core);
            // What is destaged waits for both, and whoever asked for the first only.
            core.spawn(Box::pin(async move {
                let _ = told.await;
                after.end_direct(id);
            }));
            result
        })
    }

    fn begin_direct(&self, slot: Slot, sectors: Range<u64>, pass: bool) -> u64 {
        let mut state = self.state.borrow_mut();
        let id = state.next_direct;
        state.next_direct += 1;
        state.directs.push(Direct {
            id,
            slot,
            sectors,
            pass,
        });
        id
    }

    fn end_direct(&self, id: u64) {
        self.state.borrow_mut().directs.retain(|it| it.id != id);
        self.moved.notify_waiters();
    }

    fn block_size(&self, slot: Slot) -> BlockSize {
        self.home_of(slot).shape.block_size
    }

    /// The volume of a slot that requests come for.
    pub(crate) fn home_of(&self, slot: Slot) -> OpenHome {
        let state = self.state.borrow();
        let open = state.home(slot).open.clone();
        open.expect("requests come through a lane, which was opened with its volume")
    }

    fn write(self: &Rc<Self>, slot: Slot, range: LbaRange, data: Buf, origin: Origin) -> IoFuture {
        let (block_size, past_bytes) = {
            let state = self.state.borrow();
            let open = state.home(slot).open.as_ref();
            let open = open.expect("requests come through a lane");
            (open.shape.block_size, open.modes.past_bytes())
        };
        if let Some(error) = self.refuses(slot, range.start()) {
            return Answer::ready(Err(error));
        }
        let sectors = sectors(range, block_size);
        if data.len() >= past_bytes && self.may_go_past(slot, &sectors) {
            return self.write_past(slot, range, data, origin);
        }
        if data.len() <= DATA_BYTES_MAX {
            return self.change(slot, range, Kind::Write, data, origin);
        }
        let blocks = DATA_BYTES_MAX as u64 / u64::from(block_size.bytes());
        let mut data = data;
        let answers: Vec<IoFuture> = chunks(range, blocks)
            .map(|chunk| {
                let bytes = chunk.len().0 * u64::from(block_size.bytes());
                let data = data.split_front(usize::try_from(bytes).expect("a chunk is small"));
                self.change(slot, chunk, Kind::Write, data, origin)
            })
            .collect();
        Answer::wait(all(answers))
    }

    fn zero(self: &Rc<Self>, slot: Slot, range: LbaRange, kind: Kind, origin: Origin) -> IoFuture {
        let blocks = ZEROES_BYTES_MAX / u64::from(self.block_size(slot).bytes());
        if range.len().0 <= blocks {
            return self.change(slot, range, kind, Buf::empty(), origin);
        }
        let answers: Vec<IoFuture> = chunks(range, blocks)
            .map(|chunk| self.change(slot, chunk, kind, Buf::empty(), origin))
            .collect();
        Answer::wait(all(answers))
    }

    /// The log has nothing of these sectors, nor will it get anything that came before, nor is any
    /// of them on its way home.
    fn may_go_past(&self, slot: Slot, sectors: &Range<u64>) -> bool {
        let state = self.state.borrow();
        state.index.is_clear(slot, sectors.clone())
            && !state.is_pending(slot, sectors)
            && !state.is_direct(slot, sectors)
    }

    /// Puts a change into the log; answers when it is stable.
    pub(crate) fn change(
        &self,
        slot: Slot,
        range: LbaRange,
        kind: Kind,
        data: Buf,
        origin: Origin,
    ) -> IoFuture {
        let mut state = self.state.borrow_mut();
        let home = state.home(slot);
        let open = home.open.as_ref();
        if open.is_some_and(|it| !it.fences.holds(origin.fence)) {
            return Answer::ready(Err(IoError::Fenced));
        }
        let block_size = match kind {
            // What its range begins with is no address; the volume may have left.
            Kind::Cut | Kind::Gone => BlockSize::B512,
            Kind::Write
            | Kind::Zeroes
            | Kind::Deallocate
            | Kind::Anchor
            | Kind::WriteAround
            | Kind::Lost
            | Kind::Touched => open.expect("requests come through a lane").shape.block_size,
        };
        let wanted = Wanted {
            volume: home.id,
            range,
            block_size,
            kind,
            data,
        };
        let (sectors, bytes) = (sectors(range, wanted.block_size), wanted.data.len());
        let token = Token(state.first_token + state.waiters.len() as u64);
        if state.log.submit(token, wanted).is_err() {
            return Answer::ready(Err(self.refused_write()));
        }
        let (answer, answered) = oneshot::channel();
        state.waiters.push_back(Some(Waiter {
            slot,
            sectors,
            fence: origin.fence,
            answer,
            permit: self.permits.take(bytes),
        }));
        state.changed_at = self.core.recent();
        drop(state);
        self.pump.notify_one();
        Answer::wait(async move {
            match answered.await {
                Ok(result) => result.map(|()| Done::Nothing),
                // The shard is gone with its core: nobody is told anything any more.
                Err(_) => std::future::pending().await,
            }
        })
    }

    /// A large write: first the log is told that it will be written, then it goes home, and is
    /// stable there.
    fn write_past(
        self: &Rc<Self>,
        slot: Slot,
        range: LbaRange,
        data: Buf,
        origin: Origin,
    ) -> IoFuture {
        let id = self.begin_direct(slot, sectors(range, self.block_size(slot)), false);
        let told = self.change(slot, range, Kind::WriteAround, Buf::empty(), origin);
        // Kept: the volume may leave while the log is told.
        let home = self.home_of(slot);
        let (shard, permit) = (Rc::clone(self), self.permits.take(data.len()));
        env::detach(&self.core, async move {
            let mut result = told.await;
            if result.is_ok() {
                shard.counts.borrow_mut().write_around_bytes += data.len() as u64;
                let durability = Durability::Stable;
                let op = Op::Write {
                    range,
                    data,
                    durability,
                };
                result = home.lane.submit(Io::new(op, origin)).await;
                if result.is_err() {
                    // What it left there can be read, and is in a cache perhaps: the next flush
                    // covers it.
                    home.modes.leave_volatile();
                }
            }
            shard.end_direct(id);
            drop(permit);
            result
        })
    }

    /// The part of the log that is in use.
    pub(crate) fn fill(&self) -> f64 {
        self.fill_of(&self.state.borrow())
    }

    pub(crate) fn fill_of(&self, state: &State) -> f64 {
        let ring = state.log.ring();
        #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
        let fill = ring.used_blocks() as f64 / ring.room_blocks() as f64;
        fill
    }

    /// Ends what works for it, as soon as it has nothing in hand.
    pub(crate) fn close(&self) {
        self.closing.set(true);
        self.pump.notify_one();
        self.carry.notify_one();
    }

    /// Bytes of the device where a sector of the log lies.
    pub(crate) fn device_byte(&self, sector: u32) -> u64 {
        self.log_at + u64::from(sector) * journal::SECTOR
    }

    /// Says in the log that its last batch was stable, where nothing does and nothing else is on
    /// its way.
    pub(crate) fn seal(self: &Rc<Self>) {
        let sealed = self.state.borrow_mut().seal();
        if let Some(write) = sealed {
            crate::pump::start(self, write);
        }
    }
}

/// Waits for all parts; the first error is the answer, as one that may leave a part done.
async fn all(answers: Vec<IoFuture>) -> IoResult {
    let mut result = Ok(Done::Nothing);
    for answer in answers {
        if let Err(error) = answer.await
            && result.is_ok()
        {
            result = Err(error.of_a_part());
        }
    }
    result
}
