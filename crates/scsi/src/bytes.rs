//! Cursors over big-endian bytes: what a peer sent is read without panics, what we answer is
//! appended.

use alloc::vec::Vec;

/// Takes fields off the front of a peer's bytes; `None` means that the bytes ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(head)
    }

    pub(crate) fn skip(&mut self, len: usize) -> Option<()> {
        self.take(len).map(|_| ())
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn be32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn be64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Appends fields; lengths that stand before what they count are patched when it is known.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes.push(value);
        self
    }

    pub(crate) fn be16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn be32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn be64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_be_bytes())
    }

    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(value);
        self
    }

    pub(crate) fn zeros(&mut self, count: usize) -> &mut Self {
        self.bytes.resize(self.bytes.len().saturating_add(count), 0);
        self
    }

    /// Appends zeros until `len` bytes are there.
    pub(crate) fn pad_to(&mut self, len: usize) -> &mut Self {
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self
    }

    /// Left-aligned ASCII of exactly `width` bytes, padded with spaces. A byte that is not graphic
    /// ASCII becomes a question mark (SPC-4 4.3.1 "ASCII data field requirements").
    pub(crate) fn ascii(&mut self, text: &str, width: usize) -> &mut Self {
        let graphic = |byte: u8| {
            if matches!(byte, 0x20..=0x7e) {
                byte
            } else {
                b'?'
            }
        };
        let padded = text.bytes().map(graphic).chain(core::iter::repeat(b' '));
        self.bytes.extend(padded.take(width));
        self
    }

    /// One byte that says how many bytes `body` appended (saturates at 255).
    pub(crate) fn counted8(&mut self, body: impl FnOnce(&mut Self)) -> &mut Self {
        let at = self.bytes.len();
        self.u8(0);
        body(self);
        let count = self.bytes.len().saturating_sub(at).saturating_sub(1);
        self.patch(at, &[u8::try_from(count).unwrap_or(u8::MAX)])
    }

    /// Two bytes that say how many bytes `body` appended (saturates at 65535).
    pub(crate) fn counted16(&mut self, body: impl FnOnce(&mut Self)) -> &mut Self {
        let at = self.bytes.len();
        self.be16(0);
        body(self);
        let count = self.bytes.len().saturating_sub(at).saturating_sub(2);
        self.patch(at, &u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes())
    }

    /// Four bytes that say how many bytes `body` appended.
    pub(crate) fn counted32(&mut self, body: impl FnOnce(&mut Self)) -> &mut Self {
        let at = self.bytes.len();
        self.be32(0);
        body(self);
        let count = self.bytes.len().saturating_sub(at).saturating_sub(4);
        self.patch(at, &u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes())
    }

    fn patch(&mut self, at: usize, value: &[u8]) -> &mut Self {
        let end = at.saturating_add(value.len());
        if let Some(slot) = self.bytes.get_mut(at..end) {
            slot.copy_from_slice(value);
        }
        self
    }
}

/// Bit `bit` of a byte as 0 or 1 in place: `flag(true, 3) == 0x08`.
pub(crate) const fn flag(value: bool, bit: u8) -> u8 {
    if value {
        1u8.wrapping_shl(bit as u32)
    } else {
        0
    }
}

/// Bit `bit` (0 to 7) of `byte` is set.
pub(crate) const fn is_set(byte: u8, bit: u8) -> bool {
    byte & flag(true, bit) != 0
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn counted_fields_count_what_follows_them() {
        let mut out = Writer::new();
        out.u8(9).counted16(|out| {
            out.be32(1).counted8(|out| {
                out.zeros(3);
            });
        });
        assert_eq!(out.finish(), [9, 0, 8, 0, 0, 0, 1, 3, 0, 0, 0]);
    }

    #[test]
    fn a_reader_stops_at_the_end_and_keeps_what_it_could_not_take() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.array(), Some([1, 2]));
        assert_eq!(reader.array::<2>(), None);
        assert_eq!(reader.rest(), [3]);
        assert_eq!(reader.u8(), Some(3));
        assert!(reader.rest().is_empty());
    }
}
