//! The reports, read back by a second implementation: what scripts that know diskspd do.

use super::figures::{PERCENTILES, date};
use super::*;
use crate::meter::{Interval, Side, Spread};
use crate::options::{Options, parse};
use crate::result::{Processor, RunResult, Share, TargetFacts};
use std::collections::BTreeMap;
use std::time::Duration;

fn side(ios: u64, millis: &[u64]) -> Side {
    let mut side = Side {
        ios,
        bytes: ios * 4096,
        ..Side::default()
    };
    for turn in 0..ios {
        let at = usize::try_from(turn).unwrap() % millis.len();
        side.latency.saturating_record(millis[at] * 1_000_000);
    }
    side
}

fn spread(ios: u64, millis: &[u64]) -> Spread {
    let mut spread = Spread::default();
    for turn in 0..ios {
        let at = usize::try_from(turn).unwrap() % millis.len();
        spread.record(millis[at] * 1_000_000);
    }
    spread
}

fn example() -> (Options, RunResult, Machine) {
    let line = "-b4K -t2 -o32 -r -w25 -d2 -Sh -L -D C:\\a&b";
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let share = |thread, reads, writes| Share {
        thread,
        target: 0,
        read: side(reads, &[1, 2, 3, 10]),
        write: side(writes, &[20]),
        series: vec![
            Interval {
                read: spread(reads, &[1, 2, 3, 10]),
                bytes: reads * 4096,
                ..Interval::default()
            },
            Interval {
                write: spread(writes, &[20]),
                bytes: writes * 4096,
                ..Interval::default()
            },
        ],
        stall: Duration::from_millis(7),
        time_in_flight: 1_000_000_000,
        errors: 0,
        first_error: None,
        missing: 0,
    };
    let result = RunResult {
        seconds: 2.0,
        shares: vec![share(0, 300, 100), share(1, 500, 200)],
        targets: vec![TargetFacts {
            name: "C:\\a&b".into(),
            size: 1 << 30,
            base: 1 << 20,
            length: (1 << 30) - (1 << 20),
        }],
        threads: 2,
        interval: Duration::from_secs(1),
        processors: vec![Processor {
            number: 0,
            user: 10.0,
            kernel: 30.0,
            idle: 60.0,
        }],
        started: 1_795_257_000_000_000_000,
        ..RunResult::default()
    };
    (
        parse(&words).unwrap(),
        result,
        Machine {
            name: "host".into(),
            processors: vec![ProcessorTopology::default()],
            power: None,
        },
    )
}

/// Reads diskspd's text: its sections, and the rows of each, cut at the bars.
fn sections(text: &str) -> BTreeMap<String, Vec<Vec<String>>> {
    let mut found: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut section = String::new();
    for line in text.lines() {
        if line.ends_with(" IO") || line.ends_with("distribution:") || line.starts_with("CPU |") {
            section = line.trim().to_owned();
        } else if line.contains('|') {
            let line = line.replacen("total:", "total|", 1);
            let cells = line.split('|').map(|cell| cell.trim().to_owned());
            found
                .entry(section.clone())
                .or_default()
                .push(cells.collect());
        }
    }
    found
}

#[test]
fn the_text_is_read_as_diskspds_is() {
    let (options, result, machine) = example();
    let text = text(&options, &result, &machine);
    let sections = sections(&text);
    let total = &sections["Total IO"];
    assert_eq!(total[0][1..4], ["bytes", "I/Os", "MiB/s"]);
    assert_eq!(total[1][0], "0");
    assert_eq!(total[1][1..3], ["1638400", "400"]);
    let all = total.last().unwrap();
    assert_eq!(all[0..3], ["total", "4505600", "1100"]);
    // 4505600 bytes in 2 s
    assert_eq!(all[3..5], ["2.15", "550.00"]);
    assert_eq!(sections["Read IO"].last().unwrap()[2], "800");
    assert_eq!(sections["Write IO"].last().unwrap()[2], "300");
    // 800 reads, then 300 writes: 250 to either side of the mean.
    assert_eq!(all[6], "250.00");
    let percentiles = &sections["Total latency distribution:"];
    let row = |name: &str| {
        percentiles
            .iter()
            .find(|row| row[0] == name)
            .unwrap()
            .clone()
    };
    let near =
        |cell: &str, millis: f64| (cell.parse::<f64>().unwrap() / millis - 1.0).abs() < 0.002;
    assert!(near(&row("min")[1], 1.0) && near(&row("max")[3], 20.0));
    assert!(near(&row("50th")[1], 2.0) && near(&row("50th")[2], 20.0));
    assert_eq!(percentiles.len(), 1 + PERCENTILES.len());
    assert_eq!(
        sections["CPU |  Usage |  User  | Kernel |  Idle"][0][1],
        "40.00%"
    );
    for heading in [
        "Command Line: ",
        "Input parameters:",
        "System information:",
        "Results for timespan 1:",
        "\ttimespan:   1\n\t-------------\n\tduration: 2s\n",
        "\t\tsoftware cache disabled\n\t\thardware write cache disabled, writethrough on\n",
        "\t\tperforming mix test (read/write ratio: 75/25)\n\t\tblock size: 4KiB\n\t\tusing random I/O (alignment: 4KiB)\n",
        "\t\tbase file offset: 1MiB\n",
        "\n\tcpu count:\t\t1\n\tcore count:\t\t1\n\tgroup count:\t\t1\n\tnode count:\t\t1\n\tsocket count:\t\t1\n",
        "\nactual test time:\t2.00s\nthread count:\t\t2\nproc count:\t\t1\n\nCPU |",
    ] {
        assert!(text.contains(heading), "{heading}");
    }
    assert!(text.contains("start time: 2026/11/21 "), "{text}");
}

/// Several targets have a chart each, and what was not done has no latency, as diskspd 2.2 prints
/// it.
#[test]
fn each_of_several_targets_has_its_own_latencies() {
    let (options, mut result, machine) = example();
    result.targets.push(TargetFacts {
        name: "second".into(),
        ..result.targets[0].clone()
    });
    result.shares[1].target = 1;
    result.shares[1].write = Side::default();
    let text = text(&options, &result, &machine);
    let second = text
        .split("\nLatency distribution: second\n")
        .nth(1)
        .unwrap();
    let row = second.lines().find(|line| line.contains("50th")).unwrap();
    assert!(
        row.contains("N/A") && row.starts_with("   50th | "),
        "{row}"
    );
    let row = text
        .split("\nWrite IO\n")
        .nth(1)
        .unwrap()
        .lines()
        .nth(3)
        .unwrap();
    assert!(row.ends_with("|       N/A | second (1GiB)"), "{row}");
    let zones: Vec<String> = "-rdpct90/10:5/20 -rs50 -Zr x"
        .split(' ')
        .map(str::to_owned)
        .collect();
    let zones = super::text(&parse(&zones).unwrap(), &result, &machine);
    for line in [
        "\t\t    90% of IO => [ 0% -  10%) of target\n",
        "\t\t     5% of IO => [30% - 100%) of target\n",
        "\t\tusing mixed random/sequential I/O (50% random) (alignment/stride: 64KiB)\n",
        "\tgenerating random data for each write IO\n",
    ] {
        assert!(zones.contains(line), "{line}: {zones}");
    }
}

/// Reads XML: every leaf by its path, in order.
fn leaves(xml: &str) -> Vec<(String, String)> {
    let (mut path, mut found, mut rest): (Vec<&str>, Vec<_>, &str) = (Vec::new(), Vec::new(), xml);
    while let Some(start) = rest.find('<') {
        let text = rest[..start].trim();
        let end = start + rest[start..].find('>').expect("every tag is closed");
        let tag = &rest[start + 1..end];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(path.last(), Some(&name), "elements are closed in order");
            if !text.is_empty() {
                found.push((path.join("/"), text.replace("&amp;", "&")));
            }
            path.pop();
        } else if let Some(leaf) = tag.strip_suffix('/') {
            found.push((
                format!("{}/{}", path.join("/"), leaf.split(' ').next().unwrap()),
                leaf.to_owned(),
            ));
        } else {
            let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
            path.push(name);
            if !attributes.is_empty() {
                found.push((format!("{}@", path.join("/")), attributes.to_owned()));
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(path.is_empty(), "{path:?}");
    found
}

#[test]
fn the_xml_is_read_as_diskspds_is() {
    let (options, result, machine) = example();
    let leaves = leaves(&xml(&options, &result, &machine));
    let all = |path: &str| -> Vec<&str> {
        let these = leaves.iter().filter(|(at, _)| at == path);
        these.map(|(_, value)| value.as_str()).collect()
    };
    let sum = |path: &str| {
        all(path)
            .iter()
            .map(|text| text.parse::<u64>().unwrap())
            .sum::<u64>()
    };
    assert_eq!(all("Results/TimeSpan/TestTimeSeconds"), ["2.00"]);
    // What Process-DiskSpd adds up.
    assert_eq!(sum("Results/TimeSpan/Thread/Target/IOCount"), 1100);
    assert_eq!(sum("Results/TimeSpan/Thread/Target/ReadBytes"), 800 * 4096);
    assert_eq!(sum("Results/TimeSpan/Thread/Target/WriteCount"), 300);
    assert_eq!(all("Results/TimeSpan/Thread/Target/Path")[0], "C:\\a&b");
    let percentiles = all("Results/TimeSpan/Latency/Bucket/Percentile");
    assert_eq!(percentiles.len(), 108);
    assert_eq!(
        &percentiles[98..],
        [
            "98",
            "99",
            "99.9",
            "99.99",
            "99.999",
            "99.9999",
            "99.99999",
            "99.999999",
            "99.9999999",
            "100"
        ]
    );
    let writes = all("Results/TimeSpan/Latency/Bucket/WriteMilliseconds");
    assert!((writes[50].parse::<f64>().unwrap() - 20.0).abs() < 0.04);
    assert_eq!(
        all("Results/Profile/TimeSpans/TimeSpan/Targets/Target/Random"),
        ["4096"]
    );
    assert_eq!(
        all("Results/Profile/TimeSpans/TimeSpan/Targets/Target/WriteRatio"),
        ["25"]
    );
    assert_eq!(
        all("Results/TimeSpan/CpuUtilization/Average/UsagePercent"),
        ["40.00"]
    );
}

#[test]
fn the_xml_reports_operations_and_latencies_of_every_interval_and_target() {
    let (options, result, machine) = example();
    let leaves = leaves(&xml(&options, &result, &machine));
    let all = |path: &str| -> Vec<&str> {
        let these = leaves.iter().filter(|(at, _)| at == path);
        these.map(|(_, value)| value.as_str()).collect()
    };
    let buckets = all("Results/TimeSpan/Iops/Bucket");
    assert_eq!(
        buckets[1],
        "Bucket SampleMillisecond=\"2000\" Read=\"0\" Write=\"300\" Total=\"300\" \
         ReadMinLatencyMilliseconds=\"0.000\" ReadMaxLatencyMilliseconds=\"0.000\" \
         ReadAvgLatencyMilliseconds=\"0.000\" ReadLatencyStdDev=\"0.000\" \
         WriteMinLatencyMilliseconds=\"20.000\" WriteMaxLatencyMilliseconds=\"20.000\" \
         WriteAvgLatencyMilliseconds=\"20.000\" WriteLatencyStdDev=\"0.000\""
    );
    assert!(
        buckets[0]
            .contains("ReadMinLatencyMilliseconds=\"1.000\" ReadMaxLatencyMilliseconds=\"10.000\"")
            && buckets[0]
                .contains("ReadAvgLatencyMilliseconds=\"4.000\" ReadLatencyStdDev=\"3.536\""),
        "{}",
        buckets[0]
    );
    // The same for each thread on each target.
    let of_threads = all("Results/TimeSpan/Thread/Target/Iops/Bucket");
    assert_eq!(of_threads.len(), 4);
    assert!(of_threads[2].contains("Read=\"500\" Write=\"0\" Total=\"500\""));
    assert_eq!(
        all("Results/TimeSpan/Thread/Target/Iops/ReadIopsStdDev"),
        ["150.000", "250.000"]
    );
    assert_eq!(
        all("Results/TimeSpan/Latency@"),
        ["ReadHistoBuckets=\"4\" WriteHistoBuckets=\"1\" TotalHistoBuckets=\"5\""]
    );
    // What is not so is left out: PowerShell takes "false" for true.
    let target = "Results/Profile/TimeSpans/TimeSpan/Targets/Target";
    assert_eq!(all(&format!("{target}/WriteThrough")), ["true"]);
    assert_eq!(all(&format!("{target}/RandomRatio")), [""; 0]);
    assert_eq!(all("Results/TimeSpan/CpuUtilization/CPU/Socket"), ["0"]);
}

#[test]
fn the_json_has_every_key_that_is_promised() {
    let (options, result, _) = example();
    let value = serde_json::to_value(view::RunView::new(&options, &result)).unwrap();
    for side in ["read", "write", "total"] {
        for key in ["ios", "bytes", "iops", "bytes_per_second"] {
            assert!(value[side][key].is_number(), "{side}.{key}");
        }
        for key in ["mean", "p50", "p99", "p999", "max"] {
            assert!(
                value[side]["latency_us"][key].is_number(),
                "{side}.latency_us.{key}"
            );
        }
    }
    assert_eq!(value["seconds"], 2.0);
    assert_eq!(value["total"]["ios"], 1100);
    assert_eq!(value["total"]["iops"], 550.0);
    assert_eq!(value["errors"], 0);
    assert_eq!(
        (&value["verify"]["checked"], &value["verify"]["bad"]),
        (&0.into(), &0.into())
    );
    assert_eq!(value["stall_ms_max"], 7.0);
    assert!(value["paths"].is_array());
    assert_eq!(value["series"][1]["write_ios"], 300);
    assert_eq!(value["series"][1]["ms"], 1000);
}

#[test]
fn dates_are_those_of_the_calendar() {
    assert_eq!(date(0), "1970/01/01 00:00:00 UTC");
    assert_eq!(date(951_782_399_000_000_000), "2000/02/28 23:59:59 UTC");
    assert_eq!(date(951_782_400_000_000_000), "2000/02/29 00:00:00 UTC");
    assert_eq!(date(4_102_444_800_000_000_000), "2100/01/01 00:00:00 UTC");
}
