//! What real disks said, and what is made of it.

use super::*;
use manifest::disks::{DiskVerdict, SmartState};

/// Name, model, verdict, and the beginning of the first cause.
const DISKS: [(&str, &str, DiskVerdict, &str); 19] = {
    use DiskVerdict::{Failing, ReplaceSoon, Watch, Well};
    [
        ("ata-hdd-hgst-hc550", "WUH721818ALE6L4", Well, ""),
        (
            "ata-hdd-hitachi-failing",
            "Hitachi HDS721050DLE630",
            Failing,
            "below its maker's threshold: Reallocated_Sector_Ct",
        ),
        (
            "ata-hdd-seagate-reallocated",
            "ST3500418AS",
            ReplaceSoon,
            "304 reallocated sectors",
        ),
        ("ata-hdd-toshiba-error-log", "TOSHIBA MG05ACA800E", Well, ""),
        (
            "ata-hdd-wd-hot",
            "WDC WD140EDFZ-11A0VA0",
            ReplaceSoon,
            "10 sectors that it cannot read",
        ),
        // Three million damaged transfers, once: a cable that was changed.
        ("ata-hdd-wd-re4-crc", "WDC WD2003FYYS-02W0B1", Well, ""),
        (
            "ata-ssd-intel-s3500-worn",
            "INTEL SSDSC2BB016T4",
            Watch,
            "85 % of the writes that it was made for are used",
        ),
        ("ata-ssd-intel-s4500", "INTEL SSDSC2KB240G7", Well, ""),
        ("ata-ssd-micron-5300", "Micron_5300_MTFDDAK960TDS", Well, ""),
        (
            "ata-ssd-samsung-pm893",
            "SAMSUNG MZ7L3240HCHQ-00A07",
            Well,
            "",
        ),
        ("ata-ssd-transcend", "TS32GMTS400", Well, ""),
        ("nvme-crucial-p2", "CT250P2SSD8", Well, ""),
        ("nvme-intel-p4510-worn", "INTEL SSDPE2KX020T7", Well, ""),
        ("nvme-micron-7450", "Micron_7450_MTFDKCC3T2TFS", Well, ""),
        (
            "nvme-samsung-backup-failed",
            "SAMSUNG MZWLL3T2HAJQ-00005",
            Failing,
            "the backup of its volatile memory has failed",
        ),
        (
            "nvme-samsung-media-errors",
            "Samsung SSD 970 EVO 500GB",
            Watch,
            "7 media or data integrity errors",
        ),
        ("scsi-hitachi-sas", "HITACHI H109060SESUN600G", Well, ""),
        (
            "scsi-seagate-defects",
            "SEAGATE ST4000NM0043",
            Watch,
            "56 defects",
        ),
        (
            "scsi-seagate-uncorrected",
            "SEAGATE ST373453LC",
            ReplaceSoon,
            "536 errors that it could not correct",
        ),
    ]
};

#[test]
fn each_recorded_disk_is_judged_as_its_figures_say() {
    let all = recorded();
    assert_eq!(
        all.len(),
        DISKS.len() + 1,
        "each has a row, and one has no SMART"
    );
    for (name, model, verdict, cause) in DISKS {
        let disk = view(&all[name]);
        assert_eq!(disk.identity.model, model, "{name}");
        assert_eq!(disk.smart, SmartState::Read, "{name}");
        assert_eq!(disk.health, verdict, "{name}: {:?}", disk.findings);
        let first = disk.findings.first().map_or("", |it| it.cause.as_str());
        assert!(first.starts_with(cause), "{name}: {first}");
        assert_eq!(first.is_empty(), cause.is_empty(), "{name}: {first}");
        assert!(
            disk.facts.power_on_hours.is_some() || name == "scsi-seagate-defects",
            "{name}"
        );
        assert!(disk.identity.capacity_bytes.is_some(), "{name}");
    }
}

/// Figures as the documents have them; the right side was read in the files by eye.
#[test]
fn figures_are_those_of_the_documents() {
    let all = recorded();
    let facts = |name: &str| reading(&all[name]).facts;
    let intel = facts("ata-ssd-intel-s4500");
    assert_eq!(intel.wear_percent, Some(45), "Media_Wearout_Indicator 55");
    assert_eq!(intel.spare_percent, Some(99));
    assert_eq!(intel.spare_threshold_percent, Some(10));
    assert_eq!(intel.reallocated_sectors, Some(4));
    assert_eq!(intel.power_on_hours, Some(49_466));
    // Percent_Lifetime_Remain: value 99, and a raw value that counts what is used.
    assert_eq!(facts("ata-ssd-micron-5300").wear_percent, Some(1));
    // Remaining_Lifetime_Perc: value 100, raw value 96.
    assert_eq!(facts("ata-ssd-transcend").wear_percent, Some(4));
    assert_eq!(facts("ata-ssd-samsung-pm893").wear_percent, Some(2));
    let nvme = facts("nvme-intel-p4510-worn");
    assert_eq!(
        (nvme.wear_percent, nvme.spare_percent),
        (Some(75), Some(99))
    );
    assert_eq!(nvme.temperature_celsius, Some(19));
    assert_eq!(
        facts("nvme-samsung-backup-failed").critical_warning,
        Some(16)
    );
    let scsi = facts("scsi-seagate-uncorrected");
    assert_eq!(
        (scsi.grown_defects, scsi.uncorrected_errors),
        (Some(260), Some(536))
    );
    assert_eq!(scsi.temperature_critical_celsius, Some(68));
    assert_eq!(facts("scsi-hitachi-sas").power_on_hours, Some(982));
    let failing = facts("ata-hdd-hitachi-failing");
    assert_eq!(failing.passed, Some(false));
    assert_eq!(failing.failing_attributes, ["Reallocated_Sector_Ct"]);
    assert_eq!(
        (failing.pending_sectors, failing.logged_errors),
        (Some(8), Some(56))
    );
    assert_eq!(
        failing.self_test.as_deref(),
        Some("Short offline: Completed without error")
    );
    assert_eq!(failing.self_test_passed, Some(true));
    assert_eq!(facts("ata-hdd-wd-re4-crc").crc_errors, Some(3_118_119));
}

#[test]
fn names_are_those_that_the_system_has_for_the_same_disk() {
    let all = recorded();
    // By hand: NAA 5, OUI 3274 = 000ccah, 15028879784 = 37fc9f1a8h with nine digits.
    let wwn = reading(&all["ata-hdd-hitachi-failing"]).identity.wwn;
    assert_eq!(wwn, format!("naa.5{:06x}{:09x}", 3274, 15_028_879_784_u64));
    assert_eq!(wwn.len(), "naa.".len() + 16);
    let sas = reading(&all["scsi-hitachi-sas"]).identity;
    assert_eq!(sas.wwn, "naa.1234567890abcdef");
    assert_eq!(sas.rotation_rpm, Some(10_020));
    let nvme = reading(&all["nvme-crucial-p2"]).identity;
    assert_eq!(
        nvme.wwn,
        format!("eui.{:06x}{:010x}", 41_077, 391_110_459_468_u64)
    );
    assert_eq!(nvme.capacity_bytes, Some(250_059_350_016));
}

#[test]
fn a_volume_of_a_raid_controller_has_no_health_of_its_own() {
    let disk = view(&recorded()["scsi-raid-volume"]);
    assert_eq!(disk.smart, SmartState::Unsupported);
    assert_eq!(disk.health, DiskVerdict::Unknown);
    assert!(disk.smart_detail.unwrap().contains("RAID"));
}
