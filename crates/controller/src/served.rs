//! Whether hosts find what the objects name: what a login of the node's own has found, and what the
//! front shows.
//!
//! **Contract.** What is said here was so within the last minutes, and not while a change was under
//! way: objects and front differ for a moment then. No session comes of a login of the node's own,
//! and none is counted or listed. A round has [`LOGINS_MAX`] of them, one after the other; where
//! there are more, rounds take turns.

use super::Controller;
use super::guests::reachable;
use env::{CoreHandle, LocalFuture};
use manifest::served::{Answer, Probe, Unserved};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::time::Duration;

/// How often, and how soon after the start.
const EVERY: Duration = Duration::from_secs(60);
const FIRST: Duration = Duration::from_secs(10);

/// The most logins of a round.
const LOGINS_MAX: usize = 64;

/// Logs in by this name.
pub type Attempt = Box<dyn Fn(&CoreHandle, &str, &Probe) -> LocalFuture<Answer>>;

impl Controller {
    /// Tries the node once a minute, for as long as the controller lives.
    pub async fn follow_served(this: Weak<Self>, attempt: Attempt) {
        let mut known = Known::default();
        let mut pause = FIRST;
        loop {
            let Some(core) = this.upgrade().map(|it| Rc::clone(&it.core)) else {
                return;
            };
            core.sleep_until(core.now().after(pause)).await;
            pause = EVERY;
            let Some(controller) = this.upgrade() else {
                return;
            };
            let probes = controller.probes().await;
            // Whoever stops the daemon does not wait for this.
            drop(controller);
            let Some((name, all)) = probes else { continue };
            for probe in known.turn(all) {
                let answer = attempt(&core, &name, &probe).await;
                known.learn(probe, answer);
            }
            if let Some(controller) = this.upgrade() {
                controller.set_probed(known.unserved());
            }
        }
    }

    /// The name by which the node tries itself, and all logins that there are to try; `None`: it
    /// has no front.
    async fn probes(&self) -> Option<(String, Vec<Probe>)> {
        let name = self.engine.probe_name()?;
        let portals = self.engine.portals().await;
        let objects = self.objects();
        let listening = portals.iter().filter(|it| it.problem.is_none());
        let all = listening.flat_map(|portal| {
            let at = portal.address.parse().ok().map(reachable);
            let of_group = objects.targets.iter();
            let of_group = of_group.filter(|(_, target)| target.portal_group == portal.group);
            of_group.filter_map(move |(name, target)| {
                Some(Probe {
                    portal: at?,
                    address: portal.address.clone(),
                    target: name.clone(),
                    iqn: target.iqn.clone(),
                })
            })
        });
        Some((name, all.collect()))
    }

    /// What logins of the node's own have found; what the front does not show comes to it.
    pub(crate) fn set_probed(&self, found: Vec<Unserved>) {
        let Ok(_no_change_meanwhile) = self.store.try_lock() else {
            return;
        };
        if self.is_stopping() || self.damage().is_some() || self.cut_off().is_some() {
            return;
        }
        let mut all: BTreeSet<Unserved> = found.into_iter().collect();
        all.extend(self.engine.unserved(&self.objects()));
        let before = self.unserved.replace(all.into_iter().collect());
        for new in self.unserved.borrow().iter() {
            if !before.contains(new) {
                tracing::error!("not served: {}", new.cause);
            }
        }
    }

    /// What the objects name and hosts do not find.
    #[must_use]
    pub fn unserved(&self) -> Vec<Unserved> {
        self.unserved.borrow().clone()
    }
}

/// What was found of each login, and which comes next.
#[derive(Default)]
struct Known {
    found: BTreeMap<Probe, Option<Unserved>>,
    next: usize,
}

impl Known {
    /// The logins of this round, of all that there are; what is not among them is forgotten.
    fn turn(&mut self, all: Vec<Probe>) -> Vec<Probe> {
        let there: BTreeSet<&Probe> = all.iter().collect();
        self.found.retain(|probe, _| there.contains(probe));
        if all.len() <= LOGINS_MAX {
            return all;
        }
        let begin = self.next % all.len();
        self.next = begin + LOGINS_MAX;
        let round = all.iter().cycle().skip(begin).take(LOGINS_MAX);
        round.cloned().collect()
    }

    fn learn(&mut self, probe: Probe, answer: Answer) {
        let Probe {
            address, target, ..
        } = &probe;
        let missing = |kind, name: &str, cause| {
            let name = name.to_owned();
            Some(Unserved { kind, name, cause })
        };
        let found = match answer {
            // What was known stays.
            Answer::Busy => return,
            Answer::Here => None,
            Answer::Missing(said) => {
                let cause = format!(
                    "target {target} is to be reached at portal {address}, and a login there is answered: {said}"
                );
                missing("target", target, cause)
            }
            Answer::Unreachable(why) => {
                let cause =
                    format!("portal {address} listens, and the node itself cannot reach it: {why}");
                missing("portal", address, cause)
            }
        };
        self.found.insert(probe, found);
    }

    fn unserved(&self) -> Vec<Unserved> {
        self.found.values().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn probe(target: &str) -> Probe {
        Probe {
            portal: "127.0.0.1:3260".parse().unwrap(),
            address: "0.0.0.0:3260".to_owned(),
            target: target.to_owned(),
            iqn: format!("iqn.x:{target}"),
        }
    }

    fn missing() -> Answer {
        Answer::Missing("0203h target not found".to_owned())
    }

    #[test]
    fn what_is_missing_is_named_until_it_is_there_again() {
        let mut known = Known::default();
        known.learn(probe("a"), Answer::Here);
        known.learn(probe("b"), missing());
        known.learn(probe("c"), Answer::Unreachable("no way".to_owned()));
        let said = |known: &Known| {
            let all = known
                .unserved()
                .into_iter()
                .map(|it| (it.kind, it.name, it.cause));
            all.collect::<Vec<_>>()
        };
        let of_target = (
            "target",
            "b".to_owned(),
            "target b is to be reached at portal 0.0.0.0:3260, and a login there is answered: 0203h target not found"
                .to_owned(),
        );
        let of_portal = (
            "portal",
            "0.0.0.0:3260".to_owned(),
            "portal 0.0.0.0:3260 listens, and the node itself cannot reach it: no way".to_owned(),
        );
        assert_eq!(said(&known), [of_target.clone(), of_portal]);
        known.learn(probe("b"), Answer::Busy);
        known.learn(probe("c"), Answer::Here);
        assert_eq!(said(&known), [of_target], "nobody knows better");
        known.learn(probe("b"), Answer::Here);
        assert_eq!(said(&known), []);
    }

    #[test]
    fn of_many_targets_each_has_its_turn_and_what_is_gone_is_forgotten() {
        let all: Vec<Probe> = (0..150).map(|at| probe(&format!("t{at:03}"))).collect();
        let (mut known, mut seen) = (Known::default(), BTreeSet::new());
        for _ in 0..3 {
            let round = known.turn(all.clone());
            assert_eq!(round.len(), LOGINS_MAX);
            for probe in round {
                seen.insert(probe.target.clone());
                known.learn(probe, missing());
            }
        }
        assert_eq!((seen.len(), known.unserved().len()), (150, 150));
        let left = known.turn(all.into_iter().take(10).collect());
        assert_eq!((left.len(), known.unserved().len()), (10, 10));
    }
}
