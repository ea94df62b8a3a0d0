//! `causeway pool check`: what stands on the members of a pool, without a daemon; changes nothing.

use super::journal_check;
use crate::output::{Output, rounded, table};
use control::code::Code;
use control::problem::Problem;
use members::assembly::Unreadable;
use members::{AREA_BYTES, Assembly, Layout, Refused, Seen, State, assemble, find};
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A member as it is told.
#[derive(Serialize)]
struct MemberView {
    member: Option<u16>,
    path: String,
    serial: Option<String>,
    event: Option<u64>,
    size: Option<u64>,
    state: String,
}

/// What `pool check` tells.
#[derive(Serialize)]
struct PoolView {
    pool: Option<String>,
    layout: &'static str,
    event: Option<u64>,
    complete: bool,
    luns: Vec<LunView>,
    room: Option<u64>,
    free: Option<u64>,
    members: Vec<MemberView>,
}

/// A LUN of the pool.
#[derive(Serialize)]
struct LunView {
    naa: String,
    bytes: u64,
    served: bool,
}

pub(crate) fn run(paths: &[PathBuf], output: &Output) -> Result<(), Problem> {
    if let [only] = paths
        && !only.is_dir()
        && journal_check::is_journal(only)
    {
        return journal(only, output);
    }
    if let [only] = paths
        && only.is_dir()
    {
        return directory(only, output);
    }
    let seen: Vec<Seen> = paths.iter().map(|path| look(path)).collect();
    let assembly = assemble(&seen).map_err(|refused| of_refused(&refused, &seen))?;
    let view = view(&assembly, &seen);
    output.show(&view, people);
    if view.complete {
        return Ok(());
    }
    let away = view
        .members
        .iter()
        .filter(|member| member.state != "present");
    let away: Vec<String> = away
        .map(|member| format!("{}: {}", member.path, member.state))
        .collect();
    Err(Problem::new(Code::PoolIncomplete, away.join("; ")))
}

/// A journal, which is examined alone: it may be a file or a device.
fn journal(path: &Path, output: &Output) -> Result<(), Problem> {
    let view = journal_check::look(path)?;
    output.show(&view, journal_check::JournalView::people);
    view.problem().map_or(Ok(()), Err)
}

/// What stands at a path.
fn look(path: &Path) -> Seen {
    let shown = path.display().to_string();
    let read = read(path);
    let (bytes, physical) = read
        .as_ref()
        .map_or((0, 0), |read| (read.bytes, read.physical));
    let found = match read {
        Err(error) => Err(Unreadable::Missing(error.to_string())),
        Ok(read) => find(&read.even, &read.odd).map_err(Unreadable::Damaged),
    };
    Seen {
        path: shown,
        serial: serial(path),
        bytes,
        // A file has whatever the pool was made with.
        physical_block_bytes: match (physical, &found) {
            (0, Ok(found)) => found.superblock.physical_block_bytes,
            (known, _) => known,
        },
        found,
    }
}

struct Read {
    bytes: u64,
    physical: u32,
    even: Vec<u8>,
    odd: Vec<u8>,
}

fn read(path: &Path) -> io::Result<Read> {
    let file = File::open(path)?;
    let is_device = file.metadata()?.file_type().is_block_device();
    let bytes = rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?;
    let area = u64::try_from(AREA_BYTES).expect("a small number");
    let place = |at: u64| {
        let mut all = vec![0; AREA_BYTES];
        let len = usize::try_from(bytes.saturating_sub(at).min(area)).expect("an area at most");
        all.truncate(len);
        file.read_exact_at(&mut all, at).map(|()| all)
    };
    let physical = if is_device {
        of_device(path, "queue/physical_block_size").and_then(|text| text.parse().ok())
    } else {
        None
    };
    Ok(Read {
        bytes,
        physical: physical.unwrap_or(0),
        even: place(0)?,
        odd: place(area)?,
    })
}

/// A fact of a block device, or of the disk that it is a part of.
fn of_device(path: &Path, fact: &str) -> Option<String> {
    let device = path.metadata().ok()?.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let own = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let read = |place: PathBuf| std::fs::read_to_string(place.join(fact)).ok();
    let text = read(own.clone()).or_else(|| read(own.join("..")))?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn serial(path: &Path) -> Option<String> {
    let is_device = path.metadata().ok()?.file_type().is_block_device();
    is_device.then(|| of_device(path, "device/serial").or_else(|| of_device(path, "serial")))?
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_refused(refused: &Refused, seen: &[Seen]) -> Problem {
    let path = |at: &usize| seen.get(*at).map_or("?", |seen| seen.path.as_str());
    let detail = match refused {
        Refused::NoMember => {
            let all = seen.iter().map(|seen| match &seen.found {
                Ok(_) => seen.path.clone(),
                Err(why) => format!("{}: {why}", seen.path),
            });
            all.collect::<Vec<_>>().join("; ")
        }
        Refused::SeveralPools(one, other) => {
            format!("{} and {} are of different pools", path(one), path(other))
        }
        Refused::Contradiction(one, other) => format!(
            "{} and {} tell different things of the same event: one is of a copy that went on by itself",
            path(one),
            path(other)
        ),
    };
    Problem::new(Code::PoolUnreadable, detail)
}

fn state(state: State, table: u64, seen: &[Seen]) -> String {
    let path = |at: usize| seen.get(at).map_or("?", |seen| seen.path.as_str());
    match state {
        State::Present(_) => "present".to_owned(),
        State::Absent => format!("absent; its last event is {table}"),
        State::Stale { event, .. } => {
            format!(
                "stale: it has event {event}, and the pool expects {table}; it was away, or is an old copy"
            )
        }
        State::Diverged { event, .. } => format!(
            "diverged: it has event {event}, and the others know of {table} only; it was used without them"
        ),
        State::Twice(one, other) => {
            format!(
                "{} and {} both say that they are it",
                path(one),
                path(other)
            )
        }
        State::TooSmall(_) => "smaller than it was".to_owned(),
        State::OtherBlocks(_) => "its physical blocks have another size than the pool's".to_owned(),
    }
}

fn view(assembly: &Assembly, seen: &[Seen]) -> PoolView {
    let block = &assembly.table;
    let (room, free) = block.room();
    let members = (0_u16..).zip(&assembly.states).zip(&block.members);
    let mut members: Vec<MemberView> = members
        .map(|((number, one), member)| {
            let place = match one {
                State::Present(at)
                | State::Stale { seen: at, .. }
                | State::Diverged { seen: at, .. }
                | State::Twice(at, _)
                | State::TooSmall(at)
                | State::OtherBlocks(at) => seen.get(*at),
                State::Absent => None,
            };
            let event = place.and_then(|seen| Some(seen.found.as_ref().ok()?.superblock.event));
            MemberView {
                member: Some(number),
                path: place.map_or_else(|| "?".to_owned(), |seen| seen.path.clone()),
                serial: place.and_then(|seen| seen.serial.clone()),
                event,
                size: place.map(|seen| seen.bytes),
                state: state(*one, member.last_event, seen),
            }
        })
        .collect();
    members.extend(assembly.strangers.iter().map(|(at, why)| {
        MemberView {
            member: None,
            path: seen
                .get(*at)
                .map_or_else(String::new, |seen| seen.path.clone()),
            serial: seen.get(*at).and_then(|seen| seen.serial.clone()),
            event: None,
            size: None,
            state: why.clone(),
        }
    }));
    let luns = block.luns.iter().map(|(lun, runs)| {
        let chunks: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        LunView {
            naa: hex(&lun.0),
            bytes: chunks.saturating_mul(block.bytes_per_chunk()),
            served: assembly.missing_for(*lun).is_empty(),
        }
    });
    PoolView {
        pool: Some(hex(&block.pool.0)),
        layout: match block.layout {
            Layout::Span => "span",
            Layout::Stripe { .. } => "stripe",
        },
        event: Some(block.event),
        complete: assembly.is_complete(),
        luns: luns.collect(),
        room: Some(room),
        free: Some(free),
        members,
    }
}

fn people(view: &PoolView) -> String {
    let rows: Vec<Vec<String>> = view
        .members
        .iter()
        .map(|member| {
            vec![
                member
                    .member
                    .map_or_else(|| "-".to_owned(), |number| number.to_string()),
                member.path.clone(),
                member.serial.clone().unwrap_or_default(),
                member
                    .event
                    .map(|event| event.to_string())
                    .unwrap_or_default(),
                member.size.map(rounded).unwrap_or_default(),
                member.state.clone(),
            ]
        })
        .collect();
    let mut out = format!(
        "pool {} ({}), event {}, {} of {} free, {}\n\n",
        view.pool.as_deref().unwrap_or("?"),
        view.layout,
        view.event.unwrap_or(0),
        rounded(view.free.unwrap_or(0)),
        rounded(view.room.unwrap_or(0)),
        if view.complete {
            "complete"
        } else {
            "NOT COMPLETE"
        }
    );
    out.push_str(&table(
        &["MEMBER", "PATH", "SERIAL", "EVENT", "SIZE", "STATE"],
        &rows,
    ));
    let rows: Vec<Vec<String>> = view
        .luns
        .iter()
        .map(|lun| {
            let served = if lun.served {
                "can be served"
            } else {
                "lacks a member"
            };
            vec![lun.naa.clone(), rounded(lun.bytes), served.to_owned()]
        })
        .collect();
    if !rows.is_empty() {
        out.push_str(&format!("\n{}", table(&["LUN", "SIZE", "STATE"], &rows)));
    }
    out
}

/// A pool that is a directory has one member, the file system, and keeps no events.
fn directory(path: &Path, output: &Output) -> Result<(), Problem> {
    let failed = |error: io::Error| {
        Problem::new(Code::PoolUnreadable, format!("{}: {error}", path.display()))
    };
    let mut luns = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(naa) = name.strip_suffix(".lun") {
            luns.push(LunView {
                naa: naa.to_owned(),
                bytes: entry.metadata().map_err(failed)?.len(),
                served: true,
            });
        }
    }
    luns.sort_by(|a, b| a.naa.cmp(&b.naa));
    let view = PoolView {
        pool: None,
        layout: "directory",
        event: None,
        complete: true,
        luns,
        room: None,
        free: None,
        members: vec![MemberView {
            member: Some(0),
            path: path.display().to_string(),
            serial: None,
            event: None,
            size: None,
            state: "present".to_owned(),
        }],
    };
    output.show(&view, |view| {
        let rows: Vec<Vec<String>> = view
            .luns
            .iter()
            .map(|lun| vec![lun.naa.clone(), rounded(lun.bytes)])
            .collect();
        let says = std::fs::read_to_string(path.join("pool.toml"));
        let journal = if says.is_ok_and(|says| says.contains("journal = true")) {
            "; it has a journal: causeway pool check JOURNAL"
        } else {
            ""
        };
        let head = format!("pool in the directory {}{journal}\n\n", path.display());
        head + &table(&["LUN", "SIZE"], &rows)
    });
    Ok(())
}
