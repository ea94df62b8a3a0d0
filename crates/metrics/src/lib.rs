//! The metrics in the Prometheus text format (version 0.0.4).
//!
//! Labels are names that the administrator chose, never what an initiator says, so the number of
//! series is bounded by the objects (40 for a LUN that does nothing; latency is reported for reads
//! and writes, and by stage from the first command on, three series for each; bytes for what moves
//! or frees blocks) and by grants (one for each portal, and two); and by [`SERIES_MAX`] a family,
//! whatever happens.
//!
//! Each family is declared where its series are made; the tables of `docs/metrics.md` are made from
//! these declarations.

mod alerts;
mod cores;
mod disks;
mod family;
mod journals;
mod layers;
mod luns;
mod machine;
#[cfg(test)]
mod page;
mod paths;
mod pools;
mod scrubs;
mod sessions;

pub use self::alerts::{AlertFigures, Receiver};
pub use family::SERIES_MAX;
pub use machine::{MachineFigures, NicFigures};

use controller::Sample;
use family::{Family, Text};
use luns::Luns;

const BUILD: Family<2> = Family::gauge(
    "causeway_build_info",
    ["version", "commit"],
    "1; the daemon's version, and the commit that it was built from, with `-dirty` where files differed from it; empty \
     where the build did not say it",
);

const GENERATION: Family<0> = Family::gauge(
    "causeway_config_generation",
    [],
    "Generation of the stored objects",
);

const DROPPED: Family<0> = Family::gauge(
    "causeway_metrics_series_dropped",
    [],
    "Series left out because there are more than 200,000 in a family",
);

/// The answer of `/metrics` for a sample.
#[must_use]
pub fn text(sample: &Sample, figures: &AlertFigures, of_machine: &MachineFigures) -> String {
    let mut out = Text::default();
    out.family(&BUILD);
    let build = [env!("CARGO_PKG_VERSION"), of_machine.commit];
    out.series(&BUILD, build, 1);
    out.single(&GENERATION, sample.generation);
    let by_name = sample
        .luns
        .iter()
        .map(|(name, facts)| (name.as_str(), facts));
    let by_name: Luns<'_> = by_name.collect();
    luns::luns(&mut out, &by_name, &sample.objects);
    layers::layers(&mut out, &by_name, &sample.objects);
    scrubs::scrubs(&mut out, &by_name);
    sessions::sessions(&mut out, sample);
    sessions::outcomes(&mut out, sample);
    paths::paths(&mut out, sample);
    cores::cores(&mut out, &sample.cores);
    pools::pools(&mut out, &sample.pools);
    pools::memory(&mut out, &sample.memory);
    journals::journals(&mut out, &sample.pools);
    disks::disks(&mut out, &sample.disks);
    alerts::alerts(&mut out, figures);
    machine::machine(&mut out, of_machine);
    let dropped = out.dropped();
    out.single(&DROPPED, dropped);
    out.into_text()
}

#[cfg(test)]
mod test;
