//! Tasks, timers and jobs between cores, in one thread and in the seed's order.

use crate::{CoreHandle, Job, LocalFuture};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// Which life of which node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Life {
    pub(super) node: u16,
    pub(super) incarnation: u64,
}

/// The jobs that one core posted to one other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Channel {
    pub(super) life: Life,
    pub(super) from: u16,
    pub(super) to: u16,
}

/// Something that the seed may pick next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Runnable {
    Task(u64),
    Job(Channel),
}

type ReadyQueue = Arc<Mutex<Vec<Runnable>>>;

struct TaskWaker {
    task: u64,
    queued: AtomicBool,
    ready: ReadyQueue,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            push(&self.ready, Runnable::Task(self.task));
        }
    }
}

fn push(ready: &ReadyQueue, what: Runnable) {
    ready
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(what);
}

struct Task {
    life: Life,
    core: u16,
    /// Absent while it is being polled.
    future: Option<LocalFuture<()>>,
    waker: Arc<TaskWaker>,
}

/// Something that a world of type `W` itself does.
pub(super) type Event<W> = Box<dyn FnOnce(&Rc<W>)>;

/// What happens at a moment.
pub(super) enum Due<W> {
    Wake(Waker),
    Event(Event<W>),
}

/// The place of a timer: its moment and a number.
pub(super) type TimerKey = (u64, u64);

pub(super) struct Executor<W> {
    ready: ReadyQueue,
    tasks: RefCell<BTreeMap<u64, Task>>,
    timers: RefCell<BTreeMap<TimerKey, Due<W>>>,
    channels: RefCell<BTreeMap<Channel, VecDeque<Job>>>,
    next_number: Cell<u64>,
}

impl<W> Default for Executor<W> {
    fn default() -> Self {
        Self {
            ready: ReadyQueue::default(),
            tasks: RefCell::default(),
            timers: RefCell::default(),
            channels: RefCell::default(),
            next_number: Cell::default(),
        }
    }
}

impl<W> Executor<W> {
    fn number(&self) -> u64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        number
    }

    pub(super) fn spawn(&self, life: Life, core: u16, future: LocalFuture<()>) {
        let task = self.number();
        let waker = Arc::new(TaskWaker {
            task,
            queued: AtomicBool::new(false),
            ready: Arc::clone(&self.ready),
        });
        waker.wake_by_ref();
        let future = Some(future);
        self.tasks.borrow_mut().insert(
            task,
            Task {
                life,
                core,
                future,
                waker,
            },
        );
    }

    pub(super) fn post(&self, channel: Channel, job: Job) {
        self.channels
            .borrow_mut()
            .entry(channel)
            .or_default()
            .push_back(job);
        push(&self.ready, Runnable::Job(channel));
    }

    pub(super) fn timer(&self, at: u64, due: Due<W>) -> TimerKey {
        let key = (at, self.number());
        self.timers.borrow_mut().insert(key, due);
        key
    }

    pub(super) fn cancel(&self, key: TimerKey) {
        let due = self.timers.borrow_mut().remove(&key);
        drop(due);
    }

    /// The moment of the next timer.
    pub(super) fn next_timer(&self) -> Option<u64> {
        self.timers.borrow().keys().next().map(|key| key.0)
    }

    /// Takes the next timer that is due at `now`.
    pub(super) fn take_due(&self, now: u64) -> Option<(TimerKey, Due<W>)> {
        let mut timers = self.timers.borrow_mut();
        let first = timers.first_entry()?;
        (first.key().0 <= now).then(|| first.remove_entry())
    }

    /// Takes the runnable that `pick` chooses among their number.
    pub(super) fn take_ready(&self, pick: impl FnOnce(usize) -> usize) -> Option<Runnable> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.is_empty() {
            return None;
        }
        let chosen = pick(ready.len());
        Some(ready.swap_remove(chosen))
    }

    /// Puts back what was taken.
    pub(super) fn put_ready(&self, runnable: Runnable) {
        push(&self.ready, runnable);
    }

    /// The core on which it would run; `None` where it is gone.
    pub(super) fn place_of(&self, runnable: Runnable) -> Option<(Life, u16)> {
        match runnable {
            Runnable::Task(task) => {
                let tasks = self.tasks.borrow();
                tasks.get(&task).map(|entry| (entry.life, entry.core))
            }
            Runnable::Job(channel) => Some((channel.life, channel.to)),
        }
    }

    /// Polls a task once; answers where it ran and whether it ended, or `None` where it is gone.
    pub(super) fn poll(&self, task: u64) -> Option<(Life, u16, bool)> {
        let (mut future, waker, life, core) = {
            let mut tasks = self.tasks.borrow_mut();
            let entry = tasks.get_mut(&task)?;
            entry.waker.queued.store(false, Ordering::Release);
            let waker = Waker::from(Arc::clone(&entry.waker));
            (entry.future.take()?, waker, entry.life, entry.core)
        };
        let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
        let ended = poll.is_ready();
        let mut tasks = self.tasks.borrow_mut();
        // Where the task was killed during its own poll, its entry is gone and the future goes too.
        if ended {
            tasks.remove(&task);
        } else if let Some(entry) = tasks.get_mut(&task) {
            entry.future = Some(future);
            return Some((life, core, false));
        }
        drop(tasks);
        drop(future);
        Some((life, core, ended))
    }

    /// Takes the oldest job of a channel.
    pub(super) fn take_job(&self, channel: Channel) -> Option<Job> {
        self.channels.borrow_mut().get_mut(&channel)?.pop_front()
    }

    /// Drops all tasks and jobs of the lives that `which` selects.
    pub(super) fn kill(&self, which: impl Fn(Life) -> bool) {
        let dead: Vec<Task> = {
            let mut tasks = self.tasks.borrow_mut();
            let numbers: Vec<u64> = tasks
                .iter()
                .filter(|(_, task)| which(task.life))
                .map(|(number, _)| *number)
                .collect();
            numbers
                .iter()
                .filter_map(|number| tasks.remove(number))
                .collect()
        };
        let jobs: Vec<VecDeque<Job>> = {
            let mut channels = self.channels.borrow_mut();
            let of: Vec<Channel> = channels.keys().copied().collect();
            of.iter()
                .filter(|channel| which(channel.life))
                .filter_map(|channel| channels.remove(channel))
                .collect()
        };
        // Dropped here, with nothing borrowed: destructors come back to timers, streams and files.
        drop(dead);
        drop(jobs);
    }

    /// Forgets all tasks without running destructors: the thread is unwinding already.
    pub(super) fn leak(&self) {
        if let Ok(mut tasks) = self.tasks.try_borrow_mut() {
            std::mem::forget(std::mem::take(&mut *tasks));
        }
    }

    /// Drops all timers.
    pub(super) fn clear_timers(&self) {
        let timers = std::mem::take(&mut *self.timers.borrow_mut());
        drop(timers);
    }

    pub(super) fn task_count(&self) -> usize {
        self.tasks.borrow().len()
    }
}

/// Runs a job on the core that it was posted to.
pub(super) fn run_job(job: Job, on: &CoreHandle) {
    job(on);
}
