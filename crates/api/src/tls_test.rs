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

pub(crate) fn address(daemon: &Daemon) -> String {
    daemon.addresses[2]
        .strip_prefix("https://")
        .unwrap()
        .to_owned()
}

/// A client that believes this certificate alone, and speaks what `alpn` says.
pub(crate) fn client(cert: &Path, alpn: &[u8]) -> TlsConnector {
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

pub(crate) fn block<T>(work: impl Future<Output = T>) -> T {
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

/// What is shown of the certificate, to who believes this one.
fn shown(daemon: &Daemon, by: &Path) -> Option<Value> {
    let asked = ("GET", "/api/v1/certificate", &Value::Null);
    let (_, _, text) = ask(daemon, by, b"h2", asked).ok()?;
    serde_json::from_str(&text).ok()
}

#[test]
fn the_daemons_own_certificate_follows_the_names_of_the_node_live_and_keeps_its_key() {
    let daemon = start("names_live");
    let (cert, key) = (
        daemon.dir.join("state/api-cert.pem"),
        daemon.dir.join("state/api-key.pem"),
    );
    let (first, key_before) = (std::fs::read(&cert).unwrap(), std::fs::read(&key).unwrap());
    let before = shown(&daemon, &cert).unwrap();
    // Where nothing has changed there is no other one.
    daemon.reload();
    std::thread::park_timeout(Duration::from_millis(300));
    assert_eq!(std::fs::read(&cert).unwrap(), first);
    let path = daemon.dir.join("node.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let named = text.replace("[api]", "[api]\nnames = [\"san.example.org\"]");
    std::fs::write(&path, named).unwrap();
    daemon.reload();
    let is_new = || {
        let now = shown(&daemon, &cert)?;
        (now["fingerprint"] != before["fingerprint"]).then_some(now)
    };
    let now = (0..500).find_map(|_| {
        std::thread::park_timeout(Duration::from_millis(10));
        is_new()
    });
    let now = now.expect("another certificate within five seconds");
    let names = now["names"].to_string();
    assert!(names.contains("\"san.example.org\"") && names.contains("127.0.0.1"));
    assert_eq!(
        (&now["origin"], &now["problem"]),
        (&json!("own"), &Value::Null)
    );
    assert_eq!(std::fs::read(&key).unwrap(), key_before);
    let event = daemon.records.events().newest().unwrap();
    assert_eq!(event.code, "certificate_replaced", "{event:?}");
    assert!(
        event.message.contains("not for san.example.org"),
        "{event:?}"
    );
    assert_eq!(event.fields["fingerprint"], now["fingerprint"]);
}

#[test]
fn the_daemons_own_certificate_is_made_anew_at_a_start_that_finds_it_without_a_name() {
    let kept = std::env::temp_dir().join(format!("causeway-api-kept-{}", std::process::id()));
    std::fs::create_dir_all(&kept).unwrap();
    let files = ["api-cert.pem", "api-key.pem"];
    let first = start("names_first");
    for file in files {
        std::fs::copy(first.dir.join("state").join(file), kept.join(file)).unwrap();
    }
    drop(first);
    let again = |name: &str, adjust: fn(&mut manifest::config::Config)| {
        let dir = format!("causeway-api-{name}-{}/state", std::process::id());
        let state = std::env::temp_dir().join(dir);
        std::fs::create_dir_all(&state).unwrap();
        for file in files {
            std::fs::copy(kept.join(file), state.join(file)).unwrap();
        }
        Daemon::start_with(name, adjust, Times::default())
    };
    let at = |config: &mut manifest::config::Config| {
        let at = "127.0.0.1:0".parse().unwrap();
        config.api.push(ApiAddress::Https(at));
    };
    let same = again("names_same", at);
    let made = std::fs::read(same.dir.join("state/api-cert.pem")).unwrap();
    assert_eq!(made, std::fs::read(kept.join("api-cert.pem")).unwrap());
    drop(same);
    let named = again("names_again", |config| {
        let at = "127.0.0.1:0".parse().unwrap();
        config.api.push(ApiAddress::Https(at));
        config.api_settings.names = vec!["san.example.org".to_owned()];
    });
    let served = shown(&named, &named.dir.join("state/api-cert.pem")).unwrap();
    let names = served["names"].to_string();
    assert!(names.contains("\"san.example.org\""), "{served}");
    drop(std::fs::remove_dir_all(&kept));
}

/// The certificate that builds without a mark made for themselves, and its key.
fn made_before() -> [String; 2] {
    let mut parameters = rcgen::CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let subject = &mut parameters.distinguished_name;
    subject.push(rcgen::DnType::CommonName, "a");
    parameters.not_before = rcgen::date_time_ymd(2026, 11, 1);
    parameters.not_after = rcgen::date_time_ymd(2036, 11, 26);
    let key = rcgen::KeyPair::generate().unwrap();
    let made = parameters.self_signed(&key).unwrap();
    [made.pem(), key.serialize_pem()]
}

/// Serves https, and is called by a name that the certificate lacks.
fn named(config: &mut manifest::config::Config) {
    let at = "127.0.0.1:0".parse().unwrap();
    config.api.push(ApiAddress::Https(at));
    config.api_settings.names = vec!["san.example.org".to_owned()];
}

#[test]
fn a_certificate_of_a_build_before_is_made_anew_where_the_daemon_made_it_and_not_where_it_was_given()
 {
    let own = |config: &mut manifest::config::Config| {
        named(config);
        std::fs::create_dir_all(&config.state_dir).unwrap();
        for (file, text) in ["api-cert.pem", "api-key.pem"].iter().zip(made_before()) {
            std::fs::write(config.state_dir.join(file), text).unwrap();
        }
    };
    let daemon = Daemon::start_with("before_own", own, Times::default());
    let served = shown(&daemon, &daemon.dir.join("state/api-cert.pem")).unwrap();
    assert_eq!(served["origin"], "own");
    let names = served["names"].to_string();
    assert!(names.contains("\"san.example.org\""), "{served}");

    let given = |config: &mut manifest::config::Config| {
        named(config);
        let dir = config.file.parent().unwrap();
        let [cert, key] = ["given.crt", "given.key"].map(|file| dir.join(file));
        for (file, text) in [&cert, &key].iter().zip(made_before()) {
            std::fs::write(file, text).unwrap();
        }
        config.api_settings.certificate = Some(manifest::config::CertificateFiles { cert, key });
    };
    let daemon = Daemon::start_with("before_given", given, Times::default());
    let cert = daemon.dir.join("given.crt");
    let first = std::fs::read(&cert).unwrap();
    // Names are compared once a second.
    std::thread::park_timeout(Duration::from_millis(1_500));
    let served = shown(&daemon, &cert).unwrap();
    assert_eq!(served["origin"], "given");
    assert_eq!(served["names"], json!(["127.0.0.1"]));
    assert_eq!(std::fs::read(&cert).unwrap(), first);
}
