//! The dependency law: crates see only lower floors, and of those only what `floors.toml` names.

use super::{Complaint, crates, toml};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

struct Room {
    floor: u32,
    sees: Vec<String>,
}

/// Checks the crates of the workspace at `root` against its `floors.toml`.
///
/// # Errors
/// Where a manifest or `floors.toml` cannot be read.
pub fn check(root: &Path) -> io::Result<Vec<Complaint>> {
    let law = rooms(&fs::read_to_string(root.join("floors.toml"))?);
    let manifests = crates(root)?;
    let uses: Vec<(String, Vec<String>)> = manifests
        .iter()
        .map(|(name, manifest)| (name.clone(), toml::dependencies(manifest)))
        .collect();
    Ok(judge(&law, &uses))
}

fn rooms(text: &str) -> BTreeMap<String, Room> {
    let mut rooms = BTreeMap::new();
    for (section, keys) in toml::parse(text) {
        let Some(name) = section.strip_prefix("crates.") else {
            continue;
        };
        let floor = keys.get("floor").and_then(|floor| floor.parse().ok());
        let sees = keys.get("sees").map(|sees| toml::strings(sees));
        if let (Some(floor), Some(sees)) = (floor, sees) {
            rooms.insert(name.to_owned(), Room { floor, sees });
        }
    }
    rooms
}

fn judge(law: &BTreeMap<String, Room>, uses: &[(String, Vec<String>)]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (name, room) in law {
        if !uses.iter().any(|(it, _)| it == name) {
            complaints.push(format!("floors.toml: there is no crate {name}"));
        }
        for seen in &room.sees {
            if law.get(seen).is_none_or(|it| it.floor >= room.floor) {
                complaints.push(format!(
                    "floors.toml: {name} may not see {seen}, which is no lower"
                ));
            }
        }
    }
    for (name, dependencies) in uses {
        let Some(room) = law.get(name) else {
            complaints.push(format!("crates/{name} has no floor in floors.toml"));
            continue;
        };
        let ours = |it: &&String| uses.iter().any(|(other, _)| other == *it);
        for seen in dependencies.iter().filter(ours) {
            if !room.sees.contains(seen) {
                complaints.push(format!(
                    "crates/{name} depends on {seen}, which floors.toml does not allow"
                ));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod test {
    use super::*;

    const LAW: &str =
        "[crates.low]\nfloor = 0\nsees = []\n[crates.high]\nfloor = 1\nsees = [\"low\"]\n";

    fn uses(low: &[&str], high: &[&str]) -> Vec<(String, Vec<String>)> {
        let names = |it: &[&str]| it.iter().map(|name| (*name).to_owned()).collect();
        vec![
            ("low".to_owned(), names(low)),
            ("high".to_owned(), names(high)),
        ]
    }

    #[test]
    fn seeing_down_is_allowed_and_seeing_up_or_aside_is_not() {
        let law = rooms(LAW);
        assert_eq!(
            judge(&law, &uses(&["serde"], &["low", "serde"])),
            Vec::<String>::new()
        );
        assert_eq!(judge(&law, &uses(&["high"], &[])).len(), 1);
        let aside = LAW.replace("floor = 1", "floor = 0");
        assert_eq!(judge(&rooms(&aside), &uses(&[], &[])).len(), 1);
    }

    #[test]
    fn a_crate_without_a_floor_and_a_floor_without_a_crate_are_found() {
        let law = rooms(LAW);
        let one = [("new".to_owned(), Vec::new())];
        assert_eq!(judge(&law, &one).len(), 3);
    }
}
