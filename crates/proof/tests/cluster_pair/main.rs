//! Two nodes with copies of a LUN, each with a simulated disk of its own, joined by simulated TCP:
//! the crate `cluster` as a daemon has it. Hosts ask both nodes all the time. Power is cut on one
//! node or both, processes are killed, the network between them is cut, and the arbiter is late,
//! loses answers or is away.
//!
//! Oracles: the model disk for all that hosts of both nodes are answered; what a host sets of the
//! unit is never older than what it was answered; never do both nodes answer reads; in the end one
//! owns the LUN, both are in sync, and both backing volumes are equal, byte by byte.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy knows only test functions"
)]

mod forwarding;
mod node;
mod schedules;

use arbiter::model::{Manners, ModelStore};
use cluster::LunStatus;
use cluster::Renewal;
use env::sim::{FaultPlan, Node, Rng, World, WorldConfig};
use node::{LUN, RINGS, Scale, Side, VOLUME_BYTES, Work, forget_removed, found, make, open, path};
use proof::seeds::seeds;
use replica::State;
use replica::model::Rule;
use std::sync::Arc;
use std::time::Duration;
use volume::Volume;
use volume_test::model::verify;

const DAY: Duration = Duration::from_secs(86_400);

/// How often what happened that the test is about.
#[derive(Clone, Copy, Default, Debug)]
struct Seen {
    crashes: u64,
    kills: u64,
    cuts: u64,
    away: u64,
    owners: u64,
    /// Copies that were made anew, as the owner's log had not what they lacked.
    renewed: u64,
    /// How often a node was found to have less than it had acknowledged.
    found: u64,
    /// Of those, how many got what had changed alone.
    changed: u64,
    written: [u64; 2],
    read: u64,
    failed: u64,
    /// What came through the other node, and writes of which nobody knew for a while.
    forwarded: [u64; 2],
    lost: u64,
    /// How often hosts set something of the unit, and how often a node went on with that.
    sets: u64,
    taken_over: u64,
}

struct Run {
    world: World,
    nodes: [Node; 2],
    sides: [Option<Side>; 2],
    made_anew: [bool; 2],
    /// The last copy that each node has made anew.
    renewals: [Option<Renewal>; 2],
    store: ModelStore,
    manners: Manners,
    scale: Scale,
    work: Work,
    rng: Rng,
    seen: Seen,
    owner: Option<usize>,
    /// A rule that both nodes break.
    broken: Option<Rule>,
    /// A disk lies, or went back.
    is_lied_to: bool,
    is_lost: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self::with(seed, Scale::usual())
    }

    fn with(seed: u64, scale: Scale) -> Self {
        let config = WorldConfig {
            faults: FaultPlan::benign(),
            cores: 1,
            ..WorldConfig::default()
        };
        let world = World::new(seed, config);
        let nodes = ["one", "other"].map(|name| world.node(name));
        let witness = world.node("witness");
        let store = ModelStore::new(&witness.core(0));
        let founding = found(witness.core(0), store.clone());
        let revision = world.block_on(&witness, DAY, founding).unwrap();
        for node in &nodes {
            let making = make(node.core(0), revision, scale.journal_bytes);
            world.block_on(node, DAY, making).unwrap();
        }
        Self {
            world,
            nodes,
            sides: [None, None],
            made_anew: [false; 2],
            renewals: [None, None],
            store,
            manners: [Manners::GOOD, Manners::BAD][usize::try_from(seed % 2).unwrap()],
            scale,
            work: Work::new(&scale),
            rng: Rng::new(seed ^ 0xc1_05_7e_12),
            seen: Seen::default(),
            owner: None,
            broken: None,
            is_lied_to: false,
            is_lost: false,
        }
    }

    fn open(&mut self, at: usize) {
        if self.sides[at].is_some() {
            return;
        }
        self.nodes[at].restart();
        let ips = [self.nodes[0].ip(), self.nodes[1].ip()];
        let me = u8::try_from(at).unwrap();
        let with = (self.store.clone(), self.manners, self.scale.spans);
        let opening = open(self.nodes[at].core(0), me, ips, with, self.broken);
        let side = self.world.block_on(&self.nodes[at], DAY, opening).unwrap();
        self.work.begin(&side, at, &mut self.rng);
        self.sides[at] = Some(side);
    }

    fn end(&mut self, at: usize, is_power_cut: bool) {
        if self.sides[at].take().is_none() {
            return;
        }
        if is_power_cut {
            self.nodes[at].crash();
            self.seen.crashes += 1;
        } else {
            self.nodes[at].kill();
            self.seen.kills += 1;
        }
        self.work.busy[at].set(0);
    }

    /// Time passes, and both nodes never answer reads at once.
    fn watch(&mut self, span: Duration) {
        let until = self.world.now().after(span);
        while self.world.now() < until {
            self.world.run_for(Duration::from_millis(3));
            let statuses = self.sides.each_ref().map(|it| Some(it.as_ref()?.status()));
            let reads = [0, 1].map(|at| {
                let is_asked = !self.work.is_suspended[at].get();
                is_asked && statuses[at].as_ref().is_some_and(|it| it.reads)
            });
            let both = reads == [true, true];
            assert!(!both, "both nodes answer reads: {statuses:#?}");
            let owner = reads.iter().position(|it| *it);
            if owner.is_some() && owner != self.owner {
                self.owner = owner;
                self.seen.owners += 1;
            }
            self.watch_lost(&statuses);
            for (status, was) in statuses.iter().zip(&mut self.made_anew) {
                let is = status.as_ref().map(|it| it.state) == Some(State::Copying);
                self.seen.renewed += u64::from(is && !*was);
                *was = is;
            }
            for at in 0..2 {
                self.sees_renewal(at);
            }
        }
    }

    fn sees_renewal(&mut self, by: usize) {
        let side = self.sides[by].as_ref();
        let renewal = side.and_then(|it| it.status().renewed);
        if let Some(renewal) = renewal
            && self.renewals[by].as_ref() != Some(&renewal)
        {
            println!("{renewal:?}");
            self.seen.changed += u64::from(renewal.whole.is_none());
            self.renewals[by] = Some(renewal);
        }
    }

    /// Nodes are found to have lost something where that is so, and nowhere else.
    fn watch_lost(&mut self, statuses: &[Option<LunStatus>; 2]) {
        let has_lost = |it: &LunStatus| it.lost.count() > 0 || it.has_owner_lost;
        let is_lost = statuses.iter().flatten().any(has_lost);
        let is_wrong = is_lost && !self.is_lied_to;
        assert!(!is_wrong, "a disk is said to lie: {statuses:#?}");
        self.seen.found += u64::from(is_lost && !self.is_lost);
        self.is_lost = is_lost;
    }

    fn pause(&mut self, most: u64) {
        let span = Duration::from_millis(1 + self.rng.below(most));
        self.watch(span);
    }

    fn life(&mut self) {
        for at in 0..2 {
            if self.sides[at].is_some() || self.rng.below(3) > 0 {
                self.open(at);
            }
        }
        self.pause(8000);
        match self.rng.below(4) {
            0 => self.cut_link(9000),
            1 => {
                self.store.is_away(true);
                self.seen.away += 1;
                self.pause(6000);
                if self.rng.below(2) == 0 {
                    self.cut_link(9000);
                }
                self.store.is_away(false);
            }
            _ => {}
        }
        self.pause(3000);
        let is_power_cut = self.rng.below(2) == 0;
        match self.rng.below(5) {
            0 => self.end(0, is_power_cut),
            1 => self.end(1, is_power_cut),
            2 => {
                self.end(0, is_power_cut);
                self.pause(4000);
                self.end(1, is_power_cut);
            }
            3 => {
                for at in 0..2 {
                    self.end(at, is_power_cut);
                }
            }
            _ => {}
        }
        self.pause(6000);
    }

    /// Faults that end before any node is removed: whoever was in sync stays so.
    fn short_life(&mut self) {
        self.pause(2500);
        let is_power_cut = self.rng.below(2) == 0;
        let at = usize::try_from(self.rng.below(2)).unwrap();
        match self.rng.below(4) {
            0 => self.cut_link(700),
            1 => {
                self.end(0, is_power_cut);
                self.end(1, is_power_cut);
            }
            _ => self.end(at, is_power_cut),
        }
        self.pause(600);
        for at in 0..2 {
            self.open(at);
        }
    }

    fn cut_link(&mut self, most: u64) {
        let [one, other] = self.nodes.clone();
        self.world.cut_link(&one, &other);
        self.seen.cuts += 1;
        self.pause(most);
        self.world.mend_link(&one, &other);
    }

    fn states(&self) -> [Option<State>; 2] {
        let state = |it: &Option<Side>| it.as_ref().map(|it| it.status().state);
        self.sides.each_ref().map(state)
    }

    /// One owns the LUN, the other one has all of it.
    fn is_whole(&self) -> bool {
        matches!(
            self.states(),
            [Some(State::Owner), Some(State::Replica)] | [Some(State::Replica), Some(State::Owner)]
        )
    }

    fn both_have_all(&self) -> bool {
        let has_all = |(node, side): (&Node, &Option<Side>)| {
            let side = side.clone().unwrap();
            let all = async move {
                let mut orders = Vec::new();
                for ring in 0..u32::from(RINGS) {
                    let order = side.volume.order(&side.core, ring).await.unwrap();
                    orders.push((order.next, order.stable, order.committed));
                }
                orders
            };
            self.world.block_on(node, DAY, all).unwrap()
        };
        let both = self.nodes.iter().zip(&self.sides).map(has_all);
        let both: Vec<_> = both.collect();
        let is_committed = both[0].iter().all(|it| it.0 == it.2);
        both[0] == both[1] && is_committed
    }

    /// All faults end, and both come to have all of it.
    fn rest(&mut self) {
        self.world.set_faults(FaultPlan::none());
        for at in 0..2 {
            self.open(at);
        }
        let ends = self.world.now().after(Duration::from_secs(120));
        while !self.is_whole() {
            let statuses = self
                .sides
                .each_ref()
                .map(|it| it.as_ref().unwrap().status());
            assert!(self.world.now() < ends, "{statuses:#?}");
            self.watch(Duration::from_millis(50));
        }
        self.pause(self.scale.last_work);
        self.work.ends.set(true);
        while self.work.busy.iter().any(|it| it.get() > 0) {
            assert!(self.world.now() < ends, "hosts are not answered");
            self.watch(Duration::from_millis(50));
        }
        while !self.both_have_all() {
            assert!(self.world.now() < ends, "not all is on both nodes");
            self.watch(Duration::from_millis(50));
        }
        self.compare();
    }

    fn compare(&mut self) {
        for at in 0..2 {
            let (side, model) = (self.sides[at].clone().unwrap(), self.work.model.clone());
            let check = async move {
                // A replica serves nobody, and an owner's right to read may pause for a moment:
                // what each has is read below.
                let volume: Arc<dyn Volume> = Arc::clone(&side.volume) as _;
                let shape = volume.shape();
                let lane = volume.open(&side.core).await.unwrap();
                verify(&lane, &shape, &model).await;
                side.journal.drain(&side.core).await;
                let status = side.journal.status(&side.core).await;
                let left: u64 = status.iter().map(|it| it.pages).sum();
                assert_eq!(left, 0, "{status:?}");
            };
            self.world.block_on(&self.nodes[at], DAY, check).unwrap();
        }
        let images = [0, 1].map(|at| self.nodes[at].disk().durable(&path()).unwrap());
        assert_eq!(images[0].len() as u64, VOLUME_BYTES);
        assert!(images[0] == images[1], "the copies of {LUN:?} differ");
    }
}

fn run(seed: u64, lives: u64, live: impl Fn(&mut Run)) -> Seen {
    let mut run = Run::new(seed);
    for at in 0..2 {
        run.open(at);
    }
    for _ in 0..lives {
        live(&mut run);
    }
    run.rest();
    Seen {
        written: [0, 1].map(|at| run.work.written[at].get()),
        read: run.work.read.get(),
        failed: run.work.failed.get(),
        forwarded: [0, 1].map(|at| run.work.forwarded[at].get()),
        lost: run.work.lost.get(),
        sets: run.work.sets.get(),
        taken_over: run.work.taken_over.get(),
        ..run.seen
    }
}

fn runs(count: u64, lives: u64, live: impl Fn(&mut Run)) -> Seen {
    let mut all = Seen::default();
    for seed in seeds(count) {
        println!("seed {seed}");
        let seen = run(seed, lives, &live);
        all.crashes += seen.crashes;
        all.kills += seen.kills;
        all.cuts += seen.cuts;
        all.away += seen.away;
        all.owners += seen.owners;
        all.renewed += seen.renewed;
        all.changed += seen.changed;
        for at in 0..2 {
            all.written[at] += seen.written[at];
            all.forwarded[at] += seen.forwarded[at];
        }
        all.read += seen.read;
        all.failed += seen.failed;
        all.lost += seen.lost;
        all.sets += seen.sets;
        all.taken_over += seen.taken_over;
    }
    println!("{all:?}");
    all
}

#[test]
fn two_nodes_begin_with_one_owner_and_both_have_what_hosts_write() {
    let mut run = Run::new(0);
    for at in 0..2 {
        run.open(at);
    }
    run.watch(Duration::from_secs(5));
    assert!(run.is_whole(), "{:?}", run.states());
    run.rest();
    let written: u64 = run.work.written.iter().map(|it| it.get()).sum();
    let forwarded: u64 = run.work.forwarded.iter().map(|it| it.get()).sum();
    println!("{written} written, {forwarded} forwarded");
    assert!(written > 50 && forwarded > 50, "{written}, {forwarded}");
}

#[test]
fn what_is_acknowledged_is_there_whatever_fails_and_one_node_at_most_answers() {
    let all = runs(20, 4, Run::life);
    assert!(all.crashes > 20 && all.kills > 20, "{all:?}");
    assert!(all.cuts > 10 && all.away > 5, "{all:?}");
    let [one, other] = all.written;
    assert!(one > 3000 && other > 3000, "both own it at times: {all:?}");
    let [one, other] = all.forwarded;
    assert!(one > 1000 && other > 1000 && all.lost > 5, "{all:?}");
    assert!(all.owners > 28, "{all:?}");
    assert!(all.sets > 500 && all.taken_over > 35, "{all:?}");
    assert!(all.renewed > 0, "{all:?}");
}

#[test]
fn who_is_back_before_it_is_removed_is_brought_up_from_the_log_and_both_are_equal() {
    let all = runs(20, 5, Run::short_life);
    assert!(
        all.crashes > 20 && all.kills > 20 && all.cuts > 10,
        "{all:?}"
    );
    // Where neither log knows an epoch of both any more, what one has beyond its commit position is
    // given up, and the other one may have released it: that is rare.
    assert!(all.renewed * 4 < seeds(20).count() as u64, "{all:?}");
}

/// A node is away while the other one writes more than its log keeps, all of it to two blocks:
/// which one stays, and which one leaves.
fn away(run: &mut Run, of_owner: bool) -> (usize, usize) {
    for at in 0..2 {
        run.open(at);
    }
    run.watch(Duration::from_secs(8));
    let is_owner = |it: &Option<State>| *it == Some(State::Owner);
    let owner = run.states().iter().position(is_owner).unwrap();
    let (stays, leaves) = if of_owner {
        (1 - owner, owner)
    } else {
        (owner, 1 - owner)
    };
    run.end(leaves, of_owner);
    // What is on its way then counts.
    run.work.ends.set(true);
    is_alone(run, stays);
    run.watch(Duration::from_millis(200));
    let (work, side) = (run.work.clone(), run.sides[stays].clone().unwrap());
    let writes = async move { work.writes(&side, (33, 2), 4000).await };
    run.world.block_on(&run.nodes[stays], DAY, writes).unwrap();
    run.watch(Duration::from_secs(1));
    (stays, leaves)
}

fn is_alone(run: &mut Run, at: usize) {
    while run.states()[at] != Some(State::Solo) || run.work.busy[at].get() > 0 {
        run.watch(Duration::from_millis(50));
    }
}

/// The other node comes back: what it was given.
fn comes_back(run: &mut Run, (stays, leaves): (usize, usize)) -> Renewal {
    run.open(leaves);
    run.rest();
    let status = run.sides[stays].as_ref().unwrap().status();
    let renewed = status.renewed.expect("it was made anew");
    println!("{renewed:?}");
    assert_eq!(renewed.done, renewed.blocks);
    renewed
}

/// Blocks that may differ: two, and what each of four hosts was writing.
const DIFFER_MAX: u64 = 2 + 4 * 6;

#[test]
fn who_was_away_gets_what_changed_meanwhile_and_no_more() {
    for of_owner in [false, true] {
        let mut run = Run::new(0);
        let nodes = away(&mut run, of_owner);
        let renewed = comes_back(&mut run, nodes);
        assert_eq!(renewed.whole, None);
        let sent = renewed.bytes >> 12;
        assert!((2..=DIFFER_MAX).contains(&sent), "{renewed:?}");
        // Of some of sixteen parts: a digest, and one of each of its blocks.
        let most = 8 * (32 + 16 + 16 * 16);
        assert!(
            renewed.digests > 0 && renewed.digests <= most,
            "{renewed:?}"
        );
    }
}

/// Nobody knows what it lacks: all of it is compared.
#[test]
fn what_is_compared_whole_is_sent_only_where_it_differs() {
    let mut run = Run::new(0);
    let (stays, leaves) = away(&mut run, false);
    run.end(stays, false);
    run.nodes[stays].restart();
    let forgetting = forget_removed(run.nodes[stays].core(0));
    run.world
        .block_on(&run.nodes[stays], DAY, forgetting)
        .unwrap();
    run.nodes[stays].kill();
    run.open(stays);
    is_alone(&mut run, stays);
    let renewed = comes_back(&mut run, (stays, leaves));
    assert!(renewed.whole.is_some(), "{renewed:?}");
    let sent = renewed.bytes >> 12;
    assert!((2..=DIFFER_MAX).contains(&sent), "{renewed:?}");
    assert!(renewed.digests >= 16 * 32, "all parts are: {renewed:?}");
}
