//! A LUN's part of its pool, where LUNs of it compete.

use super::Storage;
use super::facts::{Figure, Metric, Shown};
use super::field::{Changed, OneField, Part};
use super::place::PoolBrief;
use crate::field::{Field, live};
use crate::toml_table::Table;

/// The most shares of a pool that a LUN may have.
pub const SHARES_MAX: u32 = 10_000;

/// `shares`; 0 takes them away.
pub(super) struct Shares;

impl OneField for Shares {
    type Value = u32;

    const FIELD: Field = live(
        "lun.shares",
        "1 to 10000; 0: none",
        "none",
        "its part of the pool where LUNs compete",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("shares"),
        key: "shares",
        value: "NUMBER",
        words: &[],
        example: "shares=200|none",
        help: "Its part of its pool where LUNs compete, 1 to 10000 [default: none; 100 where another LUN of the pool \
               has some]",
    }];

    const METRICS: &'static [Metric] = &[
        Metric::counter(
            "causeway_lun_shares_deferred_total",
            "Operations that waited because LUNs of one pool competed by their shares",
            |_, it| Some(Figure::Number(it.shared?.deferred)),
        ),
        Metric::counter(
            "causeway_lun_shares_wait_seconds_total",
            "How long operations waited for the LUN's share, together",
            |_, it| Some(Figure::Micros(it.shared?.waited_us)),
        ),
    ];

    fn slot(storage: &mut Storage) -> &mut Option<u32> {
        &mut storage.shares
    }

    fn read(table: &Table<'_, '_>) -> Option<u32> {
        let shares = table.integer("shares", 0, u64::from(SHARES_MAX));
        shares.map(|it| u32::try_from(it.value).expect("read with a small limit"))
    }

    fn toml(value: u32) -> String {
        value.to_string()
    }

    fn parse(_: &Part, word: &str, _: Option<u32>) -> Result<u32, String> {
        let word = if word == "none" { "0" } else { word };
        let rule = || format!("shares={word}: write a number from 1 to {SHARES_MAX}, or none");
        word.parse().map_err(|_| rule())
    }

    fn is_nothing(value: u32) -> bool {
        value == 0
    }

    fn check(value: u32, wrong: &mut dyn FnMut(&str, String)) {
        if value > SHARES_MAX {
            wrong("shares", format!("{value} is outside 1 to {SHARES_MAX}"));
        }
    }

    fn fits(_: u32, pool: Option<PoolBrief<'_>>) -> Result<(), String> {
        let why = "shares are of what the LUNs of a pool have in common, and no pool holds this one; leave it out";
        pool.map(|_| ()).ok_or_else(|| why.to_owned())
    }

    fn changed(_: Option<u32>, is: Option<u32>) -> Changed {
        let detail = is.map_or_else(
            || "no shares of its pool".to_owned(),
            |shares| format!("{shares} shares of its pool"),
        );
        detail.into()
    }

    /// Its part of the pool, and what competing did.
    fn shown(is: Option<u32>, lun: &Shown<'_>) -> (&'static str, String) {
        let mut text = is.map_or_else(|| "none".to_owned(), |it| it.to_string());
        if let Some(facts) = lun.layers.shared {
            text.push_str(&format!("; {facts}"));
        }
        ("shares", text)
    }
}
