//! What is recorded of objects.

/// How a figure behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// It only grows; what is kept is by how much.
    Counter,
    /// It goes up and down; what is kept is the least, the mean and the most.
    Gauge,
    /// It goes up and down; what is kept is the mean alone.
    Level,
    /// What came since it was read last; what is kept is how much, and nothing where nothing came.
    Tally,
}

/// A figure of an object. Its number stands in files and is never given again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Metric(u8);

/// Number, name, behaviour, unit of what is answered, and what a unit is multiplied by in the file.
type Row = (u8, &'static str, Behaviour, &'static str, u64);

/// Levels and tallies are read once in so many seconds: the finest tier has none of them.
pub const SLOW_EVERY: u64 = 10;

/// Rows of a latency map: each is twice as long as the one before, the first a microsecond.
pub const MAP_ROWS: usize = 24;

/// Where the rows of a map begin: those of reads, then those of writes.
const MAP_FIRST: u8 = 43;
const MAP_ROWS_NUMBER: u8 = 24;

const TABLE: [Row; 45 + 2 * MAP_ROWS] = [
    (1, "read_ops", Behaviour::Counter, "1/s", 1),
    (2, "write_ops", Behaviour::Counter, "1/s", 1),
    (3, "other_ops", Behaviour::Counter, "1/s", 1),
    (4, "read_bytes", Behaviour::Counter, "byte/s", 1),
    (5, "write_bytes", Behaviour::Counter, "byte/s", 1),
    // In sixteenths, so that a mean below 1 shows.
    (6, "in_flight", Behaviour::Gauge, "1", 16),
    (7, "read_latency_p50", Behaviour::Gauge, "us", 1),
    (8, "read_latency_p99", Behaviour::Gauge, "us", 1),
    (9, "write_latency_p50", Behaviour::Gauge, "us", 1),
    (10, "write_latency_p99", Behaviour::Gauge, "us", 1),
    (11, "read_network_mean", Behaviour::Gauge, "us", 1),
    (12, "read_queue_mean", Behaviour::Gauge, "us", 1),
    (13, "read_backend_mean", Behaviour::Gauge, "us", 1),
    (14, "write_network_mean", Behaviour::Gauge, "us", 1),
    (15, "write_queue_mean", Behaviour::Gauge, "us", 1),
    (16, "write_backend_mean", Behaviour::Gauge, "us", 1),
    (17, "commands", Behaviour::Counter, "1/s", 1),
    (18, "bytes_in", Behaviour::Counter, "byte/s", 1),
    (19, "bytes_out", Behaviour::Counter, "byte/s", 1),
    (20, "sessions", Behaviour::Gauge, "1", 16),
    (21, "core_load", Behaviour::Gauge, "permille", 1),
    (22, "size_bytes", Behaviour::Gauge, "byte", 1),
    (23, "used_bytes", Behaviour::Gauge, "byte", 1),
    (24, "journal_size_bytes", Behaviour::Gauge, "byte", 1),
    (25, "journal_used_bytes", Behaviour::Gauge, "byte", 1),
    (26, "cache_hits", Behaviour::Counter, "1/s", 1),
    (27, "cache_misses", Behaviour::Counter, "1/s", 1),
    (28, "journal_pending_bytes", Behaviour::Gauge, "byte", 1),
    (29, "destaged_bytes", Behaviour::Counter, "byte/s", 1),
    (30, "journal_written_bytes", Behaviour::Counter, "byte/s", 1),
    (31, "read_network_p50", Behaviour::Level, "us", 1),
    (32, "read_network_p99", Behaviour::Level, "us", 1),
    (33, "read_queue_p50", Behaviour::Level, "us", 1),
    (34, "read_queue_p99", Behaviour::Level, "us", 1),
    (35, "read_backend_p50", Behaviour::Level, "us", 1),
    (36, "read_backend_p99", Behaviour::Level, "us", 1),
    (37, "write_network_p50", Behaviour::Level, "us", 1),
    (38, "write_network_p99", Behaviour::Level, "us", 1),
    (39, "write_queue_p50", Behaviour::Level, "us", 1),
    (40, "write_queue_p99", Behaviour::Level, "us", 1),
    (41, "write_backend_p50", Behaviour::Level, "us", 1),
    (42, "write_backend_p99", Behaviour::Level, "us", 1),
    // How many took no longer than that, and longer than the one before: a map of latency.
    (43, "read_took_1us", Behaviour::Tally, "1/s", 1),
    (44, "read_took_2us", Behaviour::Tally, "1/s", 1),
    (45, "read_took_4us", Behaviour::Tally, "1/s", 1),
    (46, "read_took_8us", Behaviour::Tally, "1/s", 1),
    (47, "read_took_16us", Behaviour::Tally, "1/s", 1),
    (48, "read_took_32us", Behaviour::Tally, "1/s", 1),
    (49, "read_took_64us", Behaviour::Tally, "1/s", 1),
    (50, "read_took_128us", Behaviour::Tally, "1/s", 1),
    (51, "read_took_256us", Behaviour::Tally, "1/s", 1),
    (52, "read_took_512us", Behaviour::Tally, "1/s", 1),
    (53, "read_took_1024us", Behaviour::Tally, "1/s", 1),
    (54, "read_took_2048us", Behaviour::Tally, "1/s", 1),
    (55, "read_took_4096us", Behaviour::Tally, "1/s", 1),
    (56, "read_took_8192us", Behaviour::Tally, "1/s", 1),
    (57, "read_took_16384us", Behaviour::Tally, "1/s", 1),
    (58, "read_took_32768us", Behaviour::Tally, "1/s", 1),
    (59, "read_took_65536us", Behaviour::Tally, "1/s", 1),
    (60, "read_took_131072us", Behaviour::Tally, "1/s", 1),
    (61, "read_took_262144us", Behaviour::Tally, "1/s", 1),
    (62, "read_took_524288us", Behaviour::Tally, "1/s", 1),
    (63, "read_took_1048576us", Behaviour::Tally, "1/s", 1),
    (64, "read_took_2097152us", Behaviour::Tally, "1/s", 1),
    (65, "read_took_4194304us", Behaviour::Tally, "1/s", 1),
    (66, "read_took_8388608us", Behaviour::Tally, "1/s", 1),
    (67, "write_took_1us", Behaviour::Tally, "1/s", 1),
    (68, "write_took_2us", Behaviour::Tally, "1/s", 1),
    (69, "write_took_4us", Behaviour::Tally, "1/s", 1),
    (70, "write_took_8us", Behaviour::Tally, "1/s", 1),
    (71, "write_took_16us", Behaviour::Tally, "1/s", 1),
    (72, "write_took_32us", Behaviour::Tally, "1/s", 1),
    (73, "write_took_64us", Behaviour::Tally, "1/s", 1),
    (74, "write_took_128us", Behaviour::Tally, "1/s", 1),
    (75, "write_took_256us", Behaviour::Tally, "1/s", 1),
    (76, "write_took_512us", Behaviour::Tally, "1/s", 1),
    (77, "write_took_1024us", Behaviour::Tally, "1/s", 1),
    (78, "write_took_2048us", Behaviour::Tally, "1/s", 1),
    (79, "write_took_4096us", Behaviour::Tally, "1/s", 1),
    (80, "write_took_8192us", Behaviour::Tally, "1/s", 1),
    (81, "write_took_16384us", Behaviour::Tally, "1/s", 1),
    (82, "write_took_32768us", Behaviour::Tally, "1/s", 1),
    (83, "write_took_65536us", Behaviour::Tally, "1/s", 1),
    (84, "write_took_131072us", Behaviour::Tally, "1/s", 1),
    (85, "write_took_262144us", Behaviour::Tally, "1/s", 1),
    (86, "write_took_524288us", Behaviour::Tally, "1/s", 1),
    (87, "write_took_1048576us", Behaviour::Tally, "1/s", 1),
    (88, "write_took_2097152us", Behaviour::Tally, "1/s", 1),
    (89, "write_took_4194304us", Behaviour::Tally, "1/s", 1),
    (90, "write_took_8388608us", Behaviour::Tally, "1/s", 1),
    (91, "write_journal_mean", Behaviour::Gauge, "us", 1),
    (92, "write_journal_p50", Behaviour::Level, "us", 1),
    (93, "write_journal_p99", Behaviour::Level, "us", 1),
];

/// All that there are, by number.
pub const METRICS: [Metric; TABLE.len()] = {
    let mut all = [Metric(0); TABLE.len()];
    let mut at = 0;
    while at < TABLE.len() {
        all[at] = Metric(TABLE[at].0);
        at += 1;
    }
    all
};

/// As `==`, where the compiler compares.
const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

impl Metric {
    /// The one of this name, for who knows the name when the program is compiled.
    ///
    /// # Panics
    /// There is none.
    #[must_use]
    pub const fn known(name: &str) -> Self {
        let mut at = 0;
        while at < TABLE.len() {
            if is_same(TABLE[at].1, name) {
                return Self(TABLE[at].0);
            }
            at += 1;
        }
        panic!("no metric has this name")
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let row = TABLE.iter().find(|row| row.1 == name)?;
        Some(Self(row.0))
    }

    /// The one of this number.
    #[must_use]
    pub(crate) fn numbered(number: u8) -> Option<Self> {
        let is_known = (1..=TABLE.len()).contains(&usize::from(number));
        is_known.then_some(Self(number))
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    fn row(self) -> &'static Row {
        // Numbers begin at 1 and leave none out, as a test says.
        &TABLE[usize::from(self.0) - 1]
    }

    /// What parameters and answers call it; it never changes its meaning.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// How it behaves.
    #[must_use]
    pub fn behaviour(self) -> Behaviour {
        self.row().2
    }

    /// The unit of what a query answers; of a counter by the second.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.row().3
    }

    pub(crate) fn scale(self) -> u64 {
        self.row().4
    }

    /// Seconds that a reading stands for.
    #[must_use]
    pub fn every(self) -> u64 {
        match self.behaviour() {
            Behaviour::Counter | Behaviour::Gauge => 1,
            Behaviour::Level | Behaviour::Tally => SLOW_EVERY,
        }
    }

    /// A row of the latency map, of reads or of writes: the commands that took no longer than
    /// `2^row` microseconds and longer than half of it. The last one has all that took longer.
    #[must_use]
    pub const fn of_map(is_write: bool, row: u8) -> Self {
        let row = if row < MAP_ROWS_NUMBER {
            row
        } else {
            MAP_ROWS_NUMBER - 1
        };
        let first = if is_write {
            MAP_FIRST + MAP_ROWS_NUMBER
        } else {
            MAP_FIRST
        };
        Self(first + row)
    }

    /// It is a row of a map. Nobody wants to see it alone.
    #[must_use]
    pub const fn is_of_map(self) -> bool {
        self.0 >= MAP_FIRST && self.0 < MAP_FIRST + 2 * MAP_ROWS_NUMBER
    }
}

/// The row of the latency map for what took no longer than so many microseconds.
#[must_use]
pub fn map_row(us: u64) -> u8 {
    let row = us.max(1).next_power_of_two().trailing_zeros();
    u8::try_from(row).map_or(MAP_ROWS_NUMBER - 1, |row| row.min(MAP_ROWS_NUMBER - 1))
}

#[cfg(test)]
mod test {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_metric_is_where_its_number_says_and_has_a_name_of_its_own() {
        let mut names = BTreeSet::new();
        for (metric, number) in METRICS.into_iter().zip(1..) {
            assert_eq!(metric.number(), number);
            assert_eq!(Metric::named(metric.name()), Some(metric));
            assert_eq!(Metric::known(metric.name()), metric);
            assert!(names.insert(metric.name()));
        }
        assert_eq!(
            (Metric::named("nothing"), Metric::numbered(200)),
            (None, None)
        );
    }

    #[test]
    fn a_row_of_the_map_has_the_time_that_its_name_says() {
        for (op, is_write) in [("read", false), ("write", true)] {
            for row in 0..MAP_ROWS_NUMBER {
                let name = format!("{op}_took_{}us", 1_u64 << row);
                let metric = Metric::of_map(is_write, row);
                assert_eq!((metric.name(), metric.is_of_map()), (&*name, true));
            }
        }
        assert_eq!(
            [0, 1, 2, 3, 64, 65, 1 << 25].map(map_row),
            [0, 0, 1, 2, 6, 7, 23]
        );
        assert_eq!(Metric::of_map(true, 99), Metric::of_map(true, 23));
        for other in ["write_backend_p99", "write_journal_mean"] {
            assert!(!Metric::known(other).is_of_map());
        }
    }
}
