//! Sessions that the units of a target share: one for each path and core, however many units there
//! are.
//!
//! ```text
//!   UnitPort (LUN 0)   UnitPort (LUN 1)   ...      one for each unit and path
//!          \               /
//!           Seat       Seat                        a unit's place in the session
//!               \      /
//!             SharedSession                        one for each path: (names, ISID, from, portal)
//!                  |
//!               Session                            logged in while anybody sits there
//! ```
//!
//! **Contract.** Whoever takes a seat and joins gets the living session, or waits for the one login
//! that is under way. A session that is dead is so for all. A unit that leaves for reasons of its
//! own gets up and the session goes on; what the target still has of it is aborted by ABORT TASK
//! SET, and until that is answered neither this unit nor another user of its LUN gets a seat that
//! it can use. If it is not answered, the session is destroyed, for everybody. The last one to get
//! up logs out.

use super::login::{Living, Login};
use super::open::{LOGIN_MAX, TOO_LONG, open};
use super::outcome::Outcome;
use super::path::PathConfig;
use super::within::within;
use crate::session::{ABORT_TASK, COMPLETE, NO_SUCH_TASK, Session};
use env::{CoreHandle, LocalFuture, StreamMeasures};
use iscsi::{Isid, Itt, Lun};
use multipath::ConnectError;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::Duration;
use units::Now;

/// ABORT TASK SET (RFC 7143 11.5.1 "Function").
const ABORT_TASK_SET: u8 = 2;
/// ABORT TASK SET is answered within this time, or the session is destroyed. Our target takes two
/// seconds at most.
const ABORT_MAX: Duration = Duration::from_secs(3);
/// ABORT TASK is answered within this time, and a ping, or the session is destroyed.
const ABORT_TASK_MAX: Duration = Duration::from_secs(2);
/// A ping is unanswered for so long: the connection is as good as dead.
const SILENCE: Duration = Duration::from_millis(700);
/// Between checks of commands that are not answered: an eighth of their time, but not out of these.
const CHECK_MIN: Duration = Duration::from_millis(100);
const CHECK_MAX: Duration = Duration::from_millis(250);
/// After so long without an answer, and without another command, the unit is asked whether
/// something has become of them.
const QUESTION_AFTER: Duration = Duration::from_millis(250);
/// A logout takes no longer.
const LOGOUT_MAX: Duration = Duration::from_millis(400);

/// What makes the sessions of two units the same.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    initiator: String,
    target: Option<String>,
    isid: Isid,
    from: Option<IpAddr>,
    interface: Option<String>,
    portal: SocketAddr,
}

/// The shared sessions of a core.
#[derive(Default)]
struct SharedSessions {
    all: RefCell<BTreeMap<Key, Weak<SharedSession>>>,
    next: Cell<u64>,
}

/// How a login ended.
#[derive(Clone)]
enum Ended {
    Living(Living),
    Failed(ConnectError),
    /// Whoever began it has begun another.
    Replaced(Rc<Attempt>),
}

/// A login that is under way.
struct Attempt {
    /// The port that began it. If that one asks again, it holds this one to hang.
    leader: u64,
    ended: Outcome<Ended>,
}

/// A unit that uses a session.
pub(super) trait User {
    /// Asks whether something has become of commands that are not answered; `None`: not now.
    fn question(self: Rc<Self>) -> Option<LocalFuture<()>>;
}

/// The session of one path of this core to a target.
pub(super) struct SharedSession {
    core: CoreHandle,
    number: u64,
    config: PathConfig,
    living: RefCell<Option<Living>>,
    last: RefCell<Option<Rc<Login>>>,
    attempt: RefCell<Option<Rc<Attempt>>>,
    /// Ports that sit here, each with its unit.
    seats: RefCell<BTreeMap<u64, (Lun, u32)>>,
    /// The unit at each of its numbers.
    units: RefCell<BTreeMap<Lun, Weak<dyn User>>>,
    /// Units that have left, until what they had is over.
    leaving: RefCell<BTreeMap<Lun, Rc<Outcome<bool>>>>,
    /// TCP segments that sessions which are over had sent again.
    retransmitted: Cell<u64>,
    /// Why we destroyed the last session, until the next login.
    trouble: RefCell<Option<String>>,
}

/// A number that no other port of this core has.
pub(super) fn port_number(core: &CoreHandle) -> u64 {
    let sessions = core.locals().get::<SharedSessions>();
    sessions.next.set(sessions.next.get() + 1);
    sessions.next.get()
}

impl SharedSession {
    fn key(config: &PathConfig) -> Key {
        Key {
            initiator: config.login.initiator_name.clone(),
            target: config.login.target_name.clone(),
            isid: config.login.isid,
            from: config.from,
            interface: config.interface.clone(),
            portal: config.portal,
        }
    }

    /// The session of this path; made where there is none.
    pub(super) fn of(core: &CoreHandle, config: &PathConfig) -> Rc<Self> {
        let sessions = core.locals().get::<SharedSessions>();
        let mut all = sessions.all.borrow_mut();
        all.retain(|_, shared| shared.strong_count() > 0);
        let key = Self::key(config);
        if let Some(shared) = all.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        sessions.next.set(sessions.next.get() + 1);
        let shared = Rc::new(Self {
            core: Rc::clone(core),
            number: sessions.next.get(),
            config: config.clone(),
            living: RefCell::default(),
            last: RefCell::default(),
            attempt: RefCell::default(),
            seats: RefCell::default(),
            units: RefCell::default(),
            leaving: RefCell::default(),
            retransmitted: Cell::new(0),
            trouble: RefCell::default(),
        });
        all.insert(key, Rc::downgrade(&shared));
        shared
    }

    /// The same, if it is logged in.
    pub(super) fn living(core: &CoreHandle, config: &PathConfig) -> Option<Rc<Self>> {
        let sessions = core.locals().get::<SharedSessions>();
        let shared = sessions.all.borrow().get(&Self::key(config))?.upgrade()?;
        shared.session().is_some().then_some(shared)
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// A unit has joined.
    pub(super) fn serves(&self, lun: Lun, unit: Weak<dyn User>) {
        let mut units = self.units.borrow_mut();
        units.retain(|_, it| it.strong_count() > 0);
        units.insert(lun, unit);
    }

    fn session(&self) -> Option<Living> {
        let living = self.living.borrow().clone();
        living.filter(|it| !it.session.is_over())
    }

    pub(super) fn measured(&self) -> Option<StreamMeasures> {
        self.session()?.session.measured()
    }

    /// Why we destroyed the session before, if there is none since.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }

    /// TCP segments sent again since it was made.
    pub(super) fn retransmitted(&self) -> u64 {
        let last = self.living.borrow().clone();
        let measured = last.and_then(|it| it.session.measured());
        self.retransmitted.get() + measured.map_or(0, |it| u64::from(it.retransmitted))
    }

    /// A seat for this unit, once nothing is left of those that used it before.
    pub(super) async fn seat(self: &Rc<Self>, port: u64, lun: Lun) -> Result<Seat, ConnectError> {
        loop {
            let leaving = self.leaving.borrow().get(&lun).cloned();
            let Some(leaving) = leaving else { break };
            let _clean_or_over = leaving.wait().await;
        }
        let mut seats = self.seats.borrow_mut();
        let others = seats.iter().any(|(it, (at, _))| *it != port && *at == lun);
        if others {
            let why = "another user of the LUN is on this session";
            return Err(ConnectError::Failed(why.to_owned()));
        }
        seats.entry(port).or_insert((lun, 0)).1 += 1;
        Ok(Seat {
            shared: Rc::clone(self),
            port,
            lun,
        })
    }

    /// The attempt to wait for.
    fn attempt(self: &Rc<Self>, port: u64) -> Rc<Attempt> {
        let running = self.attempt.borrow().clone();
        if let Some(running) = running.as_ref().filter(|it| it.leader != port) {
            return Rc::clone(running);
        }
        let attempt = Rc::new(Attempt {
            leader: port,
            ended: Outcome::default(),
        });
        self.attempt.replace(Some(Rc::clone(&attempt)));
        if let Some(hung) = running {
            hung.ended.set(Ended::Replaced(Rc::clone(&attempt)));
        }
        let (shared, own) = (Rc::clone(self), Rc::clone(&attempt));
        self.core
            .spawn(Box::pin(async move { shared.log_in(&own).await }));
        attempt
    }

    async fn log_in(self: &Rc<Self>, attempt: &Rc<Attempt>) {
        let opened = within(&self.core, LOGIN_MAX, open(&self.core, &self.config));
        let mut opened = pin!(opened);
        // A login that was given up must not end later and reinstate the one after it: it is
        // dropped here, with its socket.
        let opened = poll_fn(|cx| match attempt.ended.poll(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => opened.as_mut().poll(cx).map(Some),
        });
        let Some(opened) = opened.await else { return };
        self.attempt.replace(None);
        let ended = match opened {
            Some(Ok((session, login))) => {
                let login = Rc::new(login);
                let living = Living { session, login };
                self.logged_in(&living);
                Ended::Living(living)
            }
            Some(Err(error)) => Ended::Failed(error.into()),
            None => Ended::Failed(ConnectError::Silent(TOO_LONG.to_owned())),
        };
        attempt.ended.set(ended);
    }

    fn logged_in(self: &Rc<Self>, living: &Living) {
        self.note_retransmitted();
        self.trouble.replace(None);
        let watch = watch(Rc::downgrade(self), living.session.clone());
        self.core.spawn(Box::pin(watch));
        let old = self.last.replace(Some(Rc::clone(&living.login)));
        if let Some(old) = old.filter(|it| it.group_tag == living.login.group_tag) {
            // It has reinstated the session before (RFC 7143 6.3.5): nothing of that one is carried
            // out any more.
            old.fencing.succeeded();
        }
        self.living.replace(Some(living.clone()));
    }

    /// Asks the units at these numbers whether something has become of what they do not answer.
    fn question(&self, luns: &[Lun]) {
        for lun in luns {
            let unit = self.units.borrow().get(lun).and_then(Weak::upgrade);
            if let Some(question) = unit.and_then(|it| it.question()) {
                self.core.spawn(question);
            }
        }
    }

    fn note_retransmitted(&self) {
        let over = self.living.borrow().clone();
        let measured = over.and_then(|it| it.session.measured());
        let more = measured.map_or(0, |it| u64::from(it.retransmitted));
        self.retransmitted.set(self.retransmitted.get() + more);
    }

    /// Destroys the session for everybody, if it still is this one.
    fn destroy(&self, session: &Session) {
        if !session.is_over() {
            self.note_retransmitted();
            session.abort();
            self.living.replace(None);
        }
    }

    /// The last one got up.
    fn part(&self) {
        if let Some(attempt) = self.attempt.take() {
            let why = "nobody wants it any more";
            let failed = ConnectError::Failed(why.to_owned());
            attempt.ended.set(Ended::Failed(failed));
        }
        if self.living.borrow().is_none() {
            return;
        }
        self.note_retransmitted();
        let Some(living) = self.living.take() else {
            return;
        };
        let session = living.session;
        if !session.is_idle() || session.is_over() {
            return session.abort();
        }
        // Nothing is in flight: it may part in peace, if the target answers soon.
        let core = Rc::clone(&self.core);
        self.core.spawn(Box::pin(async move {
            let _parted = within(&core, LOGOUT_MAX, session.logout()).await;
            session.abort();
        }));
    }
}

/// Sees to commands that are not answered, for as long as the session lives. A target whose
/// store hangs answers pings, and that is no reason to give the path up: such commands are aborted,
/// one by one, and whoever issued them sends them again wherever he likes. Only where the abort is
/// not answered either is the session destroyed. Nothing is reset, because other hosts may use the
/// unit.
///
/// Another host that resets the unit, or clears its commands, ends ours as well, and with TAS zero
/// nobody answers them. A unit attention reports it to the next command; where there is none, TEST
/// UNIT READY asks. ABORT TASK then says of each that it is over.
async fn watch(shared: Weak<SharedSession>, session: Session) {
    loop {
        poll_fn(|cx| session.poll_busy(cx)).await;
        let Some((core, limit)) = shared
            .upgrade()
            .map(|it| (Rc::clone(&it.core), it.config.command_timeout))
        else {
            return;
        };
        let pause = (limit / 8).clamp(CHECK_MIN, CHECK_MAX);
        let uncertain = poll_fn(|cx| session.poll_uncertain(cx));
        let uncertain = within(&core, pause, uncertain).await;
        if session.is_over() {
            return;
        }
        if let Some(uncertain) = uncertain {
            let why = "commands may have been ended by another initiator, and ABORT TASK was not answered";
            see_to_their_end(&shared, &core, &session, uncertain, why).await;
            continue;
        }
        let ago = |span| core.now().since(Now::ZERO).checked_sub(span);
        if let (Some(before), Some(shared)) = (ago(QUESTION_AFTER), shared.upgrade()) {
            shared.question(&session.silent(Now::ZERO.after(before)));
        }
        let late = ago(limit).map_or_else(Vec::new, |it| session.overdue(Now::ZERO.after(it)));
        if late.is_empty() {
            continue;
        }
        // A path that does not answer at all is the health machine's.
        let answered = within(&core, ABORT_TASK_MAX, session.ping()).await;
        if !matches!(answered, Some(Ok(()))) {
            continue;
        }
        let seconds = limit.as_secs_f64();
        let why = format!("commands were not answered in {seconds} s, nor was ABORT TASK");
        see_to_their_end(&shared, &core, &session, late, &why).await;
    }
}

/// Aborts commands, and destroys the session where that is not answered.
async fn see_to_their_end(
    shared: &Weak<SharedSession>,
    core: &CoreHandle,
    session: &Session,
    commands: Vec<(Itt, Lun)>,
    why: &str,
) {
    let count = commands.len();
    let aborted = within(core, ABORT_TASK_MAX, abort(session, commands)).await;
    if let (true, Some(shared)) = (aborted != Some(true), shared.upgrade()) {
        let why = format!("{count} {why}");
        shared.destroy(session);
        shared.trouble.replace(Some(why));
    }
}

/// ABORT TASK for each; true when none of them is carried out any more.
async fn abort(session: &Session, late: Vec<(Itt, Lun)>) -> bool {
    let functions = late
        .into_iter()
        .map(|(itt, lun)| Box::pin(session.task_management(ABORT_TASK, lun, Some(itt))));
    let mut functions: Vec<_> = functions.collect();
    let mut all = true;
    poll_fn(|cx| {
        functions.retain_mut(|function| match function.as_mut().poll(cx) {
            Poll::Ready(answer) => {
                all &= matches!(answer, Ok(COMPLETE | NO_SUCH_TASK));
                false
            }
            Poll::Pending => true,
        });
        if functions.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    all
}

/// A unit's place in a session. Dropping it gives the place up.
pub(super) struct Seat {
    shared: Rc<SharedSession>,
    port: u64,
    lun: Lun,
}

impl Seat {
    /// The session's number.
    pub(super) fn number(&self) -> u64 {
        self.shared.number
    }

    /// The session, after a login if there is none.
    pub(super) async fn join(&self) -> Result<Living, ConnectError> {
        if let Some(living) = self.shared.session() {
            return Ok(living);
        }
        let mut attempt = self.shared.attempt(self.port);
        loop {
            match attempt.ended.wait().await {
                Ended::Living(living) => return Ok(living),
                Ended::Failed(why) => return Err(why),
                Ended::Replaced(by) => attempt = by,
            }
        }
    }

    fn is_last(&self) -> bool {
        self.shared.seats.borrow().len() == 1
    }

    fn is_doubled(&self) -> bool {
        let seats = self.shared.seats.borrow();
        seats.get(&self.port).is_some_and(|(_, count)| *count > 1)
    }

    /// The connection is dead: for everybody.
    pub(super) fn destroy(self, session: &Session) {
        self.shared.destroy(session);
    }

    /// Leaves a session that may live on. True comes when nothing of this unit is carried out any
    /// more, false when the session had to be destroyed.
    pub(super) fn leave(self, session: &Session) -> Rc<Outcome<bool>> {
        let outcome = Rc::new(Outcome::default());
        if self.is_doubled() {
            // The port has begun anew; nothing was ever sent from here.
            outcome.set(true);
            return outcome;
        }
        let open = session.give_up(self.lun);
        if open == 0 && !session.is_over() {
            outcome.set(true);
            return outcome;
        }
        let now = self.shared.core.now();
        let unanswered = session.unanswered_since();
        let silent = unanswered.is_some_and(|since| now.since(since) >= SILENCE);
        if self.is_last() || silent || session.is_over() {
            outcome.set(false);
            self.destroy(session);
            return outcome;
        }
        let leaving = &self.shared.leaving;
        leaving.borrow_mut().insert(self.lun, Rc::clone(&outcome));
        let (left, session) = (Rc::clone(&outcome), session.clone());
        let core = Rc::clone(&self.shared.core);
        core.spawn(Box::pin(async move {
            let core = &self.shared.core;
            let abort = session.task_management(ABORT_TASK_SET, self.lun, None);
            let answer = within(core, ABORT_MAX, abort).await;
            let clean = matches!(answer, Some(Ok(COMPLETE)));
            if !clean {
                self.shared.destroy(&session);
            }
            self.shared.leaving.borrow_mut().remove(&self.lun);
            left.set(clean);
        }));
        outcome
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let nobody = {
            let mut seats = self.shared.seats.borrow_mut();
            if let Some((_, count)) = seats.get_mut(&self.port) {
                *count = count.saturating_sub(1);
            }
            seats.retain(|_, (_, count)| *count > 0);
            seats.is_empty()
        };
        if nobody {
            self.shared.part();
        }
    }
}
