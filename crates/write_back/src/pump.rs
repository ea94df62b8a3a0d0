//! Writes batches and checkpoints as the log hands them out.

use crate::failure::Extent;
use crate::shard::Shard;
use env::{Durable, FileOp};
use journal::{CheckpointWrite, Kind, Next, Write};
use std::io;
use std::rc::Rc;
use units::Buf;

/// Runs as long as the shard is open.
pub(crate) async fn pump(shard: Rc<Shard>) {
    while !shard.closing.get() {
        let step = {
            let mut state = shard.state.borrow_mut();
            // In the same poll as what follows: whoever has lost the right gets nothing into a
            // batch.
            state.withdraw_fenced();
            let step = state.log.next_step();
            state.full = matches!(step, Some(Next::Full));
            step
        };
        match step {
            Some(Next::Write(write)) => start(&shard, write),
            Some(Next::Checkpoint(write)) => start_checkpoint(&shard, write),
            Some(Next::Full) => {
                shard.carry.notify_one();
                shard.pump.notified().await;
            }
            None => shard.pump.notified().await,
        }
    }
}

/// Hands a batch to the device.
pub(crate) fn start(shard: &Rc<Shard>, write: Write) {
    {
        let mut counts = shard.counts.borrow_mut();
        counts.batches += 1;
        counts.records += write.data_at.len() as u64;
        counts.written_bytes += write.bytes.len() as u64;
    }
    let now = shard.core.recent();
    shard.ages.borrow_mut().written(write.number, now);
    let place = Extent {
        offset: shard.log_at + write.at,
        len: write.bytes.len(),
    };
    let answer = shard.file.submit(FileOp::Write {
        offset: place.offset,
        data: write.bytes,
        durable: Durable::Yes,
    });
    let (shard, number) = (Rc::clone(shard), write.number);
    let core = Rc::clone(&shard.core);
    core.spawn(Box::pin(async move {
        let result = answer.await;
        {
            let mut state = shard.state.borrow_mut();
            for stable in state.log.written(number, result.is_ok()) {
                if stable.change.kind != Kind::WriteAround {
                    state.newest_data = state.newest_data.max(stable.batch);
                }
                state.adopt(stable.token, &stable.change, stable.data_at);
            }
        }
        after(&shard, place, result.map(|_| ()));
    }));
}

fn start_checkpoint(shard: &Rc<Shard>, write: CheckpointWrite) {
    let place = Extent {
        offset: shard.checkpoints_at[usize::from(write.slot)],
        len: write.bytes.len(),
    };
    let answer = shard.file.submit(FileOp::Write {
        offset: place.offset,
        data: Buf::from(write.bytes),
        durable: Durable::Yes,
    });
    let shard = Rc::clone(shard);
    let core = Rc::clone(&shard.core);
    core.spawn(Box::pin(async move {
        let result = answer.await;
        let mut state = shard.state.borrow_mut();
        state.log.checkpoint_written(result.is_ok());
        drop(state);
        after(&shard, place, result.map(|_| ()));
    }));
}

fn after(shard: &Rc<Shard>, place: Extent, result: io::Result<()>) {
    let failed = result.is_err();
    if let Err(error) = result {
        shard.has_failed(place, &error);
        let lost = |lba| shard.lost_write(lba);
        shard.state.borrow_mut().give_up(lost);
    }
    if failed || shard.moving.get() {
        shard.moved.notify_waiters();
    }
    shard.pump.notify_one();
    if shard.carrier_rests.get() {
        shard.carry.notify_one();
    }
}
