//! On what it was measured.

use std::fs;
use std::process::Command;

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn said(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.map_or("unknown".to_owned(), |text| text.trim().to_owned())
}

/// What a reader must know of the machine, as names and values.
#[must_use]
pub fn describe() -> Vec<(&'static str, String)> {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = named.map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let count = cpus
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let memory = first_line("/proc/meminfo");
    let memory = memory
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok());
    let packages = ["tgt", "istgt", "fio"].map(|name| {
        let version = said("dpkg-query", &["-W", "-f=${Version}", name]);
        format!("{name} {version}")
    });
    let dirty = said("git", &["status", "--porcelain", "--untracked-files=no"]);
    let commit = said("git", &["rev-parse", "--short=12", "HEAD"]);
    vec![
        ("processors", format!("{count} x {model}")),
        ("memory", format!("{} GiB", memory.unwrap_or(0) >> 20)),
        ("kernel", first_line("/proc/sys/kernel/osrelease")),
        (
            "TCP congestion control",
            first_line("/proc/sys/net/ipv4/tcp_congestion_control"),
        ),
        ("peers", packages.join(", ")),
        (
            "commit",
            if dirty.is_empty() {
                commit
            } else {
                format!("{commit} and changes")
            },
        ),
        ("date", said("date", &["-u", "+%F %H:%M UTC"])),
    ]
}
