//! `apt purge` removes all that the daemon keeps about itself, secrets first of all, and nothing of
//! anybody's data. The oracle is the list of files in `docs/formats/state.md`; the script that runs
//! is the package's own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn repository(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first cells of the first table, as names of files that may be there. What stands in quotes
/// with a blank between (`spare-1` to `spare-8`) are names of their own.
fn listed() -> Vec<String> {
    let page = repository("docs/formats/state.md");
    let table = page.lines().skip_while(|line| !line.starts_with("|---"));
    let rows = table.skip(1).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(1).map(str::to_owned));
    let names: Vec<String> = cells
        .flat_map(|cell| {
            let quoted = cell.split('`').skip(1).step_by(2);
            quoted.map(str::to_owned).collect::<Vec<_>>()
        })
        .map(|name| {
            let name = name.replace("GGGGGGGGGG", "0000000017");
            let name = name.replace("NAA", "naa.6001405f00000000000000000000abcd");
            name.replace("POOL", "default").replace('N', "3")
        })
        .collect();
    assert!(names.len() > 20, "the table was not read: {names:?}");
    names
}

/// What stays: checksums and history of a LUN belong to its data, as the LUN's own file does.
fn is_of_a_lun(name: &str) -> bool {
    name.ends_with(".checksums") || name.ends_with(".changes")
}

struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let name = format!("causeway-purge-{test}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn put(&self, name: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "a secret").unwrap();
    }

    /// Runs what the package's script does with the state directory.
    fn purge(&self) {
        let script = repository("dist/debian/postrm");
        let (functions, _) = script.split_once("case \"$1\" in").unwrap();
        let line = "state=/var/lib/causeway\n";
        assert!(functions.contains(line));
        let functions = functions.replace(line, &format!("state={}\n", self.0.display()));
        let status = Command::new("sh")
            .args(["-c", &format!("{functions}\nremove_state")])
            .status();
        assert!(status.unwrap().success());
    }

    fn left(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![self.0.clone()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    open.push(path);
                } else {
                    let below = path.strip_prefix(&self.0).unwrap();
                    found.push(below.display().to_string());
                }
            }
        }
        found.sort();
        found
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn a_purge_leaves_data_of_luns_and_nothing_else_of_what_stands_in_a_state_directory() {
    let directory = Directory::new("all");
    let (kept, removed): (Vec<String>, _) = listed().into_iter().partition(|it| is_of_a_lun(it));
    for name in &removed {
        directory.put(name);
        if name == "lock" {
            continue; // It is never replaced.
        }
        // A replacement that a crash cut off, and a damaged file that is kept for a person.
        directory.put(&format!("{name}.new"));
        directory.put(&format!("{name}.aside"));
    }
    for file in ["events.db", "history.db"] {
        for end in ["-wal", "-shm", ".damaged-20261127T101112.123Z"] {
            directory.put(&format!("{file}{end}"));
        }
    }
    let mut data = kept;
    data.extend(["pool/17.lun", "pool/pool.toml", "journal", "luns/a.img"].map(str::to_owned));
    for name in &data {
        directory.put(name);
    }
    directory.purge();
    data.sort();
    assert_eq!(directory.left(), data);
}

#[test]
fn a_purge_leaves_nothing_where_the_shipped_pool_holds_no_lun() {
    let directory = Directory::new("empty");
    let names = ["pool/pool.toml", "pool/saved.json", "journal", "jobs.json"];
    for name in names {
        directory.put(name);
    }
    directory.purge();
    assert_eq!(directory.left(), Vec::<String>::new());
}
