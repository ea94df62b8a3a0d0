//! Commands that other nodes forward to this one, which owns their LUN: each nexus there has one
//! here, in the one task set of the unit.
//!
//! ```text
//!   asked --> nexus of (node, LUN, initiator, ISID, port) --arrive, run--> Reply
//! ```
//!
//! **Contract.** What came over one connection has ended, or is in quarantine, before anything of
//! the next one is begun. An aborted command is answered when the unit has let go of it.

use cluster::{Asked, GuestServer, Reply};
use env::CoreHandle;
use futures_util::future::join_all;
use logical_unit::{
    Arrival, Attribute, Closing, InitiatorPort, Nexus, NexusPort, Outcome, Peers, PortFacts,
    Request, Room, TaskWatch, UnitAttention, UnitId,
};
use peer::{
    ForwardedAnswer, ForwardedCommand, ForwardedEnd, ForwardedOrder, ForwardedReset, Guest,
};
use replica::NodeSlot;
use scsi::Status;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use units::Buf;
use write_back::VolumeId;

/// What is known of a LUN that is in service here.
pub(crate) struct Unit {
    pub(crate) id: UnitId,
    pub(crate) naa: String,
}

/// Which ports of this node an initiator may use for a LUN.
pub(crate) type Ports = dyn Fn(&str, &str) -> Vec<PortFacts>;

/// All guests of a node.
pub(crate) struct Guests {
    core: CoreHandle,
    units: RefCell<BTreeMap<VolumeId, Unit>>,
    ports: Box<Ports>,
    nodes: RefCell<BTreeMap<NodeSlot, Node>>,
    me: Weak<Self>,
}

/// Requests that wait, and where they are answered.
type Waiting = Vec<(u32, Asked, Rc<Reply>)>;

/// One node whose commands come here.
#[derive(Default)]
struct Node {
    sessions: BTreeMap<(String, [u8; 6], u16), Rc<Session>>,
    running: BTreeMap<u32, Rc<Running>>,
    /// What came over the last connection has not ended, and this waits.
    waiting: Option<Waiting>,
}

/// A session of the other node's, as far as its commands came here.
#[derive(Default)]
struct Session {
    nexuses: RefCell<BTreeMap<VolumeId, Rc<Nexus>>>,
    running: RefCell<BTreeMap<u32, Weak<Running>>>,
}

/// A command that is not answered.
struct Running {
    nexus: Rc<Nexus>,
    watch: TaskWatch,
    request: u32,
    reply: Rc<Reply>,
    aborted: Cell<bool>,
}

impl Node {
    /// Sessions without a nexus are none.
    fn forgets_idle(&mut self) {
        self.sessions
            .retain(|_, it| !it.nexuses.borrow().is_empty());
    }
}

impl Peers for Session {
    fn all(&self) -> Vec<Rc<Nexus>> {
        self.nexuses.borrow().values().map(Rc::clone).collect()
    }

    fn released(&self) {
        let running = self.running.borrow();
        for it in running.values().filter_map(Weak::upgrade) {
            if let Some(outcome) = it.watch.take_released() {
                say(&it.reply, outcome);
            }
        }
    }
}

fn say(reply: &Reply, outcome: Outcome) {
    match outcome {
        Outcome::Respond(response) => {
            let sense = response.sense.map(|it| it.to_vec()).unwrap_or_default();
            let status = response.status.code();
            reply.answer(ForwardedAnswer::Respond { status, sense }, response.data_in);
        }
        Outcome::Silent => reply.answer(ForwardedAnswer::Silent, Buf::empty()),
        Outcome::Disconnect => reply.answer(ForwardedAnswer::Disconnect, Buf::empty()),
    }
}

fn busy(reply: &Reply) {
    let status = Status::Busy.code();
    let sense = Vec::new();
    reply.answer(ForwardedAnswer::Respond { status, sense }, Buf::empty());
}

const fn attribute(order: ForwardedOrder) -> Attribute {
    match order {
        ForwardedOrder::Simple => Attribute::Simple,
        ForwardedOrder::Ordered => Attribute::Ordered,
        ForwardedOrder::HeadOfQueue => Attribute::HeadOfQueue,
    }
}

impl Guests {
    pub(crate) fn new(core: &CoreHandle, ports: Box<Ports>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            core: Rc::clone(core),
            units: RefCell::default(),
            ports,
            nodes: RefCell::default(),
            me: Weak::clone(me),
        })
    }

    /// Commands for a LUN are done by this unit.
    pub(crate) fn put(&self, id: VolumeId, unit: Unit) {
        self.units.borrow_mut().insert(id, unit);
    }

    /// A LUN works no more on this node: what other nodes forwarded ends.
    pub(crate) async fn ends(&self, id: VolumeId) {
        self.units.borrow_mut().remove(&id);
        let mut ended = Vec::new();
        for node in self.nodes.borrow_mut().values_mut() {
            let sessions = node.sessions.values();
            ended.extend(sessions.filter_map(|it| it.nexuses.borrow_mut().remove(&id)));
            node.forgets_idle();
        }
        join_all(ended.into_iter().map(|it| it.close(Closing::Lost))).await;
    }

    /// The nexus of a guest; `make`: also where there is none yet.
    fn nexus(&self, from: NodeSlot, guest: &Guest, make: bool) -> Option<(Rc<Session>, Rc<Nexus>)> {
        let mut nodes = self.nodes.borrow_mut();
        let node = nodes.entry(from).or_default();
        let key = (guest.initiator.clone(), guest.isid, guest.port);
        let known = node.sessions.get(&key).map(Rc::clone);
        let session = known.unwrap_or_else(|| Rc::new(Session::default()));
        if let Some(nexus) = session.nexuses.borrow().get(&guest.volume) {
            return Some((Rc::clone(&session), Rc::clone(nexus)));
        }
        if !make {
            return None;
        }
        let units = self.units.borrow();
        let unit = units.get(&guest.volume)?;
        let port = NexusPort {
            initiator: InitiatorPort {
                name: guest.initiator.clone(),
                isid: guest.isid,
            },
            target_port: guest.port,
        };
        let ports = (self.ports)(&unit.naa, &guest.initiator);
        let peers = Rc::downgrade(&session) as Weak<dyn Peers>;
        let nexus = Nexus::open_guest(&self.core, unit.id, port, ports, peers).ok()?;
        let known = Rc::clone(&nexus);
        session.nexuses.borrow_mut().insert(guest.volume, known);
        node.sessions.insert(key, Rc::clone(&session));
        Some((session, nexus))
    }

    fn begin(&self, from: NodeSlot, request: u32, what: Asked, reply: Rc<Reply>) {
        match what {
            Asked::Command(command, data) => self.command((from, request), &command, data, reply),
            Asked::Reset(guest, what) => self.reset(from, &guest, what, reply),
            Asked::Close(guest, end) => self.close(from, &guest, end, reply),
        }
    }

    fn command(
        &self,
        (from, request): (NodeSlot, u32),
        command: &ForwardedCommand,
        data: Buf,
        reply: Rc<Reply>,
    ) {
        let Some((session, nexus)) = self.nexus(from, &command.guest, true) else {
            return busy(&reply);
        };
        if nexus.is_read_only() != command.read_only
            && let Some(taken) = nexus.set_read_only(command.read_only)
        {
            self.core.spawn(taken);
        }
        let now = self.core.now();
        let arrival = nexus.arrive(Request {
            cdb: &command.cdb,
            attribute: attribute(command.order),
            tag: request,
            data_out: u64::from(command.announced),
            first_byte: now,
            whole: now,
            stands_for: 0,
        });
        let (task, wanted) = match arrival {
            Arrival::Ended { response, .. } => return say(&reply, Outcome::Respond(response)),
            Arrival::Task { task, data_out } => (task, data_out),
        };
        let running = Rc::new(Running {
            watch: task.watch(),
            nexus,
            request,
            reply,
            aborted: Cell::new(false),
        });
        let sessions = Rc::downgrade(&running);
        session.running.borrow_mut().insert(request, sessions);
        if let Some(node) = self.nodes.borrow_mut().get_mut(&from) {
            node.running.insert(request, Rc::clone(&running));
        }
        let me = self.me.clone();
        let bytes = wanted.min(data.len() as u64).max(task.medium_data_in());
        if bytes == 0 || task.take_room(bytes, 0, None) == Room::Taken {
            match task.run(data).now() {
                Ok(outcome) => over(&me, (from, &session), &running, outcome),
                Err(rest) => self.core.spawn(Box::pin(async move {
                    let outcome = rest.await;
                    over(&me, (from, &session), &running, outcome);
                })),
            }
            return;
        }
        self.core.spawn(Box::pin(async move {
            task.waits_in_turn(bytes).await;
            let outcome = task.run(data).await;
            over(&me, (from, &session), &running, outcome);
        }));
    }

    fn reset(&self, from: NodeSlot, guest: &Guest, what: ForwardedReset, reply: Rc<Reply>) {
        let found = self.nexus(from, guest, true);
        let Some((_, nexus)) = found.filter(|it| it.1.is_served_here()) else {
            // Another node owns it by now: nobody may say that it was done.
            return reply.answer(ForwardedAnswer::Disconnect, Buf::empty());
        };
        let done = match what {
            ForwardedReset::Unit => nexus.reset_unit(UnitAttention::LogicalUnitReset),
            ForwardedReset::Target => nexus.reset_unit(UnitAttention::HardReset),
            ForwardedReset::ClearTaskSet => nexus.clear_task_set(),
        };
        self.core.spawn(Box::pin(async move {
            done.await;
            reply.answer(ForwardedAnswer::Silent, Buf::empty());
        }));
    }

    fn close(&self, from: NodeSlot, guest: &Guest, end: ForwardedEnd, reply: Rc<Reply>) {
        let found = self.nexus(from, guest, false);
        let mut nodes = self.nodes.borrow_mut();
        let how = match end {
            ForwardedEnd::LoggedOut => Closing::LoggedOut,
            ForwardedEnd::Lost => Closing::Lost,
        };
        let closed = found.map(|(session, nexus)| {
            session.nexuses.borrow_mut().remove(&guest.volume);
            nexus.close(how)
        });
        if let Some(node) = nodes.get_mut(&from) {
            node.forgets_idle();
        }
        drop(nodes);
        self.core.spawn(Box::pin(async move {
            if let Some(closed) = closed {
                closed.await;
            }
            reply.answer(ForwardedAnswer::Silent, Buf::empty());
        }));
    }
}

/// A command has ended.
fn over(
    guests: &Weak<Guests>,
    (from, session): (NodeSlot, &Session),
    running: &Rc<Running>,
    outcome: Outcome,
) {
    say(&running.reply, outcome);
    session.running.borrow_mut().remove(&running.request);
    let Some(guests) = guests.upgrade() else {
        return;
    };
    if let Some(node) = guests.nodes.borrow_mut().get_mut(&from) {
        let known = node.running.get(&running.request);
        // The number may be another connection's by now.
        if known.is_some_and(|it| Rc::ptr_eq(it, running)) {
            node.running.remove(&running.request);
        }
    }
}

impl GuestServer for Guests {
    fn asked(&self, from: NodeSlot, request: u32, what: Asked, reply: Rc<Reply>) {
        if let Some(node) = self.nodes.borrow_mut().get_mut(&from)
            && let Some(waiting) = &mut node.waiting
        {
            return waiting.push((request, what, reply));
        }
        self.begin(from, request, what, reply);
    }

    fn abort(&self, from: NodeSlot, request: u32) {
        let mut nodes = self.nodes.borrow_mut();
        let Some(node) = nodes.get_mut(&from) else {
            return;
        };
        if let Some(waiting) = &mut node.waiting
            && let Some(at) = waiting.iter().position(|it| it.0 == request)
        {
            let (_, _, reply) = waiting.remove(at);
            return reply.answer(ForwardedAnswer::Silent, Buf::empty());
        }
        let running = node.running.get(&request).map(Rc::clone);
        drop(nodes);
        if let Some(running) = running.filter(|it| !it.aborted.replace(true)) {
            let done = running.nexus.abort_task(request);
            self.core.spawn(Box::pin(async move {
                done.await;
                running.reply.answer(ForwardedAnswer::Silent, Buf::empty());
            }));
        }
    }

    fn is_over(&self, from: NodeSlot) {
        let mut nodes = self.nodes.borrow_mut();
        let node = nodes.entry(from).or_default();
        node.running.clear();
        let sessions = std::mem::take(&mut node.sessions).into_values();
        let nexuses: Vec<Rc<Nexus>> = sessions
            .flat_map(|it| it.nexuses.take().into_values())
            .collect();
        // What waited came over a connection that is over as well; who closes goes on.
        let is_closing = node.waiting.replace(Vec::new()).is_some();
        drop(nodes);
        let closed: Vec<_> = nexuses
            .into_iter()
            .map(|it| it.close(Closing::Lost))
            .collect();
        if is_closing {
            return;
        }
        let me = self.me.clone();
        self.core.spawn(Box::pin(async move {
            join_all(closed).await;
            let Some(guests) = me.upgrade() else { return };
            let waiting = {
                let mut nodes = guests.nodes.borrow_mut();
                nodes.get_mut(&from).and_then(|it| it.waiting.take())
            };
            for (request, what, reply) in waiting.into_iter().flatten() {
                guests.begin(from, request, what, reply);
            }
        }));
    }
}
