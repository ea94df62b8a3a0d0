//! What an initiator of ours reports at its login of the NIC that the session goes through.
//!
//! ```text
//!   X-org.causeway.Nic=eth2,card:0000:03:00,fabric:left,speed:10000000000,links:1,mtu:9000,planned:1
//! ```
//!
//! `planned`: the host plans which of its paths carry load, so that others stand by. What is not
//! known is left out. It is a declaration: a target of ours says nothing to it. It is sent, and
//! read, in the operational stage only, when each side has proved what it had to.
//!
//! **Contract.** [`NicRecord::parse`] takes whatever a peer says: what makes no sense is left out,
//! and what it returns is at most three names of 64 plain characters, and numbers.

use super::port::{LINKS, PACKETS, SPEEDS, is_name, plain_name, set_name, set_number};
use std::fmt::Write as _;

/// Key of the declaration, in the operational stage of a normal session's login.
pub const NIC: &str = "X-org.causeway.Nic";

/// Longest name that is sent: a value has at most 255 bytes (RFC 7143 6.1 "Text Format").
const SENT_NAME_BYTES_MAX: usize = 60;

/// A NIC of an initiator's host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NicRecord {
    /// Its name there, such as `eth2`.
    pub name: String,
    /// The card in the host: what fails with it.
    pub card: Option<String>,
    /// What it is plugged into, where the host's administrator named it.
    pub fabric: Option<String>,
    /// Speed in bits per second, all links of a team together.
    pub speed: Option<u64>,
    /// Equal links behind it.
    pub links: Option<u16>,
    /// Largest IP packet in bytes.
    pub mtu: Option<u32>,
    /// The host plans its paths: those that move nothing stand by.
    pub planned: bool,
}

impl NicRecord {
    /// As the value of [`NIC`]; `None` where nothing can be said.
    #[must_use]
    pub fn value(&self) -> Option<String> {
        let sent =
            |name: &str| Some(plain_name(name, SENT_NAME_BYTES_MAX)).filter(|it| is_name(it));
        let mut value = sent(&self.name)?;
        let names = [("card", &self.card), ("fabric", &self.fabric)];
        for (item, name) in names {
            if let Some(name) = name.as_deref().and_then(sent) {
                // Writing to a String cannot fail.
                let _ = write!(value, ",{item}:{name}");
            }
        }
        let numbers = [
            ("speed", self.speed),
            ("links", self.links.map(u64::from)),
            ("mtu", self.mtu.map(u64::from)),
            ("planned", self.planned.then_some(1)),
        ];
        for (item, number) in numbers {
            if let Some(number) = number {
                let _ = write!(value, ",{item}:{number}");
            }
        }
        Some(value)
    }

    /// Reads what a peer sent; `None` where it names no NIC.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let mut items = value.split(',');
        let name = items.next().filter(|it| is_name(it))?;
        let mut record = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let mut planned: Option<u8> = None;
        for item in items {
            let Some((name, value)) = item.split_once(':') else {
                continue;
            };
            // What makes no sense is left out: nobody could be asked about it here.
            let _ = match name {
                "card" => set_name(&mut record.card, name, value),
                "fabric" => set_name(&mut record.fabric, name, value),
                "speed" => set_number(&mut record.speed, name, value, SPEEDS),
                "links" => set_number(&mut record.links, name, value, LINKS),
                "mtu" => set_number(&mut record.mtu, name, value, PACKETS),
                "planned" => set_number(&mut planned, name, value, 0..=1),
                _ => Ok(()),
            };
        }
        record.planned = planned == Some(1);
        Some(record)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn full() -> NicRecord {
        NicRecord {
            name: "eth2".to_owned(),
            card: Some("0000:03:00".to_owned()),
            fabric: Some("left".to_owned()),
            speed: Some(10_000_000_000),
            links: Some(1),
            mtu: Some(9000),
            planned: true,
        }
    }

    #[test]
    fn what_is_sent_is_read_as_it_was_meant() {
        let value = full().value().unwrap();
        assert_eq!(
            value,
            "eth2,card:0000:03:00,fabric:left,speed:10000000000,links:1,mtu:9000,planned:1"
        );
        assert_eq!(NicRecord::parse(&value), Some(full()));
        let bare = NicRecord {
            name: "127.0.0.2".to_owned(),
            ..NicRecord::default()
        };
        assert_eq!(bare.value().as_deref(), Some("127.0.0.2"));
        assert_eq!(NicRecord::parse("127.0.0.2"), Some(bare));
    }

    #[test]
    fn the_longest_value_fits_the_standard_and_odd_names_lose_what_is_odd() {
        let long = NicRecord {
            name: "n".repeat(1000),
            card: Some("c".repeat(1000)),
            fabric: Some("f".repeat(1000)),
            speed: Some(*SPEEDS.end()),
            links: u16::try_from(*LINKS.end()).ok(),
            mtu: u32::try_from(*PACKETS.end()).ok(),
            planned: true,
        };
        let value = long.value().unwrap();
        assert!(value.len() <= 255, "{}", value.len());
        let read = NicRecord::parse(&value).unwrap();
        assert_eq!((read.speed, read.mtu), (long.speed, long.mtu));
        let odd = NicRecord {
            name: "<b>é,=\0".to_owned(),
            ..NicRecord::default()
        };
        assert_eq!(odd.value().as_deref(), Some("_b_____"));
        assert_eq!(NicRecord::default().value(), None);
    }

    #[test]
    fn what_makes_no_sense_is_left_out_and_never_more_than_three_short_names_are_kept() {
        for value in ["", ",card:1", "<script>", "a b", "\u{1b}[2J", "é", "?"] {
            assert_eq!(NicRecord::parse(value), None, "{value:?}");
        }
        assert_eq!(NicRecord::parse(&"x".repeat(65)), None);
        for item in [
            "card:<img>",
            "card:",
            "fabric:\u{202e}",
            "fabric:a b",
            "speed:0",
            "speed:-1",
            "speed:10G",
            "speed:99999999999999999999",
            "links:0",
            "mtu:12",
            "planned:2",
            "planned:",
            "rubbish",
            "colour:red",
        ] {
            let read = NicRecord::parse(&format!("eth2,{item}"));
            let wanted = NicRecord {
                name: "eth2".to_owned(),
                ..NicRecord::default()
            };
            assert_eq!(read, Some(wanted), "{item}");
        }
        let twice = NicRecord::parse("eth2,card:1,card:2").unwrap();
        assert!(twice.card.is_some());
        let flood = format!("eth2{}", ",card:1".repeat(2000));
        assert_eq!(NicRecord::parse(&flood).unwrap().name, "eth2");
    }
}
