//! Data-out of one task: what has come, what was asked for, what is still to ask for.
//!
//! ```text
//!   0        unsolicited          R2T 0             R2T 1                    bytes
//!   |---immediate---|--Data-Out--|--MaxBurstLength--|--MaxBurstLength--| ... |
//! ```
//!
//! **Contract.** [`Solicited`] keeps up to MaxOutstandingR2T bursts open, each with its own tag,
//! numbers and offsets. Data of a burst is taken in order, or in any order where DataPDUInOrder=No
//! was agreed; no byte is taken twice, and a burst is done only when every byte of it has come: a
//! hole would show what an earlier owner left in the buffer.
//!
//! Spec: RFC 7143 11.8 "Ready To Transfer (R2T)", 13.18 "DataPDUInOrder", 13.19
//! "DataSequenceInOrder".

use crate::ids::Ttt;
use crate::serial::{DataSn, R2tSn};
use crate::violation::{Violation, ViolationKind};
use core::ops::Range;
use smallvec::SmallVec;

/// Separate pieces that a burst may consist of at any moment; more means a peer that scatters on
/// purpose.
const PIECES_MAX: usize = 1024;

const ORDER: &str = "13.18 \"DataPDUInOrder\"";

/// Which bytes of a range have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    /// Disjoint, not touching, ascending.
    pieces: SmallVec<[(u32, u32); 1]>,
}

impl Coverage {
    /// Takes `range`. Errors if some of it has come before.
    pub(crate) fn add(&mut self, range: &Range<u32>) -> Result<(), Violation> {
        let wrong = |what| Violation::new(ViolationKind::IncorrectAmountOfData, ORDER, what);
        if range.is_empty() {
            return Ok(());
        }
        let at = self.pieces.partition_point(|&(_, end)| end < range.start);
        // `at` is the first piece that ends at or after our start.
        let joins_left = self
            .pieces
            .get(at)
            .is_some_and(|&(_, end)| end == range.start);
        let next = if joins_left { at.saturating_add(1) } else { at };
        if self
            .pieces
            .get(next)
            .is_some_and(|&(start, _)| start < range.end)
        {
            return Err(wrong("data that has come before"));
        }
        let joins_right = self
            .pieces
            .get(next)
            .is_some_and(|&(start, _)| start == range.end);
        match (joins_left, joins_right) {
            (false, false) if self.pieces.len() >= PIECES_MAX => {
                return Err(wrong("data in too many separate pieces"));
            }
            (false, false) => self.pieces.insert(at, (range.start, range.end)),
            (true, false) => {
                if let Some(piece) = self.pieces.get_mut(at) {
                    piece.1 = range.end;
                }
            }
            (false, true) => {
                if let Some(piece) = self.pieces.get_mut(next) {
                    piece.0 = range.start;
                }
            }
            (true, true) => {
                let (_, end) = self.pieces.remove(next);
                if let Some(piece) = self.pieces.get_mut(at) {
                    piece.1 = end;
                }
            }
        }
        Ok(())
    }

    /// Every byte of `range` has come.
    pub(crate) fn covers(&self, range: &Range<u32>) -> bool {
        range.is_empty()
            || self
                .pieces
                .iter()
                .any(|&(start, end)| start <= range.start && range.end <= end)
    }

    /// The end of what has come without a hole from byte 0 on.
    pub(crate) fn contiguous(&self) -> u32 {
        match self.pieces.first() {
            Some(&(0, end)) => end,
            Some(_) | None => 0,
        }
    }

    /// There is a hole before the last byte that has come.
    pub(crate) fn has_hole(&self) -> bool {
        self.pieces.len() > 1 || self.pieces.first().is_some_and(|&(start, _)| start > 0)
    }
}

/// A sequence of Data-Out PDUs: numbers, offsets, coverage.
#[derive(Clone, Debug)]
pub(crate) struct Sequence {
    range: Range<u32>,
    coverage: Coverage,
    next_offset: u32,
    next_data_sn: DataSn,
}

impl Sequence {
    /// A sequence that fills `range`.
    pub(crate) fn new(range: Range<u32>) -> Self {
        let next_offset = range.start;
        Self {
            range,
            coverage: Coverage::default(),
            next_offset,
            next_data_sn: DataSn(0),
        }
    }

    /// The PDU `data_sn` with `range` may come next; `in_order`: DataPDUInOrder.
    pub(crate) fn check(
        &self,
        data_sn: DataSn,
        range: &Range<u32>,
        in_order: bool,
    ) -> Result<(), Violation> {
        let wrong = |clause, what| {
            Err(Violation::new(
                ViolationKind::IncorrectAmountOfData,
                clause,
                what,
            ))
        };
        if data_sn != self.next_data_sn {
            return wrong("11.7.5 \"DataSN\"", "a Data-Out out of its number");
        }
        if range.start < self.range.start || range.end > self.range.end {
            return wrong("11.7.6 \"Buffer Offset\"", "data outside its sequence");
        }
        if in_order && range.start != self.next_offset {
            return wrong(ORDER, "a Data-Out out of its place");
        }
        Ok(())
    }

    /// It has come whole.
    pub(crate) fn add(&mut self, range: &Range<u32>) -> Result<(), Violation> {
        self.next_data_sn = self.next_data_sn.next();
        self.next_offset = range.end;
        self.coverage.add(range)
    }

    /// Immediate data, which has no number, has come whole.
    pub(crate) fn add_immediate(&mut self, length: u32) -> Result<(), Violation> {
        self.next_offset = length;
        self.coverage.add(&(0..length))
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.coverage.covers(&self.range)
    }

    /// Where the sequence ends at most.
    pub(crate) fn end(&self) -> u32 {
        self.range.end
    }

    /// The first `bytes` bytes have come.
    pub(crate) fn covers(&self, bytes: u32) -> bool {
        self.coverage.covers(&(0..bytes))
    }

    /// The end of what has come without a hole from byte 0 on.
    pub(crate) fn contiguous(&self) -> u32 {
        self.coverage.contiguous()
    }

    /// There is a hole before the last byte that has come.
    pub(crate) fn has_hole(&self) -> bool {
        self.coverage.has_hole()
    }
}

/// One R2T to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ask {
    pub(crate) ttt: Ttt,
    pub(crate) r2t_sn: R2tSn,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// The solicited part of a task's data.
#[derive(Debug)]
pub(crate) struct Solicited {
    bytes: u32,
    next: u32,
    next_r2t_sn: R2tSn,
    open: SmallVec<[(Ttt, Sequence); 1]>,
}

impl Solicited {
    /// All bytes from `from` to `bytes` are to be asked for.
    pub(crate) fn new(from: u32, bytes: u32) -> Self {
        Self {
            bytes,
            next: from.min(bytes),
            next_r2t_sn: R2tSn(0),
            open: SmallVec::new(),
        }
    }

    /// Every byte has come.
    pub(crate) fn is_complete(&self) -> bool {
        self.next == self.bytes && self.open.is_empty()
    }

    /// R2Ts sent so far.
    pub(crate) fn r2t_count(&self) -> u32 {
        self.next_r2t_sn.0
    }

    /// The next R2T, if one may be outstanding.
    pub(crate) fn ask(&mut self, burst_max: u32, outstanding_max: u16, ttt: Ttt) -> Option<Ask> {
        let length = self.bytes.saturating_sub(self.next).min(burst_max);
        if length == 0 || self.open.len() >= usize::from(outstanding_max) {
            return None;
        }
        let offset = self.next;
        let end = offset.saturating_add(length);
        let ask = Ask {
            ttt,
            r2t_sn: self.next_r2t_sn,
            offset,
            length,
        };
        self.next_r2t_sn = self.next_r2t_sn.next();
        self.next = end;
        self.open.push((ttt, Sequence::new(offset..end)));
        Some(ask)
    }

    /// The open burst of this tag.
    pub(crate) fn burst(&mut self, ttt: Ttt) -> Option<&mut Sequence> {
        self.open
            .iter_mut()
            .find(|(open, _)| *open == ttt)
            .map(|(_, sequence)| sequence)
    }

    /// A PDU of this burst has come whole; `last`: it ends the burst.
    pub(crate) fn take(
        &mut self,
        ttt: Ttt,
        range: &Range<u32>,
        last: bool,
    ) -> Result<(), Violation> {
        let Some(burst) = self.burst(ttt) else {
            return Ok(());
        };
        burst.add(range)?;
        if burst.is_complete() {
            self.close(ttt);
        } else if last {
            return Err(Violation::new(
                ViolationKind::IncorrectAmountOfData,
                "11.8.4 \"Desired Data Transfer Length and Buffer Offset\"",
                "less data than the R2T asked for",
            ));
        }
        Ok(())
    }

    /// The burst is done with.
    pub(crate) fn close(&mut self, ttt: Ttt) {
        self.open.retain(|(open, _)| *open != ttt);
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use proptest::prelude::*;

    fn ttt(tag: u32) -> Ttt {
        Ttt::from_wire(tag).unwrap()
    }

    proptest! {
        #[test]
        fn coverage_agrees_with_a_bitmap(ranges in proptest::collection::vec((0u32..40, 0u32..12), 0..60)) {
            let (mut coverage, mut bitmap) = (Coverage::default(), [false; 64]);
            for (start, length) in ranges {
                let bits = &mut bitmap[start as usize..(start + length) as usize];
                let fresh = !bits.contains(&true);
                prop_assert_eq!(coverage.add(&(start..start + length)).is_ok(), fresh);
                if fresh {
                    bits.fill(true);
                }
                let contiguous = bitmap.iter().take_while(|bit| **bit).count();
                prop_assert_eq!(coverage.contiguous() as usize, contiguous);
                let total = bitmap.iter().filter(|bit| **bit).count();
                prop_assert_eq!(coverage.has_hole(), total != contiguous);
                for end in 0..52u32 {
                    let whole = !bitmap[..end as usize].contains(&false);
                    prop_assert_eq!(coverage.covers(&(0..end)), whole);
                }
            }
        }
    }

    // spec: RFC 7143 11.8 "Ready To Transfer (R2T)", 13.17 "MaxOutstandingR2T".
    #[test]
    fn bursts_are_asked_for_in_order_up_to_the_number_that_may_be_outstanding() {
        let mut solicited = Solicited::new(100, 1000);
        let first = solicited.ask(400, 2, ttt(1)).unwrap();
        assert_eq!(
            (first.offset, first.length, first.r2t_sn),
            (100, 400, R2tSn(0))
        );
        let second = solicited.ask(400, 2, ttt(2)).unwrap();
        assert_eq!(
            (second.offset, second.length, second.r2t_sn),
            (500, 400, R2tSn(1))
        );
        assert_eq!(solicited.ask(400, 2, ttt(3)), None);
        solicited.close(ttt(1));
        let third = solicited.ask(400, 2, ttt(3)).unwrap();
        assert_eq!((third.offset, third.length), (900, 100));
        solicited.close(ttt(2));
        assert!(!solicited.is_complete());
        solicited.close(ttt(3));
        assert!(solicited.is_complete());
        assert_eq!(solicited.r2t_count(), 3);
    }

    // spec: RFC 7143 13.19 "DataSequenceInOrder".
    #[test]
    fn a_sequence_takes_its_bytes_once_and_in_the_agreed_order() {
        let mut sequence = Sequence::new(100..200);
        sequence.check(DataSn(0), &(100..150), true).unwrap();
        assert!(sequence.check(DataSn(1), &(100..150), true).is_err());
        assert!(sequence.check(DataSn(0), &(150..200), true).is_err());
        assert!(sequence.check(DataSn(0), &(99..150), false).is_err());
        assert!(sequence.check(DataSn(0), &(150..201), false).is_err());
        sequence.check(DataSn(0), &(150..200), false).unwrap();
        sequence.add(&(150..200)).unwrap();
        assert!(!sequence.is_complete());
        sequence.check(DataSn(1), &(150..160), false).unwrap();
        assert!(sequence.clone().add(&(150..160)).is_err(), "twice");
        sequence.add(&(100..150)).unwrap();
        assert!(sequence.is_complete());
    }
}
