//! A disk with files in memory: it keeps what is stable, and what is not since the last sync.

use crate::{Action, Answer, Error, Extent, Operation, Request};
use std::collections::BTreeMap;

const PAGE: u64 = 4096;

/// A sparse file.
#[derive(Clone, Default)]
pub(crate) struct Content {
    pages: BTreeMap<u64, Vec<u8>>,
    pub(crate) length: u64,
}

impl Content {
    pub(crate) fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        let end = at + bytes as u64;
        let first = at / PAGE * PAGE;
        for (page, content) in self.pages.range(first..end) {
            let (from, to) = (at.max(*page), end.min(page + PAGE));
            let within = (from - page) as usize..(to - page) as usize;
            read[(from - at) as usize..(to - at) as usize].copy_from_slice(&content[within]);
        }
        read
    }

    pub(crate) fn write(&mut self, at: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let within = at % PAGE;
            let (now, later) = rest.split_at(rest.len().min((PAGE - within) as usize));
            let page = self
                .pages
                .entry(at - within)
                .or_insert_with(|| vec![0; PAGE as usize]);
            page[within as usize..within as usize + now.len()].copy_from_slice(now);
            at += now.len() as u64;
            rest = later;
        }
        self.length = self.length.max(at);
    }

    pub(crate) fn zero(&mut self, at: u64, bytes: u64) {
        let end = at + bytes;
        let some: Vec<u64> = self
            .pages
            .range(at / PAGE * PAGE..end)
            .map(|(at, _)| *at)
            .collect();
        for page in some {
            let (from, to) = (at.max(page), end.min(page + PAGE));
            if to - from == PAGE {
                self.pages.remove(&page);
            } else if let Some(content) = self.pages.get_mut(&page) {
                content[(from - page) as usize..(to - page) as usize].fill(0);
            }
        }
    }

    pub(crate) fn set_length(&mut self, length: u64) {
        if length < self.length {
            self.zero(length, self.length - length);
        }
        self.length = length;
    }
}

/// A change that is not stable.
#[derive(Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Zero(u64, u64),
    Length(u64),
}

impl Change {
    fn apply(&self, to: &mut Content) {
        match self {
            // A write that is beyond the end after a crash makes the file longer, too.
            Self::Write(at, bytes) => to.write(*at, bytes),
            Self::Zero(at, bytes) => to.zero(*at, *bytes),
            Self::Length(length) => to.set_length(*length),
        }
    }

    /// Parts that a crash may tear it into.
    fn sectors(&self) -> Vec<Self> {
        match self {
            Self::Write(at, bytes) => {
                let parts = bytes.chunks(512).enumerate();
                parts
                    .map(|(n, part)| Self::Write(at + n as u64 * 512, part.to_vec()))
                    .collect()
            }
            Self::Zero(..) | Self::Length(_) => vec![self.clone()],
        }
    }
}

#[derive(Clone, Default)]
pub(crate) struct File {
    pub(crate) now: Content,
    stable: Content,
    changes: Vec<Change>,
}

/// Numbers without a pattern.
#[derive(Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Files, and how often each thing was done.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) files: Vec<File>,
    pub(crate) syncs: u64,
    pub(crate) reads: u64,
    pub(crate) read_bytes: u64,
    /// Changing requests that are done before it stops answering.
    pub(crate) left: Option<u64>,
}

impl Disk {
    pub(crate) fn new(files: usize) -> Self {
        Self {
            files: vec![File::default(); files],
            ..Self::default()
        }
    }

    fn change(&mut self, file: usize, change: Change) {
        let file = &mut self.files[file];
        change.apply(&mut file.now);
        file.changes.push(change);
    }

    pub(crate) fn answer(&mut self, request: Request, payload: &[u8]) -> Answer {
        let is_change = !matches!(request.action, Action::Length | Action::Read { .. });
        if is_change && let Some(left) = &mut self.left {
            if *left == 0 {
                return Answer::Failed;
            }
            *left -= 1;
        }
        let file = request.file;
        match request.action {
            Action::Length => return Answer::Length(self.files[file].now.length),
            Action::Read { at, bytes } => {
                let now = &self.files[file].now;
                assert!(
                    at + bytes as u64 <= now.length,
                    "read beyond the end: {at} {bytes}"
                );
                self.reads += 1;
                self.read_bytes += bytes as u64;
                return Answer::Bytes(now.read(at, bytes));
            }
            Action::Write(writes) => {
                for (at, bytes) in writes {
                    self.change(file, Change::Write(at, bytes));
                }
            }
            Action::Zero { at, bytes } | Action::Reserve { at, bytes } => {
                assert!(
                    at + bytes <= self.files[file].now.length,
                    "zeroes beyond the end"
                );
                self.change(file, Change::Zero(at, bytes));
            }
            Action::Copy {
                file: other,
                from,
                to,
                bytes,
            } => {
                let content = &self.files[other].now;
                assert!(from + bytes <= content.length, "copied from beyond the end");
                let read = content.read(from, bytes as usize);
                self.change(file, Change::Write(to, read));
            }
            Action::Payload(extents) => {
                for Extent { at, bytes, place } in extents {
                    assert!(
                        place + bytes <= self.files[file].now.length,
                        "payload beyond the end"
                    );
                    let part = payload[at as usize..(at + bytes) as usize].to_vec();
                    self.change(file, Change::Write(place, part));
                }
            }
            Action::SetLength(length) => self.change(file, Change::Length(length)),
            Action::Sync => {
                self.syncs += 1;
                self.files[file].sync();
            }
        }
        Answer::Done
    }

    pub(crate) fn run<T>(&mut self, operation: Operation<'_, T>) -> Result<T, Error> {
        operation.run(|request| self.answer(request, &[]))
    }

    pub(crate) fn run_with<T>(
        &mut self,
        operation: Operation<'_, T>,
        payload: &[u8],
    ) -> Result<T, Error> {
        operation.run(|request| self.answer(request, payload))
    }

    /// What may be there after a crash now.
    pub(crate) fn crash(&self, random: &mut Random) -> Self {
        let files = self.files.iter().map(|file| file.crash(random)).collect();
        Self {
            files,
            ..Self::default()
        }
    }
}

impl File {
    fn sync(&mut self) {
        for change in std::mem::take(&mut self.changes) {
            change.apply(&mut self.stable);
        }
    }

    /// Changes are lost, torn and done in another order; what overlaps stays in order, as a page
    /// cache has it, and so do changes of the length.
    fn crash(&self, random: &mut Random) -> Self {
        let mut content = self.stable.clone();
        let odds = random.below(4);
        for change in &self.changes {
            let is_whole = random.below(2) == 0;
            let mut keep = || match odds {
                0 => false,
                1 => true,
                2 => random.below(2) == 0,
                _ => random.below(8) != 0,
            };
            let parts = if is_whole {
                vec![change.clone()]
            } else {
                change.sectors()
            };
            for part in parts.iter().filter(|_| keep()) {
                part.apply(&mut content);
            }
        }
        Self {
            now: content.clone(),
            stable: content,
            changes: Vec::new(),
        }
    }
}
