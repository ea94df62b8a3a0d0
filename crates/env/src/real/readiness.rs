//! Receiving and sending by tokio's readiness: the same for TCP and for sockets of this machine.

use super::spin::Activity;
use std::io::{self, ErrorKind, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// What tokio's stream sockets have in common, and no trait for.
pub(super) trait Socket {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
    fn read_now(&self, into: &mut [u8]) -> io::Result<usize>;
    fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize>;
    /// Nothing is there to read any more: the next bytes are a new edge.
    fn forget_readable(&self);
}

macro_rules! socket {
    ($kind:ty) => {
        impl Socket for $kind {
            fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_read_ready(cx)
            }

            fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                self.poll_write_ready(cx)
            }

            fn read_now(&self, into: &mut [u8]) -> io::Result<usize> {
                self.try_read(into)
            }

            fn write_now(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
                self.try_write_vectored(pieces)
            }

            fn forget_readable(&self) {
                let empty = ErrorKind::WouldBlock.into();
                let _cleared: io::Result<()> = self.try_io(Interest::READABLE, || Err(empty));
            }
        }
    };
}

socket!(TcpStream);
socket!(UnixStream);

/// A connected socket, and who wants to know when bytes come or go.
pub(super) struct Connected<S> {
    pub(super) socket: S,
    pub(super) activity: Option<Rc<Activity>>,
}

impl<S: Socket> Connected<S> {
    /// As [`crate::net::Stream::poll_recv`].
    pub(super) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        debug_assert!(!into.is_empty(), "0 bytes would look like the end");
        loop {
            ready!(self.socket.poll_readable(cx))?;
            match self.socket.read_now(into) {
                Ok(bytes) => {
                    self.happened();
                    if bytes > 0 && bytes < into.len() {
                        // The socket is empty, and what comes next is a new edge (epoll(7)): say so
                        // now, which saves the system call that would only find it empty.
                        self.socket.forget_readable();
                    }
                    return Poll::Ready(Ok(bytes));
                }
                Err(error) if is_passing(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// As [`crate::net::Stream::poll_send`].
    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_writable(cx))?;
            match self.socket.write_now(pieces) {
                Err(error) if is_passing(&error) => {}
                other => {
                    self.happened();
                    return Poll::Ready(other);
                }
            }
        }
    }

    pub(super) fn happened(&self) {
        if let Some(activity) = &self.activity {
            activity.happened();
        }
    }
}

/// Readiness is asked for again.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
