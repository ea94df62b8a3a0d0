//! A POST with the message as JSON.

use crate::{address, failure, roots};
use alerts::{Failure, Message, WebhookTo};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// Posts a message. What is answered with 2xx was taken.
pub(crate) async fn post(to: &WebhookTo, message: &Message) -> Result<(), Failure> {
    let body = serde_json::to_vec(message).map_err(|error| failure("the message", &error))?;
    let request = request(to, body)?;
    let stream = address::connect(&to.host, to.port).await?;
    let status = if to.https {
        let store = roots::store(to.ca.as_deref()).await?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| failure("TLS", &error))?;
        let config = builder.with_root_certificates(store).with_no_client_auth();
        let name = ServerName::try_from(to.host.clone());
        let name = name.map_err(|error| failure(&to.at(), &error))?;
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await;
        exchange(
            to,
            stream.map_err(|error| failure(&to.at(), &error))?,
            request,
        )
        .await?
    } else {
        exchange(to, stream, request).await?
    };
    if status.is_success() {
        return Ok(());
    }
    let why = if status.is_redirection() {
        "redirects are not followed: give the receiver the address that it leads to"
    } else {
        status.canonical_reason().unwrap_or("no success")
    };
    Err(failure(
        &format!("{} answers {}", to.at(), status.as_u16()),
        &why,
    ))
}

fn request(to: &WebhookTo, body: Vec<u8>) -> Result<Request<Full<Bytes>>, Failure> {
    let at = to.at();
    let host = at.split_once("://").map_or(&*at, |(_, host)| host);
    let usual = if to.https { ":443" } else { ":80" };
    let mut request = Request::post(to.path.reveal_text().unwrap_or("/"))
        .header(header::HOST, host.strip_suffix(usual).unwrap_or(host))
        .header(header::CONTENT_TYPE, "application/json")
        .header(
            header::USER_AGENT,
            concat!("causeway/", env!("CARGO_PKG_VERSION")),
        )
        .header(header::CONNECTION, "close");
    if let Some(token) = to.token.as_ref().and_then(|it| it.reveal_text()) {
        let mut value = header::HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Failure("the token cannot be sent in a header".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    // Its own words may have the path in them.
    let refused = |_| Failure(format!("{at}: its path cannot be asked for"));
    request.body(Full::new(Bytes::from(body))).map_err(refused)
}

/// Sends the request and answers the status; what else is answered is not read.
async fn exchange<S>(
    to: &WebhookTo,
    stream: S,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: hyper::Error| failure(&to.at(), &error);
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(failed)?;
    let driving = tokio::spawn(connection);
    let answer = sender.send_request(request).await;
    driving.abort();
    Ok(answer.map_err(failed)?.status())
}
