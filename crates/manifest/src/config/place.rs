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
    /// A pool of a Ceph cluster: an image for each LUN.
    Rbd(RbdPlace),
}

/// A pool of a Ceph cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RbdPlace {
    /// Its name in the cluster.
    pub pool: String,
    /// Ceph's configuration file; `None`: where Ceph itself looks.
    pub conf: Option<PathBuf>,
    /// The user's name without `client.`.
    pub user: String,
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
const KINDS: [(&str, Read); 3] = [
    ("path", read_path),
    ("members", read_members),
    ("rbd", read_rbd),
];

impl Place {
    /// The field that says it.
    pub(crate) fn key(&self) -> &'static str {
        match self {
            Self::Path(_) => "path",
            Self::Members { .. } => "members",
            Self::Rbd(_) => "rbd",
        }
    }

    /// The files, devices and directories that are its alone, in the order of node.toml.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        match self {
            Self::Path(path) => std::slice::from_ref(path),
            Self::Members { members, .. } => members,
            Self::Rbd(_) => &[],
        }
    }

    /// It makes stable whatever it acknowledges. So it has no journal: there is nothing to gain,
    /// and one of a node would not move with what lies elsewhere.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        match self {
            Self::Path(_) | Self::Members { .. } => false,
            Self::Rbd(_) => true,
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

fn read_rbd(table: &Table<'_, '_>, base: &Path) -> Option<Place> {
    let inside = table.table("rbd")?;
    let pool = inside.required_text("pool", "rbd = { pool = \"rbd\" }");
    let conf = inside.text("conf");
    let user = inside.text("user");
    inside.finish(&[]);
    let pool = pool?.value;
    let user = user.map_or_else(|| "admin".to_owned(), |user| user.value);
    if pool.is_empty() {
        table.wrong("rbd", "pool is empty; name a pool of the cluster");
        return None;
    }
    if user.is_empty() || user.contains('.') {
        table.wrong(
            "rbd",
            "user is a name without \"client.\", such as \"causeway\"",
        );
        return None;
    }
    Some(Place::Rbd(RbdPlace {
        pool,
        conf: conf.map(|conf| base.join(conf.value)),
        user,
    }))
}
