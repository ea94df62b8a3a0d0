//! Processor time of processes, to the nanosecond as the scheduler counts it.

use std::fs;

/// Processor time so far, in nanoseconds.
#[derive(Clone, Copy, Default, Debug)]
pub struct Usage {
    /// Of the server's processes.
    pub server: u64,
    /// Of this process.
    pub client: u64,
}

impl Usage {
    /// What was used since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            server: self.server.saturating_sub(before.server),
            client: self.client.saturating_sub(before.client),
        }
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
        // A thread may end while we look.
        let told = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let first = told.split_whitespace().next();
        sum += first
            .and_then(|field| field.parse::<u64>().ok())
            .unwrap_or(0);
    }
    Ok(sum)
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
    Ok(Usage {
        server,
        client: of_process(std::process::id())?,
    })
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
