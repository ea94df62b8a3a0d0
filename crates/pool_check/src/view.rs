//! A pool as `pool check` reports it.

use manifest::code::Code;
use manifest::problem::Problem;
use serde::Serialize;

/// A member as it is reported.
#[derive(Debug, Serialize)]
pub struct MemberView {
    /// Its number in the pool; absent: it is none of its members.
    pub member: Option<u16>,
    /// Its own number.
    pub id: Option<String>,
    /// Where it is, or was last.
    pub path: String,
    /// The device's serial number, where it has one.
    pub serial: Option<String>,
    /// What stands on it ...
    pub event: Option<u64>,
    /// ... and what the pool expects there.
    pub last_event: Option<u64>,
    /// Bytes of the file or device.
    pub size: Option<u64>,
    /// `present`, or what is wrong with it.
    pub state: String,
    /// It can be used.
    #[serde(skip)]
    pub is_present: bool,
}

/// A LUN of the pool.
#[derive(Debug, Serialize)]
pub struct LunView {
    /// Its NAA identifier.
    pub naa: String,
    /// Its size.
    pub bytes: u64,
    /// The daemon would serve it.
    pub served: bool,
    /// `can be served`, or why not.
    pub state: String,
    /// How its map of checksums is, where it has one.
    pub checksums: Option<String>,
    /// How its history is, where it has one.
    pub history: Option<String>,
    /// What else is damaged.
    #[serde(skip)]
    pub problem: Option<String>,
}

/// What `pool check` reports.
#[derive(Debug, Serialize)]
pub struct PoolView {
    /// Its number, where it has one.
    pub pool: Option<String>,
    /// `directory`, `span` or `stripe`.
    pub layout: &'static str,
    /// Counts the changes of a pool of members.
    pub event: Option<u64>,
    /// Whether it has one; absent: that cannot be read.
    pub journal: Option<bool>,
    /// All members are there.
    pub complete: bool,
    /// And all that was examined can be used.
    pub good: bool,
    /// Those that have data in it, or something that belongs to data.
    pub luns: Vec<LunView>,
    /// All of its space, in bytes.
    pub room: Option<u64>,
    /// What of it is free.
    pub free: Option<u64>,
    /// Those that it has, and then what else was named.
    pub members: Vec<MemberView>,
    /// Why the daemon would not take it.
    #[serde(skip)]
    pub refused: Option<Problem>,
}

impl PoolView {
    /// What is wrong with it, as one problem; `None`: all that was examined can be used.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
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
}
