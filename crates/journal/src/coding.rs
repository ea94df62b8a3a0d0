//! Little-endian fields of a block, one after the other.

/// Writes fields into a block of zeroes.
pub(crate) struct Writer<'a> {
    into: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(into: &'a mut [u8]) -> Self {
        Self { into, at: 0 }
    }

    /// # Panics
    /// If the block is too small: sizes are known before anything is written.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.into[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }
}

/// Reads fields. What is not there reads as `None`, and so does everything after it.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(from: &'a [u8]) -> Self {
        Self(from)
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.bytes().map(|[byte]: [u8; 1]| byte)
    }
}

/// CRC-32C of bytes in one or more pieces.
pub(crate) fn crc32c<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    for piece in pieces {
        digest.update(piece);
    }
    u32::try_from(digest.finalize()).expect("a CRC-32 has 32 bits")
}
