//! Logins that were refused, kept for people who ask why, and how often each answer was given.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::WallClock;

/// How many are kept.
const KEPT: usize = 64;

/// A login that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedLogin {
    /// When.
    pub at: WallClock,
    /// From where.
    pub peer: SocketAddr,
    /// The portal's address, as the initiator reached it.
    pub portal: SocketAddr,
    /// The name that the initiator gave, if it came that far.
    pub initiator: Option<String>,
    /// The target that it asked for.
    pub target: Option<String>,
    /// Status class and detail that it was told, such as `0201h authentication failure`.
    pub status: String,
    /// Why, in words.
    pub reason: String,
}

impl RefusedLogin {
    /// It was sent to another address (status class 01h).
    #[must_use]
    pub fn is_redirect(&self) -> bool {
        self.status.starts_with("01")
    }
}

/// How many logins ended how, since the start.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LoginCounts {
    /// Sessions that began.
    pub accepted: u64,
    /// Refusals and redirections, by the status that was told, such as `0201h authentication failure`. There
    /// are no more of them than the standard has statuses.
    pub refused: BTreeMap<String, u64>,
}

/// The last refused logins.
#[derive(Default)]
pub struct Refusals {
    kept: Mutex<VecDeque<RefusedLogin>>,
    counts: Mutex<LoginCounts>,
    turned_away: std::sync::atomic::AtomicU64,
}

impl Refusals {
    /// Newest first.
    #[must_use]
    pub fn list(&self) -> Vec<RefusedLogin> {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .rev()
            .cloned()
            .collect()
    }

    /// Connections that were closed at once because too many had not logged in yet.
    #[must_use]
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// How many logins ended how.
    #[must_use]
    pub fn counts(&self) -> LoginCounts {
        self.locked_counts().clone()
    }

    fn locked_counts(&self) -> MutexGuard<'_, LoginCounts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn accepted(&self) {
        self.locked_counts().accepted += 1;
    }

    pub(crate) fn add(&self, refused: RefusedLogin) {
        let status = refused.status.clone();
        *self.locked_counts().refused.entry(status).or_default() += 1;
        let initiator = refused.initiator.as_deref().unwrap_or("-");
        let target_name = refused.target.as_deref().unwrap_or("-");
        if refused.is_redirect() {
            // As the administrator wanted it.
            tracing::info!(
                peer = %refused.peer, portal = %refused.portal, initiator, target_name,
                status = refused.status,
                "login redirected: {}", refused.reason
            );
        } else {
            tracing::warn!(
                peer = %refused.peer, portal = %refused.portal, initiator, target_name,
                status = refused.status,
                "login refused: {}", refused.reason
            );
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(refused);
    }

    pub(crate) fn too_many_logins(&self, peer: SocketAddr) {
        let before = self
            .turned_away
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if before.is_multiple_of(1000) {
            tracing::warn!(%peer, "too many connections have not logged in: new ones are closed at once");
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn every_refusal_is_counted_although_only_the_last_are_kept() {
        let refusals = Refusals::default();
        let refused = |status: &str| RefusedLogin {
            at: WallClock::default(),
            peer: "192.0.2.9:1024".parse().unwrap(),
            portal: "192.0.2.1:3260".parse().unwrap(),
            initiator: None,
            target: None,
            status: status.to_owned(),
            reason: "test".to_owned(),
        };
        for _ in 0..KEPT {
            refusals.add(refused("0203h not found"));
        }
        refusals.add(refused("0301h service unavailable"));
        refusals.accepted();
        let list = refusals.list();
        assert_eq!(list.len(), KEPT);
        assert_eq!(list[0].status, "0301h service unavailable");
        let counts = refusals.counts();
        assert_eq!(counts.accepted, 1);
        let of = |status: &str| counts.refused.get(status).copied();
        assert_eq!(of("0203h not found"), Some(KEPT as u64));
        assert_eq!(of("0301h service unavailable"), Some(1));
    }
}
