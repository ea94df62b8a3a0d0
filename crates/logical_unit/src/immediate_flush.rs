//! Cache synchronizations that are answered before they are done (IMMED). A host may ask for as
//! many as it likes and waits for none, so they must not pile up: on a core one is in flight, and
//! at most one is wanted after it. That one stands for all that were asked for meanwhile, as it
//! begins after them.

use crate::share::{CoreUnit, ImmediateFlush};
use std::rc::Rc;
use volume::{Fence, Io, Op, Origin};

impl CoreUnit {
    /// Has all synchronized that was written before this call, while nobody waits for it. What
    /// fails is logged: the layers below keep in mind what is not stable, and the next
    /// synchronization that someone waits for reports it.
    pub(crate) fn flush_without_waiting(self: &Rc<Self>) {
        let stage = self.immediate_flush();
        if stage.get() != ImmediateFlush::None {
            stage.set(ImmediateFlush::Wanted);
            return;
        }
        stage.set(ImmediateFlush::InFlight);
        let first = self.start_flush();
        self.core()
            .spawn(Box::pin(flush_while_wanted(Rc::clone(self), first)));
    }

    fn start_flush(&self) -> Option<env::Answer<volume::IoResult>> {
        let origin = Origin {
            trace: self.next_trace(),
            // The right to write is not needed, and the session that asked may be over.
            fence: Fence::default(),
            ..Origin::default()
        };
        let lane = self.lane()?;
        Some(lane.submit(Io::new(Op::Flush, origin)))
    }
}

async fn flush_while_wanted(unit: Rc<CoreUnit>, first: Option<env::Answer<volume::IoResult>>) {
    let mut flush = first;
    loop {
        if let Some(answer) = flush
            && let Err(error) = answer.await
        {
            tracing::error!(
                lun = &*unit.shared().name(),
                ?error,
                "a cache synchronization that was answered at once failed"
            );
        }
        let stage = unit.immediate_flush();
        if stage.replace(ImmediateFlush::None) != ImmediateFlush::Wanted {
            return;
        }
        stage.set(ImmediateFlush::InFlight);
        flush = unit.start_flush();
    }
}
