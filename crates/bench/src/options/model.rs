//! What may be asked of a run, whatever words it is asked in.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A mistake in the words of the command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// What is wrong.
    pub cause: String,
    /// What to write instead.
    pub next_step: String,
}

impl Mistake {
    pub(crate) fn new(cause: impl Into<String>, next_step: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            next_step: next_step.into(),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.cause, self.next_step)
    }
}

/// Where the next operation goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// `-s[i]<stride>`: one after the other.
    Sequential {
        /// Bytes from one start to the next.
        stride: u64,
        /// All threads of a target share one position (`-si`).
        interlocked: bool,
        /// All outstanding operations of a thread have the same offset (`-p`).
        parallel: bool,
    },
    /// `-r<alignment>`, `-rs<percent>`.
    Random {
        /// Offsets are multiples of this many bytes.
        alignment: u64,
        /// So many of a hundred operations go to a random place, the others on from the last one.
        percent: u8,
    },
}

/// A part of a target that gets its share of random operations (`-rdpct`, `-rdabs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Share of the operations, of a hundred.
    pub io_percent: u8,
    /// How large it is.
    pub extent: ZoneExtent,
}

/// How large a zone is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneExtent {
    /// Of a hundred parts of the target.
    Percent(u8),
    /// So many bytes.
    Bytes(u64),
    /// All that is left.
    Rest,
}

/// What is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The bytes 0 to 255 over and over.
    Pattern,
    /// `-Z`: zeroes.
    Zeroes,
    /// `-Zr`: random bytes, new for every operation.
    RandomEach,
    /// `-Z<size>`: parts of so many random bytes.
    Random {
        /// How many.
        bytes: u64,
    },
    /// `--compress`, `--dedupe`: pieces of 4096 bytes, made anew, of which parts are as
    /// compressible and as alike as real data.
    Like {
        /// So many of a hundred bytes of each piece are zeroes, the others random.
        compress: u8,
        /// So many of a hundred pieces are one of eight that come again and again.
        dedupe: u8,
    },
    /// `-Z<size>,<file>`: parts of so many bytes of a file.
    File {
        /// How many.
        bytes: u64,
        /// Which.
        path: PathBuf,
    },
}

/// `-g`: the most that one thread does on one target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    /// Bytes a millisecond.
    BytesPerMillisecond(u64),
    /// Operations a second.
    Iops(u64),
}

/// `-R`: the form of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// diskspd's text.
    Text,
    /// diskspd's XML.
    Xml,
    /// One JSON object.
    Json,
    /// A page with charts.
    Html,
    /// The series as a chart.
    Svg,
    /// The series as lines for a spreadsheet.
    Csv,
}

/// A ready-made set of runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// The rows of the published sector-size table.
    Anvil,
    /// Sequential 4 MiB, read and write, as in the published multipath table.
    Mpio,
    /// Database reads and log writes with pass lines of 20 ms and 10 ms.
    JetstressLike,
}

/// Everything that was asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The words, for the report.
    pub command_line: String,
    /// `-b`: bytes of an operation.
    pub block: u64,
    /// `-B`: first byte of a target that is used.
    pub base: Option<u64>,
    /// `-B:len` or `-f`: how much of the target is used, in bytes.
    pub length: Option<u64>,
    /// `-c`: make the files, of so many bytes.
    pub create: Option<u64>,
    /// `-d`.
    pub duration: Duration,
    /// `-W`.
    pub warm_up: Duration,
    /// `-C`.
    pub cool_down: Duration,
    /// `-D`: length of an interval of the series.
    pub interval: Duration,
    /// `-L`, `-D`: say so in the text; both are always measured.
    pub latency: bool,
    /// As above.
    pub series: bool,
    /// `-t`: threads for each target.
    pub threads: u32,
    /// `-F`: threads in all, each on all targets.
    pub threads_total: Option<u32>,
    /// `-o`: outstanding operations of each thread on each target.
    pub outstanding: u32,
    /// `-O`: outstanding operations of each thread over all targets, with `-F`.
    pub outstanding_total: Option<u32>,
    /// `-r`, `-s`.
    pub access: Access,
    /// `-rd`: empty where every place is as likely.
    pub zones: Vec<Zone>,
    /// `-T`: bytes between the starts of threads.
    pub thread_stride: u64,
    /// `-w`: writes of a hundred operations.
    pub write_percent: u8,
    /// `-Sw`, `-Sh`: every write is on stable media before it counts.
    pub write_through: bool,
    /// `-Su`, `-Sh`, `-S`: as diskspd says it; files are opened past the page cache where that is
    /// possible, always.
    pub unbuffered: bool,
    /// `-g`.
    pub rate: Option<Rate>,
    /// `-i`: operations of a burst.
    pub burst: Option<u32>,
    /// `-j`: milliseconds between bursts.
    pub think: Duration,
    /// `-Z`.
    pub source: Source,
    /// `-z`: seed; none gives 0, as diskspd does. `-z` alone takes one from the system.
    pub seed: Option<u64>,
    /// `-R`.
    pub form: Form,
    /// `-v`.
    pub verbose: bool,
    /// `--output FILE`: where the result goes.
    pub output: Option<PathBuf>,
    /// `--record-tcpinfo`: what TCP says of each path each second.
    pub record_tcp: bool,
    /// `--verify`: what is read is compared with what was written.
    pub verify: bool,
    /// `--destroy`: a volume that holds data may be written over.
    pub destroy: bool,
    /// `--fill`: write all of the region once before the run.
    pub fill: bool,
    /// `--deadline`: how long after the end an operation may stay away.
    pub deadline: Duration,
    /// `--profile`: a ready-made set of runs, one after the other.
    pub profile: Option<Profile>,
    /// `--autotune`: `jetstress-like` raises its concurrency as long as it passes.
    pub autotune: bool,
    /// `--control FILE`: a result to compare with.
    pub control: Option<PathBuf>,
    /// `--quiet`: no live progress.
    pub quiet: bool,
    /// `--barrier`: print `ready`, and begin when a line comes in.
    pub barrier: bool,
    /// `--driven`: by a program, to which figures go each second.
    pub driven: bool,
    /// `--cores`: on so many processors.
    pub cores: Option<u16>,
    /// Options of the initiator, for targets that are URLs, as they were written.
    pub initiator: Vec<String>,
    /// What is used.
    pub targets: Vec<String>,
    /// What was accepted and does nothing here, and why.
    pub warnings: Vec<String>,
}

impl Default for Options {
    /// diskspd's defaults.
    fn default() -> Self {
        Self {
            command_line: String::new(),
            block: 64 << 10,
            base: None,
            length: None,
            create: None,
            duration: Duration::from_secs(10),
            warm_up: Duration::from_secs(5),
            cool_down: Duration::ZERO,
            interval: Duration::from_secs(1),
            latency: false,
            series: false,
            threads: 1,
            threads_total: None,
            outstanding: 2,
            outstanding_total: None,
            access: Access::Sequential {
                stride: 64 << 10,
                interlocked: false,
                parallel: false,
            },
            zones: Vec::new(),
            thread_stride: 0,
            write_percent: 0,
            write_through: false,
            unbuffered: false,
            rate: None,
            burst: None,
            think: Duration::ZERO,
            source: Source::Pattern,
            seed: Some(0),
            form: Form::Text,
            verbose: false,
            output: None,
            record_tcp: false,
            verify: false,
            destroy: false,
            fill: false,
            deadline: Duration::from_secs(30),
            profile: None,
            autotune: false,
            control: None,
            quiet: false,
            barrier: false,
            driven: false,
            cores: None,
            initiator: Vec::new(),
            targets: Vec::new(),
            warnings: Vec::new(),
        }
    }
}
