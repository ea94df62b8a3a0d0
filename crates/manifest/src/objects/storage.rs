//! The storage fields of a LUN: how its writes are kept, whether its blocks are checked, what it
//! may use; and which of the fields this version has.

use super::model::SECTION_LUN;
use crate::problem::Fault;
use crate::size::Size;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A field of a pool or a LUN that stands for a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// `journal` and `journal_size` of a pool.
    Journal,
    /// `members` and `layout` of a pool.
    Members,
    /// `cache = "write-back"`.
    WriteBack,
    /// `integrity = true`.
    Integrity,
    /// `read_cache`.
    ReadCache,
    /// `limit`.
    Limit,
    /// `shares`.
    Shares,
}

/// Whether this version has it. What it has not is refused by [`NOT_YET`], never taken and ignored.
#[must_use]
pub const fn available(feature: Feature) -> bool {
    match feature {
        Feature::Journal
        | Feature::Members
        | Feature::WriteBack
        | Feature::Integrity
        | Feature::ReadCache
        | Feature::Limit
        | Feature::Shares => true,
    }
}

/// What is said of a field that this version has not.
pub const NOT_YET: &str = "not in this version yet; remove it";

/// What a volatile LUN risks, in one sentence.
pub const VOLATILE_RISK: &str =
    "what a host was told is written and has not flushed is lost when power or kernel fail";

/// The longest that a limit may save up for a burst, in seconds.
pub const BURST_SECONDS_MAX: u32 = 3600;

/// The most shares of a pool that a LUN may have.
pub const SHARES_MAX: u32 = 10_000;

/// The most operations a second that a limit may name; more is no limit.
pub const LIMIT_IOPS_MAX: u64 = 1_000_000_000;

/// What an acknowledged write has behind it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum CacheMode {
    /// Its blocks are on stable media at their place. WCE is 0.
    WriteThrough,
    /// It is on stable media in the pool's journal, and carried to its place later. WCE is 0.
    WriteBack,
    /// It may sit in volatile memory until the host flushes. WCE is 1; FUA and SYNCHRONIZE CACHE
    /// mean what they say.
    Volatile,
}

impl CacheMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::WriteThrough, Self::WriteBack, Self::Volatile];

    /// As files and commands write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::WriteThrough => "write-through",
            Self::WriteBack => "write-back",
            Self::Volatile => "volatile",
        }
    }
}

impl fmt::Display for CacheMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CacheMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(|mode| format!("\"{mode}\"")).join(", ");
            format!("\"{text}\" is none of {all}")
        })
    }
}

/// Whether a host is told that another one has aborted its commands (TAS, SPC-4 7.5.8 "Control mode
/// page").
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum TaskAbortedStatus {
    /// It is, with TASK ABORTED, unless hosts change that by MODE SELECT.
    #[default]
    Host,
    /// It is.
    On,
    /// It is not.
    Off,
}

impl TaskAbortedStatus {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Host, Self::On, Self::Off];

    /// As files and commands write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::On => "on",
            Self::Off => "off",
        }
    }

    /// Hosts may change it.
    #[must_use]
    pub fn is_hosts(&self) -> bool {
        *self == Self::Host
    }

    /// What it is fixed to, where it is.
    #[must_use]
    pub const fn fixed(self) -> Option<bool> {
        match self {
            Self::Host => None,
            Self::On => Some(true),
            Self::Off => Some(false),
        }
    }
}

impl fmt::Display for TaskAbortedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TaskAbortedStatus {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            let all = Self::ALL.map(|one| format!("\"{one}\"")).join(", ");
            format!("\"{text}\" is none of {all}")
        })
    }
}

/// What a LUN may use of a second. Empty: as much as it can.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Operations a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Bytes a second, of reads and writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<Size>,
    /// So many seconds' worth of what was not used may be used at once; absent, a moment's worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_seconds: Option<u32>,
}

impl Limit {
    /// It limits nothing.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.iops.is_none() && self.bytes_per_second.is_none()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.iops.map(|iops| format!("{iops} operations/s")));
        parts.extend(
            self.bytes_per_second
                .map(|bytes| format!("{}/s", bytes.told())),
        );
        if parts.is_empty() {
            return f.write_str("none");
        }
        let bursts = self.burst_seconds.filter(|seconds| *seconds > 0);
        parts.extend(bursts.map(|seconds| format!("bursts of {seconds} s")));
        f.write_str(&parts.join(", "))
    }
}

/// The storage fields of a stored LUN.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    /// What acknowledged writes have behind them. Absent: nobody chose, and there was no journal
    /// when the LUN was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheMode>,
    /// Blocks are checked when they are read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub integrity: bool,
    /// Memory for blocks that may be read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_cache: Option<Size>,
    /// What it may use of a second.
    #[serde(default, skip_serializing_if = "Limit::is_none")]
    pub limit: Limit,
    /// Its part of its pool where LUNs compete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<u32>,
    /// Whether a host is told that another one has aborted its commands.
    #[serde(default, skip_serializing_if = "TaskAbortedStatus::is_hosts")]
    pub task_aborted_status: TaskAbortedStatus,
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
}

/// The storage fields that are wanted of a LUN. What is absent gets its default in a new LUN and
/// stays in an existing one.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StorageSpec {
    /// See [`Storage::cache`].
    pub cache: Option<CacheMode>,
    /// See [`Storage::integrity`].
    pub integrity: Option<bool>,
    /// See [`Storage::read_cache`]; 0 switches it off.
    pub read_cache: Option<Size>,
    /// See [`Storage::limit`]; an empty one lifts it.
    pub limit: Option<Limit>,
    /// See [`Storage::shares`]; 0 takes them away.
    pub shares: Option<u32>,
    /// See [`Storage::task_aborted_status`].
    pub task_aborted_status: Option<TaskAbortedStatus>,
}

impl StorageSpec {
    /// The wish that leads to exactly `storage`.
    #[must_use]
    pub fn of(storage: &Storage) -> Self {
        Self {
            cache: storage.cache,
            integrity: storage.integrity.then_some(true),
            read_cache: storage.read_cache,
            limit: Some(storage.limit).filter(|limit| !limit.is_none()),
            shares: storage.shares,
            task_aborted_status: Some(storage.task_aborted_status).filter(|is| !is.is_hosts()),
        }
    }

    /// `known` as it is wanted.
    #[must_use]
    pub fn over(&self, known: Storage) -> Storage {
        Storage {
            cache: self.cache.or(known.cache),
            integrity: self.integrity.unwrap_or(known.integrity),
            read_cache: match self.read_cache {
                Some(bytes) => Some(bytes).filter(|bytes| bytes.bytes() > 0),
                None => known.read_cache,
            },
            limit: match self.limit {
                Some(limit) if limit.is_none() => Limit::default(),
                Some(limit) => limit,
                None => known.limit,
            },
            shares: match self.shares {
                Some(shares) => Some(shares).filter(|shares| *shares > 0),
                None => known.shares,
            },
            task_aborted_status: self
                .task_aborted_status
                .unwrap_or(known.task_aborted_status),
        }
    }

    /// The rules that hold whatever else exists.
    pub(super) fn check(&self, lun: &str, faults: &mut Vec<Fault>) {
        let mut wrong =
            |key: &str, rule: String| faults.push(Fault::new(SECTION_LUN, lun, key, rule));
        let mut later = |key: &str, feature: Feature, is_asked: bool| {
            if is_asked && !available(feature) {
                wrong(key, NOT_YET.to_owned());
            }
        };
        let write_back = self.cache == Some(CacheMode::WriteBack);
        later("cache", Feature::WriteBack, write_back);
        let checked = self.integrity == Some(true);
        later("integrity", Feature::Integrity, checked);
        let caches = self.read_cache.is_some_and(|bytes| bytes.bytes() > 0);
        later("read_cache", Feature::ReadCache, caches);
        let limit = self.limit.unwrap_or_default();
        later("limit", Feature::Limit, !limit.is_none());
        let has_shares = self.shares.is_some_and(|shares| shares > 0);
        later("shares", Feature::Shares, has_shares);
        check_limit(&limit, &mut wrong);
        if let Some(shares) = self.shares.filter(|shares| *shares > SHARES_MAX) {
            wrong("shares", format!("{shares} is outside 1 to {SHARES_MAX}"));
        }
    }
}

fn check_limit(limit: &Limit, wrong: &mut dyn FnMut(&str, String)) {
    const NOTHING: &str = "0 would stop the LUN; leave it out for no limit";
    match limit.iops {
        Some(0) => wrong("limit.iops", NOTHING.to_owned()),
        Some(iops) if iops > LIMIT_IOPS_MAX => {
            let rule = format!("{iops} is outside 1 to {LIMIT_IOPS_MAX}");
            wrong("limit.iops", rule);
        }
        Some(_) | None => {}
    }
    if limit.bytes_per_second.is_some_and(|most| most.bytes() == 0) {
        wrong("limit.bytes_per_second", NOTHING.to_owned());
    }
    let Some(burst) = limit.burst_seconds else {
        return;
    };
    if burst > BURST_SECONDS_MAX {
        let rule = format!("{burst} is outside 0 to {BURST_SECONDS_MAX}");
        wrong("limit.burst_seconds", rule);
    }
    if limit.is_none() {
        let rule = "a burst is of something: write iops or bytes_per_second beside it";
        wrong("limit.burst_seconds", rule.to_owned());
    }
}

/// The rules between a LUN's storage fields and what holds it; `journal` tells whether its pool has
/// one, and is `None` where no pool holds it.
pub(crate) fn check_place(
    storage: &Storage,
    pool: Option<(&str, bool)>,
) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if storage.shares.is_some() && pool.is_none() {
        let why = "shares are of what the LUNs of a pool have in common, and no pool holds this one; leave it out";
        out.push(("shares", why.to_owned()));
    }
    if pool.is_some_and(|(_, journal)| journal) {
        return out;
    }
    let why = match pool {
        Some((pool, _)) => format!(
            "pool \"{pool}\" has no journal, which this needs; add journal = \"data/journal\" to it in node.toml and \
             restart, or leave this out"
        ),
        None => {
            "it needs the journal of a pool, and no pool holds this LUN; leave it out".to_owned()
        }
    };
    if storage.cache == Some(CacheMode::WriteBack) {
        out.push(("cache", why.clone()));
    }
    if storage.integrity {
        out.push(("integrity", why));
    }
    out
}

#[cfg(test)]
mod test {
    use super::*;

    fn faults(spec: StorageSpec) -> Vec<String> {
        let mut faults = Vec::new();
        spec.check("a", &mut faults);
        faults.iter().map(ToString::to_string).collect()
    }

    fn limit(iops: Option<u64>, bytes: Option<u64>, burst: Option<u32>) -> StorageSpec {
        StorageSpec {
            limit: Some(Limit {
                iops,
                bytes_per_second: bytes.and_then(Size::from_bytes),
                burst_seconds: burst,
            }),
            ..StorageSpec::default()
        }
    }

    #[test]
    fn limits_that_would_stop_a_lun_or_mean_nothing_are_refused() {
        for (spec, wanted) in [
            (limit(Some(0), None, None), "limit.iops: 0 would stop"),
            (
                limit(None, Some(0), None),
                "limit.bytes_per_second: 0 would stop",
            ),
            (
                limit(None, None, Some(5)),
                "limit.burst_seconds: a burst is of",
            ),
            (
                limit(Some(1), None, Some(3601)),
                "limit.burst_seconds: 3601 is outside",
            ),
            (
                limit(Some(u64::MAX), None, None),
                "limit.iops: 18446744073709551615 is outside",
            ),
            (
                StorageSpec {
                    shares: Some(10_001),
                    ..StorageSpec::default()
                },
                "shares: 10001 is outside 1 to 10000",
            ),
        ] {
            let told = faults(spec);
            assert!(told.iter().any(|told| told.contains(wanted)), "{told:?}");
        }
    }

    #[test]
    fn what_needs_a_journal_is_refused_where_there_is_none() {
        let wants = |cache, integrity| Storage {
            cache,
            integrity,
            ..Storage::default()
        };
        let write_back = wants(Some(CacheMode::WriteBack), true);
        assert_eq!(check_place(&write_back, Some(("p", true))), []);
        let told = check_place(&write_back, Some(("p", false)));
        assert_eq!(
            told.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
            ["cache", "integrity"]
        );
        assert!(told[0].1.contains("pool \"p\" has no journal"), "{told:?}");
        assert!(
            check_place(&write_back, None)[0]
                .1
                .contains("no pool holds")
        );
        assert_eq!(
            check_place(&wants(Some(CacheMode::WriteThrough), false), None),
            []
        );
    }

    #[test]
    fn shares_are_of_a_pool() {
        let has = Storage {
            shares: Some(200),
            ..Storage::default()
        };
        assert_eq!(check_place(&has, Some(("p", false))), []);
        let told = check_place(&has, None);
        assert_eq!(told[0].0, "shares");
        assert!(told[0].1.contains("no pool holds this one"), "{told:?}");
    }

    #[test]
    fn a_wish_for_what_is_changes_nothing_and_an_empty_limit_lifts() {
        let is = Storage {
            cache: Some(CacheMode::WriteThrough),
            integrity: true,
            read_cache: Size::from_bytes(1 << 20),
            limit: Limit {
                iops: Some(5),
                ..Limit::default()
            },
            shares: Some(200),
            task_aborted_status: TaskAbortedStatus::Off,
        };
        assert_eq!(StorageSpec::of(&is).over(is), is);
        assert_eq!(StorageSpec::default().over(is), is);
        let lifted = limit(None, None, None).over(is);
        assert!(lifted.limit.is_none());
        let off = StorageSpec {
            read_cache: Size::from_bytes(0),
            ..StorageSpec::default()
        };
        assert_eq!(off.over(is).read_cache, None);
        let none = StorageSpec {
            shares: Some(0),
            ..StorageSpec::default()
        };
        assert_eq!(none.over(is).shares, None);
        let hosts = StorageSpec {
            task_aborted_status: Some(TaskAbortedStatus::Host),
            ..StorageSpec::default()
        };
        assert!(hosts.over(is).task_aborted_status.is_hosts());
    }

    #[test]
    fn modes_have_one_spelling() {
        for mode in CacheMode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.name());
        }
        assert!(
            "writeback"
                .parse::<CacheMode>()
                .unwrap_err()
                .contains("\"write-back\"")
        );
    }
}
