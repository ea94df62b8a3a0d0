//! Bays: what each holds, what it held, and which of them are dark.

use crate::memory::{KnownBay, Memory};
use crate::seen::SeenBay;
use manifest::disks::{BayHeld, BayState, BayView, DiskFinding, DiskVerdict};
use manifest::time::rfc3339;
use units::WallClock;

/// A disk that is there, for the bay that it is in.
pub(crate) struct Here {
    /// Its key in [`Memory::disks`]; none where it is like others.
    pub(crate) key: Option<String>,
    pub(crate) id: String,
    pub(crate) serial: String,
    pub(crate) model: String,
    pub(crate) names: Vec<String>,
}

/// What the enclosure says where it is certain that something is in a bay (SES-3, element status
/// codes).
const FAULTY: [&str; 2] = ["critical", "unrecoverable"];

/// The same where it sees a disk, and where it may say so of empty ones as well.
const PERHAPS: [&str; 2] = ["ok", "non-critical"];

/// The key of a bay in [`Memory::bays`].
fn key(bay: &SeenBay) -> String {
    format!("{}/{}", bay.enclosure, bay.slot)
}

/// What people call a bay.
pub(crate) fn name(bay: &SeenBay, all: &[SeenBay]) -> String {
    if all.iter().all(|it| it.enclosure == bay.enclosure) {
        return bay.slot.clone();
    }
    format!("{}:{}", bay.enclosure, bay.slot)
}

/// The bays as they are. What is in them now is remembered.
pub(crate) fn judge(memory: &mut Memory, all: &[SeenBay], here: &[Here], now: u64) -> Vec<BayView> {
    let mut views: Vec<BayView> = Vec::new();
    for bay in all {
        let mut view = BayView {
            name: name(bay, all),
            enclosure: bay.enclosure.clone(),
            slot: bay.slot.clone(),
            status: bay.status.clone(),
            ..BayView::default()
        };
        let is_here = |it: &&Here| it.names.iter().any(|name| bay.names.contains(name));
        match here.iter().find(is_here) {
            Some(disk) => occupied(memory, bay, disk, (&mut view, now)),
            None if !bay.names.is_empty() => view.state = BayState::Disk,
            None => vacant(memory, bay, here, &mut view),
        }
        views.push(view);
    }
    let order = |view: &BayView| {
        (
            view.enclosure.clone(),
            number(&view.slot),
            view.slot.clone(),
        )
    };
    views.sort_by_key(order);
    views
}

fn number(slot: &str) -> u64 {
    slot.parse().unwrap_or(u64::MAX)
}

fn occupied(memory: &mut Memory, bay: &SeenBay, disk: &Here, (view, now): (&mut BayView, u64)) {
    view.state = BayState::Disk;
    view.disk = Some(disk.id.clone());
    if let Some(key_of_disk) = &disk.key {
        let known = memory.bays.entry(key(bay)).or_default();
        // What the disk itself says comes later than what the system says, and may differ.
        let is_other =
            (&known.disk, &known.serial, &known.model) != (key_of_disk, &disk.serial, &disk.model);
        // A day's accuracy: the file is not written for less.
        if is_other || now.saturating_sub(known.last_seen) >= crate::trend::DAY {
            *known = KnownBay {
                disk: key_of_disk.clone(),
                serial: disk.serial.clone(),
                model: disk.model.clone(),
                last_seen: now,
            };
        }
    }
    let is_bad = FAULTY.contains(&bay.status.to_ascii_lowercase().as_str());
    if bay.is_faulty || is_bad {
        view.finding = Some(DiskFinding {
            verdict: DiskVerdict::ReplaceSoon,
            cause: format!(
                "{} is faulty, as the enclosure says ({})",
                view.called(),
                bay.status
            ),
            next_step: "check its disk with `causeway disk show`, then the bay itself".to_owned(),
        });
    }
}

fn vacant(memory: &mut Memory, bay: &SeenBay, here: &[Here], view: &mut BayView) {
    let key = key(bay);
    let moved = memory
        .bays
        .get(&key)
        .is_some_and(|known| here.iter().any(|it| it.key.as_ref() == Some(&known.disk)));
    if moved {
        memory.bays.remove(&key);
    }
    let held = memory.bays.get(&key);
    let status = bay.status.to_ascii_lowercase();
    let is_certain = bay.has_device || FAULTY.contains(&status.as_str());
    let starts_not = is_certain || (held.is_some() && PERHAPS.contains(&status.as_str()));
    view.state = match (starts_not, held) {
        (true, _) => BayState::NoStart,
        (false, Some(_)) => BayState::Dark,
        (false, None) => BayState::Empty,
    };
    view.held = held.map(|held| BayHeld {
        serial: held.serial.clone(),
        model: held.model.clone(),
        last_seen: rfc3339(WallClock(held.last_seen.saturating_mul(1_000_000_000))),
    });
    if view.state == BayState::Empty {
        return;
    }
    let is_used = held
        .and_then(|held| memory.disks.get(&held.disk))
        .is_some_and(|disk| !disk.used_by.is_empty());
    view.finding = Some(finding(view, is_used));
}

/// What is wrong with a bay that should hold a disk.
fn finding(view: &BayView, is_used: bool) -> DiskFinding {
    let what = match view.state {
        BayState::NoStart => "holds a disk that does not start",
        BayState::Dark | BayState::Disk | BayState::Empty => "holds no disk that the system sees",
    };
    let held = view.held.as_ref().map(|held| {
        let day: String = held.last_seen.chars().take("2027-02-10".len()).collect();
        let model = if held.model.is_empty() {
            "a disk of"
        } else {
            &held.model
        };
        format!("; {model} serial {} was there on {day}", held.serial)
    });
    let forget = view.held.as_ref().map(|held| {
        format!(
            "; where it was taken out on purpose: causeway disk forget {}",
            held.serial
        )
    });
    DiskFinding {
        verdict: if is_used {
            DiskVerdict::Failing
        } else {
            DiskVerdict::ReplaceSoon
        },
        cause: format!("{} {what}{}", view.called(), held.unwrap_or_default()),
        next_step: format!(
            "push the disk in again; where bays stay dark after a warm start, switch the machine off and on, and update \
             the firmware of controller and backplane{}",
            forget.unwrap_or_default()
        ),
    }
}
