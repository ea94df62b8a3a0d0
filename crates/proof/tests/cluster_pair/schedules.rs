//! Many short lives: each seed draws a few harms, in any order and at any moment. What promises
//! last is a tenth of what it is in the daemon, so that a life is short.

use super::node::Scale;
use super::{DAY, Run, Seen};
use env::sim::FaultPlan;
use proof::seeds::seeds;
use replica::model::Rule;
use replica::{Spans, State};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
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
    /// A node's disk says of everything that it is stable, and holds it in memory; then its power
    /// is cut.
    LyingDisk,
    /// A node's disk goes back to what it was some time before its power was cut.
    RolledBack,
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

    /// Those by which a node loses what it acknowledged: in schedules of their own, as nothing else
    /// may happen to the other node before it is found.
    const LOSSES: [Self; 2] = [Self::LyingDisk, Self::RolledBack];
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
            Harm::LyingDisk | Harm::RolledBack => self.lose_some(at, harm == Harm::LyingDisk),
        }
    }

    /// Waits until both are in sync, and stay so for longer than it takes to miss one of them;
    /// `false`: they were not in time.
    fn comes_to_be_whole(&mut self) -> bool {
        let ends = self.world.now().after(Duration::from_secs(20));
        let mut well = 0;
        while well < 30 && self.world.now() < ends {
            self.watch(Duration::from_millis(20));
            well = if self.is_whole() { well + 1 } else { 0 };
        }
        self.is_whole()
    }

    fn written_by_all(&self) -> u64 {
        self.work.written.iter().map(|it| it.get()).sum()
    }

    /// Hosts ask nothing until both nodes know what they were answered.
    fn hosts_pause(&mut self) {
        self.work.ends.set(true);
        let ends = self.world.now().after(Duration::from_secs(2));
        while self.work.busy.iter().any(|it| it.get() > 0) && self.world.now() < ends {
            self.watch(Duration::from_millis(3));
        }
        self.watch(Duration::from_millis(30));
    }

    /// A node loses what it acknowledged while the other one has all of it: else nobody could know,
    /// or have it. It is found, nothing is lost, and both come to be equal.
    fn lose_some(&mut self, at: usize, lies: bool) {
        self.all_open();
        // Nobody is removed for what is slow meanwhile.
        self.world.set_faults(FaultPlan::none());
        assert!(self.comes_to_be_whole());
        let disk = self.nodes[at].disk();
        let mut image = disk.image();
        disk.lie_about_flush(lies);
        let before = self.written_by_all();
        self.pause(400);
        while self.written_by_all() < before + 4 {
            self.pause(20);
        }
        self.hosts_pause();
        assert!(self.is_whole(), "{:?}", self.states());
        let found = self.seen.found;
        let was_owner = self.states()[at] == Some(State::Owner);
        self.is_lied_to = true;
        if lies {
            // Where some of what it held is lost and some is not, the journal is refused.
            image = disk.image();
        }
        self.end(at, true);
        disk.lie_about_flush(false);
        disk.goes_back_to(&image);
        self.work.ends.set(false);
        if was_owner && self.broken.is_none() {
            // An owner that is back before the other one hears of it may go on alone: nobody knows.
            self.watch(Duration::from_millis(2 * SCALE.spans.patience));
        }
        self.pause(600);
        self.open(at);
        let is_whole = self.comes_to_be_whole();
        assert!(is_whole, "{:?}", self.states());
        let is_found = self.seen.found > found || self.broken.is_some();
        assert!(is_found, "what was lost is not found");
        self.is_lied_to = false;
        self.world.set_faults(FaultPlan::benign());
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
                println!("{:?}: {harm:?}", self.world.now());
                self.harm(harm);
                *met.entry(harm).or_default() += 1;
            }
        }
        self.rest();
    }
}

/// Both nodes break a rule, and one of them, the owner or not, loses what it acknowledged: answers
/// what is wrong then.
fn loses_with(rule: Option<Rule>, seed: u64) -> Option<String> {
    let life = AssertUnwindSafe(|| {
        let mut run = Run::with(seed, SCALE);
        run.broken = rule;
        let at = run.rng.index(2);
        let harm = Harm::LOSSES[usize::try_from(seed % 2).unwrap()];
        run.lose_some(at, harm == Harm::LyingDisk);
        run.pause(300);
        run.rest();
    });
    let wrong = catch_unwind(life).err()?;
    let text = wrong.downcast_ref::<String>().cloned();
    let text = text.or_else(|| wrong.downcast_ref::<&str>().map(|it| (*it).to_owned()));
    Some(text.unwrap_or_default())
}

#[test]
fn without_a_rule_a_disk_that_lost_something_makes_hosts_lose_it() {
    for seed in seeds(80) {
        assert_eq!(loses_with(None, seed), None, "seed {seed}");
    }
    let rule = Some(Rule::WhoKnowsMoreDoesNotFollow);
    let wrong = seeds(12).filter_map(|seed| loses_with(rule, seed));
    let wrong: Vec<String> = wrong.collect();
    println!("{wrong:#?}");
    let is_lost = |it: &String| it.contains("holds write");
    assert!(wrong.iter().any(is_lost), "it makes no difference");
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
