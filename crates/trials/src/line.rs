//! What a child says while it works: a JSON document a line.

use crate::bed_view::BedFacts;
use manifest::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::second::{LinkOrder, LinkState, PathSecond, Phase, Second};

/// The longest line that is read, in bytes: a result with an hour of seconds, and its charts.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// What a run gave, in all forms that can be exported.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub struct Outcome {
    /// As `-Rjson` writes it.
    pub result: Value,
    /// As `-Rcsv` does.
    pub csv: String,
    /// As `-Rsvg` does.
    pub svg: String,
    /// As `-Rtext` does.
    pub text: String,
    /// What was not well: errors, or data that is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// A line of `causeway bench --driven`.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum BenchLine {
    /// Each second.
    Second(Second),
    /// The last one, where there is a result.
    Done(Box<Outcome>),
    /// The last one, where there is none.
    Failed(Problem),
}

/// A line of `causeway lab drive`.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum BedLine {
    /// It stands, and the load begins.
    Built(BedFacts),
    /// The load, each second.
    Second(Second),
    /// A link is so now.
    Link(LinkOrder),
    /// A link could not be made so.
    Refused(Problem),
    /// The load has ended at its time, or by a failure.
    LoadEnded(Option<Problem>),
    /// The bed could not be built, or cannot go on.
    Failed(Problem),
}

/// Reads a line of a child.
///
/// # Errors
/// What is wrong with it, in words.
pub fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| {
        let shown: String = String::from_utf8_lossy(line).chars().take(120).collect();
        format!("a line that nobody understands: {shown} ({error})")
    })
}

/// A line, with its end.
#[must_use]
pub fn write(line: &impl Serialize) -> String {
    let text = serde_json::to_string(line);
    format!("{}\n", text.expect("lines are made of plain data"))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn lines_go_round_and_what_is_none_is_named() {
        let line = BedLine::Link(LinkOrder {
            link: "eth0".to_owned(),
            state: LinkState::BlackHole,
        });
        let text = write(&line);
        assert_eq!(
            text,
            "{\"link\":{\"link\":\"eth0\",\"state\":\"black_hole\"}}\n"
        );
        assert_eq!(read::<BedLine>(text.trim().as_bytes()), Ok(line));
        for bad in ["", "{}", "{\"link\":1}", "nonsense", "{\"other\":{}}"] {
            let why = read::<BedLine>(bad.as_bytes()).unwrap_err();
            assert!(why.contains("nobody understands"), "{why}");
        }
    }
}
