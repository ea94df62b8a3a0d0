//! Status codes (SAM-5 5.3.1 "Status codes").

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Status {
    /// The command did what it says.
    Good,
    /// Sense data says what happened.
    CheckCondition,
    /// The condition that the command asked for holds (PRE-FETCH).
    ConditionMet,
    /// Try again later.
    Busy,
    /// Another I_T nexus holds a reservation that excludes this command.
    ReservationConflict,
    /// The task set has no room.
    TaskSetFull,
    /// Auto contingent allegiance; never sent by us (NORMACA is zero).
    AcaActive,
    /// Another I_T nexus aborted this command and TAS is one.
    TaskAborted,
}

impl Status {
    /// The status byte.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Good => 0x00,
            Self::CheckCondition => 0x02,
            Self::ConditionMet => 0x04,
            Self::Busy => 0x08,
            Self::ReservationConflict => 0x18,
            Self::TaskSetFull => 0x28,
            Self::AcaActive => 0x30,
            Self::TaskAborted => 0x40,
        }
    }

    /// The status of a status byte; `None` for obsolete and reserved codes.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0x00 => Some(Self::Good),
            0x02 => Some(Self::CheckCondition),
            0x04 => Some(Self::ConditionMet),
            0x08 => Some(Self::Busy),
            0x18 => Some(Self::ReservationConflict),
            0x28 => Some(Self::TaskSetFull),
            0x30 => Some(Self::AcaActive),
            0x40 => Some(Self::TaskAborted),
            _ => None,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_status_byte_that_has_a_name_goes_round() {
        let named = (0..=u8::MAX).filter_map(|code| Status::from_code(code).map(|s| (code, s)));
        let mut count = 0;
        for (code, status) in named {
            assert_eq!(status.code(), code);
            count += 1;
        }
        assert_eq!(count, 8);
    }
}
