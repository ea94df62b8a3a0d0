//! A connection between two nodes, from its first byte to its last.
//!
//! ```text
//!   who connects:  First --(other side's first frame)--> Open --bye, breach--> Closed
//!   who accepts:   First --(first frame; answers it)---> Open
//! ```
//!
//! **Failure model.** What may not be ends the connection. Its last event says why, the last frame
//! says so to the other side, and nothing is wanted any more. Of a frame with any bit wrong nothing
//! is given out.

use crate::first::{First, KnownNode, Own};
use crate::forward::{AnnouncedForward, Forwarded};
use crate::frame::{self, Header, Kind};
use crate::ids::{ConnectionNumber, Incarnation, NodeId, Purpose};
use crate::limits::{BODY_BYTES_MAX, Cost, POSITIONS_MAX, SEND_AHEAD_BYTES};
use crate::message;
use crate::position::{Positions, read_credits, read_moment, read_reason, write_credits};
use crate::receive::{Receiver, Want, Whole};
use crate::records::{Announced, Records};
use crate::refusal::{Breach, Closed, NotSent, Reason, Refusal, Versions};
use crate::rules::holds;
use crate::transmit::Transmit;
use crate::unit_part::UnitPart;
use journal::VolumeId;
use replica::{Message, Moment, NodeSlot};
use std::collections::VecDeque;
use units::{Buf, BufMut};

/// Who is at the other end, and what was agreed upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opened {
    /// The other node's slot.
    pub slot: NodeSlot,
    /// Its number.
    pub node: NodeId,
    /// Its process.
    pub incarnation: Incarnation,
    /// Which connection of the two processes this is.
    pub number: ConnectionNumber,
    /// What the connection is for.
    pub purpose: Purpose,
    /// The version of the protocol.
    pub version: u16,
    /// The cluster's level, as the other node knows it.
    pub level: u32,
    /// The highest level that its program knows.
    pub level_max: u32,
}

/// What came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Both sides know each other; everything else comes after this.
    Opened(Opened),
    /// About a LUN.
    Message(VolumeId, Message),
    /// About the unit of a LUN, beside its blocks.
    Unit(VolumeId, UnitPart),
    /// Records, each with data that fits its checksum.
    Records(Records),
    /// Of commands that one of the two nodes forwards to the other.
    Forward(Forwarded),
    /// The other side has these stable.
    Acks(Positions),
    /// These are committed.
    Commits(Positions),
    /// More may be sent.
    Credits,
    /// The other side is there: a beacon that stands for all LUNs about which both nodes have
    /// greeted each other.
    Beacon(Moment),
    /// A beacon was answered.
    Answer(Moment),
    /// The connection is over. The last event.
    Closed(Closed),
}

/// What both sides granted each other, since the beginning.
#[derive(Default)]
struct Credits {
    /// Records of the other side that may come,
    granted: Cost,
    /// that came,
    came: Cost,
    /// and that were given out.
    given_out: Cost,
    /// Records of this side that may go,
    may_go: Cost,
    /// and that went.
    went: Cost,
}

/// Whose data comes next.
enum DataOf {
    Records(Announced),
    Forward(AnnouncedForward),
}

enum Phase {
    /// Which first frame is awaited: with `Some`, the answer to this one.
    First(Option<First>),
    Open(Opened),
    Closed,
}

/// A connection, as the driver of its link sees it.
pub struct Connection {
    own: Own,
    known: Vec<KnownNode>,
    phase: Phase,
    /// This side's first frame is on its way: only then another one is understood.
    has_greeted: bool,
    receiver: Receiver,
    announced: Option<DataOf>,
    transmit: Transmit,
    events: VecDeque<Event>,
    /// The next frame that goes, and the next one that comes.
    sequences: (u32, u32),
    credits: Credits,
}

impl Connection {
    /// This side connects, with the node `to`.
    #[must_use]
    pub fn connects(own: Own, to: KnownNode, number: ConnectionNumber, purpose: Purpose) -> Self {
        let first = First {
            versions: Versions::OURS,
            own,
            number,
            purpose,
        };
        let mut connection = Self::in_phase(own, vec![to], Phase::First(Some(first)));
        connection.greet(&first);
        connection
    }

    /// The other side connects; it may be any of these nodes.
    #[must_use]
    pub fn accepts(own: Own, known: Vec<KnownNode>) -> Self {
        Self::in_phase(own, known, Phase::First(None))
    }

    fn in_phase(own: Own, known: Vec<KnownNode>, phase: Phase) -> Self {
        Self {
            own,
            known,
            phase,
            has_greeted: false,
            receiver: Receiver::new(),
            announced: None,
            transmit: Transmit::default(),
            events: VecDeque::new(),
            sequences: (0, 0),
            credits: Credits::default(),
        }
    }

    /// What to hand in next. Ask again after every call that hands something in.
    #[must_use]
    pub fn want(&self) -> Want {
        match self.phase {
            Phase::Closed => Want::Nothing,
            Phase::First(_) | Phase::Open(_) => self.receiver.want(),
        }
    }

    /// Where the next bytes go while [`want`](Self::want) is `Head` or `Data`: not empty, and never
    /// longer than what is wanted. The place may change between calls.
    #[must_use]
    pub fn chunk(&mut self) -> &mut [u8] {
        match self.phase {
            Phase::Closed => &mut [],
            Phase::First(_) | Phase::Open(_) => self.receiver.chunk(),
        }
    }

    /// The first `n` bytes of [`chunk`](Self::chunk) have been filled. Poll events and transmit
    /// afterwards.
    ///
    /// # Panics
    /// If `n` is more than the chunk's length.
    pub fn filled(&mut self, n: usize) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        if let Some(whole) = self.receiver.filled(n) {
            let done = self.whole(whole);
            self.settle(done);
        }
    }

    /// Copies bytes that were received elsewhere to where they belong, as many as are wanted before
    /// memory has to be given; answers how many. Poll events and transmit afterwards.
    pub fn receive(&mut self, mut bytes: &[u8]) -> usize {
        let before = bytes.len();
        while !bytes.is_empty() && matches!(self.want(), Want::Head { .. } | Want::Data { .. }) {
            let chunk = self.chunk();
            let n = chunk.len().min(bytes.len());
            let (now, rest) = bytes.split_at(n);
            if let Some(place) = chunk.get_mut(..n) {
                place.copy_from_slice(now);
            }
            bytes = rest;
            self.filled(n);
        }
        before.saturating_sub(bytes.len())
    }

    /// The memory of [`Want::Memory`].
    ///
    /// # Panics
    /// If it has not the wanted length.
    pub fn give_memory(&mut self, memory: BufMut) {
        self.receiver.give_memory(memory);
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        let cost = match &event {
            Event::Records(records) => records.cost(),
            Event::Forward(forwarded) => forwarded.cost(),
            Event::Opened(_)
            | Event::Message(..)
            | Event::Unit(..)
            | Event::Acks(_)
            | Event::Commits(_)
            | Event::Credits
            | Event::Beacon(_)
            | Event::Answer(_)
            | Event::Closed(_) => Cost::default(),
        };
        self.credits.given_out = self.credits.given_out.plus(cost);
        Some(event)
    }

    /// Events that were not polled.
    #[must_use]
    pub fn events_waiting(&self) -> usize {
        self.events.len()
    }

    /// What waits to be sent.
    #[must_use]
    pub const fn transmit(&self) -> &Transmit {
        &self.transmit
    }

    /// The next `bytes` bytes of [`transmit`](Self::transmit) were given to the link.
    pub fn sent(&mut self, bytes: usize) {
        self.transmit.sent(bytes);
    }

    /// Who is at the other end, once that is known, until the connection is over.
    #[must_use]
    pub const fn opened(&self) -> Option<&Opened> {
        match &self.phase {
            Phase::Open(opened) => Some(opened),
            Phase::First(_) | Phase::Closed => None,
        }
    }

    /// Bytes of memory that the other side makes this one hold, but for records whose events were
    /// polled: bounded by [`FIRST_BYTES`](crate::FIRST_BYTES) before it is known who it is.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.receiver.held_bytes()
    }

    /// What was granted, and was not given out yet: what the other side may still send, and what is
    /// on its way through this connection.
    #[must_use]
    pub fn outstanding(&self) -> Cost {
        let mut left = self.credits.granted.less(self.credits.given_out);
        if !holds!(WhatIsHalfHereCounts) {
            left = self.credits.granted.less(self.credits.came);
        }
        left
    }

    /// Whether the other side has granted so much.
    #[must_use]
    pub const fn may_send(&self, cost: Cost) -> bool {
        let after = self.credits.went.plus(cost);
        after.is_within(self.credits.may_go)
    }

    /// Says something about a LUN.
    ///
    /// # Errors
    /// Why it is not sent.
    pub fn message(&mut self, volume: VolumeId, message: &Message) -> Result<(), NotSent> {
        self.may_say(Kind::Message)?;
        let mut body = frame::begin(64);
        message::write(volume, message, &mut body)?;
        let frame = body.into_bytes();
        if frame.len() > BODY_BYTES_MAX {
            return Err(NotSent::TooLong);
        }
        self.push(frame, Kind::Message, Buf::empty());
        Ok(())
    }

    /// Says something about the unit of a LUN: one part of it.
    ///
    /// # Errors
    /// Why it is not sent.
    pub fn unit_part(&mut self, volume: VolumeId, part: &UnitPart) -> Result<(), NotSent> {
        self.may_say(Kind::Unit)?;
        let mut body = frame::begin(64);
        part.write(volume, &mut body);
        let frame = body.into_bytes();
        if frame.len() > BODY_BYTES_MAX {
            return Err(NotSent::TooLong);
        }
        self.push(frame, Kind::Unit, Buf::empty());
        Ok(())
    }

    /// Sends records, data by reference.
    ///
    /// # Errors
    /// Why they are not sent.
    pub fn records(&mut self, records: &Records) -> Result<(), NotSent> {
        let opened = self.may_say(Kind::Records)?;
        if opened.purpose != Purpose::Ring(records.origin().ring) {
            return Err(NotSent::NotHere);
        }
        if !self.may_send(records.cost()) && holds!(SenderStops) {
            return Err(NotSent::NoCredit);
        }
        self.credits.went = self.credits.went.plus(records.cost());
        let mut body = frame::begin(records.body_bytes());
        records.write(&mut body);
        self.push(body.into_bytes(), Kind::Records, records.data());
        Ok(())
    }

    /// Says something of a command that is forwarded, data by reference. What it takes was to be
    /// granted.
    ///
    /// # Errors
    /// Why it is not sent.
    pub fn forward(&mut self, forwarded: &Forwarded) -> Result<(), NotSent> {
        self.may_say(Kind::Forward)?;
        if !self.may_send(forwarded.cost()) {
            return Err(NotSent::NoCredit);
        }
        let mut body = frame::begin(64);
        forwarded.write(&mut body)?;
        self.credits.went = self.credits.went.plus(forwarded.cost());
        self.push(body.into_bytes(), Kind::Forward, forwarded.data.clone());
        Ok(())
    }

    /// Says up to where changes of some LUNs are stable here: [`POSITIONS_MAX`] at most.
    ///
    /// # Errors
    /// Why that is not sent.
    pub fn acks(&mut self, positions: &Positions) -> Result<(), NotSent> {
        self.positions(Kind::Acks, positions)
    }

    /// Says up to where changes of some LUNs are committed: [`POSITIONS_MAX`] at most.
    ///
    /// # Errors
    /// Why that is not sent.
    pub fn commits(&mut self, positions: &Positions) -> Result<(), NotSent> {
        self.positions(Kind::Commits, positions)
    }

    fn positions(&mut self, kind: Kind, positions: &Positions) -> Result<(), NotSent> {
        let opened = self.may_say(kind)?;
        if is_elsewhere(opened.purpose, positions.ring) {
            return Err(NotSent::NotHere);
        }
        if positions.positions.len() > POSITIONS_MAX {
            return Err(NotSent::TooLong);
        }
        let mut body = frame::begin(positions.bytes());
        positions.write(&mut body);
        self.push(body.into_bytes(), kind, Buf::empty());
        Ok(())
    }

    /// Grants so much more to the other side.
    ///
    /// # Errors
    /// Why that is not sent.
    pub fn grant(&mut self, more: Cost) -> Result<(), NotSent> {
        self.may_say(Kind::Credits)?;
        self.credits.granted = self.credits.granted.plus(more);
        let mut body = frame::begin(16);
        write_credits(self.credits.granted, &mut body);
        self.push(body.into_bytes(), Kind::Credits, Buf::empty());
        Ok(())
    }

    /// Grants before it is known who is at the other end: for tests that hand in what was sent to
    /// another connection.
    #[cfg(test)]
    pub(crate) fn grant_before(&mut self, more: Cost) {
        self.credits.granted = self.credits.granted.plus(more);
    }

    /// A frame less is sent than the other side of a test counts.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) fn skip_sequence(&mut self) {
        self.sequences.0 = self.sequences.0.wrapping_add(1);
    }

    /// Says that this node is there.
    ///
    /// # Errors
    /// Why that is not sent.
    pub fn beacon(&mut self, sent: Moment) -> Result<(), NotSent> {
        self.moment(Kind::Beacon, sent)
    }

    /// Answers a beacon.
    ///
    /// # Errors
    /// Why that is not sent.
    pub fn answer(&mut self, sent: Moment) -> Result<(), NotSent> {
        self.moment(Kind::Answer, sent)
    }

    fn moment(&mut self, kind: Kind, sent: Moment) -> Result<(), NotSent> {
        self.may_say(kind)?;
        let mut body = frame::begin(8);
        body.u64(sent.0);
        self.push(body.into_bytes(), kind, Buf::empty());
        Ok(())
    }

    /// Ends the connection: once what waits to be sent is sent, the link may be closed.
    pub fn bye(&mut self, reason: Reason) {
        self.close(Closed::WeEnd(reason), Some(reason));
    }

    fn may_say(&self, kind: Kind) -> Result<Opened, NotSent> {
        let opened = *self.opened().ok_or(NotSent::NotOpen)?;
        if !kind.belongs_on(opened.purpose) {
            return Err(NotSent::NotHere);
        }
        if self.transmit.bytes() >= SEND_AHEAD_BYTES && holds!(SendAheadIsBounded) {
            return Err(NotSent::Full);
        }
        Ok(opened)
    }

    fn push(&mut self, frame: Vec<u8>, kind: Kind, data: Buf) {
        let sequence = self.sequences.0;
        self.sequences.0 = sequence.wrapping_add(1);
        let head = frame::finish(frame, kind, data.len(), sequence);
        self.transmit.push(head, data);
    }

    /// A part of a frame is whole.
    fn whole(&mut self, whole: Whole) -> Result<(), Closed> {
        match whole {
            Whole::First => {
                let first = First::read(self.receiver.head()).map_err(Closed::Refused)?;
                self.greeted(first).map_err(Closed::Refused)
            }
            Whole::Header => self.header().map_err(Closed::Broken),
            Whole::Body(header) => self.body(header),
            Whole::Data(data) => {
                let Some(announced) = self.announced.take() else {
                    unreachable!("data is wanted where it was announced");
                };
                let event = match announced {
                    DataOf::Records(it) => it.with_data(data).map(Event::Records),
                    DataOf::Forward(it) => it.with_data(data).map(Event::Forward),
                };
                self.events.push_back(event.map_err(Closed::Broken)?);
                Ok(())
            }
        }
    }

    fn greet(&mut self, first: &First) {
        self.transmit.push(first.write(), Buf::empty());
        self.has_greeted = true;
    }

    fn greeted(&mut self, theirs: First) -> Result<(), Refusal> {
        let Phase::First(ours) = &self.phase else {
            unreachable!("a first frame is wanted once");
        };
        let is_answer = ours.is_some();
        if let Some(ours) = ours
            && (theirs.number, theirs.purpose) != (ours.number, ours.purpose)
        {
            return Err(Refusal::OtherPurpose);
        }
        let accepted = theirs.accepted_by(&self.own, &self.known);
        if !is_answer {
            // Also where it is refused: so that the other side knows who refuses.
            let first = First {
                versions: Versions::OURS,
                own: self.own,
                number: theirs.number,
                purpose: theirs.purpose,
            };
            self.greet(&first);
        }
        let opened = Opened {
            slot: theirs.own.slot,
            node: theirs.own.node,
            incarnation: theirs.own.incarnation,
            number: theirs.number,
            purpose: theirs.purpose,
            version: accepted?,
            level: theirs.own.level,
            level_max: theirs.own.level_max,
        };
        self.phase = Phase::Open(opened);
        self.receiver.begin();
        self.events.push_back(Event::Opened(opened));
        Ok(())
    }

    fn header(&mut self) -> Result<(), Breach> {
        let purpose = self.purpose();
        let header = Header::read(self.receiver.head(), self.sequences.1, purpose)?;
        self.sequences.1 = self.sequences.1.wrapping_add(1);
        if header.body_bytes == 0 {
            header.fits(&[])?;
            if header.kind.is_some() {
                return Err(Breach::Malformed("it has no body"));
            }
            self.receiver.begin();
            return Ok(());
        }
        self.receiver.expect_body(header);
        Ok(())
    }

    fn body(&mut self, header: Header) -> Result<(), Closed> {
        let purpose = self.purpose();
        let body = self.receiver.take_head();
        header.fits(&body).map_err(Closed::Broken)?;
        let Some(kind) = header.kind else {
            self.receiver.begin();
            return Ok(());
        };
        let malformed = || Closed::Broken(Breach::Malformed("its fields are none"));
        let event = match kind {
            Kind::Records => {
                let announced = Announced::read(&body, header.data_bytes).ok_or_else(malformed)?;
                return self
                    .announced(announced, header.data_bytes)
                    .map_err(Closed::Broken);
            }
            Kind::Message => {
                let (volume, message) = message::read(&body).ok_or_else(malformed)?;
                Event::Message(volume, message)
            }
            Kind::Unit => {
                let (volume, part) = UnitPart::read(&body).ok_or_else(malformed)?;
                Event::Unit(volume, part)
            }
            Kind::Forward => {
                let read = AnnouncedForward::read(&body, header.data_bytes);
                return self
                    .announced_forward(read.ok_or_else(malformed)?, header.data_bytes)
                    .map_err(Closed::Broken);
            }
            Kind::Acks | Kind::Commits => {
                let positions = Positions::read(&body).ok_or_else(malformed)?;
                if is_elsewhere(purpose, positions.ring) {
                    return Err(Closed::Broken(Breach::NotHere(purpose)));
                }
                if kind == Kind::Acks {
                    Event::Acks(positions)
                } else {
                    Event::Commits(positions)
                }
            }
            Kind::Credits => {
                let may_go = read_credits(&body).ok_or_else(malformed)?;
                if !self.credits.may_go.is_within(may_go) {
                    return Err(Closed::Broken(Breach::CreditsShrink));
                }
                self.credits.may_go = may_go;
                Event::Credits
            }
            Kind::Beacon => Event::Beacon(read_moment(&body).ok_or_else(malformed)?),
            Kind::Answer => Event::Answer(read_moment(&body).ok_or_else(malformed)?),
            Kind::Bye => {
                let code = read_reason(&body).ok_or_else(malformed)?;
                return Err(Closed::TheyEnd(Reason::of_code(code)));
            }
        };
        self.receiver.begin();
        self.events.push_back(event);
        Ok(())
    }

    /// Records come: before any memory is taken for them it is seen whether they may.
    fn announced(&mut self, announced: Announced, data_bytes: usize) -> Result<(), Breach> {
        let purpose = self.purpose();
        if purpose != Purpose::Ring(announced.origin.ring) {
            return Err(Breach::NotHere(purpose));
        }
        let cost = Cost {
            bytes: data_bytes as u64,
            records: announced.records(),
        };
        self.came(cost)?;
        if data_bytes == 0 {
            let records = announced.with_data(Buf::empty())?;
            self.receiver.begin();
            self.events.push_back(Event::Records(records));
            return Ok(());
        }
        self.announced = Some(DataOf::Records(announced));
        self.receiver.expect_data(data_bytes);
        Ok(())
    }

    /// The same of a command that is forwarded.
    fn announced_forward(
        &mut self,
        announced: AnnouncedForward,
        data_bytes: usize,
    ) -> Result<(), Breach> {
        self.came(announced.what.cost(data_bytes))?;
        if data_bytes == 0 {
            let forwarded = announced.with_data(Buf::empty())?;
            self.receiver.begin();
            self.events.push_back(Event::Forward(forwarded));
            return Ok(());
        }
        self.announced = Some(DataOf::Forward(announced));
        self.receiver.expect_data(data_bytes);
        Ok(())
    }

    /// Something came that has to be granted.
    fn came(&mut self, cost: Cost) -> Result<(), Breach> {
        let came = self.credits.came.plus(cost);
        if !came.is_within(self.credits.granted) && holds!(OverrunEnds) {
            return Err(Breach::Overrun {
                granted: self.credits.granted,
                came,
            });
        }
        self.credits.came = came;
        Ok(())
    }

    fn purpose(&self) -> Purpose {
        match &self.phase {
            Phase::Open(opened) => opened.purpose,
            Phase::First(_) | Phase::Closed => unreachable!("frames come where it is open"),
        }
    }

    /// Ends the connection if something asks for it.
    fn settle(&mut self, done: Result<(), Closed>) {
        let Err(closed) = done else { return };
        let reason = match &closed {
            // Whoever speaks another protocol would not understand.
            Closed::Refused(Refusal::NotAPeer | Refusal::Damaged) | Closed::TheyEnd(_) => None,
            Closed::Refused(refusal) => Some(Reason::from(refusal)),
            Closed::Broken(breach) => Some(Reason::from(breach)),
            Closed::WeEnd(reason) => Some(*reason),
        };
        self.close(closed, reason);
    }

    /// Ends the connection, once.
    fn close(&mut self, closed: Closed, says: Option<Reason>) {
        if matches!(self.phase, Phase::Closed) {
            return;
        }
        if let Some(reason) = says.filter(|_| self.has_greeted) {
            let mut body = frame::begin(8);
            body.u16(reason.code()).u16(0).u32(0);
            self.push(body.into_bytes(), Kind::Bye, Buf::empty());
        }
        self.phase = Phase::Closed;
        self.receiver.drop_memory();
        self.announced = None;
        self.events.push_back(Event::Closed(closed));
    }
}

/// A ring has no place on the connection of another one.
fn is_elsewhere(purpose: Purpose, ring: u8) -> bool {
    match purpose {
        Purpose::Control => false,
        Purpose::Ring(its) => its != ring,
        Purpose::Forward => true,
    }
}
