//! One connection between two nodes: the task that moves its bytes.

use crate::transport::Channel;
use env::CoreHandle;
use peer::{Connection, Event, Link, Opened, Transmit, exchange};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How long a connection may take to begin.
const BEGINS_WITHIN: Duration = Duration::from_secs(2);

/// Who has lines: hears what comes over them, and puts on them what is to be sent.
pub(crate) trait Hub {
    /// Before a line sends.
    fn pump(&self, line: &Line);

    /// Something came over a line.
    fn event(&self, line: &Rc<Line>, event: Event);

    /// A line is over.
    fn line_is_over(&self, line: &Rc<Line>);
}

/// A connection, as those who send over it see it.
pub(crate) struct Line {
    pub(crate) connection: RefCell<Connection>,
    /// Who is at the other end, once that is known.
    pub(crate) opened: Cell<Option<Opened>>,
    ends: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A channel at this moment.
struct Now<'a, 'b> {
    channel: &'a dyn Channel,
    cx: &'a mut Context<'b>,
}

impl Link for Now<'_, '_> {
    fn send(&mut self, waiting: &Transmit) -> Poll<io::Result<usize>> {
        self.channel.poll_send(self.cx, waiting)
    }

    fn receive(&mut self, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.channel.poll_receive(self.cx, into)
    }
}

impl Line {
    pub(crate) fn new(connection: Connection) -> Rc<Self> {
        Rc::new(Self {
            connection: RefCell::new(connection),
            opened: Cell::new(None),
            ends: Cell::new(false),
            waker: RefCell::new(None),
        })
    }

    /// Something is to be sent.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// It is over, with what waits to be sent.
    pub(crate) fn end(&self) {
        self.ends.set(true);
        self.wake();
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ends.get()
    }

    fn poll_event(&self) -> Option<Event> {
        self.connection.borrow_mut().poll_event()
    }

    /// Moves what can be moved now; ready when it is over.
    fn turn(
        self: &Rc<Self>,
        (core, hub): (&CoreHandle, &dyn Hub),
        (channel, cx): (&dyn Channel, &mut Context<'_>),
    ) -> Poll<()> {
        *self.waker.borrow_mut() = Some(cx.waker().clone());
        loop {
            if self.ends.get() {
                return Poll::Ready(());
            }
            hub.pump(self);
            let mut memory = |bytes| core.pool().alloc(bytes).ok();
            let moved = {
                let mut link = Now { channel, cx };
                exchange(&mut self.connection.borrow_mut(), &mut link, &mut memory)
            };
            let mut any = false;
            while let Some(event) = self.poll_event() {
                any = true;
                hub.event(self, event);
            }
            match moved {
                Err(error) => {
                    tracing::debug!(%error, "a connection between nodes ended");
                    return Poll::Ready(());
                }
                Ok(moved) if !moved && !any => return Poll::Pending,
                Ok(_) => {}
            }
        }
    }

    /// Runs it to its end.
    pub(crate) async fn run(
        self: Rc<Self>,
        core: CoreHandle,
        hub: Rc<dyn Hub>,
        channel: Rc<dyn Channel>,
    ) {
        let (late, here) = (Rc::clone(&self), Rc::clone(&core));
        core.spawn(Box::pin(async move {
            here.sleep_until(here.now().after(BEGINS_WITHIN)).await;
            if late.opened.get().is_none() {
                late.end();
            }
        }));
        poll_fn(|cx| self.turn((&core, &*hub), (&*channel, cx))).await;
        channel.end();
        self.ends.set(true);
        hub.line_is_over(&self);
    }
}
