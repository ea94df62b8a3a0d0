//! EXTENDED COPY lists as initiators send them.

use super::*;
use crate::cdb::{CdbError, CopyResults};
use proptest::prelude::*;
use std::vec;
use units::{BlockCount, BlockSize, Lba};

fn target(kind: u8, flags: u8) -> Vec<u8> {
    let unit = crate::vpd::test_unit();
    let mut descriptor = vec![kind, flags, 0, 0, 1, 3, 0, 16];
    descriptor.extend(unit.naa);
    descriptor.extend([0, 0, 0, 0, 0, 0, 2, 0]);
    descriptor
}

fn segment(kind: u8, source: u16, destination: u16) -> Vec<u8> {
    let mut descriptor = vec![kind, 0, 0, 24];
    descriptor.extend(source.to_be_bytes());
    descriptor.extend(destination.to_be_bytes());
    descriptor.extend([0, 0, 8, 0]);
    descriptor.extend(7u64.to_be_bytes());
    descriptor.extend(9u64.to_be_bytes());
    descriptor
}

fn list(targets: &[Vec<u8>], segments: &[Vec<u8>]) -> Vec<u8> {
    let targets = targets.concat();
    let segments = segments.concat();
    let mut list = vec![1, 0];
    list.extend(u16::try_from(targets.len()).unwrap().to_be_bytes());
    list.extend([0; 4]);
    list.extend(u32::try_from(segments.len()).unwrap().to_be_bytes());
    list.extend([0; 4]);
    list.extend(targets);
    list.extend(segments);
    list
}

fn parse(list: &[u8]) -> Result<Option<ExtendedCopy>, Sense> {
    ExtendedCopy::parse(list, u32::try_from(list.len()).unwrap())
}

fn code(list: &[u8]) -> AdditionalSense {
    parse(list).unwrap_err().code
}

// spec: SPC-3 6.3 "EXTENDED COPY command".
#[test]
fn a_copy_within_one_unit_names_it_and_its_blocks() {
    let copy = parse(&list(&[target(0xe4, 0)], &[segment(2, 0, 0)]));
    let copy = copy.unwrap().unwrap();
    assert!(copy.targets[0].names(&crate::vpd::test_unit()));
    assert!(copy.remembered);
    assert_eq!(copy.targets[0].block_length, 512);
    let expected = Segment {
        source: 0,
        destination: 0,
        blocks: 2048,
        counts_destination: false,
        source_lba: Lba(7),
        destination_lba: Lba(9),
    };
    assert_eq!(copy.segments, [expected]);
    let sizes = expected.blocks(BlockSize::B512, BlockSize::B4096);
    assert_eq!(sizes, Some((BlockCount(2048), BlockCount(256))));
    let odd = Segment {
        blocks: 2047,
        ..expected
    };
    assert_eq!(odd.blocks(BlockSize::B512, BlockSize::B4096), None);
    let mut other = crate::vpd::test_unit();
    other.naa[15] ^= 1;
    assert!(!copy.targets[0].names(&other));
}

#[test]
fn every_truncation_is_a_length_error_and_an_empty_list_copies_nothing() {
    let whole = list(&[target(0xe4, 0)], &[segment(2, 0, 0)]);
    assert_eq!(parse(&[]), Ok(None));
    for len in 1..whole.len() {
        assert_eq!(
            parse(&whole[..len]),
            Err(Sense::parameter_list_length_error())
        );
    }
}

// spec: SPC-3 6.3 "EXTENDED COPY command".
#[test]
fn unknown_descriptors_and_too_many_of_them_have_their_codes() {
    let good = segment(2, 0, 0);
    let target_kind = list(&[target(0xe0, 0)], core::slice::from_ref(&good));
    let unsupported = AdditionalSense::UNSUPPORTED_TARGET_DESCRIPTOR_TYPE_CODE;
    assert_eq!(code(&target_kind), unsupported);
    let mut stream = segment(3, 0, 0);
    stream.truncate(8);
    let unsupported = AdditionalSense::UNSUPPORTED_SEGMENT_DESCRIPTOR_TYPE_CODE;
    assert_eq!(code(&list(&[target(0xe4, 0)], &[stream])), unsupported);
    let many = list(&vec![target(0xe4, 0); 9], core::slice::from_ref(&good));
    assert_eq!(code(&many), AdditionalSense::TOO_MANY_TARGET_DESCRIPTORS);
    let many = list(&[target(0xe4, 0)], &vec![good.clone(); 17]);
    assert_eq!(code(&many), AdditionalSense::TOO_MANY_SEGMENT_DESCRIPTORS);
    let both = list(&vec![target(0xe4, 0); 9], &vec![good; 17]);
    assert_eq!(code(&both), AdditionalSense::PARAMETER_LIST_LENGTH_ERROR);
}

#[test]
fn a_target_that_is_not_there_aborts_the_copy() {
    let missing = list(&[target(0xe4, 0)], &[segment(2, 0, 1)]);
    let sense = parse(&missing).unwrap_err();
    assert_eq!(sense, aborted(0, AdditionalSense::UNREACHABLE_COPY_TARGET));
    let null = list(&[target(0xe4, 0x20)], &[segment(2, 0, 0)]);
    assert_eq!(parse(&null).unwrap_err().key, SenseKey::CopyAborted);
    let tape = list(&[target(0xe4, 0x01)], &[segment(2, 0, 0)]);
    assert_eq!(
        code(&tape),
        AdditionalSense::INCORRECT_COPY_TARGET_DEVICE_TYPE
    );
}

#[test]
fn the_obsolete_kind_of_unit_identifier_is_not_inspected() {
    let segments = [segment(2, 0, 0)];
    let plain = parse(&list(&[target(0xe4, 0)], &segments));
    for lu_id_type in [0x40, 0x80, 0xc0] {
        assert_eq!(parse(&list(&[target(0xe4, lu_id_type)], &segments)), plain);
    }
    assert!(plain.is_ok());
}

#[test]
fn operating_parameters_have_the_golden_bytes() {
    let data = operating_parameters();
    assert_eq!(data.len(), 46);
    assert_eq!(
        data[..16],
        [0, 0, 0, 42, 0, 0, 0, 0, 0, 8, 0, 16, 0, 0, 2, 0xc0]
    );
    assert_eq!(data[36..38], [1, 9]);
    assert_eq!(data[43..], [2, 2, 0xe4]);
}

#[test]
fn results_are_known_for_copies_that_were_made() {
    let mut history = CopyHistory::new();
    let unknown = Err(CdbError::bytes(2));
    assert_eq!(history.receive(CopyResults::CopyStatus, 1), unknown);
    let outcome = CopyOutcome {
        segments: 1,
        bytes: 4096,
        failure: None,
    };
    history.record(1, outcome);
    let status = history.receive(CopyResults::CopyStatus, 1).unwrap();
    assert_eq!(status, [0, 0, 0, 8, 1, 0, 1, 0, 0, 0, 0x10, 0]);
    let none = history.receive(CopyResults::FailedSegmentDetails, 1);
    assert_eq!(none, Ok(vec![0; 4]));
    let failure = aborted(0, AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE);
    history.record(
        2,
        CopyOutcome {
            failure: Some(failure),
            ..outcome
        },
    );
    let details = history
        .receive(CopyResults::FailedSegmentDetails, 2)
        .unwrap();
    assert_eq!(details.len(), 78);
    assert_eq!(details[56..60], [2, 0, 0, 18]);
    assert_eq!(
        Sense::parse(&details[60..]),
        Some(Sense {
            command_specific: None,
            ..failure
        })
    );
    assert_eq!(
        history.receive(CopyResults::FailedSegmentDetails, 2),
        unknown
    );
}

proptest! {
    #[test]
    fn any_list_is_refused_or_its_segments_name_its_targets(
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
        shape in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if shape && bytes.len() >= 76 {
            bytes[2..16].copy_from_slice(&[0, 32, 0, 0, 0, 0, 0, 0, 0, 28, 0, 0, 0, 0]);
            bytes[16..18].copy_from_slice(&[0xe4, 0]);
            bytes[48..52].copy_from_slice(&[2, 0, 0, 24]);
        }
        if let Ok(Some(copy)) = parse(&bytes) {
            for segment in &copy.segments {
                prop_assert!(usize::from(segment.source.max(segment.destination)) < copy.targets.len());
            }
        }
    }
}
