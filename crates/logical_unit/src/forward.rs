//! Commands of hosts that came to another node than the one that serves them.
//!
//! ```text
//!   this node:  arrive --> order, abort, data of the session --> Forwarder ... --> outcome
//!   the owner:                                       Nexus::open_guest --> arrive --> run
//! ```
//!
//! **Contract.** What asks for a unit's blocks or state, or changes them, is done by the owner
//! alone, in its one task set: reservations, unit attentions and holds are there. This node keeps
//! the session, the order in which its commands came, and their data. A command goes once: where
//! the way to the owner was lost while it was there, a host whose command may have had an effect
//! loses its connection, and others get BUSY. What is aborted counts as over when the owner has
//! said so. Where the way to it is lost, that is when it is there again, or when another node owns
//! the unit, whose log then has the command whole or not at all.

use crate::closing::Closing;
use crate::forwarder::{
    ForwardEnd, ForwardedCommand, ForwardedReset, Forwarder, Forwarding, ToForward,
};
use crate::in_flight::Room;
use crate::names::{PortFacts, UnitId, UnitPorts};
use crate::outcome::{Outcome, Refusal, Response};
use crate::share::control::{AbortedBy, Stage};
use crate::share::find;
use crate::share::nexus::{Nexus, NexusError, Peers};
use crate::state::UnitState;
use crate::task::Task;
use crate::unit::LogicalUnit;
use env::{CoreHandle, LocalFuture, in_time};
use scsi::alua::AccessState;
use scsi::opcode::{Accessible, Opcode};
use scsi::reservation::Nexus as NexusPort;
use scsi::{Command, Status};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::oneshot;
use units::Buf;

/// How soon the owner is asked again for what nobody knows whether it was done.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// How long whoever takes a unit away from a session waits for the owner.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(5);

impl UnitState {
    /// Hosts are served by another node, to which their commands go.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.access_state == AccessState::ActiveNonOptimized
    }
}

/// It is answered here, whoever serves hosts: it says what a path is.
fn is_of_this_path(row: &Opcode, command: &Command) -> bool {
    row.accessible == Accessible::Always
        || matches!(
            command,
            Command::ReportSupportedOperationCodes { .. }
                | Command::ReportSupportedTaskManagementFunctions { .. }
        )
}

/// Done twice it is as if it was done once, whatever others do between: it may be asked for again.
fn has_no_effect(command: &Command) -> bool {
    matches!(
        command,
        Command::TestUnitReady
            | Command::Read(_)
            | Command::Verify { .. }
            | Command::PreFetch { .. }
            | Command::SynchronizeCache { .. }
            | Command::GetLbaStatus { .. }
            | Command::ReadCapacity10
            | Command::ReadCapacity16 { .. }
            | Command::ModeSense(_)
            | Command::LogSense(_)
            | Command::PersistentReserveIn { .. }
            | Command::ReceiveCopyResults { .. }
    )
}

impl Nexus {
    /// A nexus of another node's at the unit `id`, whose commands that node forwards: `port` is
    /// as all nodes call it, `ports` are those of this node that its initiator may use.
    ///
    /// # Errors
    /// [`NexusError`].
    pub fn open_guest(
        core: &CoreHandle,
        id: UnitId,
        port: NexusPort,
        ports: Vec<PortFacts>,
        peers: Weak<dyn Peers>,
    ) -> Result<Rc<Self>, NexusError> {
        let unit = find(core, id).ok_or(NexusError::NoSuchUnit)?;
        let own = PortFacts {
            relative_port: port.target_port,
            target_name: String::new(),
            portal_group_tag: 0,
        };
        let all = unit.with_state(|state| {
            let here = UnitPorts {
                all: ports,
                own: own.clone(),
            };
            state.groups.ports(here).all
        });
        Self::open_with(&unit, (port, UnitPorts { own, all }), (false, true), peers)
    }

    /// Its commands of this kind go to the owner.
    pub(crate) fn forwards(&self, state: &UnitState, row: &Opcode, command: &Command) -> bool {
        !self.is_guest() && state.is_forwarded() && !is_of_this_path(row, command)
    }

    /// Hosts of the unit are served by this node.
    #[must_use]
    pub fn is_served_here(&self) -> bool {
        self.unit().with_state(UnitState::is_served)
    }

    /// Has the owner do what concerns all of the unit; `None`, and where it ends with `false`: this
    /// node is to do it.
    pub(crate) fn forward_reset(&self, what: ForwardedReset) -> Option<LocalFuture<bool>> {
        let unit = Rc::clone(self.unit());
        if self.is_guest() || !unit.with_state(UnitState::is_forwarded) {
            return None;
        }
        let forwarder = unit.shared().forwarder()?;
        self.was_forwarded();
        let port = self.port().clone();
        let mut done = forwarder.reset(unit.core(), &port, what);
        Some(Box::pin(async move {
            // Nobody may say that it was done where that is not known: it is asked for again,
            // until the initiator gives up and its session ends.
            while !done.await {
                let core = unit.core();
                core.sleep_until(core.now().after(ASK_AGAIN)).await;
                if unit.with_state(UnitState::is_served) {
                    return false;
                }
                done = forwarder.reset(core, &port, what);
            }
            true
        }))
    }

    /// What was forwarded is over as well: each command was answered by the owner, or the owner
    /// says that it does no more of this nexus. It is seen to its end, whether anybody waits or
    /// not.
    pub(crate) fn close_at_owner(
        self: &Rc<Self>,
        how: Closing,
        aborted: LocalFuture<()>,
    ) -> LocalFuture<()> {
        let unit = Rc::clone(self.unit());
        let forwarder = unit.shared().forwarder();
        let forwarder = forwarder.filter(|_| self.has_forwarded() && !self.is_guest());
        let Some(forwarder) = forwarder else {
            return aborted;
        };
        let (port, core) = (self.port().clone(), Rc::clone(unit.core()));
        let (done, closed) = oneshot::channel();
        let here = Rc::clone(&core);
        let myself = Rc::clone(self);
        core.spawn(Box::pin(async move {
            // What comes behind the end of a nexus over there would make it anew.
            aborted.await;
            let ended = forwarder.close(&here, &port, how != Closing::LoggedOut);
            if myself.has_lost() {
                ended.await;
            }
            let _gone = done.send(());
        }));
        Box::pin(async move {
            let closed = async { closed.await.unwrap_or(()) };
            if how == Closing::Withdrawn {
                // The session goes on, and whoever took the unit away waits for no other node.
                in_time(&core, WITHDRAWN_WITHIN, closed).await;
            } else {
                closed.await;
            }
        })
    }
}

impl LogicalUnit {
    /// Other nodes serve this unit's hosts at times: this is the way there.
    pub fn set_forwarder(&self, forwarder: Arc<dyn Forwarder>) {
        self.replace_forwarder(forwarder);
    }
}

impl Task {
    /// Has the owner do the command.
    pub(crate) async fn forward(&self, what: &ToForward, data: Buf) -> Outcome {
        if let Err(refusal) = self.may_be_forwarded().await {
            return self.outcome(Err(refusal));
        }
        let unit = self.unit();
        let Some(forwarder) = unit.shared().forwarder() else {
            return self.outcome(Err(Refusal::Status(Status::Busy)));
        };
        let nexus = &self.nexus;
        nexus.was_forwarded();
        let has_effect = !has_no_effect(&self.command);
        self.control.enter(Stage::InBackend { writes: has_effect });
        self.control.stopwatch().is_handed_down(unit.core());
        let command = ForwardedCommand {
            from: nexus.port().clone(),
            read_only: nexus.is_read_only(),
            attribute: what.attribute,
            cdb: what.cdb.clone(),
            announced: what.announced,
            data,
        };
        let Forwarding { mut ended, abort } = forwarder.begin(unit.core(), command);
        let mut abort = Some(abort);
        let end = poll_fn(|cx| {
            if self.control.aborted().is_some()
                && let Some(abort) = abort.take()
            {
                abort();
            }
            unit.changed().register(cx.waker());
            ended.as_mut().poll(cx)
        });
        let outcome = self.forwarded_outcome(end.await, has_effect);
        self.control.enter(Stage::Waiting);
        outcome
    }

    /// Waits for room under the unit's limit, as long as it is not aborted. Whoever forwards it has
    /// counted it already.
    pub async fn waits_in_turn(&self, bytes: u64) {
        if self.take_room(bytes, 0, None) == Room::Taken {
            return;
        }
        let waits = self.waits_for_room(bytes);
        poll_fn(|cx| {
            loop {
                if self.control.aborted().is_some()
                    || self.take_room(bytes, 0, Some(&waits)) == Room::Taken
                {
                    return Poll::Ready(());
                }
                waits.stays(bytes);
                self.unit().changed().register(cx.waker());
                if waits.poll(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        })
        .await;
    }

    /// Its turn among the commands of this node has come.
    async fn may_be_forwarded(&self) -> Result<(), Refusal> {
        self.wait_for_order().await?;
        self.admit(None).await
    }

    fn forwarded_outcome(&self, end: ForwardEnd, has_effect: bool) -> Outcome {
        match end {
            ForwardEnd::Lost if has_effect => {
                self.control.lose();
                self.nexus.loses();
                Outcome::Disconnect
            }
            ForwardEnd::Disconnect => Outcome::Disconnect,
            ForwardEnd::Lost | ForwardEnd::NotBegun => {
                self.outcome(Err(Refusal::Status(Status::Busy)))
            }
            ForwardEnd::Silent => self.outcome(Err(Refusal::Aborted)),
            ForwardEnd::Respond {
                status,
                sense,
                data_in,
            } => match self.control.aborted() {
                // The owner had it before the right to write was taken away.
                Some(AbortedBy::ReadOnly)
                    if !self.control.is_answered() && status != Status::TaskAborted =>
                {
                    self.responds(status, sense, data_in)
                }
                Some(by) => self.outcome_of_abort(by),
                None => self.responds(status, sense, data_in),
            },
        }
    }

    fn responds(&self, status: Status, sense: Option<Buf>, data_in: Buf) -> Outcome {
        if status != Status::Good {
            self.unit().statuses().count(status, None);
        }
        Outcome::Respond(Response {
            status,
            sense,
            data_in,
            latency_trace: self.latency_trace(),
        })
    }
}
