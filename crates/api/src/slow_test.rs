//! Clients that connect and then do nothing, or read nothing: each is ended in its time.

use crate::accept::Times;
use crate::test::Daemon;
use crate::tls_test::{address, block, client};
use manifest::config::{ApiAddress, Config};
use rustls::pki_types::ServerName;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream as Stream;
use tokio_rustls::client::TlsStream;

/// So long a test waits for what has to come.
const PATIENCE: Duration = Duration::from_secs(30);

fn https(config: &mut Config) {
    let any = "127.0.0.1:0".parse().unwrap();
    config.api.push(ApiAddress::Https(any));
}

#[test]
fn slow_readers_end_their_connection_and_hold_no_answer_for_ever() {
    let times = Times {
        read: Duration::from_millis(300),
        ..Times::default()
    };
    let daemon = Daemon::start_with("slow-reader", |_| {}, times);
    let at = daemon.addresses[1].strip_prefix("http://").unwrap();
    // More than the kernel has room for.
    const ASKED: usize = 200;
    let mut text = String::new();
    for number in 1..=ASKED {
        let last = if number == ASKED {
            "close"
        } else {
            "keep-alive"
        };
        write!(
            text,
            "GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: {last}\r\n\r\n"
        )
        .unwrap();
    }
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    std::thread::park_timeout(Duration::from_secs(3));
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read);
    let answers = String::from_utf8_lossy(&read)
        .matches("HTTP/1.1 200 OK")
        .count();
    assert!(answers > 0, "it was answered at first");
    assert!(answers < ASKED, "all {answers} waited for who read nothing");
}

#[test]
fn silent_handshakes_of_tls_end_in_time() {
    let times = Times {
        head: Duration::from_millis(500),
        ..Times::default()
    };
    let daemon = Daemon::start_with("silent-tls", https, times);
    let mut stream = TcpStream::connect(address(&daemon)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let ended = stream.read(&mut [0; 16]);
    assert_eq!(ended.unwrap(), 0, "it is closed, and nothing was said");
}

/// A connection of HTTP/2 of which nothing was asked yet, and the settings of the server.
async fn opened(daemon: &Daemon) -> (TlsStream<Stream>, Vec<(u16, u32)>) {
    let cert = daemon.dir.join("state/api-cert.pem");
    let stream = Stream::connect(address(daemon)).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut stream = client(&cert, b"h2").connect(name, stream).await.unwrap();
    // RFC 9113 3.4: the preface, and settings that are empty.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "settings come first");
    let length = usize::from(head[1]) << 8 | usize::from(head[2]);
    let mut settings = vec![0; length];
    stream.read_exact(&mut settings).await.unwrap();
    let settings = settings.chunks(6).map(|it| {
        let value = u32::from_be_bytes([it[2], it[3], it[4], it[5]]);
        (u16::from_be_bytes([it[0], it[1]]), value)
    });
    (stream, settings.collect())
}

#[test]
fn streams_and_heads_of_one_connection_of_http_2_are_bounded() {
    let daemon = Daemon::start_with("h2-bounds", https, Times::default());
    let (_, settings) = block(opened(&daemon));
    let of = |number: u16| settings.iter().find(|(it, _)| *it == number);
    // RFC 9113 6.5.2: SETTINGS_MAX_CONCURRENT_STREAMS, SETTINGS_MAX_HEADER_LIST_SIZE.
    assert_eq!(of(3), Some(&(3, 64)), "{settings:?}");
    assert_eq!(of(6), Some(&(6, 16 << 10)), "{settings:?}");
}

/// Reads to the end, and answers each ping, as a client that is alive does (RFC 9113 6.7).
async fn answers_pings(stream: &mut TlsStream<Stream>) {
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut body = vec![0; length];
        if stream.read_exact(&mut body).await.is_err() {
            return;
        }
        if head[3] == 6 && head[4] & 1 == 0 {
            head[4] = 1;
            let answer = [&head[..], &body].concat();
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    }
}

#[test]
fn idle_connections_of_http_2_end_in_time() {
    let times = Times {
        idle: Duration::from_millis(500),
        ..Times::default()
    };
    let daemon = Daemon::start_with("h2-idle", https, times);
    let ended = block(async {
        let (mut stream, _) = opened(&daemon).await;
        let alive = answers_pings(&mut stream);
        tokio::time::timeout(PATIENCE, alive).await.is_ok()
    });
    assert!(ended, "nothing was asked, and it stays open");
}
