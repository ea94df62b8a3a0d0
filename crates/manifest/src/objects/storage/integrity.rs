//! Whether the blocks of a LUN are checked when they are read.

use super::Storage;
use super::facts::{Figure, Metric, Shown};
use super::field::{Changed, OneField, Part, Switch};
use super::place::{Adoption, PoolBrief, needs_journal};
use crate::code::Code;
use crate::field::{Field, live};
use crate::scrub::BadBlocks;
use crate::toml_table::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the checksums of a LUN found since it came into service.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, Debug)]
pub struct ChecksumFacts {
    /// Bytes that each of them covers: 4096, or 512 where those are the LUN's physical blocks.
    pub block_bytes: u32,
    /// Blocks that are known not to be what was written; after very many, no more are counted.
    pub bad_blocks: u64,
    /// Where they are: the first 16 places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<BadBlocks>,
    /// Blocks that have no checksum yet: they are given as they are, and checked from the first
    /// time on that they are written, read or scrubbed. After a crash about so many, until the next
    /// scrub has ended.
    #[serde(default)]
    pub unchecked_blocks: u64,
    /// Reads that met such a block.
    pub mismatches: u64,
    /// Blocks with a checksum each that were written anew from another copy.
    pub repaired: u64,
    /// Checksums that were adopted from what was there: after a crash, and after writes that
    /// failed.
    pub adopted: u64,
    /// Pages of the map that were read.
    pub pages_read: u64,
    /// Pages of the map that were written.
    pub pages_written: u64,
    /// Pages of the map that could not be used.
    pub pages_lost: u64,
    /// Memory that the map takes now, in bytes.
    pub map_bytes: u64,
    /// Why the map cannot be written, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Why there is no space for the map now, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<String>,
}

impl ChecksumFacts {
    /// What an administrator must know of them.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if let Some(why) = &self.broken {
            return Some(format!(
                "its checksums cannot be written, and so nothing of it is destaged: {why}; check the disk, then restart the daemon ({})",
                Code::ChecksumsUnwritable
            ));
        }
        if let Some(why) = &self.full {
            return Some(format!(
                "there is no space for its checksums, and so nothing of it is destaged: {why}; make room in the file system where they lie, \
                 and it goes on by itself ({})",
                Code::PoolFull
            ));
        }
        let first = self.places.first()?.lba;
        let bad = self.bad_blocks;
        Some(format!(
            "{bad} of its blocks are not what was written, the first at {first}, and cannot be read: restore what lies there \
             from a backup, by writing whole physical blocks of it, and check the disk ({})",
            Code::BlocksDamaged
        ))
    }
}

/// Pages of the map: of a kind each.
const PAGES: Metric = Metric::counter(
    "causeway_integrity_map_pages_total",
    "Pages of the map that were `read`, `written`, and `lost` because they were damaged",
    |_, it| figure(it.checksums.as_ref()?.pages_read),
);

#[expect(clippy::unnecessary_wraps, reason = "as a metric has it")]
fn figure(number: u64) -> Option<Figure> {
    Some(Figure::Number(number))
}

/// How much of a LUN cannot be checked yet, and what to do about that.
fn unchecked(lun: &Shown<'_>, blocks: u64) -> String {
    let all = lun.block_count;
    let permille = blocks.saturating_mul(1000).checked_div(all).unwrap_or(0);
    let (percent, name) = (permille / 10, lun.name);
    format!(
        "\n{blocks} of {all} blocks ({percent} %) have no checksum yet and are given as they are: causeway scrub start {name}"
    )
}

/// What checksums found.
fn found(facts: &ChecksumFacts, lun: &Shown<'_>) -> String {
    if let Some(why) = &facts.broken {
        return format!("yes, but its checksums cannot be written: {why}");
    }
    if let Some(why) = &facts.full {
        return format!("yes, but there is no space for its checksums: {why}");
    }
    let each = match facts.block_bytes {
        512 => "512 bytes",
        _ => "4 KiB",
    };
    let mut text = format!("yes, a checksum for each {each}: ");
    match facts.bad_blocks {
        0 => text.push_str("no damage known"),
        1 => text.push_str("1 block is NOT what was written"),
        bad => text.push_str(&format!("{bad} blocks are NOT what was written")),
    }
    if facts.unchecked_blocks > 0 {
        text.push_str(&unchecked(lun, facts.unchecked_blocks));
    }
    if facts.repaired > 0 {
        text.push_str(&format!("; {} repaired", facts.repaired));
    }
    for place in &facts.places {
        text.push_str(&format!("\n{place}"));
    }
    text
}

/// The field `integrity`: a stored LUN has it only where it is true.
pub(super) struct Integrity;

impl OneField for Integrity {
    type Value = bool;

    const FIELD: Field = live(
        "lun.integrity",
        "boolean",
        "`false`",
        "blocks are checked when they are read; needs a journal",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("integrity"),
        key: "integrity",
        value: "BOOL",
        words: &["true", "false"],
        example: "integrity=true|false",
        help: "Check blocks when they are read; needs a journal [default: false]",
    }];

    const METRICS: &'static [Metric] = &[
        Metric::gauge(
            "causeway_integrity_map_failed",
            "1 where the map of checksums cannot be written, and so nothing of the LUN is destaged until a restart \
             (CWY4010); else 0",
            |_, it| figure(u64::from(it.checksums.as_ref()?.broken.is_some())),
        ),
        Metric::gauge(
            "causeway_integrity_map_full",
            "1 while there is no space for the map of checksums (CWY4005): what is written stays in the journal, and is \
             destaged by itself when there is room; else 0",
            |_, it| figure(u64::from(it.checksums.as_ref()?.full.is_some())),
        ),
        Metric::gauge(
            "causeway_integrity_bad_blocks",
            "Blocks that are known not to be what was written",
            |_, it| figure(it.checksums.as_ref()?.bad_blocks),
        ),
        Metric::gauge(
            "causeway_integrity_unchecked_blocks",
            "Blocks that have no checksum yet: the LUN had contents when it was switched on",
            |_, it| figure(it.checksums.as_ref()?.unchecked_blocks),
        ),
        Metric::counter(
            "causeway_integrity_mismatches_total",
            "Reads that met a block that is not what was written",
            |_, it| figure(it.checksums.as_ref()?.mismatches),
        ),
        Metric::counter(
            "causeway_integrity_repaired_total",
            "Blocks with a checksum each that were written anew from another copy",
            |_, it| figure(it.checksums.as_ref()?.repaired),
        ),
        Metric::counter(
            "causeway_integrity_adopted_total",
            "Checksums adopted from what was there: after crashes and failed writes, and of blocks that had none",
            |_, it| figure(it.checksums.as_ref()?.adopted),
        ),
        Metric::gauge(
            "causeway_integrity_map_bytes",
            "Memory that the map of checksums takes",
            |_, it| figure(it.checksums.as_ref()?.map_bytes),
        ),
        PAGES.with(&[("kind", "read")]),
        Metric {
            figure: |_, it| figure(it.checksums.as_ref()?.pages_written),
            ..PAGES.with(&[("kind", "written")])
        },
        Metric {
            figure: |_, it| figure(it.checksums.as_ref()?.pages_lost),
            ..PAGES.with(&[("kind", "lost")])
        },
    ];

    fn slot(storage: &mut Storage) -> &mut Option<bool> {
        &mut storage.integrity
    }

    fn read(table: &Table<'_, '_>) -> Option<bool> {
        table.boolean("integrity")
    }

    fn toml(value: bool) -> String {
        value.to_string()
    }

    fn parse(_: &Part, word: &str, _: Option<bool>) -> Result<bool, String> {
        word.parse()
            .map_err(|_| format!("integrity={word}: write true or false"))
    }

    fn is_nothing(value: bool) -> bool {
        !value
    }

    fn in_force(is: Option<bool>) -> Option<bool> {
        Some(is.unwrap_or(false))
    }

    fn fits(value: bool, pool: Option<PoolBrief<'_>>) -> Result<(), String> {
        if value { needs_journal(pool) } else { Ok(()) }
    }

    fn adopted(is: Option<bool>, from: &Adoption<'_>) -> (Option<bool>, Option<String>) {
        if is != Some(true) || (from.pool.has_journal && from.has_checksums) {
            return (is, None);
        }
        let name = from.name;
        let notice = format!(
            "LUN {name} is no longer checked: its checksums are not there, or the pool has no journal; causeway lun set {name} integrity=true begins anew"
        );
        (None, Some(notice))
    }

    const SWITCH: Option<Switch<bool>> = Some(Switch {
        is_on: |is| is == Some(true),
        still: "still checked",
    });

    fn changed(_: Option<bool>, is: Option<bool>) -> Changed {
        let detail = if is == Some(true) {
            "what is read is checked; what it holds has no checksums before it is written, read or scrubbed"
        } else {
            "what is read is no longer checked, and its checksums are given up"
        };
        detail.to_owned().into()
    }

    /// Whether its blocks are checked, and what was found.
    fn shown(is: Option<bool>, lun: &Shown<'_>) -> (&'static str, String) {
        let text = match &lun.layers.checksums {
            Some(facts) => found(facts, lun),
            None if is == Some(true) => "yes".to_owned(),
            None => "no".to_owned(),
        };
        ("integrity", text)
    }
}
