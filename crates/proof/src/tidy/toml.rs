//! As much TOML as Cargo manifests and `floors.toml` need: sections, keys, and values as they
//! stand.

use std::collections::BTreeMap;

/// Sections, and in each the keys with their raw values.
pub(super) type Table = BTreeMap<String, BTreeMap<String, String>>;

/// Reads sections and keys; arrays over several lines become one value.
pub(super) fn parse(text: &str) -> Table {
    let mut table = Table::new();
    let mut section = String::new();
    let mut lines = text.lines().map(without_comment);
    while let Some(line) = lines.next() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.trim_matches(['[', ']']).trim().to_owned();
            table.entry(section.clone()).or_default();
        } else if let Some((key, value)) = line.split_once('=') {
            let mut value = value.trim().to_owned();
            while value.starts_with('[') && !value.ends_with(']') {
                let Some(more) = lines.next() else { break };
                value = value + " " + more.trim();
            }
            let keys = table.entry(section.clone()).or_default();
            keys.insert(key.trim().to_owned(), value);
        }
    }
    table
}

fn without_comment(line: &str) -> &str {
    let quotes_before = |at: usize| line[..at].matches('"').count();
    let mut comments = line.match_indices('#');
    match comments.find(|(at, _)| quotes_before(*at) % 2 == 0) {
        Some((at, _)) => &line[..at],
        None => line,
    }
}

/// The strings of an array of strings.
pub(super) fn strings(value: &str) -> Vec<String> {
    value
        .split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The names of all dependencies of a manifest: its own, those of its tests and of its build
/// script.
pub(super) fn dependencies(manifest: &Table) -> Vec<String> {
    let sections = manifest
        .iter()
        .filter(|(section, _)| section.ends_with("dependencies"));
    let mut names: Vec<String> = sections
        .flat_map(|(_, keys)| keys.keys())
        .filter_map(|key| key.split('.').next())
        .map(|name| name.trim_matches('"').to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_manifest_lists_its_dependencies() {
        let text = "[package]\nname = \"x\" # not a dependency\n[dependencies]\nenv.workspace = true\n\
            serde = { version = \"1\", features = [\"derive\"] }\n[target.'cfg(unix)'.dev-dependencies]\nlibc = \"0.2\"\n";
        assert_eq!(dependencies(&parse(text)), ["env", "libc", "serde"]);
    }

    #[test]
    fn an_array_may_span_lines() {
        let table = parse("[a]\nlist = [\"x\",\n  \"y#z\", # comment\n]\n");
        assert_eq!(strings(&table["a"]["list"]), ["x", "y#z"]);
    }
}
