//! Logins that were refused, kept for people who ask why, and how often each answer was given.
//!
//! **Contract.** One that is refused again and again for the same reason is one entry with a count,
//! and when there are too many the oldest of the source with the most goes: a stranger pushes out
//! only what is its own. The log has a line for the first, the tenth, the hundredth.

use crate::login_places::Source;
use iscsi::LoginStatus;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use units::WallClock;

/// How many are kept.
const KEPT: usize = 64;

/// A login that did not become a session: who, where from, and why not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedLogin {
    /// When; the last time.
    pub at: WallClock,
    /// How often, from this source and with the same words.
    pub times: u64,
    /// From where; the last time.
    pub peer: SocketAddr,
    /// The portal's address, as the initiator reached it.
    pub portal: SocketAddr,
    /// The name that the initiator gave, if it came that far.
    pub initiator: Option<String>,
    /// The target that it asked for.
    pub target: Option<String>,
    /// Status class and detail of the answer, such as `0201h authentication failure`.
    pub status: String,
    /// Why, in words.
    pub reason: String,
}

impl RefusedLogin {
    fn is_the_same(&self, other: &Self) -> bool {
        let of = |it: &Self| Source::of(it.peer.ip());
        of(self) == of(other)
            && (&self.initiator, &self.target) == (&other.initiator, &other.target)
            && (&self.status, &self.reason) == (&other.status, &other.reason)
    }

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
    /// Refusals and redirections, by the status of the answer, such as `0201h authentication
    /// failure`. There are no more of them than the standard has statuses.
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
        let kept = self.keep(refused);
        if is_power_of_ten(kept.times) {
            log(&kept);
        }
    }

    /// A discovery that reported nothing, because nothing is granted: no login was refused, and
    /// this is where the reason is found.
    pub(crate) fn discovered_nothing(&self, asked: RefusedLogin) {
        let kept = self.keep(asked);
        if is_power_of_ten(kept.times) {
            let initiator = kept.initiator.as_deref().unwrap_or("-");
            tracing::warn!(
                peer = %kept.peer, portal = %kept.portal, initiator, times = kept.times,
                "{}", kept.reason
            );
        }
    }

    /// Keeps it, with what was the same before.
    fn keep(&self, mut refused: RefusedLogin) -> RefusedLogin {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.iter().position(|one| one.is_the_same(&refused));
        match before.and_then(|index| kept.remove(index)) {
            Some(before) => refused.times = refused.times.saturating_add(before.times),
            None if kept.len() >= KEPT => push_out(&mut kept),
            None => {}
        }
        kept.push_back(refused.clone());
        refused
    }

    /// A connection was closed at once: there are as many sessions as may be.
    pub(crate) fn turn_away(&self, at: WallClock, peer: SocketAddr, portal: SocketAddr) {
        self.turned_away
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.add(RefusedLogin {
            at,
            times: 1,
            peer,
            portal,
            initiator: None,
            target: None,
            status: LoginStatus::OutOfResources.to_string(),
            reason: "as many sessions as may be exist: the connection was closed at once"
                .to_owned(),
        });
    }
}

/// The oldest of the source that has the most goes.
fn push_out(kept: &mut VecDeque<RefusedLogin>) {
    let of = |one: &RefusedLogin| Source::of(one.peer.ip());
    let mut counts: BTreeMap<Source, usize> = BTreeMap::new();
    for one in kept.iter() {
        *counts.entry(of(one)).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    let oldest = kept
        .iter()
        .position(|one| most.is_some_and(|(source, _)| of(one) == source));
    kept.remove(oldest.unwrap_or(0));
}

fn is_power_of_ten(times: u64) -> bool {
    let mut power = 1_u64;
    while power < times {
        power = power.saturating_mul(10);
    }
    power == times
}

fn log(refused: &RefusedLogin) {
    let initiator = refused.initiator.as_deref().unwrap_or("-");
    let target_name = refused.target.as_deref().unwrap_or("-");
    if refused.is_redirect() {
        // As the administrator wanted it.
        tracing::info!(
            peer = %refused.peer, portal = %refused.portal, initiator, target_name,
            status = refused.status, times = refused.times,
            "login redirected: {}", refused.reason
        );
    } else {
        tracing::warn!(
            peer = %refused.peer, portal = %refused.portal, initiator, target_name,
            status = refused.status, times = refused.times,
            "login refused: {}", refused.reason
        );
    }
}

#[cfg(test)]
mod test {
    use super::*;

    fn refused(peer: &str, initiator: &str, status: &str) -> RefusedLogin {
        RefusedLogin {
            at: WallClock::default(),
            times: 1,
            peer: peer.parse().unwrap(),
            portal: "192.0.2.1:3260".parse().unwrap(),
            initiator: Some(initiator.to_owned()),
            target: None,
            status: status.to_owned(),
            reason: "test".to_owned(),
        }
    }

    #[test]
    fn every_refusal_is_counted_although_only_the_last_are_kept() {
        let refusals = Refusals::default();
        for number in 0..KEPT {
            let name = format!("iqn.x:{number}");
            refusals.add(refused("192.0.2.9:1024", &name, "0203h not found"));
        }
        refusals.add(refused(
            "192.0.2.9:1024",
            "iqn.x:last",
            "0301h service unavailable",
        ));
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

    #[test]
    fn a_stranger_pushes_out_what_is_its_own_and_repeats_are_counted_in_one_entry() {
        let refusals = Refusals::default();
        refusals.add(refused("192.0.2.1:1024", "iqn.x:honest", "0203h not found"));
        for number in 0..1000_u16 {
            let peer = format!("[2001:db8::{number:x}]:{}", 1024 + number);
            refusals.add(refused(
                &peer,
                &format!("iqn.y:{number}"),
                "0203h not found",
            ));
            let same = format!("192.0.2.77:{}", 2000 + number);
            refusals.add(refused(&same, "iqn.z:again", "0203h not found"));
        }
        let list = refusals.list();
        assert_eq!(list.len(), KEPT);
        let times = |name: &str| {
            let of = |one: &&RefusedLogin| one.initiator.as_deref() == Some(name);
            list.iter().find(of).map(|one| (one.times, one.peer.port()))
        };
        assert_eq!(times("iqn.x:honest"), Some((1, 1024)));
        assert_eq!(times("iqn.z:again"), Some((1000, 2999)));
        assert_eq!(times("iqn.y:999"), Some((1, 2023)));
        let reported: Vec<u64> = (0..2000).filter(|times| is_power_of_ten(*times)).collect();
        assert_eq!(reported, [1, 10, 100, 1000]);
    }

    #[test]
    fn a_discovery_that_finds_nothing_is_kept_once_and_counts_as_no_login() {
        let refusals = Refusals::default();
        let asked = |initiator: &str, at| RefusedLogin {
            at: WallClock(at),
            ..refused("192.0.2.9:1024", initiator, "0000h success")
        };
        refusals.discovered_nothing(asked("iqn.a:x", 1));
        refusals.discovered_nothing(asked("iqn.a:x", 2));
        refusals.discovered_nothing(asked("iqn.b:y", 3));
        let times: Vec<WallClock> = refusals.list().iter().map(|it| it.at).collect();
        assert_eq!(times, [WallClock(3), WallClock(2)]);
        assert_eq!(refusals.counts().refused.len(), 0);
    }
}
