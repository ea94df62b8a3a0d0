//! What the multipath layer costs: the same client over a bare session and over the layer with that
//! session as its one path.
//!
//! The client is what a program over the layer is: so many tasks, each with one operation in flight
//! and a reading of the clock after each. What both sides share (session, socket, the client
//! itself) is the base of the ratio.

use super::bar::{Bar, Limit};
use super::case::{Case, READ_4K, WRITE_4K};
use super::figures::{Figures, Unit};
use super::load::{self, LoadClient, Run};
use super::plan::Plan;
use super::rounds::{Effort, take_turns};
use super::servers::{self, Causeway};
use super::special::Found;
use crate::random::Random;
use env::CoreHandle;
use iscsi::initiator_side::InitiatorConfig;
use iscsi::{DigestChoice, Isid, Offer};
use iscsi_initiator::unit::{COMMAND_TIMEOUT, PathConfig, UnitFacts, UnitPort, probe};
use multipath::Multipath;
use multipath::{Config, Ended, PathSpec, Port, Session};
use paths::health::Wanted;
use paths::policy::Settings;
use paths::stale::Nexus;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, IoResult, Lane, Op, Origin};

/// Bytes per second of the loopback interface, roughly: with one path nothing hangs on it.
const SPEED: u64 = 1_250_000_000;

/// What the client drives.
#[derive(Clone)]
enum Stack {
    Session(Rc<dyn Session>),
    Layer(Rc<Multipath>),
}

impl Stack {
    async fn carry(&self, io: Io) -> IoResult {
        match self {
            Self::Session(session) => {
                let ended = match session.submit(io).now() {
                    Ok(ended) => ended,
                    Err(answer) => answer.await,
                };
                match ended {
                    Ended::Done(result) => result,
                    Ended::Again(_, error) => Err(error),
                    Ended::Lost { .. } => Err(IoError::Unavailable),
                }
            }
            Self::Layer(layer) => match layer.submit(io).now() {
                Ok(result) => result,
                Err(answer) => answer.await,
            },
        }
    }
}

/// The layer over one path beside the session alone, reads and writes of 4 KiB.
///
/// # Errors
/// What failed, for people.
pub fn one_path(plan: &Plan, client: &LoadClient) -> Result<Found, String> {
    let server = servers::causeway(&plan.place, &Causeway::usual(plan.bytes))?;
    client.fill(&server.unit)?;
    // Five percent is less than a median of few rounds can show, and eleven are few: the rounds of
    // a pair lie 10 % apart.
    let effort = Effort {
        rounds: plan.effort.rounds * 4 + 1,
        time: plan.effort.time / 2,
        ..plan.effort
    };
    let mut found = Found::default();
    for case in [READ_4K, WRITE_4K] {
        let names = ["session", "layer"].map(str::to_owned).to_vec();
        let mut run = |at: usize, warm_up| {
            let (unit, time) = (server.unit.clone(), effort.time);
            client
                .on_core(move |core| Box::pin(measure(core, unit, case, at == 1, (warm_up, time))))
        };
        let row = take_turns(case, names, effort, &mut run)?;
        let cost = |at| row.of(at, |f| f.client);
        found.bars.push(Bar {
            what: format!(
                "multipath over one path : bare session, {}, client's processor time",
                case.name
            ),
            value: row.ratio(1, 0, |f| f.client),
            limit: Limit::AtMost(1.05),
            detail: format!("session {:.3} us, layer {:.3} us", cost(0), cost(1)),
        });
        found.rows.push(row);
    }
    Ok(found)
}

fn path(unit: &Unit) -> PathConfig {
    let name = "iqn.2026-11.io.causeway:bench-client";
    let isid = Isid([0x80, 0, 0, 0, 0, 1]);
    let mut login = InitiatorConfig::new(name, Some(&unit.target), isid);
    login.offer = Offer {
        header_digest: DigestChoice::Never,
        data_digest: DigestChoice::Never,
        ..Offer::default()
    };
    login.ping_after = None;
    PathConfig {
        portal: unit.portal,
        from: None,
        interface: None,
        login,
        lun: load::lun(unit),
        command_timeout: COMMAND_TIMEOUT,
    }
}

async fn stack(
    core: &CoreHandle,
    config: PathConfig,
    facts: UnitFacts,
    layered: bool,
) -> Result<Stack, String> {
    let shape = facts.shape();
    let port = UnitPort::new(core, config, &iscsi_initiator::unit::Unit::new(facts));
    if !layered {
        let nexus = Nexus {
            path: 0,
            session: 1,
        };
        let session = port.connect(nexus).await.map_err(|it| it.to_string())?;
        return Ok(Stack::Session(session));
    }
    let path = PathSpec {
        port: Rc::new(port),
        settings: Settings::alone(SPEED),
        wanted: Wanted::Active,
    };
    let layer = Multipath::new(core, shape, Config::default(), vec![path]);
    Ok(Stack::Layer(Rc::new(layer)))
}

fn next(case: &Case, block: u64, places: u64, random: &mut Random, payload: &Buf) -> Io {
    let blocks = case.bytes as u64 / block;
    let start = Lba(random.next() % places * blocks);
    let range = LbaRange::new(start, BlockCount(blocks)).expect("inside the unit");
    let op = if case.reads_only() {
        Op::Read { range, into: None }
    } else {
        Op::Write {
            range,
            data: payload.clone(),
            durability: Durability::Cached,
        }
    };
    Io::new(op, Origin::default())
}

async fn one_at_a_time(
    core: CoreHandle,
    stack: Stack,
    unit: Unit,
    (case, seed): (Case, u64),
    run: Rc<Run>,
) {
    let mut random = Random::new(seed);
    let (block, places) = (unit.block as u64, unit.bytes / case.bytes as u64);
    let payload = Buf::copy_of(&vec![0xA5; case.bytes]);
    let mut begun = core.now();
    while !run.stop.get() {
        let answer = stack
            .carry(next(&case, block, places, &mut random, &payload))
            .await;
        let now = core.now();
        run.times.borrow_mut().add(now.0.saturating_sub(begun.0));
        begun = now;
        let good = match answer {
            Ok(Done::Data(data)) => data.len() == case.bytes,
            Ok(Done::Nothing | Done::Logged) => !case.reads_only(),
            Ok(Done::Extents(_)) | Err(_) => false,
        };
        if !good {
            run.fail(format!("an operation failed: {}", case.name));
            break;
        }
    }
    run.running.set(run.running.get() - 1);
}

async fn measure(
    core: CoreHandle,
    unit: Unit,
    case: Case,
    layered: bool,
    (warm_up, time): (Duration, Duration),
) -> Result<Figures, String> {
    let config = path(&unit);
    let facts = probe(&core, &config).await?;
    let stack = stack(&core, config, facts, layered).await?;
    let run = Rc::new(Run::default());
    for number in 0..case.depth {
        run.running.set(run.running.get() + 1);
        core.spawn(Box::pin(one_at_a_time(
            Rc::clone(&core),
            stack.clone(),
            unit.clone(),
            (case, number as u64 + 7),
            Rc::clone(&run),
        )));
    }
    let measured = run.measured(&core, &unit, (warm_up, time)).await;
    if let Stack::Session(session) = stack {
        session.close();
    }
    measured
}
