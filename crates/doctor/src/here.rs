//! The checks on a thread and a core of their own, for programs whose cores have other work, or
//! that have none.

use crate::report::{Report, examine};
use crate::scene::{InspectError, Pools, Space, inspect};
use crate::storage::{self, NodeStorage};
use env::real::{Cores, Driver, Runtime, RuntimeConfig};
use env::{CoreHandle, CoreId, LocalFuture};
use machine::Roots;

/// Runs `inspect` on a core that is there for it alone, and waits for what it answers.
///
/// # Errors
/// Its thread cannot be had.
pub fn on_a_core<T: Send + 'static>(
    inspect: impl FnOnce(CoreHandle) -> LocalFuture<T> + Send + 'static,
) -> Result<T, InspectError> {
    let runtime = Runtime::start(&RuntimeConfig {
        cores: Cores::List(vec![first_processor()]),
        driver: Driver::Poll,
        ..RuntimeConfig::default()
    });
    let runtime = runtime.map_err(InspectError::System)?;
    Ok(runtime.run(CoreId(0), inspect))
}

fn first_processor() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None);
    let allowed = allowed.unwrap_or_default();
    let mut all = 0..rustix::thread::CpuSet::MAX_CPU;
    all.find(|number| allowed.is_set(*number)).unwrap_or(0)
}

/// Checks this machine as a node that serves these pools, and its storage. It waits for disks and
/// the kernel.
///
/// # Errors
/// As [`inspect`].
pub fn examine_node(pools: Vec<Space>, storage: &NodeStorage) -> Result<Report, InspectError> {
    let seen =
        on_a_core(|core| Box::pin(async move { inspect(&core, &Roots::default(), &[]).await }));
    let mut scene = seen??;
    scene.pools = Pools::Reported;
    scene.space.extend(pools);
    let of_storage = storage::all(&storage::probe(&storage.places), &storage.engines);
    Ok(examine(&scene).with(of_storage))
}

#[cfg(test)]
mod test {
    use super::*;

    #[test]
    fn a_node_is_checked_with_its_pools() {
        let full = Space {
            name: "pool full".to_owned(),
            used_percent: 99,
        };
        let storage = NodeStorage {
            places: vec![("pool full".to_owned(), std::env::temp_dir())],
            engines: vec!["threads".to_owned()],
        };
        // Where the system says nothing of itself there is nothing to check.
        let Ok(report) = examine_node(vec![full], &storage) else {
            return;
        };
        let spoken = |what: &str| report.findings.iter().any(|it| it.what.contains(what));
        assert!(spoken("pool full"), "{report:#?}");
        for check in ["flush-latency", "direct-io", "io-uring"] {
            let found = report.findings.iter().any(|it| it.check == check);
            assert!(found, "{check}: {report:#?}");
        }
        let verdicts = report.findings.iter().map(|it| it.verdict);
        assert!(verdicts.is_sorted(), "problems first");
    }
}
