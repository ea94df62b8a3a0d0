//! What persistent reservations let hosts do, from the tables of SPC-4 5.13 "Reservations": small,
//! of one target port, with REGISTER, RESERVE, RELEASE, CLEAR and both PREEMPTs.

use std::collections::{BTreeMap, BTreeSet};

/// A PERSISTENT RESERVE OUT of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Register {
        key: u64,
        new: u64,
        aptpl: bool,
        ignore: bool,
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
        key: u64,
        victim: u64,
        kind: u8,
        abort: bool,
    },
}

/// How it must be answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reported {
    Good,
    Conflict,
    Check,
}

/// One state that the unit may be in.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) struct Reserved {
    pub(super) keys: BTreeMap<u32, u64>,
    /// Type, and the holder where it is one.
    pub(super) held: Option<(u8, Option<u32>)>,
    /// Not what a host sees: what a power cut leaves.
    pub(super) aptpl: bool,
}

/// Types by their codes (SPC-4 table "Persistent reservation TYPE field").
pub(super) const KINDS: [u8; 6] = [1, 3, 5, 6, 7, 8];

impl Reserved {
    fn holds(&self, host: u32) -> bool {
        match self.held {
            Some((_, Some(holder))) => holder == host,
            Some((_, None)) => self.keys.contains_key(&host),
            None => false,
        }
    }

    /// A READ (`false`) or a WRITE of `host` is let through.
    pub(super) fn lets(&self, host: u32, writes: bool) -> bool {
        let Some((kind, _)) = self.held else {
            return true;
        };
        let registered = self.keys.contains_key(&host);
        // Odd codes 1, 5 and 7 exclude writes only; 5 to 8 let every registered nexus through.
        self.holds(host) || (kind >= 5 && registered) || (!writes && matches!(kind, 1 | 5 | 7))
    }

    /// After the power, or the process, came back.
    pub(super) fn restarted(&self) -> Self {
        if self.aptpl {
            self.clone()
        } else {
            Self::default()
        }
    }

    /// The state afterwards, and the answer.
    pub(super) fn after(&self, host: u32, change: Change) -> (Self, Reported) {
        let mut next = self.clone();
        let reported = next.apply(host, change);
        match reported {
            Reported::Good => (next, reported),
            Reported::Conflict | Reported::Check => (self.clone(), reported),
        }
    }

    fn apply(&mut self, host: u32, change: Change) -> Reported {
        let own = self.keys.get(&host).copied();
        match change {
            Change::Register {
                key,
                new,
                aptpl,
                ignore,
            } => {
                if !ignore && own.unwrap_or(0) != key {
                    return Reported::Conflict;
                }
                if own.is_none() && new == 0 {
                    return Reported::Good;
                }
                if new == 0 {
                    self.leave(host);
                } else {
                    self.keys.insert(host, new);
                }
                self.aptpl = aptpl;
                Reported::Good
            }
            Change::Reserve { key, .. }
            | Change::Release { key, .. }
            | Change::Clear { key }
            | Change::Preempt { key, .. }
                if own != Some(key) =>
            {
                Reported::Conflict
            }
            Change::Reserve { kind, .. } => match self.held {
                None => {
                    self.held = Some((kind, (kind < 7).then_some(host)));
                    Reported::Good
                }
                Some((held, _)) if held == kind && self.holds(host) => Reported::Good,
                Some(_) => Reported::Conflict,
            },
            Change::Release { kind, .. } => match self.held {
                Some((held, _)) if self.holds(host) && held != kind => Reported::Check,
                Some(_) if self.holds(host) => {
                    self.held = None;
                    Reported::Good
                }
                Some(_) | None => Reported::Good,
            },
            Change::Clear { .. } => {
                self.keys.clear();
                self.held = None;
                Reported::Good
            }
            Change::Preempt { victim, kind, .. } => self.preempt(host, victim, kind),
        }
    }

    /// A registration ends with whatever hangs on it.
    fn leave(&mut self, host: u32) {
        let holds = self.holds(host);
        self.keys.remove(&host);
        let ends = match self.held {
            Some((_, Some(_))) => holds,
            Some((_, None)) => self.keys.is_empty(),
            None => false,
        };
        if ends {
            self.held = None;
        }
    }

    /// SPC-4 table "Preempting actions".
    fn preempt(&mut self, host: u32, victim: u64, kind: u8) -> Reported {
        let takes_over = match self.held {
            Some((_, None)) => victim == 0,
            Some((_, Some(holder))) => self.keys.get(&holder) == Some(&victim),
            None => false,
        };
        if takes_over {
            self.keys
                .retain(|other, key| *other == host || (victim != 0 && *key != victim));
            self.held = Some((kind, (kind < 7).then_some(host)));
            return Reported::Good;
        }
        if victim == 0 {
            return Reported::Check;
        }
        let before = self.keys.len();
        self.keys.retain(|_, key| *key != victim);
        if self.keys.len() == before {
            return Reported::Conflict;
        }
        if self.keys.is_empty() {
            self.held = None;
        }
        Reported::Good
    }
}

/// What is known of a batch of changes that were under way at the same time.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) host: u32,
    pub(super) change: Change,
    /// `None`: nobody knows whether it was done.
    pub(super) reported: Option<Reported>,
}

/// Every state that changes under way may lead through, in any order, each done or not.
pub(super) fn during(from: &BTreeSet<Reserved>, parts: &[(u32, Change)]) -> BTreeSet<Reserved> {
    let mut all = from.clone();
    for (at, (host, change)) in parts.iter().enumerate() {
        let mut rest = parts.to_vec();
        rest.remove(at);
        let next = from
            .iter()
            .map(|state| state.after(*host, *change).0)
            .collect();
        all.extend(during(&next, &rest));
    }
    all
}

/// The states in which all of them can have ended as they did.
pub(super) fn after(from: &BTreeSet<Reserved>, parts: &[Part]) -> BTreeSet<Reserved> {
    if parts.is_empty() {
        return from.clone();
    }
    let mut all = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        let mut rest = parts.to_vec();
        rest.remove(at);
        let fits = |reported| part.reported.is_none_or(|seen| seen == reported);
        let mut next: BTreeSet<Reserved> = (from.iter())
            .map(|state| state.after(part.host, part.change))
            .filter(|(_, reported)| fits(*reported))
            .map(|(state, _)| state)
            .collect();
        if part.reported.is_none() {
            next.extend(from.iter().cloned());
        }
        all.extend(after(&next, &rest));
    }
    all
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn who_is_preempted_is_shut_out_until_the_reservation_ends() {
        let (mut state, mut reported) = (Reserved::default(), Vec::new());
        let register = |key| Change::Register {
            key: 0,
            new: key,
            aptpl: true,
            ignore: false,
        };
        let preempt = Change::Preempt {
            key: 2,
            victim: 1,
            kind: 3,
            abort: true,
        };
        for (host, change) in [
            (0, register(1)),
            (1, register(2)),
            (0, Change::Reserve { key: 1, kind: 5 }),
            (1, preempt),
            (0, Change::Clear { key: 1 }),
        ] {
            let (next, answer) = state.after(host, change);
            (state, _) = (next, reported.push(answer));
        }
        assert_eq!(reported[..4], [Reported::Good; 4]);
        assert_eq!(reported[4], Reported::Conflict);
        assert!(!state.lets(0, false) && state.lets(1, true));
        assert_eq!(state.restarted(), state);
    }
}
