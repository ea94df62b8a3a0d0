//! What the node does as a whole, for whoever watches only that: pure.

use controller::Moment;
use manifest::activity::{OverviewOp, OverviewView};
use manifest::pulse::{LunFigures, OpFigures};
use units::Histogram;

/// Of a moment: sums over its LUNs.
#[must_use]
pub fn overview(now: &Moment) -> OverviewView {
    let view = &now.activity;
    let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
    let sum = |of: fn(&LunFigures) -> u64| now.luns.iter().map(|lun| of(&lun.figures)).sum();
    let op = |of: fn(&LunFigures) -> &OpFigures, took: &Histogram| {
        let all = || now.luns.iter().map(|lun| of(&lun.figures));
        let [p50_us, p99_us] = took
            .quantiles([500, 990])
            .map_or([None; 2], |it| it.map(Some));
        OverviewOp {
            ops: all().map(|it| it.ops).sum(),
            bytes: all().map(|it| it.bytes).sum(),
            p50_us,
            p99_us,
        }
    };
    let [reads, writes] = &now.together;
    OverviewView {
        node: view.node.clone(),
        started: view.started.clone(),
        at_us: view.at_us,
        cores: view.cores.clone(),
        sessions: count(view.sessions.len()),
        luns: count(now.luns.len()),
        in_flight: sum(|it| it.in_flight),
        read: op(|it| &it.read, reads),
        write: op(|it| &it.write, writes),
        other_ops: sum(|it| it.other_ops),
    }
}

#[cfg(test)]
mod test {
    use super::*;
    use crate::fixture::{self, took};

    #[test]
    fn the_whole_is_the_sum_of_its_luns_and_has_percentiles_where_something_came() {
        let lun = |name, ops| {
            let mut lun = fixture::lun(name);
            lun.figures.in_flight = 1;
            lun.figures.other_ops = 3;
            lun.figures.read = OpFigures {
                ops,
                bytes: ops * 512,
                ..OpFigures::default()
            };
            lun
        };
        let mut moment = fixture::moment(vec![lun("a", 2), lun("b", 5)]);
        moment.together[0] = took(&[4, 4, 1000]);
        let whole = overview(&moment);
        let read = OverviewOp {
            ops: 7,
            bytes: 7 * 512,
            p50_us: Some(4),
            p99_us: Some(1024),
        };
        assert_eq!((whole.read, whole.write), (read, OverviewOp::default()));
        assert_eq!((whole.luns, whole.in_flight, whole.other_ops), (2, 2, 6));
        assert_eq!(
            (whole.node, whole.at_us),
            (moment.activity.node, moment.activity.at_us)
        );
    }
}
