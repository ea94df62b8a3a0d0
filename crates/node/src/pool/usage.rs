//! The space that LUNs take in their pools: one listing per pool reports it for all of them.
//!
//! Whoever asks gets what is known, waits a moment where a probe may end soon, and never waits for
//! a pool that hangs.

use crate::inner::Inner;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// How long a figure is good enough.
const FRESH: Duration = Duration::from_secs(5);

/// How long an answer waits for fresh figures.
const WAIT_MAX: Duration = Duration::from_millis(50);

/// Probes anew where the figures are old, or one of a new LUN is missing.
pub(crate) async fn refresh(node: &Rc<Inner>) {
    let usage = &node.usage;
    let missing = || {
        let objects = Rc::downgrade(&node.objects.borrow());
        // Whoever asks often asks of the same LUNs.
        if usage.complete.borrow().ptr_eq(&objects) {
            return false;
        }
        let units = node.units.borrow();
        let mut in_pool = units.iter().filter(|(_, unit)| unit.is_in_pool());
        let is_missing = in_pool.any(|(naa, _)| usage.of(naa).is_none());
        if !is_missing {
            usage.complete.replace(objects);
        }
        is_missing
    };
    let fresh = usage.fresh_until.get();
    let fresh = fresh.is_some_and(|until| node.core.now() < until) && !missing();
    if fresh || usage.inspecting.replace(true) {
        return;
    }
    let mut inspecting = Box::pin(inspect(Rc::clone(node)));
    let mut timeout = node.core.sleep_until(node.core.now().after(WAIT_MAX));
    let done = poll_fn(|cx| {
        if inspecting.as_mut().poll(cx).is_ready() {
            return Poll::Ready(true);
        }
        timeout.as_mut().poll(cx).map(|()| false)
    });
    if !done.await {
        node.core.spawn(inspecting);
    }
}

async fn inspect(node: Rc<Inner>) {
    let mut found = BTreeMap::new();
    for pool in node.pools().values() {
        found.extend(pool.usage().await);
    }
    *node.usage.bytes.borrow_mut() = found;
    let now = node.core.now();
    node.usage.fresh_until.set(Some(now.after(FRESH)));
    node.usage.inspecting.set(false);
}
