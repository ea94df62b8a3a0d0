//! The uniform view: how many bytes a command moves, and which blocks it touches how.

use units::{BlockSize, ByteCount};

use super::{BlockRange, ByteCheck, Command};

/// What a command moves between initiator and logical unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transfer {
    /// Nothing.
    None,
    /// At most so many bytes of data-in.
    In(ByteCount),
    /// Exactly so many bytes of data-out.
    Out(ByteCount),
}

/// How a command touches its blocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes, or reads and writes.
    Write,
    /// Neither: caches and the like.
    Hint,
}

impl Command {
    /// The range of blocks that the CDB names, and how it is touched; `None` for commands without
    /// one in the CDB (UNMAP and EXTENDED COPY have theirs in the parameter list). For WRITE SAME,
    /// SYNCHRONIZE CACHE and PRE-FETCH zero blocks mean the rest of the medium: see
    /// [`Command::zero_means_rest`].
    #[must_use]
    pub const fn blocks(&self) -> Option<(BlockRange, Access)> {
        match self {
            Self::Read(range) | Self::Verify { range, .. } => Some((*range, Access::Read)),
            Self::Write(range)
            | Self::WriteAtomic { range, .. }
            | Self::WriteAndVerify { range, .. }
            | Self::OrWrite(range)
            | Self::CompareAndWrite(range) => Some((*range, Access::Write)),
            Self::WriteSame(same) => Some((same.range, Access::Write)),
            Self::SynchronizeCache { range, .. } | Self::PreFetch { range, .. } => {
                Some((*range, Access::Hint))
            }
            Self::TestUnitReady
            | Self::RequestSense { .. }
            | Self::Inquiry { .. }
            | Self::ReportLuns { .. }
            | Self::Unmap { .. }
            | Self::GetLbaStatus { .. }
            | Self::ReadCapacity10
            | Self::ReadCapacity16 { .. }
            | Self::ReadDefectData10(_)
            | Self::ReadDefectData12(_)
            | Self::ExtendedCopy { .. }
            | Self::ReceiveCopyResults { .. }
            | Self::ModeSense(_)
            | Self::ModeSelect(_)
            | Self::LogSense(_)
            | Self::ReportSupportedOperationCodes { .. }
            | Self::ReportSupportedTaskManagementFunctions { .. }
            | Self::ReportTargetPortGroups { .. }
            | Self::StartStopUnit(_)
            | Self::PreventAllowMediumRemoval { .. }
            | Self::ReceiveDiagnosticResults { .. }
            | Self::SendDiagnostic { .. }
            | Self::PersistentReserveIn { .. }
            | Self::PersistentReserveOut(_)
            | Self::Reserve
            | Self::Release => None,
        }
    }

    /// Zero blocks mean all blocks from the LBA to the end, not none.
    #[must_use]
    pub const fn zero_means_rest(&self) -> bool {
        matches!(
            self,
            Self::WriteSame(_) | Self::SynchronizeCache { .. } | Self::PreFetch { .. }
        )
    }

    /// What the command moves on a unit of this block size; `None` if the size does not fit 64
    /// bits.
    #[must_use]
    pub fn transfer(&self, block_size: BlockSize) -> Option<Transfer> {
        let one_block = Transfer::Out(ByteCount(block_size.bytes().into()));
        Some(match self {
            Self::Read(range) => Transfer::In(range.bytes(block_size)?),
            Self::Write(range)
            | Self::WriteAtomic { range, .. }
            | Self::WriteAndVerify { range, .. }
            | Self::OrWrite(range) => out(range.bytes(block_size)?.0),
            // At most 255 blocks, once to compare and once to write.
            Self::CompareAndWrite(range) => out(range.bytes(block_size)?.0.saturating_mul(2)),
            Self::Verify { range, check } => verify(*check, range.bytes(block_size)?, one_block),
            Self::WriteSame(same) if same.no_data_out => Transfer::None,
            Self::WriteSame(_) => one_block,
            Self::TestUnitReady
            | Self::SynchronizeCache { .. }
            | Self::PreFetch { .. }
            | Self::StartStopUnit(_)
            | Self::PreventAllowMediumRemoval { .. }
            | Self::Reserve
            | Self::Release => Transfer::None,
            Self::ReadCapacity10 => up_to(8u8),
            Self::RequestSense { .. }
            | Self::Inquiry { .. }
            | Self::ReceiveDiagnosticResults { .. }
            | Self::PersistentReserveIn { .. }
            | Self::ReportLuns { .. }
            | Self::GetLbaStatus { .. }
            | Self::ReadCapacity16 { .. }
            | Self::ReceiveCopyResults { .. }
            | Self::ReportSupportedOperationCodes { .. }
            | Self::ReportSupportedTaskManagementFunctions { .. }
            | Self::ReportTargetPortGroups { .. }
            | Self::ReadDefectData10(_)
            | Self::ReadDefectData12(_)
            | Self::ModeSense(_)
            | Self::LogSense(_) => up_to(self.allocation_length()),
            Self::Unmap { .. }
            | Self::SendDiagnostic { .. }
            | Self::ModeSelect(_)
            | Self::ExtendedCopy { .. }
            | Self::PersistentReserveOut(_) => out(self.parameter_list_length().into()),
        })
    }

    /// ALLOCATION LENGTH in bytes; zero for commands that have none.
    fn allocation_length(&self) -> u32 {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "transfer() lists every command and sends only these here"
        )]
        match self {
            Self::RequestSense {
                allocation_length: limit,
                ..
            } => u32::from(*limit),
            Self::Inquiry {
                allocation_length: limit,
                ..
            }
            | Self::ReceiveDiagnosticResults {
                allocation_length: limit,
                ..
            }
            | Self::PersistentReserveIn {
                allocation_length: limit,
                ..
            } => u32::from(*limit),
            Self::ReportLuns {
                allocation_length: limit,
                ..
            }
            | Self::GetLbaStatus {
                allocation_length: limit,
                ..
            }
            | Self::ReadCapacity16 {
                allocation_length: limit,
            }
            | Self::ReceiveCopyResults {
                allocation_length: limit,
                ..
            }
            | Self::ReportSupportedOperationCodes {
                allocation_length: limit,
                ..
            }
            | Self::ReportSupportedTaskManagementFunctions {
                allocation_length: limit,
                ..
            }
            | Self::ReportTargetPortGroups {
                allocation_length: limit,
                ..
            } => *limit,
            Self::ReadDefectData10(list) | Self::ReadDefectData12(list) => list.allocation_length,
            Self::ModeSense(sense) => sense.allocation_length.into(),
            Self::LogSense(sense) => sense.allocation_length.into(),
            _ => 0,
        }
    }

    /// PARAMETER LIST LENGTH in bytes; zero for commands that have none.
    #[must_use]
    pub fn parameter_list_length(&self) -> u32 {
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "transfer() lists every command and sends only these here"
        )]
        match self {
            Self::Unmap {
                parameter_list_length: length,
                ..
            }
            | Self::SendDiagnostic {
                parameter_list_length: length,
                ..
            } => (*length).into(),
            Self::ModeSelect(select) => select.parameter_list_length.into(),
            Self::ExtendedCopy {
                parameter_list_length,
            } => *parameter_list_length,
            Self::PersistentReserveOut(command) => command.parameter_list_length,
            _ => 0,
        }
    }

    /// Bytes of data-out that the command takes.
    #[must_use]
    pub fn data_out_bytes(&self, block_size: BlockSize) -> Option<ByteCount> {
        match self.transfer(block_size) {
            Some(Transfer::Out(bytes)) => Some(bytes),
            Some(Transfer::None | Transfer::In(_)) => Some(ByteCount(0)),
            None => None,
        }
    }

    /// The most bytes of data-in that the command gives.
    #[must_use]
    pub fn data_in_limit(&self, block_size: BlockSize) -> Option<ByteCount> {
        match self.transfer(block_size) {
            Some(Transfer::In(bytes)) => Some(bytes),
            Some(Transfer::None | Transfer::Out(_)) => Some(ByteCount(0)),
            None => None,
        }
    }
}

/// Verifying nothing takes nothing, not even the one block to compare with.
const fn verify(check: ByteCheck, bytes: ByteCount, one_block: Transfer) -> Transfer {
    match (check, bytes) {
        (ByteCheck::Skip, _) | (_, ByteCount(0)) => Transfer::None,
        (ByteCheck::Compare, bytes) => Transfer::Out(bytes),
        (ByteCheck::CompareOneBlock, _) => one_block,
    }
}

fn up_to(allocation_length: impl Into<u64>) -> Transfer {
    Transfer::In(ByteCount(allocation_length.into()))
}

const fn out(bytes: u64) -> Transfer {
    if bytes == 0 {
        Transfer::None
    } else {
        Transfer::Out(ByteCount(bytes))
    }
}
