//! Carries the oldest changes home, in the order of addresses, and gives up their room in the log.
//!
//! A round reads a segment of the log, writes home what still is the newest of it, flushes, and
//! only then lets the index forget it and the log use the room again. So no place at home is
//! written twice between two flushes, and at any moment what is not stable at home is stable in the
//! log.

use crate::contents::{contents, live_bare};
use crate::home::Going;
use crate::move_on::move_on;
use crate::pace::{Pace, Pressure, REST, pace};
use crate::shard::Shard;
use env::{FileDone, FileOp};
use futures_util::future::select;
use journal::{Segment, runs};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;
use units::{Buf, Reserve};

/// Blocks of the log in one round: enough that neighbours meet, and little enough for the memory
/// that is kept for it.
const ROUND_BLOCKS: u64 = 1024;

/// Sectors in one write home.
const RUN_SECTORS_MAX: u64 = 2048;

/// When to try again what could not be carried.
const AGAIN: Duration = Duration::from_secs(1);

/// When to look for room again.
const SHORTLY: Duration = Duration::from_millis(10);

/// What Linux answers for sectors that a disk cannot read (a critical medium error), and for
/// nothing else.
const ENODATA: i32 = 61;

/// Runs as long as the shard is open.
pub(crate) async fn carry(shard: Rc<Shard>) {
    let mut took = Duration::ZERO;
    while !shard.closing.get() {
        if !shard.pauses.borrow().is_empty() {
            shard.carry.notified().await;
            continue;
        }
        // A single batch always finds room to move on.
        let most = if shard.held.get() == Some(Held::Room) {
            1
        } else {
            ROUND_BLOCKS
        };
        let segment = shard.state.borrow().log.ring().oldest(most);
        let Some(segment) = segment else {
            rest(&shard).await;
            continue;
        };
        if !is_time(&shard, took).await || !shard.pauses.borrow().is_empty() {
            continue;
        }
        let begin = shard.core.now();
        shard.in_round.set(true);
        let held = round(&shard, &segment).await.err();
        shard.in_round.set(false);
        took = shard.core.now().since(begin);
        shard.rounds.set(shard.rounds.get() + 1);
        shard.held.set(held);
        shard.moved.notify_waiters();
        // What waits for room may be refused by now.
        if shard.state.borrow_mut().withdraw_refused() {
            shard.pump.notify_one();
        }
        match held {
            None => {}
            // Room comes with a checkpoint.
            Some(Held::Room) => wait(&shard, SHORTLY).await,
            Some(Held::Home | Held::Log) => {
                shard.seal_at_rest();
                wait(&shard, AGAIN).await;
            }
        }
    }
}

/// There is nothing to carry: the last batch is sealed when nothing has come for a while.
async fn rest(shard: &Rc<Shard>) {
    if let Some(left) = shard.seal_at_rest() {
        return wait(shard, left).await;
    }
    shard.moved.notify_waiters();
    shard.carrier_rests.set(true);
    shard.carry.notified().await;
    shard.carrier_rests.set(false);
}

impl Shard {
    /// Seals the last batch when nothing has come for a while; else, when that will be.
    fn seal_at_rest(self: &Rc<Self>) -> Option<Duration> {
        let (quiet, wanted) = {
            let state = self.state.borrow();
            let quiet = self.core.now().since(state.changed_at);
            (quiet, state.log.ring().wants_seal())
        };
        if wanted && quiet < REST {
            return Some(REST - quiet);
        }
        self.seal();
        None
    }
}

/// Waits as the pace says; `true`: carry now.
async fn is_time(shard: &Rc<Shard>, round: Duration) -> bool {
    let (quiet, full) = {
        let state = shard.state.borrow();
        (shard.core.now().since(state.changed_at), state.full)
    };
    let fill = if full || shard.hurry.get() > 0 {
        1.0
    } else {
        shard.fill()
    };
    match pace(Pressure { fill, quiet, round }) {
        Pace::Go => true,
        Pace::Look(time) => {
            wait(shard, time).await;
            false
        }
        Pace::Pause(time) => {
            wait(shard, time).await;
            true
        }
    }
}

/// For so long, or until somebody asks.
async fn wait(shard: &Rc<Shard>, time: Duration) {
    let timer = shard.core.sleep_until(shard.core.now().after(time));
    select(timer, pin!(shard.carry.notified())).await;
}

/// Why the oldest part of the log stays where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// Some of it cannot be destaged, and moving it on in the log would win nothing.
    Home,
    /// There was no room to move it on: less of it will find some.
    Room,
    /// It cannot be read, or the log takes nothing any more.
    Log,
}

async fn round(shard: &Rc<Shard>, segment: &Segment) -> Result<(), Held> {
    let data = read(shard, segment).await?;
    let contents = contents(shard, segment, &data);
    directs_end(shard).await;
    let going = {
        let state = shard.state.borrow();
        let runs = runs(&state.index, &contents.lying, RUN_SECTORS_MAX);
        Going::new(runs, live_bare(&state, &contents.bare))
    };
    let unsaved = going.go(shard, segment, &data, &contents).await;
    let held = contents.held(&shard.state.borrow(), &unsaved);
    if held.is_any() {
        move_on(shard, segment, &data, held).await?;
    }
    shard.grace.wait().await;
    shard.counts.borrow_mut().rounds += 1;
    shard.state.borrow_mut().release(segment.end());
    shard.pump.notify_one();
    Ok(())
}

/// The bytes of a segment of the log.
async fn read(shard: &Rc<Shard>, segment: &Segment) -> Result<Buf, Held> {
    let mut data = Buf::empty();
    for (at, bytes) in segment.reads() {
        match read_one(shard, at, bytes).await {
            Ok(read) => data.append_owned(read),
            Err(Unread::Medium) => data.append_owned(read_what_can_be(shard, at, bytes).await?),
            Err(Unread::Held(held)) => return Err(held),
        }
    }
    Ok(data)
}

/// Why something of the log was not read.
enum Unread {
    /// The medium has lost it: no path that comes back will bring it.
    Medium,
    Held(Held),
}

async fn read_one(shard: &Rc<Shard>, at: u64, bytes: usize) -> Result<Buf, Unread> {
    let pool = shard.core.pool().reserve(Reserve::WriteBack);
    let into = pool.alloc(bytes);
    let into = into.map_err(|units::Exhausted| Unread::Held(Held::Room))?;
    let offset = shard.log_at + at;
    match shard.file.submit(FileOp::Read { offset, into }).await {
        Ok(FileDone::Read(read)) => Ok(read.freeze()),
        Ok(other) => unreachable!("{other:?} is no data"),
        Err(error) if error.raw_os_error() == Some(ENODATA) => Err(Unread::Medium),
        Err(_) => Err(Unread::Held(Held::Log)),
    }
}

/// Blocks that the medium has lost are damage: their checksums will tell.
async fn read_what_can_be(shard: &Rc<Shard>, at: u64, bytes: usize) -> Result<Buf, Held> {
    let mut data = Buf::empty();
    for block in 0..bytes / journal::BLOCK {
        let at = at + (block * journal::BLOCK) as u64;
        match read_one(shard, at, journal::BLOCK).await {
            Ok(read) => data.append_owned(read),
            Err(Unread::Medium) => data.append_owned(Buf::zeroes(journal::BLOCK)),
            Err(Unread::Held(held)) => return Err(held),
        }
    }
    Ok(data)
}

/// What goes home past the log may touch what is to be carried, and must be there before.
async fn directs_end(shard: &Rc<Shard>) {
    let Some(newest) = shard.state.borrow().newest_direct() else {
        return;
    };
    loop {
        let moved = shard.moved.notified();
        if !shard.state.borrow().has_direct_until(newest) {
            return;
        }
        moved.await;
    }
}
