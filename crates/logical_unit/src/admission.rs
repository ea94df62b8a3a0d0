//! One core's half of the task set: who may touch the medium now.
//!
//! ```text
//!   arrive ----> [arrived] --admit--> [running] --leave-->
//!                   |  ^                  |
//!                   |  +-- blocked by a hold, asks again when something changed
//!                   +----leave (aborted)------------------->
//! ```
//!
//! A synchronous machine without I/O. Plain reads and writes pass it with one insertion and one
//! removal in a slab; nothing is locked, because every core has its own.
//!
//! **Invariants.**
//! I1: no task runs inside an exclusive hold but the one that owns it and those that ran before.
//! I2: no task that arrived after an ordered hold runs while the hold stands.
//! I3: a hold is drained once nothing runs any more that it waits for, and stays drained.
//!
//! **Spec.** SAM-5 "Task set management"; task set type 000b (one task set for all I_T nexuses).

use units::LbaRange;

/// A task in this core's half of the task set.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct TaskId {
    place: usize,
    arrival: u64,
}

impl TaskId {
    /// Tasks of this core that arrived later have a higher one.
    pub(crate) fn arrival(self) -> u64 {
        self.arrival
    }
}

/// Names a hold on all cores.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct HoldId {
    /// The core that asked for it.
    pub(crate) core: u16,
    /// Unique on that core.
    pub(crate) number: u64,
}

/// What a hold stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HoldKind {
    /// Everything that touches these blocks; waits for what touches them now.
    Range(LbaRange),
    /// Everything that touches the medium; waits for all that does, quarantined writes excepted.
    All,
    /// Everything that arrives later; waits for all that arrived before (ORDERED).
    Order,
}

impl HoldKind {
    /// Both may stand at once.
    pub(crate) fn agrees_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Range(a), Self::Range(b)) => !a.overlaps(b),
            (Self::Order, Self::Order) | (Self::All, Self::Range(_) | Self::All) => false,
            (Self::Range(_), Self::All) => false,
            (Self::Order, Self::Range(_) | Self::All)
            | (Self::Range(_) | Self::All, Self::Order) => true,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    id: HoldId,
    kind: HoldKind,
    /// Tasks that arrived before this moment are older than the hold.
    arrival: u64,
    /// The task that it serves, where it lives on this core.
    owner: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Free {
        next: Option<usize>,
    },
    Arrived,
    Running {
        touches: Option<LbaRange>,
        quarantined: bool,
    },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    arrival: u64,
    stage: Stage,
}

/// The machine.
#[derive(Default, Debug)]
pub(crate) struct Admission {
    entries: Vec<Entry>,
    free: Option<usize>,
    arrivals: u64,
    holds: Vec<Hold>,
    live: usize,
}

impl Admission {
    /// A task has arrived.
    pub(crate) fn arrive(&mut self) -> TaskId {
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.live += 1;
        let entry = Entry {
            arrival,
            stage: Stage::Arrived,
        };
        if let Some(place) = self.free {
            let Stage::Free { next } = self.entries[place].stage else {
                unreachable!("the free list holds free places")
            };
            self.free = next;
            self.entries[place] = entry;
            return TaskId { place, arrival };
        }
        self.entries.push(entry);
        TaskId {
            place: self.entries.len() - 1,
            arrival,
        }
    }

    /// The task wants to run, touching `touches` (`None`: no block in particular, such as a flush).
    /// `head_of_queue` passes ordered holds. `false`: ask again after the next change.
    pub(crate) fn admit(
        &mut self,
        task_id: TaskId,
        touches: Option<LbaRange>,
        head_of_queue: bool,
    ) -> bool {
        let may = self.holds.is_empty()
            || !self
                .holds
                .iter()
                .any(|hold| hold.stops(task_id, touches, head_of_queue));
        if may {
            let entry = self.entry_mut(task_id);
            entry.stage = Stage::Running {
                touches,
                quarantined: false,
            };
        }
        may
    }

    /// The task has left the task set. `true` where somebody may wait for that.
    pub(crate) fn leave(&mut self, task_id: TaskId) -> bool {
        let next = self.free;
        let entry = self.entry_mut(task_id);
        entry.stage = Stage::Free { next };
        self.free = Some(task_id.place);
        self.live -= 1;
        !self.holds.is_empty()
    }

    /// The blocks that a task touches now.
    pub(crate) fn touches(&self, task_id: TaskId) -> Option<LbaRange> {
        let entry = self.entries.get(task_id.place);
        match entry
            .filter(|entry| entry.arrival == task_id.arrival)?
            .stage
        {
            Stage::Running { touches, .. } => touches,
            Stage::Arrived | Stage::Free { .. } => None,
        }
    }

    /// A running task was aborted while the backend still has its write: it keeps its blocks, and
    /// holds on everything no longer wait for it.
    pub(crate) fn quarantine(&mut self, task_id: TaskId) -> Option<LbaRange> {
        match &mut self.entry_mut(task_id).stage {
            Stage::Running {
                touches,
                quarantined,
            } => {
                *quarantined = true;
                *touches
            }
            Stage::Arrived => None,
            Stage::Free { .. } => unreachable!("task ids are used while the task lives"),
        }
    }

    /// Starts a hold. Installing it again (an ordered hold is first installed where its task
    /// arrived) changes nothing.
    pub(crate) fn install(&mut self, id: HoldId, kind: HoldKind, owner: Option<TaskId>) {
        if self.holds.iter().any(|hold| hold.id == id) {
            return;
        }
        let arrival = owner.map_or(self.arrivals, |task_id| task_id.arrival);
        self.holds.push(Hold {
            id,
            kind,
            arrival,
            owner,
        });
    }

    /// Nothing runs any more that the hold waits for. A hold that is not there waits for nothing.
    pub(crate) fn drained(&self, id: HoldId) -> bool {
        let Some(hold) = self.holds.iter().find(|hold| hold.id == id) else {
            return true;
        };
        let owner = hold.owner.map(|task_id| task_id.arrival);
        !self
            .entries
            .iter()
            .any(|entry| Some(entry.arrival) != owner && hold.waits_for(entry))
    }

    /// Ends a hold.
    pub(crate) fn remove(&mut self, id: HoldId) {
        self.holds.retain(|hold| hold.id != id);
    }

    /// Tasks that have arrived and not left.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    fn entry_mut(&mut self, task_id: TaskId) -> &mut Entry {
        let entry = &mut self.entries[task_id.place];
        assert_eq!(
            entry.arrival, task_id.arrival,
            "a task id is used only while its task lives"
        );
        entry
    }
}

impl Hold {
    fn stops(&self, task_id: TaskId, touches: Option<LbaRange>, head_of_queue: bool) -> bool {
        if self.owner == Some(task_id) {
            return false;
        }
        match self.kind {
            HoldKind::Range(range) => touches.is_some_and(|touched| touched.overlaps(range)),
            HoldKind::All => true,
            HoldKind::Order => !head_of_queue && task_id.arrival >= self.arrival,
        }
    }

    fn waits_for(&self, entry: &Entry) -> bool {
        match (entry.stage, self.kind) {
            (Stage::Free { .. }, _) | (Stage::Arrived, HoldKind::Range(_) | HoldKind::All) => false,
            (Stage::Arrived, HoldKind::Order) => entry.arrival < self.arrival,
            (Stage::Running { touches, .. }, HoldKind::Range(range)) => {
                touches.is_some_and(|touched| touched.overlaps(range))
            }
            (Stage::Running { quarantined, .. }, HoldKind::All) => !quarantined,
            (Stage::Running { quarantined, .. }, HoldKind::Order) => {
                !quarantined && entry.arrival < self.arrival
            }
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use units::{BlockCount, Lba};

    fn blocks(start: u64, len: u64) -> Option<LbaRange> {
        LbaRange::new(Lba(start), BlockCount(len))
    }

    const ONE: HoldId = HoldId { core: 0, number: 1 };
    const TWO: HoldId = HoldId { core: 1, number: 1 };

    #[test]
    fn a_range_hold_stops_overlapping_tasks_and_waits_for_running_ones() {
        let mut admission = Admission::default();
        let running = admission.arrive();
        assert!(admission.admit(running, blocks(0, 8), false));
        let owner = admission.arrive();
        admission.install(ONE, HoldKind::Range(blocks(4, 8).unwrap()), Some(owner));
        assert!(!admission.drained(ONE));
        let (inside, outside) = (admission.arrive(), admission.arrive());
        assert!(!admission.admit(inside, blocks(11, 1), false));
        assert!(admission.admit(outside, blocks(12, 1), false));
        assert!(admission.leave(running));
        assert!(admission.drained(ONE));
        assert!(admission.admit(owner, blocks(4, 8), false));
        assert!(admission.drained(ONE), "the owner is not waited for");
        admission.remove(ONE);
        assert!(admission.admit(inside, blocks(11, 1), false));
    }

    #[test]
    fn an_ordered_task_waits_for_older_tasks_even_before_their_data_and_stops_newer_ones() {
        let mut admission = Admission::default();
        let older = admission.arrive();
        let ordered = admission.arrive();
        admission.install(ONE, HoldKind::Order, Some(ordered));
        let newer = admission.arrive();
        assert!(!admission.drained(ONE));
        assert!(!admission.admit(newer, blocks(100, 1), false));
        assert!(
            admission.admit(newer, blocks(100, 1), true),
            "HEAD OF QUEUE passes"
        );
        assert!(
            admission.admit(older, blocks(0, 1), false),
            "an older task is not held up"
        );
        admission.leave(older);
        assert!(admission.drained(ONE));
    }

    #[test]
    fn a_quarantined_write_keeps_its_blocks_but_not_the_whole_unit() {
        let mut admission = Admission::default();
        let hung = admission.arrive();
        assert!(admission.admit(hung, blocks(0, 8), false));
        assert_eq!(admission.quarantine(hung), blocks(0, 8));
        admission.install(ONE, HoldKind::Range(blocks(0, 8).unwrap()), Some(hung));
        admission.install(TWO, HoldKind::All, None);
        assert!(
            admission.drained(TWO),
            "a reservation change does not wait for a hung backend"
        );
        admission.remove(TWO);
        let same_place = admission.arrive();
        assert!(!admission.admit(same_place, blocks(7, 1), false));
        assert!(admission.leave(hung));
        admission.remove(ONE);
        assert!(admission.admit(same_place, blocks(7, 1), false));
    }

    #[test]
    fn places_are_reused_and_old_tickets_do_not_reach_new_tasks() {
        let mut admission = Admission::default();
        let first = admission.arrive();
        admission.leave(first);
        let second = admission.arrive();
        assert_eq!(first.place, second.place);
        assert_ne!(first, second);
        assert_eq!(admission.live(), 1);
    }

    #[test]
    fn agreement_of_holds_is_symmetric() {
        let kinds = [
            HoldKind::Range(blocks(0, 4).unwrap()),
            HoldKind::Range(blocks(3, 4).unwrap()),
            HoldKind::Range(blocks(8, 1).unwrap()),
            HoldKind::All,
            HoldKind::Order,
        ];
        for a in kinds {
            for b in kinds {
                assert_eq!(a.agrees_with(b), b.agrees_with(a), "{a:?} {b:?}");
            }
        }
    }
}
