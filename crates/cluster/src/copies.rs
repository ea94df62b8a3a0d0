//! Copies of a LUN are added and removed, and one goes on by force.

use crate::cluster::Cluster;
use crate::input::Input;
use crate::lun::Lun;
use replica::{CopyId, Moment, NodeSlot, NotPromoted, Revision, RoleRecord};
use tokio::sync::oneshot;
use write_back::VolumeId;

impl Cluster {
    /// These shall be the copies of a LUN that this node owns. To be said until the record has
    /// them: something else may have to end first.
    pub fn change_copies(&self, id: VolumeId, copies: Vec<(NodeSlot, CopyId)>) {
        self.hands(id, Input::Copies(copies));
    }

    /// So many nodes have to be in sync for writes of a LUN: while they are fewer, those wait.
    pub fn set_min_copies(&self, id: VolumeId, nodes: u32) {
        self.hands(id, Input::MinCopies(nodes));
    }

    /// The arbiter has this record of a LUN.
    pub fn knows(&self, id: VolumeId, (revision, record): (Revision, RoleRecord)) {
        self.hands(id, Input::Known(revision, record));
    }

    fn hands(&self, id: VolumeId, input: Input) {
        if let Some(lun) = self.lun(id) {
            lun.hears(input);
        }
    }

    /// Whether a LUN's copy here could be [promoted](Self::promote) now.
    ///
    /// # Errors
    /// [`NotPromoted`].
    pub fn may_promote(&self, id: VolumeId) -> Result<(), NotPromoted> {
        let lun = self.lun(id).filter(|it| !it.is_stopped());
        let lun = lun.ok_or(NotPromoted::NoCopy)?;
        lun.copy.borrow().may_promote(lun.node.now())
    }

    /// Has this node claim a LUN with its copy alone, as those that had all of it are gone. It is
    /// done when the record says so.
    ///
    /// # Errors
    /// [`NotPromoted`]: nothing was done.
    pub async fn promote(&self, id: VolumeId) -> Result<(), NotPromoted> {
        let (answer, answered) = oneshot::channel();
        self.hands(id, Input::Promote(answer));
        answered.await.unwrap_or(Err(NotPromoted::NoCopy))
    }
}

impl Lun {
    pub(crate) fn wants_copies(&self, copies: &[(NodeSlot, CopyId)], at: Moment) {
        let begun = self.copy.borrow_mut().change_copies(copies, at);
        tracing::debug!(?copies, begun, "other copies are wanted");
    }

    /// Nodes that had copies by the record before and have none now.
    pub(crate) async fn forgets_who_left(&self, before: &RoleRecord) {
        let now = self.kept.borrow().known.1.copies.clone();
        let gone = before.copies.iter().filter(|it| !now.contains(it));
        let gone = gone.filter(|it| it.0 != self.node.slot());
        for node in gone.map(|it| it.0) {
            self.ends_feeds(node);
            if let Some(pair) = self.pair(node) {
                pair.forgets(self.id);
            }
            if self.unit.forgets(node) {
                self.tenure.paths_changed();
            }
            self.forget_removed(node).await;
        }
    }
}
