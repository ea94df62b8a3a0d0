//! `causeway lun ...`.

use super::{Context, Tolerate};
use crate::assign::{assignments, usage};
use crate::cli::{LunFields, LunVerb};
use crate::client::segment;
use crate::output::{properties, table};
use control::code::Code;
use control::objects::{BackendSpec, LunSpec};
use control::problem::Problem;
use control::size::Size;
use control::view::LunView;
use hyper::Method;
use serde_json::{Value, json};

pub(super) fn run(context: &Context<'_>, verb: &LunVerb) -> Result<(), Problem> {
    let of = |name: &str| format!("/api/v1/luns/{}", segment(name));
    match verb {
        LunVerb::Create {
            name,
            fields,
            if_not_exists,
        } => {
            let tolerate = Tolerate::when(*if_not_exists, Code::AlreadyExists);
            let lun = spec(name, fields)?;
            context.change_unless(tolerate, Method::POST, "/api/v1/luns", &lun)
        }
        LunVerb::Ls { removed } => {
            let luns: Vec<LunView> = context
                .client
                .get(&format!("/api/v1/luns?removed={removed}"))?;
            context.output.show(&luns, |luns| list(luns));
            Ok(())
        }
        LunVerb::Show { name } => {
            let lun: LunView = context.client.get(&of(name))?;
            context.output.show(&lun, page);
            Ok(())
        }
        LunVerb::Set { name, values } => set(context, name, values),
        LunVerb::Resize { name, size } => {
            let body = json!({ "size": size });
            context.change(Method::POST, &format!("{}/resize", of(name)), &body)
        }
        LunVerb::Rename { name, to } => {
            let body = json!({ "to": to });
            context.change(Method::POST, &format!("{}/rename", of(name)), &body)
        }
        LunVerb::Delete { name, if_exists } => {
            let tolerate = Tolerate::when(*if_exists, Code::NotFound);
            context.change_unless(tolerate, Method::DELETE, &of(name), &())
        }
        LunVerb::Restore { name } => {
            context.change(Method::POST, &format!("{}/restore", of(name)), &())
        }
        LunVerb::Purge { name } => {
            context.change(Method::POST, &format!("{}/purge", of(name)), &())
        }
    }
}

/// The wanted LUN that the options describe.
pub(super) fn spec(name: &str, fields: &LunFields) -> Result<LunSpec, Problem> {
    let backend = match fields.backend.as_deref() {
        None => None,
        Some("memory") => Some(BackendSpec::Memory),
        Some(text) => {
            let path = text.strip_prefix("block:").ok_or_else(|| {
                usage(format!("--backend {text}: write memory, or block:/dev/..."))
            })?;
            let path =
                std::path::absolute(path).map_err(|error| usage(format!("{path}: {error}")))?;
            Some(BackendSpec::Block(path))
        }
    };
    Ok(LunSpec {
        name: name.to_owned(),
        size: fields.size,
        block_size: fields.block_size,
        physical_block_size: fields.physical_block_size,
        thin: fields.thin,
        pool: fields.pool.clone(),
        backend,
    })
}

fn set(context: &Context<'_>, name: &str, values: &[String]) -> Result<(), Problem> {
    let known = [
        "size",
        "name",
        "block_size",
        "physical_block_size",
        "thin",
        "pool",
    ];
    let mut patch = serde_json::Map::new();
    let mut new_name = None;
    for (key, value) in assignments(values, &known)? {
        let value = match key {
            "name" => {
                new_name = Some(value);
                continue;
            }
            "size" => json!(value.parse::<Size>().map_err(usage)?),
            "pool" => json!(value),
            _ => serde_json::from_str::<Value>(value).map_err(|_| {
                usage(format!(
                    "{key}={value} is neither a number nor true or false"
                ))
            })?,
        };
        patch.insert(key.to_owned(), value);
    }
    let path = format!("/api/v1/luns/{}", segment(name));
    if !patch.is_empty() {
        context.change(Method::PATCH, &path, &patch)?;
    }
    match new_name {
        Some(to) => context.change(
            Method::POST,
            &format!("{path}/rename"),
            &json!({ "to": to }),
        ),
        None => Ok(()),
    }
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

fn rounded(bytes: u64) -> String {
    Size::from_bytes(bytes).map_or_else(|| bytes.to_string(), Size::rounded)
}

/// `512`, `512e` or `4096`.
fn blocks(lun: &LunView) -> String {
    let emulated = lun.physical_block_size > lun.block_size;
    format!("{}{}", lun.block_size, if emulated { "e" } else { "" })
}

fn page(lun: &LunView) -> String {
    let ops: Vec<String> = lun
        .ops
        .iter()
        .map(|(op, facts)| format!("{op}: {} ({})", facts.ops, rounded(facts.bytes)))
        .collect();
    properties(&[
        ("name", lun.name.clone()),
        ("state", lun.state.clone()),
        ("reason", lun.reason.clone().unwrap_or_default()),
        (
            "size",
            format!("{} ({} bytes)", lun.size.rounded(), lun.size.bytes()),
        ),
        ("allocated", lun.allocated.map(rounded).unwrap_or_default()),
        (
            "blocks",
            format!(
                "{} logical, {} physical",
                lun.block_size, lun.physical_block_size
            ),
        ),
        ("thin", lun.thin.to_string()),
        ("backing", lun.backing.clone()),
        ("notices", lun.notices.join("\n")),
        ("naa", lun.naa.clone()),
        ("serial", lun.serial.clone()),
        ("grants", lun.grants.join("\n")),
        ("in flight", lun.in_flight.to_string()),
        ("operations", ops.join("\n")),
    ])
}
