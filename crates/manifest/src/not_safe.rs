//! LUNs of which something is lost that a host may believe is kept, whoever wished it so.

use crate::objects::{Lun, Objects};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::text::counted;

/// So many LUNs are named.
const NAMED_MAX: usize = 5;

/// What takes data from a LUN.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum LostWith {
    /// The end of the daemon: all that it has.
    Daemon,
    /// The loss of power: what was acknowledged and not flushed.
    Power,
}

/// LUNs that lose something in the same way.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Debug)]
pub struct NotSafe {
    /// What takes it from them.
    pub lost_with: LostWith,
    /// Nobody chose it: it holds where nobody said anything.
    pub by_default: bool,
    /// How many LUNs.
    pub luns: usize,
    /// The names of the first five.
    pub names: Vec<String>,
    /// The same as a sentence, without its stop.
    pub text: String,
}

impl NotSafe {
    fn of(lost_with: LostWith, by_default: bool, names: &[&String]) -> Self {
        let luns = names.len();
        let first: Vec<String> = names
            .iter()
            .take(NAMED_MAX)
            .map(|it| (*it).clone())
            .collect();
        let more = match luns - first.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let how = match (lost_with, luns) {
            (LostWith::Power, 1) => "loses unflushed writes with the power",
            (LostWith::Power, _) => "lose unflushed writes with the power",
            (LostWith::Daemon, 1) => "is in memory and gone with the daemon",
            (LostWith::Daemon, _) => "are in memory and gone with the daemon",
        };
        let many = counted(luns as u64, "LUN");
        let text = format!("{many} {how}: {}{more}", first.join(", "));
        Self {
            lost_with,
            by_default,
            luns,
            names: first,
            text,
        }
    }
}

/// A line for each, as people read them.
#[must_use]
pub fn said(all: &[NotSafe]) -> String {
    if all.is_empty() {
        return "none".to_owned();
    }
    let lines: Vec<&str> = all.iter().map(|it| it.text.as_str()).collect();
    lines.join("\n")
}

fn lost(lun: &Lun) -> Option<(LostWith, bool)> {
    if lun.backing.is_memory() {
        // Nothing is in memory unless somebody wished it.
        return Some((LostWith::Daemon, false));
    }
    let risk = lun.risks().next()?;
    Some((LostWith::Power, !risk.is_chosen))
}

/// Those in service that are not safe, the worst first.
#[must_use]
pub fn not_safe(objects: &Objects) -> Vec<NotSafe> {
    let mut found: BTreeMap<(LostWith, bool), Vec<&String>> = BTreeMap::new();
    for (name, lun) in &objects.luns {
        if let Some(how) = lost(lun) {
            found.entry(how).or_default().push(name);
        }
    }
    let all = found.iter();
    all.map(|((with, by_default), names)| NotSafe::of(*with, *by_default, names))
        .collect()
}
