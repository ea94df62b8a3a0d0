//! An operation on the slow path: in the pending table, sent by a task of its own, and again where
//! its answer asks for that.

use super::Ended;
use super::engine::{Engine, Inside};
use super::fence::lost;
use super::pending::Pending;
use super::route::Route;
use super::wait::Promise;
use env::Answer;
use paths::health::{AccessState, Seen};
use paths::policy::{self, Booking, Direction, Request, Selector, Settings, Use};
use paths::stale::{self, CommandId, Decide, Kind, Nexus, Outcome};
use paths::verdict::{PathSays, Step, Verdict};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;
use units::Now;
use volume::{Done, Io, IoError, IoFuture, Op};

/// Between tries of what waits for a transition.
const PARKED: Duration = Duration::from_millis(500);

impl Engine {
    /// Begins an operation on the slow path.
    pub(super) fn command(self: &Rc<Self>, mut io: Io) -> IoFuture {
        let kind = match io.op() {
            Op::Read { .. } | Op::Extents { .. } | Op::Flush => Kind::Harmless,
            Op::Write { .. } | Op::WriteZeroes { .. } | Op::Discard { .. } => Kind::Write,
            Op::CompareAndWrite { .. } => Kind::Once,
        };
        let into = io.op_mut().take_into();
        let promise = Promise::new();
        let pending = Pending::new(io, into, promise.clone());
        let decisions = {
            let mut state = self.state.borrow_mut();
            let (id, decisions) = state.pending_table.begin(kind, pending.io.op().range());
            state.pending.insert(id, pending);
            decisions
        };
        if decisions.is_empty() {
            // It waits for others, whose issuers may not poll.
            self.follow(|flight| flight.writes());
        }
        self.act(decisions);
        Answer::wait(promise.kept())
    }

    pub(super) fn act(self: &Rc<Self>, decisions: Vec<Decide>) {
        for decision in decisions {
            match decision {
                Decide::Send(id) => self.dispatch(id),
                Decide::Fence(nexus) => self.fence(nexus),
                Decide::Resolve(id) => self.resolve(id),
                Decide::Complete(id, outcome) => self.complete(id, outcome),
            }
        }
    }

    pub(super) fn request(&self, op: &Op) -> Request {
        let block = u64::from(self.shape.block_size.bytes());
        let bytes = |blocks: u64| blocks.saturating_mul(block);
        let direction = if matches!(op, Op::Read { .. }) {
            Direction::Read
        } else {
            Direction::Write
        };
        Request {
            direction,
            start: op.range().map_or(0, |range| bytes(range.start().0)),
            bytes: op.carries().map_or(0, |range| bytes(range.len().0)),
        }
    }

    /// Sends an operation, or lets it wait for a path.
    fn dispatch(self: &Rc<Self>, id: CommandId) {
        let now = self.core.now();
        let mut inside = self.state.borrow_mut();
        let state = &mut *inside;
        let Some(pending) = state.pending.get_mut(&id) else {
            return;
        };
        if pending.not_before > now {
            let (engine, at) = (Rc::clone(self), pending.not_before);
            let later = async move {
                engine.core.sleep_until(at).await;
                engine.dispatch(id);
            };
            self.core.spawn(Box::pin(later));
            return;
        }
        let request = self.request(pending.io.op());
        let taken = take(&mut state.selector, pending, request, now);
        let usable = taken.map(|booking| (state.routes[booking.path()].session.clone(), booking));
        let Some((Some(session), booking)) = usable else {
            pending.without_path.get_or_insert(now);
            state.ready.push_back(id);
            drop(inside);
            self.follow(|_| true);
            self.bell.ring();
            return;
        };
        pending.without_path = None;
        let route = &mut state.routes[booking.path()];
        let nexus = route.nexus;
        let placed = state.pending_table.placed(id, nexus);
        debug_assert!(placed, "a path with a session is not a lost one");
        let late = self.sent_on(route, || now);
        let io = pending.io.fork();
        let engine = Rc::clone(self);
        // The session may answer at once, and then whoever asked is answered: nothing may be
        // borrowed.
        self.core.spawn(Box::pin(async move {
            let ended = session.submit(io).await;
            let path = booking.path();
            if matches!(ended, Ended::Done(_)) {
                engine.clocked(path, request.bytes, now);
            }
            engine.ended(id, nexus, booking, ended);
        }));
        if late {
            self.bell.ring();
        }
    }

    pub(super) fn ended(
        self: &Rc<Self>,
        id: CommandId,
        nexus: Nexus,
        booking: Booking,
        ended: Ended,
    ) {
        let now = self.core.now();
        let path = booking.path();
        let mut effects = Vec::new();
        let mut decisions = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            if state.closed {
                return;
            }
            let carried = match &ended {
                Ended::Done(_) => policy::Ended::Carried,
                Ended::Again(verdict, _) if verdict.path == PathSays::Congested => {
                    policy::Ended::Congested
                }
                Ended::Again(..) => policy::Ended::Carried,
                Ended::Lost { .. } => policy::Ended::Lost,
            };
            state.selector.done(booking, carried, now);
            let route = &mut state.routes[path];
            if state.selector.in_flight(path) == 0 {
                route.health.seen(Seen::NothingExpected, now);
            }
            match ended {
                Ended::Done(result) => {
                    let answer = if result.is_ok() {
                        stale::Answer::Success
                    } else {
                        stale::Answer::Failure
                    };
                    if let Some(pending) = state.pending.get_mut(&id) {
                        pending.result = Some(result);
                    }
                    state.pending_table.answered(id, nexus, answer)
                }
                Ended::Again(verdict, error) => {
                    let mut random = [0];
                    self.core.fill_random(&mut random);
                    let answer = again(state, id, path, (verdict, error), (now, random[0]));
                    effects = says(verdict.path);
                    state.pending_table.answered(id, nexus, answer)
                }
                Ended::Lost { sent } => {
                    if sent {
                        state.pending_table.sent(id, nexus);
                        haunt(&mut state.pending, id);
                    }
                    if route.nexus == nexus && route.session.is_some() {
                        effects.push(Seen::Closed);
                    }
                    Vec::new()
                }
            }
        };
        decisions.extend(self.one_less(nexus, now));
        self.act(decisions);
        for seen in effects {
            self.see(path, seen);
            if matches!(seen, Seen::Access(_)) {
                self.inspect(path, nexus);
            }
        }
        self.plan_drained();
        self.pump();
    }

    /// One more operation is on the session of `route`. Whether the driver has to be woken: mostly
    /// it wakes early enough by itself.
    pub(super) fn sent_on(&self, route: &mut Route, now: impl FnOnce() -> Now) -> bool {
        route.open += 1;
        if route.health.expects() {
            return false;
        }
        route.health.seen(Seen::Sent, now());
        let due = route.health.deadline();
        due.is_some_and(|due| self.armed.get().is_none_or(|armed| due < armed))
    }

    /// An operation on `nexus` has ended; with the last one of a session that is over, the pending
    /// table is notified.
    fn one_less(&self, nexus: Nexus, now: Now) -> Vec<Decide> {
        let mut state = self.state.borrow_mut();
        match state.one_less(nexus) {
            true => lost(&mut state, nexus, now),
            false => Vec::new(),
        }
    }

    fn complete(&self, id: CommandId, outcome: Outcome) {
        let Some(pending) = self.state.borrow_mut().pending.remove(&id) else {
            return;
        };
        let result = match outcome {
            Outcome::Success => pending.result.unwrap_or(Ok(Done::Nothing)),
            Outcome::Failure => pending.result.unwrap_or(Err(IoError::Unavailable)),
            Outcome::Unknown => Err(IoError::Unavailable),
        };
        // What an earlier copy has done, the last one's answer does not know.
        let result = if pending.haunted {
            result.map_err(IoError::of_a_part)
        } else {
            result
        };
        let result = match (result, pending.into) {
            (Ok(Done::Data(data)), Some(mut into)) => {
                into.copy_all(&data);
                Ok(Done::Data(into.freeze()))
            }
            (other, _) => other,
        };
        pending.promise.keep(result);
    }

    /// What waits for a path is tried again.
    pub(super) fn pump(self: &Rc<Self>) {
        let ready = std::mem::take(&mut self.state.borrow_mut().ready);
        for id in ready {
            self.dispatch(id);
        }
    }

    /// Reads what a compare-and-write has done.
    fn resolve(self: &Rc<Self>, id: CommandId) {
        let (read, expected, data) = {
            let state = self.state.borrow();
            let Some(pending) = state.pending.get(&id) else {
                return;
            };
            let Op::CompareAndWrite {
                range,
                expected,
                data,
                ..
            } = pending.io.op()
            else {
                return;
            };
            let read = Op::Read {
                range: *range,
                into: None,
            };
            (
                Io::new(read, pending.io.origin()),
                expected.to_vec(),
                data.to_vec(),
            )
        };
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            let found = engine.submit(read).await;
            let resolution = match found {
                Ok(Done::Data(found)) => stale::resolve_compare_and_write(
                    &expected,
                    &data,
                    &found.to_vec(),
                    engine.config.sharing,
                ),
                Ok(Done::Nothing | Done::Logged | Done::Extents(_)) | Err(_) => {
                    stale::Resolution::Unknown
                }
            };
            let decisions = engine
                .state
                .borrow_mut()
                .pending_table
                .resolved(id, resolution);
            engine.act(decisions);
        }));
    }
}

impl Inside {
    /// An operation on `nexus` has ended. Whether it was the last one of a session that is over.
    pub(super) fn one_less(&mut self, nexus: Nexus) -> bool {
        if let Some(left) = self.ending.get_mut(&nexus) {
            *left -= 1;
            let last = *left == 0;
            if last {
                self.ending.remove(&nexus);
            }
            return last;
        }
        if let Some(route) = self.routes.get_mut(nexus.path as usize) {
            debug_assert_eq!(
                route.nexus, nexus,
                "older sessions are ending, or have ended"
            );
            route.open = route.open.saturating_sub(1);
        }
        false
    }
}

/// A copy of an operation is over, and it may have been executed. COMPARE AND WRITE is read
/// before it is sent again.
fn haunt(pending: &mut BTreeMap<CommandId, Pending>, id: CommandId) {
    let Some(pending) = pending.get_mut(&id) else {
        return;
    };
    let op = pending.io.op();
    pending.haunted |= op.mutates() && !matches!(op, Op::CompareAndWrite { .. });
}

/// What an answer says about the path, for its machine.
fn says(path: PathSays) -> Vec<Seen> {
    match path {
        PathSays::Fine | PathSays::Congested | PathSays::Conflict => Vec::new(),
        PathSays::Error => vec![Seen::Error],
        PathSays::NotServing => vec![Seen::Access(AccessState::Standby)],
        PathSays::Transition => vec![Seen::Access(AccessState::Transitioning)],
        PathSays::UnitGone => vec![Seen::UnitGone],
    }
}

/// How the pending table is to take an answer that asks for a repetition.
fn again(
    state: &mut Inside,
    id: CommandId,
    path: usize,
    (verdict, error): (Verdict, IoError),
    (now, random): (Now, u8),
) -> stale::Answer {
    let others = (0..state.routes.len())
        .any(|other| other != path && state.routes[other].settings.usage != Use::No);
    let Some(pending) = state.pending.get_mut(&id) else {
        return stale::Answer::Failure;
    };
    pending.result = Some(Err(error));
    (pending.prefer, pending.avoid) = (None, None);
    match pending.tries.next(verdict, random) {
        Step::Done => {
            pending.result = Some(Ok(Done::Nothing));
            return stale::Answer::Success;
        }
        Step::Fail => return stale::Answer::Failure,
        Step::Uncertain => {
            haunt(&mut state.pending, id);
            return stale::Answer::Ended;
        }
        Step::Same(wait) => {
            pending.prefer = Some(path);
            pending.not_before = now.after(wait);
        }
        Step::Other(wait) => {
            pending.avoid = Some(path);
            pending.not_before = now.after(wait);
        }
        Step::OtherController if !others => return stale::Answer::Failure,
        Step::OtherController => pending.avoid = Some(path),
        Step::Park => pending.not_before = now.after(PARKED),
    }
    stale::Answer::NotDone
}

/// The path for an operation: the one it has to go back to, else the policy's choice, but not the
/// one to avoid if there is another.
fn take(selector: &mut Selector, pending: &Pending, request: Request, now: Now) -> Option<Booking> {
    let usage =
        |selector: &Selector, path: usize| selector.settings(path).map_or(Use::No, |it| it.usage);
    if let Some(path) = pending
        .prefer
        .filter(|path| usage(selector, *path) != Use::No)
    {
        return selector.take_on(path, request, now);
    }
    let Some(avoid) = pending.avoid else {
        return selector.take(request, now).ok();
    };
    let settings = selector.settings(avoid).copied()?;
    let out = Settings {
        usage: Use::No,
        ..settings
    };
    selector.set(avoid, out);
    let taken = selector.take(request, now);
    selector.set(avoid, settings);
    match taken {
        Ok(booking) => Some(booking),
        Err(_) => selector.take(request, now).ok(),
    }
}
