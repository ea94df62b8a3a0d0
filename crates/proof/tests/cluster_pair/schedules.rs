//! Many short lives: each seed draws a few harms, in any order and at any moment. What promises
//! last is a tenth of what it is in the daemon, so that a life is short.

use super::node::Scale;
use super::{DAY, Run, Seen};
use proof::seeds::seeds;
use replica::Spans;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::time::Duration;

/// Schedules in `make test`.
const SCHEDULES: u64 = 1_200;

const SCALE: Scale = Scale {
    spans: Spans {
        beacon: 25,
        lead: 200,
        patience: 300,
        grant: 150,
        ask: 50,
        retry: 50,
    },
    journal_bytes: 16 << 20,
    long_states: 400,
    last_work: 100,
};

/// What is done to the pair. Each class must be met over all seeds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Harm {
    /// The power of one node is cut, or its process killed.
    PowerCut,
    Kill,
    /// Both nodes, one after the other or at once.
    BothPowerCut,
    BothKilled,
    /// Nothing passes between the nodes, or in one direction only.
    LinkCut,
    OneWay,
    /// The arbiter does not answer.
    ArbiterAway,
    ArbiterAwayAndPowerCut,
    ArbiterAwayAndLinkCut,
    /// A node stands still, with its clock going on or not.
    Stopped,
    Suspended,
    /// A node's disk does not answer for a while.
    DiskHangs,
    /// The node gives away what it owns.
    HandOver,
}

impl Harm {
    const ALL: [Self; 13] = [
        Self::PowerCut,
        Self::Kill,
        Self::BothPowerCut,
        Self::BothKilled,
        Self::LinkCut,
        Self::OneWay,
        Self::ArbiterAway,
        Self::ArbiterAwayAndPowerCut,
        Self::ArbiterAwayAndLinkCut,
        Self::Stopped,
        Self::Suspended,
        Self::DiskHangs,
        Self::HandOver,
    ];
}

/// How often each took place.
type Met = BTreeMap<Harm, u64>;

impl Run {
    /// Opens what is down, in any order.
    fn all_open(&mut self) {
        let first = self.rng.index(2);
        for at in [first, 1 - first] {
            self.open(at);
        }
    }

    fn harm(&mut self, harm: Harm) {
        let at = self.rng.index(2);
        match harm {
            Harm::PowerCut | Harm::Kill => {
                self.end(at, harm == Harm::PowerCut);
                self.pause(800);
            }
            Harm::BothPowerCut | Harm::BothKilled => {
                self.end(at, harm == Harm::BothPowerCut);
                if self.rng.below(2) == 0 {
                    self.pause(700);
                }
                self.end(1 - at, harm == Harm::BothPowerCut);
            }
            Harm::LinkCut => self.cut_link(900),
            Harm::OneWay => {
                let [from, to] = [at, 1 - at].map(|it| self.nodes[it].clone());
                self.world.cut_one_way(&from, &to);
                self.pause(900);
                self.world.mend_link(&from, &to);
            }
            Harm::ArbiterAway | Harm::ArbiterAwayAndPowerCut | Harm::ArbiterAwayAndLinkCut => {
                self.store.is_away(true);
                self.pause(500);
                if harm == Harm::ArbiterAwayAndPowerCut {
                    self.end(at, true);
                } else if harm == Harm::ArbiterAwayAndLinkCut {
                    self.cut_link(900);
                }
                self.pause(500);
                self.store.is_away(false);
            }
            Harm::Stopped | Harm::Suspended => self.stand_still(at, harm == Harm::Suspended),
            Harm::DiskHangs => {
                self.nodes[at].disk().hang();
                self.pause(900);
                self.nodes[at].disk().release();
            }
            Harm::HandOver => self.hand_over(at),
        }
    }

    /// A machine whose clock stood does not know that promises are over: for as long as one lasts
    /// it may answer reads with what was right before, so nobody asks it for that long.
    fn stand_still(&mut self, at: usize, clock_stands: bool) {
        if self.sides[at].is_none() {
            return;
        }
        self.work.is_suspended[at].set(clock_stands);
        self.pause(30);
        self.nodes[at].pause(clock_stands);
        self.pause(900);
        self.nodes[at].resume();
        self.watch(Duration::from_millis(SCALE.spans.lead + 50));
        self.work.is_suspended[at].set(false);
    }

    fn hand_over(&mut self, at: usize) {
        let Some(side) = self.sides[at].clone() else {
            return;
        };
        let core = self.nodes[at].core(0);
        core.spawn(Box::pin(async move {
            let until = side.core.now().after(Duration::from_secs(1));
            // Nothing depends on whether it was given.
            let _given = side.cluster.hand_over(super::LUN, until).await;
        }));
        self.pause(300);
    }

    fn schedule(&mut self, met: &mut Met) {
        for at in 0..2 {
            // A hundredth faster or slower: more than quartz ever is.
            let rate = i32::try_from(self.rng.below(20_001)).unwrap() - 10_000;
            self.nodes[at].goes_faster(rate);
        }
        for _ in 0..1 + self.rng.below(2) {
            self.all_open();
            self.pause(500);
            for _ in 0..1 + self.rng.below(2) {
                let harm = *self.rng.pick(&Harm::ALL);
                self.harm(harm);
                *met.entry(harm).or_default() += 1;
            }
        }
        self.rest();
    }
}

#[test]
fn whatever_happens_in_whatever_order_nothing_acknowledged_is_lost() {
    let (mut met, mut all, mut lived) = (Met::new(), Seen::default(), Duration::ZERO);
    let schedules = seeds(SCHEDULES);
    let count = schedules.clone().count() as u64;
    for seed in schedules {
        println!("seed {seed}");
        let mut run = Run::with(seed, SCALE);
        let begun = run.world.now();
        run.schedule(&mut met);
        lived += run.world.now().since(begun);
        all.owners += run.seen.owners;
        all.renewed += run.seen.renewed;
        all.read += run.work.read.get();
        all.written[0] += run.work.written[0].get();
        all.written[1] += run.work.written[1].get();
    }
    let years = lived.as_secs_f64() * 10.0 / DAY.as_secs_f64() / 365.25;
    let said = writeln!(
        io::stderr(),
        "simulator, cluster: {count} schedules, {years:.5} years of a cluster"
    );
    said.expect("whoever runs tests can read it");
    println!("{met:?}, {all:?}");
    if count >= 100 {
        let never = Harm::ALL.iter().filter(|it| !met.contains_key(it));
        assert_eq!(never.count(), 0, "{met:?}");
        assert!(
            all.written.iter().all(|it| *it > count) && all.read > count,
            "{all:?}"
        );
        assert!(all.owners > count, "{all:?}");
    }
}
