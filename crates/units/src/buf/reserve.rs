//! Who takes memory of a pool, and what is kept for whom.

/// Who takes memory. Work that frees memory has some of its own, so that it goes on when hosts have
/// taken all they may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reserve {
    /// Commands of hosts. They have no reserve: one that finds nothing waits, or is asked to come
    /// again.
    Front,
    /// What destages cached writes, and thereby frees their memory.
    WriteBack,
    /// What brings a volume back after a failure, which write-back may have to wait for.
    Recovery,
}

/// What of a pool is kept for whom, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reserves {
    /// For [`Reserve::WriteBack`] and [`Reserve::Recovery`]; [`Reserve::Front`] does not get it.
    pub write_back: usize,
    /// For [`Reserve::Recovery`] alone.
    pub recovery: usize,
}
