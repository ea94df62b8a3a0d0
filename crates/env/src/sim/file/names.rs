//! Names of files and directories in two states.

use super::super::fault::Fault;
use super::super::random::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entry {
    Directory,
    File(u64),
}

type Edit = (PathBuf, Option<Entry>);

/// Edits of one directory that take effect together.
struct Pending {
    directory: PathBuf,
    edits: Vec<Edit>,
}

/// The tree: what lookups see, and what a power cut leaves.
pub(super) struct Names {
    volatile: BTreeMap<PathBuf, Entry>,
    durable: BTreeMap<PathBuf, Entry>,
    pending: Vec<Pending>,
}

/// One way to write each path: absolute, without `.` and `..`. Relative ones start at the root.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    out
}

fn parent(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("/")).to_owned()
}

fn edit(names: &mut BTreeMap<PathBuf, Entry>, (path, entry): &Edit) {
    match entry {
        Some(entry) => names.insert(path.clone(), *entry),
        None => names.remove(path),
    };
}

impl Names {
    pub(super) fn new() -> Self {
        let root = BTreeMap::from([(PathBuf::from("/"), Entry::Directory)]);
        Self {
            volatile: root.clone(),
            durable: root,
            pending: Vec::new(),
        }
    }

    pub(super) fn get(&self, path: &Path) -> Option<Entry> {
        self.volatile.get(path).copied()
    }

    /// What a name that survives a power cut stands for.
    pub(super) fn get_durable(&self, path: &Path) -> Option<Entry> {
        self.durable.get(path).copied()
    }

    pub(super) fn has_parent(&self, path: &Path) -> bool {
        self.get(&parent(path)) == Some(Entry::Directory)
    }

    /// The entries of a directory.
    pub(super) fn list(&self, directory: &Path) -> Vec<(PathBuf, Entry)> {
        let inside = |path: &Path| path.parent() == Some(directory);
        let all = self.volatile.iter().filter(|(path, _)| inside(path));
        all.map(|(path, entry)| (path.clone(), *entry)).collect()
    }

    /// The files that have a name.
    pub(super) fn files(&self) -> impl Iterator<Item = u64> {
        self.volatile.values().filter_map(|entry| match entry {
            Entry::File(inode) => Some(*inode),
            Entry::Directory => None,
        })
    }

    pub(super) fn set(&mut self, path: &Path, entry: Option<Entry>) {
        self.change(parent(path), vec![(path.to_owned(), entry)]);
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, entry: Entry) {
        let removed = (from.to_owned(), None);
        let added = (to.to_owned(), Some(entry));
        if parent(from) == parent(to) {
            self.change(parent(to), vec![removed, added]);
        } else {
            self.change(parent(to), vec![added]);
            self.change(parent(from), vec![removed]);
        }
    }

    /// Makes a name durable at once, for devices.
    pub(super) fn set_durable(&mut self, path: &Path, entry: Entry) {
        let mut at = PathBuf::new();
        for component in parent(path).components() {
            at.push(component);
            self.volatile.insert(at.clone(), Entry::Directory);
            self.durable.insert(at.clone(), Entry::Directory);
        }
        self.volatile.insert(path.to_owned(), entry);
        self.durable.insert(path.to_owned(), entry);
    }

    /// All names that survive a power cut.
    pub(super) fn durable(&self) -> &BTreeMap<PathBuf, Entry> {
        &self.durable
    }

    /// There are these names and no others, durably.
    pub(super) fn are(&mut self, names: &BTreeMap<PathBuf, Entry>) {
        self.pending.clear();
        self.volatile = names.clone();
        self.durable = names.clone();
    }

    fn change(&mut self, directory: PathBuf, edits: Vec<Edit>) {
        for one in &edits {
            edit(&mut self.volatile, one);
        }
        self.pending.push(Pending { directory, edits });
    }

    /// Makes the names in a directory durable.
    pub(super) fn sync(&mut self, directory: &Path) {
        let all = std::mem::take(&mut self.pending);
        for change in all {
            if change.directory == directory {
                for one in &change.edits {
                    edit(&mut self.durable, one);
                }
            } else {
                self.pending.push(change);
            }
        }
    }

    /// Drops or keeps each change of names that no flush of the directory made stable, as `rng`
    /// says.
    pub(super) fn power_cut(&mut self, rng: &mut Rng, hit: &mut impl FnMut(Fault)) {
        for change in std::mem::take(&mut self.pending) {
            if rng.below(2) == 0 {
                hit(Fault::CutNameDropped);
                continue;
            }
            for one in &change.edits {
                edit(&mut self.durable, one);
            }
        }
        // In order of path a parent comes before its children.
        let mut there = BTreeSet::from([PathBuf::from("/")]);
        self.durable.retain(|path, entry| {
            let kept = path == Path::new("/") || there.contains(&parent(path));
            if kept && *entry == Entry::Directory {
                there.insert(path.clone());
            }
            kept
        });
        self.volatile = self.durable.clone();
    }
}
