//! What the commands of a session take of this core's memory and of their units' room.

use super::awaited::Granted;
use super::commands::Waiting;
use super::memory::{Need, Others};
use super::phase::FullFeature;
use crate::session::Counters;
use env::CoreHandle;
use iscsi::{Itt, Lun};
use logical_unit::{Room, Task};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;
use units::{Now, Pool};

/// How long until memory is asked for again, where there was none.
const MEMORY_RETRY: Duration = Duration::from_millis(2);

/// A timer that rings so much late shows that the whole process was stopped.
const STOPPED: Duration = Duration::from_secs(1);

impl FullFeature {
    pub(super) fn count(&self, count: impl FnOnce(&Counters)) {
        count(&self.session.counters);
    }

    /// A command has to wait; `true`: it is the first of its LUN that does.
    pub(super) fn waits(&mut self, lun: Lun, itt: Itt, need: Need, waiting: Waiting) -> bool {
        self.commands.waiting.insert(itt, waiting);
        let is_first = self.memory.share.is_idle(lun);
        self.memory.share.wait(lun, itt, need);
        is_first
    }

    /// There is memory for a command, while replies of `unsent` bytes wait to be sent.
    pub(super) fn has_room(
        &self,
        lun: Lun,
        bytes: usize,
        unsent: usize,
        task: &Task,
        pool: &Pool,
    ) -> bool {
        let others = Others {
            of_host: self.awaited.others_hold(),
            of_unit: usize::try_from(task.unit_holds()).unwrap_or(usize::MAX),
        };
        self.memory.share.has_room(lun, bytes, unsent, others, pool)
    }

    /// Takes room under the limit of the command's unit.
    pub(super) fn takes_room(&self, lun: Lun, bytes: usize, task: &Task) -> Room {
        let holds = self.memory.share.holds(lun) as u64;
        task.take_room(bytes as u64, holds, self.memory.share.for_room(lun))
    }

    /// The same for a command that may have to wait: whoever waits has a place in the unit's queue.
    pub(super) fn finds_room(&mut self, lun: Lun, itt: Itt, bytes: usize) -> Room {
        let Some(Waiting { task, .. }) = self.commands.waiting.get(&itt) else {
            return Room::Taken;
        };
        let found = self.takes_room(lun, bytes, task);
        if found == Room::Taken || self.memory.share.for_room(lun).is_some() {
            return found;
        }
        let place = task.waits_for_room(bytes as u64);
        self.memory.share.enters(lun, place);
        // What was given back meanwhile woke nobody.
        self.takes_room(lun, bytes, task)
    }

    /// Takes a part of what hosts may announce, for memory of so many bytes that this one is to
    /// fill within `time`.
    pub(super) fn grant(
        &mut self,
        core: &CoreHandle,
        bytes: usize,
        time: Duration,
    ) -> Option<Granted> {
        let memory = core.pool().limit_bytes();
        let granted = self.awaited.grant(bytes, memory, core.recent())?;
        if self.memory.data_due.is_none() {
            self.memory.data_due = Some(granted.due(time, self.memory.on_time_since));
        }
        Some(granted)
    }

    /// The writes whose data is not there within `time`.
    pub(super) fn late_writes(&mut self, now: Now, time: Duration) -> Vec<Itt> {
        let mut late = Vec::new();
        let Some(due) = self.memory.data_due.filter(|due| *due <= now) else {
            return late;
        };
        if now.since(due) > STOPPED {
            // We were stopped, not the host: what it sent has not been read.
            self.memory.on_time_since = now;
        }
        let since = self.memory.on_time_since;
        let mut next: Option<Now> = None;
        for (itt, waiting) in &self.commands.waiting {
            match waiting.granted.as_ref().map(|it| it.due(time, since)) {
                Some(due) if due <= now => late.push(*itt),
                Some(due) => next = Some(next.map_or(due, |next| next.min(due))),
                None => {}
            }
        }
        self.memory.data_due = next;
        late
    }

    /// Memory comes back on other sessions, too: who waits for it tries again when that is
    /// reported, and not more often than at intervals.
    pub(super) fn retry_later(&mut self, core: &CoreHandle) {
        if self.memory.retry.is_some() {
            return;
        }
        let core = Rc::clone(core);
        let awaited = Rc::clone(&self.awaited);
        let soon = core.now().after(MEMORY_RETRY);
        let seen = (core.pool().freed(), awaited.freed());
        self.memory.retry = Some(Box::pin(async move {
            // Not at each slab: who waits would do nothing else.
            core.sleep_until(soon).await;
            poll_fn(|cx| {
                let memory = core.pool().poll_freed(cx, seen.0);
                let shares = awaited.poll_freed(cx, seen.1);
                if memory.is_ready() { memory } else { shares }
            })
            .await;
        }));
    }

    /// It is time to try again for memory, or for room under the limits of units.
    pub(super) fn poll_retry(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.memory.share.has_waiting() {
            self.memory.retry = None;
            return false;
        }
        let mut retries = self.memory.share.poll(cx);
        let retry = self.memory.retry.as_mut();
        if retry.is_some_and(|retry| retry.as_mut().poll(cx).is_ready()) {
            self.memory.retry = None;
            retries = true;
        }
        retries
    }
}
