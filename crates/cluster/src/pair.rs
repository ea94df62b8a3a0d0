//! This node and another one: a connection for control, one for each ring, and one for commands of
//! hosts that go through the other node.
//!
//! ```text
//!   nothing --control opened--> beginning --all rings attached--> up --control over--> nothing
//! ```
//!
//! LUNs hear of each other while the pair is up. What comes over control before is kept, as the
//! other side may be up a little earlier. The node with the lower slot dials, one connection at a
//! time.

use crate::line::Line;
use peer::{
    ConnectionNumber, Incarnation, KnownNode, Limits, Opened, Position, Positions, Purpose, Reason,
    RingStream, UnitPart,
};
use replica::{Epoch, Message, Moment, RingSummary};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use write_back::{Sequence, VolumeId};

/// Something about a LUN that came over control.
pub(crate) enum Said {
    Message(Message),
    Unit(UnitPart),
}

/// What is there while a connection for control is.
pub(crate) struct Session {
    control: Rc<Line>,
    is_up: bool,
    /// What came before it was up.
    early: Vec<(VolumeId, Said)>,
    /// When anything came last.
    heard: Moment,
    beacon: Option<Moment>,
    answer: Option<Moment>,
}

/// What another node is to this one.
pub(crate) struct Pair {
    pub(crate) to: KnownNode,
    session: RefCell<Option<Session>>,
    streams: Vec<RefCell<RingStream>>,
    lines: RefCell<Vec<Option<Rc<Line>>>>,
    /// The connection for commands that are forwarded, which the pair is up without.
    forward: RefCell<Option<Rc<Line>>>,
    forwards_numbered: Cell<u64>,
    last_forward: Cell<Option<(Incarnation, ConnectionNumber)>>,
    /// When it is dialled again at the earliest.
    forward_again: Cell<Moment>,
    /// Connections for control that this side made.
    numbered: Cell<u64>,
    last: Cell<Option<(Incarnation, ConnectionNumber)>>,
    has_left: Cell<bool>,
}

/// How long a connection for forwarding is not dialled again, in milliseconds.
const FORWARD_AGAIN: u64 = 500;

impl Pair {
    pub(crate) fn new(to: KnownNode, rings: u8, limits: Limits) -> Self {
        let streams = (0..rings).map(|ring| RefCell::new(RingStream::new(ring, limits)));
        Self {
            to,
            session: RefCell::new(None),
            streams: streams.collect(),
            lines: RefCell::new(vec![None; usize::from(rings)]),
            forward: RefCell::new(None),
            forwards_numbered: Cell::new(0),
            last_forward: Cell::new(None),
            forward_again: Cell::new(Moment(0)),
            numbered: Cell::new(0),
            last: Cell::new(None),
            has_left: Cell::new(false),
        }
    }

    /// The other node is none of the cluster any more.
    pub(crate) fn leaves(&self) {
        self.has_left.set(true);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.has_left.get()
    }

    /// What is to be dialled next, with its number.
    pub(crate) fn missing(&self, now: Moment) -> Option<(Purpose, ConnectionNumber)> {
        if self.session.borrow().is_none() {
            let last = self.last.get().map_or(0, |(_, number)| number.0);
            let number = self.numbered.get().max(last) + 1;
            self.numbered.set(number);
            return Some((Purpose::Control, ConnectionNumber(number)));
        }
        let ring = self.lines.borrow().iter().position(Option::is_none);
        let Some(ring) = ring else {
            return self.missing_forward(now);
        };
        let number = self.streams[ring].borrow_mut().next_number();
        let ring = u8::try_from(ring).expect("rings are few");
        Some((Purpose::Ring(ring), number))
    }

    /// The pair works without it, so a node that does not take it is not asked all the time.
    fn missing_forward(&self, now: Moment) -> Option<(Purpose, ConnectionNumber)> {
        if self.forward.borrow().is_some() || now < self.forward_again.get() {
            return None;
        }
        self.forward_again.set(now.after(FORWARD_AGAIN));
        let number = self.forwards_numbered.get() + 1;
        self.forwards_numbered.set(number);
        Some((Purpose::Forward, ConnectionNumber(number)))
    }

    /// A connection has begun; answers whether the pair is up with it.
    pub(crate) fn opened(&self, line: &Rc<Line>, opened: &Opened, now: Moment) -> bool {
        match opened.purpose {
            Purpose::Control => self.begins(line, opened, now),
            Purpose::Ring(ring) => self.attach(line, usize::from(ring), opened),
            Purpose::Forward => self.attach_forward(line, opened),
        }
        let is_whole = self.lines.borrow().iter().all(Option::is_some);
        match &mut *self.session.borrow_mut() {
            Some(session) if is_whole && !session.is_up => {
                session.is_up = true;
                true
            }
            Some(_) | None => false,
        }
    }

    fn begins(&self, line: &Rc<Line>, opened: &Opened, now: Moment) {
        self.last.set(Some((opened.incarnation, opened.number)));
        self.forward_again.set(now);
        *self.session.borrow_mut() = Some(Session {
            control: Rc::clone(line),
            is_up: false,
            early: Vec::new(),
            heard: now,
            beacon: None,
            answer: None,
        });
    }

    /// A connection for control that is older than the one that is there, or was.
    pub(crate) fn is_late(&self, opened: &Opened) -> bool {
        let last = self.last.get();
        opened.purpose == Purpose::Control
            && last.is_some_and(|(of, number)| of == opened.incarnation && opened.number <= number)
    }

    fn attach(&self, line: &Rc<Line>, ring: usize, opened: &Opened) {
        let stream = self.streams.get(ring);
        let attached = stream.is_some_and(|it| it.borrow_mut().attach(opened).is_ok());
        if !attached || self.session.borrow().is_none() {
            return line.connection.borrow_mut().bye(Reason::Replaced);
        }
        let before = self.lines.borrow_mut()[ring].replace(Rc::clone(line));
        if let Some(before) = before {
            before.end();
        }
    }

    /// One that is older than the one that is there, or was, is refused.
    fn attach_forward(&self, line: &Rc<Line>, opened: &Opened) {
        let (of, number) = (opened.incarnation, opened.number);
        let last = self.last_forward.get();
        let is_late = last.is_some_and(|last| last.0 == of && number <= last.1);
        if is_late || self.session.borrow().is_none() {
            return line.connection.borrow_mut().bye(Reason::Replaced);
        }
        self.last_forward.set(Some((of, number)));
        if let Some(before) = self.forward.replace(Some(Rc::clone(line))) {
            before.end();
        }
    }

    /// The connection for commands that are forwarded.
    pub(crate) fn forward_line(&self) -> Option<Rc<Line>> {
        self.forward.borrow().clone()
    }

    /// Commands can be forwarded.
    pub(crate) fn forwards(&self) -> bool {
        self.is_up() && self.forward.borrow().is_some()
    }

    /// What came before the pair was up.
    pub(crate) fn early(&self) -> Vec<(VolumeId, Said)> {
        let mut session = self.session.borrow_mut();
        session
            .as_mut()
            .map(|it| std::mem::take(&mut it.early))
            .unwrap_or_default()
    }

    pub(crate) fn is_control(&self, line: &Rc<Line>) -> bool {
        let session = self.session.borrow();
        let control = session.as_ref().map(|it| &it.control);
        control.is_some_and(|it| Rc::ptr_eq(it, line))
    }

    /// Something came over control; `None`: it was kept, or is of another session.
    pub(crate) fn hears(
        &self,
        line: &Rc<Line>,
        now: Moment,
        said: Option<(VolumeId, Said)>,
    ) -> Option<(VolumeId, Said)> {
        let mut session = self.session.borrow_mut();
        let session = session.as_mut()?;
        if !Rc::ptr_eq(&session.control, line) {
            return None;
        }
        session.heard = now;
        if session.is_up {
            return said;
        }
        session.early.extend(said);
        None
    }

    /// Nothing came for so long.
    pub(crate) fn is_silent(&self, now: Moment, span: u64) -> bool {
        let session = self.session.borrow();
        session
            .as_ref()
            .is_some_and(|it| now >= it.heard.after(span))
    }

    /// Ends all connections with the node, and what was streamed of these; answers whether the pair
    /// was there.
    pub(crate) fn end(&self, volumes: &[VolumeId]) -> bool {
        let Some(session) = self.session.borrow_mut().take() else {
            return false;
        };
        session.control.end();
        if let Some(line) = self.forward.take() {
            line.end();
        }
        for line in self.lines.borrow_mut().iter_mut() {
            if let Some(line) = line.take() {
                line.end();
            }
        }
        volumes.iter().for_each(|volume| self.forgets(*volume));
        true
    }

    /// All connections are there.
    pub(crate) fn is_up(&self) -> bool {
        let session = self.session.borrow();
        session.as_ref().is_some_and(|it| it.is_up)
    }

    /// What was streamed of a LUN holds no more.
    pub(crate) fn forgets(&self, volume: VolumeId) {
        for stream in &self.streams {
            stream.borrow_mut().end(volume);
            stream.borrow_mut().leave(volume);
        }
    }

    /// A line is over: whether it was that for control.
    pub(crate) fn loses(&self, line: &Rc<Line>) -> bool {
        let mut forward = self.forward.borrow_mut();
        if forward.as_ref().is_some_and(|it| Rc::ptr_eq(it, line)) {
            *forward = None;
        }
        for place in self.lines.borrow_mut().iter_mut() {
            if place.as_ref().is_some_and(|it| Rc::ptr_eq(it, line)) {
                *place = None;
            }
        }
        self.is_control(line)
    }

    pub(crate) fn wake(&self) {
        if let Some(session) = &*self.session.borrow() {
            session.control.wake();
        }
        let forward = self.forward.borrow();
        for line in self.lines.borrow().iter().flatten().chain(forward.iter()) {
            line.wake();
        }
    }

    /// The stream of a ring, for something that goes on its way at once.
    pub(crate) fn stream<T>(&self, ring: u8, work: impl FnOnce(&mut RingStream) -> T) -> T {
        let ring = usize::from(ring);
        let done = work(&mut self.streams[ring].borrow_mut());
        if let Some(line) = &self.lines.borrow()[ring] {
            line.wake();
        }
        done
    }

    /// Puts on its way what a ring's line may send.
    pub(crate) fn pump(&self, ring: u8, line: &Line) {
        let Some(stream) = self.streams.get(usize::from(ring)) else {
            return;
        };
        let mut connection = line.connection.borrow_mut();
        let mut stream = stream.borrow_mut();
        stream.pump(&mut connection);
        stream.flush(&mut connection);
    }

    fn with_control(&self, work: impl FnOnce(&mut Session, &Line)) {
        if let Some(session) = &mut *self.session.borrow_mut() {
            let control = Rc::clone(&session.control);
            work(session, &control);
            control.wake();
        }
    }

    /// Says something about a LUN. What cannot be said ends the connection: the other side must not
    /// go on without it.
    pub(crate) fn say(&self, volume: VolumeId, message: &Message) {
        self.with_control(|_, control| {
            let said = control.connection.borrow_mut().message(volume, message);
            let shorter = shortened(message);
            let said = match (said, shorter) {
                (Err(peer::NotSent::TooLong), Some(shorter)) => {
                    control.connection.borrow_mut().message(volume, &shorter)
                }
                (said, _) => said,
            };
            if let Err(why) = said {
                tracing::warn!(?why, "nothing can be said to another node");
                control.end();
            }
        });
    }

    /// Says something about the unit of a LUN, as `say`.
    pub(crate) fn say_of_unit(&self, volume: VolumeId, whole: &UnitPart) {
        self.with_control(|_, control| {
            for part in UnitPart::cut(whole) {
                let said = control.connection.borrow_mut().unit_part(volume, &part);
                if let Err(why) = said {
                    tracing::warn!(?why, "nothing can be said to another node");
                    return control.end();
                }
            }
        });
    }

    /// Beacons and their answers stand for all LUNs: each moment is said once.
    pub(crate) fn beacon(&self, sent: Moment) {
        self.with_control(|session, control| {
            if session.beacon < Some(sent) {
                session.beacon = Some(sent);
                let _next_time = control.connection.borrow_mut().beacon(sent);
            }
        });
    }

    pub(crate) fn answer(&self, sent: Moment) {
        self.with_control(|session, control| {
            if session.answer < Some(sent) {
                session.answer = Some(sent);
                let _next_time = control.connection.borrow_mut().answer(sent);
            }
        });
    }

    /// Acknowledges over control, behind what was said there.
    pub(crate) fn ack(&self, ring: u8, (volume, epoch, stable): (VolumeId, Epoch, u64)) {
        let position = Position {
            volume,
            epoch,
            below: Sequence(stable),
        };
        let positions = Positions {
            ring,
            positions: vec![position],
        };
        self.with_control(|_, control| {
            if control.connection.borrow_mut().acks(&positions).is_err() {
                control.end();
            }
        });
    }
}

/// The same with the newest epochs of each ring: what a frame holds of them. The other node has
/// the older ones committed, or copies what it lacks.
fn shortened(message: &Message) -> Option<Message> {
    let Message::Lead {
        known,
        rings,
        acknowledged,
    } = message
    else {
        return None;
    };
    let most = 3000 / rings.len().max(1);
    let newest = |ring: &RingSummary| RingSummary {
        epochs: ring.epochs[ring.epochs.len().saturating_sub(most)..].to_vec(),
        next: ring.next,
    };
    Some(Message::Lead {
        known: known.clone(),
        rings: rings.iter().map(newest).collect(),
        acknowledged: acknowledged.clone(),
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use replica::{CopyId, NodeSet, NodeSlot, Revision, RoleRecord};

    #[test]
    fn a_lead_that_is_too_long_keeps_the_newest_epochs_of_each_ring() {
        let slot = NodeSlot(0);
        let record = RoleRecord {
            epoch: Epoch(9000),
            step: 0,
            owner: slot,
            in_sync: NodeSet::of([slot]),
            copies: vec![(slot, CopyId(1))],
        };
        let ring = RingSummary {
            epochs: (0..4000).map(|it| (Epoch(it), it * 2)).collect(),
            next: 8000,
        };
        let known = (Revision(1), record);
        let rings = vec![ring.clone(), ring];
        let acknowledged = vec![5, 6];
        let lead = Message::Lead {
            known,
            rings,
            acknowledged,
        };
        let Some(Message::Lead { rings, .. }) = shortened(&lead) else {
            panic!("it is one");
        };
        for ring in rings {
            assert_eq!(ring.epochs.len(), 1500);
            assert_eq!(ring.epochs.last(), Some(&(Epoch(3999), 7998)));
            assert_eq!(ring.next, 8000);
        }
        let epoch = Epoch(1);
        assert_eq!(shortened(&Message::Yield { epoch }), None);
    }
}
