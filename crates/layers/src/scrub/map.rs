//! What a scrub asks of a volume whose blocks have checksums, besides reading them.

use crate::integrity::IntegrityLane;
use std::pin::Pin;
use units::LbaRange;
use volume::IoError;

/// What the map is asked answers later.
pub type Answered<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// The map of the checksums of what is scrubbed.
pub trait ScrubbedMap {
    /// Bytes that one checksum covers.
    fn covered_bytes(&self) -> u32;

    /// The range has the first block of a page of checksums.
    fn begins_a_page(&self, range: LbaRange) -> bool;

    /// Compares what stands above the pages with what must; answers how much was damaged.
    fn check_above(&self) -> Answered<'_, u64>;

    /// Compares the pages that begin in a range with what they must be; answers how many were
    /// damaged.
    ///
    /// # Errors
    /// The map cannot be read or written.
    fn check_pages(&self, range: LbaRange) -> Answered<'_, Result<u64, IoError>>;

    /// Makes the checksums stable that reads have adopted.
    ///
    /// # Errors
    /// The map cannot be written.
    fn keep(&self) -> Answered<'_, Result<(), IoError>>;

    /// Counts the blocks that have no checksum.
    ///
    /// # Errors
    /// The map cannot be read or written.
    fn count_uncovered(&self) -> Answered<'_, Result<(), IoError>>;
}

impl ScrubbedMap for IntegrityLane {
    fn covered_bytes(&self) -> u32 {
        self.covered_bytes()
    }

    fn begins_a_page(&self, range: LbaRange) -> bool {
        self.begins_a_page(range)
    }

    fn check_above(&self) -> Answered<'_, u64> {
        Box::pin(self.check_above())
    }

    fn check_pages(&self, range: LbaRange) -> Answered<'_, Result<u64, IoError>> {
        Box::pin(self.check_map(range))
    }

    fn keep(&self) -> Answered<'_, Result<(), IoError>> {
        Box::pin(self.keep_checksums())
    }

    fn count_uncovered(&self) -> Answered<'_, Result<(), IoError>> {
        Box::pin(self.cover())
    }
}
