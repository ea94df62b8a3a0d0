//! What checksums cost: a unit in a pool with a journal beside the same with checksums, all of
//! whose map is in memory; and beside one with a checksum for each 512 bytes, which are its
//! physical blocks.
//!
//! What counts is the server's processor time from the first command until it has come to rest:
//! what the journal destages, and the checksums that are made then, belong to the writes that
//! were answered before.

use super::bar::{Bar, Limit};
use super::case::{PEER_CASES, READ_4K, WRITE_4K};
use super::disk::empty_pool;
use super::figures::Figures;
use super::load::LoadClient;
use super::plan::Plan;
use super::rounds::{Effort, take_turns};
use super::servers::{self, Causeway, Server, pause};
use super::special::{Found, rates};
use super::{clock, usage};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Bytes of the units.
const BYTES: u64 = 512 << 20;

/// How often a server is probed that comes to rest.
const PROBE_INTERVAL: Duration = Duration::from_millis(25);

/// A server that uses less of a processor than one part in so many rests.
const REST_PART: u32 = 50;

/// How long a server may take to come to rest.
const REST_MAX: Duration = Duration::from_secs(20);

/// Waits until the server has nothing more to do, and answers its processor time so far.
fn rested(server: &Server) -> Result<u64, String> {
    let begun = clock();
    let mut before = usage::of_process(server.process())?;
    let mut calm = 0;
    while calm < 3 {
        pause(PROBE_INTERVAL);
        let now = usage::of_process(server.process())?;
        let busy = Duration::from_nanos(now.saturating_sub(before));
        calm = if busy * REST_PART < PROBE_INTERVAL {
            calm + 1
        } else {
            0
        };
        before = now;
        if begun.elapsed() > REST_MAX {
            return Err(format!("{} does not come to rest", server.name));
        }
    }
    Ok(before)
}

/// 4K random and 1M sequential, reads and writes, with checksums and without.
///
/// # Errors
/// What failed, for people.
pub fn checksums(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let names = ["unchecked", "checked", "sectors"];
    let pools = names.map(|name| empty_pool(plan, &format!("pool-{name}")));
    let [pool, other, third] = pools;
    let pools = [pool?, other?, third?];
    let start = |name, pool: &Path, unit_lines| {
        let how = Causeway {
            name,
            pool: Some(pool.to_owned()),
            journal_mib: 256,
            unit_lines,
            ..Causeway::usual(BYTES)
        };
        let server = servers::causeway(&plan.place, &how)?;
        client.fill(&server.unit)?;
        Ok::<_, String>(server)
    };
    let servers = [
        start(names[0], &pools[0], "physical_block_size = 4096")?,
        start(
            names[1],
            &pools[1],
            "physical_block_size = 4096\nintegrity = true",
        )?,
        start(
            names[2],
            &pools[2],
            "physical_block_size = 512\nintegrity = true",
        )?,
    ];
    // Three percent are less than a median of few rounds can show.
    let effort = Effort {
        rounds: plan.effort.rounds * 4 + 1,
        time: plan.effort.time / 2,
        ..plan.effort
    };
    let mut found = Found::default();
    let large = |id| PEER_CASES.into_iter().find(|case| case.id == id);
    let cases = [Some(READ_4K), Some(WRITE_4K), large("r1m8"), large("w1m8")];
    for case in cases.into_iter().flatten() {
        let named = names.map(str::to_owned).to_vec();
        let mut run = |at: usize, _| {
            let server = &servers[at];
            let before = rested(server)?;
            // Without a warm-up: all of the processor time is to be divided by all of the commands.
            let mut figures = client.run(&server.unit, &case, Duration::ZERO, effort.time)?;
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a few seconds")]
            let used = (rested(server)? - before) as f64;
            figures.server = used / 1000.0 / figures.commands;
            Ok::<Figures, String>(figures)
        };
        let row = take_turns(case, named, effort, &mut run)?;
        for (at, each) in [(1, "4 KiB"), (2, "512 bytes")] {
            found.bars.push(Bar {
                what: format!("checksums of {each} : none, {}, processor time", case.name),
                value: row.ratio(at, 0, |f| f.server),
                limit: Limit::AtMost(1.03),
                detail: rates(&row),
            });
        }
        found.rows.push(row);
    }
    drop(servers);
    for pool in pools {
        let _gone = fs::remove_dir_all(&pool);
    }
    Ok(found)
}
