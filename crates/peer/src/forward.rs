//! Commands that a node forwards to the owner of a LUN, and what these end with.
//!
//! ```text
//!   other node --Command, Data ...--> owner
//!              --Abort, Reset, Close-->
//!              <--Answer, Data ...---
//! ```
//!
//! Each side numbers its own requests. Data of a command or an answer comes right behind it, in
//! frames of at most [`DATA_BYTES_MAX`](crate::DATA_BYTES_MAX) bytes, of which the first goes with
//! the command or the answer itself.

use crate::limits::Cost;
use crate::refusal::{Breach, NotSent};
use formats::{Reader, Writer, crc32c_of};
use journal::VolumeId;
use units::Buf;

/// Bytes of data of a command, or of an answer, at most.
pub const FORWARD_BYTES_MAX: u32 = 16 << 20;

/// Bytes of an initiator's name at most (RFC 7143 4.2.7.2: 223).
pub const NAME_BYTES_MAX: usize = 223;

/// Bytes of sense data at most (SPC-4 4.5.1: 252).
pub const SENSE_BYTES_MAX: usize = 252;

/// Bytes of a CDB at most.
pub const CDB_BYTES_MAX: usize = 32;

/// A nexus of another node's, as the owner knows it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Guest {
    /// The LUN that it is at.
    pub volume: VolumeId,
    /// The initiator's name.
    pub initiator: String,
    /// Its session there.
    pub isid: [u8; 6],
    /// The relative target port identifier, as all nodes call it.
    pub port: u16,
}

/// The order of a command against others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardedOrder {
    /// SIMPLE.
    Simple,
    /// ORDERED.
    Ordered,
    /// HEAD OF QUEUE.
    HeadOfQueue,
}

/// What is said of a command but for its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardedCommand {
    /// Through which nexus it came.
    pub guest: Guest,
    /// Its host may not write there.
    pub read_only: bool,
    /// When it is done, against others of the unit.
    pub order: ForwardedOrder,
    /// Bytes of data that the host announced.
    pub announced: u32,
    /// As the host sent it: [`CDB_BYTES_MAX`] at most.
    pub cdb: Vec<u8>,
}

/// How a nexus ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardedEnd {
    /// By a logout.
    LoggedOut,
    /// It was lost.
    Lost,
}

/// Which reset hosts hear of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForwardedReset {
    /// LOGICAL UNIT RESET.
    Unit,
    /// One of the target.
    Target,
    /// No reset: CLEAR TASK SET.
    ClearTaskSet,
}

/// What a request ends with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ForwardedAnswer {
    /// The host is answered so.
    Respond {
        /// SCSI status.
        status: u8,
        /// Sense data; empty: none.
        sense: Vec<u8>,
    },
    /// Nothing is said to the host; or a function, or the end of a nexus, is done.
    Silent,
    /// The host loses its connection.
    Disconnect,
}

/// What is said on a connection for forwarding, without its data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Forward {
    /// A command, of which so many bytes of data come.
    Command(Box<ForwardedCommand>, u32),
    /// More data of a command.
    Data,
    /// The command is aborted. It is answered all the same.
    Abort,
    /// A function for all of a unit.
    Reset(Box<Guest>, ForwardedReset),
    /// A nexus has ended.
    Close(Box<Guest>, ForwardedEnd),
    /// The end of a request, of which so many bytes of data come.
    Answer(ForwardedAnswer, u32),
    /// More data of an answer.
    AnswerData,
}

/// A frame of a connection for forwarding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Forwarded {
    /// Which request it is about.
    pub request: u32,
    /// What is said.
    pub what: Forward,
    /// Data that goes with it.
    pub data: Buf,
}

const COMMAND: u8 = 1;
const DATA: u8 = 2;
const ABORT: u8 = 3;
const RESET: u8 = 4;
const CLOSE: u8 = 5;
const ANSWER: u8 = 6;
const ANSWER_DATA: u8 = 7;

/// Bytes before what differs by kind.
const FIXED: usize = 16;

impl Guest {
    fn write(&self, to: &mut Writer) -> Result<(), NotSent> {
        let name = self.initiator.as_bytes();
        let length = u8::try_from(name.len()).ok();
        let length = length.filter(|it| usize::from(*it) <= NAME_BYTES_MAX);
        to.u64(self.volume.0)
            .bytes(&self.isid)
            .u16(self.port)
            .u8(length.ok_or(NotSent::TooLong)?)
            .bytes(name);
        Ok(())
    }
}

/// What is read from the end of a body, whose fields have no fixed length.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn counted(&mut self, most: usize) -> Option<Vec<u8>> {
        let [length] = self.fixed::<1>()?;
        let length = usize::from(length);
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        (length <= most).then(|| bytes.to_vec())
    }

    fn guest(&mut self) -> Option<Guest> {
        let volume = VolumeId(u64::from_le_bytes(self.fixed()?));
        let isid = self.fixed()?;
        let port = u16::from_le_bytes(self.fixed()?);
        let initiator = String::from_utf8(self.counted(NAME_BYTES_MAX)?).ok()?;
        Some(Guest {
            volume,
            initiator,
            isid,
            port,
        })
    }

    fn ends<T>(&self, read: T) -> Option<T> {
        self.0.is_empty().then_some(read)
    }
}

impl Forward {
    const fn kind(&self) -> u8 {
        match self {
            Self::Command(..) => COMMAND,
            Self::Data => DATA,
            Self::Abort => ABORT,
            Self::Reset(..) => RESET,
            Self::Close(..) => CLOSE,
            Self::Answer(..) => ANSWER,
            Self::AnswerData => ANSWER_DATA,
        }
    }

    /// Bytes of data that come, where it says that.
    const fn total(&self) -> u32 {
        match self {
            Self::Command(_, total) | Self::Answer(_, total) => *total,
            Self::Data | Self::Abort | Self::Reset(..) | Self::Close(..) | Self::AnswerData => 0,
        }
    }

    const fn detail(&self) -> u8 {
        match self {
            Self::Command(command, _) => match command.order {
                ForwardedOrder::Simple => 0,
                ForwardedOrder::Ordered => 1,
                ForwardedOrder::HeadOfQueue => 2,
            },
            Self::Reset(_, what) => match what {
                ForwardedReset::Unit => 0,
                ForwardedReset::Target => 1,
                ForwardedReset::ClearTaskSet => 2,
            },
            Self::Close(_, end) => match end {
                ForwardedEnd::LoggedOut => 0,
                ForwardedEnd::Lost => 1,
            },
            Self::Answer(answer, _) => match answer {
                ForwardedAnswer::Respond { .. } => 0,
                ForwardedAnswer::Silent => 1,
                ForwardedAnswer::Disconnect => 2,
            },
            Self::Data | Self::Abort | Self::AnswerData => 0,
        }
    }

    /// Data may go with it.
    pub(crate) const fn has_data(&self) -> bool {
        match self {
            Self::Command(..) | Self::Data | Self::Answer(..) | Self::AnswerData => true,
            Self::Abort | Self::Reset(..) | Self::Close(..) => false,
        }
    }

    /// What of the other side's grants it takes, with so many bytes of data.
    pub(crate) const fn cost(&self, data_bytes: usize) -> Cost {
        Cost {
            bytes: data_bytes as u64,
            records: matches!(self, Self::Command(..)) as u64,
        }
    }
}

impl Forwarded {
    /// What of the other side's grants it takes: its data, and for a command a place.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.what.cost(self.data.len())
    }

    pub(crate) fn write(&self, to: &mut Writer) -> Result<(), NotSent> {
        let (what, data) = (&self.what, &self.data);
        if what.total() > FORWARD_BYTES_MAX || (!what.has_data() && !data.is_empty()) {
            return Err(NotSent::TooLong);
        }
        to.u8(what.kind())
            .u8(what.detail())
            .u16(0)
            .u32(self.request)
            .u32(what.total())
            .u32(crc32c_of(data.segments()));
        match what {
            Forward::Command(command, _) => {
                command.guest.write(to)?;
                if command.cdb.len() > CDB_BYTES_MAX {
                    return Err(NotSent::TooLong);
                }
                let length = u8::try_from(command.cdb.len()).map_err(|_| NotSent::TooLong)?;
                to.u8(command.read_only.into()).u32(command.announced);
                to.u8(length).bytes(&command.cdb);
            }
            Forward::Reset(guest, _) | Forward::Close(guest, _) => guest.write(to)?,
            Forward::Answer(ForwardedAnswer::Respond { status, sense }, _) => {
                if sense.len() > SENSE_BYTES_MAX {
                    return Err(NotSent::TooLong);
                }
                let length = u8::try_from(sense.len()).map_err(|_| NotSent::TooLong)?;
                to.u8(*status).u8(length).bytes(sense);
            }
            Forward::Answer(..) | Forward::Data | Forward::Abort | Forward::AnswerData => {}
        }
        Ok(())
    }
}

/// A frame whose data has not come yet.
pub(crate) struct AnnouncedForward {
    request: u32,
    pub(crate) what: Forward,
    crc: u32,
}

impl AnnouncedForward {
    /// Reads what [`Forwarded::write`] wrote, and nothing else.
    pub(crate) fn read(body: &[u8], data_bytes: usize) -> Option<Self> {
        let mut fields = Reader::new(body);
        let (kind, detail, zero) = (fields.u8()?, fields.u8()?, fields.u16()?);
        let (request, total, crc) = (fields.u32()?, fields.u32()?, fields.u32()?);
        let rest = Rest(body.get(FIXED..)?);
        let what = read_kind((kind, detail, total), rest)?;
        let fits = data_bytes <= usize::try_from(total).ok()?;
        let is_sound = match &what {
            Forward::Command(..) | Forward::Answer(..) => fits,
            Forward::Data | Forward::AnswerData => total == 0 && data_bytes > 0,
            Forward::Abort | Forward::Reset(..) | Forward::Close(..) => {
                total == 0 && data_bytes == 0
            }
        };
        let is_sound = is_sound && zero == 0 && total <= FORWARD_BYTES_MAX;
        is_sound.then_some(Self { request, what, crc })
    }

    pub(crate) fn with_data(self, data: Buf) -> Result<Forwarded, Breach> {
        if crc32c_of(data.segments()) != self.crc {
            return Err(Breach::BodyDamaged);
        }
        Ok(Forwarded {
            request: self.request,
            what: self.what,
            data,
        })
    }
}

fn read_kind((kind, detail, total): (u8, u8, u32), mut rest: Rest<'_>) -> Option<Forward> {
    match kind {
        COMMAND => {
            let order = match detail {
                0 => ForwardedOrder::Simple,
                1 => ForwardedOrder::Ordered,
                2 => ForwardedOrder::HeadOfQueue,
                _ => return None,
            };
            let guest = rest.guest()?;
            let read_only = match rest.fixed()? {
                [0] => false,
                [1] => true,
                _ => return None,
            };
            let announced = u32::from_le_bytes(rest.fixed()?);
            let command = ForwardedCommand {
                guest,
                read_only,
                order,
                announced,
                cdb: rest.counted(CDB_BYTES_MAX)?,
            };
            rest.ends(Forward::Command(Box::new(command), total))
        }
        RESET => {
            let what = match detail {
                0 => ForwardedReset::Unit,
                1 => ForwardedReset::Target,
                2 => ForwardedReset::ClearTaskSet,
                _ => return None,
            };
            let guest = rest.guest()?;
            rest.ends(Forward::Reset(Box::new(guest), what))
        }
        CLOSE => {
            let end = match detail {
                0 => ForwardedEnd::LoggedOut,
                1 => ForwardedEnd::Lost,
                _ => return None,
            };
            let guest = rest.guest()?;
            rest.ends(Forward::Close(Box::new(guest), end))
        }
        ANSWER => {
            let answer = match detail {
                0 => {
                    let [status] = rest.fixed()?;
                    let sense = rest.counted(SENSE_BYTES_MAX)?;
                    ForwardedAnswer::Respond { status, sense }
                }
                1 if total == 0 => ForwardedAnswer::Silent,
                2 if total == 0 => ForwardedAnswer::Disconnect,
                _ => return None,
            };
            rest.ends(Forward::Answer(answer, total))
        }
        DATA if detail == 0 => rest.ends(Forward::Data),
        ABORT if detail == 0 => rest.ends(Forward::Abort),
        ANSWER_DATA if detail == 0 => rest.ends(Forward::AnswerData),
        _ => None,
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn guest() -> Guest {
        Guest {
            volume: VolumeId(9),
            initiator: "iqn.2026-11.io.example:host".to_owned(),
            isid: [0x80, 1, 2, 3, 4, 5],
            port: 1025,
        }
    }

    pub(crate) fn all() -> Vec<Forwarded> {
        let command = |order| ForwardedCommand {
            guest: guest(),
            read_only: order == ForwardedOrder::Ordered,
            order,
            announced: 4096,
            cdb: vec![0x2a; 10],
        };
        let orders = [
            ForwardedOrder::Simple,
            ForwardedOrder::Ordered,
            ForwardedOrder::HeadOfQueue,
        ];
        let mut what: Vec<Forward> = orders
            .map(|it| Forward::Command(Box::new(command(it)), 4096))
            .into();
        let resets = [
            ForwardedReset::Unit,
            ForwardedReset::Target,
            ForwardedReset::ClearTaskSet,
        ];
        what.extend(resets.map(|it| Forward::Reset(Box::new(guest()), it)));
        let ends = [ForwardedEnd::LoggedOut, ForwardedEnd::Lost];
        what.extend(ends.map(|it| Forward::Close(Box::new(guest()), it)));
        let respond = ForwardedAnswer::Respond {
            status: 2,
            sense: vec![0x70; 18],
        };
        what.extend([
            Forward::Data,
            Forward::Abort,
            Forward::Answer(respond, 5),
            Forward::Answer(ForwardedAnswer::Silent, 0),
            Forward::Answer(ForwardedAnswer::Disconnect, 0),
            Forward::AnswerData,
        ]);
        let data = |it: &Forward| match it.has_data() && (it.total() > 0 || !it.is_end()) {
            true => Buf::copy_of(&[1, 2, 3]),
            false => Buf::empty(),
        };
        (5..)
            .zip(what)
            .map(|(request, what)| Forwarded {
                request,
                data: data(&what),
                what,
            })
            .collect()
    }

    impl Forward {
        fn is_end(&self) -> bool {
            matches!(self, Self::Answer(..))
        }
    }

    fn body(of: &Forwarded) -> Vec<u8> {
        let mut body = Writer::with_capacity(0);
        of.write(&mut body).unwrap();
        body.into_bytes()
    }

    #[test]
    fn every_frame_is_read_as_it_was_written_and_no_byte_may_be_missing() {
        for frame in all() {
            let body = body(&frame);
            let read = AnnouncedForward::read(&body, frame.data.len()).unwrap();
            assert_eq!(read.with_data(frame.data.clone()), Ok(frame.clone()));
            for cut in 0..body.len() {
                let read = AnnouncedForward::read(&body[..cut], frame.data.len());
                assert!(read.is_none(), "{frame:?} {cut}");
            }
            let more = [&body[..], &[0]].concat();
            assert!(AnnouncedForward::read(&more, frame.data.len()).is_none());
        }
    }

    #[test]
    fn data_that_is_another_one_or_more_than_was_said_is_refused() {
        let frame = all().remove(0);
        let body = body(&frame);
        let read = || AnnouncedForward::read(&body, 3).unwrap();
        let other = read().with_data(Buf::copy_of(&[1, 2, 4]));
        assert_eq!(other, Err(Breach::BodyDamaged));
        assert!(AnnouncedForward::read(&body, 4097).is_none());
        let too_long = Forwarded {
            what: Forward::Answer(ForwardedAnswer::Silent, FORWARD_BYTES_MAX + 1),
            ..frame
        };
        let mut body = Writer::with_capacity(0);
        assert_eq!(too_long.write(&mut body), Err(NotSent::TooLong));
    }
}
