//! The sets of what each block may hold, now and after a power cut.

use super::contents::{TAG_ZERO, Tag, fill, recognise};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use units::{BlockCount, BlockSize, Buf, Lba, LbaRange};
use volume::{Durability, IoError};

type Tags = BTreeSet<Tag>;

/// What a volume may hold.
#[derive(Clone, Debug)]
pub struct Model {
    block_size: BlockSize,
    /// Bytes that are always of one write; smaller than a block where the disk keeps less whole.
    unit: usize,
    blocks: Vec<Block>,
    flying: BTreeMap<Token, Flying>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Block {
    /// What it may hold where nothing is in flight.
    settled: Tags,
    /// What it may hold after a power cut.
    after_cut: Tags,
    /// Its units may be of different writes.
    mixed: bool,
}

/// Names an operation from its begin to its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Token(u64);

/// What an operation is to the model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begun {
    /// Reads the range.
    Read(LbaRange),
    /// Makes every block of the range what this tag says.
    Write(LbaRange, Tag, Durability),
    /// May make blocks of the range zeroes.
    Discard(LbaRange, Durability),
    /// Makes stable what is complete.
    Flush,
}

impl Begun {
    fn range(self, all: LbaRange) -> LbaRange {
        match self {
            Self::Read(range) | Self::Write(range, ..) | Self::Discard(range, _) => range,
            Self::Flush => all,
        }
    }

    fn tag(self) -> Option<Tag> {
        match self {
            Self::Write(_, tag, _) => Some(tag),
            Self::Discard(..) => Some(TAG_ZERO),
            Self::Read(_) | Self::Flush => None,
        }
    }
}

#[derive(Clone, Debug)]
struct Flying {
    what: Begun,
    /// For each block of its range: for a read or flush, what the block may have held at some
    /// moment since the begin; for a mutation, the tags that others may have put there in that
    /// time.
    seen: Vec<Tags>,
    /// For each block of its range: a mutation was in flight at some moment since the begin.
    disturbed: Vec<bool>,
    /// For each block of its range: it was mixed at the begin.
    mixed: Vec<bool>,
}

/// A block that holds what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrong {
    /// Which block.
    pub lba: Lba,
    /// The write that made it; `None` for a torn or misplaced one.
    pub found: Option<Tag>,
    /// What it may hold.
    pub allowed: BTreeSet<Tag>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lba, allowed) = (self.lba.0, &self.allowed);
        match self.found {
            Some(tag) => write!(f, "block {lba} holds write {tag}, allowed are {allowed:?}"),
            None => write!(
                f,
                "block {lba} is torn or misplaced, allowed are {allowed:?}"
            ),
        }
    }
}

impl Model {
    /// A disk of zeroes.
    #[must_use]
    pub fn new(block_size: BlockSize, block_count: BlockCount) -> Self {
        let zero = Block {
            settled: Tags::from([TAG_ZERO]),
            after_cut: Tags::from([TAG_ZERO]),
            mixed: false,
        };
        let count = usize::try_from(block_count.0).expect("a model is small");
        Self {
            block_size,
            unit: block_size.bytes() as usize,
            blocks: vec![zero; count],
            flying: BTreeMap::new(),
            next: 1,
        }
    }

    /// The same for a disk that keeps only so many bytes whole: writes that meet in flight, fail or
    /// are cut may mix within a block, by units of this size.
    ///
    /// # Panics
    /// If a block is no multiple of it.
    #[must_use]
    pub fn keeping_whole(mut self, unit_bytes: u32) -> Self {
        self.unit = unit_bytes as usize;
        assert!((self.block_size.bytes() as usize).is_multiple_of(self.unit));
        self
    }

    /// A tag that no write had yet.
    pub fn fresh_tag(&mut self) -> Tag {
        self.next += 1;
        self.next
    }

    /// Blocks that the model has.
    #[must_use]
    pub fn whole(&self) -> LbaRange {
        let count = BlockCount(self.blocks.len() as u64);
        LbaRange::new(Lba(0), count).expect("a range from 0 on cannot wrap")
    }

    /// An operation is about to be submitted.
    pub fn begin(&mut self, what: Begun) -> Token {
        self.next += 1;
        let token = Token(self.next);
        let range = what.range(self.whole());
        let mut seen = Vec::new();
        let mut disturbed = Vec::new();
        let mut mixed = Vec::new();
        for lba in blocks(range) {
            seen.push(self.seen_at_begin(lba, what));
            disturbed.push(self.is_disturbed(lba));
            mixed.push(self.blocks[lba].mixed);
        }
        if let Some(tag) = what.tag() {
            self.disturb_others(range, tag);
            for lba in blocks(range) {
                self.blocks[lba].after_cut.insert(tag);
            }
        }
        let flying = Flying {
            what,
            seen,
            disturbed,
            mixed,
        };
        self.flying.insert(token, flying);
        token
    }

    fn seen_at_begin(&self, lba: usize, what: Begun) -> Tags {
        let mut seen: Tags = match what {
            Begun::Read(_) | Begun::Flush => self.blocks[lba].settled.clone(),
            Begun::Write(..) | Begun::Discard(..) => Tags::new(),
        };
        for other in self.flying.values() {
            let touches = holds(other.what.range(self.whole()), lba);
            seen.extend(other.what.tag().filter(|_| touches));
        }
        seen
    }

    fn disturb_others(&mut self, range: LbaRange, tag: Tag) {
        let whole = self.whole();
        for other in self.flying.values_mut() {
            let theirs = other.what.range(whole);
            let first = usize::try_from(theirs.start().0).expect("a model is small");
            for lba in blocks(theirs).filter(|&lba| holds(range, lba)) {
                other.seen[lba - first].insert(tag);
                other.disturbed[lba - first] = true;
            }
        }
    }

    /// A mutation or flush has been answered.
    ///
    /// # Panics
    /// If the token is not in flight.
    pub fn end(&mut self, token: Token, result: Result<(), IoError>) {
        let flying = self.take(token);
        let range = flying.what.range(self.whole());
        for (lba, seen) in blocks(range).zip(flying.seen) {
            let block = &mut self.blocks[lba];
            match (flying.what, result) {
                (Begun::Read(_), _) | (Begun::Flush, Err(_)) => {}
                (_, Err(error)) if leaves_nothing_done(error) => {}
                (Begun::Write(_, tag, _), Err(_)) => {
                    block.settled.insert(tag);
                    block.mixed = true;
                }
                (Begun::Discard(..), _) => {
                    block.settled.insert(TAG_ZERO);
                    block.mixed = true;
                }
                (Begun::Write(_, tag, durability), Ok(())) => {
                    block.mixed = !seen.is_empty();
                    block.settled = seen;
                    block.settled.insert(tag);
                    if durability == Durability::Stable {
                        block.after_cut.clone_from(&block.settled);
                    }
                }
                // Both are true of the block: it held one of these when the flush began or got one
                // since, and what was known before.
                (Begun::Flush, Ok(())) => block.after_cut = &block.after_cut & &seen,
            }
        }
    }

    /// A read has been answered with these bytes.
    ///
    /// # Errors
    /// The first block that must not hold what it holds.
    ///
    /// # Panics
    /// If the token is not a read in flight, or the length is not the range's.
    pub fn end_read(&mut self, token: Token, data: &Buf) -> Result<(), Wrong> {
        let flying = self.take(token);
        let Begun::Read(range) = flying.what else {
            panic!("{token:?} is no read")
        };
        let size = self.block_size.bytes() as usize;
        assert_eq!(
            data.len(),
            flying.seen.len() * size,
            "a read gives its range"
        );
        let mut bytes = vec![0; size];
        for (place, (lba, allowed)) in blocks(range).zip(flying.seen).enumerate() {
            let (disturbed, mixed) = (flying.disturbed[place], flying.mixed[place]);
            data.copy_to(place * size, &mut bytes);
            let address = Lba(lba as u64);
            let found = recognise(address, &bytes);
            match found.filter(|tag| allowed.contains(tag)) {
                // What an undisturbed read saw, stays.
                Some(tag) if !disturbed => {
                    self.blocks[lba].settled = Tags::from([tag]);
                    self.blocks[lba].mixed = false;
                }
                Some(_) => {}
                None if (disturbed || mixed)
                    && is_mixture(address, &bytes, self.unit, &allowed) => {}
                None => {
                    return Err(Wrong {
                        lba: address,
                        found,
                        allowed,
                    });
                }
            }
        }
        Ok(())
    }

    fn is_disturbed(&self, lba: usize) -> bool {
        let whole = self.whole();
        self.flying
            .values()
            .any(|other| other.what.tag().is_some() && holds(other.what.range(whole), lba))
    }

    /// A question for allocation, begun as a read, has been answered: these runs have no contents.
    ///
    /// # Errors
    /// The first of their blocks that cannot have been zeroes at any moment of the question.
    ///
    /// # Panics
    /// If the token is not in flight, or a run lies outside its range.
    pub fn end_extents(&mut self, token: Token, empty: &[LbaRange]) -> Result<(), Wrong> {
        let flying = self.take(token);
        let first = blocks(flying.what.range(self.whole())).start;
        for lba in empty.iter().flat_map(|run| blocks(*run)) {
            let allowed = &flying.seen[lba - first];
            if !allowed.contains(&TAG_ZERO) {
                return Err(Wrong {
                    lba: Lba(lba as u64),
                    found: Some(TAG_ZERO),
                    allowed: allowed.clone(),
                });
            }
        }
        Ok(())
    }

    /// The power is cut: what was in flight is gone, and blocks hold what was stable, or more.
    pub fn cut(&mut self) {
        self.flying.clear();
        for block in &mut self.blocks {
            block.settled.clone_from(&block.after_cut);
            block.mixed = block.settled.len() > 1;
        }
    }

    fn take(&mut self, token: Token) -> Flying {
        self.flying
            .remove(&token)
            .expect("an operation ends once, after its begin")
    }
}

/// Every unit of the block is as one of these writes made it.
fn is_mixture(lba: Lba, block: &[u8], unit: usize, allowed: &Tags) -> bool {
    if unit >= block.len() {
        return false;
    }
    let mut left: BTreeSet<usize> = (0..block.len() / unit).collect();
    let mut whole = vec![0; block.len()];
    for &tag in allowed {
        fill(tag, lba, &mut whole);
        left.retain(|&n| block[n * unit..][..unit] != whole[n * unit..][..unit]);
    }
    left.is_empty()
}

fn leaves_nothing_done(error: IoError) -> bool {
    match error {
        IoError::Miscompare { .. }
        | IoError::WriteProtected
        | IoError::Fenced
        | IoError::Transition => true,
        IoError::MediumError { .. }
        | IoError::Integrity { .. }
        | IoError::SpaceExhausted
        | IoError::Unavailable
        | IoError::TimedOut
        | IoError::Aborted
        | IoError::Busy => false,
    }
}

fn blocks(range: LbaRange) -> std::ops::Range<usize> {
    let index = |lba: Lba| usize::try_from(lba.0).expect("a model is small");
    index(range.start())..index(range.end())
}

fn holds(range: LbaRange, lba: usize) -> bool {
    blocks(range).contains(&lba)
}
