//! From how journals are to what happened in them: pure.
//!
//! What was reported stays until it is seen to be over. A journal that is not open says nothing of
//! what it holds, so that ends nothing.

use events::{Code, Happened, Object};
use manifest::facts::PoolFacts;
use manifest::journal::{JournalFacts, JournalState};
use std::collections::{BTreeMap, BTreeSet};

/// From so much in use on a journal is full, in thousandths.
const FULL_PERMILLE: u64 = 900;

/// With less in use it has room again, in thousandths.
const ROOM_PERMILLE: u64 = 800;

/// What was reported of a journal, and is not over.
#[derive(Default)]
struct Reported {
    is_full: bool,
    /// LUNs whose writes cannot be destaged.
    failing: BTreeSet<String>,
}

/// What was reported of journals, by pool.
#[derive(Default)]
pub(crate) struct JournalEvents(BTreeMap<String, Reported>);

impl JournalEvents {
    /// What happened until now.
    pub(crate) fn take(&mut self, pools: &[PoolFacts], happened: &mut Vec<Happened>) {
        let names: BTreeSet<&str> = pools.iter().map(|pool| &*pool.name).collect();
        self.0.retain(|name, _| names.contains(&**name));
        for pool in pools {
            let open = pool
                .journal
                .as_ref()
                .filter(|it| it.state == JournalState::Open);
            if let Some(journal) = open {
                let reported = self.0.entry(pool.name.clone()).or_default();
                reported.fill(&pool.name, journal, happened);
                reported.destage(&pool.name, journal, happened);
            }
        }
    }
}

impl Reported {
    fn fill(&mut self, pool: &str, journal: &JournalFacts, happened: &mut Vec<Happened>) {
        let fill = journal.fill_permille();
        let is_full = if self.is_full {
            fill >= ROOM_PERMILLE
        } else {
            fill >= FULL_PERMILLE
        };
        if is_full == std::mem::replace(&mut self.is_full, is_full) {
            return;
        }
        let (code, how) = if is_full {
            let how = "is full: writes are as fast as the pool's disks";
            (Code::JournalFull, how)
        } else {
            (Code::JournalHasRoom, "has room again")
        };
        let message = format!("the journal of pool {pool} {how}");
        let event = Happened::new(code, Object::new("pool", pool), message);
        let event = event.with("used_bytes", journal.used_bytes);
        happened.push(event.with("size_bytes", journal.size_bytes));
    }

    fn destage(&mut self, pool: &str, journal: &JournalFacts, happened: &mut Vec<Happened>) {
        let errors = journal.destage_errors.iter();
        let now: BTreeMap<&str, &str> = errors.map(|it| (&*it.lun, &*it.reason)).collect();
        for (lun, reason) in now.iter().filter(|(lun, _)| !self.failing.contains(**lun)) {
            let message = format!(
                "what the journal of pool {pool} holds of LUN {lun} cannot be destaged: {reason}"
            );
            let event = Happened::new(Code::DestageFailing, Object::new("lun", lun), message);
            happened.push(event.with("pool", pool).with("reason", *reason));
        }
        for lun in self.failing.iter().filter(|lun| !now.contains_key(&***lun)) {
            let message = format!("what the journal of pool {pool} holds of LUN {lun} is destaged");
            let event = Happened::new(Code::DestageWell, Object::new("lun", lun), message);
            happened.push(event.with("pool", pool));
        }
        self.failing = now.into_keys().map(str::to_owned).collect();
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture;
    use manifest::journal::DestageError;
    use serde_json::json;

    /// A journal with so many of 1,000 bytes in use, and these LUNs that cannot be destaged.
    fn pool(state: JournalState, used: u64, failing: &[&str]) -> PoolFacts {
        let mut pool = fixture::pool("p");
        let errors = failing.iter().map(|lun| DestageError {
            lun: (*lun).to_owned(),
            reason: "no space".to_owned(),
        });
        pool.journal = Some(JournalFacts {
            state,
            size_bytes: 1000,
            used_bytes: used,
            destage_errors: errors.collect(),
            ..JournalFacts::missing("/j".to_owned(), String::new())
        });
        pool
    }

    fn names(happened: &[Happened]) -> Vec<(&'static str, &str)> {
        let each = happened.iter();
        each.map(|it| (it.code.entry().name, it.object.name.as_str()))
            .collect()
    }

    #[test]
    fn a_journal_is_reported_when_it_is_full_and_when_it_has_room_and_not_between() {
        let mut events = JournalEvents::default();
        let mut now = |used: u64| {
            let mut happened = Vec::new();
            events.take(&[pool(JournalState::Open, used, &[])], &mut happened);
            names(&happened)
                .iter()
                .map(|it| it.0)
                .collect::<Vec<&str>>()
        };
        assert_eq!(now(899), [""; 0]);
        assert_eq!(now(900), ["journal_full"]);
        assert_eq!(now(1000), [""; 0]);
        assert_eq!(now(850), [""; 0], "neither");
        assert_eq!(now(799), ["journal_has_room"]);
        assert_eq!(now(850), [""; 0]);
    }

    #[test]
    fn what_cannot_be_destaged_is_reported_for_each_lun_until_it_is() {
        let (open, missing) = (JournalState::Open, JournalState::Missing);
        let mut events = JournalEvents::default();
        let mut now = |state, failing: &[&str]| {
            let mut happened = Vec::new();
            events.take(&[pool(state, 0, failing)], &mut happened);
            happened
        };
        assert_eq!(names(&now(open, &[])), []);
        let failing = now(open, &["l", "m"]);
        assert_eq!(
            names(&failing),
            [("destage_failing", "l"), ("destage_failing", "m")]
        );
        let fields = json!({ "pool": "p", "reason": "no space" });
        assert_eq!(serde_json::Value::from(failing[0].fields.clone()), fields);
        assert_eq!(names(&now(open, &["l", "m"])), [], "once");
        assert_eq!(names(&now(missing, &[])), [], "nobody knows");
        assert_eq!(names(&now(open, &["m"])), [("destage_well", "l")]);
        assert_eq!(names(&now(open, &[])), [("destage_well", "m")]);
        let mut events = JournalEvents::default();
        let mut at_start = Vec::new();
        events.take(&[pool(open, 950, &["l"])], &mut at_start);
        assert_eq!(
            names(&at_start),
            [("journal_full", "p"), ("destage_failing", "l")]
        );
    }
}
