//! Which blocks next, how long to rest, and what was found.

use std::time::Duration;
use units::{BlockCount, Lba, LbaRange, Now};
use volume::IoError;

/// Bytes of one read while nobody else wants the disk ...
const PIECE_IDLE: u64 = 1 << 20;
/// ... and while somebody does.
const PIECE_BUSY: u64 = 128 << 10;
/// Bytes of one read where a larger one has failed; where blocks are smaller and one of these has
/// failed, they are read one by one.
const PIECE_NARROW: u64 = 4096;

/// While hosts work, a scrub rests so many times as long as its last read took ...
const REST: u32 = 19;
/// ... but not longer than this: 128 KiB a second at least.
const REST_MAX: Duration = Duration::from_secs(1);

/// Operations a second from which on somebody wants the disk.
const BUSY_OPS: u64 = 20;

/// How long a rate is worth.
const RATE_SPAN: f64 = 10.0;

/// Rest after an answer that says nothing of the blocks, and how many of those in a row end the
/// scrub.
const RETRY: Duration = Duration::from_secs(1);
const RETRIES_MAX: u32 = 60;

/// Places that are listed; more are only counted.
const LISTED_MAX: usize = 128;

/// What is wrong with blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadKind {
    /// The medium cannot read them.
    Unreadable,
    /// They are not what was written.
    Mismatch,
}

/// Blocks that are bad.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bad {
    /// Blocks of the LUN.
    pub range: LbaRange,
    /// What is wrong.
    pub kind: BadKind,
}

/// What a scrub has found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ScrubReport {
    /// Blocks that cannot be read.
    pub unreadable: u64,
    /// Blocks that are not what was written.
    pub mismatched: u64,
    /// Pages of the map of checksums that were damaged in its file.
    pub map_pages: u64,
    /// Where, in the order of addresses; the first 128 places.
    pub places: Vec<Bad>,
}

impl ScrubReport {
    fn add(&mut self, bad: Bad) {
        let counter = match bad.kind {
            BadKind::Unreadable => &mut self.unreadable,
            BadKind::Mismatch => &mut self.mismatched,
        };
        *counter += bad.range.len().0;
        if let Some(last) = self.places.last_mut()
            && last.kind == bad.kind
            && last.range.end() == bad.range.start()
        {
            last.range = LbaRange::between(last.range.start(), bad.range.end()).expect("in order");
        } else if self.places.len() < LISTED_MAX {
            self.places.push(bad);
        }
    }

    /// Nothing was found.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        self.unreadable == 0 && self.mismatched == 0 && self.map_pages == 0
    }
}

/// How far a scrub is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScrubProgress {
    /// The next block.
    pub position: Lba,
    /// All blocks.
    pub blocks: BlockCount,
    /// Bytes a second, lately.
    pub bytes_per_second: u64,
    /// Time left at that rate.
    pub left: Option<Duration>,
    /// Hosts work: it goes slowly.
    pub yields: bool,
}

/// The machine of one scrub.
#[derive(Clone, Debug)]
pub struct Machine {
    blocks: BlockCount,
    block_bytes: u64,
    /// Bytes of the smallest piece that is good or bad by itself.
    finest_bytes: u64,
    position: Lba,
    /// Up to here, pieces are [narrow](PIECE_NARROW) ...
    narrow_to: Lba,
    /// ... and up to here, the finest.
    finest_to: Lba,
    busy: bool,
    retries: u32,
    report: ScrubReport,
    sampled: Option<(Now, u64, Lba)>,
    rate: Option<f64>,
}

impl Machine {
    /// A scrub of blocks of so many bytes that goes on at `position`, with what it had found
    /// before. `finest_bytes`: what is good or bad as a whole, by its checksum or as the disk's
    /// physical block, 4 KiB at most.
    #[must_use]
    pub fn new(
        blocks: BlockCount,
        [block_bytes, finest_bytes]: [u32; 2],
        position: Lba,
        report: ScrubReport,
    ) -> Self {
        let block_bytes = u64::from(block_bytes);
        Self {
            blocks,
            block_bytes,
            finest_bytes: u64::from(finest_bytes).clamp(block_bytes, PIECE_NARROW),
            position: Lba(position.0.min(blocks.0)),
            narrow_to: Lba(0),
            finest_to: Lba(0),
            busy: true,
            retries: 0,
            report,
            sampled: None,
            rate: None,
        }
    }

    /// What to read next, at most `most` blocks; `None` at the end.
    #[must_use]
    pub fn next(&self, most: BlockCount) -> Option<LbaRange> {
        let piece = if self.position < self.finest_to {
            self.finest_bytes
        } else if self.position < self.narrow_to {
            PIECE_NARROW
        } else if self.busy {
            PIECE_BUSY
        } else {
            PIECE_IDLE
        };
        let unit = (piece / self.block_bytes).clamp(1, most.0.max(1));
        // Pieces begin at multiples of themselves, so that checksums are whole.
        let end = (self.position.0 / unit + 1) * unit;
        let end = Lba(end.min(self.blocks.0));
        LbaRange::between(self.position, end).filter(|range| !range.is_empty())
    }

    /// A read was answered, after so long. Answers how long to rest.
    ///
    /// # Errors
    /// Why the scrub cannot go on.
    pub fn answered(
        &mut self,
        range: LbaRange,
        outcome: Result<(), IoError>,
        took: Duration,
    ) -> Result<Duration, &'static str> {
        let kind = match outcome {
            Ok(()) => None,
            Err(IoError::MediumError { .. }) => Some(BadKind::Unreadable),
            Err(IoError::Integrity { .. }) => Some(BadKind::Mismatch),
            Err(
                IoError::Unavailable
                | IoError::TimedOut
                | IoError::Aborted
                | IoError::Transition
                | IoError::Busy
                | IoError::Fenced
                | IoError::Miscompare { .. }
                | IoError::SpaceExhausted
                | IoError::WriteProtected,
            ) => return self.again(),
        };
        self.retries = 0;
        let bytes = range.len().0 * self.block_bytes;
        match kind {
            // The error names one block at most: each of them is read.
            Some(_) if bytes > PIECE_NARROW => {
                self.narrow_to = range.end();
                return Ok(self.rest(took));
            }
            Some(_) if bytes > self.finest_bytes => {
                self.finest_to = range.end();
                return Ok(self.rest(took));
            }
            Some(kind) => self.report.add(Bad { range, kind }),
            None => {}
        }
        self.position = range.end();
        Ok(self.rest(took))
    }

    fn again(&mut self) -> Result<Duration, &'static str> {
        self.retries += 1;
        if self.retries >= RETRIES_MAX {
            return Err("the volume did not answer for a minute");
        }
        Ok(RETRY)
    }

    fn rest(&self, took: Duration) -> Duration {
        if self.busy {
            (took * REST).min(REST_MAX)
        } else {
            Duration::ZERO
        }
    }

    /// Pages of the map were damaged in its file.
    pub fn map_damaged(&mut self, pages: u64) {
        self.report.map_pages += pages;
    }

    /// What hosts have done since they were counted first: several times a second, so that it can
    /// give way to them.
    pub fn sample(&mut self, now: Now, operations: u64) {
        if let Some((then, before, position)) = self.sampled {
            let span = now.since(then).as_secs_f64();
            if span <= 0.0 {
                return;
            }
            let here = operations.saturating_sub(before);
            self.busy = here as f64 >= BUSY_OPS as f64 * span;
            let bytes = (self.position.0.saturating_sub(position.0) * self.block_bytes) as f64;
            let share = (span / RATE_SPAN).min(1.0);
            let rate = self
                .rate
                .map_or(bytes / span, |rate| rate + share * (bytes / span - rate));
            self.rate = Some(rate);
        }
        self.sampled = Some((now, operations, self.position));
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> ScrubProgress {
        let left = (self.blocks.0 - self.position.0) * self.block_bytes;
        let rate = self.rate.unwrap_or(0.0);
        let seconds = left as f64 / rate;
        ScrubProgress {
            position: self.position,
            blocks: self.blocks,
            bytes_per_second: whole(rate),
            left: Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|_| rate >= 1.0),
            yields: self.busy,
        }
    }

    /// What it has found so far.
    #[must_use]
    pub const fn report(&self) -> &ScrubReport {
        &self.report
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rate that is shown; `as` keeps to the bounds of the type"
)]
const fn whole(rate: f64) -> u64 {
    rate as u64
}
