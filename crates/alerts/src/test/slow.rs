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
            let Done { count, us_sum } = &mut self.lun.read;
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
    // Commands wait and none ends: it is not well.
    bed.lun.in_flight = 3;
    assert_eq!(bed.verdict(10, 0, 0), Some(false));
    bed.lun.in_flight = 0;
    assert_eq!(bed.verdict(1, 0, 0), None);
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
