//! Licences of every package in the build, as SPDX expressions.

use super::{Complaint, json};
use std::io;
use std::path::Path;
use std::process::Command;

/// What may be linked: permissive licences only.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Checks every package that `Cargo.lock` names and that Linux needs.
///
/// # Errors
/// Where cargo does not run or answers nonsense.
pub fn check(root: &Path) -> io::Result<Vec<Complaint>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // What other systems need is not built, so it may not have been downloaded either.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", &platform])
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let metadata =
        json::parse(&text).ok_or_else(|| io::Error::other("cargo metadata is no JSON"))?;
    let packages = metadata.get("packages").map_or(&[][..], json::Json::items);
    if packages.is_empty() {
        return Err(io::Error::other("cargo metadata names no package"));
    }
    Ok(packages.iter().filter_map(judge).collect())
}

fn judge(package: &json::Json) -> Option<Complaint> {
    let text = |key| package.get(key).and_then(json::Json::text);
    let name = text("name").unwrap_or("a package without a name");
    match text("license") {
        None => Some(format!("{name} states no licence")),
        Some(licence) if allows(licence) => None,
        Some(licence) => Some(format!(
            "{name} is under {licence}, which is not on the list"
        )),
    }
}

/// An SPDX expression (SPDX specification, annex "SPDX license expressions") that leaves a choice
/// which is on the list. AND binds more than OR; a slash is how old manifests write OR.
fn allows(expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = either(&words, &mut at);
    verdict && at == words.len()
}

fn either(words: &[&str], at: &mut usize) -> bool {
    let mut verdict = both(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= both(words, at);
    }
    verdict
}

fn both(words: &[&str], at: &mut usize) -> bool {
    let mut verdict = one(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(words, at);
    }
    verdict
}

fn one(words: &[&str], at: &mut usize) -> bool {
    let Some(word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if *word == "(" {
        let verdict = either(words, at);
        let closed = words.get(*at) == Some(&")");
        *at += usize::from(closed);
        return verdict && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return ALLOWED.contains(&format!("{word} WITH {exception}").as_str());
    }
    ALLOWED.contains(word)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_choice_is_enough_and_a_demand_is_not() {
        for fine in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-2.0 OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
        ] {
            assert!(allows(fine), "{fine}");
        }
        for bad in [
            "GPL-3.0-only",
            "MIT AND GPL-2.0",
            "(MIT OR Apache-2.0) AND MPL-2.0",
            "Apache-2.0 WITH Other-exception",
            "AGPL-3.0",
            "WTFPL",
            "(MIT",
            "",
        ] {
            assert!(!allows(bad), "{bad}");
        }
    }
}
