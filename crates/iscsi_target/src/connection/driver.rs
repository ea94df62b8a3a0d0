//! The loop of a connection.

use super::alarm::Alarm;
use super::departure::Departure;
use super::ending::{End, Ending};
use super::incoming::Incoming;
use super::log_limit::LogLimit;
use super::outgoing::Outgoing;
use super::phase::{FullFeature, Kind, Login, Normal, Phase};
use crate::ended::EndedSession;
use crate::export::Export;
use crate::login::ExportPolicy;
use crate::login_places::LoginPermit;
use crate::session::{EndReason, Order};
use crate::shared::Shared;
use env::{CoreHandle, LocalFuture, Stream};
use futures_util::Stream as _;
use futures_util::stream::FuturesUnordered;
use iscsi::target_side::{
    LoginRefusal, LogoutAnswer, TargetConfig, TargetConnection, TargetEvent, TaskManagementAnswer,
};
use iscsi::{CloseReason, Itt, LoginStatus, Tsih};
use logical_unit::Closing;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Turns of the loop before others on this core get theirs.
const TURNS_MAX: usize = 64;

/// What a connection does before others on this core get their turn: a command, or 32 KiB that come
/// or go, counts 1. As many as a usual depth, and not much longer than a switch to another thread
/// takes.
const BUDGET: usize = 64;

/// Bytes that count as much as a command.
pub(super) const BYTES_PER_COMMAND: usize = 32 << 10;

/// PDUs that a connection hands in before others on this core get their turn, whatever they are: a
/// receive may bring thousands of pings. More than any budget of data comes in, where a segment has
/// its usual size.
const PDUS_MAX: u64 = 4 * BUDGET as u64;

/// Replies beyond which they are sent before the turn is over: the host works on them while others
/// are made.
const SEND_EARLY_BYTES: usize = 32 << 10;

/// How long a peer may take to read the last PDU.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(1);

/// Something that the connection waits for, apart from its commands.
pub(super) enum Finished {
    /// The session was entered, or refused.
    Claimed(Result<Tsih, LoginRefusal>),
    /// A task management function is done.
    Function {
        itt: Itt,
        answer: TaskManagementAnswer,
    },
    /// Nothing of another session of the initiator is carried out any more.
    Fenced { itt: Itt, fenced: bool },
    /// It is known how many more sessions there may be.
    Room { itt: Itt, sessions: Option<u32> },
    /// Everything of the session is over, a logout can be answered.
    LoggedOut { itt: Itt },
}

/// What it has done in this turn.
#[derive(Default)]
pub(super) struct TurnWork {
    /// In units of a command.
    pub(super) spent: usize,
    /// PDUs that it has handed in.
    pub(super) handed_in: u64,
}

/// A connection.
pub(super) struct Driver {
    pub(super) core: CoreHandle,
    pub(super) shared: Arc<Shared>,
    pub(super) export: Arc<Export>,
    pub(super) stream: Rc<dyn Stream>,
    pub(super) portal_group_tag: u16,
    pub(super) machine: TargetConnection,
    pub(super) phase: Phase,
    pub(super) ending: Ending,
    pub(super) pending: FuturesUnordered<LocalFuture<Finished>>,
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    pub(super) turn: TurnWork,
    alarm: Alarm,
    /// The log's line on rejected PDUs.
    rejects: LogLimit,
}

impl Driver {
    pub(super) fn new(
        core: CoreHandle,
        shared: Arc<Shared>,
        stream: Rc<dyn Stream>,
        portal_group_tag: u16,
        permit: LoginPermit,
    ) -> Self {
        let export = shared.export();
        let settings = &export.settings;
        let config = TargetConfig {
            login_timeout: settings.login_timeout,
            ping_after: Some(settings.ping_after),
            ping_timeout: settings.ping_timeout,
            command_depth: settings.command_depth,
            write_bytes_max: settings.write_bytes_max,
            ..TargetConfig::default()
        };
        let policy = ExportPolicy::new(
            &core,
            Arc::clone(&shared),
            Arc::clone(&export),
            portal_group_tag,
        );
        let machine = TargetConnection::new(core.now(), &config, Box::new(policy));
        let mut driver = Self::with(core, shared, stream, portal_group_tag, machine, export);
        driver.phase = Phase::Login(Login {
            permit: Some(permit),
            entering: None,
        });
        driver
    }

    /// One that has nothing in progress.
    pub(super) fn with(
        core: CoreHandle,
        shared: Arc<Shared>,
        stream: Rc<dyn Stream>,
        portal_group_tag: u16,
        machine: TargetConnection,
        export: Arc<Export>,
    ) -> Self {
        let incoming = Incoming::new(&core, export.settings.coalesce);
        Self {
            core,
            shared,
            export,
            stream,
            portal_group_tag,
            machine,
            phase: Phase::default(),
            ending: Ending::default(),
            pending: FuturesUnordered::new(),
            incoming,
            outgoing: Outgoing::default(),
            turn: TurnWork::default(),
            alarm: Alarm::default(),
            rejects: LogLimit::default(),
        }
    }

    /// Runs until the connection is over, or leaves for another core.
    pub(super) async fn run(&mut self) -> Option<Departure> {
        poll_fn(|cx| self.turn(cx)).await
    }

    pub(super) fn end_with(&mut self, end: End) {
        self.ending.end_with(end);
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<Option<Departure>> {
        // What begins or ends in this turn is timed by `recent`.
        self.core.now();
        self.turn = TurnWork::default();
        for _ in 0..TURNS_MAX {
            let mut progress = self.take_orders(cx);
            progress |= self.poll_place(cx);
            progress |= self.poll_running(cx);
            progress |= self.poll_released(cx);
            progress |= self.poll_pending(cx);
            progress |= self.poll_receive(cx);
            progress |= self.poll_timer(cx);
            self.take_events();
            progress |= self.poll_send(cx);
            self.poll_deadline(cx);
            self.report_counts();
            if self.ending.is_over() {
                return Poll::Ready(None);
            }
            if let Poll::Ready(departure) = self.poll_departure(cx) {
                return Poll::Ready(Some(departure));
            }
            if !progress {
                self.say_when_to_wake(cx);
                return Poll::Pending;
            }
            if self.has_had_its_turn() {
                break;
            }
        }
        self.core.pause(cx);
        Poll::Pending
    }

    fn report_counts(&mut self) {
        if let Phase::FullFeature(full) = &self.phase {
            let (session, awaited) = (&full.session, &full.awaited);
            let since = std::mem::take(&mut self.incoming.since);
            let all = session.counters.received.get();
            session.counters.received.set(all.and(since));
            let bytes = full.memory.share.bytes();
            session.counters.bytes_in_flight.set(bytes as u64);
            awaited.holds(bytes.saturating_add(self.machine.transmit().bytes()));
            awaited.parks(self.machine.parked_bytes());
        }
    }

    pub(super) fn has_had_its_turn(&self) -> bool {
        self.turn.spent >= BUDGET || self.turn.handed_in >= PDUS_MAX
    }

    fn take_orders(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(session) = self.phase.session().cloned() else {
            return false;
        };
        let mut progress = false;
        while let Some(order) = session.poll_order(cx) {
            progress = true;
            match order {
                Order::End(reason) => self.end_with(End::Ordered(reason)),
                Order::Adopt(export) => self.adopt(export),
                Order::RequestLogout { within } => self.request_logout(within),
                Order::Move { to } => self.go_to(to),
            }
        }
        progress
    }

    fn poll_running(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while !self.has_had_its_turn()
            && let Some(full) = self.phase.full_feature_mut()
            && let Poll::Ready(Some((itt, run, outcome))) =
                Pin::new(&mut full.commands.running).poll_next(cx)
        {
            progress = true;
            self.turn.spent += 1;
            self.run_ended(itt, run, outcome);
            if self.machine.transmit().bytes() >= SEND_EARLY_BYTES {
                self.poll_send(cx);
            }
        }
        progress
    }

    fn poll_released(&mut self, cx: &mut Context<'_>) -> bool {
        let units = self.phase.units();
        let released = units.is_some_and(|units| units.poll_released(cx));
        if released {
            self.forget_released();
        }
        released
    }

    fn poll_pending(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while let Poll::Ready(Some(finished)) = Pin::new(&mut self.pending).poll_next(cx) {
            progress = true;
            match finished {
                Finished::Claimed(claimed) => self.claimed(claimed),
                Finished::Function { itt, answer } => {
                    // What others took away of the tasks that the function names is answered before
                    // it.
                    self.forget_released();
                    self.forget_aborted();
                    self.machine.task_management_response(itt, answer);
                }
                Finished::Fenced { itt, fenced } => self.machine.fence_response(itt, fenced),
                Finished::Room { itt, sessions } => self.answer_ports(itt, sessions),
                Finished::LoggedOut { itt } => {
                    self.machine.logout_response(itt, LogoutAnswer::Closed);
                }
            }
        }
        progress | self.poll_memory(cx)
    }

    /// A new login may need the place of one that is not done, or of a discovery session.
    fn poll_place(&mut self, cx: &Context<'_>) -> bool {
        let permit = self.phase.permit();
        if permit.is_none_or(|permit| permit.poll_given_away(cx).is_pending()) {
            return false;
        }
        drop(self.phase.take_permit());
        if self.phase.session().is_some() {
            self.end_with(End::PlaceNeeded);
        } else {
            let reason = "its place was needed for a newer connection: it was the one that had waited longest without progress";
            self.machine
                .refuse_login(LoginRefusal::new(LoginStatus::OutOfResources, reason));
        }
        true
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let full = self.phase.full_feature();
        let dues = [
            self.machine.next_tick(),
            full.and_then(|full| full.memory.data_due),
            self.outgoing.reading.due(),
        ];
        let next = dues.into_iter().flatten().min();
        if !self.alarm.rings(&self.core, cx, next) {
            return false;
        }
        let now = self.core.recent();
        if self.machine.next_tick().is_some_and(|at| at <= now) {
            self.machine.tick(now);
        }
        if self.outgoing.reading.is_over(now, self.silence_max()) {
            self.end_with(End::NotReading);
        }
        self.end_late_writes(now);
        true
    }

    pub(super) fn take_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                TargetEvent::LoginReady(outcome) => self.login_ready(outcome),
                TargetEvent::LoginRefused {
                    status,
                    reason,
                    initiator_name,
                    target_name,
                } => {
                    self.login_refused(&status.to_string(), reason, initiator_name, target_name);
                }
                TargetEvent::Command(command) => {
                    let bytes = command.expected_data_transfer_length as usize;
                    let reads = if command.reads { bytes } else { 0 };
                    self.turn.spent += 1 + reads / BYTES_PER_COMMAND;
                    self.command(&command);
                }
                TargetEvent::DataOut { itt, data } => self.data_out(itt, data),
                TargetEvent::DataFault { itt, fault } => self.data_fault(itt, fault),
                TargetEvent::TaskManagement(request) => self.task_management(&request),
                TargetEvent::SendTargets { itt, scope } => self.send_targets(itt, &scope),
                TargetEvent::Fence { itt, isid, tsih } => self.fence(itt, isid, tsih),
                TargetEvent::Ports { itt } => self.ports(itt),
                TargetEvent::Logout { itt, reason: _ } => self.logout(itt),
                TargetEvent::Rejected { reason, violation } => {
                    self.shared.digest_errors().count(violation.kind);
                    if let Some(before) = self.rejects.now(self.core.recent()) {
                        tracing::warn!(peer = %self.stream.peer(), ?reason, ?violation, before, "a PDU was rejected");
                    }
                }
                TargetEvent::ParametersChanged => self.parameters_changed(),
                TargetEvent::Closed(reason) => self.machine_has_closed(reason),
            }
        }
    }

    /// What is queued (a login refusal, a reject, a logout response) still goes out, but a peer
    /// that does not read it is not waited for.
    fn machine_has_closed(&mut self, reason: CloseReason) {
        let latest = self.core.now().after(CLOSING_TIME_MAX);
        let deadline = self.core.sleep_until(latest);
        if self.machine.transmit().is_empty() {
            self.end_with(End::Machine(reason));
        } else {
            self.ending.close(reason, deadline);
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) {
        let normal = self.phase.normal_mut();
        if let Some(normal) = normal
            && let Some(leave) = &mut normal.leave
            && leave.as_mut().poll(cx).is_ready()
        {
            normal.leave = None;
            self.end_with(End::Ordered(EndReason::Maintenance));
        }
        self.ending.poll_deadline(cx);
    }

    /// Ends everything that the connection has begun. Runs after the loop.
    pub(super) async fn finish(mut self) {
        self.stream.shutdown();
        drop(self.phase.take_entering());
        if let Some(full) = self.phase.full_feature_mut() {
            drop(std::mem::take(&mut full.commands.waiting));
            // The futures of running tasks know when the backend has let go: they are driven to
            // their end beside the nexuses' closing, which waits for them, or quarantines what they
            // hold.
            let running = std::mem::take(&mut full.commands.running);
            self.core.spawn(Box::pin(drain(running)));
        }
        if let Some(units) = self.phase.units().cloned() {
            units.close_all(Closing::Lost).await;
        }
    }

    fn say_goodbye(&mut self) {
        let Phase::FullFeature(full) = std::mem::take(&mut self.phase) else {
            return;
        };
        // What it had begun is dropped last.
        let FullFeature { session, kind, .. } = full;
        if let Kind::Normal(Normal { units, claim, .. }) = kind {
            drop((units, claim));
        }
        let reason = self.ending.reason();
        let info = session.info.borrow();
        let ended = EndedSession::new(&info, reason.clone());
        self.shared.ended().add(ended);
        session.has_ended(&self.core);
        tracing::info!(
            session = session.number.0,
            initiator = info.initiator,
            target_name = info.target.as_deref().unwrap_or("-"),
            reason,
            "session ended"
        );
    }
}

/// The directory must never keep a session that nobody serves: a later login of the same initiator
/// port would wait for it. So it is taken out whatever ends the connection, a fault of our own
/// included.
impl Drop for Driver {
    fn drop(&mut self) {
        self.say_goodbye();
    }
}

/// Drives every future to its end.
async fn drain<F: Future>(mut futures: FuturesUnordered<F>) {
    while poll_fn(|cx| Pin::new(&mut futures).poll_next(cx))
        .await
        .is_some()
    {}
}
