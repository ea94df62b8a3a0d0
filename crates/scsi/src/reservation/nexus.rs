//! Who holds a registration: transport identity, never a counter of this process.
//!
//! Spec: SPC-4 7.6.4.6 "TransportID for initiator ports using SCSI over iSCSI"; RFC 7143 4.2.7
//! "Naming".

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::bytes::{Reader, Writer};

/// An initiator port: iSCSI name and ISID.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InitiatorPort {
    /// The initiator's iSCSI name, in lower case.
    pub name: String,
    /// The initiator's part of the session identifier, which makes the port's name unique.
    pub isid: [u8; 6],
}

impl fmt::Debug for InitiatorPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.port_name())
    }
}

/// An I_T nexus: initiator port and relative target port identifier.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Nexus {
    /// The initiator port.
    pub initiator: InitiatorPort,
    /// RELATIVE TARGET PORT IDENTIFIER.
    pub target_port: u16,
}

/// What a TransportID of an iSCSI initiator names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransportId {
    /// TPID FORMAT 00b: the initiator device, whatever its ports.
    Device(String),
    /// TPID FORMAT 01b: one initiator port.
    Port(InitiatorPort),
}

impl InitiatorPort {
    /// `iqn...,i,0x` and twelve hexadecimal digits.
    #[must_use]
    pub fn port_name(&self) -> String {
        let [a, b, c, d, e, f] = self.isid;
        let isid = u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        format!("{},i,0x{isid:012x}", self.name)
    }

    /// The TransportID, TPID FORMAT 01b.
    #[must_use]
    pub fn transport_id(&self) -> Vec<u8> {
        TransportId::Port(self.clone()).to_bytes()
    }
}

impl TransportId {
    /// The bytes: at least 24, a multiple of four, the name terminated.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let (format, name) = match self {
            Self::Device(name) => (0x00, name.clone()),
            Self::Port(port) => (0x40, port.port_name()),
        };
        let len = name.len().saturating_add(1).next_multiple_of(4).max(20);
        let mut out = Writer::new();
        out.u8(format | 0x05).u8(0);
        out.counted16(|out| {
            let end = out.len().saturating_add(len);
            out.bytes(name.as_bytes()).pad_to(end);
        });
        out.finish()
    }

    /// Takes one TransportID off the front of `reader`; `None` if it is not a sound iSCSI one.
    pub(crate) fn take(reader: &mut Reader<'_>) -> Option<Self> {
        let [first, _, high, low] = reader.array()?;
        let len = u16::from_be_bytes([high, low]);
        if first & 0x0f != 0x05 || len < 20 || len % 4 != 0 {
            return None;
        }
        let text = reader.take(usize::from(len))?;
        let mut parts = text.splitn(2, |byte| *byte == 0);
        let name = parts.next()?;
        // What follows the terminator is padding.
        let padding = parts.next()?;
        if padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        let name = core::str::from_utf8(name).ok()?.to_ascii_lowercase();
        match first >> 6 {
            0 => valid_name(&name).then_some(Self::Device(name)),
            1 => parse_port(&name).map(Self::Port),
            _ => None,
        }
    }

    /// Reads exactly one TransportID.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let id = Self::take(&mut reader)?;
        reader.rest().is_empty().then_some(id)
    }
}

/// RFC 7143 4.2.7.1: at most 223 bytes; a comma would make port names ambiguous.
fn valid_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 223 && !name.contains(',')
}

fn parse_port(text: &str) -> Option<InitiatorPort> {
    let (name, isid) = text.split_once(",i,0x")?;
    let hexadecimal = |byte: u8| byte.is_ascii_hexdigit();
    if !valid_name(name) || isid.is_empty() || isid.len() > 12 || !isid.bytes().all(hexadecimal) {
        return None;
    }
    let [_, _, isid @ ..] = u64::from_str_radix(isid, 16).ok()?.to_be_bytes();
    Some(InitiatorPort {
        name: String::from(name),
        isid,
    })
}
