//! How a pool of members is, in words: which members are there, and which are missing.

use super::domains;
use super::{Assembled, MemberPool, There};
use crate::pool::late;
use env::CoreHandle;
use manifest::config::Layout;
use manifest::facts::MemberFacts;
use members::{LunId, State};
use state::remembered::{self, Remembered};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use volume::{OpenError, OpenErrorKind};

pub(crate) const fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Span => "span",
        Layout::Stripe => "stripe",
    }
}

/// A pool's facts as `pool show` shows them.
#[derive(Default)]
pub(crate) struct MemberPoolFacts {
    pub(crate) total: u64,
    pub(crate) available: u64,
    pub(crate) event: Option<u64>,
    pub(crate) problem: Option<String>,
    pub(crate) members: Vec<MemberFacts>,
    pub(crate) notes: Vec<String>,
}

impl MemberPool {
    /// Reads what the members were.
    pub(crate) async fn recall(&self, core: &CoreHandle) {
        // Without it a member that is away has no name, and all else is the same.
        let known = match remembered::read(core, &self.memory).await {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                tracing::warn!(
                    "what the members of pool {} were is not known: {}: {error}",
                    self.name,
                    self.memory.display()
                );
                Vec::new()
            }
        };
        *self.known.borrow_mut() = known;
    }

    /// Keeps what the members are that are there now.
    pub(crate) async fn remember(&self, core: &CoreHandle) {
        let now = self.there(|there| {
            let members = (0_u16..).zip(&there.assembly.table.members);
            let all = members.filter_map(|(number, member)| {
                let known = || Remembered::find(&self.known.borrow(), member.id);
                let place = there.assembly.place_of(number);
                let Some(inspected) = place.and_then(|at| there.inspected.get(at)) else {
                    return known();
                };
                let seen = &inspected.seen;
                Some(Remembered::of(
                    member.id,
                    seen.path.clone(),
                    seen.serial.clone(),
                ))
            });
            all.collect::<Vec<Remembered>>()
        });
        let Ok(now) = now else { return };
        if *self.known.borrow() == now && self.unsaved.borrow().is_none() {
            return;
        }
        self.known.borrow_mut().clone_from(&now);
        let written = remembered::write(core, &self.memory, &now).await;
        *self.unsaved.borrow_mut() = written.err().map(|error| late::not_taken(&error));
    }

    /// What could not be written down of it.
    pub(crate) fn is_kept(&self) -> Result<(), OpenError> {
        self.unsaved.borrow().clone().map_or(Ok(()), Err)
    }

    /// The file in `state_dir` that remembers the members.
    pub(crate) fn memory(&self) -> &Path {
        &self.memory
    }

    /// A stripe is lost with any of the disks and cards that it is on.
    pub(crate) async fn note_domains(&self, core: &CoreHandle) {
        let mut notes = Vec::new();
        if self.layout == Layout::Stripe {
            let mut all = BTreeSet::new();
            for path in &self.paths {
                all.extend(domains::domain(core, path).await);
            }
            if all.len() > 1 {
                let all: Vec<String> = all.into_iter().collect();
                notes.push(format!(
                    "its stripes cross {} failure domains ({}): every LUN is lost with any of them; layout = \"span\" loses \
                     only those on it",
                    all.len(),
                    all.join("; ")
                ));
            }
        }
        *self.notes.borrow_mut() = notes;
    }

    /// The members that a LUN lacks, by path, serial and last event.
    pub(super) fn lacks(&self, there: &There, missing: &[u16]) -> OpenError {
        let all = missing.iter().map(|number| self.away(there, *number));
        let all = all.collect::<Vec<String>>().join("; ");
        OpenError {
            kind: OpenErrorKind::Missing,
            cause: format!("pool {} lacks {all}", self.name),
            next_step: "bring it back: the LUN then goes online by itself".to_owned(),
        }
    }

    /// Such as `member 1 (/dev/sdb, serial X, last event 7): absent`.
    fn away(&self, there: &There, number: u16) -> String {
        let facts = self.member(there, number);
        let serial = facts
            .serial
            .map_or_else(String::new, |serial| format!("serial {serial}, "));
        format!(
            "member {number} ({}, {serial}last event {}): {}",
            facts.path, facts.last_event, facts.state
        )
    }

    /// The members on which a LUN and its sidecars have a part, by number.
    pub(crate) fn members_of(&self, lun: LunId) -> Vec<u16> {
        let all = self.all_of(lun);
        let members = self.there(|there| {
            let parts = all
                .iter()
                .flat_map(|id| there.assembly.table.members_of(*id));
            parts.collect::<BTreeSet<u16>>()
        });
        members
            .map(|all| all.into_iter().collect())
            .unwrap_or_default()
    }

    fn member(&self, there: &There, number: u16) -> MemberFacts {
        let assembly = &there.assembly;
        let at = usize::from(number);
        let member = assembly.table.members.get(at);
        let last_event = member.map_or(0, |member| member.last_event);
        let path = |at: usize| {
            let inspected = there.inspected.get(at);
            inspected.map_or_else(|| "?".to_owned(), |it| it.seen.path.clone())
        };
        let state = assembly.states.get(at).copied().unwrap_or(State::Absent);
        let (place, words) = match state {
            State::Present(at) => (Some(at), "present".to_owned()),
            State::Absent => (None, "absent".to_owned()),
            State::Stale { seen, event } => (
                Some(seen),
                format!("stale: it has event {event}; it was away, or is an old copy"),
            ),
            State::Diverged { seen, event } => (
                Some(seen),
                format!("diverged: it has event {event}; it was used without the others"),
            ),
            State::Twice(one, other) => (
                Some(one),
                format!(
                    "twice: {} and {} both say that they are it",
                    path(one),
                    path(other)
                ),
            ),
            State::TooSmall(at) => (Some(at), "smaller than it was".to_owned()),
            State::OtherBlocks(at) => (
                Some(at),
                "its physical blocks have another size than the pool's".to_owned(),
            ),
        };
        let seen = place
            .and_then(|at| there.inspected.get(at))
            .map(|it| &it.seen);
        let known = member.and_then(|it| Remembered::find(&self.known.borrow(), it.id));
        let event = seen.and_then(|seen| Some(seen.found.as_ref().ok()?.superblock.event));
        MemberFacts {
            member: Some(number),
            path: match (seen, &known) {
                (Some(seen), _) => seen.path.clone(),
                (None, Some(known)) => known.path.clone(),
                (None, None) => "?".to_owned(),
            },
            serial: match seen {
                Some(seen) => seen.serial.clone(),
                None => known.and_then(|known| known.serial),
            },
            // What is there was written with the events since.
            event: match state {
                State::Present(_) => Some(last_event),
                State::Absent
                | State::Stale { .. }
                | State::Diverged { .. }
                | State::Twice(..)
                | State::TooSmall(_)
                | State::OtherBlocks(_) => event,
            },
            last_event,
            size_bytes: seen.map(|seen| seen.bytes),
            taken_bytes: 0,
            disks: Vec::new(),
            state: words,
        }
    }

    /// What keeps it from being whole.
    pub(crate) fn problem(&self) -> Option<String> {
        match &*self.state.borrow() {
            Assembled::Not(error) => Some(error.to_string()),
            Assembled::There(there) => {
                let numbers = (0_u16..).zip(&there.assembly.states);
                let away = numbers.filter(|(_, state)| !matches!(state, State::Present(_)));
                let away: Vec<String> = away.map(|(number, _)| self.away(there, number)).collect();
                let lacks = (!away.is_empty()).then(|| {
                    format!(
                        "it lacks {}; LUNs without a part there are served, and nothing is made or grown",
                        away.join("; ")
                    )
                });
                let torn = there.torn.as_ref().map(|why| {
                    format!(
                        "{}: nothing is made or grown until it was read again; {}",
                        why.cause, why.next_step
                    )
                });
                let all: Vec<String> = lacks.into_iter().chain(torn).collect();
                (!all.is_empty()).then(|| all.join("; "))
            }
        }
    }

    /// The pool and its members as `pool show` has them.
    pub(crate) fn facts(&self) -> MemberPoolFacts {
        let problem = self.problem();
        let notes = self.notes.borrow().clone();
        let facts = self.there(|there| {
            let table = &there.assembly.table;
            let (total, available) = table.room();
            let numbers = (0_u16..).zip(&table.members);
            let mut members: Vec<MemberFacts> = numbers
                .zip(table.taken())
                .map(|((number, _), taken_bytes)| MemberFacts {
                    taken_bytes,
                    ..self.member(there, number)
                })
                .collect();
            members.extend(there.assembly.strangers.iter().filter_map(|(at, why)| {
                let seen = &there.inspected.get(*at)?.seen;
                Some(MemberFacts {
                    member: None,
                    path: seen.path.clone(),
                    serial: seen.serial.clone(),
                    event: None,
                    last_event: 0,
                    size_bytes: Some(seen.bytes),
                    taken_bytes: 0,
                    disks: Vec::new(),
                    state: why.clone(),
                })
            }));
            (total, available, table.event, members)
        });
        match facts {
            Err(_) => MemberPoolFacts {
                problem,
                ..MemberPoolFacts::default()
            },
            Ok((total, available, event, members)) => MemberPoolFacts {
                total,
                available,
                event: Some(event),
                problem,
                members,
                notes,
            },
        }
    }

    /// Bytes that a LUN's chunks take, and those of its sidecars.
    pub(crate) fn bytes_of(&self, lun: LunId) -> Option<u64> {
        let all = self.all_of(lun);
        self.there(|there| {
            let table = &there.assembly.table;
            let own = table.bytes_of(lun)?;
            let sidecar = all.iter().skip(1).filter_map(|id| table.bytes_of(*id));
            Some(own + sidecar.sum::<u64>())
        })
        .ok()?
    }
}
