//! Payload on its way in: into the owner's buffer, parked until there is one, or thrown away.
//!
//! **Contract.** The owner need not have memory for a write when its unsolicited data comes: it is parked, and the
//! stream goes on for everybody else. What all tasks of the session park together is bounded; the data of a task
//! that would be too much is thrown away and the owner told ([`DataFault::NoRoom`]), which answers that command
//! without having touched anything.

use super::event::Event;
use super::full_feature::{Current, FullFeature, SINK_BYTES};
use super::link::Link;
use super::task::{Gathering, Task};
use crate::ids::Itt;
use crate::task_table::TaskTable;
use crate::violation::DataFault;
use units::BufMut;

impl FullFeature {
    pub(super) fn accept_data(&mut self, itt: Itt, bytes: u32, buffer: BufMut, link: &mut Link) {
        let Some(task) = self.tasks.get_mut(itt) else {
            return;
        };
        if !task.announced || !matches!(task.gathering, Gathering::Undecided) {
            return;
        }
        let bytes = bytes.min(task.command.expected_out());
        let mut buffer = buffer;
        let parked = core::mem::take(&mut task.parked);
        let had = parked.len().min(bytes as usize);
        buffer.copy_at(0, parked.get(..had).unwrap_or_default());
        task.gathering = Gathering::Into {
            buffer,
            bytes,
            solicited: None,
        };
        self.progress(itt, link);
    }

    /// As accept_data, with all bytes coming at once as the command's immediate data; `false`: it is not like that.
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
        let parked = parked_by_others(&self.tasks, itt, end);
        let Some(task) = self.tasks.get_mut(itt) else {
            return sink;
        };
        if parked.is_some_and(|others| others.saturating_add(end) > self.parked_max) {
            task.fault = Some(DataFault::NoRoom);
            task.gathering = Gathering::Over;
            task.parked = Vec::new();
            self.crowded = Some(itt);
        }
        match &mut task.gathering {
            Gathering::Into { buffer, bytes, .. } if at < *bytes as usize => {
                let room = (*bytes as usize).saturating_sub(at).min(left);
                let chunk = buffer.chunk_mut(at);
                let room = room.min(chunk.len());
                chunk.get_mut(..room).unwrap_or_default()
            }
            Gathering::Undecided => {
                if task.parked.len() < end {
                    task.parked.resize(end, 0);
                }
                task.parked.get_mut(at..end).unwrap_or_default()
            }
            Gathering::Into { .. } | Gathering::Over => sink,
        }
    }

    /// The owner learns that a task's data was thrown away; one that is still to be announced will say so then.
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

/// Where the task `itt` has to park up to byte `end` and has not room for it yet: what the others have parked.
fn parked_by_others(tasks: &TaskTable<Task>, itt: Itt, end: usize) -> Option<usize> {
    let task = tasks.get(itt)?;
    let grows = matches!(task.gathering, Gathering::Undecided) && task.parked.len() < end;
    grows.then(|| {
        let all: usize = tasks.iter().map(|task| task.parked.len()).sum();
        all.saturating_sub(task.parked.len())
    })
}
