//! Questions to other nodes that are answered in bytes, each with a number of its own.

use env::{CoreHandle, in_time};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::oneshot;

/// What was asked, and is not answered.
#[derive(Default)]
pub(crate) struct Questions {
    asked: Cell<u64>,
    waits: RefCell<BTreeMap<u64, oneshot::Sender<Vec<u8>>>>,
}

impl Questions {
    /// Asks under a number that no other question has, and waits for the answer.
    pub(crate) async fn ask(
        &self,
        core: &CoreHandle,
        within: Duration,
        say: impl FnOnce(u64),
    ) -> Option<Vec<u8>> {
        let number = self.asked.get() + 1;
        self.asked.set(number);
        let (answer, answered) = oneshot::channel();
        self.waits.borrow_mut().insert(number, answer);
        say(number);
        let answer = in_time(core, within, answered).await;
        self.waits.borrow_mut().remove(&number);
        answer?.ok()
    }

    /// An answer came.
    pub(crate) fn answer(&self, number: u64, bytes: Vec<u8>) {
        let waits = self.waits.borrow_mut().remove(&number);
        if let Some(waits) = waits {
            // Who asked may have gone.
            let _gone = waits.send(bytes);
        }
    }
}
