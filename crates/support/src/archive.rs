//! Files in one compressed archive: POSIX ustar (IEEE Std 1003.1 "pax", "ustar Interchange
//! Format"), in gzip.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// Bytes of a block of the archive.
const BLOCK: usize = 512;

/// The longest name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 100;

/// An archive that grows.
pub(crate) struct Archive {
    packed: GzEncoder<Vec<u8>>,
    /// Seconds since 1970, of all files.
    made: u64,
}

impl Archive {
    pub(crate) fn new(made: u64) -> Self {
        Self {
            packed: GzEncoder::new(Vec::new(), Compression::default()),
            made,
        }
    }

    /// Adds a file of at most 8 GiB.
    pub(crate) fn add(&mut self, name: &str, bytes: &[u8]) {
        self.write(&header(name, bytes.len(), self.made));
        self.write(bytes);
        let over = bytes.len() % BLOCK;
        if over > 0 {
            self.write(&[0; BLOCK][over..]);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let written = self.packed.write_all(bytes);
        written.expect("memory takes what is written");
    }

    /// With the two empty blocks that an archive ends with.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.write(&[0; 2 * BLOCK]);
        let packed = self.packed.finish();
        packed.expect("memory takes what is written")
    }
}

/// What stands before a file.
fn header(name: &str, bytes: usize, made: u64) -> [u8; BLOCK] {
    assert!(name.len() <= NAME_BYTES_MAX, "{name} is too long");
    let mut out = [0; BLOCK];
    let mut put = |at: usize, text: &str| out[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000600\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{bytes:011o}\0"));
    put(136, &format!("{made:011o}\0"));
    // The sum counts itself as blanks.
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\0");
    put(263, "00");
    let sum: u32 = out.iter().map(|byte| u32::from(*byte)).sum();
    out[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    out
}
