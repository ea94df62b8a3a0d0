//! A story of the whole node: objects that are made, grown, renamed, removed and restored while
//! hosts work, with links that are cut, targets that are reset, power cuts and kills at any step.
//!
//! **Oracle.** After a start the objects are those of the last change that was acknowledged, or,
//! where one was under way or failed, those before or after it. Identifiers, serial numbers and
//! data stay. Every host that stayed logged in gets a unit attention for a new capacity, and sees
//! it. Sessions come back by themselves.

use super::client::{audit_blocks, within};
use super::initiator::{Host, Job, Outcome, Session, SessionConfig, Wire};
use super::lab::{LIMIT, lun, wait};
use super::oracle::{End, Oracle, Ticket};
use super::order::{Plain, disturb};
use super::report::Marks;
use super::run::{FILE_FAULTS, NET_FAULTS};
use super::story::{Stage, Story};
use super::worker::{Shift, Worker};
use controller::{Controller, How};
use env::CoreHandle;
use env::sim::{Fault, FaultPlan, Node, Rng};
use iscsi::bhs::Attribute;
use manifest::code::Code;
use manifest::config::Config;
use manifest::objects::{GrantSpec, HostSpec, Lun, LunSpec, ObjectSet, Objects, TargetSpec};
use manifest::plan::{Edit, Section, Subject};
use manifest::size::Size;
use node::Node as Engine;
use scsi::{AdditionalSense, Command};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockSize, Buf, Lba};
use volume::{IoError, Lane};

const HOSTS: u32 = 2;
const TARGET: &str = "iqn.2026-11.io.causeway:node";
const SIZE: u64 = 16 << 10;
const BLOCK: BlockSize = BlockSize::B512;

/// The story.
#[derive(Default)]
pub struct WholeNode;

/// A change of the administrator.
#[derive(Clone, Debug)]
enum Step {
    /// The LUN that the hosts work on.
    Grow {
        name: String,
        bytes: u64,
    },
    Rename {
        from: String,
        to: String,
    },
    Create {
        name: String,
    },
    Remove {
        name: String,
    },
    Restore {
        name: String,
    },
    Purge {
        name: String,
    },
}

fn subject(name: &str) -> Subject {
    Subject {
        section: Section::Lun,
        name: name.to_owned(),
    }
}

fn of_size(name: &str, bytes: u64) -> ObjectSet {
    let size = Size::from_bytes(bytes).expect("whole blocks");
    ObjectSet {
        lun: vec![LunSpec::new(name, size)],
        ..ObjectSet::default()
    }
}

impl Step {
    fn edit(&self) -> Edit {
        match self {
            Self::Grow { name, bytes } => Edit::Set(of_size(name, *bytes)),
            Self::Rename { from, to } => Edit::Rename {
                subject: subject(from),
                to: to.clone(),
            },
            Self::Create { name } => Edit::Create(of_size(name, SIZE)),
            Self::Remove { name } => Edit::Remove(subject(name)),
            Self::Restore { name } => Edit::Restore(name.clone()),
            Self::Purge { name } => Edit::Purge(name.clone()),
        }
    }

    fn class(&self) -> &'static str {
        match self {
            Self::Grow { .. } => "grown",
            Self::Rename { .. } => "renamed",
            Self::Create { .. } => "created",
            Self::Remove { .. } => "removed",
            Self::Restore { .. } => "restored",
            Self::Purge { .. } => "purged",
        }
    }

    /// `found` is what it makes of `before`.
    fn explains(&self, before: &Objects, found: &Objects) -> bool {
        let mut wanted = before.clone();
        match self {
            Self::Grow { name, bytes } => {
                let size = Size::from_bytes(*bytes).expect("whole blocks");
                let grown = wanted.luns.get_mut(name).map(|lun| lun.size = size);
                grown.is_some() && wanted == *found
            }
            Self::Rename { from, to } => {
                let Some(lun) = wanted.luns.remove(from) else {
                    return false;
                };
                wanted.luns.insert(to.clone(), lun);
                let grants = std::mem::take(&mut wanted.grants).into_iter();
                wanted.grants = grants
                    .map(|(mut key, grant)| {
                        if key.lun == *from {
                            key.lun.clone_from(to);
                        }
                        (key, grant)
                    })
                    .collect();
                wanted == *found
            }
            Self::Create { name } => {
                // Its identifiers are new, and nobody else's.
                let Some(made) = found.luns.get(name) else {
                    return false;
                };
                let has = |lun: &Lun| lun.naa == made.naa || lun.serial == made.serial;
                let known = wanted.luns.values().chain(wanted.removed.values());
                let is_new = !known.into_iter().any(has);
                wanted.luns.insert(name.clone(), made.clone());
                is_new && made.size.bytes() == SIZE && wanted == *found
            }
            Self::Remove { name } => {
                let Some(lun) = wanted.luns.remove(name) else {
                    return false;
                };
                wanted.removed.insert(name.clone(), lun);
                let grants = std::mem::take(&mut wanted.grants).into_iter();
                let (go, stay): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    grants.partition(|(key, _)| key.lun == *name);
                wanted.grants = stay;
                wanted.removed_grants.extend(go);
                wanted == *found
            }
            Self::Restore { name } => {
                let Some(lun) = wanted.removed.remove(name) else {
                    return false;
                };
                wanted.luns.insert(name.clone(), lun);
                // Their numbers are nobody else's here.
                let waiting = std::mem::take(&mut wanted.removed_grants).into_iter();
                let (back, wait): (BTreeMap<_, _>, BTreeMap<_, _>) =
                    waiting.partition(|(key, _)| key.lun == *name);
                wanted.grants.extend(back);
                wanted.removed_grants = wait;
                wanted == *found
            }
            Self::Purge { name } => {
                wanted.removed_grants.retain(|key, _| key.lun != *name);
                wanted.removed.remove(name).is_some() && wanted == *found
            }
        }
    }
}

/// What is known of the objects.
struct Truth {
    objects: Objects,
    generation: u64,
    /// A change that is under way, or that failed and may yet be found after a start.
    perhaps: Vec<Step>,
    /// The identifiers of the LUN that the hosts work on.
    naa: String,
    serial: String,
}

impl Truth {
    /// The name of the LUN that the hosts work on.
    fn data(&self) -> Option<String> {
        let mut luns = self.objects.luns.iter();
        luns.find(|(_, lun)| lun.naa == self.naa)
            .map(|(name, _)| name.clone())
    }
}

struct Fleet {
    san: Node,
    hosts: Vec<Node>,
    oracle: Rc<Oracle>,
    truth: Rc<RefCell<Option<Truth>>>,
    /// Syncs that were not the hosts' and failed in this life.
    failed_syncs: Rc<RefCell<Vec<Ticket>>>,
    /// Blocks of the LUN that the hosts work on, as they know it.
    blocks: Rc<Cell<u64>>,
    strict: bool,
    salt: u64,
}

fn config(san: &Node) -> Config {
    let text = format!(
        "[node]\nname = \"n\"\nstate_dir = \"state\"\n[[portal_group]]\nname = \"default\"\ntag = 1\n\
         listen = [ {{ ip = \"{}\" }} ]\n[[pool]]\nname = \"default\"\npath = \"pool\"\n\
         [api]\nlisten = [\"unix:api.sock\"]\n",
        san.ip()
    );
    manifest::config::parse(Path::new("/c/node.toml"), &text).expect("a right node.toml")
}

/// One LUN that every host works on.
fn first_objects() -> ObjectSet {
    let hosts = (0..HOSTS).map(|host| HostSpec {
        name: format!("h{host}"),
        iqn: vec![name_of(host)],
        chap: None,
        bytes_in_flight_max: None,
    });
    let grants = (0..HOSTS).map(|host| GrantSpec {
        host: format!("h{host}"),
        lun: "data".to_owned(),
        target: None,
        lun_id: Some(0),
        read_only: false,
    });
    ObjectSet {
        target: vec![TargetSpec {
            iqn: Some(TARGET.to_owned()),
            ..TargetSpec::new("t")
        }],
        host: hosts.collect(),
        grant: grants.collect(),
        ..of_size("data", SIZE)
    }
}

fn name_of(host: u32) -> String {
    format!("iqn.2026-11.io.causeway.sim:host{host}")
}

fn ask(command: &Command, data_in: usize) -> Wire {
    Wire {
        lun: lun(0),
        cdb: command.to_cdb().expect("its fields fit"),
        attribute: Attribute::Simple,
        data_out: Buf::empty(),
        data_in,
    }
}

/// Sends until it is not a unit attention; the data, where it ended with GOOD.
async fn insist(session: &Session, wire: Wire) -> Option<Vec<u8>> {
    loop {
        let outcome = session.send(Job::Command(wire.clone())).await;
        if !outcome.is_worth_again() {
            return match &outcome {
                Outcome::Ended(completion) if outcome.is_good() => {
                    Some(completion.data_in.to_vec())
                }
                Outcome::Ended(_) | Outcome::Aborted | Outcome::Lost | Outcome::Function(_) => None,
            };
        }
    }
}

/// READ CAPACITY (16): the number of blocks.
async fn capacity(session: &Session) -> Option<u64> {
    let command = Command::ReadCapacity16 {
        allocation_length: 32,
    };
    let data = insist(session, ask(&command, 32)).await?;
    let last = u64::from_be_bytes(data.get(..8)?.try_into().ok()?);
    last.checked_add(1)
}

/// The page of vital product data.
async fn page(session: &Session, page: u8) -> Option<Vec<u8>> {
    let command = Command::Inquiry {
        page: Some(page),
        allocation_length: 255,
    };
    insist(session, ask(&command, 255)).await
}

impl Fleet {
    /// Starts the node and checks everything.
    fn start(&self, stage: &Stage) -> Result<Rc<Controller>, String> {
        stage.world.set_faults(FaultPlan::none());
        self.san.restart();
        self.hosts.iter().for_each(Node::restart);
        let (core, config) = (self.san.core(0), config(&self.san));
        let starting = async move {
            let engine = Engine::new(Rc::clone(&core), config.clone(), Box::new(Vec::new));
            let started = Controller::start(core, config, Rc::new(engine)).await;
            started.map_err(|problem| problem.to_string())
        };
        let controller = wait(stage, &self.san, "start", starting)?;
        if let Some(problem) = controller.damage() {
            return Err(format!("the state is damaged: {problem}"));
        }
        if self.truth.borrow().is_none() {
            self.first(stage, &controller)?;
        }
        self.compare(stage, &controller)?;
        self.read_all(stage)?;
        Ok(controller)
    }

    fn first(&self, stage: &Stage, controller: &Rc<Controller>) -> Result<(), String> {
        let (running, truth) = (Rc::clone(controller), Rc::clone(&self.truth));
        wait(stage, &self.san, "first objects", async move {
            let edit = Edit::Create(first_objects());
            let made = running.edit(&edit, How::default()).await;
            made.map_err(|problem| problem.to_string())?;
            let objects = Objects::clone(&running.objects());
            let lun = objects.luns["data"].clone();
            *truth.borrow_mut() = Some(Truth {
                objects,
                generation: running.generation(),
                perhaps: Vec::new(),
                naa: lun.naa,
                serial: lun.serial,
            });
            Ok(())
        })
    }

    /// The objects are those that they must be, and every LUN is there.
    fn compare(&self, stage: &Stage, controller: &Rc<Controller>) -> Result<(), String> {
        let found = Objects::clone(&controller.objects());
        let generation = controller.generation();
        let mut truth = self.truth.borrow_mut();
        let truth = truth.as_mut().ok_or("no objects yet")?;
        let same = found == truth.objects;
        let explained = (truth.perhaps.iter()).find(|step| step.explains(&truth.objects, &found));
        match explained {
            _ if same => {}
            Some(_) => stage.marks.borrow_mut().count("found_unacknowledged"),
            None => {
                return Err(format!(
                    "after the start there is {found:?}; acknowledged was {:?}, perhaps {:?}",
                    truth.objects, truth.perhaps
                ));
            }
        }
        if !truth.perhaps.is_empty() && same {
            stage.marks.borrow_mut().count("found_acknowledged");
        }
        if generation < truth.generation {
            let known = truth.generation;
            return Err(format!("generation {generation} after {known}"));
        }
        (truth.objects, truth.generation) = (found, generation);
        truth.perhaps.clear();
        let running = Rc::clone(controller);
        let luns = wait(stage, &self.san, "luns", async move {
            Ok(running.luns(false).await)
        })?;
        match luns.iter().find(|lun| lun.state != "online") {
            None => Ok(()),
            Some(lun) => Err(format!(
                "LUN {} is {}: {:?}",
                lun.name, lun.state, lun.reason
            )),
        }
    }

    fn config(&self, host: u32) -> SessionConfig {
        SessionConfig {
            portal: SocketAddr::new(self.san.ip(), 3260),
            target: TARGET.to_owned(),
            name: name_of(host),
            strict: self.strict,
            reconnects: true,
            salt: self.salt.rotate_right(host % 64),
        }
    }

    fn log_in(&self, stage: &Stage, host: u32) -> Result<Session, String> {
        let node = &self.hosts[host as usize];
        let (core, config) = (node.core(0), self.config(host));
        let complaints = Rc::clone(&stage.complaints);
        wait(stage, node, "login", async move {
            Ok(Session::start(&core, config, complaints).await)
        })
    }

    fn path(&self, stage: &Stage, session: &Session, host: u32) -> Host {
        let complaints = Rc::clone(&stage.complaints);
        let config = self.config(host);
        Host::new(session.clone(), &config, lun(0), (BLOCK, true), complaints)
    }

    /// Reads identity, size and data through the wire.
    fn read_all(&self, stage: &Stage) -> Result<(), String> {
        let session = self.log_in(stage, 0)?;
        let lane: Rc<dyn Lane> = Rc::new(self.path(stage, &session, 0));
        let (naa, serial, bytes) = {
            let truth = self.truth.borrow();
            let truth = truth.as_ref().ok_or("no objects yet")?;
            let name = truth.data().ok_or("the LUN is gone")?;
            let bytes = truth.objects.luns[&name].size.bytes();
            (truth.naa.clone(), truth.serial.clone(), bytes)
        };
        let (core, oracle) = (self.hosts[0].core(0), Rc::clone(&self.oracle));
        let known = Rc::clone(&self.blocks);
        oracle.close_history();
        let judge = Rc::clone(&oracle);
        let values = wait(stage, &self.hosts[0], "audit", async move {
            let blocks = capacity(&session).await.ok_or("no capacity")?;
            if blocks * u64::from(BLOCK.bytes()) != bytes {
                return Err(format!("{blocks} blocks, the LUN has {bytes} bytes"));
            }
            known.set(blocks);
            let number = u128::from_str_radix(&naa, 16).map_err(|error| error.to_string())?;
            let designation = page(&session, 0x83).await.ok_or("no page 83h")?;
            let here = designation.windows(16).any(|it| it == number.to_be_bytes());
            let of_serial = page(&session, 0x80).await.ok_or("no page 80h")?;
            if !here || of_serial.get(4..) != Some(serial.as_bytes()) {
                return Err(format!(
                    "not {naa} {serial}: {designation:02x?} {of_serial:02x?}"
                ));
            }
            audit_blocks(core, lane, blocks, judge).await
        })?;
        oracle.open_history(values);
        Ok(())
    }
}

/// The administrator of a life.
struct Admin {
    core: CoreHandle,
    controller: Rc<Controller>,
    truth: Rc<RefCell<Option<Truth>>>,
    sessions: Vec<Session>,
    oracle: Rc<Oracle>,
    failed_syncs: Rc<RefCell<Vec<Ticket>>>,
    blocks: Rc<Cell<u64>>,
    marks: Rc<RefCell<Marks>>,
    complaints: super::initiator::Complaints,
    rng: Rng,
    shift: Shift,
}

impl Admin {
    async fn work(mut self) {
        while !self.shift.over.get() {
            let pause = Duration::from_micros(self.rng.below(8000));
            self.core.sleep_until(self.core.now().after(pause)).await;
            let Some(step) = self.choose() else { return };
            self.change(step).await;
        }
    }

    fn choose(&mut self) -> Option<Step> {
        let truth = self.truth.borrow();
        let truth = truth.as_ref()?;
        let data = truth.data()?;
        let objects = &truth.objects;
        let fresh = |rng: &mut Rng| format!("l{}", rng.below(1_000_000));
        let others: Vec<&String> = objects.luns.keys().filter(|name| **name != data).collect();
        let removed: Vec<&String> = objects.removed.keys().collect();
        let rng = &mut self.rng;
        Some(match rng.below(12) {
            0..3 => {
                let bytes = objects.luns[&data].size.bytes() + 512 * rng.between(1, 16);
                Step::Grow { name: data, bytes }
            }
            3..5 => Step::Rename {
                from: data,
                to: fresh(rng),
            },
            5..7 if !others.is_empty() => Step::Remove {
                name: (*rng.pick(&others)).clone(),
            },
            7..9 if !removed.is_empty() => Step::Restore {
                name: (*rng.pick(&removed)).clone(),
            },
            9 if !removed.is_empty() => Step::Purge {
                name: (*rng.pick(&removed)).clone(),
            },
            _ if others.len() + removed.len() < 3 => Step::Create { name: fresh(rng) },
            _ => Step::Rename {
                from: data,
                to: fresh(rng),
            },
        })
    }

    async fn change(&self, step: Step) {
        let reported = AdditionalSense::CAPACITY_DATA_HAS_CHANGED;
        let seen = |session: &Session| {
            let seen = session.seen();
            let reported = seen.attentions(lun(0), reported) + seen.resets();
            (seen.logins(), reported, seen.has_used(lun(0)))
        };
        let before: Vec<(u64, u64, bool)> = self.sessions.iter().map(seen).collect();
        if let Some(truth) = self.truth.borrow_mut().as_mut() {
            truth.perhaps.push(step.clone());
        }
        let how = How {
            force: true,
            dry_run: false,
        };
        self.oracle.note(|| format!("ask {step:?}"));
        // To grow a file is to sync it.
        let grows = matches!(step, Step::Grow { .. });
        let sync = grows.then(|| self.oracle.flush());
        let answer = self.controller.edit(&step.edit(), how).await;
        match sync {
            Some(sync) if answer.is_ok() => self.oracle.did_not_fail(&sync),
            Some(sync) => {
                // Writes that its failure concerns may be answered yet: it ends when all answers
                // are there.
                self.oracle.end(&sync, &End::Timeout);
                self.failed_syncs.borrow_mut().push(sync);
            }
            None => {}
        }
        self.oracle
            .note(|| format!("answered {:?}", answer.as_ref().map(|_| ())));
        let found = Objects::clone(&self.controller.objects());
        let whole = answer.is_ok();
        let stored = match answer {
            Ok(_) => true,
            Err(problem) => problem.code == Code::PartlyDone,
        };
        if let Some(truth) = self.truth.borrow_mut().as_mut() {
            if stored {
                let explained = step.explains(&truth.objects, &found);
                if !explained {
                    let before = &truth.objects;
                    let what = format!("{step:?} made of {before:?}: {found:?}");
                    self.complaints.borrow_mut().push(what);
                }
                self.marks.borrow_mut().count(step.class());
                truth.objects = found;
                truth.generation = self.controller.generation();
                truth.perhaps.clear();
            } else {
                self.marks.borrow_mut().count("refused");
                if found != truth.objects {
                    let what = format!("{step:?} was refused and made {found:?}");
                    self.complaints.borrow_mut().push(what);
                }
            }
        }
        let Step::Grow { bytes, .. } = step else {
            return;
        };
        if !whole {
            return;
        }
        for (session, before) in self.sessions.iter().zip(before) {
            self.sees_the_new_size(session, before, bytes).await;
        }
    }

    async fn sees_the_new_size(&self, session: &Session, before: (u64, u64, bool), bytes: u64) {
        let reported = AdditionalSense::CAPACITY_DATA_HAS_CHANGED;
        let span = Duration::from_secs(60);
        let Some(Some(blocks)) = within(&self.core, span, capacity(session)).await else {
            return;
        };
        if blocks * u64::from(BLOCK.bytes()) != bytes {
            let what = format!("{blocks} blocks are shown, {bytes} bytes were made");
            self.complaints.borrow_mut().push(what);
        }
        self.blocks.set(self.blocks.get().max(blocks));
        let seen = session.seen();
        // Who has never used it knows no size.
        if seen.logins() != before.0 || !before.2 {
            return;
        }
        self.marks.borrow_mut().count("size_reported");
        if seen.attentions(lun(0), reported) + seen.resets() <= before.1 {
            let what = "a host was not notified that the capacity has changed".to_owned();
            self.complaints.borrow_mut().push(what);
        }
    }
}

impl Story for WholeNode {
    fn name(&self) -> &'static str {
        "node"
    }

    fn classes(&self) -> &'static [&'static str] {
        &[
            "grown",
            "renamed",
            "created",
            "removed",
            "restored",
            "purged",
            "refused",
            "found_acknowledged",
            "found_unacknowledged",
            "size_reported",
            "link_cut",
            "logged_in_again",
            "target_warm_reset",
            "target_cold_reset",
            "quiet",
        ]
    }

    fn faults(&self) -> Vec<Fault> {
        FILE_FAULTS.iter().chain(NET_FAULTS).copied().collect()
    }

    fn play(&self, stage: &mut Stage) -> Result<(), String> {
        let san = stage.world.node("san");
        let host = |number| stage.world.node(&format!("host{number}"));
        let hosts = (0..HOSTS).map(host).collect();
        // A link that is cut loses nothing for good, but answers wait for it.
        let fleet = Fleet {
            san,
            hosts,
            oracle: stage.oracle(BLOCK),
            truth: Rc::default(),
            failed_syncs: Rc::default(),
            blocks: Rc::new(Cell::new(0)),
            strict: false,
            salt: stage.rng.draw(),
        };
        for _ in 0..stage.rng.between(1, 3) {
            let controller = fleet.start(stage)?;
            life(stage, &fleet, controller)?;
            end_of_life(stage, &fleet);
            if stage.is_lost() {
                return Ok(());
            }
        }
        fleet.start(stage)?;
        fleet.oracle.close_history();
        Ok(())
    }
}

fn end_of_life(stage: &mut Stage, fleet: &Fleet) {
    let power_cut = stage.rng.below(2) == 0;
    let failed = stage.world.hits().of(Fault::FileSyncError);
    fleet.oracle.syncs_failed(failed);
    if power_cut {
        fleet.san.crash();
    } else {
        fleet.san.kill();
    }
    for sync in fleet.failed_syncs.borrow_mut().drain(..) {
        let failed = End::Error(IoError::MediumError { lba: Lba(0) });
        fleet.oracle.end(&sync, &failed);
    }
    fleet.oracle.life_ended(power_cut);
    for host in &fleet.hosts {
        stage.world.mend_link(host, &fleet.san);
        host.kill();
    }
    // What the dead left on its way is over before the next life.
    stage.world.run_for(Duration::from_millis(1));
}

fn life(stage: &mut Stage, fleet: &Fleet, controller: Rc<Controller>) -> Result<(), String> {
    let shift = Shift::default();
    let ledger = Plain::new(&fleet.oracle, &stage.marks);
    let mut sessions = Vec::new();
    for host in 0..HOSTS {
        let session = fleet.log_in(stage, host)?;
        let core = fleet.hosts[host as usize].core(0);
        for _ in 0..2 {
            Worker {
                number: host,
                core: Rc::clone(&core),
                host: fleet.path(stage, &session, host),
                oracle: Rc::clone(&fleet.oracle),
                ledger: Rc::<Plain>::clone(&ledger),
                rng: stage.rng.fork(),
                blocks: Rc::clone(&fleet.blocks),
                len_max: 4,
                queues: false,
                flushes: true,
                commands: 60,
                shift: shift.clone(),
            }
            .start();
        }
        sessions.push(session);
    }
    if stage.rng.below(4) == 0 {
        let core = fleet.hosts[1].core(0);
        let disturbing = disturb(
            Rc::clone(&core),
            sessions[1].clone(),
            stage.rng.fork(),
            shift.clone(),
            Rc::clone(&stage.marks),
            Rc::clone(&stage.complaints),
        );
        core.spawn(Box::pin(disturbing));
    }
    let core = fleet.san.core(0);
    let admin = Admin {
        core: Rc::clone(&core),
        controller: Rc::clone(&controller),
        truth: Rc::clone(&fleet.truth),
        sessions: sessions.clone(),
        oracle: Rc::clone(&fleet.oracle),
        failed_syncs: Rc::clone(&fleet.failed_syncs),
        blocks: Rc::clone(&fleet.blocks),
        marks: Rc::clone(&stage.marks),
        complaints: Rc::clone(&stage.complaints),
        rng: stage.rng.fork(),
        shift: shift.clone(),
    };
    core.spawn(Box::pin(admin.work()));
    stage.world.set_faults(stage.plan.clone());
    let span = Duration::from_micros(stage.rng.between(100, 60_000));
    stage.world.run_for(span);
    if stage.rng.below(3) == 0 {
        cut_a_link(stage, fleet);
    }
    if stage.rng.below(3) == 0 {
        shift.over.set(true);
        come_back(stage, fleet, &sessions)?;
    }
    // The daemon outlives its administrator: until here it does what it does by itself, and opens
    // LUNs again that are offline.
    drop(controller);
    Ok(())
}

fn cut_a_link(stage: &mut Stage, fleet: &Fleet) {
    let host = &fleet.hosts[stage.rng.index(fleet.hosts.len())];
    stage.world.cut_link(host, &fleet.san);
    stage.marks.borrow_mut().count("link_cut");
    let span = Duration::from_millis(stage.rng.between(1, 30_000));
    stage.world.run_for(span);
    stage.world.mend_link(host, &fleet.san);
    let span = Duration::from_millis(stage.rng.between(1, 1000));
    stage.world.run_for(span);
}

/// With the faults over, every session stands again and is served, without anybody's help.
fn come_back(stage: &mut Stage, fleet: &Fleet, sessions: &[Session]) -> Result<(), String> {
    let quiet = FaultPlan::none();
    stage.world.set_faults(quiet);
    fleet.san.disk().release();
    for (host, session) in fleet.hosts.iter().zip(sessions) {
        let (own, core) = (session.clone(), host.core(0));
        let limit = Duration::from_secs(120);
        let ready = async move {
            let asked = async {
                while insist(&own, ask(&Command::TestUnitReady, 0))
                    .await
                    .is_none()
                {
                    core.sleep_until(core.now().after(Duration::from_millis(100)))
                        .await;
                }
            };
            within(&core, limit, asked).await
        };
        let served = stage.world.block_on(host, LIMIT, ready);
        let served = served.map_err(|error| format!("a session does not come back: {error}"))?;
        if served.is_none() {
            return Err(format!("a session of {} is not served again", host.name()));
        }
        if session.seen().logins() > 1 {
            stage.marks.borrow_mut().count("logged_in_again");
        }
    }
    stage.marks.borrow_mut().count("quiet");
    Ok(())
}
