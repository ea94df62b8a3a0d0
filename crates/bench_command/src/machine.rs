//! What the machine is called, and what its processors did.

use bench::Processor;
use bench::report::{Machine, ProcessorTopology};
use std::path::Path;

/// This machine.
pub(crate) fn this() -> Machine {
    let name = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    let system = Path::new("/sys/devices/system");
    Machine {
        name,
        processors: times().iter().map(|at| place(system, at.number)).collect(),
        power: word(&system.join("cpu/cpu0/cpufreq/scaling_governor")),
    }
}

fn word(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned()).filter(|word| !word.is_empty())
}

/// Where a processor is; what the system does not report is the first of its kind, and a core of
/// its own.
fn place(system: &Path, number: u32) -> ProcessorTopology {
    let cpu = system.join(format!("cpu/cpu{number}"));
    let figure = |name: &str| word(&cpu.join("topology").join(name))?.parse().ok();
    let nodes = std::fs::read_dir(&cpu).into_iter().flatten().flatten();
    let node = nodes
        .filter_map(|entry| {
            let name = entry.file_name();
            name.to_str()?.strip_prefix("node")?.parse().ok()
        })
        .next();
    ProcessorTopology {
        number,
        socket: figure("physical_package_id").unwrap_or(0),
        node: node.unwrap_or(0),
        core: figure("core_id").unwrap_or(number),
    }
}

/// Times of one processor since the start of the system, in ticks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Times {
    number: u32,
    user: u64,
    kernel: u64,
    idle: u64,
}

/// The times of all processors; none where the system does not report them.
pub(crate) fn times() -> Vec<Times> {
    parse(&std::fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn parse(text: &str) -> Vec<Times> {
    let line = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let number = words.next()?.parse().ok()?;
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
        // user nice system idle iowait irq softirq steal (proc_stat(5)); steal was somebody else's.
        Some(Times {
            number,
            user: at(0) + at(1),
            kernel: at(2) + at(5) + at(6),
            idle: at(3) + at(4),
        })
    };
    // The first line has all of them together, and no number.
    text.lines()
        .filter(|text| !text.starts_with("cpu "))
        .map_while(line)
        .collect()
}

/// What the processors did in between.
#[expect(clippy::cast_precision_loss, reason = "ticks of a run are few")]
pub(crate) fn between(before: &[Times], after: &[Times]) -> Vec<Processor> {
    let one = |(before, after): (&Times, &Times)| {
        let part = |of: fn(&Times) -> u64| of(after).saturating_sub(of(before)) as f64;
        let (user, kernel) = (part(|at| at.user), part(|at| at.kernel));
        let idle = part(|at| at.idle);
        let all = (user + kernel + idle).max(1.0) / 100.0;
        Processor {
            number: after.number,
            user: user / all,
            kernel: kernel / all,
            idle: idle / all,
        }
    };
    before.iter().zip(after).map(one).collect()
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn processors_are_read_from_the_systems_table() {
        let before = parse("cpu  9 9 9 9\ncpu0 10 0 20 70 0 0 0 0 0 0\ncpu1 0 0 0 0\nintr 5\n");
        let after =
            parse("cpu  9 9 9 9\ncpu0 30 20 40 130 10 5 5 90 0 0\ncpu1 0 0 0 100\nintr 5\n");
        let all = between(&before, &after);
        assert_eq!(all.len(), 2);
        // user 40, kernel 30, idle 70 of 140
        assert!((all[0].user - 40.0 / 1.4).abs() < 1e-9, "{all:?}");
        assert!((all[0].kernel - 30.0 / 1.4).abs() < 1e-9);
        assert!((all[1].idle - 100.0).abs() < 1e-9);
    }
}
