//! What a target of ours reports of the network ports behind its portals, for the initiator's
//! planner.
//!
//! ```text
//!   X-org.causeway.Ports=?                                       which ports have you?
//!   X-org.causeway.Ports=2                     two portals follow, with what is known of them:
//!   X-org.causeway.Port=10.1.0.10:3260,controller:san-a,port:eth2,card:0000:03:00,speed:10000000000,links:1,mtu:9000,\
//!       free:9400000000,sessions:2031
//!   X-org.causeway.Port=...
//! ```
//!
//! Speeds and head-room (`free`) are bits per second, and what is not known is left out. An item
//! that the reader does not know is passed over, so that later targets may report more.
//!
//! **Contract.** [`decode`] takes whatever a peer says: what makes no sense is left out and said in
//! words, and nothing that it returns holds a character that a terminal would act on.

use crate::text;
use std::fmt::Write as _;

/// Key of the Text Request that asks for all ports, and first key of the answer.
pub const PORTS: &str = "X-org.causeway.Ports";

/// The question, as a value of [`PORTS`].
pub const ASK: &str = "?";

/// Key of the answer, once for each portal.
pub const PORT: &str = "X-org.causeway.Port";

/// Longest name of a controller, card or port that is reported, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Portals that are read; no target has more.
const PORTS_MAX: usize = 1024;
/// Speeds that a link can have, in bits per second.
pub(super) const SPEEDS: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000_000_000;
/// Packets that a link can take, in bytes.
pub(super) const PACKETS: std::ops::RangeInclusive<u64> = 576..=1 << 20;
/// Links of one team.
pub(super) const LINKS: std::ops::RangeInclusive<u64> = 1..=256;
/// Complaints that are kept.
const WRONG_MAX: usize = 4;

/// What is reported of the port behind one portal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PortRecord {
    /// The portal, as SendTargets reports it: `192.0.2.1:3260`.
    pub address: String,
    /// The controller: what fails as a whole with all of its cards.
    pub controller: Option<String>,
    /// The port itself; portals of one controller with the same port share it.
    pub port: Option<String>,
    /// The card in the controller.
    pub card: Option<String>,
    /// Speed in bits per second, all links of a team together.
    pub speed: Option<u64>,
    /// Equal links behind it.
    pub links: Option<u16>,
    /// Largest IP packet in bytes.
    pub mtu: Option<u32>,
    /// What the port had to spare in the last seconds, in bits per second of its busier direction.
    pub free: Option<u64>,
    /// How many more sessions the target takes, the asker's own included.
    pub sessions: Option<u32>,
}

/// What a target reported, and what of it made no sense.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReportedPorts {
    /// By portal, each once.
    pub ports: Vec<PortRecord>,
    /// For the operator: what was left out and why.
    pub wrong: Vec<String>,
}

/// A name as it may be reported: printable, without the characters that part items.
pub(super) fn is_name(text: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&text.len())
        && text
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"._:@/+-".contains(&it))
}

/// A name of at most so many characters, with `_` for each that may not be reported.
pub(super) fn plain_name(name: &str, most: usize) -> String {
    let plain = |it: char| if is_name(&it.to_string()) { it } else { '_' };
    name.chars().take(most).map(plain).collect()
}

/// The answer as text. Names lose what may not be reported.
pub(crate) fn encode(records: &[PortRecord]) -> Vec<u8> {
    let mut out = Vec::new();
    text::push(&mut out, PORTS, &records.len().to_string());
    for record in records {
        text::push(&mut out, PORT, &value(record));
    }
    out
}

fn value(record: &PortRecord) -> String {
    let mut value = record.address.clone();
    let names = [
        ("controller", &record.controller),
        ("port", &record.port),
        ("card", &record.card),
    ];
    for (item, name) in names {
        let Some(name) = name else { continue };
        let name = plain_name(name, NAME_BYTES_MAX);
        if !name.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(value, ",{item}:{name}");
        }
    }
    let numbers = [
        ("speed", record.speed),
        ("links", record.links.map(u64::from)),
        ("mtu", record.mtu.map(u64::from)),
        ("free", record.free),
        ("sessions", record.sessions.map(u64::from)),
    ];
    for (item, number) in numbers {
        if let Some(number) = number {
            let _ = write!(value, ",{item}:{number}");
        }
    }
    value
}

/// Reads an answer to [`ASK`]; `None` where the target does not know the key.
#[must_use]
pub fn decode(answer: &[u8]) -> Option<ReportedPorts> {
    let mut reported = ReportedPorts::default();
    let pairs = match text::pairs(answer) {
        Ok(pairs) => pairs,
        Err(violation) => {
            reported.complain(format!("the answer cannot be read: {violation}"));
            return Some(reported);
        }
    };
    let counted = pairs.iter().find(|(key, _)| *key == PORTS)?.1;
    if matches!(counted, "NotUnderstood" | "Reject" | "Irrelevant") {
        return None;
    }
    let ports = pairs.iter().filter(|(key, _)| *key == PORT);
    for (_, value) in ports.clone().take(PORTS_MAX) {
        reported.read(value);
    }
    let count = ports.count();
    if text::number(counted) != u64::try_from(count).ok() {
        reported.complain(format!(
            "{} are announced, {count} are reported",
            shown(counted)
        ));
    }
    Some(reported)
}

/// What a peer said, fit for a terminal.
fn shown(text: &str) -> String {
    const SHOWN_MAX: usize = 48;
    let mut shown: String = text.escape_debug().take(SHOWN_MAX).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    format!("'{shown}'")
}

impl ReportedPorts {
    fn complain(&mut self, what: String) {
        if self.wrong.len() < WRONG_MAX {
            self.wrong.push(what);
        } else if self.wrong.len() == WRONG_MAX {
            self.wrong.push("and more of that kind".to_owned());
        }
    }

    fn read(&mut self, value: &str) {
        let mut items = value.split(',');
        let address = items.next().unwrap_or_default();
        if address.parse::<std::net::SocketAddr>().is_err() {
            return self.complain(format!("{} is no portal", shown(address)));
        }
        if self.ports.iter().any(|it| it.address == address) {
            return self.complain(format!("{address} is reported twice"));
        }
        let mut record = PortRecord {
            address: address.to_owned(),
            ..PortRecord::default()
        };
        for item in items {
            if let Err(what) = record.set(item) {
                self.complain(format!("{address}: {what}"));
            }
        }
        if record.free > record.speed && record.free.is_some() {
            self.complain(format!("{address}: more is free than its speed"));
            record.free = None;
        }
        self.ports.push(record);
    }
}

impl PortRecord {
    fn set(&mut self, item: &str) -> Result<(), String> {
        let (name, value) = item
            .split_once(':')
            .ok_or_else(|| format!("{} is nothing that could be known", shown(item)))?;
        match name {
            "controller" => set_name(&mut self.controller, name, value),
            "port" => set_name(&mut self.port, name, value),
            "card" => set_name(&mut self.card, name, value),
            "speed" => set_number(&mut self.speed, name, value, SPEEDS),
            "links" => set_number(&mut self.links, name, value, LINKS),
            "mtu" => set_number(&mut self.mtu, name, value, PACKETS),
            "free" => set_number(&mut self.free, name, value, 0..=*SPEEDS.end()),
            // A target that took no more would not have let us ask; its login is what decides.
            "sessions" => set_number(&mut self.sessions, name, value, 1..=u64::from(u32::MAX)),
            _ => Ok(()),
        }
    }
}

pub(super) fn set_name(into: &mut Option<String>, item: &str, value: &str) -> Result<(), String> {
    if !is_name(value) {
        return Err(format!("{} is no name of a {item}", shown(value)));
    }
    match into.replace(value.to_owned()) {
        None => Ok(()),
        Some(_) => Err(format!("{item} is there twice")),
    }
}

pub(super) fn set_number<T: TryFrom<u64>>(
    into: &mut Option<T>,
    item: &str,
    value: &str,
    sane: std::ops::RangeInclusive<u64>,
) -> Result<(), String> {
    let number = Some(value).filter(|it| !it.is_empty());
    let number = number
        .and_then(text::number)
        .filter(|it| sane.contains(it))
        .and_then(|it| T::try_from(it).ok());
    let number = number.ok_or_else(|| format!("{} is no value of {item}", shown(value)))?;
    match into.replace(number) {
        None => Ok(()),
        Some(_) => Err(format!("{item} is there twice")),
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn record(address: &str) -> PortRecord {
        PortRecord {
            address: address.to_owned(),
            controller: Some("san-a".to_owned()),
            port: Some("eth2".to_owned()),
            card: Some("0000:03:00".to_owned()),
            speed: Some(10_000_000_000),
            links: Some(1),
            mtu: Some(9000),
            free: Some(9_400_000_000),
            sessions: Some(2031),
        }
    }

    fn read(text: &str) -> ReportedPorts {
        decode(text.as_bytes()).expect("the key is known")
    }

    #[test]
    fn what_is_reported_is_read_as_it_was_meant() {
        let bare = PortRecord {
            address: "[2001:db8::1]:3260".to_owned(),
            ..PortRecord::default()
        };
        let all = vec![record("192.0.2.1:3260"), bare];
        let text = encode(&all);
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            "X-org.causeway.Ports=2\0X-org.causeway.Port=192.0.2.1:3260,controller:san-a,port:eth2,card:0000:03:00,\
             speed:10000000000,links:1,mtu:9000,free:9400000000,sessions:2031\0X-org.causeway.Port=[2001:db8::1]:3260\0"
        );
        let read = decode(&text).unwrap();
        assert_eq!((read.ports, read.wrong), (all, vec![]));
    }

    #[test]
    fn a_target_that_does_not_know_the_key_reports_nothing_and_a_later_one_may_report_more() {
        for text in [
            "",
            "X-org.causeway.Ports=NotUnderstood\0",
            "TargetName=iqn.a:b\0",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
        let more =
            read("X-org.causeway.Ports=1\0X-org.causeway.Port=192.0.2.1:3260,colour:red,card:1\0");
        assert_eq!(more.wrong, Vec::<String>::new());
        assert_eq!(more.ports[0].card.as_deref(), Some("1"));
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_said_and_the_rest_stands() {
        for (item, says) in [
            ("speed:0", "'0' is no value of speed"),
            ("speed:-1", "is no value of speed"),
            ("speed:", "is no value of speed"),
            ("speed:99999999999999999999999", "is no value of speed"),
            ("speed:10G", "is no value of speed"),
            ("links:0", "is no value of links"),
            ("links:70000", "is no value of links"),
            ("mtu:12", "is no value of mtu"),
            ("sessions:0", "is no value of sessions"),
            ("free:5", "more is free than its speed"),
            ("card:", "is no name of a card"),
            ("card:\u{1b}[2J", "'\\u{1b}[2J' is no name of a card"),
            ("controller:a b", "is no name of a controller"),
            ("card:1,card:2", "card is there twice"),
            ("rubbish", "'rubbish' is nothing that could be known"),
        ] {
            let text = format!(
                "X-org.causeway.Ports=1\0X-org.causeway.Port=192.0.2.1:3260,{item},port:eth2\0"
            );
            let reported = read(&text);
            assert_eq!(reported.ports.len(), 1, "{item}");
            assert_eq!(reported.ports[0].port.as_deref(), Some("eth2"), "{item}");
            assert_eq!(reported.ports[0].speed, None, "{item}");
            assert!(
                reported.wrong[0].contains(says),
                "{item}: {:?}",
                reported.wrong
            );
            assert!(reported.wrong[0].chars().all(|it| !it.is_control()));
        }
    }

    #[test]
    fn portals_that_are_none_or_come_twice_or_do_not_come_are_said() {
        let port = |address: &str| format!("X-org.causeway.Port={address}\0");
        let text = |count: &str, ports: &[&str]| {
            let ports: String = ports.iter().map(|it| port(it)).collect();
            read(&format!("X-org.causeway.Ports={count}\0{ports}"))
        };
        let none = text("1", &["nowhere"]);
        assert_eq!(
            (none.ports, none.wrong),
            (vec![], vec!["'nowhere' is no portal".to_owned()])
        );
        let twice = text("2", &["192.0.2.1:1", "192.0.2.1:1"]);
        assert_eq!(
            (twice.ports.len(), twice.wrong),
            (1, vec!["192.0.2.1:1 is reported twice".to_owned()])
        );
        let fewer = text("3", &["192.0.2.1:1"]);
        assert_eq!(fewer.wrong, ["'3' are announced, 1 are reported"]);
        let many = vec!["x"; 5000];
        let flood = text("5000", &many);
        assert_eq!(flood.wrong.len(), WRONG_MAX + 1);
        assert!(decode(b"\xFF=").unwrap().wrong[0].contains("cannot be read"));
    }

    #[test]
    fn a_name_that_may_not_be_reported_is_reported_without_what_is_wrong_with_it() {
        let odd = PortRecord {
            controller: Some("Büro, 2=\0\u{1b}".to_owned()),
            card: Some("x".repeat(1000)),
            ..record("192.0.2.1:3260")
        };
        let read = decode(&encode(&[odd])).unwrap();
        assert_eq!(read.wrong, Vec::<String>::new());
        assert_eq!(read.ports[0].controller.as_deref(), Some("B_ro__2___"));
        assert_eq!(
            read.ports[0].card.as_ref().map(String::len),
            Some(NAME_BYTES_MAX)
        );
    }
}
