//! `[health]` of `node.toml`: how the disks of the machine are watched.

use crate::toml_table::Table;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time between two questions, in minutes: a week.
const MINUTES_MAX: u64 = 10_080;

const MINUTES: u64 = 60;

/// What root's timer leaves for the daemon.
const REPORT: &str = "/run/causeway-disks/disks.json";

/// How the disks of the machine are watched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HealthSettings {
    /// How often smartctl is run for each disk; zero: never.
    pub every: Duration,
    /// Which one; `None`: that of the PATH.
    pub smartctl: Option<PathBuf>,
    /// What root has read, where the daemon itself may not.
    pub report: PathBuf,
}

impl Default for HealthSettings {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(MINUTES * 60),
            smartctl: None,
            report: REPORT.into(),
        }
    }
}

pub(super) fn read(top: &Table<'_, '_>, base: &Path) -> HealthSettings {
    let mut settings = HealthSettings::default();
    let Some(table) = top.table("health") else {
        return settings;
    };
    if let Some(minutes) = table.integer("every_minutes", 0, MINUTES_MAX) {
        settings.every = Duration::from_secs(minutes.value * 60);
    }
    let path = |key: &'static str| {
        let path = table.text(key)?;
        if path.value.is_empty() {
            table.wrong(key, "an empty path");
        }
        Some(base.join(path.value))
    };
    settings.smartctl = path("smartctl");
    if let Some(report) = path("report") {
        settings.report = report;
    }
    table.finish(&[]);
    settings
}
