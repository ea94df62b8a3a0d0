//! The metrics in the Prometheus text format (version 0.0.4).
//!
//! Labels are names that the administrator chose, never what an initiator says, so the number of
//! series is bounded by the objects (40 for a LUN that does nothing; latency is told for reads and
//! writes, and by stage from the first command on, which makes 118; bytes for what moves or frees
//! blocks); and by [`SERIES_MAX`] a family, whatever happens.

mod journals;
mod room;

use manifest::facts::{CoreFacts, DigestFacts, LunFacts, LunState, MoveFacts, OpFacts, PoolFacts};
use manifest::latency::{LATENCY_BOUNDS_US, Latency};
use manifest::objects::{Figure, Objects, layer_metrics};
use manifest::scrub::{JournalScrub, ScrubFacts, ScrubState};
use node::controller::Sample;
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

/// The most series that one family shows; the rest is counted in
/// `causeway_metrics_series_dropped`.
pub const SERIES_MAX: usize = 200_000;

/// All of it.
#[must_use]
pub fn text(sample: &Sample) -> String {
    let mut out = Text::default();
    out.family("causeway_build_info", "gauge", "The daemon's version");
    out.series(
        "causeway_build_info",
        &[("version", env!("CARGO_PKG_VERSION"))],
        1,
    );
    out.family(
        "causeway_config_generation",
        "gauge",
        "Generation of the stored objects",
    );
    out.series("causeway_config_generation", &[], sample.generation);
    let by_name = sample
        .luns
        .iter()
        .map(|(name, facts)| (name.as_str(), facts));
    let by_name: BTreeMap<&str, &LunFacts> = by_name.collect();
    luns(&mut out, &by_name, &sample.objects);
    scrubs(&mut out, &by_name);
    statuses(&mut out, &by_name);
    sessions(&mut out, sample);
    cores(&mut out, &sample.cores);
    let help = "Sessions that went to another core, and those that stayed for want of rest";
    out.family("causeway_session_moves_total", "counter", help);
    let MoveFacts { moved, given_up } = sample.moves;
    for (result, count) in [("moved", moved), ("given_up", given_up)] {
        out.series("causeway_session_moves_total", &[("result", result)], count);
    }
    let help = "What hosts sent that did not match its digest";
    out.family("causeway_digest_errors_total", "counter", help);
    let DigestFacts { headers, data } = sample.digests;
    for (part, count) in [("header", headers), ("data", data)] {
        out.series("causeway_digest_errors_total", &[("part", part)], count);
    }
    out.family("causeway_login_total", "counter", "Logins by result");
    for login in &sample.logins {
        let code = login.code.map(|code| code.to_string()).unwrap_or_default();
        let labels = [("result", login.result), ("code", &code)];
        out.series("causeway_login_total", &labels, login.count);
    }
    pools(&mut out, &sample.pools);
    room::room(&mut out, &sample.pools, &sample.memory);
    journals::journals(&mut out, &sample.pools);
    out.family(
        "causeway_metrics_series_dropped",
        "gauge",
        "Series left out because there are too many",
    );
    let dropped = out.dropped;
    out.series("causeway_metrics_series_dropped", &[], dropped);
    out.text
}

fn luns(out: &mut Text, luns: &BTreeMap<&str, &LunFacts>, objects: &Objects) {
    out.family("causeway_lun_online", "gauge", "1 where the LUN serves");
    for (name, facts) in luns {
        let online = u8::from(facts.state == LunState::Online);
        out.series("causeway_lun_online", &[("lun", name)], online);
    }
    out.family(
        "causeway_lun_allocated_bytes",
        "gauge",
        "Bytes that the LUN's storage takes",
    );
    for (name, facts) in luns {
        if let Some(bytes) = facts.allocated {
            out.series("causeway_lun_allocated_bytes", &[("lun", name)], bytes);
        }
    }
    storage(out, luns, objects);
    let help = "LUNs that lose what hosts have not flushed when power fails";
    out.family("causeway_luns_volatile", "gauge", help);
    let volatile = objects.luns.values().filter(|lun| lun.is_volatile());
    out.series("causeway_luns_volatile", &[], volatile.count());
    out.family("causeway_lun_inflight", "gauge", "Commands in flight");
    for (name, facts) in luns {
        out.series("causeway_lun_inflight", &[("lun", name)], facts.in_flight);
    }
    let help = "Bytes that commands hold";
    out.family("causeway_lun_inflight_bytes", "gauge", help);
    for (name, facts) in luns {
        let held = facts.bytes_in_flight;
        out.series("causeway_lun_inflight_bytes", &[("lun", name)], held);
    }
    out.family("causeway_lun_ops_total", "counter", "Operations");
    for (name, op, facts) in ops(luns) {
        out.series(
            "causeway_lun_ops_total",
            &[("lun", name), ("op", op)],
            facts.ops,
        );
    }
    out.family("causeway_lun_bytes_total", "counter", "Bytes of operations");
    for (name, op, facts) in ops(luns).filter(|(_, op, _)| ["read", "write", "unmap"].contains(op))
    {
        out.series(
            "causeway_lun_bytes_total",
            &[("lun", name), ("op", op)],
            facts.bytes,
        );
    }
    out.family(
        "causeway_lun_latency_seconds",
        "histogram",
        "From the first byte of the command until the socket had the answer (total), and by stage",
    );
    for (name, op, facts) in ops(luns).filter(|(_, op, _)| ["read", "write"].contains(op)) {
        for (stage, took) in facts.latency.named() {
            // A LUN that nobody uses costs a scrape no more than it must.
            if stage == "total" || !took.is_empty() {
                latency(out, name, op, stage, took);
            }
        }
    }
}

/// Of layers that a LUN has because someone asked for them.
fn storage(out: &mut Text, luns: &BTreeMap<&str, &LunFacts>, objects: &Objects) {
    let mut family = "";
    for metric in layer_metrics() {
        if metric.name != family {
            out.family(metric.name, metric.kind, metric.help);
            family = metric.name;
        }
        for (lun, facts) in luns {
            let stored = objects.luns.get(*lun).map(|lun| lun.storage);
            let labels: Vec<(&str, &str)> = [("lun", *lun)]
                .into_iter()
                .chain(metric.labels.iter().copied())
                .collect();
            match (metric.figure)(&stored.unwrap_or_default(), &facts.layers) {
                Some(Figure::Number(figure)) => out.series(metric.name, &labels, figure),
                Some(Figure::Micros(us)) => out.series(metric.name, &labels, seconds(us)),
                None => {}
            }
        }
    }
}

fn scrubs(out: &mut Text, luns: &BTreeMap<&str, &LunFacts>) {
    type Value = fn(&ScrubFacts) -> u64;
    let families: [(&str, &str, Value); 8] = [
        (
            "causeway_scrub_running",
            "1 while the LUN is scrubbed",
            |it| u64::from(it.state == ScrubState::Running),
        ),
        (
            "causeway_scrub_done_bytes",
            "Bytes that the scrub, or the last one, has read",
            |it| it.done_bytes,
        ),
        (
            "causeway_scrub_rate_bytes",
            "Bytes that the scrub reads a second",
            |it| it.bytes_per_second,
        ),
        (
            "causeway_scrub_unreadable_blocks",
            "Blocks that the medium could not read",
            |it| it.unreadable_blocks,
        ),
        (
            "causeway_scrub_mismatched_blocks",
            "Blocks that are not what was written",
            |it| it.mismatched_blocks,
        ),
        (
            "causeway_scrub_map_pages",
            "Pages of checksums that were damaged",
            |it| it.map_pages,
        ),
        (
            "causeway_scrub_journal_damage",
            "What was damaged in the pool's journal: changes, blocks, superblocks, checkpoints",
            |it| it.journal.as_ref().map_or(0, JournalScrub::damage),
        ),
        (
            "causeway_scrub_metadata_damage",
            "Other metadata that was damaged",
            |it| it.metadata.len() as u64,
        ),
    ];
    for (name, help, value) in families {
        let known = luns
            .iter()
            .filter_map(|(lun, facts)| Some((lun, facts.scrub.as_ref()?)));
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            continue;
        }
        out.family(name, "gauge", help);
        for (lun, scrub) in known {
            out.series(name, &[("lun", lun)], value(scrub));
        }
    }
}

fn ops<'a>(
    luns: &'a BTreeMap<&'a str, &'a LunFacts>,
) -> impl Iterator<Item = (&'a str, &'a str, &'a OpFacts)> {
    luns.iter().flat_map(|(name, facts)| {
        let ops = facts.ops.iter();
        ops.map(|(op, facts)| (*name, op.as_str(), facts))
    })
}

fn latency(out: &mut Text, lun: &str, op: &str, stage: &str, took: &Latency) {
    let labels = [("lun", lun), ("op", op), ("stage", stage)];
    let mut sum = 0;
    let bounds = LATENCY_BOUNDS_US.iter().map(|us| seconds(*us));
    let bounds = bounds.chain(std::iter::once("+Inf".to_owned()));
    for (bound, count) in bounds.zip(took.rebinned()) {
        sum += count;
        let mut labels = labels.to_vec();
        labels.push(("le", &bound));
        out.series("causeway_lun_latency_seconds_bucket", &labels, sum);
    }
    let took = seconds(took.us_sum);
    out.series("causeway_lun_latency_seconds_sum", &labels, took);
    out.series("causeway_lun_latency_seconds_count", &labels, sum);
}

fn cores(out: &mut Text, cores: &[CoreFacts]) {
    let named: Vec<(String, &CoreFacts)> = cores
        .iter()
        .map(|core| (core.core.to_string(), core))
        .collect();
    let mut tell = |name: &str, kind: &str, help: &str, value: &dyn Fn(&CoreFacts) -> String| {
        out.family(name, kind, help);
        for (number, core) in &named {
            out.series(name, &[("core", number)], value(core));
        }
    };
    let help = "Processor time that the core has worked";
    tell(
        "causeway_core_busy_seconds_total",
        "counter",
        help,
        &|core| seconds(core.busy_us),
    );
    let help = "How busy the core is now, from 0 to 1";
    tell("causeway_core_load_ratio", "gauge", help, &|core| {
        format!(
            "{}.{:03}",
            core.load_permille / 1000,
            core.load_permille % 1000
        )
    });
    let help = "Connections that the core serves";
    tell("causeway_core_connections", "gauge", help, &|core| {
        core.connections.to_string()
    });
    let help = "Files that the core has registered with io_uring";
    tell("causeway_core_registered_files", "gauge", help, &|core| {
        core.registered_files.to_string()
    });
    let help = "Bytes of payload memory that the core has registered with io_uring";
    tell("causeway_core_registered_bytes", "gauge", help, &|core| {
        core.registered_bytes.to_string()
    });
    let (name, help) = ("causeway_core_disk_engine", "What carries the core's disks");
    out.family(name, "gauge", help);
    for (number, core) in &named {
        let labels = [("core", number.as_str()), ("engine", &core.disk_engine)];
        out.series(name, &labels, 1);
    }
}

/// Exact decimal seconds, without the rounding of floating point.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn statuses(out: &mut Text, luns: &BTreeMap<&str, &LunFacts>) {
    out.family(
        "causeway_lun_scsi_status_total",
        "counter",
        "Commands that did not end with GOOD",
    );
    for (name, facts) in luns {
        for (status, count) in &facts.statuses {
            let (status, sense) = status.split_once(' ').unwrap_or((status, ""));
            let labels = [("lun", *name), ("status", status), ("sense", sense)];
            out.series("causeway_lun_scsi_status_total", &labels, count);
        }
    }
}

/// Of the sessions of a host through a portal to a target.
#[derive(Default)]
struct OfPath {
    sessions: u64,
    bytes_in: u64,
    bytes_out: u64,
    pdus: u64,
    receives: u64,
    waited: u64,
}

/// How often their connections receive, and how much at once.
fn received(out: &mut Text, paths: &BTreeMap<(&str, &str, &str), OfPath>) {
    let family = "causeway_session_pdus_received_total";
    let help = "PDUs that the sessions that are logged in have received";
    out.family(family, "counter", help);
    for ((target, host, portal), of_path) in paths {
        let labels = [("target", *target), ("host", *host), ("portal", *portal)];
        out.series(family, &labels, of_path.pdus);
    }
    let family = "causeway_session_receives_total";
    let help = "Times that they received something, after a wait for several PDUs or not";
    out.family(family, "counter", help);
    for ((target, host, portal), of_path) in paths {
        let at_once = of_path.receives.saturating_sub(of_path.waited);
        for (waited, receives) in [("no", at_once), ("yes", of_path.waited)] {
            let labels = [
                ("target", *target),
                ("host", *host),
                ("portal", *portal),
                ("waited", waited),
            ];
            out.series(family, &labels, receives);
        }
    }
}

fn sessions(out: &mut Text, sample: &Sample) {
    let mut paths: BTreeMap<(&str, &str, &str), OfPath> = BTreeMap::new();
    let mut per_host: BTreeMap<&str, u64> = sample
        .objects
        .hosts
        .keys()
        .map(|host| (host.as_str(), 0))
        .collect();
    for session in &sample.sessions {
        let Some(target) = session.target.as_deref() else {
            continue;
        };
        let path = paths
            .entry((target, &session.host, &session.portal))
            .or_default();
        path.sessions += 1;
        path.bytes_in += session.bytes_in;
        path.bytes_out += session.bytes_out;
        path.pdus += session.pdus_received;
        path.receives += session.receives;
        path.waited += session.receives_waited;
        *per_host.entry(&session.host).or_default() += 1;
    }
    out.family("causeway_sessions", "gauge", "Sessions that are logged in");
    for ((target, host, portal), of_path) in &paths {
        let labels = [("target", *target), ("host", *host), ("portal", *portal)];
        out.series("causeway_sessions", &labels, of_path.sessions);
    }
    out.family(
        "causeway_session_bytes_total",
        "counter",
        "Bytes of the sessions that are logged in",
    );
    for ((target, host, portal), of_path) in &paths {
        for (direction, bytes) in [("in", of_path.bytes_in), ("out", of_path.bytes_out)] {
            let labels = [
                ("target", *target),
                ("host", *host),
                ("portal", *portal),
                ("direction", direction),
            ];
            out.series("causeway_session_bytes_total", &labels, bytes);
        }
    }
    received(out, &paths);
    out.family(
        "causeway_host_sessions",
        "gauge",
        "Sessions of a host; 0 where it is away",
    );
    for (host, count) in per_host {
        out.series("causeway_host_sessions", &[("host", host)], count);
    }
}

fn pools(out: &mut Text, pools: &[PoolFacts]) {
    let help = "1 where the pool answers and can be used";
    out.family("causeway_pool_online", "gauge", help);
    for pool in pools {
        let online = u8::from(pool.problem.is_none());
        out.series("causeway_pool_online", &[("pool", &pool.name)], online);
    }
    let help =
        "How the storage below the pool is by its own account: 0 well, 1 a warning, 2 an error";
    out.family("causeway_pool_health", "gauge", help);
    for pool in pools {
        if let Some(health) = &pool.health {
            let severity = health.severity as u8;
            out.series("causeway_pool_health", &[("pool", &pool.name)], severity);
        }
    }
    // Figures that nobody knows are left out rather than told as nothing.
    let known = || pools.iter().filter(|pool| pool.total > 0);
    let help = "Size of the pool's file system";
    out.family("causeway_pool_size_bytes", "gauge", help);
    for pool in known() {
        let labels = [("pool", pool.name.as_str())];
        out.series("causeway_pool_size_bytes", &labels, pool.total);
    }
    let help = "Used space of the pool's file system";
    out.family("causeway_pool_used_bytes", "gauge", help);
    for pool in known() {
        out.series(
            "causeway_pool_used_bytes",
            &[("pool", &pool.name)],
            pool.used,
        );
    }
}

#[derive(Default)]
struct Text {
    text: String,
    in_family: usize,
    dropped: usize,
}

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.in_family = 0;
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn series(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.in_family += 1;
        if self.in_family > SERIES_MAX {
            self.dropped += 1;
            return;
        }
        self.text.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            let _ = write!(self.text, "{label}=\"{value}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}
