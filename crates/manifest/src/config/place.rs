//! What holds a pool's LUNs: the kinds of pools, each with the fields of `[[pool]]` that say it.
//!
//! A new kind is a variant of [`Place`], a row of [`KINDS`] with all that depends on which it is,
//! its fields in the reference included, and a line in the node's table of kinds, which opens it:
//! this crate does not see what opens pools.

use crate::field::{Field, node};
use crate::toml_table::Table;
use std::path::{Path, PathBuf};

/// What holds a pool's LUNs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// A directory, with a file for each LUN; or a block device, as one member.
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
    /// Ceph's configuration file; `None`: the one that Ceph itself finds.
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

/// A kind of pool: the fields of `[[pool]]` that are its own, for reader and reference, and all
/// that depends on which it is.
struct PlaceKind {
    /// The field that says it.
    field: Field,
    /// What else it has.
    more: &'static [Field],
    /// Reads them; paths begin at the second.
    read: fn(&Table<'_, '_>, &Path) -> Option<Place>,
    /// As [`Place::paths`].
    paths: fn(&Place) -> &[PathBuf],
    /// As [`Place::is_stable`].
    is_stable: bool,
}

/// The kinds. The first is the one that is missed where there is none.
static KINDS: [&PlaceKind; 3] = [&PATH, &MEMBERS, &RBD];

static PATH: PlaceKind = PlaceKind {
    field: node(
        "pool.path",
        "path",
        "this or `members`",
        "a directory, made where it is missing; or a block device",
    ),
    more: &[],
    read: read_path,
    paths: |place| match place {
        Place::Path(path) => std::slice::from_ref(path),
        Place::Members { .. } | Place::Rbd(_) => &[],
    },
    is_stable: false,
};

static MEMBERS: PlaceKind = PlaceKind {
    field: node(
        "pool.members",
        "list of paths",
        "this or `path`",
        "files or block devices; see [Pools](operate/pools.md)",
    ),
    more: &[node(
        "pool.layout",
        "`\"span\"`, `\"stripe\"`",
        "with `members`",
        "how LUNs lie on the members",
    )],
    read: read_members,
    paths: |place| match place {
        Place::Members { members, .. } => members,
        Place::Path(_) | Place::Rbd(_) => &[],
    },
    is_stable: false,
};

static RBD: PlaceKind = PlaceKind {
    field: node(
        "pool.rbd",
        "`{ pool, conf, user }`",
        "this or `path`",
        "a pool of a Ceph cluster; without `conf` the one that Ceph finds, without `user` as `admin`",
    ),
    more: &[],
    read: read_rbd,
    paths: |_| &[],
    is_stable: true,
};

/// The fields of `[[pool]]` that say what holds its LUNs: first those of which it has one.
pub(crate) fn pool_fields() -> impl Iterator<Item = Field> {
    let which = KINDS.iter().map(|kind| kind.field);
    let more = KINDS.iter().flat_map(|kind| kind.more).copied();
    which.chain(more)
}

impl Place {
    fn kind(&self) -> &'static PlaceKind {
        match self {
            Self::Path(_) => &PATH,
            Self::Members { .. } => &MEMBERS,
            Self::Rbd(_) => &RBD,
        }
    }

    /// LUNs have parts of files or devices, and all of their space from the beginning.
    #[must_use]
    pub fn is_members(&self) -> bool {
        matches!(self, Self::Members { .. })
    }

    /// The field that says it.
    pub(crate) fn key(&self) -> &'static str {
        self.kind().field.name()
    }

    /// The files, devices and directories that are its alone, in the order of node.toml.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        (self.kind().paths)(self)
    }

    /// It makes stable whatever it acknowledges. So it has no journal: there is nothing to gain,
    /// and one of a node would not move with what lies elsewhere.
    #[must_use]
    pub fn is_stable(&self) -> bool {
        self.kind().is_stable
    }

    /// Reads it from a `[[pool]]`; `base`: where its paths begin.
    pub(crate) fn read(table: &Table<'_, '_>, base: &Path) -> Option<Self> {
        // All of them are known fields, whichever kind it is.
        for field in pool_fields() {
            let _known = table.value(field.name());
        }
        let has = |wanted: &str| table.keys().any(|key| key == wanted);
        let mut named = KINDS.iter().filter(|kind| has(kind.field.name()));
        let kind = named.next().unwrap_or(&KINDS[0]);
        if let Some(other) = named.next() {
            let all: Vec<&str> = KINDS.iter().map(|kind| kind.field.name()).collect();
            let rule = format!("write either {}", all.join(" or "));
            table.wrong(other.field.name(), rule);
            return None;
        }
        (kind.read)(table, base)
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
