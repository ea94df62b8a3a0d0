//! A connection of the initiator: the same way of driving as
//! [`crate::target_side::TargetConnection`].
//!
//! **Failure model.** ErrorRecoveryLevel 0: whatever is wrong ends the connection, and its tasks
//! are lost.

use super::event::{CloseReason, Command, Event, InitiatorConfig};
use super::login::{Failure, LoginInitiator, Say, Step};
use super::session::Session;
use crate::bhs::{
    AsyncMessage, Bhs, DataIn, LoginRequest, LoginResponse, LogoutResponse, NopIn, Opcode,
    ReadyToTransfer, Reject, ScsiResponse, StageBits, TaskManagementResponse, TextResponse,
};
use crate::ids::{Itt, Lun, Tsih};
use crate::keepalive::{Due, Keepalive};
use crate::parameters::Parameters;
use crate::receive::{HeaderProgress, Receiver, Want};
use crate::serial::{CmdSn, StatSn};
use crate::text::TextBuffer;
use crate::transmit::Transmit;
use crate::violation::{Violation, ViolationKind};
use std::collections::VecDeque;
use units::{Buf, BufMut, Now};

/// Most text of one answer, in bytes.
const TEXT_BYTES_MAX: usize = 16 << 20;
/// Bytes of the place where unwanted data goes.
const SINK_BYTES: usize = 16 << 10;

/// A connection of the initiator.
pub struct InitiatorConnection {
    config: InitiatorConfig,
    receiver: Receiver,
    transmit: Transmit,
    events: VecDeque<Event>,
    phase: Phase,
    session: Session,
    keepalive: Keepalive,
    deadline: Now,
    now: Now,
    scratch: Vec<u8>,
    sink: Box<[u8]>,
    current: Current,
    text: Option<(Itt, TextBuffer)>,
    /// The owner's ping that is under way.
    ping: Option<Itt>,
}

enum Phase {
    Login(Box<LoginInitiator>),
    FullFeature,
    Closing,
}

/// The PDU that is coming in.
enum Current {
    /// Payload goes to the scratch memory.
    Scratch,
    Data(DataIn),
    Discard,
}

const FIRST_CMD_SN: CmdSn = CmdSn(1);

impl InitiatorConnection {
    /// A connection that was just made; its first request waits in [`transmit`](Self::transmit).
    #[must_use]
    pub fn new(now: Now, config: &InitiatorConfig) -> Self {
        let mut login = LoginInitiator::new(config);
        let first = login.first();
        let mut connection = Self {
            config: config.clone(),
            receiver: Receiver::new(),
            transmit: Transmit::default(),
            events: VecDeque::new(),
            phase: Phase::Login(Box::new(login)),
            session: Session::new(Parameters::default(), FIRST_CMD_SN, StatSn(0)),
            keepalive: Keepalive::new(now, config.ping_after, config.ping_timeout),
            deadline: now.after(config.login_timeout),
            now,
            scratch: Vec::new(),
            sink: vec![0; SINK_BYTES].into(),
            current: Current::Discard,
            text: None,
            ping: None,
        };
        connection.say(first);
        connection
    }

    /// What to hand in next; see [`crate::target_side::TargetConnection::want`].
    #[must_use]
    pub fn want(&self) -> Want {
        match self.phase {
            Phase::Closing => Want::Nothing,
            Phase::Login(_) | Phase::FullFeature => self.receiver.want(),
        }
    }

    /// The bytes of [`Want::Header`].
    ///
    /// # Errors
    /// The breach that ends the connection (also in `Event::Closed`).
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

    /// Where the next payload bytes go while [`want`](Self::want) is `Data`.
    #[must_use]
    pub fn data_chunk(&mut self) -> &mut [u8] {
        let Want::Data { bytes: left } = self.receiver.want() else {
            return &mut [];
        };
        let done = self.receiver.data_done();
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

    /// The first `n` bytes of [`data_chunk`](Self::data_chunk) have been filled.
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
        if self.receiver.data(n) {
            let finished = self.finish(true);
            let _ = self.settle(finished);
        }
    }

    /// The bytes of [`Want::Trailer`].
    ///
    /// # Errors
    /// As [`receive_header`](Self::receive_header).
    pub fn receive_trailer(&mut self, now: Now, bytes: &[u8]) -> Result<(), Violation> {
        self.now = now;
        let intact = self.receiver.trailer(bytes);
        let finished = self.finish(intact);
        self.settle(finished)
    }

    /// Time has come to `now`.
    pub fn tick(&mut self, now: Now) {
        self.now = now;
        match &self.phase {
            Phase::Login(_) if self.deadline <= now => self.login_failed(Failure {
                status: None,
                reason: "the login took too long".into(),
                redirect: None,
            }),
            Phase::FullFeature => match self.keepalive.due(now) {
                Due::Nothing => {}
                Due::Ping => {
                    let ping = self.session.nop_out(Lun::default(), None);
                    self.transmit.push(ping, Buf::empty());
                }
                Due::GiveUp => self.close(CloseReason::KeepaliveTimedOut),
            },
            Phase::Login(_) | Phase::Closing => {}
        }
    }

    /// When [`tick`](Self::tick) has something to do.
    #[must_use]
    pub fn next_tick(&self) -> Option<Now> {
        match self.phase {
            Phase::Login(_) => Some(self.deadline),
            Phase::FullFeature => self.keepalive.next(),
            Phase::Closing => None,
        }
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What waits to be sent.
    #[must_use]
    pub fn transmit(&self) -> &Transmit {
        &self.transmit
    }

    /// The next `bytes` bytes of [`transmit`](Self::transmit) were given to the socket.
    pub fn sent(&mut self, bytes: usize) {
        self.transmit.sent(bytes);
    }

    /// The values in force.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.session.parameters
    }

    /// Commands that have not ended.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.session.tasks.len()
    }

    /// Sends a command, at once or when the target's window opens: `data_out` is what it writes,
    /// `data_in` is where it reads to. One of them is empty (bidirectional commands are not
    /// supported here).
    ///
    /// # Panics
    /// If the session is not there yet: wait for `Event::LoggedIn`.
    pub fn submit(&mut self, command: Command, data_out: Buf, data_in: Option<BufMut>) -> Itt {
        assert!(
            !matches!(self.phase, Phase::Login(_)),
            "commands need a session"
        );
        self.session
            .submit(command, data_out, data_in, &mut self.transmit)
    }

    /// Gives a task up (after ABORT TASK or a reset was answered): no response of it is expected
    /// any more.
    pub fn forget(&mut self, itt: Itt) {
        self.session.tasks.remove(itt);
    }

    /// Takes back a command that waits for the target's window: it has no number yet, and is never
    /// sent. False for one that is in what is sent already, or has ended.
    pub fn withdraw(&mut self, itt: Itt) -> bool {
        self.session.withdraw(itt)
    }

    /// Sends a task management function (RFC 7143 11.5.1), immediately.
    pub fn task_management(&mut self, function: u8, lun: Lun, referenced: Option<Itt>) -> Itt {
        let (itt, pdu) = self.session.task_management(function, lun, referenced);
        self.transmit.push(pdu, Buf::empty());
        itt
    }

    /// Sends a NOP-Out that asks for an answer (RFC 7143 11.18 "NOP-Out"), at once; [`Event::Pong`]
    /// is the answer. Only the last of several is told.
    pub fn ping(&mut self) -> Itt {
        let (itt, pdu) = self.session.ping();
        self.ping = Some(itt);
        self.transmit.push(pdu, Buf::empty());
        itt
    }

    /// No byte of the command has left: it waits for the target's window, or in
    /// [`transmit`](Self::transmit). False for a command that has ended.
    #[must_use]
    pub fn is_unsent(&self, itt: Itt) -> bool {
        self.session.is_unsent(itt, &self.transmit)
    }

    /// Asks SendTargets: `All`, or a name.
    pub fn send_targets(&mut self, value: &str) -> Itt {
        self.text(&[("SendTargets", value)])
    }

    /// Sends a Text Request with these pairs (RFC 7143 11.10 "Text Request"); [`Event::Text`] is
    /// the answer. One exchange at a time: a new one takes the place of one that is not answered.
    pub fn text(&mut self, pairs: &[(&str, &str)]) -> Itt {
        let itt = self.session.new_itt();
        let mut text = Vec::new();
        for (key, value) in pairs {
            crate::text::push(&mut text, key, value);
        }
        self.text = Some((itt, TextBuffer::new(TEXT_BYTES_MAX)));
        let pdu = self.session.text(itt, None);
        self.transmit.push(pdu, Buf::from(text));
        itt
    }

    /// Asks to close the session.
    pub fn logout(&mut self) {
        let pdu = self.session.logout(self.config.cid);
        self.transmit.push(pdu, Buf::empty());
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
            isid: self.config.isid,
            tsih: Tsih(0),
            itt: Itt::from_wire(0).expect("0 is not the reserved tag"),
            cid: self.config.cid,
            cmd_sn: FIRST_CMD_SN,
            exp_stat_sn: self.session.exp_stat_sn,
        };
        self.transmit.push(request.write(), Buf::from(say.text));
    }

    fn begin(&mut self) -> Result<(), Violation> {
        let (header, length) = (*self.receiver.bhs(), self.receiver.data_length());
        let limit = match self.phase {
            Phase::Login(_) => 8192,
            Phase::FullFeature | Phase::Closing => {
                self.session.parameters.own_max_recv_data_segment_length as usize
            }
        };
        if length > limit {
            return Err(Violation::new(
                ViolationKind::DataSegmentTooLong,
                "13.12 \"MaxRecvDataSegmentLength\"",
                "a data segment longer than we declared to receive",
            ));
        }
        self.current = Current::Scratch;
        if Opcode::of(header[0]) == Some(Opcode::DataIn) && matches!(self.phase, Phase::FullFeature)
        {
            let pdu = DataIn::parse(&header)?;
            let known = self.session.check_data_in(&pdu)?;
            self.current = if known {
                Current::Data(pdu)
            } else {
                Current::Discard
            };
        } else {
            self.scratch.clear();
            self.scratch.resize(length, 0);
        }
        if length == 0 {
            self.finish(true)
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, intact: bool) -> Result<(), Violation> {
        if !intact {
            return Err(Violation::new(
                ViolationKind::DataDigest,
                "7.7 \"Digest Errors\"",
                "data does not match its digest",
            ));
        }
        self.keepalive.heard(self.now);
        let header = *self.receiver.bhs();
        let current = core::mem::replace(&mut self.current, Current::Discard);
        match (&mut self.phase, current) {
            (Phase::Closing, _) | (_, Current::Discard) => Ok(()),
            (Phase::Login(_), _) => self.login_response(&header),
            (Phase::FullFeature, Current::Data(pdu)) => {
                let event = self.session.data_in(&pdu, &mut self.transmit)?;
                self.events.extend(event);
                Ok(())
            }
            (Phase::FullFeature, Current::Scratch) => self.dispatch(&header),
        }
    }

    fn login_response(&mut self, header: &Bhs) -> Result<(), Violation> {
        let Phase::Login(login) = &mut self.phase else {
            return Ok(());
        };
        if Opcode::of(header[0]) != Some(Opcode::LoginResponse) {
            return Err(Violation::new(
                ViolationKind::WrongPhase,
                "6.3 \"Login Phase\"",
                "another PDU than Login Response during login",
            ));
        }
        let response = LoginResponse::parse(header)?;
        self.session.exp_stat_sn = response.numbers.stat_sn.next();
        match login.response(&response, &self.scratch) {
            Ok(Step::Say(say)) => self.say(say),
            Ok(Step::Done {
                tsih,
                parameters,
                portal_group_tag,
            }) => {
                let exp_stat_sn = self.session.exp_stat_sn;
                self.session = Session::new((*parameters).clone(), FIRST_CMD_SN, exp_stat_sn);
                self.session.max_cmd_sn = response.numbers.max_cmd_sn;
                let (header, data) = (parameters.header_digest, parameters.data_digest);
                self.receiver.set_digests(header, data);
                self.transmit.set_digests(header, data);
                self.keepalive =
                    Keepalive::new(self.now, self.config.ping_after, self.config.ping_timeout);
                self.phase = Phase::FullFeature;
                self.events.push_back(Event::LoggedIn {
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
        let transmit = &mut self.transmit;
        match Opcode::of(header[0]).ok_or(unexpected)? {
            Opcode::ScsiResponse => {
                let pdu = ScsiResponse::parse(header)?;
                let event = self.session.response(&pdu, &self.scratch, transmit);
                self.events.extend(event);
            }
            Opcode::ReadyToTransfer => {
                self.session
                    .ready_to_transfer(&ReadyToTransfer::parse(header)?, transmit)?;
            }
            Opcode::NopIn => self.nop_in(&NopIn::parse(header)),
            Opcode::TaskManagementResponse => {
                let pdu = TaskManagementResponse::parse(header)?;
                self.session.hear(pdu.numbers, true, transmit);
                let (itt, response) = (pdu.itt, pdu.response);
                self.events
                    .push_back(Event::TaskManagement { itt, response });
            }
            Opcode::TextResponse => self.text_response(&TextResponse::parse(header)?)?,
            Opcode::LogoutResponse => {
                let pdu = LogoutResponse::parse(header)?;
                self.events.push_back(Event::LoggedOut {
                    response: pdu.response,
                });
                self.close(CloseReason::LoggedOut);
            }
            Opcode::AsyncMessage => {
                let pdu = AsyncMessage::parse(header);
                self.session.hear(pdu.numbers, true, transmit);
                let parameters = [pdu.parameter_1, pdu.parameter_2, pdu.parameter_3];
                self.events.push_back(Event::Async {
                    event: pdu.event,
                    parameters,
                });
            }
            Opcode::Reject => {
                let pdu = Reject::parse(header);
                self.session.hear(pdu.numbers, true, transmit);
                let header = self.scratch.first_chunk().copied();
                self.events.push_back(Event::Rejected {
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
        self.session
            .hear(pdu.numbers, pdu.itt.is_some(), &mut self.transmit);
        if let Some(itt) = self.ping.take_if(|ping| pdu.itt == Some(*ping)) {
            self.events.push_back(Event::Pong { itt });
        }
        if pdu.ttt.is_some() {
            let pong = self.session.nop_out(pdu.lun, pdu.ttt);
            self.transmit.push(pong, Buf::empty());
        }
    }

    fn text_response(&mut self, pdu: &TextResponse) -> Result<(), Violation> {
        self.session.hear(pdu.numbers, true, &mut self.transmit);
        let Some((itt, mut text)) = self.text.take() else {
            return Ok(());
        };
        text.append(&self.scratch)?;
        if !pdu.last && pdu.ttt.is_some() {
            let more = self.session.text(itt, pdu.ttt);
            self.transmit.push(more, Buf::empty());
            self.text = Some((itt, text));
            return Ok(());
        }
        self.events.push_back(Event::Text {
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
        self.events.push_back(Event::LoginFailed {
            status,
            reason,
            redirect,
        });
        self.close(CloseReason::LoginFailed);
    }

    /// Every breach ends the connection: with ErrorRecoveryLevel 0 there is nothing else.
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
            self.events.push_back(Event::Closed(reason));
        }
    }
}
