//! Vital product data pages, all derived from the description of the unit and its target.
//!
//! Spec: SPC-4 7.8 "Vital product data parameters", SBC-3 6.5 "Vital product data (VPD)
//! parameters".

mod block;
mod identification;
#[cfg(test)]
mod test;

pub use identification::{target_port_name, unit_designators};

use alloc::vec::Vec;

use crate::bytes::{Writer, flag};
use crate::cdb::CdbError;
use crate::copy;
use crate::description::{ManagementService, TargetDescription, UnitDescription};
use crate::inquiry::Peripheral;

/// The pages that we have, ascending.
pub const PAGES: [u8; 11] = [
    0x00, 0x80, 0x83, 0x85, 0x86, 0x87, 0x88, 0x8f, 0xb0, 0xb1, 0xb2,
];

/// The vital product data page `page`, before it is cut to the allocation length.
///
/// # Errors
/// INVALID FIELD IN CDB (PAGE CODE) for a page that we do not have.
pub fn page(
    page: u8,
    peripheral: Peripheral,
    unit: &UnitDescription,
    target: &TargetDescription,
) -> Result<Vec<u8>, CdbError> {
    if !PAGES.contains(&page) {
        return Err(CdbError::bytes(2));
    }
    let mut out = Writer::new();
    out.u8(peripheral.code()).u8(page);
    out.counted16(|out| match page {
        0x00 => {
            out.bytes(&PAGES);
        }
        0x80 => {
            out.ascii(&unit.serial, unit.serial.len());
        }
        0x83 => identification::device_identification(out, unit, target),
        0x85 => management_network_addresses(out, target),
        0x86 => extended_inquiry(out, unit),
        0x87 => mode_page_policy(out),
        0x88 => identification::scsi_ports(out, target),
        0x8f => copy::vital_product_data(out),
        0xb0 => block::limits(out, unit),
        0xb1 => block::characteristics(out),
        _ => block::provisioning(out, unit),
    });
    Ok(out.finish())
}

/// A page of the REPORT LUNS well-known logical unit: only the list of pages.
///
/// # Errors
/// INVALID FIELD IN CDB (PAGE CODE) for every other page.
pub fn well_known_page(page: u8) -> Result<Vec<u8>, CdbError> {
    if page == 0 {
        Ok([Peripheral::WellKnown.code(), 0, 0, 1, 0].into())
    } else {
        Err(CdbError::bytes(2))
    }
}

/// SPC-4 7.8.8 "Management Network Addresses VPD page".
fn management_network_addresses(out: &mut Writer, target: &TargetDescription) {
    for (service, url) in &target.management {
        let service = match service {
            ManagementService::Unspecified => 0,
            ManagementService::StorageConfiguration => 1,
            ManagementService::Diagnostics => 2,
            ManagementService::Status => 3,
        };
        // ASSOCIATION 10b: the target device.
        out.u8(0x40 | service).u8(0);
        out.counted16(|out| identification::terminated(out, url));
    }
}

/// SPC-4 7.8.7 "Extended INQUIRY Data VPD page".
fn extended_inquiry(out: &mut Writer, unit: &UnitDescription) {
    out.u8(0);
    // HEADSUP, ORDSUP, SIMPSUP.
    out.u8(0x07);
    // V_SUP.
    out.u8(flag(unit.write_cache, 0));
    out.pad_to(64);
}

/// SPC-4 7.8.9 "Mode Page Policy VPD page": every page is shared by all nexuses.
fn mode_page_policy(out: &mut Writer) {
    out.u8(0x3f).u8(0xff).u8(0).u8(0);
}

/// The unit that tests of this crate describe.
#[cfg(test)]
pub(crate) fn test_unit() -> UnitDescription {
    test::unit()
}
