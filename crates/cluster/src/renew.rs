//! A copy that is made anew: here where it is that copy, and where the owner writes again for it
//! what it may lack: what changed since it was removed, or all, and then it says why.
//!
//! ```text
//!   owner: the log has not what a node lacks --> the node's log goes on further on
//!          a cut, then chunk by chunk, some at a time: which parts may it lack?
//!          which blocks of those has it otherwise, by digests?
//!          WriteBack::rewrite --> its log --> the stream
//! ```
//!
//! What is written again goes through the owner's log as hosts' changes do, so no more of it is
//! begun while the other node has not what it was sent before.

use crate::copying::{Copying, Lack, Renewal};
use crate::digest::{PARTS_MAX, parts};
use crate::feed::FeedState;
use crate::input::Input;
use crate::lun::Lun;
use crate::pace::Worker;
use replica::{Epoch, Moment, NodeSlot};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use units::{Lba, LbaRange};
use volume::{Cut, IoError, Volume};
use write_back::Sequence;

/// Bytes that are gone through in one go.
const CHUNK_BYTES: u64 = 64 << 20;

/// Chunks that are written again at a time.
const AT_ONCE: u64 = 4;

/// How long until it is asked again whether the other node has room.
const ASKS_AGAIN: Duration = Duration::from_millis(2);

/// So long a chunk waits for the other node at most: it comes to an end however much hosts write.
const WAITS: Duration = Duration::from_millis(100);

/// How long until blocks that could not be read are read again.
const AFTER_TROUBLE: Duration = Duration::from_secs(10);

impl Lun {
    /// What the owner says is committed is so here, too, as far as the log here has it from there.
    /// Answers what this copy has then; nothing: some of it may be damaged.
    pub(crate) async fn adopts(&self, epoch: Epoch, commits: &[u64]) -> Vec<u64> {
        let mut has = Vec::new();
        for (ring, commit) in self.rings().zip(commits) {
            let follows = self.rings.borrow()[usize::from(ring)].follows;
            if follows == Some(epoch) {
                let at = (epoch.0, Sequence(*commit));
                // What has failed is seen by what the log knows.
                let _ = self.volume.commit(&self.core, ring.into(), at).await;
            }
            let lost = self.volume.has_lost(&self.core, ring.into()).await;
            let order = self.volume.order(&self.core, ring.into()).await;
            match (lost, order) {
                (Ok(false), Ok(order)) => has.push(order.committed.min(order.stable).0),
                _ => return Vec::new(),
            }
        }
        has
    }

    /// This copy is made anew.
    pub(crate) async fn renew(&self, epoch: Epoch, from: &[u64]) {
        for (ring, from) in self.rings().zip(from) {
            let at = (epoch.0, Sequence(*from));
            let renewed = self.volume.renew(&self.core, ring.into(), at).await;
            if let Err(why) = renewed {
                return self.stops(format!("its log does not begin anew: {why:?}"));
            }
            let mut rings = self.rings.borrow_mut();
            rings[usize::from(ring)].renewed(*from);
        }
        tracing::info!(
            lun = format!("{:016x}", self.id.0),
            "the copy here is made anew: the owner's log has not what it lacks"
        );
    }

    /// Nodes that lack what the log has not.
    pub(crate) fn renew_others(&self, at: Moment) {
        let lags = |feed: &crate::feed::Feed| matches!(feed.state, FeedState::Lags(_));
        let nodes: Vec<NodeSlot> = {
            let rings = self.rings.borrow();
            let feeds = rings.iter().flat_map(|it| &it.feeds);
            feeds.filter(|it| lags(it.1)).map(|it| *it.0).collect()
        };
        for node in nodes {
            self.copy.borrow_mut().cannot_catch_up(node, at);
        }
    }

    /// What a node lacks that had this when its copy was whole last.
    fn lack_of(&self, to: NodeSlot, base: &[u64]) -> Lack {
        if self.copy.borrow().who_lost().has(to) {
            return Lack::Whole("it came back with less than it had acknowledged".to_owned());
        }
        let all = self.removed.borrow();
        let Some(removed) = all.iter().find(|it| it.node == to) else {
            return Lack::Whole("this node has not noted since when it lacks something".to_owned());
        };
        match removed.is_too_late_for(base) {
            Some(why) => Lack::Whole(why.to_owned()),
            None => Lack::Changed(removed.clone()),
        }
    }

    /// Has a node get what it lacks, that had this when its copy was whole last.
    pub(crate) fn copy_to(self: &Rc<Self>, to: NodeSlot, base: &[u64]) {
        let number = self.feeds.get() + 1;
        self.feeds.set(number);
        let copying = Rc::new(Copying {
            number,
            since: self.node.now(),
            blocks: self.volume.shape().block_count.0,
            next: Cell::new(0),
            done: Cell::new(0),
            bytes: Cell::new(0),
            digests: Cell::new(0),
            rate: Cell::default(),
            workers: Cell::new(AT_ONCE),
            lack: RefCell::new(self.lack_of(to, base)),
            trouble: RefCell::new(None),
        });
        self.copying.borrow_mut().insert(to, Rc::clone(&copying));
        let lun = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            lun.begins_copying(to, &copying).await;
            lun.copies(to, &copying);
        }));
    }

    /// A cut is made, as the copy does not know those that it missed: what changed since one of
    /// them is among what it gets now, and that it knows to be behind this one.
    async fn begins_copying(&self, to: NodeSlot, copying: &Copying) {
        while self.is_copying(to, copying) {
            match self.volume.cut(&self.core).await {
                Ok(_) | Err(IoError::WriteProtected) => break,
                Err(error) => self.copy_failed(copying, error).await,
            }
        }
        let histories = self.volume.history(&self.core).await;
        let is_newer = |cut: Cut| histories.iter().any(|it| it.made.is_none_or(|at| at > cut));
        let mut lack = copying.lack.borrow_mut();
        if let Lack::Changed(removed) = &*lack
            && (is_newer(removed.cut) || histories.len() != self.rings().len())
        {
            let why = "the history of this node was begun anew since it was removed";
            *lack = Lack::Whole(why.to_owned());
        }
        let (lun, node) = (format!("{:016x}", self.id.0), to.0);
        match lack.whole() {
            Some(why) => tracing::warn!(lun, node, why, "a copy is made anew, all of it"),
            None => tracing::info!(lun, node, "a copy gets what changed since it was removed"),
        }
    }

    fn copies(self: &Rc<Self>, to: NodeSlot, copying: &Rc<Copying>) {
        let number = copying.number;
        for _ in 0..AT_ONCE {
            let (lun, copying) = (Rc::clone(self), Rc::clone(copying));
            self.core.spawn(Box::pin(async move {
                let worker = lun.node.pace().begins();
                lun.copy_chunks((to, &copying), &worker).await;
                drop(worker);
                copying.workers.set(copying.workers.get() - 1);
                if copying.workers.get() == 0 && copying.done.get() == copying.blocks {
                    lun.hears(Input::Copied { to, number });
                }
            }));
        }
    }

    pub(crate) fn is_copying(&self, to: NodeSlot, copying: &Copying) -> bool {
        let copyings = self.copying.borrow();
        copyings
            .get(&to)
            .is_some_and(|it| it.number == copying.number)
    }

    async fn copy_chunks(&self, (to, copying): (NodeSlot, &Copying), pace: &Worker) {
        let block = u64::from(self.volume.shape().block_size.bytes());
        let chunk = CHUNK_BYTES / block;
        while copying.next.get() < copying.blocks {
            let from = copying.next.get();
            let end = (from / chunk + 1) * chunk;
            let end = end.min(copying.blocks);
            copying.next.set(end);
            let range = LbaRange::between(Lba(from), Lba(end)).expect("in order");
            self.copy_chunk((to, copying), range, pace).await;
            if !self.is_copying(to, copying) {
                return;
            }
        }
    }

    async fn copy_chunk(
        &self,
        (to, copying): (NodeSlot, &Copying),
        range: LbaRange,
        pace: &Worker,
    ) {
        let lacks = self.lacks((to, copying), range).await;
        let lacked: u64 = lacks.iter().map(|it| it.len().0).sum();
        let block = u64::from(self.volume.shape().block_size.bytes());
        let parts: Vec<LbaRange> = lacks.iter().flat_map(|it| parts(*it, block)).collect();
        let done = |blocks: u64| copying.done.set(copying.done.get() + blocks);
        for some in parts.chunks(PARTS_MAX) {
            self.has_caught_up(to).await;
            for run in self.differing((to, copying), some, pace).await {
                pace.may(run.len().0 * block).await;
                self.copy_part((to, copying), run).await;
            }
            if !self.is_copying(to, copying) {
                return;
            }
            done(some.iter().map(|it| it.len().0).sum());
        }
        done(range.len().0 - lacked);
    }

    /// What of a chunk the copy may lack.
    async fn lacks(&self, (to, copying): (NodeSlot, &Copying), range: LbaRange) -> Vec<LbaRange> {
        let lack = copying.lack.borrow().clone();
        let Lack::Changed(removed) = lack else {
            return vec![range];
        };
        let (mut changed, mut left) = (Vec::new(), range);
        while !left.is_empty() && self.is_copying(to, copying) {
            let found = self.volume.changed_since(&self.core, left, removed.cut);
            match found.await {
                Ok(found) => {
                    changed.extend(found.changed);
                    let rest = LbaRange::between(found.range.end(), range.end());
                    left = rest.expect("it lies in the chunk");
                }
                Err(error) => self.copy_failed(copying, error).await,
            }
        }
        let block = u64::from(self.volume.shape().block_size.bytes());
        removed.parts_of(range, block, &changed)
    }

    async fn copy_part(&self, (to, copying): (NodeSlot, &Copying), range: LbaRange) {
        let mut left = range;
        while !left.is_empty() {
            self.has_caught_up(to).await;
            if !self.is_copying(to, copying) {
                return;
            }
            match self.volume.rewrite(&self.core, left).await {
                Ok(done) => {
                    copying.trouble.borrow_mut().take();
                    copying.bytes.set(copying.bytes.get() + done.bytes);
                    let rest = LbaRange::between(done.range.end(), range.end());
                    left = rest.expect("it lies in the chunk");
                }
                Err(error) => self.copy_failed(copying, error).await,
            }
        }
    }

    /// Some blocks cannot be read or written here: they are tried again, as a copy without them is
    /// none.
    pub(crate) async fn copy_failed(&self, copying: &Copying, error: IoError) {
        let why = format!("blocks cannot be read or written on the owner: {error:?}");
        let is_new = copying.trouble.borrow().as_ref() != Some(&why);
        if is_new && error != IoError::Transition {
            tracing::warn!(lun = format!("{:016x}", self.id.0), why);
        }
        *copying.trouble.borrow_mut() = Some(why);
        self.core
            .sleep_until(self.core.now().after(AFTER_TROUBLE))
            .await;
    }

    /// The node has what goes to it at once, or it was waited for long enough.
    async fn has_caught_up(&self, to: NodeSlot) {
        let ends = self.core.now().after(WAITS);
        while !self.is_live(to) && self.core.now() < ends {
            let now = self.core.now();
            self.core.sleep_until(now.after(ASKS_AGAIN)).await;
        }
    }

    fn is_live(&self, to: NodeSlot) -> bool {
        let rings = self.rings.borrow();
        let mut feeds = rings.iter().filter_map(|it| it.feeds.get(&to));
        feeds.all(|it| it.state == FeedState::Live)
    }

    pub(crate) fn copied(&self, to: NodeSlot, number: u64, at: Moment) {
        let copying = self.copying.borrow().get(&to).cloned();
        if let Some(copying) = copying.filter(|it| it.number == number) {
            let renewed = renewal((to, &copying));
            let lun = format!("{:016x}", self.id.0);
            tracing::info!(
                lun,
                node = to.0,
                bytes = renewed.bytes,
                digests = renewed.digests,
                "all that differed was sent"
            );
            self.renewed.replace(Some(renewed));
            self.copy.borrow_mut().copied(to, at);
        }
    }

    /// Time has passed.
    pub(crate) fn measure_copying(&self) {
        for it in self.copying.borrow().values() {
            let mut rate = it.rate.get();
            rate.take(self.core.now(), it.done.get());
            it.rate.set(rate);
        }
    }

    /// How far copies are that are made anew from here.
    pub(crate) fn renewals(&self) -> Vec<Renewal> {
        let copyings = self.copying.borrow();
        copyings.iter().map(|(to, it)| renewal((*to, it))).collect()
    }
}

fn renewal((node, it): (NodeSlot, &Copying)) -> Renewal {
    Renewal {
        node,
        done: it.done.get(),
        blocks: it.blocks,
        bytes: it.bytes.get(),
        digests: it.digests.get(),
        per_second: it.rate.get().per_second(),
        seconds_left: it
            .rate
            .get()
            .seconds_left(it.blocks.saturating_sub(it.done.get())),
        since: it.since,
        whole: it.lack.borrow().whole().map(ToOwned::to_owned),
        trouble: it.trouble.borrow().clone(),
    }
}
