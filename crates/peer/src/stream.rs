//! The records of one ring between two nodes, over whatever connections come one after the other.
//!
//! ```text
//!   push --> held, in order --> sent (while there are credits) --> acknowledged: let go
//!                 ^                        |
//!                 +--- a new connection ---+  all that is held is sent again
//!
//!   records --> followed? next? --> New: into the log --> stable: acknowledged, granted again
//! ```
//!
//! Both halves work side by side: each of the two nodes owns some LUNs, and follows others.
//!
//! **Contract.** One connection at a time. What [`RingStream::records`] gives out as new continues
//! the LUN's changes without a gap and without repetition, as long as one owner's stream is
//! followed, whatever connections were lost. Where the other node's process is another one,
//! everything begins anew.

mod inbound;
mod outbound;

use crate::connection::{Connection, Opened};
use crate::ids::{ConnectionNumber, Incarnation, Purpose};
use crate::limits::{Cost, POSITIONS_MAX};
use crate::position::{Position, Positions};
use crate::records::Records;
use crate::refusal::NotSent;
use crate::rules::holds;
use inbound::Inbound;
use journal::{Sequence, VolumeId};
use outbound::Outbound;
use replica::Epoch;

/// What a stream may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// What the other node may have sent that is not stable here: at least [`Cost::FRAME_MAX`].
    pub window: Cost,
    /// What is held here until the other node acknowledges it.
    pub held: Cost,
}

/// How a connection goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attached {
    /// With the process that was there before: with what was not acknowledged.
    Resumes,
    /// With another process: nothing is held any more, and no LUN is streamed or followed.
    Anew,
}

/// Why a connection does not become the stream's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Late {
    /// It is not newer than the one that the stream has or had: end it with
    /// [`Reason::Replaced`](crate::Reason::Replaced).
    NotNewer,
    /// It is for something else, or has not begun.
    NotOfTheRing,
}

/// Why records are not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotTaken {
    /// As much is held as may be: the owner waits, or removes the other copy.
    Full(Records),
    /// The LUN is not streamed in that epoch, or other numbers come next.
    NotNext(Records),
}

/// What became of records that came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Taken {
    /// These are the next ones.
    New(Records),
    /// All of them came before.
    Repeated,
    /// No stream of their LUN and epoch is followed.
    NotFollowed,
    /// Some are missing before them: end the connection with
    /// [`Reason::OutOfOrder`](crate::Reason::OutOfOrder).
    Gap(crate::Breach),
}

/// The stream of a ring between this node and another one.
pub struct RingStream {
    ring: u8,
    limits: Limits,
    /// The other process, and the last connection with it.
    last: Option<(Incarnation, ConnectionNumber)>,
    /// The last number that this side gave to a connection.
    numbered: u64,
    out: Outbound,
    inbound: Inbound,
}

impl RingStream {
    /// One on which nothing has come.
    ///
    /// # Panics
    /// If a frame of the largest size would not fit the window.
    #[must_use]
    pub fn new(ring: u8, limits: Limits) -> Self {
        assert!(
            Cost::FRAME_MAX.is_within(limits.window),
            "the largest frame fits the window"
        );
        Self {
            ring,
            limits,
            last: None,
            numbered: 0,
            out: Outbound::default(),
            inbound: Inbound::default(),
        }
    }

    /// The number for a connection that this side makes now. Where the other side refuses it as not
    /// newer than one that it has made, the next one is higher.
    ///
    /// One attempt at a time: a newer one takes the place of an older one that has just begun, and
    /// nothing ever gets through.
    #[must_use]
    pub fn next_number(&mut self) -> ConnectionNumber {
        let last = self.last.map_or(0, |(_, number)| number.0);
        self.numbered = self.numbered.max(last).saturating_add(1);
        ConnectionNumber(self.numbered)
    }

    /// A connection has begun: the stream goes on over it, and over no earlier one.
    ///
    /// # Errors
    /// Why it does not; nothing has changed then.
    pub fn attach(&mut self, opened: &Opened) -> Result<Attached, Late> {
        if opened.purpose != Purpose::Ring(self.ring) {
            return Err(Late::NotOfTheRing);
        }
        let before = self.last.filter(|(of, _)| *of == opened.incarnation);
        if before.is_some_and(|(_, number)| opened.number <= number)
            && holds!(OldConnectionsAreRefused)
        {
            return Err(Late::NotNewer);
        }
        self.last = Some((opened.incarnation, opened.number));
        if before.is_none() {
            self.out = Outbound::default();
            self.inbound.leave_all();
            return Ok(Attached::Anew);
        }
        self.out.resume();
        self.inbound.resume();
        Ok(Attached::Resumes)
    }

    /// This node owns the LUN, and the other one follows from this number on. What was streamed of
    /// the LUN before is let go.
    pub fn begin(&mut self, volume: VolumeId, epoch: Epoch, from: Sequence) {
        self.out.begin(volume, epoch, from);
    }

    /// The LUN is streamed to the other node no more.
    pub fn end(&mut self, volume: VolumeId) {
        self.out.end(volume);
    }

    /// The next records of a LUN.
    ///
    /// # Errors
    /// Why they are not taken.
    pub fn push(&mut self, records: Records) -> Result<(), NotTaken> {
        self.out.push(records, self.limits.held)
    }

    /// Everything below is committed.
    pub fn commit(&mut self, volume: VolumeId, epoch: Epoch, below: Sequence) {
        self.out.commit(volume, epoch, below);
    }

    /// The other node has these stable.
    pub fn acks(&mut self, positions: &Positions) {
        if positions.ring == self.ring {
            self.out.acks(&positions.positions);
        }
    }

    /// What is held for the other node.
    #[must_use]
    pub const fn held(&self) -> Cost {
        self.out.held()
    }

    /// Something waits to be sent: for credits, for room, or for a connection.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.out.is_waiting()
    }

    /// This node follows the other one's stream of a LUN, from this number on.
    pub fn follow(&mut self, volume: VolumeId, epoch: Epoch, next: Sequence) {
        self.inbound.follow(volume, epoch, next);
    }

    /// This node follows no stream of that LUN any more.
    pub fn leave(&mut self, volume: VolumeId) {
        self.inbound.leave(volume);
    }

    /// Records came. Their memory counts as held until they are [stable](Self::stable), or were
    /// answered as anything but new.
    pub fn records(&mut self, records: Records) -> Taken {
        self.inbound.records(records)
    }

    /// Everything below is stable in the log here.
    pub fn stable(&mut self, volume: VolumeId, epoch: Epoch, below: Sequence) {
        self.inbound.stable(volume, epoch, below);
    }

    /// What came, is not stable yet, and so takes memory.
    #[must_use]
    pub const fn unstable(&self) -> Cost {
        self.inbound.held()
    }

    /// Puts on its way what may go now: credits, acknowledgements, records, and with those the
    /// commit positions that changed. Call it after anything above, when something was sent, and
    /// when credits came.
    pub fn pump(&mut self, connection: &mut Connection) {
        let done = self.pump_all(connection);
        debug_assert!(
            !matches!(
                done,
                Err(NotSent::NotHere | NotSent::OwnFrame | NotSent::TooLong)
            ),
            "{done:?}"
        );
    }

    fn pump_all(&mut self, connection: &mut Connection) -> Result<(), NotSent> {
        self.grant(connection)?;
        let ring = self.ring;
        send(self.inbound.unsaid(), |positions| {
            connection.acks(&Positions { ring, positions })
        })?;
        if self.out.send(connection)? {
            self.flush_all(connection)?;
        }
        Ok(())
    }

    /// Puts commit positions on their way that no records went with.
    pub fn flush(&mut self, connection: &mut Connection) {
        // What does not go now goes with the next records, or the next flush.
        let _ = self.flush_all(connection);
    }

    fn flush_all(&mut self, connection: &mut Connection) -> Result<(), NotSent> {
        let ring = self.ring;
        send(self.out.unsaid(), |positions| {
            connection.commits(&Positions { ring, positions })
        })
    }

    /// Grants what is free, where that is worth a frame. When nothing is held and a frame of the
    /// largest size could not come, everything is granted: else its sender might wait for ever.
    fn grant(&self, connection: &mut Connection) -> Result<(), NotSent> {
        let (window, outstanding) = (self.limits.window, connection.outstanding());
        let mut taken = outstanding;
        if holds!(HeldIsNotGranted) {
            taken = taken.plus(self.inbound.held());
        }
        let free = window.less(taken);
        let is_much = free.bytes >= window.bytes / 4 || free.records >= window.records / 4;
        let is_needed = self.inbound.held().is_nothing()
            && !Cost::FRAME_MAX.is_within(outstanding)
            && holds!(AllIsGrantedWhenNothingIsHeld);
        if !free.is_nothing() && (is_much || is_needed) {
            connection.grant(free)?;
        }
        Ok(())
    }
}

/// Sends positions in frames of their size; those that went count as said.
fn send<'a>(
    unsaid: impl Iterator<Item = (Position, &'a mut bool)>,
    mut frame: impl FnMut(Vec<Position>) -> Result<(), NotSent>,
) -> Result<(), NotSent> {
    let mut unsaid = unsaid.peekable();
    while unsaid.peek().is_some() {
        let (positions, said): (Vec<_>, Vec<_>) = unsaid.by_ref().take(POSITIONS_MAX).unzip();
        frame(positions)?;
        for it in said {
            *it = true;
        }
    }
    Ok(())
}
