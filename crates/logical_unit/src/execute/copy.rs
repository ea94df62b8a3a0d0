//! EXTENDED COPY (LID1): blocks from unit to unit, without the host.
//!
//! Sources and destinations are looked for among the units that the issuing session sees, by their
//! designators, and nowhere else (CVE-2020-28374 was a list of everything on the machine). Each
//! piece is a read and a write of tasks of their own at those units, so reservations, holds and
//! aborts bear on them as on the host's own commands.

use super::block::{pieces, yield_turn};
use super::check::protection;
use crate::outcome::Refusal;
use crate::share::nexus::Nexus;
use crate::task::Task;
use scsi::cdb::BlockRange;
use scsi::copy::{CopyOutcome, CopyTarget, ExtendedCopy, Segment, aborted};
use scsi::opcode::Conflict;
use scsi::{AdditionalSense, Command, Sense, admission};
use std::rc::Rc;
use units::{BlockCount, Buf, Lba, LbaRange};

/// Bytes that are read before they are written.
const PIECE_BYTES: u64 = 1 << 20;

impl Task {
    /// spec: SPC-3 6.3 "EXTENDED COPY command".
    pub(super) async fn extended_copy(&self, length: u32, list: &Buf) -> Result<Buf, Refusal> {
        let Some(copy) = ExtendedCopy::parse(&list.to_vec(), length)? else {
            return Ok(Buf::empty());
        };
        let seen = self.nexus.session();
        let resolved: Vec<Option<Rc<Nexus>>> = copy
            .targets
            .iter()
            .map(|target| resolve(target, &seen))
            .collect();
        let mut outcome = CopyOutcome {
            segments: 0,
            bytes: 0,
            failure: None,
        };
        let mut result = Ok(Buf::empty());
        for (number, segment) in (0..).zip(&copy.segments) {
            match self.copy_segment(number, segment, &resolved).await {
                Ok(bytes) => outcome.bytes += bytes,
                Err(refusal) => {
                    let part = matches!(refusal, Refusal::Aborted);
                    let refusal = if part && self.control.aborted().is_none() {
                        // Somebody aborted a part of it, at that part's unit; the copy's host waits
                        // for an answer.
                        aborted(number, AdditionalSense::NONE).into()
                    } else {
                        refusal
                    };
                    if let Refusal::Sense(sense) = &refusal {
                        outcome.failure = Some(*sense);
                    }
                    result = Err(refusal);
                    break;
                }
            }
            outcome.segments += 1;
        }
        if copy.remembered {
            self.nexus
                .copies()
                .borrow_mut()
                .record(copy.list_identifier, outcome);
        }
        result
    }

    async fn copy_segment(
        &self,
        number: u16,
        segment: &Segment,
        targets: &[Option<Rc<Nexus>>],
    ) -> Result<u64, Refusal> {
        let unreachable = || {
            Refusal::from(aborted(
                number,
                AdditionalSense::COPY_TARGET_DEVICE_NOT_REACHABLE,
            ))
        };
        let target = |index: u16| targets.get(usize::from(index)).and_then(Option::as_ref);
        let source = target(segment.source).ok_or_else(unreachable)?;
        let destination = target(segment.destination).ok_or_else(unreachable)?;
        may_copy(source, destination)?;
        let sizes = [source, destination].map(|nexus| {
            nexus
                .unit()
                .with_state(|state| state.description.block_size)
        });
        let [from_size, to_size] = sizes;
        let mismatch = || {
            Refusal::from(Sense::illegal_request(
                AdditionalSense::INVALID_FIELD_IN_PARAMETER_LIST,
            ))
        };
        let (from_blocks, to_blocks) = segment.blocks(from_size, to_size).ok_or_else(mismatch)?;
        let from = inside(number, source, segment.source_lba, from_blocks)?;
        let to = inside(number, destination, segment.destination_lba, to_blocks)?;
        let mut at = to.start();
        for piece in pieces(from, PIECE_BYTES / u64::from(from_size.bytes())) {
            yield_turn(piece != from).await;
            self.check_aborted()?;
            let bytes = piece.len().0 * u64::from(from_size.bytes());
            let blocks = BlockCount(bytes / u64::from(to_size.bytes()));
            let data = self
                .part(
                    source,
                    Command::Read(range(piece.start(), piece.len())),
                    Buf::empty(),
                )
                .await?;
            self.part(destination, Command::Write(range(at, blocks)), data)
                .await?;
            at = Lba(at.0 + blocks.0);
        }
        Ok(from_blocks.0 * u64::from(from_size.bytes()))
    }

    /// One read or write of the copy.
    async fn part(&self, nexus: &Rc<Nexus>, command: Command, data: Buf) -> Result<Buf, Refusal> {
        let part = self.child(nexus, command);
        #[expect(clippy::wildcard_enum_match_arm, reason = "a copy has no other parts")]
        let done = match command {
            Command::Write(range) => part.write(range, data).await,
            Command::Read(range) => part.read(range).await,
            _ => Ok(Buf::empty()),
        };
        // What was aborted at its unit has no outcome, even where the backend did it.
        part.check_aborted().and(done)
    }
}

fn range(lba: Lba, blocks: BlockCount) -> BlockRange {
    BlockRange {
        lba,
        blocks,
        fua: false,
        dpo: false,
    }
}

fn resolve(target: &CopyTarget, seen: &[Rc<Nexus>]) -> Option<Rc<Nexus>> {
    let names = |nexus: &&Rc<Nexus>| {
        nexus
            .unit()
            .with_state(|state| target.names(&state.description))
    };
    seen.iter().find(names).cloned()
}

/// What would refuse the read and the write if the host sent them.
fn may_copy(source: &Nexus, destination: &Nexus) -> Result<(), Refusal> {
    let reads = source.rights().permits(Conflict::Reads);
    if !reads || !destination.rights().permits(Conflict::Writes) {
        return Err(Refusal::Status(scsi::Status::ReservationConflict));
    }
    destination
        .unit()
        .with_state(|state| admission::writable(&state.description, protection(state)))?;
    if destination.is_read_only() {
        return Err(Refusal::write_protected());
    }
    Ok(())
}

fn inside(number: u16, nexus: &Nexus, lba: Lba, blocks: BlockCount) -> Result<LbaRange, Refusal> {
    let count = nexus.unit().with_state(|state| state.block_count());
    LbaRange::new(lba, blocks)
        .filter(|range| range.end().0 <= count.0)
        .ok_or_else(|| aborted(number, AdditionalSense::NONE).into())
}
