//! The exit status of smartctl, whose bits say what happened (smartctl(8), EXIT STATUS).

/// What the exit status says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ExitBits(pub u64);

impl ExitBits {
    const fn has(self, bit: u32) -> bool {
        self.0 & (1 << bit) != 0
    }

    /// It did not understand its command line, or what kind of device it is.
    #[must_use]
    pub const fn not_understood(self) -> bool {
        self.has(0)
    }

    /// The device could not be opened, or did not identify itself.
    #[must_use]
    pub const fn not_opened(self) -> bool {
        self.has(1)
    }

    /// Some command of it failed, or some structure had a wrong checksum; the rest counts.
    #[must_use]
    pub const fn command_failed(self) -> bool {
        self.has(2)
    }

    /// The disk says of itself that it fails.
    #[must_use]
    pub const fn failing(self) -> bool {
        self.has(3)
    }

    /// An attribute that foretells failures is below its threshold.
    #[must_use]
    pub const fn below_threshold(self) -> bool {
        self.has(4)
    }

    /// An attribute was below its threshold at some time.
    #[must_use]
    pub const fn was_below(self) -> bool {
        self.has(5)
    }

    /// Its log has errors.
    #[must_use]
    pub const fn logged_errors(self) -> bool {
        self.has(6)
    }

    /// Its log of self-tests has one that failed.
    #[must_use]
    pub const fn self_test_failed(self) -> bool {
        self.has(7)
    }
}
