//! How the disks of the machine are, and its bays: from what `smartctl --json` and the enclosures
//! say, and from what was remembered.
//!
//! ```text
//!   document of smartctl --reading--> facts --judge--> findings \
//!   samples of the weeks before ------trend--> forecasts         >-- Ledger --> DiskReport
//!   what the system and its enclosures show --bays, missing --> /
//! ```
//!
//! **Contract.** No file, child process or clock: whoever sees the machine hands in what was seen
//! and when. Documents may say anything at all: members that nobody knows are passed over, figures
//! that cannot be are left out, text is cut and cleaned. A figure that a disk does not report is
//! absent, and nothing is judged by it.
//!
//! **Memory.** What is remembered of disks and bays is a [file](../../docs/formats/disks.md): who
//! was where, and a sample a day of each disk. It decides words only, and never what becomes of
//! data.

mod ata;
mod bays;
mod exit;
mod fields;
mod judge;
mod ledger;
mod memory;
mod nvme;
mod reading;
mod scsi;
mod seen;
mod trend;
mod trends;

pub use exit::ExitBits;
pub use ledger::Ledger;
pub use memory::{KIND, Memory, Sample};
pub use reading::{ASLEEP_STATUS, Answer, DOCUMENT_BYTES_MAX, Reading, read};
pub use seen::{Asked, Seen, SeenBay, SeenDisk};

#[cfg(test)]
mod test;
