//! The last events in memory, the next identifier, and what repeats too often.

use crate::event::{Event, Happened, Object};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use units::WallClock;

/// Within this time the same thing that others cause is reported once.
const THINNED_NANOS: u64 = 60_000_000_000;

/// Of so many things it is known when they were reported last.
const THINNED_MAX: usize = 1_000;

/// The last events, pure: time comes in.
#[derive(Debug)]
pub(crate) struct Ring {
    events: VecDeque<Arc<Event>>,
    length: usize,
    /// How many were put in before those that are there.
    gone: u64,
    next_id: u64,
    thinned: BTreeMap<Same, (WallClock, u64)>,
}

/// What is the same thing where it happens again.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Same {
    object: Object,
    reason: String,
    target: String,
}

impl Same {
    fn of(happened: &Happened) -> Self {
        let text = |field: &str| {
            let text = happened.fields.get(field).and_then(|it| it.as_str());
            text.unwrap_or_default().to_owned()
        };
        Self {
            object: happened.object.clone(),
            reason: text("reason"),
            target: text("target"),
        }
    }

    /// What all have together for which there is no place.
    fn others() -> Self {
        Self {
            object: Object::new("initiator", "others"),
            reason: String::new(),
            target: String::new(),
        }
    }
}

/// What a subscriber gets.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Taken {
    pub(crate) missed: u64,
    pub(crate) events: Vec<Arc<Event>>,
}

impl Ring {
    /// A ring of so many events, with the newest that a file has. Identifiers go on after them, and
    /// are not below the time in milliseconds: so they rise also where the file was lost.
    pub(crate) fn new(length: usize, kept: Vec<Event>, now: WallClock) -> Self {
        let last = kept.last().map_or(0, |event| event.id);
        let mut ring = Self {
            events: VecDeque::new(),
            length,
            gone: 0,
            next_id: (last + 1).max(now.0 / 1_000_000),
            thinned: BTreeMap::new(),
        };
        for event in kept {
            ring.put(Arc::new(event));
        }
        ring
    }

    /// Takes what happened; `None` where the same was reported a moment ago.
    pub(crate) fn emit(&mut self, now: WallClock, mut happened: Happened) -> Option<Arc<Event>> {
        if happened.code.is_thinned() {
            let repeated = self.repeated(&Same::of(&happened), now)?;
            if repeated > 0 {
                happened = happened.with("repeated", repeated);
            }
        }
        let event = Arc::new(Event::new(self.next_id, now, happened));
        self.next_id += 1;
        self.put(Arc::clone(&event));
        Some(event)
    }

    /// How often it happened unreported since it was reported last; `None` where it is not to be
    /// reported now.
    fn repeated(&mut self, same: &Same, now: WallClock) -> Option<u64> {
        if let Some((at, unreported)) = self.thinned.get_mut(same) {
            if now.0.saturating_sub(at.0) < THINNED_NANOS && now >= *at {
                *unreported += 1;
                return None;
            }
            let repeated = std::mem::take(unreported);
            *at = now;
            return Some(repeated);
        }
        if self.thinned.len() >= THINNED_MAX {
            self.thinned
                .retain(|_, (at, _)| now.0.saturating_sub(at.0) < THINNED_NANOS);
        }
        if self.thinned.len() >= THINNED_MAX {
            // Names that somebody makes up: they share one.
            let others = Same::others();
            return (same != &others).then(|| self.repeated_of_others(&others, now))?;
        }
        self.thinned.insert(same.clone(), (now, 0));
        Some(0)
    }

    fn repeated_of_others(&mut self, others: &Same, now: WallClock) -> Option<u64> {
        if self.thinned.contains_key(others) {
            return self.repeated(others, now);
        }
        self.thinned.insert(others.clone(), (now, 0));
        Some(0)
    }

    fn put(&mut self, event: Arc<Event>) {
        self.events.push_back(event);
        if self.events.len() > self.length {
            self.events.pop_front();
            self.gone += 1;
        }
    }

    /// Where a subscriber goes on that has seen all up to `last`; without it only what comes.
    pub(crate) fn place(&self, last: Option<u64>) -> u64 {
        let older = match last {
            Some(last) => self.events.partition_point(|event| event.id <= last),
            None => self.events.len(),
        };
        self.gone + older as u64
    }

    /// Of all that were put in, the last one.
    pub(crate) fn newest(&self) -> Option<Arc<Event>> {
        self.events.back().cloned()
    }

    /// Whether all that came after `last` is there.
    pub(crate) fn reaches(&self, last: u64) -> bool {
        let is_all = self.gone == 0 && self.events.len() < self.length;
        is_all || self.oldest().is_none_or(|oldest| oldest <= last + 1)
    }

    /// The identifier of the oldest that is there.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.events.front().map(|event| event.id)
    }

    /// What comes from a place on, at most `most`, and the next place. Where that is lost, only the
    /// newest.
    pub(crate) fn take(&self, place: u64, most: usize) -> (Taken, u64) {
        let end = self.gone + self.events.len() as u64;
        let Some(skipped) = place.checked_sub(self.gone) else {
            let newest = end.saturating_sub(1);
            let taken = Taken {
                missed: newest - place,
                events: self.events.back().cloned().into_iter().collect(),
            };
            return (taken, end);
        };
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let events: Vec<_> = self
            .events
            .iter()
            .skip(skipped)
            .take(most)
            .cloned()
            .collect();
        let next = place + events.len() as u64;
        (Taken { missed: 0, events }, next)
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::code::Code;

    const NOW: WallClock = WallClock(1_800_000_000_000_000_000);

    fn happened(name: &str) -> Happened {
        Happened::new(Code::LunOnline, Object::new("lun", name), "it is there")
    }

    fn ids(taken: &Taken) -> Vec<u64> {
        taken.events.iter().map(|event| event.id).collect()
    }

    #[test]
    fn identifiers_rise_where_the_clock_goes_back_and_where_the_file_is_lost() {
        let mut ring = Ring::new(8, Vec::new(), NOW);
        let first = ring.emit(NOW, happened("a")).unwrap();
        let second = ring.emit(WallClock(5), happened("b")).unwrap();
        assert_eq!(second.id, first.id + 1);
        // The next start, with a clock that is wrong.
        let kept = vec![Event::clone(&first), Event::clone(&second)];
        let mut after = Ring::new(8, kept, WallClock(7));
        assert!(after.emit(WallClock(8), happened("c")).unwrap().id > second.id);
        // The next start, a second later, with a new file.
        let later = WallClock(NOW.0 + 1_000_000_000);
        let mut lost = Ring::new(8, Vec::new(), later);
        assert!(lost.emit(later, happened("c")).unwrap().id > second.id);
    }

    #[test]
    fn a_subscriber_gets_each_event_once_and_in_order() {
        let mut ring = Ring::new(4, Vec::new(), NOW);
        let (mut place, mut seen, mut sent) = (ring.place(None), Vec::new(), Vec::new());
        for number in 0..40 {
            sent.push(ring.emit(NOW, happened(&number.to_string())).unwrap().id);
            if number % 3 == 2 {
                let (taken, next) = ring.take(place, 2);
                let (more, next) = ring.take(next, 2);
                assert_eq!((taken.missed, more.missed), (0, 0));
                seen.extend(ids(&taken).into_iter().chain(ids(&more)));
                place = next;
            }
        }
        seen.extend(ids(&ring.take(place, 10).0));
        assert_eq!(seen, sent);
    }

    #[test]
    fn a_slow_subscriber_gets_the_newest_and_learns_how_many_it_missed() {
        let mut ring = Ring::new(4, Vec::new(), NOW);
        let place = ring.place(None);
        let sent: Vec<u64> = (0..10)
            .map(|it| ring.emit(NOW, happened(&it.to_string())).unwrap().id)
            .collect();
        let (taken, next) = ring.take(place, 100);
        assert_eq!((taken.missed, ids(&taken)), (9, sent[9..].to_vec()));
        assert_eq!(ring.take(next, 100).0, Taken::default());
        // One that names an event that is there goes on after it.
        let (taken, _) = ring.take(ring.place(Some(sent[7])), 100);
        assert_eq!((taken.missed, ids(&taken)), (0, sent[8..].to_vec()));
    }

    #[test]
    fn refused_logins_are_reported_once_a_minute_with_how_many_there_were() {
        let refused = |name: &str| {
            Happened::new(
                Code::LoginRefused,
                Object::new("initiator", name),
                "no grant",
            )
        };
        let at = |seconds: u64| WallClock(NOW.0 + seconds * 1_000_000_000);
        let mut ring = Ring::new(10_000, Vec::new(), NOW);
        let reported: Vec<Option<u64>> = (0..125)
            .map(|second| ring.emit(at(second), refused("a")))
            .filter_map(|event| Some(event?.fields.get("repeated").and_then(|it| it.as_u64())))
            .collect();
        assert_eq!(reported, [None, Some(59), Some(59)]);
        assert!(
            ring.emit(at(125), refused("b")).is_some(),
            "another initiator"
        );
        let why = |reason: &str, target: &str| {
            let refused = refused("a").with("reason", reason);
            refused.with("target", target)
        };
        assert!(ring.emit(at(125), why("CWY2002", "t")).is_some(), "why");
        assert!(ring.emit(at(125), why("CWY2003", "t")).is_some(), "why");
        assert!(ring.emit(at(125), why("CWY2003", "u")).is_some(), "where");
        assert!(ring.emit(at(126), why("CWY2003", "u")).is_none(), "again");
        // A million names that somebody makes up.
        let many = (0..100_000).filter_map(|it| ring.emit(at(126), refused(&it.to_string())));
        assert!(many.count() <= THINNED_MAX + 1);
        assert!(ring.thinned.len() <= THINNED_MAX + 1);
    }
}
