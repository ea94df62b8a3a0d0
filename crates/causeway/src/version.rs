//! What the program was built from.

use std::sync::LazyLock;

/// The commit, as the Makefile says it; empty: a build without it. It is read here alone, in the
/// last crate: another commit compiles no other one anew.
pub(crate) const COMMIT: &str = match option_env!("CAUSEWAY_COMMIT") {
    Some(commit) => commit,
    None => "",
};

/// What `causeway --version` says.
pub(crate) static VERSION: LazyLock<String> = LazyLock::new(|| version(COMMIT));

fn version(commit: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if commit.is_empty() {
        return version.to_owned();
    }
    format!("{version} ({commit})")
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_version_names_the_commit_where_the_build_said_it() {
        let version_alone = env!("CARGO_PKG_VERSION");
        assert_eq!(version(""), version_alone);
        let with_commit = format!("{version_alone} (0123456789ab-dirty)");
        assert_eq!(version("0123456789ab-dirty"), with_commit);
    }

    /// The release program is built by one more target than these say: it would lose its commit
    /// there, and be linked anew by the next that says it.
    #[test]
    fn each_target_that_builds_the_release_program_says_the_commit() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap();
        let saying = makefile
            .lines()
            .find_map(|line| line.split_once(": export CAUSEWAY_COMMIT = "));
        let saying: BTreeSet<&str> = saying.expect("such a line").0.split(' ').collect();
        let mut building = BTreeSet::from(["deb", "image"]);
        let mut target = "";
        for line in makefile.lines() {
            let recipe = line.strip_prefix('\t');
            let Some(recipe) = recipe else {
                target = line.split(':').next().unwrap_or_default();
                continue;
            };
            let script = recipe.trim_start_matches('@').split(' ').next();
            let script = root.join(script.unwrap_or_default());
            let script = script.is_file().then(|| std::fs::read_to_string(script));
            let script = script.map_or_else(String::new, Result::unwrap);
            let builds = "cargo build --release --locked -p causeway ";
            if recipe.contains(builds) || script.contains(builds) {
                building.insert(target);
            }
        }
        assert_eq!(building, saying);
    }
}
