//! The client: any number of sessions on one core, each with a number of commands always in flight.
//!
//! A command's time runs from the receive after which it was submitted to the receive that brought its end: the
//! client looks at the clock once a receive. What happens before all sessions run, and in the warm-up, is not
//! counted.

use super::case::Case;
use super::histogram::Histogram;
use super::usage;
use crate::random::Random;
use env::real::{Cores, Driver, FilesMode, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use initiator::{Connection, Pending, connect};
use iscsi::bhs::Attribute;
use iscsi::initiator::{Command, Event, InitiatorConfig};
use iscsi::{DigestChoice, Isid, Lun, Offer};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use units::{Buf, Now};

/// Where the unit is.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Portal.
    pub portal: SocketAddr,
    /// Target's name.
    pub target: String,
    /// Logical unit number.
    pub lun: u8,
    /// Bytes of a block.
    pub block: usize,
    /// Bytes of the unit that are used.
    pub bytes: u64,
    /// Processes whose processor time is the server's.
    pub processes: Vec<u32>,
}

/// What a run gave.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    /// Commands that ended in the time.
    pub commands: f64,
    /// The time, in seconds.
    pub seconds: f64,
    /// Half of the commands took no longer, in microseconds.
    pub p50: f64,
    /// Of a hundred commands one took longer, in microseconds.
    pub p99: f64,
    /// The server's processor time a command, in microseconds.
    pub server: f64,
    /// The client's.
    pub client: f64,
    /// Share of the machine's processor time that neither of them had and that was not idle.
    pub others: f64,
}

impl Figures {
    /// Commands a second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.commands / self.seconds
    }
}

/// What the sessions of a run share.
#[derive(Default)]
struct Run {
    running: Cell<usize>,
    stop: Cell<bool>,
    times: RefCell<Histogram>,
    failed: RefCell<Option<String>>,
}

impl Run {
    fn fail(&self, what: String) {
        self.failed.borrow_mut().get_or_insert(what);
        self.stop.set(true);
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

/// The client's core.
pub struct Client(Runtime);

impl Client {
    /// Starts it, in a thread that is not pinned: `taskset` says where.
    ///
    /// # Errors
    /// Where the thread cannot be had.
    pub fn start() -> std::io::Result<Self> {
        Ok(Self(Runtime::start(&RuntimeConfig {
            cores: Cores::List(vec![0]),
            driver: Driver::Poll,
            pool_limit_bytes: 1 << 30,
            files: FilesMode::Ordinary,
            poll: Duration::ZERO,
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
        let (unit, case) = (unit.clone(), *case);
        self.0.run(CoreId(0), move |core| {
            Box::pin(measure(core, unit, case, warm_up, time))
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

fn lun(unit: &Unit) -> Lun {
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
    // tgt takes an ISID of zeroes for a missing one; 80h is the type "random" (RFC 7143 11.12.5 "ISID").
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
    let command = Command {
        lun: lun(unit),
        cdb,
        attribute: Attribute::Simple,
        immediate: false,
    };
    let sent = connection.submit(command, data, None);
    loop {
        let event = poll_fn(|cx| connection.poll_event(cx)).await;
        if let Event::Response { itt, completion } = event.map_err(|lost| lost.to_string())?
            && itt == sent
        {
            return Ok(completion.status);
        }
    }
}

/// READ (10) or WRITE (10) (SBC-4 5.19, 5.42).
fn cdb(write: bool, fua: bool, at: u64, bytes: usize, block: usize) -> [u8; 16] {
    let block = block as u64;
    let lba = u32::try_from(at / block).expect("a small unit");
    let blocks = u16::try_from(bytes as u64 / block).expect("a small command");
    let mut cdb = [0; 16];
    cdb[0] = if write { 0x2a } else { 0x28 };
    cdb[1] = if fua && write { 0x08 } else { 0 };
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

async fn fill(core: CoreHandle, unit: Unit) -> Result<(), String> {
    const BYTES: usize = 256 << 10;
    let mut connection = log_in(&core, &unit, 9999, false).await?;
    let payload = Buf::copy_of(&vec![0x5A; BYTES]);
    let mut at = 0;
    while at < unit.bytes {
        let cdb = cdb(true, false, at, BYTES, unit.block);
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
        let command = Command {
            lun: lun(&self.unit),
            cdb: cdb(write, case.fua, place * bytes, case.bytes, self.unit.block),
            attribute: Attribute::Simple,
            immediate: false,
        };
        let itt = self.connection.submit(command, data, into);
        self.begun.insert(itt, now);
    }

    /// Keeps its depth until it is told to stop.
    fn turn(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        loop {
            match self.connection.poll_event(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(Event::Response { itt, completion })) => {
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
                Poll::Ready(Ok(Event::Rejected { reason, .. })) => {
                    return Poll::Ready(Err(format!("a PDU was rejected, reason {reason}")));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(lost)) => return Poll::Ready(Err(lost.to_string())),
            }
        }
    }
}

async fn measure(
    core: CoreHandle,
    unit: Unit,
    case: Case,
    warm_up: Duration,
    time: Duration,
) -> Result<Figures, String> {
    let run = Rc::new(Run::default());
    for number in 0..case.sessions {
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
    core.sleep_until(core.now().after(warm_up)).await;
    run.times.borrow_mut().clear();
    let before = usage::sample(&unit.processes)?;
    let begin = core.now();
    core.sleep_until(begin.after(time)).await;
    let seconds = core.now().since(begin).as_secs_f64();
    let used = usage::sample(&unit.processes)?.since(&before);
    let figures = figures(&run.times.borrow(), seconds, &used);
    run.stop.set(true);
    for _ in 0..5000 {
        if run.running.get() == 0 {
            break;
        }
        core.sleep_until(core.now().after(Duration::from_millis(1)))
            .await;
    }
    match run.failed.take() {
        Some(error) => Err(error),
        None if run.running.get() > 0 => Err("commands hang".to_owned()),
        None => Ok(figures),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
fn figures(times: &Histogram, seconds: f64, used: &usage::Usage) -> Figures {
    let commands = (times.total() as f64).max(1.0);
    Figures {
        commands,
        seconds,
        p50: times.quantile(500) / 1000.0,
        p99: times.quantile(990) / 1000.0,
        server: used.server as f64 / 1000.0 / commands,
        client: used.client as f64 / 1000.0 / commands,
        others: used.others(),
    }
}
