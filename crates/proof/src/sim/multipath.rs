//! A story of paths: one host with a port for each of several sessions under the multipath layer,
//! and many operations at once. Connections are reset or fall silent, single ports of the host are
//! cut, while the target's disk still has their writes; then they are sent again by another path,
//! and overwritten, and what was held up comes back.
//!
//! **Oracle.** The history: whatever was acknowledged stands until something newer was sent. A
//! layer that waits for no fence ([`Paths::without_fences`]) must not pass.

use super::client::Client;
use super::initiator::offer;
use super::lab::{Lab, lun, wait};
use super::report::Marks;
use super::run::{FILE_FAULTS, NET_FAULTS};
use super::scene::Opened;
use super::story::{Stage, Story};
use env::CoreHandle;
use env::sim::{Fault, FaultPlan, Rng};
use iscsi::Isid;
use iscsi::initiator_side::InitiatorConfig;
use iscsi_initiator::unit::{COMMAND_TIMEOUT, PathConfig, Unit, UnitPort, probe};
use multipath::Multipath;
use multipath::{Config, PathSpec};
use paths::health::{State, Wanted};
use paths::policy::{Policy, Settings, Use};
use paths::stale::{Mode, Sharing};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use units::ByteCount;
use volume::{Lane, Shape};
use volume_test::stamp::Value;

const UNIT: &str = "ghosts";
/// Few, because operations are to meet.
const BLOCKS: u64 = 16;
const PATHS_MAX: u8 = 4;
/// Bytes per second of a path, as far as the policies hear.
const SPEED: u64 = 125_000_000;

/// The story.
pub struct Paths {
    fenced: bool,
}

impl Default for Paths {
    fn default() -> Self {
        Self { fenced: true }
    }
}

impl Paths {
    /// With a layer that sends writes again without waiting for a fence: it must not pass.
    #[must_use]
    pub fn without_fences() -> Self {
        Self { fenced: false }
    }
}

/// One life's layer, as the seed wants it.
#[derive(Clone, Copy)]
struct Wish {
    paths: u8,
    config: Config,
    window: u32,
    salt: u64,
}

impl Wish {
    fn any(rng: &mut Rng, fenced: bool) -> Self {
        let policies = ["adaptive", "round-robin", "least-queue-depth", "failover"];
        let policy: Policy = rng.pick(&policies).parse().expect("a policy's name");
        let sharing = *rng.pick(&[Sharing::Shared, Sharing::Alone]);
        let config = Config {
            policy,
            sharing,
            mode: if fenced { Mode::Strict } else { Mode::Fast },
            piece: ByteCount(*rng.pick(&[0, 0, 1024])),
            ..Config::default()
        };
        Self {
            paths: u8::try_from(rng.between(2, PATHS_MAX.into())).expect("few"),
            config,
            window: *rng.pick(&[2, 32]),
            salt: rng.draw(),
        }
    }

    fn spec(&self, port: UnitPort, number: u8) -> PathSpec {
        PathSpec {
            port: Rc::new(port),
            settings: Settings {
                usage: Use::No,
                rank: number.into(),
                share: 1,
                throughput: 1,
                host_port: number.into(),
                target_port: number.into(),
                speed: SPEED,
                host_speed: SPEED,
                target_speed: SPEED,
                window: self.window,
            },
            wanted: Wanted::Active,
        }
    }
}

/// The address of a port of the host; the first one is the node's own.
fn port(lab: &Lab, number: u8) -> IpAddr {
    match number {
        0 => lab.hosts[0].ip(),
        more => IpAddr::from([10, 200, more, 1]),
    }
}

fn path(lab: &Lab, wish: &Wish, number: u8) -> PathConfig {
    let session = lab.config(0);
    // The paths differ by their ISIDs; the last one is for questions.
    let isid = Isid([0x80, 0, 0, 0, number, 1]);
    let mut login = InitiatorConfig::new(&session.name, Some(&session.target), isid);
    login.offer = offer(wish.salt.rotate_right(u32::from(number) * 4));
    login.ping_after = None;
    login.login_timeout = Duration::from_secs(5);
    PathConfig {
        portal: session.portal,
        from: (number < wish.paths).then(|| port(lab, number)),
        interface: None,
        login,
        lun: lun(0),
        command_timeout: COMMAND_TIMEOUT,
    }
}

/// The layer, with every path to come.
fn open(stage: &Stage, lab: &Lab, wish: Wish) -> Result<(Rc<Multipath>, Shape), String> {
    let core = lab.hosts[0].core(0);
    let question = path(lab, &wish, u8::MAX);
    let configs: Vec<PathConfig> = (0..wish.paths).map(|it| path(lab, &wish, it)).collect();
    wait(stage, &lab.hosts[0], "open", async move {
        let facts = probe(&core, &question).await?;
        let shape = facts.shape();
        let unit = Unit::new(facts);
        let specs = (0..)
            .zip(configs)
            .map(|(number, config)| wish.spec(UnitPort::new(&core, config, &unit), number));
        let layer = Multipath::new(&core, shape, wish.config, specs.collect());
        Ok((Rc::new(layer), shape))
    })
}

/// Marks what becomes of the paths.
async fn watch(
    core: CoreHandle,
    layer: Rc<Multipath>,
    over: Rc<Cell<bool>>,
    marks: Rc<RefCell<Marks>>,
) {
    let mut down = false;
    while !over.get() {
        let states: Vec<State> = layer.status().iter().map(|path| path.state).collect();
        let up = states.iter().filter(|state| **state == State::Up).count();
        let is_down = up < states.len();
        let class = match (down, is_down, up) {
            (false, true, 0) => Some("all_down"),
            (false, true, _) => Some("down"),
            (true, false, _) => Some("back"),
            (true, true, _) | (false, false, _) => None,
        };
        if let Some(class) = class {
            marks.borrow_mut().count(class);
        }
        down = is_down;
        core.sleep_until(core.now().after(Duration::from_millis(20)))
            .await;
    }
}

/// Resets, silence and a disk that holds things up, in most lives.
fn plan(stage: &mut Stage) -> FaultPlan {
    let mut plan = stage.plan.clone();
    let rng = &mut stage.rng;
    for (fault, often) in [
        (Fault::NetReset, 5_000),
        (Fault::NetHalfOpen, 3_000),
        (Fault::FileHung, 20_000),
        (Fault::FileSlow, 50_000),
    ] {
        if rng.below(3) > 0 {
            plan.set(fault, often);
        }
    }
    plan
}

impl Story for Paths {
    fn name(&self) -> &'static str {
        "paths"
    }

    fn classes(&self) -> &'static [&'static str] {
        &["down", "back", "quiet", "port_cut", "reset"]
    }

    fn faults(&self) -> Vec<Fault> {
        FILE_FAULTS.iter().chain(NET_FAULTS).copied().collect()
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let lab = Lab::new(stage, 1, &[(UNIT, BLOCKS)]);
        for number in 1..PATHS_MAX {
            lab.hosts[0].add_address(&format!("eth{number}"), port(&lab, number), 24);
        }
        lab.lives(stage, |stage| life(stage, &lab, self.fenced))
    }
}

fn life(stage: &mut Stage, lab: &Lab, fenced: bool) -> Result<(), String> {
    let wish = Wish::any(&mut stage.rng, fenced);
    let (layer, shape) = open(stage, lab, wish)?;
    let (stop, working) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
    let core = lab.hosts[0].core(0);
    for number in 0..u32::try_from(stage.rng.between(2, 5)).expect("few") {
        working.set(working.get() + 1);
        let lane: Rc<dyn Lane> = Rc::<Multipath>::clone(&layer);
        let client = Client {
            number,
            core: Rc::clone(&core),
            opened: Opened {
                lane,
                shape,
                stable_zeroes: false,
                acknowledged_is_stable: false,
            },
            commands: 25,
            oracle: Rc::clone(&lab.units[0].oracle),
            rng: stage.rng.fork(),
            stop: Rc::clone(&stop),
            working: Rc::clone(&working),
            believes: BTreeMap::<u64, Value>::new(),
            unavailable_is_dead: false,
        };
        core.spawn(Box::pin(client.work()));
    }
    let watching = watch(
        Rc::clone(&core),
        Rc::clone(&layer),
        Rc::clone(&stop),
        Rc::clone(&stage.marks),
    );
    core.spawn(Box::pin(watching));
    let plan = plan(stage);
    stage.world.set_faults(plan);
    run(stage, lab, wish.paths, (&stop, &working))?;
    stop.set(true);
    Ok(())
}

/// Lets them work: for a moment, or until everything that was asked is answered.
fn run(
    stage: &mut Stage,
    lab: &Lab,
    paths: u8,
    (stop, working): (&Rc<Cell<bool>>, &Rc<Cell<u32>>),
) -> Result<(), String> {
    let most = match stage.rng.below(4) {
        0 => 60_000_000,
        1 => 5_000_000,
        _ => 100_000,
    };
    pause(stage, 100, most);
    // Another host ends the commands of this one, and they must not come back over newer ones.
    for _ in 0..stage.rng.below(4) {
        lab.reset_units();
        stage.marks.borrow_mut().count("reset");
        pause(stage, 10, 2_000_000);
    }
    // No path for a while.
    if stage.rng.below(3) == 0 {
        stage.world.cut_link(&lab.san, &lab.hosts[0]);
        pause(stage, 1_000, 8_000_000);
        stage.world.mend_link(&lab.san, &lab.hosts[0]);
        pause(stage, 1_000, 5_000_000);
    }
    // One port after the other, each for a while; the cuts may overlap.
    let mut cut: Vec<IpAddr> = Vec::new();
    for _ in 0..stage.rng.below(3) {
        let number = stage.rng.below(paths.into());
        let address = port(lab, u8::try_from(number).expect("few"));
        stage.world.cut_port(address);
        cut.push(address);
        stage.marks.borrow_mut().count("port_cut");
        pause(stage, 1_000, 4_000_000);
        if stage.rng.below(2) == 0 {
            cut.drain(..).for_each(|it| stage.world.mend_port(it));
        }
    }
    cut.into_iter().for_each(|it| stage.world.mend_port(it));
    if stage.rng.below(2) == 0 {
        stop.set(true);
        stage.quiet(working)?;
    }
    Ok(())
}

/// So many microseconds.
fn pause(stage: &mut Stage, least: u64, most: u64) {
    let span = Duration::from_micros(stage.rng.between(least, most));
    stage.world.run_for(span);
}
