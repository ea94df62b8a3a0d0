//! Where the system is read.

use std::path::PathBuf;

/// Where the system shows itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roots {
    /// sysfs: `/sys`.
    pub sys: PathBuf,
    /// procfs: `/proc`.
    pub proc: PathBuf,
    /// Configuration: `/etc`.
    pub etc: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            sys: "/sys".into(),
            proc: "/proc".into(),
            etc: "/etc".into(),
        }
    }
}
