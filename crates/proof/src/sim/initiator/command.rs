//! The waist's operations as SCSI commands, and what comes back as the waist's results.

use iscsi::initiator_side::Completion;
use scsi::{AdditionalSense, Sense, SenseKey, Status};
use units::{BlockSize, Buf, ByteCount, Lba, LbaRange};
use volume::{Done, Durability, IoError, IoResult, Op, Zeroing};

/// A command with what it sends and how many bytes it receives.
pub(super) struct Built {
    pub(super) cdb: [u8; 16],
    pub(super) data_out: Buf,
    pub(super) data_in: usize,
}

/// What to do about a response.
pub(super) enum Verdict {
    /// The command has ended.
    Ended(IoResult),
    /// Nothing was done; it is worth sending again (unit attention).
    Again,
    /// A response that this command cannot have.
    Absurd(String),
}

/// FUA, in byte 1 of the CDBs that have it.
fn fua(durability: Durability) -> u8 {
    match durability {
        Durability::Cached => 0,
        Durability::Stable => 0x08,
    }
}

/// The form that most 16-byte CDBs of SBC-4 have: operation, flags, address, number of blocks.
fn cdb_16(operation: u8, flags: u8, range: LbaRange) -> [u8; 16] {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1]) = (operation, flags);
    cdb[2..10].copy_from_slice(&range.start().0.to_be_bytes());
    let blocks = u32::try_from(range.len().0).expect("ranges of a test are short");
    cdb[10..14].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

fn nothing_in(cdb: [u8; 16], data_out: Buf) -> Built {
    Built {
        cdb,
        data_out,
        data_in: 0,
    }
}

/// The command for `op`.
pub(super) fn build(op: &Op, block_size: BlockSize, unmaps: bool) -> Built {
    match op {
        // READ (16) (SBC-4 5.20)
        Op::Read { range, .. } => {
            let bytes = range.len().0 * u64::from(block_size.bytes());
            let bytes = usize::try_from(bytes).expect("ranges of a test are short");
            Built {
                cdb: cdb_16(0x88, 0, *range),
                data_out: Buf::empty(),
                data_in: bytes,
            }
        }
        // WRITE (16) (SBC-4 5.43)
        Op::Write {
            range,
            data,
            durability,
        } => nothing_in(cdb_16(0x8A, fua(*durability), *range), data.clone()),
        // COMPARE AND WRITE (SBC-4 5.3): the number of blocks is one byte
        Op::CompareAndWrite {
            range,
            expected,
            data,
            durability,
        } => {
            let mut cdb = cdb_16(0x89, fua(*durability), *range);
            cdb[10..14].fill(0);
            cdb[13] = u8::try_from(range.len().0).expect("ranges of a test are short");
            let mut both = expected.clone();
            both.append(data);
            nothing_in(cdb, both)
        }
        // WRITE SAME (16) (SBC-4 5.50) with NDOB, and UNMAP where that is allowed
        Op::WriteZeroes { range, zeroing, .. } => {
            let unmap = match zeroing {
                Zeroing::MayUnmap if unmaps => 0x08,
                Zeroing::MayUnmap | Zeroing::KeepAllocated => 0,
            };
            nothing_in(cdb_16(0x93, 0x01 | unmap, *range), Buf::empty())
        }
        // UNMAP (SBC-4 5.35)
        Op::Discard { range, .. } => {
            let mut cdb = [0; 16];
            (cdb[0], cdb[8]) = (0x42, 24);
            let mut list = [0; 24];
            (list[1], list[3]) = (22, 16);
            list[8..16].copy_from_slice(&range.start().0.to_be_bytes());
            let blocks = u32::try_from(range.len().0).expect("ranges of a test are short");
            list[16..20].copy_from_slice(&blocks.to_be_bytes());
            nothing_in(cdb, Buf::copy_of(&list))
        }
        // SYNCHRONIZE CACHE (16) (SBC-4 5.33) of everything
        Op::Flush => {
            let mut cdb = [0; 16];
            cdb[0] = 0x91;
            nothing_in(cdb, Buf::empty())
        }
        Op::Extents { .. } => panic!("a host of this simulator does not ask for extents"),
    }
}

/// What a response means for `op`.
pub(super) fn judge(op: &Op, completion: &Completion) -> Verdict {
    if completion.target_failure {
        return Verdict::Absurd("the target reports its own failure".to_owned());
    }
    match Status::from_code(completion.status) {
        Some(Status::Good) => Verdict::Ended(done(op, completion)),
        Some(Status::CheckCondition) => match Sense::parse(&completion.sense.to_vec()) {
            Some(sense) => of_sense(op, sense),
            None => Verdict::Absurd("CHECK CONDITION without sense data".to_owned()),
        },
        Some(Status::Busy | Status::TaskSetFull) => Verdict::Ended(Err(IoError::Busy)),
        Some(Status::ReservationConflict) => Verdict::Ended(Err(IoError::WriteProtected)),
        Some(Status::TaskAborted) => Verdict::Ended(Err(IoError::Aborted)),
        Some(Status::ConditionMet | Status::AcaActive) | None => {
            Verdict::Absurd(format!("status {:#04x}", completion.status))
        }
    }
}

fn done(op: &Op, completion: &Completion) -> IoResult {
    match op {
        Op::Read { .. } => Ok(Done::Data(completion.data_in.clone())),
        Op::Write { .. }
        | Op::WriteZeroes { .. }
        | Op::Discard { .. }
        | Op::CompareAndWrite { .. }
        | Op::Extents { .. }
        | Op::Flush => Ok(Done::Nothing),
    }
}

fn of_sense(op: &Op, sense: Sense) -> Verdict {
    let lba = Lba(sense.information.unwrap_or(0));
    let full = AdditionalSense {
        asc: 0x27,
        ascq: 0x07,
    };
    let error = match (sense.key, op) {
        (SenseKey::UnitAttention, _) => return Verdict::Again,
        (SenseKey::Miscompare, Op::CompareAndWrite { .. }) => match sense.information {
            Some(at) => IoError::Miscompare { at: ByteCount(at) },
            None => return Verdict::Absurd("a miscompare that does not say where".to_owned()),
        },
        (SenseKey::DataProtect, _) if sense.code == full => IoError::SpaceExhausted,
        (SenseKey::DataProtect, _) => IoError::WriteProtected,
        (SenseKey::MediumError | SenseKey::HardwareError, _) => IoError::MediumError { lba },
        (SenseKey::NotReady, _) => IoError::Unavailable,
        (SenseKey::AbortedCommand, _) => IoError::Aborted,
        (
            SenseKey::NoSense
            | SenseKey::RecoveredError
            | SenseKey::IllegalRequest
            | SenseKey::BlankCheck
            | SenseKey::VendorSpecific
            | SenseKey::CopyAborted
            | SenseKey::Reserved
            | SenseKey::VolumeOverflow
            | SenseKey::Miscompare
            | SenseKey::Completed,
            _,
        ) => return Verdict::Absurd(format!("{sense:?} for {op:?}")),
    };
    Verdict::Ended(Err(error))
}
