//! What is known of a LUN's scrub, and what may be asked of it.

use crate::code::Code;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a request asks of a scrub.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum ScrubOp {
    /// Begin, or go on where it was stopped; nothing, where it runs.
    Start,
    /// Stop, and keep how far it is.
    Stop,
}

/// How a scrub is.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum ScrubState {
    /// It reads.
    Running,
    /// Somebody stopped it, or its LUN went out of service.
    Stopped,
    /// It could not go on.
    GivenUp,
    /// It has read everything.
    Finished,
}

/// What is wrong with blocks.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Damage {
    /// The medium cannot read them.
    Unreadable,
    /// They are not what was written.
    Mismatch,
}

/// Blocks that a scrub found to be bad.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct BadBlocks {
    /// The first one.
    pub lba: u64,
    /// How many.
    pub blocks: u64,
    /// What is wrong with them.
    pub damage: Damage,
}

impl fmt::Display for BadBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.damage {
            Damage::Unreadable => "cannot be read",
            Damage::Mismatch => "not what was written",
        };
        match self.blocks {
            1 => write!(f, "block {}: {what}", self.lba),
            blocks => write!(f, "{blocks} blocks from {}: {what}", self.lba),
        }
    }
}

/// What a scrub has found in the journal of the LUN's pool, which it reads first.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct JournalScrub {
    /// Batches that were not destaged, and were read.
    pub batches: u64,
    /// Changes in them that are right.
    pub changes: u64,
    /// Changes in them whose data is not what was written.
    pub damaged_changes: u64,
    /// Copies of its superblock that are damaged, of two.
    pub damaged_superblocks: u64,
    /// Checkpoints that are damaged, of two for each ring.
    #[serde(default)]
    pub damaged_checkpoints: u64,
    /// Acknowledged blocks of the LUN that are damaged in it.
    #[serde(default)]
    pub lost_blocks: u64,
    /// Why it could not be read, where it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl JournalScrub {
    /// What an administrator must know of it.
    fn problem(&self) -> Option<String> {
        if let Some(problem) = &self.problem {
            return Some(format!("its pool's journal could not be read: {problem}"));
        }
        let counted = [
            (self.damaged_changes, "damaged changes"),
            (self.lost_blocks, "lost blocks of this LUN"),
            (self.damaged_superblocks, "damaged superblocks"),
            (self.damaged_checkpoints, "damaged checkpoints"),
        ];
        let found = counted.iter().filter(|(count, _)| *count > 0);
        let found: Vec<String> = found
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let costs = if self.damaged_changes + self.lost_blocks > 0 {
            "; reads of those blocks fail until they are written again"
        } else {
            ""
        };
        (!found.is_empty()).then(|| {
            let found = found.join(", ");
            format!("its pool's journal has {found}: check its device{costs}")
        })
    }

    /// All that is damaged in it.
    #[must_use]
    pub const fn damage(&self) -> u64 {
        let copies = self.damaged_superblocks + self.damaged_checkpoints;
        self.damaged_changes + self.lost_blocks + copies
    }
}

/// A LUN's scrub: the one that runs, or the last one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ScrubFacts {
    /// Whether it runs, was stopped, was given up or has finished.
    pub state: ScrubState,
    /// Why it was given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When it began (RFC 3339).
    pub started: String,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// When a scrub that has read all of the LUN ended last: this one, or one before it. Absent:
    /// none ever did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// Bytes that it has read.
    pub done_bytes: u64,
    /// Bytes of the LUN.
    pub total_bytes: u64,
    /// Bytes a second, lately; 0 where it does not run.
    pub bytes_per_second: u64,
    /// Time left at this rate, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_left: Option<u64>,
    /// Hosts work, and it gives way.
    pub yields: bool,
    /// Blocks that cannot be read.
    pub unreadable_blocks: u64,
    /// Blocks that are not what was written.
    pub mismatched_blocks: u64,
    /// Pages of the map of checksums that were damaged.
    pub map_pages: u64,
    /// What scrubs before this one have found, in all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub found_before: u64,
    /// What it found in the journal of the LUN's pool, where that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalScrub>,
    /// What is wrong with other metadata that it read: the changed-block map, members' superblocks,
    /// stored objects and state. A sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metadata: Vec<String>,
    /// When the next one begins by itself (RFC 3339), where node.toml has a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Where the blocks are: the first 128 places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<BadBlocks>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl ScrubFacts {
    /// Of one that has done nothing yet.
    #[must_use]
    pub fn begun(started: String, total_bytes: u64) -> Self {
        Self {
            state: ScrubState::Running,
            reason: None,
            started,
            ended: None,
            verified: None,
            done_bytes: 0,
            total_bytes,
            bytes_per_second: 0,
            seconds_left: None,
            yields: true,
            unreadable_blocks: 0,
            mismatched_blocks: 0,
            map_pages: 0,
            found_before: 0,
            journal: None,
            metadata: Vec::new(),
            next: None,
            places: Vec::new(),
        }
    }

    /// How much it has found: blocks, pages of the map, places of the journal and of other
    /// metadata.
    #[must_use]
    pub fn found(&self) -> u64 {
        let blocks = self
            .unreadable_blocks
            .saturating_add(self.mismatched_blocks);
        let journal = self.journal.as_ref().map_or(0, JournalScrub::damage);
        let other = journal.saturating_add(self.metadata.len() as u64);
        blocks.saturating_add(self.map_pages).saturating_add(other)
    }

    /// When all of the LUN was read last; what was kept by an earlier program says it of the last
    /// run only.
    #[must_use]
    pub fn last_verified(&self) -> Option<&str> {
        let own = (self.state == ScrubState::Finished).then_some(self.ended.as_deref());
        self.verified.as_deref().or(own.flatten())
    }

    /// What an administrator must know of it, one sentence each. `checked`: what the checksums know
    /// to be bad now, which is newer than what the scrub has found of blocks.
    #[must_use]
    pub fn problems(&self, checked: Option<String>) -> Vec<String> {
        let blocks = checked.or_else(|| self.bad_blocks());
        let mut all: Vec<String> = blocks.into_iter().collect();
        if self.map_pages > 0 {
            all.push(format!(
                "its scrub found {} damaged pages of the map of checksums: check the disk; blocks that it can no longer vouch for \
                 are refused until they are written again ({})",
                self.map_pages,
                Code::BlocksDamaged
            ));
        }
        all.extend(self.journal.as_ref().and_then(JournalScrub::problem));
        let metadata = self.metadata.iter();
        all.extend(metadata.map(|what| format!("its scrub found damage: {what}")));
        all
    }

    fn bad_blocks(&self) -> Option<String> {
        let bad = self.unreadable_blocks + self.mismatched_blocks;
        let lba = self.places.first()?.lba;
        let code = if self.mismatched_blocks > 0 {
            format!(" ({})", Code::BlocksDamaged)
        } else {
            String::new()
        };
        Some(format!(
            "its scrub found {bad} bad blocks, the first at {lba}: restore what lies there from a backup, by writing \
             it, and check the disk; then causeway scrub start{code}"
        ))
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_was_read_whole_is_known_of_records_without_it_and_survives_a_later_scrub() {
        let at = |text: &str| Some(text.to_owned());
        let mut facts = ScrubFacts::begun("1".to_owned(), 9);
        assert_eq!(facts.last_verified(), None);
        (facts.state, facts.ended) = (ScrubState::Stopped, at("2"));
        assert_eq!(facts.last_verified(), None);
        facts.state = ScrubState::Finished;
        assert_eq!(facts.last_verified(), Some("2"));
        facts.verified = at("0");
        facts.state = ScrubState::GivenUp;
        assert_eq!(facts.last_verified(), Some("0"));
    }
}
