//! The table of rules: what the daemon, the API, the command line and the documentation say of
//! each.

use crate::severity::Severity;

/// A figure of a rule that an administrator may change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    /// As requests name it.
    pub name: &'static str,
    /// Without anybody's change.
    pub default: u64,
    /// The least that it may be.
    pub least: u64,
    /// The most that it may be.
    pub most: u64,
    /// What it is, with its unit.
    pub meaning: &'static str,
}

/// A rule: a condition of objects of one kind.
#[derive(PartialEq, Eq, Debug)]
pub struct Rule {
    /// By which it is known; it never changes its meaning.
    pub id: &'static str,
    /// What is wrong, in a few words.
    pub title: &'static str,
    /// How bad it is, where nothing else is known.
    pub severity: Severity,
    /// When it fires; names of bounds in braces stand for their figures.
    pub condition: &'static str,
    /// When it is over; the same.
    pub over: &'static str,
    /// Its figures.
    pub bounds: &'static [Bound],
    /// How long the condition lasts before it fires, in seconds.
    pub hold_seconds: u64,
    /// How long it is over before it is resolved, in seconds.
    pub clear_seconds: u64,
    /// What to do, where the alert does not say it more exactly.
    pub next_step: &'static str,
}

const fn percent(name: &'static str, default: u64, meaning: &'static str) -> Bound {
    Bound {
        name,
        default,
        least: 1,
        most: 100,
        meaning,
    }
}

const fn number(name: &'static str, default: u64, most: u64, meaning: &'static str) -> Bound {
    Bound {
        name,
        default,
        least: 1,
        most,
        meaning,
    }
}

/// Initiators with one path only.
pub(crate) const HOST_SINGLE_PATH: Rule = Rule {
    id: "host_single_path",
    title: "A host has a single path",
    severity: Severity::Warning,
    condition: "an initiator of the host has one path to a target: all its sessions come from one address to one portal",
    over: "it has two paths or more again. A host without any session keeps the alert for a day",
    bounds: &[],
    hold_seconds: 120,
    clear_seconds: 30,
    next_step: "bring the other path back, or add one: causeway doctor, run on the host, says what is in the way",
};

/// Hosts that lost all their paths.
pub(crate) const HOST_AWAY: Rule = Rule {
    id: "host_away",
    title: "A host has lost all its paths",
    severity: Severity::Critical,
    condition: "a host with grants had sessions within the last {hours} hours, has none now, and did not log out: one that logs out \
                was shut down",
    over: "it is back, it has been away for {hours} hours, or it has no grants any more",
    bounds: &[number(
        "hours",
        24,
        8_760,
        "away for so long it is forgotten",
    )],
    hold_seconds: 120,
    clear_seconds: 0,
    next_step: "if it is meant to be off: nothing. Else check its NICs, cables and switches, and read causeway session ls --refused; \
                causeway doctor, run on the host, says what is in the way",
};

/// Paths that come and go.
pub(crate) const PATH_FLAPPING: Rule = Rule {
    id: "path_flapping",
    title: "A path comes and goes",
    severity: Severity::Warning,
    condition: "the same path of a host ended and came back {returns} times within {minutes} minutes",
    over: "it came back fewer than {clear_returns} times in that time",
    bounds: &[
        number("returns", 3, 1_000, "returns of one path"),
        number(
            "clear_returns",
            2,
            1_000,
            "fewer returns than this resolve it",
        ),
        number(
            "minutes",
            15,
            240,
            "the time in which they are counted, in minutes",
        ),
    ],
    hold_seconds: 0,
    clear_seconds: 300,
    next_step: "check cable, switch port and NIC of this path: ip -s link on both ends shows errors; the log has each logout",
};

/// LUNs out of service.
pub(crate) const LUN_OFFLINE: Rule = Rule {
    id: "lun_offline",
    title: "A LUN is offline",
    severity: Severity::Critical,
    condition: "a LUN is out of service",
    over: "it serves again, or was deleted",
    bounds: &[],
    hold_seconds: 20,
    clear_seconds: 30,
    next_step: "causeway lun show NAME has the reason; docs/operate/faults.md what to do about each",
};

/// LUNs whose copies on several nodes do not have all of it.
pub(crate) const LUN_COPY_MISSING: Rule = Rule {
    id: "lun_copy_missing",
    title: "A copy of a LUN is missing",
    severity: Severity::Warning,
    condition: "a LUN with copies on several nodes is served by none, or not all of its copies have all of it",
    over: "it is served, and all copies have all of it",
    bounds: &[],
    hold_seconds: 20,
    clear_seconds: 10,
    next_step: "causeway cluster status says which node does not answer; docs/cluster.md what each state of a copy means",
};

/// LUNs whose storage hangs.
pub(crate) const LUN_STALLED: Rule = Rule {
    id: "lun_stalled",
    title: "The storage of a LUN answers nothing",
    severity: Severity::Critical,
    condition: "nothing of a LUN has ended for 5 seconds or more, with operations under way all the time; where operations wait for a \
                limit or a share: for 60 seconds",
    over: "something has ended, or nothing is under way any more",
    bounds: &[],
    hold_seconds: 20,
    clear_seconds: 30,
    next_step: "check the disk or the network file system that the alert names: dmesg and causeway disk ls say what it reports; hosts \
                wait until it answers, and go on by themselves then",
};

/// LUNs that are slower than they use to be.
pub(crate) const LUN_SLOW: Rule = Rule {
    id: "lun_slow",
    title: "A LUN is slower than usual",
    severity: Severity::Warning,
    condition: "reads or writes took {factor} times as long as is usual for this LUN, and {least_us} us or more, in three of the last \
                five minutes; usual is the median of its busy minutes of the last days, of {learned_minutes} at least. A minute is \
                busy by {busy_ops} operations, or by fewer that took half of it together; what has not ended counts with its age",
    over: "they take less than {clear_factor} times as long as usual, less than half of {least_us} us, or nothing is asked of the LUN",
    bounds: &[
        number("factor", 4, 1_000, "so many times the usual latency"),
        number(
            "clear_factor",
            2,
            1_000,
            "less than so many times resolves it",
        ),
        number(
            "least_us",
            2_000,
            60_000_000,
            "the least latency that matters, in microseconds",
        ),
        number(
            "busy_ops",
            300,
            1_000_000,
            "a minute with fewer operations is quiet and not counted, unless they took half of it together",
        ),
        number(
            "learned_minutes",
            360,
            4_000,
            "busy minutes before anything is called usual",
        ),
    ],
    hold_seconds: 60,
    clear_seconds: 180,
    next_step: "causeway top and the LUN's page show the stage that is slow: backend is the disk, journal its device, network the host or the network, \
                queue the node",
};

/// LUNs that nobody has verified for long.
pub(crate) const SCRUB_OVERDUE: Rule = Rule {
    id: "scrub_overdue",
    title: "A scrub is overdue",
    severity: Severity::Warning,
    condition: "no scrub of the LUN has come to its end {grace_days} days after the schedule of node.toml asked for one; without \
                a schedule: for {unscheduled_days} days",
    over: "a scrub has read all of it",
    bounds: &[
        number("grace_days", 7, 3_650, "days beyond the schedule"),
        number(
            "unscheduled_days",
            90,
            3_650,
            "days without any scrub, where there is no schedule",
        ),
    ],
    hold_seconds: 0,
    clear_seconds: 0,
    next_step: "causeway scrub start NAME; every_days below [scrub] in node.toml has it done by itself",
};

/// What scrubs and checksums found.
pub(crate) const SCRUB_FINDINGS: Rule = Rule {
    id: "scrub_findings",
    title: "Blocks or metadata of a LUN are damaged",
    severity: Severity::Critical,
    condition: "the last scrub of the LUN, or its checksums, know of damage",
    over: "what was bad is good again by the checksums or by a later scrub",
    bounds: &[],
    hold_seconds: 0,
    clear_seconds: 0,
    next_step: "causeway scrub status NAME names the places: restore what lies there by writing it, check the disk, scrub again",
};

/// Pools that cannot be used.
pub(crate) const POOL_OFFLINE: Rule = Rule {
    id: "pool_offline",
    title: "A pool is away",
    severity: Severity::Critical,
    condition: "a pool cannot be used, or not all of it",
    over: "it can be used again",
    bounds: &[],
    hold_seconds: 20,
    clear_seconds: 30,
    next_step: "causeway pool show NAME has the reason; when the pool is back its LUNs go on by themselves",
};

/// Pools that fill up.
pub(crate) const POOL_FILLING: Rule = Rule {
    id: "pool_filling",
    title: "A pool fills up",
    severity: Severity::Warning,
    condition: "more than {above_percent} % of the pool is used; not of pools of members, whose LUNs have all of their space",
    over: "less than {below_percent} % is used",
    bounds: &[
        percent("above_percent", 80, "used, in percent"),
        percent(
            "below_percent",
            78,
            "less than this resolves it, in percent",
        ),
    ],
    hold_seconds: 60,
    clear_seconds: 60,
    next_step: "add space, or free some: causeway lun ls --removed lists LUNs that keep their data, lun purge gives their space back",
};

/// Pools where hosts will soon be refused.
pub(crate) const POOL_NEARLY_FULL: Rule = Rule {
    id: "pool_nearly_full",
    title: "A pool is nearly full",
    severity: Severity::Critical,
    condition: "more than {above_percent} % of the pool is used; not of pools of members, whose LUNs have all of their space",
    over: "less than {below_percent} % is used",
    bounds: &[
        percent("above_percent", 90, "used, in percent"),
        percent(
            "below_percent",
            88,
            "less than this resolves it, in percent",
        ),
    ],
    hold_seconds: 30,
    clear_seconds: 60,
    next_step: "add space, or free some: when the pool is full, hosts are refused blocks that have no room yet",
};

/// Pools that promised more than they have.
pub(crate) const POOL_OVERCOMMITTED: Rule = Rule {
    id: "pool_overcommitted",
    title: "A pool is overcommitted",
    severity: Severity::Info,
    condition: "what the pool's LUNs may still take and has no room is more than {above_percent} % of the pool",
    over: "it is no more than that",
    bounds: &[Bound {
        name: "above_percent",
        default: 0,
        least: 0,
        most: 100_000,
        meaning: "without room, in percent of the pool",
    }],
    hold_seconds: 60,
    clear_seconds: 60,
    next_step: "add space before the LUNs take it, or keep an eye on the pool: it works until it is full",
};

/// Journals that take no writes.
pub(crate) const JOURNAL_OFFLINE: Rule = Rule {
    id: "journal_offline",
    title: "A journal is offline",
    severity: Severity::Critical,
    condition: "a journal is failed or missing",
    over: "it is open again",
    bounds: &[],
    hold_seconds: 20,
    clear_seconds: 30,
    next_step: "check its device, then causeway journal reopen POOL; docs/operate/journal.md has each state",
};

/// Journals that fill up.
pub(crate) const JOURNAL_FILLING: Rule = Rule {
    id: "journal_filling",
    title: "A journal fills up",
    severity: Severity::Warning,
    condition: "more than {above_percent} % of the journal is in use",
    over: "less than {below_percent} % is in use",
    bounds: &[
        percent("above_percent", 80, "in use, in percent"),
        percent(
            "below_percent",
            70,
            "less than this resolves it, in percent",
        ),
    ],
    hold_seconds: 60,
    clear_seconds: 60,
    next_step: "hosts write more than the pool's disks take: check their latency (backend), limit the LUNs that write most, or give \
                the pool a larger journal",
};

/// Acknowledged writes that are damaged in a journal.
pub(crate) const JOURNAL_LOST: Rule = Rule {
    id: "journal_lost_blocks",
    title: "Acknowledged blocks are damaged in a journal",
    severity: Severity::Critical,
    condition: "blocks that were acknowledged cannot be read from the journal",
    over: "they were written again",
    bounds: &[],
    hold_seconds: 0,
    clear_seconds: 0,
    next_step: "causeway pool show POOL lists them: restore what lies there by writing it, and replace the journal's device",
};

/// What a journal cannot destage.
pub(crate) const DESTAGE_ERROR: Rule = Rule {
    id: "destage_error",
    title: "Writes of a LUN cannot be destaged",
    severity: Severity::Critical,
    condition: "what the journal holds of a LUN is not taken by its backing volume",
    over: "it is taken again",
    bounds: &[],
    hold_seconds: 60,
    clear_seconds: 60,
    next_step: "make the LUN's disk work or make room on it: nothing is lost meanwhile, and it is tried again each second",
};

/// Portals that do not listen.
pub(crate) const PORTAL_OFFLINE: Rule = Rule {
    id: "portal_offline",
    title: "A portal does not listen",
    severity: Severity::Warning,
    condition: "the node does not listen at an address of a portal group",
    over: "it listens there again",
    bounds: &[],
    hold_seconds: 60,
    clear_seconds: 30,
    next_step: "causeway status has the reason: mostly the address is gone from its interface, or another program has the port",
};

/// What the node finds missing when it tries itself.
pub(crate) const NOT_SERVED: Rule = Rule {
    id: "not_served",
    title: "What was asked for is not served",
    severity: Severity::Critical,
    condition: "a LUN, target or grant stands among the objects and hosts do not find it: once a minute the node logs in at its own \
                portals, and compares what the front shows with the objects",
    over: "all of it is found",
    bounds: &[],
    hold_seconds: 90,
    clear_seconds: 0,
    next_step: "restart the daemon, which exports its objects anew, and report this with the log: it is a fault of the daemon, unless \
                a firewall of this machine stops the node from reaching its own portals",
};

/// Certificates near their end.
pub(crate) const CERTIFICATE_ENDING: Rule = Rule {
    id: "certificate_ending",
    title: "A certificate is near its end",
    severity: Severity::Warning,
    condition: "a certificate ends within {days} days",
    over: "another one is in force, which lasts longer",
    bounds: &[number("days", 21, 36_500, "days before its end")],
    hold_seconds: 0,
    clear_seconds: 0,
    next_step: "renew the certificate; it is read again by itself when its files change",
};

/// What is wrong with disks.
pub(crate) const DEVICE_HEALTH: Rule = Rule {
    id: "device_health",
    title: "A disk is failing, worn or gone from its bay",
    severity: Severity::Warning,
    condition: "what a disk says of itself, or how it changes, foretells its end; how bad that is comes with the finding",
    over: "it is not found any more, or the disk was replaced",
    bounds: &[],
    hold_seconds: 0,
    clear_seconds: 600,
    next_step: "replace the disk before it fails",
};

/// What the node keeps of itself and cannot read.
pub(crate) const RECORDS_DAMAGED: Rule = Rule {
    id: "records_damaged",
    title: "What the node keeps of itself is damaged",
    severity: Severity::Warning,
    condition: "a file of the state directory is damaged, cannot be written, or was set aside since the daemon started",
    over: "it is whole again; at the latest when the daemon starts anew",
    bounds: &[],
    hold_seconds: 0,
    clear_seconds: 0,
    next_step: "check the disk of state_dir; what was set aside lies beside the file",
};

/// Every rule, in the order of the documentation.
pub const RULES: [&Rule; 22] = [
    &HOST_SINGLE_PATH,
    &HOST_AWAY,
    &PATH_FLAPPING,
    &LUN_OFFLINE,
    &LUN_COPY_MISSING,
    &LUN_STALLED,
    &LUN_SLOW,
    &SCRUB_OVERDUE,
    &SCRUB_FINDINGS,
    &POOL_OFFLINE,
    &POOL_FILLING,
    &POOL_NEARLY_FULL,
    &POOL_OVERCOMMITTED,
    &JOURNAL_OFFLINE,
    &JOURNAL_FILLING,
    &JOURNAL_LOST,
    &DESTAGE_ERROR,
    &PORTAL_OFFLINE,
    &NOT_SERVED,
    &CERTIFICATE_ENDING,
    &DEVICE_HEALTH,
    &RECORDS_DAMAGED,
];

impl Rule {
    /// The rule of this name.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        RULES.into_iter().find(|rule| rule.id == id)
    }

    /// Where the documentation says more of it.
    #[must_use]
    pub fn doc(&self) -> String {
        format!("operate/alerts.html#{}", self.id)
    }
}
