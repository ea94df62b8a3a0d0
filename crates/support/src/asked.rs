//! What of the API's answers is in a bundle.

/// An answer, and the file that it becomes.
pub struct Asked {
    /// The file in the bundle.
    pub file: &'static str,
    /// What the API is asked for.
    pub path: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
}

const fn asked(file: &'static str, path: &'static str, about: &'static str) -> Asked {
    Asked { file, path, about }
}

/// The figures of the last day: of the node, by ten seconds at the finest.
const HISTORY: &str = "/api/v1/history?from=-1d&metric=read_ops,write_ops,read_bytes,write_bytes,read_latency_p50,\
                       read_latency_p99,write_latency_p50,write_latency_p99,in_flight,sessions,core_load,\
                       journal_used_bytes,journal_size_bytes,destaged_bytes";

/// All of them, in the order in which somebody reads them.
pub const ASKED: &[Asked] = &[
    asked("status.json", "/api/v1/status", "how the node is"),
    asked(
        "alerts.json",
        "/api/v1/alerts?resolved=true&limit=1000",
        "what is wrong, and what was",
    ),
    asked(
        "alert-rules.json",
        "/api/v1/alerts/rules",
        "when that is said",
    ),
    asked(
        "alert-silences.json",
        "/api/v1/alerts/silences",
        "what is not sent",
    ),
    asked(
        "alert-receivers.json",
        "/api/v1/alerts/receivers",
        "who is sent it, and whether that works",
    ),
    asked(
        "events.json",
        "/api/v1/events/log?limit=1000",
        "the last 1,000 events",
    ),
    asked(
        "audit.json",
        "/api/v1/audit?limit=1000",
        "the last 1,000 changes and logins",
    ),
    asked(
        "jobs.json",
        "/api/v1/jobs?limit=1000",
        "work that takes long",
    ),
    asked("config.json", "/api/v1/config", "node.toml, as it is read"),
    asked("objects.json", "/api/v1/export", "all objects"),
    asked(
        "generations.json",
        "/api/v1/generations",
        "earlier states of the objects",
    ),
    asked(
        "orphans.json",
        "/api/v1/orphans",
        "data that belongs to no object",
    ),
    asked("pools.json", "/api/v1/pools", "pools and their journals"),
    asked(
        "luns.json",
        "/api/v1/luns?removed=true&limit=1000",
        "LUNs as they are: the first 1,000",
    ),
    asked("targets.json", "/api/v1/targets?limit=1000", "targets"),
    asked("hosts.json", "/api/v1/hosts?limit=1000", "hosts"),
    asked("grants.json", "/api/v1/grants?limit=1000", "grants"),
    asked(
        "sessions.json",
        "/api/v1/sessions?limit=1000",
        "sessions: the first 1,000",
    ),
    asked(
        "refusals.json",
        "/api/v1/refusals",
        "logins of hosts that were refused",
    ),
    asked("disks.json", "/api/v1/disks", "disks and their health"),
    asked("bays.json", "/api/v1/bays", "bays of enclosures"),
    asked(
        "disk-report.json",
        "/api/v1/disk_report",
        "how disks were asked",
    ),
    asked(
        "doctor.json",
        "/api/v1/doctor",
        "the machine against best practice",
    ),
    asked(
        "certificate.json",
        "/api/v1/certificate",
        "what https is served with",
    ),
    asked("history.json", HISTORY, "figures of the last day"),
    asked(
        "activity.json",
        "/api/v1/activity",
        "what cores, LUNs and sessions do now",
    ),
    asked("metrics.txt", "/metrics", "all metrics"),
    asked("bench.json", "/api/v1/bench/runs", "runs of the bench"),
    asked("lab.json", "/api/v1/lab", "whether the lab can run here"),
];
