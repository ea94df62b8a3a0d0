//! Facts of the kernel and the system.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;

/// The most bytes of one.
const BYTES_MAX: u64 = 64 << 10;

/// Files that say how a machine is, and in which nobody writes secrets: the kernel's command line
/// is none of them.
const SYSTEM: &[&str] = &[
    "/etc/os-release",
    "/etc/debian_version",
    "/proc/version",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/vmstat",
    "/proc/stat",
    "/proc/cpuinfo",
    "/proc/modules",
    "/proc/mounts",
    "/proc/partitions",
    "/proc/mdstat",
    "/proc/diskstats",
    "/proc/interrupts",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/net/dev",
    "/proc/net/route",
    "/proc/net/sockstat",
    "/proc/net/netstat",
    "/proc/net/snmp",
    "/proc/sys/net/ipv4/tcp_rmem",
    "/proc/sys/net/ipv4/tcp_wmem",
    "/proc/sys/net/ipv4/tcp_congestion_control",
    "/proc/sys/net/core/rmem_max",
    "/proc/sys/net/core/wmem_max",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/io_uring_disabled",
    "/proc/sys/fs/aio-max-nr",
    "/proc/self/status",
    "/proc/self/limits",
    "/proc/self/cgroup",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/cpu.max",
];

/// All of them one below the other, as text. It waits for the kernel.
#[must_use]
pub fn system_facts() -> String {
    let mut out = String::new();
    for path in SYSTEM {
        let _fits = writeln!(out, "==> {path}");
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_end(&mut bytes));
        match read {
            Ok(_) => out.push_str(&String::from_utf8_lossy(&bytes)),
            Err(error) => {
                let _fits = writeln!(out, "({error})");
            }
        }
        out.push('\n');
    }
    out
}
