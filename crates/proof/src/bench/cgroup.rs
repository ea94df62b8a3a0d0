//! Capping the cores of a runtime: one control group a thread, version 1 where the `cpu` controller
//! is mounted, else version 2 with threaded groups.

use std::fs;
use std::path::{Path, PathBuf};

/// Short, so that a core that used up its share waits no longer than a slow disk.
const PERIOD_MICROS: u32 = 10_000;

const VERSION_1: &str = "/sys/fs/cgroup/cpu";
const VERSION_2: &str = "/sys/fs/cgroup";

/// Groups of the threads of a process. Dropping it removes them, once the threads are gone.
pub struct Cap {
    groups: Vec<PathBuf>,
}

impl Drop for Cap {
    fn drop(&mut self) {
        for group in self.groups.iter().rev() {
            // The threads go back to where they were where they still live.
            for parent_file in ["tasks", "cgroup.threads"] {
                let threads = fs::read_to_string(group.join(parent_file)).unwrap_or_default();
                for thread in threads.lines() {
                    let parent = group.parent().map(|parent| parent.join(parent_file));
                    let _gone = parent.map(|parent| fs::write(parent, thread));
                }
            }
            let _busy = fs::remove_dir(group);
        }
    }
}

fn put(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The threads `core-N` of a process.
fn cores(process: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let named = threads.filter(|thread| {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        name.starts_with("core-")
    });
    named
        .map(|thread| thread.file_name().to_string_lossy().into_owned())
        .collect()
}

impl Cap {
    /// Gives each core of a process no more than `percent` of a processor.
    ///
    /// # Errors
    /// Where this machine does not let us.
    pub fn cores(process: u32, percent: u32) -> Result<Self, String> {
        let quota = PERIOD_MICROS / 100 * percent;
        let mut cap = Self { groups: Vec::new() };
        let first = Path::new(VERSION_1).join("cpu.cfs_quota_us").exists()
            || Path::new(VERSION_1).join("tasks").exists();
        let root = if first {
            PathBuf::from(VERSION_1)
        } else {
            let all = Path::new(VERSION_2).join(format!("causeway-bench-{process}"));
            put(&Path::new(VERSION_2).join("cgroup.subtree_control"), "+cpu")?;
            cap.make(&all)?;
            put(&all.join("cgroup.procs"), &process.to_string())?;
            all
        };
        for thread in cores(process) {
            let group = root.join(format!("causeway-bench-{thread}"));
            cap.make(&group)?;
            if first {
                put(&group.join("cpu.cfs_period_us"), &PERIOD_MICROS.to_string())?;
                put(&group.join("cpu.cfs_quota_us"), &quota.to_string())?;
                put(&group.join("tasks"), &thread)?;
            } else {
                put(&group.join("cgroup.type"), "threaded")?;
                put(&root.join("cgroup.subtree_control"), "+cpu")?;
                put(&group.join("cpu.max"), &format!("{quota} {PERIOD_MICROS}"))?;
                put(&group.join("cgroup.threads"), &thread)?;
            }
        }
        Ok(cap)
    }

    fn make(&mut self, group: &Path) -> Result<(), String> {
        fs::create_dir(group).map_err(|error| format!("{}: {error}", group.display()))?;
        self.groups.push(group.to_owned());
        Ok(())
    }
}
