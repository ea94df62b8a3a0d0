//! `[session]` of `node.toml`: the times reach the connections, on the real clock.

use crate::login::{login, number_at, read_pdu, served};
use crate::place::Place;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Half of what any of these times is where nothing is said.
const SOON: Duration = Duration::from_secs(7);

fn with(place: &Place, times: &str) {
    let usual = std::fs::read_to_string(place.path("node.toml")).unwrap();
    place.write("node.toml", &format!("{usual}[session]\n{times}"));
}

/// The other side closes, within [`SOON`] of what it says last.
fn is_closed(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut rest = Vec::new();
    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
}

#[test]
fn a_login_that_does_not_come_and_a_host_that_does_not_answer_are_ended_after_the_times_of_node_toml()
 {
    let place = Place::new("session-times");
    with(
        &place,
        "login_seconds = 1\nping_after_seconds = 1\nping_timeout_seconds = 1\n",
    );
    let daemon = place.start();
    let portal = served(&place);
    let mut silent = TcpStream::connect(&portal).unwrap();
    let mut session = login(&portal);
    assert_eq!(session.status, 0);
    is_closed(&mut silent);
    session.stream.set_read_timeout(Some(SOON)).unwrap();
    let (ping, _) = read_pdu(&mut session.stream);
    assert_eq!(ping[0] & 0x3f, 0x20, "a NOP-In");
    assert_ne!(number_at(&ping, 20), u32::MAX, "which wants an answer");
    is_closed(&mut session.stream);
    daemon.stop();
}

#[test]
fn the_data_of_a_write_that_does_not_come_ends_it_after_the_time_of_node_toml() {
    let place = Place::new("data-seconds");
    with(&place, "data_seconds = 1\n");
    let daemon = place.start();
    let mut session = login(&served(&place));
    assert_eq!(session.status, 0);
    session.stream.set_read_timeout(Some(SOON)).unwrap();
    // Unit attentions are reported first.
    let asked = (0..8).any(|command| {
        write_without_data(&mut session.stream, command, session.stat_sn + 1 + command);
        let (answer, _) = read_pdu(&mut session.stream);
        answer[0] & 0x3f == 0x31
    });
    assert!(asked, "the target asks for the data");
    let (answer, sense) = read_pdu(&mut session.stream);
    assert_eq!((answer[0] & 0x3f, answer[3]), (0x21, 2), "CHECK CONDITION");
    // ABORTED COMMAND, INITIATOR RESPONSE TIMEOUT, after the two bytes of the sense data's length.
    assert_eq!(
        (sense[2 + 2] & 0x0f, sense[2 + 12], sense[2 + 13]),
        (0x0b, 0x4b, 0x06)
    );
    daemon.stop();
}

/// A WRITE (10) of a block.
///
/// spec: RFC 7143 11.3 "SCSI Command"
fn write_without_data(stream: &mut TcpStream, command: u32, exp_stat_sn: u32) {
    let mut pdu = [0; 48];
    pdu[0] = 0x01;
    pdu[1] = 0xa1; // F, W, simple
    pdu[16..20].copy_from_slice(&(command + 1).to_be_bytes());
    pdu[20..24].copy_from_slice(&512_u32.to_be_bytes());
    pdu[24..28].copy_from_slice(&command.to_be_bytes());
    pdu[28..32].copy_from_slice(&exp_stat_sn.to_be_bytes());
    pdu[32] = 0x2a;
    pdu[32 + 8] = 1;
    stream.write_all(&pdu).unwrap();
}
