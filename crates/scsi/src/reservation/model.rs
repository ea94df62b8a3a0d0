//! A second, naive reservation machine, transcribed from the tables of SPC-4 5.13: the oracle of
//! the first.
//!
//! It knows nexuses by number (initiator = n / 2, target port = n % 2 + 1), keeps plain maps, and
//! decides with tables rather than code where the standard has tables.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

pub(super) const NEXUSES: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Good,
    Conflict,
    Check,
}

#[derive(Clone, Debug)]
pub(super) enum ModelOp {
    Register {
        ignore: bool,
        key: u64,
        new_key: u64,
        aptpl: bool,
        all_ports: bool,
        /// Initiators of SPEC_I_PT.
        others: Option<Vec<usize>>,
    },
    Reserve {
        key: u64,
        kind: u8,
    },
    Release {
        key: u64,
        kind: u8,
    },
    Clear {
        key: u64,
    },
    Preempt {
        abort: bool,
        key: u64,
        victim: u64,
        kind: u8,
    },
    Move {
        key: u64,
        new_key: u64,
        unregister: bool,
        aptpl: bool,
        to: usize,
    },
    Spc2Reserve,
    Spc2Release,
    NexusLost,
    Reset,
    Restart,
}

/// A unit attention by its additional sense code qualifier (29h and 2Ah only).
pub(super) type Reported = BTreeSet<(usize, u8)>;
pub(super) const PREEMPTED: u8 = 3;
pub(super) const RELEASED: u8 = 4;
pub(super) const REGISTRATION_PREEMPTED: u8 = 5;

#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) generation: u32,
    pub(super) aptpl: bool,
    pub(super) keys: BTreeMap<usize, u64>,
    /// Type, and the single holder (all-registrants types have none).
    pub(super) held: Option<(u8, Option<usize>)>,
    pub(super) spc2: Option<usize>,
}

/// SPC-4 table "SPC commands that are allowed in the presence of various reservations", by type:
/// (reads of others, writes of others, reads of registered others, writes of registered others).
const RIGHTS: [(u8, [bool; 4]); 6] = [
    (1, [true, false, true, false]),
    (3, [false, false, false, false]),
    (5, [true, false, true, true]),
    (6, [false, false, true, true]),
    (7, [true, false, true, true]),
    (8, [false, false, true, true]),
];

impl Model {
    pub(super) fn may(&self, who: usize) -> (bool, bool) {
        if let Some(holder) = self.spc2 {
            return (holder == who, holder == who);
        }
        let Some((kind, _)) = self.held else {
            return (true, true);
        };
        if self.holds(who) {
            return (true, true);
        }
        let row = RIGHTS.iter().find(|(code, _)| *code == kind).unwrap().1;
        if self.keys.contains_key(&who) {
            (row[2], row[3])
        } else {
            (row[0], row[1])
        }
    }

    pub(super) fn holds(&self, who: usize) -> bool {
        match self.held {
            Some((7 | 8, _)) => self.keys.contains_key(&who),
            Some((_, holder)) => holder == Some(who),
            None => false,
        }
    }

    fn others(&self, who: usize, code: u8) -> Reported {
        self.keys
            .keys()
            .filter(|n| **n != who)
            .map(|n| (*n, code))
            .collect()
    }

    fn drop_registration(&mut self, leaving: usize, caller: usize, reported: &mut Reported) {
        let held_it = self.holds(leaving);
        self.keys.remove(&leaving);
        let Some((kind, _)) = self.held else { return };
        let ends = match kind {
            7 | 8 => self.keys.is_empty(),
            _ => held_it,
        };
        if ends {
            self.held = None;
            if matches!(kind, 5 | 6) {
                reported.extend(self.others(caller, RELEASED));
            }
        }
    }

    /// What the command answers, who gets a unit attention, whose tasks it aborts.
    pub(super) fn step(
        &mut self,
        who: usize,
        op: &ModelOp,
    ) -> (Outcome, Reported, BTreeSet<usize>) {
        let mut reported = Reported::new();
        let mut aborted = BTreeSet::new();
        let persistent = !matches!(
            op,
            ModelOp::Spc2Reserve
                | ModelOp::Spc2Release
                | ModelOp::NexusLost
                | ModelOp::Reset
                | ModelOp::Restart
        );
        if persistent && self.spc2.is_some() {
            return (Outcome::Conflict, reported, aborted);
        }
        let outcome = match op {
            ModelOp::Register { .. } => self.register(who, op, &mut reported),
            ModelOp::Reserve { key, kind } => self.reserve(who, *key, *kind),
            ModelOp::Release { key, kind } => self.release(who, *key, *kind, &mut reported),
            ModelOp::Clear { key } => {
                if self.keys.get(&who) == Some(key) {
                    reported = self.others(who, PREEMPTED);
                    self.keys.clear();
                    self.held = None;
                    self.generation += 1;
                    Outcome::Good
                } else {
                    Outcome::Conflict
                }
            }
            ModelOp::Preempt { abort, .. } => {
                let outcome = self.preempt(who, op, &mut reported, &mut aborted);
                if !abort {
                    aborted.clear();
                }
                outcome
            }
            ModelOp::Move { .. } => self.shift(who, op),
            ModelOp::Spc2Reserve | ModelOp::Spc2Release => self.spc2(who, op),
            ModelOp::NexusLost => {
                if self.spc2 == Some(who) {
                    self.spc2 = None;
                }
                Outcome::Good
            }
            ModelOp::Reset => {
                self.spc2 = None;
                Outcome::Good
            }
            ModelOp::Restart => {
                if !self.aptpl {
                    *self = Self::default();
                }
                self.spc2 = None;
                self.generation = 0;
                Outcome::Good
            }
        };
        (outcome, reported, aborted)
    }

    /// The two tables "Register behaviors".
    fn register(&mut self, who: usize, op: &ModelOp, reported: &mut Reported) -> Outcome {
        let ModelOp::Register {
            ignore,
            key,
            new_key,
            aptpl,
            all_ports,
            others,
        } = op
        else {
            unreachable!()
        };
        let registered = self.keys.get(&who).copied();
        if *ignore && others.is_some() {
            return Outcome::Check;
        }
        let key_fits = match registered {
            Some(own) => own == *key,
            None => *key == 0,
        };
        if !*ignore && !key_fits {
            return Outcome::Conflict;
        }
        if others.is_some() && (registered.is_some() || *new_key == 0) {
            return Outcome::Check;
        }
        let ports: Vec<usize> = if *all_ports {
            std::vec![0, 1]
        } else {
            std::vec![who % 2]
        };
        let mut nexuses: BTreeSet<usize> = ports.iter().map(|p| who / 2 * 2 + p).collect();
        for (nth, other) in others.iter().flatten().enumerate() {
            let of_other: Vec<usize> = ports.iter().map(|p| other * 2 + p).collect();
            let repeated = others.as_ref().unwrap()[..nth].contains(other);
            let taken = of_other.iter().any(|n| self.keys.contains_key(n));
            if *other == who / 2 || repeated || taken {
                return Outcome::Check;
            }
            nexuses.extend(of_other);
        }
        if *new_key == 0 && registered.is_none() {
            return Outcome::Good;
        }
        for nexus in nexuses {
            if *new_key == 0 {
                if self.keys.contains_key(&nexus) {
                    self.drop_registration(nexus, who, reported);
                }
            } else {
                self.keys.insert(nexus, *new_key);
            }
        }
        self.aptpl = *aptpl;
        self.generation += 1;
        Outcome::Good
    }

    fn reserve(&mut self, who: usize, key: u64, kind: u8) -> Outcome {
        if RIGHTS.iter().all(|(code, _)| *code != kind) {
            return Outcome::Check;
        }
        if self.keys.get(&who) != Some(&key) {
            return Outcome::Conflict;
        }
        match self.held {
            None => {
                self.held = Some((kind, (kind < 7).then_some(who)));
                Outcome::Good
            }
            Some((held, _)) if held == kind && self.holds(who) => Outcome::Good,
            Some(_) => Outcome::Conflict,
        }
    }

    fn release(&mut self, who: usize, key: u64, kind: u8, reported: &mut Reported) -> Outcome {
        if RIGHTS.iter().all(|(code, _)| *code != kind) {
            return Outcome::Check;
        }
        if self.keys.get(&who) != Some(&key) {
            return Outcome::Conflict;
        }
        if !self.holds(who) {
            return Outcome::Good;
        }
        if self.held.unwrap().0 != kind {
            return Outcome::Check;
        }
        self.held = None;
        if kind > 4 {
            *reported = self.others(who, RELEASED);
        }
        Outcome::Good
    }

    /// The table "Preempting actions".
    fn preempt(
        &mut self,
        who: usize,
        op: &ModelOp,
        reported: &mut Reported,
        aborted: &mut BTreeSet<usize>,
    ) -> Outcome {
        let ModelOp::Preempt {
            key, victim, kind, ..
        } = op
        else {
            unreachable!()
        };
        if self.keys.get(&who) != Some(key) {
            return Outcome::Conflict;
        }
        #[derive(PartialEq)]
        enum Action {
            Reservation,
            Registrations,
            Illegal,
        }
        let action = match self.held {
            None if *victim == 0 => Action::Illegal,
            None => Action::Registrations,
            Some((7 | 8, _)) if *victim == 0 => Action::Reservation,
            Some((7 | 8, _)) => Action::Registrations,
            Some(_) if *victim == 0 => Action::Illegal,
            Some((_, holder)) if self.keys[&holder.unwrap()] == *victim => Action::Reservation,
            Some(_) => Action::Registrations,
        };
        let valid_kind = RIGHTS.iter().any(|(code, _)| code == kind);
        match action {
            Action::Illegal => return Outcome::Check,
            Action::Reservation if !valid_kind => return Outcome::Check,
            Action::Reservation | Action::Registrations => {}
        }
        let matching: Vec<usize> = self
            .keys
            .iter()
            .filter(|(n, own)| {
                (*victim == 0 || **own == *victim)
                    && (action == Action::Registrations || **n != who)
            })
            .map(|(n, _)| *n)
            .collect();
        if action == Action::Registrations && matching.is_empty() {
            return Outcome::Conflict;
        }
        for nexus in matching {
            self.keys.remove(&nexus);
            aborted.insert(nexus);
            if nexus != who {
                reported.insert((nexus, REGISTRATION_PREEMPTED));
            }
        }
        if action == Action::Reservation {
            if self.held.unwrap().0 != *kind {
                reported.extend(self.others(who, RELEASED));
            }
            self.held = Some((*kind, (*kind < 7).then_some(who)));
        } else if self.keys.is_empty() {
            self.held = None;
        }
        self.generation += 1;
        Outcome::Good
    }

    fn shift(&mut self, who: usize, op: &ModelOp) -> Outcome {
        let ModelOp::Move {
            key,
            new_key,
            unregister,
            aptpl,
            to,
        } = op
        else {
            unreachable!()
        };
        let single = matches!(self.held, Some((_, Some(holder))) if holder == who);
        if self.keys.get(&who) != Some(key) || !single {
            return Outcome::Conflict;
        }
        if *new_key == 0 || *to == who {
            return Outcome::Check;
        }
        self.keys.insert(*to, *new_key);
        if *unregister {
            self.keys.remove(&who);
        }
        self.held = self.held.map(|(kind, _)| (kind, Some(*to)));
        self.aptpl = *aptpl;
        self.generation += 1;
        Outcome::Good
    }

    /// CRH (SPC-4 5.13.3), and SPC-2 where nobody is registered.
    fn spc2(&mut self, who: usize, op: &ModelOp) -> Outcome {
        let registered = self.keys.contains_key(&who);
        let covered = match self.held {
            None => false,
            Some((1 | 3, holder)) => holder == Some(who),
            Some(_) => registered,
        };
        if covered {
            return Outcome::Good;
        }
        if !self.keys.is_empty() {
            return Outcome::Conflict;
        }
        if matches!(op, ModelOp::Spc2Reserve) {
            if self.spc2.is_some_and(|holder| holder != who) {
                return Outcome::Conflict;
            }
            self.spc2 = Some(who);
        } else if self.spc2 == Some(who) {
            self.spc2 = None;
        }
        Outcome::Good
    }
}
