//! All disks and bays over time: what is seen goes in, what is to be known comes out.

use crate::bays::{self, Here};
use crate::judge::{Evidence, judge};
use crate::memory::{KnownDisk, Memory, Sample};
use crate::reading::{Answer, Reading};
use crate::seen::{Asked, Seen, SeenDisk};
use crate::trend::DAY;
use crate::trends::trends;
use manifest::disks::{
    DiskFacts, DiskFinding, DiskIdentity, DiskReport, DiskVerdict, DiskView, SmartState,
};
use manifest::time::rfc3339;
use std::collections::{BTreeMap, BTreeSet};
use units::WallClock;

/// Nothing helps here.
const NO_SMART: &str = "this machine's disks are virtual and have no SMART: the health of the real ones is known where they \
                        are, on the hypervisor's host";

/// The longest identifier.
const ID_MAX: usize = 64;

/// What is known of all disks.
#[derive(Default, Debug)]
pub struct Ledger {
    memory: Memory,
    /// What each disk said last, by its key or its name.
    answers: BTreeMap<String, Said>,
    /// The keys of the disks that were there at the last glance.
    here: BTreeSet<String>,
}

/// What a disk said last, and what it said last that counts.
#[derive(Clone, Default, Debug)]
struct Said {
    last: Option<Asked>,
    read: Option<(u64, Reading)>,
}

/// A disk over all paths to it.
struct Whole<'a> {
    key: Option<String>,
    id: String,
    names: Vec<String>,
    identity: DiskIdentity,
    seen: &'a SeenDisk,
    used_by: Vec<String>,
}

fn moment(seconds: u64) -> String {
    rfc3339(WallClock(seconds.saturating_mul(1_000_000_000)))
}

/// What no two disks have in common; a serial number alone is worth that only with its model.
fn key_of(identity: &DiskIdentity) -> Option<String> {
    if !identity.wwn.is_empty() {
        return Some(identity.wwn.clone());
    }
    let (model, serial) = (&identity.model, &identity.serial);
    (!serial.is_empty()).then(|| format!("{model} {serial}"))
}

/// `first`, with what it does not have out of `second`.
fn merged(first: &DiskIdentity, second: &DiskIdentity) -> DiskIdentity {
    let text = |a: &String, b: &String| if a.is_empty() { b.clone() } else { a.clone() };
    DiskIdentity {
        model: text(&first.model, &second.model),
        serial: text(&first.serial, &second.serial),
        firmware: text(&first.firmware, &second.firmware),
        // The system's own name for it does not change with what the disk answers.
        wwn: text(&second.wwn, &first.wwn),
        capacity_bytes: second.capacity_bytes.or(first.capacity_bytes),
        rotation_rpm: first.rotation_rpm.or(second.rotation_rpm),
    }
}

/// What fits into a path of the API.
fn identifier(identity: &DiskIdentity, name: &str) -> String {
    let of = [identity.serial.as_str(), identity.wwn.as_str(), name];
    let of = of.into_iter().find(|it| !it.is_empty()).unwrap_or(name);
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '-'
        }
    };
    let id: String = of.chars().map(safe).take(ID_MAX).collect();
    // No path begins a level up.
    id.trim_start_matches('.').to_owned()
}

impl Ledger {
    /// With what was remembered.
    #[must_use]
    pub fn new(memory: Memory) -> Self {
        Self {
            memory,
            ..Self::default()
        }
    }

    /// What is to be remembered.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Forgets a disk that is not there any more, with the bay that it was in; `false` where it is
    /// there, or no such disk is remembered.
    pub fn forget(&mut self, name: &str) -> bool {
        let is_it = |known: &KnownDisk| {
            let identity = &known.identity;
            identity.serial == name || identifier(identity, name) == name
        };
        let found = self.memory.disks.iter().find(|(_, known)| is_it(known));
        let Some(key) = found.map(|(key, _)| key.clone()) else {
            // Its bay may know more than the list of disks, which is bounded.
            let before = self.memory.bays.len();
            self.memory.bays.retain(|_, bay| bay.serial != name);
            return self.memory.bays.len() != before;
        };
        if self.here.contains(&key) {
            return false;
        }
        self.memory.disks.remove(&key);
        self.memory.bays.retain(|_, bay| bay.disk != key);
        self.answers.remove(&key);
        true
    }

    /// Takes in what was seen, and says how all is.
    pub fn observe(&mut self, seen: &Seen) -> DiskReport {
        self.take_answers(seen);
        let wholes = self.wholes(seen);
        let here: Vec<Here> = wholes.iter().map(here).collect();
        self.here = wholes.iter().filter_map(|it| it.key.clone()).collect();
        self.remember(&wholes, seen);
        let bays = bays::judge(&mut self.memory, &seen.bays, &here, seen.at);
        let in_bay: BTreeMap<&str, &str> = bays
            .iter()
            .filter_map(|bay| Some((bay.disk.as_deref()?, bay.name.as_str())))
            .collect();
        let mut disks: Vec<DiskView> = Vec::new();
        for whole in &wholes {
            let bay = in_bay.get(whole.id.as_str()).map(|bay| (*bay).to_owned());
            if let Some(key) = &whole.key
                && let Some(known) = self.memory.disks.get_mut(key)
            {
                known.bay.clone_from(&bay);
            }
            disks.push(self.view(whole, bay));
        }
        disks.extend(self.missing(&wholes));
        self.memory.bound();
        let notes = notes(&wholes, &disks);
        let is_made_up = |it: &Whole<'_>| it.seen.is_virtual;
        let no_smart = !wholes.is_empty() && wholes.iter().all(is_made_up);
        DiskReport {
            at: Some(moment(seen.at)),
            disks,
            bays,
            notes,
            no_smart: no_smart.then(|| NO_SMART.to_owned()),
        }
    }

    /// Keeps what disks said. An answer belongs to the name until the disk behind it is known.
    fn take_answers(&mut self, seen: &Seen) {
        for disk in &seen.disks {
            let Some(asked) = seen.asked.get(&disk.name) else {
                continue;
            };
            let key = key_of(&disk.identity).unwrap_or_else(|| disk.name.clone());
            let said = self.answers.entry(key).or_default();
            // Of several paths to one disk, one that answers is enough.
            let answered = |asked: &Asked| matches!(asked.answer, Answer::Read(_));
            let has_newer = said
                .last
                .as_ref()
                .is_some_and(|last| last.at >= asked.at && answered(last));
            if has_newer && !answered(asked) {
                continue;
            }
            if let Answer::Read(reading) = &asked.answer {
                said.read = Some((asked.at, (**reading).clone()));
            }
            said.last = Some(asked.clone());
        }
        let there: BTreeSet<String> = seen
            .disks
            .iter()
            .map(|it| key_of(&it.identity).unwrap_or_else(|| it.name.clone()))
            .collect();
        self.answers.retain(|key, _| there.contains(key));
    }

    fn said(&self, disk: &SeenDisk) -> Option<&Said> {
        let key = key_of(&disk.identity).unwrap_or_else(|| disk.name.clone());
        self.answers.get(&key)
    }

    /// The disks, each once, by name.
    fn wholes<'a>(&self, seen: &'a Seen) -> Vec<Whole<'a>> {
        let mut wholes: Vec<Whole<'a>> = Vec::new();
        let mut ids: BTreeSet<String> = BTreeSet::new();
        for disk in &seen.disks {
            let own = self.said(disk).and_then(|said| said.read.as_ref());
            // What the system knows of it does not depend on whether it answers.
            let key = key_of(&disk.identity)
                .or_else(|| own.and_then(|(_, reading)| key_of(&reading.identity)));
            let known = key.as_ref().and_then(|key| self.memory.disks.get(key));
            let said = own.map(|(_, reading)| &reading.identity);
            let identity = match said.or(known.map(|known| &known.identity)) {
                Some(said) => merged(said, &disk.identity),
                None => disk.identity.clone(),
            };
            let wwn = &disk.identity.wwn;
            let same = |it: &&mut Whole<'_>| !wwn.is_empty() && it.seen.identity.wwn == *wwn;
            if let Some(whole) = wholes.iter_mut().find(same) {
                whole.names.push(disk.name.clone());
                let users = disk.used_by.iter();
                let more: Vec<&String> = users.filter(|it| !whole.used_by.contains(it)).collect();
                whole.used_by.extend(more.into_iter().cloned());
                continue;
            }
            let mut id = identifier(&identity, &disk.name);
            if id.is_empty() || !ids.insert(id.clone()) {
                id = format!("{id}-{}", disk.name);
                ids.insert(id.clone());
            }
            wholes.push(Whole {
                key: key.filter(|_| !disk.is_portable),
                id,
                names: vec![disk.name.clone()],
                identity,
                seen: disk,
                used_by: disk.used_by.clone(),
            });
        }
        wholes
    }

    /// Remembers who is there, and a sample a day.
    fn remember(&mut self, wholes: &[Whole<'_>], seen: &Seen) {
        for whole in wholes {
            let Some(key) = &whole.key else { continue };
            let read = self.said(whole.seen).and_then(|said| said.read.clone());
            let known = self.memory.disks.entry(key.clone()).or_default();
            known.used_by.clone_from(&whole.used_by);
            known.identity.clone_from(&whole.identity);
            if seen.at.abs_diff(known.last_seen) >= DAY {
                known.last_seen = seen.at;
            }
            if let Some((at, reading)) = read
                && known.keep(Sample::of(&reading.facts, at))
            {
                known.facts = Some(reading.facts);
            }
        }
    }

    fn view(&self, whole: &Whole<'_>, bay: Option<String>) -> DiskView {
        let said = self.said(whole.seen).cloned().unwrap_or_default();
        let known = whole
            .key
            .as_ref()
            .and_then(|key| self.memory.disks.get(key));
        let remembered = known.and_then(|known| {
            let at = known.samples.last()?.at;
            Some((at, known.facts.clone()?))
        });
        let read = said.read.map(|(at, reading)| (at, reading.facts));
        let read = read.or(remembered);
        let (smart, smart_detail) = match said.last.map(|asked| asked.answer) {
            None => (SmartState::Waiting, None),
            Some(Answer::Read(_)) => (SmartState::Read, None),
            Some(Answer::Not { state, why }) => (state, Some(why)),
        };
        let mut view = DiskView {
            id: whole.id.clone(),
            names: whole.names.clone(),
            identity: whole.identity.clone(),
            smart,
            smart_detail,
            used_by: whole.used_by.clone(),
            bay,
            ..DiskView::default()
        };
        if let Some((at, facts)) = read {
            let mut samples = known.map(|it| it.samples.clone()).unwrap_or_default();
            // The figures of now, where today's sample is older.
            samples.retain(|it| it.at < at);
            samples.push(Sample::of(&facts, at));
            judge_facts(&mut view, &facts, &samples);
            view.read_at = Some(moment(at));
            view.facts = facts;
        }
        judge_state(&mut view, &whole.seen.state);
        view
    }

    /// Disks that were there and are not any more.
    fn missing(&self, wholes: &[Whole<'_>]) -> Vec<DiskView> {
        let is_here = |key: &String| wholes.iter().any(|it| it.key.as_ref() == Some(key));
        let has_not_said = |it: &Whole<'_>| {
            let said = self.said(it.seen).is_some_and(|said| said.last.is_some());
            it.key.is_none() && !said && !it.seen.is_virtual && !it.seen.is_portable
        };
        if wholes.iter().any(has_not_said) {
            // It may be one of them.
            return Vec::new();
        }
        let known = self.memory.disks.iter();
        let gone = known.filter(|(key, _)| !is_here(key));
        gone.map(|(_, known)| missing(known)).collect()
    }
}

fn here(whole: &Whole<'_>) -> Here {
    Here {
        key: whole.key.clone(),
        id: whole.id.clone(),
        serial: whole.identity.serial.clone(),
        model: whole.identity.model.clone(),
        names: whole.names.clone(),
    }
}

fn judge_facts(view: &mut DiskView, facts: &DiskFacts, samples: &[Sample]) {
    let judgement = judge(&Evidence {
        identity: &view.identity,
        facts,
        samples,
    });
    view.health = judgement.verdict();
    view.findings = judgement.findings;
    view.forecasts = judgement.forecasts;
    view.no_forecast = judgement.no_forecast;
    view.trends = trends(facts, samples);
}

/// What the system says of a disk counts before what the disk says, and so does its silence where
/// it once spoke.
fn judge_state(view: &mut DiskView, state: &str) {
    let mut first = |verdict: DiskVerdict, cause: String, next_step: &str| {
        let finding = DiskFinding {
            verdict,
            cause,
            next_step: next_step.to_owned(),
        };
        let worse = view.findings.iter().take_while(|it| it.verdict > verdict);
        let place = worse.count();
        view.findings.insert(place, finding);
        view.health = view.health.max(verdict);
    };
    if ["offline", "dead", "transport-offline", "blocked"].contains(&state) {
        let cause = format!("the system has taken it out of use (state \"{state}\")");
        let next =
            "check the kernel's log, its cable and its bay; replace it where it does not come back";
        first(DiskVerdict::Failing, cause, next);
    }
    let spoke = view.read_at.clone();
    if let (SmartState::Failed | SmartState::TimedOut, Some(spoke)) = (view.smart, spoke) {
        let day: String = spoke.chars().take("2027-02-10".len()).collect();
        let why = view.smart_detail.clone().unwrap_or_default();
        let cause = format!("it reported its health until {day} and does not any more ({why})");
        let next = "check the kernel's log, its cable and its bay";
        first(DiskVerdict::Watch, cause, next);
    }
}

fn missing(known: &KnownDisk) -> DiskView {
    let since = moment(known.last_seen);
    let day: String = since.chars().take("2027-02-10".len()).collect();
    let place = known.bay.as_ref().map(|bay| format!(" in bay {bay}"));
    let id = identifier(&known.identity, "missing");
    let (verdict, used) = if known.used_by.is_empty() {
        (DiskVerdict::Watch, String::new())
    } else {
        let used = format!("; on it: {}", known.used_by.join(", "));
        (DiskVerdict::Failing, used)
    };
    let finding = DiskFinding {
        verdict,
        cause: format!(
            "it is not there any more; it was last seen on {day}{}{used}",
            place.unwrap_or_default()
        ),
        next_step: format!(
            "push it in again, and check its bay and cable; where it was taken out on purpose: causeway disk forget {id}"
        ),
    };
    DiskView {
        id,
        identity: known.identity.clone(),
        health: verdict,
        findings: vec![finding],
        smart: SmartState::Missing,
        used_by: known.used_by.clone(),
        bay: known.bay.clone(),
        missing_since: Some(since),
        ..DiskView::default()
    }
}

/// What keeps disks from being read.
fn notes(wholes: &[Whole<'_>], disks: &[DiskView]) -> Vec<String> {
    let is_real = |disk: &&DiskView| {
        let whole = wholes.iter().find(|it| it.id == disk.id);
        whole.is_some_and(|it| !it.seen.is_virtual)
    };
    let real: Vec<&DiskView> = disks.iter().filter(is_real).collect();
    let count = |state: SmartState| real.iter().filter(|it| it.smart == state).count();
    let mut notes = Vec::new();
    let without = count(SmartState::NoSmartctl);
    if without > 0 {
        notes.push(format!(
            "the health of {without} disks is unknown: smartctl is not installed (apt install smartmontools)"
        ));
    }
    let refused = count(SmartState::NotPermitted);
    if refused > 0 {
        notes.push(format!(
            "the health of {refused} disks is unknown: the daemon's user may not ask them (SATA takes CAP_SYS_RAWIO, NVMe \
             CAP_SYS_ADMIN); have root ask them: systemctl enable --now causeway-disks.timer"
        ));
    }
    notes
}
