//! Which of the members that were found fit together, and how far the pool can be used.
//!
//! **Invariants.** I1: the table that holds is that of the newest event. I2: a member is used only
//! where it has the last event that the newest superblock expects of it, or the one that it had
//! before or was to have next, which a crash may have left. I3: of two that say they are the same
//! member, neither is used. I4: nothing is written over the newest superblock of a member but its
//! own bytes.

use crate::superblock::{DATA_OFFSET, Found, LunId, Superblock, find, offset_of};
use formats::Damage;
use std::collections::BTreeMap;
use std::fmt;

/// Something that was inspected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The path that was inspected.
    pub path: String,
    /// The device's serial number, where it has one.
    pub serial: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// 512 or 4096, as the device says; members of one pool have the same.
    pub physical_block_bytes: u32,
    /// What stands on it, or why that cannot be read.
    pub found: Result<Found, Unreadable>,
}

impl Seen {
    /// Something of so many bytes, by what stands in both places. `device`: bytes of a device's
    /// physical blocks; a file has whatever the pool was made with.
    #[must_use]
    pub fn of(
        (path, serial): (String, Option<String>),
        bytes: u64,
        device: Option<u32>,
        [even, odd]: [&[u8]; 2],
    ) -> Self {
        let found = find(even, odd).map_err(Unreadable::Damaged);
        let of_pool = found.as_ref();
        let of_pool = of_pool.map_or(0, |it| it.superblock.physical_block_bytes);
        Self {
            path,
            serial,
            bytes,
            physical_block_bytes: device.unwrap_or(of_pool),
            found,
        }
    }

    /// Something that is not there, or cannot be read: what the system says.
    #[must_use]
    pub fn missing((path, serial): (String, Option<String>), why: String) -> Self {
        Self {
            path,
            serial,
            bytes: 0,
            physical_block_bytes: 0,
            found: Err(Unreadable::Missing(why)),
        }
    }
}

/// Why nothing is known of what stands on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// It is not there, or cannot be read: what the system says.
    Missing(String),
    /// What stands there is no superblock, or a damaged one.
    Damaged(Damage),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(why) => f.write_str(why),
            Self::Damaged(Damage::Foreign) => f.write_str("it is no member of a pool"),
            Self::Damaged(damage) => write!(f, "its superblock cannot be used: {damage}"),
        }
    }
}

/// How a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is there: its place among what was seen.
    Present(usize),
    /// Nobody has seen it.
    Absent,
    /// It misses changes: it was away while the pool was used, or is an old copy.
    Stale {
        /// Its place among what was seen.
        seen: usize,
        /// Its event.
        event: u64,
    },
    /// It was used without the others, which were used without it: nobody can say which of them is
    /// right.
    Diverged {
        /// Its place among what was seen.
        seen: usize,
        /// Its event.
        event: u64,
    },
    /// Two say that they are it: their places among what was seen.
    Twice(usize, usize),
    /// It is smaller than it was.
    TooSmall(usize),
    /// Its physical blocks are of another size than the pool's.
    OtherBlocks(usize),
}

/// A pool as far as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembly {
    /// The newest superblock.
    pub table: Superblock,
    /// How each member is, in order.
    pub states: Vec<State>,
    /// What was seen and is no member: its place, and why.
    pub strangers: Vec<(usize, String)>,
    /// What stands on each member that is there, by its number.
    events: BTreeMap<u16, u64>,
}

/// Why nothing can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Nothing that was seen is a member.
    NoMember,
    /// Members of several pools: the places of the first two that differ.
    SeveralPools(usize, usize),
    /// Two superblocks of one event say different things: their places.
    Contradiction(usize, usize),
}

/// Puts together what was seen.
///
/// # Errors
/// Why none of it can be used.
pub fn assemble(seen: &[Seen]) -> Result<Assembly, Refused> {
    let found = || {
        let all = seen.iter().enumerate();
        all.filter_map(|(at, seen)| Some((at, &seen.found.as_ref().ok()?.superblock)))
    };
    let (first, known) = found().next().ok_or(Refused::NoMember)?;
    if let Some((other, _)) = found().find(|(_, block)| block.pool != known.pool) {
        return Err(Refused::SeveralPools(first, other));
    }
    let newest = newest(found().collect())?;
    let states = (0_u16..).zip(&newest.members).map(|(number, member)| {
        let is_it = |block: &Superblock| {
            let own = block.members.get(usize::from(block.member));
            own.is_some_and(|own| own.id == member.id)
        };
        let mut claims = found().filter(|(_, block)| is_it(block));
        let Some((place, block)) = claims.next() else {
            return State::Absent;
        };
        if let Some((other, _)) = claims.next() {
            return State::Twice(place, other);
        }
        judge(newest, number, place, block, seen)
    });
    let table = newest.clone();
    let states: Vec<State> = states.collect();
    let strangers = strangers(&table, seen);
    let events = (0_u16..).zip(&states).filter_map(|(number, state)| {
        let State::Present(place) = state else {
            return None;
        };
        Some((number, superblock(seen, *place)?.event))
    });
    Ok(Assembly {
        events: events.collect(),
        table,
        states,
        strangers,
    })
}

/// The newest superblock. Of two events with one number, which two crashes may leave where each
/// began one without the other's members, it is the one that knows the other as just begun.
fn newest(mut found: Vec<(usize, &Superblock)>) -> Result<&Superblock, Refused> {
    let event = found.iter().map(|(_, block)| block.event).max();
    found.retain(|(_, block)| Some(block.event) == event);
    // Whatever the order in which they are seen.
    found.sort_by_key(|(_, block)| block.member);
    let mut refused = Refused::NoMember;
    for (at, one) in &found {
        let differs = |(_, block): &&(usize, &Superblock)| {
            let same = Superblock {
                member: one.member,
                ..(*block).clone()
            };
            same != **one && !is_begun(one, block)
        };
        match found.iter().find(differs) {
            None => return Ok(one),
            Some((other, _)) => refused = Refused::Contradiction(*at, *other),
        }
    }
    Err(refused)
}

/// By what `one` knows, the other's member was just at the event before.
fn is_begun(one: &Superblock, other: &Superblock) -> bool {
    let id = other.members.get(usize::from(other.member)).map(|it| it.id);
    let known = one.members.iter().find(|it| Some(it.id) == id);
    known.is_some_and(|it| it.last_event.saturating_add(1) == other.event)
}

fn judge(
    newest: &Superblock,
    number: u16,
    place: usize,
    block: &Superblock,
    seen: &[Seen],
) -> State {
    let Some((member, device)) = newest.members.get(usize::from(number)).zip(seen.get(place))
    else {
        return State::Absent;
    };
    // One more was begun without the others, and whoever uses a member by itself writes two before
    // it touches data.
    let begun = member.last_event.saturating_add(1);
    if block.event > begun {
        return State::Diverged {
            seen: place,
            event: block.event,
        };
    }
    let expected = [member.before, member.last_event, begun].contains(&block.event);
    if !expected || block.member != number {
        return State::Stale {
            seen: place,
            event: block.event,
        };
    }
    if device.physical_block_bytes != newest.physical_block_bytes {
        return State::OtherBlocks(place);
    }
    let needs = u64::from(member.chunks)
        .saturating_mul(newest.chunk_bytes)
        .saturating_add(DATA_OFFSET);
    if device.bytes < needs {
        return State::TooSmall(place);
    }
    State::Present(place)
}

fn superblock(seen: &[Seen], place: usize) -> Option<&Superblock> {
    let found = seen.get(place)?.found.as_ref().ok()?;
    Some(&found.superblock)
}

fn strangers(table: &Superblock, seen: &[Seen]) -> Vec<(usize, String)> {
    let why = |seen: &Seen| match &seen.found {
        Err(unreadable) => Some(unreadable.to_string()),
        Ok(found) => {
            let block = &found.superblock;
            let own = block.members.get(usize::from(block.member));
            let known = own.is_some_and(|own| table.members.iter().any(|one| one.id == own.id));
            (!known).then(|| "it is no member of this pool any more".to_owned())
        }
    };
    let all = seen.iter().enumerate();
    all.filter_map(|(at, seen)| Some((at, why(seen)?)))
        .collect()
}

impl Assembly {
    /// Every member is there: LUNs may be made, grown and given back.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.states
            .iter()
            .all(|state| matches!(state, State::Present(_)))
    }

    /// The members that keep a LUN from being served; none where it can be. A LUN that has nothing
    /// here cannot be served anyway.
    #[must_use]
    pub fn missing_for(&self, lun: LunId) -> Vec<u16> {
        let needed = self.table.members_of(lun).into_iter();
        let lacks = |number: &u16| {
            !matches!(
                self.states.get(usize::from(*number)),
                Some(State::Present(_))
            )
        };
        needed.filter(lacks).collect()
    }

    /// What was seen of a member, where it is there.
    #[must_use]
    pub fn place_of(&self, member: u16) -> Option<usize> {
        match self.states.get(usize::from(member)) {
            Some(State::Present(place)) => Some(*place),
            Some(
                State::Absent
                | State::Stale { .. }
                | State::Diverged { .. }
                | State::Twice(..)
                | State::TooSmall(_)
                | State::OtherBlocks(_),
            )
            | None => None,
        }
    }

    /// The superblocks that were seen on the members that are there. They are to be written again
    /// where they stand, before the next event: what a cache answered after a sync had failed may
    /// not be on the disk, and then only the other place is.
    #[must_use]
    pub fn again(&self, seen: &[Seen]) -> Vec<(usize, Superblock)> {
        let places = (0_u16..).zip(&self.states);
        let places = places.filter_map(|(number, _)| self.place_of(number));
        places
            .filter_map(|place| Some((place, superblock(seen, place)?.clone())))
            .collect()
    }

    /// So many events were written since that a copy of a member from that time, or before, is
    /// refused: data may be touched.
    #[must_use]
    pub fn has_gone_on_since(&self, event: u64) -> bool {
        let mut present = self.events.keys();
        present.all(|number| {
            let member = self.table.members.get(usize::from(*number));
            member.is_some_and(|member| member.before > event)
        })
    }

    /// The superblocks that the next event writes: the place of each among what was seen, with its
    /// table. Members that are not there stay as they are known, and so do those whose newest
    /// superblock stands where this one goes, after a crash or when they were away: the event after
    /// it is written to them as well.
    #[must_use]
    pub fn next(&self, change: impl FnOnce(&mut Superblock)) -> Vec<(usize, Superblock)> {
        let mut table = self.table.clone();
        table.event += 1;
        let has_room = |event: u64, has: u64| offset_of(has) != offset_of(event);
        if !self.events.values().any(|has| has_room(table.event, *has)) {
            table.event += 1;
        }
        change(&mut table);
        let event = table.event;
        let present = self.events.iter().filter_map(|(number, has)| {
            let place = self.place_of(*number)?;
            has_room(event, *has).then_some((*number, place, *has))
        });
        let present: Vec<(u16, usize, u64)> = present.collect();
        for (number, _, has) in &present {
            if let Some(member) = table.members.get_mut(usize::from(*number)) {
                (member.last_event, member.before) = (table.event, *has);
            }
        }
        let present = present
            .into_iter()
            .map(|(number, place, _)| (number, place));
        let blocks = present.map(|(number, place)| {
            let block = Superblock {
                member: number,
                ..table.clone()
            };
            (place, block)
        });
        blocks.collect()
    }

    /// The same after what [`Assembly::next`] returned is stable everywhere.
    #[must_use]
    pub fn after(mut self, written: &[(usize, Superblock)]) -> Self {
        for (_, block) in written {
            self.events.insert(block.member, block.event);
        }
        if let Some((_, block)) = written.first() {
            self.table = block.clone();
        }
        self
    }
}
