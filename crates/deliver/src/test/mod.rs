//! Messages that arrive at real servers and programs of this machine.

mod command;
mod http;
mod smtp;

use crate::send;
use alerts::{Failure, Message, Object, Receiver, Rule, Severity, WantedReceiver};
use manifest::config::AlertCommand;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncReadExt};

/// What a server was sent.
type Heard = Arc<Mutex<Vec<u8>>>;

fn receiver(channel: &Value) -> Receiver {
    let mut value = json!({ "name": "r" });
    for (name, it) in channel.as_object().unwrap() {
        value[name] = it.clone();
    }
    let wanted: WantedReceiver = serde_json::from_value(value).unwrap();
    wanted.make().unwrap()
}

/// A message about one alert with words that somebody else chose.
fn message() -> Message {
    let mut board = alerts::Board::new(&alerts::Document::default(), units::WallClock(0));
    let at = alerts::Moment {
        steady: units::Now(100_000_000_000),
        wall: units::WallClock(1_800_000_000_000_000_000),
    };
    let reading = alerts::Reading {
        rule: Rule::named("device_health").unwrap(),
        object: Object::new("disk", "sd\u{e9}"),
        verdict: alerts::Verdict::Bad,
        severity: Severity::Critical,
        cause: "a disk \u{fc}ber 3 %\n.\nBcc: x\0".to_owned(),
        next_step: "replace it".to_owned(),
    };
    board.take(at, vec![reading]);
    let alert = board.firing().next().unwrap().clone();
    let notice = alerts::Notice {
        reason: alerts::Reason::Fired,
        alert: board.view(&alert, at.wall),
    };
    Message::new(
        "san-a",
        "r",
        "2027-01-15T08:00:00.000Z".to_owned(),
        vec![notice],
    )
}

async fn try_to(receiver: &Receiver) -> Result<(), Failure> {
    send(receiver, &[], &message()).await
}

/// A certificate for a name that only this test believes, and its key.
fn certificate(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

fn acceptor((cert, key): &(String, String)) -> tokio_rustls::TlsAcceptor {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let chain = vec![CertificateDer::from_pem_slice(cert.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = builder
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

/// Reads until `end` came, or nothing more does; answers all that came.
async fn until<S: AsyncRead + Unpin>(stream: &mut S, end: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut byte = [0; 1];
    while !all.ends_with(end) && stream.read(&mut byte).await.unwrap_or(0) == 1 {
        all.push(byte[0]);
    }
    all
}

fn command(argv: &[&str], seconds: u64) -> AlertCommand {
    AlertCommand {
        name: "c".to_owned(),
        argv: argv.iter().map(|it| (*it).to_owned()).collect(),
        time_max: std::time::Duration::from_secs(seconds),
    }
}
