//! `lab sector-size`: the same I/O on a LUN of 512-byte blocks and on one of 4096-byte blocks.

use crate::bed::Topology;
use crate::error::LabError;
use crate::mpio::limit;
use crate::port::Port;
use crate::published::{SectorRow, published};
use crate::rate::Rate;
use crate::rig::{Disk, Rig, Use};
use crate::svg::{self, Group};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// How it is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SectorsOptions {
    /// Rate of both links.
    pub rate: Rate,
    /// Seconds for each measurement.
    pub seconds: u32,
    /// The LUN is in memory, not in a file.
    pub in_memory: bool,
}

impl Default for SectorsOptions {
    fn default() -> Self {
        Self {
            rate: Rate::megabits(10_000),
            seconds: 1,
            in_memory: true,
        }
    }
}

/// The published rows, by the words of the bench.
const ROWS: [(&str, &str); 10] = [
    ("read seq 4M", "-b4M -o1 -w0"),
    ("read 4K", "-b4K -o1 -r -w0"),
    ("read 4K QD4", "-b4K -o4 -r -w0"),
    ("read 4K QD16", "-b4K -o16 -r -w0"),
    ("read 32K", "-b32K -o1 -r -w0"),
    ("read 128K", "-b128K -o1 -r -w0"),
    ("write seq 4M", "-b4M -o1 -w100"),
    ("write 4K", "-b4K -o1 -r -w100"),
    ("write 4K QD4", "-b4K -o4 -r -w100"),
    ("write 4K QD16", "-b4K -o16 -r -w100"),
];

/// What `causeway lab sector-size` measured, beside what was published.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SectorsReport {
    /// Its name.
    pub lab: &'static str,
    /// How it was measured.
    pub options: SectorsOptions,
    /// The machine and disks that the published figures are of.
    pub published_rig: String,
    /// What was asked of them.
    pub published_workload: String,
    /// By kind of I/O.
    pub rows: Vec<SectorsRow>,
}

/// A kind of I/O, in IOPS.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SectorsRow {
    /// Which, and what was measured.
    #[serde(flatten)]
    pub measured: SectorRow,
    /// 4096 against 512, in percent.
    pub difference_pct: f64,
    /// How far the passes of one size lie apart, in percent of their median: a difference that is
    /// smaller says nothing.
    pub spread_pct: f64,
    /// What was published.
    pub published: Option<SectorRow>,
    /// 4096 against 512 in the published figures, in percent.
    pub published_difference_pct: Option<f64>,
}

fn difference(row: &SectorRow) -> f64 {
    (row.sector_4096 / row.sector_512.max(1e-9) - 1.0) * 100.0
}

fn median(mut passes: Vec<f64>) -> f64 {
    passes.sort_by(f64::total_cmp);
    passes.get(passes.len() / 2).copied().unwrap_or(0.0)
}

fn spread_pct(passes: &[f64]) -> f64 {
    let most = passes.iter().copied().fold(0.0, f64::max);
    let least = passes.iter().copied().fold(most, f64::min);
    (most - least) / median(passes.to_vec()).max(1e-9) * 100.0
}

/// Runs it; `report` is called with what is done.
///
/// # Errors
/// Where the lab cannot be built, or a run fails.
pub async fn run(
    program: &Path,
    options: SectorsOptions,
    mut report: impl FnMut(&str),
) -> Result<SectorsReport, LabError> {
    let host = ["eth0", "eth1"].map(|name| Port::new(name, name).rate(options.rate));
    let target = ["p0", "p1"].map(|name| Port::new(name, name).rate(options.rate));
    let topology = Topology {
        host: host.to_vec(),
        target: target.to_vec(),
        buffer_kib: 1024,
        mtu: 9000,
    };
    let disk = |block_size| Disk {
        block_size,
        mebibytes: 512,
        in_memory: options.in_memory,
    };
    let small = Rig::start(program, topology.clone(), &disk(512)).await?;
    let large = Rig::start(program, topology, &disk(4096)).await?;
    let known = published().sector_size;
    let mut rows = Vec::new();
    for (io, words) in ROWS {
        let words: Vec<&str> = words.split(' ').collect();
        let time = format!("-d{}", options.seconds);
        let how = Use::all(&words).with(&["-t1", "-f256M", "-W0.5", "-C0", &time]);
        // There and back and there: what drifts meanwhile takes from both alike.
        let mut passes = [Vec::new(), Vec::new()];
        for which in [0, 1, 1, 0, 0, 1] {
            let rig = [&small, &large][which];
            let figures = rig.bench(&how, limit(options.seconds)).await?;
            passes[which].push(figures.total.map_or(0.0, |it| it.iops));
        }
        let spread = passes.each_ref().map(|passes| spread_pct(passes));
        let iops = passes.map(median);
        let measured = SectorRow {
            io: io.to_owned(),
            sector_512: iops[0],
            sector_4096: iops[1],
        };
        let there = known.row.iter().find(|row| row.io == io).cloned();
        let row = SectorsRow {
            difference_pct: difference(&measured),
            spread_pct: spread[0].max(spread[1]),
            measured,
            published_difference_pct: there.as_ref().map(difference),
            published: there,
        };
        report(&format!(
            "{io:<14} {:9.0} {:9.0} IOPS, {:+.1} %, passes {:.0} % apart",
            iops[0], iops[1], row.difference_pct, row.spread_pct
        ));
        rows.push(row);
    }
    Ok(SectorsReport {
        lab: "sector-size",
        options,
        published_rig: known.rig,
        published_workload: known.workload,
        rows,
    })
}

impl SectorsReport {
    /// The report as lines for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!(
            "IOPS on 512-byte and 4096-byte blocks, a LUN in {}, two links of {}\n\n\
             I/O                  512      4096      diff   spread   published 512      4096      diff\n",
            if self.options.in_memory {
                "memory"
            } else {
                "a file"
            },
            self.options.rate
        );
        for row in &self.rows {
            let (one, there) = (&row.measured, row.published.as_ref());
            let _fits = writeln!(
                out,
                "{:<14}{:>10.0}{:>10.0}{:>8.1} %{:>7.0} %{:>16.0}{:>10.0}{:>8.1} %",
                one.io,
                one.sector_512,
                one.sector_4096,
                row.difference_pct,
                row.spread_pct,
                there.map_or(0.0, |it| it.sector_512),
                there.map_or(0.0, |it| it.sector_4096),
                row.published_difference_pct.unwrap_or(0.0)
            );
        }
        let _fits = writeln!(
            out,
            "\npublished: {}; {}",
            self.published_rig, self.published_workload
        );
        out
    }

    /// As a page of HTML that needs no other file.
    #[must_use]
    pub fn page(&self) -> String {
        // One scale cannot show 400 and 24,000: each row is drawn against its own 512.
        let groups = self.rows.iter().map(|row| {
            let part = |one: &SectorRow| one.sector_4096 / one.sector_512.max(1e-9) * 100.0;
            Group {
                label: row
                    .measured
                    .io
                    .trim_start_matches("seq ")
                    .replace(" QD", "/"),
                bars: vec![
                    ("read", Some(part(&row.measured))),
                    ("theirs", row.published.as_ref().map(part)),
                ],
            }
        });
        let body = format!(
            "<p>IOPS on 4096-byte blocks, in percent of those on 512-byte blocks; grey is what was published.</p>{}<pre>{}</pre>",
            svg::bars(&groups.collect::<Vec<_>>(), "%"),
            svg::escape(&self.text())
        );
        svg::page("Causeway lab: sector size", &body)
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn one_pass_that_was_disturbed_changes_the_spread_and_not_the_figure() {
        assert_eq!(median(vec![100.0, 10.0, 102.0]), 100.0);
        assert_eq!(spread_pct(&[100.0, 10.0, 102.0]), 92.0);
        assert_eq!((median(Vec::new()), spread_pct(&[])), (0.0, 0.0));
    }
}
