//! One simulated core.

use super::executor::{Channel, Life};
use super::fault::Fault;
use super::file::SimFiles;
use super::inner::Inner;
use super::net::SimNet;
use super::sleep::Sleep;
use crate::{Core, CoreId, Files, Job, LocalFuture, Locals, Net};
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;
use units::{Now, Pool, WallClock};

pub(super) struct SimCore {
    pub(super) inner: Rc<Inner>,
    pub(super) life: Life,
    pub(super) id: u16,
    pub(super) pool: Pool,
    pub(super) locals: Locals,
}

impl Core for SimCore {
    fn id(&self) -> CoreId {
        CoreId(self.id)
    }

    fn core_count(&self) -> u16 {
        self.inner.config.cores
    }

    fn now(&self) -> Now {
        Now(self.inner.shown_at(self.life.node))
    }

    fn wall_clock(&self) -> WallClock {
        self.inner.wall_clock()
    }

    fn busy(&self) -> Duration {
        self.inner.busy(self.life, self.id)
    }

    fn pause(&self, cx: &mut Context<'_>) {
        cx.waker().wake_by_ref();
    }

    fn sleep_until(&self, at: Now) -> LocalFuture<()> {
        Box::pin(Sleep::of(&self.inner, self.life.node, at.0))
    }

    fn spawn(&self, task: LocalFuture<()>) {
        if self.inner.is_alive(self.life) {
            self.inner.executor.spawn(self.life, self.id, task);
        }
    }

    fn post(&self, to: CoreId, job: Job) {
        assert!(to.0 < self.core_count(), "there is no core {}", to.0);
        if self.inner.is_alive(self.life) {
            let (life, from, to) = (self.life, self.id, to.0);
            self.inner.executor.post(Channel { life, from, to }, job);
        }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        self.inner.rng.borrow_mut().fill(bytes);
    }

    fn pool(&self) -> &Pool {
        &self.pool
    }

    fn locals(&self) -> &Locals {
        &self.locals
    }

    fn net(&self) -> Rc<dyn Net> {
        Rc::new(SimNet::new(&self.inner, self.life))
    }

    fn files(&self) -> Rc<dyn Files> {
        Rc::new(SimFiles::new(&self.inner, self.life))
    }

    fn perhaps(&self, _name: &'static str) -> bool {
        self.inner.happens(Fault::Perhaps)
    }
}
