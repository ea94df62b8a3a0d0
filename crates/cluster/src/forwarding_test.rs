use super::*;
use peer::{
    ClusterId, Connection, ConnectionNumber, Event, ForwardedOrder, Incarnation, KnownNode, NodeId,
    Own as Node, Purpose, Transmit, exchange,
};
use std::io;
use std::task::Poll;
use units::BufMut;

const HERE: NodeSlot = NodeSlot(1);
const OWNER: NodeSlot = NodeSlot(0);
const LUN: VolumeId = VolumeId(9);
const PATIENCE: u64 = 3000;

/// Bytes on their way from one side and to it.
#[derive(Default)]
struct Wire {
    out: Vec<u8>,
    into: VecDeque<u8>,
}

impl peer::Link for Wire {
    fn send(&mut self, waiting: &Transmit) -> Poll<io::Result<usize>> {
        let before = self.out.len();
        self.out.extend(waiting.pieces().flatten());
        Poll::Ready(Ok(self.out.len() - before))
    }

    fn receive(&mut self, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let most = into.len().min(self.into.len());
        if most == 0 {
            return Poll::Pending;
        }
        for (to, from) in into.iter_mut().zip(self.into.drain(..most)) {
            *to = from;
        }
        Poll::Ready(Ok(most))
    }
}

fn moves(connection: &mut Connection, came: Vec<u8>) -> (Vec<u8>, Vec<Event>) {
    let mut wire = Wire::default();
    wire.into.extend(came);
    let mut events = Vec::new();
    let mut memory = |bytes| Some(BufMut::zeroed(bytes));
    while exchange(connection, &mut wire, &mut memory).unwrap() {
        events.extend(std::iter::from_fn(|| connection.poll_event()));
    }
    (wire.out, events)
}

/// What came to the owner.
#[derive(Default)]
struct Server {
    asked: RefCell<Vec<(u32, Asked, Rc<Reply>)>>,
    aborted: RefCell<Vec<u32>>,
    over: Cell<u32>,
}

impl GuestServer for Server {
    fn asked(&self, from: NodeSlot, request: u32, what: Asked, reply: Rc<Reply>) {
        assert_eq!(from, HERE);
        self.asked.borrow_mut().push((request, what, reply));
    }

    fn abort(&self, _: NodeSlot, request: u32) {
        self.aborted.borrow_mut().push(request);
    }

    fn is_over(&self, _: NodeSlot) {
        self.over.set(self.over.get() + 1);
    }
}

struct Side {
    forwarding: Rc<Forwarding>,
    other: NodeSlot,
    line: Rc<Line>,
}

impl Side {
    /// Sends what waits, and hears what came.
    fn turn(&self, came: Vec<u8>) -> Vec<u8> {
        let (_, events) = moves(&mut self.line.connection.borrow_mut(), came);
        for event in events {
            if let Event::Forward(came) = event {
                self.forwarding.came(self.other, came);
            }
        }
        self.forwarding.pump(self.other, &self.line);
        moves(&mut self.line.connection.borrow_mut(), Vec::new()).0
    }
}

/// This node, and the owner of the LUN.
struct World {
    here: Side,
    owner: Side,
    server: Rc<Server>,
}

fn lines(number: u64) -> (Rc<Line>, Rc<Line>) {
    let node = |slot: NodeSlot| KnownNode {
        slot,
        node: NodeId([slot.0 + 100; 16]),
    };
    let own = |slot: NodeSlot| Node {
        cluster: ClusterId([7; 16]),
        slot,
        node: node(slot).node,
        incarnation: Incarnation(5),
        level: 1,
        level_max: 1,
    };
    let number = ConnectionNumber(number);
    let mut here = Connection::connects(own(HERE), node(OWNER), number, Purpose::Forward);
    let mut there = Connection::accepts(own(OWNER), vec![node(HERE)]);
    let (first, _) = moves(&mut here, Vec::new());
    let (answer, _) = moves(&mut there, first);
    moves(&mut here, answer);
    assert!(here.opened().is_some() && there.opened().is_some());
    (Line::new(here), Line::new(there))
}

impl World {
    fn new() -> Self {
        let (here, there) = lines(1);
        let server = Rc::new(Server::default());
        let side = |other, line: &Rc<Line>| Side {
            forwarding: Rc::default(),
            other,
            line: Rc::clone(line),
        };
        let world = Self {
            here: side(OWNER, &here),
            owner: side(HERE, &there),
            server: Rc::clone(&server),
        };
        world.owner.forwarding.serve(server);
        world.begins();
        world
    }

    fn begins(&self) {
        for side in [&self.here, &self.owner] {
            side.forwarding.begins(side.other, &side.line, Moment(0));
        }
        self.settles();
    }

    /// The connection is lost, and another one made.
    fn again(&mut self, number: u64) {
        (self.here.line, self.owner.line) = lines(number);
        self.begins();
    }

    fn settles(&self) {
        let mut there = self.here.turn(Vec::new());
        loop {
            let back = self.owner.turn(there);
            there = self.here.turn(back.clone());
            if there.is_empty() && back.is_empty() {
                return;
            }
        }
    }

    fn command(&self, data: usize) -> (Ticket, oneshot::Receiver<Forwardings>) {
        let (done, ended) = oneshot::channel();
        let command = ForwardedCommand {
            guest: guest(),
            read_only: false,
            order: ForwardedOrder::Simple,
            announced: 0,
            cdb: vec![0x2a; 10],
        };
        let data = Buf::copy_of(&vec![3; data]);
        let begun = self.here.forwarding.command(OWNER, (command, data), done);
        (begun.unwrap(), ended)
    }

    fn close(&self) -> oneshot::Receiver<()> {
        let (done, closed) = oneshot::channel();
        let what = (guest(), ForwardedEnd::Lost);
        self.here.forwarding.close(OWNER, what, done);
        closed
    }

    /// Answers the oldest request that came to the owner.
    fn answers(&self, data: usize) -> Asked {
        let (_, asked, reply) = self.server.asked.borrow_mut().remove(0);
        reply.answer(good(), Buf::copy_of(&vec![4; data]));
        self.settles();
        asked
    }

    fn came(&self) -> usize {
        self.server.asked.borrow().len()
    }
}

fn guest() -> Guest {
    Guest {
        volume: LUN,
        initiator: "iqn.x:h".to_owned(),
        isid: [1; 6],
        port: 1025,
    }
}

fn good() -> ForwardedAnswer {
    ForwardedAnswer::Respond {
        status: 0,
        sense: Vec::new(),
    }
}

#[test]
fn a_command_goes_whole_and_comes_back_whole_however_large_it_is() {
    let world = World::new();
    for bytes in [0, 1, DATA_BYTES_MAX, 3 * DATA_BYTES_MAX + 5] {
        let (_, mut ended) = world.command(bytes);
        world.settles();
        assert!(ended.try_recv().is_err(), "it is not answered");
        let Asked::Command(_, data) = world.answers(bytes) else {
            panic!("it is a command");
        };
        assert_eq!(data.to_vec(), vec![3; bytes]);
        let Ok(Forwardings::Answered(answer, data)) = ended.try_recv() else {
            panic!("it is answered");
        };
        assert_eq!((answer, data.to_vec()), (good(), vec![4; bytes]));
    }
}

#[test]
fn no_more_commands_go_than_the_owner_has_room_for_and_ends_of_nexuses_go_all_the_same() {
    let world = World::new();
    let most = usize::try_from(WINDOW.records).unwrap();
    let mut waiting: Vec<_> = (0..most + 10).map(|_| world.command(0)).collect();
    world.settles();
    assert_eq!(world.came(), most);
    let _closed = world.close();
    world.settles();
    assert_eq!(world.came(), most + 1);
    for _ in 0..most / 2 {
        world.answers(0);
    }
    assert_eq!(world.came(), most + 1 - most / 2 + 10);
    // Those that wait for room end where they are.
    let has_ended = waiting[0].1.try_recv().is_ok();
    assert!(has_ended && waiting[most].1.try_recv().is_err());
}

#[test]
fn what_is_lost_with_its_connection_is_not_sent_again_and_what_never_went_has_not_begun() {
    let mut world = World::new();
    let (_, mut went) = world.command(0);
    world.settles();
    let (_, mut waits) = world.command(0);
    assert_eq!(world.server.over.get(), 0);
    world.again(2);
    assert!(matches!(went.try_recv(), Ok(Forwardings::Lost)));
    assert!(matches!(waits.try_recv(), Ok(Forwardings::NotBegun)));
    assert_eq!((world.server.over.get(), world.came()), (1, 1));
    // An answer of the last connection is nobody's on this one.
    let (_, mut next) = world.command(0);
    world.settles();
    world.answers(0);
    assert!(next.try_recv().is_err(), "it has the same number");
    world.answers(0);
    assert!(next.try_recv().is_ok());
}

#[test]
fn the_end_of_a_nexus_is_the_owners_word_also_over_the_next_connection_and_ahead_of_commands() {
    let mut world = World::new();
    let mut closed = world.close();
    world.settles();
    assert_eq!(world.came(), 1);
    world.again(2);
    let (_, _ended) = world.command(0);
    world.settles();
    assert!(closed.try_recv().is_err(), "the owner has not said it");
    let asked = world.server.asked.borrow();
    let kinds: Vec<bool> = asked
        .iter()
        .map(|it| matches!(it.1, Asked::Close(..)))
        .collect();
    assert_eq!(kinds, [true, true, false]);
    drop(asked);
    // What was asked over the last connection is answered there, which nobody hears.
    world.answers(0);
    assert!(closed.try_recv().is_err());
    world.answers(0);
    assert_eq!(closed.try_recv(), Ok(()));
}

#[test]
fn the_end_of_a_nexus_is_over_when_another_node_owns_the_lun() {
    let world = World::new();
    let mut closed = world.close();
    let time = (Moment(1), PATIENCE);
    world.here.forwarding.tick(time, |_| Some(OWNER));
    assert!(closed.try_recv().is_err());
    world.here.forwarding.tick(time, |_| None);
    assert_eq!(closed.try_recv(), Ok(()));
}

#[test]
fn an_abort_ends_what_has_not_gone_and_goes_after_what_has() {
    let world = World::new();
    let (before, mut ended) = world.command(0);
    world.here.forwarding.abort(before);
    assert!(matches!(
        ended.try_recv(),
        Ok(Forwardings::Answered(ForwardedAnswer::Silent, _))
    ));
    let (after, mut ended) = world.command(0);
    world.settles();
    world.here.forwarding.abort(after);
    world.settles();
    assert_eq!(world.came(), 1);
    assert_eq!(world.server.aborted.borrow().len(), 1);
    assert!(ended.try_recv().is_err(), "the owner has it");
    world.answers(0);
    assert!(ended.try_recv().is_ok());
}

#[test]
fn a_silent_connection_ends_and_what_lay_there_meanwhile_is_not_begun() {
    let world = World::new();
    let (here, owner) = (&world.here, &world.owner);
    let mine = |_| Some(OWNER);
    here.forwarding.tick((Moment(BEACON), PATIENCE), mine);
    let (beacons, _) = moves(&mut here.line.connection.borrow_mut(), Vec::new());
    let (_, events) = moves(&mut owner.line.connection.borrow_mut(), beacons);
    assert_eq!(events, [Event::Beacon(Moment(BEACON))]);
    let heard = |now: u64| {
        let time = (Moment(now), PATIENCE);
        owner.forwarding.heard((HERE, &owner.line), time)
    };
    assert!(heard(BEACON) && heard(BEACON + PATIENCE - 1));
    assert!(!owner.line.is_over());
    let late = BEACON + 2 * PATIENCE;
    assert!(!heard(late) && owner.line.is_over());
    assert!(!here.line.is_over());
    here.forwarding.tick((Moment(PATIENCE), PATIENCE), mine);
    assert!(here.line.is_over());
}

#[test]
fn a_node_that_asks_for_too_much_at_once_loses_its_connection() {
    let world = World::new();
    let owner = &world.owner;
    let close = |request: usize| Forwarded {
        request: u32::try_from(request).unwrap(),
        what: Forward::Close(Box::new(guest()), ForwardedEnd::Lost),
        data: Buf::empty(),
    };
    for request in 0..ASKS_MAX {
        owner.forwarding.came(HERE, close(request));
    }
    assert!(!owner.line.is_over());
    owner.forwarding.came(HERE, close(ASKS_MAX));
    assert!(owner.line.is_over());
    assert_eq!(world.came(), ASKS_MAX);
}
