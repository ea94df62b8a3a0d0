//! What two nodes say to each other, with delays, until the connection is lost: then all that is on
//! its way is gone, and both begin anew.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use units::{Buf, Now};
use write_back::{Change, Epoch, Sequence};

/// A volume in a ring.
pub(crate) type Of = (usize, u32);

/// What is said of it.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// I own it, and my log has this.
    Lead {
        epoch: u64,
        epochs: Vec<Epoch>,
        next: Sequence,
    },
    /// My log has nothing any more that yours lacks: go on with this number.
    Follow { epoch: u64, next: Sequence },
    /// The next changes, and what is committed by now.
    Changes {
        epoch: u64,
        changes: Vec<(Change, Buf)>,
        committed: Sequence,
    },
    /// All below this number are stable here.
    Ack { epoch: u64, below: Sequence },
    /// Something was not taken: begin anew.
    Refused,
}

struct Message {
    due: Now,
    of: Of,
    what: What,
}

/// The connection of two nodes, `0` and `1`.
#[derive(Default)]
pub(crate) struct Wire {
    /// Rises with each loss.
    generation: Cell<u64>,
    is_cut: Cell<bool>,
    to: [RefCell<VecDeque<Message>>; 2],
    pub(crate) said: Cell<u64>,
    pub(crate) lost: Cell<u64>,
}

impl Wire {
    pub(crate) fn new() -> Rc<Self> {
        Rc::default()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.get()
    }

    pub(crate) fn is_up(&self) -> bool {
        !self.is_cut.get()
    }

    /// It is lost; `until_mended`: and stays so.
    pub(crate) fn lose(&self, until_mended: bool) {
        self.generation.set(self.generation.get() + 1);
        self.is_cut.set(until_mended);
        for to in &self.to {
            let gone = to.borrow_mut().drain(..).count();
            self.lost.set(self.lost.get() + gone as u64);
        }
    }

    pub(crate) fn mend(&self) {
        self.is_cut.set(false);
    }

    /// Says something to the other node, which hears it after `delay`, in order.
    pub(crate) fn say(&self, from: usize, (now, delay): (Now, Duration), of: Of, what: What) {
        if self.is_cut.get() {
            return;
        }
        self.said.set(self.said.get() + 1);
        let mut to = self.to[1 - from].borrow_mut();
        let due = now.after(delay);
        let due = to.back().map_or(due, |last| last.due.max(due));
        to.push_back(Message { due, of, what });
    }

    /// What this node hears by now.
    pub(crate) fn hear(&self, node: usize, now: Now) -> Option<(Of, What)> {
        let mut to = self.to[node].borrow_mut();
        if to.front().is_none_or(|it| it.due > now) {
            return None;
        }
        to.pop_front().map(|it| (it.of, it.what))
    }
}
