//! When pools are likely to be full, by their history of up to 30 days: asked of it every five
//! minutes, sooner where one could not be asked for, and given to the controller, which reports it
//! with the pools.

use crate::outside::now;
use crate::records::Records;
use controller::Handle;
use history::{Asked, History, Kind, Line, Metric, Object};
use manifest::facts::PoolFacts;
use manifest::forecast::{ForecastFacts, Sample};
use std::collections::BTreeMap;
use std::time::Duration;

/// So long after the start a sample was taken.
const FIRST: Duration = Duration::from_secs(2);

/// The history has no finer figures of that time.
const EVERY: Duration = Duration::from_secs(300);

/// Where a pool had none: it may not have said yet how large it is.
const SOON: Duration = Duration::from_secs(10);

const SPAN: u64 = 30 * 86_400;

/// Seconds of a sample.
const STEP: u64 = 3_600;

/// Until the node is gone.
pub(crate) async fn keep(records: &Records, handle: &Handle) {
    tokio::time::sleep(FIRST).await;
    loop {
        let pools = handle.call(|controller| Box::pin(async move { controller.pools().await }));
        let Ok(pools) = pools.await else {
            return;
        };
        let mut forecasts = BTreeMap::new();
        let count = pools.len();
        for pool in pools {
            if let Some(forecast) = of(records.history(), &pool).await {
                forecasts.insert(pool.name, forecast);
            }
        }
        let next = if forecasts.len() < count { SOON } else { EVERY };
        let given =
            handle.call(|controller| Box::pin(async move { controller.set_forecasts(forecasts) }));
        if given.await.is_err() {
            return;
        }
        tokio::time::sleep(next).await;
    }
}

/// Nothing of a pool that does not say how much it has.
async fn of(history: &History, pool: &PoolFacts) -> Option<ForecastFacts> {
    let object = Object {
        kind: Kind::Pool,
        name: pool.name.clone(),
    };
    let now = now().wall;
    let to = now.0 / 1_000_000_000;
    let asked = Asked {
        from: to.saturating_sub(SPAN),
        to,
        points: SPAN / STEP,
    };
    if pool.total == 0 {
        return None;
    }
    let metrics = vec![const { Metric::known("used_bytes") }];
    let found = history.query(vec![object], metrics, asked).await.ok()?;
    let samples = samples(found.lines.first()?, found.from, found.step);
    Some(ForecastFacts::of(&samples, found.step, pool.available, now))
}

/// The hours of which the half is known at least: of the one that goes on, its mean is not that of
/// its middle.
fn samples(line: &Line, from: u64, step: u64) -> Vec<Sample> {
    let points = line.points.iter().zip(0..);
    let known = points.filter(|(point, _)| point.seconds * 2 >= step);
    let sample = |(point, at): (&history::Point, u64)| Sample {
        at: from + at * step,
        used: point.mean_of(line.metric),
    };
    known.map(sample).collect()
}

#[cfg(test)]
mod test {
    use super::*;
    use database::{Settings, Synchronous};
    use history::{Point, Reading};
    use manifest::forecast::Trend;

    #[test]
    fn an_hour_of_which_little_is_known_is_no_sample() {
        let point = |seconds| Point {
            seconds,
            sum: seconds * 7,
            min: 7,
            max: 7,
        };
        let line = Line {
            object: Object {
                kind: Kind::Pool,
                name: "p".to_owned(),
            },
            metric: Metric::known("used_bytes"),
            points: vec![point(3_600), point(0), point(1_800), point(1_799)],
        };
        let samples = samples(&line, 7_200, 3_600);
        let at: Vec<(u64, f64)> = samples.iter().map(|it| (it.at, it.used)).collect();
        assert_eq!(at, [(7_200, 7.0), (14_400, 7.0)]);
    }

    #[test]
    fn a_pool_that_was_recorded_filling_for_two_days_has_a_date() {
        let path = std::env::temp_dir().join(format!("forecast-{}.db", std::process::id()));
        let settings = Settings {
            path: path.clone(),
            synchronous: Synchronous::Normal,
            bytes_max: 64 << 20,
        };
        let history = History::start(settings).unwrap();
        let end = now().wall.0 / 1_000_000_000;
        // A GiB an hour, and 48 are free.
        let begin = end - 2 * 86_400;
        for second in begin..=end {
            let used = (100 << 30) + (second - begin) * (1 << 30) / 3_600;
            let reading = Reading {
                kind: Kind::Pool,
                name: "p",
                identity: None,
                figures: vec![(Metric::known("used_bytes"), Some(used))],
            };
            history.push(second, &[reading]);
        }
        let pool: PoolFacts = serde_json::from_value(serde_json::json!({
            "name": "p", "path": "/p", "total": 200_u64 << 30, "available": 48_u64 << 30,
        }))
        .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let forecast = runtime.block_on(of(&history, &pool)).unwrap();
        history.stop();
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
        }
        assert_eq!(forecast.trend, Trend::Fills, "{forecast:?}");
        let day = forecast.bytes_per_day.unwrap();
        // Figures of more than 128 GiB are known to the GiB.
        assert!((23 << 30..25 << 30).contains(&day), "{forecast:?}");
        let full = manifest::time::parse(forecast.full_at.as_deref().unwrap()).unwrap();
        let away = full.0 / 1_000_000_000 - end;
        assert!((46 * 3_600..50 * 3_600).contains(&away), "{forecast:?}");
    }
}
