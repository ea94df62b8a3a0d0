//! A workload engine over any volume, spoken to in diskspd's words.
//!
//! ```text
//!   words --parse--> Options --run over volumes--> RunResult --report--> text, XML, JSON, HTML
//! ```
//!
//! **Contract.** A seed gives one sequence of operations. What ends inside the measured time
//! counts, nothing else. No operation goes outside the region that the options name, nor into a
//! bench LUN's mark. The engine adds no more than a task switch, a clock reading and two histogram
//! entries to an operation.
//!
//! **Failure model.** An operation that fails is counted and its slot rests a little; one that
//! never comes back is given up after the deadline and counted too. A run ends at its time whatever
//! its targets do.

pub mod chart;
pub mod compare;
mod engine;
pub mod mark;
mod meter;
mod offsets;
pub mod options;
mod pace;
mod payload;
pub mod profile;
pub mod published;
mod random;
pub mod report;
mod result;
pub mod sweep;
mod verify;

pub use engine::{
    Ended, Job, Phase, Progress, RunError, Shared, Target, Watcher, fill, region, run,
};
pub use meter::{Interval, Kind, Side, Spread};
pub use options::{Mistake, Options};
pub use result::{PathFigures, Processor, RunResult, Share, TargetFacts, TcpSample};
pub use verify::{Bad, Stamp, Tally, Wrong};
