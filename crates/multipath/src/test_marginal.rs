//! Paths that work badly, on virtual time: out of use while a better one lives, and back when they
//! behave.

use super::test::{simulate, write};
use super::wires::{LINE, Target, multipath, target};
use super::{Config, Multipath, Segments};
use env::{CoreHandle, LocalFuture};
use paths::policy::Use;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, BlockSize, Now};
use volume::Lane;
use volume_test::plain::Plain;

/// Two paths under round robin, and their target.
fn two_paths(test: fn(CoreHandle, Rc<Multipath>, Rc<Target>) -> LocalFuture<()>) {
    simulate(5, move |core| {
        Box::pin(async move {
            let below = Plain::make(BlockSize::B512, BlockCount(64));
            let shape = below.shape();
            let lane = below.open(&core).await.unwrap();
            let target = target(&core, lane, 2, 5, true);
            let config = Config {
                policy: "round-robin".parse().unwrap(),
                ..Config::default()
            };
            let lane = multipath(&core, shape, config, &target);
            lane.submit(write(0, 1)).await.unwrap();
            test(core, Rc::new(lane), target).await;
        })
    });
}

/// Four writers of small blocks for so long.
async fn load(core: &CoreHandle, lane: &Rc<Multipath>, span: Duration) {
    let until = core.now().after(span);
    let writers = (0..4_u8).map(|writer| {
        let (lane, there) = (Rc::clone(lane), Rc::clone(core));
        env::detach(core, async move {
            while there.now() < until {
                lane.submit(write(writer.into(), writer)).await.unwrap();
                // A millisecond of thought.
                there
                    .sleep_until(there.now().after(Duration::from_millis(1)))
                    .await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for writer in writers {
        writer.await;
    }
}

fn uses(lane: &Multipath) -> Vec<(Use, bool)> {
    let status = lane.status();
    status.iter().map(|it| (it.usage, it.marginal)).collect()
}

const FINE: (Use, bool) = (Use::Active, false);
const SHUNNED: (Use, bool) = (Use::Standby, true);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn a_path_ten_times_slower_than_its_sibling_is_shunned_after_ten_seconds_and_pardoned_after_thirty()
{
    two_paths(|core, lane, target| {
        Box::pin(async move {
            // 512 bytes take 20 ms.
            target
                .rates
                .replace(vec![(LINE, Now::ZERO), (25_600, Now::ZERO)]);
            load(&core, &lane, seconds(8)).await;
            assert_eq!(uses(&lane), [FINE, FINE], "not yet");
            load(&core, &lane, seconds(6)).await;
            assert_eq!(uses(&lane), [FINE, SHUNNED]);
            target.rates.replace(vec![(LINE, Now::ZERO); 2]);
            load(&core, &lane, seconds(35)).await;
            assert_eq!(
                uses(&lane),
                [FINE, FINE],
                "nothing speaks against it any more"
            );
        })
    });
}

#[test]
fn a_path_that_is_slow_because_its_line_is_or_because_all_are_is_not_shunned() {
    two_paths(|core, lane, target| {
        Box::pin(async move {
            target.rates.replace(vec![(25_600, Now::ZERO); 2]);
            load(&core, &lane, seconds(20)).await;
            assert_eq!(uses(&lane), [FINE, FINE]);
        })
    });
}

#[test]
fn three_stalls_of_one_path_shun_it_and_stalls_of_the_store_shun_nobody() {
    two_paths(|core, lane, target| {
        Box::pin(async move {
            load(&core, &lane, seconds(2)).await;
            for _ in 0..4 {
                // Whatever is in flight stalls, on both paths.
                let pause = [0, 0, 1, 1].map(|path| (path, Duration::from_millis(400)));
                target.pause.borrow_mut().extend(pause);
                load(&core, &lane, seconds(3)).await;
            }
            assert_eq!(uses(&lane), [FINE, FINE], "the store's");
            for _ in 0..3 {
                target
                    .pause
                    .borrow_mut()
                    .push((1, Duration::from_millis(400)));
                load(&core, &lane, seconds(3)).await;
            }
            assert_eq!(uses(&lane), [FINE, SHUNNED], "the path's");
        })
    });
}

#[test]
fn a_path_that_sends_more_than_one_segment_in_a_hundred_again_is_shunned_after_five_seconds() {
    two_paths(|core, lane, target| {
        Box::pin(async move {
            target.segments.replace(vec![Segments::default(); 2]);
            for second in 0..8 {
                for (path, again) in [(0, 5), (1, 15)] {
                    let all = &mut target.segments.borrow_mut()[path];
                    all.sent += 1000;
                    all.again += again;
                }
                load(&core, &lane, seconds(1)).await;
                if second < 4 {
                    assert_eq!(uses(&lane), [FINE, FINE], "not yet");
                }
            }
            assert_eq!(uses(&lane), [FINE, SHUNNED]);
        })
    });
}
