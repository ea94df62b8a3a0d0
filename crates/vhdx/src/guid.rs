//! GUIDs, as the format has them: three little-endian numbers and eight bytes.

use std::fmt;

/// A GUID, in the order of bytes that it has in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// No GUID: all zeroes.
    pub const NONE: Self = Self([0; 16]);

    /// As it is written: `2DC27766-F623-4200-9D64-115E9BFD4A08` is
    /// `of(0x2dc2_7766, 0xf623, 0x4200, 0x9d64_115e_9bfd_4a08)`.
    #[must_use]
    pub const fn of(first: u32, second: u16, third: u16, rest: u64) -> Self {
        let [a, b, c, d] = first.to_le_bytes();
        let [e, f] = second.to_le_bytes();
        let [g, h] = third.to_le_bytes();
        let [i, j, k, l, m, n, o, p] = rest.to_be_bytes();
        Self([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
    }

    /// It is [`Self::NONE`].
    #[must_use]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Of text with or without braces, in either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text
            .strip_prefix('{')
            .map_or(Some(text), |rest| rest.strip_suffix('}'))?;
        let parts: Vec<&str> = text.split('-').collect();
        let [first, second, third, fourth, last] = parts.as_slice() else {
            return None;
        };
        let lengths = [first, second, third, fourth, last].map(|part| part.len());
        if lengths != [8, 4, 4, 4, 12] || !text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
        {
            return None;
        }
        let rest = u64::from_str_radix(&format!("{fourth}{last}"), 16).ok()?;
        Some(Self::of(
            u32::from_str_radix(first, 16).ok()?,
            u16::from_str_radix(second, 16).ok()?,
            u16::from_str_radix(third, 16).ok()?,
            rest,
        ))
    }
}

impl fmt::Display for Guid {
    /// In lower case, without braces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i, rest @ ..] = self.0;
        let rest = u64::from_be_bytes(rest);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            u32::from_le_bytes([a, b, c, d]),
            u16::from_le_bytes([e, g]),
            u16::from_le_bytes([h, i]),
            rest >> 48,
            rest & 0xffff_ffff_ffff,
        )
    }
}

/// GUIDs that nobody else has, from 16 random bytes of the caller: the machine has no randomness.
#[derive(Clone, Debug)]
pub struct Guids {
    random: [u8; 16],
    given: u64,
}

impl Guids {
    /// From bytes that are random, and new at each start.
    #[must_use]
    pub const fn new(random: [u8; 16]) -> Self {
        Self { random, given: 0 }
    }

    /// The next one: as RFC 9562 has random ones (version 4).
    pub fn give(&mut self) -> Guid {
        self.given += 1;
        self.numbered(self.given)
    }

    /// Leaves out so many, which a copy of this gives.
    pub fn skip(&mut self, count: u64) {
        self.given += count;
    }

    /// This one was given here, or left out.
    #[must_use]
    pub fn has_given(&self, guid: Guid) -> bool {
        (1..=self.given).any(|number| self.numbered(number) == guid)
    }

    fn numbered(&self, given: u64) -> Guid {
        let number = u128::from_le_bytes(self.random);
        // An odd factor: as many different ones as there are numbers.
        let step = u128::from(given).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let mut bytes = number.wrapping_add(step).to_le_bytes();
        bytes[7] = bytes[7] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Guid(bytes)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_guid_is_written_as_it_is_read_and_its_bytes_are_those_of_windows() {
        let text = "2dc27766-f623-4200-9d64-115e9bfd4a08";
        let guid = Guid::of(0x2dc2_7766, 0xf623, 0x4200, 0x9d64_115e_9bfd_4a08);
        // spec: MS-VHDX 2.2.3.2, the bytes counted by hand.
        let bytes = [
            0x66, 0x77, 0xc2, 0x2d, 0x23, 0xf6, 0, 0x42, 0x9d, 0x64, 0x11, 0x5e, 0x9b, 0xfd, 0x4a,
            8,
        ];
        assert_eq!((guid.0, guid.to_string()), (bytes, text.to_owned()));
        assert_eq!(Guid::parse(text), Some(guid));
        let braces = format!("{{{}}}", text.to_uppercase());
        assert_eq!(Guid::parse(&braces), Some(guid));
        for wrong in [
            "",
            "{",
            "2dc27766",
            "2dc27766-f623-4200-9d64-115e9bfd4a0",
            &braces[1..],
        ] {
            assert_eq!(Guid::parse(wrong), None, "{wrong}");
        }
        let signed = "+dc27766-f623-4200-9d64-115e9bfd4a08";
        assert_eq!(Guid::parse(signed), None);
    }

    #[test]
    fn those_that_were_given_or_left_out_are_known() {
        let mut guids = Guids::new([7; 16]);
        let (mut copy, first) = (guids.clone(), guids.give());
        assert!(guids.has_given(first) && !copy.has_given(first));
        copy.skip(2);
        let third = copy.give();
        assert!(copy.has_given(first) && copy.has_given(third));
        assert!(!guids.has_given(third) && !Guids::new([8; 16]).has_given(first));
    }

    #[test]
    fn guids_differ() {
        let mut guids = Guids::new([7; 16]);
        let some: std::collections::BTreeSet<Guid> = (0..1000).map(|_| guids.give()).collect();
        assert_eq!(some.len(), 1000);
        assert!(
            some.iter()
                .all(|guid| guid.to_string().as_bytes()[14] == b'4')
        );
    }
}
