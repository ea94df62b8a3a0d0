//! Notes what a copy lacks from when it is removed from those in sync: see
//! [`Removed`](crate::removed::Removed).

use crate::input::Input;
use crate::lun::Lun;
use crate::removed::{Removed, few_parts};
use replica::NodeSlot;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;
use volume::{Cut, IoError, Volume};
use write_back::Committing;

/// How long until a cut is tried again, while this node does not order the LUN yet.
const CUTS_AGAIN: Duration = Duration::from_millis(10);

/// Nothing is noted if the LUN is not ordered here by then.
const ORDERS_WITHIN: Duration = Duration::from_secs(60);

/// A node that comes and goes has no new cut within this time: the one before holds as well, and
/// histories distinguish few of them.
const NEXT_CUT: Duration = Duration::from_secs(10);

impl Lun {
    /// These copies are not in sync any more. Nothing that they have not got is committed yet; if
    /// it were, what is noted would be of no use to them, and not wrong.
    pub(crate) async fn note_removed(self: &Rc<Self>, nodes: Vec<NodeSlot>) {
        let now = self.core.now();
        let nodes: Vec<NodeSlot> = {
            let mut noted = self.noted.borrow_mut();
            let is_due = |it: &NodeSlot| noted.get(it).is_none_or(|at| now >= at.after(NEXT_CUT));
            let due: Vec<NodeSlot> = nodes.into_iter().filter(is_due).collect();
            noted.extend(due.iter().map(|it| (*it, now)));
            due
        };
        if nodes.is_empty() {
            return;
        }
        let mut begun = Vec::new();
        for ring in self.rings() {
            let committing = self.volume.committing(&self.core, ring.into()).await;
            begun.extend(committing);
        }
        let lun = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let noted = lun.notes(begun).await;
            if noted.is_none() {
                lun.noted.borrow_mut().retain(|it, _| !nodes.contains(it));
            }
            for node in nodes {
                let removed = noted.clone().map(|(below, cut, parts)| Removed {
                    node,
                    below,
                    cut,
                    parts,
                });
                removed
                    .into_iter()
                    .for_each(|it| lun.hears(Input::Removed(it)));
            }
        }));
    }

    /// Numbers of each ring, a cut, and the parts of what was committed between them and it.
    async fn notes(
        self: &Rc<Self>,
        begun: Vec<Committing>,
    ) -> Option<(Vec<u64>, Cut, Vec<Range<u64>>)> {
        let cut = self.cuts().await;
        let (mut below, mut changed) = (Vec::new(), Vec::new());
        for it in begun {
            // Each of them ends here, whatever came of the cut.
            let committed = self.volume.committed(&self.core, it).await;
            if let Ok(committed) = committed {
                below.push(it.below.0);
                changed.extend(committed);
            }
        }
        let is_all = below.len() == self.rings().len();
        let block = u64::from(self.volume.shape().block_size.bytes());
        let cut = cut.filter(|_| is_all)?;
        Some((below, cut, few_parts(&changed, block)))
    }

    /// Makes a cut as soon as this node orders the LUN.
    async fn cuts(&self) -> Option<Cut> {
        let ends = self.core.now().after(ORDERS_WITHIN);
        loop {
            let is_owner = self.kept.borrow().known.1.owner == self.node.slot();
            let is_over = self.is_stopped() || self.ends.get() || self.core.now() >= ends;
            if !is_owner || is_over {
                return None;
            }
            match self.volume.cut(&self.core).await {
                Ok(cut) => return Some(cut),
                Err(IoError::Transition) => {
                    let now = self.core.now();
                    self.core.sleep_until(now.after(CUTS_AGAIN)).await;
                }
                Err(error) => {
                    tracing::debug!(?error, "nothing is noted of a copy that was removed");
                    return None;
                }
            }
        }
    }

    /// Stores what was noted of a copy.
    pub(crate) async fn keep_removed(&self, removed: Removed) {
        let all = {
            let mut all = self.removed.borrow_mut();
            all.retain(|it| it.node != removed.node);
            all.push(removed);
            all.clone()
        };
        self.store_removed(&all).await;
    }

    /// That copy is none any more: what was noted is not of another one in its place.
    pub(crate) async fn forget_removed(&self, node: NodeSlot) {
        let all = {
            let mut all = self.removed.borrow_mut();
            if !all.iter().any(|it| it.node == node) {
                return;
            }
            all.retain(|it| it.node != node);
            all.clone()
        };
        self.store_removed(&all).await;
    }

    async fn store_removed(&self, all: &[Removed]) {
        if let Err(error) = self.store.keep_removed(all).await {
            self.stops(format!("what a copy lacks cannot be stored: {error}"));
        }
    }
}
