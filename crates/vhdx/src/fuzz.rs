//! Entry points for fuzzers: arbitrary bytes in, and a panic if an oracle is broken.

use crate::{
    Access, Action, Answer, Chain, Error, Geometry, Guids, Image, Kind, Locator, New, Operation,
    Piece, Report, Request, Severity, Source,
};
use formats::crc32c_of;
use std::collections::BTreeMap;
use std::sync::OnceLock;

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
/// Requests that an operation on so small a file may take.
const REQUESTS_MAX: u64 = 50_000;

/// A sparse file in memory.
#[derive(Clone, Default)]
struct Memory {
    pages: BTreeMap<u64, Vec<u8>>,
    length: u64,
    requests: u64,
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a small part of a file")
}

impl Memory {
    fn read(&self, at: u64, bytes: usize) -> Vec<u8> {
        let mut read = vec![0; bytes];
        let end = at + u64::try_from(bytes).expect("a small part of a file");
        for (page, content) in self.pages.range(at - at % PAGE..end) {
            let (from, to) = (at.max(*page), end.min(page + PAGE));
            let of_page = &content[size(from - page)..size(to - page)];
            read[size(from - at)..size(to - at)].copy_from_slice(of_page);
        }
        read
    }

    fn write(&mut self, at: u64, bytes: &[u8]) {
        let (mut at, mut rest) = (at, bytes);
        while !rest.is_empty() {
            let within = at % PAGE;
            let (now, later) = rest.split_at(rest.len().min(size(PAGE - within)));
            let page = self
                .pages
                .entry(at - within)
                .or_insert_with(|| vec![0; size(PAGE)]);
            page[size(within)..size(within) + now.len()].copy_from_slice(now);
            at += u64::try_from(now.len()).expect("a page at most");
            rest = later;
        }
        self.length = self.length.max(at);
    }

    fn zero(&mut self, at: u64, bytes: u64) {
        let end = at + bytes;
        let some: Vec<u64> = self
            .pages
            .range(at - at % PAGE..end)
            .map(|(at, _)| *at)
            .collect();
        for page in some {
            let (from, to) = (at.max(page), end.min(page + PAGE));
            if let Some(content) = self.pages.get_mut(&page) {
                content[size(from - page)..size(to - page)].fill(0);
            }
        }
    }
}

/// The files of a chain.
#[derive(Clone, Default)]
struct Files(Vec<Memory>);

impl Files {
    fn answer(&mut self, request: Request, payload: &[u8]) -> Answer {
        let file = &mut self.0[request.file];
        file.requests += 1;
        assert!(file.requests < REQUESTS_MAX, "it goes on and on");
        match request.action {
            Action::Length => return Answer::Length(file.length),
            Action::Read { at, bytes } => {
                let end = at.checked_add(u64::try_from(bytes).unwrap_or(u64::MAX));
                let is_within = end.is_some_and(|end| end <= file.length);
                assert!(is_within, "read beyond the end");
                return Answer::Bytes(file.read(at, bytes));
            }
            Action::Write(writes) => {
                for (at, bytes) in writes {
                    file.write(at, &bytes);
                }
            }
            Action::Zero { at, bytes } | Action::Reserve { at, bytes } => {
                assert!(at + bytes <= file.length, "zeroes beyond the end");
                file.zero(at, bytes);
            }
            Action::Copy { .. } => return Answer::Failed,
            Action::Payload(extents) => {
                for extent in extents {
                    assert!(
                        extent.place + extent.bytes <= file.length,
                        "payload beyond the end"
                    );
                    let part = size(extent.at)..size(extent.at + extent.bytes);
                    file.write(extent.place, &payload[part]);
                }
            }
            Action::SetLength(length) => {
                assert!(length >= file.length, "nothing is cut off");
                file.length = length;
            }
            Action::Sync => {}
        }
        Answer::Done
    }

    fn run<T>(&mut self, operation: Operation<'_, T>) -> Result<T, Error> {
        operation.run(|request| self.answer(request, &[7; 8192]))
    }

    fn open(&mut self, access: &Access) -> Result<Chain, Error> {
        let mut images = Vec::new();
        for file in 0..self.0.len() {
            let access = if file == 0 {
                access.clone()
            } else {
                Access::Read
            };
            images.push(self.run(Image::open_as(file, access))?);
        }
        Chain::new(images)
    }

    /// Parts of the disk: what they hold, or why that cannot be known.
    fn parts(&mut self, chain: &Chain) -> Vec<Result<Vec<u8>, Error>> {
        let geometry = chain.image().geometry();
        let sector = geometry.sector_bytes;
        let last = geometry.disk_bytes - sector;
        let middle = last / 2 / sector * sector;
        let parts = [0, sector, MIB, 2 * MIB, 3 * MIB + 8 * sector, middle, last];
        let parts = parts.into_iter().filter(|at| *at <= last);
        let mut all = Vec::new();
        for at in parts {
            let pieces = self.run(chain.read(at, sector));
            all.push(pieces.map(|pieces| self.gather(&pieces, sector)));
        }
        all
    }

    fn gather(&self, pieces: &[Piece], bytes: u64) -> Vec<u8> {
        let mut all = Vec::new();
        for piece in pieces {
            match piece.from {
                Source::Zero => all.resize(all.len() + size(piece.bytes), 0),
                Source::File { file, place } => {
                    let file = &self.0[file];
                    assert!(place + piece.bytes <= file.length, "a piece beyond the end");
                    all.extend(file.read(place, size(piece.bytes)));
                }
            }
        }
        assert_eq!(all.len(), size(bytes), "pieces are the range");
        all
    }
}

fn guids(seed: u8) -> Guids {
    Guids::new([seed; 16])
}

/// A child with a parent, and a log that was left.
fn chain() -> &'static Files {
    static CHAIN: OnceLock<Files> = OnceLock::new();
    CHAIN.get_or_init(|| {
        let geometry = Geometry::new(8 * MIB, MIB, 512).expect("sizes of the format");
        let new = |kind| New {
            geometry,
            physical_bytes: 4096,
            kind,
            disk_id: None,
            creator: "fuzz".to_owned(),
        };
        let mut parent = Files(vec![Memory::default()]);
        let write = |files: &mut Files, image: &Image, parts: &[u64]| {
            for at in parts {
                files.run(image.write(*at, 4096)).expect("a good image");
            }
        };
        let good = "a good image";
        parent.run(new(Kind::Dynamic).create(guids(1))).expect(good);
        let of_parent = parent.open(&Access::Write(guids(2))).expect(good);
        write(&mut parent, of_parent.image(), &[0, 2 * MIB, 6 * MIB]);
        parent.run(of_parent.image().close()).expect(good);
        let locator = Locator {
            linkage: of_parent.image().header().data_write,
            relative: Some(".\\p".to_owned()),
            ..Locator::default()
        };
        let mut child = Files(vec![Memory::default()]);
        child
            .run(new(Kind::Differencing(locator)).create(guids(3)))
            .expect(good);
        let mut files = Files([child.0, parent.0].concat());
        let chain = files.open(&Access::Write(guids(4))).expect(good);
        write(&mut files, chain.image(), &[MIB, 2 * MIB, 3 * MIB]);
        files.run(chain.image().flush()).expect(good);
        write(&mut files, chain.image(), &[4 * MIB]);
        files.run(chain.image().flush()).expect(good);
        files
    })
}

/// Where a change of the input goes: place, bytes that it may be in.
const PLACES: [(u64, u64); 11] = [
    (0, 16),
    (64 << 10, 96),
    (128 << 10, 96),
    (192 << 10, 96),
    (256 << 10, 96),
    (MIB, 128),
    (MIB, 64 << 10),
    (2 * MIB, 256),
    (2 * MIB + (64 << 10), 64),
    (2 * MIB + (128 << 10), 256),
    (3 * MIB, 80),
];

/// Counts the checksum of what is there anew, as a writer with a fault would.
fn seal(file: &mut Memory, at: u64, bytes: u64) {
    let content = file.read(at, size(bytes));
    let sum = crc32c_of([&content[..4], &[0; 4], &content[8..]]);
    file.write(at + 4, &sum.to_le_bytes());
}

/// Changes of a good chain, eight bytes each: where, how many bytes on, what. Its structures get
/// checksums that fit. Oracles: what can be opened reads alike with its log replayed in memory and
/// in the file; nothing is asked for beyond the file's end; what is written is found again, and
/// makes nothing worse; time is bounded.
///
/// # Panics
/// If not.
pub fn image(bytes: &[u8]) {
    let _is_accepted = try_image(bytes);
}

/// Inputs to start from: a change of the table, one of the log, one of the file's length.
#[must_use]
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let changes = [
        [10, 1, 0, 0, 7, 0, 0, 0],
        [6, 3, 24, 0, 1, 0, 0, 0],
        [0, 0, 0, 0, 90, 0, 0, 0],
    ];
    vec![
        ("vhdx_image", changes.concat()),
        ("vhdx_image", changes[0].to_vec()),
    ]
}

fn try_image(bytes: &[u8]) -> bool {
    let mut files = chain().clone();
    for change in bytes.chunks_exact(8).take(32) {
        let (at, room) = PLACES[usize::from(change[0]) % PLACES.len()];
        let on = u64::from(u16::from_le_bytes([change[2], change[3]])) % room;
        let file = &mut files.0[0];
        match change[1] % 16 {
            0 => file.length = (u64::from(change[4]) << 16).max(6 << 16),
            of => file.write(at + on, &change[4..4 + usize::from(of % 4) + 1]),
        }
    }
    let file = &mut files.0[0];
    for (at, bytes) in [
        (64 << 10, 4096),
        (128 << 10, 4096),
        (192 << 10, 64 << 10),
        (256 << 10, 64 << 10),
    ] {
        seal(file, at, bytes);
    }
    for at in (MIB..MIB + (64 << 10)).step_by(4096) {
        let head = file.read(at, 12);
        let length = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if head.starts_with(b"loge") && (64..1 << 19).contains(&length) {
            seal(file, at, length.into());
        }
    }
    both(files)
}

/// It was opened.
fn both(mut files: Files) -> bool {
    let mut changed = files.clone();
    let in_memory = files.open(&Access::Read);
    let replayed = changed.open(&Access::Write(guids(5)));
    let (in_memory, replayed) = match (in_memory, replayed) {
        (Ok(in_memory), Ok(replayed)) => (in_memory, replayed),
        (first, second) => {
            let errors = (first.err(), second.err());
            assert_eq!(errors.0, errors.1, "opened in one of two cases");
            return false;
        }
    };
    let before = files.parts(&in_memory);
    assert_eq!(changed.parts(&replayed), before, "with and without replay");
    let check = |files: &mut Files, chain: &Chain| -> Result<Report, Error> {
        files.run(chain.image().check())
    };
    let report = check(&mut changed, &replayed);
    write(&mut changed, &replayed, report);
    true
}

fn write(files: &mut Files, chain: &Chain, before: Result<Report, Error>) {
    let image = chain.image();
    let sector = image.geometry().sector_bytes;
    let last = (image.geometry().disk_bytes - sector) / MIB * MIB;
    let mut written = Vec::new();
    for at in [0, last] {
        if files.run(image.write(at, sector)).is_ok() {
            written.push(at);
        }
    }
    let flushed = files.run(image.flush());
    let worst = |report: Result<Report, Error>| report.ok().map(|it| it.worst());
    if flushed.is_ok() && !written.is_empty() {
        if let Some(was) = worst(before) {
            let is = worst(files.run(image.check())).expect("it was checked before");
            assert!(
                is <= was.max(Some(Severity::Note)),
                "{is:?}, it was {was:?}"
            );
        }
        let again = files.open(&Access::Read).expect("it was open");
        for at in written {
            let pieces = files.run(again.read(at, sector)).expect("it was written");
            assert_eq!(
                files.gather(&pieces, sector),
                vec![7; size(sector)],
                "what was written"
            );
        }
    }
}

#[cfg(test)]
mod test {
    #[test]
    fn no_change_of_a_chain_breaks_an_oracle() {
        assert!(super::try_image(&[]));
        let mut accepted = 0;
        let mut number = 1_u64;
        let mut next = || {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            number >> 11
        };
        for _ in 0..2000 {
            let changes = next() % 4 + 1;
            let bytes: Vec<u8> = (0..changes)
                .flat_map(|_| {
                    let mut change = (next() << 32 | next() & 0xffff_ffff).to_le_bytes();
                    // Most changes are small numbers, and of all of the area.
                    if next() % 2 == 0 {
                        change[5..].fill(0);
                    }
                    if change[2] % 4 != 0 {
                        change[3] = 0;
                    }
                    change
                })
                .collect();
            accepted += u32::from(super::try_image(&bytes));
        }
        assert!(
            (400..1900).contains(&accepted),
            "{accepted} of 2000 are accepted"
        );
    }
}
