//! The size of an open volume, which may grow: reported to whoever asks, on any core.

use env::LocalFuture;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use units::BlockCount;
use volume::{Epoch, Shape, VolumeEvent, VolumeEvents};

/// The facts of a volume as they are now, and who is notified of changes.
pub(crate) struct Facts(Mutex<Inside>);

struct Inside {
    shape: Shape,
    watchers: Vec<UnboundedSender<VolumeEvent>>,
}

impl fmt::Debug for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.shape().fmt(f)
    }
}

impl Facts {
    pub(crate) fn new(shape: Shape) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Inside {
            shape,
            watchers: Vec::new(),
        })))
    }

    fn inside<T>(&self, with: impl FnOnce(&mut Inside) -> T) -> T {
        // A shape is replaced whole: one that panicked has left nothing half done.
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn shape(&self) -> Shape {
        self.inside(|it| it.shape)
    }

    /// The volume has this many blocks now.
    pub(crate) fn grow(&self, blocks: BlockCount) {
        self.inside(|it| {
            it.shape.block_count = blocks;
            it.shape.epoch = Epoch(it.shape.epoch.0 + 1);
            let event = VolumeEvent::Reshaped(it.shape.epoch);
            it.watchers
                .retain(|watcher| watcher.send(event.clone()).is_ok());
        });
    }

    pub(crate) fn watch(&self) -> Rc<dyn VolumeEvents> {
        let (watcher, events) = unbounded_channel();
        self.inside(|it| it.watchers.push(watcher));
        Rc::new(Events(Rc::new(RefCell::new(events))))
    }
}

struct Events(Rc<RefCell<UnboundedReceiver<VolumeEvent>>>);

impl VolumeEvents for Events {
    fn next(&self) -> LocalFuture<VolumeEvent> {
        let events = Rc::clone(&self.0);
        Box::pin(async move {
            let next = std::future::poll_fn(|cx| events.borrow_mut().poll_recv(cx));
            match next.await {
                Some(event) => event,
                // The volume is gone.
                None => std::future::pending().await,
            }
        })
    }
}
