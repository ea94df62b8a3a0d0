//! For tests: a target behind wires that are cut, go silent, and come back. It executes what
//! lost sessions sent for up to 40 s, unless it fences them.

use super::wait::Promise;
use super::{Config, ConnectError, Ended, Multipath, PathSpec, Port, Segments, Session};
use env::{Answer, CoreHandle, LocalFuture};
use paths::health::{AccessState, Wanted};
use paths::policy::{Settings, Use};
use paths::stale::Nexus;
use paths::verdict;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;
use units::Now;
use volume::{Io, IoError, Lane, Shape};
use volume_test::draw::Draw;

/// What a wire does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wire {
    Good,
    /// Everything disappears, in both directions, and nobody is answered.
    Silent,
    /// Connections are reset and refused.
    Cut,
}

pub(super) struct Target {
    pub(super) core: CoreHandle,
    pub(super) lane: Rc<dyn Lane>,
    pub(super) wires: RefCell<Vec<Wire>>,
    pub(super) sessions: RefCell<BTreeMap<Nexus, Rc<TestSession>>>,
    pub(super) fenced: RefCell<BTreeSet<Nexus>>,
    pub(super) draw: RefCell<Draw>,
    /// Writes on this path wait so long in the target, once each.
    pub(super) pause: RefCell<Vec<(u32, Duration)>>,
    /// Answers to give instead of carrying an operation out.
    pub(super) answers: RefCell<Vec<(u8, u8, u8)>>,
    pub(super) ghosts: Cell<u32>,
    pub(super) stable: bool,
    /// Bytes per second of each wire, where that matters, and until when it is busy.
    pub(super) rates: RefCell<Vec<(u64, Now)>>,
    /// What each path's port says of itself, where it is not active; and it does not serve then.
    pub(super) access: RefCell<BTreeMap<u32, AccessState>>,
    /// How often a port was asked for that.
    pub(super) questions: Cell<u32>,
    /// TCP segments of each path, where a test counts them.
    pub(super) segments: RefCell<Vec<Segments>>,
}

/// The host's end of a session.
pub(super) struct TestSession {
    pub(super) target: Rc<Target>,
    pub(super) nexus: Nexus,
    pub(super) received: Cell<Now>,
    pub(super) over: Cell<bool>,
    pub(super) waiting: RefCell<Vec<Promise<Ended>>>,
    pub(super) watchers: RefCell<Vec<Promise<()>>>,
}

pub(super) struct TestPort {
    pub(super) target: Rc<Target>,
}

impl Target {
    pub(super) fn wire(&self, path: u32) -> Wire {
        self.wires.borrow()[path as usize]
    }

    pub(super) fn set(&self, path: u32, wire: Wire) {
        self.wires.borrow_mut()[path as usize] = wire;
        if wire == Wire::Cut {
            let all: Vec<Rc<TestSession>> = self.sessions.borrow().values().cloned().collect();
            all.into_iter()
                .filter(|session| session.nexus.path == path)
                .for_each(|session| session.end());
        }
    }

    /// Nothing of `nexus` is executed from now on: that is checked in the poll that carries
    /// out.
    pub(super) fn fence(&self, nexus: Nexus) {
        self.fenced.borrow_mut().insert(nexus);
    }

    fn access_of(&self, path: u32) -> AccessState {
        let access = self.access.borrow().get(&path).copied();
        access.unwrap_or(AccessState::ActiveOptimized)
    }

    /// How long a fence takes.
    pub(super) fn slowness(&self) -> Duration {
        let longest = if self.stable { 1 } else { 500 };
        Duration::from_millis(1 + self.draw.borrow_mut().below(longest))
    }

    /// When the target gets to an operation.
    pub(super) fn delay(&self, nexus: Nexus, writes: bool, bytes: u64) -> Duration {
        if let Some((rate, busy)) = self.rates.borrow_mut().get_mut(nexus.path as usize) {
            let now = self.core.now();
            *busy = now
                .max(*busy)
                .after(Duration::from_nanos(bytes * 1_000_000_000 / *rate));
            return busy.since(now) + Duration::from_micros(100);
        }
        let mut pause = self.pause.borrow_mut();
        if let (true, Some(at)) = (
            writes,
            pause.iter().position(|(path, _)| *path == nexus.path),
        ) {
            return pause.remove(at).1;
        }
        let mut draw = self.draw.borrow_mut();
        if !self.stable && draw.once_in(40) {
            return Duration::from_millis(draw.below(40_000));
        }
        let longest = if self.stable { 2_000 } else { 200_000 };
        Duration::from_micros(50 + draw.below(longest))
    }
}

impl TestSession {
    fn end(&self) {
        if self.over.replace(true) {
            return;
        }
        for promise in self.waiting.borrow_mut().drain(..) {
            promise.keep(Ended::Lost { sent: true });
        }
        for promise in self.watchers.borrow_mut().drain(..) {
            promise.keep(());
        }
    }

    /// The target's part of one operation.
    async fn serve(self: Rc<Self>, io: Io, promise: Promise<Ended>) {
        let target = Rc::clone(&self.target);
        let bytes = io.op().range().map_or(0, |range| range.len().0 * 512);
        let delay = target.delay(self.nexus, io.op().mutates(), bytes);
        target
            .core
            .sleep_until(target.core.now().after(delay))
            .await;
        if target.fenced.borrow().contains(&self.nexus) {
            return;
        }
        let serves = target.access_of(self.nexus.path) == AccessState::ActiveOptimized;
        // NOT READY, TARGET PORT IN UNAVAILABLE STATE.
        let elsewhere = (!serves).then_some((0x02, 0x04, 0x0c));
        let refused = elsewhere.or_else(|| target.answers.borrow_mut().pop());
        let ended = match refused {
            Some((key, asc, ascq)) => {
                let code = scsi_code(asc, ascq);
                let sense = scsi_sense(key, code);
                let error = match key {
                    0x07 => IoError::WriteProtected,
                    _ => IoError::Unavailable,
                };
                Ended::Again(verdict::of(0x02, Some(&sense)).0, error)
            }
            None => {
                let mutates = io.op().mutates();
                let result = target.lane.submit(io).await;
                let unheard = self.over.get() || target.wire(self.nexus.path) != Wire::Good;
                target
                    .ghosts
                    .set(target.ghosts.get() + u32::from(unheard && mutates));
                Ended::Done(result)
            }
        };
        if target.wire(self.nexus.path) == Wire::Good && !self.over.get() {
            self.received.set(target.core.now());
            promise.keep(ended);
        }
    }
}

pub(super) fn scsi_code(asc: u8, ascq: u8) -> verdict::AdditionalSense {
    verdict::AdditionalSense { asc, ascq }
}

pub(super) fn scsi_sense(key: u8, code: verdict::AdditionalSense) -> verdict::Sense {
    verdict::Sense::new(verdict::SenseKey::from_nibble(key), code)
}

pub(super) struct SessionHandle(Rc<TestSession>);

impl Session for SessionHandle {
    fn submit(&self, io: Io) -> Answer<Ended> {
        let session = &self.0;
        if session.over.get() {
            return Answer::ready(Ended::Lost { sent: false });
        }
        let promise = Promise::new();
        session.waiting.borrow_mut().push(promise.clone());
        // What goes into a silent wire may still have arrived: it was on its way already.
        let arrives = session.target.wire(session.nexus.path) == Wire::Good
            || session.target.draw.borrow_mut().once_in(2);
        if arrives {
            session
                .target
                .core
                .spawn(Box::pin(Rc::clone(session).serve(io, promise.clone())));
        }
        Answer::wait(promise.kept())
    }

    fn ping(&self) -> LocalFuture<bool> {
        let session = Rc::clone(&self.0);
        Box::pin(async move {
            let core = Rc::clone(&session.target.core);
            core.sleep_until(core.now().after(Duration::from_micros(200)))
                .await;
            if session.over.get() || session.target.wire(session.nexus.path) != Wire::Good {
                return false;
            }
            session.received.set(core.now());
            true
        })
    }

    fn fence(&self, nexus: Nexus) -> LocalFuture<bool> {
        let session = Rc::clone(&self.0);
        Box::pin(async move {
            let core = Rc::clone(&session.target.core);
            core.sleep_until(core.now().after(session.target.slowness()))
                .await;
            let received =
                !session.over.get() && session.target.wire(session.nexus.path) == Wire::Good;
            if received {
                session.target.fence(nexus);
            }
            received
        })
    }

    fn access(&self) -> LocalFuture<Option<AccessState>> {
        let session = Rc::clone(&self.0);
        let target = &session.target;
        target.questions.set(target.questions.get() + 1);
        Box::pin(async move {
            let access = session.target.access_of(session.nexus.path);
            (!session.over.get()).then_some(access)
        })
    }

    fn received_at(&self) -> Now {
        self.0.received.get()
    }

    fn segments(&self) -> Option<Segments> {
        let all = self.0.target.segments.borrow();
        all.get(self.0.nexus.path as usize).copied()
    }

    fn ended(&self) -> LocalFuture<()> {
        let promise = Promise::new();
        if self.0.over.get() {
            promise.keep(());
        } else {
            self.0.watchers.borrow_mut().push(promise.clone());
        }
        Box::pin(promise.kept())
    }

    fn close(&self) {
        self.0.end();
    }
}

impl Port for TestPort {
    fn connect(&self, nexus: Nexus) -> LocalFuture<Result<Rc<dyn Session>, ConnectError>> {
        let target = Rc::clone(&self.target);
        Box::pin(async move {
            target
                .core
                .sleep_until(target.core.now().after(Duration::from_millis(2)))
                .await;
            match target.wire(nexus.path) {
                Wire::Silent => std::future::pending().await,
                Wire::Cut => return Err(ConnectError::Silent("refused".to_owned())),
                Wire::Good => {}
            }
            // The login reinstates: older sessions of this path are over before it is answered.
            for session in 0..nexus.session {
                target.fence(Nexus { session, ..nexus });
            }
            let session = Rc::new(TestSession {
                nexus,
                received: Cell::new(target.core.now()),
                over: Cell::new(false),
                waiting: RefCell::default(),
                watchers: RefCell::default(),
                target: Rc::clone(&target),
            });
            target
                .sessions
                .borrow_mut()
                .insert(nexus, Rc::clone(&session));
            let session: Rc<dyn Session> = Rc::new(SessionHandle(session));
            Ok(session)
        })
    }
}

pub(super) const LINE: u64 = 125_000_000;

pub(super) fn target(
    core: &CoreHandle,
    lane: Rc<dyn Lane>,
    paths: usize,
    seed: u64,
    stable: bool,
) -> Rc<Target> {
    Rc::new(Target {
        core: Rc::clone(core),
        lane,
        wires: RefCell::new(vec![Wire::Good; paths]),
        sessions: RefCell::default(),
        fenced: RefCell::default(),
        draw: RefCell::new(Draw::new(seed)),
        pause: RefCell::default(),
        answers: RefCell::default(),
        ghosts: Cell::new(0),
        stable,
        rates: RefCell::default(),
        access: RefCell::default(),
        questions: Cell::new(0),
        segments: RefCell::default(),
    })
}

pub(super) fn multipath(
    core: &CoreHandle,
    shape: Shape,
    config: Config,
    target: &Rc<Target>,
) -> Multipath {
    let paths = 0..u16::try_from(target.wires.borrow().len()).unwrap();
    let specs = paths.map(|port| PathSpec {
        port: Rc::new(TestPort {
            target: Rc::clone(target),
        }),
        settings: Settings {
            usage: Use::No,
            rank: 0,
            share: 1,
            throughput: 1,
            host_port: port,
            target_port: port,
            speed: LINE,
            host_speed: LINE,
            target_speed: LINE,
            window: 32,
        },
        wanted: Wanted::Active,
    });
    Multipath::new(core, shape, config, specs.collect())
}
