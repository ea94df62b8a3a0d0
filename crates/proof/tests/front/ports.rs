//! One unit behind several targets: the ports that its pages name are those that reservations know.

use crate::bench::{
    ALICE, BLOCK, BOB, Bench, OTHER, Setup, TARGET, TEST_UNIT_READY, exported, grant, host_object,
    run, sense, write_10,
};
use crate::host::{Host, config, lun};
use iscsi_target::ExportedTarget;
use scsi::SenseKey;

const HIDDEN: &str = "iqn.2026-11.io.causeway:hidden";
const KEY: u64 = 0xa11ce;

fn at_port(name: &str, relative_port: u16, who: &[&str]) -> ExportedTarget {
    let grants = who
        .iter()
        .map(|name| grant(&host_object(name, name, None), 0));
    ExportedTarget {
        relative_port,
        ..exported(name, grants.collect())
    }
}

/// Alice and Bob reach unit 0 through ports 1 and 7; port 9 is Bob's only.
async fn three_targets(bench: &Bench) {
    bench
        .publish(vec![
            at_port(TARGET, 1, &[ALICE, BOB]),
            at_port(OTHER, 7, &[ALICE, BOB]),
            at_port(HIDDEN, 9, &[BOB]),
        ])
        .await;
}

async fn login(bench: &Bench, initiator: &str, target: &str) -> Host {
    let host = bench.try_login(&config(initiator, Some(target))).await;
    let host = host.expect("the login is taken");
    host.settle(0).await;
    host
}

pub(crate) async fn reserve_out(host: &Host, action: u8, kind: u8, list: &[u8]) -> u8 {
    let length = u8::try_from(list.len()).expect("short");
    let cdb = [0x5f, action, kind, 0, 0, 0, 0, 0, length, 0];
    host.command(0, &cdb, list, 0).await.status
}

pub(crate) fn keys(key: u64, service: u64, flags: u8) -> Vec<u8> {
    let mut list = [key.to_be_bytes(), service.to_be_bytes()].concat();
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    list
}

/// Relative ports of PERSISTENT RESERVE IN, READ FULL STATUS, of registrations with [`KEY`].
async fn registered_at(host: &Host) -> Vec<u16> {
    let cdb = [0x5e, 3, 0, 0, 0, 0, 0, 4, 0, 0];
    let data = host.command(0, &cdb, &[], 1024).await.data_in.to_vec();
    let mut rest = &data[8..];
    let mut ports = Vec::new();
    while !rest.is_empty() {
        if rest[..8] == KEY.to_be_bytes() {
            ports.push(u16::from_be_bytes([rest[18], rest[19]]));
        }
        let more = u32::from_be_bytes([rest[20], rest[21], rest[22], rest[23]]);
        rest = &rest[24 + usize::try_from(more).expect("short")..];
    }
    ports.sort_unstable();
    ports
}

/// Relative ports of page 88h, and of REPORT TARGET PORT GROUPS.
async fn listed(host: &Host) -> (Vec<u16>, Vec<u16>) {
    let page = host.command(0, &[0x12, 1, 0x88, 4, 0, 0], &[], 1024).await;
    let page = page.data_in.to_vec();
    let mut rest = &page[4..];
    let mut ports = Vec::new();
    while !rest.is_empty() {
        ports.push(u16::from_be_bytes([rest[2], rest[3]]));
        let length = u16::from_be_bytes([rest[10], rest[11]]);
        rest = &rest[12 + usize::from(length)..];
    }
    let groups = [0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
    let groups = host.command(0, &groups, &[], 1024).await.data_in.to_vec();
    let in_group = groups[12..].chunks_exact(4);
    let in_group = in_group.map(|port| u16::from_be_bytes([port[2], port[3]]));
    (ports, in_group.collect())
}

#[test]
fn pages_name_every_port_that_this_initiator_may_use_and_no_other() {
    run(Setup::default(), |bench| async move {
        three_targets(&bench).await;
        for (who, ports) in [(ALICE, vec![1, 7]), (BOB, vec![1, 7, 9])] {
            for target in [TARGET, OTHER] {
                let host = login(&bench, who, target).await;
                assert_eq!(listed(&host).await, (ports.clone(), ports.clone()));
            }
        }
        // Another target is opened to Alice: her sessions learn of it.
        let alice = login(&bench, ALICE, TARGET).await;
        bench
            .publish(vec![
                at_port(TARGET, 1, &[ALICE, BOB]),
                at_port(OTHER, 7, &[ALICE, BOB]),
                at_port(HIDDEN, 9, &[ALICE, BOB]),
            ])
            .await;
        let reported = alice.command(0, &TEST_UNIT_READY, &[], 0).await;
        assert_eq!(sense(&reported), (SenseKey::UnitAttention, 0x3f, 0x03));
        assert_eq!(listed(&alice).await.0, [1, 7, 9]);
    });
}

// spec: SPC-4 5.13.7 "Registering".
#[test]
fn all_target_ports_registers_at_every_port_and_one_port_at_one() {
    run(Setup::default(), |bench| async move {
        three_targets(&bench).await;
        let here = login(&bench, ALICE, TARGET).await;
        let there = login(&bench, ALICE, OTHER).await;
        assert_eq!(reserve_out(&here, 0, 0, &keys(0, KEY, 0)).await, 0);
        assert_eq!(registered_at(&here).await, [1]);
        assert_eq!(reserve_out(&here, 6, 0, &keys(0, KEY, 4)).await, 0);
        assert_eq!(registered_at(&here).await, [1, 7]);
        // Write Exclusive, Registrants Only: the other port writes without having registered.
        assert_eq!(reserve_out(&here, 1, 5, &keys(KEY, 0, 0)).await, 0);
        let write = |host: &Host| host.command(0, &write_10(0, 1), &[1; BLOCK], 0);
        assert_eq!(write(&there).await.status, 0);
        let bob = login(&bench, BOB, HIDDEN).await;
        assert_eq!(write(&bob).await.status, 0x18);
        // And it ends everywhere at once.
        assert_eq!(reserve_out(&there, 0, 0, &keys(KEY, 0, 4)).await, 0);
        assert_eq!(registered_at(&here).await, [0_u16; 0]);
    });
}

/// The TransportID of an initiator port (SPC-4 7.6.4.6 "TransportIDs for initiator ports using SCSI
/// over iSCSI").
pub(crate) fn initiator_port(name: &str, isid: &str) -> Vec<u8> {
    let name = format!("{name},i,0x{isid}");
    let padded = (name.len() + 1).next_multiple_of(4);
    let mut id = vec![0x45, 0];
    id.extend(u16::try_from(padded).expect("short").to_be_bytes());
    id.extend(name.as_bytes());
    id.resize(4 + padded, 0);
    id
}

/// REGISTER AND MOVE to Bob's port, through the target port `to`.
fn moving(to: u16) -> Vec<u8> {
    let mut list = [KEY.to_be_bytes(), KEY.to_be_bytes()].concat();
    list.extend([0, 0]);
    list.extend(to.to_be_bytes());
    let id = initiator_port(BOB, "000000000000");
    list.extend(u32::try_from(id.len()).expect("short").to_be_bytes());
    list.extend(id);
    list
}

#[test]
fn a_reservation_moves_to_any_port_that_the_pages_name_and_to_no_other() {
    run(Setup::default(), |bench| async move {
        three_targets(&bench).await;
        let alice = login(&bench, ALICE, TARGET).await;
        assert_eq!(reserve_out(&alice, 0, 0, &keys(0, KEY, 0)).await, 0);
        assert_eq!(reserve_out(&alice, 1, 1, &keys(KEY, 0, 0)).await, 0);
        for hidden in [0, 2, 9, 0xffff] {
            assert_eq!(
                reserve_out(&alice, 7, 0, &moving(hidden)).await,
                2,
                "port {hidden}"
            );
        }
        assert_eq!(registered_at(&alice).await, [1]);
        assert_eq!(reserve_out(&alice, 7, 0, &moving(7)).await, 0);
        assert_eq!(registered_at(&alice).await, [1, 7]);
        let reset = alice.function(5, lun(0), None).await;
        assert_eq!(reset, Ok(0));
        alice.settle(0).await;
        let write = alice.command(0, &write_10(0, 1), &[1; BLOCK], 0).await;
        assert_eq!(write.status, 0x18, "the holder is Bob, at port 7");
    });
}
