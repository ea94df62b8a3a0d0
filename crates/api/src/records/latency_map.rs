//! `GET /history/latency`: how many commands took how long, over time.

use crate::answer::Answer;
use crate::describe::{Operation, Parameter, Part, Schemas};
use crate::outside::now;
use crate::parameters::{Parameters, wrong};
use crate::parts::Refused;
use crate::records::Records;
use crate::records::history::{POINTS_MAX, SECOND, are_known, object, span, takes_span};
use crate::records::log::unreadable;
use axum::extract::{Extension, FromRequestParts, State};
use axum::http::request::Parts;
use controller::Handle;
use history::{Kind, Line, MAP_ROWS, Metric, Object};
use manifest::code::Code;
use manifest::problem::Problem;
use manifest::time::rfc3339;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use units::WallClock;

/// Whose map is wanted, and of which time.
pub(crate) struct Asked {
    object: Object,
    asked: history::Asked,
}

impl Asked {
    fn read(query: Option<&str>, node: &str, now: WallClock) -> Result<Self, Problem> {
        let all = Parameters::read(query, &["object", "from", "to", "step"])?;
        let mut objects = all.all("object");
        let object = object(objects.next().unwrap_or("node"), node)?;
        if objects.next().is_some() {
            return Err(wrong("object: a map is of one alone".to_owned()));
        }
        if !matches!(object.kind, Kind::Node | Kind::Lun) {
            let kind = object.kind.name();
            return Err(wrong(format!(
                "object={kind}:{}: there are maps of LUNs and of the node; percentiles of a {kind} are in /history",
                object.name
            )));
        }
        let asked = span(&all, now)?;
        if asked.points > POINTS_MAX {
            let points = asked.points;
            return Err(wrong(format!(
                "{points} columns: an answer has {POINTS_MAX} at most; ask with a larger step"
            )));
        }
        Ok(Self { object, asked })
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
        operation.takes(Parameter {
            name: "object",
            place: "query",
            meaning: "`node`, or `lun:NAME`.".to_owned(),
            schema: json!({ "type": "string", "default": "node" }),
        });
        takes_span(operation);
        operation.fails(&[Code::BadRequest, Code::NotFound, Code::RecordsUnreadable]);
    }
}

/// How many commands took how long, over time. A column in which nothing came has no cell.
#[derive(Serialize, JsonSchema)]
pub(crate) struct LatencyMapView {
    /// When the first column begins (RFC 3339).
    from: String,
    /// Seconds of each column.
    step: u64,
    /// Seconds of the finest that is still known of this time: 10 or 300.
    resolution: u64,
    /// How many columns there are.
    columns: usize,
    /// The longest time of each row, in microseconds; the last row has all that took longer, too.
    bounds_us: Vec<u64>,
    /// Of reads: column, row, and how many there were.
    read: Vec<(usize, usize, u64)>,
    /// Of writes.
    write: Vec<(usize, usize, u64)>,
}

/// The rows of reads or of writes, from the shortest time on.
fn rows(is_write: bool) -> impl Iterator<Item = Metric> {
    (0..MAP_ROWS).map(move |row| Metric::of_map(is_write, u8::try_from(row).unwrap_or(u8::MAX)))
}

/// Column by column.
fn cells(lines: &[Line]) -> Vec<(usize, usize, u64)> {
    let of_row = |(row, line): (usize, &Line)| {
        let points = line.points.iter().enumerate();
        let some = points.filter(|(_, point)| point.sum > 0);
        let cells = some.map(move |(column, point)| (column, row, point.sum));
        cells.collect::<Vec<_>>()
    };
    let mut cells: Vec<_> = lines.iter().enumerate().flat_map(of_row).collect();
    cells.sort_unstable();
    cells
}

pub(crate) async fn latency_map(
    State(handle): State<Handle>,
    Extension(records): Extension<Records>,
    asked: Asked,
) -> Answer<LatencyMapView> {
    let Asked { object, asked } = asked;
    let known = are_known(&records, &handle, std::slice::from_ref(&object));
    if let Err(problem) = known.await {
        return Answer(Err(problem));
    }
    let metrics = rows(false).chain(rows(true)).collect();
    let found = records.history().query(vec![object], metrics, asked).await;
    Answer(found.map_err(unreadable).map(|found| {
        let (reads, writes) = found.lines.split_at(MAP_ROWS);
        LatencyMapView {
            from: rfc3339(WallClock(found.from.saturating_mul(SECOND))),
            step: found.step,
            resolution: found.resolution,
            columns: reads.first().map_or(0, |line| line.points.len()),
            bounds_us: (0..MAP_ROWS).map(|row| 1 << row).collect(),
            read: cells(reads),
            write: cells(writes),
        }
    }))
}

#[cfg(test)]
mod test {
    use super::*;
    use history::Point;

    #[test]
    fn a_map_is_of_one_lun_or_of_the_node() {
        let read = |query| Asked::read(Some(query), "n", WallClock(1_800_000_000 * SECOND));
        let day = read("object=lun:vm%201&from=-1d&step=60").unwrap();
        assert_eq!(
            (day.object.name.as_str(), day.asked.points),
            ("vm 1", 1_440)
        );
        assert_eq!(read("").unwrap().object.name, "n");
        for (query, why) in [
            ("object=host:a", "of LUNs and of the node"),
            ("object=lun:a&object=lun:b", "one alone"),
            ("metric=read_ops", "metric"),
            ("from=-1y&step=1", "larger step"),
        ] {
            let refused = read(query).map(drop).unwrap_err();
            assert!(refused.detail.contains(why), "{query}: {refused}");
        }
    }

    #[test]
    fn cells_are_where_something_came() {
        let line = |sums: [u64; 3]| Line {
            object: Object {
                kind: Kind::Lun,
                name: "a".to_owned(),
            },
            metric: Metric::of_map(false, 0),
            points: sums
                .map(|sum| Point {
                    sum,
                    ..Point::default()
                })
                .into(),
        };
        let lines = [line([0, 7, 0]), line([3, 1, 0])];
        assert_eq!(cells(&lines), [(0, 1, 3), (1, 0, 7), (1, 1, 1)]);
    }
}
