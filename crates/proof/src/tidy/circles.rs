//! Files of one crate that import each other in a circle: nobody can read, move or test one of them
//! alone.
//!
//! A module and the modules in it may know each other: it is made of them, and they see what is
//! private in it. So a circle counts when it stays one without the imports that lead from a module
//! down into itself, or without those that lead from within a module up to it.

use super::Finding;
use super::imports::{self, Edges, Taken};
use super::modules::{self, Sources};
use super::tree::Tree;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

/// Files that import each other in a circle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Circle {
    /// The crate's folder.
    pub krate: String,
    /// All files from which each other one is reached, in order.
    pub files: Vec<String>,
    /// One of the shortest cycles: each file imports the next, and the last the first.
    pub shortest: Vec<String>,
    /// What these files take from each other.
    edges: Edges,
}

impl Circle {
    /// Every import in the circle, one a line.
    pub fn imports(&self) -> String {
        let mut out = String::new();
        for (from, taken) in &self.edges {
            for (to, Taken { line, names }) in taken {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                // Writing to a String cannot fail.
                let _ = writeln!(out, "  {from}:{line} -> {to} ({})", names.join(", "));
            }
        }
        out
    }

    /// The shortest cycle, with the line of each import.
    pub fn route(&self) -> String {
        let mut out = String::new();
        let next = self.shortest.iter().cycle().skip(1);
        for (from, to) in self.shortest.iter().zip(next) {
            let line = self.edges[from][to].line;
            // Writing to a String cannot fail.
            let _ = write!(out, "{from}:{line} -> ");
        }
        out + self.shortest.first().map_or("", String::as_str)
    }
}

/// The circles of all crates.
pub fn circles(tree: &Tree) -> Vec<Circle> {
    let mut out = Vec::new();
    for krate in tree.crates() {
        let mut edges = Edges::new();
        for root in roots(tree, krate) {
            imports::add_edges(&modules::modules(&root, tree), &mut edges);
        }
        let up = without(&edges, |from, to| is_within(to, from));
        let down = without(&edges, is_within);
        let both = [circles_of(krate, &up), circles_of(krate, &down)].concat();
        let is_part = |it: &Circle, of: &Circle| {
            it.files != of.files && it.files.iter().all(|file| of.files.contains(file))
        };
        let whole = both
            .iter()
            .filter(|it| !both.iter().any(|of| is_part(it, of)));
        for circle in whole {
            if !out.iter().any(|it: &Circle| it.files == circle.files) {
                out.push(circle.clone());
            }
        }
    }
    out
}

/// What two files take from each other, where these do not stand so.
fn without(edges: &Edges, stand_so: impl Fn(&str, &str) -> bool) -> Edges {
    let mut out = edges.clone();
    for (from, taken) in &mut out {
        taken.retain(|to, _| !stand_so(from, to));
    }
    out
}

/// The module in `file` is a part of the one in `of`.
fn is_within(file: &str, of: &str) -> bool {
    let folder = of
        .strip_suffix("mod.rs")
        .or_else(|| of.strip_suffix("lib.rs"));
    let folder = folder.or_else(|| of.strip_suffix("main.rs"));
    let stem = of.strip_suffix(".rs").unwrap_or(of);
    match folder {
        Some(folder) => file.starts_with(folder),
        None => file
            .strip_prefix(stem)
            .is_some_and(|rest| rest.starts_with('/')),
    }
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let all = circles(tree);
    let findings = all.iter().map(|it| Finding {
        subject: it.krate.clone(),
        count: it.files.len(),
        complaint: format!(
            "{}: {} files of crates/{} import each other in a circle; put what both sides need into a file \
             of its own (`tidy circles` shows all imports)",
            it.route(),
            it.files.len(),
            it.krate
        ),
    });
    findings.collect()
}

/// The root files of a crate's library and programs.
fn roots(tree: &Tree, krate: &str) -> Vec<String> {
    let source = format!("crates/{krate}/src/");
    let files = tree.files.iter().map(|it| it.path.as_str());
    let of_crate = files.filter_map(|path| Some((path, path.strip_prefix(&source)?)));
    let roots = of_crate.filter(|(_, rest)| {
        let is_program = rest
            .strip_prefix("bin/")
            .is_some_and(|rest| rest.ends_with("/main.rs") || !rest.contains('/'));
        *rest == "lib.rs" || *rest == "main.rs" || is_program
    });
    roots.map(|(path, _)| path.to_owned()).collect()
}

impl Sources for Tree {
    fn text(&self, path: &str) -> Option<&str> {
        Self::text(self, path)
    }
}

fn circles_of(krate: &str, edges: &Edges) -> Vec<Circle> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|file| (file.as_str(), reached(edges, file)))
        .collect();
    let is_in = |from: &str, to: &str| reached.get(from).is_some_and(|it| it.contains(to));
    let mut out = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (file, far) in &reached {
        if done.contains(file) || !far.contains(file) {
            continue;
        }
        let files: Vec<&str> = far.iter().copied().filter(|to| is_in(to, file)).collect();
        done.extend(&files);
        out.push(circle(krate, &files, edges));
    }
    out
}

/// All that a file imports, and what these import, and so on.
fn reached<'a>(edges: &'a Edges, file: &str) -> BTreeSet<&'a str> {
    let mut out = BTreeSet::new();
    let mut left = vec![file];
    while let Some(next) = left.pop() {
        for to in edges.get(next).into_iter().flat_map(BTreeMap::keys) {
            if out.insert(to.as_str()) {
                left.push(to);
            }
        }
    }
    out
}

fn circle(krate: &str, files: &[&str], edges: &Edges) -> Circle {
    let mut inner = Edges::new();
    for (from, taken) in edges
        .iter()
        .filter(|(from, _)| files.contains(&from.as_str()))
    {
        let taken = taken.iter().filter(|(to, _)| files.contains(&to.as_str()));
        let taken = taken.map(|(to, taken)| (to.clone(), taken.clone()));
        inner.insert(from.clone(), taken.collect());
    }
    let routes = files.iter().filter_map(|file| route(&inner, file));
    let shortest = routes.min_by_key(Vec::len).unwrap_or_default();
    Circle {
        krate: krate.to_owned(),
        files: files.iter().map(|it| (*it).to_owned()).collect(),
        shortest,
        edges: inner,
    }
}

/// The shortest path from a file back to it.
fn route(edges: &Edges, file: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut left = VecDeque::from([file]);
    while let Some(next) = left.pop_front() {
        for to in edges.get(next)?.keys() {
            if to == file {
                return Some(route_to(&before, file, next));
            }
            if !before.contains_key(to.as_str()) {
                before.insert(to, next);
                left.push_back(to);
            }
        }
    }
    None
}

fn route_to(before: &BTreeMap<&str, &str>, first: &str, last: &str) -> Vec<String> {
    let mut route = vec![last.to_owned()];
    let mut at = last;
    while let Some(previous) = before.get(at).filter(|_| at != first) {
        at = previous;
        route.push(at.to_owned());
    }
    route.reverse();
    route
}

#[cfg(test)]
mod test {
    use super::*;

    /// The circles of a crate of these files.
    fn of(files: &[(&str, &str)]) -> Vec<Circle> {
        circles(&Tree::of(files))
    }

    /// `first` and `second` are the whole of a circle, whatever else there is.
    fn is_pair(found: &[Circle], first: &str, second: &str) -> bool {
        let path = |name: &str| format!("crates/x/src/{name}.rs");
        found.len() == 1 && found[0].files == [path(first), path(second)]
    }

    #[test]
    fn two_files_that_import_each_other_are_a_circle_and_its_lines_are_reported() {
        let found = of(&[
            ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;"),
            ("crates/x/src/a.rs", "\nuse crate::b::B;\npub struct A(B);"),
            (
                "crates/x/src/b.rs",
                "pub struct B;\nfn f() -> super::a::A { g() }",
            ),
            ("crates/x/src/c.rs", "use super::{a::A, b::B};"),
        ]);
        assert!(is_pair(&found, "a", "b"), "{found:?}");
        let route = "crates/x/src/a.rs:2 -> crates/x/src/b.rs:2 -> crates/x/src/a.rs";
        assert_eq!(found[0].route(), route);
        assert_eq!(found[0].krate, "x");
        let imports = found[0].imports();
        assert!(
            imports.contains("crates/x/src/b.rs:2 -> crates/x/src/a.rs (A)"),
            "{imports}"
        );
    }

    #[test]
    fn a_re_export_stands_for_the_file_that_defines_the_item() {
        let found = of(&[
            (
                "crates/x/src/lib.rs",
                "mod a;\nmod b;\npub use a::A; pub use b::B as C;",
            ),
            ("crates/x/src/a.rs", "use crate::C; pub struct A;"),
            ("crates/x/src/b.rs", "pub struct B; fn f(_: crate::A) {}"),
        ]);
        assert!(is_pair(&found, "a", "b"), "{found:?}");
        let downwards = of(&[
            (
                "crates/x/src/lib.rs",
                "mod a;\nmod b;\npub use a::A; pub use b::B;",
            ),
            ("crates/x/src/a.rs", "use crate::B; pub struct A;"),
            ("crates/x/src/b.rs", "pub struct B;"),
        ]);
        assert_eq!(downwards, []);
    }

    #[test]
    fn a_module_and_those_in_it_may_know_each_other_and_others_may_not_come_between() {
        let child = (
            "crates/x/src/a/c.rs",
            "use crate::b::B; pub struct C(super::A);",
        );
        let parent = (
            "crates/x/src/a/mod.rs",
            "pub mod c; use c::C; pub struct A;",
        );
        let root = ("crates/x/src/lib.rs", "mod a; mod b;");
        let low = ("crates/x/src/b.rs", "pub struct B;");
        assert_eq!(of(&[root, parent, child, low]), []);
        for (knows, first) in [("a::A", "a/c"), ("a::c::C", "a/c")] {
            let high = format!("use crate::{knows}; pub struct B;");
            let found = of(&[root, parent, child, ("crates/x/src/b.rs", &high)]);
            assert_eq!(found.len(), 1, "{knows}: {found:?}");
            assert!(found[0].files.contains(&format!("crates/x/src/{first}.rs")));
        }
    }

    #[test]
    fn what_a_parent_uses_of_its_child_counts_and_what_it_hands_on_does_not() {
        let child = ("crates/x/src/a/c.rs", "use crate::b::B; pub struct C;");
        let other = ("crates/x/src/b.rs", "pub struct B(crate::a::A);");
        let root = ("crates/x/src/lib.rs", "mod a; mod b;");
        let parent = |text: &str| of(&[root, child, other, ("crates/x/src/a/mod.rs", text)]);
        assert_eq!(parent("mod c; pub use c::C; pub struct A;"), []);
        for using in [
            "mod c; pub use c::C; pub struct A; fn f() -> C {}",
            "mod c; use c::C; pub struct A;",
            "mod c; pub struct A; fn f() { c::C::new() }",
            "mod c; use self::c as b; pub struct A; fn f() { b::C::new() }",
            "mod c; use c::*; pub struct A; fn f() -> C {}",
        ] {
            assert_eq!(parent(using).len(), 1, "{using}");
        }
    }

    #[test]
    fn tests_other_crates_and_the_same_file_make_no_circle() {
        let found = of(&[
            (
                "crates/x/src/lib.rs",
                "mod a; mod b; mod c { pub fn f() { super::g() } } fn g() { c::f() }",
            ),
            (
                "crates/x/src/a.rs",
                "use crate::b::B; use b::Other; #[cfg(test)] mod test;",
            ),
            ("crates/x/src/a/test.rs", "use crate::b::B; use super::*;"),
            (
                "crates/x/src/b.rs",
                "pub struct B;\n#[cfg(test)] mod test { use crate::a::A; }",
            ),
            ("crates/b/src/lib.rs", "use x::a::A; pub struct Other;"),
        ]);
        assert_eq!(found, []);
    }

    #[test]
    fn a_long_circle_has_all_its_files_and_its_shortest_route() {
        let found = of(&[
            ("crates/x/src/main.rs", "mod a; mod b; mod c; mod d;"),
            ("crates/x/src/a.rs", "use crate::b::B; pub struct A;"),
            ("crates/x/src/b.rs", "use crate::c::C; pub struct B;"),
            ("crates/x/src/c.rs", "use crate::d::D; pub struct C;"),
            (
                "crates/x/src/d.rs",
                "use crate::{a::A, c::C}; pub struct D;",
            ),
        ]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].files.len(), 4);
        assert_eq!(found[0].shortest.len(), 2);
        let findings = check(&Tree::of(&[]));
        assert!(findings.is_empty());
    }

    #[test]
    fn macros_are_found_by_order_and_by_import() {
        let found = of(&[
            ("crates/x/src/lib.rs", "#[macro_use] mod a; mod b;"),
            (
                "crates/x/src/a.rs",
                "macro_rules! make { () => { $crate::b::B } }",
            ),
            ("crates/x/src/b.rs", "pub struct B; make!(C);"),
        ]);
        assert!(is_pair(&found, "a", "b"), "{found:?}");
    }
}
