//! What the node does, for whoever samples it again and again.

use super::Controller;
use manifest::activity::{ActivityView, LunActivity, SessionActivity};
use manifest::time::rfc3339;

impl Controller {
    /// What the node does.
    pub async fn activity(&self) -> ActivityView {
        let facts = self.engine.luns().await;
        let mut sessions = self.engine.sessions().await;
        let cores = self.engine.cores().await;
        let at_us = self.core.now().0 / 1_000;
        sessions.sort_by_key(|session| session.id);
        let objects = self.objects();
        let luns = objects.luns.iter();
        ActivityView {
            node: self.config.node_name.clone(),
            started: rfc3339(self.started),
            at_us,
            cores,
            luns: luns
                .filter_map(|(name, lun)| Some(LunActivity::of(name, facts.get(&lun.naa)?)))
                .collect(),
            sessions: sessions.into_iter().map(SessionActivity::of).collect(),
        }
    }
}
