//! A volume that fills the log: its backing volume hangs while it writes as much as it can.

use crate::sim::client::within;
use crate::sim::lab::wait;
use crate::sim::oracle::{End, Oracle};
use crate::sim::pool::{FILLER, FILLER_BYTES, Pool, Running};
use crate::sim::story::Stage;
use env::CoreHandle;
use env::sim::Node;
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use units::{BlockCount, Lba, LbaRange};
use volume::{Done, Durability, Io, Op, Origin};
use volume_test::stamp::Value;

/// Bytes of one of its writes.
const WRITE_BYTES: u64 = 256 << 10;

/// Writes in a life at most: more than the log has room for.
const WRITES: u64 = 40;

/// The volume, as its oracle sees it: histories of so many blocks would take too long to search.
pub(super) struct Filler {
    pool: Pool,
    oracle: Rc<Oracle>,
}

impl Filler {
    pub(super) fn new(stage: &mut Stage, pool: Pool) -> Self {
        let oracle = stage.oracle_without_history(pool.setup.block_size);
        Self { pool, oracle }
    }

    pub(super) fn oracle(&self) -> &Rc<Oracle> {
        &self.oracle
    }

    /// Its files or devices.
    pub(super) fn backings(&self) -> Vec<PathBuf> {
        self.pool.backings(FILLER)
    }

    fn range(&self, number: u64) -> LbaRange {
        let block = u64::from(self.pool.setup.block_size.bytes());
        let (len, all) = (WRITE_BYTES / block, FILLER_BYTES / block);
        LbaRange::new(Lba(number * len % all), BlockCount(len)).expect("inside a small disk")
    }

    /// Writes until the log has no room for long, or the work is to stop.
    pub(super) fn start(
        &self,
        stage: &Stage,
        node: &Node,
        running: &Rc<Running>,
        (stop, working): (Rc<Cell<bool>>, Rc<Cell<u32>>),
    ) -> Result<(), String> {
        let core = node.core(0);
        let (through, here) = (Rc::clone(running), CoreHandle::clone(&core));
        let open = async move { through.lane(here, FILLER).await };
        let opened = wait(stage, node, "open", open)?;
        let ranges: Vec<LbaRange> = (0..WRITES).map(|number| self.range(number)).collect();
        let (oracle, block_size) = (Rc::clone(&self.oracle), self.pool.setup.block_size);
        let on = CoreHandle::clone(&core);
        working.set(working.get() + 1);
        core.spawn(Box::pin(async move {
            for range in ranges {
                if stop.get() {
                    break;
                }
                let values = oracle.fresh(0, range);
                let durability = if opened.acknowledged_is_stable {
                    Durability::Stable
                } else {
                    Durability::Cached
                };
                let ticket = oracle.write(0, range, &values, durability);
                let op = Op::Write {
                    range,
                    data: Value::payload(&values, block_size),
                    durability: Durability::Cached,
                };
                let answer = opened.lane.submit(Io::new(op, Origin::default()));
                let end = match within(&on, Duration::from_secs(40), answer).await {
                    None => End::Timeout,
                    Some(Ok(_)) => End::Done(None),
                    Some(Err(error)) => End::Error(error),
                };
                oracle.end(&ticket, &end);
            }
            working.set(working.get() - 1);
        }));
        Ok(())
    }

    /// Reads all of it.
    pub(super) fn audit(
        &self,
        stage: &Stage,
        node: &Node,
        running: &Rc<Running>,
    ) -> Result<(), String> {
        let (through, core) = (Rc::clone(running), node.core(0));
        let pieces = FILLER_BYTES / WRITE_BYTES;
        let ranges: Vec<LbaRange> = (0..pieces).map(|number| self.range(number)).collect();
        let oracle = Rc::clone(&self.oracle);
        wait(stage, node, "audit of the filler", async move {
            let opened = through.lane(core, FILLER).await?;
            for range in ranges {
                let ticket = oracle.read(u32::MAX, range);
                let op = Op::Read { range, into: None };
                match opened.lane.submit(Io::new(op, Origin::default())).await {
                    Ok(Done::Data(bytes)) => oracle.end(&ticket, &End::Done(Some(bytes))),
                    other => return Err(format!("{range:?} answered {other:?}")),
                };
            }
            Ok(())
        })
    }
}
