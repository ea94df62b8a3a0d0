//! The disks of the machine and the bays of its enclosures, as the API and `causeway disk` show
//! them. `device_health` says how each is; nothing here judges.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a disk is, in a word. Later ones are worse.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum DiskVerdict {
    /// Nothing is known of its health.
    #[default]
    Unknown,
    /// Nothing speaks against it.
    Well,
    /// Something is not as it should be; it works.
    Watch,
    /// Order another one now: it is worn out, or its faults grow.
    ReplaceSoon,
    /// It fails, by its own account or because it does not answer.
    Failing,
}

impl DiskVerdict {
    /// All of them, the best first.
    pub const ALL: [Self; 5] = [
        Self::Unknown,
        Self::Well,
        Self::Watch,
        Self::ReplaceSoon,
        Self::Failing,
    ];

    /// As documents and metrics write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Well => "well",
            Self::Watch => "watch",
            Self::ReplaceSoon => "replace_soon",
            Self::Failing => "failing",
        }
    }

    /// As sentences say it.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::ReplaceSoon => "to be replaced soon",
            Self::Watch => "to be watched",
            Self::Unknown | Self::Well | Self::Failing => self.name(),
        }
    }
}

/// Something that speaks against a disk or a bay.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DiskFinding {
    /// How bad that alone is.
    pub verdict: DiskVerdict,
    /// What was seen, with its figures.
    pub cause: String,
    /// The next step for the administrator.
    pub next_step: String,
}

/// Where a figure is heading, by the samples that were kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DiskForecast {
    /// The member of the facts that it is about.
    pub of: String,
    /// The whole in a sentence: figure, slope, and when to act.
    pub text: String,
    /// The day (`2027-02-10`) on which the figure comes to its limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// How much it changes in a week, in thousandths of its unit; less than 0: it falls.
    pub per_week_thousandths: i64,
    /// How many samples say so.
    pub samples: usize,
    /// From the first of them to the last.
    pub days: u64,
}

/// How a figure changes, by the samples that were kept.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DiskTrend {
    /// The member of the facts that it is about.
    pub of: String,
    /// How much it changes in a week, in thousandths of its unit, by least squares; less than 0: it
    /// falls; 0: it stays. Absent: there are too few samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_week_thousandths: Option<i64>,
    /// How many samples say so.
    pub samples: usize,
    /// From the first of them to the last.
    pub days: u64,
}

impl DiskFacts {
    /// The figures that the disk reports, as the command line calls them.
    #[must_use]
    pub fn named(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        let mut add = |name: &'static str, value: Option<u64>, unit: &str| {
            rows.extend(value.map(|value| (name, format!("{value}{unit}"))));
        };
        add("wear", self.wear_percent, " %");
        add("spare blocks", self.spare_percent, " %");
        add("their limit", self.spare_threshold_percent, " %");
        add("reallocated sectors", self.reallocated_sectors, "");
        add("pending sectors", self.pending_sectors, "");
        add(
            "offline uncorrectable",
            self.offline_uncorrectable_sectors,
            "",
        );
        add("uncorrected errors", self.uncorrected_errors, "");
        add("media errors", self.media_errors, "");
        add("grown defects", self.grown_defects, "");
        add("damaged transfers", self.crc_errors, "");
        add("logged errors", self.logged_errors, "");
        add("power-on hours", self.power_on_hours, "");
        add("power cycles", self.power_cycles, "");
        add("unsafe shutdowns", self.unsafe_shutdowns, "");
        let degrees = [
            ("temperature", self.temperature_celsius),
            ("too warm from", self.temperature_warning_celsius),
            ("damaged from", self.temperature_critical_celsius),
        ];
        let known = degrees.into_iter();
        rows.extend(known.filter_map(|(name, value)| Some((name, format!("{} °C", value?)))));
        rows.extend(self.self_test.clone().map(|it| ("last self-test", it)));
        rows
    }
}

impl DiskTrend {
    /// What changes in a week, such as `wear +0.25 % (12 samples, 84 days)`, where that is known.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let (called, unit) = match self.of.as_str() {
            "wear_percent" => ("wear", " %"),
            "spare_percent" => ("spare blocks", " %"),
            "temperature_celsius" => ("temperature", " °C"),
            "crc_errors" => ("damaged transfers", ""),
            "pending_sectors" => ("pending sectors", ""),
            "reallocated_sectors" => ("reallocated sectors", ""),
            "uncorrected_errors" => ("uncorrected errors", ""),
            "media_errors" => ("media errors", ""),
            "grown_defects" => ("grown defects", ""),
            other => (other, ""),
        };
        let change = self.per_week_thousandths?;
        let sign = if change < 0 { "-" } else { "+" };
        let size = change.unsigned_abs();
        let amount = match (size / 1000, size % 1000 / 10) {
            (0, 0) => "0".to_owned(),
            (whole, part) => format!("{sign}{whole}.{part:02}"),
        };
        let (samples, days) = (self.samples, self.days);
        Some(format!(
            "{called} {amount}{unit} ({samples} samples, {days} days)"
        ))
    }
}

/// Whether the health of a disk could be asked for.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum SmartState {
    /// Not asked yet.
    #[default]
    Waiting,
    /// It answered.
    Read,
    /// It sleeps and is not woken; what is shown is what it said last.
    Asleep,
    /// It has no SMART, or nothing on the route to it passes the question on: a virtual disk, a
    /// volume of a RAID controller, a USB bridge.
    Unsupported,
    /// This process may not ask it.
    NotPermitted,
    /// There is no smartctl on this machine.
    NoSmartctl,
    /// It did not answer in time.
    TimedOut,
    /// smartctl failed, or said what nobody understands.
    Failed,
    /// It is not there.
    Missing,
}

impl SmartState {
    /// As documents write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Read => "read",
            Self::Asleep => "asleep",
            Self::Unsupported => "unsupported",
            Self::NotPermitted => "not_permitted",
            Self::NoSmartctl => "no_smartctl",
            Self::TimedOut => "timed_out",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}

/// What stands on its label, and in its firmware.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DiskIdentity {
    /// Vendor and model in its own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// As it is printed on its label.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// The revision of its firmware.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub firmware: String,
    /// Its world-wide name, such as `naa.5000c500a1b2c3d4` or `eui.0025388b71b4f1a2`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub wwn: String,
    /// Its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// Revolutions a minute; 0: it has no platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_rpm: Option<u64>,
}

/// What a disk says of its health. A figure that it does not report is absent.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DiskFacts {
    /// `ATA`, `SCSI` or `NVMe`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub protocol: String,
    /// Its own judgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// How much of the writes that it was made for it has had; more than 100 is possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear_percent: Option<u64>,
    /// How many of its spare blocks are left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_percent: Option<u64>,
    /// Where its maker says that this is too few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare_threshold_percent: Option<u64>,
    /// Sectors that were replaced by spare ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reallocated_sectors: Option<u64>,
    /// Sectors that could not be read and wait for a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_sectors: Option<u64>,
    /// Sectors that its own scan could not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline_uncorrectable_sectors: Option<u64>,
    /// Errors of reads, writes and verifies that it could not correct (ATA attribute 187, the error
    /// counters of SCSI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncorrected_errors: Option<u64>,
    /// Media and data integrity errors (NVMe).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
    /// Entries of the grown defect list (SCSI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grown_defects: Option<u64>,
    /// Transfers that came over damaged: by cable, connector or backplane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crc_errors: Option<u64>,
    /// How warm it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_celsius: Option<i64>,
    /// From here on it is too warm to last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_warning_celsius: Option<i64>,
    /// From here on it protects itself, or is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_critical_celsius: Option<i64>,
    /// How long it has had power in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_on_hours: Option<u64>,
    /// How often it was switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power_cycles: Option<u64>,
    /// How often its power went without a word before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsafe_shutdowns: Option<u64>,
    /// The last self-test, in smartctl's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_test: Option<String>,
    /// Whether it passed; absent where it was cut off, or runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_test_passed: Option<bool>,
    /// The bits of the critical warning (NVMe): 1 spare, 2 temperature, 4 reliability, 8 read-only,
    /// 16 backup of the cache, 32 persistent memory region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub critical_warning: Option<u64>,
    /// Attributes that are below their threshold now (ATA).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing_attributes: Vec<String>,
    /// Attributes that were below it once (ATA).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_before: Vec<String>,
    /// Errors in its own log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged_errors: Option<u64>,
}

/// A disk of the machine, or one that was there.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DiskView {
    /// Its serial number as far as it fits into a path, else its world-wide name or its device's
    /// name.
    pub id: String,
    /// What the system calls it, such as `sda`; several where it is reached on several paths, none
    /// where it is not there.
    #[serde(default)]
    pub names: Vec<String>,
    /// Model, serial number, size.
    #[serde(flatten)]
    pub identity: DiskIdentity,
    /// The verdict of its worst finding.
    pub health: DiskVerdict,
    /// What speaks against it, the worst first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<DiskFinding>,
    /// Where its figures are heading.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forecasts: Vec<DiskForecast>,
    /// How each figure changes of which samples are kept, whether that has an end or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trends: Vec<DiskTrend>,
    /// Why there is no forecast, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_forecast: Option<String>,
    /// Whether it could be asked.
    pub smart: SmartState,
    /// Why not, and what helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smart_detail: Option<String>,
    /// When it answered last (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<String>,
    /// What it said.
    #[serde(default)]
    pub facts: DiskFacts,
    /// What lies on it: pools, journals, LUNs, the state directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    /// The bay that it is in, where an enclosure says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bay: Option<String>,
    /// When it was there last, where it is not there now (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<String>,
}

impl DiskView {
    /// It is known by this: its identifier, its serial number, or a name that the system has for it
    /// now.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let device = name.strip_prefix("/dev/").unwrap_or(name);
        self.id == name || self.identity.serial == name || self.names.iter().any(|it| it == device)
    }

    /// What people call it: `sda (Z4D0ABCD, bay 3)`.
    #[must_use]
    pub fn called(&self) -> String {
        let serial = &self.identity.serial;
        let mut inside: Vec<String> = Vec::new();
        let name = match self.names.first() {
            Some(name) if !serial.is_empty() => {
                inside.push(serial.clone());
                name.clone()
            }
            Some(name) => name.clone(),
            None => self.id.clone(),
        };
        inside.extend(self.bay.as_ref().map(|bay| format!("bay {bay}")));
        if inside.is_empty() {
            return name;
        }
        format!("{name} ({})", inside.join(", "))
    }
}

/// How a bay is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum BayState {
    /// Nothing is in it, and nothing was.
    #[default]
    Empty,
    /// It holds a disk that the system uses.
    Disk,
    /// It held a disk that is not there any more.
    Dark,
    /// It holds a disk that does not start: the enclosure or the system sees it, and no block
    /// device came of it.
    NoStart,
}

impl BayState {
    /// Each once, for the series of a metric.
    pub const ALL: [Self; 4] = [Self::Empty, Self::Disk, Self::Dark, Self::NoStart];

    /// As documents and metrics write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Disk => "disk",
            Self::Dark => "dark",
            Self::NoStart => "no_start",
        }
    }
}

/// What was in a bay.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BayHeld {
    /// Its serial number.
    pub serial: String,
    /// Vendor and model in its own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// When it was last seen there (RFC 3339).
    pub last_seen: String,
}

/// A bay of an enclosure.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BayView {
    /// Enclosure and slot, as disks name it: `3`, or `500304801f1e2a3f:3` where there are several
    /// enclosures.
    pub name: String,
    /// The enclosure's own identifier.
    pub enclosure: String,
    /// The slot's number, or its name where it has none.
    pub slot: String,
    /// Whether it holds a disk, or held one.
    pub state: BayState,
    /// What the enclosure says of it (SES), such as `OK` or `not installed`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// What is in it, by its identifier in `/disks`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// What was in it, where it holds no disk now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<BayHeld>,
    /// What is wrong with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<DiskFinding>,
}

impl BayView {
    /// What people call it, with the enclosure that it is in.
    #[must_use]
    pub fn called(&self) -> String {
        if self.enclosure.is_empty() {
            return format!("bay {}", self.name);
        }
        format!("bay {} of enclosure {}", self.slot, self.enclosure)
    }
}

/// All that is known of disks and bays at one moment.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DiskReport {
    /// When disks were asked last (RFC 3339); absent: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// By name; those that are not there come last.
    #[serde(default)]
    pub disks: Vec<DiskView>,
    /// By enclosure and slot.
    #[serde(default)]
    pub bays: Vec<BayView>,
    /// What keeps disks from being read, with what helps; one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Why no disk of the machine reports its health, where there is nothing to help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_smart: Option<String>,
}

/// How bad a finding is for whoever watches the node.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum DiskSeverity {
    /// To know.
    Info,
    /// To do something about soon.
    Warning,
    /// To do something about now.
    Critical,
}

/// A finding with what it is about, for alerts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiskAlert {
    /// How bad it is.
    pub severity: DiskSeverity,
    /// `disk ID` or `bay NAME`; it stays the same while the finding lasts.
    pub object: String,
    /// What was seen, with the name that people give that object.
    pub cause: String,
    /// What an administrator does about it.
    pub next_step: String,
}

impl DiskAlert {
    /// The whole in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{}: {}", self.cause, self.next_step)
    }
}

const fn severity(verdict: DiskVerdict) -> DiskSeverity {
    match verdict {
        DiskVerdict::Failing => DiskSeverity::Critical,
        DiskVerdict::ReplaceSoon => DiskSeverity::Warning,
        DiskVerdict::Watch | DiskVerdict::Well | DiskVerdict::Unknown => DiskSeverity::Info,
    }
}

impl DiskReport {
    /// The disk that is called so.
    #[must_use]
    pub fn disk(&self, name: &str) -> Option<&DiskView> {
        let by_id = self.disks.iter().find(|disk| disk.id == name);
        by_id.or_else(|| self.disks.iter().find(|disk| disk.is_called(name)))
    }

    /// The disks on which something of this name lies, such as `pool default`.
    pub fn below<'a>(&'a self, user: &'a str) -> impl Iterator<Item = &'a DiskView> {
        let lies = move |disk: &&DiskView| disk.used_by.iter().any(|it| it == user);
        self.disks.iter().filter(lies)
    }

    /// A bay is named for a disk that is gone, so that each fault is said once.
    fn is_named_by_bay(&self, disk: &DiskView) -> bool {
        let names = |bay: &BayView| {
            let held = bay.held.as_ref().map(|held| &held.serial);
            let is_there = disk.bay.as_ref() == Some(&bay.name) && held.is_some();
            bay.finding.is_some() && (is_there || held == Some(&disk.identity.serial))
        };
        disk.smart == SmartState::Missing && self.bays.iter().any(names)
    }

    /// What speaks against disks and bays, the worst first: of each object its worst finding.
    #[must_use]
    pub fn findings(&self) -> Vec<DiskAlert> {
        let of_disk = |disk: &DiskView| {
            let worst = disk
                .findings
                .first()
                .filter(|_| !self.is_named_by_bay(disk))?;
            Some(DiskAlert {
                severity: severity(worst.verdict),
                object: format!("disk {}", disk.id),
                cause: format!(
                    "disk {} is {}: {}",
                    disk.called(),
                    disk.health.words(),
                    worst.cause
                ),
                next_step: worst.next_step.clone(),
            })
        };
        let of_bay = |bay: &BayView| {
            let finding = bay.finding.as_ref()?;
            Some(DiskAlert {
                severity: severity(finding.verdict),
                object: format!("bay {}", bay.name),
                cause: finding.cause.clone(),
                next_step: finding.next_step.clone(),
            })
        };
        let disks = self.disks.iter().filter_map(of_disk);
        let mut all: Vec<DiskAlert> = disks.chain(self.bays.iter().filter_map(of_bay)).collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.severity));
        all
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn disk(id: &str, verdict: DiskVerdict) -> DiskView {
        DiskView {
            id: id.to_owned(),
            names: vec![format!("sd{id}")],
            health: verdict,
            findings: vec![DiskFinding {
                verdict,
                cause: "it is so".to_owned(),
                next_step: "do it".to_owned(),
            }],
            ..DiskView::default()
        }
    }

    #[test]
    fn what_changes_in_a_week_is_a_figure_with_its_sign_and_what_is_not_known_is_left_out() {
        let said = |of: &str, change: Option<i64>| {
            let trend = DiskTrend {
                of: of.to_owned(),
                per_week_thousandths: change,
                samples: 12,
                days: 84,
            };
            trend.words()
        };
        let text = |what: &str| Some(format!("{what} (12 samples, 84 days)"));
        assert_eq!(said("wear_percent", Some(254)), text("wear +0.25 %"));
        assert_eq!(
            said("spare_percent", Some(-2050)),
            text("spare blocks -2.05 %")
        );
        assert_eq!(
            said("temperature_celsius", Some(-4)),
            text("temperature 0 °C")
        );
        assert_eq!(
            said("crc_errors", Some(12_000)),
            text("damaged transfers +12.00")
        );
        assert_eq!(said("wear_percent", None), None);
    }

    #[test]
    fn the_worst_finding_of_each_object_comes_first() {
        let report = DiskReport {
            disks: vec![
                disk("a", DiskVerdict::Watch),
                disk("b", DiskVerdict::Failing),
                DiskView::default(),
            ],
            ..DiskReport::default()
        };
        let all = report.findings();
        let objects: Vec<&str> = all.iter().map(|it| it.object.as_str()).collect();
        assert_eq!(objects, ["disk b", "disk a"]);
        assert_eq!(all[0].severity, DiskSeverity::Critical);
        assert_eq!(
            all[0].sentence(),
            "disk sdb is failing: it is so: do it",
            "a disk without a serial number is called by its device's name"
        );
    }

    #[test]
    fn a_disk_is_found_by_each_of_its_names() {
        let mut one = disk("Z4D0", DiskVerdict::Well);
        one.identity.serial = "Z4D0".to_owned();
        one.names = vec!["sda".to_owned(), "sdq".to_owned()];
        one.bay = Some("3".to_owned());
        assert_eq!(one.called(), "sda (Z4D0, bay 3)");
        let report = DiskReport {
            disks: vec![one],
            ..DiskReport::default()
        };
        for name in ["Z4D0", "sda", "/dev/sdq"] {
            assert!(report.disk(name).is_some(), "{name}");
        }
        assert!(report.disk("sd").is_none());
    }
}
