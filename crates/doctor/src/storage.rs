//! What a node's storage does: how long a flush takes where its pools and journals lie, whether it
//! is read and written past the page cache, and what drives its disks.
//!
//! **Contract.** A place is tried with a file that has no name, 64 KiB large: nothing of it is
//! left, whatever ends the try. It takes two seconds of flushes at most, and as long as one.

use crate::finding::{Finding, Verdict};
use rustix::fs::{Mode, OFlags, fdatasync, open};
use rustix::io::{Errno, pwrite};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So many flushes are timed.
const FLUSHES: usize = 100;

/// For so long at most.
const TIME_MAX: Duration = Duration::from_secs(2);

const BLOCK: usize = 4096;
const BLOCKS: usize = 16;

/// Above it a flush is that of a disk with platters, or of a cache that does not keep what it has.
const SLOW: Duration = Duration::from_millis(10);

/// Above it hosts feel each of them.
const VERY_SLOW: Duration = Duration::from_millis(100);

/// What a node says of its storage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NodeStorage {
    /// Who lies where: `pool default`, and its directory, file or device.
    pub places: Vec<(String, PathBuf)>,
    /// What drives the disks of each core: `io_uring` or `threads`.
    pub engines: Vec<String>,
}

/// What came of a try.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    pub(crate) place: String,
    pub(crate) tried: Result<Tried, String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tried {
    /// It takes reads and writes past the page cache.
    pub(crate) direct: bool,
    /// So long one flush in a hundred takes, or longer.
    pub(crate) p99: Duration,
}

/// Tries each of these places once. It waits for disks.
pub(crate) fn probe(places: &[(String, PathBuf)]) -> Vec<Probe> {
    let mut by_directory: BTreeMap<PathBuf, Vec<&str>> = BTreeMap::new();
    let mut probes = Vec::new();
    for (user, path) in places {
        match directory(path) {
            Some(directory) => by_directory.entry(directory).or_default().push(user),
            None => probes.push(Probe {
                place: user.clone(),
                tried: Err(format!("{} is a device that it has whole", path.display())),
            }),
        }
    }
    let tried = by_directory.into_iter().map(|(directory, users)| Probe {
        place: users.join(", "),
        tried: try_one(&directory).map_err(|error| format!("{}: {error}", directory.display())),
    });
    probes.extend(tried);
    probes
}

/// Where a file can be made on the same storage.
fn directory(path: &Path) -> Option<PathBuf> {
    let facts = std::fs::metadata(path).ok()?;
    if facts.is_dir() {
        Some(path.to_owned())
    } else if facts.is_file() {
        path.parent().map(Path::to_owned)
    } else {
        None
    }
}

fn unnamed(directory: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC | more;
    open(directory, flags, Mode::RUSR | Mode::WUSR)
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a flush takes here is the question: no simulator has the answer"
)]
fn try_one(directory: &Path) -> Result<Tried, Errno> {
    // As O_DIRECT wants it: at a multiple of a block.
    let memory = vec![0x5a; BLOCK * 2];
    let at = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
    let block = &memory[at..at + BLOCK];
    let direct = match unnamed(directory, OFlags::DIRECT) {
        Ok(file) => pwrite(&file, block, 0).is_ok(),
        Err(_) => false,
    };
    let more = if direct {
        OFlags::DIRECT
    } else {
        OFlags::empty()
    };
    let file = unnamed(directory, more)?;
    let write = |number: usize| pwrite(&file, block, ((number % BLOCKS) * BLOCK) as u64);
    // Its blocks are there first: what is timed is a flush of data.
    for number in 0..BLOCKS {
        write(number)?;
    }
    fdatasync(&file)?;
    let begun = Instant::now();
    let mut took = Vec::with_capacity(FLUSHES);
    while took.len() < FLUSHES && begun.elapsed() < TIME_MAX {
        write(took.len())?;
        let asked = Instant::now();
        fdatasync(&file)?;
        took.push(asked.elapsed());
    }
    took.sort();
    let last = took.len().saturating_sub(1);
    let p99 = took.get(last * 99 / 100).copied().unwrap_or_default();
    Ok(Tried { direct, p99 })
}

pub(crate) fn all(probes: &[Probe], engines: &[String]) -> Vec<Finding> {
    let mut findings = vec![flushes(probes), direct(probes)];
    findings.extend(engine(engines));
    findings
}

fn known(probes: &[Probe]) -> impl Iterator<Item = (&str, Tried)> {
    let known = probes.iter();
    known.filter_map(|it| Some((it.place.as_str(), *it.tried.as_ref().ok()?)))
}

/// Why nothing is known, where nothing is.
fn unknown(probes: &[Probe], check: &'static str) -> Option<Finding> {
    if known(probes).next().is_some() {
        return None;
    }
    let why = probes
        .iter()
        .filter_map(|it| Some(format!("{}: {}", it.place, it.tried.as_ref().err()?)));
    let why: Vec<String> = why.collect();
    let what = if why.is_empty() {
        "no pool has a directory that could be tried".to_owned()
    } else {
        why.join("; ")
    };
    let finding = Finding::new(check, &[], Verdict::NotCheckable, what);
    Some(finding.remedy("`causeway bench` on a LUN of the pool shows it under load"))
}

fn shown(took: Duration) -> String {
    let us = took.as_micros();
    format!("{}.{} ms", us / 1000, us / 100 % 10)
}

fn flushes(probes: &[Probe]) -> Finding {
    const CHECK: &str = "flush-latency";
    if let Some(unknown) = unknown(probes, CHECK) {
        return unknown;
    }
    let said = |least: Duration| {
        let all = known(probes).filter(|(_, it)| it.p99 >= least);
        let all = all.map(|(place, it)| format!("{place}: {}", shown(it.p99)));
        all.collect::<Vec<String>>().join("; ")
    };
    let slowest = known(probes).map(|(_, it)| it.p99).max();
    let slowest = slowest.unwrap_or_default();
    if slowest < SLOW {
        let all = said(Duration::ZERO);
        let what = format!("99 of 100 flushes take no longer than this ({all})");
        return Finding::good(CHECK, &[], what);
    }
    let verdict = if slowest < VERY_SLOW {
        Verdict::Advice
    } else {
        Verdict::Problem
    };
    let what = format!(
        "one flush in a hundred takes so long or longer ({})",
        said(SLOW)
    );
    Finding::new(CHECK, &[], verdict, what)
        .because("each write that is acknowledged as stable waits for a flush of the journal, or of the pool where it has none")
        .remedy("put the journal on a disk with power-loss protection; a flush of such a disk takes well below 1 ms")
}

fn direct(probes: &[Probe]) -> Finding {
    const CHECK: &str = "direct-io";
    if let Some(unknown) = unknown(probes, CHECK) {
        return unknown;
    }
    let without = known(probes).filter(|(_, it)| !it.direct);
    let without: Vec<&str> = without.map(|(place, _)| place).collect();
    if without.is_empty() {
        return Finding::good(
            CHECK,
            &[],
            "pools and journals are read and written past the page cache",
        );
    }
    let what = format!(
        "{} cannot be read and written past the page cache (O_DIRECT)",
        without.join(", ")
    );
    Finding::new(CHECK, &[], Verdict::Advice, what)
        .because("its data takes memory of the system twice, and a flush has to write what the page cache holds")
        .remedy("use a file system that has O_DIRECT with 4096-byte blocks, such as ext4 or XFS, or a device")
}

fn engine(engines: &[String]) -> Option<Finding> {
    const CHECK: &str = "io-uring";
    let without = engines.iter().filter(|it| *it != "io_uring").count();
    if engines.is_empty() {
        return None;
    }
    let all = engines.len();
    if without == 0 {
        return Some(Finding::good(
            CHECK,
            &[],
            format!("io_uring drives the disks of all {all} cores"),
        ));
    }
    let what = format!("threads drive the disks of {without} of {all} cores, not io_uring");
    let finding = Finding::new(CHECK, &[], Verdict::Advice, what)
        .because("each operation costs two changes of threads: all works, at a lower rate")
        .remedy("allow it: kernel.io_uring_disabled = 0, the container's seccomp profile (dist/seccomp.json), runtime.driver in node.toml");
    Some(finding)
}

#[cfg(test)]
mod test {
    use super::*;

    fn probe_of(place: &str, direct: bool, ms: u64) -> Probe {
        let p99 = Duration::from_millis(ms);
        let tried = Ok(Tried { direct, p99 });
        Probe {
            place: place.to_owned(),
            tried,
        }
    }

    #[test]
    fn a_place_is_tried_and_nothing_is_left_in_it() {
        let name = format!("causeway-doctor-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("journal");
        std::fs::write(&file, "a journal").unwrap();
        let places = [("pool p", &directory), ("journal of pool p", &file)];
        let places = places.map(|(user, path)| (user.to_owned(), path.clone()));
        let gone = ("pool gone".to_owned(), directory.join("gone"));
        let probes = probe(&[&places[..], &[gone]].concat());
        let left: Vec<_> = std::fs::read_dir(&directory).unwrap().collect();
        assert_eq!(
            (left.len(), std::fs::read(&file).unwrap()),
            (1, b"a journal".to_vec())
        );
        drop(std::fs::remove_dir_all(&directory));
        assert_eq!(probes.len(), 2, "one directory, and one that is not there");
        assert!(probes[0].tried.is_err(), "{probes:?}");
        // A file system without files that have no name says so.
        match &probes[1].tried {
            Ok(tried) => assert!(tried.p99 > Duration::ZERO, "{probes:?}"),
            Err(why) => assert!(why.contains("causeway-doctor"), "{why}"),
        }
        assert_eq!(probes[1].place, "pool p, journal of pool p");
    }

    #[test]
    fn slow_flushes_the_page_cache_and_threads_are_named_with_a_remedy() {
        let engines =
            |all: &[&str]| -> Vec<String> { all.iter().map(|it| (*it).to_owned()).collect() };
        let good = all(
            &[probe_of("pool a", true, 1)],
            &engines(&["io_uring", "io_uring"]),
        );
        assert!(
            good.iter().all(|it| it.verdict == Verdict::Good),
            "{good:#?}"
        );
        let probes = [probe_of("pool a", true, 1), probe_of("pool b", false, 150)];
        let bad = all(&probes, &engines(&["io_uring", "threads"]));
        let said: Vec<(&str, Verdict, &str)> = bad
            .iter()
            .map(|it| (&*it.check, it.verdict, it.what.as_str()))
            .collect();
        let wanted = [
            (
                "flush-latency",
                Verdict::Problem,
                "one flush in a hundred takes so long or longer (pool b: 150.0 ms)",
            ),
            (
                "direct-io",
                Verdict::Advice,
                "pool b cannot be read and written past the page cache (O_DIRECT)",
            ),
            (
                "io-uring",
                Verdict::Advice,
                "threads drive the disks of 1 of 2 cores, not io_uring",
            ),
        ];
        assert_eq!(said, wanted);
        assert!(
            bad.iter()
                .all(|it| !it.remedy.is_empty() && !it.cause.is_empty())
        );
        let slow = all(&[probe_of("pool a", true, 30)], &[]);
        assert_eq!((slow.len(), slow[0].verdict), (2, Verdict::Advice));
        let device = Probe {
            place: "pool d".to_owned(),
            tried: Err("/dev/sdz is a device that it has whole".to_owned()),
        };
        let unknown = all(&[device], &[]);
        assert!(
            unknown.iter().all(|it| it.verdict == Verdict::NotCheckable),
            "{unknown:#?}"
        );
    }
}
