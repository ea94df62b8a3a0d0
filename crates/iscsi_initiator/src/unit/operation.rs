//! The waist's operations as SCSI commands, cut to what the unit takes, and SCSI's answers as the
//! waist's errors.

use super::cdb::{self, Cdb};
use super::facts::{CommandLimits, Features};
use scsi::{Sense, SenseKey, Status};
use units::{BlockCount, Buf, ByteCount, Lba, LbaRange};
use volume::{Durability, Extent, ExtentKind, ExtentList, IoError, Op, Provision, Zeroing};

/// A command with what it sends.
pub(super) struct Request {
    pub(super) cdb: Cdb,
    pub(super) data_out: Buf,
}

impl Request {
    fn nothing_out(cdb: Cdb) -> Self {
        let data_out = Buf::empty();
        Self { cdb, data_out }
    }
}

/// `range` in parts of at most `most` blocks.
pub(super) fn parts(range: LbaRange, most: u32) -> impl Iterator<Item = LbaRange> {
    let most = u64::from(most.max(1));
    let mut at = range.start();
    std::iter::from_fn(move || {
        let end = Lba(at.0.saturating_add(most).min(range.end().0));
        let part = LbaRange::between(at, end).filter(|part| !part.is_empty())?;
        at = end;
        Some(part)
    })
}

/// WRITE (16).
pub(super) fn write(range: LbaRange, data_out: Buf, fua: bool) -> Request {
    let cdb = cdb::write_16(range, fua);
    Request { cdb, data_out }
}

/// COMPARE AND WRITE: both halves are sent, the expected one first.
pub(super) fn compare_and_write(range: LbaRange, expected: &Buf, new: &Buf, fua: bool) -> Request {
    let mut data_out = expected.clone();
    data_out.append(new);
    let cdb = cdb::compare_and_write(range, fua);
    Request { cdb, data_out }
}

/// WRITE SAME (16) of one block of zeroes, which every unit understands; NDOB is younger.
pub(super) fn write_zeroes(
    range: LbaRange,
    zeroing: Zeroing,
    features: Features,
    block: usize,
) -> Request {
    let unmap = features.write_same_unmaps && zeroing == Zeroing::MayUnmap;
    Request {
        cdb: cdb::write_same_16(range, unmap, false),
        data_out: Buf::zeroes(block),
    }
}

/// Most blocks of one command that discards.
pub(super) fn discard_blocks_max(features: Features, limits: CommandLimits) -> u32 {
    if features.unmap && limits.unmap > 0 {
        limits.unmap
    } else {
        limits.write_same
    }
}

/// UNMAP, or WRITE SAME (16) with UNMAP where that is what there is.
pub(super) fn discard(
    range: LbaRange,
    to: Provision,
    (features, limits): (Features, CommandLimits),
    block: usize,
) -> Request {
    let anchor = features.anchor && to == Provision::Anchored;
    if features.unmap && limits.unmap > 0 {
        let (cdb, data_out) = cdb::unmap(range, anchor);
        return Request { cdb, data_out };
    }
    Request {
        cdb: cdb::write_same_16(range, true, anchor),
        data_out: Buf::zeroes(block),
    }
}

/// SYNCHRONIZE CACHE of everything.
pub(super) fn flush(features: Features) -> Request {
    Request::nothing_out(cdb::synchronize_cache(features.synchronize_16))
}

/// How an operation that has to be stable gets there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stability {
    /// FUA on the commands.
    pub(super) fua: bool,
    /// SYNCHRONIZE CACHE afterwards.
    pub(super) flush: bool,
}

/// `has_fua`: the operation's commands have the bit.
pub(super) fn stability(durability: Durability, features: Features, has_fua: bool) -> Stability {
    let needed = durability == Durability::Stable && features.write_cache;
    let fua = needed && has_fua && features.fua;
    let flush = needed && !fua;
    Stability { fua, flush }
}

/// What is returned to whoever asked, if a refusal is the last word.
pub(super) fn error(op: &Op, status: u8, sense: Option<&Sense>) -> IoError {
    match (Status::from_code(status), sense) {
        (Some(Status::CheckCondition), Some(sense)) => of_sense(op, sense),
        (Some(Status::Busy | Status::TaskSetFull), _) => IoError::Busy,
        (Some(Status::ReservationConflict), _) if op.mutates() => IoError::WriteProtected,
        (Some(Status::TaskAborted), _) => IoError::Aborted,
        (
            Some(
                Status::Good
                | Status::ConditionMet
                | Status::CheckCondition
                | Status::ReservationConflict
                | Status::AcaActive,
            )
            | None,
            _,
        ) => IoError::Unavailable,
    }
}

fn of_sense(op: &Op, sense: &Sense) -> IoError {
    let start = op.range().map_or(Lba(0), LbaRange::start);
    let lba = Lba(sense.information.unwrap_or(start.0));
    match (sense.key, sense.code.asc, sense.code.ascq) {
        // SPACE ALLOCATION FAILED WRITE PROTECT
        (SenseKey::DataProtect, 0x27, 0x07) => IoError::SpaceExhausted,
        (SenseKey::DataProtect, _, _) => IoError::WriteProtected,
        (SenseKey::Miscompare, _, _) => IoError::Miscompare {
            at: ByteCount(sense.information.unwrap_or(0)),
        },
        // A block with a bad guard, application or reference tag is damaged, wherever that
        // happened.
        (SenseKey::MediumError | SenseKey::AbortedCommand, 0x10, _) => IoError::Integrity { lba },
        // LOGICAL BLOCK ADDRESS OUT OF RANGE: the unit has shrunk.
        (SenseKey::MediumError | SenseKey::HardwareError, _, _)
        | (SenseKey::IllegalRequest, 0x21, _) => IoError::MediumError { lba },
        (SenseKey::AbortedCommand, 0x2e, _) => IoError::TimedOut,
        (SenseKey::AbortedCommand, _, _) => IoError::Aborted,
        (
            SenseKey::NoSense
            | SenseKey::RecoveredError
            | SenseKey::NotReady
            | SenseKey::IllegalRequest
            | SenseKey::UnitAttention
            | SenseKey::BlankCheck
            | SenseKey::VendorSpecific
            | SenseKey::CopyAborted
            | SenseKey::Reserved
            | SenseKey::VolumeOverflow
            | SenseKey::Completed,
            _,
            _,
        ) => IoError::Unavailable,
    }
}

/// Extents from GET LBA STATUS data, from the start of `range` on and not past its end; `None` for
/// data that makes no sense.
///
/// Spec: SBC-3 5.5.2 "GET LBA STATUS parameter data".
pub(super) fn extents(data: &[u8], range: LbaRange) -> Option<ExtentList> {
    let mut found = ExtentList::new();
    let mut rest = data.get(8..)?;
    let mut at = range.start();
    while let Some((head, after)) = rest.split_first_chunk::<16>() {
        rest = after;
        let start = u64::from_be_bytes(*head.first_chunk()?);
        let blocks = u32::from_be_bytes(*head.get(8..)?.first_chunk()?);
        let reported = LbaRange::new(Lba(start), BlockCount(blocks.into()))?;
        // The first may begin before what was asked for.
        let end = Lba(reported.end().0.min(range.end().0));
        if reported.start() > at || end <= at {
            break;
        }
        let kind = match head[12] & 0x0f {
            1 => ExtentKind::Deallocated,
            2 => ExtentKind::Anchored,
            _ => ExtentKind::Mapped,
        };
        let range = LbaRange::between(at, end)?;
        found.push(Extent { range, kind });
        at = end;
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod test {
    use super::*;
    use scsi::AdditionalSense;
    use scsi::provisioning::{ProvisioningStatus, lba_status};

    fn range(start: u64, end: u64) -> LbaRange {
        LbaRange::between(Lba(start), Lba(end)).unwrap()
    }

    #[test]
    fn parts_cover_the_range_once_and_are_short_enough() {
        let all: Vec<LbaRange> = parts(range(5, 26), 10).collect();
        assert_eq!(all, [range(5, 15), range(15, 25), range(25, 26)]);
        assert_eq!(parts(range(5, 5), 10).count(), 0);
        assert_eq!(parts(range(0, 3), 0).count(), 3);
    }

    #[test]
    fn extents_are_what_the_target_encodes_cut_to_what_was_asked() {
        let reported = [
            (range(0, 10), ProvisioningStatus::Mapped),
            (range(10, 20), ProvisioningStatus::Deallocated),
            (range(20, 90), ProvisioningStatus::Anchored),
        ];
        let found = extents(&lba_status(&reported, 10), range(4, 30)).unwrap();
        let found: Vec<(LbaRange, ExtentKind)> =
            found.into_iter().map(|it| (it.range, it.kind)).collect();
        let expected = [
            (range(4, 10), ExtentKind::Mapped),
            (range(10, 20), ExtentKind::Deallocated),
            (range(20, 30), ExtentKind::Anchored),
        ];
        assert_eq!(found, expected);
        // A gap, or nothing at all, is no answer.
        assert_eq!(extents(&lba_status(&reported[1..], 10), range(4, 30)), None);
        for end in 0..40 {
            let _ = extents(&lba_status(&reported, 10)[..end], range(4, 30));
        }
    }

    /// The inverse of the target's own table: an error that a volume has comes back as itself.
    #[test]
    fn errors_of_our_target_come_back_as_what_they_were() {
        let write = Op::Write {
            range: range(8, 16),
            data: Buf::zeroes(4096),
            durability: Durability::Cached,
        };
        let check = Status::CheckCondition.code();
        let code = |asc, ascq| AdditionalSense { asc, ascq };
        let at = Lba(11);
        for (key, asc, ascq, expected) in [
            (
                SenseKey::MediumError,
                0x0c,
                0x00,
                IoError::MediumError { lba: at },
            ),
            (SenseKey::DataProtect, 0x27, 0x07, IoError::SpaceExhausted),
            (SenseKey::DataProtect, 0x27, 0x00, IoError::WriteProtected),
            (SenseKey::NotReady, 0x04, 0x0b, IoError::Unavailable),
            (SenseKey::AbortedCommand, 0x2e, 0x02, IoError::TimedOut),
            (
                SenseKey::Miscompare,
                0x1d,
                0x00,
                IoError::Miscompare { at: ByteCount(11) },
            ),
        ] {
            let mut sense = Sense::new(key, code(asc, ascq));
            sense.information = Some(11);
            assert_eq!(error(&write, check, Some(&sense)), expected);
        }
        assert_eq!(error(&write, Status::Busy.code(), None), IoError::Busy);
        let conflict = Status::ReservationConflict.code();
        assert_eq!(error(&write, conflict, None), IoError::WriteProtected);
        assert_eq!(error(&Op::Flush, conflict, None), IoError::Unavailable);
    }

    #[test]
    fn what_must_be_stable_gets_there_by_fua_or_by_a_flush_and_without_a_cache_by_itself() {
        let features = |write_cache, fua| Features {
            read_only: false,
            write_cache,
            fua,
            unmap: true,
            write_same: true,
            write_same_unmaps: true,
            anchor: false,
            synchronize_16: true,
            lba_status: true,
        };
        let how = |durability, cache, fua, bit| {
            let it = stability(durability, features(cache, fua), bit);
            (it.fua, it.flush)
        };
        assert_eq!(how(Durability::Stable, true, true, true), (true, false));
        assert_eq!(how(Durability::Stable, true, true, false), (false, true));
        assert_eq!(how(Durability::Stable, true, false, true), (false, true));
        assert_eq!(how(Durability::Stable, false, true, true), (false, false));
        assert_eq!(how(Durability::Cached, true, true, true), (false, false));
    }
}
