//! The events of a node: emitted, kept, and sent to subscribers.

use crate::event::{Event, Happened};
use crate::log::{self, Wanted};
use crate::ring::Ring;
use crate::schema::SCHEMA;
use database::{Database, Failed, Health, Settings};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use units::WallClock;

/// The last events that stay in memory, for subscribers that come back.
const RING: usize = 1_024;

/// The most events that a subscriber gets at once.
const BATCH_MAX: usize = 256;

type Clock = Arc<dyn Fn() -> WallClock + Send + Sync>;

/// The events of a node, and its audit log. Clones share them.
#[derive(Clone)]
pub struct Events(Arc<Inner>);

struct Inner {
    pub(crate) database: Database,
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
    clock: Clock,
}

/// What a subscriber gets.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Events before these that it did not get; at least so many, where they are gone for good.
    pub missed: u64,
    /// In their order; at least one.
    pub events: Vec<Arc<Event>>,
}

impl Events {
    /// Opens the file and waits until it is read; not for threads that run tasks. What hinders it
    /// shows in [`Events::health`]: events then live in memory.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start(settings: Settings, clock: Clock) -> io::Result<Self> {
        let database = Database::start(settings, SCHEMA)?;
        let last = Wanted {
            limit: RING as u64,
            ..Wanted::default()
        };
        // What cannot be read was said by the database.
        let kept = database
            .read(move |file| log::list(file, &last))
            .wait()
            .unwrap_or_default();
        let ring = Ring::new(RING, kept, clock());
        Ok(Self(Arc::new(Inner {
            database,
            ring: Mutex::new(ring),
            newest: watch::Sender::new(0),
            clock,
        })))
    }

    /// Reports what happened, to subscribers and to the file. Never waits.
    pub fn emit(&self, happened: Happened) {
        let mut ring = self.ring();
        let Some(event) = ring.emit(self.now(), happened) else {
            return;
        };
        // With the ring held, so that the file has them in their order.
        let kept = Arc::clone(&event);
        let written = self.0.database.write(move |file| log::insert(file, &kept));
        written.forget();
        drop(ring);
        self.0.newest.send_replace(event.id);
    }

    /// The newest event, where there ever was one.
    #[must_use]
    pub fn newest(&self) -> Option<Arc<Event>> {
        self.ring().newest()
    }

    /// Whether a subscription after the event `last` misses none: all that came since is in memory.
    /// Where not, [`Events::list`] has them.
    #[must_use]
    pub fn reaches(&self, last: u64) -> bool {
        self.ring().reaches(last)
    }

    /// Everything that comes, and before it all after the event `last`.
    pub async fn subscribe(&self, last: Option<u64>) -> Subscription {
        let (place, oldest) = {
            let ring = self.ring();
            (ring.place(last), ring.oldest())
        };
        let missed = match (last, oldest) {
            (Some(last), Some(oldest)) if last + 1 < oldest => {
                let count = self.0.database.read(move |file| {
                    let is_cut = last > 0 && log::is_cut(file, last)?;
                    Ok(log::between(file, last, oldest)? + u64::from(is_cut))
                });
                // Where nobody knows, some are missing.
                count.await.unwrap_or(1)
            }
            _ => 0,
        };
        Subscription {
            newest: self.0.newest.subscribe(),
            events: self.clone(),
            place,
            missed,
        }
    }

    /// The events that are asked for, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn list(&self, wanted: Wanted) -> Result<Vec<Event>, Failed> {
        self.0
            .database
            .read(move |file| log::list(file, &wanted))
            .await
    }

    /// Whether events right after `last` may be gone: neither it nor an older one is known.
    ///
    /// # Errors
    /// The file cannot be read.
    pub async fn is_cut(&self, last: u64) -> Result<bool, Failed> {
        if last == 0 {
            // Whoever asks for all that is there misses nothing.
            return Ok(false);
        }
        self.0
            .database
            .read(move |file| log::is_cut(file, last))
            .await
    }

    /// How the file is.
    #[must_use]
    pub fn health(&self) -> Health {
        self.0.database.health()
    }

    /// Writes what waits and closes the file.
    pub fn stop(&self) {
        self.0.database.close();
    }

    pub(crate) fn database(&self) -> &Database {
        &self.0.database
    }

    pub(crate) fn now(&self) -> WallClock {
        (self.0.clock)()
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.0.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A subscriber's place.
pub struct Subscription {
    newest: watch::Receiver<u64>,
    events: Events,
    place: u64,
    missed: u64,
}

impl Subscription {
    /// What there is next; waits for it. An answer that is dropped half-way loses nothing.
    pub async fn next(&mut self) -> Batch {
        loop {
            // Marked before the ring is read: what comes in between wakes it.
            self.newest.borrow_and_update();
            let (taken, next) = self.events.ring().take(self.place, BATCH_MAX);
            if !taken.events.is_empty() {
                self.place = next;
                return Batch {
                    missed: taken.missed + std::mem::take(&mut self.missed),
                    events: taken.events,
                };
            }
            // The sender is gone only when the events are, which this subscription holds.
            let _ = self.newest.changed().await;
        }
    }
}
