//! The straight path of operations: what becomes of those whose issuers go, or whose layer does.

use super::Config;
use super::test::{simulate, write};
use super::wires::{Wire, multipath, target};
use std::time::Duration;
use units::{BlockCount, BlockSize};
use volume::Lane;
use volume_test::plain::Plain;

#[test]
fn a_layer_that_goes_while_tasks_ask_for_what_nobody_waits_for_any_more_goes_quietly() {
    simulate(1, |core| {
        Box::pin(async move {
            let below = Plain::make(BlockSize::B512, BlockCount(64));
            let shape = below.shape();
            let lane = below.open(&core).await.unwrap();
            let target = target(&core, lane, 2, 1, true);
            let layer = multipath(&core, shape, Config::default(), &target);
            layer.submit(write(0, 1)).await.unwrap();
            target.set(0, Wire::Silent);
            target.set(1, Wire::Silent);
            // Nobody waits for the first any more, somebody does for the second.
            drop(layer.submit(write(1, 2)));
            let waits = layer.submit(write(2, 3));
            core.spawn(Box::pin(async move {
                let _ = waits.await;
                panic!("nobody is answered once the layer is gone");
            }));
            core.sleep_until(core.now().after(Duration::from_millis(10)))
                .await;
            let flying: u32 = layer.status().iter().map(|path| path.in_flight).sum();
            assert_eq!(flying, 2, "both are on their way");
            drop(layer);
            target.set(0, Wire::Good);
            target.set(1, Wire::Good);
            core.sleep_until(core.now().after(Duration::from_secs(10)))
                .await;
        })
    });
}
