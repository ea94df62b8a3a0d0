//! Waiting until all is at home.

use crate::carry::Held;
use crate::shard::Shard;
use std::rc::Rc;

/// Somebody waits until all is at home.
struct Hurry(Rc<Shard>);

impl Hurry {
    fn new(shard: &Rc<Shard>) -> Self {
        shard.hurry.set(shard.hurry.get() + 1);
        Self(Rc::clone(shard))
    }
}

impl Drop for Hurry {
    fn drop(&mut self) {
        self.0.hurry.set(self.0.hurry.get() - 1);
    }
}

/// Waits until everything that was there is at home, or cannot get there.
pub(crate) async fn drained(shard: Rc<Shard>) {
    let _hurry = Hurry::new(&shard);
    // One round may be under way, and know less than was there when this was asked for.
    let enough = shard.rounds.get() + 2;
    loop {
        let moved = shard.moved.notified();
        if shard.is_home(enough) {
            return;
        }
        shard.carry.notify_one();
        moved.await;
    }
}

impl Shard {
    /// All is at home, or what is not has been tried, until so many rounds have ended.
    fn is_home(&self, rounds: u64) -> bool {
        let state = self.state.borrow();
        let ring = state.log.ring();
        let held = match self.held.get() {
            // Whatever could go home went: the rest has moved on behind it.
            Some(Held::Home) => self.rounds.get() >= rounds && state.fresh_blocks() == 0,
            Some(Held::Log) => self.rounds.get() >= rounds,
            Some(Held::Room) | None => false,
        };
        // What is on its way counts: it may be what moved on.
        let empty = state.log.waiting() == 0 && ring.unreleased_blocks() == 0;
        empty || held || ring.has_failed()
    }
}
