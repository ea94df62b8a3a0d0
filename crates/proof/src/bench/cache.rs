//! The read cache, with the working set in it: beside memory, and beside the same file without a cache.

use super::bar::{Bar, Limit};
use super::case::{PEER_CASES, READ_4K};
use super::disk::empty_pool;
use super::load::{Client, Figures};
use super::rounds::{Variant, compare};
use super::run::Plan;
use super::servers::{self, Causeway, Server};
use super::special::{Found, rates};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Bytes of the units; the cache holds all of them.
const BYTES: u64 = 256 << 20;

/// Reads everything in pieces that the cache keeps.
fn warm(client: &Client, server: &Server) -> Result<(), String> {
    let large = PEER_CASES.into_iter().find(|case| case.id == "r64k16");
    let case = large.ok_or("there is no case r64k16")?;
    let long = Duration::from_secs(3);
    client
        .run(&server.unit, &case, Duration::ZERO, long)
        .map(drop)
}

/// Random reads, and 70/30.
///
/// # Errors
/// What failed, for people.
pub fn read_cache(plan: &Plan, client: &Client) -> Result<Found, String> {
    let (pool, other) = (
        empty_pool(plan, "pool-cached")?,
        empty_pool(plan, "pool-plain")?,
    );
    let memory = servers::causeway(&plan.place, &Causeway::usual(BYTES))?;
    let start = |name, pool: &Path, unit_lines| {
        let how = Causeway {
            name,
            pool: Some(pool.to_owned()),
            unit_lines,
            ..Causeway::usual(BYTES)
        };
        servers::causeway(&plan.place, &how)
    };
    let cached = start("cached", &pool, "read_cache = \"320MiB\"")?;
    let plain = start("without a cache", &other, "")?;
    for server in [&memory, &cached, &plain] {
        client.fill(&server.unit)?;
    }
    warm(client, &cached)?;
    let mut found = Found::default();
    let mixed = PEER_CASES.into_iter().find(|case| case.id == "m4k32");
    for case in [Some(READ_4K), mixed].into_iter().flatten() {
        let variants = [&memory, &cached, &plain].map(|server| Variant {
            name: &server.name,
            unit: &server.unit,
            case,
        });
        let row = compare(client, &variants, plan.effort)?;
        let mut bar = |what: String, value, limit| {
            let detail = rates(&row);
            found.bars.push(Bar {
                what,
                value,
                limit: Limit::AtLeast(limit),
                detail,
            });
        };
        if case.reads_only() {
            let what = format!("read cache : memory, {}, IOPS", case.name);
            bar(what, row.ratio(1, 0, Figures::iops), 0.9);
        }
        let what = format!("read cache : the same file without it, {}, IOPS", case.name);
        let limit = if case.reads_only() { 1.015 } else { 1.0 };
        bar(what, row.ratio(1, 2, Figures::iops), limit);
        found.rows.push(row);
    }
    drop((cached, plain));
    for pool in [pool, other] {
        let _gone = fs::remove_dir_all(&pool);
    }
    Ok(found)
}
