//! A pool of members: which are there, which of them fit together, and which is missing.

use super::on_members::OnMembers;
use super::sidecar;
use super::view::{LunView, MemberView, PoolView};
use env::file::length;
use env::{CoreHandle, File, OpenHow};
use machine::disk;
use manifest::code::Code;
use manifest::problem::Problem;
use members::{
    AREA_BYTES, Assembly, Layout, LunId, MemberId, Refused, Seen, SidecarKind, State, assemble,
};
use state::remembered::{self, Remembered};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use units::hex;

/// What stands on the members at these paths, with what the daemon's state knows of those that are
/// away.
pub(crate) async fn inspect(
    core: &CoreHandle,
    paths: &[PathBuf],
    state_dir: &Path,
) -> Result<PoolView, Problem> {
    let mut seen = Vec::new();
    for path in paths {
        seen.push(inspect_member(core, path).await);
    }
    let assembly = assemble(&seen).map_err(|refused| of_refused(&refused, &seen))?;
    let ids: Vec<MemberId> = assembly.table.members.iter().map(|it| it.id).collect();
    let known = remembered::of_members(core, state_dir, &ids).await;
    let (pool, known) = known.unzip();
    let mut view = view(&assembly, &seen, &known.unwrap_or_default());
    let members = OnMembers::open(core, &assembly, paths).await;
    let directory = pool.map(|pool| remembered::sidecar(state_dir, &pool));
    for lun in &mut view.luns {
        let away = || Err(io::ErrorKind::NotFound.into());
        let [mut map, mut changes] = match &directory {
            Some(directory) => sidecar::in_directory(core, directory, &lun.naa).await,
            None => [away(), away()],
        };
        let id = u128::from_str_radix(&lun.naa, 16);
        let id = LunId(id.unwrap_or_default().to_be_bytes());
        if let Some(stands) = members.of(&assembly, id, SidecarKind::Checksums) {
            map = stands;
        }
        if let Some(stands) = members.of(&assembly, id, SidecarKind::Changes) {
            changes = stands;
        }
        sidecar::inspect(core, [map, changes], lun).await;
    }
    view.good &= view.luns.iter().all(|lun| lun.problem.is_none());
    Ok(view)
}

/// What stands at a path.
async fn inspect_member(core: &CoreHandle, path: &Path) -> Seen {
    let named = (path.display().to_string(), disk::serial(core, path).await);
    match read(core, path).await {
        Ok(read) => Seen::of(named, read.bytes, read.device, [&read.even, &read.odd]),
        Err(error) => Seen::missing(named, error.to_string()),
    }
}

struct Read {
    bytes: u64,
    /// Bytes of a device's physical blocks.
    device: Option<u32>,
    even: Vec<u8>,
    odd: Vec<u8>,
}

async fn read(core: &CoreHandle, path: &Path) -> io::Result<Read> {
    let file = core.files().open(path, OpenHow::READ).await?;
    let bytes = length(&file).await?;
    let area = u64::try_from(AREA_BYTES).expect("a small number");
    Ok(Read {
        bytes,
        device: file.facts().device_blocks(),
        even: place(&file, 0, bytes).await?,
        odd: place(&file, area, bytes).await?,
    })
}

/// One of the two places, as far as a member of so many bytes has it.
async fn place(file: &Rc<dyn File>, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let there = usize::try_from(bytes.saturating_sub(offset)).unwrap_or(AREA_BYTES);
    let there = there.min(AREA_BYTES);
    if there == 0 {
        return Ok(Vec::new());
    }
    env::file::read(file, offset, there).await
}

/// Of its two superblocks one is enough.
fn present(seen: Option<&Seen>) -> String {
    let found = seen.and_then(|seen| seen.found.as_ref().ok());
    match found.and_then(|found| found.other) {
        None => "present".to_owned(),
        Some(damage) => format!("present; of its two superblocks one is left: {damage}"),
    }
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
            "{} and {} say different things of the same event: one is of a copy that went on by itself",
            path(one),
            path(other)
        ),
    };
    Problem::new(Code::PoolUnreadable, detail)
}

fn state(state: State, table: u64, seen: &[Seen]) -> String {
    let path = |at: usize| seen.get(at).map_or("?", |seen| seen.path.as_str());
    match state {
        State::Present(at) => present(seen.get(at)),
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

/// A member in its place; `known`: what it was when it was there last.
fn member(assembly: &Assembly, seen: &[Seen], known: &[Remembered], number: usize) -> MemberView {
    let member = assembly.table.members[number];
    let one = assembly.states[number];
    let place = match one {
        State::Present(at)
        | State::Stale { seen: at, .. }
        | State::Diverged { seen: at, .. }
        | State::Twice(at, _)
        | State::TooSmall(at)
        | State::OtherBlocks(at) => seen.get(at),
        State::Absent => None,
    };
    let before = Remembered::find(known, member.id).filter(|_| place.is_none());
    let (path, serial) = match (place, before) {
        (Some(seen), _) => (seen.path.clone(), seen.serial.clone()),
        (None, Some(before)) => (before.path, before.serial),
        (None, None) => ("?".to_owned(), None),
    };
    MemberView {
        member: u16::try_from(number).ok(),
        id: Some(hex(&member.id.0)),
        path,
        serial,
        event: place.and_then(|seen| Some(seen.found.as_ref().ok()?.superblock.event)),
        last_event: Some(member.last_event),
        size: place.map(|seen| seen.bytes),
        state: state(one, member.last_event, seen),
        is_present: matches!(one, State::Present(_)),
    }
}

fn view(assembly: &Assembly, seen: &[Seen], known: &[Remembered]) -> PoolView {
    let block = &assembly.table;
    let (room, free) = block.room();
    let numbers = 0..block.members.len();
    let mut members: Vec<MemberView> = numbers
        .map(|number| member(assembly, seen, known, number))
        .collect();
    members.extend(assembly.strangers.iter().filter_map(|(at, why)| {
        let seen = seen.get(*at)?;
        Some(MemberView {
            member: None,
            id: None,
            path: seen.path.clone(),
            serial: seen.serial.clone(),
            event: None,
            last_event: None,
            size: None,
            state: why.clone(),
            is_present: false,
        })
    }));
    let luns = block.luns.iter();
    let luns = luns.filter(|(lun, _)| lun.as_sidecar().is_none());
    let luns = luns.map(|(lun, runs)| {
        let chunks: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
        let sidecars = SidecarKind::ALL
            .into_iter()
            .filter_map(|it| lun.sidecar(it));
        let mut all = std::iter::once(*lun).chain(sidecars);
        let served = all.all(|id| assembly.missing_for(id).is_empty());
        let state = if served {
            "can be served"
        } else {
            "lacks a member"
        };
        LunView {
            naa: hex(&lun.0),
            bytes: chunks.saturating_mul(block.bytes_per_chunk()),
            served,
            state: state.to_owned(),
            checksums: None,
            history: None,
            problem: None,
        }
    });
    PoolView {
        pool: Some(hex(&block.pool.0)),
        layout: match block.layout {
            Layout::Span => "span",
            Layout::Stripe { .. } => "stripe",
        },
        event: Some(block.event),
        journal: Some(block.has_journal),
        complete: assembly.is_complete(),
        good: assembly.is_complete(),
        luns: luns.collect(),
        room: Some(room),
        free: Some(free),
        members,
        refused: None,
    }
}
