//! A volume behind a journal, and one core's handle on it.

use crate::addresses::{Part, next_piece, parts};
use crate::history::{HistoryFile, Turns};
use crate::journal_file::{Journal, stopping};
use crate::mode::{Mode, Modes};
use crate::ring::{OpenBacking, Ring, ring_of};
use env::{Answer, CoreHandle, LocalFuture, call};
use journal::{Commit, HistoryId, Slot, VolumeId};
use sidecar::Sidecar;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use units::BlockCount;
use volume::{
    Copies, Cut, Fences, Io, IoError, IoFuture, Lane, Op, OpenError, OpenErrorKind, Origin, Shape,
    Support, UnverifiedBlocks, Volume, VolumeEvents,
    pieces::{in_order, join},
};

/// A volume whose writes are acknowledged from a journal.
pub struct WriteBack {
    journal: Arc<Journal>,
    id: VolumeId,
    backing: Mutex<Arc<dyn Volume>>,
    fences: Fences,
    modes: Arc<Modes>,
    /// Where its history is kept.
    history: Option<Sidecar>,
}

impl WriteBack {
    /// The volume over `backing`, which has the number `id` in the journal for as long as it lives,
    /// and whose writers' rights are in `fences`.
    #[must_use]
    pub fn new(
        journal: Arc<Journal>,
        id: VolumeId,
        backing: Arc<dyn Volume>,
        fences: Fences,
        mode: Mode,
    ) -> Arc<Self> {
        Self::made(journal, id, backing, (fences, mode), None)
    }

    /// As [`WriteBack::new`], with the history of its changes kept in `history`, which is made
    /// where there is none: numbers of changes that go on for ever, cuts, and which parts changed
    /// since which cut.
    #[must_use]
    pub fn with_history(
        journal: Arc<Journal>,
        id: VolumeId,
        backing: Arc<dyn Volume>,
        (fences, mode): (Fences, Mode),
        history: Sidecar,
    ) -> Arc<Self> {
        Self::made(journal, id, backing, (fences, mode), Some(history))
    }

    fn made(
        journal: Arc<Journal>,
        id: VolumeId,
        backing: Arc<dyn Volume>,
        (fences, mode): (Fences, Mode),
        history: Option<Sidecar>,
    ) -> Arc<Self> {
        Arc::new(Self {
            journal,
            id,
            backing: Mutex::new(backing),
            fences,
            modes: Arc::new(Modes::new(mode)),
            history,
        })
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// What the journal knows it by.
    #[must_use]
    pub const fn id(&self) -> VolumeId {
        self.id
    }

    pub(crate) fn modes(&self) -> &Arc<Modes> {
        &self.modes
    }

    pub(crate) fn fences(&self) -> &Fences {
        &self.fences
    }

    pub(crate) fn backing(&self) -> Arc<dyn Volume> {
        Arc::clone(&self.backing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_backing(&self, backing: Arc<dyn Volume>) {
        *self.backing.lock().unwrap_or_else(PoisonError::into_inner) = backing;
    }

    /// What lanes that are opened from now on do, and those that are open: whoever switches has
    /// nothing in flight, opens lanes anew and flushes.
    pub fn set_mode(&self, mode: Mode) {
        self.modes.set(mode);
    }

    /// What it was switched to last.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.modes.get()
    }

    /// Waits until all that the journal has was destaged, or cannot be now.
    pub async fn destage(&self, core: &CoreHandle) {
        self.journal.drain(core).await;
    }

    /// Gives up the volume's lanes in all rings, after what they hold of it was destaged, if it
    /// could be.
    pub async fn release(&self, core: &CoreHandle) {
        self.journal.drain(core).await;
        self.leave(core).await;
    }

    /// Gives up the volume's lanes in all rings: what they hold of it stays there until it is
    /// opened again.
    pub async fn leave(&self, core: &CoreHandle) {
        for ring in 0..self.journal.rings() {
            let (key, id) = ((self.journal.key(), ring), self.id);
            call(core, self.journal.owner(ring), move |core| {
                if let Some(ring) = ring_of(core, key) {
                    ring.leave(id);
                }
                Box::pin(async {})
            })
            .await;
        }
    }

    /// What the log cannot say of blocks of this volume: for the layer below, before it is opened
    /// here for the first time.
    #[must_use]
    pub fn unverified_blocks(&self) -> UnverifiedBlocks {
        self.journal.unverified_blocks(self.id)
    }

    /// Rings of the journal that its log is in.
    #[must_use]
    pub fn rings(&self) -> u32 {
        self.journal.rings()
    }

    /// Has the log know of everything before it goes to the backing volume, in volatile mode as
    /// well: the layer below keeps checksums of the data, and asks after a crash what may not
    /// fit together.
    pub fn log_first(&self) {
        self.modes.log_first(true);
    }

    /// Makes the volume's history, where it has none: its first cut is this one. Copies of a volume
    /// on several nodes begin at the same cut, so that cuts of one owner are known to the next one.
    /// For who has opened no lane yet.
    ///
    /// # Errors
    /// The volume has a history with other cuts, keeps none, or it cannot be written.
    pub async fn begin_history(&self, core: &CoreHandle, first: Cut) -> Result<(), OpenError> {
        let Some(history) = &self.history else {
            return Err(refused(
                "the volume keeps no history of its changes",
                "open it with a history",
            ));
        };
        for ring in 0..self.journal.rings() {
            HistoryFile::make(core, history, self.history_id(ring), first.0).await?;
        }
        Ok(())
    }

    /// Other nodes have copies of the volume: its changes are read, destaged and acknowledged when
    /// [`WriteBack::commit`] says that those have them. For who has opened no lane yet. It is
    /// opened only where its history is kept and its mode is not volatile.
    pub fn has_copies(&self) {
        self.modes.set_copies();
    }

    /// A node with a copy may miss what is in the log, and come back: while that is so, a quarter
    /// of each ring is kept, also at rest, and can be [read back](WriteBack::read_back). May be
    /// said before the volume is opened, and is forgotten with the process.
    pub fn keep_log(&self, keeps: bool) {
        self.modes.keep_log(keeps);
    }

    /// What is destaged is offered to whoever stands above and keeps copies.
    pub fn offer_to(&self, copies: impl Copies + 'static) {
        self.modes.offer_to(Box::new(copies));
    }

    /// From so many bytes on writes go around the log, where the log has nothing of their blocks.
    pub fn write_around_from(&self, bytes: usize) {
        self.modes.set_write_around_from(bytes);
    }

    fn history_id(&self, ring: u32) -> HistoryId {
        HistoryId {
            journal: self.journal.number(),
            volume: self.id,
            ring,
            rings: self.journal.rings(),
        }
    }

    /// Other copies are brought up by what the history says, and must have all that was
    /// acknowledged.
    fn may_have_copies(&self) -> Result<(), OpenError> {
        if self.modes.commit() == Commit::AtOnce {
            return Ok(());
        }
        if self.history.is_none() {
            let cause =
                "other nodes have copies of the volume, and no history of its changes is kept";
            return Err(refused(cause, "open it with a history"));
        }
        if self.mode() == Mode::Volatile {
            let cause = "other nodes have copies of the volume, and its journal is volatile: they \
                 would lack what a cache here loses";
            return Err(refused(cause, "use write-back or write-through"));
        }
        Ok(())
    }

    /// Has every ring know where the volume is: what the log holds of it can then be destaged.
    async fn serve(&self, core: &CoreHandle) -> Result<(), OpenError> {
        for ring in 0..self.journal.rings() {
            let (key, id) = ((self.journal.key(), ring), self.id);
            let (backing, fences) = (self.backing(), self.fences.clone());
            let modes = Arc::clone(&self.modes);
            let (history, of) = (self.history.clone(), self.history_id(ring));
            let turns = self.journal.turns_of(self.id);
            let served = call(core, self.journal.owner(ring), move |core| {
                let core = Rc::clone(core);
                Box::pin(async move {
                    let ring = ring_of(&core, key).ok_or_else(stopping)?;
                    let shape = backing.shape();
                    let lane = Arc::clone(&backing).open(&core).await?;
                    let open = OpenBacking {
                        lane,
                        volume: backing,
                        shape,
                        fences,
                        modes,
                    };
                    let history = history_of(&ring, history, of, turns).await?;
                    let served = ring.serve(id, open, history);
                    served.map(|_| ()).map_err(|_| OpenError {
                        kind: OpenErrorKind::Unsupported,
                        cause: "a journal serves 65,535 volumes at most".to_owned(),
                        next_step: "put the volume into another pool".to_owned(),
                    })
                })
            });
            served.await.ok_or_else(stopping)??;
        }
        Ok(())
    }
}

fn refused(cause: &str, next_step: &str) -> OpenError {
    OpenError {
        kind: OpenErrorKind::Refused,
        cause: cause.to_owned(),
        next_step: next_step.to_owned(),
    }
}

/// Opens a ring's part of a history, where one is kept and it is not open there already.
async fn history_of(
    ring: &Rc<Ring>,
    sidecar: Option<Sidecar>,
    of: HistoryId,
    turns: Turns,
) -> Result<Option<HistoryFile>, OpenError> {
    let Some(sidecar) = sidecar.filter(|_| !ring.keeps_history(of.volume)) else {
        return Ok(None);
    };
    let opened = HistoryFile::open(&ring.core, &sidecar, of, turns).await;
    opened.map(Some)
}

impl Volume for WriteBack {
    fn shape(&self) -> Shape {
        let mut shape = self.backing().shape();
        shape.caps.volatile_cache = self.modes.get() == Mode::Volatile;
        shape.caps.stable_write = Support::Native;
        shape.caps.compare_and_write = Support::Absent;
        shape.limits.compare_and_write_blocks_max = BlockCount(0);
        shape.caps.changed_blocks = if self.history.is_some() {
            Support::Native
        } else {
            Support::Absent
        };
        // What is written by the log is whole block by block only.
        shape.limits.atomic_blocks_max = BlockCount(0);
        if shape.caps.write_zeroes == Support::Absent {
            shape.caps.discard = Support::Absent;
            shape.caps.anchor = Support::Absent;
            shape.limits.discard_blocks_max = BlockCount(0);
        }
        shape.caps.discard_reads_zero = shape.caps.discard != Support::Absent;
        shape
    }

    fn open(self: Arc<Self>, core: &CoreHandle) -> LocalFuture<Result<Rc<dyn Lane>, OpenError>> {
        let core = Rc::clone(core);
        Box::pin(async move {
            self.may_have_copies()?;
            self.serve(&core).await?;
            let shape = self.backing().shape();
            let mut here = Vec::new();
            for number in 0..self.journal.rings() {
                let ring = ring_of(&core, (self.journal.key(), number));
                let slot = ring.as_ref().and_then(|it| it.slot(self.id));
                here.push(ring.zip(slot));
            }
            Ok(Rc::new(WriteBackLane {
                core,
                shape,
                here,
                volume: self,
            }) as Rc<dyn Lane>)
        })
    }

    fn events(self: Arc<Self>, core: &CoreHandle) -> Rc<dyn VolumeEvents> {
        self.backing().events(core)
    }
}

/// A ring of this core, and the volume's place in it.
type Here = (Rc<Ring>, Slot);

struct WriteBackLane {
    core: CoreHandle,
    volume: Arc<WriteBack>,
    shape: Shape,
    /// The rings of this core, by number.
    here: Vec<Option<Here>>,
}

impl Lane for WriteBackLane {
    fn submit(&self, io: Io) -> IoFuture {
        let Some(range) = io.op().range() else {
            return self.flush(io.origin());
        };
        let sharding = self.volume.journal.sharding();
        let mut parts = parts(self.volume.id, range, self.shape.block_size, sharding);
        let (op, origin) = io.into_parts();
        let first = parts.remove(0);
        // Allocation is answered for the first part only.
        if parts.is_empty() || matches!(op, Op::Extents { .. }) {
            return self.one(first.ring, of_part(op, first), origin);
        }
        parts.insert(0, first);
        self.many(&parts, op, origin)
    }
}

/// The operation on its first part.
fn of_part(mut op: Op, part: Part) -> Op {
    if let Some(range) = op.range_mut() {
        *range = part.range;
    }
    op
}

impl WriteBackLane {
    /// Asks one ring.
    fn one(&self, ring: u32, op: Op, origin: Origin) -> IoFuture {
        let place = usize::try_from(ring).expect("few rings");
        if let Some((ring, slot)) = &self.here[place] {
            return ring.submit(*slot, op, origin);
        }
        let (key, id) = ((self.volume.journal.key(), ring), self.volume.id);
        let (core, owner) = (Rc::clone(&self.core), self.volume.journal.owner(ring));
        let asked = async move {
            let answer = call(&core, owner, move |there| {
                let ring = ring_of(there, key);
                let slot = ring.as_ref().and_then(|it| it.slot(id));
                let answer = match ring.zip(slot) {
                    Some((ring, slot)) => ring.submit(slot, op, origin),
                    None => Answer::ready(Err(IoError::Unavailable)),
                };
                Box::pin(answer)
            });
            answer.await.unwrap_or(Err(IoError::Unavailable))
        };
        // It goes on when nobody waits for it any more.
        env::detach(&self.core, asked)
    }

    fn flush(&self, origin: Origin) -> IoFuture {
        let rings = 0..self.volume.journal.rings();
        let answers = rings.map(|ring| self.one(ring, Op::Flush, origin));
        join(answers.collect(), None, in_order)
    }

    /// Asks several rings, each for its part.
    fn many(&self, parts: &[Part], op: Op, origin: Origin) -> IoFuture {
        let block = u64::from(self.shape.block_size.bytes());
        let mut op = op;
        let answers = parts.iter().map(|part| {
            let bytes = usize::try_from(part.range.len().0 * block).expect("a payload");
            let piece = next_piece(&mut op, part.range, bytes);
            self.one(part.ring, piece, origin)
        });
        let answers = answers.collect();
        join(answers, op.take_into(), in_order)
    }
}
