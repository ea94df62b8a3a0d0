//! One node: a pool with a journal and volumes that the other node has, too. By hand: who owns a
//! volume says the test.

use crate::wire::{Of, What, Wire};
use backends::{FileSpec, Provisioning, create_file, open_file};
use env::CoreHandle;
use proof::plain_pool::{self, JOURNAL, NUMBER};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockSize, Buf, ByteCount, Lba};
use volume::{Cut, Fences};
use volume_test::model::{Tag, recognise};
use write_back::{
    Carrier, Change, Epoch, Journal, Kind, Mode, NoEpoch, NotRead, Place, Role, Sequence, VolumeId,
    WriteBack,
};

pub(crate) const VOLUMES: usize = 2;
pub(crate) const VOLUME_BYTES: u64 = 1 << 20;

/// Where the history of every copy begins.
const FIRST_CUT: Cut = Cut(1000);

/// How often a node asks for what it hears.
const LISTEN: Duration = Duration::from_micros(100);

/// Bytes that are read out of the log at once.
const READ_BYTES: usize = 24 << 10;

/// How a pool is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) rings: u32,
    pub(crate) shard_bytes: u64,
    pub(crate) block_size: BlockSize,
}

/// A rule that a test breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    Nothing,
    /// What is taken is acknowledged, stable or not.
    AckBeforeStable,
    /// The owner commits what is stable with it alone.
    CommitAlone,
    /// A node that comes back keeps what only it has.
    KeepOwn,
}

/// What everybody knows of a volume in a ring: what is true, not what a node believes.
#[derive(Default)]
pub(crate) struct Truth {
    /// All below this number is committed.
    pub(crate) committed: u64,
    /// The number of what each write wrote to each block.
    pub(crate) numbers: BTreeMap<(Tag, Lba), u64>,
}

pub(crate) type Truths = Rc<RefCell<BTreeMap<Of, Truth>>>;

pub(crate) fn path(volume: usize) -> PathBuf {
    format!("/pool/volume-{volume}").into()
}

fn history(volume: usize) -> PathBuf {
    format!("/pool/volume-{volume}.changes").into()
}

pub(crate) async fn make(core: CoreHandle, scene: Scene) {
    plain_pool::make(&core, scene.rings, scene.shard_bytes).await;
    for volume in 0..VOLUMES {
        let size = ByteCount(VOLUME_BYTES);
        let path = path(volume);
        let made = create_file(&core, &path, size, Provisioning::Thin);
        made.await.unwrap();
    }
    let (journal, volumes) = open_volumes(&core, scene).await;
    for volume in &volumes {
        volume.begin_history(&core, FIRST_CUT).await.unwrap();
    }
    journal.close(&core).await;
}

/// A volume in a ring, on one node.
pub(crate) struct Stream {
    of: Of,
    me: usize,
    core: CoreHandle,
    volume: Arc<WriteBack>,
    wire: Rc<Wire>,
    truths: Truths,
    broken: Broken,
    delay: Duration,
    /// The epoch that this node owns or follows.
    epoch: Cell<u64>,
    is_owner: Cell<bool>,
    /// The epoch is committed, and with it all that hosts may have read before.
    serves: Cell<bool>,
    /// The epoch in which this node takes changes, and acknowledges them.
    follows: Cell<u64>,
    /// Who has the log go on with another epoch, one at a time.
    turn: tokio::sync::Mutex<()>,
    stable: Cell<Sequence>,
    /// Of the owner: what is not stable yet, and whether the other node gets it at once.
    heard: RefCell<VecDeque<(Change, Buf)>>,
    is_live: Cell<bool>,
    acked: Cell<Sequence>,
    committed: Cell<Sequence>,
    /// The connection that it has said on that it owns the volume.
    led: Cell<u64>,
    /// Of the replica: what came and is not taken yet.
    inbox: RefCell<VecDeque<Arrived>>,
    takes: Cell<bool>,
    pub(crate) read_back: Cell<u64>,
    pub(crate) given_up: Cell<u64>,
}

/// Changes of an owner in this epoch.
type Arrived = (u64, Vec<(Change, Buf)>);

/// What the ring reports of its volume.
struct Ear(Rc<Stream>);

impl Carrier for Ear {
    fn submitted(&self, changes: Vec<(Change, Buf)>) {
        let stream = &self.0;
        stream.note(&changes);
        stream.heard.borrow_mut().extend(changes.iter().cloned());
        if stream.is_live.get() {
            stream.send(changes);
        }
    }

    fn stable(&self, below: Sequence) {
        let stream = &self.0;
        stream.stable.set(below);
        let mut heard = stream.heard.borrow_mut();
        while heard.front().is_some_and(|it| it.0.sequence < below) {
            heard.pop_front();
        }
        drop(heard);
        stream.progress();
    }
}

impl Stream {
    fn say(&self, what: What) {
        let at = (self.core.now(), self.delay);
        self.wire.say(self.me, at, self.of, what);
    }

    fn send(&self, changes: Vec<(Change, Buf)>) {
        self.say(What::Changes {
            epoch: self.epoch.get(),
            changes,
            committed: self.committed.get(),
        });
    }

    /// What these changes write has these numbers.
    fn note(&self, changes: &[(Change, Buf)]) {
        let mut truths = self.truths.borrow_mut();
        let truth = truths.entry(self.of).or_default();
        for (change, data) in changes.iter().filter(|it| it.0.kind == Kind::Write) {
            let block = change.block_size.bytes() as usize;
            for (place, bytes) in data.to_vec().chunks(block).enumerate() {
                let lba = Lba(change.range.start().0 + place as u64);
                let tag = recognise(lba, bytes).expect("hosts write what is recognised");
                truth.numbers.insert((tag, lba), change.sequence.0);
            }
        }
    }

    /// Something is stable, here or there.
    fn progress(self: &Rc<Self>) {
        let (epoch, stable) = (self.epoch.get(), self.stable.get());
        if !self.is_owner.get() {
            // What becomes stable until the owner is followed may be given up yet.
            if self.broken != Broken::AckBeforeStable && self.follows.get() == epoch {
                self.say(What::Ack {
                    epoch,
                    below: stable,
                });
            }
            return;
        }
        let acked = match self.broken {
            Broken::CommitAlone => stable,
            Broken::Nothing | Broken::AckBeforeStable | Broken::KeepOwn => self.acked.get(),
        };
        let committed = stable.min(acked);
        if committed <= self.committed.get() {
            return;
        }
        self.committed.set(committed);
        if self.broken != Broken::CommitAlone {
            let mut truths = self.truths.borrow_mut();
            let truth = truths.entry(self.of).or_default();
            truth.committed = truth.committed.max(committed.0);
        }
        self.commits(epoch, committed);
        self.send(Vec::new());
    }

    fn commits(self: &Rc<Self>, epoch: u64, below: Sequence) {
        let stream = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let commit = stream
                .volume
                .commit(&stream.core, stream.of.1, (epoch, below));
            let _ = commit.await;
        }));
    }

    fn hear(self: &Rc<Self>, what: What) {
        match what {
            What::Lead {
                epoch,
                epochs,
                next,
            } => self.spawn(|it| it.follow(epoch, epochs, next)),
            What::Follow { epoch, next } if self.owns(epoch) => {
                self.acked.set(self.acked.get().min(next));
                self.spawn(|it| it.catch_up(next));
            }
            What::Ack { epoch, below } if self.owns(epoch) => {
                self.acked.set(below);
                self.progress();
            }
            What::Changes {
                epoch,
                changes,
                committed,
            } if !self.is_owner.get() && epoch == self.epoch.get() => {
                // Ahead of what it came with, which may have to wait for it.
                self.commits(epoch, committed);
                if !changes.is_empty() {
                    self.inbox.borrow_mut().push_back((epoch, changes));
                    if !self.takes.replace(true) {
                        self.spawn(Self::take);
                    }
                }
            }
            // Both begin anew.
            What::Refused => self.wire.lose(false),
            What::Follow { .. } | What::Ack { .. } | What::Changes { .. } => {}
        }
    }

    /// Hosts may use the volume here.
    pub(crate) fn serves(&self, epoch: u64) -> bool {
        self.serves.get() && self.owns(epoch)
    }

    fn owns(&self, epoch: u64) -> bool {
        self.is_owner.get() && epoch == self.epoch.get()
    }

    fn spawn<F: Future<Output = ()> + 'static>(self: &Rc<Self>, work: impl FnOnce(Rc<Self>) -> F) {
        self.core.spawn(Box::pin(work(Rc::clone(self))));
    }

    /// The replica: what only it has is given up.
    async fn follow(self: Rc<Self>, epoch: u64, epochs: Vec<Epoch>, next: Sequence) {
        let _turn = self.turn.lock().await;
        if epoch < self.epoch.get() {
            return;
        }
        self.follows.set(0);
        let order = self.volume.order(&self.core, self.of.1).await.unwrap();
        // Which epochs those are of that are on their way is not said.
        let common = common((&order.epochs, order.stable), (&epochs, next));
        let mut from = common.max(order.committed);
        if self.broken == Broken::KeepOwn {
            from = from.max(order.next);
        }
        // What this owner has sent before is its own, stable or not.
        if let Role::Replica { epoch: same, next } = order.role
            && same == epoch
        {
            from = next;
        }
        let given_up = order.next.0.saturating_sub(from.0);
        self.given_up.set(self.given_up.get() + given_up);
        self.inbox.borrow_mut().clear();
        self.is_owner.set(false);
        self.serves.set(false);
        self.is_live.set(false);
        self.epoch.set(epoch);
        let followed = self.volume.follow(&self.core, self.of.1, (epoch, from));
        let next = match followed.await {
            Ok(next) => next,
            // This node has owned the volume since.
            Err(NoEpoch::Late { .. }) => return,
            Err(refused) => panic!("{refused:?}"),
        };
        let order = self.volume.order(&self.core, self.of.1).await.unwrap();
        self.stable.set(order.stable);
        self.follows.set(epoch);
        self.say(What::Follow { epoch, next });
        self.progress();
    }

    /// The replica: puts into its log what came.
    async fn take(self: Rc<Self>) {
        loop {
            let Some((epoch, changes)) = self.inbox.borrow_mut().pop_front() else {
                self.takes.set(false);
                return;
            };
            let append = self
                .volume
                .append(&self.core, self.of.1, (epoch, changes))
                .await;
            match append {
                Ok(below) if self.broken == Broken::AckBeforeStable => {
                    self.say(What::Ack { epoch, below });
                }
                Ok(_) => {}
                Err(_) => {
                    self.inbox.borrow_mut().clear();
                    self.say(What::Refused);
                }
            }
        }
    }

    /// The owner: what the other node has missed is read out of the log, until it is stable no
    /// more; what is on its way follows, and then all of it at once.
    async fn catch_up(self: Rc<Self>, next: Sequence) {
        let (epoch, connection) = (self.epoch.get(), self.wire.generation());
        self.is_live.set(false);
        let mut place = Place::of(next);
        loop {
            let read = self
                .volume
                .read_back(&self.core, self.of.1, (place, READ_BYTES));
            let read = read.await;
            // The other node may have got it over another connection.
            if !self.owns(epoch) || self.wire.generation() != connection {
                return;
            }
            let read = match read {
                Ok(read) => read,
                Err(NotRead::Io(_)) => return,
                Err(error) => panic!("{:?} from {place:?}: {error:?}", self.of),
            };
            self.read_back
                .set(self.read_back.get() + read.changes.len() as u64);
            place = read.next;
            if !read.changes.is_empty() {
                self.note(&read.changes);
                self.send(read.changes);
                continue;
            }
            if let Some(rest) = self.heard_from(place.number()) {
                // What is committed may not have got there, either.
                self.send(rest);
                return self.is_live.set(true);
            }
            self.core.sleep_until(self.core.now().after(LISTEN)).await;
        }
    }

    /// What is not stable yet from this number on; `None`: the log has more before it.
    fn heard_from(&self, number: Sequence) -> Option<Vec<(Change, Buf)>> {
        let heard = self.heard.borrow();
        let first = heard.front().map_or(self.stable.get(), |it| it.0.sequence);
        let rest = heard.iter().filter(|it| it.0.sequence >= number);
        (number >= first).then(|| rest.cloned().collect())
    }

    /// This node owns the volume from now on, in this epoch.
    pub(crate) async fn own(self: Rc<Self>, epoch: u64) {
        let turn = self.turn.lock().await;
        let order = self.volume.order(&self.core, self.of.1).await.unwrap();
        assert!(epoch > self.epoch.get(), "{epoch} is late");
        self.is_live.set(false);
        self.inbox.borrow_mut().clear();
        self.heard.borrow_mut().clear();
        self.epoch.set(epoch);
        self.is_owner.set(true);
        self.serves.set(false);
        self.led.set(u64::MAX);
        self.acked.set(Sequence(0));
        self.committed.set(order.committed);
        self.stable.set(order.stable);
        drop(turn);
        let mut first = order.next;
        loop {
            let begun = self
                .volume
                .begin_epoch(&self.core, self.of.1, (epoch, first));
            // It is committed when the other node has it, or another epoch follows.
            match begun.await {
                // An earlier one is committed with a later one, and may be heard of after it.
                Ok(()) if self.owns(epoch) => return self.serves.set(true),
                Ok(()) => return,
                // An owner that was followed meanwhile has given some up.
                Err(NoEpoch::Beyond { next }) => first = next,
                Err(_) => return,
            }
        }
    }

    /// Says on each connection that it owns the volume, where it does.
    fn lead(self: &Rc<Self>) {
        if !self.is_owner.get() || self.led.get() == self.wire.generation() || !self.wire.is_up() {
            return;
        }
        self.led.set(self.wire.generation());
        self.is_live.set(false);
        self.spawn(|it| async move {
            let epoch = it.epoch.get();
            let Ok(order) = it.volume.order(&it.core, it.of.1).await else {
                return;
            };
            let begins = Role::Owner { epoch };
            if order.role != begins || order.epochs.last().is_none_or(|it| it.epoch != epoch) {
                // Its record is not stable yet.
                return it.led.set(u64::MAX);
            }
            it.say(What::Lead {
                epoch,
                epochs: order.epochs,
                next: order.next,
            });
        });
    }
}

/// The first number from which on two logs may differ.
fn common(ours: (&[Epoch], Sequence), theirs: (&[Epoch], Sequence)) -> Sequence {
    let end = |(epochs, next): (&[Epoch], Sequence), epoch| {
        let at = epochs.iter().position(|it: &Epoch| it.epoch == epoch)?;
        Some(epochs.get(at + 1).map_or(next, |it| it.first))
    };
    let mut newest = ours.0.iter().rev();
    let both = newest.find_map(|it| Some((end(ours, it.epoch)?, end(theirs, it.epoch)?)));
    both.map_or(Sequence(0), |(ours, theirs)| ours.min(theirs))
}

/// What is open of a node.
#[derive(Clone)]
pub(crate) struct Side {
    pub(crate) core: CoreHandle,
    pub(crate) journal: Arc<Journal>,
    pub(crate) volumes: Vec<Arc<WriteBack>>,
    pub(crate) streams: BTreeMap<Of, Rc<Stream>>,
}

/// Why a volume of several copies is not opened with this history, in this mode.
pub(crate) async fn without(
    core: &CoreHandle,
    scene: Scene,
    history: Option<PathBuf>,
    mode: Mode,
) -> String {
    let journal = Journal::open(core, Path::new(JOURNAL), NUMBER).await;
    let journal = journal.unwrap();
    let fences = Fences::new(1);
    let backing = open_file(core, spec(0, scene), fences.clone()).await;
    let (id, backing) = (VolumeId(100), backing.unwrap());
    let volume = match history {
        Some(history) => {
            let on = Arc::clone(&journal);
            WriteBack::with_history(on, id, backing, (fences, mode), history.into())
        }
        None => WriteBack::new(Arc::clone(&journal), id, backing, fences, mode),
    };
    volume.has_copies();
    let opened = volume::Volume::open(volume, core).await;
    journal.close(core).await;
    opened.err().expect("it is refused").cause
}

fn spec(volume: usize, scene: Scene) -> FileSpec {
    FileSpec {
        path: path(volume),
        block_size: scene.block_size,
        physical_block_exponent: 0,
        provisioning: Provisioning::Thin,
    }
}

/// A pool's journal and volumes, of which no lane is open.
pub(crate) async fn open_volumes(
    core: &CoreHandle,
    scene: Scene,
) -> (Arc<Journal>, Vec<Arc<WriteBack>>) {
    let journal = Journal::open(core, Path::new(JOURNAL), NUMBER).await;
    let journal = journal.unwrap();
    assert_eq!(journal.damaged(), []);
    let mut volumes = Vec::new();
    for at in 0..VOLUMES {
        let fences = Fences::new(1);
        let backing = open_file(core, spec(at, scene), fences.clone()).await;
        let (id, with) = (VolumeId(100 + at as u64), (fences, Mode::WriteBack));
        let (on, history) = (Arc::clone(&journal), history(at).into());
        let volume = WriteBack::with_history(on, id, backing.unwrap(), with, history);
        volume.has_copies();
        volumes.push(volume);
    }
    (journal, volumes)
}

pub(crate) async fn open(
    core: CoreHandle,
    me: usize,
    scene: Scene,
    wire: Rc<Wire>,
    truths: Truths,
    (broken, delay): (Broken, Duration),
) -> Side {
    let (journal, volumes) = open_volumes(&core, scene).await;
    let mut streams = BTreeMap::new();
    for (at, volume) in volumes.iter().enumerate() {
        // It is known to all rings from here on.
        let lane = volume::Volume::open(Arc::<WriteBack>::clone(volume), &core).await;
        drop(lane.unwrap());
        for ring in 0..scene.rings {
            let stream = Rc::new(Stream {
                of: (at, ring),
                me,
                core: Rc::clone(&core),
                volume: Arc::clone(volume),
                wire: Rc::clone(&wire),
                truths: Rc::clone(&truths),
                broken,
                delay,
                epoch: Cell::new(0),
                is_owner: Cell::new(false),
                serves: Cell::new(false),
                follows: Cell::new(0),
                turn: tokio::sync::Mutex::default(),
                stable: Cell::default(),
                heard: RefCell::default(),
                is_live: Cell::new(false),
                acked: Cell::default(),
                committed: Cell::default(),
                led: Cell::new(u64::MAX),
                inbox: RefCell::default(),
                takes: Cell::new(false),
                read_back: Cell::new(0),
                given_up: Cell::new(0),
            });
            streams.insert((at, ring), Rc::clone(&stream));
            carry(&core, volume, ring, stream).await;
        }
    }
    let side = Side {
        core,
        journal,
        volumes,
        streams,
    };
    side.core.spawn(Box::pin(listen(side.clone(), me, wire)));
    side
}

/// All rings are of the one core that a node has here.
async fn carry(core: &CoreHandle, volume: &Arc<WriteBack>, ring: u32, stream: Rc<Stream>) {
    let streams = core.locals().get::<Streams>();
    streams.0.borrow_mut().push(stream);
    let made = volume.carry(core, ring, |core| {
        let streams = core.locals().get::<Streams>();
        let stream = streams.0.borrow_mut().pop();
        Rc::new(Ear(stream.expect("it was put there")))
    });
    made.await.unwrap();
}

/// Streams that are handed over on their core.
#[derive(Default)]
struct Streams(RefCell<Vec<Rc<Stream>>>);

async fn listen(side: Side, me: usize, wire: Rc<Wire>) {
    loop {
        while let Some((of, what)) = wire.hear(me, side.core.now()) {
            side.streams[&of].hear(what);
        }
        for stream in side.streams.values() {
            stream.lead();
        }
        side.core.sleep_until(side.core.now().after(LISTEN)).await;
    }
}
