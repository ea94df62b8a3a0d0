//! What a bench that is driven says each second.

use bench::{Ended, Phase, Progress};
use host::Status;
use std::io::Write as _;
use std::time::Duration;
use trials::line::{self, BenchLine, PathSecond, Second};

/// Says a line. Where nobody reads any more, standard input has ended as well.
pub(crate) fn say(line: &impl serde::Serialize) {
    let mut out = std::io::stdout().lock();
    let _gone = out.write_all(line::write(line).as_bytes());
    let _gone = out.flush();
}

/// The seconds of a run.
#[derive(Default)]
pub(crate) struct Seconds {
    number: u64,
    elapsed: Duration,
    /// The paths, a second ago.
    paths: Vec<Status>,
}

#[expect(clippy::cast_precision_loss, reason = "figures of a second")]
impl Seconds {
    /// Says what was done since the last time.
    pub(crate) fn say(&mut self, progress: &Progress, ended: &Ended, paths: Vec<Status>) {
        self.number += 1;
        let since = progress.elapsed.saturating_sub(self.elapsed);
        let seconds = since.as_secs_f64().max(1e-3);
        self.elapsed = progress.elapsed;
        let counts = progress.phase == Phase::Measuring;
        let rate = |count: u64| count as f64 / seconds;
        let mut all = ended.read.clone();
        all.add(&ended.write);
        let micros = |percentile| {
            let millis = all.percentile(percentile).filter(|_| counts)?;
            Some(millis * 1000.0)
        };
        say(&BenchLine::Second(Second {
            second: self.number,
            phase: phase(progress.phase),
            elapsed: progress.elapsed.as_secs_f64(),
            whole: progress.whole.as_secs_f64(),
            // The counters of other times are exact to some operations of each slot only.
            iops: if counts { rate(all.ios) } else { progress.iops },
            read_iops: counts.then(|| rate(ended.read.ios)),
            write_iops: counts.then(|| rate(ended.write.ios)),
            bytes_per_second: if counts {
                rate(all.bytes)
            } else {
                progress.bytes_per_second
            },
            errors: progress.errors,
            p50_us: micros(50.0),
            p99_us: micros(99.0),
            max_us: micros(100.0),
            paths: self.paths_of(&paths, seconds),
        }));
        self.paths = paths;
    }

    fn paths_of(&self, now: &[Status], seconds: f64) -> Vec<PathSecond> {
        let mut out = Vec::new();
        for volume in now {
            let earlier = self.paths.iter().find(|it| it.url == volume.url);
            for path in &volume.paths {
                let was = earlier.and_then(|it| it.paths.iter().find(|was| was.path == path.path));
                let since = |of: fn(&host::PathStatus) -> u64| {
                    was.map_or(0, |was| of(path).saturating_sub(of(was)))
                };
                out.push(PathSecond {
                    path: path.path.clone(),
                    from: path.from.to_string(),
                    portal: path.portal.to_string(),
                    state: path.state.to_owned(),
                    why: path.why.clone(),
                    iops: since(|it| it.ios) as f64 / seconds,
                    bytes_per_second: since(|it| it.bytes) as f64 / seconds,
                    retransmits: since(|it| it.retransmits),
                });
            }
        }
        out
    }
}

fn phase(of: Phase) -> line::Phase {
    match of {
        Phase::WarmUp => line::Phase::WarmUp,
        Phase::Measuring => line::Phase::Measuring,
        Phase::CoolDown => line::Phase::CoolDown,
    }
}
