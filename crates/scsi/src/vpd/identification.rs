//! Designation descriptors: pages 83h and 88h.
//!
//! Spec: SPC-4 7.8.6 "Device Identification VPD page", 7.8.13 "SCSI Ports VPD page"; RFC 7143
//! 4.2.7.1 "iSCSI Name Properties" and 3.4.2 for the form of port names.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::bytes::Writer;
use crate::description::{TargetDescription, TargetPort, UnitDescription, VENDOR};

/// CODE SET.
const BINARY: u8 = 1;
const ASCII: u8 = 2;
const UTF_8: u8 = 3;
/// ASSOCIATION in place.
const LOGICAL_UNIT: u8 = 0x00;
const TARGET_PORT: u8 = 0x10;
const TARGET_DEVICE: u8 = 0x20;
/// PIV: PROTOCOL IDENTIFIER is valid.
const PIV: u8 = 0x80;
/// PROTOCOL IDENTIFIER 5h, iSCSI, in place.
const ISCSI: u8 = 0x50;
/// DESIGNATOR TYPE.
const T10_VENDOR: u8 = 1;
const NAA: u8 = 3;
const RELATIVE_PORT: u8 = 4;
const PORT_GROUP: u8 = 5;
const NAME_STRING: u8 = 8;

/// The target port's name: `iqn...,t,0x0001`.
#[must_use]
pub fn target_port_name(port: &TargetPort) -> String {
    format!("{},t,0x{:04x}", port.target_name, port.portal_group_tag)
}

/// The text, a terminator, and zeros up to a multiple of four.
pub(super) fn terminated(out: &mut Writer, text: &str) {
    let len = text.len().saturating_add(1).next_multiple_of(4);
    let end = out.len().saturating_add(len);
    out.bytes(text.as_bytes()).pad_to(end);
}

fn designator(out: &mut Writer, head: [u8; 2], body: impl FnOnce(&mut Writer)) {
    out.bytes(&head).u8(0).counted8(body);
}

fn unit_designators_into(out: &mut Writer, unit: &UnitDescription) {
    designator(out, [BINARY, LOGICAL_UNIT | NAA], |out| {
        out.bytes(&unit.naa);
    });
    designator(out, [ASCII, LOGICAL_UNIT | T10_VENDOR], |out| {
        out.ascii(VENDOR, 8).ascii(&unit.serial, unit.serial.len());
    });
}

/// The designation descriptors that name the unit itself: what an EXTENDED COPY target descriptor
/// may hold to mean it.
#[must_use]
pub fn unit_designators(unit: &UnitDescription) -> Vec<Vec<u8>> {
    let mut naa = Writer::new();
    naa.bytes(&unit.naa);
    let mut vendor = Writer::new();
    vendor
        .ascii(VENDOR, 8)
        .ascii(&unit.serial, unit.serial.len());
    [(BINARY, NAA, naa), (ASCII, T10_VENDOR, vendor)]
        .into_iter()
        .map(|(code_set, kind, body)| {
            let mut out = Writer::new();
            designator(&mut out, [code_set, LOGICAL_UNIT | kind], |out| {
                out.bytes(&body.finish());
            });
            out.finish()
        })
        .collect()
}

fn port_name(out: &mut Writer, port: &TargetPort) {
    let name = target_port_name(port);
    let head = [ISCSI | UTF_8, PIV | TARGET_PORT | NAME_STRING];
    designator(out, head, |out| terminated(out, &name));
}

pub(super) fn device_identification(
    out: &mut Writer,
    unit: &UnitDescription,
    target: &TargetDescription,
) {
    unit_designators_into(out, unit);
    let head = [ISCSI | BINARY, PIV | TARGET_PORT | RELATIVE_PORT];
    designator(out, head, |out| {
        out.be16(0).be16(target.port.relative_port);
    });
    let head = [ISCSI | BINARY, PIV | TARGET_PORT | PORT_GROUP];
    designator(out, head, |out| {
        out.be16(0).be16(target.port.target_port_group);
    });
    port_name(out, &target.port);
    let head = [ISCSI | UTF_8, PIV | TARGET_DEVICE | NAME_STRING];
    designator(out, head, |out| terminated(out, &target.name));
}

pub(super) fn scsi_ports(out: &mut Writer, target: &TargetDescription) {
    for port in &target.ports {
        out.be16(0).be16(port.relative_port).be16(0);
        // INITIATOR PORT TRANSPORTID LENGTH: target ports only.
        out.be16(0).be16(0);
        out.counted16(|out| port_name(out, port));
    }
}
