//! What the node does, for whoever samples it again and again.

use super::Controller;
use ::jobs::Change as JobChange;
use manifest::activity::{ActivityView, LunActivity, SessionActivity};
use manifest::disks::DiskReport;
use manifest::facts::{PoolFacts, PortalFacts, RefusalFacts};
use manifest::pulse::{Asked, Ended, LunPulse, LunStages, SessionStages, Transfers, Watched};
use manifest::time::rfc3339;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use units::Histogram;

/// So many objects of a generation are named.
const NAMED_MAX: usize = 3;

/// So many generations are remembered until somebody asks for a moment.
pub(crate) const CHANGED_MAX: usize = 100;

/// The objects that a generation changed: the first of them by kind and name, and how many more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedObjects {
    first: Vec<String>,
    more: usize,
}

impl ChangedObjects {
    /// Of these, as sentences name them.
    pub fn of(mut all: impl Iterator<Item = String>) -> Self {
        let mut first = Vec::new();
        let mut more = 0;
        for name in &mut all {
            if first.contains(&name) {
                continue;
            }
            if first.len() < NAMED_MAX {
                first.push(name);
            } else {
                more += 1;
            }
        }
        Self { first, more }
    }
}

impl fmt::Display for ChangedObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// What there is to record of a moment, and to compare with the moment before.
#[derive(Clone, Debug)]
pub struct Moment {
    /// The generation of the objects.
    pub generation: u64,
    /// What generations changed that were made since somebody asked for a moment.
    pub changed: BTreeMap<u64, ChangedObjects>,
    /// How disks and bays are.
    pub disks: Arc<DiskReport>,
    /// What the node does, without its LUNs.
    pub activity: ActivityView,
    /// What the LUNs do that somebody watches, and which those are; `None`: nobody does.
    pub documents: Option<(Watched, Vec<Arc<LunActivity>>)>,
    /// How the LUNs are and what they did, by name.
    pub luns: Vec<LunPulse>,
    /// How long reads and writes of all of them took that came since the moment before.
    pub together: [Histogram; 2],
    /// How long the stages of the LUNs' commands took, in their order; empty unless asked for.
    pub stages: Vec<LunStages>,
    /// The same of all of them together: total, network, queue, journal and backend.
    pub stages_together: [[Histogram; 5]; 2],
    /// How long the commands of the sessions took, by the session's number.
    pub transfers: BTreeMap<u64, Transfers>,
    /// How long the stages of sessions' commands took, of those that had some; empty unless asked
    /// for.
    pub session_stages: Vec<SessionStages>,
    /// The pools, with their journals.
    pub pools: Vec<PoolFacts>,
    /// Where it listens.
    pub portals: Vec<PortalFacts>,
    /// The last logins that were refused, newest first.
    pub refusals: Vec<RefusalFacts>,
    /// Sessions that ended since the place that was named.
    pub ended: Ended,
    /// Jobs that began and ended since somebody asked for a moment.
    pub jobs: Vec<JobChange>,
}

impl Controller {
    /// What the node does.
    pub async fn activity(&self) -> ActivityView {
        let pulse = self
            .engine
            .pulse(Asked {
                ended_since: u64::MAX,
                documents: Watched::All,
                ..Asked::default()
            })
            .await;
        self.view(pulse.documents, pulse.sessions).await
    }

    /// Sessions that ended since that place; 0, or what was named the last time.
    #[must_use]
    pub fn ended(&self, since: u64) -> Ended {
        self.engine.ended(since)
    }

    /// What drives the disks of each core: `io_uring` or `threads`.
    pub async fn disk_engines(&self) -> Vec<String> {
        let cores = self.engine.cores().await;
        cores.into_iter().map(|core| core.disk_engine).collect()
    }

    async fn view(
        &self,
        luns: Vec<Arc<LunActivity>>,
        mut sessions: Vec<SessionActivity>,
    ) -> ActivityView {
        let cores = self.engine.cores().await;
        let at_us = self.core.now().0 / 1_000;
        sessions.sort_by_key(|session| session.id);
        ActivityView {
            node: self.config.node_name.clone(),
            started: rfc3339(self.started),
            at_us,
            cores,
            luns,
            sessions,
        }
    }

    /// What there is to record now, for one alone who asks again and again: what came since the
    /// moment before is said once. `asked.ended_since`: where the last moment's `ended` said to go
    /// on, 0 at first. `pools`: what is known of them, for whoever asks more often than their file
    /// systems need to be asked; their journals are asked all the same.
    pub async fn moment(&self, asked: Asked, pools: Option<Vec<PoolFacts>>) -> Moment {
        let (generation, changed) = (self.generation(), self.changed.take());
        let watched = asked.documents.clone();
        let pulse = self.engine.pulse(asked).await;
        let now = self.core.now();
        self.traffic.borrow_mut().take(now, &pulse.sessions);
        Moment {
            generation,
            changed,
            disks: self.disks(),
            activity: self.view(Vec::new(), pulse.sessions).await,
            documents: (watched != Watched::Nothing).then_some((watched, pulse.documents)),
            luns: pulse.luns,
            together: pulse.together,
            stages: pulse.stages,
            stages_together: pulse.stages_together,
            transfers: pulse.transfers,
            session_stages: pulse.session_stages,
            pools: match pools {
                Some(known) => self.with_journals(known).await,
                None => self.pools().await,
            },
            portals: self.engine.portals().await,
            refusals: self.engine.refusals().await,
            ended: pulse.ended,
            jobs: self.registry.jobs.borrow_mut().take_changes(),
        }
    }
}
