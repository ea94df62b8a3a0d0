//! An initiator that sends any command through one session: a name, an ISID, and bytes as RFC 7143
//! has them. It knows nothing of the programs that are tested.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const LOGIN: u8 = 0x43;
const SCSI_COMMAND: u8 = 0x01;
const NOP_OUT: u8 = 0x40;

/// How long it waits for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);

/// A session.
pub(crate) struct Initiator {
    stream: TcpStream,
    command_number: u32,
    status_number: u32,
    tag: u32,
}

/// What a command ended with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    pub(crate) status: u8,
    /// Sense key, additional sense code and its qualifier.
    pub(crate) sense: Option<[u8; 3]>,
    pub(crate) data: Vec<u8>,
}

fn be32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}

fn be16(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(bytes[..2].try_into().unwrap())
}

impl Initiator {
    /// Logs in at a portal; `None`: nobody answers there.
    pub(crate) fn login(portal: &str, name: &str, target: &str) -> Option<Self> {
        let stream = TcpStream::connect(portal).ok()?;
        stream.set_read_timeout(Some(ANSWER_TIME_MAX)).unwrap();
        let mut session = Self {
            stream,
            command_number: 1,
            status_number: 0,
            tag: 1,
        };
        let keys = [
            &*format!("InitiatorName={name}"),
            &format!("TargetName={target}"),
            "SessionType=Normal",
            "MaxRecvDataSegmentLength=262144",
        ];
        let text = keys.map(|key| format!("{key}\0")).concat();
        let mut head = [0; 48];
        // From operational negotiation to the full feature phase.
        (head[0], head[1]) = (LOGIN, 0x87);
        head[8..14].copy_from_slice(&[0x80, 0, 0, 1, 0, 1]);
        head[24..28].copy_from_slice(&session.command_number.to_be_bytes());
        session.send(head, text.as_bytes())?;
        let (head, _) = session.receive()?;
        assert_eq!((head[0], head[1] & 0x83), (0x23, 0x83), "it is let in");
        assert_eq!((head[36], head[37]), (0, 0), "the login is taken");
        Some(session)
    }

    fn send(&mut self, mut head: [u8; 48], data: &[u8]) -> Option<()> {
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        head[5..8].copy_from_slice(&length[1..]);
        let tag = if head[0] == NOP_OUT {
            u32::MAX
        } else {
            self.tag
        };
        head[16..20].copy_from_slice(&tag.to_be_bytes());
        head[28..32].copy_from_slice(&self.status_number.to_be_bytes());
        let mut all = [&head[..], data].concat();
        all.resize(all.len().next_multiple_of(4), 0);
        self.stream.write_all(&all).ok()
    }

    fn receive(&mut self) -> Option<([u8; 48], Vec<u8>)> {
        let mut head = [0; 48];
        self.stream.read_exact(&mut head).ok()?;
        let length = usize::try_from(be32(&[0, head[5], head[6], head[7]])).unwrap();
        let mut data = vec![0; length.next_multiple_of(4)];
        self.stream.read_exact(&mut data).ok()?;
        data.truncate(length);
        let has_status = head[0] != 0x25 || head[1] & 1 == 1;
        if has_status && head[0] != 0x20 {
            self.status_number = be32(&head[24..]).wrapping_add(1);
        }
        Some((head, data))
    }

    /// Runs a command at unit 0, with data for it or room for its answer; `None`: the session
    /// ended.
    pub(crate) fn run(&mut self, cdb: &[u8], out: &[u8], room: u32) -> Option<Ended> {
        self.tag += 1;
        let mut head = [0; 48];
        head[0] = SCSI_COMMAND;
        head[1] = 0x81 | u8::from(room > 0) << 6 | u8::from(!out.is_empty()) << 5;
        let expected = room.max(u32::try_from(out.len()).unwrap());
        head[20..24].copy_from_slice(&expected.to_be_bytes());
        head[24..28].copy_from_slice(&self.command_number.to_be_bytes());
        head[32..32 + cdb.len()].copy_from_slice(cdb);
        self.command_number += 1;
        self.send(head, out)?;
        let mut came = Vec::new();
        loop {
            let (head, data) = self.receive()?;
            let ended = |status: u8, data: Vec<u8>, sense: Option<[u8; 3]>| Ended {
                status,
                sense,
                data,
            };
            match head[0] {
                0x25 => {
                    came.extend(data);
                    if head[1] & 1 == 1 {
                        return Some(ended(head[3], came, None));
                    }
                }
                0x21 => {
                    let sense = data.get(2..).filter(|it| it.len() >= 14);
                    let sense = sense.map(|it| [it[2] & 15, it[12], it[13]]);
                    return Some(ended(head[3], came, sense));
                }
                // A ping that is to be answered.
                0x20 if be32(&head[20..]) != u32::MAX => {
                    let mut answer = [0; 48];
                    (answer[0], answer[1]) = (NOP_OUT, 0x80);
                    answer[20..24].copy_from_slice(&head[20..24]);
                    answer[24..28].copy_from_slice(&self.command_number.to_be_bytes());
                    self.send(answer, &[])?;
                }
                0x20 => {}
                // A message that the session is to end.
                0x32 => return None,
                other => panic!("nobody awaits opcode {other:#x}"),
            }
        }
    }

    /// The same again until no unit attention comes between; these are answered, too.
    pub(crate) fn settled(
        &mut self,
        cdb: &[u8],
        out: &[u8],
        room: u32,
    ) -> Option<(Ended, Vec<[u8; 2]>)> {
        let mut attentions = Vec::new();
        loop {
            let ended = self.run(cdb, out, room)?;
            match ended.sense {
                Some([6, asc, ascq]) => attentions.push([asc, ascq]),
                Some(_) | None => return Some((ended, attentions)),
            }
        }
    }

    /// The target port groups: number, state and relative ports of each.
    pub(crate) fn groups(&mut self) -> Option<Vec<(u16, u8, Vec<u16>)>> {
        let cdb = [0xa3, 0x2a, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
        let (ended, _) = self.settled(&cdb, &[], 1024)?;
        assert_eq!(ended.status, 0, "{ended:?}");
        let mut rest = &ended.data[8..];
        let mut all = Vec::new();
        while !rest.is_empty() {
            let end = 8 + 4 * usize::from(rest[7]);
            let ports = rest[8..end].chunks(4).map(|port| be16(&port[2..]));
            all.push((be16(&rest[2..]), rest[0] & 15, ports.collect()));
            rest = &rest[end..];
        }
        Some(all)
    }

    /// The relative port and the group of the path, by page 83h.
    pub(crate) fn path(&mut self) -> (u16, u16) {
        let (ended, _) = self.settled(&[0x12, 1, 0x83, 4, 0, 0], &[], 1024).unwrap();
        let mut rest = &ended.data[4..];
        let (mut port, mut group) = (0, 0);
        while !rest.is_empty() {
            match rest[1] & 15 {
                4 => port = be16(&rest[6..]),
                5 => group = be16(&rest[6..]),
                _ => {}
            }
            rest = &rest[4 + usize::from(rest[3])..];
        }
        (port, group)
    }
}
