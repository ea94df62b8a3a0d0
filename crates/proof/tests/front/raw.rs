//! A peer that writes PDUs by hand: for what no honest initiator sends.

use env::{CoreHandle, Stream};
use iscsi::bhs::{
    Attribute, Bhs, DataOut, LoginRequest, LoginResponse, NopOut, Opcode, ScsiCommand, StageBits,
    TaskManagementRequest,
};
use iscsi::{Cid, CmdSn, DataSn, Isid, Itt, Lun, StatSn, Tsih, Ttt};
use std::future::poll_fn;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;

/// A connection without any machine.
pub(crate) struct Raw {
    stream: Rc<dyn Stream>,
    pub tsih: u16,
    pub isid: Isid,
    /// What is sent as ExpStatSN; never advances of itself.
    pub exp_stat_sn: StatSn,
}

/// A PDU of the target.
pub(crate) struct Pdu {
    pub header: Bhs,
    pub data: Vec<u8>,
}

impl Pdu {
    fn word(&self, at: usize) -> u32 {
        let [a, b, c, d] = [0, 1, 2, 3].map(|byte| self.header[at + byte]);
        u32::from_be_bytes([a, b, c, d])
    }

    pub(crate) fn opcode(&self) -> Opcode {
        Opcode::of(self.header[0]).expect("an opcode that exists")
    }

    pub(crate) fn itt(&self) -> u32 {
        self.word(16)
    }

    pub(crate) fn ttt(&self) -> Option<Ttt> {
        Ttt::from_wire(self.word(20))
    }

    pub(crate) fn max_cmd_sn(&self) -> u32 {
        self.word(32)
    }

    /// Status of a SCSI Response, or of a Data-In that has it.
    pub(crate) fn status(&self) -> u8 {
        self.header[3]
    }

    /// Response of a Task Management Function Response.
    pub(crate) fn response(&self) -> u8 {
        self.header[2]
    }
}

pub(crate) fn itt(number: u32) -> Itt {
    Itt::from_wire(number).expect("a tag")
}

/// A ping that wants an answer, outside of the order of commands.
pub(crate) fn ping() -> Bhs {
    let ping = NopOut {
        immediate: true,
        data_segment_length: 0,
        lun: Lun::default(),
        itt: Some(itt(1)),
        ttt: None,
        cmd_sn: CmdSn(1),
        exp_stat_sn: StatSn(0),
    };
    ping.write()
}

impl Raw {
    pub(crate) async fn connect(core: &CoreHandle, portal: SocketAddr) -> Self {
        let stream = core.net().connect(portal, None).await;
        Self {
            stream: stream.expect("the portal is there"),
            tsih: 0,
            isid: Isid([0x80, 0, 0, 0, 9, 9]),
            exp_stat_sn: StatSn(0),
        }
    }

    /// Connects and logs in without any authentication; the first CmdSN is 1.
    pub(crate) async fn login(
        core: &CoreHandle,
        portal: SocketAddr,
        initiator: &str,
        target: &str,
        keys: &str,
    ) -> Self {
        let mut raw = Self::connect(core, portal).await;
        let text =
            format!("InitiatorName={initiator}\0TargetName={target}\0SessionType=Normal\0{keys}");
        let (status, _) = raw.login_step(1, Some(3), 1, &text).await;
        assert_eq!(status, (0, 0), "the login is taken");
        raw
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        let mut sent = 0;
        while sent < bytes.len() {
            let n = poll_fn(|cx| self.stream.poll_send(cx, &[IoSlice::new(&bytes[sent..])])).await;
            match n {
                Ok(n) => sent += n,
                Err(_) => return,
            }
        }
    }

    /// What sends beside what is received here.
    pub(crate) fn sender(&self) -> Self {
        Self {
            stream: Rc::clone(&self.stream),
            ..*self
        }
    }

    /// Takes one byte, if it is here.
    pub(crate) fn take_a_byte(&self) -> bool {
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        let mut byte = [0];
        matches!(
            self.stream.poll_recv(&mut cx, &mut byte),
            Poll::Ready(Ok(1))
        )
    }

    /// Sends a PDU; the length of its data is filled in.
    pub(crate) async fn send(&mut self, mut header: Bhs, data: &[u8]) {
        let length = u32::try_from(data.len())
            .expect("a short PDU")
            .to_be_bytes();
        header[5..8].copy_from_slice(&length[1..]);
        let mut bytes = header.to_vec();
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.send_bytes(&bytes).await;
    }

    async fn fill(&mut self, into: &mut [u8]) -> bool {
        let mut got = 0;
        while got < into.len() {
            match poll_fn(|cx| self.stream.poll_recv(cx, &mut into[got..])).await {
                Ok(0) | Err(_) => return false,
                Ok(n) => got += n,
            }
        }
        true
    }

    /// The next PDU; `None` where the connection is over.
    pub(crate) async fn receive(&mut self) -> Option<Pdu> {
        let mut header = [0; 48];
        if !self.fill(&mut header).await {
            return None;
        }
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; length.next_multiple_of(4)];
        if !self.fill(&mut data).await {
            return None;
        }
        data.truncate(length);
        Some(Pdu { header, data })
    }

    /// The next PDU, if some of it is here.
    pub(crate) async fn receive_now(&mut self) -> Option<Pdu> {
        let mut first = [0];
        let waker = std::task::Waker::noop();
        let mut cx = std::task::Context::from_waker(waker);
        let Poll::Ready(Ok(1)) = self.stream.poll_recv(&mut cx, &mut first) else {
            return None;
        };
        let mut header = [0; 48];
        header[0] = first[0];
        if !self.fill(&mut header[1..]).await {
            return None;
        }
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let mut data = vec![0; length.next_multiple_of(4)];
        if !self.fill(&mut data).await {
            return None;
        }
        data.truncate(length);
        Some(Pdu { header, data })
    }

    /// The next PDU with this tag; others are dropped.
    pub(crate) async fn receive_for(&mut self, tag: u32) -> Pdu {
        loop {
            let pdu = self.receive().await.expect("the connection stands");
            if pdu.itt() == tag {
                return pdu;
            }
        }
    }

    /// Reads what is left until the end of the connection.
    pub(crate) async fn is_closed(&mut self) -> bool {
        while self.receive().await.is_some() {}
        true
    }

    /// The other side has closed, as far as is known now.
    pub(crate) fn is_closed_now(&self) -> bool {
        let waker = std::task::Waker::noop();
        let mut cx = std::task::Context::from_waker(waker);
        let mut byte = [0];
        matches!(
            self.stream.poll_recv(&mut cx, &mut byte),
            Poll::Ready(Ok(0) | Err(_))
        )
    }

    /// One exchange of a login: status and text of the answer.
    pub(crate) async fn login_step(
        &mut self,
        stage: u8,
        transit: Option<u8>,
        cmd_sn: u32,
        text: &str,
    ) -> ((u8, u8), String) {
        let request = LoginRequest {
            immediate: true,
            transit: transit.is_some(),
            continues: false,
            stage: StageBits(stage),
            next_stage: StageBits(transit.unwrap_or(0)),
            version_max: 0,
            version_min: 0,
            data_segment_length: 0,
            isid: self.isid,
            tsih: Tsih(self.tsih),
            itt: itt(0),
            cid: Cid(0),
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.exp_stat_sn,
        };
        self.send(request.write(), text.as_bytes()).await;
        let pdu = self.receive().await.expect("a login response");
        let response = LoginResponse::parse(&pdu.header).expect("a login response");
        let text = String::from_utf8(pdu.data).expect("text");
        ((response.status_class, response.status_detail), text)
    }

    /// Logs in with SHA-256 up to the challenge, and gives it with its identifier.
    pub(crate) async fn chap_challenge(&mut self, initiator: &str, target: &str) -> (u8, String) {
        let text = format!(
            "InitiatorName={initiator}\0TargetName={target}\0SessionType=Normal\0AuthMethod=CHAP\0"
        );
        let (status, _) = self.login_step(0, None, 0, &text).await;
        assert_eq!(status, (0, 0));
        let (status, text) = self.login_step(0, None, 0, "CHAP_A=7\0").await;
        assert_eq!(status, (0, 0));
        let value = |key| text.split('\0').find_map(|pair| pair.strip_prefix(key));
        let identifier = value("CHAP_I=").and_then(|value| value.parse().ok());
        let challenge = value("CHAP_C=").expect("a challenge").to_owned();
        (identifier.expect("an identifier"), challenge)
    }

    /// Sends a command without data, or with `data` as immediate data of `total` bytes.
    pub(crate) async fn command(
        &mut self,
        tag: u32,
        cmd_sn: u32,
        immediate: bool,
        cdb: &[u8],
        moves: Moves<'_>,
    ) {
        let mut whole = [0; 16];
        whole[..cdb.len()].copy_from_slice(cdb);
        let (reads, writes, expected, data): (_, _, _, &[u8]) = match moves {
            Moves::Nothing => (false, false, 0, &[]),
            Moves::In(bytes) => (true, false, bytes, &[]),
            Moves::Out(bytes, data) => (false, true, bytes, data),
        };
        let pdu = ScsiCommand {
            immediate,
            last: true,
            reads,
            writes,
            attribute: Attribute::Simple,
            total_ahs_length: 0,
            data_segment_length: 0,
            lun: Lun::default(),
            itt: itt(tag),
            expected_data_transfer_length: expected,
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.exp_stat_sn,
            cdb: whole,
        };
        self.send(pdu.write(), data).await;
    }

    /// Sends a write of `total` bytes with `data` at once, and says that more comes unasked.
    pub(crate) async fn command_and_more(
        &mut self,
        tag: u32,
        cmd_sn: u32,
        cdb: &[u8],
        total: u32,
        data: &[u8],
    ) {
        let mut whole = [0; 16];
        whole[..cdb.len()].copy_from_slice(cdb);
        let pdu = ScsiCommand {
            immediate: false,
            last: false,
            reads: false,
            writes: true,
            attribute: Attribute::Simple,
            total_ahs_length: 0,
            data_segment_length: 0,
            lun: Lun::default(),
            itt: itt(tag),
            expected_data_transfer_length: total,
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.exp_stat_sn,
            cdb: whole,
        };
        self.send(pdu.write(), data).await;
    }

    /// Sends a task management function, immediately.
    pub(crate) async fn function(
        &mut self,
        tag: u32,
        cmd_sn: u32,
        function: u8,
        referenced: (u32, u32),
    ) {
        let pdu = TaskManagementRequest {
            immediate: true,
            function,
            lun: Lun::default(),
            itt: itt(tag),
            referenced_itt: Itt::from_wire(referenced.0),
            cmd_sn: CmdSn(cmd_sn),
            exp_stat_sn: self.exp_stat_sn,
            ref_cmd_sn: CmdSn(referenced.1),
            exp_data_sn: 0,
        };
        self.send(pdu.write(), &[]).await;
    }

    /// Answers an R2T with all of `data` in one PDU.
    pub(crate) async fn data_out(&mut self, tag: u32, ttt: Option<Ttt>, offset: u32, data: &[u8]) {
        self.data_piece(tag, ttt, 0, offset, true, data).await;
    }

    /// Sends one Data-Out PDU of several.
    pub(crate) async fn data_piece(
        &mut self,
        tag: u32,
        ttt: Option<Ttt>,
        data_sn: u32,
        offset: u32,
        last: bool,
        data: &[u8],
    ) {
        let pdu = DataOut {
            last,
            data_segment_length: 0,
            lun: Lun::default(),
            itt: itt(tag),
            ttt,
            exp_stat_sn: self.exp_stat_sn,
            data_sn: DataSn(data_sn),
            buffer_offset: offset,
        };
        self.send(pdu.write(), data).await;
    }
}

/// What a command moves.
#[derive(Clone, Copy)]
pub(crate) enum Moves<'a> {
    Nothing,
    /// So many bytes to the host.
    In(u32),
    /// So many bytes from the host, and the first of them at once.
    Out(u32, &'a [u8]),
}

/// EXTENDED COPY (LID1) of eight blocks from LUN 0 to LUN 1.
pub(crate) fn copy_list() -> Vec<u8> {
    let mut list = vec![7, 0x10, 0, 64, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0];
    for unit in 0..2 {
        let mut target = vec![0xe4, 0, 0, 0, 1, 3, 0, 16];
        target.extend([0x60; 14]);
        target.extend([0, unit, 0, 0, 0, 0, 0, 0, 2, 0]);
        list.extend(&target);
    }
    list.extend([2, 0, 0, 24, 0, 0, 0, 1, 0, 0, 0, 8]);
    list.extend([0; 16]);
    list
}
