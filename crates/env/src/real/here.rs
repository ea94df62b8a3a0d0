//! One core of the real runtime.

use super::clock::{STEADY, clock};
use super::files::RealFiles;
use super::network::RealNet;
use super::notices::{Notices, describe_panic};
use super::spin::Activity;
use crate::core::{Core, CoreHandle, CoreId, Job};
use crate::{Files, LocalFuture, Locals, Net};
use rustix::rand::GetRandomFlags;
use rustix::time::ClockId;
use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use units::{Now, Pool, WallClock};

/// What is sent to a core.
pub(super) enum Message {
    Job(Job),
    Stop,
}

pub(super) struct RealCore {
    pub(super) id: CoreId,
    pub(super) posts: Arc<[UnboundedSender<Message>]>,
    pub(super) pool: Pool,
    pub(super) net: Rc<RealNet>,
    pub(super) files: Rc<RealFiles>,
    pub(super) notices: Arc<Notices>,
    pub(super) locals: Locals,
    /// What the clock said last.
    recent: Cell<Now>,
}

impl RealCore {
    pub(super) fn new(
        id: CoreId,
        posts: Arc<[UnboundedSender<Message>]>,
        pool: Pool,
        files: RealFiles,
        notices: Arc<Notices>,
        activity: Option<Rc<Activity>>,
    ) -> Self {
        Self {
            id,
            posts,
            pool,
            net: Rc::new(RealNet { activity }),
            files: Rc::new(files),
            notices,
            locals: Locals::default(),
            recent: Cell::new(Now(clock(STEADY))),
        }
    }

    /// Runs a job; a panic in it is noted and goes no further.
    pub(super) fn run(core: &CoreHandle, notices: &Notices, job: Job) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(core))) {
            let CoreId(id) = core.id();
            notices.push(format!(
                "a job on core {id} panicked: {}",
                describe_panic(&panic)
            ));
        }
    }
}

impl Core for RealCore {
    fn id(&self) -> CoreId {
        self.id
    }

    fn core_count(&self) -> u16 {
        u16::try_from(self.posts.len()).expect("bounded where the runtime starts")
    }

    fn now(&self) -> Now {
        let now = Now(clock(STEADY));
        self.recent.set(now);
        now
    }

    fn recent(&self) -> Now {
        self.recent.get()
    }

    fn wall_clock(&self) -> WallClock {
        WallClock(clock(ClockId::Realtime))
    }

    fn clock_is_steered(&self) -> Option<bool> {
        super::clock::is_steered()
    }

    fn busy(&self) -> Duration {
        let spun = self.net.activity.as_ref().map_or(0, |it| it.spun());
        Duration::from_nanos(clock(ClockId::ThreadCPUTime).saturating_sub(spun))
    }

    fn pause(&self, cx: &mut Context<'_>) {
        // The runtime keeps the waker until the event loop has looked for more.
        let next = pin!(tokio::task::yield_now());
        if next.poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }

    fn sleep_until(&self, at: Now) -> LocalFuture<()> {
        Box::pin(tokio::time::sleep(at.since(self.now())))
    }

    fn spawn(&self, mut task: LocalFuture<()>) {
        let (notices, CoreId(id)) = (Arc::clone(&self.notices), self.id);
        tokio::task::spawn_local(poll_fn(move |cx| {
            match catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))) {
                Ok(poll) => poll,
                Err(panic) => {
                    let why = describe_panic(&panic);
                    notices.push(format!(
                        "a task on core {id} panicked, so that what it served has ended; the rest goes on: {why}"
                    ));
                    Poll::Ready(())
                }
            }
        }));
    }

    fn post(&self, to: CoreId, job: Job) {
        let queue = self
            .posts
            .get(usize::from(to.0))
            .expect("core numbers are below core_count");
        // A core that has stopped takes no jobs: the contract says that they are dropped.
        let _stopped = queue.send(Message::Job(job));
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match rustix::rand::getrandom(&mut *rest, GetRandomFlags::empty()) {
                Ok(filled) => rest = &mut rest[filled..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => panic!("the system gives no random bytes: {error}"),
            }
        }
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn locals(&self) -> &Locals {
        &self.locals
    }

    fn net(&self) -> Rc<dyn Net> {
        Rc::clone(&self.net) as Rc<dyn Net>
    }

    fn files(&self) -> Rc<dyn Files> {
        Rc::clone(&self.files) as Rc<dyn Files>
    }
}
