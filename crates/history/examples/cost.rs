//! What a history costs: processor time by the second, and bytes.
//!
//! `cargo run --release -p history --example cost -- [LUNS] [SECONDS] [BUSY PERCENT] [MAP ROWS]`
//!
//! With 0 rows of the latency map, nothing is recorded that is read every ten seconds.

use database::{Settings, Synchronous};
use history::{
    Asked, Behaviour, History, Kind, METRICS, Metric, Object, Reading, SLOW_EVERY, TIERS,
};
use rustix::time::{ClockId, clock_gettime};

const BEGAN: u64 = 1_800_000_000;

/// Twelve of each LUN, as the sampler reads them.
fn metrics() -> Vec<Metric> {
    METRICS.into_iter().take(12).collect()
}

/// What is recorded every ten seconds: twelve percentiles of stages, and so many rows of a map, of
/// reads and of writes.
fn slow(load: u64, rows: u8, random: &mut Random) -> Vec<(Metric, Option<u64>)> {
    let levels = METRICS
        .into_iter()
        .filter(|metric| metric.behaviour() == Behaviour::Level && rows > 0);
    let mut figures: Vec<_> = levels
        .map(|metric| (metric, Some(load + random.below(load / 5 + 1))))
        .collect();
    for (is_write, row) in [false, true]
        .into_iter()
        .flat_map(|is_write| (0..rows).map(move |row| (is_write, row)))
    {
        // The middle rows have most.
        let most = (10 * load) >> u32::from(row.abs_diff(rows / 2));
        figures.push((
            Metric::of_map(is_write, 5 + row),
            Some(most - most / 10 + random.below(most / 5 + 1)),
        ));
    }
    figures
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// Processor time of all threads, in microseconds.
fn cpu_us() -> u64 {
    let at = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(at.tv_sec * 1_000_000 + at.tv_nsec / 1_000).unwrap_or(0)
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|word| word.parse().ok());
    let luns: usize = arguments.next().unwrap_or(1_000);
    let seconds = arguments.next().map_or(7_200, |it| it as u64);
    let busy = arguments.next().unwrap_or(100);
    let rows = arguments
        .next()
        .map_or(7, |it| u8::try_from(it).unwrap_or(7));
    let path = std::env::temp_dir().join(format!("history-cost-{}.db", std::process::id()));
    let history = History::start(Settings {
        path: path.clone(),
        synchronous: Synchronous::Normal,
        bytes_max: 64 << 30,
    });
    let history = history.expect("a thread");
    let names: Vec<String> = (0..luns).map(|number| format!("lun{number:05}")).collect();
    let mut random = Random(88_172_645_463_325_252);
    let mut figures = vec![vec![0_u64; 12]; luns];
    let (mut taken, mut sizes) = (0, Vec::new());
    for second in 0..seconds {
        for (figures, number) in figures.iter_mut().zip(0..) {
            let is_busy = number * 100 < busy * luns;
            change(figures, is_busy, (number, second), &mut random);
        }
        let is_slow = second % SLOW_EVERY == SLOW_EVERY - 1;
        let mut all = Vec::with_capacity(luns);
        for (figures, number) in figures.iter().zip(0..) {
            let figures = figures.iter().map(|it| Some(*it));
            let mut figures: Vec<_> = metrics().into_iter().zip(figures).collect();
            if is_slow && number * 100 < busy * luns {
                figures.extend(slow(400 + second % 100, rows, &mut random));
            }
            all.push(figures);
        }
        let before = cpu_us();
        let readings: Vec<Reading<'_>> = names
            .iter()
            .zip(all)
            .map(|(name, figures)| Reading {
                kind: Kind::Lun,
                name,
                identity: None,
                figures,
            })
            .collect();
        history.push(BEGAN + second, &readings);
        taken += cpu_us() - before;
        sizes.push(before);
    }
    let before = cpu_us();
    report_queries(&names[0], &history, BEGAN + seconds);
    let asked = cpu_us() - before;
    history.stop();
    let bytes = history.health().bytes;
    let all = taken + cpu_us() - before - asked;
    println!("{luns} LUNs, {busy} % busy, 12 metrics and {rows} rows of maps, {seconds} s");
    println!("processor: {} us a second, writing included", all / seconds);
    println!("file: {bytes} bytes");
    report_tiers(&path, luns, seconds);
    for suffix in ["", "-wal"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
}

/// A LUN with a load that goes up and down by the hour and by a tenth from second to second.
fn change(figures: &mut [u64], is_busy: bool, (lun, second): (usize, u64), random: &mut Random) {
    if !is_busy {
        return;
    }
    let of_hour = (second + lun as u64 * 97) % 3_600;
    let load = 400 + of_hour.abs_diff(1_800);
    for (figure, metric) in figures.iter_mut().zip(metrics()) {
        let base = load * (1 + lun as u64 % 7) * (1 + metric.name().len() as u64);
        let now = base - base / 10 + random.below(base / 5);
        match metric.behaviour() {
            Behaviour::Counter => *figure += now,
            Behaviour::Gauge | Behaviour::Level | Behaviour::Tally => *figure = now,
        }
    }
}

fn report_queries(name: &str, history: &History, now: u64) {
    let object = Object {
        kind: Kind::Lun,
        name: name.to_owned(),
    };
    for tier in TIERS {
        let asked = Asked {
            from: now.saturating_sub(tier.kept),
            to: now,
            points: 600,
        };
        let before = cpu_us();
        let lines = wait(history.query(vec![object.clone()], metrics(), asked));
        let known = lines.lines.iter().flat_map(|line| &line.points);
        let known = known.filter(|point| !point.is_gap()).count();
        println!(
            "query of {} s in steps of {} s: {} us, {known} points of {} metrics",
            tier.kept,
            lines.step,
            cpu_us() - before,
            lines.lines.len()
        );
    }
}

fn wait<T>(query: impl Future<Output = Result<T, database::Failed>>) -> T {
    let mut query = std::pin::pin!(query);
    let waker = std::task::Waker::noop();
    let mut context = std::task::Context::from_waker(waker);
    loop {
        if let std::task::Poll::Ready(done) = query.as_mut().poll(&mut context) {
            return done.expect("it is read");
        }
        std::thread::yield_now();
    }
}

/// What a full year takes, from the rows that are complete.
fn report_tiers(path: &std::path::Path, luns: usize, seconds: u64) {
    let file = database::rusqlite::Connection::open(path).expect("it is closed");
    let mut all = 0.0;
    for tier in TIERS {
        let sql =
            "SELECT count(*), coalesce(sum(length(bytes)), 0) FROM chunk WHERE key >> 60 = ?1";
        let number = match tier.step {
            1 => 0,
            10 => 1,
            _ => 2,
        };
        let (rows, bytes): (i64, i64) = file
            .query_row(sql, [number], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("it is read");
        let points = seconds.min(tier.kept) / tier.step;
        let of_point = bytes as f64 / (points * luns as u64).max(1) as f64;
        let full = of_point * (tier.kept / tier.step) as f64 * luns as f64;
        all += full;
        println!(
            "tier of {} s: {rows} rows, {bytes} bytes, {of_point:.2} a point of a LUN; full: {:.0} MB",
            tier.step,
            full / 1e6
        );
    }
    println!("all tiers full: {:.0} MB of rows", all / 1e6);
}
