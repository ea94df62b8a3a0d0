//! One session on one connection, driven by its owner's own loop, for many commands in
//! flight.
//!
//! ```text
//!   loop { poll_event -> what ended -> submit, submit, ... }
//!             |
//!             '- only when no event is left: send all that waits at once, then receive in bulk
//! ```

use crate::lost::Lost;
use crate::receive::Receive;
use env::{CoreHandle, DetachedStream, LocalFuture, Stream, StreamMeasures};
use iscsi::initiator_side::{
    InitiatorCommand, InitiatorConfig, InitiatorConnection, InitiatorEvent,
};
use iscsi::{Itt, Lun, Parameters, Tsih, Want};
use smallvec::SmallVec;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use units::{Buf, BufMut, Now};

/// Pieces of one vectored send (IOV_MAX).
const PIECES_MAX: usize = 1024;

/// Pieces of a send for which no memory is asked.
const PIECES_USUAL: usize = 64;

/// Receives of one turn, before others on this core get theirs.
const RECEIVES_MAX: u32 = 64;

/// A connection of an initiator. Dropping it closes the socket without a logout.
pub struct Connection {
    core: CoreHandle,
    stream: Rc<dyn Stream>,
    machine: InitiatorConnection,
    receive: Receive,
    timer: Option<(Now, LocalFuture<()>)>,
    lost: Option<Lost>,
    received_at: Now,
    pinged_at: Now,
    tsih: Tsih,
    portal_group_tag: Option<u16>,
}

impl Connection {
    /// Begins a login on a connected socket: the first event is [`InitiatorEvent::LoggedIn`] or
    /// [`InitiatorEvent::LoginFailed`]. [`crate::connect`] does all of it.
    #[must_use]
    pub fn begin(core: &CoreHandle, stream: Rc<dyn Stream>, config: &InitiatorConfig) -> Self {
        Self {
            core: Rc::clone(core),
            stream,
            machine: InitiatorConnection::new(core.now(), config),
            receive: Receive::new(core),
            timer: None,
            lost: None,
            received_at: core.now(),
            pinged_at: Now::ZERO,
            tsih: Tsih::default(),
            portal_group_tag: None,
        }
    }

    /// The values in force.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        self.machine.parameters()
    }

    /// What the target calls the session; 0 before [`InitiatorEvent::LoggedIn`].
    #[must_use]
    pub fn tsih(&self) -> Tsih {
        self.tsih
    }

    /// TargetPortalGroupTag of the portal, where the target has reported it.
    #[must_use]
    pub fn portal_group_tag(&self) -> Option<u16> {
        self.portal_group_tag
    }

    /// The socket.
    #[must_use]
    pub fn stream(&self) -> &Rc<dyn Stream> {
        &self.stream
    }

    /// When something was last received: the time of the events that follow from it, without
    /// another reading of the clock.
    #[must_use]
    pub fn received_at(&self) -> Now {
        self.received_at
    }

    /// The time, as the core's loop has read it last.
    pub(crate) fn recent(&self) -> Now {
        self.core.recent()
    }

    /// When the last ping was queued.
    #[must_use]
    pub fn pinged_at(&self) -> Now {
        self.pinged_at
    }

    /// What the system measured of the connection.
    #[must_use]
    pub fn measured(&self) -> Option<StreamMeasures> {
        self.stream.measured()
    }

    /// Destroys the connection: the socket is gone when this returns, and what waited in it is
    /// thrown away. It ends with [`Lost::Destroyed`].
    pub fn abort(&mut self) {
        self.lost.get_or_insert(Lost::Destroyed);
        self.stream.abort();
        self.stream = Rc::new(Gone {
            local: self.stream.local(),
            peer: self.stream.peer(),
        });
    }

    /// No byte of the command has left; false also for one that has ended.
    #[must_use]
    pub fn is_unsent(&self, itt: Itt) -> bool {
        self.machine.is_unsent(itt)
    }

    /// Queues a ping; [`InitiatorEvent::Pong`] is the answer to the last one.
    pub fn ping(&mut self) -> Itt {
        self.pinged_at = self.core.now();
        self.machine.ping()
    }

    /// Queues a Text Request with these pairs; one exchange at a time.
    pub fn text(&mut self, pairs: &[(&str, &str)]) -> Itt {
        self.machine.text(pairs)
    }

    /// Commands that have not ended.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.machine.in_progress()
    }

    /// Queues a command: `data_out` is what it writes, `into` where it reads to; one of them is
    /// empty. It leaves with the next [`poll_event`](Self::poll_event), or when the target's
    /// command window opens.
    ///
    /// # Panics
    /// Before [`InitiatorEvent::LoggedIn`].
    pub fn submit(
        &mut self,
        command: InitiatorCommand,
        data_out: Buf,
        into: Option<BufMut>,
    ) -> Itt {
        self.machine.submit(command, data_out, into)
    }

    /// Gives a command up: nothing is reported of it any more.
    pub fn forget(&mut self, itt: Itt) {
        self.machine.forget(itt);
    }

    /// Takes back a command that waits for the target's window: it is never sent. False for any
    /// other.
    pub fn withdraw(&mut self, itt: Itt) -> bool {
        self.machine.withdraw(itt)
    }

    /// Queues a task management function (RFC 7143 11.5.1 "Function").
    pub fn task_management(&mut self, function: u8, lun: Lun, referenced: Option<Itt>) -> Itt {
        self.machine.task_management(function, lun, referenced)
    }

    /// Queues SendTargets: `All`, or a name.
    pub fn send_targets(&mut self, value: &str) -> Itt {
        self.machine.send_targets(value)
    }

    /// Queues a logout.
    pub fn logout(&mut self) {
        self.machine.logout();
    }

    /// The next event. Sends and receives where none is at hand.
    ///
    /// # Errors
    /// Why the connection is over; from then on always.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<InitiatorEvent, Lost>> {
        let mut receives = 0;
        loop {
            match self.machine.poll_event() {
                Some(InitiatorEvent::Closed(reason)) => {
                    self.lost.get_or_insert(Lost::Protocol(reason));
                }
                Some(event) => {
                    if let InitiatorEvent::LoggedIn {
                        tsih,
                        portal_group_tag,
                        ..
                    } = &event
                    {
                        (self.tsih, self.portal_group_tag) = (*tsih, *portal_group_tag);
                    }
                    return Poll::Ready(Ok(event));
                }
                None => {}
            }
            if let Some(lost) = &self.lost {
                return Poll::Ready(Err(lost.clone()));
            }
            self.send(cx);
            if self.lost.is_some() {
                continue;
            }
            if receives == RECEIVES_MAX {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            receives += 1;
            let moved = self.receive(cx) | self.tick(cx);
            if !moved {
                return Poll::Pending;
            }
        }
    }

    /// Sends what waits, until the socket takes no more (it then wakes us).
    fn send(&mut self, cx: &mut Context<'_>) {
        while !self.machine.transmit().is_empty() {
            let pieces = self.machine.transmit().pieces().take(PIECES_MAX);
            let pieces: SmallVec<[IoSlice<'_>; PIECES_USUAL]> = pieces.map(IoSlice::new).collect();
            match self.stream.poll_send(cx, &pieces) {
                Poll::Pending => return,
                Poll::Ready(Ok(bytes)) => {
                    drop(pieces);
                    self.machine.sent(bytes);
                }
                Poll::Ready(Err(error)) => {
                    self.lost = Some(error.into());
                    return;
                }
            }
        }
    }

    /// Receives once; false where nothing has come.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let want = self.machine.want();
        if want == Want::Nothing {
            return false;
        }
        if Receive::is_direct(want) {
            let received = self.stream.poll_recv(cx, self.machine.data_chunk());
            return self.received(received, |connection, n| connection.machine.data_filled(n));
        }
        let scratch = Rc::clone(&self.receive.scratch);
        let mut scratch = scratch.0.borrow_mut();
        let received = self.stream.poll_recv(cx, &mut scratch);
        self.received(received, |connection, n| {
            let now = connection.received_at;
            // A breach also is an event, the last one.
            let _breach = connection
                .receive
                .hand_in(&mut connection.machine, now, &scratch[..n]);
        })
    }

    fn received(
        &mut self,
        received: Poll<std::io::Result<usize>>,
        hand_in: impl FnOnce(&mut Self, usize),
    ) -> bool {
        match received {
            Poll::Pending => return false,
            Poll::Ready(Ok(0)) => self.lost = Some(Lost::PeerClosed),
            Poll::Ready(Ok(n)) => {
                self.received_at = self.core.now();
                hand_in(self, n);
            }
            Poll::Ready(Err(error)) => self.lost = Some(error.into()),
        }
        true
    }

    /// True where time has made something happen.
    fn tick(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(at) = self.machine.next_tick() else {
            self.timer = None;
            return false;
        };
        // A deadline that has moved on is compared again when the old one is reached.
        if self.timer.as_ref().is_none_or(|(set, _)| *set > at) {
            self.timer = Some((at, self.core.sleep_until(at)));
        }
        let rung = self.timer.as_mut();
        let rung = rung.is_some_and(|(_, timer)| timer.as_mut().poll(cx).is_ready());
        if rung {
            self.timer = None;
            self.machine.tick(self.core.now());
        }
        rung
    }
}

/// The place of a socket that was destroyed.
struct Gone {
    local: SocketAddr,
    peer: SocketAddr,
}

impl Stream for Gone {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn poll_recv(&self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
    }

    fn poll_send(&self, _: &mut Context<'_>, _: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
    }

    fn shutdown(&self) {}

    fn detach(&self) -> io::Result<DetachedStream> {
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}
