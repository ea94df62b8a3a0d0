//! Which endpoint is asked first.

use crate::trouble::Trouble;
use std::collections::BTreeSet;
use std::time::Duration;
use units::Now;

/// How long one that failed is not asked first: from this, doubled each time, up to that.
const REST_MIN: Duration = Duration::from_millis(100);
const REST_MAX: Duration = Duration::from_secs(5);

#[derive(Clone, Default)]
struct Of {
    failures: u32,
    rests_until: Now,
    trouble: Option<Trouble>,
}

/// How each endpoint did last, by its place in the list.
pub(super) struct Health {
    all: Vec<Of>,
    /// Who answered last.
    first: usize,
}

impl Health {
    pub(super) fn new(count: usize) -> Self {
        Self {
            all: vec![Of::default(); count],
            first: 0,
        }
    }

    /// What is wrong with one.
    pub(super) fn trouble(&self, at: usize) -> Option<&Trouble> {
        self.all.get(at)?.trouble.as_ref()
    }

    /// The one to ask that is none of these: who answered last, then those that do not rest, then
    /// whoever is done with it first.
    pub(super) fn best_but(&self, asked: &BTreeSet<usize>, now: Now) -> Option<usize> {
        let count = self.all.len();
        let order = (0..count).map(|it| (self.first + it) % count);
        let left = order.filter(|it| !asked.contains(it));
        left.min_by_key(|it| self.all[*it].rests_until.max(now))
    }

    pub(super) fn answered(&mut self, at: usize) {
        self.first = at;
        self.all[at] = Of::default();
    }

    pub(super) fn failed(&mut self, at: usize, trouble: Trouble, now: Now) {
        let of = &mut self.all[at];
        let rest = REST_MIN.saturating_mul(1 << of.failures.min(6));
        of.failures += 1;
        of.rests_until = now.after(rest.min(REST_MAX));
        of.trouble = Some(trouble);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::trouble::TroubleKind;

    #[test]
    fn who_answered_last_is_asked_first_and_who_failed_last() {
        let mut health = Health::new(3);
        let order = |health: &Health, now| health.best_but(&BTreeSet::new(), now).unwrap();
        let trouble = || Trouble::new(TroubleKind::Unreachable, "", "");
        let at = |ms: u64| Now::ZERO.after(Duration::from_millis(ms));
        assert_eq!(order(&health, at(0)), 0);
        health.failed(0, trouble(), at(0));
        assert_eq!(order(&health, at(0)), 1);
        assert_eq!(order(&health, at(100)), 0, "it has rested");
        health.answered(2);
        assert_eq!(order(&health, at(0)), 2);
        health.failed(2, trouble(), at(0));
        health.failed(1, trouble(), at(0));
        health.failed(1, trouble(), at(0));
        assert_eq!(order(&health, at(0)), 2, "all rest: the shortest");
        assert!(
            health.trouble(1).is_some()
                && health.best_but(&BTreeSet::from([0, 1, 2]), at(0)).is_none()
        );
    }
}
