//! A copy that is made anew: here where it is that copy, and where the owner writes all blocks
//! again for it.
//!
//! ```text
//!   owner: the log has not what a node lacks --> the node's log goes on further on
//!          chunk by chunk, some at a time: WriteBack::rewrite --> its log --> the stream
//! ```
//!
//! What is written again goes through the owner's log as hosts' changes do, so no more of it is
//! begun while the other node has not what it was sent before.

use crate::copying::{Copying, Renewal};
use crate::feed::FeedState;
use crate::input::Input;
use crate::lun::Lun;
use replica::{Epoch, Moment, NodeSlot};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use units::{Lba, LbaRange};
use volume::{IoError, Volume};
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

    /// Has all blocks be written again for a node.
    pub(crate) fn copy_to(self: &Rc<Self>, to: NodeSlot) {
        let number = self.feeds.get() + 1;
        self.feeds.set(number);
        let copying = Rc::new(Copying {
            number,
            since: self.node.now(),
            blocks: self.volume.shape().block_count.0,
            next: Cell::new(0),
            done: Cell::new(0),
            bytes: Cell::new(0),
            workers: Cell::new(AT_ONCE),
            trouble: RefCell::new(None),
        });
        self.copying.borrow_mut().insert(to, Rc::clone(&copying));
        tracing::info!(
            lun = format!("{:016x}", self.id.0),
            node = to.0,
            "a copy is made anew: all blocks are written again"
        );
        for _ in 0..AT_ONCE {
            let (lun, copying) = (Rc::clone(self), Rc::clone(&copying));
            self.core.spawn(Box::pin(async move {
                lun.copy_chunks(to, &copying).await;
                copying.workers.set(copying.workers.get() - 1);
                if copying.workers.get() == 0 && copying.done.get() == copying.blocks {
                    lun.hears(Input::Copied { to, number });
                }
            }));
        }
    }

    fn is_copying(&self, to: NodeSlot, copying: &Copying) -> bool {
        let copyings = self.copying.borrow();
        copyings
            .get(&to)
            .is_some_and(|it| it.number == copying.number)
    }

    async fn copy_chunks(&self, to: NodeSlot, copying: &Copying) {
        let block = u64::from(self.volume.shape().block_size.bytes());
        let chunk = CHUNK_BYTES / block;
        while copying.next.get() < copying.blocks {
            let from = copying.next.get();
            let end = (from / chunk + 1) * chunk;
            let end = end.min(copying.blocks);
            copying.next.set(end);
            let range = LbaRange::between(Lba(from), Lba(end)).expect("in order");
            self.copy_chunk((to, copying), range).await;
            if !self.is_copying(to, copying) {
                return;
            }
        }
    }

    async fn copy_chunk(&self, (to, copying): (NodeSlot, &Copying), range: LbaRange) {
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
                    copying.done.set(copying.done.get() + done.range.len().0);
                    let rest = LbaRange::between(done.range.end(), range.end());
                    left = rest.expect("it lies in the chunk");
                }
                Err(error) => self.copy_failed(copying, error).await,
            }
        }
    }

    /// Some blocks cannot be read or written here: they are tried again, as a copy without them is
    /// none.
    async fn copy_failed(&self, copying: &Copying, error: IoError) {
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
        let is_it = |it: &Rc<Copying>| it.number == number;
        if self.copying.borrow().get(&to).is_some_and(is_it) {
            self.copy.borrow_mut().copied(to, at);
        }
    }

    /// How far copies are that are made anew from here.
    pub(crate) fn renewals(&self) -> Vec<Renewal> {
        let copyings = self.copying.borrow();
        let all = copyings.iter().map(|(node, it)| Renewal {
            node: *node,
            done: it.done.get(),
            blocks: it.blocks,
            bytes: it.bytes.get(),
            since: it.since,
            trouble: it.trouble.borrow().clone(),
        });
        all.collect()
    }
}
