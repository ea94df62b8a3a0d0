//! Listening, the server's thread, and its end.

use crate::auth::Transport;
use crate::documents::{self, Documents};
use crate::idempotency::Keys;
use crate::routes::with_keys;
use axum::Router;
use controller::{Handle, Reached};
use manifest::code::Code;
use manifest::config::ApiAddress;
use manifest::problem::Problem;
use manifest::secret::Secret;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;

/// How long a stop waits for requests that are being answered.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// How soon an address that cannot be had is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Sockets that listen, before anyone serves them.
#[derive(Debug)]
pub struct Bound {
    sockets: Vec<Socket>,
    /// The addresses with real ports, as `--api` takes them.
    pub addresses: Vec<String>,
    /// Those that cannot be had yet, and why.
    away: Vec<(ApiAddress, String)>,
    reached: Reached,
}

impl Bound {
    /// Where it can be reached, kept up to date while it is served.
    #[must_use]
    pub fn reached(&self) -> Reached {
        self.reached.clone()
    }
}

/// How a socket is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Unix,
    Tcp,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

/// Listens at every address.
///
/// # Errors
/// The address that cannot be had, and why.
pub fn bind(listen: &[ApiAddress]) -> Result<Bound, Problem> {
    let bound = bind_what_can_be(listen);
    match bound.away.first() {
        Some((address, why)) => {
            let detail = format!("{address}: {why}");
            Err(Problem::new(Code::ConfigEnvironment, detail))
        }
        None => Ok(bound),
    }
}

/// Listens where it can; a [`Server`] goes on trying the other addresses.
#[must_use]
pub fn bind_what_can_be(listen: &[ApiAddress]) -> Bound {
    let mut bound = Bound {
        sockets: Vec::new(),
        addresses: Vec::new(),
        away: Vec::new(),
        reached: Reached::default(),
    };
    for address in listen {
        match bind_one(address) {
            Ok((socket, at)) => {
                bound.sockets.push(socket);
                bound.addresses.push(at);
            }
            Err(error) => bound.away.push((address.clone(), error.to_string())),
        }
    }
    bound.reached.set(&bound.addresses, &bound.away);
    bound
}

/// Listens at an address: the socket, and the address with its real port.
fn bind_one(address: &ApiAddress) -> io::Result<(Socket, String)> {
    match address {
        ApiAddress::Unix(path) => {
            let socket = bind_unix(path)?;
            Ok((Socket::Unix(socket, path.clone()), address.to_string()))
        }
        ApiAddress::Tcp(at) => {
            let socket = TcpListener::bind(at)?;
            socket.set_nonblocking(true)?;
            let local = socket.local_addr()?;
            Ok((Socket::Tcp(socket), format!("http://{local}")))
        }
        ApiAddress::Https(_) => {
            let why = "https is not served by this version yet";
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}

/// A socket that nobody else can open at any moment: it gets its mode under another name first.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            "another process serves this socket",
        ));
    }
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        std::fs::create_dir_all(parent)?;
    }
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".new");
    let temporary = path.with_file_name(name);
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => done?,
    }
    let socket = UnixListener::bind(&temporary)?;
    std::fs::set_permissions(&temporary, Permissions::from_mode(0o600))?;
    std::fs::rename(&temporary, path)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// The running server.
pub struct Server {
    thread: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
    sockets: Arc<Mutex<Vec<PathBuf>>>,
}

impl Server {
    /// Serves the bound sockets on a thread of its own; `for_reads`: over TCP, reading takes the
    /// token as well.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start(
        bound: Bound,
        handle: Handle,
        token: Secret,
        for_reads: bool,
    ) -> Result<Self, Problem> {
        let (token, keys) = (Arc::new(token), Keys::new());
        Self::with(bound, move |transport| {
            let transport = match transport {
                Kind::Unix => Transport::Unix,
                Kind::Tcp => Transport::Tcp {
                    token: Arc::clone(&token),
                    for_reads,
                },
            };
            with_keys(handle.clone(), &transport, Arc::clone(&keys))
        })
    }

    /// Serves documents instead of the daemon's objects, on unix sockets only: whoever may open
    /// them may do everything.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start_documents(bound: Bound, documents: Documents) -> Result<Self, Problem> {
        Self::with(bound, move |_| documents::router(&documents))
    }

    fn with(bound: Bound, make: impl Fn(Kind) -> Router + Send + 'static) -> Result<Self, Problem> {
        let failed = |error: io::Error| {
            Problem::new(
                Code::ConfigEnvironment,
                format!("the API's thread: {error}"),
            )
        };
        let sockets = Arc::new(Mutex::new(Vec::new()));
        let made = Arc::clone(&sockets);
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let thread = Builder::new().name("api".to_owned()).spawn(move || {
            runtime.block_on(serve(bound, &make, &made, &stopped));
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        Ok(Self {
            thread: Some(thread.map_err(failed)?),
            stop,
            sockets,
        })
    }

    /// Answers what is being answered, takes no more, and ends.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the API's thread was printed when it happened.
            let _ = thread.join();
        }
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        for path in &*sockets {
            // A socket that is left behind is recognised as stale by the next start.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

type Serving = tokio::task::JoinSet<io::Result<()>>;

fn begin(
    serving: &mut Serving,
    socket: Socket,
    make: &impl Fn(Kind) -> Router,
    made: &Mutex<Vec<PathBuf>>,
    stopped: &watch::Receiver<bool>,
) {
    let stop = until_stopped(stopped.clone());
    match socket {
        Socket::Unix(socket, path) => {
            made.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(path);
            let app = make(Kind::Unix);
            let Ok(listener) = tokio::net::UnixListener::from_std(socket) else {
                return;
            };
            serving.spawn(async move {
                axum::serve(listener, app)
                    .with_graceful_shutdown(stop)
                    .await
            });
        }
        Socket::Tcp(socket) => {
            let app = make(Kind::Tcp);
            let Ok(listener) = tokio::net::TcpListener::from_std(socket) else {
                return;
            };
            serving.spawn(async move {
                axum::serve(listener, app)
                    .with_graceful_shutdown(stop)
                    .await
            });
        }
    }
}

async fn serve(
    bound: Bound,
    make: &impl Fn(Kind) -> Router,
    made: &Mutex<Vec<PathBuf>>,
    stopped: &watch::Receiver<bool>,
) {
    let mut serving = Serving::new();
    let (mut addresses, mut away) = (bound.addresses, bound.away);
    for socket in bound.sockets {
        begin(&mut serving, socket, make, made, stopped);
    }
    while !away.is_empty() {
        let stop = until_stopped(stopped.clone());
        if tokio::time::timeout(AGAIN, stop).await.is_ok() {
            break;
        }
        away.retain_mut(|(address, why)| match bind_one(address) {
            Ok((socket, at)) => {
                tracing::info!("the API listens at {at} now");
                begin(&mut serving, socket, make, made, stopped);
                addresses.push(at);
                false
            }
            Err(error) => {
                *why = error.to_string();
                true
            }
        });
        bound.reached.set(&addresses, &away);
    }
    until_stopped(stopped.clone()).await;
    let all_ended = async { while serving.join_next().await.is_some() {} };
    // A client that reads slowly for ever does not keep the daemon from stopping.
    let _ = tokio::time::timeout(STOP_GRACE, all_ended).await;
}

async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // The sender is gone only when the server is.
    let _ = stopped.wait_for(|stop| *stop).await;
}
