//! One client: commands of the seed's choice, one after the other, against a lane.

use super::oracle::{End, Oracle, Ticket};
use super::scene::Opened;
use env::CoreHandle;
use env::sim::Rng;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange};
use volume::{Done, Durability, Io, IoError, Lane, Op, Origin, Provision, Support, Zeroing};
use volume_test::stamp::Value;

/// Blocks of one command at most.
const LEN_MAX: u64 = 6;

/// A client at work.
pub struct Client {
    /// Its number, which its writes carry.
    pub number: u32,
    /// Where it runs.
    pub core: CoreHandle,
    /// What it works on.
    pub opened: Opened,
    /// Who judges.
    pub oracle: Rc<Oracle>,
    /// What it draws from.
    pub rng: Rng,
    /// Commands that it sends before it only waits for the end.
    pub commands: u32,
    /// Set to end the work after the command in hand.
    pub stop: Rc<Cell<bool>>,
    /// Clients that are still at work.
    pub working: Rc<Cell<u32>>,
    /// What this client believes the blocks to hold.
    pub believes: BTreeMap<u64, Value>,
    /// `Unavailable` means that the node is dead: whatever was in flight changes nothing any more.
    pub unavailable_is_dead: bool,
}

/// Waits for `future` until `span` is over; `None` then, and it is dropped.
pub async fn within<T>(
    core: &CoreHandle,
    span: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut timer = core.sleep_until(core.now().after(span));
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(value) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(value));
        }
        timer.as_mut().poll(cx).map(|()| None)
    })
    .await
}

impl Client {
    /// Works until asked to stop.
    pub async fn work(mut self) {
        while !self.stop.get() {
            if self.commands == 0 {
                let pause = Duration::from_millis(10);
                self.core.sleep_until(self.core.now().after(pause)).await;
                continue;
            }
            self.commands -= 1;
            self.command().await;
            if self.rng.below(3) == 0 {
                let pause = Duration::from_micros(self.rng.below(2000));
                self.core.sleep_until(self.core.now().after(pause)).await;
            }
        }
        self.working.set(self.working.get() - 1);
    }

    fn range(&mut self) -> LbaRange {
        let blocks = self.opened.shape.block_count.0;
        // A small part of the disk is hot, so that clients meet there.
        let area = if self.rng.below(3) == 0 {
            blocks
        } else {
            blocks.min(12)
        };
        let len = self.rng.between(1, LEN_MAX.min(area));
        let start = self.rng.below(area - len + 1);
        LbaRange::new(Lba(start), BlockCount(len)).expect("inside a small disk")
    }

    fn durability(&mut self) -> Durability {
        let stable = self.opened.shape.caps.stable_write != Support::Absent;
        if stable && self.rng.below(3) == 0 {
            Durability::Stable
        } else {
            Durability::Cached
        }
    }

    fn durability_of_zeroes(&mut self) -> Durability {
        if self.opened.stable_zeroes {
            self.durability()
        } else {
            Durability::Cached
        }
    }

    async fn command(&mut self) {
        let caps = self.opened.shape.caps;
        match self.rng.below(100) {
            0..40 => self.read().await,
            40..70 => self.write().await,
            70..76 if caps.write_zeroes != Support::Absent => self.zero().await,
            76..80 if caps.discard != Support::Absent => self.discard().await,
            80..92 if caps.compare_and_write != Support::Absent => self.swap().await,
            92..100 => self.flush().await,
            _ => self.read().await,
        }
    }

    /// Sends a command and waits for its end as long as a client does.
    async fn ask(&mut self, op: Op) -> End {
        let answer = self.opened.lane.submit(Io::new(op, Origin::default()));
        match within(&self.core, Duration::from_secs(40), answer).await {
            None => End::Timeout,
            Some(Ok(Done::Data(bytes))) => End::Done(Some(bytes)),
            Some(Ok(Done::Nothing | Done::Logged | Done::Extents(_))) => End::Done(None),
            Some(Err(IoError::Unavailable)) if self.unavailable_is_dead => {
                self.after_error(IoError::Unavailable).await;
                End::Lost
            }
            Some(Err(error)) => {
                self.after_error(error).await;
                End::Error(error)
            }
        }
    }

    /// A host that got BUSY waits a little.
    async fn after_error(&mut self, error: IoError) {
        if error == IoError::Busy || error == IoError::Unavailable {
            let pause = Duration::from_millis(self.rng.between(1, 20));
            self.core.sleep_until(self.core.now().after(pause)).await;
        }
    }

    async fn read(&mut self) {
        let range = self.range();
        let ticket = self.oracle.read(self.number, range);
        let end = self.ask(Op::Read { range, into: None }).await;
        if let Some(values) = self.oracle.end(&ticket, &end) {
            self.believes.extend((range.start().0..).zip(values));
        }
    }

    async fn write(&mut self) {
        let (range, durability) = (self.range(), self.durability());
        let values = self.oracle.fresh(self.number, range);
        let data = Value::payload(&values, self.opened.shape.block_size);
        let ticket = self.reported(range, &values, durability);
        let end = self
            .ask(Op::Write {
                range,
                data,
                durability,
            })
            .await;
        self.oracle.end(&ticket, &end);
        self.believes.extend((range.start().0..).zip(values));
    }

    /// Writes a range, stable; how it ended where that was not well.
    async fn overwrite(&mut self, range: LbaRange) -> Result<(), End> {
        let durability = Durability::Cached;
        let values = self.oracle.fresh(self.number, range);
        let data = Value::payload(&values, self.opened.shape.block_size);
        let ticket = self.reported(range, &values, durability);
        let op = Op::Write {
            range,
            data,
            durability,
        };
        let end = self.ask(op).await;
        self.oracle.end(&ticket, &end);
        if !matches!(end, End::Done(_)) {
            return Err(end);
        }
        let ticket = self.oracle.flush();
        let end = self.ask(Op::Flush).await;
        self.oracle.end(&ticket, &end);
        let done = matches!(end, End::Done(_));
        done.then_some(()).ok_or(end)
    }

    async fn zero(&mut self) {
        let (range, durability) = (self.range(), self.durability_of_zeroes());
        let zeroing = *self.rng.pick(&[Zeroing::MayUnmap, Zeroing::KeepAllocated]);
        let values = vec![Value::Zero; self.opened.shape.bytes_in(range) / self.block_bytes()];
        let mut ticket = self.reported(range, &values, durability);
        self.may_sync(durability, &mut ticket);
        let end = self
            .ask(Op::WriteZeroes {
                range,
                zeroing,
                durability,
            })
            .await;
        self.oracle.end(&ticket, &end);
        self.believes.extend((range.start().0..).zip(values));
    }

    async fn discard(&mut self) {
        let (range, durability) = (self.range(), self.durability_of_zeroes());
        let mut ticket = self.oracle.discard(self.number, range);
        self.may_sync(durability, &mut ticket);
        let to = Provision::Deallocated;
        let end = self
            .ask(Op::Discard {
                range,
                to,
                durability,
            })
            .await;
        self.oracle.end(&ticket, &end);
    }

    async fn swap(&mut self) {
        let durability = self.durability();
        let most = self.opened.shape.limits.compare_and_write_blocks_max.0;
        let whole = self.range();
        let len = BlockCount(whole.len().0.min(most).min(3));
        let range = LbaRange::new(whole.start(), len).expect("shorter than before");
        let believed = |lba| self.believes.get(&lba).copied().unwrap_or(Value::Zero);
        let expected: Vec<Value> = (range.start().0..range.end().0).map(believed).collect();
        let values = self.oracle.fresh(self.number, range);
        let block_size = self.opened.shape.block_size;
        let op = Op::CompareAndWrite {
            range,
            expected: Value::payload(&expected, block_size),
            data: Value::payload(&values, block_size),
            durability,
        };
        let kept = self.kept(durability);
        let ticket = (self.oracle).swap(self.number, range, &expected, &values, kept);
        let end = self.ask(op).await;
        self.oracle.end(&ticket, &end);
        if matches!(end, End::Done(_)) {
            self.believes.extend((range.start().0..).zip(values));
        }
    }

    /// What an acknowledgement promises.
    fn kept(&self, durability: Durability) -> Durability {
        if self.opened.acknowledged_is_stable {
            Durability::Stable
        } else {
            durability
        }
    }

    fn reported(&self, range: LbaRange, values: &[Value], durability: Durability) -> Ticket {
        let kept = self.kept(durability);
        self.oracle.write(self.number, range, values, kept)
    }

    /// Stable zeroes may be a sync of everything below, where that is what makes them stable.
    fn may_sync(&self, durability: Durability, ticket: &mut Ticket) {
        if durability == Durability::Stable && !self.opened.acknowledged_is_stable {
            self.oracle.may_sync(ticket);
        }
    }

    async fn flush(&mut self) {
        if self.opened.acknowledged_is_stable {
            // Whether it fails changes nothing.
            let _end = self.ask(Op::Flush).await;
            return;
        }
        let ticket = self.oracle.flush();
        let end = self.ask(Op::Flush).await;
        self.oracle.end(&ticket, &end);
    }

    fn block_bytes(&self) -> usize {
        self.opened.shape.block_size.bytes() as usize
    }
}

/// Writes the whole disk and flushes, each command as often as it takes; what is still refused
/// `span` after it was sent first is wrong.
///
/// # Errors
/// What is refused for so long.
pub(super) async fn write_all(
    core: CoreHandle,
    opened: Opened,
    oracle: Rc<Oracle>,
    span: Duration,
) -> Result<(), String> {
    let mut client = Client {
        number: u32::MAX - 1,
        core: Rc::clone(&core),
        opened,
        oracle,
        rng: Rng::new(0),
        commands: 0,
        stop: Rc::default(),
        working: Rc::default(),
        believes: BTreeMap::new(),
        unavailable_is_dead: false,
    };
    let blocks = client.opened.shape.block_count.0;
    for at in (0..blocks).step_by(6) {
        let len = BlockCount(LEN_MAX.min(blocks - at));
        let range = LbaRange::new(Lba(at), len).expect("inside a small disk");
        let until = core.now().after(span);
        while let Err(end) = client.overwrite(range).await {
            if core.now() > until {
                return Err(format!("{range:?} is still refused: {end:?}"));
            }
            core.sleep_until(core.now().after(Duration::from_millis(100)))
                .await;
        }
    }
    Ok(())
}

/// Reads the whole disk; answers what every block holds, or why not.
///
/// # Errors
/// What was not answered, or what cannot be there.
pub async fn audit(
    core: CoreHandle,
    opened: Opened,
    oracle: Rc<Oracle>,
) -> Result<BTreeMap<u64, Value>, String> {
    let blocks = opened.shape.block_count.0;
    audit_blocks(core, opened.lane, blocks, oracle).await
}

/// Reads so many blocks from the disk's start; answers what every one holds, or why not.
pub(super) async fn audit_blocks(
    core: CoreHandle,
    lane: Rc<dyn Lane>,
    blocks: u64,
    oracle: Rc<Oracle>,
) -> Result<BTreeMap<u64, Value>, String> {
    let mut all = BTreeMap::new();
    let mut at = 0;
    while at < blocks {
        let len = LEN_MAX.min(blocks - at);
        let range = LbaRange::new(Lba(at), BlockCount(len)).expect("inside a small disk");
        let ticket = oracle.read(u32::MAX, range);
        let read = Io::new(Op::Read { range, into: None }, Origin::default());
        let answer = within(&core, Duration::from_secs(60), lane.submit(read)).await;
        let Some(Ok(Done::Data(bytes))) = answer else {
            return Err(format!("{range:?} answered {answer:?}"));
        };
        let seen = oracle.end(&ticket, &End::Done(Some(bytes)));
        let seen = seen.ok_or_else(|| oracle.violations().join("\n"))?;
        all.extend((at..).zip(seen));
        at += len;
    }
    Ok(all)
}
