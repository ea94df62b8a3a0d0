//! Two nodes with some LUNs in one ring, over links that are lost at any byte: what one of them
//! has is the beginning of what the other one has, and in the end all of it.
//!
//! What nodes say over control is done at once here: who follows whom, and from which number.

use super::pipe::{PipeLink, pipe};
use super::*;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use units::BufMut;

pub(crate) const RING: u8 = 2;
const LUNS: u64 = 4;
/// The smallest window, and little more to hold.
pub(crate) const LIMITS: Limits = Limits {
    window: Cost::FRAME_MAX,
    held: Cost {
        bytes: 4 << 20,
        records: 400,
    },
};

/// What a step of the world finds wrong.
type Checked = Result<(), String>;

#[derive(Clone)]
pub(crate) struct Random(Rc<Cell<u64>>);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Rc::new(Cell::new(seed)))
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        let next = self.0.get().wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.0.set(next);
        let mixed = (next ^ next >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % end
    }
}

/// What a test counts, to see that it does what it is for.
#[derive(Default, Debug)]
pub(crate) struct Counts {
    pub(crate) given_out: u64,
    pub(crate) repeated: u64,
    pub(crate) resumed: u64,
    pub(crate) anew: u64,
    pub(crate) late: u64,
    pub(crate) stopped: u64,
    pub(crate) full: u64,
    pub(crate) takeovers: u64,
    pub(crate) not_followed: u64,
    pub(crate) no_memory: u64,
}

/// A copy of a LUN: which change its log has at each number, by the epoch that made it.
#[derive(Clone, Default)]
struct LogCopy {
    log: Vec<(u64, u64)>,
    stable: usize,
    commit: u64,
}

struct Lun {
    epoch: u64,
    owner: usize,
    copies: [LogCopy; 2],
    /// As far as the owner knows, the other one has this stable.
    acked: u64,
    /// How many of the owner's log were pushed.
    pushed: usize,
    /// The processes between which it is streamed.
    agreed: Option<[u64; 2]>,
}

struct Line {
    connection: Connection,
    link: PipeLink,
    is_attached: bool,
}

struct Node {
    incarnation: u64,
    stream: RingStream,
    lines: Vec<Line>,
}

pub(crate) struct World {
    random: Random,
    nodes: [Node; 2],
    luns: BTreeMap<u64, Lun>,
    pub(crate) counts: Counts,
    /// Faults happen.
    faults: bool,
}

fn node(incarnation: u64) -> Node {
    Node {
        incarnation,
        stream: RingStream::new(RING, LIMITS),
        lines: Vec::new(),
    }
}

/// The data of the change that the owner of an epoch made at a number: it says which one it is.
fn made(volume: u64, (epoch, blocks): (u64, u64), number: u64) -> (Change, Buf) {
    let (change, data) = change(volume, number, blocks);
    let bytes = contents(volume << 32 | epoch, number, data.len());
    (change, Buf::copy_of(&bytes))
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let lun = |volume: u64| Lun {
            epoch: 1,
            owner: usize::try_from(volume % 2).unwrap(),
            copies: Default::default(),
            acked: 0,
            pushed: 0,
            agreed: None,
        };
        Self {
            random: Random::new(seed),
            nodes: [node(1), node(1)],
            luns: (0..LUNS).map(|volume| (volume, lun(volume))).collect(),
            counts: Counts::default(),
            faults: true,
        }
    }

    /// So many steps with faults, and then as many without as are needed for everything to arrive.
    pub(crate) fn run(&mut self, steps: u64) -> Checked {
        for _ in 0..steps {
            self.step()?;
        }
        self.faults = false;
        for round in 0.. {
            if self.is_at_rest() {
                break;
            }
            if round == 4_000 {
                return Err(format!("it does not come to rest: {}", self.unrest()));
            }
            self.tend()?;
        }
        for (volume, lun) in &self.luns {
            let [left, right] = &lun.copies;
            if left.log != right.log || left.commit != right.commit {
                return Err(format!("LUN {volume} differs at rest"));
            }
        }
        Ok(())
    }

    fn step(&mut self) -> Checked {
        let at = usize::try_from(self.random.below(2)).unwrap();
        match self.random.below(100) {
            0..15 => self.write(),
            15..25 => self.settle(at, self.random.below(4) == 0),
            25..35 => {
                self.pump(at, self.random.below(2) == 0);
                Ok(())
            }
            35..92 => self.exchange(at),
            92..94 => {
                self.connect(at);
                Ok(())
            }
            94..96 => {
                self.cut(at);
                Ok(())
            }
            96 => {
                let volume = self.random.below(LUNS);
                self.take_over(volume)?;
                if self.random.below(3) > 0 {
                    return Ok(());
                }
                self.take_over(volume)
            }
            97 if self.random.below(8) == 0 => {
                self.restart(at);
                Ok(())
            }
            _ => {
                self.agree();
                Ok(())
            }
        }
    }

    /// What goes on where nothing fails.
    fn tend(&mut self) -> Checked {
        // One attempt at a time: else each would take the place of the one before for ever.
        if self.nodes[0].lines.is_empty() {
            self.connect(0);
        }
        self.agree();
        for at in [0, 1] {
            self.push_more(at);
            self.settle(at, true)?;
            self.pump(at, true);
            self.exchange(at)?;
        }
        Ok(())
    }

    fn is_at_rest(&self) -> bool {
        self.luns.values().all(|lun| {
            let owner = &lun.copies[lun.owner];
            lun.acked == owner.log.len() as u64 && owner.commit == lun.copies[1 - lun.owner].commit
        })
    }

    fn unrest(&self) -> String {
        let luns = self.luns.iter().map(|(volume, lun)| {
            let (owner, other) = (&lun.copies[lun.owner], &lun.copies[1 - lun.owner]);
            format!(
                " {volume}: {} made, {} pushed, {} there, {} acked, committed {}/{};",
                owner.log.len(),
                lun.pushed,
                other.log.len(),
                lun.acked,
                owner.commit,
                other.commit
            )
        });
        let nodes = self.nodes.iter().map(|node| {
            let (unstable, held) = (node.stream.unstable(), node.stream.held());
            let lines = node.lines.iter().map(|line| {
                let waiting = line.connection.transmit().bytes();
                let outstanding = line.connection.outstanding().records;
                let number = line.connection.opened().map(|it| it.number.0);
                format!(
                    " line {number:?} attached {} waiting {waiting} outstanding {outstanding} may send {};",
                    line.is_attached,
                    line.connection.may_send(Cost { bytes: 0, records: 1 })
                )
            });
            let lines: String = lines.collect();
            let (unstable, held) = (unstable.records, held.records);
            format!(" node: {unstable} unstable, {held} held, {}{lines}", node.stream.is_waiting())
        });
        luns.chain(nodes).collect()
    }

    /// The owner of a LUN makes some changes, and pushes them if it may.
    fn write(&mut self) -> Checked {
        let volume = self.random.below(LUNS);
        let lun = self.luns.get_mut(&volume).unwrap();
        let (most, epoch) = (
            [3, 3, 20, 128][usize::try_from(self.random.below(4)).unwrap()],
            lun.epoch,
        );
        for _ in 0..=self.random.below(most) {
            let blocks = self.random.below(3);
            lun.copies[lun.owner].log.push((epoch, blocks));
        }
        let owner = lun.owner;
        self.push_more(owner);
        Ok(())
    }

    /// Pushes what was made and was not pushed, in frames of any size.
    fn push_more(&mut self, at: usize) {
        for (volume, lun) in &mut self.luns {
            if lun.owner != at || lun.agreed.is_none() {
                continue;
            }
            let log = &lun.copies[at].log;
            while lun.pushed < log.len() {
                let left = log.len() - lun.pushed;
                let count = usize::try_from(1 + self.random.below(128))
                    .unwrap()
                    .min(left);
                let numbers = lun.pushed..lun.pushed + count;
                let changes = numbers
                    .map(|at| made(*volume, log[at], at as u64))
                    .collect();
                let records = Records::new(origin(*volume, lun.epoch, RING), changes).unwrap();
                match self.nodes[at].stream.push(records) {
                    Ok(()) => lun.pushed += count,
                    Err(NotTaken::Full(_)) => {
                        self.counts.full += 1;
                        return;
                    }
                    Err(NotTaken::NotNext(records)) => panic!("{records:?} are next"),
                }
            }
        }
    }

    /// Some of what came is stable now.
    fn settle(&mut self, at: usize, all: bool) -> Checked {
        for (volume, lun) in &mut self.luns {
            let (epoch, copy) = (lun.epoch, &mut lun.copies[at]);
            if lun.owner == at || copy.stable == copy.log.len() {
                continue;
            }
            let more = copy.log.len() - copy.stable;
            let more = if all {
                more
            } else {
                usize::try_from(self.random.below(more as u64 + 1)).unwrap()
            };
            copy.stable += more;
            let below = Sequence(copy.stable as u64);
            self.nodes[at]
                .stream
                .stable(VolumeId(*volume), Epoch(epoch), below);
        }
        Ok(())
    }

    fn pump(&mut self, at: usize, flush: bool) {
        let node = &mut self.nodes[at];
        let Some(line) = node.lines.iter_mut().find(|it| it.is_attached) else {
            return;
        };
        node.stream.pump(&mut line.connection);
        self.counts.stopped += u64::from(node.stream.is_waiting());
        if flush {
            node.stream.flush(&mut line.connection);
        }
    }

    /// A line more, which either of them makes.
    fn connect(&mut self, at: usize) {
        if self.nodes.iter().any(|it| it.lines.len() >= 3) {
            return;
        }
        let random = self.random.clone();
        let (left, right) = pipe(move || match random.below(3) {
            0 => usize::try_from(random.below(40)).unwrap(),
            _ => 100_000,
        });
        let number = self.nodes[at].stream.next_number();
        let of = |at: usize| Own {
            incarnation: Incarnation(self.nodes[at].incarnation << 8 | at as u64),
            ..own(u8::try_from(at).unwrap())
        };
        let there = known(u8::try_from(1 - at).unwrap());
        let here = known(u8::try_from(at).unwrap());
        let connects = Connection::connects(of(at), there, number, Purpose::Ring(RING));
        let accepts = Connection::accepts(of(1 - at), vec![here]);
        if self.faults && self.random.below(2) == 0 {
            let most = usize::try_from(self.random.below(30_000)).unwrap();
            [&left, &right][most % 2].cut_after(most);
        }
        for (at, connection, link) in [(at, connects, left), (1 - at, accepts, right)] {
            self.nodes[at].lines.push(Line {
                connection,
                link,
                is_attached: false,
            });
        }
    }

    fn cut(&mut self, at: usize) {
        let lines = &self.nodes[at].lines;
        if let Some(line) = lines.get(usize::try_from(self.random.below(3)).unwrap()) {
            line.link.cut();
        }
    }

    /// Another process of a node: it has what was stable, and knows nothing else.
    fn restart(&mut self, at: usize) {
        for line in self.nodes[at].lines.drain(..) {
            line.link.cut();
        }
        self.nodes[at] = node(self.nodes[at].incarnation + 1);
        for lun in self.luns.values_mut() {
            lun.agreed = None;
            let copy = &mut lun.copies[at];
            if lun.owner == at {
                copy.stable = copy.log.len();
            } else {
                copy.log.truncate(copy.stable);
            }
        }
    }

    /// The other copy of a LUN becomes its owner, with what it has; the one before gives up what
    /// only it has. What is on its way between them stays there.
    fn take_over(&mut self, volume: u64) -> Checked {
        let lun = self.luns.get_mut(&volume).unwrap();
        let (old, new) = (lun.owner, 1 - lun.owner);
        let length = lun.copies[new].log.len();
        if lun.acked > length as u64 {
            return Err(format!("LUN {volume}: acknowledged, and not there"));
        }
        lun.copies[old].log.truncate(length);
        lun.copies[old].stable = length;
        lun.copies[new].stable = length;
        (lun.owner, lun.epoch, lun.agreed) = (new, lun.epoch + 1, None);
        self.nodes[old].stream.end(VolumeId(volume));
        let below = Sequence(length as u64);
        self.nodes[new]
            .stream
            .stable(VolumeId(volume), Epoch(lun.epoch), below);
        self.nodes[new].stream.leave(VolumeId(volume));
        self.counts.takeovers += 1;
        self.agree();
        Ok(())
    }

    /// Where both processes know each other, they agree who follows whom from which number on.
    fn agree(&mut self) {
        let lines = self
            .nodes
            .iter()
            .map(|it| it.lines.iter().find(|it| it.is_attached));
        let lines: Option<Vec<&Line>> = lines.collect();
        let heard = |line: &Line| line.connection.opened().map(|it| it.incarnation.0 >> 8);
        let now = [self.nodes[0].incarnation, self.nodes[1].incarnation];
        let met =
            lines.is_some_and(|it| (heard(it[0]), heard(it[1])) == (Some(now[1]), Some(now[0])));
        if !met {
            return;
        }
        for (volume, lun) in &mut self.luns {
            if lun.agreed == Some(now) {
                continue;
            }
            let (owner, other) = (lun.owner, 1 - lun.owner);
            let next = lun.copies[other].log.len();
            let from = Sequence(next as u64);
            (lun.agreed, lun.pushed, lun.acked) = (Some(now), next, 0);
            let [id, epoch] = [*volume, lun.epoch];
            self.nodes[other]
                .stream
                .follow(VolumeId(id), Epoch(epoch), from);
            self.nodes[owner]
                .stream
                .begin(VolumeId(id), Epoch(epoch), from);
            let commit = Sequence(lun.copies[owner].commit);
            self.nodes[owner]
                .stream
                .commit(VolumeId(id), Epoch(epoch), commit);
            // What `follow` says over control.
            let stable = lun.copies[other].stable;
            self.nodes[other]
                .stream
                .stable(VolumeId(id), Epoch(epoch), Sequence(stable as u64));
        }
    }

    fn exchange(&mut self, at: usize) -> Checked {
        let lines = std::mem::take(&mut self.nodes[at].lines);
        let count = lines.len();
        let mut lines = VecDeque::from(lines);
        let mut done = Ok(());
        for _ in 0..count {
            let Some(mut line) = lines.pop_front() else {
                break;
            };
            let (random, faults) = (self.random.clone(), self.faults);
            let no_memory = &mut self.counts.no_memory;
            let mut memory = |bytes| {
                let refuses = faults && random.below(3) == 0;
                *no_memory += u64::from(refuses);
                (!refuses).then(|| BufMut::zeroed(bytes))
            };
            let moved = crate::exchange(&mut line.connection, &mut line.link, &mut memory);
            let goes_on = self.events(at, &mut line, &mut lines);
            let bounds = self.is_within_bounds(at, &line);
            done = done
                .and(goes_on.as_ref().map(|_| ()).map_err(String::clone))
                .and(bounds);
            if moved.is_ok() && goes_on == Ok(true) {
                lines.push_back(line);
            } else {
                line.link.cut();
            }
        }
        self.nodes[at].lines = lines.into();
        done
    }

    fn is_within_bounds(&self, at: usize, line: &Line) -> Checked {
        let stream = &self.nodes[at].stream;
        let waiting = line.connection.transmit().bytes();
        if !stream.unstable().is_within(LIMITS.window) {
            return Err(format!(
                "{:?} came, more than the window",
                stream.unstable()
            ));
        }
        if !stream.held().is_within(LIMITS.held.plus(Cost::FRAME_MAX)) {
            return Err(format!("{:?} are held", stream.held()));
        }
        if waiting > SEND_AHEAD_BYTES + DATA_BYTES_MAX + BODY_BYTES_MAX {
            return Err(format!("{waiting} bytes wait to be sent"));
        }
        Ok(())
    }

    /// What came over a line; answers whether it goes on.
    fn events(
        &mut self,
        at: usize,
        line: &mut Line,
        others: &mut VecDeque<Line>,
    ) -> Result<bool, String> {
        while let Some(event) = line.connection.poll_event() {
            match event {
                Event::Opened(ref opened) => match self.nodes[at].stream.attach(opened) {
                    Ok(attached) => {
                        self.counts.resumed += u64::from(attached == Attached::Resumes);
                        self.counts.anew += u64::from(attached == Attached::Anew);
                        line.is_attached = true;
                        // Those that have not begun may be late.
                        let older = others.iter().filter(|it| it.is_attached);
                        older.for_each(|it| it.link.cut());
                        others.retain(|it| !it.is_attached);
                    }
                    Err(_) => {
                        self.counts.late += 1;
                        line.connection.bye(Reason::Replaced);
                    }
                },
                Event::Records(records) => self.records(at, records)?,
                Event::Acks(positions) => self.acks(at, &positions)?,
                Event::Commits(positions) => {
                    for it in positions.positions {
                        self.committed(at, it);
                    }
                }
                Event::Credits => {}
                Event::Closed(Closed::TheyEnd(Reason::Replaced) | Closed::WeEnd(_)) => {
                    return Ok(false);
                }
                Event::Message(..)
                | Event::Unit(..)
                | Event::Forward(_)
                | Event::Beacon(_)
                | Event::Answer(_)
                | Event::Closed(_) => {
                    return Err(format!("{event:?}"));
                }
            }
        }
        Ok(true)
    }

    fn records(&mut self, at: usize, records: Records) -> Checked {
        let origin = records.origin();
        match self.nodes[at].stream.records(records) {
            Taken::Repeated => self.counts.repeated += 1,
            Taken::NotFollowed => self.counts.not_followed += 1,
            Taken::Gap(gap) => return Err(format!("{gap}")),
            Taken::New(records) => {
                let lun = self.luns.get_mut(&origin.volume.0).unwrap();
                if lun.owner == at || lun.epoch != origin.epoch.0 {
                    return Err(format!("LUN {}: not the owner's", origin.volume.0));
                }
                for (change, data) in records.into_changes().0 {
                    let number = lun.copies[at].log.len();
                    let of = lun.copies[1 - at].log.get(number).copied();
                    let volume = origin.volume.0;
                    let same =
                        of.is_some_and(|it| made(volume, it, number as u64) == (change, data));
                    let Some(of) = of.filter(|_| same) else {
                        return Err(format!("LUN {}: {number} is another", origin.volume.0));
                    };
                    lun.copies[at].log.push(of);
                    self.counts.given_out += 1;
                }
                self.committed(
                    at,
                    Position {
                        volume: origin.volume,
                        epoch: origin.epoch,
                        below: origin.commit,
                    },
                );
            }
        }
        Ok(())
    }

    fn acks(&mut self, at: usize, positions: &Positions) -> Checked {
        self.nodes[at].stream.acks(positions);
        for it in &positions.positions {
            let lun = self.luns.get_mut(&it.volume.0).unwrap();
            if lun.owner != at || lun.epoch != it.epoch.0 {
                continue;
            }
            if it.below.0 > lun.copies[1 - at].stable as u64 {
                return Err(format!("LUN {}: acknowledged, and not stable", it.volume.0));
            }
            lun.acked = lun.acked.max(it.below.0);
            let commit = &mut lun.copies[at].commit;
            *commit = lun.acked.max(*commit);
            self.nodes[at]
                .stream
                .commit(it.volume, it.epoch, Sequence(*commit));
        }
        Ok(())
    }

    fn committed(&mut self, at: usize, it: Position) {
        let lun = self.luns.get_mut(&it.volume.0).unwrap();
        if lun.owner != at && lun.epoch == it.epoch.0 {
            let copy = &mut lun.copies[at];
            copy.commit = copy.commit.max(it.below.0.min(copy.log.len() as u64));
        }
    }
}
