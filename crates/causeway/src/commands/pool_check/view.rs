//! A pool as `pool check` tells it.

use crate::output::{rounded, table};
use manifest::code::Code;
use manifest::problem::Problem;
use serde::Serialize;

/// A member as it is told.
#[derive(Serialize)]
pub(super) struct MemberView {
    pub(super) member: Option<u16>,
    /// Its own number.
    pub(super) id: Option<String>,
    pub(super) path: String,
    pub(super) serial: Option<String>,
    /// What stands on it ...
    pub(super) event: Option<u64>,
    /// ... and what the pool expects there.
    pub(super) last_event: Option<u64>,
    pub(super) size: Option<u64>,
    pub(super) state: String,
    #[serde(skip)]
    pub(super) is_present: bool,
}

/// A LUN of the pool.
#[derive(Serialize)]
pub(super) struct LunView {
    pub(super) naa: String,
    pub(super) bytes: u64,
    pub(super) served: bool,
    pub(super) state: String,
    /// How its map of checksums is, where it has one.
    pub(super) checksums: Option<String>,
    /// How its history is, where it has one.
    pub(super) history: Option<String>,
    /// What is damaged beside it.
    #[serde(skip)]
    pub(super) problem: Option<String>,
}

/// What `pool check` tells.
#[derive(Serialize)]
pub(super) struct PoolView {
    pub(super) pool: Option<String>,
    pub(super) layout: &'static str,
    pub(super) event: Option<u64>,
    /// Whether it has one; absent: that cannot be read.
    pub(super) journal: Option<bool>,
    /// All members are there.
    pub(super) complete: bool,
    /// And all that was examined can be used.
    pub(super) good: bool,
    pub(super) luns: Vec<LunView>,
    pub(super) room: Option<u64>,
    pub(super) free: Option<u64>,
    pub(super) members: Vec<MemberView>,
    /// Why the daemon would not take it.
    #[serde(skip)]
    pub(super) refused: Option<Problem>,
}

impl PoolView {
    /// What is wrong with it.
    pub(super) fn problem(&self) -> Option<Problem> {
        if self.good {
            return None;
        }
        if let Some(refused) = &self.refused {
            return Some(refused.clone());
        }
        let away = self.members.iter().filter(|member| !member.is_present);
        let away: Vec<String> = away
            .map(|member| format!("{}: {}", member.path, member.state))
            .collect();
        if !self.complete {
            return Some(Problem::new(Code::PoolIncomplete, away.join("; ")));
        }
        let luns = self.luns.iter().filter_map(|lun| {
            let problem = lun.problem.as_ref()?;
            Some(format!("LUN {}: {problem}", lun.naa))
        });
        let luns: Vec<String> = luns.collect();
        Some(Problem::new(Code::PoolUnreadable, luns.join("; ")))
    }

    /// As lines of a terminal; the same facts as the JSON.
    pub(super) fn people(&self) -> String {
        let event = self
            .event
            .map_or_else(String::new, |event| format!(", event {event}"));
        let verdict = match (self.complete, self.good) {
            (true, true) => "complete",
            (true, false) => "DAMAGED",
            (false, _) => "NOT COMPLETE",
        };
        let journal = match self.journal {
            Some(true) => "it has a journal: causeway pool check JOURNAL examines it",
            Some(false) => "it has no journal",
            None => "nobody knows whether it has a journal",
        };
        let mut out = format!(
            "pool {} ({}){event}, {} of {} free, {verdict}\n{journal}\n\n",
            self.pool.as_deref().unwrap_or("without a number"),
            self.layout,
            rounded(self.free.unwrap_or(0)),
            rounded(self.room.unwrap_or(0)),
        );
        let rows: Vec<Vec<String>> = self.members.iter().map(MemberView::row).collect();
        out.push_str(&table(
            &["MEMBER", "PATH", "SERIAL", "EVENT", "SIZE", "STATE"],
            &rows,
        ));
        let rows: Vec<Vec<String>> = self.luns.iter().map(LunView::row).collect();
        if !rows.is_empty() {
            let head = ["LUN", "SIZE", "STATE", "CHECKSUMS", "HISTORY"];
            out.push_str(&format!("\n{}", table(&head, &rows)));
        }
        out
    }
}

impl MemberView {
    fn row(&self) -> Vec<String> {
        let number = |number: Option<u64>| number.map(|it| it.to_string()).unwrap_or_default();
        vec![
            self.member
                .map_or_else(|| "-".to_owned(), |number| number.to_string()),
            self.path.clone(),
            self.serial.clone().unwrap_or_default(),
            number(self.event),
            self.size.map(rounded).unwrap_or_default(),
            self.state.clone(),
        ]
    }
}

impl LunView {
    fn row(&self) -> Vec<String> {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            self.naa.clone(),
            rounded(self.bytes),
            self.state.clone(),
            or_none(&self.checksums),
            or_none(&self.history),
        ]
    }
}
