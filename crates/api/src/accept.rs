//! Connections: who may have one, how it is spoken to, and when it ends.
//!
//! **Limits.** Connections in all and of one source ([`places`](crate::places)); a TLS handshake,
//! the head of a request, a body, an answer that nobody reads and an idle connection have their
//! [`Times`]; heads and bodies are bounded in bytes. Each connection is a task: a slow client holds
//! up nobody.

use crate::peer::{Peer, PeerAddress};
use crate::places::{Place, Places};
use axum::Router;
use axum::extract::ConnectInfo;
use http_parts::stall::Stalling;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// How long clients may take, and how often alerts are seen to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// For a handshake and the head of a request.
    pub(crate) head: Duration,
    /// For a whole body.
    pub(crate) body: Duration,
    /// To read nothing of an answer.
    pub(crate) read: Duration,
    /// To have no request on an HTTP/2 connection.
    pub(crate) idle: Duration,
    /// How often a stream says that it lives, and checks whether its client may still read.
    pub(crate) heartbeat: Duration,
    /// How often the rules of alerts are asked.
    pub(crate) alerts: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(60),
            read: Duration::from_secs(30),
            idle: Duration::from_secs(300),
            heartbeat: Duration::from_secs(10),
            alerts: Duration::from_secs(5),
        }
    }
}

/// The largest head of a request, in bytes, and the most headers in it.
pub(crate) const HEAD_BYTES: usize = 16 << 10;
const HEADERS_MAX: usize = 100;

/// The most requests of one HTTP/2 connection at a time.
const STREAMS_MAX: u32 = 64;

/// What all connections have in common.
pub(crate) struct Front {
    pub(crate) app: Router,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) places: Places,
    pub(crate) times: Times,
    /// Whoever is in this group may do everything through unix sockets.
    pub(crate) group: Option<u32>,
    pub(crate) stopped: watch::Receiver<bool>,
}

/// A socket that listens.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp { socket: TcpListener, is_tls: bool },
}

enum Stream {
    Unix(UnixStream),
    Tcp { stream: TcpStream, is_tls: bool },
}

impl Listener {
    async fn accept(&self, front: &Front) -> io::Result<(Stream, Peer)> {
        match self {
            Self::Unix(socket) => {
                let (stream, _) = socket.accept().await?;
                let from = local(&stream, front.group)?;
                let is_tls = false;
                Ok((Stream::Unix(stream), Peer { from, is_tls }))
            }
            Self::Tcp { socket, is_tls } => {
                let (stream, peer) = socket.accept().await?;
                stream.set_nodelay(true)?;
                let local = stream.local_addr()?;
                let (from, is_tls) = (PeerAddress::Network { peer, local }, *is_tls);
                Ok((Stream::Tcp { stream, is_tls }, Peer { from, is_tls }))
            }
        }
    }
}

/// Who opened a unix socket, as the kernel says.
fn local(stream: &UnixStream, group: Option<u32>) -> io::Result<PeerAddress> {
    let who = stream.peer_cred()?;
    let user = who.uid();
    // A kernel that does not say the other groups says the first one.
    let others = || env::real::peer_groups(stream).unwrap_or_default();
    let is_member = group.is_some_and(|it| who.gid() == it || others().contains(&it));
    let own = rustix::process::geteuid().as_raw();
    let is_trusted = user == 0 || user == own || is_member;
    Ok(PeerAddress::Local { user, is_trusted })
}

/// Takes connections until the server stops, and waits for those that are served.
pub(crate) async fn accept(listener: Listener, front: Arc<Front>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(&front) => accepted,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            () = until_stopped(front.stopped.clone()) => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                // Where all places are taken the connection is closed at once.
                if let Some(place) = front.places.take(peer.source()) {
                    connections.spawn(serve(stream, peer, place, Arc::clone(&front)));
                }
            }
            // It is gone again, or there are no descriptors at the moment.
            Err(error) => {
                tracing::debug!("a connection of the API: {error}");
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn serve(stream: Stream, peer: Peer, _place: Place, front: Arc<Front>) {
    match stream {
        Stream::Unix(stream) => http1(stream, peer, &front).await,
        Stream::Tcp {
            stream,
            is_tls: false,
        } => http1(stream, peer, &front).await,
        Stream::Tcp {
            stream,
            is_tls: true,
        } => {
            let Some(acceptor) = &front.tls else { return };
            // A failure is the client's: it does not trust the certificate, or speaks no TLS.
            let Ok(Ok(stream)) = timeout(front.times.head, acceptor.accept(stream)).await else {
                return;
            };
            if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                http2(stream, peer, &front).await;
            } else {
                http1(stream, peer, &front).await;
            }
        }
    }
}

macro_rules! service {
    ($front:expr, $peer:expr, $busy:expr) => {{
        let (app, peer, busy) = (TowerToHyperService::new($front.app.clone()), $peer, $busy);
        service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer.clone()));
            let answer = app.call(request);
            let busy = Busy::begin(&busy);
            async move {
                let answer = answer.await;
                drop(busy);
                answer
            }
        })
    }};
}

async fn http1<S>(stream: S, peer: Peer, front: &Front)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(front.times.head)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEAD_BYTES);
    let io = TokioIo::new(Stalling::new(stream, front.times.read));
    let service = service!(front, peer, Arc::new(Requests::default()));
    let connection = builder.serve_connection(io, service);
    drive(
        connection,
        front,
        http1::Connection::graceful_shutdown,
        std::future::pending(),
    )
    .await;
}

async fn http2<S>(stream: S, peer: Peer, front: &Front)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(front.times.head)
        .keep_alive_timeout(front.times.head)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES).unwrap_or(u32::MAX));
    let io = TokioIo::new(Stalling::new(stream, front.times.read));
    let requests = Arc::new(Requests::default());
    let service = service!(front, peer, Arc::clone(&requests));
    let connection = builder.serve_connection(io, service);
    drive(
        connection,
        front,
        http2::Connection::graceful_shutdown,
        requests.none_for(front.times.idle),
    )
    .await;
}

/// Serves a connection to its end; when the server stops or `idle` is ready, what was asked is
/// answered and nothing more is taken.
async fn drive<C: Future>(
    connection: C,
    front: &Front,
    end: impl FnOnce(Pin<&mut C>),
    idle: impl Future<Output = ()>,
) {
    let mut connection = pin!(connection);
    // How it ended is the client's affair.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = until_stopped(front.stopped.clone()) => {}
        () = idle => {}
    }
    end(connection.as_mut());
    connection.await;
}

/// The requests of one connection.
#[derive(Default)]
struct Requests {
    now: AtomicUsize,
    ever: AtomicU64,
}

impl Requests {
    /// Ready when none was there for so long.
    async fn none_for(&self, span: Duration) {
        loop {
            let before = self.ever.load(Ordering::Relaxed);
            sleep(span).await;
            let none = self.now.load(Ordering::Relaxed) == 0;
            if none && self.ever.load(Ordering::Relaxed) == before {
                return;
            }
        }
    }
}

/// A request that is being answered.
struct Busy(Arc<Requests>);

impl Busy {
    fn begin(requests: &Arc<Requests>) -> Self {
        requests.now.fetch_add(1, Ordering::Relaxed);
        requests.ever.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(requests))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) async fn until_stopped(mut stopped: watch::Receiver<bool>) {
    // The sender is gone only when the server is.
    let _ = stopped.wait_for(|stop| *stop).await;
}
