//! Payload on its way in: into the owner's buffer, parked until there is one, or thrown away.
//!
//! **Contract.** The owner need not have memory for a write when its unsolicited data comes: it is
//! parked, and the stream goes on for everybody else. What all tasks of the session park together
//! is bounded, by what the owner allows at the moment; the data of a task that would be too much is
//! thrown away and the owner notified ([`DataFault::NoRoom`]), which answers that command without
//! having touched anything. Memory is counted as it is taken: for a command whose unsolicited data
//! comes in PDUs of its own, for all of that at once.

use super::event::TargetEvent;
use super::output::Output;
use super::state::{Current, FullFeature, SINK_BYTES};
use super::task::{Gathering, Task};
use crate::ids::Itt;
use crate::violation::DataFault;
use units::BufMut;

impl FullFeature {
    #[inline]
    pub(super) fn accept_data(
        &mut self,
        itt: Itt,
        bytes: u32,
        buffer: BufMut,
        output: &mut Output,
    ) {
        let wants =
            |task: &&mut Task| task.announced && matches!(task.gathering, Gathering::Undecided);
        let Some(task) = self.tasks.get_mut(itt).filter(wants) else {
            return;
        };
        let bytes = bytes.min(task.command.expected_out());
        let mut buffer = buffer;
        let parked = task.parked.take(&mut self.parking.bytes);
        let had = parked.len().min(bytes as usize);
        buffer.copy_at(0, parked.get(..had).unwrap_or_default());
        task.gathering = Gathering::Into {
            buffer,
            bytes,
            solicited: None,
        };
        self.progress(itt, output);
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
        let parked = || self.tasks.iter().map(|task| task.parked.capacity()).sum();
        debug_assert_eq!(self.parking.bytes, parked(), "all parked data is counted");
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
            let room = (whole.max(end), self.parking.bytes_max);
            if !task.parked.grow(end, room, &mut self.parking.bytes) {
                task.fault = Some(DataFault::NoRoom);
                task.gathering = Gathering::Over;
                task.parked.take(&mut self.parking.bytes);
                self.parking.crowded = Some(itt);
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
    pub(super) fn report_crowded(&mut self, output: &mut Output) {
        let Some(itt) = self.parking.crowded.take() else {
            return;
        };
        if self.tasks.get(itt).is_some_and(|task| task.announced) {
            let fault = DataFault::NoRoom;
            output.event(TargetEvent::DataFault { itt, fault });
        }
    }
}
