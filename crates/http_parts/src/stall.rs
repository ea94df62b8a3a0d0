//! A connection whose other end reads nothing is ended: it would hold its answer for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A stream of which a write fails when nothing of it went out for a time.
pub struct Stalling<S> {
    stream: S,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Stalling<S> {
    /// One whose writes fail with [`io::ErrorKind::TimedOut`] when `patience` is over.
    pub fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            waiting: None,
        }
    }

    /// What the stream answered, or that it has waited too long.
    fn judge<T>(
        &mut self,
        cx: &mut Context<'_>,
        answer: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if answer.is_ready() {
            self.waiting = None;
            return answer;
        }
        let patience = self.patience;
        let timer = self
            .waiting
            .get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(timer.as_mut().poll(cx));
        let why = "the other end reads nothing";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.judge(cx, answer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_flush(cx);
        self.judge(cx, answer)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.judge(cx, answer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write_vectored(cx, pieces);
        self.judge(cx, answer)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[test]
    fn who_reads_nothing_is_ended_and_who_reads_slowly_is_not() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            let patience = Duration::from_millis(300);
            let (ours, _silent) = tokio::io::duplex(16);
            let mut ours = Stalling::new(ours, patience);
            let ended = ours.write_all(&[0; 64]).await.unwrap_err();
            assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
            let (ours, mut slow) = tokio::io::duplex(16);
            let mut ours = Stalling::new(ours, patience);
            let reading = tokio::spawn(async move {
                for _ in 0..8 {
                    sleep(patience / 3).await;
                    slow.read_exact(&mut [0; 16]).await.unwrap();
                }
            });
            ours.write_all(&[0; 128]).await.unwrap();
            reading.await.unwrap();
        });
    }
}
