//! Who stands above and keeps copies of a volume's blocks.

use units::{Buf, LbaRange};

/// Keeps copies of blocks, and is offered what is destaged.
pub trait Copies: Send + Sync {
    /// `data` is what these blocks were at some moment after this was called, if `is_newest` says
    /// so when it is asked; it came in writes of `write_bytes` at most. What is written from now on
    /// goes through whoever keeps copies, and is newer.
    fn offer(&self, range: LbaRange, data: &Buf, write_bytes: u64, is_newest: &dyn Fn() -> bool);
}

impl Copies for Box<dyn Copies> {
    fn offer(&self, range: LbaRange, data: &Buf, write_bytes: u64, is_newest: &dyn Fn() -> bool) {
        (**self).offer(range, data, write_bytes, is_newest);
    }
}
