//! TCP over tokio's readiness.

use super::coalesce::{Coalesce, woken};
use super::ethtool::Ethtool;
use super::local::{LocalListener, LocalStream};
use super::measures;
use super::readable::readable;
use super::readiness::Connected;
use super::spin::Activity;
use super::watch::{self, Watch};
use crate::LocalFuture;
use crate::net::{
    DetachedStream, DriverFacts, InterfaceWatch, Listener, Net, Route, Stream, StreamMeasures,
    Woken,
};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, acceptfrom_with, bind, ipproto, listen, socket_with,
    sockopt,
};
use std::cell::OnceCell;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::{TcpSocket, TcpStream};

/// Connections that may wait for being accepted.
const BACKLOG: i32 = 1024;

/// The network as one core sees it.
pub(super) struct RealNet {
    /// Notified when bytes come or go, where the core polls busily.
    pub(super) activity: Option<Rc<Activity>>,
}

impl Net for RealNet {
    fn listen(&self, at: SocketAddr) -> io::Result<Rc<dyn Listener>> {
        let family = match at {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if at.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        bind(&socket, &at)?;
        listen(&socket, BACKLOG)?;
        let local = SocketAddr::try_from(rustix::net::getsockname(&socket)?)?;
        Ok(Rc::new(RealListener {
            socket: readable(socket)?,
            local,
        }))
    }

    fn connect(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
    ) -> LocalFuture<io::Result<Rc<dyn Stream>>> {
        self.connect_by(to, from, None)
    }

    fn connect_by(
        &self,
        to: SocketAddr,
        from: Option<IpAddr>,
        interface: Option<&str>,
    ) -> LocalFuture<io::Result<Rc<dyn Stream>>> {
        let activity = self.activity.clone();
        let interface = interface.map(str::to_owned);
        Box::pin(async move {
            let socket = match to {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            if let Some(interface) = interface {
                socket.bind_device(Some(interface.as_bytes()))?;
            }
            if let Some(from) = from {
                socket.bind(SocketAddr::new(from, 0))?;
            }
            RealStream::make(socket.connect(to).await?, activity)
        })
    }

    fn adopt(&self, stream: DetachedStream) -> io::Result<Rc<dyn Stream>> {
        let inner = match stream.inner.downcast::<std::os::unix::net::UnixStream>() {
            Ok(local) => return LocalStream::make(*local, self.activity.clone()),
            Err(other) => other,
        };
        let inner = inner.downcast::<std::net::TcpStream>();
        let inner = inner.map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "this stream belongs to another environment",
            )
        })?;
        RealStream::make(TcpStream::from_std(*inner)?, self.activity.clone())
    }

    fn listen_local(&self, path: &Path) -> io::Result<Rc<dyn Listener>> {
        Ok(Rc::new(LocalListener::start(path)?))
    }

    fn watch_interfaces(&self) -> io::Result<Rc<dyn InterfaceWatch>> {
        Ok(Rc::new(Watch::start()?))
    }

    fn route(&self, to: IpAddr, from: Option<IpAddr>) -> io::Result<Route> {
        watch::route(to, from)
    }

    fn passes(
        &self,
        to: IpAddr,
        from: IpAddr,
        bytes: u32,
    ) -> LocalFuture<io::Result<Option<bool>>> {
        Box::pin(super::probe::passes(to, from, bytes))
    }

    fn driver(&self, interface: &str) -> io::Result<DriverFacts> {
        Ethtool::here()?.facts(interface)
    }
}

struct RealListener {
    socket: AsyncFd<OwnedFd>,
    local: SocketAddr,
}

impl Listener for RealListener {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<DetachedStream>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match acceptfrom_with(self.socket.get_ref(), flags) {
                Ok((socket, peer)) => {
                    let Some(peer) = peer else {
                        return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
                    };
                    let stream = std::net::TcpStream::from(socket);
                    return Poll::Ready(Ok(DetachedStream {
                        local: stream.local_addr()?,
                        peer: SocketAddr::try_from(peer)?,
                        inner: Box::new(stream),
                    }));
                }
                Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

struct RealStream {
    connected: Connected<TcpStream>,
    local: SocketAddr,
    peer: SocketAddr,
    /// From the first wait for more than a byte on.
    coalesce: OnceCell<Coalesce>,
}

impl RealStream {
    fn make(socket: TcpStream, activity: Option<Rc<Activity>>) -> io::Result<Rc<dyn Stream>> {
        socket.set_nodelay(true)?;
        let (local, peer) = (socket.local_addr()?, socket.peer_addr()?);
        Ok(Rc::new(Self {
            connected: Connected { socket, activity },
            local,
            peer,
            coalesce: OnceCell::new(),
        }))
    }

    fn wait_for(&self, cx: &mut Context<'_>, bytes: u32, within: Duration) -> io::Result<()> {
        let coalesce = match self.coalesce.get() {
            Some(coalesce) => coalesce,
            None => {
                let made = Coalesce::new()?;
                self.coalesce.get_or_init(|| made)
            }
        };
        coalesce.wait(cx, &self.connected.socket, bytes, within)
    }

    fn at_each(&self) -> io::Result<()> {
        match self.coalesce.get() {
            Some(coalesce) => coalesce.at_each(&self.connected.socket),
            None => Ok(()),
        }
    }
}

impl Stream for RealStream {
    fn local(&self) -> SocketAddr {
        self.local
    }

    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn poll_recv(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        if let Some(coalesce) = self.coalesce.get()
            && let Poll::Ready(received) = coalesce.poll_late(cx, &self.connected.socket, into)
        {
            self.connected.happened();
            return Poll::Ready(received);
        }
        self.connected.poll_recv(cx, into)
    }

    fn coalesce(&self, cx: &mut Context<'_>, wait: Option<(u32, Duration)>) -> io::Result<Woken> {
        let late = wait.is_some_and(|(bytes, within)| self.wait_for(cx, bytes, within).is_ok());
        woken(late, || self.at_each())
    }

    fn poll_send(&self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.connected.poll_send(cx, pieces)
    }

    fn shutdown(&self) {
        // It may be over already: then there is nothing to end.
        let _over = rustix::net::shutdown(&self.connected.socket, rustix::net::Shutdown::Both);
    }

    fn abort(&self) {
        // Without lingering, the close that follows sends a reset and forgets what waits.
        let _gone = self.connected.socket.set_zero_linger();
    }

    fn measured(&self) -> Option<StreamMeasures> {
        measures::of(&self.connected.socket)
    }

    fn detach(&self) -> io::Result<DetachedStream> {
        // The next core has a timer of its own.
        self.at_each()?;
        // A descriptor of its own: this one leaves this core's event loop when it is dropped.
        let socket = rustix::io::fcntl_dupfd_cloexec(&self.connected.socket, 0)?;
        Ok(DetachedStream {
            local: self.local,
            peer: self.peer,
            inner: Box::new(std::net::TcpStream::from(socket)),
        })
    }
}
