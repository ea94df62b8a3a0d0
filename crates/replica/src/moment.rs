//! Times of one node, and how long promises last.

/// A moment of a node's own clock, in milliseconds. It counts while the machine sleeps, and says
/// nothing about the clocks of others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// So many milliseconds later.
    #[must_use]
    pub const fn after(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }
}

/// How long promises between nodes last, in milliseconds.
///
/// What keeps reads right is `lead` < `patience`, and `ask` + `grant` <= `lead`; the differences
/// cover clocks that run at different rates, and nodes that are late. Writes depend on none of
/// them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Spans {
    /// From one beacon to the next.
    pub beacon: u64,
    /// The owner reads from its copy so long after it sent the last beacon that was answered.
    pub lead: u64,
    /// A member does not take over for so long after a beacon of the owner came, and after its own
    /// start.
    pub patience: u64,
    /// A replica reads from its copy so long after it sent the question that the owner granted.
    pub grant: u64,
    /// The owner grants reads only so long after it sent a beacon that was answered.
    pub ask: u64,
    /// What the arbiter did not answer is asked again after this.
    pub retry: u64,
}

impl Default for Spans {
    fn default() -> Self {
        Self {
            beacon: 250,
            lead: 2000,
            patience: 3000,
            grant: 1500,
            ask: 500,
            retry: 500,
        }
    }
}
