//! fio in the guest: passes of writes that are read back and compared, until asked to end.

use crate::guest::{Guest, Running};
use serde_json::{Deserializer, Value};
use std::time::Duration;

/// A load that runs.
pub(crate) struct Load {
    running: Running,
    device: String,
    name: String,
}

/// What it came to. There was no error: fio ends at the first.
#[derive(Debug)]
pub(crate) struct Report {
    /// Passes that were written and read back whole.
    pub(crate) passes: usize,
    /// Writes that were answered.
    pub(crate) writes: u64,
    /// The longest time that one command took.
    pub(crate) longest: Duration,
}

impl Load {
    /// Starts it on a device: in each pass every block of `mebibytes` is written once, in any
    /// order, at `depth`, and read back. Blocks of an older pass are known by their seed.
    pub(crate) fn start(guest: &Guest, device: &str, depth: u32, mebibytes: u32) -> Self {
        let name: String = device.chars().filter(char::is_ascii_alphanumeric).collect();
        let running = guest.start(&format!(
            "rm -f /tmp/stop.{name} /tmp/fio.{name}.*\npass=0\n\
             while [ ! -e /tmp/stop.{name} ]; do\n\
             pass=$((pass + 1))\n\
             fio --name=load --filename={device} --direct=1 --ioengine=libaio --iodepth={depth} --rw=randwrite --bs=4k \
             --size={mebibytes}m --rate_iops=400 --verify=crc32c --verify_backlog=64 --verify_fatal=1 --verify_dump=0 \
             --randseed=$((pass * 7919)) --output-format=json --output=/tmp/fio.{name}.$pass || \
             {{ cat /tmp/fio.{name}.$pass; dmesg | tail -40; exit 1; }}\n\
             done\ncat /tmp/fio.{name}.*"
        ));
        Self {
            running,
            device: device.to_owned(),
            name,
        }
    }

    /// Waits until its writes arrive at the device.
    pub(crate) fn wait_for_writes(&self, guest: &Guest) {
        guest.wait_until(
            &format!(
                "name=$(basename $(readlink -f {}))\n\
                 writes() {{ read -r _ _ _ _ count _ < /sys/block/$name/stat; }}\n\
                 writes; before=$count; sleep 0.3; writes; [ $count -gt $((before + 20)) ]",
                self.device
            ),
            Duration::from_secs(60),
        );
    }

    /// It still runs, without an error.
    pub(crate) fn is_running(&mut self) -> bool {
        self.running.is_running()
    }

    /// Lets the pass that runs end, and checks all.
    pub(crate) fn stop(self, guest: &Guest) -> Report {
        guest.run(&format!("touch /tmp/stop.{}", self.name));
        report(&self.running.end())
    }

    /// Its end by an error, and what it said.
    pub(crate) fn fail(self) -> String {
        self.running.fail()
    }
}

fn report(said: &str) -> Report {
    let mut report = Report {
        passes: 0,
        writes: 0,
        longest: Duration::ZERO,
    };
    for document in Deserializer::from_str(said).into_iter::<Value>() {
        let document = document.unwrap_or_else(|error| panic!("{error}: {said}"));
        let job = &document["jobs"][0];
        assert_eq!(job["error"], 0, "{document}");
        report.passes += 1;
        report.writes += job["write"]["total_ios"].as_u64().expect("a count");
        for direction in ["read", "write"] {
            let longest = job[direction]["clat_ns"]["max"].as_u64().unwrap_or(0);
            report.longest = report.longest.max(Duration::from_nanos(longest));
        }
    }
    assert!(report.passes > 0, "{said}");
    report
}
