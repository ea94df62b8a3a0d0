//! Listening, the server's thread, and its end.

use super::auth::Transport;
use super::documents::{self, Documents};
use super::routes::router;
use crate::code::Code;
use crate::config::ApiAddress;
use crate::controller::Handle;
use crate::problem::Problem;
use crate::secret::Secret;
use axum::Router;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;

/// How long a stop waits for requests that are being answered.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Sockets that listen, before anyone serves them.
#[derive(Debug)]
pub struct Bound {
    sockets: Vec<Socket>,
    /// The addresses with real ports, as `--api` takes them.
    pub addresses: Vec<String>,
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
    let mut bound = Bound {
        sockets: Vec::new(),
        addresses: Vec::new(),
    };
    for address in listen {
        let failed =
            |error: io::Error| Problem::new(Code::ConfigEnvironment, format!("{address}: {error}"));
        match address {
            ApiAddress::Unix(path) => {
                let socket = bind_unix(path).map_err(failed)?;
                bound.sockets.push(Socket::Unix(socket, path.clone()));
                bound.addresses.push(address.to_string());
            }
            ApiAddress::Tcp(at) => {
                let socket = TcpListener::bind(at).map_err(failed)?;
                socket.set_nonblocking(true).map_err(failed)?;
                let local = socket.local_addr().map_err(failed)?;
                bound.sockets.push(Socket::Tcp(socket));
                bound.addresses.push(format!("http://{local}"));
            }
        }
    }
    Ok(bound)
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
    sockets: Vec<PathBuf>,
}

impl Server {
    /// Serves the bound sockets on a thread of its own; `for_reads`: over TCP, reading takes the token as well.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start(
        bound: Bound,
        handle: Handle,
        token: Secret,
        for_reads: bool,
    ) -> Result<Self, Problem> {
        let token = Arc::new(token);
        Self::with(bound, move |transport| {
            let transport = match transport {
                Kind::Unix => Transport::Unix,
                Kind::Tcp => Transport::Tcp {
                    token: Arc::clone(&token),
                    for_reads,
                },
            };
            router(handle.clone(), transport)
        })
    }

    /// Serves documents instead of the daemon's objects, on unix sockets only: whoever may open them may do everything.
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
        let sockets = bound
            .sockets
            .iter()
            .filter_map(|socket| match socket {
                Socket::Unix(_, path) => Some(path.clone()),
                Socket::Tcp(_) => None,
            })
            .collect();
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let thread = Builder::new().name("api".to_owned()).spawn(move || {
            runtime.block_on(serve(bound.sockets, &make, &stopped));
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
        for path in &self.sockets {
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

async fn serve(
    sockets: Vec<Socket>,
    make: &impl Fn(Kind) -> Router,
    stopped: &watch::Receiver<bool>,
) {
    let mut serving = tokio::task::JoinSet::new();
    for socket in sockets {
        let stop = until_stopped(stopped.clone());
        match socket {
            Socket::Unix(socket, _) => {
                let app = make(Kind::Unix);
                let Ok(listener) = tokio::net::UnixListener::from_std(socket) else {
                    continue;
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
                    continue;
                };
                serving.spawn(async move {
                    axum::serve(listener, app)
                        .with_graceful_shutdown(stop)
                        .await
                });
            }
        }
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
