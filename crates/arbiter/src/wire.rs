//! A connection of `env` as TLS and HTTP want one.

use env::Stream;
use std::cell::Cell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection as what speaks TLS and HTTP wants it.
pub struct Wire {
    stream: Rc<dyn Stream>,
    /// It takes nothing any more. Why the other side ended it, it may have said before: that is
    /// read first.
    is_broken: Cell<bool>,
}

impl Wire {
    /// Over this connection.
    #[must_use]
    pub fn new(stream: Rc<dyn Stream>) -> Self {
        Self {
            stream,
            is_broken: Cell::new(false),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let received = self.stream.poll_recv(cx, into.initialize_unfilled());
        received.map_ok(|bytes| into.advance(bytes))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() || self.is_broken.get() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let sent = self.stream.poll_send(cx, &[IoSlice::new(bytes)]);
        sent.map(|sent| {
            self.is_broken.set(sent.is_err());
            Ok(sent.unwrap_or(bytes.len()))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.shutdown();
        Poll::Ready(Ok(()))
    }
}
