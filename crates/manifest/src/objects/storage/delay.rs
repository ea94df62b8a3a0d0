//! How long each operation of a LUN waits.

use super::Storage;
use super::facts::{Figure, Metric, Shown};
use super::field::{Changed, OneField, Part};
use crate::field::{Field, live};
use crate::toml_table::Table;

/// The longest that each operation may wait, in microseconds: hosts give up after some seconds.
pub const DELAY_US_MAX: u32 = 1_000_000;

/// `delay_us`; 0 lifts it.
pub(super) struct Delay;

impl OneField for Delay {
    type Value = u32;

    const FIELD: Field = live(
        "lun.delay_us",
        "1 to 1000000; 0: none",
        "none",
        "microseconds that each of its operations waits, to try what hosts do with slow storage",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("delay-us"),
        key: "delay_us",
        value: "NUMBER",
        words: &[],
        example: "delay_us=500|none",
        help: "Microseconds that each of its operations waits, 1 to 1000000 [default: none]",
    }];

    const METRICS: &'static [Metric] = &[
        Metric::counter(
            "causeway_lun_delay_deferred_total",
            "Operations that the LUN's delay made wait",
            |_, it| Some(Figure::Number(it.delayed?.deferred)),
        ),
        Metric::counter(
            "causeway_lun_delay_wait_seconds_total",
            "How long operations waited for the LUN's delay, together",
            |_, it| Some(Figure::Micros(it.delayed?.waited_us)),
        ),
    ];

    fn slot(storage: &mut Storage) -> &mut Option<u32> {
        &mut storage.delay_us
    }

    fn read(table: &Table<'_, '_>) -> Option<u32> {
        let micros = table.integer("delay_us", 0, u64::from(DELAY_US_MAX));
        micros.map(|it| u32::try_from(it.value).expect("read with a small limit"))
    }

    fn toml(value: u32) -> String {
        value.to_string()
    }

    fn parse(_: &Part, word: &str, _: Option<u32>) -> Result<u32, String> {
        let word = if word == "none" { "0" } else { word };
        let rule = || format!("delay_us={word}: write a number from 1 to {DELAY_US_MAX}, or none");
        word.parse().map_err(|_| rule())
    }

    fn is_nothing(value: u32) -> bool {
        value == 0
    }

    fn check(value: u32, wrong: &mut dyn FnMut(&str, String)) {
        if value > DELAY_US_MAX {
            let rule = format!("{value} is outside 1 to {DELAY_US_MAX}");
            wrong("delay_us", rule);
        }
    }

    fn changed(_: Option<u32>, is: Option<u32>) -> Changed {
        let detail = is.map_or_else(
            || "no delay".to_owned(),
            |micros| format!("each operation waits {micros} us"),
        );
        detail.into()
    }

    /// What it is, and what it did.
    fn shown(is: Option<u32>, lun: &Shown<'_>) -> (&'static str, String) {
        let mut text = is.map_or_else(|| "none".to_owned(), |micros| format!("{micros} us"));
        if let Some(facts) = lun.layers.delayed {
            text.push_str(&format!("; {facts}"));
        }
        ("delay", text)
    }
}

#[cfg(test)]
mod test {
    use super::super::{LayerFacts, StorageField, WaitFacts};
    use super::*;

    const FIELD: &dyn StorageField = &Delay;

    fn of(delay_us: Option<u32>) -> Storage {
        Storage {
            delay_us,
            ..Storage::default()
        }
    }

    /// Follows a word of a command, and says what is wrong then.
    fn said(word: &str) -> Result<Storage, String> {
        let (mut storage, mut faults) = (Storage::default(), Vec::new());
        FIELD.parse(&FIELD.parts()[0], word, &mut storage)?;
        FIELD.check(&storage, &mut |key, rule| {
            faults.push(format!("{key}: {rule}"));
        });
        faults.pop().map_or(Ok(storage), Err)
    }

    #[test]
    fn a_delay_is_a_second_at_most_and_none_lifts_it() {
        let longest = said("1000000").unwrap();
        assert_eq!(longest.delay_us, Some(DELAY_US_MAX));
        let lifted = said("none").unwrap().over(longest);
        assert_eq!(lifted.delay_us, None);
        for (word, wanted) in [
            ("1000001", "delay_us: 1000001 is outside 1 to 1000000"),
            ("-1", "delay_us=-1: write a number"),
            ("5ms", "delay_us=5ms: write a number"),
        ] {
            let refused = said(word).unwrap_err();
            assert!(refused.contains(wanted), "{refused}");
        }
    }

    #[test]
    fn what_it_is_and_did_is_one_line_and_a_plan_says_what_a_change_does() {
        let line = |is, delayed| {
            let layers = LayerFacts {
                delayed,
                ..LayerFacts::default()
            };
            let lun = Shown {
                name: "vm01",
                block_count: 100,
                is_memory: false,
                layers: &layers,
            };
            FIELD.shown(&of(is), &lun).1
        };
        assert_eq!(line(None, None), "none");
        let facts = WaitFacts {
            deferred: 4,
            waited_us: 2_100,
            waiting: 1,
        };
        assert_eq!(
            line(Some(500), Some(facts)),
            "500 us; 4 operations had to wait, 525 us on average, 1 wait now"
        );
        let detail = |is| FIELD.changed(&of(Some(7)), &of(is)).unwrap().detail;
        assert_eq!(detail(Some(500)), "each operation waits 500 us");
        assert_eq!(detail(None), "no delay");
    }
}
