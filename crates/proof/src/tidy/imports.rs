//! Which file of a crate takes what from which: names are followed through re-exports to the file
//! that defines them.

use super::modules::{Import, Module};
use std::collections::{BTreeMap, BTreeSet};

/// What one file takes from another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Taken {
    /// Where first.
    pub(super) line: usize,
    pub(super) names: BTreeSet<String>,
}

/// What each file takes from each other.
pub(super) type Edges = BTreeMap<String, BTreeMap<String, Taken>>;

/// Adds what the files of the crate of these modules take from each other.
pub(super) fn add_edges(modules: &[Module], edges: &mut Edges) {
    let names = Names {
        modules,
        macros: macros(modules),
    };
    for (at, module) in modules.iter().enumerate() {
        for (to, line, name) in names.taken_by(at) {
            if to == module.file {
                continue;
            }
            let from = edges.entry(module.file.clone()).or_default();
            let taken = from.entry(to).or_insert_with(|| Taken {
                line,
                names: BTreeSet::new(),
            });
            taken.line = taken.line.min(line);
            taken.names.insert(name);
        }
    }
}

/// Macros are also found by the order of modules: each with the file that defines it.
fn macros(modules: &[Module]) -> BTreeMap<&str, &str> {
    let all = modules.iter();
    all.flat_map(|module| {
        let macros = module.macros.iter();
        macros.map(|name| (name.as_str(), module.file.as_str()))
    })
    .collect()
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    /// Something that this module defines.
    Item(usize),
    Module(usize),
}

struct Names<'a> {
    modules: &'a [Module],
    macros: BTreeMap<&'a str, &'a str>,
}

/// Re-exports of re-exports that are followed.
const DEPTH_MAX: usize = 12;

impl Names<'_> {
    fn file(&self, module: usize) -> String {
        self.modules[module].file.clone()
    }

    /// File, line and name of all that a module takes.
    fn taken_by(&self, at: usize) -> Vec<(String, usize, String)> {
        let module = &self.modules[at];
        let mut out = Vec::new();
        for import in &module.imports {
            out.extend(self.taken_by_import(at, import));
        }
        for mention in &module.mentions {
            let name = mention.path.last().cloned().unwrap_or_default();
            if let Some(owner) = self.owner(at, &mention.path) {
                out.push((self.file(owner), mention.line, name));
            }
        }
        for (name, line) in &module.calls {
            let is_known = self.find_in(at, std::slice::from_ref(name), 0).is_some();
            if let Some(file) = self.macros.get(name.as_str()).filter(|_| !is_known) {
                out.push(((*file).to_owned(), *line, name.clone()));
            }
        }
        out
    }

    /// What is only handed on is not taken, and neither is a module as a whole: what is used of it
    /// is mentioned.
    fn taken_by_import(&self, at: usize, import: &Import) -> Vec<(String, usize, String)> {
        let module = &self.modules[at];
        if import.name == "*" {
            return self.taken_by_glob(at, import);
        }
        if import.is_public && !module.words.contains_key(&import.name) {
            return Vec::new();
        }
        match self.find(at, &import.path, 0) {
            Some(Found::Item(owner)) => {
                let name = import.path.last().cloned().unwrap_or_default();
                vec![(self.file(owner), import.line, name)]
            }
            Some(Found::Module(_)) => Vec::new(),
            None => {
                let owner = self.owner(at, &import.path);
                owner
                    .map(|it| (self.file(it), import.line, import.name.clone()))
                    .into_iter()
                    .collect()
            }
        }
    }

    fn taken_by_glob(&self, at: usize, import: &Import) -> Vec<(String, usize, String)> {
        let module = &self.modules[at];
        let Some(Found::Module(target)) = self.find(at, &import.path, 0) else {
            return Vec::new();
        };
        let is_own = |name: &String| {
            module.items.contains(name) || module.imports.iter().any(|it| it.name == *name)
        };
        let words = module.words.keys().filter(|it| !is_own(it));
        words
            .filter_map(
                |word| match self.find_in(target, std::slice::from_ref(word), 0)? {
                    Found::Item(owner) => Some((self.file(owner), import.line, word.clone())),
                    Found::Module(_) => None,
                },
            )
            .collect()
    }

    /// The module that defines what a path leads to; the last one on the way where a macro may have
    /// made it.
    fn owner(&self, at: usize, path: &[String]) -> Option<usize> {
        let first = path.first()?;
        let is_ours = ["crate", "self", "super"].contains(&first.as_str())
            || self.find_in(at, std::slice::from_ref(first), 0).is_some();
        if !is_ours {
            return None;
        }
        if let Some(found) = self.find(at, path, 0) {
            return match found {
                Found::Item(owner) => Some(owner),
                Found::Module(_) => None,
            };
        }
        let shorter = (1..path.len()).rev().map(|length| &path[..length]);
        shorter
            .filter_map(|path| self.find(at, path, 0))
            .next()
            .map(|found| match found {
                Found::Item(owner) | Found::Module(owner) => owner,
            })
    }

    fn find(&self, at: usize, path: &[String], depth: usize) -> Option<Found> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "" => None,
            "crate" => self.find_in(0, rest, depth),
            "self" => self.find_in(at, rest, depth),
            "super" => {
                let mut up = self.modules[at].parent?;
                let mut rest = rest;
                while let Some((first, more)) = rest.split_first().filter(|it| it.0 == "super") {
                    debug_assert_eq!(first, "super");
                    up = self.modules[up].parent?;
                    rest = more;
                }
                self.find_in(up, rest, depth)
            }
            _ => self.find_in(at, path, depth),
        }
    }

    fn find_in(&self, at: usize, path: &[String], depth: usize) -> Option<Found> {
        let Some((name, rest)) = path.split_first() else {
            return Some(Found::Module(at));
        };
        if depth > DEPTH_MAX {
            return None;
        }
        let module = &self.modules[at];
        let child = module.children.get(name);
        if let Some(child) = child.filter(|_| !rest.is_empty()) {
            return self.find_in(*child, rest, depth + 1);
        }
        if module.items.contains(name) {
            return Some(Found::Item(at));
        }
        let named = module.imports.iter().filter(|it| it.name == *name);
        let named = named.filter(|it| it.path.first() != Some(name));
        for import in named {
            let path = [import.path.as_slice(), rest].concat();
            if let Some(found) = self.find(at, &path, depth + 1) {
                return Some(found);
            }
        }
        if let Some(child) = child {
            return Some(Found::Module(*child));
        }
        let globs = module.imports.iter().filter(|it| it.name == "*");
        globs
            .filter_map(|glob| match self.find(at, &glob.path, depth + 1)? {
                Found::Module(target) if target != at => self.find_in(target, path, depth + 1),
                Found::Module(_) | Found::Item(_) => None,
            })
            .next()
    }
}
