//! Waking a receiver once for several segments: a low-water mark on the socket, and a timer that
//! ends the wait.
//!
//! **Contract.** Whoever waits is woken when the bytes are there, when the time is over, and when
//! the connection ends. A mark that is set has a timer that rings; where that cannot be had, no
//! mark is set.
//!
//! Spec: socket(7) "SO_RCVLOWAT", timerfd_create(2).

#![expect(
    unsafe_code,
    reason = "no safe crate of ours sets SO_RCVLOWAT, which the kernel heeds for TCP in epoll(7)"
)]

use super::readable::readable;
use crate::Woken;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A mark that differs from what is asked for by less than this part of it stays: what comes is
/// never exactly so much.
const SAME: u32 = 4;

/// How the receiver is woken after a wait that holds or was refused. Where none holds, what an
/// earlier one left is taken back.
pub(super) fn woken(late: bool, at_each: impl FnOnce() -> io::Result<()>) -> io::Result<Woken> {
    if late {
        return Ok(Woken::Late);
    }
    at_each().map(|()| Woken::AtEach)
}

/// The wait of one socket.
pub(super) struct Coalesce {
    timer: AsyncFd<OwnedFd>,
    /// The mark that the socket has.
    mark: Cell<u32>,
    /// The time is over; what is there is taken, however little.
    rung: Cell<bool>,
}

impl Coalesce {
    /// For a socket that is woken at each byte, on the core of the caller.
    pub(super) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self {
            timer: readable(timerfd_create(TimerfdClockId::Monotonic, flags)?)?,
            mark: Cell::new(1),
            rung: Cell::new(false),
        })
    }

    /// Wakes the receiver at so many bytes, or `within` from now.
    pub(super) fn wait(
        &self,
        cx: &mut Context<'_>,
        socket: &impl AsFd,
        bytes: u32,
        within: Duration,
    ) -> io::Result<()> {
        self.set_timer(within)?;
        self.rung.set(false);
        if self.rings(cx) {
            // So short a time is over already.
            cx.waker().wake_by_ref();
        }
        if bytes.abs_diff(self.mark.get()) > bytes / SAME {
            self.set_mark(socket, bytes)?;
        }
        Ok(())
    }

    /// Wakes the receiver at each byte. A timer that still runs rings once, for nothing.
    pub(super) fn at_each(&self, socket: &impl AsFd) -> io::Result<()> {
        self.rung.set(false);
        if self.mark.get() == 1 {
            return Ok(());
        }
        self.set_mark(socket, 1)
    }

    /// What is there when the time is over; pending while it is not, or where nothing is there:
    /// then each byte wakes.
    pub(super) fn poll_late(
        &self,
        cx: &mut Context<'_>,
        socket: &impl AsFd,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if !self.rung.get() && !self.rings(cx) {
            return Poll::Pending;
        }
        if self.mark.get() == 1 {
            // It rang for a wait that is over: the socket reports by itself.
            self.rung.set(false);
            return Poll::Pending;
        }
        match rustix::net::recv(socket, &mut *into, RecvFlags::DONTWAIT) {
            Ok((bytes, _)) => {
                // Where it was full there may be more, which nobody will report.
                self.rung.set(bytes == into.len());
                Poll::Ready(Ok(bytes))
            }
            Err(Errno::AGAIN | Errno::INTR) => match self.at_each(socket) {
                Ok(()) => Poll::Pending,
                Err(error) => Poll::Ready(Err(error)),
            },
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }

    /// The timer has rung since it was set. Otherwise the receiver is woken when it does.
    fn rings(&self, cx: &mut Context<'_>) -> bool {
        while let Poll::Ready(Ok(mut guard)) = self.timer.poll_read_ready(cx) {
            let mut count = [0; 8];
            match rustix::io::read(self.timer.get_ref(), &mut count) {
                Ok(_) => {
                    self.rung.set(true);
                    return true;
                }
                // One that was set anew since it rang.
                Err(_) => guard.clear_ready(),
            }
        }
        false
    }

    fn set_timer(&self, within: Duration) -> io::Result<()> {
        let timer = Itimerspec {
            it_interval: Timespec::default(),
            // Zero would stop it.
            it_value: Timespec {
                tv_sec: within.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: within.subsec_nanos().max(1).into(),
            },
        };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }

    /// The kernel wakes at once where so many bytes are there already (tcp_set_rcvlowat).
    fn set_mark(&self, socket: &impl AsFd, bytes: u32) -> io::Result<()> {
        let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        let length = libc::socklen_t::try_from(size_of_val(&value)).expect("a small constant");
        // SAFETY: `value` is a `c_int` of `length` bytes that outlives the call; the descriptor is
        // borrowed for it.
        let refused = unsafe {
            libc::setsockopt(
                socket.as_fd().as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVLOWAT,
                (&raw const value).cast(),
                length,
            )
        };
        if refused != 0 {
            return Err(io::Error::last_os_error());
        }
        self.mark.set(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod test {
    use super::{Coalesce, woken};
    use crate::real::{Cores, Driver, Runtime, RuntimeConfig};
    use crate::{CoreHandle, CoreId, LocalFuture, Stream, Woken};
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::net::TcpStream;
    use std::rc::Rc;
    use std::task::Poll;
    use std::time::Duration;

    const NEVER: Duration = Duration::from_secs(600);
    const SOON: Duration = Duration::from_millis(20);

    /// A connection of a core with a thread that does what `other` says with its end, and what
    /// `test` makes of it.
    fn between<T: Send + 'static>(
        other: impl FnOnce(TcpStream) + Send + 'static,
        test: impl FnOnce(CoreHandle, Rc<dyn Stream>) -> LocalFuture<T> + Send + 'static,
    ) -> T {
        let config = RuntimeConfig {
            cores: Cores::List(vec![0]),
            driver: Driver::Poll,
            ..RuntimeConfig::default()
        };
        Runtime::start(&config).unwrap().run(CoreId(0), |core| {
            Box::pin(async move {
                let any = "127.0.0.1:0".parse().unwrap();
                let listener = core.net().listen(any).unwrap();
                let to = listener.local();
                let client = std::thread::Builder::new()
                    .spawn(move || other(TcpStream::connect(to).unwrap()))
                    .unwrap();
                let accepted = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
                let stream = core.net().adopt(accepted).unwrap();
                let seen = test(core, stream).await;
                client.join().unwrap();
                seen
            })
        })
    }

    /// What is received with a wait, and in how many calls that were pending.
    async fn received(stream: &dyn Stream, wait: Option<(u32, Duration)>) -> (usize, u32) {
        let (mut memory, mut pending) = ([0; 4096], 0);
        let bytes = poll_fn(|cx| {
            let received = stream.poll_recv(cx, &mut memory);
            if received.is_pending() {
                pending += 1;
                if pending == 1 {
                    let then = stream.coalesce(cx, wait).unwrap();
                    assert_eq!(then == Woken::Late, wait.is_some());
                }
            }
            received
        });
        let bytes = bytes.await.unwrap();
        (bytes, pending)
    }

    /// Waits, and is woken by the end of the wait alone.
    async fn hears_nothing(stream: &dyn Stream, wait: (u32, Duration)) {
        let (mut memory, mut polls) = ([0; 64], 0);
        poll_fn(|cx| {
            polls += 1;
            assert!(stream.poll_recv(cx, &mut memory).is_pending());
            if polls > 1 {
                return Poll::Ready(());
            }
            assert_eq!(stream.coalesce(cx, Some(wait)).unwrap(), Woken::Late);
            Poll::Pending
        })
        .await;
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the other end is a thread of its own that makes pauses"
    )]
    fn slowly(mut client: &TcpStream, pieces: usize) {
        client.set_nodelay(true).unwrap();
        for _ in 0..pieces {
            std::thread::sleep(Duration::from_millis(2));
            client.write_all(&[7; 100]).unwrap();
        }
    }

    #[test]
    fn the_receiver_is_woken_once_for_all_that_was_waited_for() {
        let client = |client: TcpStream| slowly(&client, 10);
        let seen = between(client, |_, stream| {
            Box::pin(async move { received(&*stream, Some((1000, NEVER))).await })
        });
        assert_eq!(seen, (1000, 1));
    }

    #[test]
    fn the_time_ends_the_wait_with_what_is_there_and_each_byte_wakes_after_a_wait_for_nothing() {
        let (say, outcomes) = std::sync::mpsc::channel();
        let client = move |mut client: TcpStream| {
            client.write_all(&[7; 10]).unwrap();
            outcomes.recv().unwrap();
            client.write_all(&[7; 20]).unwrap();
            client.write_all(&[7; 20]).unwrap();
        };
        let seen = between(client, |core, stream| {
            Box::pin(async move {
                let before = core.now();
                let first = received(&*stream, Some((1000, SOON))).await;
                let waited = core.now().since(before);
                hears_nothing(&*stream, (1000, SOON)).await;
                say.send(()).unwrap();
                let (mut rest, mut memory) = (0, [0; 64]);
                while rest < 40 {
                    rest += poll_fn(|cx| stream.poll_recv(cx, &mut memory))
                        .await
                        .unwrap();
                }
                (first.0, waited >= SOON, rest)
            })
        });
        assert_eq!(seen, (10, true, 40));
    }

    #[test]
    fn the_end_of_the_connection_and_another_core_wait_for_nothing() {
        let client = |client: TcpStream| slowly(&client, 1);
        let seen = between(client, |core, stream| {
            Box::pin(async move {
                let mut memory = [0; 64];
                poll_fn(|cx| {
                    assert!(stream.poll_recv(cx, &mut memory).is_pending());
                    let then = stream.coalesce(cx, Some((1000, NEVER)));
                    assert_eq!(then.unwrap(), Woken::Late);
                    Poll::Ready(())
                })
                .await;
                let detached = stream.detach().unwrap();
                drop(stream);
                let stream = core.net().adopt(detached).unwrap();
                let (first, _) = received(&*stream, None).await;
                let (second, _) = received(&*stream, Some((1000, NEVER))).await;
                (first > 0, second)
            })
        });
        assert_eq!(seen, (true, 0));
    }

    #[test]
    fn a_wait_that_cannot_be_taken_back_is_an_error_and_one_that_cannot_be_had_is_none() {
        let seen = between(drop, |_, _| {
            Box::pin(async move {
                let no_socket = std::io::pipe().unwrap().0;
                let coalesce = Coalesce::new().unwrap();
                // To begin with each byte wakes: nothing is to be taken back.
                let refused = woken(false, || coalesce.at_each(&no_socket));
                assert_eq!(refused.unwrap(), Woken::AtEach);
                coalesce.mark.set(1000);
                let stays = woken(false, || coalesce.at_each(&no_socket));
                (stays.is_err(), coalesce.mark.get())
            })
        });
        assert_eq!(seen, (true, 1000));
    }
}
