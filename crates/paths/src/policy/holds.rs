//! Who may fill a port that several others could fill at once.
//!
//! Two senders that each send as fast as their own line overflow the buffer of the switch in front
//! of the port that both send to. What is lost at the end of a burst waits for a retransmission
//! timer, and with every timer the port stands still. So one path *holds* each receiving port: the
//! target's for writes, the host's for reads. It holds it as long as it has something in flight
//! there; other paths to the port come behind all that need no second sender, whatever was
//! measured: measurements are noise where a machine is busy, and once everybody sends, nobody finds
//! the port empty again.
//!
//! ```text
//! behind:  another path holds the port, and its bytes and this command's are more than a shallow
//!          buffer takes, and together they could send more than the port does
//! hands the port over (it gets no more; the next one begins when it has drained, or at once where
//!          commands can go to no other port):
//!          it has held it for a quarter of a second, no other port is handed over, and a path from
//!          a port that sends nothing would be faster: half as fast again where its line is said to
//!          be faster, or the holder's sender holds more than its line carries and has only its
//!          part for each; four times as fast where only measurements say so
//! loses it: nothing has ended on the path for long
//! ```
//!
//! **Limits.** What other hosts send, and other volumes of this one, is not known here.

use super::model::{Direction, Settings, Use};
use super::slot::Slot;
use std::time::Duration;
use units::Now;

/// What a receiving port is trusted to take from several senders at once: half of a shallow switch
/// buffer.
const CROSSING_BYTES: u64 = 32 << 10;
/// Added to the cost of a path whose port another one holds: seconds beyond all that a cost can be.
const BEHIND: f64 = 1e6;
/// The same for the one that is to have the port next, while the holder drains.
pub(crate) const NEXT: f64 = 1e5;
/// A port changes hands no sooner, as far as speeds are concerned: it drains meanwhile, and speeds
/// have to be measured.
const TENURE: Duration = Duration::from_millis(250);
/// How much faster somebody else has to be, where there is a reason for it: a line that is reported
/// to be faster, or a sender with too many ports.
const FASTER: f64 = 1.5;
/// And where only measurements say so, which on a busy machine are off by as much.
const MUCH_FASTER: f64 = 4.0;

/// One path as far as one direction is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    sender: u16,
    receiver: u16,
    /// Bytes of this direction in flight.
    bytes: u64,
    /// Bytes per second of the path, of its sender and of its receiver.
    speed: u64,
    sender_speed: u64,
    receiver_speed: u64,
    /// Seconds per byte as measured.
    per_byte: f64,
    /// It takes commands now.
    takes: bool,
    /// It has been silent for long.
    silent: bool,
}

impl Load {
    pub(crate) fn of(slot: &Slot, direction: Direction, usage: Use) -> Self {
        let it = &slot.settings;
        let read = direction == Direction::Read;
        let host = (it.host_port, it.host_speed);
        let target = (it.target_port, it.target_speed);
        let ((sender, sender_speed), (receiver, receiver_speed)) =
            if read { (target, host) } else { (host, target) };
        Self {
            sender,
            receiver,
            bytes: if read {
                slot.bytes_reading
            } else {
                slot.bytes_writing
            },
            speed: it.speed,
            sender_speed,
            receiver_speed,
            per_byte: slot.estimate.strict(),
            takes: it.usage == usage,
            silent: slot.silent > 0.0,
        }
    }

    /// It fills its receiver.
    fn fills(&self) -> bool {
        self.bytes > 0 && !self.silent
    }
}

/// A receiving port.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    holder: Option<usize>,
    since: Now,
    /// Who is to hold it next; the holder gets no more then.
    next: Option<usize>,
    /// Bytes on their way here, and bytes per second that their senders can send together.
    receiving: u64,
    senders: u64,
    /// The path with most of them that takes commands; whether the holder is one that has any.
    most: Option<(u64, usize)>,
    held: bool,
}

/// A sending port.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    bytes: u64,
    /// Receivers that its paths hold, and their speeds together.
    holds: u32,
    speed: u64,
}

/// All ports; each of host and target receives in one direction and sends in the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holds {
    receivers: [Vec<Port>; 2],
    senders: [Vec<Sender>; 2],
    toward: usize,
}

fn grow<T: Clone + Default>(list: &mut Vec<T>, number: u16) {
    if list.len() <= usize::from(number) {
        list.resize(usize::from(number) + 1, T::default());
    }
}

impl Holds {
    pub(crate) fn make_room(&mut self, settings: &Settings) {
        let (host, target) = (settings.host_port, settings.target_port);
        for (toward, receiver, sender) in [(0, host, target), (1, target, host)] {
            grow(&mut self.receivers[toward], receiver);
            grow(&mut self.senders[toward], sender);
        }
    }

    /// Reads who holds what before a decision.
    pub(crate) fn settle(
        &mut self,
        paths: &(impl Iterator<Item = Load> + Clone),
        direction: Direction,
        now: Now,
    ) {
        self.toward = usize::from(direction == Direction::Write);
        let (receivers, senders) = (
            &mut self.receivers[self.toward],
            &mut self.senders[self.toward],
        );
        senders.fill(Sender::default());
        for port in receivers.iter_mut() {
            (port.receiving, port.senders, port.most, port.held) = (0, 0, None, false);
        }
        for (path, it) in paths.clone().enumerate() {
            senders[usize::from(it.sender)].bytes += it.bytes;
            if !it.fills() {
                continue;
            }
            let port = &mut receivers[usize::from(it.receiver)];
            port.receiving += it.bytes;
            port.senders += it.speed;
            if !it.takes {
                continue;
            }
            port.held |= port.holder == Some(path);
            if port.most.is_none_or(|(most, _)| it.bytes > most) {
                port.most = Some((it.bytes, path));
            }
        }
        for port in receivers.iter_mut().filter(|port| !port.held) {
            port.holder = port.most.map(|(_, path)| path);
            port.since = now;
            port.next = None;
        }
        self.compare(paths, now);
    }

    /// Whether somebody else should have a port. Rare: only while ports are held for long.
    fn compare(&mut self, paths: &(impl Iterator<Item = Load> + Clone), now: Now) {
        let (receivers, senders) = (
            &mut self.receivers[self.toward],
            &mut self.senders[self.toward],
        );
        let ripe = |port: &Port| port.holder.is_some() && now.since(port.since) >= TENURE;
        if !receivers.iter().any(ripe) || receivers.iter().any(|port| port.next.is_some()) {
            return;
        }
        for (path, it) in paths.clone().enumerate() {
            if receivers[usize::from(it.receiver)].holder == Some(path) {
                let sender = &mut senders[usize::from(it.sender)];
                sender.holds += 1;
                sender.speed += it.speed;
            }
        }
        for (path, it) in paths.clone().enumerate() {
            let port = &mut receivers[usize::from(it.receiver)];
            if port.holder != Some(path) || !ripe(port) {
                continue;
            }
            let sender = &senders[usize::from(it.sender)];
            let (shared, much) = if sender.speed > it.sender_speed && sender.holds > 1 {
                (f64::from(sender.holds), FASTER)
            } else {
                (1.0, MUCH_FASTER)
            };
            let needs = it.per_byte * shared;
            let better = |(_, other): &(usize, Load)| {
                let idle = other.bytes == 0 && senders[usize::from(other.sender)].bytes == 0;
                let much = if other.speed > it.speed { FASTER } else { much };
                other.receiver == it.receiver
                    && other.takes
                    && idle
                    && other.per_byte * much <= needs
            };
            let all = paths.clone().enumerate().filter(better);
            let best = all.min_by(|(_, a), (_, b)| a.per_byte.total_cmp(&b.per_byte));
            port.next = best.map(|(path, _)| path);
            if port.next.is_some() {
                return;
            }
            port.since = now;
        }
    }

    /// What a command of so many bytes costs more on a path than it would if nobody else sent to
    /// its receiver.
    pub(crate) fn behind(&self, path: usize, it: &Load, bytes: u64) -> f64 {
        let port = &self.receivers[self.toward][usize::from(it.receiver)];
        let Some(holder) = port.holder else {
            return 0.0;
        };
        if holder == path {
            return if port.next.is_some() { BEHIND } else { 0.0 };
        }
        let own = if it.fills() { it.bytes } else { 0 };
        let others = port.receiving - own;
        let senders = port.senders + if own > 0 { 0 } else { it.speed };
        let crosses = others > 0 && others + bytes > CROSSING_BYTES && senders > it.receiver_speed;
        if !crosses {
            0.0
        } else if port.next == Some(path) {
            NEXT
        } else {
            BEHIND
        }
    }
}
