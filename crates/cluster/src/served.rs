//! The volume that hosts of a mirrored LUN use: the log below, and who may use it.
//!
//! ```text
//!   change: may this node take changes? --> log --> answered when committed
//!   read:   may it read? --> log, backing --> may it still? --> answered; else again
//! ```

use crate::tenure::{Tenure, moment};
use env::{Answer, CoreHandle, LocalFuture};
use std::rc::Rc;
use std::sync::Arc;
use volume::{Io, IoError, IoFuture, IoResult, Lane, OpenError, Shape, Volume, VolumeEvents};
use write_back::WriteBack;

/// A mirrored LUN's volume on one node.
pub struct Served {
    below: Arc<WriteBack>,
    tenure: Arc<Tenure>,
}

impl Served {
    /// Over the log of a LUN, which [has copies](WriteBack::has_copies). Nobody is served before a
    /// [cluster](crate::Cluster::open) says so.
    #[must_use]
    pub fn new(below: Arc<WriteBack>) -> Arc<Self> {
        let tenure = Arc::default();
        Arc::new(Self { below, tenure })
    }

    /// The log below.
    #[must_use]
    pub fn log(&self) -> &Arc<WriteBack> {
        &self.below
    }

    pub(crate) fn tenure(&self) -> &Arc<Tenure> {
        &self.tenure
    }
}

impl Volume for Served {
    fn shape(&self) -> Shape {
        self.below.shape()
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            let below = Arc::clone(&self.below).open(&core).await?;
            let tenure = Arc::clone(&self.tenure);
            Ok(Rc::new(ServedLane(Rc::new(Inner {
                core,
                below,
                tenure,
            }))) as Rc<dyn Lane>)
        })
    }

    /// Of who serves hosts alone: what happens below is the node's own.
    fn events(self: Arc<Self>, _core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        self.tenure.events()
    }
}

struct Inner {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    tenure: Arc<Tenure>,
}

struct ServedLane(Rc<Inner>);

impl Inner {
    fn may(&self, mutates: bool) -> bool {
        if mutates {
            self.tenure.may_write()
        } else {
            self.tenure.may_read(moment(&self.core))
        }
    }

    /// Whether this may be said: a change that was taken is what it is, but what was read, or
    /// compared, is right only while this node may read.
    fn is_right(&self, mutates: bool, result: &IoResult) -> bool {
        let has_read = !mutates || matches!(result, Err(IoError::Miscompare { .. }));
        !has_read || self.tenure.may_read(moment(&self.core))
    }

    /// Waits for the right.
    async fn enters(&self, mutates: bool) -> Result<(), IoError> {
        loop {
            let changed = self.tenure.changed();
            if self.may(mutates) {
                return Ok(());
            }
            if !self.tenure.is_worth_waiting() {
                return Err(IoError::Transition);
            }
            changed.await;
        }
    }

    async fn submit(self: Rc<Self>, io: Io) -> IoResult {
        let mutates = io.op().mutates();
        loop {
            self.enters(mutates).await?;
            let result = self.below.submit(io.fork()).await;
            if self.is_right(mutates, &result) {
                return result;
            }
        }
    }
}

impl Lane for ServedLane {
    fn submit(&self, io: Io) -> IoFuture {
        let Some(latencies) = self.0.tenure.counted() else {
            return self.served(io);
        };
        let (latencies, core) = (Arc::clone(latencies), Rc::clone(&self.0.core));
        let begun = core.now();
        let answer = self.served(io);
        Answer::wait(async move {
            let result = answer.await;
            latencies.add(core.now().since(begun));
            result
        })
    }
}

impl ServedLane {
    fn served(&self, io: Io) -> IoFuture {
        let inner = Rc::clone(&self.0);
        let mutates = io.op().mutates();
        if !inner.may(mutates) {
            return Answer::wait(inner.submit(io));
        }
        let again = io.fork();
        match inner.below.submit(io).now() {
            Ok(result) if inner.is_right(mutates, &result) => Answer::ready(result),
            Ok(_) => Answer::wait(inner.submit(again)),
            Err(waiting) => Answer::wait(async move {
                let result = waiting.await;
                if inner.is_right(mutates, &result) {
                    return result;
                }
                inner.submit(again).await
            }),
        }
    }
}
