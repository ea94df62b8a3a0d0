//! The pending table against a target with ghosts: what was sent on a lost nexus is carried out any
//! time until the fence.
#![expect(clippy::cast_possible_truncation, reason = "small numbers of a test")]

use super::{
    Answer, CommandId, Decide, Evidence, Kind, Light, Mode, Nexus, Outcome, PendingTable,
    Resolution, Sharing, resolve_compare_and_write,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange, Now};

const BLOCKS: u64 = 6;
const PATHS: u32 = 3;

fn range(start: u64, len: u64) -> LbaRange {
    LbaRange::new(Lba(start), BlockCount(len)).unwrap()
}

fn nexus(path: u32, session: u32) -> Nexus {
    Nexus { path, session }
}

/// One copy at the target.
#[derive(Clone, Debug)]
struct Ghost {
    nexus: Nexus,
    id: CommandId,
    live: bool,
}

#[derive(Clone, Debug)]
struct Issued {
    kind: Kind,
    range: LbaRange,
    value: u64,
    sends: u32,
    executed: u32,
    outcome: Option<Outcome>,
}

/// A host with some paths, and a target that may still carry out what lost sessions sent.
struct World {
    table: PendingTable,
    sharing: Sharing,
    medium: Vec<u64>,
    issued: BTreeMap<CommandId, Issued>,
    /// Commands that the pending table does not know yet.
    lights: BTreeMap<CommandId, (Light, Nexus)>,
    sessions: Vec<u32>,
    down: Vec<bool>,
    at_target: Vec<Ghost>,
    to_send: Vec<CommandId>,
    to_fence: Vec<Nexus>,
    to_resolve: Vec<CommandId>,
    /// By block: what its issuer had acknowledged stands there.
    promised: Vec<Option<u64>>,
    broken: Option<String>,
    value: u64,
}

impl World {
    fn new(mode: Mode, sharing: Sharing) -> Self {
        Self {
            table: PendingTable::new(mode, sharing, Duration::from_secs(10)),
            sharing,
            medium: vec![0; BLOCKS as usize],
            issued: BTreeMap::new(),
            lights: BTreeMap::new(),
            sessions: vec![0; PATHS as usize],
            down: vec![false; PATHS as usize],
            at_target: Vec::new(),
            to_send: Vec::new(),
            to_fence: Vec::new(),
            to_resolve: Vec::new(),
            promised: vec![Some(0); BLOCKS as usize],
            broken: None,
            value: 0,
        }
    }

    fn blocks(range: LbaRange) -> std::ops::Range<usize> {
        range.start().0 as usize..range.end().0 as usize
    }

    fn carry(&mut self, decisions: Vec<Decide>) {
        for decision in decisions {
            match decision {
                Decide::Send(id) => {
                    self.to_send.push(id);
                    let it = &self.issued[&id];
                    if it.kind != Kind::Harmless {
                        self.promised[Self::blocks(it.range)].fill(None);
                    }
                }
                Decide::Fence(nexus) => self.to_fence.push(nexus),
                Decide::Resolve(id) => self.to_resolve.push(id),
                Decide::Complete(id, outcome) => self.complete(id, outcome),
            }
        }
    }

    fn complete(&mut self, id: CommandId, outcome: Outcome) {
        let it = self.issued.get_mut(&id).unwrap();
        if it.outcome.replace(outcome).is_some() {
            self.broken = Some(format!("{id:?} is reported twice"));
        }
        if outcome == Outcome::Success && it.kind != Kind::Harmless {
            if it.kind == Kind::Once && it.executed != 1 {
                self.broken = Some(format!("{id:?} was carried out {} times", it.executed));
            }
            let value = it.value;
            self.promised[Self::blocks(it.range)].fill(Some(value));
        }
    }

    fn begin(&mut self, kind: Kind, range: LbaRange) {
        self.value += 1;
        let (id, decisions) = self.table.begin(kind, Some(range));
        let issued = Issued {
            kind,
            range,
            value: self.value,
            sends: 0,
            executed: 0,
            outcome: None,
        };
        self.issued.insert(id, issued);
        self.carry(decisions);
    }

    /// Sends a command as light as can be, or begins it as all others.
    fn fly(&mut self, kind: Kind, range: LbaRange, path: u32) {
        let light = (!self.down[path as usize])
            .then(|| self.table.light(kind, Some(range)))
            .flatten();
        let Some(light) = light else {
            return self.begin(kind, range);
        };
        self.value += 1;
        let (id, nexus) = (light.id, nexus(path, self.sessions[path as usize]));
        let issued = Issued {
            kind,
            range,
            value: self.value,
            sends: 1,
            executed: 0,
            outcome: None,
        };
        self.issued.insert(id, issued);
        self.lights.insert(id, (light, nexus));
        if kind != Kind::Harmless {
            self.promised[Self::blocks(range)].fill(None);
        }
        let live = true;
        self.at_target.push(Ghost { nexus, id, live });
    }

    /// The pending table takes a light command on.
    fn enter(&mut self, id: CommandId) {
        if let Some((light, nexus)) = self.lights.remove(&id) {
            assert_eq!(self.table.enter(light, nexus), id);
            self.table.sent(id, nexus);
        }
    }

    /// Sends what is to be sent, on the first path that is up.
    fn send(&mut self, at: usize, whole: bool) {
        if self.to_send.is_empty() {
            return;
        }
        let Some(path) = (0..PATHS)
            .map(|n| (n + at as u32) % PATHS)
            .find(|path| !self.down[*path as usize])
        else {
            return;
        };
        let id = self.to_send.remove(at % self.to_send.len());
        if self.issued[&id].outcome.is_some() {
            return;
        }
        let nexus = nexus(path, self.sessions[path as usize]);
        assert!(self.table.placed(id, nexus), "a lost nexus is not up");
        if whole {
            self.table.sent(id, nexus);
            self.issued.get_mut(&id).unwrap().sends += 1;
            self.at_target.push(Ghost {
                nexus,
                id,
                live: true,
            });
        }
    }

    /// The target carries one command out; the host is answered if the session lives.
    fn execute(&mut self, at: usize, answer: Answer) {
        if self.at_target.is_empty() {
            return;
        }
        let ghost = self.at_target.remove(at % self.at_target.len());
        let it = self.issued.get_mut(&ghost.id).unwrap();
        if answer == Answer::Success {
            it.executed += 1;
            if it.kind != Kind::Harmless {
                let value = it.value;
                self.medium[Self::blocks(it.range)].fill(value);
            }
        }
        self.check();
        if ghost.live {
            if let Some((light, _)) = (answer != Answer::NotDone)
                .then(|| self.lights.remove(&ghost.id))
                .flatten()
            {
                let decisions = self.table.over(light);
                let outcome = match answer {
                    Answer::Success => Outcome::Success,
                    Answer::Failure | Answer::NotDone | Answer::Ended => Outcome::Failure,
                };
                self.complete(ghost.id, outcome);
                return self.carry(decisions);
            }
            self.enter(ghost.id);
            let decisions = self.table.answered(ghost.id, ghost.nexus, answer);
            self.carry(decisions);
        }
    }

    fn lose(&mut self, path: u32, now: Now) {
        if std::mem::replace(&mut self.down[path as usize], true) {
            return;
        }
        let nexus = nexus(path, self.sessions[path as usize]);
        self.sessions[path as usize] += 1;
        for ghost in &mut self.at_target {
            ghost.live &= ghost.nexus != nexus;
        }
        let lights = self.lights.iter().filter(|(_, (_, on))| *on == nexus);
        for id in lights.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.enter(id);
        }
        let decisions = self.table.lost(nexus, now);
        self.carry(decisions);
    }

    /// The target lays the ghosts of one nexus: each is carried out or dropped, and then the
    /// evidence is there.
    fn fence(&mut self, at: usize, bits: u64) {
        if self.to_fence.is_empty() {
            return;
        }
        let nexus = self.to_fence.remove(at % self.to_fence.len());
        let (of_nexus, rest) = self
            .at_target
            .drain(..)
            .partition(|ghost| ghost.nexus == nexus);
        self.at_target = rest;
        for (n, ghost) in (of_nexus as Vec<Ghost>).into_iter().enumerate() {
            if bits >> (n % 64) & 1 == 1 {
                self.at_target.push(ghost);
                let last = self.at_target.len() - 1;
                self.execute(last, Answer::Success);
            }
        }
        let decisions = self.table.fenced(nexus, Evidence::NexusFence);
        self.carry(decisions);
        self.down[nexus.path as usize] = false;
    }

    fn resolve(&mut self) {
        let Some(id) = self.to_resolve.pop() else {
            return;
        };
        let done = self.issued[&id].executed > 0;
        let resolution = if done {
            Resolution::Done
        } else {
            Resolution::NotDone
        };
        let decisions = self.table.resolved(id, resolution);
        self.carry(decisions);
    }

    /// What was acknowledged to an issuer stands on the medium until a newer command of its own is
    /// on its way.
    fn check(&mut self) {
        for (block, promised) in self.promised.iter().enumerate() {
            if promised.is_some_and(|value| value != self.medium[block]) && self.broken.is_none() {
                self.broken = Some(format!(
                    "block {block} has {} again, promised {promised:?}",
                    self.medium[block]
                ));
            }
        }
    }

    /// Until everybody is answered.
    fn finish(&mut self) {
        // What was placed and never left goes elsewhere when its session ends.
        for path in 0..PATHS {
            self.lose(path, Now::ZERO);
        }
        for round in 0..10_000 {
            if self.to_fence.is_empty() {
                self.down.fill(false);
            }
            self.fence(0, round);
            self.resolve();
            self.send(0, true);
            self.execute(0, Answer::Success);
            self.check();
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Begin(u8, u64, u64),
    /// The same as a light command, on this path.
    Fly(u8, u64, u64, u32),
    Send(usize, bool),
    Execute(usize, u8),
    Lose(u32),
    Fence(usize, u64),
    Resolve,
    GiveUp(usize),
}

fn any_step(patient: bool) -> impl Strategy<Value = Step> {
    let most = if patient { 0_u32 } else { 1 };
    prop_oneof![
        4 => (0..10_u8, 0..BLOCKS, 1..4_u64).prop_map(|(kind, start, len)| Step::Begin(kind, start, len.min(BLOCKS - start))),
        4 => (0..10_u8, 0..BLOCKS, 1..4_u64, 0..PATHS).prop_map(|(kind, start, len, path)| {
            Step::Fly(kind, start, len.min(BLOCKS - start), path)
        }),
        5 => (any::<prop::sample::Index>(), prop::bool::weighted(0.85)).prop_map(|(at, whole)| Step::Send(at.index(64), whole)),
        5 => (0..64_usize, 0..12_u8).prop_map(|(at, answer)| Step::Execute(at, answer)),
        2 => (0..PATHS).prop_map(Step::Lose),
        2 => (0..8_usize, any::<u64>()).prop_map(|(at, bits)| Step::Fence(at, bits)),
        1 => Just(Step::Resolve),
        most => (0..64_usize).prop_map(Step::GiveUp),
    ]
}

fn any_steps(patient: bool) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any_step(patient), 1..120)
}

fn kind_of(number: u8) -> Kind {
    match number {
        0 => Kind::Harmless,
        1 => Kind::Once,
        _ => Kind::Write,
    }
}

fn play(mode: Mode, sharing: Sharing, steps: &[Step]) -> World {
    let mut world = World::new(mode, sharing);
    for step in steps {
        match step {
            Step::Begin(kind, start, len) => world.begin(kind_of(*kind), range(*start, *len)),
            Step::Fly(kind, start, len, path) => {
                world.fly(kind_of(*kind), range(*start, *len), *path);
            }
            Step::Send(at, whole) => world.send(*at, *whole),
            Step::Execute(at, answer) => world.execute(
                *at,
                match answer {
                    0 => Answer::NotDone,
                    1 => Answer::Failure,
                    _ => Answer::Success,
                },
            ),
            Step::Lose(path) => {
                // What was light is in nobody's list before.
                let early = world.to_send.clone();
                world.lose(*path, Now::ZERO);
                if world.sharing == Sharing::Shared && mode != Mode::Fast {
                    let again = world.to_send.iter().filter(|id| !early.contains(id));
                    let sent = again.filter(|id| {
                        world.issued[id].kind == Kind::Write && world.issued[id].sends > 0
                    });
                    let unfenced = |id: &CommandId| {
                        world
                            .at_target
                            .iter()
                            .any(|ghost| ghost.id == *id && !ghost.live)
                    };
                    assert!(
                        !sent.copied().any(|id| unfenced(&id)),
                        "sent again before the fence"
                    );
                }
            }
            Step::Fence(at, bits) => world.fence(*at, *bits),
            Step::Resolve => world.resolve(),
            Step::GiveUp(at) => {
                let open: Vec<CommandId> = world
                    .issued
                    .iter()
                    .filter(|(_, it)| it.outcome.is_none())
                    .map(|(id, _)| *id)
                    .collect();
                if !open.is_empty() {
                    let decisions = world.table.give_up(open[at % open.len()]);
                    world.carry(decisions);
                }
            }
        }
        world.check();
        if world.broken.is_some() {
            break;
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_ghost_ever_brings_back_what_was_replaced_and_everybody_is_reported(
        steps in any_steps(true), alone: bool, strict: bool
    ) {
        let sharing = if alone { Sharing::Alone } else { Sharing::Shared };
        let mode = if strict { Mode::Strict } else { Mode::Timed };
        let mut world = play(mode, sharing, &steps);
        prop_assert_eq!(&world.broken, &None);
        world.finish();
        prop_assert_eq!(&world.broken, &None);
        prop_assert_eq!(world.table.open(), 0);
        let unreported = world.issued.values().filter(|it| it.outcome.is_none()).count();
        prop_assert_eq!(unreported, 0);
        prop_assert!(world.table.entries.is_empty() && world.table.held.is_empty() && world.table.waiting.is_empty());
    }

    #[test]
    fn who_gives_up_is_reported_at_once_and_newer_writes_still_wait_for_the_ghost(steps in any_steps(false), alone: bool) {
        let sharing = if alone { Sharing::Alone } else { Sharing::Shared };
        let mut world = play(Mode::Strict, sharing, &steps);
        prop_assert_eq!(&world.broken, &None);
        world.finish();
        prop_assert_eq!(&world.broken, &None);
        prop_assert_eq!(world.table.open(), 0);
        prop_assert!(world.table.held.is_empty());
    }
}

/// The same world finds the fault in what Linux does: it can see ghosts.
#[test]
fn without_fences_a_ghost_is_seen() {
    let first = [
        Step::Begin(9, 0, 1),
        Step::Send(0, true),
        Step::Lose(0),
        Step::Send(0, true),
    ];
    let second = [
        Step::Execute(1, 9),
        Step::Begin(9, 0, 1),
        Step::Send(0, true),
        Step::Execute(1, 9),
        Step::Execute(0, 9),
    ];
    let steps: Vec<Step> = first.into_iter().chain(second).collect();
    let broken = play(Mode::Fast, Sharing::Alone, &steps)
        .broken
        .expect("a ghost");
    assert!(broken.contains("block 0 has 1 again"), "{broken}");
    for sharing in [Sharing::Alone, Sharing::Shared] {
        assert_eq!(play(Mode::Strict, sharing, &steps).broken, None);
    }
}

#[test]
fn a_write_of_a_unit_of_our_own_is_repeated_at_once_but_reported_after_the_fence() {
    let mut table = PendingTable::new(Mode::Strict, Sharing::Alone, Duration::from_secs(1));
    let (id, first) = table.begin(Kind::Write, Some(range(0, 8)));
    assert_eq!(first, [Decide::Send(id)]);
    let (a, b) = (nexus(0, 0), nexus(1, 0));
    assert!(table.placed(id, a));
    table.sent(id, a);
    assert_eq!(
        table.lost(a, Now::ZERO),
        [Decide::Fence(a), Decide::Send(id)]
    );
    assert!(!table.placed(id, a));
    assert!(table.placed(id, b));
    table.sent(id, b);
    assert_eq!(table.answered(id, b, Answer::Success), []);
    let (later, waits) = table.begin(Kind::Write, Some(range(7, 1)));
    assert_eq!(waits, []);
    assert_eq!(
        table.fenced(a, Evidence::Quiesced),
        [],
        "time is no proof in strict mode"
    );
    assert_eq!(
        table.fenced(a, Evidence::Reinstated),
        [Decide::Complete(id, Outcome::Success), Decide::Send(later)]
    );
    assert_eq!(table.fenced(a, Evidence::Reinstated), []);
}

#[test]
fn what_was_never_sent_goes_elsewhere_at_once_and_needs_no_fence() {
    let mut table = PendingTable::new(Mode::Strict, Sharing::Shared, Duration::from_secs(1));
    let (id, _) = table.begin(Kind::Write, Some(range(0, 8)));
    assert!(table.placed(id, nexus(0, 0)));
    assert_eq!(table.lost(nexus(0, 0), Now::ZERO), [Decide::Send(id)]);
    let (read, _) = table.begin(Kind::Harmless, Some(range(0, 8)));
    assert!(table.placed(read, nexus(1, 0)));
    table.sent(read, nexus(1, 0));
    assert_eq!(table.lost(nexus(1, 0), Now::ZERO), [Decide::Send(read)]);
}

#[test]
fn a_target_that_cannot_fence_is_given_its_time() {
    let mut table = PendingTable::new(Mode::Timed, Sharing::Shared, Duration::from_secs(7));
    let (id, _) = table.begin(Kind::Write, Some(range(0, 8)));
    assert!(table.placed(id, nexus(0, 0)));
    table.sent(id, nexus(0, 0));
    let now = Now::ZERO.after(Duration::from_secs(100));
    table.lost(nexus(0, 0), now);
    let due = now.after(Duration::from_secs(7));
    assert_eq!(table.deadline(), Some(due));
    assert_eq!(table.tick(now), []);
    assert_eq!(table.tick(due), [Decide::Send(id)]);
    assert_eq!(table.deadline(), None);
}

#[test]
fn writes_that_overlap_go_in_the_order_in_which_they_came() {
    let mut table = PendingTable::new(Mode::Strict, Sharing::Shared, Duration::from_secs(1));
    let (first, _) = table.begin(Kind::Write, Some(range(0, 4)));
    let (second, waits) = table.begin(Kind::Write, Some(range(3, 4)));
    // Overlaps only what waits, and must not overtake it.
    let (third, waits_too) = table.begin(Kind::Write, Some(range(6, 4)));
    let (other, goes) = table.begin(Kind::Write, Some(range(20, 1)));
    assert_eq!(
        (waits, waits_too, goes),
        (vec![], vec![], vec![Decide::Send(other)])
    );
    let a = nexus(0, 0);
    let mut end = |id| {
        assert!(table.placed(id, a));
        table.sent(id, a);
        table.answered(id, a, Answer::Success)
    };
    assert_eq!(
        end(first),
        [
            Decide::Complete(first, Outcome::Success),
            Decide::Send(second)
        ]
    );
    assert_eq!(
        end(second),
        [
            Decide::Complete(second, Outcome::Success),
            Decide::Send(third)
        ]
    );
}

#[test]
fn a_compare_and_write_is_inspected_before_it_is_repeated() {
    let resolve = |found: &[u8], sharing| resolve_compare_and_write(b"old", b"new", found, sharing);
    assert_eq!(resolve(b"old", Sharing::Alone), Resolution::NotDone);
    assert_eq!(resolve(b"new", Sharing::Alone), Resolution::Done);
    assert_eq!(resolve(b"new", Sharing::Shared), Resolution::Unknown);
    assert_eq!(resolve(b"odd", Sharing::Alone), Resolution::Unknown);
    assert_eq!(
        resolve_compare_and_write(b"old", b"old", b"old", Sharing::Alone),
        Resolution::Done
    );
}
