//! Changes of size on a disk that is full, where the LUN has checksums.

use crate::data_plane::Node;
use crate::data_plane::test::{apply, begin_with, edit, wait};
use crate::journal::monitor_test::with_journal;
use crate::journal::pool_journal::PoolJournal;
use controller::Controller;
use controller::test_support::lab;
use engine::Engine;
use env::sim::{World, WorldConfig};
use manifest::code::Code;
use manifest::size::Size;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, Op, Origin};

const LIMIT: Duration = Duration::from_secs(600);
const MIB: u64 = 1 << 20;
const SMALL: u64 = 16 * MIB;
/// Several pages of checksums more, and one block behind what one of the last page is of.
const LARGE: u64 = 61 * MIB;
/// Time for a try, and for what it does.
const SOON: Duration = Duration::from_secs(15);

struct Bench {
    world: World,
    machine: env::sim::Node,
    controller: Rc<Controller>,
    engine: Node,
}

impl Bench {
    fn new(size: u64) -> Self {
        let world = World::new(21, WorldConfig::default());
        let machine = world.node("a");
        let (controller, engine) = begin_with(&world, &machine, with_journal);
        let bench = Self {
            world,
            machine,
            controller,
            engine,
        };
        bench.resize(size).unwrap();
        let (map, _) = bench.file("checksums");
        assert!(bench.machine.disk().copy_on_write(&map));
        bench
    }

    fn resize(&self, size: u64) -> Result<(), Code> {
        let mut set = lab();
        set.lun[0].storage.integrity = Some(true);
        set.lun[0].size = Size::from_bytes(size).unwrap();
        let done = edit(&self.world, &self.machine, &self.controller, apply(set));
        done.map_err(|problem| problem.code)
    }

    /// A file of the LUN in its pool, and the bytes that it has of the disk.
    fn file(&self, kind: &str) -> (PathBuf, u64) {
        let core = self.machine.core(0);
        let listed = async move { core.files().list(Path::new("/c/pool")).await };
        let all = self.world.block_on(&self.machine, LIMIT, listed).unwrap();
        let mut all = all.unwrap().into_iter();
        let is_it = |name: &Path| name.extension().is_some_and(|it| it == kind);
        let it = all.find(|it| is_it(Path::new(&it.name)));
        let it = it.expect("it is there");
        (Path::new("/c/pool").join(it.name), it.allocated)
    }

    /// Some blocks of 4096 bytes of so many, the last one among them, by their numbers.
    fn places(&self, size: u64) -> impl Iterator<Item = u64> + use<> {
        (0..size / 4096).step_by(509).chain([size / 4096 - 1])
    }

    fn ask(&self, op: impl Fn(LbaRange) -> Op + 'static, place: u64) -> Done {
        let units = self.engine.0.units.borrow();
        let unit = Rc::clone(units.values().next().expect("the LUN"));
        drop(units);
        let core = self.machine.core(0);
        let asked = async move {
            let lane = unit.volume().unwrap().open(&core).await.unwrap();
            let blocks = 4096 / unit.block_bytes;
            let range = LbaRange::new(Lba(place * blocks), BlockCount(blocks)).unwrap();
            lane.submit(Io::new(op(range), Origin::default())).await
        };
        let answer = self.world.block_on(&self.machine, LIMIT, asked).unwrap();
        answer.unwrap_or_else(|error| panic!("{error:?} at {place}"))
    }

    fn write(&self, place: u64, byte: u8) {
        let write = move |range| Op::Write {
            range,
            data: Buf::copy_of(&[byte; 4096]),
            durability: Durability::Cached,
        };
        self.ask(write, place);
    }

    fn byte(&self, place: u64) -> u8 {
        let Done::Data(data) = self.ask(|range| Op::Read { range, into: None }, place) else {
            panic!("a read gives data")
        };
        data.to_vec()[0]
    }

    /// All that the journal holds is destaged.
    fn drain(&self) {
        let PoolJournal::Open(journal) = self.engine.0.journals.of("default") else {
            panic!("the journal is open")
        };
        let core = self.machine.core(0);
        let drained = async move { journal.drain(&core).await };
        self.world.block_on(&self.machine, LIMIT, drained).unwrap();
    }

    fn bytes(&self) -> u64 {
        let units = self.engine.0.units.borrow();
        let unit = units.values().next().expect("the LUN");
        unit.volume().unwrap().shape().byte_count().0
    }

    fn naa(&self) -> String {
        let units = self.engine.0.units.borrow();
        units.keys().next().expect("the LUN").clone()
    }

    fn is_reported(&self) -> bool {
        let notices = self.engine.lun_notices(&self.naa());
        notices
            .iter()
            .any(|it| it.contains("change of size has not ended"))
    }

    /// The change of size, with so many pages left on the disk; where it did not end then, and does
    /// when there is room: the bytes of its file before there was.
    fn without_room(&self, to: u64, pages: u64) -> Option<u64> {
        let disk = self.machine.disk();
        disk.set_capacity(disk.used_bytes() + pages * 4096);
        let ended = self.resize(to);
        let half = match ended {
            Err(Code::PartlyDone) => {
                assert!(self.is_reported());
                wait(&self.world, &self.machine, SOON);
                assert!(self.is_reported(), "there is no room yet");
                // One that was to grow is as it was; one that was to shrink is smaller.
                assert_eq!(self.bytes(), SMALL);
                Some(self.file("lun").1)
            }
            Ok(()) | Err(Code::StateNotSaved | Code::PoolFull) => None,
            Err(other) => panic!("{other:?}"),
        };
        disk.set_capacity(1 << 40);
        wait(&self.world, &self.machine, SOON);
        assert!(!self.is_reported());
        // One that was refused.
        self.resize(to).unwrap();
        half
    }
}

#[test]
fn a_lun_with_checksums_grows_when_there_is_room_for_them() {
    let mut half = 0;
    for pages in 0..24 {
        let bench = Bench::new(SMALL);
        bench.places(SMALL).for_each(|place| bench.write(place, 7));
        half += u32::from(bench.without_room(LARGE, pages).is_some());
        for place in bench.places(LARGE).collect::<Vec<_>>() {
            let before = bench.places(SMALL).any(|it| it == place);
            assert_eq!(bench.byte(place), if before { 7 } else { 0 }, "{place}");
            bench.write(place, 9);
            assert_eq!(bench.byte(place), 9);
        }
    }
    assert!(half > 0);
}

#[test]
fn a_lun_with_checksums_shrinks_without_room_for_them_and_nothing_comes_back_when_it_grows() {
    let mut half = 0;
    for pages in 0..24 {
        let bench = Bench::new(LARGE);
        bench.places(LARGE).for_each(|place| bench.write(place, 7));
        bench.drain();
        let (_, before) = bench.file("lun");
        if let Some(used) = bench.without_room(SMALL, pages) {
            assert!(
                used + (64 << 10) < before,
                "the rest is cut off all the same: {used} of {before}"
            );
            half += 1;
        }
        for place in bench.places(SMALL) {
            let before = bench.places(LARGE).any(|it| it == place);
            assert_eq!(bench.byte(place), if before { 7 } else { 0 }, "{place}");
        }
        bench.resize(LARGE).unwrap();
        for place in bench.places(LARGE).filter(|place| *place >= SMALL / 4096) {
            assert_eq!(bench.byte(place), 0, "{place}");
        }
    }
    assert!(half > 0);
}
