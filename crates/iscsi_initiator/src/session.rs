//! A session as a handle: commands are futures, and a task of the core drives the connection.
//!
//! **Contract.** Handles are cheap to clone. Dropping an [`Answer`] abandons the answer, never the
//! command. When the last handle is dropped the session logs out, after what is in flight has
//! ended.

use crate::connection::Connection;
use crate::lost::Lost;
use crate::pending::Pending;
use env::{CoreHandle, StreamMeasures};
use iscsi::initiator_side::{Completion, InitiatorCommand, InitiatorEvent};
use iscsi::{Itt, Lun};
use scsi::{Sense, SenseKey, Status};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use units::{Buf, BufMut, Now};

/// Task management functions that do not end the tasks of one unit (RFC 7143 11.5.1 "Function").
pub(crate) const ABORT_TASK: u8 = 1;
const TARGET_WARM_RESET: u8 = 6;
const TARGET_COLD_RESET: u8 = 7;

/// "Function complete" and "Task does not exist" (RFC 7143 11.6.1 "Response").
pub(crate) const COMPLETE: u8 = 0;
pub(crate) const NO_SUCH_TASK: u8 = 1;

/// Asynchronous event "target requests logout" (RFC 7143 11.9.1 "AsyncEvent").
const ASYNC_LOGOUT: u8 = 1;

/// A session with a target.
#[derive(Clone)]
pub struct Session(Rc<Handle>);

struct Handle(Rc<Shared>);

struct Shared(RefCell<State>);

struct State {
    connection: Connection,
    /// Commands and functions that have not ended.
    pending: Pending<Waiting>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    /// The task that drives the connection.
    driver: Option<Waker>,
    lost: Option<Lost>,
    waiting_for_end: Vec<Waker>,
    orphan: bool,
    logout_sent: bool,
    logout_asked: bool,
    /// The ping that is under way, and the slots of all who asked.
    ping: Option<(Itt, Vec<usize>)>,
    /// The text exchange that is under way, and who waits for its end to begin another.
    text: Option<(Itt, usize)>,
    waiting_for_text: Vec<Waker>,
    uncertain: Uncertain,
}

/// Commands that another initiator may have ended: a unit attention has said so, to one that was
/// sent after them.
#[derive(Default)]
struct Uncertain {
    commands: Vec<(Itt, Lun)>,
    /// Who sees to them, if anybody does.
    watch: Option<Waker>,
    /// It waits for a command, too.
    idle: bool,
    watched: bool,
}

/// What waits for an answer of the target.
#[derive(Clone, Copy)]
struct Waiting {
    /// Where the answer goes; `None`: nobody waits for it ([`Session::give_up`]).
    slot: Option<usize>,
    lun: Lun,
    since: Now,
    /// It is a task management function, which ends these tasks.
    ends: Option<Ends>,
}

/// Which tasks a function ends when it is complete.
#[derive(Clone, Copy)]
enum Ends {
    One(Option<Itt>),
    OfUnit,
    All,
}

enum Slot {
    Free,
    Waiting(Option<Waker>),
    /// Nobody wants the answer.
    Abandoned,
    Ended(Result<Ended, Lost>),
}

enum Ended {
    Command(Completion),
    Function(u8),
    Pong,
    Text(Vec<u8>),
}

impl Session {
    /// Makes a session of a connection that has logged in.
    #[must_use]
    pub fn new(core: &CoreHandle, connection: Connection) -> Self {
        let shared = Rc::new(Shared(RefCell::new(State {
            connection,
            pending: Pending::default(),
            slots: Vec::new(),
            free: Vec::new(),
            driver: None,
            lost: None,
            waiting_for_end: Vec::new(),
            orphan: false,
            logout_sent: false,
            logout_asked: false,
            ping: None,
            text: None,
            waiting_for_text: Vec::new(),
            uncertain: Uncertain::default(),
        })));
        let driven = Rc::clone(&shared);
        core.spawn(Box::pin(poll_fn(move |cx| driven.0.borrow_mut().drive(cx))));
        Self(Rc::new(Handle(shared)))
    }

    fn state<T>(&self, with: impl FnOnce(&mut State) -> T) -> T {
        with(&mut self.0.0.0.borrow_mut())
    }

    /// Sends a command: `data_out` is what it writes, `into` where it reads to; one of them is
    /// empty.
    pub fn command(
        &self,
        command: InitiatorCommand,
        data_out: Buf,
        into: Option<BufMut>,
    ) -> Answer {
        let lun = command.lun;
        let (slot, itt) = self.state(|state| {
            state.start(lun, None, |connection| {
                connection.submit(command, data_out, into)
            })
        });
        Answer {
            shared: Rc::clone(&self.0.0),
            slot,
            itt,
        }
    }

    /// Carries out a task management function (RFC 7143 11.5.1 "Function"); answers the response
    /// code (11.6.1). The commands that a complete function has ended have [`Lost::Aborted`] for an
    /// answer.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn task_management(
        &self,
        function: u8,
        lun: Lun,
        referenced: Option<Itt>,
    ) -> Result<u8, Lost> {
        let ends = match function {
            ABORT_TASK => Ends::One(referenced),
            TARGET_WARM_RESET | TARGET_COLD_RESET => Ends::All,
            _ => Ends::OfUnit,
        };
        let (slot, itt) = self.state(|state| {
            state.start(lun, Some(ends), |connection| {
                connection.task_management(function, lun, referenced)
            })
        });
        let mut answer = Answer {
            shared: Rc::clone(&self.0.0),
            slot,
            itt,
        };
        match poll_fn(|cx| answer.poll_ended(cx)).await? {
            Ended::Function(response) => Ok(response),
            Ended::Command(_) | Ended::Pong | Ended::Text(_) => {
                unreachable!("a function's tag has a function's answer")
            }
        }
    }

    /// Ends every command of a unit for whoever waits. What waited for the target's window is never
    /// sent and ends with [`Lost::Unsent`]; the others end with [`Lost::Left`], whatever becomes of
    /// them at the target. Answers how many those are: until ABORT TASK SET is complete they may be
    /// carried out.
    pub fn give_up(&self, lun: Lun) -> usize {
        self.state(|state| {
            let mut left = 0;
            for itt in state.pending.tags() {
                let found = state.pending.get_mut(itt);
                let Some(task) = found.filter(|task| task.lun == lun && task.ends.is_none()) else {
                    continue;
                };
                let slot = task.slot.take();
                let never_sent = state.connection.withdraw(itt);
                let why = if never_sent { Lost::Unsent } else { Lost::Left };
                if never_sent {
                    state.pending.remove(itt);
                } else {
                    left += 1;
                }
                if let Some(slot) = slot {
                    state.fill(slot, Err(why));
                }
            }
            left
        })
    }

    /// Commands that have left, at `before` or earlier, and are not answered.
    #[must_use]
    pub fn overdue(&self, before: Now) -> Vec<(Itt, Lun)> {
        self.state(|state| {
            let mut late = Vec::new();
            for itt in state.pending.tags() {
                let found = state.pending.get_mut(itt).copied();
                let task =
                    found.filter(|it| it.ends.is_none() && it.slot.is_some() && it.since <= before);
                if let Some(task) = task.filter(|_| !state.connection.is_unsent(itt)) {
                    late.push((itt, task.lun));
                }
            }
            late
        })
    }

    /// Ready while something is in flight, or when the session is over.
    pub(crate) fn poll_busy(&self, cx: &Context<'_>) -> Poll<()> {
        self.state(|state| {
            if state.lost.is_some() || !state.pending.is_empty() {
                return Poll::Ready(());
            }
            state.uncertain.watch = Some(cx.waker().clone());
            state.uncertain.idle = true;
            Poll::Pending
        })
    }

    /// Commands of which an answer has shown that the target may have ended them without one: it
    /// was a unit attention that reports a reset, or cleared commands, and they were sent
    /// before what it answered. Nothing is known of them yet: ABORT TASK shows it. None where the
    /// session is over.
    pub(crate) fn poll_uncertain(&self, cx: &Context<'_>) -> Poll<Vec<(Itt, Lun)>> {
        self.state(|state| {
            state.uncertain.watched = true;
            let found = std::mem::take(&mut state.uncertain.commands);
            if state.lost.is_some() || !found.is_empty() {
                return Poll::Ready(found);
            }
            state.uncertain.watch = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    /// Units of which commands are in flight, all of them sent at `before` or earlier: what has
    /// become of those no other command will show.
    pub(crate) fn silent(&self, before: Now) -> Vec<Lun> {
        self.state(|state| {
            let mut newest: BTreeMap<Lun, Now> = BTreeMap::new();
            for itt in state.pending.tags() {
                let Some(task) = state.pending.get_mut(itt).filter(|it| it.ends.is_none()) else {
                    continue;
                };
                let since = newest.entry(task.lun).or_insert(task.since);
                *since = task.since.max(*since);
            }
            newest.retain(|_, since| *since <= before);
            newest.into_keys().collect()
        })
    }

    /// Pings the target (RFC 7143 11.18 "NOP-Out"). One ping at a time: its answer is for all who
    /// have asked meanwhile.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ping(&self) -> Result<(), Lost> {
        let slot = self.state(|state| {
            let slot = state.slot();
            if let Some(lost) = &state.lost {
                state.slots[slot] = Slot::Ended(Err(lost.clone()));
                return slot;
            }
            state.slots[slot] = Slot::Waiting(None);
            match &mut state.ping {
                Some((_, all)) => all.push(slot),
                None => {
                    state.ping = Some((state.connection.ping(), vec![slot]));
                    state.wake_driver();
                }
            }
            slot
        });
        let mut answer = self.answer(slot);
        match poll_fn(|cx| answer.poll_ended(cx)).await? {
            Ended::Pong => Ok(()),
            Ended::Command(_) | Ended::Function(_) | Ended::Text(_) => {
                unreachable!("a ping's tag has a ping's answer")
            }
        }
    }

    /// Sends a Text Request (RFC 7143 11.10 "Text Request") and answers the pairs that come back,
    /// as they stand in the PDU. One exchange at a time: others wait for their turn.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn text(&self, pairs: &[(&str, &str)]) -> Result<Vec<u8>, Lost> {
        let slot = poll_fn(|cx| self.state(|state| state.poll_text(pairs, cx))).await;
        let mut answer = self.answer(slot);
        match poll_fn(|cx| answer.poll_ended(cx)).await? {
            Ended::Text(text) => Ok(text),
            Ended::Command(_) | Ended::Function(_) | Ended::Pong => {
                unreachable!("a text exchange's tag has text for an answer")
            }
        }
    }

    fn answer(&self, slot: usize) -> Answer {
        Answer {
            shared: Rc::clone(&self.0.0),
            slot,
            itt: None,
        }
    }

    /// When something was last received.
    #[must_use]
    pub fn received_at(&self) -> Now {
        self.state(|state| state.connection.received_at())
    }

    /// Since when a ping is unanswered.
    #[must_use]
    pub fn unanswered_since(&self) -> Option<Now> {
        self.state(|state| {
            let since = state.connection.pinged_at();
            state.ping.as_ref().map(|_| since)
        })
    }

    /// What the system measured of the connection.
    #[must_use]
    pub fn measured(&self) -> Option<StreamMeasures> {
        self.state(|state| state.connection.measured())
    }

    /// Destroys the connection: when this returns the socket is gone, and every command has ended
    /// with [`Lost::Destroyed`] or [`Lost::Unsent`].
    pub fn abort(&self) {
        self.state(|state| {
            state.connection.abort();
            state.is_lost(&Lost::Destroyed);
            state.wake_driver();
        });
    }

    /// Logs out, and waits until the connection is over.
    pub async fn logout(&self) {
        self.state(State::log_out);
        self.ended().await;
    }

    /// The connection is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.state(|state| state.lost.is_some())
    }

    /// Commands and functions that have not ended.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state(|state| state.pending.is_empty())
    }

    /// The target has asked for a logout (an administrator empties it).
    #[must_use]
    pub fn logout_asked(&self) -> bool {
        self.state(|state| state.logout_asked)
    }

    /// Waits until the connection is over; says why.
    pub async fn ended(&self) -> Lost {
        poll_fn(|cx| {
            self.state(|state| match &state.lost {
                Some(lost) => Poll::Ready(lost.clone()),
                None => {
                    let waiting = &mut state.waiting_for_end;
                    if waiting.iter().all(|waker| !waker.will_wake(cx.waker())) {
                        waiting.push(cx.waker().clone());
                    }
                    Poll::Pending
                }
            })
        })
        .await
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.0.0.borrow_mut();
        state.orphan = true;
        state.wake_driver();
    }
}

impl State {
    fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    fn slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::Free);
            self.slots.len() - 1
        })
    }

    fn start(
        &mut self,
        lun: Lun,
        ends: Option<Ends>,
        submit: impl FnOnce(&mut Connection) -> Itt,
    ) -> (usize, Option<Itt>) {
        let slot = self.slot();
        if self.lost.is_some() {
            // Whatever ended the session, this was not sent.
            self.slots[slot] = Slot::Ended(Err(Lost::Unsent));
            return (slot, None);
        }
        self.slots[slot] = Slot::Waiting(None);
        let itt = submit(&mut self.connection);
        let waiting = Waiting {
            slot: Some(slot),
            lun,
            since: self.connection.recent(),
            ends,
        };
        self.pending.insert(itt, waiting);
        self.wake_driver();
        if std::mem::take(&mut self.uncertain.idle) {
            self.wake_watch();
        }
        (slot, Some(itt))
    }

    fn wake_watch(&mut self) {
        if let Some(watch) = self.uncertain.watch.take() {
            watch.wake();
        }
    }

    /// The answer to `itt` says that commands of its unit were ended: those that left before it
    /// are uncertain. Later ones came to the target after the unit attention, which `itt` has
    /// taken.
    fn mark_uncertain(&mut self, itt: Itt) {
        let Some(lun) = self.pending.get_mut(itt).map(|task| task.lun) else {
            return;
        };
        if !self.uncertain.watched {
            return;
        }
        for other in self.pending.tags() {
            let found = self.pending.get_mut(other).copied();
            let concerned =
                found.filter(|task| task.lun == lun && task.ends.is_none() && task.slot.is_some());
            // Tags count upwards.
            let before = other != itt && itt.get().wrapping_sub(other.get()) < 1 << 31;
            if concerned.is_some() && before && !self.connection.is_unsent(other) {
                self.uncertain.commands.push((other, lun));
            }
        }
        if !self.uncertain.commands.is_empty() {
            self.wake_watch();
        }
    }

    /// A function is complete: what it has ended gets no response any more.
    fn function_complete(&mut self, function: Waiting, function_itt: Itt) {
        let tags = match function.ends {
            None => return,
            Some(Ends::One(referenced)) => referenced.into_iter().collect(),
            Some(Ends::OfUnit | Ends::All) => self.pending.tags(),
        };
        for itt in tags {
            let all = !matches!(function.ends, Some(Ends::OfUnit));
            // Tags count upwards: a later command is not concerned.
            let before = function_itt.get().wrapping_sub(itt.get()) < 1 << 31;
            let found = self.pending.get_mut(itt).copied();
            let concerned = found.is_some_and(|task| {
                task.ends.is_none() && before && (all || task.lun == function.lun)
            });
            if concerned {
                self.connection.forget(itt);
                self.end(itt, Err(Lost::Aborted));
            }
        }
    }

    fn log_out(&mut self) {
        if !self.logout_sent && self.lost.is_none() {
            self.logout_sent = true;
            self.connection.logout();
            self.wake_driver();
        }
    }

    fn end(&mut self, itt: Itt, result: Result<Ended, Lost>) {
        let Some(Waiting { slot, .. }) = self.pending.remove(itt) else {
            return;
        };
        if let Some(slot) = slot {
            self.fill(slot, result);
        }
    }

    /// Begins a text exchange, if none is under way; answers its slot.
    fn poll_text(&mut self, pairs: &[(&str, &str)], cx: &mut Context<'_>) -> Poll<usize> {
        if self.text.is_some() {
            self.waiting_for_text.push(cx.waker().clone());
            return Poll::Pending;
        }
        let slot = self.slot();
        if let Some(lost) = &self.lost {
            self.slots[slot] = Slot::Ended(Err(lost.clone()));
            return Poll::Ready(slot);
        }
        self.slots[slot] = Slot::Waiting(None);
        self.text = Some((self.connection.text(pairs), slot));
        self.wake_driver();
        Poll::Ready(slot)
    }

    fn text_is_over(&mut self, result: Result<Ended, Lost>) {
        if let Some((_, slot)) = self.text.take() {
            self.fill(slot, result);
        }
        self.waiting_for_text.drain(..).for_each(Waker::wake);
    }

    fn fill(&mut self, slot: usize, result: Result<Ended, Lost>) {
        match std::mem::replace(&mut self.slots[slot], Slot::Ended(result)) {
            Slot::Waiting(Some(waker)) => waker.wake(),
            Slot::Waiting(None) => {}
            Slot::Abandoned | Slot::Free | Slot::Ended(_) => self.release(slot),
        }
    }

    fn release(&mut self, slot: usize) {
        self.slots[slot] = Slot::Free;
        self.free.push(slot);
    }

    fn drive(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.orphan && self.pending.is_empty() {
                self.log_out();
            }
            match self.connection.poll_event(cx) {
                Poll::Pending => {
                    self.driver = Some(cx.waker().clone());
                    return Poll::Pending;
                }
                Poll::Ready(Ok(event)) => self.event(event),
                Poll::Ready(Err(lost)) => {
                    self.is_lost(&lost);
                    return Poll::Ready(());
                }
            }
        }
    }

    fn event(&mut self, event: InitiatorEvent) {
        match event {
            InitiatorEvent::Response { itt, completion } => {
                if reports_ended_commands(&completion) {
                    self.mark_uncertain(itt);
                }
                self.end(itt, Ok(Ended::Command(completion)));
            }
            InitiatorEvent::TaskManagement { itt, response } => {
                let function = self.pending.get_mut(itt).copied();
                let over = |function: &Waiting| match function.ends {
                    // A task that is not there does nothing any more either.
                    Some(Ends::One(_)) => matches!(response, COMPLETE | NO_SUCH_TASK),
                    Some(Ends::OfUnit | Ends::All) | None => response == COMPLETE,
                };
                if let Some(function) = function.filter(over) {
                    self.function_complete(function, itt);
                }
                self.end(itt, Ok(Ended::Function(response)));
            }
            InitiatorEvent::Rejected { reason, header } => {
                // The tag is at the same place in every PDU (RFC 7143 11.2.1.6 "Initiator Task
                // Tag").
                let tag = header.and_then(|header| header[16..20].try_into().ok());
                if let Some(itt) = tag.and_then(|tag| Itt::from_wire(u32::from_be_bytes(tag))) {
                    self.connection.forget(itt);
                    self.end(itt, Err(Lost::Rejected(reason)));
                    if self.text.is_some_and(|(of, _)| of == itt) {
                        self.text_is_over(Err(Lost::Rejected(reason)));
                    }
                }
            }
            InitiatorEvent::Pong { itt } => {
                let asked = self.ping.take_if(|(of, _)| *of == itt);
                for slot in asked.into_iter().flat_map(|(_, all)| all) {
                    self.fill(slot, Ok(Ended::Pong));
                }
            }
            InitiatorEvent::Text { itt, text } => {
                if self.text.is_some_and(|(of, _)| of == itt) {
                    self.text_is_over(Ok(Ended::Text(text)));
                }
            }
            InitiatorEvent::Async { event, .. } => self.logout_asked |= event == ASYNC_LOGOUT,
            InitiatorEvent::LoggedIn { .. }
            | InitiatorEvent::LoginFailed { .. }
            | InitiatorEvent::LoggedOut { .. }
            | InitiatorEvent::Closed(_) => {}
        }
    }

    fn is_lost(&mut self, lost: &Lost) {
        if self.lost.is_some() {
            return;
        }
        self.lost = Some(lost.clone());
        self.wake_watch();
        for itt in self.pending.tags() {
            let unsent = self.connection.is_unsent(itt);
            let why = if unsent { Lost::Unsent } else { lost.clone() };
            self.end(itt, Err(why));
        }
        let asked = self.ping.take();
        for slot in asked.into_iter().flat_map(|(_, all)| all) {
            self.fill(slot, Err(lost.clone()));
        }
        self.text_is_over(Err(lost.clone()));
        for waker in self.waiting_for_end.drain(..) {
            waker.wake();
        }
    }
}

/// A unit attention after which commands of the nexus are gone that were there before it: it was
/// reset, or another initiator cleared them (SAM-5 5.14 "Unit attention conditions").
fn reports_ended_commands(completion: &Completion) -> bool {
    if completion.status != Status::CheckCondition.code() {
        return false;
    }
    let sense = Sense::parse(&completion.sense.to_vec());
    sense.is_some_and(|sense| {
        let code = (sense.code.asc, sense.code.ascq);
        sense.key == SenseKey::UnitAttention && (code.0 == 0x29 || code == (0x2f, 0x00))
    })
}

/// The answer to a command. Dropping it abandons the answer, never the command.
pub struct Answer {
    shared: Rc<Shared>,
    slot: usize,
    itt: Option<Itt>,
}

impl Answer {
    /// The task's tag, for ABORT TASK; `None` where the command was never sent.
    #[must_use]
    pub fn itt(&self) -> Option<Itt> {
        self.itt
    }

    fn poll_ended(&mut self, cx: &Context<'_>) -> Poll<Result<Ended, Lost>> {
        let mut state = self.shared.0.borrow_mut();
        let slot = &mut state.slots[self.slot];
        if let Slot::Waiting(waker) = slot {
            if waker.as_ref().is_none_or(|it| !it.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        match std::mem::replace(slot, Slot::Free) {
            Slot::Ended(result) => Poll::Ready(result),
            Slot::Free | Slot::Waiting(_) | Slot::Abandoned => {
                panic!("an answer that was given is asked for again")
            }
        }
    }
}

impl Future for Answer {
    type Output = Result<Completion, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_ended(cx).map(|ended| match ended? {
            Ended::Command(completion) => Ok(completion),
            Ended::Function(_) | Ended::Pong | Ended::Text(_) => {
                unreachable!("a command's tag has a command's answer")
            }
        })
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let mut state = self.shared.0.borrow_mut();
        let slot = self.slot;
        match state.slots[slot] {
            Slot::Waiting(_) => state.slots[slot] = Slot::Abandoned,
            Slot::Free | Slot::Abandoned | Slot::Ended(_) => state.release(slot),
        }
    }
}
