//! Carries out what the machines of the paths crate decide.

use super::marginal::{Gauge, compare};
use super::pieces::{self, Cut};
use super::planned::Planned;
use super::wait::{Bell, Promise};
use super::{Config, Ended, PathSpec, PathStatus, Port, Session};
use env::{Answer, CoreHandle};
use paths::PathName;
use paths::health::{AccessState, HOPE, Path, Seen, State, Wanted};
use paths::policy::{self, Direction, Policy, Request, Selector, Settings, Ticket, Use};
use paths::stale::{self, Book, CommandId, Decide, Evidence, Kind, Nexus, Outcome};
use paths::verdict::{PathSays, Step, Tries, Verdict};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use std::time::Duration;
use units::{BufMut, Now};
use volume::{Done, Io, IoError, IoFuture, IoResult, Op, Shape};

/// Between tries of what waits for a transition.
const PARKED: Duration = Duration::from_millis(500);

/// An operation whose issuer waits.
pub(super) struct Pending {
    io: Io,
    into: Option<BufMut>,
    promise: Promise<IoResult>,
    tries: Tries,
    result: Option<IoResult>,
    prefer: Option<usize>,
    avoid: Option<usize>,
    not_before: Now,
    /// It has no path since then.
    stuck: Option<Now>,
}

/// One path.
pub(super) struct Line {
    pub(super) port: Rc<dyn Port>,
    pub(super) health: Path,
    pub(super) settings: Settings,
    pub(super) session: Option<Rc<dyn Session>>,
    pub(super) gauge: Gauge,
    pub(super) nexus: Nexus,
}

impl Line {
    /// A path that has not been tried; its number is the selector's.
    fn new(core: &CoreHandle, config: &Config, selector: &mut Selector, spec: PathSpec) -> Self {
        let mut seed = [0; 4];
        core.fill_random(&mut seed);
        let settings = Settings {
            usage: Use::No,
            ..spec.settings
        };
        let number = selector.add(settings);
        Self {
            port: spec.port,
            health: Path::new(config.timing, u32::from_be_bytes(seed)),
            settings,
            session: None,
            gauge: Gauge::default(),
            nexus: Nexus {
                path: u32::try_from(number).unwrap_or(u32::MAX),
                session: 0,
            },
        }
    }
}

/// What changes.
pub(super) struct Inside {
    pub(super) selector: Selector,
    pub(super) book: Book,
    pub(super) lines: Vec<Line>,
    pub(super) pending: BTreeMap<CommandId, Pending>,
    /// Wait for a path.
    pub(super) ready: VecDeque<CommandId>,
    /// Operations on each session that have not ended.
    pub(super) open: BTreeMap<Nexus, u32>,
    /// Sessions that are over and still have open operations.
    pub(super) ending: BTreeSet<Nexus>,
    pub(super) closed: bool,
}

/// The layer's inside.
pub(super) struct Engine {
    pub(super) core: CoreHandle,
    pub(super) shape: Shape,
    pub(super) config: Config,
    pub(super) state: RefCell<Inside>,
    pub(super) planned: RefCell<Option<Planned>>,
    pub(super) bell: Rc<Bell>,
    /// Until when the driver sleeps, unless the bell rings: nobody rings for what is due later.
    armed: Cell<Option<Now>>,
}

impl Engine {
    pub(super) fn start(
        core: &CoreHandle,
        shape: Shape,
        config: Config,
        paths: Vec<PathSpec>,
        planned: Option<Planned>,
    ) -> Rc<Self> {
        let mut selector = Selector::new(config.policy);
        let mut lines = Vec::new();
        let mut wanted = Vec::new();
        for spec in paths {
            wanted.push(spec.wanted);
            lines.push(Line::new(core, &config, &mut selector, spec));
        }
        let engine = Rc::new(Self {
            core: Rc::clone(core),
            shape,
            config,
            state: RefCell::new(Inside {
                selector,
                book: Book::new(config.mode, config.sharing, config.quiesce),
                lines,
                pending: BTreeMap::new(),
                ready: VecDeque::new(),
                open: BTreeMap::new(),
                ending: BTreeSet::new(),
                closed: false,
            }),
            planned: RefCell::new(planned),
            bell: Rc::default(),
            armed: Cell::new(None),
        });
        for (path, wanted) in wanted.into_iter().enumerate() {
            engine.see(path, Seen::Want(wanted));
        }
        let driver = drive(
            Rc::downgrade(&engine),
            Rc::clone(&engine.bell),
            Rc::clone(core),
        );
        core.spawn(Box::pin(driver));
        core.spawn(Box::pin(compare(Rc::downgrade(&engine))));
        engine
    }

    pub(super) fn add(self: &Rc<Self>, name: PathName, spec: PathSpec) {
        let mut wanted = spec.wanted;
        let path = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            let line = Line::new(&self.core, &self.config, &mut state.selector, spec);
            state.lines.push(line);
            state.lines.len() - 1
        };
        if let Some(planned) = self.planned.borrow_mut().as_mut() {
            planned.names.push(name);
            wanted = planned.wanted(path);
        }
        self.see(path, Seen::Want(wanted));
    }

    pub(super) fn set_policy(&self, policy: Policy) {
        self.state.borrow_mut().selector.set_policy(policy);
    }

    pub(super) fn want(self: &Rc<Self>, path: usize, wanted: Wanted) {
        self.see(path, Seen::Want(wanted));
    }

    pub(super) fn link(self: &Rc<Self>, path: usize, up: bool) {
        self.see(path, if up { Seen::LinkUp } else { Seen::LinkDown });
    }

    pub(super) fn status(&self) -> Vec<PathStatus> {
        let state = self.state.borrow();
        let lines = state.lines.iter().enumerate();
        let status = lines.map(|(path, line)| PathStatus {
            state: line.health.state(),
            wanted: line.health.wanted(),
            usage: line.settings.usage,
            marginal: line.health.marginal(),
            in_flight: state.selector.in_flight(path),
            bytes_in_flight: state.selector.bytes_in_flight(path),
            ended: state.selector.ended(path),
        });
        status.collect()
    }

    /// Ends everything; nobody is answered any more.
    pub(super) fn close(&self) {
        let sessions: Vec<Rc<dyn Session>> = {
            let mut state = self.state.borrow_mut();
            state.closed = true;
            state.pending.clear();
            state.ready.clear();
            state
                .lines
                .iter_mut()
                .filter_map(|line| line.session.take())
                .collect()
        };
        for session in sessions {
            session.leave();
        }
        self.bell.ring();
    }

    pub(super) fn submit(self: &Rc<Self>, io: Io) -> IoFuture {
        match pieces::cut(io, &self.shape, self.config.piece) {
            Cut::Whole(io) => self.submit_whole(io),
            Cut::Pieces { parts, into } => {
                let answers = parts.into_iter().map(|part| self.submit_whole(part));
                pieces::join(answers.collect(), into)
            }
        }
    }

    fn submit_whole(self: &Rc<Self>, mut io: Io) -> IoFuture {
        let kind = match io.op() {
            Op::Read { .. } | Op::Extents { .. } | Op::Flush => Kind::Harmless,
            Op::Write { .. } | Op::WriteZeroes { .. } | Op::Discard { .. } => Kind::Write,
            Op::CompareAndWrite { .. } => Kind::Once,
        };
        let into = match io.op_mut() {
            Op::Read { into, .. } => into.take(),
            Op::Write { .. }
            | Op::WriteZeroes { .. }
            | Op::Discard { .. }
            | Op::CompareAndWrite { .. }
            | Op::Extents { .. }
            | Op::Flush => None,
        };
        let promise = Promise::new();
        let pending = Pending {
            into,
            promise: promise.clone(),
            tries: Tries::default(),
            result: None,
            prefer: None,
            avoid: None,
            not_before: Now::ZERO,
            stuck: None,
            io,
        };
        let decisions = {
            let mut state = self.state.borrow_mut();
            let (id, decisions) = state.book.begin(kind, pending.io.op().range());
            state.pending.insert(id, pending);
            decisions
        };
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

    fn request(&self, io: &Io) -> Request {
        let range = io.op().range();
        let bytes = range.map_or(0, |range| {
            range
                .len()
                .0
                .saturating_mul(self.shape.block_size.bytes().into())
        });
        let start = range.map_or(0, |range| {
            range
                .start()
                .0
                .saturating_mul(self.shape.block_size.bytes().into())
        });
        let (direction, bytes) = match io.op() {
            Op::Read { .. } => (Direction::Read, bytes),
            Op::Write { .. } | Op::CompareAndWrite { .. } => (Direction::Write, bytes),
            Op::WriteZeroes { .. } | Op::Discard { .. } | Op::Extents { .. } | Op::Flush => {
                (Direction::Write, 0)
            }
        };
        Request {
            direction,
            start,
            bytes,
        }
    }

    /// Sends an operation, or lets it wait for a path.
    fn dispatch(self: &Rc<Self>, id: CommandId) {
        let now = self.core.now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
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
        let request = self.request(&pending.io);
        let taken = take(&mut state.selector, pending, request, now);
        let usable = taken.map(|ticket| (state.lines[ticket.path()].session.clone(), ticket));
        let Some((Some(session), ticket)) = usable else {
            pending.stuck.get_or_insert(now);
            state.ready.push_back(id);
            self.bell.ring();
            return;
        };
        pending.stuck = None;
        let line = &mut state.lines[ticket.path()];
        let nexus = line.nexus;
        let placed = state.book.placed(id, nexus);
        debug_assert!(placed, "a path with a session is not a lost one");
        *state.open.entry(nexus).or_default() += 1;
        line.health.seen(Seen::Sent, now);
        // Mostly the driver wakes early enough by itself.
        let due = line.health.deadline();
        let late = due.is_some_and(|due| self.armed.get().is_none_or(|armed| due < armed));
        let io = pending.io.fork();
        let engine = Rc::clone(self);
        // The session may answer at once, and then whoever asked is told: nothing may be borrowed.
        self.core.spawn(Box::pin(async move {
            let ended = session.submit(io).await;
            let path = ticket.path();
            if matches!(ended, Ended::Done(_)) {
                engine.clocked(path, request.bytes, now);
            }
            engine.ended(id, nexus, ticket, ended);
        }));
        if late {
            self.bell.ring();
        }
    }

    fn ended(self: &Rc<Self>, id: CommandId, nexus: Nexus, ticket: Ticket, ended: Ended) {
        let now = self.core.now();
        let path = ticket.path();
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
            state.selector.done(ticket, carried, now);
            let line = &mut state.lines[path];
            if state.selector.in_flight(path) == 0 {
                line.health.seen(Seen::NothingExpected, now);
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
                    state.book.answered(id, nexus, answer)
                }
                Ended::Again(verdict, error) => {
                    let mut random = [0];
                    self.core.fill_random(&mut random);
                    let answer = again(state, id, path, (verdict, error), (now, random[0]));
                    effects = says(verdict.path);
                    state.book.answered(id, nexus, answer)
                }
                Ended::Lost { sent } => {
                    if sent {
                        state.book.sent(id, nexus);
                    }
                    if line.nexus == nexus && line.session.is_some() {
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
                self.look(path, nexus);
            }
        }
        self.keeper_drained();
        self.pump();
    }

    /// An operation on `nexus` has ended; with the last one of a session that is over, the book hears of it.
    fn one_less(&self, nexus: Nexus, now: Now) -> Vec<Decide> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let left = state.open.get_mut(&nexus).map_or(0, |count| {
            *count = count.saturating_sub(1);
            *count
        });
        if left > 0 {
            return Vec::new();
        }
        state.open.remove(&nexus);
        if state.ending.remove(&nexus) {
            lost(state, nexus, now)
        } else {
            Vec::new()
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
        let result = match (result, pending.into) {
            (Ok(Done::Data(data)), Some(into)) => Ok(Done::Data(pieces::fill(into, &data))),
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

    /// Asks every other path to fence `nexus`, the one that was heard last first; logging in again on its own path does it too.
    fn fence(self: &Rc<Self>, nexus: Nexus) {
        let mut sessions: Vec<Rc<dyn Session>> = {
            let state = self.state.borrow();
            let others = state
                .lines
                .iter()
                .filter(|line| line.nexus.path != nexus.path);
            others.filter_map(|line| line.session.clone()).collect()
        };
        sessions.sort_by_key(|session| std::cmp::Reverse(session.received_at()));
        for session in sessions {
            self.ask_for_fence(session, nexus);
        }
    }

    pub(super) fn ask_for_fence(self: &Rc<Self>, session: Rc<dyn Session>, nexus: Nexus) {
        let engine = Rc::clone(self);
        self.core.spawn(Box::pin(async move {
            if session.fence(nexus).await {
                let decisions = engine
                    .state
                    .borrow_mut()
                    .book
                    .fenced(nexus, Evidence::NexusFence);
                engine.act(decisions);
            }
        }));
    }

    /// Looks what a compare-and-write has done.
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
                Ok(Done::Nothing | Done::Extents(_)) | Err(_) => stale::Resolution::Unknown,
            };
            let decisions = engine.state.borrow_mut().book.resolved(id, resolution);
            engine.act(decisions);
        }));
    }

    /// When something has to be done next.
    fn deadline(&self) -> Option<Now> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        for line in &mut state.lines {
            if let Some(session) = &line.session {
                line.health.seen(Seen::Received, session.received_at());
            }
        }
        let paths = state
            .lines
            .iter()
            .filter_map(|line| line.health.deadline())
            .min();
        let stuck = state
            .ready
            .iter()
            .filter_map(|id| state.pending.get(id)?.stuck)
            .min();
        let given_up = stuck.map(|since| since.after(self.config.no_path_timeout));
        [
            paths,
            state.book.deadline(),
            given_up,
            self.keeper_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn tick(self: &Rc<Self>) {
        let now = self.core.now();
        let paths = self.state.borrow().lines.len();
        for path in 0..paths {
            let effects = {
                let mut state = self.state.borrow_mut();
                let line = &mut state.lines[path];
                // Another unit may have been answered on the same session meanwhile.
                if let Some(session) = &line.session {
                    line.health.seen(Seen::Received, session.received_at());
                }
                let due = line.health.deadline().is_some_and(|at| at <= now);
                if due {
                    line.health.tick(now)
                } else {
                    Vec::new()
                }
            };
            self.carry_out(path, effects);
        }
        let decisions = self.state.borrow_mut().book.tick(now);
        self.act(decisions);
        self.keeper_tick(now);
        self.keeper_drained();
        self.hope(now);
        self.give_up(now);
    }

    /// With no path alive, none has to prove itself, and none waits long for its next attempt.
    fn hope(self: &Rc<Self>, now: Now) {
        let helped = {
            let state = self.state.borrow();
            if state
                .lines
                .iter()
                .any(|line| line.health.usage() != Use::No)
            {
                return;
            }
            let lines = state.lines.iter().enumerate();
            let helped = lines.filter(|(_, line)| match line.health.state() {
                State::Proving => true,
                // Once told it will not say a later time: this ends.
                State::Down(_) => line
                    .health
                    .deadline()
                    .is_some_and(|at| at > now.after(HOPE)),
                State::Connecting | State::Up | State::Quarantined | State::Disabled => false,
            });
            helped.map(|(path, _)| path).collect::<Vec<usize>>()
        };
        for path in helped {
            self.see(path, Seen::OnlyHope);
        }
    }

    fn give_up(self: &Rc<Self>, now: Now) {
        let over = {
            let state = self.state.borrow();
            let over = |id: &&CommandId| {
                let stuck = state.pending.get(id).and_then(|pending| pending.stuck);
                stuck.is_some_and(|since| now.since(since) >= self.config.no_path_timeout)
            };
            state
                .ready
                .iter()
                .filter(over)
                .copied()
                .collect::<Vec<CommandId>>()
        };
        for id in over {
            let decisions = {
                let mut state = self.state.borrow_mut();
                state.ready.retain(|it| *it != id);
                state.book.give_up(id)
            };
            self.act(decisions);
        }
    }
}

/// A session is over with everything on it. If its path has logged in again meanwhile, that was the fence.
pub(super) fn lost(state: &mut Inside, nexus: Nexus, now: Now) -> Vec<Decide> {
    let mut decisions = state.book.lost(nexus, now);
    let newer =
        |line: &Line| line.nexus.path == nexus.path && line.nexus > nexus && line.session.is_some();
    if state.lines.iter().any(newer) {
        decisions.retain(|it| *it != Decide::Fence(nexus));
        decisions.extend(state.book.fenced(nexus, Evidence::Reinstated));
    }
    decisions
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

/// How the book is to take an answer that asks for a repetition.
fn again(
    state: &mut Inside,
    id: CommandId,
    path: usize,
    (verdict, error): (Verdict, IoError),
    (now, random): (Now, u8),
) -> stale::Answer {
    let others = (0..state.lines.len())
        .any(|other| other != path && state.lines[other].settings.usage != Use::No);
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
        Step::Uncertain => return stale::Answer::Ended,
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

/// The path for an operation: the one it has to go back to, else the policy's choice, but not the one to avoid if there is another.
fn take(selector: &mut Selector, pending: &Pending, request: Request, now: Now) -> Option<Ticket> {
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
        Ok(ticket) => Some(ticket),
        Err(_) => selector.take(request, now).ok(),
    }
}

/// Ticks the engine for as long as somebody uses it.
async fn drive(engine: Weak<Engine>, bell: Rc<Bell>, core: CoreHandle) {
    loop {
        let until = match engine.upgrade() {
            Some(engine) if !engine.state.borrow().closed => {
                let due = engine.deadline();
                engine.armed.set(due);
                due.map(|at| core.sleep_until(at))
            }
            Some(_) | None => return,
        };
        bell.rung_or(until).await;
        let Some(engine) = engine.upgrade() else {
            return;
        };
        if engine.state.borrow().closed {
            return;
        }
        engine.tick();
    }
}
