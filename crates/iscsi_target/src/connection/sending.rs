//! What the machine has to say goes to the socket, in one vectored send for many PDUs.

use super::driver::Driver;
use super::ending::End;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Pieces of one vectored send (IOV_MAX).
const PIECES_MAX: usize = 1024;

impl Driver {
    /// How long a peer may read nothing: it is as dead then as one that sends nothing.
    pub(super) fn silence_max(&self) -> Duration {
        let settings = &self.export.settings;
        settings.ping_after.saturating_add(settings.ping_timeout)
    }

    pub(super) fn poll_send(&mut self, cx: &mut Context<'_>) -> bool {
        let mut progress = false;
        while !self.machine.transmit().is_empty() {
            let mut pieces: Vec<IoSlice<'_>> = Vec::with_capacity(64);
            pieces.extend(
                self.machine
                    .transmit()
                    .pieces()
                    .take(PIECES_MAX)
                    .map(IoSlice::new),
            );
            match self.stream.poll_send(cx, &pieces) {
                Poll::Pending => {
                    self.outgoing
                        .reading
                        .waits(self.core.recent(), self.silence_max());
                    break;
                }
                Poll::Ready(Ok(n)) => {
                    drop(pieces);
                    self.machine.sent(n);
                    let (now, time) = (self.core.recent(), self.silence_max());
                    self.outgoing.reading.took(n, now, time);
                    let session = self.phase.session().map(Rc::as_ref);
                    self.outgoing.answered.sent(n, &self.core, session);
                    self.begin_waiting();
                    progress = true;
                }
                Poll::Ready(Err(error)) => {
                    self.end_with(End::Socket(error));
                    return true;
                }
            }
        }
        if self.machine.transmit().is_empty() {
            self.outgoing.reading.took_all();
            if progress {
                self.has_come_on();
            }
            if self.ending.all_is_sent() {
                return true;
            }
        }
        progress
    }
}
