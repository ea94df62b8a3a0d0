//! Ready-made sets of runs.

use crate::options::{Access, Options, Profile};
use crate::published::{SECTOR_SIZES, TOPOLOGIES};
use std::time::Duration;

/// What of a target the profiles use, unless `-f` says otherwise: as Anvil's test file.
const REGION: u64 = 1 << 30;

/// The pass lines of `jetstress-like`, in milliseconds.
pub const DATABASE_READ_MS: f64 = 20.0;
/// As above.
pub const LOG_WRITE_MS: f64 = 10.0;

/// The share of the target that the database has; the log has the rest.
const DATABASE_SHARE: u64 = 8;

/// One run of a profile.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// As the published table names it.
    pub name: String,
    /// What to run.
    pub options: Options,
    /// What others published for it: where, and operations a second.
    pub published: Vec<(String, f64)>,
}

/// The defaults that a profile has besides diskspd's.
#[must_use]
pub fn defaults() -> Options {
    Options {
        duration: Duration::from_secs(5),
        warm_up: Duration::from_secs(1),
        ..Options::default()
    }
}

fn with(base: &Options, block: u64, random: bool, outstanding: u32, write_percent: u8) -> Options {
    let access = if random {
        let alignment = block;
        Access::Random {
            alignment,
            percent: 100,
        }
    } else {
        Access::Sequential {
            stride: block,
            interlocked: false,
            parallel: false,
        }
    };
    Options {
        block,
        access,
        outstanding,
        write_percent,
        ..base.clone()
    }
}

/// What is written before the first run, so that reads find blocks.
#[must_use]
pub fn filled(base: &Options, start: u64, room: u64) -> Options {
    let most = base.length.unwrap_or(REGION).min(room);
    Options {
        base: Some(start),
        length: Some(most - most % 4096),
        ..base.clone()
    }
}

/// The runs of a profile over `room` bytes of a target.
#[must_use]
pub fn steps(profile: Profile, base: &Options, room: u64) -> Vec<Step> {
    let length = base.length.unwrap_or(REGION).min(room);
    let base = Options {
        length: Some(length),
        ..base.clone()
    };
    match profile {
        Profile::Anvil => anvil(&base),
        Profile::Mpio => mpio(&base),
        Profile::JetstressLike => Vec::new(),
    }
}

fn anvil(base: &Options) -> Vec<Step> {
    let kinds = [
        (4 << 20, false, 1, 0),
        (4 << 10, true, 1, 0),
        (4 << 10, true, 4, 0),
        (4 << 10, true, 16, 0),
        (32 << 10, true, 1, 0),
        (128 << 10, true, 1, 0),
        (4 << 20, false, 1, 100),
        (4 << 10, true, 1, 100),
        (4 << 10, true, 4, 100),
        (4 << 10, true, 16, 100),
    ];
    let step = |(row, kind): (&crate::published::SectorSize, (u64, bool, u32, u8))| Step {
        name: row.io.to_owned(),
        options: with(base, kind.0, kind.1, kind.2, kind.3),
        published: vec![
            ("512-byte sectors".to_owned(), row.sector_512),
            ("4096-byte sectors".to_owned(), row.sector_4096),
        ],
    };
    SECTOR_SIZES.iter().zip(kinds).map(step).collect()
}

fn mpio(base: &Options) -> Vec<Step> {
    let side = |name: &str, writes: u8, pick: fn(&crate::published::Topology) -> f64| Step {
        name: name.to_owned(),
        options: with(base, 4 << 20, false, 1, writes),
        published: TOPOLOGIES
            .iter()
            // The table has megabytes a second; an operation has 4 MiB, which it calls 4 MB.
            .map(|row| (format!("{}: {}", row.test, row.what), pick(row) / 4.0))
            .collect(),
    };
    vec![
        side("read seq 4M", 0, |row| row.read.1),
        side("write seq 4M", 100, |row| row.write.1),
    ]
}

/// The two loads of `jetstress-like`, which run at the same time: the database's random 32 KiB
/// reads and writes (3:2) at this concurrency, and the log's sequential 32 KiB writes, one at a
/// time, each on stable media.
#[must_use]
pub fn jetstress(base: &Options, start: u64, room: u64, outstanding: u32) -> [Options; 2] {
    let block = 32 << 10;
    let all = base.length.unwrap_or(REGION).min(room) / block * block;
    let log = (all / DATABASE_SHARE / block * block).max(block);
    let database = Options {
        base: Some(start),
        length: Some(all - log),
        ..with(base, block, true, outstanding, 40)
    };
    let log = Options {
        base: Some(start + all - log),
        length: Some(log),
        write_through: true,
        threads: 1,
        ..with(base, block, false, 1, 100)
    };
    [database, log]
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_profile_runs_the_rows_of_its_table() {
        let steps_of = |profile| steps(profile, &defaults(), 1 << 40);
        let anvil = steps_of(Profile::Anvil);
        assert_eq!(anvil.len(), 10);
        for step in &anvil {
            let options = &step.options;
            let writes = step.name.starts_with("write");
            assert_eq!(options.write_percent == 100, writes, "{}", step.name);
            let depth = step.name.split_once("QD").map_or("1", |(_, depth)| depth);
            assert_eq!(options.outstanding.to_string(), depth);
            let kib = (options.block >> 10).to_string() + "K";
            assert!(step.name.contains(&kib) || step.name.ends_with("seq 4M"));
            assert_eq!(options.length, Some(1 << 30));
        }
        let mpio = steps_of(Profile::Mpio);
        assert_eq!(
            mpio[1].published[3],
            ("D: 1 NIC (control)".to_owned(), 108.14 / 4.0)
        );
    }

    #[test]
    fn database_and_log_share_the_region_and_do_not_overlap() {
        let [database, log] = jetstress(&defaults(), 1 << 20, 64 << 20, 8);
        let end = database.base.unwrap() + database.length.unwrap();
        assert_eq!(Some(end), log.base);
        assert_eq!(log.base.unwrap() + log.length.unwrap(), 65 << 20);
        assert_eq!((database.outstanding, log.outstanding), (8, 1));
        assert!(log.write_through && !database.write_through);
    }
}
