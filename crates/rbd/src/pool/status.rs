//! How a pool and its cluster are, and what its images take.

use super::ImagePool;
use crate::error::RbdError;
use crate::health::{Health, Severity};
use env::{CoreHandle, detach, in_time};
use std::collections::BTreeMap;
use std::time::Duration;
use units::Now;
use volume::OpenError;

/// How long what its images take is good enough: without a map of objects each of them is asked.
const MEASURE: Duration = Duration::from_secs(60);

/// How the pool is, as far as its cluster has answered.
#[derive(Clone, Debug)]
pub struct PoolStatus {
    /// Why nothing of it can be used, where that is so.
    pub missing: Option<OpenError>,
    /// The cluster's id, while there is a connection.
    pub fsid: Option<String>,
    /// What the cluster said last, and when.
    pub health: Option<(Health, Now)>,
    /// The last question for that was not answered.
    pub is_silent: bool,
}

impl ImagePool {
    /// For `pool show` and the metrics: whether it is there, and what the cluster said last.
    #[must_use]
    pub fn status(&self) -> PoolStatus {
        let state = self.state.borrow();
        PoolStatus {
            missing: state.missing.clone(),
            fsid: state.cluster.as_ref().map(|it| it.fsid().to_owned()),
            health: state.health.clone(),
            is_silent: state.is_silent,
        }
    }

    /// Asks for the cluster's health, where that is due, and reports what is new of it in the log;
    /// `words` says it.
    pub async fn ask_health(&self, core: &CoreHandle, words: impl Fn(&str, &Health) -> String) {
        let now = core.now();
        let Ok(cluster) = self.cluster() else { return };
        if !self.is_due(now) {
            return;
        }
        match cluster.health(core).await {
            Ok(health) => {
                let words = words(cluster.fsid(), &health);
                self.note_health(&words, health, now);
            }
            Err(error) => return self.note_silence(&error),
        }
        // Monitors answer where OSDs do not, and also one who was shut out.
        match self.probe(core, &cluster).await {
            Ok(()) => self.note_answer(),
            Err(error) => self.note_silence(&error),
        }
    }

    fn note_answer(&self) {
        if std::mem::take(&mut self.state.borrow_mut().is_silent) {
            tracing::info!(pool = self.spec.name, "the cluster answers again");
        }
    }

    fn note_health(&self, words: &str, health: Health, now: Now) {
        let (pool, mut state) = (self.spec.name.as_str(), self.state.borrow_mut());
        let before = state.health.as_ref().map(|(health, _)| health.severity);
        match health.severity {
            now if before == Some(now) => {}
            Severity::Ok if before.is_none() => {}
            Severity::Ok => tracing::info!(pool, "{words}"),
            Severity::Warn => tracing::warn!(pool, "{words}"),
            Severity::Error => tracing::error!(pool, "{words}"),
        }
        state.health = Some((health, now));
    }

    fn note_silence(&self, error: &RbdError) {
        let (pool, mut state) = (self.spec.name.as_str(), self.state.borrow_mut());
        if !std::mem::replace(&mut state.is_silent, true) {
            tracing::error!(pool, "{error}");
        }
    }

    /// Bytes that the open images take, by the NAA identifier of their LUNs. Each is asked in its
    /// time, once a minute.
    pub async fn usage(&self, core: &CoreHandle) -> BTreeMap<String, u64> {
        self.measure(core).await;
        self.state.borrow().usage.clone()
    }

    async fn measure(&self, core: &CoreHandle) {
        let now = core.now();
        let measured = self.state.borrow().measured;
        let fresh = measured.is_some_and(|measured| now.since(measured) < MEASURE);
        if fresh || self.state.borrow().is_silent {
            return;
        }
        self.state.borrow_mut().measured = Some(now);
        let open = self.state.borrow().open.clone();
        for (naa, image) in open {
            let Some(image) = image.upgrade() else {
                self.state.borrow_mut().open.remove(&naa);
                continue;
            };
            let asked = async move { image.allocated().await };
            let patience = self.spec.cluster.patience;
            let asked = in_time(core, patience, detach(core, asked)).await;
            if let Some(Ok(bytes)) = asked {
                self.state.borrow_mut().usage.insert(naa, bytes.0);
            }
        }
    }
}
