//! Commands of hosts that go to the node that serves them, over a connection of their own.
//!
//! ```text
//!   this node: begin --Command, Data--> owner: GuestServer::asked --> Reply::answer
//!              ended <--Answer, Data--
//! ```
//!
//! **Contract.** A request belongs to one connection, and goes once. When the connection ends,
//! requests of which nothing was sent have not begun, and of the others nobody knows; the owner
//! ends all nexuses that came over it, and takes nothing of the next connection before it has.
//! The end of a nexus is over when the owner says so: where the connection ends before that, it is
//! asked again over the next one, ahead of all else, and it answers when what came over the last
//! one is over. Where another node owns the LUN by then, the old owner's word counts for nothing.
//!
//! **Bounds.** A node grants the other one bytes and commands, and grants again what is answered.
//! Whoever sends waits for room in order: a command of which the first byte went has the others
//! before it, whose ends give it room. Answers, and what ends commands, go ahead of them. Resets
//! and ends of nexuses cost no room, so that they never wait for commands: there may be
//! [`ASKS_MAX`].

use crate::line::Line;
use peer::{
    Cost, DATA_BYTES_MAX, Forward, Forwarded, ForwardedAnswer, ForwardedCommand, ForwardedEnd,
    ForwardedReset, Guest,
};
use replica::{Moment, NodeSlot};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use tokio::sync::oneshot;
use units::Buf;
use write_back::VolumeId;

/// What the other node may have under way here.
const WINDOW: Cost = Cost {
    bytes: 32 << 20,
    records: 1024,
};

/// Resets and ends of nexuses that are not answered.
const ASKS_MAX: usize = 1024;

/// How often each side says that it is there, in milliseconds.
const BEACON: u64 = 250;

/// What another node asks of the owner of a LUN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// To do a command with this data.
    Command(Box<ForwardedCommand>, Buf),
    /// To do a function for all of a unit.
    Reset(Guest, ForwardedReset),
    /// To end a nexus.
    Close(Guest, ForwardedEnd),
}

/// Does what other nodes ask.
pub trait GuestServer {
    /// A request came.
    fn asked(&self, from: NodeSlot, request: u32, what: Asked, reply: Rc<Reply>);

    /// It is not to be done any more. It is answered all the same.
    fn abort(&self, from: NodeSlot, request: u32);

    /// The connection is over: nothing that came over it may have an effect any more when what came
    /// over the next one is begun.
    fn is_over(&self, from: NodeSlot);
}

/// What a request ended with.
#[derive(Debug)]
pub enum Forwardings {
    /// The owner says so.
    Answered(ForwardedAnswer, Buf),
    /// The owner never heard of it.
    NotBegun,
    /// The connection ended.
    Lost,
}

/// Where a request is answered, once.
pub struct Reply {
    of: Weak<Forwarding>,
    from: NodeSlot,
    link: u64,
    request: u32,
    done: Cell<bool>,
}

impl Reply {
    /// Answers it, where nobody has. What it had costs the other node nothing any more.
    pub fn answer(&self, answer: ForwardedAnswer, data: Buf) {
        if self.done.replace(true) {
            return;
        }
        if let Some(of) = self.of.upgrade() {
            of.answer((self.from, self.link), self.request, answer, data);
        }
    }
}

/// Who waits for the end of a request.
enum Waiter {
    Request(oneshot::Sender<Forwardings>),
    /// The end of a nexus, which outlives the connection.
    Ending(u64),
}

/// A request of this node.
struct Own {
    has_gone: bool,
    waiter: Waiter,
    answer: Option<(ForwardedAnswer, Buf, usize)>,
}

/// A command whose data is not all here.
struct Partial {
    command: Box<ForwardedCommand>,
    data: Buf,
    total: usize,
}

/// A connection that is there.
struct Link {
    number: u64,
    line: Rc<Line>,
    /// When something came last, and when this node said that it is there.
    heard: Moment,
    beacon: Moment,
    aborts: VecDeque<Forwarded>,
    answers: VecDeque<Forwarded>,
    asks: VecDeque<Forwarded>,
    commands: VecDeque<Forwarded>,
    own: BTreeMap<u32, Own>,
    /// Of those the ones that went and cost no room.
    own_asks: BTreeSet<u32>,
    next: u32,
    partial: BTreeMap<u32, Partial>,
    /// What requests of the other node hold.
    theirs: BTreeMap<u32, Cost>,
    held: Cost,
    their_asks: BTreeSet<u32>,
}

/// The end of a nexus of which the owner has not said that it is over.
struct Ending {
    to: NodeSlot,
    guest: Guest,
    end: ForwardedEnd,
    done: oneshot::Sender<()>,
}

/// All that is forwarded from here and to here.
#[derive(Default)]
pub(crate) struct Forwarding {
    links: RefCell<BTreeMap<NodeSlot, Link>>,
    numbered: Cell<u64>,
    server: OnceCell<Rc<dyn GuestServer>>,
    endings: RefCell<BTreeMap<u64, Ending>>,
    endings_numbered: Cell<u64>,
}

/// That of a core.
#[derive(Default)]
pub(crate) struct Home(RefCell<Weak<Forwarding>>);

impl Home {
    pub(crate) fn set(&self, forwarding: &Rc<Forwarding>) {
        *self.0.borrow_mut() = Rc::downgrade(forwarding);
    }

    pub(crate) fn get(&self) -> Option<Rc<Forwarding>> {
        self.0.borrow().upgrade()
    }
}

/// A request on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket {
    to: NodeSlot,
    link: u64,
    request: u32,
}

/// The frames of a command or an answer: the first one says what it is.
fn frames(
    request: u32,
    first: impl FnOnce(u32) -> Forward,
    more: &Forward,
    mut data: Buf,
) -> Vec<Forwarded> {
    let total = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut next = || {
        let most = data.len().min(DATA_BYTES_MAX);
        data.split_front(most)
    };
    let head = Forwarded {
        request,
        what: first(total),
        data: next(),
    };
    let mut all = vec![head];
    loop {
        let data = next();
        if data.is_empty() {
            return all;
        }
        let what = more.clone();
        all.push(Forwarded {
            request,
            what,
            data,
        });
    }
}

impl Ending {
    fn asks(&self) -> Forward {
        Forward::Close(Box::new(self.guest.clone()), self.end)
    }
}

impl Link {
    fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    fn has_own(&mut self, request: u32, waiter: Waiter) {
        let own = Own {
            has_gone: false,
            waiter,
            answer: None,
        };
        self.own.insert(request, own);
    }

    /// Asks for something that costs no room.
    fn ask(&mut self, what: Forward, waiter: Waiter) {
        let request = self.number();
        self.has_own(request, waiter);
        let data = Buf::empty();
        self.asks.push_back(Forwarded {
            request,
            what,
            data,
        });
        self.line.wake();
    }

    /// Says that it is there, and ends a connection over which nothing comes.
    fn tick(&mut self, now: Moment, patience: u64) {
        if now >= self.heard.after(patience) {
            tracing::info!("a connection for forwarding is silent");
            return self.line.end();
        }
        if now >= self.beacon.after(BEACON) {
            self.beacon = now;
            let _next_time = self.line.connection.borrow_mut().beacon(now);
            self.line.wake();
        }
    }

    /// Puts on its way what may go now.
    fn pump(&mut self) {
        let line = Rc::clone(&self.line);
        let mut connection = line.connection.borrow_mut();
        let taken = connection.outstanding().plus(self.held);
        let free = WINDOW.less(taken);
        let is_much = free.bytes >= WINDOW.bytes / 4 || free.records >= WINDOW.records / 4;
        if is_much {
            // What does not go now goes the next time.
            let _full = connection.grant(free);
        }
        for queue in [&mut self.aborts, &mut self.answers] {
            while let Some(next) = queue.front() {
                match send(&line, &mut connection, next) {
                    true => queue.pop_front(),
                    false => break,
                };
            }
        }
        while let Some(next) = self.asks.front() {
            let has_room = self.own_asks.len() < ASKS_MAX;
            if !has_room || !send(&line, &mut connection, next) {
                // What comes behind the end of a nexus does not overtake it.
                return;
            }
            if let Some(own) = self.own.get_mut(&next.request) {
                own.has_gone = true;
                self.own_asks.insert(next.request);
            }
            self.asks.pop_front();
        }
        while let Some(next) = self.commands.front() {
            if !send(&line, &mut connection, next) {
                return;
            }
            if let Some(own) = self.own.get_mut(&next.request) {
                own.has_gone = true;
            }
            self.commands.pop_front();
        }
    }

    /// A request of the other node is answered: its memory counts no more.
    fn lets_go(&mut self, request: u32) {
        self.their_asks.remove(&request);
        if let Some(cost) = self.theirs.remove(&request) {
            self.held = self.held.less(cost);
        }
        self.partial.remove(&request);
    }

    /// Data of an answer came; with the last of it, the answer is there. Answers the end of a nexus
    /// that is over.
    fn answer_data(&mut self, request: u32, more: Buf) -> Option<u64> {
        let own = self.own.get_mut(&request)?;
        let Some((_, data, total)) = &mut own.answer else {
            self.line.end();
            return None;
        };
        data.append_owned(more);
        if data.len() < *total {
            return None;
        }
        let own = self.own.remove(&request)?;
        self.own_asks.remove(&request);
        match (own.waiter, own.answer) {
            (Waiter::Request(done), Some((answer, data, _))) => {
                let _gone = done.send(Forwardings::Answered(answer, data));
                None
            }
            (Waiter::Ending(ending), _) => Some(ending),
            (Waiter::Request(_), None) => None,
        }
    }

    /// Another request that costs no room; `false`: there are too many.
    fn takes_ask(&mut self, request: u32) -> bool {
        let is_new = !self.theirs.contains_key(&request) && self.their_asks.len() < ASKS_MAX;
        is_new && self.their_asks.insert(request)
    }
}

/// Puts a frame on its way, where it may go now.
fn send(line: &Line, connection: &mut peer::Connection, frame: &Forwarded) -> bool {
    match connection.forward(frame) {
        Ok(()) => true,
        Err(peer::NotSent::TooLong) => {
            tracing::warn!("a command cannot be said to another node");
            line.end();
            false
        }
        Err(_) => false,
    }
}

impl Forwarding {
    pub(crate) fn serve(&self, server: Rc<dyn GuestServer>) {
        let _once = self.server.set(server);
    }

    fn with<T>(&self, slot: NodeSlot, work: impl FnOnce(&mut Link) -> T) -> Option<T> {
        let mut links = self.links.borrow_mut();
        let link = links.get_mut(&slot)?;
        let done = work(link);
        link.line.wake();
        Some(done)
    }

    /// A connection has begun.
    pub(crate) fn begins(&self, slot: NodeSlot, line: &Rc<Line>, now: Moment) {
        self.is_over(slot, None);
        let number = self.numbered.get() + 1;
        self.numbered.set(number);
        let mut link = Link {
            number,
            line: Rc::clone(line),
            heard: now,
            beacon: now,
            aborts: VecDeque::new(),
            answers: VecDeque::new(),
            asks: VecDeque::new(),
            commands: VecDeque::new(),
            own: BTreeMap::new(),
            own_asks: BTreeSet::new(),
            next: 0,
            partial: BTreeMap::new(),
            theirs: BTreeMap::new(),
            held: Cost::default(),
            their_asks: BTreeSet::new(),
        };
        for (number, ending) in self.endings.borrow().iter() {
            if ending.to == slot {
                link.ask(ending.asks(), Waiter::Ending(*number));
            }
        }
        self.links.borrow_mut().insert(slot, link);
        line.wake();
    }

    /// Time passes. `owner`: which other node owns a LUN, where one does.
    pub(crate) fn tick(
        &self,
        (now, patience): (Moment, u64),
        owner: impl Fn(VolumeId) -> Option<NodeSlot>,
    ) {
        for link in self.links.borrow_mut().values_mut() {
            link.tick(now, patience);
        }
        let mut endings = self.endings.borrow_mut();
        let is_over = |it: &Ending| owner(it.guest.volume) != Some(it.to);
        let over = endings.iter().filter(|(_, it)| is_over(it));
        let over: Vec<u64> = over.map(|(number, _)| *number).collect();
        for ending in over.iter().filter_map(|it| endings.remove(it)) {
            let _gone = ending.done.send(());
        }
    }

    /// Something came over a connection: whether it counts. What lay here while this node did
    /// nothing is not begun any more.
    pub(crate) fn heard(
        &self,
        (slot, line): (NodeSlot, &Rc<Line>),
        (now, patience): (Moment, u64),
    ) -> bool {
        let mut links = self.links.borrow_mut();
        let link = links.get_mut(&slot);
        let Some(link) = link.filter(|it| Rc::ptr_eq(&it.line, line)) else {
            return false;
        };
        if now >= link.heard.after(patience) {
            link.line.end();
            return false;
        }
        link.heard = now;
        true
    }

    /// Has a node end a nexus. `done` hears when that has said so, or owns the LUN no more.
    pub(crate) fn close(
        &self,
        to: NodeSlot,
        (guest, end): (Guest, ForwardedEnd),
        done: oneshot::Sender<()>,
    ) {
        let number = self.endings_numbered.get() + 1;
        self.endings_numbered.set(number);
        let ending = Ending {
            to,
            guest,
            end,
            done,
        };
        if let Some(link) = self.links.borrow_mut().get_mut(&to) {
            link.ask(ending.asks(), Waiter::Ending(number));
        }
        self.endings.borrow_mut().insert(number, ending);
    }

    /// Has all nodes end a nexus that they may know, of a LUN that no other node owns.
    pub(crate) fn close_everywhere(&self, guest: &Guest, end: ForwardedEnd) {
        let connected: Vec<NodeSlot> = self.links.borrow().keys().copied().collect();
        for to in connected {
            let (done, _nobody) = oneshot::channel();
            self.close(to, (guest.clone(), end), done);
        }
    }

    /// A connection is over; with a line, only where it is that one.
    pub(crate) fn is_over(&self, slot: NodeSlot, line: Option<&Rc<Line>>) {
        let mut links = self.links.borrow_mut();
        let is_it = |link: &Link| line.is_none_or(|it| Rc::ptr_eq(it, &link.line));
        if !links.get(&slot).is_some_and(is_it) {
            return;
        }
        let link = links.remove(&slot);
        drop(links);
        for (_, own) in link.into_iter().flat_map(|it| it.own) {
            let end = if own.has_gone {
                Forwardings::Lost
            } else {
                Forwardings::NotBegun
            };
            if let Waiter::Request(done) = own.waiter {
                let _gone = done.send(end);
            }
        }
        if let Some(server) = self.server.get() {
            server.is_over(slot);
        }
    }

    pub(crate) fn pump(&self, slot: NodeSlot, line: &Line) {
        if let Some(link) = self.links.borrow_mut().get_mut(&slot)
            && std::ptr::eq(&raw const *link.line, line)
        {
            link.pump();
        }
    }

    /// Sends a command; `None`: there is no way to the node.
    pub(crate) fn command(
        &self,
        to: NodeSlot,
        (command, data): (ForwardedCommand, Buf),
        done: oneshot::Sender<Forwardings>,
    ) -> Result<Ticket, oneshot::Sender<Forwardings>> {
        let mut links = self.links.borrow_mut();
        let Some(link) = links.get_mut(&to) else {
            return Err(done);
        };
        let request = link.number();
        let first = |total| Forward::Command(Box::new(command), total);
        link.commands
            .extend(frames(request, first, &Forward::Data, data));
        link.has_own(request, Waiter::Request(done));
        link.line.wake();
        let link = link.number;
        Ok(Ticket { to, link, request })
    }

    /// Asks for something without data.
    pub(crate) fn ask(
        &self,
        to: NodeSlot,
        what: Forward,
        done: oneshot::Sender<Forwardings>,
    ) -> Result<(), oneshot::Sender<Forwardings>> {
        let mut links = self.links.borrow_mut();
        let Some(link) = links.get_mut(&to) else {
            return Err(done);
        };
        link.ask(what, Waiter::Request(done));
        Ok(())
    }

    /// Aborts a command: one that has not gone is over.
    pub(crate) fn abort(&self, ticket: Ticket) {
        let Ticket { to, link, request } = ticket;
        let mut links = self.links.borrow_mut();
        let Some(of) = links.get_mut(&to).filter(|it| it.number == link) else {
            return;
        };
        let Some(own) = of.own.get(&request) else {
            return;
        };
        if own.has_gone {
            of.aborts.push_back(Forwarded {
                request,
                what: Forward::Abort,
                data: Buf::empty(),
            });
            return of.line.wake();
        }
        of.commands.retain(|it| it.request != request);
        if let Some(own) = of.own.remove(&request)
            && let Waiter::Request(done) = own.waiter
        {
            let silent = Forwardings::Answered(ForwardedAnswer::Silent, Buf::empty());
            let _gone = done.send(silent);
        }
    }

    fn answer(
        &self,
        (from, number): (NodeSlot, u64),
        request: u32,
        answer: ForwardedAnswer,
        data: Buf,
    ) {
        let mut links = self.links.borrow_mut();
        let Some(link) = links.get_mut(&from).filter(|it| it.number == number) else {
            return;
        };
        link.lets_go(request);
        let first = |total| Forward::Answer(answer, total);
        link.answers
            .extend(frames(request, first, &Forward::AnswerData, data));
        link.line.wake();
    }

    /// Something came.
    pub(crate) fn came(self: &Rc<Self>, slot: NodeSlot, came: Forwarded) {
        let cost = came.cost();
        let Forwarded {
            request,
            what,
            data,
        } = came;
        match what {
            Forward::Answer(answer, total) => {
                let over = self.with(slot, |link| {
                    let total = usize::try_from(total).unwrap_or(usize::MAX);
                    if let Some(own) = link.own.get_mut(&request) {
                        own.answer = Some((answer, Buf::empty(), total));
                    }
                    link.answer_data(request, data)
                });
                self.ending_is_over(over.flatten());
            }
            Forward::AnswerData => {
                let over = self.with(slot, |link| link.answer_data(request, data));
                self.ending_is_over(over.flatten());
            }
            Forward::Command(command, total) => {
                self.command_came(slot, request, (command, total), (data, cost));
            }
            Forward::Data => self.more_came(slot, request, (data, cost)),
            Forward::Abort => self.abort_came(slot, request),
            Forward::Reset(guest, what) => self.ask_came(slot, request, Asked::Reset(*guest, what)),
            Forward::Close(guest, end) => self.ask_came(slot, request, Asked::Close(*guest, end)),
        }
    }

    fn ending_is_over(&self, number: Option<u64>) {
        let ending = number.and_then(|it| self.endings.borrow_mut().remove(&it));
        if let Some(ending) = ending {
            let _gone = ending.done.send(());
        }
    }

    fn ask_came(self: &Rc<Self>, slot: NodeSlot, request: u32, what: Asked) {
        let taken = self.with(slot, |link| {
            let taken = link.takes_ask(request);
            if !taken {
                tracing::warn!(node = slot.0, "a node asks for too much at once");
                link.line.end();
            }
            taken
        });
        if taken == Some(true) {
            self.asked(slot, request, what);
        }
    }

    fn command_came(
        self: &Rc<Self>,
        slot: NodeSlot,
        request: u32,
        (command, total): (Box<ForwardedCommand>, u32),
        (data, cost): (Buf, Cost),
    ) {
        let total = usize::try_from(total).unwrap_or(usize::MAX);
        let is_whole = data.len() >= total;
        let command = self.with(slot, |link| {
            link.held = link.held.plus(cost);
            let is_known = link.their_asks.contains(&request);
            if link.theirs.insert(request, cost).is_some() || is_known {
                link.line.end();
                return None;
            }
            if is_whole {
                return Some((command, data));
            }
            let partial = Partial {
                command,
                data,
                total,
            };
            link.partial.insert(request, partial);
            None
        });
        if let Some((command, data)) = command.flatten() {
            self.asked(slot, request, Asked::Command(command, data));
        }
    }

    fn more_came(self: &Rc<Self>, slot: NodeSlot, request: u32, (data, cost): (Buf, Cost)) {
        let whole = self.with(slot, |link| {
            // It was aborted meanwhile.
            let partial = link.partial.get_mut(&request)?;
            partial.data.append_owned(data);
            let len = partial.data.len();
            if len > partial.total {
                link.line.end();
                return None;
            }
            let is_whole = len == partial.total;
            link.held = link.held.plus(cost);
            if let Some(held) = link.theirs.get_mut(&request) {
                *held = held.plus(cost);
            }
            let whole = is_whole.then(|| link.partial.remove(&request));
            whole.flatten()
        });
        if let Some(whole) = whole.flatten() {
            self.asked(slot, request, Asked::Command(whole.command, whole.data));
        }
    }

    /// One that is not all here never begins; one that was answered is over.
    fn abort_came(self: &Rc<Self>, slot: NodeSlot, request: u32) {
        let partial = self.with(slot, |link| {
            let partial = link.partial.remove(&request);
            partial.map(|_| link.number)
        });
        if let Some(link) = partial.flatten() {
            return self.answer((slot, link), request, ForwardedAnswer::Silent, Buf::empty());
        }
        if let Some(server) = self.server.get() {
            server.abort(slot, request);
        }
    }

    fn asked(self: &Rc<Self>, slot: NodeSlot, request: u32, what: Asked) {
        let number = self.links.borrow().get(&slot).map(|it| it.number);
        let Some(link) = number else {
            return;
        };
        let reply = Rc::new(Reply {
            of: Rc::downgrade(self),
            from: slot,
            link,
            request,
            done: Cell::new(false),
        });
        match self.server.get() {
            Some(server) => server.asked(slot, request, what, reply),
            None => reply.answer(ForwardedAnswer::Disconnect, Buf::empty()),
        }
    }
}

#[cfg(test)]
#[path = "forwarding_test.rs"]
mod test;
