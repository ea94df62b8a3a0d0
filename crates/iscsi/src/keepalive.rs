//! When a silent peer is pinged, and when it is given up.
//!
//! Every PDU of the peer counts as a sign of life, not only the answer to the ping.
//!
//! Spec: RFC 7143 11.18 "NOP-Out", 11.19 "NOP-In".

use core::time::Duration;
use units::Now;

/// Watches one connection.
#[derive(Clone, Debug)]
pub(crate) struct Keepalive {
    ping_after: Option<Duration>,
    ping_timeout: Duration,
    received: Now,
    pinged: Option<Now>,
}

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    Nothing,
    Ping,
    GiveUp,
}

impl Keepalive {
    pub(crate) fn new(now: Now, ping_after: Option<Duration>, ping_timeout: Duration) -> Self {
        Self {
            ping_after,
            ping_timeout,
            received: now,
            pinged: None,
        }
    }

    /// The peer gave a sign of life.
    pub(crate) fn received(&mut self, now: Now) {
        self.received = now;
        self.pinged = None;
    }

    /// When something is due.
    pub(crate) fn next(&self) -> Option<Now> {
        match self.pinged {
            Some(pinged) => Some(pinged.after(self.ping_timeout)),
            None => self.ping_after.map(|after| self.received.after(after)),
        }
    }

    /// What is due at `now`; a ping counts as sent.
    pub(crate) fn due(&mut self, now: Now) -> Due {
        match self.next() {
            Some(at) if at <= now && self.pinged.is_some() => Due::GiveUp,
            Some(at) if at <= now => {
                self.pinged = Some(now);
                Due::Ping
            }
            Some(_) | None => Due::Nothing,
        }
    }
}

#[cfg(test)]
mod test {
    use super::*;

    // spec: RFC 7143 11.19 "NOP-In".
    #[test]
    fn silence_is_pinged_once_and_then_given_up() {
        let second = Duration::from_secs(1);
        let at = |seconds| Now::ZERO.after(second * seconds);
        let mut watch = Keepalive::new(at(0), Some(second * 10), second * 5);
        assert_eq!(watch.due(at(9)), Due::Nothing);
        watch.received(at(9));
        assert_eq!(watch.next(), Some(at(19)));
        assert_eq!(watch.due(at(19)), Due::Ping);
        assert_eq!(watch.due(at(20)), Due::Nothing);
        assert_eq!(watch.next(), Some(at(24)));
        assert_eq!(watch.clone().due(at(24)), Due::GiveUp);
        watch.received(at(21));
        assert_eq!(watch.due(at(24)), Due::Nothing);
        assert_eq!(Keepalive::new(at(0), None, second).next(), None);
    }
}
