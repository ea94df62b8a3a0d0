//! A network on virtual time: ports with a speed, a switch with a shallow buffer at every port that
//! drops what does not fit, and streams that behave like TCP Reno: slow start, congestion
//! avoidance, fast retransmit and recovery, and a retransmission timer of 200 ms. That timer is
//! what a collapsing mesh waits for.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

/// Payload of a jumbo frame.
pub(crate) const SEGMENT: u64 = 8948;
const WIRE: u64 = 5_000;
const ACK: u64 = 25_000;
const RTO: u64 = 200_000_000;
const WINDOW_MAX: f64 = 120.0;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Event {
    /// A port has put a segment on the wire.
    Sent(usize),
    /// The switch has passed a segment to a port.
    Passed(usize),
    Ack(usize, u64),
    Timer(usize, u64),
    /// For whoever uses the network.
    User(u64),
}

#[derive(Clone, Copy)]
struct Segment {
    stream: usize,
    number: u64,
}

#[derive(Default)]
struct Port {
    /// Nanoseconds per segment.
    per_segment: u64,
    sending: VecDeque<Segment>,
    /// In the switch, on the way to this port.
    waiting: VecDeque<Segment>,
}

struct Stream {
    from: usize,
    to: usize,
    next: u64,
    unacknowledged: u64,
    end: u64,
    window: f64,
    threshold: f64,
    duplicates: u32,
    recover: Option<u64>,
    received: u64,
    early: BTreeSet<u64>,
    timer: u64,
    backoff: u32,
    /// Where messages end, and whose they are.
    messages: VecDeque<(u64, u64)>,
}

/// What happened.
pub(crate) enum Happened {
    /// A message has arrived as a whole.
    Arrived(u64),
    /// A time that was asked for has come.
    Time(u64),
}

pub(crate) struct Net {
    now: u64,
    count: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    ports: Vec<Port>,
    streams: Vec<Stream>,
    buffer: usize,
    happened: VecDeque<Happened>,
    pub(crate) lost: u64,
    pub(crate) timeouts: u64,
}

impl Net {
    /// `buffer`: bytes that the switch has for each port.
    pub(crate) fn new(buffer: u64) -> Self {
        Self {
            now: 0,
            count: 0,
            events: BinaryHeap::new(),
            ports: Vec::new(),
            streams: Vec::new(),
            buffer: usize::try_from(buffer / SEGMENT).expect("a buffer of some segments"),
            happened: VecDeque::new(),
            lost: 0,
            timeouts: 0,
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// A port of so many bytes per second.
    pub(crate) fn port(&mut self, rate: u64) -> usize {
        self.ports.push(Port {
            per_segment: SEGMENT * 1_000_000_000 / rate,
            ..Port::default()
        });
        self.ports.len() - 1
    }

    pub(crate) fn stream(&mut self, from: usize, to: usize) -> usize {
        self.streams.push(Stream {
            from,
            to,
            next: 0,
            unacknowledged: 0,
            end: 0,
            window: 10.0,
            threshold: WINDOW_MAX,
            duplicates: 0,
            recover: None,
            received: 0,
            early: BTreeSet::new(),
            timer: 0,
            backoff: 0,
            messages: VecDeque::new(),
        });
        self.streams.len() - 1
    }

    /// Sends a message of so many bytes; [`Happened::Arrived`] says when it is there.
    pub(crate) fn send(&mut self, stream: usize, bytes: u64, message: u64) {
        let it = &mut self.streams[stream];
        it.end += bytes.div_ceil(SEGMENT);
        it.messages.push_back((it.end, message));
        self.push(stream);
    }

    /// [`Happened::Time`] in so many nanoseconds.
    pub(crate) fn after(&mut self, span: u64, what: u64) {
        self.at(span, Event::User(what));
    }

    /// The next thing that happens.
    pub(crate) fn next(&mut self) -> Option<Happened> {
        loop {
            if let Some(happened) = self.happened.pop_front() {
                return Some(happened);
            }
            let Reverse((at, _, event)) = self.events.pop()?;
            self.now = at;
            match event {
                Event::Sent(port) => self.sent(port),
                Event::Passed(port) => self.passed(port),
                Event::Ack(stream, number) => self.acknowledged(stream, number),
                Event::Timer(stream, timer) => self.timed_out(stream, timer),
                Event::User(what) => self.happened.push_back(Happened::Time(what)),
            }
        }
    }

    fn at(&mut self, span: u64, event: Event) {
        self.count += 1;
        self.events
            .push(Reverse((self.now + span, self.count, event)));
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a window of some segments"
    )]
    fn push(&mut self, stream: usize) {
        let it = &mut self.streams[stream];
        let limit = (it.unacknowledged + it.window.max(1.0) as u64).min(it.end);
        let first = it.next;
        it.next = limit.max(first);
        let idle = it.unacknowledged == first;
        for number in first..limit {
            self.transmit(stream, number);
        }
        if idle && limit > first {
            self.arm(stream);
        }
    }

    fn transmit(&mut self, stream: usize, number: u64) {
        let from = self.streams[stream].from;
        self.ports[from]
            .sending
            .push_back(Segment { stream, number });
        if self.ports[from].sending.len() == 1 {
            let span = self.ports[from].per_segment;
            self.at(span, Event::Sent(from));
        }
    }

    fn arm(&mut self, stream: usize) {
        let it = &mut self.streams[stream];
        it.timer += 1;
        let (timer, span) = (it.timer, RTO << it.backoff.min(4));
        self.at(span, Event::Timer(stream, timer));
    }

    fn sent(&mut self, port: usize) {
        let Some(segment) = self.ports[port].sending.pop_front() else {
            return;
        };
        if !self.ports[port].sending.is_empty() {
            let span = self.ports[port].per_segment;
            self.at(span, Event::Sent(port));
        }
        let to = self.streams[segment.stream].to;
        if self.ports[to].waiting.len() >= self.buffer {
            self.lost += 1;
            return;
        }
        self.ports[to].waiting.push_back(segment);
        if self.ports[to].waiting.len() == 1 {
            let span = self.ports[to].per_segment + WIRE;
            self.at(span, Event::Passed(to));
        }
    }

    fn passed(&mut self, port: usize) {
        let Some(segment) = self.ports[port].waiting.pop_front() else {
            return;
        };
        if !self.ports[port].waiting.is_empty() {
            let span = self.ports[port].per_segment;
            self.at(span, Event::Passed(port));
        }
        let it = &mut self.streams[segment.stream];
        if segment.number >= it.received {
            it.early.insert(segment.number);
        }
        while it.early.remove(&it.received) {
            it.received += 1;
        }
        while let Some((end, message)) = it.messages.front().copied() {
            if end > it.received {
                break;
            }
            it.messages.pop_front();
            self.happened.push_back(Happened::Arrived(message));
        }
        let number = it.received;
        self.at(ACK, Event::Ack(segment.stream, number));
    }

    fn acknowledged(&mut self, stream: usize, number: u64) {
        let it = &mut self.streams[stream];
        if number > it.unacknowledged {
            let fresh = number - it.unacknowledged;
            it.unacknowledged = number;
            it.next = it.next.max(number);
            it.duplicates = 0;
            it.backoff = 0;
            match it.recover {
                Some(recover) if number < recover => self.transmit(stream, number),
                Some(_) => {
                    it.window = it.threshold;
                    it.recover = None;
                }
                None if it.window < it.threshold => {
                    let fresh = u32::try_from(fresh).expect("a window of segments");
                    it.window += f64::from(fresh);
                }
                None => it.window += 1.0 / it.window,
            }
            let it = &mut self.streams[stream];
            it.window = it.window.min(WINDOW_MAX);
            if it.unacknowledged < it.next {
                self.arm(stream);
            } else {
                it.timer += 1;
            }
        } else if number == it.unacknowledged && it.unacknowledged < it.next {
            it.duplicates += 1;
            if it.duplicates == 3 && it.recover.is_none() {
                it.threshold = (it.window / 2.0).max(2.0);
                it.window = it.threshold;
                it.recover = Some(it.next);
                self.transmit(stream, number);
                self.arm(stream);
            }
        }
        self.push(stream);
    }

    fn timed_out(&mut self, stream: usize, timer: u64) {
        let it = &mut self.streams[stream];
        if it.timer != timer || it.unacknowledged == it.next {
            return;
        }
        self.timeouts += 1;
        it.threshold = (it.window / 2.0).max(2.0);
        it.window = 1.0;
        it.duplicates = 0;
        it.backoff += 1;
        it.recover = Some(it.next);
        let number = it.unacknowledged;
        self.transmit(stream, number);
        self.arm(stream);
    }
}
