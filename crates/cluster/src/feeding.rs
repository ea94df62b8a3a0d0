//! What an owner sends the others: what they have missed, out of the log, and then what its log
//! takes, in the poll in which that goes to the device.

use crate::feed::{Feed, FeedState, Lag};
use crate::input::Input;
use crate::lun::Lun;
use peer::{NotTaken, Origin, Records};
use replica::NodeSlot;
use std::rc::Rc;
use std::time::Duration;
use units::Buf;
use write_back::{Change, NotRead, ReadBack, Sequence};

/// Bytes that are read out of the log at once.
const READ_BYTES: usize = 1 << 20;

/// How long until more of the log is looked for, where what is on its way is not stable yet.
const READ_AGAIN: Duration = Duration::from_millis(1);

impl Lun {
    /// A node follows from this number on.
    pub(crate) fn stream(self: &Rc<Self>, to: NodeSlot, ring: u8, from: u64) {
        let epoch = self.epoch();
        let Some(pair) = self.pair(to) else {
            return;
        };
        let id = self.feeds.get() + 1;
        self.feeds.set(id);
        let mut rings = self.rings.borrow_mut();
        let of = &mut rings[usize::from(ring)];
        of.feeds.insert(to, Feed::from(id, from));
        let (awaits, committed) = (of.awaits.is_some(), of.committed);
        drop(rings);
        pair.stream(ring, |it| {
            it.begin(self.id, epoch, Sequence(from));
            it.commit(self.id, epoch, Sequence(committed));
        });
        // Before the epoch's record is on its way, the log may have what that makes void.
        if !awaits {
            self.read_on(ring, to, Duration::ZERO);
        }
    }

    pub(crate) fn submitted(self: &Rc<Self>, ring: u8, changes: Vec<(Change, Buf)>) {
        let (changes, begins, live) = {
            let mut rings = self.rings.borrow_mut();
            let of = &mut rings[usize::from(ring)];
            let awaited = of.awaits.is_some();
            let changes = of.submitted(changes);
            let begins = awaited && of.awaits.is_none();
            (changes, begins, of.live())
        };
        for to in live {
            self.push(ring, to, changes.clone());
        }
        if begins {
            let waiting: Vec<NodeSlot> = {
                let rings = self.rings.borrow();
                rings[usize::from(ring)].feeds.keys().copied().collect()
            };
            for to in waiting {
                self.read_on(ring, to, Duration::ZERO);
            }
        }
    }

    /// Reads what a node has missed out of the log.
    fn read_on(self: &Rc<Self>, ring: u8, to: NodeSlot, after: Duration) {
        let Some((feed, place)) = self.with_feed(ring, to, |feed| {
            feed.state = FeedState::Reading;
            (feed.id, feed.reads_at())
        }) else {
            return;
        };
        let lun = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            if !after.is_zero() {
                lun.core.sleep_until(lun.core.now().after(after)).await;
            }
            let at = (place, READ_BYTES);
            let read = lun.volume.read_back(&lun.core, ring.into(), at).await;
            lun.hears(Input::ReadBack {
                ring,
                to,
                feed,
                read,
            });
        }));
    }

    fn with_feed<T>(&self, ring: u8, to: NodeSlot, work: impl FnOnce(&mut Feed) -> T) -> Option<T> {
        let mut rings = self.rings.borrow_mut();
        rings[usize::from(ring)].feeds.get_mut(&to).map(work)
    }

    pub(crate) fn was_read(
        self: &Rc<Self>,
        ring: u8,
        (to, feed): (NodeSlot, u64),
        read: Result<ReadBack, NotRead>,
    ) {
        if self.with_feed(ring, to, |it| it.id) != Some(feed) {
            return;
        }
        let lags = |lag| {
            tracing::warn!(node = to.0, ring, ?lag, "a copy lacks what the log has not");
            self.with_feed(ring, to, |it| it.state = FeedState::Lags(lag));
        };
        match read {
            Ok(read) if read.changes.is_empty() => self.is_read(ring, to),
            Ok(read) => {
                self.with_feed(ring, to, |it| it.place = read.next);
                if self.push(ring, to, read.changes) {
                    self.read_on(ring, to, Duration::ZERO);
                }
            }
            Err(NotRead::Begins { at }) => lags(Lag::BeyondLog { begins: at.0 }),
            Err(NotRead::Damaged { number }) => lags(Lag::Damaged { number: number.0 }),
            Err(NotRead::Io(error)) => {
                tracing::warn!(ring, ?error, "the log cannot be read for another node");
                self.read_on(ring, to, Duration::from_secs(1));
            }
        }
    }

    /// No more is stable: what is on its way follows, and all from then on.
    fn is_read(self: &Rc<Self>, ring: u8, to: NodeSlot) {
        let rest = {
            let rings = self.rings.borrow();
            let of = &rings[usize::from(ring)];
            of.feeds.get(&to).and_then(|it| of.heard_from(it.next))
        };
        match rest {
            Some(rest) => {
                if self.push(ring, to, rest) {
                    self.with_feed(ring, to, |it| it.state = FeedState::Live);
                }
            }
            None => self.read_on(ring, to, READ_AGAIN),
        }
    }

    /// Some of what was held for a node is there.
    pub(crate) fn has_room(self: &Rc<Self>, node: NodeSlot) {
        for ring in self.rings() {
            let state = self.with_feed(ring, node, |it| it.state);
            if state == Some(FeedState::Full) {
                self.read_on(ring, node, Duration::ZERO);
            }
        }
    }

    /// Sends changes to a node, those that are next; `false`: not all of them.
    fn push(&self, ring: u8, to: NodeSlot, changes: Vec<(Change, Buf)>) -> bool {
        let (epoch, mut next, parts) = {
            let rings = self.rings.borrow();
            let of = &rings[usize::from(ring)];
            let Some(feed) = of.feeds.get(&to) else {
                return false;
            };
            (self.epoch(), feed.next, of.of_epochs(changes, feed.next))
        };
        let Some(pair) = self.pair(to) else {
            return false;
        };
        let several = parts.into_iter().map(|(of, changes)| {
            let origin = Origin {
                volume: self.id,
                epoch,
                of,
                ring,
                commit: Sequence(0),
            };
            Records::several(origin, changes)
        });
        let several: Vec<Records> = match several.collect::<Result<Vec<_>, _>>() {
            Ok(several) => several.into_iter().flatten().collect(),
            Err(why) => {
                self.stops(format!("its log has what no other copy takes: {why:?}"));
                return false;
            }
        };
        let mut is_full = false;
        for records in several {
            let after = records.next().0;
            match pair.stream(ring, |it| it.push(records)) {
                Ok(()) => next = after,
                Err(NotTaken::Full(_)) => is_full = true,
                // Its stream has begun anew: so will this.
                Err(NotTaken::NotNext(_)) => {
                    self.begins_anew(to);
                    is_full = true;
                }
            }
            if is_full {
                break;
            }
        }
        self.with_feed(ring, to, |it| {
            it.next = next;
            if is_full {
                it.state = FeedState::Full;
            }
        });
        !is_full
    }
}
