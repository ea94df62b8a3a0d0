//! Figures that others published, from the file beside the sources.

use serde::{Deserialize, Serialize};

/// The figures of the file, by the test that they belong to.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct Published {
    pub(crate) mpio_topologies: Topologies,
    pub(crate) round_robin_switching: Switching,
    pub(crate) sector_size: Sectors,
}

/// Seven ways to connect a host with several NICs.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct Topologies {
    pub(crate) source: String,
    pub(crate) rig: String,
    pub(crate) workload: String,
    pub(crate) row: Vec<TopologyRow>,
}

/// The published figures of one topology.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct TopologyRow {
    pub(crate) test: String,
    pub(crate) read: Pair,
    pub(crate) write: Pair,
}

/// Response time and throughput.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Pair {
    /// Milliseconds.
    pub ms: f64,
    /// MB/s.
    pub mbps: f64,
}

/// Commands per path before round robin goes on to the next.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Switching {
    /// The machines on which it was measured.
    pub rig: String,
    /// The load with which it was measured.
    pub workload: String,
    /// Commands that go to a path before the next one is used, as the product comes.
    pub default_commands_per_path: u32,
    /// What came of it at most.
    pub default_mbps_below: f64,
    /// What it was set to.
    pub tuned_commands_per_path: u32,
    /// What came of that.
    pub tuned_mbps: f64,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(crate) struct Sectors {
    pub(crate) rig: String,
    pub(crate) workload: String,
    pub(crate) row: Vec<SectorRow>,
}

/// One kind of I/O, in IOPS.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SectorRow {
    /// The kind of I/O as the source calls it, such as `random read`.
    pub io: String,
    /// On 512-byte sectors.
    pub sector_512: f64,
    /// On 4096-byte sectors.
    pub sector_4096: f64,
}

/// What stands in the file.
pub(crate) fn published() -> Published {
    toml::from_str(include_str!("../published.toml")).expect("a test reads the same file")
}

impl Topologies {
    pub(crate) fn row(&self, test: &str) -> Option<&TopologyRow> {
        self.row.iter().find(|row| row.test == test)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn the_deviations_that_were_published_follow_from_the_figures() {
        let all = published();
        assert_eq!(all.sector_size.row.len(), 10);
        let rows = &all.mpio_topologies;
        let control = rows.row("D").unwrap();
        // As printed there, in percent.
        for (test, read, write) in [
            ("A", -21.60, -58.72),
            ("B", -90.04, -96.16),
            ("C", 32.17, 70.25),
            ("F", 1.21, -92.11),
        ] {
            let row = rows.row(test).unwrap();
            let off = |one: f64, other: f64| (one / other - 1.0) * 100.0;
            assert!(
                (off(row.read.mbps, control.read.mbps) - read).abs() < 0.02,
                "{test}"
            );
            assert!(
                (off(row.write.mbps, control.write.mbps) - write).abs() < 0.02,
                "{test}"
            );
        }
    }
}
