//! Whether an image is whole, and mending what can be.

use crate::entry::{Entry, State as BlockState};
use crate::error::{Error, Part};
use crate::geometry::{BITMAP_BYTES, EntryOf, MIB};
use crate::regions::Area;
use crate::state::{Claim, Image, State};
use crate::step::{Operation, Port};
use formats::Damage;
use std::fmt;

/// Findings that are kept; the others are counted.
const FINDINGS_MAX: usize = 1000;
/// Bytes of the table that are read at once.
pub(crate) const TABLE_AT_ONCE: u64 = MIB;

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// One of the two headers is damaged.
    Header(usize, Damage),
    /// One of the two region tables is damaged or differs.
    RegionTable(usize, Damage),
    /// The log holds what is not in its place yet.
    Log,
    /// Bits of an entry are set that shall be zero.
    Reserved(EntryOf),
    /// A block has a state of a draft of the format, which is read as unmapped.
    OldState(u64),
    /// A block or a bitmap has a state that it cannot have.
    BadState(EntryOf),
    /// A block or a bitmap cannot be where its entry says.
    BadPlace(EntryOf, &'static str),
    /// A block or a bitmap is where another one is, in this MiB of the file.
    Overlap(EntryOf, u64),
    /// A partially present block has no bitmap.
    NoBitmap(u64),
    /// So many bytes at the file's end are not in use.
    Tail(u64),
}

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Nothing is wrong: there is space that nobody uses, or a log to be replayed.
    Note,
    /// A repair mends it, and nothing is lost.
    Mendable,
    /// Data is lost, or cannot be known.
    Damage,
}

impl Finding {
    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Log | Self::Tail(_) => Severity::Note,
            Self::Header(..) | Self::RegionTable(..) | Self::Reserved(_) | Self::OldState(_) => {
                Severity::Mendable
            }
            Self::BadState(_) | Self::BadPlace(..) | Self::Overlap(..) | Self::NoBitmap(_) => {
                Severity::Damage
            }
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = |part, number: usize, damage| {
            let error = Error::Damaged { part, damage };
            format!("copy {} of the {error}", number + 1)
        };
        match self {
            Self::Header(number, damage) => f.write_str(&copy(Part::Headers, *number, *damage)),
            Self::RegionTable(number, damage) => {
                f.write_str(&copy(Part::Regions, *number, *damage))
            }
            Self::Log => write!(f, "the log holds changes that are not in their places yet"),
            Self::Reserved(of) => write!(f, "{of}: reserved bits of its entry are set"),
            Self::OldState(block) => write!(f, "block {block}: state 5 of draft 0.95 (unmapped)"),
            Self::BadState(of) => write!(f, "{of}: a state that it cannot have"),
            Self::BadPlace(of, why) => write!(f, "{of}: {why}"),
            Self::Overlap(of, mib) => write!(f, "{of}: something else is there, too (MiB {mib})"),
            Self::NoBitmap(block) => {
                write!(
                    f,
                    "block {block}: partially present, and its chunk has no bitmap"
                )
            }
            Self::Tail(bytes) => write!(f, "{bytes} bytes at the end of the file are not in use"),
        }
    }
}

impl fmt::Display for EntryOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Block(block) => write!(f, "block {block}"),
            Self::Bitmap(chunk) => write!(f, "bitmap of chunk {chunk}"),
        }
    }
}

/// What a check found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The first of them.
    pub findings: Vec<Finding>,
    /// How many there are.
    pub count: u64,
    /// Blocks that have a place.
    pub blocks: u64,
    /// Bytes of the file that are in use.
    pub used_bytes: u64,
    /// The end of what is in use.
    pub end: u64,
}

impl Report {
    fn add(&mut self, finding: Finding) {
        self.count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }

    /// The worst of all findings.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(Finding::severity).max()
    }
}

/// Which MiB of a file are in use: a bit each.
pub(crate) struct Used {
    words: Vec<u64>,
}

impl Used {
    pub(crate) fn new(file_bytes: u64) -> Self {
        let words = usize::try_from(file_bytes.div_ceil(MIB).div_ceil(64));
        Self {
            words: vec![0; words.expect("a file has 128 TiB at most")],
        }
    }

    fn word(&mut self, mib: u64) -> Option<(&mut u64, u64)> {
        let word = self.words.get_mut(usize::try_from(mib / 64).ok()?)?;
        Some((word, 1 << (mib % 64)))
    }

    pub(crate) fn is_used(&mut self, mib: u64) -> bool {
        self.word(mib).is_some_and(|(word, bit)| *word & bit != 0)
    }

    /// It is in use from now on: the first MiB of it that was already.
    pub(crate) fn add(&mut self, area: Area) -> Option<u64> {
        let mut twice = None;
        for mib in area.at / MIB..area.end().div_ceil(MIB) {
            if let Some((word, bit)) = self.word(mib) {
                if *word & bit != 0 {
                    twice = twice.or(Some(mib));
                }
                *word |= bit;
            }
        }
        twice
    }

    pub(crate) fn count(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// The end of the last MiB in use, in bytes.
    pub(crate) fn end(&self) -> u64 {
        let last = self.words.iter().rposition(|word| *word != 0);
        last.map_or(0, |at| {
            let bits = 64 - u64::from(self.words[at].leading_zeros());
            (u64::try_from(at).expect("an index") * 64 + bits) * MIB
        })
    }
}

impl State {
    /// All that is in use without the table's saying so.
    pub(crate) fn fixed_areas(&self) -> Vec<Area> {
        let mut areas = vec![Area { at: 0, bytes: MIB }, self.log_area()];
        areas.extend(self.tables.regions.0.iter().map(|region| region.area));
        areas
    }

    /// The entry's bytes in the file, as far as they count.
    pub(crate) const fn area_of(&self, of: EntryOf, place: u64) -> Area {
        let bytes = match of {
            EntryOf::Block(_) => self.geometry().block_bytes,
            EntryOf::Bitmap(_) => BITMAP_BYTES,
        };
        Area { at: place, bytes }
    }
}

impl Image {
    /// A part of the table as it is with all changes.
    pub(crate) async fn table(&self, port: &Port, from: u64) -> Result<Vec<u64>, Error> {
        let (start, bytes) = {
            let state = self.state.get();
            let entries = state.geometry().entries(state.has_parent());
            let bytes = (entries * 8).saturating_sub(from).min(TABLE_AT_ONCE);
            (state.tables.bat.at + from, bytes)
        };
        let length = usize::try_from(bytes).map_err(|_| Error::Io)?;
        let mut read = port.read(start, length).await?;
        let mut state = self.state.get();
        for (at, page) in (start..).step_by(4096).zip(read.chunks_mut(4096)) {
            if let Some(current) = state.pages.get(at) {
                page.copy_from_slice(&current[..page.len()]);
            } else if let Some(logged) = state.overlay.get(at) {
                page.copy_from_slice(&logged[..page.len()]);
            }
        }
        let words = read
            .chunks_exact(8)
            .map(|word| std::array::from_fn(|at| word[at]));
        Ok(words.map(u64::from_le_bytes).collect())
    }

    /// Checks everything but payload.
    #[must_use]
    pub fn check(&self) -> Operation<'_, Report> {
        Operation::new(async move |port: Port| self.examine(&port.of_file(self.file)).await)
    }

    pub(crate) async fn examine(&self, port: &Port) -> Result<Report, Error> {
        let mut report = Report::default();
        let mut used = {
            let state = self.state.get();
            for (number, damage) in state.header_damage.iter().enumerate() {
                if let Some(damage) = damage {
                    report.add(Finding::Header(number, *damage));
                }
            }
            for (number, damage) in state.tables.damage.iter().enumerate() {
                if let Some(damage) = damage {
                    report.add(Finding::RegionTable(number, *damage));
                }
            }
            if !state.overlay.is_empty() {
                report.add(Finding::Log);
            }
            let mut used = Used::new(state.file_bytes);
            for area in state.fixed_areas() {
                used.add(area);
            }
            used
        };
        let (mut from, mut number, mut chunk_is_partial) = (0, 0, None);
        loop {
            let words = self.table(port, from).await?;
            if words.is_empty() {
                break;
            }
            from += TABLE_AT_ONCE;
            for bits in words {
                let state = self.state.get();
                let of = state.geometry().entry_of(number);
                number += 1;
                inspect(
                    &state,
                    of,
                    bits,
                    &mut used,
                    &mut chunk_is_partial,
                    &mut report,
                );
            }
        }
        if let Some(block) = chunk_is_partial {
            report.add(Finding::NoBitmap(block));
        }
        report.used_bytes = used.count() * MIB;
        report.end = used.end();
        let unused = self.state.get().file_bytes.saturating_sub(report.end);
        if unused > 0 {
            report.add(Finding::Tail(unused));
        }
        Ok(report)
    }

    /// Mends what [`check`](Self::check) finds where nothing is lost by that, cuts off what is not
    /// in use at the file's end, and empties the log. It ends with what it found.
    #[must_use]
    pub fn repair(&self) -> Operation<'_, Report> {
        Operation::new(async move |port: Port| {
            let port = port.of_file(self.file);
            self.guarded(self.mend(&port)).await
        })
    }

    async fn mend(&self, port: &Port) -> Result<Report, Error> {
        let report = self.examine(port).await?;
        if report.count == 0 {
            return Ok(report);
        }
        self.claim(port, Claim::File).await?;
        for finding in &report.findings {
            let of = match finding {
                Finding::Reserved(of) => *of,
                Finding::OldState(block) => EntryOf::Block(*block),
                Finding::Header(..)
                | Finding::RegionTable(..)
                | Finding::Log
                | Finding::BadState(_)
                | Finding::BadPlace(..)
                | Finding::Overlap(..)
                | Finding::NoBitmap(_)
                | Finding::Tail(_) => continue,
            };
            self.with(port, |state| {
                let at = match of {
                    EntryOf::Block(block) => state.geometry().payload_entry(block),
                    EntryOf::Bitmap(chunk) => state
                        .geometry()
                        .bitmap_entry(chunk * state.geometry().ratio()),
                };
                let mut entry = Entry::decode(state.bits(at)?);
                if entry.state == BlockState::OldUnmapped {
                    entry = Entry::nowhere(BlockState::Unmapped);
                }
                state.set_bits(at, entry);
                Ok(())
            })
            .await?;
            self.relieve(port).await?;
        }
        let has_damage = report.worst() == Some(Severity::Damage);
        self.let_go(port).await?;
        // Where entries contradict each other, nobody knows what is in use.
        if !has_damage {
            self.cut(port, report.end).await?;
        }
        Ok(report)
    }

    /// Makes the file end there. The log is empty: an entry of it names the file's length.
    pub(crate) async fn cut(&self, port: &Port, end: u64) -> Result<(), Error> {
        if self.state.get().file_bytes <= end {
            return Ok(());
        }
        port.set_length(end).await?;
        port.sync().await?;
        let mut state = self.state.get();
        (state.file_bytes, state.real_bytes) = (end, end);
        state.space.set_end(end);
        Ok(())
    }
}

fn inspect(
    state: &State,
    of: EntryOf,
    bits: u64,
    used: &mut Used,
    partial: &mut Option<u64>,
    report: &mut Report,
) {
    let entry = Entry::decode(bits);
    if Entry::has_reserved(bits) {
        report.add(Finding::Reserved(of));
    }
    let is_possible = match (of, entry.state) {
        (EntryOf::Block(block), BlockState::OldUnmapped) => {
            report.add(Finding::OldState(block));
            true
        }
        (EntryOf::Block(block), BlockState::Partial) => {
            *partial = Some(block);
            state.has_parent()
        }
        (_, BlockState::Bad) => false,
        (EntryOf::Block(_), _) => true,
        (EntryOf::Bitmap(_), other) => {
            if let (Some(block), BlockState::NotPresent) = (partial.take(), other) {
                report.add(Finding::NoBitmap(block));
            }
            matches!(other, BlockState::NotPresent | BlockState::Present)
        }
    };
    if !is_possible {
        report.add(Finding::BadState(of));
    }
    if !entry.state.has_place() {
        return;
    }
    let area = state.area_of(of, entry.place);
    let bytes = match of {
        EntryOf::Block(block) if block < state.geometry().blocks() => {
            state.geometry().bytes_of(block)
        }
        EntryOf::Block(_) | EntryOf::Bitmap(_) => area.bytes,
    };
    if let Err(why) = state.check_place(entry.place, bytes) {
        report.add(Finding::BadPlace(of, why));
        return;
    }
    report.blocks += u64::from(matches!(of, EntryOf::Block(_)));
    if let Some(mib) = used.add(area) {
        report.add(Finding::Overlap(of, mib));
    }
}
