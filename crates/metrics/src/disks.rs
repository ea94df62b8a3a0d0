//! What metrics report of disks and bays. Labels are identifiers of hardware in this machine.

use super::family::{Family, Text};
use manifest::disks::{BayState, DiskReport, DiskVerdict, DiskView};

/// Nothing where the disk does not report it.
type Value = fn(&DiskView) -> Option<u64>;

const fn gauge(name: &'static str, help: &'static str) -> Family<1> {
    Family::gauge(name, ["disk"], help)
}

pub(super) const INFO: Family<3> = Family::gauge(
    "causeway_disk_info",
    ["disk", "device", "model"],
    "1; the device's name is empty where the disk is missing",
);

pub(super) const HEALTH: Family<2> = Family::gauge(
    "causeway_disk_health",
    ["disk", "state"],
    "1 for the state that the disk is in, 0 for the others: `unknown`, `well`, `watch`, `replace_soon`, `failing`",
);

pub(super) const BAY: Family<3> = Family::gauge(
    "causeway_bay_state",
    ["enclosure", "bay", "state"],
    "1 for the state that the bay is in, 0 for the others: `empty`, `disk`, `dark`, `no_start`",
);

pub(super) const TEMPERATURE: Family<1> = gauge(
    "causeway_disk_temperature_celsius",
    "How warm the disk was when it was asked last",
);

pub(super) const FAMILIES: [(Family<1>, Value); 11] = [
    (
        gauge(
            "causeway_disk_wear_percent",
            "How much of the writes that the disk was made for is used",
        ),
        |it| it.facts.wear_percent,
    ),
    (
        gauge(
            "causeway_disk_spare_percent",
            "How many of the disk's spare blocks are left",
        ),
        |it| it.facts.spare_percent,
    ),
    (
        gauge(
            "causeway_disk_reallocated_sectors",
            "Sectors that were replaced by spare ones",
        ),
        |it| it.facts.reallocated_sectors,
    ),
    (
        gauge(
            "causeway_disk_pending_sectors",
            "Sectors that could not be read and wait for a write",
        ),
        |it| it.facts.pending_sectors,
    ),
    (
        gauge(
            "causeway_disk_offline_uncorrectable_sectors",
            "Sectors that the disk's own scan could not read",
        ),
        |it| it.facts.offline_uncorrectable_sectors,
    ),
    (
        Family::counter(
            "causeway_disk_uncorrected_errors_total",
            ["disk"],
            "Errors that the disk could not correct in its life (ATA, SCSI)",
        ),
        |it| it.facts.uncorrected_errors,
    ),
    (
        Family::counter(
            "causeway_disk_media_errors_total",
            ["disk"],
            "Media and data integrity errors in the disk's life (NVMe)",
        ),
        |it| it.facts.media_errors,
    ),
    (
        gauge(
            "causeway_disk_grown_defects",
            "Entries of the grown defect list (SCSI)",
        ),
        |it| it.facts.grown_defects,
    ),
    (
        Family::counter(
            "causeway_disk_crc_errors_total",
            ["disk"],
            "Transfers that came over damaged in the disk's life",
        ),
        |it| it.facts.crc_errors,
    ),
    (
        Family::counter(
            "causeway_disk_power_on_seconds_total",
            ["disk"],
            "How long the disk has had power in its life",
        ),
        |it| Some(it.facts.power_on_hours?.saturating_mul(3600)),
    ),
    (
        gauge(
            "causeway_disk_missing",
            "1 where a disk that was there is not there any more",
        ),
        |it| Some(u64::from(it.missing_since.is_some())),
    ),
];

pub(super) fn disks(out: &mut Text, report: &DiskReport) {
    out.family(&INFO);
    for disk in &report.disks {
        let device = disk.names.first().map_or("", String::as_str);
        out.series(&INFO, [&disk.id, device, &disk.identity.model], 1);
    }
    out.family(&HEALTH);
    for disk in &report.disks {
        for state in DiskVerdict::ALL {
            let is_so = u8::from(disk.health == state);
            out.series(&HEALTH, [&disk.id, state.name()], is_so);
        }
    }
    out.family(&TEMPERATURE);
    for disk in &report.disks {
        if let Some(celsius) = disk.facts.temperature_celsius {
            out.series(&TEMPERATURE, [&disk.id], celsius);
        }
    }
    for (family, value) in &FAMILIES {
        out.family(family);
        for disk in &report.disks {
            if let Some(value) = value(disk) {
                out.series(family, [&disk.id], value);
            }
        }
    }
    out.family(&BAY);
    for bay in &report.bays {
        for state in BayState::ALL {
            let is_so = u8::from(bay.state == state);
            out.series(&BAY, [&bay.enclosure, &bay.slot, state.name()], is_so);
        }
    }
}
