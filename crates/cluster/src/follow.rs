//! A copy that follows an owner: what comes goes into the log with the numbers that it has.

use crate::input::Input;
use crate::lun::Lun;
use peer::Records;
use replica::{Epoch, NodeSlot};
use std::rc::Rc;
use write_back::{NoEpoch, NotAppended, Sequence};

impl Lun {
    /// What is on its way to the log has got there, or does not any more.
    pub(crate) async fn appends_end(&self) {
        while self.rings.borrow().iter().any(|it| it.appends) {
            self.appended.notified().await;
        }
    }

    /// Before an owner is followed: what came from one is in the log, or never will be.
    pub(crate) async fn quiesce(&self) {
        if self.rings.borrow().iter().any(|it| it.appends) {
            self.resign().await;
        }
    }

    /// The owner's changes get their numbers from it, from these on. Answers which numbers come
    /// next: the log may have more that is that owner's.
    pub(crate) async fn follow(
        &self,
        to: NodeSlot,
        epoch: Epoch,
        from: &[u64],
    ) -> Option<Vec<u64>> {
        let mut next = Vec::new();
        for (ring, from) in self.rings().zip(from) {
            let at = (epoch.0, Sequence(*from));
            let followed = self.volume.follow(&self.core, ring.into(), at).await;
            let followed = match followed {
                Ok(followed) => followed.0,
                Err(NoEpoch::Late { .. }) => return None,
                Err(why) => {
                    self.stops(format!("its log follows no owner: {why:?}"));
                    return None;
                }
            };
            let order = self.volume.order(&self.core, ring.into()).await.ok()?;
            self.forget_reports(ring);
            {
                let mut rings = self.rings.borrow_mut();
                let of = &mut rings[usize::from(ring)];
                of.begins_anew(followed);
                (of.awaits, of.has) = (None, *from);
                (of.follows, of.next) = (Some(epoch), followed);
            }
            let pair = self.pair(to)?;
            pair.stream(ring, |it| it.follow(self.id, epoch, Sequence(followed)));
            let below = order.stable.0;
            self.hears(Input::Stable { ring, below });
            next.push(followed);
        }
        Some(next)
    }

    /// What a ring reported before is not true any more.
    fn forget_reports(&self, of: u8) {
        self.inbox.borrow_mut().retain(|(_, input)| match input {
            Input::Submitted { ring, .. } | Input::Stable { ring, .. } => *ring != of,
            Input::Connected(_)
            | Input::Disconnected(_)
            | Input::Heard(..)
            | Input::Unit(..)
            | Input::OwnPorts(_)
            | Input::KeepState(..)
            | Input::Records(_)
            | Input::Tick
            | Input::HandOver(_)
            | Input::Copies(_)
            | Input::MinCopies(_)
            | Input::Known(..)
            | Input::Promote(_)
            | Input::Arbitrated(..)
            | Input::ReadBack { .. }
            | Input::NotAppended { .. }
            | Input::NotBegun { .. }
            | Input::Copied { .. }
            | Input::Removed(_)
            | Input::Close => true,
        });
    }

    /// Puts records into the log, in the order in which they came.
    pub(crate) fn append_later(self: &Rc<Self>, records: Records) {
        let ring = records.origin().ring;
        let mut rings = self.rings.borrow_mut();
        let Some(of) = rings.get_mut(usize::from(ring)) else {
            return;
        };
        if of.came(records) && !std::mem::replace(&mut of.appends, true) {
            self.core.spawn(Box::pin(Rc::clone(self).append(ring)));
        }
    }

    async fn append(self: Rc<Self>, ring: u8) {
        loop {
            let (next, generation) = {
                let mut rings = self.rings.borrow_mut();
                let of = &mut rings[usize::from(ring)];
                let next = of.queue.pop_front();
                of.appends = next.is_some();
                (next, of.generation)
            };
            let Some(records) = next else {
                return self.appended.notify_one();
            };
            let epoch = records.origin().epoch.0;
            let (changes, _) = records.into_changes();
            let at = (epoch, changes);
            let appended = self.volume.append(&self.core, ring.into(), at).await;
            if let Err(why) = appended {
                self.hears(Input::NotAppended {
                    ring,
                    generation,
                    why,
                });
            }
        }
    }

    pub(crate) fn not_appended(&self, ring: u8, generation: u64, why: NotAppended) {
        if self.rings.borrow()[usize::from(ring)].generation != generation {
            return;
        }
        match why {
            NotAppended::Io(error) => self.stops(format!("its log takes nothing: {error:?}")),
            NotAppended::Late { .. }
            | NotAppended::NotFollowed
            | NotAppended::Expected { .. }
            | NotAppended::Unfit { .. } => {
                tracing::warn!(ring, ?why, "what an owner sent is not taken");
                let owner = self.kept.borrow().known.1.owner;
                self.begins_anew(owner);
            }
        }
    }
}
