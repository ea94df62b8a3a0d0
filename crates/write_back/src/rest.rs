//! Work that nobody waits for leaves the disk to others.

use env::CoreHandle;
use std::time::Duration;
use units::Now;

/// Between two reads it rests so many times as long as the last one took ...
const REST: u32 = 4;
/// ... but not longer than this.
pub(crate) const REST_MAX: Duration = Duration::from_millis(100);

/// Leaves the disk to others after a read that began then.
pub(crate) async fn rest(core: &CoreHandle, begun: Now) {
    let now = core.now();
    let rest = (now.since(begun) * REST).min(REST_MAX);
    core.sleep_until(now.after(rest)).await;
}
