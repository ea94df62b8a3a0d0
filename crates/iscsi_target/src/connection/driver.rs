//! The loop of a connection.

use super::alarm::Alarm;
use super::alone::{self, Alone};
use super::answered::Answered;
use super::awaited::{Awaited, Granted};
use super::coalescing::{Coalescing, Look as NextLook};
use super::memory::Share;
use super::reading::Reading;
use super::receive::Receive;
use super::said::Said;
use super::travel::{Departure, Going};
use super::units::SessionUnits;
use crate::directory::Claim;
use crate::export::{Export, View};
use crate::login::ExportPolicy;
use crate::login_places::LoginPermit;
use crate::server::Shared;
use crate::session::{EndReason, EnteringGuard, Order, Received, Session};
use env::{CoreHandle, LocalFuture, Stream, Woken};
use futures_util::Stream as _;
use futures_util::stream::FuturesUnordered;
use iscsi::CloseReason;
use iscsi::Tsih;
use iscsi::target_side::{LoginRefusal, TargetEvent, TaskManagementAnswer};
use iscsi::target_side::{LogoutAnswer, TargetConfig, TargetConnection};
use iscsi::{Itt, LoginStatus, Want};
use logical_unit::{Closing, Outcome, Task, TaskWatch};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use units::Now;

/// Replies that wait to be sent beyond which nothing more is received: a host that does not read
/// cannot fill our memory.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// Turns of the loop before others on this core get theirs.
const TURNS_MAX: usize = 64;

/// What a connection does before others on this core get their turn: a command, or 32 KiB that come
/// or go, counts 1. As many as a usual depth, and not much longer than a switch to another thread
/// takes.
const BUDGET: usize = 64;

/// Bytes that count as much as a command.
const BYTES_PER_COMMAND: usize = 32 << 10;

/// PDUs that a connection hands in before others on this core get their turn, whatever they are: a
/// receive may bring thousands of pings. More than any budget of data comes in, where a segment has
/// its usual size.
const PDUS_MAX: u64 = 4 * BUDGET as u64;

/// Replies beyond which they are sent before the turn is over: the host works on them while others
/// are made.
const SEND_EARLY_BYTES: usize = 32 << 10;

/// How long a peer may take to read the last PDU.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(1);

/// Pieces of one vectored send (IOV_MAX).
const PIECES_MAX: usize = 1024;

/// Something that the connection waits for beside its commands.
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

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    PeerClosed,
    Socket(std::io::Error),
    Machine(CloseReason),
    Ordered(EndReason),
    RightLost,
    /// Its place was needed for a login.
    PlaceNeeded,
    /// It takes nothing of what is sent to it.
    NotReading,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerClosed => write!(f, "the initiator closed the connection"),
            Self::Socket(error) => write!(f, "the connection failed: {error}"),
            Self::Machine(CloseReason::LoggedOut) => write!(f, "logout"),
            Self::Machine(CloseReason::LoginFailed) => write!(f, "the login failed"),
            Self::Machine(CloseReason::KeepaliveTimedOut) => {
                write!(f, "the initiator did not answer a ping")
            }
            Self::Machine(CloseReason::Violation(violation)) => {
                write!(f, "the initiator broke the protocol: {violation:?}")
            }
            Self::Ordered(EndReason::Dropped) => write!(f, "dropped by an administrator"),
            Self::Ordered(EndReason::Reinstated) => {
                write!(f, "the same initiator port logged in again")
            }
            Self::Ordered(EndReason::Fenced) => {
                write!(f, "the initiator asked for its end in another session")
            }
            Self::Ordered(EndReason::OtherTarget) => {
                write!(f, "its target was deleted, and another one has its name")
            }
            Self::Ordered(EndReason::OtherProof) => {
                write!(
                    f,
                    "it was shut out, and its host has another CHAP user or secret now"
                )
            }
            Self::Ordered(EndReason::Maintenance) => {
                write!(f, "its target is in maintenance and it did not log out")
            }
            Self::Ordered(EndReason::Stopping) => write!(f, "the daemon stops"),
            Self::RightLost => write!(f, "the right to serve was lost"),
            Self::PlaceNeeded => write!(f, "a new login needed its place"),
            Self::NotReading => write!(f, "the initiator did not read what was sent to it"),
        }
    }
}

/// A command that has not begun.
pub(super) struct Waiting {
    pub(super) task: Task,
    /// The bytes that it would have of the host's data, for the residual.
    pub(super) wanted: u64,
    /// Its memory, which the host is to fill.
    pub(super) granted: Option<Granted>,
}

/// A command that runs.
pub(super) struct Running {
    pub(super) run: u64,
    /// Tells whether it was aborted.
    pub(super) watch: TaskWatch,
    pub(super) wanted: u64,
}

/// A connection.
pub(super) struct Driver {
    pub(super) core: CoreHandle,
    pub(super) shared: Arc<Shared>,
    pub(super) stream: Rc<dyn Stream>,
    pub(super) portal_group_tag: u16,
    pub(super) machine: TargetConnection,
    pub(super) export: Arc<Export>,
    pub(super) permit: Option<LoginPermit>,
    /// Set when the login is complete.
    pub(super) session: Option<Rc<Session>>,
    /// The number of the session, from the end of the negotiation on.
    pub(super) number: Option<crate::session::SessionNumber>,
    /// The session's place in the directory.
    pub(super) claim: Option<Claim>,
    /// The login that waits to be entered.
    pub(super) pending_login: Option<Box<iscsi::target_side::LoginOutcome>>,
    /// What another login of the same port would find of it.
    pub(super) entering: Option<EnteringGuard>,
    /// When a session whose target is in maintenance is ended.
    pub(super) leave: Option<LocalFuture<()>>,
    /// The host that the initiator is, and what it sees, until the session begins.
    pub(super) view: Option<View>,
    /// What a normal session sees.
    pub(super) units: Option<Rc<SessionUnits>>,
    /// Commands that have not begun: their data is still to come, or memory for it.
    pub(super) waiting_for_data: BTreeMap<Itt, Waiting>,
    /// Its part of what hosts may announce; from the login on.
    pub(super) awaited: Option<Rc<Awaited>>,
    /// No data of a write is late before.
    pub(super) data_due: Option<Now>,
    /// Time before it does not count: the process was stopped.
    pub(super) on_time_since: Now,
    /// Waits until there may be memory again.
    pub(super) look: Option<LocalFuture<()>>,
    /// The session's share of memory; of the commands above, and of reads, some wait for room in
    /// it.
    pub(super) share: Share,
    pub(super) running: FuturesUnordered<LocalFuture<(Itt, u64, Outcome)>>,
    /// Of those: the run that an ITT stands for now. An initiator may use the ITT of an aborted
    /// task again.
    pub(super) watched: BTreeMap<Itt, Running>,
    pub(super) runs: u64,
    /// Commands that other hosts' functions ended without an answer: an ABORT TASK of one finds its
    /// wish done.
    pub(super) taken_away: BTreeSet<Itt>,
    pub(super) beside: FuturesUnordered<LocalFuture<Finished>>,
    /// When the first byte was there of what is handed to the machine, and when all of it.
    pub(super) received: (Now, Now),
    /// Commands whose answers are on their way to the socket.
    pub(super) answered: Answered,
    pub(super) receive: Receive,
    /// When it looks at what has come.
    coalescing: Coalescing,
    /// What the session was not told of yet.
    pub(super) received_since: Received,
    /// PDUs that began in what was received last.
    begun: u64,
    alone: Alone,
    /// It was asked to go to another core.
    pub(super) going: Option<Going>,
    /// It leaves when the loop has ended.
    pub(super) departure: Option<Departure>,
    /// What it has done in this turn.
    spent: usize,
    /// PDUs that it has handed in in this turn.
    handed_in: u64,
    alarm: Alarm,
    /// Whether the peer takes what waits to be sent.
    reading: Reading,
    /// The log's line on rejected PDUs.
    rejects: Said,
    end: Option<End>,
    /// The machine is done; what it has queued is still to be sent, until the deadline.
    closing: Option<CloseReason>,
    deadline: Option<LocalFuture<()>>,
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
        driver.permit = Some(permit);
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
        let receive = Receive::new(&core);
        let alone = Alone::new(&core);
        let coalescing = Coalescing::new(core.recent(), export.settings.coalesce);
        Self {
            core,
            shared,
            stream,
            portal_group_tag,
            machine,
            export,
            permit: None,
            session: None,
            number: None,
            claim: None,
            pending_login: None,
            entering: None,
            leave: None,
            view: None,
            units: None,
            waiting_for_data: BTreeMap::new(),
            awaited: None,
            data_due: None,
            on_time_since: Now::ZERO,
            look: None,
            share: Share::default(),
            running: FuturesUnordered::new(),
            watched: BTreeMap::new(),
            runs: 0,
            taken_away: BTreeSet::new(),
            beside: FuturesUnordered::new(),
            received: (Now::ZERO, Now::ZERO),
            answered: Answered::default(),
            receive,
            coalescing,
            received_since: Received::default(),
            begun: 0,
            alone,
            going: None,
            departure: None,
            spent: 0,
            handed_in: 0,
            alarm: Alarm::default(),
            reading: Reading::default(),
            rejects: Said::default(),
            end: None,
            closing: None,
            deadline: None,
        }
    }

    /// Runs until the connection is over.
    pub(super) async fn run(&mut self) {
        poll_fn(|cx| self.turn(cx)).await;
    }

    pub(super) fn end_with(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
        }
    }

    /// Nothing begins any more.
    pub(super) fn is_ending(&self) -> bool {
        self.end.is_some() || self.closing.is_some()
    }

    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // What begins or ends in this turn is timed by `recent`.
        self.core.now();
        (self.spent, self.handed_in) = (0, 0);
        for _ in 0..TURNS_MAX {
            let mut progress = self.take_orders(cx);
            progress |= self.poll_place(cx);
            progress |= self.poll_running(cx);
            progress |= self.poll_released(cx);
            progress |= self.poll_beside(cx);
            progress |= self.poll_receive(cx);
            progress |= self.poll_timer(cx);
            self.take_events();
            progress |= self.poll_send(cx);
            self.poll_deadline(cx);
            self.tell_counts();
            if self.end.is_some() || self.poll_departure(cx).is_ready() {
                return Poll::Ready(());
            }
            if !progress {
                self.say_when_to_look(cx);
                return Poll::Pending;
            }
            if self.has_had_its_turn() {
                break;
            }
        }
        self.core.pause(cx);
        Poll::Pending
    }

    fn tell_counts(&mut self) {
        if let Some(session) = &self.session {
            let since = std::mem::take(&mut self.received_since);
            let all = session.counters.received.get();
            session.counters.received.set(all.and(since));
            let bytes = self.share.bytes();
            session.counters.bytes_in_flight.set(bytes as u64);
            if let Some(awaited) = &self.awaited {
                awaited.holds(bytes.saturating_add(self.machine.transmit().bytes()));
                awaited.parks(self.machine.parked_bytes());
            }
        }
    }

    fn has_had_its_turn(&self) -> bool {
        self.spent >= BUDGET || self.handed_in >= PDUS_MAX
    }

    fn take_orders(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(session) = self.session.clone() else {
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
            && let Poll::Ready(Some((itt, run, outcome))) =
                Pin::new(&mut self.running).poll_next(cx)
        {
            progress = true;
            self.spent += 1;
            self.run_ended(itt, run, outcome);
            if self.machine.transmit().bytes() >= SEND_EARLY_BYTES {
                self.poll_send(cx);
            }
        }
        progress
    }

    fn poll_released(&mut self, cx: &mut Context<'_>) -> bool {
        let released = self
            .units
            .as_ref()
            .is_some_and(|units| units.poll_released(cx));
        if released {
            self.forget_released();
        }
        released
    }

    fn poll_beside(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while let Poll::Ready(Some(finished)) = Pin::new(&mut self.beside).poll_next(cx) {
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
                Finished::Room { itt, sessions } => self.tell_ports(itt, sessions),
                Finished::LoggedOut { itt } => {
                    self.machine.logout_response(itt, LogoutAnswer::Closed);
                }
            }
        }
        progress | self.poll_look(cx)
    }

    /// A new login may need the place of one that is not done, or of a discovery session.
    fn poll_place(&mut self, cx: &Context<'_>) -> bool {
        let permit = self.permit.as_ref();
        if permit.is_none_or(|permit| permit.poll_given_away(cx).is_pending()) {
            return false;
        }
        self.permit = None;
        if self.session.is_some() {
            self.end_with(End::PlaceNeeded);
        } else {
            let reason = "its place was needed for a newer connection: it was the one that had waited longest without progress";
            self.machine
                .refuse_login(LoginRefusal::new(LoginStatus::OutOfResources, reason));
        }
        true
    }

    /// So many replies wait to be sent that nothing more is worked on.
    fn is_full(&self) -> bool {
        self.machine.transmit().bytes() >= WAITING_BYTES_MAX
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> bool {
        let want = self.machine.want();
        if self.is_full() || want == Want::Nothing || self.is_deaf() {
            return false;
        }
        if let Some(awaited) = &self.awaited {
            let memory = self.core.pool().limit_bytes();
            self.machine.allow_parked(awaited.may_park(memory));
        }
        if self.receive.unpack() {
            self.hand_in(cx);
            return true;
        }
        if Receive::is_direct(want) {
            let received = self.stream.poll_recv(cx, self.machine.data_chunk());
            return self.received(received, |driver, n| {
                driver.core.now();
                driver.machine.data_filled(n);
            });
        }
        let stream = &self.stream;
        let received = self
            .receive
            .fill(want, |scratch| stream.poll_recv(cx, scratch));
        self.received(received, |driver, n| {
            driver.receive.filled(n);
            driver.begun = 0;
            driver.hand_in(cx);
            let (now, begun) = (driver.core.recent(), driver.begun);
            let waited = driver.coalescing.came(now, begun, n as u64);
            driver.received_since.receives += 1;
            driver.received_since.waited += u64::from(waited);
        })
    }

    /// The connection has nothing to do: it is woken by each PDU that comes, or once for several.
    fn say_when_to_look(&mut self, cx: &mut Context<'_>) {
        let at_once = !self.running.is_empty() || !self.beside.is_empty() || self.is_deaf();
        if at_once || Receive::is_direct(self.machine.want()) {
            // What runs ends when it ends, and its answer is worth more than a turn that is saved.
            self.coalescing.at_each();
            self.is_woken(cx, None);
            return;
        }
        let stream = &self.stream;
        let way = || stream.measured().map(|measured| measured.round_trip_min_us);
        let owed = |pdus| self.machine.owed().bytes(pdus);
        match self.coalescing.rest(self.core.recent(), owed, way) {
            NextLook::AsSaid => {}
            NextLook::AtEach => self.is_woken(cx, None),
            NextLook::Late { bytes, within } => {
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                self.is_woken(cx, Some((bytes, within)));
            }
        }
    }

    fn is_woken(&mut self, cx: &mut Context<'_>, wait: Option<(u32, Duration)>) {
        match self.stream.coalesce(cx, wait) {
            Ok(Woken::AtEach) if wait.is_some() => self.coalescing.stop(),
            Ok(_) => {}
            Err(error) => {
                self.end_with(End::Socket(error));
                // The loop was about to rest: it ends instead.
                cx.waker().wake_by_ref();
            }
        }
    }

    fn received(
        &mut self,
        received: Poll<std::io::Result<usize>>,
        hand_in: impl FnOnce(&mut Self, usize),
    ) -> bool {
        match received {
            Poll::Pending => return false,
            Poll::Ready(Ok(0)) => self.end_with(End::PeerClosed),
            Poll::Ready(Ok(n)) => {
                hand_in(self, n);
                // What is here was worked on: to put it aside for the next turn would cost more.
                self.spent += n / BYTES_PER_COMMAND;
            }
            Poll::Ready(Err(error)) => self.end_with(End::Socket(error)),
        }
        true
    }

    fn hand_in(&mut self, cx: &mut Context<'_>) {
        let now = self.core.now();
        // A host that was seen to have other work needs no early replies.
        let early = self.alone.batch() && !self.coalescing.is_at_work();
        while !self.receive.is_empty() {
            if self.has_had_its_turn() || self.is_full() {
                self.receive.pack();
                return;
            }
            self.received = (self.receive.first_byte(now), now);
            let begins = u64::from(matches!(self.machine.want(), Want::Header { .. }));
            self.begun += begins;
            self.handed_in += begins;
            self.received_since.pdus += begins;
            let handed = self.receive.step(&mut self.machine, now);
            self.take_events();
            if early && self.machine.transmit().pdu_count() >= alone::REPLIES {
                self.poll_send(cx);
            }
            if let Err(violation) = handed {
                let damaged = self.shared.digest_errors().count(violation.kind);
                if damaged {
                    tracing::warn!(peer = %self.stream.peer(), %violation, "a header was damaged on its way: the connection is closed");
                } else {
                    tracing::debug!(peer = %self.stream.peer(), ?violation, "the initiator broke the protocol");
                }
                self.receive.forget();
            }
        }
    }

    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let dues = [self.machine.next_tick(), self.data_due, self.reading.due()];
        let next = dues.into_iter().flatten().min();
        if !self.alarm.rings(&self.core, cx, next) {
            return false;
        }
        let now = self.core.recent();
        if self.machine.next_tick().is_some_and(|at| at <= now) {
            self.machine.tick(now);
        }
        if self.reading.is_over(now, self.silence_max()) {
            self.end_with(End::NotReading);
        }
        self.end_late_writes(now);
        true
    }

    /// How long a peer may read nothing: it is as dead then as one that sends nothing.
    fn silence_max(&self) -> Duration {
        let settings = &self.export.settings;
        settings.ping_after.saturating_add(settings.ping_timeout)
    }

    fn take_events(&mut self) {
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
                    self.spent += 1 + reads / BYTES_PER_COMMAND;
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
                TargetEvent::Closed(reason) => {
                    // What is queued (a login refusal, a reject, a logout response) still goes out,
                    // but a peer that does not read it is not waited for.
                    let latest = self.core.now().after(CLOSING_TIME_MAX);
                    self.deadline = Some(self.core.sleep_until(latest));
                    self.close_reason(reason);
                }
            }
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) {
        let leave = self.leave.as_mut();
        if leave.is_some_and(|leave| leave.as_mut().poll(cx).is_ready()) {
            self.leave = None;
            self.end_with(End::Ordered(EndReason::Maintenance));
        }
        let late = self
            .deadline
            .as_mut()
            .is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready());
        if late && let Some(reason) = self.closing.take() {
            self.end_with(End::Machine(reason));
        }
    }

    fn close_reason(&mut self, reason: CloseReason) {
        if self.machine.transmit().is_empty() {
            self.end_with(End::Machine(reason));
        } else {
            self.closing = Some(reason);
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while !self.machine.transmit().is_empty() {
            let mut pieces: Vec<IoSlice<'_>> = Vec::with_capacity(64);
            pieces.extend(
                self.machine
                    .transmit()
                    .pieces()
                    .take(PIECES_MAX)
                    .map(IoSlice::new),
            );
            match self.stream.poll_send(cx, &pieces) {
                Poll::Pending => {
                    self.reading.waits(self.core.recent(), self.silence_max());
                    break;
                }
                Poll::Ready(Ok(n)) => {
                    drop(pieces);
                    self.machine.sent(n);
                    let (now, time) = (self.core.recent(), self.silence_max());
                    self.reading.took(n, now, time);
                    self.answered.sent(n, &self.core, self.session.as_deref());
                    self.look_for_memory();
                    progress = true;
                }
                Poll::Ready(Err(error)) => {
                    self.end_with(End::Socket(error));
                    return true;
                }
            }
        }
        if self.machine.transmit().is_empty() {
            self.reading.took_all();
            if progress {
                self.has_come_on();
            }
            if let Some(reason) = self.closing.take() {
                self.end_with(End::Machine(reason));
                return true;
            }
        }
        progress
    }

    /// Ends everything that the connection has begun. Runs after the loop.
    pub(super) async fn finish(mut self) {
        self.stream.shutdown();
        drop(self.entering.take());
        drop(std::mem::take(&mut self.waiting_for_data));
        // The futures of running tasks know when the backend has let go: they are driven to their
        // end beside the nexuses' closing, which waits for them, or quarantines what they hold.
        let running = std::mem::take(&mut self.running);
        self.core.spawn(Box::pin(drain(running)));
        if let Some(units) = self.units.take() {
            units.close_all(Closing::Lost).await;
        }
    }

    fn say_goodbye(&mut self) {
        let Some(session) = self.session.take() else {
            return;
        };
        self.claim = None;
        session.has_ended(&self.core);
        let info = session.info.borrow();
        let reason = self
            .end
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default();
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
