//! Golden pages of one unit.

use super::*;
use crate::capacity::{read_capacity_10, read_capacity_16};
use crate::description::{Provisioning, TargetPort, UnitLimits};
use crate::inquiry::standard;
use std::borrow::ToOwned;
use std::string::String;
use std::vec;
use units::{BlockCount, BlockSize};

pub(super) fn unit() -> UnitDescription {
    UnitDescription {
        revision: "0.1".to_owned(),
        serial: "0123456789abcdef".to_owned(),
        naa: [0x60, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        block_size: BlockSize::B512,
        physical_block_exponent: 3,
        lowest_aligned_lba: 0,
        block_count: BlockCount(0x1_0000_0001),
        limits: UnitLimits {
            transfer_blocks_max: 0x8000,
            unmap_blocks_max: u32::MAX,
            unmap_descriptors_max: 256,
            unmap_granularity: 8,
            unmap_alignment: Some(0),
            write_same_blocks_max: 0x10_0000,
            compare_and_write_blocks_max: 255,
            ..UnitLimits::default()
        },
        provisioning: Provisioning {
            thin: true,
            reads_zero: true,
            unmap: true,
            write_same_16: true,
            write_same_10: true,
            anchor: false,
            threshold_exponent: 0,
        },
        read_only: false,
        write_cache: true,
    }
}

fn target() -> TargetDescription {
    let port = |relative_port| TargetPort {
        target_name: "iqn.2026-11.io.causeway:t1".to_owned(),
        relative_port,
        portal_group_tag: relative_port,
        target_port_group: 0,
    };
    TargetDescription {
        name: "iqn.2026-11.io.causeway:t1".to_owned(),
        port: port(2),
        ports: vec![port(1), port(2)],
        management: vec![(
            ManagementService::StorageConfiguration,
            "http://127.0.0.1:8480".to_owned(),
        )],
    }
}

fn get(code: u8) -> Vec<u8> {
    page(code, Peripheral::Disk, &unit(), &target()).unwrap()
}

#[test]
fn every_listed_page_exists_and_counts_itself_and_no_other_page_does() {
    for code in 0..=255u8 {
        let page = page(code, Peripheral::Disk, &unit(), &target());
        if !PAGES.contains(&code) {
            assert_eq!(page, Err(CdbError::bytes(2)));
            continue;
        }
        let page = page.unwrap();
        assert_eq!(page[1], code);
        let length = usize::from(u16::from_be_bytes([page[2], page[3]]));
        assert_eq!(length, page.len() - 4, "page {code:02x}");
    }
    assert_eq!(get(0x00)[4..], PAGES);
}

#[test]
fn standard_inquiry_has_the_golden_bytes() {
    let data = standard(Peripheral::Disk, &unit());
    assert_eq!(data.len(), 96);
    assert_eq!(data[..8], [0, 0, 6, 0x12, 91, 0x18, 0x10, 0x02]);
    assert_eq!(&data[8..36], b"CAUSEWAYBLOCK VOLUME    0.1 ");
    assert_eq!(data[58..66], [0, 0xa0, 9, 0x60, 4, 0x60, 4, 0xc0]);
    assert_eq!(standard(Peripheral::Nothing, &unit())[0], 0x7f);
}

// spec: SPC-4 7.8.6.6.6 "NAA IEEE Registered Extended designator format".
#[test]
fn device_identification_names_unit_port_and_target() {
    let page = get(0x83);
    let mut rest = &page[4..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let len = usize::from(rest[3]);
        found.push((rest[0], rest[1], rest[4..4 + len].to_vec()));
        rest = &rest[4 + len..];
    }
    let kinds: Vec<_> = found.iter().map(|(a, b, _)| (*a, *b)).collect();
    let expected = [
        (0x01, 0x03),
        (0x02, 0x01),
        (0x51, 0x94),
        (0x51, 0x95),
        (0x53, 0x98),
        (0x53, 0xa8),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(found[0].2, unit().naa);
    assert_eq!(found[1].2, b"CAUSEWAY0123456789abcdef");
    assert_eq!(found[2].2, [0, 0, 0, 2]);
    let name = String::from_utf8(found[4].2.clone()).unwrap();
    assert_eq!(name, "iqn.2026-11.io.causeway:t1,t,0x0002\0");
    assert_eq!(found[5].2.len() % 4, 0);
    let own: Vec<u8> = unit_designators(&unit()).concat();
    assert_eq!(page[4..4 + own.len()], own);
}

#[test]
fn scsi_ports_lists_every_port() {
    let page = get(0x88);
    let first = &page[4..];
    assert_eq!(first[..10], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    let len = usize::from(u16::from_be_bytes([first[10], first[11]]));
    let second = &first[12 + len..];
    assert_eq!(second[..4], [0, 0, 0, 2]);
}

#[test]
fn block_limits_have_the_golden_bytes() {
    let page = get(0xb0);
    assert_eq!(page.len(), 64);
    assert_eq!(page[4..8], [0, 255, 0, 0]);
    assert_eq!(page[8..12], [0, 0, 0x80, 0]);
    assert_eq!(
        page[20..36],
        [
            0xff, 0xff, 0xff, 0xff, 0, 0, 1, 0, 0, 0, 0, 8, 0x80, 0, 0, 0
        ]
    );
    assert_eq!(page[36..44], [0, 0, 0, 0, 0, 0x10, 0, 0]);
    assert_eq!(page[44..], [0; 20]);
}

#[test]
fn provisioning_and_capacity_agree() {
    assert_eq!(get(0xb2), [0, 0xb2, 0, 4, 0, 0xe4, 2, 0]);
    let capacity = read_capacity_16(&unit());
    assert_eq!(capacity.len(), 32);
    assert_eq!(
        capacity[..16],
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0xc0, 0]
    );
    assert_eq!(
        read_capacity_10(&unit()),
        [0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]
    );
    let small = UnitDescription {
        block_count: BlockCount(16),
        ..unit()
    };
    assert_eq!(read_capacity_10(&small), [0, 0, 0, 15, 0, 0, 2, 0]);
}

#[test]
fn management_addresses_and_extended_inquiry_have_the_golden_bytes() {
    let page = get(0x85);
    assert_eq!(page[4..8], [0x41, 0, 0, 24]);
    assert_eq!(&page[8..32], b"http://127.0.0.1:8480\0\0\0");
    let page = get(0x86);
    assert_eq!(page.len(), 64);
    assert_eq!(page[4..8], [0, 7, 1, 0]);
    assert_eq!(get(0x87)[4..], [0x3f, 0xff, 0, 0]);
    assert_eq!(get(0xb1)[4..6], [0, 1]);
    assert_eq!(get(0xb1).len(), 64);
}

#[test]
fn third_party_copy_lists_the_commands_of_the_table_in_whole_words() {
    let page = get(0x8f);
    let commands = [0, 1, 0, 12, 9, 0x83, 1, 0, 0x84, 4, 0, 1, 3, 4, 0, 0];
    assert_eq!(page[4..20], commands);
    let mut rest = &page[4..];
    let mut kinds = Vec::new();
    while !rest.is_empty() {
        let len = usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        assert_eq!(len % 4, 0);
        kinds.push(u16::from_be_bytes([rest[0], rest[1]]));
        rest = &rest[4 + len..];
    }
    assert_eq!(kinds, [0x0001, 0x0004, 0x0008, 0x8001]);
}
