//! LUNs under load, and what their blocks may hold.

use env::CoreHandle;
use env::sim::Rng;
use proof::sim::initiator::{Complaints, Host, HostConfig};
use proof::sim::{Client, Opened, Oracle, audit};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::sync::oneshot;
use units::{BlockCount, BlockSize, Buf};
use volume::{Shape, Support};
use volume_test::stamp::Value;

/// Hosts of each LUN, and commands that each has in flight.
const HOSTS: u32 = 2;
const DEPTH: u32 = 6;

/// A LUN under load, alone in its target.
pub(crate) struct Disk {
    /// Its name and its target's.
    pub(crate) name: &'static str,
    /// What `lun` in the objects' file holds besides the name.
    pub(crate) fields: &'static str,
    block_size: BlockSize,
    blocks: u64,
    oracle: Rc<Oracle>,
    known: BTreeMap<u64, Value>,
    /// Device identification and serial number, as hosts see them.
    identity: Option<[Vec<u8>; 2]>,
}

fn disk(name: &'static str, fields: &'static str, block_size: BlockSize, blocks: u64) -> Disk {
    Disk {
        name,
        fields,
        block_size,
        blocks,
        oracle: Rc::new(Oracle::without_history(block_size)),
        known: BTreeMap::new(),
        identity: None,
    }
}

/// The LUNs of a pool of members, whose physical blocks are theirs: with checksums and without.
pub(crate) fn of_members() -> Vec<Disk> {
    let (small, large) = (BlockSize::B512, BlockSize::B4096);
    vec![
        disk("d512", "size = 524288\nintegrity = true\n", small, 1024),
        disk("d512plain", "size = 524288\n", small, 1024),
        disk(
            "d4096",
            "size = 2097152\nblock_size = 4096\nintegrity = true\n",
            large,
            512,
        ),
    ]
}

/// The LUNs of the loop: each kind of logical and physical block.
pub(crate) fn all() -> Vec<Disk> {
    let (small, large) = (BlockSize::B512, BlockSize::B4096);
    vec![
        disk("d512", "size = 524288\n", small, 1024),
        disk(
            "d512e",
            "size = 524288\nphysical_block_size = 4096\nthin = false\n",
            small,
            1024,
        ),
        disk("d4096", "size = 2097152\nblock_size = 4096\n", large, 512),
    ]
}

/// The name of a target in the objects' file.
pub(crate) fn target_name(lun: &str) -> String {
    format!("iqn.2026-11.io.causeway:{lun}")
}

/// How to log in to the target of `lun` as the host `host`.
pub(crate) fn login(
    portal: SocketAddr,
    lun: &str,
    block_size: BlockSize,
    host: &str,
    salt: u64,
) -> HostConfig {
    HostConfig {
        portal,
        target: target_name(lun),
        name: format!("iqn.2026-11.io.causeway.proof:{host}"),
        block_size,
        unmaps: true,
        strict: true,
        reconnects: false,
        salt,
    }
}

/// Clients at work; each has ended when its receiver hears of it.
pub(crate) struct Load(Vec<oneshot::Receiver<()>>);

impl Load {
    /// Waits until every client knows how its commands ended.
    pub(crate) async fn ended(self) {
        for client in self.0 {
            // The sender is dropped when the client is.
            drop(client.await);
        }
    }
}

impl Disk {
    fn shape(&self) -> Shape {
        let mut shape = Shape::of_memory(self.block_size, BlockCount(self.blocks));
        shape.limits.compare_and_write_blocks_max = BlockCount(128);
        shape.caps.compare_and_write = Support::Emulated;
        shape.caps.extents = Support::Absent;
        if self.fields.contains("thin = false") {
            // Of a thick LUN nobody unmaps.
            shape.caps.discard = Support::Absent;
        }
        shape
    }

    fn login(&self, portal: SocketAddr, host: u32, salt: u64) -> HostConfig {
        let mut config = login(
            portal,
            self.name,
            self.block_size,
            &format!("{}-{host}", self.name),
            salt,
        );
        config.unmaps = self.shape().caps.discard != Support::Absent;
        config
    }

    /// Starts the load; it ends when `stop` is set or the daemon is dead.
    pub(crate) async fn load(
        &self,
        core: &CoreHandle,
        portal: SocketAddr,
        rng: &mut Rng,
        stop: &Rc<Cell<bool>>,
        complaints: &Complaints,
    ) -> Load {
        let mut load = Vec::new();
        for number in 0..HOSTS {
            let config = self.login(portal, number, rng.draw());
            let host = Rc::new(Host::start(core, config, Rc::clone(complaints)).await);
            for task in 0..DEPTH {
                let client = Client {
                    number: number * DEPTH + task,
                    core: Rc::clone(core),
                    opened: Opened {
                        lane: Rc::<Host>::clone(&host),
                        shape: self.shape(),
                        stable_zeroes: false,
                        acknowledged_is_stable: false,
                    },
                    oracle: Rc::clone(&self.oracle),
                    rng: rng.fork(),
                    commands: u32::MAX,
                    stop: Rc::clone(stop),
                    working: Rc::new(Cell::new(1)),
                    believes: self.known.clone(),
                    unavailable_is_dead: true,
                };
                let (ended, wait) = oneshot::channel::<()>();
                core.spawn(Box::pin(async move {
                    client.work().await;
                    drop(ended);
                }));
                load.push(wait);
            }
        }
        Load(load)
    }

    /// The daemon died, and with `forgot` everything that it had not synced; every client has
    /// ended.
    pub(crate) fn died(&self, forgot: bool) {
        self.oracle.life_ended(forgot);
        self.oracle.all_clients_ended();
    }

    /// Reads everything and judges it; answers how many blocks.
    pub(crate) async fn check(
        &mut self,
        core: &CoreHandle,
        portal: SocketAddr,
        complaints: &Complaints,
    ) -> Result<u64, String> {
        // Salt 2: large segments, no immediate data.
        let config = self.login(portal, u32::MAX, 6);
        let host = Rc::new(Host::start(core, config, Rc::clone(complaints)).await);
        let identity = [inquiry(&host, 0x83).await?, inquiry(&host, 0x80).await?];
        if self.identity.get_or_insert_with(|| identity.clone()) != &identity {
            return Err(format!("{}: its identity is another now", self.name));
        }
        let opened = Opened {
            lane: host,
            shape: self.shape(),
            stable_zeroes: false,
            acknowledged_is_stable: false,
        };
        let known = audit(Rc::clone(core), opened, Rc::clone(&self.oracle)).await;
        self.known = known.map_err(|wrong| format!("{}: {wrong}", self.name))?;
        let violations = self.oracle.violations();
        if violations.is_empty() {
            return Ok(self.blocks);
        }
        Err(format!("{}: {}", self.name, violations.join("\n")))
    }

    /// Changes that were answered with success.
    pub(crate) fn acknowledged(&self) -> u64 {
        let counts = self.oracle.counts();
        counts.writes + counts.swaps
    }

    /// Flushes that were answered with success.
    pub(crate) fn flushes(&self) -> u64 {
        self.oracle.counts().flushes
    }

    /// Commands that were answered with an error other than a miscompare.
    pub(crate) fn errors(&self) -> u64 {
        self.oracle.counts().errors
    }
}

/// A page of vital product data (SPC-4 7.8 "Vital product data parameters").
async fn inquiry(host: &Host, page: u8) -> Result<Vec<u8>, String> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[4]) = (0x12, 1, page, 0xFF);
    match host.command(cdb, Buf::empty(), 0xFF).await {
        Some(done) if done.status == 0 => Ok(done.data_in.to_vec()),
        other => Err(format!("INQUIRY {page:#x}: {other:?}")),
    }
}
