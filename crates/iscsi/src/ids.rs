//! The opaque names that iSCSI PDUs carry: tags, session and connection identifiers, LUNs.
//!
//! Spec: RFC 7143 11.2.1 "Basic Header Segment", 11.12.5 "ISID", 11.12.6 "TSIH".

use core::fmt;

/// The value of a tag field that says "no tag".
const RESERVED_TAG: u32 = 0xFFFF_FFFF;

macro_rules! tag {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $name {
            /// The tag in a header field; `None` for the reserved value FFFFFFFFh.
            #[must_use]
            pub const fn from_wire(field: u32) -> Option<Self> {
                if field == RESERVED_TAG { None } else { Some(Self(field)) }
            }

            /// The header field for a tag or for none.
            #[must_use]
            pub const fn to_wire(tag: Option<Self>) -> u32 {
                match tag {
                    Some(tag) => tag.0,
                    None => RESERVED_TAG,
                }
            }

            /// The tag as a number, for logs and tables.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    };
}

tag! {
    /// Initiator Task Tag: names a task within a session until its response.
    Itt
}
tag! {
    /// Target Transfer Tag: names an R2T, a ping, or a text exchange of the target.
    Ttt
}

/// Initiator part of the session identifier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isid(pub [u8; 6]);

impl Isid {
    /// An ISID of the format "random" (RFC 7143 11.12.5 "ISID"): T is 10b, then 24 bits of the
    /// caller's randomness and a qualifier that distinguishes the initiator's sessions with one
    /// target portal group. There is no default: two initiators that share an all-zero ISID and a
    /// name end each other's sessions.
    #[must_use]
    pub const fn random(random: [u8; 3], qualifier: u16) -> Self {
        let [high, middle, low] = random;
        let [first, second] = qualifier.to_be_bytes();
        Self([0x80, high, middle, low, first, second])
    }
}

impl fmt::Debug for Isid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "Isid({a:02x}{b:02x}{c:02x}{d:02x}{e:02x}{g:02x})")
    }
}

/// Target session identifying handle; 0 asks for a new session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tsih(pub u16);

/// Connection identifier, unique within a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Cid(pub u16);

/// Logical unit number as the eight bytes of the wire; what they mean is SCSI's business (SAM-5
/// 4.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lun(pub [u8; 8]);

impl fmt::Debug for Lun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lun({:016x})", u64::from_be_bytes(self.0))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    // spec: RFC 7143 11.12.5 "ISID".
    #[test]
    fn a_random_isid_says_so_and_keeps_every_bit() {
        let isid = Isid::random([0xab, 0xcd, 0xef], 0x1234);
        assert_eq!(isid.0, [0x80, 0xab, 0xcd, 0xef, 0x12, 0x34]);
    }
}
