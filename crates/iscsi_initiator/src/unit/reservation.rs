//! The host's reservation key: registered on every path before it carries I/O, and never again
//! after another host has taken it away.
//!
//! ```text
//!   unregistered --first path: REGISTER AND IGNORE EXISTING KEY--> registered
//!   registered --a later path: the key is among READ KEYS--> registered
//!       '-- it is not: PREEMPT or CLEAR by another host --> preempted
//! ```
//!
//! **Contract.** A unit with a key lets no path carry I/O that has not registered it. A path that
//! comes while the unit has lost its key everywhere joins without one, and from then on nothing
//! that changes the medium is sent on any path: this host was shut out, and a new registration
//! would let it in again. Only a program that opens the volume anew registers anew.
//!
//! Spec: SPC-4 5.13 "Persistent reservations", 6.15 "PERSISTENT RESERVE IN command", 6.16
//! "PERSISTENT RESERVE OUT command".

use super::cdb;
use super::probe::{Asker, NoAnswer};
use scsi::Status;
use std::cell::Cell;
use units::Buf;

/// Room for the registered keys, in bytes.
const KEYS_BYTES: u16 = 8192;
/// REGISTER, REGISTER AND IGNORE EXISTING KEY.
const REGISTER: u8 = 0x00;
const REGISTER_AND_IGNORE: u8 = 0x06;
const PARAMETER_BYTES: usize = 24;

/// How this host's key stands at the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Unregistered,
    Registered,
    Preempted,
}

/// A key, and what became of it.
#[derive(Debug)]
pub(super) struct Reservation {
    key: u64,
    standing: Cell<Standing>,
}

/// What has become of the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// This nexus had lost it, and has it again.
    Registered,
    /// This nexus has it.
    Held,
    /// Nobody of this host has it any more, or it cannot be found out.
    Gone,
}

impl Reservation {
    pub(super) fn new(key: u64) -> Self {
        Self {
            key,
            standing: Cell::new(Standing::Unregistered),
        }
    }

    /// Another host has taken the key away: nothing is written any more.
    pub(super) fn is_preempted(&self) -> bool {
        self.standing.get() == Standing::Preempted
    }

    /// A path is about to join.
    pub(super) async fn join(&self, asker: &Asker<'_>) -> Result<(), NoAnswer> {
        match self.standing.get() {
            Standing::Unregistered => {
                self.register(asker).await?;
                self.standing.set(Standing::Registered);
            }
            Standing::Registered if self.is_known(asker).await? => {
                self.register(asker).await?;
            }
            Standing::Registered => self.standing.set(Standing::Preempted),
            Standing::Preempted => {}
        }
        Ok(())
    }

    /// A command met a reservation conflict, or the target says that reservations have changed.
    pub(super) async fn inspect(&self, asker: &Asker<'_>) -> Found {
        if self.standing.get() != Standing::Registered {
            return Found::Gone;
        }
        match self.is_known(asker).await {
            Ok(true) => {}
            Ok(false) => {
                self.standing.set(Standing::Preempted);
                return Found::Gone;
            }
            Err(_) => return Found::Gone,
        }
        // REGISTER with our own key in both places changes nothing, and conflicts where this nexus
        // does not have it.
        let held = asker.send(
            cdb::persistent_reserve_out(REGISTER, PARAMETER_BYTES),
            self.parameters(self.key, false),
        );
        match held.await {
            Ok(()) => Found::Held,
            Err(NoAnswer::Refused(refusal))
                if refusal.status == Status::ReservationConflict.code() =>
            {
                match self.register(asker).await {
                    Ok(()) => Found::Registered,
                    Err(_) => Found::Gone,
                }
            }
            Err(_) => Found::Gone,
        }
    }

    async fn is_known(&self, asker: &Asker<'_>) -> Result<bool, NoAnswer> {
        let keys = asker.ask(cdb::read_keys(KEYS_BYTES), KEYS_BYTES).await?;
        Ok(has_key(&keys, self.key))
    }

    /// Kept over a power loss of the target where that can be had.
    async fn register(&self, asker: &Asker<'_>) -> Result<(), NoAnswer> {
        let cdb = || cdb::persistent_reserve_out(REGISTER_AND_IGNORE, PARAMETER_BYTES);
        match asker.send(cdb(), self.parameters(0, true)).await {
            // It cannot, or its store fails; a registration for now is better than none.
            Err(NoAnswer::Refused(refusal)) if refusal.status == Status::CheckCondition.code() => {
                asker.send(cdb(), self.parameters(0, false)).await
            }
            other => other,
        }
    }

    /// SPC-4 6.16.3 "Basic PERSISTENT RESERVE OUT parameter list".
    fn parameters(&self, existing: u64, through_power_loss: bool) -> Buf {
        let mut list = [0; PARAMETER_BYTES];
        list[..8].copy_from_slice(&existing.to_be_bytes());
        list[8..16].copy_from_slice(&self.key.to_be_bytes());
        list[20] = u8::from(through_power_loss);
        Buf::copy_of(&list)
    }
}

/// Whether the key is in READ KEYS data (SPC-4 6.15.2 "READ KEYS service action"). A list that was
/// cut is searched as far as it came.
fn has_key(data: &[u8], key: u64) -> bool {
    let keys = data.get(8..).unwrap_or_default();
    let reported = data.get(4..8).and_then(|it| it.first_chunk());
    let reported = reported.map_or(0, |it| u32::from_be_bytes(*it));
    let keys = keys
        .get(..usize::try_from(reported).unwrap_or(usize::MAX))
        .unwrap_or(keys);
    keys.as_chunks::<8>()
        .0
        .iter()
        .any(|it| u64::from_be_bytes(*it) == key)
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_key_is_found_among_those_that_are_reported_and_nowhere_behind_them() {
        let mut data = vec![0, 0, 0, 7, 0, 0, 0, 16];
        for key in [5_u64, 0xab, 9] {
            data.extend_from_slice(&key.to_be_bytes());
        }
        assert!(has_key(&data, 5) && has_key(&data, 0xab));
        assert!(!has_key(&data, 9), "16 bytes are two keys");
        for end in 0..data.len() {
            assert_eq!(has_key(&data[..end], 0xab), end >= 24, "{end}");
        }
        assert!(!has_key(&[0xff; 16], 5));
    }
}
