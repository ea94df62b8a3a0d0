//! A history on a file that was hurt, against all that was marked.

use super::Script;
use crate::batch::{Sequence, VolumeId};
use crate::changes::{History, HistoryId, HistoryWrite, PART_BYTES};
use crate::layout::{BLOCK, JournalId};
use formats::seal;
use std::collections::{BTreeMap, BTreeSet};

/// The volume's pages in this ring: more than one, and few enough to be compared as a whole.
const PAGES: usize = 2;

/// Parts that are marked: the first and the last ones of each page.
const PARTS_OF_PAGE: u64 = 4032;
const MARKED: u64 = 8;

/// Where a history begins that is begun anew: above all cuts that a script makes.
const ANEW: u64 = 1 << 40;

const FIRST: u64 = 1000;

const SECTOR: usize = 512;

const fn id(journal: u8) -> HistoryId {
    HistoryId {
        journal: JournalId([journal; 16]),
        volume: VolumeId(77),
        ring: 1,
        rings: 2,
    }
}

/// Harm from which no answer follows any more, but that there is one.
#[derive(Default)]
struct Forged(bool);

/// A history that is written as the first bytes say, and hurt as the others do: bits flipped,
/// sectors and blocks zeroed, cut off, put elsewhere, as they once were. Oracles, as far as
/// `docs/formats/journal.md` has them:
///
/// - No bytes make it panic, right checksums or not; another version is refused only where one was
///   forged.
/// - What changed since a cut is never reported as less than what was marked after it: a page of
///   which a place was hurt is reported as a whole. Only a page whose newest place is as an earlier
///   write left it is taken for what it was then, and one that was written once, or is gone with
///   both its places, for one that was not: nothing in the file could show it.
/// - While one of the newest header's blocks is whole, numbers and cuts go on; where there is no
///   header, everything counts as changed.
///
/// Where both blocks of the newest header are hurt, that could as well be a write that was cut off:
/// not judged.
///
/// # Panics
/// If an oracle is broken.
pub fn history(bytes: &[u8]) {
    let mut script = Script(bytes);
    let mut file = File::default();
    if script.byte() % 2 == 1 {
        // An earlier journal had this file.
        let mut world = World::new(9, file);
        for _ in 0..4 {
            world.mark(&mut script);
            world.cut();
            world.save(|_| true);
        }
        file = world.file;
    }
    let mut world = World::new(3, file);
    world.save(|_| true);
    for _ in 0..script.byte() % 48 {
        match script.byte() % 8 {
            0..=3 => world.mark(&mut script),
            4 => world.cut(),
            5 => world.save(|_| true),
            6 => {
                let mask = u16::from_le_bytes([script.byte(), script.byte()]);
                world.is_torn = true;
                world.save_torn(|sector| mask >> (sector % 16) & 1 == 1);
            }
            _ => world.restart(),
        }
    }
    let forged = world.file.hurt(&mut script);
    world.judge(&forged);
}

/// The blocks of one ring, and all that was ever written to them.
#[derive(Default)]
struct File {
    blocks: BTreeMap<u64, Vec<u8>>,
    written: Vec<Written>,
}

/// A block as somebody meant to write it.
struct Written {
    block: u64,
    bytes: Vec<u8>,
    /// What had been marked then, and after which cut.
    marks: BTreeMap<u64, u64>,
    /// Of this journal.
    is_ours: bool,
}

impl File {
    fn read(&self, (at, len): (u64, usize)) -> Vec<u8> {
        let first = at / BLOCK as u64;
        let blocks = first..first + (len / BLOCK) as u64;
        let block = |block| self.blocks.get(&block).cloned();
        blocks
            .flat_map(|number| block(number).unwrap_or_else(|| vec![0; BLOCK]))
            .collect()
    }

    fn put(&mut self, block: u64, bytes: &[u8], arrives: impl Fn(usize) -> bool) {
        let there = self.blocks.entry(block).or_insert_with(|| vec![0; BLOCK]);
        let sectors = there.chunks_mut(SECTOR).zip(bytes.chunks(SECTOR));
        for (number, (there, new)) in sectors.enumerate() {
            if arrives(number) {
                there.copy_from_slice(new);
            }
        }
    }

    /// Harm to a few blocks of this ring.
    fn hurt(&mut self, script: &mut Script<'_>) -> Forged {
        let mut forged = Forged::default();
        let places: Vec<u64> = blocks_of_ring().collect();
        while !script.0.is_empty() {
            let what = script.byte();
            let mut place = || places[usize::from(script.byte()) % places.len()];
            let (block, other) = (place(), place());
            let at = usize::from(script.byte()) * (BLOCK / 256);
            let mut bytes = self.read((block * BLOCK as u64, BLOCK));
            match what % 8 {
                0 => bytes[at + usize::from(what) / 16] ^= 1 << (what / 8 % 8),
                1 => bytes[at / SECTOR * SECTOR..][..SECTOR].fill(0),
                2 => bytes.fill(0),
                3 => bytes = self.read((other * BLOCK as u64, BLOCK)),
                // As it once was; nothing where it never was.
                4 => {
                    let once: Vec<&Written> = self.of(block).collect();
                    if let Some(written) = once.get(at % once.len().max(1)) {
                        bytes.clone_from(&written.bytes);
                    }
                }
                // Cut off here.
                5 => self.blocks.retain(|number, _| *number < block),
                // A sector as it once was.
                6 => {
                    let once: Vec<&Written> = self.of(block).collect();
                    if let Some(written) = once.get(at % once.len().max(1)) {
                        let from = usize::from(what / 8 % 8) * SECTOR;
                        let sector = from..from + SECTOR;
                        bytes[sector.clone()].copy_from_slice(&written.bytes[sector]);
                    }
                }
                // Numbers that nobody wrote, with the right checksum.
                _ => {
                    let from = 12 + at / 32 * 4;
                    bytes[from..from + 8].fill(script.byte());
                    seal(&mut bytes);
                    forged.0 = true;
                }
            }
            if what % 8 != 5 {
                self.blocks.insert(block, bytes);
            }
        }
        forged
    }

    fn of(&self, block: u64) -> impl Iterator<Item = &Written> {
        let of = self.written.iter();
        of.filter(move |it| it.block == block && it.is_ours)
    }

    /// When what is there was meant to be written there, if it ever was.
    fn when(&self, block: u64) -> Option<usize> {
        let there = self.blocks.get(&block)?;
        let same = |it: &Written| it.is_ours && it.block == block && it.bytes == *there;
        self.written.iter().rposition(same)
    }

    /// There is nothing: it was never written, or it is of an earlier journal.
    fn is_empty(&self, block: u64) -> bool {
        let Some(there) = self.blocks.get(&block) else {
            return true;
        };
        let earlier = |it: &Written| !it.is_ours && it.block == block && it.bytes == *there;
        there.iter().all(|byte| *byte == 0) || self.written.iter().any(earlier)
    }
}

/// The header's blocks, then those of the pages.
fn blocks_of_ring() -> impl Iterator<Item = u64> {
    header_blocks().chain((0..PAGES).flat_map(page_blocks))
}

fn header_blocks() -> std::ops::Range<u64> {
    blocks(History::header_at(1))
}

fn page_blocks(page: usize) -> std::ops::Range<u64> {
    let history = History::open(id(3), &[], 1).expect("of no other version");
    blocks(history.page_at(page))
}

const fn blocks((at, len): (u64, usize)) -> std::ops::Range<u64> {
    let first = at / BLOCK as u64;
    first..first + (len / BLOCK) as u64
}

/// A history, its file, and the log that has what the file may lack.
struct World {
    journal: u8,
    file: File,
    history: History,
    /// The first cut: what was before it is not known.
    made: u64,
    /// After which cut a part changed last.
    model: BTreeMap<u64, u64>,
    /// Marks, and cuts with their numbers, whose records are still in the log.
    log: Vec<(Sequence, Logged)>,
    next: u64,
    /// What was written of the header when it was stable last.
    header: Option<usize>,
    /// Something was torn, and more may be reported than changed.
    is_torn: bool,
}

#[derive(Clone, Copy)]
enum Logged {
    Mark(u64),
    Cut(u64),
}

impl World {
    fn new(journal: u8, file: File) -> Self {
        let header = file.read(History::header_at(1));
        let history = History::open(id(journal), &header, FIRST);
        let history = history.expect("nothing has hurt it");
        Self {
            journal,
            file,
            made: history.cut(),
            history,
            model: BTreeMap::new(),
            log: Vec::new(),
            next: 0,
            header: None,
            is_torn: false,
        }
    }

    fn mark(&mut self, script: &mut Script<'_>) {
        let number = u64::from(script.byte()) % (MARKED * PAGES as u64);
        let (page, at) = (number / MARKED, number % MARKED);
        let at = match at < MARKED / 2 {
            true => at,
            false => PARTS_OF_PAGE - MARKED + at,
        };
        let part = page * PARTS_OF_PAGE + at;
        let cut = self.history.cut();
        self.history.mark(&bytes_of(part), cut);
        self.model.insert(part, cut);
        self.log.push((Sequence(self.next), Logged::Mark(part)));
        self.next += 1;
    }

    fn cut(&mut self) {
        let cut = self.history.cut() + 1;
        self.history.begin_cut(cut, Sequence(self.next));
        self.log.push((Sequence(self.next), Logged::Cut(cut)));
        self.next += 1;
    }

    /// Everything that is written arrives, and the log gives up what it has.
    fn save(&mut self, arrives: impl Fn(usize) -> bool) {
        let writes = self.writes();
        let first = self.file.written.len();
        self.put(&writes, arrives);
        self.history.written(true);
        self.log.clear();
        let of_header = |it: &Written| header_blocks().contains(&it.block);
        let header = self.file.written[first..].iter().position(of_header);
        self.header = header.map(|it| first + it).or(self.header);
    }

    /// Some sectors arrive, and nobody knows which.
    fn save_torn(&mut self, arrives: impl Fn(usize) -> bool) {
        let writes = self.writes();
        self.put(&writes, arrives);
        self.history.written(false);
    }

    fn writes(&mut self) -> Vec<HistoryWrite> {
        for page in self.history.unknown(None) {
            self.learn(page);
        }
        self.history.writes(Sequence(self.next))
    }

    fn put(&mut self, writes: &[HistoryWrite], arrives: impl Fn(usize) -> bool) {
        for write in writes {
            for (number, bytes) in write.bytes.chunks(BLOCK).enumerate() {
                let block = write.at / BLOCK as u64 + number as u64;
                self.file.put(block, bytes, &arrives);
                self.file.written.push(Written {
                    block,
                    bytes: bytes.to_vec(),
                    marks: self.model.clone(),
                    is_ours: self.journal == 3,
                });
            }
        }
    }

    fn learn(&mut self, page: usize) {
        assert!(self.may_learn(page), "nobody wrote another version");
    }

    /// Unless the page has another version.
    fn may_learn(&mut self, page: usize) -> bool {
        let bytes = self.file.read(self.history.page_at(page));
        self.history.fill(page, &bytes).is_ok()
    }

    /// It is opened as whoever serves opens it: the newest header that there is is written once
    /// more as it is, and holds from then on.
    fn restart(&mut self) {
        let bytes = self.file.read(History::header_at(1));
        assert!(self.reopen(), "nobody wrote another version");
        if let Some(again) = self.history.again(&bytes) {
            for (number, bytes) in again.bytes.chunks(BLOCK).enumerate() {
                let block = again.at / BLOCK as u64 + number as u64;
                self.file.put(block, bytes, |_| true);
            }
            let there = header_blocks().filter_map(|block| self.file.when(block));
            self.header = there.max();
        }
    }

    /// What is in memory is gone: it is read again, and gets what the log still has. Unless it has
    /// another version.
    fn reopen(&mut self) -> bool {
        let bytes = self.file.read(History::header_at(1));
        let Ok(history) = History::open(id(self.journal), &bytes, ANEW) else {
            return false;
        };
        self.history = history;
        let cut_of = |it: &(Sequence, Logged)| match it.1 {
            Logged::Cut(cut) => Some((cut, it.0)),
            Logged::Mark(_) => None,
        };
        for (cut, sequence) in self.log.iter().filter_map(cut_of) {
            self.history.begin_cut(cut, sequence);
        }
        for (sequence, logged) in &self.log {
            if let Logged::Mark(part) = *logged {
                let cut = self.history.cut_of(*sequence);
                self.history.mark(&bytes_of(part), cut);
            }
        }
        true
    }

    /// The parts of a page that are reported as changed since a cut.
    fn reported(&self, page: usize, since: u64) -> BTreeSet<u64> {
        let first = page as u64 * PARTS_OF_PAGE;
        let bytes = first * PART_BYTES..(first + PARTS_OF_PAGE) * PART_BYTES;
        let reported = self.history.changed_since(since, &bytes);
        reported
            .into_iter()
            .flat_map(|it| it.start / PART_BYTES..it.end.div_ceil(PART_BYTES))
            .collect()
    }

    fn judge(mut self, forged: &Forged) {
        let newest = self.history.cut();
        let known = self.reopen() && (0..PAGES).all(|page| self.may_learn(page));
        if !known {
            return assert!(forged.0, "nobody wrote another version");
        }
        if forged.0 {
            return self.goes_on();
        }
        let there = header_blocks().filter_map(|block| self.file.when(block));
        let there = there.max();
        let begun = self.history.cut() >= ANEW;
        if there >= self.header {
            assert_eq!(self.history.cut(), newest, "cuts go on");
            let known = self.history.next().0 + self.log.len() as u64;
            assert!(known >= self.next, "a number is given twice");
        } else if !begun {
            // Both blocks of the newest header are hurt.
            return self.goes_on();
        }
        for page in 0..PAGES {
            let expected = self.expected(page);
            for since in self.made..=newest {
                let reported = self.reported(page, since);
                match &expected {
                    Expected::All => {
                        let all = PARTS_OF_PAGE;
                        assert_eq!(
                            reported.len() as u64,
                            all,
                            "page {page} was hurt, since {since}"
                        );
                    }
                    Expected::Marks(marks) => {
                        let marked = marks.iter().filter(|(_, cut)| **cut >= since);
                        let marked: BTreeSet<u64> = marked.map(|(part, _)| *part).collect();
                        let missing: Vec<&u64> = marked.difference(&reported).collect();
                        assert!(
                            missing.is_empty(),
                            "{missing:?} of page {page} since {since}"
                        );
                        let exact = self.is_torn || begun || reported == marked;
                        assert!(
                            exact,
                            "page {page} was not hurt, and more is reported since {since}"
                        );
                    }
                }
            }
        }
        self.goes_on();
    }

    /// What must be reported of a page at least; where nothing was hurt or torn, it is what is
    /// reported.
    fn expected(&self, page: usize) -> Expected {
        let (mut newest, mut empty) = (None, false);
        for block in page_blocks(page) {
            let when = self.file.when(block);
            if when.is_none() && !self.file.is_empty(block) {
                return Expected::All;
            }
            empty |= when.is_none();
            newest = newest.max(when);
        }
        // The first one that is written leaves the other place empty, and no later one does.
        let first = |when: usize| {
            let block = self.file.written[when].block;
            let parity = block - page_blocks(page).start;
            let other = page_blocks(page).find(|it| *it != block).expect("of two");
            parity == 1
                && !self.file.written[..when]
                    .iter()
                    .any(|it| it.is_ours && it.block == other)
        };
        if empty && newest.is_some_and(|when| !first(when)) {
            return Expected::All;
        }
        let of_page = |part: u64| part / PARTS_OF_PAGE == page as u64;
        let marks = newest.map(|when| self.file.written[when].marks.clone());
        let mut marks = marks.unwrap_or_default();
        for (_, logged) in &self.log {
            if let Logged::Mark(part) = *logged {
                marks.insert(part, self.model[&part]);
            }
        }
        marks.retain(|part, _| of_page(*part));
        Expected::Marks(marks)
    }

    /// Whatever was found can be gone on with.
    fn goes_on(mut self) {
        let cut = self.history.cut();
        let _ = self.reported(0, cut);
        self.next = self.next.max(self.history.next().0);
        self.mark(&mut Script(&[]));
        assert_eq!(
            self.reported(0, cut).first(),
            Some(&0),
            "what changes now is reported"
        );
        self.cut();
        assert!(self.history.cut() > cut, "cuts rise");
        self.save(|_| true);
        let cut = self.history.cut();
        assert!(self.reopen(), "it is of this version");
        self.learn(0);
        assert_eq!(self.history.cut(), cut, "it is read as it was written");
        assert_eq!(self.reported(0, cut - 1).first(), Some(&0));
    }
}

/// See [`World::expected`].
enum Expected {
    /// A place was hurt.
    All,
    /// These parts, with the cuts after which they changed.
    Marks(BTreeMap<u64, u64>),
}

const fn bytes_of(part: u64) -> std::ops::Range<u64> {
    part * PART_BYTES..part * PART_BYTES + 1
}

/// Marks, cuts, saves, one that is torn, and one harm of each kind.
pub(super) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let kinds = (0..8).flat_map(|harm| [0, 1].map(|earlier| (harm, earlier)));
    let seed = |(harm, earlier): (u8, u8)| {
        let mut script = vec![earlier];
        if earlier == 1 {
            script.extend([0, 5, 9, 12]);
        }
        script.push(27);
        for part in 0..4 {
            script.extend([0, part, 1, 15 - part, 4, 5, 2, part + 4, 7]);
        }
        script.extend([0, 3, 6, 0x5a, 0xa5, 7]);
        script.extend([harm, 5, 4, 0]);
        ("history", script)
    };
    kinds.map(seed).collect()
}
