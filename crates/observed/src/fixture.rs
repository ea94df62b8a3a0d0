//! What tests see of a node.

use controller::Moment;
use manifest::activity::ActivityView;
use manifest::facts::{LunState, PoolFacts};
use manifest::pulse::{Ended, LunFigures, LunPulse};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use units::Histogram;

/// How long operations took.
pub(crate) fn took(micros: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for micros in micros {
        histogram.count(Duration::from_micros(*micros));
    }
    histogram
}

/// A LUN that does nothing.
pub(crate) fn lun(name: &str) -> LunPulse {
    LunPulse {
        name: Arc::from(name),
        naa: Arc::from(""),
        figures: LunFigures::default(),
        state: LunState::Online,
        scrub: None,
        cached: None,
        stalled: None,
        mirror: None,
    }
}

/// A pool of a thousand bytes.
pub(crate) fn pool(name: &str) -> PoolFacts {
    PoolFacts {
        name: name.to_owned(),
        path: "/p".to_owned(),
        total: 1000,
        available: 5,
        ..PoolFacts::default()
    }
}

/// A moment in which the node has these LUNs and nothing else.
pub(crate) fn moment(luns: Vec<LunPulse>) -> Moment {
    Moment {
        generation: 1,
        changed: BTreeMap::new(),
        disks: Arc::default(),
        activity: ActivityView {
            node: "n".to_owned(),
            started: "2026-01-01T00:00:00.000Z".to_owned(),
            at_us: 0,
            cores: Vec::new(),
            luns: Vec::new(),
            sessions: Vec::new(),
        },
        documents: None,
        together: Default::default(),
        stages_together: Default::default(),
        transfers: BTreeMap::new(),
        session_stages: Vec::new(),
        stages: Vec::new(),
        luns,
        pools: Vec::new(),
        portals: Vec::new(),
        refusals: Vec::new(),
        ended: Ended::default(),
        jobs: Vec::new(),
    }
}
