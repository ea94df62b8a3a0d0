//! One node of a cluster: its connections with the others, and its LUNs.

use crate::forwarding::{Forwarding, GuestServer, Home};
use crate::input::Input;
use crate::line::{Hub, Line};
use crate::lun::{Lun, LunStatus};
use crate::node::Node;
use crate::pace::Pace;
use crate::pair::{Pair, Said};
use crate::tenure::moment;
use crate::transport::{Channel, Transport};
use crate::unit_side::HeldState;
use arbiter::Arbiter;
use env::{CoreHandle, in_time};
use peer::{
    Connection, ConnectionNumber, Event, KnownNode, Limits, Opened, Own, Positions, Purpose,
    Reason, Records, Taken,
};
use replica::{Epoch, Message, Moment, NodeSlot, Spans};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::time::Duration;
use write_back::VolumeId;

/// How often the time is read.
const TICK: Duration = Duration::from_millis(25);
/// How long after a dial the next one comes, where something is missing.
const DIAL_AGAIN: Duration = Duration::from_millis(20);
/// How long a transport may take to connect, and a connection to begin.
const DIAL_WITHIN: Duration = Duration::from_secs(2);

/// What a node of a cluster is.
pub struct Settings {
    /// Itself.
    pub own: Own,
    /// How long promises last.
    pub spans: Spans,
    /// Rings of each log: the same on all nodes.
    pub rings: u8,
    /// What the stream of a ring may hold.
    pub limits: Limits,
}

/// A node of a cluster. It lives on one core, that of control.
pub struct Cluster {
    pub(crate) core: CoreHandle,
    pub(crate) settings: Settings,
    pub(crate) arbiter: Rc<dyn Arbiter>,
    transport: Rc<dyn Transport>,
    pub(crate) pace: Rc<Pace>,
    pairs: RefCell<BTreeMap<NodeSlot, Rc<Pair>>>,
    luns: RefCell<BTreeMap<VolumeId, Weak<Lun>>>,
    pub(crate) forwarding: Rc<Forwarding>,
    /// A rule that its copies break.
    #[cfg(feature = "model")]
    pub(crate) broken: std::cell::Cell<Option<replica::model::Rule>>,
}

impl Cluster {
    /// Listens, and has time pass. Who the others are is [said](Cluster::meets) then, and LUNs are
    /// [opened](Cluster::open).
    #[must_use]
    pub fn start(
        core: &CoreHandle,
        settings: Settings,
        transport: Rc<dyn Transport>,
        arbiter: Rc<dyn Arbiter>,
    ) -> Rc<Self> {
        let cluster = Rc::new(Self {
            core: Rc::clone(core),
            settings,
            arbiter,
            transport,
            pace: Rc::new(Pace::new(core)),
            pairs: RefCell::default(),
            luns: RefCell::default(),
            forwarding: Rc::default(),
            #[cfg(feature = "model")]
            broken: std::cell::Cell::default(),
        });
        core.locals().get::<Home>().set(&cluster.forwarding);
        core.spawn(Box::pin(Rc::clone(&cluster).accept()));
        core.spawn(Box::pin(Rc::clone(&cluster).tick()));
        cluster
    }

    /// Copies that are opened from now on break this rule, to see that it is needed.
    #[cfg(feature = "model")]
    pub fn breaks(&self, rule: Option<replica::model::Rule>) {
        self.broken.set(rule);
    }

    /// All other nodes are these from now on. With those that it does not know yet it makes
    /// connections; with those that are not among them it has none any more.
    pub fn meets(self: &Rc<Self>, others: &[KnownNode]) {
        let known: Vec<Rc<Pair>> = self.pairs.borrow().values().map(Rc::clone).collect();
        for pair in known.iter().filter(|it| !others.contains(&it.to)) {
            self.disconnect(pair.to.slot);
            pair.leaves();
            self.pairs.borrow_mut().remove(&pair.to.slot);
        }
        for to in others {
            if self.pairs.borrow().contains_key(&to.slot) {
                continue;
            }
            let (rings, limits) = (self.settings.rings, self.settings.limits);
            let pair = Rc::new(Pair::new(*to, rings, limits));
            self.pairs.borrow_mut().insert(to.slot, Rc::clone(&pair));
            if to.slot > self.settings.own.slot {
                self.core.spawn(Box::pin(Rc::clone(self).dial(pair)));
            }
        }
    }

    /// Commands that other nodes forward are done so from now on.
    pub fn serve_guests(&self, server: Rc<dyn GuestServer>) {
        self.forwarding.serve(server);
    }

    fn pairs(&self) -> Vec<Rc<Pair>> {
        self.pairs.borrow().values().map(Rc::clone).collect()
    }

    pub(crate) fn lun(&self, id: VolumeId) -> Option<Rc<Lun>> {
        self.luns.borrow().get(&id)?.upgrade()
    }

    /// A LUN is there: it hears of the nodes that are.
    pub(crate) fn put(&self, lun: &Rc<Lun>) {
        self.luns.borrow_mut().insert(lun.id, Rc::downgrade(lun));
        for pair in self.pairs().iter().filter(|it| it.is_up()) {
            lun.hears(Input::Connected(pair.to.slot));
        }
    }

    /// A LUN works no more on this node: it is answered when its task is over.
    pub async fn close(&self, id: VolumeId) {
        if let Some(lun) = self.lun(id) {
            lun.close().await;
        }
    }

    /// What this node says of its ports to a LUN, for the other nodes. They hear it now, and each
    /// time that they are connected.
    pub fn say_ports(&self, id: VolumeId, ports: Vec<u8>) {
        if ports.len() > peer::UNIT_BYTES_MAX {
            tracing::error!(
                lun = format!("{:016x}", id.0),
                "other nodes do not hear of its ports: there are too many"
            );
            return;
        }
        if let Some(lun) = self.lun(id) {
            lun.hears(Input::OwnPorts(ports));
        }
    }

    /// What other nodes said last of their ports to a LUN.
    #[must_use]
    pub fn ports(&self, id: VolumeId) -> Vec<(NodeSlot, Vec<u8>)> {
        self.lun(id).map(|lun| lun.unit.ports()).unwrap_or_default()
    }

    /// The state with which hosts of a LUN are to be served here, once they may be; `None`: another
    /// node serves them, or nobody.
    pub async fn held_state(&self, id: VolumeId) -> Option<HeldState> {
        self.lun(id)?.held_state().await
    }

    /// How a LUN is here; `None`: it is not open.
    #[must_use]
    pub fn status(&self, id: VolumeId) -> Option<LunStatus> {
        Some(self.lun(id)?.status())
    }

    fn all(&self) -> Vec<Rc<Lun>> {
        self.luns
            .borrow()
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }

    /// Ends all connections with a node: what was said there holds no more.
    fn disconnect(&self, slot: NodeSlot) {
        let luns = self.all();
        let Some(pair) = self.pair(slot) else {
            return;
        };
        let ids: Vec<VolumeId> = luns.iter().map(|it| it.id).collect();
        if pair.end(&ids) {
            self.forwarding.is_over(slot, None);
            for lun in luns {
                lun.hears(Input::Disconnected(slot));
            }
        }
    }

    async fn tick(self: Rc<Self>) {
        loop {
            self.core.sleep_until(self.core.now().after(TICK)).await;
            let (now, patience) = (self.now(), self.settings.spans.patience);
            self.pace.tick();
            for pair in self.pairs() {
                if pair.is_silent(now, patience) {
                    self.disconnect(pair.to.slot);
                }
                // Also for what waits for memory.
                pair.wake();
            }
            self.forwarding.tick((now, patience), |id| {
                let lun = self.lun(id)?;
                let copy = lun.copy.borrow();
                copy.owner_elsewhere()
            });
            for lun in self.all() {
                lun.hears(Input::Tick);
            }
        }
    }

    async fn accept(self: Rc<Self>) {
        loop {
            match self.transport.accept().await {
                Ok(channel) => {
                    let peer = channel.peer();
                    let mut known: Vec<KnownNode> = self.pairs().iter().map(|it| it.to).collect();
                    known.retain(|it| peer.is_none_or(|peer| it.slot == peer));
                    self.run(Connection::accepts(self.settings.own, known), channel);
                }
                Err(_) => self.pause().await,
            }
        }
    }

    async fn pause(&self) {
        let again = self.core.now().after(DIAL_AGAIN);
        self.core.sleep_until(again).await;
    }

    fn run(self: &Rc<Self>, connection: Connection, channel: Rc<dyn Channel>) -> Rc<Line> {
        let line = Line::new(connection);
        let running = Rc::clone(&line).run(
            Rc::clone(&self.core),
            Rc::clone(self) as Rc<dyn Hub>,
            channel,
        );
        self.core.spawn(Box::pin(running));
        line
    }

    async fn dial(self: Rc<Self>, pair: Rc<Pair>) {
        while !pair.has_left() {
            let missing = pair.missing(self.now());
            let has_begun = match missing {
                Some((purpose, number)) => self.dial_once(pair.to, purpose, number).await,
                None => false,
            };
            if !has_begun {
                self.pause().await;
            }
        }
    }

    /// Makes one connection; answers whether it has begun.
    async fn dial_once(
        self: &Rc<Self>,
        to: KnownNode,
        purpose: Purpose,
        number: ConnectionNumber,
    ) -> bool {
        let dialled = self.transport.dial(to.slot);
        let Some(Ok(channel)) = in_time(&self.core, DIAL_WITHIN, dialled).await else {
            return false;
        };
        let connection = Connection::connects(self.settings.own, to, number, purpose);
        let line = self.run(connection, channel);
        while line.opened.get().is_none() && !line.is_over() {
            let soon = self.core.now().after(Duration::from_millis(1));
            self.core.sleep_until(soon).await;
        }
        line.opened.get().is_some()
    }

    fn opened(&self, line: &Rc<Line>, opened: &Opened) {
        let slot = opened.slot;
        let Some(pair) = self.pair(slot) else {
            return line.end();
        };
        if pair.is_late(opened) {
            return line.connection.borrow_mut().bye(Reason::Replaced);
        }
        line.opened.set(Some(*opened));
        if opened.purpose == Purpose::Control {
            self.disconnect(slot);
        }
        let is_up = pair.opened(line, opened, self.now());
        if pair.forward_line().is_some_and(|it| Rc::ptr_eq(&it, line)) {
            self.forwarding.begins(slot, line, self.now());
        }
        if is_up {
            for lun in self.all() {
                lun.hears(Input::Connected(slot));
            }
            for (id, said) in pair.early() {
                self.hears_said(slot, id, said);
            }
        }
    }

    fn hears(&self, slot: NodeSlot, id: VolumeId, message: Message) {
        if let Some(lun) = self.lun(id) {
            lun.hears(Input::Heard(slot, message));
        }
    }

    fn hears_said(&self, slot: NodeSlot, id: VolumeId, said: Said) {
        if let Some(lun) = self.lun(id) {
            lun.hears(match said {
                Said::Message(message) => Input::Heard(slot, message),
                Said::Unit(part) => Input::Unit(slot, part),
            });
        }
    }

    /// What stands for all LUNs about which both nodes have greeted each other.
    fn hears_all(&self, slot: NodeSlot, event: &Event) {
        let message = match event {
            Event::Beacon(sent) => Message::Beacon { sent: *sent },
            Event::Answer(sent) => Message::Answer { sent: *sent },
            Event::Opened(_)
            | Event::Message(..)
            | Event::Unit(..)
            | Event::Forward(_)
            | Event::Records(_)
            | Event::Acks(_)
            | Event::Commits(_)
            | Event::Credits
            | Event::Closed(_) => return,
        };
        for lun in self.all() {
            lun.hears(Input::Heard(slot, message.clone()));
        }
    }

    fn records(&self, line: &Rc<Line>, slot: NodeSlot, records: Records) {
        let origin = records.origin();
        let Some(pair) = self.pair(slot) else {
            return;
        };
        match pair.stream(origin.ring, |it| it.records(records)) {
            Taken::New(records) => {
                let commit = Message::Commit {
                    epoch: origin.epoch,
                    ring: origin.ring,
                    commit: origin.commit.0,
                };
                // Ahead of what it came with, which may have to wait for it.
                self.hears(slot, origin.volume, commit);
                if let Some(lun) = self.lun(origin.volume) {
                    lun.hears(Input::Records(records));
                }
            }
            Taken::Repeated | Taken::NotFollowed => {}
            Taken::Gap(_) => line.connection.borrow_mut().bye(Reason::OutOfOrder),
        }
    }

    fn acks(&self, slot: NodeSlot, positions: &Positions) {
        let ring = positions.ring;
        let Some(pair) = self.pair(slot).filter(|_| ring < self.settings.rings) else {
            return;
        };
        pair.stream(ring, |it| it.acks(positions));
        self.hears_each(slot, positions, |epoch, below| Message::Ack {
            epoch,
            ring,
            stable: below,
        });
    }

    fn commits(&self, slot: NodeSlot, positions: &Positions) {
        let ring = positions.ring;
        if ring >= self.settings.rings {
            return;
        }
        self.hears_each(slot, positions, |epoch, below| Message::Commit {
            epoch,
            ring,
            commit: below,
        });
    }

    /// Each LUN hears of its position, in an epoch and below a number.
    fn hears_each(
        &self,
        slot: NodeSlot,
        positions: &Positions,
        message: impl Fn(Epoch, u64) -> Message,
    ) {
        for it in &positions.positions {
            self.hears(slot, it.volume, message(it.epoch, it.below.0));
        }
    }
}

impl Hub for Cluster {
    fn pump(&self, line: &Line) {
        let Some(opened) = line.opened.get() else {
            return;
        };
        match (self.pair(opened.slot), opened.purpose) {
            (Some(pair), Purpose::Ring(ring)) => pair.pump(ring, line),
            (Some(_), Purpose::Forward) => self.forwarding.pump(opened.slot, line),
            (Some(_) | None, _) => {}
        }
    }

    fn event(&self, line: &Rc<Line>, event: Event) {
        if let Event::Opened(opened) = &event {
            return self.opened(line, opened);
        }
        let Some(opened) = line.opened.get() else {
            return line.end();
        };
        if line.is_over() {
            return;
        }
        let slot = opened.slot;
        let Some(pair) = self.pair(slot) else {
            return line.end();
        };
        let said = match event {
            Event::Message(id, message) => {
                pair.hears(line, self.now(), Some((id, Said::Message(message))))
            }
            Event::Unit(id, part) => pair.hears(line, self.now(), Some((id, Said::Unit(part)))),
            Event::Beacon(_) | Event::Answer(_) => {
                let time = (self.now(), self.settings.spans.patience);
                self.forwarding.heard((slot, line), time);
                if pair.is_control(line) {
                    pair.hears(line, self.now(), None);
                    self.hears_all(slot, &event);
                }
                return;
            }
            Event::Forward(came) => {
                let time = (self.now(), self.settings.spans.patience);
                if self.forwarding.heard((slot, line), time) {
                    self.forwarding.came(slot, came);
                }
                return;
            }
            Event::Records(records) => return self.records(line, slot, records),
            Event::Acks(positions) => return self.acks(slot, &positions),
            Event::Commits(positions) => return self.commits(slot, &positions),
            Event::Closed(closed) => {
                tracing::info!(node = slot.0, %closed, "a connection between nodes is over");
                return line.end();
            }
            Event::Opened(_) | Event::Credits => return,
        };
        if let Some((id, said)) = said {
            self.hears_said(slot, id, said);
        }
    }

    fn line_is_over(&self, line: &Rc<Line>) {
        if let Some(opened) = line.opened.get() {
            self.forwarding.is_over(opened.slot, Some(line));
            let pair = self.pair(opened.slot);
            if pair.is_some_and(|it| it.loses(line)) {
                self.disconnect(opened.slot);
            }
        }
    }
}

impl Node for Cluster {
    fn now(&self) -> Moment {
        moment(&self.core)
    }

    fn pair(&self, slot: NodeSlot) -> Option<Rc<Pair>> {
        self.pairs.borrow().get(&slot).map(Rc::clone)
    }

    fn loses(&self, id: VolumeId) {
        // It may be open anew by then.
        if self.lun(id).is_none_or(|it| it.is_over.get()) {
            self.luns.borrow_mut().remove(&id);
        }
    }

    fn slot(&self) -> NodeSlot {
        self.settings.own.slot
    }

    fn pace(&self) -> &Rc<Pace> {
        &self.pace
    }

    fn arbiter(&self) -> Rc<dyn Arbiter> {
        Rc::clone(&self.arbiter)
    }
}
