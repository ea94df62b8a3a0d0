//! What a LUN with copies is on all of its nodes changes only when all can know of it: its object
//! in the arbiter is swapped first, by whoever changes it, and the other nodes follow that.

use crate::ask::{arbiter_problem, read};
use crate::object::{self, LunObject, LunState};
use crate::service::Mirrors;
use crate::steps::has_all;
use arbiter::{Answer, Arbiter, Key, Question, Swap};
use engine::{SharedChange, SharedState};
use manifest::code::Code;
use manifest::problem::Problem;
use replica::{Revision, RoleRecord};
use std::rc::Rc;
use std::time::Duration;

/// How long the other nodes may take to make their copies larger.
const GROWN_WITHIN: Duration = Duration::from_secs(15);

/// How often they are asked.
const ASKS: Duration = Duration::from_millis(100);

const fn state_of(state: SharedState) -> LunState {
    match state {
        SharedState::Served => LunState::Served,
        SharedState::Removed => LunState::Removed,
        SharedState::Purged => LunState::Purged,
    }
}

/// The object as the change has it.
fn changed(was: &LunObject, change: &SharedChange) -> LunObject {
    let mut is = was.clone();
    is.name.clone_from(&change.name);
    is.lun.size = change.lun.size;
    is.lun.storage.min_copies = change.lun.storage.min_copies;
    is.state = state_of(change.state);
    is.again = is.state == LunState::Served && (was.again || was.state == LunState::Removed);
    is.grown = was.grown || was.lun.size < is.lun.size;
    is
}

impl Mirrors {
    /// The nodes of these LUNs agree that they are so.
    pub(crate) async fn agree(self: Rc<Self>, shared: Vec<SharedChange>) -> Result<(), Problem> {
        let Some(nodes) = self.nodes.get() else {
            return Ok(());
        };
        // Out of the cluster a node has its LUNs for itself.
        let Some(found) = nodes.found() else {
            return Ok(());
        };
        let arbiter = nodes.arbiter().await.ok_or_else(|| {
            let detail =
                "what a LUN with copies is changes on all of its nodes, and etcd cannot be asked";
            Problem::new(Code::ClusterArbiter, detail).hint("`causeway cluster status` says why")
        })?;
        for change in &shared {
            // A copy that was set aside here is this node's own.
            if change
                .lun
                .storage
                .copies
                .is_some_and(|it| it.has(&found.name))
            {
                self.agree_on(&*arbiter, change, &found.name).await?;
            }
        }
        Ok(())
    }

    async fn agree_on(
        &self,
        arbiter: &dyn Arbiter,
        change: &SharedChange,
        own: &str,
    ) -> Result<(), Problem> {
        let Some(key) = object::key(&change.lun.naa) else {
            return Ok(());
        };
        // No other node knows of it yet.
        let Some((version, text)) = read(arbiter, &key).await? else {
            return Ok(());
        };
        let was = object::decode(&text).map_err(|why| garbled(&key, &why))?;
        let is = changed(&was, change);
        if is == was {
            return Ok(());
        }
        if is.lun.size < was.lun.size {
            let detail = format!(
                "LUN {}: one with copies on other nodes does not shrink yet",
                change.name
            );
            return Err(Problem::new(Code::Immutable, detail));
        }
        let grows = was.lun.size < is.lun.size;
        let version = self
            .swap_object(arbiter, (&key, version), is.by((own, self.nonce())))
            .await?;
        if grows {
            self.waits_for_growth(arbiter, change, version).await?;
        }
        Ok(())
    }

    /// Puts an object in the place of that version.
    ///
    /// # Errors
    /// There is another one meanwhile, or nobody knows.
    pub(crate) async fn swap_object(
        &self,
        arbiter: &dyn Arbiter,
        (key, version): (&Key, Revision),
        object: LunObject,
    ) -> Result<Revision, Problem> {
        let swap = Swap::new(key.clone(), version, object::encode(&object));
        match arbiter.ask(vec![Question::Swap(swap)]).await.pop() {
            Some(Answer::Swapped(version)) => Ok(version),
            Some(Answer::Refused(is)) => {
                let now = is.map_or(0, |it| it.0.0);
                let detail = format!(
                    "another node has changed LUN {} meanwhile: version {now} of it is there, and {} was expected",
                    object.name, version.0
                );
                Err(Problem::new(Code::ChangedMeanwhile, detail))
            }
            Some(Answer::Unknown(trouble)) => Err(arbiter_problem(&trouble.to_string())),
            Some(Answer::Is(_)) | None => Err(arbiter_problem("etcd did not answer")),
        }
    }

    /// The node that serves hosts is the last one with the new size.
    async fn waits_for_growth(
        &self,
        arbiter: &dyn Arbiter,
        change: &SharedChange,
        version: Revision,
    ) -> Result<(), Problem> {
        let naa = &change.lun.naa;
        let until = self.core.now().after(GROWN_WITHIN);
        loop {
            let Some((own, role)) = self.own_role(naa) else {
                return Ok(());
            };
            let (slot, is_owner) = (own, role.owner == own);
            if !is_owner || has_all(arbiter, naa, (Some(&role), slot), version).await {
                return Ok(());
            }
            if self.core.now() >= until {
                let detail = format!(
                    "LUN {}: the new size is agreed, and the other node has not made its copy larger yet; this one follows \
                     by itself once it has",
                    change.name
                );
                return Err(Problem::new(Code::PartlyDone, detail));
            }
            self.core.sleep_until(self.core.now().after(ASKS)).await;
        }
    }

    /// This node, and the role record of a LUN as its copy here knows it.
    fn own_role(&self, naa: &str) -> Option<(replica::NodeSlot, RoleRecord)> {
        let (found, cluster) = self.known()?;
        let entry = self.entries.borrow().get(naa).map(Rc::clone)?;
        Some((found.own.slot, cluster.status(entry.id())?.record))
    }
}

fn garbled(key: &Key, why: &str) -> Problem {
    arbiter_problem(&format!("{key}: what the LUN is cannot be read: {why}"))
}
