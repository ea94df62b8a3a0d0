//! The daemon's API from outside: one request at a time over a unix socket, TCP or TLS.

mod trust;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::secret::Secret;
use rustls::pki_types::ServerName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long to wait for a connection.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// How long to wait for the answer to a change: preallocating a large LUN takes its time.
const CHANGE_TIME_MAX: Duration = Duration::from_secs(3600);

/// How long to wait for the answer to a question.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a stream may be silent: the daemon says something every ten seconds.
const SILENT_MAX: Duration = Duration::from_secs(30);

#[derive(Debug)]
enum Address {
    Unix(PathBuf),
    Tcp(String),
    Https(String),
}

/// How a client proves who it is, and whom it believes.
#[derive(Default)]
pub struct Proofs<'a> {
    /// The API's token.
    pub token: Option<Secret>,
    /// Certificates that are believed over https.
    pub ca: Option<&'a Path>,
    /// The certificate that is believed over https.
    pub fingerprint: Option<&'a str>,
}

/// What an answer stands for, where it says so.
pub struct Tag(Option<header::HeaderValue>);

/// A client of one daemon.
pub struct Client {
    shown: String,
    address: Address,
    token: Option<Secret>,
    connector: Option<TlsConnector>,
    runtime: Runtime,
    /// How long to wait for anything, where that is less than usual.
    patience: Duration,
}

impl Client {
    /// A client of the daemon at `address`.
    ///
    /// # Errors
    /// It is no address, or whom to believe cannot be read.
    pub fn new(address: &str, proofs: Proofs<'_>) -> Result<Self, Problem> {
        let parsed = parse(address).ok_or_else(|| {
            let detail = format!("\"{address}\" is no API address");
            Problem::new(Code::BadRequest, detail)
                .hint("write --api unix:PATH, http://HOST:PORT or https://HOST:PORT (or set CAUSEWAY_API)")
        })?;
        let connector = match &parsed {
            Address::Https(_) => Some(trust::connector(proofs.ca, proofs.fingerprint)?),
            Address::Unix(_) | Address::Tcp(_) => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Problem::new(Code::Internal, error.to_string()))?;
        Ok(Self {
            shown: address.to_owned(),
            address: parsed,
            token: proofs.token,
            connector,
            runtime,
            patience: Duration::MAX,
        })
    }

    /// Waits no longer than this for a connection, and for an answer.
    #[must_use]
    pub fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Reads a document.
    ///
    /// # Errors
    /// The daemon's problem, or that it cannot be reached.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.send(Method::GET, path, &())
    }

    /// Sends a document and reads the answer.
    ///
    /// # Errors
    /// The daemon's problem, or that it cannot be reached.
    pub fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Problem> {
        let text = serde_json::to_string(body).map_err(|error| internal(&error))?;
        let request = self.request(method, path, text)?;
        let answer = self.runtime.block_on(self.exchange(request))?;
        serde_json::from_slice(&answer).map_err(|error| self.not_ours(&error))
    }

    /// Reads a document and its tag, by which a change says what it starts from.
    ///
    /// # Errors
    /// The daemon's problem, or that it cannot be reached.
    pub fn tagged<T: DeserializeOwned>(&self, path: &str) -> Result<(T, Tag), Problem> {
        let request = self.request(Method::GET, path, String::new())?;
        let (tag, answer) = self.runtime.block_on(async {
            let response = self.open(request).await?;
            let tag = response.headers().get(header::ETAG).cloned();
            let body = response.into_body().collect().await;
            let body = body.map_err(|error| self.unreachable(&error))?;
            Ok::<_, Problem>((tag, body.to_bytes()))
        })?;
        let read = serde_json::from_slice(&answer);
        Ok((read.map_err(|error| self.not_ours(&error))?, Tag(tag)))
    }

    /// Sends a change of what has this tag, and reads the answer.
    ///
    /// # Errors
    /// The daemon's problem, also that it is another one by now, or that it cannot be reached.
    pub fn send_to<T: DeserializeOwned>(
        &self,
        tag: &Tag,
        (method, path): (Method, &str),
        body: &impl Serialize,
    ) -> Result<T, Problem> {
        let text = serde_json::to_string(body).map_err(|error| internal(&error))?;
        let mut request = self.request(method, path, text)?;
        if let Some(tag) = &tag.0 {
            let headers = request.headers_mut();
            headers.insert(header::IF_MATCH, tag.clone());
        }
        let answer = self.runtime.block_on(self.exchange(request))?;
        serde_json::from_slice(&answer).map_err(|error| self.not_ours(&error))
    }

    /// Sends a document as it is, with more headers, and hands over what comes as it comes: the
    /// head of the answer, and its body in pieces. It ends, too, where nothing comes for
    /// half a minute.
    ///
    /// # Errors
    /// The daemon's problem, or that it cannot be reached.
    pub fn pass(
        &self,
        (method, path): (Method, &str),
        (headers, text): (HeaderMap, String),
        head: impl FnOnce(&Response<Incoming>),
        each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let mut request = self.request(method, path, text)?;
        for name in headers.keys() {
            request.headers_mut().remove(name);
        }
        // Of a name that stands several times only the first value comes with it.
        let mut last = None;
        for (name, value) in headers {
            last = name.or(last);
            let name = last.clone().unwrap_or(header::HOST);
            request.headers_mut().append(name, value);
        }
        self.runtime.block_on(async {
            let response = self.answer(request).await?;
            head(&response);
            if response.status() == StatusCode::NOT_MODIFIED {
                return Ok(());
            }
            self.pieces(self.good(response).await?, each).await
        })
    }

    /// Reads an answer that comes line by line, and hands each of them over, until it ends or
    /// `each` has enough.
    ///
    /// # Errors
    /// The daemon's problem, or that it cannot be reached.
    pub fn lines(
        &self,
        path: &str,
        mut each: impl FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let request = self.request(Method::GET, path, String::new())?;
        self.runtime.block_on(async {
            let mut rest = Vec::new();
            let piece = |piece: &[u8]| {
                rest.extend_from_slice(piece);
                whole_lines(&mut rest, &mut each)
            };
            self.pieces(self.open(request).await?, piece).await
        })
    }

    /// Hands a body over as it comes.
    async fn pieces(
        &self,
        response: Response<Incoming>,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Problem> {
        let mut body = response.into_body();
        loop {
            let frame = match tokio::time::timeout(SILENT_MAX, body.frame()).await {
                Ok(Some(frame)) => frame.map_err(|error| self.unreachable(&error))?,
                Ok(None) => return Ok(()),
                Err(_) => return Err(self.unreachable(&format!("nothing for {SILENT_MAX:?}"))),
            };
            if each(&frame.into_data().unwrap_or_default()).is_break() {
                return Ok(());
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        text: String,
    ) -> Result<Request<String>, Problem> {
        let host = match &self.address {
            Address::Unix(_) => "localhost",
            Address::Tcp(at) | Address::Https(at) => at,
        };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = self.token.as_ref().and_then(Secret::reveal_text) {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        request.body(text).map_err(|error| internal(&error))
    }

    /// Waits.
    pub fn pause(&self, span: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(span).await });
    }

    async fn exchange(&self, request: Request<String>) -> Result<Bytes, Problem> {
        let body = self.open(request).await?.into_body().collect().await;
        Ok(body.map_err(|error| self.unreachable(&error))?.to_bytes())
    }

    /// Sends a request: the answer, where it is no problem, whose body may still be coming.
    async fn open(&self, request: Request<String>) -> Result<Response<Incoming>, Problem> {
        self.good(self.answer(request).await?).await
    }

    /// Sends a request: the answer, whatever it is.
    async fn answer(&self, request: Request<String>) -> Result<Response<Incoming>, Problem> {
        Ok(match &self.address {
            Address::Unix(path) => {
                let stream = self.in_time(UnixStream::connect(path)).await?;
                self.talk(stream, request).await?
            }
            Address::Tcp(at) => {
                let stream = self.in_time(TcpStream::connect(at.as_str())).await?;
                self.talk(stream, request).await?
            }
            Address::Https(at) => {
                let stream = self.in_time(TcpStream::connect(at.as_str())).await?;
                let stream = self.encrypt(at, stream).await?;
                self.talk(stream, request).await?
            }
        })
    }

    /// An answer that is no problem.
    async fn good(&self, response: Response<Incoming>) -> Result<Response<Incoming>, Problem> {
        if response.status().is_success() {
            return Ok(response);
        }
        let body = response.into_body().collect().await;
        let body = body.map_err(|error| self.unreachable(&error))?.to_bytes();
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(problem),
            Err(error) => Err(self.not_ours(&error)),
        }
    }

    /// The connection under TLS, with the daemon and nobody else.
    async fn encrypt(&self, at: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>, Problem> {
        let host = at.rsplit_once(':').map_or(at, |(host, _)| host);
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(host).map_err(|error| self.unreachable(&error))?;
        let Some(connector) = &self.connector else {
            return Err(Problem::new(Code::Internal, "no one to believe"));
        };
        let limit = CONNECT_TIME_MAX.min(self.patience);
        match tokio::time::timeout(limit, connector.connect(name, stream)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => {
                let detail = format!("{}: {error}", self.shown);
                Err(Problem::new(Code::CertificateUnknown, detail))
            }
            Err(_) => Err(self.unreachable(&format!("no TLS within {limit:?}"))),
        }
    }

    async fn in_time<S>(&self, connect: impl Future<Output = io::Result<S>>) -> Result<S, Problem> {
        let limit = CONNECT_TIME_MAX.min(self.patience);
        match tokio::time::timeout(limit, connect).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(self.not_allowed(&error))
            }
            Ok(Err(error)) => Err(self.unreachable(&error)),
            Err(_) => Err(self.unreachable(&format!("no connection within {limit:?}"))),
        }
    }

    async fn talk<S>(
        &self,
        stream: S,
        request: Request<String>,
    ) -> Result<Response<Incoming>, Problem>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| self.unreachable(&error))?;
        // It ends with the response or with the error that `send_request` returns.
        tokio::spawn(connection);
        let limit = if request.method() == Method::GET {
            ANSWER_TIME_MAX
        } else {
            CHANGE_TIME_MAX
        };
        let limit = limit.min(self.patience);
        let answer = tokio::time::timeout(limit, sender.send_request(request)).await;
        match answer {
            Ok(response) => response.map_err(|error| self.unreachable(&error)),
            Err(_) => Err(self.unreachable(&format!("no answer within {limit:?}"))),
        }
    }

    fn unreachable(&self, why: &dyn std::fmt::Display) -> Problem {
        Problem::new(Code::Unreachable, format!("{}: {why}", self.shown))
    }

    /// The daemon may well be there: its socket is somebody else's.
    fn not_allowed(&self, error: &io::Error) -> Problem {
        let problem = self.unreachable(error);
        let Address::Unix(path) = &self.address else {
            return problem;
        };
        let (path, me) = (path.display(), rustix::process::geteuid().as_raw());
        let owner = match &self.address {
            Address::Unix(path) => std::fs::metadata(path).ok(),
            Address::Tcp(_) | Address::Https(_) => None,
        };
        let whose = match owner.map(|it| std::os::unix::fs::MetadataExt::uid(&it)) {
            Some(uid) => format!("{path} is user {uid}'s"),
            // Its directory may not be entered.
            None => format!("{path} cannot be inspected"),
        };
        problem.hint(format!(
            "{whose}, and this is user {me}: only root, the daemon's user and the group causeway may open the socket. \
             Repeat with sudo, or as the daemon's user (sudo -u causeway causeway ...); over TCP reading takes no \
             permission: --api http://127.0.0.1:8480"
        ))
    }

    fn not_ours(&self, why: &dyn std::fmt::Display) -> Problem {
        let detail = format!("{} does not answer as Causeway does: {why}", self.shown);
        Problem::new(Code::NoSuchPath, detail)
    }
}

fn internal(error: &dyn std::fmt::Display) -> Problem {
    Problem::new(Code::Internal, error.to_string())
}

fn parse(address: &str) -> Option<Address> {
    if let Some(path) = address.strip_prefix("unix:") {
        return (!path.is_empty()).then(|| Address::Unix(PathBuf::from(path)));
    }
    let (kind, at): (fn(String) -> Address, &str) = match address.strip_prefix("https://") {
        Some(at) => (Address::Https, at),
        None => (Address::Tcp, address.strip_prefix("http://")?),
    };
    let at = at.trim_end_matches('/');
    let (host, port) = at.rsplit_once(':')?;
    let good = !host.is_empty() && port.parse::<u16>().is_ok();
    good.then(|| kind(at.to_owned()))
}

/// A name as a part of a path.
#[must_use]
pub fn segment(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b':') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Hands over the lines that have come whole, without their ends, and keeps the rest.
fn whole_lines(
    rest: &mut Vec<u8>,
    each: &mut impl FnMut(&str) -> ControlFlow<()>,
) -> ControlFlow<()> {
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = rest.drain(..=end).collect();
        each(String::from_utf8_lossy(&line).trim_end_matches('\n'))?;
    }
    ControlFlow::Continue(())
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn addresses_are_unix_paths_or_http() {
        assert!(matches!(parse("unix:a.sock"), Some(Address::Unix(_))));
        for good in [
            "http://127.0.0.1:8480",
            "http://[::1]:8480/",
            "http://san-a:80",
        ] {
            assert!(matches!(parse(good), Some(Address::Tcp(_))), "{good}");
        }
        let tls = parse("https://san-a:8443");
        assert!(
            matches!(&tls, Some(Address::Https(at)) if at == "san-a:8443"),
            "{tls:?}"
        );
        for bad in [
            "",
            "unix:",
            "127.0.0.1:8480",
            "http://san-a",
            "https://san-a",
            "ftp://san-a:80",
            "http://:80",
        ] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn any_name_makes_one_part_of_a_path() {
        assert_eq!(segment("esx01:t1:vm.01"), "esx01:t1:vm.01");
        assert_eq!(segment("../a b?"), "..%2Fa%20b%3F");
    }
}
