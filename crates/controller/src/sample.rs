//! What the metrics report, gathered at one moment.

use super::Controller;
use manifest::disks::DiskReport;
use manifest::facts::{
    CoreFacts, DigestFacts, LoginFacts, LunFacts, MoveFacts, NodeNic, PoolFacts, PortalFacts,
    SessionFacts,
};
use manifest::objects::Objects;
use manifest::view::MemoryView;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What there is to report.
pub struct Sample {
    /// The generation of the objects.
    pub generation: u64,
    /// The LUNs in service, by name.
    pub luns: BTreeMap<String, LunFacts>,
    /// Where the node listens, and where it is to.
    pub portals: Vec<PortalFacts>,
    /// Its NICs that have an address.
    pub nics: Vec<NodeNic>,
    /// Of all cores.
    pub sessions: Vec<SessionFacts>,
    /// What memory may be taken.
    pub memory: MemoryView,
    /// The pools, with their journals.
    pub pools: Vec<PoolFacts>,
    /// The disks of the machine, and the bays of its enclosures.
    pub disks: Arc<DiskReport>,
    /// By number: load, and what drives each.
    pub cores: Vec<CoreFacts>,
    /// Sessions that went to other cores.
    pub moves: MoveFacts,
    /// Digests that did not match.
    pub digests: DigestFacts,
    /// Logins by result.
    pub logins: Vec<LoginFacts>,
    /// Those of `generation`: what was asked for, and how it is.
    pub objects: Rc<Objects>,
}

/// So many LUNs are named in one go, and then whatever else is ready on the core has its turn.
const AT_ONCE: usize = 128;

/// By name what is known by identifier.
async fn named(
    objects: &Objects,
    mut facts: BTreeMap<String, LunFacts>,
) -> BTreeMap<String, LunFacts> {
    let mut named = BTreeMap::new();
    for (number, (name, lun)) in objects.luns.iter().enumerate() {
        if number % AT_ONCE == AT_ONCE - 1 {
            env::yield_now().await;
        }
        if let Some(facts) = facts.remove(&lun.naa) {
            named.insert(name.clone(), facts);
        }
    }
    named
}

impl Controller {
    /// What the metrics report.
    pub async fn sample(&self) -> Sample {
        let facts = self.engine.luns().await;
        let sessions = self.engine.sessions().await;
        let pools = self.pools().await;
        let cores = self.engine.cores().await;
        let logins = self.engine.logins();
        let objects = self.objects();
        let luns = named(&objects, facts).await;
        Sample {
            generation: self.generation(),
            luns,
            portals: self.engine.portals().await,
            nics: self.engine.nics().await,
            sessions,
            memory: self.memory(&objects).await,
            pools,
            disks: self.disks(),
            cores,
            moves: self.engine.moves(),
            digests: self.engine.digest_errors(),
            logins,
            objects,
        }
    }
}
