//! The task that keeps a host's session alive.

use super::job::{Job, Outcome, Request, Seen, Wire};
use super::{Complaints, SessionConfig, offer};
use env::{CoreHandle, LocalFuture, Stream};
use iscsi::initiator_side::{
    InitiatorCommand, InitiatorConfig, InitiatorConnection, InitiatorEvent,
};
use iscsi::{Isid, Itt, LoginStatus, Lun, Want};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use units::{BufMut, Now};

/// How long a host waits for a command.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long a task management function may take: 2 s, and the slowest network.
const FUNCTION_TIME: Duration = Duration::from_secs(6);
/// Task management functions (RFC 7143 11.5.1 "Function").
const ABORT_TASK: u8 = 1;
const LOGICAL_UNIT_RESET: u8 = 5;
const TARGET_WARM_RESET: u8 = 6;

pub(super) struct Driver {
    core: CoreHandle,
    config: SessionConfig,
    incoming: mpsc::UnboundedReceiver<Request>,
    complaints: Complaints,
    ready: Option<oneshot::Sender<()>>,
    /// Commands whose connection is gone; they end when the next session stands.
    lost: Vec<oneshot::Sender<Outcome>>,
    seen: Rc<Seen>,
    /// Nobody holds the session any more.
    orphan: bool,
}

struct Pending {
    reply: oneshot::Sender<Outcome>,
    lun: Lun,
    since: Now,
    /// The task management function that gives it up.
    function: Option<(Itt, Now)>,
}

/// A task management function on its way.
struct Function {
    reply: oneshot::Sender<Outcome>,
    function: u8,
    lun: Lun,
    since: Now,
}

/// One connection.
struct Session {
    stream: Rc<dyn Stream>,
    machine: InitiatorConnection,
    pending: BTreeMap<Itt, Pending>,
    /// Task management functions that somebody asked for.
    functions: BTreeMap<Itt, Function>,
    logged_in: bool,
    /// A header or trailer that is coming in.
    partial: Vec<u8>,
    timer: Option<(Now, LocalFuture<()>)>,
}

impl Driver {
    pub(super) fn new(
        core: CoreHandle,
        config: SessionConfig,
        incoming: mpsc::UnboundedReceiver<Request>,
        complaints: Complaints,
        seen: Rc<Seen>,
        ready: oneshot::Sender<()>,
    ) -> Self {
        Self {
            core,
            config,
            incoming,
            complaints,
            seen,
            ready: Some(ready),
            lost: Vec::new(),
            orphan: false,
        }
    }

    /// Connects, serves, and connects again, until nobody wants it.
    pub(super) async fn run(mut self) {
        while !self.orphan {
            let connecting = self.core.net().connect(self.config.portal, None).await;
            if let Ok(stream) = connecting {
                let mut session = self.session(stream);
                poll_fn(|cx| self.poll(&mut session, cx)).await;
                let pending = std::mem::take(&mut session.pending);
                self.lost.extend(pending.into_values().map(|it| it.reply));
                let functions = std::mem::take(&mut session.functions);
                self.lost.extend(functions.into_values().map(|it| it.reply));
                if !self.config.reconnects && self.ready.is_none() {
                    break;
                }
            }
            self.refuse_queued();
            let pause = Duration::from_millis(20 + self.config.salt % 180);
            self.core.sleep_until(self.core.now().after(pause)).await;
            self.refuse_queued();
        }
    }

    fn session(&self, stream: Rc<dyn Stream>) -> Session {
        let isid = Isid([0x80, 0, 0, 0, 0, 1]);
        let mut config = InitiatorConfig::new(&self.config.name, Some(&self.config.target), isid);
        let salt = self.config.salt;
        config.offer = offer(salt);
        Session {
            stream,
            machine: InitiatorConnection::new(self.core.now(), &config),
            pending: BTreeMap::new(),
            functions: BTreeMap::new(),
            logged_in: false,
            partial: Vec::new(),
            timer: None,
        }
    }

    /// What was asked while there was no session is not sent later.
    fn refuse_queued(&mut self) {
        loop {
            match self.incoming.try_recv() {
                Ok(request) => self.lost.push(request.reply),
                Err(mpsc::error::TryRecvError::Empty) => return,
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    self.orphan = true;
                    return;
                }
            }
        }
    }

    /// Goes on with a connection; ready when it is over.
    fn poll(&mut self, session: &mut Session, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut moved = self.take_requests(session, cx);
            moved |= match session.receive(self.core.now(), cx) {
                Poll::Ready(Ok(moved)) => moved,
                Poll::Ready(Err(())) => return Poll::Ready(()),
                Poll::Pending => false,
            };
            while let Some(event) = session.machine.poll_event() {
                moved = true;
                if self.event(session, event) {
                    return Poll::Ready(());
                }
            }
            self.read_clock(session);
            moved |= match session.send(cx) {
                Poll::Ready(Ok(())) => true,
                Poll::Ready(Err(())) => return Poll::Ready(()),
                Poll::Pending => false,
            };
            if self.orphan && session.pending.is_empty() && session.functions.is_empty() {
                return Poll::Ready(());
            }
            if !moved && session.arm(&self.core, cx).is_pending() {
                return Poll::Pending;
            }
            session.machine.tick(self.core.now());
        }
    }

    fn take_requests(&mut self, session: &mut Session, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        while session.logged_in && !self.orphan {
            match self.incoming.poll_recv(cx) {
                Poll::Ready(Some(request)) => {
                    moved = true;
                    self.send_request(session, request);
                }
                Poll::Ready(None) => self.orphan = true,
                Poll::Pending => break,
            }
        }
        moved
    }

    fn send_request(&self, session: &mut Session, request: Request) {
        let (since, reply) = (self.core.now(), request.reply);
        match request.job {
            Job::Command(wire) => {
                let Wire {
                    lun,
                    cdb,
                    attribute,
                    data_out,
                    data_in,
                } = wire;
                let command = InitiatorCommand {
                    lun,
                    cdb,
                    attribute,
                    immediate: false,
                };
                let room = (data_in > 0).then(|| BufMut::zeroed(data_in));
                let itt = session.machine.submit(command, data_out, room);
                let pending = Pending {
                    reply,
                    lun,
                    since,
                    function: None,
                };
                session.pending.insert(itt, pending);
            }
            Job::Function { function, lun } => {
                let itt = session.machine.task_management(function, lun, None);
                let asked = Function {
                    reply,
                    function,
                    lun,
                    since,
                };
                session.functions.insert(itt, asked);
            }
        }
    }

    /// Something happened; `true` where the connection is over.
    fn event(&mut self, session: &mut Session, event: InitiatorEvent) -> bool {
        match event {
            InitiatorEvent::LoggedIn { .. } => {
                session.logged_in = true;
                self.seen.logged_in();
                for reply in self.lost.drain(..) {
                    drop(reply.send(Outcome::Lost));
                }
                if let Some(ready) = self.ready.take() {
                    let _ = ready.send(());
                }
            }
            InitiatorEvent::Response { itt, completion } => {
                if let Some(pending) = session.pending.remove(&itt) {
                    self.seen.completed(pending.lun, &completion);
                    drop(pending.reply.send(Outcome::Ended(completion)));
                }
            }
            InitiatorEvent::TaskManagement { itt, response } => {
                self.function_answered(session, itt, response);
            }
            InitiatorEvent::Rejected { reason, .. } => {
                self.complain(&format!("a PDU was rejected: {reason}"));
            }
            InitiatorEvent::Closed(reason) => {
                if let iscsi::CloseReason::Violation(violation) = reason {
                    self.complain(&format!("the target broke the protocol: {violation:?}"));
                }
                return true;
            }
            InitiatorEvent::LoginFailed { status, reason, .. } => {
                // 0301h is for a login that a later one of the same port overtook: the host begins
                // again, as all do.
                let overtaken = status == Some(LoginStatus::ServiceUnavailable);
                if self.config.strict && status.is_some() && !overtaken {
                    self.complain(&format!("login refused: {status:?} {reason}"));
                }
            }
            InitiatorEvent::Text { .. }
            | InitiatorEvent::LoggedOut { .. }
            | InitiatorEvent::Async { .. }
            | InitiatorEvent::Pong { .. } => {}
        }
        false
    }

    fn complain(&self, what: &str) {
        let what = format!("{}: {what}", self.config.name);
        self.complaints.borrow_mut().push(what);
    }

    /// Gives up what took too long.
    fn read_clock(&self, session: &mut Session) {
        if !session.logged_in {
            return;
        }
        let now = self.core.now();
        let function = match self.config.salt & 32 {
            0 => ABORT_TASK,
            _ => LOGICAL_UNIT_RESET,
        };
        for (itt, pending) in &mut session.pending {
            match pending.function {
                None if now.since(pending.since) >= PATIENCE => {
                    let referenced = (function == ABORT_TASK).then_some(*itt);
                    let number = session
                        .machine
                        .task_management(function, pending.lun, referenced);
                    pending.function = Some((number, now));
                }
                Some((_, since)) if self.config.strict && now.since(since) > FUNCTION_TIME => {
                    let took = now.since(since);
                    self.complain(&format!("function {function} not answered for {took:?}"));
                    pending.function = Some((Itt::from_wire(0).expect("a tag"), Now(u64::MAX)));
                }
                None | Some(_) => {}
            }
        }
    }

    /// A function was answered: the commands that it gives up have ended (SAM-5 7.2 "ABORT TASK",
    /// 7.7 "LOGICAL UNIT RESET").
    fn function_answered(&self, session: &mut Session, function: Itt, response: u8) {
        // 0 is "function complete", 1 "task does not exist" (RFC 7143 11.6.1 "Response").
        if response > 1 {
            self.complain(&format!("task management answered {response}"));
        }
        if let Some(asked) = session.functions.remove(&function) {
            let took = self.core.now().since(asked.since);
            if self.config.strict && took > FUNCTION_TIME {
                let number = asked.function;
                self.complain(&format!("function {number} answered after {took:?}"));
            }
            let whole_target = asked.function >= TARGET_WARM_RESET;
            Self::give_up(session, |_, it| {
                (whole_target || it.lun == asked.lun) && it.since < asked.since
            });
            drop(asked.reply.send(Outcome::Function(response)));
            return;
        }
        let reset = self.config.salt & 32 != 0;
        let sent = session.pending.values().find_map(|pending| {
            let (number, since) = pending.function?;
            (number == function).then_some((since, pending.lun))
        });
        let Some((sent, lun)) = sent else { return };
        // What the target has answered came before, and what others took away silently counts as
        // aborted: a command that is not there and was not answered was lost. Another function of
        // ours may have ended it, though.
        if !reset && response == 1 && self.config.strict && session.functions.is_empty() {
            self.complain("a command ended without an answer");
        }
        Self::give_up(session, |_, it| match it.function {
            Some((number, _)) if number == function => true,
            None | Some(_) => reset && it.lun == lun && it.since < sent,
        });
    }

    /// These commands have ended without an answer.
    fn give_up(session: &mut Session, which: impl Fn(&Itt, &Pending) -> bool) {
        let given_up: Vec<Itt> = (session.pending.iter())
            .filter(|(itt, it)| which(itt, it))
            .map(|(itt, _)| *itt)
            .collect();
        for itt in given_up {
            session.machine.forget(itt);
            if let Some(pending) = session.pending.remove(&itt) {
                drop(pending.reply.send(Outcome::Aborted));
            }
        }
    }
}

impl Session {
    /// Takes in what is there. `Ok(true)` where something came.
    fn receive(&mut self, now: Now, cx: &mut Context<'_>) -> Poll<Result<bool, ()>> {
        let (bytes, is_header) = match self.machine.want() {
            Want::Nothing => return Poll::Pending,
            Want::Data { .. } => {
                let received = self.stream.poll_recv(cx, self.machine.data_chunk());
                return received.map(|received| match received {
                    Ok(0) | Err(_) => Err(()),
                    Ok(n) => {
                        self.machine.data_filled(n);
                        Ok(true)
                    }
                });
            }
            Want::Header { bytes } => (bytes, true),
            Want::Trailer { bytes } => (bytes, false),
        };
        let mut piece = [0; 1024];
        let room = bytes - self.partial.len();
        let received = self.stream.poll_recv(cx, &mut piece[..room]);
        let n = match received {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(())),
            Poll::Ready(Ok(n)) => n,
        };
        self.partial.extend_from_slice(&piece[..n]);
        if self.partial.len() == bytes {
            let whole = std::mem::take(&mut self.partial);
            // A breach also comes as an event, which says more.
            let _ = if is_header {
                self.machine.receive_header(now, &whole)
            } else {
                self.machine.receive_trailer(now, &whole)
            };
        }
        Poll::Ready(Ok(true))
    }

    /// Sends what waits; pending where nothing does or the socket is full.
    fn send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let sent = {
            let pieces: Vec<IoSlice<'_>> = (self.machine.transmit().pieces())
                .take(64)
                .map(IoSlice::new)
                .collect();
            if pieces.is_empty() {
                return Poll::Pending;
            }
            self.stream.poll_send(cx, &pieces)
        };
        sent.map(|sent| match sent {
            Ok(n) => {
                self.machine.sent(n);
                Ok(())
            }
            Err(_) => Err(()),
        })
    }

    /// Waits for the next moment at which something is due.
    fn arm(&mut self, core: &CoreHandle, cx: &mut Context<'_>) -> Poll<()> {
        let soon = core.now().after(Duration::from_secs(1));
        let next = self.machine.next_tick().map_or(soon, |tick| tick.min(soon));
        if self.timer.as_ref().is_none_or(|(at, _)| next < *at) {
            self.timer = Some((next, core.sleep_until(next)));
        }
        let Some((_, timer)) = &mut self.timer else {
            return Poll::Pending;
        };
        let over = timer.as_mut().poll(cx);
        if over.is_ready() {
            self.timer = None;
        }
        over
    }
}
