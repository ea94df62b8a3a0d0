//! The target's role: what it makes of a login, and what its owner answers to events.
//!
//! **Failure model.** A connection that dies takes its tasks with it: the owner gets `Closed` (or
//! drops the connection itself when the socket fails) and ends what it began for them.

use super::config::TargetConfig;
use super::event::{
    AsyncEvent, LoginOutcome, LogoutAnswer, Response, TargetEvent, TaskManagementAnswer,
};
use super::login::{Answer, LOGIN_SEGMENT_BYTES_MAX, LoginStep, LoginTarget};
use super::output::{Ledger, Output, Window};
use super::owed::Owed;
use super::policy::{LoginPolicy, LoginRefusal};
use super::state::FullFeature;
use crate::bhs::{LoginRequest, LoginResponse, Numbers, Opcode, StageBits};
use crate::connection::{CloseReason, Connection, Phase, Protocol, Silence, wrong_phase};
use crate::discovery::TargetRecord;
use crate::extension_keys::port::PortRecord;
use crate::ids::{Itt, Tsih};
use crate::login_status::LoginStatus;
use crate::parameters::Parameters;
use crate::receive::Want;
use crate::status_numbering::StatusNumbering;
use crate::text;
use crate::violation::{Violation, ViolationKind};
use units::{Buf, BufMut, Now};

/// The connection shell with the target's half of the protocol in it.
pub type TargetConnection = Connection<Target>;

/// The target's part of a connection.
pub struct Target {
    config: TargetConfig,
    defaults: Parameters,
}

/// A login that is under way.
pub struct Login {
    machine: LoginTarget,
    policy: Box<dyn LoginPolicy + Send>,
    segment: Vec<u8>,
    request: Option<LoginRequest>,
    /// The last response, until the owner completes the login.
    ready: Option<(Answer, Box<LoginOutcome>)>,
}

impl Target {
    fn new(config: TargetConfig) -> Self {
        Self {
            config,
            defaults: Parameters::default(),
        }
    }
}

impl Protocol for Target {
    type Event = TargetEvent;
    type Login = Login;
    type FullFeature = FullFeature;
    type Ledger = Ledger;

    fn closed(reason: CloseReason) -> TargetEvent {
        TargetEvent::Closed(reason)
    }

    #[inline]
    fn begin(connection: &mut TargetConnection) -> Result<(), Violation> {
        let receiver = &connection.receiver;
        match &mut connection.phase {
            Phase::FullFeature { full, keepalive } => {
                keepalive.received(connection.now);
                full.begin(receiver, &mut connection.output)
            }
            Phase::Login { .. } => connection.begin_login_request(),
            Phase::Closing => Ok(()),
        }
    }

    #[inline]
    fn chunk(connection: &mut TargetConnection, done: usize, left: usize) -> &mut [u8] {
        match &mut connection.phase {
            Phase::Login { login, .. } => login.segment.get_mut(done..).unwrap_or_default(),
            Phase::FullFeature { full, .. } => full.chunk(done, left),
            Phase::Closing => &mut [],
        }
    }

    #[inline]
    fn finish(connection: &mut TargetConnection, intact: bool) -> Result<(), Violation> {
        let header = connection.receiver.bhs();
        match &mut connection.phase {
            Phase::FullFeature { full, keepalive } => {
                keepalive.received(connection.now);
                full.finish(header, intact, &mut connection.output)
            }
            Phase::Login { .. } => {
                connection.login_request();
                Ok(())
            }
            Phase::Closing => Ok(()),
        }
    }

    fn login_is_late(connection: &mut TargetConnection) {
        connection.refuse_login(LoginRefusal::new(
            LoginStatus::ServiceUnavailable,
            "the login took too long",
        ));
    }

    fn ping(connection: &mut TargetConnection) {
        if let Some((full, output)) = connection.full_feature() {
            full.ping(output);
        }
    }
}

impl Connection<Target> {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(now: Now, config: &TargetConfig, policy: Box<dyn LoginPolicy + Send>) -> Self {
        let login = Login {
            machine: LoginTarget::new(),
            policy,
            segment: Vec::new(),
            request: None,
            ready: None,
        };
        let phase = Phase::Login {
            login: Box::new(login),
            deadline: now.after(config.login_timeout),
        };
        Self::in_phase(now, Target::new(config.clone()), phase)
    }

    /// A connection that is over, to stand in the place of one that goes on elsewhere.
    #[must_use]
    pub fn over(now: Now) -> Self {
        Self::in_phase(now, Target::new(TargetConfig::default()), Phase::Closing)
    }

    /// What the initiator is about to send for what was sent to it.
    #[must_use]
    pub fn owed(&self) -> &Owed {
        &self.output.ledger.owed
    }

    /// The values in force (the standard's defaults before the login is complete).
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        match &self.phase {
            Phase::FullFeature { full, .. } => &full.parameters,
            Phase::Login { .. } | Phase::Closing => &self.role.defaults,
        }
    }

    /// Tasks, functions and exchanges that wait for an answer.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        match &self.phase {
            Phase::FullFeature { full, .. } => full.in_progress(),
            Phase::Login { .. } | Phase::Closing => 0,
        }
    }

    /// Bytes that the peer makes this connection hold: text, a data segment, answers, and the
    /// object itself.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let phase = match &self.phase {
            Phase::Login { login, .. } => login
                .machine
                .held_bytes()
                .saturating_add(login.segment.capacity())
                .saturating_add(size_of::<Login>()),
            Phase::FullFeature { full, .. } => full.held_bytes(),
            Phase::Closing => 0,
        };
        phase
            .saturating_add(self.output.transmit.bytes())
            .saturating_add(size_of::<Self>())
    }

    /// Answers `TargetEvent::LoginReady`: the session exists, under this handle (not 0). Ignored
    /// at any other time.
    pub fn complete_login(&mut self, tsih: Tsih) {
        let Phase::Login { login, .. } = &mut self.phase else {
            return;
        };
        let (Some((answer, outcome)), Some(request)) = (login.ready.take(), login.request) else {
            return;
        };
        let mut full = FullFeature::new(&self.role.config, *outcome, request.cmd_sn);
        let window = full.window();
        respond_to_login(
            &mut self.output,
            &request,
            &answer,
            tsih,
            LoginStatus::Success,
            window,
        );
        let silence = Silence {
            ping_after: self.role.config.ping_after,
            ping_timeout: self.role.config.ping_timeout,
        };
        let digests = (full.parameters.header_digest, full.parameters.data_digest);
        self.enter_full_feature(full, silence, digests);
    }

    /// Answers `TargetEvent::LoginReady`: no. Ignored once the login is over.
    pub fn refuse_login(&mut self, refusal: LoginRefusal) {
        let Phase::Login { login, .. } = &mut self.phase else {
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
                &mut self.output,
                &request,
                &answer,
                request.tsih,
                status,
                window,
            );
        }
        let (initiator_name, target_name) =
            names.map_or((None, None), |names| (Some(names.initiator), names.target));
        self.output.event(TargetEvent::LoginRefused {
            status,
            reason,
            initiator_name,
            target_name,
        });
        self.close(CloseReason::LoginFailed);
    }

    /// Ends a task. Data of it that is still to come is swallowed. Unknown tasks are ignored.
    pub fn respond(&mut self, itt: Itt, response: Response) {
        if let Some((full, output)) = self.full_feature() {
            full.respond(itt, response, output);
        }
    }

    /// Asks for the first `bytes` bytes of a task's data-out, into `buffer` (as long):
    /// `TargetEvent::DataOut` follows, or `TargetEvent::DataFault`. May be called as late as the
    /// owner likes (memory budget); what the initiator sends unasked waits meanwhile, at most
    /// FirstBurstLength bytes. More than the initiator has is cut to what it has. Ignored for a
    /// task that is unknown, does not write, or has failed.
    ///
    /// # Panics
    /// If `buffer` is shorter than `bytes`.
    pub fn accept_data(&mut self, itt: Itt, bytes: u32, buffer: BufMut) {
        assert!(
            buffer.len() >= bytes as usize,
            "the buffer holds what is asked for"
        );
        if let Some((full, output)) = self.full_feature() {
            full.accept_data(itt, bytes, buffer, output);
        }
    }

    /// The immediate data of a command that was announced just now is at hand, and its `bytes`
    /// bytes are all that the owner wants of its data: takes them as received, without
    /// [`accept_data`](Self::accept_data) and without `TargetEvent::DataOut`. `received` is what
    /// has come behind the header. Answers how many bytes of it were the PDU's and need not be
    /// handed in any more, `bytes` at least; `None` where more data is to come, or where its
    /// digest has not come or does not match: then it is received as any other data.
    pub fn take_immediate(&mut self, itt: Itt, bytes: u32, received: &[u8]) -> Option<usize> {
        let Phase::FullFeature { full, .. } = &mut self.phase else {
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
        if let Some((full, output)) = self.full_feature() {
            full.forget(itt);
            full.report_window(output);
        }
    }

    /// Stops the initiator's supply of new commands once it has used up its CmdSN window, or lets
    /// it go on.
    pub fn hold_commands(&mut self, held: bool) {
        if let Some((full, output)) = self.full_feature() {
            full.session.window.hold(held);
            full.report_window(output);
        }
    }

    /// Memory that unsolicited data waits in, of commands whose owner has none for it yet, in
    /// bytes.
    #[must_use]
    pub fn parked_bytes(&self) -> usize {
        let Phase::FullFeature { full, .. } = &self.phase else {
            return 0;
        };
        full.parking.bytes
    }

    /// It may be `most` bytes from now on, and no more than the configuration says. What is parked
    /// already stays.
    pub fn allow_parked(&mut self, most: usize) {
        if let Phase::FullFeature { full, .. } = &mut self.phase {
            full.parking.bytes_max = most.min(self.role.config.parked_bytes_max);
        }
    }

    /// In full feature phase, with nothing in progress, nothing to report and nothing to send: only
    /// what the initiator sends next changes anything, but for time.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let Phase::FullFeature { full, .. } = &self.phase else {
            return false;
        };
        full.in_progress() == 0 && self.output.events.is_empty() && self.output.transmit.is_empty()
    }

    /// Answers `TargetEvent::TaskManagement`.
    pub fn task_management_response(&mut self, itt: Itt, answer: TaskManagementAnswer) {
        if let Some((full, output)) = self.full_feature() {
            full.task_management_response(itt, answer, output);
        }
    }

    /// Answers `TargetEvent::SendTargets`, in as many PDUs as it takes.
    pub fn send_targets_response(&mut self, itt: Itt, targets: &[TargetRecord]) {
        if let Some((full, output)) = self.full_feature() {
            full.send_targets_response(itt, targets, output);
        }
    }

    /// Answers `TargetEvent::Fence`. True: nothing of that session is carried out any more.
    pub fn fence_response(&mut self, itt: Itt, fenced: bool) {
        if let Some((full, output)) = self.full_feature() {
            full.fence_response(itt, fenced, output);
        }
    }

    /// Answers `TargetEvent::Ports`.
    pub fn ports_response(&mut self, itt: Itt, ports: &[PortRecord]) {
        if let Some((full, output)) = self.full_feature() {
            full.ports_response(itt, ports, output);
        }
    }

    /// Answers `TargetEvent::Logout`; after `Closed` the connection ends (`TargetEvent::Closed`).
    pub fn logout_response(&mut self, itt: Itt, answer: LogoutAnswer) {
        if let Phase::FullFeature { full, .. } = &mut self.phase
            && full.logout_response(itt, answer, &mut self.output)
            && answer == LogoutAnswer::Closed
        {
            self.close(CloseReason::LoggedOut);
        }
    }

    /// Informs the initiator of an event of the target. Not before the login is complete.
    pub fn async_message(&mut self, event: AsyncEvent) {
        if let Some((full, output)) = self.full_feature() {
            full.async_message(event, output);
        }
    }

    /// The header of a PDU in a login.
    fn begin_login_request(&mut self) -> Result<(), Violation> {
        let Phase::Login { login, .. } = &mut self.phase else {
            return Ok(());
        };
        let (header, length) = (*self.receiver.bhs(), self.receiver.data_length());
        if login.ready.is_some() {
            return Err(wrong_phase("a PDU before the login was answered"));
        }
        if Opcode::of(header[0]) != Some(Opcode::LoginRequest) {
            // Before the first Login Request there is nothing to answer to.
            if login.request.is_some() {
                self.refuse_login(LoginRefusal::new(
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
            self.output.ledger.status = StatusNumbering::starting_at(request.exp_stat_sn);
        }
        login.request = Some(request);
        login.segment.clear();
        login.segment.resize(length, 0);
        Ok(())
    }

    fn login_request(&mut self) {
        let Phase::Login { login, .. } = &mut self.phase else {
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
                    &mut self.output,
                    &request,
                    &answer,
                    request.tsih,
                    status,
                    window,
                );
            }
            Ok(LoginStep::Ready(answer, outcome)) => {
                if login.machine.missing_digest() {
                    self.refuse_login(LoginRefusal::new(
                        LoginStatus::InitiatorError,
                        "a digest is required and was not agreed upon",
                    ));
                    return;
                }
                self.output.event(TargetEvent::LoginReady(outcome.clone()));
                login.ready = Some((answer, outcome));
            }
            Err(refusal) => self.refuse_login(refusal),
        }
    }
}

fn respond_to_login(
    output: &mut Output,
    request: &LoginRequest,
    answer: &Answer,
    tsih: Tsih,
    status: LoginStatus,
    window: Window,
) {
    let numbers: Numbers = output.numbers(window);
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
    output.send(response.write(), Buf::copy_of(&answer.text));
}
