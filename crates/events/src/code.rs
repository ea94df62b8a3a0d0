//! The one catalogue of events: what the log, the API, the command line and
//! `docs/reference/events.md` say.

use markdown::{MarkdownTable, paragraph};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How bad it is.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, Debug,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is wrong.
    Info,
    /// Worth checking, or somebody was refused something.
    Warning,
    /// Something does not work, or data are at risk.
    Error,
}

impl Severity {
    /// All, the mildest first; files have their places.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Error];

    /// As documents and parameters have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|severity| severity.name() == name)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What the catalogue says of a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CatalogueEntry {
    /// What programs compare.
    pub code: Code,
    /// Its name, which never changes its meaning.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What happened, in a few words.
    pub title: &'static str,
    /// What its object is, and which fields it has.
    pub about: &'static str,
}

macro_rules! catalogue {
    ($($code:ident = $name:literal, $severity:ident, $title:literal, $about:literal;)*) => {
        /// A kind of event.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Code {
            $(#[doc = $title] $code,)*
        }

        /// Every code.
        pub const CATALOGUE: &[CatalogueEntry] = &[
            $(CatalogueEntry {
                code: Code::$code, name: $name, severity: Severity::$severity, title: $title, about: $about,
            },)*
        ];

        impl Code {
            /// What the catalogue says of it.
            #[must_use]
            pub fn entry(self) -> &'static CatalogueEntry {
                &CATALOGUE[self as usize]
            }
        }
    };
}

catalogue! {
    NodeStarted = "node_started", Info, "The daemon started",
        "the node; `version`, and `unclean` where the daemon before had not stopped in order";
    NodeStopping = "node_stopping", Info, "The daemon stops",
        "the node";
    ConfigApplied = "config_applied", Info, "Objects were changed, or settings came into force",
        "the node; `generation` of the objects and the first of these `objects`, or the keys of `settings`; the audit log says by whom and how";
    ConfigWaits = "config_waits", Info, "Settings were stored that wait for a restart",
        "the node; the keys of `settings` that wait, which may be more than one change has stored";
    SessionOpened = "session_opened", Info, "A host logged in",
        "the host; `session`, `initiator`, `from`, `target`, `portal`. Discoveries are no events";
    SessionClosed = "session_closed", Info, "A session ended",
        "the host; `session`, `initiator`, `from`, `target`, and `portal` and `reason` where they are known";
    PathLost = "path_lost", Warning, "A host has fewer paths to a target, and did not log out",
        "the host; `initiator`, `target`, `paths` that it has now, and had `before`";
    PathAdded = "path_added", Info, "A host has more paths to a target, and two or more",
        "the host; `initiator`, `target`, `paths` that it has now, and had `before`";
    PortalSilent = "portal_silent", Error, "A portal does not listen",
        "the portal; `group` and `reason`";
    PortalListens = "portal_listens", Info, "A portal listens again",
        "the portal; `group`";
    LoginRefused = "login_refused", Warning, "A login was refused",
        "the initiator; `reason`, `from`, `target`. The same of one initiator once a minute at most, with `repeated`; another reason or target is another";
    LunOnline = "lun_online", Info, "A LUN is in service",
        "the LUN";
    LunOffline = "lun_offline", Error, "A LUN is out of service",
        "the LUN; `reason`";
    LunStalled = "lun_stalled", Error, "The storage of a LUN answers nothing",
        "the LUN; `seconds` for which nothing has ended, `operations` that are under way";
    LunAnswers = "lun_answers", Info, "The storage of a LUN answers again",
        "the LUN";
    LunMoved = "lun_moved", Info, "Another node serves a LUN",
        "the LUN; `owner` now and `before`, and `epoch`, how many owners and starts of them there were. Each node reports what it knows";
    CopyBehind = "copy_behind", Warning, "A copy of a LUN is behind",
        "the LUN; `node` of the copy, and the `state` of this node's own";
    CopyInSync = "copy_in_sync", Info, "A copy of a LUN has all of it again",
        "the LUN; `node` of the copy, and the `state` of this node's own";
    JournalWell = "journal_well", Info, "A journal works as it should",
        "the pool";
    JournalFailing = "journal_failing", Error, "A journal does not work as it should",
        "the pool; `state` and `reason`";
    JournalFull = "journal_full", Warning, "A journal is nine tenths full",
        "the pool; `used_bytes`, `size_bytes`";
    JournalHasRoom = "journal_has_room", Info, "Less than eight tenths of a journal are in use again",
        "the pool; `used_bytes`, `size_bytes`";
    DestageFailing = "destage_failing", Error, "What a journal holds of a LUN cannot be destaged",
        "the LUN; `pool` and `reason`";
    DestageWell = "destage_well", Info, "What a journal holds of a LUN is destaged again",
        "the LUN; `pool`";
    ScrubBegan = "scrub_began", Info, "A scrub began",
        "the LUN";
    ScrubEnded = "scrub_ended", Info, "A scrub ended",
        "the LUN; `state`, and `reason` where it was given up";
    ScrubFound = "scrub_found", Error, "A scrub found damage",
        "the LUN; `findings`, how many there are";
    PoolAway = "pool_away", Error, "A pool is not there",
        "the pool; `reason`";
    PoolBack = "pool_back", Info, "A pool is there again",
        "the pool";
    PoolLow = "pool_low", Warning, "Less than a tenth of a pool is free",
        "the pool; `available_bytes`, `size_bytes`";
    PoolFull = "pool_full", Error, "Less than a hundredth of a pool is free",
        "the pool; `available_bytes`, `size_bytes`";
    PoolHasRoom = "pool_has_room", Info, "A pool has room again",
        "the pool; `available_bytes`, `size_bytes`";
    RecordsDamaged = "records_damaged", Warning, "A file of what is recorded was damaged and set aside",
        "the node; `file` and `reason`";
    DiskGone = "disk_gone", Warning, "A disk is not there any more",
        "the disk; `device`, `bay`, and what it is `used_by`, where that is known";
    DiskThere = "disk_there", Info, "A disk is new, or there again",
        "the disk; `device`, `bay`, `used_by`";
    DiskWorse = "disk_worse", Warning, "The health of a disk is worse than it was",
        "the disk; `health` now and `before`, `reason`, `device`, `bay`, `used_by`";
    DiskBetter = "disk_better", Info, "The health of a disk is better than it was",
        "the disk; `health` now and `before`, `device`, `bay`, `used_by`";
    BayDark = "bay_dark", Warning, "A bay holds no disk any more, or one that does not start",
        "the bay; `state`, and the `serial` number of what was in it";
    BayWell = "bay_well", Info, "A bay that held no disk any more is well again",
        "the bay; `state`";
    SettingsRefused = "settings_refused", Warning, "Settings that were read again cannot be used; those before hold",
        "the node; `reason`, which names file, line and key";
    CertificateReplaced = "certificate_replaced", Info, "https has a new certificate",
        "the node; its `fingerprint` (SHA-256), and `reason`: what the one before lacked, or that its files changed";
    CertificateRefused = "certificate_refused", Warning, "https goes on with the certificate that it had",
        "the node; `reason`: what is wrong with the files, or why none is made anew";
    JobBegan = "job_began", Info, "A job began, or goes on where it was",
        "the job; `kind`, what it is done to as `of`, and who began it as `by`";
    JobFinished = "job_finished", Info, "A job is done",
        "the job; `kind`, `of`, `by`";
    JobCancelled = "job_cancelled", Info, "A job was cancelled",
        "the job; `kind`, `of`, `by`";
    JobFailed = "job_failed", Warning, "A job failed, or the daemon ended before it",
        "the job; `kind`, `of`, `by`, and `reason`";
    AlertFired = "alert_fired", Warning, "An alert fires, or is worse",
        "what it is of; `alert`, `rule` and `severity`";
    AlertAcknowledged = "alert_acknowledged", Info, "Somebody takes care of an alert",
        "what it is of; `alert`, `rule`, `severity`, `by`, and `note`";
    AlertUnacknowledged = "alert_unacknowledged", Info, "Nobody takes care of an alert any more",
        "what it is of; `alert`, `rule`, `severity`, `by`";
    AlertResolved = "alert_resolved", Info, "An alert is over",
        "what it was of; `alert`, `rule` and `severity`";
}

impl Code {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        CATALOGUE
            .iter()
            .find(|entry| entry.name == name)
            .map(|entry| entry.code)
    }

    /// Others cause it as often as they like: the same is reported once a minute at most.
    pub(crate) fn is_thinned(self) -> bool {
        self == Self::LoginRefused
    }
}

/// The text of `docs/reference/events.md`.
#[must_use]
pub fn page() -> String {
    let mut table = MarkdownTable::new(&["Code", "Severity", "What happened", "Object and fields"]);
    for entry in CATALOGUE {
        let code = format!("`{}`", entry.name);
        table.row(&[&code, entry.severity.name(), entry.title, entry.about]);
    }
    let about = paragraph(
        "What may happen on a node, as the event log has it: `causeway event ls`, the page's events, `GET \
         /api/v1/events/log`, and live `GET /api/v1/events`. [Events, audit log and history](../operate/records.md) says \
         how they are used and kept. A code never changes its meaning. Identifiers rise for ever, so that the last one that \
         was seen says where to go on, and leave numbers out.",
        "",
    );
    format!(
        "<!-- Generated by the tests of crates/events; do not edit. -->\n\n# Events\n\n{about}\n{}",
        table.into_text()
    )
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_code_is_where_its_name_is() {
        let mut names = BTreeSet::new();
        for entry in CATALOGUE {
            assert_eq!(
                (entry.code.entry(), Code::named(entry.name)),
                (entry, Some(entry.code))
            );
            assert!(names.insert(entry.name));
        }
        assert_eq!(Code::named("nothing"), None);
        for severity in Severity::ALL {
            assert_eq!(Severity::named(severity.name()), Some(severity));
        }
    }

    #[test]
    fn the_page_of_events_is_the_catalogue() {
        manifest::golden::assert_page("docs/reference/events.md", &page());
    }
}
