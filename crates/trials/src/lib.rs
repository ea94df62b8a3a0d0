//! Bench runs and lab beds that the daemon starts for whoever asks over its API.
//!
//! ```text
//!   WantedRun --check--> Spec --words--> causeway bench --driven --lines--> RunRecord --> file
//!   WantedBed --check--> words ------> causeway lab drive -------lines--> BedRecord
//! ```
//!
//! **Contract.** What is asked for has bounds, and everything that is out of them is named at once.
//! No secret is among the words of a child. What children say is kept within bounds, whatever they
//! say. No clock, child or file.

mod bed;
mod bed_view;
mod kept;
pub mod line;
mod run;
mod second;
mod spec;

pub use bed::BedRecord;
pub use bed_view::{
    BedFacts, BedLink, BedLoad, BedLoadView, BedMachine, BedNote, BedPath, BedPlan, BedPort,
    BedState, BedSwitch, BedView, LabView, TopologyView, WantedBed,
};
pub use kept::{Document, KEPT_BYTES_MAX, KEPT_MAX, Stored, to_forget};
pub use run::{
    BenchView, CompareView, FigureView, PlanView, RunDetail, RunRecord, RunState, RunView, Started,
    StartedView, Summary,
};
pub use spec::{Kind, Limits, Load, LoadView, PathWishes, Spec, WantedRun};
