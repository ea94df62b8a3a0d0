//! Sessions that ended, kept for whoever asks what happened since the last time.
//!
//! **Contract.** A session is in here before it is missing from the list of sessions. Of those that
//! ended the last [`KEPT`] are known, and whoever comes later learns how many are not.

use crate::session::{SessionInfo, SessionNumber};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many are kept.
const KEPT: usize = 1_024;

/// A session that is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedSession {
    /// By which it was listed while it lived.
    pub number: SessionNumber,
    /// The host that the initiator was at its login.
    pub host: Option<String>,
    /// The initiator's iSCSI name.
    pub initiator: String,
    /// The target's iSCSI name; discovery sessions have none.
    pub target: Option<String>,
    /// The initiator's address.
    pub peer: SocketAddr,
    /// Why it ended, in words.
    pub reason: String,
}

impl EndedSession {
    pub(crate) fn new(info: &SessionInfo, reason: String) -> Self {
        Self {
            number: info.number,
            host: info.host.clone(),
            initiator: info.initiator.clone(),
            target: info.target.clone(),
            peer: info.peer,
            reason,
        }
    }
}

/// What somebody gets who asks.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EndedSince {
    /// In the order in which they ended.
    pub sessions: Vec<EndedSession>,
    /// The place to name the next time.
    pub next: u64,
    /// How many are not known any more.
    pub lost: u64,
}

/// The last sessions that ended.
#[derive(Default)]
pub(crate) struct Ended(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    sessions: VecDeque<EndedSession>,
    /// How many ended before those that are there.
    gone: u64,
}

impl Ended {
    fn locked(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, session: EndedSession) {
        let mut kept = self.locked();
        kept.sessions.push_back(session);
        if kept.sessions.len() > KEPT {
            kept.sessions.pop_front();
            kept.gone += 1;
        }
    }

    /// Those that ended from `place` on; 0 is the start of the program.
    pub(crate) fn since(&self, place: u64) -> EndedSince {
        let kept = self.locked();
        let known = usize::try_from(place.saturating_sub(kept.gone)).unwrap_or(usize::MAX);
        EndedSince {
            sessions: kept.sessions.iter().skip(known).cloned().collect(),
            next: kept.gone + kept.sessions.len() as u64,
            lost: kept.gone.saturating_sub(place),
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn session(number: u64) -> EndedSession {
        EndedSession {
            number: SessionNumber(number),
            host: None,
            initiator: "iqn.1998-01.com.example:h".to_owned(),
            target: None,
            peer: "192.0.2.1:1".parse().unwrap(),
            reason: String::new(),
        }
    }

    #[test]
    fn each_is_listed_once_and_what_is_lost_is_counted() {
        let ended = Ended::default();
        let numbers = |since: &EndedSince| -> Vec<u64> {
            since.sessions.iter().map(|it| it.number.0).collect()
        };
        ended.add(session(1));
        ended.add(session(2));
        let first = ended.since(0);
        assert_eq!(
            (numbers(&first), first.next, first.lost),
            (vec![1, 2], 2, 0)
        );
        ended.add(session(3));
        let second = ended.since(first.next);
        assert_eq!((numbers(&second), second.next), (vec![3], 3));
        assert_eq!(numbers(&ended.since(second.next)), [0; 0]);
        for number in 0..2_000 {
            ended.add(session(number));
        }
        let late = ended.since(second.next);
        assert_eq!(late.sessions.len(), KEPT);
        assert_eq!(late.lost + KEPT as u64, 2_000);
        assert_eq!(late.next, 2_003);
    }
}
