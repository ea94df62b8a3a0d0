//! What the home core of a unit knows of holds: which stand, and who waits.

use crate::admission::{HoldId, HoldKind};
use crate::hold_table::HoldTable;
use std::cell::RefCell;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// The home core's side.
#[derive(Default)]
pub(crate) struct HoldHome {
    table: RefCell<HoldTable>,
    waiting: RefCell<BTreeMap<HoldId, oneshot::Sender<()>>>,
}

impl HoldHome {
    pub(crate) fn request(&self, id: HoldId, kind: HoldKind) -> Option<oneshot::Receiver<()>> {
        if self.table.borrow_mut().request(id, kind) {
            return None;
        }
        let (granted, waits) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, granted);
        Some(waits)
    }

    pub(crate) fn release(&self, id: HoldId) {
        self.waiting.borrow_mut().remove(&id);
        for id in self.table.borrow_mut().release(id) {
            if let Some(granted) = self.waiting.borrow_mut().remove(&id) {
                // Whoever gave up waiting releases the hold by its guard.
                let _: Result<(), ()> = granted.send(());
            }
        }
    }
}
