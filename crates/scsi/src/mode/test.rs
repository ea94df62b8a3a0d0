//! Mode pages against golden bytes, and MODE SELECT as the inverse of MODE SENSE.

use super::*;
use crate::cdb::ModeSelect;
use crate::sense::Sense;
use proptest::prelude::*;
use std::vec;

fn unit() -> ModeUnit {
    ModeUnit {
        block_size: BlockSize::B512,
        block_count: BlockCount(0x2000),
        read_only: false,
        write_cache_changeable: true,
        task_set_changeable: true,
        task_aborted_changeable: true,
        default: ModeParameters {
            write_cache_enabled: true,
            ..ModeParameters::default()
        },
    }
}

fn pages() -> ModePages {
    ModePages::from_saved(unit().default)
}

fn ask(form: ModeForm, page: u8, subpage: u8, page_control: PageControl) -> ModeSense {
    ModeSense {
        form,
        disable_block_descriptors: true,
        long_lba_accepted: false,
        page_control,
        page,
        subpage,
        allocation_length: 255,
    }
}

fn six(page: u8, control: PageControl) -> Vec<u8> {
    pages()
        .sense(&ask(ModeForm::Six, page, 0, control), &unit())
        .unwrap()
}

fn select(list: &[u8], save_pages: bool) -> Result<ModePages, Sense> {
    let request = ModeSelect {
        form: ModeForm::Six,
        page_format: true,
        save_pages,
        parameter_list_length: u16::try_from(list.len()).unwrap(),
    };
    pages().select(&request, list, &unit())
}

// spec: SBC-3 6.5.5 "Caching mode page".
#[test]
fn the_caching_page_has_the_golden_bytes() {
    let mut expected = vec![23, 0, 0x10, 0, 0x88, 0x12, 0x04];
    expected.resize(24, 0);
    assert_eq!(six(0x08, PageControl::Current), expected);
    assert_eq!(six(0x08, PageControl::Changeable), expected);
}

// spec: SPC-4 7.5.8 "Control mode page".
#[test]
fn the_control_page_has_the_golden_bytes() {
    let current = [
        15, 0, 0x10, 0, 0x8a, 10, 2, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0,
    ];
    assert_eq!(six(0x0a, PageControl::Current), current);
    let changeable = [
        15, 0, 0x10, 0, 0x8a, 10, 0x24, 0, 0x08, 0x40, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(six(0x0a, PageControl::Changeable), changeable);
}

// spec: SPC-4 6.13 "MODE SENSE (6) command".
#[test]
fn all_pages_come_in_ascending_order_with_a_block_descriptor() {
    let request = ModeSense {
        disable_block_descriptors: false,
        ..ask(ModeForm::Six, 0x3f, 0xff, PageControl::Current)
    };
    let data = pages().sense(&request, &unit()).unwrap();
    assert_eq!(usize::from(data[0]), data.len() - 1);
    assert_eq!(data[3..12], [8, 0, 0, 0x20, 0, 0, 0, 2, 0]);
    let mut rest = &data[12..];
    let mut codes = Vec::new();
    while !rest.is_empty() {
        let subpage = rest[0] & 0x40 != 0;
        let (sub, len) = if subpage {
            (rest[1], 4 + usize::from(rest[3]))
        } else {
            (0, 2 + usize::from(rest[1]))
        };
        codes.push((rest[0] & 0x3f, sub));
        rest = &rest[len..];
    }
    assert_eq!(
        codes,
        [(1, 0), (2, 0), (8, 0), (10, 0), (10, 1), (26, 0), (28, 0)]
    );
}

#[test]
fn a_long_block_descriptor_is_sent_where_it_is_accepted() {
    let request = ModeSense {
        disable_block_descriptors: false,
        long_lba_accepted: true,
        ..ask(ModeForm::Ten, 0x08, 0, PageControl::Current)
    };
    let data = pages().sense(&request, &unit()).unwrap();
    let expected = [
        0, 42, 0, 0x10, 1, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 2, 0,
    ];
    assert_eq!(data[..24], expected);
}

// spec: SPC-4 7.5.7 "Mode page and subpage formats and page codes".
#[test]
fn unknown_pages_and_subpages_point_at_their_field() {
    let refused = |page, subpage| {
        pages()
            .sense(
                &ask(ModeForm::Six, page, subpage, PageControl::Current),
                &unit(),
            )
            .unwrap_err()
    };
    assert_eq!(refused(0x05, 0), CdbError::field(2, 5));
    assert_eq!(refused(0x08, 3), CdbError::bytes(3));
    assert_eq!(refused(0x3f, 3), CdbError::bytes(3));
}

#[test]
fn write_protection_shows_in_the_header() {
    let mut pages = pages();
    pages.current.software_write_protect = true;
    let request = ask(ModeForm::Six, 0x0a, 0, PageControl::Current);
    assert_eq!(pages.sense(&request, &unit()).unwrap()[2], 0x90);
    let read_only = ModeUnit {
        read_only: true,
        ..unit()
    };
    assert_eq!(
        super::test::pages().sense(&request, &read_only).unwrap()[2],
        0x90
    );
}

#[test]
fn swp_and_d_sense_are_set_by_sending_the_page_back() {
    let mut list = six(0x0a, PageControl::Current);
    list[0] = 0;
    list[4 + 4] |= 0x08;
    list[4 + 2] |= 0x04;
    let changed = select(&list, false).unwrap();
    assert!(changed.current.software_write_protect);
    assert!(changed.current.descriptor_sense);
    assert_eq!(changed.saved, pages().saved);
    assert_eq!(select(&list, true).unwrap().saved, changed.current);
}

// spec: SPC-4 6.11 "MODE SELECT (6) command".
#[test]
fn a_bit_that_is_not_changeable_is_refused_with_a_pointer() {
    let mut list = six(0x0a, PageControl::Current);
    list[4 + 3] = 0x00;
    assert_eq!(
        select(&list, false),
        Err(Sense::invalid_field_in_parameter_list(7, Some(4)))
    );
    let mut list = six(0x0a, PageControl::Current);
    list[4 + 2] = 0x42;
    assert_eq!(
        select(&list, false),
        Err(Sense::invalid_field_in_parameter_list(6, Some(6)))
    );
}

#[test]
fn every_truncation_of_a_list_is_a_length_error() {
    let list = six(0x08, PageControl::Current);
    for len in 1..list.len() {
        let result = select(&list[..len], false);
        if len == 4 {
            assert_eq!(result, Ok(pages()));
        } else {
            assert_eq!(result, Err(Sense::parameter_list_length_error()), "{len}");
        }
    }
    assert_eq!(select(&[], false), Ok(pages()));
}

#[test]
fn a_block_descriptor_may_only_say_what_is_so() {
    let with = |count: u32, length: u32| {
        let mut list = vec![0, 0, 0, 8];
        list.extend(count.to_be_bytes());
        list.extend(length.to_be_bytes());
        select(&list, false)
    };
    assert_eq!(with(0, 0), Ok(pages()));
    assert_eq!(with(0x2000, 512), Ok(pages()));
    assert_eq!(
        with(1, 512),
        Err(Sense::invalid_field_in_parameter_list(4, None))
    );
    assert_eq!(
        with(0, 4096),
        Err(Sense::invalid_field_in_parameter_list(9, None))
    );
}

fn any_parameters() -> impl Strategy<Value = ModeParameters> {
    any::<[bool; 5]>().prop_map(|[wce, d_sense, swp, tst, tas]| ModeParameters {
        write_cache_enabled: wce,
        descriptor_sense: d_sense,
        software_write_protect: swp,
        task_set_type: if tst {
            TaskSetType::PerNexus
        } else {
            TaskSetType::Shared
        },
        task_aborted_status: tas,
    })
}

proptest! {
    #[test]
    fn stored_parameters_go_round_and_damage_is_noticed(
        values in any_parameters(), at in 0usize..4, bit in 0u8..8,
    ) {
        let mut bytes = values.to_bytes();
        prop_assert_eq!(ModeParameters::from_bytes(&bytes), Some(values));
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(ModeParameters::from_bytes(&bytes), None);
    }

    #[test]
    fn a_record_of_the_time_when_tas_was_zero_by_default_has_it_one_now(values in any_parameters()) {
        let mut bytes = values.to_bytes();
        bytes[0] = 1;
        let now = ModeParameters { task_aborted_status: true, ..values };
        prop_assert_eq!(ModeParameters::from_bytes(&bytes), Some(now));
    }

    #[test]
    fn selecting_what_another_unit_senses_gives_its_values(values in any_parameters()) {
        let other = ModePages::from_saved(values);
        let request = ask(ModeForm::Six, 0x3f, 0xff, PageControl::Current);
        let list = other.sense(&request, &unit()).unwrap();
        prop_assert_eq!(select(&list, true), Ok(other));
    }

    // spec: SPC-4 6.11 "MODE SELECT (6) command".
    #[test]
    fn any_list_is_refused_or_changes_only_changeable_bits(
        list in proptest::collection::vec(any::<u8>(), 0..80),
        form in prop_oneof![Just(ModeForm::Six), Just(ModeForm::Ten)],
    ) {
        let request = ModeSelect {
            form,
            page_format: true,
            save_pages: false,
            parameter_list_length: u16::try_from(list.len()).unwrap(),
        };
        if let Ok(after) = pages().select(&request, &list, &unit()) {
            prop_assert_eq!(after.saved, pages().saved);
        }
    }
}
