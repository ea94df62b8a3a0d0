//! Sense keys and additional sense codes by name (SPC-4 4.5.6 "Sense key and sense code
//! definitions").

use core::fmt;

/// What kind of condition is reported (SPC-4 4.5.6).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum SenseKey {
    /// Nothing to report.
    NoSense = 0x0,
    /// Succeeded after recovery.
    RecoveredError = 0x1,
    /// The logical unit cannot be accessed now.
    NotReady = 0x2,
    /// The medium failed.
    MediumError = 0x3,
    /// The device failed.
    HardwareError = 0x4,
    /// The command or its parameters are wrong.
    IllegalRequest = 0x5,
    /// Something happened that the initiator has to know.
    UnitAttention = 0x6,
    /// Reading or writing here is not permitted.
    DataProtect = 0x7,
    /// Blank or written medium where the other was expected.
    BlankCheck = 0x8,
    /// Vendor specific.
    VendorSpecific = 0x9,
    /// EXTENDED COPY was aborted.
    CopyAborted = 0xa,
    /// The device server aborted the command.
    AbortedCommand = 0xb,
    /// Reserved since SPC-4.
    Reserved = 0xc,
    /// Data remains in a buffer (streams only).
    VolumeOverflow = 0xd,
    /// Source and medium differ.
    Miscompare = 0xe,
    /// A command completed, and there is something to report.
    Completed = 0xf,
}

impl SenseKey {
    /// The key in the low four bits of `byte`.
    #[must_use]
    pub const fn from_nibble(byte: u8) -> Self {
        match byte & 0x0f {
            0x0 => Self::NoSense,
            0x1 => Self::RecoveredError,
            0x2 => Self::NotReady,
            0x3 => Self::MediumError,
            0x4 => Self::HardwareError,
            0x5 => Self::IllegalRequest,
            0x6 => Self::UnitAttention,
            0x7 => Self::DataProtect,
            0x8 => Self::BlankCheck,
            0x9 => Self::VendorSpecific,
            0xa => Self::CopyAborted,
            0xb => Self::AbortedCommand,
            0xc => Self::Reserved,
            0xd => Self::VolumeOverflow,
            0xe => Self::Miscompare,
            _ => Self::Completed,
        }
    }

    /// The key's number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// ADDITIONAL SENSE CODE and its QUALIFIER.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdditionalSense {
    /// ADDITIONAL SENSE CODE.
    pub asc: u8,
    /// ADDITIONAL SENSE CODE QUALIFIER.
    pub ascq: u8,
}

macro_rules! additional_sense {
    ($($name:ident = $asc:literal, $ascq:literal;)*) => {
        impl AdditionalSense {
            $(
                #[doc = concat!("`", stringify!($name), "`: ", stringify!($asc), ", ", stringify!($ascq), ".")]
                pub const $name: Self = Self { asc: $asc, ascq: $ascq };
            )*

            /// The standard's words with underscores, where this crate knows the code.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match (self.asc, self.ascq) {
                    $(($asc, $ascq) => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

additional_sense! {
    NONE = 0x00, 0x00;
    COMMANDS_CLEARED_BY_ANOTHER_INITIATOR = 0x2f, 0x00;
    LOGICAL_UNIT_NOT_READY_CAUSE_NOT_REPORTABLE = 0x04, 0x00;
    LOGICAL_UNIT_IS_IN_PROCESS_OF_BECOMING_READY = 0x04, 0x01;
    LOGICAL_UNIT_NOT_READY_INITIALIZING_COMMAND_REQUIRED = 0x04, 0x02;
    LOGICAL_UNIT_NOT_READY_MANUAL_INTERVENTION_REQUIRED = 0x04, 0x03;
    LOGICAL_UNIT_NOT_ACCESSIBLE_ASYMMETRIC_ACCESS_STATE_TRANSITION = 0x04, 0x0a;
    LOGICAL_UNIT_NOT_ACCESSIBLE_TARGET_PORT_IN_STANDBY_STATE = 0x04, 0x0b;
    LOGICAL_UNIT_NOT_ACCESSIBLE_TARGET_PORT_IN_UNAVAILABLE_STATE = 0x04, 0x0c;
    LOGICAL_UNIT_NOT_READY_OFFLINE = 0x04, 0x12;
    WRITE_ERROR = 0x0c, 0x00;
    WRITE_ERROR_UNEXPECTED_UNSOLICITED_DATA = 0x0c, 0x0c;
    WRITE_ERROR_NOT_ENOUGH_UNSOLICITED_DATA = 0x0c, 0x0d;
    COPY_TARGET_DEVICE_NOT_REACHABLE = 0x0d, 0x02;
    INCORRECT_COPY_TARGET_DEVICE_TYPE = 0x0d, 0x03;
    COPY_TARGET_DEVICE_DATA_UNDERRUN = 0x0d, 0x04;
    COPY_TARGET_DEVICE_DATA_OVERRUN = 0x0d, 0x05;
    UNRECOVERED_READ_ERROR = 0x11, 0x00;
    PARAMETER_LIST_LENGTH_ERROR = 0x1a, 0x00;
    MISCOMPARE_DURING_VERIFY_OPERATION = 0x1d, 0x00;
    INVALID_COMMAND_OPERATION_CODE = 0x20, 0x00;
    LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE = 0x21, 0x00;
    INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT = 0x0e, 0x03;
    INVALID_FIELD_IN_CDB = 0x24, 0x00;
    LOGICAL_UNIT_NOT_SUPPORTED = 0x25, 0x00;
    INVALID_FIELD_IN_PARAMETER_LIST = 0x26, 0x00;
    PARAMETER_NOT_SUPPORTED = 0x26, 0x01;
    PARAMETER_VALUE_INVALID = 0x26, 0x02;
    INVALID_RELEASE_OF_PERSISTENT_RESERVATION = 0x26, 0x04;
    TOO_MANY_TARGET_DESCRIPTORS = 0x26, 0x06;
    UNSUPPORTED_TARGET_DESCRIPTOR_TYPE_CODE = 0x26, 0x07;
    TOO_MANY_SEGMENT_DESCRIPTORS = 0x26, 0x08;
    UNSUPPORTED_SEGMENT_DESCRIPTOR_TYPE_CODE = 0x26, 0x09;
    INLINE_DATA_LENGTH_EXCEEDED = 0x26, 0x0b;
    INVALID_OPERATION_FOR_COPY_SOURCE_OR_DESTINATION = 0x26, 0x0c;
    WRITE_PROTECTED = 0x27, 0x00;
    HARDWARE_WRITE_PROTECTED = 0x27, 0x01;
    LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED = 0x27, 0x02;
    SPACE_ALLOCATION_FAILED_WRITE_PROTECT = 0x27, 0x07;
    POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED = 0x29, 0x00;
    POWER_ON_OCCURRED = 0x29, 0x01;
    SCSI_BUS_RESET_OCCURRED = 0x29, 0x02;
    BUS_DEVICE_RESET_FUNCTION_OCCURRED = 0x29, 0x03;
    DEVICE_INTERNAL_RESET = 0x29, 0x04;
    I_T_NEXUS_LOSS_OCCURRED = 0x29, 0x07;
    MODE_PARAMETERS_CHANGED = 0x2a, 0x01;
    LOG_PARAMETERS_CHANGED = 0x2a, 0x02;
    RESERVATIONS_PREEMPTED = 0x2a, 0x03;
    RESERVATIONS_RELEASED = 0x2a, 0x04;
    REGISTRATIONS_PREEMPTED = 0x2a, 0x05;
    ASYMMETRIC_ACCESS_STATE_CHANGED = 0x2a, 0x06;
    CAPACITY_DATA_HAS_CHANGED = 0x2a, 0x09;
    COMMAND_SEQUENCE_ERROR = 0x2c, 0x00;
    INSUFFICIENT_TIME_FOR_OPERATION = 0x2e, 0x00;
    COMMAND_TIMEOUT_BEFORE_PROCESSING = 0x2e, 0x01;
    COMMAND_TIMEOUT_DURING_PROCESSING = 0x2e, 0x02;
    THIN_PROVISIONING_SOFT_THRESHOLD_REACHED = 0x38, 0x07;
    SAVING_PARAMETERS_NOT_SUPPORTED = 0x39, 0x00;
    MEDIUM_NOT_PRESENT = 0x3a, 0x00;
    TARGET_OPERATING_CONDITIONS_HAVE_CHANGED = 0x3f, 0x00;
    MICROCODE_HAS_BEEN_CHANGED = 0x3f, 0x01;
    INQUIRY_DATA_HAS_CHANGED = 0x3f, 0x03;
    REPORTED_LUNS_DATA_HAS_CHANGED = 0x3f, 0x0e;
    LOGICAL_UNIT_COMMUNICATION_FAILURE = 0x08, 0x00;
    UNREACHABLE_COPY_TARGET = 0x08, 0x04;
    LOGICAL_UNIT_FAILURE = 0x3e, 0x01;
    INTERNAL_TARGET_FAILURE = 0x44, 0x00;
    DATA_PHASE_ERROR = 0x4b, 0x00;
    OVERLAPPED_COMMANDS_ATTEMPTED = 0x4e, 0x00;
    MEDIUM_REMOVAL_PREVENTED = 0x53, 0x02;
    INSUFFICIENT_RESOURCES = 0x55, 0x03;
    INSUFFICIENT_REGISTRATION_RESOURCES = 0x55, 0x04;
    LOGICAL_BLOCK_GUARD_CHECK_FAILED = 0x10, 0x01;
}

impl fmt::Debug for AdditionalSense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}h/{:02x}h", self.asc, self.ascq)?;
        match self.name() {
            Some(name) => write!(f, " {name}"),
            None => Ok(()),
        }
    }
}
