//! What a ring has done since it was opened.

/// What a ring has done.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Counts {
    pub(crate) batches: u64,
    pub(crate) records: u64,
    pub(crate) written_bytes: u64,
    pub(crate) destaged_bytes: u64,
    pub(crate) write_around_bytes: u64,
    pub(crate) relocated_bytes: u64,
    pub(crate) rounds: u64,
    pub(crate) misreads: u64,
}
