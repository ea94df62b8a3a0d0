//! What the cluster's records say of LUNs is done on this node.

use crate::ask::read;
use crate::entry::{Begun, Entry};
use crate::follow::{Followed, Known, Seen, Step};
use crate::found::Found;
use crate::object::{self, HasIt, LunObject, LunState};
use crate::service::Mirrors;
use arbiter::{Arbiter, Question, Swap};
use cluster::{Cluster, CopyFile, LunStatus};
use env::durable::read_file;
use manifest::plan::{Elsewhere, ElsewhereWhat};
use replica::{CopyId, NodeSlot, Revision, RoleRecord};
use std::rc::Rc;
use std::time::Duration;

/// Bytes of what is noted of a copy that was destroyed, at most.
const GONE_BYTES_MAX: u64 = 64;

/// How long a LUN may take to go to another node that has all of it.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(3);

impl Mirrors {
    /// LUNs hear what the arbiter says of them.
    pub(crate) fn know_roles(&self, roles: Vec<(String, (Revision, RoleRecord))>) {
        let Some(cluster) = self.cluster.get() else {
            return;
        };
        let entries = self.entries.borrow();
        for (naa, known) in roles {
            if let Some(entry) = entries.get(&naa) {
                cluster.knows(entry.id(), known);
            }
        }
    }

    /// Does what is to be done for what has changed.
    pub(crate) async fn follow_all(
        &self,
        followed: &mut Followed,
        (found, arbiter): (&Found, &dyn Arbiter),
    ) {
        for naa in std::mem::take(&mut followed.pending) {
            let Some(known) = followed.known.get(&naa).cloned() else {
                continue;
            };
            let done = self.follow_one(&naa, &known, (found, arbiter)).await;
            if done != Ok(true) {
                followed.pending.insert(naa.clone());
            }
            followed.note(&naa, done.map(drop));
        }
    }

    /// Answers whether all is as it shall be.
    async fn follow_one(
        &self,
        naa: &str,
        known: &Known,
        (found, arbiter): (&Found, &dyn Arbiter),
    ) -> Result<bool, String> {
        let (Some((version, object)), Some(luns)) = (&known.object, self.luns.get()) else {
            return Ok(true);
        };
        let here = luns.known(naa);
        let slot = found.own.slot;
        let role = known.role.as_ref().map(|it| &it.1);
        let seen = Seen {
            own: (&found.name, slot),
            object,
            role,
            here: here.as_ref().map(|(name, lun, is)| (&**name, lun, *is)),
            kept: self.kept_copy(naa, slot).await,
        };
        match seen.step() {
            Step::Waits => return Ok(false),
            Step::InTheWay => {
                return Err(
                    "a copy that was set aside is here: `causeway lun purge` gives it up, and then there is room for a new \
                     one"
                    .to_owned(),
                );
            }
            Step::Make => return self.make(naa, (object, role), slot).await,
            Step::Do(what) => {
                let grows = here.is_some_and(|it| it.1.size < object.lun.size);
                let is_first = role.is_some_and(|it| it.owner == slot);
                if grows && is_first && !has_all(arbiter, naa, (role, slot), *version).await {
                    return Ok(false);
                }
                self.elsewhere(naa, *what).await?;
            }
            Step::Done => {}
        }
        if object.grown && role.is_some_and(|it| it.copy_of(slot).is_some()) {
            self.say_has(arbiter, naa, (slot, *version)).await;
        }
        Ok(true)
    }

    async fn elsewhere(&self, naa: &str, what: ElsewhereWhat) -> Result<(), String> {
        let Some(luns) = self.luns.get() else {
            return Ok(());
        };
        tracing::info!(naa, ?what, "a LUN was changed on another node");
        let naa = naa.to_owned();
        let done = luns.elsewhere(Elsewhere { naa, what }).await;
        done.map_err(|problem| problem.to_string())
    }

    async fn make(
        &self,
        naa: &str,
        (object, role): (&LunObject, Option<&RoleRecord>),
        slot: NodeSlot,
    ) -> Result<bool, String> {
        let copy = role.and_then(|it| it.copy_of(slot));
        let Some(luns) = self.luns.get() else {
            return Ok(false);
        };
        if self.is_gone(naa, copy).await {
            return Ok(true);
        }
        let made = luns.make(object.name.clone(), object.lun.clone()).await;
        made.map_err(|problem| problem.to_string())?;
        tracing::info!(
            lun = object.name,
            naa,
            "a LUN of the cluster has a copy here"
        );
        Ok(true)
    }

    /// This copy was destroyed here, and is not made again.
    async fn is_gone(&self, naa: &str, copy: Option<CopyId>) -> bool {
        let files = self.core.files();
        let noted = read_file(&*files, &self.path_of_gone(naa), GONE_BYTES_MAX).await;
        let Ok(noted) = noted else {
            return false;
        };
        let was = std::str::from_utf8(&noted).unwrap_or_default();
        let was = u128::from_str_radix(was, 16).ok().map(CopyId);
        was.is_none_or(|was| copy == Some(was))
    }

    /// The copy that this node has kept something of.
    pub(crate) async fn kept_copy(&self, naa: &str, slot: NodeSlot) -> Option<CopyId> {
        let entry = self.entries.borrow().get(naa).map(Rc::clone);
        if let Some(entry) = entry {
            return entry.file.copy_of(slot);
        }
        let file = CopyFile::new(&self.core, self.path(naa));
        file.kept().await.ok()?.known.1.copy_of(slot)
    }

    /// Other nodes learn that this one has a LUN as that version says.
    async fn say_has(
        &self,
        arbiter: &dyn Arbiter,
        naa: &str,
        (slot, version): (NodeSlot, Revision),
    ) {
        let Some(key) = object::has_key(naa, slot) else {
            return;
        };
        let Ok(is) = read(arbiter, &key).await else {
            return;
        };
        let (expected, has) = is.map_or((Revision(0), 0), |it| (it.0, HasIt::version_of(&it.1)));
        if has < version.0 {
            let text = HasIt::new(version.0, self.nonce()).encode();
            let swap = Question::Swap(Swap::new(key, expected, text));
            // Where it is not written, it is tried again with the next change.
            let _answers = arbiter.ask(vec![swap]).await;
        }
    }

    /// Has each LUN that this node owns get the copies that it shall have.
    pub(crate) async fn tend_copies(&self, followed: &Followed, found: &Found) {
        let Some(cluster) = self.cluster.get() else {
            return;
        };
        for entry in self.all() {
            let object = followed
                .known
                .get(&entry.naa)
                .and_then(|it| it.object.as_ref());
            let Some((_, object)) = object.filter(|it| it.1.state == LunState::Served) else {
                continue;
            };
            let works = *entry.begun.borrow() == Begun::Works;
            let status = works.then(|| cluster.status(entry.id())).flatten();
            if let Some(status) = status.filter(|it| it.record.owner == found.own.slot) {
                self.tend(&entry, (object, &status), (cluster, found)).await;
            }
        }
    }

    async fn tend(
        &self,
        entry: &Entry,
        (object, status): (&LunObject, &LunStatus),
        (cluster, found): (&Cluster, &Found),
    ) {
        let record = &status.record;
        let names = object.copies();
        let wanted = names
            .iter()
            .flat_map(|it| it.iter())
            .filter_map(|it| found.slot_of(it));
        let wanted: Vec<NodeSlot> = wanted.collect();
        let is_kept = |copy: &&(NodeSlot, CopyId)| {
            // A node that has left the cluster is named by no name that is known.
            wanted.contains(&copy.0)
        };
        let mut copies: Vec<(NodeSlot, CopyId)> =
            record.copies.iter().filter(is_kept).copied().collect();
        for node in wanted.iter().filter(|it| record.copy_of(**it).is_none()) {
            let id = *entry.adding.borrow_mut().entry(*node).or_insert_with(|| {
                let mut id = [0; 16];
                self.core.fill_random(&mut id);
                CopyId::new(u128::from_le_bytes(id), true)
            });
            copies.push((*node, id));
        }
        copies.sort_unstable();
        if copies == record.copies {
            entry.adding.borrow_mut().clear();
            return;
        }
        if !wanted.contains(&found.own.slot) {
            let until = self.core.now().after(HAND_OVER_WITHIN);
            let given = cluster.hand_over(entry.id(), until).await;
            tracing::info!(naa = entry.naa, ?given, "the copy here is to be removed");
            return;
        }
        cluster.change_copies(entry.id(), copies);
    }
}

/// All others in sync have a LUN as that version says.
pub(crate) async fn has_all(
    arbiter: &dyn Arbiter,
    naa: &str,
    (role, own): (Option<&RoleRecord>, NodeSlot),
    version: Revision,
) -> bool {
    let Some(role) = role else {
        return false;
    };
    for node in role.in_sync.without(own).iter() {
        let Some(key) = object::has_key(naa, node) else {
            return false;
        };
        let is = read(arbiter, &key).await.ok().flatten();
        if is.is_none_or(|it| HasIt::version_of(&it.1) < version.0) {
            return false;
        }
    }
    true
}
