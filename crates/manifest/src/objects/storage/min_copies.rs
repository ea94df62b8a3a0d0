//! How many copies of a LUN have to have what is acknowledged.

use super::Storage;
use super::facts::Shown;
use super::field::{Changed, OneField, Part};
use super::node_names::COPIES;
use crate::field::{Field, live};
use crate::toml_table::Table;

/// The field `min_copies`; 1 takes it away.
pub(super) struct MinCopies;

/// What a number means, in words.
fn text(is: Option<u32>) -> String {
    match is {
        None | Some(1) => "1: one node that has all of it goes on alone".to_owned(),
        Some(nodes) => format!("{nodes}: while fewer nodes have all of it, writes wait"),
    }
}

impl OneField for MinCopies {
    type Value = u32;

    const FIELD: Field = live(
        "lun.min_copies",
        "1 or 2",
        "1",
        "of a LUN with copies: how many nodes have to have all of it for writes. 1: one goes on alone. 2: while only one \
         has, writes wait and reads go on",
    );

    const PARTS: &'static [Part] = &[Part {
        option: Some("min-copies"),
        key: "min_copies",
        value: "NUMBER",
        words: &["1", "2"],
        example: "min_copies=1|2",
        help: "Of a LUN with copies: how many nodes have to have all of it for writes; 2: while only one has, writes \
               wait and reads go on [default: 1]",
    }];

    fn slot(storage: &mut Storage) -> &mut Option<u32> {
        &mut storage.min_copies
    }

    fn read(table: &Table<'_, '_>) -> Option<u32> {
        let nodes = table.integer("min_copies", 1, COPIES as u64);
        nodes.map(|it| u32::try_from(it.value).expect("read with a small limit"))
    }

    fn toml(value: u32) -> String {
        value.to_string()
    }

    fn parse(_: &Part, word: &str, _: Option<u32>) -> Result<u32, String> {
        let rule = || format!("min_copies={word}: write 1 or {COPIES}");
        word.parse().map_err(|_| rule())
    }

    fn is_nothing(value: u32) -> bool {
        value == 1
    }

    fn check(value: u32, wrong: &mut dyn FnMut(&str, String)) {
        if !(1..=COPIES as u64).contains(&value.into()) {
            wrong("min_copies", format!("{value} is neither 1 nor {COPIES}"));
        }
    }

    fn goes_with(value: u32, storage: &Storage) -> Result<(), String> {
        let copies = storage.copies.map_or(1, |it| it.iter().count());
        if u64::from(value) > copies as u64 {
            return Err(format!(
                "it has {copies} copy, so that writes would wait for ever"
            ));
        }
        Ok(())
    }

    fn changed(_: Option<u32>, is: Option<u32>) -> Changed {
        format!("min_copies {}", text(is)).into()
    }

    fn shown(is: Option<u32>, lun: &Shown<'_>) -> (&'static str, String) {
        let text = match (is, &lun.layers.mirror) {
            (None, None) => "none".to_owned(),
            _ => text(is),
        };
        ("copies for writes", text)
    }
}
