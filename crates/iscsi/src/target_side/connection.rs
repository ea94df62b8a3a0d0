//! A connection of the target, from its first byte to its last: what the driver of the socket sees.
//!
//! ```text
//!   Login --LoginReady, complete_login--> FullFeature --Logout, breach, silence--> Closing
//!     \------------------ refusal, breach, timeout ------------------------------/
//! ```
//!
//! **Failure model.** A connection that dies takes its tasks with it: the owner hears `Closed` (or
//! drops the connection itself when the socket fails) and ends what it began for them.

use super::event::{
    AsyncEvent, CloseReason, Event, LoginOutcome, LogoutAnswer, Response, TaskManagementAnswer,
};
use super::full_feature::FullFeature;
use super::link::{Link, Window};
use super::login::{Answer, LOGIN_SEGMENT_BYTES_MAX, LoginStep, LoginTarget};
use super::owed::Owed;
use super::policy::{LoginPolicy, LoginRefusal};
use crate::bhs::{LoginRequest, LoginResponse, Numbers, Opcode, StageBits};
use crate::discovery::TargetRecord;
use crate::extension_keys::port::PortRecord;
use crate::ids::{Itt, Tsih};
use crate::keepalive::{Due, Keepalive};
use crate::login_status::LoginStatus;
use crate::parameters::Parameters;
use crate::receive::{HeaderProgress, Receiver, Want};
use crate::status_numbering::StatusNumbering;
use crate::text;
use crate::transmit::Transmit;
use crate::violation::{Violation, ViolationKind};
use core::time::Duration;
use units::{Buf, BufMut, Now, copy_past_cache};

/// Payload of so many bytes and more is copied past the cache.
const PAST_CACHE_BYTES_MIN: usize = 4096;

/// Limits of a connection that are the owner's choice.
#[derive(Clone, Debug)]
pub struct TargetConfig {
    /// A login that takes longer is closed.
    pub login_timeout: Duration,
    /// Silence after which the initiator is pinged by NOP-In; `None`: never.
    pub ping_after: Option<Duration>,
    /// Silence after a ping that ends the connection.
    pub ping_timeout: Duration,
    /// Non-immediate commands that may be in progress: the size of the CmdSN window.
    pub command_depth: u32,
    /// Bytes of writes in progress beyond which the CmdSN window does not open further.
    pub write_bytes_max: u64,
    /// Bytes of unsolicited data that may wait for the owner's memory, of all commands together.
    pub parked_bytes_max: usize,
    /// Immediate requests that may be in progress; more are rejected.
    pub immediate_max: u32,
}

impl Default for TargetConfig {
    fn default() -> Self {
        Self {
            login_timeout: Duration::from_secs(15),
            ping_after: Some(Duration::from_secs(15)),
            ping_timeout: Duration::from_secs(15),
            command_depth: 256,
            write_bytes_max: 64 << 20,
            parked_bytes_max: 8 << 20,
            immediate_max: 64,
        }
    }
}

/// A connection of the target.
pub struct TargetConnection {
    config: TargetConfig,
    receiver: Receiver,
    link: Link,
    phase: Phase,
    now: Now,
    defaults: Parameters,
}

enum Phase {
    Login(Box<Login>),
    FullFeature(Box<FullFeature>),
    Closing,
}

struct Login {
    machine: LoginTarget,
    policy: Box<dyn LoginPolicy + Send>,
    deadline: Now,
    segment: Vec<u8>,
    request: Option<LoginRequest>,
    /// The last response, until the owner completes the login.
    ready: Option<(Answer, Box<LoginOutcome>)>,
}

impl TargetConnection {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(now: Now, config: &TargetConfig, policy: Box<dyn LoginPolicy + Send>) -> Self {
        let login = Login {
            machine: LoginTarget::new(),
            policy,
            deadline: now.after(config.login_timeout),
            segment: Vec::new(),
            request: None,
            ready: None,
        };
        Self {
            config: config.clone(),
            receiver: Receiver::new(),
            link: Link::default(),
            phase: Phase::Login(Box::new(login)),
            now,
            defaults: Parameters::default(),
        }
    }

    /// What to hand in next. Ask again after every call that hands something in, or that answers an
    /// event.
    #[must_use]
    pub fn want(&self) -> Want {
        match &self.phase {
            Phase::Closing => Want::Nothing,
            Phase::Login(_) | Phase::FullFeature(_) => self.receiver.want(),
        }
    }

    /// The bytes of [`Want::Header`]. Poll events and transmit afterwards.
    ///
    /// # Errors
    /// The breach that ends the connection (also in `Event::Closed`): flush `transmit`, then close.
    ///
    /// # Panics
    /// If not exactly the wanted bytes are handed in.
    pub fn receive_header(&mut self, now: Now, bytes: &[u8]) -> Result<(), Violation> {
        self.now = now;
        match self.receiver.header(bytes) {
            Ok(HeaderProgress::Partial) => Ok(()),
            Ok(HeaderProgress::Complete) => {
                let begun = self.begin();
                self.settle(begun)
            }
            Err(violation) => self.settle(Err(violation)),
        }
    }

    /// Where the next payload bytes go while [`want`](Self::want) is `Data`: not empty, and never
    /// longer than what is wanted. The place may change between calls.
    #[must_use]
    pub fn data_chunk(&mut self) -> &mut [u8] {
        let Want::Data { bytes: left } = self.receiver.want() else {
            return &mut [];
        };
        let done = self.receiver.data_done();
        match &mut self.phase {
            Phase::Login(login) => login.segment.get_mut(done..).unwrap_or_default(),
            Phase::FullFeature(full) => full.chunk(done, left),
            Phase::Closing => &mut [],
        }
    }

    /// Copies payload that was received elsewhere to where it belongs; answers how many of `bytes`
    /// had their place there. Poll events and transmit afterwards.
    ///
    /// Much of it goes past the cache: what reads it next is a disk, or nobody soon. It is digested
    /// where it lies, in the cache.
    pub fn receive_data(&mut self, bytes: &[u8]) -> usize {
        let n = bytes.len().min(self.data_chunk().len());
        let bytes = bytes.get(..n).unwrap_or_default();
        if self.receiver.digests_data() {
            self.receiver.digest(bytes);
        }
        let chunk = self.data_chunk().get_mut(..n).unwrap_or_default();
        if n >= PAST_CACHE_BYTES_MIN {
            copy_past_cache(bytes, chunk);
        } else {
            chunk.copy_from_slice(bytes);
        }
        self.data_came(n);
        n
    }

    /// The first `n` bytes of [`data_chunk`](Self::data_chunk) have been filled. Poll events and
    /// transmit afterwards.
    ///
    /// # Panics
    /// If `n` is more than the chunk's length.
    pub fn data_filled(&mut self, n: usize) {
        if self.receiver.digests_data() {
            let mut running = self.receiver.take_digest();
            running.update(
                self.data_chunk()
                    .get(..n)
                    .expect("no more than the chunk holds"),
            );
            self.receiver.put_digest(running);
        }
        self.data_came(n);
    }

    fn data_came(&mut self, n: usize) {
        if self.receiver.data(n) {
            let finished = self.finish(true);
            // The connection's end is told by the event and by `want`.
            let _ = self.settle(finished);
        }
    }

    /// The bytes of [`Want::Trailer`]. Poll events and transmit afterwards.
    ///
    /// # Errors
    /// As [`receive_header`](Self::receive_header).
    pub fn receive_trailer(&mut self, now: Now, bytes: &[u8]) -> Result<(), Violation> {
        self.now = now;
        let intact = self.receiver.trailer(bytes);
        let finished = self.finish(intact);
        self.settle(finished)
    }

    /// Time has come to `now`. Poll events and transmit afterwards.
    pub fn tick(&mut self, now: Now) {
        self.now = now;
        match &mut self.phase {
            Phase::Login(login) if login.deadline <= now => {
                self.refuse(LoginRefusal::new(
                    LoginStatus::ServiceUnavailable,
                    "the login took too long",
                ));
            }
            Phase::FullFeature(full) => match full.keepalive.due(now) {
                Due::Nothing => {}
                Due::Ping => full.ping(&mut self.link),
                Due::GiveUp => self.close(CloseReason::KeepaliveTimedOut),
            },
            Phase::Login(_) | Phase::Closing => {}
        }
    }

    /// When [`tick`](Self::tick) has something to do; ask again after every call.
    #[must_use]
    pub fn next_tick(&self) -> Option<Now> {
        match &self.phase {
            Phase::Login(login) => Some(login.deadline),
            Phase::FullFeature(full) => full.keepalive.next(),
            Phase::Closing => None,
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.link.events.pop_front()
    }

    /// What waits to be sent.
    #[must_use]
    pub fn transmit(&self) -> &Transmit {
        &self.link.transmit
    }

    /// What the initiator is about to send for what was sent to it.
    #[must_use]
    pub fn owed(&self) -> &Owed {
        &self.link.owed
    }

    /// The next `bytes` bytes of [`transmit`](Self::transmit) were given to the socket.
    pub fn sent(&mut self, bytes: usize) {
        self.link.transmit.sent(bytes);
    }

    /// The values in force (the standard's defaults before the login is complete).
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        match &self.phase {
            Phase::FullFeature(full) => &full.parameters,
            Phase::Login(_) | Phase::Closing => &self.defaults,
        }
    }

    /// Tasks, functions and exchanges that wait for an answer.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        match &self.phase {
            Phase::FullFeature(full) => full.in_progress(),
            Phase::Login(_) | Phase::Closing => 0,
        }
    }

    /// Bytes that the peer makes this connection hold: text, a data segment, answers, and the
    /// object itself.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let phase = match &self.phase {
            Phase::Login(login) => login
                .machine
                .held_bytes()
                .saturating_add(login.segment.capacity())
                .saturating_add(size_of::<Login>()),
            Phase::FullFeature(full) => full.held_bytes(),
            Phase::Closing => 0,
        };
        phase
            .saturating_add(self.link.transmit.bytes())
            .saturating_add(size_of::<Self>())
    }

    /// Answers `Event::LoginReady`: the session exists, under this handle (not 0). Ignored at any
    /// other time.
    pub fn complete_login(&mut self, tsih: Tsih) {
        let Phase::Login(login) = &mut self.phase else {
            return;
        };
        let (Some((answer, outcome)), Some(request)) = (login.ready.take(), login.request) else {
            return;
        };
        let keepalive = Keepalive::new(self.now, self.config.ping_after, self.config.ping_timeout);
        let mut full = FullFeature::new(&self.config, *outcome, request.cmd_sn, keepalive);
        let window = full.window();
        respond_to_login(
            &mut self.link,
            &request,
            &answer,
            tsih,
            LoginStatus::Success,
            window,
        );
        let Parameters {
            header_digest,
            data_digest,
            ..
        } = full.parameters;
        self.receiver.set_digests(header_digest, data_digest);
        self.link.transmit.set_digests(header_digest, data_digest);
        self.phase = Phase::FullFeature(Box::new(full));
    }

    /// Answers `Event::LoginReady`: no. Ignored once the login is over.
    pub fn refuse_login(&mut self, refusal: LoginRefusal) {
        self.refuse(refusal);
    }

    /// Ends a task. Data of it that is still to come is swallowed. Unknown tasks are ignored.
    pub fn respond(&mut self, itt: Itt, response: Response) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.respond(itt, response, &mut self.link);
        }
    }

    /// Asks for the first `bytes` bytes of a task's data-out, into `buffer` (as long):
    /// `Event::DataOut` follows, or `Event::DataFault`. May be called as late as the owner likes
    /// (memory budget); what the initiator sends unasked waits meanwhile, at most FirstBurstLength
    /// bytes. More than the initiator has is cut to what it has. Ignored for a task that is
    /// unknown, does not write, or has failed.
    ///
    /// # Panics
    /// If `buffer` is shorter than `bytes`.
    pub fn accept_data(&mut self, itt: Itt, bytes: u32, buffer: BufMut) {
        assert!(
            buffer.len() >= bytes as usize,
            "the buffer holds what is asked for"
        );
        if let Phase::FullFeature(full) = &mut self.phase {
            full.accept_data(itt, bytes, buffer, &mut self.link);
        }
    }

    /// The immediate data of a command that was announced just now is at hand, and its `bytes`
    /// bytes are all that the owner wants of its data: takes them as received, without
    /// [`accept_data`](Self::accept_data) and without `Event::DataOut`. `received` is what has come
    /// behind the header. Answers how many bytes of it were the PDU's and need not be handed in any
    /// more, `bytes` at least; `None` where more data is to come, or where its digest has not come
    /// or does not match: then all goes the usual way.
    pub fn take_immediate(&mut self, itt: Itt, bytes: u32, received: &[u8]) -> Option<usize> {
        let Phase::FullFeature(full) = &mut self.phase else {
            return None;
        };
        let payload = received.get(..bytes as usize)?;
        let whole = Want::Data {
            bytes: payload.len(),
        };
        if self.receiver.want() != whole || self.receiver.data_done() != 0 {
            return None;
        }
        let trailer = match self.receiver.trailer_ahead() {
            0 => None,
            length => Some(received.get(payload.len()..)?.get(..length)?),
        };
        let intact = trailer.is_none_or(|trailer| self.receiver.matches(payload, trailer));
        if !intact || !full.take_immediate(itt, bytes) {
            return None;
        }
        // Nothing is left to be done where this was the end of the PDU.
        let _ = self.receiver.data(payload.len());
        let Some(trailer) = trailer else {
            return Some(payload.len());
        };
        self.receiver.skip_trailer();
        Some(payload.len().saturating_add(trailer.len()))
    }

    /// Drops a task without an answer (aborted). Data of it that is still to come is swallowed.
    pub fn forget(&mut self, itt: Itt) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.forget(itt);
            full.tell_of_window(&mut self.link);
        }
    }

    /// Stops the initiator's supply of new commands once it has used up its CmdSN window, or lets
    /// it go on.
    pub fn hold_commands(&mut self, held: bool) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.session.window.hold(held);
            full.tell_of_window(&mut self.link);
        }
    }

    /// Memory that unsolicited data waits in, of commands whose owner has none for it yet, in
    /// bytes.
    #[must_use]
    pub fn parked_bytes(&self) -> usize {
        let Phase::FullFeature(full) = &self.phase else {
            return 0;
        };
        full.parked
    }

    /// It may be `most` bytes from now on, and no more than the configuration says. What is parked
    /// already stays.
    pub fn allow_parked(&mut self, most: usize) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.parked_max = most.min(self.config.parked_bytes_max);
        }
    }

    /// In full feature phase, with nothing in progress, nothing to tell and nothing to send: only
    /// what the initiator sends next changes anything, but for time.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let Phase::FullFeature(full) = &self.phase else {
            return false;
        };
        full.in_progress() == 0 && self.link.events.is_empty() && self.link.transmit.is_empty()
    }

    /// A connection that is over, to stand in the place of one that goes on elsewhere.
    #[must_use]
    pub fn over(now: Now) -> Self {
        Self {
            config: TargetConfig::default(),
            receiver: Receiver::new(),
            link: Link::default(),
            phase: Phase::Closing,
            now,
            defaults: Parameters::default(),
        }
    }

    /// Answers `Event::TaskManagement`.
    pub fn task_management_response(&mut self, itt: Itt, answer: TaskManagementAnswer) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.task_management_response(itt, answer, &mut self.link);
        }
    }

    /// Answers `Event::SendTargets`, in as many PDUs as it takes.
    pub fn send_targets_response(&mut self, itt: Itt, targets: &[TargetRecord]) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.send_targets_response(itt, targets, &mut self.link);
        }
    }

    /// Answers `Event::Fence`. True: nothing of that session is carried out any more.
    pub fn fence_response(&mut self, itt: Itt, fenced: bool) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.fence_response(itt, fenced, &mut self.link);
        }
    }

    /// Answers `Event::Ports`.
    pub fn ports_response(&mut self, itt: Itt, ports: &[PortRecord]) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.ports_response(itt, ports, &mut self.link);
        }
    }

    /// Answers `Event::Logout`; after `Closed` the connection ends (`Event::Closed`).
    pub fn logout_response(&mut self, itt: Itt, answer: LogoutAnswer) {
        if let Phase::FullFeature(full) = &mut self.phase
            && full.logout_response(itt, answer, &mut self.link)
            && answer == LogoutAnswer::Closed
        {
            self.close(CloseReason::LoggedOut);
        }
    }

    /// Tells the initiator of an event of the target. Not before the login is complete.
    pub fn async_message(&mut self, event: AsyncEvent) {
        if let Phase::FullFeature(full) = &mut self.phase {
            full.async_message(event, &mut self.link);
        }
    }

    /// A header is whole.
    fn begin(&mut self) -> Result<(), Violation> {
        let (header, length) = (*self.receiver.bhs(), self.receiver.data_length());
        match &mut self.phase {
            Phase::Login(login) => {
                if login.ready.is_some() {
                    return Err(wrong_phase("a PDU before the login was answered"));
                }
                if Opcode::of(header[0]) != Some(Opcode::LoginRequest) {
                    // Before the first Login Request there is nothing to answer to.
                    if login.request.is_some() {
                        self.refuse(LoginRefusal::new(
                            LoginStatus::InvalidRequestDuringLogin,
                            "another PDU than Login Request during login",
                        ));
                    }
                    return Err(wrong_phase("another PDU than Login Request during login"));
                }
                if length > LOGIN_SEGMENT_BYTES_MAX {
                    return Err(Violation::new(
                        ViolationKind::DataSegmentTooLong,
                        "13.12 \"MaxRecvDataSegmentLength\"",
                        "a Login Request of more than 8192 bytes",
                    ));
                }
                let request = LoginRequest::parse(&header)?;
                if login.request.is_none() {
                    self.link.status = StatusNumbering::starting_at(request.exp_stat_sn);
                }
                login.request = Some(request);
                login.segment.clear();
                login.segment.resize(length, 0);
            }
            Phase::FullFeature(full) => {
                full.keepalive.heard(self.now);
                full.begin(&header, self.receiver.additional(), length, &mut self.link)?;
            }
            Phase::Closing => return Ok(()),
        }
        if length == 0 {
            self.finish(true)
        } else {
            Ok(())
        }
    }

    /// A PDU is whole; `intact`: its data segment matches its digest.
    fn finish(&mut self, intact: bool) -> Result<(), Violation> {
        let header = *self.receiver.bhs();
        match &mut self.phase {
            Phase::Login(_) => {
                self.login_request();
                Ok(())
            }
            Phase::FullFeature(full) => {
                full.keepalive.heard(self.now);
                full.finish(&header, intact, &mut self.link)
            }
            Phase::Closing => Ok(()),
        }
    }

    fn login_request(&mut self) {
        let Phase::Login(login) = &mut self.phase else {
            return;
        };
        let Some(request) = login.request else { return };
        match login
            .machine
            .request(&request, &login.segment, &mut *login.policy)
        {
            Ok(LoginStep::Respond(answer)) => {
                let window = Window {
                    exp: request.cmd_sn,
                    max: request.cmd_sn,
                };
                let status = LoginStatus::Success;
                respond_to_login(
                    &mut self.link,
                    &request,
                    &answer,
                    request.tsih,
                    status,
                    window,
                );
            }
            Ok(LoginStep::Ready(answer, outcome)) => {
                if login.machine.missing_digest() {
                    self.refuse(LoginRefusal::new(
                        LoginStatus::InitiatorError,
                        "a digest is required and was not agreed upon",
                    ));
                    return;
                }
                self.link.event(Event::LoginReady(outcome.clone()));
                login.ready = Some((answer, outcome));
            }
            Err(refusal) => self.refuse(refusal),
        }
    }

    /// Ends the login with a status.
    fn refuse(&mut self, refusal: LoginRefusal) {
        let Phase::Login(login) = &mut self.phase else {
            return;
        };
        let LoginRefusal {
            status,
            reason,
            redirect,
        } = refusal;
        let names = login.machine.names().cloned();
        if let Some(request) = login.request {
            let mut answer = Answer {
                stage: request.stage.0,
                ..Answer::default()
            };
            if let Some(address) = redirect {
                text::push(&mut answer.text, "TargetAddress", &address);
            }
            let window = Window {
                exp: request.cmd_sn,
                max: request.cmd_sn,
            };
            respond_to_login(
                &mut self.link,
                &request,
                &answer,
                request.tsih,
                status,
                window,
            );
        }
        let (initiator_name, target_name) =
            names.map_or((None, None), |names| (Some(names.initiator), names.target));
        self.link.event(Event::LoginRefused {
            status,
            reason,
            initiator_name,
            target_name,
        });
        self.close(CloseReason::LoginFailed);
    }

    /// Ends the connection if a breach asks for it.
    fn settle(&mut self, result: Result<(), Violation>) -> Result<(), Violation> {
        if let Err(violation) = result {
            self.close(CloseReason::Violation(violation));
            return Err(violation);
        }
        Ok(())
    }

    fn close(&mut self, reason: CloseReason) {
        if !matches!(self.phase, Phase::Closing) {
            self.phase = Phase::Closing;
            self.link.closed(reason);
        }
    }
}

fn wrong_phase(what: &'static str) -> Violation {
    Violation::new(ViolationKind::WrongPhase, "6.3 \"Login Phase\"", what)
}

fn respond_to_login(
    link: &mut Link,
    request: &LoginRequest,
    answer: &Answer,
    tsih: Tsih,
    status: LoginStatus,
    window: Window,
) {
    let numbers: Numbers = link.numbers(window);
    let (status_class, status_detail) = status.code();
    let response = LoginResponse {
        transit: answer.transit.is_some(),
        continues: answer.continues,
        stage: StageBits(answer.stage),
        next_stage: StageBits(answer.transit.unwrap_or(0)),
        version_max: 0,
        version_active: 0,
        data_segment_length: 0,
        isid: request.isid,
        tsih,
        itt: request.itt,
        numbers,
        status_class,
        status_detail,
    };
    link.send(response.write(), Buf::copy_of(&answer.text));
}
