//! Little-endian fields, one after the other.

/// Writes fields.
#[derive(Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// With room for so many bytes.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// 8 bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// 4 bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// 2 bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// 1 byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// What was written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// What was written, and zeroes up to `bytes`.
    ///
    /// # Panics
    /// If there is more than that: sizes are known before anything is written.
    #[must_use]
    pub fn padded(mut self, bytes: usize) -> Vec<u8> {
        assert!(self.0.len() <= bytes, "fields fit their block");
        self.0.resize(bytes, 0);
        self.0
    }
}

/// Reads fields. What is not there reads as `None`, and takes nothing.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// From the first of these bytes on.
    #[must_use]
    pub const fn new(from: &'a [u8]) -> Self {
        Self(from)
    }

    /// Bytes as they are.
    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    /// 8 bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    /// 4 bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    /// 2 bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    /// 1 byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.bytes().map(|[byte]: [u8; 1]| byte)
    }

    /// Everything was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn fields_are_read_as_they_were_written_and_what_is_missing_is_none() {
        let mut writer = Writer::with_capacity(17);
        writer.bytes(b"ab").u64(0x0102_0304_0506_0708).u32(9);
        writer.u16(10).u8(11);
        let bytes = writer.padded(20);
        // The bytes are counted by hand.
        let by_hand = [
            b'a', b'b', 8, 7, 6, 5, 4, 3, 2, 1, 9, 0, 0, 0, 10, 0, 11, 0, 0, 0,
        ];
        assert_eq!(bytes, by_hand);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.bytes(), Some(*b"ab"));
        assert_eq!(reader.u64(), Some(0x0102_0304_0506_0708));
        assert_eq!((reader.u32(), reader.u16()), (Some(9), Some(10)));
        assert_eq!((reader.u8(), reader.u32()), (Some(11), None));
        assert_eq!((reader.u16(), reader.u8()), (Some(0), Some(0)));
        assert!(reader.is_empty() && reader.u8().is_none());
    }
}
