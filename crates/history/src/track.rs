//! What is under way of one object, in every tier.
//!
//! ```text
//!   figures --+--> Fine    a note for each figure of each second     once a minute: a chunk, a row
//!             +--> fresh   sums since the last ten seconds ended --> two Open: a point, a chunk
//! ```
//!
//! A second touches the end of the notes and the sums, which lie in a row each. The points of a
//! chunk lie apart for each metric: putting each second into them is a wait for memory for each of
//! them, and so they come there many at once.

use crate::chunk::{Chunk, Row};
use crate::code::code;
use crate::metric::{Behaviour, Metric};
use crate::point::{Packed, Point};
use crate::tier::{POINTS, TIERS, Tier};
use std::sync::Arc;

/// A counter that is read late is spread over so many seconds at most; after a longer time nobody
/// knows when it grew, and the time is a gap.
const LATE_MAX: u64 = 5;

/// The tiers that are put together from [`Track::fresh`]. A point of the second has whole ones of
/// the first.
const COARSE: [Tier; 2] = [TIERS[1], TIERS[2]];

/// What is known of an object now.
#[derive(Debug)]
pub(crate) struct Track {
    pub(crate) id: u32,
    /// As readings have it; `None` until one has been taken.
    pub(crate) identity: Option<Arc<str>>,
    pub(crate) last: u64,
    /// Counters as they stood.
    before: Vec<(Metric, u64)>,
    fine: Fine,
    /// What the coarse tiers lack of their points that are under way, by metric.
    fresh: Vec<(Metric, Point)>,
    coarse: [Open; COARSE.len()],
}

impl Track {
    pub(crate) fn new(id: u32, last: u64) -> Self {
        Self {
            id,
            identity: None,
            last,
            before: Vec::new(),
            fine: Fine::new(),
            fresh: Vec::new(),
            coarse: COARSE.map(Open::new),
        }
    }

    /// Goes on with a chunk of a file.
    pub(crate) fn restore(&mut self, now: u64, chunk: Chunk) {
        let mut coarse = self.coarse.iter_mut();
        match coarse.find(|open| open.chunk.tier == chunk.tier) {
            Some(open) => open.restore(now, chunk),
            None => self.fine.chunk = chunk,
        }
    }

    /// Takes what was read in a second. `grown` is memory that it may use.
    pub(crate) fn take(
        &mut self,
        second: u64,
        figures: &[(Metric, Option<u64>)],
        (grown, closed): (&mut Vec<(Metric, u64)>, &mut Vec<Row>),
    ) {
        let late = second.saturating_sub(self.last);
        grown.clear();
        let mut at = 0;
        for (metric, figure) in figures {
            let Some(figure) = figure else {
                continue;
            };
            match metric.behaviour() {
                Behaviour::Gauge | Behaviour::Level => {
                    grown.push((*metric, figure.saturating_mul(metric.scale())));
                }
                // Where nothing came there is nothing to keep.
                Behaviour::Tally if *figure == 0 => {}
                Behaviour::Tally => grown.push((*metric, *figure)),
                Behaviour::Counter => {
                    let before = self.replace(&mut at, *metric, *figure);
                    let before = before.filter(|_| late <= LATE_MAX);
                    // A counter that went back is another one: how much it grew is not known.
                    let growth = before.and_then(|before| figure.checked_sub(before));
                    grown.extend(growth.map(|growth| (*metric, growth)));
                }
            }
        }
        // All that follows goes through them in this order, and searches for none.
        grown.sort_unstable_by_key(|(metric, _)| *metric);
        self.last = second;
        let shares = if late <= LATE_MAX { late } else { 1 };
        for number in 1..=shares {
            let at = second - (shares - number);
            self.put(at, grown, (number, shares), closed);
        }
    }

    /// A counter as it stood. `at`: where the one after the last one stands, for they come in the
    /// same order every second.
    fn replace(&mut self, at: &mut usize, metric: Metric, figure: u64) -> Option<u64> {
        let is_next = self.before.get(*at).is_some_and(|it| it.0 == metric);
        let found = if is_next {
            Ok(*at)
        } else {
            let all = &self.before;
            all.binary_search_by_key(&metric, |(known, _)| *known)
        };
        *at = found.unwrap_or_else(|at| at) + 1;
        match found {
            Ok(at) => Some(std::mem::replace(&mut self.before[at].1, figure)),
            Err(at) => {
                self.before.insert(at, (metric, figure));
                None
            }
        }
    }

    /// Puts the share of one second: the `number`th of `shares` since the last reading.
    fn put(
        &mut self,
        second: u64,
        grown: &[(Metric, u64)],
        (number, shares): (u64, u64),
        closed: &mut Vec<Row>,
    ) {
        if self.coarse.iter().any(|open| open.is_behind(second)) {
            self.settle();
            for open in &mut self.coarse {
                open.advance(self.id, second, closed);
            }
        }
        let place = self.fine.advance(self.id, second, closed);
        self.fine.reserve(grown.len());
        let mut at = 0;
        for (metric, figure) in grown {
            let figure = match metric.behaviour() {
                Behaviour::Counter => share(*figure, number, shares),
                _ if number == shares => *figure,
                // It was so when it was read, and nobody knows before.
                Behaviour::Gauge | Behaviour::Level | Behaviour::Tally => continue,
            };
            self.fine.add(place, *metric, figure);
            add(
                &mut self.fresh,
                &mut at,
                *metric,
                &Point::of(*metric, figure),
            );
        }
    }

    /// Gives the coarse tiers what they lack.
    fn settle(&mut self) {
        for open in &mut self.coarse {
            open.add(&self.fresh);
        }
        self.fresh.clear();
    }

    /// Rows of what no row has, but of chunks of the finest tier that are under way; `all`: of
    /// those as well.
    pub(crate) fn drain(&mut self, now: u64, all: bool, rows: &mut Vec<Row>) {
        self.settle();
        let is_over = self.fine.chunk.number < TIERS[0].chunk(now);
        if self.fine.dirty && (all || is_over) {
            self.fine.write(self.id, rows);
        }
        for open in &mut self.coarse {
            if open.dirty {
                open.write(self.id, rows);
            }
        }
    }

    /// The chunk that is under way in a tier, with the point that is under way.
    pub(crate) fn under_way(&self, tier: Tier) -> Chunk {
        let mut coarse = self.coarse.iter();
        match coarse.find(|open| open.chunk.tier == tier) {
            Some(open) => open.with(&self.fresh),
            None => self.fine.whole(),
        }
    }
}

/// The `number`th of `of` parts, which are whole and together all.
fn share(all: u64, number: u64, of: u64) -> u64 {
    if of == 1 {
        return all;
    }
    let until = |number: u64| {
        let part = u128::from(all) * u128::from(number) / u128::from(of.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    };
    until(number) - until(number - 1)
}

/// Adds a point to the one of its metric. `at`: where to begin, for whoever adds one metric after
/// the other in their order.
fn add(sums: &mut Vec<(Metric, Point)>, at: &mut usize, metric: Metric, point: &Point) {
    while sums.get(*at).is_some_and(|(known, _)| *known < metric) {
        *at += 1;
    }
    match sums.get_mut(*at) {
        Some((known, sum)) if *known == metric => sum.add(point),
        _ => sums.insert(*at, (metric, *point)),
    }
}

/// What was read in one second, of one metric.
#[derive(Clone, Copy, Debug)]
struct Note {
    place: u8,
    metric: Metric,
    code: u16,
}

/// What is under way in the finest tier.
#[derive(Debug)]
struct Fine {
    /// Without what is in the notes.
    chunk: Chunk,
    /// In the order of their seconds, and of a second in that of their metrics.
    notes: Vec<Note>,
    /// It has something that no row has.
    dirty: bool,
}

impl Fine {
    fn new() -> Self {
        Self {
            chunk: Chunk::new(TIERS[0], 0),
            notes: Vec::new(),
            dirty: false,
        }
    }

    /// Comes to the chunk of a second, and says where the second is in it.
    fn advance(&mut self, id: u32, second: u64, closed: &mut Vec<Row>) -> u8 {
        let tier = self.chunk.tier;
        let number = tier.chunk(second);
        if number != self.chunk.number {
            if self.dirty {
                self.write(id, closed);
            }
            self.notes.clear();
            self.chunk = Chunk::new(tier, number);
        }
        u8::try_from(tier.place(second)).unwrap_or(u8::MAX)
    }

    /// Has room for a minute of so many figures a second, so that it does not grow step by step.
    fn reserve(&mut self, figures: usize) {
        if self.notes.capacity() == 0 {
            self.notes.reserve_exact(figures * POINTS);
        }
    }

    /// Notes a figure, unless the tier is too fine for it.
    fn add(&mut self, place: u8, metric: Metric, figure: u64) {
        if metric.every() == self.chunk.tier.step {
            let code = code(figure);
            self.notes.push(Note {
                place,
                metric,
                code,
            });
            self.dirty = true;
        }
    }

    fn whole(&self) -> Chunk {
        let mut chunk = self.chunk.clone();
        put_notes(&self.notes, &mut chunk);
        chunk
    }

    fn write(&mut self, id: u32, rows: &mut Vec<Row>) {
        put_notes(&self.notes, &mut self.chunk);
        self.notes.clear();
        rows.push(self.chunk.row(id));
        self.dirty = false;
    }
}

fn put_notes(notes: &[Note], chunk: &mut Chunk) {
    for second in notes.chunk_by(|one, other| one.place == other.place) {
        let mut at = 0;
        for note in second {
            let place = usize::from(note.place);
            let slot = &mut chunk.points_from(&mut at, note.metric)[place];
            let new = Packed::one(note.code);
            *slot = match slot.seconds {
                0 => new,
                // The process before this one has read the same second.
                _ => {
                    let mut both = slot.point(note.metric);
                    both.add(&new.point(note.metric));
                    Packed::of(note.metric, &both)
                }
            };
        }
    }
}

/// What is under way in a coarse tier.
#[derive(Debug)]
struct Open {
    chunk: Chunk,
    /// It has something that no row has.
    dirty: bool,
    /// The point that is under way: its first second, and what is known so far.
    first: u64,
    point: Vec<(Metric, Point)>,
}

impl Open {
    fn new(tier: Tier) -> Self {
        Self {
            chunk: Chunk::new(tier, 0),
            dirty: false,
            first: 0,
            point: Vec::new(),
        }
    }

    fn restore(&mut self, now: u64, chunk: Chunk) {
        let tier = chunk.tier;
        self.first = now - now % tier.step;
        let place = tier.place(now);
        let points = chunk.metrics.iter().map(|(metric, points)| {
            let point = points[place].point(*metric);
            (*metric, point)
        });
        self.point = points.filter(|(_, point)| !point.is_gap()).collect();
        self.chunk = chunk;
    }

    /// A second belongs to another point than the one that is under way.
    fn is_behind(&self, second: u64) -> bool {
        second - second % self.chunk.tier.step != self.first
    }

    /// Comes to the point and the chunk of a second; what is left behind is complete.
    fn advance(&mut self, id: u32, second: u64, closed: &mut Vec<Row>) {
        if !self.is_behind(second) {
            return;
        }
        let tier = self.chunk.tier;
        put_point(self.first, &self.point, &mut self.chunk);
        self.point.clear();
        if tier.chunk(second) != self.chunk.number {
            if self.dirty {
                self.write(id, closed);
            }
            self.chunk = Chunk::new(tier, tier.chunk(second));
        }
        self.first = second - second % tier.step;
    }

    /// Adds points, which are in the order of their metrics.
    fn add(&mut self, points: &[(Metric, Point)]) {
        let mut at = 0;
        for (metric, point) in points {
            add(&mut self.point, &mut at, *metric, point);
        }
        self.dirty |= !points.is_empty();
    }

    /// The chunk, with the point that is under way and these points in it.
    fn with(&self, points: &[(Metric, Point)]) -> Chunk {
        let mut point = self.point.clone();
        let mut at = 0;
        for (metric, more) in points {
            add(&mut point, &mut at, *metric, more);
        }
        let mut chunk = self.chunk.clone();
        put_point(self.first, &point, &mut chunk);
        chunk
    }

    /// Writes a row with all that is known, the point that is under way included: a crash then
    /// loses only what came later.
    fn write(&mut self, id: u32, rows: &mut Vec<Row>) {
        put_point(self.first, &self.point, &mut self.chunk);
        rows.push(self.chunk.row(id));
        self.dirty = false;
    }
}

/// Puts the point that began then into its place.
fn put_point(first: u64, point: &[(Metric, Point)], chunk: &mut Chunk) {
    let place = chunk.tier.place(first);
    let mut at = 0;
    for (metric, point) in point {
        chunk.points_from(&mut at, *metric)[place] = Packed::of(*metric, point);
    }
}
