//! What hosts change: whether it has to wait, is refused, goes into the log or around it.

use super::{Machine, Record};
use crate::addresses::{chunks, sectors};
use crate::ring::event::{Around, Effect, Effects, HostChange};
use journal::{Commit, DATA_BYTES_MAX, Kind, Slot};
use std::ops::Range;
use units::{BlockSize, Buf};
use volume::IoError;

/// Blocks of zeroes in one record: finding them in the index takes well under a millisecond.
const ZEROES_BYTES_MAX: u64 = 64 << 20;

/// Where a change goes.
enum Destination {
    Log,
    Around(Around),
}

impl Machine {
    pub(super) fn change(&mut self, it: HostChange, effects: &mut Effects) {
        let (block_size, commit) = match self.volumes.of(it.slot).admits(true) {
            Ok(facts) => (facts.block_size, facts.commit),
            Err(not_now) => return effects.push(not_now.into()),
        };
        if commit == Commit::Later && !self.may_order(it.slot) {
            return effects.push(Effect::Refused(IoError::Transition));
        }
        let now = it.now;
        let taken = match self.destination(&it, block_size, commit) {
            Ok(Destination::Log) => self.put_all(it, block_size, effects),
            Ok(Destination::Around(how)) => self.go_around(&it, block_size, how, effects),
            Err(error) => Err(error),
        };
        match taken {
            Ok(()) => {
                self.changed_at = now;
                effects.push(Effect::WakeWriter);
            }
            Err(error) => effects.push(Effect::Refused(error)),
        }
    }

    /// What goes into a cache needs no room in the log: it is not refused for want of that. Other
    /// copies have what they get from the log.
    fn destination(
        &self,
        it: &HostChange,
        block_size: BlockSize,
        commit: Commit,
    ) -> Result<Destination, IoError> {
        let may = || {
            commit == Commit::AtOnce
                && self.may_write_around(it.slot, &sectors(it.range, block_size))
        };
        if it.around.volatile && !self.log.ring().has_failed() && may() {
            let brings_back = self.may_bring_back();
            return Ok(Destination::Around(Around::Volatile { brings_back }));
        }
        if it.kind == Kind::Write
            && let Some(error) = self.refuses(it.slot, it.range.start())
        {
            return Err(error);
        }
        if it.around.stable && may() {
            return Ok(Destination::Around(Around::Stable));
        }
        Ok(Destination::Log)
    }

    /// The log has nothing of these sectors, nor will it get anything that came before, nor is any
    /// of them on its way around it.
    fn may_write_around(&self, slot: Slot, sectors: &Range<u64>) -> bool {
        self.index.is_clear(slot, sectors.clone())
            && !self.changes.touch(slot, sectors)
            && !self.write_arounds.touch(slot, sectors)
    }

    /// After a crash a replay might bring back what the log has.
    fn may_bring_back(&self) -> bool {
        self.newest_data >= self.log.ring().tail().number
    }

    /// Whether the writer may write, and the log takes anything.
    fn takes(&self, it: &HostChange) -> Result<(), IoError> {
        if !it.is_current {
            return Err(IoError::Fenced);
        }
        if self.log.ring().has_failed() {
            return Err(self.refused_write());
        }
        Ok(())
    }

    /// Into the log, in as many records as it needs, all of them or none.
    fn put_all(
        &mut self,
        it: HostChange,
        block_size: BlockSize,
        effects: &mut Effects,
    ) -> Result<(), IoError> {
        let is_write = it.kind == Kind::Write;
        let bytes_max = if is_write {
            DATA_BYTES_MAX as u64
        } else {
            ZEROES_BYTES_MAX
        };
        let block = u64::from(block_size.bytes());
        let taken = self.takes(&it);
        let record = |range, data| Record {
            slot: it.slot,
            range,
            block_size,
            kind: it.kind,
            data,
            fence: it.fence,
        };
        if it.range.len().0 <= bytes_max / block {
            taken?;
            effects.push(self.put(record(it.range, it.data)));
            return Ok(());
        }
        taken.map_err(IoError::of_a_part)?;
        let mut data = it.data;
        for range in chunks(it.range, bytes_max / block) {
            let bytes = if is_write { range.len().0 * block } else { 0 };
            let bytes = usize::try_from(bytes).expect("a chunk is small");
            effects.push(self.put(record(range, data.split_front(bytes))));
        }
        Ok(())
    }

    /// Around the log, which gets to know of it.
    fn go_around(
        &mut self,
        it: &HostChange,
        block_size: BlockSize,
        how: Around,
        effects: &mut Effects,
    ) -> Result<(), IoError> {
        self.takes(it)?;
        let (slot, sectors) = (it.slot, sectors(it.range, block_size));
        let is_volatile = how != Around::Stable;
        let touched = sectors.clone();
        let record = self.changes.next_token();
        let id = self.write_arounds.begin(slot, sectors, is_volatile, record);
        effects.push(Effect::Begun(id, how));
        effects.push(self.put(Record {
            slot,
            range: it.range,
            block_size,
            kind: Kind::WriteAround,
            data: Buf::empty(),
            fence: it.fence,
        }));
        if is_volatile && self.volumes.of(slot).has_history {
            let sectors = touched;
            effects.push(Effect::TouchHistory { slot, sectors });
        }
        Ok(())
    }
}
