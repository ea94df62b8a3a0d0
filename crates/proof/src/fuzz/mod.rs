//! A fuzzer on stable Rust: seeds, mutations, and the entry points with oracles that the crates
//! offer.
//!
//! ```text
//!   seeds --pick--> mutate (bits, lengths, splices, whole PDUs, words) --> entry point
//!         --panic--> Finding
//! ```
//!
//! **Contract.** A run is a function of its seed and the program: the same seed tries the same
//! inputs. What it finds, it also writes down. It does not measure coverage; `fuzz/` has the same
//! targets for one that does.

mod mutate;
mod seeds;

pub use mutate::{Form, Mutator};
pub use seeds::seeds_of;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// The longest input that mutation makes, in bytes.
pub const INPUT_BYTES_MAX: usize = 4096;

/// Something to fuzz.
#[derive(Clone, Copy)]
pub struct FuzzTarget {
    /// Its name, also in `fuzz/`.
    pub name: &'static str,
    /// What its inputs look like.
    pub form: Form,
    /// Inputs that the short run tries.
    pub short_run: u64,
    /// Panics if an oracle is broken.
    pub run: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[FuzzTarget] = &[
    target(
        "login_stream",
        Form::Pdus,
        120_000,
        iscsi::fuzz::login_stream,
    ),
    target("pdu_stream", Form::Pdus, 30_000, iscsi::fuzz::pdu_stream),
    target("any_split", Form::Split, 2_500, iscsi::fuzz::any_split),
    target("text_keys", Form::Text, 80_000, iscsi::fuzz::text_keys),
    target("cdb", Form::Bytes, 800_000, scsi::fuzz::cdb),
    target("sense", Form::Bytes, 800_000, scsi::fuzz::sense),
    target("mode_select", Form::Bytes, 600_000, scsi::fuzz::mode_select),
    target(
        "reservations",
        Form::Bytes,
        160_000,
        scsi::fuzz::reservations,
    ),
    target(
        "stored_reservations",
        Form::Bytes,
        800_000,
        scsi::fuzz::stored_reservations,
    ),
    target(
        "parameter_lists",
        Form::Bytes,
        800_000,
        scsi::fuzz::parameter_lists,
    ),
    target("nbd_talk", Form::Bytes, 400_000, nbd::fuzz::talk),
    target("lun", Form::Bytes, 400_000, scsi::fuzz::lun),
    target(
        "objects_file",
        Form::Text,
        50_000,
        manifest::fuzz::objects_file,
    ),
    target("node_file", Form::Text, 50_000, manifest::fuzz::node_file),
    target("state_file", Form::Text, 80_000, manifest::fuzz::state_file),
    target("map_page", Form::Bytes, 30_000, checksums::fuzz::map_page),
    target(
        "map_superblock",
        Form::Bytes,
        30_000,
        checksums::fuzz::map_superblock,
    ),
    target(
        "pool_superblocks",
        Form::Bytes,
        60_000,
        members::fuzz::superblocks,
    ),
    target("journal_blocks", Form::Bytes, 30_000, journal::fuzz::blocks),
    target("journal_replay", Form::Bytes, 20_000, journal::fuzz::replay),
    target("history", Form::Bytes, 5_000, journal::fuzz::history),
    target("peer_first", Form::Bytes, 200_000, peer::fuzz::first),
    target("peer_frames", Form::Bytes, 40_000, peer::fuzz::frames),
    target("vhdx_image", Form::Bytes, 1_000, vhdx::fuzz::image),
];

const fn target(name: &'static str, form: Form, short_run: u64, run: fn(&[u8])) -> FuzzTarget {
    FuzzTarget {
        name,
        form,
        short_run,
        run,
    }
}

/// An input that breaks an oracle.
#[derive(Debug)]
pub struct Counterexample {
    /// The parser that was fuzzed, by its name in the table.
    pub target: &'static str,
    /// Seed of the run.
    pub seed: u64,
    /// Which input of the run it was, from 0.
    pub execution: u64,
    /// The bytes that broke the oracle, as the parser got them.
    pub input: Vec<u8>,
    /// What the oracle said.
    pub message: String,
}

impl Counterexample {
    /// Writes the input below `directory`, and says where.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn write(&self, directory: &Path) -> std::io::Result<PathBuf> {
        let directory = directory.join(self.target);
        std::fs::create_dir_all(&directory)?;
        let path = directory.join(format!("seed-{}-execution-{}", self.seed, self.execution));
        std::fs::write(&path, &self.input)?;
        Ok(path)
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            target,
            seed,
            execution,
            input,
            message,
        } = self;
        let bytes = input.len();
        write!(
            f,
            "{target}: {message}\n  seed {seed}, execution {execution}, {bytes} bytes: {}",
            input.escape_ascii()
        )
    }
}

/// Runs one input.
///
/// # Errors
/// What the oracle said.
pub fn run_one(target: &FuzzTarget, input: &[u8]) -> Result<(), String> {
    // Entry points keep nothing between calls, so nothing is left half done.
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic without words").to_owned()
    })
}

/// Runs the seeds, then mutations of them while `go_on` (which is given the number of inputs tried)
/// agrees. Gives how many were tried.
///
/// # Errors
/// The first input that breaks an oracle.
pub fn run(
    target: &FuzzTarget,
    seed: u64,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, Box<Counterexample>> {
    let seeds = seeds_of(target);
    let mut mutator = Mutator::new(target.form, seed, seeds.clone());
    let mut tried = 0;
    let mut first = seeds.into_iter();
    while go_on(tried) {
        let input = first.next().unwrap_or_else(|| mutator.next_input());
        if let Err(message) = run_one(target, &input) {
            return Err(Box::new(Counterexample {
                target: target.name,
                seed,
                execution: tried,
                input,
                message,
            }));
        }
        tried += 1;
    }
    Ok(tried)
}
