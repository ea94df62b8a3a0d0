//! Takes a sample a second: figures for the history, what changed for the events, and a frame for
//! whoever watches.
//!
//! **Contract.** One question to the node a second, whatever is recorded and however many watch;
//! documents of what LUNs do are made only while somebody watches. A
//! node that does not answer in its second is asked again in the next one; the history has a gap.

use crate::forecasts;
use crate::outside::now;
use crate::records::{Records, Shown};
use controller::{Handle, Moment};
use history::SLOW_EVERY;
use manifest::activity::ActivityView;
use manifest::code::Code;
use manifest::facts::PoolFacts;
use manifest::problem::Problem;
use manifest::pulse::{Asked, Watched};
use observed::{Nics, Observed, Readings, overview};
use std::io;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;

const SECOND_NANOS: u64 = 1_000_000_000;

/// How many samples have the same space of pools: their file systems are asked for it.
const POOLS_EVERY: u64 = 5;

/// The running sampler.
pub struct Sampler {
    thread: Option<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl Sampler {
    /// Samples on a thread of its own until it is stopped. When it returns the first sample is
    /// taken: whatever changes from then on is an event.
    ///
    /// # Errors
    /// The thread cannot be had.
    pub fn start(records: Records, handle: Handle) -> Result<Self, Problem> {
        let failed = |error: io::Error| {
            let detail = format!("the sampler's thread: {error}");
            Problem::new(Code::ConfigEnvironment, detail)
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(failed)?;
        let (stop, mut stopped) = watch::channel(false);
        let (ready, is_ready) = mpsc::channel();
        let thread = Builder::new().name("sampler".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = sample(&records, &handle, ready) => {}
                    () = forecasts::keep(&records, &handle) => {}
                    // The sender is gone only when this is stopped.
                    _ = stopped.wait_for(|stop| *stop) => {}
                }
            });
        });
        let thread = Some(thread.map_err(failed)?);
        // Where the node is gone already there is nothing to wait for.
        let _ = is_ready.recv();
        Ok(Self { thread, stop })
    }

    /// Takes no more samples.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.end();
    }
}

/// Until the node is gone.
async fn sample(records: &Records, handle: &Handle, ready: mpsc::Sender<()>) {
    records.history().load(now().seconds()).await;
    let mut state = State::default();
    loop {
        let second = now().wall.0 / SECOND_NANOS;
        let asked = state.asks(second, records.watched());
        let pools = state.known_pools();
        let moment = handle
            .call(move |controller| Box::pin(async move { controller.moment(asked, pools).await }));
        let Ok(moment) = moment.await else {
            return;
        };
        state.take(records, moment);
        // Only whoever starts it waits, and only once.
        let _ = ready.send(());
        tokio::time::sleep(until_next_second(now().wall.0)).await;
    }
}

/// A little more than that, so that a timer that is early does not wake in the second before.
fn until_next_second(wall: u64) -> Duration {
    Duration::from_nanos(SECOND_NANOS - wall % SECOND_NANOS + 1_000_000)
}

/// What was seen, and what follows from the next moment.
#[derive(Default)]
struct State {
    before: Option<Moment>,
    readings: Readings,
    observed: Observed,
    number: u64,
    /// The tenth of seconds since 1970 in which stages were asked for last.
    stages: u64,
}

impl State {
    /// What is wanted of a second: documents of the LUNs that somebody watches; once in ten, in the
    /// last of them, how long stages took.
    fn asks(&mut self, second: u64, watched: Watched) -> Asked {
        let tenth = (second + 1) / SLOW_EVERY;
        let stages = tenth > self.stages;
        self.stages = tenth;
        Asked {
            ended_since: self.before.as_ref().map_or(0, |before| before.ended.next),
            stages,
            figures: true,
            documents: watched,
        }
    }

    /// The pools of the moment before, but for each fifth.
    fn known_pools(&mut self) -> Option<Vec<PoolFacts>> {
        self.number = self.number.wrapping_add(1);
        let before = self.before.as_ref();
        before
            .filter(|_| !self.number.is_multiple_of(POOLS_EVERY))
            .map(|before| before.pools.clone())
    }

    fn take(&mut self, records: &Records, mut moment: Moment) {
        let before = self.before.as_ref();
        let second = now().wall.0 / SECOND_NANOS;
        let history = records.history();
        let (nics, readings) = (Nics::read(), &mut self.readings);
        history.record(second, |push| {
            readings.take(before, &moment, &nics, push);
        });
        for happened in self.observed.take(before, &moment) {
            records.events().emit(happened);
        }
        records.report_set_aside();
        let (watched, luns) = moment.documents.take().unwrap_or_default();
        records.show(|| Shown {
            watched,
            overview: overview(&moment),
            view: ActivityView {
                luns,
                ..moment.activity.clone()
            },
        });
        self.before = Some(moment);
    }
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn stages_are_asked_for_in_the_last_of_ten_seconds_and_later_where_that_one_was_missed() {
        let mut state = State::default();
        let seconds = [100, 101, 108, 109, 110, 118, 120, 121, 129, 130];
        let asked = seconds.map(|second| state.asks(second, Watched::Nothing).stages);
        let wanted = [109, 120, 129];
        let first = 100;
        for (second, asked) in seconds.into_iter().zip(asked) {
            assert_eq!(
                asked,
                second == first || wanted.contains(&second),
                "{second}"
            );
        }
    }

    #[test]
    fn samples_are_taken_when_seconds_begin() {
        for wall in [0, 1, 999_999_999, 1_800_000_000_123_456_789] {
            let at = u128::from(wall) + until_next_second(wall).as_nanos();
            let after = at % u128::from(SECOND_NANOS);
            assert!(after <= 1_000_000, "{wall}");
            assert!(at > u128::from(wall));
        }
    }
}
