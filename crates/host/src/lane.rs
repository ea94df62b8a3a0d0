//! Lanes of cores that are not the volume's home core: operations go there in batches, answers come
//! back in batches.
//!
//! ```text
//!   core A: submit, submit, ... --one job--> home: Multipath
//!                                              |
//!   core A: answers         <--one job--  what ended in one turn
//! ```
//!
//! A batch is what one turn of the core's loop has gathered, so an idle core waits for nothing.

use crate::home::Homes;
use env::{Answer, CoreHandle, CoreId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::sync::oneshot;
use volume::{Io, IoError, IoFuture, IoResult, Lane};

/// A lane away from the home core.
pub(crate) struct AwayLane {
    core: CoreHandle,
    home: CoreId,
    volume: u64,
    out: Rc<RefCell<Vec<(u64, Io)>>>,
}

/// Answers that this core waits for, by volume and number. All lanes of the core count together: an
/// answer names no lane.
#[derive(Default)]
struct Waiting {
    answers: RefCell<BTreeMap<(u64, u64), oneshot::Sender<IoResult>>>,
    next: Cell<u64>,
}

/// Answers that wait on the home core for the end of the turn, by core and volume.
#[derive(Default)]
struct Returns(RefCell<BTreeMap<(CoreId, u64), Batch>>);

/// Answers by the number of their operation.
type Batch = Vec<(u64, IoResult)>;

impl AwayLane {
    pub(crate) fn new(core: &CoreHandle, home: CoreId, volume: u64) -> Self {
        Self {
            core: Rc::clone(core),
            home,
            volume,
            out: Rc::default(),
        }
    }

    /// Sends what this turn has gathered, at its end.
    fn send_soon(&self) {
        let (core, home, volume) = (Rc::clone(&self.core), self.home, self.volume);
        let out = Rc::clone(&self.out);
        self.core.spawn(Box::pin(async move {
            let batch = out.take();
            let from = core.id();
            core.post(
                home,
                Box::new(move |there| arrive(there, from, volume, batch)),
            );
        }));
    }
}

impl Lane for AwayLane {
    fn submit(&self, io: Io) -> IoFuture {
        let (answer, answered) = oneshot::channel();
        let waiting = self.core.locals().get::<Waiting>();
        let number = waiting.next.get();
        waiting.next.set(number + 1);
        let key = (self.volume, number);
        waiting.answers.borrow_mut().insert(key, answer);
        let first = {
            let mut out = self.out.borrow_mut();
            out.push((number, io));
            out.len() == 1
        };
        if first {
            self.send_soon();
        }
        Answer::wait(async move {
            // The home core is gone with the volume: nobody knows.
            answered.await.unwrap_or(Err(IoError::Unavailable))
        })
    }
}

/// A batch arrives.
fn arrive(core: &CoreHandle, from: CoreId, volume: u64, batch: Vec<(u64, Io)>) {
    let home = core.locals().get::<Homes>().find(volume);
    let Some(home) = home else {
        for (number, _) in batch {
            give_back(core, from, volume, number, Err(IoError::Unavailable));
        }
        return;
    };
    for (number, io) in batch {
        match home.lane().submit(io).now() {
            Ok(result) => give_back(core, from, volume, number, result),
            Err(waiting) => {
                let there = Rc::clone(core);
                core.spawn(Box::pin(async move {
                    let result = waiting.await;
                    give_back(&there, from, volume, number, result);
                }));
            }
        }
    }
}

/// Sends an answer back with all others of this turn.
fn give_back(core: &CoreHandle, to: CoreId, volume: u64, number: u64, result: IoResult) {
    let returns = core.locals().get::<Returns>();
    let first = {
        let mut all = returns.0.borrow_mut();
        let batch = all.entry((to, volume)).or_default();
        batch.push((number, result));
        batch.len() == 1
    };
    if !first {
        return;
    }
    let here = Rc::clone(core);
    core.spawn(Box::pin(async move {
        let batch = returns.0.borrow_mut().remove(&(to, volume));
        let batch = batch.unwrap_or_default();
        here.post(
            to,
            Box::new(move |there| {
                let waiting = there.locals().get::<Waiting>();
                for (number, result) in batch {
                    let answer = waiting.answers.borrow_mut().remove(&(volume, number));
                    if let Some(answer) = answer {
                        // Nobody may be waiting any more.
                        drop(answer.send(result));
                    }
                }
            }),
        );
    }));
}
