//! Logins that do not come to an end, and hosts that are gone.

use crate::common::client::{Client, GOOD, config, ten};
use crate::common::daemon::Daemon;
use crate::{login, now, objects, rest, target};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const SHORT: &str = "[session]\nlogin_seconds = 2\nping_after_seconds = 1\nping_timeout_seconds = 1\ndata_seconds = 2\n";

/// RESERVATION CONFLICT.
const CONFLICT: u8 = 0x18;

/// Whether the other side has closed; what it sent is thrown away.
fn is_closed(stream: &mut TcpStream) -> bool {
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// How long until the other side has closed, with `work` done every 50 ms.
fn until_closed(
    stream: &mut TcpStream,
    since: Instant,
    mut work: impl FnMut(&mut TcpStream),
) -> Duration {
    stream.set_nonblocking(true).unwrap();
    while !is_closed(stream) {
        assert!(since.elapsed() < 15 * SECOND, "it lives for ever");
        work(stream);
        rest(SECOND / 20);
    }
    since.elapsed()
}

#[test]
fn silent_and_dribbling_logins_end_in_their_time_and_are_reported() {
    let daemon = Daemon::start_with("dribble", SHORT);
    objects(&daemon);
    let since = now();
    let mut silent = TcpStream::connect(&daemon.portals[0]).unwrap();
    let mut dribbling = TcpStream::connect(&daemon.portals[0]).unwrap();
    let took = until_closed(&mut dribbling, since, |stream| {
        // The beginning of a Login Request, a byte at a time.
        let _closed = stream.write(&[0x43]);
    });
    let least = Duration::from_millis(1950);
    assert!((least..5 * SECOND).contains(&took), "{took:?}");
    let took = until_closed(&mut silent, since, |_| {});
    assert!(took < 5 * SECOND, "{took:?}");
    let said = daemon.causeway(&["session", "ls", "--refused"]);
    assert!(
        said.text.contains("the login took too long"),
        "{}",
        said.text
    );
    assert!(said.text.contains(", 2 times)"), "{}", said.text);
    daemon.stop();
}

/// A session that will be silent; it has a reservation, and a write of which it sends nothing.
fn greedy_and_gone(daemon: &Daemon) -> Client {
    let mut config = config("iqn.2026-11.test:gone", &target());
    config.offer.initial_r2t = true;
    config.offer.immediate_data = false;
    let mut gone = Client::login(&daemon.portals[0], &config).unwrap();
    gone.settle();
    gone.good(&[0x16, 0, 0, 0, 0, 0], &[], 0);
    for at in 0..4 {
        gone.queue(&ten(0x2a, 0, at * 512, 512), &vec![1; 256 << 10], 0);
    }
    gone.send();
    gone
}

#[test]
fn a_dead_host_is_noticed_and_what_it_held_is_given_back() {
    let daemon = Daemon::start_with("dead", SHORT);
    objects(&daemon);
    let mut alive = login(&daemon, "iqn.2026-11.test:alive");
    let gone = greedy_and_gone(&daemon);
    let since = now();
    let mut discovery = TcpStream::connect(&daemon.portals[0]).unwrap();
    discovery.write_all(&discovery_login()).unwrap();
    let write = ten(0x2a, 0, 0, 1);
    assert_eq!(alive.command(&write, &[2; 512], 0).status, CONFLICT);
    while alive.command(&write, &[2; 512], 0).status != GOOD {
        assert!(
            since.elapsed() < 15 * SECOND,
            "the reservation stays for ever"
        );
        rest(SECOND / 20);
    }
    let took = since.elapsed();
    let least = Duration::from_millis(1900);
    assert!((least..6 * SECOND).contains(&took), "{took:?}");
    let took = until_closed(&mut discovery, since, |_| {
        alive.good(&write, &[2; 512], 0);
    });
    assert!(took < 8 * SECOND, "{took:?}");
    let said = daemon.causeway(&["session", "ls", "-o", "json"]);
    let sessions: serde_json::Value = serde_json::from_str(&said.text).unwrap();
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 1, "{}", said.text);
    assert_eq!(sessions[0]["initiator"], "iqn.2026-11.test:alive");
    let said = daemon.causeway(&["lun", "show", "d", "-o", "json"]);
    let lun: serde_json::Value = serde_json::from_str(&said.text).unwrap();
    let held = ["bytes_in_flight", "in_flight"].map(|key| lun[key].as_u64().unwrap_or(0));
    assert_eq!(held, [0, 0], "{}", said.text);
    assert!(
        daemon.log().contains("did not answer a ping"),
        "{}",
        daemon.log()
    );
    drop(gone);
    daemon.stop();
}

/// A Login Request of a discovery session, straight to the full feature phase.
fn discovery_login() -> Vec<u8> {
    let text = "InitiatorName=iqn.2026-11.test:waits\0SessionType=Discovery\0";
    let mut pdu = vec![0; 48];
    pdu[0] = 0x43;
    pdu[1] = 0x87;
    pdu[7] = u8::try_from(text.len()).unwrap();
    pdu[8] = 0x80;
    pdu[13] = 1;
    pdu.extend_from_slice(text.as_bytes());
    pdu.resize(pdu.len().next_multiple_of(4), 0);
    pdu
}
