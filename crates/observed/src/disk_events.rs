//! From how disks and bays are to what happened to them: pure.

use events::{Code, Happened, Object};
use manifest::disks::{BayState, BayView, DiskReport, DiskVerdict, DiskView};

/// What happened between two reports. Nothing is known before the first one.
pub(crate) fn between(before: &DiskReport, now: &DiskReport, happened: &mut Vec<Happened>) {
    if before.at.is_none() || before == now {
        return;
    }
    for disk in &now.disks {
        let older = before.disks.iter().find(|older| older.id == disk.id);
        happened.extend(came_or_went(older, disk));
        happened.extend(judged(older, disk));
    }
    for bay in &now.bays {
        let older = before.bays.iter().find(|older| older.name == bay.name);
        happened.extend(of_bay(older, bay));
    }
}

/// As sentences name it: how the system calls it and what it is.
fn called(disk: &DiskView) -> String {
    match disk.names.first() {
        Some(name) if *name != disk.id => format!("disk {} ({name})", disk.id),
        Some(_) | None => format!("disk {}", disk.id),
    }
}

fn about(code: Code, disk: &DiskView, message: String) -> Happened {
    let mut event = Happened::new(code, Object::new("disk", &disk.id), message);
    if let Some(name) = disk.names.first() {
        event = event.with("device", name.as_str());
    }
    if !disk.used_by.is_empty() {
        event = event.with("used_by", disk.used_by.join(", "));
    }
    match &disk.bay {
        Some(bay) => event.with("bay", bay.as_str()),
        None => event,
    }
}

fn came_or_went(before: Option<&DiskView>, now: &DiskView) -> Option<Happened> {
    let was_there = before.map(|it| it.missing_since.is_none());
    match (was_there, now.missing_since.is_none()) {
        (Some(true), false) => {
            let message = format!("{} is not there any more", called(now));
            Some(about(Code::DiskGone, now, message))
        }
        (Some(false), true) => {
            let message = format!("{} is there again", called(now));
            Some(about(Code::DiskThere, now, message))
        }
        (None, true) => {
            let message = format!("{} is new", called(now));
            Some(about(Code::DiskThere, now, message))
        }
        (Some(true), true) | (None | Some(false), false) => None,
    }
}

fn judged(before: Option<&DiskView>, now: &DiskView) -> Option<Happened> {
    let was = before.map_or(DiskVerdict::Unknown, |it| it.health);
    if [was, DiskVerdict::Unknown].contains(&now.health) || now.missing_since.is_some() {
        return None;
    }
    let found = now.findings.first().map(|it| it.cause.as_str());
    let bad = |verdict| verdict > DiskVerdict::Well;
    let (code, message) = match (was, now.health) {
        (was, is) if is > was && bad(is) => {
            let cause = found.map(|it| format!(": {it}")).unwrap_or_default();
            let message = format!("{} is {}{cause}", called(now), is.words());
            (Code::DiskWorse, message)
        }
        (was, is) if bad(was) => {
            let message = format!("{} is {}, and was {}", called(now), is.words(), was.words());
            (Code::DiskBetter, message)
        }
        _ => return None,
    };
    let event = about(code, now, message).with("health", now.health.name());
    let event = event.with("before", was.name());
    Some(match found {
        Some(cause) => event.with("reason", cause),
        None => event,
    })
}

fn of_bay(before: Option<&BayView>, now: &BayView) -> Option<Happened> {
    let is_bad = |state| matches!(state, BayState::Dark | BayState::NoStart);
    let was = before.map_or(BayState::Empty, |it| it.state);
    let (code, what) = match (was, now.state) {
        (was, is) if was == is => return None,
        (_, BayState::Dark) => (Code::BayDark, "holds no disk any more"),
        (_, BayState::NoStart) => (Code::BayDark, "holds a disk that does not start"),
        (was, BayState::Disk | BayState::Empty) if is_bad(was) => (Code::BayWell, "is well again"),
        (BayState::Empty | BayState::Disk | BayState::Dark | BayState::NoStart, _) => return None,
    };
    let held = now.held.as_ref().filter(|_| code == Code::BayDark);
    let held = held.map(|it| it.serial.clone()).unwrap_or_default();
    let message = match held.as_str() {
        "" => format!("{} {what}", now.called()),
        serial => format!("{} {what}: serial number {serial} was in it", now.called()),
    };
    let event = Happened::new(code, Object::new("bay", &now.name), message);
    let event = event.with("state", now.state.name());
    Some(match held.as_str() {
        "" => event,
        serial => event.with("serial", serial),
    })
}

#[cfg(test)]
mod test {
    use super::*;
    use manifest::disks::DiskFinding;

    fn disk(id: &str, health: DiskVerdict, missing: bool) -> DiskView {
        let finding = DiskFinding {
            verdict: health,
            cause: "12 sectors were reallocated".to_owned(),
            next_step: "order another one".to_owned(),
        };
        DiskView {
            id: id.to_owned(),
            names: vec!["sda".to_owned()],
            health,
            findings: (health > DiskVerdict::Well)
                .then_some(finding)
                .into_iter()
                .collect(),
            missing_since: missing.then(|| "2026-01-01T00:00:00.000Z".to_owned()),
            used_by: vec!["pool p".to_owned()],
            ..DiskView::default()
        }
    }

    fn bay(state: BayState) -> BayView {
        BayView {
            name: "3".to_owned(),
            state,
            ..BayView::default()
        }
    }

    fn report(disks: Vec<DiskView>, bays: Vec<BayView>) -> DiskReport {
        DiskReport {
            at: Some("2026-01-01T00:00:00.000Z".to_owned()),
            disks,
            bays,
            ..DiskReport::default()
        }
    }

    fn said(before: &DiskReport, now: &DiskReport) -> Vec<String> {
        let mut happened = Vec::new();
        between(before, now, &mut happened);
        let word = |it: &Happened| format!("{}: {}", it.code.entry().name, it.message);
        happened.iter().map(word).collect()
    }

    #[test]
    fn disks_that_go_come_and_change_are_events_and_what_stays_is_none() {
        use DiskVerdict::{Failing, Unknown, Watch, Well};
        let of = |health, missing| report(vec![disk("S1", health, missing)], Vec::new());
        let none = report(Vec::new(), Vec::new());
        let cases = [
            (of(Well, false), of(Well, false), &[][..]),
            (of(Unknown, false), of(Well, false), &[]),
            (
                none.clone(),
                of(Well, false),
                &["disk_there: disk S1 (sda) is new"],
            ),
            (
                of(Well, false),
                of(Well, true),
                &["disk_gone: disk S1 (sda) is not there any more"],
            ),
            (
                of(Well, true),
                of(Well, false),
                &["disk_there: disk S1 (sda) is there again"],
            ),
            (
                of(Well, false),
                of(Watch, false),
                &["disk_worse: disk S1 (sda) is to be watched: 12 sectors were reallocated"],
            ),
            (
                of(Failing, false),
                of(Well, false),
                &["disk_better: disk S1 (sda) is well, and was failing"],
            ),
        ];
        for (before, now, wanted) in cases {
            assert_eq!(said(&before, &now), wanted);
        }
        // Before the first report nobody knows anything.
        assert_eq!(said(&DiskReport::default(), &of(Failing, false)), [""; 0]);
    }

    #[test]
    fn a_bay_that_loses_its_disk_is_an_event_and_so_is_one_that_gets_it_back() {
        let of = |state| report(Vec::new(), vec![bay(state)]);
        let went = said(&of(BayState::Disk), &of(BayState::Dark));
        assert_eq!(went, ["bay_dark: bay 3 holds no disk any more"]);
        let back = said(&of(BayState::Dark), &of(BayState::Disk));
        assert_eq!(back, ["bay_well: bay 3 is well again"]);
        assert_eq!(said(&of(BayState::Empty), &of(BayState::Disk)), [""; 0]);
    }
}
