//! Which of the members that were found fit together, and how far the pool can be used.
//!
//! **Invariants.** I1: the table that holds is that of the newest event. I2: a member is used only where it has the last event
//! that the newest superblock expects of it, or the one before, which a crash may have left. I3: of two that say they are the
//! same member, neither is used.

use crate::superblock::{DATA_OFFSET, Found, LunId, Superblock};
use formats::Damage;
use std::fmt;

/// Something that was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Where.
    pub path: String,
    /// The device's serial number, where it has one.
    pub serial: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes of its physical blocks.
    pub physical_block_bytes: u32,
    /// What stands on it, or why that cannot be told.
    pub found: Result<Found, Unreadable>,
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
    /// It was used without the others, which were used without it: nobody can tell which of them is right.
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
    let (at, newest) = found()
        .max_by_key(|(_, block)| block.event)
        .ok_or(Refused::NoMember)?;
    let differs = |block: &Superblock| {
        block.event == newest.event
            && Superblock {
                member: newest.member,
                ..block.clone()
            } != *newest
    };
    if let Some((other, _)) = found().find(|(_, block)| differs(block)) {
        return Err(Refused::Contradiction(at, other));
    }
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
    Ok(Assembly {
        table,
        states,
        strangers,
    })
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
    if block.event.saturating_add(1) < member.last_event || block.member != number {
        return State::Stale {
            seen: place,
            event: block.event,
        };
    }
    if block.event > member.last_event {
        return State::Diverged {
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

    /// The members that keep a LUN from being served; none where it can be. A LUN that has nothing here cannot be served
    /// anyway.
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

    /// The superblocks that the next event writes: the place of each among what was seen, with its table. Members that are not
    /// there stay as they are known.
    #[must_use]
    pub fn next(&self, change: impl FnOnce(&mut Superblock)) -> Vec<(usize, Superblock)> {
        let mut table = self.table.clone();
        table.event += 1;
        change(&mut table);
        let present: Vec<(u16, usize)> = (0_u16..)
            .zip(&self.states)
            .filter_map(|(number, _)| Some((number, self.place_of(number)?)))
            .collect();
        for (number, _) in &present {
            if let Some(member) = table.members.get_mut(usize::from(*number)) {
                member.last_event = table.event;
            }
        }
        let blocks = present.into_iter().map(|(number, place)| {
            let block = Superblock {
                member: number,
                ..table.clone()
            };
            (place, block)
        });
        blocks.collect()
    }

    /// The same after what [`Assembly::next`] told is stable everywhere.
    #[must_use]
    pub fn after(mut self, written: &[(usize, Superblock)]) -> Self {
        if let Some((_, block)) = written.first() {
            self.table = block.clone();
        }
        self
    }
}
