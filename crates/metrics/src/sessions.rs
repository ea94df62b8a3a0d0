//! What metrics report of sessions and logins.

use super::family::{Family, Text};
use controller::Sample;
use manifest::facts::{DigestFacts, MoveFacts};
use std::collections::BTreeMap;

pub(super) const SESSIONS: Family<3> = Family::gauge(
    "causeway_sessions",
    ["target", "host", "portal"],
    "Sessions that are logged in",
);

pub(super) const BYTES: Family<4> = Family::counter(
    "causeway_session_bytes_total",
    ["target", "host", "portal", "direction"],
    "Bytes of the sessions that are logged in, `in` and `out`",
);

pub(super) const PDUS: Family<3> = Family::counter(
    "causeway_session_pdus_received_total",
    ["target", "host", "portal"],
    "PDUs that the sessions that are logged in have received",
);

pub(super) const RECEIVES: Family<4> = Family::counter(
    "causeway_session_receives_total",
    ["target", "host", "portal", "waited"],
    "How often the sessions that are logged in received something: `waited` is `yes` where the connection waited for several PDUs first \
     (`coalesce_us`), else `no`. PDUs divided by these are how many came at once: 1 where each is taken as it comes",
);

pub(super) const OF_HOST: Family<1> = Family::gauge(
    "causeway_host_sessions",
    ["host"],
    "Sessions of a host; 0 where it is away",
);

pub(super) const MOVES: Family<1> = Family::counter(
    "causeway_session_moves_total",
    ["result"],
    "Sessions that went to another core (`moved`), and those that did not come to rest and stayed (`given_up`)",
);

pub(super) const DIGESTS: Family<1> = Family::counter(
    "causeway_digest_errors_total",
    ["part"],
    "What hosts sent that did not match its CRC32C: `header` (the connection is closed), `data` (the command fails, and \
     the host sends it again). The log names the peer",
);

pub(super) const LOGINS: Family<2> = Family::counter(
    "causeway_login_total",
    ["result", "code"],
    "Logins: `accepted`, `redirected`, `refused`, with the code that `causeway explain` knows",
);

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

/// By target, host and portal.
type Paths<'a> = BTreeMap<[&'a str; 3], OfPath>;

pub(super) fn sessions(out: &mut Text, sample: &Sample) {
    let mut paths = Paths::new();
    let hosts = sample.objects.hosts.keys();
    let mut per_host: BTreeMap<&str, u64> = hosts.map(|host| (host.as_str(), 0)).collect();
    for session in &sample.sessions {
        let Some(target) = session.target.as_deref() else {
            continue;
        };
        let path = paths
            .entry([target, &session.host, &session.portal])
            .or_default();
        path.sessions += 1;
        path.bytes_in += session.bytes_in;
        path.bytes_out += session.bytes_out;
        path.pdus += session.pdus_received;
        path.receives += session.receives;
        path.waited += session.receives_waited;
        *per_host.entry(&session.host).or_default() += 1;
    }
    out.family(&SESSIONS);
    for (path, facts) in &paths {
        out.series(&SESSIONS, *path, facts.sessions);
    }
    out.family(&BYTES);
    for ([target, host, portal], facts) in &paths {
        for (direction, bytes) in [("in", facts.bytes_in), ("out", facts.bytes_out)] {
            out.series(&BYTES, [target, host, portal, direction], bytes);
        }
    }
    received(out, &paths);
    out.family(&OF_HOST);
    for (host, count) in per_host {
        out.series(&OF_HOST, [host], count);
    }
}

/// How often their connections receive, and how much at once.
fn received(out: &mut Text, paths: &Paths<'_>) {
    out.family(&PDUS);
    for (path, facts) in paths {
        out.series(&PDUS, *path, facts.pdus);
    }
    out.family(&RECEIVES);
    for ([target, host, portal], facts) in paths {
        let at_once = facts.receives.saturating_sub(facts.waited);
        for (waited, receives) in [("no", at_once), ("yes", facts.waited)] {
            out.series(&RECEIVES, [target, host, portal, waited], receives);
        }
    }
}

/// What became of sessions, of what they sent, and of those who wanted one.
pub(super) fn outcomes(out: &mut Text, sample: &Sample) {
    out.family(&MOVES);
    let MoveFacts { moved, given_up } = sample.moves;
    for (result, count) in [("moved", moved), ("given_up", given_up)] {
        out.series(&MOVES, [result], count);
    }
    out.family(&DIGESTS);
    let DigestFacts { headers, data } = sample.digests;
    for (part, count) in [("header", headers), ("data", data)] {
        out.series(&DIGESTS, [part], count);
    }
    out.family(&LOGINS);
    for login in &sample.logins {
        let code = login.code.map(|code| code.to_string()).unwrap_or_default();
        out.series(&LOGINS, [login.result, &code], login.count);
    }
}
