//! What holds a pool's LUNs: the kinds of pools, each with the fields of `[[pool]]` that say it.
//!
//! A new kind is a line in [`KINDS`], a variant of [`Place`], and a line in the node's table of
//! kinds, which opens it.

use crate::toml_table::Table;
use std::path::{Path, PathBuf};

/// What holds a pool's LUNs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A directory: a file for each LUN.
    Path(PathBuf),
    /// Files or block devices, of each of which a LUN has a part.
    Members {
        /// All of them, in the order of the file, which says nothing.
        members: Vec<PathBuf>,
        /// How LUNs lie on them.
        layout: Layout,
    },
}

/// How LUNs lie on a pool's members.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One after the other.
    Span,
    /// In stripes over all of them.
    Stripe,
}

/// Reads the fields of a kind; paths begin at the second.
type Read = fn(&Table<'_, '_>, &Path) -> Option<Place>;

/// The kinds, by the field that says which it is. The first is the one that is missed where there
/// is none.
const KINDS: [(&str, Read); 2] = [("path", read_path), ("members", read_members)];

impl Place {
    /// The field that says it.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Path(_) => "path",
            Self::Members { .. } => "members",
        }
    }

    /// The files, devices and directories that are its alone, in the order of node.toml.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Path(path) => std::slice::from_ref(path),
            Self::Members { members, .. } => members,
        }
    }

    /// It makes stable whatever it acknowledges. So it has no journal: there is nothing to gain,
    /// and one of a node would not move with what lies elsewhere.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        match self {
            Self::Path(_) | Self::Members { .. } => false,
        }
    }

    /// Reads it from a `[[pool]]`; `base`: where its paths begin.
    pub(crate) fn read(table: &Table<'_, '_>, base: &Path) -> Option<Self> {
        // All of them are known fields, whichever kind it is.
        for key in KINDS.iter().map(|(key, _)| *key).chain(["layout"]) {
            let _known = table.value(key);
        }
        let has = |wanted: &str| table.keys().any(|key| key == wanted);
        let mut named = KINDS.iter().filter(|(key, _)| has(key));
        let (_, read) = named.next().unwrap_or(&KINDS[0]);
        let others: Vec<&str> = named.map(|(key, _)| *key).collect();
        if let Some(other) = others.first() {
            let all: Vec<&str> = KINDS.iter().map(|(key, _)| *key).collect();
            table.wrong(other, format!("write either {}", all.join(" or ")));
            return None;
        }
        read(table, base)
    }
}

fn read_path(table: &Table<'_, '_>, base: &Path) -> Option<Place> {
    if table.text("layout").is_some() {
        table.wrong(
            "layout",
            "it is how LUNs lie on members, and there are none",
        );
    }
    let path = table.required_text("path", "path = \"data/pool\"")?;
    Some(Place::Path(base.join(path.value)))
}

fn read_members(table: &Table<'_, '_>, base: &Path) -> Option<Place> {
    const LAYOUTS: &str = "write \"span\" or \"stripe\"";
    let layout = table.text("layout");
    let has_layout = layout.is_some();
    let layout = match layout.as_ref().map(|text| text.value.as_str()) {
        None | Some("span") => Layout::Span,
        Some("stripe") => Layout::Stripe,
        Some(other) => {
            table.wrong("layout", format!("\"{other}\": {LAYOUTS}"));
            Layout::Span
        }
    };
    let members = table.texts("members")?;
    if members.is_empty() {
        table.wrong("members", "an empty list; name files or block devices");
        return None;
    }
    if members.len() > 1 && !has_layout {
        table.missing("layout", "layout = \"span\", or \"stripe\"");
    }
    let members = members.iter().map(|member| base.join(&member.value));
    Some(Place::Members {
        members: members.collect(),
        layout,
    })
}
