//! Whether a path works as well as its siblings, second by second: what the health machine's
//! judgement is made of.
//!
//! - A command *stalled* if it took more than 100 ms, eight times what is usual on its path, while
//!   another path did something quickly: a store that hangs is no path's fault. Several within
//!   two seconds are one.
//! - A path is *slow* if the 99th percentile of its latencies is ten times that of a sibling,
//!   beyond what their speeds explain, and 5 ms at least. Small and large commands are compared by
//!   themselves.
//! - A path *retransmits* if more than 1 % of its TCP segments of a second were sent again.

use super::engine::Engine;
use super::gauge::{Gauge, Window, is_slow};
use super::route::Route;
use paths::health::{Seen, State};
use std::rc::{Rc, Weak};
use std::time::Duration;
use units::Now;

/// A window of comparison.
const PERIOD: Duration = Duration::from_secs(1);

/// The same for a path among all.
fn is_slow_of(routes: &[Route], path: usize) -> bool {
    let of = |classes: fn(&Gauge) -> &Window| {
        let own = (classes(&routes[path].gauge), routes[path].settings.speed);
        let others = routes.iter().enumerate();
        let others = others.filter(|(at, it)| *at != path && it.health.state() == State::Up);
        let others = others.map(|(_, it)| (classes(&it.gauge), it.settings.speed));
        is_slow(own, &others.collect::<Vec<_>>())
    };
    of(|gauge| &gauge.small) || of(|gauge| &gauge.large)
}

impl Engine {
    /// A command was done by a path.
    pub(super) fn clocked(self: &Rc<Self>, path: usize, bytes: u64, begun: Now) {
        let now = self.core.recent();
        let stalled = {
            let mut state = self.state.borrow_mut();
            let Some(route) = state.routes.get_mut(path) else {
                return;
            };
            let suspect = route.gauge.ended(bytes, now.since(begun), now);
            let quick = |gauge: &Gauge| gauge.was_quick(begun, now);
            let routes = &mut state.routes;
            let others = routes.iter().enumerate().filter(|(it, _)| *it != path);
            let stalled = suspect && others.map(|(_, it)| &it.gauge).any(quick);
            if stalled {
                routes[path].gauge.stalled = Some(now);
            }
            stalled
        };
        if stalled {
            self.see(path, Seen::Stall);
        }
    }

    /// Compares the paths, and begins new windows.
    fn compare(self: &Rc<Self>) {
        let mut seen_now = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            let routes = &mut state.routes;
            let slow: Vec<bool> = (0..routes.len())
                .map(|path| is_slow_of(routes, path))
                .collect();
            for (path, (route, slow)) in routes.iter_mut().zip(slow).enumerate() {
                let used = route.gauge.small.count + route.gauge.large.count > 0;
                let session = route.session.as_ref().filter(|_| used);
                let segments = session.and_then(|it| it.segments());
                let gauge = &mut route.gauge;
                let retransmits = gauge.retransmits(segments);
                gauge.small.next();
                gauge.large.next();
                if std::mem::replace(&mut gauge.was_slow, slow) != slow {
                    seen_now.push((path, Seen::Slow(slow)));
                }
                let before = std::mem::replace(&mut gauge.was_retransmitting, retransmits);
                if before != retransmits {
                    seen_now.push((path, Seen::Retransmitting(retransmits)));
                }
            }
        }
        for (path, seen) in seen_now {
            self.see(path, seen);
        }
    }
}

/// Compares the paths for as long as somebody uses the layer. One path has no siblings.
pub(super) async fn compare(engine: Weak<Engine>) {
    loop {
        let core = match engine.upgrade() {
            Some(engine) if !engine.state.borrow().closed => Rc::clone(&engine.core),
            Some(_) | None => return,
        };
        core.sleep_until(core.now().after(PERIOD)).await;
        if let Some(engine) = engine.upgrade() {
            engine.compare();
        }
    }
}
