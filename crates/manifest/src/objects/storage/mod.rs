//! The storage fields of a LUN: how its writes are kept, whether its blocks are checked, what it
//! may use. Each field is a file here, a line of [`FIELDS`], a member of [`Storage`], and one of
//! [`LayerFacts`] where its layer counts something. Files, requests, exports, plans, commands,
//! pages, documents and metrics walk that table.

mod cache;
mod copies;
mod facts;
mod field;
mod integrity;
mod limit;
mod min_copies;
mod node_names;
mod place;
mod read_cache;
mod serial;
mod shares;
mod task_aborted;

pub use cache::CacheMode;
#[cfg(test)]
pub(crate) use cache::VOLATILE_RISK;
pub use copy_documents::{MirrorFacts, ResyncFacts};
pub use facts::{Figure, Metric, Shown, WaitFacts};
pub use field::{Changed, Part, Risk, StorageField, Switched};
pub use integrity::ChecksumFacts;
pub use limit::{BURST_SECONDS_MAX, LIMIT_IOPS_MAX, Limit};
pub use node_names::NodeNames;
pub(crate) use place::check_place;
pub use place::{Adoption, PoolBrief};
pub use read_cache::ReadCacheFacts;
pub use serial::StoragePatch;
pub(crate) use serial::read_among_others;
pub use shares::SHARES_MAX;
pub use task_aborted::TaskAbortedStatus;

use crate::size::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fields, as documents and pages show them.
pub const FIELDS: [&dyn StorageField; 8] = [
    &cache::Cache,
    &copies::Copies,
    &min_copies::MinCopies,
    &integrity::Integrity,
    &read_cache::ReadCache,
    &limit::Limited,
    &shares::Shares,
    &task_aborted::TaskAborted,
];

/// The storage fields of a LUN, each where somebody said something of it. Of a wanted LUN: what is
/// absent gets its default in a new one and stays in an existing one. Of a stored LUN: what is
/// absent is as it is without this field.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Storage {
    /// What acknowledged writes have behind them. Absent from a stored LUN: nobody chose, and there
    /// was no journal when it was made.
    pub cache: Option<CacheMode>,
    /// Nodes that have copies of it, this one among them.
    pub copies: Option<NodeNames>,
    /// Nodes that have to be in sync for writes; wanted 1: this one alone.
    pub min_copies: Option<u32>,
    /// Blocks are checked when they are read.
    pub integrity: Option<bool>,
    /// Memory for blocks that may be read again; wanted 0: none.
    pub read_cache: Option<Size>,
    /// What it may use of a second; wanted empty: as much as it can.
    pub limit: Option<Limit>,
    /// Its part of its pool where LUNs compete; wanted 0: none.
    pub shares: Option<u32>,
    /// Whether a host gets TASK ABORTED for commands that another one has aborted.
    pub task_aborted_status: Option<TaskAbortedStatus>,
}

/// What each layer of a LUN counted, where the LUN has it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct LayerFacts {
    /// What its limit did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited: Option<WaitFacts>,
    /// What others of its pool did to it by their shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<WaitFacts>,
    /// What its read cache did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<ReadCacheFacts>,
    /// How its checksums are, where it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<ChecksumFacts>,
    /// How its copies on several nodes are, where it has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mirror: Option<MirrorFacts>,
    /// Bytes whose newest data is in its pool's journal only, where that is open. Documents have it
    /// in [`LunJournal`](crate::journal::LunJournal).
    #[serde(skip)]
    pub pending_bytes: Option<u64>,
}

impl Storage {
    /// Nobody said anything.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The mode that is in force.
    #[must_use]
    pub fn cache_mode(&self) -> CacheMode {
        self.cache.unwrap_or(CacheMode::Volatile)
    }

    /// Blocks are checked when they are read.
    #[must_use]
    pub fn is_checked(&self) -> bool {
        self.integrity == Some(true)
    }

    /// Whether a host gets TASK ABORTED for commands that another one has aborted, where hosts
    /// cannot change it.
    #[must_use]
    pub fn task_aborted_fixed(&self) -> Option<bool> {
        self.task_aborted_status.unwrap_or_default().fixed()
    }

    /// Fills in what a new LUN of this pool has where nobody said anything.
    pub(crate) fn default_in(&mut self, pool: PoolBrief<'_>) {
        for field in FIELDS {
            field.default_in(pool, self);
        }
    }

    /// Makes it what a LUN has that is adopted; what is to be known of that, a sentence each.
    pub fn adopt(&mut self, from: &Adoption<'_>) -> Vec<String> {
        let notices = FIELDS.iter().map(|field| field.adopted(from, self));
        notices.flatten().collect()
    }

    /// The most memory that its layers take for blocks, in bytes.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let all = FIELDS.iter().map(|field| field.memory(self));
        all.fold(0, u64::saturating_add)
    }

    /// The same without what one field says.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut out = *self;
        for field in FIELDS.iter().filter(|field| field.name() == name) {
            field.clear(&mut out);
        }
        out
    }

    /// `known` as this request has it.
    #[must_use]
    pub fn over(&self, known: Self) -> Self {
        let mut out = known;
        for field in FIELDS {
            field.follow(self, &mut out);
        }
        out
    }

    /// What a stored LUN says of the fields with these names.
    #[must_use]
    pub fn only(&self, names: &[&str]) -> Self {
        let mut out = Self::default();
        for field in FIELDS {
            if names.contains(&field.name()) {
                field.follow(self, &mut out);
            }
        }
        out
    }

    /// The same with what holds where nobody said anything, as pages and answers show it.
    #[must_use]
    pub fn in_force(&self) -> Self {
        let mut out = *self;
        for field in FIELDS {
            field.resolve(&mut out);
        }
        out
    }
}

/// The metrics of all layers.
pub fn layer_metrics() -> impl Iterator<Item = &'static Metric> {
    FIELDS.into_iter().flat_map(StorageField::metrics)
}

#[cfg(test)]
mod test;
