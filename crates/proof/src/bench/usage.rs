//! Processor time of processes, to the nanosecond as the scheduler counts it.

use std::fs;

/// Processor time so far, in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// Of the server's processes.
    pub server: u64,
    /// Of this process.
    pub client: u64,
    /// Of the whole machine, busy and idle, in clock ticks.
    pub busy: u64,
    /// The idle part.
    pub idle: u64,
}

impl Usage {
    /// What was used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            server: self.server.saturating_sub(before.server),
            client: self.client.saturating_sub(before.client),
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
        }
    }

    /// Share of the machine that was neither idle nor the server's or ours.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a few seconds")]
    pub fn others(&self) -> f64 {
        // USER_HZ is 100 on every Linux that we build for.
        let known = (self.server + self.client) as f64 / 1e7;
        let all = (self.busy + self.idle).max(1) as f64;
        ((self.busy as f64 - known) / all).max(0.0)
    }
}

/// The time of all threads of a process: first field of `/proc/PID/task/TID/schedstat`.
///
/// # Errors
/// Where the process is gone.
pub fn of_process(process: u32) -> Result<u64, String> {
    let tasks = format!("/proc/{process}/task");
    let threads = fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))?;
    let mut sum = 0;
    for thread in threads.flatten() {
        // A thread may end while we read.
        let reported = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let first = reported.split_whitespace().next();
        sum += first
            .and_then(|field| field.parse::<u64>().ok())
            .unwrap_or(0);
    }
    Ok(sum)
}

/// The time of all children that have ended: fields 16 and 17 of `/proc/self/stat`, in steps of a
/// clock tick of 10 ms.
///
/// # Errors
/// Where /proc cannot be read.
pub fn of_children() -> Result<u64, String> {
    let stat = "/proc/self/stat";
    let reported = fs::read_to_string(stat).map_err(|error| format!("{stat}: {error}"))?;
    // The second field is a name in parentheses, which may have spaces.
    let fields = reported
        .rsplit_once(')')
        .map(|(_, fields)| fields.split_whitespace());
    let ticks = fields.into_iter().flatten().skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks * 10_000_000)
}

/// The server's and our own.
///
/// # Errors
/// Where a process is gone.
pub fn sample(processes: &[u32]) -> Result<Usage, String> {
    let mut server = 0;
    for &process in processes {
        server += of_process(process)?;
    }
    let (busy, idle) = machine();
    Ok(Usage {
        server,
        client: of_process(std::process::id())?,
        busy,
        idle,
    })
}

/// Busy and idle ticks of all processors (first line of `/proc/stat`): user, nice, system, idle,
/// iowait, irq, softirq, steal. What the hypervisor took counts as busy.
fn machine() -> (u64, u64) {
    let reported = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = reported.lines().next().unwrap_or_default();
    let fields = line.split_whitespace().skip(1).take(8);
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let idle: u64 = fields.iter().skip(3).take(2).sum();
    (fields.iter().sum::<u64>() - idle, idle)
}

/// Resident memory of a process, in bytes (VmRSS of `/proc/PID/status`).
///
/// # Errors
/// Where the process is gone.
pub fn resident(process: u32) -> Result<u64, String> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().split(' ').next()?.parse::<u64>().ok());
    kib.map(|kib| kib << 10)
        .ok_or(format!("{path} has no VmRSS"))
}
