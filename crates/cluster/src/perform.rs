//! What the machine of a copy says is done: in the log, over the lines, at the arbiter.

use crate::input::Input;
use crate::lun::Lun;
use crate::pair::Pair;
use crate::removed::who_left;
use arbiter::{Question, role};
use replica::{Act, Durable, Epoch, Message, NodeSlot};
use std::rc::Rc;
use write_back::{NoEpoch, Sequence};

/// Some copy is not in sync: it will want what the log has.
pub(crate) fn lacks_some(durable: &Durable) -> bool {
    let copies = durable.known.1.copies.iter();
    !copies
        .map(|it| it.0)
        .all(|it| durable.known.1.in_sync.has(it))
}

impl Lun {
    pub(crate) async fn perform(self: &Rc<Self>, act: Act) {
        match act {
            Act::Keep(durable) => self.keep(durable).await,
            Act::Send(to, message) => self.send(to, message).await,
            Act::Disconnect(node) => self.begins_anew(node),
            Act::Read => self.ask(&Act::Read),
            Act::Swap(revision, to) => {
                let claims = to.epoch > self.kept.borrow().known.1.epoch;
                if claims {
                    self.resign().await;
                }
                self.ask(&Act::Swap(revision, to));
            }
            // It is done when the owner is followed, from that number on.
            Act::GiveUp { .. } => {}
            Act::Renew { epoch, from } => self.renew(epoch, &from).await,
            Act::Copy { to, base } => self.copy_to(to, &base),
            Act::Begin(epoch) => self.begin(epoch),
            Act::Stream { to, ring, from } => self.stream(to, ring, from),
            Act::Committed { ring, commit } => self.committed(ring, commit).await,
            Act::Drop => self.resign().await,
        }
    }

    async fn keep(self: &Rc<Self>, durable: Durable) {
        if let Err(error) = self.store.keep(&durable).await {
            return self.stops(format!("what it promises cannot be stored: {error}"));
        }
        self.volume.keep_log(lacks_some(&durable));
        let before = self.kept.replace(durable.clone());
        self.forgets_who_left(&before.known.1).await;
        let left = who_left(self.node.slot(), &before.known.1, &durable.known.1);
        self.note_removed(left).await;
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.kept.borrow().known.1.epoch
    }

    pub(crate) fn pair(&self, node: NodeSlot) -> Option<Rc<Pair>> {
        self.node.pair(node)
    }

    async fn send(self: &Rc<Self>, to: NodeSlot, mut message: Message) {
        if let Message::Renew { .. } = &message {
            self.ends_feeds(to);
        }
        if let Message::Follow { epoch, next, .. } = &mut message {
            match self.follow(to, *epoch, next).await {
                Some(followed) => *next = followed,
                None => return self.begins_anew(to),
            }
            self.takes_what_was_said(to, *epoch).await;
            if self.is_stopped() {
                return;
            }
        }
        let Some(pair) = self.pair(to) else {
            return;
        };
        if let Message::Hello { conversation, .. } = &mut message {
            *conversation = self.talk_with(to).says();
        }
        match message {
            Message::Beacon { sent } => pair.beacon(sent),
            Message::Answer { sent } => pair.answer(sent),
            Message::Ack {
                epoch,
                ring,
                stable,
            } => self.ack(&pair, ring, (epoch, stable)),
            Message::Commit {
                epoch,
                ring,
                commit,
            } => pair.stream(ring, |it| it.commit(self.id, epoch, Sequence(commit))),
            Message::Lead { .. } => {
                self.leads(to);
                pair.say(self.id, &message);
            }
            Message::Hello { .. }
            | Message::Yield { .. }
            | Message::Refuse { .. }
            | Message::Follow { .. }
            | Message::Renew { .. }
            | Message::Whole { .. }
            | Message::Leaves
            | Message::Less { .. }
            | Message::Append { .. }
            | Message::Ask { .. }
            | Message::Grant { .. } => pair.say(self.id, &message),
        }
    }

    /// Over the ring's line, and until the owner has shown that it knows who follows over control,
    /// too: the ring's line may be ahead of it.
    fn ack(&self, pair: &Pair, ring: u8, (epoch, stable): (Epoch, u64)) {
        let is_live = self.rings.borrow()[usize::from(ring)].is_live;
        pair.stream(ring, |it| it.stable(self.id, epoch, Sequence(stable)));
        if !is_live {
            pair.ack(ring, (self.id, epoch, stable));
        }
    }

    /// Asks the arbiter; an answer to what was asked before counts no more.
    fn ask(self: &Rc<Self>, act: &Act) {
        let Some(question) = role::question(&self.key, act) else {
            return;
        };
        let number = self.asked.get() + 1;
        self.asked.set(number);
        let (lun, known) = (Rc::clone(self), self.kept.borrow().known.clone());
        self.core.spawn(Box::pin(async move {
            let arbiter = lun.node.arbiter();
            let answer = arbiter.ask(vec![Question::clone(&question)]).await.pop();
            let Some(answer) = answer else {
                return;
            };
            let answer = role::arbitration(&lun.key, &known, answer);
            let answer = answer.unwrap_or_else(|trouble| role::instead(&trouble));
            lun.hears(Input::Arbitrated(number, answer));
        }));
    }

    pub(crate) fn rings(&self) -> std::ops::Range<u8> {
        0..u8::try_from(self.rings.borrow().len()).expect("rings are few")
    }

    /// Nothing gets a number here any more, and nothing that comes is taken.
    pub(crate) async fn resign(&self) {
        self.copying.borrow_mut().clear();
        for ring in self.rings() {
            {
                let mut rings = self.rings.borrow_mut();
                let of = &mut rings[usize::from(ring)];
                let has = of.has;
                of.follows = None;
                of.queue.clear();
                of.generation += 1;
                of.feeds.clear();
                tracing::trace!(ring, has, "nobody orders the LUN here");
            }
            let resigned = self.volume.resign(&self.core, ring.into()).await;
            if let Err(error) = resigned {
                return self.stops(format!("its log does not answer: {error:?}"));
            }
        }
        self.appends_end().await;
    }

    /// An epoch of this node's begins in all rings. When it is committed the machine knows by the
    /// numbers.
    fn begin(self: &Rc<Self>, epoch: Epoch) {
        self.copying.borrow_mut().clear();
        for ring in self.rings() {
            let first = {
                let mut rings = self.rings.borrow_mut();
                let of = &mut rings[usize::from(ring)];
                of.begins_anew(of.has);
                of.awaits = Some(epoch);
                of.has
            };
            let lun = Rc::clone(self);
            self.core.spawn(Box::pin(async move {
                let at = (epoch.0, Sequence(first));
                let begun = lun.volume.begin_epoch(&lun.core, ring.into(), at).await;
                if let Err(why) = begun {
                    lun.hears(Input::NotBegun { epoch, why });
                }
            }));
        }
    }

    pub(crate) fn not_begun(&self, epoch: Epoch, why: NoEpoch) {
        let is_last = self.epoch() == epoch && self.kept.borrow().promised == epoch;
        let is_mine = self.kept.borrow().known.1.owner == self.node.slot();
        let is_void = matches!(why, NoEpoch::Io(volume::IoError::Unavailable));
        if is_last && is_mine && !is_void {
            self.stops(format!("its epoch {} does not begin: {why:?}", epoch.0));
        }
    }

    async fn committed(&self, ring: u8, commit: u64) {
        let at = (self.epoch().0, Sequence(commit));
        let committed = self.volume.commit(&self.core, ring.into(), at).await;
        if let Err(error) = committed {
            return self.stops(format!("its log does not answer: {error:?}"));
        }
        let mut rings = self.rings.borrow_mut();
        let of = &mut rings[usize::from(ring)];
        of.committed = of.committed.max(commit);
    }
}
