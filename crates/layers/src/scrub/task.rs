//! The task that does what the machine says.

use super::machine::{Machine, ScrubProgress, ScrubReport};
use super::map::ScrubbedMap;
use env::{CoreHandle, LocalFuture};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange, Now};
use volume::{Class, Io, IoError, Lane, Op, Origin};

/// Time between two checks of what hosts do.
const SAMPLE_EVERY: Duration = Duration::from_millis(250);

/// Time between two times that the progress is kept.
const KEEP_EVERY: Duration = Duration::from_secs(10);

/// How a scrub ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Everything was read.
    Finished,
    /// Somebody stopped it.
    Stopped,
    /// It could not go on, and why.
    GivenUp(&'static str),
}

/// Counts the operations of hosts so far.
pub type Count = Box<dyn Fn() -> LocalFuture<u64>>;

/// Keeps position and report where a restart finds them.
pub type Keep = Box<dyn Fn(ScrubProgress, ScrubReport) -> LocalFuture<()>>;

/// A scrub.
pub struct Job {
    /// What is read.
    pub lane: Rc<dyn Lane>,
    /// The same, where it has checksums, to check their map.
    pub map: Option<Rc<dyn ScrubbedMap>>,
    /// Blocks that may be read at once.
    pub most: BlockCount,
    /// What hosts have done.
    pub count: Count,
    /// Where progress is kept.
    pub keep: Keep,
    machine: RefCell<Machine>,
    stopped: Cell<bool>,
    /// Up to here the map was checked.
    map_seen: Cell<Lba>,
}

impl Job {
    /// A scrub that has not begun.
    #[must_use]
    pub fn new(
        machine: Machine,
        (lane, most): (Rc<dyn Lane>, BlockCount),
        map: Option<Rc<dyn ScrubbedMap>>,
        count: Count,
        keep: Keep,
    ) -> Rc<Self> {
        Rc::new(Self {
            lane,
            map,
            most,
            count,
            keep,
            machine: RefCell::new(machine),
            stopped: Cell::new(false),
            map_seen: Cell::new(Lba(0)),
        })
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> ScrubProgress {
        self.machine.borrow().progress()
    }

    /// What it has found.
    #[must_use]
    pub fn report(&self) -> ScrubReport {
        self.machine.borrow().report().clone()
    }

    /// Ends it soon: [`Job::run`] keeps what it has done first.
    pub fn stop(&self) {
        self.stopped.set(true);
    }

    /// Scrubs to the end, or until it is stopped.
    pub async fn run(self: Rc<Self>, core: CoreHandle) -> End {
        let mut sampled = Now(0);
        let mut kept = core.now();
        if let Some(map) = &self.map {
            let damaged = map.check_above().await;
            self.machine.borrow_mut().map_damaged(damaged);
        }
        let end = loop {
            if self.stopped.get() {
                break End::Stopped;
            }
            if core.now().since(sampled) >= SAMPLE_EVERY {
                let operations = (self.count)().await;
                sampled = core.now();
                self.machine.borrow_mut().sample(sampled, operations);
            }
            let next = self.machine.borrow().next(self.most);
            let Some(range) = next else {
                break End::Finished;
            };
            let began = core.now();
            let outcome = self.inspect(range).await;
            let took = core.now().since(began);
            let rest = self.machine.borrow_mut().answered(range, outcome, took);
            match rest {
                Err(why) => break End::GivenUp(why),
                Ok(rest) if rest.is_zero() => {}
                Ok(rest) => core.sleep_until(core.now().after(rest)).await,
            }
            if core.now().since(kept) >= KEEP_EVERY {
                kept = core.now();
                self.keep_checksums(false).await;
                (self.keep)(self.progress(), self.report()).await;
            }
        };
        self.keep_checksums(end == End::Finished).await;
        (self.keep)(self.progress(), self.report()).await;
        end
    }

    /// What had no checksum has one now; `counted`: and it is tested whether anything is left that
    /// has none.
    async fn keep_checksums(&self, counted: bool) {
        let Some(map) = &self.map else { return };
        // A map that cannot be written says so by itself.
        let _ = map.keep().await;
        if counted {
            let _ = map.count_uncovered().await;
        }
    }

    async fn inspect(&self, range: LbaRange) -> Result<(), IoError> {
        let origin = Origin {
            class: Class::Scrub,
            ..Origin::default()
        };
        // Each page of the map is checked once, with the first blocks that it covers, and before
        // them: where it is damaged they cannot be read, and are asked for again one by one.
        if let Some(map) = &self.map
            && range.start() >= self.map_seen.get()
            && map.begins_a_page(range)
        {
            self.map_seen.set(range.end());
            let damaged = map.check_pages(range).await?;
            self.machine.borrow_mut().map_damaged(damaged);
        }
        let read = Op::Read { range, into: None };
        self.lane.submit(Io::new(read, origin)).await?;
        Ok(())
    }
}
