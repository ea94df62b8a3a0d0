//! READ, WRITE, VERIFY and their kin.

use crate::outcome::Refusal;
use crate::state::UnitState;
use crate::task::Task;
use env::Answer;
use scsi::cdb::{BlockRange, ByteCheck};
use scsi::{Sense, Status};
use units::{BlockCount, Buf, LbaRange};
use volume::{Done, Durability, IoResult, Op};

/// What a lane takes at once where it names no limit, in blocks.
const PIECE_BLOCKS_MAX: u64 = 1 << 16;

/// Blocks that VERIFY reads at once.
const VERIFY_PIECE_BLOCKS: u64 = 1 << 13;

/// What was handed down, or why it was not.
type Begun = Result<Answer<IoResult>, Refusal>;

impl Task {
    /// The blocks of a CDB; `None` for none. The arrival check has seen that they are on the
    /// medium, but the unit may have shrunk since.
    pub(super) fn blocks(&self, range: BlockRange) -> Result<Option<LbaRange>, Refusal> {
        let count = self.unit().with_state(|state| state.block_count());
        match range.range().filter(|blocks| blocks.end().0 <= count.0) {
            None => Err(Sense::lba_out_of_range(range.lba.0).into()),
            Some(blocks) if blocks.is_empty() => Ok(None),
            Some(blocks) => Ok(Some(blocks)),
        }
    }

    pub(super) fn durability(&self, fua: bool) -> Durability {
        if fua || self.unit().with_state(UnitState::write_through) {
            Durability::Stable
        } else {
            Durability::Cached
        }
    }

    pub(super) fn block_bytes(&self) -> usize {
        self.unit()
            .with_state(|state| state.description.block_size.bytes()) as usize
    }

    /// The most blocks that the lane takes in one operation.
    pub(super) fn piece_blocks(&self) -> u64 {
        let most = self
            .unit()
            .with_state(|state| state.shape.map(|shape| shape.limits.transfer_blocks_max.0));
        most.filter(|most| *most > 0).unwrap_or(PIECE_BLOCKS_MAX)
    }

    /// A plain read that nothing stands in the way of; `None` where it must wait first.
    pub(super) fn try_read(&self, range: BlockRange) -> Option<Begun> {
        if self.is_ordered() {
            return None;
        }
        let blocks = match self.blocks(range) {
            Ok(Some(blocks)) if blocks.len().0 <= self.piece_blocks() => blocks,
            Ok(None) => return Some(Ok(Answer::ready(Ok(Done::Nothing)))),
            Ok(Some(_)) | Err(_) => return None,
        };
        if !self.try_admit(Some(blocks)) {
            return None;
        }
        Some(self.start(Op::Read {
            range: blocks,
            into: None,
        }))
    }

    /// A plain write that nothing stands in the way of. It takes the data, so that nobody else
    /// refers to it and a volume may keep it; where it must wait first, the data stays.
    pub(super) fn try_write(&self, range: BlockRange, data: &mut Buf) -> Option<Begun> {
        if self.is_ordered() {
            return None;
        }
        let blocks = match self.blocks(range) {
            Ok(Some(blocks)) if blocks.len().0 <= self.piece_blocks() => blocks,
            Ok(None) => return Some(Ok(Answer::ready(Ok(Done::Nothing)))),
            Ok(Some(_)) | Err(_) => return None,
        };
        if self.bytes(blocks) != data.len() || !self.try_admit(Some(blocks)) {
            return None;
        }
        let op = Op::Write {
            range: blocks,
            data: std::mem::take(data),
            durability: self.durability(range.fua),
        };
        Some(self.start(op))
    }

    /// What became of a plain read or write.
    pub(super) fn ended(&self, result: IoResult) -> Result<Buf, Refusal> {
        match result {
            Ok(Done::Data(data)) => Ok(data),
            Ok(Done::Logged) => {
                self.control.stopwatch().is_logged();
                Ok(Buf::empty())
            }
            Ok(Done::Nothing | Done::Extents(_)) => Ok(Buf::empty()),
            Err(error) => Err(Refusal::of(error, self.control.writes())),
        }
    }

    pub(super) fn bytes(&self, blocks: LbaRange) -> usize {
        usize::try_from(blocks.len().0)
            .unwrap_or(usize::MAX)
            .saturating_mul(self.block_bytes())
    }

    /// Hands an operation without payload, on blocks that the task has been admitted to, to the
    /// lane: in pieces of what that takes at once of exactly this operation, one after the other.
    pub(super) async fn submit_in_pieces(&self, op: Op) -> Result<(), Refusal> {
        let Some(whole) = op.range() else {
            return self.submit(op).await.map(drop);
        };
        let most = self.unit().with_state(|state| {
            let limits = state.shape.map(|shape| shape.limits);
            limits.and_then(|limits| limits.most_at_once(&op))
        });
        for piece in pieces(whole, most.map_or(PIECE_BLOCKS_MAX, |most| most.0)) {
            let mut part = op.again();
            if let Some(range) = part.range_mut() {
                *range = piece;
            }
            yield_turn(piece != whole).await;
            self.submit(part).await?;
        }
        Ok(())
    }

    /// Reads blocks that the task has been admitted to.
    pub(super) async fn read_blocks(&self, blocks: LbaRange) -> Result<Buf, Refusal> {
        let mut all = Buf::empty();
        for piece in pieces(blocks, self.piece_blocks()) {
            match self
                .submit(Op::Read {
                    range: piece,
                    into: None,
                })
                .await?
            {
                Done::Data(data) => all.append(&data),
                Done::Nothing | Done::Logged | Done::Extents(_) => {}
            }
        }
        Ok(all)
    }

    /// Writes blocks that the task has been admitted to.
    pub(super) async fn write_blocks(
        &self,
        blocks: LbaRange,
        data: &Buf,
        durability: Durability,
    ) -> Result<(), Refusal> {
        let mut at = 0;
        for piece in pieces(blocks, self.piece_blocks()) {
            let bytes = self.bytes(piece);
            let data = data.slice(at..at + bytes);
            self.submit(Op::Write {
                range: piece,
                data,
                durability,
            })
            .await?;
            at += bytes;
        }
        Ok(())
    }

    pub(super) async fn read(&self, range: BlockRange) -> Result<Buf, Refusal> {
        let Some(blocks) = self.blocks(range)? else {
            return Ok(Buf::empty());
        };
        self.admit(Some(blocks)).await?;
        self.read_blocks(blocks).await
    }

    /// The host may have announced less data than the command says (overflow): the whole blocks of
    /// it are written, and the residual says the rest.
    pub(super) fn blocks_with_data(
        &self,
        range: BlockRange,
        data: &Buf,
    ) -> Result<Option<LbaRange>, Refusal> {
        let Some(blocks) = self.blocks(range)? else {
            return Ok(None);
        };
        let here = (data.len() / self.block_bytes()) as u64;
        let have = BlockCount(here.min(blocks.len().0));
        Ok(LbaRange::new(blocks.start(), have).filter(|blocks| !blocks.is_empty()))
    }

    pub(super) async fn write(&self, range: BlockRange, data: Buf) -> Result<Buf, Refusal> {
        let Some(blocks) = self.blocks_with_data(range, &data)? else {
            return Ok(Buf::empty());
        };
        self.admit(Some(blocks)).await?;
        self.write_blocks(blocks, &data, self.durability(range.fua))
            .await?;
        Ok(Buf::empty())
    }

    /// spec: SBC-3 5.43 "WRITE AND VERIFY (10) command": the medium is verified, so the data must
    /// be on it.
    pub(super) async fn write_and_verify(
        &self,
        range: BlockRange,
        check: ByteCheck,
        data: Buf,
    ) -> Result<Buf, Refusal> {
        let Some(blocks) = self.blocks_with_data(range, &data)? else {
            return Ok(Buf::empty());
        };
        self.admit(Some(blocks)).await?;
        self.write_blocks(blocks, &data, Durability::Stable).await?;
        let written = self.read_blocks(blocks).await?;
        match check {
            ByteCheck::Skip => Ok(Buf::empty()),
            ByteCheck::Compare | ByteCheck::CompareOneBlock => {
                compare(&written, &data.slice(0..written.len()))
            }
        }
    }

    /// spec: SBC-3 5.33 "VERIFY (10) command".
    pub(super) async fn verify(
        &self,
        range: BlockRange,
        check: ByteCheck,
        data: Buf,
    ) -> Result<Buf, Refusal> {
        let Some(blocks) = self.blocks(range)? else {
            return Ok(Buf::empty());
        };
        self.admit(Some(blocks)).await?;
        let block_bytes = self.block_bytes();
        let mut at = 0;
        for piece in pieces(blocks, self.piece_blocks().min(VERIFY_PIECE_BLOCKS)) {
            yield_turn(piece != blocks).await;
            let medium = self.read_blocks(piece).await?;
            let expected = match check {
                ByteCheck::Skip => continue,
                ByteCheck::Compare => {
                    data.slice(at.min(data.len())..(at + medium.len()).min(data.len()))
                }
                ByteCheck::CompareOneBlock if data.len() < block_bytes => continue,
                ByteCheck::CompareOneBlock => data.slice(0..block_bytes).repeat_to(medium.len()),
            };
            if let Some(offset) = medium.first_difference(&expected) {
                return Err(Sense::miscompare((at + offset) as u64).into());
            }
            at += medium.len();
        }
        Ok(Buf::empty())
    }

    /// spec: SBC-3 5.21 "SYNCHRONIZE CACHE (10) command". More than the named blocks may be
    /// synchronized.
    pub(super) async fn synchronize_cache(
        &self,
        range: BlockRange,
        immediate: bool,
    ) -> Result<Buf, Refusal> {
        self.blocks(range)?;
        self.admit(None).await?;
        if immediate {
            if self.unit().lane().is_none() {
                return Err(Refusal::offline());
            }
            self.unit().flush_without_waiting();
            return Ok(Buf::empty());
        }
        self.submit(Op::Flush).await?;
        Ok(Buf::empty())
    }

    /// spec: SBC-3 5.8 "PRE-FETCH (10) command": there is no cache of ours to fill here, and
    /// CONDITION MET promises that all blocks fit.
    pub(super) async fn pre_fetch(&self, range: BlockRange) -> Result<Buf, Refusal> {
        self.blocks(range)?;
        self.admit(None).await?;
        Err(Refusal::Status(Status::ConditionMet))
    }
}

/// Lets others of this core work before a piece of a command that has several: a volume that
/// answers at once would otherwise keep the core until the command's end.
pub(super) async fn yield_turn(is_one_of_several: bool) {
    if is_one_of_several {
        env::yield_now().await;
    }
}

/// The blocks in pieces of at most `most`.
pub(super) fn pieces(blocks: LbaRange, most: u64) -> impl Iterator<Item = LbaRange> {
    let mut next = blocks.start();
    std::iter::from_fn(move || {
        let left = blocks.end().0 - next.0;
        let piece = LbaRange::new(next, BlockCount(left.min(most.max(1))))?;
        next = piece.end();
        (!piece.is_empty()).then_some(piece)
    })
}

pub(super) fn compare(medium: &Buf, expected: &Buf) -> Result<Buf, Refusal> {
    match medium.first_difference(expected) {
        Some(offset) => Err(Sense::miscompare(offset as u64).into()),
        None => Ok(Buf::empty()),
    }
}
