//! How a nexus ends, and what it may end of others: CLEAR TASK SET, LOGICAL UNIT RESET.
//!
//! **Contract.** What a function ends of the nexus that asks is marked when the call returns. What
//! comes behind the function on the same nexus is not touched, however long the other cores take
//! (RFC 7143 4.2.3.3: of the own session, tasks with a lower CmdSN are affected).

use crate::change::{abort_others, nexus_lost};
use crate::forwarder::ForwardedReset;
use crate::share::control::AbortedBy;
use crate::share::nexus::{Nexus, abort};
use crate::state::UnitState;
use env::LocalFuture;
use scsi::mode::TaskSetType;
use scsi::unit_attention::UnitAttention;
use std::rc::Rc;
use std::sync::Arc;

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

/// The owner has done it, where that is another node.
async fn is_done_there(forwarded: Option<LocalFuture<bool>>) -> bool {
    match forwarded {
        Some(forwarded) => forwarded.await,
        None => false,
    }
}

impl Nexus {
    /// CLEAR TASK SET (SAM-5 7.5 "CLEAR TASK SET"): of the one task set of all nexuses, or of the
    /// nexus' own where TST is 001b.
    pub fn clear_task_set(&self) -> LocalFuture<()> {
        let own = self.abort_task_set();
        let per_nexus =
            |state: &UnitState| state.modes.current.task_set_type == TaskSetType::PerNexus;
        if self.unit().with_state(per_nexus) {
            return own;
        }
        let (core, id) = (Rc::clone(self.unit().core()), self.unit().id());
        let port = self.port().clone();
        let forwarded = self.forward_reset(ForwardedReset::ClearTaskSet);
        Box::pin(async move {
            let others = async {
                if !is_done_there(forwarded).await {
                    abort_others(&core, id, port, true).await;
                }
            };
            futures_util::future::join(own, others).await;
        })
    }

    /// LOGICAL UNIT RESET (SAM-5 6.3.3 "Logical unit reset"), or a reset of the target as this unit
    /// sees it; `reported`: the unit attention that says which. Answered within 2 s.
    pub fn reset_unit(&self, reported: UnitAttention) -> LocalFuture<()> {
        let own = self.abort_task_set();
        let forwarded = self.forward_reset(ForwardedReset::Reset(reported));
        let core = Rc::clone(self.unit().core());
        let (unit, port) = (Arc::clone(self.unit().shared()), self.port().clone());
        Box::pin(async move {
            let rest = async {
                if !is_done_there(forwarded).await {
                    unit.reset(&core, &port, reported).await;
                }
            };
            futures_util::future::join(own, rest).await;
        })
    }

    /// Ends the nexus: aborts what is left of it, now. When the future is ready, no write of it
    /// will reach the medium any more, but for those in quarantine. Where the way to the owner was
    /// lost with some of its commands, that takes until the owner can be asked again, or is another
    /// node. Once [`Closing::Withdrawn`] it
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
        let aborted = self.close_at_owner(how, aborted);
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
