//! Hosts whose commands go to the owner through the other node. A write of which nobody knows what
//! became counts as over when the owner, or a takeover, has said so: from then on it is done, or
//! never will be.

use crate::node::{BLOCKS, LUN, Side, Work, payload};
use cluster::{Asked, Forwardings, GuestServer, Reply, Served};
use env::CoreHandle;
use env::sim::Rng;
use peer::{ForwardedAnswer, ForwardedCommand, ForwardedEnd, ForwardedOrder, Guest};
use replica::NodeSlot;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, Op, Origin, Volume};
use volume_test::model::Begun;

const READ: u8 = 0x28;
const WRITE: u8 = 0x2a;
const GOOD: u8 = 0;
const BUSY: u8 = 8;
const HOSTS: u8 = 2;

type Waiting = Vec<(Asked, Rc<Reply>)>;

/// Does at the owner what other nodes ask, as a unit would: nothing of a connection is begun before
/// all of the last one has ended.
pub(crate) struct Guests {
    core: CoreHandle,
    served: Arc<Served>,
    running: Cell<u32>,
    ended: Notify,
    waiting: RefCell<Option<Waiting>>,
    me: Weak<Self>,
}

fn command(operation: u8, range: LbaRange) -> Vec<u8> {
    let start = u32::try_from(range.start().0).unwrap().to_be_bytes();
    let len = u16::try_from(range.len().0).unwrap().to_be_bytes();
    let head = [operation, 0];
    [&head[..], &start, &[0], &len, &[0]].concat()
}

fn range(cdb: &[u8]) -> LbaRange {
    let start = u32::from_be_bytes(cdb[2..6].try_into().unwrap());
    let len = u16::from_be_bytes(cdb[7..9].try_into().unwrap());
    LbaRange::new(Lba(start.into()), BlockCount(len.into())).unwrap()
}

fn respond(status: u8) -> ForwardedAnswer {
    let sense = Vec::new();
    ForwardedAnswer::Respond { status, sense }
}

impl Guests {
    pub(crate) fn new(core: &CoreHandle, served: &Arc<Served>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self {
            core: Rc::clone(core),
            served: Arc::clone(served),
            running: Cell::new(0),
            ended: Notify::new(),
            waiting: RefCell::new(None),
            me: Weak::clone(me),
        })
    }

    async fn done(&self, cdb: &[u8], data: Buf) -> (ForwardedAnswer, Buf) {
        let served = Arc::clone(&self.served) as Arc<dyn Volume>;
        let lane = served.open(&self.core).await.unwrap();
        let range = range(cdb);
        let durability = Durability::Stable;
        let op = match cdb[0] {
            READ => Op::Read { range, into: None },
            WRITE => Op::Write {
                range,
                data,
                durability,
            },
            other => panic!("nobody sends {other:#x}"),
        };
        match lane.submit(Io::new(op, Origin::default())).await {
            Ok(Done::Data(data)) => (respond(GOOD), data),
            Ok(_) => (respond(GOOD), Buf::empty()),
            Err(error) if error.leaves_nothing_done() => (respond(BUSY), Buf::empty()),
            Err(_) => (ForwardedAnswer::Disconnect, Buf::empty()),
        }
    }

    fn begin(&self, what: Asked, reply: Rc<Reply>) {
        let (Asked::Command(command, data), Some(me)) = (what, self.me.upgrade()) else {
            return reply.answer(ForwardedAnswer::Silent, Buf::empty());
        };
        self.running.set(self.running.get() + 1);
        self.core.spawn(Box::pin(async move {
            let (answer, data) = me.done(&command.cdb, data).await;
            reply.answer(answer, data);
            me.running.set(me.running.get() - 1);
            me.ended.notify_waiters();
        }));
    }
}

impl GuestServer for Guests {
    fn asked(&self, _: NodeSlot, _: u32, what: Asked, reply: Rc<Reply>) {
        if let Some(waiting) = &mut *self.waiting.borrow_mut() {
            return waiting.push((what, reply));
        }
        self.begin(what, reply);
    }

    /// It is answered when it ends.
    fn abort(&self, _: NodeSlot, _: u32) {}

    fn is_over(&self, _: NodeSlot) {
        let is_closing = self.waiting.replace(Some(Vec::new())).is_some();
        let Some(me) = self.me.upgrade().filter(|_| !is_closing) else {
            return;
        };
        self.core.spawn(Box::pin(async move {
            loop {
                let ended = me.ended.notified();
                if me.running.get() == 0 {
                    break;
                }
                ended.await;
            }
            let waiting = me.waiting.take();
            for (what, reply) in waiting.into_iter().flatten() {
                me.begin(what, reply);
            }
        }));
    }
}

impl Work {
    /// Hosts of this node whose commands go to the other one, whoever owns the LUN.
    pub(crate) fn begin_forwarding(&self, side: &Side, me: usize, rng: &mut Rng) {
        let guests = Guests::new(&side.core, &side.served);
        side.cluster.serve_guests(guests);
        for at in 0..HOSTS {
            let guest = Guest {
                volume: LUN,
                initiator: format!("iqn.x:h{at}"),
                isid: [at; 6],
                port: 1,
            };
            let (work, core, rng) = (self.clone(), Rc::clone(&side.core), rng.fork());
            side.core
                .spawn(Box::pin(work.forwards(core, me, guest, rng)));
        }
    }

    async fn forwards(self, core: CoreHandle, me: usize, guest: Guest, mut rng: Rng) {
        loop {
            let pause = Duration::from_micros(200 + rng.below(30_000));
            core.sleep_until(core.now().after(pause)).await;
            if self.ends.get() {
                continue;
            }
            self.busy[me].set(self.busy[me].get() + 1);
            self.forwards_once(&core, me, &guest, &mut rng).await;
            self.busy[me].set(self.busy[me].get() - 1);
        }
    }

    async fn forwards_once(&self, core: &CoreHandle, me: usize, guest: &Guest, rng: &mut Rng) {
        let start = rng.below(BLOCKS);
        let len = 1 + rng.below((BLOCKS - start).min(6));
        let range = LbaRange::new(Lba(start), BlockCount(len)).unwrap();
        let may_read = self.is_suspended.iter().all(|it| !it.get());
        let (cdb, data, begun) = if may_read && rng.below(2) == 0 {
            (command(READ, range), Buf::empty(), Begun::Read(range))
        } else {
            let tag = self.model.borrow_mut().fresh_tag();
            let begun = Begun::Write(range, tag, Durability::Stable);
            (command(WRITE, range), payload(tag, range), begun)
        };
        let token = self.model.borrow_mut().begin(begun);
        let sent = ForwardedCommand {
            guest: guest.clone(),
            read_only: false,
            order: ForwardedOrder::Simple,
            announced: u32::try_from(data.len()).unwrap(),
            cdb,
        };
        let underway = cluster::forward(core, core.id(), sent, data);
        if rng.below(20) == 0 {
            underway.abort()();
        }
        let error = match underway.ended.await {
            Ok(Forwardings::Answered(ForwardedAnswer::Respond { status: GOOD, .. }, data)) => {
                self.forwarded[me].set(self.forwarded[me].get() + 1);
                let mut model = self.model.borrow_mut();
                if matches!(begun, Begun::Read(_)) {
                    let right = model.end_read(token, &data);
                    right.unwrap_or_else(|wrong| panic!("through node {me}: {wrong}"));
                } else {
                    model.end(token, Ok(()));
                }
                return;
            }
            Ok(
                Forwardings::NotBegun
                | Forwardings::Answered(ForwardedAnswer::Respond { .. } | ForwardedAnswer::Silent, _),
            ) => IoError::Transition,
            Ok(Forwardings::Answered(ForwardedAnswer::Disconnect, _) | Forwardings::Lost)
            | Err(_) => IoError::Unavailable,
        };
        if error == IoError::Unavailable && !matches!(begun, Begun::Read(_)) {
            let (guest, end) = (guest.clone(), ForwardedEnd::Lost);
            cluster::forward_close(core, core.id(), guest, end).await;
            self.lost.set(self.lost.get() + 1);
        }
        self.model.borrow_mut().end(token, Err(error));
    }
}
