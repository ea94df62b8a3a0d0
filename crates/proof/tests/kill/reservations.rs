//! A persistent reservation that changes while the daemon is killed.
//!
//! Spec: SPC-4 6.15 "PERSISTENT RESERVE IN command", 6.16 "PERSISTENT RESERVE OUT command", 5.9.5.3
//! "Preserving persistent reservations and registrations through power loss" (APTPL).

use env::sim::Rng;
use proof::sim::initiator::Host;
use units::Buf;

const GOOD: u8 = 0x00;
const RESERVATION_CONFLICT: u8 = 0x18;

const REGISTER_AND_IGNORE: u8 = 6;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;

/// Write exclusive, exclusive access, and both with registrants only: in each of them whoever is
/// not registered may not write.
const TYPES: [u8; 4] = [1, 3, 5, 6];

/// What is registered and reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Held {
    key: u64,
    kind: Option<u8>,
}

/// What should be there.
pub(crate) struct Reservations {
    held: Held,
    pending: Option<Held>,
    rng: Rng,
    /// Changes that were answered with success.
    pub(crate) acknowledged: u64,
}

fn out(action: u8, kind: u8, key: u64, new_key: u64) -> ([u8; 16], Buf) {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2], cdb[8]) = (0x5F, action, kind, 24);
    let mut list = [0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&new_key.to_be_bytes());
    list[20] = u8::from(action == REGISTER_AND_IGNORE); // APTPL
    (cdb, Buf::copy_of(&list))
}

async fn reported(host: &Host, action: u8) -> Result<Vec<u8>, String> {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[8]) = (0x5E, action, 0xFF);
    let answer = host.command(cdb, Buf::empty(), 0xFF).await;
    match answer {
        Some(done) if done.status == GOOD => Ok(done.data_in.to_vec()),
        other => Err(format!("PERSISTENT RESERVE IN {action}: {other:?}")),
    }
}

fn number(bytes: &[u8]) -> u64 {
    let eight = bytes.try_into().expect("eight bytes");
    u64::from_be_bytes(eight)
}

impl Reservations {
    /// Nothing yet.
    pub(crate) fn new(rng: Rng) -> Self {
        let held = Held { key: 0, kind: None };
        Self {
            held,
            pending: None,
            rng,
            acknowledged: 0,
        }
    }

    /// Changes one thing after the other until the session is lost.
    pub(crate) async fn change(&mut self, host: &Host) -> Result<(), String> {
        loop {
            let Held { key, kind } = self.held;
            let fresh = self.rng.between(1, u64::MAX);
            let (next, (cdb, list)) = match kind {
                _ if key == 0 || self.rng.below(2) == 0 => (
                    Held { key: fresh, kind },
                    out(REGISTER_AND_IGNORE, 0, 0, fresh),
                ),
                Some(kind) => (Held { key, kind: None }, out(RELEASE, kind, key, 0)),
                None => {
                    let kind = *self.rng.pick(&TYPES);
                    let next = Held {
                        key,
                        kind: Some(kind),
                    };
                    (next, out(RESERVE, kind, key, 0))
                }
            };
            self.pending = Some(next);
            match host.command(cdb, list, 0).await {
                None => return Ok(()),
                Some(done) if done.status == GOOD => {
                    (self.held, self.pending) = (next, None);
                    self.acknowledged += 1;
                }
                Some(done) => return Err(format!("{next:?} after {:?}: {done:?}", self.held)),
            }
        }
    }

    /// Compares with what a daemon has after a kill. `stranger` is not registered.
    pub(crate) async fn check(&mut self, host: &Host, stranger: &Host) -> Result<(), String> {
        let keys = reported(host, 0).await?;
        let key = keys.get(8..16).map_or(0, number);
        if keys.len() > 16 {
            return Err(format!("more than one key is registered: {keys:02x?}"));
        }
        let reservation = reported(host, 1).await?;
        let kind = reservation
            .get(21)
            .map(|scope_and_type| scope_and_type & 15);
        let found = Held { key, kind };
        if found != self.held && self.pending != Some(found) {
            let (held, pending) = (self.held, self.pending);
            return Err(format!(
                "reservations: {found:?}, should be {held:?}, or {pending:?} which was in flight"
            ));
        }
        if kind.is_some() && reservation.get(8..16).map(number) != Some(key) {
            return Err(format!("the holder is another: {reservation:02x?}"));
        }
        (self.held, self.pending) = (found, None);
        let mut write = [0; 16];
        (write[0], write[13]) = (0x8A, 1);
        let answer = stranger.command(write, Buf::zeroes(512), 0).await;
        let status = answer.map(|done| done.status);
        let expected = kind.map_or(GOOD, |_| RESERVATION_CONFLICT);
        if status != Some(expected) {
            return Err(format!("{found:?}: a stranger's write ended {status:x?}"));
        }
        Ok(())
    }
}
