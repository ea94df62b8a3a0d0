//! What a connection keeps of sending.

use super::answered::Answered;
use super::reading::Reading;

#[derive(Default)]
pub(super) struct Outgoing {
    /// Commands whose answers are on their way to the socket.
    pub(super) answered: Answered,
    /// Whether the peer takes what waits to be sent.
    pub(super) reading: Reading,
}
