//! How often what a host sent did not match its digest: a cable, a switch or memory on the way that
//! changes bytes.

use iscsi::ViolationKind;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts over all connections.
#[derive(Default)]
pub(crate) struct DigestErrors {
    header: AtomicU64,
    data: AtomicU64,
}

impl DigestErrors {
    /// A peer broke the protocol. `true`: because of a digest.
    pub(crate) fn count(&self, kind: ViolationKind) -> bool {
        let counter = match kind {
            ViolationKind::HeaderDigest => &self.header,
            ViolationKind::DataDigest | ViolationKind::PayloadDigest => &self.data,
            ViolationKind::DataSegmentTooLong
            | ViolationKind::UnknownOpcode
            | ViolationKind::InvalidField
            | ViolationKind::WrongPhase
            | ViolationKind::BadText
            | ViolationKind::TaskTagInUse
            | ViolationKind::TooManyImmediate
            | ViolationKind::SnackNotSupported
            | ViolationKind::WaitingForLogout
            | ViolationKind::UnexpectedUnsolicitedData
            | ViolationKind::IncorrectAmountOfData
            | ViolationKind::TimedOut => return false,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Of headers, and of data.
    pub(crate) fn read(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.header), read(&self.data))
    }
}
