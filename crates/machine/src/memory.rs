//! How much memory this process may use: the machine's, or what its control group has where that is
//! less.

use env::CoreHandle;
use std::path::Path;

/// Bytes, where that is known.
pub async fn total(core: &CoreHandle) -> Option<u64> {
    let files = core.files();
    let read = |path: String| {
        let files = core.files();
        async move { files.read_fact(Path::new(&path)).await.ok() }
    };
    let machine = files.read_fact(Path::new("/proc/meminfo")).await.ok();
    let mut least = machine.as_deref().and_then(of_machine);
    let group = read("/proc/self/cgroup".to_owned()).await;
    let group = group.as_deref().and_then(unified);
    // A limit of any group above counts as well.
    let mut path = group.unwrap_or_default().to_owned();
    while path.len() > 1 {
        let limit = read(format!("/sys/fs/cgroup{path}/memory.max")).await;
        let limit = limit.and_then(|text| text.trim().parse::<u64>().ok());
        least = [least, limit].into_iter().flatten().min();
        path.truncate(path.rfind('/').unwrap_or(0));
    }
    least
}

/// `MemTotal` of proc(5) meminfo, which counts in KiB.
fn of_machine(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The group in the unified hierarchy: cgroups(7) "/proc/pid/cgroup".
fn unified(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "MemTotal:       16265032 kB\nMemFree:  1 kB\n";
        assert_eq!(of_machine(text), Some(16_265_032 * 1024));
        assert_eq!(of_machine("MemFree: 1 kB"), None);
        let groups = "12:cpuset:/\n0::/system.slice/causeway.service\n";
        assert_eq!(unified(groups), Some("/system.slice/causeway.service"));
    }
}
