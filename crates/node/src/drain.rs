//! Before maintenance: what this node owns of LUNs with copies goes to other nodes.

use crate::inner::Inner;
use crate::mirrors::HandOver;
use engine::{DrainedLun, MirrorAsked, MirrorView, SharedChange};
use manifest::code::Code;
use manifest::problem::Problem;
use std::time::Duration;

/// How long LUNs may take to go to other nodes while somebody waits for the answer: longer than it
/// takes to notice that another node is silent, so that this can be said.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// The same when the daemon stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(3);

impl Inner {
    /// Gives away what this node owns, or says what would become of it; by name.
    pub(crate) async fn drain(&self, dry_run: bool) -> Vec<DrainedLun> {
        let Some(mirrors) = self.mirrors.get() else {
            return Vec::new();
        };
        let all = if dry_run {
            mirrors.would_hand_over()
        } else {
            mirrors.hand_over(DRAIN_TIME_MAX).await
        };
        let mut luns: Vec<DrainedLun> = all.into_iter().map(|it| self.drained(it)).collect();
        luns.sort_by(|a, b| (&a.name, &a.naa).cmp(&(&b.name, &b.naa)));
        luns
    }

    /// Changes the copies of a LUN.
    pub(crate) async fn mirror(&self, asked: MirrorAsked) -> Result<MirrorView, Problem> {
        match self.mirrors.get() {
            Some(mirrors) => mirrors.change(asked).await,
            None => {
                let detail = "this node is in no cluster, so that no other one can have a copy";
                Err(Problem::new(Code::ClusterNotConfigured, detail))
            }
        }
    }

    /// The nodes of LUNs with copies agree on what they are.
    pub(crate) async fn agree(&self, changes: Vec<SharedChange>) -> Result<(), Problem> {
        match self.mirrors.get() {
            Some(mirrors) if !changes.is_empty() => mirrors.agree(changes).await,
            Some(_) | None => Ok(()),
        }
    }

    fn drained(&self, HandOver { naa, to }: HandOver) -> DrainedLun {
        let objects = self.objects.borrow();
        let found = objects.luns.iter().find(|(_, lun)| lun.naa == naa);
        let name = found.map_or_else(|| naa.clone(), |(name, _)| name.clone());
        let (to, stays) = match to {
            Ok(node) => (Some(node), None),
            Err(why) => (None, Some(why)),
        };
        DrainedLun {
            name,
            naa,
            to,
            stays,
        }
    }

    /// Before the daemon stops: what stays is logged, and found out by its silence.
    pub(crate) async fn give_away(&self) {
        if let Some(mirrors) = self.mirrors.get() {
            mirrors.hand_over(STOP_TIME_MAX).await;
        }
    }
}
