//! `causeway lun ...`.

use super::adopt::Adopted;
use super::context::{Context, Patch, Step, Tolerate, object_path};
use super::lun_mirror::MirrorVerb;
use crate::args::{Assigned, Deleted, LunFields, Named, Renamed, lun_fields};
use crate::completion::{BLOCK_SIZES, CompletedArgument, Kind};
use crate::listed::{Listed, When};
use clap::Subcommand;
use hyper::Method;
use manifest::code::Code;
use manifest::objects::{BackendSpec, FIELDS, LunSpec, Part, Shown, StorageField};
use manifest::problem::Problem;
use manifest::size::Size;
use manifest::view::LunView;
use output::assign::{Keys, assignments, boolean, limit as bytes_or_none, number, usage};
use output::{Columns, Table, in_flight, most, properties, rounded};
use serde_json::json;

/// What can be assigned that is no storage field.
const ASSIGNMENTS: [&str; 3] = ["size=", "name=", "bytes_in_flight_max="];

/// Each storage field, and a part of it.
fn storage_parts() -> impl Iterator<Item = (&'static dyn StorageField, &'static Part)> {
    let parts = |field: &'static dyn StorageField| field.parts().iter().map(move |it| (field, it));
    FIELDS.into_iter().flat_map(parts)
}

/// What can be assigned, with the values where they are few.
pub(crate) fn all_assignments() -> Vec<String> {
    let mut all: Vec<String> = ASSIGNMENTS.map(str::to_owned).to_vec();
    for (_, part) in storage_parts() {
        let key = part.key;
        match part.words {
            [] => all.push(format!("{key}=")),
            words => all.extend(words.iter().map(|word| format!("{key}={word}"))),
        }
    }
    all
}

/// The help of `lun set`.
fn help_of_set() -> String {
    let storage: Vec<&str> = storage_parts().map(|(_, part)| part.example).collect();
    format!(
        "Change properties: size=20G, name=NEW, bytes_in_flight_max=64M|none, {}; what a LUN has for ever is refused \
         with the reason",
        storage.join(", ")
    )
}

/// What may stand for the fields of what is made.
pub(crate) const MADE: &[CompletedArgument] = &lun_fields(&["lun", "create"]);

/// What may stand where.
pub(crate) const COMPLETED: &[CompletedArgument] = &[
    (&["lun", "show"], "name", Kind::Name("lun")),
    (&["lun", "set"], "name", Kind::Name("lun")),
    (
        &["lun", "set"],
        "values",
        Kind::AssignmentOf(all_assignments),
    ),
    (&["lun", "resize"], "name", Kind::Name("lun")),
    (&["lun", "rename"], "name", Kind::Name("lun")),
    (&["lun", "delete"], "name", Kind::Name("lun")),
    (&["lun", "mirror", "add"], "name", Kind::Name("lun")),
    (&["lun", "mirror", "remove"], "name", Kind::Name("lun")),
    (&["lun", "mirror", "promote"], "name", Kind::Name("lun")),
    (&["lun", "restore"], "name", Kind::Removed),
    (&["lun", "purge"], "name", Kind::Removed),
    (&["lun", "adopt"], "files", Kind::Orphan),
    (&["lun", "adopt"], "pool", Kind::Name("pool")),
    (&["lun", "adopt"], "block_size", Kind::Words(BLOCK_SIZES)),
    (
        &["lun", "adopt"],
        "physical_block_size",
        Kind::Words(BLOCK_SIZES),
    ),
];

/// Which verbs print tables.
pub(crate) const LISTED: &[Listed] = &[
    (&["lun", "ls"], When::With("orphans"), super::adopt::COLUMNS),
    (&["lun", "ls"], When::Always, COLUMNS),
];

#[derive(Subcommand, Debug)]
pub(crate) enum LunVerb {
    /// Make a LUN
    #[command(alias = "add")]
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        fields: Box<LunFields>,
        /// Succeed where a LUN of this name exists
        #[arg(long)]
        if_not_exists: bool,
    },
    /// List LUNs
    #[command(alias = "list")]
    Ls {
        /// Those that were deleted and keep their data
        #[arg(long)]
        removed: bool,
        /// Those in the pools that no object names
        #[arg(long, conflicts_with = "removed")]
        orphans: bool,
    },
    /// Show all of a LUN
    Show(Named),
    #[command(about = help_of_set())]
    Set(Assigned),
    /// Change the size; shrinking cuts off the end
    Resize {
        /// Its name
        name: String,
        /// The new size
        #[arg(long)]
        size: Size,
    },
    /// Change the name; hosts see no difference
    Rename(Renamed),
    /// Take a LUN out of service; its data stays until `lun purge`
    #[command(alias = "rm")]
    Delete(Deleted),
    /// Bring a deleted LUN back with its data
    Restore(Named),
    /// Destroy the data of a deleted LUN
    Purge(Deleted),
    /// The copies that a LUN has on several nodes
    #[command(subcommand)]
    Mirror(MirrorVerb),
    /// Take LUNs into service that a pool holds and no object names, as what they were
    Adopt(Adopted),
}

const NOUN: &str = "lun";

const IDENTITY: &str = "hosts know the disk by it: it is made once and stays";

/// What can be assigned, by name.
fn keys() -> Keys {
    // All but size and name are refused by the daemon where they differ, with the reason.
    const OWN: [&str; 8] = [
        "size",
        "name",
        "block_size",
        "physical_block_size",
        "thin",
        "pool",
        "backend",
        "bytes_in_flight_max",
    ];
    let storage = storage_parts().map(|(_, part)| part.key);
    Keys {
        known: OWN.into_iter().chain(storage).collect(),
        fixed: FIXED,
        later: &["format"],
    }
}

const FIXED: &[(&str, &str)] = &[
    ("naa", IDENTITY),
    ("serial", IDENTITY),
    (
        "state",
        "`causeway lun delete NAME` takes it out of service, `causeway lun restore NAME` back",
    ),
    ("grants", "see `causeway grant create --help`"),
    ("mirror", "see `causeway lun mirror --help`"),
    (
        "lun_id",
        "the number is a grant's: causeway grant set HOST:TARGET:LUN lun_id=N",
    ),
    (
        "read_only",
        "it is a grant's: causeway grant set HOST:TARGET:LUN read_only=true",
    ),
];

pub(crate) fn run(context: &Context<'_>, verb: &LunVerb) -> Result<(), Problem> {
    let of = |name: &str| object_path(NOUN, name);
    match verb {
        LunVerb::Create {
            name,
            fields,
            if_not_exists,
        } => {
            let tolerate = Tolerate::when(*if_not_exists, Code::AlreadyExists);
            let step = Step::new(Method::POST, "/api/v1/luns", &spec(name, fields)?);
            context.change_object(tolerate, &[step], |_| Ok(of(name)))
        }
        LunVerb::Ls { orphans: true, .. } => super::adopt::ls(context),
        LunVerb::Adopt(adopted) => super::adopt::run(context, adopted),
        LunVerb::Ls { removed, .. } => {
            let luns: Vec<LunView> = context
                .client
                .get(&format!("/api/v1/luns?removed={removed}"))?;
            context.output.list(&luns, |luns| list(luns));
            Ok(())
        }
        LunVerb::Show(Named { name }) => {
            let lun: LunView = context.client.get(&of(name))?;
            context.output.show(&lun, page);
            Ok(())
        }
        LunVerb::Set(assigned) => set(context, assigned),
        LunVerb::Resize { name, size } => {
            let path = format!("{}/resize", of(name));
            let step = Step::new(Method::POST, path, &json!({ "size": size }));
            context.set(NOUN, name, Some(step), None)
        }
        LunVerb::Rename(renamed) => context.rename(NOUN, renamed),
        LunVerb::Delete(deleted) => context.delete(NOUN, deleted),
        LunVerb::Restore(Named { name }) => {
            let step = Step::new(Method::POST, format!("{}/restore", of(name)), &());
            context.set(NOUN, name, Some(step), None)
        }
        LunVerb::Mirror(verb) => super::lun_mirror::run(context, verb),
        LunVerb::Purge(Deleted { name, if_exists }) => {
            let step = Step::new(Method::POST, format!("{}/purge", of(name)), &());
            context.change(Tolerate::when(*if_exists, Code::NotFound), &step)
        }
    }
}

/// The wanted LUN that the options describe.
pub(super) fn spec(name: &str, fields: &LunFields) -> Result<LunSpec, Problem> {
    let backend = fields.backend.as_deref();
    let backend = backend.map(|text| backend_of("--backend ", text));
    Ok(LunSpec {
        name: name.to_owned(),
        size: fields.size,
        block_size: fields.block_size,
        physical_block_size: fields.physical_block_size,
        thin: fields.thin,
        pool: fields.pool.clone(),
        backend: backend.transpose()?,
        bytes_in_flight_max: fields.bytes_in_flight_max,
        storage: fields.storage.0,
    })
}

/// `memory`, `block:PATH` or `vhdx:PATH`.
fn backend_of(key: &str, text: &str) -> Result<BackendSpec, Problem> {
    BackendSpec::parse(text).map_err(|rule| usage(format!("{key}{text}: {rule}")))
}

fn set(context: &Context<'_>, assigned: &Assigned) -> Result<(), Problem> {
    let mut patch = Patch::new();
    let mut new_name = None;
    for (key, value) in assignments(&assigned.values, &keys())? {
        let value = match key {
            "name" => {
                new_name = Some(value);
                continue;
            }
            "size" => json!(value.parse::<Size>().map_err(usage)?),
            "bytes_in_flight_max" => json!(bytes_or_none(value)?),
            "pool" => json!(value),
            "backend" => json!(backend_of("backend=", value)?),
            "thin" => json!(boolean(key, value)?),
            key if let Some((field, part)) = storage_parts().find(|(_, part)| part.key == key) => {
                let before = patch.get(field.name());
                let value = field.assign(part, value, before).map_err(usage)?;
                patch.insert(field.name().to_owned(), value);
                continue;
            }
            _ => json!(number(key, value, u16::MAX)?),
        };
        patch.insert(key.to_owned(), value);
    }
    context.patch(NOUN, &assigned.name, &patch, new_name)
}

/// What its pool's journal means for it.
fn journal(lun: &LunView) -> String {
    let Some(journal) = &lun.journal else {
        return "none".to_owned();
    };
    let mut out = format!("{}, {}", journal.path, journal.state);
    if let Some(bytes) = journal.pending_bytes.filter(|bytes| *bytes > 0) {
        out.push_str(&format!(", {} of the LUN not destaged", rounded(bytes)));
    }
    if let Some(why) = &journal.destage_error {
        out.push_str(&format!("\ncannot be destaged: {why}"));
    }
    if journal.lost_blocks > 0 {
        let blocks = journal.lost_blocks;
        out.push_str(&format!(
            "\n{blocks} acknowledged blocks are damaged in it: reads of them fail until they are written again"
        ));
    }
    out
}

const COLUMNS: Columns = Columns::new(&[
    "NAME",
    "STATE",
    "SIZE",
    "ALLOCATED",
    "BLOCKS",
    "BACKING",
    "GRANTS",
    "REASON",
])
.wide(&["CACHE", "NAA", "SERIAL", "VERIFIED"]);

fn list(luns: &[LunView]) -> Table {
    let rows: Vec<Vec<String>> = luns
        .iter()
        .map(|lun| {
            vec![
                lun.name.clone(),
                lun.state.clone(),
                lun.size.rounded(),
                lun.allocated.map(rounded).unwrap_or_default(),
                blocks(lun),
                lun.backing.clone(),
                lun.grants.join(" "),
                lun.reason.clone().unwrap_or_default(),
                cache(lun),
                lun.naa.clone(),
                lun.serial.clone(),
                lun.verified.clone().unwrap_or_else(|| "never".to_owned()),
            ]
        })
        .collect();
    Table::new(COLUMNS, rows)
}

/// How its writes are kept.
fn cache(lun: &LunView) -> String {
    lun.storage
        .cache
        .map(|cache| cache.to_string())
        .unwrap_or_default()
}

/// `512`, `512e` or `4096`.
fn blocks(lun: &LunView) -> String {
    let emulated = lun.physical_block_size > lun.block_size;
    format!("{}{}", lun.block_size, if emulated { "e" } else { "" })
}

/// An operation as people call it.
fn op_name(op: &str) -> &str {
    match op {
        "caw" => "compare and write",
        "write_same" => "write same",
        "other" => "block status",
        op => op,
    }
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

fn page(lun: &LunView) -> String {
    let ops: Vec<String> = lun
        .ops
        .iter()
        .filter(|(_, facts)| facts.ops > 0)
        .map(|(op, facts)| format!("{}: {} ({})", op_name(op), facts.ops, rounded(facts.bytes)))
        .collect();
    let blocks = format!(
        "{} bytes logical, {} physical",
        lun.block_size, lun.physical_block_size
    );
    let size = format!("{} ({} bytes)", lun.size.rounded(), lun.size.bytes());
    let mut lines = vec![("name", lun.name.clone()), ("state", lun.state.clone())];
    lines.extend(lun.reason.clone().map(|reason| ("reason", reason)));
    lines.extend([
        ("size", size),
        ("allocated", lun.allocated.map(rounded).unwrap_or_default()),
        ("blocks", blocks),
        ("thin", yes(lun.thin)),
        ("backing", lun.backing.clone()),
    ]);
    lines.extend(lun.lies_on().map(|it| ("members", it)));
    lines.push(("journal", journal(lun)));
    let verified = lun.verified.clone().unwrap_or_else(|| "never".to_owned());
    lines.push(("read whole by a scrub", verified));
    let of = Shown {
        name: &lun.name,
        block_count: lun.size.bytes() / u64::from(lun.block_size).max(1),
        is_memory: lun.backend.as_ref().is_some_and(BackendSpec::is_memory),
        layers: &lun.layers,
    };
    lines.extend(FIELDS.iter().map(|it| it.shown(&lun.storage, &of)));
    lines.extend(lun.sentences());
    lines.extend([
        ("naa", lun.naa.clone()),
        ("serial", lun.serial.clone()),
        ("grants", lun.grants.join("\n")),
        ("in flight", in_flight(lun.in_flight, lun.bytes_in_flight)),
        ("in flight at most", most(lun.bytes_in_flight_max)),
        ("operations", ops.join("\n")),
    ]);
    properties(&lines)
}
