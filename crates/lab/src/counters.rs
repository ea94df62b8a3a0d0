//! What a load's NICs carry over time.

use crate::error::LabError;
use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Seconds, and MB/s of every NIC.
pub(crate) type Samples = Rc<RefCell<Vec<(f64, Vec<f64>)>>>;

/// What NICs have carried, as a process in their namespace sees it.
pub(crate) struct Counters {
    process: PathBuf,
    /// The namespace's inode.
    namespace: u64,
    names: Vec<String>,
}

/// How often the counters are read.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_millis(100);

impl Counters {
    /// Those of the NICs `names`, as this process in `namespace` sees them.
    pub(crate) fn of(namespace: &str, process: Option<u32>, names: Vec<String>) -> Self {
        let namespace = format!("/run/netns/{namespace}");
        Self {
            process: format!("/proc/{}", process.unwrap_or(0)).into(),
            namespace: fs::metadata(namespace).map_or(0, |it| it.ino()),
            names,
        }
    }

    /// Bytes in both directions by NIC; `None` where the process is not in the namespace, or is
    /// gone.
    fn read(&self) -> Option<Vec<u64>> {
        let inside = fs::metadata(self.process.join("ns/net")).ok()?.ino();
        let reported = fs::read_to_string(self.process.join("net/dev")).ok()?;
        (inside == self.namespace).then(|| carried(&reported, &self.names))
    }

    /// Waits until the load moves data: more than logins do.
    pub(crate) async fn began(&self) -> Result<Instant, LabError> {
        let until = Instant::now() + Duration::from_secs(30);
        let mut first = None;
        while Instant::now() < until {
            if let Some(now) = self.read() {
                let sum: u64 = now.iter().sum();
                if sum > *first.get_or_insert(sum) + (1 << 20) {
                    return Ok(Instant::now());
                }
            }
            sleep(Duration::from_millis(5)).await;
        }
        Err(LabError::new(
            "the load moved no data within 30 s",
            "run the bench by hand in the lab's host namespace",
        ))
    }

    /// MB/s of every NIC over time, until the process ends.
    pub(crate) async fn follow(self, began: Instant, found: Samples) {
        let (mut last, mut last_at) = (self.read().unwrap_or_default(), began);
        loop {
            sleep(PROBE_INTERVAL).await;
            let Some(now) = self.read() else {
                return;
            };
            let at = Instant::now();
            let seconds = (at - last_at).as_secs_f64();
            let rates = now
                .iter()
                .zip(&last)
                .map(|(now, last)| rate(now - last.min(now), seconds));
            let rates: Vec<f64> = rates.collect();
            found.borrow_mut().push(((at - began).as_secs_f64(), rates));
            (last, last_at) = (now, at);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 / seconds / 1e6
}

/// Received and sent bytes of each of `names` in the text of `/proc/net/dev`.
fn carried(text: &str, names: &[String]) -> Vec<u64> {
    let one = |name: &String| {
        let line = text.lines().find_map(|line| {
            line.trim_start()
                .strip_prefix(name.as_str())?
                .strip_prefix(':')
        });
        let words: Vec<u64> = line
            .unwrap_or("")
            .split_whitespace()
            .map(|word| word.parse().unwrap_or(0))
            .collect();
        words.first().copied().unwrap_or(0) + words.get(8).copied().unwrap_or(0)
    };
    names.iter().map(one).collect()
}

/// Ends a load that has seen enough; what it measured is printed all the same.
pub(crate) fn interrupt(process: Option<u32>) {
    let process = process.and_then(|it| i32::try_from(it).ok());
    if let Some(process) = process.and_then(rustix::process::Pid::from_raw) {
        // One that has ended by itself needs no signal.
        let _gone = rustix::process::kill_process(process, rustix::process::Signal::INT);
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn bytes_of_both_directions_are_found_by_the_name_of_the_nic() {
        let text = "Inter-|   Receive\n face |bytes packets\n    lo: 5 1 0 0 0 0 0 0 5 1\n  eth1: 10 1 0 0 0 0 0 0 7 1 0\n eth10: 1000 1\n";
        let names = ["eth1", "eth9"].map(str::to_owned);
        assert_eq!(carried(text, &names), [17, 0]);
    }
}
