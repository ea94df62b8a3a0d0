//! https: the certificate of our own, a given one, and what is not spoken.

use crate::accept::Times;
use crate::login_test::{NEW, make};
use crate::test::{Daemon, TOKEN};
use http_body_util::BodyExt;
use hyper::{HeaderMap, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use manifest::config::ApiAddress;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

fn start(name: &str) -> Daemon {
    let https = |config: &mut manifest::config::Config| {
        config
            .api
            .push(ApiAddress::Https("127.0.0.1:0".parse().unwrap()));
    };
    Daemon::start_with(name, https, Times::default())
}

fn address(daemon: &Daemon) -> String {
    daemon.addresses[2]
        .strip_prefix("https://")
        .unwrap()
        .to_owned()
}

/// A client that believes this certificate alone, and speaks what `alpn` says.
fn client(cert: &Path, alpn: &[u8]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(cert).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![alpn.to_vec()];
    TlsConnector::from(Arc::new(config))
}

fn block<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(work)
}

/// A request over TLS; why there is no answer.
fn ask(
    daemon: &Daemon,
    cert: &Path,
    alpn: &[u8],
    (method, path, body): (&str, &str, &Value),
) -> Result<(StatusCode, HeaderMap, String), String> {
    let at = address(daemon);
    let uri = format!("https://{at}{path}");
    let request = Request::builder()
        .method(method)
        .uri(if alpn == b"h2" { uri.as_str() } else { path })
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {TOKEN}"));
    let request = if alpn == b"h2" {
        request
    } else {
        request.header("host", at.as_str())
    };
    let request = request.body(body.to_string()).unwrap();
    block(async {
        let stream = tokio::net::TcpStream::connect(&at).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let stream = client(cert, alpn).connect(name, stream).await;
        let stream = stream.map_err(|error| error.to_string())?;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(alpn));
        let io = TokioIo::new(stream);
        let response = if alpn == b"h2" {
            let executor = TokioExecutor::new();
            let made = hyper::client::conn::http2::handshake(executor, io).await;
            let (mut sender, connection) = made.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await
        } else {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            sender.send_request(request).await
        };
        let (parts, body) = response.map_err(|error| error.to_string())?.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Ok((
            parts.status,
            parts.headers,
            String::from_utf8_lossy(&bytes).into_owned(),
        ))
    })
}

#[test]
fn https_is_served_with_a_certificate_of_our_own_by_both_versions_of_http() {
    use std::os::unix::fs::PermissionsExt;
    let daemon = start("https");
    let cert = daemon.dir.join("state/api-cert.pem");
    let key = daemon.dir.join("state/api-key.pem");
    let mode = std::fs::metadata(key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for alpn in [&b"h2"[..], b"http/1.1"] {
        let asked = ("GET", "/api/v1/me", &Value::Null);
        let (status, headers, text) = ask(&daemon, &cert, alpn, asked).unwrap();
        assert_eq!(status, StatusCode::OK, "{text}");
        assert!(headers.contains_key("strict-transport-security"));
    }
}

#[test]
fn downgrade_no_plain_text_and_no_old_tls_is_spoken_at_an_https_address_and_cookies_stay_there() {
    let daemon = start("downgrade");
    let connect = || {
        let stream = std::net::TcpStream::connect(address(&daemon)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    };
    let mut plain = connect();
    plain
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    // A ClientHello of TLS 1.1 with one cipher suite (RFC 4346 7.4.1.2): answered by an alert.
    let mut hello = vec![3, 2];
    hello.extend([0; 32]);
    hello.extend([0, 0, 2, 0, 0x2f, 1, 0]);
    let mut record = vec![22, 3, 1, 0, 4 + 41, 1, 0, 0, 41];
    record.extend(hello);
    let mut old = connect();
    old.write_all(&record).unwrap();
    let mut answer = Vec::new();
    let _ = old.read_to_end(&mut answer);
    assert_eq!(answer.first(), Some(&21), "an alert: {answer:?}");
    make(&daemon, "op", "operator");
    let cert = daemon.dir.join("state/api-cert.pem");
    let body = json!({ "user": "op", "password": NEW });
    let (status, headers, _) =
        ask(&daemon, &cert, b"h2", ("POST", "/api/v1/login", &body)).unwrap();
    assert_eq!(status, StatusCode::OK);
    assert!(headers.contains_key("strict-transport-security"));
    assert!(
        headers["set-cookie"]
            .to_str()
            .unwrap()
            .ends_with("; Secure")
    );
}

#[test]
fn a_new_certificate_is_in_force_without_a_restart_and_a_broken_one_is_not() {
    let daemon = start("renewed");
    let state = daemon.dir.join("state");
    let (cert, key) = (state.join("api-cert.pem"), state.join("api-key.pem"));
    let asked = ("GET", "/healthz", &Value::Null);
    assert!(ask(&daemon, &cert, b"h2", asked).is_ok());
    let first = daemon.dir.join("first.pem");
    std::fs::copy(&cert, &first).unwrap();
    let shown = |by: &Path| -> Value {
        let asked = ("GET", "/api/v1/certificate", &Value::Null);
        serde_json::from_str(&ask(&daemon, by, b"h2", asked).unwrap().2).unwrap()
    };
    let served = shown(&cert);
    assert_eq!(
        (&served["origin"], &served["problem"]),
        (&json!("own"), &Value::Null)
    );
    assert!(
        served["ends"].as_str() > served["begins"].as_str(),
        "{served}"
    );
    assert!(
        served["names"].to_string().contains("127.0.0.1"),
        "{served}"
    );
    std::fs::write(&cert, "broken").unwrap();
    daemon.reload();
    let said = (0..500).any(|_| shown(&first)["problem"].is_string());
    assert!(said, "why the new one is not used");
    let (_, status) = daemon.send("GET", "/api/v1/status", &Value::Null);
    let problems = status["problems"].to_string();
    assert!(problems.contains("api-cert.pem"), "{status}");
    assert_eq!(status["health"], "degraded");
    // It is read again in that moment, or within a second.
    for _ in 0..20 {
        assert!(
            ask(&daemon, &first, b"h2", asked).is_ok(),
            "the old one stays"
        );
    }
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    std::fs::write(&cert, made.cert.pem()).unwrap();
    daemon.reload();
    let new = (0..500).any(|_| ask(&daemon, &cert, b"h2", asked).is_ok());
    assert!(new, "the new one is in force");
    let renewed = shown(&cert);
    assert_ne!(renewed["fingerprint"], served["fingerprint"]);
    assert_eq!(renewed["problem"], Value::Null);
    let (_, status) = daemon.send("GET", "/api/v1/status", &Value::Null);
    assert!(!status.to_string().contains("api-cert.pem"), "{status}");
    assert!(
        ask(&daemon, &first, b"h2", asked).is_err(),
        "and the old one is not"
    );
}
