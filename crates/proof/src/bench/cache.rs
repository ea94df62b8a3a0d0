//! The read cache, with the working set in it: beside memory, and beside the same file without a
//! cache. Once more behind a journal, where the writes of a mix are stable when they are
//! acknowledged.

use super::bar::{Bar, Limit};
use super::case::{PEER_CASES, READ_4K};
use super::disk::empty_pool;
use super::durable::{Daemon, SMALL_MIB};
use super::figures::Figures;
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::take_turns;
use super::servers::{self, Causeway, Server};
use super::special::{Found, rates};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Bytes of the units; the cache holds all of them.
const BYTES: u64 = 256 << 20;

const CACHE: &str = "read_cache = \"320MiB\"";

/// Reads everything in pieces that the cache keeps.
fn warm(client: &LoadClient, server: &Server) -> Result<(), String> {
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
pub fn read_cache(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let (pool, other) = (
        empty_pool(plan, "pool-cached")?,
        empty_pool(plan, "pool-plain")?,
    );
    let memory = servers::causeway(&plan.place, &Causeway::usual(BYTES))?;
    let how = |name, unit_lines| Causeway {
        name,
        unit_lines,
        ..Causeway::usual(BYTES)
    };
    let start = |pool: &Path, how| {
        let pool = Some(pool.to_owned());
        servers::causeway(&plan.place, &Causeway { pool, ..how })
    };
    let cached = start(&pool, how("cached", CACHE))?;
    let plain = start(&other, how("without a cache", ""))?;
    for server in [&memory, &cached, &plain] {
        client.fill(&server.unit)?;
    }
    let how = how("cached, behind a journal", CACHE);
    let journaled = Daemon::journaled(plan, client, &how, SMALL_MIB)?;
    for server in [&cached, &journaled.server] {
        warm(client, server)?;
    }
    let mut found = Found::default();
    let mixed = PEER_CASES.into_iter().find(|case| case.id == "m4k32");
    for case in [Some(READ_4K), mixed].into_iter().flatten() {
        let servers = [&memory, &cached, &plain, &journaled.server];
        let names = servers.iter().map(|server| server.name.clone());
        let mut run = |at: usize, warm_up| {
            let done = client.run(&servers[at].unit, &case, warm_up, plan.effort.time);
            journaled.is_destaged(plan)?;
            done
        };
        let row = take_turns(case, names.collect(), plan.effort, &mut run)?;
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
        let limit = if case.reads_only() { 1.015 } else { 1.0 };
        for (at, which) in [
            (1, "read cache"),
            (3, "write-back from a journal with a read cache"),
        ] {
            let what = format!("{which} : the same file without it, {}, IOPS", case.name);
            bar(what, row.ratio(at, 2, Figures::iops), limit);
        }
        found.rows.push(row);
    }
    drop((cached, plain));
    for pool in [pool, other] {
        let _gone = fs::remove_dir_all(&pool);
    }
    Ok(found)
}
