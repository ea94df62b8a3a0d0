//! The sessions of one core, as other cores and people see them.

use crate::export::{Export, Host};
use crate::load::{Load, Part, work_of};
use crate::stage_sample::{SampledStages, StageSample};
use env::{CoreHandle, CoreId, LocalFuture};
use iscsi::Parameters;
use iscsi::extension_keys::nic::NicRecord;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use units::{Histogram, WallClock};

/// Samples of so many sessions that ended are kept on each core until somebody asks.
const SAMPLED_MAX: usize = 64;

/// Names a session for as long as the program runs; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionNumber(pub u64);

/// A session, for people.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    /// What commands and logs name it by.
    pub number: SessionNumber,
    /// The core that serves it.
    pub core: CoreId,
    /// Discovery sessions have no target.
    pub target: Option<String>,
    /// The host that the initiator is.
    pub host: Option<String>,
    /// The initiator's iSCSI name.
    pub initiator: String,
    /// InitiatorAlias, where the login had one.
    pub initiator_alias: Option<String>,
    /// What the initiator reported of its NIC, where it is one of ours.
    pub nic: Option<NicRecord>,
    /// Initiator part of the session identifier, in hexadecimal.
    pub isid: String,
    /// The session's handle.
    pub tsih: u16,
    /// Our address.
    pub portal: SocketAddr,
    /// TargetPortalGroupTag that the session belongs to.
    pub portal_group_tag: u16,
    /// The initiator's address.
    pub peer: SocketAddr,
    /// The name that was proved by CHAP.
    pub chap_user: Option<String>,
    /// We proved ourselves, too.
    pub mutual_chap: bool,
    /// What was negotiated.
    pub parameters: Parameters,
    /// When it logged in.
    pub since: WallClock,
    /// Commands that have ended.
    pub commands: u64,
    /// Bytes sent to the initiator as data.
    pub bytes_read: u64,
    /// Bytes received as data.
    pub bytes_written: u64,
    /// How it came.
    pub received: Received,
    /// Commands in progress.
    pub in_progress: u64,
    /// Bytes that they hold.
    pub bytes_in_flight: u64,
    /// The most that they may hold.
    pub bytes_in_flight_max: Option<u64>,
    /// Its part of its core's time.
    pub load: Load,
    /// How long READ commands took, from the first byte until the socket had the answer.
    pub reads: Histogram,
    /// The same of WRITE commands.
    pub writes: Histogram,
    /// It stays on its core: its portal group is pinned.
    pub pinned: bool,
    /// The LUNs that it sees.
    pub luns: Vec<u16>,
}

/// How long the stages of a session's commands took since this was asked last: of a sample of them.
/// It may have ended meanwhile.
#[derive(Clone, Debug)]
pub struct SessionStages {
    /// The host that the initiator is.
    pub host: Option<String>,
    /// The initiator's iSCSI name.
    pub initiator: String,
    /// The name of the target that it logged in to, where that is still there.
    pub target: Option<String>,
    /// Of reads and of writes.
    pub stages: SampledStages,
}

impl SessionInfo {
    /// How long READ and WRITE commands took, from the first byte until the socket had the answer.
    #[must_use]
    pub fn latency(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.add(&self.writes);
        all
    }
}

/// How a connection has received what its host sent.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Received {
    /// PDUs.
    pub pdus: u64,
    /// Times that it looked for them, and something was there.
    pub receives: u64,
    /// Of these, those before which it waited for several PDUs.
    pub waited: u64,
}

impl Received {
    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            pdus: self.pdus + other.pdus,
            receives: self.receives + other.receives,
            waited: self.waited + other.waited,
        }
    }
}

/// Why a session is ended by us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// An administrator asked for it.
    Dropped,
    /// The same initiator port logged in again.
    Reinstated,
    /// Its initiator asked for that in another session.
    Fenced,
    /// Its target is gone, and another one has its name.
    OtherTarget,
    /// Its host asks for another proof than the one that it gave.
    OtherProof,
    /// Its target is in maintenance and the time to log out is over.
    Maintenance,
    /// The daemon stops.
    Stopping,
}

/// A session that works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Working {
    pub(crate) session: SessionNumber,
    pub(crate) load: Load,
    /// It stays where it is.
    pub(crate) pinned: bool,
}

/// Orders to a session's driver.
pub(crate) enum Order {
    End(EndReason),
    Adopt(Arc<Export>),
    RequestLogout { within: Duration },
    Move { to: CoreId },
}

/// A session, as its core knows it.
pub(crate) struct Session {
    pub(crate) number: SessionNumber,
    pub(crate) info: RefCell<SessionInfo>,
    pub(crate) counters: Counters,
    pub(crate) sample: StageSample,
    part: Part,
    orders: RefCell<VecDeque<Order>>,
    driver: RefCell<Option<Waker>>,
    waiting: RefCell<Vec<Waker>>,
    adopted: Cell<u64>,
    ended: Cell<bool>,
    /// What the initiator proved at its login: that it is this host, by these terms.
    proven: RefCell<Option<Arc<Host>>>,
    /// It was granted nothing at some time since.
    shut_out: Cell<bool>,
}

/// A session on its way from one core to another.
pub(crate) struct Moved {
    info: SessionInfo,
    sampled: Option<SampledStages>,
    adopted: u64,
    proven: Option<Arc<Host>>,
    shut_out: bool,
}

/// What a session has done.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commands: Cell<u64>,
    pub(crate) bytes_read: Cell<u64>,
    pub(crate) bytes_written: Cell<u64>,
    pub(crate) received: Cell<Received>,
    pub(crate) in_progress: Cell<u64>,
    pub(crate) bytes_in_flight: Cell<u64>,
    /// Of READ commands, from the first byte until the socket had the answer.
    pub(crate) reads: RefCell<Histogram>,
    /// The same of WRITE commands.
    pub(crate) writes: RefCell<Histogram>,
}

/// A login between the end of its negotiation and the beginning of its session: the directory may
/// know its number already, and another login of the same port may have to end it.
#[derive(Default)]
struct Entering {
    /// Another login of the same port came; this one must not become a session.
    overtaken: Cell<bool>,
    /// It has become a session, or never will.
    over: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

/// Held by the connection whose login is being entered. Dropping it says that the matter is
/// settled.
pub(crate) struct EnteringGuard {
    core: CoreHandle,
    number: SessionNumber,
    entering: Rc<Entering>,
}

impl EnteringGuard {
    pub(crate) fn new(core: &CoreHandle, number: SessionNumber) -> Self {
        let entering = Rc::<Entering>::default();
        let sessions = core.locals().get::<Sessions>();
        let mut all = sessions.entering.borrow_mut();
        all.insert(number, Rc::clone(&entering));
        Self {
            core: Rc::clone(core),
            number,
            entering,
        }
    }

    pub(crate) fn overtaken(&self) -> bool {
        self.entering.overtaken.get()
    }
}

impl Drop for EnteringGuard {
    fn drop(&mut self) {
        self.entering.over.set(true);
        let sessions = self.core.locals().get::<Sessions>();
        sessions.entering.borrow_mut().remove(&self.number);
        for waker in std::mem::take(&mut *self.entering.waiting.borrow_mut()) {
            waker.wake();
        }
    }
}

#[derive(Default)]
pub(crate) struct Sessions {
    all: RefCell<BTreeMap<SessionNumber, Rc<Session>>>,
    entering: RefCell<BTreeMap<SessionNumber, Rc<Entering>>>,
    /// Of sessions that ended, until somebody asks.
    sampled: RefCell<VecDeque<SessionStages>>,
    last: Cell<u64>,
}

impl Sessions {
    /// A number for a session of this core.
    pub(crate) fn new_number(&self, core: &CoreHandle) -> SessionNumber {
        let next = self.last.get() + 1;
        self.last.set(next);
        // Unique over all cores without asking any: the core is part of it.
        SessionNumber(next * u64::from(core.core_count()) + u64::from(core.id().0))
    }
}

impl Sessions {
    /// Measures what each session did while the core was busy so much; returns which of them work.
    pub(crate) fn measured(&self, busy: Load) -> Vec<Working> {
        let all = self.all.borrow();
        let work: u64 = all.values().map(|session| session.new_work()).sum();
        let loads = all.values().map(|session| {
            session.part.share(work, busy);
            Working {
                session: session.number,
                load: session.part.load(),
                pinned: session.info.borrow().pinned,
            }
        });
        loads.filter(|one| one.load > Load(0)).collect()
    }
}

impl Session {
    pub(crate) fn new(info: SessionInfo, adopted: u64) -> Rc<Self> {
        Rc::new(Self {
            number: info.number,
            sample: StageSample::new(info.number.0),
            info: RefCell::new(info),
            counters: Counters::default(),
            part: Part::default(),
            orders: RefCell::default(),
            driver: RefCell::default(),
            waiting: RefCell::default(),
            adopted: Cell::new(adopted),
            ended: Cell::new(false),
            proven: RefCell::default(),
            shut_out: Cell::new(false),
        })
    }

    /// The initiator has proven that it is this host.
    pub(crate) fn has_proven(&self, host: Option<Arc<Host>>) {
        *self.proven.borrow_mut() = host;
    }

    /// It is granted nothing.
    pub(crate) fn is_shut_out(&self) {
        self.shut_out.set(true);
    }

    /// Whether it may see what `host` is granted: one that was shut out meanwhile only where the
    /// host asks for no other proof than the one that the initiator gave. A host that was deleted
    /// and made again may be somebody else.
    pub(crate) fn may_be(&self, host: &Host) -> bool {
        let Some(asked) = host.chap.as_ref().filter(|_| self.shut_out.get()) else {
            return true;
        };
        let proven = self.proven.borrow();
        let given = proven.as_ref().and_then(|host| host.chap.as_ref());
        given.is_some_and(|given| given.user == asked.user && given.secret == asked.secret)
    }

    pub(crate) fn enter(self: &Rc<Self>, core: &CoreHandle) {
        core.locals()
            .get::<Sessions>()
            .all
            .borrow_mut()
            .insert(self.number, Rc::clone(self));
    }

    /// The session is over: nothing of it runs any more.
    pub(crate) fn has_ended(&self, core: &CoreHandle) {
        let sessions = core.locals().get::<Sessions>();
        sessions.all.borrow_mut().remove(&self.number);
        if let Some(stages) = self.stages() {
            let mut ended = sessions.sampled.borrow_mut();
            ended.push_back(stages);
            if ended.len() > SAMPLED_MAX {
                ended.pop_front();
            }
        }
        self.ended.set(true);
        self.wake_waiting();
    }

    /// The session goes on elsewhere: this core forgets it.
    pub(crate) fn depart(&self, core: &CoreHandle) -> Moved {
        let sessions = core.locals().get::<Sessions>();
        sessions.all.borrow_mut().remove(&self.number);
        Moved {
            info: self.snapshot(),
            sampled: self.sample.take(),
            adopted: self.adopted.get(),
            proven: self.proven.borrow().clone(),
            shut_out: self.shut_out.get(),
        }
    }

    /// One that comes from another core.
    pub(crate) fn arrive(core: &CoreHandle, moved: Moved) -> Rc<Self> {
        let mut info = moved.info;
        info.core = core.id();
        let session = Self::new(info, moved.adopted);
        session.has_proven(moved.proven);
        session.shut_out.set(moved.shut_out);
        if let Some(sampled) = moved.sampled {
            session.sample.put(sampled);
        }
        let (counters, info) = (&session.counters, session.info.borrow());
        counters.commands.set(info.commands);
        counters.bytes_read.set(info.bytes_read);
        counters.bytes_written.set(info.bytes_written);
        counters.received.set(info.received);
        counters.reads.borrow_mut().clone_from(&info.reads);
        counters.writes.borrow_mut().clone_from(&info.writes);
        session.part.go_on(info.load);
        session.new_work();
        drop(info);
        session.enter(core);
        session
    }

    /// Nobody has asked for anything that is not done.
    pub(crate) fn has_no_orders(&self) -> bool {
        self.orders.borrow().is_empty()
    }

    pub(crate) fn has_adopted(&self, generation: u64) {
        self.adopted.set(self.adopted.get().max(generation));
        self.wake_waiting();
    }

    fn wake_waiting(&self) {
        for waker in std::mem::take(&mut *self.waiting.borrow_mut()) {
            waker.wake();
        }
    }

    fn order(&self, order: Order) {
        self.orders.borrow_mut().push_back(order);
        if let Some(driver) = self.driver.borrow_mut().take() {
            driver.wake();
        }
    }

    pub(crate) fn poll_order(&self, cx: &Context<'_>) -> Option<Order> {
        let next = self.orders.borrow_mut().pop_front();
        if next.is_none() {
            *self.driver.borrow_mut() = Some(cx.waker().clone());
        }
        next
    }

    async fn until(&self, done: impl Fn(&Self) -> bool) {
        poll_fn(|cx| {
            if self.ended.get() || done(self) {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// What its sample has counted since this was asked last; nothing where nothing was.
    fn stages(&self) -> Option<SessionStages> {
        let stages = self.sample.take()?;
        let info = self.info.borrow();
        Some(SessionStages {
            host: info.host.clone(),
            initiator: info.initiator.clone(),
            target: info.target.clone(),
            stages,
        })
    }

    fn new_work(&self) -> u64 {
        let counters = &self.counters;
        let bytes = counters.bytes_read.get() + counters.bytes_written.get();
        self.part.since(work_of(counters.commands.get(), bytes))
    }

    fn snapshot(&self) -> SessionInfo {
        let mut info = self.info.borrow().clone();
        info.commands = self.counters.commands.get();
        info.bytes_read = self.counters.bytes_read.get();
        info.bytes_written = self.counters.bytes_written.get();
        info.received = self.counters.received.get();
        info.in_progress = self.counters.in_progress.get();
        info.bytes_in_flight = self.counters.bytes_in_flight.get();
        info.load = self.part.load();
        info.reads.clone_from(&self.counters.reads.borrow());
        info.writes.clone_from(&self.counters.writes.borrow());
        info
    }
}

fn all(core: &CoreHandle) -> Vec<Rc<Session>> {
    core.locals()
        .get::<Sessions>()
        .all
        .borrow()
        .values()
        .cloned()
        .collect()
}

/// Asks a session of this core to go to another one; `false` where there is none of this number.
pub(crate) fn ask_to_move(core: &CoreHandle, number: SessionNumber, to: CoreId) -> bool {
    let sessions = core.locals().get::<Sessions>();
    let session = sessions.all.borrow().get(&number).cloned();
    if let Some(session) = &session {
        session.order(Order::Move { to });
    }
    session.is_some()
}

/// Every session of this core.
pub(crate) fn list(core: &CoreHandle) -> LocalFuture<Vec<SessionInfo>> {
    let infos = all(core).iter().map(|session| session.snapshot()).collect();
    Box::pin(async move { infos })
}

/// What the samples of this core's sessions have counted since this was asked last.
pub(crate) fn stages(core: &CoreHandle) -> LocalFuture<Vec<SessionStages>> {
    let sessions = core.locals().get::<Sessions>();
    let mut stages: Vec<SessionStages> = sessions.sampled.borrow_mut().drain(..).collect();
    let all = sessions.all.borrow();
    stages.extend(all.values().filter_map(|session| session.stages()));
    Box::pin(async move { stages })
}

/// Ends a session of this core and waits until it is over; `false` where there is none of this
/// number.
pub(crate) fn end(
    core: &CoreHandle,
    number: SessionNumber,
    reason: EndReason,
) -> LocalFuture<bool> {
    let sessions = core.locals().get::<Sessions>();
    let session = sessions.all.borrow().get(&number).cloned();
    let entering = sessions.entering.borrow().get(&number).cloned();
    if let Some(entering) = &entering {
        // Now, not when this is polled: by then it may have become a session.
        entering.overtaken.set(true);
    }
    Box::pin(async move {
        if let Some(entering) = entering {
            poll_fn(|cx| {
                if entering.over.get() {
                    return Poll::Ready(());
                }
                entering.waiting.borrow_mut().push(cx.waker().clone());
                Poll::Pending
            })
            .await;
            return true;
        }
        let Some(session) = session else { return false };
        session.order(Order::End(reason));
        session.until(|_| false).await;
        true
    })
}

/// Asks every initiator of this core to log out, and ends what is left after `grace`.
pub(crate) fn end_all(core: &CoreHandle, grace: Duration) -> LocalFuture<()> {
    let sessions = all(core);
    let core = Rc::clone(core);
    Box::pin(async move {
        for session in &sessions {
            session.order(Order::RequestLogout { within: grace });
        }
        let mut timer = core.sleep_until(core.now().after(grace));
        for session in &sessions {
            let mut over = std::pin::pin!(session.until(|_| false));
            poll_fn(|cx| match over.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => timer.as_mut().poll(cx),
            })
            .await;
            if !session.ended.get() {
                break;
            }
        }
        for session in &sessions {
            session.order(Order::End(EndReason::Stopping));
        }
        for session in &sessions {
            session.until(|_| false).await;
        }
    })
}

/// Gives every session of this core a new export and waits until they work with it.
pub(crate) fn adopt_export(core: &CoreHandle, export: Arc<Export>) -> LocalFuture<()> {
    let sessions = all(core);
    Box::pin(async move {
        for session in &sessions {
            session.order(Order::Adopt(Arc::clone(&export)));
        }
        for session in &sessions {
            session
                .until(|session| session.adopted.get() >= export.generation)
                .await;
        }
    })
}
