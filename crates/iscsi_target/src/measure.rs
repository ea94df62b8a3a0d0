//! A core measures itself and its sessions.

use crate::load::Load;
use crate::session::{Sessions, Working};
use env::{CoreHandle, CoreId};
use std::cell::Cell;
use std::time::Duration;
use units::Now;

/// A core's own measure of itself.
#[derive(Default)]
struct Meter {
    last: Cell<Option<(Now, Duration)>>,
    load: Cell<Load>,
}

/// What a core was measured to do.
#[derive(Clone, Debug)]
pub(crate) struct CoreMeasure {
    pub(crate) core: CoreId,
    pub(crate) load: Load,
    /// Sessions that work, with their loads.
    pub(crate) sessions: Vec<Working>,
}

/// Measures this core and its sessions since this was last asked.
pub(crate) fn measure(core: &CoreHandle) -> CoreMeasure {
    let meter = core.locals().get::<Meter>();
    let (now, busy) = (core.now(), core.busy());
    let (then, before) = meter.last.replace(Some((now, busy))).unwrap_or((now, busy));
    let share = Load::of(
        busy.saturating_sub(before).as_nanos(),
        now.since(then).as_nanos(),
    );
    meter.load.set(meter.load.get().next(share));
    let sessions = core.locals().get::<Sessions>().measured(share);
    CoreMeasure {
        core: core.id(),
        load: meter.load.get(),
        sessions,
    }
}
