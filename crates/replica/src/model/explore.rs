//! Goes through the worlds that can come, each once, or at random.

use super::world::{Event, World};
use super::{Bounds, Rule};
use crate::state::State;
use std::collections::{BTreeSet, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// Different worlds that were seen.
    pub worlds: usize,
    /// The bounds were reached everywhere: there are no more.
    pub is_complete: bool,
    /// States of copies that were seen.
    pub states: BTreeSet<State>,
    /// The highest epoch of the record.
    pub epochs: u64,
    /// What is wrong in a world, and how it came to that, an event a line.
    pub wrong: Option<(&'static str, Vec<String>)>,
}

/// Mixes 64 bits at a time: worlds are large, and hashed often.
#[derive(Default)]
struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 = (mixed ^ mixed >> 29).wrapping_add(0x94d0_49bb_1331_11eb);
    }
}

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, word: u8) {
        self.mix(word.into());
    }
    fn write_u32(&mut self, word: u32) {
        self.mix(word.into());
    }
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }
    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }
}

/// A finger print is a hash already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

#[allow(
    clippy::disallowed_types,
    reason = "nothing goes through it in order, and it has tens of millions of members"
)]
type Seen = std::collections::HashSet<u64, BuildHasherDefault<Same>>;

fn print_of(world: &World) -> u64 {
    let mut mixer = Mixer::default();
    world.hash(&mut mixer);
    mixer.finish()
}

/// Every world within the bounds, the nearest ones first, `most` of them at most.
#[must_use]
pub fn explore(bounds: Bounds, broken: Option<Rule>, most: usize) -> Explored {
    let mut explored = Explored::default();
    let mut seen = Seen::default();
    // How each world came about: the one before it, and the event.
    let mut causes: Vec<(u32, Event)> = Vec::new();
    let mut ahead = VecDeque::new();
    let first = World::settled(bounds, broken);
    seen.insert(print_of(&first));
    ahead.push_back((u32::MAX, first));
    while let Some((cause, world)) = ahead.pop_front() {
        explored.note(&world);
        for event in world.events() {
            let mut next = world.clone();
            next.happens(&event);
            if next.is_beyond() || !seen.insert(print_of(&next)) {
                continue;
            }
            let at = u32::try_from(causes.len()).expect("memory ends before");
            causes.push((cause, event));
            if let Some(wrong) = next.wrong() {
                explored.wrong = Some((wrong, events_to(&causes, at)));
                return explored;
            }
            if seen.len() >= most {
                explored.worlds = seen.len();
                return explored;
            }
            ahead.push_back((at, next));
        }
    }
    explored.worlds = seen.len();
    explored.is_complete = true;
    explored
}

fn events_to(causes: &[(u32, Event)], mut at: u32) -> Vec<String> {
    let mut events = Vec::new();
    while let Some((before, event)) = causes.get(at as usize) {
        events.push(format!("{event:?}"));
        at = *before;
    }
    events.reverse();
    events
}

impl Explored {
    fn note(&mut self, world: &World) {
        self.states.extend(world.states());
        self.epochs = self.epochs.max(world.record().epoch.0);
    }
}

/// Worlds that come at random, so many steps of each of so many walks.
#[must_use]
pub fn walk(bounds: Bounds, broken: Option<Rule>, (walks, steps): (u64, usize)) -> Explored {
    let mut explored = Explored::default();
    for seed in 0..walks {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut world = World::settled(bounds, broken);
        let mut events = Vec::new();
        for _ in 0..steps {
            let possible = world.events();
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            // Faults are rare, or they would all come before anything else has happened.
            let is_fault = random >> 20 & 15 == 0;
            let (faults, rest): (Vec<_>, Vec<_>) = possible.iter().partition(|it| it.is_fault());
            let of = if is_fault && !faults.is_empty() {
                faults
            } else {
                rest
            };
            let pick = (random >> 33) as usize % of.len().max(1);
            let Some(event) = of.get(pick).copied() else {
                break;
            };
            let mut next = world.clone();
            next.happens(event);
            if next.is_beyond() {
                continue;
            }
            world = next;
            events.push(format!("{event:?}"));
            explored.worlds += 1;
            explored.note(&world);
            if let Some(wrong) = world.wrong() {
                explored.wrong = Some((wrong, events));
                return explored;
            }
        }
    }
    explored
}
