//! Unix sockets: connections within this machine, found by a path.

use super::readable::readable;
use super::readiness::Connected;
use super::spin::Activity;
use crate::net::{DetachedStream, Listener, Stream};
use rustix::fs::{FileType, Mode, chmod, lstat, unlink};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, connect, listen,
    socket_with,
};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;

/// Connections that may wait for being accepted.
const BACKLOG: i32 = 128;

/// What such a socket has instead of an address.
fn nowhere() -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, 0).into()
}

/// A listening socket and its name, which goes with it.
pub(super) struct LocalListener {
    socket: AsyncFd<OwnedFd>,
    path: PathBuf,
    /// Device and inode of the name when it was made.
    identity: (u64, u64),
}

fn identity(path: &Path) -> rustix::io::Result<(u64, u64)> {
    let found = lstat(path)?;
    Ok((found.st_dev, found.st_ino))
}

fn new_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Removes what a process that is gone has left; an error where the name is in use.
fn make_room(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let found = match lstat(path) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is something that is no socket, which is left alone",
        ));
    }
    match connect(&new_socket()?, address) {
        Err(Errno::CONNREFUSED) => Ok(unlink(path)?),
        Err(Errno::NOENT) => Ok(()),
        // A queue that is full belongs to somebody who lives.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process listens there",
        )),
        Err(error) => Err(error.into()),
    }
}

impl LocalListener {
    pub(super) fn start(path: &Path) -> io::Result<Self> {
        let address = SocketAddrUnix::new(path)?;
        make_room(path, &address)?;
        let socket = new_socket()?;
        bind(&socket, &address)?;
        let identity = identity(path)?;
        // Before anybody can connect, so that nobody else ever may.
        chmod(path, Mode::RUSR | Mode::WUSR)?;
        listen(&socket, BACKLOG)?;
        Ok(Self {
            socket: readable(socket)?,
            path: path.to_owned(),
            identity,
        })
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        if identity(&self.path) == Ok(self.identity) {
            // There is nobody to report it to; the next one replaces it.
            let _left = unlink(&self.path);
        }
    }
}

impl Listener for LocalListener {
    fn local(&self) -> SocketAddr {
        nowhere()
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<DetachedStream>> {
        loop {
            let mut guard = ready!(self.socket.poll_read_ready(cx))?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match accept_with(self.socket.get_ref(), flags) {
                Ok(socket) => {
                    return Poll::Ready(Ok(DetachedStream {
                        local: nowhere(),
                        peer: nowhere(),
                        inner: Box::new(StdStream::from(socket)),
                    }));
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }
}

/// A connection.
pub(super) struct LocalStream(Connected<UnixStream>);

impl LocalStream {
    pub(super) fn make(
        socket: StdStream,
        activity: Option<Rc<Activity>>,
    ) -> io::Result<Rc<dyn Stream>> {
        let socket = UnixStream::from_std(socket)?;
        Ok(Rc::new(Self(Connected { socket, activity })))
    }
}

impl Stream for LocalStream {
    fn local(&self) -> SocketAddr {
        nowhere()
    }

    fn peer(&self) -> SocketAddr {
        nowhere()
    }

    fn poll_recv(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, into)
    }

    fn poll_send(&self, cx: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.0.poll_send(cx, pieces)
    }

    fn shutdown(&self) {
        // It may be over already: then there is nothing to end.
        let _over = rustix::net::shutdown(&self.0.socket, rustix::net::Shutdown::Both);
    }

    fn detach(&self) -> io::Result<DetachedStream> {
        let socket = rustix::io::fcntl_dupfd_cloexec(&self.0.socket, 0)?;
        Ok(DetachedStream {
            local: nowhere(),
            peer: nowhere(),
            inner: Box::new(StdStream::from(socket)),
        })
    }
}

#[cfg(test)]
mod test {
    use crate::real::{Cores, Driver, FilesMode, Runtime, RuntimeConfig};
    use crate::{CoreHandle, CoreId, LocalFuture};
    use std::future::poll_fn;
    use std::io::{ErrorKind, IoSlice, Read as _, Write as _};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::PathBuf;

    fn on_a_core<T: Send + 'static>(
        test: impl FnOnce(CoreHandle) -> LocalFuture<T> + Send + 'static,
    ) -> T {
        let config = RuntimeConfig {
            cores: Cores::List(vec![0]),
            driver: Driver::Poll,
            files: FilesMode::Ordinary,
            ..RuntimeConfig::default()
        };
        Runtime::start(&config).unwrap().run(CoreId(0), test)
    }

    fn place(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("causeway-local-{name}-{}", std::process::id()));
        // A run before may have been killed.
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn bytes_go_in_both_directions_and_the_name_goes_with_the_listener() {
        let path = place("echo");
        let at = path.clone();
        let client = std::thread::Builder::new().spawn(move || {
            let mut stream = loop {
                match UnixStream::connect(&at) {
                    Ok(stream) => break stream,
                    Err(_) => std::thread::yield_now(),
                }
            };
            let mode = std::fs::metadata(&at).unwrap().permissions().mode();
            stream.write_all(b"hello").unwrap();
            let mut back = [0; 10];
            stream.read_exact(&mut back).unwrap();
            (mode & 0o777, back)
        });
        let at = path.clone();
        on_a_core(move |core| {
            Box::pin(async move {
                let listener = core.net().listen_local(&at).unwrap();
                let accepted = poll_fn(|cx| listener.poll_accept(cx)).await.unwrap();
                let stream = core.net().adopt(accepted).unwrap();
                let mut memory = [0; 64];
                let mut have = 0;
                while have < 5 {
                    have += poll_fn(|cx| stream.poll_recv(cx, &mut memory[have..]))
                        .await
                        .unwrap();
                }
                let pieces = [IoSlice::new(&memory[..5]), IoSlice::new(b" back")];
                assert_eq!(
                    poll_fn(|cx| stream.poll_send(cx, &pieces)).await.unwrap(),
                    10
                );
            })
        });
        assert_eq!(client.unwrap().join().unwrap(), (0o600, *b"hello back"));
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_replaced_and_what_lives_or_is_no_socket_is_not() {
        let refused = |path: &PathBuf| {
            let at = path.clone();
            on_a_core(move |core| {
                Box::pin(
                    async move { core.net().listen_local(&at).err().map(|error| error.kind()) },
                )
            })
        };
        let path = place("stale");
        let live = UnixListener::bind(&path).unwrap();
        assert_eq!(refused(&path), Some(ErrorKind::AddrInUse));
        // A process that another test starts has a copy of it until it executes something.
        rustix::net::shutdown(&live, rustix::net::Shutdown::Both).unwrap();
        drop(live);
        assert!(path.exists(), "a dead listener leaves its name");
        assert_eq!(refused(&path), None);
        std::fs::write(&path, "precious").unwrap();
        assert_eq!(refused(&path), Some(ErrorKind::AlreadyExists));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            refused(&PathBuf::from("/nonexistent/x")),
            Some(ErrorKind::NotFound)
        );
    }
}
