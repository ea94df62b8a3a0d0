//! LUNs that are slower than usual, minute by minute.

use super::at;
use crate::{Done, Facts, Learned, LunSeen, Settings, Verdict, Watch};

struct Bed {
    watch: Watch,
    lun: LunSeen,
    now: u64,
}

impl Bed {
    fn new() -> Self {
        let lun = LunSeen {
            name: "l".to_owned(),
            key: "naa".to_owned(),
            ..LunSeen::default()
        };
        Self {
            watch: Watch::default(),
            lun,
            now: 0,
        }
    }

    /// So many minutes with so many reads a minute that take so long; what is said at the end.
    fn run(&mut self, minutes: u64, reads: u64, us: u64) -> Option<(bool, String)> {
        let mut last = None;
        for _ in 0..minutes * 6 {
            self.now += 10;
            let Done { count, us_sum, .. } = &mut self.lun.read;
            (*count, *us_sum) = (*count + reads / 6, *us_sum + reads / 6 * us);
            let facts = Facts {
                luns: vec![self.lun.clone()],
                ..Facts::default()
            };
            let said = self.watch.read(&facts, &Settings::default(), at(self.now));
            let slow = said.into_iter().find(|it| it.rule.id == "lun_slow");
            last = slow.map(|it| (it.verdict == Verdict::Bad, it.cause));
        }
        last
    }

    fn verdict(&mut self, minutes: u64, reads: u64, us: u64) -> Option<bool> {
        self.run(minutes, reads, us).map(|it| it.0)
    }
}

#[test]
fn a_lun_is_slow_by_its_own_measure_and_only_when_that_is_known() {
    let mut bed = Bed::new();
    assert_eq!(bed.verdict(300, 600, 1_000), None);
    assert_ne!(
        bed.verdict(6, 600, 20_000),
        Some(true),
        "too little is known yet"
    );
    assert_eq!(bed.verdict(100, 600, 1_000), None);
    let (bad, cause) = bed.run(6, 600, 20_000).unwrap();
    assert!(bad, "{cause}");
    assert!(
        cause.starts_with("reads of LUN l take 20 ms on average, "),
        "{cause}"
    );
    assert_eq!(
        bed.verdict(6, 600, 3_000),
        Some(false),
        "between the bounds"
    );
    assert_eq!(bed.verdict(6, 600, 1_100), None);
    assert_eq!(
        bed.verdict(2, 600, 200_000),
        None,
        "two bad minutes are none"
    );
    assert_eq!(bed.verdict(6, 600, 1_000), None);
    // It slept for a week, and what it was is known after a restart.
    assert_eq!(
        bed.verdict(7 * 1_440, 6, 90_000),
        None,
        "a few slow ones are no load"
    );
    let learned = Learned::read(&bed.watch.learned().write()).unwrap();
    bed.watch = Watch::new(learned);
    assert_eq!(bed.verdict(6, 600, 20_000), Some(true));
    // Something is asked again, and has not ended: it may be well.
    assert_eq!(bed.verdict(5, 0, 0), None);
    bed.lun.read.under_way = 1;
    assert_eq!(bed.verdict(1, 0, 0), Some(false));
}

#[test]
fn a_host_that_does_one_after_the_other_makes_few_of_them_where_a_lun_is_slowest() {
    let mut bed = Bed::new();
    // At depth 1: 60,000 a minute of 1 ms; 120 of 500 ms, which is fewer than a busy minute has.
    assert_eq!(bed.verdict(400, 60_000, 1_000), None);
    bed.lun.read.under_way = 1;
    let (bad, cause) = bed.run(4, 120, 500_000).unwrap();
    assert!(bad, "{cause}");
    assert!(
        cause.starts_with("reads of LUN l take 500 ms on average, "),
        "{cause}"
    );
    // Slower than a minute each.
    for _ in 0..3 {
        assert_eq!(bed.verdict(1, 0, 0), Some(true));
        assert_eq!(bed.verdict(1, 6, 65_000_000), Some(true));
    }
    assert_eq!(bed.verdict(4, 60_000, 1_000), None, "it is well again");
}

#[test]
fn a_lun_where_nothing_ends_is_slow_by_the_age_of_what_is_under_way() {
    let mut bed = Bed::new();
    assert_eq!(bed.verdict(400, 600, 1_000), None);
    bed.lun.read.under_way = 3;
    assert_ne!(bed.verdict(1, 0, 0), Some(true), "a minute is none");
    let known = bed.watch.learned();
    let (bad, cause) = bed.run(4, 0, 0).unwrap();
    assert!(bad, "{cause}");
    assert!(
        cause.starts_with("reads of LUN l: none has ended for 290 s, with 3 under way"),
        "{cause}"
    );
    let writes = |learned: Learned| learned.luns["naa"].write.clone();
    let reads = |learned: Learned| learned.luns["naa"].read.clone();
    let after = bed.watch.learned();
    assert_eq!(reads(after.clone()), reads(known.clone()), "nothing ended");
    assert_eq!(writes(after), writes(known));
    bed.lun.read.under_way = 0;
    assert_eq!(bed.verdict(4, 0, 0), None, "its host has given up");
}

#[test]
fn what_is_fast_is_never_slow_however_many_times_it_is() {
    let mut bed = Bed::new();
    assert_eq!(bed.verdict(400, 600, 100), None);
    assert_ne!(
        bed.verdict(10, 600, 1_900),
        Some(true),
        "nobody notices 2 ms"
    );
    assert_eq!(bed.verdict(10, 600, 2_100), Some(true));
}

#[test]
fn a_damaged_file_of_what_was_learned_is_no_knowledge() {
    for bad in [
        "",
        "{}",
        "{\"schema\":9,\"luns\":{}}",
        "{\"schema\":1,\"luns\":{\"x\":{\"first\":1,\"last\":1,\"read\":{\"3\":4294967295}}}}",
        "{\"schema\":1,\"luns\":{\"x\":{\"first\":1,\"last\":1,\"read\":{\"240\":5}}}}",
    ] {
        assert!(Learned::read(bad.as_bytes()).is_err(), "{bad}");
    }
}
