//! The metrics in the Prometheus text format (version 0.0.4).
//!
//! Labels are names that the administrator chose, never what an initiator says, so the number of
//! series is bounded by the objects (40 for a LUN that does nothing; latency is told for reads and
//! writes, and by stage from the first command on, which makes 118; bytes for what moves or frees
//! blocks); and by [`SERIES_MAX`] a family, whatever happens.

mod cores;
mod family;
mod journals;
mod pools;
mod scrubs;

pub use family::SERIES_MAX;

use family::{Text, seconds};
use manifest::facts::{DigestFacts, LunFacts, LunState, MoveFacts, OpFacts};
use manifest::latency::{LATENCY_BOUNDS_US, Latency};
use manifest::objects::{Figure, Objects, layer_metrics};
use node::controller::Sample;
use std::collections::BTreeMap;

/// All of it.
#[must_use]
pub fn text(sample: &Sample) -> String {
    let mut out = Text::default();
    out.begin("causeway_build_info", "gauge", "The daemon's version");
    out.line(
        "causeway_build_info",
        &[("version", env!("CARGO_PKG_VERSION"))],
        1,
    );
    out.begin(
        "causeway_config_generation",
        "gauge",
        "Generation of the stored objects",
    );
    out.line("causeway_config_generation", &[], sample.generation);
    let by_name = sample
        .luns
        .iter()
        .map(|(name, facts)| (name.as_str(), facts));
    let by_name: BTreeMap<&str, &LunFacts> = by_name.collect();
    luns(&mut out, &by_name, &sample.objects);
    scrubs::scrubs(&mut out, &by_name);
    statuses(&mut out, &by_name);
    sessions(&mut out, sample);
    cores::cores(&mut out, &sample.cores);
    let help = "Sessions that went to another core, and those that stayed for want of rest";
    out.begin("causeway_session_moves_total", "counter", help);
    let MoveFacts { moved, given_up } = sample.moves;
    for (result, count) in [("moved", moved), ("given_up", given_up)] {
        out.line("causeway_session_moves_total", &[("result", result)], count);
    }
    let help = "What hosts sent that did not match its digest";
    out.begin("causeway_digest_errors_total", "counter", help);
    let DigestFacts { headers, data } = sample.digests;
    for (part, count) in [("header", headers), ("data", data)] {
        out.line("causeway_digest_errors_total", &[("part", part)], count);
    }
    out.begin("causeway_login_total", "counter", "Logins by result");
    for login in &sample.logins {
        let code = login.code.map(|code| code.to_string()).unwrap_or_default();
        let labels = [("result", login.result), ("code", &code)];
        out.line("causeway_login_total", &labels, login.count);
    }
    pools::pools(&mut out, &sample.pools);
    pools::memory(&mut out, &sample.memory);
    journals::journals(&mut out, &sample.pools);
    out.begin(
        "causeway_metrics_series_dropped",
        "gauge",
        "Series left out because there are too many",
    );
    let dropped = out.dropped();
    out.line("causeway_metrics_series_dropped", &[], dropped);
    out.into_text()
}

fn luns(out: &mut Text, luns: &BTreeMap<&str, &LunFacts>, objects: &Objects) {
    out.begin("causeway_lun_online", "gauge", "1 where the LUN serves");
    for (name, facts) in luns {
        let online = u8::from(facts.state == LunState::Online);
        out.line("causeway_lun_online", &[("lun", name)], online);
    }
    out.begin(
        "causeway_lun_allocated_bytes",
        "gauge",
        "Bytes that the LUN's storage takes",
    );
    for (name, facts) in luns {
        if let Some(bytes) = facts.allocated {
            out.line("causeway_lun_allocated_bytes", &[("lun", name)], bytes);
        }
    }
    storage(out, luns, objects);
    let help = "LUNs that lose what hosts have not flushed when power fails";
    out.begin("causeway_luns_volatile", "gauge", help);
    let volatile = objects.luns.values().filter(|lun| lun.is_volatile());
    out.line("causeway_luns_volatile", &[], volatile.count());
    out.begin("causeway_lun_inflight", "gauge", "Commands in flight");
    for (name, facts) in luns {
        out.line("causeway_lun_inflight", &[("lun", name)], facts.in_flight);
    }
    let help = "Bytes that commands hold";
    out.begin("causeway_lun_inflight_bytes", "gauge", help);
    for (name, facts) in luns {
        let held = facts.bytes_in_flight;
        out.line("causeway_lun_inflight_bytes", &[("lun", name)], held);
    }
    out.begin("causeway_lun_ops_total", "counter", "Operations");
    for (name, op, facts) in ops(luns) {
        out.line(
            "causeway_lun_ops_total",
            &[("lun", name), ("op", op)],
            facts.ops,
        );
    }
    out.begin("causeway_lun_bytes_total", "counter", "Bytes of operations");
    for (name, op, facts) in ops(luns).filter(|(_, op, _)| ["read", "write", "unmap"].contains(op))
    {
        out.line(
            "causeway_lun_bytes_total",
            &[("lun", name), ("op", op)],
            facts.bytes,
        );
    }
    out.begin(
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
            out.begin(metric.name, metric.kind, metric.help);
            family = metric.name;
        }
        for (lun, facts) in luns {
            let stored = objects.luns.get(*lun).map(|lun| lun.storage);
            let labels: Vec<(&str, &str)> = [("lun", *lun)]
                .into_iter()
                .chain(metric.labels.iter().copied())
                .collect();
            match (metric.figure)(&stored.unwrap_or_default(), &facts.layers) {
                Some(Figure::Number(figure)) => out.line(metric.name, &labels, figure),
                Some(Figure::Micros(us)) => out.line(metric.name, &labels, seconds(us)),
                None => {}
            }
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
        out.line("causeway_lun_latency_seconds_bucket", &labels, sum);
    }
    let took = seconds(took.us_sum);
    out.line("causeway_lun_latency_seconds_sum", &labels, took);
    out.line("causeway_lun_latency_seconds_count", &labels, sum);
}

fn statuses(out: &mut Text, luns: &BTreeMap<&str, &LunFacts>) {
    out.begin(
        "causeway_lun_scsi_status_total",
        "counter",
        "Commands that did not end with GOOD",
    );
    for (name, facts) in luns {
        for (status, count) in &facts.statuses {
            let (status, sense) = status.split_once(' ').unwrap_or((status, ""));
            let labels = [("lun", *name), ("status", status), ("sense", sense)];
            out.line("causeway_lun_scsi_status_total", &labels, count);
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
    out.begin(family, "counter", help);
    for ((target, host, portal), of_path) in paths {
        let labels = [("target", *target), ("host", *host), ("portal", *portal)];
        out.line(family, &labels, of_path.pdus);
    }
    let family = "causeway_session_receives_total";
    let help = "Times that they received something, after a wait for several PDUs or not";
    out.begin(family, "counter", help);
    for ((target, host, portal), of_path) in paths {
        let at_once = of_path.receives.saturating_sub(of_path.waited);
        for (waited, receives) in [("no", at_once), ("yes", of_path.waited)] {
            let labels = [
                ("target", *target),
                ("host", *host),
                ("portal", *portal),
                ("waited", waited),
            ];
            out.line(family, &labels, receives);
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
    out.begin("causeway_sessions", "gauge", "Sessions that are logged in");
    for ((target, host, portal), of_path) in &paths {
        let labels = [("target", *target), ("host", *host), ("portal", *portal)];
        out.line("causeway_sessions", &labels, of_path.sessions);
    }
    out.begin(
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
            out.line("causeway_session_bytes_total", &labels, bytes);
        }
    }
    received(out, &paths);
    out.begin(
        "causeway_host_sessions",
        "gauge",
        "Sessions of a host; 0 where it is away",
    );
    for (host, count) in per_host {
        out.line("causeway_host_sessions", &[("host", host)], count);
    }
}
