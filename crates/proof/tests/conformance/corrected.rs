//! The excused tests, put right: each says what the original wanted to know, and asks for what the
//! standard promises.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "every other event is a failure of the test"
)]

use crate::common::client::{CHECK_CONDITION, Client, GOOD, ten};
use iscsi::initiator_side::InitiatorEvent;

/// Suite whose LUNs these tests use.
pub(crate) const SUITE: &str = "corrected";

const UNMAP: u8 = 0x08;
const WRITE_SAME_10: u8 = 0x41;

/// The target of a test.
fn target(name: &str) -> String {
    format!("{}:{name}", crate::common::daemon::IQN)
}

/// iSCSITMF.LUNResetSimpleAsync: a WRITE and a LOGICAL UNIT RESET leave together. The reset is
/// answered with "function complete"; the write is either answered before it or never; the session
/// lives.
pub(crate) fn a_reset_behind_a_write_is_answered_and_the_session_goes_on(portal: &str, name: &str) {
    let mut client = Client::open(portal, &target(name));
    let (_, block) = client.capacity();
    let old = vec![0x11; 8 * block];
    let new = vec![0x22; 8 * block];
    client.write(0, &old, block);
    let write = client.queue(&ten(0x2a, 0, 0, 8), &new, 0);
    let reset = client.queue_reset();
    client.send();
    let mut written = false;
    loop {
        match client.event() {
            InitiatorEvent::Response { itt, completion } => {
                assert_eq!((itt, completion.status), (write, GOOD));
                assert!(!written, "one answer for one write");
                written = true;
            }
            InitiatorEvent::TaskManagement { itt, response } => {
                assert_eq!((itt, response), (reset, 0), "function complete");
                break;
            }
            other => panic!("neither the write's end nor the reset's: {other:?}"),
        }
    }
    // What comes next would be the write's late answer, were there one.
    let attention = client.command(&[0x00; 6], &[], 0);
    assert_eq!(attention.status, CHECK_CONDITION);
    let sense = attention.sense.to_vec();
    assert_eq!(
        (sense[2] & 0x0f, sense[12]),
        (0x06, 0x29),
        "UNIT ATTENTION, reset occurred"
    );
    client.settle();
    let now = client.read(0, 8, block);
    assert!(
        now == new || (now == old && !written),
        "an answered write stays, any other is whole or not there"
    );
}

/// WriteSame10.UnmapUntilEnd: NUMBER OF BLOCKS zero means until the end of the medium. A block of
/// zeros with UNMAP reads back as zeros; any other block with UNMAP reads back as itself.
pub(crate) fn write_same_with_unmap_reads_as_what_was_sent_until_the_end(portal: &str, name: &str) {
    let mut client = Client::open(portal, &target(name));
    let (blocks, block) = client.capacity();
    for count in 1..=256u16 {
        let start = blocks - u32::from(count);
        let before = vec![0x5a; usize::from(count) * block];
        for fill in [0x00, 0xff] {
            client.write(start, &before, block);
            let number = if count % 2 == 0 { 0 } else { count };
            client.good(
                &ten(WRITE_SAME_10, UNMAP, start, number),
                &vec![fill; block],
                0,
            );
            let after = client.read(start, count, block);
            assert!(
                after.iter().all(|byte| *byte == fill),
                "{count} blocks of {fill:#x}"
            );
        }
    }
}

/// GetLBAStatus.UnmapSingle: physical blocks are unmapped one by one and in ranges from LBA 0 on;
/// what follows is still mapped, and the first descriptor begins at the LBA that was asked for.
pub(crate) fn the_first_lba_status_descriptor_begins_where_was_asked(portal: &str, name: &str) {
    const PHYSICAL: u32 = 8;
    let mut client = Client::open(portal, &target(name));
    let (_, block) = client.capacity();
    let data = vec![b'A'; (256 + PHYSICAL as usize) * block];
    client.write(0, &data, block);
    for at in (0..=256 - PHYSICAL).step_by(PHYSICAL as usize) {
        unmap(&mut client, at, PHYSICAL);
        assert_eq!(status(&mut client, at), (at, true));
        assert_eq!(status(&mut client, at + PHYSICAL), (at + PHYSICAL, false));
    }
    for count in (PHYSICAL..=256 - PHYSICAL).step_by(PHYSICAL as usize) {
        client.write(0, &data, block);
        unmap(&mut client, 0, count);
        assert_eq!(status(&mut client, 0), (0, true));
        for asked in count..count + PHYSICAL {
            assert_eq!(status(&mut client, asked), (asked, false));
        }
    }
}

fn unmap(client: &mut Client, lba: u32, blocks: u32) {
    let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
    list.extend(u64::from(lba).to_be_bytes());
    list.extend(blocks.to_be_bytes());
    list.extend([0; 4]);
    client.good(&ten(0x42, 0, 0, 24), &list, 0);
}

/// The first descriptor of GET LBA STATUS: where it begins, and whether it is unmapped.
fn status(client: &mut Client, lba: u32) -> (u32, bool) {
    let mut cdb = [0; 16];
    cdb[..2].copy_from_slice(&[0x9e, 0x12]);
    cdb[6..10].copy_from_slice(&lba.to_be_bytes());
    cdb[13] = 24;
    let data = client.good(&cdb, &[], 24);
    let start = u64::from_be_bytes(data[8..16].try_into().unwrap());
    (u32::try_from(start).unwrap(), data[20] & 0x0f != 0)
}
