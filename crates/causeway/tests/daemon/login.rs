//! Logins on the wire, against the running daemon: what a client is answered, byte by byte.

use crate::place::Place;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

const HOST: &str = "iqn.1998-01.com.vmware:esx01";
pub(crate) const TARGET: &str = "iqn.2026-11.io.causeway:t1";

/// What a target answered to a login.
pub(crate) struct Answer {
    /// Class and detail, such as 0x0203.
    pub(crate) status: u16,
    /// The number of this response on its connection.
    pub(crate) stat_sn: u32,
    text: String,
    pub(crate) stream: TcpStream,
}

impl Answer {
    fn value(&self, key: &str) -> Option<&str> {
        let mut pairs = self
            .text
            .split('\0')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value)
    }
}

/// A PDU without digests: header and data.
pub(crate) fn read_pdu(stream: &mut TcpStream) -> ([u8; 48], Vec<u8>) {
    let mut header = [0; 48];
    stream.read_exact(&mut header).unwrap();
    let len = usize::from(header[5]) << 16 | usize::from(header[6]) << 8 | usize::from(header[7]);
    let mut data = vec![0; len.next_multiple_of(4)];
    stream.read_exact(&mut data).unwrap();
    data.truncate(len);
    (header, data)
}

/// The number of four bytes that a header has there.
pub(crate) fn number_at(header: &[u8; 48], at: usize) -> u32 {
    u32::from_be_bytes([at, at + 1, at + 2, at + 3].map(|at| header[at]))
}

/// One Login Request that asks for the full feature phase at once, without authentication.
///
/// spec: RFC 7143 11.12 "Login Request", 11.13 "Login Response".
pub(crate) fn login(address: &str) -> Answer {
    login_by(address, 1)
}

/// The same by one of the initiator's ports.
///
/// spec: RFC 7143 11.12.5 "ISID"
pub(crate) fn login_by(address: &str, port: u8) -> Answer {
    let text = format!("InitiatorName={HOST}\0SessionType=Normal\0TargetName={TARGET}\0");
    let mut pdu = vec![0; 48];
    pdu[0] = 0x43; // immediate Login Request
    pdu[1] = 0x87; // T, CSG = operational negotiation, NSG = full feature phase
    pdu[7] = u8::try_from(text.len()).unwrap();
    pdu[8..14].copy_from_slice(&[0x80, 0, 0, 1, 0, port]); // ISID
    pdu.extend(text.as_bytes());
    pdu.resize(pdu.len().next_multiple_of(4), 0);
    let mut stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).unwrap();
    stream.write_all(&pdu).unwrap();
    let (header, data) = read_pdu(&mut stream);
    assert_eq!(header[0] & 0x3f, 0x23, "a Login Response");
    Answer {
        status: u16::from_be_bytes([header[36], header[37]]),
        stat_sn: number_at(&header, 24),
        text: String::from_utf8(data).unwrap(),
        stream,
    }
}

pub(crate) fn served(place: &Place) -> String {
    place.write(
        "objects.toml",
        &format!(
            "[[lun]]\nname = \"vm01\"\nsize = \"16MiB\"\n[[target]]\nname = \"t1\"\n[[host]]\n\
             name = \"esx01\"\niqn = [\"{HOST}\"]\n[[grant]]\nhost = \"esx01\"\nlun = \"vm01\"\n\
             target = \"t1\"\n"
        ),
    );
    place.run(0, "apply -f objects.toml");
    let portal = place.json("target show t1")["portals"][0].clone();
    portal.as_str().unwrap().to_owned()
}

/// A client that nobody here wrote goes where it is sent.
fn follow(portal: &str) {
    let url = format!("iscsi://{portal}/{TARGET}/0");
    let ran = Command::new("iscsi-inq").args(["-i", HOST, &url]).output();
    let ran = ran.expect("iscsi-inq of libiscsi-bin is installed");
    let output = String::from_utf8_lossy(&ran.stdout);
    let complaint = String::from_utf8_lossy(&ran.stderr);
    assert!(output.contains("DIRECT_ACCESS"), "{output}{complaint}");
}

#[test]
fn a_redirected_login_is_shown_where_to_go_and_is_served_there() {
    let (a, b) = (Place::new("redirect-a"), Place::new("redirect-b"));
    let (daemon_a, daemon_b) = (a.start(), b.start());
    let (portal_a, portal_b) = (served(&a), served(&b));
    a.run(0, &format!("target set t1 redirect={portal_b}"));
    assert_eq!(a.json("target show t1")["redirect"]["to"], *portal_b);
    assert_eq!(a.json("status")["counts"]["targets_redirected"], 1);

    let sent = login(&portal_a);
    assert_eq!(sent.status, 0x0101, "{}", sent.text);
    let to = sent.value("TargetAddress").unwrap().to_owned();
    assert_eq!(to, portal_b);
    assert_eq!(login(&to).status, 0);
    follow(&portal_a);

    a.run(0, &format!("target set t1 redirect={portal_b},permanent"));
    assert_eq!(login(&portal_a).status, 0x0102);
    let exported = a.run(0, "export");
    let line = format!("redirect = {{ to = \"{portal_b}\", permanent = true }}");
    assert!(exported.contains(&line), "{exported}");
    a.write("objects.toml", &exported);
    let again = a.run(0, "apply -f objects.toml --prune");
    assert_eq!(again, "nothing to change\n");

    let metrics = a.metrics();
    let counted = "causeway_login_total{result=\"redirected\",code=\"CWY2008\"} 3";
    assert!(metrics.contains(counted), "{metrics}");

    // Another property leaves it as it is, and without it logins are served.
    a.run(0, "target set t1 portal_group=default");
    assert_eq!(login(&portal_a).status, 0x0102);
    a.run(2, "target set t1 redirect=192.0.2.2");
    a.run(2, "target set t1 redirect=[::]:3260");
    a.run(0, "target set t1 redirect=none");
    assert_eq!(login(&portal_a).status, 0);
    daemon_a.stop();
    daemon_b.stop();
}

#[test]
fn maintenance_refuses_logins_and_asks_before_it_disturbs_a_session() {
    let place = Place::new("maintenance");
    let daemon = place.start();
    let portal = served(&place);
    let session = login(&portal);
    assert_eq!(session.status, 0);
    let refused = place.run(5, "target set t1 maintenance=true");
    assert!(refused.contains("host esx01"), "{refused}");
    assert!(refused.contains("on target t1"), "{refused}");
    drop(session);
    let session = login(&portal);
    assert_eq!(session.status, 0, "nothing was changed");

    let done = place.run(0, "target set t1 maintenance=true --yes");
    assert!(done.contains("[disruptive]"), "{done}");
    let mut session = session;
    let (message, _) = read_pdu(&mut session.stream);
    assert_eq!(message[0] & 0x3f, 0x32, "an Asynchronous Message");
    assert_eq!(message[36], 1, "the target asks for a logout");
    let answer = login(&portal);
    assert_eq!(answer.status, 0x0301, "{}", answer.text);
    assert_eq!(place.json("target show t1")["maintenance"], true);
    let refusals = place.json("session ls --refused");
    assert_eq!(refusals[0]["status"], "0301");
    assert_eq!(refusals[0]["portal"], *portal);
    let listed = place.run(0, "session ls");
    assert!(listed.contains("refused lately"), "{listed}");
    assert!(
        listed.contains("is in maintenance (status 0301)"),
        "{listed}"
    );
    let metrics = place.metrics();
    for counted in [
        "causeway_login_total{result=\"accepted\",code=\"\"} 2",
        "causeway_login_total{result=\"refused\",code=\"CWY2007\"} 1",
    ] {
        assert!(metrics.contains(counted), "{metrics}");
    }
    drop(session.stream);

    let back = place.run(0, "target set t1 maintenance=false");
    assert!(back.contains("out of maintenance"), "{back}");
    assert_eq!(login(&portal).status, 0);
    daemon.stop();
}

#[test]
fn a_session_reports_all_of_itself_by_the_names_of_now() {
    let place = Place::new("session");
    let daemon = place.start();
    let portal = served(&place);
    let session = login(&portal);
    assert_eq!(session.status, 0);
    place.run(0, "lun rename vm01 vm02");
    place.run(0, "target rename t1 t2");
    place.run(0, "host rename esx01 esx02");
    let all = place.json("session ls");
    let id = all[0]["id"].to_string();
    let answer = place.json(&format!("session show {id}"));
    let near = session.stream.local_addr().unwrap().to_string();
    let wanted = serde_json::json!({
        "host": "esx02", "initiator": HOST, "target": "t2", "from": near, "portal": portal, "core": 0,
        "bytes_in": 0, "bytes_out": 0, "in_flight": 0, "commands": 0, "mutual_chap": false,
        "luns": [{ "lun_id": 0, "lun": "vm02", "read_only": false }],
    });
    for (key, value) in wanted.as_object().unwrap() {
        assert_eq!(answer[key], *value, "{key}: {answer}");
    }
    for key in ["HeaderDigest", "MaxBurstLength", "InitialR2T", "TSIH"] {
        assert!(answer["keys"][key].is_string(), "{key}: {answer}");
    }
    assert!(answer["since"].as_str().unwrap().ends_with('Z'), "{answer}");
    let page = place.run(0, &format!("session show {id}"));
    assert!(page.contains("0 vm02"), "{page}");
    let interface = &place.json("status")["portals"][0]["interface"];
    assert_eq!(interface, "lo");
    daemon.stop();
}

#[test]
fn what_a_lun_takes_and_what_its_disk_cannot_promise_is_reported() {
    let place = Place::new("space");
    let daemon = place.start();
    place.run(0, "lun create thin --size 16M");
    place.run(0, "lun create thick --size 16M --thin false");
    let allocated = |name: &str| place.json(&format!("lun show {name}"))["allocated"].clone();
    assert!(allocated("thin").as_u64().unwrap() < 1 << 20);
    assert!(allocated("thick").as_u64().unwrap() >= 16 << 20);
    assert!(
        place
            .metrics()
            .contains("causeway_lun_allocated_bytes{lun=\"thick\"}")
    );

    // Whether the file's disk keeps 4096 bytes whole differs from machine to machine; both places
    // agree.
    let made = place.run(0, "lun create large --size 16M --block-size 4096");
    let shown = place.json("lun show large");
    let has_notices = shown["notices"].is_array();
    assert_eq!(
        made.contains("note: LUN large: its blocks have 4096"),
        has_notices
    );
    place.run(
        0,
        "lun create memory --size 16M --block-size 4096 --backend memory",
    );
    assert!(place.json("lun show memory")["notices"].is_null());
    assert!(place.json("lun show thin")["notices"].is_null());
    daemon.stop();
}
