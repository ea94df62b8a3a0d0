//! Operations that a volume does not have, made of those that it has, so that the logical unit may
//! rely on them: zeroes by writing them.

use env::{CoreHandle, detach};
use std::rc::Rc;
use units::{BlockCount, Buf, Lba, LbaRange};
use volume::{Done, Durability, Io, IoFuture, IoResult, Lane, Op, Origin, Shape, Support, Wrap};

/// Bytes of zeroes in one write.
const CHUNK_BYTES: u64 = 1 << 20;

/// Emulates [`Op::WriteZeroes`] where the volume below does not have it; elsewhere it does nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct Emulate;

struct EmulateLane {
    core: CoreHandle,
    below: Rc<dyn Lane>,
    shape: Shape,
}

impl Wrap for Emulate {
    fn shape(&self, below: Shape) -> Shape {
        let mut shape = below;
        if shape.caps.writable && shape.caps.write_zeroes == Support::Absent {
            shape.caps.write_zeroes = Support::Emulated;
            // A command should end in seconds: 256 MiB of writes do on any disk.
            let block = u64::from(shape.block_size.bytes());
            shape.limits.write_zeroes_blocks_max = BlockCount((256 << 20) / block);
        }
        shape
    }

    fn lane(&self, core: &CoreHandle, below: Rc<dyn Lane>, shape: Shape) -> Rc<dyn Lane> {
        if !shape.caps.writable || shape.caps.write_zeroes != Support::Absent {
            return below;
        }
        Rc::new(EmulateLane {
            core: Rc::clone(core),
            below,
            shape,
        })
    }
}

impl Lane for EmulateLane {
    fn submit(&self, io: Io) -> IoFuture {
        let Op::WriteZeroes {
            range, durability, ..
        } = *io.op()
        else {
            return self.below.submit(io);
        };
        let (below, shape, origin) = (Rc::clone(&self.below), self.shape, io.origin());
        detach(
            &self.core,
            write_zeroes(below, shape, range, durability, origin),
        )
    }
}

async fn write_zeroes(
    below: Rc<dyn Lane>,
    shape: Shape,
    range: LbaRange,
    durability: Durability,
    origin: Origin,
) -> IoResult {
    let block = u64::from(shape.block_size.bytes());
    let chunk = shape.limits.transfer_blocks_max.0.min(CHUNK_BYTES / block);
    let mut at = range.start();
    while at < range.end() {
        let end = Lba(range.end().0.min(at.0.saturating_add(chunk)));
        let part = LbaRange::between(at, end).expect("`at` is before the end");
        let data = Buf::zeroes(shape.bytes_in(part));
        let op = Op::Write {
            range: part,
            data,
            durability,
        };
        below.submit(Io::new(op, origin)).await?;
        at = end;
    }
    Ok(Done::Nothing)
}
