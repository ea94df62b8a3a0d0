//! What the initiator is about to send, because of what was sent to it: data for each R2T, and the
//! next command for each one that has ended.
//!
//! A receiver that waits for several PDUs has to say for how many bytes, and commands are small
//! where data is not. Initiators work on what comes in its order, so the next PDUs are known in
//! size. It is a guess all the same: one that sends something else, or nothing, is answered just as
//! well.

use crate::bhs::BHS_BYTES;
use crate::transmit::pad_bytes;
use std::collections::VecDeque;

/// PDUs that are kept in mind.
const PDUS_MAX: usize = 256;
/// How far from its turn a PDU is looked for.
const OUT_OF_TURN_MAX: usize = 32;
/// A command's size is smoothed over so many.
const SMOOTH: u64 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pdu {
    Command,
    /// So many bytes with their header.
    Data(u64),
}

/// PDUs that are owed, in the order in which they will come.
#[derive(Debug)]
pub struct Owed {
    queue: VecDeque<Pdu>,
    /// Bytes of a usual command with its immediate data.
    command: u64,
}

impl Default for Owed {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            command: BHS_BYTES as u64,
        }
    }
}

fn on_the_wire(length: usize) -> u64 {
    BHS_BYTES
        .saturating_add(length)
        .saturating_add(pad_bytes(length)) as u64
}

impl Owed {
    /// An R2T for so many bytes is on its way.
    pub(super) fn asked(&mut self, length: usize) {
        self.push(Pdu::Data(on_the_wire(length)));
    }

    /// A command's status is on its way.
    pub(super) fn answered(&mut self) {
        self.push(Pdu::Command);
    }

    fn push(&mut self, pdu: Pdu) {
        if self.queue.len() >= PDUS_MAX {
            self.queue.pop_front();
        }
        self.queue.push_back(pdu);
    }

    /// A command with so many bytes of immediate data has come.
    pub(super) fn command_came(&mut self, length: usize) {
        let size = on_the_wire(length);
        self.command = self.command.saturating_mul(SMOOTH - 1).saturating_add(size) / SMOOTH;
        if let Some(at) = self.first(|pdu| pdu == Pdu::Command) {
            self.queue.remove(at);
        }
    }

    /// Data has come, so many bytes.
    pub(super) fn data_came(&mut self, length: usize) {
        let Some(at) = self.first(|pdu| pdu != Pdu::Command) else {
            return;
        };
        let Some(Pdu::Data(left)) = self.queue.get_mut(at) else {
            return;
        };
        // What was asked for may come in several PDUs, each with a header of its own.
        *left = left
            .saturating_sub(on_the_wire(length))
            .saturating_add(BHS_BYTES as u64);
        if *left <= BHS_BYTES as u64 {
            self.queue.remove(at);
        }
    }

    fn first(&self, is: impl Fn(Pdu) -> bool) -> Option<usize> {
        let mut near = self.queue.iter().take(OUT_OF_TURN_MAX);
        near.position(|pdu| is(*pdu))
    }

    /// Bytes of the next so many PDUs. Of those of which nothing is known, commands are expected.
    #[must_use]
    pub fn bytes(&self, pdus: u64) -> u64 {
        let known = self.queue.iter().copied().map(|pdu| match pdu {
            Pdu::Command => self.command,
            Pdu::Data(bytes) => bytes,
        });
        let count = usize::try_from(pdus).unwrap_or(usize::MAX);
        let rest = core::iter::repeat_n(self.command, count.saturating_sub(self.queue.len()));
        known.take(count).chain(rest).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn what_comes_next_is_known_in_its_order() {
        let mut owed = Owed::default();
        assert_eq!(owed.bytes(3), 3 * 48, "commands, where nothing is known");
        owed.asked(4096);
        owed.answered();
        owed.asked(512);
        assert_eq!(owed.bytes(1), 48 + 4096);
        assert_eq!(owed.bytes(2), 48 + 4096 + 48);
        assert_eq!(owed.bytes(4), 48 + 4096 + 48 + 48 + 512 + 48);
        // The command overtakes.
        owed.command_came(0);
        assert_eq!(owed.bytes(2), 48 + 4096 + 48 + 512);
        owed.data_came(4096);
        assert_eq!(owed.bytes(1), 48 + 512);
    }

    #[test]
    fn data_may_come_in_several_pdus_and_more_than_was_asked_for() {
        let mut owed = Owed::default();
        owed.asked(8192);
        owed.asked(512);
        owed.data_came(4096);
        assert_eq!(owed.bytes(1), 48 + 4096);
        owed.data_came(4096);
        assert_eq!(owed.bytes(1), 48 + 512);
        owed.data_came(100_000);
        assert_eq!(owed.bytes(1), 48);
        owed.data_came(1);
        assert_eq!(owed.bytes(1), 48);
    }

    #[test]
    fn a_usual_command_is_as_large_as_those_that_came() {
        let mut owed = Owed::default();
        for _ in 0..200 {
            owed.command_came(4096);
        }
        assert!(owed.bytes(1) > 4096, "{}", owed.bytes(1));
    }

    #[test]
    fn a_host_that_owes_and_sends_nothing_costs_no_more_memory() {
        let mut owed = Owed::default();
        for _ in 0..100_000 {
            owed.answered();
        }
        assert_eq!(owed.queue.len(), PDUS_MAX);
    }
}
