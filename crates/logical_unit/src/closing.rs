//! How a nexus ends, and what CLEAR TASK SET ends of all.

use crate::change::{clear_task_set, nexus_lost};
use crate::share::control::AbortedBy;
use crate::share::nexus::{Nexus, abort};
use env::LocalFuture;
use std::rc::Rc;

/// How a nexus ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Closing {
    /// The initiator has ended it in order, and knows.
    LoggedOut,
    /// It was lost, or taken away with its session.
    Lost,
    /// The unit is taken away from a session that goes on: each of its commands is answered.
    Withdrawn,
}

impl Nexus {
    /// CLEAR TASK SET: every task of every nexus, as there is one task set (TST 000b).
    pub async fn clear_task_set(self: Rc<Self>) {
        clear_task_set(&self).await;
    }

    /// Ends the nexus: aborts what is left of it, now. When the future is ready, no write of it
    /// will reach the medium any more, but for those in quarantine. Once [`Closing::Withdrawn`] it
    /// may be closed again with its session.
    ///
    /// spec: SAM-5 5.6 "Aborting commands" knows no status for a command whose unit is taken away.
    /// TASK ABORTED is what is true: it was not the initiator that aborted it, and how far it came
    /// nobody reports.
    pub fn close(self: Rc<Self>, how: Closing) -> LocalFuture<()> {
        self.raise_fence();
        let by = match how {
            Closing::LoggedOut | Closing::Lost => AbortedBy::Own,
            Closing::Withdrawn => AbortedBy::Other { reported: true },
        };
        let aborted = abort(self.unit(), self.all_tasks(), by);
        Box::pin(async move {
            aborted.await;
            nexus_lost(&self).await;
            if !self.is_closed_already() {
                let pending = self.attentions.take();
                let lost = how != Closing::LoggedOut;
                let ports = self.unit().shared().ports();
                ports.leaves(self.port(), pending, lost);
            }
        })
    }
}
