//! The initiator's role: what it makes of the target's PDUs, and what its owner asks for.
//!
//! **Failure model.** ErrorRecoveryLevel 0: whatever is wrong ends the connection, and its tasks
//! are lost.

use super::event::{InitiatorCommand, InitiatorConfig, InitiatorEvent};
use super::login::{Failure, LoginInitiator, Say, Step};
use super::session::Session;
use crate::bhs::{
    AsyncMessage, Bhs, DataIn, LoginRequest, LoginResponse, LogoutResponse, NopIn, Opcode,
    ReadyToTransfer, Reject, ScsiResponse, StageBits, TaskManagementResponse, TextResponse,
};
use crate::connection::{
    CloseReason, Connection, Phase, Protocol, Silence, check_length, damaged_data, wrong_phase,
};
use crate::ids::{Itt, Lun, Tsih};
use crate::parameters::Parameters;
use crate::serial::{CmdSn, StatSn};
use crate::text::TextBuffer;
use crate::violation::{Violation, ViolationKind};
use units::{Buf, BufMut, Now};

/// Most text of one answer, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Bytes of the place where unwanted data goes.
const SINK_BYTES: usize = 16 << 10;

/// The longest data segment of a Login Response, in bytes.
const LOGIN_SEGMENT_BYTES_MAX: usize = 8192;

/// The connection shell with the initiator's half of the protocol in it.
pub type InitiatorConnection = Connection<Initiator>;

/// The initiator's part of a connection: its session outlives the phases, so that its owner can
/// still ask what became of its commands.
pub struct Initiator {
    config: InitiatorConfig,
    session: Session,
    scratch: Vec<u8>,
    sink: Box<[u8]>,
    current: Current,
    text: Option<(Itt, TextBuffer)>,
    /// The owner's ping that is under way.
    ping: Option<Itt>,
}

/// The PDU that is coming in.
enum Current {
    /// Payload goes to the scratch memory.
    Scratch,
    Data(DataIn),
    Discard,
}

const FIRST_CMD_SN: CmdSn = CmdSn(1);

impl Protocol for Initiator {
    type Event = InitiatorEvent;
    type Login = LoginInitiator;
    type FullFeature = ();
    type Ledger = ();

    fn closed(reason: CloseReason) -> InitiatorEvent {
        InitiatorEvent::Closed(reason)
    }

    fn begin(connection: &mut InitiatorConnection) -> Result<(), Violation> {
        let header = *connection.receiver.bhs();
        let length = connection.receiver.data_length();
        let role = &mut connection.role;
        let own = role.session.parameters.own_max_recv_data_segment_length as usize;
        let (limit, has_session) = match connection.phase {
            Phase::Login { .. } => (LOGIN_SEGMENT_BYTES_MAX, false),
            Phase::FullFeature { .. } => (own, true),
            Phase::Closing => (own, false),
        };
        check_length(length, limit)?;
        role.current = Current::Scratch;
        if has_session && Opcode::of(header[0]) == Some(Opcode::DataIn) {
            let pdu = DataIn::parse(&header)?;
            let known = role.session.check_data_in(&pdu)?;
            role.current = if known {
                Current::Data(pdu)
            } else {
                Current::Discard
            };
        } else {
            role.scratch.clear();
            role.scratch.resize(length, 0);
        }
        Ok(())
    }

    fn chunk(connection: &mut InitiatorConnection, done: usize, left: usize) -> &mut [u8] {
        connection.role.chunk(done, left)
    }

    fn finish(connection: &mut InitiatorConnection, intact: bool) -> Result<(), Violation> {
        if !intact {
            return Err(damaged_data());
        }
        let header = *connection.receiver.bhs();
        let current = core::mem::replace(&mut connection.role.current, Current::Discard);
        if let Phase::FullFeature { keepalive, .. } = &mut connection.phase {
            keepalive.received(connection.now);
        }
        match (&mut connection.phase, current) {
            (Phase::Closing, _) | (_, Current::Discard) => Ok(()),
            (Phase::Login { .. }, _) => connection.login_response(&header),
            (Phase::FullFeature { .. }, Current::Data(pdu)) => {
                let (session, output) = (&mut connection.role.session, &mut connection.output);
                let event = session.data_in(&pdu, &mut output.transmit)?;
                output.events.extend(event);
                Ok(())
            }
            (Phase::FullFeature { .. }, Current::Scratch) => connection.dispatch(&header),
        }
    }

    fn login_is_late(connection: &mut InitiatorConnection) {
        connection.login_failed(Failure {
            status: None,
            reason: "the login took too long".into(),
            redirect: None,
        });
    }

    fn ping(connection: &mut InitiatorConnection) {
        let ping = connection.role.session.nop_out(Lun::default(), None);
        connection.output.transmit.push(ping, Buf::empty());
    }
}

impl Initiator {
    fn chunk(&mut self, done: usize, left: usize) -> &mut [u8] {
        let sink = self
            .sink
            .get_mut(..left.min(SINK_BYTES))
            .unwrap_or_default();
        match &self.current {
            Current::Scratch => self.scratch.get_mut(done..).unwrap_or_default(),
            Current::Discard => sink,
            Current::Data(pdu) => {
                let at = (pdu.buffer_offset as usize).saturating_add(done);
                let buffer = self
                    .session
                    .tasks
                    .get_mut(pdu.itt)
                    .and_then(|task| task.data_in.as_mut());
                match buffer {
                    Some(buffer) => {
                        let chunk = buffer.chunk_mut(at);
                        let room = chunk.len().min(left);
                        chunk.get_mut(..room).unwrap_or_default()
                    }
                    None => sink,
                }
            }
        }
    }
}

impl Connection<Initiator> {
    /// A connection that was just made; its first request waits in [`transmit`](Self::transmit).
    #[must_use]
    pub fn new(now: Now, config: &InitiatorConfig) -> Self {
        let mut login = LoginInitiator::new(config);
        let first = login.first();
        let role = Initiator {
            config: config.clone(),
            session: Session::new(Parameters::default(), FIRST_CMD_SN, StatSn(0)),
            scratch: Vec::new(),
            sink: vec![0; SINK_BYTES].into(),
            current: Current::Discard,
            text: None,
            ping: None,
        };
        let phase = Phase::Login {
            login: Box::new(login),
            deadline: now.after(config.login_timeout),
        };
        let mut connection = Self::in_phase(now, role, phase);
        connection.say(first);
        connection
    }

    /// The values in force.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.role.session.parameters
    }

    /// Commands that have not ended.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.role.session.tasks.len()
    }

    /// Sends a command, at once or when the target's window opens: `data_out` is what it writes,
    /// `data_in` is where it reads to. One of them is empty (bidirectional commands are not
    /// supported here).
    ///
    /// # Panics
    /// If the session is not there yet: wait for `InitiatorEvent::LoggedIn`.
    pub fn submit(
        &mut self,
        command: InitiatorCommand,
        data_out: Buf,
        data_in: Option<BufMut>,
    ) -> Itt {
        assert!(
            !matches!(self.phase, Phase::Login { .. }),
            "commands need a session"
        );
        self.role
            .session
            .submit(command, data_out, data_in, &mut self.output.transmit)
    }

    /// Gives a task up (after ABORT TASK or a reset was answered): no response of it is expected
    /// any more.
    pub fn forget(&mut self, itt: Itt) {
        self.role.session.tasks.remove(itt);
    }

    /// Takes back a command that waits for the target's window: it has no number yet, and is never
    /// sent. False for one that is in what is sent already, or has ended.
    pub fn withdraw(&mut self, itt: Itt) -> bool {
        self.role.session.withdraw(itt)
    }

    /// Sends a task management function (RFC 7143 11.5.1), immediately.
    pub fn task_management(&mut self, function: u8, lun: Lun, referenced: Option<Itt>) -> Itt {
        let (itt, pdu) = self.role.session.task_management(function, lun, referenced);
        self.output.transmit.push(pdu, Buf::empty());
        itt
    }

    /// Sends a NOP-Out that asks for an answer (RFC 7143 11.18 "NOP-Out"), at once;
    /// [`InitiatorEvent::Pong`] is the answer. Only the last of several is reported.
    pub fn ping(&mut self) -> Itt {
        let (itt, pdu) = self.role.session.ping();
        self.role.ping = Some(itt);
        self.output.transmit.push(pdu, Buf::empty());
        itt
    }

    /// No byte of the command has left: it waits for the target's window, or in
    /// [`transmit`](Self::transmit). False for a command that has ended.
    #[must_use]
    pub fn is_unsent(&self, itt: Itt) -> bool {
        self.role.session.is_unsent(itt, &self.output.transmit)
    }

    /// Asks SendTargets: `All`, or a name.
    pub fn send_targets(&mut self, value: &str) -> Itt {
        self.text(&[("SendTargets", value)])
    }

    /// Sends a Text Request with these pairs (RFC 7143 11.10 "Text Request");
    /// [`InitiatorEvent::Text`] is the answer. One exchange at a time: a new one takes the place
    /// of one that is not answered.
    pub fn text(&mut self, pairs: &[(&str, &str)]) -> Itt {
        let itt = self.role.session.new_itt();
        let mut text = Vec::new();
        for (key, value) in pairs {
            crate::text::push(&mut text, key, value);
        }
        self.role.text = Some((itt, TextBuffer::new(TEXT_BYTES_MAX)));
        let pdu = self.role.session.text(itt, None);
        self.output.transmit.push(pdu, Buf::from(text));
        itt
    }

    /// Asks to close the session.
    pub fn logout(&mut self) {
        let pdu = self.role.session.logout(self.role.config.cid);
        self.output.transmit.push(pdu, Buf::empty());
    }

    fn say(&mut self, say: Say) {
        let request = LoginRequest {
            immediate: true,
            transit: say.transit.is_some(),
            continues: false,
            stage: StageBits(say.stage),
            next_stage: StageBits(say.transit.unwrap_or(0)),
            version_max: 0,
            version_min: 0,
            data_segment_length: 0,
            isid: self.role.config.isid,
            tsih: Tsih(0),
            itt: Itt::from_wire(0).expect("0 is not the reserved tag"),
            cid: self.role.config.cid,
            cmd_sn: FIRST_CMD_SN,
            exp_stat_sn: self.role.session.exp_stat_sn,
        };
        self.output
            .transmit
            .push(request.write(), Buf::from(say.text));
    }

    fn login_response(&mut self, header: &Bhs) -> Result<(), Violation> {
        let Phase::Login { login, .. } = &mut self.phase else {
            return Ok(());
        };
        if Opcode::of(header[0]) != Some(Opcode::LoginResponse) {
            return Err(wrong_phase("another PDU than Login Response during login"));
        }
        let response = LoginResponse::parse(header)?;
        self.role.session.exp_stat_sn = response.numbers.stat_sn.next();
        match login.response(&response, &self.role.scratch) {
            Ok(Step::Say(say)) => self.say(say),
            Ok(Step::Done {
                tsih,
                parameters,
                portal_group_tag,
            }) => {
                let exp_stat_sn = self.role.session.exp_stat_sn;
                self.role.session = Session::new((*parameters).clone(), FIRST_CMD_SN, exp_stat_sn);
                self.role.session.max_cmd_sn = response.numbers.max_cmd_sn;
                let silence = Silence {
                    ping_after: self.role.config.ping_after,
                    ping_timeout: self.role.config.ping_timeout,
                };
                let digests = (parameters.header_digest, parameters.data_digest);
                self.enter_full_feature((), silence, digests);
                self.output.events.push_back(InitiatorEvent::LoggedIn {
                    tsih,
                    parameters,
                    portal_group_tag,
                });
            }
            Err(failure) => self.login_failed(failure),
        }
        Ok(())
    }

    /// A PDU that is neither Data-In nor of the login.
    fn dispatch(&mut self, header: &Bhs) -> Result<(), Violation> {
        let unexpected = Violation::new(
            ViolationKind::UnknownOpcode,
            "11.2.1.2 \"Opcode\"",
            "a PDU that an initiator does not take",
        );
        let transmit = &mut self.output.transmit;
        match Opcode::of(header[0]).ok_or(unexpected)? {
            Opcode::ScsiResponse => {
                let pdu = ScsiResponse::parse(header)?;
                let event = self
                    .role
                    .session
                    .response(&pdu, &self.role.scratch, transmit);
                self.output.events.extend(event);
            }
            Opcode::ReadyToTransfer => {
                self.role
                    .session
                    .ready_to_transfer(&ReadyToTransfer::parse(header)?, transmit)?;
            }
            Opcode::NopIn => self.nop_in(&NopIn::parse(header)),
            Opcode::TaskManagementResponse => {
                let pdu = TaskManagementResponse::parse(header)?;
                self.role.session.on_numbers(pdu.numbers, true, transmit);
                let (itt, response) = (pdu.itt, pdu.response);
                self.output
                    .events
                    .push_back(InitiatorEvent::TaskManagement { itt, response });
            }
            Opcode::TextResponse => self.text_response(&TextResponse::parse(header)?)?,
            Opcode::LogoutResponse => {
                let pdu = LogoutResponse::parse(header)?;
                self.output.events.push_back(InitiatorEvent::LoggedOut {
                    response: pdu.response,
                });
                self.close(CloseReason::LoggedOut);
            }
            Opcode::AsyncMessage => {
                let pdu = AsyncMessage::parse(header);
                self.role.session.on_numbers(pdu.numbers, true, transmit);
                let parameters = [pdu.parameter_1, pdu.parameter_2, pdu.parameter_3];
                self.output.events.push_back(InitiatorEvent::Async {
                    event: pdu.event,
                    parameters,
                });
            }
            Opcode::Reject => {
                let pdu = Reject::parse(header);
                self.role.session.on_numbers(pdu.numbers, true, transmit);
                let header = self.role.scratch.first_chunk().copied();
                self.output.events.push_back(InitiatorEvent::Rejected {
                    reason: pdu.reason,
                    header,
                });
            }
            Opcode::DataIn
            | Opcode::LoginResponse
            | Opcode::NopOut
            | Opcode::ScsiCommand
            | Opcode::TaskManagementRequest
            | Opcode::LoginRequest
            | Opcode::TextRequest
            | Opcode::DataOut
            | Opcode::LogoutRequest
            | Opcode::SnackRequest => return Err(unexpected),
        }
        Ok(())
    }

    fn nop_in(&mut self, pdu: &NopIn) {
        self.role
            .session
            .on_numbers(pdu.numbers, pdu.itt.is_some(), &mut self.output.transmit);
        if let Some(itt) = self.role.ping.take_if(|ping| pdu.itt == Some(*ping)) {
            self.output.events.push_back(InitiatorEvent::Pong { itt });
        }
        if pdu.ttt.is_some() {
            let pong = self.role.session.nop_out(pdu.lun, pdu.ttt);
            self.output.transmit.push(pong, Buf::empty());
        }
    }

    fn text_response(&mut self, pdu: &TextResponse) -> Result<(), Violation> {
        self.role
            .session
            .on_numbers(pdu.numbers, true, &mut self.output.transmit);
        let Some((itt, mut text)) = self.role.text.take() else {
            return Ok(());
        };
        text.append(&self.role.scratch)?;
        if !pdu.last && pdu.ttt.is_some() {
            let more = self.role.session.text(itt, pdu.ttt);
            self.output.transmit.push(more, Buf::empty());
            self.role.text = Some((itt, text));
            return Ok(());
        }
        self.output.events.push_back(InitiatorEvent::Text {
            itt,
            text: text.take(),
        });
        Ok(())
    }

    fn login_failed(&mut self, failure: Failure) {
        let Failure {
            status,
            reason,
            redirect,
        } = failure;
        self.output.events.push_back(InitiatorEvent::LoginFailed {
            status,
            reason,
            redirect,
        });
        self.close(CloseReason::LoginFailed);
    }
}
