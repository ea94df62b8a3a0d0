//! Operations of the waist through one session.

use super::facts::{CommandLimits, Features, access_of};
use super::login::Login;
use super::operation::{self, Request, Stability};
use super::outcome::Outcome;
use super::path::{Counters, PathConfig};
use super::probe::{Asker, Refusal, asks_for_identity, command, judge};
use super::quicks::Quicks;
use super::reservation::Found;
use super::shared_session::{Seat, User};
use super::{Unit, cdb};
use crate::lost::Lost;
use crate::session::Session;
use env::{Answer, CoreHandle, LocalFuture};
use iscsi::Lun;
use iscsi::initiator_side::Completion;
use multipath::{Begun, Ended, Segments};
use paths::health::AccessState;
use paths::stale::Nexus;
use paths::verdict::{self, Learn, PathSays, Repeat, Verdict};
use scsi::Status;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use units::{BlockCount, Buf, BufMut, LbaRange, Now};
use volume::{Done, Io, IoError, Op};

/// Room for the answer to REPORT TARGET PORT GROUPS and GET LBA STATUS, in bytes.
const ANSWER_BYTES: u16 = 4096;

/// Tries of a flush after something that must not be repeated.
const FLUSH_TRIES: u32 = 3;

/// A unit through one session.
pub struct UnitSession(pub(super) Rc<Inner>);

pub(super) struct Inner {
    pub(super) core: CoreHandle,
    pub(super) session: Session,
    pub(super) login: Rc<Login>,
    pub(super) nexus: Nexus,
    pub(super) membership: Membership,
    pub(super) lun: Lun,
    pub(super) unit: Rc<Unit>,
    pub(super) abilities: Abilities,
    pub(super) counters: Rc<Counters>,
    pub(super) gate: Gate,
    /// It is asked whether something has become of its commands.
    pub(super) questioned: Cell<bool>,
    pub(super) quicks: RefCell<Quicks>,
    pub(super) path: PathConfig,
}

/// The unit's use of a session that it shares with others.
pub(super) struct Membership {
    /// Empty from when the unit does not use the session any more.
    pub(super) seat: RefCell<Option<Seat>>,
    pub(super) left: Cell<bool>,
    pub(super) over: Outcome<()>,
    /// The session's number.
    pub(super) through: u64,
}

impl Membership {
    pub(super) fn new(seat: Seat) -> Self {
        Self {
            through: seat.number(),
            seat: RefCell::new(Some(seat)),
            left: Cell::new(false),
            over: Outcome::default(),
        }
    }
}

/// What the unit can, as this path shows it.
pub(super) struct Abilities {
    /// The target port group of this path.
    pub(super) group: Option<u16>,
    pub(super) port_groups: bool,
    pub(super) features: Features,
    pub(super) limits: CommandLimits,
    /// Bytes of a block.
    pub(super) block: usize,
}

/// Commands wait while somebody checks whether this still is the same unit.
#[derive(Default)]
pub(super) struct Gate {
    checks: Cell<u32>,
    waiting: RefCell<Vec<Waker>>,
}

impl Gate {
    async fn open(&self) {
        if self.checks.get() == 0 {
            return;
        }
        poll_fn(|cx| {
            if self.checks.get() == 0 {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    pub(super) fn is_open(&self) -> bool {
        self.checks.get() == 0
    }

    fn shut(&self) {
        self.checks.set(self.checks.get() + 1);
    }

    fn unshut(&self) {
        self.checks.set(self.checks.get().saturating_sub(1));
        if self.checks.get() == 0 {
            self.waiting.take().into_iter().for_each(Waker::wake);
        }
    }
}

/// What a step of an operation gives, or how it ends the operation.
type Step<T> = Result<T, Ended>;

/// Why an answer is not what was asked for.
pub(super) enum Untaken {
    /// The target has refused it: what that means is found out.
    Refused(Refusal),
    /// The operation is over.
    Ended(Ended),
}

/// What a command has read; `exact`: it has to be so many bytes.
pub(super) fn taken(completion: Completion, exact: Option<usize>) -> Result<Buf, Untaken> {
    judge(&completion).map_err(Untaken::Refused)?;
    if exact.is_some_and(|bytes| completion.data_in.len() != bytes) {
        // GOOD for less than was asked for: a path that does so is not to be trusted.
        let ended = Ended::Again(path_error(), IoError::Unavailable);
        return Err(Untaken::Ended(ended));
    }
    Ok(completion.data_in)
}

impl Inner {
    pub(super) fn bytes_in(&self, range: LbaRange) -> usize {
        usize::try_from(range.len().0)
            .unwrap_or(usize::MAX)
            .saturating_mul(self.abilities.block)
    }

    /// One command, and what it read.
    async fn command(&self, op: &Op, request: Request, into: Option<BufMut>) -> Step<Buf> {
        if self.membership.left.get() {
            return Err(Ended::Lost { sent: false });
        }
        let wanted = into.as_ref().map_or(0, BufMut::len);
        let sent = command(self.lun, request.cdb);
        let answer = self.session.command(sent, request.data_out, into).await;
        let completion = answer.map_err(|lost| of_lost(&lost))?;
        let exact = matches!(op, Op::Read { .. }).then_some(wanted);
        match taken(completion, exact) {
            Ok(data) => Ok(data),
            Err(Untaken::Ended(ended)) => Err(ended),
            Err(Untaken::Refused(refusal)) => Err(self.refused(op, refusal).await),
        }
    }

    pub(super) async fn refused(&self, op: &Op, refusal: Refusal) -> Ended {
        if asks_for_identity(&refusal) {
            self.gate.shut();
            let same = self.verify_identity().await;
            self.gate.unshut();
            if !same {
                // The command was refused: nothing of it was carried out.
                return Ended::Lost { sent: false };
            }
        }
        let error = operation::error(op, refusal.status, refusal.sense.as_ref());
        let mut verdict = refusal.verdict;
        if matches!(verdict.learn, Learn::Reservations | Learn::Everything)
            && self.inspect_key().await == Some(Found::Registered)
            && verdict.path == PathSays::Conflict
        {
            // This nexus alone had lost the key, and has it again.
            verdict.repeat = Repeat::Same;
            verdict.path = PathSays::Fine;
        }
        Ended::Again(verdict, error)
    }

    /// It can be asked.
    pub(super) fn is_living(&self) -> bool {
        !self.membership.left.get() && !self.session.is_over()
    }

    /// How large the unit is, as this path shows it; `None` where it does not answer.
    pub(super) async fn size(&self) -> Option<BlockCount> {
        let asker = Asker {
            session: &self.session,
            lun: self.lun,
        };
        let (identity, _, _) = asker.identity().await.ok()?;
        Some(identity.block_count)
    }

    /// What has become of this host's reservation key, where it has one; commands wait meanwhile.
    async fn inspect_key(&self) -> Option<Found> {
        let reservation = self.unit.reservation.as_ref()?;
        let asker = Asker {
            session: &self.session,
            lun: self.lun,
        };
        self.gate.shut();
        let found = reservation.inspect(&asker).await;
        self.gate.unshut();
        Some(found)
    }

    /// Gets up from the session; the unit's operations end now.
    fn leave(&self) {
        let Some(seat) = self.membership.seat.take() else {
            return;
        };
        self.membership.left.set(true);
        let outcome = seat.leave(&self.session);
        self.unit.left.borrow_mut().insert(self.nexus, outcome);
        self.membership.over.set(());
    }

    fn destroy(&self) {
        let Some(seat) = self.membership.seat.take() else {
            return;
        };
        self.membership.left.set(true);
        seat.destroy(&self.session);
        self.membership.over.set(());
    }

    /// Whether the unit is the one that we know. If not, it leaves the session, and its next login
    /// will report why.
    async fn verify_identity(&self) -> bool {
        let asker = Asker {
            session: &self.session,
            lun: self.lun,
        };
        let same = match asker.identity().await {
            Ok((identity, _, _)) => self.unit.check(&identity, true).is_ok(),
            Err(_) => false,
        };
        if !same {
            self.leave();
        }
        same
    }

    async fn read(&self, op: &Op, range: LbaRange, mut into: Option<BufMut>) -> Step<Done> {
        if range.len().0 <= u64::from(self.abilities.limits.transfer) {
            let into = into.unwrap_or_else(|| self.memory(self.bytes_in(range)));
            let cdb = cdb::read_16(range);
            let request = Request {
                cdb,
                data_out: Buf::empty(),
            };
            return Ok(Done::Data(self.command(op, request, Some(into)).await?));
        }
        let mut all = Buf::empty();
        for part in operation::parts(range, self.abilities.limits.transfer) {
            let memory = self.memory(self.bytes_in(part));
            let request = Request {
                cdb: cdb::read_16(part),
                data_out: Buf::empty(),
            };
            all.append_owned(self.command(op, request, Some(memory)).await?);
        }
        let Some(mut into) = into.take() else {
            return Ok(Done::Data(all));
        };
        into.copy_all(&all);
        Ok(Done::Data(into.freeze()))
    }

    /// Memory for what is read. Payload of a pool that is used up comes from elsewhere: a read that
    /// waits for memory would seem a path that hangs.
    pub(super) fn memory(&self, bytes: usize) -> BufMut {
        let pooled = self.core.pool().alloc(bytes);
        pooled.unwrap_or_else(|_| BufMut::zeroed(bytes))
    }

    /// The commands of `requests` one after the other, then the flush if one is needed.
    async fn several(
        &self,
        op: &Op,
        requests: impl Iterator<Item = Request>,
        flush: bool,
    ) -> Step<Done> {
        let mut before = false;
        // Of an operation in parts, the first may have been done.
        let of_whole = |ended, before| match ended {
            Ended::Again(verdict, error) if before => Ended::Again(verdict, error.of_a_part()),
            ended @ (Ended::Done(_) | Ended::Again(..) | Ended::Lost { .. }) => ended,
        };
        for request in requests {
            let done = self.command(op, request, None).await;
            done.map_err(|ended| of_whole(ended, before))?;
            before = true;
        }
        if flush {
            let flushed = self.command(op, operation::flush(self.abilities.features), None);
            flushed.await.map_err(|ended| of_whole(ended, before))?;
        }
        Ok(Done::Nothing)
    }

    async fn compare_and_write(&self, op: &Op, request: Request, flush: bool) -> Step<Done> {
        self.command(op, request, None).await?;
        if !flush {
            return Ok(Done::Nothing);
        }
        // It was carried out and must not be repeated: only the flush is.
        for _ in 0..FLUSH_TRIES {
            let flushed = self.command(&Op::Flush, operation::flush(self.abilities.features), None);
            match flushed.await {
                Ok(_) => return Ok(Done::Nothing),
                Err(lost @ Ended::Lost { .. }) => return Err(lost),
                Err(_) => {}
            }
        }
        Err(Ended::Done(Err(IoError::Unavailable)))
    }

    async fn extents(&self, op: &Op, range: LbaRange) -> Step<Done> {
        let request = Request {
            cdb: cdb::get_lba_status(range, ANSWER_BYTES.into()),
            data_out: Buf::empty(),
        };
        let memory = BufMut::zeroed(ANSWER_BYTES.into());
        let data = self.command(op, request, Some(memory)).await?;
        let found = operation::extents(&data.to_vec(), range);
        found
            .map(Done::Extents)
            .ok_or(Ended::Done(Err(IoError::Unavailable)))
    }

    async fn carry_out(&self, mut op: Op) -> Step<Done> {
        if op.mutates() && self.unit.is_preempted() {
            return Err(Ended::Done(Err(IoError::WriteProtected)));
        }
        let (features, limits, block) = (
            self.abilities.features,
            self.abilities.limits,
            self.abilities.block,
        );
        let into = op.take_into();
        match &op {
            Op::Read { range, .. } => self.read(&op, *range, into).await,
            Op::Write {
                range,
                data,
                durability,
            } => {
                let Stability { fua, flush } = operation::stability(*durability, features, true);
                let mut rest = data.clone();
                let requests = operation::parts(*range, limits.transfer)
                    .map(|part| operation::write(part, rest.split_front(self.bytes_in(part)), fua));
                self.several(&op, requests, flush).await
            }
            Op::WriteZeroes {
                range,
                zeroing,
                durability,
            } => {
                let flush = operation::stability(*durability, features, false).flush;
                let requests = operation::parts(*range, limits.write_same)
                    .map(|part| operation::write_zeroes(part, *zeroing, features, block));
                self.several(&op, requests, flush).await
            }
            Op::Discard {
                range,
                to,
                durability,
            } => {
                let flush = operation::stability(*durability, features, false).flush;
                let most = operation::discard_blocks_max(features, limits);
                let requests = operation::parts(*range, most)
                    .map(|part| operation::discard(part, *to, (features, limits), block));
                self.several(&op, requests, flush).await
            }
            Op::CompareAndWrite {
                range,
                expected,
                data,
                durability,
            } => {
                let Stability { fua, flush } = operation::stability(*durability, features, true);
                let request = operation::compare_and_write(*range, expected, data, fua);
                self.compare_and_write(&op, request, flush).await
            }
            Op::Extents { range, .. } => self.extents(&op, *range).await,
            Op::Flush if !features.write_cache => Ok(Done::Nothing),
            Op::Flush => self.several(&op, std::iter::empty(), true).await,
        }
    }

    async fn submit(self: Rc<Self>, io: Io) -> Ended {
        self.gate.open().await;
        // What had to wait goes on as if it had not.
        if let Some(single) = self.single(io.op()) {
            return self.alone(single, io).await;
        }
        let (op, _) = io.into_parts();
        let bytes = op.carries().map_or(0, |range| self.bytes_in(range));
        let writes = op.mutates();
        match self.carry_out(op).await {
            Ok(done) => {
                self.counters.carried(bytes, writes);
                Ended::Done(Ok(done))
            }
            Err(ended) => ended,
        }
    }

    async fn access(&self) -> Option<AccessState> {
        if !self.abilities.port_groups {
            return Some(AccessState::ActiveOptimized);
        }
        let asker = Asker {
            session: &self.session,
            lun: self.lun,
        };
        let report = cdb::report_target_port_groups(ANSWER_BYTES.into());
        match asker.ask(report, ANSWER_BYTES).await {
            Ok(data) => Some(access_of(&data, self.abilities.group).map_or(
                // A group that is not in the list is not behind this port.
                AccessState::Unavailable,
                state,
            )),
            // A unit that refuses the question carries I/O through every port, or says so when it
            // is asked to.
            Err(super::probe::NoAnswer::Refused(_)) => Some(AccessState::ActiveOptimized),
            Err(super::probe::NoAnswer::Lost(_)) => None,
        }
    }
}

/// The state of this number (SPC-4 6.37 "REPORT TARGET PORT GROUPS command").
fn state(code: u8) -> AccessState {
    match code {
        0x0 => AccessState::ActiveOptimized,
        0x1 => AccessState::ActiveNonOptimized,
        0x2 => AccessState::Standby,
        0xe => AccessState::Offline,
        0xf => AccessState::Transitioning,
        _ => AccessState::Unavailable,
    }
}

pub(super) fn path_error() -> Verdict {
    // CHECK CONDITION without sense data has a row of its own: an error without a reason.
    verdict::of(Status::CheckCondition.code(), None).0
}

pub(super) fn of_lost(lost: &Lost) -> Ended {
    match lost {
        Lost::Unsent => Ended::Lost { sent: false },
        Lost::Aborted => {
            let ended = Verdict {
                repeat: Repeat::Uncertain,
                path: PathSays::Fine,
                learn: Learn::Nothing,
            };
            Ended::Again(ended, IoError::Aborted)
        }
        // A Reject says that the PDU was discarded.
        Lost::Rejected(_) => Ended::Again(path_error(), IoError::Unavailable),
        Lost::Socket(_) | Lost::PeerClosed | Lost::Protocol(_) | Lost::Destroyed | Lost::Left => {
            Ended::Lost { sent: true }
        }
    }
}

impl User for Inner {
    /// Asks whether something has become of commands that are not answered: a unit attention is
    /// seen to like one that any command meets. `None` while it is being asked, or checked.
    fn question(self: Rc<Self>) -> Option<LocalFuture<()>> {
        if !self.is_living() || !self.gate.is_open() || self.questioned.replace(true) {
            return None;
        }
        Some(Box::pin(async move {
            let request = Request {
                cdb: cdb::test_unit_ready(),
                data_out: Buf::empty(),
            };
            // Whatever it answers otherwise: the commands themselves are not answered by it.
            let _answered = self.command(&Op::Flush, request, None).await;
            self.questioned.set(false);
        }))
    }
}

impl multipath::Session for UnitSession {
    fn submit(&self, io: Io) -> Answer<Ended> {
        let inner = Rc::clone(&self.0);
        match inner.single(io.op()) {
            Some(single) => Answer::wait(inner.alone(single, io)),
            None => Answer::wait(inner.submit(io)),
        }
    }

    fn begin(&self, io: &Io) -> Begun {
        let Some(single) = self.0.single(io.op()) else {
            return Begun::Waiting(Box::pin(Rc::clone(&self.0).submit(io.fork())));
        };
        let data = io.op().payload().cloned().unwrap_or_default();
        let quick = self.0.quick(single, data, None);
        Begun::Numbered(self.0.quicks.borrow_mut().insert(quick))
    }

    fn poll_numbered(&self, number: usize, cx: &mut Context<'_>) -> Poll<Ended> {
        let mut quicks = self.0.quicks.borrow_mut();
        quicks.poll(number, |quick| quick.poll(&self.0, cx))
    }

    fn ping(&self) -> LocalFuture<bool> {
        let session = self.0.session.clone();
        Box::pin(async move { session.ping().await.is_ok() })
    }

    fn fence(&self, nexus: Nexus) -> LocalFuture<bool> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move { inner.fence(nexus).await })
    }

    fn access(&self) -> LocalFuture<Option<AccessState>> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move { inner.access().await })
    }

    fn received_at(&self) -> Now {
        self.0.session.received_at()
    }

    fn segments(&self) -> Option<Segments> {
        let measured = self.0.session.measured()?;
        Some(Segments {
            sent: measured.segments_sent.into(),
            again: measured.retransmitted.into(),
        })
    }

    fn ended(&self) -> LocalFuture<()> {
        let inner = Rc::clone(&self.0);
        Box::pin(async move {
            let mut ended = pin!(inner.session.ended());
            poll_fn(|cx| match inner.membership.over.poll(cx) {
                Poll::Ready(()) => Poll::Ready(()),
                Poll::Pending => ended.as_mut().poll(cx).map(|_why| ()),
            })
            .await;
        })
    }

    fn close(&self) {
        self.0.destroy();
    }

    fn leave(&self) {
        self.0.leave();
    }
}

impl Drop for UnitSession {
    /// Nobody has it any more, so nothing of it is in flight that anybody waits for.
    fn drop(&mut self) {
        self.0.leave();
    }
}
