//! What a ring has done since it was opened.

/// What a ring has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RingCounts {
    /// Batches that were written to the log.
    pub batches: u64,
    /// Changes in them.
    pub records: u64,
    /// Bytes in them, with their headers.
    pub written_bytes: u64,
    /// Bytes that were destaged.
    pub destaged_bytes: u64,
    /// Bytes that were written around the log.
    pub write_around_bytes: u64,
    /// Bytes that were relocated in the log, because they could not be destaged.
    pub relocated_bytes: u64,
    /// Rounds of destaging.
    pub rounds: u64,
    /// Reads of the log that did not give what was written there at first.
    pub misreads: u64,
}
