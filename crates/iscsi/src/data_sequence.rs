//! Cutting a command's data into PDUs and sequences, and the residual that goes with its status.
//!
//! ```text
//!   |<------------- MaxBurstLength: one sequence, F at its end ------------->|<---- next ...
//!   | MaxRecvDataSegmentLength | MaxRecvDataSegmentLength | ...         | F  |
//! ```
//!
//! Spec: RFC 7143 11.7 "SCSI Data-Out and SCSI Data-In", 11.4.5 "Residual Count".

/// One data PDU of a cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Where it lies, in bytes from the start of the cut.
    pub offset: u32,
    /// Its length in bytes.
    pub length: u32,
    /// It ends a sequence (F bit).
    pub last: bool,
}

/// Cuts `bytes` bytes into PDUs of at most `segment_max` and sequences of at most `burst_max`
/// bytes.
pub fn cut(bytes: u32, segment_max: u32, burst_max: u32) -> impl Iterator<Item = Segment> {
    let (segment_max, burst_max) = (segment_max.max(1), burst_max.max(1));
    let (mut offset, mut burst_left) = (0u32, burst_max);
    core::iter::from_fn(move || {
        let left = bytes.saturating_sub(offset);
        if left == 0 {
            return None;
        }
        let length = left.min(segment_max).min(burst_left);
        let segment = Segment {
            offset,
            length,
            last: length == left || length == burst_left,
        };
        offset = offset.saturating_add(length);
        burst_left = match burst_left.saturating_sub(length) {
            0 => burst_max,
            left => left,
        };
        Some(segment)
    })
}

/// How far the bytes that a command wanted to move differ from what the initiator expected.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Residual {
    /// Not at all.
    #[default]
    None,
    /// This many fewer (U).
    Underflow(u32),
    /// This many more (O); they were not moved.
    Overflow(u32),
}

impl Residual {
    /// The residual of `wanted` bytes where `expected` were expected.
    #[must_use]
    pub fn of(wanted: u64, expected: u32) -> Self {
        let saturated = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        match wanted.cmp(&u64::from(expected)) {
            core::cmp::Ordering::Equal => Self::None,
            core::cmp::Ordering::Less => {
                Self::Underflow(saturated(u64::from(expected).saturating_sub(wanted)))
            }
            core::cmp::Ordering::Greater => {
                Self::Overflow(saturated(wanted.saturating_sub(expected.into())))
            }
        }
    }

    /// Overflow bit, underflow bit, and count, as PDUs carry them.
    #[must_use]
    pub const fn fields(self) -> (bool, bool, u32) {
        match self {
            Self::None => (false, false, 0),
            Self::Underflow(count) => (false, true, count),
            Self::Overflow(count) => (true, false, count),
        }
    }

    /// The residual of these fields.
    #[must_use]
    pub const fn from_fields(overflow: bool, underflow: bool, count: u32) -> Self {
        match (overflow, underflow) {
            (true, _) => Self::Overflow(count),
            (false, true) => Self::Underflow(count),
            (false, false) => Self::None,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_cut_covers_all_bytes_once_and_respects_both_limits() {
        for bytes in 0..60 {
            for segment_max in 1..12 {
                for burst_max in 1..25 {
                    check_cut(bytes, segment_max, burst_max);
                }
            }
        }
    }

    fn check_cut(bytes: u32, segment_max: u32, burst_max: u32) {
        let (mut next, mut burst) = (0, 0);
        for segment in cut(bytes, segment_max, burst_max) {
            assert_eq!(segment.offset, next);
            assert!(segment.length > 0 && segment.length <= segment_max);
            next += segment.length;
            burst += segment.length;
            assert!(burst <= burst_max);
            assert_eq!(segment.last, burst == burst_max || next == bytes);
            if segment.last {
                burst = 0;
            }
        }
        assert_eq!(next, bytes);
    }

    // spec: RFC 7143 11.4.5 "Residual Count".
    #[test]
    fn residuals_count_what_was_not_moved() {
        assert_eq!(Residual::of(512, 512), Residual::None);
        assert_eq!(Residual::of(0, 512), Residual::Underflow(512));
        assert_eq!(Residual::of(1024, 512), Residual::Overflow(512));
        assert_eq!(Residual::of(u64::MAX, 0), Residual::Overflow(u32::MAX));
        for residual in [
            Residual::None,
            Residual::Underflow(3),
            Residual::Overflow(4),
        ] {
            let (overflow, underflow, count) = residual.fields();
            assert_eq!(Residual::from_fields(overflow, underflow, count), residual);
        }
    }
}
