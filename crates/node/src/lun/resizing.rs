//! Changes of size that could not be ended are tried again while the node serves.
//!
//! A new size is in the objects before it is in force. Where the disk is full, the map of the
//! checksums cannot follow it: a LUN that was to grow keeps the size that hosts know, and of one
//! that was to shrink the rest is cut off, and the map follows as soon as there is room.

use crate::inner::Inner;
use env::CoreHandle;
use manifest::objects::Lun;
use std::rc::{Rc, Weak};
use std::time::Duration;
use volume::OpenError;

/// How often those are tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// Tries again for as long as the node is there.
pub(crate) async fn keep(core: CoreHandle, node: Weak<Inner>) {
    loop {
        core.sleep_until(core.now().after(AGAIN)).await;
        let Some(node) = node.upgrade() else { return };
        if node.resizing.0.borrow().is_empty() {
            continue;
        }
        let _turn = node.turn.lock().await;
        if node.server().is_none() {
            // It stops.
            continue;
        }
        let waiting = std::mem::take(&mut *node.resizing.0.borrow_mut());
        let objects = Rc::clone(&node.objects.borrow());
        for lun in objects
            .luns
            .values()
            .filter(|lun| waiting.contains_key(&lun.naa))
        {
            if node.resize(lun).await.is_ok() {
                let lun = &*node.name_of(lun);
                tracing::info!(lun, "its change of size has ended");
            }
        }
    }
}

impl Inner {
    /// Brings a LUN's size into force; where that cannot be done, it is tried again. One that is
    /// offline has its size when it is opened.
    pub(crate) async fn resize(&self, lun: &Lun) -> Result<(), OpenError> {
        let Some(unit) = self.unit(&lun.naa).filter(|unit| unit.offline().is_none()) else {
            return Ok(());
        };
        let resized = unit.resize(&self.core, lun.size, self.kept_of(lun)).await;
        let mut all = self.resizing.0.borrow_mut();
        match &resized {
            Ok(()) => all.remove(&lun.naa),
            Err(error) => all.insert(lun.naa.clone(), error.to_string()),
        };
        resized
    }
}
