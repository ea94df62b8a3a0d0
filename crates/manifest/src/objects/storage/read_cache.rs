//! Memory for blocks of a LUN that may be read again.

use super::cache::CacheMode;
use super::facts::{Figure, Metric, Shown};
use super::field::{Changed, OneField, Part};
use super::{LayerFacts, Storage};
use crate::field::{Field, live};
use crate::size::{Size, rounded};
use crate::toml_table::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a read cache did since it got its size.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ReadCacheFacts {
    /// Reads that it answered.
    pub hits: u64,
    /// Reads that it did not.
    pub misses: u64,
    /// Bytes that it holds.
    pub bytes: u64,
}

const CACHED: Metric = Metric::gauge(
    "causeway_cache_bytes",
    "Bytes in the LUN's caches: `clean` is what its read cache holds, `dirty` what its pool's journal holds and is not \
     destaged",
    |_, it| Some(Figure::Number(it.cached?.bytes)),
);

/// LUNs of other modes have no series for a figure that is 0 but for moments.
fn dirty(storage: &Storage, layers: &LayerFacts) -> Option<Figure> {
    let bytes = layers.pending_bytes?;
    let is_shown = bytes > 0 || storage.cache == Some(CacheMode::WriteBack);
    is_shown.then_some(Figure::Number(bytes))
}

/// `read_cache`; 0 switches it off.
pub(super) struct ReadCache;

impl OneField for ReadCache {
    type Value = Size;

    const FIELD: Field = live(
        "lun.read_cache",
        "size",
        "0: none",
        "memory for blocks that may be read again, filled by reads and by what a journal destages",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("read-cache"),
        key: "read_cache",
        value: "SIZE",
        words: &[],
        example: "read_cache=256M|none",
        help: "Memory for blocks that may be read again [default: none]",
    }];

    const METRICS: &'static [Metric] = &[
        Metric::counter(
            "causeway_cache_hits_total",
            "Reads that the LUN's read cache answered",
            |_, it| Some(Figure::Number(it.cached?.hits)),
        ),
        Metric::counter(
            "causeway_cache_misses_total",
            "Reads that the LUN's read cache did not answer",
            |_, it| Some(Figure::Number(it.cached?.misses)),
        ),
        CACHED.with(&[("state", "clean")]),
        Metric {
            figure: dirty,
            ..CACHED.with(&[("state", "dirty")])
        },
    ];

    fn slot(storage: &mut Storage) -> &mut Option<Size> {
        &mut storage.read_cache
    }

    fn read(table: &Table<'_, '_>) -> Option<Size> {
        table.size("read_cache").map(|bytes| bytes.value)
    }

    fn toml(value: Size) -> String {
        format!("\"{value}\"")
    }

    fn parse(_: &Part, word: &str, _: Option<Size>) -> Result<Size, String> {
        if word == "none" { "0" } else { word }.parse()
    }

    fn is_nothing(value: Size) -> bool {
        value.bytes() == 0
    }

    fn memory(value: Size) -> u64 {
        value.bytes()
    }

    fn changed(_: Option<Size>, is: Option<Size>) -> Changed {
        let detail = is.map_or_else(
            || "no read cache".to_owned(),
            |bytes| format!("read cache of {}", bytes.reported()),
        );
        detail.into()
    }

    /// Its size, what it holds, and how often it helped.
    fn shown(is: Option<Size>, lun: &Shown<'_>) -> (&'static str, String) {
        let text = match (is, lun.layers.cached) {
            (None, _) => "none".to_owned(),
            (Some(size), None) => size.rounded(),
            (Some(size), Some(facts)) => {
                let reads = facts.hits + facts.misses;
                let permille = facts.hits.saturating_mul(1000).checked_div(reads);
                let permille = permille.unwrap_or(0);
                format!(
                    "{}, holds {}; answered {}.{} % of {reads} reads",
                    size.rounded(),
                    rounded(facts.bytes),
                    permille / 10,
                    permille % 10
                )
            }
        };
        ("read cache", text)
    }
}
