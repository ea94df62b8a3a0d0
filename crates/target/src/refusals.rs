//! Logins that were refused, kept for people who ask why.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
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
    /// The name that the initiator gave, if it came that far.
    pub initiator: Option<String>,
    /// The target that it asked for.
    pub target: Option<String>,
    /// Status class and detail that it was told, such as `0201h authentication failure`.
    pub status: String,
    /// Why, in words.
    pub reason: String,
}

/// The last refused logins.
#[derive(Default)]
pub struct Refusals {
    kept: Mutex<VecDeque<RefusedLogin>>,
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

    pub(crate) fn add(&self, refused: RefusedLogin) {
        tracing::warn!(
            peer = %refused.peer,
            initiator = refused.initiator.as_deref().unwrap_or("-"),
            target_name = refused.target.as_deref().unwrap_or("-"),
            status = refused.status,
            "login refused: {}", refused.reason
        );
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
