//! What a world is made of.

use super::fault::FaultPlan;
use std::time::Duration;
use units::Reserves;

/// Sizes, speeds and faults of a world.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// Cores of each node.
    pub cores: u16,
    /// Payload memory of each core, in bytes.
    pub pool_bytes: usize,
    /// What of it is kept for work that frees memory.
    pub pool_reserves: Reserves,
    /// Which faults, how often.
    pub faults: FaultPlan,
    /// Shortest time from one node to another.
    pub latency_min: Duration,
    /// Longest usual time from one node to another.
    pub latency_max: Duration,
    /// Bytes per second in one direction of a connection.
    pub bytes_per_second: u64,
    /// Bytes that a sender may have on the way, including what the receiver has not taken.
    pub window_bytes: usize,
    /// How long a sender waits for signs of life before its connection is given up.
    pub tcp_timeout: Duration,
    /// Capacity of each node's file system, in bytes.
    pub disk_bytes: u64,
    /// Shortest time of an operation on a file.
    pub disk_latency_min: Duration,
    /// Longest usual time of an operation on a file.
    pub disk_latency_max: Duration,
    /// Bytes that a disk never tears; at least 512, a power of two.
    pub sector_bytes: u64,
    /// Alignment that direct I/O asks for; 0 where the file system has none.
    pub direct_alignment: u32,
    /// Processor time that one poll of a task, or one job, counts as in [`crate::Core::busy`]. It
    /// takes no time of the world.
    pub work_per_poll: Duration,
    /// How many of the last events to keep for [`World::trace`].
    pub trace_lines: usize,
}

impl Default for WorldConfig {
    fn default() -> Self {
        Self {
            cores: 2,
            pool_bytes: 64 << 20,
            pool_reserves: Reserves::default(),
            faults: FaultPlan::benign(),
            latency_min: Duration::from_micros(20),
            latency_max: Duration::from_micros(200),
            bytes_per_second: 1_000_000_000,
            window_bytes: 256 << 10,
            tcp_timeout: Duration::from_secs(120),
            disk_bytes: 1 << 30,
            disk_latency_min: Duration::from_micros(10),
            disk_latency_max: Duration::from_micros(300),
            sector_bytes: 512,
            direct_alignment: 512,
            work_per_poll: Duration::from_micros(3),
            trace_lines: 0,
        }
    }
}
