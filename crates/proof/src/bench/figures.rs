//! What is measured, and what comes of it.

use super::histogram::Histogram;
use super::usage;
use std::net::SocketAddr;

/// Where the unit is.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Where the server listens.
    pub portal: SocketAddr,
    /// Target's name.
    pub target: String,
    /// Logical unit number.
    pub lun: u8,
    /// Bytes of a block.
    pub block: usize,
    /// Bytes of the unit that are used.
    pub bytes: u64,
    /// Processes whose processor time is the server's.
    pub processes: Vec<u32>,
}

/// What a run gave.
#[derive(Clone, Copy, Default, Debug)]
pub struct Figures {
    /// Commands that ended in the time.
    pub commands: f64,
    /// The time, in seconds.
    pub seconds: f64,
    /// Half of the commands took no longer, in microseconds.
    pub p50: f64,
    /// Of a hundred commands one took longer, in microseconds.
    pub p99: f64,
    /// The server's processor time a command, in microseconds.
    pub server: f64,
    /// The client's processor time a command, in microseconds.
    pub client: f64,
    /// Share of the machine's processor time that neither of them had and that was not idle.
    pub others: f64,
}

impl Figures {
    /// Commands a second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.commands / self.seconds
    }
}

/// READ (10) or WRITE (10) (SBC-4 5.19, 5.42).
pub(super) fn cdb(write: bool, fua: bool, at: u64, bytes: usize, block: usize) -> [u8; 16] {
    let block = block as u64;
    let lba = u32::try_from(at / block).expect("a small unit");
    let blocks = u16::try_from(bytes as u64 / block).expect("a small command");
    let mut cdb = [0; 16];
    cdb[0] = if write { 0x2a } else { 0x28 };
    cdb[1] = if fua && write { 0x08 } else { 0 };
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb[7..9].copy_from_slice(&blocks.to_be_bytes());
    cdb
}

#[expect(clippy::cast_precision_loss, reason = "counts of a run are small")]
pub(super) fn figures(times: &Histogram, seconds: f64, used: &usage::Usage) -> Figures {
    let commands = (times.total() as f64).max(1.0);
    Figures {
        commands,
        seconds,
        p50: times.quantile(500) / 1000.0,
        p99: times.quantile(990) / 1000.0,
        server: used.server as f64 / 1000.0 / commands,
        client: used.client as f64 / 1000.0 / commands,
        others: used.others(),
    }
}
