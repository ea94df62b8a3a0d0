//! `GET /history`: figures over time.

use crate::answer::Answer;
use crate::describe::{Operation, Parameter, Part, Schemas};
use crate::edit::ask;
use crate::outside::now;
use crate::parameters::{Parameters, wrong};
use crate::parts::Refused;
use crate::records::Records;
use crate::records::log::unreadable;
use axum::extract::{Extension, FromRequestParts, State};
use axum::http::request::Parts;
use controller::Handle;
use history::{Behaviour, Kind, METRICS, Metric, Object, Point};
use manifest::code::Code;
use manifest::name::did_you_mean;
use manifest::plan::{Section, Subject};
use manifest::problem::Problem;
use manifest::time::rfc3339;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use units::WallClock;

pub(super) const SECOND: u64 = 1_000_000_000;

/// How long ago an answer begins where nobody says.
const HOUR: u64 = 3_600;

/// About how many points a line has where nobody says how far they are apart.
const POINTS: u64 = 600;

/// The most points of a line.
pub(super) const POINTS_MAX: u64 = 10_000;

/// The most objects, and the most points of all lines.
const OBJECTS_MAX: usize = 256;
const ALL_POINTS_MAX: u64 = 200_000;

/// What somebody wants to see.
pub(crate) struct Asked {
    objects: Vec<Object>,
    metrics: Vec<Metric>,
    asked: history::Asked,
}

/// The time that is asked for.
pub(super) fn span(all: &Parameters, now: WallClock) -> Result<history::Asked, Problem> {
    let to = all.time("to", now)?.unwrap_or(now).0 / SECOND;
    let from = all.time("from", now)?.map(|from| from.0 / SECOND);
    let from = from.unwrap_or(to.saturating_sub(HOUR));
    if from >= to {
        return Err(wrong("from: it is not before to".to_owned()));
    }
    let points = match all.number("step", 1, 365 * 86_400)? {
        Some(step) => (to - from).div_ceil(step),
        None => POINTS.min(to - from),
    };
    Ok(history::Asked { from, to, points })
}

/// Parameters that say which time is asked for.
pub(super) fn takes_span(operation: &mut Operation) {
    for (name, meaning, schema) in [
        (
            "from",
            "Where to begin: RFC 3339, seconds since 1970, or how long ago, such as `-2d`.",
            json!({ "type": "string", "default": "-1h" }),
        ),
        (
            "to",
            "Where to end; without it, now.",
            json!({ "type": "string" }),
        ),
        (
            "step",
            "Seconds of a point, at least; without it so that there are 600 points at most.",
            json!({ "type": "integer", "minimum": 1 }),
        ),
    ] {
        operation.takes(Parameter {
            name,
            place: "query",
            meaning: meaning.to_owned(),
            schema,
        });
    }
}

pub(super) fn object(text: &str, node: &str) -> Result<Object, Problem> {
    let (kind, name) = text.split_once(':').unwrap_or((text, ""));
    let words = Kind::ALL.map(Kind::name);
    let known = Kind::ALL.into_iter().find(|known| known.name() == kind);
    let kind = known.ok_or_else(|| {
        let guess = did_you_mean(kind, words.iter().copied());
        let all = words.join(", ");
        wrong(format!(
            "object={text}: write KIND:NAME; kinds are {all}{guess}"
        ))
    })?;
    let name = match (kind, name) {
        (Kind::Node, "") => node,
        (_, "") => return Err(wrong(format!("object={text}: write {}:NAME", kind.name()))),
        (_, name) => name,
    };
    let name = name.to_owned();
    Ok(Object { kind, name })
}

/// The rows of a map have an answer of their own.
fn names() -> Vec<&'static str> {
    let alone = METRICS.into_iter().filter(|metric| !metric.is_of_map());
    alone.map(Metric::name).collect()
}

fn metric(name: &str) -> Result<Metric, Problem> {
    let found = Metric::named(name).filter(|metric| !metric.is_of_map());
    found.ok_or_else(|| {
        let all = names();
        let guess = did_you_mean(name, all.iter().copied());
        let all = all.join(", ");
        wrong(format!(
            "metric={name}: there is none of this name{guess}; there are {all}"
        ))
    })
}

/// What is recorded of a node, where nobody says what is wanted of it.
const OF_NODE: [&str; 4] = ["read_ops", "write_ops", "read_bytes", "write_bytes"];

impl Asked {
    fn read(query: Option<&str>, node: &str, now: WallClock) -> Result<Self, Problem> {
        let known = ["object", "metric", "from", "to", "step"];
        let all = Parameters::read(query, &known)?;
        let objects = all.all("object").map(|text| object(text, node));
        let mut objects = objects.collect::<Result<Vec<_>, _>>()?;
        if objects.is_empty() {
            objects.push(object("node", node)?);
        }
        if objects.len() > OBJECTS_MAX {
            return Err(wrong(format!(
                "more than {OBJECTS_MAX} objects: ask several times"
            )));
        }
        let metrics = all.words("metric").map(metric);
        let mut metrics = metrics.collect::<Result<Vec<_>, _>>()?;
        if metrics.is_empty() {
            metrics.extend(OF_NODE.into_iter().filter_map(Metric::named));
        }
        let asked = span(&all, now)?;
        let points = asked.points;
        let lines = u64::try_from(objects.len() * metrics.len()).unwrap_or(u64::MAX);
        if points > POINTS_MAX || points.saturating_mul(lines) > ALL_POINTS_MAX {
            return Err(wrong(format!(
                "{points} points of {lines} lines: an answer has {POINTS_MAX} of a line at most, and {ALL_POINTS_MAX} in \
                 all; ask with a larger step, or for fewer objects and metrics"
            )));
        }
        Ok(Self {
            objects,
            metrics,
            asked,
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Asked {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refused> {
        let records = parts.extensions.get::<Records>();
        let node = records.map(Records::node).unwrap_or_default().to_owned();
        Ok(Self::read(parts.uri.query(), &node, now().wall)?)
    }
}

impl Part for Asked {
    fn describe(operation: &mut Operation, _: &mut Schemas) {
        let mut takes = |name, meaning: &str, schema| {
            operation.takes(Parameter {
                name,
                place: "query",
                meaning: meaning.to_owned(),
                schema,
            });
        };
        takes(
            "object",
            "`node`, or `KIND:NAME` with `lun`, `host`, `target`, `pool`, `nic`; several are possible.",
            json!({ "type": "string", "default": "node" }),
        );
        let names = names();
        let metrics = format!(
            "What to show of each, with commas between: {}.",
            names.join(", ")
        );
        takes("metric", &metrics, json!({ "type": "string" }));
        takes_span(operation);
        operation.fails(&[Code::BadRequest, Code::NotFound, Code::RecordsUnreadable]);
    }
}

/// Whether there are these objects, or were.
pub(super) async fn are_known(
    records: &Records,
    handle: &Handle,
    objects: &[Object],
) -> Result<(), Problem> {
    for object in objects {
        if object.kind == Kind::Node || records.history().knows(object) {
            continue;
        }
        let name = object.name.clone();
        // What was made a moment ago has no figures yet.
        let is_there = match object.kind {
            Kind::Lun => is_spec(handle, Section::Lun, name).await?,
            Kind::Host => is_spec(handle, Section::Host, name).await?,
            Kind::Target => is_spec(handle, Section::Target, name).await?,
            Kind::Pool => ask!(handle, |controller| controller.pool(&name).await)?.is_ok(),
            Kind::Node | Kind::Nic => false,
        };
        if !is_there {
            let problem = Problem::not_found(object.kind.name(), &object.name);
            return Err(match object.kind {
                Kind::Lun => problem.hint(
                    "`causeway lun ls` shows what there is; one whose name another has now is found by its NAA identifier",
                ),
                Kind::Nic => problem.hint("`ip link` on the node shows its interfaces"),
                Kind::Node | Kind::Host | Kind::Target | Kind::Pool => problem,
            });
        }
    }
    Ok(())
}

async fn is_spec(handle: &Handle, section: Section, name: String) -> Result<bool, Problem> {
    let subject = Subject { section, name };
    let spec = ask!(handle, |controller| controller.spec(&subject))?;
    Ok(spec.is_some())
}

/// Figures over time.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HistoryView {
    /// When the first point begins (RFC 3339).
    from: String,
    /// Seconds of each point.
    step: u64,
    /// Seconds of the finest that is still known of this time: 1, 10 or 300.
    resolution: u64,
    /// One for each object and metric, in the order in which they were asked for.
    lines: Vec<LineView>,
}

/// One metric of one object.
#[derive(Serialize, JsonSchema)]
struct LineView {
    /// `node`, `lun`, `host`, `target`, `pool` or `nic`.
    kind: &'static str,
    /// Its name.
    name: String,
    /// What is shown of it.
    metric: &'static str,
    /// Of the figures: `1/s`, `byte/s`, `us`, `byte`, `permille`, `1`.
    unit: &'static str,
    /// The mean of each point; nothing where nothing is known.
    mean: Vec<Option<f64>>,
    /// The least of each point; of gauges only.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<Vec<Option<f64>>>,
    /// The most of each point; of gauges only.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<Vec<Option<f64>>>,
}

/// Figures have eight binary digits: more decimals say nothing.
fn figures(points: &[Point], of: impl Fn(&Point) -> f64) -> Vec<Option<f64>> {
    let short = |figure: f64| {
        if figure.abs() < 1_000.0 {
            (figure * 1_000.0).round() / 1_000.0
        } else {
            figure.round()
        }
    };
    let points = points.iter();
    points
        .map(|point| (!point.is_gap()).then(|| short(of(point))))
        .collect()
}

fn line(line: &history::Line) -> LineView {
    let (metric, points) = (line.metric, &line.points);
    let is_gauge = metric.behaviour() == Behaviour::Gauge;
    LineView {
        kind: line.object.kind.name(),
        name: line.object.name.clone(),
        metric: metric.name(),
        unit: metric.unit(),
        mean: figures(points, |point| point.mean_of(metric)),
        min: is_gauge.then(|| figures(points, |point| point.min_of(metric))),
        max: is_gauge.then(|| figures(points, |point| point.max_of(metric))),
    }
}

pub(crate) async fn history(
    State(handle): State<Handle>,
    Extension(records): Extension<Records>,
    asked: Asked,
) -> Answer<HistoryView> {
    let Asked {
        objects,
        metrics,
        asked,
    } = asked;
    if let Err(problem) = are_known(&records, &handle, &objects).await {
        return Answer(Err(problem));
    }
    let found = records.history().query(objects, metrics, asked).await;
    Answer(found.map_err(unreadable).map(|found| HistoryView {
        from: rfc3339(WallClock(found.from.saturating_mul(SECOND))),
        step: found.step,
        resolution: found.resolution,
        lines: found.lines.iter().map(line).collect(),
    }))
}

#[cfg(test)]
mod test {
    use super::*;

    const NOW: WallClock = WallClock(1_800_000_000 * SECOND);

    #[test]
    fn what_is_asked_is_bounded_and_what_is_wrong_is_named() {
        let read = |query| Asked::read(Some(query), "n", NOW);
        let plain = read("")
            .map(|it| (it.objects[0].name.clone(), it.asked))
            .unwrap();
        let asked = history::Asked {
            from: 1_799_996_400,
            to: 1_800_000_000,
            points: 600,
        };
        assert_eq!(plain, ("n".to_owned(), asked));
        let day = read("object=lun:vm%201&metric=read_ops,in_flight&from=-1d&step=60").unwrap();
        assert_eq!((day.asked.points, day.metrics.len()), (1_440, 2));
        assert_eq!(day.objects[0].name, "vm 1");
        for (query, why) in [
            ("object=luns:a", "did you mean \"lun\""),
            ("object=lun", "write lun:NAME"),
            ("metric=read_op", "did you mean \"read_ops\""),
            ("from=-1h&to=-2h", "not before"),
            ("from=-1d&step=1", "larger step"),
            ("step=0", "1 to"),
        ] {
            let refused = read(query).map(drop).unwrap_err();
            assert!(refused.detail.contains(why), "{query}: {refused}");
        }
    }
}
