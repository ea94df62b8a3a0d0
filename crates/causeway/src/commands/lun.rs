//! `causeway lun ...`.

use super::adopt::Adopted;
use super::context::{Context, Patch, Step, Tolerate, object_path};
use crate::args::{Assigned, Deleted, LunFields, Named, Renamed, lun_fields};
use crate::assign::{Keys, assignments, boolean, limit as bytes_or_none, number, usage};
use crate::completion::{BLOCK_SIZES, Kind, Place};
use crate::output::{in_flight, most, rounded};
use crate::output::{properties, table};
use clap::Subcommand;
use hyper::Method;
use manifest::code::Code;
use manifest::objects::{BackendSpec, CacheMode, Limit, LunSpec, TaskAbortedStatus, VOLATILE_RISK};
use manifest::problem::Problem;
use manifest::size::Size;
use manifest::view::LunView;
use serde_json::{Value, json};

/// What can be assigned, with the values where they are few.
pub(crate) const ASSIGNMENTS: &[&str] = &[
    "size=",
    "name=",
    "cache=write-back",
    "cache=write-through",
    "cache=volatile",
    "integrity=true",
    "integrity=false",
    "read_cache=",
    "bytes_in_flight_max=",
    "limit.iops=",
    "limit.bytes_per_second=",
    "limit.burst_seconds=",
    "limit=none",
    "shares=",
    "task_aborted_status=on",
    "task_aborted_status=off",
    "task_aborted_status=host",
];

/// What may stand for the fields of what is made.
pub(crate) const MADE: &[Place] = &lun_fields(&["lun", "create"]);

/// What may stand where.
pub(crate) const PLACES: &[Place] = &[
    (&["lun", "show"], "name", Kind::Name("lun")),
    (&["lun", "set"], "name", Kind::Name("lun")),
    (&["lun", "set"], "values", Kind::Assignment(ASSIGNMENTS)),
    (&["lun", "resize"], "name", Kind::Name("lun")),
    (&["lun", "rename"], "name", Kind::Name("lun")),
    (&["lun", "delete"], "name", Kind::Name("lun")),
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

#[derive(Subcommand, Debug)]
pub(crate) enum LunVerb {
    /// Make a LUN
    #[command(alias = "add")]
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        fields: LunFields,
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
    /// Change properties: size=20G, name=NEW, bytes_in_flight_max=64M|none, cache=MODE,
    /// integrity=true|false, read_cache=256M|none, limit.iops=5000|none,
    /// limit.bytes_per_second=200M|none, limit.burst_seconds=5|none, limit=none, shares=200|none,
    /// task_aborted_status=on|off|host; what a LUN has for ever is refused with the reason
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
    Purge(Named),
    /// Take LUNs into service that a pool holds and no object names, as what they were
    Adopt(Adopted),
}

const NOUN: &str = "lun";

const IDENTITY: &str = "hosts know the disk by it: it is made once and stays";

const KEYS: Keys = Keys {
    // All but size and name are refused by the daemon where they differ, with the reason.
    known: &[
        "size",
        "name",
        "block_size",
        "physical_block_size",
        "thin",
        "pool",
        "backend",
        "bytes_in_flight_max",
        "cache",
        "integrity",
        "read_cache",
        "limit",
        "limit.iops",
        "limit.bytes_per_second",
        "limit.burst_seconds",
        "shares",
        "task_aborted_status",
    ],
    fixed: &[
        ("naa", IDENTITY),
        ("serial", IDENTITY),
        (
            "state",
            "`causeway lun delete NAME` takes it out of service, `causeway lun restore NAME` back",
        ),
        ("grants", "see `causeway grant create --help`"),
        (
            "lun_id",
            "the number is a grant's: causeway grant set HOST:TARGET:LUN lun_id=N",
        ),
        (
            "read_only",
            "it is a grant's: causeway grant set HOST:TARGET:LUN read_only=true",
        ),
    ],
    later: &["mirror", "format"],
};

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
            context.output.show(&luns, |luns| list(luns));
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
        LunVerb::Purge(Named { name }) => {
            let step = Step::new(Method::POST, format!("{}/purge", of(name)), &());
            context.change(Tolerate::Nothing, &step)
        }
    }
}

/// The wanted LUN that the options describe.
pub(super) fn spec(name: &str, fields: &LunFields) -> Result<LunSpec, Problem> {
    let limit = Limit {
        iops: fields.limit_iops,
        bytes_per_second: fields.limit_bytes_per_second,
        burst_seconds: fields.limit_burst_seconds,
    };
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
        cache: fields.cache,
        integrity: fields.integrity,
        read_cache: fields.read_cache,
        limit: Some(limit).filter(|limit| *limit != Limit::default()),
        shares: fields.shares,
        task_aborted_status: fields.task_aborted_status,
    })
}

/// `memory`, or `block:PATH`.
fn backend_of(key: &str, text: &str) -> Result<BackendSpec, Problem> {
    if text == "memory" {
        return Ok(BackendSpec::Memory);
    }
    let Some(path) = text.strip_prefix("block:") else {
        let rule = "write memory, or block:/dev/...";
        return Err(usage(format!("{key}{text}: {rule}")));
    };
    let path = std::path::absolute(path).map_err(|error| usage(format!("{path}: {error}")))?;
    Ok(BackendSpec::Block(path))
}

fn set(context: &Context<'_>, assigned: &Assigned) -> Result<(), Problem> {
    let mut patch = Patch::new();
    let mut new_name = None;
    for (key, value) in assignments(&assigned.values, &KEYS)? {
        let value = match key {
            "name" => {
                new_name = Some(value);
                continue;
            }
            "size" => json!(value.parse::<Size>().map_err(usage)?),
            "bytes_in_flight_max" => json!(bytes_or_none(value)?),
            "pool" => json!(value),
            "backend" => json!(backend_of("backend=", value)?),
            "thin" | "integrity" => json!(boolean(key, value)?),
            "cache" => json!(value.parse::<CacheMode>().map_err(usage)?),
            "read_cache" => json!(bytes_or_none(value)?),
            "shares" if value == "none" => json!(0),
            "task_aborted_status" => json!(value.parse::<TaskAbortedStatus>().map_err(usage)?),
            "limit" | "limit.iops" | "limit.bytes_per_second" | "limit.burst_seconds" => {
                assign_limit(&mut patch, key, value)?;
                continue;
            }
            _ => json!(number(key, value, u16::MAX)?),
        };
        patch.insert(key.to_owned(), value);
    }
    context.patch(NOUN, &assigned.name, &patch, new_name)
}

/// One part of the limit, or `none`; the parts that are not named stay.
fn assign_limit(patch: &mut Patch, key: &str, value: &str) -> Result<(), Problem> {
    let part = key.strip_prefix("limit.");
    let Some(part) = part else {
        if value != "none" || patch.contains_key("limit") {
            let rule = "write limit=none alone, or its parts: limit.iops=N, limit.bytes_per_second=SIZE, \
                        limit.burst_seconds=N";
            return Err(usage(rule));
        }
        patch.insert(key.to_owned(), Value::Null);
        return Ok(());
    };
    let value = match (part, value) {
        (_, "none") => Value::Null,
        ("bytes_per_second", value) => json!(value.parse::<Size>().map_err(usage)?),
        (_, value) => {
            let number = value.parse::<u64>();
            json!(number.map_err(|_| usage(format!("{key}={value}: write a number, or none")))?)
        }
    };
    let limit = patch
        .entry("limit")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    let Value::Object(parts) = limit else {
        return Err(usage("limit=none stands beside a part of it"));
    };
    parts.insert(part.to_owned(), value);
    Ok(())
}

/// The mode with what it means where that is a risk.
fn cache(lun: &LunView) -> String {
    match lun.cache {
        CacheMode::Volatile if lun.backend != Some(BackendSpec::Memory) => {
            format!("{}: {VOLATILE_RISK}", lun.cache)
        }
        CacheMode::Volatile | CacheMode::WriteThrough | CacheMode::WriteBack => {
            lun.cache.to_string()
        }
    }
}

/// What its pool's journal means for it.
fn journal(lun: &LunView) -> String {
    let Some(journal) = &lun.journal else {
        return "none".to_owned();
    };
    let mut out = format!("{}, {}", journal.path, journal.state);
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

fn list(luns: &[LunView]) -> String {
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
            ]
        })
        .collect();
    table(
        &[
            "NAME",
            "STATE",
            "SIZE",
            "ALLOCATED",
            "BLOCKS",
            "BACKING",
            "GRANTS",
            "REASON",
        ],
        &rows,
    )
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

/// Its size, what it holds, and how often it helped.
fn read_cache(lun: &LunView) -> String {
    let Some(size) = lun.read_cache else {
        return "none".to_owned();
    };
    let Some(facts) = lun.cached else {
        return size.rounded();
    };
    let reads = facts.hits + facts.misses;
    let permille = facts
        .hits
        .saturating_mul(1000)
        .checked_div(reads)
        .unwrap_or(0);
    format!(
        "{}, holds {}; answered {}.{} % of {reads} reads",
        size.rounded(),
        rounded(facts.bytes),
        permille / 10,
        permille % 10
    )
}

/// Whether its blocks are checked, and what was found.
fn integrity(lun: &LunView) -> String {
    let Some(facts) = &lun.checksums else {
        return yes(lun.integrity);
    };
    if let Some(why) = &facts.broken {
        return format!("yes, but its checksums cannot be written: {why}");
    }
    if let Some(why) = &facts.full {
        return format!("yes, but there is no space for its checksums: {why}");
    }
    let each = match facts.block_bytes {
        512 => "512 bytes",
        _ => "4 KiB",
    };
    let mut told = format!("yes, a checksum for each {each}: ");
    match facts.bad_blocks {
        0 => told.push_str("no damage known"),
        1 => told.push_str("1 block is NOT what was written"),
        bad => told.push_str(&format!("{bad} blocks are NOT what was written")),
    }
    if facts.unchecked_blocks > 0 {
        told.push_str(&unchecked(lun, facts.unchecked_blocks));
    }
    if facts.repaired > 0 {
        told.push_str(&format!("; {} repaired", facts.repaired));
    }
    for place in &facts.places {
        told.push_str(&format!("\n{}", super::scrub::place(place)));
    }
    told
}

/// How much of it cannot be checked yet, and what to do about that.
fn unchecked(lun: &LunView, blocks: u64) -> String {
    let all = lun.size.bytes() / u64::from(lun.block_size).max(1);
    let permille = blocks.saturating_mul(1000).checked_div(all).unwrap_or(0);
    let (percent, name) = (permille / 10, &lun.name);
    format!(
        "\n{blocks} of {all} blocks ({percent} %) have no checksum yet and are given as they are: causeway scrub start {name}"
    )
}

/// What it is, and what it does.
fn shown_limit(lun: &LunView) -> String {
    let Some(facts) = lun.limited else {
        return lun.limit.to_string();
    };
    let mean = facts.waited_us.checked_div(facts.deferred).unwrap_or(0);
    format!(
        "{}; {} operations had to wait, {mean} us on average, {} wait now",
        lun.limit, facts.deferred, facts.waiting
    )
}

/// Its part of the pool, and what competing did.
fn shown_shares(lun: &LunView) -> String {
    let shares = lun
        .shares
        .map_or_else(|| "none".to_owned(), |it| it.to_string());
    let Some(facts) = lun.shared else {
        return shares;
    };
    let mean = facts.waited_us.checked_div(facts.deferred).unwrap_or(0);
    format!(
        "{shares}; {} operations had to wait, {mean} us on average, {} wait now",
        facts.deferred, facts.waiting
    )
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
        ("cache", cache(lun)),
        ("journal", journal(lun)),
        ("integrity", integrity(lun)),
        ("read cache", read_cache(lun)),
        ("limit", shown_limit(lun)),
        ("shares", shown_shares(lun)),
        ("TASK ABORTED", lun.task_aborted_status.to_string()),
    ]);
    if !lun.notices.is_empty() {
        lines.push(("notices", lun.notices.join("\n")));
    }
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
