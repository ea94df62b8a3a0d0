//! A pool and a state directory on a file system that is full: what is reported to hosts and
//! administrators, that nothing is lost, and that it goes on once there is space.
//!
//! Only root can mount a small file system; without it these tests say so and prove nothing.

#[path = "common/site.rs"]
mod site;
#[path = "common/small_file_system.rs"]
mod small_file_system;

use env::real::{Cores, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId};
use proof::sim::initiator::{Complaints, Host, HostConfig};
use scsi::{AdditionalSense, Sense, SenseKey};
use serde_json::Value as Json;
use site::{Daemon, Site};
use small_file_system::{SmallFileSystem, is_root};
use std::future::Future;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use units::{BlockCount, BlockSize, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, IoResult, Lane, Op, Origin, Provision};
use volume_test::stamp::{Stamp, Value};

const SIZE: BlockSize = BlockSize::B512;
/// Blocks of one write: 64 KiB.
const CHUNK: u64 = 128;
/// Bytes of the pool's file system; the LUN has eight times as many.
const POOL_BYTES: u64 = 8 << 20;

const OBJECTS: &str = r#"
[[host]]
name = "all"
iqn = ["*"]
[[lun]]
name = "big"
size = "64MiB"
[[target]]
name = "big"
iqn = "iqn.2026-11.io.causeway:big"
[[grant]]
host = "all"
lun = "big"
target = "big"
lun_id = 0
"#;

/// Runs `test` on a core of its own, where this user may mount.
fn as_root(
    test: impl FnOnce(CoreHandle) -> Pin<Box<dyn Future<Output = Result<(), String>>>> + Send + 'static,
) {
    if !is_root() {
        println!("skipped: only root can mount a file system that is soon full");
        return;
    }
    let config = RuntimeConfig {
        cores: Cores::List(vec![0]),
        ..RuntimeConfig::default()
    };
    let runtime = Runtime::start(&config).expect("the runtime starts");
    if let Err(wrong) = runtime.run(CoreId(0), test) {
        panic!("{wrong}");
    }
}

fn chunk(number: u64) -> LbaRange {
    LbaRange::new(Lba(number * CHUNK), BlockCount(CHUNK)).expect("inside the LUN")
}

fn values(number: u64, sequence: u64) -> Vec<Value> {
    let blocks = chunk(number).start().0..chunk(number).end().0;
    let stamp = |lba| Stamp {
        lba: Lba(lba),
        writer: 1,
        sequence,
    };
    blocks.map(|lba| Value::Stamp(stamp(lba))).collect()
}

async fn ask(host: &Host, op: Op) -> IoResult {
    host.submit(Io::new(op, Origin::default())).await
}

async fn write(host: &Host, number: u64, sequence: u64) -> IoResult {
    let write = Op::Write {
        range: chunk(number),
        data: Value::payload(&values(number, sequence), SIZE),
        durability: Durability::Stable,
    };
    ask(host, write).await
}

/// Chunks `0..written` hold what was written to them.
async fn check(host: &Host, written: u64, sequence: u64) -> Result<(), String> {
    for number in 0..written {
        let range = chunk(number);
        let read = ask(host, Op::Read { range, into: None }).await;
        let Ok(Done::Data(bytes)) = read else {
            return Err(format!("chunk {number}: {read:?}"));
        };
        let seen = Value::of_all(&bytes, SIZE);
        let seen =
            seen.map_err(|(place, broken)| format!("chunk {number} block {place}: {broken}"))?;
        if seen != values(number, sequence) {
            return Err(format!("chunk {number}: {:?}", seen[0]));
        }
    }
    Ok(())
}

async fn login(core: &CoreHandle, daemon: &Daemon) -> Host {
    let config = HostConfig {
        portal: daemon.portal,
        target: "iqn.2026-11.io.causeway:big".to_owned(),
        name: "iqn.2026-11.io.causeway.proof:host".to_owned(),
        block_size: SIZE,
        unmaps: true,
        strict: true,
        reconnects: false,
        salt: 6,
    };
    Host::start(core, config, Complaints::default()).await
}

fn metrics(site: &Site) -> Result<String, String> {
    let ask = || -> std::io::Result<String> {
        let mut socket = UnixStream::connect(site.path("api.sock"))?;
        socket
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        socket.read_to_string(&mut text)?;
        Ok(text)
    };
    ask().map_err(|error| error.to_string())
}

/// The value of a series.
fn series(metrics: &str, name: &str) -> Option<u64> {
    let line = metrics.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

fn must(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Writes until the pool is full; answers how many chunks were acknowledged.
async fn fill(host: &Host) -> Result<u64, String> {
    let mut written = 0;
    loop {
        match write(host, written, 1).await {
            Ok(_) => written += 1,
            Err(IoError::SpaceExhausted) => return Ok(written),
            Err(error) => return Err(format!("chunk {written}: {error:?}")),
        }
    }
}

/// DATA PROTECT, SPACE ALLOCATION FAILED WRITE PROTECT (SBC-4 4.7.3.6 "Thin provisioned logical
/// unit: write with no space").
async fn check_sense(host: &Host, number: u64) -> Result<(), String> {
    let mut cdb = [0; 16];
    cdb[0] = 0x8A;
    cdb[2..10].copy_from_slice(&chunk(number).start().0.to_be_bytes());
    cdb[10..14].copy_from_slice(&128_u32.to_be_bytes());
    let data = Value::payload(&values(number, 1), SIZE);
    let done = host.command(cdb, data, 0).await;
    let done = done.ok_or("the session was lost")?;
    let sense = Sense::parse(&done.sense.to_vec());
    let sense = sense.ok_or_else(|| format!("no sense: {done:?}"))?;
    let code = AdditionalSense {
        asc: 0x27,
        ascq: 0x07,
    };
    let right = done.status == 2 && sense.key == SenseKey::DataProtect && sense.code == code;
    must(right, &format!("{sense:?}"))
}

async fn check_reported(site: &Site) -> Result<(), String> {
    let status = site.json("status").await?;
    let problems = status["problems"].to_string();
    must(status["health"] == "degraded", &status.to_string())?;
    must(problems.contains("pool default is full"), &problems)?;
    let metrics = metrics(site)?;
    let refused = "causeway_lun_scsi_status_total{lun=\"big\",status=\"check\",sense=\"7/27/07\"}";
    let refused = series(&metrics, refused).unwrap_or(0);
    must(refused >= 2, &format!("{refused} refusals in\n{metrics}"))?;
    let size = series(&metrics, "causeway_pool_size_bytes{pool=\"default\"}");
    let used = series(&metrics, "causeway_pool_used_bytes{pool=\"default\"}");
    must(size == Some(POOL_BYTES), &format!("{size:?}"))?;
    must(
        used.is_some_and(|used| used > POOL_BYTES - (64 << 10)),
        &format!("{used:?}"),
    )
}

async fn full_pool(core: CoreHandle) -> Result<(), String> {
    let site = Site::new("full-pool", "");
    let done = full_pool_at(&core, &site).await;
    done.map_err(|wrong| format!("{wrong}\nkept: {}", site.keep()))
}

async fn full_pool_at(core: &CoreHandle, site: &Site) -> Result<(), String> {
    let _pool = SmallFileSystem::mount(&site.path("pool"), POOL_BYTES)?;
    site.write("objects.toml", OBJECTS);
    let daemon = site.start(core).await?;
    site.must("apply -f objects.toml").await?;
    let host = login(core, &daemon).await;
    let written = fill(&host).await?;
    must(
        (64..=128).contains(&written),
        &format!("{written} chunks fit"),
    )?;
    check_sense(&host, written).await?;
    check_reported(site).await?;
    check(&host, written, 1).await?;
    // What has its space can be written again.
    let again = write(&host, 0, 1).await;
    must(again.is_ok(), &format!("{again:?}"))?;
    let thick = site.run("lun create thick --size 32M --thin false").await;
    must(thick.code != 0, &thick.text)?;
    // A kill and a start on the full pool.
    let mut daemon = daemon;
    daemon.strike();
    daemon.ended().await;
    drop(host);
    let daemon = site.start(core).await?;
    let host = login(core, &daemon).await;
    check(&host, written, 1).await?;
    // Space that a host gives back.
    let discard = Op::Discard {
        range: chunk(written - 1),
        to: Provision::Deallocated,
        durability: Durability::Cached,
    };
    let discarded = ask(&host, discard).await;
    must(discarded.is_ok(), &format!("{discarded:?}"))?;
    let last = write(&host, written + 10, 1).await;
    must(last.is_ok(), &format!("after an unmap: {last:?}"))?;
    check(&host, written - 1, 1).await?;
    site.must("lun ls").await?;
    Ok(())
}

#[test]
fn a_full_pool_refuses_what_needs_space_and_loses_nothing() {
    as_root(|core| Box::pin(full_pool(core)));
}

/// Takes what is left, and gives it back when dropped.
fn take_all(directory: &Path) -> Result<Junk, String> {
    let path = directory.join("junk");
    let mut file = std::fs::File::create(&path).map_err(|error| error.to_string())?;
    while file.write_all(&[0xAA; 512]).is_ok() {}
    Ok(Junk(path))
}

/// Takes what became free since.
fn take_all_again(junk: &Junk) -> Result<(), String> {
    let file = std::fs::OpenOptions::new().append(true).open(&junk.0);
    let mut file = file.map_err(|error| error.to_string())?;
    while file.write_all(&[0xAA; 512]).is_ok() {}
    Ok(())
}

struct Junk(std::path::PathBuf);

impl Drop for Junk {
    fn drop(&mut self) {
        // The file system goes away anyway.
        let _ = std::fs::remove_file(&self.0);
    }
}

async fn objects(site: &Site) -> Result<(String, Json), String> {
    let mut luns = site.json("lun ls").await?;
    // What a host writes takes space, and is reported some seconds later.
    forget_space(&mut luns);
    Ok((site.must("export").await?, luns))
}

fn forget_space(value: &mut Json) {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|name, _| !name.starts_with("allocated"));
        fields.values_mut().for_each(forget_space);
    }
    if let Some(elements) = value.as_array_mut() {
        elements.iter_mut().for_each(forget_space);
    }
}

/// Every way to change objects that makes no room is refused, and says why.
async fn check_refused(site: &Site) -> Result<(), String> {
    let before = objects(site).await?;
    for change in [
        "apply -f more.toml",
        "lun create other --size 1M",
        "host create other --iqn iqn.2026-11.io.causeway.proof:other",
        "lun rename big small",
    ] {
        let said = site.run(change).await;
        let reported = said.code == 1
            && said.text.contains("No space left on device")
            && said.text.contains("state_dir");
        must(
            reported,
            &format!("{change}: exit code {}\n{}", said.code, said.text),
        )?;
        must(
            objects(site).await? == before,
            &format!("{change} changed something"),
        )?;
    }
    Ok(())
}

async fn full_state(core: CoreHandle) -> Result<(), String> {
    let site = Site::new("full-state", "");
    let done = full_state_at(&core, &site).await;
    done.map_err(|wrong| format!("{wrong}\nkept: {}", site.keep()))
}

async fn full_state_at(core: &CoreHandle, site: &Site) -> Result<(), String> {
    let state = site.path("data");
    let _state = SmallFileSystem::mount(&state, 1 << 20)?;
    site.write("objects.toml", OBJECTS);
    let more = OBJECTS.to_owned() + "[[lun]]\nname = \"more\"\nsize = \"1MiB\"\n";
    site.write("more.toml", &more);
    let mut daemon = site.start(core).await?;
    site.must("apply -f objects.toml").await?;
    let junk = take_all(&state)?;
    check_refused(site).await?;
    let before = objects(site).await?;
    // What hosts do needs no state.
    let host = login(core, &daemon).await;
    let written = write(&host, 0, 1).await;
    must(written.is_ok(), &format!("{written:?}"))?;
    daemon.strike();
    daemon.ended().await;
    drop(host);
    let daemon = site.start(core).await?;
    must(
        objects(site).await? == before,
        "a start on a full disk changed something",
    )?;
    let host = login(core, &daemon).await;
    check(&host, 1, 1).await?;
    drop(junk);
    site.must("apply -f more.toml").await?;
    site.must("lun show more").await?;
    Ok(())
}

#[test]
fn a_full_state_directory_refuses_changes_and_keeps_the_old_objects() {
    as_root(|core| Box::pin(full_state(core)));
}

async fn one_disk(core: CoreHandle) -> Result<(), String> {
    let keys = "path = \"data/pool\"\njournal = \"data/journal\"\njournal_size = \"64MiB\"\n";
    let site = Site::with_pool("one-disk", keys, "");
    let done = one_disk_at(&core, &site).await;
    done.map_err(|wrong| format!("{wrong}\n{}\nkept: {}", site.log(), site.keep()))
}

/// State, pool and journal on one disk, which hosts have filled up: what makes room is stored all
/// the same.
async fn one_disk_at(core: &CoreHandle, site: &Site) -> Result<(), String> {
    let data = site.path("data");
    let _disk = SmallFileSystem::mount(&data, 80 << 20)?;
    std::fs::create_dir(data.join("pool")).map_err(|error| error.to_string())?;
    site.write("objects.toml", OBJECTS);
    let more = "[[lun]]\nname = \"more\"\nsize = \"1MiB\"\n";
    site.write("more.toml", &(OBJECTS.to_owned() + more));
    let _daemon = site.start(core).await?;
    site.must("apply -f objects.toml").await?;
    for name in ["junk1", "junk2", "junk3"] {
        site.must(&format!("lun create {name} --size 1MiB --thin=false"))
            .await?;
    }
    let junk = take_all(&data)?;
    check_refused(site).await?;
    let spares = || (1..9).filter(|it| data.join(format!("spare-{it}")).exists());
    must(spares().count() == 8, "the spare files are there")?;
    for change in ["delete junk1 --yes", "delete junk2 --yes"] {
        site.must(&format!("lun {change}")).await?;
        // What that left of a file is taken at once.
        take_all_again(&junk)?;
    }
    site.must("lun purge junk1 --yes").await?;
    let reported = site.json("lun ls").await?.to_string();
    must(
        !reported.contains("junk1") && reported.contains("junk3"),
        &reported,
    )?;
    // A purge makes room: the files are made again, and all is well.
    until(core, "there is no room again", async || {
        let status = site.json("status").await?;
        Ok(spares().count() == 8 && !status.to_string().contains("state_dir"))
    })
    .await?;
    site.must("lun create more --size 512KiB --thin=false")
        .await?;
    let junk = (junk, take_all(&data)?);
    for name in ["junk3", "more", "big"] {
        site.must(&format!("lun delete {name} --yes")).await?;
    }
    let status = site.json("status").await?.to_string();
    must(status.contains("state_dir"), &status)?;
    let last = site.run("lun purge junk2 --yes").await;
    must(last.code == 0, &last.text)?;
    drop(junk);
    until(core, "it never was healthy again", async || {
        Ok(site.json("status").await?["health"] == "ok")
    })
    .await
}

#[test]
fn on_a_disk_that_state_and_pool_share_luns_are_removed_though_it_is_full() {
    as_root(|core| Box::pin(one_disk(core)));
}

async fn late_records(core: CoreHandle) -> Result<(), String> {
    let keys = "path = \"pool\"\njournal = \"journal\"\njournal_size = \"64MiB\"\n";
    let site = Site::with_pool("late-records", keys, "");
    let done = late_records_at(&core, &site).await;
    done.map_err(|wrong| format!("{wrong}\n{}\nkept: {}", site.log(), site.keep()))
}

/// What was not to be written down in a full directory is, once there is room: nobody asks, and
/// nothing starts anew.
async fn late_records_at(core: &CoreHandle, site: &Site) -> Result<(), String> {
    let (state, pool) = (site.path("data"), site.path("pool"));
    let _state = SmallFileSystem::mount(&state, 1 << 20)?;
    let _pool = SmallFileSystem::mount(&pool, POOL_BYTES)?;
    site.write("objects.toml", OBJECTS);
    let mut daemon = site.start(core).await?;
    site.must("apply -f objects.toml").await?;
    let files = [state.join("journals/default.json"), pool.join("saved.json")];
    let read = || files.each_ref().map(|file| std::fs::read(file).ok());
    let before = read();
    must(before.iter().all(Option::is_some), "records are written")?;
    // Another opening of the journal.
    let junk = take_all(&state)?;
    daemon.strike();
    daemon.ended().await;
    let _daemon = site.start(core).await?;
    let reported = site.json("status").await?.to_string();
    must(reported.contains("journals/default.json"), &reported)?;
    drop(junk);
    // Another LUN, of which nothing can be written beside it.
    let junk = take_all(&pool)?;
    site.must("lun create other --size 1MiB").await?;
    must(read()[1] == before[1], "there was room")?;
    let reported = site.json("status").await?.to_string();
    must(reported.contains("LUN other: "), &reported)?;
    drop(junk);
    until(
        core,
        "records are not written although there is room",
        async || {
            let now = read();
            Ok(now[0] != before[0] && now[1] != before[1])
        },
    )
    .await?;
    until(core, "it never was healthy again", async || {
        Ok(site.json("status").await?["health"] == "ok")
    })
    .await?;
    let records = std::fs::read_dir(&pool).map_err(|error| error.to_string())?;
    let records = records.flatten().filter(|file| {
        let name = file.file_name();
        name.to_string_lossy().ends_with(".record")
    });
    must(records.count() == 2, "each LUN has its record")
}

#[test]
fn records_that_a_full_disk_refused_are_written_when_there_is_room() {
    as_root(|core| Box::pin(late_records(core)));
}

/// What a LUN with checksums behind a journal is asked to do with its writes.
const CACHES: [&str; 3] = ["write-back", "write-through", "volatile"];

/// Gives a file system of this kind another size.
fn resize(at: &Path, bytes: u64) -> Result<(), String> {
    let mut mount = std::process::Command::new("mount");
    mount.args(["-o", &format!("remount,size={bytes}")]).arg(at);
    let output = mount.output().map_err(|error| error.to_string())?;
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    must(output.status.success(), &why)
}

/// Asks until it holds, for at most a minute.
async fn until(
    core: &CoreHandle,
    what: &str,
    holds: impl AsyncFn() -> Result<bool, String>,
) -> Result<(), String> {
    let end = core.now().after(std::time::Duration::from_secs(60));
    while !holds().await? {
        must(core.now() < end, what)?;
        // There is no event to wait for: the promise is about asking.
        let pause = core.now().after(std::time::Duration::from_millis(50));
        core.sleep_until(pause).await;
    }
    Ok(())
}

/// Writes new chunks until there is no room for one, and three more: all of these are refused for
/// want of space, and for nothing else.
async fn fill_up(host: &Host, from: u64) -> Result<u64, String> {
    let mut written = from;
    while written < 1000 {
        match write(host, written, 1).await {
            Ok(_) => written += 1,
            Err(IoError::SpaceExhausted) => {
                for ahead in 0..3 {
                    check_sense(host, written + ahead).await?;
                }
                return Ok(written);
            }
            Err(error) => return Err(format!("chunk {written}: {error:?}")),
        }
    }
    Err("it was never full".to_owned())
}

async fn full_checksums(core: CoreHandle, cache: &'static str) -> Result<(), String> {
    let keys = "path = \"pool\"\njournal = \"journal\"\njournal_size = \"64MiB\"\n";
    let site = Site::with_pool(&format!("full-checksums-{cache}"), keys, "");
    let done = full_checksums_at(&core, &site, cache).await;
    done.map_err(|wrong| format!("{cache}: {wrong}\n{}\nkept: {}", site.log(), site.keep()))
}

async fn full_checksums_at(core: &CoreHandle, site: &Site, cache: &str) -> Result<(), String> {
    let _pool = SmallFileSystem::mount(&site.path("pool"), POOL_BYTES)?;
    let keys = format!(
        "size = \"64MiB\"\nintegrity = true\ncache = \"{cache}\"\nphysical_block_size = 4096"
    );
    site.write("objects.toml", &OBJECTS.replace("size = \"64MiB\"", &keys));
    let daemon = site.start(core).await?;
    site.must("apply -f objects.toml --yes").await?;
    let host = login(core, &daemon).await;
    let written = fill_up(&host, 0).await?;
    must(written > 64, &format!("{written} chunks fit"))?;
    check(&host, written, 1).await?;
    let reported = site.json("status").await?;
    must(reported["health"] == "degraded", &reported.to_string())?;
    must(
        !reported.to_string().contains("restart the daemon"),
        &reported.to_string(),
    )?;
    // A kill and a start without room: it serves what it has, and says what is the matter.
    let mut daemon = daemon;
    daemon.strike();
    daemon.ended().await;
    drop(host);
    let daemon = site.start(core).await?;
    let lun = site.json("lun show big").await?;
    must(
        lun["online"] == true || lun["state"] == "online",
        &lun.to_string(),
    )?;
    let host = login(core, &daemon).await;
    check(&host, written, 1).await?;
    let more = fill_up(&host, written).await?;
    check(&host, more, 1).await?;
    // Room: it goes on by itself.
    resize(&site.path("pool"), POOL_BYTES * 16)?;
    until(
        core,
        "no write was taken although there was room",
        async || match write(&host, more, 1).await {
            Ok(_) => Ok(true),
            Err(IoError::SpaceExhausted) => Ok(false),
            Err(error) => Err(format!("with room: {error:?}")),
        },
    )
    .await?;
    for number in 0..more + 20 {
        let written = write(&host, number, 2).await;
        must(
            written.is_ok(),
            &format!("with room: chunk {number}: {written:?}"),
        )?;
    }
    let flushed = ask(&host, Op::Flush).await;
    must(flushed.is_ok(), &format!("with room: {flushed:?}"))?;
    until(core, "it never was healthy again", async || {
        let reported = site.json("status").await?;
        Ok(reported["health"] == "ok")
    })
    .await?;
    let mut daemon = daemon;
    daemon.strike();
    daemon.ended().await;
    drop(host);
    let daemon = site.start(core).await?;
    check(&login(core, &daemon).await, more + 20, 2).await
}

#[test]
fn a_full_pool_under_checksums_is_a_state_that_ends_by_itself_in_every_mode() {
    as_root(|core| {
        Box::pin(async move {
            for cache in CACHES {
                full_checksums(Rc::clone(&core), cache).await?;
            }
            Ok(())
        })
    });
}
