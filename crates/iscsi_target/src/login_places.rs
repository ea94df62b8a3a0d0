//! The places of connections that have not logged in, and of discovery sessions.
//!
//! **Contract.** A new connection always finds a place: where all are taken, the oldest without
//! progress is ended for it. One source address has at most half of them, and over that the oldest
//! of its own goes: a stranger with a thousand connections takes no place from others. Progress is
//! an answer of ours to a whole request; bytes that dribble in are none. A login whose negotiation
//! is done goes last.
//!
//! Whoever came on within [`FRESH`] stays, for a burst of hosts that all mean it is no attack:
//! until there are [`BURST`] times as many as there are places.
//!
//! A source is an IPv4 address, or the /64 of an IPv6 one: a host may take as many addresses of
//! that as it likes.
//!
//! Discovery sessions keep the place that they logged in with, because no directory limits them.
//! What is done here is done when a connection comes, goes or logs in, and never by commands.

use crate::export::Settings;
use futures_util::task::AtomicWaker;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use units::Now;

/// A login is given so long for its next step before it can lose its place.
const FRESH: Duration = Duration::from_secs(1);

/// So many times the places there may be for a moment, while all of them are fresh.
const BURST: usize = 4;

/// How many go at most for one that comes.
const GO_AT_ONCE: usize = 4;

/// What counts as one stranger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Source(IpAddr);

impl Source {
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                let network = address.to_bits() >> 64 << 64;
                IpAddr::V6(Ipv6Addr::from_bits(network))
            }
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => write!(f, "{address}"),
            IpAddr::V6(network) => write!(f, "{network}/64"),
        }
    }
}

/// Names a place: when its connection came on last, and a number.
type Key = (Now, u64);

/// All places that are taken.
#[derive(Default)]
pub(crate) struct LoginPlaces(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    last: u64,
    /// The oldest first.
    all: BTreeMap<Key, (Source, Arc<Notice>)>,
    of_sources: BTreeMap<Source, BTreeSet<Key>>,
}

/// How a connection on any core learns that its place is another's.
#[derive(Default)]
struct Notice {
    given: AtomicBool,
    waker: AtomicWaker,
}

impl Inner {
    fn insert(&mut self, key: Key, source: Source, notice: Arc<Notice>) {
        self.all.insert(key, (source, notice));
        self.of_sources.entry(source).or_default().insert(key);
    }

    fn remove(&mut self, key: Key) -> Option<(Source, Arc<Notice>)> {
        let (source, notice) = self.all.remove(&key)?;
        if let Some(of_source) = self.of_sources.get_mut(&source) {
            of_source.remove(&key);
            if of_source.is_empty() {
                self.of_sources.remove(&source);
            }
        }
        Some((source, notice))
    }

    /// Who goes at `now` for a new connection from `source`, where somebody must.
    fn goes(&self, now: Now, source: Source, most: usize) -> Option<Key> {
        let own = self.of_sources.get(&source);
        let of_source = own.map_or(0, BTreeSet::len);
        let oldest = if of_source >= per_source(most) {
            own?.first()
        } else {
            self.all.keys().next().filter(|_| self.all.len() >= most)
        };
        let burst = most.saturating_mul(BURST);
        let full = of_source >= per_source(burst) || self.all.len() >= burst;
        let may_go = |oldest: &Key| full || now.since(oldest.0) >= FRESH;
        oldest.copied().filter(may_go)
    }

    fn give_away(&mut self, key: Key) {
        if let Some((_, notice)) = self.remove(key) {
            notice.given.store(true, Ordering::Release);
            notice.waker.wake();
        }
    }
}

/// What one source may have of `most` places.
fn per_source(most: usize) -> usize {
    (most / 2).max(1)
}

impl LoginPlaces {
    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place among `most`; `room`: there may be one connection more. `None` where that is not so,
    /// and nobody is here who could go.
    fn enter(
        &self,
        now: Now,
        source: Source,
        most: usize,
        room: bool,
    ) -> Option<(Key, Arc<Notice>)> {
        let mut inner = self.locked();
        let before = inner.all.len();
        while before - inner.all.len() < GO_AT_ONCE
            && let Some(key) = inner.goes(now, source, most)
        {
            inner.give_away(key);
        }
        if before == inner.all.len() && !room {
            let key = *inner.all.keys().next()?;
            inner.give_away(key);
        }
        inner.last += 1;
        let key = (now, inner.last);
        let notice = Arc::<Notice>::default();
        inner.insert(key, source, Arc::clone(&notice));
        Some((key, notice))
    }

    /// The place's connection has come on.
    fn moved(&self, key: Key, to: Now) -> Key {
        let mut inner = self.locked();
        let next = (to, key.1);
        if let Some((source, notice)) = inner.remove(key) {
            inner.insert(next, source, notice);
        }
        next
    }

    fn leave(&self, key: Key) {
        let left = self.locked().remove(key);
        drop(left);
    }
}

/// One place. Dropping it gives it back.
pub(crate) struct LoginPermit {
    places: Arc<LoginPlaces>,
    key: Cell<Key>,
    notice: Arc<Notice>,
}

impl LoginPermit {
    /// A place for a connection from `address`, where there are so many connections; `None` where
    /// nobody could go for it.
    pub(crate) fn take(
        places: &Arc<LoginPlaces>,
        settings: &Settings,
        connections: usize,
        now: Now,
        address: IpAddr,
    ) -> Option<Self> {
        let most = settings.logins_in_progress_max;
        let burst = most.saturating_mul(BURST);
        let all = settings.sessions_max.saturating_add(burst);
        let source = Source::of(address);
        let (key, notice) = places.enter(now, source, most, connections < all)?;
        Some(Self {
            places: Arc::clone(places),
            key: Cell::new(key),
            notice,
        })
    }

    /// The peer was answered at `now`. At a time that is still to come: it goes last until then.
    pub(crate) fn came_on(&self, now: Now) {
        let next = self.places.moved(self.key.get(), now);
        self.key.set(next);
    }

    /// Ready once the place is another connection's.
    pub(crate) fn poll_given_away(&self, cx: &Context<'_>) -> Poll<()> {
        self.notice.waker.register(cx.waker());
        if self.notice.given.load(Ordering::Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl Drop for LoginPermit {
    fn drop(&mut self) {
        self.places.leave(self.key.get());
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn source(address: &str) -> Source {
        Source::of(address.parse().unwrap())
    }

    fn at(second: u64) -> Now {
        Now(second * 1_000_000_000)
    }

    /// Which of them have lost their places.
    fn gone(all: &[(Key, Arc<Notice>)]) -> Vec<usize> {
        let given = |notice: &Notice| notice.given.load(Ordering::Acquire);
        let all = all.iter().enumerate();
        all.filter(|(_, (_, notice))| given(notice))
            .map(|(index, _)| index)
            .collect()
    }

    #[test]
    fn the_oldest_without_progress_goes_and_a_new_one_always_finds_a_place() {
        let places = LoginPlaces::default();
        let enter = |second, address: &str| {
            let source = source(address);
            places.enter(at(second), source, 4, true).unwrap()
        };
        let mut all: Vec<_> = (0..4_u8)
            .map(|n| enter(n.into(), &format!("192.0.2.{n}")))
            .collect();
        assert_eq!(gone(&all), []);
        // The first two come on: the third is the oldest.
        for (index, second) in [(0, 4), (1, 90)] {
            all[index].0 = places.moved(all[index].0, at(second));
        }
        all.push(enter(5, "192.0.2.9"));
        assert_eq!(gone(&all), [2]);
        all.push(enter(6, "192.0.2.10"));
        assert_eq!(gone(&all), [2, 3]);
        all.push(enter(7, "192.0.2.11"));
        assert_eq!(gone(&all), [0, 2, 3]);
        places.leave(all[1].0);
        all.push(enter(8, "192.0.2.12"));
        assert_eq!(gone(&all), [0, 2, 3], "there was one free");
        // Who has lost its place leaves nothing when it ends.
        for (key, _) in &all {
            places.leave(*key);
        }
        assert!(places.locked().all.is_empty() && places.locked().of_sources.is_empty());
    }

    #[test]
    fn one_source_takes_half_of_the_places_and_then_its_own() {
        let places = LoginPlaces::default();
        let honest: Vec<_> = (0..3)
            .map(|n| places.enter(at(n), source("192.0.2.1"), 8, true).unwrap())
            .collect();
        let enter = |n: u64| {
            let address = format!("2001:db8::{n:x}");
            places.enter(at(10 + n), source(&address), 8, true).unwrap()
        };
        let hostile: Vec<_> = (0..1000).map(enter).collect();
        assert_eq!(gone(&honest), []);
        assert_eq!(gone(&hostile).len(), 996);
        assert_eq!(places.locked().all.len(), 7);
    }

    #[test]
    fn a_burst_of_logins_that_all_mean_it_loses_none_until_there_are_far_too_many() {
        let places = LoginPlaces::default();
        let enter = |n: u64| {
            let now = Now(n * 1_000_000);
            places.enter(now, source("192.0.2.1"), 8, true).unwrap()
        };
        let mut all: Vec<_> = (0..16).map(enter).collect();
        assert_eq!(gone(&all), []);
        all.push(enter(16));
        assert_eq!(gone(&all), [0], "16 are four times its half");
        // A second later those that have not come on make room, a few for each that comes.
        all.push(enter(1100));
        assert_eq!(gone(&all), [0, 1, 2, 3, 4]);
        (0..20).for_each(|n| all.push(enter(1101 + n)));
        assert_eq!(gone(&all).len(), 22);
        assert!(gone(&all).iter().take(16).copied().eq(0..16));
    }

    #[test]
    fn without_room_for_another_connection_somebody_goes_or_nobody_comes() {
        let places = LoginPlaces::default();
        let one = source("192.0.2.1");
        assert!(places.enter(at(0), one, 8, false).is_none());
        let first = places.enter(at(1), one, 8, true).unwrap();
        let second = places.enter(at(2), one, 8, false).unwrap();
        assert_eq!(gone(&[first, second]), [0]);
    }

    #[test]
    fn a_source_is_an_address_or_a_network_of_64_bits() {
        assert_eq!(source("::ffff:192.0.2.7"), source("192.0.2.7"));
        assert_ne!(source("192.0.2.8"), source("192.0.2.7"));
        assert_eq!(source("2001:db8:0:1::7"), source("2001:db8:0:1:a:b:c:d"));
        assert_ne!(source("2001:db8:0:1::7"), source("2001:db8:0:2::7"));
        assert_eq!(source("2001:db8::7").to_string(), "2001:db8::/64");
        assert_eq!(source("192.0.2.7").to_string(), "192.0.2.7");
    }
}
