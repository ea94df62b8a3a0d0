//! HTTP over TLS over the network of `env`.

use super::endpoint::{Endpoint, EtcdSettings};
use super::rotation::Came;
use super::tls;
use crate::trouble::Trouble;
use crate::wire::Wire;
use env::{CoreHandle, LocalFuture};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::cell::RefCell;
use std::error::Error;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// Longest answer that is read, in bytes: 1,000 records of the largest size.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// Connections to an endpoint that are kept for the next request.
const IDLE_MAX: usize = 4;

/// Carries a request to an endpoint, and what comes back. Dropping it ends its connection.
pub(super) trait Carrier {
    fn post(&self, endpoint: usize, path: &'static str, body: Vec<u8>) -> LocalFuture<Came>;
}

/// Connections to each endpoint.
pub(super) struct Wires {
    core: CoreHandle,
    all: Vec<Rc<Line>>,
    connector: Option<TlsConnector>,
}

struct Line {
    endpoint: Endpoint,
    name: String,
    idle: RefCell<Vec<Connection>>,
}

impl Wires {
    /// To these endpoints.
    pub(super) async fn open(core: &CoreHandle, settings: &EtcdSettings) -> Result<Self, Trouble> {
        let connector = match &settings.tls {
            Some(files) => Some(tls::connector(&*core.files(), files).await?),
            None => None,
        };
        let line = |endpoint: &Endpoint| {
            Rc::new(Line {
                endpoint: *endpoint,
                name: endpoint.to_string(),
                idle: RefCell::default(),
            })
        };
        Ok(Self {
            core: Rc::clone(core),
            all: settings.endpoints.iter().map(line).collect(),
            connector,
        })
    }
}

impl Carrier for Wires {
    fn post(&self, endpoint: usize, path: &'static str, body: Vec<u8>) -> LocalFuture<Came> {
        let line = Rc::clone(&self.all[endpoint]);
        let (core, connector) = (Rc::clone(&self.core), self.connector.clone());
        Box::pin(async move {
            match line
                .exchange((&core, connector), path, Bytes::from(body))
                .await
            {
                Ok((status, body)) => Came::Said(status, body),
                Err(error) => Came::Failed(tls::trouble(&line.name, &*error)),
            }
        })
    }
}

type Failure = Box<dyn Error + Send + Sync>;

impl Line {
    async fn exchange(
        &self,
        (core, connector): (&CoreHandle, Option<TlsConnector>),
        path: &'static str,
        body: Bytes,
    ) -> Result<(u16, Vec<u8>), Failure> {
        let request = || {
            Request::post(path)
                .header(header::HOST, self.endpoint.address.to_string())
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::new(body.clone()))
        };
        loop {
            let kept = self.idle.borrow_mut().pop();
            let is_kept = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.connect(core, connector.as_ref()).await?,
            };
            match connection.exchange(request()?).await {
                Ok(answer) => {
                    let mut idle = self.idle.borrow_mut();
                    if connection.driver.is_some() && idle.len() < IDLE_MAX {
                        idle.push(connection);
                    }
                    return Ok(answer);
                }
                // It ended while nobody used it.
                Err(_) if is_kept => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(
        &self,
        core: &CoreHandle,
        connector: Option<&TlsConnector>,
    ) -> Result<Connection, Failure> {
        let stream = core.net().connect(self.endpoint.address, None).await?;
        let wire = Wire::new(stream);
        match connector {
            Some(connector) if self.endpoint.is_encrypted => {
                let name = ServerName::from(self.endpoint.address.ip());
                Connection::over(connector.connect(name, wire).await?).await
            }
            Some(_) | None => Connection::over(wire).await,
        }
    }
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None`: it has ended.
    driver: Option<LocalFuture<hyper::Result<()>>>,
}

impl Connection {
    async fn over(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Result<Self, Failure> {
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self {
            sender,
            driver: Some(Box::pin(driver)),
        })
    }

    async fn exchange(&mut self, request: Request<Full<Bytes>>) -> Result<(u16, Vec<u8>), Failure> {
        let Self { sender, driver } = self;
        let mut work = pin!(async {
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
            let body = body.collect().await?.to_bytes();
            Ok::<_, Failure>((status, body.to_vec()))
        });
        // Nobody else drives it, so it ends with who waits for it.
        poll_fn(|cx| {
            let ended = driver.as_mut().map(|it| it.as_mut().poll(cx));
            if ended.is_some_and(|it| it.is_ready()) {
                *driver = None;
            }
            work.as_mut().poll(cx)
        })
        .await
    }
}
