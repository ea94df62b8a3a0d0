//! Destages the oldest changes, in the order of addresses, and gives up their room in the log.
//!
//! A round reads a segment of the log, writes to the backing volumes what still is the newest of
//! it, flushes, and only then lets the index forget it and the log use the room again. So no place
//! of a backing volume is written twice between two flushes, and at any moment what is not stable
//! there is stable in the log.

use super::contents::contents;
use super::log_read::read;
use super::pace::{Pace, Pressure, REST, pace};
use super::relocate::relocate;
use super::writes::Writes;
use crate::ring::{Blocked, Condition, Destage, Event, Ring};
use journal::{Segment, runs};
use std::rc::Rc;
use std::time::Duration;

/// Blocks of the log in one round: enough that neighbours meet, and little enough for the memory
/// that is kept for it.
const ROUND_BLOCKS: u64 = 1024;

/// Sectors in one write to a backing volume.
const RUN_SECTORS_MAX: u64 = 2048;

/// When to try again what could not be destaged.
const AGAIN: Duration = Duration::from_secs(1);

/// When to look for room again.
const SHORTLY: Duration = Duration::from_millis(10);

/// Runs as long as the ring is open.
pub(crate) async fn destage(ring: Rc<Ring>) {
    let mut took = Duration::ZERO;
    while !ring.machine().is_closing() {
        if is_paused(&ring) {
            ring.destager_is_woken().await;
            continue;
        }
        // A single batch always finds room to be relocated.
        let most = match ring.machine().destaging().blocked() {
            Some(Blocked::Room) => 1,
            Some(Blocked::Backing | Blocked::Log) | None => ROUND_BLOCKS,
        };
        let segment = ring.machine().oldest(most);
        let Some(segment) = segment else {
            rest(&ring).await;
            continue;
        };
        if !is_time(&ring, took).await || is_paused(&ring) {
            continue;
        }
        let begin = ring.core.now();
        ring.apply(Event::Destage(Destage::BeginRound));
        let blocked = round(&ring, &segment).await.err();
        took = ring.core.now().since(begin);
        ring.apply(Event::Destage(Destage::EndRound(blocked)));
        match blocked {
            None => {}
            // Room comes with a checkpoint.
            Some(Blocked::Room) => ring.destager_is_woken_within(SHORTLY).await,
            Some(Blocked::Backing | Blocked::Log) => {
                seal_at_rest(&ring);
                ring.destager_is_woken_within(AGAIN).await;
            }
        }
    }
}

fn is_paused(ring: &Ring) -> bool {
    ring.machine().destaging().is_paused()
}

/// There is nothing to destage: the last batch is sealed when nothing has come for a while.
async fn rest(ring: &Rc<Ring>) {
    if let Some(left) = seal_at_rest(ring) {
        return ring.destager_is_woken_within(left).await;
    }
    ring.apply(Event::Destage(Destage::Rest(true)));
    ring.destager_is_woken().await;
    ring.apply(Event::Destage(Destage::Rest(false)));
}

/// Seals the last batch when nothing has come for a while; else, when that will be.
fn seal_at_rest(ring: &Rc<Ring>) -> Option<Duration> {
    let (quiet, wanted) = {
        let machine = ring.machine();
        let quiet = ring.core.now().since(machine.changed_at());
        (quiet, machine.ring().wants_seal())
    };
    if wanted && quiet < REST {
        return Some(REST - quiet);
    }
    ring.seal();
    None
}

/// Waits as the pace says; `true`: destage now.
async fn is_time(ring: &Rc<Ring>, round: Duration) -> bool {
    let (quiet, fill) = {
        let machine = ring.machine();
        let quiet = ring.core.now().since(machine.changed_at());
        let fill = if machine.is_pressed() {
            1.0
        } else {
            machine.fill()
        };
        (quiet, fill)
    };
    let kept = ring.backings().keep_log();
    let pressure = Pressure {
        fill,
        quiet,
        round,
        kept,
    };
    match pace(pressure) {
        Pace::Go => true,
        Pace::Inspect(time) => {
            ring.destager_is_woken_within(time).await;
            false
        }
        Pace::Pause(time) => {
            ring.destager_is_woken_within(time).await;
            true
        }
    }
}

async fn round(ring: &Rc<Ring>, segment: &Segment) -> Result<(), Blocked> {
    let data = read(ring, segment).await?;
    let contents = contents(ring, segment, &data);
    write_arounds_end(ring).await;
    let writes = {
        let machine = ring.machine();
        let runs = runs(machine.index(), &contents.lying, RUN_SECTORS_MAX);
        Writes::new(runs, machine.live_bare(&contents.bare))
    };
    // One that is opened from now on may be too late for this round to save its history.
    let unopened = contents.unopened(&ring.machine());
    let mut unsaved = writes.run(ring, segment, &data, &contents).await;
    unsaved.extend(unopened);
    let left = contents.left(&ring.machine(), &unsaved);
    if left.is_any() {
        relocate(ring, segment, &data, left).await?;
    }
    if contents.has_new_notes(&ring.machine()) {
        return Err(Blocked::Room);
    }
    ring.log_reads_end().await;
    ring.counts.borrow_mut().rounds += 1;
    ring.apply(Event::Destage(Destage::Release(segment.end())));
    Ok(())
}

/// What is written around the log may touch what is to be destaged, and must be there before; so
/// must what this round takes the record of out of the log.
async fn write_arounds_end(ring: &Rc<Ring>) {
    let newest = ring.machine().newest_write_around();
    if let Some(newest) = newest {
        ring.wait_until(Condition::NoWriteAroundUntil(newest)).await;
    }
}
