use super::*;
use std::time::Duration;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn parsed(line: &str) -> Options {
    parse(&words(line)).unwrap_or_else(|mistake| panic!("{line}: {mistake}"))
}

fn refused(line: &str) -> String {
    parse(&words(line)).expect_err(line).to_string()
}

#[test]
fn diskspds_own_example_is_understood() {
    let options = parsed("-b64K -t2 -o32 -r4K -w30 -d10 -Sh -L -Rxml /tmp/a");
    assert_eq!(
        (options.block, options.threads, options.outstanding),
        (65536, 2, 32)
    );
    assert_eq!(
        options.access,
        Access::Random {
            alignment: 4096,
            percent: 100
        }
    );
    assert_eq!((options.write_percent, options.write_through), (30, true));
    assert_eq!((options.form, options.latency), (Form::Xml, true));
    assert_eq!(options.duration, Duration::from_secs(10));
    assert_eq!(options.targets, ["/tmp/a"]);
    let apart = parsed("-R json x");
    assert_eq!((apart.form, apart.targets.len()), (Form::Json, 1));
    assert_eq!(parsed("-R x").targets, ["x"]);
}

#[test]
fn nothing_said_means_what_it_means_in_diskspd() {
    let options = parsed("x");
    assert_eq!(
        (options.block, options.threads, options.outstanding),
        (65536, 1, 2)
    );
    let access = Access::Sequential {
        stride: 65536,
        interlocked: false,
        parallel: false,
    };
    assert_eq!(options.access, access);
    assert_eq!(options.warm_up, Duration::from_secs(5));
    assert_eq!((options.write_percent, options.seed), (0, Some(0)));
}

#[test]
fn sizes_in_blocks_use_the_block_wherever_it_stands() {
    let options = parsed("-r2b -B16b:64b -T4b -b8K x");
    assert_eq!(
        options.access,
        Access::Random {
            alignment: 16384,
            percent: 100
        }
    );
    assert_eq!(
        (options.base, options.length),
        (Some(131_072), Some(524_288))
    );
    assert_eq!(options.thread_stride, 32768);
    assert_eq!(size("3G", 0), Some(3 << 30));
    assert_eq!(
        (
            size("", 1),
            size("-1", 1),
            size("1X", 1),
            size("99999999T", 1)
        ),
        (None, None, None, None)
    );
}

#[test]
fn random_and_sequential_have_all_their_forms() {
    let access = |line: &str| parsed(line).access;
    assert_eq!(
        access("-b4K -si8K x"),
        Access::Sequential {
            stride: 8192,
            interlocked: true,
            parallel: false
        }
    );
    assert_eq!(
        access("-b4K -s -p x"),
        Access::Sequential {
            stride: 4096,
            interlocked: false,
            parallel: true
        }
    );
    assert_eq!(
        access("-b4K -rs50 x"),
        Access::Random {
            alignment: 4096,
            percent: 50
        }
    );
    assert_eq!(
        access("-b4K -r8K -rs50 x"),
        Access::Random {
            alignment: 8192,
            percent: 50
        }
    );
    let zones = parsed("-rdpct90/10:5/20 x").zones;
    assert_eq!(
        zones[0],
        Zone {
            io_percent: 90,
            extent: ZoneExtent::Percent(10)
        }
    );
    assert_eq!(
        zones[2],
        Zone {
            io_percent: 5,
            extent: ZoneExtent::Rest
        }
    );
    let zones = parsed("-r4K -rdabs80/1G:20/0 x").zones;
    assert_eq!(zones[0].extent, ZoneExtent::Bytes(1 << 30));
    assert_eq!(
        zones[1],
        Zone {
            io_percent: 20,
            extent: ZoneExtent::Rest
        }
    );
}

#[test]
fn rates_bursts_sources_and_series_are_understood() {
    assert_eq!(parsed("-g500i x").rate, Some(Rate::Iops(500)));
    assert_eq!(
        parsed("-g1000 x").rate,
        Some(Rate::BytesPerMillisecond(1000))
    );
    let burst = parsed("-i32 -j10 x");
    assert_eq!(
        (burst.burst, burst.think),
        (Some(32), Duration::from_millis(10))
    );
    assert_eq!(parsed("-Z x").source, Source::Zeroes);
    assert_eq!(parsed("-Zr x").source, Source::RandomEach);
    assert_eq!(parsed("-Z20M x").source, Source::Random { bytes: 20 << 20 });
    let file = Source::File {
        bytes: 1 << 20,
        path: "/a,b".into(),
    };
    assert_eq!(parsed("-Z1M,/a,b x").source, file);
    assert_eq!((parsed("-z x").seed, parsed("-z9 x").seed), (None, Some(9)));
    let series = parsed("-D100 x");
    assert_eq!(
        (series.series, series.interval),
        (true, Duration::from_millis(100))
    );
}

#[test]
fn long_options_and_those_of_the_initiator_are_understood() {
    let options = parsed(
        "--verify --deadline=2.5 --policy rr:1 --from eth0 --from 10.0.0.1 --no-plan iscsi://h/i/0",
    );
    assert_eq!(options.deadline, Duration::from_millis(2500));
    assert_eq!(
        options.initiator,
        [
            "--policy",
            "rr:1",
            "--from",
            "eth0",
            "--from",
            "10.0.0.1",
            "--no-plan"
        ]
    );
    assert_eq!(options.targets, ["iscsi://h/i/0"]);
    assert_eq!(parsed("--profile anvil x").profile, Some(Profile::Anvil));
}

#[test]
fn what_is_windows_own_is_accepted_with_a_warning_and_what_is_unknown_is_refused() {
    let options = parsed("-ag -n -x -ysev -frs x");
    assert_eq!(options.warnings.len(), 5, "{:?}", options.warnings);
    assert!(refused("-q x").contains("no such option"));
    assert!(refused("--qd 4 x").contains("no such option"));
    assert!(refused("-Xprofile.xml x").contains("not read here"));
    assert!(refused("-Sm x").contains("not mapped into memory"));
    assert!(refused("-Rp x").contains("not printed"));
}

#[test]
fn a_mistake_says_what_to_write_instead() {
    assert!(refused("-b 64K x").contains("values stand right behind the letter: -b64K"));
    assert!(refused("-t 2 x").contains("values stand right behind"));
    assert!(refused("-w130 x").contains("0 to 100"));
    assert!(refused("-r -s x").contains("-rs<percent>"));
    assert!(refused("-i3 x").contains("-i and -j go together"));
    assert!(refused("-rdpct50/60:50/60 x").contains("pairs"));
    assert!(refused("-d0 x").contains("a run has a duration"));
    assert!(refused("-O8 x").contains("-F"));
    assert!(refused("--deadline").contains("no value"));
}
