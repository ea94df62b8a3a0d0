//! What is recorded of objects.

/// How a figure behaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// It only grows; what is kept is by how much.
    Counter,
    /// It goes up and down; what is kept is the least, the mean and the most.
    Gauge,
}

/// A figure of an object. Its number stands in files and is never given again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Metric(u8);

/// Number, name, behaviour, unit of what is answered, and what a unit is multiplied by in the file.
type Row = (u8, &'static str, Behaviour, &'static str, u64);

const TABLE: [Row; 27] = [
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
        METRICS.into_iter().find(|metric| metric.0 == number)
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
}
