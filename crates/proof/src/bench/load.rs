//! The client: any number of sessions on one core, each with a number of commands always in flight.
//!
//! A command's time runs from the receive after which it was submitted to the receive that brought
//! its end: the client reads the clock once a receive. What happens before all sessions run, and
//! in the warm-up, is not counted.

use super::case::{Case, Manner};
use super::figures::{self, Figures, Unit};
use super::histogram::Histogram;
use super::plain;
use super::usage;
use crate::random::Random;
use env::real::{Cores, Driver, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use iscsi::bhs::Attribute;
use iscsi::initiator_side::{InitiatorCommand, InitiatorConfig, InitiatorEvent};
use iscsi::{DigestChoice, Isid, Lun, Offer};
use iscsi_initiator::{Connection, Pending, connect};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use units::{Buf, Now};

/// What the tasks of a run share.
#[derive(Default)]
pub(super) struct Run {
    /// How many work.
    pub(super) running: Cell<usize>,
    /// They are to end.
    pub(super) stop: Cell<bool>,
    /// How long each command took.
    pub(super) times: RefCell<Histogram>,
    failed: RefCell<Option<String>>,
}

impl Run {
    pub(super) fn fail(&self, what: String) {
        self.failed.borrow_mut().get_or_insert(what);
        self.stop.set(true);
    }

    /// What the tasks do in `time`, after they had a while to get going; they have ended then.
    pub(super) async fn measured(
        &self,
        core: &CoreHandle,
        unit: &Unit,
        (warm_up, time): (Duration, Duration),
    ) -> Result<Figures, String> {
        core.sleep_until(core.now().after(warm_up)).await;
        self.times.borrow_mut().clear();
        let before = usage::sample(&unit.processes)?;
        let begin = core.now();
        core.sleep_until(begin.after(time)).await;
        let seconds = core.now().since(begin).as_secs_f64();
        let used = usage::sample(&unit.processes)?.since(&before);
        let figures = figures::figures(&self.times.borrow(), seconds, &used);
        self.stop.set(true);
        for _ in 0..5000 {
            if self.running.get() == 0 {
                break;
            }
            core.sleep_until(core.now().after(Duration::from_millis(1)))
                .await;
        }
        match self.failed.take() {
            Some(error) => Err(error),
            None if self.running.get() > 0 => Err("commands hang".to_owned()),
            None => Ok(figures),
        }
    }
}

/// One session.
struct Session {
    core: CoreHandle,
    connection: Connection,
    unit: Unit,
    case: Case,
    random: Random,
    next: u64,
    payload: Buf,
    begun: Pending<Now>,
    run: Rc<Run>,
}

/// The client's core, or two.
pub struct LoadClient(Runtime);

/// What the halves of a run on two cores signal to each other: the second logs in when the first
/// has.
#[derive(Default)]
struct Turn {
    after: Option<oneshot::Receiver<()>>,
    then: Option<oneshot::Sender<()>>,
}

impl LoadClient {
    /// Starts it, in a thread that is not pinned: `taskset` says where.
    ///
    /// # Errors
    /// Where the thread cannot be had.
    pub fn start() -> std::io::Result<Self> {
        Self::on(vec![0])
    }

    /// Starts one with a core on each of processors 0 and 1: half of a case's sessions are on each.
    ///
    /// # Errors
    /// Where the threads cannot be had.
    pub fn on_two_processors() -> std::io::Result<Self> {
        Self::on(vec![0, 1])
    }

    fn on(processors: Vec<usize>) -> std::io::Result<Self> {
        Ok(Self(Runtime::start(&RuntimeConfig {
            cores: Cores::List(processors),
            driver: Driver::Poll,
            pool_limit_bytes: 1 << 30,
            ..RuntimeConfig::default()
        })?))
    }

    /// Runs a case for `time`, after a warm-up.
    ///
    /// # Errors
    /// What failed, for people.
    pub fn run(
        &self,
        unit: &Unit,
        case: &Case,
        warm_up: Duration,
        time: Duration,
    ) -> Result<Figures, String> {
        if case.manner != Manner::Burst {
            return plain::run(unit, case, warm_up, time);
        }
        let (unit, case) = (unit.clone(), *case);
        let times = (warm_up, time);
        if self.0.core_count() == 1 {
            return self.0.run(CoreId(0), move |core| {
                let all = 0..case.sessions;
                Box::pin(measure(core, unit, case, all, times, Turn::default()))
            });
        }
        self.0.run(CoreId(0), move |core| {
            Box::pin(halves(core, unit, case, times))
        })
    }

    /// Writes the whole of a unit once, so that reads find blocks.
    ///
    /// # Errors
    /// What failed, for people.
    pub fn fill(&self, unit: &Unit) -> Result<(), String> {
        let unit = unit.clone();
        let filled = self
            .0
            .run(CoreId(0), move |core| Box::pin(fill(core, unit)));
        filled.map_err(|error| format!("filling: {error}"))
    }

    /// Runs something else of the bench on the client's core.
    pub fn on_core<T: Send + 'static>(
        &self,
        make: impl FnOnce(CoreHandle) -> env::LocalFuture<T> + Send + 'static,
    ) -> T {
        self.0.run(CoreId(0), make)
    }
}

pub(super) fn lun(unit: &Unit) -> Lun {
    Lun([0, unit.lun, 0, 0, 0, 0, 0, 0])
}

/// Logs in, and hears of the power on before anything is measured.
///
/// # Errors
/// What failed, for people.
pub async fn log_in(
    core: &CoreHandle,
    unit: &Unit,
    number: u16,
    digests: bool,
) -> Result<Connection, String> {
    let [high, low] = number.to_be_bytes();
    // tgt takes an ISID of zeroes for a missing one; 80h is the type "random" (RFC 7143 11.12.5
    // "ISID").
    let isid = Isid([0x80, 0, high, low, 0, 1]);
    let name = "iqn.2026-11.io.causeway:bench-client";
    let mut config = InitiatorConfig::new(name, Some(&unit.target), isid);
    let digest = if digests {
        DigestChoice::Required
    } else {
        DigestChoice::Never
    };
    config.offer = Offer {
        header_digest: digest,
        data_digest: digest,
        ..Offer::default()
    };
    config.ping_after = None;
    let connection = connect(core, unit.portal, None, &config).await;
    let mut connection = connection.map_err(|error| error.to_string())?;
    // TEST UNIT READY until no unit attention is left (SAM-5 5.14).
    for _ in 0..16 {
        if one(&mut connection, unit, [0; 16], Buf::empty()).await? == 0 {
            return Ok(connection);
        }
    }
    Err("the unit does not become ready".to_owned())
}

/// Sends a command that reads nothing and waits for its status.
async fn one(
    connection: &mut Connection,
    unit: &Unit,
    cdb: [u8; 16],
    data: Buf,
) -> Result<u8, String> {
    let command = InitiatorCommand {
        lun: lun(unit),
        cdb,
        attribute: Attribute::Simple,
        immediate: false,
    };
    let sent = connection.submit(command, data, None);
    loop {
        let event = poll_fn(|cx| connection.poll_event(cx)).await;
        if let InitiatorEvent::Response { itt, completion } =
            event.map_err(|lost| lost.to_string())?
            && itt == sent
        {
            return Ok(completion.status);
        }
    }
}

async fn fill(core: CoreHandle, unit: Unit) -> Result<(), String> {
    const BYTES: usize = 256 << 10;
    let mut connection = log_in(&core, &unit, 9999, false).await?;
    let payload = Buf::copy_of(&vec![0x5A; BYTES]);
    let mut at = 0;
    while at < unit.bytes {
        let cdb = figures::cdb(true, false, at, BYTES, unit.block);
        match one(&mut connection, &unit, cdb, payload.clone()).await? {
            0 => at += BYTES as u64,
            status => return Err(format!("a write ended with status {status}")),
        }
    }
    Ok(())
}

impl Session {
    fn submit(&mut self, now: Now) {
        let case = &self.case;
        let bytes = case.bytes as u64;
        let places = self.unit.bytes / bytes;
        let place = if case.random {
            self.random.next() % places
        } else {
            self.next = (self.next + 1) % places;
            self.next
        };
        let write = match case.read_percent {
            100 => false,
            0 => true,
            percent => self.random.next() % 100 >= u64::from(percent),
        };
        let (data, into) = if write {
            (self.payload.clone(), None)
        } else {
            let memory = self.core.pool().alloc(case.bytes);
            (Buf::empty(), Some(memory.expect("enough for every depth")))
        };
        let command = InitiatorCommand {
            lun: lun(&self.unit),
            cdb: figures::cdb(write, case.fua, place * bytes, case.bytes, self.unit.block),
            attribute: Attribute::Simple,
            immediate: false,
        };
        let itt = self.connection.submit(command, data, into);
        self.begun.insert(itt, now);
    }

    /// Keeps its depth until it is asked to stop.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        loop {
            match self.connection.poll_event(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(InitiatorEvent::Response { itt, completion })) => {
                    if completion.status != 0 {
                        let status = completion.status;
                        return Poll::Ready(Err(format!("a command ended with status {status}")));
                    }
                    let now = self.connection.received_at();
                    if let Some(begun) = self.begun.remove(itt) {
                        let took = now.0.saturating_sub(begun.0);
                        self.run.times.borrow_mut().add(took);
                    }
                    // The memory goes back before the next command asks for some.
                    drop(completion);
                    if !self.run.stop.get() {
                        self.submit(now);
                    } else if self.begun.is_empty() {
                        return Poll::Ready(Ok(()));
                    }
                }
                Poll::Ready(Ok(InitiatorEvent::Rejected { reason, .. })) => {
                    return Poll::Ready(Err(format!("a PDU was rejected, reason {reason}")));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(lost)) => return Poll::Ready(Err(lost.to_string())),
            }
        }
    }
}

/// Half of the sessions on each of two cores. The second half logs in after the first, so that a
/// server that gives sessions to its cores in turn has sessions of both halves on each.
async fn halves(
    core: CoreHandle,
    unit: Unit,
    case: Case,
    times: (Duration, Duration),
) -> Result<Figures, String> {
    let (then, after) = oneshot::channel();
    let first = Turn {
        after: None,
        then: Some(then),
    };
    let second = Turn {
        after: Some(after),
        then: None,
    };
    let middle = case.sessions / 2;
    let (other, unit_there) = (middle..case.sessions, unit.clone());
    let there = env::call(&core, CoreId(1), move |core| {
        Box::pin(measure(
            Rc::clone(core),
            unit_there,
            case,
            other,
            times,
            second,
        ))
    });
    let mut there = std::pin::pin!(there);
    let mut here = std::pin::pin!(measure(
        Rc::clone(&core),
        unit,
        case,
        0..middle,
        times,
        first
    ));
    let (mut of_here, mut of_there) = (None, None);
    poll_fn(|cx| {
        if of_here.is_none() {
            of_here = ready(here.as_mut().poll(cx));
        }
        if of_there.is_none() {
            of_there = ready(there.as_mut().poll(cx));
        }
        if of_here.is_some() && of_there.is_some() {
            return Poll::Ready(());
        }
        Poll::Pending
    })
    .await;
    let gone = || "the other core is gone".to_owned();
    let (here, there) = (
        of_here.ok_or_else(gone)?,
        of_there.flatten().ok_or_else(gone)?,
    );
    Ok(together(&here?, &there?))
}

fn ready<T>(poll: Poll<T>) -> Option<T> {
    match poll {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// What both halves saw. Each saw all processor time.
fn together(one: &Figures, other: &Figures) -> Figures {
    let commands = one.commands + other.commands;
    let time = |of: fn(&Figures) -> f64| {
        (of(one) * one.commands + of(other) * other.commands) / 2.0 / commands
    };
    Figures {
        commands,
        seconds: f64::midpoint(one.seconds, other.seconds),
        p50: one.p50.max(other.p50),
        p99: one.p99.max(other.p99),
        server: time(|figures| figures.server),
        client: time(|figures| figures.client),
        others: f64::midpoint(one.others, other.others),
    }
}

async fn measure(
    core: CoreHandle,
    unit: Unit,
    case: Case,
    numbers: std::ops::Range<u8>,
    (warm_up, time): (Duration, Duration),
    turn: Turn,
) -> Result<Figures, String> {
    let run = Rc::new(Run::default());
    if let Some(after) = turn.after {
        // It may have failed: then we go on and fail as well.
        let _failed = after.await;
    }
    for number in numbers {
        let connection = log_in(&core, &unit, number.into(), case.digests).await?;
        let places = unit.bytes / case.bytes as u64;
        let mut session = Session {
            core: Rc::clone(&core),
            connection,
            unit: unit.clone(),
            case,
            random: Random::new(u64::from(number) + 7),
            next: places / u64::from(case.sessions) * u64::from(number),
            payload: Buf::copy_of(&vec![0xA5; case.bytes]),
            begun: Pending::default(),
            run: Rc::clone(&run),
        };
        run.running.set(run.running.get() + 1);
        core.spawn(Box::pin(async move {
            let now = session.core.now();
            (0..case.depth).for_each(|_| session.submit(now));
            if let Err(error) = poll_fn(|cx| session.turn(cx)).await {
                session.run.fail(error);
            }
            session.run.running.set(session.run.running.get() - 1);
        }));
    }
    if let Some(then) = turn.then {
        // As above.
        let _failed = then.send(());
    }
    run.measured(&core, &unit, (warm_up, time)).await
}
