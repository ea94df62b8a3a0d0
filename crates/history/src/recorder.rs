//! Readings in, rows out: what is under way of every object, in every tier.

use crate::chunk::{Chunk, Row};
use crate::ids::{Ids, Known};
use crate::metric::Metric;
use crate::object::{Kind, Object};
use crate::tier::{TIERS, Tier};
use crate::track::Track;
use std::collections::BTreeMap;
use std::sync::Arc;

/// An object that is not read any more leaves memory after so many seconds.
const FORGOTTEN: u64 = 3_600;

/// What was read of an object in a second.
#[derive(Clone, Debug)]
pub struct Reading<'a> {
    /// As [`Object::kind`]: LUN, host, pool, NIC or node.
    pub kind: Kind,
    /// As [`Object::name`].
    pub name: &'a str,
    /// What distinguishes it from another one of the same name, before it or after it; `None` where
    /// a name says it all.
    pub identity: Option<&'a str>,
    /// Counters as they stand, gauges and levels as they are, tallies of what came since the last
    /// one; `None` where there is nothing to say, such as the latency of a second without commands.
    pub figures: Vec<(Metric, Option<u64>)>,
}

/// What a file lacks.
#[derive(Default, Debug)]
pub(crate) struct Drained {
    /// Objects that have rows here, and before them those that have another name by now.
    pub(crate) objects: Vec<(Known, Object)>,
    /// Rows, which replace those of the same keys.
    pub(crate) rows: Vec<Row>,
}

/// What is under way of all objects.
#[derive(Default, Debug)]
pub(crate) struct Recorder {
    ids: Ids,
    /// Objects that lost their name to another one since the file was written.
    replaced: Vec<(Known, Object)>,
    /// In the order of their names, for each kind.
    tracks: BTreeMap<Kind, Vec<(String, Track)>>,
    /// Where the object after the one that was read last stands: readings come in the order of
    /// names mostly, and then none is searched.
    at: (Option<Kind>, usize),
    newest: u64,
    closed: Vec<Row>,
    /// Memory for the figures of a reading.
    grown: Vec<(Metric, u64)>,
}

impl Recorder {
    /// Objects that a file knows by these numbers.
    pub(crate) fn know(&mut self, objects: impl IntoIterator<Item = (Known, Object)>) {
        for (known, object) in objects {
            self.ids.insert(object, known);
        }
    }

    /// The number of an object, where it has one.
    pub(crate) fn id(&self, object: &Object) -> Option<u32> {
        self.ids.get(object).map(|known| known.id)
    }

    /// An object has another name from now on, and takes along what is known of it. What was known
    /// by that name before was another one's: it goes by its identity, and is let go where it has
    /// none. Its number, where it has one.
    pub(crate) fn rename(&mut self, from: &Object, to: &str) -> Option<u32> {
        let known = self.ids.remove(from)?;
        let id = known.id;
        let renamed = Object {
            kind: from.kind,
            name: to.to_owned(),
        };
        self.replace(&renamed);
        self.ids.insert(renamed, known);
        let tracks = self.tracks.entry(from.kind).or_default();
        if let Ok(at) = place(tracks, to) {
            tracks.remove(at);
        }
        if let Ok(at) = place(tracks, &from.name) {
            let (_, track) = tracks.remove(at);
            let at = place(tracks, to).unwrap_or_else(|at| at);
            tracks.insert(at, (to.to_owned(), track));
        }
        self.at = (None, 0);
        Some(id)
    }

    /// Another object gets the name of this one, whose figures stay under its identity.
    fn replace(&mut self, object: &Object) {
        let Some(known) = self.ids.remove(object) else {
            return;
        };
        let Some(identity) = &known.identity else {
            return;
        };
        let gone = Object {
            kind: object.kind,
            name: identity.to_string(),
        };
        let tracks = self.tracks.entry(object.kind).or_default();
        if let Ok(at) = place(tracks, &object.name) {
            let (_, track) = tracks.remove(at);
            let at = place(tracks, &gone.name).unwrap_or_else(|at| at);
            tracks.insert(at, (gone.name.clone(), track));
        }
        self.ids.insert(gone.clone(), known.clone());
        self.replaced.push((known, gone));
    }

    /// Where the line of what is read begins or goes on. It goes by its identity, where it has one:
    /// one that is known by another name takes its figures along; one that had this name is over,
    /// and keeps its figures.
    fn admit(&mut self, reading: &Reading<'_>) -> usize {
        let object = Object {
            kind: reading.kind,
            name: reading.name.to_owned(),
        };
        let identity = reading.identity.map(Arc::<str>::from);
        if let Some(identity) = &identity {
            let before = self.ids.get(&object).and_then(|it| it.identity.as_ref());
            if before.is_some_and(|before| before != identity) {
                self.replace(&object);
            }
            if let Some(other) = self.ids.elsewhere(&object, identity) {
                self.rename(&other, reading.name);
            }
        }
        let id = self.ids.know(object, identity.clone());
        let tracks = self.tracks.entry(reading.kind).or_default();
        let at = place(tracks, reading.name).unwrap_or_else(|at| {
            tracks.insert(at, (reading.name.to_owned(), Track::new(id, 0)));
            at
        });
        tracks[at].1.identity = identity;
        at
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
            .map(|(object, known)| (known.id, object.clone()))
            .collect();
        for (id, chunk) in chunks {
            let Some(Object { kind, name }) = names.get(&id) else {
                continue;
            };
            let tracks = self.tracks.entry(*kind).or_default();
            let at = place(tracks, name).unwrap_or_else(|at| {
                tracks.insert(at, (name.clone(), Track::new(id, now)));
                at
            });
            tracks[at].1.restore(now, chunk);
        }
    }

    /// Forgets what is under way, because the clock was set back to `now`.
    pub(crate) fn set_back(&mut self, now: u64) {
        self.tracks.clear();
        self.newest = now;
    }

    /// Takes what was read in a second. A second that is not newer than what was taken is passed
    /// over.
    #[cfg(test)]
    pub(crate) fn push(&mut self, second: u64, readings: &[Reading<'_>]) {
        if self.begin(second) {
            readings.iter().for_each(|reading| self.take(reading));
        }
    }

    /// What is taken from now on was read in this second. `false`: it is not newer than what was
    /// taken, and nothing of it is to be taken.
    pub(crate) fn begin(&mut self, second: u64) -> bool {
        let is_newer = second > self.newest;
        if is_newer {
            self.newest = second;
            self.at = (None, 0);
        }
        is_newer
    }

    /// Takes what was read of an object in the second that began.
    pub(crate) fn take(&mut self, reading: &Reading<'_>) {
        let tracks = self.tracks.entry(reading.kind).or_default();
        let next = match self.at {
            (Some(kind), at) if kind == reading.kind => at,
            _ => 0,
        };
        let is_next = tracks.get(next).is_some_and(|it| it.0 == reading.name);
        let found = if is_next {
            Ok(next)
        } else {
            place(tracks, reading.name)
        };
        let is_it = |at: &usize| tracks[*at].1.identity.as_deref() == reading.identity;
        let found = found.ok().filter(is_it);
        let at = found.unwrap_or_else(|| self.admit(reading));
        let tracks = self.tracks.entry(reading.kind).or_default();
        let memory = (&mut self.grown, &mut self.closed);
        tracks[at].1.take(self.newest, &reading.figures, memory);
        self.at = (Some(reading.kind), at + 1);
    }

    /// What a file lacks: chunks that are full, and of the coarse tiers those that are under way.
    /// `all`: of the finest tier as well.
    pub(crate) fn drain(&mut self, all: bool) -> Drained {
        let mut rows = std::mem::take(&mut self.closed);
        let mut objects = std::mem::take(&mut self.replaced);
        let now = self.newest;
        for (kind, tracks) in &mut self.tracks {
            tracks.retain_mut(|(name, track)| {
                let had = rows.len();
                track.drain(now, all, &mut rows);
                if rows.len() > had {
                    let name = name.clone();
                    let known = Known {
                        id: track.id,
                        identity: track.identity.clone(),
                    };
                    objects.push((known, Object { kind: *kind, name }));
                }
                // A chunk that is under way is written again from here.
                let is_under_way = TIERS[2].chunk(track.last) == TIERS[2].chunk(now);
                is_under_way || track.last + FORGOTTEN > now
            });
        }
        Drained { objects, rows }
    }

    /// What is under way of an object in a tier: its chunk, with the point that is under way.
    pub(crate) fn under_way(&self, object: &Object, tier: Tier) -> Option<Chunk> {
        let tracks = self.tracks.get(&object.kind)?;
        let at = place(tracks, &object.name).ok()?;
        Some(tracks[at].1.under_way(tier))
    }
}

/// Where an object is, or where it belongs.
fn place(tracks: &[(String, Track)], name: &str) -> Result<usize, usize> {
    tracks.binary_search_by(|(known, _)| known.as_str().cmp(name))
}
