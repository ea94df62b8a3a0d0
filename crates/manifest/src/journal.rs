//! What is known of a pool's journal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// How a journal is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum JournalState {
    /// It takes writes.
    Open,
    /// A write to it has failed, or damage was found in it: what was acknowledged can be read, and
    /// no change is taken until it is opened anew.
    Failed,
    /// It cannot be used, and the LUNs of its pool are offline.
    Missing,
}

impl JournalState {
    /// Every state, for metrics, which show each as a series.
    pub const ALL: [Self; 3] = [Self::Open, Self::Failed, Self::Missing];

    /// As files and labels write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}

impl fmt::Display for JournalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Acknowledged blocks whose data is damaged in a journal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct LostBlocks {
    /// The LUN; the journal's number of it, where no LUN has it any more: its blocks are counted as
    /// of 512 bytes then.
    pub lun: String,
    /// The first block.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
}

/// A LUN whose writes cannot be destaged now.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct DestageError {
    /// The LUN; the journal's number of it, where no LUN has it any more.
    pub lun: String,
    /// Why the backing volume does not take them.
    pub reason: String,
}

/// A pool's journal. Counts are of the time since it was opened.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct JournalFacts {
    /// Its file or device.
    pub path: String,
    /// Whether it is open; if not, why is in `problem`.
    pub state: JournalState,
    /// Why it cannot be used, or takes no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// It takes no change because its file or device had no space for one; it does again soon after
    /// there is some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
    /// Bytes of its rings.
    pub size_bytes: u64,
    /// Bytes of these that are in use.
    pub used_bytes: u64,
    /// Its rings: each is written by one core.
    pub rings: u32,
    /// Bytes of LUNs whose newest data is in the journal and not destaged.
    pub pending_bytes: u64,
    /// How long the oldest change has waited that is not destaged; of what was found at the start,
    /// since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_ms: Option<u64>,
    /// Bytes a second that were destaged, lately.
    pub destaged_bytes_per_second: u64,
    /// Batches that were written to it.
    pub batches: u64,
    /// Changes in them.
    pub changes: u64,
    /// Bytes that were written to it.
    pub written_bytes: u64,
    /// Bytes that were destaged.
    pub destaged_bytes: u64,
    /// Bytes that went to the backing volume past it.
    pub write_around_bytes: u64,
    /// Memory of its index, in bytes.
    pub index_bytes: u64,
    /// Memory of the histories of its LUNs, in bytes.
    #[serde(default)]
    pub history_bytes: u64,
    /// Changes that wait for it now ...
    #[serde(default)]
    pub waiting_changes: u64,
    /// ... and the bytes of their data.
    #[serde(default)]
    pub waiting_bytes: u64,
    /// Changes that were throttled, because as many waited as may.
    #[serde(default)]
    pub throttled: u64,
    /// Reads of it that did not give what was written there at first, and were repeated.
    #[serde(default)]
    pub misreads: u64,
    /// Batches that it held when it was opened.
    pub replayed_batches: u64,
    /// How long it took to open it, in milliseconds: what it held was read.
    #[serde(default)]
    pub replay_ms: u64,
    /// Acknowledged blocks that are damaged in it, the first places: reads fail until they are
    /// written again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostBlocks>,
    /// How many they are, by LUN.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lost_blocks: BTreeMap<String, u64>,
    /// LUNs whose writes cannot be destaged now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destage_errors: Vec<DestageError>,
}

impl JournalFacts {
    /// Of one that cannot be used.
    #[must_use]
    pub fn missing(path: String, problem: String) -> Self {
        Self {
            path,
            state: JournalState::Missing,
            problem: Some(problem),
            full: false,
            size_bytes: 0,
            used_bytes: 0,
            rings: 0,
            pending_bytes: 0,
            oldest_ms: None,
            destaged_bytes_per_second: 0,
            batches: 0,
            changes: 0,
            written_bytes: 0,
            destaged_bytes: 0,
            write_around_bytes: 0,
            index_bytes: 0,
            history_bytes: 0,
            waiting_changes: 0,
            waiting_bytes: 0,
            throttled: 0,
            misreads: 0,
            replayed_batches: 0,
            replay_ms: 0,
            lost: Vec::new(),
            lost_blocks: BTreeMap::new(),
            destage_errors: Vec::new(),
        }
    }

    /// The part of it that is in use, in thousandths.
    #[must_use]
    pub fn fill_permille(&self) -> u64 {
        let used = u128::from(self.used_bytes) * 1000;
        let fill = used.checked_div(u128::from(self.size_bytes)).unwrap_or(0);
        u64::try_from(fill).unwrap_or(1000)
    }

    /// What an administrator must know of it, one sentence each.
    #[must_use]
    pub fn problems(&self, pool: &str) -> Vec<String> {
        let path = &self.path;
        let mut all = Vec::new();
        if let Some(problem) = &self.problem {
            all.push(match self.state {
                JournalState::Failed if self.full => format!(
                    "the journal {path} of pool {pool} takes no change: {problem}; what was acknowledged can be read; \
                     make room where it lies: it is opened anew by itself then"
                ),
                JournalState::Failed => format!(
                    "the journal {path} of pool {pool} takes no change any more: {problem}; what was acknowledged can \
                     be read; check its device, then causeway journal reopen {pool}"
                ),
                JournalState::Open | JournalState::Missing => {
                    format!(
                        "the journal of pool {pool} cannot be used: {problem}; where it is lost for good: causeway journal \
                         discard {pool}"
                    )
                }
            });
        }
        for error in &self.destage_errors {
            all.push(format!(
                "what the journal {path} holds of LUN {} cannot be destaged: {}",
                error.lun, error.reason
            ));
        }
        if let Some(first) = self.lost.first() {
            let blocks: u64 = self.lost_blocks.values().sum();
            all.push(format!(
                "{blocks} acknowledged blocks are damaged in the journal {path}, the first at {} of LUN {}: reads of them \
                 fail until they are written again; causeway pool show {pool} lists them",
                first.lba, first.lun
            ));
        }
        all
    }
}

/// What to do about a journal.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum JournalOp {
    /// Open one that has failed or is missing, and bring its LUNs online.
    Reopen,
    /// Give up what it holds, and make a new one.
    Discard,
}

/// What is asked of a pool's journal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub struct JournalRequest {
    /// Whether it is opened anew, or given up.
    pub operation: JournalOp,
    /// The pool's name once more, where writes are given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<String>,
    /// Only report what would be lost.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a LUN loses at the most with its journal: some of it may be destaged already.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct JournalLoss {
    /// The LUN; the journal's number of it, where no LUN has it any more.
    pub lun: String,
    /// Changes in the journal; absent: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<u64>,
    /// Bytes of their blocks; absent: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What was done about a journal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct JournalOutcome {
    /// The pool whose journal it is.
    pub pool: String,
    /// It was done; `false` for a dry run, and where nothing had to be.
    pub changed: bool,
    /// What was given up, or would be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<JournalLoss>,
    /// Why not all of it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
    /// The journal as it is now, where the pool has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalFacts>,
}

/// What of a LUN is in its pool's journal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct LunJournal {
    /// The journal's file or device.
    pub path: String,
    /// Whether the journal is open, failed or missing.
    pub state: JournalState,
    /// Why the LUN's writes cannot be destaged, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destage_error: Option<String>,
    /// Bytes of the LUN whose newest data is in it and not destaged; absent: it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_bytes: Option<u64>,
    /// Acknowledged blocks of the LUN that are damaged in it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_blocks: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl LunJournal {
    /// What a journal's facts say of a LUN, and those of the LUN itself.
    #[must_use]
    pub fn of(facts: &JournalFacts, lun: &str, pending_bytes: Option<u64>) -> Self {
        let errors = &facts.destage_errors;
        let error = errors.iter().find(|error| error.lun == lun);
        Self {
            path: facts.path.clone(),
            state: facts.state,
            destage_error: error.map(|error| error.reason.clone()),
            pending_bytes,
            lost_blocks: facts.lost_blocks.get(lun).copied().unwrap_or(0),
        }
    }
}
