//! What most stories stand on: a node with units, hosts on nodes of their own, lives that end.

use super::client::audit_blocks;
use super::disk::add_device;
use super::initiator::{Host, Session, SessionConfig};
use super::layout::Layout;
use super::oracle::Oracle;
use super::scene::Setup;
use super::stack::{self, PORT, Running};
use super::story::Stage;
use env::LocalFuture;
use env::sim::{Fault, FaultPlan, Node};
use iscsi::Lun;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use units::BlockSize;
use volume::{Support, Volume};

/// More than anything may take.
pub(super) const LIMIT: Duration = Duration::from_secs(600);

/// A unit of the lab, its LUN being its place.
pub(super) struct LabUnit {
    pub(super) name: &'static str,
    pub(super) setup: Setup,
    pub(super) oracle: Rc<Oracle>,
}

pub(super) struct Lab {
    pub(super) san: Node,
    pub(super) hosts: Vec<Node>,
    pub(super) units: Vec<LabUnit>,
    running: Rc<RefCell<Option<Running>>>,
}

/// The field of a LUN (SAM-5 4.7.7 "Single level logical unit number structure").
pub(super) fn lun(number: u8) -> Lun {
    Lun([0, number, 0, 0, 0, 0, 0, 0])
}

impl Lab {
    pub(super) fn new(stage: &mut Stage, hosts: u32, units: &[(&'static str, u64)]) -> Self {
        let san = stage.world.node("san");
        let host = |number| stage.world.node(&format!("host{number}"));
        let hosts = (0..hosts).map(host).collect();
        let strict = stage.is_strict();
        let mut of_lab = Vec::new();
        for (name, blocks) in units {
            let setup = Setup {
                block_size: BlockSize::B512,
                blocks: *blocks,
                salt: stage.rng.draw(),
                physical_block_exponent: 0,
                layout: Layout::One,
                strict,
            };
            add_device(&san, name, setup);
            let oracle = stage.oracle(setup.block_size);
            of_lab.push(LabUnit {
                name,
                setup,
                oracle,
            });
        }
        Self {
            san,
            hosts,
            units: of_lab,
            running: Rc::default(),
        }
    }

    pub(super) fn portal(&self) -> SocketAddr {
        SocketAddr::new(self.san.ip(), PORT)
    }

    /// Starts everything without faults, and reads every unit past the front, so that nothing that
    /// hosts have done to each other stands in the way.
    pub(super) fn start(&self, stage: &Stage) -> Result<(), String> {
        stage.world.set_faults(FaultPlan::none());
        self.san.restart();
        self.hosts.iter().for_each(Node::restart);
        let units: Vec<_> = (self.units.iter())
            .map(|unit| (unit.name, unit.setup))
            .collect();
        let (core, slot, portal) = (self.san.core(0), Rc::clone(&self.running), self.portal());
        wait(stage, &self.san, "start", async move {
            slot.borrow_mut().take();
            let running = stack::start(&core, &units, portal).await?;
            *slot.borrow_mut() = Some(running);
            Ok(())
        })?;
        for number in 0..self.units.len() {
            self.audit(stage, number)?;
        }
        Ok(())
    }

    /// Reads a unit past the front, and starts a new history with what it holds.
    pub(super) fn audit(&self, stage: &Stage, number: usize) -> Result<(), String> {
        let (core, oracle) = (self.san.core(0), Rc::clone(&self.units[number].oracle));
        let (volume, shape) = self.volume(number)?;
        let judge = Rc::clone(&oracle);
        let reading: LocalFuture<_> = Box::pin(async move {
            let lane = volume.open(&core).await;
            let lane = lane.map_err(|error| error.to_string())?;
            audit_blocks(core, lane, shape.block_count.0, judge).await
        });
        oracle.close_history();
        let values = wait(stage, &self.san, "audit", reading)?;
        oracle.open_history(values);
        Ok(())
    }

    /// Another host resets every unit.
    pub(super) fn reset_units(&self) {
        if let Some(running) = &*self.running.borrow() {
            running.reset_units(&self.san.core(0));
        }
    }

    fn volume(&self, number: usize) -> Result<(std::sync::Arc<dyn Volume>, volume::Shape), String> {
        let running = self.running.borrow();
        let running = running.as_ref().ok_or("nothing runs")?;
        let unit = &running.units[number];
        Ok((std::sync::Arc::clone(&unit.volume), unit.shape))
    }

    /// The identifier of a unit.
    pub(super) fn naa(&self, number: usize) -> Result<[u8; 16], String> {
        let running = self.running.borrow();
        let running = running.as_ref().ok_or("nothing runs")?;
        Ok(running.units[number].naa)
    }

    /// How a host logs in.
    pub(super) fn config(&self, host: u32) -> SessionConfig {
        stack::session(self.portal(), host, self.units[0].setup)
    }

    /// Logs a host in.
    pub(super) fn log_in(&self, stage: &Stage, host: u32) -> Result<Session, String> {
        let node = &self.hosts[host as usize];
        let (core, config) = (node.core(0), self.config(host));
        let complaints = Rc::clone(&stage.complaints);
        wait(stage, node, "login", async move {
            Ok(Session::start(&core, config, complaints).await)
        })
    }

    /// A host's path to a unit.
    pub(super) fn path(
        &self,
        stage: &Stage,
        session: &Session,
        host: u32,
        unit: u8,
    ) -> Result<Host, String> {
        let (_, shape) = self.volume(unit.into())?;
        let facts = (shape.block_size, shape.caps.discard != Support::Absent);
        let complaints = Rc::clone(&stage.complaints);
        let (session, config) = (session.clone(), self.config(host));
        Ok(Host::new(session, &config, lun(unit), facts, complaints))
    }

    /// One to three lives of unit 0, and a check of what is there in the end.
    pub(super) fn lives(
        &self,
        stage: &mut Stage,
        life: impl Fn(&mut Stage) -> Result<(), String>,
    ) -> Result<(), String> {
        for _ in 0..stage.rng.between(1, 3) {
            self.start(stage)?;
            life(stage)?;
            self.end_of_life(stage);
            if stage.is_lost() {
                return Ok(());
            }
        }
        self.start(stage)?;
        self.units[0].oracle.close_history();
        Ok(())
    }

    /// The power of the node is cut, or its process killed; the hosts are gone with it.
    pub(super) fn end_of_life(&self, stage: &mut Stage) -> bool {
        let power_cut = stage.rng.below(2) == 0;
        let failed = stage.world.hits().of(Fault::FileSyncError);
        for unit in &self.units {
            unit.oracle.syncs_failed(failed);
        }
        if power_cut {
            self.san.crash();
        } else {
            self.san.kill();
        }
        for unit in &self.units {
            unit.oracle.life_ended(power_cut);
        }
        let running = self.running.borrow_mut().take();
        if running.is_some_and(|running| running.has_moved_sessions()) {
            stage.marks.borrow_mut().count("moved");
        }
        self.hosts.iter().for_each(Node::kill);
        // What the dead left on its way is over before the next life.
        stage.world.run_for(Duration::from_millis(1));
        power_cut
    }
}

/// Runs something on a node to its end.
pub(super) fn wait<T: 'static>(
    stage: &Stage,
    node: &Node,
    what: &str,
    run: impl Future<Output = Result<T, String>> + 'static,
) -> Result<T, String> {
    let ended = stage.world.block_on(node, LIMIT, run);
    let ended = ended.map_err(|error| format!("{what}: {error}"))?;
    ended.map_err(|error| format!("{what}: {error}"))
}
