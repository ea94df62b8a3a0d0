//! The real binary, killed with SIGKILL under load, again and again.
//!
//! A kill leaves the page cache behind. So there are two loops: on ordinary files, where every
//! write that was acknowledged must be there; and on a store that forgets whatever was never
//! synced, where every write that was acknowledged with FUA, or before a SYNCHRONIZE CACHE that was
//! acknowledged, must be there, and every other block is old or new. In both no block is torn, and
//! objects, reservations and identities are those that were acknowledged.
//!
//! `CAUSEWAY_KILL_CYCLES` says how many cycles of each (25; there are two behind journals),
//! `CAUSEWAY_KILL_SEED` which draws.

#[path = "common/site.rs"]
mod site;
mod kill {
    pub(crate) mod disks;
    pub(crate) mod objects;
    pub(crate) mod reservations;
}

use env::real::{Cores, Runtime, RuntimeConfig};
use env::sim::Rng;
use env::{CoreHandle, CoreId};
use kill::disks::{self, Disk};
use kill::objects::Objects;
use kill::reservations::Reservations;
use proof::sim::initiator::{Complaints, Host};
use site::{Daemon, Site};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use units::BlockSize;

const RESERVED: &str = "reserved";

/// The loop's state beside the daemon.
struct Loop {
    core: CoreHandle,
    site: Rc<Site>,
    /// What was never synced may be gone after a kill.
    forgets: bool,
    rng: Rng,
    disks: Vec<Disk>,
    objects: Rc<RefCell<Option<Objects>>>,
    reservations: Rc<RefCell<Option<Reservations>>>,
    complaints: Complaints,
    blocks_checked: u64,
    starts_killed: u64,
}

fn objects_file(disks: &[Disk]) -> String {
    let mut text = "[[host]]\nname = \"all\"\niqn = [\"*\"]\n".to_owned();
    let reserved = (RESERVED, "size = \"1MiB\"\n");
    let luns = disks.iter().map(|disk| (disk.name, disk.fields));
    for (name, fields) in luns.chain([reserved]) {
        let iqn = disks::target_name(name);
        text += &format!(
            "[[lun]]\nname = \"{name}\"\n{fields}[[target]]\nname = \"{name}\"\niqn = \"{iqn}\"\n\
             [[grant]]\nhost = \"all\"\nlun = \"{name}\"\ntarget = \"{name}\"\nlun_id = 0\n"
        );
    }
    text
}

/// Something that runs beside the load and gives itself back at its end.
async fn finished<T>(
    back: oneshot::Receiver<(T, Result<(), String>)>,
    slot: &RefCell<Option<T>>,
) -> Result<(), String> {
    let (value, result) = back.await.map_err(|_| "a task panicked".to_owned())?;
    *slot.borrow_mut() = Some(value);
    result
}

impl Loop {
    async fn host(&self, daemon: &Daemon, name: &str) -> Host {
        let config = disks::login(daemon.portal, RESERVED, BlockSize::B512, name, 2);
        Host::start(&self.core, config, Rc::clone(&self.complaints)).await
    }

    /// Works for a while, then kills the daemon and waits until nothing is in flight.
    async fn life(&mut self, mut daemon: Daemon) -> Result<(), String> {
        let stop = Rc::new(Cell::new(false));
        let mut loads = Vec::new();
        for disk in &self.disks {
            let load = disk.load(
                &self.core,
                daemon.portal,
                &mut self.rng,
                &stop,
                &self.complaints,
            );
            loads.push(load.await);
        }
        let changing = self.change_objects();
        let host = self.host(&daemon, "holder").await;
        let reserving = self.change_reservations(host);
        let span = Duration::from_millis(self.rng.between(300, 600));
        self.core.sleep_until(self.core.now().after(span)).await;
        // Nothing is sent after the kill.
        stop.set(true);
        daemon.strike();
        daemon.ended().await;
        for load in loads {
            load.ended().await;
        }
        finished(changing, &self.objects).await?;
        finished(reserving, &self.reservations).await?;
        for disk in &self.disks {
            disk.died(self.forgets);
        }
        Ok(())
    }

    fn change_objects(&self) -> oneshot::Receiver<(Objects, Result<(), String>)> {
        let (done, back) = oneshot::channel();
        let (site, objects) = (Rc::clone(&self.site), self.objects.take());
        let mut objects = objects.expect("given back by the life before");
        self.core.spawn(Box::pin(async move {
            let result = objects.change(&site).await;
            // Whoever waits has panicked where it is gone.
            let _ = done.send((objects, result));
        }));
        back
    }

    fn change_reservations(
        &self,
        host: Host,
    ) -> oneshot::Receiver<(Reservations, Result<(), String>)> {
        let (done, back) = oneshot::channel();
        let reservations = self.reservations.take();
        let mut reservations = reservations.expect("given back by the life before");
        self.core.spawn(Box::pin(async move {
            let result = reservations.change(&host).await;
            // As above.
            let _ = done.send((reservations, result));
        }));
        back
    }

    /// Starts the daemon; some starts are killed on their way.
    async fn start(&mut self) -> Result<Daemon, String> {
        while self.rng.below(3) == 0 {
            let mut child = self.site.spawn();
            let span = Duration::from_micros(self.rng.between(0, 60_000));
            self.core.sleep_until(self.core.now().after(span)).await;
            child.start_kill().map_err(|error| error.to_string())?;
            child.wait().await.map_err(|error| error.to_string())?;
            for disk in &self.disks {
                disk.died(self.forgets);
            }
            self.starts_killed += 1;
        }
        self.site.start(&self.core).await
    }

    /// Reads everything that should be there.
    async fn check(&mut self, daemon: &Daemon) -> Result<(), String> {
        for disk in &mut self.disks {
            let checked = disk.check(&self.core, daemon.portal, &self.complaints);
            self.blocks_checked += checked.await?;
        }
        let holder = self.host(daemon, "holder").await;
        let stranger = self.host(daemon, "stranger").await;
        let mut reservations = self.reservations.take().expect("given back");
        let held = reservations.check(&holder, &stranger).await;
        self.reservations.replace(Some(reservations));
        held?;
        let mut objects = self.objects.take().expect("given back");
        let right = objects.check(&self.site).await;
        self.objects.replace(Some(objects));
        right?;
        match self.complaints.borrow().as_slice() {
            [] => Ok(()),
            complaints => Err(complaints.join("\n")),
        }
    }

    async fn cycles(&mut self, cycles: u64) -> Result<(), String> {
        let daemon = self.site.start(&self.core).await?;
        self.site.must("apply -f objects.toml").await?;
        self.check(&daemon).await?;
        self.life(daemon).await?;
        for cycle in 1..=cycles {
            let named = |what: String| format!("after kill {cycle}: {what}");
            let daemon = self.start().await.map_err(named)?;
            self.check(&daemon).await.map_err(named)?;
            if cycle < cycles {
                self.life(daemon).await.map_err(named)?;
            }
        }
        Ok(())
    }

    fn report(&self, cycles: u64) -> String {
        let writes: u64 = self.disks.iter().map(Disk::acknowledged).sum();
        let flushes: u64 = self.disks.iter().map(Disk::flushes).sum();
        let errors: u64 = self.disks.iter().map(Disk::errors).sum();
        let objects = self
            .objects
            .borrow()
            .as_ref()
            .map_or(0, |it| it.acknowledged);
        let reservations = (self.reservations.borrow().as_ref()).map_or(0, |it| it.acknowledged);
        format!(
            "{cycles} kills under load and {} during start-up: {writes} writes and {flushes} flushes \
             acknowledged ({errors} commands failed), {} blocks checked, {objects} changes of objects and \
             {reservations} of reservations acknowledged",
            self.starts_killed, self.blocks_checked
        )
    }
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is a number")),
    )
}

/// What the daemon runs on, and what the loop expects of it.
#[derive(Clone, Copy)]
struct Mode {
    name: &'static str,
    /// The store forgets what was never synced.
    store_forgets: bool,
    /// The loop allows that.
    may_forget: bool,
    pool: Pool,
}

/// The pool that the LUNs lie in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pool {
    Directory,
    /// With a journal, and its LUNs in write-back mode.
    Journal,
    /// The same in a stripe over several members, with checksums.
    Members,
}

impl Pool {
    /// Its keys in node.toml.
    fn keys(self) -> String {
        let place = match self {
            Self::Directory | Self::Journal => "path = \"pool\"\n",
            Self::Members => "members = [\"m0\", \"m1\", \"m2\"]\nlayout = \"stripe\"\n",
        };
        let journal = match self {
            Self::Directory => "",
            Self::Journal | Self::Members => "journal = \"journal\"\njournal_size = \"64MiB\"\n",
        };
        format!("{place}{journal}")
    }

    /// What its members need to be there.
    fn prepare(self, site: &Site) {
        if self == Self::Members {
            for member in ["m0", "m1", "m2"] {
                let file =
                    std::fs::File::create(site.path(member)).expect("the site can be written");
                file.set_len(MEMBER_BYTES).expect("a sparse file");
            }
        }
    }
}

/// Bytes of a member: room for every LUN of the loop.
const MEMBER_BYTES: u64 = 64 << 20;

/// What a run did, or what it found.
fn kill_loop(mode: Mode) -> Result<String, String> {
    let config = RuntimeConfig {
        cores: Cores::List(vec![0]),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::start(&config).expect("the runtime starts");
    runtime.run(CoreId(0), move |core| Box::pin(run(core, mode)))
}

async fn run(core: CoreHandle, mode: Mode) -> Result<String, String> {
    let cycles = setting("CAUSEWAY_KILL_CYCLES").unwrap_or(25);
    let mut draw = [0; 8];
    core.fill_random(&mut draw);
    let seed = setting("CAUSEWAY_KILL_SEED").unwrap_or(u64::from_le_bytes(draw));
    let testing = "[testing]\nfiles = \"forget-unsynced\"\n";
    let more = if mode.store_forgets { testing } else { "" };
    let site = match mode.pool {
        Pool::Directory => Site::new(mode.name, more),
        Pool::Journal | Pool::Members => Site::with_pool(mode.name, &mode.pool.keys(), more),
    };
    mode.pool.prepare(&site);
    let disks = match mode.pool {
        Pool::Directory | Pool::Journal => disks::all(),
        Pool::Members => disks::of_members(),
    };
    let base = objects_file(&disks);
    site.write("objects.toml", &base);
    let mut rng = Rng::new(seed);
    let reservations = Reservations::new(rng.fork());
    let mut this = Loop {
        core,
        site: Rc::new(site),
        forgets: mode.may_forget,
        rng,
        disks,
        objects: Rc::new(RefCell::new(Some(Objects::new(base)))),
        reservations: Rc::new(RefCell::new(Some(reservations))),
        complaints: Complaints::default(),
        blocks_checked: 0,
        starts_killed: 0,
    };
    let result = this.cycles(cycles).await;
    let report = this.report(cycles);
    match result {
        Ok(()) => Ok(format!("{}: {report}", mode.name)),
        Err(wrong) => {
            let kept = this.site.keep();
            let name = mode.name;
            Err(format!(
                "{name}, seed {seed}: {wrong}\n{report}\nkept: {kept}"
            ))
        }
    }
}

fn passes(mode: Mode) {
    match kill_loop(mode) {
        Ok(report) => println!("{report}"),
        Err(wrong) => panic!("{wrong}"),
    }
}

#[test]
fn everything_acknowledged_survives_a_kill() {
    passes(Mode {
        name: "kill-cached",
        store_forgets: false,
        may_forget: false,
        pool: Pool::Directory,
    });
}

#[test]
fn everything_synced_survives_a_kill_of_a_store_that_forgets_the_rest() {
    passes(Mode {
        name: "kill-forgets",
        store_forgets: true,
        may_forget: true,
        pool: Pool::Directory,
    });
}

#[test]
fn behind_a_journal_everything_acknowledged_survives_a_store_that_forgets() {
    passes(Mode {
        name: "kill-journal",
        store_forgets: true,
        may_forget: false,
        pool: Pool::Journal,
    });
}

#[test]
fn behind_a_journal_and_over_several_members_the_same_survives_with_checksums() {
    passes(Mode {
        name: "kill-members",
        store_forgets: true,
        may_forget: false,
        pool: Pool::Members,
    });
}

#[test]
fn a_store_that_loses_acknowledged_writes_is_caught() {
    let found = kill_loop(Mode {
        name: "kill-caught",
        store_forgets: true,
        may_forget: false,
        pool: Pool::Directory,
    });
    let wrong =
        found.expect_err("writes that were never synced are lost, and the loop must see it");
    assert!(wrong.contains("which is none of"), "{wrong}");
    let kept = wrong.rsplit("kept: ").next();
    // It was to fail: nobody needs to inspect it.
    let _ = std::fs::remove_dir_all(kept.expect("the last line says where it is"));
}
