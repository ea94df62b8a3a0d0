//! Readings in, rows out: what is under way of every object, in every tier.

use crate::chunk::Chunk;
use crate::metric::{Behaviour, Metric};
use crate::point::{Packed, Point};
use crate::tier::{TIERS, Tier};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A counter that is read late is spread over so many seconds at most; after a longer time nobody
/// knows when it grew, and the time is a gap.
const LATE_MAX: u64 = 5;

/// An object that is not read any more leaves memory after so many seconds.
const FORGOTTEN: u64 = 3_600;

/// What kind of thing an object is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The node as a whole.
    Node,
    /// A LUN.
    Lun,
    /// A host: its sessions together.
    Host,
    /// A target: the sessions with it together.
    Target,
    /// A pool.
    Pool,
    /// A network interface of the node.
    Nic,
}

impl Kind {
    /// All, in the order of the numbers that they have in files.
    pub const ALL: [Self; 6] = [
        Self::Node,
        Self::Lun,
        Self::Host,
        Self::Target,
        Self::Pool,
        Self::Nic,
    ];

    /// As parameters and documents have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Lun => "lun",
            Self::Host => "host",
            Self::Target => "target",
            Self::Pool => "pool",
            Self::Nic => "nic",
        }
    }

    pub(crate) fn number(self) -> i64 {
        let place = Self::ALL.into_iter().position(|kind| kind == self);
        place
            .and_then(|place| i64::try_from(place).ok())
            .unwrap_or(0)
    }

    pub(crate) fn numbered(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// Something that has figures.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Object {
    /// LUN, host, pool, NIC or node.
    pub kind: Kind,
    /// As the objects, `node.toml` or the machine have it.
    pub name: String,
}

/// What was read of an object in a second.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    /// As [`Object::kind`]: LUN, host, pool, NIC or node.
    pub kind: Kind,
    /// As [`Object::name`].
    pub name: &'a str,
    /// Counters as they stand, gauges and levels as they are, tallies of what came since the last
    /// one; `None` where there is nothing to say, such as the latency of a second without commands.
    pub figures: Vec<(Metric, Option<u64>)>,
}

/// A row of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    /// Where it lies.
    pub(crate) key: i64,
    /// A chunk.
    pub(crate) bytes: Vec<u8>,
}

/// What a file lacks.
#[derive(Default, Debug)]
pub(crate) struct Drained {
    /// Objects that have rows here.
    pub(crate) objects: Vec<(u32, Object)>,
    /// Rows, which replace those of the same keys.
    pub(crate) rows: Vec<Row>,
}

/// What is known of an object now.
#[derive(Debug)]
struct Track {
    id: u32,
    last: u64,
    /// Counters as they stood.
    before: Vec<(Metric, u64)>,
    tiers: [Open; TIERS.len()],
}

/// What is under way in a tier.
#[derive(Debug)]
struct Open {
    chunk: Chunk,
    /// It has something that no row has.
    dirty: bool,
    /// The point that is under way: its first second, and what is known so far.
    first: u64,
    point: Vec<(Metric, Point)>,
    /// The same of what is read once in ten seconds: apart, so that each second goes through few.
    slow: Vec<(Metric, Point)>,
}

/// What is under way of all objects.
#[derive(Default, Debug)]
pub(crate) struct Recorder {
    ids: BTreeMap<Object, u32>,
    next: u32,
    tracks: BTreeMap<Kind, BTreeMap<String, Track>>,
    newest: u64,
    closed: Vec<Row>,
}

impl Recorder {
    /// Objects that a file knows by these numbers.
    pub(crate) fn know(&mut self, objects: impl IntoIterator<Item = (u32, Object)>) {
        for (id, object) in objects {
            self.next = self.next.max(id + 1);
            self.ids.insert(object, id);
        }
    }

    /// The number of an object, where it has one.
    pub(crate) fn id(&self, object: &Object) -> Option<u32> {
        self.ids.get(object).copied()
    }

    /// The newest second.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// Goes on with what a file has of `now`: the chunks that are under way.
    pub(crate) fn restore(&mut self, now: u64, chunks: impl IntoIterator<Item = (u32, Chunk)>) {
        let names: BTreeMap<u32, Object> = self
            .ids
            .iter()
            .map(|(object, id)| (*id, object.clone()))
            .collect();
        for (id, chunk) in chunks {
            let Some(Object { kind, name }) = names.get(&id) else {
                continue;
            };
            let tracks = self.tracks.entry(*kind).or_default();
            let track = tracks
                .entry(name.clone())
                .or_insert_with(|| Track::new(id, now));
            let at = usize::from(chunk.tier.number);
            track.tiers[at].restore(now, chunk);
        }
    }

    /// Forgets what is under way, because the clock was set back to `now`.
    pub(crate) fn set_back(&mut self, now: u64) {
        self.tracks.clear();
        self.newest = now;
    }

    /// Takes what was read in a second. A second that is not newer than what was taken is passed
    /// over.
    pub(crate) fn push(&mut self, second: u64, readings: &[Reading<'_>]) {
        if second <= self.newest {
            return;
        }
        self.newest = second;
        for reading in readings {
            self.take(second, reading);
        }
    }

    fn take(&mut self, second: u64, reading: &Reading<'_>) {
        let tracks = self.tracks.entry(reading.kind).or_default();
        let track = match tracks.get_mut(reading.name) {
            Some(track) => track,
            None => {
                let object = Object {
                    kind: reading.kind,
                    name: reading.name.to_owned(),
                };
                let id = *self.ids.entry(object).or_insert(self.next);
                self.next = self.next.max(id + 1);
                let new = Track::new(id, 0);
                tracks.entry(reading.name.to_owned()).or_insert(new)
            }
        };
        track.take(second, &reading.figures, &mut self.closed);
    }

    /// What a file lacks: chunks that are full, and of the coarse tiers those that are under way.
    /// `all`: of the finest tier as well.
    pub(crate) fn drain(&mut self, all: bool) -> Drained {
        let (mut rows, mut objects) = (std::mem::take(&mut self.closed), Vec::new());
        let now = self.newest;
        for (kind, tracks) in &mut self.tracks {
            tracks.retain(|name, track| {
                let had = rows.len();
                track.drain(now, all, &mut rows);
                if rows.len() > had {
                    let name = name.clone();
                    objects.push((track.id, Object { kind: *kind, name }));
                }
                track.last + FORGOTTEN > now
            });
        }
        Drained { objects, rows }
    }

    /// What is under way of an object in a tier: its chunk, with the point that is under way.
    pub(crate) fn under_way(&self, object: &Object, tier: Tier) -> Option<Chunk> {
        let track = self.tracks.get(&object.kind)?.get(&object.name)?;
        let open = &track.tiers[usize::from(tier.number)];
        let mut chunk = open.chunk.clone();
        open.put_point(&mut chunk);
        Some(chunk)
    }
}

impl Track {
    fn new(id: u32, last: u64) -> Self {
        Self {
            id,
            last,
            before: Vec::new(),
            tiers: TIERS.map(Open::new),
        }
    }

    fn take(&mut self, second: u64, figures: &[(Metric, Option<u64>)], closed: &mut Vec<Row>) {
        let late = second.saturating_sub(self.last);
        let mut grown = Vec::with_capacity(figures.len());
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
                    let before = self.replace(*metric, *figure).filter(|_| late <= LATE_MAX);
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
            self.put(at, &grown, (number, shares), closed);
        }
    }

    fn replace(&mut self, metric: Metric, figure: u64) -> Option<u64> {
        let found = self
            .before
            .binary_search_by_key(&metric, |(known, _)| *known);
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
        for open in &mut self.tiers {
            open.advance(self.id, second, closed);
        }
        let points = grown.iter().filter_map(|(metric, figure)| {
            let figure = match metric.behaviour() {
                Behaviour::Counter => share(*figure, number, shares),
                _ if number == shares => *figure,
                // It was so when it was read, and nobody knows before.
                Behaviour::Gauge | Behaviour::Level | Behaviour::Tally => return None,
            };
            Some((*metric, Point::of(*metric, figure)))
        });
        let points: Vec<(Metric, Point)> = points.collect();
        for open in &mut self.tiers {
            open.add(&points);
        }
    }

    fn drain(&mut self, now: u64, all: bool, rows: &mut Vec<Row>) {
        for open in &mut self.tiers {
            let tier = open.chunk.tier;
            let is_over = open.chunk.number < tier.chunk(now);
            if open.dirty && (all || is_over || tier.step > 1) {
                open.write(self.id, rows);
            }
        }
    }
}

/// The `number`th of `of` parts, which are whole and together all.
fn share(all: u64, number: u64, of: u64) -> u64 {
    let until = |number: u64| {
        let part = u128::from(all) * u128::from(number) / u128::from(of.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    };
    until(number) - until(number - 1)
}

impl Open {
    fn new(tier: Tier) -> Self {
        Self {
            chunk: Chunk::new(tier, 0),
            dirty: false,
            first: 0,
            point: Vec::new(),
            slow: Vec::new(),
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
        let known = points.filter(|(_, point)| !point.is_gap());
        (self.point, self.slow) = known.partition(|(metric, _)| metric.every() == 1);
        self.chunk = chunk;
    }

    /// Comes to the point and the chunk of a second; what is left behind is complete.
    fn advance(&mut self, id: u32, second: u64, closed: &mut Vec<Row>) {
        let tier = self.chunk.tier;
        let first = second - second % tier.step;
        if first == self.first {
            return;
        }
        self.finish();
        if tier.chunk(second) != self.chunk.number {
            if self.dirty {
                self.write(id, closed);
            }
            self.chunk = Chunk::new(tier, tier.chunk(second));
        }
        self.first = first;
    }

    /// Adds points, which are in the order of their metrics, but those that the tier is too fine
    /// for.
    fn add(&mut self, points: &[(Metric, Point)]) {
        let (mut fast, mut slow) = (0, 0);
        for (metric, point) in points {
            let every = metric.every();
            let (under_way, at) = match every {
                1 => (&mut self.point, &mut fast),
                _ => (&mut self.slow, &mut slow),
            };
            if every > self.chunk.tier.step {
                continue;
            }
            while under_way.get(*at).is_some_and(|(known, _)| known < metric) {
                *at += 1;
            }
            match under_way.get_mut(*at) {
                Some((known, sum)) if known == metric => sum.add(point),
                _ => under_way.insert(*at, (*metric, *point)),
            }
            self.dirty = true;
        }
    }

    fn finish(&mut self) {
        let mut chunk = std::mem::replace(&mut self.chunk, Chunk::new(TIERS[0], 0));
        self.put_point(&mut chunk);
        self.chunk = chunk;
        for (_, point) in &mut self.point {
            *point = Point::default();
        }
        // Which rows of a map have something changes.
        self.slow.clear();
    }

    /// Puts the point that is under way into its place.
    fn put_point(&self, chunk: &mut Chunk) {
        let place = chunk.tier.place(self.first);
        for under_way in [&self.point, &self.slow] {
            let mut at = 0;
            for (metric, point) in under_way.iter().filter(|(_, point)| !point.is_gap()) {
                chunk.points_from(&mut at, *metric)[place] = Packed::of(*metric, point);
            }
        }
    }

    /// Writes a row with all that is known, the point that is under way included: a crash then
    /// loses only what came later.
    fn write(&mut self, id: u32, rows: &mut Vec<Row>) {
        let mut chunk = std::mem::replace(&mut self.chunk, Chunk::new(TIERS[0], 0));
        self.put_point(&mut chunk);
        rows.push(Row {
            key: chunk.tier.key(chunk.number, id),
            bytes: chunk.encode(),
        });
        self.chunk = chunk;
        self.dirty = false;
    }
}
