//! Every code that our target can name has its own answer, and answers lead to an end.

use super::{Learn, PathSays, Repeat, Step, TABLE, Tries, of, of_sense};
use proptest::prelude::*;
use scsi::unit_attention::UnitAttention;
use scsi::{AdditionalSense, Sense, SenseKey, Status};
use std::collections::BTreeSet;
use std::time::Duration;

const KEYS: [SenseKey; 16] = {
    use SenseKey as K;
    [
        K::NoSense,
        K::RecoveredError,
        K::NotReady,
        K::MediumError,
        K::HardwareError,
        K::IllegalRequest,
        K::UnitAttention,
        K::DataProtect,
        K::BlankCheck,
        K::VendorSpecific,
        K::CopyAborted,
        K::AbortedCommand,
        K::Reserved,
        K::VolumeOverflow,
        K::Miscompare,
        K::Completed,
    ]
};

/// What an initiator has to do about each code that the target's crate knows, under the key that it
/// comes with. Written from the target's side: why it is sent decides what helps.
const SENT: &[(SenseKey, &[&str], Repeat, Learn)] = {
    use SenseKey as K;
    &[
        (K::NoSense, &["NONE"], Repeat::Done, Learn::Nothing),
        // The disk under the unit, or the pool, hangs or is gone: IoError::Unavailable, a missing
        // backing.
        (
            K::NotReady,
            &[
                "LOGICAL_UNIT_NOT_READY_CAUSE_NOT_REPORTABLE",
                "LOGICAL_UNIT_NOT_READY_MANUAL_INTERVENTION_REQUIRED",
            ],
            Repeat::Other,
            Learn::Nothing,
        ),
        (
            K::NotReady,
            &[
                "LOGICAL_UNIT_IS_IN_PROCESS_OF_BECOMING_READY",
                "LOGICAL_UNIT_NOT_READY_INITIALIZING_COMMAND_REQUIRED",
                "MEDIUM_NOT_PRESENT",
            ],
            Repeat::Poll,
            Learn::Readiness,
        ),
        (
            K::NotReady,
            &["LOGICAL_UNIT_NOT_ACCESSIBLE_ASYMMETRIC_ACCESS_STATE_TRANSITION"],
            Repeat::Park,
            Learn::AccessStates,
        ),
        (
            K::NotReady,
            &[
                "LOGICAL_UNIT_NOT_ACCESSIBLE_TARGET_PORT_IN_STANDBY_STATE",
                "LOGICAL_UNIT_NOT_ACCESSIBLE_TARGET_PORT_IN_UNAVAILABLE_STATE",
                "LOGICAL_UNIT_NOT_READY_OFFLINE",
            ],
            Repeat::Other,
            Learn::AccessStates,
        ),
        (
            K::MediumError,
            &["WRITE_ERROR", "UNRECOVERED_READ_ERROR"],
            Repeat::Fail,
            Learn::Nothing,
        ),
        (
            K::HardwareError,
            &["INTERNAL_TARGET_FAILURE", "LOGICAL_UNIT_FAILURE"],
            Repeat::OtherController,
            Learn::Nothing,
        ),
        (
            K::HardwareError,
            &["LOGICAL_UNIT_COMMUNICATION_FAILURE"],
            Repeat::Other,
            Learn::Nothing,
        ),
        (
            K::IllegalRequest,
            &[
                "PARAMETER_LIST_LENGTH_ERROR",
                "INVALID_COMMAND_OPERATION_CODE",
                "LOGICAL_BLOCK_ADDRESS_OUT_OF_RANGE",
                "INVALID_FIELD_IN_COMMAND_INFORMATION_UNIT",
                "INVALID_FIELD_IN_CDB",
                "INVALID_FIELD_IN_PARAMETER_LIST",
                "PARAMETER_NOT_SUPPORTED",
                "PARAMETER_VALUE_INVALID",
                "INVALID_RELEASE_OF_PERSISTENT_RESERVATION",
                "TOO_MANY_TARGET_DESCRIPTORS",
                "UNSUPPORTED_TARGET_DESCRIPTOR_TYPE_CODE",
                "TOO_MANY_SEGMENT_DESCRIPTORS",
                "UNSUPPORTED_SEGMENT_DESCRIPTOR_TYPE_CODE",
                "INLINE_DATA_LENGTH_EXCEEDED",
                "INVALID_OPERATION_FOR_COPY_SOURCE_OR_DESTINATION",
                "COMMAND_SEQUENCE_ERROR",
                "SAVING_PARAMETERS_NOT_SUPPORTED",
                "MEDIUM_REMOVAL_PREVENTED",
                "INSUFFICIENT_RESOURCES",
                "INSUFFICIENT_REGISTRATION_RESOURCES",
            ],
            Repeat::Fail,
            Learn::Nothing,
        ),
        (
            K::IllegalRequest,
            &["LOGICAL_UNIT_NOT_SUPPORTED"],
            Repeat::Other,
            Learn::Identity,
        ),
        (
            K::UnitAttention,
            &[
                "POWER_ON_RESET_OR_BUS_DEVICE_RESET_OCCURRED",
                "POWER_ON_OCCURRED",
                "SCSI_BUS_RESET_OCCURRED",
                "BUS_DEVICE_RESET_FUNCTION_OCCURRED",
                "DEVICE_INTERNAL_RESET",
                "I_T_NEXUS_LOSS_OCCURRED",
            ],
            Repeat::Same,
            Learn::Everything,
        ),
        (
            K::UnitAttention,
            &[
                "COMMANDS_CLEARED_BY_ANOTHER_INITIATOR",
                "RESERVATIONS_PREEMPTED",
                "RESERVATIONS_RELEASED",
                "REGISTRATIONS_PREEMPTED",
            ],
            Repeat::Same,
            Learn::Reservations,
        ),
        (
            K::UnitAttention,
            &["MODE_PARAMETERS_CHANGED"],
            Repeat::Same,
            Learn::ModePages,
        ),
        (
            K::UnitAttention,
            &[
                "LOG_PARAMETERS_CHANGED",
                "THIN_PROVISIONING_SOFT_THRESHOLD_REACHED",
            ],
            Repeat::Same,
            Learn::Nothing,
        ),
        (
            K::UnitAttention,
            &["ASYMMETRIC_ACCESS_STATE_CHANGED"],
            Repeat::Same,
            Learn::AccessStates,
        ),
        (
            K::UnitAttention,
            &[
                "CAPACITY_DATA_HAS_CHANGED",
                "TARGET_OPERATING_CONDITIONS_HAVE_CHANGED",
                "MICROCODE_HAS_BEEN_CHANGED",
                "INQUIRY_DATA_HAS_CHANGED",
                "REPORTED_LUNS_DATA_HAS_CHANGED",
            ],
            Repeat::Same,
            Learn::Identity,
        ),
        (
            K::DataProtect,
            &[
                "WRITE_PROTECTED",
                "HARDWARE_WRITE_PROTECTED",
                "LOGICAL_UNIT_SOFTWARE_WRITE_PROTECTED",
                "SPACE_ALLOCATION_FAILED_WRITE_PROTECT",
            ],
            Repeat::Fail,
            Learn::Nothing,
        ),
        (
            K::CopyAborted,
            &[
                "COPY_TARGET_DEVICE_NOT_REACHABLE",
                "INCORRECT_COPY_TARGET_DEVICE_TYPE",
                "COPY_TARGET_DEVICE_DATA_UNDERRUN",
                "COPY_TARGET_DEVICE_DATA_OVERRUN",
                "UNREACHABLE_COPY_TARGET",
            ],
            Repeat::Fail,
            Learn::Nothing,
        ),
        (
            K::AbortedCommand,
            &[
                "INSUFFICIENT_TIME_FOR_OPERATION",
                "COMMAND_TIMEOUT_BEFORE_PROCESSING",
                "COMMAND_TIMEOUT_DURING_PROCESSING",
            ],
            Repeat::BackOff,
            Learn::Nothing,
        ),
        (
            K::AbortedCommand,
            &[
                "WRITE_ERROR_UNEXPECTED_UNSOLICITED_DATA",
                "WRITE_ERROR_NOT_ENOUGH_UNSOLICITED_DATA",
                "DATA_PHASE_ERROR",
                "OVERLAPPED_COMMANDS_ATTEMPTED",
            ],
            Repeat::Same,
            Learn::Nothing,
        ),
        (
            K::AbortedCommand,
            &["LOGICAL_BLOCK_GUARD_CHECK_FAILED"],
            Repeat::Fail,
            Learn::Nothing,
        ),
        (
            K::Miscompare,
            &["MISCOMPARE_DURING_VERIFY_OPERATION"],
            Repeat::Fail,
            Learn::Nothing,
        ),
    ]
};

/// All codes that the target's crate has a name for.
fn named() -> Vec<(AdditionalSense, &'static str)> {
    let all = (0..=u16::MAX).map(|code| {
        let [asc, ascq] = code.to_be_bytes();
        AdditionalSense { asc, ascq }
    });
    all.filter_map(|code| code.name().map(|name| (code, name)))
        .collect()
}

#[test]
fn every_code_that_the_target_can_name_is_answered_as_its_cause_asks_for() {
    let mut covered = BTreeSet::new();
    for (key, names, repeat, learn) in SENT {
        for name in *names {
            let code = named().into_iter().find(|(_, it)| it == name);
            let (code, _) = code.unwrap_or_else(|| panic!("{name} is no code"));
            let row = of_sense(&Sense::new(*key, code));
            assert_eq!(
                (row.verdict.repeat, row.verdict.learn),
                (*repeat, *learn),
                "{key:?} {name}: {}",
                row.why
            );
            covered.insert(*name);
        }
    }
    let missing: Vec<&str> = named()
        .into_iter()
        .map(|(_, name)| name)
        .filter(|name| !covered.contains(name))
        .collect();
    assert_eq!(
        missing,
        Vec::<&str>::new(),
        "the target learnt codes that this table does not know"
    );
}

#[test]
fn every_unit_attention_has_a_row_of_its_own_and_is_repeated() {
    use UnitAttention as U;
    for attention in [
        U::PowerOn,
        U::HardReset,
        U::LogicalUnitReset,
        U::NexusLoss,
        U::CommandsCleared,
        U::ReservationsPreempted,
        U::RegistrationsPreempted,
        U::ReservationsReleased,
        U::ModeParametersChanged,
        U::CapacityChanged,
        U::AccessStateChanged,
        U::InquiryChanged,
        U::ReportedLunsChanged,
        U::SoftThresholdReached,
    ] {
        let row = of_sense(&attention.sense());
        assert!(row.asc.is_some(), "{attention:?} falls through");
        assert_eq!(row.verdict.repeat, Repeat::Same, "{attention:?}");
    }
}

#[test]
fn every_key_with_every_code_has_an_answer_and_the_last_row_of_a_key_takes_the_rest() {
    for key in KEYS {
        for code in 0..=u16::MAX {
            let [asc, ascq] = code.to_be_bytes();
            let row = of_sense(&Sense::new(key, AdditionalSense { asc, ascq }));
            assert_eq!(row.key, key);
            assert!(row.asc.is_none_or(|it| it == asc) && row.ascq.is_none_or(|it| it == ascq));
        }
        let last = TABLE.iter().rfind(|row| row.key == key).unwrap();
        assert_eq!(last.asc, None);
    }
    // No row hides a later one.
    for (at, row) in TABLE.iter().enumerate() {
        let hidden = TABLE[..at].iter().any(|before| {
            before.key == row.key
                && before.asc.is_none_or(|asc| Some(asc) == row.asc)
                && before.ascq.is_none_or(|ascq| Some(ascq) == row.ascq)
        });
        assert!(!hidden, "{row:?}");
    }
}

#[test]
fn what_another_path_cannot_help_is_never_sent_to_another_path() {
    // The kernel's blk_path_error() is false for the same kinds: not supported, no space, target,
    // reservation conflict, medium, protection.
    for (key, asc, ascq) in [
        (SenseKey::IllegalRequest, 0x20, 0x00),
        (SenseKey::DataProtect, 0x27, 0x07),
        (SenseKey::DataProtect, 0x27, 0x00),
        (SenseKey::MediumError, 0x11, 0x00),
        (SenseKey::AbortedCommand, 0x10, 0x01),
        (SenseKey::Miscompare, 0x1d, 0x00),
    ] {
        let sense = Sense::new(key, AdditionalSense { asc, ascq });
        assert_eq!(
            Tries::default().next(of(0x02, Some(&sense)).0, 0),
            Step::Fail
        );
    }
    let (conflict, _) = of(Status::ReservationConflict.code(), None);
    assert_eq!(
        (conflict.repeat, conflict.path),
        (Repeat::Fail, PathSays::Conflict)
    );
}

#[test]
fn a_deferred_error_is_reported_whatever_it_says() {
    for key in KEYS {
        let sense = Sense {
            deferred: true,
            ..Sense::new(key, AdditionalSense::NONE)
        };
        assert_eq!(of(0x02, Some(&sense)).0.repeat, Repeat::Fail);
    }
}

#[test]
fn a_full_queue_is_asked_again_three_times_with_growing_pauses_before_another_path_is() {
    let (busy, _) = of(Status::Busy.code(), None);
    let mut tries = Tries::default();
    let steps: Vec<Step> = (0..4).map(|_| tries.next(busy, 128)).collect();
    let waits: Vec<u128> = steps
        .iter()
        .map(|step| match step {
            Step::Same(wait) | Step::Other(wait) => wait.as_millis(),
            other @ (Step::Done
            | Step::Fail
            | Step::OtherController
            | Step::Park
            | Step::Uncertain) => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(waits, [8, 16, 32, 64]);
    // However long a unit moves, it is asked about four times a second.
    let Some(Step::Other(last)) = (0..20).map(|_| tries.next(busy, 128)).last() else {
        panic!("it waits");
    };
    assert_eq!(last.as_millis(), 250);
    assert!(matches!(
        steps.as_slice(),
        [Step::Same(_), Step::Same(_), Step::Same(_), Step::Other(_)]
    ));
}

#[test]
fn an_aborted_command_is_tried_twice_more_where_it_was_and_then_elsewhere() {
    let digest = Sense::new(
        SenseKey::AbortedCommand,
        AdditionalSense {
            asc: 0x47,
            ascq: 0x05,
        },
    );
    let (verdict, _) = of(0x02, Some(&digest));
    assert_eq!(verdict.path, PathSays::Error);
    let mut tries = Tries::default();
    let at_once = Duration::ZERO;
    let steps = [(); 3].map(|()| tries.next(verdict, 0));
    assert_eq!(
        steps,
        [
            Step::Same(at_once),
            Step::Same(at_once),
            Step::Other(at_once)
        ]
    );
}

proptest! {
    #[test]
    fn any_answer_over_and_over_ends_or_waits_longer_and_longer(status: u8, key in 0..16_u8, code: [u8; 2], random: u8) {
        let sense = Sense::new(SenseKey::from_nibble(key), AdditionalSense { asc: code[0], ascq: code[1] });
        let (verdict, why) = of(status, Some(&sense));
        prop_assert!(!why.is_empty());
        let mut tries = Tries::default();
        let mut waited = Duration::ZERO;
        if verdict.path == PathSays::NotServing {
            // The path is what waits.
            for _ in 0..100 {
                prop_assert_eq!(tries.next(verdict, random), Step::Other(Duration::ZERO));
            }
            return Ok(());
        }
        for _ in 0..100 {
            match tries.next(verdict, random) {
                Step::Done | Step::Fail | Step::Park | Step::Uncertain => return Ok(()),
                Step::OtherController => {}
                Step::Same(wait) | Step::Other(wait) => waited += wait,
            }
        }
        prop_assert!(waited > Duration::from_secs(10), "a hundred repetitions in {waited:?}");
    }
}
