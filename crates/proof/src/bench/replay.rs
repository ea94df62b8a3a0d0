//! A full journal: how long it takes to open, beside reading its file from end to end, and the
//! memory of its index.
//!
//! A process of its own fills it with random 4 KiB writes of two volumes that destage nothing,
//! each of which may have three quarters of it, and ends there; others open it.

use super::bar::{Bar, Limit};
use super::disk::read_through;
use super::plan::Plan;
use super::special::Found;
use super::{rounds, usage};
use crate::random::Random;
use backends::MemoryVolume;
use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, Fences, Io, Lane, Op, OpKind, Origin, Volume, over};
use volume_test::fault::{Action, FaultRule, Faults};
use write_back::{Journal, JournalSpec, Mode, SHARD_BYTES, VolumeId, WriteBack};

/// MiB of the journal.
const MIB: u64 = 1024;

const POOL: [u8; 16] = *b"a bench's pool..";

/// Blocks of the volume, of 4096 bytes: so many that hardly any is written twice.
const BLOCKS: u64 = 16 << 20;

/// Writes on their way while it is filled.
const DEPTH: u64 = 64;

/// As many volumes are opened to see what one takes.
const VOLUMES: u64 = 40_000;

/// The journal takes nothing more when nothing has changed for so long.
const FULL_AFTER: Duration = Duration::from_millis(500);

fn runtime() -> Result<Runtime, String> {
    let config = RuntimeConfig {
        cores: Cores::List(vec![1]),
        ..RuntimeConfig::default()
    };
    Runtime::start(&config).map_err(|error| error.to_string())
}

fn volume(journal: &Arc<Journal>, id: u64, backing: Arc<dyn Volume>) -> Arc<WriteBack> {
    let journal = Arc::clone(journal);
    WriteBack::new(
        journal,
        VolumeId(id),
        backing,
        Fences::new(1),
        Mode::WriteBack,
    )
}

fn memory(blocks: u64) -> Arc<dyn Volume> {
    MemoryVolume::new(BlockSize::B4096, BlockCount(blocks), 0, Fences::new(1))
}

async fn write_on(lane: Rc<dyn Lane>, seed: u64) {
    let mut random = Random::new(seed);
    let data = Buf::copy_of(&[0xA5; 4096]);
    loop {
        let lba = Lba(random.next() % BLOCKS);
        let op = Op::Write {
            range: LbaRange::new(lba, BlockCount(1)).expect("inside of the volume"),
            data: data.clone(),
            durability: Durability::Stable,
        };
        if lane.submit(Io::new(op, Origin::default())).await.is_err() {
            return;
        }
    }
}

/// Bytes of resident memory that each of some more volumes takes; they stay in the journal.
#[expect(clippy::cast_precision_loss, reason = "a few MiB")]
async fn each_volume(core: &CoreHandle, journal: &Arc<Journal>) -> Result<f64, String> {
    let backing = memory(8);
    let mut lanes = Vec::new();
    let without = resident()?;
    for id in 2..2 + VOLUMES {
        let opened = volume(journal, id, Arc::clone(&backing)).open(core).await;
        lanes.push(opened.map_err(|error| error.to_string())?);
    }
    let with = resident()?;
    Ok(with.saturating_sub(without) as f64 / VOLUMES as f64)
}

async fn fill_it(core: CoreHandle, path: &Path, mib: u64) -> Result<f64, String> {
    let spec = JournalSpec {
        path: path.to_owned(),
        bytes: mib << 20,
        rings: 1,
        pool: POOL,
        shard_bytes: SHARD_BYTES,
    };
    let created = Journal::create(&core, &spec).await;
    created.map_err(|error| error.to_string())?;
    let journal = Journal::open(&core, path, POOL).await;
    let journal = journal.map_err(|error| error.to_string())?;
    let each_volume = each_volume(&core, &journal).await?;
    for id in [1, 2 + VOLUMES] {
        let faults = Faults::new();
        faults.add(FaultRule {
            kinds: vec![OpKind::Write],
            range: None,
            skip: 0,
            times: u64::MAX,
            action: Action::Hang,
        });
        let backing = over(faults, memory(BLOCKS));
        let lane = volume(&journal, id, backing).open(&core).await;
        let lane = lane.map_err(|error| error.to_string())?;
        for seed in 0..DEPTH / 2 {
            core.spawn(Box::pin(write_on(Rc::clone(&lane), id * DEPTH + seed)));
        }
    }
    let mut before = 0;
    loop {
        core.sleep_until(core.now().after(FULL_AFTER)).await;
        let status = journal.status(&core).await;
        let records: u64 = status.iter().map(|it| it.counts.records).sum();
        if records == before {
            return Ok(each_volume);
        }
        before = records;
    }
}

/// Fills a journal, leaves it as a power cut would, and prints the bytes of memory that a volume
/// takes behind it.
///
/// # Errors
/// What failed, for people.
pub fn fill(path: &Path, mib: u64) -> Result<(), String> {
    let path = path.to_owned();
    let runtime = runtime()?;
    let each_volume = runtime.run(CoreId(0), move |core| {
        Box::pin(async move { fill_it(core, &path, mib).await })
    })?;
    println!("{each_volume}");
    Ok(())
}

/// What the opening of a journal took.
#[derive(Clone, Copy, Debug)]
struct Opened {
    seconds: f64,
    pages: f64,
    index_bytes: f64,
    resident: f64,
}

fn resident() -> Result<u64, String> {
    usage::resident(std::process::id())
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a few MiB")]
async fn open_it(core: CoreHandle, path: &Path) -> Result<Opened, String> {
    let (before, begin) = (resident()?, core.now());
    let journal = Journal::open(&core, path, POOL).await;
    let journal = journal.map_err(|error| error.to_string())?;
    let seconds = core.now().since(begin).as_secs_f64();
    let after = resident()?;
    let status = journal.status(&core).await;
    let sum = |of: fn(&write_back::RingStatus) -> u64| status.iter().map(of).sum::<u64>();
    Ok(Opened {
        seconds,
        pages: sum(|it| it.pages) as f64,
        index_bytes: sum(|it| it.index_bytes) as f64,
        resident: after.saturating_sub(before) as f64,
    })
}

/// Opens a journal, and prints what that took.
///
/// # Errors
/// What failed, for people.
pub fn open(path: &Path) -> Result<(), String> {
    let path = path.to_owned();
    let runtime = runtime()?;
    let opened = runtime.run(CoreId(0), move |core| {
        Box::pin(async move { open_it(core, &path).await })
    })?;
    let Opened {
        seconds,
        pages,
        index_bytes,
        resident,
    } = opened;
    println!("{seconds} {pages} {index_bytes} {resident}");
    Ok(())
}

/// Has this binary do something in a process of its own.
fn child(plan: &Plan, words: &[&str]) -> Result<Vec<f64>, String> {
    let output = Command::new(&plan.place.bench).args(words).output();
    let output = output.map_err(|error| format!("bench: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = reported.split_whitespace().map(str::parse);
    numbers
        .collect::<Result<_, _>>()
        .map_err(|_| format!("a number was expected: {reported}"))
}

fn opened(plan: &Plan, path: &str) -> Result<Opened, String> {
    let numbers = child(plan, &["journal", "open", path])?;
    let [seconds, pages, index_bytes, resident] = numbers[..] else {
        return Err(format!("four numbers were expected: {numbers:?}"));
    };
    Ok(Opened {
        seconds,
        pages,
        index_bytes,
        resident,
    })
}

/// Replay of a full journal, and the memory of its index.
///
/// # Errors
/// What failed, for people.
pub fn replay(plan: &Plan) -> Result<Found, String> {
    fs::create_dir_all(&plan.out).map_err(|error| error.to_string())?;
    let file = plan.out.join("full.journal");
    let _none = fs::remove_file(&file);
    let path = file.to_string_lossy();
    let done = compared(plan, &file, &path);
    let _gone = fs::remove_file(&file);
    done
}

fn compared(plan: &Plan, file: &Path, path: &str) -> Result<Found, String> {
    let each_volume = child(plan, &["journal", "fill", path, &MIB.to_string()])?;
    let mut all = Vec::new();
    for _ in 0..plan.effort.rounds {
        all.push((opened(plan, path)?, read_through(file)?));
    }
    let of = |what: fn(&(Opened, f64)) -> f64| rounds::median(all.iter().map(what).collect());
    let (seconds, read) = (of(|it| it.0.seconds), of(|it| it.1));
    let indexed = of(|it| it.0.pages) * 4096.0;
    let of_index = |bytes: f64| {
        format!(
            "{:.0} KiB for {:.0} MiB",
            bytes / 1024.0,
            indexed / 1_048_576.0
        )
    };
    let gib = f64::from(u32::try_from(MIB).expect("few")) / 1024.0;
    let bars = vec![
        Bar {
            what: "replay of a full journal, seconds for each GiB".to_owned(),
            value: seconds / gib,
            limit: Limit::AtMost((2.0 * read / gib).max(5.0)),
            detail: format!("reading its file by 1 MiB takes {read:.2} s"),
        },
        Bar {
            what: "memory of the index : what it indexes in the journal".to_owned(),
            value: of(|it| it.0.index_bytes) / indexed,
            limit: Limit::AtMost(0.01),
            detail: of_index(of(|it| it.0.index_bytes)),
        },
        Bar {
            what: "resident memory that the opening took : the same".to_owned(),
            value: of(|it| it.0.resident) / indexed,
            limit: Limit::Stated,
            detail: of_index(of(|it| it.0.resident)),
        },
        Bar {
            what: "resident memory of each LUN behind a journal, bytes".to_owned(),
            value: each_volume.first().copied().unwrap_or(f64::NAN),
            limit: Limit::AtMost(4096.0),
            detail: format!("{VOLUMES} of them, on one core"),
        },
    ];
    Ok(Found {
        bars,
        ..Found::default()
    })
}
