//! What this node and another one promised each other.

use crate::moment::Moment;

/// The other node, as this one knows it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Pair {
    /// There is a connection.
    pub is_connected: bool,
    /// Its greeting came on this connection, so it is known what it promised.
    pub is_greeted: bool,
    /// When the last beacon was sent to it.
    pub sent: Option<Moment>,
    /// When the last beacon was sent that it answered.
    pub answered: Option<Moment>,
    /// When its last beacon came.
    pub heard: Option<Moment>,
    /// When it was last allowed to read from its copy; of an earlier process of this node nobody
    /// knows, so it begins with this one.
    pub granted: Moment,
}

impl Pair {
    /// It answered a beacon that was sent within the last `span` milliseconds.
    pub(super) fn answered_within(&self, span: u64, now: Moment) -> bool {
        self.answered.is_some_and(|sent| now < sent.after(span))
    }

    /// None of its beacons came within the last `span` milliseconds.
    pub(super) fn is_silent_for(&self, span: u64, now: Moment) -> bool {
        self.heard.is_none_or(|at| now >= at.after(span))
    }

    #[cfg(any(test, feature = "model"))]
    pub(super) fn age(&mut self, by: u64) {
        let moments = [&mut self.sent, &mut self.answered, &mut self.heard];
        let moments = moments.into_iter().flatten().chain([&mut self.granted]);
        for moment in moments {
            moment.0 = moment.0.saturating_sub(by);
        }
    }
}
