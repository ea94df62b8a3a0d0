//! `[history]` of `node.toml`: how much is kept of what the node did.

use crate::toml_table::Table;

/// Less than this is no history of anything.
const BYTES_MIN: u64 = 16 << 20;

/// More than this takes minutes to be checked after a crash.
const BYTES_MAX: u64 = 64 << 30;

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HistorySettings {
    /// The most bytes of its file.
    pub max_bytes: u64,
}

impl Default for HistorySettings {
    /// A year of about 100 LUNs that are busy in every second.
    fn default() -> Self {
        Self { max_bytes: 1 << 30 }
    }
}

pub(super) fn read(top: &Table<'_, '_>) -> HistorySettings {
    let mut settings = HistorySettings::default();
    let Some(table) = top.table("history") else {
        return settings;
    };
    if let Some(size) = table.size("max_bytes") {
        let bytes = size.value.bytes();
        if (BYTES_MIN..=BYTES_MAX).contains(&bytes) {
            settings.max_bytes = bytes;
        } else {
            let [least, most] = [BYTES_MIN, BYTES_MAX].map(crate::size::rounded);
            let size = size.value.rounded();
            table.wrong("max_bytes", format!("{size} is outside {least} to {most}"));
        }
    }
    table.finish(&[]);
    settings
}
