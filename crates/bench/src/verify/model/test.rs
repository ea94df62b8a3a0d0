use super::*;

const UNIT: u64 = 1024;

/// A disk as a vector, and the model beside it.
struct Bed {
    checker: Checker,
    disk: Vec<u8>,
}

impl Bed {
    fn new() -> Self {
        Self {
            checker: Checker::new(77, 1 << 20, 16 * UNIT, &[UNIT, 4 * UNIT]),
            disk: vec![0; 16 * 1024],
        }
    }

    fn range(at: u64, bytes: u64) -> Range<usize> {
        usize::try_from(at).unwrap()..usize::try_from(at + bytes).unwrap()
    }

    /// A write of which `there` reaches the disk.
    fn write(&mut self, at: u64, bytes: u64, well: bool, there: Range<usize>) -> Vec<u8> {
        assert!(self.checker.claim(at, bytes));
        let memory = BufMut::zeroed(usize::try_from(bytes).unwrap());
        let (write, data) = self.checker.stamp(at, 3, memory);
        let data = data.to_vec();
        let to = Self::range(at, bytes);
        self.disk[to][there.clone()].copy_from_slice(&data[there]);
        self.checker.wrote(at, bytes, write, well);
        data
    }

    fn read(&self, at: u64, bytes: u64) -> Vec<Wrong> {
        let before = self.checker.tally().described.len();
        assert!(self.checker.claim(at, bytes));
        let data = Buf::copy_of(&self.disk[Self::range(at, bytes)]);
        self.checker.read(at, bytes, Some(&data));
        let described = self.checker.tally().described;
        described[before..].iter().map(|bad| bad.wrong).collect()
    }
}

#[test]
fn what_was_acknowledged_is_right_and_what_was_never_written_is_not_judged() {
    let mut bed = Bed::new();
    bed.write(2 * UNIT, 2 * UNIT, true, 0..2048);
    bed.write(3 * UNIT, UNIT, true, 0..1024);
    assert!(bed.read(0, 8 * UNIT).is_empty());
    let tally = bed.checker.tally();
    assert_eq!((tally.checked, tally.bad), (4, 0));
}

#[test]
fn a_write_that_was_acknowledged_and_is_not_there_is_lost() {
    let mut bed = Bed::new();
    bed.write(0, UNIT, true, 0..1024);
    bed.write(0, UNIT, true, 0..0);
    assert_eq!(bed.read(0, UNIT), [Wrong::Lost]);
    bed.write(UNIT, UNIT, true, 512..512);
    assert_eq!(bed.read(UNIT, UNIT), [Wrong::Foreign]);
    // Each is reported once, but all of its sectors count.
    assert!(bed.read(0, 2 * UNIT).is_empty());
    assert_eq!(bed.checker.tally().bad, 4);
}

#[test]
fn an_older_write_over_one_that_was_read_is_stale() {
    let mut bed = Bed::new();
    let ghost = bed.write(0, UNIT, true, 0..1024);
    bed.write(0, UNIT, true, 0..1024);
    assert!(bed.read(0, UNIT).is_empty());
    bed.disk[..1024].copy_from_slice(&ghost);
    assert_eq!(bed.read(0, UNIT), [Wrong::Stale]);
    let reported = bed.checker.tally().described[0].to_string();
    assert!(
        reported.starts_with("stale at byte 1048576: write 2 was acknowledged, there is write 1"),
        "{reported}"
    );
}

#[test]
fn a_write_of_which_a_part_is_there_is_torn_or_lost_in_part() {
    let mut bed = Bed::new();
    bed.write(0, UNIT, true, 0..1024);
    bed.write(0, UNIT, true, 0..512);
    assert_eq!(bed.read(0, UNIT), [Wrong::Lost]);
    bed.write(0, UNIT, true, 0..700);
    assert_eq!(bed.read(0, UNIT), [Wrong::Torn]);
}

#[test]
fn a_block_at_the_wrong_place_is_misplaced() {
    let mut bed = Bed::new();
    let one = bed.write(0, UNIT, true, 0..1024);
    bed.write(UNIT, UNIT, true, 0..1024);
    bed.disk[1024..2048].copy_from_slice(&one);
    assert_eq!(bed.read(UNIT, UNIT), [Wrong::Misplaced]);
}

#[test]
fn a_failed_write_may_be_there_or_not_until_the_next_one_is_acknowledged() {
    let mut bed = Bed::new();
    bed.write(0, UNIT, true, 0..1024);
    let failed = bed.write(0, UNIT, false, 0..0);
    assert!(bed.read(0, UNIT).is_empty());
    bed.disk[..1024].copy_from_slice(&failed);
    assert!(bed.read(0, UNIT).is_empty());
    bed.write(0, UNIT, true, 0..1024);
    assert!(bed.read(0, UNIT).is_empty());
    bed.disk[..1024].copy_from_slice(&failed);
    assert_eq!(bed.read(0, UNIT), [Wrong::Stale]);
}

#[test]
fn claims_exclude_each_other_and_a_refused_one_takes_nothing() {
    let bed = Bed::new();
    assert!(bed.checker.claim(2 * UNIT, 2 * UNIT));
    assert!(!bed.checker.claim(0, 4 * UNIT));
    assert!(bed.checker.claim(0, 2 * UNIT));
    bed.checker.read(2 * UNIT, 2 * UNIT, None);
    assert!(bed.checker.claim(2 * UNIT, UNIT));
}

#[test]
fn the_last_pass_covers_what_was_written_and_is_not_in_flight() {
    let mut bed = Bed::new();
    bed.write(0, UNIT, true, 0..1024);
    bed.write(4 * UNIT, 4 * UNIT, true, 0..4096);
    assert!(bed.checker.claim(6 * UNIT, UNIT));
    let parts: Vec<_> = bed.checker.written(3 * UNIT).collect();
    assert_eq!(parts, [(0, UNIT), (4 * UNIT, 2 * UNIT), (7 * UNIT, UNIT)]);
}
