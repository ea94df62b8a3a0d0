//! librbd's answers in the waist's words.

use units::{ByteCount, LbaRange};
use volume::{IoError, OpKind};

/// What an operation that answered this negative errno ended with. `mismatch_at`: where a
/// comparison found a difference.
///
/// What leaves nothing done: `EROFS` and missing capabilities (refused before it was tried),
/// `ESHUTDOWN` (refused by the OSDs), `EILSEQ`.
pub(crate) fn io_error(kind: OpKind, range: LbaRange, errno: i32, mismatch_at: u64) -> IoError {
    match errno {
        libc::ENOSPC | libc::EDQUOT => IoError::SpaceExhausted,
        libc::EROFS => IoError::WriteProtected,
        libc::EACCES | libc::EPERM if kind != OpKind::Read => IoError::WriteProtected,
        libc::EILSEQ if kind == OpKind::CompareAndWrite => IoError::Miscompare {
            at: ByteCount(mismatch_at),
        },
        libc::ESHUTDOWN => IoError::Fenced,
        // The image is gone, or shorter than it was, or its connection ends.
        libc::ENOENT | libc::EINVAL | libc::ENOTCONN | libc::EACCES | libc::EPERM => {
            IoError::Unavailable
        }
        libc::ETIMEDOUT => IoError::TimedOut,
        libc::EBUSY | libc::EAGAIN | libc::ENOMEM => IoError::Busy,
        _ => IoError::MediumError { lba: range.start() },
    }
}

/// The first byte that differs, from the start of what was compared: `len` bytes at `offset`, in an
/// image of this stripe unit. librbd of Ceph 16 takes that byte's place for one in the object, and
/// says where it would be in the image.
pub(crate) fn difference(said: u64, offset: u64, len: u64, stripe_unit: u64) -> u64 {
    let place = match said.checked_sub(offset) {
        Some(place) if place < len => place,
        Some(_) | None => said % stripe_unit.max(1),
    };
    place.min(len.saturating_sub(1))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_difference_is_counted_from_what_was_compared_whatever_it_is_reported_from() {
        const OBJECT: u64 = 4 << 20;
        for offset in [0, 512, OBJECT, OBJECT + 2560, 3 * OBJECT - 512] {
            let object = offset / OBJECT * OBJECT;
            for reported_from in [0, object, offset] {
                for place in [0, 100, 511] {
                    let found = difference(reported_from + place, offset, 512, OBJECT);
                    assert_eq!(found, place, "{place} of {offset}, from {reported_from}");
                }
            }
        }
    }
    use units::{BlockCount, Lba};

    fn of(kind: OpKind, errno: i32) -> IoError {
        let range = LbaRange::new(Lba(8), BlockCount(2)).unwrap();
        io_error(kind, range, errno, 100)
    }

    #[test]
    fn every_error_that_means_something_has_its_word() {
        let write = |errno| of(OpKind::Write, errno);
        assert_eq!(write(libc::ENOSPC), IoError::SpaceExhausted);
        assert_eq!(write(libc::EDQUOT), IoError::SpaceExhausted);
        assert_eq!(write(libc::EROFS), IoError::WriteProtected);
        assert_eq!(write(libc::EPERM), IoError::WriteProtected);
        assert_eq!(write(libc::ESHUTDOWN), IoError::Fenced);
        assert_eq!(of(OpKind::Read, libc::ESHUTDOWN), IoError::Fenced);
        assert_eq!(of(OpKind::Read, libc::EPERM), IoError::Unavailable);
        assert_eq!(write(libc::ENOENT), IoError::Unavailable);
        assert_eq!(write(libc::EINVAL), IoError::Unavailable);
        assert_eq!(write(libc::ENOMEM), IoError::Busy);
        assert_eq!(write(libc::EIO), IoError::MediumError { lba: Lba(8) });
    }

    #[test]
    fn only_a_comparison_can_miscompare() {
        let at = ByteCount(100);
        assert_eq!(
            of(OpKind::CompareAndWrite, libc::EILSEQ),
            IoError::Miscompare { at }
        );
        assert_eq!(
            of(OpKind::Read, libc::EILSEQ),
            IoError::MediumError { lba: Lba(8) }
        );
    }
}
