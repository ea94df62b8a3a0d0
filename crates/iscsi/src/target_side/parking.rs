//! Payload on its way in: into the owner's buffer, parked until there is one, or thrown away.
//!
//! **Contract.** The owner need not have memory for a write when its unsolicited data comes: it is
//! parked, and the stream goes on for everybody else. What all tasks of the session park together
//! is bounded, by what the owner allows at the moment; the data of a task that would be too much is
//! thrown away and the owner told ([`DataFault::NoRoom`]), which answers that command without
//! having touched anything. Memory is counted as it is taken: for a command whose unsolicited data
//! comes in PDUs of its own, for all of that at once.

use super::event::Event;
use super::full_feature::{Current, FullFeature, SINK_BYTES};
use super::link::Link;
use super::task::{Gathering, Task};
use crate::ids::Itt;
use crate::violation::DataFault;
use units::BufMut;

impl FullFeature {
    pub(super) fn accept_data(&mut self, itt: Itt, bytes: u32, buffer: BufMut, link: &mut Link) {
        let wants =
            |task: &&mut Task| task.announced && matches!(task.gathering, Gathering::Undecided);
        let Some(task) = self.tasks.get_mut(itt).filter(wants) else {
            return;
        };
        let bytes = bytes.min(task.command.expected_out());
        let mut buffer = buffer;
        let parked = task.parked.take(&mut self.parked);
        let had = parked.len().min(bytes as usize);
        buffer.copy_at(0, parked.get(..had).unwrap_or_default());
        task.gathering = Gathering::Into {
            buffer,
            bytes,
            solicited: None,
        };
        self.progress(itt, link);
    }

    /// As accept_data, with all bytes coming at once as the command's immediate data; `false`: it
    /// is not like that.
    pub(super) fn take_immediate(&mut self, itt: Itt, bytes: u32) -> bool {
        let Current::Immediate {
            itt: of,
            length,
            follows,
        } = self.current
        else {
            return false;
        };
        let Some(task) = self.tasks.get_mut(itt).filter(|_| of == itt) else {
            return false;
        };
        let fits = length == bytes
            && task.announced
            && matches!(task.gathering, Gathering::Undecided)
            && task.parked.is_empty()
            && task.unsolicited.sequence.add_immediate(length).is_ok();
        if fits {
            task.unsolicited.open = follows && !task.unsolicited.sequence.is_complete();
            task.gathering = Gathering::Over;
            self.current = Current::Discard;
        }
        fits
    }

    /// Where payload byte `done` of the current PDU goes, with up to `left` bytes after it.
    pub(super) fn chunk(&mut self, done: usize, left: usize) -> &mut [u8] {
        let parked = || self.tasks.iter().map(|task| task.parked.0.capacity()).sum();
        debug_assert_eq!(self.parked, parked(), "all parked data is counted");
        let place = match &self.current {
            Current::Discard | Current::TaskManagement(_) | Current::Logout(_) => None,
            Current::Nop(_) | Current::Text(_) => {
                return self.scratch.get_mut(done..).unwrap_or_default();
            }
            Current::Immediate { itt, .. } => Some((*itt, 0)),
            Current::Data { itt, range, .. } => Some((*itt, range.start as usize)),
        };
        let sink = left.min(SINK_BYTES);
        let sink = self.sink.get_mut(..sink).unwrap_or_default();
        let Some((itt, start)) = place else {
            return sink;
        };
        let at = start.saturating_add(done);
        let end = at.saturating_add(left);
        let Some(task) = self.tasks.get_mut(itt) else {
            return sink;
        };
        let grows = matches!(task.gathering, Gathering::Undecided) && task.parked.len() < end;
        if grows {
            let alone = matches!(self.current, Current::Immediate { follows: false, .. });
            let whole = if alone { 0 } else { task.unsolicited.most() };
            let room = (whole.max(end), self.parked_max);
            if !task.parked.grow(end, room, &mut self.parked) {
                task.fault = Some(DataFault::NoRoom);
                task.gathering = Gathering::Over;
                task.parked.take(&mut self.parked);
                self.crowded = Some(itt);
            }
        }
        match &mut task.gathering {
            Gathering::Into { buffer, bytes, .. } if at < *bytes as usize => {
                let room = (*bytes as usize).saturating_sub(at).min(left);
                let chunk = buffer.chunk_mut(at);
                let room = room.min(chunk.len());
                chunk.get_mut(..room).unwrap_or_default()
            }
            Gathering::Undecided => task.parked.part_mut(at..end),
            Gathering::Into { .. } | Gathering::Over => sink,
        }
    }

    /// The owner learns that a task's data was thrown away; one that is still to be announced will
    /// say so then.
    pub(super) fn tell_crowded(&mut self, link: &mut Link) {
        let Some(itt) = self.crowded.take() else {
            return;
        };
        if self.tasks.get(itt).is_some_and(|task| task.announced) {
            let fault = DataFault::NoRoom;
            link.event(Event::DataFault { itt, fault });
        }
    }
}

/// Unsolicited data that came before the owner gave a buffer, from byte 0 on.
#[derive(Default)]
pub(super) struct Parked(Vec<u8>);

impl Parked {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn part_mut(&mut self, range: core::ops::Range<usize>) -> &mut [u8] {
        self.0.get_mut(range).unwrap_or_default()
    }

    /// Makes it `end` bytes long, in memory for `whole`. `all` is what all tasks have taken, at
    /// most `most` after it; `false`: that would be too much, and nothing has changed.
    fn grow(&mut self, end: usize, (whole, most): (usize, usize), all: &mut usize) -> bool {
        let (had, needs) = (self.0.capacity(), whole.max(end));
        if needs > had {
            if all.saturating_sub(had).saturating_add(needs) > most {
                return false;
            }
            self.0.reserve_exact(needs.saturating_sub(self.0.len()));
            *all = all.saturating_sub(had).saturating_add(self.0.capacity());
        }
        self.0.resize(end, 0);
        true
    }

    /// Takes what is parked out of it, and its memory off `all`.
    pub(super) fn take(&mut self, all: &mut usize) -> Vec<u8> {
        self.leave(all);
        core::mem::take(&mut self.0)
    }

    /// Takes its memory off `all`: its task is about to go, and it with it.
    #[inline]
    pub(super) fn leave(&self, all: &mut usize) {
        *all = all.saturating_sub(self.0.capacity());
    }
}
