//! The recorder against a model that keeps every second.

use crate::chunk::Chunk;
use crate::ids::Known;
use crate::metric::{Behaviour, METRICS, Metric};
use crate::object::{Kind, Object};
use crate::point::Point;
use crate::query::{Asked, Plan};
use crate::recorder::{Drained, Reading, Recorder};
use crate::tier::{TIERS, Tier, chunk_of, object_of};
use std::collections::BTreeMap;

/// Rows as a file has them.
#[derive(Default)]
struct File {
    objects: BTreeMap<u32, (Known, Object)>,
    rows: BTreeMap<i64, Vec<u8>>,
}

impl File {
    fn keep(&mut self, drained: Drained) {
        let objects = drained.objects.into_iter();
        self.objects.extend(objects.map(|it| (it.0.id, it)));
        let rows = drained.rows.into_iter();
        self.rows.extend(rows.map(|row| (row.key, row.bytes)));
    }

    fn chunk(&self, tier: Tier, number: u64, id: u32) -> Option<Chunk> {
        let bytes = self.rows.get(&tier.key(number, id))?;
        Some(Chunk::decode(tier, number, bytes).expect("it is as it was written"))
    }

    /// What a new process has of it.
    fn recorder(&self, now: u64) -> Recorder {
        let mut recorder = Recorder::default();
        recorder.know(self.objects.values().cloned());
        let chunks = TIERS.into_iter().flat_map(|tier| {
            let number = tier.chunk(now);
            let ids = self.objects.keys();
            ids.filter_map(move |id| Some((*id, self.chunk(tier, number, *id)?)))
        });
        recorder.restore(now, chunks.collect::<Vec<_>>());
        recorder
    }
}

/// Every second of every metric of every object.
#[derive(Default)]
struct Model {
    seconds: BTreeMap<(Object, Metric), BTreeMap<u64, u64>>,
}

impl Model {
    fn put(&mut self, object: &Object, metric: Metric, second: u64, figure: u64) {
        let line = self.seconds.entry((object.clone(), metric)).or_default();
        assert_eq!(line.insert(second, figure), None);
    }

    fn point(&self, object: &Object, metric: Metric, from: u64, step: u64) -> Point {
        let mut point = Point::default();
        if let Some(line) = self.seconds.get(&(object.clone(), metric)) {
            for figure in line.range(from..from + step).map(|(_, figure)| *figure) {
                point.add(&Point::one(figure));
            }
        }
        point
    }
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

/// A figure that was rounded once differs by no more than this part of it.
const ROUNDED: u64 = 200;

const BEGAN: u64 = 1_800_000_000 - 77;

fn objects() -> Vec<Object> {
    let lun = |name: &str| Object {
        kind: Kind::Lun,
        name: name.to_owned(),
    };
    let node = Object {
        kind: Kind::Node,
        name: "a".to_owned(),
    };
    vec![lun("a"), lun("b"), node]
}

/// A node that is read second by second, and the model beside it.
struct Run {
    random: Random,
    recorder: Recorder,
    file: File,
    model: Model,
    now: u64,
    drained: u64,
    counters: BTreeMap<(Object, Metric), u64>,
    /// Of each object: when it was read last by this process.
    read: BTreeMap<Object, u64>,
}

impl Run {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            recorder: Recorder::default(),
            file: File::default(),
            model: Model::default(),
            now: BEGAN,
            drained: BEGAN,
            counters: BTreeMap::new(),
            read: BTreeMap::new(),
        }
    }

    /// One reading, after a pause that is a second most of the time.
    fn step(&mut self) {
        let pause = match self.random.below(200) {
            0 => 2 + self.random.below(4),
            1 => 6 + self.random.below(700),
            _ => 1,
        };
        self.now += pause;
        let objects = objects();
        let mut readings = Vec::new();
        for object in &objects {
            // One of them is away for a while now and then.
            if object.name == "b" && self.now / 1_000 % 3 == 1 {
                continue;
            }
            let figures = METRICS[..10]
                .iter()
                .map(|metric| (*metric, self.figure(object, *metric)));
            let figures = figures.collect();
            readings.push(Reading {
                kind: object.kind,
                name: &object.name,
                identity: None,
                figures,
            });
            self.read.insert(object.clone(), self.now);
        }
        self.recorder.push(self.now, &readings);
        if self.now / 60 != self.drained / 60 {
            self.file.keep(self.recorder.drain(false));
            self.drained = self.now;
        }
    }

    fn figure(&mut self, object: &Object, metric: Metric) -> Option<u64> {
        let size = 1 << self.random.below(30);
        let new = self.random.below(size);
        let key = (object.clone(), metric);
        if metric.behaviour() == Behaviour::Gauge {
            let known = self.random.below(4) > 0;
            if known {
                self.model
                    .put(object, metric, self.now, new * metric.scale());
            }
            return known.then_some(new);
        }
        let is_new = self.random.below(300) == 0;
        if is_new && self.counters.get(&key).is_some_and(|before| *before > 0) {
            // Its program was started anew.
            self.counters.insert(key, 0);
            return Some(0);
        }
        let last = self.read.get(object).copied();
        let before = self.counters.get(&key).copied();
        let figure = before.unwrap_or(0) + new;
        self.counters.insert(key, figure);
        if let (Some(last), Some(_)) = (last, before)
            && self.now - last <= 5
        {
            let late = self.now - last;
            for number in 1..=late {
                let share = new * number / late - new * (number - 1) / late;
                self.model.put(object, metric, last + number, share);
            }
        }
        Some(figure)
    }

    fn answer(
        &self,
        object: &Object,
        metric: Metric,
        tier: Tier,
        asked: Asked,
    ) -> (Plan, Vec<Point>) {
        // Nothing is said of when it is asked: each tier is asked for all that it has.
        let mut plan = Plan::of(asked, 0, [None; 3], 1);
        plan.step = plan.step.div_ceil(tier.step) * tier.step;
        plan.from -= plan.from % plan.step;
        plan.tier = tier;
        plan.count = usize::try_from((asked.to - plan.from).div_ceil(plan.step)).unwrap();
        let mut points = vec![Point::default(); plan.count];
        let under_way = self.recorder.under_way(object, tier);
        let newer = under_way.as_ref().map(|chunk| chunk.number);
        if let Some(id) = self.recorder.id(object) {
            for number in plan.chunks().filter(|number| Some(*number) != newer) {
                if let Some(chunk) = self.file.chunk(tier, number, id) {
                    plan.add(&chunk, metric, &mut points);
                }
            }
        }
        if let Some(chunk) = under_way {
            plan.add(&chunk, metric, &mut points);
        }
        (plan, points)
    }

    /// All that every tier has is what the model has, at any step.
    fn compare(&mut self, until: u64, within: u64) {
        let metrics = METRICS[..10].iter();
        let lines =
            metrics.flat_map(|metric| objects().into_iter().map(|object| (object, *metric)));
        for (object, metric) in lines.collect::<Vec<_>>() {
            for tier in TIERS {
                let points = 20 + self.random.below(200);
                self.compare_line(&object, metric, tier, (until, points, within));
            }
        }
    }

    fn compare_line(
        &self,
        object: &Object,
        metric: Metric,
        tier: Tier,
        (to, points, within): (u64, u64, u64),
    ) {
        let asked = Asked {
            from: BEGAN,
            to,
            points,
        };
        let (plan, points) = self.answer(object, metric, tier, asked);
        for (point, number) in points.iter().zip(0..) {
            let from = plan.from + plan.step * number;
            let wanted = self.model.point(object, metric, from, plan.step);
            assert_alike(metric, point, (&wanted, within), (object, tier, from));
        }
    }
}

#[track_caller]
fn assert_alike(
    metric: Metric,
    found: &Point,
    (wanted, within): (&Point, u64),
    of: (&Object, Tier, u64),
) {
    assert_eq!(found.seconds, wanted.seconds, "{metric:?} {of:?}");
    // A figure is rounded once, a mean to a whole figure besides.
    let near = |a: u64, b: u64| a.abs_diff(b) <= b / within + wanted.seconds;
    let is_near = match metric.behaviour() {
        Behaviour::Counter | Behaviour::Level | Behaviour::Tally => near(found.sum, wanted.sum),
        Behaviour::Gauge => {
            near(found.sum, wanted.sum)
                && near(found.min, wanted.min)
                && near(found.max, wanted.max)
        }
    };
    assert!(
        is_near,
        "{metric:?} {of:?}: {found:?}, and the model has {wanted:?}"
    );
}

#[test]
fn every_tier_has_what_a_model_that_keeps_every_second_has() {
    for seed in 1..4 {
        let mut run = Run::new(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        for _ in 0..4_000 {
            run.step();
        }
        run.compare(run.now + 1, ROUNDED);
        let gaps = run
            .model
            .point(&objects()[0], METRICS[0], BEGAN, run.now - BEGAN);
        assert!(gaps.seconds < run.now - BEGAN, "there are gaps");
    }
}

#[test]
fn a_process_that_was_stopped_in_order_is_gone_on_with_to_the_second() {
    let mut run = Run::new(77);
    for _ in 0..12 {
        for _ in 0..137 {
            run.step();
        }
        run.file.keep(run.recorder.drain(true));
        run.now += run.random.below(30);
        run.recorder = run.file.recorder(run.now);
        // The new process has its own counters.
        run.counters.clear();
        run.read.clear();
    }
    // A point that is under way is rounded at each stop.
    run.compare(run.now + 1, ROUNDED / 4);
}

#[test]
fn a_crash_loses_a_minute_at_most() {
    let mut run = Run::new(5);
    for _ in 0..20 {
        for _ in 0..61 {
            run.step();
        }
        let kept = run.drained - run.drained % 60;
        assert!(run.now - kept < 60 + 700);
        // Nothing of what was taken since is left.
        for line in run.model.seconds.values_mut() {
            line.retain(|second, _| *second < kept || *second > run.now);
        }
        run.recorder = run.file.recorder(run.now);
        run.counters.clear();
        run.read.clear();
        let until = kept;
        for object in objects() {
            let asked = Asked {
                from: BEGAN,
                to: until,
                points: 10_000,
            };
            let (plan, points) = run.answer(&object, METRICS[0], TIERS[0], asked);
            for (point, number) in points.iter().zip(0..) {
                let second = plan.from + plan.step * number;
                if second < until {
                    let wanted = run.model.point(&object, METRICS[0], second, plan.step);
                    assert_alike(
                        METRICS[0],
                        point,
                        (&wanted, ROUNDED),
                        (&object, TIERS[0], second),
                    );
                }
            }
        }
    }
}

#[test]
fn a_counter_that_goes_back_is_a_gap_and_never_negative() {
    let mut recorder = Recorder::default();
    let object = &objects()[0];
    for (second, figure) in [100, 150, 20, 30, 30].into_iter().enumerate() {
        let reading = Reading {
            kind: object.kind,
            name: &object.name,
            identity: None,
            figures: vec![(METRICS[0], Some(figure))],
        };
        recorder.push(600 + second as u64, &[reading]);
    }
    let chunk = recorder.under_way(object, TIERS[0]).unwrap();
    let points = chunk.points(METRICS[0]).unwrap();
    let known: Vec<Option<u64>> = points[..5]
        .iter()
        .map(|point| point.point(METRICS[0]))
        .map(|point| (!point.is_gap()).then_some(point.sum))
        .collect();
    assert_eq!(known, [None, Some(50), None, Some(10), Some(0)]);
}

#[test]
fn rows_lie_where_their_time_and_object_are() {
    let mut run = Run::new(9);
    for _ in 0..500 {
        run.step();
    }
    for (key, bytes) in &run.file.rows {
        assert!(run.file.objects.contains_key(&object_of(*key)));
        let tier = TIERS
            .into_iter()
            .find(|tier| tier.key(chunk_of(*key), object_of(*key)) == *key);
        let chunk = Chunk::decode(tier.unwrap(), chunk_of(*key), bytes).unwrap();
        let start = chunk.number * chunk.tier.span();
        assert!(start <= run.now && start + chunk.tier.span() > BEGAN);
    }
}

#[test]
fn what_is_read_every_ten_seconds_is_in_the_coarse_tiers_alone() {
    let level = Metric::known("read_queue_p99");
    let tally = Metric::of_map(false, 6);
    let object = objects()[0].clone();
    let mut recorder = Recorder::default();
    // Two readings of each; in between nothing came.
    for second in BEGAN..BEGAN + 30 {
        let figures = match second - BEGAN {
            9 => vec![(level, Some(10)), (tally, Some(400))],
            19 => vec![(level, Some(30)), (tally, Some(0))],
            29 => vec![(tally, Some(500))],
            _ => vec![(METRICS[0], Some(second))],
        };
        let reading = Reading {
            kind: object.kind,
            name: &object.name,
            identity: None,
            figures,
        };
        recorder.push(second, &[reading]);
    }
    let of = |tier: Tier, metric: Metric| -> Vec<(u64, u64)> {
        let chunk = recorder.under_way(&object, tier).unwrap();
        let points = chunk.points(metric);
        let points = points.into_iter().flatten().map(|it| it.point(metric));
        points
            .filter(|point| !point.is_gap())
            .map(|point| (point.seconds, point.sum))
            .collect()
    };
    assert_eq!((of(TIERS[0], level), of(TIERS[0], tally)), (vec![], vec![]));
    assert_eq!(of(TIERS[1], level), [(10, 100), (10, 300)]);
    assert_eq!(of(TIERS[1], tally), [(10, 400), (10, 500)]);
    assert_eq!(of(TIERS[2], level), [(20, 400)]);
    assert_eq!(of(TIERS[2], tally), [(20, 900)]);
}
